"""Discrete Laplace noise of two digits by its definition, in fractions and Python's integers. No import of userdp."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from oracle.samplers import WHOLE, Level, least, lower_multiplier


@dataclass(frozen=True)
class Digits:
    center: int
    high: list[int]
    rest: int
    low: list[int]
    flat_bits: int

    @property
    def length(self) -> int:
        return len(self.high) * len(self.low)

    def probability(self, x: int) -> Fraction:
        """P[X = x]."""
        if x == 0:
            return Fraction(2 * self.center, WHOLE)
        high, low = divmod(abs(x) - 1, len(self.low))
        if high < len(self.high):
            return Fraction(self.high[high] * self.low[low], WHOLE**2)
        if abs(x) - 1 < self.length + 2**self.flat_bits:
            return Fraction(self.rest, WHOLE * 2**self.flat_bits)
        return Fraction(0)

    def beyond(self, first: int) -> Fraction:
        """P[X >= first], first >= 0, added up from far out."""
        start = max(first, self.length + 1)
        flat = max(self.length + 1 + 2**self.flat_bits - start, 0) * Fraction(self.rest, WHOLE * 2**self.flat_bits)
        zero = Fraction(2 * self.center, WHOLE) if first == 0 else Fraction(0)
        each = (divmod(x - 1, len(self.low)) for x in range(max(first, 1), self.length + 1))
        return flat + zero + Fraction(sum(self.high[high] * self.low[low] for high, low in each), WHOLE**2)

    def distribution(self, offset: int, width: int) -> list[Fraction]:
        """The release of the value `offset` in 0, ..., `width`."""
        inside = [self.probability(z - offset) for z in range(1, width)]
        return [self.beyond(offset), *inside, self.beyond(width - offset)]

    def noise(self, bits: int, second: int) -> int:
        """X for two draws."""
        half, sign = divmod(bits, 2)
        entry = position(half, [self.center, *self.high, self.rest])
        if entry == 0:
            return 0
        if entry <= len(self.high):
            magnitude = 1 + (entry - 1) * len(self.low) + position(second, self.low)
        else:
            magnitude = 1 + self.length + second * 2**self.flat_bits // WHOLE
        return magnitude if sign else -magnitude


def position(draw: int, numerators: list[int]) -> int:
    """The entry in whose share of the draws this one is."""
    for index, end in enumerate(itertools.accumulate(numerators)):
        if draw < end:
            return index
    raise AssertionError("beyond the total")


def rungs(step: int, count: int, last: int, fraction_bits: int) -> list[int]:
    """ceil(y) + ceil(1 / (step - 1)) beside the geometric sequence y that ends at last / 2^fraction_bits."""
    offset = -(-WHOLE // (step - WHOLE))
    found = []
    for _ in range(count):
        found.append(-(-last // 2**fraction_bits) + offset)
        last = last * step // WHOLE
    return found[::-1]


def fitted(
    whole: int, ladder: Callable[[int], list[int]], head: Callable[[int], int], rest: Callable[[int], int]
) -> tuple[int, list[int], int]:
    """The least ladder that reaches the whole with the largest head on top; the head takes what is left."""

    def reaches(last: int) -> bool:
        found = ladder(last)
        return sum(found) + rest(found[-1]) + head(found[0]) >= whole

    found = ladder(least(reaches))
    return whole - sum(found) - rest(found[-1]), found, rest(found[-1])


def digits(level: Level, width: int, low_count: int, high_count: int) -> Digits:
    multiplier = lower_multiplier(level)
    low = [WHOLE]
    if low_count > 1:
        top, others, _ = fitted(
            WHOLE,
            lambda last: rungs(multiplier, low_count - 1, last, 0),
            lambda entry: multiplier * entry // WHOLE,
            lambda entry: 0,
        )
        low = [top, *others]
    length = low_count * high_count
    excess = multiplier - WHOLE
    flat_bits = 0
    if width > length + 1:
        while 2**flat_bits - (width - 1 - length) < -(-WHOLE // excess):
            flat_bits += 1

    def rest(entry: int) -> int:
        if width <= length + 1:
            return -(-entry * low[-1] // excess)
        return -(-entry * low[-1] * 2**flat_bits // WHOLE)

    step = multiplier * low[0] // low[-1]
    center, high, outside = fitted(
        WHOLE // 2,
        lambda last: rungs(step, high_count, last, 64),
        lambda entry: multiplier * entry * low[0] // 2**257,
        rest,
    )
    return Digits(center, high, outside, low, flat_bits)


def within(p: Fraction, q: Fraction, multiplier: Fraction) -> bool:
    """p <= multiplier * q, without a reduction of the product."""
    return p.numerator * q.denominator * multiplier.denominator <= multiplier.numerator * q.numerator * p.denominator


def is_private(pmfs: list[list[Fraction]], multiplier: Fraction) -> bool:
    """Whether every output of every two values a unit apart has probabilities within the multiplier, both ways."""
    return all(
        p > 0 and q > 0 and within(p, q, multiplier) and within(q, p, multiplier)
        for one, other in itertools.pairwise(pmfs)
        for p, q in zip(one, other, strict=True)
    )


def ideal(ratio: Fraction, offset: int, width: int) -> list[Fraction]:
    """The clamped sum with P[X = x] proportional to ratio^-|x|."""
    top = (ratio - 1) / (ratio + 1)

    def beyond(first: int) -> Fraction:  # P[X >= first], first >= 0
        return top / ratio**first * ratio / (ratio - 1)

    inside = [top / ratio ** abs(z - offset) for z in range(1, width)]
    return [beyond(offset), *inside, beyond(width - offset)]
