"""Audits of sensitivity against closed forms and brute force, and what is found, refused and said."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.algorithms.outputs import INFINITE, Change
from userdp.audit import audit_sensitivity
from userdp.exceptions import BudgetError, NotDeterministicError
from userdp.report import Report, SensitivityReport

F = Fraction
Table = list[dict[str, Any]]


def clip(value: Any, low: int, high: int) -> Any:
    return min(max(value, low), high)


# --- closed forms


RELATIONS: dict[str, dict[str, Any]] = {
    "add-remove": {"neighbors": "add-remove"},
    "replace": {"neighbors": "replace"},
    "replace as many rows": {"neighbors": "replace", "invariant": len},
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 2), (1, 3), (-3, -1)])
def test_clipped_sums(low: int, high: int, rows: int, relation: str) -> None:
    """m max(|l|, |u|); m (max(u, 0) - min(l, 0)), since a user may have no rows; m (u - l)."""
    most = {
        "add-remove": rows * max(abs(low), abs(high)),
        "replace": rows * (max(high, 0) - min(low, 0)),
        "replace as many rows": rows * (high - low),
    }[relation]

    def total(table: Table) -> int:
        return sum(int(clip(row["x"], low, high)) for row in table)

    report = audit_sensitivity(
        total,
        schema={"x": int},
        user="who",
        alphabets={"x": [low - 5, low, high, high + 5]},
        max_users=2,
        max_rows=rows,
        l1=most,
        **RELATIONS[relation],
    )
    assert report.worst == Change(1, most, most**2, most)
    assert report.holds is True
    assert report.complete


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("kinds", [2, 3])
def test_histograms(kinds: int, rows: int, neighbors: Any) -> None:
    """Rows: min(m, K), m, m^2, m; or min(2m, K), 2m, 2 m^2, m. Users of each key: 1 for each key that changes."""
    names = "abc"[:kinds]

    def of_rows(table: Table) -> dict[str, int]:
        return {name: sum(row["kind"] == name for row in table) for name in names}

    def of_users(table: Table) -> dict[str, int]:
        return {name: len({row["who"] for row in table if row["kind"] == name}) for name in names}

    asked: dict[str, Any] = {
        "schema": {"kind": str},
        "user": "who",
        "alphabets": {"kind": list(names)},
        "neighbors": neighbors,
        "max_users": 2,
        "max_rows": rows,
    }
    twice = 2 if neighbors == "replace" else 1
    worst = audit_sensitivity(of_rows, **asked).worst
    assert worst == Change(min(twice * rows, kinds), twice * rows, twice * rows**2, rows)
    keys = min(twice * rows, kinds)
    assert audit_sensitivity(of_users, **asked).worst == Change(keys, keys, keys, 1)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_capped_rows(cap: int, neighbors: Any) -> None:
    """A user counts for min(rows, cap)."""

    def counted(table: Table) -> int:
        names = {row["who"] for row in table}
        return sum(min(cap, sum(row["who"] == name for row in table)) for name in names)

    report = audit_sensitivity(
        counted, schema={}, user="who", max_users=2, max_rows=3, total_rows=6, linf=cap, neighbors=neighbors
    )
    assert (report.holds, report.worst.linf) == (True, cap)
    less = audit_sensitivity(
        counted, schema={}, user="who", max_users=2, max_rows=3, total_rows=6, linf=F(cap) - F(1, 2**60)
    )
    assert less.holds is False


@pytest.mark.parametrize("people", [3, 7])
def test_means_over_a_public_number(people: int) -> None:
    def mean(table: Table) -> Fraction:
        return sum((F(clip(row["x"], 0, 1)) for row in table), F(0)) / people

    worst = audit_sensitivity(mean, schema={"x": float}, null=False, nan=False).worst
    assert worst == Change(1, F(1, people), F(1, people**2), F(1, people))


# --- brute force, by other code


def programs(number: int) -> list[Callable[[Table], dict[Any, int]]]:
    """Functions made of a filter, a bound for each user, and a clipped sum by group."""
    made = []
    for seed in range(number):
        source = random.Random(seed)
        keep, bound, group = source.choice([0, 1, 2]), source.choice([1, 2, None]), source.choice(["x", "who", None])
        low, high, weight = source.choice([-1, 0]), source.choice([1, 2]), source.choice(["x", "one", "square"])
        largest = source.random() < 0.5

        def program(
            table: Table,
            keep: int = keep,
            bound: int | None = bound,
            group: str | None = group,
            low: int = low,
            high: int = high,
            weight: str = weight,
            largest: bool = largest,
        ) -> dict[Any, int]:
            rows = [row for row in table if row["x"] != keep]
            kept = []
            for name in sorted({row["who"] for row in rows}):
                own = sorted((row for row in rows if row["who"] == name), key=lambda row: row["x"], reverse=largest)
                kept += own if bound is None else own[:bound]
            found: dict[Any, int] = dict.fromkeys((-1, 0, 1, 2), 0)
            for row in kept:
                number = {"x": row["x"], "one": 1, "square": row["x"] ** 2}[weight]
                found[0 if group is None else row[group]] += clip(number, low, high)
            return found

        made.append(program)
    return made


def brute_force(program: Callable[[Table], dict[Any, int]], neighbors: str) -> Change:
    """Over all pairs of tables of two users and three values, with nothing left out."""
    letters = (-1, 0, 2)
    users = [rows for size in range(3) for rows in itertools.combinations_with_replacement(letters, size)]
    worst = [0, 0, 0, 0]
    for other in users:
        for who in (0, 1):
            outputs = []
            for mine in users:
                world = (mine, other) if who == 0 else (other, mine)
                outputs.append(program([{"who": name, "x": x} for name in (0, 1) for x in world[name]]))
            for one, two in itertools.combinations(range(len(users)), 2):
                if neighbors == "add-remove" and users[one]:
                    continue
                steps = [abs(outputs[one][key] - outputs[two][key]) for key in outputs[one]]
                sizes = (sum(map(bool, steps)), sum(steps), sum(step**2 for step in steps), max(steps))
                worst = list(map(max, worst, sizes))
    return Change(*worst)


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_every_two_tables_that_differ_in_one_user_are_compared(neighbors: Any) -> None:
    for program in programs(30):
        report = audit_sensitivity(
            program,
            schema={"x": int},
            user="who",
            alphabets={"x": [-1, 0, 2]},
            max_users=2,
            neighbors=neighbors,
        )
        assert report.complete
        assert report.worst == brute_force(program, neighbors)
        assert report.verify(program).finding in ("spot-checked", "consistent")


# --- known mistakes, and what they were meant to be


def entries_for_people(table: Table) -> dict[str, int]:
    """COUNT(*) where each person was meant to count once."""
    return {town: len([row for row in table if row["town"] == town]) for town in ("a", "b")}


def people(table: Table) -> dict[str, int]:
    """One vote of each person: the least town."""
    towns: dict[Any, str] = {}
    for row in table:
        town = "a" if row["town"] == "a" else "b"
        towns[row["who"]] = min(town, towns.get(row["who"], town))
    return {town: sum(vote == town for vote in towns.values()) for town in ("a", "b")}


def mean_of_the_day(table: Table) -> float:
    """Divided by the number of rows that are there."""
    numbers = [clip(row["x"], 0.0, 1.0) for row in table]
    return sum(numbers) / len(numbers) if numbers else 0.0


def mean_of_three(table: Table) -> Fraction:
    return sum((F(clip(row["x"], 0, 1)) for row in table), F(0)) / 3


def clip_that_nan_passes(table: Table) -> float:
    return sum(clip(row["x"], 0, 1) for row in table if row["x"] is not None)


def clip_that_knows_nan(table: Table) -> Fraction:
    numbers = (row["x"] for row in table)
    return sum((F(clip(x, 0, 1)) for x in numbers if x is not None and not math.isnan(x)), F(0))


NO_HOLES = {"null": False, "nan": False}
BY_PERSON: dict[str, Any] = {"schema": {"town": str}, "user": "who", "l1": 1, "letters": 5}
BY_ROW: dict[str, Any] = {"schema": {"x": float}, "l1": 1}
MISTAKES: list[tuple[Callable[[Table], Any], dict[str, Any], list[dict[str, Any]], Any]] = [
    (entries_for_people, BY_PERSON, [{"who": 0, "town": "a"}] * 2, 2),
    (mean_of_the_day, BY_ROW | NO_HOLES | {"l1": F(1, 3)}, [{"x": 1.0}], 1),
    (clip_that_nan_passes, BY_ROW, [{"x": math.nan}], math.inf),
]
RIGHT = [
    (people, BY_PERSON),
    (mean_of_three, BY_ROW | NO_HOLES | {"l1": F(1, 3)}),
    (clip_that_knows_nan, BY_ROW),
]


@pytest.mark.parametrize(("function", "asked", "first", "change"), MISTAKES)
def test_mistakes_are_found_and_made_small(function: Any, asked: dict[str, Any], first: Table, change: Any) -> None:
    report = audit_sensitivity(function, **asked, neighbors="add-remove")
    assert report.holds is False
    assert report.witness is not None
    tables = report.tables_of_witness()
    assert sorted(map(repr, tables)) == sorted(map(repr, (first, [])))
    assert report.witness.change.l1 == change
    # The witness is run again, by the report and by the printed code.
    assert report.verify(function).refuted
    seen: list[Table] = []
    exec(report.witness_code("run"), {"run": seen.append})
    assert list(map(repr, seen)) == list(map(repr, tables))
    assert "VIOLATED" in report.summary()


@pytest.mark.parametrize(("function", "asked"), RIGHT)
def test_no_alarm_on_what_is_right(function: Any, asked: dict[str, Any]) -> None:
    report = audit_sensitivity(function, **asked, neighbors="add-remove")
    assert report.holds is True
    assert not report.verify(function).refuted
    assert "no proof of privacy" in report.summary()
    assert "Larger tables and other values were not tried" in report.summary().splitlines()[1]


def test_a_user_may_become_any_other() -> None:
    """What is right for users who come and go changes by twice as much for users who become others."""
    assert audit_sensitivity(people, **BY_PERSON).holds is False
    assert audit_sensitivity(people, **BY_PERSON | {"l1": 2}).holds is True


# --- what True may rest on


def leader(table: Table) -> Fraction:
    """Half a user more when the first row is not of the first user: the order is worth less than the claim."""
    names = [row["who"] for row in table]
    return F(len(set(names))) + (F(1, 2) if names and names[0] != min(names) else 0)


def test_orders_of_both_sides_count() -> None:
    """A permutation alone changes 1/2, a user alone 1, and both together 3/2."""
    asked: dict[str, Any] = {"schema": {}, "user": "who", "l1": 1, "neighbors": "add-remove"}
    report = audit_sensitivity(leader, **asked)
    assert (report.holds, report.order, report.worst.l1) == (False, "all", F(3, 2))
    assert audit_sensitivity(leader, **asked | {"l1": F(3, 2)}).holds is True
    kept = audit_sensitivity(leader, **asked, order="kept")
    assert (kept.holds, kept.order) == (True, "kept")
    assert "kept by promise" in kept.summary()


def test_two_orders_of_one_table() -> None:
    """What the order alone changes is a violation too."""

    def first(table: Table) -> Any:
        return table[0]["x"] if len(table) > 1 else 0

    report = audit_sensitivity(first, schema={"x": int}, alphabets={"x": [0, 5]}, l1=1, max_users=2, invariant=len)
    assert report.holds is False
    assert report.witness is not None
    assert report.verify(first).refuted
    assert report.order == "all"


def test_every_name_may_have_every_row() -> None:
    """A user with a certain name and a certain value counts for three."""

    def named(table: Table) -> int:
        return len({row["who"] for row in table}) + 2 * any(row["who"] == 1 and row["x"] == 2**53 + 1 for row in table)

    report = audit_sensitivity(named, schema={"x": int}, user="who", l1=1, neighbors="add-remove")
    assert (report.holds, report.worst.l1) == (False, 3)
    assert report.witness is not None
    assert report.witness.user == 1
    hostile = audit_sensitivity(
        lambda table: sum(row["who"] == "" for row in table), schema={}, user="who", ids=[None, "", 1.0], l1=0
    )
    assert hostile.holds is False


def test_what_was_not_tried_is_not_promised() -> None:
    """Tables beyond the listed ones; those that are beyond the budget; and those of other values."""

    def tens(table: Table) -> int:
        names = {row["who"] for row in table}
        return len(names) + (10 if len(names) > 3 else 0)

    asked: dict[str, Any] = {"schema": {"x": int}, "user": "who", "l1": 1}
    report = audit_sensitivity(tens, **asked, letters=2)
    assert report.holds is True
    assert "at most 3 users, 2 rows of a user and 4 rows in all" in report.summary()
    cut = audit_sensitivity(tens, **asked, max_calls=400, max_users=3)
    assert (cut.holds, cut.complete) == (None, False)
    assert f"only {cut.tables} of {cut.all_tables:,} tables" in cut.summary()
    assert f"These sizes would finish in about {cut.needed_seconds} second" in cut.summary()
    assert Report.from_json(cut.to_json()).verify().finding == "consistent"
    wide = audit_sensitivity(tens, schema=dict.fromkeys("abcdefghij", float), user="who", l1=1, max_calls=500)
    assert wide.holds is None
    assert audit_sensitivity(tens, **asked, letters=2, max_users=4, total_rows=4, max_rows=1).holds is False


def test_smaller_sizes_are_decided_where_the_usual_ones_are_too_many() -> None:
    """Two columns have 848,125 tables of three users: the verdict is about two, and the others may still refute."""

    def visitors(table: Table) -> int:
        return len({row["who"] for row in table})

    asked: dict[str, Any] = {"schema": {"town": ("a", "b"), "x": float}, "user": "who", "l1": 1}
    report = audit_sensitivity(visitors, **asked, max_calls=6_000)
    assert (report.holds, report.complete, report.needed_seconds) == (True, True, None)
    assert (report.max_users, report.total_rows, report.ids) == (2, 2, (0, 1))
    assert report.tables == report.all_tables == 1225
    assert "at most 2 users, 2 rows of a user and 2 rows in all" in report.summary()
    assert Report.from_json(report.to_json()).verify().finding == "consistent"
    wider = audit_sensitivity(lambda table: visitors(table) + 10 * (visitors(table) > 2), **asked, max_calls=6_000)
    assert (wider.holds, wider.max_users) == (False, 3)
    said = audit_sensitivity(visitors, **asked, max_calls=6_000, max_users=3)
    assert (said.holds, said.max_users) == (None, 3)


def test_random_tables_show_violations_only() -> None:
    def rare(table: Table) -> int:
        return 5 * (sum(row["x"] == "b" for row in table) > 4)

    asked: dict[str, Any] = {"schema": {"x": str}, "user": "who", "l1": 1, "letters": 2, "max_rows": 3, "total_rows": 3}
    assert audit_sensitivity(rare, **asked).holds is True
    found = audit_sensitivity(rare, **asked, random_tables=3000)
    assert found.holds is False
    assert found.verify(rare).refuted
    assert Report.from_json(found.to_json()).verify().finding == "consistent"
    # Nothing to find, in a search that was cut short: no verdict, however many were drawn.
    asked |= {"max_calls": 30}
    assert audit_sensitivity(lambda table: 0, **asked, random_tables=100).holds is None


def test_a_truth_value_is_refused() -> None:
    report = audit_sensitivity(people, **BY_PERSON | {"l1": 2})
    with pytest.raises(TypeError, match="no proof of privacy"):
        bool(report)


def test_measured_without_a_claim() -> None:
    report = audit_sensitivity(lambda table: [len(table), 2 * len(table)], schema={"x": int})
    assert report.holds is None
    assert report.worst == Change(2, 3, 5, 2)
    assert report.summary().splitlines()[0].endswith("MEASURED")


# --- outputs


def raising(table: Table) -> float:
    return 1 / len(table)


@pytest.mark.parametrize(
    "function",
    [
        raising,
        lambda table: {row["x"]: 1 for row in table},
        lambda table: [row["x"] for row in table],
        lambda table: {row["x"] for row in table},
        lambda table: max((row["x"] for row in table), default=None),
        lambda table: "many" if table else "none",
        lambda table: math.inf if table else 0.0,
        lambda table: (0, 1) if table else {0: 0, 1: 1},
        lambda table: {"a": []} if table else {"a": [1]},
    ],
)
def test_what_noise_cannot_hide_is_infinite(function: Any) -> None:
    report = audit_sensitivity(function, schema={"x": int}, alphabets={"x": [0, 1]}, l1=10**9)
    assert report.holds is False
    assert report.worst == INFINITE
    assert Report.from_json(report.to_json()).verify().finding == "consistent"
    assert report.verify(function).refuted


def test_texts_of_exceptions_are_form() -> None:
    """Whoever sees an exception sees its text, unless the caller says that nobody does."""

    def checked(table: Table) -> int:
        if any(row["x"] is None for row in table):
            raise ValueError(f"a text that nobody is shown: {len(table)}")
        return 0

    assert audit_sensitivity(checked, schema={"x": ("a",)}, l1=0).holds is False
    asked: dict[str, Any] = {"schema": {"x": [None, "a"]}, "invariant": lambda table: None in [r["x"] for r in table]}
    seen = audit_sensitivity(checked, **asked, l1=0)
    assert (seen.holds, seen.worst) == (False, INFINITE)
    assert "the form of the output differs" in seen.summary()
    hidden = audit_sensitivity(checked, **asked, compare="values")
    assert hidden.worst == Change(0, 0, 0, 0)
    assert hidden.witness is None


def test_absent_keys_may_count_as_zero() -> None:
    def sparse(table: Table) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in table:
            found[row["x"]] = found.get(row["x"], 0) + 1
        return dict(sorted(found.items(), key=repr))

    asked: dict[str, Any] = {"schema": {"x": ("a", "b")}, "l1": 2, "l2_squared": 2, "l0": 2, "linf": 1}
    assert audit_sensitivity(sparse, **asked).worst == INFINITE
    assert audit_sensitivity(sparse, **asked, missing=0).holds is True


def test_numbers_are_exact() -> None:
    """Rounding of a float sum is seen, and says what it is; long integers do not become floats."""

    def total(table: Table) -> float:
        return sum(clip(row["x"], 0.0, 1.0) for row in table)

    asked: dict[str, Any] = {"schema": {"x": float}, "alphabets": {"x": [0.1, 1.0, 0.2]}, "neighbors": "add-remove"}
    report = audit_sensitivity(total, **asked, l1=1)
    assert report.holds is False
    assert 1 < report.worst.l1 < 1 + F(1, 2**50)
    assert "may be rounding" in report.summary()
    assert audit_sensitivity(total, **asked, l1=1, float_slack="1e-12").holds is True
    large = 2**53
    worst = audit_sensitivity(
        lambda table: large + len(table), schema={"x": int}, alphabets={"x": [0]}, max_users=1
    ).worst
    assert worst.l1 == 1
    root = audit_sensitivity(
        lambda table: [len(table)] * 3, schema={"x": (0,)}, max_users=1, l2=math.sqrt(3), null=False
    )
    # The square of the float that is nearest to the root of three is below three.
    assert (root.holds, root.worst.l2_squared) == (False, 3)


# --- refused


def test_a_function_that_draws_is_refused() -> None:
    with pytest.raises(NotDeterministicError, match=r"on the table \[\]"):
        audit_sensitivity(lambda table: random.random(), schema={"x": int}, l1=1)


def test_memory_of_earlier_calls_is_refused() -> None:
    seen: list[int] = []

    def counting(table: Table) -> int:
        seen.append(0)
        return len(table) + (len(seen) > 300)

    with pytest.raises(NotDeterministicError):
        audit_sensitivity(counting, schema={"x": int}, l1=1)


@pytest.mark.parametrize("frame", ["rows", "tuples", "pandas"])
def test_the_input_is_compared_after_the_call(frame: Any) -> None:
    def writing(table: Any) -> int:
        if frame == "pandas":
            pytest.importorskip("pandas")
            table["y"] = 1
        elif table:
            table.pop()
        return 0

    with pytest.raises(ValueError, match=r"writes to its input: the table .* was changed"):
        audit_sensitivity(writing, schema={"x": int}, l1=1, frame=frame)


HELD: list[int] = []
REFUSED: dict[str, tuple[Any, str]] = {
    "draws noise": (lambda table: random.random(), r"on the table \["),
    "remembers": (lambda table: HELD.append(0) or len(table) + (len(HELD) > 300), r"on the table \["),
    "writes": (lambda table: 0 if not table else len(table.pop()), r"writes to its input: the table \["),
    "always raises": (lambda table: table.nothing, "raises on every table"),
    "takes longer": (lambda table: time.sleep(0.5 * len(table)), r"within call_seconds=0.2 on the table \[\{"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_functions_that_draw_remember_write_raise_or_hang_are_refused_with_the_table(what: str) -> None:
    function, words = REFUSED[what]
    with pytest.raises((ValueError, NotDeterministicError, BudgetError), match=words):
        audit_sensitivity(function, schema={"x": int}, l1=1, call_seconds=0.2)


def test_the_order_of_a_set_is_not_compared() -> None:
    """Sets that are equal and list their members in other orders; a list of them is another output."""
    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other)
    asked: dict[str, Any] = {"schema": {"x": int}, "l1": 0}
    assert audit_sensitivity(lambda table: one if table else other, **asked).holds is True
    assert audit_sensitivity(lambda table: list(one if table else other), **asked).holds is False


def test_changed_cells_are_refused() -> None:
    def writing(table: Table) -> int:
        for row in table:
            row["x"] = 0
        return 0

    with pytest.raises(ValueError, match="writes to its input"):
        audit_sensitivity(writing, schema={"x": int}, l1=1)


def test_a_call_that_does_not_end_is_refused() -> None:
    stop: list[int] = []

    def hanging(table: Table) -> int:
        while len(table) == 2 and not stop:
            time.sleep(0.01)
        return 0

    with pytest.raises(BudgetError, match=r"within call_seconds=1 on the table \[\{'x': 0\}, \{'x': 0\}\]"):
        audit_sensitivity(hanging, schema={"x": int}, l1=1, call_seconds=1.0)
    stop.append(1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda table: table.nothing, "raises on every table that was tried, AttributeError"),
        (lambda table: None, "returns nothing"),
        (lambda table: [], "returns nothing"),
        (lambda table: {"a": None}, "returns nothing"),
    ],
)
def test_functions_that_say_nothing_are_refused(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit_sensitivity(function, schema={"x": int}, l1=1)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"l1": -1}, ValueError, "l1 must be"),
    ({"processes": 1}, ValueError, "processes must be 0 or at least 2"),
    ({"compare": "text"}, ValueError, "compare must be"),
    ({"l1": math.nan}, ValueError, "l1 must be"),
    ({"l1": "many"}, ValueError, "l1"),
    ({"l0": "1/2"}, ValueError, "l0 is a number of keys"),
    ({"l2": 2, "l2_squared": 2}, ValueError, "two claims about one norm"),
    ({"max_rows": 2}, ValueError, "wrong unit"),
    ({"ids": [1, 2, 3]}, ValueError, "column of users"),
    ({"user": "who", "ids": [1, 1, 2]}, ValueError, "distinct"),
    ({"user": "who", "ids": [1]}, ValueError, "max_users=3"),
    ({"user": "x"}, ValueError, "leave it out of schema"),
    ({"user": 3}, TypeError, "user must be"),
    ({"schema": {"x": complex}}, ValueError, r"schema\['x'\]"),
    ({"schema": {}}, ValueError, "no column"),
    ({"schema": ["x"]}, TypeError, "schema must be a mapping"),
    ({"neighbors": "row"}, ValueError, "neighbors must be"),
    ({"order": "some"}, ValueError, "order must be"),
    ({"frame": "csv"}, ValueError, "frame must be"),
    ({"missing": 1}, ValueError, "missing must be"),
    ({"bounds": {"y": (0, 1)}}, ValueError, "no column of schema"),
    ({"bounds": {"x": 1}}, ValueError, r"bounds\['x'\]"),
    ({"alphabets": {"x": []}}, ValueError, "no letters"),
    ({"alphabets": {"x": [object()]}}, TypeError, "a value"),
    ({"null": "x"}, TypeError, "null must be"),
    ({"max_users": 0}, ValueError, "max_users"),
    ({"max_users": 10**9}, BudgetError, "too large"),
    ({"max_calls": 2}, BudgetError, "above max_calls=2"),
    ({"max_seconds": 0}, ValueError, "max_seconds"),
    ({"constants": "all"}, ValueError, "constants must be"),
    ({"random_state": 1.5}, TypeError, "random_state"),
    ({"float_slack": -1}, ValueError, "float_slack"),
    ({"keys": []}, TypeError, "keys must be"),
    ({"domain": lambda table: False}, ValueError, "no table is in it"),
]


@pytest.mark.parametrize(("changes", "error", "message"), WRONG)
def test_wrong_arguments_are_named(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        audit_sensitivity(len, **{"schema": {"x": int}} | changes)
    with pytest.raises(TypeError, match="function must be callable"):
        audit_sensitivity(3, schema={"x": int})  # type: ignore[arg-type]


# --- domains, letters, shrinking


def test_only_admissible_tables_are_neighbors() -> None:
    """A mean of at least two rows: the claim is broken outside of its domain alone."""

    def halves(table: Table) -> Fraction:
        return F(sum(row["x"] for row in table), max(len(table), 1))

    asked: dict[str, Any] = {"schema": {"x": int}, "alphabets": {"x": [0, 1]}, "l1": F(1, 2), "max_users": 4}
    assert audit_sensitivity(halves, **asked).holds is False
    report = audit_sensitivity(halves, **asked, domain=lambda table: len(table) > 1, invariant=len)
    assert (report.holds, report.worst.l1, report.excluded) == (True, F(1, 2), 3)
    assert "of the stated domain" in report.summary()


def far(table: Table) -> int:
    return 9 * any(row["x"] == 71.5 for row in table) + 3 * any(row["word"] == "shibboleth" for row in table)


def test_letters_come_from_the_function_and_from_bounds() -> None:
    report = audit_sensitivity(far, schema={"x": float, "word": str}, max_users=1, l1=3)
    assert (report.holds, report.worst.l1) == (False, 9)
    words = audit_sensitivity(far, schema={"x": (0.0,), "word": str}, max_users=1)
    assert words.worst.l1 == 3
    blind = audit_sensitivity(far, schema={"x": float, "word": str}, max_users=1, constants=())
    assert blind.worst.l1 == 0

    class Held:
        edge = 0.75

        def __init__(self) -> None:
            self.edge = 71.25

        def __call__(self, table: Table) -> int:
            return sum(9 for row in table if row["x"] == self.edge)

    assert audit_sensitivity(Held(), schema={"x": float}, letters=8, max_users=1).worst.l1 == 9
    low, high = -7, 13
    ends = audit_sensitivity(
        lambda table: sum(row["x"] for row in table), schema={"x": int}, null=False, bounds={"x": (low, high)},
        constants=(), letters=8, max_users=1,
    )  # fmt: skip
    assert ends.worst.l1 == 14 + 8


def test_shrinking_ends_where_no_step_helps() -> None:
    """Found far out by random search, and then made as small as single steps can."""

    def many(table: Table) -> int:
        return 4 if sum(row["x"] != "a" for row in table) >= 2 and len({row["who"] for row in table}) >= 2 else 0

    report = audit_sensitivity(
        many, schema={"x": ("a", "b", "c")}, null=False, user="who", l1=1, max_rows=4, total_rows=1, random_tables=500
    )
    assert report.holds is False
    assert report.witness is not None
    larger, smaller = sorted((report.witness.first, report.witness.second), key=len, reverse=True)

    def outcome(table: Sequence[Any]) -> int:
        return many([{"who": who, "x": x} for who, x in table])

    assert (outcome(larger), outcome(smaller)) == (4, 0)
    # Nothing that is left out, and no plainer letter, of the larger table shows it.
    for place, (who, x) in enumerate(larger):
        for instead in ([], *([(who, earlier)] for earlier in "abc" if earlier < x)):
            assert outcome([*larger[:place], *instead, *larger[place + 1 :]]) == 0


def test_reports_with_nan_are_read_back() -> None:
    report = audit_sensitivity(clip_that_nan_passes, **BY_ROW)
    text = report.to_json()
    again = Report.from_json(text)
    assert isinstance(again, SensitivityReport)
    assert again.to_json() == text
    assert again.summary() == report.summary()
    assert again.verify().finding == "consistent"
    assert again.verify(clip_that_nan_passes).refuted
    assert again.verify(clip_that_knows_nan).finding == "wrong"
    assert len(again.to_frame()) == 4
    forged = json.loads(text) | {"holds": True}
    with pytest.raises(TypeError):
        again.verify("function")  # type: ignore[arg-type]
    assert Report.from_json(json.dumps(forged)).verify().finding == "wrong"


def test_the_page_escapes_what_others_wrote() -> None:
    pytest.importorskip("jinja2")
    name = "<script>alert(1)</script>"
    report = audit_sensitivity(lambda table: len(table), schema={name: ("<b>",)}, l1=1)
    page = report.to_html()
    assert name not in page
    assert "&lt;script&gt;" in page


# --- frames


@pytest.mark.parametrize("frame", ["pandas", "polars", "lazy", "arrow"])
def test_frames_are_as_rows(frame: Any) -> None:
    package = {"pandas": "pandas", "polars": "polars", "lazy": "polars", "arrow": "pyarrow"}[frame]
    module = pytest.importorskip(package)

    def counted(table: Any) -> Any:
        if frame == "arrow":
            return table.group_by("town").aggregate([([], "count_all")])
        if frame == "pandas":
            return table.groupby("town", dropna=False).size()
        return table.group_by("town").agg(module.len())

    asked: dict[str, Any] = {
        "schema": {"town": str},
        "user": "who",
        "frame": frame,
        "missing": 0,
        "compare": "values",
        "keys": None if frame == "pandas" else "town",
        "max_users": 2,
        "total_rows": 3,
        "alphabets": {"town": ["a", "b", None]},
    }
    report = audit_sensitivity(counted, **asked, l1=4, l2_squared=8, linf=2)
    assert report.holds is True
    assert report.worst == Change(4 - 1, 4, 8, 2)
    bad = audit_sensitivity(counted, **asked, l1=3)
    assert bad.holds is False
    assert bad.verify(counted).refuted
    seen: list[Any] = []
    exec(bad.witness_code("run"), {"run": seen.append})
    for one, two in zip(seen, bad.tables_of_witness(), strict=True):
        assert type(one) is type(two)
        cells = [side.collect() if frame == "lazy" else side for side in (one, two)]
        assert cells[0].equals(cells[1])
    assert dict(bad.libraries).keys() == {package}


def test_frames_without_names_of_rows_are_refused() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="keys: the output is a frame of 2 rows"):
        audit_sensitivity(
            lambda table: table.group_by("x").agg(polars.len()),
            schema={"x": ("a", "b")},
            frame="polars",
            invariant=lambda table: sorted(str(row["x"]) for row in table),
        )


def test_how_a_table_is_stored_is_no_part_of_it() -> None:
    """Labels of rows, and chunks, are not in the data."""
    pandas = pytest.importorskip("pandas")

    def by_label(table: Any) -> int:
        return int(0 in table.index) * 0 + int(pandas.api.types.is_string_dtype(table.index))

    report = audit_sensitivity(by_label, schema={"x": int}, frame="pandas", l1=0, max_users=2, letters=3)
    assert (report.holds, report.form_dependent) == (None, True)
    assert "how a table is stored" in report.summary()
    polars = pytest.importorskip("polars")
    chunks = audit_sensitivity(
        lambda table: table["x"].n_chunks(), schema={"x": int}, frame="polars", l1=2, max_users=2, letters=3
    )
    assert (chunks.holds, chunks.form_dependent) == (None, True)
    assert polars is not None


def test_arrays_and_nested_outputs() -> None:

    def nested(table: Table) -> Any:
        numbers = np.array([len(table), 0.5], dtype=np.float32)
        return {"n": numbers, "parts": [numbers.sum(), (True, F(1, 3))], (1, np.int64(2)): {"x": None}}

    report = audit_sensitivity(nested, schema={"x": ("a",)}, null=False, max_users=1)
    assert report.worst == Change(2, 2, 2, 1)


def test_numbers_of_other_classes() -> None:
    """Subclasses of floats, enumerations, decimals and long doubles are the numbers that they are."""
    import enum
    from decimal import Decimal

    class Meters(float):
        pass

    class Level(enum.IntEnum):
        LOW, HIGH = 1, 5

    third = np.longdouble(1) / 3
    kinds: list[tuple[Callable[[int], Any], Any]] = [
        (Meters, 1),
        (lambda n: Level.HIGH if n else Level.LOW, 4),
        (lambda n: Decimal(n) / 8, F(1, 8)),
        (lambda n: third * n, F(*third.as_integer_ratio())),
        (lambda n: np.uint8(n), 1),
        (lambda n: np.bool_(n), 1),
    ]
    for make, change in kinds:
        report = audit_sensitivity(lambda table, make=make: make(len(table)), schema={"x": ("a",)}, max_users=1)
        assert report.worst.l1 == change


@pytest.mark.parametrize(
    ("function", "asked", "message"),
    [
        (lambda table: [[[[[[[[[[[]]]]]]]]]]], {}, "nested over 8 deep"),
        (lambda table: {1: 0, 1.5: {1: 0}, (1.5, 1): 0}, {}, "two entries of the output have the key"),
        (len, {"frame": "arrow", "alphabets": {"x": [1, "a"]}}, "no frame='arrow' can be made of the rows"),
    ],
)
def test_what_cannot_be_read_is_no_output(function: Any, asked: dict[str, Any], message: str) -> None:
    """Counted as an exception of the function, it would hide that outputs differ."""
    if "frame" in asked:
        pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=message):
        audit_sensitivity(function, **{"schema": {"x": int}, **asked})


def test_what_is_public_binds_users_who_come_and_go_too() -> None:
    """Where the number of rows is public, nobody can come or go: no pair was compared, which shows nothing."""
    asked: dict[str, Any] = {"schema": {"x": int}, "neighbors": "add-remove", "l1": 0}
    assert audit_sensitivity(len, **asked).holds is False
    report = audit_sensitivity(len, **asked, invariant=len)
    assert (report.holds, report.pairs) == (None, 0)
    assert "No two of the tables are neighbors" in report.summary()
    assert Report.from_json(report.to_json()).verify().finding == "consistent"


def test_the_order_alone_may_change_twice_as_much() -> None:
    """One way for one order and the other way for the other: 1 from any table with a user less, and 2 between both."""

    def way(table: Table) -> int:
        return 0 if len({row["x"] for row in table}) < 2 else 1 if table[0]["x"] else -1

    asked: dict[str, Any] = {"schema": {"x": int}, "alphabets": {"x": [0, 1]}, "neighbors": "add-remove"}
    report = audit_sensitivity(way, **asked, l1=1, max_users=2)
    assert (report.holds, report.worst.l1) == (False, 2)
    assert report.witness is not None
    assert sorted(report.witness.first) == sorted(report.witness.second)
    assert "in another order" in report.witness_code()
    assert Report.from_json(report.to_json()).verify(way).refuted


def test_the_length_of_a_list_is_no_key_that_may_be_missing() -> None:
    report = audit_sensitivity(lambda table: [0] * len(table), schema={"x": ("a",)}, missing=0)
    assert report.worst == INFINITE


def test_the_last_bit_of_a_float_counts() -> None:
    most = math.nextafter(1.0, 2.0)
    report = audit_sensitivity(lambda table: most if table else 1.0, schema={"x": ("a",)}, l1=0)
    assert (report.holds, report.worst.l1) == (False, F(1, 2**52))


def test_tables_that_are_not_listed_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too many different rows the search ends early, and says so."""
    monkeypatch.setattr("userdp.audit.search.MOST_ROWS_LISTED", 20)
    report = audit_sensitivity(lambda table: 0, schema=dict.fromkeys("abcd", float), l1=0, max_users=1)
    assert report.tables == 1 + 2**4
    assert (report.holds, report.complete) == (None, False)
