"""The datasets of an audit, ranked, and the pairs of ranks that are neighbours.

Ranks and structures are those of docs/report-format.md, so that a report can be enumerated again by its checker, which
has its own code for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from userdp.algorithms import AdditiveAlgorithm, Dataset, User

__all__ = [
    "Additive",
    "Labelled",
    "Neighbourhood",
    "Pair",
    "Replacements",
    "Symmetric",
    "moves",
    "user_values",
]

Ranks = npt.NDArray[np.int64]
RankPairs = Iterator[tuple[Ranks, Ranks]]


class Neighbourhood(Protocol):
    """Ranked datasets and their neighbouring pairs."""

    datasets: int
    pairs: int

    def members(self) -> Iterator[Dataset]:
        """The datasets in the order of their ranks."""
        ...

    def rank_pairs(self) -> RankPairs:
        """Blocks of neighbouring ranks (a, b); every unordered pair once."""
        ...

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        """Two neighbouring datasets of these ranks and the position of the user that differs."""
        ...


def user_values(universe: Sequence[Any], n_examples: int) -> list[User]:
    """All values of a user with m examples, in rank order."""
    return list(itertools.product(universe, repeat=n_examples))


def moves(universe_size: int, n_examples: int, *, item_level: bool) -> list[tuple[int, int]]:
    """Pairs v < w of value ranks that one neighbouring step connects."""
    values = universe_size**n_examples
    if not item_level:
        return list(itertools.combinations(range(values), 2))
    steps = [universe_size**place for place in range(n_examples)]
    return [
        (value, value + jump * step)
        for value in range(values)
        for step in steps
        for jump in range(1, universe_size - (value // step) % universe_size)
    ]


def _changed(x: Dataset, x2: Dataset) -> int | None:
    if len(x) != len(x2):
        return None
    return next((position for position, (a, b) in enumerate(zip(x, x2, strict=True)) if a != b), None)


class Pair:
    """Two given datasets."""

    datasets, pairs = 2, 1

    def __init__(self, x: Dataset, x2: Dataset) -> None:
        self._members = (x, x2)

    def members(self) -> Iterator[Dataset]:
        return iter(self._members)

    def rank_pairs(self) -> RankPairs:
        yield np.array([0]), np.array([1])

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        x, x2 = self._members[a], self._members[b]
        return x, x2, _changed(x, x2)


class Replacements:
    """One dataset against every replacement of one user, at the given positions, by one of the records."""

    def __init__(self, dataset: Dataset, records: Sequence[User], replaceable: Sequence[int]) -> None:
        self.dataset, self.records, self.replaceable = dataset, records, replaceable
        self.pairs = len(replaceable) * len(records)
        self.datasets = 1 + self.pairs

    def _member(self, rank: int) -> Dataset:
        if rank == 0:
            return self.dataset
        place, record = divmod(rank - 1, len(self.records))
        position = self.replaceable[place]
        return (*self.dataset[:position], self.records[record], *self.dataset[position + 1 :])

    def members(self) -> Iterator[Dataset]:
        return map(self._member, range(self.datasets))

    def rank_pairs(self) -> RankPairs:
        yield np.zeros(self.pairs, dtype=np.int64), np.arange(1, self.datasets, dtype=np.int64)

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        return self._member(a), self._member(b), self.replaceable[(max(a, b) - 1) // len(self.records)]


class Labelled:
    """All sequences of n users, in the order of itertools.product."""

    def __init__(
        self,
        values: Sequence[User],
        n_users: int,
        steps: Sequence[tuple[int, int]],
        *,
        add_remove: bool = False,
    ) -> None:
        self.values, self.n_users, self.steps, self.add_remove = values, n_users, steps, add_remove
        self._full = len(values) ** n_users
        if add_remove:
            smaller = len(values) ** (n_users - 1)
            self.datasets = self._full + smaller
            # Removing one of several equal neighbours in the sequence gives one dataset: count runs, not positions.
            self.pairs = self._full + (n_users - 1) * (self._full - smaller)
        else:
            self.datasets = self._full
            self.pairs = n_users * len(steps) * len(values) ** (n_users - 1)

    def _member(self, rank: int) -> Dataset:
        length, rest = (self.n_users, rank) if rank < self._full else (self.n_users - 1, rank - self._full)
        digits = []
        for _ in range(length):
            rest, digit = divmod(rest, len(self.values))
            digits.append(self.values[digit])
        return tuple(reversed(digits))

    def members(self) -> Iterator[Dataset]:
        yield from itertools.product(self.values, repeat=self.n_users)
        if self.add_remove:
            yield from itertools.product(self.values, repeat=self.n_users - 1)

    def rank_pairs(self) -> RankPairs:
        base = len(self.values)
        for position in range(self.n_users):
            place = base ** (self.n_users - 1 - position)
            others = np.arange(base ** (self.n_users - 1), dtype=np.int64)
            before, after = others // place * place * base, others % place
            if self.add_remove:
                for value in range(base):
                    # A run of equal users is represented by its first position.
                    ranks = before + value * place + after
                    fresh = np.ones(len(others), dtype=bool) if position == 0 else others // place % base != value
                    yield ranks[fresh], self._full + others[fresh]
            else:
                for v, w in self.steps:
                    yield before + v * place + after, before + w * place + after

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        x, x2 = self._member(a), self._member(b)
        return x, x2, _changed(x, x2)


class Symmetric:
    """All multisets of n users, in the order of itertools.combinations_with_replacement."""

    def __init__(
        self,
        values: Sequence[User],
        n_users: int,
        steps: Sequence[tuple[int, int]],
        *,
        add_remove: bool = False,
    ) -> None:
        self.values, self.n_users, self.steps, self.add_remove = values, n_users, steps, add_remove
        count = len(values)
        full, smaller = math.comb(n_users + count - 1, n_users), math.comb(n_users + count - 2, n_users - 1)
        self.datasets = full + smaller if add_remove else full
        self.pairs = smaller * (count if add_remove else len(steps))

    def _multisets(self, size: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations_with_replacement(range(len(self.values)), size)

    def members(self) -> Iterator[Dataset]:
        sizes = (self.n_users, self.n_users - 1) if self.add_remove else (self.n_users,)
        for size in sizes:
            for multiset in self._multisets(size):
                yield tuple(self.values[value] for value in multiset)

    def rank_pairs(self) -> RankPairs:
        rank = {multiset: position for position, multiset in enumerate(self._multisets(self.n_users))}
        left, right = [], []
        for index, rest in enumerate(self._multisets(self.n_users - 1)):
            with_value = [rank[tuple(sorted((*rest, value)))] for value in range(len(self.values))]
            if self.add_remove:
                left.extend(with_value)
                right.extend([len(rank) + index] * len(with_value))
            else:
                left.extend(with_value[v] for v, _ in self.steps)
                right.extend(with_value[w] for _, w in self.steps)
            if len(left) > 1 << 18:
                yield np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)
                left, right = [], []
        yield np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        members = list(itertools.chain(self._multisets(self.n_users), self._multisets(self.n_users - 1)))
        x, x2 = members[a], members[b]
        common = _intersection(x, x2)
        full_x, full_x2 = (
            tuple(self.values[value] for value in (*common, *_difference(side, common))) for side in (x, x2)
        )
        return full_x, full_x2, len(common) if len(x) == len(x2) else None


def _intersection(x: Sequence[int], x2: Sequence[int]) -> list[int]:
    rest, common = list(x2), []
    for value in x:
        if value in rest:
            rest.remove(value)
            common.append(value)
    return common


def _difference(x: Sequence[int], common: Sequence[int]) -> list[int]:
    rest = list(x)
    for value in common:
        rest.remove(value)
    return rest


class Additive:
    """All attainable totals of n users' statistics, increasing."""

    def __init__(
        self,
        algorithm: AdditiveAlgorithm,
        values: Sequence[User],
        n_users: int,
        steps: Sequence[tuple[int, int]],
        *,
        add_remove: bool = False,
    ) -> None:
        self.values, self.n_users, self.steps, self.add_remove = values, n_users, steps, add_remove
        self.statistics = [algorithm.statistic_of(value) for value in values]
        distinct = sorted(set(self.statistics))
        self._rests = _sums(distinct, n_users - 1)
        self._totals = _sums(distinct, n_users)
        self._rank = {total: rank for rank, total in enumerate(self._totals)}
        self.datasets = len(self._totals) + (len(self._rests) if add_remove else 0)
        self._pairs = sorted(self._rank_pairs())
        self.pairs = len(self._pairs)

    def totals(self) -> list[tuple[int, int]]:
        """(total, number of users) by rank."""
        full = [(total, self.n_users) for total in self._totals]
        return full + [(total, self.n_users - 1) for total in self._rests] if self.add_remove else full

    def _rank_pairs(self) -> set[tuple[int, int]]:
        statistics, rank = self.statistics, self._rank
        if self.add_remove:
            return {
                (rank[rest + statistic], len(self._totals) + index)
                for index, rest in enumerate(self._rests)
                for statistic in set(statistics)
            }
        jumps = {tuple(sorted((statistics[v], statistics[w]))) for v, w in self.steps if statistics[v] != statistics[w]}
        return {(rank[rest + low], rank[rest + high]) for rest in self._rests for low, high in jumps}

    def members(self) -> Iterator[Dataset]:
        for total, n_users in self.totals():
            yield self._representative(total, n_users)

    def rank_pairs(self) -> RankPairs:
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        yield pairs[:, 0], pairs[:, 1]

    def _representative(self, total: int, n_users: int) -> Dataset:
        """The first dataset, in rank order of non-decreasing value ranks, with this total."""
        chosen = _first_with_total(self.statistics, total, n_users)
        return tuple(self.values[value] for value in chosen)

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        totals = self.totals()
        (total_a, n_a), (total_b, n_b) = totals[a], totals[b]
        if n_a != n_b:
            rest, full = (total_b, total_a) if n_a > n_b else (total_a, total_b)
            users = self._representative(rest, self.n_users - 1)
            longer = (*users, self.values[self.statistics.index(full - rest)])
            return (longer, users, None) if n_a > n_b else (users, longer, None)
        for v, w in itertools.chain(self.steps, ((w, v) for v, w in self.steps)):
            rest_total = total_a - self.statistics[v]
            if rest_total in self._rests and rest_total + self.statistics[w] == total_b:
                users = self._representative(rest_total, self.n_users - 1)
                return (*users, self.values[v]), (*users, self.values[w]), self.n_users - 1
        raise AssertionError("ranks are not neighbours")


def _sums(statistics: Sequence[int], count: int) -> list[int]:
    sums = {0}
    for _ in range(count):
        sums = {total + statistic for total in sums for statistic in statistics}
    return sorted(sums)


def _first_with_total(statistics: Sequence[int], total: int, count: int) -> list[int]:
    """The lexicographically first non-decreasing sequence of `count` value ranks whose statistics sum to `total`."""
    # reachable[n] = for each value rank v the sums of n values of rank >= v
    size = len(statistics)
    reachable: list[list[set[int]]] = [[{0} for _ in range(size)]]
    for _ in range(count):
        row: list[set[int]] = [set() for _ in range(size)]
        tail: set[int] = set()
        for value in reversed(range(size)):
            tail = tail | {statistics[value] + rest for rest in reachable[-1][value]}
            row[value] = tail
        reachable.append(row)
    chosen: list[int] = []
    smallest = 0
    for left in range(count, 0, -1):
        smallest = next(
            value for value in range(smallest, size) if total - statistics[value] in reachable[left - 1][value]
        )
        chosen.append(smallest)
        total -= statistics[smallest]
    return chosen
