"""People's mean gradients at a public theta: one vector of each user, from that user's rows and public numbers only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from userdp._vectors import UserVectors
from userdp.learners._contributions import UserData
from userdp.optimization._losses import Loss

__all__ = ["GradientRows", "check_callback"]

Floats = npt.NDArray[np.float64]


class GradientRows:
    """People's rows, user after user, and the loss whose gradients are wanted: what steps of descents draw from.

    Parameters
    ----------
    data : UserData
    loss : Loss
    bound : float
        Every row of X is scaled to this L2 norm if it is longer; before that NaN counts as 0 and every entry as the
        nearest in [-bound, bound]. The constant of an intercept is not included.
    fit_intercept : bool
        Whether a constant 1 is appended to every row.
    """

    def __init__(self, data: UserData, *, loss: Loss, bound: float, fit_intercept: bool) -> None:
        self.n_users = data.n_users
        self.dimension = data.n_columns + fit_intercept
        self.loss = loss
        self.bound = float(bound)
        self.fit_intercept = bool(fit_intercept)
        self._X = np.ascontiguousarray(data.X, dtype=np.float64)
        self._y = np.ascontiguousarray(data.labels, dtype=np.float64)
        counts = np.bincount(data.users, minlength=data.n_users)
        self._ends = np.concatenate(([0], np.cumsum(counts, dtype=np.uint64))).astype(np.uint64)
        in_order = bool(np.all(data.users[:-1] <= data.users[1:]))
        self._order = None if in_order else np.argsort(data.users, kind="stable").astype(np.uint64)
        self._users: npt.NDArray[np.uint32] | None = None
        """Which users count, in which order; None is all."""

    def of(self, users: npt.ArrayLike) -> GradientRows:
        """The same of some users only, by their numbers from 0: no rows are copied."""
        chosen = np.ascontiguousarray(users, dtype=np.uint32)
        part = object.__new__(type(self))
        vars(part).update(vars(self))
        part._users = chosen if self._users is None else self._users[chosen]
        part.n_users = len(chosen)
        return part

    def at(self, theta: Floats) -> UserVectors:
        """The mean of the gradients of each user's rows, at theta."""
        raise NotImplementedError
