"""People's items as they are counted: every item has one form and one place in one order, whatever was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

import numpy as np

from userdp.exact.numbers import is_integer, shown

Item: TypeAlias = "int | str | bytes"
Counts: TypeAlias = "Mapping[Any, int]"
"""How many users have each item; `None` for those whose item counts for nothing."""
ItemT = TypeVar("ItemT", bound="int | str | bytes")

_TYPES = (int, str, bytes)
_NUMPY_TYPES = (np.integer, np.str_, np.bytes_)


def canonical_item(item: object) -> Item | None:
    """The item as a plain int, str or bytes, or None for anything else; never raises."""
    kind = type(item)
    if kind is int or kind is str or kind is bytes:  # `in` would ask the type of the item what it equals
        return item  # type: ignore[return-value]  # mypy does not follow `kind`
    try:
        if isinstance(item, _NUMPY_TYPES) and not isinstance(item, np.timedelta64):
            return canonical_item(item.item())
    except Exception:  # an object may raise when it is looked at, and that is an output
        pass
    return None


def check_items(items: object) -> None:
    """Refuse what has no items, such as one item in place of everybody's; nothing private is said of it.

    Raises
    ------
    TypeError
    """
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise TypeError(f"items must be a sequence with one item for each user; got a {type(items).__name__}")


def tally(items: Iterable[object], item_of: Callable[[object], ItemT | None]) -> Counter[ItemT | None]:
    """How many users have each item.

    Raises
    ------
    TypeError
        For something that has no items, of which nothing private is said.
    """
    check_items(items)
    if isinstance(items, np.ndarray):
        if items.ndim != 1:
            raise TypeError(f"items must be one-dimensional; got an array of {items.ndim} dimensions")
        items = items.tolist() if items.dtype.kind in "iuSU" else list(items)
    return Counter(map(item_of, items))


def present(counts: Counts, item_of: Callable[[object], ItemT | None]) -> list[tuple[ItemT, int]]:
    """The items that somebody has, each with its count: integers first, then strings, then bytes, each in order.

    Raises
    ------
    TypeError, ValueError
        For counts that are not of items, or negative.
    """
    if not isinstance(counts, Mapping):
        raise TypeError(f"counts must be a mapping from items to counts; got {shown(counts)}")
    found: dict[type, list[tuple[ItemT, int]]] = {kind: [] for kind in _TYPES}
    for key, count in counts.items():
        if type(count) is not int and not is_integer(count):
            raise TypeError(f"counts: the count of {shown(key)} must be an int; got {shown(count)}")
        if count < 0:
            raise ValueError(f"counts: the count {count} of {shown(key)} is negative")
        if key is None:
            continue
        item = item_of(key)
        if item is None:
            raise ValueError(f"counts: {shown(key)} is not an item of this selection")
        if count:
            found[type(item)].append((item, int(count)))
    return [entry for entries in found.values() for entry in sorted(entries)]
