"""A user's rows through a function: what it sees, and that nothing that it does shows."""

from __future__ import annotations

import datetime
import random
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from userdp.tables.per_user import apply_per_user, canonical_order, rows_of
from userdp.tables.schema import Schema, boolean, category, integer, key, number, timestamp
from userdp.users.values import of_objects

TIME = datetime.datetime
COLUMNS = Schema(
    pay=number(0, 100),
    age=integer(0, 120),
    union=boolean(),
    job=category(["cook", 7]),
    town=key(str),
    day=key(datetime.date),
    at=timestamp(TIME(2000, 1, 1), TIME(2030, 1, 1)),
)
LISTS: dict[str, list[Any]] = {
    "pay": [1.5, -0.0, float("nan"), 1e9],
    "age": [3, "x", 4.0, None],
    "union": [True, 0, 1, "?"],
    "job": [7, "cook", None, "cook"],
    "town": ["", "a\x00c", None, "b"],
    "day": [datetime.date(2020, 2, 29), None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "at": [TIME(2020, 1, 1, 5), TIME(1990, 1, 1), None, TIME(2020, 1, 1, 5, 0, 0, 1)],
}
ROWS: list[dict[str, Any]] = [
    {"pay": 1.5, "age": 3, "union": True, "job": 7, "town": None, "day": datetime.date(2020, 2, 29),
     "at": TIME(2020, 1, 1, 5)},
    {"pay": 0.0, "age": None, "union": False, "job": "cook", "town": "a\x00c", "day": None, "at": TIME(2000, 1, 1)},
    {"pay": None, "age": 4, "union": True, "job": None, "town": None, "day": datetime.date(1, 1, 1), "at": None},
    {"pay": 100.0, "age": None, "union": None, "job": "cook", "town": "b", "day": datetime.date(9999, 12, 31),
     "at": TIME(2020, 1, 1, 5, 0, 0, 1)},
]  # fmt: skip


def test_rows_are_plain_values() -> None:
    cells = {name: COLUMNS[name].read(of_objects(held), name) for name, held in LISTS.items()}
    rows = rows_of(cells, COLUMNS)
    assert rows == ROWS
    plain = {float, int, bool, str, datetime.date, TIME, type(None)}
    assert {type(value) for row in rows for value in row.values()} == plain
    assert str(rows[1]["pay"]) == "0.0"


def test_the_order_of_rows_says_nothing() -> None:
    draw = random.Random(4)
    seen = []
    rows = ROWS + ROWS[:2]
    for _ in range(20):
        draw.shuffle(rows)
        shuffled = [dict(draw.sample(sorted(row.items()), len(row))) for row in rows]
        seen.append([sorted(row.items()) for row in canonical_order(shuffled)])
    assert all(one == seen[0] for one in seen)
    assert len(seen[0]) == 6
    assert canonical_order([{"a": 0.0}, {"a": -0.0}]) == [{"a": 0.0}, {"a": 0.0}]
    assert str(canonical_order([{"a": -0.0}])) == "[{'a': 0.0}]"
    assert canonical_order([{"a": "7"}, {"a": None}, {"a": 9}]) == [{"a": None}, {"a": 9}, {"a": "7"}]


def test_rows_are_the_functions_own() -> None:
    given = [{"pay": 1.0}, {"pay": 2.0}]

    def spoil(rows: list[dict[str, Any]]) -> Any:
        rows[0]["pay"] = 99.0
        rows[1].clear()
        rows.append({"pay": 5.0})
        return rows

    assert apply_per_user(spoil, Schema(pay=number(0, 100)), given) == [{"pay": 99.0}, {"pay": None}, {"pay": 5.0}]
    assert given == [{"pay": 1.0}, {"pay": 2.0}]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"n": 3, "s": "a"}, [{"n": 3, "s": "a"}]),
        ([{"n": 3, "s": "a"}, {"n": 4}], [{"n": 3, "s": "a"}, {"n": 4, "s": None}]),
        (({"n": 3},), [{"n": 3, "s": None}]),
        ({}, [{"n": 1, "s": None}]),
        ({"n": "x", "s": 5}, [{"n": 1, "s": "5"}]),
        ({"n": 10**400, "s": b"a"}, [{"n": 9, "s": "a"}]),
        ({"n": float("nan"), "s": None}, [{"n": 1, "s": None}]),
        ({"n": 500.0, "s": ""}, [{"n": 9, "s": None}]),
        ({"n": np.int64(4), "s": np.str_("b"), "other": 1}, [{"n": 4, "s": "b"}]),
        ({"n": [3], "s": ["a"]}, [{"n": 1, "s": None}]),
        ([{"n": 2}, None, 5, "n", [{"n": 3}]], [{"n": 2, "s": None}]),
        (None, []),
        ([], []),
        (7, []),
        ("text", []),
        ({3: 4, ("n",): 5}, [{"n": 1, "s": None}]),
    ],
)
def test_results_are_read_by_the_schema(result: Any, expected: list[dict[str, Any]]) -> None:
    returns = Schema(n=integer(0, 9, default=1), s=key(str))
    assert apply_per_user(lambda rows: result, returns, [{"pay": 1.0}]) == expected


