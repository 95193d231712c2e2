"""Dimensions of 0/1 matrices against their definitions, certificates that stand alone, and bad input."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import dimensions as oracle
from userdp import LogRatio
from userdp.dimensions import (
    LearnedRepresentation,
    ShatteredTree,
    growth_function,
    littlestone_dimension,
    mistake_tree,
    representation_dimension,
    representation_dimension_bounds,
    representation_from_learner,
    representation_runs,
    representation_size,
    representation_size_bounds,
    shattered_points,
    users_implied,
    vc_dimension,
)
from userdp.dimensions._games import game_value
from userdp.exceptions import BudgetError
from userdp.learners import DecisionStumps, FiniteClass, Intervals, PointFunctions, Thresholds

CASES = json.loads((Path(__file__).parent / "data/correlated_sampling/dimensions.json").read_text())["cases"]
Matrix = npt.NDArray[np.uint8]


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=case["name"]) for case in CASES if case["kind"] == kind]


def concepts_of(matrix: Any) -> oracle.Class:
    return frozenset(tuple(int(bit) for bit in row) for row in np.asarray(matrix))


def random_matrices(count: int, seed: int) -> list[Matrix]:
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, (15, 7), size=(count, 2))
    return [(rng.random(tuple(shape)) < rng.choice([0.15, 0.3, 0.5])).astype(np.uint8) for shape in shapes]


def cube(points: int) -> Matrix:
    return np.array(list(itertools.product((0, 1), repeat=points)), dtype=np.uint8)


def thresholds(points: int) -> Matrix:
    return np.tri(points + 1, points, -1, dtype=np.uint8)


def parities(bits: int, weight: int) -> Matrix:
    points = range(2**bits)
    supports = [s for s in points if s.bit_count() == weight]
    return np.array([[(s & x).bit_count() % 2 for x in points] for s in supports], dtype=np.uint8)


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
    with pytest.raises(BudgetError, match=r"between \d and 5 \(both proved\).*raise budget"):
        littlestone_dimension(matrix, budget=2)
    with pytest.raises(BudgetError, match="the VC dimension is between"):
        vc_dimension(matrix, budget=2)
    with pytest.raises(BudgetError, match="growth function is between"):
        growth_function(matrix, 4, budget=2)
    for budget, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError), ("1", TypeError)):
        with pytest.raises(error, match="budget"):
            littlestone_dimension(matrix, budget=budget)
    assert littlestone_dimension(matrix, budget=2**70) == littlestone_dimension(matrix)
    for k, wrong in ((-1, ValueError), (1.0, TypeError)):
        with pytest.raises(wrong, match="k must"):
            growth_function(matrix, k)
    assert growth_function(thresholds(3), 10**30) == 4


def test_progress() -> None:
    with pytest.raises(TypeError, match="progress"):
        littlestone_dimension([[0, 1]], progress="yes")
    # A search that takes long enough to be asked about.
    calls: list[tuple[int, int]] = []
    with pytest.raises(BudgetError):
        vc_dimension(parities(11, 4), budget=3 * 10**4, progress=lambda done, total: calls.append((done, total)))
    assert calls
    assert all(done <= total == 3 * 10**4 for done, total in calls)


def test_games_prove_themselves() -> None:
    rng = np.random.default_rng(5)
    for _ in range(300):
        shape = tuple(rng.integers(1, 7, size=2))
        payoffs = [
            [Fraction(int(a), int(b)) for a, b in zip(*pair, strict=True)]
            for pair in zip(rng.integers(-4, 5, size=shape), rng.integers(1, 4, size=shape), strict=True)
        ]
        value, rows, columns = game_value(payoffs)
        assert sum(rows) == sum(columns) == 1
        assert min(rows) >= 0 <= min(columns)
        assert min(sum(p * row[j] for p, row in zip(rows, payoffs, strict=True)) for j in range(shape[1])) == value
        assert max(sum(q * entry for q, entry in zip(columns, row, strict=True)) for row in payoffs) == value


@pytest.mark.parametrize(("given", "expected"), of_kind("prdim_size"))
def test_shared_cases_of_representations(given: Any, expected: Any) -> None:
    sizes = {"alpha": given["alpha"], "beta": given["beta"]}
    assert representation_size(given["matrix"], **sizes) == expected["size"]
    assert representation_dimension(given["matrix"], **sizes) == math.log2(expected["size"])


def least_size(matrix: Matrix, alpha: Fraction, beta: float) -> int:
    """By floating-point linear programs over distributions in sixtieths, without any removal of points."""
    linprog = pytest.importorskip("scipy.optimize").linprog
    concepts, points = concepts_of(matrix), matrix.shape[1]
    wanted = {
        frozenset(sum(bit << x for x, bit in enumerate(c)) ^ g for g in family)
        for c in concepts
        for family in oracle.forgiven(points, alpha, 60)
    }
    size = 0
    while True:
        size += 1
        sets = list(itertools.combinations(range(2**points), size))
        payoffs = np.array([[not family.isdisjoint(chosen) for chosen in sets] for family in wanted], dtype=float)
        # Maximise v with payoffs @ w >= v over probabilities w.
        found = linprog(
            np.append(np.zeros(len(sets)), -1.0),
            A_ub=np.hstack([-payoffs, np.ones((len(payoffs), 1))]),
            b_ub=np.zeros(len(payoffs)),
            A_eq=[np.append(np.ones(len(sets)), 0.0)],
            b_eq=[1.0],
        )
        if -found.fun >= 1 - beta - 1e-9:
            return size


@pytest.mark.parametrize("alpha", ["1/4", "1/3", "2/5", "1/2", "3/5"])
def test_sizes_against_linear_programs(alpha: str) -> None:
    rng = np.random.default_rng(6)
    matrices = [cube(2), thresholds(2), thresholds(3), np.eye(3, dtype=np.uint8), cube(3)]
    matrices += [rng.integers(2, size=(rows, 3), dtype=np.uint8) for rows in (3, 5, 7)]
    for matrix in matrices:
        for beta in ("1/4", "1/8", "0.5"):
            size = representation_size(matrix, alpha=alpha, beta=beta)
            assert size == least_size(matrix, Fraction(alpha), float(Fraction(beta)))
            lower, upper = representation_size_bounds(matrix, alpha=alpha, beta=beta)
            assert lower <= size <= upper
            bounds = representation_dimension_bounds(matrix, alpha=alpha, beta=beta)
            assert bounds.lower <= math.log2(size) <= bounds.upper


def test_sizes_between_the_bounds() -> None:
    """Where the bounds leave room, so that the games decide."""
    assert representation_size_bounds(cube(3), alpha="1/3", beta="1/4") == (3, 6)
    assert representation_size(cube(3), alpha="1/3", beta="1/4") == 3
    assert representation_size(cube(3), alpha="1/4", beta="1/4") == 6


def test_bounds_of_representations() -> None:
    # Below 1 / (number of points) nothing may be wrong anywhere.
    assert representation_size_bounds(thresholds(50), alpha="1/51", beta="1/4") == (39, 39)
    assert representation_size_bounds(thresholds(50), alpha=0, beta=0) == (51, 51)
    assert representation_size_bounds(thresholds(50), alpha="1/2", beta=0) == (2, 2)
    assert representation_size_bounds(thresholds(50), alpha=1, beta=0) == (1, 1)
    # 1 / alpha = 3 is not above 3: two points, on which thresholds show three patterns.
    assert representation_size_bounds(thresholds(50), alpha="1/3", beta=0) == (3, 51)
    assert representation_size_bounds(thresholds(50), alpha="0.33", beta=0) == (4, 51)
    assert representation_size([[1, 0, 1]], alpha=0, beta="1/2") == 1
    with pytest.raises(BudgetError, match="at most 3 points, and the matrix has 50"):
        representation_size(thresholds(50), alpha="1/3", beta=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"alpha": -0.1, "beta": 0}, "alpha"),
        ({"alpha": 1.1, "beta": 0}, "alpha"),
        ({"alpha": 0.1, "beta": 1}, "beta"),
        ({"alpha": 0.1, "beta": 1.5}, "beta"),
        ({"alpha": math.nan, "beta": 0}, "alpha"),
    ],
)
def test_bad_accuracies(arguments: Any, message: str) -> None:
    for function in (representation_size, representation_dimension, representation_dimension_bounds):
        with pytest.raises(ValueError, match=message):
            function(thresholds(3), **arguments)


def exact_runs(n: int, e: Fraction, delta: Fraction, beta: Fraction, failure: float) -> float:
    geometric = sum(e**j for j in range(n))
    return -math.log(failure) / ((1 - beta - delta * geometric) / e**n)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("e", [Fraction(1), Fraction(3, 2), Fraction(3)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000)])
def test_runs(n: int, e: Fraction, delta: Fraction) -> None:
    beta, failure = Fraction(1, 4), 0.01
    level = LogRatio(e.numerator, e.denominator)
    runs = representation_runs(n_users=n, epsilon=level, delta=delta, beta=beta, failure=failure)
    assert runs == math.ceil(exact_runs(n, e, delta, beta, failure))


def test_runs_that_are_refused() -> None:
    claim: dict[str, Any] = {"beta": "1/4", "failure": "1/4"}
    for n_users, epsilon in ((17, 1), (10**9, 1), (10**6, LogRatio(3, 2)), (2, 10**6)):
        with pytest.raises(BudgetError, match=r"runs of the learner are needed, and at most 10\*\*7"):
            representation_runs(n_users=n_users, epsilon=epsilon, **claim)
    with pytest.raises(ValueError, match="too large for 10 users"):
        representation_runs(n_users=10, epsilon=1, delta="1e-3", **claim)
    with pytest.raises(ValueError, match="failure"):
        representation_runs(n_users=1, epsilon=1, beta=0, failure=0)
    with pytest.raises(ValueError, match="beta"):
        representation_runs(n_users=1, epsilon=1, beta=1, failure=0.5)
    with pytest.raises(ValueError, match="n_users"):
        representation_runs(n_users=0, epsilon=1, beta=0, failure=0.5)


def test_a_representation_from_a_learner() -> None:
    """The exponential mechanism over the thresholds on 3 points, one example of each of 4 users."""
    rng = np.random.default_rng(7)
    concepts = [tuple(row) for row in thresholds(3).tolist()]
    seen = []

    def learner(dataset: Any) -> tuple[int, ...]:
        seen.append(dataset)
        weights = [math.exp(-sum(c[x] != y for x, y in dataset) / 2) for c in concepts]
        return concepts[rng.choice(4, p=np.array(weights) / sum(weights))]

    dummy = [(0, 0)] * 4
    representation = representation_from_learner(
        learner, dummy, n_users=4, epsilon=1, alpha="1/3", beta="3/4", failure="1e-3"
    )
    assert isinstance(representation, LearnedRepresentation)
    assert (
        representation.runs
        == len(seen)
        == math.ceil(exact_runs(4, Fraction(math.e), Fraction(0), Fraction(3, 4), 1e-3))
    )
    assert all(dataset is dummy for dataset in seen)
    assert len(set(representation.hypotheses)) == len(representation.hypotheses) <= 4
    assert (representation.alpha, representation.failure) == (Fraction(1, 3), Fraction(1, 1000))
    # Every concept, and every distribution, is served by what the runs found, at its stated rate: here by all four.
    assert set(representation.hypotheses) == set(concepts)
    with pytest.raises(TypeError, match="learner"):
        representation_from_learner(None, dummy, n_users=4, epsilon=1, alpha=0, beta=0, failure=0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [1, 0.1, LogRatio(3, 2)])
@pytest.mark.parametrize("size", [1, 2, 50, 2**12, 2**20])
def test_users_implied(epsilon: Any, size: int) -> None:
    """The bound is where the runs start to reach the size."""
    claim: dict[str, Any] = {"epsilon": epsilon, "beta": "1/4", "failure": "1/4"}
    n = users_implied(size, **claim)
    reach = math.log(4 / 3 * math.log(4))  # of no users
    value = float(epsilon)
    assert math.ceil(math.exp(n * value + reach)) >= size
    assert n == 0 or math.ceil(math.exp((n - 1) * value + reach)) < size


def test_users_implied_of_the_bounds() -> None:
    assert [users_implied(2**d, epsilon=1, beta="1/4", failure="1/4") for d in (8, 12, 20)] == [5, 8, 14]
    for arguments in ({"epsilon": 0, "beta": 0, "failure": 0.1}, {"epsilon": 1, "beta": 0, "failure": 0}):
        with pytest.raises(ValueError, match="must be above 0"):
            users_implied(2, **arguments)
    with pytest.raises(ValueError, match="size"):
        users_implied(0, epsilon=1, beta=0, failure=0.1)
