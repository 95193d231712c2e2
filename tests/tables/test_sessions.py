"""Sessions: what they refuse, what they charge, and that no value of any row raises, warns or shows."""

from __future__ import annotations

import datetime
import json
import math
import re
import threading
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp import LogRatio, tables
from userdp.accounting import PrivacyLedger, largest_rho, zcdp_delta
from userdp.exceptions import InsecureRandomnessWarning, PrivacyBudgetError
from userdp.tables import (
    KeySet,
    Query,
    Schema,
    Session,
    boolean,
    category,
    col,
    count_rows,
    count_users,
    histogram,
    integer,
    key,
    mean,
    number,
    quantile,
    timestamp,
)
from userdp.tables.compiled import compiled
from userdp.tables.reading import Table, table_of
from userdp.tables.rows import UserColumns, add_up

F = Fraction
N = 3000
PEOPLE = pd.DataFrame(
    {
        "who": np.repeat(np.arange(N), 2),
        "town": np.tile(["Bonn", "Ulm", "Ulm", "Zug"], N // 2),
        "spent": np.tile([10.0, 20.0, 30.0, 40.0], N // 2),
        "visits": np.tile([1, 2, 3, 4], N // 2),
    }
)
SCHEMA = Schema(town=category(["Bonn", "Ulm", "Zug", "Wyk"]), spent=number(0, 100), visits=integer(0, 10))
OPEN = Schema(town=key(str), spent=number(0, 100), visits=integer(0, 10))


def session(schema: Schema = SCHEMA, frame: Any = PEOPLE, **given: Any) -> Session:
    return Session(frame, user="who", schema=schema, **{"epsilon": 50, **given})


def test_answers_are_near_the_truth() -> None:
    """Epsilon 50, so that noise of scale k / epsilon is small: 40 scales have a probability below 1e-15."""
    people = session(epsilon=200)
    by_town = people.query().group_by("town")
    asked = by_town.agg(n=count_users(), rows=count_rows(2), spent=mean("spent"), all=tables.sum("visits", max_total=8))
    release = people.release(asked, epsilon=100)
    assert release.keys == (("Bonn",), ("Ulm",), ("Zug",), ("Wyk",))
    # Each even user has Bonn and Ulm, each odd one Ulm and Zug.
    for name, expected, off in (
        ("n", [N / 2, N, N / 2, 0], 40),
        ("rows", [N / 2, N, N / 2, 0], 60),
        ("all", [N / 2, 2 * N / 2 + 3 * N / 2, 4 * N / 2, 0], 300),
    ):
        assert np.all(np.abs(release.column(name) - expected) < off)
    assert np.all(np.abs(release.column("spent")[:3] - [10, 25, 40]) < 3)
    frame = release.frame
    assert list(frame.columns) == ["town", "n", "rows", "spent", "all", "bounded"]
    assert set(frame["bounded"]) == {"rows: at most 2 rows of a user; all: a user's total within 0 and 8"}
    intervals = release.intervals(1 - 1e-9)
    assert (intervals["spent_low"][:3] <= [10, 25, 40]).all()
    assert (intervals["spent_high"][:3] >= [10, 25, 40]).all()
    whole = people.release(
        people.query().agg(
            middle=quantile("spent"), all=quantile("visits", ["1/4", "3/4"]), bins=histogram("spent", [0, 25, 50])
        ),
    )
    assert people.remaining()["epsilon"] == 0
    # A quarter of the weight is at each of four values: the median is from 20 to 30.
    assert 19.9 <= whole.quantiles("middle")[F(1, 2)] <= 30.1
    assert list(whole.quantiles("all").values()) == [pytest.approx(1.5, abs=0.51), pytest.approx(3.5, abs=0.51)]
    counts, edges = whole.histogram("bins")
    assert edges == (0.0, 25.0, 50.0)
    assert np.all(np.abs(counts - N / 2) < 10)


@pytest.mark.parametrize("composition", ["zcdp", "basic"])
def test_unknown_groups_are_shown_if_they_are_large(composition: str) -> None:
    rare = pd.DataFrame({"who": [10**6], "town": ["Nowhere"], "spent": [1.0], "visits": [1]})
    people = session(OPEN, pd.concat([PEOPLE, rare]), epsilon=4, delta="1e-6", composition=composition)
    query = people.query().group_by("town", max_keys=2).agg(n=count_users(), spent=mean("spent"))
    plan = people.plan(query)
    release = people.release(query)
    assert release.cost == plan.cost
    assert release.threshold == plan.threshold
    assert 3 < plan.threshold < 100
    assert release.keys == (("Bonn",), ("Ulm",), ("Zug",))
    assert "Nowhere" not in release.card() + release.to_json() + str(release)
    assert all(count >= plan.threshold for count in release.column("n"))
    left = people.remaining()
    if composition == "basic":
        assert left["epsilon"] == 0
        assert left["delta"] == 0
    else:
        assert left["rho"] < F(1, 10**9)
    with pytest.raises(PrivacyBudgetError):
        people.release(query)


def test_groups_that_are_known_in_part() -> None:
    """Listed groups are there in their order, also those that nobody has; others come after them, if they are large."""
    rare = pd.DataFrame({"who": [10**6] * 2, "town": ["Nowhere", "Wyk"], "spent": [1.0] * 2, "visits": [1] * 2})
    people = session(OPEN, pd.concat([PEOPLE, rare]), epsilon=4, delta="1e-6", composition="basic")
    asked = {"keys": ["Wyk", "Ulm", "Rom"], "others": True}
    query = people.query().group_by("town", max_keys=2, **asked).agg(n=count_users(), spent=mean("spent"))
    unlisted = people.query().group_by("town", max_keys=2).agg(n=count_users(), spent=mean("spent"))
    assert people.plan(query).noise.keyed.sparse.certified_delta == (
        people.plan(unlisted).noise.keyed.sparse.certified_delta
    )
    assert "3, which are in the answer, and others that are unknown" in str(people.plan(query))
    release = people.release(query)
    assert release.keys == (("Wyk",), ("Ulm",), ("Rom",), ("Bonn",), ("Zug",))
    # Gaussian or Laplace noise with a deviation below 10: 20 of them.
    assert np.all(np.abs(release.column("n") - [1, N, 0, N / 2, N / 2]) < 200)
    assert "A group beyond the public list is shown if" in release.card()
    assert "Nowhere" not in release.card() + release.to_json()
    assert people.remaining()["epsilon"] == 0
    with pytest.raises(ValueError, match="max_keys is needed"):
        people.plan(people.query().group_by("town", **asked).agg(n=count_users()))
    with pytest.raises(ValueError, match="others is for keys="):
        people.query().group_by("town", max_keys=1, others=True)
    with pytest.raises(TypeError, match="others must be True or False"):
        people.query().group_by("town", max_keys=1, keys=["Wyk"], others=1)
    pure = session(OPEN, epsilon=1)
    with pytest.raises(ValueError, match="a positive delta is needed"):
        pure.plan(pure.query().group_by("town", max_keys=1, **asked).agg(n=count_users()))


def test_a_threshold_is_that_of_a_joint_account() -> None:
    """Thresholds of the specification for (1, 1e-5): 58 for 10 keys; at one, a key has more than half a chance."""
    people = session(OPEN, epsilon=1, delta="1e-5", composition="basic")
    for max_keys, most in ((1, 13), (2, 25), (10, 58)):
        plan = people.plan(people.query().group_by("town", max_keys=max_keys).agg(n=count_users()))
        assert plan.threshold <= most
        assert plan.cost.delta == F(1, 10**5)


def test_noise_follows_the_exact_curve_where_it_is_less() -> None:
    """Ten keys of a user at (1, 1e-5): mu^2 / 2 is .0359257 by an independent derivation, and rho .0305566."""
    people = session(
        Schema(town=category(range(10**4))), PEOPLE.assign(town=1), delta="1e-5", epsilon=1, composition="basic"
    )
    plan = people.plan(people.query().group_by("town", max_keys=10).agg(n=count_users()))
    assert plan.standard_error("n") == pytest.approx(math.sqrt(10 / (2 * 0.0359257) + 4), rel=1e-4)
    assert plan.standard_error("n") < 0.94 * math.sqrt(10 / (2 * 0.0305566))
    assert plan.cost.rho is None
    assert (plan.cost.epsilon, plan.cost.delta) == (1, F(1, 10**5))
    few = people.plan(people.query().group_by("town", max_keys=1).agg(n=count_users()))
    assert few.standard_error("n") < 2  # Laplace noise


@pytest.mark.parametrize(("n_keys", "length"), [(10, F(5, 2)), (64, F(16))])
def test_counts_of_listed_groups_share_noise(n_keys: int, length: Fraction) -> None:
    """(sqrt(L) + 1/2)^2 / (2 rho) for theta = 1/2, with what smoothing and rounding add: 7.90 in place of 11.97."""
    people = session(
        Schema(town=category(range(n_keys))), PEOPLE.assign(town=1), delta="1e-5", epsilon=1, composition="basic"
    )
    count = people.query().group_by("town").agg(n=count_users())
    shared = (math.sqrt(length) + 0.5) ** 2 / (2 * 0.0359257) + 4 / 4 + 4 / 4 + 1 / 8
    plan = people.plan(count)
    assert plan.standard_error("n") == pytest.approx(math.sqrt(shared), rel=1e-4)
    assert "do not cancel" in str(plan)
    # Numbers beside the count, and users that are replaced, gain nothing.
    both = people.query().group_by("town").agg(n=count_users(), rows=count_rows(2))
    assert people.plan(both).noise.keyed.correlated is None
    replaced = session(
        Schema(town=category(range(n_keys))),
        PEOPLE.assign(town=1),
        delta="1e-5",
        epsilon=1,
        composition="basic",
        neighbors="replace",
    )
    assert replaced.plan(count).noise.keyed.correlated is None
    release = people.release(count)
    assert release.cost == plan.cost
    assert "do not cancel" in release.card()
    assert people.remaining()["epsilon"] == 0


def test_what_one_noise_cannot_do_another_does() -> None:
    """Exact Laplace noise ends near epsilon 2**-31, Gaussian noise at deltas of what drawn noise is off the ideal."""
    count = Query().agg(n=count_users())
    tiny = F(1, 2**34)
    with pytest.raises(ValueError, match="or a positive delta"):
        session(epsilon=tiny).plan(count)
    gaussian = session(epsilon=tiny, delta="1e-6", composition="basic").plan(count)
    assert gaussian.noise.method == "gaussian"
    laplace = session(epsilon=1, delta=F(1, 2**200), composition="basic").plan(count)
    assert laplace.noise.method == "laplace"


@pytest.mark.parametrize("composition", ["zcdp", "basic"])
@pytest.mark.parametrize("epsilon", [100, 400, 2000])
@pytest.mark.parametrize("schema", [SCHEMA, OPEN], ids=["known", "unknown"])
def test_a_large_epsilon_has_a_release(schema: Schema, epsilon: int, composition: str) -> None:
    """What drawn Gaussian noise is off the ideal one costs 1 + e^epsilon times itself: then there is other noise."""
    people = session(schema, epsilon=epsilon, delta="1e-6", composition=composition)
    query = people.query().group_by("town", max_keys=2).agg(n=count_users(), rows=count_rows(2))
    plan = people.plan(query)
    if composition == "zcdp":
        assert plan.cost.distance == 0
        rho, delta, _ = plan.cost.zcdp()
        assert rho <= people.ledger.limits["rho"]
        assert delta <= people.ledger.limits["delta"]
    assert people.release(query).cost == plan.cost
    with pytest.raises(PrivacyBudgetError):
        people.release(query)


def test_the_ledger_keeps_the_promise_of_a_session() -> None:
    people = session(OPEN, epsilon=1, delta="1e-6")
    assert people.ledger.composition == "zcdp"
    assert people.ledger.limits["delta"] == F(1, 2 * 10**6)
    known = people.query().agg(n=count_users())
    unknown = people.query().group_by("town", max_keys=2).agg(n=count_users())
    first = people.release(known, epsilon="1/2")
    assert first.cost.rho <= largest_rho(F(1, 2), F(1, 2 * 10**6))
    second = people.release(unknown, rho=people.remaining()["rho"] / 2)
    assert second.cost.added_delta <= F(1, 4 * 10**6)
    third = people.release(known)
    costs = [release.cost for release in (first, second, third)]
    rho = sum(cost.rho for cost in costs)
    far = sum(cost.distance for cost in costs)
    beside = sum(cost.added_delta for cost in costs)
    assert zcdp_delta(rho, 1, distance=far) + beside <= F(1, 10**6)
    with pytest.raises(PrivacyBudgetError):
        people.release(known)


def test_a_shared_ledger_has_one_relation() -> None:
    ledger = PrivacyLedger(1, neighbors="add-remove")
    people = Session(PEOPLE, user="who", schema=SCHEMA, ledger=ledger)
    people.release(people.query().agg(n=count_users()), epsilon="1/4", name="how many")
    assert [entry.name for entry in ledger.entries] == ["how many"]
    assert ledger.remaining()["epsilon"] == F(3, 4)
    with pytest.raises(ValueError, match="they do not add up"):
        Session(PEOPLE, user="who", schema=SCHEMA, ledger=PrivacyLedger(1))
    with pytest.raises(TypeError, match="pass a ledger, or epsilon"):
        Session(PEOPLE, user="who", schema=SCHEMA, ledger=ledger, epsilon=1)


# --- reading fails closed


class Counted(Table):
    """A table that counts how often it is read, and fails where it is told to."""

    def __init__(self, frame: pd.DataFrame, fails: bool = False) -> None:
        self.inner = table_of(frame)
        self.names = self.inner.names
        self.reads, self.fails = 0, fails

    def heads(self, columns: Any) -> Any:
        return self.inner.heads(columns)

    def batches(self, columns: Any) -> Any:
        self.reads += 1
        yield from self.inner.batches(columns)
        if self.fails:
            raise ValueError("the secret of user 17")


def test_a_release_that_would_overspend_reads_nothing() -> None:
    people = session(epsilon=1)
    table = people._table = Counted(PEOPLE)
    people.release(people.query().agg(n=count_users()), epsilon="3/4")
    assert table.reads == 1
    with pytest.raises(PrivacyBudgetError, match=r"0\.25 is left"):
        people.release(people.query().agg(n=count_users()), epsilon="1/2")
    assert table.reads == 1


def test_a_table_that_fails_is_charged_and_says_nothing() -> None:
    people = session(epsilon=1)
    people._table = Counted(PEOPLE, fails=True)
    with pytest.raises(RuntimeError, match="could not be read") as caught:
        people.release(people.query().agg(n=count_users()), epsilon="1/2")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert "secret" not in str(caught.value)
    assert people.remaining()["epsilon"] == F(1, 2)


def test_two_threads_do_not_spend_the_same_budget() -> None:
    people = session(epsilon=1)
    query = people.query().agg(n=count_users())
    outcomes: list[str] = []

    def release() -> None:
        try:
            people.release(query, epsilon="1/3")
            outcomes.append("released")
        except PrivacyBudgetError:
            outcomes.append("refused")

    threads = [threading.Thread(target=release) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["refused"] * 5 + ["released"] * 3


# --- hostile values


class Trap:
    """Everything that is done with it raises."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("a method of a private value was called")


HOSTILE: list[Any] = [
    None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 2**53 + 1, -(2**63), 2**64, 10**5000, True,
    "", "x" * 10**5, "a\0b", "\udcff", b"\xff\xfe", b"", Decimal("NaN"), Decimal("1e999999"), F(1, 3), 1j,
    datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31), pd.NaT, pd.NA, np.datetime64("NaT"), np.float32("nan"),
    np.longdouble("1e4000"), [], (1, 2), {"a": 1}, {1}, object(), Trap(), np.array([1, 2]), int, "1e400", "nan", "７",
]  # fmt: skip
COLUMNS = ("town", "spent", "visits", "seen", "free")
EVERYTHING = Schema(
    town=key(str),
    spent=number(0, 100),
    visits=integer(0, 10),
    seen=timestamp(datetime.datetime(2000, 1, 1), datetime.datetime(2030, 1, 1)),
    free=boolean(default=False),
    who_else=category([1, 2, "x"], default=1),
)


@pytest.mark.parametrize("place", ["who", "town", "spent", "visits", "seen", "free", "who_else"])
def test_no_value_raises_or_warns(place: str) -> None:
    base = {"who": 1, "town": "Ulm", "spent": 1.0, "visits": 1, "seen": None, "free": True, "who_else": 2}
    rows = [dict(base, who=i) for i in range(30)] + [{**base, place: value} for value in HOSTILE]
    frame = pd.DataFrame({name: pd.Series([row[name] for row in rows], dtype=object) for name in base})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        people = session(EVERYTHING, frame, epsilon=50, delta="1e-3")
        for query in (
            people.query().group_by("town", max_keys=1).agg(n=count_users(), spent=mean("spent")),
            people.query().filter(col("visits") > 0).agg(n=count_users(), s=tables.sum("spent", max_total=10)),
            people.query().with_columns(year=col("seen").year()).group_by("year", max_keys=1).agg(n=count_users()),
            people.query().group_by("who_else").agg(n=count_users(), v=mean("visits"), f=mean("free")),
            people.query().agg(q=quantile("spent"), h=histogram("visits", [0, 5, 10])),
        ):
            shown = people.release(query, rho="1/10")
            assert "Trap" not in str(shown)


# --- errors about schemas and arguments


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda q: q.agg(x=mean("wage")), "'wage' is no column of the schema"),
        (lambda q: q.agg(x=mean("town")), "'town' is of kind 'category', and numbers are needed"),
        (lambda q: q.agg(x=mean(col("spent"))), "Name expressions by with_columns"),
        (lambda q: q.agg(), "at least one aggregate"),
        (lambda q: q, "asks for nothing yet"),
        (lambda q: q.group_by("spent").agg(n=count_users()), "group by categories"),
        (lambda q: q.group_by("visits").agg(n=count_users()), "max_keys is needed"),
        (lambda q: q.group_by("visits", max_keys=1).agg(n=count_users()), "a positive delta is needed"),
        (lambda q: q.group_by("town", keys=["Rom"]).agg(n=count_users()), "'Rom' is no category"),
        (lambda q: q.group_by("visits", keys=["1"]).agg(n=count_users()), "must be integers"),
        (lambda q: q.group_by("town", max_keys=0).agg(n=count_users()), "max_keys"),
        (lambda q: q.group_by("town", rule="last"), "rule must be 'random' or 'first'"),
        (lambda q: q.group_by("town").agg(town=count_users()), "two columns of the name 'town'"),
        (lambda q: q.group_by("town").filter(col("spent") > 1), "comes before group_by and agg"),
        (lambda q: q.agg(n=count_users()).agg(m=count_users()), "has its agg already"),
        (lambda q: q.filter(lambda row: True), "takes an expression such as"),
        (lambda q: q.filter(col("spent") + 1).agg(n=count_users()), "takes a condition"),
        (lambda q: q.agg(n="count"), "must be one of count_users"),
        (lambda q: q.agg(s=tables.sum("spent", max_total=1e-9)), "below a step of the grid"),
    ],
)
def test_errors_name_the_argument_and_the_repair(made: Any, message: str) -> None:
    people = session(epsilon=1)
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        people.release(made(people.query()))
    assert people.remaining()["epsilon"] == 1


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: number(1, 1), "low must be below high"),
        (lambda: number(-1e308, 1e308), "within the range of doubles"),
        (lambda: number(0, math.inf), "low|high"),
        (lambda: number(0, 1, steps=3), "a power of two"),
        (lambda: number(0, 1, default=2), "default must be from low to high"),
        (lambda: integer(0, 2**53), "below 2**53"),
        (lambda: integer(5, 1), "low must be below high"),
        (lambda: category([]), "from 1 to 2**20 values"),
        (lambda: category([1, 1]), "distinct"),
        (lambda: category([1.5]), "integers below 2**53 or texts"),
        (lambda: category(["a"], default="b"), "default must be one of"),
        (lambda: key(float), "datetime.date or datetime.datetime"),
        (lambda: timestamp(1, 2), "datetime without a time zone"),
        (lambda: Schema(), "at least one column"),
        (lambda: Schema(a=3), "must be declared by"),
        (lambda: mean("x", weighting="rows"), "needs max_rows"),
        (lambda: mean("x", max_rows=3), "max_rows is for weighting='rows'"),
        (lambda: count_rows(0), "max_rows"),
        (lambda: tables.sum("x", max_total=-1), "max_total must be positive"),
        (lambda: tables.sum("x", max_total=(2, 1)), "low < high"),
        (lambda: quantile("x", 0), "between 0 and 1"),
        (lambda: quantile("x", [0.5, 0.25]), "shares must rise"),
        (lambda: quantile("x", 0.123456), "denominators up to 1000"),
        (lambda: histogram("x", [1]), "at least two rising"),
        (lambda: histogram("x", [1, 1]), "rise"),
        (lambda: KeySet.from_values([]), "from 1 to"),
        (lambda: KeySet.from_values("ab"), "a sequence of keys"),
        (lambda: KeySet([("a",), ("b", 1)]), "several lengths"),
    ],
)
def test_what_is_declared_wrongly_is_refused(made: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(message) if "|" not in message else message):
        made()


def test_frames_are_refused_by_names_and_types() -> None:
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (PEOPLE, {"user": "id"}, "user='id' is no column"),
        (PEOPLE, {"schema": Schema(wage=number(0, 1))}, "'wage' is no column of the frame"),
        (PEOPLE, {"schema": Schema(who=integer(0, 9))}, "the column of user ids"),
        (PEOPLE, {"user": ["who", "id"]}, "user='id' is no column"),
        (PEOPLE, {"user": ["who", "who"]}, "names must be distinct"),
        (PEOPLE, {"user": []}, "user must be the name of a column"),
        (PEOPLE, {"exact_ids": 1}, "exact_ids must be True or False"),
        (PEOPLE.to_dict("records"), {}, "columns of a dict"),
        ({"who": [1], "town": ["Ulm", "Bonn"]}, {}, "columns of several lengths"),
        (pd.concat([PEOPLE, PEOPLE["town"]], axis=1), {}, "several columns of the name 'town'"),
        (PEOPLE.rename(columns={"spent": 5}), {}, "'spent' is no column of the frame"),
        (PEOPLE, {"neighbors": "remove"}, "neighbors must be"),
        (PEOPLE, {"composition": "optimal"}, "composition must be"),
        (PEOPLE, {"epsilon": None}, "needs epsilon, or a ledger"),
        (PEOPLE, {"epsilon": -1}, "epsilon"),
        (PEOPLE, {"delta": 2}, "delta"),
        (PEOPLE, {"schema": {"spent": number(0, 1)}}, "schema must be a Schema"),
    ]
    for frame, given, message in refused:
        with pytest.raises((TypeError, ValueError), match=re.escape(message)):
            Session(frame, **{"user": "who", "schema": SCHEMA, "epsilon": 1, **given})


def test_a_reader_that_reads_once_is_refused() -> None:
    arrow = pytest.importorskip("pyarrow")
    reader = arrow.Table.from_pandas(PEOPLE).to_reader()
    with pytest.raises(TypeError, match="read once only"):
        session(frame=reader)


def test_an_id_is_one_person_whatever_holds_it() -> None:
    frame = pd.DataFrame({"who": pd.Series([7, "7", 7.0, "07", None, True, [7]], dtype=object), "spent": 1.0})
    schema = Schema(spent=number(0, 1))
    meant = compiled(Query().agg(n=count_users()), schema)
    sums = add_up(meant, table_of(frame), UserColumns(("who",)), schema, memory=2**26, directory=None)
    assert [column.tolist() for column in sums.columns.values()] == [[2]]  # 7 in four forms, and 1; two rows have no id


# --- what is shown


def test_cards_and_plans_are_made_of_public_objects() -> None:
    """The same plan, card and JSON but for released numbers, whatever the rows are."""
    query = Query().filter(col("visits") > 1).group_by("town", max_keys=2).agg(n=count_users(), spent=mean("spent"))
    texts = []
    for frame in (PEOPLE, PEOPLE.iloc[:2]):
        people = session(frame=frame, epsilon=1)
        plan = str(people.plan(query, n_users=100))
        release = people.release(query)
        card = [line for line in release.card().splitlines() if not line.startswith("| ") or "discrete" in line]
        html = release.card("html")
        assert "<table>" in html
        assert release.card("text") == str(release)
        content = json.loads(release.to_json())
        assert content.pop("columns").keys() == {"town", "n", "spent", "bounded"}
        texts.append((plan, card, content))
    assert texts[0] == texts[1]
    with pytest.raises(ValueError, match="format must be"):
        release.card("pdf")


def test_answers_come_in_frames_of_the_tables_library() -> None:
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    for frame, kind in (
        (PEOPLE, pd.DataFrame),
        (polars.from_pandas(PEOPLE), polars.DataFrame),
        (polars.from_pandas(PEOPLE).lazy(), polars.DataFrame),
        (arrow.Table.from_pandas(PEOPLE), arrow.Table),
    ):
        people = session(frame=frame, epsilon=1)
        release = people.release(people.query().agg(n=count_users()))
        assert isinstance(release.frame, kind)
        assert isinstance(release.intervals(), kind)
        assert isinstance(release.to_frame("polars"), polars.DataFrame)


def test_values_of_keys_do_not_break_a_card() -> None:
    odd = "<b>|\n[x](y)"
    frame = PEOPLE.assign(town=odd)
    people = session(OPEN, frame, epsilon=1, delta="1e-6")
    release = people.release(people.query().group_by("town", max_keys=1).agg(n=count_users()))
    assert release.keys == ((odd,),)
    assert "<b>" not in release.card("html")
    assert "\\|" in release.card()


def test_reproducible_noise_warns_and_is_on_the_card() -> None:
    people = session(epsilon=1)
    query = people.query().agg(n=count_users())
    numbers = []
    for _ in range(2):
        with pytest.warns(InsecureRandomnessWarning):
            release = people.release(query, epsilon="1/4", random_state=5)
        numbers.append(release.column("n").tolist())
        assert "it protects nobody" in release.card()
    assert numbers[0] == numbers[1]


@pytest.mark.filterwarnings("ignore::userdp.exceptions.InsecureRandomnessWarning")
def test_a_release_is_repeated_from_any_library() -> None:
    """With groups of a user that are drawn: the same card from pandas, polars and Arrow, and shuffled."""
    polars = pytest.importorskip("polars")
    query = Query().group_by("town", max_keys=1).agg(n=count_users(), spent=mean("spent"))
    cards = {
        re.sub(r"\n\* \*\*Ids.*", "", session(frame=frame, epsilon=1).release(query, random_state=5).card())
        for frame in (
            PEOPLE,
            PEOPLE.sample(frac=1, random_state=0),
            polars.from_pandas(PEOPLE),
            polars.from_pandas(PEOPLE).lazy(),
            polars.from_pandas(PEOPLE).to_arrow(),
        )
    }
    assert len(cards) == 1
    assert session(epsilon=1).release(query, random_state=6).card() not in cards


def test_a_plan_predicts_the_noise() -> None:
    people = session(epsilon=1, n_users=N)
    plan = people.plan(people.query().agg(n=count_users("spent"), spent=mean("spent")))
    # Two numbers share epsilon: Laplace noise of scale b_j with 1 / b_0 + 50 / b_1 = 1, in units of users and of money.
    own = [each for _, each in plan.noise.keyed.noise]
    unit = plan.query.answers[1].total.value.unit
    scales = [float(own[0].scale), float(own[1].scale) * unit]
    assert 1 / scales[0] + 50 / scales[1] == pytest.approx(1, rel=1e-4)
    decay = math.exp(-1 / scales[0])
    assert plan.standard_error("n") == pytest.approx(math.sqrt(2 * decay) / (1 - decay), rel=1e-9)
    expected = math.hypot(math.sqrt(2) * scales[1], 25 * plan.standard_error("n")) / N
    assert plan.standard_error("spent") == pytest.approx(expected, rel=1e-3)
    with pytest.raises(ValueError, match="needs n_users"):
        session(epsilon=1).plan(people.query().agg(spent=mean("spent"))).standard_error("spent")


def test_pure_levels_may_be_logarithms() -> None:
    people = session(epsilon=LogRatio(3))
    release = people.release(people.query().agg(n=count_users()))
    assert release.cost.epsilon == LogRatio(3)
    assert people.remaining()["epsilon"] == 0


def test_functions_of_users() -> None:
    """Each user's last purchase minus the first one; a function that fails for somebody shows nothing."""

    def change(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
        spent = sorted(row["spent"] for row in rows)
        if spent[0] == 10.0:
            return {"more": spent[-1] - spent[0]}
        raise RuntimeError("the secret of an odd user")

    people = session(epsilon=100)
    query = people.query().map_users(change, returns=Schema(more=number(0, 50))).agg(n=count_users(), more=mean("more"))
    release = people.release(query)
    assert abs(release.column("n")[0] - N / 2) < 40
    assert abs(release.column("more")[0] - 10) < 1


@pytest.mark.parametrize("composition", ["basic", "zcdp", "exact"])
def test_ten_tenths_are_the_whole(composition: str) -> None:
    """Shares of what there is, given as floats, use it up, and the eleventh is refused by numbers that differ."""
    people = session(epsilon=1, delta=1e-5, composition=composition) if composition != "basic" else session(epsilon=1)
    currency = {"basic": "epsilon", "zcdp": "rho", "exact": "mu2"}[composition]
    query = people.query().agg(n=count_users())
    if composition == "basic":
        for _ in range(10):
            people.release(query, epsilon=0.1)
        assert people.remaining()["epsilon"] == 0
        with pytest.raises(PrivacyBudgetError, match=r"needs epsilon 0\.1, and 0 is left"):
            people.release(query, epsilon=0.1)
    else:
        spent = people.plan(query, **{currency: 0.001}).cost
        assert getattr(spent, currency) <= Fraction(1, 1000)
    left = people.remaining()[currency]
    with pytest.raises(PrivacyBudgetError) as caught:
        people.release(query, **{currency: left + Fraction(1, 10**20)})
    needed, rest = re.findall(r"([\d.e+-]+), and ([\d.e+-]+) is left", str(caught.value))[0]
    assert needed != rest
