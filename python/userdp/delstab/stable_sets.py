"""Stable sets of users counted by type: labeled users (types of one user each) and multisets of equal users.

A *type* is what the inner algorithm can see of a user, and a pool (what a set S leaves) counts as stable when all its
kept sets are compatible and it has at most `max_types` types. Both conditions depend on the data of the pool
alone and pass to smaller pools, which is all that the privacy proof asks of "stable".

Where a dataset has more types than a stable pool may have, `Choices` gives the ways to choose those that stay, one
at a time, those that drop the fewest users first, and what is known to fail is never tried again. The choices that are
many are those with few kept sets each; `SmallPools` decides these in Python, since a call of the core costs more.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.delstab.compatibility import Distributions, InnerPmfs, normalized
from userdp.exact.pmf import ExactMasses, Masses, distinct_masses
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

Vector: TypeAlias = "tuple[int, ...]"
Vectors: TypeAlias = npt.NDArray[np.uint16]
PmfsOn: TypeAlias = Callable[[Sequence[int], Vectors], Distributions]
"""From the types in play and deletion vectors over them to the distributions on what is kept."""
Distribution: TypeAlias = "tuple[list[int], int]"
"""Weights of the inner algorithm's outputs, and a total; the refusal has what is missing."""

MAX_LESSONS, MAX_FUTILE = 1024, 64
"""How often a failure is looked into for its causes, with and without success."""
MAX_SMALL_ROWS = 64
MAX_SMALL_WORK = 20_000
"""Kept sets, and comparisons of vectors, of a pool that `SmallPools` decides."""
MAX_REMEMBERED = 1 << 20
"""Verdicts that it remembers for the next pool."""
MAX_REMEMBERED_MASSES = 1 << 21
"""Probabilities of the distributions that they are about, in integers of any length."""


def most_choices(n_users: int, limit: int, max_types: int) -> int:
    """How many choices of `max_types` types drop at most `limit` < n / 2 users, in any dataset of n users."""
    # Attained by one type of many users beside types of one user each. Proof: docs/proofs/delstab_paper.md, "Choices".
    types = min(n_users, max_types + limit)
    if types <= max_types:
        return 1
    return math.comb(types - 1, max_types - 1) if types >= 2 * max_types else math.comb(types, max_types)


class Choices:
    """The ways to keep a number of types, in the order of the users that they drop, then of the types dropped."""

    def __init__(self, sizes: Sequence[int], kept: int, bound: int) -> None:
        self._sizes = sizes
        self._kept = kept
        self._bound = bound
        self._prefix = [0, *itertools.accumulate(sizes)]
        dropped = len(sizes) - kept
        # A type is dropped with the dropped - 1 smallest of the others, or never.
        least = self._prefix[max(0, dropped - 1)]
        self._droppable = 0 if not dropped else bisect_right(sizes, bound - least)
        self._failures: list[list[int]] = [[] for _ in sizes]
        self.over = dropped > 0 and self._prefix[dropped] > bound

    def exclude(self, places: Sequence[int]) -> None:
        """No choice that keeps all of these types from now on."""
        often = [place for place in places if place < self._droppable]
        if not often:  # they are in every choice
            self.over = True
            return
        self._failures[max(often)].append(sum(1 << place for place in often))

    def droppable(self, place: int) -> bool:
        """False for a type of so many users that every choice keeps it."""
        return place < self._droppable

    def dropping(self, users: int) -> Iterator[tuple[int, ...]]:
        """The choices that drop this many users, as the places of the types that they keep."""
        # Of two choices the one that drops the first type in which they differ comes first.
        if not self.over:
            yield from self._extend((), 0, 0, self._prefix[-1] - users)

    def _extend(self, places: tuple[int, ...], mask: int, start: int, users: int) -> Iterator[tuple[int, ...]]:
        """All ways to keep this many more users, of types from `start` on."""
        missing = self._kept - len(places)
        if missing == 0:
            if users == 0:
                yield places
            return
        sizes, prefix, last = self._sizes, self._prefix, len(self._sizes) - missing
        # One that large with the smallest after it is too much; one that small with the largest of all too little.
        low = bisect_left(sizes, users - (prefix[-1] - prefix[last + 1]), start, last + 1)
        high = bisect_right(range(last + 1), users, start, last + 1, key=lambda p: prefix[p + missing] - prefix[p])
        for place in reversed(range(low, high)):
            number = mask | 1 << place
            if not self.over and not any(failure & number == failure for failure in self._failures[place]):
                yield from self._extend((*places, place), number, place + 1, users - sizes[place])


