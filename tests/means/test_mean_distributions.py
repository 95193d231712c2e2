"""Pmfs of means by following every draw, with what other audits leave out: centers, cubes, all radii, nobody's rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from support.forgotten_plans import forgotten_plans
from userdp.means import WinsorizedMean
from userdp.means import estimator as mean_module
from userdp.means import iterated as iterated_module
from userdp.means.full_range import FullRangeLaplace
from userdp.means.private_radius import RadiusSearch
from userdp.means.rounds import RoundPlan
from userdp.optimization.gradients import RememberedVectors
from userdp.users.vectors import MeanVectors

F = Fraction

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


@pytest.fixture(autouse=True)
def _forget_plans() -> Iterator[None]:
    with forgotten_plans():
        yield


@pytest.fixture(autouse=True)
def _remember_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution has thousands of paths, and the same few sums along them."""
    monkeypatch.setattr(mean_module, "MeanVectors", lambda *a, **given: RememberedVectors(MeanVectors(*a, **given)))


@pytest.fixture
def all_radii(monkeypatch: pytest.MonkeyPatch) -> WinsorizedMean:
    """Two rounds around a center that is not 0, and a search among all radii."""
    plan = RoundPlan((F(1, 2), F(1, 2)), (1.0, 0.5), 1.0, 0.5)
    monkeypatch.setattr(iterated_module, "planned_rounds", lambda *_: plan)
    monkeypatch.setattr(iterated_module, "SEARCH_SHARE", F(1, 10))
    return WinsorizedMean(
        epsilon=HOT, bound=1, center=0.5, m=2, method="iterated", private_radius=True, steps=1, norm="max"
    )


def test_all_radii_of_a_search(all_radii: WinsorizedMean) -> None:
    assert RadiusSearch(F(1)).n_candidates == 15
    worst = worst_loss(all_radii, PERSONS_ON_A_LINE, 1)
    print(f"two rounds and a search among 15 radii: worst loss {worst:.6g} of {HOT}")
    assert 0.5 * HOT < worst <= HOT


def test_a_round_that_spends_too_much_shows(all_radii: WinsorizedMean, monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = iterated_module.LaplaceRounds.mechanism

    def twice_the_share(self: Any, share: Fraction, reach: int) -> Any:
        return mechanism(self, 2 * share, reach)

    monkeypatch.setattr(iterated_module.LaplaceRounds, "mechanism", twice_the_share)
    assert worst_loss(all_radii, PERSONS_ON_A_LINE[1:], 1) > HOT


IN_THE_PLANE: list[Person] = [(), ((9.0, -9.0), (math.nan, -math.inf)), ((1.0, -2.0),), ((0.0, -1.0), (5.0, -1.0))]


@pytest.mark.parametrize(
    ("method", "norm", "steps", "least"),
    [("practical", "l2", 2, 0.1), ("laplace", "l2", 4, 2), ("laplace", "max", 4, 2)],
)
def test_two_columns_around_a_center(method: str, norm: str, steps: int, least: float) -> None:
    learner = WinsorizedMean(
        epsilon=4,
        bound=1,
        center=(1, -2),
        m=2,
        method=method,
        steps=steps,
        norm=norm,
        radius=0.5,
        public_seed=bytes(32),
    )
    worst = worst_loss(learner, IN_THE_PLANE, 2)
    print(f"{method} in two columns, norm {norm}: worst loss {worst:.6g} of 4")
    assert least <= worst <= 4


def test_half_the_sensitivity_shows_in_two_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FullRangeLaplace.__init__

    def too_quiet(self: FullRangeLaplace, problem: Any, steps: int) -> None:
        whole(self, problem, steps)
        self.noise = type(self.noise)(
            epsilon=2 * problem.epsilon, sensitivity=self.noise._sensitivity, bounds=self.noise.bounds
        )

    monkeypatch.setattr(FullRangeLaplace, "__init__", too_quiet)
    learner = WinsorizedMean(epsilon=4, bound=1, center=(1, -2), m=2, method="laplace", steps=1, norm="max", radius=1)
    assert worst_loss(learner, IN_THE_PLANE, 2) > 4
