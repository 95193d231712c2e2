"""Mechanisms of least loss in small worlds, with proofs that there are no better ones.

Solving needs highspy (``pip install 'userdp[optimal]'``); certificates are read and verified without it.
"""

from __future__ import annotations

from userdp.optimal.gap import OptimalityGap, optimality_gap
from userdp.optimal.mechanism import OptimalMechanism, optimal_mechanism
from userdp.optimal.selection import OptimalSelection, agreement_certificate
from userdp.optimal.sums import OptimalSumMechanism, optimal_sum_mechanism

__all__ = [
    "OptimalMechanism",
    "OptimalSelection",
    "OptimalSumMechanism",
    "OptimalityGap",
    "agreement_certificate",
    "optimal_mechanism",
    "optimal_sum_mechanism",
    "optimality_gap",
]
