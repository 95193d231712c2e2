"""The iterated clipped mean: clip to a ball around the last released center, release, shrink the ball, repeat.

First its rounds (how many, how wide), planned in floats on public numbers, which choose parameters only: what is drawn
is private whatever they are. Then exact noise, and the method.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget
from userdp.exact.epsilon import positive_epsilon, rational_below
from userdp.exact.numbers import counted
from userdp.means.accuracy import (
    NODES,
    PLANNING_NODES,
    ROUNDING,
    Accuracy,
    ClippingBias,
    NoiseTerm,
    PromisedBias,
    UnknownBias,
)
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.problem import MAX_RESOLUTION, Floats, MeanMethod, MeanProblem, SumNoise, laplace_noise
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

MOST_ROUNDS = 8
WORTH_A_ROUND = 0.97
"""A round more must cut the predicted error to this."""

KAPPAS = (1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0)
WIDE = (5.0, 6.5, 8.0, 12.0, 20.0)
"""More of them, for promises: the most that clipping can move counts, not what it moves where users are normal."""
EARLY_SHARES = tuple(Fraction(round(2**20 * 2**-step), 2**20) for step in np.arange(1.75, 12, 0.25))
"""What each round but the last may spend, about 0.0003 to 0.3."""

SKEW = 0.1
"""Which part of the excess beyond the radius is taken to point to one side; see docs/proofs/iterated_mean.md."""


@dataclass(frozen=True)
class NoiseSize:
    """The squared error of the noise of one round: ``coefficient * radius**2 / share**power``.

    Its length varies as that of a normal vector in `dimension` dimensions does, which for noise with heavier tails are
    fewer than there are columns.
    """

    coefficient: float
    power: int
    dimension: float

    def squared(self, radius: Floats, share: Floats) -> Floats:
        """For rounds of these radii that spend these shares of the budget."""
        return self.coefficient * radius**2 / share**self.power


@dataclass(frozen=True)
class RoundSchedule:
    """Rounds of clipping, in order."""

    shares: tuple[Fraction, ...]  # of the budget; they sum to 1
    radii: tuple[float, ...]
    kappa: float  # radii over the expected distance of a user's mean from the center of the round
    error: float  # predicted root mean square of the distance of the last center from the mean of the users' means


def one_round(ball: float, noise: NoiseSize) -> RoundSchedule:
    """Nobody is clipped: the radius is that of a ball that has all records."""
    error = noise.squared(np.array(ball), np.array(1.0))
    return RoundSchedule((Fraction(1),), (ball,), 1.0, float(np.sqrt(error)))


def planned_rounds(
    dimension: int, ball: float, concentration: float, noise: NoiseSize, kappas: Sequence[float] = KAPPAS
) -> RoundSchedule:
    """The rounds with the least predicted error, for users at the distance `concentration` from the mean of all."""
    # Radii are kappa * sqrt(concentration**2 + error**2) with the predicted error of the center before. One search goes
    # over kappa and over the share of the early rounds; how many there are matters only for where it ends.
    best = one_round(ball, noise)
    kappa, share = (grid.ravel() for grid in np.meshgrid(kappas, [float(share) for share in EARLY_SHARES]))
    normal, weight = _nodes(13)
    lengths = _chi(noise.dimension, normal)
    lengths /= np.sqrt(lengths**2 @ weight)
    radii = [np.full(kappa.shape, ball)]
    off = np.sqrt(noise.squared(radii[0], share))[:, None] * lengths
    for rounds in range(2, MOST_ROUNDS + 1):
        radius = np.minimum(kappa * np.sqrt(concentration**2 + off**2 @ weight), 2 * ball)
        radii.append(radius)
        short = _shortfall(dimension, off, concentration, radius)
        lean = SKEW * concentration * _excess(dimension, radius / concentration)
        rest = 1 - (rounds - 1) * share
        last = noise.squared(radius, np.where(rest > 0, rest, 1)) + short**2 @ weight + lean**2
        last[rest <= 0] = np.inf
        index = int(np.argmin(last))
        error = float(np.sqrt(last[index]))
        if error < WORTH_A_ROUND * best.error:
            early = EARLY_SHARES[index // len(kappas)]
            shares = (*[early] * (rounds - 1), 1 - (rounds - 1) * early)
            best = RoundSchedule(shares, tuple(float(radius[index]) for radius in radii), float(kappa[index]), error)
        elif rounds > len(best.radii) + 1:
            break
        # Where a round falls far short the next one starts far off: its noise does not help there.
        off = np.sqrt(short**2 + noise.squared(radius, share)[:, None] * lengths**2)
    return best


@cache
def _nodes(count: int) -> tuple[Floats, Floats]:
    """Points and weights for means over a standard normal variable."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, weights / weights.sum()


