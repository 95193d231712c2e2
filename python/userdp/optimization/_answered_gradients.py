"""Private mean gradients for descents: by the methods for means, or in balls around the gradient before."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.estimation._answers import Answers
from userdp.learners._privacy import Spending
from userdp.learners._program import Draw, Program
from userdp.mechanisms import DiscreteGaussian
from userdp.optimization._descent import DescentPlan, DescentProblem, MeanStep, Optimizer
from userdp.optimization._gradients import GradientRows
from userdp.stability import PublicSeed

__all__ = ["AnsweredMean", "TrackingRounds"]

Floats = npt.NDArray[np.float64]

DISTANCE = Fraction(1, 2**90)
"""No integer's noise is farther from the ideal discrete Gaussian in total variation."""
RADII_IN_AN_OCTAVE = 4
"""Radii are rounded up to G times powers of 2**(1/4), so that there are few mechanisms."""
GRID_STEPS = 2**20


class AnsweredMean(MeanStep):
    """Gradients as means of vectors of users, all under one account.

    Parameters
    ----------
    plan : Answers
        As many means as there are rounds, at least.
    seed : PublicSeed
        Of the rotations of those methods that rotate.
    """

    def __init__(self, plan: Answers, seed: PublicSeed) -> None:
        self.plan = plan
        self.seed = seed

    def draw(self, round: int, rows: GradientRows, theta: Floats, draw: Draw) -> Hashable:
        return self.plan.draw(rows.at(theta), self.seed, round, draw)

    def estimate(self, round: int, theta: Floats, answer: Any) -> Floats:
        return self.plan.mean(answer, self.seed, round)

    def answers(self, round: int) -> Iterable[Hashable]:
        return self.plan.method.outcomes()

    def n_answers(self, round: int) -> int:
        return self.plan.method.n_outcomes()

    def warnings(self) -> list[str]:
        return self.plan.method.warnings()


@dataclass(frozen=True)
class Ball:
    """Where the gradients of a round are expected: public."""

    center: Floats
    radius: float
    grid: float

    @property
    def reach(self) -> int:
        """The radius in steps of the grid: no user's integers are longer."""
        return math.floor(self.radius / self.grid)


class TrackingRounds(DescentPlan):
    """Gradients clipped to a small ball around the gradient that was released before.

    The ball of round t + 1 has the last released gradient as its centre and the radius
    kappa sqrt(u^2 + V + (H |theta_{t+1} - theta_t|)^2): users' mean gradients differ by u, the released one is off by
    noise of V, and gradients move by at most H times as far as theta did. In the first round it is that of all
    gradients.

    Parameters
    ----------
    problem : DescentProblem
    optimizer : Optimizer
    rho, distance : Fraction
        Of all rounds together.
    spread : float
        u, a promise about utility.
    kappa : float
    grid_steps : int
        A power of two: balls' radii have so many steps of a grid, to twice as many.

    Notes
    -----
    *Privacy.* The ball of a round is a function of what was released before. Given that, a user's integers depend on
    that user alone, and their length is at most the reach of the ball, in integers; replacing one user moves the sum by
    twice that in L2, for which the noise has rho / T. Adaptive composition adds up to rho.
    """

    def __init__(
        self,
        problem: DescentProblem,
        optimizer: Optimizer[Any],
        *,
        rho: Fraction,
        distance: Fraction,
        spread: float,
        kappa: float,
        grid_steps: int = GRID_STEPS,
    ) -> None:
        self.problem = problem
        self.optimizer = optimizer
        self.rounds = optimizer.rounds
        self.draws = self.rounds
        self.rho = rho
        self.distance = distance
        self.spread = spread
        self.kappa = kappa
        self.grid_steps = grid_steps

    def spending(self) -> Spending:
        return Spending({"gradients": self.rho}, self.problem.delta, self.rho, self.distance, "rho")

    def noise(self, ball: Ball) -> DiscreteGaussian:
        """The noise of a round with this ball."""
        return _noise(self.rho / self.rounds, 2 * ball.reach)

    def program(self, rows: GradientRows) -> Program:
        def transcript(draw: Draw) -> Hashable:
            def answer(round: int, theta: Floats, ball: Ball) -> Any:
                sums = rows.at(theta).clipped_sum(ball.center, ball.radius, ball.grid)
                return draw(self.noise(ball), tuple(sums.tolist()))

            return self._walk(answer)[0]

        return transcript

    def theta(self, outcome: Any) -> Floats:
        return self._walk(lambda round, theta, ball: outcome[round])[1]

    def _walk(self, answer: Callable[[int, Floats, Ball], Any]) -> tuple[tuple[Any, ...], Floats]:
        """All rounds: what was answered, and the result."""
        answers: list[Any] = []
        state = self.optimizer.begin()
        ball = self._ball(np.zeros(self.problem.dimension), self.problem.lipschitz)
        last = gradient = np.zeros(0)
        for round in range(self.rounds):
            theta = self.optimizer.query(state)
            if round:
                ball = self._next(ball, gradient, float(np.linalg.norm(theta - last)))
            answers.append(answer(round, theta, ball))
            moved = ball.center + np.array(answers[-1], dtype=np.float64) * (ball.grid / self.problem.n_users)
            gradient = moved * (self.problem.lipschitz / max(self.problem.lipschitz, float(np.linalg.norm(moved))))
            last = theta
            state = self.optimizer.update(state, gradient + self.problem.regularizer(theta))
        return tuple(answers), self.optimizer.aggregate(state)

    def _next(self, ball: Ball, gradient: Floats, distance: float) -> Ball:
        problem = self.problem
        noise = problem.dimension * (2 * ball.radius / problem.n_users) ** 2 / (2 * float(self.rho) / self.rounds)
        drift = problem.loss.smoothness(problem.bound) * distance
        radius = self.kappa * math.sqrt(self.spread**2 + noise + drift**2)
        return self._ball(gradient, min(radius, 2 * problem.lipschitz))

    def _ball(self, center: Floats, wanted: float) -> Ball:
        octaves = math.ceil(RADII_IN_AN_OCTAVE * math.log2(wanted / self.problem.lipschitz) - 1e-9)
        radius = self.problem.lipschitz * 2.0 ** (octaves / RADII_IN_AN_OCTAVE)
        grid = 2.0 ** math.floor(math.log2(radius) - math.log2(self.grid_steps))
        return Ball(center, radius, grid)

    def _ends(self) -> int:
        """Beyond every answer: of a ball with the most steps, and the noise of the longest."""
        steps = 2 * self.grid_steps
        return self.problem.n_users * steps + _noise(self.rho / self.rounds, 2 * steps).support

    def outcomes(self) -> Iterator[Hashable]:
        end = self._ends()
        one = tuple(product(range(-end, end + 1), repeat=self.problem.dimension))
        return product(one, repeat=self.rounds)

    def n_outcomes(self) -> int:
        return int((2 * self._ends() + 1) ** (self.problem.dimension * self.rounds))


@lru_cache(maxsize=64)
def _noise(rho: Fraction, sensitivity: int) -> DiscreteGaussian:
    return DiscreteGaussian(rho=rho, sensitivity=sensitivity)
