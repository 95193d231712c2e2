"""What a deterministic function of a table returns: exact numbers by key, and how far two such outputs are apart.

Numbers are taken as what they are: floats as dyadic fractions, integers of any length. What is no finite number (NaN,
infinities, nothing, a text, an exception) stands for itself, and differs infinitely from everything else: noise that
is added to it hides nothing.
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections import deque
from collections.abc import Callable, Hashable, ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np

from userdp.exact.encoding import NAN, encode, printable

Entry: TypeAlias = "int | Fraction | str"
"""A number, or in words what stands there in place of one."""
Size: TypeAlias = "int | Fraction | float"
"""Exact, or infinite."""
NORMS = ("l0", "l1", "l2_squared", "linf")
MOST_NESTED = 8
"""Of outputs in outputs."""
RAISES = "raises"
"""The form of an output where the function raised an exception."""
KEYED = ("mapping", "set", "frame")
"""Forms in which an entry that is not there may stand for 0."""


COMPARED = ("form", "values")
"""What of two outputs is compared: all that is seen of them, or their values alone."""
EMPTY = "an empty part"
"""The entry of a part of an output that has no entries."""
PLACED = (((), "dict"),)
PLAIN_KEYS = (int, str)
"""Keys of other types may equal one of these, and look different."""
MOST_TEXT = 1000
"""Characters of a text that describes a form; of longer ones the rest is a digest."""


class Output(NamedTuple):
    """An output: what it is, its entries by key in their order, and of its parts how they look, by key too."""

    form: str
    entries: Mapping[Hashable, Entry]
    looks: tuple[tuple[Hashable, str], ...] = ()

    def identity(self, compare: str) -> Hashable:
        """Equal for equal outputs only."""
        if compare == "values":
            return self.form, frozenset(self.entries.items())
        return self.form, tuple(self.entries.items()), self.looks

    def written(self) -> tuple[str, str]:
        """What it holds, and how it looks, as texts that other processes write as well."""
        parts = [(repr(encode(key)), str(entry)) for key, entry in self.entries.items()]
        looks = [(repr(encode(key)), look) for key, look in self.looks]
        return f"{self.form} {sorted(parts)}", f"{[key for key, _ in parts]} {looks}"


class Change(NamedTuple):
    """How far two outputs are apart: how many numbers differ, the sum of changes, of their squares, and the largest."""

    l0: Size
    l1: Size
    l2_squared: Size
    linf: Size


NONE = Change(0, 0, 0, 0)
INFINITE = Change(math.inf, math.inf, math.inf, math.inf)


def worse(one: Change, other: Change) -> Change:
    """The larger of two changes in each norm."""
    return Change(*(max(a, b) for a, b in zip(one, other, strict=True)))


class UnreadableOutput(ValueError):
    """An output that is no function of keys, or whose keys nobody named."""


def form_differs(one: Output, other: Output) -> bool:
    """Whether what two outputs both have looks different: order, names, types, attributes, texts of exceptions."""
    if one.form != other.form:
        return RAISES not in (one.form, other.form)
    keys, others = one.entries.keys(), other.entries.keys()
    looks, shown = dict(one.looks), dict(other.looks)
    paths = looks.keys() | shown.keys() if keys == others else looks.keys() & shown.keys()
    return [key for key in keys if key in others] != [key for key in others if key in keys] or any(
        looks.get(path) != shown.get(path) for path in paths
    )


def change_between(one: Output, other: Output, *, missing_is_zero: bool = False, compare: str = "values") -> Change:
    """The exact change from one output to the other.

    Infinite where the forms differ, where a key is on one side only (unless it then counts as 0), and where anything
    but a number meets something else.
    """
    first, second = one.entries, other.entries
    if one.form != other.form or (compare == "form" and form_differs(one, other)):
        return INFINITE
    if one.form == RAISES:
        return NONE if first == second else INFINITE
    if first.keys() != second.keys():
        if not missing_is_zero or one.form not in KEYED:
            return INFINITE
        keys: Any = {**first, **second}
    else:
        keys = first
    steps: list[Any] = []
    for key in keys:
        a, b = first.get(key, 0), second.get(key, 0)
        if keys is not first:  # what is not there is 0, and so is a part without entries
            a, b = (0 if entry == EMPTY else entry for entry in (a, b))
        if a != b:
            if isinstance(a, str) or isinstance(b, str):
                return INFINITE
            steps.append(abs(a - b))
    if not steps:
        return NONE
    return Change(len(steps), sum(steps), sum(step * step for step in steps), max(steps))


def raised(error: BaseException) -> Output:
    """The output of a call that raised: its type, and as its look what is printed of it and of what it came from."""
    texts = []
    for cause in with_causes(error):
        try:
            text = f"{class_name(type(cause))}: {cause}"
        except Exception:
            text = f"{class_name(type(cause))} with a message that cannot be read"
        texts += [text, *(f"note {note}" for note in getattr(cause, "__notes__", ()))]
    return Output(RAISES, {(): type(error).__name__}, (((), _short(with_arrows(texts))),))


def with_causes(error: BaseException, seen: set[int] | None = None) -> Iterator[BaseException]:
    """An exception, the members of a group, and what it came from, as far as that is printed; each once."""
    cause, seen = error, set() if seen is None else seen
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        for member in getattr(cause, "exceptions", ()):
            yield from with_causes(member, seen) if isinstance(member, BaseException) else ()
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)  # type: ignore[assignment]


def with_arrows(texts: list[str]) -> str:
    """One text for what an exception came from, which no other texts have."""
    return repr(texts) if any("<-" in text for text in texts) else " <- ".join(texts)


def class_name(kind: type) -> str:
    """The name of a class, with its module's where it is not built in: others may have it, too."""
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _short(text: str) -> str:
    """A text that is told apart from all others, and that can be stored."""
    shown = printable(text)[:MOST_TEXT]
    return (
        shown
        if shown == text
        else f"{shown} (SHA-256 {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()})"
    )


