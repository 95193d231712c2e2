"""How wrong a released mean may be, beside exact pmfs, worst cases and intervals by their definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from userdp import _core
from userdp.means import WinsorizedMean
from userdp.means.accuracy import Accuracy, NoiseTerm, PromisedBias, UnknownBias, noise_quantile, norm_quantile
from userdp.means.iterated import IteratedMean, plan_iterated
from userdp.means.problem import MeanProblem
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.composed import run
from userdp.users import GivenVectors

F = Fraction

FAILURES = (F(1, 2), F(1, 20), F(1, 100), F(1, 1000))


def laplace(a: Fraction, step: float = 1.0) -> NoiseTerm:
    """Noise of probabilities in the ratio a from an integer to the next one."""
    return NoiseTerm("laplace", -1 / math.log(a), step)


def tail_by_sum(mass: Callable[[int], float], far: int) -> Callable[[int], float]:
    """P[|Z| > h], for weights that are listed up to `far`."""
    weights = [mass(k) for k in range(far + 1)]
    whole = math.fsum(weights) * 2 - weights[0]
    return lambda h: 2 * math.fsum(weights[h + 1 :]) / whole


# --- noise of one term


@pytest.mark.parametrize("a", [F(1, 10), F(1, 2), F(3, 4), F(9, 10), F(99, 100), F(9999, 10000)])
def test_quantiles_of_laplace_noise_are_the_least(a: Fraction) -> None:
    """Beside P[|Z| > h] = 2 a^(h+1) / (1 + a), in fractions."""

    def tail(h: int) -> Fraction:
        return 2 * a ** (h + 1) / (1 + a)

    for failure in FAILURES:
        h = round(laplace(a).quantile(float(failure)))
        assert tail(h) <= failure
        assert h == 0 or tail(h - 1) > failure
        assert laplace(a, 0.25).quantile(float(failure)) == h / 4


@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.5, 6.0, 15.9])
def test_quantiles_of_little_gaussian_noise_are_the_least(sigma: float) -> None:
    tail = tail_by_sum(lambda k: math.exp(-(k**2) / (2 * sigma**2)), math.ceil(45 * sigma) + 5)
    for failure in map(float, FAILURES):
        h = round(NoiseTerm("gaussian", sigma, 1.0).quantile(failure))
        assert tail(h) <= failure * (1 + 1e-12)
        assert h == 0 or tail(h - 1) > failure * (1 - 1e-12)


@pytest.mark.parametrize("sigma", [16.0, 100.0, 1000.0])
def test_quantiles_of_much_gaussian_noise_are_a_step_from_the_least(sigma: float) -> None:
    tail = tail_by_sum(lambda k: math.exp(-(k**2) / (2 * sigma**2)), math.ceil(12 * sigma))
    for failure in map(float, FAILURES):
        length = NoiseTerm("gaussian", sigma, 1.0).quantile(failure)
        assert tail(math.floor(length)) <= failure
        assert tail(math.floor(length) - 3) > failure


@pytest.mark.parametrize("epsilon", [F(1, 3), F(1), F(4)])
def test_terms_have_the_variance_and_the_tails_of_laplace_mechanisms(epsilon: Fraction) -> None:
    mechanism = DiscreteLaplace(epsilon=epsilon, sensitivity=2, bounds=(-400, 400))
    pmf = mechanism.pmf(0)
    masses = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
    term = NoiseTerm.of(mechanism, 0.5)
    variance = float(sum(mass * z * z for z, mass in masses.items())) / 4
    assert term.variance == pytest.approx(variance, rel=1e-12)
    for failure in FAILURES:
        h = round(2 * term.quantile(float(failure)))
        assert sum(mass for z, mass in masses.items() if abs(z) > h) <= failure * (1 + F(1, 10**12))


@pytest.mark.parametrize("sigma_squared", [F(1, 4), F(2), F(50), F(1000)])
def test_terms_have_the_variance_and_the_tails_of_gaussian_mechanisms(sigma_squared: Fraction) -> None:
    mechanism = DiscreteGaussian(sigma_squared=sigma_squared)
    pmf = mechanism.pmf(0)
    masses = dict(zip(pmf.outputs, pmf.fractions(), strict=True))
    term = NoiseTerm.of(mechanism, 2.0)
    variance = 4 * float(sum(mass * z * z for z, mass in masses.items()))
    assert variance <= term.variance * (1 + 1e-12)
    assert sigma_squared < 1 or term.variance == pytest.approx(variance, rel=1e-6)
    for failure in FAILURES:
        h = math.floor(term.quantile(float(failure)) / 2)
        assert sum(mass for z, mass in masses.items() if abs(z) > h) <= failure * (1 + F(1, 10**12))


# --- several terms, several columns


def tail_of_sum(terms: tuple[NoiseTerm, ...], length: float) -> float:
    """P[|sum of terms| > length], by convolution of pmfs in units of the least step."""
    unit = min(term.step for term in terms)
    total = np.ones(1)
    for term in terms:
        z = np.arange(-math.ceil(40 * term.scale), math.ceil(40 * term.scale) + 1)
        weights = np.exp(-np.abs(z) / term.scale if term.kind == "laplace" else -(z**2) / (2 * term.scale**2))
        apart = round(term.step / unit)
        spaced = np.zeros(apart * (len(z) - 1) + 1)
        spaced[::apart] = weights / weights.sum()
        total = np.convolve(total, spaced)
    middle = len(total) // 2
    return float(total[np.abs(np.arange(len(total)) - middle) * unit > length].sum())


@pytest.mark.parametrize(
    "terms",
    [
        (NoiseTerm("laplace", 2.0, 0.5), NoiseTerm("laplace", 1.0, 1.0)),
        (NoiseTerm("gaussian", 3.0, 1.0), NoiseTerm("laplace", 1.5, 0.25)),
        (NoiseTerm("gaussian", 17.0, 0.25), NoiseTerm("gaussian", 20.0, 0.125)),
    ],
)
def test_sums_of_terms_exceed_their_quantiles_no_more_often(terms: tuple[NoiseTerm, ...]) -> None:
    for failure in (0.5, 0.05, 0.001):
        length = noise_quantile(terms, failure)
        assert tail_of_sum(terms, length) <= failure
        assert tail_of_sum(terms, length / 3) > failure


@pytest.mark.parametrize("d", [1, 2, 8, 64])
def test_norms_exceed_their_quantiles_no_more_often(d: int) -> None:
    for failure in (0.5, 0.05, 1e-3):
        gaussian = norm_quantile((NoiseTerm("gaussian", 100.0, 0.01),), d, failure)
        assert stats.chi2.sf(gaussian**2, d) <= failure
        assert gaussian <= 1.5 * math.sqrt(stats.chi2.isf(failure, d)) + 0.2
        # by a union bound over columns
        each = NoiseTerm("laplace", 100.0, 0.01)
        assert norm_quantile((each,), d, failure) == pytest.approx(math.sqrt(d) * each.quantile(failure / d))


# --- rounding


@pytest.mark.parametrize(
    ("n", "a", "failure", "h", "grid", "nearest"),
    # Cases of an independent derivation: a half step for values that are rounded to the nearest, or a whole one.
    [
        (100, F(1, 2), 0.05, 4, F(1, 64), F(27, 3200)),
        (1000, F(9, 10), 0.05, 28, F(1, 1024), F(33, 64000)),
        (3, F(1, 4), 0.5, 0, F(1), F(1, 2)),
    ],
)
def test_intervals_have_half_a_step_for_rounding(
    n: int, a: Fraction, failure: float, h: int, grid: Fraction, nearest: Fraction
) -> None:
    term = laplace(a, float(grid) / n)
    assert term.quantile(failure) == pytest.approx(float(grid * h / n), abs=0)
    assert Accuracy((term,), float(grid / 2), None).half_width(failure) == pytest.approx(float(nearest), rel=1e-15)


def test_rounding_toward_zero_counts_a_whole_step_or_more() -> None:
    term = laplace(F(9, 10), 2.0**-10 / 1000)
    assert Accuracy((term,), 2.0**-10, None).half_width(0.05) == pytest.approx(257 / 256000, rel=1e-15)


@pytest.mark.parametrize("given", [{"bounds": (-1, 1)}, {"max_norm": 1}, {"bounds": ((-1, -1), (1, 1))}])
@pytest.mark.parametrize("delta", [0, "1e-2"])
def test_intervals_cover_rounded_values_without_noise(given: dict[str, Any], delta: Any) -> None:
    """All users .499 of a step from the grid: the mean of the rounded values is as far off as one of them.

    A step is 125 scales of the noise or more: any noise at all is drawn with a probability below 1e-53.
    """
    d = 2 if "bounds" in given and np.ndim(given["bounds"][0]) else 1
    made = WinsorizedMean(epsilon=2000, delta=delta, m=1, grid_resolution=4, method="laplace", **given)
    for value in (0.499 / 4, 0.501 / 4, -0.499 / 4, 0.999 / 4, 0.9):
        made.fit(np.full((50, d), value), groups=np.arange(50))
        low, high = made.interval(0.95).T
        assert np.all(low <= value)
        assert np.all(value <= high)


def test_clipped_sums_round_by_no_more_than_is_allowed_for() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 2, 5, 30):
        given = MeanProblem(50, d, 1.0, "l2", 0.1, 1, F(1, 10), 0.01, grid_resolution=64)
        plan = plan_iterated(given)
        assert isinstance(plan, IteratedMean)
        this = plan.rounds[0]
        people = rng.normal(size=(50, d)) * rng.uniform(0, 2, size=(50, 1)) / math.sqrt(d)
        people /= np.maximum(1, np.linalg.norm(people, axis=1))[:, None]
        sums = GivenVectors(people, np.ones(50, bool)).clipped_sum(0.0, this.radius, this.grid)
        off = np.abs(this.grid * sums / 50 - people.mean(axis=0)).max()
        assert off <= plan.accuracy().rounding


# --- clipping


def lost_by_clipping(people: np.ndarray[Any, Any], center: np.ndarray[Any, Any], radius: float) -> float:
    """How far the mean of clipped vectors is from that of all."""
    moved = people - center
    length = np.linalg.norm(moved, axis=1, keepdims=True)
    clipped = center + moved * np.minimum(1, radius / np.maximum(length, 1e-300))
    return float(np.linalg.norm(clipped.mean(axis=0) - people.mean(axis=0)))


def bias_of_one_round(spread: float, off: float, radius: float, d: int = 1, independent: bool = False) -> float:
    """The bound of a round whose center is so far off."""
    bound = PromisedBias(spread, d, ((NoiseTerm("laplace", 1e-3, 1.0), 0.0, radius),), independent)
    return float(bound._lost(np.array(off), radius))


def test_the_most_that_clipping_moves_is_reached() -> None:
    """Users at the center of the ball, and at twice its radius: in fractions, with equality."""
    r = F(1, 2)
    for e in (F(1, 8), F(1, 4), F(1, 2)):
        share = e / (2 * r)  # of users at 2 r beyond the center, so that their mean is e beyond it
        spread_squared = e * (2 * r - e)
        bias = share * r
        assert (spread_squared + e * e) / (4 * r) == bias
        bound = bias_of_one_round(math.sqrt(spread_squared), float(e), float(r))
        assert bound == pytest.approx(float(bias))
        n = 64
        far = int(n * share)
        people = np.where(np.arange(n) < far, float(2 * r), 0.0)[:, None]
        assert lost_by_clipping(people, np.zeros(1), float(r)) == pytest.approx(float(bias))


@pytest.mark.parametrize("d", [1, 2, 5])
def test_clipping_never_moves_more_than_is_bounded(d: int) -> None:
    rng = np.random.default_rng(d)
    worst = 0.0
    for _ in range(1500):
        n = int(rng.integers(2, 12))
        people = rng.normal(size=(n, d)) * rng.pareto(1.5, size=(n, 1))
        if rng.random() < 0.5:
            people[1:] = people[1]  # one user far from all others
        center = people.mean(axis=0) + rng.normal(size=d) * rng.exponential(1)
        off = float(np.linalg.norm(people.mean(axis=0) - center))
        spread = math.sqrt(np.mean(np.sum((people - people.mean(axis=0)) ** 2, axis=1)))
        radius = float(rng.exponential(2) * (spread + off) + 1e-3)
        bias, bound = lost_by_clipping(people, center, radius), bias_of_one_round(spread, off, radius, d)
        assert bias <= bound * (1 + 1e-9)
        worst = max(worst, bias / bound)
    assert worst > 0.8


@pytest.mark.parametrize("d", [1, 3, 16])
@pytest.mark.parametrize("m", [1, 4, 64])
def test_independent_rows_lose_no_more_than_is_bounded(d: int, m: int) -> None:
    """Rows at the corners of the ball, whose means have the largest spread that is promised; 20,000 users."""
    rng = np.random.default_rng(m)
    spread = 1 / math.sqrt(m)
    n = 20_000
    signs = 2 * rng.binomial(m, 0.5, size=(n, d)) / m - 1
    people = signs / math.sqrt(d)
    for off, times in product((0.0, 0.3, 1.0), (0.5, 1.0, 1.5, 2.5, 4.0)):
        center = np.zeros(d)
        center[0] = off * spread
        bias = lost_by_clipping(people, center, times * spread)
        # The mean of n users is off by spread / sqrt(n): six of it are beyond 1e-6.
        assert bias <= bias_of_one_round(spread, off * spread, times * spread, d, True) + 6 * spread / math.sqrt(n)


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("d", [1, 4])
def test_root_mean_squares_of_bias_are_those_of_the_formula(kind: Any, d: int) -> None:
    """E ((s^2 + e^2) / (4 r))^2 = (s^4 + 2 s^2 E e^2 + E e^4) / (16 r^2), with the moments of the noise."""
    b, s, r = 0.01, 0.02, 0.1
    term = NoiseTerm(kind, 1000.0, b / 1000)
    second, fourth = (b * b, 3 * b**4) if kind == "gaussian" else (2 * b * b, 24 * b**4)
    square = d * second
    quartic = d * fourth + d * (d - 1) * second**2
    expected = math.sqrt(s**4 + 2 * s * s * square + quartic) / (4 * r)
    bias = PromisedBias(s, d, ((term, 0.0, r),), False)
    assert bias.root_mean_square() == pytest.approx(expected, rel=0.03)
    # What is exceeded with a probability of 1e-4 is above the root mean square.
    assert bias.at_most(1e-4) > bias.root_mean_square()


def test_bias_that_nothing_bounds_is_infinite() -> None:
    assert UnknownBias().at_most(0.01) == UnknownBias().root_mean_square() == math.inf
    assert Accuracy((laplace(F(1, 2)),), 0.0, UnknownBias()).worst() == math.inf
    assert Accuracy((laplace(F(1, 2)),), 0.0, None).worst() == math.sqrt(laplace(F(1, 2)).variance)


def test_rounding_of_early_rounds_moves_the_centers_of_later_ones() -> None:
    term = NoiseTerm("laplace", 1000.0, 1e-9)
    bias = PromisedBias(0.1, 1, ((term, 0.2, 0.5),), False)
    for length in (bias.at_most(0.05), bias.root_mean_square()):
        assert length == pytest.approx((0.1**2 + 0.2**2) / (4 * 0.5), rel=1e-3)
    coarse = MeanProblem(2000, 1, 1.0, "max", 0.01, 1, F(0), 0.01, grid_resolution=4, promise="at most")
    fine = replace(coarse, grid_resolution=None)
    for problem in (coarse, fine):
        plan = plan_iterated(problem)
        assert isinstance(plan, IteratedMean)
        bias = plan.accuracy().bias
        grids = [math.ldexp(1.0, math.frexp(this.radius)[1] - 3) for this in plan.rounds]
        rounding = [this[1] for this in bias.rounds] if bias else []
        assert rounding == [3 * this.grid for this in plan.rounds[:-1]]
        assert problem is fine or rounding == [3 * grid for grid in grids[:-1]]


def test_bias_grows_with_what_is_promised_and_with_certainty() -> None:
    term = NoiseTerm("laplace", 1000.0, 1e-5)
    for independent in (False, True):
        bounds = [PromisedBias(s, 1, ((term, 0.0, 0.3),), independent).at_most(0.05) for s in (0.01, 0.05, 0.1)]
        assert all(a < b for a, b in pairwise(bounds))
        surer = [PromisedBias(0.05, 1, ((term, 0.0, 0.3),), independent).at_most(p) for p in (0.5, 0.05, 1e-4)]
        assert all(a < b for a, b in pairwise(surer))


@pytest.mark.parametrize(("d", "delta"), [(1, F(0)), (4, F(1, 10**6))])
def test_worst_users_have_errors_within_what_is_said(d: int, delta: Fraction) -> None:
    """Rounds as they run, for users of a promised distance of whom a few are far out.

    The draws are fixed. Sixty squares of Laplace noise have so long a tail that free ones would fail once in thousands
    of runs.
    """
    n, runs, spread = 4000, 60, 0.02
    given = MeanProblem(n, d, 1.0, "l2", spread, 1, delta, 0.01, promise="at most")
    plan = plan_iterated(given)
    accuracy = plan.accuracy()
    assert accuracy.bias is not None
    share = 0.005
    people = np.zeros((n, d))
    people[: int(share * n), 0] = spread / math.sqrt(share)
    people -= people.mean(axis=0) - 0.3 / math.sqrt(d)
    assert math.sqrt(np.mean(np.sum((people - people.mean(axis=0)) ** 2, axis=1))) <= spread
    vectors, source = GivenVectors(people, np.ones(n, bool)), _core.Source(d)
    width = accuracy.half_width(0.025 / d) + accuracy.bias.at_most(0.025)
    off = np.array([plan.mean(run(plan.program(vectors), source)) for _ in range(runs)]) - people.mean(axis=0)
    missed = int(np.sum(np.any(np.abs(off) > width, axis=1)))
    # One in twenty may be missed: 17 and more of 60 are with a probability below 1e-7.
    assert missed <= 16
    # The error of a column, beside its noise and the bias of the whole vector.
    assert math.sqrt(np.mean(off**2)) <= 1.3 * accuracy.worst()


# --- what is saved


@pytest.mark.parametrize(
    "accuracy",
    [
        Accuracy((laplace(F(1, 2)),), 0.5, None),
        Accuracy((NoiseTerm("gaussian", 3.0, 0.5), laplace(F(1, 2))), 0.5, UnknownBias(), mixed=True),
        Accuracy((laplace(F(1, 2)),), 0.5, PromisedBias(0.1, 2, ((laplace(F(1, 3)), 0.25, 0.5),), True)),
    ],
)
def test_accuracies_are_saved_with_means(accuracy: Accuracy) -> None:
    learner = WinsorizedMean(epsilon=1, bounds=(0, 1), m=1).fit(np.zeros((100, 1)), groups=np.arange(100))
    learner.accuracy_ = accuracy
    assert WinsorizedMean.from_json(learner.to_json()).accuracy_ == accuracy
