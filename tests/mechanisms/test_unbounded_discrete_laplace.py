"""Discrete Laplace noise on all integers: listed bits against definitions, certified probabilities, privacy."""

from __future__ import annotations

import copy
import math
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import distributions as oracle
from oracle.divergence import exp_bounds
from support.distribution_draws import chi_square_limit, listed, seeded
from userdp import LogRatio, _core
from userdp.divergence import is_indistinguishable
from userdp.exceptions import BudgetError
from userdp.mechanisms import Geometric, Pmf, UnboundedDiscreteLaplace

F = Fraction
WORD = 2**128


SCALES = [F(1), F(3, 2), F(1, 10), F(10), F(1000), F(10**12), F(0.3), F(2**52)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_of_listed_bits(scale: Fraction) -> None:
    pmf, powers = UnboundedDiscreteLaplace(scale=scale), oracle.exponential_powers(1 / scale)
    source = random.Random(6)
    words = [source.getrandbits(128) for _ in range(12)]
    words += [source.getrandbits(128) >> shift for shift in (1, 30, 64, 65, 100, 120)]
    words += [0, 1, WORD - 1, WORD - 2, 2, 3]
    spare = [source.getrandbits(127) | 1 << 127 for _ in range(3)]
    for word in words:
        magnitude = oracle.geometric(powers, [word >> 1, *spare], 127)
        if magnitude == 0 and word & 1:
            continue  # -0, below
        assert pmf._draw(listed([word, *spare])) == (-magnitude if word & 1 else magnitude)
    # The same 127 bits as q^k, and 255: what decides are the bits after them, for both signs.
    for k in (1, 2, 7):
        low, high = powers(k, 500)
        for count in (1, 2):
            edge = math.floor(low * 2 ** (128 * count - 1))
            assert edge == math.floor(high * 2 ** (128 * count - 1))
            first, rest = edge >> 128 * (count - 1), [edge % WORD] * (count - 1)
            if first == 0:
                continue
            # One of the two is on either side of q^k, and q^k is on one side of the middle.
            for end, magnitude in ((0, k), (WORD - 1, k - 1)):
                for sign in (0, 1):
                    if magnitude == 0 and sign:
                        continue
                    drawn = pmf._draw(listed([2 * first + sign, *rest, end, end]))
                    assert drawn == (-magnitude if sign else magnitude)


def test_minus_zero_is_drawn_again() -> None:
    pmf = UnboundedDiscreteLaplace(scale=1)
    near_one = WORD - 1  # magnitude 0 with the sign -
    small = WORD // 3 | 1  # U = 1/3, X = -1
    assert pmf._draw(listed([near_one, near_one, small])) == -1
    assert pmf._draw(listed([near_one - 1, small])) == 0
    with pytest.raises(OSError, match="used up"):
        pmf._draw(listed([near_one]))


@pytest.mark.parametrize("scale", [F(1), F(1, 3), F(20), F(10**6)], ids=str)
def test_seeded_draws_are_pinned(scale: Fraction) -> None:
    source = _core.Source(9)
    words = iter([source.bits() for _ in range(300)])
    powers = oracle.exponential_powers(1 / scale)
    expected = [oracle.two_sided(powers, words) for _ in range(100)]
    assert seeded(UnboundedDiscreteLaplace(scale=scale), 100, 9).tolist() == expected


@pytest.mark.parametrize("scale", [F(1), F(1, 3), F(1, 50), F(17, 10), F(1000), F(10**9), F(2**52)], ids=str)
def test_probabilities_are_certified(scale: Fraction) -> None:
    pmf = UnboundedDiscreteLaplace(scale=scale)
    for x in (0, 1, -1, 2, -5, 40, 1000, 10**9, -(10**12)):
        if abs(x) / scale > 700:
            assert pmf.probability(x).upper <= math.exp(-699) * 2
            continue
        low, high = oracle.two_sided_probability(1 / scale, x, 3000)
        bounds = pmf.probability(x)
        assert bounds.lower <= low
        assert high <= bounds.upper <= math.nextafter(math.nextafter(bounds.lower, 1), 1)
        assert pmf.probability(-x) == bounds
    assert pmf.probability(10**40).lower == 0.0
    assert 0.0 < pmf.probability(10**40).upper <= 5e-324


def test_the_pmf_of_a_log_ratio_is_rational() -> None:
    pmf = UnboundedDiscreteLaplace(epsilon=LogRatio(9), sensitivity=2)  # q = 1/3
    for x in range(30):
        exact = F(1, 2) * F(1, 3) ** x
        bounds = pmf.probability(x)
        assert bounds.lower <= exact <= bounds.upper <= math.nextafter(math.nextafter(bounds.lower, 1), 1)
    assert pmf.scale.lower <= 2 / math.log(9) <= pmf.scale.upper
    source = _core.Source(10)
    words = iter([source.bits() for _ in range(900)])
    expected = [oracle.two_sided(oracle.rational_powers(F(1, 3)), words) for _ in range(400)]
    assert seeded(pmf, 400, 10).tolist() == expected


def exceeds(probability: Callable[[int], Any], epsilon: Fraction, sensitivity: int) -> bool:
    """Whether certified probabilities prove a ratio above e^epsilon, for shifts up to the sensitivity."""
    multiplier = exp_bounds(epsilon)[1]
    return any(
        F(probability(x).lower) > multiplier * F(probability(x + shift).upper)
        for x in range(-60, 60)
        for shift in range(-sensitivity, sensitivity + 1)
    )


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(F(1), 1), (F(1, 10), 1), (F(1), 3), (F(7, 2), 2)])
def test_shifts_are_within_epsilon(epsilon: Fraction, sensitivity: int) -> None:
    pmf = UnboundedDiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity)
    assert not exceeds(pmf.probability, epsilon, sensitivity)
    assert exceeds(pmf.probability, epsilon * (1 - F(1, 10**12)), sensitivity)  # and no less
    halved = UnboundedDiscreteLaplace(scale=F(sensitivity) / epsilon / 2)
    assert exceeds(halved.probability, epsilon, sensitivity)
    assert exceeds(UnboundedDiscreteLaplace(epsilon=epsilon).probability, epsilon, sensitivity) == (sensitivity > 1)


