"""Tables with one hostile user, in the middle of others or before or after them, in containers that values can change.

What is judged: whether the user decides what can be seen of a session (P1), whether others' rows are read as without it
(P2), whether a person in two containers is one (P3), and whether all containers of a table give the same integers (E).

Not made here, as they damage a table before it is read: texts of numbers beyond doubles beside numbers (X1),
conversions that readers are asked for (X2), long decimals in pandas 2 (X3), NumPy arrays of narrow floats and texts
(X4), readers that guess (X5), NumPy arrays of durations and complex numbers (X6), and Dask's conversion to texts (X7).
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import itertools
import random
import uuid
import warnings
import zoneinfo
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import dateutil.tz
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from oracle.reading import identity, number_in, text
from support.reading_adapter import Outcome, column_type, session, sums, watched
from support.reading_cases import to_be_refused
from support.reading_containers import Column, _dask_of, object_array
from support.reading_findings import CONTAINERS, FAILED, OTHERS, PEOPLE, VISIBLE, Findings
from support.reading_objects import SUBCLASSES, PlainText, Texts, UnknownZone, Wholes, objects, zoned
from userdp.tables import Query, col, count_rows, count_users, integer, key, number, sum

ROLES = (
    "number",
    "integer",
    "boolean",
    "category",
    "key_int",
    "text",
    "day",
    "time",
    "timestamp",
    "listed",
    "filter",
    "id",
)
KIND_OF_ROLE = {"listed": "text", "filter": "text"}
PLACES = ("front", "middle", "end")
OWNERS = [0, 0, 1, 1, 2, 3]
HOSTILE = 100
"""The hostile user's rows are numbered from here on; those of others from 0."""
JANUARY = dt.datetime(2024, 1, 31)

