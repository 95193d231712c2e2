"""Users' rows as learners see them, read from whatever they came in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import check_count, short_repr
from userdp.runtime import warn
from userdp.users.containers import Column, Grid, read_column, read_grid, select_column, values_of
from userdp.users.ids import Users, encode_users
from userdp.users.values import LARGEST_WHOLE, real_of, text_of

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

        Returns
        -------
        UserTable

        Raises
        ------
        TypeError, ValueError
            About types, shapes and user ids. No value in a row of X or y raises, warns, or changes how another row is
            read.

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
        kept = first_rows(Users(self.users, self.n_users), self.m)
        if kept.all():
            return self
        return UserTable(self.X[kept], self.labels[kept], self.users[kept], self.n_users, self.m)

    def first(self, m: int) -> UserTable:
        """The same with at most m rows of each user: the first."""
        if m >= self.m:
            return self
        return UserTable(self.X, self.labels, self.users, self.n_users, m).capped()


def first_rows(users: Users, m: int) -> npt.NDArray[np.bool_]:
    """Whether a row is among its user's first m."""
    from userdp import _core

    kept, _ = _core.first_rows(users.codes, users.n_users, min(m, 2**32 - 1))
    return kept


# --- features


def read_features(X: Any, groups: Any, *, n_features: int | None = None) -> tuple[Grid, Any]:
    """A table and the user ids beside it, which may be one of its columns."""
    ids = groups
    if isinstance(groups, str):
        X, ids = select_column(X, groups, "groups")
    return read_grid(X, "X", width=n_features), ids


def check_width(grid: Grid, n_features: int | None) -> None:
    """Refuse an array or frame with another number of columns than is public.

    Raises
    ------
    ValueError
    """
    if n_features is not None and grid.shape[1] != n_features:
        raise ValueError(f"n_features is {short_repr(n_features)}, and X has {grid.shape[1]} columns")


def read_points(
    grid: Grid, largest: int, *, exact_integers: bool = False, n_columns: int | None = None
) -> npt.NDArray[Any]:
    """A table of numbers that are read as whole numbers up to a public largest one; n_columns of them are needed.

    Beyond 2**53 - 1 doubles do not tell whole numbers apart. Lists, and nullable and Arrow columns, are then read
    exactly, and so are NumPy's integers if their owner promises that their type is public. Others are read as doubles,
    whatever their type: one missing value would make doubles of them.
    """
    if largest <= LARGEST_WHOLE:
        return grid.numbers()
    if not (exact_integers or grid.keeps_integers(n_columns)):
        _warn_of_doubles("X", largest)
    return grid.wholes(exact_integers=exact_integers)


def read_point_column(container: Any, name: str, largest: int, *, exact_integers: bool = False) -> npt.NDArray[Any]:
    """A vector of numbers that are read as whole numbers up to a public largest one: see `read_points`."""
    column = read_column(container, name)
    _check_numbers(column, name)
    if largest <= LARGEST_WHOLE:
        return column.numbers()
    if not (exact_integers or column.fixed):
        _warn_of_doubles(name, largest)
    return column.wholes(exact_integers=exact_integers)


def read_items(
    container: Any, name: str, largest: int | None, *, exact_integers: bool = False
) -> list[int | str | bytes | None]:
    """A vector of items: integers, texts or bytes, None for all else; `largest` is that of integers, if they have one.

    Integers beyond 2**53 - 1 are items in lists, in nullable and Arrow columns, and if their owner promises that the
    type is public.
    """
    column = read_column(container, name, unwrap=False)
    if column.kind == "other":
        raise TypeError(f"{name} is of dtype {column.dtype}, and items are integers, texts or bytes")
    if largest is not None and largest > LARGEST_WHOLE and not (exact_integers or column.fixed):
        _warn_of_doubles(name, largest)
    return column.items(exact_integers=exact_integers)


def read_codes(container: Any, name: str) -> npt.NDArray[np.int64]:
    """A vector of integers from 0 up, negative ones for all else: see `Column.codes`.

    Raises
    ------
    TypeError, ValueError
        For columns of texts, dates or categories, and for other shapes.
    """
    column = read_column(container, name, unwrap=False)
    _check_numbers(column, name)
    return column.codes()


