"""Exact numbers: privacy levels, probabilities, finite distributions, and how they are written down."""

from __future__ import annotations

from userdp.exact.numbers import Bounds, LogRatio
from userdp.exact.pmf import Pmf, exact_pmf

__all__ = ["Bounds", "LogRatio", "Pmf", "exact_pmf"]
