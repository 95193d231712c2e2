"""The exponential mechanism on groups in plain Python integers, by points and by groups. No import of userdp."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from oracle.exponential import COEFFICIENTS

Triple = tuple[int, int, int]
WHOLE = 2**384


def triples(starts: Sequence[int], scores: Sequence[int], last: int) -> list[Triple]:
    """(start, end, score) of the groups that are not empty."""
    ends = [*(start - 1 for start in starts[1:]), last]
    return [(a, b, score) for a, b, score in zip(starts, ends, scores, strict=True) if a <= b]


def largest_gap(bits_per_unit: Fraction) -> int:
    """The largest gap that is worth less than 128 bits, among 64-bit numbers."""
    return min((128 * bits_per_unit.denominator - 1) // bits_per_unit.numerator, 2**64 - 1)


def weight(gap: int, bits_per_unit: Fraction) -> int:
    """2^166 2^(-bits_per_unit gap), by the polynomial; gaps worth 128 bits or more are clamped."""
    whole, fraction = divmod(int(min(gap, largest_gap(bits_per_unit)) * bits_per_unit * 2**57), 2**57)
    value = 0
    for coefficient in reversed(COEFFICIENTS):
        value = coefficient - (value * fraction >> 57)
    return (value >> 24) << (127 - whole)


def weighted(groups: Sequence[Triple], bits_per_unit: Fraction) -> list[tuple[int, int, int]]:
    """(start, length, weight of one candidate) of each group."""
    lowest = min(score for _, _, score in groups)
    return [(start, end - start + 1, weight(score - lowest, bits_per_unit)) for start, end, score in groups]


def shares(weights: Iterable[int], total: int) -> Iterator[int]:
    """How many of the 2^384 values of the bits lead into the interval of each weight."""
    cumulative = 0
    for one in weights:
        before, cumulative = cumulative, cumulative + one
        yield -(-cumulative * WHOLE // total) + -before * WHOLE // total


def group_numerators(groups: Sequence[Triple], bits_per_unit: Fraction) -> list[int]:
    """How many of the 2^384 values of the bits lead into each group."""
    masses = [length * one for _, length, one in weighted(groups, bits_per_unit)]
    return list(shares(masses, sum(masses)))


def numerators(groups: Sequence[Triple], bits_per_unit: Fraction) -> list[int]:
    """How many of the 2^384 values of the bits lead to each point."""
    weights = [one for _, length, one in weighted(groups, bits_per_unit) for _ in range(length)]
    return list(shares(weights, sum(weights)))


def draws(groups: Sequence[Triple], bits_per_unit: Fraction, bits: Iterable[int]) -> list[int]:
    """For each, the point whose interval of cumulative weights holds floor(bits S / 2^384)."""
    listed = weighted(groups, bits_per_unit)
    ends = list(accumulate(length * one for _, length, one in listed))
    found = []
    for u in bits:
        target = u * ends[-1] >> 384
        place = bisect_right(ends, target)
        start, length, one = listed[place]
        found.append(start + (target - ends[place] + length * one) // one)
    return found
