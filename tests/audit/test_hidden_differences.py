"""What hides a difference from an audit of sensitivity: it is refused, or read for what it holds."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np
import pytest

from userdp.audit import audit_sensitivity
from userdp.exceptions import NotDeterministicError

Table = list[dict[str, Any]]


class Fitted:
    """What shows nothing of what it holds."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Fitted()"


class Text(str):
    def __repr__(self) -> str:
        return "Text()"


@pytest.mark.parametrize(
    "hidden",
    [Fitted, lambda total: {"n": 0, "model": Fitted(total)}, lambda total: np.array([Fitted(total)], dtype=object)],
)
def test_objects_that_need_not_show_what_they_hold_are_refused(hidden: Any) -> None:
    with pytest.raises(ValueError, match="is of the type Fitted, which is no number"):
        audit_sensitivity(lambda rows: hidden(len(rows)), schema={"x": int}, l1=0)


def test_texts_of_other_classes_are_read_as_texts() -> None:
    assert audit_sensitivity(lambda rows: Text(len(rows)), schema={"x": int}, l1=0).holds is False


@pytest.mark.parametrize("made", [deque, lambda entries: {"sum": entries[0]}.values()], ids=["deque", "values"])
def test_other_sequences_are_sequences(made: Any) -> None:
    """The number of rows changes by 1 when a row comes: within a claim of 1, and above one of 1/2."""
    asked: dict[str, Any] = {"schema": {"x": int}, "neighbors": "add-remove"}
    assert audit_sensitivity(lambda rows: made([len(rows)]), **asked, l1=1).holds is True
    assert audit_sensitivity(lambda rows: made([len(rows)]), **asked, l1="1/2").worst.l1 == 1


@pytest.mark.parametrize("public", [lambda rows: (row for row in rows), lambda rows: math.nan, lambda rows: object()])
def test_answers_that_are_equal_to_nothing_would_leave_no_neighbors(public: Any) -> None:
    with pytest.raises(ValueError, match="invariant: two answers about one table are not equal"):
        audit_sensitivity(lambda rows: 1000 * len(rows), schema={"x": int}, l1=1, invariant=public)


class BoundsOfItsFirstTable:
    bound: int | None = None

    def __call__(self, rows: Table) -> int:
        if self.bound is None:
            self.bound = len(rows)
        return min(len(rows), self.bound)


def by_length() -> Any:
    known: dict[int, float] = {}
    return lambda rows: known.setdefault(len(rows), sum(row["x"] for row in rows))


KNOWN: dict[int, float] = {}


def by_global_length(rows: Table) -> float:
    return KNOWN.setdefault(len(rows), sum(row["x"] for row in rows))


@pytest.mark.parametrize("function", [BoundsOfItsFirstTable(), by_length(), by_global_length])
def test_functions_that_keep_what_an_earlier_call_saw(function: Any) -> None:
    """Called again they answer the same; as a first call they would not, and that is how a release calls them."""
    KNOWN.clear()
    with pytest.raises(NotDeterministicError, match="as its first call"):
        audit_sensitivity(function, schema={"x": float}, l1=1, alphabets={"x": [1.0, 1000.0]})
