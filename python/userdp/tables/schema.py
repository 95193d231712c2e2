"""What is public of a table's columns: their types, their bounds, and what stands for a bad value.

A value is read by its row alone. What a column's type says for good decides whether it can be read at all; pandas and
NumPy make doubles of integers for one missing value and objects of numbers for one text, so integers, doubles and
objects are read by one rule.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import exact_number, is_integer, short_repr
from userdp.users.containers import Column as Raw
from userdp.users.sanitize import LARGEST_WHOLE, item_of, text_of, whole_of

Array: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]
Value: TypeAlias = "int | float | str | bool | datetime.date | datetime.datetime"

MOST_STEPS = 2**30
DEFAULT_STEPS = 2**20
MOST_CATEGORIES = 2**20
MOST_KEY_VALUES = 2**22
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)
_ZONE = re.compile(r"time_zone='|tz=|^datetime64\[\w+, ")


@dataclass(frozen=True)
class Cells:
    """One column of a batch of rows: values of one machine type, and which rows have one."""

    values: Array  # doubles (never NaN where valid), int64, bools; of texts the places in `texts`
    valid: Mask
    texts: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def with_default(self, value: Any) -> Cells:
        """The same with a value for the rows that have none."""
        return Cells(np.where(self.valid, self.values, value), np.ones(len(self), dtype=np.bool_), self.texts)


class ColumnType(ABC):
    """The declared type of a column."""

    kind: ClassVar[str]
    """What its cells are: "number", "integer", "boolean", "text", "category", "date" or "timestamp"."""

    @abstractmethod
    def read(self, column: Raw, name: str) -> Cells:
        """What is in a column, row by row; refused by the declared type of the column alone."""


def _refused(column: Raw, name: str, needed: str) -> TypeError:
    return TypeError(f"the column {name!r} is of dtype {column.dtype}, and the schema says {needed}")


def _doubles(column: Raw, name: str, needed: str) -> tuple[npt.NDArray[np.float64], Mask]:
    if column.kind == "other" or column.category or (column.kind == "text" and column.fixed):
        raise _refused(column, name, needed)
    doubles = column.numbers()
    return doubles, ~np.isnan(doubles)


def _wholes(column: Raw, name: str, needed: str) -> tuple[npt.NDArray[np.int64], Mask]:
    """Whole numbers below 2**53, from whatever machine type holds them."""
    doubles, valid = _doubles(column, name, needed)
    with np.errstate(all="ignore"):
        valid &= (np.abs(doubles) <= LARGEST_WHOLE) & (doubles == np.floor(doubles))
    return np.where(valid, doubles, 0.0).astype(np.int64), valid


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
    kind: ClassVar[str] = "number"

    @property
    def unit(self) -> float:
        """The grid's step: the largest power of two of which at least `steps` fit between the bounds."""
        # A power of two: values divided by it are exact, and 0 is on the grid.
        exponent = math.frexp((self.high - self.low) / self.steps)[1] - 1
        return math.ldexp(1.0, max(exponent, -1000))

    def read(self, column: Raw, name: str) -> Cells:
        """Doubles within the bounds; infinite ones are clamped, NaN is none."""
        doubles, valid = _doubles(column, name, f"number({self.low:g}, {self.high:g})")
        cells = Cells(np.clip(np.where(valid, doubles, self.low), self.low, self.high), valid)
        return cells if self.default is None else cells.with_default(self.default)


@dataclass(frozen=True)
class Integer(ColumnType):
    """Whole numbers in public bounds."""

    low: int
    high: int
    default: int | None = None
    kind: ClassVar[str] = "integer"

    def read(self, column: Raw, name: str) -> Cells:
        """Whole numbers below 2**53 in absolute value, clamped to the bounds; all else is none."""
        wholes, valid = _wholes(column, name, f"integer({self.low}, {self.high})")
        cells = Cells(np.clip(wholes, self.low, self.high), valid)
        return cells if self.default is None else cells.with_default(self.default)


@dataclass(frozen=True)
class Boolean(ColumnType):
    """True and False, or 1 and 0."""

    default: bool | None = None
    kind: ClassVar[str] = "boolean"

    def read(self, column: Raw, name: str) -> Cells:
        """Bools, and the numbers 0 and 1; all else is none."""
        wholes, valid = _wholes(column, name, "boolean()")
        valid &= (wholes == 0) | (wholes == 1)
        cells = Cells(wholes == 1, valid)
        return cells if self.default is None else cells.with_default(self.default)


