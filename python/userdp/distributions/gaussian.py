"""Normal distributions: means with known covariance [GKKMMZ23, Theorem 45], and covariances [GKKMMZ23, Theorem 46]."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations, product
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.distributions.covers import DistributionEstimator
from userdp.distributions.line_selection import LocationSearch, ScaleSearch, UserSamples
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Parts
from userdp.exact.numbers import counted, parse_positive, short_repr
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.containers import Grid
from userdp.users.table import UserTable

Floats = npt.NDArray[np.float64]
Selected: TypeAlias = tuple[tuple[tuple[int, ...], ...], tuple[int, ...], tuple[int, ...]]
"""What was selected for the locations of columns, the scales of columns, and the scales of pairs of columns."""


def gaussian_cover_size(d: int, mean_bound: float, kappa: float, alpha: float) -> int:
    """The size of a cover of normal distributions: means in [-mean_bound, mean_bound]**d, I <= Sigma <= kappa I."""
    # The grids are in docs/proofs/distributions.md; matrices whose eigenvalues are not in the range are counted, too.
    mean_step = 0.1 * math.sqrt(2 * math.pi) * alpha / math.sqrt(d)
    step = 0.2 * alpha * (1 - alpha / 10) / d
    means = (math.ceil(2 * mean_bound / mean_step) + 1) ** d
    entries = math.ceil((kappa - 1) / step) + 1
    return int(means * entries ** (d * (d + 1) // 2))


class Means:
    """The location of each column, of independent numbers with variance 1."""

    def __init__(self, locations: Sequence[LocationSearch], *others: ScaleSearch) -> None:
        self.locations = locations
        self.searches: list[LocationSearch | ScaleSearch] = [*locations, *others]
        self.shares = {name: share for search in self.searches for name, share in search.shares.items()}

    def program(self, budget: Parts, columns: Any) -> AdaptiveMechanism:
        return lambda draw: self.located(draw, budget, columns)

    def located(self, draw: Sampler, budget: Parts, columns: Sequence[UserSamples]) -> tuple[tuple[int, ...], ...]:
        """What is drawn for the locations."""
        pairs = zip(self.locations, columns, strict=True)
        return tuple(search.draw(draw, budget, column) for search, column in pairs)

    def mean(self, selected: tuple[tuple[int, ...], ...]) -> list[float]:
        """The mean that was selected."""
        return [search.value(points) for search, points in zip(self.locations, selected, strict=True)]

    def outcomes(self) -> Iterable[Hashable]:
        return product(*(search.outcomes() for search in self.locations))

    def n_outcomes(self) -> int:
        return counted(*((search.n_outcomes(), 1) for search in self.searches))

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return max(search.users_needed(budget, beta / len(self.searches), m) for search in self.searches)


class Projections(Means):
    """Location and scale of each column, and the scale of (x_j + x_k) / sqrt(2) for each pair of columns."""

    def __init__(self, d: int, bound: float, scale: float, alpha: float) -> None:
        self.scale = scale
        locations = [LocationSearch(f"column {j}", bound, scale, alpha) for j in range(d)]
        self.scales = [ScaleSearch(f"column {j}, scale", scale, alpha) for j in range(d)]
        self.pairs = list(combinations(range(d), 2))
        self.pair_scales = [ScaleSearch(f"columns {j} and {k}, scale", scale, alpha) for j, k in self.pairs]
        super().__init__(locations, *self.scales, *self.pair_scales)

    def program(self, budget: Parts, table: UserTable) -> AdaptiveMechanism:
        return lambda draw: self._draw(draw, budget, table)

    def _draw(self, draw: Sampler, budget: Parts, data: UserTable) -> Selected:
        def samples(values: Floats) -> UserSamples:
            return UserSamples(values, data.users, data.n_users, data.m)

        columns = [samples(column) for column in data.X.T]
        locations = self.located(draw, budget, columns)
        mean = self.mean(locations)
        widths = tuple(
            search.draw(draw, budget, center, column)
            for search, center, column in zip(self.scales, mean, columns, strict=True)
        )
        diagonal = math.sqrt(0.5)
        pair_widths = tuple(
            search.draw(draw, budget, diagonal * (mean[j] + mean[k]), samples(diagonal * (data.X[:, j] + data.X[:, k])))
            for search, (j, k) in zip(self.pair_scales, self.pairs, strict=True)
        )
        return locations, widths, pair_widths

    def covariance(self, widths: tuple[int, ...], pair_widths: tuple[int, ...]) -> Floats:
        """The covariance that the scales stand for, with eigenvalues in [1, scale**2]."""
        variances = [search.value(selected) ** 2 for search, selected in zip(self.scales, widths, strict=True)]
        covariance = np.diag(variances)
        for (j, k), search, selected in zip(self.pairs, self.pair_scales, pair_widths, strict=True):
            covariance[j, k] = covariance[k, j] = search.value(selected) ** 2 - (variances[j] + variances[k]) / 2
        eigenvalues, vectors = np.linalg.eigh(covariance)
        clipped: Floats = (vectors * np.clip(eigenvalues, 1, self.scale**2)) @ vectors.T
        return (clipped + clipped.T) / 2

    def outcomes(self) -> Iterable[Selected]:
        locations = product(*(search.outcomes() for search in self.locations))
        widths = product(*(search.outcomes() for search in self.scales))
        pair_widths = product(*(search.outcomes() for search in self.pair_scales))
        return product(locations, widths, pair_widths)


def _kappa(value: Any, name: str) -> None:
    if parse_positive(value, name) < 1:
        raise ValueError(f"{name} must be at least 1; got {short_repr(value)}")


MARGIN = 10
"""Standard deviations beyond the bound of the mean where examples are clamped; honest ones are not there."""


@estimator
class GaussianMean(DistributionEstimator):
    """The mean of normal examples with a known covariance, with pure privacy for users.

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
    Phi(|a - b| / 2) - [x is on a's side of the midpoint]. Here it is 1/2 in place of Phi: then comparing neighbors is
    enough, which makes lines of many candidates cheap, and the error is smaller. Lines of more than 4096 candidates are
    searched in rounds.

    *Privacy.* A user's number of examples on a side of a threshold does not depend on other users: arithmetic on
    examples is done entry by entry, never by matrix products whose rounding could depend on the position of a row. The
    scores have sensitivity min(2 tau, m) when one user is replaced, every selection is an exponential mechanism, and
    the parts of epsilon sum to epsilon, exactly.

    *Utility.* Within 0.8 alpha in total variation (alpha <= 0.9) with probability 1 - beta, for `users_needed()` users.
    This number grows as d**1.5 / (epsilon alpha sqrt(m)), a factor sqrt(d) more than for a cover of all means, which
    cannot be enumerated. Proof: docs/proofs/distributions.md.

    References
    ----------
    [GKKMMZ23, Theorem 45].

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> heights = rng.normal(loc=[3.0, -1.0], size=(8000, 2))
    >>> learner = GaussianMean(epsilon=1, mean_bound=10, n_columns=2, m=4).fit(heights, groups=np.arange(8000) // 4)
    >>> bool(np.abs(learner.mean_ - [3, -1]).max() < 0.5)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("mean_",)

    mean_bound: float = fields.positive_number(
        doc="""
        Public bound of the Euclidean norm of the mean, > 0 and finite: without one the mean cannot be learned with pure
        privacy.
        """
    )
    n_columns: int = fields.count(default=1, most=2**12, doc="d, the dimension, public; at most 4096.")
    covariance: npt.ArrayLike | None = fields.parameter(
        default=None,
        kind="array-like with shape (d, d), optional",
        doc="The known covariance, public, symmetric and positive definite; the identity by default.",
    )

    def _columns(self) -> int:
        return int(self.n_columns)

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

    def _selections(self) -> Means:
        d, bound = int(self.n_columns), float(self.mean_bound)
        # The mean of column j after whitening is at most the norm of row j of the inverse factor times the bound.
        norms = np.linalg.norm(np.linalg.inv(self._factor()), axis=1)
        alpha = float(self.alpha) / math.sqrt(d)
        return Means([LocationSearch(f"column {j}", bound * float(norms[j]), 1.0, alpha) for j in range(d)])

    def _examples(self, table: UserTable) -> list[UserSamples]:
        return [UserSamples(column, table.users, table.n_users, table.m) for column in self._whitened(table.X)]

    def _fitted(self, selections: Means, outcome: Any) -> dict[str, Any]:
        return {"mean_": self._factor() @ np.array(selections.mean(outcome))}

    def _whitened(self, X: Floats) -> list[Floats]:
        """The columns of independent coordinates."""
        # Not by a matrix product: its rounding may depend on where a row stands, and so on the rows of other users.
        inverse = np.linalg.inv(self._factor())
        columns = []
        for j in range(X.shape[1]):
            column = np.zeros(len(X))
            for i in range(j + 1):
                column += inverse[j, i] * X[:, i]
            columns.append(column)
        return columns

    def _read_X(self, grid: Grid) -> Floats:
        margins = MARGIN * np.linalg.norm(self._factor(), axis=1)
        return read_numbers(super()._read_X(grid), float(self.mean_bound) + margins)


def read_numbers(rows: npt.NDArray[Any], bounds: Floats) -> Floats:
    """Columns of numbers, each clamped to plus or minus its bound; NaN counts as 0."""
    if rows.shape[1] != len(bounds):
        raise ValueError(f"X must have n_columns={len(bounds)} columns; got the shape {rows.shape}")
    numbers = rows.astype(np.float64)
    return np.where(np.isnan(numbers), 0.0, np.clip(numbers, -bounds, bounds))


@estimator
class GaussianDistribution(DistributionEstimator):
    """Mean and covariance of normal examples, with pure privacy for users.

    Attributes
    ----------
    mean_ : ndarray with shape (d,)
        Released.
    covariance_ : ndarray with shape (d, d)
        Symmetric, with eigenvalues in [1, kappa]. Released.
    privacy_ : PrivacyRecord

    Raises
    ------
    BudgetError
        For lines of more than 2**20 candidates.

    Notes
    -----
    *Method.* The cover of GKKMMZ23 has a candidate for every cell of a grid of means and covariances; it cannot be
    enumerated (`joint_cover_size` tells how large it is) and the probabilities of its Scheffe sets have no closed form.
    Instead, one-dimensional projections are learned: the location and then the scale of each column, and the scale of
    (x_j + x_k) / sqrt(2) for each pair of columns about the mean that is known by then. With v these variances,
    v_jk - (v_jj + v_kk) / 2 is the covariance of columns j and k. Eigenvalues of the resulting matrix are clipped to
    [1, kappa].

    *Privacy.* As for `GaussianMean`; the parts of epsilon of all searches sum to epsilon, exactly. Arithmetic on
    examples is done entry by entry.

    *Utility.* Within alpha in total variation, for alpha <= 0.3, with probability 1 - beta, for `users_needed()` users.
    This number grows as kappa d**3 / (epsilon alpha sqrt(m)) + kappa**2 d**2 / (alpha**2 m), for a cover of everything
    as d**2 / (epsilon alpha sqrt(m)) + d**2 / (alpha**2 m), up to logarithms. Proof: docs/proofs/distributions.md.

    References
    ----------
    [GKKMMZ23, Theorem 46].

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> examples = rng.multivariate_normal([1, 0], [[2, 0.5], [0.5, 1.5]], size=40000)
    >>> learner = GaussianDistribution(epsilon=4, mean_bound=2, kappa=3, n_columns=2, m=8, alpha=0.5)
    >>> covariance = learner.fit(examples, groups=np.arange(40000) // 8).covariance_
    >>> bool(np.abs(covariance - [[2, 0.5], [0.5, 1.5]]).max() < 1)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("mean_", "covariance_")

    mean_bound: float = fields.positive_number(doc="Public bound of the Euclidean norm of the mean, > 0 and finite.")
    kappa: float = fields.parameter(
        check=_kappa,
        kind="float",
        doc="""
        Public bound of the covariance, >= 1 and finite: its eigenvalues are in [1, kappa]. Rescale the columns by
        public numbers for this. Without bounds nothing can be learned with pure privacy.
        """,
    )
    n_columns: int = fields.count(default=1, most=2**10, doc="d, the dimension, public; at most 1024.")

    def _columns(self) -> int:
        return int(self.n_columns)

    def _selections(self) -> Projections:
        d, kappa, bound = int(self.n_columns), float(self.kappa), float(self.mean_bound)
        accuracy = float(self.alpha) / (2 if d == 1 else 4 * kappa * d)
        return Projections(d, bound, math.sqrt(kappa), accuracy)

    def _fitted(self, selections: Projections, outcome: Selected) -> dict[str, Any]:
        locations, widths, pair_widths = outcome
        return {
            "mean_": np.array(selections.mean(locations)),
            "covariance_": selections.covariance(widths, pair_widths),
        }

    def joint_cover_size(self) -> int:
        """The size of the cover of means and covariances together, which is not enumerated."""
        self._check_parameters()
        return gaussian_cover_size(int(self.n_columns), float(self.mean_bound), float(self.kappa), float(self.alpha))

    def _read_X(self, grid: Grid) -> Floats:
        bound = float(self.mean_bound) + MARGIN * math.sqrt(float(self.kappa))
        return read_numbers(super()._read_X(grid), np.full(int(self.n_columns), bound))
