"""Whose rows are whose: user ids in one canonical form, users' rows as learners see them, and how many rows count."""

from __future__ import annotations

import datetime
import math
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from userdp.exact.encoding import INTEGER_TYPES
from userdp.exact.numbers import check_count, short_repr
from userdp.users.containers import (
    Column,
    as_objects,
    check_width,
    collected,
    is_sequence,
    object_array,
    read_classes,
    read_column,
    read_features,
    read_labels,
    read_targets,
    rows_in,
    select_column,
    take,
)
from userdp.users.sanitize import LARGEST_WHOLE

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
    """Rows by user."""

    codes: npt.NDArray[np.uint32]  # whose row it is, from 0 to n_users - 1
    n_users: int  # public


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
    if match := _UUID.fullmatch(bare):
        return match[1].replace("-", "")
    if match := _INTEGER.fullmatch(bare):
        return (match[1] or "") + match[2] if match[2] != "0" else "0"
    if match := _CLOCK.fullmatch(bare):
        day, minutes, seconds, parts = match.groups()
        clock = f"{minutes}:{seconds or '00'}.{(parts or '').rstrip('0')}"
        return day if clock == "00:00:00." else f"{day} {clock}"
    return text


def _types_of(key: Key) -> Any:
    """The types of an id and of its parts."""
    kind, value = key
    return tuple(map(_types_of, value)) if kind == "tuple" else kind


# --- many ids


def read_ids(groups: Any, n_rows: int, *, compared: bool = True) -> tuple[npt.NDArray[np.uint32], list[Key]]:
    """Return user ids as numbers from 0, one for each row, and the canonical form of the id that has each number."""
    # Numbers are in an order of the ids themselves: where a user's rows are moves nobody. With compared, ids of several
    # types that read alike are refused; otherwise they are different users.
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
        users = as_objects(distinct)
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
        ids = list(groups)
        kinds = set(map(type, ids))
        if kinds == {int} and max(map(abs, ids)) < 2**63:
            return Column(np.array(ids, dtype=np.int64), "number", None, "int", fixed=True)
        return _as_objects(ids)
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
    """Return whose rows they are; users are numbered as they are enrolled, otherwise in the order of their ids."""
    # With a public list, users without rows count too, and ids of several types that read alike are different users.
    # Errors are about the public list of users and name rows, never what is in them.
    if enrolled is None:
        codes, keys = read_ids(groups, n_rows)
        return Users(codes, len(keys))
    everybody = _enrolled(enrolled)
    code_of = {user: code for code, user in enumerate(everybody)}
    if len(code_of) != len(everybody):
        raise ValueError("enrolled lists a user twice; give every user id once")
    codes, keys = read_ids(groups, n_rows, compared=False)
    strangers = [code for code, key in enumerate(keys) if key not in code_of]
    if strangers:
        row = np.flatnonzero(np.isin(codes, strangers))[0]
        raise ValueError(f"groups: the user id in row {row} is not among those enrolled")
    table = np.array([code_of[key] for key in keys], dtype=np.uint32)
    return Users(table[codes] if len(keys) else codes, len(everybody))


def _enrolled(enrolled: Any) -> list[Key]:
    """The public list of users."""
    try:
        column = _vector(enrolled, "enrolled")
    except (TypeError, ValueError):
        raise TypeError(f"enrolled must be a sequence of user ids; got {short_repr(enrolled)}") from None
    if column.missing is not None:
        raise ValueError(f"enrolled: entry {np.flatnonzero(column.missing)[0]} has no user id")
    return _keys(column.objects(), "enrolled", "entry")


Floats = npt.NDArray[np.float64]

LARGEST_M = 2**31 - 1
"""The most rows of a user that count anywhere."""


