"""Permute-and-flip against fractions, the reference's integers, exact ratios of neighbors, and the auditor."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import exponential
from oracle import permute_and_flip as oracle
from oracle.divergence import exp_bounds
from support.drawing import assert_follows, follows, histogram, seeded
from userdp import LogRatio, _core
from userdp.accounting import PrivacyLossDistribution
from userdp.algorithms import SymmetricAlgorithm
from userdp.audit import audit_user_level
from userdp.exceptions import BudgetError
from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip

F = Fraction
SCALE = 2**103
CASES = json.loads((Path(__file__).parents[1] / "data" / "permute_and_flip_cases.json").read_text())
exp_of = cache(exp_bounds)


def cases(kind: str) -> list[Any]:
    found = [(case["given"], case["want"]) for case in CASES if case["kind"] == kind]
    assert found
    return found


def fractions(texts: list[str]) -> list[Fraction]:
    return [F(text) for text in texts]


def flips_of(choice: PermuteAndFlip, scores: Any) -> list[Fraction]:
    """The probabilities of the coins, by the slow twin of the weights."""
    bits = choice._rate.bits_per_unit
    return [F(exponential.weight(int(score) - int(min(scores)), bits), SCALE) for score in scores]


def random_flips(source: random.Random, k: int) -> list[Fraction]:
    flips = [F(source.randint(0, 12), 12) for _ in range(k)]
    flips[source.randrange(k)] = F(1)
    return flips


# --- the distribution


def test_four_ways_to_the_distribution_agree() -> None:
    source = random.Random(1)
    for k in (1, 2, 3, 4, 5, 6, 6):
        for _ in range(6):
            flips = random_flips(source, k)
            masses = oracle.by_integral(flips)
            assert masses == oracle.by_coins(flips)
            assert k > 5 or masses == oracle.by_orders(flips)
            assert sum(masses) == 1
            for exact, drawn in zip(masses, oracle.drawn(flips, 40), strict=True):
                assert abs(drawn - exact) <= F(k, 2**40) * exact


def test_the_references_distributions() -> None:
    for given, want in cases("pf_law"):
        flips = fractions(given["flips"])
        assert oracle.by_integral(flips) == fractions(want["law"])
    for given, want in cases("pf_law_bits"):
        assert oracle.drawn(fractions(given["flips"]), given["bits"]) == fractions(want["law"])


def test_pmfs_are_the_references_integers() -> None:
    for given, want in cases("pf_production"):
        choice = PermuteAndFlip(epsilon=given["epsilon"], sensitivity=given["sensitivity"], monotone=given["monotone"])
        pmf = choice.pmf(given["scores"])
        assert [hex(weight) for weight in pmf.weights] == want["numerators_hex"]
        assert pmf.total == 2 ** want["total_bits"]
        assert [flip * SCALE for flip in flips_of(choice, given["scores"])] == fractions(want["weights"])


@pytest.mark.parametrize("k", [1, 2, 3, 7, 12])
def test_pmfs_are_the_enumeration_of_the_draw(k: int) -> None:
    source = random.Random(k)
    for epsilon, sensitivity in ((F(1), 1), (F(1, 10), 3), (F(87), 1)):
        choice = PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity)
        scores = [source.randrange(-20, 20) for _ in range(k)]
        flips = flips_of(choice, scores)
        pmf = choice.pmf(scores)
        assert pmf.total == 2 ** (103 * k + 128)
        assert pmf.fractions() == oracle.drawn(flips)
        # The place costs a relative 2^-104.
        for mass, ideal in zip(pmf.fractions(), oracle.by_integral(flips), strict=True):
            assert abs(mass - ideal) <= F(1, 2**104) * ideal
        assert (
            PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity, maximize=True)
            .pmf([-score for score in scores])
            .weights
            == pmf.weights
        )


@pytest.mark.parametrize("k", [1, 2, 3, 13, 40, 64])
def test_enclosures_hold_the_exact_probabilities(k: int) -> None:
    choice = PermuteAndFlip(epsilon="0.3", sensitivity=1)
    source = random.Random(k)
    for spread in (1, 8, 10**6):
        scores = [source.randrange(spread) for _ in range(k)]
        lower, upper = choice.pmf_bounds(scores)
        for low, mass, high in zip(lower.tolist(), choice.pmf(scores).fractions(), upper.tolist(), strict=True):
            assert F(low) <= mass <= F(high)
            assert high <= low * (1 + 1e-12)


def test_enclosures_of_many_candidates() -> None:
    choice = PermuteAndFlip(epsilon=1, sensitivity=1)
    # All equal: the same for all, up to the place. One ahead of equal ones: a closed form.
    for k in (65, 1000, 4096):
        lower, upper = choice.pmf_bounds(np.zeros(k, dtype=np.int64))
        assert F(lower.max()) <= F(1, k) * (1 + F(1, 2**104))
        assert F(upper.min()) >= F(1, k) * (1 - F(1, 2**104))
        assert float((upper / lower).max()) < 1 + 2e-11
    scores = np.full(1001, 5)
    scores[700] = 0
    q = flips_of(choice, [0, 5])[1]
    first = (1 - (1 - q) ** 1001) / (1001 * q)
    lower, upper = choice.pmf_bounds(scores)
    assert F(lower[700]) * (1 - F(1, 2**100)) <= first <= F(upper[700]) * (1 + F(1, 2**100))
    assert F(lower[0]) * (1 - F(1, 2**100)) <= (1 - first) / 1000 <= F(upper[0]) * (1 + F(1, 2**100))
    with pytest.raises(BudgetError, match="4096"):
        choice.pmf_bounds(np.zeros(4097, dtype=np.int64))
    with pytest.raises(BudgetError, match="64 candidates are accepted; pmf_bounds"):
        choice.pmf(np.zeros(65, dtype=np.int64))


# --- draws


def listed(draws: list[tuple[list[int], int]], low_bits: int = 0) -> _core.Source:
    return _core.Source.listed(b"".join(oracle.bytes_of(coins, place, low_bits) for coins, place in draws))


@pytest.mark.parametrize("k", [1, 2, 5, 63, 64, 65, 128, 129, 511, 512, 513, 700, 1025])
def test_draws_of_listed_bytes(k: int) -> None:
    source = random.Random(k)
    rate = _core.PermuteAndFlipRate(_core.Level(F(1), F(1, 2)), 1, False)
    bits = rate.bits_per_unit
    draws, expected = [], []
    scores = [source.choice((0, 1, 3, 30, 10**7)) for _ in range(k)]
    weights = [exponential.weight(score - min(scores), bits) for score in scores]
    for round_ in range(12):
        # At the weights and just below, none but the best, all, and anything.
        coins = [
            (weight - (source.random() < 0.5))
            if round_ < 4
            else 2**103 - 1
            if round_ == 4
            else 0
            if round_ == 5
            else source.randrange(2**103)
            for weight in weights
        ]
        coins = [min(coin, 2**103 - 1) for coin in coins]
        count = sum(coin < weight for coin, weight in zip(coins, weights, strict=True))
        rank = source.randrange(count)
        ends = [0, 2**128 - 1, -(-rank * 2**128 // count), -(-(rank + 1) * 2**128 // count) - 1]
        place = source.choice(ends)
        draws.append((coins, place))
        expected.append(oracle.draw(weights, coins, place))
    array = np.array(scores)
    for low_bits in (0, 2**k - 1):
        assert rate.sample_many(array, listed(draws, low_bits), len(draws), False).tolist() == expected
    singles = listed(draws)
    assert [rate.sample(~array, singles, True) for _ in draws] == expected


@pytest.mark.parametrize("k", [3, 16, 600])
def test_seeded_draws_are_the_same_one_by_one(k: int) -> None:
    choice = PermuteAndFlip(epsilon=1, sensitivity=5)
    scores = np.arange(k) % 7
    one = _core.Source(7)
    many = choice._draw_many(_core.Source(7), (30,), scores).tolist()
    assert [choice._draw(one, scores) for _ in range(30)] == many


def test_too_few_bytes_and_candidates_are_refused() -> None:
    choice = PermuteAndFlip(epsilon=1, sensitivity=1)
    with pytest.raises(OSError, match="used up"):
        choice._draw(_core.Source.listed(bytes(47)), [0, 1])
    for scores in ([], np.zeros(2**24 + 1, dtype=np.int64)):
        for method in (choice.sample, choice.pmf, choice.pmf_bounds):
            with pytest.raises(ValueError, match="scores"):
                method(scores)
        with pytest.raises(ValueError, match="scores"):
            choice.sample(scores, size=2)


SCORES = [0, 1, 2, 3, 5, 8, 13, 13]


@pytest.mark.statistical
@pytest.mark.parametrize("monotone", [False, True])
def test_draws_follow_the_distribution(monotone: bool) -> None:
    choice = PermuteAndFlip(epsilon=1, sensitivity=1, monotone=monotone)
    # By the ideal powers of e.
    exact = [1 / exp_of(F(score) if monotone else F(score, 2))[0] for score in SCORES]
    ideal = oracle.by_integral(exact)
    draws = seeded(choice.sample, SCORES)
    assert_follows(histogram(draws, ideal), ideal)
    # Of another mechanism, or another rate, they are not.
    total = sum(exact)
    assert not follows(histogram(draws, ideal), [q / total for q in exact])
    assert not follows(histogram(draws, ideal), oracle.by_integral([q**2 for q in exact]))


@pytest.mark.statistical
def test_draws_among_many_candidates() -> None:
    # By score, word and place in a word: two scores, so that the probabilities are closed forms.
    choice, k = PermuteAndFlip(epsilon=2, sensitivity=1), 1500
    scores = np.ones(k, dtype=np.int64)
    scores[::3] = 0
    a, b, q = 500, 1000, 1 / exp_of(F(1))[0]
    # q is a multiple of nothing small: a float law of 10^-12, well below what the draws can tell.
    chances = [1.0]
    for _ in range(b):
        chances = [
            (chances[s] if s < len(chances) else 0.0) * (1 - float(q)) + (chances[s - 1] * float(q) if s else 0.0)
            for s in range(len(chances) + 1)
        ]
    best = F(math.fsum(mass / (a + s) for s, mass in enumerate(chances)))
    ideal = [best if i % 3 == 0 else (1 - a * best) / b for i in range(k)]
    counts = histogram(seeded(choice.sample, scores, size=20_000), ideal)
    for cell in (lambda i: i % 3, lambda i: i // 64, lambda i: i % 64, lambda i: i // 512):
        cells = 1 + max(map(cell, range(k)))
        binned, masses = [0] * cells, [F(0)] * cells
        for i in range(k):
            binned[cell(i)] += counts[i]
            masses[cell(i)] += ideal[i]
        assert_follows(binned, masses)


# --- privacy


def test_certified_epsilon_covers_the_loss_and_is_below_what_was_asked() -> None:
    compared = 0
    source = random.Random(2)
    for _ in range(500):
        epsilon = F(source.choice((2.0**-34, 0.01, 0.1, 1.0, 5.0, 44.0, 87.9))) * F(source.randrange(90, 100), 100)
        if epsilon <= F(1, 2**35):
            continue
        sensitivity, monotone = source.choice((1, 2, 1000, 2**61)), source.random() < 0.5
        choice = PermuteAndFlip(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
        factor = 1 if monotone else 2
        rho = exponential.bits_per_unit(exponential.rate(epsilon, sensitivity, factor))
        assert choice._rate.bits_per_unit == rho
        loss = factor * sensitivity * rho * F(exponential.LN_TWO) + oracle.slack()
        assert loss - F(1, 10**30) <= choice._rate.certified_epsilon_exact <= F(choice.certified_epsilon) <= epsilon
        other = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
        assert choice._rate.certified_epsilon_exact < other._rate.certified_epsilon_exact
        compared += 1
    assert compared > 450
    assert PermuteAndFlip(epsilon=LogRatio(3), sensitivity=1).certified_epsilon < math.log(3)


def largest_excess(seed: int, *, instances: int, halved: bool = False, monotone: bool = False) -> tuple[F, int]:
    """The largest p_i / (e^epsilon p'_i) over random neighbors, and how many ratios that is over."""
    source = random.Random(seed)
    worst, compared = F(0), 0
    while compared < instances:
        epsilon = source.choice((F(1, 100), F(1, 10), F(1), F(5, 2), F(8), F(40)))
        sensitivity = source.choice((1, 2, 3, 17, 10**6))
        choice = PermuteAndFlip(
            epsilon=2 * epsilon if halved else epsilon,
            sensitivity=sensitivity,
            monotone=monotone,
            maximize=source.random() < 0.5,
        )
        count = source.randrange(2, 6)
        spread = source.choice((1, 2 * sensitivity, choice._rate.largest_gap + sensitivity))
        scores = np.array([source.randrange(-spread, spread + 1) for _ in range(count)])
        steps = [0 if monotone else -sensitivity, 0, sensitivity]
        moves = np.array([source.choice(steps) for _ in range(count)])
        p, q = choice.pmf(scores).weights, choice.pmf(scores + moves).weights
        limit = exp_of(epsilon)[0]
        for a, b in itertools.chain(zip(p, q, strict=True), zip(q, p, strict=True)):
            worst = max(worst, F(a, b) / limit)
            compared += 1
    return worst, compared


@pytest.mark.parametrize("monotone", [False, True])
def test_neighbors_are_within_epsilon_and_half_the_noise_is_not(monotone: bool) -> None:
    worst, compared = largest_excess(5, monotone=monotone, instances=15_000)
    assert compared >= 15_000
    # Attained, up to what is reserved for roundings.
    assert 1 - F(2, 10**11) < worst <= 1
    assert largest_excess(6, monotone=monotone, halved=True, instances=400)[0] > 1


def test_monotone_is_for_changes_in_one_direction_only() -> None:
    monotone = PermuteAndFlip(epsilon=1, sensitivity=1, monotone=True)
    general = PermuteAndFlip(epsilon=1, sensitivity=1)
    scores, moved = [0, 40, 40], [1, 39, 39]
    ratio = F(1)
    for choice, within in ((monotone, False), (general, True)):
        p, q = choice.pmf(moved).weights, choice.pmf(scores).weights
        ratio = max(F(a, b) for a, b in zip(p, q, strict=True))
        assert (ratio <= exp_of(F(1))[0]) is within
    assert ratio > exp_of(F(99, 100))[1]


def test_tables_of_gaps() -> None:
    for given, want in cases("flip_table"):
        ratio, sensitivity = F(given["ratio"]), given["sensitivity"]
        table = oracle.ladder(ratio, given["bits"], given["length"])
        assert table == want["table"]
        assert oracle.worst_ratio(table, given["k"], sensitivity, given["largest"]) == F(want["worst"])
        assert F(want["worst"]) <= F(want["bound"]) == ratio ** (2 * sensitivity)
        single = oracle.worst_ratio(table, given["k"], sensitivity, given["largest"], True)
        assert single == F(want["worst_monotone"]) <= F(want["bound_monotone"]) == ratio**sensitivity
    for given, want in cases("floor_table"):
        # Powers that are rounded down one by one are not private.
        table = oracle.floors(F(given["ratio"]), given["bits"], given["length"])
        assert table == want["table"]
        worst = oracle.worst_ratio(table, given["k"], 1, given["largest"])
        assert (math.inf if want["worst"] == "inf" else F(want["worst"])) == worst
        assert worst > F(want["bound"])


def test_tables_that_rise_are_not_private_and_cannot_be_given() -> None:
    # All one-step ratios are within 3/2, in both directions, and (3/2)^2 is exceeded in one direction.
    assert oracle.worst_ratio([12, 8, 12, 8, 12, 8], 3, 1, 4, True) > F(3, 2)
    with pytest.raises(TypeError):
        PermuteAndFlip(epsilon=1, sensitivity=1, flips=[1, 0.5, 0.75])  # type: ignore[call-arg]


def votes(choice: Any, values: int) -> SymmetricAlgorithm:
    return SymmetricAlgorithm(
        range(values), lambda dataset: choice.pmf(np.bincount([v for (v,) in dataset], minlength=values))
    )


@pytest.mark.parametrize(("values", "n_users"), [(2, 4), (3, 4), (4, 3)])
def test_audits_of_votes(values: int, n_users: int) -> None:
    arguments: dict[str, Any] = {
        "universe": tuple(range(values)),
        "n_users": n_users,
        "n_examples": 1,
        "delta": 0,
    }
    choice = PermuteAndFlip(epsilon=1, sensitivity=1, maximize=True)
    report = audit_user_level(votes(choice, values), **arguments, epsilon=choice.certified_epsilon)
    assert report.holds is True
    assert report.epsilon.upper <= 1
    for wrong in ({"epsilon": 2}, {"epsilon": 1, "monotone": True}):
        other = PermuteAndFlip(**wrong, sensitivity=1, maximize=True)
        assert audit_user_level(votes(other, values), **arguments, epsilon=1).holds is False


@pytest.mark.parametrize(("table", "holds"), [((32, 24, 18, 14, 11), True), ((32, 24, 18, 13, 10), False)])
def test_audits_of_tables(table: tuple[int, ...], holds: bool) -> None:
    """Of gaps of counts, where a replaced user changes two by one: ratios of (4/3)^2 are allowed."""

    def pmf(dataset: Any) -> list[Fraction]:
        counts = [sum(value == item for (value,) in dataset) for item in range(2)]
        return oracle.by_integral([F(table[max(counts) - count], 32) for count in counts])

    report = audit_user_level(
        SymmetricAlgorithm(range(2), pmf),
        universe=(0, 1),
        n_users=3,
        n_examples=1,
        epsilon=LogRatio(16, 9),
        delta=0,
    )
    assert report.holds is holds


# --- beside the exponential mechanism


def test_expected_gaps_of_the_reference() -> None:
    for given, want in cases("expected_gap"):
        step, gaps = F(given["step"]), given["gaps"]
        flips = [step**gap for gap in gaps]
        for masses, name in (
            (oracle.by_integral(flips), "pf"),
            ([q / sum(flips) for q in flips], "em"),
            ([q**2 / sum(x**2 for x in flips) for q in flips], "em_twice"),
        ):
            assert sum(mass * gap for mass, gap in zip(masses, gaps, strict=True)) == F(want[name])


def test_between_the_exponential_mechanism_and_that_at_twice_epsilon() -> None:
    source = random.Random(4)
    small = F(1, 2**30)
    for _ in range(150):
        scores = [source.randrange(12) for _ in range(source.randrange(2, 7))]
        laws = [
            mechanism.pmf(scores).fractions()
            for mechanism in (
                ExponentialMechanism(epsilon=1, sensitivity=1),
                PermuteAndFlip(epsilon=1, sensitivity=1),
                ExponentialMechanism(epsilon=2, sensitivity=1),
            )
        ]
        for limit in range(12):
            tails = [sum(mass for mass, score in zip(law, scores, strict=True) if score > limit) for law in laws]
            assert tails[0] >= tails[1] * (1 - small)
            assert tails[1] >= tails[2] * (1 - small)
        far = [score for score in scores if score > min(scores)]
        for score in set(far):
            tail = sum(mass for mass, other in zip(laws[1], scores, strict=True) if other >= score)
            bound = F(len(scores) - 1, 2) / exp_of(F(score - min(scores), 2) * (1 - F(1, 2**35)))[0]
            assert tail <= bound * (1 + F(1, 2**36))


def test_the_range_is_not_bounded_and_the_account_says_so() -> None:
    for a, b, ratio in ((4, 1, 3), (9, 1, 5), (9, 4, 2)):
        choice = PermuteAndFlip(epsilon=LogRatio(a, b), sensitivity=1)
        first, second = (F(x, y) for x, y in zip(choice.pmf([0, 1]).weights, choice.pmf([1, 0]).weights, strict=True))
        assert abs(first - ratio) < F(1, 10**9)
        assert first / second > F(a, b)
    for monotone in (False, True):
        choice = PermuteAndFlip(epsilon=1, sensitivity=1, monotone=monotone)
        known = PrivacyLossDistribution.laplace(1, neighbors="add-remove" if monotone else None)
        assert choice.privacy_loss() == PrivacyLossDistribution.from_mechanism(choice) == known
        assert choice.cost.epsilon == 1
