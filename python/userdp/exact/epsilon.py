"""Privacy levels in the compiled core, and e^x and ln x enclosed by fractions: what certified bounds are made of."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

from userdp import _core
from userdp.exact.numbers import Epsilon, LogRatio, PrivacyLevel, parse_level, round_up, short_repr

ROOT_BITS = 64
"""Significant bits kept of roots that are irrational, rounded down."""


def core_level(level: PrivacyLevel) -> _core.Level:
    """The compiled core's form of a level."""
    return _core.Level(level.ratio, level.exponent)


@lru_cache(maxsize=256, typed=True)
def _remembered(epsilon: Any, name: str) -> _core.Level:
    return core_level(parse_level(epsilon, name))


def level_of(epsilon: Any, name: str = "epsilon") -> _core.Level:
    """Read epsilon, as `parse_level`, into the compiled core's form."""
    try:
        hash(epsilon)
    except TypeError:
        return core_level(parse_level(epsilon, name))
    return _remembered(epsilon, name)


def float_above(level: PrivacyLevel) -> float:
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


BITS = 192
MAX_BITS = 2**20
MAX_EXPONENT = 2**20
KEPT_BITS = 64
SQUARE_ROOT_BITS = 256
LEAST_BOUND = Fraction(1, 2**4096)
"""No upper bound of a probability is below this; a smaller one would help nobody and be long to write."""


def is_rational(level: PrivacyLevel) -> bool:
    """Whether e^epsilon is held as a fraction."""
    return level.exponent == 0


def as_epsilon(level: PrivacyLevel) -> Fraction | LogRatio:
    """The level as callers write it; 0 is a fraction."""
    if level.ratio == 1:
        return level.exponent
    return LogRatio(level.ratio.numerator, level.ratio.denominator)


def epsilon_above(level: PrivacyLevel) -> Fraction | LogRatio:
    """As `as_epsilon`; a level with both parts, which a `LogRatio` and a number sum to, is rounded up."""
    return value_enclosure(level)[1] if level.ratio != 1 and level.exponent != 0 else as_epsilon(level)


def at_most(level: PrivacyLevel, other: PrivacyLevel) -> bool:
    """Whether one level is certainly at most another: exactly, or by enclosures where neither is simple."""
    if level.ratio == other.ratio:
        return level.exponent <= other.exponent
    if level.exponent == other.exponent:
        return level.ratio <= other.ratio
    return ln_enclosure(level.ratio / other.ratio)[1] <= other.exponent - level.exponent


def enclosure(level: PrivacyLevel, name: str) -> tuple[Fraction, Fraction]:
    """Fractions around e^epsilon, within 2^-190 of it relative to e^epsilon - 1; equal when it is rational."""
    if is_rational(level):
        return level.ratio, level.ratio
    if level.exponent >= MAX_EXPONENT:
        raise ValueError(f"{name}: e^{name} is too large to be written out; this needs {name} < {MAX_EXPONENT}")
    # A tiny epsilon needs its own leading zeros on top.
    zeros = max(0, level.exponent.denominator.bit_length() - level.exponent.numerator.bit_length())
    lower, above = _core.exp_bounds(core_level(level), min(BITS + zeros, MAX_BITS))
    return max(Fraction(1), lower), above


def upper(level: PrivacyLevel, name: str = "epsilon") -> Fraction:
    """A fraction at or just above e^epsilon."""
    return enclosure(level, name)[1]


def value_enclosure(level: PrivacyLevel) -> tuple[Fraction, Fraction]:
    """Fractions around epsilon itself; equal unless it is the logarithm of a fraction above 1."""
    lower, above = ln_enclosure(level.ratio)
    if not lower:  # ln r below all floats: at least 1 - 1 / r, which is 0 for r = 1 only
        lower = 1 - 1 / level.ratio
    return lower + level.exponent, above + level.exponent


def ln_enclosure(x: Fraction) -> tuple[Fraction, Fraction]:
    """Fractions around ln x for x > 0, adjacent floats or equal."""
    lower, above = _core.ln_bounds(x)
    return Fraction(lower), Fraction(above)


def ln_float(x: Fraction) -> float:
    """About ln x for x > 0 of any size; proposes, never certifies."""
    return math.log(x.numerator) - math.log(x.denominator)


def exp_above(exponent: Fraction) -> Fraction:
    """A fraction at or above e^exponent for exponent <= 0, and at or above `LEAST_BOUND`."""
    if exponent <= -3000:  # below LEAST_BOUND, whose logarithm is -2839.1
        return LEAST_BOUND
    lower, _ = _core.exp_bounds(core_level(PrivacyLevel(Fraction(1), -exponent)), BITS)
    return max(LEAST_BOUND, shortened(1 / lower, up=True))


def shortened(x: Fraction, *, up: bool, bits: int = KEPT_BITS) -> Fraction:
    """X > 0 rounded to a fraction with a numerator of so many bits and a power of two; as it is when it is shorter."""
    shift = bits + x.denominator.bit_length() - x.numerator.bit_length()
    scaled = x * (1 << shift) if shift >= 0 else x / (1 << -shift)
    whole = math.ceil(scaled) if up else math.floor(scaled)
    if scaled == whole:
        return x
    return Fraction(whole, 1 << shift) if shift >= 0 else Fraction(whole << -shift)


def root_above(x: Fraction) -> Fraction:
    """A fraction just above the square root of x >= 0, by at most 2^-255."""
    return Fraction(math.isqrt(math.ceil(x * (1 << 2 * SQUARE_ROOT_BITS))) + 1, 1 << SQUARE_ROOT_BITS)


def rational_below(epsilon: Fraction | LogRatio) -> Fraction:
    """A fraction at or just below epsilon."""
    if isinstance(epsilon, Fraction):
        return epsilon
    lower, _ = _core.ln_bounds(epsilon.ratio)
    # ln r >= 1 - 1/r, where floats end.
    return Fraction(lower) or 1 - 1 / epsilon.ratio


def positive_epsilon(epsilon: Epsilon) -> Fraction | LogRatio:
    """Read a positive epsilon, as the exact number that it is."""
    level = parse_level(epsilon)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError("epsilon must be > 0: an output at epsilon = 0 cannot depend on the data")
    return as_epsilon(level)


def planned_epsilon(epsilon: Epsilon) -> Fraction | LogRatio:
    """As `positive_epsilon`, for plans that compute with floats which epsilon to spend where."""
    exact = positive_epsilon(epsilon)
    if not 2.0**-300 <= float(parse_level(exact)) <= 2.0**300:
        raise ValueError(f"epsilon must be from 2**-300 to 2**300; got {short_repr(epsilon)}")
    return exact
