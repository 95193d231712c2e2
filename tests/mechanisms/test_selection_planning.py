"""How many users are needed: against exact binomials, all n up to far beyond the answer."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from oracle.selection import at_most, least_from_which_on, lost_to_others, not_surely_won
from support.selection_cases import approximate
from userdp import BudgetError, LogRatio
from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode
from userdp.mechanisms.mode import binomial_window, lower_tail

F = Fraction


@pytest.mark.parametrize(
    ("epsilon", "neighbors", "agreement", "beta", "first", "needed"),
    [
        (1, "add-remove", "0.9", "0.1", 45, 47),
        (1, "add-remove", "0.8", "0.1", None, 69),
        (1, "add-remove", "0.7", "0.1", 117, 119),
        (1, "add-remove", "0.6", "0.1", 295, 301),
        (1, "replace", "0.9", "0.1", None, 81),
        (1, "replace", "0.8", "0.1", None, 119),
        (1, "replace", "0.7", "0.1", 195, 197),
        (1, "replace", "0.6", "0.1", 465, 471),
        (1, "add-remove", "0.9", "0.01", None, 53),
        ("0.5", "add-remove", "0.9", "0.1", None, 77),
        ("0.1", "add-remove", "0.9", "0.1", 297, 299),
    ],
)
def test_published_numbers(epsilon: Any, neighbors: Any, agreement: str, beta: str, first: Any, needed: int) -> None:
    selection = ApproximatePrivateMode(epsilon=epsilon, delta="1e-6", neighbors=neighbors)
    assert selection.users_needed(agreement=agreement, beta=beta) == needed
    p, t = F(agreement), selection.half_width
    least, from_then_on = least_from_which_on(lambda n: not_surely_won(n, p, t), F(beta) / 3, needed + 60)
    assert from_then_on == needed
    assert first in (None, least)


@pytest.mark.parametrize("agreement", ["0.52", "0.55", "2/3", "0.75", "0.99", 1])
@pytest.mark.parametrize("beta", ["0.9", "0.3", "0.01"])
@pytest.mark.parametrize("t", [1, 4])
def test_every_number_of_users(t: int, agreement: Any, beta: str) -> None:
    p = F(agreement)
    needed = approximate(F(1, 2), t).users_needed(agreement=agreement, beta=beta)
    if needed > 100:
        # Too many to go through: the number before, the answer and the next one, of both parities.
        holds = {n: not_surely_won(n, p, t) <= F(beta) / 3 for n in (needed - 1, needed, needed + 1)}
        assert holds == {needed - 1: False, needed: True, needed + 1: True}
        return
    assert least_from_which_on(lambda n: not_surely_won(n, p, t), F(beta) / 3, 2 * needed + 60)[1] == needed


@pytest.mark.parametrize("p", [F(1, 2), F(51, 100), F(3, 4), F(99, 100)])
def test_failures_fall_along_even_and_along_odd_numbers(p: Fraction) -> None:
    rises = 0
    for t in (0, 1, 3):
        failures = [not_surely_won(n, p, t) for n in range(2 * t + 2, 60)]
        assert all(later <= earlier for earlier, later in zip(failures, failures[2:], strict=False))
        rises += any(later > earlier for earlier, later in itertools.pairwise(failures))
    assert rises == 3, "the parity of n should show"
    for a, size in ((F(2), 2), (F(3), 3), (F(11, 10), 2), (F(30), 5), (F(2), 2**64)):
        lost = [lost_to_others(n, p, a, size) for n in range(30)]
        assert all(later <= earlier for earlier, later in zip(lost, lost[2:], strict=False))
    assert lost_to_others(9, F(2, 5), F(2), 2) > lost_to_others(7, F(2, 5), F(2), 2)


@pytest.mark.parametrize(("level", "n_items"), [(2, 2), (2, 2**10), (F(3, 2), 2**64), (20, 3)])
@pytest.mark.parametrize("agreement", ["0.6", "0.8", "0.95", 1])
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_pure_selections(level: Any, n_items: int, agreement: Any, neighbors: Any) -> None:
    a = F(level)
    epsilon = LogRatio((a**2).numerator, (a**2).denominator) if neighbors == "replace" else None
    epsilon = epsilon or LogRatio(a.numerator, a.denominator)
    selection = PurePrivateMode(epsilon=epsilon, n_items=n_items, neighbors=neighbors)
    needed = selection.users_needed(agreement=agreement, beta="0.1")
    # It falls along even and along odd numbers, as tested above: three in a row decide.
    lost = [lost_to_others(n, F(agreement), a, n_items) for n in (needed - 1, needed, needed + 1)]
    print(needed, [float(one) for one in lost])
    assert [one <= F(1, 30) for one in lost] == [False, True, True]


def test_pure_selections_of_one_item() -> None:
    assert PurePrivateMode(epsilon=1, n_items=1).users_needed(agreement="0.6", beta="0.1") == 1


def test_tails_against_exact_ones() -> None:
    for n, p in ((30, F(9, 10)), (77, F(3, 5)), (200, F(99, 100)), (5, F(1))):
        others = max(float(1 - p), 2.0**-60)
        k, masses = binomial_window(n, others)
        assert math.isclose(masses.sum(), 1, rel_tol=1e-14)
        for most in {0, n // 2, n - 3, n - 1, n}:
            exact = at_most(n, p, most)
            assert exact - F(1, 10**300) <= F(lower_tail(n, others, most)) <= exact * (1 + F(1, 10**8)) + F(1, 10**17)
            assert float(masses[k <= most].sum()) == pytest.approx(float(exact), rel=1e-9, abs=1e-16)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"agreement": 0.5}, "agreement"),
        ({"agreement": "0.3"}, "agreement"),
        ({"agreement": 1.1}, "agreement"),
        ({"agreement": math.nan}, "agreement"),
        ({"agreement": None}, "agreement"),
        ({"beta": 0}, "beta"),
        ({"beta": 1}, "beta"),
        ({"beta": -1}, "beta"),
        ({"beta": "x"}, "beta"),
    ],
)
def test_bad_arguments(arguments: Any, name: str) -> None:
    for selection in (ApproximatePrivateMode(epsilon=1, delta="1e-6"), PurePrivateMode(epsilon=1, n_items=4)):
        with pytest.raises((TypeError, ValueError), match=name):
            selection.users_needed(**{"agreement": "0.9", "beta": "0.1", **arguments})


def test_very_many_users() -> None:
    selection = ApproximatePrivateMode(epsilon=1, delta="1e-6")
    needed = selection.users_needed(agreement="0.50001", beta="0.1")
    # By the normal approximation, n (2 p - 1) = 2 t + z sqrt(n).
    z = 1.8339
    assert needed == pytest.approx((z / 2e-5) ** 2, rel=0.01)
    with pytest.raises(BudgetError, match="users are needed"):
        selection.users_needed(agreement=F(1, 2) + F(1, 10**9), beta="0.1")
    with pytest.raises(ValueError, match="beta is too small"):
        PurePrivateMode(epsilon=1, n_items=2**64).users_needed(agreement="0.9", beta="1e-30")


@pytest.mark.parametrize("beta", ["1e-45", "1e-400", "1e-4000"])
def test_probabilities_below_all_weights_are_refused(beta: str) -> None:
    with pytest.raises(ValueError, match="beta is too small"):
        PurePrivateMode(epsilon=1, n_items=5).accuracy(beta)
