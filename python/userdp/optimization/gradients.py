"""Users' mean gradients at a public theta: one vector of each user, from that user's rows and public numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import short_repr
from userdp.optimization.losses import CustomLoss, LinearLoss, Loss
from userdp.users.table import UserTable
from userdp.users.vectors import GivenVectors, UserVectors, aligned, readable, rows_of_users

Floats = npt.NDArray[np.float64]

LARGEST = 2.0**400
"""What infinities count as, as in the core."""


class GradientVectors(UserVectors):
    """The mean gradient of each user's rows for a loss of linear predictions.

    A row is clipped to the L2 ball of radius `bound` as by `MeanVectors`. Its gradient is phi'(<theta, x>, y) x, summed
    in the order of the user's rows. Nothing but a row at a time is computed, and nothing is stored.

    Parameters
    ----------
    X : matrix of numbers
    y : array of float64 with shape (rows,)
        NaN counts as 0.
    rows : RowsOfUsers
    n_users : int
    loss : LinearLoss
    theta : array of float64 with shape (dimension,)
    bound : float
        From 2^-400 to 2^400.
    fit_intercept : bool
        Whether the last entry of theta belongs to a constant 1, which is not clipped.
    """

    def __init__(
        self,
        X: npt.NDArray[Any],
        y: Floats,
        rows: _core.RowsOfUsers,
        n_users: int,
        *,
        loss: LinearLoss,
        theta: Floats,
        bound: float,
        fit_intercept: bool,
    ) -> None:
        self.n_users = n_users
        self.dimension = len(theta)
        self._vectors = _core.UserVectors.gradients(
            X,
            y,
            rows,
            loss=loss.kind,
            parameter=loss.parameter,
            theta=theta.tolist(),
            bound=bound,
            intercept=fit_intercept,
        )


class GradientRows:
    """Users' rows and the loss whose gradients are wanted: what steps of descents draw from.

    Parameters
    ----------
    data : UserTable
    loss : Loss
    bound : float
        Rows that are longer in L2 are scaled to this norm; NaN counts as 0. The constant of an intercept is not
        included.
    fit_intercept : bool
        Whether a constant 1 is appended to every row.

    Raises
    ------
    ValueError
        When a user's own gradient returns a wrong shape for public rows of zeros.
    """

    def __init__(self, data: UserTable, *, loss: Loss, bound: float, fit_intercept: bool) -> None:
        self.n_users = self._n_listed = data.n_users
        self.dimension = data.n_columns + bool(fit_intercept)
        self.loss = loss
        self.bound = float(bound)
        self.fit_intercept = bool(fit_intercept)
        self._X = readable(data.X)
        self._y = np.ascontiguousarray(data.labels, dtype=np.float64)
        self._rows = rows_of_users(data.users, data.n_users)
        self._chosen: npt.NDArray[np.intp] | None = None
        if isinstance(loss, CustomLoss):
            check_callback(loss, self.dimension)
            order = np.argsort(data.users, kind="stable")
            ends = np.cumsum(np.bincount(data.users, minlength=data.n_users))
            self._places = np.split(order, ends[:-1])

    def of(self, users: npt.ArrayLike) -> GradientRows:
        """The same of some users only, by their numbers from 0: nothing is copied."""
        chosen = np.asarray(users, dtype=np.intp)
        part = object.__new__(type(self))
        vars(part).update(vars(self))
        part._chosen = chosen if self._chosen is None else self._chosen[chosen]
        part.n_users = len(chosen)
        return part

    def at(self, theta: Floats) -> UserVectors:
        """The mean of the gradients of each user's rows, at theta."""
        if isinstance(self.loss, LinearLoss):
            vectors = GradientVectors(
                self._X,
                self._y,
                self._rows,
                self._n_listed,
                loss=self.loss,
                theta=theta,
                bound=self.bound,
                fit_intercept=self.fit_intercept,
            )
            return vectors if self._chosen is None else vectors.subset(self._chosen)
        assert isinstance(self.loss, CustomLoss)
        users = range(self.n_users) if self._chosen is None else self._chosen.tolist()
        means = np.zeros((self.n_users, self.dimension))
        present = np.zeros(self.n_users, dtype=np.bool_)
        for place, user in enumerate(users):
            if len(rows := self._places[user]):
                means[place] = _mean_gradient(self.loss, theta, self._valid(rows), self._y[rows])
                present[place] = True
        return GivenVectors(means, present)

    def _valid(self, rows: npt.NDArray[np.intp]) -> Floats:
        """One user's rows, clipped, with the constant."""
        with np.errstate(all="ignore"):
            numbers = self._X[rows].astype(np.float64)
            clamped = np.clip(np.where(np.isnan(numbers), 0.0, numbers), -LARGEST, LARGEST)
            norms = np.sqrt(np.sum(clamped * clamped, axis=1))
            clamped *= np.minimum(1.0, self.bound / np.maximum(norms, self.bound))[:, None]
        return np.column_stack([clamped, np.ones(len(rows))]) if self.fit_intercept else clamped


