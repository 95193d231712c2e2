"""Releases on samples of users, and releases near to others, against enumeration of samples and closed forms."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from userdp import LogRatio
from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.accounting import subsampling_amplification
from userdp.accounting.losses import same_curves

REPLACE: Any = {"neighbors": "replace"}

Masses = list[Fraction]


def hockey_stick(p: Masses, q: Masses, level: Fraction) -> Fraction:
    return sum((max(x - level * y, Fraction(0)) for x, y in zip(p, q, strict=True)), Fraction(0))


def log_ratio(level: Fraction) -> LogRatio:
    return LogRatio(level.numerator, level.denominator)


def random_masses(rng: random.Random, outcomes: int) -> Masses:
    weights = [rng.choice([0, rng.randint(1, 9), rng.randint(1, 9)]) for _ in range(outcomes)]
    weights[rng.randrange(outcomes)] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


def neighbors(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    rest = list(y)
    for user in x:
        if user in rest:
            rest.remove(user)
    return len(rest) == 1


@pytest.mark.parametrize("seed", range(6))
def test_fixed_size_samples_by_enumeration(seed: int) -> None:
    # Two of four users with one of three values each, and any mechanism on two users.
    rng = random.Random(seed)
    law = {x: random_masses(rng, 3) for x in itertools.combinations_with_replacement(range(3), 2)}
    pairs = [(law[x], law[y]) for x, y in itertools.permutations(law, 2) if neighbors(x, y)]
    base = PLD.from_pairs(pairs, neighbors="replace")
    sampled = base.without_replacement(2, 4)
    assert not sampled.attained
    assert sampled.neighbors == "replace"

    def whole(x: tuple[int, ...]) -> Masses:
        drawn = [law[tuple(sorted(two))] for two in itertools.combinations(x, 2)]
        return [sum((masses[outcome] for masses in drawn), Fraction(0)) / 6 for outcome in range(3)]

    datasets = {x: whole(x) for x in itertools.combinations_with_replacement(range(3), 4)}
    levels = [Fraction(1), Fraction(6, 5), Fraction(2), Fraction(9)]
    bounds = {level: sampled.delta(log_ratio(level)) for level in levels}
    for level in levels:
        # The curve by its formula, with the base's own largest divergence.
        inner = 1 + (level - 1) * 2
        exact = max(hockey_stick(p, q, inner) for p, q in pairs) / 2
        assert Fraction(bounds[level].lower) <= exact <= Fraction(bounds[level].upper)
        assert bounds[level].upper - bounds[level].lower <= 1e-12
        for x, y in itertools.permutations(datasets, 2):
            if neighbors(x, y):
                assert hockey_stick(datasets[x], datasets[y], level) <= Fraction(bounds[level].upper)
    # Both sides of E = 1 enter a product: two rounds, on the worst pairs of datasets.
    twice = sampled.self_compose(2)
    two = {level: twice.delta(log_ratio(level), relative=0.01).upper for level in levels[:3]}
    for x, y in itertools.permutations(datasets, 2):
        if neighbors(x, y):
            p = [a * b for a in datasets[x] for b in datasets[x]]
            q = [a * b for a in datasets[y] for b in datasets[y]]
            assert all(hockey_stick(p, q, level) <= Fraction(two[level]) for level in two)


def test_one_order_is_replaced_by_the_largest_of_both() -> None:
    p, q = ["30/31", "1/31"], ["14/41", "27/41"]
    sampled = PLD.from_pmfs(p, q, **REPLACE).without_replacement(1, 10)
    assert sampled.delta("0.3") == PLD.from_pairs([(p, q)], **REPLACE).without_replacement(1, 10).delta("0.3")
    backwards = hockey_stick([Fraction(14, 41), Fraction(27, 41)], [Fraction(30, 31), Fraction(1, 31)], Fraction(1))
    assert Fraction(sampled.delta(0).upper) >= backwards / 10


@pytest.mark.parametrize(
    ("epsilon", "delta", "n"), [("ln(20)", 0, (10, 190)), ("1", "1/1000", (1, 50)), ("3", 0, (1, 2))]
)
def test_pure_releases_are_amplified_as_is_known(epsilon: str, delta: Any, n: tuple[int, int]) -> None:
    sampled = PLD.pure(epsilon, delta, **REPLACE).without_replacement(*n)
    known = subsampling_amplification(epsilon, delta, n_sampled=n[0], n_total=n[1])
    assert sampled.is_private(known.epsilon, known.delta)
    assert sampled.delta(known.epsilon).lower <= float(known.delta) <= sampled.delta(known.epsilon).upper * (1 + 1e-12)
    # Nothing less does, and composed samples keep what one has at zero.
    assert sampled.is_private(float(known.epsilon) * 0.999, known.delta) is False
    if not delta:
        assert sampled.self_compose(3).epsilon(0).upper == pytest.approx(3 * float(known.epsilon))


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def gaussian_curve(mu: float, level: float) -> float:
    loss = math.log(level)
    return normal(-loss / mu + mu / 2) - level * normal(-loss / mu - mu / 2)


@pytest.mark.parametrize(("sigma", "rate"), [("1", (1, 10)), ("2", (1, 2)), ("0.7", (1, 20))])
def test_gaussian_on_fixed_samples_is_its_closed_form(sigma: str, rate: tuple[int, int]) -> None:
    sampled = PLD.gaussian(sigma, **REPLACE).without_replacement(*rate)
    mu, q = 1 / float(sigma), rate[0] / rate[1]
    for epsilon in (0, 0.1, 0.5):
        known = q * gaussian_curve(mu, 1 + (math.exp(epsilon) - 1) / q)
        bounds = sampled.delta(epsilon, relative=0.1)
        assert bounds.lower <= known * (1 + 1e-9) + 1e-14
        assert known * (1 - 1e-9) - 1e-14 <= bounds.upper <= 1.2 * known + 1e-12


def test_gaussian_on_fixed_samples_composes() -> None:
    # Cells of outcomes are a function of the outcome: their exact pair is below, and near where cells are narrow.
    mu, width, reach = 1.0, 0.1, 7.0
    places = [mu / 2 - reach + width * index for index in range(round(2 * reach / width) + 1)]
    ends = [-math.inf, *places, math.inf]
    cells = [
        [normal(b - center) - normal(a - center) if b < center else normal(center - a) - normal(center - b)
         for a, b in itertools.pairwise(ends)]
        for center in (mu, 0.0)
    ]  # fmt: skip
    p = [Fraction(mass) for mass in cells[0]]
    p = [mass / sum(p) for mass in p]
    below = PLD.from_pmfs(p, p[::-1], **REPLACE).without_replacement(1, 5).self_compose(4)
    noise = PLD.gaussian(1, **REPLACE).without_replacement(1, 5).self_compose(4)
    for epsilon in (0.2, 1, 2):
        coarse, fine = below.delta(epsilon, relative=0.01), noise.delta(epsilon, relative=0.01)
        assert coarse.lower <= fine.upper * (1 + 1e-9)
        assert fine.lower <= coarse.upper * 1.02


@pytest.mark.parametrize("width", ["1/2", "ln(9)", "12"])
def test_bounded_ranges_have_chords(width: str) -> None:
    # (1 - sqrt(E / R))^2 / (1 - 1 / R) on [1 / R, R]: chords are above it, by little, in both orders.
    part = PLD.bounded_range(width)._parts[0][0].finite(above=True)
    assert part is not None
    assert same_curves(part.p, part.q)
    whole = {"1/2": math.exp(0.5), "ln(9)": 9.0, "12": math.exp(12)}[width]
    p, q = ([Fraction(x, sum(side)) for x in side] for side in (part.p, part.q))
    for step in range(-9, 10):
        level = whole ** (step / 10)
        known = (1 - math.sqrt(level / whole)) ** 2 / (1 - 1 / whole)
        chord = float(hockey_stick(p, q, Fraction(level)))
        assert known * (1 - 1e-9) <= chord <= known + 1e-4 * (1 + level)
    # Any two losses in an interval of this width are below: the two-point pairs.
    for step in range(1, 10):
        top = Fraction(whole ** (step / 10))
        bottom = top / Fraction(whole) * Fraction(1000001, 1000000)
        mass = (1 - bottom) / (top - bottom)
        two = [top * mass, bottom * (1 - mass)], [mass, 1 - mass]
        assert all(hockey_stick(*two, Fraction(level)) <= hockey_stick(p, q, Fraction(level)) for level in (1, 2, 5))
        assert PLD.bounded_range(width).dominates(PLD.from_pmfs(*two)) is True


def test_exponential_mechanisms_on_samples() -> None:
    from userdp.mechanisms import ExponentialMechanism

    # Two of three users, with votes for one of two candidates, and the exact distributions that are drawn.
    choice = ExponentialMechanism(epsilon=1, sensitivity=1, maximize=True, neighbors="replace")
    sampled = PLD.from_mechanism(choice).without_replacement(2, 3)
    law = {votes: choice.pmf([votes, 2 - votes]).fractions() for votes in range(3)}

    def whole(users: tuple[int, ...]) -> Masses:
        drawn = [law[sum(two)] for two in itertools.combinations(users, 2)]
        return [sum((masses[outcome] for masses in drawn), Fraction(0)) / 3 for outcome in range(2)]

    datasets = {users: whole(users) for users in itertools.product(range(2), repeat=3)}
    for level in (Fraction(1), Fraction(11, 10), Fraction(3, 2)):
        upper = Fraction(sampled.delta(log_ratio(level)).upper)
        for x, y in itertools.permutations(datasets, 2):
            if sum(a != b for a, b in zip(x, y, strict=True)) == 1:
                assert hockey_stick(datasets[x], datasets[y], level) <= upper
    # Better than what is known of any 1-DP release.
    pure = PLD.pure(1, **REPLACE).without_replacement(2, 3)
    assert sampled.self_compose(50).epsilon("1e-6", width=0.1).upper < pure.self_compose(50).epsilon("1e-6").lower


def test_a_sample_of_all_is_everybody() -> None:
    whole, sample = PLD.gaussian(2), PLD.gaussian(2, **REPLACE).without_replacement(7, 7)
    for epsilon in (0, 1):
        here, there = whole.delta(epsilon), sample.delta(epsilon)
        assert here.lower <= there.upper
        assert there.lower <= here.upper
    assert PLD.pure(1, **REPLACE).without_replacement(3, 3).epsilon(0).upper == pytest.approx(1)


def test_poisson_samples_of_parameters_are_those_of_their_pairs() -> None:
    rate = Fraction(1, 8)
    named = PLD.pure(LogRatio(3, 1), neighbors="add-remove").poisson(rate).self_compose(3)
    listed = PLD.from_pmfs(["3/4", "1/4"], ["1/4", "3/4"], neighbors="add-remove").poisson(rate).self_compose(3)
    assert named.delta("0.2") == listed.delta("0.2")


def shifted_laplace(ratio: Fraction, shift: int) -> tuple[Masses, Masses]:
    """Discrete Laplace noise with P[x] of ratio^-|x|, around 0 and around the shift, tails in one output each."""
    # Below 0 and above the shift the ratio of both does not change.
    a = 1 / ratio
    inside = [(1 - a) / (1 + a) * a**x for x in range(1, shift)]
    return [1 / (1 + a), *inside, a**shift / (1 + a)], [a**shift / (1 + a), *reversed(inside), 1 / (1 + a)]


@pytest.mark.parametrize("shift", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("ratio", [Fraction(2), Fraction(11, 10)])
def test_samples_of_discrete_laplace_noise_by_its_masses(ratio: Fraction, shift: int) -> None:
    p, q = shifted_laplace(ratio, shift)
    assert sum(p) == sum(q) == 1
    noise = PLD.discrete_laplace(log_ratio(ratio), shift, neighbors="replace")
    removed = PLD.discrete_laplace(log_ratio(ratio), shift, neighbors="add-remove")
    for rate, sampled in (
        (Fraction(1), noise.without_replacement(3, 3)),
        (Fraction(1, 3), noise.without_replacement(1, 3)),
        (Fraction(1), PLD.pure(log_ratio(ratio), **REPLACE).group(shift).without_replacement(3, 3)),
        (Fraction(1, 3), removed.poisson(Fraction(1, 3))),
    ):
        for level in (Fraction(1), Fraction(21, 20), ratio, Fraction(5, 2)):
            exact = rate * hockey_stick(p, q, 1 + (level - 1) / rate)
            bounds = sampled.delta(log_ratio(level))
            assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper), (rate, level)


def test_a_pair_of_two_datasets_is_not_yet_a_claim_about_all_samples() -> None:
    # M(0) = (1/2, 1/2) and M(1) = M(2) = (9/10, 1/10): two users' pair has no loss, and a sample of one user has.
    empty, some, rate = [Fraction(1, 2)] * 2, [Fraction(9, 10), Fraction(1, 10)], Fraction(1, 2)
    alone = PLD.from_pmfs(some, some, neighbors="add-remove").poisson(rate)
    assert alone.delta(0).upper == 0
    assert not alone.attained
    mixed = [rate * x + (1 - rate) * y for x, y in zip(some, empty, strict=True)]
    two = [(mixed[o] + some[o]) / 2 for o in range(2)]  # the other user is in the sample, or is not
    truth = hockey_stick(two, mixed, Fraction(1))
    assert truth == Fraction(1, 10)
    all_sizes = PLD.from_pairs([(some, some), (some, empty)], neighbors="add-remove").poisson(rate)
    assert Fraction(all_sizes.delta(0).upper) >= truth


# --- releases near to others


def test_a_distance_is_not_multiplied_by_the_rate() -> None:
    # P, Q are within 1/1000 of randomized response at e^epsilon = 100, whose sample has no delta at this level.
    far, rate, level = Fraction(1, 1000), Fraction(1, 100), Fraction(199, 100)
    p, q = [Fraction(100, 101) + far, Fraction(1, 101) - far], [Fraction(1, 101) - far, Fraction(100, 101) + far]
    mixed = [rate * x + (1 - rate) * y for x, y in zip(p, q, strict=True)]
    exact = hockey_stick(mixed, q, level)
    for sampled in (
        PLD.pure(LogRatio(100, 1), neighbors="add-remove").within(far).poisson(rate),
        PLD.pure(LogRatio(100, 1), **REPLACE).within(far).without_replacement(1, 100),
    ):
        assert sampled.distance == far
        bounds = sampled.delta(log_ratio(level))
        assert bounds.lower == 0
        assert exact > (1 + level) * rate * far
        assert exact <= Fraction(bounds.upper) <= (1 + level) * far + Fraction(1, 10**12)


@pytest.mark.parametrize("seed", range(20))
def test_distances_add_up_over_a_composition(seed: int) -> None:
    rng = random.Random(seed)
    p, q = random_masses(rng, 3), random_masses(rng, 3)
    far = Fraction(1, rng.choice([50, 1000, 10**6]))

    def moved(masses: Masses) -> Masses:
        source, target = max(range(3), key=lambda index: masses[index]), rng.randrange(3)
        changed = list(masses)
        changed[source] -= far
        changed[target] += far
        return changed

    near = PLD.from_pmfs(p, q).within(far).self_compose(2)
    assert near.distance == 2 * far
    real_p, real_q = moved(p), moved(q)
    products = [[a * b for a in masses for b in masses] for masses in (real_p, real_q)]
    for level in (Fraction(1), Fraction(3, 2), Fraction(7)):
        exact = max(hockey_stick(*products, level), hockey_stick(*products[::-1], level))
        bounds = near.delta(log_ratio(level))
        assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    for delta in (Fraction(1, 10), Fraction(1, 3)):
        bounds = near.epsilon(delta, width=0.01)
        if math.isfinite(bounds.upper):
            level = Fraction(math.exp(bounds.upper)) * (1 + Fraction(1, 10**9))
            assert max(hockey_stick(*products, level), hockey_stick(*products[::-1], level)) <= delta
            assert near.is_private(bounds.upper + 0.01, delta) is True
        if bounds.lower > 1e-6:
            level = Fraction(math.exp(bounds.lower)) * (1 - Fraction(1, 10**6))
            assert max(hockey_stick(*products, level), hockey_stick(*products[::-1], level)) > delta
            assert near.is_private(bounds.lower - 1e-6, delta) is not True


def test_a_tiny_distance_changes_little_and_no_distance_nothing() -> None:
    once = PLD.pure("1/10").self_compose(100)
    near = once.within(Fraction(1, 2**90))
    assert near.epsilon("1e-6").upper == pytest.approx(once.epsilon("1e-6").upper, abs=1e-12)
    assert near.epsilon(0).upper == math.inf
    assert near.epsilon("1e-40").upper == math.inf
    assert near.delta(10**6).upper == 1
    assert near.is_private(100, 0) is None
    assert near.is_private(0, 1) is True
    assert once.within(0) == once
    assert "within 8.08e-28" in repr(near)
    with pytest.raises(ValueError, match="no certificate"):
        near.certificate(delta="1e-6")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PLD.gaussian(1, **REPLACE).without_replacement(3, 2), "sampled must be at most total"),
        (lambda: PLD.gaussian(1, **REPLACE).without_replacement(0, 2), "sampled must be at least 1"),
        (lambda: PLD.gaussian(1, **REPLACE).without_replacement(1, 2**40), r"at least total / 2\*\*30"),
        (lambda: PLD.gaussian(1, neighbors="add-remove").without_replacement(1, 2), "neighbors='replace'"),
        (lambda: PLD.gaussian(1).without_replacement(1, 2), "this one states no neighbors"),
        (lambda: PLD.gaussian(1).poisson("1/2"), "this one states no neighbors"),
        (lambda: PLD.pure(1).self_compose(2).without_replacement(1, 2), "sample first, then compose"),
        (
            lambda: PLD.bounded_range(100, **REPLACE).without_replacement(1, 2),
            "finitely many losses, or gaussian",
        ),
        (
            lambda: PLD.discrete_gaussian(4, **REPLACE).without_replacement(1, 2),
            "finitely many losses, or gaussian",
        ),
        (
            lambda: PLD.gaussian(1, **REPLACE).without_replacement(1, 2).without_replacement(1, 2),
            "finitely many losses",
        ),
        (lambda: PLD.pure(1).within(2), r"distance must be in \[0, 1\]"),
    ],
)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
