"""Pure-DP learners for users who give several examples each.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, y, groups=user_ids)``. Functions that they
are made of can be called alone and need no scikit-learn.

What is promised is about one fit of one estimator. Steps of a pipeline before it that learn from the same rows, such as
a scaler, are not private; nor are scores of cross-validation, nor a choice of parameters by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.learners.median import PrivateMedian
from userdp.learners.min_error import PrivateCompare, PrivateMinError
from userdp.learners.scores import (
    UniformConvergence,
    clipped_pairwise_scores,
    uniform_convergence_users,
    user_level_errors,
)
from userdp.learners.tolerance import PrivateMistakeTolerance, best_separating_threshold, candidates_for_t
from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.learners.clipped_pairwise import ClippedPairwiseEM, HypothesisSelector
    from userdp.learners.correlated_sampling import CorrelatedSamplingClassifier
    from userdp.learners.pac import AgnosticPACClassifier, RealizablePACClassifier
    from userdp.learners.statistical_queries import StatisticalQueryClassifier
    from userdp.learners.threshold import ThresholdClassifier

__all__ = [
    "AgnosticPACClassifier",
    "ClippedPairwiseEM",
    "CorrelatedSamplingClassifier",
    "HypothesisSelector",
    "PrivateCompare",
    "PrivateMedian",
    "PrivateMinError",
    "PrivateMistakeTolerance",
    "RealizablePACClassifier",
    "StatisticalQueryClassifier",
    "ThresholdClassifier",
    "UniformConvergence",
    "best_separating_threshold",
    "candidates_for_t",
    "clipped_pairwise_scores",
    "uniform_convergence_users",
    "user_level_errors",
]

_ESTIMATORS = {
    "AgnosticPACClassifier": "pac",
    "CorrelatedSamplingClassifier": "correlated_sampling",
    "HypothesisSelector": "clipped_pairwise",
    "ClippedPairwiseEM": "clipped_pairwise",
    "RealizablePACClassifier": "pac",
    "StatisticalQueryClassifier": "statistical_queries",
    "ThresholdClassifier": "threshold",
}
"""What needs scikit-learn, and the module that has it."""


__getattr__ = loader(__name__, _ESTIMATORS, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
