"""Who gave which rows, and how many of them count."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import positive, shown

Rule = Literal["first", "random"]


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


@dataclass(frozen=True)
class UserData:
    """What a learner sees: people's rows, at most m of each for learners that cap them.

    Attributes
    ----------
    X : ndarray with shape (rows, features)
    labels : ndarray with shape (rows,)
        uint8: 0 for the first class and 1 for the second, all 0 where there are no labels. float64 for regressors.
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

    @property
    def n_columns(self) -> int:
        """Columns of X; 1 where it is a vector."""
        return int(self.X.shape[1]) if self.X.ndim == 2 else 1

    def first(self, m: int) -> UserData:
        """The same with at most m rows of each user: the first."""
        if m >= self.m:
            return self
        kept = first_rows(Users(self.users, self.n_users), m)
        return UserData(self.X[kept], self.labels[kept], self.users[kept], self.n_users, m)


def encode_users(groups: Any, n_rows: int, enrolled: Iterable[Any] | None = None) -> Users:
    """Read user ids.

    Parameters
    ----------
    groups : array-like with shape (n_rows,)
        One id for each row: integers, strings, or hashable objects such as UUIDs.
    n_rows : int
        The number of rows.
    enrolled : iterable, optional
        The public list of all users, in which those without rows count too. By default the users who have rows.

    Returns
    -------
    Users
        Numbered as they are enrolled. Otherwise in the order of ids, which for objects is that of their types' names
        and then of what repr says: for objects whose repr is not about the id give `enrolled`.

    Raises
    ------
    TypeError, ValueError
        For a wrong shape, rows without an id, ids of people who are not enrolled, and ids enrolled twice. These
        errors are about the public list of users and name rows, never what is in them.
    """
    ids = _ids(groups, n_rows)
    if enrolled is None:
        return Users(*_codes(ids))
    listed = _listed(enrolled)
    code_of = {user: code for code, user in enumerate(listed)}
    if len(code_of) != len(listed):
        raise ValueError("enrolled lists a user twice; give every user id once")
    codes, n_present = _codes(ids)
    # A row of each user who is present: the one where the user's code first occurs.
    _, first = np.unique(codes, return_index=True)
    present = ids[first].tolist()
    strangers = [row for row, user in zip(first.tolist(), present, strict=True) if user not in code_of]
    if strangers:
        raise ValueError(f"groups: the user id in row {min(strangers)} is not among those enrolled")
    table = np.array([code_of[user] for user in present], dtype=np.uint32)
    return Users(table[codes], len(listed)) if n_present else Users(codes, len(listed))


def _listed(enrolled: Any) -> list[Any]:
    """The public list of users."""
    try:
        if isinstance(enrolled, (str, bytes)):
            raise TypeError
        listed = list(enrolled)
    except TypeError:
        raise TypeError(f"enrolled must be a sequence of user ids; got {shown(enrolled)}") from None
    for place, user in enumerate(listed):
        if problem := _problem(user):
            raise problem[0](f"enrolled: entry {place} {problem[1]}")
    return listed


def _ids(groups: Any, n_rows: int) -> npt.NDArray[Any]:
    """User ids as a vector without missing entries; objects are kept as objects."""
    ids = _vector(groups)
    if len(ids) != n_rows:
        raise ValueError(f"groups has {len(ids)} user ids for {n_rows} rows")
    kind = ids.dtype.kind
    if kind in "iu":
        return ids
    if kind == "f":
        missing = np.flatnonzero(~np.isfinite(ids))
        if missing.size:
            raise ValueError(f"groups: row {missing[0]} has no user id")
        whole = ids.astype(np.int64) if np.all(np.abs(ids) < 2**53) else None
        if whole is None or not np.array_equal(whole, ids):
            raise TypeError("groups are floats that are not whole numbers below 2**53; use integers or strings")
        return whole
    if kind in "US":
        missing = np.flatnonzero(ids == ids.dtype.type())
        if missing.size:
            raise ValueError(f"groups: row {missing[0]} has no user id")
        return ids
    if kind == "O":
        for row, user in enumerate(ids):
            if problem := _problem(user):
                raise problem[0](f"groups: row {row} {problem[1]}")
        return ids
    raise TypeError(f"groups must be integers, strings or hashable objects such as UUIDs; got dtype {ids.dtype}")


def _vector(groups: Any) -> npt.NDArray[Any]:
    """User ids as a vector; in a list of several types each keeps its own."""
    if isinstance(groups, np.ma.MaskedArray):
        raise TypeError("groups is a masked array; every row needs a user id")
    try:
        ids = np.asarray(groups)
        # NumPy writes numbers among strings as strings: NaN, a missing id, would be somebody called "nan".
        if ids.dtype.kind in "US" and ids.ndim == 1 and not hasattr(groups, "dtype"):
            strings = str if ids.dtype.kind == "U" else bytes
            if not all(isinstance(user, strings) for user in groups):
                ids = np.fromiter(groups, dtype=object, count=len(ids))
    except ValueError:
        raise TypeError("groups must be a vector of user ids, one for each row") from None
    if ids.ndim != 1:
        raise ValueError(f"groups must be a vector, one user id for each row; got the shape {ids.shape}")
    return ids


