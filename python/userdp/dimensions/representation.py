"""Representation dimensions, exactly where they are small, by linear programs over matrix games."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from userdp.dimensions.matrix import Matrix, budget_of, matrix_of, spaces_of
from userdp.exact.numbers import Bounds, Delta, parse_delta, short_repr
from userdp.exceptions import BudgetError

MAX_POINTS = 3


def parse_failure(value: Delta, name: str) -> Fraction:
    """Read a probability of failure in [0, 1)."""
    number = parse_delta(value, name)
    if number == 1:
        raise ValueError(f"{name} must be below 1; got {short_repr(value)}")
    return number


def representation_size_bounds(
    matrix: Matrix, *, alpha: Delta, beta: Delta, budget: int | None = None
) -> tuple[int, int]:
    """Bounds on `representation_size` that are proved.

    Parameters
    ----------
    matrix, alpha, beta
        As of `representation_size`, of any size.
    budget : int, optional
        As of `growth_function`.

    Returns
    -------
    (lower, upper) : tuple of int
        Equal when alpha is below 1 / (number of points), alpha = 1, or the bounds happen to meet.

    Notes
    -----
    By the growth function and by draws from the class; points that are constant, or repeat or negate another, do not
    change the size. Proof: docs/proofs/dimensions.md.

    Examples
    --------
    >>> import numpy as np
    >>> representation_size_bounds(np.tri(8, 7, -1), alpha="1/4", beta="1/4")  # thresholds on 7 points
    (3, 6)
    """
    error, failure = parse_delta(alpha, "alpha"), parse_failure(beta, "beta")
    budget = budget_of(budget)
    spaces = spaces_of(matrix)
    concepts, points = spaces.reduced_shape
    # The largest integer k < 1 / alpha, or all points.
    exact_on = points if error == 0 else min(points, math.ceil(1 / error) - 1)
    lower = math.ceil((1 - failure) * spaces.growth(exact_on, budget))
    upper = math.ceil((1 - failure) * concepts)
    if error >= Fraction(1, 2):
        upper = min(upper, 2)
    if error == 1:
        upper = 1
    return lower, upper


def representation_dimension_bounds(matrix: Matrix, *, alpha: Delta, beta: Delta, budget: int | None = None) -> Bounds:
    """Bounds on `representation_dimension` that are proved.

    Parameters
    ----------
    matrix, alpha, beta, budget
        As of `representation_size_bounds`.

    Returns
    -------
    Bounds
        The base-2 logarithms of the bounds on the size, as floats that are rounded outwards.

    References
    ----------
    [GKM21, Lemma 10].

    Examples
    --------
    >>> representation_dimension_bounds([[0, 0], [0, 1], [1, 0], [1, 1]], alpha="1/4", beta="1/2")
    Bounds(lower=1.0, upper=1.0)
    """
    lower, upper = representation_size_bounds(matrix, alpha=alpha, beta=beta, budget=budget)
    return Bounds(_log2(lower, -math.inf), _log2(upper, math.inf))


def _log2(size: int, toward: float) -> float:
    """log2, exact for powers of two and else rounded in a direction; math.log2 is good to an ulp."""
    nearest = math.log2(size)
    return nearest if size & (size - 1) == 0 else math.nextafter(math.nextafter(nearest, toward), toward)


def representation_size(matrix: Matrix, *, alpha: Delta, beta: Delta, budget: int | None = None) -> int:
    """The least size of an (alpha, beta)-probabilistic representation of a finite class.

    A representation of size s is a distribution of sets of s hypotheses, any functions from the points to 0 and 1.
    Drawn from it, with probability at least 1 - beta, a set has a hypothesis that differs from the concept with
    probability at most alpha, for every concept of the class and every distribution of points.

    Parameters
    ----------
    matrix : array-like with shape (concepts, points), or ConceptClass
        Entries 0 and 1. At most 3 points that are not constant and do not repeat or negate another, unless the bounds
        of `representation_size_bounds` meet.
    alpha : float, int, Fraction or decimal string
        The error, in [0, 1]. A float is the decimal it prints as: say "1/3" for a third.
    beta : float, int, Fraction or decimal string
        The probability of failure, in [0, 1).
    budget : int, optional
        As of `growth_function`.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    BudgetError
        For more points, with what is cheaper.

    Notes
    -----
    Decided by finitely many matrix games in exact fractions: docs/proofs/dimensions.md.

    Source: [GKM21, Definition 9] and [GKM21, Lemma 10]; Beimel, Nissim, Stemmer, "Characterizing the Sample Complexity
    of Pure Private Learners" (JMLR 20, 2019).

    Examples
    --------
    >>> thresholds = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    >>> representation_size(thresholds, alpha="1/4", beta="1/4")
    3
    >>> representation_size(thresholds, alpha="1/2", beta="1/4")
    2
    """
    lower, upper = representation_size_bounds(matrix, alpha=alpha, beta=beta, budget=budget)
    if lower == upper:
        return lower
    rows, points = _reduced(matrix)
    if points > MAX_POINTS:
        raise BudgetError(
            f"the exact size is computed for at most {MAX_POINTS} points, and the matrix has {points} that matter; it "
            f"is from {lower} to {upper}, see representation_dimension_bounds"
        )
    forgiven = _smallest_forgiven(points, parse_delta(alpha, "alpha"))
    needed = 1 - parse_failure(beta, "beta")
    # A concept and a distribution ask for one of these hypotheses.
    wanted = sorted({frozenset(row ^ wrong for wrong in family) for row in rows for family in forgiven}, key=sorted)
    for size in range(lower, upper):
        payoffs = [
            [int(not family.isdisjoint(hypotheses)) for family in wanted]
            for hypotheses in combinations(range(2**points), size)
        ]
        if game_value(payoffs)[0] >= needed:
            return size
    return upper


def representation_dimension(matrix: Matrix, *, alpha: Delta, beta: Delta, budget: int | None = None) -> float:
    """The probabilistic representation dimension of a finite class, log2 of `representation_size`.

    Parameters
    ----------
    matrix, alpha, beta, budget
        As of `representation_size`.

    Returns
    -------
    float
        At least 0.

    Examples
    --------
    >>> representation_dimension([[0, 0], [0, 1], [1, 0], [1, 1]], alpha="1/2", beta="1/4")
    1.0
    """
    return math.log2(representation_size(matrix, alpha=alpha, beta=beta, budget=budget))


def _reduced(matrix: Matrix) -> tuple[list[int], int]:
    """Distinct concepts as bits on the points that matter, and how many these are."""
    table = np.unique(matrix_of(matrix), axis=0)
    # Up to negation: labels relative to the first concept.
    columns = np.unique(table ^ table[:1], axis=1)
    columns = columns[:, columns.any(axis=0)]
    points = columns.shape[1]
    return [sum(int(bit) << point for point, bit in enumerate(row)) for row in columns], points


def _smallest_forgiven(points: int, alpha: Fraction) -> list[frozenset[int]]:
    """The inclusion-minimal families of sets of points (bit masks) that contain {g : D(g) <= alpha} for some D."""
    # The family of every D is closed under subsets and contains one of these, which contains the family of some other
    # D: to serve these families is to serve all distributions. The family of all sets forgives everything and is that
    # of no D for alpha < 1.
    masks = range(2**points)
    families: list[frozenset[int]] = []
    for family in _down_sets(points):
        if not any(smaller <= family for smaller in families):
            outside = [g for g in masks if g not in family]
            # Some D gives more than alpha to every set outside.
            game = [[g >> point & 1 for g in outside] for point in range(points)]
            if outside and game_value(game)[0] > alpha:
                families.append(family)
    return families


def _down_sets(points: int) -> Iterator[frozenset[int]]:
    """Nonempty families of sets of points that have all subsets of their members, smaller families first."""
    masks = range(2**points)
    for size in range(1, 2**points + 1):
        for members in combinations(masks, size):
            family = frozenset(members)
            if all(g & ~(1 << point) in family for g in family for point in range(points)):
                yield family


Strategy = tuple[Fraction, ...]


def game_value(payoffs: Sequence[Sequence[Fraction | int]]) -> tuple[Fraction, Strategy, Strategy]:
    """The value of a zero-sum game and a best mixed strategy of either side."""
    # With all payoffs shifted to be positive, maximize sum(y) over y >= 0 with A y <= 1 by the simplex method; the
    # optimum is 1 / value, y and the dual solution the strategies up to scale. Bland's rule keeps it from going in
    # circles.
    shift = 1 - min(min(row) for row in payoffs)
    n_rows, n_columns = len(payoffs), len(payoffs[0])
    # One row for each constraint: coefficients, slacks, right-hand side.
    tableau = [
        [Fraction(entry) + shift for entry in row] + [Fraction(int(i == j)) for j in range(n_rows)] + [Fraction(1)]
        for i, row in enumerate(payoffs)
    ]
    gains = [Fraction(1)] * n_columns + [Fraction(0)] * (n_rows + 1)
    basis = list(range(n_columns, n_columns + n_rows))
    while (entering := next((j for j, gain in enumerate(gains[:-1]) if gain > 0), None)) is not None:
        # The feasible set is bounded, since all coefficients are positive: some row limits the entering variable.
        _, _, leaving = min(
            (row[-1] / row[entering], basis[i], i) for i, row in enumerate(tableau) if row[entering] > 0
        )
        pivot = tableau[leaving][entering]
        tableau[leaving] = [entry / pivot for entry in tableau[leaving]]
        for i, row in enumerate(tableau):
            if i != leaving and row[entering]:
                factor = row[entering]
                tableau[i] = [a - factor * b if b else a for a, b in zip(row, tableau[leaving], strict=True)]
        factor = gains[entering]
        gains = [a - factor * b if b else a for a, b in zip(gains, tableau[leaving], strict=True)]
        basis[leaving] = entering
    scale = -1 / gains[-1]
    columns = [Fraction(0)] * n_columns
    for variable, row in zip(basis, tableau, strict=True):
        if variable < n_columns:
            columns[variable] = row[-1] * scale
    rows = [-gain * scale for gain in gains[n_columns:-1]]
    return scale - shift, tuple(rows), tuple(columns)
