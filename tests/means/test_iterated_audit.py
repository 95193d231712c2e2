"""Exact pmfs of the iterated clipped mean on tiny universes, of the program that `fit` runs; and planted bugs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from oracle.iterated_mean import hockey_stick, hockey_stick_of_weights, renyi
from support.forgotten_plans import forgotten_plans
from userdp import exceptions
from userdp.accounting import zcdp_delta
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.means import WinsorizedMean
from userdp.means import estimator as mean_module
from userdp.means import iterated as iterated_module
from userdp.means import winsorized as winsorized_module
from userdp.means.iterated import GaussianRounds, RoundSchedule
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.optimization.finite import CachedUserVectors
from userdp.report import AuditReport
from userdp.testing import assert_user_private
from userdp.users import MeanVectors

pytestmark = pytest.mark.filterwarnings("ignore::userdp.exceptions.TooFewUsersWarning")

F = Fraction

EPSILON, DELTA = 2, F(1, 10)
LOUD = {"epsilon": 5, "delta": F(3, 10)}
"""So little noise that distributions of two rounds are short."""

TWO_ROUNDS = RoundSchedule((F(3, 10), F(7, 10)), (1.0, 0.5), 1.0, 0.5)
LINE = [-1.0, 0.25, 1.0]
PLANE = [(-1.0, 0.0), (1.0, 0.0), (0.0, 1.0)]


@pytest.fixture(autouse=True)
def _forget_plans() -> Iterator[None]:
    with forgotten_plans():
        yield


@pytest.fixture(autouse=True)
def _remember_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution has thousands of paths, and the same few sums along them."""
    monkeypatch.setattr(mean_module, "MeanVectors", lambda *a, **given: CachedUserVectors(MeanVectors(*a, **given)))


