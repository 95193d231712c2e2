"""Range finding and winsorized sums by their definitions, in fractions. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

NOBODY = -1
"""The bin of a user without rows."""

Group = tuple[int, int, int]


def n_bins(bound: Fraction, width: Fraction) -> int:
    return max(1, math.ceil(2 * bound / width))


def bin_of(value: Fraction, bound: Fraction, width: Fraction) -> int:
    inside = max(-bound, min(bound, value))
    return min(n_bins(bound, width) - 1, math.floor((inside + bound) / width))


def cost(bins: Sequence[int], k: int) -> int:
    return max(sum(NOBODY < b < k for b in bins), sum(b > k for b in bins))


def range_distribution(bins: Sequence[int], count: int, q: Fraction) -> list[Fraction]:
    """Bin k with probability near q^cost."""
    weights = [q ** cost(bins, k) for k in range(count)]
    return [weight / sum(weights) for weight in weights]


def groups(bins: Sequence[int], count: int) -> list[Group]:
    """(first, last, cost) of each occupied bin and of each longest run of empty ones."""
    occupied = sorted({b for b in bins if b != NOBODY})
    ends, found = [*occupied, count], []
    start = 0
    for end in ends:
        if start < end:
            found.append((start, end - 1, cost(bins, start)))
        if end < count:
            found.append((end, end, cost(bins, end)))
        start = end + 1
    return found


def group_pmf(bins: Sequence[int], count: int, q: Fraction) -> list[tuple[int, int, int, Fraction]]:
    listed = groups(bins, count)
    weights = [(last - first + 1) * q**c for first, last, c in listed]
    return [(*group, weight / sum(weights)) for group, weight in zip(listed, weights, strict=True)]


def neighbors(size: int, values: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ordered pairs of datasets that differ in one user, up to the order of users."""
    for rest in itertools.combinations_with_replacement(values, size - 1):
        for one, other in itertools.permutations(values, 2):
            yield tuple(sorted((*rest, one))), tuple(sorted((*rest, other)))


def worst_ratio(
    pmf: Callable[[tuple[int, ...]], Sequence[Fraction]], size: int, values: Sequence[int]
) -> tuple[Fraction, Fraction]:
    """The largest P[k] / P'[k], and the largest quotient of two such ratios of one pair: e^(its range)."""
    cache: dict[tuple[int, ...], Sequence[Fraction]] = {}
    largest = spread = Fraction(1)
    for x, y in neighbors(size, values):
        for data in (x, y):
            if data not in cache:
                cache[data] = pmf(data)
        ratios = [p / p2 for p, p2 in zip(cache[x], cache[y], strict=True)]
        largest, spread = max(largest, *ratios), max(spread, max(ratios) / min(ratios))
    return largest, spread


def winsorized_mean(values: Sequence[Fraction], low: Fraction, high: Fraction) -> Fraction:
    return sum((max(low, min(high, value)) for value in values), Fraction(0)) / len(values)


def paper_scale(tau: Fraction, n: int, epsilon: Fraction) -> Fraction:
    """Of Laplace noise at half the budget on an interval of length 4 tau, as printed."""
    return 4 * tau / (n * epsilon / 2)
