"""The iterated clipped mean: its plan, its sums and its noise, what it spends, and how it errs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import iterated_mean as reference
from userdp.accounting import PrivacyLedger, gaussian_delta, largest_mu2
from userdp.exceptions import BudgetError
from userdp.means import WinsorizedMean
from userdp.means.gaussian_account import NOISE_DISTANCE
from userdp.means.iterated import (
    GaussianRounds,
    IteratedMean,
    LaplaceRounds,
    NoiseSize,
    plan_gaussian,
    plan_iterated,
    planned_rounds,
)
from userdp.means.methods import choose
from userdp.means.problem import MeanMethod, MeanProblem
from userdp.means.winsorized import plan_laplace
from userdp.mechanisms.composed import run
from userdp.runtime import source_of
from userdp.users import GivenVectors

pytestmark = pytest.mark.filterwarnings("ignore::userdp.exceptions.TooFewUsersWarning")

F = Fraction


def problem(n: int = 1000, d: int = 64, m: int = 16, epsilon: Any = 1, delta: Any = "1e-6", **more: Any) -> Any:
    given = {"max_norm": 1.0, "norm": "l2", "concentration": m**-0.5, "beta": 0.01} | more
    return MeanProblem(n_users=n, dimension=d, epsilon=epsilon, delta=F(delta), **given)


def iterated(*arguments: Any, **more: Any) -> IteratedMean:
    plan = plan_iterated(problem(*arguments, **more))
    assert isinstance(plan, IteratedMean)
    return plan


# Total errors times 1000 in the unit ball of 64 columns for records of variance 0.8775, at delta = 1e-6.
TOTAL_ERRORS = {
    (1000, "0.5"): (141, 52.7, 15.2),
    (1000, "1"): (77.7, 23.6, 6.15),
    (10_000, "0.5"): (16.3, 4.35, 1.14),
    (10_000, "1"): (12.3, 3.05, 0.80),
}


@pytest.mark.parametrize(("n", "epsilon"), TOTAL_ERRORS)
def test_predicted_errors_meet_their_targets(n: int, epsilon: str) -> None:
    for m, target in zip((1, 16, 256), TOTAL_ERRORS[n, epsilon], strict=True):
        total = math.hypot(math.sqrt(0.8775 / (n * m)), iterated(n, 64, m, epsilon).predicted_error())
        assert 1000 * total < 1.06 * target


def test_plans_are_rounds_of_shrinking_radii_that_share_the_budget() -> None:
    for d in (1, 8, 1024):
        for n in (100, 10**5):
            for m in (1, 64):
                plan = iterated(n, d, m).schedule
                assert sum(plan.shares) == 1
                assert min(plan.shares) > 0
                assert plan.radii[0] == 1
                assert all(a > b for a, b in zip(plan.radii, plan.radii[1:], strict=False))
                assert plan.radii[-1] > m**-0.5 or len(plan.radii) == 1


def test_one_round_is_the_gaussian_mechanism() -> None:
    one, other = iterated(10_000, 64, 1), plan_gaussian(problem(10_000, 64, 1))
    assert isinstance(other, IteratedMean)
    assert one.schedule == other.schedule
    assert one.rounds[0].noise.mechanism.sigma_squared == other.rounds[0].noise.mechanism.sigma_squared
    rho = float(largest_mu2(1, "1e-6")) / 2
    assert one.predicted_error() == pytest.approx(math.sqrt(64 * 2 / (10_000**2 * rho)))


def test_kappa_grows_where_noise_is_small_and_tails_are_long() -> None:
    kappas = [iterated(10_000, d, 256).schedule.kappa for d in (1, 8, 64)]
    assert kappas == sorted(kappas, reverse=True)
    assert kappas[0] >= 1.75
    assert kappas[-1] <= 1.1


def test_few_columns_have_laplace_noise() -> None:
    assert isinstance(iterated(d=1).noise, LaplaceRounds)
    assert isinstance(iterated(d=64).noise, GaussianRounds)
    assert isinstance(iterated(d=64, delta=0).noise, LaplaceRounds)
    assert iterated(d=1).budget().cost.delta == 0


def test_predicted_error_falls_with_the_budget_and_rises_with_the_spread() -> None:
    assert iterated(epsilon=2).predicted_error() < iterated(epsilon=1).predicted_error()
    assert iterated(m=256).predicted_error() < iterated(m=16).predicted_error()
    assert planned_rounds(4, 1.0, 0.01, NoiseSize(1e-5, 1, 4)).error < math.sqrt(1e-5)


def steady(noise: Callable[[int], int]) -> tuple[list[Any], Callable[..., Any]]:
    """A draw that adds public numbers, and what it was called with."""
    seen: list[Any] = []

    def draw(mechanism: Any, *arguments: Any) -> Any:
        seen.append(arguments[0])
        if isinstance(arguments[0], tuple):
            return tuple(value + noise(place) for place, value in enumerate(arguments[0]))
        return arguments[0] + noise(0)

    return seen, draw


@pytest.mark.parametrize("d", [2, 3, 8])
def test_rounds_are_those_of_the_slow_reference(d: int) -> None:
    rng = np.random.default_rng(d)
    n = 40
    plan = iterated(n, d, 64, 40, "1e-2", grid_resolution=32)
    assert len(plan.rounds) > 1
    # a center far from 0, so that rounds clip, and dyadic numbers, so that the reference has them exactly
    people = np.round((0.3 + rng.normal(size=(n, d)) / 8) / math.sqrt(d) * 2**20) / 2**20
    present = np.arange(n) % 7 != 3
    seen, draw = steady(lambda place: 3 * place - 4)
    outcome = plan.program(GivenVectors(people, present))(draw)
    # Users without rows are at the origin, in all rounds.
    vectors = [tuple(map(F, row)) if has else (F(0),) * d for row, has in zip(people.tolist(), present, strict=True)]
    flat = [given for given in seen if isinstance(given, int)]  # Laplace noise takes a column at a time
    sums = [given for given in seen if isinstance(given, tuple)] or list(zip(*[iter(flat)] * d, strict=True))
    center: reference.Vector = (F(0),) * d
    for this, released, given in zip(plan.rounds, outcome, sums, strict=True):  # type: ignore[call-overload]
        assert given == reference.total(vectors, center, F(this.radius), F(this.grid))
        # the center is a float: the reference goes on from it
        exact = reference.moved(center, F(this.grid), released, n, F(1))
        center = tuple(F(float(c)) for c in exact)
        if this is plan.rounds[-1]:
            np.testing.assert_allclose(plan.mean(outcome), [float(c) for c in exact], rtol=0, atol=1e-12)
        np.testing.assert_allclose(np.array(center, float), [float(c) for c in exact])


def test_centers_of_rounds_stay_in_the_ball_and_the_last_one_is_not_moved() -> None:
    plan = iterated(1000, 8, 256)
    far = tuple((10**9,) * 8 for _ in plan.rounds)
    last = plan.clipped_to(far)
    assert last is not None
    center, radius = last
    assert np.linalg.norm(center) <= 1 + 1e-12
    assert radius == plan.schedule.radii[-1]
    step = plan.rounds[-1].grid * 10**9 / 1000
    np.testing.assert_allclose(plan.mean(far), center + step, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 3, 64, 1000])
def test_what_is_spent_is_within_the_claim(d: int) -> None:
    for delta in (F(1, 10), F(1, 10**12)):
        given = problem(500, d, 100, "0.7", delta)
        noise = GaussianRounds.of(given)
        plan = planned_rounds(d, 1.0, 0.1, noise.size())
        method = IteratedMean("iterated", given, noise, plan)
        cost = method.budget().cost
        assert cost.mu2 == sum(method.budget().parts.values()) <= noise.account.amount
        assert gaussian_delta(cost.mu2, "0.7", distance=cost.distance) <= delta
        assert cost.rho == cost.mu2 / 2
        drawn = F(0)
        for this, share in zip(method.rounds, plan.shares, strict=True):
            each = F(4 * this.reach**2) / (this.noise.mechanism.sigma_squared - 4)
            assert each <= noise.account.amount * share
            drawn += each
            assert this.noise.mechanism.distance <= NOISE_DISTANCE
            assert this.reach == math.floor(F(this.radius) / F(this.grid))
            assert 500 * this.reach < 2**61
        assert F(99, 100) * cost.mu2 < drawn <= cost.mu2
        assert cost.distance >= sum(d * this.noise.mechanism.distance for this in method.rounds)


@pytest.mark.parametrize("d", [1, 2, 7])
def test_laplace_rounds_spend_epsilon(d: int) -> None:
    plan = iterated(5000, d, 100, "0.7", 0)
    assert len(plan.rounds) > 1
    budget = plan.budget()
    assert budget.cost.delta == 0
    assert sum(budget.parts.values()) == F("0.7")
    for this, part in zip(plan.rounds, budget.parts.values(), strict=True):
        # a vector of length 2R has a 1-norm of at most 2R sqrt(d)
        assert (this.noise.mechanism.scale * part) ** 2 >= (1 - F(1, 2**40)) * math.isqrt(4 * this.reach**2 * d) ** 2


def errors(plan: MeanMethod, spread: float, runs: int, seed: int) -> np.ndarray[Any, Any]:
    """Squared distances of releases from the mean of normal users around a point."""
    rng = np.random.default_rng(seed)
    given = plan.problem  # type: ignore[attr-defined]
    found = []
    for _ in range(runs):
        people = 0.4 / math.sqrt(given.dimension) + rng.normal(
            size=(given.n_users, given.dimension)
        ) * spread / math.sqrt(given.dimension)
        outcome = run(plan.program(GivenVectors(people, np.ones(len(people), bool))), source_of(None))
        found.append(np.sum((plan.mean(outcome) - people.mean(axis=0)) ** 2))
    return np.array(found)


@pytest.mark.parametrize(("d", "n", "epsilon", "delta"), [(16, 400, 1, "1e-6"), (8, 300, 2, "1e-4"), (4, 500, 1, 0)])
def test_errors_are_those_predicted(d: int, n: int, epsilon: float, delta: Any) -> None:
    # A run with Laplace noise may lose the center, with an error of ten times the predicted one: squares beyond nine
    # times its square count as that. Then the ratio has a standard deviation of at most 0.017, and the limits are more
    # than five of them from where it is, 0.94 with Laplace and 0.99 with normal noise: false alarms below 1e-6.
    plan = iterated(n, d, 64, epsilon, delta)
    assert len(plan.rounds) > 1
    squares = errors(plan, 0.125, 300 if delta else 1000, d) / plan.predicted_error() ** 2
    ratio = math.sqrt(np.mean(np.minimum(squares, 9)))
    assert 0.8 < ratio < 1.15


@pytest.mark.parametrize("promise", ["expected", "at most", "independent"])
def test_auto_takes_the_least_error_under_what_is_promised(promise: str) -> None:
    for n, d, m, delta in ((1000, 1, 16, 0), (300, 3, 64, "1e-6"), (10_000, 64, 16, "1e-6"), (1000, 64, 1, "1e-6")):
        given = problem(n, d, m, "0.5", delta, promise=promise)
        plans = [plan_iterated(given), plan_laplace(given), *([plan_gaussian(given)] if delta else [])]
        auto = choose(given)
        if promise == "expected":
            assert auto.predicted_error() == min(plan.predicted_error() for plan in plans)
        else:
            worst = [plan.accuracy().worst(d) for plan in plans]
            if auto.name == "tested":  # in place of noise for the whole range, where tests are affordable
                assert (n, d) == (10_000, 64)
                assert worst[0] >= min(worst[1:])
            else:
                assert auto.accuracy().worst(d) == min(worst) < math.inf


def test_nobody_is_clipped_without_a_promise() -> None:
    for n, d, m, delta in itertools.product((2, 300, 10**5), (1, 3, 64), (1, 256), (0, "1e-6")):
        auto = choose(problem(n, d, m, "0.5", delta, promise="none"))
        if auto.name == "tested":
            assert (d, delta) == (64, "1e-6")
            continue
        assert auto.name in ("laplace", "gaussian")
        assert auto.accuracy().bias is None
        others = [plan_laplace(problem(n, d, m, "0.5", delta))]
        if delta:
            others.append(plan_gaussian(problem(n, d, m, "0.5", delta)))
        assert auto.predicted_error() == min(other.predicted_error() for other in others)


def test_the_worst_error_is_the_least_of_the_plans_that_there_are() -> None:
    # Under a promise, plans that count on what is expected have a larger worst error.
    for n, d, m, delta in ((1000, 1, 256, 0), (3000, 16, 64, "1e-6")):
        hoped = plan_iterated(problem(n, d, m, 1, delta))
        assert isinstance(hoped, IteratedMean)
        for promise in ("at most", "independent"):
            given = problem(n, d, m, 1, delta, promise=promise)
            surely = plan_iterated(given)
            assert surely.accuracy().worst() <= 1.01 * replace(hoped, problem=given).accuracy().worst()
            assert surely.accuracy().worst() >= surely.accuracy().noise()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"gaussian.*delta > 0"):
        plan_gaussian(problem(delta=0))
    with pytest.raises(ValueError, match="grid_resolution must be at most"):
        problem(grid_resolution=2**40)


@pytest.mark.parametrize("bound", [1e-310, 1e-91, 1e91, 1e300])
def test_bounds_beyond_floats_are_refused_before_anything_is_drawn(bound: float) -> None:
    ledger = PrivacyLedger(1)
    with pytest.raises(ValueError, match=r"max_norm must be from 2\*\*-300 to 2\*\*300"):
        ledger.fit(WinsorizedMean(epsilon=1, max_norm=bound, m=1), np.array([[1.0], [2.0]]), groups=[1, 2])
    with pytest.raises(ValueError, match=r"center must be finite, and at most 2\*\*300"):
        ledger.fit(WinsorizedMean(epsilon=1, max_norm=1, center=1e300, m=1), np.array([[1.0], [2.0]]), groups=[1, 2])
    assert not ledger.entries


@pytest.mark.parametrize("radius", [1e-320, 1e-100, 1e100, 1e300])
def test_radii_that_cannot_be_are_the_nearest_that_can(radius: float) -> None:
    learner = WinsorizedMean(epsilon=1, max_norm=1, user_std=radius, m=1, method="iterated")
    assert np.isfinite(learner.fit(np.array([[1.0], [2.0]]), groups=[1, 2]).mean_[0])


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-30"), (50, "1e-6"), (100, "1e-6")])
def test_a_delta_too_small_for_gaussian_noise_leaves_laplace_noise(epsilon: int, delta: str) -> None:
    for method in (plan_iterated, choose):
        plan = method(problem(100, 3, 4, epsilon, delta))
        assert plan.budget().cost.delta == 0
    with pytest.raises(ValueError, match="delta"):
        plan_gaussian(problem(100, 3, 4, epsilon, delta))


def test_little_epsilon_takes_coarser_grids_and_is_refused_before_anything_is_drawn() -> None:
    people = {"X": np.array([[1.0], [2.0]]), "groups": [1, 2]}
    made = WinsorizedMean(epsilon="1e-6", max_norm=1, m=1, method="iterated", user_std=1).fit(**people)
    assert np.isfinite(made.mean_[0])
    ledger = PrivacyLedger(1)
    with pytest.raises(BudgetError, match="larger epsilon"):
        ledger.fit(WinsorizedMean(epsilon="1e-9", max_norm=1, m=1, method="iterated", user_std=1), **people)
    assert not ledger.entries


def test_equal_problems_have_equal_plans() -> None:
    first, again = iterated(), iterated()
    assert first is not again
    assert first.schedule == again.schedule
    assert first.budget() == again.budget()
    assert replace(first.schedule, kappa=2.0) != first.schedule


@pytest.mark.parametrize("method", ["gaussian", "iterated", "auto"])
def test_estimator_from_rows(method: str) -> None:
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(2000), 256)
    rows = np.where(rng.random((len(people), 4)) < 0.6, 0.5, -0.5)
    learner = WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=256, method=method, homogeneous=True)
    learner.fit(rows, groups=people)
    truth = rows.reshape(2000, 256, 4).mean(axis=(0, 1))
    # 24 scales of Laplace noise in four columns; users are lost only where the first center is 22 scales off. Both
    # together have a probability below 1e-8.
    assert np.linalg.norm(learner.mean_ - truth) < 8 * np.linalg.norm(learner.worst_error_)
    assert learner.method_ == ("gaussian" if method == "gaussian" else "iterated")
    assert learner.privacy_.is_private
