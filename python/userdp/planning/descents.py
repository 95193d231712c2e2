"""Descents for logistic regression side by side: what is proved for all data, and what reference users lead to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import COUNTED, check_count, parse_delta, parse_level
from userdp.optimization import L2Ball, LogisticLoss
from userdp.optimization.clipped import ClippedMean, clipped_descent
from userdp.optimization.descent import DescentProblem, DescentRounds, PrivateDescent
from userdp.optimization.phased import PhasedDescent
from userdp.optimization.schedules import averaged_bound
from userdp.optimization.winsorized import AnsweredMean, GradientOptions, TrackingDescent, winsorized_descent
from userdp.planning.problem import ErrorsAsked, positive, records_there, users_there
from userdp.public_randomness import PublicSeed
from userdp.report import Comparison, Prediction

Floats = npt.NDArray[np.float64]

PUBLIC = PublicSeed(bytes(32))
"""Rotations and blocks do not change how large noise is."""
LEAST = "the least expected excess on reference users: rows evenly on a sphere, labels by a theta at half the radius"
BOUND = "the least bound; reference users are not run in so many columns"
MOST_NUMBERS = 2**17
"""Of the reference rows."""
MOST_RECORDS = 64
MOST_COLUMNS = 512
RUNS, SEED = 4, 11
FARTHEST = 3.0
"""The reference theta is no longer than that, in units of 1 / max_norm: labels are then not all certain."""


@dataclass(frozen=True)
class ReferenceUsers:
    """Rows evenly on a sphere and labels of a logistic model; the same ones for all plans of a shape."""

    X: Floats
    """Of shape (users, records, columns), each row times its label."""
    pull: float
    """How much nearer users are to each other than these, who have fewer records: the root of a ratio of records."""

    @classmethod
    def of(cls, problem: DescentProblem) -> ReferenceUsers:
        """Those of a problem."""
        d, records = problem.dimension, min(problem.m, MOST_RECORDS)
        users = max(32, MOST_NUMBERS // (d * records) // 4)
        rng = np.random.default_rng(SEED)
        X = rng.standard_normal((users, records, d))
        X *= problem.max_norm / np.linalg.norm(X, axis=2, keepdims=True)
        truth = np.full(d, min(problem.radius / 2, FARTHEST / problem.max_norm) / math.sqrt(d))
        signs = np.where(rng.random((users, records)) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
        return cls(X * signs[:, :, None], math.sqrt(records / problem.m))

    def loss(self, theta: Floats) -> float:
        """The mean over users."""
        return float(np.logaddexp(0, -(self.X @ theta)).mean())

    def least(self, problem: DescentProblem) -> float:
        """The least loss in the constraint, by steps without noise."""
        theta, step = np.array(problem.start), 1 / problem.smoothness
        ahead, momentum = theta, 1.0
        for _ in range(3000):
            moved = problem.constraint.project(ahead - step * self.gradients(ahead).mean(axis=0))
            after = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead, theta, momentum = moved + (momentum - 1) / after * (moved - theta), moved, after
        return self.loss(theta)

    def gradients(self, theta: Floats) -> Floats:
        """Of each user, as far from their mean as those of users with all of their records are."""
        weights = -1 / (1 + np.exp(np.clip(self.X @ theta, -700, 700)))
        means = (weights[:, None, :] @ self.X)[:, 0] / self.X.shape[1]
        common = means.mean(axis=0)
        return common + self.pull * (means - common)

    def at(self, theta: Floats) -> Gradients:
        """As of rows that a descent reads."""
        return Gradients(self.gradients(theta))


@dataclass(frozen=True)
class Gradients:
    """What a step asks of users' gradients: here the mean, in place of the sum over all users there are."""

    vectors: Floats

    def filled(self) -> Gradients:
        """Nobody is without records."""
        return self

    def clipped_sum(self, center: Floats, radius: float, grid: float) -> Floats:
        """In steps of the grid, the mean over users."""
        away = self.vectors - center
        lengths = np.linalg.norm(away, axis=1, keepdims=True)
        return (away * np.minimum(1, radius / np.maximum(lengths, 1e-300))).mean(axis=0) / grid


def reached(descent: PrivateDescent, users: ReferenceUsers, rng: np.random.Generator) -> Floats:
    """Where a run on reference users ends, with noise as large as the plan's."""
    if isinstance(descent, PhasedDescent):
        theta = np.array(descent.problem.start)
        for index in range(len(descent.blocks)):
            theta = reached(descent.round(index, theta), users, rng)
        return theta
    if isinstance(descent, DescentRounds) and isinstance(descent.step, AnsweredMean):
        spread = gradient_noise(descent) / math.sqrt(descent.problem.dimension)
        state = descent.optimizer.begin()
        for _ in range(descent.rounds):
            noisy = users.gradients(state.theta).mean(axis=0) + rng.normal(0, spread, descent.problem.dimension)
            state = descent.optimizer.update(state, noisy + descent.problem.regularizer(state.theta))
        return descent.optimizer.aggregate(state)
    assert isinstance(descent, (DescentRounds, TrackingDescent))
    count = descent.step.count if isinstance(descent, DescentRounds) and isinstance(descent.step, ClippedMean) else 0
    total = count or descent.problem.n_users

    def draw(noise: Any, sums: Any) -> Any:
        """The sum over all users there are, and noise."""
        spread = math.sqrt(float(noise.sigma_squared))
        return tuple(np.array(sums) * total + rng.normal(0, spread, len(sums)))

    # These descents ask their rows and their sampler for no more than these two have.
    rows: Any = users
    drawn: Any = draw
    return descent.theta(descent.program(rows)(drawn))


