"""User-level integer scores over finite lists of hypotheses, and how many users make errors trustworthy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import (
    COUNTED,
    check_count,
    check_flag,
    least,
    open_unit_fraction,
    open_unit_interval,
    short_repr,
    within_floats,
)
from userdp.exceptions import BudgetError
from userdp.users.containers import have_labels, read_classes, read_labels, rows_in
from userdp.users.table import encode_users

MAX_COMPARISONS = 10**14
"""Pairs times users. At the rates measured on one core with AVX-512 these are half an hour for numbers of 8 bits, an
hour and a quarter for 16 and a day for 32; other machines: a guess. A limit by shape, as the numbers are private."""

BINARY = read_classes((0, 1))

MAX_BYTES = 2**33
"""Of counts, or of predictions: a guess at what fits."""


def user_level_errors(
    predictions: Any, y: Any, *, groups: Any, m: int, scaled: bool = True
) -> npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]:
    """Count every user's mistakes under every hypothesis.

    Parameters
    ----------
    predictions : array-like with shape (K, rows)
        What each of K hypotheses says about each row, 0 or 1.
    y : array-like with shape (rows,)
        Labels, 0 or 1. Rows with any other do not count, as if they had not been given.
    groups : array-like with shape (rows,)
        User ids: texts, bytes, numbers, bools, dates, times, UUIDs, or tuples of these. Rows without one are left out.
    m : int
        The most rows of a user, >= 1, public; see `bound_contributions`.
    scaled : bool
        Whether users with fewer than m rows count by rate, as for scores that count users. False counts plain mistakes,
        as for sums of differences.

    Returns
    -------
    ndarray of uint8, uint16 or uint32 with shape (K, users)
        Of the smallest type that holds m. A user with r rows and w mistakes has the count ceil(w m / r), in 0..m, or
        plainly w; these are equal for r = m. Users are in the order of their ids: integers by size, then all others.

    Raises
    ------
    BudgetError
        For more than 2^33 bytes of counts or predictions.

    Notes
    -----
    The counts of a user depend on the rows of this user only: replacing a user changes one column. So the number of
    users whose count is above t changes by at most 1, and `clipped_pairwise_scores` by at most 2 min(tau, m).

    Examples
    --------
    Ann has two rows, of which the first hypothesis gets one wrong; bob's only row counts like two.

    >>> predictions, y, groups = [[0, 1, 1], [0, 0, 0]], [0, 0, 0], ["ann", "ann", "bob"]
    >>> user_level_errors(predictions, y, groups=groups, m=2)
    array([[1, 2],
           [0, 0]], dtype=uint8)
    >>> user_level_errors(predictions, y, groups=groups, m=2, scaled=False).tolist()
    [[1, 1], [0, 0]]
    """
    most = check_count(m, "m")
    if most >= 2**31:
        raise ValueError(f"m must be below 2^31; got {short_repr(m)}")
    check_flag(scaled, "scaled")
    table = _binary(predictions, "predictions")
    labels = read_labels(y, BINARY, rows_in(y, "y"))
    if table.shape[1] != len(labels):
        raise ValueError(f"predictions has {table.shape[1]} columns for {len(labels)} labels in y; one each is needed")
    users = encode_users(groups, len(labels))
    counted = have_labels(labels)
    codes = users.codes[users.of(counted)]
    if users.owned is not None:
        counted &= users.owned
    if not counted.all():
        table, labels = np.ascontiguousarray(table[:, counted]), labels[counted]
    # A row takes 32 bytes for any number of hypotheses up to 256.
    size = max(len(table) * users.n_users * np.min_scalar_type(most).itemsize, max(len(table), 32) * len(labels))
    if size > MAX_BYTES:
        raise BudgetError(
            f"{len(table)} hypotheses on {len(labels)} rows of {users.n_users} users: {size:.2g} bytes, more than "
            f"{MAX_BYTES:.2g}; take fewer hypotheses at a time, fewer rows, or m below 256 or 65536"
        )
    points = np.arange(len(labels), dtype=np.uint32)
    return _core.user_errors(table, labels, (points, codes, users.n_users, most), bool(scaled))


def clipped_pairwise_scores(counts: Any, tau: int) -> npt.NDArray[np.int64]:
    """Score candidates by clipped sums against all others (GKKMMZ23, Appendix E.1).

    The score of candidate a is the largest, over b != a, of ``sum_i clip(counts[a, i] - counts[b, i], -tau, tau)``,
    exactly; 0 for a single candidate. Lower is better: if the counts are mistakes, no other candidate then makes much
    fewer of them.

    Parameters
    ----------
    counts : array-like of integers with shape (K, users)
        What speaks against each candidate, by user, such as mistakes. Those that fit 8 bits are by far the fastest.
    tau : int
        Where the difference of a user is clipped, >= 1.

    Returns
    -------
    ndarray of int64 with shape (K,)

    Raises
    ------
    BudgetError
        For more than 10^14 pairs of candidates times users.

    Notes
    -----
    **Sensitivity 2 min(tau, m)** where every user's counts are in 0..m: replacing a user replaces one clipped
    difference in -min(tau, m)..min(tau, m) of every sum by another, and a maximum over the same candidates moves by no
    more than the largest of what it is taken of. Exact integers throughout; for the exponential mechanism.

    Examples
    --------
    >>> clipped_pairwise_scores([[0, 3, 1], [2, 2, 2]], tau=1)
    array([-1,  1])
    """
    matrix = _array(counts, "counts")
    if matrix.ndim != 2 or not matrix.size:
        raise ValueError(f"counts must be a matrix with at least one row and one column; got shape {matrix.shape}")
    if matrix.dtype.kind not in "iu":
        raise TypeError(f"counts must be integers; got dtype {matrix.dtype}")
    clip = check_count(tau, "tau")
    candidates, users = matrix.shape
    if candidates * (candidates - 1) // 2 * users > MAX_COMPARISONS:
        raise BudgetError(
            f"{candidates} candidates and {users} users: {candidates * (candidates - 1) // 2 * users:.2g} clipped "
            f"differences, more than {MAX_COMPARISONS:.2g}; take fewer candidates, such as one for each of the sets of "
            "hypotheses that are close to each other"
        )
    return _core.clipped_pairwise_scores(_contiguous(_narrow(matrix)), min(clip, 2**32))


def _array(values: Any, name: str) -> npt.NDArray[Any]:
    """Numbers as an array, none of them masked."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill in the masked values first")
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be an array; got rows of different lengths") from None