@pytest.fixture
def two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few users would get one round."""
    monkeypatch.setattr(iterated_module, "planned_rounds", lambda *_: TWO_ROUNDS)
    monkeypatch.setattr(iterated_module, "LaplaceRounds", GaussianRounds)


def audited(learner: WinsorizedMean, universe: Sequence[Any], n_users: int = 2, n_examples: int = 1) -> AuditReport:
    columns = len(universe[0]) if isinstance(universe[0], tuple) else 1
    return audit_user_level(
        as_finite_algorithm(learner, n_users=n_users, n_features=columns),
        universe=universe,
        n_users=n_users,
        n_examples=n_examples,
        epsilon=learner.epsilon,
        delta=learner.delta,
    )


def learner(method: str, **more: Any) -> WinsorizedMean:
    given = {"epsilon": EPSILON, "delta": DELTA} | more
    return WinsorizedMean(max_norm=1, m=2, user_std=0.5, method=method, grid_resolution=1, **given)


def shown(name: str, report: Any, promise: float | None = None) -> None:
    proved = "" if promise is None else f"proved {promise:.4g}, "
    print(f"{name}: worst delta {report.worst_delta.upper:.4g}, {proved}claimed {float(report.delta)}")


@pytest.mark.parametrize(("n_users", "n_examples"), [(2, 1), (2, 2), (3, 1)])
def test_gaussian_in_one_column(n_users: int, n_examples: int) -> None:
    made = learner("gaussian")
    report = audited(made, LINE, n_users, n_examples)
    cost = made.privacy_cost(n_users=n_users, n_features=1)
    promise = float(zcdp_delta(cost.rho, EPSILON, distance=cost.distance))
    shown(f"gaussian, {n_users} users of {n_examples}", report, promise)
    assert report.holds
    assert 0.3 * promise < report.worst_delta.upper <= promise <= DELTA


def test_gaussian_in_two_columns() -> None:
    report = audited(learner("gaussian", **LOUD), PLANE)
    shown("gaussian in two columns", report)
    assert report.holds
    assert report.worst_delta.upper > 0.01 * DELTA


def test_two_rounds(two_rounds: None) -> None:
    report = audited(learner("iterated", **LOUD), [-1.0, 1.0])
    shown("two rounds", report)
    assert report.holds
    assert report.worst_delta.upper > 0.01 * DELTA


def test_laplace_rounds_are_pure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iterated_module, "planned_rounds", lambda *_: RoundSchedule((F(1),), (1.0,), 1.0, 0.5))
    made = WinsorizedMean(epsilon=EPSILON, max_norm=1, m=2, user_std=0.5, method="iterated", grid_resolution=1)
    report: Any = assert_user_private(
        as_finite_algorithm(made), universe=LINE, n_users=2, n_examples=2, epsilon=EPSILON
    )
    assert report.epsilon.upper > 0.9 * EPSILON
    print(f"laplace rounds: worst epsilon {report.epsilon.upper:.6g} of {EPSILON}")


@pytest.mark.parametrize("method", ["gaussian", "iterated"])
def test_half_the_noise_fails(method: str, two_rounds: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_quiet(self: GaussianRounds, share: Fraction, reach: int) -> DiscreteGaussian:
        return DiscreteGaussian(rho=self.rho * share, sensitivity=reach)  # and not 2 reach

    monkeypatch.setattr(GaussianRounds, "mechanism", too_quiet)
    report = audited(learner(method), [-1.0, 1.0])
    shown(f"half the noise, {method}", report)
    assert not report.holds


@pytest.mark.parametrize("order", [2, 3, 8])
def test_pmfs_are_concentrated(order: int) -> None:
    made = learner("gaussian")
    rho = float(made.privacy_cost(n_users=2, n_features=1).rho)
    pmf = {
        people: made.output_distribution(np.array(people)[:, None], groups=[0, 1])
        for people in ((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (0.25, 1.0))
    }
    worst = 0.0
    for p, q in permutations(pmf, 2):
        if sum(a != b for a, b in zip(p, q, strict=True)) > 1:
            continue  # no neighbors
        pairs = [(a, b) for a, b in zip(pmf[p].fractions(), pmf[q].fractions(), strict=True) if a and b]
        assert 1 - sum(a for a, _ in pairs) < F(1, 2**70)
        worst = max(worst, renyi([a for a, _ in pairs], [b for _, b in pairs], order))
    print(f"order {order}: {worst:.6g} of {order * rho:.6g}")
    assert 0.9 * order * rho < worst <= order * rho * (1 + 1e-12)


def test_reference_divergences() -> None:
    p, q = [F(1, 2), F(1, 2)], [F(1, 4), F(3, 4)]
    assert hockey_stick(p, q, 0) == pytest.approx(0.25)
    assert hockey_stick_of_weights({"a": 5, "b": 5}, {"b": 3, "a": 1}, 0) == pytest.approx(0.25)
    assert hockey_stick_of_weights({"a": 1, "b": 1}, {"a": 1, "c": 3}, 0.5) == hockey_stick(
        [F(1, 2), F(1, 2), F(0)], [F(1, 4), F(0), F(3, 4)], 0.5
    )
    assert renyi(p, q, 2) == pytest.approx(math.log(1 + F(1, 3)))


def test_pmfs_with_default_steps_are_refused() -> None:
    made = WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=2, user_std=0.5, method="iterated")
    with pytest.raises(exceptions.BudgetError):
        made.output_distribution(np.array([[1.0], [0.0]]), groups=[0, 1])


Distribution = dict[Hashable, Fraction]
Person = tuple[tuple[float, ...], ...]
"""The rows of a user; none for somebody who is enrolled only."""

HOT = 60
"""An epsilon at which two rounds with Laplace noise have distributions that are short."""


class _NextDraw(Exception):
    def __init__(self, pmf: Any) -> None:
        self.distribution = pmf


def followed(program: Callable[[Any], Hashable]) -> Distribution:
    """The distribution of the outcome: the program is run again for every draw that is possible."""
    distribution: Distribution = defaultdict(Fraction)
    paths: list[tuple[tuple[Any, ...], Fraction]] = [((), F(1))]
    while paths:
        path, mass = paths.pop()
        drawn = iter(path)

        def draw(mechanism: Any, /, *arguments: Any, drawn: Iterator[Any] = drawn) -> Any:
            for outcome in drawn:
                return outcome
            raise _NextDraw(mechanism.pmf(*arguments))

        try:
            distribution[program(draw)] += mass
        except _NextDraw as stopped:
            pmf = stopped.distribution
            paths += [
                ((*path, outcome), mass * weight)
                for outcome, weight in zip(pmf.outputs, pmf.fractions(), strict=True)
                if weight
            ]
    return dict(distribution)


def pmf_of_people(learner: WinsorizedMean, people: tuple[Person, ...], columns: int) -> Distribution:
    rows = [row for person in people for row in person]
    groups = np.array([user for user, person in enumerate(people) for _ in person], dtype=np.int64)
    learner.enrolled = range(len(people))
    learner._check_parameters()
    table, _ = learner._read(np.array(rows, dtype=np.float64).reshape(-1, columns), None, groups)
    return followed(learner._plan(table.n_users, table.n_columns).program(table))


def worst_loss(learner: WinsorizedMean, persons: list[Person], columns: int) -> float:
    """The largest ln P[x] / P'[x] over outcomes x and neighbors among two users; infinite for other supports."""
    pmfs = {people: pmf_of_people(learner, people, columns) for people in product(persons, repeat=2)}
    assert all(sum(pmf.values()) == 1 for pmf in pmfs.values())
    worst = 0.0
    for (a, b), other in product(pmfs, persons):
        p, q = pmfs[a, b], pmfs[other, b]
        if p.keys() != q.keys():
            return math.inf
        worst = max(worst, max(math.log(mass / q[outcome]) for outcome, mass in p.items()))
    return worst


