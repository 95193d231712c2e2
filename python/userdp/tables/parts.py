"""Parts of one text or of one time: what is read out of it by a public rule.

Each text that occurs in a batch is looked at once, alone. Lower case and white space are those of Python's version of
Unicode, so other versions may give other texts; neither touches what is private, as a row's result is its own. Times
have no zone: their parts are those on the clock that wrote them.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from userdp.exact.numbers import is_integer, short_repr
from userdp.tables.patterns import Pattern
from userdp.tables.schema import Boolean, Category, Cells, ColumnType, Integer, Key
from userdp.tables.values import Rule, bounds_of, kind_of, of_texts, places_in, whole, words
from userdp.users.values import Array

_MICROSECONDS_OF_A_DAY = 86_400_000_000
_MICROSECONDS_OF_AN_HOUR = 3_600_000_000


# --- texts


def lower(operands: Sequence[ColumnType]) -> Rule:
    """The text in lower case."""
    return _of_text(operands, "lower", str.lower)


def strip(operands: Sequence[ColumnType]) -> Rule:
    """The text without white space at its ends."""
    return _of_text(operands, "strip", str.strip)


def cut_out(operands: Sequence[ColumnType], start: int | None, stop: int | None) -> Rule:
    """The characters from one place to before another."""
    return _of_text(operands, "slice", lambda text: text[start:stop])


def match(operands: Sequence[ColumnType], pattern: str) -> Rule:
    """Whether the whole text is as a public pattern says."""
    (operand,) = operands
    _texts(operand, "match")
    compiled = Pattern(pattern)
    if isinstance(operand, Category):
        of_values = compiled.matches_each([str(value) for value in operand.values])
        return Rule(Boolean(), lambda cells: whole(of_values[cells.values]), compiled.matches)
    # Rows that have no text hold the first one; there is none if no row has any.
    return Rule(
        Boolean(), lambda cells: whole(compiled.matches_each(cells.texts or ("",))[cells.values]), compiled.matches
    )


def _of_text(operands: Sequence[ColumnType], name: str, function: Callable[[str], str]) -> Rule:
    (operand,) = operands
    _texts(operand, name)
    if isinstance(operand, Category):  # its list is public, and so is that of the results
        results = [function(str(value)) for value in operand.values]
        target = Category(tuple(dict.fromkeys(results)), spelling="written")
        places = places_in(results, target)
        return Rule(target, lambda cells: whole(places[cells.values]), function)
    # What was cut out of a text is itself: "07" is no 7 here.
    return Rule(Key(str, "written"), lambda cells: of_texts(cells, function), function)


def _texts(operand: ColumnType, name: str) -> None:
    if kind_of(operand) == "text":
        return
    if isinstance(operand, Category) and all(isinstance(value, str) for value in operand.values):
        return
    raise TypeError(
        f"{name} needs texts, and this is {words(operand)}; declare the column by key(str) or category([...])"
    )


def read_slice(start: Any, stop: Any) -> tuple[int | None, int | None]:
    """Two public places in texts."""
    for name, value in (("start", start), ("stop", stop)):
        if value is not None and not is_integer(value):
            raise TypeError(f"slice: {name} must be an int or None; got {short_repr(value)}")
    return None if start is None else int(start), None if stop is None else int(stop)


# --- times


def part(operands: Sequence[ColumnType], name: str) -> Rule:
    """The year, month, day of the month, day of the week (Monday is 0) or hour."""
    (operand,) = operands
    kind = kind_of(operand)
    if kind not in ("date", "timestamp") or (kind == "date" and name == "hour"):
        needed = "times" if name == "hour" else "dates or times"
        raise TypeError(
            f"{name} needs {needed}, and this is {words(operand)}; "
            f"declare the column by timestamp(low, high){'' if name == 'hour' else ' or key(datetime.date)'}"
        )
    low, high = bounds_of(operand)
    bounds = {"year": (low.year, high.year), "month": (1, 12), "day": (1, 31), "weekday": (0, 6), "hour": (0, 23)}[name]

    def vector(cells: Cells) -> Cells:
        since = cells.values
        if name == "hour":
            return whole(since % _MICROSECONDS_OF_A_DAY // _MICROSECONDS_OF_AN_HOUR)
        return whole(_of_days(since if kind == "date" else since // _MICROSECONDS_OF_A_DAY, name))

    return Rule(Integer(*bounds), vector, _SCALARS[name])


_SCALARS: dict[str, Callable[[Any], int]] = {
    "year": lambda time: time.year,
    "month": lambda time: time.month,
    "day": lambda time: time.day,
    "weekday": datetime.date.weekday,
    "hour": lambda time: time.hour,
}


def _of_days(days: Array, name: str) -> Array:
    """Part of the days since 1970, in integers only."""
    if name == "weekday":
        return np.asarray((days + 3) % 7)  # 1970 began on a Thursday
    dates = days.astype("M8[D]")
    months = dates.astype("M8[M]")
    if name == "day":
        return np.asarray((dates - months.astype("M8[D]")).astype(np.int64) + 1)
    since = months.astype(np.int64)
    number: Array = since // 12 + 1970 if name == "year" else since % 12 + 1
    return number
