"""Private descents side by side, by public numbers: how noisy a step is, and which one is recommended."""

from __future__ import annotations

import math

import numpy as np

from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import Delta, Epsilon, check_count, parse_delta, parse_level, parse_positive
from userdp.optimization.clipped import ClippedMean, clipped_plan
from userdp.optimization.constraints import L2Ball
from userdp.optimization.losses import LogisticLoss
from userdp.optimization.phased import PhasedPlan
from userdp.optimization.problem import DescentPlan, DescentProblem, Rounds
from userdp.optimization.schedules import convex_bound
from userdp.optimization.winsorized import AnsweredMean, GradientOptions, TrackingRounds, winsorized_plan
from userdp.planning.means import users_and_rows
from userdp.public_randomness import PublicSeed
from userdp.report import Comparison, Prediction

MEASURED = "tuned, it was not told apart from winsorized, tracking, and it has fewer settings: docs/optimization.md"
PUBLIC = PublicSeed(bytes(32))
"""Rotations and blocks do not change how large noise is."""
MOST_STEPS = 100
"""Of a block, as `PhasedERM` has it by default."""


def compare_descents(
    *, n_users: int, m: int, dimension: int, bound: float, epsilon: Epsilon, delta: Delta, radius: float | None
) -> Comparison:
    """The descents of `userdp.optimization` for logistic regression, by their defaults."""
    if not parse_delta(delta):
        raise ValueError("delta must be > 0 for descents, whose noise is Gaussian; got 0")
    users, rows_each = users_and_rows(n_users, m)
    d, longest = check_count(dimension, "dimension"), float(parse_positive(bound, "bound"))
    reach = 4 * math.sqrt(d) / longest if radius is None else float(parse_positive(radius, "radius"))
    problem = DescentProblem(
        n_users=users,
        dimension=d,
        loss=LogisticLoss(),
        constraint=L2Ball(reach),
        start=(0.0,) * d,
        bound=longest,
        m=rows_each,
        epsilon=positive_epsilon(epsilon),
        delta=parse_delta(delta),
    )
    plans: dict[str, Rounds | TrackingRounds] = {"clipped": clipped_plan(problem)}
    for name, method in (("winsorized", "auto"), ("winsorized, tracking", "tracking")):
        plan = winsorized_plan(problem, GradientOptions(method=method), PUBLIC)
        assert isinstance(plan, (Rounds, TrackingRounds))
        plans[name] = plan
    rows = [_row(name, problem, plan) for name, plan in plans.items()]
    options = GradientOptions(variant="strongly-convex")
    phased = PhasedPlan(problem, options, PUBLIC, least_users=None, most_steps=MOST_STEPS, assignment="random")
    blocks = phased.phases.users
    last = phased.round(len(blocks) - 1, np.array(problem.start))
    note = f"{len(blocks)} blocks, the last of {blocks[-1]} users; no rate is proved"
    rows.append(Prediction("phased", "user", gradient_noise(last), None, note))
    sizes = {
        "n_users": problem.n_users,
        "m": problem.m,
        "dimension": d,
        "bound": longest,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "radius": reach,
    }
    return Comparison("descent", sizes, tuple(rows), "clipped", MEASURED)


def _row(name: str, problem: DescentProblem, plan: Rounds | TrackingRounds) -> Prediction:
    noise, steps = gradient_noise(plan), plan.rounds
    error = convex_bound(steps, smoothness=problem.smoothness, radius=problem.radius, noise=noise)
    return Prediction(name, "user", noise, error, f"{steps} steps")


def gradient_noise(plan: DescentPlan) -> float:
    """Root mean square of the L2 noise in the gradient of a step, once theta hardly moves."""
    if isinstance(plan, TrackingRounds):
        problem, n = plan.problem, plan.problem.n_users
        # V = share * radius^2, and radius^2 = kappa^2 (u^2 + V).
        share = problem.dimension * (2 / n) ** 2 / (2 * float(plan.rho) / plan.rounds)
        left = 1 / plan.kappa**2 - share
        largest = 2 * problem.lipschitz
        radius = min(plan.spread / math.sqrt(left), largest) if left > 0 else largest
        return radius * math.sqrt(share)
    assert isinstance(plan, Rounds)
    step = plan.step
    if isinstance(step, ClippedMean):
        return step.grid / step.count * math.sqrt(step.dimension * float(step.noise.sigma_squared))
    assert isinstance(step, AnsweredMean)
    return step.plan.method.predicted_error()
