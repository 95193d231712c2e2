"""Planned means beside fresh fits, recorded simulations and closed forms."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from userdp.means import WinsorizedMean
from userdp.planning import compare_methods, user_complexity


@pytest.mark.parametrize("unit", [1e-3, 5000.0])
def test_units_do_not_matter(unit: float) -> None:
    one = user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.01, homogeneous=True)
    other = user_complexity(
        "mean", method="laplace", m=16, epsilon=1, alpha=0.01 * unit, max_norm=unit, homogeneous=True
    )
    assert one.calibrated.value == pytest.approx(other.calibrated.value, rel=0.01)


def test_laplace_noise_in_closed_form() -> None:
    """alpha^2 = 8 / (n epsilon)^2 + (1 - 0.09) / (m n) for the users that were simulated."""
    n = user_complexity("mean", method="laplace", m=64, epsilon=0.5, alpha=0.01, homogeneous=True).calibrated.value
    assert n is not None
    assert math.hypot(math.sqrt(8) / (n * 0.5), math.sqrt(0.91 / (64 * n))) == pytest.approx(0.01, rel=0.02)


def squared_errors(n: int, d: int, runs: int, **given: Any) -> np.ndarray:
    """Of fits to users of random signs with mean 0.3, against that mean."""
    rng, found = np.random.default_rng(7), np.empty(runs)
    for run in range(runs):
        rows = 2 * rng.binomial(16, 0.65, size=(n, d)) / 16 - 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fitted = WinsorizedMean(bounds=(-1.0, 1.0), m=16, random_state=run, **given).fit(rows, groups=np.arange(n))
        found[run] = np.sum((fitted.mean_ - 0.3) ** 2)
    return found


@pytest.mark.parametrize("method", ["laplace", "iterated"])
def test_fits_with_the_recommended_users_keep_the_accuracy(method: str) -> None:
    given: dict[str, Any] = {"homogeneous": True}
    common: dict[str, Any] = {"epsilon": 1, "delta": 1e-6} if method == "iterated" else {"epsilon": 1}
    plan = user_complexity("mean", method=method, m=16, alpha=0.05, dimension=4, norm="max", **common, **given)
    found = squared_errors(plan.n_users, 4, 60, method=method, **common, **given)
    # Seeded; three standard errors of the mean square.
    assert found.mean() - 3 * found.std() / math.sqrt(60) <= 0.05**2


@pytest.mark.parametrize(("n", "epsilon"), [(400, 0.05), (400, 1.0)])
def test_noise_in_many_columns_of_a_box_knows_the_projection(n: int, epsilon: float) -> None:
    """64 columns with norm="max": predicted noise, above and below the size of the box, beside fits at its middle."""
    common: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6}
    table = compare_methods("mean", n_users=n, m=16, dimension=64, norm="max", **common)
    rows, found = np.zeros((n, 64)), []
    for run in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            made = WinsorizedMean(bounds=(-1.0, 1.0), m=16, method="gaussian", random_state=run, **common)
            found.append(float(np.sum(made.fit(rows, groups=np.arange(n)).mean_ ** 2)))
    assert table["gaussian"].noise == pytest.approx(math.sqrt(np.mean(found)), rel=0.1)
    assert table["gaussian"].noise <= 8


@pytest.mark.parametrize("given", [{"dimension": 64, "norm": "max", "delta": 1e-6}, {}, {"homogeneous": True}])
def test_no_prediction_is_beyond_what_is_released(given: dict[str, Any]) -> None:
    """Released means and the means they stand for are in one ball: m = 10^6 at epsilon 0.1, with few users."""
    table = compare_methods("mean", n_users=5, m=10**6, epsilon=0.1, **given)
    radius = 8.0 if "norm" in given else 1.0
    for row in table.rows:
        if row.noise is not None:
            assert row.noise <= radius * (1 + 1e-9)
            assert row.worst_error is None or row.worst_error <= 2 * radius
    assert table["group privacy"].note.startswith("not planned")
    needed = compare_methods("mean", alpha=0.1, m=10**6, epsilon=0.1, **given)
    assert needed.best in {row.method for row in needed.rows if row.users is not None}


@pytest.mark.parametrize("promise", [{}, {"user_std": 0.1}])
def test_users_who_may_differ_were_not_simulated(promise: dict[str, Any]) -> None:
    """Without the promise that users are alike the number is the proved one, as they may be anywhere."""
    plan = user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.05, **promise)
    assert plan.basis == "proved"
    assert plan.without_privacy is not None
    assert plan.n_users >= plan.without_privacy
    assert "homogeneous True only" in plan.calibrated.reason


def test_numbers_beyond_the_simulated_range_say_so() -> None:
    many = user_complexity("mean", method="laplace", m=10**6, epsilon=1, alpha=0.05, homogeneous=True)
    assert "simulated for m from" in many.calibrated.reason
