"""PlannedPrivateMode: its condition against all neighboring counts, audits, draws, and how many users it needs."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle.grouped_exponential import numerators
from userdp import BudgetError, LogRatio, _core
from userdp.accounting import PrivacyCost
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.exact.pmf import Pmf
from userdp.exceptions import InsecureRandomnessWarning
from userdp.mechanisms import GroupedExponentialMechanism, PlannedPrivateMode, PurePrivateMode, planned_mode
from userdp.mechanisms.planned_mode import is_private, private_weights

F = Fraction
E_BELOW = F("2.718281828459045235360287471352")


def planned(n_items: int, n_users: int, agreement: Any = "0.9", epsilon: Any = 1, **more: Any) -> PlannedPrivateMode:
    return PlannedPrivateMode(epsilon=epsilon, n_items=n_items, n_users=n_users, agreement=agreement, **more)


# --- the condition


def neighboring(n: int, n_items: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ordered pairs of counts of n users, each with one item or none, that differ in one user."""
    for counts in itertools.product(range(n + 1), repeat=n_items):
        if sum(counts) > n:
            continue
        held = [item for item in range(n_items) if counts[item]] + ([None] if sum(counts) < n else [])
        for before, after in itertools.product(held, [*range(n_items), None]):
            changed = list(counts)
            if before is not None:
                changed[before] -= 1
            if after is not None:
                changed[after] += 1
            yield counts, tuple(changed)


def worst_ratio(weights: Sequence[int], n_items: int) -> Fraction:
    """The largest ratio of probabilities of neighbors, by all of them."""
    worst = F(1)
    for first, second in neighboring(len(weights) - 1, n_items):
        total, changed = (sum(weights[c] for c in counts) for counts in (first, second))
        for c, d in zip(first, second, strict=True):
            worst = max(worst, F(weights[c] * changed, weights[d] * total))
    return worst


@pytest.mark.parametrize(("n", "n_items"), [(1, 2), (2, 2), (6, 2), (2, 3), (4, 3), (3, 4), (2, 6)])
def test_the_condition_is_that_of_all_neighbors(n: int, n_items: int) -> None:
    source, verdicts = random.Random(n * 100 + n_items), []
    for _ in range(40):
        weights = [source.randrange(20, 60)]
        for _ in range(n):
            weights.append(source.randrange(weights[-1], 2 * weights[-1] + 1))
        worst = worst_ratio(weights, n_items)
        steps = max(F(after, before) for before, after in itertools.pairwise(weights))
        for ratio in (worst, worst * F(10**9 - 1, 10**9), F(3, 2), F(2)):
            if ratio > 1:
                # Also steps above the ratio are refused, though some of them would be private.
                verdicts.append(is_private(weights, n_items, ratio))
                assert verdicts[-1] == (worst <= ratio and steps <= ratio)
    assert set(verdicts) == {True, False}


def test_a_table_that_falls_is_refused() -> None:
    assert is_private([10, 12, 12], 3, F(2))
    assert not is_private([10, 12, 11], 3, F(2))


@pytest.mark.parametrize("n_items", [2, 3, 4])
def test_tables_made_from_any_target_are_private_and_as_large_as_they_can_be(n_items: int) -> None:
    source = random.Random(n_items)
    for n, ratio in itertools.product((1, 2, 4), (F(3, 2), F(4), F(101, 100))):
        for target in ([math.inf] * (n + 1), [1.0] * (n + 1), [source.uniform(0.5, 30) for _ in range(n + 1)]):
            weights = private_weights(target, n_items, ratio)
            assert worst_ratio(weights, n_items) <= ratio
            if target[-1] == math.inf:
                assert not is_private([*weights[:-1], weights[-1] + 1], n_items, ratio)


def test_one_threshold_is_private_and_needs_more_users() -> None:
    """The weights max(1, e^(rate (c - tau))), at 34 users and 2^20 items; and not at a higher rate."""

    def thresholded(rate: float, tau: float) -> list[int]:
        return [round(2**64 * max(1.0, math.exp(rate * (c - tau)))) for c in range(35)]

    assert is_private(thresholded(0.935, 10.5), 2**20, E_BELOW)
    assert not is_private(thresholded(0.945, 10.5), 2**20, E_BELOW)
    assert not is_private(thresholded(0.935, 9), 2**20, E_BELOW)
    assert exact_failure(thresholded(0.935, 10.5), 2**20, F(9, 10)) <= F(1, 30)
    assert exact_failure(thresholded(0.935, 10.5)[:34], 2**20, F(9, 10)) > F(1, 40)


