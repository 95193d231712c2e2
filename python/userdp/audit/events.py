"""Events that tell two samples of outputs apart. They are learned from draws that no test uses."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.algorithms.outputs import output_of
from userdp.audit.guesses import STAKES

PARTS = 16
"""Members of an output that are looked at one by one, and by pairs the first `PAIRS` of them."""
PAIRS = 5
BINS = 32
LABELS = 64
"""Values of a feature that are told apart, the most frequent ones."""
CAUTION = 1.5
"""Standard deviations that counts of the training draws are moved towards no finding."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_STAKES = np.array([float(stake) for stake in STAKES])


@dataclass(frozen=True)
class Raised:
    """What stands for the output of a run that raised."""

    error: str
    text: str = field(default="", compare=False, repr=False)
    """All that is printed of it, and of what it came from."""


def features(output: Any) -> Iterator[tuple[str, Hashable]]:
    """What is looked at in an output: names, and values that are numbers or can be counted."""
    yield "the output", _key(output)
    if isinstance(output, Raised):
        yield "what is printed of the error", _ADDRESS.sub("", output.text)
        return
    if _is_number(output):
        yield from _number_features("the number", float(output))
        return
    members = _members(output)
    if members is None:
        return
    yield "the number of members", float(len(members))
    yield "the form", _form(output)
    yield "the keys", tuple(name for name, _ in members[: 4 * PARTS])
    numbers = [(name, float(value)) for name, value in members[:PARTS] if _is_number(value)]
    for name, value in numbers:
        yield from _number_features(f"member {name}", value)
    for (name, value), (other, value2) in itertools.combinations(numbers[:PAIRS], 2):
        yield f"member {name} less member {other}", value - value2
        yield f"member {name} and member {other}", value + value2
    if len(numbers) > 1:
        yield "the largest member", max(numbers, key=lambda pair: (pair[1] == pair[1], pair[1]))[0]
    for name, value in members[:PARTS]:
        if not _is_number(value):
            yield f"member {name}", _key(value)


def _number_features(name: str, value: float) -> Iterator[tuple[str, Hashable]]:
    yield name, value
    if math.isfinite(value):
        yield f"the low bits of {name}", _low_bits(value)
        yield f"{name} modulo 1", value % 1.0


def _low_bits(value: float) -> tuple[int, int]:
    """The binary places of the lowest and the highest digit of a float; noise by floats shows what it was added to."""
    if value == 0:
        return (-1100, -1100)
    top, bottom = value.as_integer_ratio()
    lowest = (top & -top).bit_length() - 1 if bottom == 1 else 1 - bottom.bit_length()
    return lowest, math.frexp(value)[1]


def _is_number(value: Any) -> bool:
    if isinstance(value, np.bool_):
        return True
    return isinstance(value, (int, float, np.integer, np.floating, Fraction)) and abs(value) < 2**1000


def _members(output: Any) -> list[tuple[str, Any]] | None:
    """The members of something that has any, by name."""
    if hasattr(output, "to_dict") and not isinstance(output, Mapping):
        output = output.to_dict()
    if isinstance(output, Mapping):
        flat: list[tuple[str, Any]] = []
        for name, value in output.items():
            inner = _members(value)
            flat += [(str(name), value)] if inner is None else [(f"{name}/{key}", part) for key, part in inner]
        return sorted(flat, key=lambda pair: pair[0])
    if isinstance(output, np.ndarray):
        output = output.ravel().tolist()
    if isinstance(output, (list, tuple)):
        return [(str(place), value) for place, value in enumerate(output)]
    return None


def _key(output: Any) -> Hashable:
    """Something that is equal for equal outputs; NaN is equal to itself, and 0.0 is not -0.0."""
    if isinstance(output, (float, np.floating)):
        return float(output).hex()
    if isinstance(output, (bool, int, str, bytes, type(None), Raised)):
        return type(output).__name__, output
    # Addresses in memory are no output, and depend on what was made before.
    return _ADDRESS.sub("", repr(output))[:500]


def _form(output: Any) -> str:
    """The order of keys, and names, types and attributes, where they can be read."""
    try:
        read = output_of(output)
    except Exception:
        return "unread"
    text = _ADDRESS.sub("", repr((list(read.entries), read.looks)))
    return text if len(text) <= 500 else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def feature_of(output: Any, name: str) -> Hashable:
    """One feature of an output; None if it has no such one."""
    return next((value for found, value in features(output) if found == name), None)


@dataclass(frozen=True)
class Event:
    """A way to guess: for some labels of a feature the first dataset, for some the second, otherwise neither."""

    name: str
    edges: tuple[float, ...] | None
    first: frozenset[Hashable]
    second: frozenset[Hashable]
    growth: float
    """Of the logarithm of the wealth by a draw, as the training draws predict."""

    def __call__(self, output: Any) -> bool | None:
        label = _label(feature_of(output, self.name), self.edges)
        return True if label in self.first else False if label in self.second else None

    @property
    def sides(self) -> int:
        """How many of the two datasets are ever guessed."""
        return max(1, bool(self.first) + bool(self.second))

    def __str__(self) -> str:
        sides = [
            f"the {which} one for {_listed(labels, self.edges)}"
            for which, labels in (("first", self.first), ("second", self.second))
            if labels
        ]
        return f"{self.name}: {'; '.join(sides)}" if sides else "nothing: no event tells the training draws apart"


