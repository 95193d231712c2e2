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
from test_dimensions import concepts_of, cube, parities, random_matrices, thresholds
from userdp.dimensions import (
    ListLearner,
    LittlestoneListLearner,
    StandardOptimalAlgorithm,
    TournamentLearner,
    VersionSpaceListLearner,
)
from userdp.exceptions import BudgetError

CASES = json.loads((Path(__file__).parent / "data/correlated_sampling/dimensions.json").read_text())["cases"]
Sample = list[tuple[int, int]]


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
    for kind in (StandardOptimalAlgorithm, LittlestoneListLearner, VersionSpaceListLearner):
        learner = kind(thresholds(3))
        copy = copy_of(learner)
        assert (copy.n_points, repr(copy)[:20]) == (3, repr(learner)[:20])
        method = "hypothesis" if kind is StandardOptimalAlgorithm else "lists"
        assert getattr(copy, method)([1], [1]) == getattr(learner, method)([1], [1])
    tournament = TournamentLearner(thresholds(3), block_length=2, max_examples=99)
    runs = [
        t.learn([0, 1, 2] * 33, [1, 0, 0] * 33, np.random.default_rng(3)) for t in (tournament, copy_of(tournament))
    ]
    assert runs[0] == runs[1]


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
    for learner in (LittlestoneListLearner(thresholds(3)), VersionSpaceListLearner(thresholds(3))):
        with pytest.raises(error, match=message):
            learner.lists(points, labels)
    for method in ("predict", "mistakes", "hypothesis"):
        with pytest.raises(error, match=message):
            getattr(StandardOptimalAlgorithm(thresholds(3)), method)(points, labels)


def test_littlestone_lists() -> None:
    """All that is listed is predicted after some LDim further labels, and all that explain the sample are listed."""
    rng = np.random.default_rng(5)
    for matrix in random_matrices(40, 6):
        learner = LittlestoneListLearner(matrix)
        assert isinstance(learner, ListLearner)
        points = rng.integers(matrix.shape[1], size=rng.integers(4))
        labels = matrix[rng.integers(len(matrix))][points]
        consistent = frozenset(
            c for c in concepts_of(matrix) if all(c[x] == y for x, y in zip(points, labels, strict=True))
        )
        listed = learner.lists(points, labels)
        assert list(listed) == sorted(set(listed))
        assert len(listed) <= learner.max_list_size
        assert {bytes(c) for c in consistent} <= set(listed)
        depth = learner.littlestone_dimension
        assert set(listed) <= {bytes(oracle.optimal(v)) for v in oracle.restrictions(consistent, depth)}
        order = rng.permutation(len(points))
        assert learner.lists(points[order], labels[order]) == listed


def test_littlestone_lists_hold_what_is_not_in_the_class() -> None:
    listed = LittlestoneListLearner(cube(3)[[1, 2, 4]]).lists([], [])
    assert bytes(3) in listed


def test_version_space_lists() -> None:
    for matrix in random_matrices(40, 7):
        learner = VersionSpaceListLearner(matrix)
        assert isinstance(learner, ListLearner)
        concepts = concepts_of(matrix)
        assert learner.max_list_size == len(concepts)
        for labels in itertools.product((0, 1), repeat=min(3, matrix.shape[1])):
            points = range(len(labels))
            expected = [bytes(c) for c in sorted(concepts) if c[: len(labels)] == labels]
            assert learner.lists(list(points), list(labels)) == expected


def test_lists_of_samples_that_nothing_explains() -> None:
    for learner in (LittlestoneListLearner(thresholds(3)), VersionSpaceListLearner(thresholds(3))):
        assert list(learner.lists([0, 2], [0, 1])) == []
        assert list(learner.lists([1, 1], [0, 1])) == []


def test_lists_that_would_be_too_long() -> None:
    with pytest.raises(BudgetError, match="use VersionSpaceListLearner"):
        LittlestoneListLearner(thresholds(100))
    assert VersionSpaceListLearner(thresholds(100)).max_list_size == 101


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["kind"] == "tournament"], ids=lambda case: case["name"]
)
def test_the_laws_of_the_tournament(case: Any) -> None:
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


def tournament_law(matrix: Any, target: tuple[int, ...], block: int) -> list[dict[bytes, Fraction]]:
    concepts = concepts_of(matrix)
    return oracle.tournament_predictions(concepts, target, block, oracle.ldim(concepts) + 1)


def test_the_learner_draws_from_the_law() -> None:
    """3000 runs; every probability within its Hoeffding radius at a false alarm of 1e-7 in all."""
    matrix, target, runs = thresholds(3), (1, 1, 0), 3000
    laws = tournament_law(matrix, target, 1)
    law = {
        row: sum((level.get(row, Fraction(0)) for level in laws), Fraction(0)) / len(laws) for row in set().union(*laws)
    }
    assert sum(law.values()) == 1
    learner = TournamentLearner(matrix, block_length=1, max_examples=400)
    rng = np.random.default_rng(8)
    counts: Counter[bytes] = Counter()
    for _ in range(runs):
        points = rng.integers(3, size=400)
        counts[learner.learn(points, np.array(target)[points], rng)] += 1
    radius = math.sqrt(math.log(2 * len(law) / 1e-7) / (2 * runs))
    assert set(counts) <= set(law)
    distances = {row: abs(counts[row] / runs - float(mass)) for row, mass in law.items()}
    assert max(distances.values()) < radius
    # The test would see the wrong branch being kept.
    wrong = oracle.tournament_predictions(concepts_of(matrix), target, 1, 3, keep_right=True)
    mixed = {row: sum((level.get(row, Fraction(0)) for level in wrong), Fraction(0)) / 3 for row in set().union(*wrong)}
    assert (
        max(abs(float(mixed.get(row, Fraction(0)) - law.get(row, Fraction(0)))) for row in {*law, *mixed}) > 2 * radius
    )


def test_tournaments_without_enough_examples() -> None:
    learner = TournamentLearner(thresholds(3), block_length=5, max_examples=4, default=[1, 1, 0])
    assert learner.learn([0] * 100, [1] * 100, np.random.default_rng(1)) == learner.default == bytes([1, 1, 0])
    assert TournamentLearner(thresholds(3), block_length=1, max_examples=9).learn(
        [], [], np.random.default_rng(1)
    ) == bytes(3)
    # One label everywhere: the rivals never differ, and the examples run out.
    many = TournamentLearner(thresholds(1), block_length=1, max_examples=60)
    outcomes = {many.learn([0] * 60, [1] * 60, np.random.default_rng(seed)) for seed in range(20)}
    assert outcomes == {bytes([0]), bytes([1])}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"block_length": 0}, "block_length"),
        ({"max_examples": 0}, "max_examples"),
        ({"default": [0, 1]}, "default"),
        ({"default": [0, 1, 2]}, "default"),
    ],
)
def test_bad_tournaments(arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TournamentLearner(thresholds(3), **{"block_length": 1, "max_examples": 10, **arguments})


def test_coins_must_be_a_generator() -> None:
    with pytest.raises(TypeError, match="coins"):
        TournamentLearner(thresholds(3), block_length=1, max_examples=10).learn([0], [1], 7)  # type: ignore[arg-type]
