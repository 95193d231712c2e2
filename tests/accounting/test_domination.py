"""Which releases dominate which: every verdict against the curves of both at all levels, in fractions."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio
from userdp.accounting import PrivacyLossDistribution as PLD

REPLACE: Any = {"neighbors": "replace"}
ONE = PLD.gaussian(1, **REPLACE)

Pair = list[tuple[Fraction, Fraction]]


def curve(pair: Pair, level: Fraction) -> Fraction:
    return sum((max(p - level * q, Fraction(0)) for p, q in pair), Fraction(0))


def nowhere_below(big: Pair, small: Pair) -> bool:
    """At the corners of both curves, between which both are lines, and beyond."""
    corners = sorted({Fraction(0)} | {p / q for pair in (big, small) for p, q in pair if q})
    return all(curve(small, level) <= curve(big, level) for level in [*corners, corners[-1] + 1])


def random_pair(rng: random.Random, outcomes: int) -> Pair:
    def masses() -> list[Fraction]:
        weights = [rng.choice([0, *[rng.randint(1, 12)] * 5]) for _ in range(outcomes)]
        weights[rng.randrange(outcomes)] += 1
        return [Fraction(weight, sum(weights)) for weight in weights]

    return list(zip(masses(), masses(), strict=True))


def garbled(rng: random.Random, pair: Pair, outcomes: int) -> Pair:
    """A random function of the outcome, which is dominated."""
    channel = [[p for p, _ in random_pair(rng, outcomes)] for _ in pair]
    return [
        (
            sum((row[new] * p for row, (p, _) in zip(channel, pair, strict=True)), Fraction(0)),
            sum((row[new] * q for row, (_, q) in zip(channel, pair, strict=True)), Fraction(0)),
        )
        for new in range(outcomes)
    ]


def release(pair: Pair) -> PLD:
    return PLD.from_pmfs([p for p, _ in pair], [q for _, q in pair])


def product(*pairs: Pair) -> Pair:
    return [(math.prod(p for p, _ in row), math.prod(q for _, q in row)) for row in itertools.product(*pairs)]


@pytest.mark.parametrize("seed", range(100))
def test_finite_pairs_are_decided_exactly(seed: int) -> None:
    rng = random.Random(seed)
    big, other = random_pair(rng, rng.randint(1, 4)), random_pair(rng, rng.randint(1, 4))
    small = garbled(rng, big, 3)
    assert nowhere_below(big, small)
    assert release(big).dominates(release(small)) is True
    for one, two in ((big, other), (other, big), (small, big)):
        assert release(one).dominates(release(two)) is nowhere_below(one, two)


def test_levels_below_one_count() -> None:
    # The first is below the second at all E >= 1, and its square is above the other's at E = 605/588.
    first = [(Fraction(26, 27), Fraction(11, 21)), (Fraction(1, 27), Fraction(10, 21))]
    second = [(Fraction(2, 7), Fraction(8, 11)), (Fraction(5, 7), Fraction(3, 11))]
    corners = [p / q for p, q in first + second if p >= q] + [Fraction(1), Fraction(9)]
    assert all(curve(first, level) <= curve(second, level) for level in corners)
    squares = [curve(product(pair, pair), Fraction(605, 588)) for pair in (first, second)]
    assert squares[0] > squares[1]
    assert release(second).dominates(release(first)) is False


def test_a_symmetric_pair_above_one_order_does_not_do() -> None:
    # Randomized response at e^epsilon = 3 is above this pair at all E >= 1, and once squared it is not.
    pair = [(Fraction(1, 30), Fraction(8, 15)), (Fraction(29, 30), Fraction(7, 15))]
    response = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    assert all(curve(pair, level) <= curve(response, level) for level in (Fraction(1), Fraction(29, 14), Fraction(3)))
    assert curve(product(pair, pair), Fraction(1)) == Fraction(43, 60) > curve(product(response, response), Fraction(1))
    assert release(response).dominates(release(pair)) is False
    assert PLD.pure(LogRatio(3, 1)).dominates(release(pair)) is False


def test_mass_at_infinity_is_part_of_the_whole() -> None:
    # The same finite masses, with and without what is at infinity.
    with_infinity = [(Fraction(1, 10), Fraction(0)), (Fraction(9, 10), Fraction(1))]
    without = [(Fraction(1), Fraction(1))]
    assert release(with_infinity).dominates(release(without)) is True
    assert release(without).dominates(release(with_infinity)) is False
    larger = [(Fraction(2, 10), Fraction(0)), (Fraction(8, 10), Fraction(1))]
    assert release(larger).dominates(release(with_infinity)) is True
    # A loss of 10^6 is not infinite.
    far = [(Fraction(1, 10), Fraction(1, 10**7)), (Fraction(9, 10), 1 - Fraction(1, 10**7))]
    assert release(far).dominates(release(with_infinity)) is False
    # Q's mass where P has none is at infinity in the other order.
    assert release([(q, p) for p, q in without]).dominates(release([(q, p) for p, q in with_infinity])) is False


@pytest.mark.parametrize(
    ("above", "below", "verdict"),
    [
        (PLD.gaussian(1), PLD.gaussian(2), True),
        (PLD.gaussian(2), PLD.gaussian(1), False),
        (PLD.gaussian(2).self_compose(4), PLD.gaussian(1), True),
        (PLD.pure(1), PLD.pure("1/2"), True),
        (PLD.pure("1/2"), PLD.pure(1), False),
        (PLD.pure(1), PLD.pure(1), True),
        (PLD.pure(1, "1/100"), PLD.pure(1), True),
        (PLD.pure(1), PLD.pure(1, "1/100"), False),
        (PLD.pure(1, "1/4"), PLD.pure("11/10"), True),
        (PLD.pure(1, "1/100"), PLD.pure(2), False),
        (PLD.pure(1), PLD.pure("1/2").self_compose(2), True),
        (PLD.pure("9/10"), PLD.pure("1/2").self_compose(2), False),
        (PLD.pure(1), PLD.bounded_range(1), True),
        (PLD.pure(1), PLD.bounded_range("101/100"), False),
        (PLD.pure(1), PLD.discrete_laplace("1/10", 10), True),
        (PLD.discrete_laplace("1/10", 10), PLD.pure(1), False),
        (PLD.discrete_laplace("1/10", 10), PLD.discrete_laplace("1/10", 9), True),
        (PLD.discrete_laplace("1/10", 9), PLD.discrete_laplace("1/10", 10), False),
        (PLD.discrete_laplace("1/10", 9), PLD.discrete_laplace("1/11", 9), True),
        (PLD.discrete_laplace(1, 1), PLD.pure(1), True),
        (PLD.discrete_gaussian(4, 3), PLD.discrete_gaussian(4, 2), True),
        (PLD.discrete_gaussian(4, 2), PLD.discrete_gaussian(4, 3), False),
        (PLD.bounded_range(2), PLD.pure(1), True),
        (PLD.bounded_range("199/100"), PLD.pure(1), False),
        (PLD.bounded_range(1), PLD.bounded_range(2), False),
        (PLD.bounded_range(1), PLD.pure("1/10", "1/100"), False),
        (PLD.bounded_range(1), PLD.gaussian(100), False),
        (PLD.bounded_range("ln(9)"), PLD.pure("ln(3)"), True),
        (PLD.bounded_range("ln(9)"), PLD.discrete_laplace("ln(3)"), True),
        (PLD.gaussian(1), ONE.without_replacement(1, 10), True),
        (ONE.without_replacement(2, 10), PLD.gaussian(2, **REPLACE).without_replacement(1, 10), True),
        (ONE.without_replacement(1, 10), ONE.without_replacement(2, 10), False),
        (PLD.pure(1).compose(PLD.gaussian(1)), PLD.gaussian(2), True),
        (PLD.gaussian(2), PLD.pure(1).compose(PLD.gaussian(1)), False),
        (PLD.pure("1e-3"), PLD.gaussian(1), False),
        (PLD.gaussian(10), PLD.pure(1), False),
    ],
)  # fmt: skip
def test_by_parameters(above: PLD, below: PLD, verdict: bool) -> None:
    assert above.dominates(below) is verdict


@pytest.mark.parametrize("below", [PLD.pure(1), PLD.bounded_range(2), PLD.discrete_laplace("1/4", 4)])
def test_gaussian_noise_above_bounded_losses(below: PLD) -> None:
    # Losses in an interval of width 2 need mu^2 = pi / 2; the curves, in doubles, agree.
    assert PLD.gaussian(mu2="1.571").dominates(below) is True
    mu = math.sqrt(1.571)
    for step in range(1, 40):
        epsilon = step / 40
        beyond, far = ((mu / 2 * sign - epsilon / mu) / math.sqrt(2) for sign in (1, -1))
        gaussian = math.erfc(-beyond) / 2 - math.exp(epsilon) * math.erfc(-far) / 2
        assert below.delta(epsilon, relative=0.01).upper <= gaussian * 1.01
    assert PLD.gaussian(mu2="1.57").dominates(PLD.pure("1/2").self_compose(2)) is not True
    # At E = 1: 2 Phi(mu / 2) - 1 below tanh(1 / 2).
    assert PLD.gaussian(mu2="1.3").dominates(PLD.pure(1)) is False


@pytest.mark.parametrize("shift", [2, 3, 5])
def test_noise_of_several_steps_against_its_own_masses(shift: int) -> None:
    # P[x] of 2^-|x|, around 0 and around the shift: its own pair is above it, and nothing that is a little less.
    a = Fraction(1, 2)
    inside = [(1 - a) / (1 + a) * a**x for x in range(1, shift)]
    ends = [1 / (1 + a), a**shift / (1 + a)]
    own = list(zip([ends[0], *inside, ends[1]], [ends[1], *reversed(inside), ends[0]], strict=True))
    less = [((99 * p + q) / 100, (99 * q + p) / 100) for p, q in own]
    noise = PLD.discrete_laplace(LogRatio(2, 1), shift)
    assert release(own).dominates(noise) is True
    assert noise.dominates(release(own)) is True
    assert release(less).dominates(noise) is False


def test_poisson_samples() -> None:
    noise = PLD.gaussian(1, neighbors="add-remove")
    assert noise.dominates(noise.poisson("1/10")) is True
    assert noise.poisson("1/5").dominates(noise.poisson("1/10")) is True
    assert noise.poisson("1/10").dominates(noise.poisson("1/5")) is False


@pytest.mark.parametrize("seed", range(15))
def test_products_by_matching(seed: int) -> None:
    rng = random.Random(seed)
    big = [random_pair(rng, 2) for _ in range(3)]
    small = [garbled(rng, pair, 2) for pair in big]
    rng.shuffle(small)
    above = PLD.composed([(release(pair), 2) for pair in big])
    below = PLD.composed([(release(pair), rng.randint(1, 2)) for pair in small])
    assert above.dominates(below) is True
    assert nowhere_below(product(*big), product(*small))
    # One release more than there is room for is not found to fit.
    more = below.compose(above)
    assert above.dominates(more) is not True


def test_a_matching_moves_what_was_placed() -> None:
    # The small one fits under both, the other one only under the large: the first place must be given up.
    small, other = PLD.pure("1/10"), PLD.pure("1/2")
    wide, narrow = PLD.pure("6/10"), PLD.pure("2/10")
    assert wide.compose(narrow).dominates(small.compose(other)) is True
    assert narrow.compose(wide).dominates(other.compose(small)) is True
    whole = PLD.composed([(wide, 5), (narrow, 7)])
    assert whole.dominates(PLD.composed([(small, 7), (other, 5)])) is True
    assert whole.dominates(PLD.composed([(small, 12)])) is True
    assert whole.dominates(PLD.composed([(small, 6), (other, 6)])) is not True


def test_undecided() -> None:
    # Near each other, of kinds that are not compared by their parameters.
    assert PLD.discrete_gaussian("25/4").dominates(PLD.gaussian("30/10")) is None


def test_distances() -> None:
    once = PLD.pure(1)
    assert once.within("1e-9").dominates(once) is True
    assert once.dominates(once.within("1e-9")) is None
    assert PLD.pure("1/2").dominates(once.within("1e-9")) is False


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="other must be a PrivacyLossDistribution"):
        PLD.pure(1).dominates(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="same neighbors"):
        PLD.pure(1, **REPLACE).dominates(PLD.pure(1, neighbors="add-remove"))
    calls: list[Any] = [PLD.pure(1), PLD.gaussian(1)]
    assert all(call.dominates(call) for call in calls)
