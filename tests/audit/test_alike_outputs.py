"""Failing on purpose: outputs that differ and are taken for one, and honest ones that are refused."""

from __future__ import annotations

import builtins
import datetime
from collections import Counter, deque
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest

from userdp.algorithms.outputs import change_between, output_of, raised, with_causes
from userdp.audit import audit_sampler_law, audit_sensitivity


def _indexed(*levels: Any) -> pd.Series:
    return pd.Series([1, 2], index=pd.MultiIndex.from_arrays(levels))


def _with(thing: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        object.__setattr__(thing, name, value)
    return thing


class Slotted(float):
    __slots__ = ("leak",)


UTC, EAST = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1))
ONE_ZONE, OTHER_ZONE = datetime.datetime(2020, 1, 1, 12, tzinfo=UTC), datetime.datetime(2020, 1, 1, 13, tzinfo=EAST)
TAKEN_FOR_ONE: dict[str, tuple[Any, Any]] = {
    "levels 30 and 30.0 of a MultiIndex": (_indexed(["a", "b"], [30, 31]), _indexed(["a", "b"], [30.0, 31.0])),
    "levels True and 1": (_indexed(["a", "b"], [True, False]), _indexed(["a", "b"], [1, 0])),
    "levels of two time zones": (
        _indexed(["a", "b"], pd.to_datetime(["2020-01-01"] * 2).tz_localize("UTC")),
        _indexed(["a", "b"], pd.to_datetime(["2020-01-01"] * 2).tz_localize("UTC").tz_convert("Europe/Berlin")),
    ),
    "keys (a, 30) and (a, 30.0)": ({("a", 30): 1}, {("a", 30.0): 1}),
    "keys 0.0 and -0.0": ({0.0: 1}, {-0.0: 1}),
    "an index of 0.0 and of -0.0": (pd.Series([1], index=[0.0]), pd.Series([1], index=[-0.0])),
    "keys of two time zones": ({ONE_ZONE: 1}, {OTHER_ZONE: 1}),
    "keys 1.0 and 1.00": ({Decimal("1.0"): 1}, {Decimal("1.00"): 1}),
    "an object index of 1 and of True": (
        pd.Series([1, 2], index=pd.Index([1, "a"], dtype=object)),
        pd.Series([1, 2], index=pd.Index([True, "a"], dtype=object)),
    ),
    "sets of 1 and of True": ({1}, {True}),
    "sets of 0.0 and of -0.0": ({0.0}, {-0.0}),
    "units of times": ([np.timedelta64(5, "ns")], [np.timedelta64(5, "ps")]),
    "an attribute of a frame": (_with(pd.DataFrame({"v": [1]}), n=3), _with(pd.DataFrame({"v": [1]}), n=4)),
    "an attribute in a slot": (_with(Slotted(1.0), leak=3), _with(Slotted(1.0), leak=4)),
    "an attribute of a masked array": (_with(np.ma.array([1, 2]), n=3), _with(np.ma.array([1, 2]), n=4)),
    "categories of columns": (
        pd.DataFrame([[1]], columns=pd.CategoricalIndex(["a"], categories=["a", "z"])),
        pd.DataFrame([[1]], columns=pd.CategoricalIndex(["a"])),
    ),
    "names 1 and '1' of a series": (pd.Series([1], name=1), pd.Series([1], name="1")),
    "lengths of deques": (deque([1], 3), deque([1], 4)),
}


@pytest.mark.parametrize("name", TAKEN_FOR_ONE)
def test_outputs_that_look_different_are_told_apart(name: str) -> None:
    one, other = map(output_of, TAKEN_FOR_ONE[name])
    assert change_between(one, other, compare="form").l1 > 0


Group: Any = getattr(builtins, "ExceptionGroup", None)
with_groups = pytest.mark.skipif(Group is None, reason="needs Python 3.11, which has groups and notes")


@with_groups
def test_the_members_of_a_group_of_exceptions_are_seen() -> None:
    one, other = (raised(Group("g", [ValueError(text)])) for text in "ab")
    assert change_between(one, other, compare="form").l1 > 0


@with_groups
def test_a_member_that_came_from_its_group_is_told_once() -> None:
    """Raised again while its group is handled, it has the group as its context, which has it as a member."""
    member, other = ValueError("a"), KeyError("b")
    member.__context__ = group = Group("g", [member, other])
    assert list(with_causes(member)) == [member, group, other]
    assert raised(member).entries == {(): "ValueError"}


def test_a_row_that_makes_all_keys_floats_is_found() -> None:
    """One user without an age makes the ages of all others 30.0 where they were 30."""

    def users(rows: list[dict[str, Any]]) -> Any:
        frame = pd.DataFrame(rows, columns=["who", "age", "town"])
        return frame.groupby(["town", "age"])["who"].nunique()

    report = audit_sensitivity(
        users, schema={"age": [30], "town": ["a"]}, user="who", l1=2, missing=0, max_users=2, max_rows=1, processes=0
    )
    assert report.holds is False


def _by_cause(user: Any) -> Exception:
    error = ValueError("x")
    error.__cause__ = KeyError(user)
    return error


def _by_note(user: Any) -> Exception:
    error = ValueError("x")
    error.__notes__ = [str(user)]  # type: ignore[attr-defined]  # as add_note does, from Python 3.11 on
    return error


