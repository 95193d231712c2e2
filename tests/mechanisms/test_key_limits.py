"""More keys of a user than the joint accounts take are refused before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from userdp import BudgetError
from userdp.mechanisms import DiscreteGaussian, KeySum, SetUnion, SparseHistogram, set_union, sparse_histogram
from userdp.mechanisms.noisy_threshold import tail_at_most, tail_bounds
from userdp.tables import Query, Schema, Session, count_users, key

CALLS: dict[str, Callable[[int], Any]] = {
    "sparse": lambda keys: SparseHistogram.calibrated(1, "1e-5", keys),
    "sparse, made": lambda keys: SparseHistogram(max_keys=keys, threshold=9, epsilon=1, scale=1),
    "union": lambda keys: SetUnion.calibrated(1, "1e-5", keys),
    "union, rho": lambda keys: SetUnion.within("0.1", "1e-5", keys),
}


def nothing(*arguments: Any) -> Any:
    raise AssertionError("something is computed")


@pytest.mark.parametrize("keys", [2**20 + 1, 2**31, 10**30])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_too_many_keys_are_refused_at_once(
    call: Callable[[int], Any], keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_histogram, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals_within", nothing)
    with pytest.raises(BudgetError, match=r"max_keys must be at most \d+, .* let users count in \d+"):
        call(keys)


LAPLACE: dict[str, Callable[[int], Any]] = {
    "chosen": lambda keys: SparseHistogram.calibrated(1, "1e-5", keys, method="laplace"),
    "made": lambda keys: SparseHistogram(max_keys=keys, threshold=9, epsilon=1, scale=1),
    "a sum": lambda keys: SparseHistogram(
        max_keys=keys, threshold=9, epsilon=1, sigma_squared=9, sums=[KeySum(0, 1, scale=1)]
    ),
}


@pytest.mark.parametrize("call", LAPLACE.values(), ids=LAPLACE)
def test_many_keys_with_laplace_noise_are_refused_with_what_does(call: Callable[[int], Any]) -> None:
    with pytest.raises(BudgetError, match=r"at most 4096, .* take Gaussian noise, of which up to 1048576 are"):
        call(2**12 + 1)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("keys", [5000, 10**5, 2**20])
def test_many_keys_get_an_answer(keys: int, neighbors: Any) -> None:
    counts = SparseHistogram.calibrated(1, "1e-5", keys, neighbors=neighbors)
    assert Fraction(9, 10**6) <= counts.certified_delta <= Fraction(1, 10**5)
    # Gaussian noise on all numbers that move is not to be had for less.
    moved = 2 * keys if neighbors == "replace" else keys
    assert counts.noise.sigma_squared > moved * 13  # the variance of one number at (1, 10^-5)
    assert not counts.is_private("0.95", "1e-5")
    union = SetUnion.calibrated(1, "1e-5", keys, neighbors=neighbors)
    assert Fraction(97, 10**7) <= union.certified_delta <= Fraction(1, 10**5)
    assert not union.is_private("0.95", "1e-5")


@pytest.mark.parametrize("least", [-(10**6), -3, 0, 1, 2, 10**5, 3 * 10**6])
def test_bounds_of_tails_too_wide_to_be_listed(least: int) -> None:
    noise = DiscreteGaussian(sigma_squared=10**10)
    low, high = tail_bounds(noise, least)
    with mpmath.workdps(80):
        near = mpmath.ncdf(-(mpmath.mpf(least) - mpmath.mpf(1) / 2) / 10**5)
        assert mpmath.mpf(low.numerator) / low.denominator <= near <= mpmath.mpf(high.numerator) / high.denominator
    assert 0 <= high - low <= Fraction(1, 10**4) * high + Fraction(1, 2**80)
    narrow = DiscreteGaussian(sigma_squared=400)
    assert tail_bounds(narrow, least) == (narrow.tail(least), narrow.tail(least))


def test_wide_counts_have_users_and_intervals() -> None:
    made = SparseHistogram.calibrated("1/10", "1e-5", 10**5)
    sigma = math.sqrt(float(made.noise.sigma_squared))
    needed = made.users_for("0.975")
    assert abs(needed - made.threshold - 1.96 * sigma) < 0.01 * sigma
    shown = made.threshold + math.ceil(12 * sigma)
    low, high = made.interval(shown)
    assert abs(shown - low - 1.96 * sigma) < 0.01 * sigma
    assert abs(high - shown - 1.96 * sigma) < 0.01 * sigma
    assert made.interval(made.threshold)[0] == 1


@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
@pytest.mark.parametrize("kind", ["counts", "keys"])
def test_plans_with_too_many_keys_are_refused_at_once(
    composition: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_histogram, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals", nothing)
    frame = {"id": [1, 2], "shop": ["a", "b"]}
    session = Session(frame, user="id", schema=Schema(shop=key(str)), epsilon=1, delta="1e-6", composition=composition)
    for keys in (2**20 + 1, 2**31, 10**30):
        groups = Query().group_by("shop", max_keys=keys)
        query = groups.keys_only() if kind == "keys" else groups.agg(n=count_users())
        with pytest.raises(BudgetError, match="max_keys must be at most 1048576"):
            session.plan(query)


@pytest.mark.parametrize("epsilon", ["1e-3", "1e-2"])
@pytest.mark.parametrize(("delta", "keys"), [("1e-9", 1), ("1e-3", 30), ("1e-11", 100)])
def test_wide_noise_is_found_too(epsilon: Any, delta: str, keys: int) -> None:
    # A threshold of a hundred thousand users is missed by more than a few of them.
    for relation in ("add-remove", "replace"):
        made = SparseHistogram.calibrated(epsilon, delta, keys, neighbors=relation)  # type: ignore[arg-type]
        assert made.is_private(epsilon, delta)
        few = SparseHistogram(
            max_keys=keys,
            threshold=max(made.threshold * 9 // 10, 1),
            epsilon=epsilon,
            neighbors=relation,
            **noise(made),
        )
        assert not few.is_private(epsilon, delta)


def noise(made: SparseHistogram) -> dict[str, Any]:
    names = ("scale", "sigma_squared")
    return {name: made._arguments[name] for name in names if made._arguments.get(name) is not None}


@pytest.mark.parametrize("deviations", [1, 5, 30, 1000, 10**6])
def test_tails_far_out(deviations: int) -> None:
    noise = DiscreteGaussian(sigma_squared=10**10)
    found = tail_at_most(noise, deviations * 10**5 + 1)
    # The continuous tail is below the discrete one.
    assert found >= Fraction(math.erfc((deviations * 10**5 + 1) / (math.sqrt(2) * 10**5))) / 2
    assert found <= Fraction(math.erfc(deviations / math.sqrt(2))) * Fraction(51, 100) + noise.distance + Fraction(
        1, 2**461
    )
