"""Step sizes and averages of projected gradient descent on noisy gradients, and what they guarantee.

Source: [LSAKKMS21, Proposition 4] and [LSAKKMS21, Remark 2]; the constants are derived in
docs/proofs/descent_schedules.md. A schedule is made from public numbers before there are data. Noise of a gradient has
mean 0 given the past, and nu**2 bounds its expected squared L2 norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How far to step, and which points to average.

    Attributes
    ----------
    step_sizes : tuple of float
        eta_0, ..., eta_{T-1}: theta_{t+1} is theta_t - eta_t g_t, projected, where g_t is the noisy gradient at
        theta_t.
    weights : tuple of float
        T non-negative weights, which sum to 1, of theta_1, ..., theta_T in the answer.
    """

    step_sizes: tuple[float, ...]
    weights: tuple[float, ...]

    @property
    def steps(self) -> int:
        """T, the number of gradients."""
        return len(self.step_sizes)


def convex_schedule(steps: int, *, smoothness: float, radius: float, noise: float) -> Schedule:
    """For a convex function: steps of one size, and the average of theta_1, ..., theta_T.

    Parameters
    ----------
    steps : int
        T >= 1.
    smoothness : float
        H > 0: gradients are H-Lipschitz.
    radius : float
        R: the distance of theta_0 from a minimizer is at most R.
    noise : float
        nu >= 0.

    References
    ----------
    [LSAKKMS21, Proposition 4].
    """
    size = 1 / smoothness
    if noise > 0:
        size = min(size, radius / (noise * math.sqrt(2 * steps)))
    return Schedule((size,) * steps, (1 / steps,) * steps)


def convex_bound(steps: int, *, smoothness: float, radius: float, noise: float) -> float:
    """At least the expected excess of F at the answer of `convex_schedule`: HR^2/(2T) + sqrt(2) R nu/sqrt(T)."""
    return smoothness * radius**2 / (2 * steps) + math.sqrt(2 / steps) * radius * noise


def tail_schedule(steps: int, *, smoothness: float, radius: float, noise: float) -> Schedule:
    """As `convex_schedule`, with the average of the last half only: theta_t for t > T/2.

    A start that is far off, which the first points still show, is left out of the answer.
    """
    sizes = convex_schedule(steps, smoothness=smoothness, radius=radius, noise=noise).step_sizes
    counted = steps - steps // 2
    return Schedule(sizes, (0.0,) * (steps // 2) + (1 / counted,) * counted)


def tail_bound(steps: int, *, smoothness: float, radius: float, noise: float) -> float:
    """At least the expected excess of F at the answer of `tail_schedule`: twice `convex_bound`."""
    return 2 * convex_bound(steps, smoothness=smoothness, radius=radius, noise=noise)


def strongly_convex_schedule(steps: int, *, smoothness: float, strong_convexity: float) -> Schedule:
    """For a strongly convex function: half of the steps of size 1/H, then a restart with falling steps, averaged.

    Parameters
    ----------
    steps : int
        T >= 1.
    smoothness : float
        H.
    strong_convexity : float
        mu, in (0, H].

    References
    ----------
    [LSAKKMS21, Remark 2].
    """
    first = steps // 2
    s = [k + 2 * smoothness / strong_convexity for k in range(steps - first)]
    sizes = (1 / smoothness,) * first + tuple(2 / (strong_convexity * entry) for entry in s)
    total = math.fsum(entry - 1 for entry in s)
    return Schedule(sizes, (0.0,) * first + tuple((entry - 1) / total for entry in s))


def strongly_convex_bound(
    steps: int, *, smoothness: float, strong_convexity: float, radius: float, noise: float
) -> float:
    """At least the expected excess of F at the answer of `strongly_convex_schedule`.

    It is H R^2 / (2 T2) (1 - mu/H)^T1 + 5 nu^2 / (mu T2) for T1 = floor(T/2) and T2 = T - T1, where the distance of
    theta_0 from the minimizer is at most R. Half of mu |theta - minimizer|^2 is at most the excess.
    """
    first = steps // 2
    second = steps - first
    contraction = (1 - strong_convexity / smoothness) ** first
    return smoothness * radius**2 / (2 * second) * contraction + 5 * noise**2 / (strong_convexity * second)


def nonconvex_schedule(steps: int, *, smoothness: float, gap: float, noise: float, index: int) -> Schedule:
    """For any smooth function: steps of one size, and one point of those where a gradient was taken.

    Parameters
    ----------
    steps : int
        T >= 1.
    smoothness : float
        H > 0.
    gap : float
        Delta >= F(theta_0) - inf F, > 0.
    noise : float
        nu >= 0.
    index : int
        Which of theta_0, ..., theta_{T-1}: uniform, from public randomness. Steps after that point would not change the
        answer, and are left out. For theta_0 there is one step of size 0.
    """
    size = 1 / (2 * smoothness)
    if noise > 0:
        size = min(size, math.sqrt(gap / (smoothness * steps)) / noise)
    sizes = (size,) * index or (0.0,)
    return Schedule(sizes, (0.0,) * (len(sizes) - 1) + (1.0,))


def nonconvex_bound(steps: int, *, smoothness: float, gap: float, noise: float) -> float:
    """At least the expected squared norm of the gradient mapping at a uniform index of `nonconvex_schedule`.

    It is 12 (H Delta / T + nu sqrt(H Delta / T)), for the mapping H (theta - projection of theta - grad F(theta) / H).
    """
    return 12 * (smoothness * gap / steps + noise * math.sqrt(smoothness * gap / steps))
