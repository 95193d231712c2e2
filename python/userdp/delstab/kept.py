"""Stability of users counted by type: the engines for labeled users (types of one user each) and for equal users.

A *type* is what the inner algorithm can see of a user, and a pool (what a set S leaves) counts as stable when all its
kept sets are compatible and it has at most `max_types` types. Both conditions depend on the pool's data alone and pass
to smaller pools, which is all that the privacy proof asks of "stable".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.delstab.choices import Choices
from userdp.delstab.compatibility import InnerPmfs
from userdp.delstab.small import SmallPools
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

Vectors: TypeAlias = npt.NDArray[np.uint16]
MAX_LESSONS, MAX_FUTILE = 1024, 64
"""How often a failure is looked into for its causes, with and without success."""
Distribution: TypeAlias = "tuple[list[int], int]"
"""Weights of the inner algorithm's outputs, and a total; the refusal has what is missing."""


@dataclass(frozen=True)
class Distributions:
    """The inner distributions on all kept sets of some types, in the order of the deletion vectors."""

    matrix: _core.PmfMatrix
    incompatible: list[int]

    def row(self, row: int) -> list[Any]:
        """Exact masses."""
        return self.matrix.row(row)


PmfsOn: TypeAlias = Callable[[Sequence[int], Vectors], Distributions]
"""From the types in play and deletion vectors over them to the distributions on what is kept."""


@dataclass(frozen=True)
class Types:
    """Users grouped by type.

    Attributes
    ----------
    counts : tuple of int
        Users of each type.
    unusable : frozenset of int
        Types on which the inner algorithm is known to fail: no pool with them is stable.
    max_types : int
        Public bound on the types of a stable pool.
    max_choices : int
        Public bound on the ways to keep that many, when no more users are dropped than a release may drop.
    pmfs_on : callable
        Evaluates the inner algorithm.
    small : SmallPools or None
        Decides choices with few kept sets.
    """

    counts: tuple[int, ...]
    unusable: frozenset[int]
    max_types: int
    max_choices: int
    pmfs_on: PmfsOn
    small: SmallPools | None = None


@dataclass(frozen=True)
class Stability:
    """The stable sets of one dataset, and the distributions of what they keep.

    Attributes
    ----------
    smallest : int or None
        Size of the smallest stable set; None if it exceeds the limit.
    """

    smallest: int | None
    dropped: int
    """Users in every S, because their types are not kept."""
    active: tuple[int, ...]
    """Types that are kept, by their index."""
    counts: tuple[int, ...]
    """Users of each of them."""
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
        return pmfs.row(int(row))

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
    """Find the smallest stable sets.

    Parameters
    ----------
    types : Types
        The users, and the inner algorithm.
    kept, deletions : int
        n - D and D, the numbers of users kept and left out.
    limit : int
        Largest size of a stable set that matters, at most D.
    inner : InnerPmfs
        The relation.
    progress : callable
        Called with (done, total).

    Returns
    -------
    Stability
        Among the ways to keep at most `max_types` types, the first with the smallest stable set.

    Raises
    ------
    BudgetError
        In diagnostics that look at larger sets than a release does, when there are too many ways.
    """
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
                found = _decide(types, dropped, active, deletions, limit, inner, progress)
                if found.smallest is not None and found.smallest < dropped + room:
                    best = found
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
    """What is learned from choices that fail: few of their types that fail already.

    Too many lessons slow down more than they help, and so do futile ones.
    """

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


def _decide(
    types: Types,
    dropped: int,
    active: tuple[int, ...],
    deletions: int,
    limit: int,
    inner: InnerPmfs,
    progress: ProgressCallback,
) -> Stability:
    counts, family, vectors, pmfs = _marked(types, active, deletions - dropped, limit - dropped, inner, progress)
    smallest = family.smallest_stable_size()
    total = None if smallest is None else dropped + smallest
    return Stability(total, dropped, active, counts, family, pmfs, vectors)


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
    """True when at least `room` users of these types are in every stable set, whoever else is there.

    With `small_only` larger pools are not decided.
    """
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