def _chi(dimension: float, normal: Floats) -> Floats:
    """Root of a chi-squared variable over its degrees of freedom, after Wilson and Hilferty."""
    part = 2 / (9 * dimension)
    return np.maximum(1 - part + normal * np.sqrt(part), 0) ** 1.5


def _shortfall(dimension: int, off: Floats, concentration: float, radius: Floats) -> Floats:
    """How far the mean of clipped vectors stays short of their mean, for normal vectors and a center that is `off`.

    Along the direction in which the center is off, what is beyond the radius is lost. `off` has a row for each radius.
    """
    normal, weight = _nodes(7)
    e = off[:, :, None, None]
    along = e + concentration * normal[:, None] / np.sqrt(dimension)
    across = concentration * np.sqrt((dimension - 1) / dimension) * _chi(max(dimension - 1, 1), normal)
    distance = np.sqrt(along**2 + across**2)
    reach = radius[:, None, None, None]
    factor = reach / np.maximum(distance, reach)
    return off - ((along * factor) @ weight) @ weight


def _excess(dimension: int, ratio: Floats) -> Floats:
    """The mean of what exceeds the ratio in the distance of a normal vector, in units of its root mean square."""
    normal, weight = _nodes(41)
    return np.maximum(_chi(dimension, normal) - ratio[:, None], 0) @ weight


FINENESS = 64
"""Steps of the grid within the standard deviation of the noise of a mean in each coordinate, or more."""

LEAST_RESOLUTION = 2**10


@dataclass(frozen=True)
class RoundNoise(ABC):
    """Exact noise on vectors of integers, for users who move the sum by at most 2 R in Euclidean length."""

    n_users: int
    dimension: int

    @abstractmethod
    def size(self) -> NoiseSize:
        """The error of the noise of a round; for plans."""

    @abstractmethod
    def resolution(self, share: Fraction) -> int:
        """How many steps of the grid the radius of a round with this share should have, a power of two."""

    @abstractmethod
    def mechanism(self, share: Fraction, reach: int) -> DiscreteLaplace | DiscreteGaussian:
        """For a round with a share of the budget, in which no user's vector is longer than `reach`."""

    @abstractmethod
    def budget(self, problem: MeanProblem, shares: Sequence[Fraction]) -> Budget:
        """For rounds of these shares of the budget."""

    def _parts(self, shares: Sequence[Fraction]) -> Mapping[str, Fraction]:
        return {f"round {number}": share for number, share in enumerate(shares, 1)}


@dataclass(frozen=True)
class GaussianRounds(RoundNoise):
    """Discrete Gaussian noise; rounds add up in rho or in mu^2."""

    account: GaussianAccount
    delta: Fraction

    @classmethod
    def of(cls, problem: MeanProblem) -> GaussianRounds:
        """All that (epsilon, delta) allows, the distance of the noise from ideal distributions paid."""
        account = problem.account(MOST_ROUNDS * problem.dimension, LEAST_RESOLUTION)
        return cls(problem.n_users, problem.dimension, account, problem.delta)

    @property
    def rho(self) -> Fraction:
        """For plans: the noise of a sum that moves by D has about D^2 / (2 rho)."""
        return self.account.rho

    def size(self) -> NoiseSize:
        rho = float(self.rho)
        return NoiseSize(2 * self.dimension / (self.n_users**2 * rho), 1, self.dimension)

    def resolution(self, share: Fraction) -> int:
        # sigma is 2 R / sqrt(2 rho), for the sum
        wanted = FINENESS * self.n_users * math.sqrt(float(self.rho * share) / 2)
        return _power_of_two(max(wanted, LEAST_RESOLUTION), self.n_users)

    def mechanism(self, share: Fraction, reach: int) -> DiscreteGaussian:
        return self.account.part(share).noise(2 * reach)

    def budget(self, problem: MeanProblem, shares: Sequence[Fraction]) -> Budget:
        distance = len(shares) * self.dimension * NOISE_DISTANCE
        return problem.gaussian_budget(self.account, self._parts(shares), distance)


