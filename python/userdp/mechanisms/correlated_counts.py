"""Counts of users by public keys, with noise in common where users have many of the keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.accounting.cost import PrivacyCost
from userdp.accounting.gaussian_budget import largest_mu2
from userdp.exact.epsilon import root_above, shortened
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    check_count,
    is_integer,
    least,
    open_unit_fraction,
    parse_positive,
    short_repr,
)
from userdp.mechanisms.base import Mechanism
from userdp.mechanisms.discrete_gaussian import SMOOTHED_WITHIN, SMOOTHING, DiscreteGaussian
from userdp.mechanisms.key_counts import Integers, read_counts
from userdp.runtime import source_of

Floats = npt.NDArray[np.float64]
Number = float | int | Fraction | str
PARTS = 64
"""The share of the number of users that is taken off every count is a multiple of 1/64, up to a half."""
SIGNIFICANT_BITS = 64
MOST_KEYS = 2**24
WORTHWHILE = 1 - Fraction(1, 2**40)
"""Of variances that are equal but for rounding the first is taken."""
REACH = 12
"""Noise beyond so many standard deviations is left out where errors are computed."""
WIDE = 2**12
"""From this standard deviation on, noise is as good as normal to less than a step."""
ASSUMED_DISTANCE = Fraction(1, 2**90)
"""Of one drawn number from ideal noise; it is checked for the noise that is made."""


def largest_length(n_keys: int, max_keys: int, share: Fraction) -> Fraction:
    """The largest squared length of a user's part of the counts minus that share of 1 in every key."""
    most = min(n_keys, max_keys)
    # t - 2 t theta + D theta^2 is linear in t.
    return max(t - 2 * t * share + n_keys * share**2 for t in (0, most))


@dataclass(frozen=True)
class _Plan:
    """A share, and the parameters of the two noises in units of counts and of users."""

    share: Fraction
    counts: Fraction
    users: Fraction | None
    variance: Fraction


