"""Probabilistic representations: exact sizes, certified bounds, what private learners imply; and the games behind."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from oracle import dimensions as oracle
from support.matrices import concepts_of, cube, of_kind, thresholds
from userdp import LogRatio
from userdp.dimensions import (
    LearnedRepresentation,
    representation_dimension,
    representation_dimension_bounds,
    representation_from_learner,
    representation_runs,
    representation_size,
    representation_size_bounds,
    users_implied,
)
from userdp.dimensions.representation import game_value
from userdp.exceptions import BudgetError

Matrix = npt.NDArray[np.uint8]


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
        # Maximize v with payoffs @ w >= v over probabilities w.
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
    for extreme in ({"beta": "0.5", "failure": "1e-4000"}, {"beta": 1 - Fraction(1, 10**400), "failure": "0.5"}):
        with pytest.raises(BudgetError):
            representation_runs(n_users=9, epsilon=1, **extreme)
    assert representation_runs(n_users=1, epsilon=1, beta=0, failure=1 - Fraction(1, 10**400)) == 1
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
