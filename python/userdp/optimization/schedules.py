"""Projected gradient descent on noisy gradients: its rule, its step sizes and averages, and what they guarantee.

Source: [LSAKKMS21, Algorithm 7], [LSAKKMS21, Proposition 4] and [LSAKKMS21, Remark 2]; the constants are derived in
docs/proofs/descent_schedules.md. A schedule is made from public numbers before there are data. In all of them `steps`
is T >= 1, `smoothness` H > 0 (gradients are H-Lipschitz), `strong_convexity` mu in (0, H], `radius` R >= the distance
of theta_0 from a minimizer, `gap` Delta >= F(theta_0) - inf F, and `noise` nu >= 0: noise of a gradient has mean 0
given the past, and nu**2 bounds its expected squared L2 norm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from userdp.optimization.constraints import Constraint

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Progress:
    """Where a descent is: its point, the weighted sum of those after each step, the weights, and the steps done."""

    theta: Floats
    total: Floats
    weight: float
    done: int


class ProjectedDescent:
    """[LSAKKMS21, Algorithm 7]: theta_(t+1) is the projection of theta_t - step_t gradient_t; the result is a mean."""

    # The start is theta_0, in the constraint; each round has a step size, and a weight >= 0 of the point after it, not
    # all 0. The descent sees its own state and private answers, never data.

    def __init__(
        self, start: Sequence[float], constraint: Constraint, step_sizes: Sequence[float], weights: Sequence[float]
    ) -> None:
        self.start = np.array(start, dtype=np.float64)
        self.constraint = constraint
        self.step_sizes = tuple(map(float, step_sizes))
        self.weights = tuple(map(float, weights))
        self.rounds = len(self.step_sizes)

    def begin(self) -> Progress:
        """The state before the first round; the next gradient is wanted at its theta."""
        return Progress(self.start, np.zeros_like(self.start), 0.0, 0)

    def update(self, state: Progress, gradient: Floats) -> Progress:
        """The state after a gradient."""
        done, weight = state.done, self.weights[state.done]
        theta = self.constraint.project(state.theta - self.step_sizes[done] * gradient)
        return Progress(theta, state.total + weight * theta, state.weight + weight, done + 1)

    def aggregate(self, state: Progress) -> Floats:
        """The result, from the last state."""
        return self.constraint.project(state.total / state.weight)


@dataclass(frozen=True)
class Schedule:
    """How far to step, and which points to average."""

    step_sizes: tuple[float, ...]  # eta_0, ...: theta_{t+1} is theta_t - eta_t g_t, projected, g_t the noisy gradient
    weights: tuple[float, ...]  # T non-negative weights, which sum to 1, of theta_1, ..., theta_T in the answer


def convex_schedule(steps: int, *, smoothness: float, radius: float, noise: float) -> Schedule:
    """For a convex function: steps of one size, and the average of theta_1, ..., theta_T [LSAKKMS21, Proposition 4]."""
    size = 1 / smoothness
    if noise > 0:
        size = min(size, radius / (noise * math.sqrt(2 * steps)))
    return Schedule((size,) * steps, (1 / steps,) * steps)


def convex_bound(steps: int, *, smoothness: float, radius: float, noise: float) -> float:
    """At least the expected excess of F at the answer of `convex_schedule`: HR^2/(2T) + sqrt(2) R nu/sqrt(T)."""
    return smoothness * radius**2 / (2 * steps) + math.sqrt(2 / steps) * radius * noise


def tail_schedule(steps: int, *, smoothness: float, radius: float, noise: float) -> Schedule:
    """As `convex_schedule`, with the average of the last half only: theta_t for t > T/2."""
    # A start that is far off, which the first points still show, is left out of the answer.
    sizes = convex_schedule(steps, smoothness=smoothness, radius=radius, noise=noise).step_sizes
    counted = steps - steps // 2
    return Schedule(sizes, (0.0,) * (steps // 2) + (1 / counted,) * counted)


def tail_bound(steps: int, *, smoothness: float, radius: float, noise: float) -> float:
    """At least the expected excess of F at the answer of `tail_schedule`: twice `convex_bound`."""
    return 2 * convex_bound(steps, smoothness=smoothness, radius=radius, noise=noise)


def averaged_bound(steps: int, counted: int, *, size: float, radius: float, noise: float) -> float:
    """At least the expected excess of a convex F at the mean of the last points, after steps of one size <= 1/H."""
    # With `counted` of T points it is (R^2 + 2 eta^2 nu^2 T) / (2 eta counted): the two bounds above at eta itself.
    return (radius**2 + 2 * (size * noise) ** 2 * steps) / (2 * size * counted)


def strongly_convex_schedule(steps: int, *, smoothness: float, strong_convexity: float) -> Schedule:
    """For a strongly convex function: half the steps of size 1/H, then falling ones, averaged [LSAKKMS21, Remark 2]."""
    first = steps // 2
    s = [k + 2 * smoothness / strong_convexity for k in range(steps - first)]
    sizes = (1 / smoothness,) * first + tuple(2 / (strong_convexity * entry) for entry in s)
    total = math.fsum(entry - 1 for entry in s)
    return Schedule(sizes, (0.0,) * first + tuple((entry - 1) / total for entry in s))


def strongly_convex_bound(
    steps: int, *, smoothness: float, strong_convexity: float, radius: float, noise: float
) -> float:
    """At least the expected excess of F at the answer of `strongly_convex_schedule`."""
    # It is H R^2 / (2 T2) (1 - mu/H)^T1 + 5 nu^2 / (mu T2) for T1 = floor(T/2) and T2 = T - T1, where the distance of
    # theta_0 from the minimizer is at most R. Half of mu |theta - minimizer|^2 is at most the excess.
    first = steps // 2
    second = steps - first
    contraction = (1 - strong_convexity / smoothness) ** first
    return smoothness * radius**2 / (2 * second) * contraction + 5 * noise**2 / (strong_convexity * second)


def nonconvex_schedule(steps: int, *, smoothness: float, gap: float, noise: float, index: int) -> Schedule:
    """For any smooth function: steps of one size, and one point of those where a gradient was taken."""
    # `index` says which of theta_0, ..., theta_{T-1}: uniform, from public randomness. Steps after that point would not
    # change the answer, and are left out. For theta_0 there is one step of size 0.
    size = 1 / (2 * smoothness)
    if noise > 0:
        size = min(size, math.sqrt(gap / (smoothness * steps)) / noise)
    sizes = (size,) * index or (0.0,)
    return Schedule(sizes, (0.0,) * (len(sizes) - 1) + (1.0,))


def nonconvex_bound(steps: int, *, smoothness: float, gap: float, noise: float) -> float:
    """At least the expected squared norm of the gradient mapping at a uniform index of `nonconvex_schedule`."""
    # The mapping is H (theta - projection of theta - grad F(theta) / H).
    return 12 * (smoothness * gap / steps + noise * math.sqrt(smoothness * gap / steps))
