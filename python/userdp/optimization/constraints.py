"""Where parameters may be: public convex sets and the nearest points in them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.saving import arguments_of, repr_of, saved_as_parameter
from userdp.exact.numbers import short_repr

Floats = npt.NDArray[np.float64]

LARGEST = 2.0**100
"""Radii, ends and bounds beyond this are refused, so that no product of them overflows."""
LEAST = 2.0**-100
"""And lengths below this, so that no quotient does."""


class PublicArgument:
    """What estimators take as a parameter: equal when made of equal arguments."""

    def __repr__(self) -> str:
        return repr_of(self)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and arguments_of(other) == arguments_of(self)

    def __hash__(self) -> int:
        return hash(type(self))


class Constraint(PublicArgument, ABC):
    """A public, closed, bounded and convex set of parameters."""

    @abstractmethod
    def middle(self, dimension: int) -> Floats:
        """The center of the set; a ValueError when the set is one of vectors of another dimension."""

    @abstractmethod
    def reach(self, dimension: int) -> float:
        """A bound of the distance of points of the set from its center."""

    @abstractmethod
    def project(self, theta: npt.ArrayLike) -> Floats:
        """The point of the set that is nearest to theta."""


@saved_as_parameter
class L2Ball(Constraint):
    """All vectors within a Euclidean distance of a center.

    Parameters
    ----------
    radius : float
        > 0, from 2**-100 to 2**100.
    center : sequence of float, optional
        By default 0.

    Examples
    --------
    >>> L2Ball(2.5).project([3.0, 4.0]).tolist()
    [1.5, 2.0]
    """

    def __init__(self, radius: float, center: npt.ArrayLike | None = None) -> None:
        self.radius = length(radius, "radius")
        self.center = None if center is None else tuple(finite_vector(center, "center").tolist())

    def middle(self, dimension: int) -> Floats:
        if self.center is None:
            return np.zeros(dimension)
        if len(self.center) != dimension:
            raise ValueError(f"center must have {dimension} entries, as parameters have; got {len(self.center)}")
        return np.array(self.center)

    def reach(self, dimension: int) -> float:
        return self.radius

    def project(self, theta: npt.ArrayLike) -> Floats:
        point = np.asarray(theta, dtype=np.float64)
        middle = self.middle(len(point))
        offset = point - middle
        distance = math.hypot(*offset.tolist())
        return point.copy() if distance <= self.radius else middle + offset * (self.radius / distance)


@saved_as_parameter
class Box(Constraint):
    """All vectors between two, in every coordinate.

    Parameters
    ----------
    low, high : float or sequence of float
        low <= high, between -2**100 and 2**100; one number for all coordinates, or one for each.

    Examples
    --------
    >>> Box(-1.0, (1.0, 2.0)).project([-3.0, 4.0]).tolist()
    [-1.0, 2.0]
    """

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike) -> None:
        self.low, self.high = _end(low, "low"), _end(high, "high")
        sizes = {len(end) for end in (self.low, self.high) if isinstance(end, tuple)}
        if len(sizes) > 1:
            raise ValueError(f"low and high must have as many entries; got {short_repr(low)} and {short_repr(high)}")
        if np.any(np.asarray(self.low) > np.asarray(self.high)):
            raise ValueError(f"low must be <= high; got {short_repr(low)} and {short_repr(high)}")

    def _ends(self, dimension: int) -> tuple[Floats, Floats]:
        for name, end in (("low", self.low), ("high", self.high)):
            if isinstance(end, tuple) and len(end) != dimension:
                raise ValueError(f"{name} must have {dimension} entries, as parameters have; got {len(end)}")
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), dimension) for end in (self.low, self.high))
        return low, high

    def middle(self, dimension: int) -> Floats:
        low, high = self._ends(dimension)
        return low / 2 + high / 2

    def reach(self, dimension: int) -> float:
        low, high = self._ends(dimension)
        return math.hypot(*(high - low).tolist()) / 2

    def project(self, theta: npt.ArrayLike) -> Floats:
        point = np.asarray(theta, dtype=np.float64)
        return np.clip(point, *self._ends(len(point)))


def finite(value: Any, name: str) -> float:
    """A public number within +-2**100 as a float, or an error that names it."""
    number = np.nan
    if not isinstance(value, (bool, np.bool_, str)):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{name} must be a number; got {short_repr(value)}") from None
    if not abs(number) <= LARGEST:
        raise ValueError(f"{name} must be a number between -2**100 and 2**100; got {short_repr(value)}")
    return number


def length(value: Any, name: str) -> float:
    """A public number from 2**-100 to 2**100 as a float, or an error that names it."""
    number = finite(value, name)
    if not number >= LEAST:
        raise ValueError(f"{name} must be > 0, at least 2**-100; got {short_repr(value)}")
    return number


def optional_length(value: Any, name: str) -> None:
    """Refuse what is neither None nor a `length`."""
    if value is not None:
        length(value, name)


def finite_vector(values: Any, name: str) -> Floats:
    """A public vector of finite numbers, or an error that names it."""
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a sequence of numbers; got {short_repr(values)}") from None
    if vector.ndim != 1 or not len(vector) or not np.all(np.abs(vector) <= LARGEST):
        raise ValueError(f"{name} must be a sequence of numbers between -2**100 and 2**100; got {short_repr(values)}")
    return vector


def _end(values: Any, name: str) -> float | tuple[float, ...]:
    return finite(values, name) if np.ndim(values) == 0 else tuple(finite_vector(values, name).tolist())
