"""Expressions: what they mean, row by row, and that no row's result depends on another row or raises."""

from __future__ import annotations

import copy
import datetime
import math
import pickle
import random
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np
import pytest

from userdp.tables.arithmetic import log1p_of
from userdp.tables.expressions import Expression, col, condition, lit, when
from userdp.tables.schema import (
    Boolean,
    Category,
    Cells,
    Integer,
    Key,
    Number,
    Schema,
    Timestamp,
    boolean,
    category,
    integer,
    key,
    number,
    timestamp,
)
from userdp.tables.values import plain_values
from userdp.users.values import of_native, of_objects

TIME = datetime.datetime
DAY = datetime.date
LONG = 2**53 - 1

SCHEMA = Schema(
    x=number(-1e308 / 4, 1e308 / 4),
    y=number(-2, 3, steps=2**10),
    tiny=number(-1e-300, 1e-300),
    i=integer(-(2**40), 2**40),
    j=integer(0, 120, default=7),
    b=boolean(),
    job=category(["clerk", "cook", "Cook", "chef"]),
    grade=category([3, 1, 2]),
    mixed=category([1, "x", "y"]),
    name=key(str),
    town=key(str),
    code=key(int),
    day=key(DAY),
    at=timestamp(TIME(1600, 2, 29, 23, 59, 59, 999999), TIME(2400, 1, 1)),
)

ODD_TEXTS = ["", " ", "a", "A", "ß", "İ", "ſ", "K", "ǆ", "e\u0301", "é", "\x00", "a\x00b", "\ufeff", "\u2028x\u00a0"]
ODD_TEXTS += ["Cook", " cook ", "12", " 7 ", "1e400", "nan", "-inf", "0x10", "٣", "𝟙", "\udc80", "z" * 300]
DOUBLES = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.0, -1.0, math.nextafter(-1, 0), math.nextafter(-1, -2), 0.5, 2.5]
DOUBLES += [1e-300, 1e-17, 1 / 3, 2.0**52 + 0.5, 2.0**53 - 1, 2.0**53, 1e200, 1e307, 1.7e308, -1.7e308, math.inf]
DOUBLES += [-math.inf, math.nan, -2.0, 3.0, math.nextafter(3, 0)]
NUMBERS: list[Any] = [
    *DOUBLES,
    None,
    True,
    False,
    7,
    -3,
    LONG,
    LONG + 1,
    LONG + 2,
    -LONG,
    -LONG - 1,
    10**400,
    -(10**400),
]
NUMBERS += ["2.5", "x", "", b"1", Decimal("sNaN"), np.float32(0.1), np.int8(-5), np.True_, [1], object(), 1j]
TEXTS: list[Any] = [*ODD_TEXTS, None, b"a", 5, math.nan]
TIMES: list[Any] = [None, DAY(1, 1, 1), DAY(9999, 12, 31), DAY(1970, 1, 1), DAY(1969, 12, 31), DAY(2000, 2, 29)]
TIMES += [TIME(1969, 12, 31, 23, 59, 59, 999999), TIME(1970, 1, 1), TIME(2024, 2, 29, 12), "2024-01-01", 5, math.nan]
TIMES += [TIME(2024, 1, 1, tzinfo=datetime.timezone.utc), TIME(1, 1, 1), TIME(9999, 12, 31, 23)]
VALUES: dict[str, list[Any]] = {
    **dict.fromkeys(("x", "y", "tiny", "i", "j", "b", "code"), NUMBERS),
    **dict.fromkeys(("name", "town"), TEXTS),
    "job": ["clerk", "cook", "Cook", "chef", "", "cook ", None, 3, math.nan],
    "grade": [1, 2, 3, 4, 1.0, "2", True, None, math.nan, "x"],
    "mixed": [1, "1", "x", 1.0, True, None, "y", math.nan],
    "day": TIMES,
    "at": TIMES,
}

