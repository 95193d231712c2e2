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


def test_counts_sizes_and_pmfs_are_those_of_explicit_sets() -> None:
    source = random.Random(20260)
    partial = 0
    for _ in range(INSTANCES):
        counts, deletions, compatible = random_instance(source)
        limit = source.randint(0, deletions)
        family = family_of(counts, deletions, limit, compatible)
        all_layers = oracle.stable_sets(counts, deletions, compatible)
        layers = all_layers[: limit + 1]
        sizes = [len(layer) for layer in layers]
        assert family.layer_sizes() == sizes
        assert family.smallest_stable_size() == oracle.smallest_size(layers)
        types = oracle.labels(counts)
        stable = {oracle.count_vector(types, s, len(counts)) for layer in all_layers for s in layer}
        for vector in itertools.product(*(range(count + 1) for count in counts)):
            if sum(vector) <= deletions:
                assert family.is_stable(vector) == (vector in stable)
        weights, total = random_mixture(source, sizes)
        expected = oracle.deletion_pmf(counts, deletions, layers, [F(weight, total) for weight in weights])
        vectors = [tuple(int(x) for x in row) for row in family.vectors()]
        exact, common = family.exact_distribution(weights, total)
        assert {v: F(weight, common) for v, weight in zip(vectors, exact, strict=True) if weight} == expected
        masses, error = family.distribution(weights, total)
        assert 0 < error <= 2e-13
        for vector, mass in zip(vectors, masses, strict=True):
            assert abs(F(float(mass)) - expected.get(vector, F(0))) <= F(error) * expected.get(vector, F(0))
        partial += any(0 < size < comb(len(types), r) and weights[r] for r, size in enumerate(sizes))
    assert partial > INSTANCES // 20


def matrix_of(source: random.Random, rows: int, exact: bool) -> tuple[_core.PmfMatrix, list[list[F]]]:
    """Pmfs over three outputs, as floats of exact sum 1 or as integer weights."""
    weights = [[source.choice((0, 1, 3, 8)) for _ in range(2)] for _ in range(rows)]
    pmfs = [[F(a, 16), F(b, 16), 1 - F(a + b, 16)] for a, b in weights]
    if not exact:
        return _core.PmfMatrix.from_floats(np.array([[float(p) for p in pmf] for pmf in pmfs])), pmfs
    total = 3 * source.randint(1, 10**6)
    masses = []
    for pmf in pmfs:
        pmf[:] = [F(source.randrange(total), total), F(0), F(0)]
        pmf[2] = 1 - pmf[0]
        masses.append(([int(p * total) for p in pmf], total))
    return _core.PmfMatrix.from_masses(masses), pmfs


@pytest.mark.parametrize("exact", [False, True])
def test_output_pmfs_are_the_mixtures_and_their_bounds_enclose_them(exact: bool) -> None:
    source = random.Random(30 + exact)
    for _ in range(150):
        counts, deletions, compatible = random_instance(source)
        family = family_of(counts, deletions, deletions, compatible)
        layers = oracle.stable_sets(counts, deletions, compatible)
        weights, total = random_mixture(source, [len(layer) for layer in layers])
        distribution = oracle.deletion_pmf(counts, deletions, layers, [F(weight, total) for weight in weights])
        vectors = family.vectors()
        matrix, pmfs = matrix_of(source, len(vectors), exact)
        rows = [(distribution.get(tuple(int(x) for x in v), F(0)), pmf) for v, pmf in zip(vectors, pmfs, strict=True)]
        expected = [sum((mass * pmf[output] for mass, pmf in rows), F(0)) for output in range(3)]
        numerators, common = family.exact_output_distribution(weights, total, matrix)
        assert [F(numerator, common) for numerator in numerators] == expected
        lower, upper = family.output_bounds(weights, total, matrix)
        for low, value, high in zip(lower, expected, upper, strict=True):
            assert F(float(low)) <= value <= F(float(high))
            assert high - low <= 1e-12
    with pytest.raises(ValueError, match=r"matrix: has \d+ rows where there are \d+ deletion vectors"):
        family.output_bounds(weights, total, _core.PmfMatrix.from_floats(np.full((len(vectors) + 1, 1), 1.0)))


