"""What is public of a table's columns: their types, their bounds, and what stands for a bad value.

A value is read by its cell alone, by the core's one rule (docs/reading.md). A column of a type that no value can change
is refused where nothing of it could be read; no other column ever is.
"""

from __future__ import annotations

import datetime
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import exact_number, is_integer, short_repr
from userdp.users import values as raw
from userdp.users.values import LARGEST_WHOLE, READS, Array, Marks, Mask, Spelling

Status: TypeAlias = npt.NDArray[np.uint8]
Value: TypeAlias = "int | float | str | bool | datetime.date | datetime.datetime"

MOST_STEPS = 2**30
DEFAULT_STEPS = 2**20
MOST_CATEGORIES = 2**20
MOST_KEY_VALUES = 2**22
MOST_WIDTH = 64
THOUSANDS = (".", ",", "'", "_", " ", "\u00a0", "\u202f", "\u2019")
"""What may stand between groups of three digits."""
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
DAY = 86_400_000_000
"""Microseconds."""
TOP = 2**53
"""Whole numbers beyond it are read as it, before the bounds of a column."""


@dataclass(frozen=True)
class Cells:
    """One column of a batch of rows: values of one machine type, and which rows have one."""

    values: Array  # doubles (never NaN where valid), int64, bools; of texts the places in `texts`
    valid: Mask
    texts: tuple[str, ...] | None = None
    status: Status | None = None  # of a column as it was read: where there was nothing, and where something unreadable

    def __len__(self) -> int:
        return len(self.values)

    def with_default(self, value: Any) -> Cells:
        """The same with a value for the rows that have none."""
        return replace(self, values=np.where(self.valid, self.values, value), valid=np.ones(len(self), dtype=np.bool_))

    def taken(self, kept: Mask) -> Cells:
        """The rows of a mask."""
        if kept.all():
            return self
        return Cells(
            self.values[kept], self.valid[kept], self.texts, None if self.status is None else self.status[kept]
        )


class ColumnType(ABC):
    """The declared type of a column."""

    kind: ClassVar[str]
    """What its cells are: "number", "integer", "boolean", "text", "category", "date" or "timestamp"."""

    @property
    @abstractmethod
    def reads(self) -> str:
        """What cells are read as: one of the kinds of docs/reading.md."""

    @property
    def sentence(self) -> str:
        """What is read of a column, in words."""
        marks = getattr(self, "decimal", None), getattr(self, "thousands", None)
        if marks == (None, None):
            return READS[self.reads]
        return f"{READS[self.reads]}; in texts {marks[0]!r} is before decimals, and {marks[1]!r} between thousands"

    @abstractmethod
    def read(self, column: raw.Column, name: str) -> Cells:
        """What is in a column, row by row; refused by the declared type of the column alone."""


def _check(column: raw.Column, name: str, declared: ColumnType, needed: str) -> None:
    """Refuse a column whose type is declared and can hold nothing of a kind."""
    if column.family in ("text", "bytes", *_NUMBERS) and getattr(declared, "format", None) is not None:
        return
    error = raw.refused(column, f"the column {name!r}", declared.reads, needed)
    if error is not None:
        raise error


_NUMBERS = ("bool", "integer", "float", "decimal")  # of which a format of times reads the digits


def _cells(values: Array, status: Status, texts: tuple[str, ...] | None = None) -> Cells:
    return Cells(values, status == raw.VALUE, texts, status)


def _finite(value: Any, name: str) -> float:
    number = exact_number(value)
    if number is None:
        raise TypeError(f"{name} must be a finite number; got {short_repr(value)}")
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"{name} must be within the range of doubles; got {short_repr(value)}") from None


def _bounds(low: Any, high: Any) -> tuple[float, float]:
    below, above = _finite(low, "low"), _finite(high, "high")
    if not below < above:
        raise ValueError(f"low must be below high; got {short_repr(low)} and {short_repr(high)}")
    if not math.isfinite(above - below):
        raise ValueError(f"high - low must be within the range of doubles; got {short_repr(low)}, {short_repr(high)}")
    return below, above