class CorrelatedCounts(Mechanism):
    """Counts of users for all keys of a public list, with Gaussian noise that the keys partly share.

    A user who has many of the keys moves many counts in one direction. So a public share theta of the number of users
    is taken off every count, which makes those moves shorter, and the number of users is released beside them with
    noise of its own and added again. For users who may have all keys the variance of a count is down to a quarter.

    Parameters
    ----------
    n_keys : int
        How many keys the public list has, from 1 to 2**24.
    max_keys : int
        How many of them a user has at most, at least 1.
    rho : float, int, Fraction or decimal string, optional
        The zCDP parameter of the whole release, positive.
    epsilon, delta : privacy parameters, optional
        In place of rho: the whole release is (epsilon, delta)-DP, by exact Gaussian accounting.
    mu2 : float, int, Fraction or decimal string, optional
        In place of both: the mu^2 of the whole release, positive, for a ledger that adds up that of all releases.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    *Neighbors* are two datasets of which one has a user more. Where users are replaced nothing is gained, as their
    number is public: take `DiscreteGaussian`.

    *What is counted.* `n_users` is the number of users who count in a key at all, or of all users of the dataset: every
    user adds 0 or 1 to it, and 1 if they are in any count. There are fewer than 2**40 users: larger numbers are
    clamped.

    *Privacy.* Integers q c_j - p n + Z_j for every key, and n + Z_0, are two releases of discrete Gaussian noise; theta
    = p / q is the best multiple of 1/64. All D + 1 numbers move with a user, so that `distance` is D + 1 times that of
    one. The counts are computed from these integers. Proof: docs/proofs/correlated_counts.md.

    *Which theta.* It is 0, that is independent noise, where users have few of the keys.

    References
    ----------
    The idea is that of Lebeda, "Better Gaussian Mechanism using Correlated Noise" (2024).

    Examples
    --------
    >>> counts = CorrelatedCounts(n_keys=10, max_keys=10, rho="1/50")
    >>> counts.theta, round(counts.factor, 3), round(counts.variance, 1)
    (Fraction(1, 2), 0.433, 108.3)
    >>> released, users = counts.sample([50, 20, 0, 10, 30, 0, 0, 90, 1, 5], 100)
    >>> released.shape
    (10,)
    >>> CorrelatedCounts(n_keys=1000, max_keys=10, rho="1/50").theta
    Fraction(0, 1)
    """

    neighbors: ClassVar[Literal["add-remove"]] = "add-remove"

    def __init__(
        self,
        *,
        n_keys: int,
        max_keys: int,
        rho: Number | None = None,
        epsilon: Epsilon | None = None,
        delta: Delta | None = None,
        mu2: Number | None = None,
    ) -> None:
        if check_count(n_keys, "n_keys") > MOST_KEYS:
            raise ValueError(f"n_keys must be at most 2**24; got {short_repr(n_keys)}")
        check_count(max_keys, "max_keys")
        given = sum(value is not None for value in (rho, epsilon, mu2))
        if given != 1 or (epsilon is None) != (delta is None):
            raise TypeError("CorrelatedCounts takes either rho, or epsilon and delta, or mu2")
        super().__init__(n_keys=int(n_keys), max_keys=int(max_keys), rho=rho, epsilon=epsilon, delta=delta, mu2=mu2)
        self._exact = rho is None
        # Noise that is accounted as smoothed continuous noise is wider by a constant.
        self._wider = SMOOTHING if self._exact else 0
        far = (self.n_keys + 1) * (ASSUMED_DISTANCE + SMOOTHED_WITHIN)
        if epsilon is not None and delta is not None:
            open_unit_fraction(delta, "delta")
            self._half = largest_mu2(epsilon, delta, distance=far) / 2
        else:
            of_rho = mu2 is None
            half = parse_positive(rho if of_rho else mu2, "rho" if of_rho else "mu2", printed=True)
            self._half = half if of_rho else half / 2
        self._plan = self._planned(Fraction(0))
        for p in range(1, PARTS // 2 + 1):
            plan = self._planned(Fraction(p, PARTS))
            if plan.variance < self._plan.variance * WORTHWHILE:
                self._plan = plan
        share = self._plan.share
        self._noise = DiscreteGaussian(sigma_squared=self._plan.counts * share.denominator**2 + self._wider)
        users = self._plan.users
        self._users_noise = None if users is None else DiscreteGaussian(sigma_squared=users + self._wider)
        if max(noise.distance for noise in self.noises) > ASSUMED_DISTANCE:
            raise ValueError("the noise is too far from the ideal one for this account; take other parameters")

    def _planned(self, share: Fraction) -> _Plan:
        """The least variance for a share: parameters rounded up, so that not more than rho is spent."""
        length, half = largest_length(self.n_keys, self.max_keys, share), self._half
        if not share:
            counts = shortened(length / (2 * half), up=True, bits=SIGNIFICANT_BITS)
            return _Plan(share, counts, None, counts)
        root = root_above(length)
        counts = shortened(root * (root + share) / (2 * half), up=True, bits=SIGNIFICANT_BITS)
        # What is left beside the counts.
        left = half - length / (2 * counts)
        users = shortened(1 / (2 * left), up=True, bits=SIGNIFICANT_BITS)
        return _Plan(share, counts, users, counts + share**2 * users)

    @property
    def n_keys(self) -> int:
        """How many keys there are."""
        return self._arguments["n_keys"]

    @property
    def max_keys(self) -> int:
        """How many of them a user has at most."""
        return self._arguments["max_keys"]

    @property
    def theta(self) -> Fraction:
        """The share of the number of users that is taken off every count."""
        return self._plan.share

    @property
    def noises(self) -> tuple[DiscreteGaussian, ...]:
        """The noise of q c_j - p n, and unless theta is 0 that of n."""
        return (self._noise,) if self._users_noise is None else (self._noise, self._users_noise)

    @property
    def distance(self) -> Fraction:
        """How far the numbers that one user moves are from ideal ones, in total variation."""
        if self._users_noise is None:
            return min(self.n_keys, self.max_keys) * self._noise.distance
        return self.n_keys * self._noise.distance + self._users_noise.distance

    @property
    def rho(self) -> Fraction:
        """The zCDP parameter of ideal noise, exactly."""
        share = self.theta
        length = largest_length(self.n_keys, self.max_keys, share) * share.denominator**2
        rho = length / (2 * self._noise.sigma_squared)
        return rho if self._users_noise is None else rho + 1 / (2 * self._users_noise.sigma_squared)

    @property
    def variance(self) -> float:
        """About the variance of a count."""
        users = 0 if self._users_noise is None else self._users_noise.sigma_squared
        return float(self._noise.sigma_squared / self.theta.denominator**2 + self.theta**2 * users)

    @property
    def factor(self) -> float:
        """The variance as a part of that of independent noise, for the same budget."""
        return self.variance / float(min(self.max_keys, self.n_keys) / (2 * self._half) + self._wider)

    @property
    def cost(self) -> PrivacyCost:
        """What one release costs: rho, or mu2, with epsilon and delta where these were given."""
        if not self._exact:
            return PrivacyCost(rho=self.rho, distance=self.distance, neighbors=self.neighbors)
        share = self.theta
        length = largest_length(self.n_keys, self.max_keys, share) * share.denominator**2
        mu2 = length / (self._noise.sigma_squared - SMOOTHING)
        # A mu2 is about one law for every dataset, so all drawn numbers count, not only those that one user moves.
        far = self.n_keys * (self._noise.distance + SMOOTHED_WITHIN)
        if self._users_noise is not None:
            mu2 += 1 / (self._users_noise.sigma_squared - SMOOTHING)
            far += self._users_noise.distance + SMOOTHED_WITHIN
        return PrivacyCost(
            self._arguments.get("epsilon"),
            self._arguments.get("delta", 0),
            mu2=mu2,
            distance=far,
            neighbors=self.neighbors,
        )

    def error(self, probability: Number = "0.95") -> int:
        """How far a released count, rounded to an integer, is from the true one at most with this probability.

        Parameters
        ----------
        probability : float, int, Fraction or decimal string
            In (0, 1).

        Returns
        -------
        int
            In users, rounded up; computed in doubles from the sum of both noises.
        """
        failure = float(1 - open_unit_fraction(probability, "probability"))
        p, q = self.theta.numerator, self.theta.denominator
        scales = [math.sqrt(float(noise.sigma_squared)) for noise in self.noises]
        # Of what is moved in steps of 1 / q: x counts, and p times each number of users with its probability.
        users, masses = _outcomes(scales[1]) if self._users_noise is not None else (np.zeros(1), np.ones(1))
        tail = _tail_of(scales[0])

        def beyond(error: int) -> float:
            # Ties are rounded to even, so they count as beyond; noise is symmetric.
            return float(2 * tail(np.ceil(q * (error + 0.5)) - p * users) @ masses)

        return least(lambda error: beyond(error) <= failure, -1, 1, math.inf)

    def sample(
        self,
        counts: Mapping[Any, int] | Sequence[int] | Integers,
        n_users: int,
        random_state: int | None = None,
    ) -> tuple[Any, int | None]:
        """Release the counts of all keys, and the number of users.

        Parameters
        ----------
        counts : mapping from all keys to int, or array-like of int with shape (n_keys,)
            How many users have each key of the public list, also where that is 0.
        n_users : int
            How many users there are.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns (`InsecureRandomnessWarning`).

        Returns
        -------
        (counts, n_users) : tuple
            A dict in canonical order, or an array of float64: multiples of 1 / 64 at most, exactly below 2**46. The
            noisy number of users, or None where theta is 0.
        """
        if not is_integer(n_users):
            raise TypeError(f"n_users must be an int; got a {type(n_users).__name__}")
        return self._draw(source_of(random_state), counts, int(n_users))

    def _draw(self, source: _core.Source, counts: Any, n_users: int) -> tuple[Any, int | None]:
        keys, numbers = read_counts(counts)
        if numbers.size != self.n_keys:
            raise ValueError(f"counts must have n_keys={self.n_keys} entries, also those of 0; got {numbers.size}")
        p, q = self.theta.numerator, self.theta.denominator
        limit = 2**40  # people: nothing wraps, and more of them count as so many
        users = min(max(n_users, 0), limit)
        moved = q * np.clip(numbers, 0, limit) - p * users
        released = self._noise._release_many(moved, source)
        noisy = None
        if self._users_noise is not None:
            noisy = int(self._users_noise._release_many(np.array([users]), source)[0])
        total = 0 if noisy is None else p * noisy
        found: Floats = (released + total) / q
        if not isinstance(counts, Mapping):
            return found, noisy
        return dict(zip(keys, found.tolist(), strict=True)), noisy


def _outcomes(sigma: float) -> tuple[Floats, Floats]:
    """The outcomes of noise with nearly all of the probability; of wide noise a part that stands for all."""
    reach = math.ceil(REACH * sigma) + 1
    step = max(1, reach // 1000)
    outcomes = np.arange(-reach // step, reach // step + 1, dtype=np.float64) * step
    masses = np.exp(-(outcomes**2) / (2 * sigma**2))
    return outcomes, masses / masses.sum()


def _tail_of(sigma: float) -> Callable[[Floats], Floats]:
    """The probability that noise is an integer or more; that of wide noise with a step more."""
    if sigma >= WIDE:
        normal = np.vectorize(NormalDist().cdf)
        return lambda least: normal((1 - least) / sigma)
    reach = math.ceil(REACH * sigma) + 2
    masses = np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * sigma**2))
    tails = np.append(np.cumsum(masses[::-1])[::-1] / masses.sum(), 0.0)
    return lambda least: tails[np.clip(least + reach, 0, 2 * reach + 1).astype(np.int64)]
