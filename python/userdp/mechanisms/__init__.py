"""Mechanisms whose output distribution is known exactly, and exact pmfs."""

from __future__ import annotations

from userdp._pmf import Pmf, exact_pmf
from userdp.mechanisms._discrete_laplace import DiscreteLaplace
from userdp.mechanisms._truncated_discrete_laplace import TruncatedDiscreteLaplace, kappa

__all__ = ["DiscreteLaplace", "Pmf", "TruncatedDiscreteLaplace", "exact_pmf", "kappa"]
