"""Random queries and budgets: whatever a plan accepts, a release completes, and reads what a plan says.

USERDP_QUERIES says how many there are: `USERDP_QUERIES=4000 pytest tests/tables/test_random_queries.py`.
"""

from __future__ import annotations

import datetime
import os
import random
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import tables
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.tables import (
    Query,
    Schema,
    Session,
    boolean,
    category,
    cdf,
    col,
    count_rows,
    count_unreadable,
    count_users,
    histogram,
    integer,
    key,
    lit,
    mean,
    number,
    quantile,
)

QUERIES = int(os.environ.get("USERDP_QUERIES", "120"))
BATCHES = 8
SCHEMA = Schema(
    small=integer(0, 10),
    signed=integer(-3, 7),
    huge=integer(-(2**52), 2**53 - 1),
    amount=number(0, 50),
    wide=number(-1e9, 1e12),
    coarse=number(0, 1, steps=4),
    flag=boolean(),
    town=category(["a", "b", "c"]),
    code=key(int),
    name=key(str),
    day=key(datetime.date),
)
NUMBERS = ("small", "signed", "huge", "amount", "wide", "coarse", "flag")
BUDGETS = ("0.01", "0.1", "1", "3", "30", "80", "200")


def frame(rng: random.Random) -> pd.DataFrame:
    rows = rng.choice([0, 0, 1, 8, 40])
    odd = [None, float("nan"), 1e300, -5]
    return pd.DataFrame(
        {
            "who": [rng.randrange(1 + rows // 2) for _ in range(rows)],
            "small": pd.array([rng.choice([rng.randrange(12), None]) for _ in range(rows)], dtype="Int64"),
            "signed": [rng.randrange(-9, 9) for _ in range(rows)],
            "huge": [rng.choice([0, -(2**63), 2**63 - 1]) for _ in range(rows)],
            **{
                name: pd.Series([rng.choice([rng.uniform(0, 60), *odd]) for _ in range(rows)], dtype="float64")
                for name in ("amount", "wide", "coarse")
            },
            "flag": pd.Series([rng.random() < 0.5 for _ in range(rows)], dtype="bool"),
            "town": pd.Series([rng.choice(["a", "b", "z"]) for _ in range(rows)], dtype="object"),
            "code": [rng.choice([0, 1, 2, 3, 2**40]) for _ in range(rows)],
            "name": pd.Series([rng.choice(["x", "y", None]) for _ in range(rows)], dtype="object"),
            "day": pd.Series([rng.choice([datetime.date(2020, 1, 2), None]) for _ in range(rows)], dtype="object"),
        }
    )


def expression(rng: random.Random, names: list[str]) -> Any:
    """Of numbers: what is refused is made anew."""
    one, other = col(rng.choice(names)), col(rng.choice(names))
    made: list[Callable[[], Any]] = [
        lambda: one + rng.randrange(-2, 9),
        lambda: one * 2,
        lambda: one - other,
        lambda: one.abs(),
        lambda: one.clip(0, 5),
        lambda: tables.when(one > other).then(one).otherwise(3),
        lambda: other,
    ]
    return rng.choice(made)()


def steps(rng: random.Random, query: Query) -> tuple[Query, list[str]]:
    """Columns that nothing uses, that are replaced once or twice and chained, and filters between them."""
    names = list(NUMBERS[:6])
    for _ in range(rng.choice([0, 1, 2, 4])):
        if rng.random() < 0.3:
            query = query.filter(col(rng.choice(names)) > rng.randrange(3))
            continue
        if rng.random() < 0.1 and not any(isinstance(step, tables.queries.PerUser) for step in query.steps):
            names = ["small", "amount", "mapped"]
            returns = Schema(
                small=integer(0, 9), amount=number(0, 7), mapped=integer(0, 3), code=key(int), name=key(str),
                town=category(["a", "b"]), flag=boolean(), day=key(datetime.date),
            )  # fmt: skip
            query = query.map_users(lambda rows: [{"small": 1, "mapped": len(rows), "code": 5}] * 2, returns=returns)
            continue
        name = rng.choice([*names, "new", "newer"])
        query = query.with_columns(**{name: expression(rng, names)})
        names = list(dict.fromkeys([*names, name]))
    return query, names


def aggregate(rng: random.Random, names: list[str], grouped: bool) -> Any:
    name = rng.choice(names)
    made: list[Callable[[], Any]] = [
        count_users,
        lambda: count_rows(rng.choice([1, 5, 10**6, 2**32])),
        lambda: tables.sum(name, max_total=rng.choice([1, 500, 10**7, (-3, 10**12)])),
        lambda: tables.sum("amount", max_total=500),
        lambda: mean(name),
        lambda: mean(name, weighting="rows", max_rows=rng.choice([1, 20, 10**5])),
        lambda: quantile(name, rng.choice(["1/2", ["1/4", "1/2", "3/4"]])),
        lambda: quantile("small", "1/2"),
        lambda: histogram(name, [0, 1, 5, 9]),
        lambda: cdf(name, [1, 2, 4]),
        lambda: count_unreadable(rng.choice(["small", "town"])),
    ]
    return rng.choice(made[:-1] if grouped else made)()


def query_of(rng: random.Random) -> Query:
    query, names = steps(rng, Query())
    groups: list[dict[str, Any]] = [
        {},
        {"by": ["town"]},
        {"by": ["flag", "town"], "max_keys": 2},
        {"by": ["code"], "keys": [0, 1, 2**40], "max_keys": 2},
        {"by": ["code"], "max_keys": 1},
        {"by": ["code"], "max_keys": rng.choice([1, 2, 3, 10, 30])},
        {"by": ["name"], "max_keys": 2, "rule": "first"},
        {"by": ["code", "day"], "max_keys": 3},
        {"by": ["code"], "keys": [1, 7], "others": True, "max_keys": rng.choice([1, 3])},
    ]
    group = dict(rng.choice(groups))
    if group:
        query = query.group_by(*group.pop("by"), **group)
        if "keys" not in group and group and rng.random() < 0.2:
            return query.keys_only(*rng.choice([(), ("one-round",), ("two-round",)]))
    asked = rng.choice([1, 1, 2, 3])
    return query.agg(**{f"answer{place}": aggregate(rng, names, query.grouping is not None) for place in range(asked)})


def session_of(rng: random.Random, table: Any) -> Session:
    composition = rng.choice(["basic", "zcdp", "exact"])
    delta = rng.choice([0, "1e-9", "1e-5", "1e-3"]) if composition == "basic" else rng.choice(["1e-9", "1e-5", "1e-3"])
    return Session(
        table,
        user="who",
        schema=SCHEMA,
        epsilon=rng.choice(BUDGETS),
        delta=delta,
        composition=composition,
        neighbors=rng.choice(["add-remove", "replace"]),
    )


def tried(seed: int) -> str:
    """How it went: refused, which is before anything is charged, or released."""
    rng = random.Random(seed)
    table = frame(rng)
    try:
        query = query_of(rng)
    except (TypeError, ValueError):
        return "no query"
    people = session_of(rng, table)
    before = people.remaining()
    part = rng.choice([{}, {}, {"epsilon": rng.choice(["0.005", "0.5", "20"])}])
    try:
        plan = people.plan(query, **part)
    except (TypeError, ValueError):
        assert people.remaining() == before
        return "refused"
    assert str(plan)
    release = people.release(query, **part)
    assert release.cost == plan.cost
    assert release.card()
    assert release.to_frame() is not None
    return "released"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_what_a_plan_accepts_is_released(batch: int) -> None:
    found: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(batch, QUERIES, BATCHES):
            try:
                found[tried(seed)] += 1
            except Exception as error:
                raise AssertionError(f"seed {seed}: {query_of_seed(seed)}") from error
    assert found["released"] > sum(found.values()) / 3


def query_of_seed(seed: int) -> str:
    """What a seed asks for, to say where it fails."""
    rng = random.Random(seed)
    frame(rng)
    return f"{query_of(rng)!r} of {session_of(rng, frame(random.Random(0)))!r}"


# --- what failed after a charge, one by one


AMOUNTS = pd.DataFrame({"who": range(9), "amount": 1.0, "other": 2, "code": 5})
TYPES = Schema(amount=number(0, 50), other=integer(0, 10), code=key(int))


def released(query: Query, **arguments: Any) -> tables.Release:
    people = Session(AMOUNTS, user="who", schema=TYPES, **{"epsilon": 1, "delta": "1e-5", **arguments})
    return people.release(query)


@pytest.mark.parametrize(
    "query",
    [
        Query().with_columns(unused=col("other") + 1),
        Query().with_columns(amount=col("amount") * 2).with_columns(amount=col("other")),
        Query().with_columns(one=col("other") + 1).with_columns(two=col("one") + 1),
        Query().with_columns(one=col("other")).filter(col("one") > 0).with_columns(one=col("amount")),
        Query().with_columns(amount=col("other").clip(0, 5)).map_users(
            lambda rows: rows[0], returns=Schema(amount=number(0, 5))
        ).with_columns(unused=col("amount") + 1),
    ],
)  # fmt: skip
def test_columns_that_nothing_uses(query: Query) -> None:
    assert released(query.agg(n=count_users(), x=mean("amount")), epsilon=100).column("n")[0] == pytest.approx(9, abs=3)


def without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in (DiscreteLaplace, DiscreteGaussian):
        monkeypatch.setattr(kind, "_release_many", lambda self, values, source: values)


def test_what_a_needed_column_is_made_of_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column is what it was when it was used: replaced later, or before by one that goes."""
    without_noise(monkeypatch)
    query = Query().with_columns(other=col("amount") * 3).with_columns(kept=col("other"), other=col("amount"))
    found = released(query.agg(x=mean("kept"), y=mean("other")))
    assert [float(found.column(name)[0]) for name in "xy"] == pytest.approx([3, 1], abs=0.01)


@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("epsilon", ["1/100", 1, 30, 1000])
def test_sums_of_unknown_groups(epsilon: Any, others: bool, composition: str) -> None:
    """Their Laplace noise needed tables of more than 2**16 entries."""
    known: dict[str, Any] = {"keys": [1, 5], "others": True} if others else {}
    query = Query().group_by("code", max_keys=1, **known).agg(x=tables.sum("amount", max_total=500))
    found = released(query, epsilon=epsilon, composition=composition)
    assert len(found.column("x")) >= 2 * others


def test_coarse_sums_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise a sum is off by half a step at most, which is next to nothing beside the noise."""
    without_noise(monkeypatch)
    query = Query().group_by("code", keys=[5], others=True, max_keys=1).agg(x=tables.sum("amount", max_total=500))
    people = Session(AMOUNTS, user="who", schema=TYPES, epsilon=1, delta="1e-5", composition="basic")
    plan = people.plan(query)
    assert plan.noise.keyed is not None
    assert max(plan.noise.keyed.steps) > 1
    assert abs(people.release(query).column("x")[0] - 9) <= plan.standard_error("x") / 2**20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": 0}, "memory must be"),
        ({"memory": 2**16 - 1}, "memory must be from 2"),
        ({"memory": 2**63}, "memory must be from 2"),
        ({"memory": "much"}, "memory must be"),
        ({"memory": None}, "memory must be"),
        ({"directory": "/nowhere/at/all"}, "directory must be one in which files can be made"),
        ({"directory": __file__}, "directory must be one in which files can be made"),
        ({"directory": "a\0b"}, "directory must be one in which files can be made"),
        ({"directory": 7}, "directory must be the name"),
    ],
)
def test_arguments_are_checked_when_a_session_is_made(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Session(AMOUNTS, user="who", schema=TYPES, epsilon=1, **arguments)


@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
@pytest.mark.parametrize("epsilon", [100, 1000, 10**9])
def test_large_epsilons_serve_or_are_said_to_be_too_large(epsilon: int, composition: str) -> None:
    """They were called too little for quantiles and thresholds, or a mu2 was named that nobody gave."""
    for query in (
        Query().agg(q=quantile("amount", "1/2")),
        Query().agg(q=quantile("amount", ["1/4", "1/2"]), n=count_users()),
        Query().group_by("code", max_keys=100).agg(n=count_users()),
        Query().group_by("code", max_keys=1).agg(x=tables.sum("amount", max_total=500)),
        Query().group_by("code", max_keys=1).keys_only(),
    ):
        try:
            released(query, epsilon=epsilon, composition=composition)
            refused = ""
        except ValueError as error:
            refused = str(error)
        if refused:
            assert epsilon == 10**9
            assert re.search("epsilon must be at most 1024|this needs epsilon < 1048576", refused)


def test_a_function_of_users_sees_columns_in_the_order_of_the_schema() -> None:
    """Whichever of them are read: a column that is replaced by what does not need it keeps its place."""
    seen = []

    def order(rows: list[dict[str, Any]]) -> dict[str, Any]:
        seen.append(list(rows[0]))
        return {"x": 1}

    frame = pd.DataFrame({"who": [1], "a": [1], "b": [2]})
    session = Session(frame, user="who", schema=Schema(a=integer(0, 9), b=integer(0, 9)), epsilon=9)
    for query in (
        session.query(),
        session.query().with_columns(a=col("a") + 1),
        session.query().with_columns(a=lit(5)),
    ):
        session.release(query.map_users(order, returns=Schema(x=integer(0, 1))).agg(n=count_users()), epsilon=1)
    assert seen == [["a", "b"]] * 3


def test_a_directory_is_meant_where_the_session_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "parts").mkdir()
    rows = pd.DataFrame({"who": np.arange(60_000), "v": 1})
    schema = Schema(v=number(0, 5))
    session = Session(rows, user="who", schema=schema, epsilon=1, memory=2**16, directory="parts")
    monkeypatch.chdir("/")
    assert session.release(session.query().agg(n=count_users())).column("n")[0] > 50_000
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="directory must be one in which files can be made"):
        Session(rows, user="who", schema=schema, epsilon=1)
