"""Draws of all samplers against ideal pmfs that share no code with them, by tests of a proven false-alarm rate.

Draws are seeded, so a test passes always or never; its rate of 1e-6 says how often another seed would fail with a
right sampler. Draws from the operating system are tested at 1e-9. Every kind of test is shown to fail for a bias of
one draw in a thousand, or for noise that is one hundredth too narrow.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from oracle import ideal_distributions
from oracle.divergence import exp_bounds
from oracle.statistics import ALARM, chi_square, chi_square_limit, mean_and_width, ratio_surprises, surprise
from support.drawing import DRAWS, LOOSE, assert_follows, assert_near, follows, histogram, seeded, with_a_bias
from userdp.mechanisms import DiscreteLaplace, ExponentialMechanism, TruncatedDiscreteLaplace

F = Fraction


# --- the tests themselves


def test_surprises_are_chernoff_bounds() -> None:
    # Exact binomial tails are below 2 e^-surprise.
    for n, p in [(20, F(1, 3)), (50, F(1, 100)), (7, F(9, 10))]:
        masses = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        of_counts = [surprise(c, n, p) for c in range(n + 1)]
        for level in of_counts:
            tail = sum(mass for mass, found in zip(masses, of_counts, strict=True) if found >= level)
            assert float(tail) <= 2 * math.exp(-level) * (1 + 1e-9)


@pytest.mark.statistical
def test_true_pmfs_pass_and_small_biases_do_not() -> None:
    random_numbers = np.random.default_rng(5)
    masses = ideal_distributions.exponential([0, 1, 2, 3, 5, 8, 13, 13], F(1, 2))
    probabilities = [float(mass) for mass in masses]
    for _ in range(300):
        counts = random_numbers.multinomial(DRAWS, probabilities).tolist()
        assert follows(counts, masses)
        statistic, degrees = chi_square(counts, masses, 1000)
        assert statistic <= chi_square_limit(degrees)
        # One draw in a thousand goes to a less likely outcome instead of the likeliest.
        for outcome in (4, 5, 6, 7):
            biased = [counts[0] - DRAWS // 1000, *counts[1:]]
            biased[outcome] += DRAWS // 1000
            assert not follows(biased, masses)
            statistic, degrees = chi_square(biased, masses, 1000)
            assert statistic > chi_square_limit(degrees)


# --- truncated discrete Laplace


@pytest.mark.statistical
@pytest.mark.parametrize("rule", ["paper", "tight"])
@pytest.mark.parametrize(("epsilon", "delta"), [(F(1), "1e-6"), (F(1, 10), "1e-3"), (F(4), "1e-9")])
def test_truncated_laplace(epsilon: Fraction, delta: str, rule: Any) -> None:
    noise = TruncatedDiscreteLaplace(epsilon=epsilon, delta=delta, half_width=rule)
    width = noise.half_width
    ideal = ideal_distributions.truncated_laplace(epsilon, width)
    pmf = noise.pmf()
    assert_near(pmf.fractions(), ideal, F(1, 2**80))
    counts = histogram(seeded(noise.sample), ideal)
    assert_follows(counts, ideal)
    # Symmetry: exact in the pmf; in the draws, each value against its mirror image, and one side against the other.
    assert pmf.weights == pmf.weights[::-1]
    mirrored = [(counts[x], counts[2 * width - x]) for x in range(width)]
    mirrored.append((sum(counts[:width]), sum(counts[width + 1 :])))
    worst = max(surprise(a, a + b, F(1, 2)) for a, b in mirrored if a + b)
    assert worst <= math.log(2 * len(mirrored) / ALARM)
    # The logarithm of the distribution is linear on either side: neighbors have the ratio e^epsilon.
    up = exp_bounds(epsilon)[0]
    for nearer, further in pairwise(pmf.weights[width:]):
        assert abs(F(nearer, further) / up - 1) < F(1, 2**60)
    worst, limit = ratio_surprises(counts, [1 / up] * width + [up] * width)
    assert worst <= limit
    # Mean and variance.
    for power in (1, 2):
        values = [F((x - width) ** power) for x in range(2 * width + 1)]
        mean, reach = mean_and_width(values, ideal, DRAWS)
        found = sum(v * c for v, c in zip(values, counts, strict=True)) / DRAWS
        assert abs(found - mean) <= reach


@pytest.mark.statistical
def test_truncated_laplace_biases_are_found() -> None:
    noise = TruncatedDiscreteLaplace(epsilon=1, delta="1e-6")
    ideal = ideal_distributions.truncated_laplace(F(1), noise.half_width)
    draws = seeded(noise.sample)
    assert follows(histogram(draws, ideal), ideal)
    for outcome in (0, noise.half_width - 4, noise.half_width + 3):
        assert not follows(histogram(with_a_bias(draws, outcome), ideal), ideal)
    for factor in (F(99, 100), F(101, 100), F(2)):
        assert not follows(histogram(draws, ideal), ideal_distributions.truncated_laplace(factor, noise.half_width))


def test_truncated_laplace_reaches_its_ends() -> None:
    noise = TruncatedDiscreteLaplace(epsilon=1, delta="0.05")
    draws = seeded(noise.sample, size=10_000)
    assert (draws.min(), draws.max()) == (0, 2 * noise.half_width)


@pytest.mark.statistical
def test_single_draws_and_the_systems_entropy() -> None:
    noise = TruncatedDiscreteLaplace(epsilon="0.7", delta="1e-3")
    ideal = ideal_distributions.truncated_laplace(F("0.7"), noise.half_width)
    assert_follows(histogram(noise.sample(DRAWS), ideal), ideal, LOOSE)
    single = np.array([noise.sample() for _ in range(50_000)])
    assert_follows(histogram(single, ideal), ideal, LOOSE)
    small = np.concatenate([noise.sample(size) for size in range(300)])
    assert_follows(histogram(small, ideal), ideal, LOOSE)


# --- exponential mechanism

SCORES = [0, 1, 2, 3, 5, 8, 13, 13]


def spread(k: int, most: int) -> list[int]:
    """Scores of k candidates without order, from 0 to `most`."""
    source = random.Random(k)
    return [source.randrange(most + 1) for _ in range(k)]


@pytest.mark.statistical
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(
    ("scores", "epsilon", "sensitivity"),
    [(SCORES, F(1), 1), (SCORES, F(3), 2), ([7], F(1), 1), ([4, 4, 4], F(1, 10), 3), (spread(300, 40), F(1, 2), 2)],
)
def test_exponential_mechanism(scores: list[int], epsilon: Fraction, sensitivity: int, monotone: bool) -> None:
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
    ideal = ideal_distributions.exponential(scores, epsilon / ((1 if monotone else 2) * sensitivity))
    assert_near(mechanism.pmf(scores).fractions(), ideal, F(1, 2**30))
    counts = histogram(seeded(mechanism.sample, scores), ideal)
    assert_follows(counts, ideal)


@pytest.mark.statistical
@pytest.mark.parametrize("k", [4096, 4097, 5000, 20_000])
def test_exponential_mechanism_with_many_candidates(k: int) -> None:
    scores = spread(k, 30)
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=3)
    ideal = ideal_distributions.exponential(scores, F(1, 6))
    assert_near(mechanism.pmf(scores).fractions(), ideal, F(1, 2**30))
    counts = histogram(seeded(mechanism.sample, scores, size=DRAWS // 20), ideal)
    assert_follows(counts, ideal)
    # By score, by block of 256 candidates, and by place in a block.
    for cell in (lambda i: scores[i], lambda i: i // 256, lambda i: i % 256):
        cells = 1 + max(map(cell, range(k)))
        binned, masses = [0] * cells, [F(0)] * cells
        for i in range(k):
            binned[cell(i)] += counts[i]
            masses[cell(i)] += ideal[i]
        assert_follows(binned, masses)


@pytest.mark.statistical
def test_exponential_mechanism_biases_are_found() -> None:
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    ideal = ideal_distributions.exponential(SCORES, F(1, 2))
    draws = seeded(mechanism.sample, SCORES)
    assert follows(histogram(draws, ideal), ideal)
    for outcome in (4, 5, 6, 7):
        assert not follows(histogram(with_a_bias(draws, outcome), ideal), ideal)
    for factor in (F(99, 100), F(101, 100), F(2)):
        assert not follows(histogram(draws, ideal), ideal_distributions.exponential(SCORES, factor / 2))


def test_exponential_mechanism_symmetries() -> None:
    mechanism = ExponentialMechanism(epsilon=1, sensitivity=1)
    weights = mechanism.pmf(SCORES).weights
    # Only differences of scores matter.
    for shift in (1, -7, 2**62, -(2**63)):
        assert mechanism.pmf([score + shift for score in SCORES]).weights == weights
    # The order of the candidates matters by a unit in 2^128.
    order = [3, 7, 1, 0, 6, 2, 5, 4]
    permuted = mechanism.pmf([SCORES[i] for i in order]).weights
    assert all(abs(permuted[place] - weights[i]) <= 1 for place, i in enumerate(order))
    assert abs(weights[6] - weights[7]) <= 1
    # The largest score is the best one when it is asked for.
    upwards = ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True)
    assert upwards.pmf([-score for score in SCORES]).weights == weights
    # The logarithm of the distribution is linear in the score.
    up = exp_bounds(F(1, 2))[0]
    for (score, weight), (worse, lighter) in pairwise(zip(SCORES, weights, strict=True)):
        assert abs(F(weight, lighter) / up ** (worse - score) - 1) < F(1, 2**30)


@pytest.mark.statistical
def test_exponential_mechanism_single_draws_and_the_systems_entropy() -> None:
    mechanism = ExponentialMechanism(epsilon="1.5", sensitivity=1)
    ideal = ideal_distributions.exponential(SCORES, F(3, 4))
    assert_follows(histogram(mechanism.sample(SCORES, DRAWS), ideal), ideal, LOOSE)
    single = np.array([mechanism.sample(SCORES) for _ in range(50_000)])
    assert_follows(histogram(single, ideal), ideal, LOOSE)
    many = spread(5000, 5)
    masses = ideal_distributions.exponential(many, F(3, 4))
    few = np.array([mechanism.sample(many) for _ in range(3000)])
    assert_follows(histogram(few, masses), masses, LOOSE)


# --- discrete Laplace


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scale", "lower", "upper", "value"),
    [
        (F(1), 0, 30, 12),
        (F(1), 0, 30, 0),
        (F(3, 2), -5, 5, 5),
        (F(10), -100, 900, 40),
        (F(10), 0, 1, 1),
    ],
)
def test_discrete_laplace(scale: Fraction, lower: int, upper: int, value: int) -> None:
    mechanism = DiscreteLaplace(scale=scale, bounds=(lower, upper))
    ideal = ideal_distributions.clamped_laplace(value, 1 / scale, lower, upper)
    pmf = mechanism.pmf(value)
    assert tuple(pmf.outputs) == tuple(range(lower, upper + 1))
    assert_near(pmf.fractions(), ideal, F(1, 2**56))
    assert_follows(histogram(seeded(mechanism.sample, value), ideal, lower), ideal)
    # Between the ends the logarithm of the distribution is linear in the distance to the value, and flat below 2^-64 of
    # it.
    up, place = exp_bounds(1 / scale)[0], value - lower
    right = pmf.weights[max(place, 1) : -1]
    left = pmf.weights[1 : min(place, upper - lower - 1) + 1][::-1]
    for side in (left, right):
        for distance, (nearer, further) in enumerate(pairwise(side)):
            error = F(nearer, further) / up - 1
            assert abs(error) < F(1, 2**20) if distance < 40 * scale else 1 / up - 1 - F(1, 2**20) < error < F(1, 2**20)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [F(1), F(10), F(1000), F(12345, 7)])
def test_discrete_laplace_over_a_million_values(scale: Fraction) -> None:
    middle, upper = 500_000, 1_000_000
    mechanism = DiscreteLaplace(scale=scale, bounds=(0, upper))
    distances = seeded(mechanism.sample, middle) - middle
    q = 1 / exp_bounds(1 / scale)[0]
    # Cells of a tenth of the scale, the last one open: P[|X| >= d] = 2 q^d / (1 + q) for d >= 1.
    step, last = max(1, int(scale / 10)), 200
    beyond = [2 * ideal_distributions.power(q, 1 + step * j) / (1 + q) for j in range(last)]
    one_side = [(a - b) / 2 for a, b in pairwise(beyond)] + [beyond[-1] / 2]
    masses = [*one_side[::-1], 1 - beyond[0], *one_side]
    cell = np.sign(distances) * np.minimum(1 + (np.abs(distances) - 1) // step, last)
    counts = histogram(np.where(distances == 0, 0, cell), masses, -last)
    assert_follows(counts, masses)
    # Left against right, cell by cell.
    pairs = [(counts[last - j], counts[last + j]) for j in range(1, last + 1)]
    assert max(surprise(a, a + b, F(1, 2)) for a, b in pairs if a + b) <= math.log(2 * last / ALARM)
    # A geometric distribution is without memory, so the digits of |X| - 1 are independent of each other and of the
    # sign.
    for base in (2, 64, 1000):
        digits = ideal_distributions.normalized([ideal_distributions.power(q, j) for j in range(base)])
        for side in (distances[distances > 0] - 1, -distances[distances < 0] - 1):
            assert_follows(histogram(side % base, digits), digits)
            above = side[side >= base]
            if len(above):
                assert_follows(histogram(above % base, digits), digits)
    # The mean and the variance, in cells.
    for power in (1, 2):
        values = [F(j**power) for j in range(-last, last + 1)]
        mean, reach = mean_and_width(values, masses, DRAWS)
        assert abs(sum(v * c for v, c in zip(values, counts, strict=True)) / DRAWS - mean) <= reach


@pytest.mark.statistical
@pytest.mark.parametrize(("value", "scale"), [(0, 1000), (3, 10), (1_000_000, 1000), (999_000, 300)])
def test_discrete_laplace_holds_the_tails_at_its_ends(value: int, scale: int) -> None:
    upper = 1_000_000
    draws = seeded(DiscreteLaplace(scale=scale, bounds=(0, upper)).sample, value)
    q = 1 / exp_bounds(F(1, scale))[0]
    low, high = (ideal_distributions.power(q, distance) / (1 + q) for distance in (value, upper - value))
    counts = [int((draws == 0).sum()), int(((draws > 0) & (draws < upper)).sum()), int((draws == upper).sum())]
    assert_follows(counts, [low, 1 - low - high, high])


@pytest.mark.statistical
def test_discrete_laplace_biases_are_found() -> None:
    mechanism = DiscreteLaplace(scale=10, bounds=(0, 200))
    ideal = ideal_distributions.clamped_laplace(100, F(1, 10), 0, 200)
    draws = seeded(mechanism.sample, 100)
    assert follows(histogram(draws, ideal), ideal)
    for outcome in (0, 60, 100, 103, 200):
        assert not follows(histogram(with_a_bias(draws, outcome), ideal), ideal)
    for factor in (F(99, 100), F(101, 100), F(2)):
        assert not follows(histogram(draws, ideal), ideal_distributions.clamped_laplace(100, factor / 10, 0, 200))


@pytest.mark.statistical
def test_discrete_laplace_single_draws_and_the_systems_entropy() -> None:
    for upper in (100, 1_000_000):
        mechanism = DiscreteLaplace(scale=5, bounds=(0, upper))
        ideal = ideal_distributions.clamped_laplace(20, F(1, 5), 0, 300)
        if upper == 100:
            ideal = ideal_distributions.clamped_laplace(20, F(1, 5), 0, 100)
        single = [mechanism.sample(20) for _ in range(50_000)]
        for draws in (mechanism.sample(20, DRAWS), np.array(single)):
            assert_follows(histogram(np.minimum(draws, len(ideal) - 1), ideal), ideal, LOOSE)
