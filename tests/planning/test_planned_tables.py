"""Planned counts by group and sums beside closed forms and exact probabilities."""

from __future__ import annotations

import math
from typing import Any

import pytest

from userdp.mechanisms import SparseHistogram
from userdp.planning import compare_methods, user_complexity


def spread(scale: float) -> float:
    """The standard deviation of discrete Laplace noise."""
    decay = math.exp(-1 / scale)
    return math.sqrt(2 * decay) / (1 - decay)


@pytest.mark.parametrize(("n_keys", "max_keys"), [(1, None), (100, 10)])
def test_listed_groups_in_closed_form(n_keys: int, max_keys: int | None) -> None:
    """Laplace noise of scale k / epsilon is alpha n."""
    plan = user_complexity(
        "group_by", method="laplace", m=4, epsilon=0.5, alpha=0.002, n_keys=n_keys, max_keys=max_keys
    )
    assert plan.n_users == math.ceil(spread((max_keys or n_keys) / 0.5) / 0.002 * (1 - 1e-12))
    assert plan.basis == "exact"


def test_group_privacy_pays_for_every_record() -> None:
    table = compare_methods("group_by", alpha=0.002, m=32, epsilon=1, n_keys=1)
    assert table["group privacy"].users == math.ceil(spread(32) / 0.002 * (1 - 1e-12))
    assert table.best in ("laplace", "per-user clipping")
    assert "not planned" in table["one record per person"].note


def test_groups_without_a_list_are_shown_when_they_are_large_enough() -> None:
    """The error of the least n is at most alpha, by the exact probability of a group of the share to be shown."""
    plan = user_complexity("group_by", m=1, epsilon=1, delta="1e-6", alpha=0.002, max_keys=2, share=0.05)
    assert plan.method == "threshold"
    histogram = SparseHistogram.calibrated(1, "1e-6", 2)

    def error(n: int) -> float:
        users = math.floor(0.05 * n)
        hidden = 1 - float(histogram.release_probability(users))
        variance = float(getattr(histogram.noise, "sigma_squared", 0)) or spread(float(histogram.noise.scale)) ** 2
        return math.sqrt(variance + hidden * users**2) / n

    assert error(plan.n_users) <= 0.002 * (1 + 1e-6)
    assert error(plan.n_users - 100) > 0.002


def test_correlated_noise_is_recommended_where_users_may_have_all_groups() -> None:
    table = compare_methods("group_by", alpha=0.002, m=64, epsilon=1, delta="1e-6", n_keys=64)
    assert table.best == "correlated"
    gain = table["correlated"].users / table["gaussian"].users  # type: ignore[operator]
    assert gain == pytest.approx((1 + 1 / 8) / 2, rel=0.03)


def test_sums_in_closed_form() -> None:
    """Laplace noise of scale max_total / epsilon, in units of max_value, is alpha n."""
    plan = user_complexity("sum", method="laplace", m=16, epsilon=0.5, alpha=0.02, max_value=50, max_total=100)
    assert plan.n_users == pytest.approx(math.sqrt(2) * 2 / 0.5 / 0.02, rel=1e-3)
    table = compare_methods("sum", alpha=0.02, m=16, epsilon=0.5, max_value=50, max_total=100)
    assert table["group privacy"].users == pytest.approx(math.sqrt(2) * 16 / 0.5 / 0.02, rel=1e-3)


@pytest.mark.parametrize("task", ["sum", "group_by"])
def test_extreme_numbers_give_rows_and_no_errors(task: str) -> None:
    given: dict[str, Any] = {"n_keys": 3} if task == "group_by" else {}
    table = compare_methods(task, alpha=1e-3, m=10**6, epsilon=1e-6, delta=1e-300, **given)
    assert all(row.users is not None or "not planned" in row.note for row in table.rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "group_by"}, "max_keys is needed"),
        ({"task": "group_by", "max_keys": 2}, "delta must be > 0 where n_keys is None"),
        ({"task": "group_by", "n_keys": 0}, "n_keys must be at least 1"),
        ({"task": "group_by", "n_keys": 2, "alpha": 1}, "alpha must be below 1"),
        ({"task": "group_by", "n_keys": 2, "neighbors": "both"}, "neighbors must be one of"),
        ({"task": "sum", "max_total": 9}, "max_total must be at most m max_value = 4"),
        ({"task": "sum", "max_value": 0}, "max_value must be > 0"),
    ],
)
def test_bad_numbers(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_methods(**({"m": 4, "epsilon": 1, "alpha": 0.1} | given))
