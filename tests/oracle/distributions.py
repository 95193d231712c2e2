"""Exact distributions by their definitions, in fractions and 120-digit decimals. No import of userdp."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

from oracle.divergence import exp_bounds

WORD = 2**128
DIGITS = 120

Powers = Callable[[int, int], tuple[Fraction, Fraction]]
"""(k, bits) to fractions around q^k."""


def exp_of_minus(x: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    low, high = exp_bounds(x, bits)
    return 1 / high, 1 / low


def rational_powers(q: Fraction) -> Powers:
    return cache(lambda k, _: (q**k, q**k))


def exponential_powers(rate: Fraction) -> Powers:
    return cache(lambda k, bits: exp_of_minus(rate * k, bits + 64))


def number(words: Sequence[int], width: int = 128) -> tuple[Fraction, Fraction]:
    """The ends of all U whose bits begin with a first word of this width and then words of 128 bits."""
    total, bits = words[0], width
    for word in words[1:]:
        total, bits = total * WORD + word, bits + 128
    return Fraction(total, 2**bits), Fraction(total + 1, 2**bits)


def is_below(words: Sequence[int], power: tuple[Fraction, Fraction]) -> bool | None:
    """Whether U < p for a p within fractions, None when that is still open."""
    low, high = number(words)
    if high <= power[0]:
        return True
    return False if low >= power[1] else None


def uniform(bound: int, words: Iterator[int]) -> int:
    """Every value owns an interval of words, of floor(2^128 / bound) or one more; the first of a longer one is void."""
    shortest = WORD // bound
    for word in words:
        value = word * bound // WORD
        first, end = (-(-v * WORD // bound) for v in (value, value + 1))
        assert first <= word < end
        if end - first == shortest or word != first:
            return value
    raise AssertionError("all words are void")


def geometric(powers: Powers, words: Sequence[int], width: int = 128) -> int:
    """The k with q^(k+1) < U < q^k, found by halving; the words must decide it."""
    bits = width + 128 * len(words)
    low_u, high_u = number(words, width)

    def reaches(k: int) -> bool:  # X >= k
        low, high = powers(k, bits)
        assert high_u <= low or low_u >= high, "undecided"
        return high_u <= low

    high = 1
    while reaches(high):
        high *= 2
    low = high // 2 if high > 1 else 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


def two_sided(powers: Powers, words: Iterator[int], spare: Sequence[int] = ()) -> int:
    """The low bit of the first word is the sign, 127 bits begin U; -0 is drawn again."""
    for word in words:
        magnitude = geometric(powers, [word >> 1, *spare], 127)
        if magnitude or not word & 1:
            return -magnitude if word & 1 else magnitude
    raise AssertionError("only -0")


def two_sided_probability(rate: Fraction, x: int, bits: int = 400) -> tuple[Fraction, Fraction]:
    """Fractions around (1 - q) / (1 + q) q^|x| for q = e^-rate."""
    low, high = exp_of_minus(rate, bits)
    power_low, power_high = exp_of_minus(rate * abs(x), bits) if x else (Fraction(1), Fraction(1))
    return (1 - high) / (1 + high) * power_low, (1 - low) / (1 + low) * power_high


def negative_binomial(r: Fraction, p: Fraction, count: int) -> list[Decimal]:
    """C(k + r - 1, k) (1 - p)^r p^k for k < count, each good to about 100 digits."""
    with localcontext() as context:
        context.prec = DIGITS
        of = lambda x: Decimal(x.numerator) / Decimal(x.denominator)  # noqa: E731
        masses = [(of(r) * of(1 - p).ln()).exp()]
        for k in range(1, count):
            masses.append(masses[-1] * of(p * (k - 1 + r) / k))
        return masses


def negative_binomial_exactly(r: int, p: Fraction, count: int) -> list[Fraction]:
    return [math.comb(k + r - 1, k) * (1 - p) ** r * p**k for k in range(count)]
