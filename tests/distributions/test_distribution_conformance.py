"""Estimators of distributions under scikit-learn's own checks: what they cannot pass, and why."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.exceptions import InsecureRandomnessWarning

COLUMNS = re.compile(r"X must have (n_columns=)?\d columns( of symbols below \d)?; got the shape")
"""The number of columns is a parameter, and checks come with others."""

DIFFERENT = {
    "check_complex_data": "one complex number makes complex ones of a whole array; what is no real number is missing",
    "check_estimators_nan_inf": "a missing value of a user is no error but a public default",
}
"""What fails with the right number of columns, and why it must."""


@pytest.mark.parametrize(
    "learner",
    [
        DiscreteDistribution(epsilon=1, n_symbols=3, alpha=0.4, require_groups=False),
        ProductDistribution(epsilon=1, n_symbols=2, n_columns=2, alpha=0.5, require_groups=False),
        GaussianMean(epsilon=1, mean_bound=10, n_columns=2, alpha=0.4, require_groups=False),
        GaussianDistribution(epsilon=1, mean_bound=2, kappa=3, n_columns=1, alpha=0.5, require_groups=False),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_which_checks_differ(learner: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        results = list(check_estimator(learner, on_fail=None, on_skip=None))
    assert sum(result["status"] == "passed" for result in results) > 15
    for result in results:
        if result["status"] == "failed" and result["check_name"] not in DIFFERENT:
            error, reasons = result["exception"], []
            while error is not None:
                reasons.append(str(error))
                error = error.__cause__ or error.__context__
            assert any(COLUMNS.search(reason) for reason in reasons), result["check_name"]
