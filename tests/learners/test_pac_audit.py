"""Exact audits of the classifiers over finite classes: all neighboring datasets of tiny universes.

Each audit is repeated with a planted mistake that spends too much, and must then fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp import LogRatio
from userdp.audit import audit_user_level
from userdp.concepts import FiniteClass, PointFunctions
from userdp.concepts.errors import ClassErrors
from userdp.estimators import as_finite_algorithm
from userdp.estimators import selection as selection_module
from userdp.estimators.plan import ReleasePlan
from userdp.learners import AgnosticPACClassifier, RealizablePACClassifier
from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.users import UserTable

# Twelve functions on twelve points, but examples at two of them only: one user can then move a hypothesis one way
# and all others the other way, which spends most of epsilon.
WIDE = PointFunctions(12)
AT_TWO_POINTS = [(1, 0), (1, 1), (2, 0), (2, 1)]


MECHANISMS = ("exponential", "permute-and-flip")


def at(learner: Any, epsilon: Any, mechanism: str = "auto") -> Any:
    """The same learner at another epsilon; at twice what is audited, every part is spent twice."""
    return type(learner)(**{**learner.get_params(deep=False), "epsilon": epsilon, "mechanism": mechanism})


def audited(learner: Any, universe: Any = AT_TWO_POINTS, *, users: int = 2, epsilon: Any = 1) -> Any:
    report = audit_user_level(
        as_finite_algorithm(learner),
        universe=universe,
        n_users=users,
        n_examples=learner.m,
        epsilon=epsilon,
        delta=0,
    )
    print(f"worst delta {report.worst_delta.upper:.3g} at epsilon {epsilon}; loss {report.epsilon.upper:.4f}")
    return report


# A learner, its universe and number of users.
LEARNERS: dict[str, tuple[Any, Any, int]] = {
    "realizable": (
        RealizablePACClassifier(epsilon=1, concepts=WIDE, m=2, alpha=0.5, classes=(0, 1)),
        AT_TWO_POINTS,
        2,
    ),
    "realizable, one row counts": (
        RealizablePACClassifier(epsilon=1, concepts=WIDE, m=2, alpha=0.9, classes=(0, 1)),
        AT_TWO_POINTS,
        2,
    ),
    "score": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2, classes=(0, 1)),
        AT_TWO_POINTS,
        2,
    ),
    "score with a private t": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=5, classes=(0, 1)),
        [(1, 0), (1, 1)],
        2,
    ),
    "pairwise, clipped": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2, method="pairwise", tau=1, classes=(0, 1)),
        AT_TWO_POINTS,
        2,
    ),
    "pairwise": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2, method="pairwise", classes=(0, 1)),
        AT_TWO_POINTS,
        2,
    ),
    "surrogate, one row": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=1, method="surrogate", classes=(0, 1)),
        AT_TWO_POINTS,
        2,
    ),
    "surrogate": (
        AgnosticPACClassifier(
            epsilon=1, concepts=PointFunctions(60), m=2, method="surrogate", alpha=0.9, classes=(0, 1)
        ),
        [(1, 0), (1, 1)],
        2,
    ),
    "surrogate, improper": (
        AgnosticPACClassifier(
            epsilon=1,
            concepts=FiniteClass([[0, 1, 1], [1, 0, 0]]),
            representation=FiniteClass([[0, 0, 1], [0, 0, 0]]),
            m=1,
            method="surrogate",
            classes=(0, 1),
        ),
        list(itertools.product(range(3), range(2))),
        4,
    ),
}

each = pytest.mark.parametrize(("learner", "universe", "users"), list(LEARNERS.values()), ids=list(LEARNERS))


@each
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_stated_epsilon_holds_exactly(learner: Any, universe: Any, users: int, mechanism: str) -> None:
    report = audited(at(learner, 1, mechanism), universe, users=users)
    assert report.holds
    assert report.worst_delta.upper == 0
    assert report.epsilon.lower > 0.4


@each
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_half_the_noise_is_caught(learner: Any, universe: Any, users: int, mechanism: str) -> None:
    report = audited(at(learner, 2, mechanism), universe, users=users)
    assert not report.holds
    assert report.worst_delta.lower > 0


# --- planted mistakes


@pytest.fixture
def half_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (ExponentialMechanism, PermuteAndFlip):

        def mistaken(*, epsilon: Any, sensitivity: int, kind: Any = kind) -> Any:
            assert sensitivity % 2 == 0
            return kind(epsilon=epsilon, sensitivity=sensitivity // 2)

        monkeypatch.setattr(selection_module, kind.__name__, mistaken)


@pytest.mark.parametrize("tau", [1, 2, None])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_half_of_the_sensitivity_of_sums_is_caught(tau: int | None, mechanism: str, half_the_sensitivity: None) -> None:
    """tau, where replacing a user moves the sums by up to 2 tau; and 1, where it moves totals by up to m = 2."""
    learner = AgnosticPACClassifier(
        epsilon=1, concepts=WIDE, m=2, method="pairwise", tau=tau, mechanism=mechanism, classes=(0, 1)
    )
    assert not audited(learner).holds


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_sensitivity_of_proper_hypotheses_for_improper_ones_is_caught(
    mechanism: str, half_the_sensitivity: None
) -> None:
    """1 for the surrogate score of hypotheses outside of the class, where it is 2."""
    learner, universe, users = LEARNERS["surrogate, improper"]
    assert not audited(at(learner, 1, mechanism), universe, users=users).holds


class OneForEachLabeling(RealizablePACClassifier):
    """Weighs one hypothesis for each labeling of the points that occur in the data, and none of the others."""

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        def program(table: UserTable) -> AdaptiveMechanism:
            errors = ClassErrors(self.hypotheses, table)
            labelings = self.hypotheses.predict(errors.points).T
            _, first = np.unique(labelings, axis=0, return_index=True)
            chosen = sorted(first.tolist())
            scores = errors.above(0)[chosen]
            return lambda draw: chosen[draw(ExponentialMechanism(epsilon=1, sensitivity=1), scores)]

        return replace(super()._plan(n_users, n_features), program=program)


def test_weighing_only_distinct_labelings_is_caught() -> None:
    """An outcome is then possible on one dataset and impossible on its neighbor."""
    learner = RealizablePACClassifier(epsilon=1, concepts=PointFunctions(2), m=1, classes=(0, 1))
    universe = [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert audited(learner, universe).holds
    report = audited(OneForEachLabeling(epsilon=1, concepts=PointFunctions(2), m=1, classes=(0, 1)), universe)
    assert not report.holds
    assert report.epsilon.lower == float("inf")


# --- users with few rows or none


def users_of(universe: Any, m: int) -> list[Any]:
    """All users, up to the order of their rows: with 0, ..., m of them."""
    return [user for rows in range(m + 1) for user in itertools.combinations_with_replacement(universe, rows)]


@pytest.mark.parametrize("name", ["realizable", "score", "pairwise", "pairwise, clipped"])
def test_short_users_are_protected(name: str) -> None:
    """All pairs of neighbors among two users with 0, 1 or 2 rows, at e**epsilon = 3, in fractions."""
    learner, _, _ = LEARNERS[name]

    def worst_ratio(estimator: Any) -> Fraction:
        algorithm = as_finite_algorithm(estimator)
        users = users_of(AT_TWO_POINTS[:2], 2)
        pmfs: dict[Hashable, list[Fraction]] = {}
        for first, second in itertools.product(users, repeat=2):
            if first or second:
                pmfs[first, second] = algorithm.pmf((first, second)).fractions()
        return max(
            p / q
            for (one, kept), pmf in pmfs.items()
            for (other, also), neighbor in pmfs.items()
            if kept == also and one != other
            for p, q in zip(pmf, neighbor, strict=True)
        )

    epsilon = LogRatio(3)
    stated = worst_ratio(at(learner, epsilon))
    print(f"worst ratio {float(stated):.4f} of 3")
    assert 1 < stated <= 3
    spends_twice = LogRatio(9)
    assert worst_ratio(at(learner, spends_twice)) > 3
