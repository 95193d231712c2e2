"""Logistic and linear regression for users who give several rows each, with scikit-learn's conventions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from userdp.estimators import fields
from userdp.estimators.base import UserLevelClassifier, UserLevelRegressor, read_bounds
from userdp.estimators.fields import estimator
from userdp.exact.numbers import Delta, short_repr
from userdp.optimization.clipped import clipped_descent
from userdp.optimization.constraints import LEAST, L2Ball, finite, finite_vector, optional_length
from userdp.optimization.descent import DescentProblem, PrivateDescent, PublicRandomEstimator, regularization_parameter
from userdp.optimization.losses import LogisticLoss, Loss, SquaredLoss
from userdp.optimization.phased import PhasedDescent
from userdp.optimization.winsorized import GradientOptions, winsorized_descent
from userdp.public_randomness import PublicSeed
from userdp.users.containers import Grid

Solver: TypeAlias = Callable[[DescentProblem, PublicSeed], PrivateDescent]


def _clipped(problem: DescentProblem, seed: PublicSeed) -> PrivateDescent:
    return clipped_descent(problem)


def _winsorized(problem: DescentProblem, seed: PublicSeed) -> PrivateDescent:
    return winsorized_descent(problem, GradientOptions(), seed)


def _phased(problem: DescentProblem, seed: PublicSeed) -> PrivateDescent:
    return PhasedDescent(problem, GradientOptions(variant="strongly-convex"), seed)


SOLVERS: dict[str, Solver] = {"auto": _clipped, "clipped": _clipped, "phased": _phased, "winsorized": _winsorized}
"""By the name that ``solver=`` takes. A descent follows from the problem and public randomness alone."""


Floats = npt.NDArray[np.float64]

RADIUS = 4.0
"""The default of `radius` times the bound of features over the root of their number: coefficients for which features
that spread over all columns give predictions of this size."""
RESIDUAL = 2.0
"""Residuals in units of half the range of targets beyond which the squared loss goes on as a line: as far apart as a
prediction and a target within the range can be."""


@estimator
class LinearModel(PublicRandomEstimator):
    """A model whose predictions are linear in features with public bounds.

    Descents see features in units in which their bounds are about 1.
    """

    released: ClassVar[tuple[str, ...]] = ("coef_", "intercept_")

    delta: Delta = fields.delta("1/1000000", doc="In (0, 1).")
    max_feature_norm: float | None = fields.parameter(
        None,
        check=optional_length,
        kind="float, optional",
        doc="Rows that are longer in L2 are scaled to this norm. Public. Either this or `feature_bounds`.",
    )
    feature_bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None = fields.parameter(
        None,
        kind="tuple (low, high), optional",
        doc="""
        The public range of every column, each a number or one for each column. Values outside count as the nearest end.
        """,
    )
    radius: float | None = fields.parameter(
        None,
        check=optional_length,
        kind="float, optional",
        doc="""
        The largest L2 norm of coefficients and intercept together, of features in units of their bound: in L2, or of
        half the range of each column. By default 4 sqrt(d) over the bound in these units.
        """,
    )
    solver: str = fields.choice(
        "auto",
        SOLVERS,
        doc="""
        The descent, by its public defaults: `ClippedGradientDescent`, `PhasedERM` or `WinsorizedGradientDescent`.
        "auto" is "clipped".
        """,
    )
    regularization: float = regularization_parameter(
        "lambda >= 0 of the term lambda |theta|^2 / 2, the intercept included, in the same units."
    )
    fit_intercept: bool = fields.flag(True, doc="Whether there is an intercept.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if (self.max_feature_norm is None) == (self.feature_bounds is None):
            raise ValueError(
                "exactly one of max_feature_norm, the largest L2 norm of a row, and feature_bounds, the range (low, "
                "high) of every column, must be given: they are public, and never taken from the data"
            )

    def _units(self, n_features: int) -> tuple[Floats, Floats]:
        """What features are measured from, and in which units: public."""
        if self.feature_bounds is None:
            assert self.max_feature_norm is not None, "one of them is given"
            return np.zeros(n_features), np.full(n_features, float(self.max_feature_norm))
        try:
            low, high = self.feature_bounds
        except (TypeError, ValueError):
            raise ValueError(f"feature_bounds must be (low, high); got {short_repr(self.feature_bounds)}") from None
        ends = []
        for name, end in (("low", low), ("high", high)):
            values = np.array([finite(end, name)]) if np.ndim(end) == 0 else finite_vector(end, name)
            if len(values) not in (1, n_features):
                raise ValueError(f"feature_bounds: {name} must be one number or {n_features}; got {len(values)}")
            ends.append(np.broadcast_to(values, n_features))
        if not np.all(ends[1] / 2 - ends[0] / 2 >= LEAST):
            raise ValueError(
                f"feature_bounds must have low < high, 2**-99 apart; got {short_repr(self.feature_bounds)}"
            )
        if self.fit_intercept:
            return ends[0] / 2 + ends[1] / 2, ends[1] / 2 - ends[0] / 2
        return np.zeros(n_features), np.maximum(np.abs(ends[0]), np.abs(ends[1]))

    def _valid(self, rows: npt.NDArray[Any]) -> Floats:
        """Rows with 0, or the middle of bounds, for NaN and within the bounds of columns, in units of the middle."""
        middle, unit = self._units(rows.shape[1])
        with np.errstate(all="ignore"):
            scaled = (rows.astype(np.float64) - middle) / unit
        scaled[np.isnan(scaled)] = 0.0
        widest = 1.0 if self.feature_bounds is not None else np.finfo(np.float64).max
        valid: Floats = np.clip(scaled, -widest, widest)
        return valid

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
        return SOLVERS[self.solver](problem, seed)

    def _coefficients(self, theta: Floats, n_features: int) -> tuple[Floats, float]:
        """Coefficients and intercept for features as they are given."""
        middle, unit = self._units(n_features)
        coefficients = theta[:n_features] / unit
        shift = theta[n_features] if self.fit_intercept else 0.0
        return coefficients, float(shift - coefficients @ middle)

    def _linear(self, X: Any, coefficients: Floats, intercept: float) -> Floats:
        rows = self._numbers(X)
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
    Neighbors are datasets that differ in all the records of one user. What is spent on what is in `privacy_`;
    sensitivity and proof are those of the solver: docs/proofs/descent.md.

    References
    ----------
    Levy et al., "Learning with User-Level Privacy" (NeurIPS 2021), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(2000), 8)
    >>> X = rng.uniform(-0.7, 0.7, size=(16000, 2))
    >>> y = X @ [6.0, -2.0] + 1 + rng.logistic(size=16000) > 0
    >>> model = UserLevelLogisticRegression(epsilon=1, delta=1e-6, max_feature_norm=1.0, m=8, classes=(False, True))
    >>> model = model.fit(X, y, groups=users)
    >>> model.score(X, y) > 0.75
    True
    """

    def _loss(self) -> Loss:
        return LogisticLoss()

    def _largest_target(self) -> float:
        return 1.0

    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        coefficients, intercept = self._coefficients(theta, n_features)
        return {"coef_": coefficients[None, :], "intercept_": np.array([intercept])}

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


