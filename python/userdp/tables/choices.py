"""What is decided for one row: comparisons, logic, membership, branches, and casts to another declared type.

A row without a value in an operand has none in the result, as the result would otherwise say something of a value that
nobody gave. There are three ways out: `default` and `cast` to a type with a default fill such rows, and a branch asks
for the values of the side it takes only.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from userdp.exact.numbers import short_repr
from userdp.tables.schema import (
    Boolean,
    Category,
    Cells,
    ColumnType,
    Key,
    microseconds,
    spelled,
)
from userdp.tables.values import (
    COMPARISONS,
    FIRST_DAY,
    NUMERIC,
    Plain,
    Rule,
    common,
    converters,
    kind_of,
    literal,
    one_table,
    places_in,
    plain_values,
    whole,
    words,
)
from userdp.users import values as raw
from userdp.users.values import Array, Spelling


def compare(operands: Sequence[ColumnType], sign: str) -> Rule:
    """Whether two values of one kind stand so to each other."""
    first, second = operands
    target = common(first, second, sign)
    kind = kind_of(target)
    vector, scalar = COMPARISONS[sign]
    if kind in ("category", "boolean") and sign not in ("==", "!="):
        raise TypeError(f"{sign} needs values that have an order, and this is {words(target)}; use == or .is_in(...)")
    if kind == "category":
        _meet(first, second)
    (of_first, one), (of_second, other) = converters(first, target), converters(second, target)

    def cells(a: Cells, b: Cells) -> Cells:
        a, b = of_first(a), of_second(b)
        if kind == "text":
            of_a, of_b, _ = one_table(a, b)
            return whole(vector(of_a, of_b))
        return whole(vector(a.values, b.values))

    return Rule(Boolean(), cells, lambda a, b: scalar(one(a), other(b)))


def _meet(first: ColumnType, second: ColumnType) -> None:
    """Refuse categories that have no value in common."""
    values = [side.values if isinstance(side, Category) else (side.low,) for side in (first, second)]  # type: ignore[attr-defined]
    spellings = [side.spelling for side in (first, second) if isinstance(side, Category)]
    spelling: Spelling = next((one for one in spellings if one != "doubles"), "doubles")
    marks = next((side.marks for side in (first, second) if isinstance(side, Category) and side.marks), None)
    if not set(spelled(values[0], spelling, marks=marks)) & set(spelled(values[1], spelling, marks=marks)):
        shown = [short_repr(sorted(side, key=str)) for side in values]
        raise ValueError(f"these categories have no value in common: {shown[0]} and {shown[1]}")


def logic(operands: Sequence[ColumnType], sign: str) -> Rule:
    """Of one bool or two."""
    for operand in operands:
        if kind_of(operand) != "boolean":
            raise TypeError(
                f"{sign} needs bools, and this is {words(operand)}; comparisons make them, "
                "and bind less tightly: put them in brackets"
            )
    vector = {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor, "~": np.logical_not}[sign]
    scalar: dict[str, Callable[..., bool]] = {
        "&": lambda a, b: a and b,
        "|": lambda a, b: a or b,
        "^": lambda a, b: a is not b,
        "~": lambda a: not a,
    }
    return Rule(Boolean(), lambda *cells: whole(vector(*(side.values for side in cells))), scalar[sign])


def is_in(operands: Sequence[ColumnType], values: tuple[Plain, ...]) -> Rule:
    """Whether a value is one of a public list."""
    (operand,) = operands
    kind = kind_of(operand)
    listed = set(values)
    for value in {type(value): value for value in values}.values():
        known = literal(value, "is_in")
        assert known is not None
        common(operand, known[1], "is_in")
    if isinstance(operand, Category):
        for value, place in zip(values, places_in(values, operand).tolist(), strict=True):
            if place < 0:
                shown = short_repr(operand.values)
                raise ValueError(f"is_in: {short_repr(value)} is none of the category's values {shown}")
    if isinstance(operand, Category):
        listed = {operand.values[place] for place in places_in(values, operand).tolist()}
        inside = np.array([value in listed for value in operand.values])
        return Rule(Boolean(), lambda cells: whole(inside[cells.values]), lambda a: a in listed)
    if isinstance(operand, Key) and kind == "text":
        texts = set(spelled(values, operand.spelling, operand.width, operand.marks))  # type: ignore[arg-type]

        def of_texts(cells: Cells) -> Cells:
            return whole(np.array([text in texts for text in cells.texts or ()] or [False])[cells.values])

        return Rule(Boolean(), of_texts, lambda a: a in texts)
    known_cells = np.unique(np.array([_cell(value) for value in values]))

    def of_numbers(cells: Cells) -> Cells:
        at = np.minimum(np.searchsorted(known_cells, cells.values), len(known_cells) - 1)
        return whole(known_cells[at] == cells.values)

    return Rule(Boolean(), of_numbers, lambda a: a in listed)


def _cell(value: Plain) -> float | int:
    """What stands for a value in cells."""
    if isinstance(value, datetime.datetime):
        return microseconds(value)
    if isinstance(value, datetime.date):
        return value.toordinal() - FIRST_DAY.toordinal()
    assert not isinstance(value, str)
    return value


def is_missing(operands: Sequence[ColumnType]) -> Rule:
    """Whether a row's cell has nothing in it; of values that were computed, whether there is none."""

    def vector(cells: Cells) -> Cells:
        return whole(~cells.valid if cells.status is None else cells.status == raw.MISSING)

    return Rule(Boolean(), vector, lambda a: a is None, strict=False)


