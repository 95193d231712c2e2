"""How values are read, by small inputs whose answers are known; what the pages say of it; and what an attack found."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tables.test_exact_audits import budget_of, halved, with_noise
from userdp import LogRatio
from userdp.audit import audit_user_level
from userdp.tables import (
    Query,
    Schema,
    Session,
    boolean,
    category,
    col,
    count_unreadable,
    count_users,
    integer,
    key,
    number,
    read_csv,
    sum,
    timestamp,
    when,
)
from userdp.tables.audits import TableAlgorithm
from userdp.tables.compiled import compiled
from userdp.tables.noise import allot
from userdp.users.values import FAMILIES, KINDS, READS

ROOT = Path(__file__).parents[2]
COUNT = Query().agg(n=count_users())
LARGE = {"epsilon": 1000, "delta": "1e-6", "composition": "basic"}
"""Noise is 0 but for a probability below exp(-400)."""


def answer(frame: Any, schema: Schema, query: Query, user: Any = "u", **given: Any) -> dict[Any, float]:
    """The numbers of a release whose noise is 0, by key."""
    release = Session(frame, user=user, schema=schema, **LARGE, **given).release(query, epsilon=400)
    numbers = release.column(next(iter(query.aggregates)))
    return dict(zip([one[0] if len(one) == 1 else one for one in release.keys], numbers, strict=True))


def users(frame: Any, user: Any = "u", **given: Any) -> int:
    return int(answer(frame, Schema(x=number(0, 9)), COUNT, user, **given)[()])


# --- the pages


def table_of(page: str, first: str) -> list[list[str]]:
    """The rows of the table on a page whose head begins with a word."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[start:])
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
    return [cells[0], *cells[2:]]


def test_the_page_has_the_types_that_are_read() -> None:
    head, *rows = table_of("docs/reading.md", "declared type")
    assert set(head[1:]) == KINDS
    assert {row[0] for row in rows} == set(FAMILIES)
    for name, *cells in rows:
        assert {kind for kind, cell in zip(head[1:], cells, strict=True) if cell == "yes"} == FAMILIES[name], name


@pytest.mark.parametrize("page", ["docs/reading.md", "docs/tables.md", "SECURITY.md"])
def test_pages_have_the_words_of_plans_and_cards(page: str) -> None:
    _, *rows = table_of(page, "kind")
    assert {row[0]: row[2] for row in rows} == READS


def test_the_contract_has_the_exceptions_with_their_cures() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (X\d) \| (.+) \| (.+) \|$", text, flags=re.MULTILINE)
    assert [name for name, _, _ in rows] == [f"X{number}" for number in range(1, 8)]
    assert "docs/reading.md" in text
    assert "X1 to X7" in (ROOT / "docs/tables.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("dtype", "kind", "cure"),
    [
        (pl.Duration("us"), number(0, 1), "total_seconds"),
        (pl.List(pl.Int64), number(0, 1), "explode"),
        (pl.Struct({"a": pl.Int64}), key(str), "fields"),
        (pl.Date, number(0, 1), "year"),
        (pl.Time, key(dt.date), "docs/reading.md"),
        (pl.Int64, timestamp(dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)), "docs/reading.md"),
    ],
)
def test_what_a_declared_type_cannot_hold_is_refused_with_the_cure(dtype: Any, kind: Any, cure: str) -> None:
    frame = pl.DataFrame({"u": pl.Series([], dtype=pl.Int64), "x": pl.Series([], dtype=dtype)})
    with pytest.raises(TypeError, match=cure) as caught:
        Session(frame, user="u", schema=Schema(x=kind), epsilon=1)
    assert "the column 'x' is of type" in str(caught.value)
    # The same values in pandas have no type that says for good what they are.
    Session(pd.DataFrame({"u": [], "x": []}), user="u", schema=Schema(x=kind), epsilon=1)


# --- people


