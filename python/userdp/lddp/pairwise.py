"""Many pmfs over the same outputs: the largest divergence over all ordered pairs, and decided verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.epsilon import level_of
from userdp.exact.numbers import Delta, Epsilon, parse_delta
from userdp.exact.pmf import distinct_masses, masses_of, rows_of
from userdp.runtime import Progress, progress_bar


@dataclass(frozen=True, slots=True)
class PairwiseResult:
    """The answer to a question about all ordered pairs of N pmfs.

    Attributes
    ----------
    lower, upper : float
        Enclose the largest hockey-stick divergence over all ordered pairs.
    witness : (int, int) or None
        Rows (i, j), 0-based: the divergence of row i from row j is at least `lower`. For a question about the largest
        divergence it attains it; for a verdict that fails it exceeds delta; None for a verdict that holds, and for
        fewer than two rows.
    event : tuple of int or None
        The 0-based outputs, sorted, on which row i exceeds e^epsilon times row j.
    pairs : int
        The number of ordered pairs, N (N - 1).
    pairs_evaluated : int
        Pairs whose divergence was computed (in float64 or exactly); the others were discarded by proven bounds. Equal
        rows are looked at once.
    holds : bool or None
        The verdict; None when no delta was asked about.
    """

    lower: float
    upper: float
    witness: tuple[int, int] | None
    event: tuple[int, ...] | None
    pairs: int
    pairs_evaluated: int
    holds: bool | None = None

    def __bool__(self) -> bool:
        if self.holds is None:
            raise TypeError("no delta was asked about, so there is no verdict; compare .upper with yours")
        return self.holds


def matrix_of(pmfs: Any, name: str = "pmfs") -> tuple[_core.PmfMatrix, Sequence[int], int]:
    """Read N pmfs into the compiled core's form.

    Returns
    -------
    (PmfMatrix, sequence of int, int)
        The matrix, the row of `pmfs` that each of its rows is, and the number of rows of `pmfs`. Equal exact pmfs
        appear once.
    """
    if hasattr(pmfs, "__array__") and not isinstance(pmfs, np.ndarray):
        pmfs = np.asarray(pmfs)
    if isinstance(pmfs, np.ndarray) and pmfs.ndim == 2 and pmfs.dtype.kind == "f" and pmfs.dtype.itemsize <= 8:
        if isinstance(pmfs, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array; pass plain masses with every output present")
        if pmfs.shape[0] == 0 or pmfs.shape[1] == 0:
            raise ValueError(f"{name} is empty; at least one pmf over at least one output is needed")
        floats = np.require(pmfs, dtype=np.float64, requirements=["C", "A"])
        return _core.PmfMatrix.from_floats(floats), range(len(floats)), len(floats)
    rows = rows_of(pmfs, name)
    if not rows:
        raise ValueError(f"{name} is empty; at least one pmf is needed")
    masses, first = [], []
    seen: set[Any] = set()
    for index, row in enumerate(rows):
        read = masses_of(row, f"{name}: row {index}")
        key = distinct_masses(read)
        if key not in seen:
            seen.add(key)
            masses.append(read)
            first.append(index)
    return _core.PmfMatrix.from_masses(masses), first, len(rows)


def pairwise_max_divergence(
    pmfs: npt.ArrayLike | Any, *, epsilon: Epsilon, progress: Progress = None
) -> PairwiseResult:
    """Find the largest hockey-stick divergence over all ordered pairs of rows, exactly, with a pair that attains it.

    Parameters
    ----------
    pmfs : array-like of shape (N, k), or sequence of N pmfs of k masses
        Floats are the exact dyadic numbers they are and must sum to 1 within 1e-9 row by row; Fractions, decimal
        strings and `Pmf` rows are exact.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    progress : bool, callable or None
        As in `userdp.audit`.

    Returns
    -------
    PairwiseResult
        `lower` and `upper` are the same float or adjacent ones, unless so many pairs tie within 1e-13 that they
        were not all told apart in exact arithmetic; both bounds hold then, too, and the witness attains `lower`. Among
        pairs that tie exactly, any may be the witness.

    Raises
    ------
    BudgetError
        For over a million pairs at an epsilon beyond 277, where float64 ends.

    Notes
    -----
    Pairs are discarded by bounds that hold for whole blocks at once (separators, see docs/proofs/all_pairs.md), so
    time grows much slower than N^2 where the pmfs have structure; where they have none, all pairs go through register
    tiles in fixed point. Everything that decides is certified, and exact where floats leave a doubt.

    Examples
    --------
    >>> result = pairwise_max_divergence([["1/2", "1/2"], ["1/4", "3/4"], ["1/3", "2/3"]], epsilon=0)
    >>> result.lower, result.witness, result.event
    (0.25, (0, 1), (0,))
    """
    level = level_of(epsilon)
    matrix, origin, rows = matrix_of(pmfs)
    with progress_bar(progress, "comparing all pairs") as callback:
        found = _core.pairwise_maximum(matrix, level, Fraction(1), callback)
    if found is None or rows < 2:
        return PairwiseResult(0.0, 0.0, None, None, rows * (rows - 1), 0)
    (i, j, event), lower, upper, _, evaluated = found
    witness = _distinct(origin[i], origin[j], rows)
    return PairwiseResult(lower, upper, witness, tuple(event), rows * (rows - 1), evaluated)


def _distinct(i: int, j: int, rows: int) -> tuple[int, int]:
    """Rows that are all equal are searched as one: any other row serves as its partner."""
    return (i, j) if i != j else (i, (i + 1) % rows)


def pairwise_indistinguishable(
    pmfs: npt.ArrayLike | Any, *, epsilon: Epsilon, delta: Delta, progress: Progress = None
) -> PairwiseResult:
    """Decide whether all pairs of rows are (epsilon, delta)-indistinguishable, in both directions.

    Parameters
    ----------
    pmfs, epsilon, progress
        As for `pairwise_max_divergence`.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly. A divergence equal to delta is within it.

    Returns
    -------
    PairwiseResult
        `holds` is always True or False. When it is False, `witness` and `event` show it and the search has stopped
        early: `lower` is the witness's divergence and `upper` a proven bound on all. When it is True, `upper` is at
        most delta (rounded up) and `lower` is 0.

    Examples
    --------
    >>> pairwise_indistinguishable([[0.5, 0.5], [0.25, 0.75]], epsilon=0, delta=0.25).holds
    True
    >>> pairwise_indistinguishable([[0.5, 0.5], [0.25, 0.75]], epsilon=0, delta="0.2").witness
    (0, 1)
    """
    level, threshold = level_of(epsilon), parse_delta(delta)
    matrix, origin, rows = matrix_of(pmfs)
    with progress_bar(progress, "comparing all pairs") as callback:
        holds, lower, upper, pair, evaluated = _core.pairwise_verdict(matrix, level, threshold, callback)
    if pair is None:
        return PairwiseResult(lower, upper, None, None, rows * (rows - 1), evaluated, holds)
    i, j, event = pair
    return PairwiseResult(lower, upper, (origin[i], origin[j]), tuple(event), rows * (rows - 1), evaluated, holds)