class SmallPools:
    """Decides pools of one dataset, and remembers which distributions are compatible."""

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
        vectors = MAX_SMALL_ROWS * max(len(self._rows), MAX_SMALL_ROWS * len(self._joins))
        if (
            max(len(self._class_of_key), len(self._alike), vectors) > MAX_REMEMBERED
            or len(self._examples) * len(self._inner.outputs) > MAX_REMEMBERED_MASSES
        ):
            self._forget()
        rows = self._kept_vectors(counts, kept)
        if len(rows) > MAX_SMALL_ROWS:
            return None
        classes = tuple(self._classes([self._key_of(active, row) for row in rows]))
        pattern = counts, kept, classes
        if pattern not in self._joins:
            self._joins[pattern] = self._joins_of(rows, classes)
        return _unavoidable(counts, self._joins[pattern], room - 1)

    def _joins_of(self, rows: Sequence[Vector], classes: tuple[int, ...]) -> list[Vector]:
        """What incompatible pairs of rows hold together, the smallest first; failing rows are incompatible with all."""
        alike = {(a, b) for a in set(classes) for b in set(classes) if min(a, b) >= 0 and self._compatible(a, b)}
        joins = {row for row, number in zip(rows, classes, strict=True) if number < 0}
        for place, (row, number) in enumerate(zip(rows, classes, strict=True)):
            for other, of_other in zip(rows[: place + 1], classes, strict=False):
                if min(number, of_other) >= 0 and (number, of_other) not in alike:
                    joins.add(tuple(map(max, row, other)))
        return sorted(joins, key=sum)

    def _kept_vectors(self, counts: Vector, kept: int) -> list[Vector]:
        """How many users of each type may be kept; one more than `MAX_SMALL_ROWS` ways stand for more."""
        if (counts, kept) not in self._rows:
            self._rows[counts, kept] = list(islice(_vectors(counts, kept), MAX_SMALL_ROWS + 1))
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
            self._alike[pair], *_ = _core.is_indistinguishable(first, second, self._inner.level, self._inner.delta)
        return self._alike[pair]


def _vectors(counts: Sequence[int], kept: int) -> Iterator[Vector]:
    """All vectors up to the counts with that sum."""
    if not counts:
        if kept == 0:
            yield ()
        return
    rest = sum(counts[1:])
    for number in range(max(0, kept - rest), min(counts[0], kept) + 1):
        for others in _vectors(counts[1:], kept - number):
            yield (number, *others)


def _unavoidable(pool: Vector, joins: Sequence[Vector], budget: int) -> bool | None:
    """Whether every pool of at most `budget` users fewer is above one of the joins; None if that takes long."""
    work = MAX_SMALL_WORK
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


@dataclass(frozen=True)
class Types:
    """Users grouped by type."""

    counts: tuple[int, ...]  # Users of each type
    unusable: frozenset[int]  # Types on which the inner algorithm is known to fail: no pool with them is stable
    max_types: int  # Public bound on the types of a stable pool
    # Public bound on the ways to keep that many, when no more users are dropped than a release may drop.
    max_choices: int
    pmfs_on: PmfsOn  # Evaluates the inner algorithm
    small: SmallPools | None = None  # Decides choices with few kept sets


