"""Accounting lemmas against published cases and exact arithmetic."""

from __future__ import annotations

import importlib
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle import divergence as oracle
from userdp import LogRatio
from userdp.accounting import (
    PrivacyParameters,
    group_privacy,
    subsampling_amplification,
    subsampling_population,
    triangle_inequality,
)
from userdp.exact.epsilon import upper
from userdp.exact.numbers import PrivacyLevel

F = Fraction
# The package has a function of the same name.
_groups = importlib.import_module("userdp.accounting.group_privacy")
CASES = json.loads((Path(__file__).parents[1] / "data" / "accounting_and_divergence_cases.json").read_text())["cases"]


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=case["id"]) for case in CASES if case["kind"] == kind]


def level(text: str | Fraction) -> LogRatio:
    return LogRatio(*F(text).as_integer_ratio())


def multiplier(parameters: PrivacyParameters) -> Fraction:
    """e^epsilon, for exact results."""
    if isinstance(parameters.epsilon, LogRatio):
        return parameters.epsilon.ratio
    assert parameters.epsilon == 0
    return F(1)


@pytest.mark.parametrize(("given", "expected"), cases("triangle"))
def test_published_triangle(given: dict[str, str], expected: dict[str, str]) -> None:
    result = triangle_inequality(level(given["E1"]), given["d1"], level(given["E2"]), given["d2"])
    assert multiplier(result) == F(expected["E"])
    assert result.delta == F(expected["tight"])
    assert result.delta < F(expected["paper"])


@pytest.mark.parametrize(("given", "expected"), cases("group"))
def test_published_group_privacy(given: dict[str, Any], expected: dict[str, str]) -> None:
    result = group_privacy(level(given["exp_eps"]), given["delta"], given["k"])
    assert multiplier(result) == F(expected["exp_eps"])
    assert result.delta == F(expected["delta"])


@pytest.mark.parametrize(("given", "expected"), cases("subsample"))
def test_published_subsampling(given: dict[str, Any], expected: dict[str, Any]) -> None:
    arguments = {"n_sampled": given["n"], "n_total": given["n_prime"]}
    if "error" in expected:
        with pytest.raises(ValueError, match="n_total"):
            subsampling_amplification(level(given["exp_eps"]), given["delta"], **arguments)
        return
    result = subsampling_amplification(level(given["exp_eps"]), given["delta"], **arguments)
    assert multiplier(result) == F(expected["exp_eps"])
    assert result.delta == F(expected["delta"])


@pytest.mark.parametrize(("given", "expected"), cases("subsample_N"))
def test_published_population(given: dict[str, Any], expected: dict[str, int]) -> None:
    size = subsampling_population(
        level(given["exp_eps"]),
        n_sampled=given["n"],
        target=level(given["target_exp_eps"]),
        multiple_of=given["multiple_of"],
    )
    assert size == expected["N"]


def test_population_is_the_smallest_multiple() -> None:
    # W1 of the errata: the multiple is taken after the maximum with n.
    assert subsampling_population(level("2"), n_sampled=10, target=level("3"), multiple_of=4) == 12
    source = random.Random(5)
    for _ in range(500):
        start, wanted = (1 + F(source.randrange(1, 40), source.randrange(1, 10)) for _ in range(2))
        n, m = source.randrange(1, 20), source.randrange(1, 9)
        size = subsampling_population(level(start), n_sampled=n, target=level(wanted), multiple_of=m)
        serves = [k for k in range(m, size + m, m) if k >= n and 1 + F(n, k) * (start - 1) <= wanted]
        assert serves[0] == size
        one_by_one = subsampling_population(
            level(start), n_sampled=n, target=lambda _, w=wanted: level(w), multiple_of=m
        )
        assert one_by_one == size


def test_random_lemmas_hold_on_random_pmfs() -> None:
    # The triangle inequality, tight form, on actual distributions.
    source = random.Random(6)

    def pmf() -> list[F]:
        weights = [source.randrange(0, 5) for _ in range(3)]
        weights[source.randrange(3)] += 1
        return [F(weight, sum(weights)) for weight in weights]

    for _ in range(2000):
        p, q, r = pmf(), pmf(), pmf()
        e1, e2 = (1 + F(source.randrange(0, 9), 4) for _ in range(2))
        d1 = max(oracle.hockey_stick(p, q, e1), oracle.hockey_stick(q, p, e1))
        d2 = max(oracle.hockey_stick(q, r, e2), oracle.hockey_stick(r, q, e2))
        result = triangle_inequality(level(e1), d1, level(e2), d2)
        worst = max(oracle.hockey_stick(p, r, e1 * e2), oracle.hockey_stick(r, p, e1 * e2))
        assert worst <= F(result.delta)


@pytest.mark.parametrize("epsilon", [0.1, 1, "1/3", 2.5])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 100])
def test_group_privacy_rounds_irrational_sums_upwards(epsilon: Any, k: int) -> None:
    delta = F(1, 10**9)
    result = group_privacy(epsilon, delta, k)
    assert result.epsilon == F(str(epsilon)) * k
    low, high = oracle.exp_bounds(F(str(epsilon)))
    below, above = (min(F(1), delta * sum((e**j for j in range(k)), F(0))) for e in (low, high))
    assert F(result.delta) >= below
    assert F(result.delta) <= above * (1 + F(1, 2**51))


