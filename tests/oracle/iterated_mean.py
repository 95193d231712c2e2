"""A slow reference of the iterated clipped mean: fractions, one user at a time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

Vector = tuple[Fraction, ...]


def clipped(vector: Vector, center: Vector, radius: Fraction, grid: Fraction) -> tuple[int, ...]:
    """Integers next to the vector, less the center, clipped to the ball of whole steps of the grid; rounded to 0."""
    reach = math.floor(radius / grid)
    radius = reach * grid
    moved = [x - c for x, c in zip(vector, center, strict=True)]
    squared = sum(x * x for x in moved)
    if squared > radius * radius:
        # the scale to 30 digits: what is rounded to 0 hardly ever depends on it
        scale = Fraction(math.isqrt(int(radius * radius / squared * 10**60)), 10**30)
        moved = [x * scale for x in moved]
    steps = [math.floor(abs(x) / grid) * (1 if x > 0 else -1) for x in moved]
    while sum(y * y for y in steps) > reach * reach:
        steps = [y - (y > 0) + (y < 0) for y in steps]
    return tuple(steps)


def total(vectors: Sequence[Vector | None], center: Vector, radius: Fraction, grid: Fraction) -> tuple[int, ...]:
    """The sum over users; None has no rows."""
    each = [clipped(vector, center, radius, grid) for vector in vectors if vector is not None]
    return tuple(sum(column) for column in zip(*each, strict=True)) if each else (0,) * len(center)


def moved(center: Vector, grid: Fraction, released: Sequence[int], n_users: int, ball: Fraction) -> Vector:
    """The next center; inside the ball only, where nothing is moved back."""
    after = tuple(c + grid * value / n_users for c, value in zip(center, released, strict=True))
    assert sum(c * c for c in after) <= ball * ball
    return after


def renyi(p: Sequence[Fraction], q: Sequence[Fraction], order: int) -> float:
    """The Renyi divergence of an order that is an int above 1."""
    terms = sum(a**order / b ** (order - 1) for a, b in zip(p, q, strict=True) if a)
    # numerators are far beyond floats
    return (_log(terms.numerator) - _log(terms.denominator)) / (order - 1)


def _log(value: int) -> float:
    shift = max(value.bit_length() - 900, 0)
    return math.log(value >> shift) + shift * math.log(2)


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], epsilon: float) -> float:
    """The least delta for this direction."""
    factor = Fraction(math.exp(epsilon))
    return float(sum(max(a - factor * b, Fraction(0)) for a, b in zip(p, q, strict=True)))


def hockey_stick_of_weights(p: Mapping[Hashable, int], q: Mapping[Hashable, int], epsilon: float) -> float:
    """The same of distributions by integer weights, over one denominator for all outcomes."""
    factor, total_p, total_q = Fraction(math.exp(epsilon)), sum(p.values()), sum(q.values())
    more, less = total_q * factor.denominator, total_p * factor.numerator
    return sum(max(a * more - less * q.get(outcome, 0), 0) for outcome, a in p.items()) / (total_p * more)
