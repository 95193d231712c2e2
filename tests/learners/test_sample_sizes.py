"""Numbers of users from the theorems, beside published cases and exact arithmetic."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from userdp.learners import UniformConvergence, uniform_convergence_users

CASES = json.loads((Path(__file__).parents[1] / "data" / "agnostic_threshold_cases.json").read_text())["cases"]
SIZES = [case for case in CASES if case["kind"] == "sample_size"]


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case["id"])
def test_published_sizes(case: Any) -> None:
    given, expected = case["input"], case["expect"]
    found = uniform_convergence_users(given["vc"], m=given["m"], alpha=given["alpha"], beta=given["beta"])
    assert found == UniformConvergence(
        single_row=expected["lemma31_m1"],
        agnostic=expected["lemma43"],
        disagreement=expected["lemma44"],
        sharper=expected["tight_agnostic_sauer"],
    )


@pytest.mark.parametrize("d", [0, 1, 5, 40])
@pytest.mark.parametrize("m", [1, 16, 10**6])
@pytest.mark.parametrize(("alpha", "beta"), [("0.1", "0.05"), ("0.01", "1e-9"), ("0.9", "0.5")])
def test_the_least_size(d: int, m: int, alpha: str, beta: str) -> None:
    found = uniform_convergence_users(d, m=m, alpha=float(alpha), beta=float(beta)).sharper

    def enough(n: int) -> bool:
        with localcontext() as context:
            context.prec = 60
            a, b, size = Decimal(float(alpha)), Decimal(float(beta)), Decimal(2 * n * m)
            growth = Decimal(0)
            if d:
                growth = size * Decimal(2).ln() if size < d else d * (1 + (size / d).ln())
            return Decimal(4).ln() + growth - a * a * n / (16 * (1 + a / 2)) <= (b / 2).ln()

    assert enough(found)
    assert not enough(found - 1)
    assert all(enough(found * k) for k in (2, 3, 10, 1000))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1}, "alpha"),
        ({"beta": 1.5}, "beta"),
        ({"beta": Fraction(0)}, "beta"),
        ({"m": 0}, "m must be at least 1"),
        ({"vc_dimension": -1}, "vc_dimension must be at least 0"),
    ],
)
def test_bad_arguments(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"vc_dimension": 1, "m": 1, "alpha": 0.1, "beta": 0.1} | changed
    with pytest.raises(ValueError, match=message):
        uniform_convergence_users(given.pop("vc_dimension"), **given)
