"""Draws of the exact distributions against their definitions, by the tests of `test_sampler_statistics`."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from oracle import ideal_distributions
from oracle.divergence import exp_bounds
from oracle.statistics import ALARM, ratio_surprises, surprise
from support.drawing import DRAWS, LOOSE, Draws, assert_follows, follows, histogram, seeded, with_a_bias
from userdp.mechanisms import (
    BiasedCoin,
    Categorical,
    Geometric,
    NegativeBinomial,
    RandomSubset,
    UnboundedDiscreteLaplace,
    UniformInteger,
)

F = Fraction
FEWER = 100_000
"""Draws of the distributions that compare exact bits of e^-x and take microseconds for each."""


def capped(draws: Draws, last: int) -> Draws:
    """Everything from `last` on in one cell."""
    return np.minimum(draws, last)


def geometric(p: Fraction, last: int) -> list[Fraction]:
    """(1 - p)^x p for x < last, and the rest."""
    masses = [ideal_distributions.power(1 - p, x) * p for x in range(last)]
    return [*masses, 1 - sum(masses)]


def negative_binomial(r: Fraction, p: Fraction, last: int) -> list[Fraction]:
    """Proportional to r (r + 1) ... (r + x - 1) / x! p^x, cut where nothing is left at 2^-256."""
    units = [1 << 512]
    for x in range(last):
        step = (r + x) * p / (x + 1)
        units.append(units[-1] * step.numerator // step.denominator)
    weights = [F(unit, 1 << 512) for unit in units]
    return ideal_distributions.normalized(weights)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("arguments", "mass"),
    [
        ({"probability": "1/3"}, F(1, 3)),
        ({"probability": "0.001"}, F(1, 1000)),
        ({"probability": F(2**130 - 1, 2**130)}, F(2**130 - 1, 2**130)),
        ({"probability": 0}, F(0)),
        ({"probability": 1}, F(1)),
        ({"log_probability": -1}, 1 / exp_bounds(F(1))[0]),
        ({"log_probability": "-0.01"}, 1 / exp_bounds(F(1, 100))[0]),
        ({"log_probability": -9}, 1 / exp_bounds(F(9))[0]),
    ],
)
def test_coins(arguments: dict[str, Any], mass: Fraction) -> None:
    heads = int(seeded(BiasedCoin(**arguments).sample).sum())
    found = surprise(heads, DRAWS, mass)
    print(f"surprise {found:.1f}")
    assert found <= math.log(2 / ALARM)
    # Tosses with another probability do not pass.
    if 0 < mass < 1:
        assert surprise(heads, DRAWS, mass + (1 - 2 * mass) / 100) > math.log(2 / ALARM)


@pytest.mark.statistical
@pytest.mark.parametrize(("low", "high"), [(1, 6), (-3, 996), (0, 0), (0, 2**12 - 1)])
def test_uniform_integers(low: int, high: int) -> None:
    count = high - low + 1
    uniform = [F(1, count)] * count
    draws = seeded(UniformInteger(low=low, high=high).sample)
    assert_follows(histogram(draws, uniform, low), uniform)
    if count > 100:
        assert not follows(histogram(with_a_bias(draws, high), uniform, low), uniform)


@pytest.mark.statistical
def test_uniform_integers_of_a_wide_range() -> None:
    # Three quarters of the range of int64: rejection without it would favor a third of the integers.
    low, high = -(2**62), 2**63 - 1
    offsets = seeded(UniformInteger(low=low, high=high).sample).astype(np.uint64) - np.uint64(2**64 + low)
    # Which of 300 equal parts: floor(offset 100 / 2^62), by the upper and the lower half of the offset in 64 bits.
    upper, lower = offsets >> np.uint64(32), offsets & np.uint64(2**32 - 1)
    parts = (upper * np.uint64(100) + (lower * np.uint64(100) >> np.uint64(32))) >> np.uint64(30)
    assert parts[:100].tolist() == [offset * 300 // (high - low + 1) for offset in offsets[:100].tolist()]
    assert_follows(histogram(parts.astype(np.int64), [F(1, 300)] * 300), [F(1, 300)] * 300)
    digits = (offsets % np.uint64(1000)).astype(np.int64)
    assert_follows(histogram(digits, [F(1, 1000)] * 1000), [F(1, 1000)] * 1000)


@pytest.mark.statistical
def test_categorical() -> None:
    weights = [3, 0, 1, 10**30, F(1, 7), *([10**27] * 50)]
    ideal = [F(weight) / sum(map(F, weights)) for weight in weights]
    assert_follows(histogram(seeded(Categorical(weights=weights).sample), ideal), ideal)
    small = [5, 1, 0, F(1, 2), 2]
    ideal = [F(weight) / sum(map(F, small)) for weight in small]
    draws = seeded(Categorical(weights=small).sample)
    assert_follows(histogram(draws, ideal), ideal)
    for outcome in (2, 3):
        assert not follows(histogram(with_a_bias(draws, outcome), ideal), ideal)


@pytest.mark.statistical
@pytest.mark.parametrize("p", [F(1, 3), F(1, 2), F(1, 100), F(99, 100)])
def test_geometric(p: Fraction) -> None:
    last = math.ceil(30 / p)
    ideal = geometric(p, last)
    draws = seeded(Geometric(p=p).sample, size=FEWER)
    assert draws.min() == 0
    counts = histogram(capped(draws, last), ideal)
    assert_follows(counts, ideal)
    worst, limit = ratio_surprises(counts[:-1], [1 / (1 - p)] * (last - 1))
    assert worst <= limit
    assert not follows(counts, geometric(p + p * (1 - p) / 5, last))
    assert not follows(histogram(with_a_bias(capped(draws, last), math.ceil(5 / p)), ideal), ideal)


@pytest.mark.statistical
@pytest.mark.parametrize(("r", "p"), [("23.7233", "0.8187"), ("0.01", "0.9"), (F(1), F(1, 3)), (F(7, 2), F(19, 20))])
def test_negative_binomial(r: Any, p: Any) -> None:
    pmf = NegativeBinomial(r=r, p=p)
    ideal = negative_binomial(F(r), F(p), math.ceil(200 / (1 - F(p))))
    draws = seeded(pmf.sample)
    assert_follows(histogram(draws, ideal), ideal)
    assert not follows(histogram(draws, ideal), negative_binomial(F(r) * F(105, 100), F(p), len(ideal) - 1))
    assert not follows(histogram(with_a_bias(draws, len(ideal) - 1), ideal), ideal)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [F(1, 2), F(1), F(10), F(300)])
def test_unbounded_discrete_laplace(scale: Fraction) -> None:
    last = math.ceil(25 * scale)
    ideal = ideal_distributions.clamped_laplace(0, 1 / scale, -last, last)
    draws = seeded(UnboundedDiscreteLaplace(scale=scale).sample, size=FEWER)
    counts = histogram(np.clip(draws, -last, last), ideal, -last)
    assert_follows(counts, ideal)
    mirrored = [(counts[last - x], counts[last + x]) for x in range(1, last + 1)]
    assert max(surprise(a, a + b, F(1, 2)) for a, b in mirrored if a + b) <= math.log(2 * last / ALARM)
    assert not follows(counts, ideal_distributions.clamped_laplace(0, F(105, 100) / scale, -last, last))
    assert not follows(histogram(with_a_bias(np.clip(draws, -last, last), last), ideal, -last), ideal)


@pytest.mark.statistical
def test_random_subsets() -> None:
    population, size = 7, 3
    subsets = {subset: i for i, subset in enumerate(combinations(range(population), size))}
    uniform = [F(1, len(subsets))] * len(subsets)
    pmf = RandomSubset(population=population, subset_size=size)
    masks = (1 << seeded(pmf.sample, size=DRAWS // 4)).sum(axis=1)
    codes = np.full(2**population, -1)
    for subset, i in subsets.items():
        codes[sum(1 << member for member in subset)] = i
    assert_follows(histogram(codes[masks], uniform), uniform)
    # Of many: every member, and the number of members in each half.
    pmf = RandomSubset(population=200, subset_size=90)
    drawn = seeded(pmf.sample, size=20_000)
    members = np.bincount(drawn.ravel(), minlength=200).tolist()
    assert max(surprise(count, 20_000, F(9, 20)) for count in members) <= math.log(2 * 200 / ALARM)
    whole = math.comb(200, 90)
    hypergeometric = [F(math.comb(100, x) * math.comb(100, 90 - x), whole) for x in range(91)]
    assert_follows(histogram((drawn < 100).sum(axis=1), hypergeometric), hypergeometric)


@pytest.mark.statistical
def test_the_systems_entropy() -> None:
    thirds = geometric(F(1, 3), 80)
    assert_follows(histogram(capped(Geometric(p="1/3").sample(FEWER), 80), thirds), thirds, LOOSE)
    single = np.array([UniformInteger(low=0, high=9).sample() for _ in range(30_000)])
    assert_follows(histogram(single, [F(1, 10)] * 10), [F(1, 10)] * 10, LOOSE)
    heads = int(BiasedCoin(log_probability=-1).sample(DRAWS).sum())
    assert surprise(heads, DRAWS, 1 / exp_bounds(F(1))[0]) <= math.log(2 / LOOSE)
