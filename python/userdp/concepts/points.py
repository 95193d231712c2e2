"""How private numbers become public points: whole numbers 1, ..., N, or the points of a public even grid.

Every map here is total, and a number's point depends on that number alone: whatever a row holds, it becomes some point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import check_count, exact_number, nearest_float, short_repr

LARGEST_DOMAIN = 2**64 - 1


def read_domain_size(domain_size: Any) -> int:
    """Read N, from 1 to 2**64 - 1."""
    size = check_count(domain_size, "domain_size")
    if size > LARGEST_DOMAIN:
        raise ValueError(f"domain_size must be at most 2**64 - 1; got {short_repr(domain_size)}")
    return size


def points_of(numbers: npt.NDArray[Any], domain_size: int) -> npt.NDArray[np.uint64]:
    """Return numbers x as integer points: ceil(x), clamped to 1, ..., N; NaN is 1, integers are exact."""
    # For an integer u >= 1 that is below N, x > u exactly when the point of x is; so clamping matters at the ends only.
    if numbers.dtype.kind == "f":
        return _of_floats(numbers, domain_size)
    if numbers.dtype.kind != "u":
        numbers = np.maximum(numbers.astype(np.int64), 1)
    return np.clip(numbers.astype(np.uint64), 1, np.uint64(domain_size))


def _of_floats(numbers: npt.NDArray[Any], domain_size: int) -> npt.NDArray[np.uint64]:
    # In single precision the end of the domain could be rounded to above it.
    numbers = numbers.astype(np.float64, copy=False)
    largest = float(domain_size)
    if int(largest) > domain_size:
        largest = math.nextafter(largest, 0)
    # No float is between the largest one in the domain and its end.
    above = numbers > largest
    inside = np.ceil(np.where((numbers > 1) & ~above, numbers, 1)).astype(np.uint64)
    inside[above] = domain_size
    return inside


@dataclass(frozen=True)
class WholePoints:
    """The points 1, ..., N, and the thresholds 0, ..., N."""

    size: int  # N

    @property
    def largest(self) -> int:
        """No whole number that matters is larger."""
        return self.size

    def read(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """The points of numbers: see `points_of`."""
        return points_of(numbers, self.size)

    def threshold(self, place: int) -> int:
        """The threshold with so many points that are not above it, from 0 to N."""
        return int(place)

    def place(self, threshold: Any) -> int:
        """How many points are not above a threshold."""
        return int(threshold)


LARGEST_UNITS = 2**50
"""The ends of a grid are at most so many of its finest common unit from 0: quotients of doubles are exact up to there,
and no two thresholds have the same double."""


@dataclass(frozen=True)
class EvenPoints:
    """The points low, low + step, ..., high, which are numbered 1, ..., N, and the thresholds halfway between them."""

    # Threshold k is the double that is nearest to (first + k step) / unit, for k = 0, ..., N: halfway below the first
    # point, between two neighbors, or halfway above the last one.

    first: int
    step: int
    unit: int
    size: int  # N

    @property
    def largest(self) -> int:
        """Of no interest: numbers are read as doubles."""
        return 0

    def read(self, numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
        """The points that numbers are nearest to, from 1 to N: a number halfway counts as the smaller, NaN as 1."""
        if self.size == 1:
            return np.ones(numbers.shape, dtype=np.uint64)
        below, above = self._thresholds(np.array([0, self.size]))
        doubles = numbers.astype(np.float64)
        doubles = np.clip(np.where(np.isnan(doubles), below, doubles), below, above)
        # All numbers here are at most 2**51. So the two roundings move the quotient by less than 1/2, the rounding of a
        # threshold by less than 1/4, and the place is one of the guess and its neighbors; comparisons say which.
        guess = np.ceil((doubles * self.unit - self.first) / self.step).astype(np.int64) - 1
        guess = np.clip(guess, 0, self.size - 1)
        places = guess - 1 + (self._thresholds(guess) < doubles) + (self._thresholds(guess + 1) < doubles)
        return (np.clip(places, 0, self.size - 1) + 1).astype(np.uint64)

    def _thresholds(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        # A quotient of two integers that are doubles is the nearest double of it.
        return (self.first + places * self.step) / self.unit

    def threshold(self, place: int) -> float:
        """The threshold with so many points below it, from 0 to N."""
        return float(self._thresholds(np.array([place]))[0])

    def place(self, threshold: Any) -> int:
        """How many points are below a threshold."""
        return round((Fraction(float(threshold)) * self.unit - self.first) / self.step)


PublicPoints: TypeAlias = "WholePoints | EvenPoints"


def read_points_parameter(points: Any, name: str) -> EvenPoints:
    """Read (low, high, step), floats as the shortest decimals that stand for them."""
    try:
        low, high, step = points
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be (low, high, step), three numbers such as (0, 24, 0.5); got {short_repr(points)}"
        ) from None
    low, high, step = (_decimal(value, f"{name}: {part}") for value, part in zip((low, high, step), PARTS, strict=True))
    if step <= 0 or high < low:
        raise ValueError(f"{name} must have low <= high and step > 0; got {short_repr(points)}")
    steps = (high - low) / step
    if steps.denominator != 1:
        raise ValueError(
            f"{name} must have high = low + k step for a whole number k; got {short_repr(points)}, and the points next "
            f"to high are {nearest_float(low + steps // 1 * step)} and {nearest_float(low + (steps // 1 + 1) * step)}"
        )
    first = low - step / 2
    unit = math.lcm(first.denominator, step.denominator)
    grid = EvenPoints(int(first * unit), int(step * unit), unit, int(steps) + 1)
    if max(unit, abs(grid.first), abs(grid.first + grid.size * grid.step)) > LARGEST_UNITS:
        raise ValueError(
            f"{name} must have ends that are at most 2**50 of the finest common unit of low and step/2 from 0, and "
            f"that unit at least 2**-50; got {short_repr(points)}: use rounder numbers, or fractions such as '1/3'"
        )
    return grid


PARTS = ("low", "high", "step")


def _decimal(value: Any, name: str) -> Fraction:
    """A public number: 0.1 is a tenth, and not the double next to it."""
    try:
        exact = exact_number(value)
        if exact is not None and isinstance(value, (float, np.floating)):
            exact = Fraction(repr(float(value)) if isinstance(value, float) else str(value))
    except TypeError:
        raise TypeError(f"{name} must be a number; got {short_repr(value)}") from None
    except ValueError as error:
        raise ValueError(f"{name}={short_repr(value)}: {error}") from None
    if exact is None:
        raise ValueError(f"{name} must be finite; got {short_repr(value)}")
    return exact