def _listed(labels: frozenset[Hashable], edges: tuple[float, ...] | None) -> str:
    """Some of the labels; bins that are side by side as one interval."""
    if edges is None:
        shown = sorted(map(_label_text, labels))
    else:
        ends = (-math.inf, *edges, math.inf)
        bins = sorted(label for label in labels if isinstance(label, int))
        starts = [place for place in bins if place - 1 not in labels]
        lasts = [place for place in bins if place + 1 not in labels]
        shown = [f"({ends[low]:.6g}, {ends[high + 1]:.6g}]" for low, high in zip(starts, lasts, strict=True)]
        shown += sorted(label for label in labels if isinstance(label, str))
    return ", ".join(shown[:4]) + (f" and {len(shown) - 4} more" if len(shown) > 4 else "")


def _label_text(label: Hashable) -> str:
    """A label for readers: an output without the type that its key has."""
    return str(label[1]) if isinstance(label, tuple) and len(label) == 2 and isinstance(label[0], str) else str(label)


def _label(value: Hashable, edges: tuple[float, ...] | None) -> Hashable:
    """The bin of a number, or the value."""
    if edges is None:
        return value
    if not isinstance(value, float) or value != value:
        return "no number"
    return bisect.bisect_left(edges, value)


def learn_event(first: Sequence[Any], second: Sequence[Any], multiplier: float, delta: float) -> Event:
    """The event whose wealth grows fastest on draws like these, against a claim of e^epsilon = `multiplier`."""
    tables: dict[str, tuple[list[Hashable], list[Hashable]]] = {}
    for side, outputs in enumerate((first, second)):
        for output in outputs:
            for name, value in features(output):
                tables.setdefault(name, ([], []))[side].append(value)
    sizes = (len(first), len(second))
    best = Event("the output", None, frozenset(), frozenset(), 0.0)
    for name, (a, b) in tables.items():
        for edges in _binnings(a, b):
            found = _best_of(name, edges, (a, b), sizes, multiplier, delta)
            if found.growth > best.growth:
                best = found
    return best


def _binnings(a: list[Hashable], b: list[Hashable]) -> Iterator[tuple[float, ...] | None]:
    """How the values of a feature are put together: as they are, and numbers by size."""
    numbers = sorted(value for value in (*a, *b) if isinstance(value, float) and value == value)
    if numbers:
        places = (len(numbers) * step // BINS for step in range(1, BINS))
        yield tuple(sorted({numbers[place] for place in places}))
    # Values that hardly ever come twice tell nothing one by one.
    some = list(itertools.islice(itertools.chain(a, b), 2000))
    if 2 * len(set(some)) <= len(some):
        yield None


def _best_of(
    name: str,
    edges: tuple[float, ...] | None,
    values: tuple[list[Hashable], list[Hashable]],
    sizes: tuple[int, int],
    multiplier: float,
    delta: float,
) -> Event:
    """The best two sets of labels: those most likely on the one side, and on the other."""
    counts = [Counter(_label(value, edges) for value in side) for side in values]
    labels = [label for label, _ in (counts[0] + counts[1]).most_common(LABELS)]
    labels.sort(key=lambda label: (counts[1][label] + 0.5) / (counts[0][label] + 0.5))
    hits = np.array([[side[label] for label in labels] for side in counts], dtype=float)
    # Prefixes of the order are sets for the first side, suffixes for the second.
    gained = [np.cumsum(hits, axis=1), np.cumsum(hits[:, ::-1], axis=1)[::-1]]
    rates = [_rates(sums, sizes if side == 0 else sizes[::-1]) for side, sums in enumerate(gained)]
    one = [_growth(right, wrong, multiplier, delta) for right, wrong in rates]
    places = [int(np.argmax(growth)) for growth in one]
    alone = [float(growth[place]) for growth, place in zip(one, places, strict=True)]
    right, wrong = (sum(pair[kind][place] for pair, place in zip(rates, places, strict=True)) for kind in (0, 1))
    both = float(_growth(np.array([right]), np.array([wrong]), multiplier, 2 * delta)[0])
    chosen = frozenset(labels[: places[0] + 1]), frozenset(labels[len(labels) - 1 - places[1] :])
    if chosen[0] & chosen[1]:
        both = -math.inf
    growth, kept = max(
        (both, chosen), (alone[0], (chosen[0], frozenset())), (alone[1], (frozenset(), chosen[1])), key=lambda p: p[0]
    )
    return Event(name, edges, kept[0], kept[1], growth)


def _rates(hits: np.ndarray[Any, Any], sizes: tuple[int, int]) -> tuple[Any, Any]:
    """How often a guess is right and wrong in a draw, with caution."""
    right = np.maximum(hits[0] - CAUTION * np.sqrt(hits[0]), 0.0) / (2 * sizes[0])
    wrong = (hits[1] + CAUTION * np.sqrt(hits[1]) + 0.5) / (2 * sizes[1])
    return right, np.minimum(wrong, 0.5)


def _growth(right: Any, wrong: Any, multiplier: float, margin: float) -> Any:
    """The mean growth of the logarithm of the wealth, for the best stake."""
    most = 2 * multiplier + margin
    gain = np.log1p(_STAKES * (2 - margin) / most)[:, None]
    loss = np.log1p(-_STAKES)[:, None]
    rest = np.log1p(-_STAKES * margin / most)[:, None]
    none = np.maximum(1 - right - wrong, 0.0)
    return np.max(gain * right + loss * wrong + rest * none, axis=0)


Guess = Callable[[Any], "bool | None"]
