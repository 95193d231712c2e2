"""Whatever people bring their data in, as columns: read by what the container is, never by what is in it.

* NumPy arrays of numbers, bools and texts are typed. Arrays of objects are read object by object.
* Lists and all other sequences are read object by object, to a depth that is public: two for tables, one for vectors.
* Frames and series (pandas, polars, pyarrow and the others that narwhals knows, lazy ones too) are typed by column.
  Columns of objects are read object by object.
* What is of no known kind is refused before a value is looked at.

The type, the shape and the columns of a container are public. But what one person's missing or odd value can flip
decides nothing: pandas and NumPy make doubles of integers for one missing value, and objects of numbers for one text,
so integers, doubles and objects are read by one rule. In nullable and Arrow columns, and in lists, nothing flips.
"""

from __future__ import annotations

import array
import math
import sys
from collections import UserString, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.users.values import LARGEST_WHOLE, code_of, item_of, number_of, numbers_of, whole_of

Kind: TypeAlias = Literal["number", "text", "object", "other"]
Array: TypeAlias = npt.NDArray[Any]

ACCEPTED = "a NumPy array, a list or another sequence, or a frame or series of pandas, polars or pyarrow"
_KINDS: dict[str, Kind] = {"b": "number", "i": "number", "u": "number", "f": "number", "U": "text", "S": "text"}
_KINDS |= {"T": "text", "O": "object"}


@dataclass(frozen=True)
class Column:
    """One column, as it was given.

    Attributes
    ----------
    values : ndarray with shape (rows,)
        Of numbers, of texts, or of objects.
    kind : {"number", "text", "object", "other"}
        What the type of the column says that its values are. Texts may be held as objects.
    missing : ndarray of bool with shape (rows,), or None
        Where a typed column has no value. What `values` has there means nothing.
    dtype : str
        The type in its owner's words, for messages.
    fixed : bool
        Whether the type stays what it is whatever is missing, so that long integers may be read exactly.
    category : bool
        Whether it is a column of categories, whose values are of this kind.
    """

    values: Array
    kind: Kind
    missing: npt.NDArray[np.bool_] | None
    dtype: str
    fixed: bool
    category: bool = False

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> npt.NDArray[np.float64]:
        """The values as doubles, NaN for what is no number."""
        if self.values.dtype.kind in "biuf":
            with np.errstate(all="ignore"):
                found = self.values.astype(np.float64)
            if self.missing is not None:
                found[self.missing] = np.nan
            return found
        return numbers_of(self.values, len(self))

    def wholes(self, *, exact_integers: bool = False) -> npt.NDArray[np.uint64]:
        """The values as whole numbers from 0 to 2**64 - 1: rounded up, clamped, and 0 for what is no number.

        Exactly if the type of the column says for good what they are, or its owner does; otherwise as doubles.
        """
        exact = self.fixed or exact_integers
        if exact and self.values.dtype.kind in "iu":
            found = np.maximum(self.values, 0).astype(np.uint64)
            if self.missing is not None:
                found[self.missing] = 0
            return found
        if exact and self.values.dtype.kind == "O":
            return np.fromiter(map(_whole, self.values), dtype=np.uint64, count=len(self))
        with np.errstate(all="ignore"):
            up = np.ceil(self.numbers())
        beyond = up >= 2.0**64
        found = np.where((up > 0) & ~beyond, up, 0.0).astype(np.uint64)
        found[beyond] = 2**64 - 1
        return found

    def items(self, *, exact_integers: bool = False) -> list[int | str | bytes | None]:
        """The values as integers, texts or bytes, None for all else.

        Integers beyond 2**53 - 1 are items only where the type of the column says so for good: see the module.
        """
        found = [item_of(value) for value in self.objects()]
        if self.fixed or exact_integers:
            return found
        return [None if isinstance(item, int) and abs(item) > LARGEST_WHOLE else item for item in found]

    def codes(self) -> npt.NDArray[np.int64]:
        """The values as the integers that they are, from 0 up; negative ones for all else. For small public ranges.

        Bools and whole floats are integers. Arrays of int64 are taken as they are: what is in them decides nothing.
        """
        if self.values.dtype.kind in "biu":
            found = self.values.astype(np.int64, copy=False)
        elif self.values.dtype.kind == "f":
            with np.errstate(all="ignore"):
                doubles = self.values.astype(np.float64)
                whole = (doubles >= 0) & (doubles <= LARGEST_WHOLE) & (doubles == np.floor(doubles))
            found = np.where(whole, doubles, -1.0).astype(np.int64)
        else:
            found = np.fromiter(map(code_of, self.values), dtype=np.int64, count=len(self))
        return found if self.missing is None else np.where(self.missing, -1, found)

    def objects(self) -> list[object]:
        """The values one by one, None for those that are missing."""
        listed: list[object] = self.values.tolist() if self.values.dtype.kind in "biufUST" else list(self.values)
        if self.missing is None:
            return listed
        return [None if gone else value for value, gone in zip(listed, self.missing.tolist(), strict=True)]


