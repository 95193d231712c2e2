"""Noise behind a shuffler: divergences, calibration and the theorem's parameters against sums over all counts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle.shuffle import (
    add_remove_delta,
    convolved,
    decimal,
    integer_divergence,
    least,
    masses,
    moved_delta,
    shift_delta,
)
from userdp import LogRatio
from userdp.exceptions import BudgetError
from userdp.mechanisms import NegativeBinomial
from userdp.protocols.shuffle import (
    Histogram,
    NegativeBinomialSum,
    negative_binomial_divergence,
    theorem_39_parameters,
)

E = Decimal(1).exp()
P = Fraction(math.exp(-0.2))
CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/shuffle.json").read_text())["cases"]


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=case["id"]) for case in CASES if case["kind"] == kind]


def power(text: str, epsilon: str) -> Fraction:
    assert text.startswith("exp(-0.2")
    return Fraction((Decimal("-0.2") * Decimal(epsilon)).exp())


@pytest.mark.parametrize(("given", "expected"), cases("nb_shift_delta"))
def test_shared_cases_of_one_count(given: dict[str, str], expected: dict[str, str]) -> None:
    ratio = Fraction(given["exp_eps"])
    level = LogRatio(ratio.numerator, ratio.denominator)
    found = negative_binomial_divergence(given["r"], given["p"], level)
    exact = max(Fraction(expected["delta_down"]), Fraction(expected["delta_up"]))
    assert found.lower <= exact <= found.upper
    assert found.upper <= math.nextafter(float(exact), 1)


@pytest.mark.parametrize(("given", "expected"), cases("nb_thm39"))
def test_shared_cases_of_theorem_39(given: dict[str, str], expected: dict[str, str]) -> None:
    p = power(given["p"], given["eps"])
    r, own_p = theorem_39_parameters(given["eps"], given["delta"])
    assert 0 <= float(r) - float(given["r"]) < 1e-12
    assert 0 <= p - own_p < Fraction(1, 2**60)
    found = negative_binomial_divergence(given["r"], p, given["eps"])
    assert found.upper == pytest.approx(float(expected["delta_exact"]), rel=1e-10)
    delta, least_r = float(given["delta"]), Fraction(expected["min_r"])
    assert negative_binomial_divergence(least_r * (1 + Fraction(1, 10**9)), p, given["eps"]).upper < delta
    assert negative_binomial_divergence(least_r * (1 - Fraction(1, 10**9)), p, given["eps"]).lower > delta


@pytest.mark.parametrize(("given", "expected"), cases("nb_add_remove"))
def test_shared_cases_of_a_user_who_leaves(given: dict[str, Any], expected: dict[str, str]) -> None:
    p = decimal(power(given["p"], given["eps"]))
    found = add_remove_delta(given["n"], Decimal(given["r"]), p, Decimal(given["eps"]).exp())
    assert float(found) == pytest.approx(float(expected["delta"]), rel=1e-10)


def test_published_numbers() -> None:
    assert f"{negative_binomial_divergence(3 * (1 + math.log(1000)), P, 1).upper:.6g}" == "1.54109e-12"
    p = decimal(P)
    found = least(lambda r: shift_delta(r, p, E, 200) <= Decimal("1e-3"), Decimal(2), Decimal(9))
    assert f"{found:.5f}" == "4.42119"
    assert negative_binomial_divergence(Fraction(found) + Fraction(1, 10**12), P, 1).upper <= 1e-3
    assert negative_binomial_divergence(Fraction(found) - Fraction(1, 10**12), P, 1).lower > 1e-3
    tenth = Fraction(math.exp(-0.1))
    assert f"{negative_binomial_divergence('4.046', tenth, 1, two_counts=True).upper:.4g}" == "0.0001432"
    assert f"{negative_binomial_divergence('25.80', tenth, 1, two_counts=True).upper:.1e}" == "1.8e-19"


@pytest.mark.parametrize("epsilon", [0, 0.1, 0.5, 1, 2, 4])
@pytest.mark.parametrize(("r", "p"), [("1.001", "0.5"), ("4.4", "0.8"), ("2", "0.1"), ("17", "0.43"), ("60", "0.02")])
def test_divergences_are_those_of_all_counts(r: str, p: str, epsilon: float) -> None:
    e = Decimal(epsilon).exp()
    one = negative_binomial_divergence(r, p, epsilon)
    assert one.upper == pytest.approx(float(shift_delta(Decimal(r), Decimal(p), e, 400)), rel=1e-12)
    two = negative_binomial_divergence(r, p, epsilon, two_counts=True)
    assert two.upper == pytest.approx(moved_delta(float(r), float(p), math.exp(epsilon), 160), rel=1e-9)
    for found in (one, two):
        assert 0 <= found.upper - found.lower <= 1e-15 * found.upper
    assert two.upper >= one.upper * (1 - 1e-12)  # one of the two counts is a function of both


def test_the_other_convention_of_p_is_not_private() -> None:
    found = negative_binomial_divergence(3 * (1 + math.log(1000)), 1 - P, 1)
    assert found.lower == pytest.approx(0.022459, abs=1e-6)
    assert found.lower > 1e-3


ADD_REMOVE = {1: 1, 2: 0.717, 5: 0.132, 10: 0.0102, 14: 1.45e-3, 15: 9.02e-4, 20: 9.6e-5, 100: 2.1e-10}


@pytest.mark.parametrize(("n", "delta"), ADD_REMOVE.items())
def test_a_user_who_leaves_takes_the_noise_along(n: int, delta: float) -> None:
    """Theorem 39 does not hold for adding and removing users with noise NB(r / n, p): it is false for n <= 14 here."""
    r, p = theorem_39_parameters(1, 1e-3)
    found = float(add_remove_delta(n, decimal(r), decimal(p), E, 500))
    assert found == pytest.approx(delta, rel=0.01)
    assert (found > 1e-3) == (n <= 14)


@pytest.mark.parametrize("n", [2, 5])
def test_a_user_who_leaves_takes_a_table_along(n: int) -> None:
    """The same with the tables that are drawn from."""
    r, p = theorem_39_parameters(1, 1e-3)
    table = NegativeBinomial(r=r / n, p=Fraction(round(p * 2**32), 2**32)).pmf().weights
    some = convolved([table] * (n - 1))
    everybody = [*convolved([some, table]), 0]
    some = [weight << 128 for weight in some] + [0] * (len(everybody) - len(some))
    e, worst = Fraction(math.e), Fraction(0)
    for joined in (everybody, [0, *everybody[:-1]]):
        worst = max(worst, integer_divergence(joined, some, e), integer_divergence(some, joined, e))
    assert float(worst) == pytest.approx(ADD_REMOVE[n], rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"r": 1}, ValueError, "r: must be > 1"),
        ({"r": "0.5"}, ValueError, "r: must be > 1"),
        ({"r": -1}, ValueError, "r must be > 0"),
        ({"r": "x"}, ValueError, "r='x'"),
        ({"p": 0}, ValueError, "p: must be in"),
        ({"p": 1}, ValueError, "p: must be in"),
        ({"p": None}, TypeError, "p must be"),
        ({"epsilon": -1}, ValueError, "epsilon must be >= 0"),
        ({"epsilon": 65}, ValueError, "epsilon must be at most 64"),
        ({"two_counts": 1}, TypeError, "two_counts must be a bool"),
        ({"r": 10**9}, BudgetError, "2.20|1048576"),
    ],
)
def test_divergence_refuses(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        negative_binomial_divergence(**({"r": 2, "p": 0.5, "epsilon": 1} | arguments))


def test_one_success_would_hide_nothing_at_zero() -> None:
    # At r = 1 the closed formula says 0; Y = 0 alone, impossible for Y + 1, has probability 1 - p.
    assert negative_binomial_divergence("1.000000001", "0.5", 3).lower == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.2, 0.1), (0, 0.1), (0.5, 0), (0.5, 1)])
def test_theorem_39_has_its_range(epsilon: float, delta: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        theorem_39_parameters(epsilon, delta)


def mean_of(make: Callable[..., Any], **changes: Any) -> float:
    return float(make(**({"epsilon": 1, "delta": 1e-3, "n_users": 100, "round_id": "r"} | changes)).mean_noise)


def test_calibrated_noise_is_small() -> None:
    assert mean_of(NegativeBinomialSum) <= 12.83  # 107.1 with Theorem 39, 19.97 with its p and the least r
    jointly, halved = mean_of(Histogram, n_items=3), mean_of(NegativeBinomialSum, epsilon=0.5, delta=5e-4)
    assert jointly <= 14.5
    assert halved >= 27
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=100, round_id="r", beta="0.01")
    assert protocol.noise_quantile("0.01") <= 25


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1, 5, LogRatio(3, 1)])
@pytest.mark.parametrize("delta", [0.25, 1e-3, 1e-9, 1e-25])
@pytest.mark.parametrize("beta", [None, 0.05])
def test_calibrated_noise_is_certified_and_just_enough(epsilon: Any, delta: float, beta: float | None) -> None:
    for make, more in ((NegativeBinomialSum, {}), (Histogram, {"n_items": 2, "max_messages": 10**9})):
        common: Any = {"epsilon": epsilon, "delta": delta, "n_users": 50, "round_id": "r", **more}
        protocol: Any = make(**common, beta=beta)
        assert protocol.certified_delta <= Fraction(delta)
        assert protocol.r > 1
        if protocol.r > Fraction(1002, 1000):  # the search does not go below
            assert protocol.certified_delta > Fraction(delta) * Fraction(999, 1000)
            with pytest.raises(ValueError, match="choose a larger r"):
                make(**common, r=(1 + protocol.r) / 2, p=protocol.p)
        assert make(**common, r=protocol.r, p=protocol.p).certified_delta == protocol.certified_delta


def test_a_quantile_is_one() -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=10, round_id="r")
    pmf = masses(decimal(protocol.r), decimal(protocol.p), 400)
    for beta in (Decimal("0.3"), Decimal("0.01"), Decimal("1e-9")):
        found = protocol.noise_quantile(str(beta))
        assert sum(pmf[found + 1 :]) <= beta < sum(pmf[found:])
    with pytest.raises(ValueError, match="beta"):
        protocol.noise_quantile(Fraction(1, 2**130))


def test_dropouts_leave_enough() -> None:
    full = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=100, round_id="r", beta="0.01")
    some = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=100, round_id="r", beta="0.01", dropout="0.2")
    assert some.r == pytest.approx(full.r, rel=0.3)
    assert some.mean_noise == pytest.approx(float(some.r * some.p / (1 - some.p)) / 0.8)
    pmf = masses(decimal(some.r) / Decimal("0.8"), decimal(some.p), 400)
    found = some.noise_quantile("0.01")
    assert sum(pmf[found + 1 :]) <= Decimal("0.01") < sum(pmf[found:])


def test_profile_bounds_what_is_drawn() -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=100, round_id="r")
    profile = protocol.privacy_profile([0.25, 1, 2])
    for epsilon, delta in zip((0.25, 1, 2), profile, strict=True):
        exact = shift_delta(decimal(protocol.r), decimal(protocol.p), Decimal(epsilon).exp(), 200)
        assert delta == pytest.approx(float(exact), rel=1e-12)
    assert profile[1] >= protocol.certified_delta
    assert protocol.privacy_profile("0.25, 1, 2").tolist() == profile.tolist()
    for wrong in (1.0, [[1]]):
        with pytest.raises(TypeError):
            protocol.privacy_profile(wrong)  # type: ignore[arg-type]
