"""Separations and tails of binomials against fractions, decimals and known cases."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import thresholds as oracle
from userdp import _core
from userdp.learners import best_separating_threshold

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "agnostic_threshold_cases.json").read_text())["cases"]
TOLERANCE = 1e-12


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expect"], id=case["id"]) for case in CASES if case["kind"] == kind]


def check_exactly(m: int, p: Fraction, q: Fraction) -> bool:
    """Whether there was a tie."""
    best, gap, tail_p = oracle.separation(m, p, q)
    threshold, found, found_p = _core.separating_threshold(m, float(p), float(q))
    assert threshold == best[0]
    assert abs(F(found) - gap) <= TOLERANCE
    assert abs(F(found_p) - tail_p) <= TOLERANCE
    assert best_separating_threshold(m, p, q) == (threshold, found)
    return len(best) > 1


@pytest.mark.parametrize(("given", "expected"), cases("best_t"))
def test_known_separations(given: dict[str, Any], expected: dict[str, Any]) -> None:
    threshold, gap, tail_p = _core.separating_threshold(given["m"], float(F(given["p"])), float(F(given["q"])))
    assert threshold == expected["t_smallest"]
    assert gap == pytest.approx(float(F(expected["gap"])), abs=TOLERANCE)
    assert tail_p == pytest.approx(float(F(expected["sf_p"])), abs=TOLERANCE)
    assert best_separating_threshold(given["m"], given["p"], given["q"]) == (threshold, gap)


@pytest.mark.parametrize(("given", "expected"), cases("best_t_big"))
def test_known_separations_of_many_trials(given: dict[str, Any], expected: dict[str, Any]) -> None:
    threshold, gap, tail_p = _core.separating_threshold(given["m"], float(F(given["p"])), float(F(given["q"])))
    assert threshold == expected["t_smallest"]
    assert abs(Decimal(gap) - Decimal(expected["gap"])) <= Decimal(TOLERANCE)
    assert abs(Decimal(tail_p) - Decimal(expected["sf_p"])) <= Decimal(TOLERANCE)


def test_separations_of_all_twelfths() -> None:
    ties = 0
    for m in [*range(1, 13), 20, 36]:
        for a in range(12):
            for b in range(a + 1, 13):
                ties += check_exactly(m, F(a, 12), F(b, 12))
    assert ties > 50


def test_best_gaps_are_distances() -> None:
    for m in (1, 2, 5, 20):
        for a, b in ((0, 1), (1, 2), (3, 9), (5, 12), (0, 12)):
            p, q = F(a, 12), F(b, 12)
            assert oracle.separation(m, p, q)[1] == oracle.total_variation(m, p, q)


def test_separations_of_every_number_of_trials_to_two_hundred() -> None:
    source = random.Random(1)
    for m in range(1, 201):
        denominator = source.choice((7, 30, 1000, 2**20))
        p, q = sorted(source.sample(range(denominator + 1), 2))
        check_exactly(m, F(p, denominator), F(q, denominator))
        # Close to each other, tiny, and close to 1.
        close = F(source.randrange(1, 2**20), 2**20)
        check_exactly(m, close - F(1, 2**40), close)
        check_exactly(m, F(1, 2**60), F(3, 2**60))
        check_exactly(m, 1 - F(1, 2**20), 1 - F(1, 2**22))


@pytest.mark.parametrize("alpha", [F(1), F(2, 3), F(1, 2), F(1, 4), F(1, 10), F(1, 37), F(1, 100)])
def test_accuracies_of_few_records_are_told_apart(alpha: Fraction) -> None:
    """Up to 1 / alpha records tell alpha / 2 from 2 alpha / 3 by m alpha / 4200 at least, by [LWY24, Corollary D.1]."""
    for m in range(1, int(1 / alpha) + 1):
        p, q = alpha / 2, 2 * alpha / 3
        assert oracle.separation(m, p, q)[1] >= m * alpha / 4200
        check_exactly(m, p, q)


def grid(m: int, source: random.Random) -> list[float]:
    return [
        5e-324,
        1e-300,
        1e-9,
        1 / m,
        0.1,
        0.25,
        0.5,
        2 / 3,
        0.999,
        1 - 1 / m,
        1 - 2**-53,
        source.random(),
        source.random() / m,
    ]


@pytest.mark.parametrize("m", [1, 2, 17, 1000, 30_000, 1_000_000])
def test_tails_of_many_trials(m: int) -> None:
    source = random.Random(m)
    probabilities = grid(m, source)
    for p in probabilities:
        if not 0 < p < 1:  # the ends are elsewhere
            continue
        center, deviation = m * p, (m * p * (1 - p)) ** 0.5
        for distance in (-6, -2, -0.5, 0, 0.5, 1, 3, 9):
            t = min(m - 1, max(0, round(center + distance * deviation)))
            expected = oracle.long_tail(m, F(p), t)
            assert abs(Decimal(_core.binomial_tail(m, p, t)) - expected) <= Decimal(TOLERANCE), (m, p, t)


@pytest.mark.parametrize("m", [10, 1000, 30_000, 1_000_000])
def test_gaps_of_many_trials(m: int) -> None:
    """Differences and integrals, on both sides of where the one gives way to the other."""
    source = random.Random(m)
    for p in (1e-9, 0.3 / m, 5 / m, 0.01, 0.2, 0.5, 0.9, 1 - 3 / m):
        deviation = (p * (1 - p) / m) ** 0.5
        for distance in (1e-9, 1e-3, 0.099, 0.101, source.random(), 4):
            q = p + distance * deviation
            if not p < q < 1:
                continue
            threshold, gap, _ = _core.separating_threshold(m, p, q)
            expected = oracle.long_tail(m, F(q), threshold) - oracle.long_tail(m, F(p), threshold)
            assert abs(Decimal(gap) - expected) <= Decimal(TOLERANCE), (p, q)
            for other in {max(0, threshold - 1), min(m - 1, threshold + 1)}:
                gap_there = oracle.long_tail(m, F(q), other) - oracle.long_tail(m, F(p), other)
                assert gap_there <= expected * (1 + Decimal("1e-9"))


@pytest.mark.parametrize(("m", "p"), [(1_000_000, 0.25), (1_000_000, 1e-7), (1_000_000, 1 - 2e-7), (30, 0.5)])
def test_neighboring_floats_are_told_apart_to_full_relative_accuracy(m: int, p: float) -> None:
    q = float(np.nextafter(p, 1))
    threshold, gap, _ = _core.separating_threshold(m, p, q)
    expected = float(oracle.long_tail(m, F(q), threshold) - oracle.long_tail(m, F(p), threshold))
    assert 0 < gap == pytest.approx(expected, rel=1e-12)


def test_ends_of_the_range() -> None:
    assert _core.separating_threshold(5, 0.0, 1.0) == (0, 1.0, 0.0)
    assert _core.separating_threshold(5, 0.5, 1.0)[0] == 4
    assert _core.separating_threshold(5, 5e-324, 0.5)[0] == 0
    assert _core.binomial_tail(5, 0.0, 0) == 0.0
    assert _core.binomial_tail(5, 1.0, 4) == 1.0
    assert _core.binomial_tail(5, 1.0, 5) == 0.0
    assert _core.binomial_tail(5, 0.5, 2**63) == 0.0


@pytest.mark.parametrize(
    ("m", "p", "q", "message"),
    [
        (0, 0.1, 0.2, "m"),
        (2**40 + 1, 0.1, 0.2, "m"),
        (3, 0.2, 0.2, "p"),
        (3, 0.3, 0.2, "p"),
        (3, -0.1, 0.2, "p"),
        (3, 0.1, 1.1, "q"),
        (3, float("nan"), 0.5, "p"),
        (3, 0.1, float("nan"), "q"),
        (3, F(1, 3), F(1, 3) + F(1, 10**30), "p < q"),
    ],
)
def test_bad_arguments(m: int, p: Any, q: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        best_separating_threshold(m, p, q)
    with pytest.raises(ValueError, match=r"^(m|p|q): "):
        _core.separating_threshold(m, float(p), float(q))


@pytest.mark.parametrize(("m", "p", "q"), [(2.0, 0.1, 0.2), (True, 0.1, 0.2), (2, None, 0.2), (2, 0.1, True)])
def test_arguments_of_other_types(m: Any, p: Any, q: Any) -> None:
    with pytest.raises(TypeError):
        best_separating_threshold(m, p, q)
