"""A private search for the radius that about half of the users' vectors are within."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from userdp.mechanisms import ExponentialMechanism

STEPS = range(-8, 7)
"""Candidates are the expected radius times 2**(step / 4): from a quarter of it to 2.8 times it."""

COARSENESS = 1.05
"""Candidates are 19% apart: how much wider than the median to clip, so that half a step too low does no harm."""


@dataclass(frozen=True)
class RadiusSearch:
    """The median distance of the users' vectors from a released center, by the exponential mechanism.

    Parameters
    ----------
    epsilon : Fraction
        Of one search. It has epsilon-bounded range, and so is epsilon**2 / 8 zCDP.

    Notes
    -----
    Replacing a user changes how many vectors are within a radius by at most 1, and the score, which is
    |2 count - n_users|, by at most 2. Users without rows are within none.
    """

    epsilon: Fraction

    @cached_property
    def choice(self) -> ExponentialMechanism:
        """Takes `scores` and gives the index of a candidate."""
        return ExponentialMechanism(epsilon=self.epsilon, sensitivity=2)

    @property
    def n_candidates(self) -> int:
        """How many radii there are to choose from."""
        return len(STEPS)

    def candidates(self, expected: float) -> npt.NDArray[np.float64]:
        """The radii in increasing order, for an expected distance."""
        return expected * np.exp2(np.array(STEPS) / 4)

    @staticmethod
    def scores(counts: npt.NDArray[np.int64], n_users: int) -> npt.NDArray[np.int64]:
        """Lower is better: how far the number of vectors within each candidate is from half of the users."""
        scores: npt.NDArray[np.int64] = np.abs(2 * np.asarray(counts, dtype=np.int64) - n_users)
        return scores

    @staticmethod
    def radius(median: float, kappa: float, dimension: int) -> float:
        """Where to clip when half of the vectors are within `median`.

        For normal vectors, kappa times the root mean square of their distance.
        """
        ratio: float = (1 - 2 / (9 * dimension)) ** 1.5  # median over root mean square, after Wilson and Hilferty
        return COARSENESS * kappa * median / ratio


def search_epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon of 40 fraction bits with epsilon**2 / 8 <= rho."""
    return Fraction(math.isqrt(math.floor(8 * rho * 2**80)), 2**40)
