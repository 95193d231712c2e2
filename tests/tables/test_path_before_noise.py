"""The path before the noise: neighbors of small tables are as near as the plan claims, and planted faults are found.

Nothing is drawn here but which groups of a user count. Each of five faults that OpenDP had is planted, as are bounds
that look at other users; the audit must find all of them, and nothing in our path for the same question.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from support.noise_off import AllTables, Change, Numbers, Path, Row, User, files, violations
from userdp import tables
from userdp.mechanisms.key_bounds import keyed_sensitivity
from userdp.tables import (
    Query,
    Schema,
    category,
    cdf,
    col,
    count_rows,
    count_users,
    histogram,
    integer,
    key,
    mean,
    number,
    quantile,
)
from userdp.tables.audits import name_of
from userdp.tables.compiled import Compiled, compiled
from userdp.tables.quantiles import WEIGHT
from userdp.tables.reading import table_of
from userdp.tables.rows import UserColumns, add_up
from userdp.tables.schema import ColumnType

KEYS = ("a", "b", "c")
SCHEMA = Schema(town=key(str), x=number(0, 1, steps=2), n=integer(-1, 1), word=key(str))
COLUMNS = ("town", "x", "n", "word")
LISTED = {**SCHEMA, "town": category(KEYS)}


def our_path(query: Query, schema: Mapping[str, ColumnType] = SCHEMA, coins: bytes | None = None) -> Path:
    """From rows to what a release adds noise to, by the code that a release runs."""
    meant = compiled(query, schema)

    def path(rows: list[tuple[int, Row]]) -> Numbers:
        own = {name: [row[place] for _, row in rows] for place, name in enumerate(COLUMNS)}
        frame = pd.DataFrame({"who": np.array([who for who, _ in rows], dtype=np.int64), **own})
        found = add_up(meant, table_of(frame), UserColumns(("who",)), schema, memory=2**26, directory=None, coins=coins)
        numbers: dict[str, Mapping[Any, int]] = {
            name_of(statistic): {place: int(value) for place, value in zip(found.keys, column, strict=True) if value}
            for statistic, column in found.columns.items()
        }
        for name, split in found.splits.items():
            numbers[f"{name}: bins"] = {
                (place, bin): int(weight)
                for at, place in enumerate(found.keys)
                for bin, weight in enumerate(split.of(at))
                if weight
            }
        return numbers

    return path


def claims_of(meant: Compiled, neighbors: Any) -> dict[str, Change]:
    """What noise is calibrated to."""
    claims = {}
    for one in meant.statistics:
        most = keyed_sensitivity(
            n_keys=meant.n_keys, max_keys=meant.max_keys, low=one.low, high=one.high, neighbors=neighbors
        )
        claims[name_of(one)] = Change(most.l1, most.l2_squared, most.linf)
    # A user's weight is the whole in each key that counts.
    weight = meant.max_keys * (WEIGHT if neighbors == "add-remove" else 2 * WEIGHT)
    for answer in meant.answers:
        if not answer.aggregate.of_keys:
            claims[f"{answer.name}: bins"] = Change(weight, WEIGHT * weight, WEIGHT)
    return claims


RELATIONS = ("add-remove", "replace")


def audited(
    path: Path, query: Query, kinds: Sequence[User], n_users: int = 2, relations: Sequence[str] = RELATIONS
) -> list[dict[str, Change]]:
    """What changes by more than the plan of a query claims, for each relation."""
    made = AllTables(path, kinds, n_users)
    meant = compiled(query, SCHEMA)
    return [violations(made.greatest_changes(one), claims_of(meant, one)) for one in relations]


def in_order(world: Sequence[User]) -> Iterator[list[tuple[int, Row]]]:
    """The rows user by user alone."""
    yield from itertools.islice(files(world), 1)


def users_of(rows: Sequence[Row], most: int) -> list[User]:
    """All users of 1 to so many rows."""
    return [user for m in range(1, most + 1) for user in itertools.combinations_with_replacement(rows, m)]


def towns(keys: str) -> User:
    return tuple((town, 1.0, 1, "1") for town in keys)


SUBSETS = [towns("".join(some)) for m in range(1, 4) for some in itertools.combinations(KEYS, m)]
"""A row in each of some of three towns: with nobody, 64 tables of two users."""


# --- our path


ASKED: dict[str, dict[str, Any]] = {
    "users": {"people": count_users()},
    "users and rows": {"people": count_users(), "rows": count_rows(2)},
    "mean": {"x": mean("x")},
    "mean of rows": {"x": mean("x", weighting="rows", max_rows=2)},
    "sum": {"total": tables.sum("n", max_total=1)},
    "sum of one sign": {"total": tables.sum("n", max_total=(-2, -1))},
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("max_keys", [1, 2])
def test_neighbors_are_as_near_as_the_plan_says_and_no_nearer(asked: str, max_keys: int) -> None:
    """Users of up to 4 rows in four groups, alone and beside one other: L1, L2 and L-infinity by brute force."""
    query = Query().group_by("town", max_keys=max_keys, rule="first").agg(**ASKED[asked])
    rows = [(town, x, n, "1") for town in "abcd" for x, n in ((0.0, -1), (1.0, 1))]
    # Twice the same rows, so that all that a user may count is reached.
    kinds = [user * 2 for user in users_of(rows, 2)]
    beside = (("a", 1.0, 1, "1"), ("b", 0.0, -1, "1"))

    def beside_another(world: Sequence[User]) -> Iterator[list[tuple[int, Row]]]:
        yield from in_order([beside, *world])

    for orders in (in_order, beside_another):
        made = AllTables(our_path(query), kinds, 1, orders)
        for neighbors in RELATIONS:
            assert made.greatest_changes(neighbors) == claims_of(compiled(query, SCHEMA), neighbors)


@pytest.mark.parametrize("rule", ["first", "random"])
@pytest.mark.parametrize("max_keys", [1, 2])
def test_all_tables_of_two_users_and_three_groups(max_keys: int, rule: str) -> None:
    """In every order of rows; and for coins that are the same on both sides, whatever they are."""
    query = Query().group_by("town", max_keys=max_keys, rule=rule).agg(people=count_users())
    for coins in range(2 if rule == "random" else 1):
        assert audited(our_path(query, coins=bytes([coins] * 32)), query, SUBSETS) == [{}, {}]


@pytest.mark.parametrize("max_keys", [0, 1, 2])
def test_weights_of_users_in_bins(max_keys: int) -> None:
    """Without groups, and by group, where a user has one weight in each group that counts."""
    query = Query().group_by("town", keys=["a", "b"], max_keys=max_keys, rule="first") if max_keys else Query()
    query = query.agg(
        middle=quantile("x", ["1/4", "1/2"]),
        bins=histogram("x", [0, 0.25, 0.75, 1]),
        curve=cdf("x", [0, 0.5]),
        n=count_users(),
    )
    rows = [(town, x, 0, "1") for town, x in (("a", 0.0), ("a", 1.0), ("b", 0.0), ("b", math.nan))]
    made = AllTables(our_path(query), users_of(rows, 2), 1 if max_keys else 2)
    # In two groups: the weight in both goes; or b goes and that in a moves to another bin.
    expected = (2, 3) if max_keys == 2 else (1, 2)
    for neighbors, weights in zip(RELATIONS, expected, strict=True):
        greatest = made.greatest_changes(neighbors)
        assert violations(greatest, claims_of(compiled(query, SCHEMA), neighbors)) == {}
        assert greatest["bins: bins"].l1 == greatest["curve: bins"].l1 == weights * WEIGHT


# --- five faults that OpenDP had


def test_a_cast_that_fails_is_no_row_that_is_counted_without_noise() -> None:
    """OpenDP #2938: failed casts became nulls in a column that was held to have none, and its count got no noise.

    Each user has one row, so that the number of rows is public for "replace"; that of casts that succeed is not.
    """
    kinds = [(("a", 0.0, 0, word),) for word in ("0", "1", "many")]
    query = (
        Query().with_columns(n=col("word").cast(integer(0, 1))).agg(rows=count_rows(1), n=tables.sum("n", max_total=1))
    )
    ours = our_path(query)

    def planted(rows: list[tuple[int, Row]]) -> Numbers:
        counted = sum(row[3].isdigit() for _, row in rows)
        return {**ours(rows), "rows of a column without nulls": {(): counted}}

    assert audited(ours, query, kinds) == [{}, {}]
    assert audited(planted, query, kinds, relations=["replace"]) == [
        {"rows of a column without nulls": Change(1, 1, 1)}
    ]


def test_nan_is_in_no_bin_that_no_list_has() -> None:
    """OpenDP #2939: NaN fell through `cut` into a null, which no list of bins had and no noise covered."""
    kinds = [(("a", x, 0, "1"),) for x in (0.0, 1.0, math.nan)]
    for default in (None, "unknown"):
        query = (
            Query()
            .with_columns(bin=col("x").cut([0.5], default=default) if default else col("x").cut([0.5]))
            .group_by("bin", max_keys=1)
            .agg(people=count_users())
        )
        ours = our_path(query)

        def planted(rows: list[tuple[int, Row]], ours: Path = ours) -> Numbers:
            fallen = sum(math.isnan(row[1]) for _, row in rows)
            return {**ours(rows), "users of the bin null": {(): fallen}}

        assert audited(ours, query, kinds) == [{}, {}]
        assert audited(planted, query, kinds) == [{"users of the bin null": Change(1, 1, 1)}] * 2


