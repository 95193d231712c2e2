"""Zero-concentrated differential privacy against its definition, a slow minimization, and another accountant."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from oracle import composition as oracle
from oracle.divergence import exp_bounds
from userdp import LogRatio
from userdp.accounting import (
    PrivacyCost,
    bounded_range_to_zcdp,
    largest_rho,
    pure_to_zcdp,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_group_privacy,
)

F = Fraction
DATA: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data" / "mean_erm_sco" / "accounting.json").read_text())
THEIRS = DATA["dp_accounting"]


@pytest.mark.parametrize(
    ("rho", "epsilon"),
    [
        ("0.02", "1"),
        ("0.5", "4"),
        ("1e-6", "0.01"),
        ("2", "0.5"),
        ("0.001", "0"),
        ("7", "1"),
        ("3", "60"),
    ],
)
def test_delta_is_the_least_over_orders_rounded_up(rho: str, epsilon: str) -> None:
    least = F(str(oracle.zcdp_delta(rho, epsilon)))
    assert least * (1 - F(1, 10**45)) <= zcdp_delta(rho, epsilon) <= least * (1 + F(1, 10**9))


def test_delta_is_never_needlessly_small() -> None:
    assert oracle.zcdp_delta("1e-9", "1") < 2.0**-1000
    assert zcdp_delta("1e-9", 1) == F(1, 2**4096)
    assert zcdp_delta(0, 1) == 0


def test_delta_is_a_bound_at_a_rational_order() -> None:
    # rho = 1/8, epsilon = ln 4, alpha = 4: e^(3/2) 4^-3 (3/4)^4 / 3, which is not below what is claimed.
    at_four = exp_bounds(F(3, 2))[1] / 64 * F(3, 4) ** 4 / 3
    assert zcdp_delta("1/8", LogRatio(4)) < at_four


@pytest.mark.parametrize("level", [F(2), F(3, 2), F(5)], ids=str)
def test_pure_mechanisms_are_within_the_definition(level: Fraction) -> None:
    pair = oracle.response(level)
    rho = pure_to_zcdp(LogRatio(*level.as_integer_ratio()))
    for order in range(2, 12):
        moment = oracle.renyi_bound(pair, order)
        assert moment <= exp_bounds(order * (order - 1) * rho)[0]
        # Half the noise would not be: a quarter of rho is too little at low orders.
        assert moment > exp_bounds(order * (order - 1) * rho / 4)[1] or order > 4


def test_bounded_range_is_within_the_definition() -> None:
    # Masses with log ratios in an interval of length ln 4, at its two ends: (4a, a) and (b, b) up to scale.
    worst = F(0)
    for share in range(1, 40):
        q = F(share, 40)
        scale = 1 / (4 * q + 1 - q)
        pair = ((4 * q * scale, q), ((1 - q) * scale, 1 - q))
        rho = bounded_range_to_zcdp(LogRatio(4))
        for order in range(2, 8):
            moment = oracle.renyi_bound(pair, order)
            low, _ = exp_bounds(order * (order - 1) * rho)
            assert moment <= low
            worst = max(worst, F(math.log(moment)) / (order * (order - 1)) / rho)
    assert worst > F(9, 10)  # and nothing much smaller would be


def test_conversions_of_one_number() -> None:
    assert pure_to_zcdp(F(1, 3)) == F(1, 18)
    assert bounded_range_to_zcdp(F(1, 3)) == F(1, 72)
    assert 0 <= float(pure_to_zcdp(LogRatio(3))) - math.log(3) ** 2 / 2 < 1e-15
    assert zcdp_group_privacy("1/10", 3) == F(9, 10)
    assert zcdp_group_privacy("1/10", 0) == 0


@pytest.mark.parametrize("epsilon", ["1/100", 1, 5, LogRatio(3), 400])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.3"])
@pytest.mark.parametrize("distance", [0, F(1, 2**80)])
def test_largest_rho_is_certified_and_nearly_the_largest(epsilon: Any, delta: str, distance: Fraction) -> None:
    if epsilon == 400 and distance:
        with pytest.raises(ValueError, match=r"distance=.* is too large"):
            largest_rho(epsilon, delta, distance=distance)
        return
    rho = largest_rho(epsilon, delta, distance=distance)
    assert zcdp_delta(rho, epsilon, distance=distance) <= F(delta)
    assert zcdp_delta(rho * (1 + F(1, 2**36)), epsilon, distance=distance) > F(delta)


@pytest.mark.parametrize("rho", ["1e-6", "1/50", 1, 30])
@pytest.mark.parametrize("delta", ["1e-12", "1e-6", "0.3"])
@pytest.mark.parametrize("distance", [0, F(1, 2**80)])
def test_epsilon_is_certified_and_nearly_the_least(rho: Any, delta: str, distance: Fraction) -> None:
    if rho == 30 and distance and delta != "0.3":  # e^epsilon is above 10^24
        with pytest.raises(ValueError, match="no epsilon is certified"):
            zcdp_epsilon(rho, delta, distance=distance)
        return
    epsilon = zcdp_epsilon(rho, delta, distance=distance)
    assert zcdp_delta(rho, epsilon, distance=distance) <= F(delta)
    assert epsilon == 0 or zcdp_delta(rho, epsilon * (1 - F(1, 2**34)), distance=distance) > F(delta)


def test_a_distance_is_paid_for() -> None:
    # A mechanism that is 0-zCDP up to an event of probability 1/1000 on either side: randomized response at
    # epsilon = 0 that leaks. Its divergence at e^epsilon is 1/1000 + e^epsilon / 1000 for the worst coupling.
    far = F(1, 1000)
    assert zcdp_delta(0, LogRatio(3), distance=far) == 4 * far
    pair = oracle.response(F(1), far)
    assert oracle.composed_delta([pair], F(3)) <= 4 * far
    shifted = ((F(1, 2) + far, F(1, 2) - far), (F(1, 2) - far, F(1, 2) + far))
    assert oracle.composed_delta([shifted], F(1)) == 2 * far == zcdp_delta(0, 0, distance=far)


def test_a_delta_that_is_too_small_says_which_would_do() -> None:
    with pytest.raises(ValueError, match=r"delta=1e-20 is too small.*delta=7\.44e-10 would do"):
        largest_rho(1, "1e-20", distance="1e-10")
    assert largest_rho(1, "7.44e-10", distance="1e-10") > 0
    with pytest.raises(ValueError, match="no pure differential privacy"):
        largest_rho(1, 0)
    with pytest.raises(ValueError, match="too small"):
        zcdp_epsilon("1/10", 0)
    with pytest.raises(ValueError, match="no epsilon is certified"):
        zcdp_epsilon(1, "1e-6", distance="1e-9")


@pytest.mark.parametrize("epsilon", ["1e-300", 0, 1, 1e300, "1e5000", LogRatio(10**40 + 1, 10**40)])
@pytest.mark.parametrize("delta", ["1e-1200", "1e-6", "0.9999999999999999999999"])
def test_extremes_end(epsilon: Any, delta: str) -> None:
    if epsilon in (0, "1e-300") and delta == "1e-1200":  # rho would be below all floats
        with pytest.raises(ValueError, match="take a larger delta"):
            largest_rho(epsilon, delta)
        return
    rho = min(largest_rho(epsilon, delta), F(10) ** 299)
    assert rho > 0
    assert zcdp_delta(rho, epsilon) <= F(delta)
    assert zcdp_delta(rho, zcdp_epsilon(rho, delta)) <= F(delta)


@pytest.mark.parametrize("row", THEIRS["zcdp_delta"], ids=str)
def test_agreement_on_delta(row: list[float]) -> None:
    rho, epsilon, theirs = row
    # Theirs looks at a grid of orders only.
    assert theirs * 0.99 < float(zcdp_delta(rho, epsilon)) <= theirs * (1 + 1e-9)


@pytest.mark.parametrize("row", THEIRS["zcdp_epsilon_at_1e-6"], ids=str)
def test_agreement_on_epsilon(row: list[float]) -> None:
    rho, theirs = row
    assert theirs * 0.9999 < float(zcdp_epsilon(rho, 1e-6)) <= theirs * (1 + 1e-9)


def test_costs_keep_every_guarantee() -> None:
    cost = PrivacyCost(1, "1e-6", rho="1/50", distance="1e-20")
    assert (cost.epsilon, cost.delta, cost.rho, cost.distance) == (1, F("1e-6"), F(1, 50), F("1e-20"))
    assert cost.zcdp() == (F(1, 50), 0, F("1e-20"))
    assert cost.pair() == (1, F("1e-6"))
    assert PrivacyCost(rho=1).pair() is None
    assert PrivacyCost("1/2", "1e-6").zcdp() == (F(1, 8), F("1e-6"), 0)
    # A form without a delta beside rho goes first.
    assert PrivacyCost("1/100", "1e-6", rho=1).zcdp() == (1, 0, 0)
    ranged = PrivacyCost(bounded_range=LogRatio(3))
    assert ranged.pair() == (LogRatio(3), 0)
    assert ranged.zcdp()[0] == bounded_range_to_zcdp(LogRatio(3))
    # The exponential mechanism of a score that can move both ways is epsilon-DP and of range 2 epsilon.
    both = PrivacyCost(1, bounded_range=2)
    assert (both.pair(), both.zcdp()) == ((1, 0), (F(1, 2), 0, 0))
    assert PrivacyCost(1, bounded_range="1/2").pair() == (F(1, 2), 0)
    noisy = PrivacyCost(mu2="1/25", distance="1e-20")
    assert (noisy.pair(), noisy.zcdp(), noisy.rho) == (None, (F(1, 50), 0, F("1e-20")), None)
    # A rho implies no mu2; of the two that are known the smaller rho counts.
    assert cost.mu2 is None
    assert PrivacyCost(rho="1/60", mu2="1/25").zcdp()[0] == F(1, 60)
    assert PrivacyCost(rho="1/40", mu2="1/25").zcdp()[0] == F(1, 50)
    for kept in (cost, ranged, both, noisy, PrivacyCost(mu2=0), PrivacyCost(0)):
        assert pickle.loads(pickle.dumps(kept)) == kept
        assert eval(repr(kept)) == kept
        assert hash(kept) == hash(pickle.loads(pickle.dumps(kept)))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: PrivacyCost(), "needs epsilon, rho, mu2 or bounded_range"),
        (lambda: PrivacyCost(rho=1, delta=0.1), "delta"),
        (lambda: PrivacyCost(1, distance=0.1), "distance"),
        (lambda: PrivacyCost(-1), "epsilon"),
        (lambda: PrivacyCost(rho=LogRatio(3)), "rho"),  # type: ignore[arg-type]
        (lambda: PrivacyCost(rho=-1), "rho"),
        (lambda: PrivacyCost(mu2=-1), "mu2"),
        (lambda: PrivacyCost(mu2="x"), "mu2"),
        (lambda: PrivacyCost(bounded_range="x"), "bounded_range"),
        (lambda: zcdp_delta(-1, 1), "rho"),
        (lambda: zcdp_delta(1, math.inf), "epsilon"),
        (lambda: zcdp_delta(1, 1, distance=2), "distance"),
        (lambda: zcdp_epsilon("1e400", "1e-6"), "rho"),
        (lambda: largest_rho(1, 1), "delta"),
        (lambda: largest_rho(1, "1e-6", distance=-1), "distance"),
        (lambda: zcdp_group_privacy(1, -1), "k"),
        (lambda: pure_to_zcdp(-1), "epsilon"),
    ],
)
def test_bad_parameters_are_named(call: Any, name: str) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        call()