def test_group_privacy_of_rational_levels_is_exact() -> None:
    for k in range(6):
        result = group_privacy(LogRatio(3, 2), "1/1000", k)
        assert multiplier(result) == F(3, 2) ** k
        assert result.delta == F(1, 1000) * sum((F(3, 2) ** j for j in range(k)), F(0))
    assert group_privacy(LogRatio(3, 1), "1/1000", 50).delta == 1
    assert group_privacy(0, "1e-12", 10**9).delta == F(1, 1000)
    assert group_privacy(1e-12, "1e-12", 10**9).delta == pytest.approx(0.0010005, rel=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_geometric_sums_are_rounded_up_and_hardly(seed: int) -> None:
    # Against the sum of powers of the same fraction above e^epsilon, none of which is rounded.
    source = random.Random(seed)
    epsilon = F(source.randrange(1, 300), 1000)
    factor = upper(PrivacyLevel(F(1), epsilon))
    for k in (2, 3, 5, 8, 13, 31):
        exact = sum((factor**j for j in range(k)), F(0))
        rounded = _groups._geometric_sum(PrivacyLevel(F(1), epsilon), k, F(10**9))
        assert exact <= rounded <= exact + F(1, 2**150)
        if k > 2:
            assert exact < rounded, "a product of 192 bits is not rounded"
        delta = F(source.randrange(1, 10**6), 10**12)
        # Both the float and what is printed of it.
        found = group_privacy(epsilon, delta, k).delta
        assert isinstance(found, float)
        assert exact * delta <= min(F(found), F(repr(found)))
        assert F(found) <= exact * delta * (1 + F(1, 2**51))
        # Where the sum is cut short, it says no less than the cap.
        cap = exact * F(3, 4)
        assert _groups._geometric_sum(PrivacyLevel(F(1), epsilon), k, cap) >= cap


def test_a_group_of_long_powers_is_refused_in_time() -> None:
    assert group_privacy(LogRatio(3, 2), 0, 500_000).epsilon == LogRatio(3**500_000, 2**500_000)
    with pytest.raises(ValueError, match="k=500001 changes"):
        group_privacy(LogRatio(3, 2), 0, 500_001)


def test_sums_of_a_logarithm_and_a_number_are_not_below() -> None:
    for ratio in (F(2), F(3, 2), F(101, 100), F(10**9)):
        for exponent in ("1", "1/3", "1/1000", "7/2"):
            found = triangle_inequality(level(ratio), 0, exponent, 0).epsilon
            assert isinstance(found, float)
            low, high = oracle.exp_bounds(F(exponent))
            # Both the float and what is printed of it.
            assert min(oracle.exp_bounds(x)[1] for x in (F(found), F(repr(found)))) >= ratio * low
            assert oracle.exp_bounds(F(found) * (1 - F(1, 2**50)))[0] <= ratio * high


def test_real_levels_are_rounded_upwards() -> None:
    result = subsampling_amplification(1, "1/100", n_sampled=1, n_total=10)
    assert isinstance(result.epsilon, float)
    low, high = oracle.exp_bounds(F(1))
    assert oracle.exp_bounds(F(result.epsilon))[1] >= 1 + (low - 1) / 10
    assert oracle.exp_bounds(F(result.epsilon) * (1 - F(1, 2**51)))[0] <= 1 + (high - 1) / 10
    assert result.delta == F(1, 1000)
    mixed = triangle_inequality(LogRatio(2, 1), 0, 1, 0)
    assert isinstance(mixed.epsilon, float)
    assert mixed.epsilon == pytest.approx(1 + math.log(2), rel=1e-15)
    assert mixed.delta == 0
    size = subsampling_population(1, n_sampled=100, target=0.1)
    assert 1 + F(100, size) * (high - 1) <= oracle.exp_bounds(F(0.1))[0]
    assert 1 + F(100, size - 1) * (low - 1) > oracle.exp_bounds(F(0.1))[1]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: group_privacy(1, 0, -1), "k"),
        (lambda: group_privacy(1, 0, 1.5), "k"),
        (lambda: group_privacy(LogRatio(3, 1), 0, 10**9), "k"),
        (lambda: group_privacy(-1, 0, 1), "epsilon"),
        (lambda: group_privacy(1, 2, 1), "delta"),
        (lambda: triangle_inequality(-1, 0, 1, 0), "epsilon1"),
        (lambda: triangle_inequality(1, 0, 1, 2), "delta2"),
        (lambda: subsampling_amplification(1, 0, n_sampled=0, n_total=1), "n_sampled"),
        (lambda: subsampling_population(1, n_sampled=1, target=0), "target"),
        (lambda: subsampling_population(1, n_sampled=1, target=lambda n: 0, limit=100), "target"),
        (lambda: subsampling_population(1, n_sampled=1, target=1, multiple_of=0), "multiple_of"),
    ],
)
def test_bad_arguments(call: Any, name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        call()


def test_equal_and_tiny_levels() -> None:
    assert subsampling_population(1.0, n_sampled=10, target=1.0) == 10
    assert subsampling_population(1e-100, n_sampled=10, target=1e-101) == 101  # (e^(1e-100) - 1) / 10 is above 1e-101
    for epsilon in (1e-60, 1e-300):
        result = subsampling_amplification(epsilon, 0, n_sampled=1, n_total=2)
        assert F(str(epsilon)) / 2 <= F(result.epsilon) <= F(str(epsilon)) / 2 * (1 + F(1, 2**50))


def test_large_levels_that_are_not_exponentiated() -> None:
    assert triangle_inequality(2**21, 0, 1, 0).epsilon == 2**21 + 1
    assert group_privacy(2**21, 0.1, 1) == PrivacyParameters(F(2**21), F(1, 10))
    with pytest.raises(ValueError, match="epsilon2"):
        triangle_inequality(1, 0.1, 2**21, 0.1)
