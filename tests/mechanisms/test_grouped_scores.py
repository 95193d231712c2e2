"""Groups of candidates: what is refused, what is converted, and what is read where it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from userdp.mechanisms import GroupedExponentialMechanism, GroupedScores


def test_groups_that_are_none_are_refused() -> None:
    falls = "starts: must not fall, begin at most at last, and end at most at last \\+ 1"
    for arguments, error, text in [
        (([0], [0], -1), ValueError, "last must be an int from 0"),
        (([0], [0], 2**64), ValueError, "last must be an int from 0"),
        (([0], [0], 1.0), TypeError, "last must be an int from 0"),
        (([0], [0], True), TypeError, "last must be an int from 0"),
        (([], [], 5), ValueError, "starts: is empty"),
        (([0, 1], [0], 5), ValueError, "scores: has 1 entries where starts has 2"),
        (([1, 0], [0, 0], 5), ValueError, falls),
        (([0, 7], [0, 0], 5), ValueError, falls),
        (([6], [0], 5), ValueError, falls),
        (([6, 6], [0, 0], 5), ValueError, falls),
        (([-1], [0], 5), ValueError, "starts must be a vector of integers from 0 to 18446744073709551615; one is"),
        ((np.array([-1]), [0], 5), ValueError, "starts must be .*; one is"),
        (([0], [2**63], 5), ValueError, "scores must be .* to 9223372036854775807; one is"),
        (([0], np.array([2**63], dtype=np.uint64), 5), ValueError, "scores must be .*; one is"),
        (([0.0], [0], 5), TypeError, "starts must be a vector of integers"),
        (([0], np.array([0.0]), 5), TypeError, "scores must be .*; got the dtype float64"),
        (("0", [0], 5), TypeError, "starts must be a vector of integers"),
        ((0, [0], 5), TypeError, "starts must be a vector of integers"),
        (([[0]], [0], 5), TypeError, "starts must be a vector of integers"),
        ((np.zeros((1, 1), dtype=np.uint64), [0], 5), ValueError, r"starts must be .*; got the shape \(1, 1\)"),
        ((np.ma.masked_array([0], mask=[True]), [0], 5), TypeError, "starts is a masked array"),
    ]:
        with pytest.raises(error, match=text):
            GroupedScores(*arguments)  # type: ignore[arg-type]


def test_triples_that_are_no_groups_are_refused() -> None:
    choice = GroupedExponentialMechanism(epsilon=1, sensitivity=1)
    triples: Any
    for triples, error, text in [
        ([], ValueError, "groups is empty"),
        (5, TypeError, "groups must be triples"),
        ([5], TypeError, "groups must be triples"),
        ([(0, 1)], TypeError, "entry 0 must be three ints"),
        ([(0, 1, 0.5)], TypeError, "entry 0 must be three ints"),
        ([(0, 1, 0), (3, 4, 0)], ValueError, "entry 1 must begin right after"),
        ([(0, 1, 0), (1, 4, 0)], ValueError, "entry 1 must begin right after"),
        ([(2, 1, 0)], ValueError, "entry 0 ends before"),
        ([(0, 2**64, 0)], ValueError, "last must be an int from 0"),
    ]:
        for call in (choice.sample, choice.pmf, choice.group_probabilities):
            with pytest.raises(error, match=text):
                call(triples)


def test_groups_are_views_that_cannot_be_written() -> None:
    starts, scores = np.array([0, 5], dtype=np.uint64), np.array([1, 2])
    groups = GroupedScores(starts, scores, 9)
    assert np.shares_memory(groups.starts, starts)
    assert np.shares_memory(groups.scores, scores)
    assert (groups.first, groups.last, groups.n_candidates, len(groups)) == (0, 9, 10, 2)
    for array in (groups.starts, groups.scores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert starts.flags.writeable
    with pytest.raises(AttributeError):
        groups.last = 3  # type: ignore[misc]
    # What is written behind their back is checked again.
    starts[0] = 6
    with pytest.raises(ValueError, match="starts: must not fall"):
        GroupedExponentialMechanism(epsilon=1, sensitivity=1).sample(groups)


def test_other_integer_types_are_converted() -> None:
    expected = list(GroupedScores([1, 5], [-3, 4], 9))
    for starts in (
        np.array([1, 5], dtype=np.int8),
        np.array([1, 0, 5, 0], dtype=np.uint64)[::2],
        np.array([1, 5], ">u8"),
    ):
        assert list(GroupedScores(starts, (np.int16(-3), 4), np.int64(9))) == expected  # type: ignore[arg-type]