OTHERS_COLUMNS: dict[str, list[Any]] = {
    "codes": ["05", "5", "07", "60601", "0010", "02139"],
    "short codes": ["5", "7", "60601", "1", "0", "42"],
    "words": ["ann", "bob", "north", "K\u00f6ln", "x y", "Ann"],
    "whole": [5, 7, 0, 1, 60601, -5],
    "long": [2**60 + 1, 2**60 + 3, 5, 2**53 + 1, 7, 2**62],
    "long texts": ["1152921504606846977", "12345678901234567", "5", "7", "1", "0"],
    "doubles": [0.5, 1.5, 5.0, 0.1, -2.25, 1e10],
    "whole doubles": [5.0, 7.0, 0.0, 1.0, 60601.0, -5.0],
    "bools": [True, False, True, True, False, True],
    "texts of bools": ["true", "FALSE", "True", "false", "TRUE", "False"],
    "words for bools": ["yes", "no", "y", "on", "off", "t"],
    "dates": [dt.date(2024, 1, 31), dt.date(2024, 2, 29), dt.date(1999, 12, 31)] * 2,
    "times": [JANUARY, dt.datetime(2024, 1, 31, 9, 30), dt.datetime(2024, 2, 29, 9, 30, 15, 500_000)] * 2,
    "midnights": [JANUARY, dt.datetime(2024, 2, 29), dt.datetime(1999, 12, 31)] * 2,
    "texts of dates": ["2024-01-31", "2024-02-29", "1999-12-31"] * 2,
    "texts of times": ["2024-01-31 09:30", "2024-01-31T09:30:00Z", "2024-01-31 10:30:00+01:00"] * 2,
    "clocks": [dt.time(9, 30), dt.time(9, 30, 15), dt.time(0)] * 2,
    "decimals": [Decimal("1.50"), Decimal("5"), Decimal("0.10")] * 2,
    "fractions": [Fraction(1, 2), Fraction(5), Fraction(1, 3)] * 2,
    "decimal texts": ["1.5", "3.10", "3.1", "0.10", ".5", "5."],
    "exponents": ["5e0", "1e5", "12E3", "5E-1", "1e1", "2e2"],
    "gaps": [5, None, 7, None, 1, 0],
    "gaps among texts": ["05", None, "ann", "", "nan", "5"],
    "gaps among times": [JANUARY, None, dt.datetime(2024, 2, 29), None, JANUARY, JANUARY],
    "bytes": [b"05", b"ann", b"K\xc3\xb6ln", b"2024-01-31", b"\x05\x01", b"\xff"],
    "tuples": [(5, "a"), ("05", "a"), (1, 2), ("x",), (7, "b"), (None, 1)],
    "UUIDs": [uuid.UUID(int=7), uuid.UUID(int=2**100)] * 3,
    "scalars": [np.int64(5), np.int64(7), np.int64(2**40)] * 2,
    "doubles of NumPy": [np.float64(0.5), np.float64(5), np.float64(0.1)] * 2,
    "times of NumPy": [np.datetime64("2024-01-31", "D"), np.datetime64("2024-02-29", "D")] * 3,
    "times of pandas": [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-01-31 09:30:15.123456789")] * 3,
    "months": [pd.Period("2024-01", "M"), pd.Period("2024-02", "M")] * 3,
    "days": [pd.Period("2024-01-31", "D"), pd.Period("2024-02-29", "D")] * 3,
    "bins": [pd.Interval(0, 10), pd.Interval(10, 20)] * 3,
    "bins of doubles": [pd.Interval(0.0, 9.5), pd.Interval(9.5, 20.0)] * 3,
    "texts of a class": [PlainText("05"), PlainText("ann"), PlainText("2024-01-31")] * 2,
    "members": [Wholes.FIVE, Wholes.ONE] * 3,
    "members that are texts": [Texts.CODE, Texts.NAME] * 3,
    "UTC": [JANUARY.replace(tzinfo=dt.timezone.utc), JANUARY.replace(hour=9, tzinfo=dt.timezone.utc)] * 3,
    "Berlin": [JANUARY.replace(tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))] * 6,
    "UTC of dateutil": [JANUARY.replace(tzinfo=dateutil.tz.tzutc())] * 6,
    "offset of dateutil": [JANUARY.replace(tzinfo=dateutil.tz.tzoffset(None, 3600))] * 6,
    "unknown zone": [JANUARY.replace(tzinfo=UnknownZone())] * 6,
    "several zones": [zoned()[i][0] for i in (0, 13, 27, 40, 61, 80)],
}
"""What others have, by name: six cells each."""

TYPES_OF_PANDAS: dict[str, list[str]] = {
    "codes": ["str", "string", "string[pyarrow]", "category", "large_string[pyarrow]"],
    "short codes": ["str", "string", "category"],
    "words": ["str", "string", "category", "string[pyarrow]"],
    "whole": ["Int64", "Int32", "float64", "Float64", "int64[pyarrow]", "category", "Sparse[int]"],
    "long": ["Int64", "int64[pyarrow]", "category"],
    "doubles": ["Float64", "double[pyarrow]", "category", "Sparse[float]"],
    "bools": ["boolean", "bool[pyarrow]", "category"],
    "dates": ["date32[pyarrow]", "category", "datetime64[s]"],
    "times": ["datetime64[ns]", "datetime64[us]", "timestamp[us][pyarrow]", "category"],
    "midnights": ["datetime64[ns]", "datetime64[s]", "timestamp[ns][pyarrow]"],
    "gaps": ["Int64", "float64", "int64[pyarrow]"],
    "gaps among texts": ["str", "string", "category"],
    "gaps among times": ["datetime64[ns]", "datetime64[us]"],
    "UTC": ["datetime64[ns, UTC]", "timestamp[us, UTC][pyarrow]"],
    "months": ["period[M]", "category"],
    "bins": ["category"],
    "bytes": ["binary[pyarrow]", "category"],
}
TYPES_OF_PANDAS = {k: [t for t in v if t != "str" or pd.__version__ >= "3"] for k, v in TYPES_OF_PANDAS.items()}


