"""Privacy levels in the compiled core's form, kept while they are in use: people ask many questions at one epsilon."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any

from userdp import _core
from userdp._numbers import LogRatio, PrivacyLevel, parse_level, round_up

__all__ = ["ROOT_BITS", "as_epsilon", "core_level", "epsilon_above", "level_of", "level_root"]

ROOT_BITS = 64
"""Significant bits kept of roots that are irrational, rounded down."""


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


def as_epsilon(level: PrivacyLevel) -> Fraction | LogRatio:
    """The level as people write it."""
    if level.exponent:
        return level.exponent
    return LogRatio(level.ratio.numerator, level.ratio.denominator)


def epsilon_above(level: PrivacyLevel) -> float:
    """Epsilon rounded up to a float; for a `LogRatio` the upper end of a narrow enclosure."""
    return round_up(level.exponent) if level.ratio == 1 else _core.ln_bounds(level.ratio)[1]


def level_root(level: PrivacyLevel, degree: int) -> PrivacyLevel:
    """The level of epsilon / degree: exact if e^epsilon is a power of e or the root is rational, else rounded down."""
    if level.exponent:
        return PrivacyLevel(Fraction(1), level.exponent / degree)
    top, bottom = level.ratio.numerator, level.ratio.denominator
    exact = Fraction(_integer_root(top, degree), _integer_root(bottom, degree))
    if exact**degree == level.ratio:
        return PrivacyLevel(exact, Fraction(0))
    # Enough bits to tell the root from 1 however small epsilon is.
    bits = ROOT_BITS + (bottom // (top - bottom)).bit_length() + degree.bit_length()
    return PrivacyLevel(Fraction(_integer_root((top << degree * bits) // bottom, degree), 1 << bits), Fraction(0))


def _integer_root(value: int, degree: int) -> int:
    """Largest r with r^degree <= value, by Newton's method from above."""
    root = 1 << -(-value.bit_length() // degree)
    while True:
        step = ((degree - 1) * root + value // root ** (degree - 1)) // degree
        if step >= root:
            return root
        root = step
