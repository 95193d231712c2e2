"""From item level to user level: run an item-level private algorithm on a subsample, made stable by `DelStab`.

An algorithm A0 that is (epsilon'', delta')-DP for items becomes one for users ([GKKMMZ23, Theorem 10] and [GKKMMZ23,
Theorem 11]): it is run on a uniform subset of everybody's items (`SubsampledAlgorithm`), and the result is released
through DelStab. Privacy rests on DelStab alone, whatever A0 does; `plan_user_level` and `empirical_stability` say how
many users make it useful.
"""

from __future__ import annotations

from userdp.algorithms.distributions import simplex_grid
from userdp.item_to_user.deletion_stability import (
    EmpiricalStability,
    StabilityLevel,
    deletion_level,
    empirical_stability,
    generalization_level,
    largest_item_epsilon,
)
from userdp.item_to_user.generalization import audit_perfect_generalization
from userdp.item_to_user.plan import (
    UserLevelPlan,
    plan_user_level,
    suggested_item_level,
    trivial_users,
    user_level_algorithm,
)
from userdp.item_to_user.subsampled import SubsampledAlgorithm
from userdp.report import GeneralizationReport

__all__ = [
    "EmpiricalStability",
    "GeneralizationReport",
    "StabilityLevel",
    "SubsampledAlgorithm",
    "UserLevelPlan",
    "audit_perfect_generalization",
    "deletion_level",
    "empirical_stability",
    "generalization_level",
    "largest_item_epsilon",
    "plan_user_level",
    "simplex_grid",
    "suggested_item_level",
    "trivial_users",
    "user_level_algorithm",
]
