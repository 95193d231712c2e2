"""The datasets of an audit, ranked, and the pairs of ranks that are neighbors.

Ranks and structures are those of docs/report-format.md, so that a report can be enumerated again by its checker, which
has its own code for it.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from userdp.algorithms import Dataset, User
from userdp.exact.encoding import encode
from userdp.exceptions import BudgetError

MAX_SUMS = 100_000_000
"""Sums of a total and a statistic, for all numbers of users."""
MAX_STEPS = 100_000_000
"""Steps between values of a user, and totals times pairs of statistics that a step connects."""

Ranks = npt.NDArray[np.int64]
RankPairs = Iterator[tuple[Ranks, Ranks]]


class Neighborhood(Protocol):
    """Ranked datasets and their neighboring pairs."""

    datasets: int
    pairs: int

    def members(self) -> Iterator[Dataset]:
        """The datasets in the order of their ranks."""
        ...

    def rank_pairs(self) -> RankPairs:
        """Blocks of neighboring ranks (a, b); every unordered pair once."""
        ...

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        """Two neighboring datasets of these ranks and the position of the user that differs."""
        ...


def user_values(universe: Sequence[Any], n_examples: int) -> list[User]:
    """All values of a user with m examples, in rank order."""
    return list(itertools.product(universe, repeat=n_examples))


class Moves:
    """What one neighboring step makes of a user's value: any other value, or (item level) one example changed."""

    def __init__(self, universe_size: int, n_examples: int, *, item_level: bool) -> None:
        self.values, self.item_level = universe_size**n_examples, item_level
        self.count = self.values * (self.values - 1) // 2
        self._places: list[int] | None = None
        if item_level:
            self._universe = universe_size
            self._places = [universe_size**place for place in range(n_examples)]
            self.count = self.values * n_examples * (universe_size - 1) // 2

    def above(self, value: int) -> Ranks:
        """The value ranks w > value that a step connects with it; each unordered step once."""
        if self._places is None:
            return np.arange(value + 1, self.values, dtype=np.int64)
        return np.array(
            [
                value + jump * place
                for place in self._places
                for jump in range(1, self._universe - (value // place) % self._universe)
            ],
            dtype=np.int64,
        )


def _changed(x: Dataset, x2: Dataset) -> int | None:
    """The position of the one user that differs, if there is exactly one."""
    if len(x) != len(x2):
        return None
    differing = [
        position for position, pair in enumerate(zip(x, x2, strict=True)) if encode(pair[0]) != encode(pair[1])
    ]
    return differing[0] if len(differing) == 1 else None


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


class Labeled:
    """All sequences of n users, in the order of itertools.product."""

    def __init__(
        self,
        values: Sequence[User],
        n_users: int,
        steps: Moves,
        *,
        add_remove: bool = False,
    ) -> None:
        self.values, self.n_users, self.steps, self.add_remove = values, n_users, steps, add_remove
        self._full = len(values) ** n_users
        if add_remove:
            smaller = len(values) ** (n_users - 1)
            self.datasets = self._full + smaller
            # Removing one of several equal neighbors in the sequence gives one dataset: count runs, not positions.
            self.pairs = self._full + (n_users - 1) * (self._full - smaller)
        else:
            self.datasets = self._full
            self.pairs = n_users * steps.count * len(values) ** (n_users - 1)

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
                for value in range(base):
                    larger = self.steps.above(value)
                    # Every larger value beside every choice of the others.
                    left = np.broadcast_to(before + value * place + after, (len(larger), len(others)))
                    yield left.ravel(), (before + after + larger[:, None] * place).ravel()

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        x, x2 = self._member(a), self._member(b)
        return x, x2, _changed(x, x2)


class Symmetric:
    """All multisets of n users, in the order of itertools.combinations_with_replacement."""

    def __init__(
        self,
        values: Sequence[User],
        n_users: int,
        steps: Moves,
        *,
        add_remove: bool = False,
    ) -> None:
        self.values, self.n_users, self.steps, self.add_remove = values, n_users, steps, add_remove
        count = len(values)
        full, smaller = math.comb(n_users + count - 1, n_users), math.comb(n_users + count - 2, n_users - 1)
        self.datasets = full + smaller if add_remove else full
        self.pairs = smaller * (count if add_remove else steps.count)

    def _multisets(self, size: int) -> Iterator[tuple[int, ...]]:
        return itertools.combinations_with_replacement(range(len(self.values)), size)

    def members(self) -> Iterator[Dataset]:
        sizes = (self.n_users, self.n_users - 1) if self.add_remove else (self.n_users,)
        for size in sizes:
            for multiset in self._multisets(size):
                yield tuple(self.values[value] for value in multiset)

    def rank_pairs(self) -> RankPairs:
        rank = {multiset: position for position, multiset in enumerate(self._multisets(self.n_users))}
        values = range(len(self.values))
        lower = np.repeat(np.array(values), [len(self.steps.above(value)) for value in values])
        upper = np.concatenate([self.steps.above(value) for value in values])
        for index, rest in enumerate(self._multisets(self.n_users - 1)):
            with_value = np.array([rank[tuple(sorted((*rest, value)))] for value in values], dtype=np.int64)
            if self.add_remove:
                yield with_value, np.full(len(with_value), len(rank) + index)
            else:
                yield with_value[lower], with_value[upper]

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
    """All attainable totals of n users' statistics, increasing.

    `statistics` has the clamped statistic of every value of a user, by rank.
    """

    def __init__(
        self,
        statistics: Sequence[int],
        values: Sequence[User],
        n_users: int,
        steps: Moves,
        *,
        add_remove: bool = False,
    ) -> None:
        self.statistics, self._values, self.n_users, self.add_remove = statistics, values, n_users, add_remove
        # The first value with each statistic stands for all that have it.
        self._user = dict(zip(reversed(statistics), reversed(values), strict=True))
        self._sums = [[0]]
        for _ in range(n_users):
            self._sums.append(sorted({total + statistic for total in self._sums[-1] for statistic in self._user}))
        self._rests, self._totals = self._sums[-2], self._sums[-1]
        self._rank = {total: rank for rank, total in enumerate(self._totals)}
        self.datasets = len(self._totals) + (len(self._rests) if add_remove else 0)
        self._jumps = {} if add_remove else self._jumps_of(steps)
        self._pairs = sorted(self._removals() if add_remove else self._replacements())
        self.pairs = len(self._pairs)

    def totals(self) -> list[tuple[int, int]]:
        """(total, number of users) by rank."""
        full = [(total, self.n_users) for total in self._totals]
        return full + [(total, self.n_users - 1) for total in self._rests] if self.add_remove else full

    def _removals(self) -> set[tuple[int, int]]:
        return {
            (self._rank[rest + statistic], len(self._totals) + index)
            for index, rest in enumerate(self._rests)
            for statistic in self._user
        }

    def _replacements(self) -> set[tuple[int, int]]:
        return {(self._rank[rest + low], self._rank[rest + high]) for rest in self._rests for low, high in self._jumps}

    def _jumps_of(self, steps: Moves) -> dict[tuple[int, int], tuple[User, User]]:
        """Pairs of different statistics that one step connects, the lower first, each with two users who have them."""
        distinct = sorted(self._user)
        if not steps.item_level:  # a step connects any two, among them the first users who have them
            _check_steps(len(distinct) * (len(distinct) - 1) // 2 * len(self._rests))
            return {pair: (self._user[pair[0]], self._user[pair[1]]) for pair in itertools.combinations(distinct, 2)}
        _check_steps(steps.count)
        place = {statistic: position for position, statistic in enumerate(distinct)}
        places = np.array([place[statistic] for statistic in self.statistics])
        jumps: dict[tuple[int, int], tuple[User, User]] = {}
        for value in range(len(places)):
            above = steps.above(value)
            found, first = np.unique(places[above], return_index=True)
            for other, position in zip(found.tolist(), first.tolist(), strict=True):
                here = int(places[value])
                users = self._values[value], self._values[int(above[position])]
                if here < other:
                    jumps.setdefault((distinct[here], distinct[other]), users)
                elif here > other:
                    jumps.setdefault((distinct[other], distinct[here]), users[::-1])
        _check_steps(len(jumps) * len(self._rests))
        return jumps

    def members(self) -> Iterator[Dataset]:
        for total, n_users in self.totals():
            yield self._representative(total, n_users)

    def rank_pairs(self) -> RankPairs:
        pairs = np.array(self._pairs, dtype=np.int64).reshape(-1, 2)
        yield pairs[:, 0], pairs[:, 1]

    def _representative(self, total: int, n_users: int) -> Dataset:
        """A dataset with this total, by the first statistic that leaves an attainable rest, again and again."""
        users = []
        for left in range(n_users - 1, -1, -1):
            statistic = next(s for s in sorted(self._user) if _contains(self._sums[left], total - s))
            users.append(self._user[statistic])
            total -= statistic
        return tuple(users)

    def witness(self, a: int, b: int) -> tuple[Dataset, Dataset, int | None]:
        totals = self.totals()
        (total_a, n_a), (total_b, n_b) = totals[a], totals[b]
        if n_a != n_b:
            rest, full = (total_b, total_a) if n_a > n_b else (total_a, total_b)
            users = self._representative(rest, self.n_users - 1)
            longer = (*users, self._user[full - rest])
            return (longer, users, None) if n_a > n_b else (users, longer, None)
        for (low, high), (lower, higher) in sorted(self._jumps.items(), key=lambda item: item[0]):
            for here, there, user, user2 in ((low, high, lower, higher), (high, low, higher, lower)):
                if there - here == total_b - total_a and _contains(self._rests, total_a - here):
                    users = self._representative(total_a - here, self.n_users - 1)
                    return (*users, user), (*users, user2), self.n_users - 1
        raise AssertionError("ranks are not neighbors")


def _check_steps(steps: int) -> None:
    if steps > MAX_STEPS:
        raise BudgetError(
            f"{steps:,} steps between totals (limit {MAX_STEPS:,}). Cheaper: a narrower statistic_range, fewer users "
            "or a coarser universe"
        )


def _contains(ordered: Sequence[int], number: int) -> bool:
    position = bisect_left(ordered, number)
    return position < len(ordered) and ordered[position] == number
