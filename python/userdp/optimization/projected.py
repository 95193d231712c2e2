"""Projected descent with public steps and public averaging."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from userdp.optimization.constraints import Constraint
from userdp.optimization.problem import Optimizer

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Progress:
    """Where a descent is: its point, the weighted sum of those after each step, the weights, and the steps done."""

    theta: Floats
    total: Floats
    weight: float
    done: int


class ProjectedDescent(Optimizer[Progress]):
    """theta_(t+1) = projection of theta_t - step_t gradient_t; the result is a weighted mean of theta_1, ..., theta_T.

    Parameters
    ----------
    start : sequence of float
        theta_0, in the constraint.
    constraint : Constraint
    steps : sequence of float
        One step size for each round.
    weights : sequence of float
        The weight of the point after each step, >= 0 and not all 0.

    References
    ----------
    [LSAKKMS21, Algorithm 7].
    """

    def __init__(
        self, start: Sequence[float], constraint: Constraint, steps: Sequence[float], weights: Sequence[float]
    ) -> None:
        self.start = np.array(start, dtype=np.float64)
        self.constraint = constraint
        self.steps = tuple(map(float, steps))
        self.weights = tuple(map(float, weights))
        self.rounds = len(self.steps)

    def begin(self) -> Progress:
        return Progress(self.start, np.zeros_like(self.start), 0.0, 0)

    def query(self, state: Progress) -> Floats:
        return state.theta

    def update(self, state: Progress, gradient: Floats) -> Progress:
        done, weight = state.done, self.weights[state.done]
        theta = self.constraint.project(state.theta - self.steps[done] * gradient)
        return Progress(theta, state.total + weight * theta, state.weight + weight, done + 1)

    def aggregate(self, state: Progress) -> Floats:
        return self.constraint.project(state.total / state.weight)
