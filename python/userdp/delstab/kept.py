"""Stability of users counted by type: the engines for labelled users (types of one user each) and for equal users.

A *type* is what the inner algorithm can see of a user, and a pool (what a set S leaves) counts as stable when all its
kept sets are compatible and it has at most `max_types` types. Both conditions depend on the pool's data alone and pass
to smaller pools, which is all that the privacy proof asks of "stable".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.delstab.compatibility import InnerLaws
from userdp.runtime import ProgressCallback

Vectors: TypeAlias = npt.NDArray[np.uint16]
Law: TypeAlias = "tuple[list[int], int]"
"""Weights of the inner algorithm's outputs, and a total; the refusal has what is missing."""


@dataclass(frozen=True)
class Laws:
    """The inner laws on all kept sets of some types, in the order of the deletion vectors."""

    matrix: _core.PmfMatrix
    incompatible: list[int]

    def row(self, row: int) -> list[Any]:
        """Exact masses."""
        return self.matrix.row(row)


LawsOn: TypeAlias = Callable[[Sequence[int], Vectors], Laws]
"""From the types in play and deletion vectors over them to the laws on what is kept."""


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
    laws_on : callable
        Evaluates the inner algorithm.
    """

    counts: tuple[int, ...]
    unusable: frozenset[int]
    max_types: int
    laws_on: LawsOn


@dataclass(frozen=True)
class Stability:
    """The stable sets of one dataset, and the laws of what they keep.

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
    laws: Laws | None
    vectors: Vectors | None

    def law(self, mixture: Sequence[int], total: int) -> Law:
        """The law of the release, when |S| = r with probability mixture[r] / total."""
        family, laws = self._kept()
        weights, scale = family.exact_output_law(self._shifted(mixture), total, laws.matrix)
        return list(weights), scale

    def bounds(
        self, mixture: Sequence[int], total: int, progress: ProgressCallback
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Certified bounds of the same probabilities."""
        family, laws = self._kept()
        lower, upper = family.output_bounds(self._shifted(mixture), total, laws.matrix, progress)
        return np.asarray(lower), np.asarray(upper)

    def layer_sizes(self, limit: int) -> tuple[int, ...]:
        """The number of stable sets of each size up to the limit (those that keep the active types only)."""
        if self.family is None:
            return (0,) * (limit + 1)
        sizes = [0] * self.dropped + [int(size) for size in self.family.layer_sizes()]
        return tuple(sizes[: limit + 1])

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Draw S uniformly among the stable sets of a size, then the kept set; its law."""
        family, laws = self._kept()
        _, removed = family.sample(size - self.dropped, source.below)
        assert self.vectors is not None
        row = np.flatnonzero((self.vectors == np.array(removed, dtype=np.uint16)).all(axis=1))[0]
        return laws.row(int(row))

    def _kept(self) -> tuple[_core.StableFamily, Laws]:
        assert self.family is not None, "there is a stable set, or nothing is asked"
        assert self.laws is not None
        return self.family, self.laws

    def _shifted(self, mixture: Sequence[int]) -> list[int]:
        return list(mixture[self.dropped :])


NOTHING = Stability(None, 0, (), (), None, None, None)


def exhaustive(types: Types, deletions: int, limit: int, inner: InnerLaws, progress: ProgressCallback) -> Stability:
    """Find the smallest stable sets.

    Parameters
    ----------
    types : Types
        The users, and the inner algorithm.
    deletions : int
        D, the number of users left out of every kept set.
    limit : int
        Largest size of a stable set that matters, at most D.
    inner : InnerLaws
        The relation.
    progress : callable
        Called with (done, total).

    Returns
    -------
    Stability
        Among the ways to keep at most `max_types` types, the first with the smallest stable set.
    """
    best = NOTHING
    for dropped, active in _choices(types, limit):
        if best.smallest is not None and dropped >= best.smallest:
            break
        found = _decide(types, dropped, active, deletions, limit, inner, progress)
        if found.smallest is not None and (best.smallest is None or found.smallest < best.smallest):
            best = found
    return best


def _decide(
    types: Types,
    dropped: int,
    active: tuple[int, ...],
    deletions: int,
    limit: int,
    inner: InnerLaws,
    progress: ProgressCallback,
) -> Stability:
    counts = tuple(types.counts[kind] for kind in active)
    family = _core.StableFamily(list(counts), deletions - dropped, limit - dropped)
    vectors = family.vectors()
    laws = types.laws_on(active, vectors)
    family.mark_bad_pairs(laws.matrix, inner.level, inner.delta, laws.incompatible, progress)
    smallest = family.smallest_stable_size()
    total = None if smallest is None else dropped + smallest
    return Stability(total, dropped, active, counts, family, laws, vectors)


def _choices(types: Types, limit: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Which types to keep, those that drop the fewest users first: all usable ones, or as many as are allowed."""
    usable = [kind for kind in range(len(types.counts)) if kind not in types.unusable]
    base = sum(types.counts[kind] for kind in types.unusable)
    excess = max(0, len(usable) - types.max_types)
    ordered = sorted(usable, key=lambda kind: (types.counts[kind], kind))
    sizes = [types.counts[kind] for kind in ordered]
    for total, places in sorted(_subsets(sizes, excess, limit - base)):
        gone = {ordered[place] for place in places}
        active = tuple(kind for kind in usable if kind not in gone)
        if active:
            yield base + total, active


def _subsets(sizes: Sequence[int], number: int, bound: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Sets of `number` places with a sum of sizes, which ascend, of at most `bound`; with the sum."""
    if bound < 0:
        return
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    while stack:
        start, total, places = stack.pop()
        missing = number - len(places)
        if missing == 0:
            yield total, places
            continue
        for place in range(start, len(sizes) - missing + 1):
            if total + sizes[place] * missing > bound:
                break
            stack.append((place + 1, total + sizes[place], (*places, place)))
