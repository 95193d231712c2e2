"""Privacy levels in the compiled core's form, kept while they are in use: people ask many questions at one epsilon."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from userdp import _core
from userdp._numbers import PrivacyLevel, parse_level

__all__ = ["core_level", "level_of"]


def core_level(level: PrivacyLevel) -> _core.Level:
    """The compiled core's form of a level."""
    return _core.Level(level.ratio, level.exponent)


@lru_cache(maxsize=256, typed=True)
def _remembered(epsilon: Any, name: str) -> _core.Level:
    return core_level(parse_level(epsilon, name))


def level_of(epsilon: Any, name: str = "epsilon") -> _core.Level:
    """Read epsilon, as `parse_level`, into the compiled core's form.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, when epsilon is not a finite non-negative number.
    """
    try:
        hash(epsilon)
    except TypeError:
        return core_level(parse_level(epsilon, name))
    return _remembered(epsilon, name)
