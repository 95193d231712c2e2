"""Winsorized means: exact audits of what is drawn, accounts, grids, and errors that are as predicted."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio, _core
from userdp.accounting import (
    largest_epsilon_each,
    largest_mu2,
    largest_rho,
    optimal_delta,
    optimal_delta_of_groups,
)
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import BudgetError
from userdp.means import WinsorizedMean, range_search
from userdp.means.gaussian_account import GaussianAccount, GaussianUnit
from userdp.means.problem import MeanMethod, MeanProblem, SumNoise
from userdp.means.range_search import Lattice, RangeSearch
from userdp.means.winsorized import (
    SummedMean,
    plan_laplace,
    plan_paper,
    plan_practical,
    winsorized_ball,
    winsorized_columns,
)
from userdp.means.winsorized_budget import ColumnBudget, best_column_budget
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.composed import output_distribution, run
from userdp.report import AuditReport
from userdp.users import GivenVectors

pytestmark = pytest.mark.filterwarnings("ignore::userdp.exceptions.TooFewUsersWarning")

F = Fraction
TINY = Lattice(0.5, 1, 2, 4)
"""Four bins of width 1 on [-2, 2], intervals of length 2: four steps."""


def problem_of(n: int = 1000, d: int = 1, **changes: Any) -> MeanProblem:
    given: dict[str, Any] = {
        "n_users": n,
        "dimension": d,
        "max_norm": 1.0,
        "norm": "l2",
        "concentration": 0.25,
        "epsilon": 1,
        "delta": F(0),
        "beta": 0.01,
    }
    return MeanProblem(**(given | changes))


def vectors_of(dataset: Any, d: int = 1) -> GivenVectors:
    """Users of one example each: a vector, or None for a user without rows."""
    values = [example for (example,) in dataset]
    table = np.array([[0.0] * d if value is None else value for value in values])
    return GivenVectors(table, np.array([value is not None for value in values]))


def audited(method: MeanMethod, universe: Any, epsilon: Any, delta: Any = 0) -> AuditReport:
    """What the program of a method draws, over all datasets of its number of users."""
    outputs, d = tuple(method.outcomes()), len(universe[0])
    algorithm = SymmetricAlgorithm(
        outputs, lambda data: output_distribution(method.program(vectors_of(data, d)), outputs)
    )
    n = method.problem.n_users  # type: ignore[attr-defined]
    return audit_user_level(algorithm, universe=universe, n_users=n, n_examples=1, epsilon=epsilon, delta=delta)


def with_noise(method: Any, noise: Any) -> Any:
    """The same method with other noise."""
    return replace(method, noise=SumNoise(noise))


# --- exact audits


@pytest.mark.parametrize("n", [2, 3])
def test_exact_audit_of_range_and_sum_with_users_without_rows(n: int) -> None:
    universe = [(-1.7,), (-0.2,), (0.3,), (1.9,), (math.nan,), (math.inf,), None]
    parts = ColumnBudget(1, F(1, 3), F(2, 3), "pure", 0.5)
    method = winsorized_columns("practical", problem_of(n, max_norm=2.0), TINY, parts)
    report = audited(method, universe, 1)
    print(f"n = {n}: worst delta {report.worst_delta} at epsilon 1, epsilon {report.epsilon}")
    assert report.holds
    # Nearly tight: a range and a sum are both as far apart as they may be.
    assert report.epsilon.lower > 0.8
    half = DiscreteLaplace(epsilon=F(4, 3), sensitivity=4, bounds=method.noise.mechanism.bounds)
    weak = audited(with_noise(method, half), universe, 1)
    print(f"n = {n}: half the noise, worst delta {weak.worst_delta}")
    assert weak.holds is False


@pytest.mark.parametrize(("n", "m", "values"), [(2, 1, 4), (3, 1, 4), (2, 2, 3), (3, 2, 2)])
@pytest.mark.parametrize("method", ["paper", "laplace"])
def test_exact_audit_of_the_estimator(n: int, m: int, values: int, method: str) -> None:
    given: dict[str, Any] = {
        "bounds": (-1, 1),
        "m": m,
        "user_std": 0.15,
        "beta": 0.9,
        "grid_resolution": 4,
        "method": method,
    }
    universe = [-1.0, 1.0, math.nan, 0.1][:values]
    holding = as_finite_algorithm(WinsorizedMean(epsilon=1, **given), n_users=n)
    report = audit_user_level(holding, universe=universe, n_users=n, n_examples=m, epsilon=1, delta=0)
    weak = as_finite_algorithm(WinsorizedMean(epsilon=2, **given), n_users=n)
    halved = audit_user_level(weak, universe=universe, n_users=n, n_examples=m, epsilon=1, delta=0)
    print(f"{method}, n = {n}, m = {m}: worst delta {report.worst_delta}; of half the noise {halved.worst_delta}")
    assert report.holds
    assert halved.holds is False


@pytest.mark.parametrize("unit", ["rho", "mu2"])
def test_exact_audit_of_the_ball(unit: GaussianUnit) -> None:
    universe, epsilon, delta = [(-1.7,), (0.3,), (1.9,), None], F(1), F(1, 20)
    largest = largest_rho if unit == "rho" else largest_mu2
    account = GaussianAccount(unit, largest(epsilon, delta, distance=F(1, 2**90)))
    lattice = Lattice(0.5, 2, 2, 2)

    def ball() -> SummedMean:
        problem = problem_of(2, max_norm=2.0, delta=delta)
        search = RangeSearch(lattice, 1, F(1, 4))
        return winsorized_ball(problem, search, 1.0, 2 if unit == "rho" else 8, F(1, 4), account, F(1, 2**90))

    report = audited(ball(), universe, epsilon, delta)
    method = ball()
    quarter = DiscreteGaussian(sigma_squared=method.noise.mechanism.sigma_squared / 4)
    weak = audited(with_noise(method, quarter), universe, epsilon, delta)
    print(f"ball: worst delta {report.worst_delta}; of half the noise {weak.worst_delta}; claimed {delta}")
    assert report.holds
    assert weak.holds is False


def test_exact_audit_of_two_columns_under_optimal_composition() -> None:
    universe, epsilon, delta = [(-1.0, -1.0), (1.0, 1.0), (1.0, -1.0)], F(1), F(1, 50)
    lattice = Lattice(1.0, 1, 1, 2)
    method, weak = (
        winsorized_columns("practical", problem_of(2, 2, max_norm=1.4, delta=delta), lattice, budget)
        for budget in (
            _two_groups(epsilon, delta),
            ColumnBudget(2, F(1, 2), 2 * _two_groups(epsilon, delta).epsilon_noise, "", 1.0),
        )
    )
    report, halved = audited(method, universe, epsilon, delta), audited(weak, universe, epsilon, delta)
    print(f"two columns: worst delta {report.worst_delta}; of half the noise {halved.worst_delta}; claimed {delta}")
    assert report.holds
    assert halved.holds is False


def _two_groups(epsilon: Fraction, delta: Fraction) -> ColumnBudget:
    return best_column_budget(2, epsilon, delta, lambda part, noise: 1 / noise + 0.05 / part, 0.1)


def test_pmfs_are_the_same_from_counts_and_from_occupied_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    method = winsorized_columns("practical", problem_of(3), TINY, ColumnBudget(1, F(1, 2), F(1, 2), "pure", 0.5))
    outputs = tuple(method.outcomes())
    for dataset in itertools.combinations_with_replacement([((-1.7,),), ((0.3,),), (None,)], 3):
        dense = output_distribution(method.program(vectors_of(dataset)), outputs)
        with monkeypatch.context() as patch:
            patch.setattr(range_search, "MOST_COUNTS", 0)
            assert output_distribution(method.program(vectors_of(dataset)), outputs) == dense


# --- accounts


@pytest.mark.parametrize("columns", [1, 4, 64])
@pytest.mark.parametrize("delta", [F(0), F(1, 10**6), F(1, 50)])
def test_column_budgets_are_certified(columns: int, delta: Fraction) -> None:
    for epsilon in (F(1, 2), F(1), F(4)):
        budget = best_column_budget(columns, epsilon, delta, lambda part, noise: 1 / noise + 0.01 / part, 1e-4)
        part, noise = budget.epsilon_range, budget.epsilon_noise
        spent = budget.budget(problem_of(d=columns, epsilon=epsilon, delta=delta))
        cost = spent.cost
        print(columns, float(delta), float(epsilon), budget.accounting, float(part), float(noise))
        assert cost.rho == columns * (part**2 / 8 + noise**2 / 2)
        if budget.accounting == "pure":
            assert columns * (part + noise) == epsilon == sum(spent.parts.values())  # type: ignore[arg-type]
            assert cost.delta == 0
        elif budget.accounting == "optimal composition":
            assert optimal_delta(part + noise, columns, epsilon) <= delta == cost.delta
        elif budget.accounting == "zCDP":
            assert sum(spent.parts.values()) == cost.rho <= largest_rho(epsilon, delta)  # type: ignore[arg-type]
            assert spent.unit == "rho"
        else:
            assert optimal_delta_of_groups([(part, columns), (noise, columns)], epsilon) <= delta == cost.delta
        # Never worse than the same share of an equal part of epsilon.
        assert part + noise >= epsilon / columns or noise >= epsilon / columns - part


def test_an_unequal_split_of_twice_the_columns_is_not_certified() -> None:
    # Optimal composition of 2 D mechanisms of epsilon' / 2 holds for equal halves only.
    epsilon, delta, columns = 1, F(1, 10**6), 64
    whole = 2 * largest_epsilon_each(2 * columns, epsilon, delta)
    assert round(float(whole), 5) == 0.04227
    assert round(float(largest_epsilon_each(columns, epsilon, delta)), 5) == 0.03019
    assert optimal_delta_of_groups([(whole / 2, 2 * columns)], epsilon) <= delta
    assert optimal_delta_of_groups([(whole / 10, columns), (whole * F(9, 10), columns)], epsilon) > 50 * delta


def test_a_log_ratio_is_spent_from_below() -> None:
    method = plan_paper(problem_of(epsilon=LogRatio(3)))
    total = sum(method.budget().parts.values())  # type: ignore[arg-type]
    assert 1.0986 < total < 1.09861229


# --- grids


def test_lattices_are_of_whole_steps_and_reach_as_far_as_asked() -> None:
    for bound, width, reach, steps in itertools.product((1.0, 7.3, 1e-3), (0.01, 0.3), (0.0, 0.07, 2.0), (2, 64, 4096)):
        lattice = Lattice.of(bound, width, reach, steps)
        search = RangeSearch(lattice, 1, F(1, 2))
        assert math.frexp(lattice.grid)[0] == 0.5
        assert lattice.bound >= bound
        assert lattice.half * lattice.grid >= reach + lattice.half_bin * lattice.grid
        assert steps <= lattice.steps <= 2 * steps + 4 or lattice.half_bin == 1
        first, apart, length = search.range.steps(lattice.grid)
        assert (apart, length) == (2 * lattice.half_bin, lattice.steps)
        places = (0, lattice.n_bins // 2, lattice.n_bins - 1)
        for place, low, middle in zip(places, search.lows(places), search.middles(places), strict=True):
            assert F(float(low)) == search.range.interval(place).low == (first + apart * place) * F(lattice.grid)
            assert F(float(middle)) == search.range.interval(place).middle


# --- errors


def test_the_error_is_as_predicted_and_far_below_that_of_the_full_range() -> None:
    n, m, epsilon, runs = 1000, 256, 0.5, 12_000
    problem = problem_of(n, concentration=1 / math.sqrt(m), epsilon=epsilon)
    practical, full = plan_practical(problem), plan_laplace(problem)
    noise = float(practical.budget().parts["noise"])
    formula = math.sqrt(2 * (practical.search.lattice.length / (n * noise)) ** 2)
    assert formula <= practical.predicted_error() <= 1.01 * formula
    assert math.isclose(full.predicted_error(), math.sqrt(2) * 2 / (n * epsilon), rel_tol=1e-12)
    rng, source = np.random.default_rng(5), _core.Source(5)
    # From the mean of the users' means, and from the mean of the distribution of their rows.
    errors: list[list[float]] = [[], []]
    totals: list[list[float]] = [[], []]
    for place in range(runs):
        means = (2 * rng.binomial(m, 0.65, (n, 1)) / m - 1).astype(float)
        vectors = GivenVectors(means, np.ones(n, dtype=bool))
        for row, method in enumerate((practical, full)):
            if row == 0 or place % 4 == 0:
                estimate = float(method.mean(run(method.program(vectors), source))[0])
                errors[row].append(estimate - means.mean())
                totals[row].append(estimate - 0.3)
    measured, total = ([math.sqrt(np.mean(np.square(one))) for one in listed] for listed in (errors, totals))
    print(f"by noise {measured[0]:.6f}, formula {formula:.6f}; full range {measured[1]:.6f}")
    print(f"total {total[0]:.6f}, full range {total[1]:.6f}, quotient {total[0] / total[1]:.3f}")
    # Squares of Laplace noise have a variance of 5 of their mean squared: 5% and 10% of the root are 4.9 deviations.
    assert abs(measured[0] / formula - 1) < 0.05
    assert abs(measured[1] / full.predicted_error() - 1) < 0.1
    assert total[0] <= 0.45 * total[1]
    assert not abs(2 * measured[0] / formula - 1) < 0.05


@pytest.mark.parametrize("delta", [F(0), F(1, 100)])
def test_errors_of_several_columns_are_as_predicted(delta: Fraction) -> None:
    n, d, m, runs = 3000, 4, 16, 400
    rng, source = np.random.default_rng(1), _core.Source(1)
    # In the coordinates of the program, in which rotated users are spread evenly.
    means = 0.2 + rng.normal(size=(n, d)) / math.sqrt(m * d)
    vectors = GivenVectors(means, np.ones(n, dtype=bool))
    plans = [
        plan_practical(problem_of(n, d, concentration=1 / math.sqrt(m), delta=delta)),
        plan_laplace(problem_of(n, d)),
        plan_laplace(problem_of(n, d, norm="max")),
    ]
    assert plans[0].noise.gaussian is bool(delta)
    for plan in plans:
        squares = [
            np.sum((plan.mean(run(plan.program(vectors), source)) - means.mean(axis=0)) ** 2) for _ in range(runs)
        ]
        measured = math.sqrt(np.mean(squares))
        print(f"{plan.name}: {measured:.5f}, predicted {plan.predicted_error():.5f}")
        # Means of 1,600 squares of noise deviate by at most 6% of the root, and 6 of them by 36%: rate below 1e-8.
        assert abs(measured / plan.predicted_error() - 1) < 0.36


def test_vectors_are_not_clipped_where_the_mean_is_at_the_end_of_all_bins() -> None:
    n, d, u = 20_000, 64, 1 / 16
    plan = plan_practical(problem_of(n, d, concentration=u, epsilon=4, delta=F(1, 10**6)))
    assert plan.radius is not None
    search = plan.search
    ends = search.middles((search.lattice.n_bins // 2,) * d) + search.lattice.length / 2
    means = ends + np.random.default_rng(3).normal(size=(n, d)) * (u / math.sqrt(d))
    vectors, source = GivenVectors(means, np.ones(n, dtype=bool)), _core.Source(3)
    errors = [plan.mean(run(plan.program(vectors), source)) - means.mean(axis=0) for _ in range(20)]
    measured = math.sqrt(np.mean(np.square(errors)) * d)
    print(f"measured {measured:.6f}, predicted {plan.predicted_error():.6f}")
    # 1,280 squares of noise: 20% of the root is 10 deviations.
    assert abs(measured / plan.predicted_error() - 1) < 0.2


@pytest.mark.parametrize("method", ["practical", "paper", "laplace"])
def test_fits_in_one_and_several_columns(method: str) -> None:
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(4000), 4)
    for d, delta in ((1, 0), (3, "1e-2")):
        rows = np.clip(rng.normal(0.2, 0.1, size=(16000, d)), -1, 1)
        rows[0] = math.nan
        learner = WinsorizedMean(
            epsilon=8,
            delta=delta,
            bounds=(-2, 2),
            m=4,
            user_std=0.1,
            method=method,
            enrolled=tuple(range(4001)),
            public_seed=bytes(32),
        ).fit(rows, groups=people)
        # The paper's noise in several columns has a scale of 0.091. 22 of them, in one of three columns, have a
        # probability below 1e-8. All other noise has a scale of 0.0004 or less.
        close = 2 if method == "paper" and d > 1 else 0.05
        assert np.abs(learner.mean_ - 0.2).max() < close
        assert learner.privacy_.is_private
        assert learner.method_ == method


# --- what is refused or warned about


def test_too_few_users_are_warned_about_from_public_numbers() -> None:
    rows, people = np.zeros((60, 4)), np.arange(60)
    for method, delta in (("practical", 0), ("paper", 0), ("practical", "1e-3")):
        few = WinsorizedMean(epsilon="0.5", delta=delta, m=1, max_norm=1, user_std=0.01, method=method)
        columns = rows[:, :1] if method == "paper" else rows
        with pytest.warns(UserWarning, match=r"60 users are too few .*: \d+ are needed") as caught:
            few.fit(columns, groups=people)
        needed = int(str(caught[0].message).rsplit(":", 1)[1].split()[0])
        # The number is what it takes.
        for n, is_enough in ((needed + needed // 50, True), (needed - needed // 50 - 1, False)):
            warned = few._plan(n, columns.shape[1]).warnings
            assert any("are needed" in warning for warning in warned) is not is_enough
        with pytest.warns(UserWarning, match=f": {needed} are needed"):
            few.fit(columns + 0.7, groups=people)


def test_enough_users_are_not_warned_about() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        WinsorizedMean(epsilon=1, m=1, bounds=(-1, 1), user_std=0.05, method="practical").fit(
            np.zeros((3000, 1)), groups=np.arange(3000)
        )


def test_what_methods_cannot_do_is_refused() -> None:
    for plan, changes, match in [
        (
            plan_paper,
            {"d": 3},
            r"delta must be > 0 for method='paper' with 3 columns; method='practical' takes delta=0",
        ),
        (
            plan_paper,
            {"d": 64, "delta": F(1, 100), "epsilon": 60},
            r"epsilon=60 is too large .* method='practical' has no",
        ),
    ]:
        with pytest.raises(ValueError, match=match):
            plan(problem_of(**changes))
    plan_paper(problem_of(d=3, delta=F(1, 100)))
    for plan in (plan_paper, plan_practical, plan_laplace):
        with pytest.raises(BudgetError, match=r"grid steps .* take a smaller grid_resolution"):
            plan(problem_of(grid_resolution=2**27))


@pytest.mark.parametrize("radius", [1e-250, 1e250])
def test_fits_take_extreme_radii(radius: float) -> None:
    rows = np.full((4000, 1), 0.25)
    for method in ("paper", "practical"):
        learner = WinsorizedMean(epsilon=4, m=1, max_norm=1, user_std=radius, method=method).fit(
            rows, groups=np.arange(4000)
        )
        assert abs(learner.mean_[0] - 0.25) < (0.01 if radius < 1 else 0.1)


def test_plans_take_extreme_numbers() -> None:
    for n, d, epsilon, bound, share in itertools.product(
        (2, 10**6), (1, 5), ("1e-5", "0.01", 1, 400), (1e-6, 1e6), (1e-3, 1.0)
    ):
        for plan in (plan_practical, plan_laplace):
            for delta in (F(0), F(1, 10**9)):
                method = plan(
                    problem_of(n, d, epsilon=F(epsilon), max_norm=bound, concentration=share * bound, delta=delta)
                )
                assert math.isfinite(method.predicted_error())
                if isinstance(method.noise, DiscreteLaplace):  # type: ignore[attr-defined]
                    assert method.noise.scale <= 2**24  # type: ignore[attr-defined]