def hostile_values(cells: Sequence[Any]) -> list[Any]:
    """What the hostile user may have: any object."""
    made, _ = objects(list(cells))
    return [*made, *(one for one, _ in SUBCLASSES), *(one for one, _ in zoned()[::5]), [1], {"a": 1}, {1, 2}, object()]


@dataclass(frozen=True)
class Trial:
    """Three tables: others alone, with the user, and the user alone."""

    container: str
    way: str
    role: str
    others: Any
    both: Any
    alone: Any
    values: Sequence[Any]
    """What lists of categories and of keys are made of."""
    refused: bool = False
    who: Any = None

    def __str__(self) -> str:
        try:
            user = repr(self.who)[:80]
        except BaseException:
            user = f"objects of {[type(one).__name__ for one in self.who]}"
        return f"{self.container}, {self.way}, as {self.role}, user has {user}"


Part = list[tuple[int, int, Any]]
"""Rows: owner, number, and cell."""


def parts_of(others: Sequence[Any], own: Sequence[Any], place: str) -> list[tuple[bool, Part]]:
    """The rows in their order, in parts that are the hostile user's or not."""
    theirs = [(owner, row, cell) for row, (owner, cell) in enumerate(zip(OWNERS, others, strict=False))]
    user = [(9, HOSTILE + row, cell) for row, cell in enumerate(own)]
    if place == "front":
        return [(True, user), (False, theirs)]
    if place == "end":
        return [(False, theirs), (True, user)]
    return [(False, theirs[:3]), (True, user), (False, theirs[3:])]


def _beside(part: Sequence[tuple[int, int, Any]]) -> dict[str, Any]:
    return {
        "u": np.array([owner for owner, _, _ in part], dtype=np.int64),
        "r": np.array([row for _, row, _ in part], dtype=np.int64),
    }


def _cells(parts: Sequence[tuple[bool, Part]]) -> list[Any]:
    return [cell for _, part in parts for _, _, cell in part]


def _rows(parts: Sequence[tuple[bool, Part]]) -> Part:
    return [row for _, part in parts for row in part]


Way = Callable[[Sequence["tuple[bool, Part]"], "str | None"], Any]