# --- what is drawn


CASES = [(2, 4, 1), (3, 4, LogRatio(4)), (4, 3, "0.5"), (5, 2, 3), (3, 5, 1), (1, 3, 1)]


def audited(selection: PlannedPrivateMode, epsilon: Any) -> bool | None:
    """All data, of items and of what is no item, against all replacements, by the integers that are drawn from."""
    items = tuple(range(selection.n_items))

    def pmf(dataset: Any) -> Pmf:
        return selection.pmf(selection.tally([user[0] for user in dataset]))

    report = audit_user_level(
        SymmetricAlgorithm(items, pmf),
        universe=(*items, 99),
        n_users=selection.n_users,
        n_examples=1,
        epsilon=epsilon,
        delta=0,
    )
    return report.holds


@pytest.mark.parametrize(("n_items", "n_users", "epsilon"), CASES)
@pytest.mark.parametrize("agreement", ["0.6", "0.9"])
def test_audits(n_items: int, n_users: int, epsilon: Any, agreement: str) -> None:
    selection = planned(n_items, n_users, agreement, epsilon)
    assert audited(selection, epsilon) is True
    assert audited(selection, F(selection.certified_epsilon)) is True
    if n_items > 1:
        # Weights are as large as they may be: all of epsilon is used but the reserve.
        assert audited(selection, F(selection.certified_epsilon) - F(1, 10**10)) is False
        exact = F(epsilon) if not isinstance(epsilon, LogRatio) else None
        half = planned(n_items, n_users, agreement, LogRatio(16) if exact is None else 2 * exact)
        assert audited(half, epsilon) is False


def test_a_table_is_for_its_number_of_users() -> None:
    weights = planned(2**20, 20).weights
    assert is_private(weights, 2**20, E_BELOW)
    assert is_private(weights[:15], 2**20, E_BELOW)  # fewer users have fewer neighbors
    assert not is_private([*weights, *[weights[-1]] * 10], 2**20, E_BELOW)
    # Of weights that two users have, fewer items tell more.
    assert not is_private(weights, 16, E_BELOW)


@pytest.mark.parametrize(("n_items", "n_users", "epsilon"), CASES)
def test_the_integers_that_are_drawn_from(n_items: int, n_users: int, epsilon: Any) -> None:
    selection = planned(n_items, n_users, epsilon=epsilon)
    rho = GroupedExponentialMechanism(epsilon=1, sensitivity=2**40)._rate.bits_per_unit
    source = random.Random(n_items)
    for _ in range(5):
        counts = selection.tally([source.randrange(n_items + 1) for _ in range(n_users)])
        had = [counts[item] for item in range(n_items)]
        pmf = selection.pmf(counts)
        triples = [(item, item, selection._score(count)) for item, count in enumerate(had)]
        assert list(pmf.weights) == numerators(triples, rho)
        total = sum(selection.weights[count] for count in had)
        for item, count in enumerate(had):
            stated = F(selection.weights[count], total)
            assert abs(pmf.fractions()[item] / stated - 1) <= F(1, 10**11)
            assert selection.probability(item, counts) == pmf.fractions()[item]
        edges = [0, *itertools.accumulate(pmf.weights)]
        for item, (low, high) in enumerate(itertools.pairwise(edges)):
            for bits in (low, high - 1):
                assert selection._draw(_core.Source.listed(bits.to_bytes(48, "little")), counts) == item


def test_scores_are_logarithms_of_weights() -> None:
    selection = planned(2**20, 60)
    unit = float(GroupedExponentialMechanism(epsilon=1, sensitivity=2**40)._rate.bits_per_unit) * math.log(2)
    for count, weight in enumerate(selection.weights):
        assert -unit * selection._score(count) == pytest.approx(math.log(weight / 2**64), abs=1e-12)


def test_two_to_the_64_items() -> None:
    selection = planned(2**64, 70)
    last = 2**64 - 1
    groups = selection._groups(selection.tally([last] * 69 + [0], exact_integers=True), padded=True)
    assert len(groups) == 141
    had = {last: 65, 7: 5}
    assert selection.probability(last, had) > F(96, 100)
    assert selection.probability(7, had) < selection.probability(last, had) / 10**20
    with pytest.warns(InsecureRandomnessWarning):
        assert selection.release([last] * 70, random_state=1, exact_integers=True) == last


