"""However a table comes, users add the same integers, and one user's integers do not depend on others' rows."""

from __future__ import annotations

import datetime
import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp.tables import (
    KeySet,
    Query,
    Schema,
    Session,
    boolean,
    category,
    cdf,
    col,
    count_rows,
    count_users,
    histogram,
    integer,
    key,
    mean,
    number,
    quantile,
    sum,
)
from userdp.tables.compiled import compiled
from userdp.tables.reading import table_of
from userdp.tables.rows import Sums, UserColumns, add_up

CASES = Path(__file__).parents[1] / "data" / "table_cases.json"
SCHEMA = Schema(
    town=key(str),
    year=key(int),
    job=category(["clerk", "cook", "none"], default="none"),
    wage=number(0, 50),
    hours=integer(0, 80),
    union=boolean(default=False),
    day=key(datetime.date),
    stamp=key(datetime.datetime),
)
DAYS = pd.to_datetime(["2024-02-28", "2024-02-29", "2024-03-01"])


def rows(seed: int = 0, n: int = 3000, users: int = 400) -> pd.DataFrame:
    """A table with holes, odd values, and users who differ."""
    rng = np.random.default_rng(seed)
    towns = np.array(["Ulm", "Bonn", "Köln", "ulm", "Aa\0b", None], dtype=object)
    frame = pd.DataFrame(
        {
            "who": pd.array(rng.zipf(1.5, n) % users, dtype="Int64"),
            "town": towns[rng.integers(0, 6, n)],
            "year": pd.array(rng.integers(1980, 1990, n), dtype="Int64"),
            "job": np.array(["clerk", "cook", "pilot"], dtype=object)[rng.integers(0, 3, n)],
            "wage": rng.choice([0.1, 7.25, 49.99999, -3.0, 1e308, np.inf, -np.inf, np.nan, 5e-324, -0.0], n),
            "hours": pd.array(rng.choice([0, 40, 81, -5, 2**53 + 1], n), dtype="Int64"),
            "union": pd.array(rng.choice([True, False], n), dtype="boolean"),
        }
    )
    for name in ("who", "year", "hours", "union"):
        frame.loc[rng.random(n) < 0.05, name] = pd.NA
    days = np.array(["2024-02-28", "2024-02-29", "2024-03-01", "NaT"], dtype="M8[us]")[rng.integers(0, 4, n)]
    return frame.assign(day=days, stamp=days + rng.integers(0, 3, n) * np.timedelta64(1, "us"))


QUERIES = {
    "unknown": Query()
    .group_by("town", "year", max_keys=2, rule="first")
    .agg(n=count_users(), rows=count_rows(3), pay=mean("wage"), all=sum("hours", max_total=100)),
    "derived": Query()
    .filter((col("hours") > 0) | col("union"))
    .with_columns(pay=col("wage") * col("hours"), band=col("hours").cut([0, 20, 40, 80]))
    .group_by("band", max_keys=1, rule="first")
    .agg(n=count_users(), pay=mean("pay", weighting="rows", max_rows=4), low=mean("union")),
    "quantiles by group": Query()
    .group_by("town", "year", max_keys=2, rule="first")
    .agg(n=count_users(), middle=quantile("wage", ["1/4", "1/2"]), bins=histogram("hours", [10, 20, 40])),
    "quantiles by known groups": Query()
    .group_by("job", max_keys=1, rule="first")
    .agg(middle=quantile("hours", "1/2"), bins=histogram("wage", [0, 25, 50]), curve=cdf("wage", [1, 10, 20])),
    "known days": Query()
    .group_by("day", keys=DAYS[1:], max_keys=1, rule="first")
    .agg(n=count_users(), rows=count_rows(2)),
    "days and times": Query().group_by("day", "stamp", max_keys=2, rule="first").agg(n=count_users()),
    "months": Query()
    .with_columns(month=col("day").year() * 100 + col("day").month())
    .group_by("month", keys=[202402, 202403], max_keys=1, rule="first")
    .agg(n=count_users(), bins=histogram("hours", [0, 40, 80])),
    "whole": Query().agg(
        n=count_users(),
        middle=quantile("wage", ["1/4", "1/2"]),
        bins=histogram("hours", [0, 20, 40, 80]),
        curve=cdf("hours", [20, 40]),
    ),
}


def added(query: Query, frame: Any, user: str = "who") -> Sums:
    """What all users add up to."""
    return add_up(compiled(query, SCHEMA), table_of(frame), UserColumns((user,)), SCHEMA, memory=2**26, directory=None)