@estimator
class UserLevelLinearRegression(LinearModel, UserLevelRegressor):
    """Linear regression by least squares, private for users.

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

    Neighbors are datasets that differ in all the records of one user. What is spent on what is in `privacy_`;
    sensitivity and proof are those of the solver: docs/proofs/descent.md.

    References
    ----------
    Levy et al., "Learning with User-Level Privacy" (NeurIPS 2021), section 4.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> users = np.repeat(np.arange(2000), 8)
    >>> X = rng.uniform(0, 10, size=(16000, 2))
    >>> y = X @ [3.0, -1.0] + 20 + rng.normal(size=16000)
    >>> model = UserLevelLinearRegression(
    ...     epsilon=1, delta=1e-6, target_bounds=(0, 60), feature_bounds=(0, 10), m=8
    ... ).fit(X, y, groups=users)
    >>> model.score(X, y) > 0.8
    True
    """

    target_bounds: tuple[float, float] = fields.parameter(
        check=read_bounds,
        kind="pair of floats",
        doc="(low, high): targets are clamped to these public numbers. Units of targets are half their range.",
    )

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

    def predict(self, X: npt.ArrayLike) -> Floats:
        """The expected target of every row: ndarray with shape (rows,)."""
        check_is_fitted(self)
        return self._linear(X, self.coef_, self.intercept_)
