"""Exact hockey-stick divergences for the checker: e^x by enclosures, every comparison decided.

Only the standard library and modules of this folder; see `check`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.checker import work
from userdp.checker.spaces import Pair
from userdp.checker.values import denominators, fraction, need

_PMF_TOLERANCE = Fraction(1, 10**9)
MOST_WEIGHT_BITS = 2**29
"""Of all weights of a report, besides a multiple of what its text has: a small one must not fill the memory."""
_GROWTH = 64


@dataclass(frozen=True)
class Pmf:
    """A pmf over its own common denominator: mass o is weights[o] / total."""

    weights: tuple[int, ...]
    total: int

    @classmethod
    def of(cls, masses: Sequence[Fraction]) -> Pmf:
        """The masses over the least common denominator, so that equal pmfs are equal."""
        total = math.lcm(*(mass.denominator for mass in masses))
        return cls(tuple(mass.numerator * (total // mass.denominator) for mass in masses), total)

    @classmethod
    def read_all(cls, many: Iterable[Any], outputs: int) -> list[Pmf]:
        """The pmfs of a report, which together may not be much longer than their text."""
        most, found = MOST_WEIGHT_BITS, list[Pmf]()
        for masses in many:
            pmf, spent = cls._read(masses, outputs, most)
            found.append(pmf)
            most -= spent
        return found

    @classmethod
    def read(cls, masses: Any, outputs: int) -> Pmf:
        return cls.read_all([masses], outputs)[0]

    @classmethod
    def _read(cls, masses: Any, outputs: int, most: int) -> tuple[Pmf, int]:
        """A pmf, and by how many bits its weights exceed what its text allows."""
        need(isinstance(masses, list) and len(masses) == outputs, f"a pmf is not a list of {outputs} masses")
        stated = [fraction(mass) for mass in masses]
        free = _GROWTH * sum(mass.denominator.bit_length() for mass in stated)
        total = 1
        for denominator in denominators(stated):
            work.spend(3 * work.product(total.bit_length(), denominator.bit_length()))
            total = math.lcm(total, denominator)
            work.afford(
                total.bit_length() * outputs <= most + free, "the common denominator of a pmf is too long to check"
            )
        wide = max((mass.denominator.bit_length() for mass in stated), default=0)
        work.spend(outputs * 4 * work.product(total.bit_length(), wide))
        pmf = cls.of(stated)
        need(min(pmf.weights) >= 0, "a pmf has a negative mass")
        need(pmf.is_pmf(), "a pmf does not sum to 1")
        return pmf, max(0, total.bit_length() * outputs - free)

    def is_pmf(self) -> bool:
        near = abs(sum(self.weights) - self.total) <= self.total * _PMF_TOLERANCE
        return near and min(self.weights) >= 0

    def normalized(self) -> Pmf:
        """The masses divided by their sum, which is 1 but for the rounding of floats."""
        total = sum(self.weights)
        return self if total == self.total else Pmf.of([Fraction(weight, total) for weight in self.weights])

    def mass(self, event: Iterable[int]) -> Fraction:
        return Fraction(sum(self.weights[o] for o in event), self.total)


def _exp(x: Fraction, bits: int) -> tuple[int, int, int]:
    """Enclose e^x, x >= 0: low / scale <= e^x <= high / scale, closer as bits grows."""
    halvings = int(x).bit_length() + 1  # int(x) < 2^bit_length, so y = x / 2^halvings < 1/2
    shift = bits + 2 * halvings + 8
    terms, length = shift // max(shift.bit_length() - 5, 1) + 9, x.denominator.bit_length() + halvings
    work.spend(3 * terms * work.product(shift, length) + 2 * halvings * work.product(shift + 2 * int(x)))
    top, bottom = x.numerator, x.denominator << halvings
    low = high = term_low = term_high = 1 << shift
    for n in itertools.count(1):
        term_low = term_low * top // (bottom * n)
        term_high = -(-term_high * top // (bottom * n))
        low, high = low + term_low, high + term_high
        if term_high <= 1:
            break
    # Remainder: as y < 1/2, every later term is at most half of the one before it, so together they are
    # at most the last term taken, hence at most term_high.
    high += term_high
    for _ in range(halvings):  # e^x = (e^y)^(2^halvings), rounded outwards at every squaring
        low, high = low * low >> shift, -(-high * high >> shift)
    return low, high, 1 << shift


class Level:
    """The multiplier E = ratio e^exponent, as enclosures of any precision.

    With `cap`, an E that certainly reaches 2^cap is replaced by 2^cap: where every ratio p/q is below
    2^cap, the terms max(0, p - E q) with q > 0 vanish for both.
    """

    def __init__(self, ratio: Fraction, exponent: Fraction, cap: int) -> None:
        self.ratio, self.exponent = ratio, exponent
        # log2 of the ratio exceeds the difference of bit lengths less one, and e^exponent >= 2^exponent.
        if exponent + ratio.numerator.bit_length() - ratio.denominator.bit_length() - 1 >= cap and exponent:
            self.ratio, self.exponent = Fraction(2**cap), Fraction(0)
        self._known: dict[int, tuple[int, int, int]] = {}

    def enclose(self, bits: int) -> tuple[int, int, int]:
        """Return low, high, scale with low / scale <= E <= high / scale; equal when E is rational."""
        top, bottom = self.ratio.numerator, self.ratio.denominator
        if not self.exponent:
            return top, top, bottom
        if bits not in self._known:
            low, high, scale = _exp(self.exponent, bits)
            self._known[bits] = low * top // bottom, -(-high * top // bottom), scale
        return self._known[bits]

    def sign(self, a: Fraction, b: Fraction) -> int:
        """Sign of a - E b, exactly.

        It ends: e^x is transcendental for rational x != 0, so a - E b is zero only if a = b = 0 or E is
        rational; otherwise some enclosure excludes zero.
        """
        length = max(part.bit_length() for part in (*a.as_integer_ratio(), *b.as_integer_ratio()))
        for bits in (64 << doubling for doubling in itertools.count()):
            low, high, scale = self.enclose(bits)
            work.spend(8 * work.product(length, length + scale.bit_length()))
            ends = (a * scale - b * low, a * scale - b * high)
            if b == 0 or low == high or min(ends) > 0 or max(ends) < 0:
                return (ends[0] > 0) - (ends[0] < 0)
        raise AssertionError("unreachable")


@dataclass(frozen=True)
class Value:
    """The number scale (a - E b)."""

    a: Fraction
    b: Fraction
    level: Level
    scale: Fraction = Fraction(1)

    def compare(self, other: Fraction) -> int:
        return self.level.sign(self.scale * self.a - other, self.scale * self.b)


def positive_part(p: Pmf, q: Pmf, level: Level) -> tuple[Fraction, Fraction]:
    """Masses P(S), Q(S) of the event S where P > E Q; the divergence is P(S) - E Q(S)."""
    for bits in (64 << doubling for doubling in itertools.count()):
        low, high, scale = level.enclose(bits)
        work.spend(len(p.weights) * 3 * work.product(p.total.bit_length(), q.total.bit_length() + scale.bit_length()))
        left, *rights = scale * q.total, high * p.total, low * p.total
        inner, outer = (
            [o for o, (a, b) in enumerate(zip(p.weights, q.weights, strict=True)) if a * left > b * right]
            for right in rights
        )
        if inner == outer:  # reached: p = E q only for p = q = 0 or a rational E, as in Level.sign
            return p.mass(inner), q.mass(inner)
    raise AssertionError("unreachable")


def steps_of(pmfs: Mapping[int, Pmf], edges: Iterable[Pair], length: int) -> float:
    """Of comparing the masses of pairs both ways, with multipliers of so many bits."""
    wide = {i: pmf.total.bit_length() for i, pmf in pmfs.items()}
    outputs = max((len(pmf.weights) for pmf in pmfs.values()), default=0)
    return sum(2000 + 4 * outputs * work.product(wide[i], wide[j] + length) for i, j in edges)


def both_ways(pmfs: Mapping[int, Pmf], edges: Iterable[Pair]) -> Iterable[tuple[Pmf, Pmf]]:
    for i, j in edges:
        yield pmfs[i], pmfs[j]
        yield pmfs[j], pmfs[i]


def worst_divergence(pmfs: Mapping[int, Pmf], edges: Sequence[Pair], level: Level) -> Value:
    """Largest divergence over both directions of all pairs, exactly."""
    low, high, scale = level.enclose(64)
    work.spend(steps_of(pmfs, edges, scale.bit_length()))
    worst, floor = Value(Fraction(0), Fraction(0), level), Fraction(0)  # floor <= worst
    for p, q in both_ways(pmfs, edges):
        left, right = scale * q.total, low * p.total
        bound = sum(t for a, b in zip(p.weights, q.weights, strict=True) if (t := a * left - b * right) > 0)
        # bound / (scale p.total q.total) is not below the divergence, as low / scale <= E.
        if bound * floor.denominator <= floor.numerator * left * p.total:
            continue
        a, b = positive_part(p, q, level)
        if level.sign(a - worst.a, b - worst.b) > 0:
            worst, floor = Value(a, b, level), max(floor, a - b * Fraction(high, scale))
    return worst


def ratio_cap(pmfs: Iterable[Pmf]) -> int:
    # p < 2 and q >= 1/total where positive, so every ratio p/q is below 2 total < 2^cap.
    return max((pmf.total.bit_length() for pmf in pmfs), default=1) + 2


def profile_upper(
    pmf_weights: Sequence[tuple[Sequence[int], int]],
    pairs: Sequence[Pair],
    levels: Sequence[tuple[Fraction, Fraction]],
) -> list[float]:
    """Floats not below the worst divergence over the pairs, both ways, at each level (ratio, exponent)."""
    pmfs = {i: Pmf(tuple(weights), total) for i, (weights, total) in enumerate(pmf_weights)}
    cap, curve = ratio_cap(pmfs.values()), []
    for ratio, exponent in levels:
        worst = worst_divergence(pmfs, pairs, Level(ratio, exponent, cap))
        low, _, scale = worst.level.enclose(192)
        value = worst.a - worst.b * Fraction(low, scale)
        nearest = float(value)
        curve.append(nearest if nearest >= value else math.nextafter(nearest, math.inf))
    return curve