def _series(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return pd.DataFrame({**_beside(_rows(parts)), "x": pd.Series(_cells(parts))})


def _converted(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return _series(parts, None).convert_dtypes()


def _records(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return pd.DataFrame([{"u": owner, "r": row, "x": cell} for owner, row, cell in _rows(parts)])


def _part_frames(parts: Sequence[tuple[bool, Part]], dtype: str | None) -> list[Any]:
    """A frame for each part; those of others are of a type, and the user's is of the type that pandas finds."""
    frames = []
    for hostile, part in parts:
        cells = [cell for _, _, cell in part]
        column = pd.Series(cells) if hostile or dtype is None else _typed(cells, dtype)
        frames.append(pd.DataFrame({**_beside(part), "x": column}))
    return frames


def _typed(cells: Sequence[Any], dtype: str) -> Any:
    return pd.Series(pd.Series(object_array(cells), dtype=object).infer_objects(), dtype=dtype)


def _concat(parts: Sequence[tuple[bool, Part]], dtype: str | None) -> Any:
    return pd.concat(_part_frames(parts, dtype), ignore_index=True)


def _list_of_frames(parts: Sequence[tuple[bool, Part]], dtype: str | None) -> Any:
    return _part_frames(parts, dtype)


def _dask(parts: Sequence[tuple[bool, Part]], dtype: str | None) -> Any:
    frames = _part_frames(parts, dtype)
    stated = next((one for (hostile, _), one in zip(parts, frames, strict=True) if not hostile), frames[0])
    return _dask_of(frames, stated.iloc[:0])


def _csv(parts: Sequence[tuple[bool, Part]], **options: Any) -> Any:
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(["u", "r", "x"])
    writer.writerows(_rows(parts))
    return pd.read_csv(io.StringIO(written.getvalue()), index_col=False, **options)


def _read_csv(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return _csv(parts)


def _read_csv_python(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return _csv(parts, engine="python")


def _read_csv_nullable(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return _csv(parts, dtype_backend="numpy_nullable")


def _read_csv_arrow(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return _csv(parts, dtype_backend="pyarrow")


def _array(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    array = np.array(_cells(parts))
    if array.ndim != 1:
        raise ValueError("an array of several dimensions is no column")
    return {**_beside(_rows(parts)), "x": array}


def _list(parts: Sequence[tuple[bool, Part]], _: str | None) -> Any:
    return {**_beside(_rows(parts)), "x": _cells(parts)}


def _append(parts: Sequence[tuple[bool, Part]], dtype: str | None) -> Any:
    """Others' column is made, and then the user's cells are put into it."""
    rows = _rows(parts)
    frame = pd.DataFrame(_beside(rows))
    theirs = [cell for hostile, part in parts for _, _, cell in part if not hostile]
    if not theirs:
        frame["x"] = pd.Series(_cells(parts))
        return frame
    whole = [theirs[0] if row >= HOSTILE else cell for _, row, cell in rows]
    column = pd.Series(whole) if dtype is None else _typed(whole, dtype)
    for place, (_, row, cell) in enumerate(rows):
        if row >= HOSTILE:
            column = pd.concat([column[:place], pd.Series([cell]), column[place + 1 :]], ignore_index=True)
    frame["x"] = column
    return frame


WAYS: dict[str, tuple[str, Way]] = {
    "Series of a list": ("pandas", _series),
    "convert_dtypes": ("pandas", _converted),
    "records": ("pandas", _records),
    "concat": ("pandas", _concat),
    "cells put into a column": ("pandas", _append),
    "list of frames": ("list of pandas frames", _list_of_frames),
    "partitions": ("dask", _dask),
    "read_csv": ("pandas", _read_csv),
    "read_csv, engine python": ("pandas", _read_csv_python),
    "read_csv, nullable": ("pandas", _read_csv_nullable),
    "read_csv, types of Arrow": ("pandas", _read_csv_arrow),
    "array of a list": ("dict", _array),
    "list": ("dict", _list),
}
OF_TEXTS = tuple(way for way in WAYS if way.startswith("read_csv"))


def excepted(way: str, cells: Sequence[Any]) -> str | None:
    """Which of the exceptions a table is, as its owner or a reader has changed others' cells."""
    as_text = [one for one in cells if type(one) in (str, bytes)]
    decoded = [one.decode("utf-8", "replace") if type(one) is bytes else one for one in as_text]
    beyond = any(number_in(one.strip()) and abs(float(one.strip())) == float("inf") for one in decoded if one.isascii())
    if way in (*OF_TEXTS, "array of a list"):
        beyond |= any(type(one) is int and one.bit_length() > 1023 for one in cells)
    if beyond:
        return "X1"
    if way != "list" and any(_finer_than_nanoseconds(one) for one in cells):
        return "X6"
    if way == "array of a list":
        if any(type(one) in (np.float16, np.float32, np.longdouble) for one in cells):
            return "X4"
        if any(type(one) in (np.timedelta64, dt.timedelta, pd.Timedelta, complex, np.complex128) for one in cells):
            return "X6"
        if any(type(one) is Texts for one in cells):  # NumPy cuts the names of members
            return "X6"
        if any(type(one) is bytes and min(one, default=32) < 32 for one in cells):
            return "X6"  # NumPy makes texts of packed numbers beside a text
    if pd.__version__ < "3" and any(len(one) >= 15 for one in decoded) and way in OF_TEXTS:
        return "X3"
    return None


def _finer_than_nanoseconds(cell: Any) -> bool:
    """Whether a time is of units that libraries promote a whole column to, or cut."""
    return type(cell) is np.datetime64 and np.datetime_data(cell.dtype)[0] in ("ps", "fs", "as", "generic")


def hostile_trials(rng: random.Random, values: Sequence[Any]) -> Iterator[Trial]:
    """Tables whose types follow from values, without end."""
    for number_of in itertools.count():
        name = rng.choice(list(OTHERS_COLUMNS))
        others = OTHERS_COLUMNS[name]
        own = [rng.choice(values), rng.choice([*values, others[0], None])][: rng.randrange(1, 3)]
        way = rng.choice(list(WAYS))
        place = PLACES[number_of % 3]
        role = ROLES[number_of // 3 % len(ROLES)]
        if excepted(way, [*others, *own]) is not None:
            continue
        if way in OF_TEXTS and not all(type(one) in (str, int, float, bool, type(None)) for one in [*others, *own]):
            continue
        dtype = rng.choice([None, *TYPES_OF_PANDAS.get(name, [])])
        parts = parts_of(others, own, place)
        container, make = WAYS[way]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = make([one for one in parts if not one[0]], dtype)
                both = make(parts, dtype)
                alone = make([one for one in parts if one[0]], dtype)
        except BaseException as error:  # a library cannot make this column; that is its owner's to see
            if isinstance(error, (KeyboardInterrupt, MemoryError)):
                raise
            continue
        label = f"{way} of {name}{'' if dtype is None else f' as {dtype}'}, user in the {place}"
        yield Trial(container, label, role, theirs, both, alone, others, who=own)


def typed_trials(rng: random.Random, columns: Sequence[Column]) -> Iterator[Trial]:
    """Tables of types that are there before the user's values, without end: rows of a column are shared out."""
    usable = [one for one in columns if one.container in ("pandas", "dict", "polars", "polars, lazy", "pyarrow")]
    for number_of in itertools.count():
        column = rng.choice(usable)
        n = len(column.cells)
        if n < 3:
            continue
        theirs = [rng.randrange(n) for _ in range(6)]
        own = [rng.randrange(n) for _ in range(rng.randrange(1, 3))]
        role = ROLES[number_of // 3 % len(ROLES)]
        kind = KIND_OF_ROLE.get(role, role)
        parts = parts_of(theirs, own, PLACES[number_of % 3])
        frame = column.frame({"row": np.arange(n)})
        theirs_only, users_only = [one for one in parts if not one[0]], [one for one in parts if one[0]]
        try:
            made = [_taken(frame, _rows(chosen)) for chosen in (theirs_only, parts, users_only)]
        except (NotImplementedError, AttributeError, pa.ArrowException):
            continue
        values = [column.cells[row] for row in theirs]
        yield Trial(
            column.container,
            column.type,
            role,
            *made,
            values,
            refused=to_be_refused(column, kind),
            who=[column.cells[row] for row in own],
        )


def _taken(frame: Any, rows: Part) -> Any:
    """Rows of a frame: of each its owner, its number, and where it is."""
    beside = _beside(rows)
    places = [place for _, _, place in rows]
    if isinstance(frame, dict):
        column = frame["x"]
        return {**beside, "x": column[places] if isinstance(column, np.ndarray) else [column[i] for i in places]}
    if isinstance(frame, pd.DataFrame):
        return pd.DataFrame({**beside, "x": frame["x"].take(places).reset_index(drop=True)})
    if isinstance(frame, pl.LazyFrame):
        return _taken(frame.collect(), rows).lazy()
    if isinstance(frame, pl.DataFrame):
        return pl.DataFrame(beside).with_columns(frame["x"].gather(places).alias("x"))
    chunks = [frame["x"].slice(place, 1).chunk(0) for place in places]
    return pa.table({**beside, "x": pa.chunked_array(chunks, frame.schema.field("x").type)})


def asked(role: str, values: Sequence[Any]) -> tuple[dict[str, Any], Query, str]:
    """The schema, the query and the column of ids for a role."""
    texts = [one for one in dict.fromkeys(_text(cell) for cell in values) if one is not None] or ["5"]
    rows = Query().group_by("r", max_keys=20)
    both = Query().group_by("r", "x", max_keys=20)
    if role == "id":
        return {"r": key(int)}, rows.agg(n=count_users()), "x"
    if role in ("number", "integer"):
        kinds = {"number": number(-1000, 1000, steps=2**14), "integer": integer(-1000, 1000)}
        query = rows.agg(n=count_users("x"), s=sum("x", max_total=1000))
        return {"r": key(int), "x": kinds[role]}, query, "u"
    if role == "boolean":
        return {"r": key(int), "x": column_type(role)}, rows.agg(n=count_users("x"), s=sum("x", max_total=1)), "u"
    if role == "timestamp":
        filtered = Query().filter(col("x") >= dt.datetime(2024, 1, 31, 5)).group_by("r", max_keys=20)
        return {"r": key(int), "x": column_type(role)}, filtered.agg(n=count_users()), "u"
    if role == "listed":
        return {"x": key(str)}, Query().group_by("x", keys=texts, max_keys=len(texts)).agg(n=count_rows(20)), "u"
    if role == "filter":
        filtered = Query().filter(col("x").is_in(texts[:2])).group_by("r", max_keys=20)
        return {"r": key(int), "x": key(str)}, filtered.agg(n=count_users()), "u"
    return {"r": key(int), "x": column_type(role, texts)}, both.agg(n=count_users()), "u"


def _text(cell: Any) -> str | None:
    try:
        return text(cell)
    except (TypeError, AttributeError):  # an object of a library
        return None


def run(frame: Any, types: dict[str, Any], query: Query, user: str, released: bool) -> Outcome:
    """A session, what is added up, and perhaps a release: its outcome can be seen."""

    def call() -> Any:
        held = session(frame, types, user)
        found = sums(held, query, frame)
        if released:
            held.release(query)
        if user == "x":
            theirs = Query().filter(col("r") < HOSTILE).agg(n=count_users())
            found["people among others"] = sums(held, theirs, frame)["users"]
        return found

    return watched(call)


def judge(trial: Trial, findings: Findings, released: bool) -> None:
    """P1 and P2."""
    types, query, user = asked(trial.role, trial.values)
    theirs = run(trial.others, types, query, user, released)
    both = run(trial.both, types, query, user, released)
    findings.compare(trial.container, trial.role, "tables with a hostile user")
    if theirs.seen != both.seen:
        what = f"{trial}: without {theirs.seen}, with {both.seen}"
        findings.add(VISIBLE, trial.container, trial.role, what)
        return
    if theirs.raised or trial.refused:
        if not trial.refused:
            findings.add(FAILED, trial.container, trial.role, f"{trial}: {theirs.raised}")
        return
    alone = run(trial.alone, types, query, user, False)
    if alone.raised:
        # Alone the user's cells may be of a type that is declared nowhere else.
        findings.add(FAILED, trial.container, trial.role, f"{trial}, alone: {alone.raised}")
        return
    for name, found in both.result.items():
        first = theirs.result.get(name, {})
        own = alone.result.get(name, {}) if name != "people among others" else {}
        added = {place: first.get(place, 0) + own.get(place, 0) for place in {**first, **own}}
        if {k: v for k, v in added.items() if v} != {k: v for k, v in found.items() if v}:
            what = f"{trial}: {name}: without {first}, alone {own}, together {found}"
            findings.add(OTHERS, trial.container, trial.role, what)
            return


# --- people in two containers


PEOPLE_AS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "pandas, objects": lambda cells: pd.DataFrame({"x": pd.Series(object_array(cells), dtype=object)}),
    "pandas": lambda cells: pd.DataFrame({"x": pd.Series(cells)}),
    "pandas, texts": lambda cells: pd.DataFrame({"x": pd.Series([_spelled(one) for one in cells], dtype="string")}),
    "pandas, category": lambda cells: pd.DataFrame({"x": pd.Series(cells).astype("category")}),
    "polars": lambda cells: pl.DataFrame({"x": pl.Series(cells)}),
    "polars, texts": lambda cells: pl.DataFrame({"x": pl.Series([_spelled(one) for one in cells])}),
    "pyarrow": lambda cells: pa.table({"x": pa.array(cells)}),
    "pyarrow, dictionary": lambda cells: pa.table({"x": pa.array(cells).dictionary_encode()}),
    "pyarrow, bytes": lambda cells: pa.table({"x": pa.array([_spelled(one).encode() for one in cells])}),
    "dict": lambda cells: {"x": list(cells)},
    "dict, array": lambda cells: {"x": np.array(cells)},
    "dict, tuples of one": lambda cells: {"x": [(one,) for one in cells]},
}


def _spelled(cell: Any) -> str:
    return cell if isinstance(cell, str) else str(cell)


def people(rng: random.Random) -> list[Any]:
    """Ids of one kind, as owners of tables have them."""
    makers: list[Callable[[int], Any]] = [
        lambda i: i,
        lambda i: f"{i:05}",
        lambda i: f"user{i}",
        lambda i: i + 0.5,
        lambda i: float(i),
        lambda i: uuid.UUID(int=rng.getrandbits(128)).hex,
        lambda i: str(uuid.UUID(int=rng.getrandbits(128))).upper(),
        lambda i: JANUARY.date() + dt.timedelta(days=i),
        lambda i: JANUARY + dt.timedelta(minutes=i),
        lambda i: f"2024-01-{i % 28 + 1:02} {i % 24:02}:00",
        lambda i: f"Ko\u0308ln {i}",
        lambda i: 2**53 - 1 - i,
    ]
    make = rng.choice(makers)
    return [make(rng.randrange(1000)) for _ in range(rng.randrange(1, 40))]


def judge_people(rng: random.Random, findings: Findings) -> None:
    """P3: a person is one in two containers, and there are as many as the reference says."""
    cells = people(rng)
    names = rng.sample(list(PEOPLE_AS), 2)
    frames = []
    for name in names:
        try:
            frame = PEOPLE_AS[name](cells)
        except (TypeError, ValueError, pa.ArrowException):
            return
        frames.append(_with(frame, "y", np.ones(len(cells))))
    expected = len({identity(cell) for cell in cells} - {None})

    def count(frame: Any) -> Any:
        held = session(frame, {"y": number(0, 1)}, "x")
        return sums(held, Query().agg(n=count_users()), frame)["users"].get((), 0)

    for where, frame in ((names[0], frames[0]), (" and ".join(names), frames)):
        found = watched(lambda frame=frame: count(frame))
        findings.compare("two containers" if frame is frames else "one container", "id", "people")
        if found.raised:
            findings.add(FAILED, "two containers", "id", f"{where}: {cells[:3]}: {found.raised}")
        elif found.result != expected or found.warned or found.printed:
            what = f"{where}: {cells[:3]}: {expected} expected, {found.result} counted {found.warned[:1]}"
            findings.add(PEOPLE, "two containers", "id", what)


def _with(frame: Any, name: str, column: Any) -> Any:
    if isinstance(frame, dict):
        return {**frame, name: column}
    if isinstance(frame, pd.DataFrame):
        return frame.assign(**{name: column})
    if isinstance(frame, pl.DataFrame):
        return frame.with_columns(pl.Series(name, column))
    return frame.append_column(name, pa.array(column))


# --- one table in all containers


def logical_table(rng: random.Random, rows: int = 40) -> dict[str, list[Any]]:
    """Columns of Python's own types, with gaps."""

    def gap(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    return {
        "u": [rng.randrange(12) for _ in range(rows)],
        "zip": [gap(rng.choice(["60601", "02139", "7", "B6", "1e5"])) for _ in range(rows)],
        "size": [gap(rng.choice([0, 1, 5, 40, 2**31, -3])) for _ in range(rows)],
        "pay": [gap(rng.choice([0.1, 7.25, 49.99999, -3.0, 1e300, 5e-324])) for _ in range(rows)],
        "full": [gap(rng.random() < 0.5) for _ in range(rows)],
        "day": [gap(JANUARY.date() + dt.timedelta(days=rng.randrange(-800, 800))) for _ in range(rows)],
        "at": [gap(JANUARY + dt.timedelta(seconds=rng.randrange(10**7))) for _ in range(rows)],
    }


def forms(table: dict[str, list[Any]]) -> Iterator[tuple[str, Any]]:
    """A logical table in all containers."""
    arrow = pa.table(table)
    frame = pd.DataFrame({name: pd.Series(object_array(column), dtype=object) for name, column in table.items()})
    yield "pandas, objects", frame
    yield "pandas", pd.DataFrame(table)
    yield "pandas, nullable", pd.DataFrame(table).convert_dtypes()
    yield "pandas, types of Arrow", arrow.to_pandas(types_mapper=pd.ArrowDtype)
    yield "pandas, categories", frame.apply(lambda column: column.astype("category"))
    texts = {name: [None if one is None else str(one) for one in column] for name, column in table.items()}
    yield "pandas, texts", pd.DataFrame(texts)
    yield "polars", pl.from_arrow(arrow)
    yield "polars, lazy", pl.from_arrow(arrow).lazy()
    yield "polars, texts", pl.DataFrame(texts)
    yield "pyarrow", arrow
    yield "pyarrow, texts", pa.table(texts)
    coded = [column.combine_chunks().dictionary_encode() for column in arrow.columns]
    yield "pyarrow, dictionaries", pa.table(dict(zip(arrow.column_names, coded, strict=True)))
    yield "pyarrow, batches of several types", [arrow.slice(0, 10), pa.table(texts).slice(10)]
    yield "dict of lists", table
    yield "dict of arrays", {name: np.array(column) for name, column in table.items()}
    yield "dask", _dask_of([frame.iloc[:7], pd.DataFrame(texts).iloc[7:]], frame.iloc[:0])
    yield "list of pandas and polars", [frame.iloc[:20], pl.from_arrow(arrow.slice(20))]
    try:
        import duckdb
    except ImportError:
        return
    yield "duckdb", duckdb.connect().from_arrow(arrow)


def queries() -> list[Query]:
    """Of all kinds."""
    return [
        Query().group_by("zip", max_keys=3, rule="first").agg(n=count_users(), s=sum("size", max_total=100)),
        Query().filter(col("zip").is_in(["02139", "7"])).agg(n=count_users(), s=sum("pay", max_total=100)),
        Query().group_by("day", "full", max_keys=30, rule="first").agg(n=count_users()),
        Query().with_columns(m=col("at").month()).filter(col("full")).agg(n=count_users(), s=sum("m", max_total=50)),
    ]


def judge_containers(rng: random.Random, findings: Findings) -> None:
    """E: the same integers in all containers."""
    table = logical_table(rng)
    types = {
        "zip": key(str),
        "size": column_type("integer"),
        "pay": number(0, 50),
        "full": column_type("boolean"),
        "day": key(dt.date),
        "at": column_type("timestamp"),
    }
    expected: list[Any] | None = None
    for name, frame in forms(table):

        def call(frame: Any = frame) -> Any:
            held = session(frame, types)
            return [sums(held, query, frame) for query in queries()]

        found = watched(call)
        findings.compare(name, "table", "tables in all containers")
        if found.raised or found.warned or found.printed:
            findings.add(FAILED, name, "table", f"{name}: {found.seen}")
        elif expected is None:
            expected = found.result
        elif found.result != expected:
            findings.add(CONTAINERS, name, "table", f"{name}: {expected} expected, {found.result} found")