def output_of(value: Any, keys: Sequence[str] | None = None) -> Output:
    """Read what a function returned.

    Parameters
    ----------
    value : object
        A number, or a mapping, a sequence, an array, a set, a series or a data frame of numbers, also nested.
    keys : sequence of str, optional
        For data frames, the columns that name a row. Without them a frame has one row, or rows by a pandas index.

    Raises
    ------
    UnreadableOutput
        When rows of a frame have no names, or two entries have the same.
    """
    kind = type(value)
    if kind is int or kind is float:
        return Output("number", {(): entry_of(value)})
    if kind is dict:
        entries = {}
        for key, item in value.items():
            number = flat_entry(item)
            if number is None or type(key) not in PLAIN_KEYS:
                return _of_parts("mapping", value, keys)
            label = label_of(key)
            if label in entries:
                raise UnreadableOutput(f"two entries have the key {key!r:.60}")
            entries[label] = number
        return Output("mapping", entries, PLACED)
    return _of_any(value, keys)


def _of_parts(form: str, value: Any, keys: Sequence[str] | None) -> Output:
    looks: dict[Hashable, str] = {}
    entries = _collected(_nested(value, keys, (), 0, looks))
    return Output(form, entries, tuple(looks.items()))


def _of_any(value: Any, keys: Sequence[str] | None) -> Output:
    value = materialized(value)
    rows = _frame_rows(value, keys)
    if rows is not None:
        looks: dict[Hashable, str] = {(): _look(value, keys)} | _label_looks(value, keys)
        return Output("frame", _collected(rows), tuple(looks.items()))
    keyed = isinstance(value, Mapping) or (_package(value) == "pandas" and hasattr(value, "index"))
    form = "mapping" if keyed else "set" if isinstance(value, (set, frozenset)) else "sequence"
    if flat_entry(value) is not None:
        form = "number"
    return _of_parts(form if _members(value) is not None else "number", value, keys)


