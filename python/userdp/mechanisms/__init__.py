"""Mechanisms and laws whose distribution is known exactly, and exact pmfs."""

from __future__ import annotations

from userdp._pmf import Pmf, exact_pmf
from userdp.mechanisms._categorical import Categorical
from userdp.mechanisms._coin import BiasedCoin
from userdp.mechanisms._counts import Geometric, NegativeBinomial
from userdp.mechanisms._discrete_gaussian import DiscreteGaussian
from userdp.mechanisms._discrete_laplace import DiscreteLaplace
from userdp.mechanisms._exponential import ExponentialMechanism
from userdp.mechanisms._grouped_exponential import GroupedExponentialMechanism
from userdp.mechanisms._grouped_scores import GroupedScores
from userdp.mechanisms._private_range import PrivateRange, ReleasedRange
from userdp.mechanisms._repeated_selection import RepeatedSelection
from userdp.mechanisms._truncated_discrete_laplace import TruncatedDiscreteLaplace, kappa
from userdp.mechanisms._unbounded_discrete_laplace import UnboundedDiscreteLaplace
from userdp.mechanisms._uniform import RandomSubset, UniformInteger

__all__ = [
    "BiasedCoin",
    "Categorical",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Geometric",
    "GroupedExponentialMechanism",
    "GroupedScores",
    "NegativeBinomial",
    "Pmf",
    "PrivateRange",
    "RandomSubset",
    "ReleasedRange",
    "RepeatedSelection",
    "TruncatedDiscreteLaplace",
    "UnboundedDiscreteLaplace",
    "UniformInteger",
    "exact_pmf",
    "kappa",
]
