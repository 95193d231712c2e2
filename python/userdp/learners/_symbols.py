"""Examples that are symbols 0, ..., Z-1, and how often each user has each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exceptions import BudgetError
from userdp.learners._contributions import UserData

__all__ = ["Symbols", "read_symbols"]

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


@dataclass(frozen=True)
class Symbols:
    """People's symbols.

    Attributes
    ----------
    values : ndarray of int64 with shape (rows,)
        From 0 to n_symbols - 1.
    n_symbols : int
    users : ndarray of uint32 with shape (rows,)
        Whose row it is, from 0 to n_users - 1.
    n_users, m : int
        Public: the number of users, and the most rows of one.
    """

    values: npt.NDArray[np.int64]
    n_symbols: int
    users: npt.NDArray[np.uint32]
    n_users: int
    m: int

    @classmethod
    def of(cls, data: UserData, values: npt.NDArray[np.int64], n_symbols: int) -> Symbols:
        """A symbol for each row of the data."""
        return cls(values, n_symbols, data.users, data.n_users, data.m)

    @cached_property
    def histograms(self) -> npt.NDArray[np.uint32]:
        """How often each user has each symbol, with shape (n_users, n_symbols).

        Raises
        ------
        BudgetError
            For a table that would fill gigabytes.
        """
        size = self.n_users * self.n_symbols
        if size > LARGEST_HISTOGRAMS:
            raise BudgetError(
                f"a table of {self.n_users} users and {self.n_symbols} symbols is too large (limit "
                f"{LARGEST_HISTOGRAMS} entries); merge symbols"
            )
        places = self.users.astype(np.int64) * self.n_symbols + self.values
        return np.bincount(places, minlength=size).astype(np.uint32).reshape(self.n_users, self.n_symbols)
