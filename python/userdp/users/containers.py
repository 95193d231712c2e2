"""Whatever data comes in, as columns: taken by what the container is, never by what is in it.

* NumPy arrays, and lists and all other sequences, to a depth that is public: two for tables, one for vectors.
* Frames and series (pandas, polars, pyarrow and the others that narwhals knows, lazy ones too), column by column. Lazy
  ones are collected once.
* What is of no known kind is refused before a value is looked at.

What a value is read as is one rule for all of them, and none of a type that one value can change is refused by it:
docs/reading.md.
"""

from __future__ import annotations

import array
import re
import sys
from collections import UserString, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import short_repr
from userdp.runtime import warn
from userdp.users.values import (
    LARGEST_WHOLE,
    VALUE,
    Column,
    Spelling,
    as_objects,
    of_array,
    of_native,
    of_objects,
    refused,
    taken,
)

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Item: TypeAlias = "int | str"

ACCEPTED = "a NumPy array, a list or another sequence, or a frame or series of pandas, polars or pyarrow"


def numbers_in(column: Column) -> Floats:
    """The values of a column as doubles, NaN for what is no number."""
    numbers: Floats
    numbers, status = column.cells.numbers()
    numbers[status != VALUE] = np.nan
    return numbers


def spelling_of(column: Column, *, exact: bool = False, written: bool = False) -> Spelling:
    """How the one text of each value is told: with all digits where no value can change the type, or by promise."""
    if written:
        return "written"
    return "digits" if exact or column.declared else "doubles"


def _wholes(column: Column, exact: bool) -> npt.NDArray[np.uint64]:
    """Whole numbers from 0 to 2**64 - 1: rounded up, clamped, and 0 for what is no number."""
    # Exactly if no value can change the type of the column, or its owner promises that; otherwise as doubles.
    if exact or column.declared:
        points: npt.NDArray[np.uint64] = column.cells.points()[0]
        return points
    numbers, _ = column.cells.numbers()
    up = np.ceil(numbers)
    beyond = up >= 2.0**64
    wholes = np.where((up > 0) & ~beyond, up, 0.0).astype(np.uint64)
    wholes[beyond] = 2**64 - 1
    return wholes


def _codes(values: Array) -> npt.NDArray[np.int64]:
    """Integers from 0 up to 2**53 - 1, negative ones for all else; arrays of integers as they are."""
    if values.dtype.kind in "biu":
        return values.astype(np.int64, copy=False)
    with np.errstate(all="ignore"):
        doubles = values.astype(np.float64, copy=False)
        whole = (doubles >= 0) & (doubles <= LARGEST_WHOLE) & (doubles == np.floor(doubles))
    return np.where(whole, doubles, -1.0).astype(np.int64)


@dataclass(frozen=True)
class Grid:
    """A table: an array of numbers as it was given, or columns."""

    block: Array | None  # with shape (rows, columns)
    columns: tuple[Column, ...]  # empty where there is a block
    native: Any  # what scikit-learn is to see of it: a frame, or an array with its shape

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        if self.block is not None:
            return self.block.shape[0], self.block.shape[1]
        return (len(self.columns[0]) if self.columns else 0), len(self.columns)

    def vectors(self) -> tuple[Column, ...]:
        """The columns one by one."""
        return self.columns if self.block is None else tuple(map(of_array, self.block.T))

    def numbers(self) -> Floats:
        """Return all values as doubles with shape (rows, columns), NaN for what is none."""
        # Doubles always: one missing value makes another machine type of a column, which all others' rows would have.
        if self.block is not None:
            with np.errstate(all="ignore"):
                return self.block.astype(np.float64, copy=False)
        return np.column_stack([numbers_in(column) for column in self.columns])

    def codes(self) -> npt.NDArray[np.int64]:
        """All values as integers from 0 up, negative ones for all else, row by row in one block of memory."""
        return _codes(self.numbers() if self.block is None else self.block)


# --- tables


