"""Values that nobody should give, and the containers in which users bring data."""

from __future__ import annotations

import array
import datetime
import warnings
from collections import UserList, deque
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa


def _exit(*_: Any, **__: Any) -> NoReturn:
    raise SystemExit("a value has left the process")


class Exiting:
    """Whatever is asked of it, the process ends."""

    __float__ = __int__ = __index__ = __bool__ = __complex__ = __round__ = __str__ = __repr__ = __format__ = _exit
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __mul__ = __sub__ = __hash__ = _exit  # type: ignore[assignment]
    __array__ = __iter__ = __len__ = __getitem__ = __contains__ = __call__ = _exit

    def __getattr__(self, name: str) -> NoReturn:
        raise KeyboardInterrupt(name)


class Warns:
    """Warns when it is read as a number."""

    def __float__(self) -> float:
        warnings.warn("a value warns", UserWarning, stacklevel=2)
        return 1.0


class Liar:
    """Says that it is a float."""

    __class__ = float  # type: ignore[assignment]

    def __float__(self) -> float:
        raise ValueError("a value raises")


class OddFloat(float):
    """A float whose conversion raises."""

    def __float__(self) -> float:
        raise ArithmeticError("a value raises")

    __eq__ = _exit  # type: ignore[assignment]
    __hash__ = _exit  # type: ignore[assignment]


class OddInt(int):
    """An int whose conversion exits."""

    __int__ = __index__ = __float__ = __abs__ = _exit  # type: ignore[assignment]


class OddText(str):
    """A text whose comparison exits."""

    __slots__ = ()
    __eq__ = __len__ = strip = encode = _exit  # type: ignore[assignment]
    __hash__ = _exit  # type: ignore[assignment]


class OddList(list):  # type: ignore[type-arg]
    """A list that cannot be looked at."""

    __len__ = __iter__ = __getitem__ = _exit  # type: ignore[assignment]


