"""Local deletion DP: whether an algorithm's output distribution is stable when r users are deleted, whichever they are.

An algorithm A is (r, epsilon, delta)-LDDP at a dataset x when the distributions of A on x without S and on x without S'
are (epsilon, delta)-indistinguishable for all sets S, S' of r users ([GKKMMZ23, Definition 16]: Ghazi, Kamath, Kumar,
Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per User", NeurIPS 2023). `check_lddp`
decides it exactly. It is a diagnostic: it looks at the data it is given, and its witness names users.
"""

from __future__ import annotations

from userdp.lddp.check import check_lddp
from userdp.lddp.pairwise import PairwiseResult, pairwise_indistinguishable, pairwise_max_divergence
from userdp.report import LDDPResult

__all__ = ["LDDPResult", "PairwiseResult", "check_lddp", "pairwise_indistinguishable", "pairwise_max_divergence"]
