"""The ledger with composition="exact": what takes which slot, what is refused, text, threads and fits."""

from __future__ import annotations

import json
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.accounting import (
    LedgerSlot,
    PrivacyCost,
    PrivacyLedger,
    PrivacyLossDistribution,
    bounded_range_to_mu2,
    compose_basic,
    gaussian_delta,
    largest_mu2,
    largest_rho,
)
from userdp.accounting.budget_hook import charges_of, charging
from userdp.estimators import PrivacyRecord
from userdp.exceptions import PrivacyBudgetError
from userdp.learners import ThresholdClassifier
from userdp.means import WinsorizedQueries
from userdp.mechanisms import ExponentialMechanism, PrivateRange

F = Fraction
PLD = PrivacyLossDistribution
PEOPLE = np.repeat(np.arange(30), 4)
HOURS = np.arange(120) % 10 + 1
CHOICE = PLD.bounded_range("0.08")


def classifier(**changes: Any) -> ThresholdClassifier:
    given: dict[str, Any] = {"epsilon": "1/10", "domain_size": 10, "m": 4, "classes": (False, True)}
    return ThresholdClassifier(**(given | changes))


def fitted(ledger: PrivacyLedger, model: Any = None, **given: Any) -> Any:
    model = classifier() if model is None else model
    return ledger.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE, **given)


def with_slots(*slots: Any, **given: Any) -> PrivacyLedger:
    return PrivacyLedger(1, "1e-6", "exact", slots=slots, **({"gaussian": "0.02"} | given))


def said(loss: PLD) -> Any:
    return json.loads(loss.to_json())


def used(ledger: PrivacyLedger) -> list[int]:
    return [slot.used for slot in ledger.slots]


def test_without_slots_it_is_a_gaussian_budget() -> None:
    ledger = PrivacyLedger(1, "1e-6", composition="exact")
    far = ledger.limits["distance"]
    assert ledger.limits == {"mu2": largest_mu2(1, "1e-6", distance=far), "delta": 0, "distance": far}  # type: ignore[arg-type]
    # More than zero-concentration has, by what is published for (1, 1e-6): 0.0280145 against 0.0243560 in rho.
    assert F("0.056022") < ledger.limits["mu2"] < F("0.056030")  # type: ignore[operator]
    assert ledger.limits["mu2"] > F("2.29") * largest_rho(1, "1e-6")  # type: ignore[operator]
    assert ledger.slots == ()
    for mu2 in ("1/50", "1/30", "1/1000"):
        ledger.spend(PrivacyCost(mu2=mu2, distance="1e-30"))
    assert ledger.spent == {"mu2": F(1, 50) + F(1, 30) + F(1, 1000), "delta": 0, "distance": F("3e-30")}
    with pytest.raises(PrivacyBudgetError, match=r"release 4 needs mu2 0.00\d+, delta 0, distance 0, and 0.00\d+, 0"):
        ledger.spend(PrivacyCost(mu2="1/500"))
    ledger.spend(PrivacyCost(mu2=ledger.remaining()["mu2"]))  # type: ignore[arg-type]
    assert ledger.remaining()["mu2"] == 0
    assert not ledger.can_spend(PrivacyCost(mu2="1e-300"))
    assert ledger.can_spend(PrivacyCost(mu2=0))
    with pytest.raises(PrivacyBudgetError):
        ledger.spend(PrivacyCost(mu2=0, distance="1e-6"))


def test_slots_leave_a_certified_budget() -> None:
    """A slot of eta = 0.07646 leaves 0.0541856 of mu^2, by another program, where zero-concentration has 0.0472504."""
    ledger = PrivacyLedger(1, "1e-6", "exact", slots=[(PLD.bounded_range("0.07646"), 1)], distance=0)
    assert F("0.05418") < ledger.limits["mu2"] < F("0.0541857")  # type: ignore[operator]
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.limits == ledger.limits
    with pytest.raises(ValueError, match="is above"):
        PrivacyLedger(1, "1e-6", "exact", slots=[(PLD.bounded_range("0.07646"), 1)], distance=0, gaussian="0.0545")


