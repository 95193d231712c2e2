"""Mechanisms and distributions whose distribution is known exactly, and exact pmfs."""

from __future__ import annotations

from userdp.exact.pmf import Pmf, exact_pmf
from userdp.mechanisms.discrete_gaussian import DiscreteGaussian
from userdp.mechanisms.discrete_laplace import DiscreteLaplace, UnboundedDiscreteLaplace
from userdp.mechanisms.distributions import (
    BiasedCoin,
    Categorical,
    Geometric,
    NegativeBinomial,
    RandomSubset,
    UniformInteger,
)
from userdp.mechanisms.exponential import ExponentialMechanism
from userdp.mechanisms.grouped_exponential import GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.mode import PurePrivateMode
from userdp.mechanisms.mode_approximate import ApproximatePrivateMode
from userdp.mechanisms.private_best_of import PrivateBestOf
from userdp.mechanisms.private_range import PrivateRange, ReleasedRange
from userdp.mechanisms.truncated_discrete_laplace import TruncatedDiscreteLaplace, tdlap_half_width

__all__ = [
    "ApproximatePrivateMode",
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
    "PurePrivateMode",
    "RandomSubset",
    "ReleasedRange",
    "TruncatedDiscreteLaplace",
    "UnboundedDiscreteLaplace",
    "UniformInteger",
    "exact_pmf",
    "tdlap_half_width",
]
