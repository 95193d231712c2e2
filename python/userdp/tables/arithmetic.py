"""Numbers of one row: sums, products, quotients, logarithms, bins, and the public bounds of what comes out.

Doubles are added, subtracted, multiplied and divided one row at a time, and nothing else is done to them: each of
these four is rounded correctly by IEEE 754, so a row's result has the same bits on every machine, wherever the row lies
in a batch. (Where another library has told the processor to flush subnormal numbers, these are 0, in all rows alike.)
Rounding keeps order. So the bounds of a sum, a product or a quotient, found with the same rounded operations at the
ends of the operands' bounds, hold for all rounded results as they are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import short_repr
from userdp.tables.schema import Category, Cells, ColumnType, Integer, Number, category_values
from userdp.tables.values import NUMERIC, Rule, bounds_of, kind_of, literal, numeric, steps_of, whole
from userdp.users.values import LARGEST_WHOLE, Array

Floats = npt.NDArray[np.float64]

_OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (np.add, operator.add),
    "-": (np.subtract, operator.sub),
    "*": (np.multiply, operator.mul),
}
# ln 2 is the sum of these two, to 2**-86: the first is a multiple of 2**-32, so small multiples of it are exact.
_LN2_HIGH = math.floor(math.log(2) * 2**32) / 2**32
_LN2_LOW = 0.6931471805599453094172321214581765680755 - _LN2_HIGH
_SERIES = [1 / (2 * k + 1) for k in range(1, 13)]
_LEAST_ABOVE = math.nextafter(-1.0, 0.0)


# --- + - * /


def arithmetic(operands: Sequence[ColumnType], sign: str) -> Rule:
    """Of two numbers; integers stay integers."""
    first, second = operands
    for operand in operands:
        numeric(operand, sign)
    if sign == "/":
        return _quotient(first, second)
    vector, scalar = _OPERATIONS[sign]
    if kind_of(first) == kind_of(second) == "integer":
        ends = [scalar(one, other) for one in bounds_of(first) for other in bounds_of(second)]
        if max(map(abs, ends)) > LARGEST_WHOLE:
            raise ValueError(
                f"an integer must stay below 2**53 in absolute value, and the bounds of this one are {min(ends)} and "
                f"{max(ends)}: bound the operands with .clip(low, high), or .cast them to number(low, high)"
            )
        return Rule(Integer(min(ends), max(ends)), lambda a, b: whole(vector(a.values, b.values)), scalar)
    low, high = _hull(scalar, first, second)
    return Rule(
        Number(low, high, steps_of(first, second)),
        lambda a, b: whole(vector(_doubles(a), _doubles(b))),
        lambda a, b: scalar(float(a), float(b)),
    )


def _quotient(first: ColumnType, second: ColumnType) -> Rule:
    """The quotient; none for the divisor 0."""
    low, high = bounds_of(second)
    ends = (-math.inf, math.inf) if low <= 0 <= high else _hull(operator.truediv, first, second)

    def vector(a: Cells, b: Cells) -> Cells:
        divisor = _doubles(b)
        some = divisor != 0
        return Cells(_doubles(a) / np.where(some, divisor, 1.0), some)

    def scalar(a: float, b: float) -> float | None:
        return float(a) / float(b) if b != 0 else None

    return Rule(Number(*ends, steps_of(first, second)), vector, scalar)


def _hull(scalar: Callable[..., float], first: ColumnType, second: ColumnType) -> tuple[float, float]:
    """The bounds of a result that is monotone in each operand."""
    ends = [scalar(float(one), float(other)) for one in bounds_of(first) for other in bounds_of(second)]
    if any(map(math.isnan, ends)):  # of an operand without bounds
        return -math.inf, math.inf
    return min(ends) + 0.0, max(ends) + 0.0


def _doubles(cells: Cells) -> Floats:
    return cells.values.astype(np.float64, copy=False)


# --- one operand


def absolute(operands: Sequence[ColumnType]) -> Rule:
    """The absolute value."""
    (operand,) = operands
    numeric(operand, "abs")
    low, high = bounds_of(operand)
    ends = max(low, -high, type(low)(0)), max(-low, high)
    if isinstance(operand, Number):
        return Rule(Number(*ends, operand.steps), lambda a: whole(np.abs(a.values)), abs)
    return Rule(Integer(*ends), lambda a: whole(np.abs(a.values)), abs)


def floor(operands: Sequence[ColumnType]) -> Rule:
    """The greatest integer below."""
    (operand,) = operands
    numeric(operand, "floor")
    low, high = bounds_of(operand)
    if not isinstance(operand, Number):
        return Rule(Integer(low, high), lambda a: whole(a.values), int)
    if max(-low, high) > LARGEST_WHOLE:
        raise ValueError(
            "floor makes integers, which must stay below 2**53 in absolute value, and the bounds here are "
            f"{low:g} and {high:g}: use .clip(low, high) first"
        )
    return Rule(
        Integer(math.floor(low), math.floor(high)),
        lambda a: whole(np.floor(a.values).astype(np.int64)),
        math.floor,
    )


def clip(operands: Sequence[ColumnType], low: float, high: float) -> Rule:
    """The nearest value within public bounds."""
    (operand,) = operands
    numeric(operand, "clip")
    below, above = bounds_of(operand)
    if kind_of(operand) == "integer" and isinstance(low, int) and isinstance(high, int):
        return Rule(
            Integer(min(max(below, low), high), min(max(above, low), high)),
            lambda a: whole(_within(a.values, low, high)),
            lambda a: min(max(a, low), high),
        )
    low, high = float(low), float(high)
    return Rule(
        Number(_clipped(float(below), low, high), _clipped(float(above), low, high), steps_of(operand)),
        lambda a: whole(_within(_doubles(a), low, high)),
        lambda a: _clipped(float(a), low, high),
    )


def _within(values: Array, low: float, high: float) -> Array:
    # By comparisons: which of two zeros `maximum` returns may depend on where a row lies in a batch.
    return np.where(values < low, low, np.where(values > high, high, values)).astype(values.dtype, copy=False)


def _clipped(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value


def read_ends(low: Any, high: Any) -> tuple[float, float]:
    """Two public bounds: integers if both are."""
    ends: list[float] = []
    for name, value in (("low", low), ("high", high)):
        known = literal(value, f"clip: {name}")
        if known is None or kind_of(known[1]) not in NUMERIC:
            raise TypeError(f"clip: {name} must be a finite number; got {short_repr(value)}")
        ends.append(known[0])  # type: ignore[arg-type]
    if not ends[0] < ends[1]:
        raise ValueError(f"clip: low must be below high; got {ends[0]!r} and {ends[1]!r}")
    return ends[0], ends[1]


# --- log1p


def log1p(operands: Sequence[ColumnType]) -> Rule:
    """ln(1 + x); none for x of -1 and below."""
    # The C library's logarithm may have other last bits on other machines, and NumPy's at other places of a batch.
    # This one is of the four operations; the powers of two that are taken out and put back are exact.
    (operand,) = operands
    numeric(operand, "log1p")
    low, high = (float(end) for end in bounds_of(operand))
    if high <= -1:
        raise ValueError(f"log1p is of numbers above -1, and the bounds here are {low:g} and {high:g}")
    # The error is of a few units of the last place, so order may be lost among neighbors: clamp to the ends.
    ends = log1p_of(max(low, _LEAST_ABOVE)), log1p_of(high)

    def vector(a: Cells) -> Cells:
        values = _doubles(a)
        some = values > -1
        return Cells(_within(_log1p(np.where(some, values, 0.0)), *ends), some)

    def scalar(a: float) -> float | None:
        return _clipped(log1p_of(float(a)), *ends) if a > -1 else None

    return Rule(Number(*ends, steps_of(operand)), vector, scalar)


def log1p_of(x: float) -> float:
    """ln(1 + x) of a double above -1, to within 4 units of the last place.

    Examples
    --------
    >>> log1p_of(0.0), round(log1p_of(1.0), 12)
    (0.0, 0.69314718056)
    """
    u = 1.0 + x
    if math.isinf(u):
        return u
    lost = 1.0 - (u - x) if x >= 1 else x - (u - 1.0)  # exactly what the sum was rounded by
    m, exponent = math.frexp(u)
    if m < 0.75:  # then m is from 3/4 to 3/2
        m, exponent = m * 2.0, exponent - 1
    f = m - 1.0  # exact
    s = f / (2.0 + f)
    z = s * s
    p = 0.0
    for coefficient in reversed(_SERIES):
        p = (p + coefficient) * z
    # ln m = 2 artanh s = 2 s (1 + z/3 + z**2/5 + ...), and 2 s = f - s f.
    tail = 2.0 * (s * p) - s * f
    if exponent == 0:
        return f + (tail + lost / u)
    return exponent * _LN2_HIGH + (f + (tail + (exponent * _LN2_LOW + lost / u)))


def _log1p(x: Floats) -> Floats:
    """`log1p_of` of many, by the same operations in the same order."""
    u = 1.0 + x
    endless = np.isinf(u)
    x, u = np.where(endless, 0.0, x), np.where(endless, 1.0, u)
    lost = np.where(x >= 1, 1.0 - (u - x), x - (u - 1.0))
    m, exponent = np.frexp(u)
    small = m < 0.75
    m = np.where(small, m * 2.0, m)
    power = np.where(small, exponent - 1, exponent).astype(np.float64)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    p = np.zeros_like(x)
    for coefficient in reversed(_SERIES):
        p = (p + coefficient) * z
    tail = 2.0 * (s * p) - s * f
    near = f + (tail + lost / u)
    far = power * _LN2_HIGH + (f + (tail + (power * _LN2_LOW + lost / u)))
    result: Floats = np.where(endless, np.inf, np.where(power == 0, near, far))
    return result


# --- bins


def cut(
    operands: Sequence[ColumnType],
    edges: tuple[float, ...],
    labels: tuple[int | str, ...] | None,
    default: int | str | None,
) -> Rule:
    """The bin that a number is in, each from its lower edge to below its upper one."""
    (operand,) = operands
    numeric(operand, "cut")
    listed = _intervals(edges) if labels is None else labels
    listed = listed if default is None or default in listed else (*listed, default)
    known = np.array(edges, dtype=np.float64)
    missing = 0 if default is None else listed.index(default)

    def vector(a: Cells) -> Cells:
        bins = np.searchsorted(known, _doubles(a), side="right").astype(np.int64)
        return whole(bins) if default is None else whole(np.where(a.valid, bins, missing))

    def scalar(a: float | None) -> int | str | None:
        return default if a is None else listed[sum(edge <= a for edge in edges)]

    return Rule(Category(listed, spelling="written"), vector, scalar, strict=default is None)


def read_cut(edges: Any, labels: Any, default: Any) -> tuple[tuple[float, ...], tuple[int | str, ...] | None, Any]:
    """Read the edges, the labels of the bins, and that of rows without a number."""
    if isinstance(edges, (str, bytes)) or not isinstance(edges, (Sequence, np.ndarray)):
        raise TypeError(f"cut: edges must be a list of numbers; got a {type(edges).__name__}")
    if not len(edges):
        raise ValueError("cut: edges must not be empty")
    read: list[float] = []
    for edge in edges:
        known = literal(edge, "cut: edges")
        if known is None or kind_of(known[1]) not in NUMERIC:
            raise TypeError(f"cut: edges must be finite numbers; got {short_repr(edge)}")
        read.append(known[0])  # type: ignore[arg-type]
    if any(not low < high for low, high in pairwise(read)):
        raise ValueError(f"cut: edges must increase; got {short_repr(list(edges))}")
    named = None if labels is None else category_values(labels, "cut: labels")
    if named is not None and len(named) != len(read) + 1:
        raise ValueError(f"cut: {len(read)} edges make {len(read) + 1} bins; got {len(named)} labels")
    if default is not None:
        default = category_values([default], "cut: default")[0]
    return tuple(read), named, default


def _intervals(edges: tuple[float, ...]) -> tuple[str, ...]:
    """The bins as intervals."""
    ends = [str(int(edge)) if abs(edge) <= LARGEST_WHOLE and edge == int(edge) else repr(edge) for edge in edges]
    return f"(-inf, {ends[0]})", *(f"[{low}, {high})" for low, high in pairwise([*ends, "inf"]))
