"""Numbers for readers: a few digits first, and what they stand for exactly beside them."""

from __future__ import annotations

import math
from fractions import Fraction

from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import Bounds, PrivacyLevel

DIGITS = 4
"""Of a number in words: 3.755."""


def rounded(value: float) -> str:
    """The float to four significant digits, as readers write it: ``0.0003``, ``1e-06``, ``3.755``."""
    return "0" if value == 0 else f"{value:.{DIGITS}g}"


def as_float(value: Fraction | PrivacyLevel) -> float:
    """The nearest float, which is infinite beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if not isinstance(value, Fraction) or value > 0 else -math.inf


def number_text(value: Fraction) -> tuple[str, str]:
    """A fraction to a few digits, and exactly where these are not all of it."""
    if value == 0:
        return "0 exactly", ""
    nearest = as_float(value)
    if math.isinf(nearest):
        return "more than any float", fraction_text(value)
    short = f"{nearest:.6g}"
    if Fraction(short) == value:
        return short, ""
    exact = f"{nearest!r} (a float)" if Fraction(nearest) == value else fraction_text(value)
    return rounded(nearest), exact


def level_text(level: PrivacyLevel) -> tuple[str, str]:
    """An epsilon to a few digits, and exactly where these are not all of it."""
    if level.ratio == 1:
        return number_text(level.exponent) if level.exponent else ("0", "")
    exact = f"ln({fraction_text(level.ratio)})" + (f" + {fraction_text(level.exponent)}" if level.exponent else "")
    return rounded(as_float(level)), exact


def bounds_text(bounds: Bounds) -> tuple[str, str]:
    """An enclosed number to a few digits, or both ends where the digits differ; and the enclosure."""
    low, high = bounds.lower, bounds.upper
    if low == high:
        return ("0 exactly", "") if low == 0 else (rounded(low), "" if rounded(low) == repr(low) else f"{low!r}")
    text = rounded(low) if rounded(low) == rounded(high) else f"between {rounded(low)} and {rounded(high)}"
    return text, f"between {low!r} and {high!r}"


def plural(number: int, noun: str) -> str:
    """A count and its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def in_digits(number: int) -> str:
    """A count, in full while that can be read."""
    return f"{number:,}" if number < 10**15 else f"over 10^{len(str(min(number, 10**4000))) - 1}"
