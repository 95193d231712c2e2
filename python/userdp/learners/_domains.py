"""Points of a finite domain, read from one column of numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["clamped_column", "column_of"]


def column_of(X: npt.NDArray[Any], feature: int) -> npt.NDArray[Any]:
    """One column.

    Raises
    ------
    ValueError
        When there is none: this is about the shape, not about values.
    """
    if X.ndim != 2 or X.shape[1] <= feature:
        raise ValueError(f"X must have a column {feature}; got the shape {X.shape}")
    column: npt.NDArray[Any] = X[:, feature]
    return column


def clamped_column(column: npt.NDArray[Any], first: int, last: int) -> npt.NDArray[np.int64]:
    """Any numbers as integers first, ..., last, with last < 2**62: a total map.

    Numbers outside are clamped to the ends, NaN becomes the first point, and fractions are rounded up (for integers u,
    x > u is then the same before and after).
    """
    if column.dtype.kind in "iu":
        low, high = max(first, np.iinfo(column.dtype).min), min(last, np.iinfo(column.dtype).max)
        points: npt.NDArray[np.int64] = np.clip(column, low, high).astype(np.int64)
    else:
        numbers = np.ceil(column.astype(np.float64))
        # The largest float that is not above `last` keeps the conversion to integers in range.
        highest = float(last) if float(last) <= last else math.nextafter(float(last), 0)
        within = np.clip(np.where(np.isnan(numbers), first, numbers), first, highest)
        points = np.where(numbers > highest, last, within.astype(np.int64))
    return points
