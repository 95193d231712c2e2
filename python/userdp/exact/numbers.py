"""Exact parameters: privacy levels, probabilities, ranges of arguments, and outward-rounded bounds.

Nothing here touches the compiled core, so reports can be checked without it.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

MAX_EXPONENT_DIGITS = 5
MAX_DIGITS = 4300
_DECIMAL_EXPONENT = re.compile(r"[eE]([+-]?[\d_]+)")
_LOGARITHM = re.compile(r"\s*ln\(([^()]*)\)\s*")


@dataclass(frozen=True, init=False, slots=True)
class LogRatio:
    """The privacy level epsilon = ln(numerator / denominator), exactly.

    Use it where e^epsilon is the rational number that the mechanism was built from, as in randomized
    response: ``LogRatio(3, 1)`` is ln 3, and no rounding separates the claim from the mechanism. Wherever a level is
    read, the texts "ln(3)" and "ln(3/2)" mean the same as ``LogRatio(3, 1)`` and ``LogRatio(3, 2)``.

    Parameters
    ----------
    numerator, denominator : int
        Integers with numerator >= denominator >= 1, so that epsilon >= 0. Kept in lowest terms.

    Examples
    --------
    >>> LogRatio(6, 2)
    LogRatio(3, 1)
    >>> round(float(LogRatio(3, 1)), 12)
    1.098612288668
    """

    numerator: int
    denominator: int

    def __init__(self, numerator: int, denominator: int = 1) -> None:
        for name, value in (("numerator", numerator), ("denominator", denominator)):
            if not is_integer(value):
                raise TypeError(f"LogRatio: {name} must be an integer, got {short_repr(value)}")
        if denominator < 1 or numerator < denominator:
            raise ValueError(
                f"LogRatio({numerator}, {denominator}): needs numerator >= denominator >= 1, so that epsilon >= 0"
            )
        ratio = Fraction(int(numerator), int(denominator))
        object.__setattr__(self, "numerator", ratio.numerator)
        object.__setattr__(self, "denominator", ratio.denominator)

    @property
    def ratio(self) -> Fraction:
        """e^epsilon as an exact fraction."""
        return Fraction(self.numerator, self.denominator)

    def __float__(self) -> float:
        """Epsilon as a float, good to about one unit in the last place; for display."""
        excess = self.numerator - self.denominator
        if excess < self.denominator:
            return math.log1p(excess / self.denominator)
        try:
            return math.log(self.numerator / self.denominator)
        except OverflowError:  # a ratio beyond all floats
            return math.log(self.numerator) - math.log(self.denominator)

    def __repr__(self) -> str:
        # Hexadecimal for numbers that Python refuses to write in decimal.
        form = "d" if self.numerator.bit_length() < 10_000 else "#x"
        return f"LogRatio({self.numerator:{form}}, {self.denominator:{form}})"


Neighbors: TypeAlias = Literal["replace", "add-remove"]
Epsilon: TypeAlias = "float | int | Fraction | str | LogRatio"
Delta: TypeAlias = "float | int | Fraction | str"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Two floats, rounded outwards, that enclose an exact number: lower <= exact <= upper.

    ``upper`` may be inf. Equal bounds mean that the number is that float.
    """

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Interval:
    """Two exact fractions around a number, equal where it is known exactly; otherwise about 2**-250 apart."""

    lower: Fraction
    upper: Fraction

    @property
    def bounds(self) -> Bounds:
        """The same as floats, rounded outwards."""
        return Bounds(round_down(self.lower), round_up(self.upper))

    def __float__(self) -> float:
        return float((self.lower + self.upper) / 2)


@dataclass(frozen=True, slots=True)
class PrivacyLevel:
    """The multiplier E = e^epsilon, held exactly as ``ratio * e**exponent`` with rational parts."""

    ratio: Fraction
    exponent: Fraction

    def __float__(self) -> float:
        """Epsilon as a float; for display."""
        if self.ratio == 1:
            return nearest_float(self.exponent)
        return float(LogRatio(self.ratio.numerator, self.ratio.denominator)) + float(self.exponent)


