"""Values of one row and of a batch: what kinds there are, and one type for values of two types.

A value of one row is a plain Python value or None, and there is one for each row of `Cells`. Cells are kept in one
form: a row without a value holds zero, and zero has one sign. So equal values have equal bits, whatever rows lie beside
them.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import exact_number, is_integer, short_repr
from userdp.tables.schema import (
    DEFAULT_STEPS,
    Boolean,
    Category,
    Cells,
    ColumnType,
    Integer,
    Key,
    Number,
    Timestamp,
    microseconds,
    spelled,
    time_of,
)
from userdp.users.values import LARGEST_WHOLE, Array, Mask, Spelling

Plain: TypeAlias = "int | float | str | bool | datetime.date | datetime.datetime"

FIRST_DAY = datetime.date(1970, 1, 1)
_DAYS = (datetime.date.min.toordinal() - FIRST_DAY.toordinal(), datetime.date.max.toordinal() - FIRST_DAY.toordinal())
NUMERIC = ("number", "integer")


@dataclass(frozen=True)
class Rule:
    """How values of one row make another: its type, and the same function of many rows and of one."""

    type: ColumnType
    vector: Callable[..., Cells]
    scalar: Callable[..., Plain | None]
    strict: bool = True
    """Whether a row without a value in any operand has none. Then `scalar` is never called with None."""


def kind_of(declared: ColumnType) -> str:
    """What the values are: "number", "integer", "boolean", "text", "category", "date" or "timestamp"."""
    return declared.cell_kind if isinstance(declared, Key) else declared.kind


def words(declared: ColumnType) -> str:
    """What the values are, for messages."""
    kind = kind_of(declared)
    if kind != "category":
        return f"an {kind}" if kind == "integer" else f"a {kind}"
    return f"a category of {'texts' if all(isinstance(value, str) for value in _values(declared)) else 'integers'}"


def declaration(declared: ColumnType) -> str:
    """The call that declares this type."""
    public: list[str]
    if isinstance(declared, Key):
        times = declared.type in (datetime.date, datetime.datetime)
        public = [f"{'datetime.' if times else ''}{declared.type.__name__}"]
    elif isinstance(declared, Category):
        public = [repr(list(declared.values))]
    elif isinstance(declared, (Number, Integer, Timestamp)):
        public = [repr(declared.low), repr(declared.high)]
    else:
        public = []
    if isinstance(declared, Number) and declared.steps != DEFAULT_STEPS:
        public.append(f"steps={declared.steps}")
    default = getattr(declared, "default", None)
    if default is not None:
        public.append(f"default={default!r}")
    if getattr(declared, "spelling", None) == "written":
        public.append("written=True")
    for name, usual in (("width", 0), ("format", None), ("decimal", None), ("thousands", None)):
        given = getattr(declared, name, usual)
        if given != usual:
            public.append(f"{name}={given!r}")
    return f"{declared.kind}({', '.join(public)})"


# --- bounds


def bounds_of(declared: ColumnType) -> tuple[Any, Any]:
    """The least and the greatest value, of numbers, integers and times."""
    if isinstance(declared, Key):
        if declared.type is int:
            return -LARGEST_WHOLE, LARGEST_WHOLE
        return declared.type.min, declared.type.max  # type: ignore[attr-defined]
    assert isinstance(declared, (Number, Integer, Timestamp))
    return declared.low, declared.high


def steps_of(*declared: ColumnType) -> int:
    """The steps of the finest grid among these; the usual number if there is none."""
    # The grid of a literal has one step: it has no say.
    steps = [kind.steps for kind in declared if isinstance(kind, Number) and kind.steps > 1]
    return max(steps, default=DEFAULT_STEPS)


def numeric(declared: ColumnType, what: str) -> None:
    """Refuse what is no number."""
    kind = kind_of(declared)
    if kind in NUMERIC:
        return
    repair = ""
    if kind == "boolean":
        repair = "; .cast(integer(0, 1)) makes 0 and 1 of it"
    elif kind == "category" and all(isinstance(value, int) for value in _values(declared)):
        repair = "; .cast(integer(low, high)) makes an integer of it"
    elif kind in ("text", "category"):
        repair = "; .cast(number(low, high)) reads numbers in texts"
    elif kind in ("date", "timestamp"):
        repair = "; .year(), .month(), .day(), .weekday() and .hour() make integers of it"
    raise TypeError(f"{what} needs numbers, and this is {words(declared)}{repair}")


# --- cells and values


def settled(values: Array, valid: Mask, texts: tuple[str, ...] | None = None) -> Cells:
    """Cells in their one form."""
    if values.dtype.kind == "f":
        valid = valid & ~np.isnan(values)
        return Cells(np.where(valid, values, 0.0) + 0.0, valid)  # -0.0 + 0.0 is 0.0
    return Cells(np.where(valid, values, values.dtype.type(0)), valid, texts)


def whole(values: Array, texts: tuple[str, ...] | None = None) -> Cells:
    """Cells of values that all are some."""
    return Cells(values, np.ones(len(values), dtype=np.bool_), texts)


def canonical(cells: Cells, declared: ColumnType) -> Cells:
    """A column's cells in their one form; days beyond the years 1 to 9999 are none."""
    valid = cells.valid
    if kind_of(declared) == "date":
        valid = valid & (cells.values >= _DAYS[0]) & (cells.values <= _DAYS[1])
    return replace(settled(cells.values, valid, cells.texts), status=cells.status)


