"""Plans from public numbers: what no algorithm can beat, which method to take, and how many people are needed.

Nothing here sees data.
"""

from __future__ import annotations

from userdp.planning._comparison import Comparison, Prediction
from userdp.planning._complexity import Plan, user_complexity
from userdp.planning._heterogeneity import HeterogeneityBound, heterogeneity_bound
from userdp.planning._lower_bounds import LowerBound, lower_bound
from userdp.planning._methods import compare_methods

__all__ = [
    "Comparison",
    "HeterogeneityBound",
    "LowerBound",
    "Plan",
    "Prediction",
    "compare_methods",
    "heterogeneity_bound",
    "lower_bound",
    "user_complexity",
]