def test_bins_have_no_numbers_by_arrival() -> None:
    """OpenDP #2944: the physical codes of `cut` are in the order in which bins occur, so one row moves all others'."""
    kinds = [(("a", x, 0, "1"),) for x in (0.0, 1.0)]
    # Of bins that have numbers: the same question where a number is that of the bin.
    query = (
        Query()
        .with_columns(code=col("x").cut([0.5], [0, 1]).cast(integer(0, 1)))
        .agg(total=tables.sum("code", max_total=1))
    )
    ours = our_path(query)

    def planted(rows: list[tuple[int, Row]]) -> Numbers:
        codes: dict[bool, int] = {}
        return {"sum of code": {(): sum(codes.setdefault(row[1] >= 0.5, len(codes)) for _, row in rows)}}

    assert audited(ours, query, kinds, 3) == [{}, {}]
    # A row that comes first gives the other two users' rows another number.
    assert all(found["sum of code"].l1 >= 2 for found in audited(planted, query, kinds, 3))


@pytest.mark.parametrize("max_total", [1, 3])
def test_rows_that_are_replaced_count_on_both_sides(max_total: int) -> None:
    """OpenDP #2945: m rows were held to change a group by m rows, and its sum by m times the largest value."""
    query = Query().group_by("town", max_keys=1).agg(total=tables.sum("n", max_total=max_total))
    kinds = [(("a", 0.0, n, "1"),) * max_total for n in (-1, 1)]
    meant = compiled(query, LISTED)
    greatest = AllTables(our_path(query, LISTED), kinds, 2).greatest_changes("replace")
    unit = meant.statistics[0].high // max_total
    width = 2 * max_total * unit
    assert greatest == {"sum of n": Change(width, width**2, width)}
    assert violations(greatest, claims_of(meant, "replace")) == {}
    # Half of it, which would be right if a user could only come or go.
    assert violations(greatest, claims_of(meant, "add-remove")) == greatest


