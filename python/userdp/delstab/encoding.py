"""One user as bytes: equal only for users that no algorithm can tell apart, and no other user has a say in them."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.algorithms import Dataset, User

UNREADABLE = "examples of unknown classes must be picklable, and not nested too deep, to group equal users"


def users_of(dataset: Any) -> Dataset:
    """The dataset as a tuple of users, each a tuple of examples.

    Raises
    ------
    TypeError
        For anything else, without a word on whose data it is.
    """
    if isinstance(dataset, (str, bytes)) or not isinstance(dataset, Iterable):
        raise TypeError("dataset must be a sequence of users, each a tuple of examples")
    return tuple(_user(user) for user in dataset)


def _user(user: Any) -> User:
    if isinstance(user, np.ndarray):
        return tuple(user.tolist())
    if isinstance(user, (tuple, list)):
        return tuple(user)
    raise TypeError("dataset must be a sequence of users; every user must be a tuple of examples")


def canonical_user(user: User) -> User:
    """The same user with every frozenset built anew, in the order of the members' encodings.

    Equal frozensets may list their members in different orders, and an algorithm sees the order.

    Raises
    ------
    TypeError
        As `encode_user`.
    """
    _check(user)
    try:
        return tuple(map(_canonical, user))
    except (RecursionError, TypeError):
        raise TypeError(UNREADABLE) from None


def encode_user(user: User) -> bytes:
    """Encode one user injectively.

    Numbers keep their type: True, 1 and 1.0 differ, as do 0.0 and -0.0, although Python calls them equal. Frozensets
    are told apart by the order of their members, too. Objects of classes unknown here are pickled; the pickle
    determines the object.

    Raises
    ------
    TypeError
        For examples that are not hashable or cannot be pickled, without a word on whose they are.
    """
    _check(user)
    try:
        return _encoded(user)
    except RecursionError:
        raise TypeError(UNREADABLE) from None


def _check(user: User) -> None:
    try:
        hash(user)
    except Exception:
        raise TypeError("examples must be hashable to group equal users: use tuples instead of lists") from None


def _canonical(value: Any) -> Any:
    kind = type(value)
    if kind is tuple:
        return tuple(map(_canonical, value))
    if kind is frozenset:
        return frozenset(sorted(map(_canonical, value), key=_encoded))
    return value


def _encoded(value: Any) -> bytes:
    kind = type(value)
    if kind is tuple:
        return _tagged(b"t", b"".join(map(_encoded, value)))
    if kind is frozenset:
        return _tagged(b"s", b"".join(map(_encoded, value)))
    if value is None or kind is bool:
        return _tagged(b"c", repr(value).encode())
    if kind is int:
        # The sign first, then the length (in the tag), so that integers sort by sign and size.
        return _tagged(b"i", (b"-" if value < 0 else b"0") + abs(value).to_bytes((value.bit_length() + 7) // 8, "big"))
    if kind is float:
        return _tagged(b"f", struct.pack(">d", value))
    if kind is str:
        return _tagged(b"u", value.encode("utf-8", "surrogatepass"))
    if kind is bytes:
        return _tagged(b"b", value)
    if kind is Fraction:
        return _tagged(b"q", _encoded(value.numerator) + _encoded(value.denominator))
    if kind is Decimal:
        return _tagged(b"d", repr(value.as_tuple()).encode())
    if isinstance(value, np.generic) and value.dtype.kind != "V" and not value.dtype.hasobject:
        return _tagged(b"n", _encoded(value.dtype.str) + value.tobytes())
    try:
        return _tagged(b"p", pickle.dumps(value, protocol=4))
    except Exception:
        raise TypeError(UNREADABLE) from None


def _tagged(tag: bytes, content: bytes) -> bytes:
    return tag + len(content).to_bytes(8, "big") + content
