"""Bounding contributions: how many rows of each user count."""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import check_count, short_repr
from userdp.users.containers import collected, rows_in, select_column, take
from userdp.users.ids import Users, encode_users
from userdp.users.table import first_rows

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

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

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
    kept = first_rows(users, most) if rule == "first" else _random_rows(users, most)
    return (
        take(rows, kept, lazy=rows is not X),
        None if y is None else take(labels, kept, lazy=labels is not y),
        groups if column else take(ids, kept, lazy=ids is not groups),
    )


def _random_rows(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row is among m of its user's that are drawn: those with the least of independent keys of 64 bits."""
    n_rows = len(users.codes)
    keys = np.frombuffer(os.urandom(8 * n_rows), dtype=np.uint64)
    order = np.lexsort((keys, users.codes))
    kept = np.zeros(n_rows, dtype=np.bool_)
    kept[order] = first_rows(Users(users.codes[order], users.n_users), m)
    return kept
