"""Discrete Gaussian noise against fractions: weights, distance to the ideal distribution, draws, privacy, bad input."""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import discrete_gaussian as oracle
from oracle.divergence import exp_bounds
from oracle.ideal_distributions import normalized
from support.drawing import assert_follows, follows, histogram, seeded
from userdp import _core
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import DiscreteGaussian

F = Fraction

# Cells of 1, 2, 4, ... integers, at both ends of their range of sigma.
LISTED = [
    F(1, 100),
    F(3, 10),
    F(1),
    F(2),
    F(399, 100),
    F(4),
    F(17, 3),
    F(159, 10),
    F(16),
    F(100),
    F(1000),
    F(10**4 + 1),
]
WIDE = [F(10**9), F(2**80), F(2**82) - F(1, 3), F(2**111) + 1, F(2**112)]

Integers = npt.NDArray[np.int64]


# --- the distribution


@pytest.mark.parametrize("sigma_squared", LISTED)
def test_weights_are_the_references(sigma_squared: Fraction) -> None:
    noise = DiscreteGaussian(sigma_squared=sigma_squared)
    pmf = noise.pmf(5)
    half = oracle.Noise(sigma_squared).weights()
    assert noise.support == len(half) - 1
    assert pmf.outputs == tuple(range(5 - noise.support, 6 + noise.support))
    assert list(pmf.weights) == half[:0:-1] + half
    assert min(pmf.weights) > 0


@pytest.mark.parametrize("sigma_squared", [s for s in LISTED if s <= 1000])
def test_the_distance_bounds_the_total_variation(sigma_squared: Fraction) -> None:
    noise = DiscreteGaussian(sigma_squared=sigma_squared)
    reach = 3 * noise.support // 2 + 3  # beyond, 2^-200 and less is left
    beyond = [0] * (reach - noise.support)
    ideal = oracle.ideal_weights(sigma_squared, reach)

    def distance(weights: Any) -> Fraction:
        return oracle.total_variation([*beyond, *weights, *beyond], ideal)

    exact = list(noise.pmf(0).weights)
    found = distance(exact)
    print(f"total variation 2^{math.log2(found):.1f}, bound 2^{math.log2(noise.distance):.1f}")
    assert found <= noise.distance
    # -0 counted as 0, and a cell whose mass is off by a part in 2^89, exceed it.
    center = noise.support
    assert distance([*exact[:center], 2 * exact[center], *exact[center + 1 :]]) > noise.distance or sigma_squared < 1
    cell = oracle.Noise(sigma_squared).cell
    shifted = [w + (w >> 89) if abs(x - center) < cell else w for x, w in enumerate(exact)]
    assert distance(shifted) > noise.distance or sigma_squared < F(1, 10)


@pytest.mark.parametrize("sigma_squared", [*LISTED, *WIDE])
def test_the_distance_is_small_everywhere(sigma_squared: Fraction) -> None:
    noise = DiscreteGaussian(sigma_squared=sigma_squared)
    assert 0 < noise.distance < F(1, 2**98)
    # What is cut off is part of it.
    assert noise.distance > oracle.decay_bounds(noise.support + 1, sigma_squared)[0]
    assert (noise.support + 1) ** 2 >= 139 * sigma_squared
    assert noise.support < 2**60


@pytest.mark.parametrize("sigma_squared", [s for s in [*LISTED, *WIDE] if s >= 4])
def test_acceptances_are_powers_of_e(sigma_squared: Fraction) -> None:
    model, source = oracle.Noise(sigma_squared), random.Random(1)
    cell, count = model.cell, len(model.masses)
    for k in range(count):
        for low in {0, 1, cell - 1, source.randrange(cell), source.randrange(cell)}:
            start, x = k * cell, k * cell + low
            exponent = F(x * x - start * start) / (2 * sigma_squared)
            bounds = exp_bounds(exponent, 400)
            for bound in bounds:
                assert abs(model.accepting(x) * bound / 2**127 - 1) < F(1, 2**100)


# --- draws from listed bytes


def released(noise: DiscreteGaussian, trials: list[bytes], size: int, value: int = 0) -> list[int]:
    values = np.full(size, value, dtype=np.int64)
    return noise._core_noise.release_many(values, _core.Source.listed(b"".join(trials))).tolist()


