"""Stable families of deletion sets against explicit sets of users, and refusals."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from fractions import Fraction
from math import comb

import numpy as np
import pytest

from oracle import stability as oracle
from userdp import _core
from userdp.exceptions import BudgetError

F = Fraction
Vector = tuple[int, ...]


def symmetric_relation(source: random.Random, refusals: float, reflexive: bool) -> oracle.Relation:
    """A random symmetric relation, decided once for every pair of kept vectors."""
    verdicts: dict[frozenset[Vector], bool] = {}

    def compatible(v: Vector, w: Vector) -> bool:
        if reflexive and v == w:
            return True
        return verdicts.setdefault(frozenset((v, w)), source.random() >= refusals)

    return compatible


def family_of(counts: list[int], deletions: int, limit: int, compatible: oracle.Relation) -> _core.StableFamily:
    """Mark every pair of deletion vectors whose kept vectors are incompatible."""
    family = _core.StableFamily(counts, deletions, limit)
    vectors = [tuple(int(x) for x in row) for row in family.vectors()]
    kept = [tuple(count - x for count, x in zip(counts, row, strict=True)) for row in vectors]
    pairs = [
        (i, j)
        for i, j in itertools.combinations_with_replacement(range(len(vectors)), 2)
        if not compatible(kept[i], kept[j])
    ]
    family.mark_rows([i for i, _ in pairs], [j for _, j in pairs])
    return family


Instance = tuple[list[int], int, oracle.Relation]


def random_instance(source: random.Random, most_users: int = 7) -> Instance:
    users = source.randint(1, most_users)
    kinds = source.randint(1, users)
    counts = [0] * kinds
    for _ in range(users):
        counts[source.randrange(kinds)] += 1
    deletions = source.randint(0, users)
    return counts, deletions, symmetric_relation(source, source.choice((0, 0.02, 0.1, 0.3, 1)), source.random() < 0.7)


def random_mixture(source: random.Random, sizes: list[int]) -> tuple[list[int], int]:
    """Weights on the sizes that have stable sets, and a total that leaves some for refusing."""
    weights = [source.choice((0, 1, 5, 10**12)) if size else 0 for size in sizes]
    return weights, sum(weights) + source.choice((0, 3)) + (not any(weights))


INSTANCES = 1200


def test_counts_sizes_and_laws_are_those_of_explicit_sets() -> None:
    source = random.Random(20260)
    partial = 0
    for _ in range(INSTANCES):
        counts, deletions, compatible = random_instance(source)
        family = family_of(counts, deletions, deletions, compatible)
        layers = oracle.stable_sets(counts, deletions, compatible)
        sizes = [len(layer) for layer in layers]
        assert family.layer_sizes() == sizes
        assert family.smallest_stable_size() == oracle.smallest_size(layers)
        types = oracle.labels(counts)
        stable = {oracle.count_vector(types, s, len(counts)) for layer in layers for s in layer}
        for vector in itertools.product(*(range(count + 1) for count in counts)):
            if sum(vector) <= deletions:
                assert family.is_stable(vector) == (vector in stable)
        weights, total = random_mixture(source, sizes)
        expected = oracle.deletion_law(counts, deletions, layers, [F(weight, total) for weight in weights])
        vectors = [tuple(int(x) for x in row) for row in family.vectors()]
        exact, common = family.exact_law(weights, total)
        assert {v: F(weight, common) for v, weight in zip(vectors, exact, strict=True) if weight} == expected
        masses, error = family.law(weights, total)
        assert 0 < error <= 2e-13
        for vector, mass in zip(vectors, masses, strict=True):
            assert abs(F(float(mass)) - expected.get(vector, F(0))) <= F(error) * expected.get(vector, F(0))
        partial += any(0 < size < comb(len(types), r) and weights[r] for r, size in enumerate(sizes))
    assert partial > INSTANCES // 20
