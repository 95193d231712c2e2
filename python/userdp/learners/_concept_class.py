"""What a class of hypotheses is: a finite list of functions from points to two labels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp._numbers import is_integer, shown
from userdp.exceptions import BudgetError

__all__ = ["MAX_SIZE", "Bits", "ConceptClass", "Points", "check_size", "column_of"]

Points = npt.NDArray[np.integer[Any]]
Bits = npt.NDArray[np.bool_]

MAX_SIZE = 2**24
"""The most hypotheses that the exponential mechanism weighs one by one."""


class ConceptClass(ABC):
    """A public, finite list of hypotheses, each a function from points to False (the first class) or True (the second).

    The list is fixed without a look at the data: learners weigh every hypothesis on it, whatever the data are.

    Attributes
    ----------
    size : int
        The number of hypotheses, at least 2 and at most 2**24.
    log_size : float
        Its natural logarithm, the "size" of LWY24 and GKKMMZ23.
    vc_dimension : int
        The Vapnik-Chervonenkis dimension, or a bound on it where a class says so.
    domain_size : int or None
        The number of points there are, or None where that is not known to matter.

    Notes
    -----
    Rows of features become points by `points`, which is a total map: whatever a row holds (NaN, infinities, numbers
    outside the domain), it becomes some point and nothing is raised. A bad row of one user therefore changes what this
    user contributes, and nothing else.
    """

    domain_size: int | None = None

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of hypotheses."""

    @property
    def log_size(self) -> float:
        """The natural logarithm of the number of hypotheses."""
        return math.log(self.size)

    @property
    @abstractmethod
    def vc_dimension(self) -> int:
        """The Vapnik-Chervonenkis dimension or a bound on it."""

    @abstractmethod
    def points(self, X: npt.NDArray[Any]) -> Points:
        """The points that rows of numbers stand for.

        Parameters
        ----------
        X : ndarray with shape (rows, features)
            Any numbers, NaN and infinities included.

        Returns
        -------
        ndarray of int with shape (rows,) or (rows, k)

        Raises
        ------
        ValueError
            For too few features only.
        """

    @property
    def reading(self) -> Hashable:
        """What `points` depends on: classes of equal readings are over the same points and read them alike."""
        return repr(self)

    @abstractmethod
    def predict(self, points: Points, start: int = 0, stop: int | None = None) -> Bits:
        """What the hypotheses start, ..., stop - 1 say about points.

        Parameters
        ----------
        points : ndarray
            As `points` gives them.
        start, stop : int
            A range of hypotheses; all by default.

        Returns
        -------
        ndarray of bool with shape (len(points), stop - start)
        """

    @abstractmethod
    def describe(self, index: int) -> str:
        """When the hypothesis with this index says True, in words."""

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Keyword arguments that make the class again."""

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={shown(value)}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({arguments})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _make, (type(self), self._arguments())

    def _range(self, start: int, stop: int | None) -> npt.NDArray[np.int64]:
        """The hypotheses of a range.

        Raises
        ------
        ValueError
            Unless 0 <= start <= stop <= size.
        """
        end = self.size if stop is None else stop
        if not 0 <= start <= end <= self.size:
            raise ValueError(f"start and stop must be in order and in 0, ..., {self.size}; got {start} and {end}")
        return np.arange(start, end)

    def _known(self, index: Any) -> int:
        """Read the index of a hypothesis.

        Raises
        ------
        TypeError, ValueError
            For anything else.
        """
        if not is_integer(index):
            raise TypeError(f"index must be an int; got {shown(index)}")
        if not 0 <= index < self.size:
            raise ValueError(f"index must be in 0, ..., {self.size - 1}; got {index}")
        return int(index)


def _make(kind: type[ConceptClass], arguments: dict[str, Any]) -> ConceptClass:
    return kind(**arguments)


def check_size(size: int, what: str, cheaper: str) -> None:
    """Refuse classes that cannot be enumerated.

    Raises
    ------
    ValueError
        For fewer than two hypotheses: there is nothing to choose.
    BudgetError
        For more than 2**24.
    """
    if size < 2:
        raise ValueError(f"{what} has {size} hypotheses; at least 2 are needed to choose one")
    if size > MAX_SIZE:
        raise BudgetError(f"{what} has {shown(size)} hypotheses, and at most 2**24 are weighed one by one; {cheaper}")


def column_of(X: npt.NDArray[Any], feature: int) -> npt.NDArray[Any]:
    """One column of a table.

    Raises
    ------
    ValueError
        When there is none: this is about the shape, not about values.
    """
    if X.ndim != 2 or X.shape[1] <= feature:
        raise ValueError(f"X must have a column {feature}; got the shape {X.shape}")
    column: npt.NDArray[Any] = X[:, feature]
    return column