EXPRESSIONS = [
    *(col(name) for name in SCHEMA),
    *(function(col(a), col(b)) for a, b in (("x", "y"), ("y", "x"), ("tiny", "tiny"), ("i", "y"), ("i", "j"))
      for function in (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: (a.clip(-1e100, 1e100) * b),
                       lambda a, b: (a / b).clip(-1e6, 1e6), lambda a, b: (a * b / b).clip(-5, 5.5))),
    (col("x") * 1e200 - col("x") * 1e200).clip(-1, 1),
    (1 / col("tiny") * 0).clip(-1, 1),
    (col("i") * 8 - 3) + col("j") * col("j"),
    -col("y"),
    abs(col("x")),
    col("i").abs(),
    col("code").abs(),
    col("y").floor(),
    (col("x") / 1e299).floor(),
    col("i").floor(),
    col("x").log1p(),
    col("y").log1p(),
    col("j").log1p() * col("tiny").log1p(),
    col("i").clip(-1.5, 2),
    col("i").clip(5, 9),
    col("x").clip(-0.0, 1),
    *(function(col(a), b) for a, b in (("x", col("y")), ("i", 2.5), ("j", col("y")), ("name", "a"),
                                       ("name", col("town")), ("day", DAY(1970, 1, 1)), ("at", TIME(1970, 1, 1)),
                                       ("code", col("i")))
      for function in (lambda a, b: a == b, lambda a, b: a != b, lambda a, b: a < b, lambda a, b: a <= b,
                       lambda a, b: a > b, lambda a, b: a >= b)),
    col("job") == "cook",
    "Cook" != col("job"),  # noqa: SIM300
    col("grade") == 2,
    col("grade") != col("mixed"),
    col("job") == col("name"),
    col("name") < col("job"),
    (col("b") & (col("x") > 0)) | ~(col("y") < 1),
    col("b") ^ (col("j") == 7),
    col("b") == True,  # noqa: E712
    col("x").is_in([0, 1, -2.0, 5e-324]),
    col("i").is_in([LONG, -3, 0.5]),
    col("name").is_in(["", "a\x00b", "e\u0301"]),
    col("job").is_in(["chef", "Cook"]),
    col("grade").is_in([1]),
    col("day").is_in([DAY(1970, 1, 1), DAY(2000, 2, 29)]),
    col("at").is_in([TIME(2024, 2, 29, 12)]),
    col("b").is_in([True]),
    when(col("x") > 0).then(col("y")).otherwise(col("i")),
    when(col("b")).then("young").otherwise(col("name")),
    when(col("b")).then(col("town")).otherwise(col("job")),
    when(col("b")).then(col("job")).otherwise("nobody"),
    when(col("x") > 0).then(1).otherwise(when(col("x") < 0).then(-1).otherwise(None)),
    when(col("name") == "a").then(col("name")).otherwise(None),
    when(col("day") > DAY(1970, 1, 1)).then(col("day")).otherwise(DAY(1970, 1, 1)),
    when(col("b")).then(col("grade")).otherwise(9),
    col("x").default(-0.5),
    col("name").default("?"),
    col("job").default("none"),
    col("grade").default(1),
    col("b").default(False),
    col("day").default(DAY(2000, 1, 1)),
    col("at").default(TIME(2500, 1, 1)),
    (1 / col("y")).clip(0, 1).default(0),
    col("x").cut([-1, 0, 5e-324, 1e300]),
    col("y").cut([0], ["low", "high"], default="none"),
    col("j").cut([1, 7.5], [10, 20, 30], default=20),
    *(col(name).cast(kind) for name in ("x", "y", "i", "b", "grade", "name", "job")
      for kind in (number(-1, 3), number(0, 1, default=0.5), integer(-2, 9), integer(0, 9, default=3), boolean(),
                   boolean(default=True), key(int))),
    *(col(name).cast(category([1, 3, 2])) for name in ("x", "i", "b", "grade", "name", "mixed")),
    *(col(name).cast(category(["cook", "a"], default="a")) for name in ("name", "job")),
    *(col(name).cast(category([1, "z"], default="z")) for name in ("x", "i", "b", "name", "grade", "mixed")),
    col("job").cast(key(str)),
    col("name").cast(key(str)),
    col("day").cast(SCHEMA["at"]),
    col("at").cast(key(DAY)),
    col("at").cast(timestamp(TIME(2000, 1, 1), TIME(2020, 1, 1), default=TIME(2010, 1, 1))),
    *(function(col(name)) for name in ("name", "job", "town") for function in (
        lambda a: a.lower(), lambda a: a.strip(), lambda a: a.slice(1), lambda a: a.slice(-2, None),
        lambda a: a.slice(0, 1), lambda a: a.match("[a-zA-Z]*"),
        lambda a: a.match("(.|\n)*\x00.*"), lambda a: a.strip().lower() == "cook")),
    *(getattr(col(name), part)() for name in ("day", "at") for part in ("year", "month", "day", "weekday")),
    col("at").hour(),
    lit("x"),
    lit(TIME(2020, 1, 1)),
    lit(DAY(2020, 1, 1)),
    lit(0.0),
    lit(2) + 0.5,
    lit(True) & col("b"),
]  # fmt: skip


@cache
def random_cells(seed: int, n_rows: int) -> dict[str, Cells]:
    return batch(random_values(seed, n_rows))


@cache
def random_rows(seed: int, n_rows: int) -> list[dict[str, Any]]:
    return rows_of(random_cells(seed, n_rows))


def batch(values: Mapping[str, Sequence[Any]]) -> dict[str, Cells]:
    """Columns of plain lists, read by the schema's types."""
    read = {name: of_objects(list(held)) for name, held in values.items()}
    return {name: SCHEMA[name].read(column, name) for name, column in read.items()}


def rows_of(cells: Mapping[str, Cells]) -> list[dict[str, Any]]:
    columns = {name: plain_values(column, SCHEMA[name]) for name, column in cells.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def bits(value: Any) -> Any:
    """A value with its type, and the bits of doubles."""
    return type(value).__name__, struct.pack("<d", value) if type(value) is float else value


def results(expression: Expression, cells: Mapping[str, Cells], n_rows: int) -> list[Any]:
    program = expression.compile(SCHEMA)
    made = program.evaluate(cells, n_rows)
    assert len(made) == len(made.valid) == n_rows
    assert made.valid.dtype == np.bool_
    return [bits(value) for value in decoded(made, program.type)]


def decoded(cells: Cells, kind: Any) -> list[Any]:
    """Cells as plain values, by their documented meaning."""
    held = []
    for cell, valid in zip(cells.values.tolist(), cells.valid.tolist(), strict=True):
        if not valid:
            held.append(None)
        elif isinstance(kind, Category):
            held.append(kind.values[cell])
        elif isinstance(kind, Key) and kind.type is str:
            held.append((cells.texts or ())[cell])
        elif kind == Key(DAY):
            held.append(DAY.fromordinal(cell + DAY(1970, 1, 1).toordinal()))
        elif isinstance(kind, Timestamp):
            held.append(TIME(1970, 1, 1) + datetime.timedelta(microseconds=cell))
        else:
            held.append(cell)
    return held


def random_values(seed: int, n_rows: int) -> dict[str, list[Any]]:
    draw = random.Random(seed)
    return {name: [draw.choice(held) for _ in range(n_rows)] for name, held in VALUES.items()}


# --- the same for many rows as for one


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=repr)
def test_many_rows_are_as_one(expression: Expression) -> None:
    program = expression.compile(SCHEMA)
    for seed, n_rows in ((1, 400), (2, 1), (3, 0)):
        values = [program.scalar(row) for row in random_rows(seed, n_rows)]
        assert results(expression, random_cells(seed, n_rows), n_rows) == [bits(value) for value in values]
        for value in values:
            assert_typed(value, program.type)


