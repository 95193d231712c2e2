"""Dimensions, the standard optimal algorithm and the tournament of samples, as they are defined.

A concept is a tuple of labels, a class a frozenset of concepts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product

Concept = tuple[int, ...]
Class = frozenset[Concept]


def patterns(concepts: Iterable[Concept], points: Sequence[int]) -> set[Concept]:
    return {tuple(c[x] for x in points) for c in concepts}


def growth(concepts: Class, k: int) -> int:
    n = len(next(iter(concepts)))
    return max(len(patterns(concepts, points)) for points in combinations(range(n), min(k, n)))


def vc(concepts: Class) -> int:
    n = len(next(iter(concepts)))
    return max(k for k in range(n + 1) if growth(concepts, k) == 2**k)


def part(concepts: Class, x: int, y: int) -> Class:
    return frozenset(c for c in concepts if c[x] == y)


@cache
def ldim(concepts: Class) -> int:
    if len(concepts) <= 1:
        return len(concepts) - 1
    splits = ((part(concepts, x, 0), part(concepts, x, 1)) for x in range(len(next(iter(concepts)))))
    return max(1 + min(ldim(zeros), ldim(ones)) for zeros, ones in splits if zeros and ones)


@cache
def optimal(concepts: Class) -> Concept:
    """The predictions of the standard optimal algorithm on a version space; ties are 0."""
    points = range(len(next(iter(concepts))))
    return tuple(int(ldim(part(concepts, x, 1)) > ldim(part(concepts, x, 0))) for x in points)


State = tuple[Class | None, Concept]
"""A version space with its predictions, or None once an example was not explained."""


def start(concepts: Class) -> State:
    return concepts, optimal(concepts)


def follow(state: State, x: int, y: int) -> State:
    concepts, row = state
    if concepts is not None and (rest := part(concepts, x, y)):
        return rest, optimal(rest)
    return None, (*row[:x], y, *row[x + 1 :])


def restrictions(concepts: Class, depth: int) -> set[Class]:
    """Version spaces after at most `depth` further labeled points."""
    n = len(next(iter(concepts)))
    found = {concepts}
    for _ in range(depth):
        found |= {rest for v in found for x, y in product(range(n), (0, 1)) if (rest := part(v, x, y))}
    return found


Samples = dict[tuple[State, bool], Fraction]
"""How likely which state is, with whether all invented labels on the way agree with the target."""


def _tournament(concepts: Class, target: Concept, block: int, levels: int, keep_right: bool = False) -> list[Samples]:
    """The pmfs after a sample of D_k and a block of uniform points, k = 0, ..., as long as rivals can differ."""
    n = len(target)
    samples: Samples = {(start(concepts), True): Fraction(1)}
    pmfs = []
    for _ in range(levels):
        pmf = samples
        for _ in range(block):
            following: Samples = defaultdict(Fraction)
            for (state, right), mass in pmf.items():
                for x in range(n):
                    following[follow(state, x, target[x]), right] += mass / n
            pmf = following
        pmfs.append(pmf)
        winners: Samples = defaultdict(Fraction)
        for ((first, first_right), p), ((second, second_right), q) in product(pmf.items(), repeat=2):
            if first[1] == second[1]:
                continue
            x = next(x for x in range(n) if first[1][x] != second[1][x])
            for y in (0, 1):
                first_wins = (first[1][x] != y) != keep_right
                winner, right = (first, first_right) if first_wins else (second, second_right)
                winners[follow(winner, x, y), right and y == target[x]] += p * q / 2
        total = sum(winners.values())
        if not total:
            break
        samples = {state: mass / total for state, mass in winners.items()}
    return pmfs


def _predictions(pmf: Samples) -> dict[Concept, Fraction]:
    found: dict[Concept, Fraction] = defaultdict(Fraction)
    for (state, _), mass in pmf.items():
        found[state[1]] += mass
    return found


def tournament_predictions(
    concepts: Class, target: Concept, block: int, levels: int, keep_right: bool = False
) -> list[dict[bytes, Fraction]]:
    """What is predicted at each level; `keep_right` plants the mistake of keeping whom the coin agrees with."""
    pmfs = _tournament(concepts, target, block, levels, keep_right)
    return [{bytes(row): mass for row, mass in _predictions(pmf).items()} for pmf in pmfs]


def tournament_levels(concepts: Class, target: Concept, block: int, levels: int) -> list[dict[str, Fraction]]:
    """Facts about the levels.

    a: all labels invented on the way agree with the target; coll: two draws agree; top: the likeliest predictions;
    target: the target is predicted.
    """
    facts = []
    for pmf in _tournament(concepts, target, block, levels):
        predictions = _predictions(pmf)
        facts.append(
            {
                "a": sum((mass for (_, right), mass in pmf.items() if right), Fraction(0)),
                "coll": sum((p * p for p in predictions.values()), Fraction(0)),
                "top": max(predictions.values()),
                "target": predictions[target],
            }
        )
    return facts


@cache
def forgiven(points: int, alpha: Fraction, grid: int) -> set[frozenset[int]]:
    """Minimal families {g : D(g) <= alpha} over the distributions D in multiples of 1 / grid, g as bit masks."""
    families = set()
    for ends in combinations(range(grid + points - 1), points - 1):
        cuts = (-1, *ends, grid + points - 1)
        masses = [b - a - 1 for a, b in pairwise(cuts)]
        families.add(
            frozenset(g for g in range(2**points) if sum(m for x, m in enumerate(masses) if g >> x & 1) <= alpha * grid)
        )
    return {family for family in families if not any(other < family for other in families)}
