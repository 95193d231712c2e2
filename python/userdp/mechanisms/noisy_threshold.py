"""Keys that are shown where a number with noise reaches a threshold: the one place where such keys are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from userdp import _core
from userdp.mechanisms.discrete_gaussian import OUTPUTS_LIMIT, DiscreteGaussian
from userdp.mechanisms.discrete_laplace import DiscreteLaplace
from userdp.mechanisms.key_counts import Integers

Noise: TypeAlias = "DiscreteGaussian | DiscreteLaplace"
NoiseT = TypeVar("NoiseT", bound="DiscreteGaussian | DiscreteLaplace")

LISTED = 2**15
"""Of noise with a larger support, sums of weights have tails that are bounded by those of the normal distribution."""
NEARLY = 1 - Fraction(1, 2**100)
FAR = 2**9
"""Where x^2 is this or more, lower bounds of tails are 0: e^(-x^2 / 2) is below what drawn noise is off ideal noise."""


@dataclass(frozen=True)
class NoisyThreshold(Generic[NoiseT]):
    """Which keys are shown: those whose number, at least 1, is at or above a threshold when noise is added."""

    noise: NoiseT
    threshold: int

    def shown(self, numbers: Integers, source: _core.Source, always: Any = None) -> tuple[Integers, Integers]:
        """The places of the keys that are shown, and their noisy numbers.

        Keys with a number below 1 draw nothing, but those that are `always` shown, which are public.
        """
        listed = np.zeros(len(numbers), dtype=np.bool_) if always is None else always
        places = np.flatnonzero((numbers >= 1) | listed)
        noisy = self.noise._release_many(numbers[places], source)
        kept = (noisy >= self.threshold) | listed[places]
        return places[kept], noisy[kept]

    def probability(self, number: int) -> Fraction:
        """The probability that a key with this number is shown, exactly as it is drawn."""
        return self.noise.tail(self.threshold - number) if number >= 1 else Fraction(0)

    def probability_bounds(self, number: int) -> tuple[Fraction, Fraction]:
        """Around that probability: equal, but for noise that is too wide to be listed."""
        return (Fraction(0), Fraction(0)) if number < 1 else tail_bounds(self.noise, self.threshold - number)

    def probability_at_most(self, number: int) -> Fraction:
        """At or above that probability, also where the noise is too wide to be listed."""
        return Fraction(0) if number < 1 else tail_at_most(self.noise, self.threshold - number)


def tail_bounds(noise: Noise, least: int) -> tuple[Fraction, Fraction]:
    """Around the probability that noise is `least` or more: equal where it can be listed, else by normal tails."""
    if not isinstance(noise, DiscreteGaussian) or noise.support <= OUTPUTS_LIMIT // 2:
        exact = noise.tail(least)
        return exact, exact
    if least < 1:
        low, high = tail_bounds(noise, 1 - least)
        return 1 - high, 1 - low
    # Ideal weights are above the integral from `least` on, and all of them are below sqrt(2 pi) sigma (1 + 2^-1000).
    square = Fraction(least**2) / noise.sigma_squared
    low = _core.normal_tail_above(square) * NEARLY - noise.distance if square < FAR else Fraction(0)
    return max(Fraction(0), low), tail_at_most(noise, least)


def tail_at_most(noise: Noise, least: int) -> Fraction:
    """At or above the probability that noise is `least` or more: exact, or by less than 2 / sigma of it and more."""
    if not isinstance(noise, DiscreteGaussian) or noise.support <= LISTED:
        return noise.tail(least)
    # Ideal weights e^(-x^2 / (2 sigma^2)) fall from 0 on, so those from x on are below the integral from x - 1, and all
    # of them add up to sqrt(2 pi) sigma at least (Poisson summation): the quotient is at most Phi(-(x - 1) / sigma).
    if least < 1:
        return Fraction(1)
    return min(Fraction(1), _core.normal_tail_above((least - 1) ** 2 / noise.sigma_squared) + noise.distance)