PERSONS_ON_A_LINE: list[Person] = [(), ((-9.0,), (math.nan,)), ((1.5,),)]


@pytest.fixture
def hot(monkeypatch: pytest.MonkeyPatch) -> WinsorizedMean:
    """Two rounds around a center that is not 0."""
    plan = RoundSchedule((F(1, 2), F(1, 2)), (1.0, 0.5), 1.0, 0.5)
    monkeypatch.setattr(iterated_module, "planned_rounds", lambda *_: plan)
    return WinsorizedMean(epsilon=HOT, bounds=(-0.5, 1.5), m=2, user_std=0.5, method="iterated", grid_resolution=1)


def test_two_rounds_around_a_center(hot: WinsorizedMean) -> None:
    worst = worst_loss(hot, PERSONS_ON_A_LINE, 1)
    print(f"two rounds with Laplace noise: worst loss {worst:.6g} of {HOT}")
    assert 0.5 * HOT < worst <= HOT


def test_a_round_that_spends_too_much_shows(hot: WinsorizedMean, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = iterated_module.LaplaceRounds.mechanism

    def twice_the_share(self: Any, share: Fraction, reach: int) -> Any:
        return mechanism(self, 2 * share, reach)

    monkeypatch.setattr(iterated_module.LaplaceRounds, "mechanism", twice_the_share)
    assert worst_loss(hot, PERSONS_ON_A_LINE[1:], 1) > HOT


AROUND_A_CENTER: dict[str, Any] = {
    "l2": {"max_norm": 1, "center": (1, -2)},
    "max": {"bounds": ((0, -3), (2, -1))},
    "units": {"bounds": ((0, -2.5), (2, -1.5))},
}
IN_THE_PLANE: list[Person] = [(), ((9.0, -9.0), (math.nan, -math.inf)), ((1.0, -2.0),), ((0.0, -1.0), (5.0, -1.0))]


@pytest.mark.parametrize(
    ("method", "norm", "steps", "least"),
    [("practical", "l2", 2, 0.1), ("laplace", "l2", 4, 2), ("laplace", "max", 4, 2), ("laplace", "units", 4, 2)],
)
def test_two_columns_around_a_center(method: str, norm: str, steps: int, least: float) -> None:
    learner = WinsorizedMean(
        epsilon=4,
        m=2,
        method=method,
        grid_resolution=steps,
        user_std=0.5,
        public_seed=bytes(32),
        **AROUND_A_CENTER[norm],
    )
    worst = worst_loss(learner, IN_THE_PLANE, 2)
    print(f"{method} in two columns, norm {norm}: worst loss {worst:.6g} of 4")
    assert least <= worst <= 4


def test_half_the_sensitivity_shows_in_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = winsorized_module.laplace_noise

    def too_quiet(epsilon: Any, sensitivity: int, bounds: tuple[int, int]) -> DiscreteLaplace:
        return whole(2 * epsilon, sensitivity, bounds)

    monkeypatch.setattr(winsorized_module, "laplace_noise", too_quiet)
    learner = WinsorizedMean(epsilon=4, bounds=((0, -3), (2, -1)), m=2, method="laplace", grid_resolution=1)
    assert worst_loss(learner, IN_THE_PLANE, 2) > 4
