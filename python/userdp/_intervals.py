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

    def lower(k: int) -> float:
        if k == 0:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if at_least(middle, k) < tail else (low, middle)
        return low

    # The upper end by what it leaves: a float has no room for a small tail below 1.
    return Bounds(lower(successes), 1 - lower(trials - successes))
