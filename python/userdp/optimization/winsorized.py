"""Winsorized gradient descent: gradients answered by private means, and the plans of its rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget
from userdp.exact.numbers import Delta, check_count, counted, short_repr
from userdp.means.concentration import gradient_radius
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.methods import METHODS, NEED_A_PROMISE, Answers, plan_answers
from userdp.means.problem import MeanProblem
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.constraints import length, optional_length
from userdp.optimization.descent import (
    Descent,
    DescentProblem,
    DescentRounds,
    MeanStep,
    PrivateDescent,
    PublicRandomEstimator,
    optional_rounds,
    regularization_parameter,
    start_parameter,
)
from userdp.optimization.losses import GradientRows
from userdp.optimization.schedules import (
    ProjectedDescent,
    Schedule,
    convex_bound,
    convex_schedule,
    nonconvex_bound,
    nonconvex_schedule,
    strongly_convex_bound,
    strongly_convex_schedule,
    tail_bound,
    tail_schedule,
)
from userdp.public_randomness import PublicSeed

CLIP_NOBODY = tuple(name for name in METHODS if name not in NEED_A_PROMISE)
"""Methods for means that clip nobody inside the range, unless released tests allow it."""
CONVEX = {"convex": (convex_bound, convex_schedule), "convex-tail": (tail_bound, tail_schedule)}
VARIANTS = (*CONVEX, "strongly-convex", "nonconvex")
DEFAULT_ITERATIONS = [2**k for k in range(9)]
"""Of these the one with the least bound is taken."""


@dataclass(frozen=True)
class GradientOptions:
    """Public choices of a descent along private mean gradients."""

    variant: str = "convex"  # one of VARIANTS
    method: str = "auto"  # a method for means, or "tracking"
    n_iterations: int | None = None
    concentration: float | None = None  # the expected distance of a user's mean gradient from that of all
    sub_gaussian: float | None = None  # sigma of a record's gradient
    strong_convexity: float | None = None
    gap: float | None = None
    gamma: float = 0.01
    kappa: float = 1.05
    grid_resolution: int | None = None

    @property
    def promised(self) -> bool:
        """Whether anybody vouches for how near users' gradients are."""
        return self.concentration is not None or self.sub_gaussian is not None

    def sigma(self, problem: DescentProblem) -> float:
        """The sub-Gaussian constant of a record's gradient: by default as if all directions were alike."""
        return self.sub_gaussian or problem.lipschitz / math.sqrt(problem.dimension)

    def mean_problem(self, problem: DescentProblem) -> MeanProblem:
        """The public numbers of a mean gradient, with the account of all."""
        sigma, d = self.sigma(problem), problem.dimension
        concentration = min(problem.lipschitz, self.concentration or sigma * math.sqrt(d / problem.m))
        if self.method == "paper" and self.concentration is None:
            # The concentration for which that method takes gradients to be within the tau of `gradient_radius`.
            tau = gradient_radius(
                sub_gaussian=sigma,
                dimension=d,
                n_users=problem.n_users,
                m=problem.m,
                smoothness=problem.loss.smoothness(problem.max_norm),
                radius=problem.radius,
                gamma=self.gamma,
            )
            log = math.log((1 + (d == 1)) * problem.n_users / self.gamma)
            concentration = min(problem.lipschitz, tau) / (math.sqrt(2 * log) + (d > 1))
        return MeanProblem(
            n_users=problem.n_users,
            dimension=d,
            max_norm=problem.lipschitz,
            norm="l2",
            concentration=concentration,
            epsilon=problem.epsilon,
            delta=problem.delta,
            beta=self.gamma,
            grid_resolution=self.grid_resolution,
            in_rho=problem.in_rho,
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
        if self.variant in CONVEX:
            return CONVEX[self.variant][0](steps, smoothness=H, radius=R, noise=noise)
        if self.variant == "nonconvex":
            return nonconvex_bound(steps, smoothness=H, gap=self.largest_gap(problem), noise=noise)
        return strongly_convex_bound(steps, smoothness=H, strong_convexity=self.mu(problem), radius=R, noise=noise)

    def schedule(self, problem: DescentProblem, steps: int, noise: float, seed: PublicSeed) -> Schedule:
        """Step sizes and weights."""
        H, R = problem.smoothness, problem.radius
        if self.variant in CONVEX:
            return CONVEX[self.variant][1](steps, smoothness=H, radius=R, noise=noise)
        if self.variant == "nonconvex":
            # 256 public bits modulo the number of steps: uniform but for 2**-240.
            index = int.from_bytes(seed.block("userdp query point"), "little") % steps
            gap = self.largest_gap(problem)
            return nonconvex_schedule(steps, smoothness=H, gap=gap, noise=noise, index=index)
        return strongly_convex_schedule(steps, smoothness=H, strong_convexity=self.mu(problem))


@lru_cache(maxsize=256)
def winsorized_descent(
    problem: DescentProblem, options: GradientOptions, seed: PublicSeed
) -> DescentRounds | TrackingDescent:
    """The descent of `WinsorizedGradientDescent`: what is not given has public defaults."""
    noise_of = _tracking_noise if options.method == "tracking" else _answers_noise
    candidates = [options.n_iterations] if options.n_iterations else DEFAULT_ITERATIONS
    noise = {steps: noise_of(problem, options, steps) for steps in candidates}
    steps = min(candidates, key=lambda steps: options.bound(problem, steps, noise[steps]))
    schedule = options.schedule(problem, steps, noise[steps], seed)
    optimizer = ProjectedDescent(problem.start, problem.constraint, schedule.step_sizes, schedule.weights)
    if options.method != "tracking":
        answers = _answers(problem, options, steps)
        return DescentRounds(problem, optimizer, AnsweredMean(answers, seed), answers.budget)
    mean = options.mean_problem(problem)
    account = mean.account(steps * problem.dimension, GRID_RESOLUTION)
    return TrackingDescent(
        problem,
        optimizer,
        account=account.part(Fraction(optimizer.rounds, steps)),
        distance=steps * problem.dimension * NOISE_DISTANCE,
        concentration=mean.possible_concentration,
        kappa=options.kappa,
        grid_resolution=options.grid_resolution or GRID_RESOLUTION,
    )


def _answers(problem: DescentProblem, options: GradientOptions, steps: int) -> Answers:
    mean = options.mean_problem(problem)
    mean = replace(mean, beta=mean.beta / steps)
    if options.promised or options.method not in CLIP_NOBODY:
        return plan_answers(options.method, mean, steps)
    # Without a promise there is no hint: nobody is clipped but by released tests.
    mean = replace(mean, concentration=None, promise="none")
    if options.method != "auto":
        return plan_answers(options.method, mean, steps)
    plans = [plan_answers("laplace", mean, steps)]
    if problem.delta:
        with suppress(ValueError):  # the distance of the noise from the ideal distribution would take all of delta
            plans.append(plan_answers("gaussian", mean, steps))
    return min(plans, key=lambda answers: answers.method.predicted_error())


def _answers_noise(problem: DescentProblem, options: GradientOptions, steps: int) -> float:
    return _answers(problem, options, steps).method.predicted_error()


def _tracking_noise(problem: DescentProblem, options: GradientOptions, steps: int) -> float:
    """Of a round in which theta hardly moves."""
    if not problem.delta:
        raise ValueError("delta must be > 0 for method='tracking', whose noise is Gaussian; got 0")
    mean = options.mean_problem(problem)
    rho = float(mean.account(steps * problem.dimension, GRID_RESOLUTION).rho) / steps
    return 2 * options.kappa * mean.possible_concentration / problem.n_users * math.sqrt(problem.dimension / (2 * rho))


Floats = npt.NDArray[np.float64]

RADII_IN_AN_OCTAVE = 4
"""Radii are rounded up to G times powers of 2**(1/4), so that there are few mechanisms."""
GRID_RESOLUTION = 2**20


class AnsweredMean(MeanStep):
    """Gradients as means of vectors of users, all under one account, with a public seed for rotations."""

    def __init__(self, means: Answers, seed: PublicSeed) -> None:
        self.means = means
        self.seed = seed

    def draw(self, round: int, rows: GradientRows, theta: Floats, draw: Sampler) -> Hashable:
        return self.means.draw(rows.at(theta), self.seed, round, draw)

    def estimate(self, round: int, answer: Any) -> Floats:
        return self.means.mean(answer, self.seed, round)

    def answers(self, round: int) -> Iterable[Hashable]:
        return self.means.method.outcomes()

    def n_answers(self, round: int) -> int:
        return self.means.method.n_outcomes()

    def warnings(self) -> list[str]:
        return self.means.method.warnings()


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


class TrackingDescent(PrivateDescent):
    """Gradients clipped to a small ball around the gradient that was released before."""

    # The ball of round t + 1 has the last released gradient as its center and the radius
    # kappa sqrt(u^2 + V + (H |theta_{t+1} - theta_t|)^2): users' mean gradients differ by u, the concentration, which
    # is about utility only; the released one is off by noise of V; and gradients move by at most H times as far as
    # theta did. In the first round it is the ball of all gradients. Balls' radii have from `grid_resolution`, a power
    # of two, to twice as many steps of a grid.
    #
    # Privacy. The ball of a round is a function of what was released before. Given that, a user's integers depend on
    # that user alone, and their length is at most the reach of the ball, in integers; replacing one user moves the sum
    # by twice that in L2, for which the noise has a T-th of the account. Adaptive composition adds up to all of it.

    def __init__(
        self,
        problem: DescentProblem,
        optimizer: ProjectedDescent,
        *,
        account: GaussianAccount,
        distance: Fraction,
        concentration: float,
        kappa: float,
        grid_resolution: int = GRID_RESOLUTION,
    ) -> None:
        self.problem = problem
        self.optimizer = optimizer
        self.rounds = optimizer.rounds
        self.draws = self.rounds
        self.account = account
        self.distance = distance
        self.concentration = concentration
        self.kappa = kappa
        self.grid_resolution = grid_resolution

    def budget(self) -> Budget:
        return self.account.budget({"gradients": 1}, self.distance, self.problem.epsilon, self.problem.delta)

    @property
    def part(self) -> GaussianAccount:
        """Of one round."""
        return self.account.part(Fraction(1, self.rounds))

    def noise(self, ball: Ball) -> DiscreteGaussian:
        """The noise of a round with this ball."""
        return self.part.noise(2 * ball.reach)

    def program(self, rows: GradientRows) -> AdaptiveMechanism:
        def transcript(draw: Sampler) -> Hashable:
            def answer(round: int, theta: Floats, ball: Ball) -> Any:
                sums = rows.at(theta).filled().clipped_sum(ball.center, ball.radius, ball.grid)
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
            theta = state.theta
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
        noise = (
            problem.dimension * (2 * ball.radius / problem.n_users) ** 2 / (2 * float(self.account.rho) / self.rounds)
        )
        drift = problem.loss.smoothness(problem.max_norm) * distance
        radius = self.kappa * math.sqrt(self.concentration**2 + noise + drift**2)
        return self._ball(gradient, min(radius, 2 * problem.lipschitz))

    def _ball(self, center: Floats, wanted: float) -> Ball:
        octaves = math.ceil(RADII_IN_AN_OCTAVE * math.log2(wanted / self.problem.lipschitz) - 1e-9)
        radius = self.problem.lipschitz * 2.0 ** (octaves / RADII_IN_AN_OCTAVE)
        grid = 2.0 ** math.floor(math.log2(radius) - math.log2(self.grid_resolution))
        return Ball(center, radius, grid)

    def _ends(self) -> int:
        """Beyond every answer: of a ball with the most steps, and the noise of the longest."""
        steps = 2 * self.grid_resolution
        return self.problem.n_users * steps + self.part.noise(2 * steps).support

    def outcomes(self) -> Iterator[Hashable]:
        end = self._ends()
        one = tuple(product(range(-end, end + 1), repeat=self.problem.dimension))
        return product(one, repeat=self.rounds)

    def n_outcomes(self) -> int:
        return counted((2 * self._ends() + 1, self.problem.dimension * self.rounds))


MOST_RESOLUTION = 2**28
"""So that a user's integers fit into 32 bits."""


def _power_of_two(value: Any, name: str) -> None:
    grid = 1 if value is None else check_count(value, name)
    if grid & (grid - 1) or grid > MOST_RESOLUTION:
        raise ValueError(f"{name} must be a power of two up to 2**28; got {short_repr(value)}")


@estimator
class PrivateGradientDescent(PublicRandomEstimator, Descent):
    """What descents share whose gradients are private means of users' gradients."""

    method: str = fields.choice(
        (*METHODS, "tracking"),
        default="auto",
        doc="""
        How a mean gradient is estimated: as in `userdp.means.WinsorizedMean`, or, "tracking", by clipping to a
        ball around the gradient that was released before, which pays when there are many records of each user.
        """,
    )
    concentration: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc="""
        The expected distance of a user's mean gradient from that of all users: a public promise, beyond which methods
        may clip. By default sub_gaussian sqrt(d / m) where that is given; for "paper" the tau of [LSAKKMS21,
        Proposition 1], put right (docs/errata.md).
        """,
    )
    sub_gaussian: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc="sigma: gradients of one record are sigma-sub-Gaussian. By default G / sqrt(d). Public.",
    )
    gamma: float = fields.open_unit(default=0.01, doc="How likely a range may be missed, in any of the steps.")
    kappa: float = fields.parameter(
        default=1.05,
        check=lambda value, name: length(value, name),
        kind="float",
        doc='For "tracking": the radius over what is expected.',
    )
    n_iterations: int | None = fields.parameter(
        default=None,
        check=optional_rounds,
        kind="int, optional",
        doc="How many steps are taken; by default a public number for which a bound on the error is least.",
    )
    start: npt.ArrayLike | None = start_parameter()
    grid_resolution: int | None = fields.parameter(
        default=None,
        check=_power_of_two,
        kind="int, optional",
        doc="Steps of the public grid in a clipping radius, a power of two up to 2**28.",
    )


