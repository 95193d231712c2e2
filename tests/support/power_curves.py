"""Power curves of pairs in plain fractions: what the compiled core's groups are compared with."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

Points: TypeAlias = "list[tuple[Fraction, Fraction]]"
"""Corners (mass under Q, mass under P)."""


def power_curve(p: Sequence[int], q: Sequence[int]) -> Points:
    """The corners of a pair by integer weights, the likeliest outcomes under P first."""
    total_p, total_q = sum(p), sum(q)
    atoms = sorted(((Fraction(x, y), x, y) for x, y in zip(p, q, strict=True) if y), reverse=True)
    a, b = sum(x for x, y in zip(p, q, strict=True) if not y), 0
    found = [(Fraction(0), Fraction(a, total_p))]
    for _, x, y in atoms:
        a, b = a + x, b + y
        found.append((Fraction(b, total_q), Fraction(a, total_p)))
    return found


def value(curve: Points, alpha: Fraction) -> Fraction:
    """The largest mass under P of a randomized test with a mass under Q."""
    index = bisect_right(curve, alpha, key=lambda corner: corner[0])
    (a, below), (b, above) = curve[index - 1], curve[min(index, len(curve) - 1)]
    return below if a == b else below + (above - below) * (alpha - a) / (b - a)