def test_an_id_of_two_types_is_one_person() -> None:
    ids: list[Any] = [5, 5.0, "5", "05", b"5", " 5 ", Decimal("5.00"), np.int8(5), True, 1, "TRUE", None, "", "nan"]
    assert users({"u": ids, "x": [1.0] * len(ids)}) == 2
    assert users(pd.DataFrame({"u": pd.Series(ids, dtype=object), "x": 1.0})) == 2
    one, two = pd.DataFrame({"u": range(100), "x": 1}), pd.DataFrame({"u": [f"{i:03}" for i in range(100)], "x": 1})
    assert users([one, two]) == 100
    assert users([one, pl.from_pandas(two), pa.Table.from_pandas(one)]) == 100
    assert users([one, two], written_ids=True) == 200


def test_long_ids_are_told_apart_where_no_value_can_have_made_doubles_of_them() -> None:
    ids = [2**60, 2**60 + 1, 2**60 + 2**20]
    frame = pd.DataFrame({"u": ids, "x": 1.0})
    assert users(frame) == 2
    assert users(frame, exact_ids=True) == users(pl.from_pandas(frame)) == users([pa.Table.from_pandas(frame)]) == 3
    assert users([frame, pl.from_pandas(frame)]) == 2


def test_a_person_of_two_columns() -> None:
    frame = pd.DataFrame({"a": [1, 1.0, 1, 2, None], "b": ["x", "x ", "y", "x", "x"], "x": 1.0})
    assert users(frame, user=["a", "b"]) == 3
    by = Query().group_by("b", max_keys=1).agg(n=count_users())
    assert answer(frame, Schema(b=category(["x", "y"])), by, user=["a", "b"]) == {"x": 2, "y": 1}
    assert users(pd.DataFrame({"u": list(zip(frame.a, frame.b, strict=True)), "x": 1.0})) == 3


def test_rows_without_an_id_are_no_person_whatever_stands_behind_a_mask() -> None:
    for ids in (
        pd.Series([1, None, None], dtype="Int64"),
        pl.Series([1, None, None]),
        pa.array([1, None, None]),
        np.ma.MaskedArray([1, 2, 3], mask=[False, True, True]),
    ):
        assert users({"u": ids, "x": [1.0, 1.0, 1.0]}) == 1


def test_decimals_of_any_scale_are_numbers_where_texts_are_themselves() -> None:
    whole, hundredths = (pl.Series([5], dtype=pl.Decimal(10, scale)) for scale in (0, 2))
    parts = [pl.DataFrame({"u": ids, "x": [1.0]}) for ids in (whole, hundredths, pl.Series(["5"]))]
    for written in (False, True):
        assert users(parts, written_ids=written) == 1
        assert users([part.to_arrow() for part in parts], written_ids=written) == 1


# --- values


def test_codes_that_are_held_as_numbers() -> None:
    frame = pd.DataFrame({"u": range(300), "zip": [60601, 2139, 60603] * 100})
    zips = ["60601", "02139", "60603"]
    wanted = dict.fromkeys(zips, 100)
    by_zip = Query().group_by("zip", max_keys=1).agg(n=count_users())
    listed = Query().group_by("zip", keys=zips, max_keys=1).agg(n=count_users())
    for frame_ in (frame, pl.from_pandas(frame), frame.astype({"zip": float}), frame.astype({"zip": "category"})):
        assert answer(frame_, Schema(zip=category(zips)), by_zip) == wanted
        assert answer(frame_, Schema(zip=key(str)), listed) == wanted
        assert answer(frame_, Schema(zip=key(str, width=5)), by_zip) == wanted
        some = Query().filter(col("zip").is_in(["02139"]) | (col("zip") == "60603")).agg(n=count_users())
        assert answer(frame_, Schema(zip=key(str)), some) == {(): 200}


def test_promised_texts_are_themselves() -> None:
    frame = pl.DataFrame({"u": range(4), "k": ["7", "07", "1E2", "100"]})
    query = Query().group_by("k", keys=["7", "07", "1E2", "100"], max_keys=1).agg(n=count_users())
    assert answer(frame, Schema(k=key(str, written=True)), query) == {"7": 1, "07": 1, "1E2": 1, "100": 1}
    with pytest.raises(ValueError, match="'7' and '07' are one value"):
        answer(frame, Schema(k=key(str)), query)
    with pytest.raises(ValueError, match="one value"):
        category(["3.1", "3.10"])
    assert category(["3.1", "3.10"], written=True).values == ("3.1", "3.10")