def read_grid(container: Any, name: str, *, width: int | None = None, kind: str = "number") -> Grid:
    """Read a table of numbers, or of labels (kind="text"); refused by shapes, and by types that no value can change."""
    # Lists need the public width, as their rows say nothing public. A row counts by its first so many entries; a
    # shorter one, or what is no row, as a row of missing values; where there is one column, a bare value as a row.
    if isinstance(container, np.ndarray):
        return _grid_of_array(container, name, width)
    if is_sequence(container):
        if isinstance(container, (array.array, range, memoryview)):
            raise ValueError(_one_dimension(name, np.shape(container)))
        return _grid_of_rows(list(container), name, width)
    frame = _narwhals(container, name)
    if _is_series(frame):
        raise ValueError(_one_dimension(name, (len(frame),)))
    if not frame.columns:
        raise ValueError(f"{name} has no columns")
    types = [getattr(series.to_native(), "dtype", None) for series in frame.iter_columns()]
    if all(isinstance(held, np.dtype) and held.kind in "biuf" for held in types) and len(set(types)) == 1:
        # Of pandas, of numbers of one machine type; row by row in memory, as sums may be rounded by the layout.
        return Grid(np.ascontiguousarray(frame.to_numpy()), (), frame.to_native())
    columns = tuple(_column_of_series(series) for series in frame.iter_columns())
    for column, label in zip(columns, frame.columns, strict=True):
        _check_type(column, f"{name}: the column {label!r}", kind)
    return Grid(None, columns, frame.to_native())


def _check_type(column: Column, name: str, kind: str) -> None:
    needed = {"number": "numbers", "text": "labels or items", "id": "user ids"}[kind]
    error = refused(column, name, kind, needed)
    if error is not None:
        raise error


def _grid_of_array(table: Array, name: str, width: int | None) -> Grid:
    masked = isinstance(table, np.ma.MaskedArray)
    if table.dtype.kind == "O" and table.ndim == 1 and width is not None:
        # One odd row makes one dimension of two: neither decides where the width is public.
        return _grid_of_rows(_listed(table), name, width)
    if table.ndim != 2:
        raise ValueError(_one_dimension(name, table.shape))
    if table.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required: {name} has no "
            "columns"
        )
    if not masked and table.dtype.kind in "biuf":
        table = np.asarray(table)
        return Grid(table, (), table)
    return Grid(None, tuple(of_array(table[:, place]) for place in range(table.shape[1])), table)


def _listed(vector: Array) -> list[Any]:
    """A vector's objects one by one, None for those that are masked."""
    if not isinstance(vector, np.ma.MaskedArray):
        return as_objects(vector)
    hidden = np.ma.getmaskarray(vector).tolist()
    return [None if hide else value for value, hide in zip(as_objects(vector.data), hidden, strict=True)]


def _one_dimension(name: str, shape: tuple[int, ...]) -> str:
    return (
        f"Expected 2D array, got the shape {tuple(shape)} instead. Reshape your data: {name} needs a row for each "
        "example and a column for each feature"
    )


def _grid_of_rows(rows: list[Any], name: str, width: int | None) -> Grid:
    if width is None:
        raise ValueError(
            f"{name} is a list, and the lengths of its rows are private: pass n_features, the public number of "
            "columns, or an array or a frame"
        )
    entries = list(chain.from_iterable(_entries(row, width) for row in rows))
    columns = tuple(of_objects(entries[place::width]) for place in range(width))
    return Grid(None, columns, np.broadcast_to(np.nan, (len(rows), width)))


def _entries(row: Any, width: int) -> Sequence[Any]:
    """A row's first entries; all None where it is no row that has so many."""
    entries = members_of(row, width)
    if entries is None:
        return [row] if width == 1 else [None] * width
    return entries if len(entries) == width else [None] * width


def members_of(value: Any, most: int) -> list[Any] | None:
    """Return the first members of a private list, tuple or vector, or None: by its type alone, by no method of it."""
    # No more of them are looked at: an array may say that it has any number.
    kind: Any = type(value)
    if issubclass(kind, list):
        return list(islice(list.__iter__(value), most))
    if issubclass(kind, tuple):
        return list(islice(tuple.__iter__(value), most))
    if kind is deque:
        return list(islice(value, most))
    if kind is np.ndarray:
        return as_objects(value[:most]) if value.ndim == 1 else None
    pandas = sys.modules.get("pandas")
    if pandas is not None and kind is pandas.Series and type(value.array).__module__.partition(".")[0] == "pandas":
        try:
            return list(value.array[:most])
        except Exception:  # such as a date beyond those of Python
            return None
    return None


# --- vectors


def read_column(container: Any, name: str, *, unwrap: bool = True, kind: str = "number") -> Column:
    """Read a vector of values of a kind, one for each row; tables of one column count as vectors."""
    # In lists and arrays of objects a list or tuple of one entry stands for that entry, unless it is not to be
    # unwrapped.
    if isinstance(container, np.ndarray):
        return _column_of_array(container, name, unwrap=unwrap)
    if is_sequence(container):
        if isinstance(container, (array.array, range, memoryview)):
            return _column_of_array(np.asarray(container), name, unwrap=unwrap)
        return _column_of_objects(list(container), unwrap=unwrap)
    frame = _narwhals(container, name)
    if not _is_series(frame):
        if len(frame.columns) != 1:
            raise ValueError(f"{name} must be one column; got {len(frame.columns)} columns")
        frame = next(frame.iter_columns())
    column = _column_of_series(frame, unwrap=unwrap)
    _check_type(column, name, kind)
    return column