@pytest.mark.parametrize("max_keys", [2, 3])
def test_groups_that_are_redefined_are_bounded_afterwards(max_keys: int) -> None:
    """OpenDP #2949: rows were bounded by group, and groups merged after that; all 64 tables of 2 users."""
    plan = Query().group_by("town", max_keys=max_keys, rule="first").agg(rows=count_rows(1))
    bounded = our_path(plan)

    def planted(rows: list[tuple[int, Row]]) -> Numbers:
        return {"rows": {"all towns": sum(bounded(rows)["rows"].values())}}

    # The sum over groups is what was claimed; it is all in one group now.
    found = audited(planted, plan, SUBSETS)
    assert found[0] == {"rows": Change(max_keys, max_keys**2, max_keys)}
    assert "rows" in found[1]
    # The same in our words: what is redefined is redefined before the bound, wherever it is written.
    merged = Query().with_columns(town=0 * col("x").floor().cast(integer(0, 1)))
    merged = merged.group_by("town", keys=[0], max_keys=max_keys, rule="first").agg(rows=count_rows(1))
    made = AllTables(our_path(merged), SUBSETS, 2)
    for neighbors in RELATIONS:
        greatest = made.greatest_changes(neighbors)
        assert greatest == {"rows": Change(1, 1, 1)}
        assert violations(greatest, claims_of(compiled(merged, SCHEMA), neighbors)) == {}
    # And it cannot be written after the bound.
    with pytest.raises(ValueError, match="comes before group_by"):
        plan.with_columns(town=col("town"))


