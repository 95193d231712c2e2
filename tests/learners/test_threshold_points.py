"""ThresholdClassifier with points low, low + step, ..., high: what it reads, releases, predicts and costs."""

from __future__ import annotations

import math
from fractions import Fraction as F
from itertools import product
from typing import Any

import numpy as np
import pytest

from userdp.audit import audit_user_level
from userdp.concepts import Thresholds
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import BudgetError
from userdp.learners import (
    AgnosticPACClassifier,
    CorrelatedSamplingClassifier,
    RealizablePACClassifier,
    ThresholdClassifier,
)
from userdp.report import AuditReport

HALVES = (0.0, 1.0, 0.5)
USERS = np.repeat(np.arange(6), 2)
PLACES = np.random.default_rng(3).integers(0, 11, 12)
LABELS = (PLACES > 4).astype(int)


def audited(learner: ThresholdClassifier, n_users: int, m: int, epsilon: Any) -> AuditReport:
    # Numbers between points and outside, and none, beside the points.
    numbers = (0.0, 0.4, 1.0, math.inf) if n_users == 3 else (0.0, 1.0)
    return audit_user_level(
        as_finite_algorithm(learner),
        universe=list(product(numbers, (0, 1))),
        n_users=n_users,
        n_examples=m,
        epsilon=epsilon,
        delta=0,
    )


@pytest.mark.parametrize(("method", "n_users", "m"), [("score", 3, 1), ("score", 2, 2), ("median", 2, 1)])
def test_audited(method: str, n_users: int, m: int) -> None:
    def made(epsilon: int) -> ThresholdClassifier:
        points = HALVES if method == "score" else (0.0, 0.5, 0.5)
        return ThresholdClassifier(epsilon=epsilon, points=points, m=m, method=method, alpha=0.9, classes=(0, 1))

    report = audited(made(1), n_users, m, 1)
    print(f"exact epsilon {report.epsilon}, {report.pairs} pairs")
    assert report.holds
    assert report.worst_delta.upper == 0
    # With half the noise more is lost than that; where all is one draw, more than was promised.
    assert not audited(made(2), n_users, m, report.epsilon.upper).holds
    if method == "score":
        assert not audited(made(2), n_users, m, 1).holds


@pytest.mark.parametrize(
    ("method", "decreasing", "noise"),
    [("score", False, 0.0), ("score", True, 0.004), ("score", False, -0.02), ("median", True, 0.004)],
)
def test_a_grid_is_the_same_as_its_numbers(method: str, decreasing: bool, noise: float) -> None:
    """The places of points, from 1, as whole numbers have one distribution with the points themselves."""
    m, last = (2, 10) if method == "score" else (1, 1)
    given: dict[str, Any] = {"epsilon": 1, "m": m, "method": method, "alpha": 0.9, "decreasing": decreasing}
    whole = ThresholdClassifier(domain_size=last + 1, **given, classes=(0, 1))
    grid = ThresholdClassifier(points=(2, 2 + F(last, 10), 0.1), **given, classes=(0, 1))
    places = PLACES[:, None] % (last + 1)
    wanted = whole.output_distribution(places + 1, LABELS, groups=USERS)
    found = grid.output_distribution(2 + places * 0.1 + noise, LABELS, groups=USERS)
    assert found.weights == wanted.weights
    assert found.outputs == tuple((2 * place + 39) / 20 for place in range(last + 2))


@pytest.mark.parametrize("decreasing", [False, True])
def test_predictions_are_the_threshold(decreasing: bool) -> None:
    """Predicting is x > threshold_ for every number within the points' range, however near to a threshold."""
    learner = ThresholdClassifier(epsilon=1, points=(0, 2, 0.1), m=2, classes=("no", "yes"), decreasing=decreasing)
    learner.fit(PLACES[:, None] / 5, np.array(["no", "yes"])[LABELS], groups=USERS)
    ends = [(2 * place - 1) / 20 for place in range(22)]
    inside = np.clip(np.concatenate([np.linspace(0, 2, 1001), ends]), 0, 2)
    numbers = np.concatenate([inside, np.nextafter(inside, 5), np.nextafter(inside, -5)])
    for threshold in ends:
        learner.threshold_ = threshold
        above = (numbers > threshold) != decreasing
        assert learner.predict(numbers[:, None]).tolist() == np.where(above, "yes", "no").tolist()
    # Beyond the ends as at the ends: the first threshold is below all, and the last above all.
    beyond = [[-9.0], [9.0], [math.inf], [math.nan]]
    second = "no" if decreasing else "yes"
    learner.threshold_ = ends[0]
    assert set(learner.predict(beyond)) == {second}
    learner.threshold_ = ends[-1]
    assert second not in learner.predict(beyond)


