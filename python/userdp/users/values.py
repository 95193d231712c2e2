"""Values as they physically are: foreign columns by their buffers, foreign objects by their exact classes.

The core reads what comes out of here by one rule. No method of a value is called, and no value is handed to code that
can fail on it: a library's own reading of a date beyond its calendar raises, and one user's date would end a release.

What a column *is* decides how it is taken. A type is **declared** where no value of a row can change it: columns of
Arrow, polars, databases and our own CSV. In NumPy, pandas, Dask and lists one odd value makes objects of numbers, or
doubles of integers, so that nothing is ever refused by those types.
"""

from __future__ import annotations

import datetime
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from userdp import _core

Array: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]
Form: TypeAlias = "tuple[Any, ...]"
"""A value taken apart: what it is, and plain values of Python."""
Family: TypeAlias = str
Spelling: TypeAlias = Literal["doubles", "digits", "written"]
Marks: TypeAlias = "tuple[str, str | None]"
"""What stands before the decimals of numbers in texts, and between groups of three digits."""

LARGEST_WHOLE = 2**53 - 1
"""Doubles tell whole numbers up to here apart. NumPy and pandas make doubles of integers for one missing value."""
MOST_BITS = 13_000
"""Of an integer with all its digits; longer ones are infinite."""
MOST_PARTS = 4096
"""Of a tuple, those in its tuples counted too."""
VALUE, MISSING, UNREADABLE = 0, 1, 2
"""Of a row's cell: it has a value, there is none, or there is something that is not read."""

NUMBERS, TIMES = frozenset({"number", "integer", "boolean", "key(int)"}), frozenset({"day", "time"})
TEXTS = frozenset({"text", "id"})
KINDS = NUMBERS | TIMES | TEXTS
FAMILIES: dict[Family, frozenset[str]] = {
    **dict.fromkeys(("bool", "integer", "float", "decimal"), NUMBERS | TEXTS),
    **dict.fromkeys(("text", "bytes", "null", "object"), KINDS),
    **dict.fromkeys(("date", "timestamp"), TIMES | TEXTS),
    **dict.fromkeys(("time of day", "UUID"), TEXTS),
    **dict.fromkeys(("duration", "interval", "list", "struct", "map", "union", "unknown"), frozenset[str]()),
}
"""Declared types by what is there, and as what each is read. All else is refused when a session is made."""
_CURES = {
    "duration": "make a number of it before, such as .dt.total_seconds()",
    "struct": "select one of its fields before",
    "list": "make a row of each entry before (explode), or select one entry",
    "map": "select one of its values before",
    "date": ".year(), .month() and the like make numbers of a timestamp(low, high)",
    "timestamp": ".year(), .month() and the like make numbers of a timestamp(low, high)",
    "time of day": "make a number of it before, such as .dt.hour()",
}
READS = {
    "number": "numbers, texts of numbers, and bools",
    "integer": "whole numbers, texts of them, and bools",
    "key(int)": "whole numbers below 2**53, texts of them, and bools",
    "boolean": "bools, 1 and 0, and the words true, t, yes, y, on, false, f, no, n, off",
    "text": "texts, numbers, bools, dates and times",
    "day": "dates, times, and texts of them such as 2024-01-31",
    "time": "dates, times, and texts of them such as 2024-01-31 09:30",
    "id": "texts, bytes, numbers, bools, dates, times, UUIDs, and tuples of these",
}
"""What each kind reads, in words. Texts that say a number are that number."""


@dataclass(frozen=True)
class Column:
    """One column, as it was given."""

    cells: _core.Column
    dtype: str  # the type in its owner's words, for messages
    family: Family | None = None  # of a declared type; None where a value may change the type

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def declared(self) -> bool:
        """Whether no value can change the type; of nulls there is nothing to be changed."""
        return self.family is not None and self.family != "object"


def refused(column: Column, name: str, kind: str, needed: str) -> TypeError | None:
    """The error for a column of a declared type of which a kind reads nothing; None where it reads some."""
    if column.family is None or kind in FAMILIES[column.family]:
        return None
    cure = f"; {_CURES[column.family]}" if column.family in _CURES else ""
    return TypeError(
        f"{name} is of type {column.dtype}, and {needed} can be read of none of its values: it reads {READS[kind]}"
        f"{cure} (docs/reading.md)"
    )


