"""Whose rows are whose: one identity of a person, users' rows as learners see them, and how many rows count."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import check_count, short_repr
from userdp.users.containers import (
    check_width,
    collected,
    have_labels,
    read_classes,
    read_column,
    read_features,
    read_labels,
    read_targets,
    rows_in,
    select_column,
    spelling_of,
    take,
)
from userdp.users.values import MISSING, READS, VALUE, Column, Spelling, of_objects

Identity: TypeAlias = "str | tuple[Identity, ...]"
"""Who somebody is: one spelling of an id, or of each part of a tuple."""
Rows = TypeVar("Rows", bound=npt.NDArray[Any])


@dataclass(frozen=True)
class Users:
    """Rows by user."""

    codes: npt.NDArray[np.uint32]  # whose row it is, from 0 to n_users - 1, of the rows that are somebody's
    n_users: int  # public
    owned: npt.NDArray[np.bool_] | None = None  # which rows are somebody's, where some are nobody's

    def of(self, rows: Rows) -> Rows:
        """Those of some rows that are somebody's."""
        return rows if self.owned is None else rows[self.owned]  # type: ignore[return-value]


# --- one id


def canonical_id(user: object, *, spelling: Spelling = "doubles") -> Identity:
    """The identity of a user id: equal for two ids exactly if they are the same user.

    Parameters
    ----------
    user : text, bytes, number, bool, date, time, UUID, or tuple of these
    spelling : {"doubles", "digits", "written"}
        Whether numbers beyond 2**53 are told apart as doubles are, or by all their digits, or every text is itself: see
        docs/reading.md.

    Returns
    -------
    str, or tuple of these
        Its one spelling: 5, 5.0, "5", "05" and b"5" are "5".

    Examples
    --------
    >>> import numpy as np
    >>> canonical_id(np.int32(7)), canonical_id(7.0), canonical_id(" 07")
    ('7', '7', '7')
    >>> canonical_id(("a", 7))
    ('a', '7')
    """
    return _identity(_form_of(user, spelling))


def id_bytes(user: object, *, spelling: Spelling = "doubles") -> bytes:
    """The identity of a user id as bytes, injectively: for keyed hashes of ids.

    Examples
    --------
    >>> id_bytes(7), id_bytes(("7", "a"))
    (b'1:s1:7', b'1:t12:1:s1:71:s1:a')
    """
    return _form_of(user, spelling)


def key_bytes(key: Identity) -> bytes:
    """As `id_bytes`, of an identity."""
    if isinstance(key, str):
        content, tag = key.encode("utf-8", "surrogatepass"), b"s"
    else:
        content, tag = b"".join(map(key_bytes, key)), b"t"
    return b"1:%s%d:%s" % (tag, len(content), content)


_DIGITS = re.compile(r"-?[0-9]{1,40}")


def plain_key(key: Identity) -> Any:
    """An identity in plain words, whatever spelling somebody gave: an int where it is the digits of one."""
    if isinstance(key, tuple):
        return tuple(map(plain_key, key))
    return int(key) if _DIGITS.fullmatch(key) else key


def order_of(key: Identity) -> tuple[Any, ...]:
    """What identities are sorted by: integers by size, then texts, then tuples."""
    if isinstance(key, tuple):
        return 2, tuple(map(order_of, key))
    return (0, int(key)) if _DIGITS.fullmatch(key) else (1, key)


def _form_of(user: object, spelling: Spelling) -> bytes:
    index = _core.TableIndex()
    _, (status,) = _core.owner_codes(index, [of_objects([user]).cells], [spelling])
    if status == MISSING:
        raise ValueError("a user id is missing")
    if status != VALUE:
        raise TypeError(
            f"a user id is a {type(user).__name__} that is none, or has a part that is; ids are {READS['id']}"
        )
    return _forms(index)[0]


def _forms(index: _core.TableIndex) -> list[bytes]:
    """The bytes of every identity of an index, by code."""
    return [key_bytes(str(value)) if isinstance(value, int) else value for value in index.values()]


def _identity(form: bytes) -> Identity:
    tag, length, content = _taken_apart(form)
    assert length == len(form), "one identity"
    if tag == b"s":
        return content.decode("utf-8", "surrogatepass")
    parts = []
    while content:
        _, length, _ = _taken_apart(content)
        parts.append(_identity(content[:length]))
        content = content[length:]
    return tuple(parts)


def _taken_apart(forms: bytes) -> tuple[bytes, int, bytes]:
    """The tag, the length and the content of the first of some forms."""
    colon = forms.index(b":", 3)
    end = colon + 1 + int(forms[3:colon])
    return forms[2:3], end, forms[colon + 1 : end]


# --- many ids


def read_ids(groups: Any, n_rows: int) -> tuple[Users, list[bytes]]:
    """Whose rows they are, and the bytes of every user's identity."""
    column = _id_column(groups, "groups", n_rows)
    users, index = _encoded(column, spelling_of(column))
    forms = _forms(index)
    return users, [forms[code] for code in np.argsort(index.ranks()).tolist()]