def clamped(pmf: UnboundedDiscreteLaplace, success: Fraction, value: int) -> Pmf:
    """The pmf of value + noise moved into -6, ..., 6, for q = 1 - success, from exact probabilities of q^|x|."""
    magnitude, largest = Geometric(p=success), 6

    def mass(x: int) -> Fraction:
        exact = magnitude.probability(abs(x)) / (2 - success)
        bounds = pmf.probability(x)
        assert bounds.lower <= exact <= bounds.upper
        return exact

    inner = [mass(y - value) for y in range(1 - largest, largest)]
    # P[X >= x] = q^x / (1 + q) for x >= 1.
    tails = [(1 - success) ** (largest + side * value) / (2 - success) for side in (1, -1)]
    assert sum(inner) + sum(tails) == 1
    return Pmf.from_weights([tails[0], *inner, tails[1]], outputs=range(-largest, largest + 1))


def test_exact_audit() -> None:
    # q = 1/3 at sensitivity 2: shifts by up to 2 are at epsilon = ln 9 exactly, by the library's own comparison.
    pmf = UnboundedDiscreteLaplace(epsilon=LogRatio(9), sensitivity=2)
    pmfs = {value: clamped(pmf, F(2, 3), value) for value in range(-3, 4)}
    below = LogRatio(9 * 10**12 - 1, 10**12)
    for a, p in pmfs.items():
        for b, q in pmfs.items():
            within = abs(a - b) <= 2
            assert is_indistinguishable(p, q, epsilon=LogRatio(9), delta=0).holds == within
            assert is_indistinguishable(p, q, epsilon=below, delta=0).holds == (abs(a - b) < 2)
    # Half the noise: q = 1/9.
    halved = UnboundedDiscreteLaplace(epsilon=LogRatio(81), sensitivity=2)
    pair = [clamped(halved, F(8, 9), value) for value in (0, 2)]
    assert not is_indistinguishable(*pair, epsilon=LogRatio(9), delta=0).holds


def chi_square(draws: Any, scale: Fraction, width: int) -> tuple[float, int]:
    """The statistic over -width, ..., width and both tails."""
    low, _ = zip(*(oracle.two_sided_probability(1 / scale, x) for x in range(-width, width + 1)), strict=True)
    counts = np.bincount(np.clip(draws, -width - 1, width + 1) + width + 1, minlength=2 * width + 3)
    tail = (1 - float(sum(low))) / 2
    expected = np.array([tail, *map(float, low), tail]) * len(draws)
    return float(((counts - expected) ** 2 / expected).sum()), 2 * width + 2


