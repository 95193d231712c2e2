"""Ideal distributions as fractions: real powers of e to about 200 bits, and everything else exactly.

No import of userdp.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from oracle.divergence import exp_bounds


def normalized(weights: Sequence[Fraction]) -> list[Fraction]:
    # Over one denominator, so that sums of the masses stay short.
    integers = [(weight.numerator << 256) // weight.denominator for weight in weights]
    total = sum(integers)
    return [Fraction(integer, total) for integer in integers]


def power(base: Fraction, exponent: int) -> Fraction:
    """base^exponent for 0 < base < 1, to about 2^-500."""
    bits = 512
    found, (top, bottom) = 1 << bits, base.as_integer_ratio()
    for digit in bin(exponent)[2:]:
        found = found * found * (top if digit == "1" else 1) // ((bottom if digit == "1" else 1) << bits)
    return Fraction(found, 1 << bits)


def exponential(scores: Sequence[int], rate: Fraction) -> list[Fraction]:
    """P[i] proportional to e^(-rate scores[i])."""
    weights = {score: 1 / exp_bounds(rate * (score - min(scores)))[0] for score in set(scores)}
    return normalized([weights[score] for score in scores])


def truncated_laplace(epsilon: Fraction, width: int) -> list[Fraction]:
    """P[x] proportional to e^(-epsilon |x - width|) on 0, ..., 2 width."""
    return exponential([abs(x - width) for x in range(2 * width + 1)], epsilon)


def clamped_laplace(value: int, rate: Fraction, lower: int, upper: int) -> list[Fraction]:
    """The pmf of value + X clamped to lower..upper, for the discrete Laplace distribution P[X = x] ~ e^(-rate |x|)."""
    q = 1 / exp_bounds(rate)[0]
    powers, units = [Fraction(1)], 1 << 256
    for _ in range(max(upper - value, value - lower)):
        units = units * q.numerator // q.denominator
        powers.append(Fraction(units, 1 << 256))
    masses = [powers[abs(z - value)] * (1 - q) for z in range(lower, upper + 1)]
    # The ends hold the tails: sum of q^j for j >= d is q^d / (1 - q), and the factor (1 - q) is already there.
    masses[0], masses[-1] = powers[value - lower], powers[upper - value]
    return normalized(masses)