def _look(value: Any, keys: Sequence[str] | None) -> str:
    """How a container looks, or a number with attributes; "" for other numbers, which noise makes alike."""
    kind, module = type(value), _package(value)
    if kind in _READERS or (isinstance(value, np.generic) and module == "numpy"):
        return ""
    parts: list[Any] = []
    if module == "pandas":
        parts += _pandas_look(value, keys) if hasattr(value, "index") or hasattr(value, "names") else []
        parts += [_dtype_look(value.dtype)] if hasattr(value, "dtype") else []
    elif module == "polars":
        types = value.schema.items() if hasattr(value, "schema") else [(value.name, value.dtype)]
        parts += [(name, dtype, list(getattr(dtype, "categories", ()))) for name, dtype in types]
    elif module == "pyarrow":
        columns = value.columns if hasattr(value, "columns") else [value]
        if hasattr(value, "schema"):
            parts.append(value.schema.to_string(show_field_metadata=True, truncate_metadata=False))
        for column in columns:
            chunks = getattr(column, "chunks", [column])
            parts += [
                str(column.type),
                *(chunk.dictionary.to_pylist() for chunk in chunks if hasattr(chunk, "dictionary")),
            ]
    elif isinstance(value, np.ndarray):
        parts += [value.dtype.descr if value.dtype.names else value.dtype.str, value.shape]
        if isinstance(value, np.ma.MaskedArray):
            parts += [value.data.tolist(), value.fill_value]
    elif isinstance(value, deque):
        parts.append(value.maxlen)
    if module not in ("polars", "pyarrow") and not isinstance(value, Enum):
        attributes = _attributes(value)
        if flat_entry(value) is not None and not attributes and not parts:
            return ""
        parts += [*getattr(kind, "_fields", ()), *(_of_any(attributes, keys) if attributes else ())]
    return _short(" ".join([class_name(kind), *map(repr, parts)]))


def _attributes(value: Any) -> dict[str, Any]:
    """What was set on an object: its own attributes, and slots of its classes; those of pandas and NumPy are theirs."""
    held = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else slots
        held |= {name: getattr(value, name) for name in names if hasattr(value, name)}
    theirs = _package(value) == "pandas" or isinstance(value, (np.ma.MaskedArray, Rational, Decimal, UUID))
    return {name: held[name] for name in sorted(held) if not (theirs and name.startswith("_"))}


def _pandas_look(value: Any, keys: Sequence[str] | None) -> list[Any]:
    """Names, dtypes and labels of a frame, a series or an index."""
    index = getattr(value, "index", value)
    parts: list[Any] = [getattr(value, "attrs", {}), getattr(value, "flags", None)]
    if hasattr(value, "columns"):
        columns = value.columns
        parts += [*columns.names, class_name(type(columns)), _dtype_look(columns.dtype), *map(_key_look, columns)]
        parts += map(_dtype_look, value.dtypes)
    elif value is not index:
        parts.append(value.name)
    levels = getattr(index, "levels", [index])
    parts += [class_name(type(index)), *index.names, *(_dtype_look(level.dtype) for level in levels)]
    parts.append(getattr(index, "freq", None))
    if type(index).__name__ == "RangeIndex":
        parts += [index.start, index.step]
    elif keys is not None:  # otherwise they are the keys
        parts += map(_key_look, index)
    return parts


def _key_look(key: Any) -> str:
    """What tells a key from others that equal it: 1 from 1.0 and True, 0.0 from -0.0, one time zone from another."""
    if isinstance(key, tuple):
        return f"{class_name(type(key))} of {', '.join(map(_key_look, key))}"
    text = object.__repr__(key) if isinstance(key, Enum) else repr(key)
    return class_name(type(key)) if " at 0x" in text else f"{class_name(type(key))} {_short(text)}"


def _label_looks(value: Any, keys: Sequence[str] | None) -> dict[Hashable, str]:
    """Of labels of a frame's rows that may equal others; dtypes are in its own look."""
    if keys is not None or not hasattr(value, "index") or type(value.index).__name__ == "RangeIndex":
        return {}
    return {(label_of(one), "key"): _key_look(one) for one in value.index if type(one) not in PLAIN_KEYS}


def _dtype_look(dtype: Any) -> Any:
    """A type of a pandas column; of categories, which ones there are."""
    return (list(dtype.categories), dtype.ordered) if hasattr(dtype, "categories") else repr(dtype)