def is_unreadable(operands: Sequence[ColumnType]) -> Rule:
    """Whether a row's cell has something in it that is not read."""

    def vector(cells: Cells) -> Cells:
        status = np.zeros(len(cells), dtype=np.uint8) if cells.status is None else cells.status
        return whole(status == raw.UNREADABLE)

    return Rule(Boolean(), vector, lambda a: False, strict=False)


# --- branches and defaults


def when(operands: Sequence[ColumnType]) -> Rule:
    """One of two values, or a value or none; rows without a condition have none."""
    condition, first, *others = operands
    if kind_of(condition) != "boolean":
        raise TypeError(f"when needs a condition, and this is {words(condition)}; comparisons make conditions")
    target = common(first, others[0] if others else first, "when(...).then(...).otherwise(...)")
    of_first, one = converters(first, target)
    of_other, other = converters(others[0], target) if others else (None, None)

    def vector(test: Cells, a: Cells, *rest: Cells) -> Cells:
        yes = test.valid & test.values
        a = of_first(a)
        if of_other is None:
            return Cells(a.values, yes & a.valid, a.texts)
        return _choose(yes, a, of_other(rest[0]), test.valid)

    def scalar(test: bool | None, a: Any, *rest: Any) -> Plain | None:
        if test is None:
            return None
        if test:
            return None if a is None else one(a)
        return None if other is None or rest[0] is None else other(rest[0])

    return Rule(target, vector, scalar, strict=False)


def default(operands: Sequence[ColumnType]) -> Rule:
    """The value, or a public one for rows that have none."""
    first, second = operands
    target = common(first, second, "default")
    (of_first, one), (of_second, other) = converters(first, target), converters(second, target)

    def vector(a: Cells, b: Cells) -> Cells:
        return _choose(a.valid, of_first(a), of_second(b), np.ones(len(a), dtype=np.bool_))

    return Rule(target, vector, lambda a, b: other(b) if a is None else one(a), strict=False)


def _choose(yes: Array, a: Cells, b: Cells, known: Array) -> Cells:
    """The first where yes, and the second elsewhere."""
    texts = None
    of_a, of_b = a.values, b.values
    if a.texts is not None and b.texts is not None:
        of_a, of_b, texts = one_table(a, b)
    return Cells(np.where(yes, of_a, of_b), np.where(yes, a.valid, b.valid) & known, texts)


# --- casts


def cast(operands: Sequence[ColumnType], target: ColumnType) -> Rule:
    """The value as if it had been read from a column of the target's type."""
    (operand,) = operands
    _castable(operand, target)
    kind = kind_of(operand)

    def vector(cells: Cells) -> Cells:
        values, missing = cells.values, ~cells.valid
        if kind in ("category", "text"):
            # Each distinct value is read once, and so is none.
            items = operand.values if isinstance(operand, Category) else cells.texts or ()
            read = target.read(raw.of_objects([*items, None]), kind)
            at = np.where(cells.valid, values, len(items))
            return Cells(read.values[at], read.valid[at], read.texts)
        if kind in ("date", "timestamp"):
            values = values.astype("M8[D]" if kind == "date" else "M8[us]")
        return replace(target.read(raw.of_array(values, missing=missing), kind), status=None)

    return Rule(target, vector, lambda value: cast_value(value, target), strict=False)


def _castable(source: ColumnType, target: ColumnType) -> None:
    """Refuse casts that would leave no value at all."""
    kind, wanted = kind_of(source), kind_of(target)
    held = source.values if isinstance(source, Category) else ()
    texts = kind == "text" or (bool(held) and all(isinstance(value, str) for value in held))
    numbers = kind in (*NUMERIC, "boolean") or any(isinstance(value, int) for value in held)
    if wanted in ("date", "timestamp"):
        fits, repair = kind in ("date", "timestamp"), "declare the column by timestamp(low, high) or key(datetime.date)"
    elif wanted == "text":
        fits, repair = texts, "declare the column by key(str)"
    elif wanted == "category":
        assert isinstance(target, Category)
        of_numbers = any(isinstance(value, int) for value in target.values)
        fits, repair = texts or (numbers and of_numbers), "use .cut(edges) to make a category of numbers"
    else:
        fits, repair = texts or numbers, "use .year(), .month(), .day(), .weekday() or .hour()"
    if not fits:
        raise TypeError(f"cast makes no {wanted} of {words(source)}; {repair}")


def cast_value(value: Plain | None, target: ColumnType) -> Plain | None:
    """Read one value by a declared type: what it is not is the type's default, or none.

    Examples
    --------
    >>> from userdp.tables.schema import Integer, Number
    >>> cast_value("2.5", Number(0.0, 2.0)), cast_value(2.5, Integer(0, 9)), cast_value(3.0, Integer(0, 9))
    (2.0, None, 3)
    """
    return plain_values(target.read(raw.of_objects([value]), "cast"), target)[0]
