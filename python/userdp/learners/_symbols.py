"""Examples that are symbols 0, ..., Z-1, and how often each user has each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exceptions import BudgetError

__all__ = ["histograms", "read_symbols"]

LARGEST_HISTOGRAMS = 2**28
"""Users times symbols."""


def read_symbols(rows: npt.NDArray[Any], n_symbols: int, n_columns: int, on_invalid: str) -> npt.NDArray[np.int64]:
    """Columns of symbols; what is not one of 0, ..., n_symbols - 1 becomes 0, the public default.

    Raises
    ------
    ValueError
        For another number of columns; for bad symbols if on_invalid is "raise", which is not private.
    """
    if rows.ndim != 2 or rows.shape[1] != n_columns:
        raise ValueError(f"X must have {n_columns} columns of symbols below {n_symbols}; got the shape {rows.shape}")
    with np.errstate(invalid="ignore"):
        # Comparisons with NaN are false.
        valid = (rows >= 0) & (rows < n_symbols) & (rows == np.floor(rows))
    if on_invalid == "raise" and not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(f"X: {rows[row, column]} in row {row} is not one of the symbols 0, ..., {n_symbols - 1}")
    symbols: npt.NDArray[np.int64] = np.where(valid, rows, 0).astype(np.int64)
    return symbols


def histograms(
    symbols: npt.NDArray[np.int64], users: npt.NDArray[np.uint32], n_users: int, n_symbols: int
) -> npt.NDArray[np.int64]:
    """How often each user has each symbol, with shape (n_users, n_symbols).

    Raises
    ------
    BudgetError
        For a table that would fill gigabytes.
    """
    if n_users * n_symbols > LARGEST_HISTOGRAMS:
        raise BudgetError(
            f"a table of {n_users} users and {n_symbols} symbols is too large (limit {LARGEST_HISTOGRAMS} entries); "
            "merge symbols"
        )
    places = users.astype(np.int64) * n_symbols + symbols
    return np.bincount(places, minlength=n_users * n_symbols).astype(np.int64).reshape(n_users, n_symbols)
