"""Logistic and linear regression for users: scikit-learn's own checks, units, public bounds and solvers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_score, cross_validate
from sklearn.utils.estimator_checks import check_estimator

from support.forgotten_plans import little_noise
from userdp.exceptions import InsecureRandomnessWarning
from userdp.optimization import UserLevelLinearRegression, UserLevelLogisticRegression
from userdp.optimization.linear_models import DESCENTS

CLASSIFIER = UserLevelLogisticRegression(epsilon=1, max_feature_norm=5.0, classes=(0, 1))
REGRESSOR = UserLevelLinearRegression(epsilon=1, feature_bounds=(-5, 5), target_bounds=(-100, 100))


def checked(model: Any) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        return list(check_estimator(model, on_fail=None, on_skip=None))


@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=lambda model: type(model).__name__)
def test_all_checks_pass_without_privacy_settings(model: Any) -> None:
    open_to_all = clone(model).set_params(require_groups=False, on_invalid="raise")
    if "classes" in open_to_all.get_params():
        open_to_all.set_params(classes=None)
    results = checked(open_to_all)
    assert [result for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 40


def people(n: int = 300, m: int = 4) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(0, 10, size=n * m), rng.uniform(-1, 0, size=n * m)])
    y = X @ [2.0, -8.0] + 5 + rng.normal(size=n * m)
    return X, y, np.repeat(np.arange(n), m)


@pytest.mark.parametrize(("fit_intercept", "short"), [(False, 0.06), (True, 0.01)])
def test_linear_regression_near_least_squares(fit_intercept: bool, short: float) -> None:
    X, y, users = people()
    bounds = ([0, -1], [10, 0])
    with little_noise():
        model = UserLevelLinearRegression(
            epsilon=1, target_bounds=(0, 40), m=1, fit_intercept=fit_intercept, feature_bounds=bounds, solver="clipped"
        ).fit(X, y, groups=users)
    exact = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert model.coef_.shape == (2,)
    assert (model.intercept_ != 0) == fit_intercept
    assert model.score(X, y) > exact.score(X, y) - short
    assert np.allclose(model.predict(X), X @ model.coef_ + model.intercept_)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("given", [{"max_feature_norm": 8.0}, {"feature_bounds": ([0.0, -1.0], [10.0, 0.0])}])
@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=lambda model: type(model).__name__)
def test_units_do_not_matter(model: Any, given: dict[str, Any], fit_intercept: bool) -> None:
    X, y, users = people(40)
    labels = y > 19 if model is CLASSIFIER else y

    def fitted(unit: float, of_targets: float) -> Any:
        scaled = {name: (np.asarray(value) * unit).tolist() for name, value in given.items()}
        given_now = {"max_feature_norm": None, "feature_bounds": None, **scaled, "fit_intercept": fit_intercept}
        if model is REGRESSOR:
            given_now["target_bounds"] = (-8 * of_targets, 40 * of_targets)
        learner = clone(model).set_params(m=4, random_state=1, **given_now)
        with pytest.warns(InsecureRandomnessWarning):
            return learner.fit(X * unit, labels * of_targets, groups=users)

    one, other = fitted(1.0, 1.0), fitted(0.25, 1.0 if model is CLASSIFIER else 64.0)
    of_targets = 1.0 if model is CLASSIFIER else 64.0
    assert np.array_equal(other.coef_, one.coef_ * 4 * of_targets)
    assert np.array_equal(other.intercept_, one.intercept_ * of_targets)


@pytest.mark.parametrize("given", [{"max_feature_norm": 12.0}, {"feature_bounds": ([0, -1], [10, 0])}])
def test_logistic_regression_in_the_units_of_the_data(given: dict[str, Any]) -> None:
    X, y, users = people()
    names = np.where(y > 19, "high", "low")
    model = UserLevelLogisticRegression(epsilon=1, m=1, classes=("low", "high"), radius=20.0, solver="clipped", **given)
    with little_noise():
        model = model.fit(X, names, groups=users)
    assert model.classes_.tolist() == ["high", "low"]
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 2), (1,))
    exact = LogisticRegression().fit(X, names)
    assert model.score(X, names) > exact.score(X, names) - 0.1
    odds = model.decision_function(X)
    assert np.allclose(odds, X @ model.coef_[0] + model.intercept_[0])
    chances = model.predict_proba(X)
    assert np.allclose(chances.sum(axis=1), 1)
    assert np.allclose(chances[:, 1], 1 / (1 + np.exp(-odds)))
    assert np.array_equal(model.predict(X) == "low", odds > 0)


@pytest.mark.parametrize(
    ("classes", "solver"),
    [
        *((classes, "auto") for classes in [("no", "yes"), ("stay", "leave"), (0, 1), (1, 0), (True, False)]),
        *((classes, "clipped") for classes in [("stay", "leave"), (b"b", b"a")]),
    ],
)
def test_metrics_of_scikit_learn_take_classes_in_any_order(classes: Any, solver: str) -> None:
    """They take the last of `classes_` for the largest label."""
    X, y, users = people(2000)
    second = y > 19
    model = UserLevelLogisticRegression(
        epsilon=10, m=4, feature_bounds=([0, -1], [10, 0]), classes=classes, solver=solver
    ).fit(X, np.array(classes)[second.astype(int)], groups=users)
    assert model.classes_.tolist() == sorted(classes)
    chances = model.predict_proba(X)[:, model.classes_.tolist().index(classes[1])]
    assert roc_auc_score(second, chances) > 0.9
    assert roc_auc_score(second, model.decision_function(X) * (1 if classes[0] < classes[1] else -1)) > 0.9
    labels = np.array(classes)[second.astype(int)]
    assert np.mean(model.predict(X) == labels) > 0.8
    if not isinstance(classes[0], bytes):  # of which scikit-learn knows nothing
        assert get_scorer("roc_auc")(model, X, labels) > 0.9
        assert get_scorer("neg_log_loss")(model, X, labels) > -0.6


@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=lambda model: type(model).__name__)
def test_private_values_raise_nothing_and_show_nothing(model: Any) -> None:
    X, y, users = people()
    y = (y > 19) * 1.0
    bad, strange = X.copy(), y.copy()
    bad[0], strange[5] = [np.nan, np.inf], np.nan
    one, other = (clone(model).set_params(m=4).fit(*rows, groups=users) for rows in ((X, y), (bad, strange)))
    names = {name for name in vars(one) if name not in one.get_params()}
    public = {
        "n_users_",
        "n_features_in_",
        "unit_",
        "privacy_",
        "is_private_",
        "public_seed_",
    }
    # What the default solver knows of a fit, all of it from what was released.
    known = {"coef_", "intercept_", "converged_", "noise_ratio_", "clipping_", "looks_", "refused_", "notes_"}
    known |= (
        {"outside_", "outside_deviation_"} if model is CLASSIFIER else {"coef_noise_", "estimates_", "residual_std_"}
    )
    assert names - public - {"classes_"} == set(one.privacy_.released) == known
    assert one.privacy_ == other.privacy_
    assert one.is_private_
    again = type(one).from_json(one.to_json())
    assert np.array_equal(again.predict(X), one.predict(X))


@pytest.mark.parametrize("model", [CLASSIFIER, REGRESSOR], ids=lambda model: type(model).__name__)
def test_cross_validation_is_about_users_or_fails(model: Any) -> None:
    X, y, users = people(60)
    y = (y > 19).astype(int)
    learner = clone(model).set_params(m=4)
    with pytest.raises(ValueError, match="groups is missing"):
        cross_val_score(learner, X, y, groups=users, cv=GroupKFold(3), error_score="raise")
    with config_context(enable_metadata_routing=True):
        found = cross_validate(learner, X, y, params={"groups": users}, cv=GroupKFold(3), return_estimator=True)
    assert [(fitted.unit_, fitted.n_users_) for fitted in found["estimator"]] == [("user", 40)] * 3


@pytest.mark.parametrize("solver", sorted(DESCENTS))
def test_every_solver(solver: str) -> None:
    X, y, users = people()
    model = UserLevelLogisticRegression(
        epsilon=1, m=4, feature_bounds=([0, -1], [10, 0]), solver=solver, classes=(0, 1)
    )
    model = model.fit(X, (y > 19).astype(int), groups=users)
    assert np.all(np.isfinite(model.coef_))
    assert model.privacy_.epsilon == 1


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"max_feature_norm": None}, ValueError, r"^feature_bounds or max_feature_norm, .* must be given"),
        ({"feature_bounds": (0, 1)}, ValueError, "only one of max_feature_norm"),
        ({"max_feature_norm": 0.0}, ValueError, "max_feature_norm must be > 0"),
        ({"max_feature_norm": None, "feature_bounds": 3}, TypeError, "feature_bounds"),
        ({"max_feature_norm": None, "feature_bounds": (1, 1)}, ValueError, "low < high"),
        ({"max_feature_norm": None, "feature_bounds": ([0, 0, 0], 1)}, ValueError, "one number or 2 for each end"),
        ({"radius": 0}, ValueError, "radius must be > 0"),
        ({"radius": 1.0}, ValueError, "radius belongs to solver='clipped'"),
        ({"n_iterations": 5, "solver": "phased"}, ValueError, "n_iterations belongs to solver="),
        ({"n_iterations": 0}, ValueError, "n_iterations"),
        ({"solver": "newton"}, ValueError, "solver must be one of"),
        ({"delta": 0}, ValueError, "delta must be > 0"),
        ({"regularization": np.nan}, ValueError, "regularization"),
        ({"epsilon": 1000}, ValueError, r"epsilon must be at most 4\d at delta=1e-06 .*; got 1000"),
        ({"epsilon": 48, "solver": "clipped"}, ValueError, r"epsilon must be at most 3\d at delta=1e-06 .*; got 48"),
        ({"epsilon": 1, "delta": 1e-30}, ValueError, "delta=1e-30 is too small"),
    ],
)
@pytest.mark.parametrize("kind", [UserLevelLogisticRegression, UserLevelLinearRegression])
def test_refused(kind: Any, given: dict[str, Any], error: type[Exception], words: str) -> None:
    X, y, users = people(10)
    extra = {"target_bounds": (0, 1)} if kind is UserLevelLinearRegression else {"classes": (0, 1)}
    model = kind(**{"epsilon": 1, "max_feature_norm": 1.0, "m": 4, **extra, **given})
    with pytest.raises(error, match=words):
        model.fit(X, (y > 19).astype(int), groups=users)
