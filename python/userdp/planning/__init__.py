"""Plans from public numbers: what no algorithm can beat, which method to take, and how many people are needed.

Nothing here sees data.
"""

from __future__ import annotations

from userdp.planning._heterogeneity import HeterogeneityBound, heterogeneity_bound
from userdp.planning._lower_bounds import LowerBound, lower_bound

__all__ = ["HeterogeneityBound", "LowerBound", "heterogeneity_bound", "lower_bound"]
