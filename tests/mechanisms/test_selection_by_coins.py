"""Which selection where: the most frequent item by permute-and-flip, users needed, and what ledgers charge."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle import permute_and_flip as oracle
from userdp import LogRatio
from userdp.accounting import PrivacyCost, PrivacyLedger
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.exceptions import BudgetError, InsecureRandomnessWarning
from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip, PurePrivateMode

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "permute_and_flip_cases.json").read_text())


def twenty(cost: PrivacyCost) -> Fraction:
    """What twenty such releases take of a ledger in rho."""
    ledger = PrivacyLedger(epsilon=5, delta="1e-6", composition="zcdp")
    before = F(ledger.remaining()["rho"])  # type: ignore[arg-type]
    for index in range(20):
        ledger.spend(cost, f"choice {index}")
    return before - F(ledger.remaining()["rho"])  # type: ignore[arg-type]


def test_twenty_selections_in_a_ledger_in_rho() -> None:
    bounded = ExponentialMechanism(epsilon="1/5", sensitivity=1)
    # 20 (1/5)^2 / 8 and 20 (1/5)^2 / 2.
    assert twenty(bounded.cost) == F(1, 10)
    assert twenty(PermuteAndFlip(epsilon="1/5", sensitivity=1).cost) == F(2, 5)
    # One direction: the premise is not that of replaced users, and nothing but epsilon is stated.
    assert ExponentialMechanism(epsilon="1/5", sensitivity=1, monotone=True).cost.pair() == (F(1, 5), 0)
    pure = [PurePrivateMode(epsilon="1/5", n_items=9, mechanism=m).cost for m in ("exponential", "permute-and-flip")]
    assert [twenty(cost) for cost in pure] == [F(1, 10), F(2, 5)]
    assert PurePrivateMode(epsilon="1/5", n_items=9, neighbors="add-remove").cost.pair() == (F(1, 5), 0)


def lost(n_items: int, n: int, agreement: Fraction, flip: Fraction) -> Fraction:
    """How likely the common item is missed, where all others have one other item, from the definitions."""
    missed = F(0)
    for k in range(n + 1):
        mass = math.comb(n, k) * agreement**k * (1 - agreement) ** (n - k)
        most = max(k, n - k)
        own, rival, each = (flip ** (most - count) for count in (k, n - k, 0))
        # The integral over [0, 1] of (1 - rival t) (1 - each t)^(n_items - 2).
        power = [F(math.comb(n_items - 2, j)) * (-each) ** j for j in range(n_items - 1)]
        integral = sum(c / (j + 1) - rival * c / (j + 2) for j, c in enumerate(power))
        missed += mass * (1 - own * integral)
    return missed


@pytest.mark.parametrize(("a", "b"), [(4, 1), (9, 4), (100, 1)])
@pytest.mark.parametrize("n_items", [2, 3, 16])
@pytest.mark.parametrize("agreement", ["0.9", "0.7"])
def test_users_needed_by_coins(a: int, b: int, n_items: int, agreement: str) -> None:
    choice = PurePrivateMode(epsilon=LogRatio(a, b), n_items=n_items, mechanism="permute-and-flip")
    needed = choice.users_needed(agreement=agreement, beta="0.1")
    flip = F(math.isqrt(b), math.isqrt(a))
    found = [lost(n_items, n, F(agreement), flip) for n in (needed - 1, needed, needed + 1)]
    assert [one <= F(1, 30) for one in found] == [False, True, True]


def test_failures_by_coins_fall_along_even_and_along_odd_numbers() -> None:
    for n_items, flip in ((2, F(1, 2)), (5, F(1, 3)), (9, F(9, 10))):
        found = [lost(n_items, n, F(3, 5), flip) for n in range(1, 24)]
        assert all(later <= earlier for earlier, later in zip(found, found[2:], strict=False))


def test_the_others_do_the_most_harm_when_they_agree() -> None:
    for flip in (F(1, 2), F(9, 10)):
        for n, k in ((6, 3), (6, 2), (5, 4), (7, 1)):
            masses = {}
            for counts in itertools.product(range(n - k + 1), repeat=3):
                if sum(counts) <= n - k:
                    held = [k, *counts]
                    masses[counts] = oracle.by_integral([flip ** (max(held) - count) for count in held])[0]
            assert min(masses.values()) == masses[n - k, 0, 0]


def test_users_needed_in_the_specified_worlds() -> None:
    for case in (case for case in CASES if case["kind"] == "users_needed"):
        given, want = case["given"], case["want"]
        arguments = {"epsilon": given["epsilon"], "n_items": given["n_items"]}
        for mechanism, name in (("exponential", "em"), ("permute-and-flip", "pf")):
            choice = PurePrivateMode(**arguments, mechanism=mechanism)  # type: ignore[arg-type]
            assert choice.users_needed(agreement=given["agreement"], beta=given["beta"]) == want[name]


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_the_most_frequent_item_by_coins(neighbors: Any) -> None:
    choice = PurePrivateMode(epsilon=1, n_items=3, neighbors=neighbors, mechanism="permute-and-flip")
    by_hand = PermuteAndFlip(epsilon=1, sensitivity=1, maximize=True, monotone=neighbors == "add-remove")
    assert choice.pmf({0: 2, 2: 5, None: 3}).weights == by_hand.pmf([2, 0, 5]).weights
    assert choice.probability(1, {0: 2, 2: 5}) == by_hand.pmf([2, 0, 5]).fractions()[1]
    assert choice.certified_epsilon == by_hand.certified_epsilon <= 1
    assert choice.cost == PrivacyCost(1, neighbors=neighbors)
    assert choice.accuracy("0.01") < PurePrivateMode(epsilon=1, n_items=3, neighbors=neighbors).accuracy("0.01")
    with pytest.warns(InsecureRandomnessWarning):
        assert choice.release([2] * 500, random_state=1) == 2
    assert "permute-and-flip" in repr(choice)


def test_audits_of_the_most_frequent_item_by_coins() -> None:
    def report(choice: PurePrivateMode) -> Any:
        def pmf(dataset: Any) -> Any:
            return choice.pmf(choice.tally([value for (value,) in dataset]))

        return audit_user_level(
            SymmetricAlgorithm(range(3), pmf), universe=(0, 1, 2), n_users=4, n_examples=1, epsilon=1, delta=0
        )

    assert report(PurePrivateMode(epsilon=1, n_items=3, mechanism="permute-and-flip")).holds is True
    assert report(PurePrivateMode(epsilon=2, n_items=3, mechanism="permute-and-flip")).holds is False
    rate_of_others = PurePrivateMode(epsilon=1, n_items=3, mechanism="permute-and-flip", neighbors="add-remove")
    assert report(rate_of_others).holds is False


def test_refusals_of_the_most_frequent_item_by_coins() -> None:
    for wrong in ("flip", None, 3, ["exponential"]):
        with pytest.raises(ValueError, match="mechanism must be 'exponential' or 'permute-and-flip'"):
            PurePrivateMode(epsilon=1, n_items=3, mechanism=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="n_items must be at most 2\\*\\*24"):
        PurePrivateMode(epsilon=1, n_items=2**24 + 1, mechanism="permute-and-flip")
    many = PurePrivateMode(epsilon=1, n_items=1000, mechanism="permute-and-flip")
    with pytest.raises(BudgetError, match="64 candidates"):
        many.pmf({3: 1})
    with pytest.raises(ValueError, match="beta is too small"):
        many.users_needed(agreement="0.9", beta="1e-12")


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_counts_of_very_many_users(mechanism: Any) -> None:
    """What an audit asks takes no memory for each user, and what is beyond 64 bits is refused."""
    choice = PurePrivateMode(epsilon=1, n_items=4, mechanism=mechanism)
    assert choice.pmf({0: 2**62, 1: 2**62}).weights[:2] == choice.pmf({0: 5000, 1: 5000}).weights[:2]
    assert choice.probability(0, {0: 10**12}) > F(1, 2)
    for ask in (choice.pmf, lambda counts: choice.probability(0, counts)):
        with pytest.raises(ValueError, match=r"counts must be at most 2\*\*62; one is larger"):
            ask({0: 2**62 + 1})
