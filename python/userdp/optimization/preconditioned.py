"""Logistic regression in whitened units: private second moments first, then few clipped steps.

In units in which features have second moments about 1 in all directions the logistic loss is curved alike in all of
them, and a few dozen steps of one size get near the minimum, whatever bounds and correlations there are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import Budget
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import counted
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.moments import (
    MomentProblem,
    QuantileSearch,
    SecondMoments,
    UnitSearch,
    power_of_two_below,
    regularizer,
    solved,
    too_few,
    users_needed,
)

if TYPE_CHECKING:
    from userdp.users.vectors import JointRows

Floats = npt.NDArray[np.float64]

ITERATIONS = (30, 90)
"""By default from the first to the second, as many as noise allows: strong signals, for which the loss is flat, need
more than 30, and more than 90 gain little."""
QUIET = 0.03
"""The noise of a step up to which more steps are taken, in whitened units."""
MOMENTS_SHARE = Fraction(1, 4)
"""Of what units leave of the account; the rest is for gradients and their clipping."""
CLIP_SHARE = Fraction(2, 100)
"""Of the account."""
WITHIN_CLIP = Fraction(8, 10)
"""Share of the users whose first gradients are not clipped."""
CLIP_STEPS = 33
TOO_MUCH = 0.5
"""The noise of a step above which a warning is given."""
STEP = 0.75
"""Steps are this over the curvature, of which the loss has 1/4 at most in whitened units."""
CURVATURE = 1 / 8
"""About that of the loss where predictions are likely: half of the largest."""
SETTLED = 0.03
"""Of its length, by which the mean of the last quarter of the steps may be away from that of the quarter before."""
BALL = 20.0
"""No iterate is longer in whitened units."""


@dataclass(frozen=True)
class LogisticFit:
    """A logistic regression in units of public bounds, and what is known of it."""

    coefficients: Floats
    intercept: float
    noise_ratio: float
    converged: bool


@dataclass(frozen=True)
class Clip:
    """One candidate of how long a user's gradient may be, and the noise of a round."""

    radius: float
    grid: float
    noise: DiscreteGaussian

    def spread(self, n_users: int) -> float:
        """The standard deviation of the noise in an entry of a mean gradient."""
        return self.grid * math.sqrt(self.noise.sigma_squared) / n_users


