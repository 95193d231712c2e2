"""Who is the same user: ids of a closed set of plain types, with one canonical form.

An id is an integer, a text, bytes, a UUID, a date, a time without a time zone, a bool, or a tuple of these. NumPy's
scalars and whole floats are the integers that they stand for. An id that is missing anywhere is missing: None, NaN,
NaT, an empty text, or a tuple that has one of these. Ids of other types are refused.

Texts are compared as they are: "ann", "Ann" and "ann " are three users, and so are two spellings of an accent. Whoever
has ids of several spellings makes them one before. Only ids of several *types* that read alike are looked for.

The list of ids is public, so errors may say which row has a bad one. They never say what is in a row.
"""

from __future__ import annotations

import datetime
import math
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from userdp.exact.encoding import INTEGER_TYPES
from userdp.exact.numbers import short_repr
from userdp.users.containers import Column, is_sequence, object_array, read_column, values_of
from userdp.users.values import LARGEST_WHOLE

Key: TypeAlias = "tuple[str, Any]"
"""The name of an id's type, and a plain value: equal for equal ids only, and in order for ids of one type."""

ACCEPTED = "integers, texts, bytes, UUIDs, dates, times, bools, and tuples of these"
MOST_PARTS = 64
"""Of a tuple."""
MOST_DEPTH = 4
"""Of tuples in tuples."""
MOST_BITS = 4096
"""Of an integer: Python refuses to write longer ones."""


class MissingId(ValueError):
    """There is no id."""


class UnknownId(TypeError):
    """What there is cannot be an id."""


@dataclass(frozen=True)
class Users:
    """Rows by user.

    Attributes
    ----------
    codes : ndarray of uint32 with shape (rows,)
        Whose row it is, from 0 to n_users - 1.
    n_users : int
        The number of users, public.
    """

    codes: npt.NDArray[np.uint32]
    n_users: int


# --- one id


def _of_integer(value: Any) -> Key:
    number = int(value)
    if number.bit_length() > MOST_BITS:
        raise UnknownId(f"is an integer of more than {MOST_BITS} bits; use a text")
    return "int", number


def _of_float(value: Any) -> Key:
    number = float(value)
    if math.isnan(number):
        raise MissingId
    if not (abs(number) <= LARGEST_WHOLE and number.is_integer()):
        raise UnknownId("is a float that is no whole number below 2**53; use integers or texts")
    return "int", int(number)


def _of_text(value: Any) -> Key:
    if not value:
        raise MissingId
    return "str", str(value)


def _of_bytes(value: Any) -> Key:
    if not value:
        raise MissingId
    return "bytes", bytes(value)


def _of_time(value: Any) -> Key:
    if value.tzinfo is not None:
        raise UnknownId("is a time with a time zone; use a time in UTC without one, or a text")
    # pandas counts nanoseconds too.
    clock = value.hour, value.minute, value.second, value.microsecond, getattr(value, "nanosecond", 0)
    return "datetime", (value.toordinal(), *clock)


def _of_numpy_time(value: Any) -> Key:
    if np.isnat(value):
        raise MissingId
    if np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D"):
        day = value.astype("M8[D]").item()
        if type(day) is not datetime.date:
            raise UnknownId("is a date beyond the years of datetime; use a text")
        return _key(day)
    exact = value.astype("M8[ns]")
    if exact.astype(value.dtype) != value:
        raise UnknownId("is a time beyond those of nanoseconds; use a text")
    whole = exact.astype("M8[us]")
    kind, parts = _key(whole.item())
    return kind, (*parts[:-1], int((exact - whole) / np.timedelta64(1, "ns")))


_READERS: dict[int, Callable[[Any], Key]] = {
    **{id(kind): _of_integer for kind in (int, *INTEGER_TYPES)},
    **{id(kind): lambda value: ("bool", bool(value)) for kind in (bool, np.bool_)},
    **{id(kind): _of_float for kind in (float, np.float16, np.float32, np.float64)},
    **{id(kind): _of_text for kind in (str, np.str_)},
    **{id(kind): _of_bytes for kind in (bytes, np.bytes_)},
    id(UUID): lambda value: ("UUID", value.int),
    id(datetime.date): lambda value: ("date", value.toordinal()),
    id(datetime.datetime): _of_time,
    id(np.datetime64): _of_numpy_time,
}