@dataclass(frozen=True)
class Category(ColumnType):
    """One of the values of a public list; the cells are places in it."""

    values: tuple[int | str, ...]
    default: int | str | None = None
    kind: ClassVar[str] = "category"

    def read(self, column: Raw, name: str) -> Cells:
        """Places in the list; what is not in it is none."""
        if all(isinstance(value, int) for value in self.values):
            if column.kind == "text" and column.fixed:
                raise _refused(column, name, "a category of integers")
            if column.category or column.kind == "other":
                places = self._places_of_objects(column)
            else:
                wholes, valid = _wholes(column, name, "a category of integers")
                order = np.argsort(np.array(self.values, dtype=np.int64), kind="stable")
                known = np.array(self.values, dtype=np.int64)[order]
                at = np.minimum(np.searchsorted(known, wholes), len(known) - 1)
                places = np.where(valid & (known[at] == wholes), order[at], -1)
        elif all(isinstance(value, str) for value in self.values):
            read = read_texts(column, name, "a category of texts")
            table = {value: place for place, value in enumerate(self.values)}
            of_text = np.array([table.get(text, -1) for text in read.texts or ()] or [-1], dtype=np.int64)
            places = np.where(read.valid, of_text[read.values], -1)
        else:
            places = self._places_of_objects(column)
        cells = Cells(np.maximum(places, 0), places >= 0)
        return cells if self.default is None else cells.with_default(self.values.index(self.default))

    def _places_of_objects(self, column: Raw) -> npt.NDArray[np.int64]:
        table: dict[object, int] = {value: place for place, value in enumerate(self.values)}
        places = (table.get(_item(value), -1) for value in column.objects())
        return np.fromiter(places, dtype=np.int64, count=len(column))


def _item(value: object) -> int | str | None:
    """The integer or text that a value is; bools are integers."""
    whole = whole_of(value)
    item = item_of(value) if whole is None else whole
    if isinstance(item, bytes):
        return None
    return None if isinstance(item, int) and abs(item) > LARGEST_WHOLE else item


@dataclass(frozen=True)
class Key(ColumnType):
    """Values of which no list is public: which occur is private."""

    type: type
    kind: ClassVar[str] = "key"

    @property
    def cell_kind(self) -> str:
        """What its cells are."""
        return {int: "integer", str: "text", datetime.date: "date", datetime.datetime: "timestamp"}[self.type]

    def read(self, column: Raw, name: str) -> Cells:
        """Return whole numbers below 2**53, texts, or days or microseconds since 1970; all else is none."""
        if self.type is int:
            return Cells(*_wholes(column, name, "key(int)"))
        if self.type is str:
            return read_texts(column, name, "key(str)")
        day = self.type is datetime.date
        return _times(column, name, "key(date)" if day else "key(datetime)", "D" if day else "us")


@dataclass(frozen=True)
class Timestamp(ColumnType):
    """Times without a zone in public bounds; the cells are microseconds since 1970."""

    low: datetime.datetime
    high: datetime.datetime
    default: datetime.datetime | None = None
    kind: ClassVar[str] = "timestamp"

    def read(self, column: Raw, name: str) -> Cells:
        """Microseconds, clamped to the bounds."""
        cells = _times(column, name, "timestamp(low, high)", "us")
        clamped = Cells(np.clip(cells.values, microseconds(self.low), microseconds(self.high)), cells.valid)
        return clamped if self.default is None else clamped.with_default(microseconds(self.default))


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
    item = _item(value)
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
    return value  # type: ignore[no-any-return]


def _times(column: Raw, name: str, needed: str, unit: str) -> Cells:
    values = column.values
    if values.dtype.kind == "M":
        valid = ~np.isnat(values)
        if column.missing is not None:
            valid &= ~column.missing
        if np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us"):
            # As Python's dates; beyond them microseconds would wrap around. Shorter units do not reach so far.
            first, last = (np.datetime64(end).astype(values.dtype) for end in ("0001-01-01", "9999-12-31"))
            valid &= (values >= first) & (values <= last)
        whole = np.where(valid, values, np.datetime64(0, "s").astype(values.dtype))
        whole = whole.astype(f"M8[{unit}]").astype(np.int64)
        return Cells(whole, valid)
    label = column.dtype.lower()
    other = column.kind == "other" and (_ZONE.search(label) or not label.startswith(("date", "timestamp")))
    if values.dtype.kind != "O" or column.category or other or (column.kind == "text" and column.fixed):
        raise _refused(column, name, needed)
    whole = np.zeros(len(column), dtype=np.int64)
    valid = np.zeros(len(column), dtype=np.bool_)
    pandas = sys.modules.get("pandas")
    for place, value in enumerate(column.objects()):
        kind: Any = type(value)
        if pandas is not None and kind is pandas.Timestamp and 1 <= value.year <= 9999:  # type: ignore[attr-defined]
            # What pandas makes of times in columns of Arrow and of objects.
            value = value.to_pydatetime(warn=False)  # type: ignore[attr-defined]
            kind = datetime.datetime
        if kind is datetime.datetime and value.tzinfo is None:  # type: ignore[attr-defined]
            time = value
        elif kind is datetime.date:
            time = datetime.datetime(value.year, value.month, value.day)  # type: ignore[attr-defined]
        else:
            continue
        since = microseconds(time)  # type: ignore[arg-type]
        whole[place], valid[place] = since // 86_400_000_000 if unit == "D" else since, True
    return Cells(whole, valid)