@dataclass(frozen=True)
class Number(ColumnType):
    """Real numbers in public bounds, on a public grid."""

    low: float
    high: float
    steps: int = DEFAULT_STEPS
    default: float | None = None
    decimal: str | None = field(default=None, repr=False)
    thousands: str | None = field(default=None, repr=False)
    kind: ClassVar[str] = "number"
    reads: ClassVar[str] = "number"

    @property
    def unit(self) -> float:
        """The grid's step: the largest power of two of which at least `steps` fit between the bounds."""
        # A power of two: values divided by it are exact, and 0 is on the grid.
        exponent = math.frexp((self.high - self.low) / self.steps)[1] - 1
        return math.ldexp(1.0, max(exponent, -1000))

    def read(self, column: raw.Column, name: str) -> Cells:
        """Doubles within the bounds; infinite ones are clamped, NaN is none."""
        _check(column, name, self, f"number({self.low:g}, {self.high:g})")
        doubles, status = column.cells.numbers(self.decimal, self.thousands)
        cells = _cells(np.clip(doubles, self.low, self.high, out=doubles), status)
        return cells if self.default is None else cells.with_default(self.default)


@dataclass(frozen=True)
class Integer(ColumnType):
    """Whole numbers in public bounds."""

    low: int
    high: int
    default: int | None = None
    decimal: str | None = field(default=None, repr=False)
    thousands: str | None = field(default=None, repr=False)
    kind: ClassVar[str] = "integer"
    reads: ClassVar[str] = "integer"

    def read(self, column: raw.Column, name: str) -> Cells:
        """Whole numbers, clamped to the bounds; all else is none."""
        _check(column, name, self, f"integer({self.low}, {self.high})")
        wholes, status = column.cells.wholes(self.decimal, self.thousands)
        cells = _cells(np.clip(wholes, self.low, self.high), status)
        return cells if self.default is None else cells.with_default(self.default)


@dataclass(frozen=True)
class Boolean(ColumnType):
    """True and False, or 1 and 0."""

    default: bool | None = None
    kind: ClassVar[str] = "boolean"
    reads: ClassVar[str] = "boolean"

    def read(self, column: raw.Column, name: str) -> Cells:
        """Bools, 1 and 0, and words for them; all else is none."""
        _check(column, name, self, "boolean()")
        cells = _cells(*column.cells.booleans())
        return cells if self.default is None else cells.with_default(self.default)


@dataclass(frozen=True)
class Category(ColumnType):
    """One of the values of a public list; the cells are places in it."""

    values: tuple[int | str, ...]
    default: int | str | None = None
    spelling: Spelling = field(default="doubles", repr=False)
    marks: Marks | None = field(default=None, repr=False)  # of the table, by which public texts are read too
    kind: ClassVar[str] = "category"
    reads: ClassVar[str] = "text"

    @property
    def sentence(self) -> str:
        """What is read of a column, in words."""
        if self.spelling == "written":
            return "texts as they are written, and the digits of numbers"
        return f"{READS['text']}; what says a number is that number: 007 is 7"

    @property
    def places(self) -> Mapping[str, int]:
        """The place of each value, by the one text that cells are compared with."""
        return _places(self.values, self.spelling, self.marks)

    def read(self, column: raw.Column, name: str) -> Cells:
        """Places in the list; what is not in it is none."""
        _check(column, name, self, "a category")
        at, status, texts = column.cells.interned(self.spelling)
        known = self.places
        of_text = np.array([known.get(text, -1) for text in texts] or [0], dtype=np.int64)
        places = of_text[at]
        if (of_text < 0).any():
            status[(status == raw.VALUE) & (places < 0)] = raw.UNREADABLE
            np.maximum(places, 0, out=places)
        cells = _cells(places, status)
        return cells if self.default is None else cells.with_default(self.values.index(self.default))