def assert_typed(value: Any, kind: Any) -> None:
    """Every value is of the public type and within its public bounds."""
    if value is None:
        return
    if isinstance(kind, (Number, Integer)):
        assert type(value) is (float if isinstance(kind, Number) else int)
        assert kind.low <= value <= kind.high
        assert math.isfinite(kind.high - kind.low)
    elif isinstance(kind, Timestamp):
        assert kind.low <= value <= kind.high
    elif isinstance(kind, Category):
        assert (type(value), value) in {(type(one), one) for one in kind.values}
    elif isinstance(kind, Boolean):
        assert type(value) is bool
    else:
        assert isinstance(kind, Key)
        assert type(value) is kind.type
        assert kind.type is not int or abs(value) <= LONG


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=repr)
def test_other_rows_change_nothing(expression: Expression) -> None:
    """Other rows, their order and number, and where a row lies in memory leave all its bits as they are."""
    n_rows = 67
    draw = random.Random(7)
    values = random_values(11, n_rows)
    cells = random_cells(11, n_rows)
    alone = results(expression, cells, n_rows)
    for _ in range(3):
        chosen = [draw.randrange(n_rows) for _ in range(draw.randrange(1, 90))]  # permuted, dropped and duplicated
        some = batch({name: [values[name][at] for at in chosen] for name in expression.columns})
        assert results(expression, some, len(chosen)) == [alone[at] for at in chosen]
    for begin, end in ((1, 67), (3, 20), (5, 6), (0, 31), (7, 64)):
        sliced = {
            name: Cells(column.values[begin:end], column.valid[begin:end], column.texts)
            for name, column in cells.items()
        }
        assert results(expression, sliced, end - begin) == alone[begin:end]
    strided = {name: Cells(column.values[::-3], column.valid[::-3], column.texts) for name, column in cells.items()}
    assert results(expression, strided, len(range(n_rows)[::-3])) == alone[::-3]


def random_number(draw: random.Random, depth: int) -> Expression:
    if depth == 0:
        return draw.choice([col("y"), col("x"), col("tiny"), col("j"), col("i"), lit(draw.choice([0, 3, -0.5, 1e300]))])
    one, other = random_number(draw, depth - 1), random_number(draw, draw.randrange(depth))
    bounded = one.clip(-1e5, 1e5 + 0.5), other.clip(-30, draw.choice([7, 1e9 + 0.5]))
    return draw.choice(
        [
            bounded[0] + bounded[1],
            bounded[0] - bounded[1],
            bounded[0] * bounded[1],
            one / other,
            bounded[0].floor(),
            one.log1p() if draw.random() < 0.9 else abs(one),
            abs(one),
            when(one > other).then(one).otherwise(other),
            (one / other).default(draw.choice([0, 2.5])),
            one.cast(integer(-100, 100)),
            one.cast(number(0, 1)),
        ]
    )


def test_random_expressions() -> None:
    """Random trees: equal to the scalar definition, within their bounds, and written as Python that means the same."""
    draw = random.Random(2024)
    cells = batch(random_values(5, 200))
    rows = rows_of(cells)
    kinds = set()
    for _ in range(60):
        expression = random_number(draw, draw.randrange(1, 5)).clip(-1e300, 1e300)
        try:
            program = expression.compile(SCHEMA)
        except ValueError as refused:
            assert "log1p is of numbers above -1" in str(refused)  # noqa: PT017
            continue
        kinds.add(type(program.type))
        values = [program.scalar(row) for row in rows]
        assert results(expression, cells, len(rows)) == [bits(value) for value in values]
        for value in values:
            assert_typed(value, program.type)
        written = eval(repr(expression), {"col": col, "lit": lit, "when": when, "integer": integer, "number": number})
        assert repr(written) == repr(expression)
    assert kinds == {Number}


# --- what they mean


def value(expression: Expression, **row: Any) -> Any:
    """The value of one row, by both ways."""
    cells = batch({name: [held] for name, held in row.items()})
    (known,) = rows_of(cells)
    program = expression.compile(SCHEMA)
    (made,) = results(expression, cells, 1)
    assert made == bits(program.scalar(known))
    return program.scalar(known)


