"""Stable deletion sets from their definition, over explicit sets of users, in fractions; independent of userdp."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import comb

Vector = tuple[int, ...]
#: Says whether two kept count vectors (or the same one twice) are compatible; symmetric.
Relation = Callable[[Vector, Vector], bool]
Distribution = dict[Vector, Fraction]


def count_vector(types: Sequence[int], users: Sequence[int], kinds: int) -> Vector:
    """How many of the users are of each type."""
    found = Counter(types[user] for user in users)
    return tuple(found[kind] for kind in range(kinds))


def labels(counts: Sequence[int]) -> list[int]:
    """A type for every user."""
    return [kind for kind, count in enumerate(counts) for _ in range(count)]


def stable_sets(counts: Sequence[int], deletions: int, compatible: Relation) -> list[list[tuple[int, ...]]]:
    """All stable sets of users, by size 0, ..., deletions: no two kept sets outside of one are incompatible."""
    types = labels(counts)
    users = range(len(types))
    kept = [
        (frozenset(keep), count_vector(types, keep, len(counts)))
        for keep in itertools.combinations(users, len(types) - deletions)
    ]
    bad = [first | second for i, (first, v) in enumerate(kept) for second, w in kept[i:] if not compatible(v, w)]
    bad = list(set(bad))
    return [
        [s for s in itertools.combinations(users, size) if all(union.intersection(s) for union in bad)]
        for size in range(deletions + 1)
    ]


def smallest_size(layers: Sequence[Sequence[object]]) -> int | None:
    """r*: the size of the smallest stable set."""
    return next((size for size, layer in enumerate(layers) if layer), None)


def deletion_pmf(
    counts: Sequence[int], deletions: int, layers: Sequence[Sequence[tuple[int, ...]]], mixture: Sequence[Fraction]
) -> Distribution:
    """The distribution of the deletion vector: size r from the mixture, S uniform of that size, T uniform above S."""
    types = labels(counts)
    users = len(types)
    pmf: Distribution = {}
    for size, probability in enumerate(mixture):
        for s in layers[size] if probability else ():
            share = probability / len(layers[size]) / comb(users - size, deletions - size)
            others = [user for user in range(users) if user not in s]
            for more in itertools.combinations(others, deletions - size):
                vector = count_vector(types, s + more, len(counts))
                pmf[vector] = pmf.get(vector, Fraction(0)) + share
    return pmf


def pair_pmf(
    counts: Sequence[int], deletions: int, layer: Sequence[tuple[int, ...]], size: int
) -> dict[tuple[Vector, Vector], Fraction]:
    """The joint distribution of the vectors of S and T for one size."""
    types = labels(counts)
    users = len(types)
    pmf: dict[tuple[Vector, Vector], Fraction] = {}
    share = Fraction(1, len(layer) * comb(users - size, deletions - size))
    for s in layer:
        others = [user for user in range(users) if user not in s]
        for more in itertools.combinations(others, deletions - size):
            key = count_vector(types, s, len(counts)), count_vector(types, s + more, len(counts))
            pmf[key] = pmf.get(key, Fraction(0)) + share
    return pmf


def hits(chosen: int, edges: Sequence[int]) -> bool:
    """Whether a set of users, as a bit mask, meets every edge."""
    return all(chosen & edge for edge in edges)


def smallest_hitting_size(edges: Sequence[int], users: int) -> int | None:
    """The size of a smallest set of users that meets every edge."""
    for size in range(users + 1):
        for chosen in itertools.combinations(range(users), size):
            if hits(sum(1 << user for user in chosen), edges):
                return size
    return None


def smallest_pool_deletions(values: Sequence[int], deletions: int, distance: int) -> int | None:
    """Fewest deletions that leave all sums of the kept users within the distance, over all sets of users."""
    users = len(values)
    for size in range(deletions + 1):
        for removed in itertools.combinations(range(users), size):
            rest = [value for user, value in enumerate(values) if user not in removed]
            sums = [sum(keep) for keep in itertools.combinations(rest, users - deletions)]
            if max(sums) - min(sums) <= distance:
                return size
    return None


def total_pmf(pool: Sequence[int], kept: int) -> dict[int, Fraction]:
    """The distribution of the sum of a uniform subset of `kept` users of the pool."""
    sums = Counter(sum(keep) for keep in itertools.combinations(pool, kept))
    return {total: Fraction(count, sums.total()) for total, count in sums.items()}
