"""Whatever data comes in, as columns: read by what the container is, never by what is in it.

* NumPy arrays of numbers, bools and texts are typed. Arrays of objects are read object by object.
* Lists and all other sequences are read object by object, to a depth that is public: two for tables, one for vectors.
* Frames and series (pandas, polars, pyarrow and the others that narwhals knows, lazy ones too) are typed by column.
  Columns of objects are read object by object. Lazy ones are collected once.
* What is of no known kind is refused before a value is looked at.

The type, the shape and the columns of a container are public. But what one user's missing or odd value can flip
decides nothing: pandas and NumPy make doubles of integers for one missing value, and objects of numbers for one text,
so integers, doubles and objects are read by one rule. In nullable and Arrow columns, and in lists, nothing flips.
"""

from __future__ import annotations

import array
import math
import sys
from collections import UserString, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import short_repr
from userdp.runtime import warn
from userdp.users.sanitize import LARGEST_WHOLE, code_of, item_of, number_of, real_of, text_of, to_numeric, whole_of

Kind: TypeAlias = Literal["number", "text", "object", "other"]
Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]

ACCEPTED = "a NumPy array, a list or another sequence, or a frame or series of pandas, polars or pyarrow"
_KINDS: dict[str, Kind] = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "text", "S": "text"}
_KINDS |= {"T": "text", "O": "object"}


@dataclass(frozen=True)
class Column:
    """One column, as it was given."""

    values: Array  # with shape (rows,): numbers, texts, or objects
    kind: Kind  # what the column's type says that the values are; texts may be held as objects
    missing: npt.NDArray[np.bool_] | None  # where a typed column has no value, and `values` means nothing
    dtype: str  # the type in its owner's words, for messages
    fixed: bool  # whether the type stays what it is whatever is missing, so that long integers may be read exactly
    category: bool = False  # whether it is a column of categories, whose values are of this kind

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> npt.NDArray[np.float64]:
        """The values as doubles, NaN for what is no number."""
        if self.values.dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                doubles = self.values.astype(np.float64)
            if self.missing is not None:
                doubles[self.missing] = np.nan
            return doubles
        return to_numeric(self.values, len(self))

    def wholes(self, *, exact_integers: bool = False) -> npt.NDArray[np.uint64]:
        """Return the values as whole numbers from 0 to 2**64 - 1: rounded up, clamped, and 0 for what is no number."""
        # Exactly if the type of the column says for good what they are, or its owner does; otherwise as doubles.
        exact = self.fixed or exact_integers
        if exact and self.values.dtype.kind in "iu":
            wholes = np.maximum(self.values, 0).astype(np.uint64)
            if self.missing is not None:
                wholes[self.missing] = 0
            return wholes
        if exact and self.values.dtype.kind == "O":
            return np.fromiter(map(_whole, self.values), dtype=np.uint64, count=len(self))
        with np.errstate(all="ignore"):
            up = np.ceil(self.numbers())
        beyond = up >= 2.0**64
        wholes = np.where((up > 0) & ~beyond, up, 0.0).astype(np.uint64)
        wholes[beyond] = 2**64 - 1
        return wholes

    def items(self, *, exact_integers: bool = False) -> list[int | str | bytes | None]:
        """Return the values as integers, texts or bytes, None for all else."""
        # Integers beyond 2**53 - 1 are items only where the type of the column says so for good: see the module.
        items = [item_of(value) for value in self.objects()]
        if self.fixed or exact_integers:
            return items
        return [None if isinstance(item, int) and abs(item) > LARGEST_WHOLE else item for item in items]

    def codes(self) -> npt.NDArray[np.int64]:
        """Return the values as integers from 0 up, negative ones for all else; for small public ranges."""
        # Bools and whole floats are integers. Arrays of int64 are taken as they are: what is in them decides nothing.
        if self.values.dtype.kind in "biu":
            codes = self.values.astype(np.int64, copy=False)
        elif self.values.dtype.kind == "f":
            with np.errstate(all="ignore"):
                doubles = self.values.astype(np.float64)
                whole = (doubles >= 0) & (doubles <= LARGEST_WHOLE) & (doubles == np.floor(doubles))
            codes = np.where(whole, doubles, -1.0).astype(np.int64)
        else:
            codes = np.fromiter(map(code_of, self.values), dtype=np.int64, count=len(self))
        return codes if self.missing is None else np.where(self.missing, -1, codes)

    def objects(self) -> list[object]:
        """The values one by one, None for those that are missing."""
        objects = as_objects(self.values)
        if self.missing is None:
            return objects
        return [None if gone else value for value, gone in zip(objects, self.missing.tolist(), strict=True)]


