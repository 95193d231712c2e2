"""Windows of sorted integers against explicit sets of users, and the distributions of their totals."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import pytest

from oracle import stability as oracle
from userdp import _core
from userdp.exceptions import BudgetError

F = Fraction
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "window_cases.json").read_text())


def random_values(source: random.Random) -> tuple[list[int], int, int]:
    users = source.randint(1, 8)
    spread = source.choice((1, 3, 12, 10**12))
    values = sorted(source.randint(-spread, spread) for _ in range(users))
    return values, source.randint(0, users), source.choice((0, 1, 2, 5, spread, 2 * spread))


@pytest.mark.parametrize("case", CASES)
def test_windows_of_known_cases(case: dict[str, Any]) -> None:
    values, deletions = sorted(case["values"]), case["deletions"]
    found = _core.smallest_window(values, deletions, case["distance"], deletions)
    assert found is not None
    assert found[0] == case["smallest"]


def test_windows_are_best_among_all_sets_of_users() -> None:
    source = random.Random(9)
    sizes = set()
    for _ in range(400):
        values, deletions, distance = random_values(source)
        expected = oracle.smallest_pool_deletions(values, deletions, distance)
        found = _core.smallest_window(values, deletions, distance, deletions)
        assert found is not None
        assert found[0] == expected
        size, start = found
        pool, kept = values[start : start + len(values) - size], len(values) - deletions
        assert sum(pool[len(pool) - kept :]) - sum(pool[:kept]) <= distance
        limited = _core.smallest_window(values, deletions, distance, size - 1) if size else None
        assert limited is None
        sizes.add(size)
    assert len(sizes) > 4


def test_pmfs_of_totals_are_those_of_explicit_sets() -> None:
    source = random.Random(10)
    for _ in range(300):
        values, deletions, _ = random_values(source)
        size = source.randint(0, deletions)
        start = source.randint(0, size)
        pool = values[start : start + len(values) - size]
        expected = oracle.total_pmf(pool, len(values) - deletions)
        if (max(expected) - min(expected)) > 10**6:
            continue
        first, step, weights, total = _core.window_total_weights(values, deletions, start, size)
        pmf = {first + step * i: F(weight, total) for i, weight in enumerate(weights) if weight}
        assert pmf == expected
        assert first == min(expected)
        assert first + step * (len(weights) - 1) == max(expected)
        same_first, same_step, masses, error = _core.window_total_distribution(values, deletions, start, size)
        assert (same_first, same_step, len(masses)) == (first, step, len(weights))
        for i, mass in enumerate(masses):
            exact = expected.get(first + step * i, F(0))
            assert abs(F(float(mass)) - exact) <= F(error) * exact


def test_totals_of_many_users_with_two_values_are_hypergeometric() -> None:
    ones, zeros, deletions = 300, 99_700, 200
    first, step, masses, error = _core.window_total_distribution([0] * zeros + [7] * ones, deletions, 0, 0)
    assert (first, step) == (7 * (ones - deletions), 7)
    assert len(masses) == deletions + 1
    assert error < 1e-13
    total = comb(zeros + ones, deletions)
    for i, mass in enumerate(masses):
        gone = deletions - i
        exact = F(comb(ones, gone) * comb(zeros, deletions - gone), total)
        assert abs(F(float(mass)) - exact) <= F(error) * exact + F(1, 2**1000)


def test_bad_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="values: are not sorted"):
        _core.smallest_window([2, 1], 1, 0, 1)
    with pytest.raises(ValueError, match="deletions: 3 exceeds the number of users, 2"):
        _core.smallest_window([1, 2], 3, 0, 1)
    with pytest.raises(ValueError, match="r: "):
        _core.window_total_distribution([1, 2, 3], 1, 0, 2)
    with pytest.raises(ValueError, match="r: "):
        _core.window_total_weights([1, 2, 3], 2, 2, 1)
    with pytest.raises(BudgetError, match="coarser statistic"):
        _core.window_total_distribution([0, 1, 10**12], 1, 0, 0)
    with pytest.raises(BudgetError, match="certified bounds"):
        _core.window_total_weights(list(range(600)), 120, 0, 0)
