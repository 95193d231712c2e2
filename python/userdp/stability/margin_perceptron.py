"""Linear separators with a margin, by statistical queries."""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import check_count, defensive_copy, open_unit_fraction, short_repr
from userdp.exceptions import BudgetError
from userdp.stability.statistical_queries import (
    Oracle,
    StatisticalQuery,
    StatisticalQueryAlgorithm,
    bits_of_digits,
    bytes_of_digits,
    digits_of_bytes,
    first_columns,
)

MAX_FEATURES = 2**14
"""Beyond it hypotheses, one number for all weights, take long to encode."""

LARGEST = 1e150
"""Entries are clamped to this, so that squares are finite."""

Weights = tuple[int, ...]
"""Multiples of 1/intervals: predictions do not depend on the unit."""


@saved_as_parameter
class MarginPerceptronQueries(StatisticalQueryAlgorithm):
    """Learn a halfspace through the origin, {x : w.x > 0}, that separates the classes with a margin.

    Parameters
    ----------
    n_features : int
        d: the first d columns are read. Rows longer than 1 are scaled to length 1, entries that are NaN count as 0. For
        an intercept give a constant column.
    margin : float, Fraction or decimal string
        g in (0, 1): the distance from the hyperplane to the rows of the unit ball on either side.
    alpha : float, Fraction or decimal string
        The error that is aimed at, in (0, 1).
    tolerance : float, Fraction or decimal string, optional
        Below alpha. By default g alpha / (8 sqrt(d)). A larger one takes fewer rows and keeps no promise.
    max_rounds : int, optional
        By default 196 / (45 g^2 alpha). Fewer take fewer rows and keep no promise.

    Notes
    -----
    *Algorithm* (a perceptron by batches). From w = 0: ask which part of all rows (x, y), with y = -1 or 1, has
    y w.x <= 0. Stop if it is at most alpha - tolerance, or after max_rounds. Otherwise ask for the d means of y x_j
    over those rows (0 on the others) and add them to w.

    *Error.* If some unit vector w* has y w*.x >= g on all rows, and answers are within `tolerance`, the perceptron
    stops within max_rounds rounds with error at most alpha. Proof: docs/proofs/statistical_queries.md.

    *Queries.* (d + 1) max_rounds.

    Linear separators of {0, 1}^d may have margins as small as d^-d, and this takes as many rounds then; they need the
    rescaling perceptron of DV08, which is not here.

    References
    ----------
    DV08: Dunagan, Vempala, "A Simple Polynomial-Time Rescaling Algorithm for Solving Linear Programs" (Math.
    Programming 114, 2008). [GKM21, Corollary 33].

    Examples
    --------
    >>> algorithm = MarginPerceptronQueries(2, margin=0.25, alpha=0.1)
    >>> algorithm.intervals, algorithm.max_rounds, algorithm.max_queries
    (453, 696, 2088)
    >>> practical = MarginPerceptronQueries(2, margin=0.25, alpha=0.1, tolerance=0.05, max_rounds=8)
    >>> practical.intervals, practical.max_queries, practical.hypothesis_bits
    (20, 24, 17)
    """

    rowwise: ClassVar[bool] = True

    def __init__(
        self, n_features: int, *, margin: Any, alpha: Any, tolerance: Any = None, max_rounds: int | None = None
    ) -> None:
        self._parameters = {
            "n_features": n_features,
            "margin": defensive_copy(margin),
            "alpha": defensive_copy(alpha),
            "tolerance": defensive_copy(tolerance),
            "max_rounds": max_rounds,
        }
        self.n_features = check_count(n_features, "n_features")
        if self.n_features > MAX_FEATURES:
            raise BudgetError(f"n_features must be at most 2**14; got {short_repr(n_features)}")
        self.margin = open_unit_fraction(margin, "margin")
        self.alpha = open_unit_fraction(alpha, "alpha")
        if tolerance is None:
            self.tolerance = self.margin * self.alpha / (8 * _root_above(self.n_features))
        else:
            self.tolerance = open_unit_fraction(tolerance, "tolerance")
            if self.tolerance >= self.alpha:
                raise ValueError(f"tolerance must be below alpha; got {tolerance} and {alpha}")
        enough = int(Fraction(196, 45) / (self.margin**2 * self.alpha))
        self.max_rounds = enough if max_rounds is None else check_count(max_rounds, "max_rounds")
        self.max_queries = (self.n_features + 1) * self.max_rounds
        # Every round moves a weight by at most 1.
        self._most = self.max_rounds * self.intervals
        self._base = 2 * self._most + 1
        self.hypothesis_bits = bits_of_digits(self.n_features, self._base)
        self.default: Weights = (0,) * self.n_features

    def points(self, X: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows within the unit ball."""
        rows = np.nan_to_num(first_columns(X, self.n_features).astype(np.float64), nan=0.0)
        rows = np.clip(rows, -LARGEST, LARGEST)
        # Column by column: the same operations on every row, whatever its neighbors are.
        squares = np.zeros(len(rows))
        for column in rows.T:
            squares += column * column
        return np.asfortranarray(rows / np.maximum(np.sqrt(squares), 1.0)[:, np.newaxis])

    def run(self, ask: Oracle) -> Weights:
        """Add what the rows on the wrong side have in common, until they are few."""
        weights = self.default
        for _ in range(self.max_rounds):
            if ask.at_most(_wrong(weights), self.alpha - self.tolerance):
                break
            steps = (ask(_pull(weights, feature)) for feature in range(self.n_features))
            weights = tuple(weight + int(step * self.intervals) for weight, step in zip(weights, steps, strict=True))
        return weights

    def predict(self, hypothesis: Weights, X: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Whether w.x > 0."""
        return _product(hypothesis, self.points(X)) > 0

    def encode(self, hypothesis: Weights) -> bytes:
        """The weights as one number, with a digit for each."""
        return bytes_of_digits(tuple(weight + self._most for weight in hypothesis), self._base)

    def decode(self, item: bytes) -> Weights:
        """The weights of some bytes; all 0 for bytes that stand for none."""
        digits = digits_of_bytes(item, self.n_features, self._base)
        return self.default if digits is None else tuple(digit - self._most for digit in digits)

    def describe(self, hypothesis: Weights) -> str:
        """The inequality."""
        terms = [f"{weight} x{feature}" for feature, weight in enumerate(hypothesis) if weight]
        return f"{' + '.join(terms) or '0'} > 0".replace("+ -", "- ")

    def _arguments(self) -> dict[str, Any]:
        return dict(self._parameters)


def _root_above(number: int) -> Fraction:
    """A rational at or just above the square root."""
    root = isqrt(number << 40)
    return Fraction(root if root * root == number << 40 else root + 1, 1 << 20)


def _product(weights: Weights, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """w.x for every row, column by column: see `points`."""
    product: npt.NDArray[Any] = np.zeros(len(rows))
    for weight, column in zip(weights, rows.T, strict=True):
        product += float(weight) * column
    return product


def _signs(labels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    return 2.0 * labels - 1.0


def _wrong(weights: Weights) -> StatisticalQuery:
    """Whether a row is on the wrong side, or on the border."""
    return lambda rows, labels: _signs(labels) * _product(weights, rows) <= 0


def _pull(weights: Weights, feature: int) -> StatisticalQuery:
    """What a row on the wrong side adds to a weight."""
    wrong = _wrong(weights)
    return lambda rows, labels: wrong(rows, labels) * _signs(labels) * rows[:, feature]