def test_what_is_cut_out_of_a_text_is_itself() -> None:
    frame = pl.DataFrame({"u": range(2), "k": ["a07", "a7"]})
    query = Query().filter(col("k").slice(1) == "07").agg(n=count_users())
    assert answer(frame, Schema(k=key(str)), query) == {(): 1}


def test_bins_and_categories_are_what_they_stand_for() -> None:
    bins = pd.cut(range(300), [-1, 99, 199, 300])
    by_group = Query().group_by("g", max_keys=1).agg(n=count_users())
    for given, values in (
        (bins, [str(one) for one in bins.categories]),
        (pd.Categorical([0, 1, 2] * 100), ["0", "1", "2"]),
    ):
        frame = pd.DataFrame({"u": range(300), "g": given})
        assert answer(frame, Schema(g=category(values)), by_group) == dict.fromkeys(values, 100)
    frame = pd.DataFrame({"u": range(300), "g": pd.Categorical([0, 1, 2] * 100)})
    assert answer(frame, Schema(g=key(int)), by_group) == {0: 100, 1: 100, 2: 100}


def test_times_in_texts_with_offsets_and_formats() -> None:
    day = dt.date(2024, 1, 31)
    texts = ["2024-01-31", "2024-01-31T23:30:00Z", "2024-02-01 00:30+01:00", "01/31/2024", "1/31/2024", "31.01.2024"]
    listed = Query().group_by("d", keys=[day], max_keys=1).agg(n=count_users())
    frame = pd.DataFrame({"u": range(6), "d": texts})
    assert answer(frame, Schema(d=key(dt.date)), listed) == {day: 3}
    assert answer(frame, Schema(d=key(dt.date, format="%m/%d/%Y")), listed) == {day: 5}
    digits = pd.DataFrame({"u": range(3), "d": [1312024, 1312024.0, "01312024"]})
    assert answer(digits, Schema(d=key(dt.date, format="%m%d%Y")), listed) == {day: 3}


@pytest.mark.parametrize("text", ["%Y.%m", "%Y-%d-%m", "%q", "%d/%m", "%Y%Y", "%Y %M", " %d.%m.%Y", "%Y e\u0301"])
def test_formats_that_could_be_read_in_two_ways_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="format"):
        key(dt.date, format=text)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_date_beyond_all_calendars_ends_no_release(library: str, capfd: pytest.CaptureFixture[str]) -> None:
    """polars would panic at it, and print a trace; Arrow would raise."""
    since = [19753, 2**31 - 1, -(2**31)]
    frame: Any = pa.table({"u": [1, 2, 3], "d": pa.array(since, pa.int32()).view(pa.date32())})
    if library == "polars":
        frame = pl.DataFrame({"u": [1, 2, 3], "d": pl.Series(since, dtype=pl.Int32).cast(pl.Date)})
    query = Query().group_by("d", keys=[dt.date(2024, 1, 31)], max_keys=1).agg(n=count_users())
    assert answer(frame, Schema(d=key(dt.date)), query) == {dt.date(2024, 1, 31): 1}
    assert capfd.readouterr() == ("", "")


def test_files_of_several_types(tmp_path: Path) -> None:
    parts = [pa.array([1, 2]), pa.array([2**40, 1]), pa.array([1.5, float("nan")]), pa.array(["x", "2"]), pa.nulls(2)]
    for number_, values in enumerate(parts):
        pq.write_table(pa.table({"u": [str(number_), "9"], "x": values}), tmp_path / f"{number_}.parquet")
    total = Query().agg(t=sum("x", max_total=20))
    dataset = ds.dataset(tmp_path)
    # 1, 9, 1.5, and of user 9: 2 + 1 + 2
    # Off by 1 with a probability of exp(-20).
    assert answer(dataset, Schema(x=number(0, 9)), total)[()] == pytest.approx(1 + 9 + 1.5 + 5, abs=1)


def test_datasets_that_guess_and_frames_of_spark_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("u,x\n1,2\n")
    with pytest.raises(TypeError, match=r"userdp\.tables\.read_csv"):
        users(ds.dataset(tmp_path / "a.csv", format="csv"))
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})()
    with pytest.raises(TypeError, match=r"frame of Spark.*Parquet.*toArrow"):
        users(frame)


