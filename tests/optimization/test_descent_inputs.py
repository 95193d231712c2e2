"""What descents refuse, and what private values must not show: public numbers, warnings, callbacks that fail."""

from __future__ import annotations

import warnings
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp.exceptions import BudgetError, NoisyFitWarning, TooFewUsersWarning
from userdp.mechanisms import PrivateBestOf, UniformInteger
from userdp.optimization import (
    Box,
    ClippedGradientDescent,
    CustomLoss,
    FiniteMinimizer,
    L2Ball,
    LogisticLoss,
    PhasedERM,
    UserLevelLinearRegression,
    UserLevelLogisticRegression,
    WinsorizedGradientDescent,
)
from userdp.optimization.losses import GradientRows
from userdp.users import UserTable

DESCENTS = (ClippedGradientDescent, WinsorizedGradientDescent, PhasedERM)
X = np.random.default_rng(0).normal(size=(60, 2))
Y = (X[:, 0] > 0) * 1
USERS = np.repeat(np.arange(30), 2)


def fitted(kind: Any, **given: Any) -> Any:
    shared = {"epsilon": 1, "delta": 1e-6, "loss": LogisticLoss(), "constraint": L2Ball(1.0), "m": 2}
    public = {"target_bounds": (-1, 1), "max_norm": 1.0}
    return kind(**{**shared, **public, **given}).fit(X, Y, groups=USERS)


@pytest.mark.parametrize("kind", DESCENTS)
@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"n_iterations": 10**9}, BudgetError, "n_iterations must be at most"),
        ({"n_iterations": 10**40}, BudgetError, "n_iterations must be at most"),
        ({"max_norm": 1e-300}, ValueError, "max_norm must be > 0"),
        ({"start": [3.0, 0.0]}, ValueError, "start must be in the constraint"),
        ({"constraint": Box(2.0, 3.0), "start": [0.0, 0.0]}, ValueError, "start must be in the constraint"),
        ({"target_bounds": (-1e200, 1e200)}, ValueError, "target_bounds must be"),
        ({"target_bounds": (0, 5e-324)}, ValueError, "length of target_bounds"),
    ],
)
def test_refused_by_all_descents(kind: Any, given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fitted(kind, **given)


@pytest.mark.parametrize("kind", DESCENTS)
def test_a_constraint_of_one_point(kind: Any) -> None:
    assert fitted(kind, constraint=Box(0.5, 0.5)).theta_.tolist() == [0.5, 0.5]


def test_a_start_on_the_edge_is_in_the_constraint() -> None:
    edge = np.array([0.1, 0.3]) * (0.7 / np.hypot(0.1, 0.3))
    assert np.linalg.norm(fitted(ClippedGradientDescent, constraint=L2Ball(0.7), start=edge).theta_) <= 0.7 + 1e-9


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            UserLevelLogisticRegression(epsilon=1, m=2, max_feature_norm=1e-300, classes=(0, 1)),
            "max_feature_norm must be > 0",
        ),
        (UserLevelLogisticRegression(epsilon=1, m=2, feature_bounds=(0, 5e-324), classes=(0, 1)), "low < high"),
        (
            UserLevelLogisticRegression(epsilon=1, m=2, max_feature_norm=1, solver=[1], classes=(0, 1)),
            "solver must be one of",
        ),
        (UserLevelLinearRegression(epsilon=1, m=2, max_feature_norm=1, target_bounds=(0, 1e308)), "target_bounds"),
        (UserLevelLinearRegression(epsilon=1, m=2, max_feature_norm=1, target_bounds=(0, 5e-324)), "target_bounds"),
        (
            WinsorizedGradientDescent(
                m=2,
                epsilon=1,
                loss=LogisticLoss(),
                constraint=L2Ball(1),
                grid_resolution=2**60,
                target_bounds=(-1, 1),
                max_norm=1.0,
            ),
            "2..28",
        ),
        (FiniteMinimizer(epsilon=1, m=2, loss_bounds=(0, 5e-324)), "loss_bounds"),
        (FiniteMinimizer(epsilon=1, m=2, method=[1], loss_bounds=(0, 1)), "method must be one of"),
    ],
)
def test_refused(model: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y, groups=USERS)


def own(gradient: Any) -> CustomLoss:
    return CustomLoss(gradient, lipschitz=1.0, smoothness=1.0)


