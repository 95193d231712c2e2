"""Continuous Laplace noise and what it is above, against densities, exact distributions, and fractions."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import LogRatio
from userdp.accounting import PrivacyCost
from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.mechanisms import (
    ApproximatePrivateMode,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    GroupedExponentialMechanism,
    PartitionSelection,
    PermuteAndFlip,
)
from userdp.report import Report


def law_of(epsilon: float, cells: int, *, up: bool) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Masses at -epsilon, ..., epsilon of the loss of Laplace noise, each moved to an end of its cell.

    Noise below 0 has the loss epsilon, noise above 1 / scale the loss -epsilon, and the loss is epsilon - 2 x between.
    """
    edges = np.linspace(-epsilon, epsilon, cells + 1)
    # P[L > l] for l within: the noise is below (epsilon - l) / 2.
    above = 1 - np.exp(-(epsilon - edges) / 2) / 2
    masses = np.zeros(cells + 1)
    inside = -np.diff(above)
    masses[1:] += inside if up else 0
    masses[:-1] += 0 if up else inside
    masses[-1] += 1 / 2
    masses[0] += math.exp(-epsilon) / 2
    return masses


@pytest.mark.parametrize("seed", range(12))
def test_bounds_are_around_what_densities_give(seed: int) -> None:
    draw = random.Random(seed)
    epsilon, count, cells = draw.choice([0.25, 0.5, 1.0, 2.0, 4.0]), draw.randint(1, 4), 2000
    losses = PLD.laplace(4, 4 * epsilon).self_compose(count)
    for share in (0.0, 0.3, 0.8):
        asked = Fraction(share * count * epsilon)
        brackets = []
        for up in (False, True):
            law = law_of(epsilon, cells, up=up)
            whole = law
            for _ in range(count - 1):
                whole = np.convolve(whole, law)
            at = np.linspace(-count * epsilon, count * epsilon, len(whole))
            brackets.append(float((whole * np.maximum(1 - np.exp(float(asked) - at), 0)).sum()))
        low, high = brackets
        found = losses.delta(asked)
        assert found.lower <= high * (1 + 1e-9)
        assert found.upper >= low * (1 - 1e-9)
        assert high - low < 0.02 * high
        assert found.upper - found.lower <= 1e-3 * found.upper
    assert losses.epsilon(0).upper == pytest.approx(count * epsilon)
    assert losses.attained


def test_many_releases_are_narrow_certified_and_saved() -> None:
    many = PLD.laplace(10).self_compose(1000)
    found = many.delta(10)
    assert 0 < found.upper - found.lower <= 1e-3 * found.upper
    assert many.epsilon(found.upper).lower <= 10 <= many.epsilon(found.lower).upper
    assert PLD.from_json(many.to_json()) == many
    certificate = Report.from_json(PLD.laplace(1).compose(PLD.pure("0.2", "1e-9")).certificate(delta="1e-3"))
    assert certificate.verify().finding == "established"
    assert PLD.laplace(2).compose(PLD.pure("0.2", "1e-9")).epsilon("1e-3").upper < float(certificate.epsilon)


def test_samples_and_groups() -> None:
    once = PLD.laplace(1, neighbors="add-remove")
    rate, level = Fraction(1, 10), LogRatio(11, 10)
    # q g(1 + (E - 1) / q) with g(E) = 1 - sqrt(E / e), by a pair whose curve has chords.
    exact = (1 - math.sqrt(2 / math.e)) / 10
    for sampled in (once.poisson(rate), PLD.laplace(1, neighbors="replace").without_replacement(1, 10)):
        assert sampled.delta(level).upper == pytest.approx(exact, rel=1e-4)
        assert sampled.delta(level).upper >= exact * (1 - 1e-12)
    assert PLD.laplace(3).group(3) == PLD.laplace(1)


@pytest.mark.parametrize("seed", range(20))
def test_discrete_noise_is_below_continuous_noise_of_a_little_more(seed: int) -> None:
    draw = random.Random(seed)
    shift, ratio = draw.randint(1, 12), Fraction(draw.randint(5, 12), 4)
    rate = math.log(ratio)
    above = PLD.laplace(1, Fraction(rate * shift + rate**2 / 4) + Fraction(1, 10**12))
    discrete = PLD.discrete_laplace(LogRatio(ratio.numerator, ratio.denominator), shift)
    for share in (0, 0.2, 0.5, 0.9):
        asked = Fraction(share * rate * shift)
        assert discrete.delta(asked).lower <= above.delta(asked).upper
    # It is needed: continuous noise of the same scale is not above it.
    same = PLD.laplace(1, Fraction(rate * shift))
    asked = Fraction(rate * ((shift + 1) % 2))
    assert discrete.delta(asked).lower > same.delta(asked).upper
    assert above.dominates(PLD.laplace(2)) is (rate * shift + rate**2 / 4 > 0.5)


