"""Divergences by their definitions, in fractions; e^x from its series, with the remainder. No import of userdp."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def exp_bounds(x: Fraction, bits: int = 200) -> tuple[Fraction, Fraction]:
    """Fractions around e^x for x >= 0, of relative width below 2^-bits: series at x / 2^k, then k squarings."""
    if x == 0:
        return Fraction(1), Fraction(1)
    halvings = max(0, math.ceil(x).bit_length() + 1)
    work = bits + 2 * halvings + 20
    scale = 1 << work
    above, below = x.numerator, x.denominator << halvings
    low = high = n = 0
    term = scale << 2  # in quarters of a unit
    while term > 4:
        low += term >> 2
        high += -(-term >> 2)
        n += 1
        term = -(-term * above // (below * n))
    low -= n  # terms were carried rounded up, by less than a quarter unit each
    high += 2 + n
    for _ in range(halvings):
        low, high = low * low // scale, -(-high * high // scale)
    return Fraction(low, scale), Fraction(high, scale)


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], multiplier: Fraction) -> Fraction:
    """Sum of max(0, p - E q), over one denominator of all masses."""
    top, bottom = multiplier.as_integer_ratio()
    whole = math.lcm(*(mass.denominator for mass in (*p, *q)))
    total = 0
    for a, b in zip(p, q, strict=True):
        more = a.numerator * (whole // a.denominator) * bottom - top * b.numerator * (whole // b.denominator)
        total += max(more, 0)
    return Fraction(total, whole * bottom)


def hockey_stick_bounds(
    p: Sequence[Fraction], q: Sequence[Fraction], epsilon: Fraction, bits: int = 2600
) -> tuple[Fraction, Fraction]:
    """Fractions around the divergence at a rational epsilon."""
    low, high = exp_bounds(epsilon, bits)
    return hockey_stick(p, q, high), hockey_stick(p, q, low)


def nearest_float(low: Fraction, high: Fraction) -> float:
    """The float that both ends round to; Python's int / int is correctly rounded."""
    below, above = (x.numerator / x.denominator for x in (low, high))
    assert below == above, "the reference is not precise enough for this case"
    return below
