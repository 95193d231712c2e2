"""DelStab: from an algorithm on a group of users to one that is private for each of them.

DelStab leaves a public number of users out, checks that nobody's presence matters on what is kept, and either runs the
algorithm there or answers `BOTTOM`. The algorithm itself needs no privacy of its own.

Source: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per User"
(NeurIPS 2023): [GKKMMZ23, Algorithm 1]; privacy proofs of all calibrations in docs/proofs/delstab_*.md.
"""

from __future__ import annotations

from userdp.algorithms.finite import BOTTOM
from userdp.delstab.delstab import DelStab, PmfBounds
from userdp.delstab.inner_budgets import InnerBudgetChoice, InnerBudgetComparison, compare_inner_budgets
from userdp.report import Explanation

__all__ = [
    "BOTTOM",
    "DelStab",
    "Explanation",
    "InnerBudgetChoice",
    "InnerBudgetComparison",
    "PmfBounds",
    "compare_inner_budgets",
]
