"""Each answer is of the rows with a value in its own column, and one user changes all of them by what is planned."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import LogRatio, tables
from userdp.audit import audit_user_level
from userdp.mechanisms import DiscreteLaplace
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables import (
    Query,
    Schema,
    Session,
    category,
    cdf,
    count_rows,
    count_users,
    histogram,
    integer,
    key,
    mean,
    quantile,
)
from userdp.tables.audits import TableAlgorithm
from userdp.tables.compiled import Compiled, compiled
from userdp.tables.noise import Allotment, Budget, allot
from userdp.tables.reading import table_of
from userdp.tables.release import Drawn, Release
from userdp.tables.rows import Sums, UserColumns, add_up

F = Fraction
ENOUGH = 2**26
COLUMNS = ("a", "b", "c")
SCHEMA = Schema(
    town=category(["x", "y", "z"]), **{name: integer(0, 16) for name in COLUMNS}, full=integer(0, 9, default=3)
)


def summed(query: Query, frame: pd.DataFrame, schema: Schema = SCHEMA) -> tuple[Compiled, Sums]:
    """What users add up to, without noise."""
    meant = compiled(query, schema)
    coins = bytes(32)
    return meant, add_up(
        meant, table_of(frame), UserColumns(("who",)), schema, memory=ENOUGH, directory=None, coins=coins
    )


def numbers(query: Query, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame of a release without noise."""
    meant, sums = summed(query, frame)
    noise = allot(meant, "add-remove", Budget("basic", F(50), F(0)))
    bins = {
        one.answer.name: tuple(tuple(sums.splits[one.answer.name].of(key).tolist()) for key in range(len(sums.keys)))
        for one in noise.binned
    }
    drawn = Drawn(tuple(sums.keys), sums.columns, {}, bins)
    found: pd.DataFrame = Release(meant, noise, drawn, {}, "add-remove").to_frame("pandas")
    return found


