"""Datasets of finite algorithms: users as the canonical values of what they gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

from userdp.algorithms.finite import Dataset, User
from userdp.exact.encoding import canonical, has_codes

USERS = "a sequence of users, each a tuple, list or array of examples"


def listed_users(dataset: Any, name: str) -> list[Any]:
    """The users of a dataset one by one, as they are.

    Sets and dicts are refused: they hold users who gave the same only once. What is iterated over once, such as a
    generator, will do.

    Raises
    ------
    TypeError
        With the name of the argument, and without a word on what is in it.
    """
    if isinstance(dataset, (Set, Mapping)):
        raise TypeError(
            f"{name} must be {USERS}; a {type(dataset).__name__} keeps one of several users who gave the same"
        )
    if isinstance(dataset, (str, bytes)) or not isinstance(dataset, Iterable):
        raise TypeError(f"{name} must be {USERS}; got {type(dataset).__name__}")
    if (
        isinstance(dataset, np.ndarray)
        and dataset.dtype != object
        and (dataset.ndim < 2 or not has_codes(dataset.dtype))
    ):
        # Types and shapes are public, and no row of this array is a user.
        raise TypeError(f"{name} must be {USERS}; got an array of shape {dataset.shape} and dtype {dataset.dtype}")
    return list(dataset)


def read_users(dataset: Any, name: str) -> Dataset:
    """The canonical users of a dataset, for an audit or a diagnostic.

    Parameters
    ----------
    dataset : sequence of users
    name : str
        The argument's name, for messages.

    Raises
    ------
    TypeError
        Naming the argument and the position of a user who is no tuple, or has examples of other types than
        `userdp.exact.encoding.ACCEPTED`.

    Examples
    --------
    >>> import numpy as np
    >>> read_users(np.array([[1, 2], [3, 4]]), "dataset")
    ((1, 2), (3, 4))
    """
    return tuple(
        _user(user, f"{name}: the user at position {position}")
        for position, user in enumerate(listed_users(dataset, name))
    )


def private_users(dataset: Any, name: str) -> tuple[User | None, ...]:
    """The canonical users of a private dataset: None for whoever has none, since no value of a user may raise.

    Raises
    ------
    TypeError
        For a dataset that is no sequence, without a word on what is in it.
    """
    return tuple(map(_private, listed_users(dataset, name)))


def _user(user: Any, name: str) -> User:
    found = canonical(user, name)
    if type(found) is not tuple:
        raise TypeError(f"{name} must be a tuple, list or array of examples; got {type(user).__name__}")
    return found


def _private(user: Any) -> User | None:
    try:
        return _user(user, "")
    except Exception:
        return None
