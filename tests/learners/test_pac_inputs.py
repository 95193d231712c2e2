"""What the classifiers over finite classes refuse, and how many users they need."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp import LogRatio
from userdp.concepts import Thresholds
from userdp.exceptions import BudgetError
from userdp.learners import AgnosticPACClassifier, RealizablePACClassifier


def test_users_needed() -> None:
    learner = RealizablePACClassifier(epsilon=1, concepts=Thresholds(2**10), m=10, classes=(0, 1))
    needed = learner.users_needed()
    assert needed == int(np.ceil(40 * np.log(1025 * 30) / 1.0))
    # Ten rows of each, of the ten that count at alpha = 0.1; with one row ten times as many, with more no fewer.
    assert RealizablePACClassifier(
        epsilon=1, concepts=Thresholds(2**10), m=1, classes=(0, 1)
    ).users_needed() == pytest.approx(10 * needed, abs=10)
    assert (
        RealizablePACClassifier(epsilon=1, concepts=Thresholds(2**10), m=1000, classes=(0, 1)).users_needed() == needed
    )
    assert (
        RealizablePACClassifier(epsilon=LogRatio(3), concepts=Thresholds(2**10), m=10, classes=(0, 1)).users_needed()
        < needed
    )
    # Permute-and-flip has half of the tail.
    for mechanism, odds in (("exponential", 64 * 30), ("permute-and-flip", 64 * 15), ("auto", 64 * 15)):
        learner = RealizablePACClassifier(epsilon=1, concepts=Thresholds(63), m=10, mechanism=mechanism, classes=(0, 1))
        assert learner.users_needed() == int(np.ceil(40 * np.log(odds)))


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize("epsilon", [1, 20, 47, 87])
def test_a_failure_below_all_weights_is_not_promised(mechanism: str, epsilon: int) -> None:
    """However many users agree, the other hypotheses are drawn at least so often, by the exact distribution."""
    n = 600

    def learner(beta: Any) -> RealizablePACClassifier:
        return RealizablePACClassifier(
            epsilon=epsilon, concepts=Thresholds(3), m=2, mechanism=mechanism, beta=beta, classes=(0, 1)
        )

    # Both rows of everybody are right above 2 only.
    X, y = np.array([[2], [3]] * n), [0, 1] * n
    missed = 1 - learner(0.1).output_distribution(X, y, groups=np.repeat(np.arange(n), 2)).fractions()[2]
    assert 2.0**-66 < missed < 2.0**-28
    for beta in (3 * missed * Fraction(99, 100), Fraction(1, 10**300)):
        with pytest.raises(ValueError, match=r"beta is too small for weights of 64 bits: .* among 4 candidates needs"):
            learner(beta).users_needed()
    # What is promised is kept.
    least = 12 * 2.0 ** -(max(64 - epsilon / (2 * np.log(2)), 32) - 1)
    assert learner(least * 1.001).users_needed() > 0
    assert 3 * missed <= least


X, Y, GROUPS = np.array([[1], [2], [3], [4]]), [0, 1, 1, 0], [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("learner", "error", "message"),
    [
        (
            RealizablePACClassifier(epsilon=0, concepts=Thresholds(3), m=2, classes=(0, 1)),
            ValueError,
            "epsilon must be > 0",
        ),
        (RealizablePACClassifier(epsilon=100, concepts=Thresholds(3), m=2, classes=(0, 1)), ValueError, "epsilon"),
        (
            RealizablePACClassifier(epsilon=1, concepts=[[0, 1]], m=2, classes=(0, 1)),
            TypeError,
            "concepts must be a concept class",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), representation=3, m=2, classes=(0, 1)),  # type: ignore[arg-type]
            TypeError,
            "representation must be",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), representation=Thresholds(4), m=2, classes=(0, 1)),
            ValueError,
            r"over as many points; got \(3, 4\)",
        ),
        (
            RealizablePACClassifier(epsilon=1, concepts=Thresholds(3), m=2, alpha=0, classes=(0, 1)),
            ValueError,
            "alpha must be",
        ),
        (
            RealizablePACClassifier(epsilon=1, concepts=Thresholds(3), m=2, beta=1, classes=(0, 1)),
            ValueError,
            "beta must be",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2, alpha=1, classes=(0, 1)),
            ValueError,
            "alpha must be",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2, method="best", classes=(0, 1)),
            ValueError,
            "method must be",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2, tau=0, classes=(0, 1)),
            ValueError,
            "tau must be at least 1",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2, tau=1, classes=(0, 1)),
            ValueError,
            "tau is for method='pairwise'",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2, tau=0.5, classes=(0, 1)),
            TypeError,
            "tau must be an int",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2**17, classes=(0, 1)),
            BudgetError,
            "m must be at most 65536",
        ),
        (
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=2.0, classes=(0, 1)),
            TypeError,
            "m must be an int",
        ),
        (
            AgnosticPACClassifier(
                epsilon=1, concepts=Thresholds(3), m=2, alpha=1e-9, method="surrogate", classes=(0, 1)
            ),
            ValueError,
            r"alpha must be at least 2\*\*-20",
        ),
    ],
)
def test_refused(learner: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        learner.fit(X, Y, groups=GROUPS)
    with pytest.raises(error, match=message):
        learner.output_distribution(X, Y, groups=GROUPS)


@pytest.mark.parametrize("classes", [(0, "a"), ("a", 1), [0], (0, 1, 2), "ab", 5, {0: 1}, [[0], [1]], (None, 1)])
def test_classes_that_are_no_two_labels_are_refused(classes: Any) -> None:
    with pytest.raises(ValueError, match="classes must be two distinct labels of one type, numbers or texts, or None"):
        RealizablePACClassifier(epsilon=1, concepts=Thresholds(3), m=2, classes=classes).fit(X, Y, groups=GROUPS)


@pytest.mark.parametrize("classes", [("no", "yes"), [False, True], np.array([3, 7]), (-1.5, 2)])
def test_other_classes(classes: Any) -> None:
    learner = RealizablePACClassifier(epsilon=80, concepts=Thresholds(4), m=2, classes=classes)
    learner.fit(X, [classes[int(x > 2)] for x in X[:, 0]], groups=GROUPS)
    assert learner.predict(X).tolist() == [classes[int(x > 2)] for x in X[:, 0]]


@pytest.mark.parametrize("method", ["score", "pairwise", "surrogate"])
@pytest.mark.parametrize(
    "changed", [{"m": 2**31}, {"m": 2**70}, {"alpha": "1e-320"}, {"alpha": Fraction(1, 10**400)}, {"alpha": "1"}]
)
def test_numbers_beyond_what_is_computed_with_are_refused_by_name(method: str, changed: dict[str, Any]) -> None:
    learner = AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), method=method, m=2, classes=(0, 1)).set_params(
        **changed
    )
    with pytest.raises(ValueError, match=f"^{next(iter(changed))} must be"):
        learner.fit(X, Y, groups=GROUPS)


def test_an_alpha_next_to_1() -> None:
    learner = RealizablePACClassifier(
        epsilon=1, concepts=Thresholds(3), m=2, alpha=1 - Fraction(1, 10**30), classes=(0, 1)
    )
    assert learner.fit(X, Y, groups=GROUPS).concept_ in range(4)


def test_too_much_work_is_refused_from_public_numbers() -> None:
    learner = RealizablePACClassifier(
        epsilon=1, concepts=Thresholds(2**23), m=2**12, enrolled=range(2**12), alpha=1e-4, classes=(0, 1)
    )
    with pytest.raises(BudgetError, match=r"8388609 hypotheses on up to 16777216 rows.*ThresholdClassifier"):
        learner.fit(X, Y, groups=GROUPS)


def test_pmfs_that_are_too_long_are_refused() -> None:
    learner = RealizablePACClassifier(epsilon=1, concepts=Thresholds(2**17), m=2, classes=(0, 1))
    with pytest.raises(BudgetError, match="131073 outcomes"):
        learner.output_distribution(X, Y, groups=GROUPS)
