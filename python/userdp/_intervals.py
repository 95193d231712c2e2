"""Confidence intervals for a probability that was observed."""

from __future__ import annotations

import math

import numpy as np

from userdp._numbers import Bounds

__all__ = ["clopper_pearson"]


def clopper_pearson(successes: int, trials: int, confidence: float) -> Bounds:
    """The interval outside which the observation has probability at most (1 - confidence) / 2 on either side."""
    tail = (1 - confidence) / 2
    steps = np.arange(1, trials + 1, dtype=np.float64)
    coefficients = np.concatenate([[0.0], np.cumsum(np.log(trials + 1 - steps) - np.log(steps))])

    def at_least(p: float, k: int) -> float:
        i = np.arange(k, trials + 1)
        return float(np.exp(coefficients[k:] + i * math.log(p) + (trials - i) * math.log1p(-p)).sum())

    def root(k: int, level: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if at_least(middle, k) < level else (low, middle)
        return low

    lower = 0.0 if successes == 0 else root(successes, tail)
    upper = 1.0 if successes == trials else root(successes + 1, 1 - tail)
    return Bounds(lower, upper)
