"""Noise on what is shown of a key: its count of users, and sums beside it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from userdp.exact.epsilon import as_epsilon
from userdp.exact.numbers import Epsilon, PrivacyLevel, nonzero_level, parse_positive
from userdp.mechanisms.discrete_gaussian import DiscreteGaussian
from userdp.mechanisms.discrete_laplace import DiscreteLaplace
from userdp.mechanisms.key_bounds import check_range
from userdp.mechanisms.noisy_threshold import Noise
from userdp.mechanisms.vanishing_keys import WIDE_VARIANCE, Shift

Number: TypeAlias = "float | int | Fraction | str"
LARGEST_SUM = 2**61


def noise_of(
    scale: Number | None, epsilon_per_unit: Epsilon | None, sigma_squared: Number | None, bounds: tuple[int, int]
) -> tuple[Noise, PrivacyLevel | None]:
    """The noise that one of three arguments says, and what a unit is worth in Laplace noise."""
    given = [
        name
        for name, value in (("scale", scale), ("epsilon_per_unit", epsilon_per_unit), ("sigma_squared", sigma_squared))
        if value is not None
    ]
    if len(given) != 1:
        raise TypeError(
            f"give exactly one of scale, epsilon_per_unit and sigma_squared; got {' and '.join(given) or 'none'}"
        )
    if sigma_squared is not None:
        return DiscreteGaussian(sigma_squared=sigma_squared), None
    if scale is not None:
        rate = PrivacyLevel(Fraction(1), 1 / parse_positive(scale, "scale"))
    else:
        rate = nonzero_level(epsilon_per_unit, "epsilon_per_unit")
    return DiscreteLaplace(epsilon=as_epsilon(rate), sensitivity=1, bounds=bounds), rate


@dataclass(frozen=True)
class KeySum:
    """A sum by key that is shown beside the count, with noise of its own.

    Parameters
    ----------
    low, high : int
        What one user adds in a key is from low to high, within +-2**62; not both 0.
    scale, epsilon_per_unit, sigma_squared : numbers, optional
        The noise, as for `SparseHistogram`; exactly one of them.

    Examples
    --------
    >>> KeySum(-5, 5, sigma_squared=2500)
    KeySum(low=-5, high=5, scale=None, epsilon_per_unit=None, sigma_squared=2500)
    """

    low: int
    high: int
    scale: Number | None = None
    epsilon_per_unit: Epsilon | None = None
    sigma_squared: Number | None = None

    def __post_init__(self) -> None:
        if check_range(self.low, self.high) == (0, 0):
            raise ValueError("low and high must not both be 0: such a sum says nothing")
        self._noise  # noqa: B018  refuses what is out of range

    @cached_property
    def _noise(self) -> tuple[Noise, PrivacyLevel | None]:
        return noise_of(self.scale, self.epsilon_per_unit, self.sigma_squared, (-LARGEST_SUM, LARGEST_SUM))

    @property
    def noise(self) -> Noise:
        """What is added to the sum of a key."""
        return self._noise[0]

    @property
    def largest(self) -> int:
        """How far one user moves the sum of a key that only they have, or that they leave."""
        return max(abs(self.low), abs(self.high))

    def shift(self, amount: int) -> Shift:
        """What dominates the noisy sum of a key that moves by this amount."""
        return shift_of(*self._noise, amount, smooth=True)


def shift_of(noise: Noise, rate: PrivacyLevel | None, amount: int, *, smooth: bool) -> Shift:
    """What dominates a number with such noise that moves by this amount; several numbers are less work when smooth."""
    if isinstance(noise, DiscreteGaussian):
        return Shift.gaussian(noise.sigma_squared, amount, listed=not smooth or noise.sigma_squared < WIDE_VARIANCE)
    assert rate is not None
    return Shift.laplace(rate, amount)


def distance_of(noise: Noise) -> Fraction:
    """How far the drawn noise is from what its shift is of, in total variation: discrete Laplace noise is dominated."""
    return noise.distance if isinstance(noise, DiscreteGaussian) else Fraction(0)
