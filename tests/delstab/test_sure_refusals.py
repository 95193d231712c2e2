"""Warnings that users who all differ are refused for sure: beside refusal probabilities of the worst of such data."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from userdp import BOTTOM, AdditiveAlgorithm, DelStab, SummedScoreEM, SymmetricAlgorithm
from userdp.delstab import compare_inner_budgets
from userdp.exceptions import BudgetError, SureRefusalWarning
from userdp.item_to_user import plan_user_level, user_level_algorithm

HALVES = [Fraction(1, 2)] * 2
SYMMETRIC = SymmetricAlgorithm((0, 1), lambda kept: HALVES)


def additive(kinds: int) -> AdditiveAlgorithm:
    return AdditiveAlgorithm((0, 1), lambda user: user[0], lambda total, n: HALVES, statistic_range=(1, kinds))


def scored(most: int) -> SummedScoreEM:
    """Two outputs whose scores hardly matter; users of (most + 1)^2 kinds."""
    return SummedScoreEM(
        (0, 1), lambda user: divmod(user[0] % (most + 1) ** 2, most + 1), epsilon="1e-9", sensitivity=most
    )


def told(make: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[Any, list[str]]:
    """What is made, and the warnings of sure refusals."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make(*arguments, **named)
    return made, [str(each.message) for each in caught if each.category is SureRefusalWarning]


def refused(private: DelStab, n_users: int, kinds: float) -> bool:
    """Whether users in equal shares of all kinds are refused for sure: the engine's word."""
    different = round(min(n_users, kinds))
    users = [(1 + place % different,) for place in range(n_users)]
    return private.refusal_probability(users, progress=False) == 1


def test_a_warning_comes_with_the_sure_refusals_and_only_with_them() -> None:
    """All algorithms here have the same output distribution on whatever is kept: only the search limit refuses."""
    source = random.Random(11)
    seen: dict[tuple[bool, bool], int] = dict.fromkeys(itertools.product((False, True), repeat=2), 0)
    for _ in range(150):
        kind = source.choice(["symmetric", "additive", "score"])
        most = source.randint(1, 12 if kind == "additive" else 3)
        kinds = {"symmetric": math.inf, "additive": most, "score": (most + 1) ** 2}[kind]
        algorithm = SYMMETRIC if kind == "symmetric" else additive(most) if kind == "additive" else scored(most)
        options: dict[str, Any] = {"epsilon": source.choice([2, 3, 4, 6, 8, 12]), "delta": "0.01"}
        options["calibration"] = source.choice(["optimal", "optimal", "tight"])
        options["max_distinct_users"] = source.choice([None, None, source.randint(1, 12)])
        options["compatibility"] = "exact"
        private, made = told(DelStab, algorithm, **options)
        n = private.min_users + source.choice([0, 1, source.randint(2, 40)])
        try:
            _, planned = told(private.plan, n)
        except BudgetError:
            continue
        assert bool(planned) == private.is_sure_to_refuse(n) == refused(private, n, kinds), (kind, most, options, n)
        assert bool(made) <= bool(planned)
        seen[bool(made), bool(planned)] += 1
        # Said once.
        assert not told(private.plan, n)[1]
    assert min(count for (made, planned), count in seen.items() if planned >= made) > 10, seen


@pytest.mark.parametrize("algorithm", [SYMMETRIC, additive(10**400), scored(10**12)])
def test_what_is_said_when_it_is_made_holds_for_all_sizes(algorithm: Any) -> None:
    for epsilon, delta in itertools.product((1, 2, 3, 5, 8), ("1e-6", "1e-3", "0.05")):
        private, made = told(DelStab, algorithm, epsilon=epsilon, delta=delta, compatibility="exact")
        sizes = [private.min_users + more for more in (0, 1, 2, 3, 7, 20, 100, 1000, 10**5)]
        assert all(map(private.is_sure_to_refuse, sizes)) == bool(made) == private.is_sure_to_refuse(sizes[0])


