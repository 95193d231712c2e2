"""The core's curve of Gaussian noise and its tails of the normal distribution, against the checker's own enclosures."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from userdp import _core
from userdp.checker.enclosures import Logarithm, Normal, exponential, square_root
from userdp.checker.releases import NoiseCurve

BITS = 900
NORMAL = Normal(BITS)
LOGARITHM = Logarithm(BITS)
UNIT = 1 << BITS


def cases(number: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """mu^2, and a level as a ratio and an exponent: deltas from 1 to 2^-400 or so."""
    chance, found = random.Random(7), []
    while len(found) < number:
        mu = math.exp(chance.uniform(-9, 3))
        loss = max(mu * mu / 2 + chance.uniform(-4, 20) * mu, 0.0)
        kind = len(found) % 3
        exponent = Fraction(loss * (0, 1, 0.5)[kind]).limit_denominator(10**6)
        ratio = Fraction(math.exp(loss * (1, 0, 0.5)[kind])).limit_denominator(10**5)
        if ratio >= 1:
            found.append((Fraction(mu * mu).limit_denominator(10**9), ratio, exponent))
    return [case for case in found if case[0]]


@pytest.mark.parametrize("place", range(60))
def test_the_curve_is_above_and_by_little(place: int) -> None:
    mu2, ratio, exponent = cases(60)[place]
    found = _core.gaussian_delta_above(mu2, _core.Level(ratio, exponent))
    floor = ratio.numerator * UNIT // ratio.denominator
    low, high = LOGARITHM.of(floor, floor + 1) if ratio != 1 else (0, 0)
    whole = exponent.numerator * UNIT // exponent.denominator
    factor = exponential(exponent, BITS).units(BITS)
    level = floor * factor[0] >> BITS, ((floor + 1) * factor[1] >> BITS) + 1
    below, above = NoiseCurve(mu2, BITS, NORMAL).at((low + whole, high + whole + 1), level)
    assert Fraction(below, UNIT) <= found
    assert found <= Fraction(above, UNIT) * (1 + Fraction(1, 2**157)) or above == UNIT


@pytest.mark.parametrize("place", range(30))
def test_tails_are_above_and_by_little(place: int) -> None:
    square = Fraction(random.Random(place).uniform(0, 25) ** 2).limit_denominator(10**7)
    root = square_root(square, BITS)
    ends = [root.low << BITS >> root.places, (root.high << BITS >> root.places) + 1] if square else [0, 0]
    below, above = NORMAL.below(-ends[1], -ends[0])
    assert Fraction(below, UNIT) <= _core.normal_tail_above(square) <= Fraction(above, UNIT) * (1 + Fraction(1, 2**150))


def test_ends() -> None:
    one, zero = Fraction(1), Fraction(0)
    level = _core.Level(one, Fraction(1000))
    least = Fraction(1, 2**4096)
    assert _core.gaussian_delta_above(zero, level) == 0
    assert _core.gaussian_delta_above(Fraction(1, 2**10000), level) == least
    assert _core.gaussian_delta_above(Fraction(1, 2**10000), _core.Level(one, zero)) == least
    assert _core.gaussian_delta_above(one, level) == least
    assert _core.gaussian_delta_above(Fraction(10**30), level) == 1
    assert Fraction(1, 2) <= _core.normal_tail_above(zero) <= Fraction(1, 2) + Fraction(1, 2**150)
    assert _core.normal_tail_above(Fraction(640)) == Fraction(1, 2**462)
    assert Fraction(1, 2**470) < _core.normal_tail_above(Fraction(640) - Fraction(1, 10**6)) < Fraction(1, 2**462)
    for refused in (
        lambda: _core.gaussian_delta_above(-one, level),
        lambda: _core.gaussian_delta_above(one, _core.Level(one, Fraction(1026))),
        lambda: _core.normal_tail_above(-one),
    ):
        with pytest.raises(ValueError, match="must"):
            refused()
