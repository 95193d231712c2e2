"""Which groups there are: whole releases, on small worlds exactly, and on tables of all kinds."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest

from userdp import InsecureRandomnessWarning, LogRatio
from userdp.accounting import zcdp_delta
from userdp.audit import audit_user_level
from userdp.exceptions import BudgetError, PrivacyBudgetError
from userdp.mechanisms import PartitionSelection, SetUnion, SparseHistogram
from userdp.tables import Query, Schema, Session, category, col, count_users, key, number
from userdp.tables.audits import KeysAlgorithm
from userdp.tables.compiled import compiled

F = Fraction
SHOPS = Schema(shop=key(str))
QUERY = Query().group_by("shop", max_keys=3).keys_only()


def visits() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    users = rng.integers(0, 2000, 20_000)
    shops = rng.zipf(1.4, 20_000) % 300
    frame = pd.DataFrame({"who": users, "shop": [f"s{shop:03}" for shop in shops]})
    # One user is in 10,000 shops, and some rows have no shop or nobody.
    many = pd.DataFrame({"who": 1, "shop": [f"x{shop}" for shop in range(10_000)]})
    holes = pd.DataFrame({"who": range(2000, 2500), "shop": None})
    return pd.concat([frame, many, holes], ignore_index=True)


def session(frame: Any, **arguments: Any) -> Session:
    return Session(
        frame, user="who", **{"schema": SHOPS, "epsilon": 2, "delta": "1e-3", "composition": "basic", **arguments}
    )


def shown(frame: Any, query: Query = QUERY, **arguments: Any) -> tuple[Any, ...]:
    with pytest.warns(InsecureRandomnessWarning):
        return session(frame, **arguments).release(query, random_state=3).keys


@pytest.mark.parametrize("method", ["two-round", "policy"])
def test_all_tables_and_orders_give_the_same_keys(method: str) -> None:
    frame, query = visits(), Query().group_by("shop", max_keys=3).keys_only(method)
    want = shown(frame, query)
    assert 20 < len(want) < 290
    assert list(want) == sorted(want)
    assert not any(name.startswith("x") for (name,) in want)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    shuffled = frame.sample(frac=1, random_state=1)
    for other in (
        shuffled,
        pl.from_pandas(frame),
        pl.from_pandas(shuffled).lazy(),
        table,
        pyarrow.dataset.dataset(table),
        pa.Table.from_pandas(shuffled, preserve_index=False).to_batches(max_chunksize=37),
        frame.astype({"shop": "category"}),
        pd.concat([frame, frame]),  # rows that say the same
    ):
        assert shown(other, query) == want
    assert shown(frame, query, memory=2**16) == want


def test_a_release_says_keys_and_nothing_else() -> None:
    release = session(visits()).release(QUERY)
    assert list(release.frame.columns) == ["shop"]
    assert len(release.frame) == len(release.keys) > 20
    assert release.threshold is None
    card = release.card()
    assert "A group that is not shown may exist" in card
    assert "SetUnion" in release.to_json()
    with pytest.raises(ValueError, match="intervals are for"):
        release.intervals()
    assert "rows" in repr(release)


def test_plans_cost_what_is_charged() -> None:
    people = session(visits())
    plan = people.plan(QUERY, epsilon="1/2", delta="1e-4")
    assert (plan.cost.epsilon, plan.cost.delta) == (F(1, 2), F(1, 10_000))
    assert "weights" in str(plan)
    people.release(QUERY, epsilon="1/2", delta="1e-4")
    assert people.remaining() == {"epsilon": F(3, 2), "delta": F(1, 1000) - F(1, 10_000)}
    # In rho: with the delta beside it the promise holds.
    many = session(visits(), composition="zcdp")
    plan = many.plan(QUERY)
    assert plan.noise.finder is not None
    assert plan.cost.rho is not None
    delta = plan.cost.added_delta + zcdp_delta(plan.cost.rho, 2, distance=plan.cost.distance)
    assert F(9, 10_000) < delta <= F(1, 1000)
    many.release(QUERY)
    with pytest.raises(PrivacyBudgetError):
        many.release(QUERY)


class Unreadable:
    """A table that may not be read."""

    def __init__(self, table: Any) -> None:
        self.table, self.names, self.backend, self.dialect = table, table.names, table.backend, None

    def batches(self, columns: Any) -> Any:
        raise AssertionError("was read")


def test_a_release_beyond_the_budget_reads_nothing() -> None:
    people = session(visits())
    people._table = Unreadable(people._table)  # type: ignore[assignment]
    with pytest.raises(PrivacyBudgetError):
        people.release(QUERY, epsilon=3)
    assert people.remaining()["epsilon"] == 2
    # What fails while it reads is charged, and does not say why.
    with pytest.raises(RuntimeError, match="could not be read") as caught:
        people.release(QUERY, epsilon=1)
    assert "was read" not in str(caught.value)
    assert caught.value.__context__ is None
    assert people.remaining()["epsilon"] == 1


def test_dates_integers_and_several_columns_are_keys() -> None:
    days = [datetime.date(2020, 1, 1 + day) for day in range(3)]
    frame = pd.DataFrame(
        {
            "who": np.repeat(np.arange(300), 3),
            "day": days * 300,
            "shop": [7, -7, 2**40] * 300,
            "kind": ["a", "b", "a"] * 300,
        }
    )
    schema = Schema(day=key(datetime.date), shop=key(int), kind=category(["a", "b"]))
    keys = shown(frame, Query().group_by("day", "shop", "kind", max_keys=3).keys_only(), schema=schema)
    assert keys == ((days[0], 7, "a"), (days[1], -7, "b"), (days[2], 2**40, "a"))
    one = Query().filter(col("shop") > 0).group_by("shop", max_keys=2).keys_only("one-round")
    assert shown(frame, one, schema=schema) == ((7,), (2**40,))


def test_tables_of_nobody_show_nothing() -> None:
    empty = pd.DataFrame({"who": pd.Series([], dtype="int64"), "shop": pd.Series([], dtype="object")})
    nothing = pd.DataFrame({"who": [1, 2, 3], "shop": pd.Series([None] * 3, dtype="object")})
    for frame, method in itertools.product((empty, nothing), ("two-round", "policy")):
        assert shown(frame, Query().group_by("shop", max_keys=3).keys_only(method)) == ()


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("rounds", [[(36, 17)], [(36, 20), (25, 18)]])
def test_whole_releases_on_small_worlds(neighbors: Any, rounds: Any) -> None:
    """Rows, bounding and rounds together: within the account, and with half the noise not."""
    meant = compiled(Query().group_by("shop", max_keys=1).keys_only(), SHOPS)

    def holds(noise: int, delta: Fraction | None) -> tuple[bool, Fraction]:
        listed = [(F(sigma_squared, noise**2), threshold) for sigma_squared, threshold in rounds]
        union = SetUnion(max_keys=1, rounds=listed, epsilon=LogRatio(2, 1), neighbors=neighbors, weight=12)
        claimed = union.certified_delta if delta is None else delta
        algorithm = KeysAlgorithm(meant, union, SHOPS, keys=[("a",), ("b",)])
        report = audit_user_level(
            algorithm,
            universe=[None, ("a",), ("b",)],
            n_users=2,
            n_examples=2,
            epsilon=LogRatio(2, 1),
            delta=claimed,
            neighbors=neighbors,
        )
        return report.holds, claimed

    held, delta = holds(1, None)
    assert held
    assert not holds(2, delta)[0]


def test_sessions_give_their_releases_as_algorithms() -> None:
    people = session(visits())
    # Weights are in a million steps, so that noise has too many outputs: said at once, and not by pmf.
    with pytest.raises(BudgetError, match=r"keys_only\(\) cannot be audited.*smaller weight="):
        people.as_finite_algorithm(QUERY, n_users=2, keys=[("a",), ("b",)])
    with pytest.raises(ValueError, match="keys"):
        people.as_finite_algorithm(QUERY, n_users=2)


def test_queries_that_make_no_sense_are_refused() -> None:
    grouped = Query().group_by("shop", max_keys=3)
    for wrong, message in (
        (lambda: Query().keys_only(), "after group_by"),
        (lambda: grouped.keys_only("best"), "method"),
        (lambda: grouped.keys_only().agg(n=count_users()), "ends with keys_only"),
        (lambda: grouped.agg(n=count_users()).keys_only(), "in place of agg"),
        (lambda: grouped.keys_only().keys_only(), "in place of agg"),
        (lambda: Query().group_by("shop", max_keys=3, rule="first").keys_only(), "rule"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()
    people = session(visits())
    for query, message in (
        (Query().group_by("shop").keys_only(), "max_keys"),
        (Query().group_by("shop", max_keys=2**20 + 1).keys_only(), "max_keys"),
        (Query().group_by("shop", keys=["s001"]).keys_only(), "public already"),
        (Query().group_by("shop", keys=["s001"], others=True, max_keys=3).keys_only(), "public already"),
    ):
        with pytest.raises(ValueError, match=message):
            people.plan(query)
    with pytest.raises(ValueError, match="positive delta"):
        session(visits(), delta=0).plan(QUERY)
    # Two rounds serve down to an epsilon as small as delta; one round does not, and says what would.
    tiny: dict[str, Any] = {"epsilon": "1e-6", "delta": "1e-6"}
    union = session(visits(), **tiny).plan(QUERY).noise.finder
    assert union is not None
    assert union.certified_delta <= F(1, 10**6)
    once = Query().group_by("shop", max_keys=3).keys_only("one-round")
    with pytest.raises(ValueError, match=r"no noise and threshold.*composition='zcdp'"):
        session(visits(), **tiny).plan(once)
    assert session(visits(), **tiny, composition="zcdp").plan(once).cost.added_delta <= F(1, 2 * 10**6)
    with pytest.raises(ValueError, match=r"no noise and threshold.*drawn noise is off"):
        session(visits(), epsilon=100).plan(replace(QUERY, union="two-round"))
    # What else there is serves beside any epsilon.
    assert isinstance(session(visits(), epsilon=100).plan(QUERY).noise.finder, SparseHistogram)
    known = Session(
        pd.DataFrame({"who": [1], "town": ["a"], "x": [1.0]}),
        user="who",
        schema=Schema(town=category(["a"]), x=number(0, 1)),
        epsilon=1,
        delta="1e-5",
    )
    with pytest.raises(ValueError, match="public already"):
        known.plan(Query().group_by("town", max_keys=1).keys_only())


def test_more_keys_are_shown_than_where_they_are_counted() -> None:
    frame = visits()
    counted = session(frame).plan(Query().group_by("shop", max_keys=3).agg(n=count_users()))
    found = session(frame).plan(replace(QUERY, union="one-round")).noise.finder
    assert found is not None
    assert counted.threshold is not None
    # A user with three keys weighs 1 / sqrt(3) in each, and noise is as for one key.
    assert found.users_for("1/2", keys=1) < counted.threshold


# --- the best one by public numbers


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
@pytest.mark.parametrize("epsilon", ["1/10", 1, 8, 40])
def test_keys_of_one_key_need_no_more_users_than_where_they_are_counted(
    epsilon: Any, composition: str, neighbors: Any
) -> None:
    people = session(visits(), epsilon=epsilon, delta="1e-5", composition=composition, neighbors=neighbors)
    grouped = Query().group_by("shop", max_keys=1)
    best, counted = people.plan(grouped.keys_only()), people.plan(grouped.agg(n=count_users()))
    assert best.noise.finder is not None
    assert counted.noise.keyed is not None
    assert counted.noise.keyed.sparse is not None
    for probability in ("1/2", "9/10"):
        needed = best.noise.finder.users_for(probability)
        assert needed <= counted.noise.keyed.sparse.users_for(probability)
        try:
            rounds = people.plan(grouped.keys_only("two-round")).noise.finder
        except ValueError:  # beside a large epsilon drawn Gaussian noise is too far off the ideal
            continue
        assert needed <= rounds.users_for(probability)  # type: ignore[union-attr]
    # A plan says what is taken, and it is charged what it costs.
    assert type(best.noise.finder).__name__ in str(best)
    assert people.release(grouped.keys_only()).cost == best.cost
    if composition == "basic" and neighbors == "add-remove":
        assert repr(best.noise.finder) == repr(PartitionSelection(epsilon=F(epsilon), delta=F(1, 10**5)))


@pytest.mark.parametrize(("max_keys", "kind"), [(2, SetUnion), (4, SetUnion), (30, SetUnion), (1, PartitionSelection)])
def test_users_of_several_keys_spread_weights(max_keys: int, kind: type) -> None:
    plan = session(visits(), epsilon=1, delta="1e-5").plan(Query().group_by("shop", max_keys=max_keys).keys_only())
    assert isinstance(plan.noise.finder, kind)


def audited(finder: Any, max_keys: int, neighbors: Any, level: Any, delta: Fraction) -> bool:
    """Whether whole releases by it keep a promise, on all worlds of three users, or of two with two keys."""
    meant = compiled(Query().group_by("shop", max_keys=max_keys).keys_only(), SHOPS)
    return audit_user_level(
        KeysAlgorithm(meant, finder, SHOPS, keys=[("a",), ("b",)]),
        universe=[None, ("a",), ("b",)],
        n_users=3 if max_keys == 1 else 2,
        n_examples=2,
        epsilon=level,
        delta=delta,
        neighbors=neighbors,
    ).holds


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_selections_keep_their_promise_on_small_worlds(neighbors: Any) -> None:
    """By the law that a session draws from; for a larger epsilon or delta not: each of two keys has half of them."""
    level, delta = LogRatio(2, 1), F(1, 20)
    made = PartitionSelection(epsilon=level, delta=delta, neighbors=neighbors)
    assert audited(made, 1, neighbors, level, delta)
    times = 1 if neighbors == "add-remove" else 3
    for wrong in ({"epsilon": LogRatio(4**times, 1)}, {"delta": (1 + times) * delta}):
        other = PartitionSelection(**{**made._arguments, **wrong})
        assert not audited(other, 1, neighbors, level, delta)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("max_keys", [1, 2])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_thresholds_keep_their_promise_on_small_worlds(noise: Any, max_keys: int, neighbors: Any) -> None:
    """The same with half the noise, and the threshold for it, and with a lower threshold."""
    level, delta = LogRatio(2, 1), F(1, 20)
    made = SparseHistogram.calibrated(level, delta, max_keys, neighbors=neighbors, method=noise)
    assert audited(made, max_keys, neighbors, level, made.certified_delta)
    half: dict[str, Any] = dict(made._arguments)
    if noise == "laplace":
        half["scale"] /= 2
    else:
        half["sigma_squared"] /= 4
    half["threshold"] = made.threshold // 2
    for wrong in (half, {**made._arguments, "threshold": made.threshold - 1}):
        assert not audited(SparseHistogram(**wrong), max_keys, neighbors, level, made.certified_delta)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
def test_what_a_session_chooses_is_within_what_it_is_charged(composition: str, neighbors: Any) -> None:
    """The algorithm that a session gives, at the promise of the whole session."""
    people = session(visits(), epsilon=LogRatio(2, 1), delta="1/10", composition=composition, neighbors=neighbors)
    query = Query().group_by("shop", max_keys=1).keys_only()
    try:
        algorithm = people.as_finite_algorithm(query, n_users=3, keys=[("a",), ("b",)])
    except BudgetError:  # weights are in a million steps
        assert isinstance(people.plan(query).noise.finder, SetUnion)
        return
    assert audit_user_level(
        algorithm,
        universe=[None, ("a",), ("b",)],
        n_users=3,
        n_examples=2,
        epsilon=LogRatio(2, 1),
        delta=F(1, 10),
        neighbors=neighbors,
    ).holds


@pytest.mark.parametrize(
    ("kind", "budget", "part"),
    [
        (PartitionSelection, {"epsilon": 600, "delta": "6e-3"}, {"epsilon": 1, "delta": "1e-5"}),
        (SparseHistogram, {"epsilon": 2400, "delta": "6e-3"}, {"epsilon": 8, "delta": "1e-5"}),
    ],
)
def test_groups_are_shown_as_often_as_the_law_says(kind: Any, budget: Any, part: Any) -> None:
    """Of 300 releases of two groups with as many users as are shown half of the time, and of one with a user."""
    query = Query().group_by("shop", max_keys=1).keys_only()
    neighbors: Any = "add-remove" if kind is PartitionSelection else "replace"
    plan = session(visits(), **budget, neighbors=neighbors).plan(query, **part)
    finder = plan.noise.finder
    assert isinstance(finder, kind)
    half = finder.users_for("1/2")
    frame = pd.DataFrame({"who": range(2 * half + 1), "shop": ["a"] * half + ["b"] * half + ["c"]})
    people = session(frame, **budget, neighbors=neighbors)
    shown = [people.release(query, **part).keys for _ in range(300)]
    often = float(finder.release_probability(half))
    count = sum(("a",) in keys for keys in shown) + sum(("b",) in keys for keys in shown)
    assert abs(count - 600 * often) < 6 * (600 * often * (1 - often)) ** 0.5
    assert sum(("c",) in keys for keys in shown) <= 3


def test_a_user_counts_in_one_group_only() -> None:
    """Users of both groups: which one they count in is drawn, so that each has about half of them."""
    frame = pd.DataFrame({"who": [*range(30)] * 2, "shop": ["a"] * 30 + ["b"] * 30})
    found = [session(frame).release(Query().group_by("shop", max_keys=1).keys_only()).keys for _ in range(20)]
    assert {("a",), ("b",)} == {key for keys in found for key in keys}
