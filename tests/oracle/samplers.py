"""Tables of noise by their definitions, in fractions and Python's integers. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from oracle.divergence import exp_bounds

WHOLE = 2**128


class Level:
    """E = ratio for exponent 0, or e^exponent."""

    def __init__(self, ratio: Fraction = Fraction(1), exponent: Fraction = Fraction(0)) -> None:
        assert ratio == 1 or exponent == 0
        self.ratio, self.exponent = ratio, exponent

    def power(self, count: int, bits: int = 400) -> tuple[Fraction, Fraction]:
        """Fractions around E^count, equal for a rational E."""
        if self.exponent:
            return exp_bounds(self.exponent * count, bits)
        return self.ratio**count, self.ratio**count

    def power_reaches(self, count: int, bound: Fraction) -> bool:
        """Whether E^count >= bound > 1, decided with ever narrower enclosures (an irrational power is never equal)."""
        bits = 100
        while True:
            low, high = self.power(count, bits)
            if low >= bound:
                return True
            if high < bound:
                return False
            bits *= 2


def least(holds: Callable[[int], bool], low: int = 0) -> int:
    """The least integer above `low` at which a monotone predicate holds."""
    step = 1
    while not holds(low + step):
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def kappa(level: Level, delta: Fraction) -> int:
    return 1 + least(lambda count: level.power_reaches(count, 1 / delta))


def lower_multiplier(level: Level) -> int:
    """min(floor(E 2^128), 2^192)."""
    bits = 400
    while True:
        low, high = (math.floor(min(bound, Fraction(2**64)) * WHOLE) for bound in level.power(1, bits))
        if low == high:
            return low
        bits *= 2


def ladder(level: Level, width: int) -> list[int]:
    """N(0), ..., N(2 width) from the least end whose ladder of floors reaches a total of 2^128; may be no pmf."""
    multiplier = lower_multiplier(level)

    def climb(end: int) -> list[int]:
        side = [end]
        for _ in range(width):
            side.append(side[-1] * multiplier // WHOLE)
        return side

    def reaches(end: int) -> bool:
        side = climb(end)
        return 2 * sum(side[:-1]) + side[-1] >= WHOLE

    side = climb(least(reaches))[:-1]
    return [*side, WHOLE - 2 * sum(side), *reversed(side)]


def end_of_ladder(level: Level, width: int) -> Fraction:
    return Fraction(ladder(level, width)[0], WHOLE)


def is_certified(numerators: Sequence[int], level: Level, delta: Fraction) -> bool:
    """What the privacy of the noise rests on, with E replaced by a lower enclosure, so that they hold for E."""
    multiplier = level.power(1)[0]
    return (
        len(numerators) >= 3
        and min(numerators) > 0
        and sum(numerators) == WHOLE
        and all(a <= multiplier * b and b <= multiplier * a for a, b in itertools.pairwise(numerators))
        and max(numerators[0], numerators[-1]) <= delta * WHOLE
    )


def ideal(ratio: Fraction, width: int) -> list[Fraction]:
    """Definition 8."""
    weights = [1 / ratio ** abs(x - width) for x in range(2 * width + 1)]
    total = sum(weights)
    return [weight / total for weight in weights]


def refusals(level: Level, delta: Fraction) -> list[int]:
    """q_0, ..., q_M over 2^128, every step rounded down."""
    multiplier, paid = Fraction(lower_multiplier(level), WHOLE), math.floor(delta * WHOLE)
    table = [0]
    while table[-1] < WHOLE:
        last = table[-1]
        rising = math.floor(multiplier * last) + paid
        falling = WHOLE - math.ceil((WHOLE - last - paid) / multiplier)
        table.append(min(rising, falling, WHOLE))
    return table


def ideal_refusals(multiplier: Fraction, delta: Fraction, digits: int = 60) -> list[Fraction]:
    """The recursion in fractions; rounded down far beyond 2^-128, to keep them short."""
    table, scale = [Fraction(0)], 10**digits
    while table[-1] < 1:
        last = table[-1]
        step = min(multiplier * last + delta, 1 - (1 - last - delta) / multiplier, Fraction(1))
        table.append(Fraction(math.floor(step * scale), scale))
    return table
