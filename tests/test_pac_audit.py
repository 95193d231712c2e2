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
from userdp.learners import (
    AgnosticPACClassifier,
    FiniteClass,
    PointFunctions,
    RealizablePACClassifier,
    as_finite_algorithm,
)
from userdp.learners._class_errors import ClassErrors
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
        AgnosticPACClassifier(epsilon=1, concepts=WIDE, m=2, method="surrogate", alpha=0.9),
        DoubledAgnostic(epsilon=1, concepts=WIDE, m=2, method="surrogate", alpha=0.9),
        AT_TWO_POINTS,
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

each = pytest.mark.parametrize(
    ("learner", "doubled", "universe", "users"), list(LEARNERS.values()), ids=list(LEARNERS)
)


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
