"""How wrong a released mean may be: by its noise, whose distribution is known, by rounding, and by clipping.

All numbers are public, or functions of what was released. Lengths are in the units of a `MeanProblem`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp.estimators.saving import saved_as_parameter
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace

Floats = npt.NDArray[np.float64]

SMOOTH = 16.0
"""Discrete Gaussians with standard deviations from this on have normal quantiles, to less than a step."""
ROUNDING = 3.0
"""Steps by which integers that are truncated toward 0, and pulled into a ball of so many steps, may be off: one for the
floor of the radius, one for truncation, and one where floats left a little too much."""
NODES, PLANNING_NODES = 400, 60
"""Points of equal mass that stand for the distribution of a distance."""


@saved_as_parameter
@dataclass(frozen=True)
class NoiseTerm:
    """Integer noise in each coordinate of a mean."""

    kind: Literal["gaussian", "laplace"]
    scale: float  # in steps: sigma, or the scale b of probabilities in the ratio e^(-1/b) from integer to integer
    step: float  # what one step is worth in the mean

    @classmethod
    def of(cls, mechanism: DiscreteGaussian | DiscreteLaplace, step: float) -> NoiseTerm:
        """What a mechanism adds, where a step of its integers is worth `step`."""
        if isinstance(mechanism, DiscreteGaussian):
            return cls("gaussian", math.sqrt(float(mechanism.sigma_squared)), step)
        return cls("laplace", float(mechanism.scale), step)

    @property
    def variance(self) -> float:
        """The variance of what is added to the mean."""
        if self.kind == "gaussian":
            return (self.scale * self.step) ** 2  # a bound: that of a discrete Gaussian is at most sigma^2
        gap = -math.expm1(-1 / self.scale)
        return 2 * math.exp(-1 / self.scale) * (self.step / gap) ** 2

    def quantile(self, failure: float) -> float:
        """The least length that the noise exceeds with at most this probability, or a step more."""
        if self.kind == "laplace":
            # P[|Z| > h] = 2 a^(h + 1) / (1 + a) for integers h >= 0.
            h = math.ceil(self.scale * math.log(2 / ((1 + math.exp(-1 / self.scale)) * failure)) - 1)
            return max(h, 0) * self.step
        if self.scale >= SMOOTH:
            return (_normal_quantile(failure) * self.scale + 1) * self.step
        most = math.ceil(40 * self.scale) + 2
        tail = np.exp(-(np.arange(most + 1) ** 2) / (2 * self.scale**2))
        whole = 2 * tail.sum() - 1
        beyond = 2 * np.append(np.cumsum(tail[::-1])[::-1][1:], 0) / whole  # P[|Z| > h]
        return float(np.argmax(beyond <= failure)) * self.step


def _normal_quantile(failure: float) -> float:
    """What a standard normal variable exceeds in absolute value with this probability."""
    return -NormalDist().inv_cdf(max(failure / 2, 1e-300))


def noise_quantile(terms: Sequence[NoiseTerm], failure: float) -> float:
    """A length that the sum of independent terms exceeds with at most this probability."""
    if len(terms) == 1:
        return terms[0].quantile(failure)
    if all(term.kind == "gaussian" and term.scale >= SMOOTH for term in terms):
        return _normal_quantile(failure) * _deviation(terms) + sum(term.step for term in terms)
    return sum(term.quantile(failure / len(terms)) for term in terms)


def norm_quantile(terms: Sequence[NoiseTerm], dimension: int, failure: float) -> float:
    """A length that the norm of noise in each of several coordinates exceeds with at most this probability."""
    each = math.sqrt(dimension) * noise_quantile(terms, failure / dimension)
    if dimension == 1 or any(term.kind == "laplace" for term in terms):
        return each
    # A discrete Gaussian has the moment generating function of the normal one at most, and so this bound of Laurent and
    # Massart for a chi-squared variable.
    x = -math.log(failure)
    return min(each, _deviation(terms) * math.sqrt(dimension + 2 * math.sqrt(dimension * x) + 2 * x))


def _deviation(terms: Sequence[NoiseTerm]) -> float:
    return math.sqrt(sum(term.variance for term in terms))


class ClippingBias(ABC):
    """How far clipping may have moved a mean, as a Euclidean length."""

    @abstractmethod
    def at_most(self, failure: float) -> float:
        """A length that it does not exceed but with this probability, over the noise."""

    @abstractmethod
    def root_mean_square(self, nodes: int = NODES) -> float:
        """The largest root mean square of it, over the noise, by so many points of each distribution."""


@saved_as_parameter
@dataclass(frozen=True)
class UnknownBias(ClippingBias):
    """Of methods whose clipping nothing is known to bound."""

    def at_most(self, failure: float) -> float:
        return math.inf

    def root_mean_square(self, nodes: int = NODES) -> float:
        return math.inf


@saved_as_parameter
@dataclass(frozen=True)
class BiasOfSize(ClippingBias):
    """Of clipping whose bias has at most this root mean square, over all that is drawn."""

    size: float

    def at_most(self, failure: float) -> float:
        return self.size / math.sqrt(failure)  # Chebyshev

    def root_mean_square(self, nodes: int = NODES) -> float:
        return self.size


@saved_as_parameter
@dataclass(frozen=True)
class PromisedBias(ClippingBias):
    """Of rounds around released centers, where users' means have a promised distance `spread` from their mean.

    Proof: docs/proofs/iterated_mean.md, "What clipping can move".
    """

    # A vector at the distance q from a center loses max(q - r, 0) <= q^2 / (4 r) to a ball of radius r. Where the
    # center is e off, the mean of q^2 is spread^2 + e^2: the bias of a round is at most (spread^2 + e^2) / (4 r). Means
    # of m independent rows within half the range B have a distance from their expectation above its mean (spread =
    # B / sqrt(m) at most) by more than u with probability e^(-u^2 / (2 spread^2)) at most, after McDiarmid, and of one
    # column twice that without the mean, after Hoeffding. In the first round nobody is clipped; e is at most the noise
    # of the round before, its rounding and its bias.

    spread: float
    dimension: int
    rounds: tuple[tuple[NoiseTerm, float, float], ...]  # noise and rounding (L2) of a round, radius of the next one
    independent: bool  # whether rows of all users are independent draws from one distribution

    def at_most(self, failure: float) -> float:
        bias = 0.0
        for noise, rounding, radius in self.rounds:
            off = bias + rounding + norm_quantile((noise,), self.dimension, failure / len(self.rounds))
            bias = float(self._lost(np.array(off), radius))
        return bias

    def root_mean_square(self, nodes: int = NODES) -> float:
        bias = np.zeros(1)
        for noise, rounding, radius in self.rounds:
            off = np.add.outer(bias + rounding, _lengths(noise, self.dimension, nodes))
            bias = np.sort(self._lost(off, radius), axis=None)
            # As many points as before, each the root mean square of those that it stands for.
            bias = np.sqrt([np.mean(part**2) for part in np.array_split(bias, nodes)])
        return float(np.sqrt(np.mean(bias**2)))

    def _lost(self, off: Floats, radius: float) -> Floats:
        """The most that a round loses whose center is so far off."""
        lost: Floats = (self.spread**2 + off**2) / (4 * radius)
        if self.independent:
            sides, start = (2, 0.0) if self.dimension == 1 else (1, self.spread)
            room = (radius - start - off) / self.spread  # in which nobody is clipped
            tail = sides * self.spread * math.sqrt(math.pi / 2) * _erfc(np.maximum(room, 0) / math.sqrt(2))
            lost = np.minimum(lost, tail + self.spread * np.maximum(-room, 0))
        return lost


def _erfc(x: Floats) -> Floats:
    """Twice the share of a normal variable of variance 1/2 that is above x >= 0; at most 1e-7 too large or small."""
    # Abramowitz and Stegun 7.1.26.
    t = 1 / (1 + 0.3275911 * x)
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return series * np.exp(-(x**2)) + 1.5e-7


def _lengths(noise: NoiseTerm, dimension: int, nodes: int) -> Floats:
    """Points of equal mass of the length of noise in so many coordinates."""
    if dimension == 1 and noise.kind == "laplace":
        # The fourth root of the mean of fourth powers between quantiles, so that no power up to there is too small.
        ends = -np.log1p(-np.arange(nodes) / nodes)
        powers = np.append(np.exp(-ends) * (ends**4 + 4 * ends**3 + 12 * ends**2 + 24 * ends + 24), 0)
        return (nodes * -np.diff(powers)) ** 0.25 * math.sqrt(noise.variance / 2)
    middle = (np.arange(nodes) + 0.5) / nodes
    # After Wilson and Hilferty; the squares of Laplace variables vary 5/2 times as much as those of normal ones.
    degrees = dimension * (0.4 if noise.kind == "laplace" else 1)
    if degrees == 1:
        lengths = np.array([NormalDist().inv_cdf((1 + p) / 2) for p in middle])
    else:
        normal = np.array([NormalDist().inv_cdf(p) for p in middle])
        part = 2 / (9 * degrees)
        lengths = np.maximum(1 - part + normal * math.sqrt(part), 0) ** 1.5
    return lengths * math.sqrt(dimension * noise.variance / np.mean(lengths**2))


@saved_as_parameter
@dataclass(frozen=True)
class Accuracy:
    """What is known of the error of a released mean, in each coordinate."""

    terms: tuple[NoiseTerm, ...]  # independent, in each coordinate
    rounding: float  # that a coordinate may be moved by rounding
    bias: Any  # a ClippingBias, or None where nobody is clipped
    mixed: bool = False  # whether coordinates are sums of many such terms: only variances are known

    def noise(self) -> float:
        """Root mean square of the noise in a coordinate."""
        return _deviation(self.terms)

    def worst(self, dimension: int = 1, nodes: int = NODES) -> float:
        """Root mean square of the L2 length of the noise of so many coordinates, and of the largest bias of them."""
        noise = math.sqrt(dimension) * self.noise()
        return math.hypot(noise, self.bias.root_mean_square(nodes) if self.bias else 0.0)

    def half_width(self, failure: float) -> float:
        """How far a coordinate is from that of the mean of clipped vectors, but with this probability."""
        return noise_quantile(self.terms, failure) + self.rounding
