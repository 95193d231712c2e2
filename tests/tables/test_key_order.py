"""Keys of several columns and types: their order, their counts, and which of a user's keys count, by definition."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp.tables import Query, Schema, boolean, category, count_users, key
from userdp.tables.compiled import compiled
from userdp.tables.reading import table_of
from userdp.tables.rows import Sums, UserColumns, add_up

SCHEMA = Schema(
    whole=key(int),
    text=key(str),
    mixed=category([3, "x", 1, "a"]),
    day=key(datetime.date),
    yes=boolean(),
)
ROWS = 1500
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "who": RNG.integers(0, 300, ROWS),
        "whole": RNG.integers(-50, 50, ROWS) * 10**12,
        "text": RNG.choice(np.array(["ä", "z", "ß", "a\0c", "Z", "10", "9"], dtype=object), ROWS),
        "mixed": RNG.choice(np.array([3, "x", 1, "a"], dtype=object), ROWS),
        "day": [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in RNG.integers(-40, 40, ROWS)],
        "yes": RNG.random(ROWS) < 0.5,
    }
)
GROUPS = [
    ["whole"], ["text"], ["day"], ["whole", "text"], ["text", "mixed", "yes"],
    ["day", "mixed", "text", "whole"],
]  # fmt: skip


def added(columns: list[str], frame: pd.DataFrame, **given: Any) -> Sums:
    meant = compiled(Query().group_by(*columns, **given).agg(n=count_users()), SCHEMA)
    return add_up(meant, table_of(frame), UserColumns(("who",)), SCHEMA, memory=2**26, directory=None)


def by_hand(columns: list[str]) -> dict[int, set[tuple[Any, ...]]]:
    """Each user's keys; days since 1970, and bools as 0 and 1."""
    plain = FRAME.assign(day=[(day - datetime.date(1970, 1, 1)).days for day in FRAME["day"]])
    plain["yes"] = plain["yes"].astype(int)
    found: dict[int, set[tuple[Any, ...]]] = {}
    for who, *parts in plain[["who", *columns]].itertuples(index=False):
        found.setdefault(who, set()).add(tuple(parts))
    return found


def ordered(keys: Any) -> list[tuple[Any, ...]]:
    return sorted(keys, key=lambda one: [(isinstance(part, str), part) for part in one])


@pytest.mark.parametrize("columns", GROUPS, ids="-".join)
@pytest.mark.parametrize("max_keys", [2, 2**12])
def test_keys_are_in_order_and_the_first_ones_of_a_user_count(columns: list[str], max_keys: int) -> None:
    own = by_hand(columns)
    kept = [one for keys in own.values() for one in ordered(keys)[:max_keys]]
    sums = added(columns, FRAME, max_keys=max_keys, rule="first")
    assert sums.keys == ordered(set(kept))
    assert next(iter(sums.columns.values())).tolist() == [kept.count(one) for one in sums.keys]
    assert sums.users == len(own)


@pytest.mark.parametrize("columns", GROUPS, ids="-".join)
def test_the_order_of_rows_does_not_matter(columns: list[str]) -> None:
    """Numbers of keys and users are by arrival: which keys of a user count must not be, given the coins."""
    meant = compiled(Query().group_by(*columns, max_keys=1).agg(n=count_users()), SCHEMA)
    shuffled = FRAME.iloc[RNG.permutation(ROWS)]
    found = [
        add_up(
            meant, table_of(frame), UserColumns(("who",)), SCHEMA, memory=2**26, directory=None, coins=bytes(range(32))
        )
        for frame in (FRAME, shuffled)
    ]
    assert found[0].keys == found[1].keys
    assert [column.tolist() for column in found[0].columns.values()] == [
        column.tolist() for column in found[1].columns.values()
    ]
    assert sum(found[0].columns[meant.statistics[0]]) == len(by_hand(columns))