@dataclass(frozen=True)
class Stability:
    """The stable sets of one dataset, and the distributions of what they keep."""

    smallest: int | None  # Size of the smallest stable set; None if it exceeds the limit
    dropped: int  # users in every S, because their types are not kept
    active: tuple[int, ...]  # types that are kept, by their index
    counts: tuple[int, ...]  # users of each of them
    family: _core.StableFamily | None
    pmfs: Distributions | None
    vectors: Vectors | None

    def distribution(self, mixture: Sequence[int], total: int) -> Distribution:
        """The distribution of the release, when |S| = r with probability mixture[r] / total."""
        family, pmfs = self._kept()
        weights, scale = family.exact_output_distribution(self._shifted(mixture), total, pmfs.matrix)
        return list(weights), scale

    def bounds(
        self, mixture: Sequence[int], total: int, progress: ProgressCallback
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Certified bounds of the same probabilities."""
        family, pmfs = self._kept()
        lower, upper = family.output_bounds(self._shifted(mixture), total, pmfs.matrix, progress)
        return np.asarray(lower), np.asarray(upper)

    def layer_sizes(self, limit: int) -> tuple[int, ...]:
        """The number of stable sets of each size up to the limit (those that keep the active types only)."""
        if self.family is None:
            return (0,) * (limit + 1)
        sizes = [0] * self.dropped + [int(size) for size in self.family.layer_sizes()]
        return tuple(sizes[: limit + 1])

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Draw S uniformly among the stable sets of a size, then the kept set; its distribution."""
        family, pmfs = self._kept()
        _, removed = family.sample(size - self.dropped, source.below)
        assert self.vectors is not None
        row = np.flatnonzero((self.vectors == np.array(removed, dtype=np.uint16)).all(axis=1))[0]
        return pmfs.matrix.row(int(row))

    def _kept(self) -> tuple[_core.StableFamily, Distributions]:
        assert self.family is not None, "there is a stable set, or nothing is asked"
        assert self.pmfs is not None
        return self.family, self.pmfs

    def _shifted(self, mixture: Sequence[int]) -> list[int]:
        return list(mixture[self.dropped :])


NOTHING = Stability(None, 0, (), (), None, None, None)


def exhaustive(
    types: Types, kept: int, deletions: int, limit: int, inner: InnerPmfs, progress: ProgressCallback
) -> Stability:
    """Find the smallest stable sets."""
    usable = [kind for kind in range(len(types.counts)) if kind not in types.unusable]
    base = sum(types.counts[kind] for kind in types.unusable)
    ordered = sorted(usable, key=lambda kind: (types.counts[kind], kind))
    choices = Choices([types.counts[kind] for kind in ordered], min(types.max_types, len(usable)), limit - base)
    best, tried, lessons = NOTHING, 0, Lessons()
    for dropped in range(base, limit + 1 if usable else 0):
        if best.smallest is not None and dropped >= best.smallest:
            break
        for places in choices.dropping(dropped - base):
            if inner.strict and tried == types.max_choices:
                raise BudgetError(
                    f"sets of up to {limit} users may leave more than {tried:,} choices of {types.max_types} types; "
                    "refusal_probability looks at those up to the largest size that a release needs"
                )
            tried += 1
            active = tuple(sorted(ordered[place] for place in places))
            room = (limit + 1 if best.smallest is None else best.smallest) - dropped
            if len(places) == len(ordered) or not _needs(types, active, kept, room, inner, progress, small_only=True):
                counts, family, vectors, pmfs = _marked(
                    types, active, deletions - dropped, limit - dropped, inner, progress
                )
                removed = family.smallest_stable_size()
                if removed is not None and removed < room:
                    best = Stability(dropped + removed, dropped, active, counts, family, pmfs, vectors)
                    if best.smallest == dropped:
                        return best
                    continue
            if lessons.wanted:

                def fails(some: Sequence[int], room: int = room) -> bool:
                    return _needs(types, sorted(ordered[place] for place in some), kept, room, inner, progress)

                lessons.learn(choices, places, fails)
    return best


@dataclass
class Lessons:
    """What is learned from choices that fail: few of their types that fail already."""

    # Too many lessons slow down more than they help, and so do futile ones.

    learned: int = 0
    futile: int = 0

    @property
    def wanted(self) -> bool:
        """Whether to go on."""
        return self.learned < MAX_LESSONS and self.futile < MAX_FUTILE

    def learn(self, choices: Choices, places: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> None:
        """Leave types out of a choice as long as the rest fails, and exclude the rest."""
        rest = list(places)
        for place in places:
            fewer = [other for other in rest if other != place]
            if choices.droppable(place) and fails(fewer):
                rest = fewer
        if len(rest) < len(places):
            choices.exclude(rest)
            self.learned += 1
        else:
            self.futile += 1


def _needs(
    types: Types,
    active: Sequence[int],
    kept: int,
    room: int,
    inner: InnerPmfs,
    progress: ProgressCallback,
    *,
    small_only: bool = False,
) -> bool:
    """True when at least `room` users of these types are in every stable set, whoever else is there."""
    # With `small_only` larger pools are not decided.
    counts = tuple(types.counts[kind] for kind in active)
    deletions = sum(counts) - kept
    if deletions < room - 1:
        return False
    needs = types.small.needs(active, counts, kept, room) if types.small else None
    if needs is None and not small_only:
        _, family, _, _ = _marked(types, active, deletions, room - 1, inner, progress)
        return family.smallest_stable_size() is None
    return bool(needs)


def _marked(
    types: Types, active: Sequence[int], deletions: int, limit: int, inner: InnerPmfs, progress: ProgressCallback
) -> tuple[tuple[int, ...], _core.StableFamily, Vectors, Distributions]:
    """The family of the deletions from some types, with what is bad marked."""
    counts = tuple(types.counts[kind] for kind in active)
    family = _core.StableFamily(list(counts), deletions, limit)
    vectors = family.vectors()
    pmfs = types.pmfs_on(active, vectors)
    family.mark_bad_pairs(pmfs.matrix, inner.level, inner.delta, pmfs.incompatible, progress)
    return counts, family, vectors, pmfs
