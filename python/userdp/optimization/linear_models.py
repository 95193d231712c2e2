"""Logistic and linear regression for users who give several rows each, with scikit-learn's conventions."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.accounting.budget_hook import counted_in_rho
from userdp.estimators import fields
from userdp.estimators.base import TargetEstimator, UserLevelClassifier, UserLevelRegressor, read_bounds
from userdp.estimators.column_bounds import KIND, Bounds, check_column_bounds, read_column_bounds
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ReleasePlan, listed
from userdp.exact.numbers import Delta, parse_delta, short_repr
from userdp.exceptions import LabelsOutsideClassesWarning
from userdp.optimization.clipped import clipped_descent
from userdp.optimization.constraints import L2Ball, optional_length
from userdp.optimization.descent import (
    DescentProblem,
    PrivateDescent,
    PublicRandomEstimator,
    optional_rounds,
    regularization_parameter,
)
from userdp.optimization.least_squares import MomentRegression, moment_regression
from userdp.optimization.losses import LogisticLoss, Loss, SquaredLoss
from userdp.optimization.moments import MomentProblem, MomentSolver
from userdp.optimization.phased import PhasedDescent
from userdp.optimization.preconditioned import LogisticFit, preconditioned_regression
from userdp.optimization.winsorized import GradientOptions, winsorized_descent
from userdp.public_randomness import PublicSeed
from userdp.runtime import warn
from userdp.users.containers import Grid
from userdp.users.vectors import JointRows

Solver: TypeAlias = Callable[[DescentProblem, PublicSeed, "int | None"], PrivateDescent]


def _clipped(problem: DescentProblem, seed: PublicSeed, n_iterations: int | None) -> PrivateDescent:
    return clipped_descent(problem, n_iterations=n_iterations)


def _winsorized(problem: DescentProblem, seed: PublicSeed, n_iterations: int | None) -> PrivateDescent:
    return winsorized_descent(problem, GradientOptions(n_iterations=n_iterations), seed)


def _phased(problem: DescentProblem, seed: PublicSeed, n_iterations: int | None) -> PrivateDescent:
    return PhasedDescent(problem, GradientOptions(variant="strongly-convex"), seed)


DESCENTS: dict[str, Solver] = {"clipped": _clipped, "phased": _phased, "winsorized": _winsorized}
"""By the name that ``solver=`` takes. A descent follows from the problem and public randomness alone."""


Floats = npt.NDArray[np.float64]

OUTSIDE, OUTSIDE_DEVIATIONS = 0.02, 3.0
"""A warning says when the share of labels outside the classes is above this by so many standard deviations."""
RADIUS = 4.0
"""The default of `radius` times the bound of features over the root of their number: coefficients for which features
that spread over all columns give predictions of this size."""
RESIDUAL = 2.0
"""Residuals in units of half the range of targets beyond which the squared loss goes on as a line: as far apart as a
prediction and a target within the range can be."""


@estimator
class LinearModel(PublicRandomEstimator):
    """A model whose predictions are linear in features with public bounds.

    Solvers see features in units in which their bounds are about 1.
    """

    released: ClassVar[tuple[str, ...]] = ("coef_", "intercept_")
    with_iterations: ClassVar[tuple[str, ...]] = ("clipped", "winsorized")
    """Solvers that take `n_iterations`."""

    delta: Delta = fields.delta(default="1/1000000", doc="In (0, 1).")
    max_feature_norm: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc="Rows that are longer in L2 are scaled to this norm. Public. Either this or `feature_bounds`.",
    )
    feature_bounds: Bounds | None = fields.parameter(
        default=None,
        check=check_column_bounds,
        kind=f"{KIND}, optional",
        doc="""
        The public range of every column, in the units of the data. Values outside count as the nearest end. Wide bounds
        do little harm to the default solvers, which find out where the data are, but to columns that hardly vary: give
        marks that few rows have (0, 1).
        """,
    )
    radius: float | None = fields.parameter(
        default=None,
        check=optional_length,
        kind="float, optional",
        doc="""
        For "clipped", "winsorized" and "phased". The largest L2 norm of coefficients and intercept together, of
        features in units of their bound: in L2, or of half the range of each column. By default 4 sqrt(d) over the
        bound in these units.
        """,
    )
    solver: str = fields.choice(["auto", *DESCENTS], default="auto", doc="How coefficients are found.")
    n_iterations: int | None = fields.parameter(
        default=None,
        check=optional_rounds,
        kind="int, optional",
        doc="The number of steps, for solvers that take some; by default their own.",
    )
    regularization: float = regularization_parameter(
        """
        lambda >= 0 of the term lambda |theta|^2 / 2 beside the mean loss, features being in units of their bound (in
        L2, or half the range of each column) and targets in half their range; the intercept is included, by default at
        the centers that were found.
        """
    )
    fit_intercept: bool = fields.flag(default=True, doc="Whether there is an intercept.")

    def _uses_m(self) -> bool:
        return self.solver == "phased"

    def _lacking(self, grouped: bool) -> dict[str, str]:
        facts = super()._lacking(grouped)
        if self.max_feature_norm is None and self.feature_bounds is None:
            facts["feature_bounds or max_feature_norm"] = "the range of every column or the largest L2 norm of a row"
        return facts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_feature_norm is not None and self.feature_bounds is not None:
            raise ValueError(
                "only one of max_feature_norm, the largest L2 norm of a row, and feature_bounds, the range (low, high) "
                "of every column, is taken"
            )
        for name, solvers in (("radius", DESCENTS), ("n_iterations", self.with_iterations)):
            if getattr(self, name) is not None and self.solver not in solvers:
                raise ValueError(f"{name} belongs to solver={' or '.join(map(repr, solvers))}; got {self.solver!r}")

    def _units(self, n_features: int) -> tuple[Floats, Floats]:
        """What features are measured from, and in which units: public."""
        if self.feature_bounds is None:
            assert self.max_feature_norm is not None, "one of them is given"
            return np.zeros(n_features), np.full(n_features, float(self.max_feature_norm))
        names = getattr(self, "feature_names_in_", None)
        bounds = read_column_bounds(self.feature_bounds, "feature_bounds", n_features, names)
        if self.fit_intercept:
            return bounds.middle, bounds.half
        return np.zeros(n_features), np.maximum(np.abs(bounds.low), np.abs(bounds.high))

    def _valid(self, rows: npt.NDArray[Any]) -> Floats:
        """Rows with 0, or the middle of bounds, for NaN and within the bounds of columns, in units of the middle."""
        middle, unit = self._units(rows.shape[1])
        with np.errstate(all="ignore"):
            scaled = (rows.astype(np.float64) - middle) / unit
        scaled[np.isnan(scaled)] = 0.0
        widest = 1.0 if self.feature_bounds is not None else np.finfo(np.float64).max
        return np.clip(scaled, -widest, widest)

    def _read_X(self, grid: Grid) -> npt.NDArray[Any]:
        return self._valid(grid.numbers())

    def _max_feature_norm(self, n_features: int) -> float:
        return 1.0 if self.feature_bounds is None else math.sqrt(n_features)

    def _constraint(self, n_features: int) -> L2Ball:
        dimension = n_features + bool(self.fit_intercept)
        if self.radius is not None:
            return L2Ball(float(self.radius))
        return L2Ball(RADIUS * math.sqrt(dimension) / self._max_feature_norm(n_features))

    def _descent(self, problem: DescentProblem, seed: PublicSeed | None) -> PrivateDescent:
        assert seed is not None
        return DESCENTS[self.solver](problem, seed, None if self.n_iterations is None else int(self.n_iterations))

    @abstractmethod
    def _moment_solver(self, problem: MomentProblem) -> MomentSolver:
        """The plan of the default solver."""

    def _moment_problem(self, n_users: int, n_features: int) -> MomentProblem:
        return MomentProblem(
            n_users=n_users,
            n_features=n_features,
            with_targets=isinstance(self, TargetEstimator),
            fit_intercept=bool(self.fit_intercept),
            norm="l2" if self.feature_bounds is None else "max",
            epsilon=self.epsilon,
            delta=parse_delta(self.delta),
            regularization=float(self.regularization),
            in_rho=counted_in_rho(self),
        )

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        self._units(n_features)
        if self.solver in DESCENTS:
            return super()._plan(n_users, n_features)
        problem = self._moment_problem(n_users, n_features)
        plan = self._moment_solver(problem)

        def fitted(drawn: Any) -> dict[str, Any]:
            fit = plan.fit(drawn)
            released = self._fitted(np.append(fit.coefficients, fit.intercept), n_features)
            known = {"converged_": fit.converged, "noise_ratio_": fit.noise_ratio}
            return {**released, **known, **self._known(fit, n_features)}

        return ReleasePlan(
            plan.budget(),
            lambda table: plan.program(JointRows(table, problem.norm, problem.with_targets)),
            lambda: listed(plan.outcomes, plan.n_outcomes(), "audit fewer users, columns or a coarser grid"),
            fitted,
            warnings=tuple(plan.warnings()),
        )

    def _known(self, fit: Any, n_features: int) -> dict[str, Any]:
        """What else is known of a fit of the default solver, by the names of attributes."""
        return {}

    def _coefficients(self, theta: Floats, n_features: int) -> tuple[Floats, float]:
        """Coefficients and intercept for features as they are given."""
        middle, unit = self._units(n_features)
        coefficients = theta[:n_features] / unit
        shift = theta[n_features] if self.fit_intercept else 0.0
        return coefficients, float(shift - coefficients @ middle)

    def _linear(self, rows: Floats, coefficients: Floats, intercept: float) -> Floats:
        middle, unit = self._units(rows.shape[1])
        with np.errstate(all="ignore"):
            return (rows * unit + middle) @ coefficients + intercept


@estimator
class UserLevelLogisticRegression(LinearModel, UserLevelClassifier):
    """Logistic regression, private for users.

    Attributes
    ----------
    coef_ : ndarray with shape (1, columns)
    intercept_ : ndarray with shape (1,)
        With `coef_` what is released.
    classes_ : ndarray with shape (2,)
        In rising order, as scikit-learn's metrics need. `coef_` and `decision_function` are about the second of these,
        `predict_proba` has them in this order, in whichever order `classes` has them.
    converged_ : bool
        With the default solver, like all up to `notes_`, and functions of what it released: whether there are no notes.
    outside_, outside_deviation_ : float
        The share of users' rows whose label is neither class, with noise, and the standard deviation of that noise.
    clipping_ : TargetClipping or None
        How far users' gradients were clipped, in whitened units, at the first solution; None where nobody's were.
    looks_ : int
        How many tests of clipping were made: 0, 1 or 2.
    refused_ : bool
        Whether all of them refused.
    notes_ : tuple of str
        What a `NoisyFitWarning` said: a class of fewer users than noise is worth, log odds that noise moves by half as
        much as features do, or steps that had not settled.
    noise_ratio_ : float
        With the default solver: the noise of second moments over their least eigenvalue, in standard deviations. Above
        0.5 some direction of the features is not known.
    public_seed_ : str
        With solvers that have public randomness: the seed that was used.
    n_users_ : int
        Public.
    unit_ : {"user", "record"}
    privacy_ : PrivacyRecord
    is_private_ : bool
        False where a setting voids the guarantee.

    Notes
    -----
    Neighbors are datasets that differ in all the records of one user. What is spent on what is in `privacy_`;
    sensitivities and proofs: docs/proofs/whitened_descent.md for the default, docs/proofs/descent.md for the others.

    The default fits all users. Rows far out in a feature count less: that weight looks at features only, so that a rare
    class loses nothing by it. Rows whose label is neither class do not count. Users of several rows have their mean
    gradients clipped only where a released test finds that few users are longer (`clip`).

    A `TooFewUsersWarning`, a function of public numbers, says before the fit when noise will win, and how many users
    would do. With the default solver a `NoisyFitWarning`, a function of what was released, says so after it, and a
    `LabelsOutsideClassesWarning` that surely more than 2 % of users' labels, each user counting alike, are of neither
    class; the other solvers say neither. No intervals for coefficients are offered.

    References
    ----------
    Levy et al., "Learning with User-Level Privacy" (NeurIPS 2021), section 4, for the problem. Kuensch, Stefanski,
    Carroll, "Conditionally Unbiased Bounded-Influence Estimation" (JASA 1989), for weights by features.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(2000), 8)
    >>> X = rng.uniform(-0.7, 0.7, size=(16000, 2))
    >>> y = X @ [6.0, -2.0] + 1 + rng.logistic(size=16000) > 0
    >>> model = UserLevelLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(-5, 5), m=8, classes=(False, True))
    >>> model = model.fit(X, y, groups=users)
    >>> model.score(X, y) > 0.75
    True
    """

    solver: str = fields.choice(
        ["auto", "preconditioned", *DESCENTS],
        default="auto",
        doc="""
        "auto" is "preconditioned": shares of classes, then centers, scales and second moments of features, from half of
        the budget, then steps in whitened units from a constant model. "clipped", "winsorized" and "phased" are the
        descents `ClippedGradientDescent`, `WinsorizedGradientDescent` and `PhasedERM` in units of the bounds, by their
        public defaults.
        """,
    )
    clip: str = fields.choice(
        ["tested", "never"],
        default="tested",
        doc="""
        For the default solver and users of several rows: whether users' gradients are clipped where a released test
        finds that next to nobody is longer, which saves noise. Rows far out in a feature count less in any case.
        """,
    )
    with_iterations: ClassVar[tuple[str, ...]] = ("auto", "preconditioned", "clipped", "winsorized")

    @property
    def released(self) -> tuple[str, ...]:  # type: ignore[override]
        """The fitted attributes that are outputs of the mechanism: more of them with the default solver."""
        of_steps = (
            "converged_",
            "noise_ratio_",
            "outside_",
            "outside_deviation_",
            "clipping_",
            "looks_",
            "refused_",
            "notes_",
        )
        return super().released if self.solver in DESCENTS else (*super().released, *of_steps)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.clip != "tested" and self.solver in DESCENTS:
            raise ValueError(f"clip='never' belongs to solver='preconditioned'; got solver={self.solver!r}")

    def _moment_solver(self, problem: MomentProblem) -> MomentSolver:
        several = self.require_groups if self.m is None else int(self.m) > 1
        steps = None if self.n_iterations is None else int(self.n_iterations)
        return preconditioned_regression(problem, steps, several, self.clip == "tested")

    def _known(self, fit: LogisticFit, n_features: int) -> dict[str, Any]:
        return {
            "outside_": fit.outside,
            "outside_deviation_": fit.outside_deviation,
            "clipping_": fit.clipping,
            "looks_": fit.looks,
            "refused_": fit.refused,
            "notes_": fit.notes,
        }

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> UserLevelLogisticRegression:
        super().fit(X, y, groups)
        if getattr(self, "outside_", 0.0) > OUTSIDE + OUTSIDE_DEVIATIONS * getattr(self, "outside_deviation_", 0.0):
            warn(
                f"labels are neither of classes={short_repr(self.classes)} in about "
                f"{100 * min(self.outside_, 1.0):.0f} % of users' rows, each user counting alike, and do not count: "
                "see how labels are written",
                LabelsOutsideClassesWarning,
            )
        return self

    def _loss(self) -> Loss:
        return LogisticLoss()

    def _largest_target(self) -> float:
        return 1.0

    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        coefficients, intercept = self._coefficients(theta, n_features)
        rising = np.argsort(self.classes_)
        sign = 1.0 if rising[0] == 0 else -1.0
        return {
            "classes_": self.classes_[rising],
            "coef_": sign * coefficients[None, :],
            "intercept_": sign * np.array([intercept]),
        }

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """The logarithm of the odds of the second of `classes_`, for every row: ndarray with shape (rows,)."""
        check_is_fitted(self)
        return self._odds(self._numbers(X))

    def _odds(self, rows: Floats) -> Floats:
        return self._linear(rows, self.coef_[0], float(self.intercept_[0]))

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probabilities of the two `classes_`, for every row: ndarray with shape (rows, 2)."""
        odds = self.decision_function(X)
        return np.column_stack([np.exp(-np.logaddexp(0.0, sign * odds)) for sign in (1, -1)])

    def _predicts_second(self, rows: Floats) -> npt.NDArray[np.bool_]:
        return self._odds(rows) > 0


