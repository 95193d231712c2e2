"""How far off the selections on a line are that `userdp.distributions` makes: by their law, as if sums were normal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from userdp.planning.chances import Floats, binomial
from userdp.planning.problem import NotPlanned, NotSimulated

DRAWS, SEED = 400, 17
MOST_RECORDS = 2**10
"""Of a user, of whom each number of examples on a side is looked at."""


def clipping(alpha: float, m: int) -> float:
    """Where a user's sum is clipped by default."""
    try:
        from userdp.learners.clipped_pairwise import clipping_bound
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    return float(clipping_bound(alpha, m, 1))


MOST_CELLS = 2**23
MOST_CANDIDATES = 2**14
"""Of all lines of a problem together, so that a plan takes seconds."""


@dataclass(frozen=True)
class Line:
    """Clipped totals at rising thresholds: mean and standard deviation for one user, falling from plus to minus."""

    means: Floats
    spreads: Floats
    sensitivity: float

    @classmethod
    def of(cls, chances: Floats, targets: Floats, m: int, tau: float) -> Line:
        """Of users' numbers of m examples beyond each threshold, which have a chance, above a target."""
        if m > MOST_RECORDS:
            raise NotSimulated(f"simulated for m up to {MOST_RECORDS} only")
        if len(chances) > MOST_CANDIDATES:
            raise NotSimulated(f"simulated for up to {MOST_CANDIDATES} candidates only: take a larger alpha")
        if len(chances) * (m + 1) > MOST_CELLS:
            raise NotSimulated(f"not simulated: {len(chances)} candidates of {m} records are too many to look at here")
        known, place = np.unique(np.round(chances, 9), return_inverse=True)
        rows = np.array([binomial(m, float(each)) for each in known])[place]
        sums = np.clip(np.arange(m + 1)[None, :] - m * targets[:, None], -tau, tau)
        means = (rows * sums).sum(axis=1)
        squares = (rows * (sums - means[:, None]) ** 2).sum(axis=1)
        return cls(means, np.sqrt(squares), min(2 * tau, m))

    def totals(self, n: int, normal: Floats) -> Floats:
        """For n users, as if the errors of sampling were normal and had one sign at all thresholds."""
        found: Floats = n * self.means + math.sqrt(n) * normal[:, None] * self.spreads
        return found

    def median_cell(self, n: int, epsilon: float, normal: Floats, uniform: Floats) -> Floats:
        """The cell between two thresholds, or beyond one end, where the total changes its sign."""
        totals = self.totals(n, normal)
        # A cell is as bad as the total above 0 at its right end, or below 0 at its left one.
        inner = np.maximum(totals[:, 1:], -totals[:, :-1])
        return self._drawn(np.hstack([totals[:, :1], inner, -totals[:, -1:]]), epsilon, uniform)

    def nearest_point(self, n: int, epsilon: float, normal: Floats, uniform: Floats) -> Floats:
        """The threshold itself whose total is nearest to 0; at the ends nothing is known of what is beyond."""
        totals = self.totals(n, normal)
        scores = np.abs(totals)
        scores[:, 0], scores[:, -1] = totals[:, 0], -totals[:, -1]
        return self._drawn(scores, epsilon, uniform)

    def _drawn(self, scores: Floats, epsilon: float, uniform: Floats) -> Floats:
        weights = np.exp(-epsilon / (2 * self.sensitivity) * (scores - scores.min(axis=1, keepdims=True)))
        upto = np.cumsum(weights, axis=1)
        found: Floats = (upto < uniform[:, None] * upto[:, -1:]).sum(axis=1).astype(np.float64)
        return found


@lru_cache(maxsize=8)
def draws(searches: int) -> tuple[Floats, Floats]:
    """Sampling errors and places in the law, of shape (searches, draws)."""
    rng = np.random.default_rng([SEED, searches])
    return rng.standard_normal((searches, DRAWS)), rng.random((searches, DRAWS))


def nearest_distributions(shares: Floats) -> Floats:
    """The nearest probabilities of each row: the same is taken from all entries, and none is left below 0."""
    falling = np.sort(shares, axis=1)[:, ::-1]
    excess = (np.cumsum(falling, axis=1) - 1) / np.arange(1, shares.shape[1] + 1)
    last = (falling > excess).sum(axis=1) - 1
    found: Floats = np.maximum(shares - excess[np.arange(len(shares)), last][:, None], 0)
    return found


GRID = np.linspace(-12, 12, 481)


def distance_of_normals(shifts: Floats, ratios: Floats) -> Floats:
    """Total variation from the standard normal distribution, by the trapezoid rule."""
    others = np.exp(-(((GRID - shifts[:, None]) / ratios[:, None]) ** 2) / 2) / ratios[:, None]
    apart = np.abs(np.exp(-(GRID**2) / 2) - others).sum(axis=1) * ((GRID[1] - GRID[0]) / math.sqrt(8 * math.pi))
    found: Floats = np.minimum(apart, 1.0)
    return found