def _whole(value: object) -> int:
    exact = whole_of(value)
    if exact is None:
        number = number_of(value)
        exact = 0 if math.isnan(number) else math.ceil(min(max(number, 0.0), 2.0**64))
    return min(max(exact, 0), 2**64 - 1)


@dataclass(frozen=True)
class Grid:
    """A table: an array as it was given, or columns."""

    block: Array | None  # a typed array of numbers with shape (rows, columns)
    columns: tuple[Column, ...]  # empty where there is a block
    names: tuple[str, ...] | None  # of a frame's columns
    native: Any  # what scikit-learn is to see of it: a frame, or the block

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        if self.block is not None:
            return self.block.shape[0], self.block.shape[1]
        return (len(self.columns[0]) if self.columns else 0), len(self.columns)

    def vectors(self) -> tuple[Column, ...]:
        """The columns one by one."""
        if self.block is None:
            return self.columns
        return tuple(Column(column, "number", None, str(column.dtype), fixed=False) for column in self.block.T)

    def numbers(self) -> npt.NDArray[np.float64]:
        """Return all values as doubles with shape (rows, columns), NaN for what is none."""
        # Doubles always: one missing value makes another machine type of a column, which all others' rows would have.
        if self.block is not None:
            with np.errstate(all="ignore"):
                return self.block.astype(np.float64, copy=False)
        return np.column_stack([column.numbers() for column in self.columns])

    def wholes(self, *, exact_integers: bool = False) -> npt.NDArray[np.uint64]:
        """All values as `Column.wholes`."""
        return np.column_stack([column.wholes(exact_integers=exact_integers) for column in self.vectors()])

    def codes(self) -> npt.NDArray[np.int64]:
        """All values as `Column.codes`, row by row in one block of memory."""
        if self.block is None:
            return np.column_stack([column.codes() for column in self.columns])
        flat = Column(self.block.reshape(-1), "number", None, str(self.block.dtype), fixed=False)
        return flat.codes().reshape(self.block.shape)

    def keeps_integers(self, first: int | None = None) -> bool:
        """Whether the types of the first columns say for good that long integers are what they are."""
        return self.block is None and all(column.fixed for column in self.columns[:first])


# --- tables


def read_grid(container: Any, name: str, *, width: int | None = None, texts: bool = False) -> Grid:
    """Read a table of numbers, or of labels (texts); refused by the types and shapes of containers and columns."""
    # Lists need the public width, as their rows say nothing public. A row counts by its first so many entries; a
    # shorter one, or what is no row, as a row of missing values; where there is one column, a bare value as a row.
    if isinstance(container, np.ndarray):
        return _grid_of_array(container, name, width, texts=texts)
    if is_sequence(container):
        if isinstance(container, (array.array, range, memoryview)):
            raise ValueError(_one_dimension(name, np.shape(container)))
        return _grid_of_rows(list(container), name, width)
    frame = _narwhals(container, name)
    if _is_series(frame):
        raise ValueError(_one_dimension(name, (len(frame),)))
    if not frame.columns:
        raise ValueError(f"{name} has no columns")
    columns = tuple(_column_of_series(series, name, unwrap=False) for series in frame.iter_columns())
    for column, label in zip(columns, frame.columns, strict=True):
        if not texts and (column.category or column.kind not in ("number", "object")):
            raise TypeError(f"{name}: the column {label!r} is of dtype {column.dtype}, and numbers are needed")
    return Grid(None, columns, tuple(map(str, frame.columns)), frame.to_native())


