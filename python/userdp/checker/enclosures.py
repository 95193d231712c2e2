"""Enclosures by integers: e^x, square roots, and the standard normal distribution."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

from userdp.checker.values import need


class Near(NamedTuple):
    """A positive number between low / 2^places and high / 2^places."""

    low: int
    high: int
    places: int

    @classmethod
    def of(cls, x: Fraction, bits: int) -> Near:
        shift = bits + 2 + x.denominator.bit_length() - x.numerator.bit_length()
        low, rest = divmod(x.numerator << max(shift, 0), x.denominator << max(-shift, 0))
        return cls(low, low + (rest > 0), shift)

    def rounded(self, bits: int) -> Near:
        extra = self.high.bit_length() - bits
        if extra <= 0:
            return self
        return Near(self.low >> extra, -(-self.high >> extra), self.places - extra)

    def times(self, other: Near, bits: int) -> Near:
        return Near(self.low * other.low, self.high * other.high, self.places + other.places).rounded(bits)

    def inverse(self, bits: int) -> Near:
        places = bits + 2 + self.high.bit_length()
        one = 1 << places
        return Near(one // self.high, -(-one // self.low), places - self.places)

    def power(self, exponent: int, bits: int) -> Near:
        bits += 2 * abs(exponent).bit_length() + 8
        result = Near(1, 1, 0)
        for bit in f"{abs(exponent):b}":
            result = result.times(result, bits)
            if bit == "1":
                result = result.times(self, bits)
        return result.inverse(bits) if exponent < 0 else result

    def units(self, bits: int) -> tuple[int, int]:
        """In units of 2^-bits, rounded outwards."""
        shift = bits - self.places
        need(shift + self.high.bit_length() <= 2**24, "a level is too large to be checked")
        if shift >= 0:
            return self.low << shift, self.high << shift
        return self.low >> -shift, -(-self.high >> -shift)

    def at_most(self, other: Near) -> bool:
        """Whether it certainly is."""
        shift = self.places - other.places
        if self.high.bit_length() + max(-shift, 0) > other.low.bit_length() + max(shift, 0) + 1:
            return False
        if self.high.bit_length() + max(-shift, 0) < other.low.bit_length() + max(shift, 0):
            return True
        return self.high << max(-shift, 0) <= other.low << max(shift, 0)

    def ln(self) -> float:
        """The logarithm roughly, to find indices that are checked afterwards."""
        return math.log(self.high) - self.places * math.log(2)


def exponential(x: Fraction, bits: int) -> Near:
    """Enclose e^x."""
    if x == 0:
        return Near(1, 1, 0)
    if x < 0:
        return exponential(-x, bits + 4).inverse(bits + 4)
    halvings = int(x).bit_length() + 8  # y = x / 2^halvings < 1/256
    bits += 2 * halvings + 16
    # y in units of 2^-bits; the last term, at most a unit, is more than all that follow it together.
    y_low = (x.numerator << bits) // (x.denominator << halvings)
    y_high = y_low + 1
    low = high = term_low = term_high = 1 << bits
    for n in itertools.count(1):
        term_low = term_low * y_low // n >> bits
        term_high = -(-term_high * y_high // n >> bits) + 1
        low, high = low + term_low, high + term_high
        if term_high <= 2:
            break
    near = Near(low, high + 2, bits)
    for _ in range(halvings):
        near = near.times(near, bits)
    return near


def square_root(x: Fraction, bits: int) -> Near:
    """Enclose the square root of a positive number."""
    places = bits + max(x.denominator.bit_length() - x.numerator.bit_length(), 0) + 2
    floor = math.isqrt((x.numerator << 2 * places) // x.denominator)
    return Near(floor, floor + 1, places)


class Normal:
    """The standard normal distribution, enclosed in units of 2^-bits."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        # pi = 16 atan(1/5) - 4 atan(1/239).
        guard = bits + 32
        (a_low, a_high), (b_low, b_high) = _arctangent(5, guard), _arctangent(239, guard)
        low, high = 16 * a_low - 4 * b_high, 16 * a_high - 4 * b_low
        root = Near(math.isqrt(2 * low << guard), math.isqrt(2 * high << guard) + 1, guard)
        self.density = root.inverse(guard)
        """1 / sqrt(2 pi)"""

    def below(self, x: Fraction, factor: Near) -> tuple[int, int]:
        """Phi(x factor)."""
        bits = self.bits
        ends = (abs(x.numerator) * end for end in (factor.low, factor.high))
        shift = bits - factor.places
        scaled = [end << shift if shift >= 0 else end >> -shift for end in ends]
        low, high = scaled[0] // x.denominator, scaled[1] // x.denominator + 2
        # The mass between 0 and the lower end; Phi rises by less than what its argument does.
        inner = self._between(low)
        half = 1 << bits - 1
        inside = inner[0], min(inner[1] + high - low, half)
        return (half + inside[0], half + inside[1]) if x >= 0 else (half - inside[1], half - inside[0])

    def _between(self, x: int) -> tuple[int, int]:
        """phi(x) (x + x^3 / 3 + x^5 / 15 + ...), the mass between 0 and x in units of 2^-bits."""
        bits = self.bits
        square = x * x
        square_low, square_high = square >> bits, -(-square >> bits)
        low = high = term_low = term_high = x
        for n in itertools.count(1):
            term_low = (term_low * square_low >> bits) // (2 * n + 1)
            term_high = -(-(term_high * square_high) // (2 * n + 1) >> bits)
            low, high = low + term_low, high + term_high
            # From here on a term is at most half of the one before it.
            if term_high <= 1 and square_high <= (2 * n + 3) << bits - 1:
                break
        high += term_high
        density = exponential(Fraction(-square, 1 << 2 * bits + 1), bits + 8).times(self.density, bits + 8)
        shift = density.places
        return low * density.low >> shift, -(-high * density.high >> shift)


def _arctangent(x: int, bits: int) -> tuple[int, int]:
    """Enclose atan(1 / x) in units of 2^-bits: terms alternate and fall, and each floor is off by at most a unit."""
    power, total, n = (1 << bits) // x, 0, 0
    while power:
        total += power // (2 * n + 1) if n % 2 == 0 else -(power // (2 * n + 1))
        power, n = power // (x * x), n + 1
    return total - 2 * n - 2, total + 2 * n + 2


def ceil_units(x: Fraction, bits: int) -> int:
    """A number in units of 2^-bits, rounded up."""
    return -((-x.numerator << bits) // x.denominator)
