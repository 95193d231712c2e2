"""Set union: copied cases, all neighbors of small worlds on the pmf that is drawn from, and draws against it."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Sequence
from fractions import Fraction
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf, ncdf, sqrt

from support.distribution_draws import fits
from userdp import InsecureRandomnessWarning, LogRatio, _core
from userdp.exact.numbers import PrivacyLevel
from userdp.exceptions import BudgetError
from userdp.mechanisms import DiscreteGaussian, SetUnion
from userdp.mechanisms.noisy_threshold import LISTED, NoisyThreshold, tail_at_most
from userdp.mechanisms.union_rounds import Rounds, weight_of

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "set_union_cases.json").read_text())
KINDS: list[tuple[Any, ...]] = [(), (0,), (1,), (0, 1)]


def cases(kind: str) -> list[dict[str, Any]]:
    return [case for case in CASES if case["kind"] == kind]


def delta_of(
    union: SetUnion, kinds: Sequence[tuple[Any, ...]], users: int, level: Fraction, neighbors: str
) -> Fraction:
    """The largest divergence of all neighbors, in both orders."""
    laws = {}
    for world in itertools.combinations_with_replacement(sorted(kinds), users):
        law = union.pmf(world)
        laws[world] = dict(zip(law.outputs, law.fractions(), strict=True))
    worst = F(0)
    for rest in itertools.combinations_with_replacement(sorted(kinds), users - 1):
        for one, other in itertools.product(kinds, repeat=2):
            if neighbors == "add-remove" and one and other:
                continue
            p, q = (laws[tuple(sorted((*rest, own)))] for own in (one, other))
            worst = max(worst, sum((max(F(0), mass - level * q.get(shown, 0)) for shown, mass in p.items()), F(0)))
    return worst


# --- copied cases


@pytest.mark.parametrize("case", cases("weighted_row"), ids=str)
def test_weights_are_those_of_the_reference(case: dict[str, Any]) -> None:
    d, weight = case["given"]["d"], case["given"]["W"]
    assert weight_of(weight, d) == case["want"]
    # The core's own.
    users, rows = _core.TableIndex(), _core.TableSums(0)
    owner = users.integers(np.zeros(1, dtype=np.int64))
    rows.add(np.repeat(owner, d), np.arange(d, dtype=np.uint32), [])
    _, (sums,) = rows.bounded(
        users=users, key_order=np.arange(d, dtype=np.uint32), max_keys=None, rule="first", columns=[("weight", weight)]
    )
    assert set(sums.tolist()) == {case["want"]}


@pytest.mark.parametrize("case", cases("union_sensitivity"), ids=str)
def test_one_user_moves_sums_by_the_weight(case: dict[str, Any]) -> None:
    given = case["given"]
    kinds = [
        keys for size in range(given["max_items"] + 1) for keys in itertools.combinations(range(given["n_items"]), size)
    ]
    vectors = [
        [weight_of(given["W"], len(keys)) if key in keys else 0 for key in range(given["n_items"])] for keys in kinds
    ]
    squares = [sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) for one in vectors for other in vectors]
    assert [max(sum(x * x for x in one) for one in vectors), max(squares)] == case["want"]


@pytest.mark.parametrize("case", cases("union_delta_gauss"), ids=str)
def test_one_round_is_as_the_joint_formula(case: dict[str, Any]) -> None:
    given, weight = case["given"], 2**24
    union = SetUnion(
        max_keys=given["D"],
        rounds=[(F(given["s2"]) * weight**2, int(F(given["T"]) * weight))],
        epsilon=given["eps"],
        weight=weight,
    )
    want = float(case["want"])
    assert want * (1 - 1e-4) <= float(union.certified_delta) <= want * 1.02


# --- the account against an independent one, in real numbers


def curve(mu: Any, loss: Any) -> Any:
    if mu <= 0:
        return max(mpf(0), 1 - exp(loss))
    return ncdf(mu / 2 - loss / mu) - exp(loss) * ncdf(-mu / 2 - loss / mu)


def one_round(sigma: Any, threshold: Any, keys: int, loss: Any) -> Any:
    """The largest delta of a round, over numbers of keys and of new ones."""
    best = mpf(0)
    for d in range(1, keys + 1):
        for t in range(d + 1):
            q = ncdf((threshold - 1 / sqrt(mpf(d))) / sigma) ** t
            mu = sqrt(1 - mpf(t) / d) / sigma
            best = max(best, 1 - q + q * curve(mu, loss - log(q)), curve(mu, loss + log(q)))
    return best


def test_two_rounds_are_as_the_worst_second_round_for_each_first() -> None:
    mp.dps = 20
    keys, (first, second) = 3, ((mpf(9), mpf(40)), (mpf(4), mpf(17)))
    best = mpf(0)
    for d in range(1, keys + 1):
        for t in range(d + 1):
            q = ncdf((first[1] - 1 / sqrt(mpf(d))) / first[0]) ** t
            mu = sqrt(1 - mpf(t) / d) / first[0]
            total = mpf(0)
            # A sum over the first round's loss: its error is far below what is compared.
            for place in range(-28, 29):
                z = mpf(place) / 4
                mass = exp(-z * z / 2) / sqrt(2 * mp.pi) / 4
                total += mass * one_round(*second, keys, 1 - log(q) - mu * z - mu * mu / 2)
            best = max(best, 1 - q + q * total)
    weight = 2**20
    union = SetUnion(
        max_keys=keys,
        rounds=[(int(sigma**2 * weight**2), int(threshold * weight)) for sigma, threshold in (first, second)],
        epsilon=1,
        weight=weight,
    )
    assert float(best) * 0.999 <= float(union.certified_delta) <= float(best) * 1.04


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("method", ["two-round", "one-round", "policy"])
def test_calibrated(method: Any, neighbors: Any) -> None:
    union = SetUnion.calibrated(1, "1e-5", 10, method=method, neighbors=neighbors)
    assert F(97, 10**7) <= union.certified_delta <= F(1, 10**5)
    assert union.is_private(1, "1e-5")
    # What the account pays for is neither noise nor threshold alone.
    arguments = {**union._arguments}
    listed = arguments.pop("rounds")
    less = [(sigma_squared / 4, threshold) for sigma_squared, threshold in listed]
    lower = [(sigma_squared, threshold * 3 // 4) for sigma_squared, threshold in listed]
    for rounds in (less, lower):
        assert not SetUnion(**arguments, rounds=rounds).is_private(1, "1e-5")


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("method", ["two-round", "policy"])
def test_within_rho(method: Any, neighbors: Any) -> None:
    union = SetUnion.within("1/50", "1e-6", 30, method=method, neighbors=neighbors)
    assert F(199, 10**4) <= union.rho <= F(1, 50)
    # Of the policy, whose noise is a little wider for its rounding, thresholds are as much higher.
    assert F(94, 10**8) <= union.vanishing_delta <= F(1, 10**6)
    assert method == "policy" or union.vanishing_delta >= F(99, 10**8)
    cost = union.cost
    assert (cost.rho, cost.added_delta, cost.distance) == (union.rho, union.vanishing_delta, union.distance)


def test_the_joint_account_beats_two_parts() -> None:
    # Published figure of the split account at 30 keys: 19.96; of the joint one: 18.73.
    one = SetUnion.calibrated(1, "1e-5", 30, method="one-round")
    assert 18.73 <= one.rounds[0][1] / one.weight <= 18.83
    two = SetUnion.calibrated(1, "1e-5", 30)
    assert two.rounds[1][1] / two.weight < 20.7  # split: 21.5


# --- audits on the pmf


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("max_keys", "rounds"),
    [
        (2, [(36, 20), (25, 18)]),
        (1, [(36, 22), (25, 17)]),
        (2, [(100, 30), (36, 16)]),
        (2, [(36, 17)]),
        (1, [(64, 27)]),
        (1, [(144, 28)]),
    ],
)
@pytest.mark.parametrize("level", [F(2), F(5, 4)])
def test_all_neighbors_of_small_worlds(neighbors: Any, max_keys: int, rounds: Any, level: Fraction) -> None:
    """At the certified delta; with half the noise, and with half the thresholds, the same test fails."""

    def made(noise: int, height: int) -> SetUnion:
        listed = [(F(sigma_squared, noise**2), threshold // height) for sigma_squared, threshold in rounds]
        epsilon = LogRatio(level.numerator, level.denominator)
        return SetUnion(max_keys=max_keys, rounds=listed, epsilon=epsilon, neighbors=neighbors, weight=12)

    delta = made(1, 1).certified_delta
    assert delta_of(made(1, 1), KINDS, 3, level, neighbors) <= delta < 1
    assert delta_of(made(2, 1), KINDS, 3, level, neighbors) > delta
    if neighbors == "add-remove" and level == 2:
        assert delta_of(made(1, 2), KINDS, 3, level, neighbors) > delta


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_the_policy_on_all_small_worlds(neighbors: Any) -> None:
    """With the account's rounding for the three users that there are."""
    level, weight = F(2), 64
    union = SetUnion(
        max_keys=2, rounds=[(32**2, 144)], epsilon=LogRatio(2, 1), neighbors=neighbors, weight=weight, cap=240
    )

    def certified(sigma_squared: int) -> Fraction:
        threshold = NoisyThreshold(DiscreteGaussian(sigma_squared=sigma_squared), 144)
        rounds = Rounds((threshold,), weight, 2, neighbors, walk=True, slack=3 * 3, moved=2)
        return rounds.delta(PrivacyLevel(level, F(0)))

    delta = certified(32**2)
    assert delta < 1
    assert delta_of(union, KINDS, 3, level, neighbors) <= delta
    # With four times the weight a user does more than is paid for.
    heavy = SetUnion(
        max_keys=2, rounds=[(32**2, 144)], epsilon=LogRatio(2, 1), neighbors=neighbors, weight=2 * weight, cap=240
    )
    assert delta_of(heavy, KINDS, 3, level, neighbors) > delta


