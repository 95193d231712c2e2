"""Losses of linear predictions, and of a user's own, and users' mean gradients of them at a public theta."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import short_repr
from userdp.optimization.constraints import PublicArgument, length
from userdp.users.table import UserTable
from userdp.users.vectors import GivenVectors, UserVectors, aligned, readable, rows_of_users

LARGEST = 2.0**400
"""What infinities count as, as in the core."""

Floats = npt.NDArray[np.float64]

Gradient = Callable[[Floats, Floats, Floats], npt.ArrayLike]


class Loss(PublicArgument, ABC):
    """A loss f(theta; x, y) that is convex in theta, for rows x with |x| <= max_norm in L2."""

    @abstractmethod
    def lipschitz(self, max_norm: float) -> float:
        """G: no gradient of a row is longer, in L2."""

    @abstractmethod
    def smoothness(self, max_norm: float) -> float:
        """H: the gradient of a row moves by at most H times what theta moves by."""

    def within(self, reach: float, target: float) -> Loss:
        """The same loss where all predictions are within +-reach and all targets within +-target."""
        return self

    numbers_of_a_call: ClassVar[int] = 0
    """Gradients of a user take as long as reading so many numbers, beside the user's own."""

    @abstractmethod
    def _by_user(self, data: UserTable, dimension: int) -> Any:
        """Which rows a user has, as `_mean_gradients` reads it; refuses what gives no gradients of this length."""

    @abstractmethod
    def _mean_gradients(self, rows: GradientRows, theta: Floats) -> UserVectors:
        """The mean of the gradients of each user's rows, at theta."""


class LinearLoss(Loss):
    """A loss phi(<theta, x>, y) of a linear prediction: its gradient is phi'(<theta, x>, y) x."""

    kind: ClassVar[str]
    of_signs: ClassVar[bool] = False
    """Whether targets are two classes, by whether they are above 0."""
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

    def lipschitz(self, max_norm: float) -> float:
        return self.steepest * max_norm

    def smoothness(self, max_norm: float) -> float:
        return self.most_curved * max_norm * max_norm

    def _by_user(self, data: UserTable, dimension: int) -> _core.RowsOfUsers:
        return rows_of_users(data.users, data.n_users)

    def _mean_gradients(self, rows: GradientRows, theta: Floats) -> UserVectors:
        vectors = GradientVectors(rows, self, theta)
        return vectors if rows.selected is None else vectors.subset(rows.selected)


@saved_as_parameter
class LogisticLoss(LinearLoss):
    """The logistic loss ln(1 + e**(-y s)) of a prediction s, with y = 1 for targets > 0 and y = -1 for others.

    G = B and H = B**2 / 4 for records of norm B at most.

    Examples
    --------
    >>> LogisticLoss().lipschitz(2.0), LogisticLoss().smoothness(2.0)
    (2.0, 1.0)
    """

    kind: ClassVar[str] = "logistic"
    of_signs: ClassVar[bool] = True
    steepest = 1.0
    most_curved = 0.25

    def value(self, predictions: npt.ArrayLike, targets: npt.ArrayLike) -> Floats:
        return np.logaddexp(0.0, -_signs(targets) * np.asarray(predictions, dtype=np.float64))


@saved_as_parameter
class SmoothedHingeLoss(LinearLoss):
    """The hinge max(0, 1 - y s) with its corner rounded off.

    G = B and H = B**2 / width for records of norm B at most. With z = y s, and y = 1 for targets > 0 and y = -1 for
    others: 0 for z >= 1, (1 - z)**2 / (2 width) down to z = 1 - width, and 1 - z - width / 2 below that.

    Parameters
    ----------
    width : float
        > 0. The hinge itself is within width / 2 of it.
    """

    kind: ClassVar[str] = "hinge"
    of_signs: ClassVar[bool] = True
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
        return inside * inside / (2 * self.width) + np.maximum(short - self.width, 0)


