"""Dimensions of 0/1 matrices against their definitions, certificates that stand alone, and bad input."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from oracle import dimensions as oracle
from support.matrices import concepts_of, of_kind, parities, random_matrices, thresholds
from userdp import _core
from userdp.concepts import DecisionStumps, FiniteClass, Intervals, PointFunctions, Thresholds
from userdp.dimensions import (
    ShatteredTree,
    growth_function,
    littlestone_dimension,
    mistake_tree,
    representation_size,
    shattered_points,
    vc_dimension,
)
from userdp.exceptions import BudgetError


@pytest.mark.parametrize(("given", "expected"), of_kind("dims"))
def test_shared_cases(given: Any, expected: Any) -> None:
    assert vc_dimension(given["matrix"]) == expected["vc"]
    assert littlestone_dimension(given["matrix"]) == expected["ldim"]


def test_definitions_on_random_matrices() -> None:
    for matrix in random_matrices(400, 1):
        concepts = concepts_of(matrix)
        assert littlestone_dimension(matrix) == oracle.ldim(concepts)
        assert vc_dimension(matrix) == oracle.vc(concepts)
        for k in range(matrix.shape[1] + 2):
            assert growth_function(matrix, k) == oracle.growth(concepts, k)


def test_definitions_on_denser_matrices() -> None:
    rng = np.random.default_rng(2)
    for density in (0.2, 0.35, 0.5):
        for _ in range(4):
            matrix = (rng.random((40, 8)) < density).astype(np.uint8)
            assert littlestone_dimension(matrix) == oracle.ldim(concepts_of(matrix))


@pytest.mark.parametrize("points", [1, 2, 3, 6, 7, 8, 63, 64, 200])
def test_thresholds(points: int) -> None:
    assert littlestone_dimension(thresholds(points)) == math.floor(math.log2(points + 1))
    assert vc_dimension(thresholds(points)) == 1


def test_the_large_classes() -> None:
    assert littlestone_dimension(thresholds(1023)) == 10
    matrix = parities(12, 3)
    tree = mistake_tree(matrix)
    # The size bound is the proof from above, the tree the one from below.
    assert tree.depth == math.floor(math.log2(len(matrix))) == 7
    assert tree.verify(matrix)


def test_a_random_matrix_that_the_size_bound_does_not_close() -> None:
    matrix = (np.random.default_rng(2).random((96, 24)) < 0.25).astype(np.uint8)
    tree = mistake_tree(matrix)
    assert tree.verify(matrix)
    assert littlestone_dimension(matrix) == tree.depth == 5 < math.floor(math.log2(len(np.unique(matrix, axis=0))))


def test_what_no_dimension_sees() -> None:
    rng = np.random.default_rng(3)
    for matrix in random_matrices(60, 4):
        more = np.concatenate([matrix, 1 - matrix, matrix * 0, matrix * 0 + 1], axis=1)
        more = (
            more[rng.integers(len(more), size=30)] if len(np.unique(more, axis=0)) == 1 else np.repeat(more, 2, axis=0)
        )
        more = more[:, rng.permutation(more.shape[1])]
        assert littlestone_dimension(more) == littlestone_dimension(matrix)
        assert vc_dimension(more) == vc_dimension(matrix)
        assert growth_function(more, 2) == growth_function(matrix, 2)
        assert mistake_tree(more).verify(more)


@pytest.mark.parametrize("seed", range(3))
def test_certificates_stand_alone(seed: int) -> None:
    for matrix in random_matrices(60, 10 + seed):
        tree = mistake_tree(matrix)
        assert tree.depth == littlestone_dimension(matrix)
        assert tree.verify(matrix)
        # By the meaning of the tree, without its own check: the labels on the way down are those of the leaf's row.
        for leaf, row in enumerate(tree.concepts):
            node = 0
            for turn in format(leaf, f"0{tree.depth}b") if tree.depth else "":
                assert matrix[row, tree.points[node]] == int(turn)
                node = 2 * node + 1 + int(turn)
        columns = shattered_points(matrix)
        assert len(oracle.patterns(concepts_of(matrix), columns)) == 2 ** len(columns) == 2 ** vc_dimension(matrix)


def test_wrong_trees_are_found() -> None:
    matrix = thresholds(7)
    tree = mistake_tree(matrix)
    broken = [
        ShatteredTree(tree.points, tree.concepts[::-1]),
        ShatteredTree(tree.points[::-1], tree.concepts),
        ShatteredTree(tree.points[:-1], tree.concepts),
        ShatteredTree((), ()),
        ShatteredTree((0, 1), (0, 1, 2)),
        ShatteredTree((7, *tree.points[1:]), tree.concepts),
        ShatteredTree(tree.points, (-1, *tree.concepts[1:])),
        ShatteredTree(tree.points, (8, *tree.concepts[1:])),
        ShatteredTree((0.5, *tree.points[1:]), tree.concepts),  # type: ignore[arg-type]
        ShatteredTree(tree.points, ("0", *tree.concepts[1:])),  # type: ignore[arg-type]
    ]
    assert not any(wrong.verify(matrix) for wrong in broken)
    assert not tree.verify(1 - matrix)


@pytest.mark.parametrize(
    ("concept_class", "ldim"),
    [(Thresholds(7), 3), (Intervals(10), 5), (PointFunctions(6), 1), (FiniteClass([[0, 1], [1, 1]]), 1)],
)
def test_classes_of_the_learners(concept_class: Any, ldim: int) -> None:
    domain = np.arange(concept_class.first, concept_class.first + concept_class.domain_size)
    matrix = concept_class.predict(domain).T
    assert littlestone_dimension(concept_class) == littlestone_dimension(matrix) == ldim
    assert littlestone_dimension(matrix) == oracle.ldim(concepts_of(matrix))


FUNCTIONS = [
    vc_dimension,
    littlestone_dimension,
    mistake_tree,
    shattered_points,
    lambda matrix: growth_function(matrix, 1),
    lambda matrix: representation_size(matrix, alpha=0, beta=0),
]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("matrix", "error"),
    [
        ([[0, 2]], ValueError),
        ([[0.0, 0.5]], ValueError),
        ([[0.0, math.nan]], ValueError),
        ([[0, -1]], ValueError),
        ([], ValueError),
        ([[]], ValueError),
        (np.zeros((0, 3)), ValueError),
        (np.zeros((3, 0)), ValueError),
        ([0, 1], ValueError),
        ([[0, 1], [1]], ValueError),
        ([["0", "1"]], TypeError),
        (None, (TypeError, ValueError)),
    ],
)
def test_bad_matrices(function: Any, matrix: Any, error: Any) -> None:
    with pytest.raises(error, match="matrix"):
        function(matrix)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, int])
def test_numeric_types(dtype: Any) -> None:
    assert littlestone_dimension(np.asfortranarray(thresholds(7).astype(dtype))) == 3
    assert littlestone_dimension(thresholds(7).astype(dtype).tolist()) == 3


def test_classes_without_a_finite_domain() -> None:
    with pytest.raises(TypeError, match="finitely many points"):
        vc_dimension(DecisionStumps([[0.5], [0.5]]))
    with pytest.raises(BudgetError, match="smaller domain"):
        vc_dimension(PointFunctions(2**20))


def test_budgets() -> None:
    matrix = parities(8, 3)
    with pytest.raises(BudgetError, match=r"between \d and 5 \(both proved\).*raise budget= \(about 107 bytes each\)"):
        littlestone_dimension(matrix, budget=2)
    with pytest.raises(BudgetError, match="the VC dimension is between"):
        vc_dimension(matrix, budget=2)
    with pytest.raises(BudgetError, match="growth function is between"):
        growth_function(matrix, 4, budget=2)
    # What was found by then is the lower bound, and the answer when it meets the upper one.
    rng = np.random.default_rng(5)
    for matrix in (rng.random((60, 12)) < density for density in (0.1, 0.2, 0.5)):
        for k, budget in itertools.product((2, 4, 6), (1, 3, 10, 100)):
            try:
                assert growth_function(matrix, k, budget=budget) == oracle.growth(concepts_of(matrix), k)
            except BudgetError as error:
                lower, upper = map(int, re.findall(r"\d+", str(error))[:2])
                assert lower <= oracle.growth(concepts_of(matrix), k) <= upper != lower
                assert budget == 1 or lower >= 2
    for budget, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="budget"):
            littlestone_dimension(matrix, budget=budget)
    assert littlestone_dimension(matrix, budget=2**70) == littlestone_dimension(matrix)
    for k, wrong in ((-1, ValueError), (1.0, TypeError)):
        with pytest.raises(wrong, match="k must"):
            growth_function(matrix, k)
    assert growth_function(thresholds(3), 10**30) == 4


def test_the_default_budget_is_a_gigabyte() -> None:
    totals: list[int] = []
    random = np.random.default_rng(0).random((8000, 400)) < 0.25

    def stop(done: int, total: int) -> None:
        totals.append(total)
        raise StopIteration

    # Version spaces of so many concepts take a kilobyte.
    with pytest.raises(StopIteration):
        littlestone_dimension(random, progress=stop)
    assert totals[0] == 10**9 // 1100


def test_progress() -> None:
    with pytest.raises(TypeError, match="progress"):
        littlestone_dimension([[0, 1]], progress="yes")
    # A search that takes long enough to be asked about.
    calls: list[tuple[int, int]] = []
    with pytest.raises(BudgetError):
        vc_dimension(parities(11, 4), budget=3 * 10**4, progress=lambda done, total: calls.append((done, total)))
    assert calls
    assert all(done <= total == 3 * 10**4 for done, total in calls)


@pytest.mark.serial
def test_what_is_fixed_is_told_while_a_search_runs() -> None:
    """A getter waits for nobody, and neither do other threads."""
    spaces = _core.VersionSpaces(parities(10, 4))
    searching, answered, ended = threading.Event(), threading.Event(), threading.Event()
    counted = [0]

    def progress(done: int, total: int) -> None:
        searching.set()
        if answered.is_set():
            raise InterruptedError

    def search() -> None:
        with contextlib.suppress(InterruptedError, BudgetError):
            spaces.shattered(10**5, progress)
        ended.set()

    def count() -> None:
        while not answered.is_set():
            counted[0] += 1

    threads = [threading.Thread(target=target) for target in (search, count)]
    for thread in threads:
        thread.start()
    searching.wait()
    before = counted[0]
    told = (spaces.reduced_shape, spaces.distinct_columns)
    while counted[0] == before and not ended.is_set():
        pass
    still_searching = not ended.is_set()
    answered.set()
    for thread in threads:
        thread.join()
    assert still_searching
    assert told == ((210, 511), 511)


@pytest.mark.serial
def test_calls_that_share_a_class_take_turns() -> None:
    """Two threads that ask one object get the same answers as one."""
    matrix = parities(9, 3)
    spaces, expected = _core.VersionSpaces(matrix), _core.VersionSpaces(matrix).littlestone(10**6)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: spaces.littlestone(10**6), range(32)))
    assert found == [expected] * 32