def constant(value: Plain, declared: ColumnType, n_rows: int) -> Cells:
    """The same value in all rows."""
    cell: Any = value
    texts: tuple[str, ...] | None = None
    if isinstance(declared, Category):
        cell = declared.values.index(value)
    elif isinstance(value, str):
        cell, texts = 0, (value,)
    elif isinstance(value, datetime.datetime):
        cell = microseconds(value)
    elif isinstance(value, datetime.date):
        cell = value.toordinal() - FIRST_DAY.toordinal()
    dtype = {"number": np.float64, "boolean": np.bool_}.get(kind_of(declared), np.int64)
    return whole(np.full(n_rows, cell, dtype=dtype), texts)


def plain_values(cells: Cells, declared: ColumnType) -> list[Plain | None]:
    """The plain values of a column's rows, None where there is none.

    Examples
    --------
    >>> plain_values(Cells(np.array([0.5, -0.0]), np.array([True, True])), Number(-1, 1))
    [0.5, 0.0]
    """
    cells = canonical(cells, declared)
    kind = kind_of(declared)
    held = cells.values.tolist()
    read: Callable[[Any], Plain]
    if kind == "category":
        read = _values(declared).__getitem__
    elif kind == "text":
        read = (cells.texts or ()).__getitem__
    elif kind == "date":
        read = _date
    elif kind == "timestamp":
        read = time_of
    else:
        return [value if valid else None for value, valid in zip(held, cells.valid.tolist(), strict=True)]
    return [read(value) if valid else None for value, valid in zip(held, cells.valid.tolist(), strict=True)]


def canonical_value(value: Plain | None) -> Plain | None:
    """One value in its one form."""
    if isinstance(value, float):
        return None if math.isnan(value) else value + 0.0
    return value


def _date(days: int) -> datetime.date:
    return FIRST_DAY + datetime.timedelta(days=days)


def _values(declared: ColumnType) -> tuple[int | str, ...]:
    assert isinstance(declared, Category)
    return declared.values


# --- texts of a batch


def of_texts(cells: Cells, function: Callable[[str], str]) -> Cells:
    """A function of each text: it is called once for each that occurs."""
    table: dict[str, int] = {}
    places = [table.setdefault(function(text), len(table)) for text in cells.texts or ()]
    return whole(np.array(places or [0], dtype=np.int64)[cells.values], tuple(table))


