"""Telling users apart, by a fixed encoding of each user that looks at no other."""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Any

from userdp.algorithms.finite import User
from userdp.exact.numbers import shown


def user_text(user: User) -> str:
    """A text that is the same for two users only if they hold the same examples, types included.

    True, 1 and 1.0 are different examples, and so are 0.0 and -0.0. Numbers, texts, bytes and containers of them are
    written out in full; any other object is taken to be what its type's name and its ``repr`` say. The order of these
    texts is the one in which users are listed to a symmetric algorithm: it depends on the listed users only.

    Raises
    ------
    TypeError
        For examples that are not hashable.
    """
    for example in user:
        try:
            hash(example)
        except TypeError:
            raise TypeError(
                f"examples must be hashable for users to be told apart; got {shown(example)} of type "
                f"{type(example).__name__} in the user {shown(user)}"
            ) from None
    return _text(user)


def _text(value: Hashable) -> str:
    kind: type[Any] = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, (tuple, frozenset)):
        parts = [_text(part) for part in value]
        # Lengths in front keep texts with brackets and commas apart.
        content = "".join(f"{len(part)}:{part}" for part in (parts if isinstance(value, tuple) else sorted(parts)))
    elif kind is float:
        content = struct.pack(">d", value).hex()
    elif kind is complex:
        content = struct.pack(">dd", value.real, value.imag).hex()  # type: ignore[attr-defined]
    elif kind is int:
        content = f"{value:x}"
    else:
        content = repr(value)
    return f"{name}({content})"
