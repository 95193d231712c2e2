"""Mechanisms and noise whose distributions are known exactly, and exact pmfs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from userdp.exact.pmf import Pmf, exact_pmf

if TYPE_CHECKING:
    from userdp.mechanisms.correlated_counts import CorrelatedCounts
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
    from userdp.mechanisms.key_bounds import KeyedSensitivity, keyed_rho, keyed_sensitivity
    from userdp.mechanisms.key_sums import KeySum
    from userdp.mechanisms.mode import PurePrivateMode
    from userdp.mechanisms.mode_approximate import ApproximatePrivateMode
    from userdp.mechanisms.partition_selection import PartitionSelection
    from userdp.mechanisms.permute_and_flip import PermuteAndFlip
    from userdp.mechanisms.planned_mode import PlannedPrivateMode
    from userdp.mechanisms.private_best_of import PrivateBestOf
    from userdp.mechanisms.private_range import PrivateRange, ReleasedRange
    from userdp.mechanisms.set_union import SetUnion
    from userdp.mechanisms.sparse_histogram import SparseHistogram
    from userdp.mechanisms.truncated_discrete_laplace import TruncatedDiscreteLaplace, tdlap_half_width

__all__ = [
    "ApproximatePrivateMode",
    "BiasedCoin",
    "Categorical",
    "CorrelatedCounts",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialMechanism",
    "Geometric",
    "GroupedExponentialMechanism",
    "GroupedScores",
    "KeySum",
    "KeyedSensitivity",
    "NegativeBinomial",
    "PartitionSelection",
    "PermuteAndFlip",
    "PlannedPrivateMode",
    "Pmf",
    "PrivateBestOf",
    "PrivateRange",
    "PurePrivateMode",
    "RandomSubset",
    "ReleasedRange",
    "SetUnion",
    "SparseHistogram",
    "TruncatedDiscreteLaplace",
    "UnboundedDiscreteLaplace",
    "UniformInteger",
    "exact_pmf",
    "keyed_rho",
    "keyed_sensitivity",
    "tdlap_half_width",
]

_NAMES = {
    "correlated_counts": "CorrelatedCounts",
    "discrete_gaussian": "DiscreteGaussian",
    "discrete_laplace": "DiscreteLaplace UnboundedDiscreteLaplace",
    "distributions": "BiasedCoin Categorical Geometric NegativeBinomial RandomSubset UniformInteger",
    "exponential": "ExponentialMechanism",
    "grouped_exponential": "GroupedExponentialMechanism GroupedScores",
    "key_sums": "KeySum",
    "mode": "PurePrivateMode",
    "mode_approximate": "ApproximatePrivateMode",
    "partition_selection": "PartitionSelection",
    "permute_and_flip": "PermuteAndFlip",
    "planned_mode": "PlannedPrivateMode",
    "private_best_of": "PrivateBestOf",
    "private_range": "PrivateRange ReleasedRange",
    "set_union": "SetUnion",
    "key_bounds": "KeyedSensitivity keyed_rho keyed_sensitivity",
    "sparse_histogram": "SparseHistogram",
    "truncated_discrete_laplace": "TruncatedDiscreteLaplace tdlap_half_width",
}
"""Which module has which of the names that need the compiled core."""
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    # Lazy, so that pmfs can be made, and reports verified, where the compiled core cannot be imported.
    if name not in _HOME:
        raise AttributeError(f"module 'userdp.mechanisms' has no attribute {name!r}")
    return getattr(import_module(f"userdp.mechanisms.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