# --- bounds that look at other users


def kept(rows: list[tuple[int, Row]], most: int, order: Sequence[str]) -> list[tuple[int, Row]]:
    """The rows of each user's first groups in some order."""
    own = {
        who: [town for town in order if any(row[:1] == (town,) and one == who for one, row in rows)] for who, _ in rows
    }
    return [(who, row) for who, row in rows if row[0] in own[who][:most]]


def first_groups(rows: list[tuple[int, Row]], most: int) -> list[tuple[int, Row]]:
    """Each user's first groups."""
    return kept(rows, most, KEYS)


def popular_groups(rows: list[tuple[int, Row]], most: int) -> list[tuple[int, Row]]:
    """Each user's groups that most users have."""
    users = {town: len({who for who, row in rows if row[0] == town}) for town in KEYS}
    return kept(rows, most, sorted(KEYS, key=lambda town: (-users[town], town)))


def first_rows(rows: list[tuple[int, Row]], most: int) -> list[tuple[int, Row]]:
    """The first rows of the file, whoever they are of."""
    return rows[: 2 * most]


RULES: list[tuple[Callable[[list[tuple[int, Row]], int], list[tuple[int, Row]]], int]] = [
    (first_groups, 1),
    (popular_groups, 5),
    (first_rows, 4),
]


@pytest.mark.parametrize(("rule", "change"), RULES)
def test_bounds_that_look_at_others_are_found(rule: Any, change: int) -> None:
    """Three users, three groups, one of a user: 1 is right; 5 and 4 are from an enumeration of the rules alone."""
    counts = our_path(Query().group_by("town", max_keys=3).agg(people=count_users()))

    made = AllTables(lambda rows: counts(rule(rows, 1)), SUBSETS, 3, in_order)
    greatest = made.greatest_changes("add-remove")
    assert greatest["users"].l1 == change
    claims = claims_of(compiled(Query().group_by("town", max_keys=1).agg(people=count_users()), SCHEMA), "add-remove")
    assert bool(violations(greatest, claims)) == (change > 1)


def test_a_bound_in_each_batch_is_found() -> None:
    """A user with rows in two batches would count in twice as many groups."""
    query = Query().group_by("town", max_keys=1, rule="first").agg(people=count_users(), rows=count_rows(1))
    ours = our_path(query)

    def planted(rows: list[tuple[int, Row]]) -> Numbers:
        parts = [ours(rows[: len(rows) // 2]), ours(rows[len(rows) // 2 :])]
        names = {name for part in parts for name in part}
        keys = {name: {place for part in parts for place in part.get(name, {})} for name in names}
        return {
            name: {place: sum(part.get(name, {}).get(place, 0) for part in parts) for place in keys[name]}
            for name in names
        }

    assert audited(ours, query, SUBSETS) == [{}, {}]
    assert all(set(found) == {"users", "rows"} for found in audited(planted, query, SUBSETS))
