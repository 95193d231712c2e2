"""Planning the minimization of expected convex losses by descents in which nobody's gradient is clipped.

The bounds of their mean excess are proved in docs/proofs/descent_excess.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.exact.numbers import LogRatio, parse_level
from userdp.planning import packings
from userdp.planning.bounds import DIMENSION, LIPSCHITZ, RADIUS, named_count, size
from userdp.planning.hard_tasks import Term as BoundTerm
from userdp.planning.hard_tasks import expected, few_users, linear_loss_errors, packed
from userdp.planning.problem import (
    MOST_USERS,
    Asked,
    AskedError,
    Bound,
    Method,
    NotPlanned,
    Parameter,
    Problem,
    Task,
    Terms,
    counts_from,
    positive,
    record_delta,
)
from userdp.planning.rates import rate
from userdp.planning.tasks.means import least_users

NEEDS_DELTA = "delta must be > 0, as the noise of descents is Gaussian"
MOST_DIMENSION = 10**100
MOST_ROUNDS = 2**20
"""Of descents."""


@dataclass(frozen=True)
class Descent:
    """The public numbers of `ClippedGradientDescent(clip=lipschitz, average="all", n_iterations=steps)`, but for n."""

    epsilon: Fraction | LogRatio
    delta: Fraction
    m: int
    dimension: int
    lipschitz: float
    smoothness: float
    radius: float
    uniform: float
    """The mean of sup |F - F_N| in the ball, or of what takes its place, is at most this over the root of N = n m."""
    accepted: float
    """The mean excess that is asked for."""

    @property
    def steps(self) -> int:
        """So many that the start takes a quarter of what is accepted, with gradients without noise."""
        rounds = math.ceil(2 * self.smoothness * self.radius**2 / self.accepted)  # of H R^2 / (2 T)
        if rounds > MOST_ROUNDS:
            raise NotPlanned(f"more than {MOST_ROUNDS} steps would be needed; raise alpha, or give a radius")
        return rounds

    def excess(self, n_users: int) -> float:
        """At least the mean excess of the expected loss."""
        from userdp.optimization import CustomLoss, L2Ball
        from userdp.optimization.clipped import ClippedMean, clipped_descent
        from userdp.optimization.descent import DescentProblem
        from userdp.optimization.schedules import averaged_bound

        asked = DescentProblem(
            n_users=n_users,
            dimension=self.dimension,
            loss=CustomLoss(_no_loss, lipschitz=self.lipschitz, smoothness=self.smoothness),
            constraint=L2Ball(self.radius),
            start=(0.0,) * self.dimension,
            max_norm=1.0,
            m=self.m,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        rounds = self.steps
        try:
            made = clipped_descent(asked, clip=self.lipschitz, n_iterations=rounds, average="all")
        except ValueError as error:  # a delta that is too small for the distance
            raise NotPlanned(str(error)) from None
        step = made.step
        assert isinstance(step, ClippedMean)
        noise = step.grid / n_users * math.sqrt(self.dimension * float(step.noise.sigma_squared))
        size = made.optimizer.step_sizes[0]
        of_steps = averaged_bound(rounds, rounds, size=size, radius=self.radius, noise=noise)
        # Users' gradients lose less than a step of the grid in each entry.
        rounding = 2 * self.radius * step.grid * math.sqrt(self.dimension)
        return of_steps + rounding + self.uniform / math.sqrt(n_users * self.m)

    def users(self) -> int:
        """The least number for which the bound is at most what is accepted."""
        if not self.delta:
            raise NotPlanned(NEEDS_DELTA)
        least = (self.uniform / self.accepted) ** 2 / self.m
        if least > MOST_USERS:
            raise NotPlanned(f"more than {MOST_USERS} users would be needed; raise alpha or epsilon")
        return least_users(self.excess, self.accepted, max(2, math.ceil(least)))


def _no_loss(theta: Any, X: Any, y: Any) -> Any:
    """Plans ask for its bounds only."""
    raise AssertionError(theta, X, y)


def of_record_level(problem: Problem) -> Problem:
    """The same for records that count as users, with what groups of m of them leave of epsilon and delta."""
    level = Fraction(float(parse_level(problem.epsilon)))
    part = record_delta(level, problem.delta, problem.m)
    if problem.delta and not part:
        raise NotPlanned(f"no delta is left for a record, as a group of {problem.m} takes it all")
    return problem.at(m=1, epsilon=level / problem.m, delta=part)


CHAINING = 16.24
"""12 times the integral of the root of ln(1 + 2 / u) from 0 to 1, rounded up."""


def _descent(problem: Problem) -> Descent:
    size = problem["lipschitz"] * problem["radius"]
    return Descent(
        epsilon=problem.epsilon,
        delta=problem.delta,
        m=problem.m,
        dimension=problem["dimension"],
        lipschitz=problem["lipschitz"],
        smoothness=problem["smoothness"],
        radius=problem["radius"],
        uniform=CHAINING * size * math.sqrt(problem["dimension"]),
        accepted=problem.alpha,
    )


def _grouped(problem: Problem) -> int:
    return max(2, math.ceil(_descent(of_record_level(problem)).users() / problem.m))


def theorem_4(lipschitz: Callable[[Problem], float], radius: Callable[[Problem], float]) -> Callable[[Problem], Terms]:
    """The paper's number of users, for gradients that vary alike in all directions."""

    def terms(problem: Problem) -> Terms:
        if not problem.delta:
            raise NotPlanned("the row is for delta > 0")
        d, longest = problem["dimension"], lipschitz(problem)
        common: dict[str, Any] = {"m": problem.m, "epsilon": problem.epsilon, "delta": problem.delta}
        common |= {"alpha": problem.alpha, "dimension": d, "lipschitz": longest, "sigma": longest / math.sqrt(d)}
        return dict(rate("regression", row=ROW, radius=radius(problem), **common).terms)

    return terms


