"""Plans of descents along private mean gradients, from public numbers only."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from userdp.estimation._answers import Answers, plan_answers
from userdp.estimation._mean_method import MeanProblem
from userdp.optimization._answered_gradients import DISTANCE, AnsweredMean, TrackingRounds
from userdp.optimization._descent import DescentPlan, DescentProblem, Rounds
from userdp.optimization._projected import ProjectedDescent
from userdp.optimization._schedules import (
    Schedule,
    convex_bound,
    convex_schedule,
    gradient_radius,
    nonconvex_bound,
    nonconvex_schedule,
    strongly_convex_bound,
    strongly_convex_schedule,
    tail_bound,
    tail_schedule,
)
from userdp.stability import PublicSeed

__all__ = ["VARIANTS", "GradientOptions", "winsorized_plan"]

VARIANTS = ("convex", "convex-tail", "strongly-convex", "nonconvex")
MOST_STEPS = 2**8
"""The most steps by default."""


@dataclass(frozen=True)
class GradientOptions:
    """Public choices of a descent along private mean gradients.

    Attributes
    ----------
    variant : {"convex", "convex-tail", "strongly-convex", "nonconvex"}
    method : str
        A method for means, or "tracking".
    steps : int or None
    spread : float or None
        The expected distance of a user's mean gradient from that of all.
    sub_gaussian : float or None
        sigma of a row's gradient.
    strong_convexity : float or None
    gap : float or None
    gamma : float
    kappa : float
    grid_steps : int or None
    """

    variant: str = "convex"
    method: str = "auto"
    steps: int | None = None
    spread: float | None = None
    sub_gaussian: float | None = None
    strong_convexity: float | None = None
    gap: float | None = None
    gamma: float = 0.01
    kappa: float = 1.05
    grid_steps: int | None = None

    def sigma(self, problem: DescentProblem) -> float:
        """Of a row's gradient: by default as if all directions were alike."""
        return self.sub_gaussian or problem.lipschitz / math.sqrt(problem.dimension)

    def mean_problem(self, problem: DescentProblem) -> MeanProblem:
        """The public numbers of a mean gradient, with the account of all."""
        sigma, d = self.sigma(problem), problem.dimension
        spread = min(problem.lipschitz, self.spread or sigma * math.sqrt(d / problem.m))
        if self.method == "paper" and self.spread is None:
            # The spread for which that method takes gradients to be within the tau of `gradient_radius`.
            tau = gradient_radius(
                sub_gaussian=sigma,
                dimension=d,
                n_users=problem.n_users,
                m=problem.m,
                smoothness=problem.loss.smoothness(problem.bound),
                radius=problem.radius,
                gamma=self.gamma,
            )
            log = math.log((1 + (d == 1)) * problem.n_users / self.gamma)
            spread = min(problem.lipschitz, tau) / (math.sqrt(2 * log) + (d > 1))
        return MeanProblem(
            n_users=problem.n_users,
            dimension=d,
            bound=problem.lipschitz,
            norm="l2",
            spread=spread,
            epsilon=problem.epsilon,
            delta=problem.delta,
            beta=self.gamma,
            steps=self.grid_steps,
        )

    def mu(self, problem: DescentProblem) -> float:
        """The strong convexity that the schedule is made for."""
        mu = problem.regularization if self.strong_convexity is None else self.strong_convexity
        if not 0 < mu <= problem.smoothness:
            raise ValueError(
                f"strong_convexity must be above 0 and at most the smoothness {problem.smoothness:.4g}; got {mu}: set "
                "it, or regularization"
            )
        return mu

    def largest_gap(self, problem: DescentProblem) -> float:
        """F at the start is no more than this above its least: no slope is steeper than G, and points are near."""
        return self.gap or (problem.lipschitz + problem.regularization * problem.radius) * problem.radius

    def bound(self, problem: DescentProblem, steps: int, noise: float) -> float:
        """What the schedule of so many steps is proved for, at this noise of gradients."""
        H, R = problem.smoothness, problem.radius
        if self.variant == "convex":
            return convex_bound(steps, smoothness=H, radius=R, noise=noise)
        if self.variant == "convex-tail":
            return tail_bound(steps, smoothness=H, radius=R, noise=noise)
        if self.variant == "nonconvex":
            return nonconvex_bound(steps, smoothness=H, gap=self.largest_gap(problem), noise=noise)
        return strongly_convex_bound(steps, smoothness=H, strong_convexity=self.mu(problem), radius=R, noise=noise)

    def schedule(self, problem: DescentProblem, steps: int, noise: float, seed: PublicSeed) -> Schedule:
        """Step sizes and weights."""
        H, R = problem.smoothness, problem.radius
        if self.variant == "convex":
            return convex_schedule(steps, smoothness=H, radius=R, noise=noise)
        if self.variant == "convex-tail":
            return tail_schedule(steps, smoothness=H, radius=R, noise=noise)
        if self.variant == "nonconvex":
            # 256 public bits modulo the number of steps: uniform but for 2**-240.
            index = int.from_bytes(seed.block("userdp query point"), "little") % steps
            gap = self.largest_gap(problem)
            return nonconvex_schedule(steps, smoothness=H, gap=gap, noise=noise, index=index)
        return strongly_convex_schedule(steps, smoothness=H, strong_convexity=self.mu(problem))


@lru_cache(maxsize=256)
def winsorized_plan(problem: DescentProblem, options: GradientOptions, seed: PublicSeed) -> DescentPlan:
    """The plan of `WinsorizedGradientDescent`: what is not given has public defaults.

    Raises
    ------
    ValueError
        For a strong convexity that is not positive, and methods that need a delta without one.
    """
    noise_of = _tracking_noise if options.method == "tracking" else _answers_noise
    candidates = [options.steps] if options.steps else [2**k for k in range(MOST_STEPS.bit_length())]
    noise = {steps: noise_of(problem, options, steps) for steps in candidates}
    steps = min(candidates, key=lambda steps: options.bound(problem, steps, noise[steps]))
    schedule = options.schedule(problem, steps, noise[steps], seed)
    optimizer = ProjectedDescent(problem.start, problem.constraint, schedule.step_sizes, schedule.weights)
    if options.method != "tracking":
        answers = _answers(problem, options, steps)
        return Rounds(problem, optimizer, AnsweredMean(answers, seed), answers.spending)
    distance = steps * problem.dimension * DISTANCE
    rho = options.mean_problem(problem).largest_rho(distance) * Fraction(schedule.steps, steps)
    spread, grid = options.mean_problem(problem).spread, {"grid_steps": options.grid_steps or 2**20}
    return TrackingRounds(problem, optimizer, rho=rho, distance=distance, spread=spread, kappa=options.kappa, **grid)


def _answers(problem: DescentProblem, options: GradientOptions, steps: int) -> Answers:
    mean = options.mean_problem(problem)
    return plan_answers(options.method, replace(mean, beta=mean.beta / steps), steps)


def _answers_noise(problem: DescentProblem, options: GradientOptions, steps: int) -> float:
    return _answers(problem, options, steps).method.predicted_error()


def _tracking_noise(problem: DescentProblem, options: GradientOptions, steps: int) -> float:
    """Of a round in which theta hardly moves."""
    if not problem.delta:
        raise ValueError("delta must be > 0 for method='tracking', whose noise is Gaussian; got 0")
    mean = options.mean_problem(problem)
    rho = float(mean.largest_rho(steps * problem.dimension * DISTANCE)) / steps
    return 2 * options.kappa * mean.spread / problem.n_users * math.sqrt(problem.dimension / (2 * rho))
