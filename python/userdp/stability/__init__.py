"""Learners whose outcome is stable, and how stable they are: what users have in common without sharing data.

Users who run the same stable learner on their own rows, with the same public randomness, mostly agree on one
hypothesis; a private selection then finds it (GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via
Correlated Sampling", NeurIPS 2021).
"""

from __future__ import annotations

from userdp.stability._decision_lists import DecisionListQueries
from userdp.stability._learner import ClassLearner, StableLearner
from userdp.stability._margin_perceptron import MarginPerceptronQueries
from userdp.stability._queries import Oracle, StatisticalQueryAlgorithm
from userdp.stability._query_learner import StatisticalQueryLearner
from userdp.stability._query_parameters import QueryParameters, query_parameters

__all__ = [
    "ClassLearner",
    "DecisionListQueries",
    "MarginPerceptronQueries",
    "Oracle",
    "QueryParameters",
    "StableLearner",
    "StatisticalQueryAlgorithm",
    "StatisticalQueryLearner",
    "query_parameters",
]
