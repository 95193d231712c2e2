"""Logistic and linear regression for people who give several rows each, with scikit-learn's conventions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.estimators.base import UserLevelClassifier, UserLevelRegressor
from userdp.exact.numbers import Delta, Epsilon, shown
from userdp.optimization.clipped import clipped_plan
from userdp.optimization.constraints import LEAST, L2Ball, finite, finite_vector, length
from userdp.optimization.estimator import PublicRandomEstimator
from userdp.optimization.losses import LogisticLoss, Loss, SquaredLoss
from userdp.optimization.phased import PhasedPlan
from userdp.optimization.problem import DescentPlan, DescentProblem
from userdp.optimization.winsorized import GradientOptions, winsorized_plan
from userdp.public_randomness import PublicSeed
from userdp.users.sanitize import silence

Solver: TypeAlias = Callable[[DescentProblem, PublicSeed], DescentPlan]


def _clipped(problem: DescentProblem, seed: PublicSeed) -> DescentPlan:
    return clipped_plan(problem)


def _winsorized(problem: DescentProblem, seed: PublicSeed) -> DescentPlan:
    return winsorized_plan(problem, GradientOptions(), seed)


def _phased(problem: DescentProblem, seed: PublicSeed) -> DescentPlan:
    return PhasedPlan(problem, GradientOptions(variant="strongly-convex"), seed)


SOLVERS: dict[str, Solver] = {"auto": _clipped, "clipped": _clipped, "phased": _phased, "winsorized": _winsorized}
"""By the name that ``solver=`` takes. Plans follow from the problem and public randomness alone, by public defaults."""


Floats = npt.NDArray[np.float64]
Self = TypeVar("Self", bound="LinearModel")

RADIUS = 4.0
"""The default of `radius` times the bound of features over the root of their number: coefficients for which features
that spread over all columns give predictions of this size."""
RESIDUAL = 2.0
"""Residuals in units of half the range of targets beyond which the squared loss goes on as a line: as far apart as a
prediction and a target within the range can be."""


class LinearModel(PublicRandomEstimator):
    """A model whose predictions are linear in features with public bounds.

    Subclasses have the parameters epsilon, delta, feature_bound, feature_bounds, radius, solver, regularization,
    fit_intercept and those of all estimators. Descents see features in units in which their bounds are about 1.
    """

    released: ClassVar[tuple[str, ...]] = ("coef_", "intercept_")

    feature_bound: Any
    feature_bounds: Any
    radius: Any
    solver: Any

    start = None

    def fit(self: Self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn the coefficients.

        Parameters
        ----------
        X : array-like of numbers with shape (rows, columns)
        y : array-like with shape (rows,)
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
        """
        return self._fit(X, y, groups)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if (self.feature_bound is None) == (self.feature_bounds is None):
            raise ValueError(
                "exactly one of feature_bound, the largest L2 norm of a row, and feature_bounds, the range (low, high) "
                "of every column, must be given: they are public, and never taken from the data"
            )
        for name in ("feature_bound", "radius"):
            if (value := getattr(self, name)) is not None:
                length(value, name)
        if self.solver not in tuple(SOLVERS):
            raise ValueError(f"solver must be one of {', '.join(map(repr, SOLVERS))}; got {shown(self.solver)}")

    def _units(self, n_features: int) -> tuple[Floats, Floats]:
        """What features are measured from, and in which units: public."""
        if self.feature_bounds is None:
            return np.zeros(n_features), np.full(n_features, float(self.feature_bound))
        try:
            low, high = self.feature_bounds
        except (TypeError, ValueError):
            raise ValueError(f"feature_bounds must be (low, high); got {shown(self.feature_bounds)}") from None
        ends = []
        for name, end in (("low", low), ("high", high)):
            values = np.array([finite(end, name)]) if np.ndim(end) == 0 else finite_vector(end, name)
            if len(values) not in (1, n_features):
                raise ValueError(f"feature_bounds: {name} must be one number or {n_features}; got {len(values)}")
            ends.append(np.broadcast_to(values, n_features))
        if not np.all(ends[1] / 2 - ends[0] / 2 >= LEAST):
            raise ValueError(f"feature_bounds must have low < high, 2**-99 apart; got {shown(self.feature_bounds)}")
        if self.fit_intercept:
            return ends[0] / 2 + ends[1] / 2, ends[1] / 2 - ends[0] / 2
        return np.zeros(n_features), np.maximum(np.abs(ends[0]), np.abs(ends[1]))

    def _valid(self, rows: npt.NDArray[Any]) -> Floats:
        """Rows with 0, or the middle of bounds, for NaN and within the bounds of columns, in units of the middle."""
        middle, unit = self._units(rows.shape[1])
        with silence():
            scaled = (rows.astype(np.float64) - middle) / unit
        scaled[np.isnan(scaled)] = 0.0
        widest = 1.0 if self.feature_bounds is not None else np.finfo(np.float64).max
        valid: Floats = np.clip(scaled, -widest, widest)
        return valid

    def _read_X(self, X: Any) -> npt.NDArray[Any]:
        return self._valid(self._numbers(X))

    def _feature_bound(self, n_features: int) -> float:
        return 1.0 if self.feature_bounds is None else math.sqrt(n_features)

    def _constraint(self, n_features: int) -> L2Ball:
        dimension = n_features + bool(self.fit_intercept)
        if self.radius is not None:
            return L2Ball(float(self.radius))
        return L2Ball(RADIUS * math.sqrt(dimension) / self._feature_bound(n_features))

    def _plan_of(self, problem: DescentProblem) -> DescentPlan:
        return SOLVERS[self.solver](problem, self._seed())

    def _coefficients(self, theta: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for features as they are given."""
        n_features = self.n_features_in_
        middle, unit = self._units(n_features)
        coefficients = theta[:n_features] / unit
        shift = theta[n_features] if self.fit_intercept else 0.0
        return coefficients, float(shift - coefficients @ middle)

    def _linear(self, X: Any, coefficients: Floats, intercept: float) -> Floats:
        rows = self._numbers(X, reset=False)
        middle, unit = self._units(rows.shape[1])
        with np.errstate(all="ignore"):
            return (self._valid(rows) * unit + middle) @ coefficients + intercept


class UserLevelLogisticRegression(LinearModel, UserLevelClassifier):
    """Logistic regression, private for users.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, > 0.
    delta : float, int, Fraction or decimal string
        In (0, 1).
    feature_bound : float, optional
        Rows that are longer in L2 are scaled to this norm. Public. Either this or `feature_bounds`.
    feature_bounds : tuple (low, high), optional
        The public range of every column, each a number or one for each column. Values outside count as the nearest end.
    radius : float, optional
        The largest L2 norm of coefficients and intercept together, of features in units of their bound: in L2, or of
        half the range of each column. By default 4 sqrt(d) over the bound in these units.
    solver : {"auto", "clipped", "phased", "winsorized"}
        The descent, by its public defaults: `ClippedGradientDescent`, `PhasedERM` or `WinsorizedGradientDescent`.
        "auto" is "clipped".
    regularization : float
        lambda >= 0 of the term lambda |theta|^2 / 2, the intercept included, in the same units.
    fit_intercept : bool
    classes : tuple of two labels, or None
        Public; other labels count as the first. None takes them from y, which is not private.
    m : int
        How many rows a user is expected to have; public. All rows of a user count.
    public_seed : PublicSeed, bytes or str, optional
        Of the public randomness of solvers that have some. By default each fit draws one.
    on_invalid : {"clamp", "raise"}
        "raise" refuses NaN, infinities and other labels, which tells something about private values.
    require_groups : bool
        Whether user ids must be given. Without them single rows are protected, which is a weaker promise.
    enrolled : sequence, optional
        The public list of all users, in which those without rows count too.
    random_state : None or int
        An integer makes fits reproducible, for tests only: it warns, and such a fit is not private.

    Attributes
    ----------
    coef_ : ndarray with shape (1, columns)
    intercept_ : ndarray with shape (1,)
        With `coef_` what is released.
    classes_ : ndarray with shape (2,)
        As given.
    public_seed_ : str
        Public: the seed that was used.
    n_users_ : int
        Public.
    unit_ : {"user", "record"}
    privacy_ : PrivacyRecord
    is_private_ : bool
        False where a setting voids the guarantee.

    Notes
    -----
    Neighbours are datasets that differ in all that one user gave. What is spent on what is in `privacy_`; sensitivity
    and proof are those of the solver: docs/proofs/descent.md.

    References
    ----------
    Levy et al., "Learning with User-Level Privacy" (NeurIPS 2021), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(2000), 8)
    >>> X = rng.uniform(-0.7, 0.7, size=(16000, 2))
    >>> y = X @ [6.0, -2.0] + 1 + rng.logistic(size=16000) > 0
    >>> model = UserLevelLogisticRegression(epsilon=1, delta=1e-6, feature_bound=1.0, m=8, classes=(False, True))
    >>> model = model.fit(X, y, groups=people)
    >>> model.score(X, y) > 0.75
    True
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta = "1/1000000",
        feature_bound: float | None = None,
        feature_bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        radius: float | None = None,
        solver: str = "auto",
        regularization: float = 0.0,
        fit_intercept: bool = True,
        classes: Sequence[Any] | None = (0, 1),
        m: int | None = None,
        public_seed: PublicSeed | bytes | str | None = None,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Sequence[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bound = feature_bound
        self.feature_bounds = feature_bounds
        self.radius = radius
        self.solver = solver
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.m = m
        self.public_seed = public_seed
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _loss(self) -> Loss:
        return LogisticLoss()

    def _largest_target(self) -> float:
        return 1.0

    def _accept(self, outcome: Any) -> None:
        coefficients, intercept = self._coefficients(self._theta(outcome))
        self.coef_, self.intercept_ = coefficients[None, :], np.array([intercept])

    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """The logarithm of the odds of the second class, for every row: ndarray with shape (rows,)."""
        check_is_fitted(self)
        return self._linear(X, self.coef_[0], float(self.intercept_[0]))

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """The probabilities of the two classes, for every row: ndarray with shape (rows, 2)."""
        odds = self.decision_function(X)
        return np.column_stack([np.exp(-np.logaddexp(0.0, sign * odds)) for sign in (1, -1)])

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The more probable class of every row: ndarray with shape (rows,)."""
        second = self.decision_function(X) > 0
        predicted: npt.NDArray[Any] = self.classes_[second.astype(np.intp)]
        return predicted


class UserLevelLinearRegression(LinearModel, UserLevelRegressor):
    """Linear regression by least squares, private for users.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget, > 0.
    target_bounds : tuple of two float
        Targets are clipped to it. Public.
    delta : float, int, Fraction or decimal string
        In (0, 1).
    feature_bound, feature_bounds, solver, regularization, fit_intercept, m, public_seed, on_invalid, \
require_groups, enrolled, random_state
        As for `UserLevelLogisticRegression`. Units of targets are half their range.
    radius : float, optional
        The largest L2 norm of coefficients and intercept together, of features in units of their bound and targets in
        units of half their range. By default 4 sqrt(d) over the bound in these units.

    Attributes
    ----------
    coef_ : ndarray with shape (columns,)
    intercept_ : float
        With `coef_` what is released.
    public_seed_, n_users_, unit_, privacy_, is_private_
        As for `UserLevelLogisticRegression`.

    Notes
    -----
    The loss is the square of the residual up to the width of `target_bounds` and a line beyond it: predictions within
    the bounds are fitted by least squares, and no gradient is longer than that of the largest such residual.

    Neighbours are datasets that differ in all that one user gave. What is spent on what is in `privacy_`; sensitivity
    and proof are those of the solver: docs/proofs/descent.md.

    References
    ----------
    Levy et al., "Learning with User-Level Privacy" (NeurIPS 2021), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> people = np.repeat(np.arange(2000), 8)
    >>> X = rng.uniform(0, 10, size=(16000, 2))
    >>> y = X @ [3.0, -1.0] + 20 + rng.normal(size=16000)
    >>> model = UserLevelLinearRegression(
    ...     epsilon=1, delta=1e-6, target_bounds=(0, 60), feature_bounds=(0, 10), m=8
    ... ).fit(X, y, groups=people)
    >>> model.score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        target_bounds: tuple[float, float],
        delta: Delta = "1/1000000",
        feature_bound: float | None = None,
        feature_bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        radius: float | None = None,
        solver: str = "auto",
        regularization: float = 0.0,
        fit_intercept: bool = True,
        m: int | None = None,
        public_seed: PublicSeed | bytes | str | None = None,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Sequence[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.target_bounds = target_bounds
        self.delta = delta
        self.feature_bound = feature_bound
        self.feature_bounds = feature_bounds
        self.radius = radius
        self.solver = solver
        self.regularization = regularization
        self.fit_intercept = fit_intercept
        self.m = m
        self.public_seed = public_seed
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _target_units(self) -> tuple[float, float]:
        """What targets are measured from, and in which units."""
        low, high = self._bounds()
        return (low / 2 + high / 2, high / 2 - low / 2) if self.fit_intercept else (0.0, max(abs(low), abs(high)))

    def _read_y(self, y: Any, n_rows: int) -> Floats:
        middle, unit = self._target_units()
        targets = super()._read_y(y, n_rows)
        with silence():
            scaled: Floats = (targets - middle) / unit
        return scaled

    def _loss(self) -> Loss:
        return SquaredLoss(RESIDUAL)

    def _largest_target(self) -> float:
        return 1.0

    def _accept(self, outcome: Any) -> None:
        coefficients, intercept = self._coefficients(self._theta(outcome))
        middle, unit = self._target_units()
        self.coef_, self.intercept_ = coefficients * unit, intercept * unit + middle

    def predict(self, X: npt.ArrayLike) -> Floats:
        """The expected target of every row: ndarray with shape (rows,)."""
        check_is_fitted(self)
        return self._linear(X, self.coef_, self.intercept_)