@lru_cache(maxsize=64)
def _places(values: tuple[int | str, ...], spelling: Spelling, marks: Marks | None) -> Mapping[str, int]:
    texts = spelled(values, spelling, marks=marks)
    return {text: place for place, text in enumerate(texts) if text is not None}


def spelled(
    values: Sequence[int | str | bool], spelling: Spelling, width: int = 0, marks: Marks | None = None
) -> list[str | None]:
    """The one text of each of some public values, by which they are compared; None for what is none.

    Examples
    --------
    >>> spelled(["02139", 2139, "abc"], "doubles"), spelled(["02139", 2139], "written")
    (['2139', '2139', 'abc'], ['02139', '2139'])
    """
    places, status, texts = raw.of_objects(list(values)).cells.interned(spelling, *(marks or ()))
    filled = [_filled(text, width) for text in texts]
    return [
        filled[place] if lack == raw.VALUE else None
        for place, lack in zip(places.tolist(), status.tolist(), strict=True)
    ]


def _filled(text: str, width: int) -> str:
    """A text of digits with zeros in front."""
    return text.zfill(width) if len(text) < width and text.isascii() and text.isdigit() else text


def item_of(value: Any) -> int | str | None:
    """The integer or text that a public value is; bools and whole floats are integers. None for all else."""
    if isinstance(value, str):
        return str.__str__(value)
    if (
        isinstance(value, (bool, np.bool_))
        or is_integer(value)
        or (isinstance(value, (float, np.floating)) and float(value).is_integer())
    ):
        whole = int(value)
    else:
        return None
    return whole if abs(whole) <= LARGEST_WHOLE else None


