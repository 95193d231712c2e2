"""Reading in all containers: each cell as the reference says, nothing seen of one user, and all containers alike.

`make reading` runs the whole generator; here are a part of it, and tables whose answers are known.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

from support import reading_cases, reading_generator, reading_tables  # noqa: E402
from support.reading_adapter import session, sums  # noqa: E402
from support.reading_cells import cells, drawn  # noqa: E402
from support.reading_containers import columns  # noqa: E402
from support.reading_findings import Findings  # noqa: E402
from userdp.cli import main  # noqa: E402
from userdp.tables import Query, category, col, count_users, key, number  # noqa: E402

CONTAINERS = (
    "pandas",
    "dict",
    "polars",
    "polars, lazy",
    "pyarrow",
    "pyarrow, batches",
    "pyarrow, dataset of parquet",
    "pyarrow, folders",
    "list of tables",
    "list of batches",
    "files of several types",
    "list of polars frames",
    "list of pandas frames",
    "list of pyarrow and pandas",
    "dask, other types than stated",
    "duckdb",
)


@pytest.fixture(autouse=True)
def _warnings_are_watched() -> Iterator[None]:
    """Libraries warn while columns are made; what reading warns of is caught where it is read."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def clean(findings: Findings, least: int) -> None:
    """Nothing is wrong, and so much was compared."""
    assert not findings.found, findings.report()
    assert sum(findings.asked.values()) >= least


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_cell_is_read_as_the_reference_says(container: str, tmp_path: Path) -> None:
    if container == "duckdb":
        pytest.importorskip("duckdb")
    findings = Findings()
    own = [one for one in columns(cells(), tmp_path) if one.container == container]
    # Types that differ in a name only are all read by `make reading`.
    chosen = own if container not in ("pyarrow, batches", "pyarrow, dataset of parquet") else own[::4]
    for column in chosen:
        reading_cases.judge(column, findings)
    clean(findings, 2 * len(chosen))


@pytest.mark.parametrize("container", ["pandas", "polars", "dict"])
def test_drawn_cells_are_read_as_the_reference_says(container: str, tmp_path: Path) -> None:
    rng, findings = random.Random(7), Findings()
    own = [drawn(rng) for _ in range(300)]
    kinds = {"objects", "list of objects", "str", "String", "Binary", "string[python]", "U", "S"}
    for column in columns(own, tmp_path):
        if column.container == container and column.type in kinds:
            reading_cases.judge(column, findings)
    clean(findings, 300)


def test_dask_partitions_are_read_as_the_reference_says(tmp_path: Path) -> None:
    findings = Findings()
    for column in columns(cells(), tmp_path):
        chosen = column.type in ("objects", "subclasses", "str", "Int64", "datetime64[us]", "unknown categories")
        if column.container == "dask" and chosen:
            reading_cases.judge(column, findings, ["number", "text", "time", "id"])
    clean(findings, 100)


def test_one_user_changes_nothing_where_values_make_types() -> None:
    findings = Findings()
    trials = reading_tables.hostile_trials(random.Random(1), reading_tables.hostile_values(cells()))
    for number_of, trial in zip(range(500), trials, strict=False):
        reading_tables.judge(trial, findings, released=number_of % 10 == 0)
    clean(findings, 500)


def test_one_user_changes_nothing_at_the_ends_of_physical_ranges(tmp_path: Path) -> None:
    findings = Findings()
    trials = reading_tables.typed_trials(random.Random(1), list(columns(cells(), tmp_path)))
    for number_of, trial in zip(range(500), trials, strict=False):
        reading_tables.judge(trial, findings, released=number_of % 10 == 0)
    clean(findings, 500)


def test_a_person_in_two_containers_is_one() -> None:
    findings = Findings()
    reading_generator.try_people(150, 1, findings)
    clean(findings, 150)


def test_all_containers_give_the_same_integers() -> None:
    findings = Findings()
    reading_generator.try_containers(3, 1, findings)
    clean(findings, 3 * 16)


def test_one_users_lines_of_a_file_are_its_own(tmp_path: Path) -> None:
    findings = Findings()
    reading_generator.try_files(450, 1, findings, tmp_path)
    clean(findings, 450)


# --- tables whose answers are known


def users(frame: Any, types: dict[str, Any], query: Query, user: str = "u") -> dict[Any, int]:
    return sums(session(frame, types, user), query, frame)["users"]


WHOLE = Query().agg(n=count_users())


