"""Rounds of the iterated mean: how many, how wide, with which noise, planned from public numbers.

Floats on public numbers only. They choose parameters, and what is drawn is private whatever they are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import Budget
from userdp.means.plan import MOST_STEPS, MeanProblem
from userdp.means.private_radius import search_epsilon
from userdp.means.range_search import laplace_noise
from userdp.means.winsorized_budget import rational_epsilon
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.composed import Sampler

Floats = npt.NDArray[np.float64]

MOST_ROUNDS = 8
WORTH_A_ROUND = 0.97
"""A round more must cut the predicted error to this."""

KAPPAS = (1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.6, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0)
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
        error: Floats = self.coefficient * radius**2 / share**self.power
        return error


@dataclass(frozen=True)
class RoundPlan:
    """Rounds of clipping, in order.

    Attributes
    ----------
    shares : tuple of Fraction
        Of the budget; they sum to 1.
    radii : tuple of float
    kappa : float
        Radii over the expected distance of a user's mean from the center of the round.
    error : float
        The root mean square of the distance of the last center from the mean of the users' means, predicted.
    """

    shares: tuple[Fraction, ...]
    radii: tuple[float, ...]
    kappa: float
    error: float


def one_round(ball: float, noise: NoiseSize) -> RoundPlan:
    """Nobody is clipped: the radius is that of a ball that has all rows."""
    error = noise.squared(np.array(ball), np.array(1.0))
    return RoundPlan((Fraction(1),), (ball,), 1.0, float(np.sqrt(error)))


def planned_rounds(dimension: int, ball: float, spread: float, noise: NoiseSize) -> RoundPlan:
    """The rounds with the least predicted error, for users at the distance `spread` from the mean of all.

    Parameters
    ----------
    dimension : int
    ball : float
        All rows are within this distance of 0.
    spread : float
        Root mean square of the distance of a user's mean from the mean of all, in L2; a promise.
    noise : NoiseSize
        Of a round.

    Notes
    -----
    Radii are ``kappa * sqrt(spread**2 + error**2)`` with the predicted error of the center before. One search goes over
    kappa and over the share of the early rounds; how many there are matters only for where it ends.
    """
    best = one_round(ball, noise)
    kappa, share = (grid.ravel() for grid in np.meshgrid(KAPPAS, [float(share) for share in EARLY_SHARES]))
    normal, weight = _nodes(13)
    lengths = _chi(noise.dimension, normal)
    lengths /= np.sqrt(lengths**2 @ weight)
    radii = [np.full(kappa.shape, ball)]
    off = np.sqrt(noise.squared(radii[0], share))[:, None] * lengths
    for rounds in range(2, MOST_ROUNDS + 1):
        radius = np.minimum(kappa * np.sqrt(spread**2 + off**2 @ weight), 2 * ball)
        radii.append(radius)
        short = _shortfall(dimension, off, spread, radius)
        lean = SKEW * spread * _excess(dimension, radius / spread)
        rest = 1 - (rounds - 1) * share
        last = noise.squared(radius, np.where(rest > 0, rest, 1)) + short**2 @ weight + lean**2
        last[rest <= 0] = np.inf
        index = int(np.argmin(last))
        error = float(np.sqrt(last[index]))
        if error < WORTH_A_ROUND * best.error:
            early = EARLY_SHARES[index // len(KAPPAS)]
            shares = (*[early] * (rounds - 1), 1 - (rounds - 1) * early)
            best = RoundPlan(shares, tuple(float(radius[index]) for radius in radii), float(kappa[index]), error)
        elif rounds > len(best.radii) + 1:
            break
        # Where a round falls far short the next one starts far off: its noise does not help there.
        off = np.sqrt(short**2 + noise.squared(radius, share)[:, None] * lengths**2)
    return best


def _nodes(count: int) -> tuple[Floats, Floats]:
    """Points and weights for means over a standard normal variable."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, weights / weights.sum()


