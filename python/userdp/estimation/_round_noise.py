"""The noise of the rounds of an iterated mean, and what it costs: Gaussian in rho, or Laplace in epsilon."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.estimation._mean_method import MOST_STEPS, MeanProblem
from userdp.estimation._private_radius import search_epsilon
from userdp.estimation._range_search import laplace_noise
from userdp.estimation._rounds import MOST_ROUNDS, NoiseSize
from userdp.estimation._winsorized_budget import rational_epsilon
from userdp.learners._privacy import Spending
from userdp.learners._program import Draw
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace

__all__ = ["GaussianRounds", "LaplaceRounds", "RoundNoise"]

DISTANCE = Fraction(1, 2**90)
"""At least the distance of the noise of one integer from its ideal law."""

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
    def release(self, draw: Draw, mechanism: Any, sums: tuple[int, ...]) -> tuple[int, ...]:
        """The sums with noise."""

    @abstractmethod
    def released(self, mechanism: Any, largest: int) -> range:
        """What a released sum can be when no sum is above `largest` in absolute value."""

    @abstractmethod
    def search_epsilon(self) -> Fraction:
        """The epsilon of the search for the radius."""

    @abstractmethod
    def spending(self, shares: Sequence[Fraction]) -> Spending:
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
        """All that (epsilon, delta) allows, the distance of the noise from ideal laws paid."""
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

    def release(self, draw: Draw, mechanism: DiscreteGaussian, sums: tuple[int, ...]) -> tuple[int, ...]:
        released: tuple[int, ...] = draw(mechanism, sums)
        return released

    def released(self, mechanism: DiscreteGaussian, largest: int) -> range:
        return range(-largest - mechanism.support, largest + mechanism.support + 1)

    def search_epsilon(self) -> Fraction:
        return search_epsilon(self.rho * self.search_share)

    def spending(self, shares: Sequence[Fraction]) -> Spending:
        budget = {name: self.rho * part for name, part in self._parts(shares).items()}
        distance = len(shares) * self.dimension * DISTANCE
        return Spending(budget, self.delta, sum(budget.values(), Fraction(0)), distance, "rho")


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

    def release(self, draw: Draw, mechanism: DiscreteLaplace, sums: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(draw(mechanism, value) for value in sums)

    def released(self, mechanism: DiscreteLaplace, largest: int) -> range:
        low, high = mechanism.bounds
        return range(low, high + 1)

    def search_epsilon(self) -> Fraction:
        return self.epsilon * self.search_share

    def spending(self, shares: Sequence[Fraction]) -> Spending:
        return Spending({name: self.epsilon * part for name, part in self._parts(shares).items()})


def _power_of_two(wanted: float, n_users: int) -> int:
    """A power of two that is at least what is wanted, within limits: sums of all users stay below 2**61."""
    most = min(MOST_STEPS, 1 << max(59 - n_users.bit_length(), 1))
    return min(1 << math.ceil(math.log2(max(wanted, 1))), most)
