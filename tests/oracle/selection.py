"""Private selection by its definitions, in fractions. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Masses = Sequence[Fraction]
Rule = Callable[[Sequence[int], Sequence[int]], int | None]
"""From counts and centered noises to the index that wins, or None."""


def truncated_laplace(q: Fraction, t: int) -> list[Fraction]:
    """The ideal probabilities of -t, ..., t."""
    weights = [q ** abs(x) for x in range(-t, t + 1)]
    return [weight / sum(weights) for weight in weights]


def above_threshold(t: int, *, subtract: int | None = None) -> Rule:
    """The largest of count + noise - t - 1 that is 1 or more; the first one of several."""
    below = t + 1 if subtract is None else subtract

    def rule(counts: Sequence[int], noises: Sequence[int]) -> int | None:
        values = [(c + x - below if c else 0) for c, x in zip(counts, noises, strict=True)]
        best = max(values, default=0)
        return values.index(best) if best >= 1 else None

    return rule


def noisy_pmf(counts: Sequence[int], noise: Masses, rule: Rule) -> list[Fraction]:
    """The probabilities of the indices and of None at last, by going over all noises of all items."""
    t = len(noise) // 2
    pmf = [Fraction(0)] * (len(counts) + 1)
    for noises in itertools.product(range(-t, t + 1), repeat=len(counts)):
        winner = rule(counts, noises)
        pmf[-1 if winner is None else winner] += math.prod((noise[x + t] for x in noises), start=Fraction(1))
    return pmf


def neighbors(n: int, items: int, relation: str) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ordered pairs of neighboring count vectors, one of them with n users and none with more."""
    pairs = set()
    for first in itertools.product(range(n + 1), repeat=items):
        if sum(first) != n:
            continue
        for i in range(items):
            if not first[i]:
                continue
            left = tuple(c - (k == i) for k, c in enumerate(first))
            others = (
                [left]
                if relation == "add_remove"
                else [tuple(c + (k == j) for k, c in enumerate(left)) for j in range(items) if j != i]
            )
            for second in others:
                pairs |= {(first, second), (second, first)}
    return pairs


def excess(p: Masses, q: Masses, level: Fraction) -> Fraction:
    """The hockey-stick divergence at e^epsilon = level."""
    return sum((max(a - level * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def worst_excess(distribution_of: Callable[[tuple[int, ...]], Masses], pairs: Any, level: Fraction) -> Fraction:
    """The largest divergence of neighbors."""
    return max(excess(distribution_of(x), distribution_of(y), level) for x, y in pairs)


def pure_pmf(counts: Sequence[int], a: Fraction) -> list[Fraction]:
    """P[u] proportional to a^count."""
    weights = [a**c for c in counts]
    return [weight / sum(weights) for weight in weights]


def two_stages(counts: Mapping[int, int], size: int, a: Fraction) -> tuple[dict[int, Fraction], Fraction]:
    """First whether somebody has the item, then which: of each such item, and of each other one."""
    total = sum(a**c for c in counts.values()) + (size - len(counts))
    return {item: a**c / total for item, c in counts.items()}, 1 / Fraction(total)


def at_most(n: int, p: Fraction, k: int) -> Fraction:
    """Pr[Bin(n, p) <= k]"""
    if p == 1:
        return Fraction(int(k >= n))
    successes, failures = p.numerator, p.denominator - p.numerator
    ways, total = failures**n, 0
    for j in range(min(k, n) + 1):
        total += ways
        ways = ways * (n - j) * successes // ((j + 1) * failures)
    return Fraction(total, p.denominator**n)


def not_surely_won(n: int, p: Fraction, t: int) -> Fraction:
    """Pr[not (2 K > n + 2 t and K >= 2 t + 2)] for K = Bin(n, p)."""
    return at_most(n, p, max((n + 2 * t) // 2, 2 * t + 1))


def lost_to_others(n: int, p: Fraction, a: Fraction, size: int) -> Fraction:
    """Pr[the pure selection takes another item], when all users without the common item have one other item."""

    def term(k: int) -> Fraction:
        others = a ** (n - k) + size - 2
        return math.comb(n, k) * p**k * (1 - p) ** (n - k) * others / (others + a**k)

    return sum(map(term, range(n + 1)), Fraction(0))


def least_from_which_on(fails: Callable[[int], Fraction], failure: Fraction, last: int) -> tuple[int, int]:
    """The least n that does, and the least from which all up to `last` do."""
    good = [fails(n) <= failure for n in range(1, last + 1)]
    bad = max((n for n, holds in enumerate(good, 1) if not holds), default=0)
    return good.index(True) + 1, bad + 1
