"""Plans of selections: against exact probabilities, recorded simulations, published numbers and hostile arguments."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.exceptions import InsecureRandomnessWarning
from userdp.mechanisms import ApproximatePrivateMode, PlannedPrivateMode, PurePrivateMode
from userdp.mechanisms.mode import lost_by_coins
from userdp.planning import compare_methods, epsilon_needed, user_complexity
from userdp.protocols import local, shuffle


def plan(method: str, **changes: Any) -> Any:
    given: dict[str, Any] = {"m": 1, "epsilon": 1, "alpha": 0.8, "beta": Fraction(1, 30), "n_items": 3}
    return user_complexity("selection", method=method, **(given | changes))


def exact_failure(method: Any, n: int, share: Fraction, n_items: int, epsilon: Any) -> Fraction:
    """Over the users and the draw, from the pmf of the release, in fractions."""
    selection = PurePrivateMode(epsilon=epsilon, n_items=n_items, mechanism=method)
    return sum(
        (
            math.comb(n, k) * share**k * (1 - share) ** (n - k) * (1 - selection.pmf({0: k, 1: n - k}).fractions()[0])
            for k in range(n + 1)
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("method", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize(("n_items", "epsilon"), [(2, 1), (3, Fraction(1, 2)), (8, LogRatio(2))])
def test_the_number_is_enough_and_one_below_is_not(method: str, n_items: int, epsilon: Any) -> None:
    found = plan(f"central, {method}", n_items=n_items, epsilon=epsilon, beta=0.1, alpha=0.75)
    share, accepted = Fraction(7, 8), Fraction(0.1)
    assert found.basis == "exact"
    assert exact_failure(method, found.n_users, share, n_items, epsilon) <= accepted
    below = [exact_failure(method, found.n_users - step, share, n_items, epsilon) for step in (1, 2)]
    assert max(below) > accepted


@pytest.mark.parametrize("size", [2, 3, 17, 64])
def test_misses_of_permute_and_flip_are_those_of_its_exact_distribution(size: int) -> None:
    """By integrals in place of sums over all outcomes: what plans and simulations of more items rest on."""
    made = PurePrivateMode(epsilon=Fraction(1, 2), n_items=size, mechanism="permute-and-flip")
    for common, rival in ((6, 2), (3, 3), (1, 5), (20, 0)):
        exact = 1 - made.probability(0, {0: common, 1: rival})
        found = lost_by_coins(np.array([float(common)]), np.array([float(rival)]), size - 2, 0.25)
        assert float(found[0]) == pytest.approx(float(exact), abs=1e-10)


def test_published_numbers() -> None:
    """At a third of 0.1, agreement 0.9 and epsilon 1: numbers that were computed elsewhere."""
    for n_items, known in ((2, 10), (3, 11), (16, 15)):
        assert plan("central, exponential", alpha=0.8, beta=0.1 / 3, n_items=n_items).proved.value == known
    # The bound by two thresholds takes 81 users, and the exact law fewer.
    found = plan("central, threshold", delta=1e-6, beta=0.1 / 3).proved.value
    selection = ApproximatePrivateMode(epsilon=1, delta=1e-6)
    assert found == selection.users_needed(agreement=Fraction(9, 10), beta=0.1) <= 81


@pytest.mark.parametrize("protocol", [local.HadamardResponse, local.KRandomizedResponse, local.SubsetSelection])
def test_reports_of_the_recommended_users_select_the_common_item(protocol: Any) -> None:
    """Whole rounds: 300 with beta = 0.1 have more than 57 failures with probability below 9e-7."""
    name = {"HadamardResponse": "Hadamard response", "KRandomizedResponse": "randomized response"}
    method = "local, " + name.get(protocol.__name__, "subset selection")
    found = plan(method, epsilon=2, alpha=0.5, beta=0.1, n_items=6, m=20)
    assert found.basis == "simulated"
    rng, wrong, n = np.random.default_rng(11), 0, found.n_users
    for run in range(300):
        made = protocol(epsilon=2, n_items=6, n_users=n, round_id=f"round-{run}")
        names = rng.permutation(6)
        server = made.server()
        with pytest.warns(InsecureRandomnessWarning):
            server.receive_many(made.report_many(names[(rng.random(n) > 0.75).astype(int)], random_state=run))
        wrong += server.select() != names[0]
    assert wrong <= 57


def test_a_shuffled_round_of_the_recommended_users_selects_the_common_item() -> None:
    """As for reports: 100 rounds with beta = 0.1 have more than 27 failures with probability below 4e-7."""
    found = plan("shuffled, histogram", m=20, epsilon=1, delta=1e-6, alpha=0.5, beta=0.1, n_items=3)
    rng, wrong, n = np.random.default_rng(12), 0, found.calibrated.value
    for run in range(100):
        made = shuffle.Mode(epsilon=1, delta=1e-6, n_items=3, n_users=n, round_id=f"round-{run}")
        with pytest.warns(InsecureRandomnessWarning):
            wrong += made.release((rng.random(n) > 0.75).astype(int), random_state=run) != 0
    assert wrong <= 27


def test_the_number_of_a_planned_table_is_exact() -> None:
    """By the probability that a release states for the worst rest of the users: all others share one item."""
    found = plan("central, planned table", n_items=20, alpha=0.75, beta=0.1)
    share, failures = Fraction(7, 8), []
    for n in (found.proved.value, found.proved.value - 1):
        made = PlannedPrivateMode(epsilon=1, n_items=20, n_users=n, agreement=share)
        failures.append(
            sum(
                math.comb(n, k) * share**k * (1 - share) ** (n - k) * (1 - made.probability(0, {0: k, 1: n - k}))
                for k in range(n + 1)
            )
        )
    assert failures[0] <= Fraction(0.1) < failures[1]


def test_a_threshold_keeps_the_rate_with_the_recommended_users_and_not_with_far_fewer() -> None:
    """Over the users and the noise, from the exact distribution of the release, in fractions."""
    found = plan("central, threshold", epsilon=1.5, delta=2e-5, alpha=0.5, beta=0.1, m=20)
    share, selection = Fraction(3, 4), ApproximatePrivateMode(epsilon=1.5, delta=Fraction(2e-5))

    def failure(n: int) -> Fraction:
        won = Fraction(0)
        for k in range(1, n + 1):
            chance = math.comb(n, k) * share**k * (1 - share) ** (n - k)
            won += chance * selection.pmf({0: k, 1: n - k}).fractions()[0]
        return 1 - won

    assert found.calibrated.value is not None
    assert found.calibrated.error is not None
    n = math.ceil(found.calibrated.value * (1 + found.calibrated.error))
    assert failure(n) <= Fraction(0.1) < failure(round(found.calibrated.value * 0.75))


def test_the_least_epsilon_of_a_planned_table_is_that_of_its_plan() -> None:
    answer = epsilon_needed("selection", n_users=30, method="central, planned table", m=1, alpha=0.5, n_items=50)
    assert answer.value is not None
    assert plan("central, planned table", epsilon=answer.value, alpha=0.5, beta=0.1, n_items=50).n_users <= 30
    assert plan("central, planned table", epsilon=answer.value * 0.99, alpha=0.5, beta=0.1, n_items=50).n_users > 30


def test_levels_in_any_form_have_one_plan() -> None:
    numbers = {plan("central, exponential", epsilon=level).n_users for level in (1, 1.0, "1", Fraction(1))}
    assert len(numbers) == 1
    assert plan("central, exponential", epsilon=LogRatio(3)).n_users <= numbers.pop()


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_every_way_is_a_row(delta: float) -> None:
    table = compare_methods("selection", alpha=0.5, m=4, epsilon=1, delta=delta, n_items=9)
    rows = {row.method: row for row in table.rows}
    assert {"group privacy", "per-user clipping", "one record per person"} <= set(rows)
    for row in rows.values():
        assert row.users is not None or row.note
    for name in ("central, threshold", "shuffled, histogram"):
        assert (rows[name].users is None) == (delta == 0)
        if not delta:
            assert "delta must be > 0" in rows[name].note


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"m": 0}, ValueError, "m must be at least 1"),
    ({"m": 1.5}, TypeError, "m must be"),
    ({"alpha": 1}, ValueError, "alpha must be below 1"),
    ({"alpha": 0}, ValueError, "alpha must be"),
    ({"alpha": math.nan}, ValueError, "alpha must be"),
    ({"alpha": None}, TypeError, "alpha is needed"),
    ({"beta": 0}, ValueError, "beta must be"),
    ({"beta": 1}, ValueError, "beta must be"),
    ({"epsilon": 0}, ValueError, "epsilon must be"),
    ({"epsilon": math.inf}, ValueError, "epsilon must be"),
    ({"delta": 1.5}, ValueError, "delta must be"),
    ({"n_items": 1}, ValueError, "n_items must be at least 2"),
    ({"n_items": 2**25}, ValueError, "n_items must be at most"),
    ({"n_items": "3"}, TypeError, "n_items must be"),
    ({"method": "quickest"}, ValueError, "method must be 'auto' or one of"),
    ({"n_apples": 3}, TypeError, "n_apples is no parameter"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=[str(place) for place in range(len(BAD))])
def test_bad_input(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        plan(**({"method": "central, exponential"} | change))


def test_unknown_tasks_are_told_the_known() -> None:
    with pytest.raises(ValueError, match=r"task must be one of .*'selection'"):
        user_complexity("elections", m=1, epsilon=1, alpha=0.5)