def read_texts(column: Raw, name: str, needed: str) -> Cells:
    """Texts, as places in a list of those that occur."""
    if (column.kind == "number" and column.fixed) or (column.kind == "other" and not column.category):
        raise _refused(column, name, needed)
    table: dict[str, int] = {}
    if column.kind == "number":
        places = np.full(len(column), -1, dtype=np.int64)
    else:
        # Texts of Python itself, which are nearly all, are spared a call.
        texts = (value if type(value) is str else text_of(value) for value in column.objects())
        numbers = [table.setdefault(text, len(table)) if type(text) is str else -1 for text in texts]
        places = np.array(numbers, dtype=np.int64)
    return Cells(np.maximum(places, 0), places >= 0, tuple(table))


# --- how columns are declared


def number(low: float, high: float, *, steps: int = DEFAULT_STEPS, default: float | None = None) -> Number:
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
    return Number(below, above, int(steps), chosen)


def integer(low: int, high: int, *, default: int | None = None) -> Integer:
    """Declare a column of whole numbers.

    Parameters
    ----------
    low, high : int
        Public bounds, below 2**53 in absolute value. Whole numbers beyond them are clamped.
    default : int, optional
        What stands for a missing or unreadable value. By default a query leaves out such rows.

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
    return Integer(int(low), int(high), None if default is None else int(default))


def boolean(*, default: bool | None = None) -> Boolean:
    """Declare a column of bools; 0 and 1 are read as such.

    Examples
    --------
    >>> boolean(default=False)
    Boolean(default=False)
    """
    if default is not None and not isinstance(default, (bool, np.bool_)):
        raise ValueError(f"default must be True or False; got {short_repr(default)}")
    return Boolean(None if default is None else bool(default))


def category(values: Sequence[int | str], *, default: int | str | None = None) -> Category:
    """Declare a column whose values are of a public list.

    Parameters
    ----------
    values : sequence of int or str
        All of them, also those that nobody has: do not take them from the data.
    default : int or str, optional
        The value that stands for what is not in the list. By default a query leaves out such rows.

    Examples
    --------
    >>> category(["full", "part", "none"], default="none")
    Category(values=('full', 'part', 'none'), default='none')
    """
    listed = category_values(values, "values")
    if default is not None and default not in listed:
        raise ValueError(f"default must be one of the values; got {short_repr(default)}")
    return Category(listed, None if default is None else listed[listed.index(default)])


def category_values(values: Any, name: str) -> tuple[int | str, ...]:
    """A public list of distinct integers and texts."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a sequence of integers or texts; got {short_repr(values)}")
    if not 1 <= len(values) <= MOST_CATEGORIES:
        raise ValueError(f"{name} must be from 1 to 2**20 values; got {len(values)}")
    listed = tuple(_item(value) for value in values)
    if None in listed:
        odd = next(value for value, item in zip(values, listed, strict=True) if item is None)
        raise TypeError(f"{name} must be integers below 2**53 or texts; got {short_repr(odd)}")
    if len(set(listed)) < len(listed):
        raise ValueError(f"{name} must be distinct; got {short_repr(first_twice(listed))} twice")
    return listed  # type: ignore[return-value]


def key(kind: type) -> Key:
    """Declare a column to group by of which no list of values is public.

    Parameters
    ----------
    kind : int, str, datetime.date or datetime.datetime
        The type of its values. Integers are below 2**53 in absolute value; times have no zone, and are cut to the
        microsecond; of a date's column, times count by their day. Other values, and missing ones, are none.

    Examples
    --------
    >>> key(str).cell_kind
    'text'
    """
    if kind not in (int, str, datetime.date, datetime.datetime):
        raise TypeError(f"kind must be int, str, datetime.date or datetime.datetime; got {short_repr(kind)}")
    return Key(kind)


def timestamp(
    low: datetime.datetime, high: datetime.datetime, *, default: datetime.datetime | None = None
) -> Timestamp:
    """Declare a column of times without a time zone.

    Parameters
    ----------
    low, high : datetime
        Public bounds, to which times are clamped.
    default : datetime, optional

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
    return Timestamp(low, high, default)


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