def _grid_of_array(table: Array, name: str, width: int | None, *, texts: bool) -> Grid:
    if isinstance(table, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it, with NaN for what is missing")
    table = np.asarray(table)
    kind = _KINDS.get(table.dtype.kind, "other")
    if kind == "object":
        # One odd row makes one dimension of two: neither decides where the width is public.
        if table.ndim == 1 and width is not None:
            return _grid_of_rows(list(table), name, width, fixed=False)
        if table.ndim == 2:
            columns = tuple(Column(column, "object", None, "object", fixed=False) for column in table.T)
            return Grid(None, columns, None, table)
    if table.ndim != 2:
        raise ValueError(_one_dimension(name, table.shape))
    if table.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is of dtype {table.dtype}")
    if kind == "text" and texts and table.shape[1]:
        return Grid(None, tuple(_column_of_array(column, name) for column in table.T), None, table)
    if kind != "number":
        raise TypeError(
            f"{name} is an array of dtype {table.dtype}, and numbers are needed; pass lists as they are, or arrays of "
            "objects: NumPy makes texts of all for one text"
        )
    if table.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is required: {name} has no "
            "columns"
        )
    return Grid(table, (), None, table)


def _one_dimension(name: str, shape: tuple[int, ...]) -> str:
    return (
        f"Expected 2D array, got the shape {tuple(shape)} instead. Reshape your data: {name} needs a row for each "
        "example and a column for each feature"
    )


def _grid_of_rows(rows: list[Any], name: str, width: int | None, *, fixed: bool = True) -> Grid:
    if width is None:
        raise ValueError(
            f"{name} is a list, and the lengths of its rows are private: pass n_features, the public number of "
            "columns, or an array or a frame"
        )
    table = object_array([entry for row in rows for entry in _entries(row, width)]).reshape(len(rows), width)
    columns = tuple(Column(column, "object", None, "object", fixed) for column in table.T)
    return Grid(None, columns, None, table)


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
    if pandas is not None and kind is pandas.Series and type(value.array).__module__.startswith("pandas."):
        try:
            return list(value.array[:most])
        except Exception:  # such as a date beyond those of Python
            return None
    return None


def as_objects(vector: Array) -> list[Any]:
    """An array's values one by one; None for a text whose characters are none, at which NumPy raises."""
    if vector.dtype.kind not in "biufUST":
        return list(vector)
    try:
        objects: list[Any] = vector.tolist()
        return objects
    except (ValueError, SystemError):
        return _one_by_one(lambda place: vector[place : place + 1].tolist()[0], len(vector))


def _one_by_one(get: Callable[[int], object], length: int) -> list[object]:
    """Values by place, None where a look at one raises."""
    values: list[object] = []
    for place in range(length):
        try:
            values.append(get(place))
        except Exception:
            values.append(None)
    return values


# --- vectors


