"""Losses of linear predictions, and of a user's own: their gradients, and how large and how steep these are."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import short_repr
from userdp.optimization.constraints import length

Floats = npt.NDArray[np.float64]

Gradient = Callable[[Floats, Floats, Floats], npt.ArrayLike]


class Loss(ABC):
    """A loss f(theta; x, y) that is convex in theta, for rows x with |x| <= bound in L2."""

    @abstractmethod
    def lipschitz(self, bound: float) -> float:
        """G: no gradient of a row is longer, in L2."""

    @abstractmethod
    def smoothness(self, bound: float) -> float:
        """H: the gradient of a row moves by at most H times what theta moves by."""

    def within(self, reach: float, target: float) -> Loss:
        """The same loss where all predictions are within +-reach and all targets within +-target."""
        return self

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Keyword arguments that make the loss again."""

    def __repr__(self) -> str:
        given = ", ".join(
            f"{name}={short_repr(value)}" for name, value in self._arguments().items() if value is not None
        )
        return f"{type(self).__name__}({given})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._arguments() == self._arguments()

    def __hash__(self) -> int:
        return hash(type(self))


class LinearLoss(Loss):
    """A loss phi(<theta, x>, y) of a linear prediction: its gradient is phi'(<theta, x>, y) x."""

    kind: ClassVar[str]
    """Its name in the core, which computes the gradients."""

    parameter: float = 1.0
    """What the core needs besides the name, > 0."""

    @property
    @abstractmethod
    def steepest(self) -> float:
        """The largest absolute value of phi'."""

    @property
    @abstractmethod
    def most_curved(self) -> float:
        """The largest phi''."""

    @abstractmethod
    def value(self, predictions: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
        """Phi, for each prediction and its target. Values of users' rows are **not private**."""

    def lipschitz(self, bound: float) -> float:
        return self.steepest * bound

    def smoothness(self, bound: float) -> float:
        return self.most_curved * bound * bound


@saved_as_parameter
class LogisticLoss(LinearLoss):
    """phi(s, y) = ln(1 + e**(-y s)) with y = 1 for targets > 0 and y = -1 for others: G = bound, H = bound**2 / 4.

    Examples
    --------
    >>> LogisticLoss().lipschitz(2.0), LogisticLoss().smoothness(2.0)
    (2.0, 1.0)
    """

    kind: ClassVar[str] = "logistic"
    steepest = 1.0
    most_curved = 0.25

    def value(self, predictions: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
        values: Floats = np.logaddexp(0.0, -_signs(targets) * np.asarray(predictions, dtype=np.float64))
        return values

    def _arguments(self) -> dict[str, Any]:
        return {}


@saved_as_parameter
class SmoothedHingeLoss(LinearLoss):
    """The hinge max(0, 1 - y s) with its corner rounded off: convex, G = bound, H = bound**2 / width.

    With z = y s, and y = 1 for targets > 0 and y = -1 for others: 0 for z >= 1, (1 - z)**2 / (2 width) down to
    z = 1 - width, and 1 - z - width / 2 below that.

    Parameters
    ----------
    width : float
        > 0. The hinge itself is within width / 2 of it.

    Raises
    ------
    ValueError
        For other widths.
    """

    kind: ClassVar[str] = "hinge"
    steepest = 1.0

    def __init__(self, width: float = 0.5) -> None:
        self.width = length(width, "width")

    @property
    def parameter(self) -> float:  # type: ignore[override]
        """The width."""
        return self.width

    @property
    def most_curved(self) -> float:
        """1 / width."""
        return 1 / self.width

    def value(self, predictions: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
        short = 1 - _signs(targets) * np.asarray(predictions, dtype=np.float64)
        inside = np.clip(short, 0, self.width)
        values: Floats = inside * inside / (2 * self.width) + np.maximum(short - self.width, 0)
        return values

    def _arguments(self) -> dict[str, Any]:
        return {"width": self.width}


@saved_as_parameter
class SquaredLoss(LinearLoss):
    """phi(s, y) = (s - y)**2 / 2, with residuals s - y beyond a public bound counted as that bound.

    That is Huber's loss: the square up to the bound and a line beyond it; G = residual * bound, H = bound**2.

    Parameters
    ----------
    residual : float, optional
        The bound of residuals, > 0. By default the largest that the constraint, the bound of features and that of
        targets allow: then it changes no gradient in the constraint, and G is as large as the worst row could make it.

    Raises
    ------
    ValueError
        For other bounds.

    Examples
    --------
    >>> SquaredLoss(residual=3.0).lipschitz(2.0)
    6.0
    >>> SquaredLoss().within(reach=4.0, target=1.0)
    SquaredLoss(residual=5.0)
    """

    kind: ClassVar[str] = "squared"
    most_curved = 1.0

    def __init__(self, residual: float | None = None) -> None:
        self.residual = None if residual is None else length(residual, "residual")

    @property
    def parameter(self) -> float:  # type: ignore[override]
        """The bound of residuals; infinite where it is not known yet."""
        return math.inf if self.residual is None else self.residual

    @property
    def steepest(self) -> float:
        """The bound of residuals."""
        return self.parameter

    def within(self, reach: float, target: float) -> SquaredLoss:
        return SquaredLoss(reach + target) if self.residual is None else self

    def value(self, predictions: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
        residual = np.abs(np.asarray(predictions, dtype=np.float64) - np.asarray(targets, dtype=np.float64))
        inside = np.minimum(residual, self.parameter)
        values: Floats = inside * (residual - inside / 2)
        return values

    def _arguments(self) -> dict[str, Any]:
        return {"residual": self.residual}


class CustomLoss(Loss):
    """A loss of one's own, by its gradient.

    Parameters
    ----------
    gradient : callable
        ``gradient(theta, X, y)`` with theta of shape (d,) and one user's rows, X of shape (rows, d) and y of shape
        (rows,): the gradient of every row, of shape (rows, d), or their mean, of shape (d,). It is called once for
        every user with rows, with copies of that user's rows only, and must depend on its arguments only. Where it
        raises, or returns another shape or numbers that are not finite, the user counts with the zero vector.
    lipschitz : float
        G > 0, about how long gradients are. Privacy does not rest on it: steps clip what is longer.
    smoothness : float
        H > 0. Step sizes follow from it, privacy does not.

    Raises
    ------
    TypeError, ValueError
        For other arguments; by fits, when the callback returns a wrong shape for public rows of zeros.

    Examples
    --------
    >>> def pinball(theta, X, y):
    ...     above = y > X @ theta
    ...     return np.where(above, -0.9, 0.1)[:, None] * X
    >>> CustomLoss(pinball, lipschitz=0.9, smoothness=10.0).lipschitz(1.0)
    0.9
    """

    def __init__(self, gradient: Gradient, *, lipschitz: float, smoothness: float) -> None:
        if not callable(gradient):
            raise TypeError(f"gradient must be a callable of (theta, X, y); got {short_repr(gradient)}")
        self.gradient = gradient
        self._lipschitz = length(lipschitz, "lipschitz")
        self._smoothness = length(smoothness, "smoothness")

    def lipschitz(self, bound: float) -> float:
        """G as given, whatever the bound."""
        return self._lipschitz

    def smoothness(self, bound: float) -> float:
        """H as given, whatever the bound."""
        return self._smoothness

    def _arguments(self) -> dict[str, Any]:
        return {"gradient": self.gradient, "lipschitz": self._lipschitz, "smoothness": self._smoothness}


def _signs(targets: npt.ArrayLike) -> Floats:
    return np.where(np.asarray(targets, dtype=np.float64) > 0, 1.0, -1.0)
