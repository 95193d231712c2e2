"""Vectors of users whose sums are remembered, for mechanisms that are run on the same data again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from userdp._vectors import UserVectors

__all__ = ["RememberedVectors"]

Kept = TypeVar("Kept")

MOST_NUMBERS = 2**26
"""So many numbers are kept for one candidate; what comes later is computed each time."""


class RememberedVectors(UserVectors):
    """The same sums as of other vectors, each computed once for the same public arguments."""

    def __init__(self, vectors: UserVectors) -> None:
        self.n_users = vectors.n_users
        self.dimension = vectors.dimension
        self._vectors = vectors._vectors
        self._of = vectors
        self._known: dict[Any, Any] = {}
        self._room = MOST_NUMBERS

    def clipped_sum(self, center: npt.ArrayLike, radius: float, grid: float) -> npt.NDArray[np.int64]:
        key = ("clipped", self._point(center).tobytes(), radius, grid)
        return self._once(key, lambda: self._of.clipped_sum(center, radius, grid))

    def winsorized_sum(self, low: npt.ArrayLike, steps: int, grid: float) -> npt.NDArray[np.int64]:
        key = ("winsorized", self._point(low).tobytes(), steps, grid)
        return self._once(key, lambda: self._of.winsorized_sum(low, steps, grid))

    def bin_counts(self, bins: int, bound: float) -> npt.NDArray[np.uint32]:
        return self._once(("bins", bins, bound), lambda: self._of.bin_counts(bins, bound))

    def occupied_bins(self, bins: int, bound: float) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
        yield from self._once(("occupied", bins, bound), lambda: list(self._of.occupied_bins(bins, bound)))

    def counts_within(self, center: npt.ArrayLike, radii: npt.ArrayLike) -> npt.NDArray[np.int64]:
        key = ("within", self._point(center).tobytes(), np.asarray(radii, dtype=np.float64).tobytes())
        return self._once(key, lambda: self._of.counts_within(center, radii))

    def _once(self, key: Any, compute: Callable[[], Kept]) -> Kept:
        if key in self._known:
            known: Kept = self._known[key]
            return known
        value = compute()
        parts: list[Any] = value if isinstance(value, list) else [value]
        size = sum(int(np.size(part)) for part in parts)
        if size <= self._room:
            self._room -= size
            self._known[key] = value
        return value
