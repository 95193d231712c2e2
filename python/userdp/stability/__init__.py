"""Stability by public randomness: users who learn alone, on their own rows, and mostly agree.

Users who run the same stable learner with the same public seed vote for one hypothesis, which a private selection then
finds (GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via Correlated Sampling", NeurIPS 2021). Everything
here is about how often users agree. Privacy never rests on it: see `userdp.selection` and `userdp.protocols` for what
protects them.
"""

from __future__ import annotations

from userdp.stability._agreement import agreement_from_stability, stability_from_agreement
from userdp.stability._audit import audit_stability
from userdp.stability._decision_lists import DecisionListQueries
from userdp.stability._laws import disagreement_probability, joint_distribution
from userdp.stability._learner import ClassLearner, StableLearner
from userdp.stability._list_stability import ListStabilityLearner
from userdp.stability._lists import (
    AccurateLists,
    ListLearner,
    PointLists,
    RowListLearner,
    VersionSpace,
    filter_examples,
    version_space_examples,
)
from userdp.stability._littlestone import LittlestoneLists, TournamentLearner
from userdp.stability._margin_perceptron import MarginPerceptronQueries
from userdp.stability._measure import AgreementEstimate, measure_agreement
from userdp.stability._parameters import (
    ListParameters,
    RepresentationParameters,
    list_parameters,
    representation_parameters,
)
from userdp.stability._queries import Oracle, StatisticalQueryAlgorithm
from userdp.stability._query_learner import StatisticalQueryLearner
from userdp.stability._query_parameters import QueryParameters, query_parameters
from userdp.stability._report import Enclosed, ItemStability, SeedStability, StabilityReport
from userdp.stability._representation import RepresentationLearner
from userdp.stability._rounding import SharedOffsetRounding
from userdp.stability._sampling import CorrelatedSampler
from userdp.stability._seed import PublicSeed

__all__ = [
    "AccurateLists",
    "AgreementEstimate",
    "ClassLearner",
    "CorrelatedSampler",
    "DecisionListQueries",
    "Enclosed",
    "ItemStability",
    "ListLearner",
    "ListParameters",
    "ListStabilityLearner",
    "LittlestoneLists",
    "MarginPerceptronQueries",
    "Oracle",
    "PointLists",
    "PublicSeed",
    "QueryParameters",
    "RepresentationLearner",
    "RepresentationParameters",
    "RowListLearner",
    "SeedStability",
    "SharedOffsetRounding",
    "StabilityReport",
    "StableLearner",
    "StatisticalQueryAlgorithm",
    "StatisticalQueryLearner",
    "TournamentLearner",
    "VersionSpace",
    "agreement_from_stability",
    "audit_stability",
    "disagreement_probability",
    "filter_examples",
    "joint_distribution",
    "list_parameters",
    "measure_agreement",
    "query_parameters",
    "representation_parameters",
    "stability_from_agreement",
    "version_space_examples",
]