def _column_of_array(vector: Array, name: str, *, unwrap: bool) -> Column:
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {vector.shape} instead")
    return _column_of_objects(_listed(vector), unwrap=unwrap) if vector.dtype.kind == "O" else of_array(vector)


def _column_of_objects(values: list[Any], *, unwrap: bool) -> Column:
    if unwrap:
        rows = (members_of(value, 2) for value in values)
        values = [value if row is None or len(row) != 1 else row[0] for row, value in zip(rows, values, strict=True)]
    return of_objects(values)


def _column_of_series(series: Any, *, unwrap: bool = False) -> Column:
    """A column of a series of narwhals, by its type; of objects by its objects."""
    native = series.to_native()
    held = getattr(native, "dtype", None)
    if isinstance(held, np.dtype) and held.kind == "O":
        return _column_of_objects(list(native.to_numpy()), unwrap=unwrap)
    known = type(native).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")
    return of_native(native if known else series.to_pandas())


# --- what containers are


def is_sequence(container: Any) -> bool:
    """Whether this is a list or another sequence of values, and no text."""
    texts = (str, bytes, bytearray, UserString)
    return isinstance(container, (Sequence, array.array, memoryview)) and not isinstance(container, texts)


def is_frame(container: Any) -> bool:
    """Whether this is a frame, lazy or not, of a library that narwhals knows."""
    if isinstance(container, np.ndarray) or is_sequence(container):
        return False
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        return isinstance(nw.from_native(container, pass_through=True), (nw.DataFrame, nw.LazyFrame))
    except DuplicateError:  # a frame, and refused by name where it is read
        return True


def select_column(frame: Any, column: str, name: str) -> tuple[Any, Any]:
    """Return a frame without one of its columns, and that column; both of narwhals."""
    if not is_frame(frame):
        raise TypeError(
            f"{name}={column!r} names a column, and X is a {type(frame).__name__}: pass a frame, or the ids"
        )
    eager = _narwhals(frame, "X")
    if column not in eager.columns:
        names = ", ".join(map(repr, eager.columns))
        raise ValueError(f"{name}={column!r} is no column of X, whose columns are {names}")
    return eager.drop(column), eager.get_column(column)


def collected(container: Any) -> Any:
    """A lazy frame as one that is not, and all else as it is. A lazy one may have another order each time."""
    if container is None or isinstance(container, np.ndarray) or is_sequence(container):
        return container
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    try:
        wrapped = nw.from_native(container, pass_through=True, allow_series=True)
    except DuplicateError:
        return container
    return wrapped.collect() if isinstance(wrapped, nw.LazyFrame) else container


def take(container: Any, mask: npt.NDArray[np.bool_], *, lazy: bool = False) -> Any:
    """Return the rows of a mask, in a container of the same kind, or in a lazy frame."""
    if isinstance(container, np.ndarray):
        return container[mask]
    if is_sequence(container):
        return [value for value, keep in zip(container, mask.tolist(), strict=True) if keep]
    if type(container).__module__.partition(".")[0] == "pyarrow" and not lazy:
        import pyarrow

        return container.filter(pyarrow.array(mask))
    bounded = _narwhals(container, "X").filter(mask.tolist())
    return (bounded.lazy() if lazy else bounded).to_native()


def rows_in(container: Any, name: str) -> int:
    """How many rows a container of a known kind has."""
    if isinstance(container, np.ndarray):
        if container.ndim == 0:
            raise ValueError(f"{name} must have a row for each example; got one number")
        return len(container)
    if is_sequence(container):
        return len(container)
    return len(_narwhals(container, name))


def _is_series(frame: Any) -> bool:
    import narwhals.stable.v2 as nw

    return isinstance(frame, nw.Series)


def _narwhals(container: Any, name: str) -> Any:
    """A frame or series of narwhals, of one that is no longer lazy; refused by its type if it is none."""
    import narwhals.stable.v2 as nw
    from narwhals.exceptions import DuplicateError

    if isinstance(container, (nw.DataFrame, nw.Series)):
        return container
    try:
        wrapped = nw.from_native(_known(container), pass_through=True, allow_series=True)
    except DuplicateError:
        raise ValueError(f"{name} has several columns of one name; rename them") from None
    if isinstance(wrapped, nw.LazyFrame):
        return wrapped.collect()
    if isinstance(wrapped, (nw.DataFrame, nw.Series)):
        return wrapped
    kind = type(container)
    raise TypeError(f"{name} must be {ACCEPTED}; got a {kind.__module__}.{kind.__qualname__}")