@dataclass(frozen=True)
class Key(ColumnType):
    """Values of which no list is public: which occur is private."""

    type: type
    spelling: Spelling = field(default="doubles", repr=False)
    width: int = field(default=0, repr=False)
    marks: Marks | None = field(default=None, repr=False)
    format: str | None = field(default=None, repr=False)
    decimal: str | None = field(default=None, repr=False)
    thousands: str | None = field(default=None, repr=False)
    kind: ClassVar[str] = "key"

    @property
    def cell_kind(self) -> str:
        """What its cells are."""
        return {int: "integer", str: "text", datetime.date: "date", datetime.datetime: "timestamp"}[self.type]

    @property
    def reads(self) -> str:
        """What cells are read as."""
        return {int: "key(int)", str: "text", datetime.date: "day", datetime.datetime: "time"}[self.type]

    @property
    def sentence(self) -> str:
        """What is read of a column, in words."""
        if self.type is str and self.spelling == "written":
            return "texts as they are written, and the digits of numbers"
        if self.type is str:
            filled = f", shown with zeros in front to {self.width} digits" if self.width else ""
            return (
                f"{READS['text']}; texts that say a number are that number{filled}: 007 is 7, and 1E2 and 100 are one; "
                "written=True if the column was read as texts"
            )
        return READS[self.reads] if self.format is None else f"{READS[self.reads]}, and texts as {self.format}"

    def read(self, column: raw.Column, name: str) -> Cells:
        """Return whole numbers below 2**53, texts, or days or microseconds since 1970; all else is none."""
        _check(column, name, self, f"key({self.type.__name__})")
        if self.type is int:
            wholes, status = column.cells.wholes(self.decimal, self.thousands)
            status[np.abs(wholes) == TOP] = raw.UNREADABLE
            return _cells(wholes, status)
        if self.type is str:
            places, status, texts = column.cells.interned(self.spelling)
            found = places.astype(np.int64)
            if not self.width:
                return _cells(found, status, tuple(texts))
            # What had other digits in front may be one now.
            table: dict[str, int] = {}
            at = [table.setdefault(_filled(text, self.width), len(table)) for text in texts]
            return _cells(np.array(at or [0], dtype=np.int64)[found], status, tuple(table))
        since, status = column.cells.microseconds(self.format)
        return _cells(since // DAY if self.type is datetime.date else since, status)


@dataclass(frozen=True)
class Timestamp(ColumnType):
    """Times in public bounds, in UTC where there was an offset; the cells are microseconds since 1970."""

    low: datetime.datetime
    high: datetime.datetime
    default: datetime.datetime | None = None
    format: str | None = field(default=None, repr=False)
    kind: ClassVar[str] = "timestamp"
    reads: ClassVar[str] = "time"

    @property
    def sentence(self) -> str:
        """What is read of a column, in words."""
        return READS["time"] if self.format is None else f"{READS['time']}, and texts as {self.format}"

    def read(self, column: raw.Column, name: str) -> Cells:
        """Microseconds, clamped to the bounds."""
        _check(column, name, self, "timestamp(low, high)")
        since, status = column.cells.microseconds(self.format)
        cells = _cells(np.clip(since, microseconds(self.low), microseconds(self.high)), status)
        return cells if self.default is None else cells.with_default(microseconds(self.default))


def microseconds(time: datetime.datetime) -> int:
    """Since 1970, of a time without a zone."""
    return (time - EPOCH) // MICROSECOND


def date_of(days: Any) -> datetime.date:
    """The date that is so many days after the first of 1970."""
    return EPOCH.date() + datetime.timedelta(days=int(days))


def time_of(since: Any) -> datetime.datetime:
    """The time that is so many microseconds after the first of 1970."""
    return EPOCH + int(since) * MICROSECOND


def key_value(value: Any, name: str) -> int | str | datetime.date:
    """A value of a public key, as plain Python has it: an integer, a text, a date, or a time without a zone.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    if type(value).__module__.partition(".")[0] == "pyarrow" and hasattr(value, "as_py"):
        value = value.as_py()
    pandas = sys.modules.get("pandas")
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
        if np.isnat(value) or unit in ("ps", "fs", "as", "generic"):
            raise ValueError(f"{name} must be dates or times to the microsecond; got {short_repr(value)}")
        exact = value.astype("M8[us]")
        plain = exact.item()  # an int beyond the years of Python
        if not isinstance(plain, datetime.datetime) or exact != value:
            raise ValueError(f"{name} must be dates or times to the microsecond; got {short_repr(value)}")
        return plain.date() if unit in ("Y", "M", "W", "D") else plain
    if pandas is not None and isinstance(value, pandas.Timestamp):
        if value.nanosecond:
            raise ValueError(f"{name} must be dates or times to the microsecond; got {short_repr(value)}")
        value = value.to_pydatetime()
    if type(value) is datetime.datetime:
        if value.tzinfo is not None:
            raise TypeError(f"{name} must be times without a time zone; got {short_repr(value)}")
        return value
    if type(value) is datetime.date:
        return value
    item = item_of(value)
    if item is None:
        raise TypeError(f"{name} must be integers below 2**53, texts, dates or times; got {short_repr(value)}")
    return item


def key_values(values: Any, name: str) -> tuple[int | str | datetime.date, ...]:
    """A public list of distinct values of one column of keys.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__") or not hasattr(values, "__len__"):
        raise TypeError(f"{name} must be a sequence of keys; got {short_repr(values)}")
    if not 1 <= len(values) <= MOST_KEY_VALUES:
        raise ValueError(f"{name} must be from 1 to 2**22 values; got {len(values)}")
    listed = tuple(key_value(value, name) for value in values)
    if len(set(listed)) < len(listed):
        raise ValueError(f"{name} must be distinct; got {short_repr(first_twice(listed))} twice")
    return listed


def first_twice(values: Sequence[Any]) -> Any:
    """The first value that was there before."""
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def key_cell(value: Any, kind: str, name: str) -> int | str:
    """What stands for a key's value in cells of a kind: days and microseconds since 1970 for dates and times.

    Raises
    ------
    TypeError
        Where the value is none of that kind.
    """
    time = isinstance(value, datetime.datetime)
    if kind == "timestamp" and isinstance(value, datetime.date):
        return microseconds(value if time else datetime.datetime(value.year, value.month, value.day))  # type: ignore[arg-type]
    if kind == "date" and isinstance(value, datetime.date) and (not time or value.time() == datetime.time()):  # type: ignore[attr-defined]
        return value.toordinal() - EPOCH.toordinal()
    texts = {"text": True, "integer": False, "boolean": False}.get(kind)
    if texts is None or isinstance(value, datetime.date) or isinstance(value, str) != texts:
        needed = {"date": "dates", "timestamp": "dates or times", "text": "texts"}.get(kind, "integers")
        raise TypeError(f"keys: the values for {name!r} must be {needed}, as in the schema; got {short_repr(value)}")
    return value


# --- how columns are declared


def _marks(decimal: Any, thousands: Any) -> tuple[str | None, str | None]:
    """How texts write numbers beside the usual way; None for that way."""
    if decimal not in (".", ","):
        raise ValueError(f"decimal must be '.' or ','; got {short_repr(decimal)}")
    if thousands is not None and thousands not in THOUSANDS:
        raise ValueError(f"thousands must be one of {', '.join(map(repr, THOUSANDS))}; got {short_repr(thousands)}")
    if thousands == decimal or (thousands == "." and decimal == ","):
        raise ValueError(
            f"decimal={decimal!r} and thousands={thousands!r} are two readings of 1.500, of which a column may have "
            "either: read the file by userdp.tables.read_csv with these marks"
        )
    return (None, None) if (decimal, thousands) == (".", None) else (decimal, thousands)


def number(
    low: float,
    high: float,
    *,
    steps: int = DEFAULT_STEPS,
    default: float | None = None,
    decimal: str = ".",
    thousands: str | None = None,
) -> Number:
    """Declare a column of real numbers.

    Parameters
    ----------
    low, high : float
        Public bounds, in the column's unit. Values beyond them are clamped; a bound that the data reach rarely costs
        noise, one that they exceed costs a bias. Do not take them from the data.
    steps : int
        Values are rounded to a grid of at least so many steps between the bounds; a power of two up to 2**30.
    default : float, optional
        What stands for a missing or unreadable value, within the bounds. By default a query leaves out the rows in
        which a column that it uses has none.
    decimal, thousands : str
        How texts write numbers, beside the usual way: ``decimal=","`` reads ``1,5``, ``thousands=","`` reads
        ``1,500``.

    Examples
    --------
    >>> number(0, 4, steps=2**12).unit
    0.0009765625
    """
    below, above = _bounds(low, high)
    if not is_integer(steps) or not 2 <= steps <= MOST_STEPS or int(steps) & (int(steps) - 1):
        raise ValueError(f"steps must be a power of two from 2 to 2**30; got {short_repr(steps)}")
    chosen = None if default is None else _finite(default, "default")
    if chosen is not None and not below <= chosen <= above:
        raise ValueError(f"default must be from low to high; got {short_repr(default)}")
    return Number(below, above, int(steps), chosen, *_marks(decimal, thousands))


def integer(
    low: int, high: int, *, default: int | None = None, decimal: str = ".", thousands: str | None = None
) -> Integer:
    """Declare a column of whole numbers.

    Parameters
    ----------
    low, high : int
        Public bounds, below 2**53 in absolute value. Whole numbers beyond them are clamped.
    default : int, optional
        What stands for a missing or unreadable value. By default a query leaves out such rows.
    decimal, thousands : str
        As for `number`.

    Examples
    --------
    >>> integer(0, 120)
    Integer(low=0, high=120, default=None)
    """
    for name, value in (("low", low), ("high", high), ("default", 0 if default is None else default)):
        if not is_integer(value) or abs(int(value)) > LARGEST_WHOLE:
            raise ValueError(f"{name} must be an int below 2**53 in absolute value; got {short_repr(value)}")
    if not low < high:
        raise ValueError(f"low must be below high; got {short_repr(low)} and {short_repr(high)}")
    if default is not None and not low <= default <= high:
        raise ValueError(f"default must be from low to high; got {short_repr(default)}")
    return Integer(int(low), int(high), None if default is None else int(default), *_marks(decimal, thousands))


def boolean(*, default: bool | None = None) -> Boolean:
    """Declare a column of bools; 0 and 1, and the words for true and false that databases take, are read as such.

    Examples
    --------
    >>> boolean(default=False)
    Boolean(default=False)
    """
    if default is not None and not isinstance(default, (bool, np.bool_)):
        raise ValueError(f"default must be True or False; got {short_repr(default)}")
    return Boolean(None if default is None else bool(default))


def category(values: Sequence[int | str], *, default: int | str | None = None, written: bool = False) -> Category:
    """Declare a column whose values are of a public list.

    Parameters
    ----------
    values : sequence of int or str
        All of them, also those that nobody has: do not take them from the data. Cells are compared by their one text
        (docs/reading.md), so that "02139" stands for 2139 too.
    default : int or str, optional
        The value that stands for what is not in the list. By default a query leaves out such rows.
    written : bool
        Promise that the column was read as texts, so that "007" and "7" are two values.

    Examples
    --------
    >>> category(["full", "part", "none"], default="none")
    Category(values=('full', 'part', 'none'), default='none')
    """
    spelling = _spelling(written)
    listed = category_values(values, "values", spelling)
    if default is not None and default not in listed:
        raise ValueError(f"default must be one of the values; got {short_repr(default)}")
    return Category(listed, None if default is None else listed[listed.index(default)], spelling)


def _spelling(written: Any) -> Spelling:
    if not isinstance(written, (bool, np.bool_)):
        raise TypeError(f"written must be True or False; got {short_repr(written)}")
    return "written" if written else "doubles"


def category_values(values: Any, name: str, spelling: Spelling = "doubles") -> tuple[int | str, ...]:
    """A public list of integers and texts, no two of which are one."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a sequence of integers or texts; got {short_repr(values)}")
    if not 1 <= len(values) <= MOST_CATEGORIES:
        raise ValueError(f"{name} must be from 1 to 2**20 values; got {len(values)}")
    listed = tuple(item_of(value) for value in values)
    if None in listed:
        odd = next(value for value, item in zip(values, listed, strict=True) if item is None)
        raise TypeError(f"{name} must be integers below 2**53 or texts; got {short_repr(odd)}")
    check_spelled(listed, name, spelling)  # type: ignore[arg-type]
    return listed  # type: ignore[return-value]


def check_spelled(
    listed: Sequence[int | str], name: str, spelling: Spelling, width: int = 0, marks: Marks | None = None
) -> list[str]:
    """The texts of a public list of values; refused if two are one, or if one stands for a missing value."""
    texts = spelled(listed, spelling, width, marks)
    table: dict[str, int | str] = {}
    for value, text in zip(listed, texts, strict=True):
        if text is None:
            raise ValueError(
                f"{name}: {short_repr(value)} is no value, as it is empty, stands for a missing one, or has no "
                "characters that can be shown; leave it out, and pass default= for rows without one"
            )
        if text in table:
            if table[text] == value:
                raise ValueError(f"{name} must be distinct; got {short_repr(value)} twice")
            raise ValueError(
                f"{name}: {short_repr(table[text])} and {short_repr(value)} are one value, since readers make one of "
                "the other (docs/reading.md): leave one out, or pass written=True in the schema if the column was read "
                "as texts"
            )
        table[text] = value
    return list(table)


def key(
    kind: type,
    *,
    written: bool = False,
    width: int = 0,
    format: str | None = None,
    decimal: str = ".",
    thousands: str | None = None,
) -> Key:
    """Declare a column to group by of which no list of values is public.

    Parameters
    ----------
    kind : int, str, datetime.date or datetime.datetime
        The type of its values. Integers are below 2**53 in absolute value; times are in UTC where they had an offset,
        and cut to the microsecond; of a date's column, times count by their day. Other values, and missing ones, are
        none.
    written : bool
        Of texts: promise that the column was read as texts, so that "007" and "7" are two keys.
    width : int
        Of texts: how many digits codes have; "7" is shown as "007" with a width of 3.
    format : str, optional
        Of dates and times: how texts write them beside the ISO form, such as "%m/%d/%Y"; of %Y %y %m %d %H %M %S %f %z.
    decimal, thousands : str
        Of integers: as for `number`.

    Examples
    --------
    >>> key(str).cell_kind
    'text'
    """
    if kind not in (int, str, datetime.date, datetime.datetime):
        raise TypeError(f"kind must be int, str, datetime.date or datetime.datetime; got {short_repr(kind)}")
    spelling, marks = _spelling(written), _marks(decimal, thousands)
    if not is_integer(width) or not 0 <= width <= MOST_WIDTH:
        raise ValueError(f"width must be an int from 0 to {MOST_WIDTH}; got {short_repr(width)}")
    for name, given, of in (
        ("written", bool(written), (str,)),
        ("width", bool(width), (str,)),
        ("format", format is not None, (datetime.date, datetime.datetime)),
        ("decimal and thousands", marks != (None, None), (int,)),
    ):
        if given and kind not in of:
            raise ValueError(f"{name}: is not for key({kind.__name__})")
    if written and width:
        raise ValueError("width fills numbers with zeros, and written=True leaves texts as they are; pass one of them")
    return Key(kind, spelling, int(width), None, _format(format), *marks)


def _format(format: Any) -> str | None:
    """A form of times in texts, checked."""
    if format is None:
        return None
    if not isinstance(format, str):
        raise TypeError(f"format must be a text such as '%m/%d/%Y'; got {short_repr(format)}")
    try:
        _core.check_time_format(str(format))
    except ValueError as error:
        raise ValueError(f"format: {error}; got {short_repr(format)}") from None
    return str(format)


def timestamp(
    low: datetime.datetime,
    high: datetime.datetime,
    *,
    default: datetime.datetime | None = None,
    format: str | None = None,
) -> Timestamp:
    """Declare a column of times; those with an offset are in UTC.

    Parameters
    ----------
    low, high : datetime
        Public bounds without a time zone, to which times are clamped.
    default : datetime, optional
    format : str, optional
        As for `key`.

    Examples
    --------
    >>> from datetime import datetime
    >>> timestamp(datetime(2020, 1, 1), datetime(2021, 1, 1)).kind
    'timestamp'
    """
    for name, value in (("low", low), ("high", high), ("default", low if default is None else default)):
        if type(value) is not datetime.datetime or value.tzinfo is not None:
            raise TypeError(f"{name} must be a datetime without a time zone; got {short_repr(value)}")
    if not low < high:
        raise ValueError(f"low must be below high; got {low} and {high}")
    if default is not None and not low <= default <= high:
        raise ValueError(f"default must be from low to high; got {default}")
    return Timestamp(low, high, default, _format(format))


class Schema(Mapping[str, ColumnType]):
    """The columns of a table that queries may use, by name.

    Everything in it is public, and none of it may be taken from the data.

    Parameters
    ----------
    columns : mapping from str to column type, optional
        For names that are no identifiers.
    **named : column types
        Of `number`, `integer`, `boolean`, `category`, `key` and `timestamp`.

    Examples
    --------
    >>> schema = Schema(wage=number(0, 50), job=category(["clerk", "cook"]))
    >>> list(schema), schema["wage"].high
    (['wage', 'job'], 50.0)
    """

    def __init__(self, columns: Mapping[str, ColumnType] | None = None, /, **named: ColumnType) -> None:
        given = dict(columns or {}) | named
        for name, declared in given.items():
            if not isinstance(name, str):
                raise TypeError(f"columns are named by texts; got {short_repr(name)}")
            if not isinstance(declared, ColumnType):
                raise TypeError(
                    f"the column {name!r} must be declared by number, integer, boolean, category, key or timestamp; "
                    f"got {short_repr(declared)}"
                )
        if not given:
            raise ValueError("a schema needs at least one column")
        self._columns = given

    def __getitem__(self, name: str) -> ColumnType:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={declared!r}' for name, declared in self._columns.items())})"
