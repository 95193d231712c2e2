"""Shared draws from their definitions, slowly: areas of a triangle, and permutations.

Distributions are sequences of Fractions or ints of one total.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from oracle import public_randomness as public

Point = tuple[Fraction, Fraction]
HalfPlane = tuple[Fraction, Fraction, Fraction]


def total_variation(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    return sum((abs(x - y) for x, y in zip(p, q, strict=True)), Fraction(0)) / 2


def _cut(polygon: list[Point], half: HalfPlane) -> list[Point]:
    """The part of a convex polygon where a x + b y + c >= 0."""
    a, b, c = half
    heights = [a * x + b * y + c for x, y in polygon]
    kept: list[Point] = []
    for index, (here, height) in enumerate(zip(polygon, heights, strict=True)):
        after, next_height = polygon[(index + 1) % len(polygon)], heights[(index + 1) % len(polygon)]
        if height >= 0:
            kept.append(here)
        if (height > 0) != (next_height > 0) and height != next_height:
            t = height / (height - next_height)
            kept.append((here[0] + t * (after[0] - here[0]), here[1] + t * (after[1] - here[1])))
    return kept


def _area(polygon: list[Point]) -> Fraction:
    edges = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return abs(sum((x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in edges), Fraction(0))) / 2


def race_agreement_of_three(p: Sequence[Fraction], q: Sequence[Fraction]) -> Fraction:
    """Three exponential variables over their sum are a uniform point of the triangle: areas are probabilities.

    x wins for weights w when e_x w_y <= e_y w_x for the others y: half planes in the coordinates (e_0, e_1).
    """
    one, zero = Fraction(1), Fraction(0)
    coordinates: list[HalfPlane] = [(one, zero, zero), (zero, one, zero), (-one, -one, one)]
    agreement = Fraction(0)
    for x in range(3):
        if not p[x] or not q[x]:
            continue
        polygon = [(zero, zero), (one, zero), (zero, one)]
        for weights, y in itertools.product((p, q), range(3)):
            if y != x:
                mine, theirs = (
                    [weight * part for part in coordinates[z]] for weight, z in ((weights[y], x), (weights[x], y))
                )
                a, b, c = (t - m for t, m in zip(theirs, mine, strict=True))
                polygon = _cut(polygon, (a, b, c)) if polygon else polygon
        agreement += 2 * _area(polygon)
    return agreement


def darts_by_permutation(p: Sequence[int], q: Sequence[int]) -> dict[tuple[int, int], Fraction]:
    """The joint pmf when the cells (item, height) come in uniform order and each user takes the first of their own.

    Cells of neither user change nothing, so that only orders of the others are listed.
    """
    cells = [(x, height) for x in range(len(p)) for height in range(max(p[x], q[x]))]
    joint: dict[tuple[int, int], Fraction] = {}
    orders = 0
    for order in itertools.permutations(cells):
        pair = tuple(next(x for x, height in order if height < weights[x]) for weights in (p, q))
        joint[pair[0], pair[1]] = joint.get((pair[0], pair[1]), Fraction(0)) + 1
        orders += 1
    return {pair: count / orders for pair, count in joint.items()}


def inverse_cdf_disagreement(p: Sequence[int], q: Sequence[int]) -> Fraction:
    """Of integers of one total: both read off the item of each of its unit intervals."""
    lists = [[x for x, weight in enumerate(weights) for _ in range(weight)] for weights in (p, q)]
    return Fraction(sum(x != y for x, y in zip(*lists, strict=True)), len(lists[0]))


def race(seed: bytes, label: str, query: int, weights: Sequence[float], items: Sequence[bytes] | None = None) -> int:
    """The winner by the rounded keys; the first of equal sums, or the one of the least bytes."""
    best: tuple[float, bytes] | None = None
    winner = -1
    for x, weight in enumerate(weights):
        if weight == 0:
            continue
        if items is None:
            word, name = public.stream_word(seed, label, query, x), x.to_bytes(8, "big")
        else:
            word, name = public.item_word(seed, label, query, items[x]), items[x]
        total = public.rounded_logarithm(weight) + public.rounded_key(word)
        if best is None or total > best[0] or (total == best[0] and name < best[1]):
            best, winner = (total, name), x
    return winner


def darts(seed: bytes, label: str, query: int, weights: Sequence[int], most: int) -> tuple[int | None, int]:
    """The item of the first hit among the first `most` darts, and how many darts were thrown."""

    def below(word: int, bound: int) -> int | None:
        high, low = divmod(word * bound, 2**64)
        return high if low >= 2**64 % bound else None

    for dart in range(most):
        x = below(public.stream_word(seed, label, query, 2 * dart), len(weights))
        height = below(public.stream_word(seed, label, query, 2 * dart + 1), sum(weights))
        if x is not None and height is not None and height < weights[x]:
            return x, dart + 1
    return None, most