@dataclass(frozen=True)
class LaplaceRounds(RoundNoise):
    """Discrete Laplace noise on each coordinate; rounds add up in epsilon."""

    epsilon: Fraction

    @classmethod
    def of(cls, problem: MeanProblem) -> LaplaceRounds:
        """All of epsilon, as a fraction that is not above it."""
        return cls(problem.n_users, problem.dimension, rational_below(positive_epsilon(problem.epsilon)))

    def size(self) -> NoiseSize:
        epsilon = float(self.epsilon)
        # The square of a Laplace variable has 5/2 of the relative variance of that of a normal one.
        return NoiseSize(8 * (self.dimension / (self.n_users * epsilon)) ** 2, 2, 0.4 * self.dimension)

    def resolution(self, share: Fraction) -> int:
        epsilon, root = float(self.epsilon * share), math.sqrt(self.dimension)
        # the scale is 2 R sqrt(d) / epsilon, and its tables end at 2**24
        wanted = max(FINENESS * self.n_users * epsilon / root / 2, LEAST_RESOLUTION)
        return _power_of_two(min(wanted, 2**20 * epsilon / root), self.n_users)

    def mechanism(self, share: Fraction, reach: int) -> DiscreteLaplace:
        # A vector of Euclidean length 2 R has a sum of absolute values of at most 2 R sqrt(d).
        sensitivity = math.isqrt(4 * reach**2 * self.dimension)
        epsilon = self.epsilon * share
        # Beyond 64 scales there is next to nothing.
        largest = self.n_users * reach + math.ceil(64 * sensitivity / epsilon)
        return laplace_noise(epsilon, sensitivity, (-largest, largest))

    def budget(self, problem: MeanProblem, shares: Sequence[Fraction]) -> Budget:
        return problem.budget({name: self.epsilon * part for name, part in self._parts(shares).items()})


def _power_of_two(wanted: float, n_users: int) -> int:
    """A power of two that is at least what is wanted, within limits: sums of all users stay below 2**61."""
    most = min(MAX_RESOLUTION, 1 << max(59 - n_users.bit_length(), 1))
    return min(1 << math.ceil(math.log2(max(wanted, 1))), most)


@dataclass(frozen=True)
class _Round:
    """One round: the ball, its grid, how many steps of it the radius has, and the noise."""

    radius: float
    grid: float
    reach: int
    noise: SumNoise


@dataclass(frozen=True, eq=False)
class IteratedMean(MeanMethod):
    """Rounds of clipping, summing, and exact noise; see docs/proofs/iterated_mean.md."""

    # Round t clips each user's vector x to the ball of radius r_t around the center c that was released last, on an
    # integer grid, and releases the sum of the integers y with noise: the next center is c + grid * (sum + noise) / n,
    # moved into the ball of all records. The last center is the release. Radii, shares of the budget and the number of
    # rounds are public. Each round spends its share.
    #
    # Sensitivity. Given what was released before, y depends on one user alone, and its length is at most
    # R = floor(r_t / grid), in integers. Replacing a user moves the sum by at most 2 R in Euclidean length. Everything
    # else is a function of what was released.

    name: str
    problem: MeanProblem
    noise: RoundNoise
    schedule: RoundSchedule

    @cached_property
    def rounds(self) -> tuple[_Round, ...]:
        """The rounds, in order."""
        return tuple(starmap(self._round, zip(self.schedule.shares, self.schedule.radii, strict=True)))

    def _round(self, share: Fraction, radius: float) -> _Round:
        resolution = self.problem.grid_resolution or self.noise.resolution(share)
        # The largest power of two of which the radius has at least so many steps.
        grid = math.ldexp(1.0, math.frexp(radius)[1] - resolution.bit_length())
        reach = math.floor(radius / grid)
        return _Round(radius, grid, reach, SumNoise(self.noise.mechanism(share, reach)))

    def budget(self) -> Budget:
        return self.noise.budget(self.problem, self.schedule.shares)

    def predicted_error(self) -> float:
        return self.schedule.error

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        rounds = self.rounds  # what is refused, is refused before anything is drawn
        vectors = vectors.filled()  # users without rows are at the origin in all rounds, and clipped like everybody

        def release(draw: Sampler) -> Hashable:
            transcript: list[Any] = []
            center = np.zeros(self.problem.dimension)
            for this in rounds:
                sums = vectors.clipped_sum(center, this.radius, this.grid)
                transcript.append(this.noise.drawn(draw, tuple(sums.tolist())))
                center = self._moved(center, this, transcript[-1])
            return tuple(transcript)

        return release

    def _next(self, center: Floats, this: _Round, released: tuple[int, ...]) -> Floats:
        """The center that a round gives."""
        return center + this.grid * (np.array(released, dtype=np.float64) / self.problem.n_users)

    def _moved(self, center: Floats, this: _Round, released: tuple[int, ...]) -> Floats:
        """The next center, in the ball of all records."""
        moved = self._next(center, this, released)
        return moved * (self.problem.ball / max(self.problem.ball, float(np.linalg.norm(moved))))

    def outcomes(self) -> Iterator[Hashable]:
        d = self.problem.dimension
        return itertools.product(*(itertools.product(self._sums(this), repeat=d) for this in self.rounds))

    def n_outcomes(self) -> int:
        return counted(*((len(self._sums(this)), self.problem.dimension) for this in self.rounds))

    def _sums(self, this: _Round) -> range:
        return this.noise.released(self.problem.n_users * this.reach)

    def mean(self, outcome: Any) -> Floats:
        center, _ = self.clipped_to(outcome) or (np.zeros(self.problem.dimension), 0.0)
        return self._next(center, self.rounds[-1], outcome[-1])

    def accuracy(self, outcome: Any = None) -> Accuracy:
        terms = [NoiseTerm.of(this.noise.mechanism, this.grid / self.problem.n_users) for this in self.rounds]
        bias: ClippingBias | None = None
        if len(terms) > 1:
            later = [this.radius for this in self.rounds[1:]]
            bias = UnknownBias()
            if self.problem.promise in ("at most", "independent"):
                d, independent = self.problem.dimension, self.problem.promise == "independent"
                roundings = [math.sqrt(d) * ROUNDING * this.grid for this in self.rounds]
                early = tuple(zip(terms, roundings, later, strict=False))
                bias = PromisedBias(self.problem.possible_concentration, d, early, independent)
        return Accuracy((terms[-1],), ROUNDING * self.rounds[-1].grid, bias)

    def clipped_to(self, outcome: Any) -> tuple[Floats, float] | None:
        if len(self.rounds) == 1:
            return None
        center = np.zeros(self.problem.dimension)
        for this, released in zip(self.rounds[:-1], outcome[:-1], strict=True):
            center = self._moved(center, this, released)
        return center, self.rounds[-1].radius