# --- what is missing, and what is not read


def test_the_owner_may_ask_what_is_not_read() -> None:
    frame = {"u": [1, 1, 2, 3, 4, None], "x": ["1.5", "a", "2", None, "oops", "bad"]}
    schema = Schema(x=number(0, 9, default=0))
    assert answer(frame, schema, Query().filter(col("x") > 99).agg(bad=count_unreadable("x"))) == {(): 2}
    assert answer(frame, schema, Query().filter(col("x").is_unreadable()).agg(n=count_users())) == {(): 2}
    assert answer(frame, schema, Query().filter(col("x").is_missing()).agg(n=count_users())) == {(): 1}
    listed = {"u": [1, 2, 3], "x": ["a", "b", ""]}
    assert answer(listed, Schema(x=category(["a"])), Query().agg(bad=count_unreadable("x"))) == {(): 1}
    with pytest.raises(ValueError, match="without group_by"):
        answer(listed, Schema(x=key(str)), Query().group_by("x", max_keys=1).agg(bad=count_unreadable("x")))
    with pytest.raises(TypeError, match="is_missing is of a column"):
        (col("x") + 1).is_missing()


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_a_count_of_unreadable_cells_is_private_and_with_half_the_noise_not(neighbors: Any) -> None:
    schema = Schema(b=boolean())
    meant = compiled(Query().agg(bad=count_unreadable("b")), schema)
    epsilon = LogRatio(2)
    noise = allot(meant, neighbors, budget_of(epsilon, 0))

    def holds(given: Any) -> bool | None:
        algorithm = TableAlgorithm(meant, given, schema, n_users=2)
        universe = [None, (True,), ("neither",)]
        size: dict[str, Any] = {"n_users": 2, "n_examples": 2, "neighbors": neighbors}
        return audit_user_level(algorithm, universe=universe, epsilon=epsilon, delta=0, **size).holds

    assert holds(noise) is True
    assert holds(with_noise(noise, halved)) is False


def test_plans_cards_and_releases_say_what_is_read() -> None:
    people = Session({"u": [1, 2], "x": [1.0, 2.0]}, user="u", schema=Schema(x=number(0, 9)), epsilon=9)
    query = Query().agg(t=sum("x", max_total=9))
    for shown in (str(people.plan(query)), str(people.release(query, epsilon=1)), people.release(query).card()):
        assert READS["number"] in shown
        assert READS["id"] in shown
        assert "exact_ids=True" in shown


# --- files


def csv(path: Path, text: str, **options: Any) -> Any:
    path.write_text(text, encoding="utf-8")
    return read_csv(path, **options)


def test_marks_of_a_file_are_those_of_public_values_too(tmp_path: Path) -> None:
    file = csv(tmp_path / "a.csv", "u;k\n1;1,5\n2;1,50\n3;7\n", separator=";", decimal=",")
    by = Query().group_by("k", max_keys=1).agg(n=count_users())
    assert answer(file, Schema(k=category(["1,5", "7"])), by) == {"1,5": 2, "7": 1}
    with pytest.raises(ValueError, match=r"schema: 'k'.*one value"):
        answer(file, Schema(k=category(["1,5", "1,50"])), by)
    listed = Query().filter(col("k") == "1,5").agg(n=count_users())
    assert answer(file, Schema(k=key(str)), listed) == {(): 2}
    assert (
        "decimal=','" in Session(file, user="u", schema=Schema(k=key(str)), **LARGE).release(listed, epsilon=400).card()
    )


def test_marks_of_a_file_are_those_of_ids_of_two_columns(tmp_path: Path) -> None:
    text = 'u;b;x\n1,5;z;1\n1,50;z;1\n"1,5";z;1\n'
    file = csv(tmp_path / "a.csv", text, separator=";", decimal=",")
    assert users(file) == users(file, user=["u", "b"]) == 1


def test_a_quote_of_one_person_costs_nobody_else(tmp_path: Path) -> None:
    others = [f"{number_},1" for number_ in range(50)]
    for hostile in (['"99,1'], ['99,"1'], ['99,"1"x'], ['99,"1', '99,2"'], ["99,1,2,3"], ["99"], ['"'], ["\\"]):
        for place in (0, 25, 50):
            lines = [*others[:place], *hostile, *others[place:]]
            file = csv(tmp_path / "a.csv", "\n".join(["u,x", *lines, ""]), quote="line")
            assert users(file) in (50, 51), hostile