def test_a_given_budget_is_certified() -> None:
    most = largest_mu2(1, "1e-6")
    assert PrivacyLedger(1, "1e-6", "exact", gaussian=most, distance=0).limits["mu2"] == most
    with pytest.raises(ValueError, match="gaussian: mu2 must be within"):
        PrivacyLedger(1, "1e-6", "exact", gaussian=most * F(1001, 1000), distance=0)
    assert gaussian_delta(most * F(1001, 1000), 1) > F("1e-6")
    # Deltas and distances are taken from delta.
    for given in ({"added_delta": "1e-8"}, {"distance": "1e-8"}):
        with pytest.raises(ValueError, match="gaussian: mu2 must be within"):
            PrivacyLedger(1, "1e-6", "exact", gaussian=most, **({"distance": 0} | given))  # type: ignore[arg-type]
    assert PrivacyLedger(1, 0, "exact", slots=[(PLD.pure("1/3"), 3)], gaussian=0).limits["mu2"] == 0
    with pytest.raises(ValueError, match="slots and gaussian"):
        PrivacyLedger(1, 0, "exact", slots=[(PLD.pure("1/3"), 3), (PLD.pure("1/100"), 1)], gaussian=0)


def test_each_release_takes_what_dominates_it() -> None:
    pair = PLD.from_pmfs(["2/3", "1/3"], ["1/2", "1/2"])
    ledger = PrivacyLedger(
        4,
        "1e-3",
        "exact",
        slots=[
            (PLD.pure("1/4", "1e-6"), 1),
            (PLD.pure("1/5"), 1),
            (CHOICE, 2),
            (PLD.discrete_laplace("1/10", 2), 1),
            (PLD.discrete_gaussian(100, 3), 1),
            (pair, 2),
            (PLD.gaussian(10), 1),
        ],
        gaussian="1/10",
        added_delta="1e-5",
    )
    for item, slot, given in (
        (PrivacyCost("1/5"), 1, {}),  # of just its parameters
        (PrivacyCost("1/6"), 0, {}),  # and else the first that is free
        (ExponentialMechanism(epsilon="0.08", sensitivity=1), 2, {"neighbors": "replace"}),
        (PrivateRange(epsilon="1/20", bound=1, width=1), 2, {}),
        (PrivacyCost(mu2="1/10"), None, {}),
        (PrivacyCost(mu2="1/100"), 6, {}),  # the budget is gone
        (PLD.discrete_laplace("1/10"), 3, {}),
        (PLD.discrete_gaussian(100, 3).within("1e-20"), 4, {}),
        (PLD.from_pmfs(["1/2", "1/2"], ["2/3", "1/3"]), 5, {}),
        (PLD.from_pmfs(["7/12", "5/12"], ["1/2", "1/2"]), 5, {}),
    ):
        if isinstance(item, ExponentialMechanism):
            item, given = PrivacyCost(bounded_range="0.08"), {}
        ledger.spend(item, **given)  # type: ignore[arg-type]
        assert ledger.entries[-1].slot == slot
    assert used(ledger) == [slot.count for slot in ledger.slots]
    assert ledger.spent == {"mu2": F(1, 10), "delta": 0, "distance": F("1e-20")}
    for item in (PrivacyCost("1/5"), PLD.discrete_laplace("1/10"), pair):
        with pytest.raises(PrivacyBudgetError, match=r"needs a slot that dominates it, and all of them \(slots \["):
            ledger.spend(item)
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.to_json() == ledger.to_json()
    assert again.entries == ledger.entries
    assert (again.slots, again.spent, repr(again)) == (ledger.slots, ledger.spent, repr(ledger))


def test_deltas_are_a_slots_own_or_beside_it() -> None:
    ledger = with_slots((PLD.pure("1/10"), 1), (PLD.pure("1/10", "1e-8"), 1), added_delta="1e-8", gaussian=0)
    ledger.spend(PrivacyCost("1/10", "1e-8"))
    assert (ledger.entries[-1].slot, ledger.spent["delta"]) == (1, 0)
    ledger.spend(PrivacyCost("1/10", "1e-8"))
    assert (ledger.entries[-1].slot, ledger.spent["delta"]) == (0, F("1e-8"))
    refused = with_slots((PLD.pure("1/10"), 1), gaussian=0)
    with pytest.raises(PrivacyBudgetError, match="delta 1e-8"):
        refused.spend(PrivacyCost("1/10", "1e-8"))
    # What is private at epsilon 0 needs no slot, but its delta.
    some = with_slots(added_delta="1e-8", gaussian=0)
    some.spend(PrivacyCost(0, "1e-8"))
    assert some.spent == {"mu2": 0, "delta": F("1e-8"), "distance": 0}


