"""How many rows of each user count: by definition, and what one user can change."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from userdp.users import bound_contributions


def users_rows(kept: Any, groups: Any) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row, user in zip(kept, groups, strict=True):
        found.setdefault(user, []).append(row)
    return found


def test_bounding_keeps_the_first_rows_of_each_user() -> None:
    """All ways in which six rows belong to three users."""
    for owners in itertools.product("abc", repeat=6):
        for m in (1, 2, 3, 6):
            rows, y, groups = bound_contributions(np.arange(6), np.arange(6) % 2, list(owners), m=m)
            assert isinstance(groups, list)
            wanted = {user: [row for row in range(6) if owners[row] == user][:m] for user in owners}
            assert users_rows(rows.tolist(), groups) == wanted
            assert rows.tolist() == sorted(rows.tolist())
            assert y is not None
            assert y.tolist() == [row % 2 for row in rows]


@pytest.mark.parametrize("rule", ["first", "random"])
def test_replacing_a_user_leaves_the_rows_of_others(rule: Any) -> None:
    """Whatever a user has instead, and wherever these rows stand; with few rows of the others nothing is random."""
    others = [("a", 0), ("b", 1), ("a", 2), ("b", 3)]
    for number in range(5):
        for places in itertools.combinations_with_replacement(range(5), number):
            rows = list(others)
            for place, which in zip(reversed(places), range(number), strict=True):
                rows.insert(place, ("c", 100 + which))
            groups, values = [user for user, _ in rows], np.array([value for _, value in rows])
            kept, _, owners = bound_contributions(values, None, groups, m=2, rule=rule)
            found = users_rows(kept.tolist(), owners)
            own = found.pop("c", [])
            assert found == {"a": [0, 2], "b": [1, 3]}
            assert len(own) == min(2, number)


def test_random_rows_are_uniform() -> None:
    """2 of 4 rows, 3,000 times: the frequency of each of the 6 sets is within 0.055 of 1/6.

    Fails by chance with probability at most 6 * 2 exp(-2 * 3000 * 0.055**2) < 2e-7 (Hoeffding).
    """
    groups = np.repeat(np.arange(3000), 4)
    rows, _, owners = bound_contributions(np.tile(np.arange(4), 3000), None, groups, m=2, rule="random")
    sets = Counter(map(tuple, users_rows(rows.tolist(), owners.tolist()).values()))
    assert set(sets) == set(itertools.combinations(range(4), 2))
    assert all(abs(count / 3000 - 1 / 6) < 0.055 for count in sets.values())


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3, None, []), {"m": 1}, TypeError, "X must be a NumPy array, a list"),
        ((np.array(3), None, []), {"m": 1}, ValueError, "X must have a row"),
        (([1, 2], [0], [1, 2]), {"m": 1}, ValueError, "y must be a vector of 2 labels"),
        (([1, 2], None, [1]), {"m": 1}, ValueError, "groups has 1 user ids for 2 rows"),
        (([1, 2], None, [1, 2]), {"m": 0}, ValueError, "m must be at least 1"),
        (([1, 2], None, [1, 2]), {"m": 1, "rule": "last"}, ValueError, "rule must be"),
    ],
)
def test_bounding_refuses(arguments: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        bound_contributions(*arguments, **options)