def test_long_shifts_are_no_longer_pure() -> None:
    noise = DiscreteLaplace(epsilon=1, sensitivity=10**6, bounds=(0, 10**9))
    losses = noise.privacy_loss()
    assert losses.self_compose(100).epsilon("1e-5").upper < 68.26
    assert 1 <= losses.epsilon(0).upper < 1 + 1e-12
    # Clamped values move by the width of the bounds at most.
    assert DiscreteLaplace(scale=5, bounds=(0, 9)).privacy_loss(10**6) == PLD.discrete_laplace("1/5", 9)


def hockey_stick(p: list[Fraction], q: list[Fraction], level: Fraction) -> Fraction:
    return sum((max(x - level * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", ["1/2", "1", "2"])
def test_selections_are_below_what_their_loss_says(monotone: bool, epsilon: str) -> None:
    draw = random.Random(f"{monotone}{epsilon}")
    flip = PermuteAndFlip(epsilon=epsilon, sensitivity=2, monotone=monotone)
    search = ExponentialMechanism(epsilon=epsilon, sensitivity=2, monotone=monotone)
    assert search.cost == PrivacyCost(bounded_range=epsilon, neighbors="add-remove" if monotone else None)
    levels = [Fraction(percent, 100) for percent in (20, 60, 100, 125, 165, 250)]
    limits = {
        choice: {
            # Of both orders: 1 - E + E h at 1 / E below 1.
            level: Fraction(choice.privacy_loss().delta(LogRatio(*max(level, 1 / level).as_integer_ratio())).upper)
            for level in levels
        }
        for choice in (flip, search)
    }
    largest = {flip: Fraction(0), search: Fraction(0)}
    for _ in range(60):
        scores = [draw.randint(0, 6) for _ in range(draw.randint(2, 5))]
        moved = [score + draw.randint(0 if monotone else -2, 2) for score in scores]
        for choice, limit in limits.items():
            p, q = choice.pmf(scores).fractions(), choice.pmf(moved).fractions()
            for level, (one, other) in itertools.product(levels, ((p, q), (q, p))):
                above = limit[level] if level >= 1 else 1 - level + level * limit[level]
                assert hockey_stick(one, other, level) <= above
            ratios = [x / y for x, y in zip(p, q, strict=True)]
            largest[choice] = max(largest[choice], max(ratios) / min(ratios))
    # The range is nearly used, and permute-and-flip has a larger one.
    assert 0.8 * float(Fraction(epsilon)) < math.log(largest[search]) <= float(Fraction(epsilon))
    assert math.log(largest[flip]) > 1.05 * float(Fraction(epsilon))


def test_a_hundred_selections() -> None:
    flips = PLD.from_mechanism(PermuteAndFlip(epsilon=1, sensitivity=1)).self_compose(100)
    assert 68.25 < flips.epsilon("1e-5").upper < 68.26
    searches = PLD.from_mechanism(ExponentialMechanism(epsilon=1, sensitivity=1, monotone=True)).self_compose(100)
    assert searches.epsilon("1e-5").upper < 38.95
    assert not searches.attained
    assert searches.is_private(60, "1e-5") is True


BOUNDED = [
    lambda: PLD.from_mechanism(PermuteAndFlip(epsilon=1, sensitivity=1)),
    lambda: PLD.from_mechanism(PermuteAndFlip(epsilon="ln(3)", sensitivity=1, monotone=True)),
    lambda: PLD.from_mechanism(ExponentialMechanism(epsilon=1, sensitivity=1)),
    lambda: PLD.from_mechanism(GroupedExponentialMechanism(epsilon=1, sensitivity=1)),
    lambda: PLD.from_mechanism(ApproximatePrivateMode(epsilon=1, delta="1e-6")),
    lambda: PLD.from_mechanism(PartitionSelection(epsilon=1, delta="1e-6")),
    lambda: PLD.from_mechanism(PrivacyCost(1)),
    lambda: PLD.from_mechanism(PrivacyCost(1, "1e-6")),
    lambda: PLD.from_mechanism(PrivacyCost(mu2=1)),
    lambda: DiscreteGaussian(sigma_squared=6).privacy_loss(2, dimension=2),
    lambda: DiscreteLaplace(epsilon=1, sensitivity=10**6, bounds=(0, 10**9)).privacy_loss(),
]


@pytest.mark.parametrize("make", BOUNDED)
def test_what_is_known_by_a_bound_is_never_said_not_to_be_private(make: Any) -> None:
    losses = make()
    for whole in (losses, losses.self_compose(2), losses.within("1e-9"), PLD.from_json(losses.to_json())):
        assert not whole.attained
        assert whole.is_private("1/100", "1e-12") is None
        assert whole.is_private(10, "0.9") is True


def test_what_is_drawn_by_itself_has_verdicts() -> None:
    for losses in (
        PLD.pure(1),
        PLD.laplace(1),
        DiscreteLaplace(epsilon=1, sensitivity=2, bounds=(0, 9)).privacy_loss(),
    ):
        assert losses.attained
        assert losses.self_compose(3).is_private("1/100", "1e-6") is False


@pytest.mark.parametrize("scale", [0, -1, "1e-30", "1e90", "x", None])
def test_scales_are_refused_by_name(scale: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="scale"):
        PLD.laplace(scale)