def test_ids_that_a_reader_made_integers_and_texts_of_are_one_person() -> None:
    numbers = pd.DataFrame({"u": range(100), "x": 1})
    texts = pd.DataFrame({"u": [f"{i:03}" for i in range(100)], "x": 1})
    doubles = pd.DataFrame({"u": np.arange(100) / 1.0, "x": 1})
    arrow = pa.table({"u": range(100), "x": [1] * 100})
    for frame in (pd.concat([numbers, texts]), [numbers, texts, doubles], [arrow, texts]):
        assert users(frame, {"x": number(0, 2)}, WHOLE) == {(): 100}


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_codes_that_a_reader_made_integers_of_are_the_codes(library: str) -> None:
    frame: Any = pd.DataFrame({"u": range(300), "zip": [60601, 60602, 2139] * 100})
    frame = {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}.get(library, pd.DataFrame)(frame)
    codes = ["60601", "60602", "02139"]
    by_code = Query().group_by("zip", keys=codes, max_keys=1).agg(n=count_users())
    assert list(users(frame, {"zip": key(str)}, by_code).values()) == [100] * 3
    listed = Query().group_by("zip", max_keys=1).agg(n=count_users())
    assert users(frame, {"zip": category(codes)}, listed) == {(code,): 100 for code in codes}
    some = Query().filter(col("zip").is_in(["02139"])).agg(n=count_users())
    assert users(frame, {"zip": key(str)}, some) == {(): 100}


@pytest.mark.parametrize("kind", [object, "str", "string", "category"])
def test_dates_in_texts_are_dates(kind: Any) -> None:
    days = [f"2024-01-{i % 28 + 1:02d}" for i in range(280)]
    frame = pd.DataFrame({"u": range(280), "day": pd.Series(days, dtype=kind)})
    query = Query().group_by("day", keys=[dt.date(2024, 1, 1), dt.date(2024, 1, 2)], max_keys=1).agg(n=count_users())
    assert list(users(frame, {"day": key(dt.date)}, query).values()) == [10, 10]


def test_bins_and_categories_of_integers_are_their_texts() -> None:
    bins = pd.cut(range(300), [-1, 99, 199, 300])
    query = Query().group_by("g", max_keys=1).agg(n=count_users())
    whole = pd.Categorical([i % 3 for i in range(300)])
    for values, names in ((bins, [str(one) for one in bins.categories]), (whole, ["0", "1", "2"])):
        frame = pd.DataFrame({"u": range(300), "g": values})
        assert users(frame, {"g": category(names)}, query) == {(name,): 100 for name in names}


def test_two_columns_of_ids_are_a_person_of_both() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, None], "b": ["x", "x", "x", "x"], "y": 1.0})
    held = session(frame, {"y": number(0, 1)}, ["a", "b"])  # type: ignore[arg-type]
    assert sums(held, WHOLE, frame)["users"] == {(): 2}


def test_what_is_behind_a_mask_is_nobody() -> None:
    frame = {"u": np.ma.array([1, 2, 3], mask=[False, True, False]), "y": np.ones(3)}
    assert users(frame, {"y": number(0, 1)}, WHOLE) == {(): 2}


def table_command(rows: bytes, folder: Path, capsys: pytest.CaptureFixture[str], *asked: str) -> tuple[int, Any, str]:
    """The command `table` on a file, at an epsilon that hides little."""
    file, types = folder / "rows.csv", folder / "schema.json"
    file.write_bytes(rows)
    types.write_text(json.dumps({"pay": {"type": "number", "low": 0, "high": 10}}))
    options = ["table", str(file), "--user", "id", "--schema", str(types), "--epsilon", "80", "--json"]
    code = main([*options, *asked, "n=count_users"])
    printed = capsys.readouterr()
    return code, json.loads(printed.out)["columns"]["n"] if code == 0 else None, printed.err


@pytest.mark.parametrize("cell", [b'"a', b'a"b', b'"a"b', b"a\r", b"\xff", b'"'])
@pytest.mark.parametrize("place", [0, 50, 100])
def test_a_careless_line_costs_its_own_row_alone(
    cell: bytes, place: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [b"%d,5,north\n" % i for i in range(100)]
    lines.insert(place, b"hostile,5," + cell + b"\n")
    code, counted, said = table_command(b"id,pay,town\n" + b"".join(lines), tmp_path, capsys)
    assert (code, said) == (0, "")
    assert counted[0] in (100, 101)


def test_two_columns_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = b"id,id,pay\n" + b"".join(b"%d,%d,5\n" % (i, i % 100) for i in range(300))
    code, _, said = table_command(rows, tmp_path, capsys)
    assert code != 0
    assert "id" in said


def test_the_reference_finds_a_planted_fault(tmp_path: Path) -> None:
    """A column that says it has other cells is found."""
    findings = Findings()
    column = next(one for one in columns([5, "ann"], tmp_path) if one.type == "int64")
    wrong = type(column)(column.container, column.type, [column.cells[1], *column.cells[1:]], column.frame)
    reading_cases.judge(wrong, findings, ["number", "text", "id"])
    assert len(findings.found) == 3
    assert {kind for _, _, kind in findings.found} == {"number", "text", "id"}
