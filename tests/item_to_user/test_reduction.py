"""Subsampled distributions against enumeration, explicit stability constants, plans, and refusals."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import random
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle import generalization as oracle
from userdp import LogRatio, Pmf
from userdp.accounting import subsampling_amplification, subsampling_population
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.exceptions import BudgetError
from userdp.item_to_user import (
    SubsampledAlgorithm,
    UserLevelPlan,
    deletion_level,
    empirical_stability,
    generalization_level,
    largest_item_epsilon,
    plan_user_level,
    suggested_item_level,
    trivial_users,
    user_level_algorithm,
)
from userdp.planning import compare_methods

F = Fraction
CASES = json.loads((Path(__file__).parents[1] / "data" / "accounting_and_divergence_cases.json").read_text())["cases"]


def random_pmf(source: random.Random, size: int) -> list[F]:
    weights = [source.choice((0, 1, 2, 3, 7)) for _ in range(size)]
    weights[source.randrange(size)] += 1
    return [F(weight, sum(weights)) for weight in weights]


def itself(item: Any) -> int:
    return int(item)


def ones(items: Any) -> int:
    return sum(items)


def distribution_of_total(pmfs: dict[int, list[F]], items: Any) -> list[F]:
    return pmfs[ones(items)]


def split(source: random.Random, items: list[Any]) -> tuple[tuple[Any, ...], ...]:
    """The items as users of various sizes."""
    cuts = sorted(source.randrange(len(items) + 1) for _ in range(source.randrange(4)))
    return tuple(tuple(items[a:b]) for a, b in itertools.pairwise([0, *cuts, len(items)]))


@pytest.mark.parametrize("symmetric", [False, True])
def test_pmf_is_the_average_over_all_subsets(symmetric: bool) -> None:
    source = random.Random(11 + symmetric)
    for _ in range(250):
        pmfs: dict[Any, list[F]] = {}
        size, outputs = source.randrange(1, 5), source.randrange(1, 4)

        def pmf(items: Any, pmfs: Any = pmfs, outputs: int = outputs) -> list[F]:
            key = tuple(sorted(items)) if symmetric else items
            return pmfs.setdefault(key, random_pmf(source, outputs))  # type: ignore[no-any-return]

        items = [source.choice("abc") for _ in range(source.randrange(size, 8))]
        item_algorithm = SymmetricAlgorithm(range(outputs), pmf) if symmetric else finite_algorithm(range(outputs))(pmf)
        algorithm = SubsampledAlgorithm(item_algorithm, size)
        assert isinstance(algorithm, SymmetricAlgorithm) is symmetric
        distribution = algorithm.pmf(split(source, items))
        assert isinstance(distribution, Pmf)
        assert distribution.fractions() == oracle.subsampled(pmf, items, size)


def test_float_pmfs_are_divided_by_their_exact_sum() -> None:
    source = np.random.default_rng(3)
    table = source.dirichlet([0.3, 1, 5], size=4)  # sums are off from 1 by roundings
    algorithm = SubsampledAlgorithm(SymmetricAlgorithm(range(3), lambda items: table[ones(items)]), 3)
    items = (0, 1, 1, 0, 1, 0, 1)

    def exact(drawn: tuple[int, ...]) -> list[F]:
        masses = [F(mass) for mass in table[sum(drawn)].tolist()]
        return [mass / sum(masses) for mass in masses]

    assert any(sum(F(mass) for mass in row) != 1 for row in table.tolist())
    pmf = algorithm.pmf((items[:3], items[3:]))
    assert isinstance(pmf, Pmf)
    assert pmf.fractions() == oracle.subsampled(exact, items, 3)


def test_items_are_told_apart_by_value_and_type() -> None:
    seen: list[tuple[Any, ...]] = []

    def pmf(items: Any) -> list[F]:
        seen.append(items)
        sign = math.copysign(1, items[0]) if isinstance(items[0], float) else 1
        return [F(1), F(0)] if items[0] is True or sign < 0 else [F(0), F(1)]

    algorithm = SubsampledAlgorithm(finite_algorithm(("a", "b"))(pmf), 1)
    distribution = algorithm.pmf(((True, 1), (0.0, -0.0), (np.float64(0.0), 1)))
    assert isinstance(distribution, Pmf)
    assert distribution.fractions() == [F(2, 6), F(4, 6)]
    assert len(seen) == 4  # True, 1, 0.0 and -0.0, each evaluated once
    for strange in (object(), {1}, 1j, (1, object())):
        with pytest.raises(TypeError, match="dataset: the user at position 0 is of the type"):
            algorithm.pmf(((strange,),))


def test_order_of_users_does_not_change_a_symmetric_pmf() -> None:
    # A float algorithm whose last bits depend on the order of its items still gives one distribution.
    def pmf(items: Any) -> list[float]:
        share = 0.0
        for item in items:
            share = share / 3 + item
        return [share, 1 - share]

    algorithm = SubsampledAlgorithm(SymmetricAlgorithm((0, 1), pmf), 2)
    users = ((0.1,), (0.25, 0.3), (0.05,))
    assert len({algorithm.pmf(order) for order in itertools.permutations(users)}) == 1


def test_item_level_privacy_is_amplified_as_stated() -> None:
    # Theorem 7 on real distributions: replace one item of the pool; the amplified level holds for the exact
    # distributions.
    source = random.Random(8)
    for _ in range(40):
        pmfs = {total: [F(source.randrange(1, 6)) for _ in range(3)] for total in range(4)}
        pmfs = {total: [weight / sum(pmf) for weight in pmf] for total, pmf in pmfs.items()}
        size, pool = 3, source.randrange(3, 8)
        level = max(
            max(p / q for p, q in zip(pmfs[a], pmfs[b], strict=True))
            for a in range(4)
            for b in range(4)
            if abs(a - b) <= 1
        )
        amplified = subsampling_amplification(
            LogRatio(level.numerator, level.denominator), 0, n_sampled=size, n_total=pool
        ).epsilon
        algorithm = SubsampledAlgorithm(SymmetricAlgorithm(range(3), partial(distribution_of_total, pmfs)), size)
        for number in range(pool):
            first, second = (
                algorithm.pmf(((1,) * count + (0,) * (pool - count),)).fractions()  # type: ignore[union-attr]
                for count in (number, number + 1)
            )
            assert isinstance(amplified, (LogRatio, Fraction))
            multiplier = amplified.ratio if isinstance(amplified, LogRatio) else F(1)
            assert oracle.alike(first, second, multiplier, F(0))


def test_two_subsamples_are_one() -> None:
    source = random.Random(21)
    pmfs: dict[Any, list[F]] = {}
    inner = SymmetricAlgorithm(range(2), lambda items: pmfs.setdefault(tuple(sorted(items)), random_pmf(source, 2)))
    once = SubsampledAlgorithm(inner, 2)

    def middle(items: Any) -> Any:
        return once.pmf((items,))

    twice = SubsampledAlgorithm(SymmetricAlgorithm(range(2), middle), 4)
    dataset = ((0, 1, 2), (2, 1, 1))
    assert twice.pmf(dataset) == once.pmf(dataset)


def test_large_symmetric_pmfs_are_affordable_and_labeled_ones_refused() -> None:
    vote = AdditiveAlgorithm((0, 1), itself, lambda total, n: [F(n - total, n), F(total, n)], statistic_range=(0, 1))
    users = tuple((1, 0, 0, 0) for _ in range(100))
    pmf = SubsampledAlgorithm(vote, 150).pmf(users)
    assert isinstance(pmf, Pmf)
    assert pmf.fractions() == [F(3, 4), F(1, 4)]  # the mean of the hypergeometric distribution
    calls: list[Any] = []

    @finite_algorithm(outputs=(0, 1))
    def labeled(items: Any) -> list[int]:
        calls.append(items)
        return [1, 0]

    with pytest.raises(BudgetError, match="symmetric"):
        SubsampledAlgorithm(labeled, 150).pmf(users)
    assert not calls
    with pytest.raises(BudgetError, match="universe"):
        SubsampledAlgorithm(vote, 150, budget=100).pmf(users)
    with pytest.raises(BudgetError, match="universe"):  # public: the data have two types, the universe three
        SubsampledAlgorithm(vote, 150, universe=(0, 1, 2), budget=1000).pmf(users)


class Vote:
    outputs = (0, 1)

    def pmf(self, items: Any) -> list[F]:
        return [1 - F(ones(items), len(items)), F(ones(items), len(items))]


def test_subsamples_travel_to_other_processes() -> None:
    algorithm = SubsampledAlgorithm(Vote(), 2)
    again = pickle.loads(pickle.dumps(algorithm))
    assert again.pmf(((0, 1), (1,))) == algorithm.pmf(((0, 1), (1,)))


def test_bad_subsamples() -> None:
    coin = SymmetricAlgorithm((0, 1), lambda items: ["1/2", "1/2"])
    with pytest.raises(ValueError, match="n_items"):
        SubsampledAlgorithm(coin, 0)
    with pytest.raises(TypeError, match="n_items"):
        SubsampledAlgorithm(coin, 2.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="mechanism"):
        SubsampledAlgorithm(object(), 1)
    with pytest.raises(ValueError, match="pmf_error"):
        SubsampledAlgorithm(SymmetricAlgorithm((0,), lambda items: [1], pmf_error=0.1), 1)
    with pytest.raises(ValueError, match="2 items"):
        SubsampledAlgorithm(coin, 3).pmf(((0,), (1,)))
    with pytest.raises(ValueError, match="universe"):
        SubsampledAlgorithm(coin, 1, universe=(0, 1)).pmf(((True,),))
    with pytest.raises(ValueError, match="sum to exactly 1"):
        SubsampledAlgorithm(SymmetricAlgorithm((0, 1), lambda items: [F(1, 2), F(1, 3)]), 1).pmf(((0,),))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        SubsampledAlgorithm(SymmetricAlgorithm((0, 1), lambda items: 1 // 0), 1).pmf(((0,),))


# ------------------------------------------------------------------ explicit constants


def test_concentration_formulas() -> None:
    source = random.Random(4)
    for _ in range(200):
        epsilon, n = 10 ** source.uniform(-6, -1), source.randrange(1, 3000)
        delta = source.choice((0.0, 10 ** source.uniform(-15, -6)))
        beta, slack = 10 ** source.uniform(-9, 0), 10 ** source.uniform(-12, -2)
        level = generalization_level(epsilon, delta, n_items=n, beta=beta, slack=slack, route="concentration")
        expected_epsilon, expected_delta, _ = oracle.concentration(epsilon, delta, n, -math.log(beta), slack)
        assert level.epsilon == pytest.approx(expected_epsilon, rel=1e-12)
        assert level.delta == pytest.approx(min(1, expected_delta), rel=1e-12)
        group = generalization_level(epsilon, delta, n_items=n, beta=beta, route="group")
        assert F(group.epsilon) >= n * F(str(epsilon))
        assert group.epsilon == pytest.approx(n * epsilon, rel=1e-15)
        assert group.delta == pytest.approx(min(1, sum(delta * math.exp(j * epsilon) for j in range(n))), rel=1e-9)
        best = generalization_level(epsilon, delta, n_items=n, beta=beta, slack=slack)
        assert best == min(level, group, key=lambda candidate: candidate.epsilon)


@pytest.mark.parametrize("digits", [1, 5, 6, 7, 12, 20, 30, 61, 200, 323])
@pytest.mark.parametrize("route", ["group", "concentration"])
def test_levels_next_to_zero_keep_their_digits(digits: int, route: Any) -> None:
    # ln(1 + x) is within x^2 / 2 of x - x^2 / 2 + x^3 / 3, and near (2 z)-series terms of any length of numerals.
    x = F(1, 10**digits)
    near = LogRatio(10**digits + 1, 10**digits)
    exact = sum(((-1) ** (k + 1) * x**k / k for k in range(1, 40)), F(0))
    level = generalization_level(near, "1e-9", n_items=100, beta=0.01, route=route)
    same = generalization_level(exact, "1e-9", n_items=100, beta=0.01, route=route)
    assert level.epsilon == pytest.approx(same.epsilon, rel=1e-15)
    assert level.delta == pytest.approx(same.delta, rel=1e-15)
    if route == "group":
        assert F(level.epsilon) >= 100 * (exact - x**40) > 0


def test_the_largest_item_level_below_a_level_next_to_zero() -> None:
    near = LogRatio(10**61 + 1, 10**61)
    common: dict[str, Any] = {"delta": 0, "item_delta": 0, "n_users": 10, "deletions": 2, "m": 3, "beta": 0.5}
    largest = largest_item_epsilon(epsilon=near, **common)
    assert 0 < largest < 1e-61
    assert largest == pytest.approx(largest_item_epsilon(epsilon=F(1, 10**61), **common), rel=1e-7)


def test_deletions_are_generalization_with_a_union_bound() -> None:
    n, r, m, beta = 12, 3, 40, 0.01
    subsets = math.comb(n, r)
    level = deletion_level(0.002, 1e-9, n_users=n, deletions=r, m=m, beta=beta, route="concentration")
    same = generalization_level(
        0.002, 1e-9, n_items=r * m, beta=F(1, 50) / subsets**2, slack=1e-9, route="concentration"
    )
    assert level.epsilon == pytest.approx(same.epsilon, rel=1e-12)
    assert level.delta == pytest.approx(same.delta, rel=1e-12)
    # The smaller side of the users is what can differ; no deletion, or no user left, and nothing can.
    few = deletion_level(0.002, 0, n_users=n, deletions=n - r, m=m, beta=beta)
    assert few == deletion_level(0.002, 0, n_users=n, deletions=r, m=m, beta=beta)
    for removed in (0, n):
        assert deletion_level(1, "1/2", n_users=n, deletions=removed, m=m, beta=beta).epsilon == 0.0


def stability(epsilon: float, delta: float, n: int, r: int, m: int, **options: Any) -> float:
    inner = epsilon / 3
    return largest_item_epsilon(
        epsilon=inner,
        delta=delta / (math.exp(2 * inner) + math.exp(inner) + 2),
        item_delta=options.get("item_delta", 0),
        n_users=n,
        deletions=r,
        m=m,
        beta=0.01,
    )


@pytest.mark.parametrize(
    ("setting", "concentration", "group", "crossover"),
    [((1, 1e-6, 1000, 192), 4.19e-4, 1.74e-3, 17), ((8, 0.01, 100, 20), 0.018, 0.133, 55)],
)
def test_measured_constants(
    setting: tuple[float, float, int, int], concentration: float, group: float, crossover: int
) -> None:
    # Figures of an independent derivation; it spends a little less of epsilon on the concentration.
    for m in (200, 10_000, 10**6):
        assert concentration <= stability(*setting, m) * math.sqrt(m) <= 1.04 * concentration
    for m in (1, 4, 10):
        assert stability(*setting, m) * m == pytest.approx(group, rel=3e-3)
    by_group = setting[0] / 3 / setting[3]
    wins = [m for m in range(1, 100) if stability(*setting, m) * m > by_group * (1 + 1e-5)]
    assert wins == list(range(wins[0], 100))
    assert crossover - 2 <= wins[0] <= crossover + 1


def test_largest_item_epsilon_is_certified_and_nearly_largest() -> None:
    for m, item_delta in ((3, 0), (3, 1e-11), (500, 0), (500, 1e-13)):
        largest = stability(1, 1e-6, 1000, 192, m, item_delta=item_delta)
        assert largest > 0
        levels = [
            deletion_level(
                largest, item_delta, n_users=1000, deletions=192, m=m, beta=0.01, slack=10.0**-digits, route=route
            )
            for digits in range(6, 14)
            for route in ("concentration", "group")
        ]
        assert any(level.epsilon <= 1 / 3 * 1.04 and level.delta <= 1.9e-7 for level in levels)
        factor = 1.2 if item_delta else 1.02
        above = (
            deletion_level(
                factor * largest,
                item_delta,
                n_users=1000,
                deletions=192,
                m=m,
                beta=0.01,
                slack=10 ** (-tenths / 10),
                route=route,
            )
            for tenths in range(60, 140, 2)
            for route in ("concentration", "group")
        )
        assert all(level.epsilon > 1 / 3 or level.delta > 1.86e-7 for level in above)
    assert stability(1, 1e-6, 1000, 192, 3, item_delta=1e-3) == 0.0
    assert stability(1, 1e-6, 1000, 0, 3) == math.inf


def test_concentration_holds_on_randomized_response() -> None:
    # Lemma 14, exactly: the expected divergence of n-fold randomized response (released whole) on two samples.
    for n, (top, bottom), weight in itertools.product((1, 2, 3), ((21, 20), (3, 2)), (F(1, 2), F(1, 5))):
        keep = F(top, top + bottom)

        def pmf(x: tuple[int, ...], keep: F = keep) -> list[F]:
            return [
                math.prod((keep if a == b else 1 - keep for a, b in zip(x, y, strict=True)), start=F(1))
                for y in itertools.product((0, 1), repeat=len(x))
            ]

        weighted = [
            (x, math.prod((weight if z else 1 - weight for z in x), start=F(1)))
            for x in itertools.product((0, 1), repeat=n)
        ]
        for slack in (0.3, 0.05):
            epsilon = math.log(top / bottom)
            v = 4 * n * epsilon**2
            a = v + math.sqrt(2 * v * (-math.log(slack) + v / 2 + max(0, math.log(math.pi * v / 2) / 2)))
            multiplier = F(math.exp(2 * a))
            expected = sum(
                p * q * oracle.hockey_stick(pmf(x), pmf(y), multiplier) for x, p in weighted for y, q in weighted
            )
            assert expected <= (1 + math.exp(a)) * slack
            for beta in (F(1, 2), F(1, 10)):
                level = generalization_level(LogRatio(top, bottom), 0, n_items=n, beta=beta, slack=slack)
                clash = oracle.sample_perfect(pmf, weighted, F(math.exp(level.epsilon) * (1 + 1e-14)), F(level.delta))
                assert clash <= beta


def test_stability_under_deletions_on_noisy_counts() -> None:
    # Theorem 17, exactly: the probability over all data that a noisy count of the kept items is LDDP.
    users, m, deletions = 4, 2, 1
    for ratio_, weight in itertools.product((F(11, 10), F(3, 2)), (F(1, 2), F(1, 6))):

        def pmf(dataset: Any, base: F = ratio_) -> list[F]:
            total = sum(map(sum, dataset))
            masses = [base ** -abs(output - total) for output in range(7)]
            return [mass / sum(masses) for mass in masses]

        pmfs = [pmf(((1,) * total,)) for total in range(7)]
        item_level = max(
            max(p / q for p, q in zip(pmfs[a], pmfs[b], strict=True))
            for a, b in itertools.permutations(range(7), 2)
            if abs(a - b) == 1
        )
        weighted = oracle.samples({0: 1 - weight, 1: weight}, users, m)
        epsilon = LogRatio(item_level.numerator, item_level.denominator)
        beta = F(1, 10)
        for route in ("group", "concentration"):
            level = deletion_level(
                epsilon, 0, n_users=users, deletions=deletions, m=m, beta=beta, slack="1/20", route=route
            )
            multiplier = F(math.exp(level.epsilon) * (1 + 1e-14))
            stable = sum(mass for x, mass in weighted if oracle.lddp(pmf, x, deletions, multiplier, F(level.delta)))
            assert stable >= (1 if route == "group" else 1 - beta)


def test_bounded_ratio_martingales_concentrate() -> None:
    # The step behind Lemma 14 on its extremal martingale: n steps by factors e^(+-2 epsilon), mean 1.
    for n, epsilon, slack in itertools.product((1, 5, 30), (0.02, 0.1, 0.4), (0.3, 1e-2, 1e-4)):
        eta, v = 2 * epsilon, 4 * n * epsilon**2
        a = v + math.sqrt(2 * v * (-math.log(slack) + v / 2 + max(0, math.log(math.pi * v / 2) / 2)))
        up = 1 / (1 + math.exp(eta))
        above = below = 0.0
        for ups in range(n + 1):
            mass = math.comb(n, ups) * up**ups * (1 - up) ** (n - ups)
            ratio = math.exp(eta * (2 * ups - n))
            above += mass * max(0, ratio - math.exp(a))
            below += mass * max(0, 1 - math.exp(a) * ratio)
        assert above <= slack
        assert below <= slack


def test_extreme_levels_do_not_overflow() -> None:
    level = generalization_level(1e6, 1e-300, n_items=10**9, beta="1e-400", route="concentration")
    assert level.delta == 1.0
    assert level.epsilon > 1e21
    tiny = generalization_level("1e-300", "1e-350", n_items=10**9, beta=1, route="group")
    assert 0 < tiny.epsilon < 1e-290
    assert 0 < tiny.delta < 1e-300


# ------------------------------------------------------------------ plans


def published(kind: str) -> list[Any]:
    return [pytest.param(case["input"], case["expected"], id=case["id"]) for case in CASES if case["kind"] == kind]


def ratio(text: str) -> LogRatio:
    value = F(text)
    return LogRatio(value.numerator, value.denominator)


@pytest.mark.parametrize(("given", "expected"), published("subsample_N"))
def test_plans_reproduce_published_populations(given: dict[str, Any], expected: dict[str, int]) -> None:
    plan = plan_user_level(
        n_items=given["n"],
        item_epsilon=ratio(given["exp_eps"]),
        m=given["multiple_of"],
        epsilon=1,
        delta=1e-6,
        stability=lambda n_users: ratio(given["target_exp_eps"]),
        deletions=5,
        stability_epsilon="1/3",
        stability_delta=1e-7,
    )
    assert plan.n_kept_items == expected["N"]
    assert plan.n_users == expected["N"] // given["multiple_of"] + 5


def plan(**changes: Any) -> UserLevelPlan:
    arguments: dict[str, Any] = {
        "n_items": 10,
        "item_epsilon": LogRatio(2),
        "m": 4,
        "epsilon": 1,
        "delta": 1e-6,
        "deletions": 3,
        "stability_epsilon": "1/3",
        "stability_delta": 1e-7,
    }
    return plan_user_level(**{**arguments, **changes})


def test_population_is_rounded_to_whole_users() -> None:
    # n1 = 10, m = 4, e^item = 2, e^target = 3: N = 12, not 10.
    assert plan(stability=lambda n_users: LogRatio(3)).n_kept_items == 12


def test_plans_are_locally_smallest_and_serve() -> None:
    source = random.Random(9)
    for _ in range(8):
        m, deletions, drawn = source.randrange(1, 200), source.randrange(1, 50), source.randrange(1, 300)
        start = source.choice((0.01, 0.1, 1.0))
        made = plan(n_items=drawn, item_epsilon=start, m=m, deletions=deletions, item_delta=1e-15)
        assert made.n_kept_items % m == 0
        assert made.n_kept_items >= drawn
        assert made.n_users == made.n_kept_items // m + deletions

        def serves(size: int, m: int = m, deletions: int = deletions, drawn: int = drawn, start: float = start) -> bool:
            target = largest_item_epsilon(
                epsilon="1/3",
                delta=1e-7,
                item_delta=F(1e-15) * drawn / size,
                n_users=size // m + deletions,
                deletions=deletions,
                m=m,
                beta=0.01,
            )
            return math.log1p(drawn / size * math.expm1(start)) <= target

        assert serves(made.n_kept_items)
        if made.n_kept_items - m >= drawn:
            assert not serves(made.n_kept_items - m)
        level = deletion_level(
            made.subsampled_epsilon,
            made.subsampled_delta,
            n_users=made.n_users,
            deletions=deletions,
            m=m,
            beta=0.01,
            slack=1e-9,
        )
        assert level.epsilon <= 0.36


def test_a_callable_target_that_depends_on_the_size() -> None:
    # 1/N-like targets: the size that serves is found by doubling and halving, far beyond any scan.
    size = subsampling_population(1.0, n_sampled=10**4, target=lambda n: 1e-7, multiple_of=8)
    assert size % 8 == 0
    exact = 10**4 * math.expm1(1) / math.expm1(1e-7)
    assert 0 <= size - exact < 9
    seen: list[int] = []

    def target(n: int) -> float:
        seen.append(n)
        return 1.0 if n >= 12_345 else 1e-9

    assert subsampling_population(1.0, n_sampled=3, target=target) == 12_345
    assert len(seen) < 60


def test_plan_text_and_options() -> None:
    text = str(plan(stability=lambda n_users: "0.5"))
    assert "3 deleted" in text
    assert "given bound" in text
    assert "user-level (1, 1e-06)-DP" in text


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n_items": 0}, ValueError, "n_items"),
        ({"m": 1.5}, TypeError, "m must"),
        ({"item_epsilon": -1}, ValueError, "item_epsilon"),
        ({"item_delta": 2}, ValueError, "item_delta"),
        ({"beta": 0}, ValueError, "beta"),
        ({"deletions": 0}, ValueError, "deletions"),
        ({"deletions": None}, TypeError, "deletions"),
        ({"stability": "guess"}, TypeError, "stability"),
        ({"stability": lambda n: 0}, ValueError, "stability asks for more than any subset leaves"),
        ({"stability_epsilon": 0}, ValueError, "epsilon"),
        ({"delta": "x"}, ValueError, "delta"),
    ],
)
def test_bad_plans(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        plan(**changes)


def test_bad_levels() -> None:
    with pytest.raises(ValueError, match="slack"):
        generalization_level(0.1, 0, n_items=5, beta=0.1, slack=1)
    with pytest.raises(ValueError, match="route"):
        generalization_level(0.1, 0, n_items=5, beta=0.1, route="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="deletions"):
        deletion_level(0.1, 0, n_users=3, deletions=4, m=1, beta=0.1)
    with pytest.raises(ValueError, match="epsilon"):
        suggested_item_level(0, 0.1, 3)
    with pytest.raises(TypeError, match="plan"):
        user_level_algorithm(SymmetricAlgorithm((0,), lambda items: [1]), "plan")  # type: ignore[arg-type]


# ------------------------------------------------------------------ empirical stability


def noisy_vote(total: int, n_users: int) -> list[F]:
    return [F(1 + total, n_users + 2), F(n_users + 1 - total, n_users + 2)]


@pytest.mark.parametrize("symmetric", [False, True])
def test_empirical_stability_against_the_exact_probability(symmetric: bool) -> None:
    def pmf(dataset: Any) -> list[F]:
        return noisy_vote(sum(map(sum, dataset)), sum(map(len, dataset)))

    algorithm = SymmetricAlgorithm((0, 1), pmf) if symmetric else finite_algorithm((0, 1))(pmf)
    distribution = {0: F(2, 3), 1: F(1, 3)}
    weighted = oracle.samples(distribution, 4, 2)
    for multiplier, delta in ((F(3, 2), F(0)), (F(6, 5), F(1, 20))):
        truth = sum(mass for x, mass in weighted if oracle.lddp(pmf, x, 1, multiplier, delta))
        result = empirical_stability(
            algorithm,
            distribution={0: 2, 1: 1},
            n_users=4,
            m=2,
            deletions=1,
            epsilon=LogRatio(multiplier.numerator, multiplier.denominator),
            delta=delta,
            samples=300,
            confidence=0.9999,
        )
        assert 0 < truth < 1
        assert result.probability.lower <= truth <= result.probability.upper
        assert result.probability.lower < result.fraction < result.probability.upper
        assert "of 300 datasets" in str(result)


def test_clopper_pearson_interval() -> None:
    # Against its definition in fractions.
    from userdp.exact.numbers import clopper_pearson

    pairs = ((10, 0), (10, 10), (10, 3), (57, 20), (400, 399))
    for (trials, successes), confidence in itertools.product(pairs, (0.95, 1 - 2**-20, 1 - 2**-40)):
        bounds, tail_level = clopper_pearson(successes, trials, confidence), (1 - confidence) / 2

        def tail(p: float, low: int, high: int, trials: int = trials) -> F:
            q = F(p)
            return sum((math.comb(trials, i) * q**i * (1 - q) ** (trials - i) for i in range(low, high)), F(0))

        # Ends next to 0 and 1 are rounded outwards.
        if successes:
            below = float(tail(bounds.lower, successes, trials + 1)) / tail_level
            assert 1 - 1e-6 <= below <= 1 + 1e-6
        if successes < trials:
            above = float(tail(bounds.upper, 0, successes + 1)) / tail_level
            assert (1 - 1e-6 if bounds.upper < 0.999 else 0) <= above <= 1 + 1e-6
    assert clopper_pearson(0, 10, 0.95).lower == 0
    assert clopper_pearson(10, 10, 0.95).upper == 1


def test_bad_simulations() -> None:
    constant = SymmetricAlgorithm((0,), lambda dataset: [1])
    good: dict[str, Any] = {"distribution": {0: 1}, "n_users": 3, "m": 1, "deletions": 1, "epsilon": 0, "delta": 0}
    assert empirical_stability(constant, **good).fraction == 1
    for changes, error, message in (
        ({"deletions": 4}, ValueError, "deletions"),
        ({"distribution": [1, 2]}, TypeError, "distribution"),
        ({"distribution": {0: -1}}, ValueError, "distribution"),
        ({"distribution": {0: 0}}, ValueError, "zero"),
        ({"confidence": 1}, ValueError, "confidence"),
        ({"samples": 0}, ValueError, "samples"),
    ):
        with pytest.raises(error, match=message):
            empirical_stability(constant, **{**good, **changes})
    # A hundred equal users have one way to lose fifty, but not for an algorithm that sees their order.
    many = {**good, "n_users": 100, "deletions": 50}
    assert empirical_stability(constant, **many).fraction == 1
    with pytest.raises(BudgetError, match="deleting 50 of 100 users"):
        empirical_stability(finite_algorithm((0,))(lambda dataset: [1]), **many)


def test_user_level_algorithm_is_delstab_of_the_subsample() -> None:
    coin = AdditiveAlgorithm((0, 1), itself, noisy_vote, statistic_range=(0, 1))
    made = plan_user_level(n_items=20, item_epsilon=0.05, m=3, epsilon=8, delta=0.01, beta=0.1)
    algorithm = user_level_algorithm(coin, made)
    assert algorithm.deletions == made.deletions
    assert algorithm.min_users <= made.n_users


# Subsampling and the order of records: [GKKMMZ23, Theorem 7] is for mechanisms that do not look at it.

EIGHTH = Fraction(1, 8)
KNOWN = {("a", "b"): 4 * EIGHTH, ("a", "c"): 2 * EIGHTH, ("A", "b"): 2 * EIGHTH, ("A", "c"): EIGHTH, ("b", "c"): EIGHTH}


def ones_of_two(pair: tuple[str, ...]) -> Fraction:
    """The largest extension of the known probabilities that changes by 2 at most where a record is replaced."""
    return min(mass * 2 ** sum(u != v for u, v in zip(pair, known, strict=True)) for known, mass in KNOWN.items())


def test_a_mechanism_that_looks_at_the_order_exceeds_the_formula() -> None:
    for pair, other in itertools.product(itertools.product("abcA", repeat=2), repeat=2):
        if sum(u != v for u, v in zip(pair, other, strict=True)) == 1:
            assert ones_of_two(pair) <= 2 * ones_of_two(other)
            assert 1 - ones_of_two(pair) <= 2 * (1 - ones_of_two(other))
    ordered = finite_algorithm((0, 1))(lambda pair: [1 - ones_of_two(tuple(pair)), ones_of_two(tuple(pair))])
    subsampled = SubsampledAlgorithm(ordered, 2)
    before, after = (subsampled.pmf(((first,), ("b",), ("c",))).fractions()[1] for first in "aA")
    assert (before, after) == (Fraction(7, 24), Fraction(1, 6))
    allowed = subsampling_amplification(LogRatio(2), 0, n_sampled=2, n_total=3).epsilon
    assert allowed == LogRatio(5, 3)
    assert before / after == Fraction(7, 4) > Fraction(5, 3)


def test_the_trivial_ways_are_decided_on_epsilon_and_delta_together() -> None:
    """As printed once: "delta allows for neither", where a tenth of 10,000 users leaves a tenth of the delta."""
    asked: dict[str, Any] = {"n_items": 1000, "item_epsilon": "0.1", "m": 100, "epsilon": 1, "delta": "1e-6"}
    plan = plan_user_level(item_delta="1e-5", **asked)
    assert plan.one_record_users == 10_000
    assert plan.group_users is not None
    assert 10_000 < plan.group_users < 10_100
    assert "without DelStab: 10,000 users by one item of each or 10,0" in str(plan)
    small = plan_user_level(item_delta="1e-6", **asked)
    assert small.group_users is not None
    assert small.group_users < 2000
    rows = {
        row.method: row.users
        for row in compare_methods(
            "finite", n_records=1000, item_epsilon="0.1", item_delta="1e-5", m=100, epsilon=1, delta="1e-6"
        ).rows
    }
    assert (rows["one record per person"], rows["group privacy"]) == (10_000, plan.group_users)


def test_the_trivial_ways_take_the_least_number_of_users() -> None:
    """Both formulas in floats: they hold with so many users, and not with one fewer."""
    source, by_delta = random.Random(8), 0
    for _ in range(150):
        m, drawn = source.choice([1, 2, 30, 1000]), source.randint(1, 3000)
        epsilon, item = 10 ** source.uniform(-1, 0.7), 10 ** source.uniform(-2, 0.5)
        delta, of_item = 10 ** source.uniform(-9, -2), source.choice([0, 10 ** source.uniform(-10, -1)])

        def holds(
            users: int,
            slack: float,
            m: int = m,
            drawn: int = drawn,
            numbers: tuple[float, ...] = (epsilon, item, delta, of_item),
        ) -> bool:
            epsilon, item, delta, of_item = (number for number in numbers)
            part = drawn / (users * m)
            each = math.log1p(part * math.expm1(item))
            of_user = part * of_item * math.expm1(m * each) / math.expm1(each)
            return part <= 1 and m * each <= epsilon * slack and of_user <= delta * slack

        users = trivial_users(n_items=drawn, item_epsilon=item, item_delta=of_item, m=m, epsilon=epsilon, delta=delta)
        assert holds(users, 1 + 1e-9)
        assert not holds(users - 1, 1 - 1e-9) if users > 1 else True
        by_delta += users > trivial_users(n_items=drawn, item_epsilon=item, m=m, epsilon=epsilon)
    assert by_delta > 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_items": 0}, "n_items must be at least 1"),
        ({"item_epsilon": 1e9}, "item_epsilon is too large to be lowered by a subset"),
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"item_delta": "0.1", "delta": 0}, "delta must be > 0, as item_delta is"),
        ({"item_delta": "0.5", "delta": "1e-200"}, "delta='1e-200' would take more than"),
    ],
)
def test_trivial_ways_name_their_own_arguments(given: dict[str, Any], message: str) -> None:
    asked: dict[str, Any] = {"n_items": 1000, "item_epsilon": 0.1, "m": 100, "epsilon": 1, "delta": "1e-6"}
    with pytest.raises(ValueError, match=message):
        trivial_users(**(asked | given))


def test_plans_name_the_item_epsilon_that_is_too_large() -> None:
    with pytest.raises(ValueError, match="item_epsilon is too large to be lowered by a subset: no N up to"):
        plan_user_level(n_items=1000, item_epsilon=50, m=100, epsilon=1, delta="1e-6")
