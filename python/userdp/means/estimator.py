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
from userdp.means.plan import LARGEST, Floats, MeanMethod, MeanProblem
from userdp.means.rotation import rotated_back, signs_of
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.public_randomness import PublicSeed
from userdp.users.table import UserTable
from userdp.users.vectors import MeanVectors


@estimator
class WinsorizedMean(UserLevelEstimator):
    """The mean of users' vectors, private for users, with an error that falls as each of them gives more rows.

    Attributes
    ----------
    mean_ : ndarray with shape (columns,)
        Released: an estimate of the mean of the users' means, in which every user has the same weight.
    predicted_error_ : float
        Root mean square of its L2 distance from that mean by noise alone. Public: it does not depend on the data.
    method_ : str
        The method that was used; public.
    privacy_ : PrivacyRecord

    References
    ----------
    [LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2].

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(1000), 16)
    >>> wages = 0.3 + rng.uniform(-1, 1, size=(16000, 1)) * 0.7
    >>> learner = WinsorizedMean(epsilon=1, bound=1, m=16).fit(wages, groups=people)
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
    bound: float = fields.positive_number(
        1.0,
        doc="""
        Every row is clipped to the distance `bound` from the `center`: in L2 (``norm="l2"``), or in each column
        (``norm="max"``). Public, from 2**-300 to 2**300.
        """,
    )
    radius: float | None = fields.positive_number(
        None,
        doc="""
        The expected L2 distance of a user's mean from the mean of all users, public. By default bound / sqrt(m), which
        is right when users differ only because they have few rows. It is a promise about utility only: users who are
        farther away are clipped.
        """,
    )
    method: str = fields.choice(
        "auto",
        METHODS,
        doc='"auto" takes the method with the least predicted error, from public numbers only. See Notes.',
    )
    private_radius: bool = fields.flag(
        False,
        doc="Whether to spend a small part of the budget on finding the radius; for users who differ by more than"
        " chance.",
    )
    center: float | npt.ArrayLike = fields.parameter(
        0.0, kind="float or array-like with shape (columns,)", doc="Public."
    )
    norm: str = fields.choice("l2", ("l2", "max"), doc="What `bound` and `center` are about; public.")
    beta: float = fields.open_unit(
        0.01, doc="How likely the range may be missed, over all columns, by methods that look for it."
    )
    steps: int | None = fields.parameter(
        None,
        check=fields.power_of_two,
        kind="int, optional",
        doc="""
        Steps of the public grid that a radius has, a power of two up to 2**30; the default is fine enough not to
        matter.
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
        bound = float(self.bound)
        spread = bound / math.sqrt(self.m or 1) if self.radius is None else float(self.radius)
        problem = MeanProblem(
            n_users=n_users,
            dimension=n_features,
            bound=bound,
            norm="l2" if self.norm == "l2" else "max",
            spread=spread,
            epsilon=positive_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            beta=float(self.beta),
            steps=None if self.steps is None else int(self.steps),
            private_radius=bool(self.private_radius),
        )
        return planned_method(METHODS[self.method], problem)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        d, bound, norm = n_features, float(self.bound), self.norm
        method, center = self._method(n_users, d), self._center(d)
        given = None if self.public_seed is None else PublicSeed(self.public_seed)
        seed = PublicSeed.random() if given is None and method.rotated() else given
        signs = signs_of(seed, d) if seed is not None and method.rotated() else None

        def program(table: UserTable) -> AdaptiveMechanism:
            return method.program(MeanVectors(table, bound=bound, norm=norm, center=center, signs=signs))

        def outcomes() -> Sequence[Hashable]:
            if given is None and method.rotated():
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
        """The nearest point to which rows are clipped: free, as all is known that it takes."""
        bound = float(self.bound)
        if self.norm == "max":
            return np.clip(mean, -bound, bound)
        return mean * (bound / max(bound, float(np.linalg.norm(mean))))
