"""Draws against distributions: what the statistical tests of the samplers share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from oracle.statistics import ALARM, chi_square, chi_square_limit, over_one_denominator, surprises
from userdp.exceptions import InsecureRandomnessWarning

DRAWS = 4_000_000
LOOSE = 1e-9
"""The false-alarm rate of tests whose draws differ from run to run."""

Draws = npt.NDArray[np.int64]


def seeded(sample: Callable[..., Any], *arguments: Any, size: int = DRAWS, seed: int = 1) -> Draws:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        return np.asarray(sample(*arguments, size=size, random_state=seed))


def histogram(draws: Draws, masses: Sequence[Fraction], lowest: int = 0) -> list[int]:
    counts = np.bincount(draws - lowest, minlength=len(masses)).tolist()
    assert len(counts) == len(masses), "a draw beyond the support"
    return counts


def assert_follows(counts: Sequence[int], masses: Sequence[Fraction], alarm: float = ALARM) -> None:
    """All outcomes, all tails, and chi-square over cells that expect 1000 draws or more."""
    worst, limit = surprises(counts, masses, alarm)
    statistic, degrees = chi_square(counts, masses, 1000)
    print(f"surprise {worst:.1f}, limit {limit:.1f}; chi-square {statistic:.1f} at {degrees} degrees")
    assert worst <= limit
    if alarm == ALARM:
        assert statistic <= chi_square_limit(degrees)


def follows(counts: Sequence[int], masses: Sequence[Fraction]) -> bool:
    worst, limit = surprises(counts, masses)
    return worst <= limit


def with_a_bias(draws: Draws, outcome: int) -> Draws:
    """One draw in a thousand replaced by an outcome."""
    changed = draws.copy()
    changed[::1000] = outcome
    return changed


def assert_near(pmf: Sequence[Fraction], ideal: Sequence[Fraction], distance: Fraction) -> None:
    units, whole = over_one_denominator([*pmf, *ideal])
    assert sum(units[: len(pmf)]) == whole
    apart = sum(abs(a - b) for a, b in zip(units[: len(pmf)], units[len(pmf) :], strict=True))
    total_variation = Fraction(apart, 2 * whole)
    print(f"total variation distance to the ideal distribution {float(total_variation):.3g}")
    assert total_variation <= distance
