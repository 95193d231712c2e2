"""The mean of users' vectors, and how wrong it may be."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, get_args

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.accounting.budget_hook import counted_in_rho
from userdp.display.frames import Frame, frame_of
from userdp.estimators import fields
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.column_bounds import (
    KIND,
    LARGEST,
    Bounds,
    check_column_bounds,
    places_of_columns,
    read_column_bounds,
)
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ReleasePlan, listed
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import Delta, open_unit_interval, parse_delta, short_repr
from userdp.means.accuracy import Accuracy
from userdp.means.methods import METHODS, NEED_A_PROMISE, noise_warnings, planned_method
from userdp.means.problem import Floats, MeanMethod, MeanProblem, Objective
from userdp.means.winsorized import rotated_back, signs_of
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.public_randomness import PublicSeed
from userdp.users.table import UserTable
from userdp.users.vectors import MeanVectors

COVERS = ("users", "clipped")


@estimator
class WinsorizedMean(UserLevelEstimator):
    """The mean of users' vectors, private for users, with an uncertainty that is true.

    Attributes
    ----------
    mean_ : ndarray with shape (columns,)
        Released: an estimate of the mean of the users' means, in which every user has the same weight; in the units of
        the data.
    noise_ : ndarray with shape (columns,)
        Root mean square of the noise in each column, from its exact distribution; in the units of the data.
    worst_error_ : ndarray with shape (columns,)
        Root mean square of the noise and of the most that clipping can have moved each column, under what was promised:
        equal to `noise_` where nobody is clipped, infinite where nothing bounds it. For "tested", by what its test saw,
        and in the worst direction: far more than the error where users are alike. Rounding to the grid is not in it;
        `interval` has it.
    clipped_ : bool
        Whether users may have been clipped inside the public bounds.
    clipped_to_ : tuple of ndarray and ndarray, or None
        The center of the ball to which users' means were clipped, and its radius in the direction of each column.
    promises_ : tuple of str
        What the caller vouched for, on which `worst_error_` rests.
    method_ : str
        The method that was used; public.
    accuracy_, unmoved_, bounds_, scales_ : Accuracy, ndarray, ndarray, ndarray
        What `interval` is made of: the noise, the mean before it was taken into the bounds, these, and the units of
        columns. They stay what they were when parameters change.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP, where neighbors differ in all the records of one user. Every user adds one vector
    of integers to a sum, whose length is bounded in integers; sensitivity, budget split and proof of each method are in
    docs/proofs/iterated_mean.md and docs/proofs/winsorized_mean.md.

    *Defaults promise nothing.* With delta = 0 or fewer than 17 columns nobody is clipped inside the bounds: the mean
    has noise for the whole range, and no bias. That is the best that can be had in one column without a promise:
    whoever adds less noise where users agree is further off where a few of them do not (docs/means.md). From 17 columns
    on users may be clipped, only after a released test says that it moves the mean by little; `clipped_` says whether
    it was done, `worst_error_` and `interval` include what it can have moved, and method="gaussian" never clips.

    *Many columns.* That is "tested", with a delta and users enough: it finds out, with a part of the budget, where
    users are. m and `user_std` are hints for it and no promises, and may be missing: with a wrong one the error is at
    most about a third larger than that of noise for the whole range (docs/mean_error.md). In few columns its tests may
    refuse users who are all near, by noise alone: with probability .136, .101, .063, .029, .008 in 1, 2, 4, 8, 16.

    *Methods.* "gaussian" and "laplace" have noise for the whole range; "auto" takes the lesser. "iterated" clips to
    smaller and smaller balls around the last released center. Under a promise "auto" takes the least error to expect of
    these and "tested", in which "iterated" is never worse than noise for the whole range, as far as the promise is
    true. "practical" finds a range first and then adds noise for that range; "paper" does so with the constants that
    LSAKKMS21 proves.

    *What counts.* A record is clamped to the bounds; what is no number counts as the middle of them. So do users of
    `enrolled` without rows.

    References
    ----------
    [LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2].

    Examples
    --------
    The share of users with a property, and the 95 % interval around it:

    >>> import numpy as np
    >>> users = np.repeat(np.arange(1000), 8)
    >>> member = (users % 10 == 0).astype(float).reshape(-1, 1)
    >>> learner = WinsorizedMean(epsilon=1, bounds=(0, 1), m=8).fit(member, groups=users)
    >>> bool(abs(learner.mean_[0] - 0.1) < 0.02)
    True
    >>> low, high = learner.interval(0.95)[0]
    >>> bool(0 <= low < high < 0.15)
    True
    """

    released: ClassVar[tuple[str, ...]] = (
        "mean_",
        "unmoved_",
        *("noise_", "worst_error_", "clipped_", "clipped_to_", "accuracy_"),  # public but for "tested"
    )
    caps_rows: ClassVar[bool] = False
    without_rows: ClassVar[str] = "Users without rows count as the middle of the bounds."

    delta: Delta = fields.delta(
        default=0,
        doc="""
        In [0, 1); 0 for pure differential privacy. Several columns need a positive one for errors that are small.
        """,
    )
    bounds: Bounds | None = fields.parameter(
        default=None,
        check=check_column_bounds,
        kind=KIND,
        doc="""
        The public range (low, high) of every column, in its units; records outside count as the nearest end. A dict
        names the columns of a frame. Either this or `max_norm` is needed: neither is ever taken from the data.
        """,
    )
    max_norm: float | None = fields.positive_number(
        default=None,
        doc="""
        For vectors: every record is clipped to this L2 distance from the `center`. Public, from 2**-300 to 2**300.
        """,
    )
    center: float | npt.ArrayLike = fields.parameter(
        default=0.0, kind="float or array-like with shape (columns,)", doc="Of the ball of `max_norm`. Public."
    )
    user_std: float | npt.ArrayLike | Mapping[str, float] | None = fields.parameter(
        default=None,
        kind="float, array-like with shape (columns,), or dict from column names to floats, optional",
        doc="""
        A promise: the root mean square distance of users' means from their mean, in each column (with `max_norm`, in
        L2), is at most this. Users who are farther away may be clipped. Public.
        """,
    )
    homogeneous: bool = fields.flag(
        default=False,
        doc="""
        A promise: the rows of all users are independent draws from one distribution, so that users' means differ
        because they have m rows only: a `user_std` of half the range over sqrt(m).
        """,
    )
    method: str = fields.choice(METHODS, default="auto", doc="See Notes. Chosen from public numbers only.")
    objective: str = fields.choice(
        get_args(Objective),
        default="expected",
        doc="""
        Under a promise, for "auto" and "iterated": "expected" is the least error to expect where the promise is true,
        "worst" the least `worst_error_` that it allows for. Without one it says nothing.
        """,
    )
    beta: float = fields.open_unit(
        default=0.01, doc="How likely the range may be missed, over all columns, by methods that look for it."
    )
    grid_resolution: int | None = fields.parameter(
        default=None,
        check=fields.power_of_two,
        kind="int, optional",
        doc="""
        Steps of the public grid in a clipping radius, or in an interval: a power of two up to 2**30; the default is
        fine enough not to matter.
        """,
    )
    public_seed: PublicSeed | bytes | str | None = fields.parameter(
        default=None,
        kind="PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional",
        doc="""
        For the public rotation of methods that rotate. None draws a fresh one in each fit. It is not secret;
        `public_seed_` is the one that was used.
        """,
    )

    def _lacking(self, grouped: bool) -> dict[str, str]:
        facts = super()._lacking(grouped)
        if self.bounds is None and self.max_norm is None:
            facts["bounds or max_norm"] = (
                "the range of every column or the largest L2 distance of a record from the center"
            )
        if self.homogeneous and self.m is None:
            facts["m"] = "the number of rows of a user that homogeneous=True is about"
        return facts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.bounds is not None and self.max_norm is not None:
            raise TypeError(
                "only one of bounds, the public range (low, high) of every column, and max_norm, the largest L2 "
                "distance of a record from the center, is taken"
            )
        if self.user_std is not None and self.homogeneous:
            raise ValueError("user_std and homogeneous=True promise the same thing: give one of them")
        if self.method in NEED_A_PROMISE and self.user_std is None and not self.homogeneous:
            raise TypeError(
                f"method={self.method!r} clips users, and needs a promise of how near they are: give user_std, the "
                "root mean square distance of their means, or homogeneous=True if all rows are from one distribution"
            )

    def _units(self, d: int) -> tuple[Floats, Floats]:
        """What columns are measured from, and their units: half the range, or the largest norm."""
        if self.bounds is not None:
            ranges = read_column_bounds(self.bounds, "bounds", d, self._names())
            return ranges.middle, ranges.half
        assert self.max_norm is not None, "one of them is given"
        try:
            center = np.broadcast_to(np.asarray(self.center, dtype=np.float64), (d,))
        except (TypeError, ValueError):
            raise ValueError(f"center must be a number or {d} numbers; got {short_repr(self.center)}") from None
        if not np.all(np.abs(center) <= LARGEST):
            raise ValueError(f"center must be finite, and at most 2**300 from 0; got {short_repr(self.center)}")
        return center, np.full(d, float(self.max_norm))

    def _names(self) -> Sequence[str] | None:
        """The names of columns, where X is a frame."""
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    def _spread(self, units: Floats) -> Floats | None:
        """Of users' means, in each column (with `max_norm`, in L2): as promised, or as few rows alone would make it.

        None where neither is known.
        """
        if self.user_std is None:
            return None if self.m is None else units / math.sqrt(self.m)
        given: Any = self.user_std
        if self.bounds is not None and isinstance(given, Mapping):
            places = places_of_columns(given, "user_std", len(units), self._names())
            given = [list(given.values())[place] for place in places]
        try:
            spread = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            spread = np.array(math.nan)
        accepted = ((), (len(units),)) if self.bounds is not None else ((),)
        if spread.shape not in accepted or not np.all((spread > 0) & np.isfinite(spread)):
            raise ValueError(
                f"user_std must be a positive number, or one for each column; got {short_repr(self.user_std)}"
            )
        return np.broadcast_to(spread, units.shape)

    def _problem(self, n_users: int, units: Floats) -> tuple[MeanProblem, Floats]:
        """The public problem, and what its unit is worth in each column."""
        d, spread, concentration = len(units), self._spread(units), None
        # Columns of one unit keep it, so that no number is divided.
        alike = bool(np.all(units == units[0]))
        scale = np.ones(d) if alike else units
        if spread is not None:
            concentration = float(spread[0]) if self.bounds is None else math.hypot(*(spread / scale).tolist())
        problem = MeanProblem(
            n_users=n_users,
            dimension=d,
            max_norm=float(units[0]) if alike else 1.0,
            norm="l2" if self.bounds is None else "max",
            concentration=concentration,
            epsilon=positive_epsilon(self.epsilon),
            delta=parse_delta(self.delta),
            beta=float(self.beta),
            grid_resolution=None if self.grid_resolution is None else int(self.grid_resolution),
            promise="independent" if self.homogeneous else "none" if self.user_std is None else "at most",
            objective="worst" if self.objective == "worst" else "expected",
            in_rho=counted_in_rho(self),
        )
        return problem, scale

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        d = n_features
        middle, units = self._units(d)
        problem, scale = self._problem(n_users, units)
        method = planned_method(METHODS[self.method], problem)
        divisors = None if np.all(scale == 1) else scale
        fixed = None if self.public_seed is None else PublicSeed(self.public_seed)
        seed = PublicSeed.random() if fixed is None and method.rotated() else fixed
        signs = signs_of(seed, d) if seed is not None and method.rotated() else None

        def program(table: UserTable) -> AdaptiveMechanism:
            vectors = MeanVectors(
                table, bound=problem.max_norm, norm=problem.norm, center=middle, units=divisors, signs=signs
            )
            return method.program(vectors)

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
            accuracy, ball = method.accuracy(drawn), method.clipped_to(drawn)
            return {
                "mean_": middle + scale * self._within(mean, problem),
                "unmoved_": middle + scale * mean,
                "bounds_": np.stack((middle - units, middle + units), axis=1),
                "scales_": scale,
                "noise_": scale * accuracy.noise(),
                "worst_error_": scale * accuracy.worst(),
                "clipped_": accuracy.bias is not None,
                "clipped_to_": None if ball is None else (middle + scale * ball[0], scale * ball[1]),
                "promises_": self._promises(),
                "accuracy_": accuracy,
                "method_": method.name,
                "public_seed_": seed,
            }

        warnings = (*method.warnings(), *self._too_few(n_users, method, problem, scale, units))
        return ReleasePlan(method.budget(), program, outcomes, fitted, warnings=warnings)

    def _within(self, mean: Floats, problem: MeanProblem) -> Floats:
        """The nearest point where records are: free, as it is a function of public numbers and the mean."""
        most = problem.max_norm
        if problem.norm == "max":
            return np.clip(mean, -most, most)
        return mean * (most / max(most, float(np.linalg.norm(mean))))

    def _promises(self) -> tuple[str, ...]:
        if self.homogeneous:
            return (f"homogeneous=True with m={self.m}",)
        return () if self.user_std is None else (f"user_std={short_repr(self.user_std)}",)

    def _too_few(
        self, n_users: int, method: MeanMethod, problem: MeanProblem, scale: Floats, units: Floats
    ) -> list[str]:
        """A warning where noise is large beside the bounds, from public numbers."""
        share, of = float(np.max(scale * method.accuracy().noise() / units)), "half the range"
        if problem.norm == "l2":
            share, of = share * math.sqrt(problem.dimension), "max_norm"
        return noise_warnings(n_users, problem.epsilon, share, of)

    # --- how wrong the release may be

    def interval(self, level: float = 0.95, *, covers: str = "users") -> Floats:
        """Compute intervals around the released means that are right with a given probability.

        Parameters
        ----------
        level : float in (0, 1)
            The probability, over the noise, that all columns together are covered.
        covers : {"users", "clipped"}
            "users": the mean of the users' means. Where users may have been clipped, it includes the most that clipping
            can have moved, and is infinite before it is cut to the bounds if nothing bounds that. "clipped": the mean
            of the vectors as they were clipped, by noise and rounding alone.

        Returns
        -------
        ndarray with shape (columns, 2)
            Lower and upper ends in the units of the data, cut to the bounds.

        Raises
        ------
        ValueError
            For another level or `covers`, and for methods whose noise is mixed by a rotation.

        Notes
        -----
        Post-processing of what was released: it costs nothing. The noise's exact distribution gives the quantiles,
        and rounding is added. Sampling is not covered: the interval is for these users, not for a population.
        """
        check_is_fitted(self)
        failure = 1 - open_unit_interval(level, "level")
        if covers not in COVERS:
            raise ValueError(f"covers must be one of {', '.join(map(repr, COVERS))}; got {short_repr(covers)}")
        accuracy: Accuracy = self.accuracy_
        if accuracy.mixed:
            raise ValueError(f"method={self.method_!r} rotates columns, and mixes their noise: it has no intervals")
        d = len(self.mean_)
        parts = 2 if covers == "users" and accuracy.bias is not None else 1
        width = accuracy.half_width(failure / parts / d)
        if parts == 2:
            width += accuracy.bias.at_most(failure / 2)
        # Around the mean before it was taken into the bounds: a column's error may grow when a vector is pulled in.
        ends = self.unmoved_[:, None] + self.scales_[:, None] * np.array([-width, width])
        return np.clip(ends, self.bounds_[:, :1], self.bounds_[:, 1:])

    def to_frame(self, level: float = 0.95, *, backend: str | None = None) -> Frame:
        """Put means, noise, worst errors and intervals of all columns into a data frame.

        Parameters
        ----------
        level : float in (0, 1)
            Of the intervals for the users' means.
        backend : {"pandas", "polars", "pyarrow"}, optional
            Whose data frame; by default the first of these that is installed.

        Returns
        -------
        data frame
            A row for each column of X.
        """
        ends = None if self.accuracy_.mixed else self.interval(level)
        columns: Mapping[str, list[Any]] = {
            "column": list(self._names() or range(len(self.mean_))),
            "mean": self.mean_.tolist(),
            "noise": self.noise_.tolist(),
            "worst_error": self.worst_error_.tolist(),
            "low": [None] * len(self.mean_) if ends is None else ends[:, 0].tolist(),
            "high": [None] * len(self.mean_) if ends is None else ends[:, 1].tolist(),
        }
        return frame_of(columns, backend)