def test_a_good_threshold_is_found_in_the_units_of_the_data() -> None:
    rng, users = np.random.default_rng(5), np.repeat(np.arange(1000), 4)
    wages = rng.normal(2.5, 1.0, 4000)
    learner = ThresholdClassifier(epsilon=4, points=(0, 6, 0.1), m=4, classes=(0, 1)).fit(
        wages[:, None], wages > 2.75, groups=users
    )
    assert 2.4 <= learner.threshold_ <= 3.1
    again = ThresholdClassifier.from_json(learner.to_json())
    assert again.threshold_ == learner.threshold_
    assert again.predict(wages[:, None]).tolist() == learner.predict(wages[:, None]).tolist()


def test_values_from_0_are_told_apart() -> None:
    X, y = np.repeat([[0], [1]], 300, axis=0), np.repeat([0, 1], 300)
    learner = ThresholdClassifier(epsilon=4, points=(0, 9, 1), m=1, classes=(0, 1)).fit(X, y, groups=np.arange(600))
    assert learner.threshold_ == 0.5
    # As whole numbers from 1 the two are one point.
    pmf = ThresholdClassifier(epsilon=4, domain_size=10, m=1, classes=(0, 1)).output_distribution(
        X, y, groups=np.arange(600)
    )
    assert pmf.probabilities == pytest.approx([1 / 11] * 11)


def test_values_decide_nothing() -> None:
    learner = ThresholdClassifier(epsilon=1, points=HALVES, m=2, classes=(0, 1))
    odd = np.array([math.nan, math.inf, -math.inf, 1e300, 0.2, 0.8])[:, None]
    clean = np.array([0, 1, 0, 1, 0, 1])[:, None]
    groups = [0, 0, 1, 1, 2, 2]
    pmf = learner.output_distribution(odd, [0, 1, 1, 1, 0, 0], groups=groups)
    assert pmf == learner.output_distribution(clean, [0, 1, 1, 1, 0, 0], groups=groups)
    objects = [["no"], [1e9], [None], ["7"], [0.2], [0.8]]
    assert pmf == learner.output_distribution(objects, [0, 1, 1, 1, 0, 0], groups=groups)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"^domain_size or points, the points 1, .* must be given"),
        ({"domain_size": 3, "points": HALVES}, r"only one of domain_size .* and points"),
    ],
)
def test_one_of_the_two_is_needed(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ThresholdClassifier(epsilon=1, m=1, **given, classes=(0, 1)).fit([[1], [2]], [0, 1], groups=[0, 1])


def test_grids_that_are_too_large_to_list_are_drawn_from_all_the_same() -> None:
    learner = ThresholdClassifier(epsilon=1, points=(0, 1_000_000, 0.001), m=1, classes=(0, 1))
    assert 0 <= learner.fit([[1.0], [2.0]], [0, 1], groups=[0, 1]).threshold_ + 0.001 <= 1_000_001
    with pytest.raises(BudgetError, match="fewer points"):
        learner.output_distribution([[1.0], [2.0]], [0, 1], groups=[0, 1])


@pytest.mark.parametrize(
    "learner",
    [
        RealizablePACClassifier(epsilon=1, concepts=Thresholds(3), m=1, classes=(0, 1)),
        AgnosticPACClassifier(epsilon=1, concepts=Thresholds(3), m=1, classes=(0, 1)),
        CorrelatedSamplingClassifier(epsilon=1, delta=1e-3, concepts=Thresholds(3), m=1, classes=(0, 1)),
        ThresholdClassifier(epsilon=1, domain_size=3, m=1, classes=(0, 1)),
    ],
    ids=lambda learner: type(learner).__name__,
)
@pytest.mark.parametrize("classes", [(1, 0), (True, False), (2.5, -1)])
def test_falling_classes_would_turn_hypotheses_around(learner: Any, classes: Any) -> None:
    with pytest.raises(ValueError, match=r"smaller label first.*pass classes="):
        learner.set_params(classes=classes).fit([[1], [2]], [0, 1], groups=[0, 1])
    learner.set_params(classes=("yes", "no")).fit([[1], [2]], ["yes", "no"], groups=[0, 1])
