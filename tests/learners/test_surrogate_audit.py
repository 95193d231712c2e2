"""The surrogate score needs its sensitivity of 2: published worst ratios, and the audit of a smaller one."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from userdp import LogRatio
from userdp.audit import audit_user_level
from userdp.concepts import FiniteClass
from userdp.estimators import as_finite_algorithm
from userdp.learners import AgnosticPACClassifier

CASES = json.loads((Path(__file__).parents[1] / "data" / "agnostic_threshold_cases.json").read_text())["cases"]
MIN_SUM = [
    pytest.param(case["input"]["n"], case["expect"], id=case["id"])
    for case in CASES
    if case["kind"] == "exact_epsilon"
    and case["input"]["mechanism"].startswith("EM min-sum")
    and case["input"]["n"] > 1
]


def audit(n_users: int, epsilon: Any) -> Any:
    """Weights 2**-K for C = {00, 11}, H = {00, 01}: e**(-epsilon K / (2 Delta)) with Delta = 2 and epsilon = ln 16."""
    learner = AgnosticPACClassifier(
        epsilon=LogRatio(16),
        concepts=FiniteClass([[0, 0], [1, 1]]),
        representation=FiniteClass([[0, 0], [0, 1]]),
        method="surrogate",
        m=1,
        mechanism="exponential",
        classes=(0, 1),
    )
    universe = [((x,), y) for x in (0, 1) for y in (0, 1)]
    return audit_user_level(
        as_finite_algorithm(learner), universe=universe, n_users=n_users, n_examples=1, epsilon=epsilon, delta=0
    )


@pytest.mark.parametrize(("n_users", "expected"), MIN_SUM)
def test_published_worst_ratios(n_users: int, expected: dict[str, Any]) -> None:
    report = audit(n_users, LogRatio(16))
    print(f"n = {n_users}: worst delta {report.worst_delta.upper}, epsilon {report.epsilon}")
    assert report.holds
    worst = Fraction(expected["worst_ratio_replace"])
    # Integer weights and the rate are within 1e-9 of the ideal ones.
    assert report.epsilon.lower == pytest.approx(float(LogRatio(worst.numerator, worst.denominator)), abs=1e-8)


def test_a_sensitivity_of_1_is_found() -> None:
    # With the sensitivity 1 these weights would be sold as ln 4.
    assert audit(2, LogRatio(4)).holds
    failed = audit(3, LogRatio(4))
    print(f"sold as ln 4: worst delta {failed.worst_delta.lower}")
    assert not failed.holds
