"""Private values read without a chance of an error or a warning: these would tell what a person's value is.

Nor may a value decide how another person's is read. Arrays have a type before anybody's values are put in, and it is
public. Lists have none: NumPy would take one for all values, and make texts of all numbers for the sake of one text. So
the values of lists are read one by one.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt


def one_by_one(values: Any) -> Any:
    """Lists, lists of rows of one length, and frames with columns of nullable types as objects; others as they are."""
    if isinstance(values, (list, tuple)):
        if not all(isinstance(row, (list, tuple)) or getattr(row, "ndim", 0) == 1 for row in values):
            return np.fromiter(values, dtype=np.object_, count=len(values))
        widths = {len(row) for row in values}
        if len(widths) != 1:
            return values
        return np.fromiter(chain.from_iterable(values), dtype=np.object_).reshape(len(values), *widths)
    if getattr(values, "ndim", 0) == 2 and any(
        not isinstance(kind, np.dtype) for kind in getattr(values, "dtypes", ())
    ):
        return values.astype(object)
    return values


def numbers_of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of integers, bools or doubles; in arrays of other types, what is no number is NaN."""
    if values.dtype.kind in "biu":
        return values
    with silence():
        if values.dtype.kind == "f":
            return values.astype(np.float64, copy=False)
        numbers = np.fromiter(map(_number, values.ravel().tolist()), dtype=np.float64, count=values.size)
        return numbers.reshape(values.shape)


def _number(value: Any) -> float:
    try:
        return float(value)
    except Exception:  # whatever an object of some class raises
        return math.nan


def equal_to(values: npt.NDArray[Any], label: Any) -> npt.NDArray[np.bool_]:
    """Which values equal a label; those that cannot be compared do not."""
    with silence():
        if values.dtype.kind == "O":
            return np.fromiter((_equal(value, label) for value in values), dtype=np.bool_, count=len(values))
        equal = np.asarray(values == label)
    # Texts and numbers, for example, are compared as wholes.
    return equal if equal.shape == values.shape else np.zeros(values.shape, dtype=np.bool_)


def _equal(value: Any, label: Any) -> bool:
    try:
        return bool(value == label)
    except Exception:  # missing values of pandas are neither equal nor unequal
        return False


@contextmanager
def silence() -> Iterator[None]:
    """No warnings, as of numbers beyond doubles, or from objects that are compared or converted.

    And no errors of NumPy in their place, where a caller has asked for them with `numpy.seterr`.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
