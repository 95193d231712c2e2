"""Stability by public randomness: users who run the same learner by the same public seed mostly agree.

A private selection then finds what they agree on (GKM21: Ghazi, Kumar, Manurangsi, "User-Level Private Learning via
Correlated Sampling", NeurIPS 2021). Everything here is about how often users agree. Privacy never rests on it: see
`userdp.selection` and `userdp.protocols` for what protects them.
"""

from __future__ import annotations

from userdp.stability._decision_lists import DecisionListQueries
from userdp.stability._learner import ClassLearner, StableLearner
from userdp.stability._margin_perceptron import MarginPerceptronQueries
from userdp.stability._queries import Oracle, StatisticalQueryAlgorithm
from userdp.stability._query_learner import StatisticalQueryLearner
from userdp.stability._query_parameters import QueryParameters, query_parameters
from userdp.stability._seed import PublicSeed

__all__ = [
    "ClassLearner",
    "DecisionListQueries",
    "MarginPerceptronQueries",
    "Oracle",
    "PublicSeed",
    "QueryParameters",
    "StableLearner",
    "StatisticalQueryAlgorithm",
    "StatisticalQueryLearner",
    "query_parameters",
]
