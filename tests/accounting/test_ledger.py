"""The ledger: sums, refusals, text, and what fits and sessions charge before anything is drawn."""

from __future__ import annotations

import contextvars
import copy
import datetime
import json
import os
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from userdp import LogRatio
from userdp.accounting import (
    LedgerEntry,
    PrivacyCost,
    PrivacyLedger,
    compose_optimal,
    gaussian_delta,
    largest_epsilon_each,
    largest_rho,
    zcdp_delta,
)
from userdp.accounting.budget_hook import charging
from userdp.estimators import PrivacyRecord
from userdp.estimators import plan as plan_module
from userdp.exceptions import InsecureRandomnessWarning, PrivacyBudgetError
from userdp.learners import ThresholdClassifier
from userdp.means import WinsorizedMean, WinsorizedQueries
from userdp.mechanisms import (
    ApproximatePrivateMode,
    DiscreteLaplace,
    ExponentialMechanism,
    GroupedExponentialMechanism,
    PrivateRange,
    PurePrivateMode,
    TruncatedDiscreteLaplace,
)
from userdp.optimization import (
    ClippedGradientDescent,
    CustomLoss,
    FiniteMinimizer,
    L2Ball,
    PhasedERM,
    SquaredLoss,
    UserLevelLinearRegression,
    UserLevelLogisticRegression,
    WinsorizedGradientDescent,
)

F = Fraction
PEOPLE = np.repeat(np.arange(30), 4)
HOURS = np.arange(120) % 10 + 1


def record(**changes: Any) -> PrivacyRecord:
    given: dict[str, Any] = {
        "cost": PrivacyCost(F(1, 2)),
        "unit": "user",
        "budget": {"all": F(1, 2)},
        "released": (),
    }
    return PrivacyRecord(**(given | changes))


def classifier(**changes: Any) -> ThresholdClassifier:
    given: dict[str, Any] = {"epsilon": "1/2", "domain_size": 10, "m": 4, "classes": (False, True)}
    return ThresholdClassifier(**(given | changes))


def fitted(ledger: PrivacyLedger, **changes: Any) -> ThresholdClassifier:
    return ledger.fit(classifier(**changes), HOURS[:, None], HOURS > 5, groups=PEOPLE)


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


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.float16, np.array])
def test_floats_are_the_decimals_that_they_print_as(kind: Any) -> None:
    """Ten tenths are the whole, of epsilon, of delta and of rho, whatever floats they are."""
    ledger = PrivacyLedger(1, 1e-5)
    for _ in range(10):
        ledger.spend(PrivacyCost(kind(0.1), 1e-6))
    assert dict(ledger.remaining()) == {"epsilon": 0, "delta": 0}
    assert not ledger.can_spend(PrivacyCost(5e-324))
    with pytest.raises(PrivacyBudgetError, match=r"needs epsilon 0\.1, delta 0, and 0, 0 are left"):
        ledger.spend(PrivacyCost(kind(0.1)))
    assert PrivacyCost(rho=kind(0.1), mu2=kind(0.2), delta=0) == PrivacyCost(rho="0.1", mu2="0.2")


def test_a_refusal_prints_numbers_that_differ() -> None:
    ledger = PrivacyLedger("1/3")
    with pytest.raises(PrivacyBudgetError, match=r"needs epsilon 0\.33333333334, delta 0, and 0\.33333333333, 0 are"):
        ledger.spend(PrivacyCost("0.33333333334"))
    with pytest.raises(PrivacyBudgetError) as caught:
        ledger.spend(PrivacyCost(F(1, 3) + F(1, 10**60)))
    needed, left = re.findall(r"\d+/\d+", str(caught.value))
    assert (F(needed), F(left)) == (F(1, 3) + F(1, 10**60), F(1, 3))


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
    ledger.spend(PrivacyCost("1/100", mu2="1/5000", distance="1e-30"), "noise")
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.to_json() == ledger.to_json()
    assert again.entries == ledger.entries
    assert (again.spent, again.limits, repr(again)) == (ledger.spent, ledger.limits, repr(ledger))


