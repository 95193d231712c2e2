"""Means of users and integer sums of them, one number at a time, in fractions.

Square roots are rational to 200 bits, so an integer may differ by one from a floating-point implementation's only where
a number is within rounding of an integer; without clipping to a ball there are no roots, and everything is exact.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from fractions import Fraction

Vector = list[Fraction]

LARGEST = Fraction(sys.float_info.max)


def root(square: Fraction) -> Fraction:
    """The square root, to 200 bits."""
    scale = 4 ** (200 + max(0, square.denominator.bit_length() - square.numerator.bit_length()))
    return Fraction(math.isqrt(math.floor(square * scale)), math.isqrt(scale))


def squared(vector: Sequence[Fraction | int]) -> Fraction:
    return sum((Fraction(x) ** 2 for x in vector), Fraction(0))


def number(x: float, center: Fraction) -> Fraction:
    """A number less that of the center; NaN is the center's, infinities are the largest floats."""
    if math.isnan(x):
        return Fraction(0)
    if math.isinf(x):
        return LARGEST if x > 0 else -LARGEST
    return Fraction(x) - center


def shrunk(vector: Vector, radius: Fraction) -> Vector:
    square = squared(vector)
    return vector if square <= radius**2 else [x * radius / root(square) for x in vector]


def clamped(x: Fraction, low: Fraction | int, high: Fraction | int) -> Fraction:
    return Fraction(min(max(x, low), high))


def user_mean(rows: Sequence[Sequence[float]], bound: float, norm: str, center: Sequence[float]) -> Vector:
    radius, total = Fraction(bound), [Fraction(0)] * len(center)
    for row in rows:
        record = [number(x, Fraction(c)) for x, c in zip(row, center, strict=True)]
        clip = shrunk(record, radius) if norm == "l2" else [clamped(x, -radius, radius) for x in record]
        total = [a + b for a, b in zip(total, clip, strict=True)]
    return [x / len(rows) for x in total]


def hadamard(vector: Sequence[Fraction | int]) -> Vector:
    """By its definition: the entry (i, j) of the matrix is (-1)^(number of ones of i & j)."""
    return [
        sum((Fraction(x) * (-1) ** (i & j).bit_count() for j, x in enumerate(vector)), Fraction(0))
        for i in range(len(vector))
    ]


def rotated(vector: Vector, signs: Sequence[int]) -> Vector:
    padded = [*vector, *[Fraction(0)] * (len(signs) - len(vector))]
    size = root(Fraction(len(signs)))
    return [x / size for x in hadamard([x * sign for x, sign in zip(padded, signs, strict=True)])]


def clip(vector: Vector, center: Sequence[float], radius: float, grid: float) -> list[int]:
    """Steps of the grid from the center, toward 0, shrunk into the ball of R whole steps."""
    steps = Fraction(radius) // Fraction(grid)
    difference = [(x - Fraction(c)) / Fraction(grid) for x, c in zip(vector, center, strict=True)]
    return [math.trunc(x) for x in shrunk(difference, Fraction(steps))]


def winsorized(vector: Vector, low: Sequence[float], steps: int, grid: float) -> list[int]:
    return [
        min(max(math.floor((x - Fraction(a)) / Fraction(grid) + Fraction(1, 2)), 0), steps)
        for x, a in zip(vector, low, strict=True)
    ]


def bin_of(x: Fraction, bins: int, bound: float) -> int:
    return min(max(math.floor((x + Fraction(bound)) * bins / (2 * Fraction(bound))), 0), bins - 1)


def within(vector: Vector, center: Sequence[float], radius: float) -> bool:
    return squared([x - Fraction(c) for x, c in zip(vector, center, strict=True)]) <= Fraction(radius) ** 2
