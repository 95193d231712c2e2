"""What mechanisms on keys have in common, and counts by key as they come in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Neighbors, is_integer, is_listed
from userdp.mechanisms.base import AdditiveNoise, Mechanism
from userdp.users.table import canonical_id, order_of

Integers: TypeAlias = npt.NDArray[np.int64]


class KeyMechanism(Mechanism):
    """What shows keys, for a neighbor relation and so many keys of a user."""

    @property
    def neighbors(self) -> Neighbors:
        """What the promise is for."""
        return self._arguments["neighbors"]

    @property
    def max_keys(self) -> int:
        """How many keys a user counts in at most."""
        return self._arguments.get("max_keys", 1)


def read_counts(counts: Any) -> tuple[Sequence[Any], Integers]:
    """Keys in canonical order and their counts; of an array, whose order says nothing, its places."""
    if not isinstance(counts, Mapping):
        numbers = read_integers(counts, "counts")
        return range(numbers.size), numbers
    try:
        keys = sorted(counts, key=_order)
    except (TypeError, ValueError):
        raise TypeError(
            "the keys of counts must be texts, bytes, numbers, bools, dates, times, UUIDs, or tuples of these"
        ) from None
    return keys, listed_integers([counts[key] for key in keys])


def _order(key: Any) -> tuple[Any, ...]:
    """An order of the keys themselves, also of those that read alike."""
    exact, written = (order_of(canonical_id(key, spelling=spelling)) for spelling in ("digits", "written"))
    return exact, written, type(key).__name__


def listed_integers(values: list[Any]) -> Integers:
    """Python's integers as int64, clamped."""
    for value in values:
        if type(value) is not int and not is_integer(value):
            raise TypeError(f"counts and sums must be ints; one is a {type(value).__name__}")
    return np.array([min(max(int(value), -(2**62)), 2**62) for value in values], dtype=np.int64)


def read_integers(values: Any, name: str) -> Integers:
    if isinstance(values, np.ndarray):
        array = AdditiveNoise._int64(values)
    elif not is_listed(values, Sequence):
        raise TypeError(f"{name} must be mappings or arrays of ints; got a {type(values).__name__}")
    else:
        array = listed_integers(list(values))
    if array.ndim != 1:
        raise ValueError(f"{name} must have one axis; got shape {array.shape}")
    return np.clip(array, -(2**62), 2**62)
