"""Suggested bounds: users above each candidate by brute force, what one user moves, and what is charged."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import tables
from userdp.accounting import PrivacyCost
from userdp.tables import Query, Schema, Session, category, count_rows, count_users, integer, mean, number
from userdp.tables.reading import table_of
from userdp.tables.rows import add_up
from userdp.tables.suggestions import choice_of, costs_of, search_of

F = Fraction
SCHEMA = Schema(paid=integer(0, 10), off=integer(-1, 1), town=category(["a"]), spent=number(0, 8, steps=2**3))
ROWS = Query().agg(rows=count_rows(64))
TOTAL = Query().agg(total=tables.sum("paid", max_total=1000))
SPENT = Query().agg(total=tables.sum("spent", max_total=50))


def table(world: Any) -> pd.DataFrame:
    """Users are lists of what they paid in each row."""
    rows = [(who, paid) for who, user in enumerate(world) for paid in user]
    frame = pd.DataFrame(rows, columns=["who", "paid"]).astype({"who": int})
    return frame.assign(off=0, town="a", spent=frame["paid"] / 2)


def above(query: Query, world: Any) -> Any:
    search = search_of(query, SCHEMA)
    sums = add_up(search.query, table_of(table(world)), "who", SCHEMA, memory=2**26, directory=None)
    return search, search.users_above(sums)


def test_users_above_are_counted() -> None:
    rng = np.random.default_rng(0)
    world = [rng.integers(0, 11, rng.geometric(0.05)).tolist() for _ in range(200)]
    for query, measure in ((ROWS, len), (TOTAL, sum)):
        search, counts = above(query, world)
        assert list(counts) == [sum(measure(user) > candidate for user in world) for candidate in search.candidates]
    search, counts = above(SPENT, world)
    assert search.unit == 1.0
    assert list(counts) == [
        sum(sum(round(paid / 2) for paid in user) > candidate for user in world) for candidate in search.candidates
    ]


def test_candidates_are_public() -> None:
    assert search_of(ROWS, SCHEMA).candidates == (1, 2, 4, 5, 8, 11, 16, 22, 32, 45, 64)
    assert search_of(TOTAL, SCHEMA).candidates[:5] == (1, 2, 4, 5, 8)
    assert search_of(TOTAL, SCHEMA).candidates[-1] == 1000
    fine = Schema(paid=number(0, 100))
    search = search_of(Query().agg(total=tables.sum("paid", max_total=10**6)), fine)
    assert search.candidates[0] * search.unit == pytest.approx(100 / 16, rel=1e-4)
    assert search.candidates[-1] * search.unit == pytest.approx(10**6, rel=1e-4)


def test_one_user_moves_each_cost_by_one() -> None:
    users = [[], [3], [10], [10, 10], [10] * 40]
    beside = [[5], [10, 10, 10]]
    found = {len(user) and tuple(user): above(TOTAL, [*beside, user]) for user in users}
    moved = set()
    for (search, one), (_, two) in itertools.permutations(found.values(), 2):
        first, second = (costs_of(search, counts, F(1, 2), 2.0) for counts in (one, two))
        moved |= set(np.abs(first - second).tolist())
        choice = choice_of(F(1, 2))
        masses = [choice.pmf(costs).fractions() for costs in (first, second)]
        assert all(float(p / q) <= math.exp(0.5) for p, q in zip(*masses, strict=True))
    assert moved == {0, 1}


def test_the_choice_is_charged_and_near_the_data() -> None:
    """Three thousand users of at most 8 rows: the bound is next to 8, and from 2 to 256 for sure."""
    search = search_of(Query().agg(rows=count_rows(4096)), SCHEMA)
    world = [[1] * (1 + i % 8) for i in range(3000)]
    counts = np.array([sum(len(user) > candidate for user in world) for candidate in search.candidates])
    masses = choice_of(F(1)).pmf(costs_of(search, counts, F(1), math.sqrt(2))).fractions()
    far = sum(mass for mass, candidate in zip(masses, search.candidates, strict=True) if not 2 <= candidate <= 256)
    assert far < F(1, 10**7)
    people = Session(table(world), user="who", schema=SCHEMA, epsilon=3)
    suggestion = people.suggest_bound(people.query().agg(rows=count_rows(4096)), epsilon=1, then=1)
    assert 2 <= suggestion.bound <= 256  # but with a probability below 1e-7
    assert suggestion.cost == PrivacyCost(1)
    assert people.remaining()["epsilon"] == 2
    release = people.release(people.query().agg(rows=count_rows(suggestion.bound)), epsilon=1)
    assert release.cost.epsilon == 1
    zcdp = Session(table(world), user="who", schema=SCHEMA, epsilon=3, delta="1e-6")
    before = zcdp.remaining()["rho"]
    zcdp.suggest_bound(ROWS, rho="1/100", then=1)
    assert F(99, 10_000) < before - zcdp.remaining()["rho"] <= F(1, 100)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (Query().agg(n=count_users()), "one count_rows"),
        (Query().agg(x=mean("paid")), "one count_rows"),
        (Query().agg(a=count_rows(2), b=count_rows(3)), "one count_rows"),
        (Query().group_by("town").agg(a=count_rows(2)), "without groups"),
        (Query().agg(a=tables.sum("off", max_total=3)), "never negative"),
    ],
)
def test_what_has_no_bound_is_refused(query: Query, message: str) -> None:
    people = Session(table([[1]]), user="who", schema=SCHEMA, epsilon=1)
    with pytest.raises(ValueError, match=message):
        people.suggest_bound(query, epsilon="1/2", then=1)
    with pytest.raises(ValueError, match="then"):
        people.suggest_bound(ROWS, epsilon="1/2", then=0)
    assert people.remaining()["epsilon"] == 1
