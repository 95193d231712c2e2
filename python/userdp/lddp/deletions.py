"""All ways to delete r users from a dataset, and the pmfs of an algorithm on what is left; one class per engine.

An engine numbers its members, which stand for all deletion sets: equal members of different engines need not have
equal ranks. Engines are plain data, so that ranges of ranks can be searched by other processes.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import Dataset
from userdp.algorithms.finite import DistinctPmfs, Totals, call_on, evaluate_datasets, form_of
from userdp.exact.encoding import key_of
from userdp.exact.numbers import short_repr
from userdp.runtime import ProgressCallback

SYMMETRY_SAMPLES = 16

Positions = tuple[int, ...]


@dataclass(frozen=True)
class Deletions:
    """Every deletion set, in colexicographic order: the engine of all algorithms. Others say what they do instead."""

    algorithm: Any
    dataset: Dataset
    r: int
    outputs: tuple[Any, ...]

    name: ClassVar[str] = "general"
    cheaper: ClassVar[str] = (
        "fewer deletions; or a SymmetricAlgorithm, which is checked over count vectors of distinct users, an "
        "AdditiveAlgorithm (over totals) or a SummedScoreEM (whose pmfs the core makes)"
    )
    in_core: ClassVar[bool] = False
    lists_users: ClassVar[bool] = True

    @property
    def members(self) -> int | None:
        """How many pmfs there are to compare; None from about 2**64 on."""
        return _core.count_subsets(len(self.dataset), self.r)

    def rows(self, ranges: Sequence[range]) -> npt.NDArray[Any]:
        """What is deleted at each rank of some ranges."""
        return np.concatenate([_core.subsets(len(self.dataset), self.r, part.start, part.stop) for part in ranges])

    def positions(self, row: Any) -> Positions:
        """A deletion set that a row stands for."""
        return tuple(row.tolist())

    def deleted(self, rank: int) -> Positions:
        """A deletion set that the rank stands for."""
        return self.positions(self.rows([range(rank, rank + 1)])[0])

    def kept(self, deleted: Sequence[int]) -> Dataset:
        """The users that are left, in index order."""
        gone = set(deleted)
        return tuple(user for position, user in enumerate(self.dataset) if position not in gone)

    def left(self, row: Any) -> Any:
        """What the algorithm is asked about."""
        return self.kept(self.positions(row))

    def where(self, row: Any) -> Totals:
        """The same in words."""
        return Totals(f"left by deleting the users at positions {self.positions(row)}")

    @property
    def asked(self) -> Any:
        """What is asked for the pmfs."""
        return self.algorithm

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        """The distinct pmfs of ranges of ranks, each with the first rank that has it."""
        rows, ranks = self.rows(ranges), list(itertools.chain(*ranges))
        datasets = map(self.left, rows)
        found = evaluate_datasets(
            self.asked, self.outputs, datasets, len(rows), progress, lambda index: self.where(rows[index])
        )
        first = dict(zip(reversed(found.index_of), reversed(ranks), strict=True))
        if all(isinstance(pmf, np.ndarray) for pmf in found.masses):
            matrix = _core.PmfMatrix.from_floats(np.array(found.masses, dtype=np.float64))
        else:
            matrix = _core.PmfMatrix.from_masses(found.masses)
        return matrix, [first[index] for index in range(len(found.masses))]

    def check(self) -> None:
        """Test on samples what the engine takes for granted about the algorithm: nothing."""


class ByKind(Deletions, ABC):
    """Count vectors of users by kind: how many of each are deleted, the first ones."""

    @abstractmethod
    def keys(self) -> Iterable[Any]:
        """Of each user: those of a kind have the same."""

    @cached_property
    def kinds(self) -> dict[Any, list[int]]:
        """Positions by key."""
        positions: dict[Any, list[int]] = {}
        for position, key in enumerate(self.keys()):
            positions.setdefault(key, []).append(position)
        return positions

    @cached_property
    def counts(self) -> list[int]:
        """Users of each kind."""
        return list(map(len, self.kinds.values()))

    @property
    def members(self) -> int | None:
        return _core.count_vectors_number(self.counts, self.r)

    def rows(self, ranges: Sequence[range]) -> npt.NDArray[Any]:
        return np.concatenate([_core.count_vectors(self.counts, self.r, part.start, part.stop) for part in ranges])

    def positions(self, row: Any) -> Positions:
        parts = zip(self.kinds.values(), row.tolist(), strict=True)
        return tuple(sorted(itertools.chain.from_iterable(positions[:part] for positions, part in parts)))


class Symmetric(ByKind):
    """Count vectors of distinct users; what is left is listed in the order of the users' codes."""

    name: ClassVar[str] = "symmetric"
    cheaper: ClassVar[str] = (
        "fewer deletions or fewer distinct users; or an AdditiveAlgorithm, which is checked over totals, or a "
        "SummedScoreEM (whose pmfs the core makes)"
    )

    def keys(self) -> Iterable[Any]:
        return map(key_of, self.dataset)

    @cached_property
    def kinds(self) -> dict[Any, list[int]]:
        return dict(sorted(super().kinds.items()))

    def kept(self, deleted: Sequence[int]) -> Dataset:
        """The users that are left, in the one order that depends on them only."""
        gone, order = set(deleted), itertools.chain.from_iterable(self.kinds.values())
        return tuple(self.dataset[position] for position in order if position not in gone)

    def left(self, row: Any) -> Dataset:
        parts = zip(self.kinds.values(), row.tolist(), strict=True)
        users = (itertools.repeat(self.dataset[kind[0]], len(kind) - part) for kind, part in parts)
        return tuple(itertools.chain.from_iterable(users))

    def check(self) -> None:
        """Compare with the reverse order on samples."""
        members = self.members
        if members is None:
            return
        for rank in sorted({members * sample // SYMMETRY_SAMPLES for sample in range(SYMMETRY_SAMPLES)}):
            row = self.rows([range(rank, rank + 1)])[0]
            where, dataset = self.where(row), self.kept(self.positions(row))
            both = DistinctPmfs(self.outputs)
            for users in (dataset, dataset[::-1]):
                both.add(call_on(self.algorithm.pmf, users, where), where)
            if len(both.masses) > 1:
                raise ValueError(
                    f"the algorithm is declared symmetric, but its pmf on the dataset {where} changes when the users "
                    "are listed in reverse order. Return exactly the same masses for every order, or pass an "
                    "algorithm that is not declared symmetric"
                )


class Additive(ByKind):
    """The totals that can be reached by keeping n - r users, in increasing order."""

    name: ClassVar[str] = "additive"
    cheaper: ClassVar[str] = "fewer deletions, or a narrower statistic_range"
    lists_users: ClassVar[bool] = False

    def keys(self) -> Iterable[int]:
        return map(self.algorithm.statistic_of, self.dataset)

    @cached_property
    def sums(self) -> npt.NDArray[np.uint64]:
        """Of deleted statistics above the smallest one, largest first, so that kept totals increase."""
        return _core.deleted_sums(list(self.kinds), self.counts, self.r)

    @cached_property
    def largest(self) -> int:
        """The total that would be kept at the sum 0."""
        everyone: int = sum(value * count for value, count in zip(self.kinds, self.counts, strict=True))
        smallest: int = min(self.kinds, default=0)
        return everyone - self.r * smallest

    @property
    def members(self) -> int | None:
        return len(self.sums)

    def rows(self, ranges: Sequence[range]) -> npt.NDArray[Any]:
        return np.concatenate([self.sums[part.start : part.stop] for part in ranges])

    def positions(self, row: Any) -> Positions:
        parts = _core.deleted_parts(list(self.kinds), self.counts, self.r, int(row))
        return super().positions(np.array(parts, dtype=np.uint64))

    def left(self, row: Any) -> tuple[int, int]:
        return self.largest - int(row), len(self.dataset) - self.r

    def where(self, row: Any) -> Totals:
        total, kept = self.left(row)
        return Totals(f"of {kept} kept users with total {short_repr(total)}")

    @property
    def asked(self) -> Any:
        return SimpleNamespace(pmf=lambda pair: self.algorithm.pmf_of_total(*pair))


class Score(ByKind):
    """A `SummedScoreEM`: the core makes every pmf, by kinds of users with the same differences of scores."""

    name: ClassVar[str] = "score"
    cheaper: ClassVar[str] = "fewer deletions, coarser scores (fewer kinds of users), or an executor"
    in_core: ClassVar[bool] = True
    lists_users: ClassVar[bool] = False

    @cached_property
    def table(self) -> npt.NDArray[np.int64]:
        """Differences of scores: on them alone the pmf depends, so that a user's scores may be moved together."""
        scores = self.algorithm.score_table(self.dataset)
        above: npt.NDArray[np.int64] = scores - scores.min(axis=1, keepdims=True)
        return above

    def keys(self) -> Iterable[bytes]:
        return (row.tobytes() for row in self.table)

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        core, kinds = self.algorithm.core(), list(self.kinds.values())
        ranks = ranges[0] if len(ranges) == 1 else list(itertools.chain(*ranges))
        if len(kinds) == len(self.dataset) and ranks == range(math.comb(len(kinds), self.r)) and kinds:
            # Count vectors of ones and zeros are subsets, in the same order.
            return core.matrix_of_subsets(self.table, self.r), ranks
        if not kinds:
            return core.matrix_of_totals(np.zeros((1, len(self.outputs)), dtype=np.int64)), ranks
        first = np.ascontiguousarray(self.table[[positions[0] for positions in kinds]])
        return core.matrix_of_vectors(first, self.counts, self.rows(ranges)), ranks


ENGINES = {"score": Score, "additive": Additive, "symmetric": Symmetric, "labeled": Deletions}


def engine_for(algorithm: Any, dataset: Dataset, r: int, outputs: tuple[Any, ...]) -> Deletions:
    """The cheapest engine that the algorithm's own pmf allows."""
    return ENGINES[form_of(algorithm)](algorithm, dataset, r, outputs)
