"""Numbers as points of the domain 1, ..., N on which thresholds u in 0, ..., N predict whether x > u."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import check_count, short_repr

LARGEST_DOMAIN = 2**64 - 1


def read_domain_size(domain_size: Any) -> int:
    """Read N.

    Raises
    ------
    TypeError, ValueError
        Unless it is an integer in 1, ..., 2**64 - 1.
    """
    size = check_count(domain_size, "domain_size")
    if size > LARGEST_DOMAIN:
        raise ValueError(f"domain_size must be at most 2**64 - 1; got {short_repr(domain_size)}")
    return size


def points_of(numbers: npt.NDArray[Any], domain_size: int) -> npt.NDArray[np.uint64]:
    """Real numbers x as integer points: ceil(x), clamped to 1, ..., N.

    Parameters
    ----------
    numbers : ndarray of integers, floats or bools with shape (rows,)
        Private, so that nothing is refused: NaN is 1. Integers are kept exactly.
    domain_size : int
        N, at most 2**64 - 1.

    Returns
    -------
    ndarray of uint64 with shape (rows,)

    Notes
    -----
    For an integer u >= 1 that is below N, x > u exactly when the point of x is; so clamping matters at the ends only.

    Examples
    --------
    >>> points_of(np.array([-1.0, 0.5, 1.0, 1.5, 99.0, np.nan]), 10)
    array([ 1,  1,  1,  2, 10,  1], dtype=uint64)
    >>> points_of(np.array([2**63 + 1], dtype=np.uint64), 2**64 - 1).tolist() == [2**63 + 1]
    True
    """
    if numbers.dtype.kind == "f":
        return _of_floats(numbers, domain_size)
    if numbers.dtype.kind != "u":
        numbers = np.maximum(numbers.astype(np.int64), 1)
    points: npt.NDArray[np.uint64] = np.clip(numbers.astype(np.uint64), 1, np.uint64(domain_size))
    return points


def _of_floats(numbers: npt.NDArray[Any], domain_size: int) -> npt.NDArray[np.uint64]:
    # In single precision the end of the domain could be rounded to above it.
    numbers = numbers.astype(np.float64, copy=False)
    largest = float(domain_size)
    if int(largest) > domain_size:
        largest = math.nextafter(largest, 0)
    # No float is between the largest one in the domain and its end.
    above = numbers > largest
    inside = np.ceil(np.where((numbers > 1) & ~above, numbers, 1)).astype(np.uint64)
    inside[above] = domain_size
    return inside
