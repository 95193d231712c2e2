"""Scores of up to 2**64 neighbouring integers, in groups that share one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp._numbers import is_integer, shown

__all__ = ["GroupedScores"]

MOST = 2**64 - 1


@dataclass(frozen=True, eq=False, repr=False)
class GroupedScores:
    """A score for each integer of a range, in groups of neighbours: group j is starts[j], ..., starts[j + 1] - 1.

    Parameters
    ----------
    starts : array-like of int with shape (g,)
        Where each of g >= 1 groups begins, from 0 to 2**64 - 1, never falling. A group that begins where the next one
        does is empty: it has no candidate, whatever its score. So vectors of one public length can hold groups
        whose number is private.
    scores : array-like of int with shape (g,)
        The score of every candidate of a group, from -2**63 to 2**63 - 1.
    last : int
        The last candidate, at most 2**64 - 1, where the last group ends. That group is empty when it begins at
        ``last + 1``. At least one group is not empty.

    Attributes
    ----------
    starts : ndarray of uint64 with shape (g,)
    scores : ndarray of int64 with shape (g,)
        Read-only views. Contiguous arrays of these types are not copied: who changes them changes the groups.

    Raises
    ------
    TypeError, ValueError
        For anything else.

    Notes
    -----
    Arrays of uint64 and int64 are checked in constant time, except that it shows whether they are groups at all; other
    types are not converted in constant time.

    Examples
    --------
    >>> groups = GroupedScores([0, 1000, 1001], [7, 2, 40], 2**64 - 1)
    >>> groups.n_candidates == 2**64
    True
    >>> list(GroupedScores([0, 10, 10, 20], [5, -3, 4, 6], 29))
    [(0, 9, 5), (10, 19, 4), (20, 29, 6)]
    """

    starts: npt.NDArray[np.uint64]
    scores: npt.NDArray[np.int64]
    last: int

    def __post_init__(self) -> None:
        from userdp import _core

        if not is_integer(self.last):
            raise TypeError(f"last must be an int from 0 to 2**64 - 1; got {shown(self.last)}")
        if not 0 <= self.last <= MOST:
            raise ValueError(f"last must be an int from 0 to 2**64 - 1; got {shown(self.last)}")
        set_field = object.__setattr__  # the class is frozen
        set_field(self, "starts", _vector(self.starts, "starts", np.dtype(np.uint64)))
        set_field(self, "scores", _vector(self.scores, "scores", np.dtype(np.int64)))
        set_field(self, "last", int(self.last))
        _core.check_groups(self.starts, self.scores, self.last)

    def __reduce__(self) -> tuple[Any, ...]:
        return GroupedScores, (self.starts, self.scores, self.last)

    @classmethod
    def from_triples(cls, triples: Iterable[tuple[int, int, int]]) -> GroupedScores:
        """Make groups from (start, end, score), both ends included, each beginning right after the one before.

        Raises
        ------
        TypeError, ValueError
            For triples that are not of integers, are empty, or leave a gap or overlap.

        Examples
        --------
        >>> GroupedScores.from_triples([(0, 9, 5), (10, 19, 4)])
        GroupedScores(2 groups, last=19)
        """
        starts: list[int] = []
        scores: list[int] = []
        expected = None
        try:
            listed = [tuple(triple) for triple in triples]
        except TypeError:
            raise TypeError(f"groups must be triples (start, end, score); got {shown(triples)}") from None
        for index, triple in enumerate(listed):
            if len(triple) != 3 or not all(is_integer(number) for number in triple):
                raise TypeError(f"groups: entry {index} must be three ints (start, end, score); got {shown(triple)}")
            start, end, score = (int(number) for number in triple)
            if start > end:
                raise ValueError(f"groups: entry {index} ends at {end}, before it begins at {start}")
            if expected is not None and start != expected:
                raise ValueError(f"groups: entry {index} must begin at {expected}, after the one before; got {start}")
            starts.append(start)
            scores.append(score)
            expected = end + 1
        if expected is None:
            raise ValueError("groups is empty; there must be a candidate to choose")
        return cls(starts, scores, expected - 1)  # type: ignore[arg-type]  # lists become arrays

    def __repr__(self) -> str:
        return f"GroupedScores({len(self)} groups, last={self.last})"

    def __len__(self) -> int:
        """The number of groups, empty ones included."""
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """(start, end, score) of every group that is not empty, both ends included."""
        starts = self.starts.tolist()
        for start, end, score in zip(starts, [*starts[1:], self.last + 1], self.scores.tolist(), strict=True):
            if start < end:
                yield start, end - 1, score

    @property
    def first(self) -> int:
        """The first candidate."""
        return int(self.starts[0])

    @property
    def n_candidates(self) -> int:
        """How many integers there are to choose from, up to 2**64."""
        return self.last - self.first + 1


def _vector(values: Any, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Integers as a contiguous, aligned, read-only vector of one type, exactly."""
    limits = np.iinfo(dtype)
    accepted = f"{name} must be a vector of integers from {limits.min} to {limits.max}"
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill in the masked values first")
    if not isinstance(values, np.ndarray):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(f"{accepted}; got {shown(values)}")
        values = list(values)
        if not all(is_integer(value) for value in values):
            raise TypeError(f"{accepted}; got {shown(values)}")
        for value in values:
            if not limits.min <= value <= limits.max:
                raise ValueError(f"{accepted}; got {shown(value)}")
        values = np.array([int(value) for value in values], dtype=dtype)
    if values.dtype.kind not in "iu":
        raise TypeError(f"{accepted}; got the dtype {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"{accepted}; got the shape {values.shape}")
    if not np.can_cast(values.dtype, dtype) and values.size:
        for value in (int(values.min()), int(values.max())):
            if not limits.min <= value <= limits.max:
                raise ValueError(f"{accepted}; got {value}")
    vector = np.require(values, dtype, ["C", "A"]).view(np.ndarray)
    vector.flags.writeable = False
    return vector