def test_the_text_says_what_would_do() -> None:
    private, (made,) = told(DelStab, SYMMETRIC, epsilon=8, delta="0.01", max_distinct_users=1)
    assert "any 5 users or more who all differ" in made
    assert "What would do: max_distinct_users=5; an algorithm of users' data in at most 1 kind;" in made
    users = [(place,) for place in range(5)]
    assert private.release(users) is BOTTOM
    better, said = told(DelStab, SYMMETRIC, epsilon=8, delta="0.01", max_distinct_users=5)
    assert not said
    assert better.refusal_probability(users) == 0
    # With limits that are as large as they can be, no larger one is named.
    _, (planned,) = told(told(DelStab, SYMMETRIC, epsilon=8, delta="0.01")[0].plan, 1000)
    assert planned.count("max_distinct_users=") == 0
    assert "1,000 users who all differ: it decides for at most 11 kinds of users" in planned


def test_a_release_says_it_too_and_windows_never_do() -> None:
    private, _ = told(DelStab, SYMMETRIC, epsilon=8, delta="0.01")
    released, (said,) = told(private.release, [(place,) for place in range(40)])
    assert released is BOTTOM
    assert "40 users who all differ" in said
    # The same of users who are all alike: nothing private is in it.
    again = DelStab(SYMMETRIC, epsilon=8, delta="0.01")
    assert told(again.release, [(0,)] * 40)[1] == [said]
    windows, made = told(DelStab, additive(50), epsilon=1, delta="1e-6")
    assert not made
    assert not told(windows.plan, 10**4)[1]
    assert not windows.is_sure_to_refuse(10**4)


def test_explanations_name_a_larger_limit_where_there_is_one() -> None:
    users = [(place,) for place in range(40)]
    limited, _ = told(DelStab, SYMMETRIC, epsilon=8, delta="0.01", max_distinct_users=3)
    assert "max_distinct_users=11 admits more" in str(told(limited.explain, users)[0])
    assert "that is the limit" in str(told(told(DelStab, SYMMETRIC, epsilon=8, delta="0.01")[0].explain, users)[0])


def test_nobody_is_told_twice_by_what_makes_one_inside() -> None:
    private, said = told(DelStab, SYMMETRIC, epsilon=1, delta="1e-6", calibration="tight")
    assert len(said) == 1
    assert len(told(private.explain, [(place,) for place in range(200)])[1]) == 1  # of the plan for 200
    assert not told(compare_inner_budgets, SYMMETRIC, n_users=100, epsilon=1, delta="1e-6")[1]


def test_plans_for_items_name_the_ways_without_delstab() -> None:
    asked: dict[str, Any] = {"n_items": 1000, "item_epsilon": "0.1", "m": 100, "epsilon": 1, "delta": "1e-6"}
    plan, said = told(plan_user_level, **asked)
    assert not said
    # By hand: 1000 of N items, e^(0.1) - 1 = 0.10517 and e^(1/100) - 1 = 0.01005, so that N = 10,465 at least.
    assert (plan.one_record_users, plan.group_users) == (1000, 105)
    assert plan.n_users > 300 * plan.group_users
    assert plan.kinds == 3
    assert plan.sure_to_refuse
    assert "without DelStab: 1,000 users by one item of each or 105 users by group privacy" in str(plan)
    assert "sure to refuse users who all differ" in str(plan)
    private, (made,) = told(user_level_algorithm, SYMMETRIC, plan)
    assert private.is_sure_to_refuse(plan.n_users)
    assert "who all differ" in made
    # By delta: 1000 of n items of 1e-3 each are at most 1e-6 from n = 10^6 on. No n leaves nothing of it.
    tight = plan_user_level(**(asked | {"item_delta": "1e-3"}))
    assert tight.one_record_users == 10**6
    assert tight.group_users is not None
    assert 10**6 < tight.group_users < 1.001 * 10**6
    few = plan_user_level(n_items=20, item_epsilon=0.05, m=3, epsilon=8, delta=0.01, beta=0.1)
    assert f"decides for {few.kinds:,} kinds" in str(few)