def _package(value: Any) -> str:
    """Where a type is from; packages that are not loaded need not be asked."""
    return type(value).__module__.partition(".")[0]


def materialized(value: Any) -> Any:
    """What is computed when it is asked for, computed."""
    module = _package(value)
    if module == "polars" and hasattr(value, "collect"):
        return value.collect()
    if isinstance(value, Iterator):
        return list(value)
    if isinstance(value, np.ndarray) and value.shape == () and not isinstance(value, np.ma.MaskedArray):
        return value[()]
    return value


def _frame_rows(value: Any, keys: Sequence[str] | None) -> list[tuple[Hashable, Entry]] | None:
    """The numbers of a data frame by key and column; None for what is no frame."""
    module = _package(value)
    if module == "pandas" and hasattr(value, "columns"):
        names, table = list(value.columns), [list(value[name]) for name in value.columns]
        index = None if type(value.index).__name__ == "RangeIndex" else list(value.index)
    elif module == "polars" and hasattr(value, "get_columns"):
        names, table, index = list(value.columns), [column.to_list() for column in value.get_columns()], None
    elif module == "pyarrow" and hasattr(value, "column_names"):
        names, table, index = list(value.column_names), [column.to_pylist() for column in value.columns], None
    else:
        return None
    if len(set(names)) < len(names):
        raise UnreadableOutput(f"the columns of the output are not distinct: {names!r:.100}")
    number = len(table[0]) if table else 0
    if keys is not None:
        if lacking := [key for key in keys if key not in names]:
            raise UnreadableOutput(f"keys: the output has no column {lacking[0]!r}; it has {names!r:.100}")
        places = [names.index(key) for key in keys]
        labels: list[Hashable] = [tuple(label_of(table[place][row]) for place in places) for row in range(number)]
    elif index is not None:
        labels = [label_of(one) for one in index]
    elif number <= 1:
        labels = [()] * number
    else:
        raise UnreadableOutput(
            f"keys: the output is a frame of {number} rows, and rows have no order; name the columns that tell them "
            f"apart, of {names!r:.100}"
        )
    shown = [(name, column) for name, column in zip(names, table, strict=True) if keys is None or name not in keys]
    if not shown:  # which keys there are is all that is said
        return [((label, ""), 1) for label in labels]
    return [((label, name), entry_of(column[row])) for row, label in enumerate(labels) for name, column in shown]


def _members(value: Any) -> list[tuple[Any, Any]] | None:
    """The parts of a container with their keys; None for what has no parts."""
    module = _package(value)
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, (set, frozenset)):
        return [(member, 1) for member in sorted(value, key=repr)]
    if module == "pandas" and hasattr(value, "index") and hasattr(value, "to_list"):
        return list(zip(value.index, value.to_list(), strict=True))
    if hasattr(value, "tolist") and not isinstance(value, np.generic):
        listed = value.tolist()
        return list(enumerate(listed)) if isinstance(listed, list) else None
    if module in ("polars", "pyarrow") and hasattr(value, "to_list" if module == "polars" else "to_pylist"):
        return list(enumerate(value.to_list() if module == "polars" else value.to_pylist()))
    if isinstance(value, (list, tuple, deque, ValuesView, KeysView, ItemsView)):
        return list(enumerate(value))
    return None


def _nested(
    value: Any, keys: Any, path: tuple[Hashable, ...], depth: int, looks: dict[Hashable, str]
) -> Iterator[tuple[Hashable, Entry]]:
    if depth > MOST_NESTED:
        raise UnreadableOutput(f"the output is nested over {MOST_NESTED} deep")
    value = materialized(value)
    number, where = flat_entry(value), path[0] if len(path) == 1 else path
    if look := _look(value, keys):
        looks[where] = look
    if number is None:
        rows = _frame_rows(value, keys) if depth else None
        if rows is not None:
            yield from (((*path, *_as_tuple(key)), entry) for key, entry in rows)
            return
        members = _members(value)
        if members is not None:
            if depth and not members:  # that a part is there is seen, also when it is empty
                yield (*path, "empty"), EMPTY
            for key, member in members:
                place = (*path, label_of(key))
                if type(key) not in PLAIN_KEYS:
                    typed = (*place, "key")
                    looks[typed] = _key_look(key)
                yield from _nested(member, keys, place, depth + 1, looks)
            return
        number = entry_of(value)
    yield where, number