def gradient_noise(descent: PrivateDescent) -> float:
    """Root mean square of the L2 noise in the gradient of a step, once theta hardly moves."""
    if isinstance(descent, TrackingDescent):
        problem, n = descent.problem, descent.problem.n_users
        # V = share * radius^2, and radius^2 = kappa^2 (u^2 + V).
        share = problem.dimension * (2 / n) ** 2 / (2 * float(descent.account.rho) / descent.rounds)
        left = 1 / descent.kappa**2 - share
        largest = 2 * problem.lipschitz
        radius = min(descent.concentration / math.sqrt(left), largest) if left > 0 else largest
        return radius * math.sqrt(share)
    assert isinstance(descent, DescentRounds)
    step = descent.step
    if isinstance(step, ClippedMean):
        return step.grid / step.count * math.sqrt(step.dimension * float(step.noise.sigma_squared))
    assert isinstance(step, AnsweredMean)
    return step.means.method.predicted_error()


def descent_problem(asked: ErrorsAsked) -> DescentProblem:
    """The problem of logistic regression in a ball."""
    given = asked.known("descent", dimension=1, max_norm=1.0, radius=None)
    n_users, m = users_there(asked.n_users), records_there(asked.m or 0)
    if not parse_delta(asked.delta):
        raise ValueError("delta must be > 0 for descents, whose noise is Gaussian; got 0")
    d, longest = check_count(given["dimension"], "dimension", most=COUNTED), positive(given["max_norm"], "max_norm")
    reach = 4 * math.sqrt(d) / longest if given["radius"] is None else positive(given["radius"], "radius")
    return DescentProblem(
        n_users=n_users,
        dimension=d,
        loss=LogisticLoss(),
        constraint=L2Ball(reach),
        start=(0.0,) * d,
        max_norm=longest,
        m=m,
        epsilon=positive_epsilon(asked.epsilon),
        delta=parse_delta(asked.delta),
    )


def descents_of(problem: DescentProblem) -> dict[str, tuple[PrivateDescent, str]]:
    """The descents of `userdp.optimization` by their defaults, and what is to be known of each."""
    plain: dict[str, Callable[[], DescentRounds | TrackingDescent]] = {
        "clipped": lambda: clipped_descent(problem),
        "winsorized": lambda: winsorized_descent(problem, GradientOptions(method="auto"), PUBLIC),
        "winsorized, tracking": lambda: winsorized_descent(problem, GradientOptions(method="tracking"), PUBLIC),
    }
    found: dict[str, tuple[PrivateDescent, str]] = {}
    for name, make in plain.items():
        descent = make()
        found[name] = descent, f"{descent.rounds} steps; the worst error is where no gradient is clipped"
    phased = PhasedDescent(problem, GradientOptions(variant="strongly-convex"), PUBLIC)
    blocks = phased.phases.users
    found["phased"] = phased, f"{len(blocks)} blocks, the last of {blocks[-1]} users; no rate is proved"
    return found


def compare_descents(asked: ErrorsAsked) -> Comparison:
    """The noise of a step, the proved bound of the excess, and the excess that reference users lead to."""
    if asked.m is None:
        raise TypeError("m is needed for task='descent': how many records a user has")
    problem = descent_problem(asked)
    users = ReferenceUsers.of(problem) if problem.dimension <= MOST_COLUMNS else None
    least = 0.0 if users is None else users.least(problem)
    # No theta is worse than that, whatever was drawn: ln(1 + e^z) - ln(1 + e^-z) is z, and no |<x, theta>| is above
    # max_norm * radius in a ball around 0.
    trivial = problem.max_norm * problem.radius
    rows: list[Prediction] = []
    for name, (descent, note) in descents_of(problem).items():
        bound = None
        kinds = "noise exact"
        if isinstance(descent, PhasedDescent):
            last = descent.round(len(descent.blocks) - 1, np.array(problem.start))
            noise = gradient_noise(last)
        elif isinstance(descent, TrackingDescent):
            # The steps before have more, so that nothing is proved by it.
            noise, kinds = gradient_noise(descent), "noise exact once theta hardly moves"
        else:
            assert isinstance(descent, DescentRounds)
            noise, kinds = gradient_noise(descent), "noise exact, worst error proved"
            optimizer = descent.optimizer
            proved = averaged_bound(
                descent.rounds,
                sum(weight > 0 for weight in optimizer.weights),
                size=optimizer.step_sizes[0],
                radius=problem.radius,
                noise=noise,
            )
            bound = min(proved, trivial)
        expected = None
        if users is not None:
            rng = np.random.default_rng([SEED, len(rows)])
            losses = [users.loss(reached(descent, users, rng)) for _ in range(RUNS)]
            # Fitted without noise, a model that holds has an excess of d / (2 n m) on fresh records.
            sampling = problem.dimension / (2 * problem.n_users * problem.m)
            low, middle, high = (
                max(loss - least, 0.0) + sampling for loss in (min(losses), np.mean(losses), max(losses))
            )
            expected = float(middle)
            kinds += f", expected simulated in {RUNS} runs, from {low:.2g} to {high:.2g}"
        rows.append(Prediction(name, "user", noise, bound, note=f"{kinds}; {note}", expected=expected))
    sizes = {
        "n_users": problem.n_users,
        "m": problem.m,
        "dimension": problem.dimension,
        "max_norm": problem.max_norm,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "radius": problem.radius,
    }

    def size(line: Prediction) -> float:
        known = line.worst_error if line.expected is None else line.expected
        return math.inf if known is None else known

    best = min(rows, key=size)
    reason = LEAST if users is not None else BOUND
    return Comparison(task="descent", sizes=sizes, rows=tuple(rows), best=best.method, reason=reason)