def _id_column(ids: Any, name: str, n_rows: int | None = None) -> Column:
    """User ids as a column; tuples stay what they are."""
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise ValueError(f"{name} must be a vector, one user id for each row; got the shape {ids.shape}")
    column = read_column(ids, name, unwrap=False, kind="id")
    if n_rows is not None and len(column) != n_rows:
        raise ValueError(f"{name} has {len(column)} user ids for {n_rows} rows")
    return column


def _encoded(column: Column, spelling: Spelling) -> tuple[Users, _core.TableIndex]:
    """Users numbered in an order of the ids themselves: where a user's rows are moves nobody."""
    index = _core.TableIndex()
    codes, status = _core.owner_codes(index, [column.cells], [spelling])
    return _users(codes, status, index.ranks(), len(index)), index


def _users(
    codes: npt.NDArray[np.uint32], status: npt.NDArray[np.uint8], numbers: npt.NDArray[np.uint32], n_users: int
) -> Users:
    """Users by the number of each code."""
    owned = status == VALUE
    if owned.all():
        return Users(numbers[codes], n_users)
    return Users(numbers[codes[owned]], n_users, owned)


def check_enrolled(value: Any, name: str) -> None:
    """Ids are read when there are rows; here only that it is no iterator, which could be read once."""
    if value is not None and (isinstance(value, (str, bytes)) or not hasattr(value, "__len__")):
        raise TypeError(f"{name} must be a sequence of user ids; got {short_repr(value)}")