# --- objects, by their exact classes

_ODD: Form = ("odd",)
_GONE: Form = ("missing",)
_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DAY = 86_400_000_000
_FIRST, _LAST = (1 - _EPOCH) * _DAY, (datetime.date.max.toordinal() - _EPOCH + 1) * _DAY
_MRO: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_MONTHS = {"Y": 12, "A": 12, "Q": 3, "M": 1}
_CLOCKS = {"D": "D", "h": "h", "H": "h", "min": "m", "T": "m", "s": "s", "S": "s", "ms": "ms", "L": "ms", "us": "us"}
_CLOCKS |= {"U": "us", "ns": "ns", "N": "ns"}
_NANOSECONDS = {"W": 604_800_000_000_000, "D": 86_400_000_000_000, "h": 3_600_000_000_000, "m": 60_000_000_000}
_NANOSECONDS |= {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


def _field(kind: type, name: str) -> Callable[[Any], Any]:
    """A field of a class as the class itself reads it, whatever a class made from it does."""
    for base in _MRO(kind):
        if name in vars(base):
            found = vars(base)[name]
            return lambda value: found.__get__(value)
    raise AttributeError(name)


_HOURS = [_field(datetime.time, name) for name in ("hour", "minute", "second", "microsecond")]
_CLOCK = [_field(datetime.datetime, name) for name in ("hour", "minute", "second", "microsecond")]
_ZONE, _HOUR_ZONE = _field(datetime.datetime, "tzinfo"), _field(datetime.time, "tzinfo")
_FOLD = _field(datetime.datetime, "fold")
_TOP, _BOTTOM = _field(Fraction, "_numerator"), _field(Fraction, "_denominator")
_UUID_INT = _field(UUID, "int")
_REAL, _IMAGINARY = _field(complex, "real"), _field(complex, "imag")


def taken(value: Any) -> Form:
    """What a value is, by its exact class, or by the class of Python's that its class was made from.

    Examples
    --------
    >>> from decimal import Decimal
    >>> taken(Decimal("0.10")), taken(object())
    (('decimal', '10e-2'), ('odd',))
    """
    kind = type(value)
    reader = _readers().get(id(kind))
    if reader is None and kind is not getattr(sys.modules.get("pyarrow"), "MonthDayNano", None):
        reader = next((_BASES[base] for base in _MRO(kind) if base in _BASES), None)
    if reader is None:
        return _ODD
    try:
        return reader(value)
    except Exception:  # such as a zone that fails on a time
        return _ODD


def _digits(number: int) -> str:
    """The digits of an integer: Python writes long ones only as far as a setting allows."""
    sign, number = ("-", -number) if number < 0 else ("", number)
    parts = []
    while number >= 10**600:
        number, part = divmod(number, 10**600)
        parts.append(f"{part:0600d}")
    return sign + str(number) + "".join(reversed(parts))


def _of_integer(value: Any) -> Form:
    number = int.__int__(value)
    if -(2**63) <= number < 2**63:
        return "whole", number
    if number.bit_length() > MOST_BITS:
        return "float", math.inf if number > 0 else -math.inf
    return "decimal", _digits(number)


def _of_float(value: Any) -> Form:
    return "float", float.__float__(value)


def _of_text(value: Any) -> Form:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return "broken", text.encode("utf-8", "surrogatepass")
    return "text", text


def _of_decimal(value: Any) -> Form:
    sign, digits, exponent = Decimal.as_tuple(value)
    if not isinstance(exponent, int):
        return _GONE if exponent in ("n", "N") else ("float", -math.inf if sign else math.inf)
    return "decimal", f"{'-' if sign else ''}{''.join(map(str, digits))}e{exponent}"


def _of_fraction(value: Any) -> Form:
    top, bottom = _TOP(value), _BOTTOM(value)
    if not (type(top) is int and type(bottom) is int and bottom > 0):
        return _ODD
    if bottom == 1:
        return _of_integer(top)
    try:
        return "decimal", repr(top / bottom)
    except OverflowError:
        return "float", math.inf if top > 0 else -math.inf


def _of_complex(value: Any) -> Form:
    # One complex number makes complex numbers of a whole column.
    return ("float", _REAL(value)) if _IMAGINARY(value) == 0 else _ODD


def _of_date(value: Any) -> Form:
    return "time", (datetime.date.toordinal(value) - _EPOCH) * _DAY


def _of_datetime(value: Any) -> Form:
    zone = _ZONE(value)
    hour, minute, second, part = (read(value) for read in _CLOCK)
    time = (datetime.date.toordinal(value) - _EPOCH) * _DAY + ((hour * 60 + minute) * 60 + second) * 10**6 + part
    if zone is not None:
        offset = _offset(
            zone, datetime.date.fromordinal(datetime.date.toordinal(value)), (hour, minute, second, part), value
        )
        if offset is None:
            return _ODD
        time -= offset
    return ("time", time) if _FIRST <= time < _LAST else _ODD


def _offset(zone: Any, day: datetime.date, clock: tuple[int, int, int, int], value: Any) -> int | None:
    """How many microseconds a zone is before UTC, of the zones that are known by their class."""
    if _of_pytz(type(zone)):
        offset = zone._utcoffset
    elif known_zone(zone):
        offset = zone.utcoffset(datetime.datetime(day.year, day.month, day.day, *clock, zone, fold=_FOLD(value)))
    else:
        return None
    return int(offset // datetime.timedelta(microseconds=1))


_ZONES = {
    "datetime": ("timezone",),
    "zoneinfo": ("ZoneInfo",),
    "dateutil.tz": ("tzutc", "tzoffset", "tzfile", "tzlocal", "tzrange", "tzstr"),
    "psycopg2.tz": ("FixedOffsetTimezone", "LocalTimezone"),
}


def known_zone(zone: Any) -> bool:
    """Whether the class of a zone is one whose times are read."""
    kind = type(zone)
    if _of_pytz(kind):
        return True
    return any(getattr(sys.modules.get(owner), name, None) is kind for owner, names in _ZONES.items() for name in names)


def _of_pytz(kind: type) -> bool:
    """Whether a zone is of pytz, where each is a class of its own."""
    base = getattr(sys.modules.get("pytz.tzinfo"), "BaseTzInfo", None)
    return base is not None and base in _MRO(kind)


def _of_hours(value: Any) -> Form:
    if _HOUR_ZONE(value) is not None:
        return _ODD
    hour, minute, second, part = (read(value) for read in _HOURS)
    return "clock", ((hour * 60 + minute) * 60 + second) * 10**6 + part


def _of_uuid(value: Any) -> Form:
    number = _UUID_INT(value)
    return ("text", str(UUID(int=number))) if type(number) is int and 0 <= number < 2**128 else _ODD


def _of_tuple(value: Any) -> Form:
    return _parts(value, 0, [MOST_PARTS])


def _parts(value: Any, depth: int, left: list[int]) -> Form:
    """The parts of a tuple; of tuples in tuples only so many, as a few that share their parts have any number."""
    parts = tuple.__getitem__(value, slice(0, 65))
    left[0] -= len(parts)
    if left[0] < 0 or depth > 4:
        return _ODD
    return "tuple", tuple(_parts(part, depth + 1, left) if tuple in _MRO(type(part)) else taken(part) for part in parts)


def _of_numpy_integer(value: Any) -> Form:
    return _of_integer(value.item())


def _of_numpy_float(value: Any) -> Form:
    with np.errstate(all="ignore"):
        return "float", float(value)


def _of_numpy_time(value: Any) -> Form:
    unit, count = np.datetime_data(value.dtype)
    return _instant(int(value.view("i8")), unit, count)


def _instant(number: int, unit: str, count: int = 1) -> Form:
    """A time by its integer."""
    if number == -(2**63):
        return _GONE
    if unit in ("Y", "M"):
        month = number * count * (12 if unit == "Y" else 1)
        if not 1 <= 1970 + month // 12 <= 9999:
            return _ODD
        return _of_date(datetime.date(1970 + month // 12, month % 12 + 1, 1))
    if unit not in _NANOSECONDS:
        return _ODD
    time = number * count * _NANOSECONDS[unit] // 1000
    return ("time", time) if _FIRST <= time < _LAST else _ODD


def _of_timestamp(value: Any) -> Form:
    """A Timestamp of pandas, which counts in UTC."""
    if value.tz is not None and not known_zone(value.tz):
        return _ODD
    return _of_numpy_time(value.asm8)


def _of_period(value: Any) -> Form:
    return period_form(value.freqstr, value.ordinal)


def period_form(frequency: str, ordinal: int) -> Form:
    """A period by its number: months, quarters and years by name, days and shorter ones as the times they begin at."""
    if ordinal == -(2**63):
        return _GONE
    base, _, end = frequency.partition("-")
    base = base.removesuffix("E") if base in ("ME", "QE", "YE") else base
    if base in _MONTHS:
        each = _MONTHS[base]
        year, month = divmod(ordinal * each, 12)
        if not 1 <= 1970 + year <= 9999:
            return _ODD
        start = _of_date(datetime.date(1970 + year, month + 1, 1))[1] if end in ("", "DEC") else None
        names = {12: f"{1970 + year}", 3: f"{1970 + year:04}Q{month // 3 + 1}", 1: f"{1970 + year:04}-{month + 1:02}"}
        return "period", names[each], start
    return _instant(ordinal, _CLOCKS[base]) if base in _CLOCKS and not end else _ODD


def _of_interval(value: Any) -> Form:
    return interval_form(value.left, value.right, value.closed)


def interval_form(low: Any, high: Any, closed: str) -> Form:
    """An interval by its ends."""
    return "interval", taken(low), taken(high), closed in ("left", "both"), closed in ("right", "both")


def _constant(form: Form) -> Callable[[Any], Form]:
    return lambda value: form


# In the order in which Python's classes are made from each other; a class of another owner counts as the first of its
# own order that is here.
_BASES: dict[type, Callable[[Any], Form]] = {
    bool: lambda value: ("bool", value),
    int: _of_integer,
    float: _of_float,
    complex: _of_complex,
    str: _of_text,
    bytes: lambda value: ("bytes", bytes.__getitem__(value, slice(None))),
    Decimal: _of_decimal,
    Fraction: _of_fraction,
    datetime.datetime: _of_datetime,
    datetime.date: _of_date,
    datetime.time: _of_hours,
    UUID: _of_uuid,
    tuple: _of_tuple,
}
_NUMPY: dict[int, Callable[[Any], Form]] = {
    id(np.bool_): lambda value: ("bool", bool(value)),
    **{id(np.dtype(code).type): _of_numpy_integer for code in "bhilqBHILQ"},
    **{id(kind): _of_numpy_float for kind in (np.float16, np.float32, np.float64, np.longdouble)},
    **{id(kind): lambda value: _of_complex(complex(value)) for kind in (np.complex64, np.complex128, np.clongdouble)},
    id(np.datetime64): _of_numpy_time,
    id(np.timedelta64): _constant(_ODD),
    id(np.void): _constant(_ODD),
    **{id(kind): _constant(_GONE) for kind in (type(None), type(np.ma.masked))},
}
_WITH_PANDAS: dict[int, Callable[[Any], Form]] = {}


def _readers() -> dict[int, Callable[[Any], Form]]:
    """Readers by the identity of classes; those of pandas once it is there."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not hasattr(pandas, "Interval"):
        return _NUMPY
    if not _WITH_PANDAS:
        _WITH_PANDAS.update(_NUMPY)
        of_pandas: dict[Any, Callable[[Any], Form]] = {
            type(pandas.NA): _constant(_GONE),
            type(pandas.NaT): _constant(_GONE),
            pandas.Timestamp: _of_timestamp,
            pandas.Timedelta: _constant(_ODD),
            pandas.Period: _of_period,
            pandas.Interval: _of_interval,
        }
        _WITH_PANDAS.update({id(kind): reader for kind, reader in of_pandas.items()})
    return _WITH_PANDAS


def of_objects(values: Sequence[Any], dtype: str = "object", family: Family | None = None) -> Column:
    """A column of objects, each read by what it is."""
    return Column(_core.Column.objects(_vector(values), taken), dtype, family)


def of_forms(forms: Sequence[Form]) -> _core.Column:
    """Cells of values that were taken apart."""
    return _core.Column.objects(_vector([_Taken(form) for form in forms]), lambda held: held.form)


def _vector(values: Any) -> npt.NDArray[Any]:
    """A vector of objects; NumPy asks nothing of them, as it does where arrays are made of lists."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    return np.fromiter(values, dtype=object, count=len(values))


@dataclass(frozen=True)
class _Taken:
    form: Form


# --- NumPy


def of_array(values: Array, family: Family | None = None, *, missing: Mask | None = None) -> Column:
    """A vector of NumPy, by its type; text by text and object by object where it holds such."""
    if isinstance(values, np.ma.MaskedArray):
        # What is behind a mask is looked at by nobody.
        missing, values = np.ma.getmaskarray(values), values.data
    values = np.asarray(values)
    dtype, kind = str(values.dtype), values.dtype.kind
    if kind in "OUSTc":
        objects: Any = values if kind == "O" else as_objects(values)
        if missing is not None:
            objects = [None if gone else value for value, gone in zip(objects, missing.tolist(), strict=True)]
        return of_objects(objects, dtype, family)
    return Column(_typed(values, missing), dtype, family)


def _typed(values: Array, missing: Mask | None) -> _core.Column:
    kind, missing = values.dtype.kind, _mask(missing)
    if kind == "b":
        return _core.Column.bools(np.ascontiguousarray(values), missing)
    if kind == "u" and values.dtype.itemsize == 8:
        return _core.Column.unsigned(_as(values, np.uint64), missing)
    if kind in "iu":
        return _core.Column.integers(_as(values, np.int64), missing)
    if kind == "f":
        with np.errstate(all="ignore"):
            return _core.Column.floats(_as(values, np.float64), missing)
    if kind == "M":
        unit, count = np.datetime_data(values.dtype)
        native = _as(values, values.dtype.newbyteorder("="))
        return _core.Column.times(native.view(np.int64), unit, count, missing)
    return _core.Column.unreadable(len(values))


def _mask(missing: Mask | None) -> Mask | None:
    """A mask as the core takes it: a column's lies apart in a table's."""
    return None if missing is None else np.ascontiguousarray(missing, dtype=np.bool_)


def _as(values: Array, dtype: Any) -> Any:
    return np.ascontiguousarray(values.astype(dtype, copy=False))


def as_objects(vector: Array) -> list[Any]:
    """An array's values one by one; None for a text whose characters are none, at which NumPy raises."""
    if vector.dtype.kind not in "biufcUST":  # of times, some units are integers in Python
        return list(vector)
    try:
        objects: list[Any] = vector.tolist()
        return objects
    except (ValueError, SystemError):
        return [_one(vector, place) for place in range(len(vector))]


def _one(vector: Array, place: int) -> Any:
    try:
        return vector[place : place + 1].tolist()[0]
    except Exception:  # the one text that is none
        return None


def head(dtype: str, family: Family) -> Column:
    """A column of a declared type, without rows."""
    return Column(_core.Column.unreadable(0), dtype, family)


def gone(count: int, dtype: str = "null", family: Family | None = "null") -> Column:
    """A column of so many missing values."""
    return Column(_core.Column.integers(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_)), dtype, family)


def _coded(codes: Array, of: _core.Column, missing: Mask | None = None) -> _core.Column:
    return _core.Column.coded(_as(codes, np.int64), of, _mask(missing))


# --- pandas: no type is declared, since concatenations and readers change every one


def of_pandas(series: Any) -> Column:
    """A column of pandas, by the type that it has at hand."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return of_array(series.to_numpy())
    label, array = str(dtype), series.array
    own = type(dtype).__module__.partition(".")[0] == "pandas"
    return Column(_of_extension(dtype, array, series) if own else _core.Column.unreadable(len(series)), label)


def _of_extension(dtype: Any, array: Any, series: Any) -> _core.Column:
    import pandas

    if isinstance(dtype, pandas.CategoricalDtype):
        return _coded(array.codes, of_pandas(pandas.Series(array.categories)).cells)
    if isinstance(dtype, pandas.DatetimeTZDtype):
        if not known_zone(dtype.tz):
            return _core.Column.unreadable(len(array))
        return _core.Column.times(_as(array.asi8, np.int64), dtype.unit)
    if isinstance(dtype, pandas.PeriodDtype):
        ordinals, codes = np.unique(array.asi8, return_inverse=True)
        frequency = getattr(dtype.freq, "freqstr", "")
        # The frequency of a period, where that of an offset has another name.
        frequency = getattr(dtype, "_freqstr", frequency) or frequency
        return _coded(codes.reshape(-1), of_forms([period_form(frequency, number) for number in ordinals.tolist()]))
    if isinstance(dtype, pandas.IntervalDtype):
        ends = zip(pandas.Series(array.left).tolist(), pandas.Series(array.right).tolist(), array.isna(), strict=True)
        return of_forms([_GONE if none else interval_form(low, high, array.closed) for low, high, none in ends])
    if isinstance(dtype, pandas.SparseDtype):
        return of_array(np.asarray(array)).cells
    if isinstance(dtype, pandas.StringDtype) and dtype.storage == "python":
        return of_objects(array.to_numpy(dtype=object)).cells
    if isinstance(dtype, (pandas.StringDtype, pandas.ArrowDtype)):
        return of_arrow(array.__arrow_array__()).cells
    kind = getattr(dtype, "kind", "")
    if kind in "biuf" and hasattr(dtype, "numpy_dtype"):
        return _typed(array.to_numpy(dtype=dtype.numpy_dtype, na_value=0), np.asarray(array.isna(), dtype=np.bool_))
    return _core.Column.unreadable(len(array))


# --- Arrow, by its buffers


def of_arrow(array: Any) -> Column:
    """A column of Arrow, in one piece or in chunks."""
    family = family_of_arrow(array.type)
    label = str(array.type)
    chunks = getattr(array, "chunks", None)
    if chunks is None:
        return Column(_of_chunk(array), label, family)
    if len(chunks) == 1:
        return Column(_of_chunk(chunks[0]), label, family)
    return Column(_core.Column.joined([_of_chunk(chunk) for chunk in chunks]), label, family)


def family_of_arrow(kind: Any) -> Family:
    """What there is in a column of a type."""
    import pyarrow
    from pyarrow import types

    if isinstance(kind, pyarrow.BaseExtensionType):
        name = getattr(kind, "extension_name", "")
        return {"arrow.uuid": "UUID", "arrow.bool8": "bool", "arrow.json": "text"}.get(name, "unknown")
    if types.is_dictionary(kind):
        return family_of_arrow(kind.value_type)
    if types.is_run_end_encoded(kind):
        return family_of_arrow(kind.value_type)
    tests: dict[str, Callable[[Any], bool]] = {
        "null": types.is_null,
        "bool": types.is_boolean,
        "integer": types.is_integer,
        "float": types.is_floating,
        "decimal": types.is_decimal,
        "text": lambda kind: types.is_string(kind) or types.is_large_string(kind) or _view(kind, "string_view"),
        "bytes": lambda kind: (
            types.is_binary(kind)
            or types.is_large_binary(kind)
            or types.is_fixed_size_binary(kind)
            or _view(kind, "binary_view")
        ),
        "date": types.is_date,
        "timestamp": types.is_timestamp,
        "time of day": types.is_time,
        "duration": types.is_duration,
        "interval": types.is_interval,
        "struct": types.is_struct,
        "map": types.is_map,
        "union": types.is_union,
        "list": lambda kind: types.is_nested(kind),
    }
    return next((name for name, test in tests.items() if test(kind)), "unknown")


def _view(kind: Any, name: str) -> bool:
    return str(kind) == name


def _of_chunk(array: Any) -> _core.Column:
    import pyarrow
    from pyarrow import types

    kind, count = array.type, len(array)
    family = family_of_arrow(kind)
    if isinstance(kind, pyarrow.BaseExtensionType):
        if family == "UUID":
            return _of_uuids(array.storage)
        if family == "unknown":
            return _core.Column.unreadable(count)
        storage = array.storage
        if family == "bool":  # bytes, of which 0 is false
            return _core.Column.bools(_fixed(storage, np.int8) != 0, _missing(storage))
        return _of_chunk(storage)
    if types.is_dictionary(kind):
        return _coded(_filled(array.indices), of_arrow(array.dictionary).cells, _missing(array.indices))
    if types.is_run_end_encoded(kind):
        ends = np.asarray(array.run_ends)
        codes = np.searchsorted(ends, np.arange(count) + array.offset, side="right")
        return _coded(codes, of_arrow(array.values).cells)
    if family == "null":
        return gone(count).cells
    if family in ("text", "bytes"):
        return _of_texts(array, binary=family == "bytes")
    missing = _missing(array)
    if family == "bool":
        values = _bits(array, 1) if count else np.zeros(0, dtype=np.bool_)
        return _core.Column.bools(values, missing)
    if family in ("integer", "float"):
        return _typed(_fixed(array, kind.to_pandas_dtype()), missing)
    if family == "decimal":
        content = _fixed(array, np.dtype((np.void, kind.bit_width // 8)))
        return _core.Column.decimals(
            np.ascontiguousarray(content).view(np.uint8).reshape(-1), kind.bit_width // 8, kind.scale, missing
        )
    if family == "date":
        days = types.is_date32(kind)
        values = _as(_fixed(array, np.int32 if days else np.int64), np.int64)
        return _core.Column.times(values, "D" if days else "day of ms", 1, missing)
    if family == "timestamp":
        return _core.Column.times(_as(_fixed(array, np.int64), np.int64), kind.unit, 1, missing)
    if family == "time of day":
        values = _as(_fixed(array, np.int32 if types.is_time32(kind) else np.int64), np.int64)
        return _core.Column.clocks(values, _NANOSECONDS[kind.unit], missing)
    return _core.Column.unreadable(count)


def _missing(array: Any) -> Mask | None:
    return ~_bits(array, 0) if array.null_count else None


def _bits(array: Any, place: int) -> Mask:
    """One of an array's buffers of bits; of what it shares with others only its own bytes."""
    first, last = array.offset // 8, (array.offset + len(array) + 7) // 8
    held = np.frombuffer(array.buffers()[place], dtype=np.uint8)[first:last]
    start = array.offset % 8
    return np.unpackbits(held, bitorder="little")[start : start + len(array)].astype(np.bool_)


def _fixed(array: Any, dtype: Any) -> Any:
    """The values of a column whose values have one length; of rows without one whatever stands there."""
    if not len(array):
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(array.buffers()[1], dtype=dtype)[array.offset : array.offset + len(array)]


def _filled(indices: Any) -> Array:
    """Codes, with -1 where there is none."""
    codes = _as(_fixed(indices, indices.type.to_pandas_dtype()), np.int64)
    missing = _missing(indices)
    return codes if missing is None else np.where(missing, -1, codes)


def _of_texts(array: Any, *, binary: bool) -> _core.Column:
    from pyarrow import types

    missing, count = _missing(array), len(array)
    if _view(array.type, "string_view") or _view(array.type, "binary_view"):
        array = array.cast("large_binary" if binary else "large_string")
    if not count:
        return _core.Column.texts(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64), binary=binary)
    if types.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        offsets = np.arange(array.offset, array.offset + count + 1, dtype=np.int64) * width
        buffer = array.buffers()[1]
    else:
        long = types.is_large_string(array.type) or types.is_large_binary(array.type)
        places = np.frombuffer(array.buffers()[1], dtype=np.int64 if long else np.int32)
        offsets = _as(places[array.offset : array.offset + count + 1], np.int64)
        buffer = array.buffers()[2]
    content = np.zeros(0, dtype=np.uint8) if buffer is None else np.frombuffer(buffer, dtype=np.uint8)
    # Only what this piece has of the buffer, which others may share.
    first, last = int(offsets[0]), int(offsets[-1])
    return _core.Column.texts(content[first:last], offsets - first, binary=binary, missing=missing)


def _of_uuids(storage: Any) -> _core.Column:
    """The texts of UUIDs that are held as 16 bytes."""
    count, missing = len(storage), _missing(storage)
    content = np.ascontiguousarray(_fixed(storage, np.dtype((np.void, 16)))).view(np.uint8).tobytes().hex()
    content_bytes = np.frombuffer(content.encode(), dtype=np.uint8).reshape(count, 32)
    written = np.full((count, 36), ord("-"), dtype=np.uint8)
    for at, (first, last) in zip((0, 9, 14, 19, 24), ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32)), strict=True):
        written[:, at : at + last - first] = content_bytes[:, first:last]
    return _core.Column.texts(written.reshape(-1), np.arange(count + 1, dtype=np.int64) * 36, missing=missing)