def read_column(container: Any, name: str, *, unwrap: bool = True, others: bool = False) -> Column:
    """Read a vector of values, one for each row; tables of one column count as vectors."""
    # In lists and arrays of objects a list or tuple of one entry stands for that entry, unless it is not to be
    # unwrapped. Values of other types than numbers and texts, such as dates, are looked at only if they are asked for
    # (others).
    if isinstance(container, np.ndarray):
        if isinstance(container, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array; fill it, or leave out the rows that are masked")
        return _column_of_array(np.asarray(container), name, unwrap=unwrap)
    if is_sequence(container):
        if isinstance(container, (array.array, range, memoryview)):
            return _column_of_array(np.asarray(container), name)
        return _column_of_objects(list(container), fixed=True, unwrap=unwrap)
    frame = _narwhals(container, name)
    if _is_series(frame):
        return _column_of_series(frame, name, unwrap=unwrap, others=others)
    if len(frame.columns) != 1:
        raise ValueError(f"{name} must be one column; got {len(frame.columns)} columns")
    return _column_of_series(next(frame.iter_columns()), name, unwrap=unwrap, others=others)


def _column_of_array(vector: Array, name: str, *, unwrap: bool = True) -> Column:
    if vector.ndim == 2 and vector.shape[1] == 1:
        vector = vector[:, 0]
    if vector.ndim != 1:
        raise ValueError(f"{name} should be a 1d array, got an array of shape {vector.shape} instead")
    if vector.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is of dtype {vector.dtype}")
    kind = _KINDS.get(vector.dtype.kind, "other")
    if kind == "object":
        return _column_of_objects(list(vector), fixed=False, unwrap=unwrap)
    return Column(vector, kind, None, str(vector.dtype), fixed=False)


def _column_of_objects(values: list[Any], *, fixed: bool, unwrap: bool = True) -> Column:
    if unwrap:
        rows = (members_of(value, 2) for value in values)
        values = [value if row is None or len(row) != 1 else row[0] for row, value in zip(rows, values, strict=True)]
    return Column(object_array(values), "object", None, "object", fixed)


def object_array(values: Sequence[object]) -> Array:
    """A vector of objects; NumPy asks nothing of them, as it does where arrays are made of lists."""
    return np.fromiter(values, dtype=object, count=len(values))


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
    """Vectors of pandas and pyarrow that are no series as series, and all else as it is."""
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if pandas is not None:
        if isinstance(container, pandas.MultiIndex):
            container = container.to_flat_index()
        if isinstance(container, (pandas.Index, pandas.api.extensions.ExtensionArray)):
            return pandas.Series(container)
    if arrow is not None and isinstance(container, arrow.Array):
        return arrow.chunked_array([container])
    return container


def _column_of_series(series: Any, name: str, *, unwrap: bool = True, others: bool = False) -> Column:
    """A typed column, by its type; columns of objects by their objects."""
    import narwhals.stable.v2 as nw

    native = series.to_native()
    held = getattr(native, "dtype", None)
    if isinstance(held, np.dtype):
        # pandas and those like it: what narwhals says of objects depends on the objects.
        values = series.to_numpy()
        if held.kind in "mM":
            return Column(values, "other", None, str(held), fixed=False)
        return _column_of_array(np.asarray(values), name, unwrap=unwrap)
    dtype = series.dtype
    label = str(held if held is not None else getattr(native, "type", dtype))
    if isinstance(dtype, (nw.Decimal, nw.Object, nw.Int128, nw.UInt128)) or label.lower() == "null":
        return Column(_objects(series), "object", None, label, fixed=True)
    if dtype.is_numeric() or isinstance(dtype, nw.Boolean):
        gone = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
        filled = series.fill_null(False if isinstance(dtype, nw.Boolean) else 0).to_numpy()
        values = filled if filled.dtype.kind in "biuf" else filled.astype(np.float64)
        return Column(values, "number", gone if gone.any() else None, label, fixed=True)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return _column_of_categories(native, series, label)
    if isinstance(dtype, nw.String):
        return Column(_objects(series), "text", None, label, fixed=True)
    # Values that are refused are not looked at: a date beyond those of Python would raise another error.
    return Column(_objects(series) if others else np.empty(len(series), dtype=object), "other", None, label, fixed=True)


def _objects(series: Any) -> Array:
    try:
        return object_array(series.to_list())
    except Exception:  # a text that is none, in Arrow's memory
        return object_array(_one_by_one(lambda place: series[place], len(series)))


def _column_of_categories(native: Any, series: Any, label: str) -> Column:
    """Return what categories stand for, by the type of the categories; that of objects says nothing."""
    import narwhals.stable.v2 as nw

    if label.startswith("dictionary<"):
        arrow = series.to_arrow()
        values = _narwhals(arrow.cast(arrow.type.value_type), "categories")
        return replace(_column_of_series(values, "categories", others=True), dtype=label, category=True)
    categories: Any = getattr(getattr(native, "cat", None), "categories", None)
    held = str(getattr(categories, "dtype", "str"))
    if isinstance(getattr(categories, "dtype", None), np.dtype) and categories.dtype.kind in "biuf":
        numbers = _column_of_array(np.asarray(native.astype(object)), "categories")
        return Column(numbers.values, "number", None, f"{label} of {held}", fixed=True, category=True)
    kind: Kind = "object" if held == "object" else "text" if held in ("str", "string") else "other"
    values = _objects(series if categories is not None else series.cast(nw.String))
    return Column(values, kind, None, label, fixed=True, category=True)


# --- features


def read_features(X: Any, groups: Any, *, n_features: int | None = None, texts: bool = False) -> tuple[Grid, Any]:
    """A table and the user ids beside it, which may be one of its columns."""
    ids = groups
    if isinstance(groups, str):
        X, ids = select_column(X, groups, "groups")
    return read_grid(X, "X", width=n_features, texts=texts), ids


def check_width(grid: Grid, n_features: int | None) -> None:
    """Refuse an array or frame with another number of columns than is public."""
    if n_features is not None and grid.shape[1] != n_features:
        raise ValueError(f"n_features is {short_repr(n_features)}, and X has {grid.shape[1]} columns")


def read_points(
    grid: Grid, largest: int, *, exact_integers: bool = False, n_columns: int | None = None
) -> npt.NDArray[Any]:
    """Read a table as whole numbers up to a public largest one; n_columns of them are needed."""
    # Beyond 2**53 - 1 doubles do not tell whole numbers apart. Lists, and nullable and Arrow columns, are then read
    # exactly, and so are NumPy's integers if their owner promises that their type is public. Others are read as
    # doubles, whatever their type: one missing value would make doubles of them.
    if largest <= LARGEST_WHOLE:
        return grid.numbers()
    if not (exact_integers or grid.keeps_integers(n_columns)):
        _warn_of_doubles("X", largest)
    return grid.wholes(exact_integers=exact_integers)


def read_point_column(container: Any, name: str, largest: int, *, exact_integers: bool = False) -> npt.NDArray[Any]:
    """A vector of numbers that are read as whole numbers up to a public largest one: see `read_points`."""
    column = _numeric_column(container, name)
    if largest <= LARGEST_WHOLE:
        return column.numbers()
    if not (exact_integers or column.fixed):
        _warn_of_doubles(name, largest)
    return column.wholes(exact_integers=exact_integers)


def read_items(
    container: Any, name: str, largest: int | None, *, exact_integers: bool = False
) -> list[int | str | bytes | None]:
    """Read a vector of integers, texts or bytes, None for all else; `largest` is that of integers, if they have one."""
    # Integers beyond 2**53 - 1 are items in lists, in nullable and Arrow columns, and if their owner promises that the
    # type is public.
    column = read_column(container, name, unwrap=False)
    if column.kind == "other":
        raise TypeError(f"{name} is of dtype {column.dtype}, and items are integers, texts or bytes")
    if largest is not None and largest > LARGEST_WHOLE and not (exact_integers or column.fixed):
        _warn_of_doubles(name, largest)
    return column.items(exact_integers=exact_integers)


def read_codes(container: Any, name: str) -> npt.NDArray[np.int64]:
    """Read a vector of integers from 0 up, negative ones for all else: see `Column.codes`."""
    return _numeric_column(container, name, unwrap=False).codes()


def _warn_of_doubles(name: str, largest: int) -> None:
    warn(
        f"{name} may have whole numbers up to {short_repr(largest)}, and NumPy's integers and floats are read as "
        "doubles, "
        "which are exact up to 2**53 - 1: pass nullable or Arrow columns, or exact_integers=True if the type of "
        f"{name} is public"
    )


# --- labels and targets


@dataclass(frozen=True)
class Labels:
    """Public labels of one kind: two classes, or symbols."""

    labels: npt.NDArray[Any]  # with shape (k,), as given
    kind: Literal["number", "text"]
    keys: tuple[Any, ...]  # floats, or texts, or bytes: what values are compared with


def read_classes(classes: Any) -> Labels:
    """Read a pair of labels: two distinct numbers or two distinct texts."""
    pair = _read_labels(classes)
    if pair is None or len(pair.keys) != 2:
        raise ValueError(
            f"classes must be two distinct labels of one type, numbers or texts, or None; got {short_repr(classes)}"
        )
    return pair


def read_names(names: Any, name: str) -> Labels:
    """Read two or more distinct numbers, or as many distinct texts."""
    labels = _read_labels(names)
    if labels is None or len(labels.keys) < 2:
        raise ValueError(
            f"{name} must be a sequence of two or more distinct labels of one type: texts, bytes, or numbers, of which "
            f"integers are within 2**53 - 1 of 0; got {short_repr(names)}"
        )
    return labels


def _read_labels(labels: Any) -> Labels | None:
    try:
        listed = list(labels)
        array = np.asarray(labels)
        plain = array.shape == (len(listed),) and array.tolist() == listed
    except (TypeError, ValueError):
        return None
    if not plain or isinstance(labels, (str, bytes)):
        return None
    texts = tuple(text_of(label) for label in listed)
    if None not in texts and len({type(text) for text in texts}) == 1 and len(set(texts)) == len(texts):
        return Labels(array, "text", texts)
    # Labels are compared as doubles, which tell long integers not apart, and NaN equals nothing.
    numbers = tuple(real_of(label) for label in listed)
    long = any(abs(whole_of(label) or 0) > LARGEST_WHOLE for label in listed)
    if not any(map(math.isnan, numbers)) and len(set(numbers)) == len(numbers) and not long:
        return Labels(array, "number", numbers) if array.dtype.kind in "biuf" else None
    return None


def read_labels(y: Any, classes: Labels, n_rows: int) -> npt.NDArray[np.uint8]:
    """Return which labels are the second class, as 0 and 1; all others count as the first."""
    second: npt.NDArray[np.uint8] = (places_of(label_column(y, classes, n_rows), classes) == 1).astype(np.uint8)
    return second


def label_column(y: Any, classes: Labels, n_rows: int) -> Column:
    """The column of labels, if its type may hold the classes."""
    column = read_column(y, "y")
    _check_length(column, n_rows)
    check_holds(column, classes, "y", "classes")
    return column


def check_holds(column: Column, labels: Labels, name: str, parameter: str) -> None:
    """Refuse a column none of whose values can be one of the labels, by its type."""
    wanted = {float: "numbers", str: "texts", bytes: "bytes"}[type(labels.keys[0])]
    held = {"number": "numbers", "text": "texts", "object": wanted, "other": "neither numbers nor texts"}[column.kind]
    if column.kind == "text" and column.values.dtype.kind == "S":
        held = "bytes"
    if held != wanted:
        instead = "" if column.kind == "other" else f"{parameter} as {held}, or "
        raise TypeError(
            f"{name} is of dtype {column.dtype}, whose values are {held}, and {parameter}="
            f"{short_repr(tuple(labels.labels.tolist()))} are {wanted}, so that none would ever match: pass {instead}"
            f"{name} as {wanted}"
        )


def places_of(column: Column, labels: Labels) -> npt.NDArray[np.int64]:
    """Return which of the labels each value equals, from 0 up; -1 for all that equal none."""
    if column.values.dtype.kind in "biufUS":
        keys = np.array(labels.keys)
        order = np.argsort(keys)
        values = column.numbers() if labels.kind == "number" else column.values  # NaN where a number is missing
        nearest = order[np.minimum(np.searchsorted(keys, values, sorter=order), len(keys) - 1)]
        return np.where(keys[nearest] == values, nearest, -1).astype(np.int64)
    read: Callable[[object], Any] = real_of if labels.kind == "number" else text_of
    place = {key: index for index, key in enumerate(labels.keys)}
    return np.fromiter((place.get(read(value), -1) for value in column.objects()), dtype=np.int64, count=len(column))


def read_numbers(container: Any, name: str) -> Floats:
    """Read a vector of numbers, NaN for what is none."""
    return _numeric_column(container, name).numbers()


def _numeric_column(container: Any, name: str, *, unwrap: bool = True) -> Column:
    return _checked_numbers(read_column(container, name, unwrap=unwrap), name)


def _checked_numbers(column: Column, name: str) -> Column:
    if column.category or column.kind not in ("number", "object"):
        raise TypeError(f"{name} is of dtype {column.dtype}, and numbers are needed")
    return column


def read_targets(y: Any, n_rows: int) -> Floats:
    """Read a number for each row, NaN for what is none."""
    column = read_column(y, "y")
    _check_length(column, n_rows)
    return _checked_numbers(column, "y").numbers()


def _check_length(column: Column, n_rows: int) -> None:
    if len(column) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(column)}]")
