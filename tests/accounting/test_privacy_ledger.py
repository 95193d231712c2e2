"""The ledger: sums, refusals, fits, text."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from fractions import Fraction
from typing import Any

import pytest

from support.ledger_cases import HOURS, PEOPLE, classifier, record
from userdp import LogRatio
from userdp.accounting import (
    LedgerEntry,
    PrivacyCost,
    PrivacyLedger,
    compose_optimal,
    largest_epsilon_each,
    largest_rho,
    zcdp_delta,
)
from userdp.exceptions import PrivacyBudgetError
from userdp.mechanisms import (
    ApproximatePrivateMode,
    DiscreteLaplace,
    ExponentialMechanism,
    GroupedExponentialMechanism,
    PrivateRange,
    PurePrivateMode,
    TruncatedDiscreteLaplace,
)

F = Fraction


def test_sums_are_exact_and_the_limit_is_reached() -> None:
    ledger = PrivacyLedger(1, "1e-6")
    for _ in range(3):
        ledger.spend(PrivacyCost(F(1, 3), F(1, 3 * 10**6)))
    assert ledger.spent == ledger.limits == {"epsilon": 1, "delta": F(1, 10**6)}
    assert ledger.remaining() == {"epsilon": 0, "delta": 0}
    with pytest.raises(PrivacyBudgetError, match="release 4 needs"):
        ledger.spend(PrivacyCost("1e-300"))
    assert ledger.spent["epsilon"] == 1
    assert len(ledger.entries) == 3


def test_logarithms_stay_exact() -> None:
    ledger = PrivacyLedger(LogRatio(9))
    ledger.spend(PrivacyCost(LogRatio(3)))
    assert ledger.remaining() == {"epsilon": LogRatio(3), "delta": 0}
    assert not ledger.can_spend(PrivacyCost(LogRatio(10**20 * 3 + 1, 10**20)))
    assert ledger.can_spend(PrivacyCost("1.0986"))
    ledger.spend(PrivacyCost(LogRatio(3)))
    assert ledger.remaining()["epsilon"] == 0
    mixed = PrivacyLedger(2)
    mixed.spend(PrivacyCost(LogRatio(3)))
    left = mixed.remaining()["epsilon"]
    assert isinstance(left, Fraction)
    mixed.spend(PrivacyCost(left))
    assert not mixed.can_spend(PrivacyCost("1e-12"))


def test_floats_are_the_numbers_that_they_are() -> None:
    ledger = PrivacyLedger(0.3)
    ledger.spend(PrivacyCost(0.1))
    ledger.spend(PrivacyCost(0.1))
    assert not ledger.can_spend(PrivacyCost(0.1))
    assert ledger.can_spend(PrivacyCost(0.09999999999999998))


def test_zcdp_is_counted_in_three_fixed_limits() -> None:
    ledger = PrivacyLedger(1, "1e-6", "zcdp", added_delta="1e-7", distance="1e-20")
    assert ledger.limits["rho"] == largest_rho(1, "9e-7", distance="1e-20")
    assert (ledger.limits["delta"], ledger.limits["distance"]) == (F("1e-7"), F("1e-20"))
    rho = ledger.limits["rho"]
    assert zcdp_delta(rho, 1, distance="1e-20") + F("1e-7") <= F("1e-6")  # type: ignore[arg-type]
    ledger.spend(PrivacyCost("1/10", "1e-7"), "approximate")
    ledger.spend(PrivacyCost(bounded_range="1/10"), "choice")
    ledger.spend(PrivacyCost(rho="1/1000", distance="1e-20"), "noise")
    assert ledger.spent == {"rho": F(1, 200) + F(1, 800) + F(1, 1000), "delta": F("1e-7"), "distance": F("1e-20")}
    assert not ledger.can_spend(PrivacyCost("1/1000", "1e-12"))
    assert not ledger.can_spend(PrivacyCost(rho=0, distance="1e-30"))
    ledger.spend(PrivacyCost(rho=ledger.remaining()["rho"]))  # type: ignore[arg-type]
    assert not ledger.can_spend(PrivacyCost(rho="1e-300"))


def test_the_default_distance_is_ample_and_costs_little() -> None:
    ledger = PrivacyLedger(1, "1e-6", "zcdp")
    assert ledger.limits["distance"] > 10**6 * F(1, 2**80)  # type: ignore[operator]
    assert ledger.limits["rho"] > F(9999, 10000) * largest_rho(1, "1e-6")  # type: ignore[operator]
    assert not ledger.can_spend(PrivacyCost("1e-9", "1e-30"))
    with pytest.raises(PrivacyBudgetError):
        PrivacyLedger(1, "1e-6", "zcdp", distance=0).spend(PrivacyCost(rho="1e-9", distance="1e-30"))
    assert PrivacyLedger(2**21, "1e-6", "zcdp").limits["distance"] == 0


def test_many_small_releases_fit_more_often_in_zcdp() -> None:
    basic, concentrated = PrivacyLedger(1, "1e-6"), PrivacyLedger(1, "1e-6", "zcdp")

    def count(ledger: PrivacyLedger) -> int:
        done = 0
        while ledger.can_spend(PrivacyCost("1/100")):
            ledger.spend(PrivacyCost("1/100"))
            done += 1
        return done

    assert count(basic) == 100
    assert count(concentrated) == 487
    # Fixed in advance there may be more: as many as optimal composition of equal parts allows.
    assert compose_optimal("1/100", 562, "1e-6") <= 1 < compose_optimal("1/100", 563, "1e-6")
    assert largest_epsilon_each(562, 1, "1e-6") >= F(1, 100) > largest_epsilon_each(563, 1, "1e-6")


def test_basic_takes_no_cost_in_rho_only() -> None:
    ledger = PrivacyLedger(1, "1e-6")
    with pytest.raises(ValueError, match="zcdp_epsilon"):
        ledger.spend(PrivacyCost(rho="1/100"))
    with pytest.raises(ValueError, match="zcdp_epsilon"):
        ledger.can_spend(PrivacyCost(rho="1/100"))
    ledger.spend(PrivacyCost("1/10", "1e-7", rho="1/100"))
    assert ledger.spent == {"epsilon": F(1, 10), "delta": F("1e-7")}


def test_records_and_estimators() -> None:
    ledger = PrivacyLedger(2)
    ledger.spend(record(), "a record")
    model = classifier().fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)
    ledger.spend(model)
    assert [entry.name for entry in ledger.entries] == ["a record", "ThresholdClassifier"]
    assert ledger.spent["epsilon"] == 1
    assert ledger.entries[0] == LedgerEntry("a record", PrivacyCost("1/2"), {"epsilon": F(1, 2), "delta": F(0)})
    with pytest.raises(TypeError, match="fit it with the ledger's fit"):
        ledger.spend(classifier())
    with pytest.raises(TypeError, match="item must be"):
        ledger.spend(0.5)
    with pytest.raises(TypeError, match="item must be"):
        ledger.spend(ledger.entries[0])  # which does not say whom it protects


def test_what_does_not_add_up_is_refused() -> None:
    ledger = PrivacyLedger(1)
    with pytest.raises(ValueError, match="unit: the release protects 'record'"):
        ledger.spend(record(unit="record"))
    with pytest.raises(ValueError, match="neighbors: the release protects 'add-remove'"):
        ledger.spend(record(neighbors="add-remove"))
    with pytest.raises(ValueError, match="not private: random_state"):
        ledger.spend(record(caveats=("random_state makes the draws reproducible",)))
    with pytest.raises(ValueError, match="unit"):
        ledger.can_spend(PrivacyCost(1), unit="record")
    with pytest.raises(ValueError, match="PrivacyRecord has its own"):
        ledger.spend(record(), unit="record")
    assert PrivacyLedger(1, unit="record").can_spend(record(unit="record"))
    assert PrivacyLedger(1, neighbors="add-remove").can_spend(PrivacyCost(1), neighbors="add-remove")
    assert ledger.entries == ()


@pytest.mark.serial
def test_threads_do_not_overspend() -> None:
    ledger = PrivacyLedger(1)
    allowed: list[int] = []
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait()
        for _ in range(50):
            try:
                ledger.spend(PrivacyCost("1/100"))
            except PrivacyBudgetError:
                continue
            allowed.append(1)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(allowed) == len(ledger.entries) == 100
    assert ledger.remaining()["epsilon"] == 0


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_json_keeps_everything(composition: Any) -> None:
    ledger = PrivacyLedger(LogRatio(9), "1e-6", composition, neighbors="add-remove")
    ledger.spend(PrivacyCost(LogRatio(10, 9)), "ranges")
    ledger.spend(PrivacyCost(0.1, rho="1/500"), "sums")
    ledger.spend(PrivacyCost(bounded_range="1/100"), "a choice")
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.to_json() == ledger.to_json()
    assert again.entries == ledger.entries
    assert (again.spent, again.limits, repr(again)) == (ledger.spent, ledger.limits, repr(ledger))


def test_json_that_does_not_keep_the_promise_is_refused() -> None:
    ledger = PrivacyLedger(1, "1e-6", "zcdp")
    ledger.spend(PrivacyCost(rho="1/100"))
    content = json.loads(ledger.to_json())
    for change in (
        {"limits": content["limits"] | {"rho": "1/40"}},
        {"limits": content["limits"] | {"rho": "ln(3/1)"}},
        {"limits": {"rho": "1/100"}},
        {"epsilon": "1/2"},
        {"entries": content["entries"] * 3},
        {"schema_version": 2},
        {"unit": "household"},
        {"limits": 3},
        {"entries": [{"name": "x", "cost": {"epsilon": "-1"}}]},
        {"epsilon": "nan"},
    ):
        with pytest.raises(ValueError, match=r"ledger|must be|needs"):
            PrivacyLedger.from_json(json.dumps(content | change))
    for text in ("", "[]", "{}", "null", ledger.to_json()[:-2]):
        with pytest.raises(ValueError, match="not a ledger"):
            PrivacyLedger.from_json(text)


def test_json_has_numbers_of_any_length_and_no_decimals() -> None:
    ledger = PrivacyLedger("1e-5000")
    ledger.spend(PrivacyCost("1e-6000"))
    assert PrivacyLedger.from_json(ledger.to_json()).spent == ledger.spent
    content = json.loads(ledger.to_json())
    for change in ({"epsilon": "1e999999999"}, {"delta": "ln(2/1)"}, {"epsilon": "1/0"}):
        with pytest.raises(ValueError, match="not a ledger"):
            PrivacyLedger.from_json(json.dumps(content | change))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(copied: Any) -> None:
    with pytest.raises(TypeError, match="not copied"):
        copied(PrivacyLedger(1))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": 1, "delta": 2}, "delta"),
        ({"epsilon": 1, "composition": "optimal"}, "composition"),
        ({"epsilon": 1, "composition": "zcdp"}, "delta"),
        ({"epsilon": 1, "delta": "1e-6", "composition": "zcdp", "added_delta": "1e-6"}, "added_delta"),
        ({"epsilon": 1, "delta": "1e-6", "added_delta": "1e-7"}, "added_delta"),
        ({"epsilon": 1, "distance": 0}, "distance"),
        ({"epsilon": 1, "unit": "household"}, "unit"),
        ({"epsilon": 1, "neighbors": ["replace"]}, "neighbors"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        PrivacyLedger(**arguments)


def test_the_table_has_a_line_for_everything() -> None:
    ledger = PrivacyLedger(1)
    ledger.spend(PrivacyCost("1/4"), "a release with a long name")
    ledger.spend(PrivacyCost("1/4"))
    assert repr(ledger).splitlines() == [
        "PrivacyLedger(epsilon=1, delta=0, composition='basic', unit='user', neighbors='replace')",
        "  release                       epsilon      delta",
        "  a release with a long name       0.25          0",
        "  release 2                        0.25          0",
        "  spent                             0.5          0",
        "  limit                               1          0",
    ]


# --- long sums, and what has a cost


def bits(amount: Any) -> int:
    ratio = amount.ratio if isinstance(amount, LogRatio) else amount
    return int(ratio.numerator.bit_length() + ratio.denominator.bit_length())


@pytest.mark.parametrize(
    ("spends", "truth"),
    [
        # e^epsilon to the power of 4,000 would have 1.6 million bits.
        ([LogRatio(10**61 + k + 1, 10**61 + k) for k in range(4000)], F(10**61 + 4000, 10**61) - 1),
        ([F(1, 10**40 + k) for k in range(4000)], F(0)),
    ],
    ids=["logarithms", "fractions"],
)
def test_long_sums_stay_short_and_are_rounded_up(spends: list[Any], truth: Fraction) -> None:
    """ln((x + 4000) / x) telescopes; sums of fractions lie between 4,000 times the ends."""
    ledger = PrivacyLedger(1)
    for spend in spends:
        ledger.spend(PrivacyCost(spend), "x")
    spent = ledger.spent["epsilon"]
    assert bits(spent) <= 4096
    if isinstance(spent, LogRatio):
        assert 0 <= spent.ratio - 1 - truth < F(4000, 2**500)
    else:
        assert F(4000, 10**40 + 3999) <= spent <= F(4000, 10**40)
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.spent == ledger.spent


def test_a_sum_of_many_logarithms_never_spends_more_than_its_limit() -> None:
    ledger = PrivacyLedger(LogRatio(2))
    cost, count = PrivacyCost(LogRatio(10**30 + 1, 10**30 - 3)), 0
    limit = PrivacyLedger(LogRatio((10**30 + 1) ** 60, (10**30 - 3) ** 60))
    while limit.can_spend(cost):
        limit.spend(cost)
        count += 1
    assert count in (59, 60)  # exactly at the limit only if nothing was rounded
    ledger.spend(cost)
    assert ledger.spent["epsilon"] == LogRatio(10**30 + 1, 10**30 - 3)


def test_what_has_a_cost_can_be_spent() -> None:
    """One type of a cost from mechanism to ledger, checked for whom it protects where that is known."""
    ledger = PrivacyLedger(10, "1e-3")
    selection = ApproximatePrivateMode(epsilon=1, delta="1e-6")
    assert selection.cost == PrivacyCost(1, "1e-6")
    ledger.spend(selection, "an item")
    ledger.spend(PurePrivateMode(epsilon="1/2", n_items=4))
    with pytest.raises(ValueError, match="neighbors"):
        ledger.spend(PurePrivateMode(epsilon=1, n_items=4, neighbors="add-remove"))
    for mechanism, cost in (
        (ExponentialMechanism(epsilon=LogRatio(3), sensitivity=1), PrivacyCost(LogRatio(3))),
        (GroupedExponentialMechanism(epsilon=1, sensitivity=1), PrivacyCost(1)),
        (PrivateRange(epsilon=1, bound=1, width=1), PrivacyCost(bounded_range=1)),
        (DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 9)), PrivacyCost(1)),
        (TruncatedDiscreteLaplace(epsilon=1, delta="1e-4"), PrivacyCost(1, "1e-4")),
    ):
        assert mechanism.cost == cost
        ledger.spend(mechanism)
    with pytest.raises(ValueError, match="sensitivity"):
        _ = DiscreteLaplace(scale=1, bounds=(0, 9)).cost
    plan = classifier().release_plan(n_users=30, n_features=1)
    ledger.spend(plan.record)
    assert plan.cost == plan.record.cost == classifier().privacy_cost(n_users=30, n_features=1)
    assert ledger.spent["epsilon"] > 6
    with pytest.raises(TypeError, match="item must be a PrivacyCost"):
        ledger.spend(ledger.entries[0])