def test_the_distance_of_a_slot_is_charged_when_it_is_taken() -> None:
    far = PLD.pure("1/10").within("1e-9")
    ledger = with_slots((far, 2), (CHOICE, 1), distance="3e-9", gaussian=0)
    ledger.spend(PrivacyCost("1/10"))
    assert ledger.spent["distance"] == F("1e-9")
    ledger.spend(PLD.pure("1/20").within("2e-9"), slot=0)
    assert ledger.spent["distance"] == F("3e-9")
    assert not ledger.can_spend(PLD.bounded_range("0.08").within("1e-12"))
    assert ledger.can_spend(PLD.bounded_range("0.08"))
    assert with_slots((far, 2), gaussian=0).limits["distance"] == with_slots(gaussian=0).limits["distance"] + F("2e-9")  # type: ignore[operator]
    # The limit of distances is in the promise; what slots say of theirs is not counted twice.
    with pytest.raises(ValueError, match="slots and gaussian"):
        PrivacyLedger("1/10", "1e-6", "exact", slots=[(far, 1), (PLD.pure("1e-6"), 1)], gaussian=0, distance="4e-7")
    assert PrivacyLedger("1/10", "1e-6", "exact", slots=[(far, 1)], gaussian=0, distance="4e-7").slots[0].loss == far


def test_a_pure_slot_is_for_whatever_is_so_private() -> None:
    """The discrete Laplace noise of rate 1/10 is 1/5-DP at shift 2; the pair has losses of ln(4/3) and ln(3/2)."""
    ledger = PrivacyLedger(1, "1e-6", "exact", slots=[(PLD.pure("1/5"), 1), (PLD.pure(LogRatio(3, 2)), 1)], gaussian=0)
    assert ledger.can_spend(PLD.discrete_laplace("1/10", 2), slot=0)
    pair = PLD.from_pmfs(["2/3", "1/3"], ["1/2", "1/2"])
    assert ledger.can_spend(pair, slot=1)
    for loss, slot in ((PLD.discrete_laplace("1/10", 3), 0), (pair, 0), (PLD.gaussian(10), 1)):
        with pytest.raises(ValueError, match="is not known to dominate"):
            ledger.can_spend(loss, slot=slot)


def test_bounded_ranges_go_to_the_gaussian_budget_where_no_slot_is_left() -> None:
    ledger = with_slots((CHOICE, 1))
    for _ in range(2):
        ledger.spend(PrivacyCost(bounded_range="0.08"))
    assert [entry.slot for entry in ledger.entries] == [0, None]
    assert ledger.spent["mu2"] == bounded_range_to_mu2("0.08")
    with pytest.raises(PrivacyBudgetError):
        ledger.spend(PrivacyCost(bounded_range="0.3"))


def test_a_slot_can_be_named() -> None:
    ledger = with_slots((PLD.pure("1/10"), 1), (CHOICE, 1), (PLD.gaussian(20), 1))
    ledger.spend(PrivacyCost("1/25"), slot=1)
    ledger.spend(PrivacyCost(mu2="1/400"), slot=2)
    assert used(ledger) == [0, 1, 1]
    assert ledger.spent["mu2"] == 0
    with pytest.raises(PrivacyBudgetError, match=r"slots \[1\]"):
        ledger.spend(PrivacyCost("1/25"), slot=1)
    with pytest.raises(ValueError, match="slot 0 is not known to dominate"):
        ledger.spend(PrivacyCost("1/5"), slot=0)
    assert not ledger.can_spend(PrivacyCost("1/25"), slot=1)
    assert ledger.can_spend(PrivacyCost("1/25"), slot=0)
    for slot in (3, -1, True, "0", 1.0):
        with pytest.raises(ValueError, match="slot must be the place of one of 3 kinds"):
            ledger.spend(PrivacyCost("1/25"), slot=slot)  # type: ignore[arg-type]
    assert isinstance(ledger.slots[0], LedgerSlot)


