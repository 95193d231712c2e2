"""Divergences against fractions, published cases, ties and extreme masses."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import divergence as oracle
from userdp import LogRatio, Pmf, _core
from userdp.divergence import (
    Bounds,
    chi2_divergence,
    epsilon_at_delta,
    hockey_stick,
    hockey_stick_bounds,
    is_indistinguishable,
    kl_divergence,
    max_divergence,
    privacy_profile,
    renyi_divergence,
    total_variation,
)

F = Fraction
CASES = json.loads((Path(__file__).parent / "data" / "accounting_and_divergence_cases.json").read_text())["cases"]


def cases(*kinds: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["kind"] in kinds]


def masses(case: dict[str, Any]) -> tuple[list[str], list[str], list[str]]:
    p, q = case["input"]["P"], case["input"]["Q"]
    outputs = sorted({*p, *q})
    return [p.get(o, "0") for o in outputs], [q.get(o, "0") for o in outputs], outputs


def level(text: str) -> LogRatio:
    return LogRatio(*F(text).as_integer_ratio())


@pytest.mark.parametrize("case", cases("hockey_stick"))
def test_published_hockey_stick(case: dict[str, Any]) -> None:
    p, q, outputs = masses(case)
    epsilon = level(case["input"]["exp_eps"])
    if "error" in case["expected"]:
        with pytest.raises(ValueError, match=r"^p: .*(sum|-1/2)"):
            hockey_stick(p, q, epsilon)
        return
    for first, second, key in ((p, q, "P||Q"), (q, p, "Q||P")):
        exact = F(case["expected"][key])
        assert hockey_stick(first, second, epsilon) == exact.numerator / exact.denominator
        bounds = hockey_stick_bounds(first, second, epsilon)
        assert F(bounds.lower) <= exact <= F(bounds.upper)
    below = F(case["expected"]["P||Q"]) - F(1, 10**400)
    if below >= 0 and F(case["expected"]["P||Q"]) >= F(case["expected"]["Q||P"]):
        verdict = is_indistinguishable(p, q, epsilon=epsilon, delta=below)
        assert not verdict.holds
        assert [outputs[index] for index in verdict.event] == case["expected"]["event"]


@pytest.mark.parametrize("case", cases("approx", "approx_real"))
def test_published_verdicts(case: dict[str, Any]) -> None:
    p, q, _ = masses(case)
    given_ = case["input"]
    epsilon = level(given_["exp_eps"]) if "exp_eps" in given_ else F(given_["eps"])
    verdict = is_indistinguishable(p, q, epsilon=epsilon, delta=F(given_["delta"]))
    expected = case["expected"]
    assert verdict.holds is expected.get("verdict", expected.get("P||Q<=delta"))
    if "value60" in expected:
        assert hockey_stick(p, q, epsilon) == float(expected["value60"])


def random_rationals(source: random.Random, length: int) -> list[F]:
    weights = [source.choice((0, 1, 2, 3, source.randrange(10**6))) for _ in range(length)]
    total = sum(weights) or 1
    weights[0] += total - sum(weights)
    return [F(weight, total) for weight in weights]


def test_thirty_thousand_random_rational_pairs() -> None:
    source = random.Random(20240229)
    for _ in range(30_000):
        length = source.randrange(1, 5)
        p, q = random_rationals(source, length), random_rationals(source, length)
        ratio = F(source.randrange(1, 9), source.randrange(1, 4))
        if source.random() < 0.3 and q[0]:
            ratio = p[0] / q[0]  # an exact tie
        if ratio < 1:
            ratio = 1 / ratio if ratio else F(1)
        exact = oracle.hockey_stick(p, q, ratio)
        assert hockey_stick(p, q, LogRatio(ratio.numerator, ratio.denominator)) == exact.numerator / exact.denominator


EPSILONS = [0.0, 1e-9, 0.1, 0.5, 1.0, 2.5, 10.0, 40.0, 300.0, 700.0, 1000.0, 5e-324]


def float_pmf(source: np.random.Generator, length: int) -> np.ndarray:
    p = source.dirichlet(np.full(length, source.choice([0.05, 0.5, 3.0])))
    if source.random() < 0.3:
        p[source.integers(length)] = 1e-300
    p[0] = max(0.0, 1.0 - p[1:].sum())
    return np.asarray(p)


def test_float_pmfs_are_correctly_rounded() -> None:
    source = np.random.default_rng(7)
    for round_ in range(1200):
        length = int(source.integers(1, 40))
        p, q = float_pmf(source, length), float_pmf(source, length)
        epsilon = EPSILONS[round_ % len(EPSILONS)]
        if round_ % 3 == 0:  # ties and near ties: q = p / e^epsilon up to rounding
            q = p * math.exp(-min(epsilon, 600.0)) * source.choice([1.0, 1 + 2**-52, 1 - 2**-53], length)
            q[0] = max(0.0, 1.0 - q[1:].sum())
        exact = F(str(epsilon))
        low, high = oracle.hockey_stick_bounds(list(map(F, p.tolist())), list(map(F, q.tolist())), exact)
        expected = oracle.nearest_float(low, high)
        assert hockey_stick(p, q, epsilon) == expected
        assert hockey_stick(p[::1].tolist(), q.tolist(), exact) == expected  # the general path
        bounds = hockey_stick_bounds(p, q, epsilon)
        assert F(bounds.lower) <= high
        assert F(bounds.upper) >= low
        assert bounds.upper <= np.nextafter(bounds.lower, 2.0)


def test_floats_of_numpy_are_the_decimals_they_print_as() -> None:
    source = np.random.default_rng(17)
    for epsilon in [*source.uniform(0, 3, 50), np.float64(0.0), np.float64(5e-324), np.float64(300.0)]:
        p, q = source.dirichlet(np.ones(6)), source.dirichlet(np.ones(6))
        for number in (epsilon, float(epsilon)):
            assert hockey_stick(p, q, number) == hockey_stick(p, q, F(str(epsilon)))
            assert hockey_stick_bounds(p, q, number) == hockey_stick_bounds(p.tolist(), q.tolist(), F(str(epsilon)))
        profile = privacy_profile(p, q, [epsilon, float(epsilon), F(str(epsilon))])
        assert len(set(profile.tolist())) == 1


def test_many_blocks_and_their_remainders() -> None:
    source = np.random.default_rng(11)
    for length in (4095, 4096, 4097, 12_289, 70_001):
        p, q = source.dirichlet(np.ones(length)), source.dirichlet(np.ones(length))
        low, high = oracle.hockey_stick_bounds(list(map(F, p.tolist())), list(map(F, q.tolist())), F(1, 2), 200)
        assert hockey_stick(p, q, 0.5) == oracle.nearest_float(low, high)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_verdict_one_unit_on_each_side(epsilon: float) -> None:
    p, q = np.array([0.7, 0.3 - 1e-17, 1e-300]), np.array([0.2, 0.8, 0.0])
    low, high = oracle.hockey_stick_bounds(list(map(F, p.tolist())), list(map(F, q.tolist())), F(epsilon))
    back_low, back_high = oracle.hockey_stick_bounds(list(map(F, q.tolist())), list(map(F, p.tolist())), F(epsilon))
    worst = oracle.nearest_float(max(low, back_low), max(high, back_high))
    for delta in (np.nextafter(worst, -1.0), worst, np.nextafter(worst, 2.0)):
        if not 0 <= delta <= 1:
            continue
        verdict = is_indistinguishable(p, q, epsilon=epsilon, delta=F(float(delta)))
        assert verdict.holds is (max(high, back_high) <= F(float(delta)))
        assert F(verdict.lower) <= max(high, back_high)
        assert F(verdict.upper) >= max(low, back_low)


def test_equality_with_delta_holds_and_the_smallest_excess_fails() -> None:
    p, q = ["1/2", "1/2", "0"], ["1/4", "1/2", "1/4"]
    epsilon = LogRatio(3, 2)
    exact = F(1, 2) - F(3, 2) * F(1, 4)
    assert is_indistinguishable(p, q, epsilon=epsilon, delta=F(1, 4)).holds  # q || p: 1/4, the worse one
    assert not is_indistinguishable(p, q, epsilon=epsilon, delta=F(1, 4) - F(1, 10**40)).holds
    assert is_indistinguishable(["1/2", "1/2"], ["1/4", "3/4"], epsilon=epsilon, delta=exact).holds
    verdict = is_indistinguishable(["1/2", "1/2"], ["1/4", "3/4"], epsilon=epsilon, delta=exact - F(1, 10**40))
    assert (verdict.holds, verdict.event, verdict.direction, verdict.decided_by) == (False, (0,), "p||q", "exact")


def test_a_zero_epsilon_float_tie_is_decided() -> None:
    # 0.1 + 0.2 != 0.3 in floats; as exact dyadic numbers the first is larger by 2^-54.
    p, q = [0.1 + 0.2, 1 - (0.1 + 0.2)], [0.3, 0.7]
    assert hockey_stick(p, q, 0) == float(F(0.1 + 0.2) - F(0.3))
    assert not is_indistinguishable(p, q, epsilon=0, delta=0).holds


def test_astronomical_epsilon() -> None:
    assert hockey_stick([0.5, 0.5], [1.0, 0.0], 1e300) == 0.5
    assert hockey_stick([0.5, 0.5], [0.5, 0.5], 10**400) == 0.0
    assert hockey_stick([1e-300, 1.0], [5e-324, 1.0], F(10) ** 1000) == 0.0


weights = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)


@settings(max_examples=300, deadline=None)
@given(weights, weights, st.fractions(0, 1, max_denominator=50), st.fractions(1, 6, max_denominator=7))
def test_profile_and_epsilon_agree_with_the_definition(a: list[int], b: list[int], delta: F, ratio: F) -> None:
    p, q = Pmf.from_weights(a), Pmf.from_weights(b)
    x, y = p.fractions(), q.fractions()

    def worst(multiplier: F) -> F:
        return max(oracle.hockey_stick(x, y, multiplier), oracle.hockey_stick(y, x, multiplier))

    value = privacy_profile(p, q, [LogRatio(ratio.numerator, ratio.denominator)])[0]
    assert F(value) >= worst(ratio)
    assert F(np.nextafter(value, -1.0)) < worst(ratio)
    bounds = epsilon_at_delta(p, q, delta)
    if bounds.upper == math.inf:
        assert bounds == Bounds(math.inf, math.inf)
        at_infinity = max(sum(u for u, v in zip(m, n, strict=True) if v == 0) for m, n in ((x, y), (y, x)))
        assert at_infinity > delta
        return
    assert worst(oracle.exp_bounds(F(bounds.upper))[1]) <= delta
    if bounds.lower > 0:
        # One unit below the lower bound the profile is above delta.
        assert worst(oracle.exp_bounds(F(np.nextafter(bounds.lower, 0.0)))[0]) > delta
    assert bounds.upper <= np.nextafter(bounds.lower, math.inf)


def test_known_values() -> None:
    p, q = [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]
    assert total_variation(p, q) == 0.25
    assert max_divergence(p, q) == math.log(2)
    assert kl_divergence(p, q) == 0.25 * math.log(2)
    assert chi2_divergence(p, q) == 0.375
    # ln(1/4 / (1/4) + 1/16 / (1/4) + 1/16 / (1/2)) = ln(11/8)
    assert renyi_divergence(p, q, 2) == pytest.approx(math.log(11 / 8), rel=2**-52)
    assert renyi_divergence(p, q, 1) == kl_divergence(p, q)
    assert renyi_divergence(p, q, math.inf) == max_divergence(p, q)
    # ln(sum p^a q^(1-a)) / (a - 1) is near the largest ratio's logarithm for large a, at any size of a.
    assert _core.renyi_divergence(np.array(p), np.array(q), Fraction(10**4000)) == max_divergence(p, q)
    assert renyi_divergence(p, q, 2**32) == pytest.approx(max_divergence(p, q), rel=2**-30)
    # -2 ln of the Bhattacharyya coefficient 2 sqrt(1/8) + 1/4
    assert renyi_divergence(p, q, "1/2") == pytest.approx(-2 * math.log(2 * math.sqrt(1 / 8) + 1 / 4), rel=2**-50)


def test_infinite_and_zero_values() -> None:
    p, q = [0.5, 0.5], [1.0, 0.0]
    for divergence in (max_divergence, kl_divergence, chi2_divergence):
        assert divergence(p, q) == math.inf
        assert divergence(p, p) == 0.0
    assert renyi_divergence(p, q, 3) == math.inf
    assert renyi_divergence(p, q, "1/2") == pytest.approx(math.log(2), rel=2**-50)  # -2 ln sqrt(1/2)
    assert renyi_divergence([1.0, 0.0], [0.0, 1.0], 0.5) == math.inf
    assert kl_divergence(q, p) == math.log(2)
    assert epsilon_at_delta(p, q, 0) == Bounds(math.inf, math.inf)
    assert epsilon_at_delta(p, q, "1/2") == Bounds(0.0, 0.0)
    assert epsilon_at_delta(p, q, 1) == Bounds(0.0, 0.0)


@settings(max_examples=200, deadline=None)
@given(weights.filter(all), weights.filter(all))
def test_information_divergences_against_high_precision(a: list[int], b: list[int]) -> None:
    x, y = Pmf.from_weights(a), Pmf.from_weights(b)
    with localcontext(prec=60):
        pairs = [
            (Decimal(u.numerator) / u.denominator, Decimal(v.numerator) / v.denominator)
            for u, v in zip(x.fractions(), y.fractions(), strict=True)
        ]
        kl = sum(u * (u / v).ln() for u, v in pairs)
        renyi = sum(u ** Decimal("2.5") * v ** Decimal("-1.5") for u, v in pairs).ln() / Decimal("1.5")
    if x.fractions() == y.fractions():
        assert kl_divergence(x, y) == renyi_divergence(x, y, 2.5) == 0.0
    else:
        assert kl_divergence(x, y) == float(kl)
        assert renyi_divergence(x, y, 2.5) == float(renyi)
    assert max_divergence(x, y) == pytest.approx(float(max(u / v for u, v in pairs).ln()), rel=2**-52, abs=0.0)


def localcontext(prec: int) -> Any:
    import decimal

    context = decimal.Context(prec=prec)
    return decimal.localcontext(context)


def test_tables_go_row_by_row() -> None:
    p = np.array([[0.5, 0.5], [0.75, 0.25]])
    q = np.array([[0.25, 0.75], [0.75, 0.25]])
    assert hockey_stick(p, q, 0).tolist() == [0.25, 0.0]
    assert [v.holds for v in is_indistinguishable(p, q, epsilon=0, delta=0.1)] == [False, True]
    assert privacy_profile(p, q, [0, 1]).shape == (2, 2)
    assert len(epsilon_at_delta(p, q, 0.1)) == 2
    assert total_variation([["1/2", "1/2"]], [["1/3", "2/3"]]).tolist() == [1 / 6]
    with pytest.raises(ValueError, match="row 1"):
        hockey_stick(np.array([[0.5, 0.5], [0.5, 0.6]]), q, 0)


def test_renyi_of_extreme_orders() -> None:
    p, q = [0.5, 0.5], [1e-300, 1 - 1e-300]
    # D_a -> max divergence: (a ln(1/2) - (a-1) ln 1e-300) / (a - 1) up to e^-600.
    with localcontext(prec=60):
        q0 = Decimal(F(1e-300).numerator) / F(1e-300).denominator
        for order in (10**6, 10**8, 2**32):
            expected = (order * Decimal("0.5").ln() - (order - 1) * q0.ln()) / (order - 1)
            assert renyi_divergence(p, q, order) == float(expected)
    near_one = [1 + F(1, 10**300), 1 - F(1, 10**300), 1 + F(1, 10**2000)]
    for order in near_one:
        assert renyi_divergence([0.5, 0.5], [0.25, 0.75], order) == kl_divergence([0.5, 0.5], [0.25, 0.75])


def test_chi2_at_exact_midpoints_rounds_to_even() -> None:
    for p, q in ((["1/3", "2/3"], ["4/7", "3/7"]), (["2/7", "1/7", "4/7"], ["4/9", "1/3", "2/9"])):
        exact = sum(((F(a) - F(b)) ** 2 / F(b) for a, b in zip(p, q, strict=True)), F(0))
        assert chi2_divergence(p, q) == exact.numerator / exact.denominator


@pytest.mark.parametrize("delta", [0, F(1, 10**300), F(1, 10**30)])
def test_epsilon_of_geometric_pmfs_beyond_floats(delta: F) -> None:
    # Ratios 2^-i (up to the totals) from 1 to 2^-600: most of the breakpoints are far outside the range of floats.
    p, q = (Pmf.from_weights([base ** (600 - i) for i in range(600)]) for base in (2, 4))
    x, y = p.fractions(), q.fractions()
    bounds = epsilon_at_delta(p, q, delta)

    def worst(multiplier: F) -> F:
        return max(oracle.hockey_stick(x, y, multiplier), oracle.hockey_stick(y, x, multiplier))

    assert worst(oracle.exp_bounds(F(bounds.upper))[1]) <= delta
    assert worst(oracle.exp_bounds(F(np.nextafter(bounds.lower, 0.0)))[0]) > delta


def test_tiny_epsilon_against_ties() -> None:
    half = np.full(2**10, 2.0**-10)
    for epsilon in ("1e-2000", "1e-99999", 5e-324):
        assert hockey_stick(half, half, epsilon) == 0.0
        assert is_indistinguishable(half, half, epsilon=epsilon, delta=0).holds