# --- how many users it needs


def exact_failure(weights: Sequence[int], n_items: int, agreement: Fraction) -> Fraction:
    """How likely the common item is missed, where the others do the most harm, in fractions."""
    n = len(weights) - 1
    harm = [0]
    for users in range(1, n + 1):
        harm.append(max(weights[c] - weights[0] + harm[users - c] for c in range(1, users + 1)))
    missed = F(0)
    for k in range(n + 1):
        against = harm[n - k] + (n_items - 1) * weights[0]
        mass = math.comb(n, k) * agreement**k * (1 - agreement) ** (n - k)
        missed += mass * F(against, against + weights[k])
    return missed


def test_two_items_are_chosen_as_well_as_can_be() -> None:
    """The worst expected regret of 7 users is 0.2968 at epsilon = 1, certified for all mechanisms (docs/optimal.md)."""
    weights = planned(2, 7, "0.6").weights
    worst = max(F(weights[c], weights[c] + weights[7 - c]) * (7 - 2 * c) for c in range(4))
    assert float(worst) == pytest.approx(0.2968, abs=5e-5)
    by_counts = max(F(math.exp(c - 3.5)) / (1 + F(math.exp(c - 3.5))) * (7 - 2 * c) for c in range(4))
    assert float(by_counts) == pytest.approx(0.5473, abs=5e-5)  # the exponential mechanism


def test_the_others_do_no_more_harm() -> None:
    for n_items, n in ((3, 5), (4, 6), (6, 4)):
        weights = planned(n_items, n).weights
        worst = F(0)
        for k in range(n + 1):
            shared = [c for c in itertools.product(range(n + 1), repeat=n_items - 1) if sum(c) == n - k]
            rests = (sum(weights[c] for c in counts) for counts in shared)
            missed = max(F(rest, rest + weights[k]) for rest in rests)
            worst += math.comb(n, k) * F(9, 10) ** k * F(1, 10) ** (n - k) * missed
        assert worst == exact_failure(weights, n_items, F(9, 10))


def test_the_others_may_share() -> None:
    """Where weights grow slower and slower, several rivals do more harm than one."""
    weights = (10, 40, 44, 45)
    exact = exact_failure(weights, 5, F(3, 4))
    found = planned_mode._missed(np.array(weights)[:, None] / weights[0], 5, 0.25)
    assert found == pytest.approx([float(exact)], rel=1e-12)
    # Of four other items all have 10, and each of the first users of one adds 30: beside the common item's weight.
    masses = (F(1, 64), F(9, 64), F(27, 64), F(27, 64))
    missed = (F(130, 140), F(100, 140), F(70, 114), F(40, 85))
    assert exact == sum(mass * part for mass, part in zip(masses, missed, strict=True))


NEEDED = {
    # items, agreement: planned, by the exponential mechanism, and certified for all mechanisms
    (2, "0.9"): (8, 10, 8),
    (2, "0.7"): (25, 29, 25),
    (2, "0.6"): (89, 94, 89),
    (3, "0.9"): (9, 11, 9),
    (16, "0.9"): (13, 15, 11),
    (1024, "0.9"): (19, 24, 16),
    (1024, "0.7"): (33, 34, None),
    (2**20, "0.9"): (28, 40, 24),
    (2**20, "0.7"): (45, 53, None),
    (2**64, "0.9"): (66, 109, None),
}


@pytest.mark.parametrize(("n_items", "agreement"), NEEDED)
def test_users_needed(n_items: int, agreement: str) -> None:
    needed, exponential, certified = NEEDED[n_items, agreement]
    arguments: dict[str, Any] = {"agreement": agreement, "beta": "0.1"}
    assert PlannedPrivateMode.users_needed(epsilon=1, n_items=n_items, **arguments) == needed
    assert PurePrivateMode(epsilon=1, n_items=n_items).users_needed(**arguments) == exponential
    assert certified is None or certified <= needed
    for n, enough in ((needed - 1, False), (needed, True)):
        selection = planned(n_items, n, agreement)
        exact = exact_failure(selection.weights, n_items, F(agreement))
        assert (exact <= F(1, 30)) == enough == (selection.failure <= 1 / 30)
        assert selection.failure == pytest.approx(float(exact), rel=2e-9)


