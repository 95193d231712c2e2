"""Where losses end, single releases by closed forms, and bounds by moments: against fractions and the normal law."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import pytest

from userdp import BudgetError, LogRatio
from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.accounting import compose_optimal, group_privacy, subsampling_amplification
from userdp.accounting.refinement import Refined
from userdp.accounting.tail_bounds import tails_of
from userdp.report import Report

PHI = NormalDist().cdf


def test_epsilon_at_the_mass_at_infinity() -> None:
    twice = PLD.pure(1, "0.1").self_compose(2)
    assert twice.epsilon("0.19").upper == compose_optimal(1, 2, "0.19", "0.1") == 2
    assert twice.epsilon("0.18").lower == math.inf
    assert twice.is_private(2, "0.19") is True
    assert twice.is_private("1.999", "0.19") is False
    both = PLD.pure("0.5", "1e-6").compose(PLD.pure("0.25"))
    assert both.epsilon("1e-6").upper == 0.75
    assert Fraction(both.delta("0.75").lower) <= Fraction(1, 10**6) <= Fraction(both.delta("0.75").upper)
    for losses, delta in ((twice, "0.19"), (both, "1e-6")):
        certificate = Report.from_json(losses.certificate(delta=delta))
        assert certificate.verify().finding == "established"
        assert certificate.delta == Fraction(delta)


@pytest.mark.parametrize("seed", range(40))
def test_ends_add_up(seed: int) -> None:
    draw = random.Random(seed)
    pairs: list[list[tuple[Fraction, Fraction]]] = []
    parts = []
    for _ in range(draw.randint(1, 3)):
        ratio, delta = Fraction(draw.randint(5, 12), 4), Fraction(draw.choice([0, 1, 2, 3]), 20)
        parts.append((PLD.pure(LogRatio(ratio.numerator, ratio.denominator), delta), draw.randint(1, 2)))
        rest = (1 - delta) / (1 + ratio)
        zero = Fraction(0)
        pairs += [[(rest * ratio, rest), (rest, rest * ratio), (delta, zero), (zero, delta)]] * parts[-1][1]
    whole = PLD.composed(parts)
    outcomes = list(itertools.product(*pairs))
    p = [math.prod((x for x, _ in outcome), start=Fraction(1)) for outcome in outcomes]
    q = [math.prod((y for _, y in outcome), start=Fraction(1)) for outcome in outcomes]
    infinite = sum((x for x, y in zip(p, q, strict=True) if not y), Fraction(0))
    largest = max(x / y for x, y in zip(p, q, strict=True) if y)
    level = LogRatio(largest.numerator, largest.denominator)
    assert whole.is_private(level, infinite) is True
    found = whole.epsilon(infinite)
    assert found.lower <= float(level) <= found.upper <= found.lower + 1e-12
    below = largest * Fraction(99, 100)
    exact = sum((max(x - below * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))
    assert exact > infinite
    delta = whole.delta(LogRatio(below.numerator, below.denominator))
    assert Fraction(delta.lower) <= exact <= Fraction(delta.upper)
    assert whole.is_private(LogRatio(below.numerator, below.denominator), infinite) is False
    if infinite:
        assert whole.epsilon(infinite * Fraction(99, 100)).lower == math.inf


def test_small_ends_are_no_answer() -> None:
    # The largest loss is within the width that is asked, and bounds are as narrow as they are for larger ones.
    for losses in (PLD.pure("1e-9").self_compose(100), PLD.laplace(1, "1e-9"), PLD.bounded_range("1e-9")):
        found = losses.epsilon("1e-11")
        assert 0 < found.lower <= found.upper <= found.lower * (1 + 1e-6)


def test_long_products_are_enclosed() -> None:
    many = PLD.pure("1e-3", "1e-9").self_compose(10**6)
    # 1 - (1 - d)^k, to the third power of k d.
    exact = -math.expm1(10**6 * math.log1p(-1e-9))
    assert many.delta(1000).upper == pytest.approx(exact, rel=1e-12) == many.delta(1000).lower
    assert PLD.pure(1, "1e-9").self_compose(10**12).delta(10**13).lower > 0.999


@pytest.mark.parametrize("seed", range(40))
def test_one_sampled_release_is_its_closed_form(seed: int) -> None:
    draw = random.Random(seed)
    sigma, rate = draw.choice([0.5, 1.0, 2.0, 4.0]), Fraction(1, draw.choice([1, 3, 100, 10**5, 10**8]))
    epsilon = Fraction(draw.choice([0.0, 1e-9, 1e-3, 0.5, 2.0])) * draw.choice([Fraction(1), rate])
    level = 1 + math.expm1(epsilon) / float(rate)
    mu, loss = 1 / sigma, math.log(level)
    exact = float(rate) * (PHI(mu / 2 - loss / mu) - level * PHI(-mu / 2 - loss / mu))
    poisson = PLD.gaussian(sigma, neighbors="add-remove").poisson(rate)
    for sampled in (poisson, PLD.gaussian(sigma, neighbors="replace").without_replacement(1, rate.denominator)):
        found = sampled.delta(epsilon)
        assert 0 <= found.upper - found.lower <= 1e-15 * found.upper + 5e-324
        # The normal law of the standard library has about so many digits here.
        assert found.upper == pytest.approx(exact, rel=1e-6, abs=1e-14 * float(rate))
        if found.upper > 1e-200:
            back = sampled.epsilon(found.upper)
            assert back.lower <= float(epsilon) * (1 + 1e-9) + 1e-15
            assert sampled.is_private(epsilon, found.upper) is True
            assert sampled.is_private(epsilon, Fraction(found.lower) * Fraction(999, 1000)) is False


def test_tiny_rates_need_no_composition(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a composition was made")

    monkeypatch.setattr(Refined, "_composed", refuse)
    sampled = PLD.gaussian(1, neighbors="add-remove").poisson("1e-5")
    assert sampled.delta(0).upper == pytest.approx(1e-5 * (2 * PHI(0.5) - 1), rel=1e-12)
    assert PLD.laplace(1).delta(0).upper == pytest.approx(-math.expm1(-0.5), rel=1e-14)
    assert PLD.bounded_range(1).delta(0).upper == pytest.approx(math.tanh(0.25), rel=1e-14)


KINDS = [
    PLD.gaussian(2).compose(PLD.laplace(4)).self_compose(8),
    PLD.gaussian(1, neighbors="add-remove").poisson("0.02").self_compose(300),
    PLD.from_pmfs(["1/2", "1/4", "1/4"], ["1/4", "1/4", "1/2"]).compose(PLD.bounded_range("1/3")).self_compose(20),
    PLD.pure("1/5", "1e-9").self_compose(40),
    PLD.discrete_gaussian(9, 2).compose(PLD.discrete_laplace("1/5", 2)).self_compose(10),
]


@pytest.mark.parametrize("losses", KINDS, ids=repr)
@pytest.mark.parametrize("backwards", [False, True])
def test_moments_bound_what_a_composition_says(losses: PLD, backwards: bool) -> None:
    limbs, cut, _ = losses._rounding(Fraction(1, 10**6))
    tails = tails_of(losses._parts, backwards, limbs, cut)
    assert tails is not None
    least, _ = losses._epsilon(Fraction(1, 10**6), backwards, Fraction(1, 100), 2**20)
    above = tails.epsilon_above(Fraction(1, 10**6))
    assert least <= above <= 2 * least
    assert tails.delta_above(Fraction(above)) <= Fraction(1, 10**6) * (1 + Fraction(1, 10**6))
    assert tails.delta_above(Fraction(least)) >= Fraction(1, 10**6)


def test_what_is_too_large_is_refused_with_a_bound_before_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("a composition was made")

    monkeypatch.setattr(Refined, "_composed", refuse)
    losses = PLD.gaussian("0.1", neighbors="add-remove").poisson("0.01").self_compose(10000)
    with pytest.raises(BudgetError, match=r"max_terms.*found so far: epsilon from 0 to (\d+)") as caught:
        losses.epsilon("1e-5")
    epsilon = float(str(caught.value).rsplit(" ", 1)[1])
    # The mean loss is about 10000 * 0.01 * (50 - ln 100). A user is in at most 150 samples, but for a probability of
    # 1e-6, and 150 releases without samples have an epsilon of at most 150 * 50 + 5 * sqrt(150 * 100).
    assert 4500 < epsilon < 8200
    with pytest.raises(BudgetError, match="found so far: delta from 0 to") as caught:
        losses.delta(math.ceil(epsilon))
    assert float(str(caught.value).rsplit(" ", 1)[1]) <= 1.1e-5
    assert losses.is_private(math.ceil(epsilon), "1e-5") is True
    assert losses.is_private(4000, "1e-5") is None


def test_ends_that_are_too_long_to_be_written_out() -> None:
    # 16,384 times about ln 2: a power of 2^20 bits.
    losses = PLD.discrete_laplace(LogRatio(2**64 + 1, 2**63 + 11), 16384)
    exact = 16384 * math.log((2**64 + 1) / (2**63 + 11))
    found = losses.epsilon(0)
    assert found.lower <= exact <= found.upper <= found.lower * (1 + 1e-14)
    assert losses.is_private(12000, 0) is True
    assert losses.is_private(11000, 0) is False
    assert PLD.pure(12000).dominates(losses) is True


@pytest.mark.parametrize("seed", range(60))
def test_bounds_from_above_may_be_passed_on(seed: int) -> None:
    """As the decimals that they print as, which are what a float is read as."""
    draw = random.Random(seed)
    masses = [[Fraction(draw.randint(1, 9)) for _ in range(3)] for _ in range(2)]
    pair = [[mass / sum(row) for mass in row] for row in masses]
    delta = Fraction(draw.randint(1, 30), 1000)
    for losses in (
        PLD.from_pmfs(*pair),
        PLD.laplace(1, Fraction(draw.randint(1, 200), 100)),
        PLD.gaussian(Fraction(draw.randint(50, 300), 100)),
        PLD.pure(Fraction(draw.randint(1, 100), 100)).self_compose(3),
    ):
        upper = losses.epsilon(delta).upper
        assert losses.is_private(upper, delta) is not False, losses
        bound = losses.delta(Fraction(draw.randint(0, 100), 100))
        assert bound.lower <= bound.upper
    epsilon, many = Fraction(draw.randint(1, 300), 100), draw.randint(2, 9)
    grouped = group_privacy(epsilon, "1e-6", many)
    with localcontext() as context:
        context.prec = 60
        exact = sum((Decimal(step * epsilon.numerator) / epsilon.denominator).exp() for step in range(many))
        assert Decimal(str(grouped.delta)) >= min(exact * Decimal("1e-6"), Decimal(1))
        share = Decimal(many) / 36
        fewer = (1 + share * ((Decimal(epsilon.numerator) / epsilon.denominator).exp() - 1)).ln()
        amplified = subsampling_amplification(epsilon, 0, n_sampled=many, n_total=36)
        assert Decimal(str(amplified.epsilon)) >= fewer
