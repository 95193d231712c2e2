"""Strategies for neighboring tables: always neighbors, and small when they shrink."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from userdp.testing import NeighboringTables, neighboring_tables

SCHEMA: dict[str, Any] = {"town": str, "hours": float}
QUICK = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def users(rows: list[dict[str, Any]]) -> dict[Any, Counter[str]]:
    found: dict[Any, Counter[str]] = {}
    for row in rows:
        found.setdefault(row["person"], Counter())[repr((row["town"], row["hours"]))] += 1
    return found


@QUICK
@given(neighboring_tables(schema=SCHEMA, user="person"))
def test_one_user_is_replaced(pair: NeighboringTables) -> None:
    first, second = users(pair.first), users(pair.second)
    assert all(first.get(name) == second.get(name) for name in (0, 1, 2) if name != pair.changed_user)
    assert set(first) | set(second) <= {0, 1, 2}
    assert all(sum(rows.values()) <= 3 for rows in first.values())


@QUICK
@given(neighboring_tables(schema=SCHEMA, user="person", neighbors="add-remove", ids=("x", "y"), null=False, nan=False))
def test_one_user_comes_or_goes(pair: NeighboringTables) -> None:
    first, second = users(pair.first), users(pair.second)
    assert (pair.changed_user in first) != (pair.changed_user in second)
    assert all(row["hours"] == row["hours"] and None not in row.values() for row in pair.first + pair.second)


def test_examples_shrink_to_plain_ones() -> None:
    def miscounts(pair: NeighboringTables) -> bool:
        return abs(len(pair.first) - len(pair.second)) > 1

    found = find(
        neighboring_tables(schema={"town": str}, user="person", neighbors="add-remove"),
        miscounts,
        settings=settings(QUICK, max_examples=500, database=None),
    )
    rows = found.first or found.second
    assert not (found.first and found.second)
    assert rows == [{"person": 0, "town": "a"}] * 2


@pytest.mark.parametrize("frame", ["tuples", "pandas", "polars", "lazy", "arrow"])
def test_forms_of_tables(frame: Any) -> None:
    pytest.importorskip({"arrow": "pyarrow", "lazy": "polars", "tuples": "json"}.get(frame, frame))

    @QUICK
    @given(neighboring_tables(schema={"hours": int}, user="person", frame=frame, max_rows=1))
    def both(pair: NeighboringTables) -> None:
        assert type(pair.first) is type(pair.second)

    both()


def test_it_is_a_strategy() -> None:
    assert isinstance(neighboring_tables(schema=SCHEMA, user="person"), st.SearchStrategy)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"neighbors": "row"}, ValueError, "neighbors must be"),
        ({"frame": "csv"}, ValueError, "frame must be one of"),
        ({"user": 3}, TypeError, "user must be the name"),
        ({"ids": ()}, ValueError, "ids must be"),
        ({"ids": (1, 1.0)}, ValueError, "ids must be"),
        ({"max_rows": 0}, ValueError, "max_rows must be at least 1"),
        ({"schema": {"a": "blob"}}, ValueError, "schema"),
    ],
)
def test_arguments_that_do_not_fit(options: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        neighboring_tables(**{"schema": SCHEMA, "user": "person", **options})
