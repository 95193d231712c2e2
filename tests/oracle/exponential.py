"""The exponential mechanism's integer weights in plain Python integers. No import of userdp."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction

CONTEXT = Context(prec=120)
LN_TWO = CONTEXT.ln(Decimal(2))
COEFFICIENTS = [
    9223372036854775808,
    6393154322601321956,
    2215698446796693588,
    511935043750827173,
    88711582559640359,
    12298033481057912,
    1420712681174125,
    140653549331136,
    12148984781524,
    903678953522,
    47611819745,
]


def ideal_bits(epsilon: Fraction, sensitivity: int) -> Fraction:
    """The bits per unit of score without any rounding: epsilon / (2 sensitivity ln 2), to about 120 digits."""
    bits = CONTEXT.divide(Decimal(epsilon.numerator), CONTEXT.multiply(Decimal(epsilon.denominator), LN_TWO))
    return Fraction(bits) / (2 * sensitivity)


def weight(gap: int, bits_per_unit: Fraction) -> int:
    """2^103 2^(-bits_per_unit gap), by the polynomial; gaps worth 64 bits or more are clamped."""
    clamped = min(gap, largest_gap(bits_per_unit))
    exponent = int(clamped * bits_per_unit * 2**57)
    whole, fraction = divmod(exponent, 2**57)
    value = 0
    for coefficient in reversed(COEFFICIENTS):
        value = coefficient - (value * fraction >> 57)
    return (value >> 24) << (64 - whole)


def largest_gap(bits_per_unit: Fraction) -> int:
    """The largest gap whose exponent is below 64 in units of 2^-57, as the rate's 64-bit multiplier gives it."""
    return min((64 * bits_per_unit.denominator - 1) // bits_per_unit.numerator, 2**64 - 1)


def pmf(scores: Sequence[int], bits_per_unit: Fraction) -> list[int]:
    """How many of the 2^128 draws lead to each candidate."""
    weights = [weight(score - min(scores), bits_per_unit) for score in scores]
    ends = [-(-sum(weights[: i + 1]) * 2**128 // sum(weights)) for i in range(-1, len(weights))]
    return [after - before for before, after in itertools.pairwise(ends)]
