"""All ways to delete r users from a dataset, and the pmfs of an algorithm on what is left; one class per engine.

An engine numbers its members, which stand for all deletion sets: equal members of different engines need not have
equal ranks. Engines are plain data, so that ranges of ranks can be searched by other processes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import Dataset
from userdp.algorithms.finite import DistinctPmfs, Totals, call_on, evaluate_datasets, form_of
from userdp.exact.encoding import key_of
from userdp.exact.pmf import PmfLike, distinct_masses
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

SYMMETRY_SAMPLES = 16
MAX_REACHABLE_BITS = 2**33
"""Of the table of totals that can be reached: one gigabyte."""

Positions = tuple[int, ...]


class Deletions(Protocol):
    """What the search asks of an engine."""

    name: ClassVar[str]
    cheaper: ClassVar[str]
    in_core: ClassVar[bool]

    @property
    def members(self) -> int | None:
        """How many pmfs there are to compare; None from about 2**64 on."""
        ...

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        """The pmfs of ranges of ranks, and the rank that each row stands for."""
        ...

    def deleted(self, rank: int) -> Positions:
        """A deletion set that the rank stands for."""
        ...

    def pmf(self, deleted: Positions) -> PmfLike:
        """What the algorithm states after this deletion."""
        ...

    def check(self) -> None:
        """Test on samples what the engine takes for granted about the algorithm."""
        ...


def engine_for(algorithm: Any, dataset: Dataset, r: int, outputs: tuple[Any, ...]) -> Deletions:
    """The cheapest engine that the algorithm's own pmf allows."""
    engines: dict[str, type[Score | Additive | Symmetric | General]] = {
        "score": Score,
        "additive": Additive,
        "symmetric": Symmetric,
        "labeled": General,
    }
    return engines[form_of(algorithm)](algorithm, dataset, r, outputs)


def _where(deleted: Sequence[int]) -> Totals:
    return Totals(f"left by deleting the users at positions {tuple(deleted)}")


def _matrix(found: DistinctPmfs, ranks: Sequence[int]) -> tuple[_core.PmfMatrix, Sequence[int]]:
    """Distinct pmfs, each with the first rank that has it."""
    first = dict(zip(reversed(found.index_of), reversed(ranks), strict=True))
    masses = found.masses
    if all(isinstance(pmf, np.ndarray) for pmf in masses):
        matrix = _core.PmfMatrix.from_floats(np.array(masses, dtype=np.float64))
    else:
        matrix = _core.PmfMatrix.from_masses(masses)
    return matrix, [first[index] for index in range(len(masses))]


@dataclass(frozen=True)
class _Engine:
    algorithm: Any
    dataset: Dataset
    r: int
    outputs: tuple[Any, ...]

    cheaper: ClassVar[str] = ""
    in_core: ClassVar[bool] = False

    def kept(self, deleted: Sequence[int]) -> Dataset:
        """The users that are left, in index order."""
        gone = set(deleted)
        return tuple(user for position, user in enumerate(self.dataset) if position not in gone)

    def pmf(self, deleted: Positions) -> PmfLike:
        masses: PmfLike = call_on(self.algorithm.pmf, self.kept(deleted), _where(deleted))
        return masses

    def check(self) -> None:
        """Nothing is taken for granted."""


@dataclass(frozen=True)
class General(_Engine):
    """Every deletion set, in colexicographic order."""

    name: ClassVar[str] = "general"
    cheaper: ClassVar[str] = (
        "fewer deletions; or a SymmetricAlgorithm, which is checked over count vectors of distinct users, an "
        "AdditiveAlgorithm (over totals) or a SummedScoreEM (whose pmfs the core makes)"
    )

    @property
    def members(self) -> int | None:
        return _core.count_subsets(len(self.dataset), self.r)

    def deleted(self, rank: int) -> Positions:
        return tuple(_core.subsets(len(self.dataset), self.r, rank, rank + 1)[0].tolist())

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        sets = np.concatenate([_core.subsets(len(self.dataset), self.r, part.start, part.stop) for part in ranges])
        found = evaluate_datasets(
            self.algorithm,
            self.outputs,
            (self.kept(deleted.tolist()) for deleted in sets),
            len(sets),
            progress,
            lambda row: _where(sets[row].tolist()),
        )
        return _matrix(found, list(itertools.chain(*ranges)))


