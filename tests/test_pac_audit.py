"""Exact audits of the classifiers over finite classes: all neighbouring datasets of tiny universes.

Each audit is repeated with a planted mistake that spends too much, and must then fail.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
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
from userdp.learners import AgnosticPACClassifier, RealizablePACClassifier
from userdp.mechanisms import ExponentialMechanism

# Twelve functions on twelve points, but examples at two of them only: one person can then move a hypothesis one way
# and all others the other way, which spends most of epsilon.
WIDE = PointFunctions(12)
AT_TWO_POINTS = [(1, 0), (1, 1), (2, 0), (2, 1)]


class Doubled:
    """Spends every part of the budget twice: half the noise."""

    def _budget(self) -> Any:
        return {part: 2 * spent for part, spent in super()._budget().items()}  # type: ignore[misc]


class DoubledRealizable(Doubled, RealizablePACClassifier):
    pass


class DoubledAgnostic(Doubled, AgnosticPACClassifier):
    pass


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


# A learner, its universe and number of users, and the same with half the noise.
LEARNERS: dict[str, tuple[Any, Any, Any, int]] = {
    "realizable": (
        RealizablePACClassifier(epsilon=1, concepts=WIDE, m=2, alpha=0.5),
        DoubledRealizable(epsilon=1, concepts=WIDE, m=2, alpha=0.5),
        AT_TWO_POINTS,
        2,
    ),
    "realizable, one row counts": (
        RealizablePACClassifier(epsilon=1, concepts=WIDE, m=2, alpha=0.9),
        DoubledRealizable(epsilon=1, concepts=WIDE, m=2, alpha=0.9),
        AT_TWO_POINTS,
        2,
    ),
    "score": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2),
        DoubledAgnostic(epsilon=1, concepts=WIDE, m=2),
        AT_TWO_POINTS,
        2,
    ),
    "score with a private t": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=5),
        DoubledAgnostic(epsilon=1, concepts=WIDE, m=5),
        [(1, 0), (1, 1)],
        2,
    ),
    "pairwise, clipped": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2, method="pairwise", tau=1),
        DoubledAgnostic(epsilon=1, concepts=WIDE, m=2, method="pairwise", tau=1),
        AT_TWO_POINTS,
        2,
    ),
    "pairwise": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2, method="pairwise"),
        DoubledAgnostic(epsilon=1, concepts=WIDE, m=2, method="pairwise"),
        AT_TWO_POINTS,
        2,
    ),
    "surrogate, one row": (
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=1, method="surrogate"),
        DoubledAgnostic(epsilon=1, concepts=WIDE, m=1, method="surrogate"),
        AT_TWO_POINTS,
        2,
    ),
    "surrogate": (
        AgnosticPACClassifier(epsilon=1, concepts=PointFunctions(60), m=2, method="surrogate", alpha=0.9),
        DoubledAgnostic(epsilon=1, concepts=PointFunctions(60), m=2, method="surrogate", alpha=0.9),
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
        ),
        DoubledAgnostic(
            epsilon=1,
            concepts=FiniteClass([[0, 1, 1], [1, 0, 0]]),
            representation=FiniteClass([[0, 0, 1], [0, 0, 0]]),
            m=1,
            method="surrogate",
        ),
        list(itertools.product(range(3), range(2))),
        4,
    ),
}

each = pytest.mark.parametrize(("learner", "doubled", "universe", "users"), list(LEARNERS.values()), ids=list(LEARNERS))


@each
def test_the_stated_epsilon_holds_exactly(learner: Any, doubled: Any, universe: Any, users: int) -> None:
    report = audited(learner, universe, users=users)
    assert report.holds
    assert report.worst_delta.upper == 0
    assert report.epsilon.lower > 0.4


@each
def test_half_the_noise_is_caught(learner: Any, doubled: Any, universe: Any, users: int) -> None:
    assert type(learner) in type(doubled).__mro__
    report = audited(doubled, universe, users=users)
    assert not report.holds
    assert report.worst_delta.lower > 0


# --- planted mistakes


class OnceTau(AgnosticPACClassifier):
    """Takes tau for the sensitivity of clipped sums, where replacing a user moves them by up to 2 tau."""

    def _selection(self, sensitivity: int) -> ExponentialMechanism:
        return super()._selection(sensitivity // 2)


class OnceSurrogate(AgnosticPACClassifier):
    """Takes 1 for the sensitivity of the surrogate score of hypotheses outside of the class."""

    def _selection(self, sensitivity: int) -> ExponentialMechanism:
        return super()._selection(1)


@pytest.mark.parametrize("tau", [1, 2])
def test_half_of_the_sensitivity_of_clipped_sums_is_caught(tau: int) -> None:
    mistaken = OnceTau(epsilon=1, concepts=WIDE, m=2, method="pairwise", tau=tau)
    assert not audited(mistaken).holds


def test_the_sensitivity_of_proper_hypotheses_for_improper_ones_is_caught() -> None:
    learner, _, universe, users = LEARNERS["surrogate, improper"]
    assert not audited(OnceSurrogate(**learner.get_params(deep=False)), universe, users=users).holds


class OneForEachLabeling(RealizablePACClassifier):
    """Weighs one hypothesis for each labeling of the points that occur in the data, and none of the others."""

    def _program(self, data: Any) -> Any:
        errors = ClassErrors(self.hypotheses, data)
        labelings = self.hypotheses.predict(errors.points).T
        _, first = np.unique(labelings, axis=0, return_index=True)
        chosen = sorted(first.tolist())
        scores = errors.above(0)[chosen]
        return lambda draw: chosen[draw(ExponentialMechanism(epsilon=1, sensitivity=1), scores)]


def test_weighing_only_distinct_labelings_is_caught() -> None:
    """An outcome is then possible on one dataset and impossible on its neighbour."""
    learner = RealizablePACClassifier(epsilon=1, concepts=PointFunctions(2), m=1)
    universe = [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert audited(learner, universe).holds
    report = audited(OneForEachLabeling(epsilon=1, concepts=PointFunctions(2), m=1), universe)
    assert not report.holds
    assert report.epsilon.lower == float("inf")


# --- users with few rows or none


def users_of(universe: Any, m: int) -> list[Any]:
    """All users, up to the order of their rows: with 0, ..., m of them."""
    return [user for rows in range(m + 1) for user in itertools.combinations_with_replacement(universe, rows)]


@pytest.mark.parametrize("name", ["realizable", "score", "pairwise", "pairwise, clipped"])
def test_short_users_are_protected(name: str) -> None:
    """All pairs of neighbours among two users with 0, 1 or 2 rows, at e**epsilon = 3, in fractions."""
    learner, _, _, _ = LEARNERS[name]

    def worst_ratio(estimator: Any) -> Fraction:
        algorithm = as_finite_algorithm(estimator)
        users = users_of(AT_TWO_POINTS[:2], 2)
        laws: dict[Hashable, list[Fraction]] = {}
        for first, second in itertools.product(users, repeat=2):
            if first or second:
                laws[first, second] = algorithm.pmf((first, second)).fractions()
        return max(
            p / q
            for (one, kept), law in laws.items()
            for (other, also), neighbour in laws.items()
            if kept == also and one != other
            for p, q in zip(law, neighbour, strict=True)
        )

    epsilon = LogRatio(3)
    stated = worst_ratio(type(learner)(**{**learner.get_params(deep=False), "epsilon": epsilon}))
    print(f"worst ratio {float(stated):.4f} of 3")
    assert 1 < stated <= 3
    spends_twice = LogRatio(9)
    assert worst_ratio(type(learner)(**{**learner.get_params(deep=False), "epsilon": spends_twice})) > 3