def plan_gaussian(problem: MeanProblem) -> MeanMethod:
    """One round around 0 in which nobody is clipped: the Gaussian mechanism on the mean of the users' means."""
    if not problem.delta:
        raise ValueError("method='gaussian' needs delta > 0; with delta=0 use 'laplace', 'iterated' or 'auto'")
    noise = GaussianRounds.of(problem)
    return IteratedMean("gaussian", problem, noise, one_round(problem.ball, noise.size()))


def plan_iterated(problem: MeanProblem) -> MeanMethod:
    """As many rounds as the predicted error asks for, with the noise that it asks for.

    Discrete Laplace noise for delta = 0; with a delta it is still the better one in few dimensions, and then the
    release is pure. Discrete Gaussian noise otherwise, and for a part of an account of Gaussian noise.
    """
    noises: list[GaussianRounds | LaplaceRounds] = [] if problem.part is not None else [LaplaceRounds.of(problem)]
    if problem.part is not None or problem.delta:
        # None where the distance of the noise from the ideal distribution would take all of delta.
        with suppress(*((ValueError,) if noises else ())):
            noises.append(GaussianRounds.of(problem))
    if problem.promise in ("none", "expected"):
        return min((_planned(problem, noise, KAPPAS) for noise in noises), key=lambda plan: plan.predicted_error())
    plans = [_planned(problem, noise, (kappa,)) for noise in noises for kappa in KAPPAS + WIDE]
    plans.sort(key=lambda plan: plan.predicted_error())
    if problem.objective == "expected":
        # The least predicted error of those that are never worse, under the promise, than noise for the whole range.
        wholes = (IteratedMean("iterated", problem, noise, one_round(problem.ball, noise.size())) for noise in noises)
        most = min(wholes, key=lambda plan: plan.predicted_error()).accuracy().worst(problem.dimension)
        for plan in plans:
            if all(plan.accuracy().worst(problem.dimension, nodes) <= most for nodes in (PLANNING_NODES, NODES)):
                return plan
    return min(plans, key=lambda plan: plan.accuracy().worst(problem.dimension, PLANNING_NODES))


def _planned(problem: MeanProblem, noise: GaussianRounds | LaplaceRounds, kappas: Sequence[float]) -> IteratedMean:
    schedule = planned_rounds(problem.dimension, problem.ball, problem.possible_concentration, noise.size(), kappas)
    return IteratedMean("iterated", problem, noise, schedule)