def test_values_with_methods_of_their_own_are_no_values() -> None:
    class Bomb:
        def __float__(self) -> float:
            raise KeyError("seen")

        __int__ = __str__ = __bool__ = __eq__ = __hash__ = __iter__ = __array__ = __float__  # type: ignore[assignment]

    class Text(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise KeyError("seen")

        def __hash__(self) -> int:
            return hash(str(self))

    class Rows(list[Any]):
        def __iter__(self) -> Any:
            raise KeyError("seen")

    returns = Schema(n=number(0, 9), c=category(["a"]), k=key(str), d=key(datetime.date))
    none = {"n": None, "c": None, "k": None, "d": None}
    assert apply_per_user(lambda rows: dict.fromkeys("nckd", Bomb()), returns, []) == [none]
    # A class made from texts is one, and is read by what Python keeps of it.
    text = {"n": None, "c": "a", "k": "a", "d": None}
    assert apply_per_user(lambda rows: dict.fromkeys("nckd", Text("a")), returns, []) == [text]
    assert apply_per_user(lambda rows: {Text("n"): 3}, returns, []) == [none]
    assert apply_per_user(lambda rows: Rows([1]), returns, []) == []


def boom(error: Any) -> Any:
    raise error


def endless(rows: Any) -> Any:
    return endless(rows)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("secret"),
        ZeroDivisionError(),
        MemoryError(),
        SystemExit(3),
        GeneratorExit(),
        StopIteration(),
        Warning(),
    ],
    ids=repr,
)
def test_errors_make_no_rows(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    assert apply_per_user(lambda rows: boom(error), Schema(n=number(0, 1)), [{"n": 1.0}]) == []
    assert capsys.readouterr() == ("", "")


def test_more_errors_make_no_rows() -> None:
    returns = Schema(n=number(0, 1))
    assert apply_per_user(endless, returns, []) == []
    assert apply_per_user(lambda rows: sys.exit("secret"), returns, []) == []
    assert apply_per_user(lambda: {"n": 1}, returns, []) == []  # type: ignore[misc, arg-type]
    with pytest.raises(TypeError, match="callable"):
        apply_per_user("rows", returns, [])  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):  # who sits at the terminal may stop it
        apply_per_user(lambda rows: boom(KeyboardInterrupt()), returns, [])


def test_output_is_discarded(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(rows: Any) -> Any:
        print("secret", rows)
        print("secret", file=sys.stderr, flush=True)
        sys.stdout.write("secret")
        sys.stdout.writelines(["secret"])
        return {"n": len(rows)}

    before = sys.stdout, sys.stderr
    assert apply_per_user(loud, Schema(n=integer(0, 9)), [{"a": 1}]) == [{"n": 1}]
    assert (sys.stdout, sys.stderr) == before
    apply_per_user(lambda rows: boom(SystemExit(loud(rows))), Schema(n=integer(0, 9)), [{"a": 1}])
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("", "")


def test_warnings_are_the_users(recwarn: pytest.WarningsRecorder) -> None:
    """Where warnings are errors, as in these tests, a warning makes no rows; and nothing shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warnings, "filters", [("error", None, Warning, None, 0)])
        assert apply_per_user(lambda rows: warnings.warn("secret", stacklevel=1), Schema(n=number(0, 1)), []) == []
    assert not recwarn.list


@pytest.mark.serial
def test_threads_leave_the_streams_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout, sys.stderr
    start = threading.Barrier(4)

    def many(seed: int) -> list[Any]:
        start.wait()
        returns = Schema(n=integer(0, 99))
        return [apply_per_user(lambda rows: print(rows) or {"n": seed}, returns, [{"a": 1}]) for _ in range(200)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(many, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert made == [[[{"n": seed}]] * 200 for seed in range(4)]
    assert (sys.stdout, sys.stderr) == before
    assert capsys.readouterr() == ("", "")


def test_users_are_apart() -> None:
    """What a user gets is a function of the user's own rows, in whatever order users come."""
    draw = random.Random(6)
    returns = Schema(low=number(0, 9), n=integer(0, 9))

    def summary(rows: list[dict[str, Any]]) -> Any:
        rows.sort(key=lambda row: row["pay"], reverse=True)
        return {"low": rows.pop()["pay"], "n": len(rows)} if rows[0]["pay"] > 1 else boom(ValueError())

    users = {user: [{"pay": float(draw.randrange(9))} for _ in range(draw.randrange(1, 5))] for user in range(40)}
    alone = {user: apply_per_user(summary, returns, rows) for user, rows in users.items()}
    order = list(users)
    draw.shuffle(order)
    assert {user: apply_per_user(summary, returns, users[user][::-1]) for user in order} == alone
    for user, rows in users.items():
        pays = [row["pay"] for row in rows]
        assert alone[user] == ([{"low": min(pays), "n": len(pays) - 1}] if max(pays) > 1 else [])
