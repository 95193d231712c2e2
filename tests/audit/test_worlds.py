"""Small tables: each once, all of them, as many as the formula says, and every letter before a later one."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

from userdp.audit.worlds import Limits, Rows, World, all_worlds, entries_of, orders_of

MANY = 10**6


def naive(n_rows: int, limits: Limits) -> set[World]:
    """All worlds by filtering a product."""
    values = [
        value
        for size in range(limits.max_rows + 1)
        for value in itertools.combinations_with_replacement(range(n_rows), size)
    ]
    found = set()
    for world in itertools.product(values, repeat=limits.max_users):
        if sum(map(len, world)) <= limits.total_rows:
            found.add(world if limits.named else tuple(sorted(value for value in world if value)))
    return found


@pytest.mark.parametrize("total", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("users", "rows", "named"), [(1, 2, True), (2, 1, True), (2, 2, True), (3, 2, True), (2, 1, False), (4, 1, False)]
)
def test_worlds_are_all_there_is(users: int, rows: int, total: int, named: bool) -> None:
    if not named and rows > 1:
        pytest.skip("without names each row is a user")
    limits = Limits(users, rows, min(total, users * rows), named)
    for sizes in [(1,), (3,), (2, 2), (1, 2)]:
        made = Rows(sizes)
        listed = list(all_worlds(made, limits, MANY))
        n_rows = math.prod(sizes)
        assert len(listed) == len(set(listed)) == limits.worlds(n_rows)
        assert set(listed) == naive(n_rows, limits)
        assert sorted(made.letters) == sorted(itertools.product(*map(range, sizes)))


def test_worlds_come_by_cost() -> None:
    """The number of rows and the place of the latest letter, so that nothing plain waits for something hostile."""
    limits, made = Limits(2, 2, 4, True), Rows((4, 3))
    costs = []
    for world in all_worlds(made, limits, MANY):
        rows = [row for value in world for row in value]
        costs.append(len(rows) + max((max(made.letters[row]) for row in rows), default=0))
    assert costs == sorted(costs)
    assert Counter(costs)[1] == 2  # one row of first letters, of one or the other user


def test_worlds_end_where_rows_would_fill_the_memory() -> None:
    limits, made = Limits(1, 1, 1, False), Rows((9,) * 10)
    assert 1 + 1023 < len(list(all_worlds(made, limits, 60_000))) <= 60_001
    assert limits.worlds(9**10) == 9**10 + 1


def test_orders_are_those_that_look_different() -> None:
    entries = entries_of(((4, 4), (5,)), named=True)
    assert entries == ((0, 4), (0, 4), (1, 5))
    orders = orders_of(entries)
    assert orders[0] == entries
    assert sorted(orders) == sorted(set(itertools.permutations(entries)))
    assert len(orders) == 3
