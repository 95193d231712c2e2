"""The slow reference of reading: its cases as they are written down, and what must hold for all cells."""

from __future__ import annotations

import json
import math
import random
from datetime import date, datetime, time
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import pytest

from oracle.reading import FAMILIES, KINDS, Cell, declared, identity, read, same_person, status, text
from support.reading_cells import case, cells, drawn, dump, load, stored

ONE_UUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
ONE_PERSON: list[list[Any]] = [
    [5, 5.0, "5", "05", " 5.0 ", b"5", Decimal("5.00"), Fraction(5), "5e0", Cell("np.int", 5), (5,)],
    [True, 1, "true", "1", "TRUE", 1.0, 1 + 0j],
    ["K\u00f6ln", "Ko\u0308ln ", "K\u00f6ln".encode()],
    [ONE_UUID, ONE_UUID.upper(), "{" + ONE_UUID + "}", ONE_UUID.replace("-", ""), UUID(ONE_UUID)],
    ["2024-01-31", date(2024, 1, 31), datetime(2024, 1, 31), "2024-01-31T00:00:00Z", "2024-01-31 01:00+01:00"],
    ["(0, 10]", "(0.0,10.0]", Cell("pd.Interval", (0, 10, "right")), Cell("pd.Interval", (0.0, 10.0, "right"))],
    ["3.1", "3.10", 3.1],
    ["09:30", "09:30:00", time(9, 30), Cell("time64", ("us", 34_200_000_000))],
    ["2024-01-31 09", "2024-01-31T09:00Z", datetime(2024, 1, 31, 9)],
]


@pytest.mark.parametrize("part", ["cases", "held_out"])
def test_the_cases_are_what_the_reference_says(part: str) -> None:
    kept = stored()[part]
    assert [case(load(one["cell"])) for one in kept] == kept
    assert len(kept) == {"cases": 329, "held_out": 150}[part]


def test_the_table_of_declared_types_is_what_the_reference_says() -> None:
    assert stored()["declared"] == {family: {kind: declared(family, kind) for kind in KINDS} for family in FAMILIES}


def test_spellings_of_a_person_are_one_person() -> None:
    for i, group in enumerate(ONE_PERSON):
        for first in group:
            assert all(same_person(first, other) and same_person(first, other, True) for other in group)
            assert not any(same_person(first, other[0]) for other in ONE_PERSON[:i])


@pytest.mark.parametrize(
    ("first", "other"),
    [("ann", "Ann"), ("a n", "an"), (5, 6), ("m\u00b2", "m2"), ("\uff15", 5), (None, None), ("", ""), (1, (1, 1))],
)
def test_others_are_several(first: Any, other: Any) -> None:
    assert not same_person(first, other)


def test_digits_count_where_types_are_declared() -> None:
    assert same_person(2**60, 2**60 + 1)
    assert not same_person(2**60, 2**60 + 1, True)
    assert same_person("1152921504606846977", 2**60 + 1, True)
    assert not same_person("05", 5, "written")


def test_rules_that_hold_for_all_cells() -> None:
    """A text is its own text, an id its own id; all digits tell more apart than doubles do; doubles are numbers."""
    rng = random.Random(1)
    coarse: dict[Any, Any] = {}
    for cell in [*cells(), *(drawn(rng) for _ in range(3000))]:
        for exact in (False, True, "written"):
            found, who = text(cell, exact), identity(cell, exact)
            assert found is None or text(found, exact) == found
            # An id that is "bytes:..." is no text of its own.
            assert who is None or identity(who, exact) == who
            assert found is None or who is not None
        fine, rough = identity(cell, True), identity(cell)
        assert fine is None or coarse.setdefault(fine, rough) == rough
        value = read("number", cell)
        if value is not None and math.isfinite(value):
            for other in (value, repr(value), Decimal(value), Cell("np.float", value)):
                assert same_person(cell, other)
                assert read("number", other) == value
        for kind in KINDS:
            assert (status(kind, cell) == "value") == (read(kind, cell) is not None)
        assert type(cell) is object or dump(load(json.loads(json.dumps(dump(cell))))) == dump(cell)