def trial(bits: int, low: int, word: int) -> bytes:
    return bits.to_bytes(16, "little") + low.to_bytes(8, "little") + word.to_bytes(16, "little")


@pytest.mark.parametrize("sigma_squared", [*LISTED, *WIDE])
def test_draws_are_those_of_the_trials(sigma_squared: Fraction) -> None:
    noise, model, source = DiscreteGaussian(sigma_squared=sigma_squared), oracle.Noise(sigma_squared), random.Random(7)
    trials = [source.randbytes(40) for _ in range(3000)]
    # Both ends of every cell, with acceptances just below and just above the numbers that accept.
    start = 0
    for k, mass in enumerate(model.masses):
        for word, low in product((start, start + mass - 1), (0, 1, model.cell - 1, source.randrange(2**64))):
            accepting = model.accepting(k * model.cell + low % model.cell)
            words = (accepting - 1, accepting) if accepting < 2**127 else (accepting - 1,)
            trials += [trial(2 * half + sign, low, word) for half, sign in product(words, (0, 1))]
        start += mass
    source.shuffle(trials)
    while not list(model.draws(trials[-1:])):
        trials.pop()
    expected = list(model.draws(trials))
    assert released(noise, trials, len(expected)) == expected
    assert released(noise, trials, len(expected), 2**61) == [x + 2**61 for x in expected]
    listed = _core.Source.listed(b"".join(trials))
    assert [noise._draw(listed, 0) for _ in expected[:500]] == expected[:500]
    listed = _core.Source.listed(b"".join(trials))
    assert noise._draw(listed, (1,) * 7) == tuple(x + 1 for x in expected[:7])
    # No trial is left over, and none is missing.
    with pytest.raises(OSError, match="used up"):
        released(noise, trials[:-1], len(expected))


def test_minus_zero_is_rejected() -> None:
    for sigma_squared in (F(1), F(10**6)):
        noise, model = DiscreteGaussian(sigma_squared=sigma_squared), oracle.Noise(sigma_squared)
        minus, plus, one = trial(1, 0, 0), trial(0, 0, 0), trial(1, 0, 2**128 - 1)
        assert released(noise, [minus, minus, plus, minus, one], 2) == [0, -model.cell * (len(model.masses) - 1)]


# --- draws against the distribution

DRAWS = 4_000_000


def drawn(noise: DiscreteGaussian, size: int = DRAWS) -> Integers:
    def sample(size: int, random_state: int) -> Integers:
        return noise.sample(np.zeros(size, dtype=np.int64), random_state=random_state)

    return seeded(sample, size=size)


