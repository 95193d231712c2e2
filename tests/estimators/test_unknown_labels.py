"""Rows whose label is none of the two classes, or whose target is no number: as if they had not been given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from support.every_estimator import estimators
from support.forgotten_plans import little_noise
from userdp.concepts import Thresholds
from userdp.estimators.base import TargetEstimator, UserLevelClassifier
from userdp.learners import AgnosticPACClassifier, RealizablePACClassifier, ThresholdClassifier
from userdp.optimization import ClippedGradientDescent, UserLevelLinearRegression, UserLevelLogisticRegression
from userdp.users import UserTable

LOGISTIC = UserLevelLogisticRegression(epsilon=1, feature_bounds=(0, 10), m=8, classes=(0, 1))
LABELED = {
    **{name: made for name, made in estimators().items() if isinstance(made, (UserLevelClassifier, TargetEstimator))},
    "logistic": LOGISTIC,
    "logistic, clipped": clone(LOGISTIC).set_params(solver="clipped"),
}
N_USERS = 6

ODD: list[Any] = [None, math.nan, "", "nobody", 7, -1, 0.5, 2**60, object(), (0, 1), b"no", np.float32("nan")]


def table_of(learner: Any, X: Any, y: Any, groups: Any) -> Any:
    """All that a fit reads."""
    table, unit = clone(learner).set_params(enrolled=range(N_USERS))._read(X, y, groups)
    return table.X.tolist(), table.labels.tolist(), table.users.tolist(), table.n_users, table.m, unit


@pytest.mark.filterwarnings("ignore:X may have whole numbers")
@pytest.mark.parametrize("name", LABELED)
def test_rows_without_a_label_are_as_if_not_given(name: str) -> None:
    """50 random tables: some users lose all rows, some those that would count as their first m."""
    learner, rng = clone(LABELED[name]), np.random.default_rng(len(name))
    learner.set_params(m=2)
    for _ in range(50):
        n = int(rng.integers(1, 40))
        X, groups, known = rng.integers(1, 9, (n, 1)), rng.integers(0, N_USERS, n), rng.random(n) < 0.7
        y = rng.integers(0, 2, n).astype(object)
        for row in np.flatnonzero(~known):
            y[row] = ODD[int(rng.integers(2 if isinstance(learner, TargetEstimator) else len(ODD)))]
        kept = (X[known], y[known].astype(int), groups[known])
        if isinstance(learner, TargetEstimator) or known.any():
            assert table_of(learner, X, y, groups) == table_of(learner, *kept)


@pytest.mark.parametrize("learner", [LABELED["threshold"], LABELED["agnostic"], LABELED["voting"]])
def test_what_is_drawn_is_as_if_they_were_not_given(learner: Any) -> None:
    X, groups = np.arange(1, 9)[:, None], np.arange(8) // 2
    y = np.array([0, 2, 1, 1, 2, 2, 1, 0])
    listed = clone(learner).set_params(m=2, enrolled=range(4))
    known = y < 2
    wanted = listed.output_distribution(X[known], y[known], groups=groups[known])
    for given in (
        y,
        np.where(known, y, math.nan),
        np.where(known, y, -1),
        y.astype(str),
        pd.Series(y).astype("category"),
    ):
        assert listed.output_distribution(X, given, groups=groups) == wanted


# --- types of labels, and their classes

LABELS: dict[str, tuple[Any, Any]] = {
    "one and two": (np.array([1, 2, 2, 1]), (1, 2)),
    "minus one and one": (np.array([-1, 1, 1, -1]), (-1, 1)),
    "bools": (np.array([False, True, True, False]), (False, True)),
    "bools as numbers": (np.array([False, True, True, False]), (0, 1)),
    "8 bits": (np.array([0, 255, 255, 0], dtype=np.uint8), (0, 255)),
    "Enum": (pl.Series(["no", "yes", "yes", "no"], dtype=pl.Enum(["no", "yes", "unused"])), ("no", "yes")),
    "Categorical": (pd.Series(["no", "yes", "yes", "no"], dtype="category"), ("no", "yes")),
    "dictionary": (pa.array(["no", "yes", "yes", "no"]).dictionary_encode(), ("no", "yes")),
}


@pytest.mark.parametrize("name", LABELS)
def test_each_type_of_labels(name: str) -> None:
    y, classes = LABELS[name]
    read = UserTable.read(np.arange(4)[:, None], y, groups=[0, 0, 1, 1], m=2, classes=classes)
    assert read.labels.tolist() == [0, 1, 1, 0]
    assert read.outside is None
    (first, second), others = classes, (classes[0], "no such label" if isinstance(classes[0], str) else 77)
    half = UserTable.read(np.arange(4)[:, None], y, groups=[0, 0, 1, 1], m=2, classes=others)
    assert (half.labels.tolist(), half.X[:, 0].tolist(), half.n_users) == ([0, 0], [0, 3], 2)
    assert half.outside is not None
    assert half.outside.tolist() == [0, 1]
    assert first != second


@pytest.mark.parametrize("classes", [(0, 1), (0, 300), (-1, 1), (0.5, 1), ("no", "yes")])
def test_types_that_values_can_change_are_never_refused(classes: Any) -> None:
    """Neither a small type for a class that it cannot hold, nor categories: both are computed from values."""
    X, groups = np.arange(4)[:, None], [0, 0, 1, 1]
    columns = [np.array([0, 1, 1, 0], dtype=np.uint8), np.array([False, True, True, False])]
    columns += [pd.Series(["a", "b", "b", "a"], dtype="category"), pd.Series([0, 1, 1, 0], dtype="Int8")]
    for y in columns:
        read = UserTable.read(X, y, groups=groups, m=2, classes=classes)
        assert read.n_users == 2


def test_another_label_of_a_neighbor_changes_no_error() -> None:
    X, groups = np.arange(1, 7)[:, None], np.arange(6) // 2
    learner = ThresholdClassifier(epsilon=1, domain_size=6, m=2, classes=("no", "yes"))
    words, other = ["no", "yes", "no", "yes", "yes", "no"], ["no", "yes", "no", "yes", "yes", "another"]
    kinds = [
        lambda values: pd.Series(values, dtype="category"),
        lambda values: pd.Categorical(values),
        lambda values: pa.array(values).dictionary_encode(),
        lambda values: pl.Series(values, dtype=pl.Categorical),
    ]
    rest = clone(learner).set_params(enrolled=range(3)).output_distribution(X[:5], other[:5], groups=groups[:5])
    for kind in kinds:
        assert learner.output_distribution(X, kind(other), groups=groups) == rest
        assert (
            learner.fit(X, kind(words), groups=groups).n_users_ == learner.fit(X, kind(other), groups=groups).n_users_
        )


# --- no sign can turn


@pytest.mark.parametrize(
    "learner",
    [
        ThresholdClassifier(epsilon=50, domain_size=10, m=4, classes=(0, 1)),
        RealizablePACClassifier(epsilon=50, concepts=Thresholds(10), m=4, classes=(0, 1)),
        AgnosticPACClassifier(epsilon=50, concepts=Thresholds(10), m=4, classes=(0, 1)),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_no_class_takes_rows_of_another_label(learner: Any) -> None:
    """Labels 1 and 2 with classes (0, 1): what is labeled 1 is class 1, and nothing is left that speaks for 0."""
    X = np.tile(np.arange(1, 11), 80)[:, None]
    y = 1 + (X[:, 0] > 5)
    fitted = learner.fit(X, y, groups=np.arange(800) // 4)
    assert fitted.predict([[1], [3], [5]]).tolist() == [1, 1, 1]
    right = clone(learner).set_params(classes=(1, 2)).fit(X, y, groups=np.arange(800) // 4)
    assert right.predict([[3], [8]]).tolist() == [1, 2]


def test_a_logistic_regression_does_not_turn() -> None:
    rng = np.random.default_rng(0)
    X, groups = rng.uniform(0, 10, (4000, 1)), np.arange(4000) // 2
    y = 1 + (X[:, 0] + rng.logistic(size=4000) > 5)
    with little_noise():
        wrong = UserLevelLogisticRegression(
            epsilon=8, feature_bounds=(0, 10), m=2, classes=(0, 1), solver="clipped"
        ).fit(X, y, groups=groups)
        right = clone(wrong).set_params(classes=(1, 2)).fit(X, y, groups=groups)
    assert wrong.predict([[1.0], [4.0]]).tolist() == [1, 1]
    assert right.predict([[1.0], [9.0]]).tolist() == [1, 2]
    assert right.coef_[0, 0] > 0


@pytest.mark.parametrize("missing", [math.nan, None, "unknown"])
def test_missing_targets_are_not_the_middle_of_the_bounds(missing: Any) -> None:
    """A fifth of the targets, where features are large: a slope of 3 is not pulled to 0."""
    rng = np.random.default_rng(1)
    X, groups = rng.uniform(0, 10, (4000, 1)), np.arange(4000) // 2
    y = (3 * X[:, 0] + rng.normal(size=4000)).astype(object)
    y[X[:, 0] > 8] = missing
    with little_noise():
        fitted = UserLevelLinearRegression(
            epsilon=8, feature_bounds=(0, 10), target_bounds=(0, 100), m=2, solver="clipped"
        ).fit(X, y, groups=groups)
    assert fitted.predict([[5.0]])[0] == pytest.approx(15, abs=1)
    assert fitted.coef_[0] == pytest.approx(3, abs=0.3)


# --- what must be given is said at once


@pytest.mark.parametrize(
    ("kind", "given", "names"),
    [
        (ThresholdClassifier, {}, ["epsilon", "classes", "m", "domain_size or points"]),
        (ThresholdClassifier, {"epsilon": 1, "domain_size": 3, "m": 1}, ["classes"]),
        (RealizablePACClassifier, {"epsilon": 1}, ["classes", "concepts", "m"]),
        (UserLevelLogisticRegression, {"epsilon": 1}, ["classes", "feature_bounds or max_feature_norm"]),
        (UserLevelLogisticRegression, {"epsilon": 1, "solver": "clipped", "feature_bounds": (0, 1)}, ["classes"]),
        (UserLevelLinearRegression, {}, ["epsilon", "target_bounds", "feature_bounds or max_feature_norm"]),
        (
            ClippedGradientDescent,
            {"epsilon": 1, "clip": 1},
            ["target_bounds", "delta", "loss", "constraint", "max_norm"],
        ),
    ],
)
def test_all_that_is_missing_is_named_at_once(kind: Any, given: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(TypeError, match=r"must be given: what is public is never taken from the data$") as caught:
        kind(**given)
    said = str(caught.value).removesuffix(", must be given: what is public is never taken from the data")
    assert [fact.split(", ")[0] for fact in said.split("; ")] == names
    with pytest.raises(TypeError, match="unexpected keyword argument 'bad'"):
        kind(**given, bad=1)


def test_classes_must_be_given() -> None:
    with pytest.raises(TypeError, match=r"^classes, the two public labels, the positive one second, must be given"):
        UserLevelLogisticRegression(epsilon=1, feature_bounds=(0, 1), m=1)
    with pytest.raises(ValueError, match=r"^m, .*; domain_size or points, .* must be given"):
        ThresholdClassifier(epsilon=1, classes=(0, 1)).fit([[1]], [1], groups=[1])