def one_table(first: Cells, second: Cells) -> tuple[Array, Array, tuple[str, ...]]:
    """The texts of two columns as places in one sorted list: they compare as the texts do."""
    listed = tuple(sorted({*(first.texts or ()), *(second.texts or ())}))
    place = {text: at for at, text in enumerate(listed)}
    of_first, of_second = (
        np.array([place[text] for text in cells.texts or ()] or [0], dtype=np.int64)[cells.values]
        for cells in (first, second)
    )
    return of_first, of_second, listed


# --- literals


def literal(value: Any, where: str) -> tuple[Plain, ColumnType] | None:
    """A public value and its type; None for what is no value. Numbers that are not finite raise ValueError."""
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        value = value.item()
    if isinstance(value, bool):
        return value, Boolean()
    if is_integer(value):
        number = int(value)
        if abs(number) > LARGEST_WHOLE:
            raise ValueError(f"{where}: an integer must be below 2**53 in absolute value; got {short_repr(value)}")
        return number, Integer(number, number)
    if isinstance(value, str):
        return str(value), Category((str(value),))
    if type(value) is datetime.datetime:
        if value.tzinfo is not None:
            raise ValueError(f"{where}: a datetime must be without a time zone; got {value!r}")
        return value, Timestamp(value, value)
    if type(value) is datetime.date:
        return value, Key(datetime.date)
    try:
        fraction = exact_number(value)
    except (TypeError, ValueError):
        return None
    try:
        double = math.inf if fraction is None else float(fraction)
    except OverflowError:
        double = math.inf
    if math.isinf(double):
        raise ValueError(f"{where}: a number must be finite and within the range of doubles; got {short_repr(value)}")
    return double + 0.0, Number(double + 0.0, double + 0.0, 1)