def test_other_epsilons() -> None:
    for epsilon, agreement in (("0.5", "0.9"), (5, "0.7"), (20, "0.9")):
        arguments: dict[str, Any] = {"agreement": agreement, "beta": "0.1"}
        needed = PlannedPrivateMode.users_needed(epsilon=epsilon, n_items=2**20, **arguments)
        assert needed <= PurePrivateMode(epsilon=epsilon, n_items=2**20).users_needed(**arguments)
        selection = planned(2**20, needed, agreement, epsilon)
        assert exact_failure(selection.weights, 2**20, F(agreement)) <= F(1, 30)


def test_more_users_than_a_table_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planned_mode, "MOST_USERS", 64)
    with pytest.raises(BudgetError, match="more than 64 users are needed"):
        PlannedPrivateMode.users_needed(epsilon=1, n_items=2**64, agreement="0.9", beta="0.1")


@pytest.mark.parametrize("epsilon", [F(1, 2**20), 64])
@pytest.mark.parametrize(("n_items", "n_users"), [(1, 1), (2, 300), (2**64, 1), (2**64, 120)])
def test_the_ends_of_all_ranges(epsilon: Any, n_items: int, n_users: int) -> None:
    selection = planned(n_items, n_users, 1, epsilon)
    assert selection.certified_epsilon <= epsilon
    assert max(selection.weights) <= 2**190
    assert 0 <= selection.failure <= 1
    assert 0 <= selection.release([n_items - 1] * n_users, exact_integers=True) < n_items


# --- everything else


def test_what_is_no_item() -> None:
    items = [3, 3, "3", None, 3.5, float("nan"), 7, 2**70, [1]]
    assert planned(7, 9).tally(items) == {3: 3, None: 6}
    with_default = planned(7, 9, default=1)
    assert with_default.tally(items) == {3: 3, 1: 6}
    assert with_default.default == 1
    assert with_default.release(np.full(9, 3)) in range(7)


@pytest.mark.parametrize("items", [[], [1] * 8, [1] * 10])
def test_another_number_of_users(items: list[int]) -> None:
    selection = planned(7, 9)
    with pytest.raises(ValueError, match=f"counts must be those of n_users=9 users; got {len(items)} of them"):
        selection.release(items)
    with pytest.raises(ValueError, match="n_users=9"):
        selection.pmf({1: len(items)})


def test_copies_and_what_is_shown() -> None:
    selection = planned(2**20, 28, default=5)
    assert repr(selection) == ("PlannedPrivateMode(epsilon=1, n_items=1048576, n_users=28, agreement='0.9', default=5)")
    copy = pickle.loads(pickle.dumps(selection))
    assert repr(copy) == repr(selection)
    assert (copy.weights, copy.failure, copy._scores) == (selection.weights, selection.failure, selection._scores)
    assert (selection.neighbors, selection.n_users, selection.n_items) == ("replace", 28, 2**20)
    # Nothing is stated but epsilon: there is no bounded range.
    assert selection.cost == PrivacyCost(1, neighbors="replace")


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
    ({"epsilon": 65}, ValueError, r"epsilon must be from 2\*\*-20 to 64; got 65"),
    ({"epsilon": 1e-9}, ValueError, r"epsilon must be from 2\*\*-20 to 64; got 1e-09"),
    ({"n_items": 0}, ValueError, "n_items must be at least 1"),
    ({"n_items": 2**64 + 1}, ValueError, r"n_items must be at most 2\*\*64"),
    ({"n_items": 2.0}, TypeError, "n_items"),
    ({"n_users": 0}, ValueError, "n_users must be at least 1"),
    ({"n_users": 1025}, ValueError, "n_users must be at most 1024; got 1025"),
    ({"n_users": True}, TypeError, "n_users"),
    ({"agreement": "1/2"}, ValueError, r"agreement must be in \(1/2, 1\]"),
    ({"agreement": 2}, ValueError, r"agreement must be in \(1/2, 1\]"),
    ({"default": 16}, ValueError, "default must be None or an item of this selection"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=[str(place) for place in range(len(BAD))])
def test_bad_input(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    arguments = {"epsilon": 1, "n_items": 16, "n_users": 12, "agreement": "0.9"} | change
    with pytest.raises(kind, match=message):
        PlannedPrivateMode(**arguments)
    if not {"n_users", "default"} & set(change):
        arguments.pop("n_users")
        with pytest.raises(kind, match=message):
            PlannedPrivateMode.users_needed(**arguments, beta="0.1")
