"""The exact curve of Gaussian noise, and the most of it under a claim: against figures by mpmath with 400 digits."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from userdp.accounting import (
    PrivacyLossDistribution,
    bounded_range_to_mu2,
    gaussian_delta,
    largest_mu2,
    largest_rho,
)
from userdp.exact.numbers import LogRatio

CURVE = [
    ("0.05", "1", "2.915320612294617748321116e-7"),
    ("0.01", "0", "0.03987761167674492319264294"),
    ("0.0004", "0.5", "3.129776772980134037655401e-141"),
    ("2", "3", "0.03167219418578685375313469"),
    ("9", "0.1", "0.8595863792150228518828801"),
    ("0.001", "1", "1.477283418208657924214593e-222"),
    ("100", "300", "8.716404578410703028710533e-139"),
    ("1e-9", "1e-4", "6.733889810413060648773808e-9"),
]
LARGEST = [
    ("0.5", "1e-6", "0.01540233622718765846090863"),
    ("1", "1e-6", "0.05602896382526067708438505"),
    ("2", "1e-6", "0.2010040394452249004626639"),
    ("4", "1e-6", "0.7020072968323963707602535"),
    ("1", "1e-5", "0.07185140465483643382927603"),
    ("1", "1e-9", "0.03311483049017331268627432"),
    ("0", "0.25", "0.4061241770704861808267563"),
    ("1e-3", "1e-12", "3.413783110820952569562336e-8"),
    ("30", "1e-20", "8.11575029160463348459015"),
    ("1", "1e-250", "0.0008854565205990726352167161"),
]


@pytest.mark.parametrize(("mu2", "epsilon", "delta"), CURVE)
def test_the_curve_is_rounded_up_by_next_to_nothing(mu2: str, epsilon: str, delta: str) -> None:
    exact, found = Fraction(delta), gaussian_delta(mu2, epsilon)
    assert exact * (1 - Fraction(1, 10**23)) <= found <= exact * (1 + Fraction(1, 2**58))


@pytest.mark.parametrize(("epsilon", "delta", "mu2"), LARGEST)
def test_the_largest_mu2_is_certified_and_within_a_part_in_2_to_the_39(epsilon: str, delta: str, mu2: str) -> None:
    exact, found = Fraction(mu2), largest_mu2(epsilon, delta)
    assert exact * (1 - Fraction(1, 2**38)) <= found <= exact
    assert gaussian_delta(found, epsilon) <= Fraction(delta) < gaussian_delta(found * (1 + Fraction(1, 2**38)), epsilon)


@pytest.mark.parametrize(
    ("epsilon", "delta", "half"),
    [
        ("0.5", "1e-6", 0.0077012),
        (1, "1e-6", 0.0280145),
        (2, "1e-6", 0.1005020),
        (4, "1e-6", 0.3510036),
        (1, "1e-5", 0.0359257),
        (1, "1e-9", 0.0165574),
    ],
)
def test_it_is_more_than_zero_concentration_allows(epsilon: Any, delta: str, half: float) -> None:
    found = largest_mu2(epsilon, delta) / 2
    assert float(found) == pytest.approx(half, abs=6e-8)
    assert 1.1 < found / largest_rho(epsilon, delta) < 1.18


def test_a_distance_and_deltas_are_taken_from_delta() -> None:
    distance, added = Fraction(1, 10**8), Fraction(1, 10**7)
    found = largest_mu2(1, "1e-6", distance=distance, added_delta=added)
    left = Fraction("1e-6") - added - (1 + Fraction(math.e)) * distance
    assert found == pytest.approx(largest_mu2(1, left), rel=1e-11)
    assert gaussian_delta(found, 1, distance=distance) + added <= Fraction("1e-6")
    with pytest.raises(ValueError, match="leave nothing of it"):
        largest_mu2(1, "1e-6", distance="1e-6")
    with pytest.raises(ValueError, match="leave nothing of it"):
        largest_mu2(1, "1e-6", added_delta="1e-6")


def test_logarithms_of_fractions_are_levels() -> None:
    assert gaussian_delta("0.05", LogRatio(3, 1)) == pytest.approx(gaussian_delta("0.05", math.log(3)), rel=1e-14)
    assert largest_mu2(LogRatio(3, 1), "1e-6") == pytest.approx(largest_mu2(math.log(3), "1e-6"), rel=1e-11)


RANGE = PrivacyLossDistribution.bounded_range("0.07646")


def test_slots_leave_what_is_published() -> None:
    # By quadrature with 30 digits: 0.0541856, where zero-concentration leaves 2 (rho - range^2 / 8) = 0.0472504.
    found = largest_mu2(1, "1e-6", slots=[(RANGE, 1)])
    assert 0.054183 < found < 0.0541861
    assert found > 2 * (largest_rho(1, "1e-6") - Fraction("0.07646") ** 2 / 8) > Fraction("0.04725")
    mu = Fraction(math.isqrt(math.floor(found * 2**80)), 2**40)
    together = RANGE.compose(PrivacyLossDistribution.gaussian(1, mu))
    assert together.is_private(1, "1e-6")
    assert RANGE.compose(PrivacyLossDistribution.gaussian(1, mu * Fraction("1.0001"))).is_private(1, "1e-6") is False


def test_a_count_of_none_is_no_slot() -> None:
    assert largest_mu2(1, "1e-5", slots=[(RANGE, 0)]) == largest_mu2(1, "1e-5")


def test_slots_of_gaussian_noise_are_a_part_of_the_budget() -> None:
    noise = PrivacyLossDistribution.gaussian(10)
    left = largest_mu2(1, "1e-6") - Fraction(3, 100)
    assert largest_mu2(1, "1e-6", slots=[(noise, 3)]) == pytest.approx(left, rel=1e-4)


def test_the_worse_order_of_a_slot_counts() -> None:
    # In one order the pair has a loss of at most ln(19/18), in the other one of ln 2.
    pair = PrivacyLossDistribution.from_pmfs(["0.05", "0.95"], ["0.1", "0.9"])
    found = largest_mu2(1, "1e-2", slots=[(pair, 1)])
    mu = Fraction(math.isqrt(math.floor(found * 2**80)), 2**40)
    # N(0, 1), N(mu, 1) after the pair, in both orders: a mixture of two values of the curve.
    turned = [(Fraction(1, 10), Fraction(1, 20)), (Fraction(9, 10), Fraction(19, 20))]
    deltas = [
        sum(p * gaussian_delta(mu * mu, max(1 - math.log(p / q), 0)) for p, q in pairs)
        for pairs in (turned, [(q, p) for p, q in turned])
    ]
    assert max(deltas) == pytest.approx(1e-2, rel=1e-4)
    assert min(deltas) < 0.9e-2


def test_slots_that_take_everything() -> None:
    with pytest.raises(ValueError, match="slots alone cost more"):
        largest_mu2(1, "1e-6", slots=[(PrivacyLossDistribution.pure("1.1"), 1)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 2000, "delta": "1e-6"}, "epsilon must be at most 1024"),
        ({"epsilon": 1, "delta": 1}, "delta must be below 1"),
        ({"epsilon": 1, "delta": 0}, "delta=0 is too small"),
        ({"epsilon": 1, "delta": "1e-6", "distance": 2}, "distance"),
        ({"epsilon": 1, "delta": "1e-6", "added_delta": -1}, "added_delta"),
        ({"epsilon": 1, "delta": "1e-6", "slots": [(RANGE, -1)]}, "a count"),
    ],
)
def test_bad_values_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        largest_mu2(**arguments)


@pytest.mark.parametrize("slots", ["slots", 3, [RANGE], [(RANGE, 1, 1)], [("0.1", 1)]])
def test_bad_slots_are_named(slots: Any) -> None:
    with pytest.raises(TypeError, match="slots must be pairs of a PrivacyLossDistribution and an int"):
        largest_mu2(1, "1e-6", slots=slots)


def test_a_negative_mu2_is_refused() -> None:
    with pytest.raises(ValueError, match="mu2 must be >= 0"):
        gaussian_delta("-0.1", 1)


# Bounded range.


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], level: Fraction) -> Fraction:
    return sum((max(x - level * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


def two_points(high: float, low: float) -> tuple[list[Fraction], list[Fraction]]:
    """The pair with the losses high >= 0 >= low, nearly, and exactly normalized."""
    up, down = Fraction(math.exp(high)), Fraction(math.exp(low))
    mass = (1 - down) / (up - down)
    return [up * mass, down * (1 - mass)], [mass, 1 - mass]


@pytest.mark.parametrize("width", [0.001, 0.07646, 0.5, 1, 3, 8])
def test_gaussian_noise_dominates_bounded_range(width: float) -> None:
    mu2 = bounded_range_to_mu2(width)
    for part in (0.1, 0.3, 0.5, 0.55, 0.7, 0.85, 0.97):
        p, q = two_points(part * width, (part - 1) * width)
        for at in (0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95):
            epsilon = at * width
            level = Fraction(math.exp(epsilon))
            # The pair's width is that asked for to 1e-15, and so is the level.
            most = gaussian_delta(mu2, epsilon) * (1 + Fraction(1, 10**9)) + Fraction(1, 10**14)
            assert hockey_stick(p, q, level) <= most
            assert hockey_stick(q, p, level) <= most


@pytest.mark.parametrize("width", [0.001, 0.07646, 0.5])
def test_a_percent_less_does_not_dominate(width: float) -> None:
    p, q = two_points(width / 2, -width / 2)
    assert hockey_stick(p, q, Fraction(1)) > gaussian_delta(bounded_range_to_mu2(width) * Fraction(99, 100), 0)


def test_any_mechanism_of_bounded_range_is_dominated() -> None:
    generator = random.Random(1)
    for _ in range(60):
        weights = [Fraction(generator.randint(1, 50)) for _ in range(4)]
        factors = [Fraction(generator.randint(100, 200), 100) for _ in range(4)]
        p = [x / sum(weights) for x in weights]
        tilted = [x * f for x, f in zip(weights, factors, strict=True)]
        q = [x / sum(tilted) for x in tilted]
        width = max(factors) / min(factors)
        mu2 = bounded_range_to_mu2(LogRatio(width.numerator, width.denominator))
        for at in (0, 0.05, 0.2, 0.4):
            level = Fraction(math.exp(at))
            most = gaussian_delta(mu2, at) + Fraction(1, 10**14)
            assert max(hockey_stick(p, q, level), hockey_stick(q, p, level)) <= most


@pytest.mark.parametrize(("width", "count", "mu2"), [("0.3", 5, "0.05"), ("0.5", 2, "0.5"), ("1", 3, "0.01")])
def test_ranges_and_noise_together_cost_no_more_than_their_mu2(width: str, count: int, mu2: str) -> None:
    mu = Fraction(math.isqrt(math.floor(Fraction(mu2) * 2**80)), 2**40)
    together = PrivacyLossDistribution.composed(
        [(PrivacyLossDistribution.bounded_range(width), count), (PrivacyLossDistribution.gaussian(1, mu), 1)]
    )
    total = count * bounded_range_to_mu2(width) + mu * mu
    for epsilon in ("0.2", "1", "2.5"):
        assert together.delta(epsilon).lower <= gaussian_delta(total, epsilon)
    # Nor much less: the budget of slots is the better one by a sixth of what ranges cost.
    assert together.delta(1).upper > gaussian_delta(total - count * bounded_range_to_mu2(width) / 4, 1)


def test_the_distances_of_slots_are_added() -> None:
    slot = PrivacyLossDistribution.bounded_range("0.05")
    near = largest_mu2(1, "1e-6", slots=[(slot.within("1e-8"), 2)])
    assert near == largest_mu2(1, "1e-6", slots=[(slot, 2)], distance="2e-8")
    assert near < largest_mu2(1, "1e-6", slots=[(slot, 2)])


@pytest.mark.parametrize(
    ("mu2", "epsilon"), [("1e-4", "1"), ("1", "1000"), ("1e-300", "1e-9"), ("1e9", "0"), ("1e300", "1024")]
)
def test_nothing_is_computed_where_the_curve_is_next_to_0_or_1(mu2: str, epsilon: str) -> None:
    smaller = Fraction(mu2) < 10
    assert gaussian_delta(mu2, epsilon) == (Fraction(1, 2**4096) if smaller else 1)


def test_curves_at_random_ends() -> None:
    draw = random.Random(7)
    for _ in range(60):
        x = draw.uniform(-60, 60)  # epsilon / mu - mu / 2
        epsilon = 10.0 ** draw.uniform(-300, 2.5)
        # mu = 2 epsilon / (x + sqrt(x^2 + 2 epsilon)), without the difference of what is nearly equal.
        root = math.sqrt(x * x + 2 * epsilon)
        mu = 2 * epsilon / (x + root) if x > 0 else root - x
        found = gaussian_delta(Fraction(mu) ** 2, epsilon)
        # Phi(-x) and its bounds, by the complementary error function.
        assert found <= Fraction(0.5 * math.erfc(x / math.sqrt(2)) * (1 + 1e-9) + 1e-300)
        if x < -8:
            assert 1 - found < Fraction(1, 10**12)
