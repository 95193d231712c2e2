"""The iterated clipped mean: clip to a ball around the last released center, release, shrink the ball, repeat."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget
from userdp.exact.numbers import counted
from userdp.means.plan import Floats, MeanMethod, MeanProblem
from userdp.means.private_radius import RadiusSearch
from userdp.means.rounds import GaussianRounds, LaplaceRounds, RoundNoise, RoundPlan, one_round, planned_rounds
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

SEARCH_SHARE = Fraction(3, 100)
"""Of the budget, for a private radius."""


def plan_gaussian(problem: MeanProblem) -> MeanMethod:
    """One round around 0 in which nobody is clipped: the Gaussian mechanism on the mean of the users' means."""
    if not problem.delta:
        raise ValueError("method='gaussian' needs delta > 0; with delta=0 use 'laplace', 'iterated' or 'auto'")
    noise = GaussianRounds.of(problem, Fraction(0))
    return IteratedMean("gaussian", problem, noise, one_round(problem.ball, noise.size()))


def plan_iterated(problem: MeanProblem) -> MeanMethod:
    """As many rounds as the predicted error asks for, with the noise that it asks for.

    Discrete Laplace noise for delta = 0; with a delta it is still the better one in few dimensions, and then the
    release is pure. Discrete Gaussian noise otherwise, and for a part of an account in zCDP.
    """
    search_share = SEARCH_SHARE if problem.private_radius else Fraction(0)
    if problem.rho is not None:
        return _planned(problem, GaussianRounds, search_share)
    plans = [_planned(problem, LaplaceRounds, search_share)]
    if problem.delta:
        # None where the distance of the noise from the ideal distribution would take all of delta.
        with suppress(ValueError):
            plans.append(_planned(problem, GaussianRounds, search_share))
    return min(plans, key=lambda plan: plan.predicted_error())


def _planned(problem: MeanProblem, kind: type[GaussianRounds | LaplaceRounds], search_share: Fraction) -> IteratedMean:
    noise = kind.of(problem, search_share)
    plan = planned_rounds(problem.dimension, problem.ball, problem.possible_spread, noise.size())
    if search_share and len(plan.radii) == 1:
        return _planned(problem, kind, Fraction(0))  # nobody is clipped: there is no radius to find
    return IteratedMean("iterated", problem, noise, plan)


@dataclass(frozen=True, eq=False)
class IteratedMean(MeanMethod):
    """Rounds of clipping, summing, and exact noise.

    Round t clips each user's vector x to the ball of radius r_t around the center c that was released last, on an
    integer grid, and releases the sum of the integers y with noise: the next center is c + grid * (sum + noise) / n,
    moved into the ball of all rows. The last center is the release. Radii, shares of the budget and the number of
    rounds are public.

    Notes
    -----
    *Neighbors and sensitivity.* Given what was released before, y depends on one user alone, and its length is at most
    R = floor(r_t / grid), in integers. Replacing a user moves the sum by at most 2 R in Euclidean length. Everything
    else is a function of what was released. See docs/proofs/iterated_mean.md.

    *Budget.* Each round spends its share. With a search for the radius, a part goes there, before the last round.
    """

    name: str
    problem: MeanProblem
    noise: RoundNoise
    plan: RoundPlan

    @cached_property
    def search(self) -> RadiusSearch | None:
        """The search for the radius of the last round."""
        return RadiusSearch(self.noise.search_epsilon()) if self.noise.search_share else None

    @cached_property
    def rounds(self) -> tuple[tuple[_Round, ...], ...]:
        """For each round, what it may be: one thing, or, with a search, one for each candidate radius."""
        planned: list[tuple[_Round, ...]] = [
            (self._round(share, radius),) for share, radius in zip(self.plan.shares, self.plan.radii, strict=True)
        ]
        if self.search:
            expected = self.plan.radii[-1] / self.plan.kappa
            radii = (
                self.search.radius(median, self.plan.kappa, self.problem.dimension)
                for median in self.search.candidates(expected).tolist()
            )
            # All rows are within this distance of any center.
            most = 2 * self.problem.ball
            planned[-1] = tuple(self._round(self.plan.shares[-1], min(radius, most)) for radius in radii)
        return tuple(planned)

    def _round(self, share: Fraction, radius: float) -> _Round:
        steps = self.problem.steps or self.noise.steps(share)
        # The largest power of two of which the radius has at least so many steps.
        grid = math.ldexp(1.0, math.frexp(radius)[1] - steps.bit_length())
        reach = math.floor(radius / grid)
        return _Round(radius, grid, reach, self.noise.mechanism(share, reach))

    def budget(self) -> Budget:
        return self.noise.budget(self.problem, self.plan.shares)

    def predicted_error(self) -> float:
        return self.plan.error

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        rounds = self.rounds  # what is refused, is refused before anything is drawn

        def release(draw: Sampler) -> Hashable:
            transcript: list[Any] = []
            center = np.zeros(self.problem.dimension)
            for possible in rounds:
                index = 0
                if len(possible) > 1:
                    index = self._searched(draw, vectors, center)
                this = possible[index]
                sums = vectors.clipped_sum(center, this.radius, this.grid)
                released = self.noise.release(draw, this.mechanism, tuple(sums.tolist()))
                transcript.append((index, *released))
                center = self._moved(center, this, released)
            return tuple(transcript)

        return release

    def _searched(self, draw: Sampler, vectors: UserVectors, center: Floats) -> int:
        assert self.search is not None
        counts = vectors.counts_within(center, self.search.candidates(self.plan.radii[-1] / self.plan.kappa))
        index: int = draw(self.search.choice, self.search.scores(counts, self.problem.n_users))
        return index

    def _moved(self, center: Floats, this: _Round, released: tuple[int, ...]) -> Floats:
        """The next center, in the ball of all rows."""
        moved = center + this.grid * (np.array(released, dtype=np.float64) / self.problem.n_users)
        return moved * (self.problem.ball / max(self.problem.ball, float(np.linalg.norm(moved))))

    def outcomes(self) -> Iterator[Hashable]:
        d = self.problem.dimension
        for transcript in itertools.product(
            *(
                [
                    (index, *sums)
                    for index, this in enumerate(possible)
                    for sums in itertools.product(self._sums(this), repeat=d)
                ]
                for possible in self.rounds
            )
        ):
            yield tuple(transcript)

    def n_outcomes(self) -> int:
        d = self.problem.dimension
        return counted(
            *((sum(counted((len(self._sums(this)), d)) for this in possible), 1) for possible in self.rounds)
        )

    def _sums(self, this: _Round) -> range:
        return self.noise.released(this.mechanism, self.problem.n_users * this.reach)

    def mean(self, outcome: Any) -> Floats:
        center = np.zeros(self.problem.dimension)
        for possible, (index, *released) in zip(self.rounds, outcome, strict=True):
            center = self._moved(center, possible[index], tuple(released))
        return center


@dataclass(frozen=True)
class _Round:
    """One round: the ball, its grid, how many steps of it the radius has, and the noise."""

    radius: float
    grid: float
    reach: int
    mechanism: Any