@dataclass(frozen=True)
class _Kinds:
    """Users by kind: count vectors say how many of each are deleted."""

    positions: tuple[Positions, ...]

    @cached_property
    def counts(self) -> list[int]:
        return [len(positions) for positions in self.positions]

    def number(self, r: int) -> int | None:
        return _core.count_vectors_number(self.counts, r)

    def vectors(self, r: int, ranges: Sequence[range]) -> npt.NDArray[np.uint16]:
        return np.concatenate([_core.count_vectors(self.counts, r, part.start, part.stop) for part in ranges])

    def deleted(self, vector: npt.NDArray[np.uint16]) -> Positions:
        """The first users of each kind, as many as the vector says."""
        parts = zip(self.positions, vector.tolist(), strict=True)
        return tuple(sorted(itertools.chain.from_iterable(positions[:part] for positions, part in parts)))


@dataclass(frozen=True)
class Symmetric(_Engine):
    """Count vectors of distinct users; what is left is listed in the order of the users' codes."""

    name: ClassVar[str] = "symmetric"
    cheaper: ClassVar[str] = (
        "fewer deletions or fewer distinct users; or an AdditiveAlgorithm, which is checked over totals, or a "
        "SummedScoreEM (whose pmfs the core makes)"
    )

    @cached_property
    def kinds(self) -> _Kinds:
        positions: dict[str, list[int]] = {}
        for position, user in enumerate(self.dataset):
            positions.setdefault(key_of(user), []).append(position)
        return _Kinds(tuple(tuple(positions[text]) for text in sorted(positions)))

    @property
    def members(self) -> int | None:
        return self.kinds.number(self.r)

    def kept(self, deleted: Sequence[int]) -> Dataset:
        """The users that are left, in the one order that depends on them only."""
        gone = set(deleted)
        kinds = self.kinds.positions
        return tuple(self.dataset[position] for kind in kinds for position in kind if position not in gone)

    def deleted(self, rank: int) -> Positions:
        return self.kinds.deleted(self.kinds.vectors(self.r, [range(rank, rank + 1)])[0])

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        vectors = self.kinds.vectors(self.r, ranges)
        found = evaluate_datasets(
            self.algorithm,
            self.outputs,
            map(self._left, vectors),
            len(vectors),
            progress,
            lambda row: _where(self.kinds.deleted(vectors[row])),
        )
        return _matrix(found, list(itertools.chain(*ranges)))

    def _left(self, vector: npt.NDArray[np.uint16]) -> Dataset:
        parts = zip(self.kinds.positions, vector.tolist(), strict=True)
        return tuple(
            itertools.chain.from_iterable(
                itertools.repeat(self.dataset[positions[0]], len(positions) - part) for positions, part in parts
            )
        )

    def check(self) -> None:
        """Compare with the reverse order on samples."""
        members = self.members
        if members is None:
            return
        for rank in sorted({members * sample // SYMMETRY_SAMPLES for sample in range(SYMMETRY_SAMPLES)}):
            deleted = self.deleted(rank)
            where = _where(deleted)
            both = DistinctPmfs(self.outputs)
            for dataset in (self.kept(deleted), self.kept(deleted)[::-1]):
                both.add(call_on(self.algorithm.pmf, dataset, where), where)
            if len(both.masses) > 1:
                raise ValueError(
                    f"the algorithm is declared symmetric, but its pmf on the dataset {where} changes when the users "
                    "are listed in reverse order. Return exactly the same masses for every order, or pass an "
                    "algorithm that is not declared symmetric"
                )


@dataclass(frozen=True)
class Additive(_Engine):
    """The totals that can be reached by keeping n - r users, in increasing order."""

    name: ClassVar[str] = "additive"
    cheaper: ClassVar[str] = "fewer deletions, or a narrower statistic_range"

    @cached_property
    def kinds(self) -> dict[int, list[int]]:
        """Positions by statistic."""
        positions: dict[int, list[int]] = {}
        for position, user in enumerate(self.dataset):
            positions.setdefault(self.algorithm.statistic_of(user), []).append(position)
        return positions

    @cached_property
    def offset(self) -> int:
        return min(self.kinds, default=0)

    def _reachable(self) -> Iterator[list[int]]:
        """After each kind: entry c is the set of the sums (above the offset) of c deleted users, as bits."""
        reachable = [1] + [0] * self.r
        for value, positions in self.kinds.items():
            rest, copies = min(len(positions), self.r), 1
            while rest:  # 1, 2, 4, ... copies at a time reach every number of copies up to the rest
                copies = min(copies, rest)
                step = copies * (value - self.offset)
                for count in range(self.r, copies - 1, -1):
                    reachable[count] |= reachable[count - copies] << step
                rest -= copies
                copies *= 2
            yield list(reachable)

    @cached_property
    def deleted_sums(self) -> list[int]:
        """The sums of deleted statistics that occur, largest first, so that kept totals increase."""
        spread = max(self.kinds, default=0) - self.offset
        if (self.r + 1) * (self.r * spread + 1) * (len(self.kinds) + 1) > MAX_REACHABLE_BITS:
            raise BudgetError(
                f"the sums of {self.r} of {len(self.dataset)} statistics in a range of {spread} take a table of over "
                f"{MAX_REACHABLE_BITS:,} bits. Cheaper: {self.cheaper}"
            )
        last = 1 if self.r == 0 else 0
        for reachable in self._reachable():
            last = reachable[self.r]
        bits = np.frombuffer(last.to_bytes((last.bit_length() + 7) // 8, "little"), dtype=np.uint8)
        sums = np.flatnonzero(np.unpackbits(bits, bitorder="little"))[::-1].tolist()
        return [total + self.r * self.offset for total in sums]

    @property
    def members(self) -> int | None:
        return len(self.deleted_sums)

    @cached_property
    def everyone(self) -> int:
        return sum(value * len(positions) for value, positions in self.kinds.items())

    def _ask(self, total: int) -> tuple[PmfLike, Totals]:
        kept = len(self.dataset) - self.r
        where = Totals(f"of {kept} kept users with total {total}")
        return call_on(lambda pair: self.algorithm.pmf_of_total(*pair), (total, kept), where), where

    def pmf(self, deleted: Positions) -> PmfLike:
        return self._ask(self.everyone - sum(map(self.algorithm.statistic_of, map(self.dataset.__getitem__, deleted))))[
            0
        ]

    def deleted(self, rank: int) -> Positions:
        target, count = self.deleted_sums[rank] - self.r * self.offset, self.r
        chosen: list[int] = []
        layers = [[1] + [0] * self.r, *self._reachable()]
        for before, (value, positions) in reversed(list(zip(layers, self.kinds.items(), strict=False))):
            step = value - self.offset
            part = next(
                part
                for part in range(min(len(positions), count) + 1)
                if target >= part * step and before[count - part] >> (target - part * step) & 1
            )
            chosen.extend(positions[:part])
            target, count = target - part * step, count - part
        return tuple(sorted(chosen))

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        ranks = list(itertools.chain(*ranges))
        found = DistinctPmfs(self.outputs)
        for done, rank in enumerate(ranks):
            found.add(*self._ask(self.everyone - self.deleted_sums[rank]))
            if done % 1024 == 0:
                progress(done, len(ranks))
        if ranks:
            again = DistinctPmfs(self.outputs)
            returned, where = self._ask(self.everyone - self.deleted_sums[ranks[0]])
            again.add(returned, where)
            if distinct_masses(again.masses[0]) != distinct_masses(found.masses[0]):
                raise ValueError(
                    f"the algorithm returned two different pmfs on the dataset {where}; "
                    "pmf_of_total must be deterministic"
                )
        return _matrix(found, ranks)


@dataclass(frozen=True)
class Score(_Engine):
    """A `SummedScoreEM`: the core makes every pmf, by kinds of users with the same differences of scores."""

    name: ClassVar[str] = "score"
    cheaper: ClassVar[str] = "fewer deletions, coarser scores (fewer kinds of users), or an executor"
    in_core: ClassVar[bool] = True

    table: npt.NDArray[np.int64] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        scores = self.algorithm.score_table(self.dataset)
        # The pmf depends on differences of totals only: a user's scores may be moved together.
        object.__setattr__(self, "table", scores - scores.min(axis=1, keepdims=True))

    @cached_property
    def kinds(self) -> _Kinds:
        positions: dict[bytes, list[int]] = {}
        for position, row in enumerate(self.table):
            positions.setdefault(row.tobytes(), []).append(position)
        return _Kinds(tuple(map(tuple, positions.values())))

    @property
    def members(self) -> int | None:
        return self.kinds.number(self.r)

    def deleted(self, rank: int) -> Positions:
        return self.kinds.deleted(self.kinds.vectors(self.r, [range(rank, rank + 1)])[0])

    def matrix(self, ranges: Sequence[range], progress: ProgressCallback) -> tuple[_core.PmfMatrix, Sequence[int]]:
        core, kinds = self.algorithm.core(), self.kinds.positions
        ranks = ranges[0] if len(ranges) == 1 else list(itertools.chain(*ranges))
        if len(kinds) == len(self.dataset) and ranks == range(math.comb(len(kinds), self.r)) and kinds:
            # Count vectors of ones and zeros are subsets, in the same order.
            return core.matrix_of_subsets(self.table, self.r), ranks
        if not kinds:
            return core.matrix_of_totals(np.zeros((1, len(self.outputs)), dtype=np.int64)), ranks
        first = np.ascontiguousarray(self.table[[positions[0] for positions in kinds]])
        return core.matrix_of_vectors(first, self.kinds.counts, self.kinds.vectors(self.r, ranges)), ranks