def edges_of(counts: list[int], deletions: int, compatible: oracle.Relation) -> list[int]:
    """The unions of kept sets of labeled users with incompatible data, as bit masks."""
    types = oracle.labels(counts)
    kept = [
        (sum(1 << user for user in keep), oracle.count_vector(types, keep, len(counts)))
        for keep in itertools.combinations(range(len(types)), len(types) - deletions)
    ]
    pairs = itertools.combinations_with_replacement(kept, 2)
    return [first | second for (first, v), (second, w) in pairs if not compatible(v, w)]


def test_heights_and_hitting_sets_agree_on_the_smallest_size() -> None:
    source = random.Random(4)
    infinite = 0
    for _ in range(300):
        counts, deletions, compatible = random_instance(source)
        family = family_of(counts, deletions, deletions, compatible)
        edges = edges_of(counts, deletions, compatible)
        found = oracle.smallest_hitting_size(edges, sum(counts))
        smallest = family.smallest_stable_size()
        infinite += smallest is None
        assert smallest == (None if found is None or found > deletions else found)
    assert 5 < infinite < 250


def test_labeled_users_are_types_of_one() -> None:
    source = random.Random(6)
    for _ in range(100):
        counts, deletions, compatible = random_instance(source, 6)
        types = oracle.labels(counts)

        def by_type(kept: Vector, types: list[int] = types, kinds: int = len(counts)) -> Vector:
            return oracle.count_vector(types, [user for user, stays in enumerate(kept) if stays], kinds)

        def of_labels(
            v: Vector,
            w: Vector,
            compatible: oracle.Relation = compatible,
            by_type: Callable[[Vector], Vector] = by_type,
        ) -> bool:
            return compatible(by_type(v), by_type(w))

        typed = family_of(counts, deletions, deletions, compatible)
        labeled = family_of([1] * len(types), deletions, deletions, of_labels)
        assert labeled.layer_sizes() == typed.layer_sizes()


def test_neighbors_differ_by_one_at_most() -> None:
    source = random.Random(7)
    jumps = 0
    for _ in range(60):
        kinds, users = source.randint(2, 3), source.randint(2, 7)
        deletions = source.randint(1, users)
        compatible = symmetric_relation(source, source.choice((0.05, 0.2, 0.5)), source.random() < 0.7)
        smallest = {
            counts: family_of(list(counts), deletions, deletions, compatible).smallest_stable_size()
            for counts in itertools.product(range(users + 1), repeat=kinds)
            if sum(counts) == users
        }
        sizes = {counts: deletions + 1 if size is None else size for counts, size in smallest.items()}
        for counts, size in sizes.items():
            for gone, come in itertools.permutations(range(kinds), 2):
                if counts[gone]:
                    near = tuple(x - (kind == gone) + (kind == come) for kind, x in enumerate(counts))
                    assert abs(size - sizes[near]) <= 1
                    jumps += size != sizes[near]
    assert jumps > 20


def every_draw(sample: Callable[[Callable[[int], int]], object]) -> dict[object, F]:
    """The distribution of a sampler, by following every sequence of draws."""
    pmf: dict[object, F] = {}
    script: list[int] = []
    while True:
        bounds: list[int] = []

        def below(bound: int, bounds: list[int] = bounds) -> int:
            bounds.append(bound)
            if len(bounds) > len(script):
                script.append(0)
            return script[len(bounds) - 1]

        drawn = sample(below)
        pmf[drawn] = pmf.get(drawn, F(0)) + F(1, int(np.prod(bounds, dtype=object)))
        while script and script[-1] + 1 == bounds[len(script) - 1]:
            script.pop()
        if not script:
            return pmf
        script[-1] += 1