class OddSequence(Sequence):  # type: ignore[type-arg]
    """A container of a class of its own."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        return self.values[place]


def _generator() -> Any:
    yield 1


def _tampered() -> Fraction:
    """A fraction with attributes that somebody has set."""
    fraction = Fraction(3)
    fraction._numerator = Exiting()  # type: ignore[attr-defined]
    return fraction


def _hidden() -> pd.Series[Any]:
    """A series whose methods have been replaced."""
    series = pd.Series([3, 4])
    for name in ("to_numpy", "to_list", "tolist"):
        object.__setattr__(series, name, _exit)
    return series


def no_texts(count: int) -> Any:
    """An array of texts that NumPy holds and Python has not: a look at one raises SystemError."""
    return np.full(count, 1 << 30, dtype=np.uint32).view("U1")


VALUES: dict[str, Any] = {
    "None": None,
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "a subnormal": 5e-324,
    "the largest double": 1.7976931348623157e308,
    "an empty text": "",
    "a text": "seven",
    "a number as a text": "7",
    "nan as a text": "nan",
    "a long text": "9" * 5000,
    "a surrogate": "\ud800",
    "bytes": b"\xff",
    "True": True,
    "NumPy's True": np.True_,
    "2**53 + 1": 2**53 + 1,
    "2**64": 2**64,
    "-2**63 - 1": -(2**63) - 1,
    "10**400": 10**400,
    "-10**400": -(10**400),
    "a complex number": 1j,
    "NumPy's complex number": np.complex64(2 + 1j),
    "a signalling decimal": Decimal("sNaN"),
    "a huge decimal": Decimal("1e9999"),
    "a huge fraction": Fraction(10**400, 3),
    "an empty list": [],
    "a list": [3],
    "two numbers": [3, 4],
    "a list of lists": [[3]],
    "a tuple": (3,),
    "a dict": {3: 4},
    "a set": frozenset({3}),
    "an object": object(),
    "what exits": Exiting(),
    "what warns": Warns(),
    "a liar": Liar(),
    "an odd float": OddFloat(3.0),
    "an odd int": OddInt(3),
    "an odd text": OddText("no"),
    "an odd list": OddList([3]),
    "NaT": pd.NaT,
    "NA": pd.NA,
    "NumPy's NaT": np.datetime64("NaT"),
    "a date": datetime.date(2024, 2, 29),
    "a length of time": np.timedelta64(3, "s"),
    "an array of nothing": np.array([]),
    "an array without dimensions": np.array(3.0),
    "an array of arrays": np.ones((2, 2)),
    "a masked value": np.ma.masked,
    "a long double": np.longdouble("1e4000"),
    "a function": len,
    "a class": float,
    "a generator": _generator(),
    "a view of memory": memoryview(b"abc"),
    "NotImplemented": NotImplemented,
    "an ellipsis": ...,
}


IN_LISTS: dict[str, Any] = {
    "an odd fraction": _tampered(),
    "an array of any length": np.broadcast_to(np.int8(3), 2**45),
    "texts of characters that are none": no_texts(1),
    "an odd series": _hidden(),
    "a date beyond Python's": pd.Series(pa.array([2**60], type=pa.timestamp("s")), dtype="timestamp[s][pyarrow]"),
}
"""Values with which libraries of frames hang or crash."""


def _object_array(values: list[Any]) -> Any:
    held = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        held[place] = value
    return held


def _boxed(values: list[Any]) -> Any:
    return _object_array(values)[:, None]


def _typed(dtype: str) -> Callable[[list[Any]], Any]:
    def made(values: list[Any]) -> Any:
        if any(value is None or value is pd.NA for value in values):
            values = [np.nan if value is None or value is pd.NA else value for value in values]
            return np.array(values, dtype=np.float64)[:, None]
        return np.array(values, dtype=dtype)[:, None]

    return made


def _inferred(values: list[Any]) -> Any:
    frame = pd.DataFrame({"x": values})
    # Texts, dates and complex numbers alone would make a column of another kind of one of numbers.
    assert frame["x"].dtype == object or frame["x"].dtype.kind in "biuf"
    return frame


def _polars_texts(dtype: Any) -> Callable[[list[Any]], Any]:
    def made(values: list[Any]) -> Any:
        # Polars panics at some of the others.
        assert all(value is None or (type(value) is str and value.isascii()) for value in values)
        return pl.Series(values, dtype=dtype)

    return made


TABLES: dict[str, Callable[[list[Any]], Any]] = {
    "list of rows": lambda values: [[value] for value in values],
    "list of tuples": lambda values: [(value,) for value in values],
    "tuple of rows": lambda values: tuple([value] for value in values),
    "list of values": list,
    "deque": lambda values: deque([value] for value in values),
    "UserList": lambda values: UserList([[value] for value in values]),
    "a sequence of its own": lambda values: OddSequence([[value] for value in values]),
    "list of arrays": lambda values: [_object_array([value]) for value in values],
    "array of objects": _boxed,
    "vector of rows": lambda values: _object_array([[value] for value in values]),
    "array of float64": _typed("f8"),
    "array of float32": _typed("f4"),
    "array of float16": _typed("f2"),
    "array of long doubles": _typed("g"),
    "array of int64": _typed("i8"),
    "array of int32": _typed("i4"),
    "array of uint64": _typed("u8"),
    "pandas, inferred": _inferred,
    "pandas object": lambda values: pd.DataFrame({"x": pd.Series(_object_array(values), dtype=object)}),
    "pandas, without names": lambda values: pd.DataFrame({0: pd.Series(_object_array(values), dtype=object)}),
    "pandas, columns of two levels": lambda values: pd.DataFrame(
        _typed("f8")(values), columns=pd.MultiIndex.from_tuples([("a", "x")])
    ),
    "pandas Int64": lambda values: pd.DataFrame({"x": pd.array(values, dtype="Int64")}),
    "pandas Float64": lambda values: pd.DataFrame({"x": pd.array(values, dtype="Float64")}),
    "pandas int64[pyarrow]": lambda values: pd.DataFrame({"x": pd.array(values, dtype="int64[pyarrow]")}),
    "pandas double[pyarrow]": lambda values: pd.DataFrame({"x": pd.array(values, dtype="double[pyarrow]")}),
    "polars Int64": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)}),
    "polars Int128": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Int128)}),
    "polars Float64": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Float64)}),
    "polars Float32": lambda values: pl.DataFrame({"x": pl.Series(values, dtype=pl.Float32)}),
    "polars Object": lambda values: pl.DataFrame({"x": pl.Series("x", values, dtype=pl.Object)}),
    "polars, lazy": lambda values: pl.LazyFrame({"x": pl.Series(values, dtype=pl.Int64)}),
    "polars, inferred": lambda values: pl.DataFrame({"x": values}),
    "pyarrow int64": lambda values: pa.table({"x": pa.array(values, type=pa.int64())}),
    "pyarrow double": lambda values: pa.table({"x": pa.array(values, type=pa.float64())}),
    "pyarrow decimal": lambda values: pa.table({"x": pa.array(values, type=pa.decimal128(38, 2))}),
}
"""A column of numbers. Where a library refuses a value, nobody can bring it."""

VECTORS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "deque": deque,
    "UserList": UserList,
    "a sequence of its own": OddSequence,
    "list of rows": lambda values: [[value] for value in values],
    "list of rows and values": lambda values: [[value] if place % 2 else value for place, value in enumerate(values)],
    "vector of objects": _object_array,
    "column of objects": _boxed,
    "pandas object": lambda values: pd.Series(_object_array(values), dtype=object),
    "pandas frame": lambda values: pd.DataFrame({"y": pd.Series(_object_array(values), dtype=object)}),
    "pandas Index": lambda values: pd.Index(_object_array(values), dtype=object),
    "polars Object": lambda values: pl.Series("y", values, dtype=pl.Object),
}
"""A vector of numbers or of texts."""

NUMBERS: dict[str, Callable[[list[Any]], Any]] = {
    "array of float64": lambda values: _typed("f8")(values)[:, 0],
    "array of int64": lambda values: _typed("i8")(values)[:, 0],
    "array of long doubles": lambda values: _typed("g")(values)[:, 0],
    "array": lambda values: array.array("d", values),
    "pandas, inferred": lambda values: _inferred(values)["x"],
    "pandas Int64": lambda values: pd.Series(values, dtype="Int64"),
    "pandas Float64": lambda values: pd.array(values, dtype="Float64"),
    "pandas int64[pyarrow]": lambda values: pd.Series(values, dtype="int64[pyarrow]"),
    "polars Int64": lambda values: pl.Series(values, dtype=pl.Int64),
    "polars Float64": lambda values: pl.Series(values, dtype=pl.Float64),
    "pyarrow int64": lambda values: pa.array(values, type=pa.int64()),
    "pyarrow double": lambda values: pa.chunked_array([pa.array(values, type=pa.float64())]),
}
"""A vector of numbers."""

CATEGORIES: dict[str, Callable[[list[Any]], Any]] = {
    "pandas category": lambda values: pd.Series(_object_array(values), dtype=object).astype("category"),
    "pyarrow dictionary": lambda values: pa.array(values, type=pa.int64()).dictionary_encode(),
}
"""Labels that are numbers, as categories."""

TEXTS: dict[str, Callable[[list[Any]], Any]] = {
    "array of texts": lambda values: np.array(values, dtype="U12"),
    "array of long texts": lambda values: np.array(values, dtype=np.dtypes.StringDType()),
    "pandas str": lambda values: pd.Series(values, dtype="str"),
    "pandas string[pyarrow]": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "pandas category": lambda values: pd.Series(pd.Categorical(values, categories=["no", "yes", "maybe"])),
    "polars String": _polars_texts(pl.String),
    "polars Categorical": _polars_texts(pl.Categorical),
    "polars Enum": _polars_texts(pl.Enum(["no", "yes", "maybe"])),
    "pyarrow string": lambda values: pa.array(values, type=pa.string()),
    "pyarrow dictionary": lambda values: pa.array(values, type=pa.string()).dictionary_encode(),
}
"""A vector of texts."""


def brought(make: Callable[[list[Any]], Any], values: list[Any]) -> Any:
    """A container with these values, or None where its library does not take them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make(values)
        except BaseException:
            return None
