"""Users, records and fits for tests of ledgers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from userdp.accounting import PrivacyCost, PrivacyLedger
from userdp.estimators import PrivacyRecord
from userdp.learners import ThresholdClassifier

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
