"""The tested mean: its integers against a slow reference, its plan, its paths, and what it says about its errors."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import clipping_excess as reference
from userdp import _core
from userdp.accounting import gaussian_delta, zcdp_delta
from userdp.exact.numbers import COUNTED
from userdp.means import combined as module
from userdp.means.combined import (
    LEAST_WEIGHT,
    MOST_ROUNDS,
    ClippedSum,
    CombinedMean,
    DistanceSearch,
    Look,
    Release,
    Round,
    combined_by_default,
    plan_combined,
    share_of_test,
)
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.problem import MeanProblem
from userdp.mechanisms.composed import run
from userdp.users import GivenVectors

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data/tested_mean_cases.json").read_text())["cases"]


def cases(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=str(case["id"])) for case in CASES if case["kind"] == kind]


def problem(
    n: int = 1000, d: int = 64, m: int = 256, epsilon: Any = 1, delta: Any = "1e-6", **more: Any
) -> MeanProblem:
    given = {"max_norm": 1.0, "norm": "l2", "concentration": m**-0.5, "beta": 0.01} | more
    return MeanProblem(n_users=n, dimension=d, epsilon=epsilon, delta=F(delta), **given)


def planned(*arguments: Any, **more: Any) -> CombinedMean:
    made = plan_combined(problem(*arguments, **more))
    assert isinstance(made, CombinedMean)
    return made


NO_HINT: dict[str, Any] = {"concentration": None}


def everybody(vectors: Any) -> GivenVectors:
    rows = np.array(vectors, dtype=np.float64)
    return GivenVectors(rows, np.ones(len(rows), dtype=bool))


def look(r: int, ball: float, n: int, d: int = 2, center: Any = None, threshold: int = 0) -> Look:
    """Of r steps of 1."""
    return Look(np.zeros(d) if center is None else center, 1.0, r, ball, n, threshold, F(1))


# The statistic.


@pytest.mark.parametrize(("given", "expected"), cases("test_statistic"))
def test_the_statistic_of_shared_cases(given: Any, expected: Any) -> None:
    users, r, two_ball = given["y"], given["r"], given["two_B"]
    rungs = reference.rungs(r, two_ball)
    pull, beyond = everybody(users).clipping_excess(0.0, r, two_ball, 1.0, rungs)
    length = math.isqrt(sum(x * x for x in pull.tolist()))
    assert (max(beyond.tolist()), length) == (expected["far"], expected["near_norm"])
    assert max(length // 2, *beyond.tolist()) == expected["T"]
    assert reference.statistic(users, r, [1] * (rungs + 1)) == expected["T"]


def test_the_statistic_is_that_of_the_slow_reference() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        d, n, r = int(rng.integers(1, 5)), int(rng.integers(1, 9)), int(rng.integers(1, 40))
        ball = float(r * rng.uniform(1.45, 20))
        users = np.rint(rng.normal(size=(n, d)) * ball / 2).astype(int)
        users = users[np.linalg.norm(users, axis=1) <= 2 * ball]
        made = look(r, ball, len(users), d)
        if len(users):
            assert made.statistic(everybody(users)) == reference.statistic(users.tolist(), r, made.weights)


def moves_by(users: list[list[int]], other: list[int], r: int, weights: Any, half: Callable[[int], int]) -> int:
    """How far the statistic moves when the first user is replaced; `half` takes the length to what is compared."""

    def statistic(all_users: list[list[int]]) -> int:
        total = [sum(column) for column in zip(*(reference.pulled(y, r) for y in all_users), strict=True)]
        parts = [half(math.isqrt(sum(x * x for x in total)))]
        parts += [sum(reference.beyond(y, r, rung) for y in all_users) for rung in range(1, len(weights))]
        return max(math.floor(w * x) for w, x in zip(weights, parts, strict=True))

    return abs(statistic(users) - statistic([other, *users[1:]]))


@pytest.mark.parametrize(("given", "expected"), cases("test_sensitivity"))
def test_the_sensitivity_of_the_statistic(given: Any, expected: Any) -> None:
    # Random neighbors, of which many are antipodal, equal, or at the ends of rungs.
    rng, worst, attained = np.random.default_rng(2), -(10**9), 0
    assert given["bound"] == "r"
    for _ in range(given["random_pairs"] // 50):
        d, n, r = int(rng.integers(1, 4)), int(rng.integers(1, 5)), int(rng.integers(1, 9))
        ball = r * float(rng.choice([1.5, 2, 3, 5, 9]))
        weights = look(r, ball, n, d).weights
        users = []
        for _ in range(n + 1):
            length = float(rng.choice([0, r, 2 * r, 4 * r, 2 * ball, rng.uniform(0, 2 * ball)]))
            direction = rng.normal(size=d) if rng.random() < 0.5 else np.eye(d)[0]
            y = np.trunc(direction / np.linalg.norm(direction) * length * rng.choice([-1, 1])).astype(int).tolist()
            users.append([-x for x in users[0]] if users and rng.random() < 0.3 else y)
        *users, other = users
        moved = moves_by(users, other, r, weights, lambda length: length // 2)
        worst, attained = max(worst, moved - r), attained + (moved == r)
    print(f"the statistic moves by at most r + {worst}; {attained} neighbors attain it")
    assert worst <= expected["largest_excess_over_r_at_most"]
    assert attained > 0


def test_the_whole_length_moves_by_more() -> None:
    users, other = [[20, 0], [20, 0]], [-20, 0]
    assert moves_by(users, other, 10, [F(1)] * 2, lambda length: length // 2) == 10
    assert moves_by(users, other, 10, [F(1)] * 2, lambda length: length) > 10


def test_weights_are_at_most_one_and_at_least_the_least() -> None:
    for r in (0.001, 0.01, 0.3, 0.5, 0.69):
        made = planned().look(0, np.zeros(64), r)
        near, *far = (float(weight) for weight in made.weights)
        assert near == pytest.approx(max(LEAST_WEIGHT, min(1, 2 * made.radius)), abs=2**-15)
        assert all(LEAST_WEIGHT - 2**-15 <= weight <= 1 for weight in (near, *far))
        assert far == sorted(far)
        assert far[-1] == 1
        assert 2**made.rungs * made.radius >= 1
        assert made.rungs == 1 or 2 ** (made.rungs - 1) * made.radius < 1


# What clipping may have moved.


def clipping_bias(users: Any, center: Any, r: float) -> float:
    moved = np.array(users) - center
    length = np.linalg.norm(moved, axis=1)
    return float(np.linalg.norm((moved * np.maximum(1 - r / np.maximum(length, 1e-300), 0)[:, None]).mean(0)))


@pytest.mark.parametrize(("given", "expected"), cases("clipping_bias_bound"))
def test_bounds_of_shared_cases(given: Any, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_WEIGHT", 1.0)  # no weights, as in these cases
    ball, r, users = float(F(given["B"])), float(F(given["r"])), F(given["T_users"])
    made = planned(given["n"], 64, max_norm=ball).look(0, np.zeros(64), r)
    assert made.radius == r
    bound = made.moved_at_most(float(users * made.reach))
    exact = float(F(expected["bias_at_most"]))
    assert exact <= bound <= exact * 1.001


def test_clipping_moves_the_mean_by_no_more_than_the_statistic_says() -> None:
    rng, tight = np.random.default_rng(3), 0.0
    for _ in range(300):
        d, n = int(rng.integers(1, 5)), int(rng.integers(2, 30))
        made = planned(n, d).look(0, np.zeros(d), float(rng.uniform(0.02, 0.69)))
        # The largest distance is 2, of opposite ends.
        center = _in_ball(rng.normal(size=(1, d)) * rng.choice([0, 0.3, 5]))[0]
        users = _in_ball(rng.normal(size=(n, d)) * rng.choice([0.1, 0.5, 5]))
        if rng.random() < 0.5:
            users[:] = -center
            users[rng.integers(0, n)] = center
        made = replace(made, center=center)
        bound = made.moved_at_most(made.statistic(everybody(users)))
        bias = clipping_bias(users, center, made.radius)
        assert bias <= bound
        tight = max(tight, bias / bound)
    print(f"the bias is up to {tight:.3f} of the bound")
    assert tight > 0.5


def _in_ball(vectors: Any) -> Any:
    return vectors / np.maximum(1, np.linalg.norm(vectors, axis=1))[:, None]


# Paths: what is spent, and what follows from a transcript.


def stub(rng: np.random.Generator, seen: list[Release]) -> Callable[[Release], tuple[int, ...]]:
    """Releases that send runs along all kinds of paths, and notes what was asked for."""
    calm = rng.random() < 0.5

    def release(step: Release) -> tuple[int, ...]:
        seen.append(step)
        if isinstance(step, Look):
            return (int(step.threshold * rng.uniform(0.5, 1.5)),)
        if isinstance(step, DistanceSearch):
            return (int(rng.integers(0, len(step.candidates) // (3 if calm else 1))),)
        assert isinstance(step, ClippedSum)
        size = step.n_users * step.reach * (0.01 if calm else rng.uniform(0, 1.5)) / math.sqrt(len(step.center))
        sums = tuple(np.rint(rng.normal(size=len(step.center)) * size).astype(int).tolist())
        if not isinstance(step, Round):
            return sums
        return (*sums, int(step.n_users * step.squares * (rng.uniform(0, 0.02) if calm else rng.uniform(-0.1, 1.1))))

    return release


def spent(method: CombinedMean, steps: list[Release]) -> Fraction:
    """A search counts as what is charged for it, which its bounded range is within."""
    total, account = F(0), method.noise.account
    assert account.unit == "mu2"
    for step in steps:
        if isinstance(step, DistanceSearch):
            charged = method.search_share * account.amount
            assert 0.99 * charged < F(math.pi) / 8 * step.epsilon**2 <= charged
            total += charged
        else:
            assert isinstance(step, (ClippedSum, Look))
            total += step.part.amount + (step.part_of_squares.amount if isinstance(step, Round) else 0)
    return total


@pytest.mark.parametrize("d", [4, 64])
def test_all_paths_spend_the_account_exactly(d: int) -> None:
    rng, kinds = np.random.default_rng(d), Counter[str]()
    methods = [planned(n, d, m) for n, m in ((3000, 256), (3000, 16), (10**5, 10**5))]
    methods = [method for method in [*methods, planned(3000, d, **NO_HINT)] if method.worth_it]
    assert len({method.hint is None for method in methods}) == 2
    for index in range(2000 if d == 4 else 1000):
        method, steps = methods[index % len(methods)], list[Release]()
        ending = module._Run(method, stub(rng, steps)).ending()
        assert spent(method, steps) == method.noise.account.amount
        assert all(spent(method, [step]) > 0 for step in steps)
        rounds = sum(isinstance(step, Round) for step in steps)
        looks = sum(isinstance(step, Look) for step in steps)
        assert 1 <= rounds <= MOST_ROUNDS
        assert looks <= 2
        searches = sum(isinstance(step, DistanceSearch) for step in steps)
        assert searches == (rounds if method.hint is None else 0)
        kinds[f"{rounds} rounds"] += 1
        kinds[f"{looks} looks, {'whole range' if ending.look is None else 'clipped'}"] += 1
        integers = rounds * (d + 1) + looks + d
        assert integers * NOISE_DISTANCE <= method.budget().cost.distance <= 2**7 * d * NOISE_DISTANCE
    print(dict(kinds))
    assert {"0 looks, whole range", "1 looks, clipped", "2 looks, clipped", "2 looks, whole range"} <= set(kinds)
    assert len([kind for kind in kinds if "rounds" in kind]) >= 3


def test_the_budget_keeps_the_promise() -> None:
    for d, delta in ((2, F(1, 10)), (64, F(1, 10**6)), (1000, F(1, 10**12))):
        method = planned(10**4, d, 256, "0.7", delta)
        cost = method.budget().cost
        assert cost.mu2 == method.noise.account.amount == sum(method.budget().parts.values())
        assert cost.rho == cost.mu2 / 2
        assert gaussian_delta(cost.mu2, "0.7", distance=2**7 * d * NOISE_DISTANCE) <= delta
        in_rho = planned(10**4, d, 256, "0.7", delta, in_rho=True)
        cost = in_rho.budget().cost
        assert cost.rho == in_rho.noise.rho == sum(in_rho.budget().parts.values())
        assert cost.mu2 is None
        assert zcdp_delta(cost.rho, "0.7", distance=2**7 * d * NOISE_DISTANCE) <= delta
        assert in_rho.predicted_error() > 1.04 * method.predicted_error()
        cost = method.budget().cost
        assert cost.distance == (7 * d + 8) * NOISE_DISTANCE


def test_a_path_that_spends_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    method, rng = planned(3000), np.random.default_rng(0)
    assert method.worth_it
    monkeypatch.setattr(module, "share_of_test", lambda number, d: F(9, 10) if number else share_of_test(0, d))

    def many() -> None:
        for _ in range(1000):
            module._Run(method, stub(rng, [])).ending()

    with pytest.raises(AssertionError, match="than is left"):
        many()


def test_what_follows_from_a_transcript_needs_no_data() -> None:
    rng, source = np.random.default_rng(4), _core.Source(4)
    seen = set()
    for width in (0.05, 0.5, 2.0):
        method = planned(1000, 64, 256, 2)
        users = _in_ball(rng.normal(size=(1000, 64)) * width / 8)
        outcome = run(method.program(everybody(users)), source)
        again = planned(1000, 64, 256, 2)
        assert again.mean(outcome).tolist() == method.mean(outcome).tolist()
        clipped, ball = again.clipped(outcome), again.clipped_to(outcome)
        seen.add(clipped)
        assert clipped == (ball is not None)
        assert (again.moved_at_most(outcome, 0.05) > 0) == clipped
        assert again.moved_at_most(outcome, 0.01) >= again.moved_at_most(outcome, 0.05)
        terms = again.noise_terms(outcome)
        assert len(terms) == (1 if clipped else 2)
        # What was drawn is the mean of clipped vectors, and noise of that size in every coordinate.
        truth = users.mean(0) if ball is None else ball[0] + _clipped(users - ball[0], ball[1]).mean(0)
        deviation = math.sqrt(sum(float(noise.sigma_squared) * step**2 for noise, step in terms))
        off = (again.mean(outcome) - truth) / deviation
        assert np.abs(off).max() < 7 + again.rounding(outcome) / deviation  # 64 columns: below 1e-9
        assert 0 < again.rounding(outcome) < deviation / 16
        accuracy = again.accuracy(outcome)
        assert accuracy.noise() == pytest.approx(deviation, rel=1e-6)
        assert (accuracy.bias is not None) == clipped
        assert accuracy.half_width(0.05) == pytest.approx(1.96 * deviation + accuracy.rounding, rel=0.02)
        if accuracy.bias is not None:
            look, tested = again.ending(outcome).look, again.ending(outcome).seen
            assert look is not None
            # The normal quantile for half of 5 %.
            up = max(tested + 1.96 * math.sqrt(look.noise.sigma_squared), 0)
            assert accuracy.bias.at_most(0.05) == pytest.approx(look.moved_at_most(up), rel=1e-3)
            assert accuracy.bias.root_mean_square() <= accuracy.bias.at_most(1e-9)
        with pytest.raises(ValueError, match="failure"):
            again.moved_at_most(outcome, 0.0)
    assert seen == {False, True}


def _clipped(moved: Any, radius: float) -> Any:
    return moved * np.minimum(1, radius / np.maximum(np.linalg.norm(moved, axis=1), 1e-300))[:, None]


def test_users_without_rows_are_at_the_middle_on_all_paths() -> None:
    # All others are at one point: the mean of all users is at four fifths of it, whether clipped or not.
    # Draws are fixed: in 1e-4 of free runs a false alarm would leave all unclipped.
    n, d, source = 4000, 64, _core.Source(7)
    users, present = np.zeros((n, d)), np.arange(n) % 5 > 0
    users[present, 0] = 0.05
    other = users.copy()
    other[~present] = 0.7  # what is written there is not read
    method = planned(n, d, 256)
    for given in (GivenVectors(users, present), GivenVectors(other, present), everybody(users)):
        outcome = run(method.program(given), source)
        assert method.clipped(outcome)
        assert np.linalg.norm(method.mean(outcome) - users.mean(0)) < 10 * method.predicted_error()
    steps: list[Release] = []
    module._Run(method, stub(np.random.default_rng(0), steps)).ending()
    same = [GivenVectors(users, present).filled(), everybody(users)]
    for step in steps:
        drawn = [[], []]  # type: ignore[var-annotated]
        for values, vectors in zip(drawn, same, strict=True):
            step.draw(lambda noise, value, values=values: values.append(value) or (0,), vectors)  # type: ignore[arg-type]
        assert drawn[0] == drawn[1]


# Plans and the public rule.


def test_plans_start_with_nobody_clipped_and_keep_to_their_limits() -> None:
    for n, d, m in itertools.product((1000, 10**5), (8, 64), (16, 256)):
        method = planned(n, d, m)
        error, shares = method.planned
        if method.worth_it:
            assert sum(shares[1:]) <= module.share_of_rounds(d)
            assert 1 - sum(shares) - share_of_test(0, d) >= module.LEAST_AT_THE_END
            assert error <= 0.6 * method.users / n
        steps: list[Release] = []
        module._Run(method, stub(np.random.default_rng(0), steps)).ending()
        first = steps[0]
        assert isinstance(first, ClippedSum)
        assert not first.center.any()
        assert first.radius >= 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, True),
        ({"m": 1}, True),  # a hint that promises nothing is forgotten
        ({"n": 60}, False),
        ({"delta": 0}, False),
        ({"d": 8, "n": 10**5}, False),
        ({"d": 17, "n": 10**4}, True),
        ({"d": 22, "n": 10**4, "epsilon": 10}, False),
        ({"d": 23, "n": 10**4, "epsilon": 10}, True),
        ({"d": 25, "n": 10**4, "epsilon": 10, "in_rho": True}, False),
        ({"d": 26, "n": 10**4, "epsilon": 10, "in_rho": True}, True),
        ({"d": 14, "n": 10**5, "epsilon": "0.1"}, False),
        # A part of an account, in which there is no Laplace noise.
        ({"d": 17, "n": 10**5, "part": GaussianAccount("rho", F(1, 1000))}, True),
        ({"d": 14, "n": 10**5, "part": GaussianAccount("mu2", F(1, 500))}, False),
    ],
)
def test_the_rule_of_the_default(given: Any, expected: bool) -> None:
    assert combined_by_default(problem(**given)) is expected


def test_a_plan_that_is_not_worth_it_is_noise_for_the_whole_range() -> None:
    method = planned(500, m=1)
    assert not method.worth_it
    outcome = run(method.program(everybody(np.zeros((500, 64)))), _core.Source(0))
    assert len(outcome) == 1
    assert not method.clipped(outcome)
    assert method.moved_at_most(outcome, 0.5) == 0
    ((noise, step),) = method.noise_terms(outcome)
    assert math.sqrt(64 * float(noise.sigma_squared)) * step == pytest.approx(method.predicted_error(), rel=1e-3)
    with pytest.raises(ValueError, match="delta"):
        plan_combined(problem(delta=0))


def test_without_a_hint_the_spread_is_found() -> None:
    rng, source, method = np.random.default_rng(8), _core.Source(8), planned(10**4, **NO_HINT)
    for width in (0.01, 0.1):
        users = 0.3 / 8 + width * rng.normal(size=(10**4, 64)) / 8
        outcome = run(method.program(everybody(users)), source)
        ball = method.clipped_to(outcome)
        assert ball is not None  # of free draws about 1e-4 would be false alarms, as many at half the distances
        assert width < ball[1] < 0.5
    # Too few users for it: noise for the whole range would be an eighth of the ball.
    assert not planned(580, **NO_HINT).worth_it
    assert combined_by_default(problem(**NO_HINT))
    assert not combined_by_default(problem(580, **NO_HINT))


def test_two_users_with_little_noise_are_searched_too() -> None:
    method = planned(2, 64, part=GaussianAccount("rho", F(10**6)), **NO_HINT)
    assert method.worth_it
    assert method.search(np.zeros(64), 1e-6).epsilon == 64
    outcome = run(method.program(everybody(np.full((2, 64), 0.01))), _core.Source(2))
    assert np.abs(method.mean(outcome) - 0.01).max() < 0.01


def test_the_search_of_shared_scores() -> None:
    for n, counts, expected in (
        (10, [0, 2, 5, 9, 10], [9, 7, 4, 0, 0]),
        (7, [1, 1, 7, 7], [6, 6, 0, 0]),
        (1000, [0, 0, 0, 1000, 1000], [900, 900, 900, 0, 0]),
    ):
        search = DistanceSearch(np.zeros(1), (1.0,) * len(counts), n, F(10**9))  # costs are next to nothing
        assert (search.scores(np.array(counts)) // module.PER_USER).tolist() == expected
    costs = DistanceSearch(np.zeros(1), (1.0,) * 3, 1, F(7, 100)).scores(np.array([1, 1, 1]))
    assert costs.tolist() == [0, 5 * module.PER_USER, 10 * module.PER_USER]


def test_transcripts_of_ordinary_problems_are_not_listed() -> None:
    for method in (planned(), planned(500, m=1), planned(580, **NO_HINT)):
        assert method.n_outcomes() > COUNTED


def test_radii_are_whole_steps_of_all_grids() -> None:
    method, rng = planned(10**5), np.random.default_rng(5)
    for radius in (2.0**-30, *rng.uniform(0.0001, 2, size=50).tolist()):
        rounded = method._rounded(radius)
        assert rounded >= radius
        assert rounded <= max(radius, 2.0**-16) * (1 + 2.0**-10)
        made = method.look(0, np.zeros(64), radius)
        assert made.radius == rounded
        assert method.clipped_sum(np.zeros(64), rounded, F(1, 500)).radius == rounded
        assert made.end / made.grid < 2**31
        assert made.reach >= 2**11


def test_users_alike_have_a_tenth_of_the_error_of_no_clipping() -> None:
    # Draws are fixed. Of free ones, a false alarm in both tests, of about 1e-4, would make a run ten times worse.
    rng, source, method = np.random.default_rng(6), _core.Source(6), planned()
    squares = []
    for _ in range(20):
        users = (2 * rng.binomial(256, 0.675, size=(1000, 64)) - 256) / (256 * 8)
        outcome = run(method.program(everybody(users)), source)
        squares.append(float(((method.mean(outcome) - users.mean(0)) ** 2).sum()))
    ratio = math.sqrt(np.mean(squares)) * 1000 / method.users
    print(f"{ratio:.3f} of the error of no clipping")
    assert ratio < 0.38


def test_far_users_are_not_lost() -> None:
    # One in ten at the other end: without the tests their part of the mean, ten times the noise, would be lost.
    source, method = _core.Source(9), planned(10**4)
    users = np.zeros((10**4, 64))
    users[:, 0] = 0.9
    users[:1000, 0] = -0.9
    squares = []
    for _ in range(10):
        outcome = run(method.program(everybody(users)), source)
        assert not method.clipped(outcome)
        squares.append(float(((method.mean(outcome) - users.mean(0)) ** 2).sum()))
    # Chi-squared with 640 degrees of freedom: 1.4 times its mean is 7 standard deviations.
    assert math.sqrt(np.mean(squares)) < 1.19 * math.sqrt(1.4) * method.users / 10**4