def test_a_second_round_sees_what_the_first_has_shown() -> None:
    union = SetUnion(max_keys=2, rounds=[(25, 5), (25, 5)], epsilon=1, weight=12)
    law = union.pmf([(0, 1)])
    masses = dict(zip(law.outputs, law.fractions(), strict=True))
    noise = DiscreteGaussian(sigma_squared=25)
    both, alone = noise.tail(5 - 8), noise.tail(5 - 12)  # isqrt(144 / 2) = 8
    assert masses[(0,), (1,)] == both * (1 - both) * alone
    assert masses[(), ()] == (1 - both) ** 4
    assert masses[(0, 1), ()] == both**2
    assert sum(masses.values()) == 1


# --- the policy


def steps(worlds: Sequence[Sequence[int]], keys: int, weight: int, cap: int) -> list[int]:
    """The policy by its definition: gaps shrink in proportion, and moves are rounded down."""
    sums = [0] * keys
    for own in worlds:
        gaps = [cap - sums[key] for key in own]
        square = sum(gap * gap for gap in gaps)
        if square <= weight**2:
            for key in own:
                sums[key] = cap
            continue
        root = isqrt(square)
        root += root * root < square
        for key, gap in zip(own, gaps, strict=True):
            sums[key] += gap * weight // root
    return sums