def _whole(value: object) -> int:
    exact = whole_of(value)
    if exact is None:
        number = number_of(value)
        exact = 0 if math.isnan(number) else math.ceil(min(max(number, 0.0), 2.0**64))
    return min(max(exact, 0), 2**64 - 1)


@dataclass(frozen=True)
class Grid:
    """A table: an array as it was given, or columns.

    Attributes
    ----------
    block : ndarray with shape (rows, columns), or None
        A typed array of numbers.
    columns : tuple of Column
        Empty where there is a block.
    names : tuple of str, or None
        Of a frame's columns.
    native : object
        What scikit-learn is to see of it: a frame, or the block.
    fixed : bool
        Of a block, as of columns.
    """

    block: Array | None
    columns: tuple[Column, ...]
    names: tuple[str, ...] | None
    native: Any
    fixed: bool

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        if self.block is not None:
            return self.block.shape[0], self.block.shape[1]
        return (len(self.columns[0]) if self.columns else 0), len(self.columns)

    def numbers(self) -> Array:
        """All values as numbers, with shape (rows, columns): a block as it is, else doubles, NaN for what is none."""
        if self.block is not None:
            return self.block
        return np.column_stack([column.numbers() for column in self.columns])

    def wholes(self, *, exact_integers: bool = False) -> npt.NDArray[np.uint64]:
        """All values as `Column.wholes`."""
        columns = self.columns
        if self.block is not None:
            columns = tuple(Column(column, "number", None, str(column.dtype), self.fixed) for column in self.block.T)
        return np.column_stack([column.wholes(exact_integers=exact_integers) for column in columns])

    def codes(self) -> npt.NDArray[np.int64]:
        """All values as `Column.codes`, row by row in one block of memory."""
        if self.block is None:
            return np.column_stack([column.codes() for column in self.columns])
        flat = Column(self.block.reshape(-1), "number", None, str(self.block.dtype), self.fixed)
        return flat.codes().reshape(self.block.shape)

    def keeps_integers(self, first: int | None = None) -> bool:
        """Whether the types of the first columns say for good that long integers are what they are."""
        return self.fixed if self.block is not None else all(column.fixed for column in self.columns[:first])


# --- tables


def read_grid(container: Any, name: str, *, width: int | None = None) -> Grid:
    """A table of numbers.

    Parameters
    ----------
    container : object
        See the module.
    name : str
        Of the argument, for messages.
    width : int, optional
        The public number of columns. Lists need it, as their rows say nothing public. A row counts by its first so many
        entries; a shorter one, or what is no row, as a row of missing values; where there is one column, a bare value
        as a row.

    Raises
    ------
    TypeError, ValueError
        For containers of other kinds, and for columns of texts, dates or categories; by types and shapes alone.
    """
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
    columns = [_column_of_series(frame.get_column(column), name, unwrap=False) for column in frame.columns]
    for column, label in zip(columns, frame.columns, strict=True):
        if column.category or column.kind not in ("number", "object"):
            raise TypeError(f"{name}: the column {label!r} is of dtype {column.dtype}, and numbers are needed")
    block = _block_of(columns)
    native = frame.to_native()
    fixed = all(column.fixed for column in columns)
    return Grid(block, () if block is not None else tuple(columns), tuple(map(str, frame.columns)), native, fixed)


