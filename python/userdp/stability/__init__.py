"""Stability by public randomness: users who learn alone, on their own rows, and mostly agree.

Users who run the same stable learner with the same public seed vote for one hypothesis, which a private selection then
finds (GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling", NeurIPS 2021). Everything
here is about how often users agree. Privacy never rests on it: see `userdp.mechanisms` and `userdp.protocols` for what
protects them.
"""

from __future__ import annotations

from userdp.exact.numbers import Interval
from userdp.report import AgreementEstimate, ItemStability, SeedStability, StabilityReport
from userdp.stability.agreement import (
    agreement_from_stability,
    measure_agreement,
    stability_from_agreement,
)
from userdp.stability.audit import audit_stability
from userdp.stability.decision_lists import DecisionListQueries
from userdp.stability.learner import ClassLearner, StableLearner
from userdp.stability.lists import (
    AccurateLists,
    ListLearner,
    ListStabilityLearner,
    VersionSpace,
    filter_examples,
    version_space_examples,
)
from userdp.stability.littlestone import LittlestoneLists, TournamentLearner
from userdp.stability.margin_perceptron import MarginPerceptronQueries
from userdp.stability.parameters import (
    ListParameters,
    QueryParameters,
    RepresentationParameters,
    list_parameters,
    query_parameters,
    representation_parameters,
)
from userdp.stability.representation import RepresentationLearner
from userdp.stability.statistical_queries import Oracle, StatisticalQueryAlgorithm, StatisticalQueryLearner

__all__ = [
    "AccurateLists",
    "AgreementEstimate",
    "ClassLearner",
    "DecisionListQueries",
    "Interval",
    "ItemStability",
    "ListLearner",
    "ListParameters",
    "ListStabilityLearner",
    "LittlestoneLists",
    "MarginPerceptronQueries",
    "Oracle",
    "QueryParameters",
    "RepresentationLearner",
    "RepresentationParameters",
    "SeedStability",
    "StabilityReport",
    "StableLearner",
    "StatisticalQueryAlgorithm",
    "StatisticalQueryLearner",
    "TournamentLearner",
    "VersionSpace",
    "agreement_from_stability",
    "audit_stability",
    "filter_examples",
    "list_parameters",
    "measure_agreement",
    "query_parameters",
    "representation_parameters",
    "stability_from_agreement",
    "version_space_examples",
]