def plain(sums: Sums) -> Any:
    """The same, comparable."""
    columns = {f"{one.kind}{one.value}{one.of or ''}": column.tolist() for one, column in sums.columns.items()}
    splits = {
        name: [
            {place: int(split.of(key)[place]) for place in np.flatnonzero(split.of(key))}
            for key in range(len(sums.keys))
        ]
        for name, split in sums.splits.items()
    }
    return sums.keys, columns, splits


def forms(frame: pd.DataFrame, folder: Path) -> Iterator[tuple[str, Any]]:
    """The same table in all the ways in which tables are kept."""
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    own = arrow.Table.from_pandas(frame, preserve_index=False)
    yield "pandas, shuffled", frame.sample(frac=1, random_state=1)
    yield "pandas of objects", frame.astype(object)
    yield "pandas with floats", frame.assign(hours=frame["hours"].astype("Float64").astype(float))
    yield "polars", polars.from_arrow(own)
    yield "polars, lazy", polars.from_arrow(own).lazy()
    yield "pyarrow", own
    yield "pyarrow, dictionaries", own.set_column(1, "town", own["town"].dictionary_encode())
    for size in (450, 3):
        yield f"batches of {size}", own.to_batches(max_chunksize=size)[::-1]
    path = folder / "rows.parquet"
    polars.from_arrow(own).write_parquet(path, row_group_size=256)
    yield "dataset", dataset.dataset(path)
    yield "scanned", polars.scan_parquet(path)
    day = own.schema.get_field_index("day")
    yield "days of Arrow", own.set_column(day, "day", own["day"].cast(arrow.date32()))
    yield "days of polars", polars.from_arrow(own).with_columns(polars.col("day").cast(polars.Date))
    yield "days of Python", frame.assign(day=[None if pd.isna(day) else day.date() for day in frame["day"]])
    yield "columns in another order", own.select(own.column_names[::-1])


@pytest.mark.parametrize("name", QUERIES)
def test_all_forms_give_the_same_integers(name: str, tmp_path: Path) -> None:
    frame = rows()
    expected = plain(added(QUERIES[name], frame))
    assert any(np.any(column) for column in expected[1].values()) or any(map(any, expected[2].values()))
    for form, table in forms(frame, tmp_path):
        assert plain(added(QUERIES[name], table)) == expected, form


def test_datasets_of_several_files(tmp_path: Path) -> None:
    """Files with a part of the columns in their path, with other types and orders, and other formats."""
    arrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    schema = Schema(town=key(str), hours=integer(0, 80))
    query = Query().group_by("town", max_keys=1, rule="first").agg(n=count_users(), all=sum("hours", max_total=80))
    rng = np.random.default_rng(3)
    towns = np.array(["Bonn", "Ulm", "Zug"])[rng.integers(0, 3, 2000)]
    frame = pd.DataFrame({"who": rng.integers(0, 300, 2000), "town": towns, "hours": rng.integers(0, 90, 2000)})
    whole = arrow.Table.from_pandas(frame, preserve_index=False)

    def sums(table: Any) -> Any:
        return plain(
            add_up(
                compiled(query, schema), table_of(table), UserColumns(("who",)), schema, memory=2**26, directory=None
            )
        )

    for kind in ("parquet", "feather"):
        parts = dataset.partitioning(arrow.schema([("town", arrow.string())]), flavor="hive")
        dataset.write_dataset(whole, tmp_path / kind, format=kind, partitioning=parts)
        read = dataset.dataset(tmp_path / kind, format=kind, partitioning="hive")
        assert sums(read) == sums(frame)
        with pytest.raises(ValueError, match="a dataset with a filter"):
            sums(read.filter(dataset.field("hours") > 40))
    small = arrow.table({"hours": arrow.array([7], arrow.int8()), "who": arrow.array([1000], arrow.int32())})
    dataset.write_dataset(whole, tmp_path / "mixed", format="parquet", max_rows_per_group=300)
    dataset.write_dataset(small, tmp_path / "mixed", format="parquet", basename_template="other-{i}.parquet",
                          existing_data_behavior="overwrite_or_ignore")  # fmt: skip
    # The other file has no town, so its row is in no group.
    assert sums(dataset.dataset(tmp_path / "mixed", schema=whole.schema)) == sums(frame)
    assert sums(dataset.dataset(whole)) == sums(frame)


def reference(frame: pd.DataFrame, most: int) -> dict[Any, list[int]]:
    """The query "unknown" in plain Python: users, rows and hours by town and year."""
    found: dict[Any, dict[Any, list[int]]] = {}
    for row in frame.itertuples(index=False):
        if any(map(pd.isna, (row.who, row.town, row.year))):
            continue
        cell = found.setdefault(row.who, {}).setdefault((row.town, int(row.year)), [0, 0])
        cell[0] += 1
        cell[1] += 0 if pd.isna(row.hours) else min(max(int(row.hours), 0), 80)
    total: dict[Any, list[int]] = {}
    for cells in found.values():
        for place in sorted(cells)[:most]:
            count, hours = cells[place]
            sums = total.setdefault(place, [0, 0, 0])
            for j, value in enumerate((1, min(count, 3), min(hours, 100))):
                sums[j] += value
    return total


