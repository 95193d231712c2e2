"""Plans from public numbers: what no algorithm can beat, which method to take, and how many users are needed.

Nothing here sees data.
"""

from __future__ import annotations

from userdp.planning.bounds import LowerBound
from userdp.planning.comparison import compare_methods
from userdp.planning.fano import fano_users, users_from_item_level
from userdp.planning.lower_bounds import HeterogeneityBound, heterogeneity_bound, lower_bound
from userdp.planning.plans import Change, Plan, plan
from userdp.planning.questions import Answer, accuracy_reached, epsilon_needed, records_needed
from userdp.planning.rates import RATES, Rate, RateValue, rate
from userdp.planning.regimes import Regime, regime_map
from userdp.planning.sample_size import Figure, SampleSize, user_complexity
from userdp.planning.selections import SelectionUsers, selection_users
from userdp.report import Comparison, Prediction

__all__ = [
    "RATES",
    "Answer",
    "Change",
    "Comparison",
    "Figure",
    "HeterogeneityBound",
    "LowerBound",
    "Plan",
    "Prediction",
    "Rate",
    "RateValue",
    "Regime",
    "SampleSize",
    "SelectionUsers",
    "accuracy_reached",
    "compare_methods",
    "epsilon_needed",
    "fano_users",
    "heterogeneity_bound",
    "lower_bound",
    "plan",
    "rate",
    "records_needed",
    "regime_map",
    "selection_users",
    "user_complexity",
    "users_from_item_level",
]
