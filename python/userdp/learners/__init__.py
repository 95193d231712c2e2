"""Pure-DP learners for people who give several examples each.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, y, groups=user_ids)``. Functions that they
are made of can be called alone and need no scikit-learn.

What is promised is about one fit of one estimator. Steps of a pipeline before it that learn from the same rows, such as
a scaler, are not private; nor are scores of cross-validation, nor a choice of parameters by them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp._optional import loader
from userdp.learners._boosting import BoostedSize, MajorityVotes, boosted_size
from userdp.learners._concept_class import ConceptClass
from userdp.learners._contributions import bound_contributions
from userdp.learners._domain_classes import FiniteClass, Intervals, Parities, PointFunctions, Thresholds
from userdp.learners._hashing import HashedPointFunctions
from userdp.learners._median import private_median, private_median_pmf
from userdp.learners._min_error import (
    private_compare,
    private_compare_pmf,
    private_min_error,
    private_min_error_pmf,
)
from userdp.learners._privacy import PrivacyRecord
from userdp.learners._private_t import candidates_for_t, private_t, private_t_pmf
from userdp.learners._sample_sizes import UniformConvergence, uniform_convergence_users
from userdp.learners._scores import clipped_pairwise_scores, user_level_errors
from userdp.learners._separation import best_separating_threshold
from userdp.learners._stumps import DecisionStumps

if TYPE_CHECKING:
    from userdp.learners._agnostic import AgnosticPACClassifier
    from userdp.learners._correlated_sampling import CorrelatedSamplingClassifier
    from userdp.learners._finite_algorithm import as_finite_algorithm
    from userdp.learners._hypothesis import HypothesisSelector
    from userdp.learners._pairwise import PairwiseScoreSelector
    from userdp.learners._realizable import RealizablePACClassifier
    from userdp.learners._statistical_queries import StatisticalQueryClassifier
    from userdp.learners._threshold import ThresholdClassifier

__all__ = [
    "AgnosticPACClassifier",
    "BoostedSize",
    "ConceptClass",
    "CorrelatedSamplingClassifier",
    "DecisionStumps",
    "FiniteClass",
    "HashedPointFunctions",
    "HypothesisSelector",
    "Intervals",
    "MajorityVotes",
    "PairwiseScoreSelector",
    "Parities",
    "PointFunctions",
    "PrivacyRecord",
    "RealizablePACClassifier",
    "StatisticalQueryClassifier",
    "ThresholdClassifier",
    "Thresholds",
    "UniformConvergence",
    "as_finite_algorithm",
    "best_separating_threshold",
    "boosted_size",
    "bound_contributions",
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
    "AgnosticPACClassifier": "_agnostic",
    "CorrelatedSamplingClassifier": "_correlated_sampling",
    "HypothesisSelector": "_hypothesis",
    "PairwiseScoreSelector": "_pairwise",
    "RealizablePACClassifier": "_realizable",
    "StatisticalQueryClassifier": "_statistical_queries",
    "ThresholdClassifier": "_threshold",
    "as_finite_algorithm": "_finite_algorithm",
}
"""What needs scikit-learn, and the module that has it."""


__getattr__ = loader(__name__, _ESTIMATORS, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