def tabled(rng: random.Random, rows: int) -> pd.DataFrame:
    """Rows of which any values are missing, in patterns from none to all, perhaps in turn."""
    chances = {name: rng.choice([0.0, 0.1, 0.5, 0.9, 1.0]) for name in ("town", *COLUMNS, "full")}
    in_turn = rng.random() < 0.3
    made = []
    for place in range(rows):
        row: dict[str, Any] = {"who": rng.randrange(1 + rows // 3), "town": rng.choice("xyz")}
        row |= {name: float(rng.randrange(17)) for name in COLUMNS} | {"full": float(rng.randrange(10))}
        for name, chance in chances.items():
            if rng.random() < chance or (in_turn and name in COLUMNS and COLUMNS[place % 3] != name):
                row[name] = None
        made.append(row)
    return pd.DataFrame(made, columns=["who", "town", *COLUMNS, "full"])


def asked_of(rng: random.Random) -> dict[str, Any]:
    """Several answers, by names that say what they are of."""
    made: dict[str, Any] = {
        "users": count_users(),
        "rows": count_rows(50),
        "sum_full": tables.sum("full", max_total=10_000),
        "mean_full": mean("full"),
    }
    for name in COLUMNS:
        made |= {
            f"users_{name}": count_users(name),
            f"sum_{name}": tables.sum(name, max_total=10_000),
            f"mean_{name}": mean(name),
            f"rowmean_{name}": mean(name, weighting="rows", max_rows=50),
            f"bins_{name}": cdf(name, [4, 9]),
        }
    return {name: made[name] for name in rng.sample(sorted(made), rng.randrange(1, 7))}


def reference(name: str, rows: pd.DataFrame) -> float:
    """As pandas has it: what is missing in a column is missing for that column alone."""
    what, _, column = name.partition("_")
    if what == "rows":
        return len(rows)
    if column == "full":
        rows = rows.fillna({"full": 3})
    if not column:
        return rows["who"].nunique()
    values = rows.dropna(subset=[column])
    if what == "users":
        return values["who"].nunique()
    if what == "sum":
        return float(values[column].sum())
    if what == "rowmean":
        return float(values[column].mean())
    return float(values.groupby("who")[column].mean().mean())


@pytest.mark.parametrize("seed", range(60))
def test_each_answer_is_that_of_pandas(seed: int) -> None:
    rng = random.Random(seed)
    frame, asked, grouped = tabled(rng, rng.choice([1, 12, 60])), asked_of(rng), rng.random() < 0.6
    query = Query().group_by("town").agg(**asked) if grouped else Query().agg(**asked)
    found = numbers(query, frame)
    parts = [frame[frame["town"] == town] for town in "xyz"] if grouped else [frame]
    for place, rows in enumerate(parts):
        for name in asked:
            if not name.startswith("bins"):
                # Of the grid, on which users' means are rounded.
                wanted, got = reference(name, rows), float(found[name][place])
                assert got == pytest.approx(wanted, abs=2e-5, nan_ok=True), name
                continue
            present = rows.dropna(subset=[name[-1]])
            shares = (present[name[-1]].to_numpy()[:, None] <= [4, 9]) * 1.0
            wanted_shares = pd.DataFrame(shares).groupby(present["who"].to_numpy()).mean().mean().to_numpy()
            got_shares = found[[f"{name}_4", f"{name}_9"]].to_numpy()[place]
            assert got_shares == pytest.approx(wanted_shares if len(present) else [np.nan] * 2, abs=1e-5, nan_ok=True)


def test_columns_that_were_measured_in_turn() -> None:
    frame = pd.DataFrame(
        {"who": [1, 2, 3, 4], "a": [2, None, 4, None], "b": [None, 6, None, 8], "town": "x", "full": 1}
    )
    found = numbers(Query().agg(n=count_users(), a=mean("a"), b=mean("b")), frame.assign(c=None))
    assert found.to_numpy().tolist() == [[4, 3, 7]]


def test_answers_of_one_column_share_what_they_count() -> None:
    """Then nobody else is counted, and no noise is spent on it."""
    for query in (
        Query().agg(n=count_users("a"), a=mean("a")),
        Query().group_by("town").agg(a=mean("a"), q=quantile("a"), h=histogram("a", [0, 9])),
        Query().agg(n=count_users(), m=mean("full")),
    ):
        assert [one.kind for one in compiled(query, SCHEMA).statistics] == ["users", "mean"]
    apart = compiled(Query().agg(n=count_users(), a=mean("a")), SCHEMA)
    assert [(one.kind, one.of is None) for one in apart.statistics] == [
        ("users", True),
        ("mean", False),
        ("users", False),
    ]


def test_a_default_of_a_column_that_is_made_anew_is_none() -> None:
    query = Query().with_columns(full=tables.col("a")).agg(n=count_users(), m=mean("full"))
    assert len(compiled(query, SCHEMA).statistics) == 3


def test_rows_of_no_use_take_no_place_among_a_users_groups() -> None:
    frame = pd.DataFrame({"who": [1] * 3, "town": list("xyz"), "a": [None, None, 5], "b": [None, 1, None], "c": 0})
    frame["full"] = 1
    for max_keys, names in ((1, ("a",)), (2, ("a", "b"))):
        query = Query().group_by("town", max_keys=max_keys).agg(**{name: count_users(name) for name in names})
        assert numbers(query, frame)[list(names)].to_numpy().sum() == len(names)


def test_the_shares_of_quantiles_are_of_those_with_a_value() -> None:
    rows = {"who": list(range(40)), "town": ["x"] * 40, "a": [1] * 20 + [None] * 20, "b": [1] * 40}
    people = Session(rows, user="who", schema=Schema(a=integer(0, 16), b=integer(0, 1)), epsilon=60)
    release = people.release(people.query().agg(n=count_users(), q=quantile("a")), epsilon=20)
    assert list(release.intervals().columns) == ["n", "n_low", "n_high"]
    release = people.release(people.query().agg(n=count_users("a"), q=quantile("a"), b=mean("b")), epsilon=30)
    assert {"q_share_low", "q_share_high"} <= set(release.intervals().columns)
    assert release.column("n")[0] == pytest.approx(20, abs=8)


# --- what one user changes

SMALL = Schema(town=category(["p", "q"]), n=integer(-1, 1), m=integer(0, 1))
SMALL_UNKNOWN = Schema(town=key(str), n=integer(-1, 1), m=integer(0, 1))
ASKED: dict[str, dict[str, Any]] = {
    "users and users of n": {"people": count_users(), "of_n": count_users("n")},
    "users of n and of m": {"n": count_users("n"), "m": count_users("m")},
    "rows and sum": {"rows": count_rows(1), "total": tables.sum("n", max_total=1)},
    "sum that is never 0": {"people": count_users(), "total": tables.sum("m", max_total=(1, 2))},
}


def holds(query: Compiled, noise: Allotment, neighbors: Any, epsilon: Any, delta: Any, *, n_users: int = 1) -> bool:
    schema = SMALL_UNKNOWN if query.unknown else SMALL
    keys = [("p",), ("q",)] if query.unknown else None
    algorithm = TableAlgorithm(query, noise, schema, n_users=n_users, keys=keys)
    values = {"town": ("p", "q"), "n": (None, -1, 1), "m": (None, 0, 1)}
    universe = [None, *itertools.product(*(values[name] for name in algorithm.columns))]
    report = audit_user_level(
        algorithm, universe=universe, n_users=n_users, n_examples=2, epsilon=epsilon, delta=delta, neighbors=neighbors
    )
    assert report.holds is not None
    return report.holds


def halved(noise: Allotment) -> Allotment:
    """Half of the noise."""
    assert noise.keyed is not None
    made = tuple(
        (one, DiscreteLaplace(scale=F(each.scale) / 2, bounds=(-(2**61), 2**61)))  # type: ignore[union-attr]
        for one, each in noise.keyed.noise
    )
    return replace(noise, keyed=replace(noise.keyed, noise=made))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("max_keys", [1, 2])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_missing_values_with_known_keys_are_within_the_promise(asked: str, max_keys: int, neighbors: Any) -> None:
    meant = compiled(Query().group_by("town", max_keys=max_keys).agg(**ASKED[asked]), SMALL, largest=4)
    noise = allot(meant, neighbors, Budget("basic", LogRatio(2), F(0)))
    assert holds(meant, noise, neighbors, LogRatio(2), 0)
    assert not holds(meant, halved(noise), neighbors, LogRatio(2), 0)


def test_who_may_lack_a_value_changes_the_count_in_a_key_in_common() -> None:
    """Noise for users who all have a value does not hide who lacks one."""
    meant = compiled(Query().group_by("town", max_keys=1).agg(**ASKED["users of n and of m"]), SMALL)
    always = replace(meant, statistics=tuple(replace(one, low=1, of=None) for one in meant.statistics))
    short = allot(replace(always, statistics=always.statistics[:1]), "replace", Budget("basic", LogRatio(2), F(0)))
    assert short.keyed is not None
    noise = allot(meant, "replace", Budget("basic", LogRatio(2), F(0)))
    assert noise.keyed is not None
    less = tuple((one, short.keyed.noise[0][1]) for one in meant.statistics)
    assert not holds(meant, replace(noise, keyed=replace(noise.keyed, noise=less)), "replace", LogRatio(2), 0)


@pytest.mark.parametrize("asked", ["users and users of n", "users of n and of m"])
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_missing_values_with_unknown_keys_are_within_the_promise(asked: str, neighbors: Any) -> None:
    meant = compiled(Query().group_by("town", max_keys=1).agg(**ASKED[asked]), SMALL_UNKNOWN)
    noise = allot(meant, neighbors, Budget("basic", F(1), F(1, 5)))
    assert holds(meant, noise, neighbors, 1, F(1, 5))
    assert noise.keyed is not None
    assert noise.keyed.sparse is not None
    sparse = noise.keyed.sparse
    lower = replace(
        noise.keyed, sparse=SparseHistogram(max_keys=1, threshold=1, epsilon=1, neighbors=neighbors, sigma_squared=1)
    )
    assert sparse.threshold > 1
    assert not holds(meant, replace(noise, keyed=lower), neighbors, 1, F(1, 5))


def test_nobody_adds_more_than_the_plan_says() -> None:
    """All patterns of two rows of a user, by the code of releases."""
    for asked in ASKED.values():
        for unknown in (False, True):
            schema = SMALL_UNKNOWN if unknown else SMALL
            meant = compiled(Query().group_by("town", max_keys=1).agg(**asked), schema)
            rows = list(itertools.product(("p", "q", None), (None, -1, 1), (None, 0, 1)))
            for one, other in itertools.combinations_with_replacement(rows, 2):
                frame = pd.DataFrame([one, other], columns=["town", "n", "m"], dtype=object).assign(who=1)
                sums = summed(meant.query, frame, schema)[1]
                for statistic, column in sums.columns.items():
                    assert np.count_nonzero(column) <= 1
                    assert all(value == 0 or statistic.low <= value <= statistic.high for value in column.tolist())