def test_counts_and_sums_are_those_of_plain_python() -> None:
    for seed in range(3):
        frame = rows(seed)
        sums = added(QUERIES["unknown"], frame)
        by_kind = {
            one.kind: column.tolist() for one, column in sums.columns.items() if one.kind != "users" or not one.of
        }
        expected = reference(frame, 2)
        assert sums.keys == sorted(expected)
        for kind, place in (("users", 0), ("rows", 1), ("sum", 2)):
            assert by_kind[kind] == [expected[where][place] for where in sums.keys]


def test_weights_by_group_are_those_of_plain_python() -> None:
    """Each user has a weight of 2**20 in each of the first two keys, split over the bins of the rows there."""
    for seed in range(2):
        frame = rows(seed)
        found: dict[Any, dict[Any, list[Any]]] = {}
        for row in frame.itertuples(index=False):
            if any(map(pd.isna, (row.who, row.town, row.year))):
                continue
            hours = 0 if pd.isna(row.hours) else min(max(int(row.hours), 0), 80)
            # 10 to below 20, and 20 to 40.
            cell = found.setdefault(row.who, {}).setdefault((row.town, int(row.year)), [])
            cell.append(0 if 10 <= hours < 20 else 1 if 20 <= hours <= 40 else None)
        expected: dict[Any, list[int]] = {}
        for cells in found.values():
            for place in sorted(cells)[:2]:
                total = expected.setdefault(place, [0, 0])
                inside = sorted(one for one in cells[place] if one is not None)
                for i, one in enumerate(inside):
                    total[one] += 2**20 * (i + 1) // len(inside) - 2**20 * i // len(inside)
        sums = added(QUERIES["quantiles by group"], frame)
        assert sums.keys == sorted(expected)
        assert [sums.splits["bins"].of(key).tolist() for key in range(len(sums.keys))] == [
            expected[key] for key in sums.keys
        ]


def test_users_means_are_those_of_fractions() -> None:
    """Values on the grid: a user's mean is rounded to a step of 2**-16, halves up, around the middle of the range."""
    from fractions import Fraction

    schema = Schema(x=number(0, 1, steps=2**16))
    query = Query().agg(x=mean("x"))
    meant = compiled(query, schema)
    total = meant.answers[0].total
    assert total is not None
    assert total.value is not None
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 7):
        values = rng.integers(0, 2**16 + 1, size)
        frame = pd.DataFrame({"who": ["a"] * size, "x": values / 2**16})
        sums = add_up(meant, table_of(frame), UserColumns(("who",)), schema, memory=2**26, directory=None)
        exact = Fraction(int(values.sum()), size)
        assert sums.columns[total].tolist() == [int(exact + Fraction(1, 2)) - 2**15]


def test_users_means_are_those_of_the_cases() -> None:
    """Cases of an independent derivation: missing values, odd ones, and a grid of 2**20 steps."""
    cases = [case for case in json.loads(CASES.read_text()) if case["kind"] == "grid_mean"]
    assert len(cases) == 3
    for case in cases:
        given = case["given"]
        schema = Schema(x=number(given["lo"], given["hi"], steps=given["steps"]))
        meant = compiled(Query().agg(x=mean("x")), schema)
        total = meant.answers[0].total
        assert total is not None
        values = [math.nan if value == "nan" else value for value in given["rows"]]
        frame = pd.DataFrame({"who": ["a"] * len(values), "x": pd.Series(values, dtype=float)})
        sums = add_up(meant, table_of(frame), UserColumns(("who",)), schema, memory=2**26, directory=None)
        assert (sums.columns[total] + total.shift).tolist() == [case["want"]]


CHANGES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "dropped": lambda others: others.iloc[:0],
    "twice": lambda others: pd.concat([others, others]),
    "permuted": lambda others: others.sample(frac=1, random_state=2),
    "odd": lambda others: others.assign(wage=np.nan, hours=pd.NA, town=None, year=pd.NA),
    "other keys": lambda others: others.assign(town="Zug", year=2000),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_user_adds_the_same_whatever_others_do(name: str) -> None:
    """With and without the user: the difference is what the user adds alone."""
    frame = rows(7)
    for user in (1, 2, 5):
        mine = frame["who"].eq(user).fillna(False).to_numpy(dtype=bool)
        own, others = frame[mine], frame[~mine]
        assert len(own) > 1
        alone = plain(added(QUERIES[name], own))
        for change, make in CHANGES.items():
            both, rest = (plain(added(QUERIES[name], part)) for part in (pd.concat([make(others), own]), make(others)))
            assert subtracted(both, rest) == subtracted(alone, ([], {}, {})), change


