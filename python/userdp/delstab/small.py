"""Pools with few kept sets, decided here: a call of the core would cost more than the decision.

Where there are more types than may stay, the choices that are many are the choices with few kept sets each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Any

from userdp import _core
from userdp.delstab.compatibility import InnerPmfs, normalized
from userdp.exact.pmf_input import ExactMasses, Masses, distinct_masses

MAX_ROWS = 64
MAX_WORK = 20_000
"""Kept sets, and comparisons of vectors, of a pool that is decided here."""
MAX_KNOWN = 1 << 20
"""Verdicts that are kept for the next pool."""
MAX_MASSES = 1 << 21
"""Probabilities of the distributions that they are about, in integers of any length."""

Vector = tuple[int, ...]


class SmallPools:
    """Decides pools of one dataset, and remembers which distributions are compatible.

    Parameters
    ----------
    key_of : callable
        From the types of a pool and how many users of each are kept to what the distribution depends on.
    pmfs_of : callable
        The distributions of such keys, None where the algorithm fails.
    inner : InnerPmfs
        The relation.
    """

    def __init__(
        self,
        key_of: Callable[[Sequence[int], Vector], Hashable],
        pmfs_of: Callable[[Sequence[Hashable]], Sequence[Masses | None]],
        inner: InnerPmfs,
    ) -> None:
        self._key_of, self._pmfs_of, self._inner = key_of, pmfs_of, inner
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[tuple[Vector, int], list[Vector]] = {}
        self._class_of_key: dict[Hashable, int] = {}
        self._class_of_pmf: dict[Hashable, int] = {}
        self._examples: list[ExactMasses] = []
        self._alike: dict[tuple[int, int], bool] = {}
        self._joins: dict[Any, list[Vector]] = {}

    def needs(self, active: Sequence[int], counts: Vector, kept: int, room: int) -> bool | None:
        """True when no set of fewer than `room` users is stable, False when one is; None for larger pools."""
        held = len(self._class_of_key), len(self._alike), MAX_ROWS * len(self._rows), MAX_ROWS**2 * len(self._joins)
        if max(held) > MAX_KNOWN or len(self._examples) * len(self._inner.outputs) > MAX_MASSES:
            self._forget()
        rows = self._kept_vectors(counts, kept)
        if len(rows) > MAX_ROWS:
            return None
        classes = tuple(self._classes([self._key_of(active, row) for row in rows]))
        pattern = counts, kept, classes
        if pattern not in self._joins:
            self._joins[pattern] = self._joins_of(rows, classes)
        return _unavoidable(counts, self._joins[pattern], room - 1)

    def _joins_of(self, rows: Sequence[Vector], classes: tuple[int, ...]) -> list[Vector]:
        """What incompatible pairs of rows hold together, the smallest first; failing rows are incompatible with all."""
        alike = {(a, b) for a in set(classes) for b in set(classes) if min(a, b) >= 0 and self._compatible(a, b)}
        joins = {row for row, own in zip(rows, classes, strict=True) if own < 0}
        for place, (row, own) in enumerate(zip(rows, classes, strict=True)):
            for other, of_other in zip(rows[: place + 1], classes, strict=False):
                if min(own, of_other) >= 0 and (own, of_other) not in alike:
                    joins.add(tuple(map(max, row, other)))
        return sorted(joins, key=sum)

    def _kept_vectors(self, counts: Vector, kept: int) -> list[Vector]:
        """How many users of each type may be kept; one more than `MAX_ROWS` ways stand for more."""
        if (counts, kept) not in self._rows:
            self._rows[counts, kept] = list(islice(_vectors(counts, kept), MAX_ROWS + 1))
        return self._rows[counts, kept]

    def _classes(self, keys: Sequence[Hashable]) -> list[int]:
        """Equal numbers for equal distributions, and -1 where there is none."""
        new = [key for key in dict.fromkeys(keys) if key not in self._class_of_key]
        for key, pmf in zip(new, self._pmfs_of(new), strict=True):
            self._class_of_key[key] = -1 if pmf is None else self._class(normalized(pmf))
        return [self._class_of_key[key] for key in keys]

    def _class(self, pmf: ExactMasses) -> int:
        number = self._class_of_pmf.setdefault(distinct_masses(pmf), len(self._examples))
        if number == len(self._examples):
            self._examples.append(pmf)
        return number

    def _compatible(self, a: int, b: int) -> bool:
        pair = (a, b) if a <= b else (b, a)
        if pair not in self._alike:
            first, second = self._examples[pair[0]], self._examples[pair[1]]
            found = _core.is_indistinguishable(first, second, self._inner.level, self._inner.delta)
            self._alike[pair] = found[0]
        return self._alike[pair]


def _vectors(counts: Sequence[int], kept: int) -> Iterator[Vector]:
    """All vectors up to the counts with that sum."""
    if not counts:
        if kept == 0:
            yield ()
        return
    rest = sum(counts[1:])
    for own in range(max(0, kept - rest), min(counts[0], kept) + 1):
        for others in _vectors(counts[1:], kept - own):
            yield (own, *others)


def _unavoidable(pool: Vector, joins: Sequence[Vector], budget: int) -> bool | None:
    """Whether every pool of at most `budget` users fewer is above one of the joins; None if that takes long."""
    work = MAX_WORK
    stack = [(pool, budget)]
    while stack:
        left, users = stack.pop()
        work -= len(joins)
        if work < 0:
            return None
        above = next((join for join in joins if all(a >= b for a, b in zip(left, join, strict=True))), None)
        if above is None:
            return False
        for kind, (have, needed) in enumerate(zip(left, above, strict=True)):
            if needed and have - needed < users:
                stack.append(((*left[:kind], needed - 1, *left[kind + 1 :]), users - (have - needed + 1)))
    return True