@pytest.mark.parametrize(
    ("expression", "row", "expected"),
    [
        (col("x") / col("y"), {"x": 1.0, "y": 0.0}, None),
        (col("x") / col("y"), {"x": 0.0, "y": -0.0}, None),
        (col("x") / col("y"), {"x": 1.0, "y": 2.0}, 0.5),
        (col("j") / 7, {"j": 3}, 3 / 7),
        (col("j") / col("j"), {"j": 0}, None),
        (col("i") * col("j"), {"i": -3, "j": 5}, -15),
        (col("x") * 1e200 - col("x") * 1e200, {"x": 1e200}, None),  # inf - inf
        (col("x") * 1e200, {"x": 1e200}, 5.0),  # inf is clipped
        (col("x") + 0, {"x": None}, None),
        (col("x") + 0, {"x": math.nan}, None),
        (col("x") + 0, {"x": math.inf}, 5.0),
        (1 / (col("x") * 0 - 0.0), {"x": -1.0}, None),
        (col("y").floor(), {"y": -0.5}, -1),
        (col("y").floor(), {"y": -0.0}, 0),
        (col("tiny").floor(), {"tiny": -5e-324}, -1),
        (col("x").log1p(), {"x": -1.0}, None),
        (col("x").log1p(), {"x": 0.0}, 0.0),
        (col("x").log1p(), {"x": 5e-324}, 5e-324),
        (col("x").log1p(), {"x": -7.0}, None),
        ((col("y") > 0) | (col("x") > 0), {"x": None, "y": 1.0}, None),
        ((col("y") > 0) & (col("x") > 0), {"x": 1.0, "y": 1.0}, True),
        ((col("y") > 0) ^ (col("x") > 0), {"x": 1.0, "y": 1.0}, False),
        (col("x") == 0, {"x": -0.0}, True),
        (col("code") == LONG, {"code": LONG + 1}, None),
        (col("code") == LONG, {"code": LONG}, True),
        (col("code") < 2.5, {"code": 2}, True),
        (col("grade") == 2, {"grade": 2}, True),
        (col("grade") == col("mixed"), {"grade": 1, "mixed": 1}, True),
        (col("grade") == col("mixed"), {"grade": 1, "mixed": "x"}, False),
        (col("job") == "cook", {"job": "Cook"}, False),
        (col("name") < col("town"), {"name": "Z", "town": "a"}, True),
        (col("name") < "\U00010000", {"name": "\uffff"}, True),
        (col("name") == "e\u0301", {"name": "é"}, True),
        (col("name") == "", {"name": ""}, None),
        (col("name") == "", {"name": None}, None),
        (when(col("b")).then(1).otherwise(2), {"b": None}, None),
        (when(col("b").default(False)).then(1).otherwise(2), {"b": None}, 2),
        (when(col("b")).then(col("x")).otherwise(col("y")), {"b": False, "x": None, "y": 2.0}, 2.0),
        (when(col("b")).then(col("x")).otherwise(col("y")), {"b": True, "x": None, "y": 2.0}, None),
        (when(col("b")).then(col("j")).otherwise(col("y")), {"b": True, "j": 3, "y": 0.0}, 3.0),
        (when(col("b")).then(1).otherwise(None), {"b": False}, None),
        (col("j"), {"j": "x"}, 7),
        (col("y").cut([0, 2]), {"y": 0.0}, "[0, 2)"),
        (col("y").cut([0, 2]), {"y": -0.0}, "[0, 2)"),
        (col("y").cut([0, 2]), {"y": -5e-324}, "(-inf, 0)"),
        (col("y").cut([0, 2]), {"y": 2.0}, "[2, inf)"),
        (col("y").cut([0, 2]), {"y": None}, None),
        (col("y").cut([0], [5, 6], default=7), {"y": math.nan}, 7),
        (col("i").cut([0.5], ["a", "b"]), {"i": 1}, "b"),
        (col("i").cut([-7, 1e300]), {"i": 1}, "[-7, 1e+300)"),
        (col("y").cut([0.1, 2.0]), {"y": 2.5}, "[2, inf)"),
        (col("y").cast(integer(0, 9)), {"y": 2.5}, None),
        (col("y").cast(integer(0, 9)), {"y": 2.0}, 2),
        (col("y").cast(integer(0, 9, default=4)), {"y": 2.5}, 4),
        (col("y").cast(integer(0, 9)), {"y": -2.0}, 0),
        (col("name").cast(number(0, 10)), {"name": "2.5"}, 2.5),
        (col("name").cast(number(0, 10)), {"name": "1e400"}, 10.0),
        (col("name").cast(number(0, 10)), {"name": "nan"}, None),
        (col("name").cast(number(0, 10)), {"name": "two"}, None),
        (col("name").cast(boolean()), {"name": "1"}, True),
        (col("grade").cast(integer(0, 9)), {"grade": 3}, 3),  # the value, not its place
        (col("b").cast(integer(0, 1)), {"b": True}, 1),
        (col("mixed").cast(category([1, "x"])), {"mixed": "y"}, None),
        (col("day").cast(SCHEMA["at"]), {"day": DAY(2024, 2, 29)}, TIME(2024, 2, 29)),
        (col("at").cast(key(DAY)), {"at": TIME(1969, 12, 31, 23)}, DAY(1969, 12, 31)),
        (col("name").lower(), {"name": "İA"}, "i̇a"),
        (col("name").strip(), {"name": "\u2003a b\n"}, "a b"),
        (col("name").slice(1, 3), {"name": "a𝟙cd"}, "𝟙c"),
        (col("job").lower(), {"job": "Cook"}, "cook"),
        (col("name").match("a.b"), {"name": "a\nb"}, True),
        (col("at").weekday(), {"at": TIME(2024, 2, 29)}, 3),
        (col("day").weekday(), {"day": DAY(1969, 12, 29)}, 0),
        (col("at").hour(), {"at": TIME(1969, 12, 31, 23, 59)}, 23),
        (col("at").year(), {"at": TIME(1969, 12, 31, 23)}, 1969),
        (col("at").year(), {"at": TIME(3000, 1, 1)}, 2400),
        (col("x").is_in([0]), {"x": None}, None),
        (col("i").is_in([0.5, 2]), {"i": 2}, True),
    ],
    ids=repr,
)
def test_values(expression: Expression, row: dict[str, Any], expected: Any) -> None:
    expression = expression.clip(-5, 5.0) if "x" in row and type(expected) is float else expression
    if isinstance(expected, float) or (expected is None and not_finite(expression)):
        expression = expression.clip(-5.0, 12.0)
    assert bits(value(expression, **row)) == bits(expected)


