"""Users' items as they are counted: every item has one form and one place in one order, whatever was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, TypeAlias, TypeVar

from userdp.exact.numbers import is_integer
from userdp.users.containers import read_items

Item: TypeAlias = "int | str | bytes"
Counts: TypeAlias = "Mapping[Any, int]"
"""How many users have each item; `None` for those whose item counts for nothing."""
ItemT = TypeVar("ItemT", bound="int | str | bytes")

_TYPES = (int, str, bytes)


def check_items(items: object) -> None:
    """Refuse what has no items, such as one item in place of everybody's; nothing private is said of it.

    Raises
    ------
    TypeError
    """
    if isinstance(items, (str, bytes, Mapping, Set)) or not isinstance(items, Iterable):
        raise TypeError(f"items must be a sequence with one item for each user; got a {type(items).__name__}")


def tally(
    items: Any,
    item_of: Callable[[object], ItemT | None],
    *,
    largest: int | None = None,
    exact_integers: bool = False,
) -> Counter[ItemT | None]:
    """How many users have each item.

    Raises
    ------
    TypeError, ValueError
        For something that has no items, of which nothing private is said.
    """
    check_items(items)
    return Counter(map(item_of, read_items(items, "items", largest, exact_integers=exact_integers)))


def present(counts: Counts, item_of: Callable[[object], ItemT | None]) -> list[tuple[ItemT, int]]:
    """The items that somebody has, each with its count: integers first, then strings, then bytes, each in order.

    Raises
    ------
    TypeError, ValueError
        For counts that are not of items, or negative.
    """
    if not isinstance(counts, Mapping):
        raise TypeError(f"counts must be a mapping from items to counts; got a {type(counts).__name__}")
    found: dict[type, list[tuple[ItemT, int]]] = {kind: [] for kind in _TYPES}
    for key, count in counts.items():
        if type(count) is not int and not is_integer(count):
            raise TypeError(f"counts must be ints; one is a {type(count).__name__}")
        if count < 0:
            raise ValueError("counts must be at least 0; one is negative")
        if key is None:
            continue
        item = item_of(key)
        if item is None:
            raise ValueError("counts must be of items of this selection; one key is none")
        if count:
            found[type(item)].append((item, int(count)))
    return [entry for entries in found.values() for entry in sorted(entries)]
