"""The mean of users' vectors, with an error that falls as each user gives more."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.estimators import fields
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ReleasePlan, listed
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import Delta, parse_delta, short_repr
from userdp.means.methods import METHODS, planned_method
from userdp.means.problem import LARGEST, Floats, MeanMethod, MeanProblem
from userdp.means.winsorized import rotated_back, signs_of
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.public_randomness import PublicSeed
from userdp.users.table import UserTable
from userdp.users.vectors import MeanVectors


@estimator
class WinsorizedMean(UserLevelEstimator):
    """The mean of users' vectors, private for users, with an error that falls as each of them gives more records.

    Attributes
    ----------
    mean_ : ndarray with shape (columns,)
        Released: an estimate of the mean of the users' means, in which every user has the same weight.
    predicted_error_ : float
        Root mean square of the L2 distance of `mean_` from that mean, by noise alone. Public.
    method_ : str
        The method that was used; public.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbors differ in all the records of one user. Every user adds one vector
    of integers to a sum, whose length is bounded in integers; sensitivity, budget split and proof of each method are in
    docs/proofs/iterated_mean.md and docs/proofs/winsorized_mean.md.

    *Methods.* "iterated" clips to smaller and smaller balls around the last released center. "practical" finds a range
    first and then adds noise for that range; "paper" does so with the constants that LSAKKMS21 proves. "gaussian" and
    "laplace" are the baselines with noise for the whole range.

    References
    ----------
    [LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2].

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(1000), 16)
    >>> wages = 0.3 + rng.uniform(-1, 1, size=(16000, 1)) * 0.7
    >>> learner = WinsorizedMean(epsilon=1, max_norm=1, m=16).fit(wages, groups=users)
    >>> bool(abs(learner.mean_[0] - 0.3) < 0.05)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("mean_",)
    caps_rows: ClassVar[bool] = False

    delta: Delta = fields.delta(
        0,
        doc="""
        In [0, 1); 0 for pure differential privacy. Several columns need a positive one for errors that are small.
        """,
    )
    max_norm: float = fields.positive_number(
        1.0,
        doc="""
        Every record is clipped to this distance from the `center`: in L2 (``norm="l2"``), or in each column
        (``norm="max"``). Public, from 2**-300 to 2**300.
        """,
    )
    concentration: float | None = fields.positive_number(
        None,
        doc="""
        The expected L2 distance of a user's mean from the mean of all users, public. By default max_norm / sqrt(m),
        which is right when users differ only because they have few records. It is a promise about utility only: users
        who are farther away are clipped.
        """,
    )
    method: str = fields.choice(
        "auto",
        METHODS,
        doc='"auto" takes the method with the least predicted error, from public numbers only. See Notes.',
    )
    private_concentration: bool = fields.flag(
        False,
        doc="Whether to spend a small part of the budget on finding the concentration; for users who differ by more"
        " than chance.",
    )
    center: float | npt.ArrayLike = fields.parameter(
        0.0, kind="float or array-like with shape (columns,)", doc="Public."
    )
    norm: str = fields.choice("l2", ("l2", "max"), doc="What `max_norm` bounds: the Euclidean norm, or every entry.")
    beta: float = fields.open_unit(
        0.01, doc="How likely the range may be missed, over all columns, by methods that look for it."
    )
    grid_resolution: int | None = fields.parameter(
        None,
        check=fields.power_of_two,
        kind="int, optional",
        doc="""
        Steps of the public grid in a clipping radius, or in an interval: a power of two up to 2**30; the default is
        fine enough not to matter.
        """,
    )
    public_seed: PublicSeed | bytes | str | None = fields.parameter(
        None,
        kind="PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional",
        doc="""
        For the public rotation of methods that rotate. None draws a fresh one in each fit. It is not secret;
        `public_seed_` is the one that was used.
        """,
    )

    def _method(self, n_users: int, n_features: int) -> MeanMethod:
        max_norm = float(self.max_norm)
        problem = MeanProblem(
            n_users=n_users,
            dimension=n_features,
            max_norm=max_norm,
            norm="l2" if self.norm == "l2" else "max",
            concentration=float(self.concentration or max_norm / math.sqrt(self.m or 1)),
            epsilon=positive_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            beta=float(self.beta),
            grid_resolution=None if self.grid_resolution is None else int(self.grid_resolution),
            private_concentration=bool(self.private_concentration),
        )
        return planned_method(METHODS[self.method], problem)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        d, max_norm, norm = n_features, float(self.max_norm), self.norm
        method, center = self._method(n_users, d), self._center(d)
        fixed = None if self.public_seed is None else PublicSeed(self.public_seed)
        seed = PublicSeed.random() if fixed is None and method.rotated() else fixed
        signs = signs_of(seed, d) if seed is not None and method.rotated() else None

        def program(table: UserTable) -> AdaptiveMechanism:
            return method.program(MeanVectors(table, bound=max_norm, norm=norm, center=center, signs=signs))

        def outcomes() -> Sequence[Hashable]:
            if fixed is None and method.rotated():
                raise ValueError(
                    "public_seed must be given for an exact distribution: without one, each fit rotates differently"
                )
            return listed(method.outcomes, method.n_outcomes(), "audit fewer users or a coarser grid")

        def fitted(drawn: Any) -> dict[str, Any]:
            mean = method.mean(drawn)
            if signs is not None:
                mean = rotated_back(mean, signs, d)
            return {
                "mean_": center + self._within(mean),
                "predicted_error_": method.predicted_error(),
                "method_": method.name,
                "public_seed_": seed,
            }

        return ReleasePlan(method.budget(), program, outcomes, fitted, warnings=tuple(method.warnings()))

    def _center(self, d: int) -> Floats:
        try:
            center = np.broadcast_to(np.asarray(self.center, dtype=np.float64), (d,))
        except (TypeError, ValueError):
            raise ValueError(f"center must be a number or {d} numbers; got {short_repr(self.center)}") from None
        if not np.all(np.abs(center) <= LARGEST):
            raise ValueError(f"center must be finite, and at most 2**300 from 0; got {short_repr(self.center)}")
        return center

    def _within(self, mean: Floats) -> Floats:
        """The nearest point to which records are clipped: free, as it is a function of public numbers and the mean."""
        most = float(self.max_norm)
        if self.norm == "max":
            return np.clip(mean, -most, most)
        return mean * (most / max(most, float(np.linalg.norm(mean))))
