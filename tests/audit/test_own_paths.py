"""Our own paths before noise, of tables, means and learners, are as near as they claim; planted faults are found."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.audit import audit_sensitivity
from userdp.learners import clipped_pairwise_scores, user_level_errors
from userdp.tables import Query, Schema, Session, count_rows, count_users, integer, key
from userdp.tables import sum as total_of
from userdp.users.table import UserTable
from userdp.users.vectors import MeanVectors

polars = pytest.importorskip("polars")

RowsOf = list[dict[str, Any]]

# --- tables

SCHEMA = Schema(town=key(str), x=integer(-2, 3))
LETTERS: dict[str, Any] = {
    "schema": {"town": str, "x": int},
    "alphabets": {"town": ["a", "b"], "x": [3, -9]},
    "max_users": 2,
    "total_rows": 2,
}


def session(neighbors: Any) -> Session:
    table = polars.DataFrame({"who": [1], "town": ["a"], "x": [1]})
    return Session(table, user="who", schema=SCHEMA, epsilon=1, delta="1e-5", neighbors=neighbors)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize("max_keys", [1, 2])
def test_tables(max_keys: int, neighbors: Any) -> None:
    query = Query().group_by("town", max_keys=max_keys, rule="first")
    query = query.agg(people=count_users(), rows=count_rows(2), x=total_of("x", max_total=4))
    paths = session(neighbors).before_noise(query)
    assert set(paths) == {"users", "rows", "sum of x"}
    for path in paths.values():
        report = path.audit(**LETTERS)
        assert report.holds is True
        assert report.complete


def test_a_table_whose_bound_is_for_rows_is_found() -> None:
    """The bound on a user's groups taken in each half of the file; and bounds that noise is not made for."""
    path = session("add-remove").before_noise(Query().group_by("town", max_keys=1).agg(people=count_users()))["users"]

    def in_two(table: Any) -> dict[Any, int]:
        half = len(table) // 2
        parts = [path(table[:half]), path(table[half:])]
        return {place: sum(part.get(place, 0) for part in parts) for place in {*parts[0], *parts[1]}}

    report = type(path)(in_two, path.claim, path.options).audit(**LETTERS)
    assert report.holds is False
    assert report.verify(in_two).refuted
    two = session("replace").before_noise(Query().group_by("town", max_keys=2).agg(people=count_users()))["users"]
    assert two.audit(**LETTERS | {"l1": 1}).holds is False


# --- means

ROWS_OF_MEANS: dict[str, Any] = {
    "schema": {"x": float},
    "alphabets": {"x": [0.0, 1.0, -7.0, math.nan, math.inf]},
    "user": "who",
    "max_users": 2,
    "total_rows": 4,
}
GRID = 0.25


def vectors_of(table: RowsOf) -> MeanVectors:
    """The mean of each user's rows, clipped to [-1, 1]; users by their names, of whom there are two."""
    owners = np.array([row["who"] for row in table], dtype=np.uint32)
    numbers = np.array([[row["x"]] for row in table], dtype=np.float64).reshape(-1, 1)
    return MeanVectors(UserTable(numbers, np.zeros(len(table), np.uint8), owners, 2, 2), 1.0, norm="max")


def winsorized(table: RowsOf) -> list[int]:
    return [int(one) for one in vectors_of(table).filled().winsorized_sum([-1.0], 8, GRID)]


def clipped(table: RowsOf) -> list[int]:
    return [int(one) for one in vectors_of(table).filled().clipped_sum([0.0], 1.0, GRID)]


def clipped_by_row(table: RowsOf) -> list[float]:
    """Every row is clipped, and the user is not."""
    numbers = (row["x"] for row in table)
    return [sum(0 if math.isnan(x) else round(min(max(x, -1.0), 1.0) / GRID) for x in numbers)]


def test_means() -> None:
    """`steps` for clamped coordinates and twice the radius in steps for balls, as their docstrings promise."""
    for path, most in ((winsorized, 8), (clipped, 8)):
        assert audit_sensitivity(path, **ROWS_OF_MEANS, linf=most).holds is True
        assert audit_sensitivity(path, **ROWS_OF_MEANS, linf=most - 1).holds is False
    report = audit_sensitivity(clipped_by_row, **ROWS_OF_MEANS, linf=8)
    assert (report.holds, report.verify(clipped_by_row).refuted) == (False, True)


# --- learners

ROWS_OF_LABELS: dict[str, Any] = {
    "schema": {"x": (0, 1, 2), "y": (0, 1)},
    "alphabets": {"x": [0, 2], "y": [0, 1]},
    "user": "who",
    "max_users": 2,
    "max_rows": 2,
    "total_rows": 3,
}
PREDICTED = np.array([[0, 0, 0], [0, 1, 1], [0, 0, 1]])
TAU = 1


def errors_of(table: RowsOf) -> Any:
    """Mistakes of every user under three hypotheses, of at most two rows."""
    points = [row["x"] for row in table]
    return user_level_errors(
        PREDICTED[:, points], [row["y"] for row in table], groups=[row["who"] for row in table], m=2
    )


def users_with_mistakes(table: RowsOf) -> dict[int, int]:
    return dict(enumerate((errors_of(table) > 0).sum(axis=1).tolist())) if table else dict.fromkeys(range(3), 0)


def mistakes(table: RowsOf) -> dict[int, int]:
    """Mistakes of rows where users were meant to be counted."""
    return dict(enumerate(errors_of(table).sum(axis=1).tolist())) if table else dict.fromkeys(range(3), 0)


def scores(table: RowsOf) -> Any:
    return clipped_pairwise_scores(errors_of(table), TAU).tolist() if table else [0] * 3


def test_learners() -> None:
    asked = ROWS_OF_LABELS
    assert audit_sensitivity(users_with_mistakes, **asked, linf=1).holds is True
    report = audit_sensitivity(mistakes, **asked, linf=1)
    assert (report.holds, report.verify(mistakes).refuted) == (False, True)
    # 2 min(tau, m), as the docstring promises.
    assert audit_sensitivity(scores, **asked, linf=2 * TAU).holds is True


def test_nothing_here_is_true_of_everything() -> None:
    """Each right path changes at all, so that the audits above look at something."""
    paths: list[tuple[Callable[[RowsOf], Any], dict[str, Any]]] = [
        (winsorized, ROWS_OF_MEANS),
        (users_with_mistakes, ROWS_OF_LABELS),
        (scores, ROWS_OF_LABELS),
    ]
    for path, asked in paths:
        assert audit_sensitivity(path, **asked).worst.linf >= Fraction(1)