def not_finite(expression: Expression) -> bool:
    try:
        expression.typed(SCHEMA)
    except ValueError as error:
        assert ".clip" in str(error)  # noqa: PT017
        return True
    return False


def test_parts_of_times_are_those_of_the_calendar() -> None:
    draw = random.Random(3)
    days = [DAY.fromordinal(draw.randrange(1, DAY.max.toordinal() + 1)) for _ in range(3000)]
    times = [TIME(2000, 1, 1) + datetime.timedelta(microseconds=draw.randrange(-(10**16), 10**16)) for _ in range(3000)]
    cells = batch({"day": days, "at": times})
    for name, known in (("day", days), ("at", times)):
        for part in ("year", "month", "day"):
            made = getattr(col(name), part)().compile(SCHEMA).evaluate(cells, 3000)
            assert made.values.tolist() == [getattr(one, part) for one in known]
        made = col(name).weekday().compile(SCHEMA).evaluate(cells, 3000)
        assert made.values.tolist() == [one.isoweekday() - 1 for one in known]
    made = col("at").hour().compile(SCHEMA).evaluate(cells, 3000)
    assert made.values.tolist() == [one.hour for one in times]


def test_days_beyond_the_calendar_of_python_are_none() -> None:
    days = Cells(np.array([-719_162, -719_163, 2_932_896, 2_932_897, 2**62]), np.ones(5, dtype=np.bool_))
    made = col("day").year().compile(SCHEMA).evaluate({"day": days}, 5)
    assert made.valid.tolist() == [True, False, True, False, False]
    assert made.values.tolist() == [1, 0, 9999, 0, 0]


def test_log1p_is_the_logarithm() -> None:
    """To within 4 units of the last place of ln(1 + x), with 60 digits."""
    draw = random.Random(5)
    xs = [x for x in DOUBLES if x > -1 and math.isfinite(x)]
    xs += [draw.choice([-1, 1]) * draw.random() * 2.0 ** draw.randrange(-60, 1) for _ in range(1500)]
    xs += [draw.random() * 2.0 ** draw.randrange(0, 1023) for _ in range(500)]
    xs += [
        edge * (1 + draw.uniform(-1e-12, 1e-12)) - 1 for edge in (0.25, 0.375, 0.5, 0.75, 1.5, 2, 3) for _ in range(50)
    ]
    with localcontext() as context:
        context.prec, context.Emin = 60, -(10**6)
        for x in xs:
            if x <= -1:
                continue
            # ln(1 + x) = x - x**2/2 + ... below 2**-100
            truth = (1 + Decimal(x)).ln() if abs(x) > 2.0**-100 else Decimal(x) - Decimal(x) ** 2 / 2
            assert abs(Decimal(log1p_of(x)) - truth) <= 4 * Decimal(math.ulp(float(truth)))
    assert log1p_of(math.inf) == math.inf