def short_repr(value: Any) -> str:
    """A value for a message: its repr, shortened, whatever it is."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of over 4300 digits in decimal
        return f"a {type(value).__name__} of many digits"
    return text if len(text) <= 200 else f"{text[:197]}..."


def split_text(values: Any) -> Any:
    """The parts of a text such as "1/2, 1/4, 1/4"; anything else as it is."""
    return values.split(",") if isinstance(values, str) else values


def is_integer(value: Any) -> bool:
    """Whether a value is an integer: neither a bool nor a NumPy duration, which is an integer to ``numbers``."""
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def defensive_copy(value: Any) -> Any:
    """What a number was when it was given: an array without dimensions could be changed behind its back."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def exact_number(value: Any, *, printed: bool = False) -> Fraction | None:
    """Read one real number exactly, floats as the dyadic numbers they are; None for infinities and NaN.

    With `printed` a float is the shortest decimal that it prints as: ten times 0.1 are 1.
    """
    value = defensive_copy(value)
    if printed and isinstance(value, (float, np.floating)):
        # A subclass may print as it likes.
        value = Decimal(float.__repr__(value) if isinstance(value, float) else str(value))
    if isinstance(value, np.generic):
        if isinstance(value, (np.bool_, np.datetime64, np.timedelta64)):
            raise TypeError("not a real number")
        value = value.item()
    if isinstance(value, bool):
        raise TypeError("not a real number")
    if isinstance(value, float):
        return Fraction(value) if math.isfinite(value) else None
    if isinstance(value, str):
        found = _DECIMAL_EXPONENT.search(value)
        if found and len(found[1].lstrip("+-0_")) > MAX_EXPONENT_DIGITS:
            raise ValueError("decimal exponents are limited to 5 digits")
        try:
            return Fraction(value.strip())
        except (ValueError, ZeroDivisionError):
            if len(value) > MAX_DIGITS:
                raise ValueError(f"numbers are limited to {MAX_DIGITS} digits as text; use a Fraction") from None
            raise ValueError("not a decimal number or a fraction such as '0.1' or '1/3'") from None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        if value and abs(value.adjusted()) >= 10**MAX_EXPONENT_DIGITS:
            raise ValueError("decimal exponents are limited to 5 digits")
        return Fraction(value)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    raise TypeError("not a real number")


def parse_exact(value: Any, name: str, accepted: str, *, printed: bool = False) -> Fraction:
    """Read one finite number exactly, or raise an error that names the argument."""
    try:
        number = exact_number(value, printed=printed)
    except TypeError:
        raise TypeError(f"{name} must be {accepted}; got {short_repr(value)} of type {type(value).__name__}") from None
    except ValueError as error:
        raise ValueError(f"{name}={short_repr(value)}: {error}") from None
    if number is None:
        raise ValueError(f"{name} must be finite; got {short_repr(value)}")
    return number


def parse_level(epsilon: Any, name: str = "epsilon") -> PrivacyLevel:
    """Read epsilon >= 0 exactly: a float as the decimal it prints as, the text "ln(3/2)" as `LogRatio(3, 2)`."""
    if isinstance(epsilon, LogRatio):
        return PrivacyLevel(epsilon.ratio, Fraction(0))
    if isinstance(epsilon, str) and (logarithm := _LOGARITHM.fullmatch(epsilon)):
        try:
            ratio = exact_number(logarithm[1])
        except ValueError as error:
            raise ValueError(f"{name}={short_repr(epsilon)}: {error}") from None
        if ratio is None or ratio < 1:
            raise ValueError(f"{name}={short_repr(epsilon)} is below 0, or no number; ln(x) needs x >= 1")
        return PrivacyLevel(ratio, Fraction(0))
    accepted = "a non-negative float, int, Fraction, decimal string such as '0.1', '1/3' or 'ln(3/2)', or LogRatio"
    value = parse_exact(epsilon, name, accepted, printed=True)
    if value < 0:
        raise ValueError(f"{name} must be >= 0; got {short_repr(epsilon)}")
    return PrivacyLevel(Fraction(1), value)