def _problem(user: Any) -> tuple[type[Exception], str] | None:
    """Why an object cannot be a user id, if so: the error, and what to say of it."""
    # None is missing, and so is what is not equal to itself: NaN is not, and of pandas' NA that is unknown.
    if user is None or (isinstance(user, (str, bytes)) and not user):
        return ValueError, "has no user id"
    try:
        hash(user)
    except TypeError:
        return TypeError, "has a user id that is not hashable"
    kind: Any = type(user)
    if kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__:
        return (
            TypeError,
            "has a user id that is equal to nothing but itself: a user would be as many as there are rows",
        )
    same = user == user
    return None if isinstance(same, (bool, np.bool_)) and same else (ValueError, "has no user id")


def _codes(ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint32], int]:
    """A number from 0 for each distinct id, in an order of the ids themselves: where a user's rows are moves nobody."""
    if ids.dtype.kind == "O":
        listed = sorted(dict.fromkeys(ids), key=lambda user: (type(user).__qualname__, repr(user)))
        numbers = {user: code for code, user in enumerate(listed)}
        codes = np.fromiter(map(numbers.__getitem__, ids), dtype=np.uint32, count=len(ids))
        return codes, len(numbers)
    if ids.dtype.kind in "iu":
        from userdp import _core

        # Flipping the first bit keeps the order of ids, also of those beyond int64.
        words = (ids ^ np.uint64(2**63)).view(np.int64) if ids.dtype == np.uint64 else ids.astype(np.int64, copy=False)
        codes, users = _core.user_codes(np.ascontiguousarray(words))
        return codes, len(users)
    distinct, inverse = np.unique(ids, return_inverse=True)
    return inverse.astype(np.uint32), len(distinct)


def bound_contributions(
    X: Any, y: Any, groups: Any, *, m: int, rule: Rule = "first"
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None, npt.NDArray[Any]]:
    """Keep at most m rows of each user: the first step for people who contribute unequally.

    Parameters
    ----------
    X : array-like with shape (rows, ...)
    y : array-like with shape (rows,), or None
    groups : array-like with shape (rows,)
        User ids: integers, strings, or hashable objects such as UUIDs.
    m : int
        The most rows of a user that are kept, >= 1. Public: choose it without looking at the data.
    rule : {"first", "random"}
        Which rows of a user with more than m are kept: the first m in the order given, or a uniform set of m, drawn
        from the operating system's generator.

    Returns
    -------
    X, y, groups : ndarray
        The rows that are kept, in their order; y is None if it was.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    Which rows of a user are kept depends on that user's rows only (and on fresh randomness). So replacing one user
    changes the rows of that user only: the result has the same neighbours as the input, and any user-level guarantee
    of what follows holds for the input. The number of rows of the result is private, like that of the input.

    Users with fewer than m rows keep them all. Learners that count users count such a user by rate: w mistakes in r < m
    rows as ceil(w m / r) in m. A user without rows counts for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> X, y, groups = bound_contributions(np.arange(5), None, ["ann", "bob", "ann", "ann", "bob"], m=2)
    >>> X.tolist(), groups.tolist()
    ([0, 1, 2, 4], ['ann', 'bob', 'ann', 'bob'])
    """
    most = positive(m, "m")
    if rule not in ("first", "random"):
        raise ValueError(f"rule must be 'first' or 'random'; got {shown(rule)}")
    rows = np.asarray(X)
    if rows.ndim == 0:
        raise ValueError("X must have a row for each example; got one number")
    targets = None if y is None else np.asarray(y)
    if targets is not None and (targets.ndim != 1 or len(targets) != len(rows)):
        raise ValueError(f"y must be a vector of {len(rows)} labels, one for each row of X; got shape {targets.shape}")
    users = encode_users(groups, len(rows))
    kept = first_rows(users, most) if rule == "first" else _random(users, most)
    return rows[kept], None if targets is None else targets[kept], _vector(groups)[kept]


def first_rows(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row is among its user's first m."""
    from userdp import _core

    kept, _ = _core.first_rows(users.codes, users.n_users, min(m, 2**32 - 1))
    return kept


def _random(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row is among m of its user's that are drawn: those with the least of independent keys of 64 bits."""
    n_rows = len(users.codes)
    keys = np.frombuffer(os.urandom(8 * n_rows), dtype=np.uint64)
    order = np.lexsort((keys, users.codes))
    kept = np.zeros(n_rows, dtype=np.bool_)
    kept[order] = first_rows(Users(users.codes[order], users.n_users), m)
    return kept
