"""How many draws: the argument ``size`` of everything that samples."""

from __future__ import annotations

import math
import sys
from typing import Any

from userdp._numbers import is_integer, shown

__all__ = ["number_of", "shape_of"]


def shape_of(size: Any) -> tuple[int, ...]:
    """Read ``size``: an int >= 0, or a tuple of these.

    Raises
    ------
    TypeError, ValueError
        For anything else.
    """
    lengths = size if isinstance(size, tuple) else (size,)
    for length in lengths:
        if not is_integer(length):
            raise TypeError(f"size must be None, an int >= 0 or a tuple of these; got {shown(size)}")
        if length < 0:
            raise ValueError(f"size must be None, an int >= 0 or a tuple of these; got {shown(size)}")
    return tuple(int(length) for length in lengths)


def number_of(shape: tuple[int, ...]) -> int:
    """How many draws an array of this shape holds; the core refuses too many, and what is beyond its integers is."""
    return min(math.prod(shape), sys.maxsize)