# --- types


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (col("j") + 1, Integer(1, 121)),
        (1 - col("j"), Integer(-119, 1)),
        (col("j") * -2, Integer(-240, 0)),
        (col("j") - col("j"), Integer(-120, 120)),
        (col("y") * col("y"), Number(-6.0, 9.0, 2**10)),
        (col("y") * col("j"), Number(-240.0, 360.0, 2**10)),
        (col("y") / 2, Number(-1.0, 1.5, 2**10)),
        (col("j") / (col("j") + 1), Number(0.0, 120.0)),
        (abs(col("y")), Number(0.0, 3.0, 2**10)),
        (abs(col("j") + 5), Integer(5, 125)),
        (abs(-col("j") - 5), Integer(5, 125)),
        (col("y").floor(), Integer(-2, 3)),
        (col("y").log1p(), Number(log1p_of(math.nextafter(-1, 0)), log1p_of(3.0), 2**10)),
        (col("code").clip(0, 9), Integer(0, 9)),
        (col("j").clip(200, 300), Integer(0, 200)),  # a number that is public
        (col("j").clip(0.5, 3), Number(0.5, 3.0)),
        (col("code"), Key(int)),
        (col("j"), Integer(0, 120, 7)),
        (when(col("b")).then(1).otherwise(0), Integer(0, 1)),
        (when(col("b")).then(col("j")).otherwise(0.5), Number(0.0, 120.0)),
        (when(col("b")).then("yes").otherwise("no"), Category(("yes", "no"))),
        (when(col("b")).then(col("job")).otherwise("no"), Category(("clerk", "cook", "Cook", "chef", "no"))),
        (when(col("b")).then(col("name")).otherwise("no"), Key(str)),
        (col("j").default(500), Integer(0, 500)),
        (col("job").lower(), Category(("clerk", "cook", "chef"), spelling="written")),
        (col("name").lower(), Key(str, "written")),
        (col("at").year(), Integer(1600, 2400)),
        (col("day").year(), Integer(1, 9999)),
        (col("x") > 1, Boolean()),
        (col("x").cast(number(0, 1, steps=4)), Number(0.0, 1.0, 4)),
        (lit(3), Integer(0, 3)),
        (lit(0), Integer(0, 1)),
        (lit(-2.5), Number(-2.5, 0.0)),
        (lit(0.0), Number(0.0, 1.0)),
    ],
    ids=repr,
)
def test_types(expression: Expression, kind: Any) -> None:
    assert expression.typed(SCHEMA) == kind
    assert repr(expression.typed(SCHEMA)) == repr(kind)


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        (col("wage"), ValueError, "no column 'wage'"),
        (col("name") + 1, TypeError, r"in col\('name'\) \+ 1: \+ needs numbers, and this is a text"),
        (col("b") + 1, TypeError, r"\.cast\(integer\(0, 1\)\)"),
        (col("grade") * 2, TypeError, r"category of integers; \.cast\(integer"),
        (col("job") + 1, TypeError, r"\.cast\(number"),
        (col("at") - 1, TypeError, r"\.year\(\)"),
        (col("name") == 3, TypeError, "a text and an integer"),
        (col("x") > "3", TypeError, "a number and a category of texts"),
        (col("day") > TIME(2000, 1, 1), TypeError, "a date and a timestamp"),
        (col("grade") == col("j"), TypeError, r"\.cast"),
        (col("grade") > 1, TypeError, "order"),
        (col("b") > True, TypeError, "order"),
        (col("job") == "baker", ValueError, "no value in common"),
        (col("job").is_in(["baker"]), ValueError, "'baker' is none of"),
        (col("name").is_in([3]), TypeError, "is_in"),
        (col("name").is_in(["a", 3]), TypeError, "is_in"),
        (col("x").is_in([1, 2, True]), TypeError, "is_in"),
        (col("grade").is_in([1, True]), TypeError, "is_in"),
        (col("grade").is_in(["7"]), ValueError, "'7' is none of"),
        (col("day").is_in([TIME(2000, 1, 1)]), TypeError, "is_in"),
        (col("x") & col("b"), TypeError, "brackets"),
        (~col("j"), TypeError, "needs bools"),
        (col("code") + 1, ValueError, r"2\*\*53.*\.clip"),
        (col("i") * col("i"), ValueError, r"2\*\*53.*\.clip"),
        (col("i").clip(-(2**40), 0) * 2**20, ValueError, r"2\*\*53.*\.clip"),
        ((col("x") * 4).clip(-LONG - 1.0, 0.5).floor(), ValueError, r"2\*\*53.*\.clip"),
        (col("x") / col("y"), ValueError, r"\.clip"),
        (col("x") * col("x"), ValueError, r"\.clip"),
        ((col("x") / col("y")).floor(), ValueError, r"\.clip"),
        ((col("j") - 200).log1p(), ValueError, "above -1"),
        (when(col("x")).then(1).otherwise(2), TypeError, "needs a condition"),
        (when(col("b")).then(1).otherwise("2"), TypeError, "an integer and a category of texts"),
        (col("x").default("0"), TypeError, "default"),
        (col("x").lower(), TypeError, "needs texts"),
        (col("grade").lower(), TypeError, "needs texts"),
        (col("x").match("a"), TypeError, "needs texts"),
        (col("x").year(), TypeError, "dates or times"),
        (col("day").hour(), TypeError, "needs times"),
        (col("name").cut([1]), TypeError, "needs numbers"),
        (col("x").cast(key(str)), TypeError, "makes no text of a number"),
        (col("x").cast(category(["a"])), TypeError, r"\.cut"),
        (col("name").cast(SCHEMA["at"]), TypeError, "makes no timestamp"),
        (col("at").cast(number(0, 1)), TypeError, r"\.year"),
        (col("x").cast(key(DAY)), TypeError, "makes no date"),
    ],
    ids=repr,
)
def test_wrong_types_are_refused_without_data(expression: Expression, error: type[Exception], words: str) -> None:
    for refused in (expression.typed, expression.compile):
        with pytest.raises(error, match=words):
            refused(SCHEMA)


# --- how they are built


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=repr)
def test_they_are_written_as_python(expression: Expression) -> None:
    names = {"col": col, "lit": lit, "when": when, "number": number, "integer": integer, "boolean": boolean}
    names |= {"category": category, "key": key, "timestamp": timestamp, "datetime": datetime}
    written = eval(repr(expression), names)
    assert repr(written) == repr(expression)
    cells = random_cells(8, 40)
    assert results(written, cells, 40) == results(expression, cells, 40)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ((col("a") + 1) * 2, "(col('a') + 1) * 2"),
        (col("a") + 1 * col("b"), "col('a') + lit(1) * col('b')"),
        (col("a") - (col("b") - 1), "col('a') - (col('b') - 1)"),
        ((col("a") > 1) & ~(col("b") < 2), "(col('a') > 1) & ~(col('b') < 2)"),
        ((col("a") > 1) == (col("b") > 1), "(col('a') > 1) == (col('b') > 1)"),
        ((col("a") + 1).abs().clip(0, 2.5), "(col('a') + 1).abs().clip(0, 2.5)"),
        (2 > col("a"), "col('a') < 2"),  # noqa: SIM300
        (-col("a"), "lit(0) - col('a')"),
        (np.float64(2) * col("a"), "lit(2.0) * col('a')"),
        (col("a").cut([18, 65.5], default="?"), "col('a').cut([18, 65.5], default='?')"),
        (col("a").cut([18], ["x", "y"]), "col('a').cut([18], ['x', 'y'])"),
        (col("a").is_in({3, 1}), "col('a').is_in([1, 3])"),
        (col("a").cast(number(0, 1, steps=4, default=0.5)), "col('a').cast(number(0.0, 1.0, steps=4, default=0.5))"),
    ],
)
def test_text(expression: Expression, text: str) -> None:
    assert repr(expression) == text


