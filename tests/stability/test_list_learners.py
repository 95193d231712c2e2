"""Learners that list hypotheses: what is on the lists, and what is made of them."""

from __future__ import annotations

from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from userdp.concepts import FiniteClass, Intervals, Thresholds
from userdp.public_randomness import PublicSeed
from userdp.stability import (
    AccurateLists,
    ListLearner,
    ListStabilityLearner,
    LittlestoneLists,
    VersionSpace,
    audit_stability,
)

SEED = PublicSeed(bytes(range(32)))


def test_the_default_is_of_the_kind_that_is_listed() -> None:
    learner = ListStabilityLearner(LittlestoneLists(Intervals(3)), eta=1, k1=2, k2=1, gamma=1)
    assert learner.default == bytes(int(said) for said in Intervals(3).predict(np.arange(1, 4), 0, 1)[:, 0])
    with pytest.raises(TypeError, match="default must be bytes"):
        ListStabilityLearner(LittlestoneLists(Intervals(3)), eta=1, k1=2, k2=1, gamma=1, default=0)


def test_lists_of_learners_on_points() -> None:
    thresholds = Thresholds(6)
    lists = LittlestoneLists(thresholds)
    distribution = {(x, int(x > 2)): F(1, 6) for x in range(1, 7)}
    report = audit_stability(lists, distribution, m=2, alpha=0)
    assert report.list_size is not None
    assert report.list_size <= lists.list_size
    # The target is on every list.
    target = bytes([0, 0, 1, 1, 1, 1])
    assert report.global_stability.lower == 1
    assert {own.item for own in report.items if own.probability.lower == 1} == {target}
    X = np.tile(np.arange(1, 7), 30)[:, None]
    vote = ListStabilityLearner(lists, eta=1, k1=5, k2=10, gamma=100).item(X, (X[:, 0] > 2).astype(np.uint8), SEED)
    assert vote == target


def test_lists_of_a_version_space() -> None:
    hypotheses = FiniteClass([[0, 0, 1], [0, 1, 1], [1, 1, 1]])
    space = VersionSpace(hypotheses)
    points, labels = np.array([0, 2, 1, 1]), np.array([0, 1, 1, 0], dtype=np.uint8)
    assert space.lists(points[:2], labels[:2]) == [0, 1]
    assert space.lists(points, labels) == []
    # All blocks at once, as one by one.
    assert space.frequencies(points[:, None], labels, 2) == ListLearner.frequencies(space, points[:, None], labels, 2)
    assert space.frequencies(points[:, None], labels, 4) == {0: 3, 1: 3, 2: 2}


def test_lists_without_what_looks_inaccurate() -> None:
    class All(ListLearner):
        hypotheses = Thresholds(3)
        list_size = 4

        def lists(self, points: Any, labels: Any) -> list[int]:
            return [3, 2, 1, 0, 0]

    points, labels = np.array([1, 1, 2, 3, 1]), np.array([0, 0, 1, 1, 0], dtype=np.uint8)
    for alpha, kept in ((F(1, 4), [0, 1, 2]), (F(1, 5), [1]), (F(1, 2), [0, 1, 2, 3])):
        # The last three examples decide: 1, 0, 1 and 2 mistakes, of which floor(9 alpha / 2) are allowed.
        assert AccurateLists(All(), alpha=alpha, holdout=3).lists(points, labels) == kept
    assert AccurateLists(All(), alpha=F(1, 2), holdout=5).lists(points, labels) == []
