"""Local randomizers from their definitions, in fractions and by listing everything. No import of userdp.

A channel is a list with a dict {symbol: probability} for every item; E is e^epsilon, a Fraction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

Channel = list[dict[Any, Fraction]]
Supports = Callable[[Any, int], bool]


def randomized_response(k: int, e: Fraction) -> Channel:
    return [{y: (e if y == u else Fraction(1)) / (e + k - 1) for y in range(k)} for u in range(k)]


def subset_selection(k: int, w: int, e: Fraction) -> Channel:
    weight = e * math.comb(k - 1, w - 1) + math.comb(k - 1, w)
    sets = list(combinations(range(k), w))
    return [{y: (e if u in y else Fraction(1)) / weight for y in sets} for u in range(k)]


def sylvester(size: int) -> list[list[int]]:
    """By doubling: [[H, H], [H, -H]]."""
    if size == 1:
        return [[1]]
    half = sylvester(size // 2)
    return [row + row for row in half] + [row + [-entry for entry in row] for row in half]


def hadamard_columns(k: int) -> int:
    return next(1 << power for power in range(64) if 1 << power > k)


def hadamard_response(k: int, e: Fraction) -> Channel:
    size = hadamard_columns(k)
    rows = sylvester(size)[1:]
    mass = Fraction(2) / (size * (1 + e))
    return [{y: mass * (e if rows[u][y] == 1 else 1) for y in range(size)} for u in range(k)]


def symmetric_unary(k: int, half: Fraction) -> Channel:
    """k bits, that of the item being 1, each flipped with probability 1 / (1 + half); half^2 = E."""

    def mass(u: int, bits: tuple[int, ...]) -> Fraction:
        kept = sum(bit == (place == u) for place, bit in enumerate(bits))
        return half**kept / (1 + half) ** k

    return [{bits: mass(u, bits) for bits in product((0, 1), repeat=k)} for u in range(k)]


def largest_ratio(channel: Channel) -> Fraction:
    return max(a[y] / b[y] for a in channel for b in channel for y in a)


def support_matrix(channel: Channel, supports: Supports) -> list[list[Fraction]]:
    """P[a report of a user with item v supports u], in row u and column v."""
    k = len(channel)
    return [
        [sum((p for y, p in channel[v].items() if supports(y, u)), Fraction(0)) for v in range(k)] for u in range(k)
    ]


def variance_of_support(channel: Channel, supports: Supports, u: int, v: int) -> Fraction:
    mean = sum((p for y, p in channel[v].items() if supports(y, u)), Fraction(0))
    return sum(((supports(y, u) - mean) ** 2 * p for y, p in channel[v].items()), Fraction(0))


def transcripts(channels: Sequence[Channel], dataset: Sequence[int]) -> dict[tuple[Hashable, ...], Fraction]:
    """The joint distribution of independent messages, one of each user's own channel."""
    pmf: dict[tuple[Hashable, ...], Fraction] = {(): Fraction(1)}
    for channel, item in zip(channels, dataset, strict=True):
        pmf = {(*sent, y): mass * p for sent, mass in pmf.items() for y, p in channel[item].items()}
    return pmf


def hockey_stick(p: dict[Any, Fraction], q: dict[Any, Fraction], e: Fraction) -> Fraction:
    return sum((max(Fraction(0), p.get(y, Fraction(0)) - e * q.get(y, Fraction(0))) for y in {*p, *q}), Fraction(0))
