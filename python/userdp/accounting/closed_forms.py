"""The curve of a single release where it has a closed form, enclosed as narrowly as a float can tell."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from userdp.accounting.losses import (
    BoundedRangeLoss,
    FixedSampleGaussianLoss,
    GaussianLoss,
    LaplaceLoss,
    PairLoss,
    ReleaseLoss,
    SampledGaussianLoss,
    hockey_stick_of,
)
from userdp.checker.enclosures import Logarithm, Near, Normal
from userdp.checker.releases import Level, NoiseCurve
from userdp.exact.numbers import PrivacyLevel

Enclosed = tuple[Fraction, Fraction]

NARROW = Fraction(1, 2**58)
"""How far ends are apart, as a share of the upper one."""
LEAST = Fraction(1, 2**1100)
"""Smaller values may be said to be between 0 and this."""
FURTHEST = 40
"""Standard deviations beyond which the curve of Gaussian noise is below that: e^(-40^2 / 2) < 2^-1100."""
MOST_LOSS, LEAST_LOSS = 2**10, 2.0**-1000
FIRST_BITS, MOST_BITS = 128, 2**13


def closed_form(
    part: ReleaseLoss, level: PrivacyLevel, backwards: bool, wanted: Fraction | None = None
) -> Enclosed | None:
    """The delta of one release at a level >= 1, in one order, to be compared with one that is wanted, or narrowly.

    None where there is no closed form.
    """
    if isinstance(part, PairLoss) and not level.exponent:
        p, q = (part.q, part.p) if backwards else (part.p, part.q)
        exact = hockey_stick_of(p, q, level.ratio)
        return exact, exact
    gaussian = isinstance(part, (GaussianLoss, SampledGaussianLoss, FixedSampleGaussianLoss))
    if not gaussian and not (isinstance(part, (BoundedRangeLoss, LaplaceLoss)) and float(_largest(part)) >= LEAST_LOSS):
        return None
    bits, enough = FIRST_BITS, LEAST
    if wanted:
        bits += max(wanted.denominator.bit_length() - wanted.numerator.bit_length(), 0)
        enough = max(wanted / 2, LEAST)
    if gaussian:
        if level.exponent > MOST_LOSS or level.ratio > 2**MOST_LOSS:
            return None
        # E is multiplied by what has an error of a unit.
        bits += math.ceil(1.5 * float(level))
    while True:
        low, high = _gaussian(part, level, backwards, bits) if gaussian else _by_root(part, level, bits)
        if high - low <= NARROW * high or high <= enough or bits > MOST_BITS:
            return max(low, Fraction(0)), min(high, Fraction(1))
        bits *= 2


@lru_cache(maxsize=16)
def _tables(bits: int) -> tuple[Normal, Logarithm]:
    return Normal(bits), Logarithm(bits)


def _near(level: PrivacyLevel, bits: int) -> Near:
    return Level(level.ratio, level.exponent).near(bits)


def _gaussian(part: ReleaseLoss, level: PrivacyLevel, backwards: bool, bits: int) -> Enclosed:
    """W g(A / W), g of noise on all users: A = E - 1 + q, W = q where a user goes.

    Where one comes A = q E, W = 1 - (1 - q) E.
    """
    mu_squared = part.mu_squared  # type: ignore[attr-defined]
    rate = Fraction(1) if isinstance(part, GaussianLoss) else part.rate  # type: ignore[attr-defined]
    bits += max(mu_squared.denominator.bit_length() - mu_squared.numerator.bit_length(), 0) // 2
    bits += 2 * (rate.denominator.bit_length() - rate.numerator.bit_length() + 1)
    one, (low, high) = 1 << bits, _near(level, bits).units(bits)
    top, bottom = rate.numerator, rate.denominator
    share = top << bits
    if backwards and isinstance(part, SampledGaussianLoss):
        above = top * low, top * high
        width = (bottom << bits) - (bottom - top) * high, (bottom << bits) - (bottom - top) * low
    else:
        above = (low - one) * bottom + share, (high - one) * bottom + share
        width = share, share
    if width[0] <= 0:
        return Fraction(0), Fraction(max(width[1], 0), bottom << bits)
    inner = (above[0] << bits) // width[1], -((-above[1] << bits) // width[0])
    normal, logarithm = _tables(bits)
    loss = logarithm.of(*inner)
    # Far out, the curve is below Phi(-x) <= e^(-x^2 / 2) / 2.
    x = Fraction(loss[0], one) - mu_squared / 2
    if x > 0 and x * x >= FURTHEST**2 * mu_squared:
        return Fraction(0), LEAST
    least, most = NoiseCurve(mu_squared, bits, normal).at(loss, inner)
    return Fraction(max(least, 0) * width[0], bottom << 2 * bits), Fraction(most * width[1], bottom << 2 * bits)


def _largest(part: ReleaseLoss) -> PrivacyLevel:
    return part.epsilon if isinstance(part, LaplaceLoss) else part.range  # type: ignore[attr-defined]


def _by_root(part: ReleaseLoss, level: PrivacyLevel, bits: int) -> Enclosed:
    """1 - sqrt(E / R) for Laplace noise with the largest loss ln R, its square over 1 - 1 / R for the range ln R."""
    end = _largest(part)
    bits += 2 * max(-math.frexp(float(end))[1], 0)
    one, inverse = 1 << bits, _near(end, 2 * bits).inverse(2 * bits)
    low, high = inverse.times(_near(level, 2 * bits), 2 * bits).units(2 * bits)
    least, most = one - math.isqrt(high) - 1, one - math.isqrt(low)
    if most <= 0:
        return Fraction(0), Fraction(0)
    if isinstance(part, LaplaceLoss):
        return Fraction(least, one), Fraction(most, one)
    shrunk = inverse.units(bits)
    return Fraction(max(least, 0) ** 2, (one - shrunk[0]) << bits), Fraction(most**2, (one - shrunk[1]) << bits)
