"""Random pairs, coarse grids and cuts: bounds of compositions are around slow references in fractions and decimals."""

from __future__ import annotations

import math
import random
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from userdp import BudgetError, LogRatio, _core
from userdp.accounting import PrivacyLossDistribution
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import parse_level
from userdp.exact.pmf import whole_multiples

DOWN, UP = Context(prec=60, rounding=ROUND_FLOOR), Context(prec=60, rounding=ROUND_CEILING)
# What is compared to 10^-200 has tails that are multiplied by up to e^370 = 10^160.
LONG = Context(prec=450)
Masses = list[Fraction]


def level_of(multiplier: Fraction) -> Any:
    return core_level(parse_level(LogRatio(multiplier.numerator, multiplier.denominator)))


def power_of_e(exponent: float, context: Context) -> Fraction:
    """e^exponent from one side: `decimal` rounds exp to nearest, so one unit of the last place is added."""
    nearest = Context(prec=60).exp(Decimal(exponent))
    return Fraction(nearest.next_plus(UP) if context is UP else nearest.next_minus(DOWN))


def divergence(p: Masses, q: Masses, multiplier: Fraction) -> Fraction:
    return sum((max(x - multiplier * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


def random_weights(rng: random.Random, outcomes: int, style: int) -> list[int]:
    def weight() -> int:
        if style == 0:
            return rng.choice([0, 1, 2, 3, rng.randrange(1, 50)])
        if style == 1:
            return rng.choice([0, 1, int(10 ** rng.randrange(300)), rng.randrange(1, 10**9)])
        return 10**12 + rng.randrange(int(10 ** rng.randrange(1, 12)))

    chosen = [weight() for _ in range(outcomes)]
    chosen[rng.randrange(outcomes)] += 1
    return chosen


def weights_on_levels(rng: random.Random, outcomes: int, steps: int) -> tuple[list[int], list[int]]:
    """Ratios that are e^(i / steps) but for rounding to a few digits or many."""
    p, q, context = [], [], Context(prec=80)
    for _ in range(outcomes):
        power = context.exp(context.divide(Decimal(rng.randrange(-3 * steps, 3 * steps)), Decimal(steps)))
        digits = rng.choice([5, 20, 40, 60])
        ratio = Fraction(int(power.scaleb(digits, context)) + rng.choice([0, 0, 1]) or 1, 10**digits)
        q.append(Fraction(rng.randrange(1, 100)))
        p.append(q[-1] * ratio)
    p, q = [*p, max(Fraction(sum(q) - sum(p)), Fraction(0))], [*q, max(Fraction(sum(p) - sum(q)), Fraction(0))]
    common = math.lcm(*(x.denominator for x in [*p, *q]))
    return [int(x * common) for x in p], [int(x * common) for x in q]


def product_law(parts: list[tuple[list[int], list[int], int]]) -> dict[Fraction, Fraction]:
    """P's mass at each finite ratio of a product."""
    law = {Fraction(1): Fraction(1)}
    for p, q, count in parts:
        for _ in range(count):
            longer: dict[Fraction, Fraction] = {}
            for ratio, mass in law.items():
                for x, y in zip(p, q, strict=True):
                    if x and y:
                        key = ratio * Fraction(x * sum(q), y * sum(p))
                        longer[key] = longer.get(key, Fraction(0)) + mass * Fraction(x, sum(p))
            law = longer
    return law


@pytest.mark.parametrize("seed", range(30))
def test_core_on_random_pairs_grids_and_cuts(seed: int) -> None:
    rng = random.Random(seed)
    steps, limbs = rng.choice([1, 2, 7, 32, 300]), rng.choice([2, 2, 3, 5])
    unit = 64 * limbs - 8
    cut = rng.choice([0, 0, 1, 2 ** (unit - 100), 2 ** (unit - 40), 2 ** (unit - 12)])
    parts = []
    for count in rng.choice([[1], [5], [2, 1], [3], [1, 1, 1]]):
        outcomes, style = rng.randint(1, 4), rng.randrange(4)
        if style == 3:
            parts.append((*weights_on_levels(rng, outcomes, steps), count))
        else:
            p = random_weights(rng, outcomes, style)
            parts.append((p, random_weights(rng, outcomes, rng.choice([style, 0])), count))
    law = product_law(parts)
    infinite = 1 - sum(law.values(), Fraction(0))

    def exact(multiplier: Fraction) -> Fraction:
        return infinite + sum((m * (1 - multiplier / r) for r, m in law.items() if r > multiplier), Fraction(0))

    whole = _core.Composed(
        [_core.Release.from_weights(p, q, limbs) for p, q, _ in parts], [count for *_, count in parts],
        limbs=limbs, resolution=Fraction(1, steps), cut=cut, max_terms=2**21, reach=rng.choice([1.0, 20.0, 700.0]),
    )  # fmt: skip
    near = [1 + Fraction(sign, 10**digits) for digits in (3, 9, 30) for sign in (-1, 0, 1)]
    asked = {r * rng.choice(near) for r in rng.choices(sorted(law), k=4)} if law else set()
    asked |= {Fraction(1), Fraction(rng.randint(10, 40), 10), Fraction(10 ** rng.randrange(40))}
    asked.add(power_of_e(rng.randrange(5 * steps) / steps, UP))
    for multiplier in sorted(asked):
        if multiplier < 1:
            continue
        true = exact(multiplier)
        lower, upper = whole.delta(level_of(multiplier))
        assert lower <= true <= upper
        for delta in {true, min(true * Fraction(rng.randint(80, 120), 100), Fraction(1))} - {0}:
            least, most = whole.epsilon(delta)
            assert math.isinf(most) or exact(power_of_e(most, UP)) <= delta
            assert not 0 < least < math.inf or exact(power_of_e(least, DOWN)) > delta


@pytest.mark.parametrize("digits", [12, 15, 18, 30])
@pytest.mark.parametrize("count", [100, 300])
def test_levels_close_together_far_from_zero(digits: int, count: int) -> None:
    # The loss is far larger than the distance of losses: floats do not tell which line is E's.
    step = 1 + Fraction(1, 10**digits)
    q = [Fraction(1, 4), Fraction(1, 4) / step]
    p, q = [Fraction(1, 2), Fraction(1, 2), Fraction(0)], [*q, 1 - sum(q, Fraction(0))]
    release = _core.Release.from_weights(whole_multiples(p), whole_multiples(q), 5)
    whole = _core.Composed([release], [count], limbs=5, resolution=Fraction(1, 32), cut=0, max_terms=2**20, reach=100.0)
    for place in (10, count // 2 - 1, count * 3 // 5):
        multiplier = 2**count * (1 + (step - 1) * (place + Fraction(1, 3)))
        ratios = (2**count * step**j for j in range(count + 1))
        true = sum((math.comb(count, j) * max(1 - multiplier / r, Fraction(0)) for j, r in enumerate(ratios)))
        lower, upper = whole.delta(level_of(multiplier))
        assert lower <= Fraction(true) / 2**count <= upper
        assert upper <= lower * Fraction(1001, 1000)


# --- closed forms, in decimals


def tail(x: Decimal) -> Decimal:
    """1 - Phi(x) by the series of odd powers, to hundreds of digits."""
    term = total = x.copy_abs()
    n = 0
    while term > Decimal("1e-440"):
        n += 1
        term = LONG.divide(LONG.multiply(LONG.multiply(term, x), x), Decimal(2 * n + 1))
        total = LONG.add(total, term)
    density = LONG.divide(
        LONG.exp(LONG.divide(LONG.multiply(x, x).copy_negate(), Decimal(2))), LONG.sqrt(LONG.multiply(Decimal(2), PI))
    )
    inner = LONG.multiply(density, total)
    return LONG.subtract(Decimal("0.5"), inner) if x >= 0 else LONG.add(Decimal("0.5"), inner)


def machin() -> Decimal:
    def arctan(x: int) -> Decimal:
        power, total, n = LONG.divide(Decimal(1), Decimal(x)), Decimal(0), 0
        while power > Decimal("1e-455"):
            total = LONG.add(total, LONG.divide(power if n % 2 == 0 else power.copy_negate(), Decimal(2 * n + 1)))
            power, n = LONG.divide(power, Decimal(x * x)), n + 1
        return total

    return LONG.subtract(LONG.multiply(Decimal(16), arctan(5)), LONG.multiply(Decimal(4), arctan(239)))


PI = machin()


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction) -> Decimal:
    mu = LONG.sqrt(LONG.divide(Decimal(mu_squared.numerator), Decimal(mu_squared.denominator)))
    loss = LONG.divide(Decimal(epsilon.numerator), Decimal(epsilon.denominator))
    center, half = LONG.divide(loss, mu), LONG.divide(mu, Decimal(2))
    far = LONG.multiply(LONG.exp(loss), tail(LONG.add(center, half)))
    return LONG.subtract(tail(LONG.subtract(center, half)), far)


def assert_around(bounds: tuple[Fraction, Fraction], value: Decimal) -> None:
    known, off = Fraction(value), Fraction(1, 10**200)
    assert bounds[0] <= known + off
    assert known - off <= bounds[1]


@pytest.mark.parametrize(("power", "count"), [*product([-40, -20, -6, 0, 4], [1, 3]), (8, 1)])
def test_gaussian_noise_of_all_sizes(power: int, count: int) -> None:
    rng = random.Random(100 * power + count)
    mu_squared = Fraction(2) ** power * (1 if power == 8 else Fraction(rng.randint(2**10, 2**11), 2**10))
    each = max(mu_squared / count, Fraction(1, 2**40))
    mu_squared, deviation = each * count, math.sqrt(float(each * count))
    for limbs, cells in ((2, 0.3), (2, 30.0), (5, 1.0)):
        unit = 64 * limbs - 8
        steps = min(max(int(1 / (cells * deviation)), 1), 2**40)
        whole = _core.Composed(
            [_core.Release.gaussian(each)], [count],
            limbs=limbs, resolution=Fraction(1, steps), cut=rng.choice([0, 2 ** (unit - 60)]), max_terms=2**20,
            reach=100.0,
        )  # fmt: skip
        for z in (0.0, rng.uniform(0, 3), rng.uniform(0, 15)):
            epsilon = Fraction(z * deviation + (float(mu_squared) / 2 if z else 0))
            bounds = whole.delta(core_level(parse_level(epsilon)))
            assert_around(bounds, gaussian_delta(mu_squared, epsilon))


@pytest.mark.parametrize("seed", range(20))
def test_bounded_range_is_its_closed_form(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.choice([1, 2, 7, 32])
    extent = rng.choice(
        [Fraction(rng.randint(1, 40), steps), Fraction(rng.randint(1, 4000), 2**10), Fraction(1, 10**60)]
    )
    whole = _core.Composed(
        [_core.Release.bounded_range(core_level(parse_level(extent)))], [1],
        limbs=2, resolution=Fraction(1, steps), cut=0, max_terms=2**20, reach=50.0,
    )  # fmt: skip
    quotient = LONG.divide(Decimal(extent.numerator), Decimal(extent.denominator))
    for share in (Fraction(0), Fraction(rng.randrange(1000), 1000), 1 - Fraction(1, 10**9), Fraction(1), Fraction(2)):
        loss = LONG.multiply(quotient, LONG.divide(Decimal(share.numerator), Decimal(share.denominator)))
        root = LONG.exp(LONG.divide(LONG.subtract(loss, quotient), Decimal(2)))
        rest = max(LONG.subtract(Decimal(1), root), Decimal(0))
        scale = LONG.subtract(Decimal(1), LONG.exp(quotient.copy_negate()))
        bounds = whole.delta(core_level(parse_level(extent * share)))
        assert_around(bounds, LONG.divide(LONG.multiply(rest, rest), scale))


# --- maxima of curves, and samples


def random_masses(rng: random.Random, outcomes: int) -> Masses:
    weights = random_weights(rng, outcomes, 0)
    return [Fraction(weight, sum(weights)) for weight in weights]


@pytest.mark.parametrize("seed", range(60))
def test_largest_curve_at_all_levels(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.randint(1, 6) for _ in range(rng.randint(1, 5))]
    pairs = [(random_masses(rng, size), random_masses(rng, size)) for size in sizes]
    ((part, _),) = PrivacyLossDistribution.from_pairs(pairs)._parts
    p, q = ([Fraction(x, sum(side)) for x in side] for side in (part.p, part.q))  # type: ignore[union-attr]
    ratios = {
        x / y for one, other in pairs for x, y in [*zip(one, other, strict=True), *zip(other, one, strict=True)] if y
    }
    for multiplier in [
        *ratios,
        Fraction(0),
        *(Fraction(rng.randrange(1000), rng.randrange(1, 300)) for _ in range(10)),
    ]:
        known = max(max(divergence(x, y, multiplier), divergence(y, x, multiplier)) for x, y in pairs)
        assert divergence(p, q, multiplier) == known
        assert divergence(q, p, multiplier) == known


def test_disjoint_pairs_have_a_largest_curve() -> None:
    assert PrivacyLossDistribution.from_pairs([([1, 0], [0, 1])]).delta(7).lower == 1


def test_many_pairs_have_a_largest_curve_soon() -> None:
    rng = random.Random(0)
    pairs = [([x := rng.random(), 1 - x], [y := rng.random(), 1 - y]) for _ in range(500)]
    assert PrivacyLossDistribution.from_pairs(pairs).delta(0).upper > 0.9


def test_samples_of_a_symmetric_pair_have_two_orders() -> None:
    # Four samples: the order in which a user is added has the larger delta.
    pair = ["35/38", "3/38"], ["3/40", "37/40"]
    base, rate = PrivacyLossDistribution.from_pairs([pair], neighbors="add-remove"), Fraction(17, 20)
    ((part, _),) = base._parts
    p, q = ([Fraction(x, sum(side)) for x in side] for side in (part.p, part.q))  # type: ignore[union-attr]
    mixed = [rate * x + (1 - rate) * y for x, y in zip(p, q, strict=True)]
    joint = [(Fraction(1), Fraction(1))]
    for _ in range(4):
        joint = [(a * x, b * y) for a, b in joint for x, y in zip(mixed, q, strict=True)]
    with_user, without = [a for a, _ in joint], [b for _, b in joint]
    for multiplier in (Fraction(6, 5), Fraction(3)):
        known = max(divergence(with_user, without, multiplier), divergence(without, with_user, multiplier))
        asked = LogRatio(multiplier.numerator, multiplier.denominator)
        bounds = base.poisson(rate).self_compose(4).delta(asked, relative=0.05)
        assert Fraction(bounds.lower) <= known <= Fraction(bounds.upper)


# --- extremes


@pytest.mark.parametrize("epsilon", ["1e-25", "1e-70", "1e-120"])
def test_tiny_losses(epsilon: str) -> None:
    # To first order delta is the mean of [loss]_+: of three signs 3/4, each of half a loss.
    made = PrivacyLossDistribution.pure(epsilon).self_compose(3).delta(0)
    assert Fraction(made.lower) <= Fraction(epsilon) * Fraction(3, 4) * (1 + Fraction(1, 10**20))
    assert made.upper == pytest.approx(0.75 * float(epsilon), rel=1e-12)
    assert made.lower == pytest.approx(made.upper, rel=1e-12)
    noise = PrivacyLossDistribution.discrete_laplace(epsilon, shift=3).self_compose(3).delta(0)
    assert noise.lower == pytest.approx(2.25 * float(epsilon), rel=1e-12)
    assert PrivacyLossDistribution.pure("1e-400").self_compose(3).delta(0).upper == 5e-324
    with pytest.raises(BudgetError, match="bits do not do; found so far: delta from 0 to"):
        PrivacyLossDistribution.pure("1e-290").self_compose(3).delta(0)


def test_losses_close_to_one_another() -> None:
    for count in (10**18, 2**64, 10**57):
        p, q = Fraction(count, 2 * count + 1), Fraction(count + 1, 2 * count + 1)
        made = PrivacyLossDistribution.from_pmfs([p, q], [q, p]).self_compose(5).delta(0)
        # TV of five releases is 15/8 of TV of one, to first order.
        assert made.lower == pytest.approx(float(Fraction(15, 8) * (q - p)), rel=1e-12)
        assert made.upper == pytest.approx(made.lower, rel=1e-12)


def test_ties_of_one_release_are_decided() -> None:
    pair = PrivacyLossDistribution.from_pmfs(["2/3", "1/3"], ["1/3", "2/3"])
    assert pair.is_private(0, "1/3") is True
    assert pair.is_private(0, Fraction(1, 3) - Fraction(1, 10**90)) is False
    made = PrivacyLossDistribution.pure(1, "1e-6")
    assert made.is_private(1, "1e-6") is True
    assert made.is_private(2, "1e-6") is True
    assert made.is_private("0.999999", "1e-6") is False
    assert made.epsilon("1e-6").upper == 1
    partly = PrivacyLossDistribution.from_pmfs(["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"])
    assert partly.compose(partly).is_private(LogRatio(4, 1), 0) is True
    lacking = PrivacyLossDistribution.from_pmfs(["2/3", "1/3"], ["1", "0"])
    assert lacking.is_private(3, "1/3") is True
    assert lacking.epsilon("1/3").upper == pytest.approx(0, abs=1e-30)  # 1 - 2 E / 3, and 1 / 3 in the other order
    assert PrivacyLossDistribution.pure("1e-9").self_compose(10**9).is_private(1, 0) is True


def test_huge_counts_and_losses_are_answered_or_refused() -> None:
    assert PrivacyLossDistribution.pure(2**17).self_compose(10**12).delta(5).lower > 0.999
    assert PrivacyLossDistribution.pure(2**17).self_compose(10**12).is_private(2**17 * 10**12, 0) is True
    with pytest.raises(ValueError, match=r"losses may be at most 2\^58 together"):
        PrivacyLossDistribution.pure(2**20).self_compose(10**12).delta(5)
    with pytest.raises(ValueError, match=r"count: there may be at most 2\*\*40"):
        PrivacyLossDistribution.pure(1).self_compose(10**30)
    with pytest.raises(ValueError, match=r"range.*must be at least 2\^-1000"):
        PrivacyLossDistribution.bounded_range("1e-400").delta(0)
    assert PrivacyLossDistribution.pure(1).self_compose(2).delta(1, max_terms=10**30).upper < 1


@pytest.mark.parametrize("value", [None, 1, "text", b"text", object(), [None], [1], [[1, 2, 3]], ["ab"]])
def test_lists_of_pairs_are_read_strictly(value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^pairs must be"):
        PrivacyLossDistribution.from_pairs(value)
    with pytest.raises((TypeError, ValueError), match=r"^parts must be"):
        PrivacyLossDistribution.composed(value)