def _grid_of_array(table: Array, name: str, width: int | None) -> Grid:
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
            return Grid(None, columns, None, table, fixed=False)
    if table.ndim != 2:
        raise ValueError(_one_dimension(name, table.shape))
    if table.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} is of dtype {table.dtype}")
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
    return Grid(table, (), None, table, fixed=False)


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
    return Grid(None, columns, None, table, fixed)


def _entries(row: Any, width: int) -> Sequence[Any]:
    """A row's first entries; all None where it is no row that has so many."""
    entries = members_of(row)
    if entries is None:
        return [row] if width == 1 else [None] * width
    return entries[:width] if len(entries) >= width else [None] * width


def members_of(value: Any) -> list[Any] | None:
    """The members of a private value that is a list, a tuple or a vector, or None: by its type, no method of it."""
    kind: Any = type(value)
    if issubclass(kind, list):
        return list(list.__iter__(value))
    if issubclass(kind, tuple):
        return list(tuple.__iter__(value))
    if kind is deque:
        return list(value)
    if kind is np.ndarray:
        return list(value) if value.ndim == 1 else None
    pandas = sys.modules.get("pandas")
    return list(value.to_numpy()) if pandas is not None and kind is pandas.Series else None


def _block_of(columns: Sequence[Column]) -> Array | None:
    """Columns of one machine type, none of them nullable, as one array."""
    dtypes = {column.values.dtype for column in columns}
    if len(dtypes) == 1 and all(column.kind == "number" and column.missing is None for column in columns):
        return np.column_stack([column.values for column in columns])
    return None


# --- vectors


def read_column(container: Any, name: str, *, unwrap: bool = True) -> Column:
    """A vector of values, one for each row; tables of one column count as vectors.

    In lists and arrays of objects a list or tuple of one entry stands for that entry, unless it is not to be unwrapped.

    Raises
    ------
    TypeError, ValueError
        For containers of other kinds and shapes.
    """
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
        return _column_of_series(frame, name, unwrap=unwrap)
    if len(frame.columns) != 1:
        raise ValueError(f"{name} must be one column; got {len(frame.columns)} columns")
    return _column_of_series(frame.get_column(frame.columns[0]), name, unwrap=unwrap)


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
        rows = map(members_of, values)
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

    return isinstance(nw.from_native(container, pass_through=True), (nw.DataFrame, nw.LazyFrame))


def select_column(frame: Any, column: str, name: str) -> tuple[Any, Any]:
    """A frame without one of its columns, and that column; both of narwhals.

    Raises
    ------
    TypeError, ValueError
        Unless it is a frame that has the column.
    """
    if not is_frame(frame):
        raise TypeError(
            f"{name}={column!r} names a column, and X is a {type(frame).__name__}: pass a frame, or the ids"
        )
    eager = _narwhals(frame, "X")
    if column not in eager.columns:
        listed = ", ".join(map(repr, eager.columns))
        raise ValueError(f"{name}={column!r} is no column of X, whose columns are {listed}")
    return eager.drop(column), eager.get_column(column)


def take(container: Any, kept: npt.NDArray[np.bool_]) -> Any:
    """The rows that are kept, in a container of the same kind."""
    if isinstance(container, np.ndarray):
        return container[kept]
    if is_sequence(container):
        return [value for value, keep in zip(container, kept.tolist(), strict=True) if keep]
    import narwhals.stable.v2 as nw

    bounded = _narwhals(container, "X").filter(kept.tolist())
    lazy = isinstance(nw.from_native(container, pass_through=True, allow_series=True), nw.LazyFrame)
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

    if isinstance(container, (nw.DataFrame, nw.Series)):
        return container
    special = _SPECIAL.get((type(container).__module__.partition(".")[0], type(container).__name__))
    wrapped = nw.from_native(container if special is None else special(container), pass_through=True, allow_series=True)
    if isinstance(wrapped, nw.LazyFrame):
        return wrapped.collect()
    if isinstance(wrapped, (nw.DataFrame, nw.Series)):
        return wrapped
    kind = type(container)
    raise TypeError(f"{name} must be {ACCEPTED}; got a {kind.__module__}.{kind.__qualname__}")