def _known(container: Any) -> Any:
    """Vectors of pandas, Dask and pyarrow that narwhals does not know, as series; and all else as it is."""
    if type(container).__module__.startswith("dask.") and getattr(container, "ndim", None) == 1:
        container = container.compute()
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None:
        if isinstance(container, pandas.MultiIndex):
            container = container.to_flat_index()
        if isinstance(container, (pandas.Index, pandas.api.extensions.ExtensionArray)):
            return pandas.Series(container)
    if arrow is not None and isinstance(container, arrow.Array):
        return arrow.chunked_array([container])
    return container


# --- features


def read_features(X: Any, groups: Any, *, n_features: int | None = None, kind: str = "number") -> tuple[Grid, Any]:
    """A table and the user ids beside it, which may be one of its columns."""
    ids = groups
    if isinstance(groups, str):
        X, ids = select_column(X, groups, "groups")
    return read_grid(X, "X", width=n_features, kind=kind), ids


def check_width(grid: Grid, n_features: int | None) -> None:
    """Refuse an array or frame with another number of columns than is public."""
    if n_features is not None and grid.shape[1] != n_features:
        raise ValueError(f"n_features is {short_repr(n_features)}, and X has {grid.shape[1]} columns")


def read_points(
    grid: Grid, largest: int, *, exact_integers: bool = False, n_columns: int | None = None
) -> npt.NDArray[Any]:
    """Read a table as whole numbers up to a public largest one; n_columns of them are needed."""
    # Beyond 2**53 - 1 doubles do not tell whole numbers apart. Columns whose types no value can change are then read
    # exactly, and so are all if their owner promises that their types are public. Others are read as doubles: one
    # missing value would make doubles of them.
    if largest <= LARGEST_WHOLE:
        return grid.numbers()
    columns = grid.vectors()
    if not (exact_integers or all(column.declared for column in columns[:n_columns])):
        _warn_of_doubles("X", largest)
    return np.column_stack([_wholes(column, exact_integers) for column in columns])


def read_point_column(container: Any, name: str, largest: int, *, exact_integers: bool = False) -> npt.NDArray[Any]:
    """A vector of numbers that are read as whole numbers up to a public largest one: see `read_points`."""
    column = read_column(container, name)
    if largest <= LARGEST_WHOLE:
        return numbers_in(column)
    if not (exact_integers or column.declared):
        _warn_of_doubles(name, largest)
    return _wholes(column, exact_integers)


def _warn_of_doubles(name: str, largest: int) -> None:
    warn(
        f"{name} may have whole numbers up to {short_repr(largest)}, and arrays of NumPy, columns of pandas and lists "
        "are read as doubles, which are exact up to 2**53 - 1: pass columns of Arrow or polars, or exact_integers=True "
        f"if the type of {name} is public"
    )


def read_codes(container: Any, name: str) -> npt.NDArray[np.int64]:
    """Read a vector of integers from 0 up to 2**53 - 1, negative ones for all else."""
    if type(container) is np.ndarray and container.ndim == 1 and container.dtype.kind in "biu":
        return _codes(container)
    return _codes(numbers_in(read_column(container, name, unwrap=False)))


# --- items


_DIGITS = re.compile(r"-?[0-9]{1,40}")


def read_items(
    container: Any, name: str, largest: int | None, *, exact_integers: bool = False
) -> list[tuple[Item | None, int]]:
    """Read a vector of items, None for what is none: each with its number of rows. `largest` is that of integers."""
    column = read_column(container, name, unwrap=False, kind="text")
    if largest is not None and largest > LARGEST_WHOLE and not (exact_integers or column.declared):
        _warn_of_doubles(name, largest)
    places, status, texts = column.cells.interned(spelling_of(column, exact=exact_integers))
    counts = np.bincount(places[status == VALUE], minlength=len(texts))
    found: list[tuple[Item | None, int]] = list(zip(_items(texts), counts.tolist(), strict=True))
    return [*found, (None, int(np.count_nonzero(status)))]


def _items(texts: list[str]) -> list[Item]:
    """Texts as items: integers where they are their digits, and otherwise by the doubles of the numbers in them."""
    # Without promises no text has the digits of an integer beyond 2**53, so that an item is the item of itself.
    spelled = iter(_interned([text for text in texts if not _DIGITS.fullmatch(text)], "doubles"))
    each = (text if _DIGITS.fullmatch(text) else next(spelled) for text in texts)
    return [int(text) if _DIGITS.fullmatch(text) else text for text in each if text is not None]


