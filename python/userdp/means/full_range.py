"""The baseline: Laplace noise for the whole range, whatever users' values are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget, split_budget
from userdp.exact.numbers import counted
from userdp.means.plan import Floats, MeanMethod, MeanProblem
from userdp.means.range_search import laplace_noise, power_of_two_below
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors


class FullRangeLaplace(MeanMethod):
    """Sums of users' vectors, as far from the center as rows may be, with discrete Laplace noise: pure.

    Parameters
    ----------
    problem : MeanProblem
        Its delta is not used.
    steps : int
        The bound has from so many to twice as many steps of the grid.

    Notes
    -----
    *Sensitivity.* Within the L2 ball a vector is rounded to integers y with sum y_j^2 <= R^2, so that
    sum |y_j| <= sqrt(d) R; replacing one user moves the sums by 2 floor(sqrt(d) R) in L1 at most. Within the cube each
    column's value is one of W + 1 integers, and the sums move by d W. All columns get noise of that L1 sensitivity at
    the whole epsilon, which is epsilon-DP.
    """

    name = "laplace"
    accounting = "pure"

    def __init__(self, problem: MeanProblem, steps: int) -> None:
        self.problem = problem
        self.grid = power_of_two_below(problem.bound / steps)
        d, n = problem.dimension, problem.n_users
        if problem.norm == "l2" or d == 1:
            self.steps = math.floor(problem.bound / self.grid)
            sensitivity, bounds = 2 * math.isqrt(d * self.steps**2), (-n * self.steps, n * self.steps)
        else:
            self.steps = 2 * math.ceil(problem.bound / self.grid)
            sensitivity, bounds = d * self.steps, (0, n * self.steps)
        self.noise = laplace_noise(problem.epsilon, sensitivity, bounds)

    @property
    def low(self) -> float:
        """What the integer 0 stands for."""
        return 0.0 if self.noise.bounds[0] else -self.grid * self.steps / 2

    def budget(self) -> Budget:
        return self.problem.budget(split_budget(self.problem.epsilon, {"noise": 1}))

    def predicted_error(self) -> float:
        return math.sqrt(2 * self.problem.dimension) * self.grid * self.noise.scale / self.problem.n_users

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        d = self.problem.dimension

        def released(draw: Sampler) -> Hashable:
            if self.low:
                sums = vectors.winsorized_sum(np.full(d, self.low), self.steps, self.grid)
            else:
                sums = vectors.clipped_sum(np.zeros(d), self.problem.bound, self.grid)
            return tuple(draw(self.noise, total) for total in sums.tolist())

        return released

    def mean(self, outcome: Any) -> Floats:
        mean: Floats = self.low + self.grid * (np.array(outcome, dtype=np.float64) / self.problem.n_users)
        return mean

    def outcomes(self) -> Iterable[Hashable]:
        low, high = self.noise.bounds
        return itertools.product(range(low, high + 1), repeat=self.problem.dimension)

    def n_outcomes(self) -> int:
        low, high = self.noise.bounds
        return counted((high - low + 1, self.problem.dimension))