def _warn_of_doubles(name: str, largest: int) -> None:
    warn(
        f"{name} may have whole numbers up to {short_repr(largest)}, and NumPy's integers and floats are read as "
        "doubles, "
        "which are exact up to 2**53 - 1: pass nullable or Arrow columns, or exact_integers=True if the type of "
        f"{name} is public"
    )


# --- labels and targets


@dataclass(frozen=True)
class Classes:
    """Two public labels.

    Attributes
    ----------
    labels : ndarray with shape (2,)
    kind : {"number", "text"}
    second : float, str or bytes
        What labels are compared with.
    """

    labels: npt.NDArray[Any]
    kind: Literal["number", "text"]
    first: Any
    second: Any


def read_classes(classes: Any) -> Classes:
    """Read a pair of labels.

    Raises
    ------
    ValueError
        Unless they are two distinct numbers or two distinct texts.
    """
    try:
        listed = list(classes)
        labels = np.asarray(classes)
        plain = labels.shape == (2,) and len(listed) == 2 and labels.tolist() == listed
    except (TypeError, ValueError):
        plain = False
    if plain:
        texts = [text_of(label) for label in listed]
        numbers = [real_of(label) for label in listed]
        if None not in texts and texts[0] != texts[1] and type(texts[0]) is type(texts[1]):
            return Classes(labels, "text", texts[0], texts[1])
        # Labels are compared as doubles, and NaN equals nothing.
        if numbers[0] != numbers[1] and not any(map(math.isnan, numbers)) and labels.dtype.kind in "biuf":
            return Classes(labels, "number", numbers[0], numbers[1])
    raise ValueError(
        f"classes must be two distinct labels of one type, numbers or texts, or None; got {short_repr(classes)}"
    )


def read_labels(y: Any, classes: Classes, n_rows: int) -> npt.NDArray[np.uint8]:
    """Which labels are the second class; all others count as the first.

    Raises
    ------
    TypeError, ValueError
        For typed labels of another kind than the classes, and for another number of labels than rows.
    """
    return equal_labels(label_column(y, classes, n_rows), classes, classes.second).astype(np.uint8)


def label_column(y: Any, classes: Classes, n_rows: int) -> Column:
    """The column of labels, if its type may hold the classes."""
    column = read_column(y, "y")
    _check_length(column, n_rows)
    if column.kind not in (classes.kind, "object"):
        raise TypeError(f"y is of dtype {column.dtype}, and classes={short_repr(tuple(classes.labels.tolist()))}")
    return column


def equal_labels(column: Column, classes: Classes, label: Any) -> npt.NDArray[np.bool_]:
    """Which labels equal one of the classes."""
    values = column.values
    if values.dtype.kind in "biuf":
        equal = np.asarray(column.numbers() == label)
    elif values.dtype.kind in "US" and (values.dtype.kind == "U") == isinstance(label, str):
        equal = np.asarray(values == label)
    elif classes.kind == "number":
        equal = np.fromiter((real_of(value) == label for value in values_of(values)), dtype=np.bool_, count=len(values))
    else:
        equal = np.fromiter((text_of(value) == label for value in values_of(values)), dtype=np.bool_, count=len(values))
    return equal if column.missing is None else equal & ~column.missing


def read_numbers(container: Any, name: str) -> Floats:
    """A vector of numbers, NaN for what is none.

    Raises
    ------
    TypeError, ValueError
        For columns of texts, dates or categories, and for other shapes.
    """
    column = read_column(container, name)
    _check_numbers(column, name)
    return column.numbers()


def _check_numbers(column: Column, name: str) -> None:
    if column.category or column.kind not in ("number", "object"):
        raise TypeError(f"{name} is of dtype {column.dtype}, and numbers are needed")


def read_targets(y: Any, n_rows: int) -> Floats:
    """Numbers, NaN for what is none.

    Raises
    ------
    TypeError, ValueError
        For columns of texts, dates or categories, and for another number of targets than rows.
    """
    column = read_column(y, "y")
    _check_length(column, n_rows)
    _check_numbers(column, "y")
    return column.numbers()


def _check_length(column: Column, n_rows: int) -> None:
    if len(column) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(column)}]")