def literals(values: Any, name: str) -> tuple[Plain, ...]:
    """A public list of values."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (Sequence, set, frozenset, np.ndarray)):
        raise TypeError(f"{name} must be a list of values; got a {type(values).__name__}")
    read = [literal(value, name) for value in values]
    if None in read:
        odd = next(value for value, known in zip(values, read, strict=True) if known is None)
        raise TypeError(f"{name} must be numbers, texts, bools or dates; got a {type(odd).__name__}")
    if not read:
        raise ValueError(f"{name} must not be empty")
    listed = tuple(known[0] for known in read if known is not None)
    return tuple(sorted(listed, key=repr)) if isinstance(values, (set, frozenset)) else listed


# --- one type for two


def common(first: ColumnType, second: ColumnType, what: str) -> ColumnType:
    """The type that holds the values of both; refused if they are not of one kind."""
    kinds = kind_of(first), kind_of(second)
    if set(kinds) <= set(NUMERIC):
        return _common_numbers(first, second)
    if isinstance(first, Category) and isinstance(second, Category):
        return _common_categories(first, second)
    if set(kinds) == {"category", "integer"}:
        held, other = (first, second) if isinstance(first, Category) else (second, first)
        listed = any(isinstance(value, int) for value in _values(held))
        if listed and isinstance(other, Integer) and other.low == other.high:  # a literal
            value = Category((other.low,))
            return _common_categories(*((held, value) if held is first else (value, held)))
    if set(kinds) == {"category", "text"}:
        held = first if isinstance(first, Category) else second
        if all(isinstance(value, str) for value in _values(held)):
            return second if held is first else first
    if kinds[0] == kinds[1] == "text":
        return _common_texts(first, second)  # type: ignore[arg-type]
    if kinds[0] == kinds[1]:
        if isinstance(first, Timestamp) and isinstance(second, Timestamp):
            return Timestamp(min(first.low, second.low), max(first.high, second.high))
        if isinstance(second, Key):  # it has no bounds
            return second
        return replace(first, default=None) if isinstance(first, Boolean) else first
    raise TypeError(
        f"{what} needs values of one kind, and these are {words(first)} and {words(second)}; use .cast for one of them"
    )


def _common_numbers(first: ColumnType, second: ColumnType) -> ColumnType:
    if (isinstance(first, Key) or isinstance(second, Key)) and kind_of(first) == kind_of(second):
        return Key(int)
    (low, high), (other_low, other_high) = bounds_of(first), bounds_of(second)
    low, high = min(low, other_low), max(high, other_high)
    if isinstance(first, Number) or isinstance(second, Number):
        return Number(float(low), float(high), steps_of(first, second))
    return Integer(low, high)


def _common_texts(first: Key, second: Key) -> Key:
    """Texts by the coarser of two spellings: what one of the columns cannot tell apart is not told apart."""
    ranks: tuple[Spelling, ...] = ("doubles", "digits", "written")
    spelling = ranks[min(ranks.index(first.spelling), ranks.index(second.spelling))]
    return Key(str, spelling, max(first.width, second.width), first.marks or second.marks)


def _common_categories(first: Category, second: Category) -> Category:
    """All values of both, each once by its text; a value is shown as the first has it."""
    spelling = first.spelling if first.spelling != "doubles" else second.spelling
    marks = first.marks or second.marks
    listed: dict[str | None, int | str] = {}
    both = (*first.values, *second.values)
    for value, text in zip(both, spelled(both, spelling, marks=marks), strict=True):
        listed.setdefault(text, value)
    return Category(tuple(listed.values()), spelling=spelling, marks=marks)


def converters(source: ColumnType, target: ColumnType) -> tuple[Callable[[Cells], Cells], Callable[[Any], Any]]:
    """How values become those of a common type: of many rows, and of one."""
    if isinstance(target, Number) and kind_of(source) == "integer":
        return (lambda cells: Cells(cells.values.astype(np.float64), cells.valid)), float
    if isinstance(target, Category):
        if isinstance(source, Integer):
            value = source.low
            at = int(places_in([value], target)[0])
            return (lambda cells: Cells(np.full(len(cells), at, dtype=np.int64), cells.valid)), _same
        if isinstance(source, Category) and source.values != target.values:
            places = places_in(source.values, target)
            own = {value: target.values[at] for value, at in zip(source.values, places.tolist(), strict=True)}
            return (lambda cells: Cells(places[cells.values], cells.valid)), own.__getitem__
    if isinstance(target, Key) and isinstance(source, Key) and kind_of(source) == "text" and source != target:
        if (source.spelling, source.width) == (target.spelling, target.width):
            return _same, _same

        def respelled(texts: Sequence[str]) -> tuple[str, ...]:
            found = spelled(texts, target.spelling, target.width, target.marks)
            return tuple(text if new is None else new for text, new in zip(texts, found, strict=True))

        return (
            lambda cells: Cells(cells.values, cells.valid, respelled(cells.texts or ())),
            lambda value: respelled([value])[0],
        )
    if isinstance(target, Key) and kind_of(target) == "text" and isinstance(source, Category):
        texts = spelled(source.values, target.spelling, target.width, target.marks)
        # A public text that stands for a missing value equals none.
        listed = tuple("" if text is None else text for text in texts)
        known = dict(zip(source.values, listed, strict=True))
        return (lambda cells: Cells(cells.values, cells.valid, listed)), known.__getitem__
    return _same, _same


def places_in(values: Sequence[object], target: Category) -> npt.NDArray[np.int64]:
    """Where values are in a category's list; -1 for those that are not."""
    exact = {value: at for at, value in enumerate(target.values)}
    texts = spelled(list(values), target.spelling, marks=target.marks)  # type: ignore[arg-type]
    found = (exact.get(value, target.places.get(text or "", -1)) for value, text in zip(values, texts, strict=True))  # type: ignore[call-overload]
    return np.fromiter(found, dtype=np.int64, count=len(texts))


def _same(value: Any) -> Any:
    return value


COMPARISONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "==": (np.equal, operator.eq),
    "!=": (np.not_equal, operator.ne),
    "<": (np.less, operator.lt),
    "<=": (np.less_equal, operator.le),
    ">": (np.greater, operator.gt),
    ">=": (np.greater_equal, operator.ge),
}
