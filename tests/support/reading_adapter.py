"""The one place where tests of reading meet the package: what is read of a column, by the public interface alone.

Each row is a user of its own, so that what a query adds up to before noise is what was read of each row.
"""

from __future__ import annotations

import datetime as dt
import os
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from userdp.tables import (
    Query,
    Schema,
    Session,
    boolean,
    category,
    col,
    count_users,
    integer,
    key,
    number,
    sum,
    timestamp,
)

KINDS = ("number", "integer", "boolean", "category", "key_int", "text", "day", "time", "timestamp", "id")
OF_REFERENCE = {"category": "text", "timestamp": "time"}
"""The kinds of `oracle.reading` that have another name here."""
LARGEST = 2**53 - 1
WIDEST = 8e307
"""Bounds of numbers whose distance is a double."""
OTHER = "another value"
SPLIT = "several people"
MERGED = "somebody else as well"


@dataclass(frozen=True)
class Outcome:
    """What a call did: its result or the class and the words of what it raised, its warnings, and what was printed."""

    result: Any
    raised: str
    warned: tuple[str, ...]
    printed: bytes

    @property
    def seen(self) -> tuple[str, tuple[str, ...], bytes]:
        """All but the result."""
        return self.raised, self.warned, self.printed


def watched(call: Callable[[], Any]) -> Outcome:
    """Call, and see what can be seen of it: descriptors 1 and 2 too, as other languages print there."""
    result, raised = None, ""
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            result = call()
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            raised = f"{type(error).__name__}: {error}"
        finally:
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            os.close(kept[0])
            os.close(kept[1])
        file.seek(0)
        printed = file.read()
    said = tuple(f"{one.category.__name__}: {one.message}" for one in caught)
    return Outcome(result, raised, said, printed)


def column_type(kind: str, values: Sequence[Any] = ()) -> Any:
    """The declared type for a kind; categories are those of the values that are texts."""
    makers: dict[str, Callable[[], Any]] = {
        "number": lambda: number(-WIDEST, WIDEST),
        "integer": lambda: integer(-LARGEST, LARGEST),
        "boolean": boolean,
        "category": lambda: category(list(dict.fromkeys(one for one in values if one is not None)) or ["nobody's"]),
        "key_int": lambda: key(int),
        "text": lambda: key(str),
        "day": lambda: key(dt.date),
        "time": lambda: key(dt.datetime),
        "timestamp": lambda: timestamp(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)),
    }
    return makers[kind]()


def session(frame: Any, schema: Mapping[str, Any], user: str = "u") -> Session:
    """A session whose budget does not matter."""
    return Session(frame, user=user, schema=Schema(schema), epsilon=1000, delta="1e-6", composition="basic")


def sums(held: Session, query: Query, frame: Any) -> dict[str, dict[Any, int]]:
    """What a release would add noise to: each statistic, by key."""
    found = {}
    for name, function in held.before_noise(query).items():
        found[name] = {tuple(map(plain_key, own)): count for own, count in function(frame).items()}
    return found


def plain_key(value: Any) -> Any:
    """Days and microseconds since 1970 for dates and times."""
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return value.toordinal() - dt.date(1970, 1, 1).toordinal()
    return value


def prepared(frame_of: Callable[[Mapping[str, Any]], Any], kind: str, expected: Sequence[Any]) -> tuple[Any, Any]:
    """The frame with what goes beside the column, and a function that makes the session."""
    rows = np.arange(len(expected), dtype=np.int64)
    beside: dict[str, Any] = {"u": rows, "r": rows}
    types: dict[str, Any] = {"r": key(int)}
    if kind == "id":
        beside["c"] = classes(expected)
        types["c"] = key(int)
    else:
        types["x"] = column_type(kind, expected)
    if kind in ("number", "integer", "boolean"):
        given = [0.0 if one is None else float(one) for one in expected]
        beside["e"] = np.clip(np.array(given, dtype=np.float64), -WIDEST, WIDEST)
        types["e"] = number(-WIDEST, WIDEST)
    if kind == "timestamp":
        beside["e"] = np.array([0 if one is None else one for one in expected], dtype=np.int64).view("M8[us]")
        types["e"] = column_type("timestamp")
    frame = frame_of(beside)
    return frame, lambda: session(frame, types, "x" if kind == "id" else "u")


def classes(expected: Sequence[Any]) -> Any:
    """A number for each person; those of nobody are 0."""
    numbers: dict[Any, int] = {None: 0}
    return np.array([numbers.setdefault(one, len(numbers)) for one in expected], dtype=np.int64)


def read_values(frame: Any, held: Session, kind: str, expected: Sequence[Any]) -> list[Any]:
    """What is read of each row: a key, or of others the expected value or OTHER; None for nothing.

    Of ids the expected person, SPLIT where its spellings are several people, MERGED where it is one with another.
    """
    n = len(expected)
    if kind == "id":
        return _people(frame, held, expected)
    if kind in ("category", "key_int", "text", "day", "time"):
        query = Query().group_by("r", "x", max_keys=1).agg(n=count_users())
        found: list[Any] = [None] * n
        for row, value in sums(held, query, frame)["users"]:
            found[row] = value
        return found
    same_bools = (col("x") & (col("e") == 1)) | (~col("x") & (col("e") == 0))
    query = Query().with_columns(same=same_bools if kind == "boolean" else col("x") == col("e"))
    query = query.group_by("r", max_keys=1).agg(n=count_users("same"), same=sum("same", max_total=1))
    both = sums(held, query, frame)
    same = next(own for name, own in both.items() if name != "users")
    return [(expected[row] if same[row,] else OTHER) if both["users"].get((row,)) else None for row in range(n)]


def _people(frame: Any, held: Session, expected: Sequence[Any]) -> list[Any]:
    numbers, n = classes(expected).tolist(), len(expected)
    every = n + 1
    rows = sums(held, Query().group_by("r", max_keys=every).agg(n=count_users()), frame)["users"]
    people = sums(held, Query().group_by("c", max_keys=every).agg(n=count_users()), frame)["users"]
    # A person of two numbers counts for the first one only.
    firsts = sums(held, Query().group_by("c", max_keys=1, rule="first").agg(n=count_users()), frame)["users"]
    found: list[Any] = []
    for row, number_of in enumerate(numbers):
        if not rows.get((row,)):
            found.append(None)
        elif expected[row] is None:
            found.append(OTHER)
        elif people[number_of,] > 1:
            found.append(SPLIT)
        else:
            found.append(expected[row] if firsts.get((number_of,)) else MERGED)
    return found