@estimator
class UserLevelLinearRegression(LinearModel, UserLevelRegressor):
    """Linear regression by least squares, private for users.

    Attributes
    ----------
    coef_ : ndarray with shape (columns,)
    intercept_ : float
        With `coef_` what is released.
    converged_ : bool
        With the default solver: whether `noise_ratio_` is at most 0.5.
    clipping_ : TargetClipping or None
        With the default solver, like all up to `notes_`, and functions of what it released. How far targets were cut;
        None where nobody's were.
    looks_ : int
        How many tests of cutting were made: 0, 1 or 2.
    refused_ : bool
        Whether all of them refused, so that noise is for the whole range of targets.
    coef_noise_ : ndarray with shape (columns + 1,)
        The standard deviation of the noise of each coefficient, the intercept last, in units of the data; infinite
        where it is not known.
    residual_std_ : float or None
        The root mean square residual in units of targets, with noise; None where targets were cut, and where it is
        below two standard deviations of its noise.
    estimates_ : CoefficientNoise
        What `coef_interval` is made of.
    notes_ : tuple of str
        What a `NoisyFitWarning` said.
    noise_ratio_, public_seed_, n_users_, unit_, privacy_, is_private_
        As for `UserLevelLogisticRegression`.

    Notes
    -----
    The default releases the second moments of features and targets, in units of the spread of features that are found
    first, and solves the normal equations, with a ridge as large as the noise where `noise_ratio_` is above 1/4. It is
    a line fitted to all users, of whom those with extreme features count less: rows far out in a feature count less,
    and so do a few users with the largest second moments. Targets do not weigh. They are cut only where a released test
    says that so few users are beyond the cut that they are worth less than the noise for the whole range (`clip`).
    Where targets are linear in features in expectation, weights by features change nothing of what is estimated. The
    other solvers take the square of the residual up to the width of `target_bounds` and a line beyond it.

    Neighbors are datasets that differ in all the records of one user. What is spent on what is in `privacy_`;
    sensitivities and proofs: docs/proofs/moments.md for the default, docs/proofs/descent.md for the others.

    A `TooFewUsersWarning`, a function of public numbers, says before the fit when noise will win, and how many users
    would do. A `NoisyFitWarning`, a function of what was released, says so after it, and where cutting or weights may
    have moved coefficients.

    References
    ----------
    Dwork et al., "Analyze Gauss" (STOC 2014), for noisy second moments. Levy et al., "Learning with User-Level Privacy"
    (NeurIPS 2021), section 4, for the problem.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(10_000), 8)
    >>> X = rng.uniform(0, 10, size=(80_000, 2))
    >>> y = X @ [3.0, -1.0] + 20 + rng.normal(size=80_000)
    >>> model = UserLevelLinearRegression(
    ...     epsilon=1, delta=1e-6, target_bounds=(0, 1000), feature_bounds=(0, 100), m=8
    ... ).fit(X, y, groups=users)
    >>> model.score(X, y) > 0.95
    True
    >>> model.coef_interval(0.95).shape
    (3, 2)
    """

    solver: str = fields.choice(
        ["auto", "moments", *DESCENTS],
        default="auto",
        doc="""
        "auto" is "moments": centers and scales of all columns, then their second moments with noise, and ridge
        regression, with a ridge where noise is large. "clipped", "winsorized" and "phased" are the descents
        `ClippedGradientDescent`, `WinsorizedGradientDescent` and `PhasedERM` in units of the bounds, by their public
        defaults.
        """,
    )
    clip: str = fields.choice(
        ["tested", "never"],
        default="tested",
        doc="""
        For the default solver. "tested" cuts users' products of features and targets where a released test allows it;
        "never" takes noise for the whole range of targets.
        """,
    )
    target_bounds: tuple[float, float] = fields.parameter(
        check=read_bounds,
        kind="pair of floats",
        doc="(low, high): targets are clamped to these public numbers. Rows whose target is no number do not count, as"
        "\nif the user had not given them. Units of targets are half their range.",
        fact="the public range (low, high) of targets",
    )

    @property
    def released(self) -> tuple[str, ...]:  # type: ignore[override]
        """The fitted attributes that are outputs of the mechanism: more of them with the default solver."""
        of_targets = ("residual_std_", "clipping_", "looks_", "refused_", "notes_")
        of_noise = ("coef_noise_", "estimates_", "converged_", "noise_ratio_", *of_targets)
        return super().released if self.solver in DESCENTS else (*super().released, *of_noise)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.clip != "tested" and self.solver in DESCENTS:
            raise ValueError(f"clip='never' belongs to solver='moments'; got solver={self.solver!r}")

    def _moment_solver(self, problem: MomentProblem) -> MomentRegression:
        return moment_regression(problem, self.clip == "tested")

    def _known(self, fit: Any, n_features: int) -> dict[str, Any]:
        return fit.released(*self._units(n_features), self._target_units())

    def _target_units(self) -> tuple[float, float]:
        """What targets are measured from, and in which units."""
        low, high = self._bounds()
        return (low / 2 + high / 2, high / 2 - low / 2) if self.fit_intercept else (0.0, max(abs(low), abs(high)))

    def _read_y(self, y: Any, n_rows: int) -> Floats:
        middle, unit = self._target_units()
        targets = super()._read_y(y, n_rows)
        with np.errstate(all="ignore"):
            scaled: Floats = (targets - middle) / unit
        return scaled

    def _loss(self) -> Loss:
        return SquaredLoss(RESIDUAL)

    def _largest_target(self) -> float:
        return 1.0

    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        coefficients, intercept = self._coefficients(theta, n_features)
        middle, unit = self._target_units()
        return {"coef_": coefficients * unit, "intercept_": intercept * unit + middle}

    def coef_interval(self, level: float = 0.95) -> Floats:
        """Intervals for the coefficients that the fit would have without noise and cutting, all of them together.

        Without noise means: of these users' least squares line, features weighted as in the notes. Sampling is not
        covered. Intervals are about what solves the noisy equations without the ridge, and as wide as the noise, to
        first order, and where targets were cut as the released test allows cutting to have moved each.

        Parameters
        ----------
        level : float
            The probability over the noise that all intervals hold, in (0, 1).

        Returns
        -------
        ndarray with shape (columns + 1, 2)
            The lower and the upper ends in units of the data, the intercept last. Infinite where `noise_ratio_` is
            above 1/4, and for columns that hardly vary but in rows too few to be counted.

        Raises
        ------
        ValueError
            For a level outside (0, 1), and for solvers other than the default.
        """
        check_is_fitted(self)
        if not hasattr(self, "estimates_"):
            raise ValueError(f"intervals are known for solver='moments' only; got {self.solver!r}")
        return self.estimates_.interval(level)

    def summary(self) -> str:
        """What the default solver released, in a few sentences."""
        check_is_fitted(self)
        if not hasattr(self, "estimates_"):
            raise ValueError(f"there is a summary for solver='moments' only; got {self.solver!r}")
        lines = ["These users' least squares line, users with extreme features weighted less."]
        if self.clipping_ is not None:
            most = math.ceil(self.clipping_.users_at_most(0.95))
            lines.append(
                f"Targets were cut, by no more than if {most} of {self.n_users_} users had lost a whole length (95 %): "
                "who loses less counts as less."
            )
        elif self.refused_:
            lines.append("Targets were not cut: too many users are far out. Noise is for the whole range.")
        else:
            lines.append("Targets were not cut.")
        names = [*getattr(self, "feature_names_in_", range(len(self.coef_))), "intercept"]
        values = [*self.coef_, self.intercept_]
        for name, value, noise in zip(names, values, self.coef_noise_, strict=True):
            lines.append(f"{name}: {value:.6g}, noise {noise:.2g}")
        if self.residual_std_ is not None:
            lines.append(f"Residuals: about {self.residual_std_:.3g}.")
        return "\n".join([*lines, *self.notes_])

    def predict(self, X: npt.ArrayLike) -> Floats:
        """The expected target of every row: ndarray with shape (rows,)."""
        check_is_fitted(self)
        return self._linear(self._numbers(X), self.coef_, self.intercept_)
