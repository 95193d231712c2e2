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


def rate(epsilon: Fraction, sensitivity: int, factor: int) -> tuple[int, int]:
    """(m, s) of rho = m 2^-(57 + s): (epsilon - 2^-36) / (factor sensitivity ln 2), rounded down four times.

    First epsilon to 120 fraction bits, then what is left of it over ln 2, then the quotient to 64 bits; and a rho of
    64 or more becomes 32, less a unit.
    """
    units = int(epsilon * 2**120) - 2**84
    bits = units * int(2**126 / Fraction(LN_TWO)) >> 126
    scaled, shift = Fraction(bits, factor * sensitivity), 120 - 57
    while scaled < 2**63:
        scaled, shift = 2 * scaled, shift + 1
    while scaled >= 2**64:
        scaled, shift = scaled / 2, shift - 1
    multiplier = int(scaled)
    if shift < 1:
        multiplier, shift = 2**63, 1
    return (multiplier, shift) if multiplier > 2**63 else (2**64 - 1, shift + 1)


def bits_per_unit(rate: tuple[int, int]) -> Fraction:
    """The rho of a rate."""
    return Fraction(rate[0], 2 ** (57 + rate[1]))


def draw(scores: Sequence[int], bits_per_unit: Fraction, bits: int) -> int:
    """The candidate whose interval of cumulative weights holds floor(bits W / 2^128)."""
    weights = [weight(score - min(scores), bits_per_unit) for score in scores]
    target = bits * sum(weights) >> 128
    return sum(end <= target for end in itertools.accumulate(weights))


def logarithm(x: Fraction) -> Fraction:
    """ln x to about 110 digits."""
    return Fraction(CONTEXT.subtract(CONTEXT.ln(Decimal(x.numerator)), CONTEXT.ln(Decimal(x.denominator))))


def slack(candidates: int) -> Fraction:
    """What the roundings of weights and of the draw may add to the loss, to about 100 digits."""
    high = (1 + Fraction(1, 2**49)) * (1 + Fraction(1, 2**57))
    low = 1 - Fraction(1, 2**49) - Fraction(1, 2**38)
    theta = Fraction(candidates, 2**64) * high / low
    return 2 * logarithm(high / low) + logarithm((1 + theta) / (1 - theta))


def worst_ratio(weights: Sequence[int], sensitivity: int, candidates: int, one_direction: bool = False) -> Fraction:
    """A bound of N / N' over all neighboring score vectors of any values, at most `candidates` long.

    ``weights[d]`` is the weight of the gap d, constant from the last but 2 sensitivity on. Between neighbors the
    lowest score moves by some mu and any score by some e, so its gap d by t = e - mu; all moves are at most the
    sensitivity in size, and not negative with ``one_direction``. For a given mu, w_i / w'_i is at most the largest
    w(d) / w(d + t), and W' / W at most the largest w(d + t) / w(d). The draw adds (1 + theta) / (1 - theta).
    """
    least = 0 if one_direction else -sensitivity
    worst = Fraction(1)
    for mu in range(least, sensitivity + 1):
        lost = gained = Fraction(1)
        for t in range(least - mu, sensitivity - mu + 1):
            for d in range(max(0, -t), len(weights) - max(0, t)):
                ratio = Fraction(weights[d], weights[d + t])
                lost, gained = max(lost, ratio), max(gained, 1 / ratio)
        worst = max(worst, lost * gained)
    theta = Fraction(candidates * max(weights), min(weights) * 2**128)
    return worst * (1 + theta) / (1 - theta)