@saved_as_parameter
class SquaredLoss(LinearLoss):
    """The squared loss (s - y)**2 / 2 of a prediction s, whose residuals beyond a public bound count as that bound.

    That is Huber's loss: the square up to the bound and a line beyond it. G = residual * B and H = B**2 for records of
    norm B at most.

    Parameters
    ----------
    residual : float, optional
        The bound of residuals, > 0. By default the largest that the constraint, the norm of features and the range of
        targets allow: then it changes no gradient in the constraint, and G is as large as the worst row could make it.

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
        return inside * (residual - inside / 2)


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
    ValueError
        By fits, when the callback returns a wrong shape for public rows of zeros.

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

    def lipschitz(self, max_norm: float) -> float:
        """G as given, whatever the norm of features."""
        return self._lipschitz

    def smoothness(self, max_norm: float) -> float:
        """H as given, whatever the norm of features."""
        return self._smoothness

    numbers_of_a_call: ClassVar[int] = 2**11

    def _by_user(self, data: UserTable, dimension: int) -> list[npt.NDArray[np.intp]]:
        """The places of each user's rows, after a call of the callback with rows of zeros."""
        # What it raises is not caught: they are public.
        zeros = np.zeros(dimension), np.zeros((2, dimension)), np.zeros(2)
        shape = np.shape(np.asarray(self.gradient(*zeros)))
        if shape not in ((dimension,), (2, dimension)):
            raise ValueError(
                f"gradient must return an array of shape (rows, {dimension}) or ({dimension},); for theta of shape "
                f"({dimension},), X of shape (2, {dimension}) and y of shape (2,) it returned the shape "
                f"{short_repr(shape)}"
            )
        ends = np.cumsum(np.bincount(data.users, minlength=data.n_users))
        return np.split(np.argsort(data.users, kind="stable"), ends[:-1])

    def _mean_gradients(self, rows: GradientRows, theta: Floats) -> UserVectors:
        """The means of what the callback says of each user's rows."""
        users = range(rows.n_users) if rows.selected is None else rows.selected.tolist()
        means = np.zeros((rows.n_users, rows.dimension))
        present = np.zeros(rows.n_users, dtype=np.bool_)
        for place, user in enumerate(users):
            if len(own := rows.by_user[user]):
                means[place] = _mean_gradient(self, theta, rows.valid(own), rows.y[own])
                present[place] = True
        return GivenVectors(means, present)

    def _arguments(self) -> dict[str, Any]:
        return {"gradient": self.gradient, "lipschitz": self._lipschitz, "smoothness": self._smoothness}


def _signs(targets: npt.ArrayLike) -> Floats:
    return np.where(np.asarray(targets, dtype=np.float64) > 0, 1.0, -1.0)


class GradientVectors(UserVectors):
    """The mean gradient of each user's rows for a loss of linear predictions."""

    # A row is clipped to the L2 ball of radius `max_norm`, from 2^-400 to 2^400, as by `MeanVectors`; the constant 1 of
    # an intercept, the last entry of theta, is not. A row's gradient is phi'(<theta, x>, y) x, where a y of NaN counts
    # as 0, summed in the order of the user's rows. A row at a time is computed, and nothing is stored.

    def __init__(self, rows: GradientRows, loss: LinearLoss, theta: Floats) -> None:
        self.n_users = rows.n_listed
        self.dimension = len(theta)
        self._vectors = _core.UserVectors.gradients(
            rows.X,
            rows.y,
            rows.by_user,
            loss=loss.kind,
            parameter=loss.parameter,
            theta=theta.tolist(),
            bound=rows.max_norm,
            intercept=rows.fit_intercept,
        )


class GradientRows:
    """Users' rows and the loss whose gradients are wanted: what steps of descents draw from."""

    # Rows that are longer in L2 than `max_norm`, the constant 1 of an intercept not included, are scaled to it; NaN
    # counts as 0.

    def __init__(self, data: UserTable, *, loss: Loss, max_norm: float, fit_intercept: bool) -> None:
        self.n_users = self.n_listed = data.n_users
        self.dimension = data.n_columns + bool(fit_intercept)
        self.loss = loss
        self.max_norm = float(max_norm)
        self.fit_intercept = bool(fit_intercept)
        self.X = readable(data.X)
        self.y = np.ascontiguousarray(data.labels, dtype=np.float64)
        self.by_user = loss._by_user(data, self.dimension)
        self.selected: npt.NDArray[np.intp] | None = None

    def of(self, users: npt.ArrayLike) -> GradientRows:
        """The same of some users only, by their numbers from 0: nothing is copied."""
        selected = np.asarray(users, dtype=np.intp)
        part = object.__new__(type(self))
        vars(part).update(vars(self))
        part.selected = selected if self.selected is None else self.selected[selected]
        part.n_users = len(selected)
        return part

    def at(self, theta: Floats) -> UserVectors:
        """The mean of the gradients of each user's rows, at theta."""
        return self.loss._mean_gradients(self, theta)

    def valid(self, rows: npt.NDArray[np.intp]) -> Floats:
        """One user's rows, clipped, with the constant."""
        with np.errstate(all="ignore"):
            numbers = self.X[rows].astype(np.float64)
            clamped = np.clip(np.where(np.isnan(numbers), 0.0, numbers), -LARGEST, LARGEST)
            norms = np.sqrt(np.sum(clamped * clamped, axis=1))
            clamped *= np.minimum(1.0, self.max_norm / np.maximum(norms, self.max_norm))[:, None]
        return np.column_stack([clamped, np.ones(len(rows))]) if self.fit_intercept else clamped


def _mean_gradient(loss: CustomLoss, theta: Floats, X: Floats, y: Floats) -> Floats:
    """What the callback says of one user: the zero vector where it fails, which must not show."""
    zero = np.zeros(len(theta))
    with np.errstate(all="ignore"):
        try:
            gradient = np.array(loss.gradient(aligned(theta), aligned(X), aligned(y)), dtype=np.float64, order="C")
            if gradient.shape == X.shape:
                # Row after row, whatever the memory layout of what was returned.
                gradient = np.sum(aligned(gradient), axis=0) / len(X)
            return gradient if gradient.shape == theta.shape and np.all(np.isfinite(gradient)) else zero
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a user's rows lead to, `sys.exit` included
            return zero
