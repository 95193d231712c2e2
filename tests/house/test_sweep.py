"""Numbers at the ends of what is accepted: refused before any work, and answered by a counted number of steps."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from support import sweep
from userdp.accounting import gaussian_budget, gaussian_delta
from userdp.exceptions import BudgetError
from userdp.means import WinsorizedMean
from userdp.mechanisms import SetUnion, SparseHistogram, set_union, sparse_histogram


def nothing(*_: Any, **__: Any) -> Any:
    raise AssertionError("work was done")


@pytest.mark.parametrize("keys", [4097, 10**5, 2**31, 2**63, 10**30])
def test_more_keys_than_can_be_accounted_for_are_refused_before_noise_is_looked_for(
    keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_histogram, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals_within", nothing)
    for made in (
        lambda: SparseHistogram.calibrated(1, "1e-5", keys),
        lambda: SetUnion.calibrated(1, "1e-5", keys),
        lambda: SetUnion.within(1, "1e-5", keys),
    ):
        with pytest.raises(ValueError, match="max_keys must be at most 4096"):
            made()


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), 10**400])
def test_epsilons_that_no_float_holds_are_refused(epsilon: Any) -> None:
    for made in (
        lambda: SparseHistogram.calibrated(epsilon, "1e-5", 3),
        lambda: SetUnion.calibrated(epsilon, "1e-5", 3),
        lambda: SetUnion.within(epsilon, "1e-5", 3),
    ):
        with pytest.raises(ValueError, match=r"(epsilon|rho) must be from|too large to be written out"):
            made()


def test_columns_beyond_memory_are_refused() -> None:
    with pytest.raises(BudgetError, match=r"n_features must be at most 2\*\*27"):
        WinsorizedMean(epsilon=1, delta="1e-6", max_norm=1, m=3).privacy_cost(n_users=9, n_features=2**31)


@pytest.mark.parametrize("mu2", ["1e-4", 1, "1e-30", "1e-300", 256, 10**9])
@pytest.mark.parametrize("epsilon", [0, "1e-300", "1e-9", 1, 30, 1000])
def test_the_gaussian_curve_is_evaluated_a_few_times_at_any_end(
    mu2: Any, epsilon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Counted(gaussian_budget.NoiseCurve):
        def __init__(self, *arguments: Any) -> None:
            made.append(arguments[1])
            super().__init__(*arguments)

    monkeypatch.setattr(gaussian_budget, "NoiseCurve", Counted)
    assert 0 < gaussian_delta(mu2, epsilon) <= 1
    assert len(made) <= 3
    assert sum(made) <= 40_000, "bits"


def test_the_sweep_has_all_functions_that_take_numbers_alone() -> None:
    """And each of its calls is fine without an end."""
    calls = sweep.calls()
    assert len(calls) >= 60
    for name in ("gaussian_delta", "SparseHistogram.calibrated", "ledger slots", "plan exact keys", "compose_optimal"):
        call, arguments = calls[name]
        call(**arguments)
