"""The discrete Gaussian distribution and its trials by their definitions, in fractions and integers.

No import of userdp.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from oracle.divergence import exp_bounds

WHOLE = 2**128


def decay_bounds(x: int, sigma_squared: Fraction, bits: int = 400) -> tuple[Fraction, Fraction]:
    """Fractions around e^(-x^2 / (2 sigma^2))."""
    low, high = exp_bounds(x * x / (2 * sigma_squared), bits)
    return 1 / high, 1 / low


def ideal_weights(sigma_squared: Fraction, reach: int) -> list[Fraction]:
    """e^(-x^2 / (2 sigma^2)) for x = -reach, ..., reach, to 2^-390."""
    half = [Fraction(math.floor(decay_bounds(x, sigma_squared)[0] * 2**390), 2**390) for x in range(reach + 1)]
    return half[:0:-1] + half


def ln_two(bits: int = 500) -> tuple[Fraction, Fraction]:
    """Fractions around ln 2 = sum of 1 / (n 2^n)."""
    low = sum((1 << bits) // (n << n) for n in range(1, bits))
    return Fraction(low, 1 << bits), Fraction(low + bits + 2, 1 << bits)


def floor_of(low: Fraction, high: Fraction) -> int:
    """The floor of a number between these."""
    assert math.floor(low) == math.floor(high), "the reference is not precise enough for this case"
    return math.floor(low)


TAYLOR: list[int] = []
for power in range(28):
    TAYLOR.append(floor_of(*(2**127 * end**power / math.factorial(power) for end in ln_two())))


def power_of_two(fraction: int) -> int:
    """2^127 2^(-fraction / 2^128), by Horner's rule."""
    found, cut = TAYLOR[27], fraction >> 64
    for coefficient in TAYLOR[26:18:-1]:
        found = coefficient - (found * cut >> 64)
    for coefficient in TAYLOR[18::-1]:
        found = coefficient - (found * fraction >> 128)
    return found


@dataclass
class Noise:
    sigma_squared: Fraction

    @cached_property
    def cell(self) -> int:
        """The largest power of 2 that is at most sigma, or 1."""
        cell = 1
        while (2 * cell) ** 2 <= self.sigma_squared:
            cell *= 2
        return cell

    @cached_property
    def masses(self) -> list[int]:
        """How many of the 2^128 words lead to each cell."""
        ideal: list[int] = []
        while (len(ideal) * self.cell) ** 2 < 139 * self.sigma_squared:
            low, high = decay_bounds(len(ideal) * self.cell, self.sigma_squared)
            ideal.append(floor_of(low * 2**192, high * 2**192))
        masses = [mass * WHOLE // sum(ideal) for mass in ideal]
        masses[0] += WHOLE - sum(masses)
        return masses

    @cached_property
    def rate(self) -> tuple[int, int]:
        """2^(250 - places) / (2 sigma^2 ln 2) as a whole number of 128 bits, and places."""
        ends = [2**249 / (self.sigma_squared * end) for end in reversed(ln_two())]
        places = math.floor(ends[0]).bit_length() - 128
        return floor_of(*(end / 2**places for end in ends)), places

    def accepting(self, x: int) -> int:
        """How many of the 2^127 words accept the magnitude x."""
        if self.cell == 1:
            return 2**127
        start = x // self.cell * self.cell
        rate, places = self.rate
        exponent = (x * x - start * start << places) * rate >> 128
        whole, fraction = divmod(exponent, 2**122)
        return power_of_two(fraction << 6) >> whole

    def weights(self) -> list[int]:
        """The weights of 0, 1, ..., the largest |x|."""
        return [
            mass * self.accepting(k * self.cell + low) for k, mass in enumerate(self.masses) for low in range(self.cell)
        ]

    def draws(self, trials: Sequence[bytes]) -> Iterator[int]:
        """The noise of those trials that are accepted."""
        ends = list(accumulate(self.masses))
        for trial in trials:
            bits, low, word = (int.from_bytes(trial[a:b], "little") for a, b in ((0, 16), (16, 24), (24, 40)))
            k = sum(end <= word for end in ends)
            x = k * self.cell + low % self.cell
            if bits // 2 < self.accepting(x) and (x or not bits % 2):
                yield -x if bits % 2 else x


def total_variation(weights: Sequence[int], ideal: Sequence[Fraction]) -> Fraction:
    """Half the sum of the differences of two distributions, from what they are proportional to."""
    total, whole = sum(weights), sum(ideal)
    return sum((abs(Fraction(a, total) - b / whole) for a, b in zip(weights, ideal, strict=True)), Fraction(0)) / 2
