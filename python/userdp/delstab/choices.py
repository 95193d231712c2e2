"""Which types of users to keep, where a dataset has more of them than a stable pool may have.

Choices come one at a time, those that drop the fewest users first, and what is known to fail is never tried again.
How many there are is bounded for all datasets: see `most_choices`.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence


def most_choices(n_users: int, limit: int, max_types: int) -> int:
    """How many choices of `max_types` types drop at most `limit` < n / 2 users, in any dataset of n users.

    Attained by one type of many users beside types of one user each. Proof: docs/proofs/delstab_paper.md, "Choices".
    """
    types = min(n_users, max_types + limit)
    if types <= max_types:
        return 1
    return math.comb(types - 1, max_types - 1) if types >= 2 * max_types else math.comb(types, max_types)


class Choices:
    """The ways to keep a number of types, in the order of the users that they drop, then of the types dropped.

    Parameters
    ----------
    sizes : sequence of int
        Users of each type, ascending.
    kept : int
        How many types are kept, at most all.
    bound : int
        How many users may be dropped.
    """

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
        """The choices that drop this many users, as the places of the types that they keep.

        Of two choices the one that drops the first type in which they differ comes first.
        """
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
            own = mask | 1 << place
            if not self.over and not any(failure & own == failure for failure in self._failures[place]):
                yield from self._extend((*places, place), own, place + 1, users - sizes[place])
