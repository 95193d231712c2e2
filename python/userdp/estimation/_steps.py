"""Selections along a line, where comparing neighbours is enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.learners._clipped import ClippedSelection
from userdp.learners._privacy import ExactEpsilon

__all__ = ["Median", "Proportion"]

Integers = npt.NDArray[np.int64]

CELLS = 2**24
"""Votes that are held at a time."""


class Proportion(ClippedSelection):
    """Choose the probability of an event from 0, 1/N, ..., 1 by Scheffe sets.

    Among Bernoulli distributions the set where a is likelier than b is the event if a > b, and its complement if a < b,
    and psi_ab depends on a and on this set only, with opposite signs for the two. So the score of a is the larger of
    the clipped total of a k_i / N - (times of the event) over users i, and its negative (one of them at the ends).

    Parameters
    ----------
    unit : int
        N. Votes are in units of 1 / N.
    epsilon, m, tau
        As for `ClippedSelection`.
    """

    def __init__(self, unit: int, *, epsilon: ExactEpsilon, m: int, tau: Any) -> None:
        super().__init__(unit + 1, epsilon=epsilon, m=m, tau=tau, unit=unit, spread=unit)
        self.unit = unit

    def scores(self, counts: Integers, sizes: Integers) -> Integers:
        """Scores from how often each user has the event, and how many examples."""
        self.check_size(len(counts))
        kinds, users = np.unique(np.stack([sizes, counts]), axis=1, return_counts=True)
        totals = np.zeros(self.n_candidates, dtype=np.int64)
        masses = np.arange(self.n_candidates)
        together = max(1, CELLS // self.n_candidates)
        for first in range(0, kinds.shape[1], together):
            size, count = kinds[:, first : first + together, None]
            clipped = np.clip(masses * size - self.unit * count, -self.tau, self.tau)
            totals += users[first : first + together] @ clipped
        # At 0 there is no smaller candidate to be compared with, at 1 no larger one.
        scores = np.abs(totals)
        scores[0], scores[-1] = -totals[0], totals[-1]
        return scores


class Median(ClippedSelection):
    """Choose which of K cells of a line holds the median.

    The cells are the candidates: cell a lies between thresholds a - 1 and a. An example speaks against a, compared with
    b, by psi_ab = 1/2 - [the example is on a's side of the threshold next to a, towards b]. The threshold next to a is
    the one that speaks most against a among those towards b, so this is ClippedPairwiseEM with sides of the midpoint,
    computed from neighbours alone: with f(t) the clipped total of k_i - 2 #{examples <= t} over users i, which never
    rises with t, the score of a is max(f(t_a), -f(t_(a-1))), in halves of an example.

    Parameters
    ----------
    thresholds : ndarray with shape (K - 1,)
        Public, not decreasing.
    epsilon, m, tau
        As for `ClippedSelection`.
    """

    def __init__(self, thresholds: npt.NDArray[np.float64], *, epsilon: ExactEpsilon, m: int, tau: Any) -> None:
        super().__init__(len(thresholds) + 1, epsilon=epsilon, m=m, tau=tau, unit=2, spread=2)
        self.thresholds = thresholds

    def scores(self, values: npt.NDArray[np.float64], users: npt.NDArray[np.uint32], n_users: int) -> Integers:
        """Scores from people's numbers, none of them NaN."""
        self.check_size(n_users)
        cells = np.searchsorted(self.thresholds, values)
        sizes = np.bincount(users, minlength=n_users)
        order = np.lexsort((cells, users))
        rank = np.arange(1, len(users) + 1) - (np.cumsum(sizes) - sizes)[users[order]]
        votes = sizes[users[order]] - 2 * rank
        # What the total loses when the threshold passes an example that is its user's r-th smallest.
        loss = np.clip(votes + 2, -self.tau, self.tau) - np.clip(votes, -self.tau, self.tau)
        losses = np.zeros(self.n_candidates, dtype=np.int64)
        np.add.at(losses, cells[order], loss)
        totals = np.clip(sizes, None, self.tau).sum() - np.cumsum(losses)
        # There is nothing below the first cell and nothing above the last one.
        return np.concatenate([totals[:1], np.maximum(totals[1:-1], -totals[:-2]), -totals[-2:-1]])
