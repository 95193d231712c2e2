"""Numbers for readers: a few digits first, and what they stand for exactly beside them.

What bounds a privacy loss is rounded up, and a probability that is to be reached is rounded down, so that the few
digits alone never promise too much.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from typing import Literal

from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import Bounds, PrivacyLevel

DIGITS = 4
"""Of a number in words: 3.756."""
Toward = Literal["up", "down"]


def rounded(value: float) -> str:
    """The float to four significant digits, as readers write it: ``0.0003``, ``1e-06``, ``3.755``.

    For measures and drawings; what is certified is rounded by `bounded`.
    """
    return "0" if value == 0 else f"{value:.{DIGITS}g}"


def bounded(value: float | Fraction, toward: Toward = "up", digits: int = DIGITS) -> str:
    """The number to a few significant digits, none of which is on the wrong side of it; ``0`` for 0 alone.

    A float that a few digits name is written as they are: 0.1 stands for the float that is next to it.
    """
    if isinstance(value, float) and (not math.isfinite(value) or float(f"{value:.{digits}g}") == value):
        return "0" if value == 0 else f"{value:.{digits}g}"
    ratio = Fraction(value)
    rounding = ROUND_CEILING if toward == "up" else ROUND_FLOOR
    with localcontext(Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        short = context.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).normalize()
    near = abs(short.adjusted()) < 300 or short == 0  # beyond, floats have fewer digits, or none
    return f"{float(short):.{digits}g}" if near else f"{short:e}"


def few_digits(value: Fraction, digits: int = 6) -> str:
    """A fraction of any size to so many digits."""
    with localcontext(Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)) as context:
        return f"{context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize():g}"


def apart(value: Fraction, other: Fraction) -> tuple[str, str]:
    """Two numbers to as many digits as it takes to tell them apart, where they differ."""
    for digits in range(6, 41):
        one, another = few_digits(value, digits), few_digits(other, digits)
        if one != another or value == other:
            return one, another
    return fraction_text(value), fraction_text(other)


def as_float(value: float | Fraction | PrivacyLevel) -> float:
    """The nearest float, which is infinite beyond all floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if not isinstance(value, Fraction) or value > 0 else -math.inf


def number_text(value: Fraction, toward: Toward = "up") -> tuple[str, str]:
    """A fraction to a few digits, and exactly where these are not all of it."""
    if value == 0:
        return "0 exactly", ""
    nearest = as_float(value)
    if math.isinf(nearest):
        return "more than any float", fraction_text(value)
    short = f"{nearest:.6g}"
    if Fraction(short) == value:
        return short, ""
    if Fraction(nearest) == value:
        return bounded(nearest, toward), f"{nearest!r} (a float)"
    return bounded(value, toward), fraction_text(value)


def level_text(level: PrivacyLevel, toward: Toward = "up") -> tuple[str, str]:
    """An epsilon to a few digits, and exactly where these are not all of it."""
    if level.ratio == 1:
        return number_text(level.exponent, toward) if level.exponent else ("0", "")
    exact = f"ln({fraction_text(level.ratio)})" + (f" + {fraction_text(level.exponent)}" if level.exponent else "")
    beyond = math.nextafter(as_float(level), math.inf if toward == "up" else 0.0)  # than the nearest float
    return bounded(Fraction(beyond) if math.isfinite(beyond) else beyond, toward), exact


def bounds_text(bounds: Bounds) -> tuple[str, str]:
    """An enclosed number to a few digits, or both ends where the digits differ; and the enclosure."""
    low, high = bounds.lower, bounds.upper
    if low == high:
        return ("0 exactly", "") if low == 0 else (bounded(low), "" if bounded(low) == repr(low) else f"{low!r}")
    return enclosed_text(low, high), f"between {low!r} and {high!r}"


def enclosed_text(low: float | Fraction, high: float | Fraction, toward: Toward = "up", digits: int = DIGITS) -> str:
    """A few digits of a number between two, or both ends, rounded outwards, where they are too far apart for that."""
    below, above = bounded(low, "down", digits), bounded(high, "up", digits)
    close = f"{as_float(low):.{digits}g}" == f"{as_float(high):.{digits}g}" and low > 0
    return (above if toward == "up" else below) if close else f"between {below} and {above}"


def plural(number: int, noun: str) -> str:
    """A count and its noun."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def in_digits(number: int) -> str:
    """A count, in full while that can be read."""
    return f"{number:,}" if number < 10**15 else f"over 10^{len(str(min(number, 10**4000))) - 1}"