def subtracted(first: Any, second: Any) -> Any:
    """The difference of two sums, without zeros."""
    found: dict[Any, int] = {}
    for sign, (keys, columns, splits) in ((1, first), (-1, second)):
        for (kind, column), (place, where) in itertools.product(columns.items(), enumerate(keys)):
            found[kind, where] = found.get((kind, where), 0) + sign * column[place]
        for (name, split), (place, where) in itertools.product(splits.items(), enumerate(keys)):
            for one, weight in split[place].items():
                found[name, where, one] = found.get((name, where, one), 0) + sign * weight
    return {place: value for place, value in found.items() if value}


def test_drawn_keys_are_a_choice_of_the_users_own() -> None:
    """rule="random": each user counts in exactly max_keys of their keys, each key about as often."""
    query = Query().group_by("town", max_keys=2).agg(n=count_users())
    frame = pd.DataFrame({"who": np.repeat(np.arange(2000), 5), "town": ["a", "b", "c", "d", "e"] * 2000})
    counts = plain(added(query, frame))[1]["usersNone"]
    assert np.sum(counts) == 4000
    # Of 2,000 users 40 % each: a standard deviation of 22; beyond 200 with a probability below 1e-18.
    assert all(abs(count - 800) < 200 for count in counts)


def test_public_days_come_in_all_forms() -> None:
    polars = pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    days = [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]
    times = [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 3, 1)]
    forms: list[Any] = [
        days,
        times,
        DAYS[1:],
        list(DAYS[1:]),
        pd.Series(DAYS[1:]),
        np.array(days, dtype="M8[D]"),
        np.array(times, dtype="M8[ns]"),
        polars.Series(days),
        arrow.array(days),
        arrow.array(times),
        [(day,) for day in days],
    ]
    frame = rows()
    for name in ("day", "stamp"):
        sums = [
            added(Query().group_by(name, keys=keys, max_keys=2, rule="first").agg(n=count_users()), frame)
            for keys in forms
        ]
        assert len({str(plain(one)) for one in sums}) == 1
        assert all(np.all(column > 0) for one in sums for column in one.columns.values())
    schema = Schema(day=key(datetime.date), stamp=key(datetime.datetime))
    people = Session(frame, user="who", schema=schema, epsilon=5)
    query = people.query().group_by("stamp", "day", keys=KeySet.product(times, days), max_keys=1)
    found = people.release(query.agg(n=count_users()), epsilon=2)
    assert found.keys == tuple((time, day) for time in times for day in days)
    assert found.to_frame("pandas")["n"].shape == (4,)
    assert "2024-03-01" in found.card() + found.to_json()


WRONG_DAYS: list[tuple[Any, str]] = [
    ([datetime.datetime(2024, 1, 1, 12)], "must be dates"),
    (["2024-01-01"], "must be dates"),
    ([20240101], "must be dates"),
    ([np.datetime64("NaT")], "to the microsecond"),
    ([pd.NaT], "integers below 2"),
    ([None], "integers below 2"),
    ([pd.Timestamp("2024-01-01", tz="UTC")], "without a time zone"),
    ([pd.Timestamp(1)], "to the microsecond"),
    ([np.datetime64(1, "ps")], "to the microsecond"),
    ([np.datetime64(10**10, "D")], "to the microsecond"),
    ([datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1)], "distinct"),
    ([], "1 to 2"),
    (datetime.date(2024, 1, 1), "sequence"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG_DAYS)
def test_days_that_are_refused(keys: Any, message: str) -> None:
    people = Session(rows(), user="who", schema=Schema(day=key(datetime.date)), epsilon=1)
    with pytest.raises((TypeError, ValueError), match=message):
        people.plan(people.query().group_by("day", keys=keys).agg(n=count_users()))


def test_dates_are_keys() -> None:
    schema = Schema(day=key(datetime.date))
    query = Query().group_by("day", max_keys=1).agg(n=count_users())
    frame = pd.DataFrame({"who": [1, 2, 3], "day": pd.to_datetime(["2020-01-01", "2020-01-01", None])})
    sums = add_up(compiled(query, schema), table_of(frame), UserColumns(("who",)), schema, memory=2**26, directory=None)
    assert [column.tolist() for column in sums.columns.values()] == [[2]]