def _chi(dimension: float, normal: Floats) -> Floats:
    """Root of a chi-squared variable over its degrees of freedom, after Wilson and Hilferty."""
    part = 2 / (9 * dimension)
    root: Floats = np.maximum(1 - part + normal * np.sqrt(part), 0) ** 1.5
    return root


def _shortfall(dimension: int, off: Floats, spread: float, radius: Floats) -> Floats:
    """How far the mean of clipped vectors stays short of their mean, for normal vectors and a center that is `off`.

    Along the direction in which the center is off, what is beyond the radius is lost. `off` has a row for each radius.
    """
    normal, weight = _nodes(7)
    e = off[:, :, None, None]
    along = e + spread * normal[:, None] / np.sqrt(dimension)
    across = spread * np.sqrt((dimension - 1) / dimension) * _chi(max(dimension - 1, 1), normal)
    distance = np.sqrt(along**2 + across**2)
    reach = radius[:, None, None, None]
    kept = reach / np.maximum(distance, reach)
    lost: Floats = off - ((along * kept) @ weight) @ weight
    return lost


def _excess(dimension: int, ratio: Floats) -> Floats:
    """The mean of what exceeds the ratio in the distance of a normal vector, in units of its root mean square."""
    normal, weight = _nodes(41)
    excess: Floats = np.maximum(_chi(dimension, normal) - ratio[:, None], 0) @ weight
    return excess


DISTANCE = Fraction(1, 2**90)
"""At least the distance of the noise of one integer from its ideal distribution."""

FINENESS = 64
"""Steps of the grid within the standard deviation of the noise of a mean in each coordinate, or more."""

FEWEST_STEPS = 2**10


@dataclass(frozen=True)
class RoundNoise(ABC):
    """Exact noise on vectors of integers, for users who move the sum by at most 2 R in Euclidean length.

    Attributes
    ----------
    n_users, dimension : int
    search_share : Fraction
        The part of the budget of a search for the radius; 0 without one.
    """

    n_users: int
    dimension: int
    search_share: Fraction

    @property
    def rest(self) -> Fraction:
        """The part of the budget that rounds share."""
        return 1 - self.search_share

    @abstractmethod
    def size(self) -> NoiseSize:
        """The error of the noise of a round; for plans."""

    @abstractmethod
    def steps(self, share: Fraction) -> int:
        """How many steps of the grid a radius should have, a power of two, for a round with this share of the rest."""

    @abstractmethod
    def mechanism(self, share: Fraction, reach: int) -> Any:
        """For a round with a share of the rest, in which no user's vector is longer than `reach`."""

    @abstractmethod
    def release(self, draw: Sampler, mechanism: Any, sums: tuple[int, ...]) -> tuple[int, ...]:
        """The sums with noise."""

    @abstractmethod
    def released(self, mechanism: Any, largest: int) -> range:
        """What a released sum can be when no sum is above `largest` in absolute value."""

    @abstractmethod
    def search_epsilon(self) -> Fraction:
        """The epsilon of the search for the radius."""

    @abstractmethod
    def budget(self, problem: MeanProblem, shares: Sequence[Fraction]) -> Budget:
        """For rounds of these shares of the rest."""

    def _parts(self, shares: Sequence[Fraction]) -> Mapping[str, Fraction]:
        parts = {f"round {number}": self.rest * share for number, share in enumerate(shares, 1)}
        return parts | ({"radius": self.search_share} if self.search_share else {})