def _bound(asked: Asked) -> dict[str, BoundTerm]:
    d, scale, m = asked["dimension"], float(asked["lipschitz"]) * float(asked["radius"]), asked.m
    if asked.beta is not None:
        return packed(packings.linear_losses(d, asked.alpha, scale, m), asked.level, asked.beta)
    return expected(lambda accuracy: packings.linear_losses(d, accuracy, scale, m), asked.level, asked.alpha)


def _least_risk(asked: AskedError) -> tuple[str, dict[str, float]]:
    longest, radius, sigma = asked["lipschitz"], asked["radius"], asked["sigma"]
    terms = few_users(asked.n, asked.level, asked.delta, 2 * longest * radius)
    if sigma is not None:
        given = (asked.n, asked.m, asked["dimension"], asked.rate, asked.delta)
        terms |= linear_loss_errors(*given, float(sigma), float(longest), float(radius))
    return "excess risk", terms


ROW = "LSAKKMS21: Theorem 4, convex loss, expected risk, inverted to users"
THEOREM = "[LSAKKMS21, Proposition 4] with constants, and uniform convergence by chaining"
RUNS = "ClippedGradientDescent(clip=lipschitz, average='all', n_iterations=2 smoothness radius^2 / alpha)"

SCO = Task(
    name="sco",
    question="the parameters in an L2 ball with the least expected loss, for any smooth convex loss of records",
    measure="the mean excess of the expected loss over the least one in the ball",
    parameters=(
        Parameter("dimension", "entries of the parameters", counts_from(1, 2**20), 1),
        Parameter("lipschitz", "the largest L2 norm of a gradient", positive, 1.0),
        Parameter("smoothness", "how fast gradients change: the largest curvature", positive, 1.0),
        Parameter("radius", "of the ball", positive, 1.0),
    ),
    methods=(
        Method(
            "per-user clipping",
            RUNS + ", in which nobody's mean gradient is clipped",
            theorem=THEOREM,
            proved=lambda problem: _descent(problem).users(),
            baseline="per-user clipping",
        ),
        Method(
            "winsorized",
            "WinsorizedGradientDescent()",
            needs=lambda problem: "how far users' gradients are apart, for its accuracy",
            row=ROW,
            rate=theorem_4(lambda problem: problem["lipschitz"], lambda problem: problem["radius"]),
        ),
        Method(
            "one record per person",
            RUNS + " on the first record of each user",
            theorem=THEOREM,
            proved=lambda problem: _descent(problem.at(m=1)).users(),
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            RUNS + " at epsilon / m where each record is a user",
            theorem=THEOREM,
            proved=_grouped,
            baseline="group privacy",
        ),
    ),
    data="",
    largest_alpha=math.inf,
    scale=lambda problem: problem["lipschitz"] * problem["radius"],
    accuracy="mean",
    bound=Bound(
        "all learners of parameters in the ball that work for every convex loss with such gradients, of all "
        "distributions of records",
        _bound,
        (DIMENSION, LIPSCHITZ, RADIUS),
        mean=True,
        share=False,
        error=_least_risk,
        error_parameters=(
            named_count("dimension", "entries of the parameters", most=MOST_DIMENSION, default=1),
            LIPSCHITZ,
            RADIUS,
            Parameter("sigma", "the sub-Gaussian constant of gradients, for a second term", size, None),
        ),
    ),
)
