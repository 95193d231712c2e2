"""Mechanisms and distributions whose distribution is known exactly, and exact pmfs."""

from __future__ import annotations

from userdp.exact.pmf import Pmf, exact_pmf
from userdp.mechanisms.counts import Geometric, NegativeBinomial
from userdp.mechanisms.discrete_gaussian import DiscreteGaussian
from userdp.mechanisms.discrete_laplace import DiscreteLaplace, UnboundedDiscreteLaplace
from userdp.mechanisms.distributions import BiasedCoin, Categorical, RandomSubset, UniformInteger
from userdp.mechanisms.exponential import ExponentialMechanism
from userdp.mechanisms.grouped_exponential import GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.private_range import PrivateRange, ReleasedRange
from userdp.mechanisms.repeated_selection import PrivateBestOf
from userdp.mechanisms.truncated_discrete_laplace import TruncatedDiscreteLaplace, kappa

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
    "PrivateBestOf",
    "PrivateRange",
    "RandomSubset",
    "ReleasedRange",
    "TruncatedDiscreteLaplace",
    "UnboundedDiscreteLaplace",
    "UniformInteger",
    "exact_pmf",
    "kappa",
]