def test_json_keeps_a_delta_beside_an_epsilon_that_is_also_a_bounded_range() -> None:
    ledger = PrivacyLedger(3, "1e-3")
    ledger.spend(PrivacyCost(1, "1e-4", bounded_range=1))
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.entries == ledger.entries
    assert again.spent == ledger.spent


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
    assert selection.cost == PrivacyCost(1, "1e-6", neighbors="replace")
    ledger.spend(selection, "an item")
    ledger.spend(PurePrivateMode(epsilon="1/2", n_items=4))
    with pytest.raises(ValueError, match="neighbors"):
        ledger.spend(PurePrivateMode(epsilon=1, n_items=4, neighbors="add-remove"))
    for mechanism, cost in (
        (ExponentialMechanism(epsilon=LogRatio(3), sensitivity=1), PrivacyCost(bounded_range=LogRatio(3))),
        (GroupedExponentialMechanism(epsilon=1, sensitivity=1), PrivacyCost(bounded_range=1)),
        (PrivateRange(epsilon=1, bound=1, width=1), PrivacyCost(bounded_range=1, neighbors="replace")),
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


def test_fit_asks_before_anything_is_drawn() -> None:
    ledger = PrivacyLedger(1)
    model = fitted(ledger)
    # t by 3/10 of epsilon, with bounded range, and the threshold by 7/10, pure: (9/8 + 49/2) / 100 (1/2)^2.
    assert model.privacy_.cost == PrivacyCost("1/2", rho=F(9, 100) / 4 / 8 + F(49, 100) / 4 / 2, neighbors="replace")
    assert [entry.name for entry in ledger.entries] == ["ThresholdClassifier"]
    with pytest.raises(PrivacyBudgetError, match=r"ThresholdClassifier needs epsilon 0\.6"):
        fitted(ledger, epsilon="3/5")
    unfitted = classifier(epsilon="3/5")
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(unfitted, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert not hasattr(unfitted, "threshold_")
    assert not hasattr(unfitted, "privacy_")
    fitted(ledger)
    assert ledger.remaining()["epsilon"] == 0


@pytest.mark.parametrize(
    "model",
    [
        WinsorizedMean(epsilon=1, delta="1e-7", max_norm=1, m=4, method="gaussian"),
        WinsorizedMean(epsilon=1, bounds=(0, 10), m=4, user_std=0.5, method="iterated"),
        ClippedGradientDescent(
            epsilon=1, delta="1e-7", loss=SquaredLoss(), constraint=L2Ball(1), max_norm=10, m=4, target_bounds=(-1, 1)
        ),
        WinsorizedGradientDescent(
            epsilon=1, loss=SquaredLoss(), constraint=L2Ball(1), max_norm=10, m=4, target_bounds=(-1, 1)
        ),
        PhasedERM(
            epsilon=1, delta="1e-7", loss=SquaredLoss(), constraint=L2Ball(1), max_norm=10, m=4, target_bounds=(-1, 1)
        ),
        FiniteMinimizer(epsilon=1, loss_bounds=(0, 10), m=4),
        UserLevelLogisticRegression(epsilon=1, delta="1e-7", max_feature_norm=10, m=4, classes=(0, 1)),
        UserLevelLinearRegression(
            epsilon=1, delta="1e-7", max_feature_norm=10, m=4, target_bounds=(0, 1), solver="winsorized"
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:.*users:UserWarning")
def test_fits_of_every_kind_are_charged_once_what_they_say_in_advance(model: Any) -> None:
    ledger = PrivacyLedger("3/2", "1e-6")
    targets = {} if isinstance(model, (WinsorizedMean, FiniteMinimizer)) else {"y": HOURS > 5}
    ledger.fit(model, HOURS[:, None], groups=PEOPLE, **targets)
    cost = model.privacy_cost(n_users=30, n_features=1)
    assert [entry.cost for entry in ledger.entries] == [cost] == [model.privacy_.cost]
    assert cost.pair() == (1, model.privacy_.delta)
    if cost.mu2 is not None:
        assert gaussian_delta(cost.mu2, 1, distance=cost.distance) <= cost.delta
        assert cost.rho == cost.mu2 / 2
    elif cost.rho is not None and cost.delta:
        assert zcdp_delta(cost.rho, 1, distance=cost.distance) <= cost.delta
    before = {name: np.array(getattr(model, name)) for name in model.released}
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(model, HOURS[:, None], groups=PEOPLE, **targets)
    assert all(np.array_equal(getattr(model, name), value) for name, value in before.items())
    assert len(ledger.entries) == 1


def test_sessions_are_charged_for_all_questions_when_they_open() -> None:
    ledger = PrivacyLedger("3/2")
    queries = WinsorizedQueries(epsilon=1, n_queries=3, max_norm=10, m=4)
    with pytest.raises(TypeError, match="a method fit"):
        ledger.fit(queries, HOURS[:, None], groups=PEOPLE)
    with pytest.raises(TypeError, match="a method open"):
        ledger.open_session(classifier(), HOURS[:, None], groups=PEOPLE)  # type: ignore[arg-type]
    with ledger.open_session(queries, HOURS[:, None], groups=PEOPLE, name="questions") as session:
        assert [(entry.name, entry.cost) for entry in ledger.entries] == [("questions", session.privacy_.cost)]
        session.release(lambda rows: rows.mean())
    with pytest.raises(PrivacyBudgetError):
        ledger.open_session(queries, HOURS[:, None], groups=PEOPLE)
    assert ledger.remaining()["epsilon"] == F(1, 2)


@pytest.mark.serial
def test_what_a_fit_fits_on_the_way_is_charged_and_what_other_threads_fit_is_not() -> None:
    ledger = PrivacyLedger(10)
    done: list[str] = []

    def gradient(theta: Any, X: Any, y: Any) -> Any:
        if not done:
            done.append("inside")
            classifier(epsilon="1/8").fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)
            thread = threading.Thread(
                target=lambda: done.append(type(classifier().fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)).__name__)
            )
            thread.start()
            thread.join()
        return np.zeros((len(X), len(theta)))

    loss = CustomLoss(gradient, lipschitz=1, smoothness=1)
    model = WinsorizedGradientDescent(
        epsilon=1, loss=loss, constraint=L2Ball(1), max_norm=10, m=4, target_bounds=(-1, 1)
    )
    ledger.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert done == ["inside", "ThresholdClassifier"]
    assert sorted(entry.name for entry in ledger.entries) == ["WinsorizedGradientDescent"] * 2
    assert ledger.spent["epsilon"] == F(9, 8)


def test_another_process_cannot_spend(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = PrivacyLedger(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="process"):
        ledger.spend(PrivacyCost("1/2"))
    with pytest.raises(RuntimeError, match="process"):
        fitted(ledger)
    assert ledger.entries == ()


def test_fits_outside_of_the_ledger_are_not_charged() -> None:
    ledger = PrivacyLedger(1)
    fitted(ledger)
    classifier(epsilon=7).fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert ledger.spent["epsilon"] == F(1, 2)


def test_a_fit_inside_of_two_ledgers_is_charged_to_both() -> None:
    outer, inner = PrivacyLedger(1), PrivacyLedger(1)
    model = classifier()
    with charging(model, outer.spend):
        inner.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert outer.spent["epsilon"] == inner.spent["epsilon"] == F(1, 2)
    with charging(model, outer.spend):
        classifier(epsilon="1/4").fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert outer.spent["epsilon"] == F(3, 4)
    with pytest.raises(PrivacyBudgetError), charging(model, PrivacyLedger("1/4").spend):
        model.fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)


def test_charges_that_end_in_another_order_leave_nothing() -> None:
    """As two ledgers do that fit one estimator in two threads."""
    model = classifier()
    before = dict(vars(model))
    blocks = [(contextvars.copy_context(), charging(model, PrivacyLedger(1).spend)) for _ in range(2)]
    for context, block in blocks:
        context.run(block.__enter__)
    for context, block in blocks:
        with pytest.raises(RuntimeError, match="without asking the ledger"):
            context.run(block.__exit__, None, None, None)
    assert vars(model) == before
    model.fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)


def test_fit_refuses_what_is_not_private_or_protects_others() -> None:
    ledger = PrivacyLedger(1)
    with pytest.warns(InsecureRandomnessWarning), pytest.raises(ValueError, match="not private: random_state"):
        fitted(ledger, random_state=1)
    with pytest.raises(ValueError, match="not private: classes=None"):
        fitted(ledger, classes=None)
    with pytest.raises(ValueError, match="unit: the release protects 'record'"):
        ledger.fit(classifier(m=None, require_groups=False), HOURS[:, None], HOURS > 5)
    with pytest.raises(TypeError, match="estimator must be one of this package's"):
        ledger.fit(object(), HOURS[:, None])
    assert ledger.spent["epsilon"] == 0


def test_a_plan_is_spent_as_its_fit_would_be() -> None:
    """With what it says of whom it protects, and of what voids that."""
    ledger = PrivacyLedger(1)
    ledger.spend(classifier().release_plan(n_users=30, n_features=1))
    assert ledger.spent["epsilon"] == F(1, 2)
    for void, said in (({"random_state": 1}, "random_state"), ({"classes": None}, "classes=None")):
        plan = classifier(**void).release_plan(n_users=30, n_features=1)
        for call in (ledger.spend, ledger.can_spend):
            with pytest.raises(ValueError, match=f"not private: {said}"):
                call(plan)
    with pytest.raises(ValueError, match="unit: the release protects 'user'"):
        PrivacyLedger(1, unit="record").spend(classifier().release_plan(n_users=30, n_features=1))
    assert ledger.spent["epsilon"] == F(1, 2)


def test_costs_of_other_classes_are_refused() -> None:
    class Free(PrivacyCost):
        def pair(self) -> Any:
            return F(0), F(0)

    ledger = PrivacyLedger(1)
    with pytest.raises(TypeError, match="item must be a PrivacyCost"):
        ledger.spend(Free(5))
    assert ledger.entries == ()


def test_an_error_before_the_draw_costs_nothing_and_one_after_it_costs_all(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = PrivacyLedger(1)
    with pytest.raises(ValueError, match="groups"):
        ledger.fit(classifier(), HOURS[:, None], HOURS > 5, groups=PEOPLE[:-1])
    assert ledger.entries == ()

    def fails(*_: Any) -> None:
        raise RuntimeError("after the draw")

    monkeypatch.setattr(plan_module, "run", fails)
    with pytest.raises(RuntimeError, match="after the draw"):
        fitted(ledger)
    assert ledger.spent["epsilon"] == F(1, 2)


# --- the draw carries its charge


def test_what_a_callback_changes_during_a_fit_changes_nothing() -> None:
    """The plan is fixed before a callback runs: cost, noise and record are those of the parameters at the start."""
    ledger = PrivacyLedger(2)
    model: Any = None

    def gradient(theta: Any, X: Any, y: Any) -> Any:
        model.set_params(epsilon=1000, m=1, batch_users=1)
        model.enrolled = [1]
        return np.zeros((len(X), len(theta)))

    loss = CustomLoss(gradient, lipschitz=1, smoothness=1)
    model = ClippedGradientDescent(
        epsilon=1,
        delta=1e-7,
        loss=loss,
        constraint=L2Ball(1),
        max_norm=10,
        m=4,
        n_iterations=3,
        clip=1.0,
        step_size=0.1,
        target_bounds=(-1, 1),
    )
    ledger = PrivacyLedger(2, "1e-6")
    ledger.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert model.epsilon == 1000
    assert ledger.spent["epsilon"] == model.privacy_.epsilon == 1
    assert model.n_users_ == 30
    # At epsilon 1000 the noise would be too little for theta to move: it is that of epsilon 1.
    assert np.abs(model.theta_).max() > 0
    again = clone(model).set_params(epsilon=1, m=4, batch_users=None, enrolled=None)
    assert model.privacy_ == again.set_params(loss=SquaredLoss()).fit(HOURS[:, None], HOURS > 5, groups=PEOPLE).privacy_


class InPool(ThresholdClassifier):
    """Fits in another thread, whose context knows nothing of a ledger."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> InPool:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(super().fit, X, y, groups).result()
        return self


class OfClones(ThresholdClassifier):
    """Fits clones of itself in other threads."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> OfClones:
        inner = ThresholdClassifier.__sklearn_clone__(self)
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(ThresholdClassifier.fit, clone(inner), X, y, groups) for _ in range(2)]
            self.threshold_ = max(job.result().threshold_ for job in jobs)
        return self


class Alone(ThresholdClassifier):
    """Draws by itself."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Alone:
        self.threshold_ = 3
        self.epsilon = 99
        return self


class Elsewhere(ThresholdClassifier):
    """Fits a copy that knows nothing of a ledger, as another process has it."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Elsewhere:
        copied = pickle.loads(pickle.dumps(self))
        with ThreadPoolExecutor(1) as pool:
            self.threshold_ = pool.submit(ThresholdClassifier.fit, copied, X, y, groups).result().threshold_
        return self


GIVEN: dict[str, Any] = {"epsilon": "1/2", "domain_size": 10, "m": 4, "classes": (False, True)}


class OfCopies(ThresholdClassifier):
    """Fits copies of itself in other threads, and then itself."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> OfCopies:
        with ThreadPoolExecutor(1) as pool:
            for copied in (copy.copy(self), copy.deepcopy(self)):
                pool.submit(ThresholdClassifier.fit, copied, X, y, groups).result()
        return super().fit(X, y, groups)


class OfPickles(ThresholdClassifier):
    """Is charged once, and fits a pickle of itself as well."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> OfPickles:
        super().fit(X, y, groups)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ThresholdClassifier.fit, pickle.loads(pickle.dumps(self)), X, y, groups).result()
        return self


def test_copies_are_charged_and_pickles_are_refused() -> None:
    """A pickle goes to another process, from which no ledger can be asked."""
    ledger = PrivacyLedger(2)
    model = ledger.fit(OfCopies(**GIVEN), HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert ledger.spent["epsilon"] == F(3, 2)
    for copied in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        ThresholdClassifier.fit(copied, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    with pytest.raises(RuntimeError, match="pickled while a ledger fitted it"):
        ledger.fit(OfPickles(**GIVEN), HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert ledger.spent["epsilon"] == 2


def test_charges_reach_threads_and_clones() -> None:
    ledger = PrivacyLedger(1)
    ledger.fit(InPool(**GIVEN), HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert ledger.spent["epsilon"] == F(1, 2)
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(OfClones(**GIVEN), HOURS[:, None], HOURS > 5, groups=PEOPLE)
    # One of the two was paid for before the other was refused.
    assert ledger.spent["epsilon"] == 1


@pytest.mark.parametrize(("kind", "said"), [(Alone, "without asking the ledger"), (Elsewhere, "pickled while")])
def test_a_fit_that_nobody_was_charged_for_is_an_error(kind: Any, said: str) -> None:
    ledger, model = PrivacyLedger(1), kind(**GIVEN)
    before = dict(vars(model))
    with pytest.raises(RuntimeError, match=said):
        ledger.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert vars(model) == before
    assert ledger.spent["epsilon"] == 0


def test_a_fit_that_goes_on_after_the_ledger_has_left_is_refused() -> None:
    ledger, left = PrivacyLedger(1), []

    class Later(ThresholdClassifier):
        def fit(self, X: Any, y: Any = None, groups: Any = None) -> Later:
            context, copied = contextvars.copy_context(), clone(self)
            left.append(lambda: context.run(ThresholdClassifier.fit, copied, X, y, groups))
            ThresholdClassifier.fit(self, X, y, groups)
            return self

    model = ledger.fit(Later(**GIVEN), HOURS[:, None], HOURS > 5, groups=PEOPLE)
    with pytest.raises(RuntimeError, match="whose fit has ended"):
        left[0]()
    assert ledger.spent["epsilon"] == F(1, 2)
    # The estimator itself is free again.
    ThresholdClassifier.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert ledger.spent["epsilon"] == F(1, 2)
    assert not [name for name in vars(model) if "charge" in name]


def test_a_refused_refit_leaves_the_estimator_as_it_was() -> None:
    """Whatever refuses it: the ledger, the data, or a parameter."""
    ledger = PrivacyLedger(1)
    model = fitted(ledger)
    before = dict(vars(model))
    wide = np.hstack([HOURS[:, None]] * 2)
    for X, groups, error in (
        (wide[:, :0], PEOPLE, ValueError),
        (wide, PEOPLE[:-1], ValueError),
        (wide, [None] * len(PEOPLE), ValueError),
        (pl.DataFrame({"hours": [datetime.timedelta(1)] * 120}), PEOPLE, TypeError),
    ):
        with pytest.raises(error):
            model.fit(X, HOURS > 5, groups=groups)
        assert vars(model) == before
    other = PrivacyLedger("1/4")
    with pytest.raises(PrivacyBudgetError):
        other.fit(model, wide, HOURS > 5, groups=np.arange(120) % 7)
    assert vars(model) == before
    model.domain_size = 0
    with pytest.raises(ValueError, match="domain_size"):
        model.fit(wide, HOURS > 5, groups=PEOPLE)
    assert {name: value for name, value in vars(model).items() if name != "domain_size"} == {
        name: value for name, value in before.items() if name != "domain_size"
    }
