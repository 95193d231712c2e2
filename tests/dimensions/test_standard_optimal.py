"""The standard optimal algorithm, its lists, and the tournament of samples, against their definitions."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import dimensions as oracle
from support.matrices import concepts_of, cube, parities, random_matrices, thresholds
from userdp.concepts import DecisionStumps, FiniteClass, Thresholds
from userdp.dimensions import StandardOptimalAlgorithm
from userdp.exceptions import BudgetError
from userdp.public_randomness import PublicSeed
from userdp.stability import (
    AccurateLists,
    ListLearner,
    ListStabilityLearner,
    LittlestoneLists,
    TournamentLearner,
    VersionSpace,
)

CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/dimensions.json").read_text())["cases"]
Sample = list[tuple[int, int]]
SEED = PublicSeed(bytes(range(32)))


def columns(sample: Sample) -> tuple[list[int], list[int]]:
    return [x for x, _ in sample], [y for _, y in sample]


def copy_of(learner: Any) -> Any:
    return pickle.loads(pickle.dumps(learner))


def follow(matrix: Any, sample: Sample) -> tuple[oracle.State, int]:
    state, mistakes = oracle.start(concepts_of(matrix)), 0
    for x, y in sample:
        mistakes += state[1][x] != y
        state = oracle.follow(state, x, y)
    return state, mistakes


def test_predictions_and_mistakes() -> None:
    """Samples of concepts, and samples that no concept explains."""
    rng = np.random.default_rng(1)
    for matrix in random_matrices(150, 2):
        learner = StandardOptimalAlgorithm(matrix)
        assert learner.littlestone_dimension == oracle.ldim(concepts_of(matrix))
        assert learner.n_points == matrix.shape[1]
        for explained in (True, False):
            points = rng.integers(matrix.shape[1], size=rng.integers(9))
            row = matrix[rng.integers(len(matrix))]
            labels = row[points] if explained else rng.integers(2, size=len(points))
            (_, expected), mistakes = follow(matrix, list(zip(points.tolist(), labels.tolist(), strict=True)))
            assert tuple(learner.predict(points, labels).tolist()) == expected
            assert learner.hypothesis(points, labels) == bytes(expected)
            assert learner.mistakes(points, labels) == mistakes


def test_mistakes_are_bounded_and_then_over() -> None:
    """Any order of any labels of a concept; after LDim mistakes the concept is known."""
    rng = np.random.default_rng(3)
    for matrix in random_matrices(60, 4):
        learner = StandardOptimalAlgorithm(matrix)
        row = matrix[rng.integers(len(matrix))]
        sample: Sample = []
        # An adversary: always a point where the prediction is wrong.
        while (wrong := np.flatnonzero(learner.predict(*columns(sample)) != row)).size:
            sample.append((x := int(rng.choice(wrong)), int(row[x])))
        assert learner.mistakes(*columns(sample)) == len(sample) <= learner.littlestone_dimension


def test_predictions_depend_on_the_sample_alone() -> None:
    """Whatever was asked before: another order of questions, or none."""
    matrix, samples = parities(4, 2), [[], [(3, 1)], [(3, 0), (5, 1)], [(0, 1), (7, 0)], [(9, 1), (3, 1)]]
    used = StandardOptimalAlgorithm(matrix)
    forward = [used.hypothesis(*columns(sample)) for sample in samples]
    backward = [used.hypothesis(*columns(sample)) for sample in reversed(samples)]
    fresh = [StandardOptimalAlgorithm(matrix).hypothesis(*columns(sample)) for sample in samples]
    assert forward == backward[::-1] == fresh


def test_saving() -> None:
    algorithm = StandardOptimalAlgorithm(thresholds(3))
    assert copy_of(algorithm).hypothesis([1], [1]) == algorithm.hypothesis([1], [1])
    lists = LittlestoneLists(Thresholds(3))
    sample = np.array([2]), np.array([1], dtype=np.uint8)
    assert copy_of(lists).lists(*sample) == lists.lists(*sample)
    tournament = TournamentLearner(Thresholds(3), block_length=2, max_examples=99)
    X, labels = np.array([1, 2, 3] * 33)[:, None], np.array([0, 0, 1] * 33, dtype=np.uint8)
    assert copy_of(tournament).item(X, labels, SEED) == tournament.item(X, labels, SEED)
    for learner in (algorithm, lists, tournament):
        assert repr(copy_of(learner)) == repr(learner)


@pytest.mark.parametrize(
    ("points", "labels", "error", "message"),
    [
        ([3], [0], ValueError, "points must be in 0, ..., 2"),
        ([-1], [0], ValueError, "points must be in"),
        ([0], [2], ValueError, "labels must be 0 and 1"),
        ([0], [-1], ValueError, "labels must be 0 and 1"),
        ([0.0], [0], TypeError, "points must be ints"),
        ([0], [0.0], TypeError, "labels must be 0 and 1"),
        ([0], [0, 1], ValueError, "one length"),
        ([[0]], [0], ValueError, "one axis"),
        (0, 0, ValueError, "one axis"),
    ],
)
def test_bad_samples(points: Any, labels: Any, error: Any, message: str) -> None:
    for method in ("predict", "mistakes", "hypothesis", "explanations"):
        with pytest.raises(error, match=message):
            getattr(StandardOptimalAlgorithm(thresholds(3)), method)(points, labels)


def test_explanations() -> None:
    """All that is listed is predicted after some LDim further labels, and all that explain the sample are listed."""
    rng = np.random.default_rng(5)
    for matrix in random_matrices(40, 6):
        algorithm = StandardOptimalAlgorithm(matrix)
        points = rng.integers(matrix.shape[1], size=rng.integers(4))
        labels = matrix[rng.integers(len(matrix))][points]
        consistent = frozenset(
            c for c in concepts_of(matrix) if all(c[x] == y for x, y in zip(points, labels, strict=True))
        )
        listed = algorithm.explanations(points, labels)
        assert listed == sorted(set(listed))
        assert len(listed) <= algorithm.max_explanations
        assert {bytes(c) for c in consistent} <= set(listed)
        further = oracle.restrictions(consistent, algorithm.littlestone_dimension)
        assert set(listed) <= {bytes(oracle.optimal(v)) for v in further}
        order = rng.permutation(len(points))
        assert algorithm.explanations(points[order], labels[order]) == listed


def test_a_tie_at_a_point_and_at_its_negation() -> None:
    """Both are predicted 0, so that one of them is a mistake, and the list must follow it."""
    listed = StandardOptimalAlgorithm([[0, 1], [1, 0]]).explanations([], [])
    assert listed == [bytes(row) for row in ([0, 0], [0, 1], [1, 0])]


def test_explanations_outside_the_class() -> None:
    assert bytes(3) in StandardOptimalAlgorithm(cube(3)[[1, 2, 4]]).explanations([], [])


def test_samples_that_nothing_explains() -> None:
    algorithm = StandardOptimalAlgorithm(thresholds(3))
    assert algorithm.explanations([0, 2], [0, 1]) == algorithm.explanations([1, 1], [0, 1]) == []


def test_littlestone_lists() -> None:
    """The explanations, one byte for each point, with points as the class has them."""
    hypotheses = Thresholds(7)
    lists, table = LittlestoneLists(hypotheses), hypotheses.predict(np.arange(1, 8)).T.astype(np.uint8)
    assert isinstance(lists, ListLearner)
    assert (lists.littlestone_dimension, lists.list_size) == (3, 1 + 7 + 49 + 343)
    for row in table:
        points = np.array([2, 6, 2])
        found = lists.lists(points, row[points - 1])
        assert bytes(row) in found
        expected = StandardOptimalAlgorithm(table).explanations(points - 1, row[points - 1])
        assert [bytes(one) for one in expected] == found
        mistakes = lists.mistakes(found, np.arange(1, 8), row)
        assert mistakes.tolist() == [sum(a != b for a, b in zip(one, row.tolist(), strict=True)) for one in expected]


def test_littlestone_lists_vote() -> None:
    """A user with all points votes for the target, whatever the seed."""
    lists = AccurateLists(LittlestoneLists(Thresholds(3)), alpha="0.1", holdout=3)
    learner = ListStabilityLearner(lists, eta=1, k1=2, k2=1, gamma=3)
    X = np.array([[1], [2], [3]] * 6)
    labels = (X[:, 0] > 1).astype(np.uint8)
    for seed in range(20):
        item = learner.item(X, labels, PublicSeed(bytes([seed] * 32)))
        assert item == bytes([0, 1, 1])


@pytest.mark.parametrize(
    ("hypotheses", "error", "message"),
    [
        (Thresholds(100), BudgetError, "use VersionSpace"),
        (thresholds(3), TypeError, "finite domain"),
        (DecisionStumps([[0.5], [0.5]]), TypeError, "finite domain"),
    ],
)
def test_bad_classes(hypotheses: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        LittlestoneLists(hypotheses)
    if error is TypeError:
        with pytest.raises(error, match=message):
            TournamentLearner(hypotheses, block_length=1, max_examples=10)
    else:
        assert VersionSpace(hypotheses).list_size == 101


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "tournament"], ids=lambda case: case["name"]
)
def test_the_pmfs_of_the_tournament(case: Any) -> None:
    """The reference that the learner is held against below, itself held against known numbers."""
    k, block = case["input"]["k"], case["input"]["n"]
    levels = oracle.tournament_levels(concepts_of(thresholds(k)), (0,) * k, block, 3)
    for expected, facts in zip(case["expected"]["levels"], levels, strict=True):
        assert facts == {name: Fraction(expected[name]) for name in facts}
    # The coins are right about the target less often than two fair ones would be.
    assert levels[2]["a"] < Fraction(1, 4)


@pytest.mark.parametrize(
    "matrix", [thresholds(7), thresholds(3), cube(3)], ids=["thresholds 7", "thresholds 3", "cube"]
)
def test_what_is_proved_of_the_tournament(matrix: Any) -> None:
    """a_k >= (a_(k-1)^2 - coll_(k-1))/2, and some hypothesis has at least b_d/(d + 1), for every target."""
    concepts = concepts_of(matrix)
    depth = oracle.ldim(concepts)
    b = [Fraction(1, 4 ** (2**k - 1)) for k in range(depth + 1)]
    for target in sorted(concepts):
        facts = oracle.tournament_levels(concepts, target, 1, depth if depth > 2 else depth + 1)
        for previous, following in itertools.pairwise(facts):
            assert following["a"] >= (previous["a"] ** 2 - previous["coll"]) / 2
        assert max(level["top"] for level in facts) >= b[depth]


def tournament_pmf(matrix: Any, target: tuple[int, ...], block: int) -> list[dict[bytes, Fraction]]:
    concepts = concepts_of(matrix)
    return oracle.tournament_predictions(concepts, target, block, oracle.ldim(concepts) + 1)


@pytest.mark.parametrize(("block", "eta"), [(1, 0.507), (2, 0.690), (4, 0.868)])
def test_measured_stability(block: int, eta: float) -> None:
    """The exact probability of the likeliest output for the worst target, far above what is proved."""
    worst = Fraction(1)
    for target in sorted(concepts_of(thresholds(3))):
        pmfs = tournament_pmf(thresholds(3), target, block)
        assert len(pmfs) == 3
        worst = min(worst, max(sum(pmf.get(row, Fraction(0)) for pmf in pmfs) / 3 for row in set().union(*pmfs)))
    assert round(float(worst), 3) == eta > 1 / 4**3 / 3


def test_the_learner_draws_from_the_pmf() -> None:
    """3000 runs; every probability within its Hoeffding radius at a false alarm of 1e-7 in all."""
    matrix, target, runs = thresholds(3), (1, 1, 0), 3000
    pmfs = tournament_pmf(matrix, target, 1)
    pmf = {
        row: sum((level.get(row, Fraction(0)) for level in pmfs), Fraction(0)) / len(pmfs) for row in set().union(*pmfs)
    }
    assert sum(pmf.values()) == 1
    learner = TournamentLearner(FiniteClass(matrix), block_length=1, max_examples=400)
    rng = np.random.default_rng(8)
    counts: Counter[bytes] = Counter()
    for _ in range(runs):
        points = rng.integers(3, size=400)
        item = learner.item(points[:, None], np.array(target, dtype=np.uint8)[points], PublicSeed(rng.bytes(32)))
        counts[learner.predict(item, np.arange(3)[:, None]).astype(np.uint8).tobytes()] += 1
    radius = math.sqrt(math.log(2 * len(pmf) / 1e-7) / (2 * runs))
    assert set(counts) <= set(pmf)
    distances = {row: abs(counts[row] / runs - float(mass)) for row, mass in pmf.items()}
    assert max(distances.values()) < radius
    # The test would see the wrong branch being kept.
    wrong = oracle.tournament_predictions(concepts_of(matrix), target, 1, 3, keep_right=True)
    mixed = {row: sum((level.get(row, Fraction(0)) for level in wrong), Fraction(0)) / 3 for row in set().union(*wrong)}
    assert (
        max(abs(float(mixed.get(row, Fraction(0)) - pmf.get(row, Fraction(0)))) for row in {*pmf, *mixed}) > 2 * radius
    )


def test_tournaments_without_enough_examples() -> None:
    learner = TournamentLearner(Thresholds(3), block_length=5, max_examples=4, default=2)
    X, ones = np.ones((60, 1)), np.ones(60, dtype=np.uint8)
    table = Thresholds(3).predict(np.arange(1, 4))[:, 2]
    assert learner.item(X, ones, SEED) == learner.default == table.astype(np.uint8).tobytes()
    assert learner.item(X[:0], ones[:0], SEED) == learner.default
    # One point with one label: the rivals never differ, and the examples run out unless k = 0.
    one = TournamentLearner(FiniteClass([[0], [1]]), block_length=1, max_examples=60)
    outcomes = {one.item(X * 0, ones, PublicSeed(bytes([seed] * 32))) for seed in range(20)}
    assert outcomes == {b"\0", b"\1"}


def test_a_tournament_reads_no_more_than_it_may() -> None:
    learner = TournamentLearner(Thresholds(7), block_length=2, max_examples=40)
    X = np.random.default_rng(4).integers(1, 8, size=(90, 1))
    labels = (X[:, 0] > 4).astype(np.uint8)
    other = np.where(np.arange(90) < 40, labels, 1 - labels).astype(np.uint8)
    for seed in (PublicSeed(bytes([i] * 32)) for i in range(10)):
        assert learner.item(X, labels, seed) == learner.item(X, other, seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"block_length": 0}, "block_length"),
        ({"max_examples": 0}, "max_examples"),
        ({"default": 4}, "default"),
        ({"default": -1}, "default"),
        ({"default": True}, "default"),
    ],
)
def test_bad_tournaments(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TournamentLearner(Thresholds(3), **{"block_length": 1, "max_examples": 10, **arguments})