def test_what_would_need_more_than_is_proved_is_refused() -> None:
    ledger = with_slots((CHOICE, 1))
    for cost, said in (
        (PrivacyCost(rho="1/1000"), "in rho only.*mu2.*zcdp"),
        (PrivacyCost("1/5"), "no slot is known to dominate.*slots=.*none can be added later.*zcdp"),
        (PrivacyCost("1/25", "1e-9"), "needs"),
        (PLD.pure("1/5"), "no slot is known to dominate"),
        (PLD.bounded_range("0.08").self_compose(2), "not one release"),
        (PLD.pure("1/10").compose(PLD.gaussian(20)), "not one release"),
    ):
        with pytest.raises(ValueError, match=said):
            ledger.spend(cost)
    with pytest.raises(AttributeError):
        ledger.slots = ()  # type: ignore[misc]
    assert ledger.entries == ()
    for other in (PrivacyLedger(1, "1e-6"), PrivacyLedger(1, "1e-6", "zcdp")):
        with pytest.raises(TypeError, match="PrivacyLossDistribution is for composition='exact'"):
            other.spend(CHOICE)
        with pytest.raises(ValueError, match="slot is for composition='exact'"):
            other.spend(PrivacyCost("1/100"), slot=0)


def test_a_mu2_is_charged_by_all_ledgers() -> None:
    noise = PrivacyCost(mu2="1/50", distance="1e-20")
    with pytest.raises(ValueError, match="zcdp_epsilon"):
        PrivacyLedger(1, "1e-6").spend(noise)
    ledger = PrivacyLedger(1, "1e-6", "zcdp")
    ledger.spend(noise)
    assert (ledger.spent["rho"], ledger.spent["distance"]) == (F(1, 100), F("1e-20"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"delta": 0}, "delta must be above added_delta"),
        ({"delta": "1e-6", "added_delta": "1e-6"}, "delta must be above added_delta"),
        ({"delta": "1e-6", "added_delta": "1e-5"}, "delta must be at least added_delta"),
        ({"delta": "1e-6", "distance": "1e-6"}, "delta must be above"),
        ({"delta": "1e-6", "distance": "1e-6", "gaussian": 0}, "delta must be at least"),
        ({"delta": "1e-6", "gaussian": -1}, "gaussian"),
        ({"delta": "1e-6", "gaussian": "all"}, "gaussian"),
        ({"delta": "1e-6", "gaussian": None}, "gaussian"),
        ({"delta": "1e-6", "slots": CHOICE}, "slots must be"),
        ({"delta": "1e-6", "slots": [CHOICE]}, "slots must be"),
        ({"delta": "1e-6", "slots": [(1, CHOICE)]}, "slots must be"),
        ({"delta": "1e-6", "slots": [(CHOICE, 0)]}, "count"),
        ({"delta": "1e-6", "slots": [(CHOICE.self_compose(2), 1)]}, "not one release"),
        ({"delta": "1e-6", "slots": [(PLD.pure(1, neighbors="add-remove"), 1)]}, "neighbors"),
        ({"delta": "1e-6", "slots": [(PLD.pure(2), 1)], "gaussian": 0}, "slots and gaussian"),
        ({"delta": "1e-6", "slots": [(PLD.pure(2), 1)]}, "slots"),
        ({"delta": "1e-6", "composition": "zcdp", "slots": [(CHOICE, 1)]}, "slots and gaussian are for"),
        ({"delta": "1e-6", "composition": "basic", "gaussian": 0}, "slots and gaussian are for"),
        ({"delta": "1e-6", "slots": [(PLD.pure(F(1, k)), 1) for k in range(1, 1100)]}, "at most 1024 kinds"),
    ],
)
def test_bad_parameters_are_named(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        PrivacyLedger(1, **({"composition": "exact"} | arguments))


def test_json_that_was_changed_is_refused() -> None:
    ledger = PrivacyLedger(1, "1e-6", "exact", slots=[(CHOICE, 1), (PLD.pure("1/20"), 2)], gaussian="1/50")
    ledger.spend(PrivacyCost(bounded_range="0.08"), "a choice")
    ledger.spend(PrivacyCost(mu2="1/100"), "noise")
    ledger.spend(PLD.pure("1/30").within("1e-20"), "a count")
    content = json.loads(ledger.to_json())
    assert PrivacyLedger.from_json(json.dumps(content)).to_json() == ledger.to_json()
    first, second, third = content["entries"]
    choice, counts = content["slots"]
    for change in (
        {"limits": content["limits"] | {"mu2": "1/17"}},
        {"limits": content["limits"] | {"mu2": "ln(3/1)"}},
        {"limits": content["limits"] | {"distance": "1/1000"}},
        {"limits": content["limits"] | {"delta": "1/1000"}},
        {"limits": {"mu2": "1/50"}},
        {"epsilon": "1/10"},
        {"delta": "1/1000000000000"},
        {"composition": "zcdp"},
        {"composition": "optimal"},
        {"neighbors": "household"},
        {"schema_version": 2},
        {"slots": []},
        {"slots": [choice, counts | {"count": 50}]},
        {"slots": [choice | {"used": 0}, counts]},
        {"slots": [choice, counts | {"used": 2}]},
        {"slots": [choice | {"count": "1"}, counts]},
        {"slots": [choice | {"loss": said(PLD.bounded_range(10))}, counts]},
        {"slots": [choice | {"loss": said(PLD.bounded_range("1/20"))}, counts]},
        {"slots": [choice | {"loss": said(PLD.bounded_range("0.08", neighbors="add-remove"))}, counts]},
        {"slots": [choice | {"loss": said(CHOICE.self_compose(2))}, counts]},
        {"slots": [choice | {"loss": choice["loss"] | {"distance": "1/1"}}, counts]},
        {"slots": [choice | {"loss": choice["loss"] | {"releases": []}}, counts]},
        {"slots": [choice | {"loss": {}}, counts]},
        {"slots": [choice | {"loss": None}, counts]},
        {"entries": [first, first, second, third]},
        {"entries": [first, third, third, third]},
        {"entries": [second, third]},
        {"entries": [first | {"slot": None}, second, third]},
        {"entries": [first | {"slot": 1}, second, third]},
        {"entries": [first | {"slot": 7}, second, third]},
        {"entries": [first | {"slot": "0"}, second, third]},
        {"entries": [first, second | {"slot": 1}, third]},
        {"entries": [first, second, third | {"loss": said(PLD.pure("1/10"))}]},
        {"entries": [first, second, third | {"loss": said(PLD.pure("1/30").within("1e-3"))}]},
        {"entries": [first, second, third | {"loss": said(PLD.pure("1/30", neighbors="add-remove"))}]},
        {"entries": [first, second, third | {"loss": []}]},
        {"entries": [first, second, {"name": "x", "slot": 1}]},
        {"entries": [first, second] * 3 + [third]},
    ):
        with pytest.raises(ValueError, match=r"ledger|must be|need|slot|gaussian|cannot be spent"):
            PrivacyLedger.from_json(json.dumps(content | change))


def test_json_has_slots_of_all_kinds() -> None:
    kinds = [
        PLD.pure(LogRatio(3), "1/1000"),
        PLD.bounded_range(LogRatio(3)),
        PLD.discrete_laplace("1/3", 2),
        PLD.discrete_gaussian("5/2", 2),
        PLD.gaussian(3),
        PLD.gaussian(3, neighbors="add-remove").poisson("1/10"),
        PLD.gaussian(3, neighbors="replace").without_replacement(2, 20),
        PLD.pure(1).within("1e-40"),
        PLD.from_pmfs(["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"]),
    ]
    for neighbors in ("replace", "add-remove"):
        slots = [
            (PLD._of(kind._parts, neighbors, kind.distance), 2)
            for kind in kinds
            if kind != kinds[5 if neighbors == "replace" else 6]
        ]
        ledger = PrivacyLedger(60, "1/100", "exact", slots=slots, gaussian=0, neighbors=neighbors)
        for loss, _ in slots:
            ledger.spend(loss)
        again = PrivacyLedger.from_json(ledger.to_json())
        assert again.to_json() == ledger.to_json()
        assert (again.entries, again.slots) == (ledger.entries, ledger.slots)


@pytest.mark.serial
def test_threads_take_each_slot_once() -> None:
    ledger = with_slots((CHOICE, 3), (PLD.pure("1/100"), 5), gaussian="1/100")
    costs = [PrivacyCost(bounded_range="0.08"), PrivacyCost("1/100"), PrivacyCost(mu2="1/1000")]
    allowed: list[int] = []
    start = threading.Barrier(8)

    def spend() -> None:
        start.wait()
        for _ in range(6):
            for kind, cost in enumerate(costs):
                try:
                    ledger.spend(cost, slot=kind if kind < 2 else None)
                except PrivacyBudgetError:
                    continue
                allowed.append(kind)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [allowed.count(kind) for kind in range(3)] == [3, 5, 10]
    assert used(ledger) == [3, 5]
    assert ledger.remaining()["mu2"] == 0
    assert len(ledger.entries) == 18


# --- fits


def test_a_fit_takes_a_slot_and_what_is_refused_takes_none() -> None:
    ledger = with_slots((PLD.pure("1/20"), 1), (PLD.pure("1/10"), 2))
    fitted(ledger)
    with pytest.raises(ValueError, match="slot 0 is not known to dominate"):
        fitted(ledger, slot=0)
    fitted(ledger, slot=1)
    with pytest.raises(PrivacyBudgetError, match=r"all of them \(slots \[1\]\) are used"):
        fitted(ledger)
    assert used(ledger) == [0, 2]
    with charging(model := classifier(epsilon="1/20"), ledger.spend):
        model.fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)
    assert used(ledger) == [1, 2]
    assert PrivacyLedger(1, "1e-6", "zcdp").fit(classifier(), HOURS[:, None], HOURS > 5, groups=PEOPLE) is not None


