"""Descent along sums of clipped gradients with noise: user-level DP-SGD, with exact integers and exact noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from userdp.accounting import PrivacyCost, largest_epsilon_each
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget
from userdp.exact.epsilon import core_level, positive_epsilon
from userdp.exact.numbers import Delta, Epsilon, counted, parse_level, short_repr
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount, gaussian_account
from userdp.mechanisms import DiscreteGaussian, RandomSubset
from userdp.mechanisms.composed import Sampler
from userdp.optimization.constraints import length, optional_length
from userdp.optimization.descent import (
    Descent,
    DescentProblem,
    DescentRounds,
    MeanStep,
    optional_rounds,
    regularization_parameter,
    start_parameter,
)
from userdp.optimization.losses import GradientRows
from userdp.optimization.schedules import ProjectedDescent
from userdp.public_randomness import PublicSeed

Floats = npt.NDArray[np.float64]
Average = Literal["tail", "all", "last"]

GRID_RESOLUTION = 2**28
"""Steps of the grid in the clipping radius are from this up to twice as many."""
MOST_ITERATIONS = 2000
"""By default."""
MOST_NUMBERS = 2**32
"""The default reads so many numbers over all rounds, which takes about half a minute, or FREE_ITERATIONS times all."""
FREE_ITERATIONS = 200
CLIPS = ("range", "small")
"""What `clip` may be beside a number."""
PART_CLIP = 0.6
""""small" clips at this share of G / sqrt(m) where noise is large."""
LEAST_CLIP = 0.05
""""small" clips at no less than this share of the longest gradient."""
AVERAGES = ("tail", "all", "last")


class ClippedMean(MeanStep):
    """The sum over users of clipped gradients in integers, plus discrete Gaussian noise in every coordinate."""

    # A user's mean gradient g is clipped to the L2 norm C. Its integers are y = trunc(g s / grid), the grid a power of
    # two, with s <= 1 the factor that takes g into the ball of radius C, and |y| <= R = floor(C / grid) is enforced in
    # integers. Replacing one user moves the sum by at most 2R in L2, the sensitivity of `noise`. In each round `batch`
    # users are drawn without replacement, or all: the batch is secret, and no part of what is drawn for the transcript.

    def __init__(
        self, noise: DiscreteGaussian, *, clip: float, grid: float, dimension: int, n_users: int, batch: int | None
    ) -> None:
        self.noise = noise
        self.clip = clip
        self.grid = grid
        self.dimension = dimension
        self.count = n_users if batch is None else batch
        self.subset = None if batch is None else RandomSubset(population=n_users, subset_size=batch)
        self.draws = 1 if batch is None else 2

    def draw(self, round: int, rows: GradientRows, theta: Floats, draw: Sampler) -> tuple[int, ...]:
        if self.subset is not None:
            rows = rows.of(draw(self.subset))
        total = rows.at(theta).clipped_sum(np.zeros(self.dimension), self.clip, self.grid)
        return draw(self.noise, tuple(total.tolist()))

    def estimate(self, round: int, answer: Sequence[int]) -> Floats:
        return np.array(answer, dtype=np.float64) * (self.grid / self.count)

    def _ends(self) -> int:
        return self.count * math.floor(self.clip / self.grid) + self.noise.support

    def answers(self, round: int) -> Iterable[tuple[int, ...]]:
        return product(range(-self._ends(), self._ends() + 1), repeat=self.dimension)

    def n_answers(self, round: int) -> int:
        return counted((2 * self._ends() + 1, self.dimension))


@dataclass(frozen=True)
class Noise:
    """How much noise a round has, and what all rounds cost."""

    part: GaussianAccount  # for the sum over the users of a round
    budget: Budget


def _noise_of_rounds(problem: DescentProblem, n_iterations: int, batch: int | None, sensitivity: int) -> Noise:
    """The most that a round may spend: of the account of all rounds, or by amplification where that allows more."""
    epsilon, delta, d = positive_epsilon(problem.epsilon), problem.delta, problem.dimension
    integers = d * n_iterations
    account = gaussian_account(epsilon, delta, integers, sensitivity=sensitivity, in_rho=problem.in_rho)
    part = account.part(Fraction(1, n_iterations))
    whole = Noise(part, account.budget({"gradients": 1}, integers * NOISE_DISTANCE, epsilon, delta))
    if batch is None or batch == problem.n_users:
        return whole
    amplified = _amplified(epsilon, delta, n_iterations, Fraction(batch, problem.n_users), d, sensitivity)
    if amplified is None or amplified.sigma_squared(sensitivity) >= part.sigma_squared(sensitivity):
        return whole
    return Noise(amplified, Budget(PrivacyCost(epsilon, delta), {"gradients": epsilon}))


def _amplified(
    epsilon: Epsilon, delta: Fraction, n_iterations: int, share: Fraction, dimension: int, sensitivity: int
) -> GaussianAccount | None:
    """What a round may spend on its batch, when each round draws a share q of the users without replacement."""
    # An (e, d)-DP round on the batch is (ln(1 + q (e^e - 1)), q d)-DP on all users, for replacement of a user. Half of
    # delta goes to the d of the rounds, and half to composing their e.
    from userdp import _core

    each = largest_epsilon_each(n_iterations, epsilon, delta / 2)
    growth = _core.exp_bounds(core_level(parse_level(each)), 128)[0] - 1
    on_batch = Fraction(_core.ln_bounds(1 + growth / share)[0])
    delta_on_batch = min(delta / (2 * n_iterations * share), Fraction(1, 2))
    if on_batch <= 0:
        return None
    try:
        return gaussian_account(on_batch, delta_on_batch, dimension, sensitivity=sensitivity)
    except ValueError:  # a delta that is too small for the distance
        return None


@lru_cache(maxsize=64)
def clipped_descent(
    problem: DescentProblem,
    *,
    clip: float | str = "range",
    n_iterations: int | None = None,
    step_size: float | None = None,
    batch_users: int | None = None,
    average: Average = "tail",
    grid_resolution: int = GRID_RESOLUTION,
) -> DescentRounds:
    """The descent of `ClippedGradientDescent`: what is not given has public defaults."""
    if not problem.delta:
        raise ValueError("delta must be > 0 for descents with clipped gradients, whose noise is Gaussian; got 0")
    if batch_users is not None and batch_users > problem.n_users:
        raise ValueError(f"batch_users must be at most the number of users, {problem.n_users}; got {batch_users}")
    count = batch_users or problem.n_users
    relative = relative_noise(problem, count)
    radius = small_clip(problem, relative) if clip == "small" else problem.lipschitz if isinstance(clip, str) else clip
    rounds = n_iterations or default_iterations(problem, radius * relative, count)
    grid = 2.0 ** math.floor(math.log2(radius) - math.log2(grid_resolution))
    sensitivity = 2 * math.floor(radius / grid)
    noise = _noise_of_rounds(problem, rounds, batch_users, sensitivity)
    step = ClippedMean(
        noise.part.noise(sensitivity),
        clip=radius,
        grid=grid,
        dimension=problem.dimension,
        n_users=problem.n_users,
        batch=batch_users,
    )
    size = step_size or default_step_size(problem, radius, count, rounds, noise.part.rho)
    weights = {
        "tail": [float(2 * (done + 1) > rounds) for done in range(rounds)],
        "all": [1.0] * rounds,
        "last": [float(done + 1 == rounds) for done in range(rounds)],
    }[average]
    optimizer = ProjectedDescent(problem.start, problem.constraint, [size] * rounds, weights)
    return DescentRounds(problem, optimizer, step, noise.budget)


def relative_noise(problem: DescentProblem, count: int) -> float:
    """S = 2 sqrt(d) / (mu n): the noise of the mean of all rounds' gradients, over C."""
    integers = problem.dimension * MOST_ITERATIONS
    account = gaussian_account(
        problem.epsilon, problem.delta, integers, sensitivity=GRID_RESOLUTION, in_rho=problem.in_rho
    )
    rho = float(account.rho)
    return math.sqrt(2 * problem.dimension / rho) / count


