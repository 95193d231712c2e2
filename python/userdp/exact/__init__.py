"""Exact numbers: privacy levels, probabilities, finite distributions, and how they are written down."""

from __future__ import annotations

from userdp.exact.numbers import Bounds, Interval, LogRatio
from userdp.exact.pmf import Pmf, exact_pmf

__all__ = ["Bounds", "Interval", "LogRatio", "Pmf", "exact_pmf"]
