"""Scores of thresholds and separations of binomials, straight from their definitions: slow and exact.

A user is a list of rows (x, y); `users` lists them. Thresholds u predict [x > u].
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from math import ceil, comb, floor, lcm
from operator import mul
from typing import TypeAlias

F = Fraction
User: TypeAlias = Sequence[tuple[int, int]]


def charge(user: User, u: int, m: int) -> int:
    """The mistakes of threshold u on a user, scaled to m rows and rounded up."""
    wrong = sum(1 for x, y in user if (x > u) != (y == 1))
    return ceil(F(wrong * m, len(user))) if user else 0


def errors(users: Sequence[User], u: int, t: int, m: int) -> int:
    """How many users threshold u is charged more than t for."""
    return sum(1 for user in users if charge(user, u, m) > t)


def breakpoints(users: Sequence[User], domain_size: int) -> list[int]:
    """Thresholds of which each score of a threshold is one: 0 and all points."""
    return sorted({0, *(x for user in users for x, _ in user)})


def minimal_errors(users: Sequence[User], m: int, domain_size: int) -> list[int]:
    """The least errors for each t, over all thresholds."""
    return [min(errors(users, u, t, m) for u in breakpoints(users, domain_size)) for t in range(m)]


def median_score(users: Sequence[User], low: int, high: int, u: int, s: int) -> int:
    """Users with more than s samples on one side of u, the larger side."""
    left = sum(1 for user in users if sum(1 for x, _ in user if low <= x < u) > s)
    right = sum(1 for user in users if sum(1 for x, _ in user if u < x <= high) > s)
    return max(left, right)


def groups_of(starts: Sequence[int], scores: Sequence[int], last: int) -> list[tuple[int, int, int]]:
    """The (first, last, score) of all groups that are not empty."""
    ends = [start - 1 for start in starts[1:]] + [last]
    return [(a, b, score) for a, b, score in zip(starts, ends, scores, strict=True) if a <= b]


def score_at(starts: Sequence[int], scores: Sequence[int], last: int, u: int) -> int:
    """The score of u by looking through all groups."""
    (found,) = [score for a, b, score in groups_of(starts, scores, last) if a <= u <= b]
    return found


def pmf(m: int, p: Fraction, denominator: int) -> list[int]:
    """The probabilities of Bin(m, p) over the m-th power of the denominator, a multiple of p's."""
    hit = int(p * denominator)
    hits = list(accumulate([hit] * m, mul, initial=1))
    misses = list(accumulate([denominator - hit] * m, mul, initial=1))
    return [comb(m, k) * hits[k] * misses[m - k] for k in range(m + 1)]


def tails(m: int, p: Fraction, denominator: int) -> list[int]:
    """Pr[Bin(m, p) > t] for t = 0, ..., m - 1, over the m-th power of the denominator."""
    return list(accumulate(reversed(pmf(m, p, denominator)[1:])))[::-1]


def separation(m: int, p: Fraction, q: Fraction) -> tuple[list[int], Fraction, Fraction]:
    """All best thresholds, their gap, and Pr[Bin(m, p) > t] at the smallest."""
    denominator = lcm(p.denominator, q.denominator)
    below, above = tails(m, p, denominator), tails(m, q, denominator)
    gaps = [b - a for a, b in zip(below, above, strict=True)]
    largest = max(gaps)
    best = [t for t, gap in enumerate(gaps) if gap == largest]
    return best, F(largest, denominator**m), F(below[best[0]], denominator**m)


def total_variation(m: int, p: Fraction, q: Fraction) -> Fraction:
    """The distance of the two distributions."""
    denominator = lcm(p.denominator, q.denominator)
    pairs = zip(pmf(m, p, denominator), pmf(m, q, denominator), strict=True)
    return F(sum(abs(a - b) for a, b in pairs), 2 * denominator**m)


def long_tail(m: int, p: Fraction, t: int) -> Decimal:
    """Pr[Bin(m, p) > t] for large m: probabilities relative to that of the mode, over their sum."""
    with localcontext() as context:
        context.prec = 60
        hit = Decimal(p.numerator) / Decimal(p.denominator)
        miss = Decimal(p.denominator - p.numerator) / Decimal(p.denominator)
        mode = min(m, floor((m + 1) * p))
        above = below = Decimal(0)
        for k, step in ((mode, 1), (mode - 1, -1)):
            term = Decimal(1) if step == 1 else Decimal(mode) / (m - mode + 1) * miss / hit
            while 0 <= k <= m and term > Decimal("1e-55"):
                if k > t:
                    above += term
                else:
                    below += term
                up = Decimal(m - k) / (k + 1) * hit / miss if step == 1 else Decimal(k) / (m - k + 1) * miss / hit
                term *= up
                k += step
        return above / (above + below)
