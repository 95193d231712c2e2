"""What counts of right and wrong guesses prove about epsilon: exact tails and wealth, no asymptotics.

A coin chooses one of two neighboring datasets, the mechanism runs, and somebody guesses the coin from what it
returned. If the mechanism is epsilon-DP, a guess is right with probability at most q = E / (1 + E), whatever was seen
before, with E = e^epsilon. Two tests follow (docs/proofs/guesses.md):

* "fixed": the number of guesses was fixed before. The probability of so many right ones is at most a binomial tail.
* "anytime": a gambler stakes a share g of what he has on every guess, and wins g / E of it or loses the stake. His
  wealth
  exceeds 1 / alpha at any time with probability at most alpha, so that anybody may stop at any time.

Everything is rounded against the finding: tails up, wealth down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from userdp.exact.epsilon import upper
from userdp.exact.numbers import PrivacyLevel, least

Test: TypeAlias = Literal["fixed", "anytime"]

BITS = 192
"""Of the leading digits that powers keep; each rounding moves them by a part in 2^191."""
GRID = 2**40
"""Bounds of epsilon are ln(a / (GRID - a)) for a whole a."""
STAKES = tuple(Fraction(place, 16) for place in range(1, 16)) + tuple(1 - Fraction(1, 1 << k) for k in range(5, 13))
"""Shares g that the gamblers stake; their wealth is averaged, which is one gambler's."""
LEVELS = (*(Fraction(64 + j, 64) for j in range(449)), *(Fraction(512 * 17**j // 16**j, 64) for j in range(1, 200)))
"""Values of E that are tried one after the other where the wealth need not fall with E; all have few digits."""
MOST_WEALTH = Fraction(2**512)
"""Beyond it nothing is counted: no error probability that is asked for is that small."""
MOST_GUESSES = 200_000
"""Of a number that is fixed before; longer tails take seconds, here and in the checker."""


class Counts(NamedTuple):
    """What came of the draws: guesses that were right and wrong, and draws without a guess."""

    right: int
    wrong: int
    none: int = 0


class _Number(NamedTuple):
    """A positive number, digits * 2^place."""

    digits: int
    place: int

    def times(self, other: _Number, up: bool) -> _Number:
        return _cut(self.digits * other.digits, self.place + other.place, up)

    def power(self, exponent: int, up: bool) -> _Number:
        result = _Number(1, 0)
        for bit in f"{exponent:b}":
            result = result.times(result, up)
            if bit == "1":
                result = result.times(self, up)
        return result

    def fraction(self) -> Fraction:
        return Fraction(self.digits << max(self.place, 0), 1 << max(-self.place, 0))

    def near_one(self) -> Fraction:
        """The number, or a bound below it where it is beyond `MOST_WEALTH` or next to nothing."""
        length = self.digits.bit_length() + self.place
        return MOST_WEALTH if length > 513 else Fraction(0) if length < -512 else self.fraction()


def _cut(digits: int, place: int, up: bool) -> _Number:
    extra = digits.bit_length() - BITS
    if extra <= 0:
        return _Number(digits, place)
    return _Number(-(-digits >> extra) if up else digits >> extra, place + extra)


def _number(x: Fraction, up: bool) -> _Number:
    shift = BITS + x.denominator.bit_length() - x.numerator.bit_length()
    if shift < 0:
        return _cut(x.numerator // x.denominator + up, 0, up)
    scaled = x.numerator << shift
    return _cut(-(-scaled // x.denominator) if up else scaled // x.denominator, -shift, up)


@lru_cache(maxsize=64)
def _choices(n: int, k: int) -> _Number:
    return _cut(math.comb(n, k), 0, True)


def tail_above(guesses: int, right: int, q: Fraction) -> Fraction:
    """A bound of the probability of at least so many right guesses, of which each is right with probability q < 1."""
    wrong = guesses - right
    # The terms of the sum fall by this factor at least, the first of them and all that follow it.
    ratio = wrong * q / ((right + 1) * (1 - q))
    if right <= 0 or ratio >= 1:
        return Fraction(1)
    term = _choices(guesses, right).times(_number(q, True).power(right, True), True)
    term = term.times(_number(1 - q, True).power(wrong, True), True)
    # In units of the first term's last digit, which no later term has more digits than.
    total = digits = term.digits << 64
    for j in range(right, guesses):
        digits = -(-digits * (guesses - j) * q.numerator // ((j + 1) * (q.denominator - q.numerator)))
        total += digits
        if digits <= 1:
            total += math.ceil((guesses - j) * digits)
            break
    return min(Fraction(1), _Number(total, term.place - 64).fraction())


def wealth_below(counts: Counts, multiplier: Fraction, margin: Fraction = Fraction(0)) -> Fraction:
    """What a gambler has at least who began with 1, where E is at most `multiplier`.

    `margin` is what delta adds up to: an event and its opposite number have probabilities p and q with p <= E q +
    delta.
    """
    most = 2 * multiplier + margin
    total = Fraction(0)
    for stake in STAKES:
        part = _Number(1, 0)
        gains = (1 + stake * (2 - margin) / most, 1 - stake, 1 - stake * margin / most)
        for gain, times in zip(gains, counts, strict=True):
            if times and gain != 1:
                part = part.times(_number(gain, False).power(times, False), False)
        total += part.near_one()
    return total / len(STAKES)


def rejected(test: Test, counts: Counts, multiplier: Fraction, alpha: Fraction, margin: Fraction = Fraction(0)) -> bool:
    """Whether the counts refute that E is at most `multiplier`, with an error of probability at most alpha."""
    if alpha <= 0:
        return False
    if test == "fixed":
        # q on a grid, rounded up: less is refuted, and a level has few digits.
        steps = -(-multiplier * GRID // (1 + multiplier))
        return steps < GRID and tail_above(counts.right + counts.wrong, counts.right, Fraction(steps, GRID)) <= alpha
    return wealth_below(counts, multiplier, margin) * alpha >= 1


def epsilon_below(test: Test, counts: Counts, alpha: Fraction, margin: Fraction = Fraction(0)) -> PrivacyLevel:
    """A level that epsilon exceeds, or 0; wrong with probability at most alpha."""
    if margin:
        return PrivacyLevel(_first_standing(lambda e: rejected(test, counts, e, alpha, margin)), Fraction(0))
    return PrivacyLevel(_largest_rejected(lambda e: rejected(test, counts, e, alpha)), Fraction(0))


def _first_standing(refuted: Callable[[Fraction], bool]) -> Fraction:
    """The largest of `LEVELS` such that it and all below it are refuted; 1 if there is none.

    The claims are nested, so that an error needs the first of them that is true to be refuted: it is one test.
    """
    largest = Fraction(1)
    for level in LEVELS:
        if not refuted(level):
            break
        largest = level
    return largest


def _largest_rejected(refuted: Callable[[Fraction], bool]) -> Fraction:
    """The largest E on the grid that is refuted, where less is refuted whenever more is; 1 if there is none."""
    if not refuted(Fraction(1)):
        return Fraction(1)
    largest = least(lambda place: not refuted(Fraction(place, GRID - place)), GRID // 2, GRID) - 1
    return Fraction(largest, GRID - largest)


def claim_refuted(
    test: Test, counts: Counts, level: PrivacyLevel, alpha: Fraction, margin: Fraction = Fraction(0)
) -> bool:
    """Whether the counts refute the claim that epsilon is `level`."""
    return rejected(test, counts, upper(level), alpha, margin)


def best_stop(rights: Sequence[bool], refuting: Callable[[Counts], bool], level: float) -> Counts | None:
    """Where a gambler who knew the future would stop: the counts of a prefix of the guesses that refutes, if any does.

    Any prefix may be taken, as the wealth is bounded at all of them at once. Floats propose where it is largest.
    """
    right = np.cumsum(np.asarray(rights, dtype=np.int64))
    wrong = np.arange(1, len(right) + 1) - right
    shares = np.array([float(stake) for stake in STAKES])[:, None]
    wealth = np.max(np.log1p(shares / level) * right + np.log1p(-shares) * wrong, axis=0)
    for place in np.argsort(-wealth, kind="stable")[:3].tolist():
        counts = Counts(int(right[place]), int(wrong[place]))
        if refuting(counts):
            return counts
    return None