@dataclass(frozen=True)
class UserTable:
    """Users' rows, read so that no user's values change how another user's are read.

    Learners take these. `UserTable.read` makes one from what users have.

    Attributes
    ----------
    X : ndarray with shape (rows, features)
        Numbers, NaN for what is missing or no number: doubles in a table that was read, whatever the container.
    labels : ndarray with shape (rows,)
        uint8: 0 for the first class and 1 for the second, all 0 where there are no labels. float64 for targets.
    users : ndarray of uint32 with shape (rows,)
        Whose row it is, from 0 to n_users - 1.
    n_users : int
        Public. A user may have no rows.
    m : int
        Public: the most rows that a user has, or, where they are not capped, how many are expected.
    """

    X: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    users: npt.NDArray[np.uint32]
    n_users: int
    m: int

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any = None,
        *,
        groups: Any,
        m: int,
        classes: Any = None,
        enrolled: Any = None,
        n_features: int | None = None,
        capped: bool = True,
    ) -> UserTable:
        """Read users' rows.

        Parameters
        ----------
        X : array, sequence of rows, or frame, with shape (rows, features)
            Numbers. See the Notes.
        y : array, sequence, or series with shape (rows,), optional
            Labels, with `classes`; otherwise numbers.
        groups : array, sequence, or series with shape (rows,), or str
            User ids: integers, texts, bytes, UUIDs, dates, bools, or tuples of these. A str names a column of X, which
            is then a frame; that column is no feature.
        m : int
            The public number of rows that count of each user.
        classes : pair of labels, optional
            Public. What is neither counts as the first.
        enrolled : sequence of user ids, optional
            The public list of all users. By default those who have rows.
        n_features : int, optional
            The public number of columns: lists of rows need it, and all else must have as many.
        capped : bool
            Whether only the first m rows of each user are kept.

        Notes
        -----
        What a container *is* decides how it is read: its type, its shape, and the types of its columns, which are
        taken as public. Columns of texts, dates or categories are refused where numbers are needed, and so are typed
        labels of another kind than `classes`.

        Rows of `X`, `y` and `groups` are matched by position, as in scikit-learn: indexes of pandas are not looked at.
        Of lazy frames, whose rows may come in another order each time, name the column of ids.

        What is *in* a container decides nothing. Lists and columns of objects are read object by object; a number, or
        a text that says one, is that number, and everything else is missing. All numbers are read as doubles, because
        pandas and NumPy make doubles of integers as soon as one is missing.

        Examples
        --------
        >>> table = UserTable.read([[1], [2], [None]], ["no", "yes", 7], groups=["ann", "bob", "ann"], m=2,
        ...     classes=("no", "yes"), n_features=1)
        >>> table.X.tolist(), table.labels.tolist(), table.users.tolist(), table.n_users
        ([[1.0], [2.0], [nan]], [0, 1, 0], [0, 1, 0], 2)
        """
        grid, ids = read_features(X, groups, n_features=n_features)
        check_width(grid, n_features)
        n_rows, _ = grid.shape
        users = encode_users(ids, n_rows, enrolled)
        if y is None:
            labels: npt.NDArray[Any] = np.zeros(n_rows, dtype=np.uint8)
        elif classes is None:
            labels = read_targets(y, n_rows)
        else:
            labels = read_labels(y, read_classes(classes), n_rows)
        table = cls(grid.numbers(), labels, users.codes, users.n_users, check_count(m, "m"))
        return table.capped() if capped else table

    @property
    def n_columns(self) -> int:
        """Columns of X; 1 where it is a vector."""
        return int(self.X.shape[1]) if self.X.ndim == 2 else 1

    def capped(self) -> UserTable:
        """The same with the first m rows of each user."""
        if len(self.users) <= self.m:
            return self
        counted = first_rows(Users(self.users, self.n_users), self.m)
        if counted.all():
            return self
        return UserTable(self.X[counted], self.labels[counted], self.users[counted], self.n_users, self.m)

    def first(self, m: int) -> UserTable:
        """The same with at most m rows of each user: the first."""
        if m >= self.m:
            return self
        return UserTable(self.X, self.labels, self.users, self.n_users, m).capped()


def first_rows(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row is among its user's first m."""
    from userdp import _core

    first, _ = _core.first_rows(users.codes, users.n_users, min(m, 2**32 - 1))
    return first


Rule = Literal["first", "random"]


def bound_contributions(
    X: Any, y: Any, groups: Any, *, m: int, rule: Rule = "first", enrolled: Any = None
) -> tuple[Any, Any, Any]:
    """Keep at most m rows of each user: the first step for users who contribute unequally.

    Parameters
    ----------
    X : array, sequence, or frame with shape (rows, ...)
    y : array, sequence, or series with shape (rows,), or None
    groups : array, sequence, or series with shape (rows,), or str
        User ids: integers, texts, bytes, UUIDs, dates, bools, or tuples of these. A str names a column of X, a frame.
    m : int
        The most rows of a user that are kept, >= 1. Public: choose it without looking at the data.
    rule : {"first", "random"}
        Which rows of a user with more than m are kept: the first m in the order given, or a uniform set of m, drawn
        from the operating system's generator.
    enrolled : sequence, optional
        The public list of all users. It settles that ids that read alike, such as 7 and "7", are different users.

    Returns
    -------
    X, y, groups
        The rows that are kept, in their order, in containers of the kinds that were given; y is None if it was, and
        groups is a str if it was. Nothing is read but the ids.

    Notes
    -----
    Which rows of a user are kept depends on that user's rows only (and on fresh randomness). So replacing one user
    changes the rows of that user only: the result has the same neighbors as the input, and any user-level guarantee
    of what follows holds for the input. The number of rows of the result is private, like that of the input.

    Users with fewer than m rows keep them all. Learners that count users count such a user by rate: w mistakes in r < m
    rows as ceil(w m / r) in m. A user without rows counts for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, groups = bound_contributions(np.arange(5), None, ["ann", "bob", "ann", "ann", "bob"], m=2)
    >>> X.tolist(), groups
    ([0, 1, 2, 4], ['ann', 'bob', 'ann', 'bob'])
    """
    most = check_count(m, "m")
    if rule not in ("first", "random"):
        raise ValueError(f"rule must be 'first' or 'random'; got {short_repr(rule)}")
    rows, labels = collected(X), collected(y)
    n_rows = rows_in(rows, "X")
    if y is not None and rows_in(labels, "y") != n_rows:
        raise ValueError(f"y must be a vector of {n_rows} labels, one for each row of X; got {rows_in(labels, 'y')}")
    column = isinstance(groups, str)
    ids = select_column(rows, groups, "groups")[1] if column else collected(groups)
    users = encode_users(ids, n_rows, enrolled)
    counted = first_rows(users, most) if rule == "first" else _random_rows(users, most)
    return (
        take(rows, counted, lazy=rows is not X),
        None if y is None else take(labels, counted, lazy=labels is not y),
        groups if column else take(ids, counted, lazy=ids is not groups),
    )


def _random_rows(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row is among m of its user's that are drawn: those with the least of independent keys of 64 bits."""
    n_rows = len(users.codes)
    keys = np.frombuffer(os.urandom(8 * n_rows), dtype=np.uint64)
    order = np.lexsort((keys, users.codes))
    drawn = np.zeros(n_rows, dtype=np.bool_)
    drawn[order] = first_rows(Users(users.codes[order], users.n_users), m)
    return drawn