# --- polars

_POLARS: dict[str, Family] = {
    "Boolean": "bool",
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64"), "integer"),
    "UInt128": "integer",
    **dict.fromkeys(("Float16", "Float32", "Float64"), "float"),
    "Decimal": "decimal",
    **dict.fromkeys(("String", "Utf8", "Categorical", "Enum"), "text"),
    "Binary": "bytes",
    "Date": "date",
    "Datetime": "timestamp",
    "Time": "time of day",
    "Duration": "duration",
    **dict.fromkeys(("List", "Array"), "list"),
    "Struct": "struct",
    "Null": "null",
    "Object": "object",
}


def of_polars(series: Any) -> Column:
    """A column of polars, by its physical values."""
    dtype, label = series.dtype, str(series.dtype)
    name = dtype.base_type().__name__ if hasattr(dtype, "base_type") else label
    family = _POLARS.get(name, "unknown")
    return Column(_of_polars(series, name, family), label, family)


def _of_polars(series: Any, name: str, family: Family) -> _core.Column:
    import polars

    count = len(series)
    if family == "null":
        return gone(count).cells
    if family == "object":
        return of_objects(series.to_list()).cells
    if not FAMILIES[family]:
        return _core.Column.unreadable(count)
    if name in ("Int128", "UInt128", "Decimal"):  # numbers without a form in NumPy: by all their digits
        return _of_polars_texts(series.cast(polars.String), binary=False).as_numbers()
    if family in ("text", "bytes"):
        return _of_polars_texts(series, binary=family == "bytes")
    missing = series.is_null().to_numpy() if series.null_count() else None
    if family == "bool":
        return _core.Column.bools(np.ascontiguousarray(series.fill_null(False).to_numpy()), missing)
    if family in ("date", "timestamp", "time of day"):
        unit = getattr(series.dtype, "time_unit", None) or ("D" if family == "date" else "ns")
        values = _as(series.to_physical().fill_null(0).to_numpy(), np.int64)
        if family == "time of day":
            return _core.Column.clocks(values, 1, missing)
        return _core.Column.times(values, unit, 1, missing)
    return _typed(series.fill_null(0).to_numpy(), missing)


def _of_polars_texts(series: Any, *, binary: bool) -> _core.Column:
    import polars

    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        if not binary:
            series = series.cast(polars.String)
        return of_objects(series.to_numpy()).cells
    return of_arrow(series.to_arrow()).cells


# --- any of them


def of_native(series: Any) -> Column:
    """A column of any library that is known; refused by its class if it is none."""
    if isinstance(series, np.ndarray):
        return of_array(series)
    owner = type(series).__module__.partition(".")[0]
    if owner == "pandas":
        return of_pandas(series)
    if owner == "polars":
        return of_polars(series)
    if owner == "pyarrow":
        return of_arrow(series)
    raise TypeError(f"columns are of pandas, polars or pyarrow; got a {owner}.{type(series).__qualname__}")
