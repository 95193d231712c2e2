"""One column of cells in every container that it can be in, and what each cell physically is.

Each maker gives `Column`s: a function from further columns to a frame that also has the column `x`, and the cells of
`x` as `oracle.reading` names them. Integers are put where an end of a physical range, a calendar or a rule is.
"""

from __future__ import annotations

import datetime as dt
import decimal
import functools
import itertools
import math
import tempfile
import uuid
import warnings
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import dateutil.tz
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from oracle.reading import DAY, FIRST, LAST, Cell, identity, text
from support.reading_objects import SUBCLASSES, UNREADABLE, UnknownZone, objects, zoned

try:
    import duckdb
except ImportError:
    duckdb = None
try:
    import ibis
except ImportError:
    ibis = None

Frames = Mapping[str, Any]
"""Further columns, as NumPy arrays of integers, doubles or times."""

NULL = Cell("null", None)
DOUBLES = [0.0, -0.0, 1.0, 0.1, 5.0, -1.5, 2.0**53, 2.0**53 + 2, 1e22, 1e300, -1.7e308, 5e-324, math.inf, -math.inf]
DOUBLES += [math.nan, 2.0**60, 1e16, 123456.789]
DAYS = [
    0,
    19753,
    FIRST // DAY,
    FIRST // DAY - 1,
    LAST // DAY - 1,
    LAST // DAY,
    2**31 - 1,
    -(2**31),
    -(2**31) + 1,
    10**7,
]
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Column:
    """A column `x` in a container."""

    container: str
    type: str
    cells: Sequence[Any]
    """What is in each row."""
    frame: Callable[[Frames], Any]
    """The container with the column and further ones."""
    families: tuple[str, ...] = ()
    """Of the parts with declared types; none where a value can change the type."""
    digits: bool = False
    """Whether all digits of numbers count."""

    def __str__(self) -> str:
        return f"{self.container}, {self.type}"


def whole_numbers(low: int, high: int) -> list[int]:
    """The ends of a range of integers and their neighbors, and those of other ranges within it."""
    found = [0, 1, 5, 2, low, low + 1, high - 1, high]
    for end in (2**7, 2**8, 2**15, 2**31, 2**32, 2**53, 2**63, 2**64, 10**18, 20240131, 2139):
        found += [sign * end + step for sign in (1, -1) for step in (-1, 0, 1)]
    return list(dict.fromkeys(x for x in found if low <= x <= high))