@pytest.mark.statistical
@pytest.mark.parametrize("sigma_squared", [F(1, 4), F(1), F(5), F(100), F(2000)])
def test_draws_follow_the_ideal_pmf(sigma_squared: Fraction) -> None:
    noise = DiscreteGaussian(sigma_squared=sigma_squared)
    reach, draws = noise.support, drawn(noise)

    def masses(variance: Fraction) -> list[Fraction]:
        return normalized(oracle.ideal_weights(variance, reach))

    ideal = masses(sigma_squared)
    counts = histogram(draws, ideal, -reach)
    assert_follows(counts, ideal)
    assert not follows(counts, masses(sigma_squared * F(101, 100)))
    assert not follows(counts, masses(sigma_squared / 4))
    # A tenth of the zeros more is noticed too.
    more = [*counts[:reach], counts[reach] + counts[reach] // 10, *counts[reach + 1 :]]
    assert not follows(more, ideal)


@pytest.mark.statistical
@pytest.mark.parametrize("sigma_squared", [F(10**9), F(2**80), F(2**82) - 1, F(2**112)])
def test_wide_draws_follow_the_normal_pmf(sigma_squared: Fraction) -> None:
    # In cells of sigma / 16 the two distributions agree to 2^-10 of a cell at 10^9: less than 4 million draws can tell.
    noise, steps = DiscreteGaussian(sigma_squared=sigma_squared), 80
    draws, sigma = drawn(noise), math.isqrt(int(sigma_squared))

    def masses(width: float) -> list[Fraction]:
        inner = [math.erf(i / 16 / width / math.sqrt(2)) / 2 for i in range(steps)]
        half = [F(b) - F(a) for a, b in pairwise([*inner, 0.5])]
        return [*half[::-1], *half]

    cells = np.clip(np.floor_divide(2 * draws + 1, 2 * sigma / 16).astype(np.int64), -steps, steps - 1)
    counts = histogram(cells, masses(1), -steps)
    assert_follows(counts, masses(1))
    assert not follows(counts, masses(1.005))
    if sigma_squared >= 2**80:
        # Nothing is left of the cells in the low digits.
        uniform = [F(1, 256)] * 256
        assert_follows(histogram(draws % 256, uniform), uniform)


@pytest.mark.statistical
def test_single_draws_and_the_systems_entropy() -> None:
    noise = DiscreteGaussian(sigma_squared=9)
    masses = normalized(oracle.ideal_weights(F(9), noise.support))
    single = np.array([noise.sample(3) - 3 for _ in range(30_000)])
    small = np.concatenate([noise.sample(np.zeros(size, dtype=np.int64)) for size in range(300)])
    for draws in (
        single,
        small,
        noise.sample(np.zeros(10**6, dtype=np.int8)),
        noise.sample(np.zeros(6 * 10**5, np.int64)),
    ):
        assert_follows(histogram(draws, masses, -noise.support), masses, 1e-9)


# --- arguments


def test_variances_from_rho_are_rounded_up() -> None:
    exact = DiscreteGaussian(rho="1/100", sensitivity=3)
    assert exact.sigma_squared == 450
    assert exact.rho(3) == F(1, 100)
    assert exact.rho(6) == F(4, 100)
    for rho, sensitivity in [("0.3", 7), (F(1, 3), 10**6), (0.1, 1), ("1e-9", 12345), (F(22, 7), 1)]:
        noise = DiscreteGaussian(rho=rho, sensitivity=sensitivity)
        asked = F(str(rho))  # floats are the decimals that they print as
        assert asked * (1 - F(1, 2**62)) < noise.rho(sensitivity) <= asked
        assert noise.sigma_squared.numerator.bit_length() <= 65
        assert (noise.sigma_squared.denominator & (noise.sigma_squared.denominator - 1)) == 0


def test_values_are_clamped_and_never_wrap() -> None:
    noise = DiscreteGaussian(sigma_squared=2**112)
    lowest, highest = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    draws = noise.sample(np.array([lowest, highest, -(2**62), 2**62] * 1000))
    assert (np.abs(np.abs(draws) - 2.0**62) < 2**60).all()
    assert (np.sign(draws).reshape(-1, 4) == [-1, 1, -1, 1]).all()
    narrow = DiscreteGaussian(sigma_squared="0.01")
    assert abs(narrow.sample(10**30) - 2**62) <= 1
    assert narrow.pmf(-(10**30)).outputs == tuple(-(2**62) + x for x in (-1, 0, 1))


def test_shapes_and_types() -> None:
    noise = DiscreteGaussian(sigma_squared=100)
    values = np.arange(12, dtype=np.int16).reshape(3, 4)
    draws = noise.sample(values)
    assert draws.shape == (3, 4)
    assert draws.dtype == np.int64
    assert values.tolist() == np.arange(12).reshape(3, 4).tolist()
    assert noise.sample(np.zeros((0, 5), dtype=np.int64)).shape == (0, 5)
    assert noise.sample(np.arange(20)[::2]).shape == (10,)
    assert isinstance(noise.sample(3), int)
    source = _core.Source(1)
    assert isinstance(noise._draw(source, np.int64(3)), int)
    released = noise._draw(source, np.arange(3))
    assert isinstance(released, tuple)
    assert all(type(x) is int for x in released)
    with pytest.warns(InsecureRandomnessWarning):
        first = noise.sample(np.arange(5), random_state=3)
    with pytest.warns(InsecureRandomnessWarning):
        assert (first == noise.sample(np.arange(5), random_state=3)).all()
    again = pickle.loads(pickle.dumps(noise))
    assert again.sigma_squared == 100
    assert again.pmf(0) == noise.pmf(0)
    assert repr(again) == "DiscreteGaussian(sigma_squared=100)"
    assert repr(DiscreteGaussian(rho="1/2", sensitivity=4)) == "DiscreteGaussian(rho='1/2', sensitivity=4)"


def test_pmfs_of_tuples_are_products() -> None:
    noise = DiscreteGaussian(sigma_squared="0.3")
    first, second = noise.pmf(4), noise.pmf(-1)
    both = noise.pmf((4, -1))
    assert noise.pmf(np.array([[4], [-1]])) == both
    assert both.total == first.total * second.total
    distribution = dict(zip(both.outputs, both.weights, strict=True))
    for (x, p), (y, q) in product(*(zip(pmf.outputs, pmf.weights, strict=True) for pmf in (first, second))):
        assert distribution[x, y] == p * q
    assert noise.pmf((4,)).outputs == tuple((x,) for x in first.outputs)
    assert noise.pmf(()).outputs == ((),)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "either sigma_squared, or rho"),
        ({"sigma_squared": 1, "rho": 1}, TypeError, "both"),
        ({"sigma_squared": 1, "sensitivity": 1}, TypeError, "sensitivity belongs to rho"),
        ({"rho": 1}, TypeError, "rho needs sensitivity"),
        ({"rho": 1, "sensitivity": 0}, ValueError, "sensitivity must be at least 1"),
        ({"rho": 1, "sensitivity": 1.0}, TypeError, "sensitivity"),
        ({"rho": 0, "sensitivity": 1}, ValueError, "rho must be > 0"),
        ({"rho": "many", "sensitivity": 1}, ValueError, "rho='many'"),
        ({"sigma_squared": float("nan")}, ValueError, "sigma_squared must be finite"),
        ({"sigma_squared": None, "sensitivity": 1}, TypeError, "either"),
        ({"sigma_squared": -1}, ValueError, "sigma_squared must be > 0"),
        ({"sigma_squared": "0.0099"}, ValueError, "sigma_squared: must be from 1/100 .* finer.* got 9.9e-3"),
        ({"sigma_squared": 2**112 + 1}, ValueError, "sigma_squared: must be .* coarser"),
        ({"rho": 51, "sensitivity": 1}, ValueError, "finer public grid"),
        ({"rho": "1e-40", "sensitivity": 1}, ValueError, "coarser"),
    ],
)
def test_bad_parameters(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DiscreteGaussian(**arguments)


def test_bad_values() -> None:
    noise = DiscreteGaussian(sigma_squared=10**5)
    for value in (1.0, "1", None, [1], True, np.array([1.0]), np.array([True]), np.zeros(1, dtype=np.uint64)):
        with pytest.raises(TypeError, match="value must be an int"):
            noise.sample(value)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="masked"):
        noise.sample(np.ma.masked_array([1], [True]))
    for value in (1.0, (1, 1.0), "1"):
        with pytest.raises(TypeError, match="value must be an int"):
            noise.pmf(value)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="the distribution of 2 integers"):
        noise.pmf((1, 2))
    with pytest.raises(BudgetError, match="outputs"):
        DiscreteGaussian(sigma_squared=2**112).pmf(0)
    with pytest.raises(BudgetError, match="more than"):
        noise.sample(np.broadcast_to(np.int64(0), 2**27 + 1))
    for sensitivity in (0, -1):
        with pytest.raises(ValueError, match="sensitivity"):
            noise.rho(sensitivity)


@pytest.mark.parametrize("sigma_squared", ["1/100", 3, "140.5"])
def test_tails_are_sums_of_the_distribution(sigma_squared: Any) -> None:
    noise = DiscreteGaussian(sigma_squared=sigma_squared)
    pmf = noise.pmf(0)
    for x in range(-noise.support - 2, noise.support + 3):
        above = sum(weight for output, weight in zip(pmf.outputs, pmf.weights, strict=True) if output >= x)
        assert noise.tail(x) == Fraction(above, pmf.total)
    with pytest.raises(TypeError, match="x must be an int"):
        noise.tail(0.5)  # type: ignore[arg-type]
