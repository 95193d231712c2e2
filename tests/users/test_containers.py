"""Single checks of the readers that no other test makes, and what every container is read as."""

from __future__ import annotations

import datetime
import enum
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from userdp.users import UserTable
from userdp.users.containers import (
    item_of,
    numbers_in,
    places_of,
    read_classes,
    read_codes,
    read_column,
    read_grid,
    read_items,
    read_names,
    read_targets,
)


class Level(enum.IntEnum):
    """An int of a class of its own."""

    HIGH = 3


class Hostile(str):
    """A text that cannot be asked for anything."""

    __slots__ = ()
    __eq__ = __str__ = __len__ = strip = encode = lambda *_: 1 / 0  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


NAN = math.nan
NUMBERS: list[tuple[Any, float]] = [
    (7, 7), ("7", 7), (" 07 ", 7), (b"7", 7), ("7e0", 7), (".5", 0.5), (True, 1), ("TRUE", 1), (Level.HIGH, 3),
    (Hostile("3"), 3), (np.float16(1.5), 1.5), (Decimal("0.1"), 0.1), (Fraction(1, 3), 1 / 3), (3 + 0j, 3), (1j, NAN),
    (10**400, math.inf), (-(10**400), -math.inf), (Fraction(10**400, 3), math.inf),
    (Fraction(-(10**400), 3), -math.inf),
    (2**53 + 1, 2.0**53), ("inf", math.inf),
    ("-Infinity", -math.inf), ("nan", NAN), ("1_000", NAN), ("1,5", NAN),
    ("\u0665", NAN), ("yes", NAN), (None, NAN), (pd.NA, NAN), (pd.NaT, NAN), (datetime.date(2024, 1, 31), NAN),
    (datetime.timedelta(1), NAN), (np.timedelta64(3, "s"), NAN), ((3, 4), NAN), ({}, NAN), (object(), NAN),
    ("\ud800", NAN), (b"\xff", NAN),
]  # fmt: skip


def same(found: Any, wanted: list[float]) -> None:
    np.testing.assert_array_equal(np.asarray(found, dtype=float), np.array(wanted))


def test_numbers_in_every_container_of_objects() -> None:
    values, wanted = [value for value, _ in NUMBERS], [number for _, number in NUMBERS]
    held = np.fromiter(values, dtype=object, count=len(values))
    for container in (
        values,
        tuple(values),
        held,
        pd.Series(held, dtype=object),
        pl.Series("y", values, dtype=pl.Object),
    ):
        same(numbers_in(read_column(container, "y")), wanted)
    for table in ([[value] for value in values], held[:, None], pd.DataFrame({"x": held}, dtype=object)):
        same(read_grid(table, "X", width=1).numbers()[:, 0], wanted)
        same(UserTable.read(table, groups=range(len(values)), m=1, n_features=1).X[:, 0], wanted)


