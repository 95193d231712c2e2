"""One private value as a number, a whole number or a label, by its exact type: nothing in it can raise, warn or exit.

Values are of a closed set of plain types, which a table lists: Python's numbers and texts, and NumPy's. The table goes
by the identity of `type(value)`. So no method of another class is ever called, whatever it would do, and a subclass
counts as what it is: no number, no label.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.encoding import INTEGER_TYPES

LARGEST_WHOLE = 2**53 - 1
"""Doubles tell whole numbers up to here apart. NumPy and pandas make doubles of integers for one missing value."""


def _of_real(value: Any) -> float:
    """Any finite number as the nearest double, infinite beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN of decimals
        return math.nan


def _of_fraction(value: Any) -> float:
    """As `_of_real`; Python's fractions have attributes that anybody can set."""
    top, bottom = getattr(value, "_numerator", None), getattr(value, "_denominator", None)
    if not (type(top) is int and type(bottom) is int and bottom):
        return math.nan
    try:
        return top / bottom
    except OverflowError:
        return math.inf if (top > 0) == (bottom > 0) else -math.inf


def _of_text(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan


def _of_numpy(value: Any) -> float:
    return _of_real(value.item())


def _of_longdouble(value: Any) -> float:
    with np.errstate(all="ignore"):
        return float(value)


_REALS: dict[int, Callable[[Any], float]] = {
    **{id(kind): _of_real for kind in (bool, int, float, Decimal)},
    id(Fraction): _of_fraction,
    **{id(kind): _of_numpy for kind in (np.bool_, *INTEGER_TYPES, np.float16, np.float32, np.float64)},
    id(np.longdouble): _of_longdouble,
}
_REALS[id(np.float64)] = _of_numpy  # where long doubles are doubles
_NUMBERS = {**_REALS, **{id(kind): _of_text for kind in (str, bytes, np.str_, np.bytes_)}}
_TEXTS = {id(kind): kind for kind in (str, np.str_)}
_BYTES = {id(kind): kind for kind in (bytes, np.bytes_)}
_WHOLE = {id(kind) for kind in (bool, int, np.bool_, *INTEGER_TYPES)}
_BOOLS = {id(bool), id(np.bool_)}
_FLOATS = {id(kind) for kind in (float, np.float16, np.float32, np.float64, np.longdouble)}
_PLAIN = {id(kind) for kind in (bool, int, float)}


def number_of(value: object) -> float:
    """The number that a value is, or that a text says; NaN for all else."""
    reader = _NUMBERS.get(id(type(value)))
    return math.nan if reader is None else reader(value)


def real_of(value: object) -> float:
    """The number that a value is; NaN for texts and for all else."""
    reader = _REALS.get(id(type(value)))
    return math.nan if reader is None else reader(value)


def whole_of(value: object) -> int | None:
    """The integer that a value is, exactly; None for all that is not of an integer type."""
    return int(value) if id(type(value)) in _WHOLE else None  # type: ignore[call-overload]


def text_of(value: object) -> str | bytes | None:
    """The text or the bytes that a value is; None for all else."""
    kind = id(type(value))
    if kind in _TEXTS:
        return str(value)
    return bytes(value) if kind in _BYTES else None  # type: ignore[call-overload]


def item_of(value: object) -> int | str | bytes | None:
    """The integer, text or bytes that a value is; None for all else, and for bools. Whole floats are integers."""
    kind = id(type(value))
    if kind in _BOOLS:
        return None
    if kind in _WHOLE:
        return int(value)  # type: ignore[call-overload, no-any-return]
    if kind in _FLOATS:
        number = real_of(value)
        return int(number) if abs(number) <= LARGEST_WHOLE and number.is_integer() else None
    return text_of(value)


def code_of(value: object) -> int:
    """The integer that a value is, from 0 up to 2**53 - 1; -1 for all else. Bools and whole floats are integers."""
    code = whole_of(value)
    if code is None:
        item = item_of(value)
        code = item if type(item) is int else -1
    return code if 0 <= code <= LARGEST_WHOLE else -1


def to_numeric(values: Iterable[object], count: int) -> npt.NDArray[np.float64]:
    """`number_of` of many values, with shape (count,)."""
    objects = list(values)
    if set(map(id, map(type, objects))) <= _PLAIN:
        try:
            return np.array(objects, dtype=np.float64).reshape(count)
        except OverflowError:  # an integer beyond doubles
            pass
    return np.fromiter(map(number_of, objects), dtype=np.float64, count=count)