def test_samples_have_the_uniform_pmf_exactly() -> None:
    source = random.Random(8)
    checked = 0
    while checked < 60:
        counts, deletions, compatible = random_instance(source, 6)
        family = family_of(counts, deletions, deletions, compatible)
        layers = oracle.stable_sets(counts, deletions, compatible)
        for size, layer in enumerate(layers):
            if layer:

                def sample(
                    below: Callable[[int], int], size: int = size, family: _core.StableFamily = family
                ) -> object:
                    s, t = family.sample(size, below)
                    return tuple(s), tuple(t)

                assert every_draw(sample) == oracle.pair_pmf(counts, deletions, layer, size)
                checked += 1


def test_blocks_of_vectors_are_all_vectors_in_tight_boxes() -> None:
    counts, deletions = [40, 31, 7, 25], 20
    family = _core.StableFamily(counts, deletions, 10)
    vectors = family.vectors()
    rows = {tuple(int(x) for x in row) for row in vectors}
    boxes = itertools.product(*(range(min(count, deletions) + 1) for count in counts))
    assert len(rows) == sum(sum(box) == deletions for box in boxes)
    assert vectors.shape == family.shape == (len(rows), len(counts))
    assert all(sum(row) == deletions and all(x <= c for x, c in zip(row, counts, strict=True)) for row in rows)

    def spread(block: np.ndarray[tuple[int, ...], np.dtype[np.uint16]]) -> float:
        return float((block.max(0).astype(int) - block.min(0)).sum())

    shuffled = np.random.default_rng(1).permutation(vectors)
    size = len(vectors) // 64
    ours, theirs = ([spread(rows[i : i + size]) for i in range(0, len(rows), size)] for rows in (vectors, shuffled))
    assert sum(ours) < sum(theirs) / 3


@pytest.mark.parametrize("weights", [{}, {4: 2**950, 39: 1}])
def test_large_counts_neither_overflow_nor_vanish(weights: dict[int, int]) -> None:
    """Two types, n = 100 000: stable sets have more than 3 users of the second type, or more than 37 of the first.

    With the weights that differ much, some deletion vectors owe all their mass to the tiny one.
    """
    counts, deletions, limit = [99_990, 10], 40, 39
    family = _core.StableFamily(counts, deletions, limit)
    family.mark([37, 3], [37, 3])
    stable = {
        size: [(size - s, s) for s in range(min(size, 10) + 1) if s > 3 or size - s > 37] for size in range(limit + 1)
    }
    sizes = [sum(comb(99_990, first) * comb(10, second) for first, second in stable[size]) for size in stable]
    assert family.layer_sizes() == sizes
    assert family.smallest_stable_size() == 4
    mixture = [weights.get(size, 0) if weights else int(count > 0) for size, count in enumerate(sizes)]
    masses, error = family.distribution(mixture, sum(mixture))
    assert error <= 2e-13
    compared = 0
    for (t_first, t_second), mass in zip(family.vectors().tolist(), masses, strict=True):
        exact = F(0)
        for size in range(4, limit + 1):
            subsets = sum(comb(t_first, first) * comb(t_second, second) for first, second in stable[size])
            supersets = comb(100_000 - size, deletions - size)
            ways = comb(99_990, t_first) * comb(10, t_second)
            exact += F(ways * subsets * mixture[size], sizes[size] * supersets * sum(mixture))
        assert abs(F(float(mass)) - exact) <= F(error) * exact + F(1, 2**1070)
        compared += exact > F(1, 2**1000)
    assert compared == 10


