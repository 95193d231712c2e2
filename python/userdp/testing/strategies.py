"""Strategies of Hypothesis for small tables that differ in one user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies

from userdp.algorithms.small_tables import LAYOUTS, TableMaker, kind_of
from userdp.audit.alphabets import letters_of_columns, read_schema
from userdp.exact.numbers import check_count, check_neighbors, short_repr


@dataclass(frozen=True)
class NeighboringTables:
    """Two tables that differ in all rows of one user.

    Attributes
    ----------
    first, second : table
        In the form that was asked for.
    changed_user : object
        The user in whose rows they differ.
    """

    first: Any
    second: Any
    changed_user: Any


def neighboring_tables(
    *,
    schema: Any,
    user: str,
    neighbors: Literal["replace", "add-remove"] = "replace",
    frame: Literal["rows", "tuples", "pandas", "polars", "lazy", "arrow"] = "rows",
    ids: Sequence[Any] = (0, 1, 2),
    max_rows: int = 3,
    bounds: Any = None,
    alphabets: Any = None,
    null: bool | Sequence[str] = True,
    nan: bool | Sequence[str] = True,
) -> strategies.SearchStrategy[NeighboringTables]:
    """Return a strategy for pairs of tables that differ in the rows of one user; it needs Hypothesis.

    Parameters
    ----------
    schema, bounds, alphabets, null, nan, frame
        As for `userdp.audit.audit_sensitivity`: columns and their kinds, public bounds, listed values, whether None and
        NaN are among them, and the form of a table.
    user : str
        The column of users.
    neighbors : {"replace", "add-remove"}
        The changed user has other rows, perhaps none, in the second table; or has none in one of the two.
    ids : sequence
        The users, one or more, all different.
    max_rows : int
        Rows of a user, at most.

    Returns
    -------
    SearchStrategy
        Of `NeighboringTables`. Examples shrink towards few rows and plain values, and always are neighbors. Rows of the
        users are mixed, those of the others in one order in both tables.

    Examples
    --------
    >>> from hypothesis import HealthCheck, given, settings
    >>> @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    ... @given(neighboring_tables(schema={"town": str}, user="person"))
    ... def test_visitors(pair):
    ...     first, second = (len({row["person"] for row in rows}) for rows in (pair.first, pair.second))
    ...     assert abs(first - second) <= 1
    >>> test_visitors()
    """
    check_neighbors(neighbors)
    if frame not in LAYOUTS:
        raise ValueError(f"frame must be one of {', '.join(LAYOUTS)}; got {short_repr(frame)}")
    if not isinstance(user, str):
        raise TypeError(f"user must be the name of the column of users; got {short_repr(user)}")
    users, most = list(ids), check_count(max_rows, "max_rows")
    if not users or any(a == b for place, a in enumerate(users) for b in users[:place]):
        raise ValueError(f"ids must be one or more different users; got {short_repr(ids)}")
    columns = read_schema(schema, user)
    letters = letters_of_columns(columns, alphabets=alphabets, bounds=bounds, null=null, nan=nan, constants=())
    maker = TableMaker((user, *columns), (kind_of(users), *(column.kind for column in letters)), frame)
    maker.require()
    cells = strategies.tuples(*(strategies.sampled_from(column.letters) for column in letters))
    values = strategies.lists(cells, max_size=most)
    given = values.filter(len) if neighbors == "add-remove" else values

    @strategies.composite
    def pairs(draw: Any) -> NeighboringTables:
        changed = draw(strategies.integers(0, len(users) - 1))
        others = [(name, draw(values)) for place, name in enumerate(users) if place != changed]
        before = draw(given)
        if neighbors == "add-remove":
            after: list[Any] = []
        else:
            after = draw(values)
        rows = draw(strategies.permutations([(name, *row) for name, part in others for row in part]))
        place = draw(strategies.integers(0, len(rows)))
        first, second = (_mixed(rows, [(users[changed], *row) for row in part], place) for part in (before, after))
        if neighbors == "add-remove" and draw(strategies.booleans()):
            first, second = second, first
        return NeighboringTables(maker.table(first), maker.table(second), users[changed])

    return pairs()


def _mixed(rows: list[Any], own: list[Any], place: int) -> list[Any]:
    """The rows of a user among those of others, in one block."""
    return [*rows[:place], *own, *rows[place:]]