class During(ThresholdClassifier):
    """Does something between its charge and its end."""

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> During:
        ThresholdClassifier.fit(self, X, y, groups)
        self.meanwhile()
        return self


def during(epsilon: str, meanwhile: Any) -> During:
    model = During(epsilon=epsilon, domain_size=10, m=4, classes=(False, True))
    model.meanwhile = meanwhile  # type: ignore[attr-defined]
    return model


def test_a_fit_that_takes_a_slot_is_alone() -> None:
    ledger = with_slots((PLD.pure("1/10"), 4))
    refused: list[str] = []

    def other() -> None:
        for spends in (lambda: ledger.spend(PrivacyCost(mu2="1/1000"), "noise"), lambda: fitted(ledger)):
            with pytest.raises(RuntimeError, match="a fit that has taken a slot has not ended"):
                spends()
            refused.append("inside")
        assert not ledger.can_spend(PrivacyCost(mu2="1/1000"))

    def elsewhere() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    for meanwhile in (other, elsewhere):
        fitted(ledger, during("1/10", meanwhile))
    assert refused == ["inside"] * 4
    assert used(ledger) == [2]
    # It is over when the fit has ended, also in an error.
    assert ledger.can_spend(PrivacyCost(mu2="1/1000"))

    def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fitted(ledger, during("1/10", fails))
    fitted(ledger)
    assert used(ledger) == [4]


