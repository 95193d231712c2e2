"""The mean of people's vectors, with an error that falls as each person gives more."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from userdp.distributions.base import listed
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.privacy import Budget, Spending, exact_epsilon
from userdp.exact.numbers import Delta, Epsilon, open_unit_interval, parse_delta, parse_positive, positive, shown
from userdp.means.methods import METHODS
from userdp.means.plan import LARGEST, Floats, MeanMethod, MeanProblem
from userdp.means.rotation import rotated_back, signs_of
from userdp.mechanisms.composed import Program
from userdp.public_randomness import PublicSeed
from userdp.users.contributions import UserData
from userdp.users.vectors import MeanVectors

Self = TypeVar("Self", bound="WinsorizedMean")


class WinsorizedMean(UserLevelEstimator):
    """The mean of people's vectors, private for users, with an error that falls as each of them gives more rows.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget.
    delta : float, int, Fraction or decimal string
        In [0, 1); 0 for pure differential privacy. Several columns need a positive one for errors that are small.
    bound : float
        Every row is clipped to the distance `bound` from the `center`: in L2 (``norm="l2"``), or in each column
        (``norm="max"``). Public, from 2**-300 to 2**300.
    m : int
        How many rows a user is expected to have; public. All rows of a user count, whatever their number is.
    radius : float, optional
        The expected L2 distance of a user's mean from the mean of all users, public. By default bound / sqrt(m), which
        is right when users differ only because they have few rows. It is a promise about utility only: users who are
        farther away are clipped.
    method : {"auto", "iterated", "gaussian", "practical", "paper", "laplace"}
        "auto" takes the method with the least predicted error, from public numbers only. See Notes.
    private_radius : bool
        Whether to spend a small part of the budget on finding the radius; for users who differ by more than chance.
    center : float or array-like with shape (columns,)
        Public.
    norm : {"l2", "max"}
    beta : float in (0, 1)
        How likely the range may be missed, over all columns, by methods that look for it.
    steps : int, optional
        Steps of the public grid that a radius has, a power of two up to 2**30; the default is fine enough not to
        matter.
    public_seed : PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional
        For the public rotation of methods that rotate. None draws a fresh one in each fit. It is not secret;
        `public_seed_` is the one that was used.
    on_invalid : {"clamp", "raise"}
        NaN counts as the centre and what is out of range as the nearest point in it; "raise" is not private.
    require_groups : bool
        False takes every row for a user when `fit` gets no groups.
    enrolled : sequence, optional
        The public list of all users. Those without rows count as if they had the value that is expected.
    random_state : None or int
        None draws from the operating system; an int is for tests and voids privacy.

    Attributes
    ----------
    mean_ : ndarray with shape (columns,)
        Released: an estimate of the mean of the users' means, in which every user has the same weight.
    predicted_error_ : float
        Root mean square of its L2 distance from that mean by noise alone. Public: it does not depend on the data.
    method_ : str
        The method that was used; public.
    privacy_ : PrivacyRecord

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

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta = 0,
        bound: float = 1.0,
        m: int | None = None,
        radius: float | None = None,
        method: str = "auto",
        private_radius: bool = False,
        center: float | npt.ArrayLike = 0.0,
        norm: str = "l2",
        beta: float = 0.01,
        steps: int | None = None,
        public_seed: PublicSeed | bytes | str | None = None,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bound = bound
        self.m = m
        self.radius = radius
        self.method = method
        self.private_radius = private_radius
        self.center = center
        self.norm = norm
        self.beta = beta
        self.steps = steps
        self.public_seed = public_seed
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def fit(self: Self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Release the mean of the users' means.

        Parameters
        ----------
        X : array-like with shape (rows, columns)
        y : None
            Not used.
        groups : array-like with shape (rows,)
            The user id of every row.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For bad parameters and shapes, naming the argument; never for what is in a row, unless on_invalid="raise".
        BudgetError
            For work that is too large, with an estimate.

        Warns
        -----
        UserWarning
            When the number of users is too small for the method, with the number that it needs.
        """
        return self._fit(X, y, groups)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if parse_delta(self.delta) == 1:
            raise ValueError(f"delta must be below 1; got {shown(self.delta)}")
        parse_positive(self.bound, "bound")
        if self.radius is not None:
            parse_positive(self.radius, "radius")
        if self.method not in tuple(METHODS):
            raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))}; got {shown(self.method)}")
        if not isinstance(self.private_radius, (bool, np.bool_)):
            raise TypeError(f"private_radius must be a bool; got {shown(self.private_radius)}")
        if self.norm not in ("l2", "max"):
            raise ValueError(f"norm must be 'l2' or 'max'; got {shown(self.norm)}")
        open_unit_interval(self.beta, "beta")
        if self.steps is not None and (steps := positive(self.steps, "steps")) & (steps - 1):
            raise ValueError(f"steps must be a power of two; got {shown(self.steps)}")

    def _budget(self) -> Budget:
        raise NotImplementedError  # `_spending` says it, which knows the shape of the data

    def _spending(self, n_users: int, n_features: int) -> Spending:
        return self._plan(n_users, n_features).spending()

    def _plan(self, n_users: int, n_features: int) -> MeanMethod:
        bound = float(self.bound)
        spread = bound / math.sqrt(self.m or 1) if self.radius is None else float(self.radius)
        problem = MeanProblem(
            n_users=n_users,
            dimension=n_features,
            bound=bound,
            norm="l2" if self.norm == "l2" else "max",
            spread=spread,
            epsilon=exact_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            beta=float(self.beta),
            steps=None if self.steps is None else int(self.steps),
            private_radius=bool(self.private_radius),
        )
        return _planned(METHODS[self.method], problem)

    def _program(self, data: UserData) -> Program:
        d = data.n_columns
        plan = self._plan(data.n_users, d)
        signs = None
        self.public_seed_ = None if self.public_seed is None else PublicSeed(self.public_seed)
        if plan.rotated():
            self.public_seed_ = self.public_seed_ or PublicSeed.random()
            signs = signs_of(self.public_seed_, d)
        return plan.program(
            MeanVectors(data, bound=float(self.bound), norm=self.norm, center=self._center(d), signs=signs)
        )

    def _center(self, d: int) -> Floats:
        try:
            center = np.broadcast_to(np.asarray(self.center, dtype=np.float64), (d,))
        except (TypeError, ValueError):
            raise ValueError(f"center must be a number or {d} numbers; got {shown(self.center)}") from None
        if not np.all(np.abs(center) <= LARGEST):
            raise ValueError(f"center must be finite, and at most 2**300 from 0; got {shown(self.center)}")
        return center

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        plan = self._plan(n_users, n_features)
        if plan.rotated() and self.public_seed is None:
            raise ValueError("public_seed must be given for an exact law: without one, each fit rotates differently")
        return listed(plan.outcomes(), plan.n_outcomes())

    def _accept(self, outcome: Any) -> None:
        d = self.n_features_in_
        plan = self._plan(self.n_users_, d)
        # Not in `_program`, which runs where nothing that is private can warn.
        for warning in plan.warnings():
            warnings.warn(warning, UserWarning, stacklevel=4)
        mean = plan.mean(outcome)
        if plan.rotated():
            assert self.public_seed_ is not None
            mean = rotated_back(mean, signs_of(self.public_seed_, d), d)
        self.mean_ = self._center(d) + self._within(mean)
        self.predicted_error_ = plan.predicted_error()
        self.method_ = plan.name

    def _within(self, mean: Floats) -> Floats:
        """The nearest point to which rows are clipped: free, as all is known that it takes."""
        bound = float(self.bound)
        if self.norm == "max":
            return np.clip(mean, -bound, bound)
        return mean * (bound / max(bound, float(np.linalg.norm(mean))))


@lru_cache(maxsize=64)
def _planned(plan: Callable[[MeanProblem], MeanMethod], problem: MeanProblem) -> MeanMethod:
    return plan(problem)