def _key(value: Any, depth: int = 0) -> Key:
    """The canonical form of an id."""
    if value is None:
        raise MissingId
    kind: Any = type(value)
    reader = _READERS.get(id(kind))
    if reader is not None:
        return reader(value)
    if issubclass(kind, tuple):
        parts = list(tuple.__iter__(value))
        if len(parts) > MOST_PARTS or depth > MOST_DEPTH:
            raise UnknownId("is a tuple of too many parts")
        if not parts:
            raise MissingId
        return "tuple", tuple(_key(part, depth + 1) for part in parts)
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        if value is pandas.NA or value is pandas.NaT:
            raise MissingId
        if kind is pandas.Timestamp:
            return _of_time(value)
    raise UnknownId(f"is a {kind.__name__}")


def canonical_id(user: object) -> Key:
    """The canonical form of a user id: equal for two ids exactly if they are the same user.

    Parameters
    ----------
    user : int, str, bytes, UUID, date, datetime, bool, or tuple of these
        NumPy's scalars and whole floats are the integers that they stand for.

    Returns
    -------
    (kind, value) : tuple
        Hashable; in order for ids of one kind.

    Raises
    ------
    ValueError
        For a missing id.
    TypeError
        For an object of another type.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_id(np.int32(7)) == canonical_id(7.0) == ("int", 7)
    True
    >>> canonical_id(("a", 7))
    ('tuple', (('str', 'a'), ('int', 7)))
    """
    try:
        return _key(user)
    except MissingId:
        raise ValueError("a user id is missing") from None
    except UnknownId as error:
        raise TypeError(f"a user id {error}; ids are {ACCEPTED}") from None


def id_bytes(user: object) -> bytes:
    """The canonical form of a user id as bytes, injectively: for keyed hashes of ids.

    Raises
    ------
    TypeError, ValueError
        As `canonical_id`.

    Examples
    --------
    >>> id_bytes(7) == id_bytes("7")
    False
    """
    return key_bytes(canonical_id(user))


def key_bytes(key: Key) -> bytes:
    """As `id_bytes`, of a canonical form."""
    kind, value = key
    if kind == "str":
        content = value.encode("utf-8", "surrogatepass")
    elif kind == "bytes":
        content = value
    elif kind == "tuple":
        content = b"".join(map(key_bytes, value))
    else:
        content = repr(value).encode()  # of integers, bools and tuples of integers
    tag = kind.encode()
    return b"%d:%s%d:%s" % (len(tag), tag, len(content), content)


_BOOLS = {"true": "1", "false": "0"}
_UUID = re.compile(r"(?:urn:uuid:)?\{?([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})\}?")
_INTEGER = re.compile(r"(-)?\+?0*(\d+)(?:\.0*)?")
_CLOCK = re.compile(r"(\d{4}-\d\d-\d\d)[t ](\d\d:\d\d)(?::(\d\d)(?:\.(\d+))?)?(?:z|\+00:?00)?")


def _text_of(key: Key) -> Any:
    """How an id reads as a text, the same for ids that may be one user: see `_reading`."""
    kind, value = key
    if kind == "tuple":
        return _text_of(value[0]) if len(value) == 1 else tuple(map(_text_of, value))
    if kind == "datetime":
        day, *clock, nanoseconds = value
        ending = f"{1000 * clock.pop() + nanoseconds:09}"
        return _reading(f"{datetime.date.fromordinal(day).isoformat()} {datetime.time(*clock).isoformat()}.{ending}")
    if kind == "date":
        return datetime.date.fromordinal(value).isoformat()
    if kind == "UUID":
        return UUID(int=value).hex
    return _reading(value.decode("utf-8", "surrogateescape") if kind == "bytes" else str(value))


