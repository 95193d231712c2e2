"""A slow reference of what clipping leaves out: integers and fractions, one user at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

Vector = Sequence[int]


def length_above(y: Vector) -> int:
    """The least integer that is at least the Euclidean length."""
    squared = sum(x * x for x in y)
    root = math.isqrt(squared)
    return root + (root * root < squared)


def toward_zero(numerator: int, denominator: int) -> int:
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient


def pulled(y: Vector, r: int) -> list[int]:
    """What one user adds to the vector: the part beyond r, cut at the length r."""
    q = length_above(y)
    return [toward_zero(x * min(max(q - r, 0), r), max(q, 1)) for x in y]


def beyond(y: Vector, r: int, rung: int) -> int:
    """What one user adds to a rung, i = 1, 2, ..: between 2^i r and twice that, over 2^i."""
    end = 2**rung * r
    return min(max(length_above(y) - end, 0), end) // 2**rung


def rungs(r: int, two_ball: int) -> int:
    """Up to the first distance that is at least half of two_ball."""
    rung = 1
    while 2 * 2**rung * r < two_ball:
        rung += 1
    return rung


def half_length(users: Sequence[Vector], r: int) -> int:
    total = [sum(column) for column in zip(*(pulled(y, r) for y in users), strict=True)]
    return math.isqrt(sum(x * x for x in total)) // 2


def statistic(users: Sequence[Vector], r: int, weights: Sequence[Fraction | int]) -> int:
    """The largest of half the length of the vector and all rungs, times weights."""
    parts = [half_length(users, r)]
    parts += [sum(beyond(y, r, rung) for y in users) for rung in range(1, len(weights))]
    return max(math.floor(Fraction(w) * x) for w, x in zip(weights, parts, strict=True))
