"""Exact output distributions. The samplers that draw from them are added by later releases."""

from __future__ import annotations

from userdp._pmf import Pmf, exact_pmf

__all__ = ["Pmf", "exact_pmf"]