def _reading(text: str) -> str:
    """One spelling of an integer, bool, UUID or time: 7 for "007", " 7" and "7.0", which files may have beside a 7."""
    bare = unicodedata.normalize("NFKC", text).strip().lower()
    if bare in _BOOLS:
        return _BOOLS[bare]
    if found := _UUID.fullmatch(bare):
        return found[1].replace("-", "")
    if found := _INTEGER.fullmatch(bare):
        return (found[1] or "") + found[2] if found[2] != "0" else "0"
    if found := _CLOCK.fullmatch(bare):
        day, minutes, seconds, parts = found.groups()
        clock = f"{minutes}:{seconds or '00'}.{(parts or '').rstrip('0')}"
        return day if clock == "00:00:00." else f"{day} {clock}"
    return text


def _types_of(key: Key) -> Any:
    """The types of an id and of its parts."""
    kind, value = key
    return tuple(map(_types_of, value)) if kind == "tuple" else kind


# --- many ids


def read_ids(groups: Any, n_rows: int, *, compared: bool = True) -> tuple[npt.NDArray[np.uint32], list[Key]]:
    """User ids as numbers from 0, in an order of the ids themselves: where a user's rows are moves nobody.

    Parameters
    ----------
    groups : array-like, series or column of narwhals
        One id for each row.
    n_rows : int
        How many rows there are.
    compared : bool
        Whether ids of several types that read alike are refused; otherwise they are different users.

    Returns
    -------
    codes : ndarray of uint32 with shape (n_rows,)
    keys : list
        The canonical form of the id that has each number.

    Raises
    ------
    TypeError, ValueError
        For a wrong shape, rows without an id, ids of other types, and ids of several types that read alike.
    """
    name = "groups"
    column = _vector(groups, name)
    if len(column) != n_rows:
        raise ValueError(f"{name} has {len(column)} user ids for {n_rows} rows")
    if column.missing is not None:
        raise ValueError(f"{name}: row {np.flatnonzero(column.missing)[0]} has no user id")
    kind = column.values.dtype.kind
    if kind == "f":
        column = _whole(column, name)
        kind = "i"
    if kind in "iu":
        codes, numbers = _integer_codes(column.values)
        return codes, [("int", number) for number in numbers.tolist()]
    if kind in "US":
        empty = np.flatnonzero(column.values == column.values.dtype.type())
        if empty.size:
            raise ValueError(f"{name}: row {empty[0]} has no user id")
        distinct, inverse = np.unique(column.values, return_inverse=True)
        users = values_of(distinct)
        if None not in users:
            return inverse.astype(np.uint32).reshape(-1), [_key(user) for user in users]
    keys = _keys(column.objects(), name, "row")
    first: dict[Key, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    if compared:
        _refuse_alike(first, name)
    known = sorted(first)
    code_of = {key: code for code, key in enumerate(known)}
    return np.fromiter(map(code_of.__getitem__, keys), dtype=np.uint32, count=len(keys)), known


def _vector(groups: Any, name: str) -> Column:
    """User ids as a column; tuples stay what they are."""
    if isinstance(groups, np.ndarray):
        if isinstance(groups, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array; every row needs a user id")
        groups = np.asarray(groups)
        if groups.ndim != 1:
            raise ValueError(f"{name} must be a vector, one user id for each row; got the shape {groups.shape}")
        if groups.dtype.kind in "bOmM":
            return _as_objects(list(groups))
        if groups.dtype.kind not in "iufUST":
            raise TypeError(f"{name} is an array of dtype {groups.dtype}; ids are {ACCEPTED}")
        return Column(groups, "object", None, str(groups.dtype), fixed=True)
    if is_sequence(groups):
        listed = list(groups)
        kinds = set(map(type, listed))
        if kinds == {int} and max(map(abs, listed)) < 2**63:
            return Column(np.array(listed, dtype=np.int64), "number", None, "int", fixed=True)
        return _as_objects(listed)
    column = read_column(groups, name, unwrap=False, others=True)
    return _as_objects(column.objects()) if column.values.dtype.kind in "bmM" else column


def _as_objects(values: list[Any]) -> Column:
    return Column(object_array(values), "object", None, "object", fixed=True)


def _whole(column: Column, name: str) -> Column:
    """Ids that are whole numbers among the floats."""
    values = column.values
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise ValueError(f"{name}: row {missing[0]} has no user id")
    with np.errstate(all="ignore"):
        fit = (np.abs(values) <= LARGEST_WHOLE) & (values == np.floor(values))
    if not fit.all():
        raise TypeError(f"{name} are floats that are not whole numbers below 2**53; use integers or texts")
    return Column(values.astype(np.int64), "number", None, column.dtype, fixed=True)


def _integer_codes(ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[Any]]:
    from userdp import _core

    # Flipping the first bit keeps the order of ids, also of those beyond int64.
    long = ids.dtype.kind == "u" and ids.dtype.itemsize == 8
    words = (ids.astype(np.uint64) ^ np.uint64(2**63)).view(np.int64) if long else ids.astype(np.int64, copy=False)
    codes, users = _core.user_codes(np.ascontiguousarray(words))
    return codes, (users.view(np.uint64) ^ np.uint64(2**63)) if long else users


def _keys(ids: Iterable[Any], name: str, place: str) -> list[Key]:
    keys: list[Key] = []
    for number, user in enumerate(ids):
        try:
            keys.append(_key(user))
        except MissingId:
            raise ValueError(f"{name}: {place} {number} has no user id") from None
        except UnknownId as error:
            raise TypeError(f"{name}: the id in {place} {number} {error}; ids are {ACCEPTED}") from None
    return keys


def _refuse_alike(first: dict[Key, int], name: str) -> None:
    """Refuse ids of several types that read alike, such as 7 and "7": they may be one user."""
    if len({_types_of(key) for key in first}) < 2:
        return
    read: dict[Any, tuple[Any, int]] = {}
    for key, row in first.items():
        types, there = read.setdefault(_text_of(key), (_types_of(key), row))
        if types != _types_of(key):
            raise ValueError(
                f"{name}: the ids in rows {min(row, there)} and {max(row, there)} read alike and are of different "
                "types: convert the ids to one type, or list all users in enrolled"
            )


def encode_users(groups: Any, n_rows: int, enrolled: Iterable[Any] | None = None) -> Users:
    """Read whose rows they are.

    Parameters
    ----------
    groups : array-like with shape (n_rows,)
        One id for each row; see the module.
    n_rows : int
        The number of rows.
    enrolled : sequence, optional
        The public list of all users, in which those without rows count too. By default the users who have rows. With a
        list, ids of several types that read alike are different users.

    Returns
    -------
    Users
        Numbered as they are enrolled. Otherwise in the order of the ids' types, and of ids.

    Raises
    ------
    TypeError, ValueError
        For a wrong shape, rows without an id, ids of other types, ids of users who are not enrolled, and users who are
        enrolled twice. These errors are about the public list of users and name rows, never what is in them.
    """
    if enrolled is None:
        codes, keys = read_ids(groups, n_rows)
        return Users(codes, len(keys))
    listed = _enrolled(enrolled)
    code_of = {user: code for code, user in enumerate(listed)}
    if len(code_of) != len(listed):
        raise ValueError("enrolled lists a user twice; give every user id once")
    codes, keys = read_ids(groups, n_rows, compared=False)
    strangers = [code for code, key in enumerate(keys) if key not in code_of]
    if strangers:
        row = np.flatnonzero(np.isin(codes, strangers))[0]
        raise ValueError(f"groups: the user id in row {row} is not among those enrolled")
    table = np.array([code_of[key] for key in keys], dtype=np.uint32)
    return Users(table[codes] if len(keys) else codes, len(listed))


def _enrolled(enrolled: Any) -> list[Key]:
    """The public list of users."""
    try:
        column = _vector(enrolled, "enrolled")
    except (TypeError, ValueError):
        raise TypeError(f"enrolled must be a sequence of user ids; got {short_repr(enrolled)}") from None
    if column.missing is not None:
        raise ValueError(f"enrolled: entry {np.flatnonzero(column.missing)[0]} has no user id")
    return _keys(column.objects(), "enrolled", "entry")