def check_callback(loss: CustomLoss, dimension: int) -> None:
    """Refuse a callback that returns a wrong shape for public rows.

    Raises
    ------
    ValueError
        With the shape. What the callback itself raises is not caught: these rows are public.
    """
    zeros = np.zeros(dimension), np.zeros((2, dimension)), np.zeros(2)
    found = np.shape(np.asarray(loss.gradient(*zeros)))
    if found not in ((dimension,), (2, dimension)):
        raise ValueError(
            f"gradient must return an array of shape (rows, {dimension}) or ({dimension},); for theta of shape "
            f"({dimension},), X of shape (2, {dimension}) and y of shape (2,) it returned the shape {short_repr(found)}"
        )


def _mean_gradient(loss: CustomLoss, theta: Floats, X: Floats, y: Floats) -> Floats:
    """What the callback says of one user: the zero vector where it fails, which must not show."""
    zero = np.zeros(len(theta))
    with np.errstate(all="ignore"):
        try:
            found = np.array(loss.gradient(aligned(theta), aligned(X), aligned(y)), dtype=np.float64, order="C")
            if found.shape == X.shape:
                # Row after row, whatever the memory layout of what was returned.
                found = np.sum(aligned(found), axis=0) / len(X)
            return found if found.shape == theta.shape and np.all(np.isfinite(found)) else zero
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever a user's rows lead to, `sys.exit` included
            return zero


Kept = TypeVar("Kept")

MOST_NUMBERS = 2**26
"""So many numbers are kept for one candidate; what comes later is computed each time."""


class RememberedVectors(UserVectors):
    """The same sums as of other vectors, each computed once for the same public arguments."""

    def __init__(self, vectors: UserVectors) -> None:
        self.n_users = vectors.n_users
        self.dimension = vectors.dimension
        self._vectors = vectors._vectors
        self._of = vectors
        self._known: dict[Any, Any] = {}
        self._room = MOST_NUMBERS

    def clipped_sum(self, center: npt.ArrayLike, radius: float, grid: float) -> npt.NDArray[np.int64]:
        key = ("clipped", self._point(center).tobytes(), radius, grid)
        return self._once(key, lambda: self._of.clipped_sum(center, radius, grid))

    def winsorized_sum(self, low: npt.ArrayLike, steps: int, grid: float) -> npt.NDArray[np.int64]:
        key = ("winsorized", self._point(low).tobytes(), steps, grid)
        return self._once(key, lambda: self._of.winsorized_sum(low, steps, grid))

    def bin_counts(self, bins: int, bound: float) -> npt.NDArray[np.uint32]:
        return self._once(("bins", bins, bound), lambda: self._of.bin_counts(bins, bound))

    def occupied_bins(self, bins: int, bound: float) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        yield from self._once(("occupied", bins, bound), lambda: list(self._of.occupied_bins(bins, bound)))

    def counts_within(self, center: npt.ArrayLike, radii: npt.ArrayLike) -> npt.NDArray[np.int64]:
        key = ("within", self._point(center).tobytes(), np.asarray(radii, dtype=np.float64).tobytes())
        return self._once(key, lambda: self._of.counts_within(center, radii))

    def _once(self, key: Any, compute: Callable[[], Kept]) -> Kept:
        if key in self._known:
            known: Kept = self._known[key]
            return known
        value = compute()
        parts: list[Any] = value if isinstance(value, list) else [value]
        size = sum(int(np.size(part)) for part in parts)
        if size <= self._room:
            self._room -= size
            self._known[key] = value
        return value