@pytest.mark.statistical
@pytest.mark.parametrize(("scale", "width"), [(F(1), 8), (F(5), 40)])
def test_draws_follow_the_pmf(scale: Fraction, width: int) -> None:
    draws = seeded(UnboundedDiscreteLaplace(scale=scale), 300_000, 17)
    statistic, degrees = chi_square(draws, scale, width)
    limit = chi_square_limit(degrees)
    print(f"chi-square {statistic:.1f} at {degrees} degrees, limit {limit:.1f}")
    assert statistic < limit
    for wrong in (scale * F(103, 100), scale / 2):
        assert chi_square(draws, wrong, width)[0] > limit
    # Symmetric: the sign of what is not 0 is a fair coin; six standard deviations, 2e-9.
    positive, negative = int((draws > 0).sum()), int((draws < 0).sum())
    assert abs(positive - negative) < 6 * math.sqrt(positive + negative)


def test_copies_shapes_and_words() -> None:
    for pmf in (
        UnboundedDiscreteLaplace(scale="2.5"),
        UnboundedDiscreteLaplace(epsilon=0.5, sensitivity=3),
        UnboundedDiscreteLaplace(epsilon=LogRatio(3)),
    ):
        for twin in (copy.deepcopy(pmf), pickle.loads(pickle.dumps(pmf))):
            assert repr(twin) == repr(pmf)
            assert seeded(twin, 9, 1).tolist() == seeded(pmf, (3, 3), 1).ravel().tolist()
        assert seeded(pmf, None, 1) == seeded(pmf, 1, 1)[0]
        assert type(pmf.sample()) is int
        assert pmf.sample((2, 3)).dtype == np.int64
    assert repr(UnboundedDiscreteLaplace(epsilon=0.5, sensitivity=3)) == (
        "UnboundedDiscreteLaplace(epsilon=0.5, sensitivity=3)"
    )
    bounds = UnboundedDiscreteLaplace(epsilon=0.5, sensitivity=3).scale
    assert bounds.lower == bounds.upper == 6.0
    # Noise far smaller and far larger than 1.
    assert set(UnboundedDiscreteLaplace(scale="1e-300").sample(50).tolist()) == {0}
    assert np.abs(UnboundedDiscreteLaplace(scale=2**52).sample(50)).max() > 2**45


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, TypeError, "exactly one of scale and epsilon"),
        ({"scale": 1, "epsilon": 1}, TypeError, "exactly one of scale and epsilon"),
        ({"scale": 1, "sensitivity": 1}, TypeError, "sensitivity goes with epsilon"),
        ({"scale": 0}, ValueError, "scale must be > 0"),
        ({"scale": -1}, ValueError, "scale must be > 0"),
        ({"scale": math.inf}, ValueError, "scale must be finite"),
        ({"scale": "wide"}, ValueError, "scale='wide'"),
        ({"scale": [1]}, TypeError, "scale must be"),
        ({"scale": 2**52 + 1}, ValueError, r"scale.*2\^52"),
        ({"epsilon": 1e-300}, ValueError, r"scale.*2\^52"),
        ({"epsilon": LogRatio(2**60 + 1, 2**60)}, ValueError, r"scale.*2\^52"),
        ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
        ({"epsilon": LogRatio(1)}, ValueError, "epsilon must be > 0"),
        ({"epsilon": -1}, ValueError, "epsilon must be >= 0"),
        ({"epsilon": 1, "sensitivity": 0}, ValueError, "sensitivity must be at least 1"),
        ({"epsilon": 1, "sensitivity": 1.5}, TypeError, "sensitivity must be an int"),
    ],
)
def test_bad_input(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        UnboundedDiscreteLaplace(**arguments)


def test_bad_calls() -> None:
    pmf = UnboundedDiscreteLaplace(scale=1)
    for x in (0.5, True, "1", None):
        with pytest.raises(TypeError, match="x must be an int"):
            pmf.probability(x)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="draw in parts"):
        pmf.sample(2**27 + 1)