# --- what an attack found


def test_columns_of_two_spellings_are_compared_by_the_coarser_one() -> None:
    frame = {"u": [1, 2, 3], "z": ["007", "8", "9"], "y": ["7", "008", "x"]}
    equal = Query().filter(col("z") == col("y")).agg(n=count_users())
    for z, y in itertools.product((key(str), key(str, width=3), key(str, written=True)), repeat=2):
        both = [one for one in (z, y) if one.spelling == "written"]
        assert answer(frame, Schema(z=z, y=y), equal) == {(): 0 if len(both) == 2 else 2}
    either = when(col("u2") > 1).then(col("z")).otherwise(col("y"))
    query = Query().with_columns(k=either).group_by("k", keys=["007"], max_keys=1).agg(n=count_users())
    frame = {"u": [1, 2, 3], "u2": [1, 2, 3], "z": ["7", "7", "7"], "y": ["7", "7", "7"]}
    schema = Schema(z=key(str, width=3), y=key(str), u2=integer(0, 9))
    assert answer(frame, schema, query) == {"007": 3}


def nested(width: int, depth: int) -> Any:
    """A tuple of few objects and any number of parts."""
    one: Any = 1
    for _ in range(depth):
        one = (one,) * width
    return one


def test_no_zone_of_a_cell_is_asked_unless_its_class_is_known(capfd: pytest.CaptureFixture[str]) -> None:
    class Zone(dt.tzinfo):
        def utcoffset(self, time: Any) -> Any:
            print("seen")
            raise SystemExit

    times: list[Any] = [dt.datetime(2024, 1, 31, 9), dt.datetime(2024, 1, 31, 9, tzinfo=Zone()), "x"]
    times += [dt.datetime(2024, 1, 31, 10, tzinfo=dt.timezone(dt.timedelta(hours=1)))]
    by = Query().group_by("t", keys=[dt.datetime(2024, 1, 31, 9)], max_keys=1).agg(n=count_users())
    frame = {"u": times, "t": times}
    assert answer(frame, Schema(t=key(dt.datetime)), by) == {dt.datetime(2024, 1, 31, 9): 1}
    assert answer(frame, Schema(t=key(dt.datetime)), COUNT) == {(): 2}
    assert capfd.readouterr() == ("", "")


def test_tuples_that_share_their_parts_are_nobodys_at_once() -> None:
    assert users({"u": [nested(64, 8), nested(2, 3), nested(1, 3), 1, nested(1, 9)], "x": [1.0] * 5}) == 2


def test_many_batches_share_a_dictionary() -> None:
    words = pa.array([f"w{number_}" for number_ in range(20_000)])
    codes = pa.array(np.arange(200, dtype=np.int32))
    parts = [pa.table({"u": pa.DictionaryArray.from_arrays(codes, words), "x": [1.0] * 200}) for _ in range(300)]
    assert users(pa.concat_tables(parts)) == 200


def test_listed_keys_that_are_one_are_named() -> None:
    frame = pl.DataFrame({"u": [1], "d": [dt.date(2024, 1, 31)]})
    keys: Sequence[Any] = [dt.date(2024, 1, 31), dt.datetime(2024, 1, 31)]
    with pytest.raises(ValueError, match=r"datetime\.date\(2024, 1, 31\).*are one key of 'd'"):
        answer(frame, Schema(d=key(dt.date)), Query().group_by("d", keys=keys, max_keys=1).agg(n=count_users()))


def test_integers_are_clamped_and_keys_of_them_are_not() -> None:
    frame = {"u": [1, 2, 3, 4], "x": [2**53 - 1, 2**53, "1e400", -(10**30)]}
    total = Query().agg(t=sum("x", max_total=(-10, 10)))
    assert answer(frame, Schema(x=integer(-3, 4)), total) == {(): 4 * 3 - 3}
    by = Query().group_by("x", keys=[2**53 - 1], max_keys=1).agg(n=count_users())
    assert answer(frame, Schema(x=key(int)), by) == {2**53 - 1: 1}
