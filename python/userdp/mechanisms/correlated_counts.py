"""Counts of users by public keys, with noise in common where users have many of the keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
    ) -> None:
        if check_count(n_keys, "n_keys") > MOST_KEYS:
            raise ValueError(f"n_keys must be at most 2**24; got {short_repr(n_keys)}")
        check_count(max_keys, "max_keys")
        if (rho is None) == (epsilon is None) or (epsilon is None) != (delta is None):
            raise TypeError("CorrelatedCounts takes either rho, or epsilon and delta")
        super().__init__(n_keys=int(n_keys), max_keys=int(max_keys), rho=rho, epsilon=epsilon, delta=delta)
        self._exact = epsilon is not None
        # Noise that is accounted as smoothed continuous noise is wider by a constant.
        self._wider = SMOOTHING if self._exact else 0
        far = (self.n_keys + 1) * (ASSUMED_DISTANCE + SMOOTHED_WITHIN)
        if epsilon is not None and delta is not None:
            open_unit_fraction(delta, "delta")
            self._half = largest_mu2(epsilon, delta, distance=far) / 2
        else:
            self._half = parse_positive(rho, "rho")
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
        keys: int = self._arguments["n_keys"]
        return keys

    @property
    def max_keys(self) -> int:
        """How many of them a user has at most."""
        keys: int = self._arguments["max_keys"]
        return keys

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
        """What one release costs: rho, with epsilon and delta where these were given."""
        if not self._exact:
            return PrivacyCost(rho=self.rho, distance=self.distance)
        share = self.theta
        length = largest_length(self.n_keys, self.max_keys, share) * share.denominator**2
        mu2 = length / (self._noise.sigma_squared - SMOOTHING)
        numbers = self.n_keys
        if self._users_noise is not None:
            mu2, numbers = mu2 + 1 / (self._users_noise.sigma_squared - SMOOTHING), numbers + 1
        return PrivacyCost(
            self._arguments["epsilon"],
            self._arguments["delta"],
            mu2=mu2,
            distance=self.distance + numbers * SMOOTHED_WITHIN,
        )

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