def _pandas_series(values: Any) -> Any:
    import pandas as pd

    return pd.Series(values.to_flat_index() if isinstance(values, pd.MultiIndex) else values)


def _arrow_column(values: Any) -> Any:
    import pyarrow as pa

    return pa.chunked_array([values])


_PANDAS = (
    "Index MultiIndex RangeIndex CategoricalIndex DatetimeIndex Categorical IntegerArray FloatingArray BooleanArray "
    "StringArray ArrowStringArray ArrowExtensionArray DatetimeArray NumpyExtensionArray"
)
_ARROW = (
    "BooleanArray Int8Array Int16Array Int32Array Int64Array UInt8Array UInt16Array UInt32Array UInt64Array NullArray "
    "Decimal128Array HalfFloatArray FloatArray DoubleArray StringArray LargeStringArray StringViewArray "
    "DictionaryArray BinaryArray Date32Array"
)
_SPECIAL: dict[tuple[str, str], Callable[[Any], Any]] = {
    **{("pandas", kind): _pandas_series for kind in _PANDAS.split()},
    **{("pyarrow", kind): _arrow_column for kind in _ARROW.split()},
}
"""Vectors that are no series, and how they become one."""


def _column_of_series(series: Any, name: str, *, unwrap: bool = True) -> Column:
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
    if dtype.is_integer() or isinstance(dtype, nw.Boolean):
        gone = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
        filled = series.fill_null(False if isinstance(dtype, nw.Boolean) else 0).to_numpy()
        return Column(_machine(filled), "number", gone if gone.any() else None, label, fixed=True)
    if dtype.is_float():
        gone = np.asarray(series.is_null().to_numpy(), dtype=np.bool_)
        return Column(
            _machine(series.fill_null(0.0).to_numpy()), "number", gone if gone.any() else None, label, fixed=True
        )
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        return _column_of_categories(native, series, label)
    if isinstance(dtype, nw.String):
        return Column(_objects(series), "text", None, label, fixed=True)
    if isinstance(dtype, (nw.Decimal, nw.Object)) or _is_null_type(native):
        return Column(_objects(series), "object", None, label, fixed=True)
    return Column(_objects(series), "other", None, label, fixed=True)


def _machine(values: Array) -> Array:
    """Numbers of a machine type."""
    return values if values.dtype.kind in "biuf" else values.astype(np.float64)


def _is_null_type(native: Any) -> bool:
    """Whether a column's type is that of no value at all."""
    return str(getattr(native, "dtype", getattr(native, "type", ""))).lower() == "null"


def _objects(series: Any) -> Array:
    return object_array(series.to_list())


def _column_of_categories(native: Any, series: Any, label: str) -> Column:
    """The values that categories stand for: numbers, texts or others, as the type of the categories says."""
    import narwhals.stable.v2 as nw

    categories: Any = getattr(getattr(native, "cat", None), "categories", None)
    if isinstance(getattr(categories, "dtype", None), np.dtype) and categories.dtype.kind in "biuf":
        held = _column_of_array(np.asarray(native.astype(object)), "categories")
        return Column(held.values, "number", None, f"{label} of {categories.dtype}", fixed=True, category=True)
    texts = categories is None or str(getattr(categories, "dtype", "")) in ("object", "str", "string")
    values = _objects(series.cast(nw.String)) if categories is None else _objects(series)
    return Column(values, "text" if texts else "other", None, label, fixed=True, category=True)
