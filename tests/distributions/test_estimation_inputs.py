"""What estimators of distributions refuse, and with which words."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import userdp.distributions
from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean, ProductDistribution
from userdp.exceptions import BudgetError


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (DiscreteDistribution(epsilon=1, n_symbols=1, m=1), "n_symbols"),
        (DiscreteDistribution(epsilon=1, n_symbols=2, m=1, alpha=0), "alpha"),
        (DiscreteDistribution(epsilon=1, n_symbols=2, m=1, alpha=1), "alpha"),
        (DiscreteDistribution(epsilon=1, n_symbols=2, m=1, beta=0), "beta"),
        (DiscreteDistribution(epsilon=1, n_symbols=2, m=1, beta=2), "beta"),
        (DiscreteDistribution(epsilon=1, n_symbols=2, m=1, method="best"), "method"),
        (DiscreteDistribution(epsilon=0, n_symbols=2, m=1), "epsilon"),
        (ProductDistribution(epsilon=1, n_symbols=2, n_columns=0, m=1), "n_columns"),
        (ProductDistribution(epsilon=1, n_symbols=2, n_columns=1, m=1, method="symbols"), "method"),
        (GaussianMean(epsilon=1, mean_bound=0, m=1), "mean_bound"),
        (GaussianMean(epsilon=1, mean_bound=1e60, m=1), r"mean_bound must be at most 2\*\*48 steps"),
        (GaussianMean(epsilon=1, mean_bound=math.inf, m=1), "mean_bound must be finite"),
        (GaussianMean(epsilon=1, mean_bound=math.nan, m=1), "mean_bound"),
        (GaussianMean(epsilon=1, mean_bound=1, m=1, covariance=[[0.0]]), "positive definite"),
        (GaussianMean(epsilon=1, mean_bound=1, m=1, covariance=[[1.0, 0.0]]), "shape"),
        (GaussianMean(epsilon=1, mean_bound=1, m=1, n_columns=2, covariance=[[1, 0.5], [0, 1]]), "symmetric"),
        (GaussianDistribution(epsilon=1, mean_bound=1, kappa=0.5, m=1), "kappa"),
        (GaussianDistribution(epsilon=1, mean_bound=1, kappa=math.inf, m=1), "kappa must be finite"),
        (GaussianDistribution(epsilon=1, mean_bound=math.inf, kappa=2, m=1), "mean_bound must be finite"),
    ],
)
def test_bad_parameters(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit([[0], [1]], groups=[0, 1])


@pytest.mark.parametrize(
    ("estimator", "size", "instead"),
    [
        (DiscreteDistribution(epsilon=1, n_symbols=5, m=1, method="joint"), math.comb(129, 4), "symbols"),
        (DiscreteDistribution(epsilon=1, n_symbols=6, m=1, method="coarse-to-fine"), None, "symbols"),
        (ProductDistribution(epsilon=1, n_symbols=2, n_columns=3, m=1, method="joint"), 151**3, "coordinate"),
        (DiscreteDistribution(epsilon=1, n_symbols=2, m=1, alpha=1e-9, method="symbols"), None, "larger alpha"),
        (GaussianMean(epsilon=1, mean_bound=1, m=1, alpha=1e-8), None, "larger alpha"),
    ],
)
def test_covers_beyond_the_cap_are_refused_with_their_size(estimator, size, instead):
    with pytest.raises(BudgetError, match=instead) as caught:
        estimator.fit([[0] * getattr(estimator, "n_columns", 1)] * 2, groups=[0, 1])
    assert size is None or str(size) in str(caught.value)


def test_more_users_and_examples_than_the_scores_hold_are_refused():
    learner = DiscreteDistribution(epsilon=1, n_symbols=2, m=2**30, method="joint")
    with pytest.raises(BudgetError, match="smaller m"):
        learner.fit([[0], [1]], groups=[0, 1])


def test_without_scikit_learn_the_error_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import userdp.distributions as e; dir(e); e.DiscreteDistribution"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: userdp.distributions.DiscreteDistribution needs scikit-learn: pip install" in done.stderr
    with pytest.raises(AttributeError):
        userdp.distributions.Nothing  # noqa: B018


def test_a_variance_of_1_is_known():
    learner = GaussianDistribution(epsilon=1, mean_bound=1, kappa=1, n_columns=2, m=1)
    learner.fit(np.zeros((50, 2)), groups=np.arange(50))
    assert learner.covariance_ == pytest.approx(np.eye(2))


def test_pmfs_that_are_too_large_are_refused():
    with pytest.raises(BudgetError, match="outcomes"):
        GaussianMean(epsilon=1, mean_bound=1, n_columns=5, m=1).output_distribution(np.zeros((2, 5)), groups=[0, 1])


def test_bad_shapes():
    with pytest.raises(ValueError, match="2 columns"):
        GaussianMean(epsilon=1, mean_bound=1, n_columns=2, m=1).fit(np.array([[0], [1]]), groups=[0, 1])
    with pytest.raises(ValueError, match="2 columns"):
        ProductDistribution(epsilon=1, n_symbols=2, n_columns=2, m=1).fit(np.array([[0], [1]]), groups=[0, 1])


@pytest.mark.parametrize(
    ("model", "given", "message"),
    [
        (ProductDistribution, {"n_symbols": 3, "n_columns": 2, "max_candidates": 10**9}, "max_candidates must be at"),
        (DiscreteDistribution, {"n_symbols": 3, "max_candidates": 2**14 + 1}, "max_candidates must be at most 16384"),
        (GaussianMean, {"mean_bound": 1, "n_columns": 10**9}, "n_columns must be at most 4096"),
        (GaussianDistribution, {"mean_bound": 1, "kappa": 2, "n_columns": 10**9}, "n_columns must be at most 1024"),
        (GaussianMean, {"mean_bound": 1}, "X must have n_columns=1 columns"),
    ],
)
def test_numbers_that_would_never_end_are_refused(model: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model(epsilon=1, m=1, **given).fit(np.zeros((50, 2)), groups=np.arange(50))