def nonzero_level(epsilon: Any, name: str = "epsilon") -> PrivacyLevel:
    """Read epsilon > 0 exactly."""
    level = parse_level(epsilon, name)
    if level == PrivacyLevel(Fraction(1), Fraction(0)):
        raise ValueError(f"{name} must be > 0; got {short_repr(epsilon)}")
    return level


def parse_delta(delta: Any, name: str = "delta", *, printed: bool = True) -> Fraction:
    """Read a probability in [0, 1] exactly: a float as the decimal it prints as, or as the dyadic number it is."""
    value = parse_exact(delta, name, "a float, int, Fraction or decimal string in [0, 1]", printed=printed)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1]; got {short_repr(delta)}")
    return value


def parse_positive(value: Any, name: str, *, printed: bool = False) -> Fraction:
    """Read a number above 0 exactly."""
    number = parse_exact(value, name, "a positive float, int, Fraction or decimal string", printed=printed)
    if number <= 0:
        raise ValueError(f"{name} must be > 0; got {short_repr(value)}")
    return number


def check_neighbors(neighbors: Any) -> Neighbors:
    """Read a neighbor relation."""
    if not isinstance(neighbors, str) or neighbors not in ("replace", "add-remove"):
        raise ValueError(f"neighbors must be 'replace' or 'add-remove'; got {short_repr(neighbors)}")
    return neighbors  # type: ignore[return-value]


def stated_neighbors(neighbors: Any) -> Neighbors | None:
    """Read a neighbor relation, or None where it is not stated."""
    return None if neighbors is None else check_neighbors(neighbors)


def agreed_neighbors(relations: Iterable[Neighbors | None], name: str) -> Neighbors | None:
    """The relation of all that state one: what does not is about the same by its giver's word."""
    stated = {relation for relation in relations if relation is not None}
    if len(stated) > 1:
        raise ValueError(f"{name} must be about the same neighbors; got 'replace' and 'add-remove'")
    return stated.pop() if stated else None


COUNTED = 10**300
"""Beyond this many, things are not counted."""


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Read an int within a least value and a largest one."""
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an int >= {least}; got {short_repr(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {short_repr(value)}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {'10**300' if most == COUNTED else most}; got {short_repr(value)}")
    return int(value)


def check_flag(value: Any, name: str) -> bool:
    """Read True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a bool; got {short_repr(value)}")
    return bool(value)


def check_kind(value: Any, kinds: Any, name: str, what: str = "") -> None:
    """Refuse what is no object of a class."""
    if not isinstance(value, kinds):
        raise TypeError(f"{name} must be {what or 'a ' + kinds.__name__}; got {short_repr(value)}")


def is_listed(value: Any, kinds: Any = Iterable) -> bool:
    """Whether a value lists others: an iterable, or one of these kinds, and no text."""
    return isinstance(value, kinds) and not isinstance(value, (str, bytes))


def capped_power(base: int, exponent: int, limit: int) -> int:
    """Base ** exponent for base >= 1, or some number above the limit if it is above; never long to compute."""
    result = 1
    for _ in range(exponent if base > 1 else 0):
        result *= base
        if result > limit:
            break
    return result


def counted(*powers: tuple[int, int]) -> int:
    """The product of base ** exponent, for bases >= 1, or some number above `COUNTED`; never long to compute."""
    result = 1
    for base, exponent in powers:
        result *= capped_power(base, exponent, COUNTED)
        if result > COUNTED:
            break
    return result


def capped_binomial(total: int, size: int, limit: int) -> int:
    """C(total, size), or some number above the limit if it is above; never long to compute."""
    result = 1
    for step in range(1, min(size, total - size) + 1):
        result = result * (total - step + 1) // step
        if result > limit:
            break
    return result