@pytest.mark.parametrize(
    "column",
    [
        np.array([7, NAN, 1], dtype=np.float16),
        np.array(["7", "x", "1"]),
        np.array(["7", "x", "1"], dtype=np.dtypes.StringDType()),
        np.array([b"7", b"x", b"1"]),
        np.array([7, 1j, 1]),
        np.ma.array([7, 8, 1], mask=[0, 1, 0]),
        np.ma.array(["7", "8", "1"], mask=[0, 1, 0]),
        np.ma.array([7, 8, 1], mask=[0, 1, 0], dtype=object),
        pd.Series(["7", "x", "1"]),
        pd.Series(["7", None, "1"], dtype="string"),
        pd.Series([7, None, 1], dtype="category"),
        pd.Series(["7", "x", "1"], dtype="category"),
        pd.Series([7, None, 1], dtype="Int64"),
        pd.Series([7, None, 1], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
        pd.arrays.SparseArray([7.0, NAN, 1.0]),
        pa.array(["7", None, "1"]),
        pa.array([7, None, 1], type=pa.decimal128(9, 2)),
        pa.array([7, None, 1]).dictionary_encode(),
        pl.Series(["7", "x", "1"]),
        pl.Series([b"7", b"x", b"1"]),
        pl.Series(["7", "x", "1"], dtype=pl.Categorical),
        pl.Series([7, None, 1], dtype=pl.Decimal(9, 2)),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", type(column)))),
)
def test_no_type_of_a_column_of_numbers_is_refused(column: Any) -> None:
    """As targets, items, labels and features; the second is no number."""
    same(read_targets(column, 3), [7, NAN, 1])
    assert read_codes(column, "items").tolist() == [7, -1, 1]
    assert places_of(read_column(column, "y", kind="text"), read_classes((1, 7))).tolist() == [1, -1, 0]
    if isinstance(column, np.ndarray):
        grid = read_grid(column[:, None], "X")
    elif isinstance(column, (pd.Series, pd.api.extensions.ExtensionArray)):
        grid = read_grid(pd.DataFrame({"x": column}), "X")
    else:
        grid = read_grid(pa.table({"x": column}) if isinstance(column, pa.Array) else pl.DataFrame({"x": column}), "X")
    same(grid.numbers()[:, 0], [7, NAN, 1])


DECLARED = [
    pa.array([1, 2], type=pa.duration("s")),
    pa.array([[1], [2]]),
    pa.array([{"a": 1}, None]),
    pl.Series([datetime.timedelta(1), None]),
    pl.Series([[1], [2]]),
]
DATES = [
    pa.array([1, 2], type=pa.date32()),
    pa.array([0, 2**60], type=pa.timestamp("s")),
    pl.Series([datetime.time(9)] * 2),
]


def test_declared_types_that_hold_none_of_a_kind_are_refused_in_words() -> None:
    for column in DECLARED + DATES:
        with pytest.raises(
            TypeError, match=r"y is of type .*, and numbers can be read of none of its values: it reads"
        ):
            read_targets(column, 2)
        frame = pa.table({"when": column}) if isinstance(column, pa.Array) else pl.DataFrame({"when": column})
        with pytest.raises(TypeError, match=r"X: the column 'when' is of type .*, and numbers can be read of none"):
            UserTable.read(frame, groups=[1, 2], m=1)
    for column in DECLARED:
        with pytest.raises(TypeError, match=r"y is of type .*, and labels or items can be read of none of its values"):
            UserTable.read(np.eye(2), column, groups=[1, 2], m=1, classes=(0, 1))
    for column in DATES:
        assert UserTable.read(np.eye(2), column, groups=[1, 2], m=1, classes=(0, 1)).labels.tolist() == []


def test_no_type_that_a_value_can_change_is_refused() -> None:
    for column in (
        np.array([1, 2], dtype="m8[s]"),
        np.array([1, 2], dtype="M8[s]"),
        np.zeros(2, dtype=[("a", int)]),
        pd.Series(pd.to_timedelta([1, 2])),
        pd.Series(pd.to_datetime([1, 2])),
        *(
            pd.Series(column, dtype=pd.ArrowDtype(column.type))
            for column in DECLARED + DATES
            if isinstance(column, pa.Array)
        ),
    ):
        same(read_targets(column, 2), [NAN, NAN])
        table = column[:, None] if isinstance(column, np.ndarray) else pd.DataFrame({"x": column})
        same(read_grid(table, "X").numbers()[:, 0], [NAN, NAN])
        labels = UserTable.read(np.eye(2), column, groups=[1, 2], m=1, classes=(0, 1)).labels
        assert labels.tolist() == []


def test_whole_numbers_beyond_doubles_are_labels_nowhere() -> None:
    with pytest.raises(ValueError, match="two distinct labels"):
        read_classes((0, 2**60))


@pytest.mark.parametrize("classes", [(math.nan, 1), (1, math.nan), ("", "a"), ("nan", "a"), (None, 1), ("\ud800", "a")])
def test_what_has_no_text_is_no_class(classes: Any) -> None:
    with pytest.raises(ValueError, match="two distinct labels"):
        read_classes(classes)


@pytest.mark.parametrize(
    "classes", [(1, 1), (1, 1.0), ("a", "a"), (True, 1), ("0", "00"), ("3.1", "3.10"), ("true", "1"), ("a", "a ")]
)
def test_labels_that_read_alike_are_refused(classes: Any) -> None:
    with pytest.raises(ValueError, match=r"^classes: .* read alike; give distinct labels"):
        read_classes(classes)
    with pytest.raises(ValueError, match=r"^symbols: .* read alike; give distinct labels"):
        read_names((*classes, classes[0]), "symbols")


def test_labels_are_one_by_their_texts() -> None:
    ones = [1, 1.0, True, "1", " 1 ", "1.0", b"1", "TRUE", np.int8(1), Decimal("1.00"), Level.HIGH - 2]
    others = [0, "0", False, None, "yes", 2, NAN, "one", object(), (1, 1), -1, ""]
    for classes in ((0, 1), ("0", "1"), (0.0, 1.0), (False, True), (b"0", b"1"), np.array(["00", "01"])):
        assert read_classes(classes).labels.tolist() == list(classes)
        table = UserTable.read(np.zeros((23, 1)), ones + others, groups=range(23), m=1, classes=classes)
        assert (table.labels.tolist(), table.n_users) == ([1] * len(ones) + [0, 0, 0], 23)
        assert table.users.tolist() == list(range(len(ones) + 3))
        assert table.outside is not None
        assert table.outside.tolist() == list(range(len(ones) + 3, 23))


def test_items_are_one_by_their_texts() -> None:
    def counted(items: Any, **options: Any) -> dict[Any, int]:
        return {item: count for item, count in read_items(items, "items", None, **options) if count}

    assert counted([5, 5.0, "5", "05", b"5", True, "true", 1]) == {5: 5, 1: 3}
    assert counted(["a", b"a", "a ", None, 1.5, "1.50", {}, (1, 2)]) == {"a": 3, "1.5": 2, None: 3}
    long = [2**60, 2**60 + 1, str(2**60 + 1)]
    assert counted(long) == {repr(2.0**60): 3}
    assert counted(long, exact_integers=True) == {2**60: 1, 2**60 + 1: 2} == counted(pa.array([*long[:2], 2**60 + 1]))
    for item in (5, "a", 2**60 + 1, repr(2.0**60), "1.5", "1e999", -3, -(2**70)):
        assert item_of(item) == item
    assert [item_of(value) for value in (True, "05", b"x", 2.0)] == [1, 5, "x", 2]
    assert [item_of(value) for value in (None, NAN, object(), "nan")] == [None] * 4


def test_an_array_with_one_column_is_a_vector() -> None:
    column = read_column(np.array([[3], [1], [2]]), "y")
    assert numbers_in(column).tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="1d array"):
        read_column(np.array([[3, 1], [1, 2]]), "y")


def test_rows_that_are_vectors_of_times_are_no_numbers() -> None:
    """NumPy's own lists of nanoseconds are integers."""
    for unit in ("M8[ns]", "m8[ns]", "M8[s]"):
        rows = [np.array([3], dtype=unit), np.array([3.0])]
        same(read_grid(rows, "X", width=1).numbers()[:, 0], [NAN, 3])


def test_the_types_of_a_frame_are_asked_of_no_value() -> None:
    """Types of categories are equal, and have hashes, by what the categories are."""
    made = pd.Categorical.from_codes([0, 1, 0], pd.Index(["7", "x"], dtype=object))
    for other in ([1.0, 2.0, 3.0], [1, 2, 3], made):
        grid = read_grid(pd.DataFrame({"x": made, "y": other}), "X")
        same(grid.numbers()[:, 0], [7, NAN, 7])
    numbers = pd.DataFrame({"x": [1, 2], "y": [3, 4]})
    assert read_grid(numbers, "X").block is not None
    assert read_grid(numbers.astype({"y": float}), "X").block is None
    same(read_grid(numbers.astype({"y": float}), "X").numbers().ravel(), [1, 3, 2, 4])


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": lambda table: np.repeat(np.repeat(table, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda table: table[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda table: table.astype(table.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4", "u8", "?"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_mask_fails_by_what_it_hides(layout: str, dtype: str) -> None:
    numbers = np.random.default_rng(0).integers(0, 2, size=(6, 3)).astype(dtype)
    table = LAYOUTS[layout](numbers)
    masks = [np.zeros((6, 3), dtype=bool), np.eye(6, 3, dtype=bool), np.ones((6, 3), dtype=bool)]
    for mask in (np.ma.nomask, *masks, *map(LAYOUTS["strided"], masks), *map(np.asfortranarray, masks)):
        masked = np.ma.array(table, mask=mask)
        for held in (masked, masked[:, :1], masked[::2]):
            found = read_grid(held, "X")
            wanted = np.where(np.ma.getmaskarray(held), np.nan, np.asarray(held.data, dtype=float))
            same(found.numbers(), wanted.tolist())
