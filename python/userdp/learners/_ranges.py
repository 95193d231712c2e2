"""Ranges of public parameters that the learners share."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from userdp._numbers import exact_number, shown

__all__ = ["open_unit_fraction", "open_unit_interval"]


def open_unit_fraction(value: Any, name: str, *, bits: int = 1000) -> Fraction:
    """Read a number strictly between 0 and 1, exactly.

    Raises
    ------
    TypeError, ValueError
        Naming the argument; also for numbers below 2**-bits.
    """
    try:
        number = exact_number(value)
    except TypeError:
        raise TypeError(f"{name} must be a number strictly between 0 and 1; got {shown(value)}") from None
    except ValueError as error:
        raise ValueError(f"{name}={shown(value)}: {error}") from None
    if number is None or not 0 < number < 1:
        raise ValueError(f"{name} must be strictly between 0 and 1; got {shown(value)}")
    if number * 2**bits < 1:
        raise ValueError(f"{name} must be at least 2**-{bits}; got {shown(value)}")
    return number


def open_unit_interval(value: Any, name: str) -> float:
    """Read a number strictly between 0 and 1 that only utility depends on; see `open_unit_fraction`."""
    # The nearest float may be 1.
    return min(float(open_unit_fraction(value, name)), math.nextafter(1, 0))
