"""Tables of zeros and ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["read_table"]


def read_table(matrix: Any, shape: str) -> npt.NDArray[np.bool_]:
    """Read a 0/1 matrix.

    Parameters
    ----------
    matrix : array-like with two axes
        Entries 0 and 1, of any numeric dtype or bool.
    shape : str
        What the axes are, for messages.

    Returns
    -------
    ndarray of bool
        A copy.

    Raises
    ------
    TypeError
        For entries that are not numbers.
    ValueError
        For other entries, rows of unequal lengths, or no entries at all.
    """
    try:
        table = np.array(matrix)
    except ValueError:
        raise ValueError("matrix must have rows of one length") from None
    if table.ndim != 2 or not table.size:
        raise ValueError(f"matrix must have the shape ({shape}), neither of them 0; got the shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"matrix must have entries 0 and 1; got dtype {table.dtype}")
    if not np.all((table == 0) | (table == 1)):
        raise ValueError("matrix must have entries 0 and 1 only")
    return table.astype(np.bool_)