class PreconditionedRegression:
    """Clipped descent in whitened units."""

    def __init__(self, problem: MomentProblem, n_iterations: int | None = None) -> None:
        self.problem = problem
        self.account, self._distance = problem.account((n_iterations or ITERATIONS[1]) * problem.dimension)
        self.shares = problem.shares(MOMENTS_SHARE, clip=CLIP_SHARE)
        self.shares["gradients"] = 1 - sum(self.shares.values(), Fraction(0))
        self.parts = {name: self.account.part(share) for name, share in self.shares.items()}
        # Whitened rows have norm sqrt(D), and gradients at 0 half of that: the noise of a step, were there one.
        self._noise = problem.dimension / (problem.n_users * math.sqrt(2 * self.parts["gradients"].rho))
        quiet = math.floor(min((QUIET / self._noise) ** 2, ITERATIONS[1]))
        self.rounds = n_iterations or max(ITERATIONS[0], quiet)
        self.search = UnitSearch(problem, self.parts)
        self.moments = SecondMoments(problem, radius=self.parts["radius"], moments=self.parts["moments"])
        candidates = 2 * math.sqrt(problem.dimension) * np.exp2(-np.arange(CLIP_STEPS)[::-1] / 4)
        epsilon = self.parts["clip"].search_epsilon()
        self.clip = QuantileSearch(problem.n_users, candidates, math.ceil(WITHIN_CLIP * problem.n_users), epsilon, 1.0)

    def budget(self) -> Budget:
        """What a fit costs, and on what it is spent."""
        problem = self.problem
        return self.account.budget(self.shares, self._distance, positive_epsilon(problem.epsilon), problem.delta)

    @lru_cache(maxsize=64)  # noqa: B019  plans are few
    def clipping(self, index: int) -> Clip:
        """For one candidate."""
        radius = float(self.clip.candidates[index])
        grid = power_of_two_below(radius / self.problem.grid_resolution)
        # Clipped gradients have norm R at most, in integers: replacing a user moves the sum by 2 R.
        part = self.parts["gradients"].part(Fraction(1, self.rounds))
        noise = part.noise(2 * math.floor(radius / grid))
        return Clip(radius, grid, noise)

    def whitening(self, units: Any, moments: Any) -> tuple[Floats, float]:
        """W with W^T (Q + ridge) W = 1, and sigma sqrt(2 D) over the least eigenvalue of Q + ridge."""
        matrix, sigma = self.moments.matrix(moments)
        values, vectors = solved(matrix, sigma * math.sqrt(self.problem.dimension))
        return vectors / np.sqrt(values), sigma * math.sqrt(2 * self.problem.dimension) / float(values[0])

    def program(self, rows: JointRows) -> AdaptiveMechanism:
        """What is drawn; the outcome is a transcript of integers."""
        origin = np.zeros(self.problem.dimension)

        def transcript(draw: Sampler) -> Hashable:
            units = self.search.drawn(rows, draw)
            measured = self.search.in_units(units, rows)
            moments = self.moments.drawn(measured, draw)
            whitening, _ = self.whitening(units, moments)

            def gradients(theta: Floats) -> Any:
                return measured.gradients(whitening @ theta, whitening.T, loss="logistic")

            index = self.clip.drawn(gradients(origin).filled().counts_within(origin, self.clip.candidates), draw)
            clip = self.clipping(index)
            descent = _Descent(self, units, moments, index)
            sums = []
            for _ in range(self.rounds):
                total = gradients(descent.theta).clipped_sum(origin, clip.radius, clip.grid)
                sums.append(draw(clip.noise, tuple(total.tolist())))
                descent.step(sums[-1])
            return units, moments, index, tuple(sums)

        return transcript

    def outcomes(self) -> Iterator[Hashable]:
        """All transcripts that are possible."""
        moments = list(self.moments.outcomes())
        for units in self.search.outcomes():
            for drawn in moments:
                for index in range(CLIP_STEPS):
                    rounds = product(product(self._sums(index), repeat=self.problem.dimension), repeat=self.rounds)
                    yield from ((units, drawn, index, sums) for sums in rounds)

    def n_outcomes(self) -> int:
        """The number of possible transcripts."""
        entries = self.problem.dimension * self.rounds
        sums = sum(counted((len(self._sums(index)), entries)) for index in range(CLIP_STEPS))
        return counted(*self.search.n_outcomes(), (self.moments.n_outcomes(), 1), (sums, 1))

    def _sums(self, index: int) -> range:
        clip = self.clipping(index)
        most = self.problem.n_users * math.floor(clip.radius / clip.grid) + clip.noise.support
        return range(-most, most + 1)

    def warnings(self) -> list[str]:
        """That there are too few users, from public numbers."""
        problem = self.problem
        step = self._noise * math.sqrt(ITERATIONS[0]) / TOO_MUCH
        return too_few(problem, users_needed(problem.n_users, *self.search.ratios(), step))

    def fit(self, outcome: Any) -> LogisticFit:
        """The regression that a transcript stands for."""
        units, moments, index, sums = outcome
        descent = _Descent(self, units, moments, index)
        points = []
        for total in sums:
            descent.step(total)
            points.append(descent.theta)
        whitening, noise_ratio = self.whitening(units, moments)
        found = whitening @ np.mean(points[self.rounds // 2 :], axis=0)
        coefficients, intercept = self.search.line(units, self.moments.matrix(moments)[0], found)
        return LogisticFit(coefficients, intercept, noise_ratio, self._converged(np.array(points), index))

    def _converged(self, points: Floats, index: int) -> bool:
        """Whether the noise of steps is small, and the last quarter of them has moved no more than it would."""
        size, quarter = self.problem.dimension, max(1, self.rounds // 4)
        noise = self.clipping(index).spread(self.problem.n_users) * math.sqrt(size)
        before = points[max(0, len(points) - 2 * quarter) : max(1, len(points) - quarter)]
        last = points[-quarter:].mean(axis=0)
        moved = float(np.linalg.norm(last - before.mean(axis=0)))
        # Means of T / 4 noisy gradients, over the curvature at the minimum, where it is about 1/8.
        by_noise = noise * math.sqrt(8 / self.rounds) / CURVATURE
        return noise <= 0.15 and moved <= max(1.5 * by_noise, SETTLED * float(np.linalg.norm(last)))


class _Descent:
    """Iterates in whitened units: a function of what was drawn."""

    def __init__(self, plan: PreconditionedRegression, units: Any, moments: Any, index: int) -> None:
        self.theta: Floats = np.zeros(plan.problem.dimension)
        self._unit = plan.clipping(index).grid / plan.problem.n_users
        whitening, _ = plan.whitening(units, moments)
        self._regularizer = whitening.T @ regularizer(plan.problem, plan.search.units(units)[1]) @ whitening
        self._size = STEP / (0.25 + float(np.linalg.norm(self._regularizer, 2)))

    def step(self, total: tuple[int, ...]) -> None:
        """One step along a noisy sum of gradients, kept in the ball."""
        gradient = np.array(total, dtype=np.float64) * self._unit + self._regularizer @ self.theta
        theta = self.theta - self._size * gradient
        self.theta = theta * min(1.0, BALL / max(float(np.linalg.norm(theta)), BALL))


@lru_cache(maxsize=64)
def preconditioned_regression(problem: MomentProblem, n_iterations: int | None) -> PreconditionedRegression:
    """The plan of a logistic regression."""
    return PreconditionedRegression(problem, n_iterations)
