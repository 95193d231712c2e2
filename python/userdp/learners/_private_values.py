"""Private values read without a chance of an error or a warning: these would tell what a person's value is."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["equal_to", "numbers_of"]


def numbers_of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of integers, bools or doubles; in arrays of other types, what is no number is NaN.

    One person's text or missing value makes a whole array one of objects or of texts, so that the others' numbers are
    read from these.
    """
    if values.dtype.kind in "biu":
        return values
    with _silence():
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
    if values.dtype.kind == "O":
        with _silence():
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
def _silence() -> Iterator[None]:
    """No warnings, as of numbers beyond doubles, or from objects that are compared or converted."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield
