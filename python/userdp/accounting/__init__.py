"""Accounting: what several releases on the same users cost together, certified.

Every function takes privacy parameters exactly and returns numbers that are exact where the mathematics stays rational,
and rounded toward less privacy claimed where it does not. Costs and losses say for which neighbors they are.
"""

from __future__ import annotations

from userdp.accounting.calibration import dimension_epsilon, largest_epsilon_each
from userdp.accounting.composition import (
    compose_advanced,
    compose_basic,
    compose_optimal,
    optimal_delta,
    optimal_delta_of_groups,
)
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.gaussian_budget import gaussian_delta, largest_mu2
from userdp.accounting.group_privacy import (
    PrivacyParameters,
    group_privacy,
    subsampling_amplification,
    subsampling_population,
    triangle_inequality,
    user_epsilon,
)
from userdp.accounting.ledger import LedgerEntry, PrivacyLedger
from userdp.accounting.peer_accountants import ClaimCheck, check_claims, from_dp_accounting, to_dp_accounting
from userdp.accounting.privacy_loss import PrivacyLossDistribution
from userdp.accounting.slots import LedgerSlot
from userdp.accounting.zcdp import (
    bounded_range_to_mu2,
    bounded_range_to_zcdp,
    largest_rho,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_group_privacy,
)

__all__ = [
    "ClaimCheck",
    "LedgerEntry",
    "LedgerSlot",
    "PrivacyCost",
    "PrivacyLedger",
    "PrivacyLossDistribution",
    "PrivacyParameters",
    "bounded_range_to_mu2",
    "bounded_range_to_zcdp",
    "check_claims",
    "compose_advanced",
    "compose_basic",
    "compose_optimal",
    "dimension_epsilon",
    "from_dp_accounting",
    "gaussian_delta",
    "group_privacy",
    "largest_epsilon_each",
    "largest_mu2",
    "largest_rho",
    "optimal_delta",
    "optimal_delta_of_groups",
    "pure_to_zcdp",
    "subsampling_amplification",
    "subsampling_population",
    "to_dp_accounting",
    "triangle_inequality",
    "user_epsilon",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_group_privacy",
]
