"""Selections along a line (proportions and medians), and searches of locations and scales made of them.

Why their scores are those of all pairs, and how accurate they are: docs/proofs/distributions.md, section "Lines".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.distributions.covers import LARGEST_LINE, refuse_beyond, users_of_selection
from userdp.estimators.plan import ExactEpsilon, Parts
from userdp.exact.numbers import counted
from userdp.learners.clipped_pairwise import ClippedScoreEM, clipping_bound
from userdp.mechanisms.composed import Sampler

Integers = npt.NDArray[np.int64]

CELLS = 2**24
"""Votes that are held at a time."""


class ProportionSelection(ClippedScoreEM):
    """Choose the probability of an event from 0, 1/N, ..., 1 by Scheffe sets."""

    # The score of a is the larger of the clipped total of a k_i / N - (times of the event) over users i, and its
    # negative.

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


class MedianSelection(ClippedScoreEM):
    """Choose which of K cells of a line holds the median, for public thresholds that do not decrease."""

    # Cell a lies between thresholds a - 1 and a. With f(t) the clipped total of k_i - 2 #{examples <= t} over users i,
    # the score of a is max(f(t_a), -f(t_(a-1))), in halves of an example.

    def __init__(self, thresholds: npt.NDArray[np.float64], *, epsilon: ExactEpsilon, m: int, tau: Any) -> None:
        super().__init__(len(thresholds) + 1, epsilon=epsilon, m=m, tau=tau, unit=2, spread=2)
        self.thresholds = thresholds

    def scores(self, values: npt.NDArray[np.float64], users: npt.NDArray[np.uint32], n_users: int) -> Integers:
        """Scores from users' numbers, none of them NaN."""
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


Floats = npt.NDArray[np.float64]

FINE_POINTS = 4096
"""A line with more points than this is searched in rounds."""
COARSE_POINTS = 65
COARSE_ALPHA = 0.5
LARGEST_BOUND = 2.0**48
THREE_QUARTERS = 0.6744897501960817
"""The quantile of the standard normal distribution, and the median of its absolute value."""


@dataclass(frozen=True)
class UserSamples:
    """Numbers, none of them NaN, and the user that each is of."""

    values: Floats
    users: npt.NDArray[np.uint32]
    n_users: int
    m: int


@dataclass(frozen=True)
class _Round:
    """Points at a distance from each other, symmetric about what the round before selected."""

    name: str
    alpha: float
    step: float
    n_points: int

    def offset(self, index: float) -> float:
        return (index - (self.n_points - 1) / 2) * self.step

    def select(self, draw: Sampler, budget: Parts, center: float, samples: UserSamples) -> int:
        thresholds = center + (np.arange(self.n_points - 1) + 0.5 - (self.n_points - 1) / 2) * self.step
        return _median(draw, thresholds, self.alpha, budget, self.name, samples)

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return users_of_selection(self.n_points, self.alpha, budget[self.name], beta, m)


class LocationSearch:
    """The mean of normal numbers with a standard deviation in [1, scale] and a mean in [-bound, bound]."""

    # Candidates are multiples of 0.2 sqrt(2 pi) alpha. A line with too many of them is searched in rounds: of 65 points
    # across the interval that is left, one is selected at accuracy 1/2, which leaves h / 2 + 0.675 scale on both sides.

    def __init__(self, name: str, bound: float, scale: float, alpha: float) -> None:
        step = 0.2 * math.sqrt(2 * math.pi) * alpha
        if bound > LARGEST_BOUND * step:
            raise ValueError(
                f"mean_bound must be at most 2**48 steps of the cover, for floats; it is {bound / step:.3g}"
            )
        self.rounds: list[_Round] = []
        while 2 * bound / step > FINE_POINTS and bound > 2 * scale:
            coarse = 2 * bound / (COARSE_POINTS - 1)
            self.rounds.append(_Round(f"{name}, round {len(self.rounds)}", COARSE_ALPHA, coarse, COARSE_POINTS))
            bound = coarse / 2 + THREE_QUARTERS * scale
        n_points = max(2, math.ceil(2 * bound / step) + 1)
        refuse_beyond(n_points, LARGEST_LINE, "the cover of a line", "use a larger alpha")
        self.rounds.append(_Round(f"{name}, location", alpha, step, n_points))
        coarse_shares: Mapping[str, Fraction] = {part.name: Fraction(1) for part in self.rounds[:-1]}
        self.shares = {**coarse_shares, self.rounds[-1].name: Fraction(2)}

    def draw(self, draw: Sampler, budget: Parts, samples: UserSamples) -> tuple[int, ...]:
        """The point that is selected in each round."""
        selected: tuple[int, ...] = ()
        for part in self.rounds:
            selected = (*selected, part.select(draw, budget, self.value(selected), samples))
        return selected

    def value(self, selected: tuple[int, ...]) -> float:
        """The location that points of the first rounds stand for."""
        return sum(part.offset(index) for part, index in zip(self.rounds, selected, strict=False))

    def outcomes(self) -> Iterable[tuple[int, ...]]:
        return product(*(range(part.n_points) for part in self.rounds))

    def n_outcomes(self) -> int:
        return counted(*((part.n_points, 1) for part in self.rounds))

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return max(part.users_needed(budget, beta / len(self.rounds), m) for part in self.rounds)


class ScaleSearch:
    """The standard deviation, in [1, scale], of normal numbers with a known center."""

    # Candidates are powers of e**(0.1 alpha) at most, compared by how many examples lie within 0.674 sqrt(s_a s_b) of
    # the center, where half of them do for a standard deviation between s_a and s_b.

    def __init__(self, name: str, scale: float, alpha: float) -> None:
        self.name, self.alpha = name, alpha
        self.n_points = max(2, math.ceil(10 * math.log(scale) / alpha) + 1)
        refuse_beyond(self.n_points, LARGEST_LINE, "the cover of scales", "use a larger alpha")
        self.ratio = math.log(scale) / (self.n_points - 1)
        self.shares = {name: Fraction(2)}

    def draw(self, draw: Sampler, budget: Parts, center: float, samples: UserSamples) -> int:
        """The power that is selected."""
        halves = np.arange(self.n_points - 1) + 0.5
        distances = UserSamples(np.abs(samples.values - center), samples.users, samples.n_users, samples.m)
        return _median(draw, THREE_QUARTERS * np.exp(halves * self.ratio), self.alpha, budget, self.name, distances)

    def value(self, selected: int) -> float:
        """The standard deviation."""
        return math.exp(selected * self.ratio)

    def outcomes(self) -> Iterable[int]:
        return range(self.n_points)

    def n_outcomes(self) -> int:
        return self.n_points

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return users_of_selection(self.n_points, self.alpha, budget[self.name], beta, m)


def _median(
    draw: Sampler, thresholds: npt.NDArray[Any], alpha: float, budget: Parts, name: str, samples: UserSamples
) -> int:
    tau = clipping_bound(alpha, samples.m, 1)
    step = MedianSelection(thresholds, epsilon=budget[name], m=samples.m, tau=tau)
    return step.choose(draw, step.scores(samples.values, samples.users, samples.n_users))
