"""The all-pairs search through Python, against loops in numpy and in fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.divergence import hockey_stick as exact_hockey_stick
from userdp import LogRatio, _core
from userdp.exact import Pmf
from userdp.exact.epsilon import level_of
from userdp.lddp import PairwiseResult, pairwise_indistinguishable, pairwise_max_divergence
from userdp.lddp.pairwise import matrix_of

weights = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=1, max_size=9)


def fractions(rows: list[list[int]]) -> list[list[Fraction]]:
    return [[Fraction(weight, sum(row)) for weight in row] for row in rows]


def all_pairs(rows: list[list[Fraction]], ratio: Fraction) -> dict[tuple[int, int], Fraction]:
    size = range(len(rows))
    return {(i, j): exact_hockey_stick(rows[i], rows[j], ratio) for i in size for j in size if i != j}


@settings(max_examples=300, deadline=None)
@given(weights, st.integers(1, 5), st.integers(1, 5))
def test_exact_pmfs_against_all_pairs_in_fractions(rows: list[list[int]], a: int, b: int) -> None:
    ratio = Fraction(max(a, b), min(a, b))
    pmfs = fractions(rows)
    truth = all_pairs(pmfs, ratio)
    result = pairwise_max_divergence(pmfs, epsilon=LogRatio(ratio.numerator, ratio.denominator))
    assert result.pairs == len(truth)
    if not truth:
        assert result.witness is None
        assert (result.lower, result.upper) == (0.0, 0.0)
        return
    worst = max(truth.values())
    assert Fraction(result.lower) <= worst <= Fraction(result.upper)
    assert result.upper <= np.nextafter(result.lower, 1)
    assert result.witness is not None
    assert truth[result.witness] == worst
    assert result.event == tuple(o for o in range(3) if pmfs[result.witness[0]][o] > ratio * pmfs[result.witness[1]][o])
    for delta in {Fraction(0), worst, worst / 2, max(worst - Fraction(1, 10**30), Fraction(0))}:
        verdict = pairwise_indistinguishable(pmfs, epsilon=LogRatio(ratio.numerator, ratio.denominator), delta=delta)
        assert verdict.holds is (worst <= delta)
        assert bool(verdict) is (worst <= delta)
        if not verdict:
            assert verdict.witness is not None
            assert truth[verdict.witness] > delta
            assert Fraction(verdict.lower) <= worst <= Fraction(verdict.upper)
        else:
            assert worst <= Fraction(verdict.upper)


@pytest.mark.parametrize(("rows", "outputs"), [(40, 3), (700, 9), (1500, 30)])
def test_floats_against_numpy(rows: int, outputs: int) -> None:
    pmfs = np.random.default_rng(rows).dirichlet(np.ones(outputs), rows)
    result = pairwise_max_divergence(pmfs, epsilon=0.25)
    ratio = np.exp(0.25)
    naive = max(float(np.maximum(0, p - ratio * pmfs).sum(axis=1).max()) for p in pmfs)
    assert result.lower == pytest.approx(naive, abs=1e-13)
    assert result.witness is not None
    assert result.event is not None
    i, j = result.witness
    event = list(result.event)
    assert pmfs[i][event].sum() - ratio * pmfs[j][event].sum() == pytest.approx(naive, abs=1e-13)
    assert 0 < result.pairs_evaluated <= rows * rows
    for factor, holds in ((0.5, False), (0.9999, False), (1.0001, True)):
        assert pairwise_indistinguishable(pmfs, epsilon=0.25, delta=naive * factor).holds is holds


def test_other_containers() -> None:
    table = [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]
    expected = pairwise_max_divergence(np.array(table), epsilon=0)
    assert (expected.lower, expected.upper, expected.witness, expected.pairs) == (0.25, 0.25, (0, 1), 6)
    pandas = pytest.importorskip("pandas")
    for other in (table, np.array(table, order="F"), np.array(table, dtype=">f8"), pandas.DataFrame(table)):
        result = pairwise_max_divergence(other, epsilon=0)
        assert (result.lower, result.upper, result.witness, result.pairs) == (0.25, 0.25, (0, 1), 6)
    pmf = Pmf.from_weights([1, 3])
    assert pairwise_max_divergence([pmf, [0.5, 0.5]], epsilon=0).lower == 0.25


def test_equal_rows_are_at_distance_zero() -> None:
    for pmfs in ([["1/3", "2/3"]] * 4, np.full((4, 2), 0.5)):
        result = pairwise_max_divergence(pmfs, epsilon=0)
        assert (result.lower, result.upper, result.pairs) == (0.0, 0.0, 12)
        assert result.witness is not None
        assert result.witness[0] != result.witness[1]
        assert pairwise_indistinguishable(pmfs, epsilon=0, delta=0).holds


def test_levels_beyond_float64() -> None:
    pmfs = [["1e-300", 1 - Fraction("1e-300")], [Fraction(1, 2), Fraction(1, 2)]]
    result = pairwise_max_divergence(pmfs, epsilon=300)
    assert result.witness == (1, 0)
    assert result.upper == np.nextafter(result.lower, 1)
    # e^300 is below 2^434: what is subtracted from 1/2 is about 2e-170.
    assert result.upper == 0.5
    assert not pairwise_indistinguishable(pmfs, epsilon=300, delta="0.49")
    assert pairwise_indistinguishable(pmfs, epsilon=700, delta=0)


@pytest.mark.parametrize(
    ("pmfs", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], "row 1"),
        (np.array([[0.5, 0.5], [np.nan, 1.0]]), "row 1"),
        (np.array([[0.5, 0.5], [1.5, -0.5]]), "row 1"),
        ([[0.5, 0.5], [1.0]], "lengths"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros((3, 0)), "empty"),
        ([], "empty"),
        (np.array([0.5, 0.5]), "dimension"),
    ],
)
def test_bad_pmfs(pmfs: Any, message: str) -> None:
    for ask in (
        lambda: pairwise_max_divergence(pmfs, epsilon=1),
        lambda: pairwise_indistinguishable(pmfs, epsilon=1, delta=0.1),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_no_verdict_was_asked_about() -> None:
    result = PairwiseResult(0.0, 0.0, None, None, 0, 0)
    with pytest.raises(TypeError, match="no delta"):
        bool(result)


def test_the_answer_about_delta_is_exact_among_hundreds_of_near_ties() -> None:
    """Divergences 1/2 + i 2**-110: the audit's verdict must not rest on the few that are compared exactly."""
    rows = np.array([[1.0, 0.0, 0.0]] + [[0.5, 0.5, i * 2.0**-110] for i in range(1, 300)])
    matrix, _, _ = matrix_of(rows)
    largest = Fraction(1, 2) + Fraction(299, 2**110)
    for delta, exceeds in ((Fraction(1, 2), True), (largest, False)):
        found = _core.pairwise_maximum(matrix, level_of(0), delta)
        assert found is not None
        assert found[3] is exceeds
        assert pairwise_indistinguishable(rows, epsilon=0, delta=delta).holds is not exceeds


@pytest.mark.parametrize("epsilon", [80, 90, 200, 276])
def test_verdicts_at_huge_levels(epsilon: int) -> None:
    pmfs = np.random.default_rng(1).dirichlet(np.ones(4), 64)
    pmfs[0] = [0.0, 0.5, 0.25, 0.25]
    worst = max(row[0] for row in pmfs)  # outputs that some row never gives are what is left at such levels
    assert pairwise_max_divergence(pmfs, epsilon=epsilon).lower == pytest.approx(worst)
    assert not pairwise_indistinguishable(pmfs, epsilon=epsilon, delta=0.99 * worst)
    assert pairwise_indistinguishable(pmfs, epsilon=epsilon, delta=1.01 * worst)