def small_clip(problem: DescentProblem, relative: float) -> float:
    """C = (0.6 + k / sqrt(m)) G / sqrt(m), but at least G / 20, with k = max(0, 1 / (1 + 20 s) - 0.6)."""
    # Means of m gradients are within about G / sqrt(m) of what is common to all users. Clipping at a part of that makes
    # the noise less; it biases theta by how skew these means are, which falls with m, so that for small m it pays only
    # where the noise is large.
    more = max(0.0, 1 / (1 + 20 * relative) - PART_CLIP)
    root = math.sqrt(problem.m)
    return problem.lipschitz * max((PART_CLIP + more / root) / root, LEAST_CLIP)


def default_iterations(problem: DescentProblem, noise: float, count: int) -> int:
    """T for which the two terms of H R^2 / (2 T) + sqrt(2) R C s are equal, within reason; the noise is C s."""
    balanced = problem.smoothness * problem.radius / (2 * math.sqrt(2) * noise)
    of_a_user = problem.m * problem.dimension + problem.loss.numbers_of_a_call
    in_time = max(FREE_ITERATIONS, MOST_NUMBERS // (count * of_a_user))
    return max(1, math.ceil(min(balanced, MOST_ITERATIONS, in_time)))


def default_step_size(problem: DescentProblem, clip: float, count: int, n_iterations: int, rho: Fraction) -> float:
    """min(1 / H, R / (nu sqrt(2 T))), with nu the root mean square of the noise in a round's gradient."""
    noise = 2 * clip / count * math.sqrt(problem.dimension / (2 * float(rho)))
    return min(1 / problem.smoothness, problem.radius / (noise * math.sqrt(2 * n_iterations)))


def _clip(value: Any, name: str) -> None:
    if isinstance(value, str):
        if value not in CLIPS:
            raise ValueError(f'{name} must be a length > 0, "range" or "small"; got {short_repr(value)}')
    else:
        length(value, name)


@estimator
class ClippedGradientDescent(Descent):
    """Gradient descent where each user's mean gradient is clipped and the sum gets noise: user-level DP-SGD.

    Attributes
    ----------
    theta_ : ndarray with shape (columns,), or (columns + 1,) with an intercept
        The only output of the mechanism: a public function of the noisy sums. No iterate, loss or count is kept.
    n_users_ : int
        Public.
    unit_ : {"user", "record"}
        Whose data is protected.
    privacy_ : PrivacyRecord
    is_private_ : bool
        False where a setting voids the guarantee.

    Notes
    -----
    *Neighbors.* Datasets that differ in all the records of one user; the list of users is public.

    *Sensitivity.* Gradients are rounded to a public grid, and their norm of at most R steps is enforced in integers. In
    the sum over users, replacing one moves it by at most 2R in L2: 2C, and not C, which would be for adding a user.

    *Budget.* Full batch: each of the T rounds spends mu^2 / T, with mu^2 the largest for which Gaussian noise has
    (epsilon, delta) by its exact curve, distances included; or rho / T, in zCDP, on coarse grids and where a ledger
    pays that counts rho. With batches, each round is
    (e, d)-DP on its batch and so (ln(1 + q (e^e - 1)), q d)-DP on all users, q = batch_users / n; T of these are
    composed by the optimal composition theorem. Where a T-th of the account allows less noise that is used. Proofs:
    docs/proofs/descent.md.

    *Time.* Not constant time. The number of rounds is public.

    References
    ----------
    Levy et al., "Learning with User-Level Privacy" (NeurIPS 2021), section 4, for the problem. Abadi et al., "Deep
    Learning with Differential Privacy" (CCS 2016), for clipping. Balle, Barthe, Gaboardi, "Privacy Amplification by
    Subsampling" (NeurIPS 2018), Theorem 11, for batches.

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.optimization import L2Ball, LogisticLoss
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(2000), 8)
    >>> X = rng.uniform(-0.7, 0.7, size=(16000, 2))
    >>> y = np.where(X @ [3.0, -1.0] + rng.logistic(size=16000) > 0, 1, -1)
    >>> learner = ClippedGradientDescent(
    ...     epsilon=1,
    ...     delta=1e-6,
    ...     loss=LogisticLoss(),
    ...     constraint=L2Ball(5.0),
    ...     max_norm=1.0,
    ...     target_bounds=(-1, 1),
    ...     m=8,
    ... ).fit(X, y, groups=users)
    >>> bool(np.linalg.norm(learner.theta_ - [3.0, -1.0]) < 1)
    True
    """

    grid_resolution: ClassVar[int] = GRID_RESOLUTION

    delta: Delta = fields.delta(doc="In (0, 1).")
    clip: float | str = fields.parameter(
        default="range",
        check=_clip,
        kind='float, "range" or "small"',
        doc="""
        C > 0: a user's mean gradient is clipped to this L2 norm. "range" is G, the longest that a gradient can be, so
        that nobody is clipped. "small" is (0.6 + k / sqrt(m)) G / sqrt(m), at least G / 20, with
        k = max(0, 1 / (1 + 20 s) - 0.6) and s = 2 sqrt(d) / (mu n): less noise, for many rows of a user that are alike
        for all users. It is biased where a user's rows are alike or classes rare: a share of 5 % may come out as 1.3 %.
        """,
    )
    n_iterations: int | None = fields.parameter(
        default=None,
        check=optional_rounds,
        kind="int, optional",
        doc="""
        T, the number of steps. By default the one that balances the two terms of the error bound for the average, at
        most 2000; and at most 200 where 200 steps read more than 2**32 numbers. More steps than that pay where features
        are of unlike sizes, and take time.
        """,
    )
    step_size: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc="""
        > 0. By default min(1 / H, R / (nu sqrt(2 T))), nu the root mean square of the noise in a round's gradient and R
        the largest distance from the start.
        """,
    )
    batch_users: int | None = fields.count(
        default=None,
        doc="""
        In every round so many users are drawn without replacement, by exact samplers; all by default, and that is
        better unless time is short.
        """,
    )
    average: str = fields.choice(
        AVERAGES, default="tail", doc="Which points after steps are averaged: the last half, all, or the last."
    )
    regularization: float = regularization_parameter(
        """
        lambda >= 0 of the term lambda |theta|^2 / 2, whose gradient is public and is added after the noise. The
        intercept is included.
        """
    )
    start: npt.ArrayLike | None = start_parameter()

    def _uses_m(self) -> bool:
        return isinstance(self.clip, str) and self.clip == "small"

    def _descent(self, problem: DescentProblem, seed: PublicSeed | None) -> DescentRounds:
        return clipped_descent(
            problem,
            clip=self.clip if isinstance(self.clip, str) else float(self.clip),
            n_iterations=None if self.n_iterations is None else int(self.n_iterations),
            step_size=None if self.step_size is None else float(self.step_size),
            batch_users=None if self.batch_users is None else int(self.batch_users),
            average=self.average,
            grid_resolution=self.grid_resolution,
        )
