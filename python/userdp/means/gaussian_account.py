"""What Gaussian noise on integers costs, and how much of it a claim asks for: one place for means and descents.

Two accounts: zero-concentration, in rho, and the exact curve of Gaussian noise, in mu^2, which allows more wherever
sums have more than a few steps. Public numbers choose between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias

from userdp.accounting.cost import PrivacyCost
from userdp.estimators.plan import Budget
from userdp.exact.epsilon import shortened
from userdp.exact.numbers import Epsilon, parse_level
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.discrete_gaussian import SMOOTHED_WITHIN, SMOOTHING

GaussianUnit: TypeAlias = Literal["rho", "mu2"]

NOISE_DISTANCE = Fraction(1, 2**90)
"""At least the total variation between the discrete Gaussian noise of one integer and what is accounted for."""
LARGEST_SEARCH = Fraction(64)
"""Exponential mechanisms take an epsilon of up to 88."""
SIGNIFICANT_BITS = 64
"""Variances are rounded up to so many."""


@dataclass(frozen=True)
class GaussianAccount:
    """What Gaussian noise on integers, and searches of bounded range, may spend together, chosen adaptively."""

    unit: GaussianUnit
    amount: Fraction

    @property
    def rho(self) -> Fraction:
        """What the noise costs in zero-concentration: noise for a sensitivity D has about D^2 / (2 rho)."""
        return self.amount if self.unit == "rho" else self.amount / 2

    @property
    def mu(self) -> float:
        """Noise for a sensitivity D has about D over this as its standard deviation."""
        return math.sqrt(2 * self.rho)

    def part(self, share: Fraction | int) -> GaussianAccount:
        """A share of it: shares of a sum of 1 spend all."""
        return GaussianAccount(self.unit, self.amount * share)

    def sigma_squared(self, sensitivity: int) -> Fraction:
        """The noise that all of it buys, for integers that move by at most `sensitivity` in Euclidean length."""
        if self.unit == "rho":
            return Fraction(sensitivity**2) / (2 * self.amount)
        return Fraction(sensitivity**2) / self.amount + SMOOTHING

    def noise(self, sensitivity: int) -> DiscreteGaussian:
        """The same as a mechanism, within the distance that is accounted for."""
        return _noise(self, sensitivity)

    def search_epsilon(self) -> Fraction:
        """The largest epsilon of 40 fraction bits of a mechanism with epsilon-bounded range that all of it buys."""
        squared = self.amount / self.of_search(Fraction(1))
        return min(Fraction(math.isqrt(math.floor(squared * 2**80)), 2**40), LARGEST_SEARCH)

    def of_search(self, epsilon: Fraction) -> Fraction:
        """What a mechanism with epsilon-bounded range costs."""
        from userdp.accounting import bounded_range_to_mu2, bounded_range_to_zcdp

        return bounded_range_to_zcdp(epsilon) if self.unit == "rho" else bounded_range_to_mu2(epsilon)

    @property
    def range_rho(self) -> float:
        """What bounded range 1 takes of `rho`; range eta takes eta^2 times that."""
        return float(self.of_search(Fraction(1)) * self.rho / self.amount)

    def cost(self, distance: Fraction, epsilon: Epsilon | None = None, delta: Fraction = Fraction(0)) -> PrivacyCost:
        """Of a release that spends all of it."""
        mu2 = self.amount if self.unit == "mu2" else None
        return PrivacyCost(epsilon, delta, rho=self.rho, distance=distance, mu2=mu2)

    def budget(
        self,
        shares: Mapping[str, Fraction | int],
        distance: Fraction,
        epsilon: Epsilon | None = None,
        delta: Fraction = Fraction(0),
    ) -> Budget:
        """Of a release that spends shares of it."""
        parts = {name: self.amount * share for name, share in shares.items() if share}
        spent = GaussianAccount(self.unit, sum(parts.values(), Fraction(0)))
        return Budget(spent.cost(distance, epsilon, delta), parts, self.unit)


@lru_cache(maxsize=256)
def _noise(account: GaussianAccount, sensitivity: int) -> DiscreteGaussian:
    if account.unit == "rho":
        noise = DiscreteGaussian(rho=account.amount, sensitivity=sensitivity)
    else:
        sigma_squared = shortened(account.sigma_squared(sensitivity), up=True, bits=SIGNIFICANT_BITS)
        noise = DiscreteGaussian(sigma_squared=sigma_squared)
    if noise.distance + SMOOTHED_WITHIN > NOISE_DISTANCE:
        raise AssertionError("the noise is farther from the ideal than was accounted for")
    return noise


def gaussian_accounts(
    epsilon: Epsilon, delta: Fraction, integers: int, *, sensitivity: int, in_rho: bool = False
) -> tuple[GaussianAccount, ...]:
    """The accounts of all that (epsilon, delta) allows, the one with less noise first.

    `integers` get noise, at most; none of the sensitivities is below `sensitivity`. `in_rho` asks for
    zero-concentration only. An error names epsilon or delta.
    """
    distance = integers * NOISE_DISTANCE
    accounts = [GaussianAccount("rho", _spendable_rho(epsilon, delta, distance))]
    if not in_rho:
        from userdp.accounting import largest_mu2

        with suppress(ValueError):  # an epsilon that is too large for exact curves
            exact = GaussianAccount("mu2", largest_mu2(epsilon, delta, distance=distance))
            # For a share of it both terms but s^2 grow, so that what holds here holds for all shares.
            better = exact.sigma_squared(sensitivity) < accounts[0].sigma_squared(sensitivity)
            accounts.insert(0 if better else 1, exact)
    return tuple(accounts)


def gaussian_account(
    epsilon: Epsilon, delta: Fraction, integers: int, *, sensitivity: int, in_rho: bool = False
) -> GaussianAccount:
    """The account with less noise: see `gaussian_accounts`."""
    return gaussian_accounts(epsilon, delta, integers, sensitivity=sensitivity, in_rho=in_rho)[0]


def _spendable_rho(epsilon: Epsilon, delta: Fraction, distance: Fraction) -> Fraction:
    """The most rho that may be spent by draws within a distance of ideal ones; an error names epsilon or delta."""
    from userdp.accounting import largest_rho

    try:
        return largest_rho(epsilon, delta, distance=distance)
    except ValueError:
        # A delta that is tiny, or an epsilon whose exponential makes the distance cost more than delta.
        most = math.floor(math.log(delta / (4 * distance))) if delta > 12 * distance > 0 else 0
        level = float(parse_level(epsilon))
        if not most or level <= most:
            raise
        raise ValueError(
            f"epsilon must be at most {most} at delta={float(delta):.3g} for Gaussian noise, whose distance from the "
            f"ideal one costs 1 + e^epsilon times itself; got {level:.6g}"
        ) from None
