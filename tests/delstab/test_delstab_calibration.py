"""Calibrations of DelStab: published parameters, and what the privacy proofs start from, in fractions."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle import delstab as reference
from oracle.divergence import exp_bounds
from userdp import LogRatio
from userdp.algorithms import SymmetricAlgorithm
from userdp.delstab import DelStab
from userdp.delstab.delstab import Calibration, calibrate

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "delstab_cases.json").read_text(encoding="utf-8"))["cases"]
CALIBRATIONS: tuple[Any, ...] = ("paper", "tight", "optimal")
SYMMETRIC = SymmetricAlgorithm((0, 1), lambda kept: [1, 0])


@pytest.mark.parametrize("case", [c for c in CASES if c["kind"] == "delstab_params"], ids=lambda case: case["id"])
def test_published_parameters(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    ratio = F(expected["exp_eps"])
    epsilon = LogRatio(ratio.numerator, ratio.denominator)
    delstab = DelStab(SYMMETRIC, epsilon=epsilon, delta=given["delta"], calibration="paper")
    inner = F(given["exp_eps_bar"])
    assert delstab.epsilon_bar == LogRatio(inner.numerator, inner.denominator)
    assert delstab.delta_bar == F(expected["delta_bar"])
    assert (delstab.kappa, delstab.deletions) == (expected["kappa"], expected["deletions"])
    assert delstab.min_users == expected["deletions"] + 1


DELETIONS = {
    (1, "1e-2"): (80, 24),
    (1, "1e-4"): (136, 46),
    (1, "1e-6"): (192, 68),
    (2, "1e-2"): (44, 14),
    (2, "1e-4"): (72, 24),
    (2, "1e-6"): (100, 36),
    (4, "1e-2"): (28, 8),
    (4, "1e-4"): (44, 14),
    (4, "1e-6"): (56, 20),
    (8, "1e-2"): (20, 4),
    (8, "1e-4"): (28, 8),
    (8, "1e-6"): (36, 12),
}


@pytest.mark.parametrize(("promise", "deletions"), DELETIONS.items(), ids=str)
def test_deletions(promise: tuple[int, str], deletions: tuple[int, int]) -> None:
    epsilon, delta = promise
    made = [calibrate(name, epsilon, delta) for name in CALIBRATIONS]
    assert (made[0].deletions, made[2].deletions) == deletions
    assert made[2].deletions < made[1].deletions <= made[0].deletions


def multipliers(calibration: Calibration) -> Iterator[tuple[Fraction, Fraction]]:
    """Enclosures of e^epsilon_T, e^epsilon_L and e^epsilon, by the reference."""
    for level in (calibration.noise_level, calibration.inner_level, calibration.level):
        low, high = exp_bounds(level.exponent, 400)
        yield level.ratio * low, level.ratio * high


@pytest.mark.parametrize(
    ("name", "inner_budget"),
    [
        *((name, None) for name in CALIBRATIONS),
        *(("optimal", budget) for budget in (("1/100", "1/10"), ("1/4", "9/10"), ("3/7", "1/2"))),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "epsilon", [1, 0.1, "7/3", 20, LogRatio(8000, 1), LogRatio(3, 1), LogRatio(9, 8), LogRatio(10**9, 7)], ids=str
)
@pytest.mark.parametrize("delta", ["1e-6", "0.3", 2.0**-40, "0.999"])
def test_what_the_proofs_start_from(name: Any, inner_budget: Any, epsilon: Any, delta: Any) -> None:
    """In fractions, with the reference's enclosures of e^epsilon: nothing here trusts the constructor's own checks."""
    made = calibrate(name, epsilon, delta, inner_budget)
    (noise, noise_high), (_, inner), _ = multipliers(made)
    assert made.noise_level.exponent + 2 * made.inner_level.exponent <= made.level.exponent
    assert made.noise_level.ratio * made.inner_level.ratio**2 <= made.level.ratio
    assert (1 + inner) * made.inner_delta + made.noise_delta <= F(delta)
    assert made.deletions >= 2 * made.largest
    refusal = [F(numerator, 2**128) for numerator in made.refusal]
    assert refusal[0] == 0
    assert refusal[-1] == 1
    if name == "optimal":
        for before, after in itertools.pairwise(refusal):
            assert before <= after <= noise * before + made.noise_delta
            assert 1 - before <= noise * (1 - after) + made.noise_delta
        if len(refusal) < 30:  # the exact recursion has long fractions
            best = reference.refusal_probabilities(noise_high, made.noise_delta)
            assert len(best) in (len(refusal), len(refusal) - 1)
            assert all(q <= ideal for q, ideal in zip(refusal, best, strict=False))
            assert all(ideal - q <= F(1, 2**60) for q, ideal in zip(refusal, best[:-1], strict=False))
    else:
        masses = [after - before for before, after in itertools.pairwise(refusal)]
        assert len(masses) == 2 * (made.kappa or 0) + 1
        assert max(masses[0], masses[-1]) <= made.noise_delta
        assert all(0 < a <= noise * b and b <= noise * a for a, b in itertools.pairwise(masses))


def test_levels_that_have_roots_are_exact() -> None:
    assert calibrate("tight", LogRatio(8000, 27), "0.01").inner_level.ratio == F(20, 3)
    made = calibrate("optimal", LogRatio(2**10, 1), "0.01")
    assert (made.inner_level.ratio, made.noise_level.ratio) == (F(2), F(2**8))
    assert made.inner_delta == F(1, 200) / 3
    third = calibrate("paper", LogRatio(2, 1), "0.01").inner_level.ratio
    assert 2 - F(1, 2**60) < third**3 < 2
    assert calibrate("paper", F(1, 10), "0.01").inner_level.exponent == F(1, 30)