@dataclass(frozen=True)
class GaussianRounds(RoundNoise):
    """Discrete Gaussian noise; rounds add up in zCDP."""

    rho: Fraction
    delta: Fraction

    @classmethod
    def of(cls, problem: MeanProblem, search_share: Fraction) -> GaussianRounds:
        """All that (epsilon, delta) allows, the distance of the noise from ideal distributions paid."""
        distance = MOST_ROUNDS * problem.dimension * DISTANCE
        rho = problem.largest_rho(distance)
        return cls(problem.n_users, problem.dimension, search_share, rho, problem.delta)

    def size(self) -> NoiseSize:
        rho = float(self.rho * self.rest)
        return NoiseSize(2 * self.dimension / (self.n_users**2 * rho), 1, self.dimension)

    def steps(self, share: Fraction) -> int:
        # sigma is 2 R / sqrt(2 rho), for the sum
        wanted = FINENESS * self.n_users * math.sqrt(float(self.rho * self.rest * share) / 2)
        return _power_of_two(max(wanted, FEWEST_STEPS), self.n_users)

    def mechanism(self, share: Fraction, reach: int) -> DiscreteGaussian:
        noise = DiscreteGaussian(rho=self.rho * self.rest * share, sensitivity=2 * reach)
        if noise.distance > DISTANCE:
            raise AssertionError("the noise is farther from the ideal than was accounted for")
        return noise

    def release(self, draw: Sampler, mechanism: DiscreteGaussian, sums: tuple[int, ...]) -> tuple[int, ...]:
        released: tuple[int, ...] = draw(mechanism, sums)
        return released

    def released(self, mechanism: DiscreteGaussian, largest: int) -> range:
        return range(-largest - mechanism.support, largest + mechanism.support + 1)

    def search_epsilon(self) -> Fraction:
        return search_epsilon(self.rho * self.search_share)

    def budget(self, problem: MeanProblem, shares: Sequence[Fraction]) -> Budget:
        parts = {name: self.rho * part for name, part in self._parts(shares).items()}
        distance = len(shares) * self.dimension * DISTANCE
        rho = sum(parts.values(), Fraction(0))
        return problem.budget(parts, delta=self.delta, rho=rho, distance=distance, unit="rho")


@dataclass(frozen=True)
class LaplaceRounds(RoundNoise):
    """Discrete Laplace noise on each coordinate; rounds add up in epsilon.

    A vector of Euclidean length 2 R has a sum of absolute values of at most 2 R sqrt(d).
    """

    epsilon: Fraction

    @classmethod
    def of(cls, problem: MeanProblem, search_share: Fraction) -> LaplaceRounds:
        """All of epsilon, as a fraction that is not above it."""
        return cls(problem.n_users, problem.dimension, search_share, rational_epsilon(problem.epsilon))

    def size(self) -> NoiseSize:
        epsilon = float(self.epsilon * self.rest)
        # The square of a Laplace variable has 5/2 of the relative variance of that of a normal one.
        return NoiseSize(8 * (self.dimension / (self.n_users * epsilon)) ** 2, 2, 0.4 * self.dimension)

    def steps(self, share: Fraction) -> int:
        epsilon, root = float(self.epsilon * self.rest * share), math.sqrt(self.dimension)
        # the scale is 2 R sqrt(d) / epsilon, and its tables end at 2**24
        wanted = max(FINENESS * self.n_users * epsilon / root / 2, FEWEST_STEPS)
        return _power_of_two(min(wanted, 2**20 * epsilon / root), self.n_users)

    def mechanism(self, share: Fraction, reach: int) -> DiscreteLaplace:
        sensitivity = math.isqrt(4 * reach**2 * self.dimension)
        epsilon = self.epsilon * self.rest * share
        # Beyond 64 scales there is next to nothing.
        largest = self.n_users * reach + math.ceil(64 * sensitivity / epsilon)
        return laplace_noise(epsilon, sensitivity, (-largest, largest))

    def release(self, draw: Sampler, mechanism: DiscreteLaplace, sums: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(draw(mechanism, value) for value in sums)

    def released(self, mechanism: DiscreteLaplace, largest: int) -> range:
        low, high = mechanism.bounds
        return range(low, high + 1)

    def search_epsilon(self) -> Fraction:
        return self.epsilon * self.search_share

    def budget(self, problem: MeanProblem, shares: Sequence[Fraction]) -> Budget:
        return problem.budget({name: self.epsilon * part for name, part in self._parts(shares).items()})


def _power_of_two(wanted: float, n_users: int) -> int:
    """A power of two that is at least what is wanted, within limits: sums of all users stay below 2**61."""
    most = min(MOST_STEPS, 1 << max(59 - n_users.bit_length(), 1))
    return min(1 << math.ceil(math.log2(max(wanted, 1))), most)
