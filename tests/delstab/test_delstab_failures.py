"""What in the data may go wrong in a DelStab release: it is private, and an error in diagnostics only."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.algorithms import AdditiveAlgorithm, SummedScoreEM, SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_user_level
from userdp.delstab import BOTTOM, DelStab
from userdp.exceptions import BudgetError
from userdp.testing import assert_user_private

F = Fraction


def users(values: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple((value,) for value in values)


def noisy(kept: Any) -> list[Fraction]:
    ones = sum(user[0] for user in kept)
    weights = [F(1, 4 ** abs(output - ones)) for output in range(3)]
    return [weight / sum(weights) for weight in weights]


SYMMETRIC = SymmetricAlgorithm(range(3), noisy)
SMALL: dict[str, Any] = {"epsilon": LogRatio(8000, 1), "delta": "0.06"}
"""Four deletions."""


@pytest.mark.parametrize("make", [SymmetricAlgorithm, lambda outputs, pmf: finite_algorithm(outputs)(pmf)])
@pytest.mark.parametrize(
    "failure",
    [lambda: 1 / 0, lambda: [F(1, 2)], lambda: [0.5, 0.6], lambda: [float("nan"), 1.0], lambda: None, sys.exit],
    ids=range(6),
)
def test_failures_are_private(make: Any, failure: Any) -> None:
    """Where the algorithm fails it is as if it said something that nobody else says."""

    def pmf(kept: Any) -> Any:
        return failure() if any(user[0] == 7 for user in kept) else [F(1, 2), F(1, 2)]

    delstab = DelStab(make((0, 1), pmf), **SMALL)
    for odd, expected in ((0, 0), (1, 1), (2, 2), (3, 3), (6, None)):
        people = users((7,) * odd + (1,) * (6 - odd))
        assert delstab.smallest_stable_size(people) == expected
        assert delstab.release(people) in delstab.outputs
    assert delstab.release(users((7,) * 6)) is BOTTOM
    assert delstab.pmf(users((7,) * 6)).fractions() == [0, 0, 1]
    assert_user_private(delstab, universe=(1, 7), n_users=6, epsilon=LogRatio(8000, 1), delta="0.06", progress=False)


@pytest.mark.parametrize("relation", ["distance", "exact"])
def test_statistics_that_fail_are_private_in_releases_and_errors_in_diagnostics(relation: Any) -> None:
    def statistic(user: Any) -> int:
        return {0: 0, 1: 1}[user[0]]

    algorithm = AdditiveAlgorithm((0, 1), statistic, lambda total, n: [F(1, 2), F(1, 2)], statistic_range=(0, 1))
    delstab = DelStab(algorithm, **SMALL, compatibility=relation)
    assert delstab.release(users((0, 1, 1, 0, 1, 9))) in delstab.outputs
    assert delstab.release(users((9,) * 4 + (0, 1))) is BOTTOM
    with pytest.raises(RuntimeError, match="statistic raised KeyError"):
        delstab.pmf(users((0, 1, 1, 0, 1, 9)))


def test_pmfs_that_change_are_noticed_in_diagnostics() -> None:
    calls = itertools.count()
    fickle = SymmetricAlgorithm((0, 1), lambda kept: [F(1, 2 + next(calls)), 1 - F(1, 2 + next(calls) - 1)])
    with pytest.raises(ValueError, match="deterministic"):
        DelStab(fickle, **SMALL).pmf(users((0,) * 6))


def test_a_declared_error_makes_the_relation_stricter() -> None:
    """Kept sets that the declared error leaves undecided count as different."""
    # log-ratio of the two distributions: just within the inner level, so any declared error decides.
    inner = DelStab(SYMMETRIC, **SMALL).epsilon_bar
    assert isinstance(inner, LogRatio)
    p = F(1, 1000)
    q = p * inner.ratio + F(1, 120)

    def pmf(kept: Any) -> list[Fraction]:
        return [1 - q, q] if kept[0][0] else [1 - p, p]

    sizes = {
        error: DelStab(SymmetricAlgorithm((0, 1), pmf, pmf_error=error), **SMALL).smallest_stable_size(
            users((0, 0, 0, 0, 1))
        )
        for error in (0, "0.0001", "0.2", "0.9")
    }
    assert sizes == {0: 0, "0.0001": 0, "0.2": 1, "0.9": None}


@pytest.mark.parametrize("dataset", [5, "people", {1: 2}, {(1,), (2,)}, frozenset([(1,)]), {1: (2,)}.keys()])
def test_datasets_of_the_wrong_form(dataset: Any) -> None:
    with pytest.raises(TypeError, match="dataset must be a sequence of users"):
        DelStab(SYMMETRIC, **SMALL).release(dataset)


class Unhashable:
    def __hash__(self) -> int:
        raise ValueError("private")


def nested(depth: int) -> Any:
    value: Any = ()
    for _ in range(depth):
        value = (value,)
    return value


@pytest.mark.parametrize("dataset", [[1, 2, 3, 4, 5], [("a",), None, 3, 4, 5], [{1}, {}, "a", b"b", 5]])
def test_who_is_no_tuple_is_private_in_releases_and_an_error_in_diagnostics(dataset: Any) -> None:
    assert DelStab(SYMMETRIC, **SMALL).release(dataset) is BOTTOM
    with pytest.raises(TypeError, match=r"dataset: the user at position [01] (must be|is of the type)"):
        DelStab(SYMMETRIC, **SMALL).pmf(dataset)


@pytest.mark.parametrize("odd", [{314159}, Unhashable(), nested(3000), lambda: 0], ids=range(4))
def test_users_that_cannot_be_told_apart_are_private_in_releases_and_errors_in_diagnostics(odd: Any) -> None:
    delstab = DelStab(SYMMETRIC, **SMALL)
    for count in (1, 3):
        assert delstab.release(users((odd,) * count + (0,) * (6 - count))) in delstab.outputs
    assert delstab.release(users((odd,) * 6)) is BOTTOM
    with pytest.raises(TypeError, match="accepted are None, bools, ints") as caught:
        delstab.pmf(users((odd, 0, 0, 0, 0)))
    assert "314159" not in str(caught.value)


def test_equal_sets_with_members_in_different_orders() -> None:
    """An algorithm sees the order of a frozenset, so equal ones must not stand in for each other."""
    one, other = frozenset([0, 8]), frozenset([8, 0])
    assert one == other
    assert list(one) != list(other)
    delstab = DelStab(
        SymmetricAlgorithm((0, 1), lambda kept: [1, 0] if next(iter(kept[0][0]), 0) == 0 else [0, 1]), **SMALL
    )
    people = users((one,) + (other,) * 6)
    neighbor = users((frozenset(),) + (other,) * 6)
    assert delstab.pmf(people).fractions() == delstab.pmf(neighbor).fractions()
    report = audit_user_level(delstab, universe=(one, frozenset()), n_users=5, n_examples=1, **SMALL, progress=False)
    assert report.holds


def test_statistics_beyond_machine_integers_when_nobody_is_kept() -> None:
    algorithm = AdditiveAlgorithm(
        (0, 1), lambda user: user[0], lambda total, n: [F(1, 2), F(1, 2)], statistic_range=(0, 2**70)
    )
    delstab = DelStab(algorithm, **SMALL)
    for value in (0, 2**69):
        assert delstab.release(users((value, 0, 0, 0))) in (0, 1)
        assert delstab.pmf(users((value, 0, 0, 0))).fractions() == [F(1, 2), F(1, 2), 0]


def test_scores_that_fail_are_private_in_releases_and_errors_in_diagnostics() -> None:
    def scores(user: Any) -> tuple[int, int]:
        return {0: (0, 1), 1: (1, 0)}[user[0]]

    delstab = DelStab(SummedScoreEM(("a", "b"), scores, epsilon=2, sensitivity=1), **SMALL)
    assert delstab.release(users((0, 0, 0, 0, 0, 9))) in delstab.outputs
    assert delstab.release(users((9,) * 4 + (0, 0))) is BOTTOM
    with pytest.raises(RuntimeError, match="scores raised KeyError"):
        delstab.explain(users((0, 0, 0, 0, 0, 9)))


def test_totals_are_certified_for_all_data_at_once() -> None:
    """The distance is that of the public range, and so are its errors: they say nothing about the users."""

    def pmf(total: int, n_users: int) -> list[Fraction]:
        return [F(1, 2), F(1, 2)] if total < 6 else [F(1), F(0)]

    delstab = DelStab(AdditiveAlgorithm((0, 1), lambda user: user[0], pmf, statistic_range=(0, 3)), **SMALL)
    for values in ((0,) * 6, (3,) * 6, (0, 1, 2, 3, 3, 3)):
        delstab.release(users(values))
        assert delstab._totals[6].distance == 0
    failing = AdditiveAlgorithm(
        (0, 1), lambda user: user[0], lambda total, n: [total, 1 - total], statistic_range=(0, 3)
    )
    with pytest.raises(ValueError, match="total 2 of 2 users"):
        DelStab(failing, **SMALL).release(users((0,) * 6))


def test_more_types_than_admitted() -> None:
    same = SymmetricAlgorithm((0, 1), lambda kept: [F(1, 2), F(1, 2)])
    people = users((0, 0, 0, 0, 0, 0, 1, 2))
    assert DelStab(same, **SMALL).smallest_stable_size(people) == 0
    assert DelStab(same, **SMALL, max_distinct_users=2).smallest_stable_size(people) == 1
    strict = DelStab(same, **SMALL, max_distinct_users=1)
    assert strict.smallest_stable_size(people) == 2
    assert "at most 1 distinct users" in str(strict.explain(people))
    assert strict.plan(8).max_distinct_users == 1
    assert DelStab(same, **SMALL).plan(8).max_distinct_users == 8
    # The number of distinct users is private: it may cost a refusal, and never an error.
    assert DelStab(same, **SMALL, max_distinct_users=2).release(users(range(300))) is BOTTOM


def test_declared_errors_of_labeled_users() -> None:
    """An error so large that even equal masses may differ leaves nothing compatible, in both ways to decide."""
    ordered = finite_algorithm((0, 1), pmf_error="0.99")(lambda kept: [F(1, 2), F(1, 2)])
    assert DelStab(ordered, **SMALL).smallest_stable_size(users((0,) * 6)) is None
    many = DelStab(ordered, epsilon=1, delta="1e-2", calibration="tight")
    assert many.plan(many.min_users).covered
    assert many.smallest_stable_size(users((0,) * many.min_users)) is None


@pytest.mark.parametrize("kind", ["list", "array", "generator"])
def test_answers_in_one_reused_object_are_read_at_once(kind: str) -> None:
    """Neither the certified distance nor the distributions may be those of the last question."""
    own: Any = np.zeros(2) if kind == "array" else [0.0, 0.0]

    def pmf(total: int, n_users: int) -> Any:
        own[:] = [0.0, 1.0] if total > 1 else [0.75, 0.25]
        return (mass for mass in own) if kind == "generator" else own

    additive = AdditiveAlgorithm((0, 1), lambda user: user[0], pmf, statistic_range=(0, 1))
    symmetric = SymmetricAlgorithm((0, 1), lambda kept: pmf(sum(user[0] for user in kept), 2))
    labeled = finite_algorithm((0, 1))(lambda kept: pmf(sum(user[0] for user in kept), 2))
    people, mixed = users((0,) * 6), users((0, 0, 0, 0, 1, 1))
    for algorithm, size in ((additive, 2), (symmetric, 1), (labeled, 1)):
        delstab = DelStab(algorithm, **SMALL)
        assert delstab.pmf(people).fractions() == [F(3, 4), F(1, 4), 0]
        assert delstab.smallest_stable_size(mixed) == size
        assert delstab.release(people) in (0, 1)


def test_float_pmfs_are_taken_over_their_exact_sums() -> None:
    """However the distributions are written, and for all engines, what is compared and drawn is the exact quotient."""
    weights = [0.1, 0.2, 0.7000000000000001]
    total = sum(map(F, weights))
    assert total != 1
    expected = [F(weight) / total for weight in weights]
    additive = AdditiveAlgorithm(range(3), lambda user: user[0], lambda total, n: weights, statistic_range=(0, 1))
    same = SymmetricAlgorithm(range(3), lambda kept: np.array(weights))
    for algorithm in (additive, same, finite_algorithm(range(3))(lambda kept: weights)):
        assert DelStab(algorithm, **SMALL).pmf(users((0, 1, 0, 1, 0, 1))).fractions() == [*expected, 0]


def test_too_many_deletions_are_refused_whatever_the_data() -> None:
    """Users who cannot be kept leave fewer deletions, and must not turn an error into an answer."""

    def scores(user: Any) -> tuple[int, int]:
        return {0: (0, 1)}[user[0]]

    delstab = DelStab(
        SummedScoreEM((0, 1), scores, epsilon=1, sensitivity=1), epsilon="0.0008", delta="0.01", calibration="paper"
    )
    assert delstab.deletions > 2**15
    for odd in (0, delstab.calibration.largest, delstab.calibration.largest + 1):
        with pytest.raises(BudgetError, match="deletions"):
            delstab.release(users((9,) * odd + (0,) * (delstab.min_users - odd)))


@pytest.mark.parametrize("make", [SymmetricAlgorithm, lambda outputs, pmf: finite_algorithm(outputs)(pmf)])
@pytest.mark.parametrize("kept", [1, 3])
def test_sums_at_the_border_of_a_pmf_are_no_errors(make: Any, kept: int) -> None:
    # Around 1 - 1e-9, where a rounded sum and the exact one are on different sides, and around 1 + 1e-9.
    for sign in (-1, 1):
        for step in range(-3, 4):
            for rest in (0.0, 0.3, 0.5, 0.7):
                odd = [0.5, 0.5 + sign * (9_007_200 + step) * 2.0**-53, rest * 2.0**-53]

                def pmf(users: Any, odd: Any = odd) -> list[float]:
                    return odd if any(user[0] == 1 for user in users) else [0.25, 0.5, 0.25]

                private = DelStab(make((0, 1, 2), pmf), epsilon=8, delta="0.01")
                n = private.deletions + kept
                for ones in (0, 1, n):
                    assert private.release(users([1] * ones + [0] * (n - ones))) in (0, 1, 2, BOTTOM)


def test_more_kept_users_than_a_set_has_are_refused_by_the_plan() -> None:
    constant = AdditiveAlgorithm((0, 1), lambda user: 0, lambda total, n: [0.5, 0.5], statistic_range=(0, 0))
    private = DelStab(constant, epsilon=8, delta="0.01")
    assert private.plan(private.deletions + 2**24).work >= 1
    with pytest.raises(BudgetError, match="16,777,217 kept users"):
        private.plan(private.deletions + 2**24 + 1)


def test_many_deletions_of_equal_users_are_drawn_at_once() -> None:
    constant = SymmetricAlgorithm((0, 1), lambda kept: [F(1), F(0)])
    private = DelStab(constant, epsilon="0.01", delta="1e-6")
    assert private.deletions > 4000
    assert private.release(users([1] * (private.deletions + 4000))) in (0, BOTTOM)