def test_ways_without_delstab_keep_what_they_promise() -> None:
    """Amplification by the subset in floats, then groups of m: for items of epsilon e'' and delta."""
    source = random.Random(3)
    for _ in range(60):
        m, n_items = source.choice([1, 2, 7, 100]), source.randint(1, 5000)
        epsilon, item = source.uniform(0.1, 3), source.uniform(0.01, 2)
        plan = plan_user_level(
            n_items=n_items,
            item_epsilon=item,
            m=m,
            epsilon=epsilon,
            delta="1e-4",
            item_delta="1e-9",
            stability=lambda n: 10,
            deletions=4,
            stability_epsilon=1,
            stability_delta="1e-5",
        )
        for users, size in ((plan.one_record_users, 1), (plan.group_users, m)):
            assert users is not None
            rate = n_items / (users * size)
            assert rate <= 1
            each = math.log1p(rate * math.expm1(item))
            assert size * each <= epsilon * (1 + 1e-9)
            assert rate * 1e-9 * sum(math.exp(j * each) for j in range(size)) <= 1e-4
            if users * size >= n_items + size:  # one user fewer would be too few
                fewer = math.log1p(n_items / ((users - 1) * size) * math.expm1(item))
                assert size * fewer > epsilon * (1 - 1e-9)


def test_the_advice_works_when_it_is_followed() -> None:
    """Every way that a warning names is taken, and the same users are then refused for sure no more."""
    source, followed = random.Random(21), {"max": 0, "kinds": 0, "distance": 0}
    for _ in range(120):
        kind, values = source.choice(["symmetric", "additive"]), source.randint(2, 12)
        algorithm = SYMMETRIC if kind == "symmetric" else additive(values)
        options: dict[str, Any] = {"epsilon": source.choice([2, 3, 4, 6, 8]), "delta": source.choice(["0.01", "1e-4"])}
        limits = {"max_distinct_users": source.choice([None, 1, 2, 5]), "compatibility": "exact"}
        private, _ = told(DelStab, algorithm, **options, **limits)
        n = private.min_users + source.choice([0, 1, 7, 30])
        try:
            told(private.plan, n)
            if not private.is_sure_to_refuse(n):
                continue
        except BudgetError:
            continue
        _, said = told(told(DelStab, algorithm, **options, **limits)[0].plan, n)
        ways = said[0].partition("What would do: ")[2].partition(". With few")[0].split("; ")
        for way in ways:
            if way.startswith("max_distinct_users="):
                more = {"max_distinct_users": int(way.partition("=")[2])}
                better = told(DelStab, algorithm, **options, **(limits | more))[0]
                followed["max"] += 1
            elif way.startswith("an algorithm of users' data in at most"):
                few = int(way.split()[-2])
                better = told(DelStab, additive(few), **options, **limits)[0]
                followed["kinds"] += 1
            else:
                assert way.startswith("an AdditiveAlgorithm with compatibility='distance'"), way
                better = told(DelStab, additive(n), **options, compatibility="distance")[0]
                followed["distance"] += 1
            assert not told(better.plan, n)[1], (way, options, limits, n)
            assert not better.is_sure_to_refuse(n)
    assert min(followed.values()) > 10, followed


def test_users_of_few_values_do_not_all_differ() -> None:
    said = []
    for epsilon, more in itertools.product((2, 4, 8, 12), (0, 1, 7, 40)):
        options: dict[str, Any] = {"epsilon": epsilon, "delta": "0.01", "max_distinct_users": 1}
        private, _ = told(DelStab, additive(2), compatibility="exact", **options)
        said += told(private.plan, private.min_users + more)[1]
    assert said
    for each in said:
        assert "users of all 2 kinds, as many of each: it decides for at most 1 kind of users" in each
        assert "who all differ" not in each


@pytest.mark.parametrize("bad", ["7", None, float("nan"), 5.0, True])
def test_a_number_of_users_is_an_integer(bad: Any) -> None:
    private, _ = told(DelStab, SYMMETRIC, epsilon=8, delta="0.01")
    for ask in (private.plan, private.is_sure_to_refuse, private.certified_distance):
        with pytest.raises(TypeError, match="n_users must be an int >= 0"):
            ask(bad)