VALUES = (1e308, -1e308, 1e-308, 5e-324, np.inf, np.nan)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("numpy_says", ["warn", "raise"])
@pytest.mark.parametrize(
    "model",
    [
        UserLevelLogisticRegression(epsilon=1, m=2, max_feature_norm=0.1, classes=(0, 1)),
        UserLevelLogisticRegression(epsilon=1, m=2, feature_bounds=([-1e-3, -1e3], [3e-3, 1e4]), classes=(0, 1)),
        UserLevelLinearRegression(epsilon=1, m=2, max_feature_norm=1e-3, target_bounds=(0, 1e-3)),
        ClippedGradientDescent(
            epsilon=1,
            delta=1e-6,
            m=2,
            n_iterations=2,
            constraint=L2Ball(1.0),
            loss=own(lambda t, X, y: (X @ t - y) @ X),
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
    ],
    ids=["bound", "bounds", "targets", "own"],
)
def test_no_value_warns_or_raises(model: Any, value: float, numpy_says: Any) -> None:
    """Numbers that are scaled beyond doubles, or below them, whatever NumPy is told to do about these."""
    bad, targets = X.copy(), Y * 1.0
    bad[0], targets[0] = value, value
    with warnings.catch_warnings(), np.errstate(all=numpy_says):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TooFewUsersWarning)  # of public numbers
        warnings.simplefilter("ignore", NoisyFitWarning)  # of what was released
        model.fit(bad, Y if isinstance(model, UserLevelLogisticRegression) else targets, groups=USERS)


# --- a user's own gradient


def means(gradient: Any) -> Any:
    data = UserTable.read([[1.0], [7.0], [2.0]], [0, 0, 0], groups=[0, 1, 2], m=2, n_features=1)
    return GradientRows(data, loss=own(gradient), max_norm=9.0, fit_intercept=False).at(np.zeros(1))


def test_a_callback_that_exits_on_somebodys_rows_counts_as_zero() -> None:
    def exits(theta: Any, X: Any, y: Any) -> Any:
        if X[0, 0] == 7.0:
            raise SystemExit("about somebody")
        return X

    assert means(exits).clipped_sum(0.0, 4.0, 0.5).tolist() == [6]


def test_an_interruption_stops() -> None:
    def interrupted(theta: Any, X: Any, y: Any) -> Any:
        if X[0, 0] == 7.0:
            raise KeyboardInterrupt
        return X

    with pytest.raises(KeyboardInterrupt):
        means(interrupted)


def test_what_one_callback_sets_is_unset_for_the_next_user() -> None:
    def sets(theta: Any, X: Any, y: Any) -> Any:
        if X[0, 0] == 7.0:
            np.seterr(all="raise")
            warnings.simplefilter("error")
        return X + np.exp(np.full(1, -1e3))  # which is too small for doubles

    before = np.geterr()
    assert means(sets).clipped_sum(0.0, 8.0, 0.5).tolist() == [2 + 0 + 4]
    assert np.geterr() == before


# --- the hidden number of runs


def test_the_number_of_runs_with_the_least_probability_to_stop_is_drawn_at_once() -> None:
    selection = PrivateBestOf(UniformInteger(low=0, high=3), stopping_probability=Fraction(1, 2**52), most_runs=2)
    assert 0 <= selection.sample() <= 3


def test_numbers_of_runs_given_that_they_are_few() -> None:
    """P[failures = k modulo N] = P[failures = k | failures < N], summed over the first of infinitely many k."""
    p, most = Fraction(1, 3), 5
    classes: Counter[int] = Counter()
    for k in range(200):
        classes[k % most] += (1 - p) ** k * p
    given = [(1 - p) ** k * p / (1 - (1 - p) ** most) for k in range(most)]
    assert all(abs(classes[k] - given[k]) < Fraction(1, 2**100) for k in range(most))


def test_few_runs_are_no_great_work() -> None:
    """Where at most ten runs are made, a small probability to stop is no reason to refuse."""
    found = FiniteMinimizer(epsilon=1, m=2, stopping_probability=Fraction(1, 2**50), most_runs=10, loss_bounds=(0, 1))
    assert found.fit(X, groups=USERS).index_ in (0, 1)


# --- what fits say about public numbers


@pytest.mark.parametrize(
    "model",
    [
        WinsorizedGradientDescent(
            epsilon="1/10",
            delta=1e-6,
            loss=LogisticLoss(),
            constraint=L2Ball(1),
            m=20,
            method="practical",
            concentration=0.01,
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
        PhasedERM(
            epsilon="1/10",
            delta=1e-6,
            loss=LogisticLoss(),
            constraint=L2Ball(1),
            m=20,
            method="practical",
            concentration=0.01,
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
        FiniteMinimizer(
            epsilon="1/10", m=2, method="paper", concentration=0.001, stopping_probability="1/2", loss_bounds=(0, 1)
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_too_few_users_are_warned_of_where_fit_is_called(model: Any) -> None:
    with pytest.warns(UserWarning, match=r"30 users are too few for method=.* are needed") as caught:
        model.fit(X, Y, groups=USERS)
    assert {warning.filename for warning in caught} == {__file__}