@pytest.mark.parametrize(("weight", "cap"), [(4, 5), (64, 80), (2**48, 25 * 2**48), (10, 3)])
def test_the_policy_is_as_defined(weight: int, cap: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        worlds = [rng.choice(6, rng.integers(0, 5), replace=False).tolist() for _ in range(20)]
        starts = np.cumsum([0, *map(len, worlds)], dtype=np.int64)
        flat = np.array([key for own in worlds for key in own], dtype=np.uint32)
        found = _core.walked_sums(starts, flat, 6, length=weight, cap=cap)
        assert found.tolist() == steps(worlds, 6, weight, cap)


@pytest.mark.parametrize(("weight", "cap"), [(4, 22), (16, 35)])
def test_rounding_is_within_the_charge_and_above_none(weight: int, cap: int) -> None:
    """On all worlds of three users and three keys: above the weight, and within weight + N (sqrt(D) + sqrt(2))."""
    kinds = [keys for size in range(4) for keys in itertools.combinations(range(3), size)]
    worst = 0
    for world in itertools.product(kinds, repeat=3):
        whole = steps(world, 3, weight, cap)
        for place in range(3):
            less = steps([*world[:place], *world[place + 1 :]], 3, weight, cap)
            worst = max(worst, sum((x - y) ** 2 for x, y in zip(whole, less, strict=True)))
    assert weight**2 < worst <= (weight + 2 * (math.sqrt(3) + math.sqrt(2))) ** 2


def test_the_order_of_users_is_not_that_of_rows() -> None:
    """Sums are a function of users, keys and coins: rows, batches and codes may come in any order."""
    rng = np.random.default_rng(1)
    pairs = np.unique(np.stack([rng.integers(0, 300, 3000), rng.integers(0, 40, 3000)], axis=1), axis=0)

    def sums(order: Any, parts: int) -> list[tuple[int, int]]:
        users, keys, rows = _core.TableIndex(), _core.TableIndex(), _core.TableSums(0, memory=2**16)
        for batch in np.array_split(pairs[order], parts):
            owners = users.integers(np.ascontiguousarray(batch[:, 0]))
            rows.add(owners, keys.integers(np.ascontiguousarray(batch[:, 1])), [])
        names = np.zeros(len(keys), dtype=np.int64)
        for key in range(40):
            names[keys.integers(np.array([key]))[0]] = key
        place = np.argsort(np.argsort(names)).astype(np.uint32)
        codes, (found,) = rows.walked(
            users=users,
            key_order=place,
            max_keys=5,
            key_digests=keys.digests(bytes(32)),
            prf_key=bytes(32),
            length=2**48,
            cap=2**52,
        )
        return list(zip(names[codes].tolist(), found.tolist(), strict=True))

    straight = sums(np.arange(len(pairs)), 1)
    assert len(straight) == 40
    for parts in (1, 7, 100):
        assert sums(rng.permutation(len(pairs)), parts) == straight


# --- wide noise


@pytest.mark.parametrize("sigma_squared", [10**4, 36 * 10**6, 2**40, 2**80])
def test_tails_of_wide_noise_are_bounded(sigma_squared: int) -> None:
    mp.dps = 40
    noise, sigma = DiscreteGaussian(sigma_squared=sigma_squared), isqrt(sigma_squared)
    for widths in (0, 1, 3, 5, 6):
        bound = tail_at_most(noise, widths * sigma)
        ideal = ncdf(-mpf(widths * sigma - 1) / mpf(sigma_squared) ** mpf("0.5"))
        if noise.support <= LISTED:
            assert bound == noise.tail(widths * sigma)
        else:
            assert float(ideal) <= float(bound) <= float(ideal) * (1 + 1e-12) + 1e-28 or not widths
    if sigma_squared == 36 * 10**6:
        assert all(noise.tail(x) <= tail_at_most(noise, x) for x in range(0, 6 * sigma, 999))


# --- draws


@pytest.mark.statistical
@pytest.mark.parametrize("cap", [None, 40])
def test_draws_fit_the_distribution(cap: int | None) -> None:
    rounds = [(25, 11), (25, 9)] if cap is None else [(25, 11)]
    union = SetUnion(max_keys=2, rounds=rounds, epsilon=1, weight=12, cap=cap)
    world = [("a", "b", "c"), ("a",), ("b", "c")]
    law = union.pmf(world)
    merged: dict[tuple[str, ...], Fraction] = {}
    for shown, mass in zip(law.outputs, law.fractions(), strict=True):
        whole = tuple(sorted(itertools.chain.from_iterable(shown)))
        merged[whole] = merged.get(whole, F(0)) + mass
    source, draws = _core.Source(7), 1000
    counts = dict.fromkeys(merged, 0)
    for _ in range(draws):
        counts[tuple(union._draw(source, world))] += 1
    assert fits(list(counts.values()), list(merged.values()), draws)


def test_keys_of_any_kind_and_users_of_any_size() -> None:
    union = SetUnion(max_keys=3, rounds=[(400, 90)], epsilon=1, weight=12)
    users: dict[Any, Any] = {user: ["a", 7, ("b", 1), "a"] for user in range(100)}
    users |= {"none": [], "many": range(10**5), b"other": iter(["a"])}
    with pytest.warns(InsecureRandomnessWarning):
        assert set(union.sample(users, random_state=0)) == {"a", 7, ("b", 1)}
    assert union.sample([]) == [] == union.sample([[], []])
    again = pickle.loads(pickle.dumps(union))
    assert repr(again) == repr(union)


def test_arguments_are_refused_by_name() -> None:
    good: dict[str, Any] = {"max_keys": 2, "rounds": [(100, 50)], "epsilon": 1}
    for change, message in [
        ({"max_keys": 0}, "max_keys"),
        ({"max_keys": 2**21}, "max_keys"),
        ({"rounds": []}, "rounds"),
        ({"rounds": [(100, 50)] * 3}, "rounds"),
        ({"rounds": [(1, 50)]}, "sigma_squared"),
        ({"rounds": [(100, 0)]}, "threshold"),
        ({"rounds": [(100, 50)] * 2, "cap": 9}, "cap"),
        ({"cap": 2**60, "max_keys": 4096}, "cap"),
        ({"epsilon": 0}, "epsilon"),
        ({"weight": 2**50}, "weight"),
        ({"neighbors": "bounded"}, "neighbors"),
    ]:
        with pytest.raises(ValueError, match=message):
            SetUnion(**{**good, **change})
    with pytest.raises(TypeError, match="rounds"):
        SetUnion(**{**good, "rounds": "ab"})
    union = SetUnion(**good)
    for users in ("ab", 3, [3], ["ab"], [[{}]], [[None]], {None: [1]}):
        with pytest.raises(TypeError, match="users"):
            union.sample(users)
    for delta in (0, 1):
        with pytest.raises(ValueError, match="delta"):
            SetUnion.calibrated(1, delta, 3)
    with pytest.raises(ValueError, match="method"):
        SetUnion.calibrated(1, "1e-5", 3, method="best")  # type: ignore[arg-type]
    with pytest.raises(BudgetError):
        SetUnion.calibrated(1, "1e-5", 2).pmf([(1, 2)])


@pytest.mark.parametrize("method", ["two-round", "one-round", "policy"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-9"), (8, "1e-3"), ("0.01", "1e-7")])
def test_extreme_promises_are_kept(method: Any, epsilon: Any, delta: Any) -> None:
    assert SetUnion.calibrated(epsilon, delta, 2, method=method).certified_delta <= F(delta)


def test_promises_that_need_too_wide_noise_are_refused() -> None:
    for method in ("two-round", "one-round", "policy"):
        with pytest.raises(ValueError, match="no noise and threshold were found"):
            SetUnion.calibrated("1e-12", "1e-15", 2, method=method)  # type: ignore[arg-type]


def test_what_promises_nothing_is_said_at_once() -> None:
    """A weight far above the noise, and an epsilon at which what drawn noise is off counts in full."""
    assert SetUnion(max_keys=2, rounds=[(5, 2**61)], epsilon=1, weight=2**48).certified_delta == 1
    assert SetUnion(max_keys=2, rounds=[(5, 2**61)] * 2, epsilon=1, weight=2**48).certified_delta == 1
    assert SetUnion(max_keys=2, rounds=[(2**40, 2**24)] * 2, epsilon=100).certified_delta == 1
    with pytest.raises(ValueError, match="another epsilon"):
        SetUnion.calibrated(1000, "1e-5", 2)


def test_users_for_what_a_cap_does_not_reach_are_refused() -> None:
    """With a cap of three standard deviations above the threshold, keys are shown with Phi(3) = 0.99865 at most."""
    union = SetUnion(max_keys=1, rounds=[(100, 50)], epsilon=1, weight=16, cap=80)
    assert union.users_for("0.9986") == math.ceil((50 + 10 * 2.9889) / 16)
    with pytest.raises(ValueError, match="probability"):
        union.users_for("0.9987")
