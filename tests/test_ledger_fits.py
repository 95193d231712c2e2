"""What fits and sessions charge a ledger with, before anything is drawn."""

from __future__ import annotations

import os
import threading
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ledger_cases import HOURS, PEOPLE, classifier, fitted
from userdp.accounting import (
    PrivacyCost,
    PrivacyLedger,
    zcdp_delta,
)
from userdp.accounting.budget_hook import charging
from userdp.exceptions import PrivacyBudgetError
from userdp.learners import ThresholdClassifier
from userdp.means import WinsorizedMean, WinsorizedQueries
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


def test_fit_asks_before_anything_is_drawn() -> None:
    ledger = PrivacyLedger(1)
    model = fitted(ledger)
    assert model.privacy_.cost == PrivacyCost("1/2")
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
        WinsorizedMean(epsilon=1, delta="1e-7", bound=1, m=4, method="gaussian"),
        WinsorizedMean(epsilon=1, bound=1, m=4, private_radius=True),
        ClippedGradientDescent(epsilon=1, delta="1e-7", loss=SquaredLoss(), constraint=L2Ball(1), bound=10, m=4),
        WinsorizedGradientDescent(epsilon=1, loss=SquaredLoss(), constraint=L2Ball(1), bound=10, m=4),
        PhasedERM(epsilon=1, delta="1e-7", loss=SquaredLoss(), constraint=L2Ball(1), bound=10, m=4),
        FiniteMinimizer(epsilon=1, loss_bounds=(0, 10), m=4),
        UserLevelLogisticRegression(epsilon=1, delta="1e-7", feature_bound=10, m=4, classes=(0, 1)),
        UserLevelLinearRegression(
            epsilon=1, delta="1e-7", feature_bound=10, m=4, target_bounds=(0, 1), solver="winsorized"
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
    if cost.rho is not None and cost.delta:
        assert zcdp_delta(cost.rho, 1, distance=cost.distance) <= cost.delta
    before = {name: np.array(getattr(model, name)) for name in model.released}
    with pytest.raises(PrivacyBudgetError):
        ledger.fit(model, HOURS[:, None], groups=PEOPLE, **targets)
    assert all(np.array_equal(getattr(model, name), value) for name, value in before.items())
    assert len(ledger.entries) == 1


def test_sessions_are_charged_for_all_questions_when_they_open() -> None:
    ledger = PrivacyLedger("3/2")
    queries = WinsorizedQueries(epsilon=1, n_queries=3, bound=10, m=4)
    with pytest.raises(TypeError, match="a method fit"):
        ledger.fit(queries, HOURS[:, None], groups=PEOPLE)
    with pytest.raises(TypeError, match="a method open"):
        ledger.open(classifier(), HOURS[:, None], groups=PEOPLE)  # type: ignore[arg-type]
    with ledger.open(queries, HOURS[:, None], groups=PEOPLE, name="questions") as session:
        assert [(entry.name, entry.cost) for entry in ledger.entries] == [("questions", session.privacy_.cost)]
        session.ask(lambda rows: rows.mean())
    with pytest.raises(PrivacyBudgetError):
        ledger.open(queries, HOURS[:, None], groups=PEOPLE)
    assert ledger.remaining()["epsilon"] == F(1, 2)


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
    model = WinsorizedGradientDescent(epsilon=1, loss=loss, constraint=L2Ball(1), bound=10, m=4)
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
    with charging(outer.spend):
        fitted(inner)
    assert outer.spent["epsilon"] == inner.spent["epsilon"] == F(1, 2)
    with charging(PrivacyLedger("1/4").spend), pytest.raises(PrivacyBudgetError):
        classifier().fit(HOURS[:, None], HOURS > 5, groups=PEOPLE)


def test_fit_refuses_what_is_not_private_or_protects_others() -> None:
    ledger = PrivacyLedger(1)
    with pytest.raises(ValueError, match="not private: random_state"):
        fitted(ledger, random_state=1)
    with pytest.raises(ValueError, match="not private: classes=None"):
        fitted(ledger, classes=None)
    with pytest.raises(ValueError, match="unit: the release protects 'record'"):
        ledger.fit(classifier(m=None, require_groups=False), HOURS[:, None], HOURS > 5)
    with pytest.raises(TypeError, match="estimator must be one of this package's"):
        ledger.fit(object(), HOURS[:, None])
    assert ledger.spent["epsilon"] == 0


def test_an_error_before_the_draw_costs_nothing_and_one_after_it_costs_all(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = PrivacyLedger(1)
    with pytest.raises(ValueError, match="groups"):
        ledger.fit(classifier(), HOURS[:, None], HOURS > 5, groups=PEOPLE[:-1])
    assert ledger.entries == ()

    def fails(self: Any, outcome: Any) -> None:
        raise RuntimeError("after the draw")

    monkeypatch.setattr(ThresholdClassifier, "_accept", fails)
    with pytest.raises(RuntimeError, match="after the draw"):
        fitted(ledger)
    assert ledger.spent["epsilon"] == F(1, 2)