def ticks(unit: str) -> list[int]:
    """Integers of times: the first and the last ones of the calendar and of the range, and neighbors."""
    day = 86400 * PER_SECOND[unit]
    found = [0, 1, -1, 19753 * day, 19753 * day + 34200 * PER_SECOND[unit], -(2**63), -(2**63) + 1, 2**63 - 1, 2**62]
    found += [FIRST // DAY * day + step for step in (-1, 0, 1)] + [LAST // DAY * day + step for step in (-1, 0, 1)]
    found += [1706693415123456789 % (10**9 * PER_SECOND[unit]), -(10**17) - 1, 253402300799 * PER_SECOND[unit]]
    return list(dict.fromkeys(x for x in found if -(2**63) <= x < 2**63))


def _texts(cells: Sequence[Any]) -> list[str | None]:
    """The texts among cells that UTF-8 can write."""
    found = [one for one in cells if type(one) is str and not any(0xD800 <= ord(c) < 0xE000 for c in one)]
    return [*dict.fromkeys(found), None]


def _binary(cells: Sequence[Any]) -> list[bytes | None]:
    found = [one for one in cells if type(one) is bytes]
    found += [text.encode() for text in _texts(cells)[::7] if text is not None]
    return [*dict.fromkeys(found), None]


# --- pandas


def _pandas(values: Any) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        made = pd.DataFrame({name: pd.Series(column) for name, column in others.items()})
        # A column of objects must be kept as it is: pandas looks for a better type in lists.
        made["x"] = values if isinstance(values, pd.Series) else pd.Series(values)
        return made

    return frame


def object_array(values: Sequence[Any]) -> Any:
    """An array of objects, which NumPy does not look into."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _object_columns(cells: Sequence[Any]) -> Iterator[tuple[str, Any, list[Any]]]:
    """Arrays of objects: all cells, classes made from plain ones, and times in zones."""
    made, kept = objects(list(cells))
    yield "objects", object_array(made), kept
    yield "subclasses", object_array([one for one, _ in SUBCLASSES]), [cell for _, cell in SUBCLASSES]
    yield "zones", object_array([one for one, _ in zoned()]), [cell for _, cell in zoned()]


def pandas_columns(cells: Sequence[Any]) -> Iterator[Column]:
    """All types of pandas, none of which is declared."""
    for name, array, kept in _object_columns(cells):
        yield Column("pandas", name, kept, _pandas(pd.Series(array, dtype=object)))
    texts = _texts(cells)
    # pandas reads NaN in the place of None.
    of_texts = {"str": "str", "string[python]": "string[python]", "string[pyarrow]": "string[pyarrow]"}
    for name, kind in of_texts.items():
        if name == "str" and pd.__version__ < "3":
            continue
        yield Column("pandas", name, texts, _pandas(pd.Series(texts, dtype=kind)))
    yield from _pandas_numbers()
    yield from _pandas_times()
    yield from _pandas_of_others(cells)
    for column in arrow_arrays(cells):
        if column.name.startswith(("union", "bool8", "uuid", "opaque", "json", "run")):
            continue
        try:
            series = pd.Series(pd.arrays.ArrowExtensionArray(column.array))
        except (NotImplementedError, TypeError, ValueError, pa.ArrowException):
            continue
        yield Column("pandas", f"ArrowDtype {column.name}", column.cells, _pandas(series))


def _pandas_numbers() -> Iterator[Column]:
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        info = np.iinfo(name)
        whole = whole_numbers(int(info.min), int(info.max))
        array = np.array(whole, dtype=name)
        own = [Cell("np.int", one) for one in whole]
        yield Column("pandas", name, own, _pandas(array))
        nullable = name.replace("i", "I").replace("uI", "UI")
        mask = np.zeros(len(whole) + 1, dtype=bool)
        mask[-1] = True
        array = np.append(array, np.array([77], dtype=name))
        yield Column("pandas", nullable, [*own, NULL], _pandas(pd.Series(pd.arrays.IntegerArray(array, mask))))
    for name in ("float32", "float64"):
        with np.errstate(all="ignore"):
            floats = np.array(DOUBLES, dtype=name)
        own = [Cell("np.float", float(one)) for one in floats]
        yield Column("pandas", name, own, _pandas(floats))
        mask = np.zeros(len(floats), dtype=bool)
        mask[3] = True
        masked = [NULL if hidden else cell for cell, hidden in zip(own, mask, strict=True)]
        yield Column("pandas", name.title(), masked, _pandas(pd.Series(pd.arrays.FloatingArray(floats, mask))))
    yield Column("pandas", "bool", [True, False], _pandas(np.array([True, False])))
    yield Column("pandas", "boolean", [True, False, NULL], _pandas(pd.Series([True, False, None], dtype="boolean")))
    yield Column("pandas", "complex128", [1 + 0j, 1j, 2.5 + 0j], _pandas(np.array([1, 1j, 2.5], dtype=np.complex128)))
    sparse = pd.Series(pd.arrays.SparseArray([0.0, 0.0, 5.0, math.nan, 1.5, 0.0]))
    yield Column("pandas", "Sparse[float]", [0.0, 0.0, 5.0, math.nan, 1.5, 0.0], _pandas(sparse))
    sparse = pd.Series(pd.arrays.SparseArray([0, 0, 5, 2**60 + 1], fill_value=0))
    yield Column("pandas", "Sparse[int]", [0, 0, 5, 2**60 + 1], _pandas(sparse))


def _pandas_times() -> Iterator[Column]:
    for unit in ("s", "ms", "us", "ns"):
        whole = ticks(unit)
        array = np.array(whole, dtype=np.int64).view(f"M8[{unit}]")
        own = [Cell("np.datetime64", (unit, one)) for one in whole]
        yield Column("pandas", f"datetime64[{unit}]", own, _pandas(array))
        for name, zone in _column_zones():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kind = pd.DatetimeTZDtype(unit, zone)
                # Times in zones are in UTC inside.
                series = pd.Series(pd.arrays.DatetimeArray._simple_new(array, dtype=kind))
            cells = [UNREADABLE] * len(own) if isinstance(zone, UnknownZone) else own
            if isinstance(zone, UnknownZone):
                cells = [NULL if one == -(2**63) else UNREADABLE for one in whole]
            yield Column("pandas", f"datetime64[{unit}, {name}]", cells, _pandas(series))
        durations = np.array([0, 5, -1, 2**62, -(2**63)], dtype=np.int64).view(f"m8[{unit}]")
        own = [Cell("np.timedelta64", (unit, 0))] * 4 + [Cell("pd.NaT", None)]
        yield Column("pandas", f"timedelta64[{unit}]", own, _pandas(durations))
    for frequency in ("D", "M", "Q-DEC", "Q-MAR", "Y-DEC", "Y-JUN", "W-SUN", "h", "min", "s", "ms", "us", "ns"):
        whole = [0, 1, -1, 648, 19753, 8029 * 12, 2**40, -(2**40), 2**62]
        array = pd.arrays.PeriodArray(np.array([*whole, -(2**63)]), dtype=pd.PeriodDtype(frequency))
        own = [*(Cell("pd.Period", (frequency, one)) for one in whole), Cell("pd.NaT", None)]
        yield Column("pandas", f"period[{frequency}]", own, _pandas(pd.Series(array)))


def _column_zones() -> Iterator[tuple[str, dt.tzinfo]]:
    yield "UTC", dt.timezone.utc
    yield "+05:30", dt.timezone(dt.timedelta(hours=5, minutes=30))
    yield "Europe/Berlin", zoneinfo.ZoneInfo("Europe/Berlin")
    yield "tzutc()", dateutil.tz.tzutc()
    yield "tzoffset", dateutil.tz.tzoffset("X", -3600)
    try:
        import pytz
    except ImportError:
        pass
    else:
        yield "pytz", pytz.timezone("Europe/Berlin")
    yield "unknown", UnknownZone()


def _pandas_of_others(cells: Sequence[Any]) -> Iterator[Column]:
    """Categories, intervals, and arrays of other owners."""
    texts = [one for one in dict.fromkeys(_texts(cells)) if one is not None]
    lists: dict[str, Sequence[Any]] = {
        "str": texts,
        "int": [0, 1, 5, 2**60, 2139],
        "float": [0.5, 5.0, 1e300],
        "bool": [True, False],
        "date": [dt.date(2024, 1, 31), dt.date(1, 1, 1)],
        "mixed": [5, "05", "ann", dt.date(2024, 1, 31)],
    }
    for name, values in lists.items():
        kept = object_array(values) if name in ("str", "date", "mixed") else np.array(values)
        dtype = object if name in ("str", "date", "mixed") else None
        codes = [*range(len(values)), -1, 0]
        made = pd.Categorical.from_codes(codes, categories=pd.Index(kept, dtype=dtype))
        own = [NULL if code < 0 else values[code] for code in codes]
        yield Column("pandas", f"category of {name}", own, _pandas(pd.Series(made)))
    bins = pd.cut(pd.Series([0, 1, 9, 10, 99, 7]), [0, 1, 9.5, 50])
    of_bins = [NULL, (0.0, 1.0), (1.0, 9.5), (9.5, 50.0), NULL, (1.0, 9.5)]
    own = [one if one is NULL else Cell("pd.Interval", (*one, "right")) for one in of_bins]
    yield Column("pandas", "category of intervals", own, _pandas(bins))
    times = pd.Categorical.from_codes([0, 1, -1], categories=pd.DatetimeIndex(["2024-01-31", "2024-01-31 09:30"]))
    own = [dt.datetime(2024, 1, 31), dt.datetime(2024, 1, 31, 9, 30), NULL]
    yield Column("pandas", "category of times", own, _pandas(pd.Series(times)))
    for closed in ("left", "right", "both", "neither"):
        wholes = pd.arrays.IntervalArray.from_arrays([0, 10, 2**53], [10, 20, 2**53 + 1], closed=closed)
        own = [Cell("pd.Interval", (*ends, closed)) for ends in ((0, 10), (10, 20), (2**53, 2**53 + 1))]
        yield Column("pandas", f"interval[int, {closed}]", own, _pandas(pd.Series(wholes)))
        floats = pd.arrays.IntervalArray.from_arrays([0, 0.5, -math.inf, math.nan], [10, 1, 5, math.nan], closed=closed)
        own = [Cell("pd.Interval", (*ends, closed)) for ends in ((0.0, 10.0), (0.5, 1.0), (-math.inf, 5.0))]
        yield Column("pandas", f"interval[float, {closed}]", [*own, NULL], _pandas(pd.Series(floats)))
    ends = pd.DatetimeIndex(["1970-01-01", "1970-01-02", "1970-01-02 09:30"])
    since = [Cell("timestamp", ("s", one)) for one in (0, 86400, 86400 + 34200)]
    own = [Cell("pd.Interval", (since[0], since[1], "right")), Cell("pd.Interval", (since[1], since[2], "right"))]
    yield Column("pandas", "interval[datetime64]", own, _pandas(pd.Series(pd.arrays.IntervalArray.from_breaks(ends))))
    yield Column("pandas", "another owner's array", [UNREADABLE] * 3, _pandas(pd.Series(ForeignArray(3))))


class _ForeignType(pd.api.extensions.ExtensionDtype):
    """A type of another package, such as geometries."""

    name = "foreign"
    type = object
    na_value = None

    @classmethod
    def construct_array_type(cls) -> Any:
        return ForeignArray


class ForeignArray(pd.api.extensions.ExtensionArray):
    """An array of another owner, whose values must not be asked for."""

    def __init__(self, length: int) -> None:
        self._length = length

    @property
    def dtype(self) -> Any:
        return _ForeignType()

    @property
    def nbytes(self) -> int:
        return 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, slice):
            return ForeignArray(len(range(*item.indices(self._length))))
        if isinstance(item, (list, np.ndarray)):
            chosen = np.asarray(item)
            return ForeignArray(int(chosen.sum()) if chosen.dtype == bool else len(chosen))
        raise AssertionError("a value of another owner was asked for")

    def take(self, indices: Any, **_: Any) -> Any:
        return ForeignArray(len(indices))

    def copy(self) -> Any:
        return ForeignArray(self._length)

    def isna(self) -> Any:
        raise AssertionError("another owner was asked what is missing")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("another owner's values were asked for")

    @classmethod
    def _from_sequence(cls, scalars: Any, **_: Any) -> Any:
        return cls(len(scalars))

    @classmethod
    def _concat_same_type(cls, arrays: Any) -> Any:
        return cls(sum(map(len, arrays)))


# --- dicts of lists and of arrays


def _dict(values: Any) -> Callable[[Frames], Any]:
    return lambda others: {**others, "x": values}


def dict_columns(cells: Sequence[Any]) -> Iterator[Column]:
    """Dicts of lists, tuples and NumPy arrays of all types."""
    for name, array, kept in _object_columns(cells):
        yield Column("dict", name, kept, _dict(array))
        yield Column("dict", f"list of {name}", kept, _dict(list(array)))
    made, kept = objects(list(cells))
    yield Column("dict", "tuple", kept, _dict(tuple(made)))
    texts = [one for one in cells if type(one) is str and "\x00" not in one[-1:]]
    yield Column("dict", "U", [Cell("np.str", one) for one in texts], _dict(np.array(texts, dtype=np.str_)))
    raw = [one for one in cells if type(one) is bytes]
    # NumPy drops NULs at the end.
    own = [Cell("np.bytes", one.rstrip(b"\0")) for one in raw]
    yield Column("dict", "S", own, _dict(np.array(raw, dtype=np.bytes_)))
    for number_type in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        info = np.iinfo(number_type)
        whole = whole_numbers(int(info.min), int(info.max))
        own = [Cell("np.int", one) for one in whole]
        yield Column("dict", number_type, own, _dict(np.array(whole, dtype=number_type)))
        swapped = np.array(whole, dtype=np.dtype(number_type).newbyteorder())
        yield Column("dict", f"{number_type}, bytes swapped", own, _dict(swapped))
    for float_type in ("float16", "float32", "float64", "longdouble"):
        with np.errstate(all="ignore"):
            floats = np.array(DOUBLES, dtype=float_type)
        yield Column("dict", float_type, [Cell("np.float", float(one)) for one in floats], _dict(floats))
    longer = np.array([np.longdouble(2**53) + 1, np.longdouble(2**63) + 1, np.longdouble(1) / 10])
    yield Column("dict", "longdouble of many digits", [2**53, 2**63, 0.1], _dict(longer))
    complexes = np.array([1, 1j, complex(math.nan, 0), 5 + 0j])
    yield Column("dict", "complex128", [1.0, 1j, NULL, 5.0], _dict(complexes))
    yield Column("dict", "bool", [True, False], _dict(np.array([True, False])))
    yield from _dict_times()
    yield Column("dict", "V", [UNREADABLE] * 2, _dict(np.zeros(2, dtype="V4")))
    yield Column("dict", "structured", [UNREADABLE] * 2, _dict(np.zeros(2, dtype=[("a", "i4"), ("b", "f8")])))
    yield from _masked()


def _dict_times() -> Iterator[Column]:
    for unit, whole in {
        **{unit: ticks(unit) for unit in PER_SECOND},
        "Y": [0, 54, -1969, -1970, 8029, 8030, 10**6, -(2**63), 2**62],
        "M": [0, 648, -1969 * 12, -1969 * 12 - 1, 8030 * 12 - 1, 8030 * 12, -(2**63), 2**62],
        "W": [0, 2821, -(2**63), 2**62, -102_737, 418_935, 418_936],
        "D": [*DAYS, 2**40, -(2**63), 2**62],
        "h": [0, 474_081, -(2**63), 2**62],
        "m": [0, 28_444_890, -(2**63), 2**62],
        "ps": [0, 1, -(2**63)],
    }.items():
        array = np.array(whole, dtype=np.int64).view(f"M8[{unit}]")
        own = [Cell("np.datetime64", (unit, one)) for one in whole]
        yield Column("dict", f"datetime64[{unit}]", own, _dict(array))
    durations = np.array([0, 5], dtype="m8[us]")
    yield Column("dict", "timedelta64[us]", [UNREADABLE] * 2, _dict(durations))


def _masked() -> Iterator[Column]:
    """Arrays with masks: what is behind a mask is nothing."""
    mask = [False, True, False, False, True]
    arrays: dict[str, tuple[Any, Sequence[Any]]] = {
        "int64": (np.array([5, 77, 0, 1, 2**60]), [5, NULL, 0, 1, NULL]),
        "float64": (np.array([0.5, 77, math.nan, 1, 2]), [0.5, NULL, math.nan, 1.0, NULL]),
        "U": (np.array(["05", "secret", "ann", "5", "x"]), ["05", NULL, "ann", "5", NULL]),
        "objects": (object_array(["05", "secret", 5, None, 7]), ["05", NULL, 5, None, NULL]),
        "datetime64[us]": (
            np.array(["2024-01-31", "2000-01-01", "NaT", "1970-01-01", "1999-09-09"], dtype="M8[us]"),
            [dt.date(2024, 1, 31), NULL, NULL, dt.date(1970, 1, 1), NULL],
        ),
    }
    for name, (array, own) in arrays.items():
        yield Column("dict", f"masked {name}", list(own), _dict(np.ma.array(array, mask=mask)))
        # A column of a table with a mask: neither lies in one piece.
        table = np.ma.array(np.stack([array, array], axis=1), mask=np.stack([mask, mask], axis=1))
        yield Column("dict", f"masked {name}, strided", list(own), _dict(table[:, 0]))


# --- pyarrow


@dataclass(frozen=True)
class ArrowColumn:
    """An array of Arrow, what its cells are, and the family of its type."""

    name: str
    array: Any
    cells: Sequence[Any]
    family: str


def _view(values: Sequence[int], raw: Any, kind: Any) -> Any:
    """An array of a type by its physical integers, which Arrow does not look at, and a null."""
    array = pa.array([*values, None], raw)
    return pa.Array.from_buffers(kind, len(array), array.buffers())


def arrow_arrays(cells: Sequence[Any]) -> Iterator[ArrowColumn]:
    """All types of Arrow."""
    yield from _arrow_numbers()
    yield from _arrow_times()
    texts, raw = _texts(cells), _binary(cells)
    for name in ("string", "large_string", "string_view"):
        if hasattr(pa, name):
            yield ArrowColumn(name, pa.array(texts, getattr(pa, name)()), texts, "string")
    for name in ("binary", "large_binary", "binary_view"):
        if hasattr(pa, name):
            yield ArrowColumn(name, pa.array(raw, getattr(pa, name)()), raw, "binary")
    fixed = [b"05\0\0", b"ann ", b"\0\0\0\5", b"\5\0\0\0", bytes(4), b"\xff\xfe\xfd\xfc", None]
    yield ArrowColumn("fixed_size_binary", pa.array(fixed, pa.binary(4)), fixed, "binary")
    yield from _arrow_codes(texts)
    yield from _arrow_nested()


def _arrow_numbers() -> Iterator[ArrowColumn]:
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        info = np.iinfo(name)
        whole = whole_numbers(int(info.min), int(info.max))
        own = [*(Cell("np.int", one) for one in whole), NULL]
        yield ArrowColumn(name, pa.array([*whole, None], getattr(pa, name)()), own, "int")
    yield ArrowColumn("bool", pa.array([True, False, None]), [True, False, NULL], "bool")
    for name, kind in (("half_float", "float16"), ("float", "float32"), ("double", "float64")):
        with np.errstate(all="ignore"):
            floats = np.array(DOUBLES, dtype=kind)
        own = [*(Cell("np.float", float(one)) for one in floats), NULL]
        yield ArrowColumn(name, pa.array([*floats, None], pa.from_numpy_dtype(kind)), own, "float")
    for bits, digits, scale in (
        (32, 9, 2),
        (32, 9, 0),
        (64, 18, 0),
        (64, 18, 9),
        (128, 38, 0),
        (128, 38, 10),
        (128, 20, 2),
        (128, 5, -3),
        (256, 76, 70),
        (256, 76, 0),
        (256, 40, 20),
    ):
        if not hasattr(pa, f"decimal{bits}"):
            continue
        kind = getattr(pa, f"decimal{bits}")(digits, scale)
        whole = [one for one in decimals(digits) if abs(one) < 10**digits]
        with decimal.localcontext(decimal.Context(prec=100)):
            array = pa.array([*(Decimal(one).scaleb(-scale) for one in whole), None], kind)
        own = [*(Cell("decimal", (one, scale)) for one in whole), NULL]
        yield ArrowColumn(f"decimal{bits}({digits}, {scale})", array, own, "decimal")


def decimals(digits: int) -> list[int]:
    """Unscaled integers of decimals: the largest ones, those about 2**53, and some that a cast would round twice."""
    found = [0, 1, 5, 10, 50, 500, -1, 3141, 10**digits - 1, 1 - 10**digits, 10**digits // 3]
    found += [sign * (2**53 + step) for sign in (1, -1) for step in (-1, 0, 1)]
    found += [(2**54 + 2) * 10**9 + 1, (2**54 + 2) * 10**9, (2**53 + 1) * 10**2, 2**63, 2**64 + 1, 2**127 - 1]
    return found


def _arrow_times() -> Iterator[ArrowColumn]:
    own: list[Any] = [*(Cell("date32", one) for one in DAYS), NULL]
    yield ArrowColumn("date32", _view(DAYS, pa.int32(), pa.date32()), own, "date")
    whole = ticks("ms")
    own = [*(Cell("date64", one) for one in whole), NULL]
    yield ArrowColumn("date64", _view(whole, pa.int64(), pa.date64()), own, "date")
    for unit in PER_SECOND:
        whole = ticks(unit)
        own = [*(Cell("timestamp", (unit, one)) for one in whole), NULL]
        for zone in (None, "UTC", "+05:30", "Europe/Berlin", "Nowhere/Town"):
            array = _view(whole, pa.int64(), pa.timestamp(unit, zone))
            family = "timestamp" if zone is None else "timestamp_zone"
            yield ArrowColumn(f"timestamp[{unit}, {zone}]", array, own, family)
    of_clocks = [
        ("time32", "s", "int32"),
        ("time32", "ms", "int32"),
        ("time64", "us", "int64"),
        ("time64", "ns", "int64"),
    ]
    for name, unit, raw in of_clocks:
        day = 86400 * PER_SECOND[unit]
        whole = [0, 34200 * PER_SECOND[unit], 1, day - 1, day, -1, 2 ** (31 if raw == "int32" else 63) - 1]
        array = _view(whole, getattr(pa, raw)(), getattr(pa, name)(unit))
        yield ArrowColumn(f"{name}[{unit}]", array, [*(Cell("time64", (unit, one)) for one in whole), NULL], "clock")


def _arrow_codes(texts: Sequence[Any]) -> Iterator[ArrowColumn]:
    """Dictionaries and runs, by what they stand for."""
    values = [one for one in texts if one is not None]
    codes = [*range(min(len(values), 120)), 0, None]
    coded = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values[:121]))
    yield ArrowColumn("dictionary of strings", coded, [NULL if i is None else values[i] for i in codes], "string")
    holes = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1, None], pa.int32()), pa.array(["05", None, "05", "no"]))
    yield ArrowColumn("dictionary with nulls", holes, ["05", NULL, "05", NULL, NULL], "string")
    inner: dict[str, tuple[Any, list[Any], str]] = {
        "int64": (pa.array([5, 2**60 + 1, 2**60]), [5, 2**60 + 1, 2**60], "int"),
        "double": (pa.array([5.0, math.nan, 0.1]), [5.0, math.nan, 0.1], "float"),
        "binary": (pa.array([b"05", b"\xff", b"\5"]), [b"05", b"\xff", b"\5"], "binary"),
        "date32": (
            _view([19753, 2**31 - 1], pa.int32(), pa.date32()),
            [Cell("date32", 19753), UNREADABLE, NULL],
            "date",
        ),
        "timestamp": (
            _view([0, 2**62], pa.int64(), pa.timestamp("us")),
            [Cell("timestamp", ("us", 0)), UNREADABLE, NULL],
            "timestamp",
        ),
        "decimal": (pa.array([Decimal("1.50"), Decimal(5), None]), [Decimal("1.5"), 5, NULL], "decimal"),
        "list": (pa.array([[1], [2], None]), [UNREADABLE, UNREADABLE, NULL], "list"),
    }
    for name, (kept, own, family) in inner.items():
        coded = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 0], pa.int16()), kept)
        yield ArrowColumn(f"dictionary of {name}", coded, [own[2], own[0], own[1], own[0]], family)
    ends = pa.array([2, 3, 5], pa.int32())
    for name, kept, own, family in (
        ("strings", pa.array(["05", None, "ann"]), ["05", "05", NULL, "ann", "ann"], "string"),
        ("int64", pa.array([2**60 + 1, None, 5]), [2**60 + 1, 2**60 + 1, NULL, 5, 5], "int"),
    ):
        yield ArrowColumn(f"run_end_encoded of {name}", pa.RunEndEncodedArray.from_arrays(ends, kept), own, family)


def _arrow_nested() -> Iterator[ArrowColumn]:
    """What is never read, and extension types."""
    nothing = [UNREADABLE, UNREADABLE, NULL]
    arrays = {
        "list": (pa.array([[1], [], None]), "list"),
        "large_list": (pa.array([["a"], [], None], pa.large_list(pa.string())), "list"),
        "fixed_size_list": (pa.array([[1, 2], [3, 4], None], pa.list_(pa.int64(), 2)), "list"),
        "struct": (pa.array([{"a": 1}, {"a": 2}, None]), "struct"),
        "map": (pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())), "map"),
        "month_day_nano_interval": (pa.array([(1, 2, 3), (0, 0, 0), None], pa.month_day_nano_interval()), "interval"),
        **{f"duration[{unit}]": (_view([5, 2**62], pa.int64(), pa.duration(unit)), "duration") for unit in PER_SECOND},
    }
    for name, (array, family) in arrays.items():
        yield ArrowColumn(name, array, nothing, family)
    kinds = pa.array([0, 1], pa.int8())
    inside = [pa.array([1]), pa.array(["a"])]
    dense = pa.UnionArray.from_dense(kinds, pa.array([0, 0], pa.int32()), inside)
    yield ArrowColumn("dense_union", dense, [UNREADABLE] * 2, "union")
    yield ArrowColumn("null", pa.nulls(3), [NULL] * 3, "null")
    if hasattr(pa, "bool8"):
        array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 5, None], pa.int8()))
        yield ArrowColumn("bool8", array, [True, False, True, NULL], "bool")
    if hasattr(pa, "uuid"):
        own = [uuid.UUID(int=5), uuid.UUID(int=2**128 - 1)]
        storage = pa.array([*(one.bytes for one in own), None], pa.binary(16))
        yield ArrowColumn("uuid", pa.ExtensionArray.from_storage(pa.uuid(), storage), [*own, NULL], "uuid")
    if hasattr(pa, "opaque"):
        kind = pa.opaque(pa.int64(), "geometry", "somebody")
        array = pa.ExtensionArray.from_storage(kind, pa.array([1, 2, None]))
        yield ArrowColumn("opaque", array, nothing, "unknown_extension")


def _arrow_frame(others: Frames, array: Any) -> Any:
    return pa.table({**{name: pa.array(column) for name, column in others.items()}, "x": array})


def _slices(length: int) -> list[tuple[int, int]]:
    """Three parts of rows, where there are so many."""
    cuts = sorted({0, length // 3, length // 2, length})
    return list(itertools.pairwise(cuts))


def arrow_columns(cells: Sequence[Any], folder: Path) -> Iterator[Column]:
    """Tables, tables in chunks with offsets, lists of batches, and datasets of files."""
    for column in arrow_arrays(cells):
        array, own, family = column.array, column.cells, column.family
        digits = family != "null"
        yield Column("pyarrow", column.name, own, _arrow_table(array), (family,), digits)
        yield Column("pyarrow, chunks", column.name, own, _arrow_chunks(array), (family,), digits)
        yield Column("pyarrow, batches", column.name, own, _arrow_batches(array), (family,), digits)
        target = folder / f"file {column.name}".replace("/", " ")
        for kind in ("parquet", "feather"):
            # Formats have fewer types than memory, and change what they cannot say.
            if kind == "feather" and not _same_type(array, target.with_suffix(".feather")):
                continue
            if kind == "parquet" and not _same_in_parquet(array, target.with_suffix(".parquet")):
                continue
            frame = _dataset(array, target.with_suffix(f".{kind}.d"), kind)
            yield Column(f"pyarrow, dataset of {kind}", column.name, own, frame, (family,), digits)


def _arrow_table(array: Any) -> Callable[[Frames], Any]:
    return lambda others: _arrow_frame(others, array)


def _arrow_chunks(array: Any) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        whole = _arrow_frame(others, array)
        return pa.concat_tables([whole.slice(low, high - low) for low, high in _slices(len(array))])

    return frame


def _arrow_batches(array: Any) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        whole = _arrow_frame(others, array)
        return [part for low, high in _slices(len(array)) for part in whole.slice(low, high - low).to_batches()]

    return frame


def _same_type(array: Any, path: Path) -> bool:
    import pyarrow.feather as feather

    try:
        feather.write_feather(pa.table({"x": array}), path, compression="uncompressed")
        return bool(feather.read_table(path).schema.field("x").type == array.type)
    except (pa.ArrowException, NotImplementedError, OSError):
        return False


def _same_in_parquet(array: Any, path: Path) -> bool:
    try:
        pq.write_table(pa.table({"x": array}), path)
        back = pq.read_table(path)["x"].combine_chunks()
        return bool(back.type == array.type and back.equals(array))
    except (pa.ArrowException, NotImplementedError, OSError):
        return False


def _dataset(array: Any, folder: Path, kind: str) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        where = Path(tempfile.mkdtemp(dir=folder.parent))
        whole = _arrow_frame(others, array)
        for place, (low, high) in enumerate(_slices(len(array))):
            _write(whole.slice(low, high - low), where / f"{place}.{kind}", kind)
        return ds.dataset(where, format=kind)

    return frame


def _write(table: Any, path: Path, kind: str) -> None:
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        import pyarrow.feather as feather

        feather.write_feather(table, path, compression="uncompressed")


# --- parts of several types


def mixed_parts() -> list[tuple[str, list[ArrowColumn]]]:
    """Columns whose parts are of several types, which no common type can hold."""
    null = ArrowColumn("null", pa.nulls(2), [NULL] * 2, "null")
    wholes = ArrowColumn("int64", pa.array([5, 2**40, 2**60 + 1, None]), [5, 2**40, 2**60 + 1, NULL], "int")
    small = ArrowColumn("int8", pa.array([5, 1, None], pa.int8()), [5, 1, NULL], "int")
    doubles = ArrowColumn("double", pa.array([5.0, 1.5, math.nan]), [5.0, 1.5, math.nan], "float")
    texts = ArrowColumn("string", pa.array(["05", "x", "2024-01-31", None]), ["05", "x", "2024-01-31", NULL], "string")
    views = ArrowColumn("large_string", pa.array(["5", "yes"], pa.large_string()), ["5", "yes"], "string")
    raw = ArrowColumn("binary", pa.array([b"5", b"\xff"]), [b"5", b"\xff"], "binary")
    days = ArrowColumn(
        "date32", _view([19753, 2**31 - 1], pa.int32(), pa.date32()), [Cell("date32", 19753), UNREADABLE, NULL], "date"
    )
    times = ArrowColumn(
        "timestamp[us]",
        _view([0, 2**62], pa.int64(), pa.timestamp("us")),
        [Cell("timestamp", ("us", 0)), UNREADABLE, NULL],
        "timestamp",
    )
    bools = ArrowColumn("bool", pa.array([True, False]), [True, False], "bool")
    money = ArrowColumn("decimal", pa.array([Decimal("5.00"), Decimal("0.10")]), [5, Decimal("0.1")], "decimal")
    return [
        ("int8, int64", [small, wholes]),
        ("int8, double", [small, doubles]),
        ("int64, string", [wholes, texts]),
        ("string, int64", [texts, wholes]),
        ("null, int64", [null, wholes]),
        ("null, string", [null, texts]),
        ("null, date32", [null, days]),
        ("date32, string", [days, texts]),
        ("date32, timestamp", [days, times]),
        ("string, binary", [views, raw]),
        ("bool, int64", [bools, wholes]),
        ("decimal, double, string", [money, doubles, texts]),
    ]


def _cut(others: Frames, parts: Sequence[ArrowColumn]) -> list[tuple[Frames, ArrowColumn]]:
    found, start = [], 0
    for part in parts:
        stop = start + len(part.array)
        found.append(({name: column[start:stop] for name, column in others.items()}, part))
        start = stop
    return found


def mixed_columns(folder: Path) -> Iterator[Column]:
    """Lists of batches and of frames, datasets and Dask frames whose parts differ."""
    for name, parts in mixed_parts():
        own = [cell for part in parts for cell in part.cells]
        families = tuple(part.family for part in parts)
        # A part of nulls says nothing: a value of one user may be what makes a type of it.
        digits = True
        makers: list[tuple[str, Callable[[Frames], Any]]] = [
            ("list of tables", _list_of_tables(parts)),
            ("list of batches", _list_of_batches(parts)),
            ("files of several types", _files(parts, folder)),
        ]
        for container, frame in makers:
            yield Column(container, name, own, frame, families, digits)
        yield Column("list of polars frames", name, own, _list_of_polars(parts), families, digits)
        yield Column("list of pandas frames", name, own, _list_of_pandas(parts))
        yield Column("list of pyarrow and pandas", name, own, _list_of_both(parts), families[::2])
        yield Column("dask, other types than stated", name, own, _dask_parts(parts))
    yield from partitioned_columns(folder)


def _list_of_tables(parts: Sequence[ArrowColumn]) -> Callable[[Frames], Any]:
    return lambda others: [_arrow_frame(own, part.array) for own, part in _cut(others, parts)]


def _list_of_batches(parts: Sequence[ArrowColumn]) -> Callable[[Frames], Any]:
    return lambda others: [
        batch for own, part in _cut(others, parts) for batch in _arrow_frame(own, part.array).to_batches()
    ]


def _files(parts: Sequence[ArrowColumn], folder: Path) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        where = Path(tempfile.mkdtemp(dir=folder))
        for place, (own, part) in enumerate(_cut(others, parts)):
            # In memory-mapped files of Arrow every type stays what it is.
            _write(_arrow_frame(own, part.array), where / f"{place}.feather", "feather")
        return ds.dataset(where, format="feather")

    return frame


def _list_of_polars(parts: Sequence[ArrowColumn]) -> Callable[[Frames], Any]:
    return lambda others: [pl.from_arrow(_arrow_frame(own, part.array)) for own, part in _cut(others, parts)]


def _pandas_part(own: Frames, part: ArrowColumn) -> Any:
    made = pd.DataFrame({name: pd.Series(column) for name, column in own.items()})
    made["x"] = pd.Series(pd.arrays.ArrowExtensionArray(part.array))
    return made


def _list_of_pandas(parts: Sequence[ArrowColumn]) -> Callable[[Frames], Any]:
    return lambda others: [_pandas_part(own, part) for own, part in _cut(others, parts)]


def _list_of_both(parts: Sequence[ArrowColumn]) -> Callable[[Frames], Any]:
    return lambda others: [
        _pandas_part(own, part) if place % 2 else _arrow_frame(own, part.array)
        for place, (own, part) in enumerate(_cut(others, parts))
    ]


def _dask_parts(parts: Sequence[ArrowColumn]) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        frames = [_pandas_part(own, part) for own, part in _cut(others, parts)]
        return _dask_of(frames, frames[0].iloc[:0])

    return frame


def _dask_of(frames: Sequence[Any], stated: Any) -> Any:
    """A Dask frame of these partitions and the types that it says they have."""
    import dask
    import dask.dataframe as dd

    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_delayed([dask.delayed(one, pure=False) for one in frames], meta=stated, verify_meta=False)


def partitioned_columns(folder: Path) -> Iterator[Column]:
    """Columns that are names of folders, as texts or as integers."""
    values = ["05", "7", "12"]
    for name, kind in (("string", pa.string()), ("int32", pa.int32())):

        def frame(others: Frames, kind: Any = kind) -> Any:
            where = Path(tempfile.mkdtemp(dir=folder))
            for place, value in enumerate(values):
                (where / f"x={value}").mkdir()
                rows = {column: pa.array(own[place : place + 1]) for column, own in others.items()}
                pq.write_table(pa.table(rows), where / f"x={value}" / "a.parquet")
            parts = ds.partitioning(pa.schema([("x", kind)]), flavor="hive")
            return ds.dataset(where, format="parquet", partitioning=parts)

        cells: list[Any] = values if name == "string" else [int(one) for one in values]
        # Names are texts, whatever they were taken for.
        yield Column("pyarrow, folders", name, cells, frame, ("string",), True)


# --- Dask


def dask_columns(cells: Sequence[Any]) -> Iterator[Column]:
    """Frames of pandas in partitions, and categories that are not known beforehand."""
    for column in pandas_columns(cells):
        if column.type.startswith(("ArrowDtype", "another owner", "interval", "Sparse", "complex")):
            continue
        yield Column("dask", column.type, column.cells, _dask_slices(column))

    def categories(others: Frames) -> Any:
        whole = pd.DataFrame(dict(others))
        parts = []
        for low, high, own in ((0, 2, ["05", "ann"]), (2, 4, ["x", "5"])):
            parts.append(whole.iloc[low:high].assign(x=pd.Categorical(own)))
        stated = parts[0].iloc[:0].assign(x=pd.Series(pd.Categorical([], categories=["__UNKNOWN_CATEGORIES__"])))
        return _dask_of(parts, stated)

    yield Column("dask", "unknown categories", ["05", "ann", "x", "5"], categories)


def _dask_slices(column: Column) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        whole = column.frame(others)
        parts = [whole.iloc[low:high] for low, high in _slices(len(whole))]
        return _dask_of(parts, whole.iloc[:0])

    return frame


# --- polars


def polars_series(cells: Sequence[Any]) -> Iterator[tuple[str, Any, Sequence[Any], str]]:
    """All types of polars."""
    texts, raw = _texts(cells), _binary(cells)
    for name in ("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64", "UInt128"):
        if not hasattr(pl, name):
            continue
        bits = int(name.lstrip("UInt"))
        signed = not name.startswith("U")
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        whole = whole_numbers(low, high)
        own: list[Any] = [*(Cell("np.int", one) for one in whole), NULL]
        yield name, pl.Series([*whole, None], dtype=getattr(pl, name)), own, "int"
    for name, kind in (("Float16", "float16"), ("Float32", "float32"), ("Float64", "float64")):
        if not hasattr(pl, name):
            continue
        with np.errstate(all="ignore"):
            floats = [float(one) for one in np.array(DOUBLES, dtype=kind)]
        own = [*(Cell("np.float", one) for one in floats), NULL]
        yield name, pl.Series([*floats, None], dtype=getattr(pl, name)), own, "float"
    yield "Boolean", pl.Series([True, False, None]), [True, False, NULL], "bool"
    for digits, scale in ((38, 0), (38, 10), (20, 2), (38, 38)):
        whole = [one for one in decimals(digits) if abs(one) < 10**digits]
        with decimal.localcontext(decimal.Context(prec=100)):
            values = [*(Decimal(one).scaleb(-scale) for one in whole), None]
            series = pl.from_arrow(pa.array(values, pa.decimal128(digits, scale)))
        own = [*(Cell("decimal", (one, scale)) for one in whole), NULL]
        yield f"Decimal({digits}, {scale})", series, own, "decimal"
    yield "String", pl.Series(texts, dtype=pl.String), texts, "string"
    yield "Binary", pl.Series(raw, dtype=pl.Binary), raw, "binary"
    distinct = [one for one in texts if one is not None]
    coded = [*distinct, None, distinct[0]]
    yield "Categorical", pl.Series(coded, dtype=pl.Categorical), coded, "string"
    yield "Enum", pl.Series([*distinct, None], dtype=pl.Enum(distinct)), [*distinct, NULL], "string"
    yield from _polars_times()
    yield "Null", pl.Series([None, None]), [NULL, NULL], "null"
    for name, series, family in (
        ("List", pl.Series([[1], [], None]), "list"),
        ("Array", pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int64, 2)), "list"),
        ("Struct", pl.Series([{"a": 1}, {"a": 2}, {"a": 3}]), "struct"),
        ("Duration", pl.Series([5, 2**62, None], dtype=pl.Int64).cast(pl.Duration("us")), "duration"),
    ):
        yield name, series, [UNREADABLE] * 3, family
    made, kept = objects([one for one in cells if one is not None and not _beyond_doubles(one)])
    yield "Object", pl.Series(made, dtype=pl.Object), kept, "object"


def _beyond_doubles(cell: Any) -> bool:
    """Whether doubles and digits read a cell as two: whether objects in polars are declared is not said."""
    return identity(cell) != identity(cell, True) or text(cell) != text(cell, True)


def _polars_times() -> Iterator[tuple[str, Any, Sequence[Any], str]]:
    own: list[Any] = [*(Cell("date32", one) for one in DAYS), NULL]
    yield "Date", pl.Series([*DAYS, None], dtype=pl.Int32).cast(pl.Date), own, "date"
    for unit in ("ms", "us", "ns"):
        whole = ticks(unit)
        own = [*(Cell("timestamp", (unit, one)) for one in whole), NULL]
        raw = pl.Series([*whole, None], dtype=pl.Int64)
        for zone in (None, "UTC", "Europe/Berlin"):
            family = "timestamp" if zone is None else "timestamp_zone"
            yield f"Datetime({unit}, {zone})", raw.cast(pl.Datetime(unit, zone)), own, family
    whole = [0, 1, 34_200 * 10**9, DAY * 1000 - 1]
    own = [*(Cell("time64", ("ns", one)) for one in whole), NULL]
    yield "Time", pl.Series([*whole, None], dtype=pl.Int64).cast(pl.Time), own, "clock"


def _polars(series: Any, lazy: bool) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        made = pl.DataFrame({name: pl.Series(column) for name, column in others.items()})
        made = made.with_columns(series.alias("x"))
        return made.lazy() if lazy else made

    return frame


def polars_columns(cells: Sequence[Any]) -> Iterator[Column]:
    """All types of polars, in frames and in plans."""
    for name, series, own, family in polars_series(cells):
        for container, lazy in (("polars", False), ("polars, lazy", True)):
            yield Column(container, name, own, _polars(series, lazy), (family,), family != "null")


# --- DuckDB and Ibis

DAY_IN_JANUARY, MORNING = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 9, 30)
DUCKDB_TYPES: list[tuple[str, str, list[tuple[str, Any]]]] = [
    ("BOOLEAN", "bool", [("true", True), ("false", False)]),
    ("TINYINT", "int", [("-128", -128), ("127", 127), ("5", 5)]),
    ("UTINYINT", "int", [("255", 255), ("5", 5)]),
    ("SMALLINT", "int", [("-32768", -32768), ("5", 5)]),
    ("INTEGER", "int", [("2147483647", 2**31 - 1), ("-2147483648", -(2**31)), ("5", 5)]),
    ("BIGINT", "int", [("9223372036854775807", 2**63 - 1), ("5", 5), ("1152921504606846977", 2**60 + 1)]),
    ("UBIGINT", "int", [("18446744073709551615", 2**64 - 1), ("5", 5)]),
    ("HUGEINT", "decimal", [("'170141183460469231731687303715884105727'", 2**127 - 1), ("5", 5), ("-5", -5)]),
    ("UHUGEINT", "decimal", [("'340282366920938463463374607431768211455'", 2**128 - 1), ("5", 5)]),
    ("FLOAT", "float", [("0.5", 0.5), ("'nan'", math.nan), ("'inf'", math.inf), ("5", 5.0)]),
    ("DOUBLE", "float", [("0.1", 0.1), ("'nan'", math.nan), ("'-inf'", -math.inf), ("5", 5.0)]),
    (
        "DECIMAL(18, 3)",
        "decimal",
        [("1.500", Decimal("1.5")), ("5", 5), ("999999999999999.999", Decimal("999999999999999.999"))],
    ),
    ("DECIMAL(38, 0)", "decimal", [("99999999999999999999999999999999999999", 10**38 - 1), ("5", 5)]),
    ("VARCHAR", "string", [("'05'", "05"), ("'ann'", "ann"), ("'2024-01-31'", "2024-01-31"), ("''", "")]),
    ("UUID", "string", [("'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"))]),
    ("BLOB", "binary", [("'05'", b"05"), (r"'\xFF\xFE'", b"\xff\xfe"), (r"'\x05\x00'", b"\x05\x00")]),
    (
        "DATE",
        "date",
        [("'2024-01-31'", dt.date(2024, 1, 31)), ("'infinity'", UNREADABLE), ("'5877642-06-25 (BC)'", UNREADABLE)],
    ),
    ("TIMESTAMP", "timestamp", [("'2024-01-31 09:30'", MORNING), ("'infinity'", UNREADABLE)]),
    ("TIMESTAMP_S", "timestamp", [("'2024-01-31 09:30'", MORNING)]),
    ("TIMESTAMP_MS", "timestamp", [("'2024-01-31 09:30'", MORNING)]),
    ("TIMESTAMP_NS", "timestamp", [("'2024-01-31 09:30'", MORNING)]),
    (
        "TIMESTAMPTZ",
        "timestamp_zone",
        [("'2024-01-31 09:30+00'", dt.datetime(2024, 1, 31, 9, 30)), ("'-infinity'", UNREADABLE)],
    ),
    ("TIME", "clock", [("'09:30'", dt.time(9, 30)), ("'24:00:00'", UNREADABLE)]),
    ("ENUM('05', 'ann')", "string", [("'05'", "05"), ("'ann'", "ann")]),
    ("INTERVAL", "interval", [("'1 day'", UNREADABLE)]),
    ("INTEGER[]", "list", [("[1]", UNREADABLE)]),
    ("STRUCT(a INTEGER)", "struct", [("{'a': 1}", UNREADABLE)]),
    ("MAP(VARCHAR, INTEGER)", "map", [("map {'a': 1}", UNREADABLE)]),
]
"""Types of DuckDB, the family of each, and values of it as SQL writes them."""


def duckdb_columns() -> Iterator[Column]:
    """Relations of DuckDB, and tables of Ibis over them."""
    if duckdb is None:
        return
    for name, family, values in DUCKDB_TYPES:
        own = [*(cell for _, cell in values), NULL]
        try:
            _connection().sql(_sql(name, values, {}))
        except duckdb.Error:
            continue
        yield Column("duckdb", name, own, _relation(name, values), (family,), True)
        # What Ibis makes of 128 bits is its own matter.
        if _ibis_streams() and "HUGEINT" not in name:
            yield Column("ibis", name, own, _ibis(name, values), (family,), True)


@functools.cache
def _connection() -> Any:
    return duckdb.connect()


@functools.cache
def _ibis_connection() -> Any:
    return ibis.duckdb.connect()


def _ibis_streams() -> bool:
    """Whether Ibis is there."""
    return ibis is not None


_NUMBERS = itertools.count()


def _sql(name: str, values: Sequence[tuple[str, Any]], others: Frames) -> str:
    rows = []
    for place, literal in enumerate([*(one for one, _ in values), "NULL"]):
        beside = ", ".join(f"{_literal(column[place])} AS {label}" for label, column in others.items())
        rows.append(f"SELECT {beside}{', ' if beside else ''}CAST({literal} AS {name}) AS x")
    return " UNION ALL ".join(rows)


def _literal(value: Any) -> str:
    if isinstance(value, np.datetime64):
        text = str(value.astype("M8[us]")).replace("T", " ")
        return f"CAST('{text}' AS TIMESTAMP)"
    if isinstance(value, np.floating):
        return f"CAST('{float(value)!r}' AS DOUBLE)"
    return f"CAST({int(value)} AS BIGINT)"


def _relation(name: str, values: Sequence[tuple[str, Any]]) -> Callable[[Frames], Any]:
    return lambda others: _connection().sql(_sql(name, values, others))


def _ibis(name: str, values: Sequence[tuple[str, Any]]) -> Callable[[Frames], Any]:
    def frame(others: Frames) -> Any:
        table = f"own{next(_NUMBERS)}"
        _ibis_connection().raw_sql(f"CREATE TABLE {table} AS {_sql(name, values, others)}")
        return _ibis_connection().table(table)

    return frame


# --- all of them


def columns(cells: Sequence[Any], folder: Path) -> Iterator[Column]:
    """The cells in every container and type that can hold them, and each type with the ends of its own range."""
    yield from pandas_columns(cells)
    yield from dict_columns(cells)
    yield from polars_columns(cells)
    yield from arrow_columns(cells, folder)
    yield from mixed_columns(folder)
    yield from dask_columns(cells)
    yield from duckdb_columns()