def test_no_fit_takes_a_slot_while_another_has_not_ended() -> None:
    ledger = with_slots((PLD.pure("1/10"), 1), added_delta="1e-8")
    seen: list[str] = []

    def inside() -> None:
        other = threading.Thread(target=lambda: seen.append(attempt()))
        other.start()
        other.join()

    def attempt() -> str:
        try:
            fitted(ledger)
        except RuntimeError as error:
            return str(error)
        return "fitted"

    free = during("1/10", inside)
    # A fit with a mu2 stands here for one of many rounds, between which others may be released.
    record = PrivacyRecord(PrivacyCost(mu2="1/1000"), "user", {"all": F(1, 1000)}, ())
    with ledger._charged(free, "fit", "noise"):
        for charge in charges_of(free):
            charge(record)
        inside()
        # Nor does anything else.
        assert not ledger.can_spend(PrivacyCost("1/10"))
        assert ledger.can_spend(PrivacyCost(mu2="1/1000"))
        with pytest.raises(RuntimeError, match="while other fits have not ended"):
            ledger.spend(PrivacyCost("1/10"))
    assert len(seen) == 1
    assert "while other fits have not ended" in seen[0]
    assert used(ledger) == [0]
    assert ledger.can_spend(PrivacyCost("1/10"))
    assert attempt() == "fitted"


def test_what_tells_nothing_is_free_however_it_is_said() -> None:
    ledger = with_slots((PLD.pure("1/10"), 1))
    for nothing in (PrivacyCost(0), PrivacyCost(mu2=0), PrivacyCost(bounded_range=0)):
        ledger.spend(nothing)
    assert used(ledger) == [0]
    assert not any(ledger.spent.values())


