"""Tails, wealth and bounds from counts of guesses, against exact sums and all strategies of small worlds."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from userdp.audit import one_run_epsilon
from userdp.audit.guesses import (
    LEVELS,
    MOST_GUESSES,
    STAKES,
    Counts,
    best_stop,
    claim_refuted,
    epsilon_below,
    rejected,
    tail_above,
    wealth_below,
)
from userdp.audit.samples import MOST_DRAWS
from userdp.checker import guesses as checker
from userdp.checker.values import Problem
from userdp.exact.numbers import PrivacyLevel

F = Fraction
TWENTIETH, BILLIONTH = F(1, 20), F(1, 10**9)


def exact_tail(trials: int, least: int, q: Fraction) -> Fraction:
    top, bottom = q.numerator, q.denominator
    terms = (math.comb(trials, k) * top**k * (bottom - top) ** (trials - k) for k in range(least, trials + 1))
    return F(sum(terms), bottom**trials)


@pytest.mark.parametrize("trials", [1, 2, 7, 40, 200])
@pytest.mark.parametrize("q", [F(1, 2), F(3, 4), F(2**40 - 1, 2**40), F(7310585786, 10**10)])
def test_tails_are_bounds_and_near(trials: int, q: Fraction) -> None:
    for least in range(trials + 1):
        exact = exact_tail(trials, least, q)
        for found in (tail_above(trials, least, q), checker._tail(trials, least, int(q * 2**40))):
            if least * q.denominator <= trials * q.numerator or least == 0:
                assert found == 1 or found >= exact
            elif q.denominator & (q.denominator - 1) == 0:
                assert exact <= found <= exact * (1 + F(1, 2**60))
            else:  # the checker's q is rounded down here
                assert found <= exact * (1 + F(1, 2**20))


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "delta", "alpha", "epsilon"),
    [
        # Of the specification of the bounds, which has them from exact rational sums.
        (10, 10, 10, 0, "0.05", 1.0519),
        (32, 32, 32, 0, "0.05", 2.3214),
        (100, 100, 100, 0, "0.05", 3.49297),
        (128, 128, 128, 0, "0.05", 3.7431),
        (1000, 1000, 1000, 0, "0.05", 5.8091),
        (10_000, 10_000, 10_000, 0, "0.05", 8.1130),
        (10, 10, 10, 0, "1e-9", 0.0),
        (32, 32, 32, 0, "1e-9", 0.0933),
        (100, 100, 100, 0, "1e-9", 1.4685),
        (1000, 1000, 1000, 0, "1e-9", 3.8661),
        (200, 200, 199, 0, "0.05", 3.7270),
        (256, 256, 254, 0, "0.05", 3.6890),
        (1000, 1000, 700, 0, "0.05", 0.7320),
        (100, 100, 100, "1e-5", "0.05", 3.4861),
        (500, 100, 100, "1e-5", "0.05", 3.4579),
    ],
)
def test_published_bounds(canaries: int, guesses: int, right: int, delta: Any, alpha: str, epsilon: float) -> None:
    found = float(one_run_epsilon(canaries, guesses, right, delta=delta, alpha=alpha))
    assert abs(found - epsilon) < 6e-5


def exact_bound(guesses: int, right: int, alpha: Fraction) -> float:
    """The logarithm of q / (1 - q) for the largest multiple of 2^-36 whose tail is at most alpha."""
    low, high = 2**35, 2**36
    if exact_tail(guesses, right, F(1, 2)) > alpha:
        return 0.0
    while high - low > 1:
        middle = (low + high) // 2
        if exact_tail(guesses, right, F(middle, 2**36)) <= alpha:
            low = middle
        else:
            high = middle
    return math.log(low / (2**36 - low))


@pytest.mark.parametrize("delta", ["0", "1e-5"])
@pytest.mark.parametrize(
    ("canaries", "guesses", "right"),
    [
        (1, 1, 1),
        (5, 5, 4),
        (20, 10, 10),
        (50, 50, 31),
        (100, 64, 60),
        (400, 150, 90),
        (1000, 200, 190),
        (1000, 300, 299),
    ],
)
def test_bounds_equal_exact_rational_ones(canaries: int, guesses: int, right: int, delta: str) -> None:
    left = TWENTIETH - canaries * F(delta)
    exact = exact_bound(guesses, right, left)
    # Steps of 2^-36 move epsilon by less than 1e-8 here, and those of the package by less.
    assert abs(exact - float(one_run_epsilon(canaries, guesses, right, delta=delta))) <= 1e-8


def exact_wealth(counts: Counts, multiplier: Fraction, margin: Fraction) -> Fraction:
    most = 2 * multiplier + margin
    total = F(0)
    for g in STAKES:
        gain, rest = 1 + g * (2 - margin) / most, 1 - g * margin / most
        total += gain**counts.right * (1 - g) ** counts.wrong * rest**counts.none
    return total / len(STAKES)


@pytest.mark.parametrize("margin", [F(0), F(1, 100)])
@pytest.mark.parametrize("counts", [Counts(0, 0), Counts(9, 0, 3), Counts(30, 12, 100), Counts(5, 40, 1)])
def test_wealth_is_a_bound_and_near(counts: Counts, margin: Fraction) -> None:
    multiplier = F(11, 4)
    exact, found = exact_wealth(counts, multiplier, margin), wealth_below(counts, multiplier, margin)
    assert exact * (1 - F(1, 2**150)) <= found <= exact
    assert checker.refuted_by(False, list(counts), multiplier, min(F(1, 2), 1 / found), margin) == (found >= 2)


def chance_of_ruin(multiplier: Fraction, q: float, alpha: Fraction, guesses: int) -> float:
    """The probability that the wealth ever reaches 1 / alpha, where each guess is right with probability q."""
    alive, lost = {(0, 0): 1.0}, 0.0
    for _ in range(guesses):
        after: dict[tuple[int, int], float] = {}
        for (right, wrong), mass in alive.items():
            for step, chance in (((1, 0), q), ((0, 1), 1 - q)):
                place = (right + step[0], wrong + step[1])
                if rejected("anytime", Counts(*place), multiplier, alpha):
                    lost += mass * chance
                else:
                    after[place] = after.get(place, 0.0) + mass * chance
        alive = after
    return lost


def test_the_wealth_is_rarely_large_at_any_time() -> None:
    multiplier = F(3)
    at_claim = chance_of_ruin(multiplier, 0.75, TWENTIETH, 40)
    assert 0.001 < at_claim <= 0.05
    # The same claim of a mechanism with half the noise is refuted.
    assert chance_of_ruin(multiplier, 0.9, TWENTIETH, 40) > 0.4


@pytest.mark.parametrize("sides", [1, 2])
def test_no_private_draw_makes_the_wealth_grow(sides: int) -> None:
    source = random.Random(sides)
    for _ in range(50):
        multiplier = F(source.randint(8, 40), 8)
        p, q = ([source.randint(0, 9) for _ in range(4)] for _ in range(2))
        if not sum(p) or not sum(q):
            continue
        first, second = [F(x, sum(p)) for x in p], [F(x, sum(q)) for x in q]
        pairs = list(zip(first, second, strict=True))
        delta = max(
            sum(max(a - multiplier * b, F(0)) for a, b in pairs), sum(max(b - multiplier * a, F(0)) for a, b in pairs)
        )
        margin, most = sides * delta, 2 * multiplier + sides * delta
        for guess in itertools.product((None, True, False) if sides == 2 else (None, True), repeat=4):
            for g in (STAKES[0], STAKES[7], STAKES[-1]):
                factor = F(0)
                for (a, b), said in zip(pairs, guess, strict=True):
                    right = {None: F(0), True: a / 2, False: b / 2}[said]
                    wrong = {None: F(0), True: b / 2, False: a / 2}[said]
                    none = (a + b) / 2 - right - wrong
                    factor += right * (1 + g * (2 - margin) / most) + wrong * (1 - g) + none * (1 - g * margin / most)
                assert factor <= 1


def worlds(n: int, outputs: int, source: random.Random) -> dict[tuple[int, ...], list[Fraction]]:
    """A mechanism on n coins: the probabilities of its outputs."""
    found = {}
    for coins in itertools.product((0, 1), repeat=n):
        weights = [source.choice((1, 2, 3, 4, 6, 9)) for _ in range(outputs)]
        found[coins] = [F(weight, sum(weights)) for weight in weights]
    return found


def flipped(coins: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*coins[:place], 1 - coins[place], *coins[place + 1 :])


@pytest.mark.parametrize("seed", range(12))
def test_one_run_of_every_small_mechanism(seed: int) -> None:
    """The best guesses of any number of coins are right no more often than the bound says, for delta 0 and above."""
    source = random.Random(seed)
    n = source.choice((1, 2, 3))
    mechanism = worlds(n, 3, source)
    neighbors = [(coins, flipped(coins, i)) for coins in mechanism for i in range(n)]
    pure = max(a / b for x, y in neighbors for a, b in zip(mechanism[x], mechanism[y], strict=True))
    tight = False
    for multiplier in {pure, 1 + (pure - 1) / 2, F(1) + (pure - 1) / 4}:
        delta = max(
            sum(max(a - multiplier * b, F(0)) for a, b in zip(mechanism[x], mechanism[y], strict=True))
            for x, y in neighbors
        )
        q = multiplier / (1 + multiplier)
        for r in range(1, n + 1):
            for v in range(1, r + 1):
                best = F(0)
                for output in range(3):
                    masses = {coins: mechanism[coins][output] / 2**n for coins in mechanism}
                    best += max(
                        sum(
                            mass
                            for coins, mass in masses.items()
                            if sum(coins[i] == said for i, said in zip(places, guess, strict=True)) >= v
                        )
                        for places in itertools.combinations(range(n), r)
                        for guess in itertools.product((0, 1), repeat=r)
                    )
                bound = exact_tail(r, v, q) + n * delta
                assert best <= bound
                tight |= best > bound * F(7, 10)
    assert tight


def test_bounds_by_wealth() -> None:
    level = epsilon_below("anytime", Counts(100, 0), TWENTIETH)
    # One gambler of 23 has at least a 23rd; the best of them stakes nearly all.
    assert rejected("anytime", Counts(100, 0), level.ratio, TWENTIETH)
    assert not rejected("anytime", Counts(100, 0), level.ratio * F(10001, 10000), TWENTIETH)
    assert 3.2 < math.log(level.ratio) < 3.49297
    stepped = epsilon_below("anytime", Counts(100, 0), TWENTIETH, F(1, 1000))
    assert stepped.ratio in LEVELS
    assert 1 < stepped.ratio <= level.ratio
    assert epsilon_below("anytime", Counts(0, 0, 10), TWENTIETH, F(1, 1000)).ratio == 1


def test_claims_are_rounded_against_the_finding() -> None:
    # e^1 lies between the two.
    counts = Counts(100, 0)
    assert claim_refuted("fixed", counts, PrivacyLevel(F(1), F(1)), BILLIONTH)
    assert not claim_refuted("fixed", Counts(73, 27), PrivacyLevel(F(1), F(1)), TWENTIETH)
    assert not claim_refuted("fixed", counts, PrivacyLevel(F(1), F(60)), F(1, 2))
    assert not claim_refuted("anytime", counts, PrivacyLevel(F(1), F(0)), F(0))


def test_the_best_moment_is_one_of_the_path() -> None:
    rights = [True] * 40 + [False] * 60

    def refutes(counts: Counts) -> bool:
        return rejected("anytime", counts, F(3, 2), BILLIONTH)

    assert best_stop(rights, refutes, 1.5) is None
    found = best_stop(rights, lambda counts: rejected("anytime", counts, F(3, 2), TWENTIETH), 1.5)
    assert found == Counts(40, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((0, 1, 1), ValueError, "n_canaries must be at least 1"),
        ((5, 6, 1), ValueError, "n_right <= n_guesses <= n_canaries"),
        ((5, 4, 5), ValueError, "n_right <= n_guesses <= n_canaries"),
        ((10**7, 1, 1), ValueError, "n_canaries must be at most 200,000"),
        ((5, 5, 2.0), TypeError, "n_right must be an int"),
    ],
)
def test_counts_that_do_not_fit(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        one_run_epsilon(*arguments)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"delta": "1e-3"}, "alpha must be above the number of canaries times delta"),
        ({"alpha": 0}, "alpha must be in"),
        ({"alpha": 0.7}, "alpha must be in"),
        ({"delta": 2}, "delta must be in"),
    ],
)
def test_errors_that_prove_nothing(keywords: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        one_run_epsilon(100, 100, 100, **keywords)


def _written(access: str, test: str, canaries: int, verdict: tuple[int, int], estimate: tuple[int, int]) -> Any:
    nothing = {"ratio": "1", "exponent": "0"}
    parts = {
        name: {"alpha": alpha, "right": right, "wrong": wrong, "none": 0, "epsilon": nothing}
        for name, alpha, (right, wrong) in (("verdict", "1/1000000000", verdict), ("estimate", "1/20", estimate))
    }
    return {
        **{"mechanism": "m", "about": "a", "neighbors": "replace", "access": access, "test": test, "sides": 2},
        **{
            "delta": "0",
            "holds": None,
            "canaries": canaries,
            "runs": 1 if canaries else 1000,
            "raised": 0,
            "epsilon_level": {"ratio": "2", "exponent": "0"},
            **parts,
        },
    }


@pytest.mark.parametrize(
    ("access", "test", "canaries"), [("samples", "anytime", 0), ("one-run", "fixed", 50), ("one-run", "anytime", 50)]
)
def test_both_bounds_are_of_the_same_guesses(access: str, test: str, canaries: int) -> None:
    """Draws are counted once; only in one run with stops, one part may be a beginning of the other."""
    checker.check_guesses(_written(access, test, canaries, (6, 4), (6, 4)))
    for verdict, estimate in (((6, 4), (5, 5)), ((6, 4), (8, 3)), ((5, 4), (6, 3))):
        with pytest.raises(Problem, match="not of the same guesses"):
            checker.check_guesses(_written(access, test, canaries, verdict, estimate))
    longer = _written(access, test, canaries, (6, 4), (7, 4))
    if test == "anytime" and canaries:
        checker.check_guesses(longer)
    else:
        with pytest.raises(Problem, match="not of the same guesses"):
            checker.check_guesses(longer)


def test_all_bounds_can_be_checked() -> None:
    """What the checker refuses to look at would make a report that is right look wrong."""
    longest = max(max(level.numerator, level.denominator).bit_length() for level in LEVELS)
    assert longest <= checker.MOST_BITS
    assert checker.MOST_GUESSES == MOST_GUESSES
    assert checker.MOST_DRAWS >= MOST_DRAWS
    assert list(LEVELS) == sorted(set(LEVELS))
    # Nearly all of a million draws are right, with and without delta.
    for margin in (F(0), F(1, 1000)):
        counts = Counts(999_000, 1_000, 5)
        found = epsilon_below("anytime", counts, BILLIONTH, margin)
        assert found.ratio > 32
        assert checker.refuted_by(False, list(counts), found.ratio, BILLIONTH, margin)