def test_they_are_no_bools() -> None:
    x = col("x")
    for wrong in (
        lambda: bool(x),
        lambda: x and x,
        lambda: not x,
        lambda: 0 < x < 1,
        lambda: 1 if x == 1 else 0,
        lambda: x in [col("y")],
        lambda: [1].index(x),
    ):
        with pytest.raises(TypeError, match="use & for and"):
            wrong()  # type: ignore[no-untyped-call]
    for wrong in (lambda: list(x), lambda: 1 in x, lambda: {x: 1}, lambda: {x}, lambda: sum(x)):
        with pytest.raises(TypeError, match="is an expression"):
            wrong()  # type: ignore[no-untyped-call]
    for wrong in (lambda: len(x), lambda: float(x), lambda: int(x), lambda: x[0], lambda: x**2, lambda: x // 2):
        with pytest.raises(TypeError):
            wrong()  # type: ignore[no-untyped-call]


def test_they_do_not_change() -> None:
    x = col("x") + 1
    for name in ("operation", "operands", "options", "columns", "new"):
        with pytest.raises(AttributeError):
            setattr(x, name, 1)
    assert repr(pickle.loads(pickle.dumps(x))) == repr(copy.deepcopy(x)) == repr(x)
    assert (x * col("y") - col("x")).columns == ("x", "y")
    assert lit(1).columns == ()


@pytest.mark.parametrize("foreign", ["pandas", "polars", "numpy", "lambda", "sql", "set", "complex", "none"])
def test_code_of_others_is_refused_and_no_value_shown(foreign: str) -> None:
    secret = 987654321
    made: Any
    if foreign == "pandas":
        made = pytest.importorskip("pandas").Series([secret])
    elif foreign == "polars":
        made = pytest.importorskip("polars").col("x") * secret
    else:
        made = {"numpy": np.array([secret]), "lambda": lambda row: row, "sql": "x > 1", "set": {secret}}.get(foreign)
        made = 1j if foreign == "complex" else made
    wrong: list[Any] = [lambda: when(made), lambda: condition(made, "filter: expression"), lambda: col(made)]
    if foreign == "sql":
        wrong = wrong[:2]
        with pytest.raises(TypeError, match=r"filter: .*SQL"):
            wrong[1]()
    else:
        wrong += [lambda: col("x") + made, lambda: lit(made), lambda: col("x").default(made), lambda: col("x") == made]
        wrong += [
            lambda: when(col("x") > 0).then(made),
            lambda: col("x").cut(made) if foreign != "numpy" else lit(made),
        ]
        if foreign != "none":
            wrong += [lambda: when(col("x") > 0).then(1).otherwise(made)]
    for one in wrong:
        with pytest.raises((TypeError, ValueError)) as caught:
            one()
        assert str(secret) not in str(caught.value)
    if foreign in ("pandas", "numpy", "polars"):
        with pytest.raises(TypeError):
            made + col("x")
    if foreign == "lambda":
        with pytest.raises(TypeError, match="map_users"):
            when(made)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: lit(math.nan), "finite"),
        (lambda: lit(math.inf), "finite"),
        (lambda: lit(2**53), r"2\*\*53"),
        (lambda: col("x") + 10**400, r"2\*\*53"),
        (lambda: lit(TIME(2020, 1, 1, tzinfo=datetime.timezone.utc)), "time zone"),
        (lambda: col("x").clip(1, 0), "low must be below high"),
        (lambda: col("x").clip(math.nan, 0), "finite"),
        (lambda: col("x").cut([]), "empty"),
        (lambda: col("x").cut([1, 1]), "increase"),
        (lambda: col("x").cut([1, math.nan]), "finite"),
        (lambda: col("x").cut([1], ["a"]), "2 bins; got 1"),
        (lambda: col("x").cut([1], ["a", "a"]), "distinct"),
        (lambda: col("x").is_in([]), "empty"),
        (lambda: col("x").is_in([math.nan]), "finite"),
    ],
)
def test_bad_values_are_refused(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: col("x").is_in("abc"),
        lambda: col("x").is_in(3),
        lambda: col("x").cut("abc"),
        lambda: col("x").cut(3),
        lambda: col("x").clip("0", 1),
        lambda: col("x").slice(1.5),
        lambda: col("x").cast("int"),
        lambda: col("x").cast(int),
        lambda: col("x").match(3),
        lambda: col("x").default(col("y")),
        lambda: lit(col("x")),
        lambda: when(col("x") > 0).otherwise(1),
        lambda: when(col("x") > 0).then(1).then(2),
        lambda: col("x") + when(col("x") > 0).then(1),
        lambda: when(col("x") > 0).then(None),
    ],
)
def test_bad_arguments_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        wrong()


