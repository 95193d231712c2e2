"""Classifiers as scikit-learn estimators: its own checks, and the trap of cross-validation without user ids."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from userdp.concepts import DecisionStumps, FiniteClass, PointFunctions, Thresholds
from userdp.exceptions import InsecureRandomnessWarning
from userdp.learners import (
    AgnosticPACClassifier,
    CorrelatedSamplingClassifier,
    RealizablePACClassifier,
    StatisticalQueryClassifier,
    ThresholdClassifier,
)
from userdp.stability import DecisionListQueries, MarginPerceptronQueries

# What scikit-learn's checks pass to fit is a random_state, and that warns.
IGNORED = InsecureRandomnessWarning

CLASSIFIERS = [
    RealizablePACClassifier(epsilon=1, concepts=Thresholds(8), classes=(0, 1)),
    RealizablePACClassifier(epsilon=1, concepts=FiniteClass([[0, 1], [1, 0], [1, 1]]), classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=DecisionStumps(thresholds=[[0.0, 1.0]]), classes=(0, 1)),
    ThresholdClassifier(epsilon=1, domain_size=8, classes=(0, 1)),
    ThresholdClassifier(epsilon=1, domain_size=2**64 - 1, exact_integers=True, classes=(0, 1)),
    ThresholdClassifier(epsilon=1, domain_size=8, method="median", classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(8), method="pairwise", classes=(0, 1)),
    AgnosticPACClassifier(epsilon=1, concepts=Thresholds(8), method="surrogate", classes=(0, 1)),
    AgnosticPACClassifier(
        epsilon=1, concepts=PointFunctions(4), representation=Thresholds(4), method="surrogate", classes=(0, 1)
    ),
    CorrelatedSamplingClassifier(epsilon=1, delta=1e-3, concepts=Thresholds(8), classes=(0, 1)),
    CorrelatedSamplingClassifier(
        epsilon=1, concepts=DecisionStumps(thresholds=[[0.0, 1.0]]), model="central-pure", classes=(0, 1)
    ),
    CorrelatedSamplingClassifier(epsilon=1, concepts=Thresholds(8), model="local", classes=(0, 1)),
    CorrelatedSamplingClassifier(epsilon=1, delta=1e-3, concepts=Thresholds(4), model="shuffle", classes=(0, 1)),
    StatisticalQueryClassifier(
        epsilon=1, delta=1e-3, algorithm=DecisionListQueries(1, alpha=0.3, tolerance=0.1), classes=(0, 1)
    ),
    StatisticalQueryClassifier(
        epsilon=1,
        algorithm=MarginPerceptronQueries(1, margin=0.3, alpha=0.3, max_rounds=2),
        model="central-pure",
        classes=(0, 1),
    ),
    StatisticalQueryClassifier(
        epsilon=1, algorithm=DecisionListQueries(1, alpha=0.3, length=1), model="local", classes=(0, 1)
    ),
]

MISSING = "groups is missing"

DIFFERENT = {
    "check_classifier_data_not_an_array": "containers of unknown kinds are refused before a value is looked at",
    "check_classifiers_classes": "classes_ are the public classes, not the labels found in y",
    "check_classifiers_regression_target": "whether labels are among the classes is private; others do not count",
    "check_classifier_not_supporting_multiclass": "how many labels there are is private; others do not count",
    "check_classifiers_train": "a list of rows counts by the columns that are read, unless n_features says how many",
    "check_complex_data": "one complex number makes complex ones of a whole array; what is no real number is missing",
    "check_dtype_object": "what is no number is no error, as a missing value is none",
    "check_estimators_nan_inf": "a missing value of a user is no error but a public default",
    "check_supervised_y_no_nan": "a missing label of a user is no error: the row does not count",
}
"""Checks that fail with public classes and on_invalid="clamp", and why they must."""

SOMETIMES = {
    "check_classifiers_one_label": "wants the only label in y to be predicted; a private draw may predict the other"
}


def identified(classifier: Any) -> str:
    parameters = classifier.get_params(deep=False)
    over = next(parameters[name] for name in ("concepts", "algorithm", "domain_size") if name in parameters)
    how = parameters.get("method", parameters.get("model", "any"))
    return f"{type(classifier).__name__}-{how}-{over if isinstance(over, int) else type(over).__name__}"


def checked(classifier: Any) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IGNORED)
        return list(check_estimator(classifier, on_fail=None, on_skip=None))


def failed(results: list[dict[str, Any]]) -> set[str]:
    return {result["check_name"] for result in results if result["status"] == "failed"}


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=identified)
def test_all_checks_pass_without_privacy_settings(classifier: Any) -> None:
    open_to_all = clone(classifier).set_params(require_groups=False, classes=None, on_invalid="raise")
    results = checked(open_to_all)
    assert [result for result in results if result["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) > 45


@pytest.mark.parametrize("classifier", CLASSIFIERS[:4], ids=identified)
def test_which_checks_differ_with_public_classes_and_clamping(classifier: Any) -> None:
    found = failed(checked(clone(classifier).set_params(require_groups=False)))
    assert found - set(SOMETIMES) == set(DIFFERENT)


@pytest.mark.parametrize("classifier", CLASSIFIERS[:4], ids=identified)
def test_with_the_defaults_only_missing_groups_are_added(classifier: Any) -> None:
    results = checked(clone(classifier))
    assert len(failed(results)) > 20
    for result in results:
        if result["status"] == "failed" and result["check_name"] not in {*DIFFERENT, *SOMETIMES}:
            error, reasons = result["exception"], []
            while error is not None:
                reasons.append(str(error))
                error = error.__cause__ or error.__context__
            assert any(MISSING in reason for reason in reasons), result["check_name"]
    # Nothing is fitted then, whatever is checked.
    with pytest.raises(ValueError, match=MISSING):
        clone(classifier).fit(np.zeros((4, 2)), [0, 1, 0, 1])


# --- cross-validation


def people() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    X = rng.integers(1, 9, size=(360, 1))
    return X, (X[:, 0] > 4).astype(int), np.repeat(np.arange(60), 6)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=identified)
def test_cross_validation_cannot_protect_rows_silently(classifier: Any) -> None:
    X, y, users = people()
    learner = clone(classifier).set_params(m=6)
    # Without routing the splitter has the user ids and fit has not.
    with pytest.raises(ValueError, match="All the 3 fits failed") as caught:
        cross_val_score(learner, X, y, groups=users, cv=GroupKFold(3))
    assert MISSING in str(caught.value)
    with pytest.raises(ValueError, match=MISSING):
        cross_val_score(learner, X, y, groups=users, cv=GroupKFold(3), error_score="raise")


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=identified)
def test_searches_and_pipelines_hand_the_users_on_or_fail(classifier: Any) -> None:
    X, y, users = people()
    learner = clone(classifier).set_params(m=6)
    within = make_pipeline(FunctionTransformer(), learner)
    name = type(learner).__name__.lower()
    assert within.fit(X, y, **{f"{name}__groups": users})[-1].unit_ == "user"
    searches = (
        GridSearchCV(learner, {"epsilon": [1, 2]}, cv=GroupKFold(3)),
        GridSearchCV(within, {f"{name}__epsilon": [1, 2]}, cv=GroupKFold(3)),
    )
    for search in searches:
        with pytest.raises(ValueError, match=MISSING):
            search.set_params(error_score="raise").fit(X, y, groups=users)
        with config_context(enable_metadata_routing=True):
            best = search.fit(X, y, groups=users).best_estimator_
        best = best[-1] if search is searches[1] else best
        assert (best.unit_, best.n_users_, best.is_private_) == ("user", 60, True)
    with pytest.raises(ValueError, match=MISSING):
        within.fit(X, y)


@pytest.mark.parametrize("classifier", CLASSIFIERS, ids=identified)
def test_cross_validation_with_routing_protects_users(classifier: Any) -> None:
    X, y, users = people()
    learner = clone(classifier).set_params(m=6)
    with config_context(enable_metadata_routing=True):
        found = cross_validate(
            learner, X, y, params={"groups": users}, cv=GroupKFold(3), return_estimator=True, error_score="raise"
        )
    assert len(found["test_score"]) == 3
    for fitted in found["estimator"]:
        assert (fitted.unit_, fitted.n_users_, fitted.is_private_) == ("user", 40, True)


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['sklearn'] = None; import userdp.learners as l, userdp.concepts as c; dir(l); "
        "print(l.PrivateMistakeTolerance(n_users=2, epsilon=1).sample([1]), c.Thresholds(3)); l.ThresholdClassifier"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "0 Thresholds(domain_size=3, feature=0)\n"
    assert "ImportError: userdp.learners.ThresholdClassifier needs scikit-learn: pip install" in done.stderr