@estimator
class WinsorizedGradientDescent(PrivateGradientDescent):
    """Gradient descent on mean gradients that are estimated privately where users' gradients concentrate.

    When users have many records, their mean gradients are close to each other. The noise then follows from how close
    they are, not from how long a gradient could be.

    Attributes
    ----------
    theta_ : ndarray with shape (d,)
        Released.
    public_seed_ : str
        Public.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbors differ in all the records of one user. *Proof.* The points where
    gradients are asked for, the steps and the average are functions of public numbers and of what was released. Each
    round is one mean of users' vectors with its part of one account (docs/proofs/adaptive_queries.md).

    *Utility.* With nu the root mean square of the noise of a round, H the smoothness, R the largest distance from the
    start (docs/proofs/descent_schedules.md): "convex", the average of T points: excess at most
    H R^2 / (2 T) + sqrt(2) R nu / sqrt(T); "convex-tail", the average of the last half of them: at most twice that, and
    often far less; "strongly-convex", two phases:
    (H R^2 / T) (1 - mu / H)^(T/2) + 10 nu^2 / (mu T) for even T; "nonconvex", a random one of the points: the squared
    gradient mapping is at most 12 (H Delta / T + nu sqrt(H Delta / T)). They hold for unbiased noise, that is where
    nobody is clipped.

    References
    ----------
    [LSAKKMS21, Algorithm 3] and [LSAKKMS21, Algorithm 7], [LSAKKMS21, Theorem 3] and [LSAKKMS21, Proposition 4].

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.optimization import L2Ball, LogisticLoss, WinsorizedGradientDescent
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(1000), 64)
    >>> X = rng.normal(size=(64_000, 2)) / 2
    >>> y = rng.random(64_000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    >>> descent = WinsorizedGradientDescent(
    ...     epsilon=1, delta=1e-6, loss=LogisticLoss(), constraint=L2Ball(3.0), max_norm=1.5, target_bounds=(0, 1), m=64
    ... )
    >>> theta = descent.fit(X, y, groups=users).theta_
    >>> bool(theta[0] > 0.5), bool(abs(theta[1]) < 0.5)
    (True, True)
    """

    delta: Delta = fields.delta(
        default=0, doc="In [0, 1). With 0 each step spends epsilon / T; a positive one is far better."
    )
    variant: str = fields.choice(VARIANTS, default="convex", doc="The schedule, and what is proved of it; see Notes.")
    strong_convexity: float | None = fields.parameter(
        default=None, check=optional_length, kind="float, optional", doc="mu > 0; by default `regularization`."
    )
    gap: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc='For "nonconvex": how far the loss at the start may be above its least value.',
    )
    regularization: float = regularization_parameter(
        "lambda >= 0 of the term lambda |theta|^2 / 2, whose gradient is public and is added after the noise."
    )

    def _uses_m(self) -> bool:
        return self.concentration is None and self.sub_gaussian is not None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.concentration is None and self.sub_gaussian is None and self.method not in CLIP_NOBODY:
            raise TypeError(
                f"concentration, how far a user's mean gradient is expected from that of all users, must be given for "
                f"method={short_repr(self.method)}, which clips farther ones; without it method='auto' clips nobody"
            )

    def _descent(self, problem: DescentProblem, seed: PublicSeed | None) -> PrivateDescent:
        assert seed is not None
        return winsorized_descent(problem, gradient_options(self, variant=self.variant), seed)


def gradient_options(estimator: Any, *, variant: str) -> GradientOptions:
    """The options that an estimator's parameters say."""

    def number(name: str) -> float | None:
        value = getattr(estimator, name, None)
        return None if value is None else float(value)

    return GradientOptions(
        variant=variant,
        method=estimator.method,
        n_iterations=None if estimator.n_iterations is None else int(estimator.n_iterations),
        concentration=number("concentration"),
        sub_gaussian=number("sub_gaussian"),
        strong_convexity=number("strong_convexity"),
        gap=number("gap"),
        gamma=float(estimator.gamma),
        kappa=float(estimator.kappa),
        grid_resolution=None if estimator.grid_resolution is None else int(estimator.grid_resolution),
    )
