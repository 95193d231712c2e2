"""More keys of a user than the joint accounts take are refused before anything is computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from userdp import BudgetError
from userdp.mechanisms import DiscreteGaussian, SetUnion, SparseHistogram, set_union, sparse_histogram, union_rounds
from userdp.mechanisms.noisy_threshold import tail_at_most
from userdp.tables import Query, Schema, Session, count_users, key

CALLS: dict[str, Callable[[int], Any]] = {
    "sparse": lambda keys: SparseHistogram.calibrated(1, "1e-5", keys),
    "sparse, made": lambda keys: SparseHistogram(max_keys=keys, threshold=9, epsilon=1, scale=1),
    "union": lambda keys: SetUnion.calibrated(1, "1e-5", keys),
    "union, rho": lambda keys: SetUnion.within("0.1", "1e-5", keys),
}


def nothing(*arguments: Any) -> Any:
    raise AssertionError("something is computed")


@pytest.mark.parametrize("keys", [2**12 + 1, 10**5, 2**31, 10**30])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_too_many_keys_are_refused_at_once(
    call: Callable[[int], Any], keys: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_histogram, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals_within", nothing)
    with pytest.raises(BudgetError, match=r"max_keys must be at most 4096, .* let users count in 4096"):
        call(keys)


@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
@pytest.mark.parametrize("kind", ["counts", "keys"])
def test_plans_with_too_many_keys_are_refused_at_once(
    composition: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse_histogram, "proposals", nothing)
    monkeypatch.setattr(set_union, "proposals", nothing)
    frame = {"id": [1, 2], "shop": ["a", "b"]}
    session = Session(frame, user="id", schema=Schema(shop=key(str)), epsilon=1, delta="1e-6", composition=composition)
    for keys in (2**12 + 1, 2**31, 10**30):
        groups = Query().group_by("shop", max_keys=keys)
        query = groups.keys_only() if kind == "keys" else groups.agg(n=count_users())
        with pytest.raises(BudgetError, match="max_keys must be at most 4096"):
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


def test_coarser_steps_of_a_first_round_only_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    deltas = []
    for most in (2**11, 2**6, 2**3):
        monkeypatch.setattr(union_rounds, "MOST_STEPS", most)
        made = SetUnion(max_keys=3, rounds=[(2**45, 2**25), (2**43, 2**24)], epsilon=1)
        deltas.append(made.certified_delta)
    assert deltas == sorted(deltas)
    assert deltas[0] < deltas[-1]