def test_a_session_is_no_slot() -> None:
    queries = WinsorizedQueries(epsilon="1/10", n_queries=2, max_norm=10, m=4)
    ledger = with_slots((PLD.pure("1/10"), 1), added_delta="1e-8")
    with pytest.raises(ValueError, match="several releases"):
        ledger.open_session(queries, HOURS[:, None], groups=PEOPLE)
    with pytest.raises(ValueError, match="several releases"):
        ledger.spend(queries.release_plan(n_users=30, n_features=1))
    with queries.open(HOURS[:, None], groups=PEOPLE) as session, pytest.raises(ValueError, match="several releases"):
        ledger.spend(session)
    assert ledger.entries == ()


def test_the_table_has_slots() -> None:
    ledger = with_slots((CHOICE, 2), distance="1e-20")
    ledger.spend(PrivacyCost(bounded_range="0.08"), "a choice")
    ledger.spend(PrivacyCost(mu2="1/100"), "noise")
    assert repr(ledger).splitlines() == [
        "PrivacyLedger(epsilon=1, delta=1e-06, composition='exact', unit='user', neighbors='replace')",
        "  release         mu2      delta   distance",
        "  a choice          0          0          0   in slot 0",
        "  noise          0.01          0          0",
        "  spent          0.01          0          0",
        "  limit          0.02          0      1e-20",
        "  slot 0: 1 of 2 used, bounded range 0.08",
    ]
    assert [row["slot"] for row in ledger._rows()] == [0, None, None, None]
    shown = ledger._sections()[0].text()
    assert "bounded range 0.08" in shown
    assert "in slot" not in shown


def test_a_delta_beside_mu2_is_counted_and_kept() -> None:
    ledger = PrivacyLedger(1, "1e-5", "exact", added_delta="2e-6")
    cost = PrivacyCost(mu2="1/100", added_delta="1e-6", distance="1e-12")
    assert cost.zcdp() == (F(1, 200), F(1, 10**6), F(1, 10**12))
    ledger.spend(cost, "keys")
    assert ledger.entries[0].charged == {"mu2": F(1, 100), "delta": F(1, 10**6), "distance": F(1, 10**12)}
    again = PrivacyLedger.from_json(ledger.to_json())
    assert again.spent == ledger.spent
    again.spend(cost)
    with pytest.raises(PrivacyBudgetError, match="delta"):
        again.spend(PrivacyCost(mu2="1/1000", added_delta="1e-9"))
    # In rho it is approximate zCDP; in epsilon nothing is known.
    zcdp = PrivacyLedger(1, "1e-5", "zcdp", added_delta="2e-6")
    zcdp.spend(cost)
    assert zcdp.spent["delta"] == F(1, 10**6)
    with pytest.raises(ValueError, match="counts epsilon and delta"):
        PrivacyLedger(1, "1e-5").spend(cost)
    # A slot takes the Gaussian part, and the delta stays.
    slot = PrivacyLedger(1, "1e-5", "exact", slots=[(PLD.gaussian(10), 1)], gaussian=0, added_delta="2e-6")
    slot.spend(cost)
    assert (slot.entries[0].slot, slot.spent["delta"]) == (0, F(1, 10**6))


def test_costs_with_a_delta_beside_mu2_add_up() -> None:
    cost = PrivacyCost(mu2="1/100", added_delta="1e-6", distance="1e-12")
    # What is best in rho has no delta; the sum of mu2 has one all the same.
    both = PrivacyCost("1/1000", mu2="1/100", added_delta="1e-6", distance="1e-12")
    assert both.zcdp() == (F(1, 2 * 10**6), 0, 0)
    together = compose_basic(cost, both)
    assert (together.mu2, together.added_delta, together.distance) == (F(1, 50), F(2, 10**6), F(2, 10**12))
    with pytest.raises(ValueError, match="without added_delta"):
        PLD.from_mechanism(cost)
    # The delta is never lost: what has an epsilon as well is taken by that.
    loss = PLD.from_mechanism(PrivacyCost(1, "1e-5", mu2="1/100", added_delta="1e-6"))
    assert loss.dominates(PLD.pure(1, "1e-5"))