def encode_users(
    groups: Any,
    n_rows: int,
    enrolled: Iterable[Any] | None = None,
    *,
    exact_ids: bool = False,
    written_ids: bool = False,
) -> Users:
    """Return whose rows they are; users are numbered as they are enrolled, otherwise in the order of their ids."""
    # With a public list, users without rows count too. It is read as the column of ids is. Errors are about it, or name
    # rows, never what is in them.
    for name, promise in (("exact_ids", exact_ids), ("written_ids", written_ids)):
        if not isinstance(promise, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool; got {short_repr(promise)}")
    column = _id_column(groups, "groups", n_rows)
    spelling = spelling_of(column, exact=bool(exact_ids), written=bool(written_ids))
    if enrolled is None:
        return _encoded(column, spelling)[0]
    listed = _enrolled(enrolled)
    index = _core.TableIndex()
    everybody, lacks = _core.owner_codes(index, [listed.cells], [spelling])
    for entry in np.flatnonzero(lacks)[:1]:
        raise ValueError(f"enrolled: entry {entry} has no user id; ids are {READS['id']}")
    _refuse_twice(everybody, spelling)
    numbers = np.empty(len(everybody), dtype=np.uint32)
    numbers[everybody] = np.arange(len(everybody), dtype=np.uint32)
    codes, status = _core.owner_codes(index, [column.cells], [spelling])
    for row in np.flatnonzero((status == VALUE) & (codes >= len(everybody)))[:1]:
        raise ValueError(f"groups: the user id in row {row} is not among those enrolled")
    return _users(codes, status, numbers, len(everybody))


def _refuse_twice(everybody: npt.NDArray[np.uint32], spelling: Spelling) -> None:
    order = np.argsort(everybody, kind="stable")
    for place in np.flatnonzero(np.diff(everybody[order]) == 0)[:1]:
        hint = (
            "; whole numbers beyond 2**53 are told apart with exact_ids=True, which promises that ids were read as "
            "integers or texts"
        )
        raise ValueError(
            f"enrolled lists a user twice, in entries {order[place]} and {order[place + 1]}, which read alike; give "
            f"every user id once{hint if spelling == 'doubles' else ''}"
        )


def _enrolled(enrolled: Any) -> Column:
    """The public list of users."""
    try:
        return _id_column(enrolled, "enrolled")
    except (TypeError, ValueError):
        raise TypeError(f"enrolled must be a sequence of user ids; got {short_repr(enrolled)}") from None


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
        uint8: 0 for the first class and 1 for the second, all 0 where there are no labels. float64 for targets. Rows
        whose label is neither class, or whose target is no number, are not among the rows.
    users : ndarray of uint32 with shape (rows,)
        Whose row it is, from 0 to n_users - 1.
    n_users : int
        Public. A user may have no rows.
    m : int
        Public: the most rows that a user has, or, where they are not capped, how many are expected.
    outside : ndarray of uint32 with shape (rows that do not count,), optional
        Whose rows those are that are left out for their label or target; None where none is.
    """

    X: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    users: npt.NDArray[np.uint32]
    n_users: int
    m: int
    outside: npt.NDArray[np.uint32] | None = None

    @classmethod
    def of(
        cls, X: npt.NDArray[Any], labels: npt.NDArray[Any], users: Users, m: int, *, labeled: bool = True
    ) -> UserTable:
        """The rows that are somebody's and, where they have labels or targets, those with one that is known.

        Which rows are left out depends on each row alone. So a user's rows depend on that user's rows alone, and users
        all of whose rows are left out still count in `n_users`: neighbors stay neighbors.
        """
        X, labels, codes = users.of(X), users.of(labels), users.codes
        known = have_labels(labels) if labeled else np.True_
        if np.all(known):
            return cls(X, labels, codes, users.n_users, m)
        return cls(X[known], labels[known], codes[known], users.n_users, m, codes[~known])

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
        exact_ids: bool = False,
        written_ids: bool = False,
    ) -> UserTable:
        """Read users' rows.

        Parameters
        ----------
        X : array, sequence of rows, or frame, with shape (rows, features)
            Numbers. See the Notes.
        y : array, sequence, or series with shape (rows,), optional
            Labels, with `classes`; otherwise numbers.
        groups : array, sequence, or series with shape (rows,), or str
            User ids: texts, bytes, numbers, bools, dates, times, UUIDs, or tuples of these; 5, "5" and "05" are one
            person. Rows without one are nobody's and are left out. A str names a column of X, which is then a frame;
            that column is no feature.
        m : int
            The public number of rows that count of each user.
        classes : pair of labels, optional
            Public. Rows whose label is neither do not count, as if they had not been given; with targets, those of no
            number.
        enrolled : sequence of user ids, optional
            The public list of all users. By default those who have rows.
        n_features : int, optional
            The public number of columns: lists of rows need it, and all else must have as many.
        capped : bool
            Whether only the first m rows of each user are kept.
        exact_ids : bool
            True promises that the column of ids was read as integers or texts, and tells all of their digits apart.
            Otherwise whole numbers beyond 2**53 are one person where doubles cannot tell them apart, but in columns
            of Arrow and polars, whose types no value can change.
        written_ids : bool
            True promises that the column of ids was read as texts, each of which is then itself: "05" and "5" are two.

        Notes
        -----
        What a value is read as does not depend on what holds it: docs/reading.md. A number, or a text that says one,
        is that number, and everything else is missing; labels are compared by the one text of each. Columns of Arrow
        and polars whose type can hold none of these, such as durations, are refused. All numbers are read as doubles,
        because pandas and NumPy make doubles of integers as soon as one is missing.

        Rows of `X`, `y` and `groups` are matched by position, as in scikit-learn: indexes of pandas are not looked at.
        Of lazy frames, whose rows may come in another order each time, name the column of ids.

        Examples
        --------
        >>> table = UserTable.read([[1], [2], [None]], ["no", "yes", 7], groups=["ann", "bob", "ann"], m=2,
        ...     classes=("no", "yes"), n_features=1)
        >>> table.X.tolist(), table.labels.tolist(), table.users.tolist(), table.n_users
        ([[1.0], [2.0]], [0, 1], [0, 1], 2)
        """
        grid, ids = read_features(X, groups, n_features=n_features)
        check_width(grid, n_features)
        n_rows, _ = grid.shape
        users = encode_users(ids, n_rows, enrolled, exact_ids=exact_ids, written_ids=written_ids)
        if y is None:
            labels: npt.NDArray[Any] = np.zeros(n_rows, dtype=np.uint8)
        elif classes is None:
            labels = read_targets(y, n_rows)
        else:
            labels = read_labels(y, read_classes(classes), n_rows)
        table = cls.of(grid.numbers(), labels, users, check_count(m, "m"), labeled=y is not None)
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
        return replace(self, X=self.X[counted], labels=self.labels[counted], users=self.users[counted])

    def first(self, m: int) -> UserTable:
        """The same with at most m rows of each user: the first."""
        if m >= self.m:
            return self
        return replace(self, m=m).capped()


def first_rows(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row of somebody's is among its user's first m."""
    first, _ = _core.first_rows(users.codes, users.n_users, min(m, 2**32 - 1))
    return first


Rule = Literal["first", "random"]


def bound_contributions(
    X: Any,
    y: Any,
    groups: Any,
    *,
    m: int,
    rule: Rule = "first",
    enrolled: Any = None,
    exact_ids: bool = False,
    written_ids: bool = False,
) -> tuple[Any, Any, Any]:
    """Keep at most m rows of each user: the first step for users who contribute unequally.

    Parameters
    ----------
    X : array, sequence, or frame with shape (rows, ...)
    y : array, sequence, or series with shape (rows,), or None
    groups : array, sequence, or series with shape (rows,), or str
        User ids, as for `UserTable.read`. A str names a column of X, a frame.
    m : int
        The most rows of a user that are kept, >= 1. Public: choose it without looking at the data.
    rule : {"first", "random"}
        Which rows of a user with more than m are kept: the first m in the order given, or a uniform set of m, drawn
        from the operating system's generator.
    enrolled : sequence, optional
        The public list of all users: ids of nobody else are accepted.
    exact_ids, written_ids : bool
        As for `UserTable.read`.

    Returns
    -------
    X, y, groups
        The rows that are kept, all of them somebody's, in their order, in containers of the kinds that were given; y is
        None if it was, and groups is a str if it was. Nothing is read but the ids.

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
    users = encode_users(ids, n_rows, enrolled, exact_ids=exact_ids, written_ids=written_ids)
    counted = first_rows(users, most) if rule == "first" else _random_rows(users, most)
    if users.owned is not None:
        somebody, counted = counted, users.owned.copy()
        counted[users.owned] = somebody
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
