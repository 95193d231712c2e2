"""Pure-DP learners for users who give several examples each.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, y, groups=user_ids)``. Functions that they
are made of can be called alone and need no scikit-learn.

What is promised is about one fit of one estimator. Steps of a pipeline before it that learn from the same rows, such as
a scaler, are not private; nor are scores of cross-validation, nor a choice of parameters by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.learners.median import private_median, private_median_pmf
from userdp.learners.min_error import private_compare, private_compare_pmf, private_min_error, private_min_error_pmf
from userdp.learners.scores import (
    UniformConvergence,
    clipped_pairwise_scores,
    uniform_convergence_users,
    user_level_errors,
)
from userdp.learners.tolerance import best_separating_threshold, candidates_for_t, private_t, private_t_pmf
from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.learners.clipped_pairwise import HypothesisSelector, PairwiseScoreSelector
    from userdp.learners.correlated_sampling import CorrelatedSamplingClassifier
    from userdp.learners.pac import AgnosticPACClassifier, RealizablePACClassifier
    from userdp.learners.statistical_queries import StatisticalQueryClassifier
    from userdp.learners.threshold import ThresholdClassifier

__all__ = [
    "AgnosticPACClassifier",
    "CorrelatedSamplingClassifier",
    "HypothesisSelector",
    "PairwiseScoreSelector",
    "RealizablePACClassifier",
    "StatisticalQueryClassifier",
    "ThresholdClassifier",
    "UniformConvergence",
    "best_separating_threshold",
    "candidates_for_t",
    "clipped_pairwise_scores",
    "private_compare",
    "private_compare_pmf",
    "private_median",
    "private_median_pmf",
    "private_min_error",
    "private_min_error_pmf",
    "private_t",
    "private_t_pmf",
    "uniform_convergence_users",
    "user_level_errors",
]

_ESTIMATORS = {
    "AgnosticPACClassifier": "pac",
    "CorrelatedSamplingClassifier": "correlated_sampling",
    "HypothesisSelector": "clipped_pairwise",
    "PairwiseScoreSelector": "clipped_pairwise",
    "RealizablePACClassifier": "pac",
    "StatisticalQueryClassifier": "statistical_queries",
    "ThresholdClassifier": "threshold",
}
"""What needs scikit-learn, and the module that has it."""


__getattr__ = loader(__name__, _ESTIMATORS, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
