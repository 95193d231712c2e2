"""Datasets, ranks and neighbors as docs/report-format.md defines them: the enumerating half of the checker.

Only the standard library: the checker shares no code with the audits, compiled or not, so that a mistake
there cannot hide here.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from userdp.checker import values, work
from userdp.checker.values import Problem, canonical_digest, count, need

Pair = tuple[int, int]
Draw = Callable[[int], int]
"""Gives an integer from 0 on below its argument."""


def _integers(value: Any, length: int, of: str) -> list[int]:
    right = isinstance(value, list) and len(value) == length and all(type(s) is int for s in value)
    need(right, f"statistics must be one integer for each {of}")
    return list(value)


class Space(ABC):
    """Ranked datasets; ranks below `sources` may have neighbors of higher rank, listed by `above`."""

    datasets: int
    pairs: int
    sources: int
    effort: float
    """Of listing the neighbors of a dataset, for `work.spend`."""

    @abstractmethod
    def above(self, rank: int) -> Sequence[int]:
        """Ranks of the neighbors that rank higher, ascending."""

    @abstractmethod
    def dataset(self, rank: int, real: Mapping[str, Any]) -> tuple[Any, ...]:
        """Build the dataset of this rank from the objects of the structure."""

    def witness(self, a: int, b: int, real: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Build two datasets of these ranks that are neighbors as datasets of users."""
        return self.dataset(a, real), self.dataset(b, real)

    @abstractmethod
    def all_orders(self) -> int:
        """How many datasets there are when users are told apart by their positions."""

    @abstractmethod
    def in_every_order(self, real: Mapping[str, Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """All of them, each with the rank of the dataset that stands for it."""

    @abstractmethod
    def in_some_order(self, real: Mapping[str, Any], draw: Draw) -> tuple[int, tuple[Any, ...]]:
        """One of them, drawn."""


class _Listed(Space):
    """One dataset against a list of others: kinds pair and dataset."""

    sources = 1

    def __init__(self, question: Mapping[str, Any], structure: Mapping[str, Any], held: int | None) -> None:
        self.is_pair, self.replaceable, self.users, self.records = question["kind"] == "pair", [], 0, 0
        if self.is_pair:
            need(isinstance(structure["x"], list) and isinstance(structure["x2"], list), "x, x2 must be tuples")
            self.pairs = 1
        else:
            users, records = structure["dataset"], structure["records"]
            need(isinstance(users, list) and isinstance(records, list), "dataset and records must be tuples")
            need(bool(users and records), "dataset and records must not be empty")
            self.replaceable, self.users, self.records = structure["replaceable"], len(users), len(records)
            self._check_positions(question["engine"], structure)
            self.pairs = len(self.replaceable) * self.records
        self.datasets = 1 + self.pairs
        self.effort = 300.0 * self.datasets

    def _check_positions(self, engine: str, structure: Mapping[str, Any]) -> None:
        """Users with equal keys are interchangeable, so the first of each key must be listed."""
        users = self.users
        keys: Sequence[Any] = range(users)
        if engine == "symmetric":
            keys = [canonical_digest(user) for user in structure["dataset"]]
        elif engine == "additive":
            keys = _integers(structure["statistics"], users, "user")
        listed = [count(position, "replaceable") for position in self.replaceable]
        need(
            values.rising(listed) and (not listed or listed[-1] < users),
            "replaceable is not a set of users",
        )
        work.spread(keys)
        firsts = {key: position for position, key in reversed(list(enumerate(keys)))}
        place = {position: number for number, position in enumerate(listed)}
        left_out = [position for position in firsts.values() if position not in place]
        need(not left_out, "replaceable leaves out a user who must be replaced")
        self.place = [place[firsts[key]] for key in keys]

    def above(self, rank: int) -> Sequence[int]:
        return range(1, self.datasets) if rank == 0 else ()

    def dataset(self, rank: int, real: Mapping[str, Any]) -> tuple[Any, ...]:
        if self.is_pair:
            return tuple(real["x2" if rank else "x"])
        if not rank:
            return tuple(real["dataset"])
        which, record = divmod(rank - 1, self.records)
        return self._replaced(self.replaceable[which], record, real)

    def _replaced(self, position: int, record: int, real: Mapping[str, Any]) -> tuple[Any, ...]:
        users = list(real["dataset"])
        users[position] = real["records"][record]
        return tuple(users)

    def all_orders(self) -> int:
        return 2 if self.is_pair else 1 + self.users * self.records

    def in_every_order(self, real: Mapping[str, Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        yield 0, self.dataset(0, real)
        for position, record in itertools.product(range(self.users), range(self.records)):
            yield 1 + self.place[position] * self.records + record, self._replaced(position, record, real)

    def in_some_order(self, real: Mapping[str, Any], draw: Draw) -> tuple[int, tuple[Any, ...]]:
        position, record = draw(self.users), draw(self.records)
        users = list(self._replaced(position, record, real))
        for last in range(len(users) - 1, 0, -1):  # the claimed symmetry covers every order
            other = draw(last + 1)
            users[last], users[other] = users[other], users[last]
        return 1 + self.place[position] * self.records + record, tuple(users)


class _Users(Space):
    """All datasets of n users with m examples each; a dataset is a tuple of value ranks."""

    def __init__(self, question: Mapping[str, Any], structure: Mapping[str, Any], held: int | None) -> None:
        need(isinstance(structure["universe"], list), "universe must be a tuple")
        self.size = count(len(structure["universe"]), "the size of the universe", 1)
        self.n = count(structure["n_users"], "n_users", 1)
        self.m = count(structure["n_examples"], "n_examples", 1)
        small = self.m <= values.MAX_DATASETS and (self.size == 1 or self.m * self.size.bit_length() <= 64)
        work.afford(small and self.size**self.m * self.m <= values.MAX_DATASETS, "too many user values to check")
        work.afford(self.n <= values.MAX_DATASETS, "too many users to check")
        self.values = self.size**self.m
        self.item_level = question["kind"] == "item-level"
        self.removal = question["neighbors"] == "add-remove"
        # Unordered moves: any two values, or two values that differ in one of the m examples.
        partners = self.m * (self.size - 1) if self.item_level else self.values - 1
        self.moves = self.values * partners // 2

    def up(self, value: int) -> Iterator[int]:
        """Values that a move gives for this one and that rank higher."""
        if not self.item_level:
            yield from range(value + 1, self.values)
            return
        for place in (self.size**j for j in range(self.m)):
            digit = value // place % self.size
            yield from (value + (symbol - digit) * place for symbol in range(digit + 1, self.size))

    @abstractmethod
    def members(self, rank: int) -> tuple[int, ...]:
        """The users' values in the dataset of this rank, each as a number."""

    def dataset(self, rank: int, real: Mapping[str, Any]) -> tuple[Any, ...]:
        return self._users(self.members(rank), real)

    def _users(self, members: Iterable[int], real: Mapping[str, Any]) -> tuple[Any, ...]:
        places = [self.size**j for j in reversed(range(self.m))]
        universe = real["universe"]
        return tuple(tuple(universe[value // place % self.size] for place in places) for value in members)

    @abstractmethod
    def rank_of(self, members: tuple[int, ...]) -> int:
        """The rank of the dataset that stands for these users, in any order."""

    def all_orders(self) -> int:
        few = self.values == 1 or self.n <= 64
        return self.values**self.n + self.removal * self.values ** (self.n - 1) if few else 2**64

    def in_every_order(self, real: Mapping[str, Any]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        for n in (self.n, self.n - 1)[: 1 + self.removal]:
            for members in itertools.product(range(self.values), repeat=n):
                yield self.rank_of(members), self._users(members, real)

    def in_some_order(self, real: Mapping[str, Any], draw: Draw) -> tuple[int, tuple[Any, ...]]:
        users = self.n - draw(1 + self.removal)
        members = tuple(draw(self.values) for _ in range(users))
        return self.rank_of(members), self._users(members, real)

    def witness(self, a: int, b: int, real: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        x, x2 = self.neighbors(a, b)
        return self._users(x, real), self._users(x2, real)

    def neighbors(self, a: int, b: int) -> tuple[Sequence[int], Sequence[int]]:
        return self.members(a), self.members(b)


class _Labeled(_Users):
    def __init__(self, question: Mapping[str, Any], structure: Mapping[str, Any], held: int | None) -> None:
        super().__init__(question, structure, held)
        work.afford(self.values == 1 or self.n <= 40, "too many datasets to check")
        fewer = self.values ** (self.n - 1)
        self.sources = fewer * self.values
        work.afford(self.sources * self.n < values.MAX_USERS + 20, "too many datasets to check")
        self.datasets = self.sources + fewer * self.removal
        self.pairs = self.n * fewer * self.moves
        if self.removal:  # removing any user of a run of equal values gives the same dataset: count runs
            self.pairs = self.sources + (self.n - 1) * (self.values - 1) * fewer
        self.effort = 600 * self.n + 400 * self.pairs / self.sources

    def members(self, rank: int) -> tuple[int, ...]:
        users = self.n if rank < self.sources else self.n - 1
        rank -= 0 if rank < self.sources else self.sources
        return tuple(rank // self.values**j % self.values for j in reversed(range(users)))

    def rank_of(self, members: tuple[int, ...]) -> int:
        rank = functools.reduce(lambda above, value: above * self.values + value, members, 0)
        return rank + (self.sources if len(members) < self.n else 0)

    def above(self, rank: int) -> Sequence[int]:
        if rank >= self.sources:
            return ()
        found = set()
        for i, value in enumerate(reversed(self.members(rank))):
            place = self.values**i
            if self.removal:
                found.add(self.sources + rank // (place * self.values) * place + rank % place)
            else:
                found.update(rank + (other - value) * place for other in self.up(value))
        return sorted(found)


@functools.lru_cache(maxsize=2**18)
def _multisets(values: int, members: int) -> int:
    return math.comb(values + members - 1, members) if values else int(members == 0)


class _Symmetric(_Users):
    def __init__(self, question: Mapping[str, Any], structure: Mapping[str, Any], held: int | None) -> None:
        super().__init__(question, structure, held)
        work.afford(min(self.n, self.values - 1) < 64, "too many datasets to check")
        fewer = math.comb(self.values + self.n - 2, self.n - 1)
        self.sources = math.comb(self.values + self.n - 1, self.n)
        work.afford(self.sources * self.n < values.MAX_USERS + 20, "too many datasets to check")
        self.datasets = self.sources + fewer * self.removal
        self.pairs = fewer * (self.values if self.removal else self.moves)
        runs = min(self.n, self.values)
        self.effort = 100 * self.n + 1500 * runs * (8 + runs + self.pairs / self.sources)

    def _from(self, value: int, users: int) -> int:
        """Count the multisets of that many values of rank at least `value`."""
        return _multisets(self.values - value, users)

    def _rank(self, runs: Iterable[tuple[int, int]], left: int) -> int:
        """The rank of `left` members, given as values in their order with how often each is there."""
        # The multisets that rank higher agree up to some position and have only larger values from it on. Along a run
        # they are C(k, 1 + rest), ..., C(k, left) of k larger values, which add up by the hockey-stick identity.
        members, higher = left, 0
        for value, times in runs:
            if above := self.values - 1 - value:
                higher += math.comb(above + left, above) - math.comb(above + left - times, above)
            left -= times
        return _multisets(self.values, members) - 1 - higher

    def rank_of(self, members: tuple[int, ...]) -> int:
        runs = sorted(Counter(members).items())
        return self._rank(runs, len(members)) + (self.sources if len(members) < self.n else 0)

    def _runs(self, rank: int) -> list[tuple[int, int]]:
        left = self.n if rank < self.sources else self.n - 1
        rank -= 0 if rank < self.sources else self.sources
        runs, least = [], 0
        while left:
            ahead = self._from(least, left) - rank  # multisets of this rank and higher
            # The largest value that still has so many from it on; `_from` decreases.
            value = bisect.bisect_right(range(self.values), -ahead, lo=least, key=lambda v: -self._from(v, left)) - 1
            rank = self._from(value, left) - ahead
            # Those with more of this value come first, and are as many as ways to go on after them.
            more = range(left, 0, -1)
            times = left - bisect.bisect_right(more, rank, key=lambda n: self._from(value, left - n))
            rank -= self._from(value, left - times - 1) if times < left else 0
            runs.append((value, times))
            least, left = value + 1, left - times
        return runs

    def members(self, rank: int) -> tuple[int, ...]:
        return tuple(value for value, times in self._runs(rank) for _ in range(times))

    def above(self, rank: int) -> Sequence[int]:
        if rank >= self.sources:
            return ()
        held, found = dict(self._runs(rank)), []
        for value in list(held):
            held[value] -= 1
            if self.removal:
                found.append(self.sources + self._rank(sorted(held.items()), self.n - 1))
            else:
                for other in self.up(value):
                    moved = held | {other: held.get(other, 0) + 1}
                    found.append(self._rank(sorted(moved.items()), self.n))
            held[value] += 1
        return sorted(found)

    def neighbors(self, a: int, b: int) -> tuple[Sequence[int], Sequence[int]]:
        """Put the users that both have first."""
        left, right = Counter(self.members(a)), Counter(self.members(b))
        common = sorted((left & right).elements())
        return [*common, *sorted((left - right).elements())], [*common, *sorted((right - left).elements())]


class _Additive(_Users):
    def __init__(self, question: Mapping[str, Any], structure: Mapping[str, Any], held: int | None) -> None:
        super().__init__(question, structure, held)
        self.statistics = _integers(structure["statistics"], self.values, "user value")
        distinct = sorted(work.spread(found for found, _ in itertools.groupby(sorted(self.statistics))))
        self.attainable = _attainable(distinct, self.n, values.MAX_DATASETS if held is None else held)
        self.totals, self.fewer = sorted(self.attainable[-1]), sorted(self.attainable[-2])
        self.index = {total: rank for rank, total in enumerate(self.totals)}
        self.sources = len(self.totals)
        self.datasets = self.sources + len(self.fewer) * self.removal
        pairs = len(distinct) * (len(distinct) - 1) // 2 * len(self.fewer)
        steps = 0 if self.removal else self.moves if self.item_level else pairs
        work.afford(steps <= values.MAX_STEPS, "too many totals and moves to check")
        work.spend(steps * 600, "fewer values take less")
        # steps[d]: the statistics from which some move adds d; a user who leaves takes the statistic along.
        self.steps: dict[int, set[int]] = {}
        if self.removal:
            self.index = {total: self.sources + rank for rank, total in enumerate(self.fewer)}
            self.steps = {-s: {s} for s in distinct}
        elif self.item_level:
            moves = ((self.statistics[v], self.statistics[w]) for v in range(self.values) for w in self.up(v))
            self._add_steps((min(move), max(move)) for move in moves if move[0] != move[1])
        else:
            self._add_steps(itertools.combinations(distinct, 2))
        sums = 0 if self.removal else len(self.fewer) * sum(map(len, self.steps.values()))
        work.afford(sums <= values.MAX_STEPS, "too many totals and moves to check")
        self.effort = 300.0 * (1 + sum(map(len, self.steps.values())))
        work.spend(self.sources * self.effort, "fewer users or statistics take less")
        self.pairs = sum(len(self.above(rank)) for rank in range(self.sources))

    def _add_steps(self, moves: Iterable[Pair]) -> None:
        for low, high in moves:
            self.steps.setdefault(high - low, set()).add(low)

    def above(self, rank: int) -> Sequence[int]:
        if rank >= self.sources:
            return ()
        total, base = self.totals[rank], self.attainable[-2]
        found = (step for step, lows in self.steps.items() if any(total - low in base for low in lows))
        return sorted(self.index[total + step] for step in found)

    def rank_of(self, members: tuple[int, ...]) -> int:
        total = sum(self.statistics[value] for value in members)
        place = bisect.bisect_left(self.totals if len(members) == self.n else self.fewer, total)
        return place + (self.sources if len(members) < self.n else 0)

    def members(self, rank: int) -> tuple[int, ...]:
        """Return the lexicographically first values with this total; they are in non-decreasing order."""
        users = self.n if rank < self.sources else self.n - 1
        return self._first(self.totals[rank] if rank < self.sources else self.fewer[rank - self.sources], users)

    def _first(self, total: int, users: int) -> tuple[int, ...]:
        members = []
        for left in range(users, 0, -1):
            first = next(v for v, s in enumerate(self.statistics) if total - s in self.attainable[left - 1])
            total -= self.statistics[first]
            members.append(first)
        return tuple(members)

    def neighbors(self, a: int, b: int) -> tuple[Sequence[int], Sequence[int]]:
        """Find the first move that leads from one total to the other, on the first users with the rest."""
        if max(a, b) >= self.sources:  # someone leaves
            fewer = self._first(self.fewer[max(a, b) - self.sources], self.n - 1)
            gone = self.totals[min(a, b)] - self.fewer[max(a, b) - self.sources]
            full = (*fewer, self.statistics.index(gone))
            return (full, fewer) if a < b else (fewer, full)
        before, gap = self.totals[a], self.totals[b] - self.totals[a]
        present = set(self.statistics)
        for sign in (1, -1):  # moves to a higher rank first, then the same moves backwards
            for low in range(self.values):
                need_of = self.statistics[low] + sign * gap
                if need_of not in present:
                    continue
                for high in self.up(low):
                    v, w = (low, high) if sign > 0 else (high, low)
                    rest = before - self.statistics[v]
                    if self.statistics[high] == need_of and rest in self.attainable[-2]:
                        users = self._first(rest, self.n - 1)
                        return (*users, v), (*users, w)
        raise Problem("the witness datasets are not neighbors")


def _attainable(distinct: Sequence[int], n: int, limit: int) -> list[range | set[int]]:
    """Totals of 0, ..., n of these statistics; ranges where these are evenly spaced."""
    low, high = distinct[0], distinct[-1]
    work.afford(n * len(distinct) <= values.MAX_SUMS, "too many totals to check")
    step = distinct[1] - low if len(distinct) > 1 else 1
    even = range(low, high + 1, step)
    if len(even) == len(distinct) and distinct == list(even) and even[-1] == high:
        totals = (high - low) // step * n + 1
        need(totals <= limit, f"the structure has more than {limit} datasets")
        work.afford(n * totals * len(distinct) <= values.MAX_SUMS, "too many totals to check")
        return [range(k * low, k * high + 1, step) for k in range(n + 1)]
    found: list[range | set[int]] = [{0}]
    sums, far = 0, n * max(-low, high) >= 2**61 - 1  # where the hashes of integers begin again
    for _ in range(n):
        made = len(found[-1]) * len(distinct)
        work.spend((50 * made * made if far else 200 * made) + work.KEPT * min(made, len(found[-1]) + high - low))
        found.append({t + s for t in found[-1] for s in distinct})
        sums += made
        need(len(found[-1]) <= limit, f"the structure has more than {limit} datasets")
        work.afford(sums <= values.MAX_SUMS, "too many totals to check")
    return found


def space_of(question: Mapping[str, Any], held: int | None = None) -> Space:
    """Enumerate what a report's question is about; ValueError when it makes no sense.

    A report that holds the pmf of each of `held` datasets is refused as soon as there are more.
    """
    kind, neighbors, engine = question["kind"], question["neighbors"], question["engine"]
    engines = {"labeled": _Labeled, "symmetric": _Symmetric, "additive": _Additive}
    need(kind in ("pair", "dataset", "user-level", "item-level"), f"unknown kind {kind!r}")
    need(
        engine in engines and (kind != "pair" or engine == "labeled"),
        f"unknown engine {engine!r} for {kind}",
    )
    allowed = ("replace", "add-remove") if kind == "user-level" else ("replace",)
    need(neighbors in allowed, f"unknown neighbors {neighbors!r} for {kind}")
    chosen: Callable[..., Space] = _Listed if kind in ("pair", "dataset") else engines[engine]
    space = chosen(question, question["structure"], held)
    need(held is None or space.datasets <= held, "more datasets than the report holds pmfs for")
    work.afford(space.datasets <= values.MAX_DATASETS, "too many datasets to check")
    work.afford(space.pairs <= values.MAX_PAIRS, "too many pairs of neighbors to check")
    return space


def samples_of(report: Mapping[str, Any]) -> _Users:
    """The datasets of n users with m examples each from a universe, whatever their pairs."""
    structure = {name: report[name] for name in ("universe", "n_users", "n_examples")}
    need(report["engine"] in ("labeled", "symmetric"), "unknown engine")
    made: type[_Labeled] | type[_Symmetric] = _Symmetric if report["engine"] == "symmetric" else _Labeled
    space = made({"kind": "user-level", "neighbors": "replace"}, structure, None)
    work.afford(space.datasets <= values.MAX_DATASETS, "too many datasets to check")
    return space


def sample_pairs(space: Space, seed: str, first: Pair | None, most: int | None = None) -> list[Pair]:
    """Draw up to 2,000 pairs of dataset ranks (or `most`), `first` among them, by SHA-256 in counter mode."""
    pairs = [] if first is None else [first]
    seen = {(min(pair), max(pair)) for pair in pairs}
    work.spend(min(2 * values.SAMPLE_SIZE, 2 * (most or values.SAMPLE_SIZE)) * (space.effort + 20_000))
    for counter in range(2 * values.SAMPLE_SIZE):
        if len(pairs) >= (values.SAMPLE_SIZE if most is None else min(most, values.SAMPLE_SIZE)):
            break
        drawn = int(hashlib.sha256(f"{seed}:{counter}".encode("ascii")).hexdigest(), 16)
        choice, rank = divmod(drawn, space.sources)
        higher = space.above(rank)
        pair = (rank, higher[choice % len(higher)]) if higher else None
        if pair and pair not in seen:
            seen.add(pair)
            pairs.append(pair)
    return pairs