def test_expressions_have_a_size() -> None:
    deep = wide = col("x")
    for _ in range(199):
        deep = deep + 1
    for _ in range(12):
        wide = wide + wide
    assert deep.compile(SCHEMA).scalar({"x": 0.0}) == 199.0
    with pytest.raises(ValueError, match="200 within each other"):
        deep + 1
    with pytest.raises(ValueError, match="10000 operations"):
        wide + wide


# --- frames


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "numpy"])
def test_frames_of_all_kinds_have_the_same_values(library: str) -> None:
    """What is missing in one row changes no other, whatever machine type the column then has."""
    names: list[Any] = ["Cook", "", "a\x00b", None, "İ", " cook "]
    numbers: list[Any] = [1, 2, None, -3, 2**40, 0]
    frame: Any
    if library == "numpy":
        frame = {"name": np.array(names, dtype=object), "i": np.array([math.nan if n is None else n for n in numbers])}
    else:
        module = pytest.importorskip(library)
        make = module.table if library == "pyarrow" else module.DataFrame
        frame = make({"name": names, "i": numbers})
    cells = {name: SCHEMA[name].read(of_native(frame[name]), name) for name in ("name", "i")}
    assert decoded(col("name").lower().strip().compile(SCHEMA).evaluate(cells, 6), Key(str)) == [
        "cook", None, "a\x00b", None, "i̇", "cook",
    ]  # fmt: skip
    program = (col("i") * 2 + 1).compile(SCHEMA)
    assert decoded(program.evaluate(cells, 6), program.type) == [3, 5, None, -5, 2**41 + 1, 1]


def test_texts_that_are_none_in_arrow() -> None:
    pa = pytest.importorskip("pyarrow")
    data = b"ab\xff\xfecd"
    offsets = np.array([0, 2, 4, 6], dtype=np.int32)
    broken = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    cells = {"name": SCHEMA["name"].read(of_native(broken), "name")}
    for expression in (col("name").lower(), col("name").match(".*"), col("name") == "ab", col("name").slice(0, 1)):
        made = expression.compile(SCHEMA).evaluate(cells, 3)
        assert made.valid.tolist() == [True, False, True]


# --- faults of other libraries that are none here


@pytest.mark.parametrize("name", ["name", "x", "i", "grade", "mixed"])
def test_casts_that_fail_are_no_group_of_their_own(name: str) -> None:
    """OpenDP #2938: failed casts became a null, whose count was then exact."""
    # A category's list is public, and has no null; a row that fails has no place in it, or that of the default.
    for declared in (category([1, 2]), category([1, 2], default=2)):
        program = col(name).cast(declared).compile(SCHEMA)
        assert program.type == declared
        assert None not in program.type.values  # type: ignore[attr-defined]
        cells = batch(random_values(21, 300))
        made = program.evaluate(cells, 300)
        assert set(made.values.tolist()) <= {0, 1}
        assert made.valid.all() == (declared.default is not None)
        # What is left out holds the same as what is there: no code of its own.
        assert set(made.values[~made.valid].tolist()) <= {0}


def test_nan_is_in_no_bin_or_in_a_public_one() -> None:
    """OpenDP #2939: NaN went through `cut` and became a category that no list had."""
    xs = [math.nan, None, "x", 0.0, math.inf, -math.inf]
    cells = batch({"x": xs, "y": [0.0] * 6})
    for edges in ([0], [-1e300, 0, 5], [math.nextafter(0, 1)]):
        cut = col("x").cut(edges).compile(SCHEMA)
        made = cut.evaluate(cells, 6)
        assert made.valid.tolist() == [False, False, False, True, True, True]
        assert made.values[5] == 0
        assert made.values[4] == len(edges)
        known = col("x").cut(edges, default="unknown").compile(SCHEMA)
        listed = known.type.values  # type: ignore[attr-defined]
        assert listed[-1] == "unknown"
        assert [listed[at] for at in known.evaluate(cells, 6).values[:3]] == ["unknown"] * 3
        # NaN that is made on the way, 0 / 0 and inf - inf, is none either.
        for none in ((col("y") / col("y")).cut(edges), (col("x") * 1e300 - col("x") * 1e300).cut(edges)):
            made = none.compile(SCHEMA).evaluate(batch({"x": [math.inf], "y": [0.0]}), 1)
            assert made.valid.tolist() == [False]


def test_no_expression_sees_the_codes_of_categories() -> None:
    """OpenDP #2944: physical codes after `cut` depend on which bins occur."""
    bins = col("x").cut([0, 1], [30, 20, 10])
    for wrong in (bins + 1, bins.floor(), bins.abs(), bins.cut([1]), bins.clip(0, 1), bins.log1p(), bins < 20):
        with pytest.raises(TypeError):
            wrong.typed(SCHEMA)
    texts = col("x").cut([0, 1])
    made = texts.cast(integer(0, 9)).compile(SCHEMA).evaluate(batch({"x": [-1.0, 0.5, 2.0]}), 3)
    assert not made.valid.any()  # texts such as "[0, 1)" are no integers
    # Integers that name bins are read as what they are, whatever bins occur beside them.
    for xs, labels in (([-1.0, 0.5, 2.0], [30, 20, 10]), ([2.0], [10]), ([0.5, 2.0, 0.5], [20, 10, 20])):
        program = bins.cast(integer(0, 99)).compile(SCHEMA)
        assert program.evaluate(batch({"x": xs}), len(xs)).values.tolist() == labels