def _binary(values: Any, name: str) -> npt.NDArray[np.uint8]:
    """Zeros and ones as bytes."""
    array = _array(values, name)
    if array.ndim != 2 or not len(array):
        raise ValueError(f"{name} must be a matrix with at least one row of zeros and ones; got shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be zeros and ones; got dtype {array.dtype}")
    # Integers are compared by their ends, which needs no other matrix of this size.
    whole = array.dtype.kind in "biu" or bool(np.all(array == np.floor(array)))
    if array.size and not (whole and array.min() >= 0 and array.max() <= 1):
        raise ValueError(f"{name} must be zeros and ones; got other numbers")
    return _contiguous(array.astype(np.uint8, copy=False))


def _narrow(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same integers in the fewest of 8, 16 or 32 bits."""
    if matrix.dtype.itemsize == 1:
        return matrix
    low, high = int(matrix.min()), int(matrix.max())
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4"):
        ends = np.iinfo(dtype)
        if ends.min <= low and high <= ends.max:
            return matrix.astype(dtype)
    raise ValueError("counts must all fit 32 bits, with or without a sign")


def _contiguous(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Native byte order, row after row."""
    return np.require(matrix, dtype=matrix.dtype.newbyteorder("="), requirements=["C", "A"])


MOST_USERS = 2**1000


@dataclass(frozen=True)
class UniformConvergence:
    """Numbers of users that are enough, by several proofs; made by `uniform_convergence_users`.

    Attributes
    ----------
    single_row : int
        For m = 1, [LWY24, Lemma 3.1]: 576 (4 d + ln(8 / beta)) / alpha**2.
    agnostic : int
        For errors above t, [LWY24, Lemma 4.3]: 64 (d ln(128 m / alpha**2) + ln(8 / beta)) / alpha**2.
    disagreement : int
        For disagreements, in which errors near 0 count less, [LWY24, Lemma 4.4]:
        96 (2 d ln(384 m / alpha) + ln(4 / beta)) / alpha.
    sharper : int
        The least n from which on 4 Pi(2 n m) e**(-alpha**2 n / (16 (1 + alpha / 2))) <= beta / 2, with the bound of
        Sauer's lemma on the growth function, Pi(N) <= (e N / d)**d: the inequality behind `agnostic`, solved.
    """

    single_row: int
    agnostic: int
    disagreement: int
    sharper: int


def uniform_convergence_users(vc_dimension: int, *, m: int, alpha: float, beta: float) -> UniformConvergence:
    """Users for which every hypothesis has nearly its true error, with the constants of the theorems.

    Parameters
    ----------
    vc_dimension : int
        d >= 0, of the class.
    m : int
        Rows of each user, >= 1.
    alpha, beta : float
        Accuracy and failure probability, in (0, 1).

    Raises
    ------
    BudgetError
        For numbers of users beyond 2**1000.

    Notes
    -----
    Public numbers in, public numbers out: nothing here sees data. These are the sizes that proofs ask for; practice
    needs hundreds of times fewer, see docs/performance.md. Never compare them with a private number of users.

    References
    ----------
    Li, Wang, Ye (2024): [LWY24, Lemma 3.1], [LWY24, Lemma 3.2], [LWY24, Lemma 4.3] and [LWY24, Lemma 4.4]. The
    sharper size is by [LWY24, Lemma 4.2] and [LWY24, Lemma A.2].

    Examples
    --------
    >>> uniform_convergence_users(1, m=1, alpha=0.1, beta=0.05)
    UniformConvergence(single_row=522731, agnostic=93008, disagreement=20053, sharper=28611)
    """
    d, rows = check_count(vc_dimension, "vc_dimension", 0, most=COUNTED), check_count(m, "m", most=COUNTED)
    width, failure = within_floats(open_unit_fraction(alpha, "alpha"), "alpha"), open_unit_interval(beta, "beta")
    square = width * width

    def growth(size: int) -> float:
        """The logarithm of Sauer's bound."""
        if d == 0:
            return 0.0
        return size * math.log(2) if size < d else d * (1 + math.log(size) - math.log(d))

    def enough(n: int) -> bool:
        decay = square * n / (16 * (1 + width / 2))
        return math.log(4) + growth(2 * n * rows) - decay <= math.log(failure / 2)

    return UniformConvergence(
        single_row=math.ceil(576 / square * (4 * d + math.log(8 / failure))),
        agnostic=math.ceil(64 / square * (d * math.log(128 * rows / square) + math.log(8 / failure))),
        disagreement=math.ceil(96 / width * (2 * d * math.log(384 * rows / width) + math.log(4 / failure))),
        sharper=least(enough, 0, 1, MOST_USERS, BudgetError("more than 2**1000 users would be needed; raise alpha")),
    )