def _as_tuple(key: Hashable) -> tuple[Hashable, ...]:
    return key if isinstance(key, tuple) else (key,)


def _collected(entries: Any) -> dict[Hashable, Entry]:
    found: dict[Hashable, Entry] = {}
    for key, number in entries:
        if key in found:
            raise UnreadableOutput(f"two entries of the output have the key {key!r:.60}")
        found[key] = number
    return found


def label_of(key: Any) -> Hashable:
    """A key of an output as it is compared: one NaN, and NumPy's scalars as those of Python."""
    kind = type(key)
    if kind is str or kind is int or kind is bool or key is None:
        return key
    if isinstance(key, np.generic):
        key = key.item()
    if isinstance(key, float):
        return NAN if math.isnan(key) else key
    if isinstance(key, tuple):
        return tuple(map(label_of, key))
    if hasattr(key, "to_pydatetime") and key == key:
        key = key.to_pydatetime()
    try:
        hash(key)
    except TypeError:
        return repr(key)
    # What differs from itself, such as a missing time, would be a key that is never found again.
    label: Hashable = key if key == key else repr(key)
    return label


def entry_of(value: Any) -> Entry:
    """A number exactly; what is told apart by its text, in words.

    Raises
    ------
    UnreadableOutput
        For everything else: a text of it, such as that of a fitted model, need not say what it holds.
    """
    entry = flat_entry(value)
    if entry is not None:
        return entry
    if isinstance(value, Enum):
        return f"{type(value).__name__} {value.name!r}"
    if not isinstance(value, _IN_WORDS):
        raise UnreadableOutput(
            f"an output, or a part of it, is of the type {type(value).__name__}, which is no number; return the "
            "numbers that are released"
        )
    return f"{type(value).__name__} {value!r}"


def flat_entry(value: Any) -> Entry | None:
    """The same for numbers, texts and what stands for nothing; None for what may have parts."""
    read = _READERS.get(type(value))
    if read is not None:
        return read(value)
    if isinstance(value, np.floating):
        # A long double has no counterpart in Python.
        return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else _of_float(float(value))
    if isinstance(value, (np.timedelta64, np.datetime64)):
        return None  # some are integers, without their unit
    if isinstance(value, np.generic):
        item = value.item()
        return None if isinstance(item, np.generic) else flat_entry(item)
    if isinstance(value, float):  # of another class
        return _of_float(float.__float__(value))
    if isinstance(value, Decimal):
        return _of_decimal(value)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if type(value).__name__ in ("NAType", "NaTType"):
        return "nothing"
    if isinstance(value, str):  # of another class
        return _READERS[str](str.__str__(value))
    if isinstance(value, bytes):
        return _READERS[bytes](memoryview(value).tobytes())
    return None


def _of_float(value: float) -> Entry:
    if math.isfinite(value):
        return int(value) if value.is_integer() else Fraction(value)
    return "NaN" if math.isnan(value) else "infinity" if value > 0 else "-infinity"


def _of_decimal(value: Decimal) -> Entry:
    return Fraction(value) if value.is_finite() else _of_float(float(value) if not value.is_nan() else NAN)


_IN_WORDS = (
    *(datetime.date, datetime.time, datetime.timedelta, UUID, bytearray, range, slice),
    *(np.datetime64, np.timedelta64),
)
"""What is no number, and differs from its like exactly if its text does."""
_READERS: dict[type, Callable[[Any], Entry]] = {
    int: lambda value: value,
    bool: int,
    float: _of_float,
    Fraction: lambda value: value,
    Decimal: _of_decimal,
    type(None): lambda value: "nothing",
    str: lambda value: f"text {value!r}",
    bytes: lambda value: f"bytes {value!r}",
}