def item_of(value: object) -> Item | None:
    """The item that a public value is, integers with all their digits; None for what is none."""
    form = taken(value)
    if form[0] == "whole" or (form[0] == "decimal" and form[1].removeprefix("-").isdigit()):
        return int(form[1])
    (text,) = _interned([value], "doubles")
    return None if text is None else _items([text])[0]


def _interned(values: list[Any], spelling: Spelling) -> list[str | None]:
    """The one text of each value, None for what has none."""
    places, status, texts = of_objects(values).cells.interned(spelling)
    return [None if lack else texts[place] for place, lack in zip(places.tolist(), status.tolist(), strict=True)]


# --- labels and targets


@dataclass(frozen=True)
class Labels:
    """Public labels: two classes, or symbols."""

    labels: npt.NDArray[Any]  # with shape (k,), as given

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def falling(self) -> bool:
        """Whether these are two numbers, the second below the first."""
        return self.labels.dtype.kind in "biuf" and bool(self.labels[0] > self.labels[1])

    def texts(self, spelling: Spelling) -> list[str | None]:
        """What values are compared with."""
        return _interned(self.labels.tolist(), spelling)


def read_classes(classes: Any) -> Labels:
    """Read a pair of labels: two distinct numbers or two distinct texts."""
    pair = _read_labels(classes, "classes")
    if pair is None or len(pair) != 2:
        raise ValueError(
            f"classes must be two distinct labels of one type, numbers or texts, or None; got {short_repr(classes)}"
        )
    return pair


def read_names(names: Any, name: str) -> Labels:
    """Read two or more distinct numbers, or as many distinct texts."""
    labels = _read_labels(names, name)
    if labels is None or len(labels) < 2:
        raise ValueError(
            f"{name} must be a sequence of two or more distinct labels of one type: texts, bytes, or numbers, of which "
            f"integers are within 2**53 - 1 of 0; got {short_repr(names)}"
        )
    return labels


def _read_labels(labels: Any, name: str) -> Labels | None:
    try:
        listed = list(labels)
        array = np.asarray(labels)
        plain = array.shape == (len(listed),) and array.tolist() == listed
    except (TypeError, ValueError):
        return None
    if not plain or isinstance(labels, (str, bytes)) or array.dtype.kind not in "biufUS":
        return None
    if array.dtype.kind in "iu" and np.any(np.abs(array.astype(np.float64)) > LARGEST_WHOLE):
        return None
    made, first = Labels(array), dict[str, Any]()
    for label, text in zip(array.tolist(), made.texts("doubles"), strict=True):
        if text is None:
            return None
        if text in first:
            raise ValueError(
                f"{name}: {short_repr(first[text])} and {short_repr(label)} read alike; give distinct labels "
                "(docs/reading.md)"
            )
        first[text] = label
    return made


NEITHER = 2
"""The label of a row that has none of the two classes."""


def read_labels(y: Any, classes: Labels, n_rows: int) -> npt.NDArray[np.uint8]:
    """Return which of the two classes each label is, as 0 and 1, and `NEITHER` for what is none of them."""
    places = places_of(label_column(y, n_rows), classes)
    return np.where(places < 0, NEITHER, places).astype(np.uint8)


def have_labels(labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows have one of the two classes, or a number as their target."""
    known: npt.NDArray[np.bool_] = ~np.isnan(labels) if labels.dtype.kind == "f" else labels != NEITHER
    return known


def label_column(y: Any, n_rows: int) -> Column:
    """The column of labels."""
    column = read_column(y, "y", kind="text")
    _check_length(column, n_rows)
    return column


def places_of(column: Column, labels: Labels) -> npt.NDArray[np.int64]:
    """Return which of the labels has the one text of each value, from 0 up; -1 for all that are none of them."""
    spelling = spelling_of(column)
    place = {text: number for number, text in enumerate(labels.texts(spelling))}
    places, status, texts = column.cells.interned(spelling)
    table = np.array([*(place.get(text, -1) for text in texts), -1], dtype=np.int64)
    return table[np.where(status == VALUE, places, len(texts))]


def read_numbers(container: Any, name: str) -> Floats:
    """Read a vector of numbers, NaN for what is none."""
    return numbers_in(read_column(container, name))


def read_targets(y: Any, n_rows: int) -> Floats:
    """Read a number for each row, NaN for what is none."""
    column = read_column(y, "y")
    _check_length(column, n_rows)
    return numbers_in(column)


def _check_length(column: Column, n_rows: int) -> None:
    if len(column) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(column)}]")