@pytest.mark.parametrize(
    ("counts", "deletions", "limit", "message"),
    [
        ([], 0, 0, "counts: is empty"),
        ([2, 1], 4, 0, "deletions: 4 exceeds the number of users, 3"),
        ([2, 1], 2, 3, "limit: 3 exceeds the 2 deletions"),
    ],
)
def test_bad_families_are_refused(counts: list[int], deletions: int, limit: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.StableFamily(counts, deletions, limit)


@pytest.mark.parametrize(
    ("counts", "deletions", "message"),
    [
        ([1] * 40, 16, r"a grid of 5\.50e11 cells"),
        ([1000] * 5, 192, "cells"),
        ([10**5] * 2, 40_000, "40000 deletions where 32768"),
        ([10**18] * 40, 3, "users"),
        ([0] * 1000 + [3], 3, "1001 types"),
    ],
)
def test_families_that_do_not_fit_are_refused(counts: list[int], deletions: int, message: str) -> None:
    with pytest.raises(BudgetError, match=message):
        _core.StableFamily(counts, deletions, 2)


def test_bad_calls_are_refused() -> None:
    family = _core.StableFamily([3, 2], 3, 2)
    with pytest.raises(ValueError, match=r"a: .*does not sum to the 3 deletions"):
        family.mark([1, 1], [2, 1])
    with pytest.raises(ValueError, match=r"b: .*is not between 0 and the counts"):
        family.mark([1, 2], [0, 3])
    with pytest.raises(ValueError, match="row 9 is out of range"):
        family.mark_rows([0], [9])
    with pytest.raises(ValueError, match="rows_b: has 1 rows where rows_a has 0"):
        family.mark_rows([], [0])
    with pytest.raises(ValueError, match="s: "):
        family.is_stable([1])
    family.mark([2, 1], [2, 1])
    with pytest.raises(ValueError, match="mixture: has weight on size 0, where no set is stable"):
        family.exact_distribution([1], 1)
    with pytest.raises(ValueError, match="mixture: has weight on size 3"):
        family.distribution([0, 0, 0, 1], 1)
    with pytest.raises(ValueError, match="mixture: weights sum to 2, more than their total 1"):
        family.distribution([0, 0, 2], 1)
    with pytest.raises(ValueError, match="r: no set of 1 users is stable"):
        family.sample(1, lambda n: 0)
    with pytest.raises(ValueError, match="r: 3 exceeds the limit 2"):
        family.sample(3, lambda n: 0)
    with pytest.raises(ValueError, match="below: gave"):
        family.sample(2, lambda n: n)
    with pytest.raises(ZeroDivisionError):
        family.sample(2, lambda n: n // 0)


@pytest.mark.parametrize(
    ("counts", "smallest", "refusal", "first", "second"),
    [
        ([16, 1], 1, F(1, 176842), F(176664159, 176842000), F(176841, 176842000)),
        ([12, 5], 5, F(168421, 176842), F(8412579, 176842000), F(8421, 176842000)),
        ([9, 8], 8, F(176841, 176842), F(999, 176842000), F(1, 176842000)),
    ],
)
def test_a_release_of_one_kept_bit(counts: list[int], smallest: int, refusal: F, first: F, second: F) -> None:
    """Of 17 users 16 are deleted and the last one's bit is told, false with probability 1/1000.

    The size of the stable set has the distribution 20^-|r - 4| / Z on 0, ..., 8; the distributions were worked out
    independently.
    """
    family = _core.StableFamily(counts, 16, 8)
    vectors = family.vectors().tolist()
    kept_first = [vector[0] < counts[0] for vector in vectors]
    assert len(vectors) == 2
    family.mark(vectors[0], vectors[1])
    assert family.smallest_stable_size() == smallest
    sizes = [20 ** (4 - abs(r - 4)) for r in range(9)]
    mixture = [weight if r >= smallest else 0 for r, weight in enumerate(sizes)]
    matrix = _core.PmfMatrix.from_masses([([999, 1] if kept else [1, 999], 1000) for kept in kept_first])
    weights, total = family.exact_output_distribution(mixture, sum(sizes), matrix)
    assert [F(weight, total) for weight in weights] == [first, second]
    assert 1 - first - second == refusal
