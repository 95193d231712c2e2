"""The mean of a normal distribution with a known covariance."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp._numbers import Epsilon, parse_positive, positive
from userdp.estimation._base import DistributionEstimator, listed
from userdp.estimation._lines import Location, People
from userdp.learners._contributions import UserData
from userdp.learners._privacy import Budget, split_budget
from userdp.learners._program import Program

__all__ = ["GaussianMean", "read_numbers"]

Floats = npt.NDArray[np.float64]

MARGIN = 10
"""Standard deviations beyond the radius where examples are clamped; honest ones are not there."""


class GaussianMean(DistributionEstimator):
    """The mean of normal examples with a known covariance, with pure privacy for users.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        The whole budget.
    radius : float
        Public bound of the Euclidean norm of the mean, > 0 and finite: without one the mean cannot be learned with pure
        privacy.
    n_columns : int
        d, the dimension, public.
    covariance : array-like with shape (d, d), optional
        The known covariance, public, symmetric and positive definite; the identity by default.
    m : int
        The most examples of a user that count: the first m.
    alpha : float in (0, 1)
        The accuracy in total variation.
    beta : float in (0, 1)
        The failure probability in `users_needed`.
    on_invalid : {"clamp", "raise"}
        NaN counts as 0, and entries are clamped to ten standard deviations beyond the radius; "raise" raises errors for
        entries that are not finite, which is not private.
    require_groups, enrolled, random_state
        As for `DiscreteDistribution`.

    Attributes
    ----------
    mean_ : ndarray with shape (d,)
        Released.
    privacy_ : PrivacyRecord

    Raises
    ------
    BudgetError
        For lines of more than 2**20 candidates.

    Notes
    -----
    *Method.* Examples are multiplied with the inverse of the covariance's Cholesky factor, after which coordinates are
    independent with variance 1. The candidates are the cover of GKKMMZ23, the grid with step
    0.2 sqrt(2 pi) alpha / sqrt(d), searched one coordinate at a time. Its psi compares two candidates by Scheffe sets,
    Phi(|a - b| / 2) - [x is on a's side of the midpoint]. Here it is 1/2 in place of Phi: then comparing neighbours is
    enough, which makes lines of many candidates cheap, and the error is smaller. Lines of more than 4096 candidates are
    searched in rounds.

    *Privacy.* A user's number of examples on a side of a threshold does not depend on other users: arithmetic on
    examples is done entry by entry, never by matrix products whose rounding could depend on the position of a row. The
    scores have sensitivity min(2 tau, m) when one user is replaced, every selection is an exponential mechanism, and
    the parts of epsilon sum to epsilon, exactly.

    *Utility.* Coordinates are learned at alpha / sqrt(d), so each within t = 0.8 alpha / sqrt(d) in total variation
    (alpha <= 0.9), with probability 1 - beta, for `users_needed()` users. The total variation of two normal
    distributions with covariance I at distance x is the concave function 2 Phi(x / 2) - 1, so d coordinates together
    are within sqrt(d) t: 0.8 alpha. A coordinate has epsilon / d, so this number of users grows as
    d**1.5 / (epsilon alpha sqrt(m)), a factor sqrt(d) more than for a cover of all means, which cannot be enumerated.

    References
    ----------
    GKKMMZ23, Theorem 45: Ghazi, Kamath, Kumar, Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few
    Examples Per User" (NeurIPS 2023).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> heights = rng.normal(loc=[3.0, -1.0], size=(8000, 2))
    >>> learner = GaussianMean(epsilon=1, radius=10, n_columns=2, m=4).fit(heights, groups=np.arange(8000) // 4)
    >>> bool(np.abs(learner.mean_ - [3, -1]).max() < 0.5)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("mean_",)

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        radius: float,
        n_columns: int = 1,
        covariance: npt.ArrayLike | None = None,
        m: int | None = None,
        alpha: float = 0.1,
        beta: float = 0.1,
        on_invalid: str = "clamp",
        require_groups: bool = True,
        enrolled: Iterable[Any] | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.radius = radius
        self.n_columns = n_columns
        self.covariance = covariance
        self.m = m
        self.alpha = alpha
        self.beta = beta
        self.on_invalid = on_invalid
        self.require_groups = require_groups
        self.enrolled = enrolled
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        positive(self.n_columns, "n_columns")
        parse_positive(self.radius, "radius")
        self._searches()

    def _factor(self) -> Floats:
        """The Cholesky factor of the covariance."""
        d = int(self.n_columns)
        if self.covariance is None:
            return np.eye(d)
        try:
            covariance = np.asarray(self.covariance, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError("covariance must be a matrix of numbers") from None
        if covariance.shape != (d, d):
            raise ValueError(f"covariance must have the shape {(d, d)}; got {covariance.shape}")
        if not np.all(np.isfinite(covariance)) or not np.array_equal(covariance, covariance.T):
            raise ValueError("covariance must be finite and symmetric")
        try:
            factor: Floats = np.linalg.cholesky(covariance).astype(np.float64)
        except np.linalg.LinAlgError:
            raise ValueError("covariance must be positive definite") from None
        return factor

    def _searches(self) -> list[Location]:
        d, radius = int(self.n_columns), float(self.radius)
        # The mean of column j after whitening is at most the norm of row j of the inverse factor times the radius.
        norms = np.linalg.norm(np.linalg.inv(self._factor()), axis=1)
        alpha = float(self.alpha) / math.sqrt(d)
        return [Location(f"column {j}", radius * float(norms[j]), 1.0, alpha) for j in range(d)]

    def _budget(self) -> Budget:
        return split_budget(self.epsilon, {name: part for s in self._searches() for name, part in s.shares.items()})

    def _program(self, data: UserData) -> Program:
        searches, budget = self._searches(), self._budget()
        people = [People(column, data.users, data.n_users, data.m) for column in self._whitened(data.X)]
        return lambda draw: tuple(
            search.draw(draw, budget, column) for search, column in zip(searches, people, strict=True)
        )

    def _whitened(self, X: Floats) -> list[Floats]:
        """The columns of independent coordinates.

        Not by a matrix product: its rounding may depend on where a row stands, and so on the rows of other users.
        """
        inverse = np.linalg.inv(self._factor())
        columns = []
        for j in range(X.shape[1]):
            column = np.zeros(len(X))
            for i in range(j + 1):
                column += inverse[j, i] * X[:, i]
            columns.append(column)
        return columns

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        searches = self._searches()
        size = math.prod(search.n_outcomes() for search in searches)
        return listed(product(*(search.outcomes() for search in searches)), size)

    def _accept(self, outcome: Any) -> None:
        white = [search.value(selected) for search, selected in zip(self._searches(), outcome, strict=True)]
        self.mean_ = self._factor() @ np.array(white)

    def _read_X(self, X: Any) -> Floats:
        factor = self._factor()
        margins = MARGIN * np.linalg.norm(factor, axis=1)
        return read_numbers(super()._read_X(X), float(self.radius) + margins)

    def _users_needed(self, m: int) -> int:
        searches, budget = self._searches(), self._budget()
        return max(search.users_needed(budget, float(self.beta) / len(searches), m) for search in searches)


def read_numbers(rows: npt.NDArray[Any], bounds: Floats) -> Floats:
    """Columns of numbers, each clamped to plus or minus its bound; NaN counts as 0.

    Raises
    ------
    ValueError
        For another number of columns.
    """
    if rows.shape[1] != len(bounds):
        raise ValueError(f"X must have {len(bounds)} columns; got the shape {rows.shape}")
    numbers = rows.astype(np.float64)
    clamped: Floats = np.where(np.isnan(numbers), 0.0, np.clip(numbers, -bounds, bounds))
    return clamped