def _by_group(user: Any) -> Exception:
    return Group("g", [ValueError(str(user))])


def _by_class(user: Any) -> Exception:
    return type("Error", (Exception,), {"__module__": f"of_{user[0]}"})("x")


@pytest.mark.parametrize("error", [_by_cause, _by_note, pytest.param(_by_group, marks=with_groups), _by_class])
def test_a_law_has_all_of_an_exception(error: Callable[[Any], Exception]) -> None:
    def mechanism(dataset: Any, bits: Callable[[int], int]) -> int:
        if bits(1):
            return 0
        raise error(dataset[0])

    report = audit_sampler_law(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0, processes=0)
    assert report.holds is False


def test_a_law_has_exits_of_the_program() -> None:
    def mechanism(dataset: Any, bits: Callable[[int], int]) -> int:
        if bits(1):
            return 0
        raise SystemExit(dataset[0][0])

    report = audit_sampler_law(mechanism, universe=(0, 1), n_users=1, n_examples=1, epsilon=1, delta=0, processes=0)
    assert report.holds is False


NOT_READ: dict[str, Any] = {
    "a series with pandas.NA": pd.Series([1, None], dtype="Int64"),
    "a list with pandas.NA": [pd.NA, 1],
    "a series of times": pd.Series(pd.to_datetime(["2020-01-01"])),
    "a dict of times": {"a": pd.Timestamp("2020-01-01")},
    "a series with no time": pd.Series(pd.to_datetime([None])),
    "what unique() gives of categories": pd.Series(["a"], dtype="category").unique(),
    "an array of pandas": pd.array([1, 2]),
    "an array without axes": np.asarray(1),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_ordinary_outputs_are_read(name: str) -> None:
    assert output_of(NOT_READ[name]).entries


KINDS, TOWNS = ["x", "y"], ["a", "b"]


def test_missing_keys_of_nested_mappings_are_zero() -> None:
    def counts(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
        known = [row for row in rows if row["kind"] in KINDS]
        return {town: dict(Counter(row["kind"] for row in known if row["town"] == town)) for town in TOWNS}

    asked: dict[str, Any] = {"schema": {"town": TOWNS, "kind": KINDS}, "user": "who", "l1": 2, "missing": 0}
    report = audit_sensitivity(counts, **asked, max_users=2, max_rows=1, processes=0, compare="values")
    assert report.holds is True  # and by form it is not: a Counter has the order of the rows
    assert (
        report.verify().finding == report.verify(counts).finding.replace("spot-checked", "consistent") == "consistent"
    )


@pytest.mark.parametrize(
    ("one", "other", "change"),
    [
        ({"a": {"x": 1}, "b": {}}, {"a": {}, "b": {}}, 1),
        ({"a": {"empty": 5, "x": 2}}, {"a": {}}, 7),
        ({"a": {"x": 1}}, {}, 1),
        ({"a": {}}, {}, 0),
    ],
)
def test_what_is_not_there_is_zero_at_every_depth(one: Any, other: Any, change: int) -> None:
    sides = output_of(one), output_of(other)
    assert change_between(*sides, missing_is_zero=True, compare="values").l1 == change
    assert change_between(*sides[::-1], missing_is_zero=True, compare="values").l1 == change


def test_the_cure_is_not_what_was_done() -> None:
    report = audit_sensitivity(
        lambda frame: frame.groupby("town").size(),
        schema={"town": TOWNS}, user="who", frame="pandas", null=False, l1=2, missing=0, max_users=2, max_rows=1,
        processes=0,
    )  # fmt: skip
    assert "pass missing=0" not in report.summary()


def test_a_text_of_a_date_is_a_letter() -> None:
    """Rows of a day are counted where users were meant; without the letter the output would be one constant."""

    def rows_of_a_day(rows: list[dict[str, Any]]) -> int:
        return sum(str(row["day"]) == "2020-01-01" for row in rows)

    report = audit_sensitivity(rows_of_a_day, schema={"day": datetime.date}, user="who", l1=1, processes=0)
    assert report.holds is False


WEIGHTS, CHOSEN = {"vip": 100}, {"vip"}


class Names:
    chosen = "vip"


class Town(Enum):
    CHOSEN = "vip"


def _by_key(rows: list[dict[str, Any]]) -> int:
    return len({row["who"] for row in rows}) + 9 * any(row["town"] in WEIGHTS for row in rows)


def _by_set(rows: list[dict[str, Any]]) -> int:
    return len({row["who"] for row in rows}) + 9 * any(row["town"] in CHOSEN for row in rows)


def _by_attribute(rows: list[dict[str, Any]]) -> int:
    return len({row["who"] for row in rows}) + 9 * any(row["town"] == Names.chosen for row in rows)


def _by_member(rows: list[dict[str, Any]]) -> int:
    return len({row["who"] for row in rows}) + 9 * any(row["town"] == Town.CHOSEN.value for row in rows)


@pytest.mark.parametrize("function", [_by_key, _by_set, _by_attribute, _by_member])
def test_keys_and_sets_are_constants(function: Callable[[Any], Any]) -> None:
    report = audit_sensitivity(function, schema={"town": str}, user="who", l1=1, max_users=2, max_rows=1, processes=0)
    assert report.holds is False
