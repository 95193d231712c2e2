"""Permute-and-flip in fractions, from probabilities of coins: four ways to its distribution. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

ONE = Fraction(1)


def by_orders(flips: Sequence[Fraction]) -> list[Fraction]:
    """The definition: the first success in a random order of the candidates."""
    masses = [Fraction(0)] * len(flips)
    for order in itertools.permutations(range(len(flips))):
        alive = ONE / math.factorial(len(flips))
        for i in order:
            masses[i] += alive * flips[i]
            alive *= 1 - flips[i]
    return masses


def by_coins(flips: Sequence[Fraction]) -> list[Fraction]:
    """All outcomes of all coins, and a uniform one of those that succeed."""
    masses = [Fraction(0)] * len(flips)
    for coins in itertools.product((0, 1), repeat=len(flips)):
        mass = math.prod((q if coin else 1 - q for q, coin in zip(flips, coins, strict=True)), start=ONE)
        for i, coin in enumerate(coins):
            if coin:
                masses[i] += mass / sum(coins)
    return masses


def by_integral(flips: Sequence[Fraction]) -> list[Fraction]:
    """q_i times the integral over [0, 1] of the product of the other 1 - q_j t."""
    masses = []
    for i, q in enumerate(flips):
        polynomial = [ONE]
        for j, other in enumerate(flips):
            if j != i:
                longer = [*polynomial, Fraction(0)]
                for power, coefficient in enumerate(polynomial):
                    longer[power + 1] -= other * coefficient
                polynomial = longer
        masses.append(q * sum(c / (power + 1) for power, c in enumerate(polynomial)))
    return masses


def successes(flips: Sequence[Fraction]) -> list[Fraction]:
    """The distribution of how many coins succeed."""
    masses = [ONE]
    for q in flips:
        masses = [
            (masses[s] if s < len(masses) else 0) * (1 - q) + (masses[s - 1] * q if s else 0)
            for s in range(len(masses) + 1)
        ]
    return masses


def shares(count: int, bits: int) -> list[int]:
    """How many of the 2^bits values v have floor(v count / 2^bits) = 0, 1, ..., count - 1."""
    ends = [-(-j * 2**bits // count) for j in range(count + 1)]
    return [after - before for before, after in itertools.pairwise(ends)]


def drawn(flips: Sequence[Fraction], bits: int = 128) -> list[Fraction]:
    """The distribution where success number floor(v count / 2^bits) is returned, in the order of the candidates."""
    masses = []
    for i, q in enumerate(flips):
        before, after = successes(flips[:i]), successes(flips[i + 1 :])
        mean = sum(
            first * second * Fraction(shares(x + y + 1, bits)[x], 2**bits)
            for x, first in enumerate(before)
            for y, second in enumerate(after)
        )
        masses.append(q * mean)
    return masses


def draw(weights: Sequence[int], coins: Sequence[int], place: int) -> int:
    """The candidate that a coin of 103 bits for each, and a place of 128 bits, lead to, for weights out of 2^103."""
    winners = [i for i, weight in enumerate(weights) if coins[i] < weight]
    return winners[place * len(winners) >> 128]


def bytes_of(coins: Sequence[int], place: int, low_bits: int = 0) -> bytes:
    """The random bytes that stand for these, with any low bits, which count for nothing."""
    flat = b"".join((2 * coin + (low_bits >> i & 1)).to_bytes(13, "little") for i, coin in enumerate(coins))
    return flat + bytes(-len(flat) % 16) + place.to_bytes(16, "little")


def ladder(ratio: Fraction, bits: int, length: int) -> list[int]:
    """The least integers from 2^bits down with f(d) <= ratio f(d + 1)."""
    table = [2**bits]
    while len(table) < length:
        table.append(math.ceil(table[-1] / ratio))
    return table


def floors(ratio: Fraction, bits: int, length: int) -> list[int]:
    """The powers of the ratio, each rounded down by itself."""
    return [math.floor(2**bits / ratio**d) for d in range(length)]


def worst_ratio(
    table: Sequence[int], k: int, sensitivity: int, largest: int, one_direction: bool = False
) -> Fraction | float:
    """The largest ratio over all integer scores in 0..largest and all neighbors, for coins of a table of gaps."""
    flips = [Fraction(entry, table[0]) for entry in table]
    known: dict[tuple[int, ...], list[Fraction]] = {}

    def masses(scores: tuple[int, ...]) -> list[Fraction]:
        gaps = tuple(score - min(scores) for score in scores)
        if gaps not in known:
            known[gaps] = by_integral([flips[min(gap, len(flips) - 1)] for gap in gaps])
        return known[gaps]

    worst: Fraction | float = Fraction(0)
    moves = range(0 if one_direction else -sensitivity, sensitivity + 1)
    for scores in itertools.product(range(largest + 1), repeat=k):
        for move in itertools.product(moves, repeat=k):
            moved = tuple(map(sum, zip(scores, move, strict=True)))
            for a, b in zip(masses(scores), masses(moved), strict=True):
                for x, y in ((a, b), (b, a)):
                    if x:
                        worst = max(worst, x / y if y else math.inf)
    return worst


def slack() -> Fraction:
    """What all roundings may add to the loss, from above: of the weights on both sides, and of the place."""
    spread = (1 + Fraction(1, 2**49)) * (1 + Fraction(1, 2**57)) / (1 - Fraction(1, 2**49) - Fraction(1, 2**38))
    theta = Fraction(1, 2**104)
    return 2 * (spread - 1) + 2 * theta / (1 - theta)