def least(
    holds: Callable[[int], bool], low: int, high: int, most: float | None = None, refusal: Exception | None = None
) -> int:
    """The least integer above `low` at which a predicate holds that, once true, stays true.

    It holds at `high` for sure; or, where `most` is given, `high` is doubled until it does, and more is refused.
    """
    if most is not None:
        while high <= most and not holds(high):
            low, high = high, 2 * high
        if high > most:
            raise refusal or ValueError(f"there is no such integer up to {most}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def nearest_float(x: Fraction) -> float:
    """The float nearest to x >= 0, inf for an x that is too large for them."""
    try:
        return x.numerator / x.denominator
    except OverflowError:
        return math.inf


def within_floats(x: Fraction, name: str) -> float:
    """A positive number as a float, for plans: its square and that of its inverse are floats, too."""
    if not Fraction(1, 2**300) <= x <= 2**300:
        raise ValueError(f"{name} must be from 2**-300 to 2**300; got {nearest_float(x)!r}")
    return nearest_float(x)


def round_down(x: Fraction) -> float:
    """The largest float that is not above x >= 0."""
    nearest = nearest_float(x)
    return nearest if nearest < math.inf and Fraction(nearest) <= x else math.nextafter(nearest, -math.inf)


def round_up(x: Fraction) -> float:
    """The smallest float that is not below x >= 0, inf above them all."""
    nearest = nearest_float(x)
    return nearest if nearest == math.inf or Fraction(nearest) >= x else math.nextafter(nearest, math.inf)


def printed_up(x: Fraction) -> float:
    """A float that is not below x, neither as the dyadic number it is nor as the decimal that it prints as."""
    nearest = round_up(x)
    if nearest < math.inf and exact_number(nearest, printed=True) < x:  # type: ignore[operator]
        return math.nextafter(nearest, math.inf)
    return nearest


def printed_bounds(lower: Fraction, upper: Fraction) -> Bounds:
    """Floats around, also as the decimals that they print as: whoever passes one on as a delta passes a bound."""
    low = round_down(lower)
    if exact_number(low, printed=True) > lower:  # type: ignore[operator]
        low = math.nextafter(low, 0)
    return Bounds(low, printed_up(upper))


def bits_of(number: int) -> list[int]:
    """Which bits are 1, from the lowest on: the members of a set that is written as an integer."""
    bits = []
    while number:
        lowest = number & -number
        bits.append(lowest.bit_length() - 1)
        number ^= lowest
    return bits


def clopper_pearson(successes: int, trials: int, confidence: float) -> Bounds:
    """The interval outside which the observation has probability at most (1 - confidence) / 2 on either side."""
    tail = (1 - confidence) / 2
    steps = np.arange(1, trials + 1, dtype=np.float64)
    coefficients = np.concatenate([[0.0], np.cumsum(np.log(trials + 1 - steps) - np.log(steps))])

    def at_least(p: float, k: int) -> float:
        i = np.arange(k, trials + 1)
        return float(np.exp(coefficients[k:] + i * math.log(p) + (trials - i) * math.log1p(-p)).sum())

    def lower(k: int) -> float:
        if k == 0:
            return 0.0
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if at_least(middle, k) < tail else (low, middle)
        return low

    # The upper end by what it leaves: a float has no room for a small tail below 1.
    return Bounds(lower(successes), 1 - lower(trials - successes))


def open_unit_fraction(value: Any, name: str, *, bits: int = 1000) -> Fraction:
    """Read a number strictly between 0 and 1, exactly: a float as the decimal it prints as."""
    try:
        number = exact_number(value, printed=True)
    except TypeError:
        raise TypeError(f"{name} must be a number strictly between 0 and 1; got {short_repr(value)}") from None
    except ValueError as error:
        raise ValueError(f"{name}={short_repr(value)}: {error}") from None
    if number is None or not 0 < number < 1:
        raise ValueError(f"{name} must be strictly between 0 and 1; got {short_repr(value)}")
    if number * 2**bits < 1:
        raise ValueError(f"{name} must be at least 2**-{bits}; got {short_repr(value)}")
    return number


def open_unit_interval(value: Any, name: str) -> float:
    """Read a number strictly between 0 and 1 that only utility depends on; see `open_unit_fraction`."""
    # The nearest float may be 1.
    return min(float(open_unit_fraction(value, name)), math.nextafter(1, 0))
