"""Enclosures by integers: e^x, logarithms, square roots, and the standard normal distribution."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

from userdp.checker import work


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
        work.afford(shift + self.high.bit_length() <= 2**24, "a level is too large to be checked")
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
    terms = bits // (bits.bit_length() + 3) + 4
    work.spend(2 * terms * work.product(bits) + 4 * work.product(x.denominator.bit_length() + bits))
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


GUARD = 24
"""Bits that logarithms and masses are computed with beyond those that are asked."""


class Logarithm:
    """Natural logarithms, enclosed in units of 2^-bits."""

    def __init__(self, bits: int) -> None:
        self.bits = bits + GUARD
        self.terms = self.bits // 18 + 2
        self.known = dict[int, tuple[int, int]]()
        self.two = self._of_quotient(2, 1)

    def of(self, low: int, high: int) -> tuple[int, int]:
        """The logarithms of y > 0 from low to high, in the same units."""
        low, high = low << GUARD, high << GUARD
        bits, size = self.bits, low.bit_length()
        # low = 2^size m 2^-bits, and j / 512 <= m < (j + 1) / 512 for the leading digits j.
        shift = size - 9
        j = low >> shift if shift >= 0 else low << -shift
        if j not in self.known:
            self.known[j] = self._of_quotient(j, 512)
        near = j << shift if shift >= 0 else j >> -shift
        # ln(m / (j / 512)) = 2 atanh s with s < 2^-9.
        s = ((low - near) << bits) // (low + near)
        most = self._inverse_tangent(s, self.terms)
        power, (known_low, known_high) = size - bits, self.known[j]
        two_low, two_high = (power * end for end in (self.two if power >= 0 else self.two[::-1]))
        # The logarithm rises by less than (high - low) / low.
        rise = -((-(high - low) << bits) // low) if high > low else 0
        return (two_low + known_low + most[0]) >> GUARD, -(-(two_high + known_high + most[1] + rise) >> GUARD)

    def _of_quotient(self, a: int, b: int) -> tuple[int, int]:
        """ln(a / b) for a, b within a factor of 2 of each other."""
        if a < b:
            low, high = self._of_quotient(b, a)
            return -high, -low
        # s <= 1/3.
        return self._inverse_tangent(((a - b) << self.bits) // (a + b), self.bits // 3 + 2)

    def _inverse_tangent(self, s: int, terms: int) -> tuple[int, int]:
        """2 atanh of what is from s to s + 1 units: s + s^3 / 3 + s^5 / 5 + ..."""
        bits = self.bits
        square, power, total = s * s >> bits, s, s
        for n in range(3, 2 * terms + 1, 2):
            power = power * square >> bits
            total += power // n
        # Floors take less than 2 units from each power, and less than 2 from each term. s may be a unit more, which
        # adds at most 9/8, and all that follows the last term is below another unit.
        return 2 * total, 2 * (total + 2 * terms + 3)


class Normal:
    """The standard normal distribution, enclosed in units of 2^-bits."""

    def __init__(self, bits: int) -> None:
        bits += GUARD
        self.bits = bits
        # pi = 16 atan(1/5) - 4 atan(1/239).
        guard = bits + 32
        (a_low, a_high), (b_low, b_high) = _arctangent(5, guard), _arctangent(239, guard)
        low, high = 16 * a_low - 4 * b_high, 16 * a_high - 4 * b_low
        root = Near(math.isqrt(2 * low << guard), math.isqrt(2 * high << guard) + 1, guard)
        self.scale = root.inverse(guard)
        """1 / sqrt(2 pi)"""

    def below(self, low: int, high: int) -> tuple[int, int]:
        """Phi(x) for x from low to high, in units of 2^-bits."""
        half, guarded = 1 << self.bits - 1, (low << GUARD, high << GUARD)
        nearer, farther = guarded if low >= 0 else (-guarded[1], -guarded[0])
        if nearer < 0:
            # 0 is inside, and Phi rises by less than half of what its argument does.
            ends = half + (guarded[0] >> 1), half + (guarded[1] >> 1)
        else:
            inside = self._between(nearer)
            most = min(inside[1] + (farther - nearer + 1 >> 1), half)
            ends = (half + inside[0], half + most) if low >= 0 else (half - most, half - inside[0])
        return ends[0] >> GUARD, -(-ends[1] >> GUARD)

    def _density(self, square: Fraction) -> Near:
        """The density at x, by x^2."""
        return exponential(-square / 2, self.bits + 8).times(self.scale, self.bits + 8)

    def _between(self, x: int) -> tuple[int, int]:
        """phi(x) (x + x^3 / 3 + x^5 / 15 + ...), the mass between 0 and x >= 0 in units of 2^-bits."""
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
        density = self._density(Fraction(square, 1 << 2 * bits))
        shift = density.places
        return low * density.low >> shift, -(-high * density.high >> shift)


class Center(NamedTuple):
    """A number c: the mass between 0 and c, phi(c), and He_n(c) (-1)^n / (n! (n + 1)) for n = 0, 1, ..."""

    mass: tuple[int, int]
    density: tuple[int, int]
    coefficients: list[int]


class NormalTable(Normal):
    """The same for many arguments.

    From a center c = j / 32 on, Phi(c + d) - Phi(c) = phi(c) times the integral of e^(-c u - u^2 / 2) over [0, d]: its
    Taylor polynomial has Hermite's as coefficients.
    """

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        # By Cramer |He_n(c)| phi(c) < sqrt(n!) / 2: from the term at n on the rest is below d^(n + 1) / sqrt(n!).
        enough = self.bits + 4
        self.terms = next(n for n in itertools.count(8) if 5 * (n + 1) + math.lgamma(n + 1) / 1.4 > enough)
        # Beyond this, e^(-x^2 / 2) is below a unit, and so is the mass above x.
        self.farthest = (math.isqrt(math.ceil(1.4 * self.bits)) + 1) << self.bits
        self.known = dict[int, Center]()

    def _center(self, j: int) -> Center:
        bits = self.bits
        # b_n = He_n(c) (-1)^n / n! by (n + 1) b_(n+1) = -c b_n - b_(n-1), as b_n = whole_n / (32^n n!).
        before, here, scale, coefficients = 0, 1, 1, []
        for n in range(self.terms):
            coefficients.append((here << bits) // (scale * (n + 1)))
            before, here = here, -j * here - n * 1024 * before
            scale *= 32 * (n + 1)
        density = self._density(Fraction(j * j, 1024)).units(bits)
        return Center(super()._between(j << bits - 5), density, coefficients)

    def _between(self, x: int) -> tuple[int, int]:
        bits, half = self.bits, 1 << self.bits - 1
        if x >= self.farthest:
            return half - 1, half
        j = x >> bits - 5
        if j not in self.known:
            self.known[j] = self._center(j)
        center, d, total = self.known[j], x - (j << bits - 5), 0
        for coefficient in reversed(center.coefficients):
            total = coefficient + (total * d >> bits)
        total = total * d >> bits
        # Floors make coefficients and products short by less than a unit each, which is less than 3 together. Terms
        # that are left out are worth less than a unit of mass, on either side.
        low = max((max(total, 0) * center.density[0] >> bits) - 1, 0)
        high = (max(total + 3, 0) * center.density[1] >> bits) + 2
        return min(center.mass[0] + low, half), min(center.mass[1] + high, half)


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
