"""Small worlds: the datasets that a mechanism must answer, up to what does not matter, and who is whose neighbor.

A world lists *states*: datasets up to the order of users and of a user's examples, and up to the symmetries of the
loss. The outputs of a state fall into *classes* of equal probability; each class of each state is one unknown of the
program. Statements and proofs: docs/proofs/optimal_mechanisms.md.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

from userdp.exact.encoding import decode, encode, fraction_text, read_fraction
from userdp.exact.numbers import capped_binomial
from userdp.exceptions import BudgetError

MOST_STATES = 200_000
"""Datasets times outputs that are listed before symmetries are known."""
MOST_ORBITS = 50_000
"""Sorted counts of a selection that are listed."""
MOST_USERS = 1000
"""As in the checker."""
MOST_CONSTRAINTS = 200_000
"""Of a program by default: some ten seconds of solving."""
SECONDS = 2.0
"""What 75,000 constraints take to be solved and proved; it grows like the power 3/2 of their number."""

Group = tuple[tuple[int, int, int], ...]
"""One ordered pair of neighbors: how many outputs have this probability (an unknown) here and that one there."""


class Outputs(NamedTuple):
    """Outputs of one state that share a probability."""

    multiplicity: int
    loss: Fraction


class World(ABC):
    """States with classes of outputs, and groups of constraints between neighbors."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """What a checker rebuilds the world from, as JSON."""

    @abstractmethod
    def _listed(self) -> tuple[list[list[Outputs]], Iterable[Counter[tuple[int, int]]]]:
        """The classes of every state, and for every ordered pair of neighbors how many outputs go with each pair."""

    @cached_property
    def _built(self) -> tuple[list[list[Outputs]], list[Group]]:
        classes, found = self._listed()
        groups = {tuple(sorted((p, q, weight) for (p, q), weight in pairs.items() if p != q)): None for pairs in found}
        return classes, sorted(group for group in groups if group)

    @property
    def classes(self) -> list[list[Outputs]]:
        """The classes of outputs of each state, in the order of the unknowns."""
        return self._built[0]

    @property
    def groups(self) -> list[Group]:
        """The distinct ordered pairs of neighbors, sorted; what is the same unknown on both sides is left out."""
        return self._built[1]

    @cached_property
    def first(self) -> list[int]:
        """The first unknown of each state, and the number of unknowns."""
        return list(itertools.accumulate((len(classes) for classes in self.classes), initial=0))

    @property
    def size(self) -> int:
        """The number of unknowns."""
        return self.first[-1]

    @cached_property
    def largest(self) -> Fraction:
        """The largest loss, or 1: floats are for losses divided by it."""
        return max(outputs.loss for classes in self.classes for outputs in classes) or Fraction(1)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The constraints x[p] <= E x[q], each once: what delta = 0 asks for."""
        return sorted({(p, q) for group in self.groups for p, q, _ in group})

    @property
    def total(self) -> int:
        """A number of units that every class can share out: near 2^128, and a multiple of all multiplicities."""
        common = math.lcm(*{outputs.multiplicity for classes in self.classes for outputs in classes})
        return common * max(1, 2**128 // common)

    def places(self) -> Iterator[tuple[int, int, Outputs]]:
        """State, unknown and class of outputs, of each unknown."""
        for state, (start, classes) in enumerate(zip(self.first, self.classes, strict=False)):
            for place, outputs in enumerate(classes):
                yield state, start + place, outputs

    def refuse_too_large(self, most: int) -> None:
        """Refuse a program that would take too long, by the number of its constraints."""
        rows = sum(map(len, self.groups))
        if rows > most:
            raise BudgetError(
                f"the program has {len(self.classes):,} orbits of datasets, {self.size:,} unknowns and {rows:,} "
                f"constraints, which take about {SECONDS * (rows / 75_000) ** 1.5:.0f} seconds to solve; at most "
                f"max_constraints={most:,} are accepted: take fewer users, examples or outputs, state symmetries that "
                "the loss has, or raise max_constraints"
            )


class SelectionWorld(World):
    """Each of n users has one of K items; the output is an item. Items are alike: states are sorted counts.

    Items that nobody has are one class, so that their number costs nothing. The losses are "regret", how many more
    users the winner has; "error", whether the output is no winner; and "agreement", the chance to miss an unknown item
    that each user has with probability `agreement`, while all others have one other item.
    """

    def __init__(self, n_users: int, n_items: int, loss: str, agreement: Fraction | None = None) -> None:
        self.n_users, self.n_items, self.loss, self.agreement = n_users, n_items, loss, agreement

    def described(self) -> dict[str, Any]:
        agreement = None if self.agreement is None else fraction_text(self.agreement)
        sizes = {"n_users": self.n_users, "n_items": self.n_items}
        return {"kind": "selection", **sizes, "loss": self.loss, "agreement": agreement}

    @cached_property
    def states(self) -> list[tuple[int, ...]]:
        """The counts of the items that somebody has, the largest first."""
        return list(partitions(self.n_users, self.n_items, self.n_users))

    @cached_property
    def place_of(self) -> dict[tuple[int, ...], int]:
        """The place of each state."""
        return {state: place for place, state in enumerate(self.states)}

    def counts_of(self, state: Sequence[int]) -> dict[int, int]:
        """How many items have each count, the largest count first."""
        found = dict(Counter(state))
        if len(state) < self.n_items:
            found[0] = self.n_items - len(state)
        return found

    @cached_property
    def _chances(self) -> list[Fraction]:
        """That so many users have the common item."""
        p, n = self.agreement or Fraction(0), self.n_users
        return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]

    @property
    def prior(self) -> list[Fraction] | None:
        """Of the states, where users are drawn at random: whose common item has the count, or the other one has."""
        if self.loss != "agreement":
            return None
        return [sum(self._holding(state).values(), Fraction(0)) for state in self.states]

    def _holding(self, state: tuple[int, ...]) -> dict[int, Fraction]:
        """The probability of a state and that the common item is one of those with a count, by that count."""
        if len(state) > 2:
            return {}
        return {count: self._chances[count] for count in {state[0], self.n_users - state[0]}}

    def _loss(self, count: int, items: int, state: tuple[int, ...]) -> Fraction:
        if self.loss == "regret":
            return Fraction(state[0] - count)
        if self.loss == "error":
            return Fraction(count < state[0])
        holding = self._holding(state)
        total = sum(holding.values(), Fraction(0))
        # Any of the items with the common one's count may be it.
        return 1 - holding.get(count, Fraction(0)) / items / total if total else Fraction(1)

    def _listed(self) -> tuple[list[list[Outputs]], Iterable[Counter[tuple[int, int]]]]:
        counts = [self.counts_of(state) for state in self.states]
        classes = [
            [Outputs(items, self._loss(count, items, state)) for count, items in has.items()]
            for state, has in zip(self.states, counts, strict=True)
        ]
        first = list(itertools.accumulate(map(len, classes), initial=0))
        unknown = [{count: first[state] + place for place, count in enumerate(has)} for state, has in enumerate(counts)]

        def moves() -> Iterator[Counter[tuple[int, int]]]:
            """One user goes from an item to another, up to the names of items."""
            for here, state in enumerate(self.states):
                for source, target in itertools.product(counts[here], repeat=2):
                    # Two items of equal counts are two items.
                    if source == 0 or (source == target and counts[here][source] < 2):
                        continue
                    after = list(state)
                    after.remove(source)
                    if target:
                        after.remove(target)
                    left = Counter(counts[here])
                    left[source] -= 1
                    left[target] -= 1
                    after += [source - 1, target + 1] if source > 1 else [target + 1]
                    there = self.place_of[tuple(sorted(after, reverse=True))]
                    pairs = Counter(
                        {(unknown[here][count], unknown[there][count]): n for count, n in left.items() if n}
                    )
                    pairs[unknown[here][source], unknown[there][source - 1]] += 1
                    pairs[unknown[here][target], unknown[there][target + 1]] += 1
                    yield pairs

        return classes, moves()


def partitions(total: int, parts: int, most: int) -> Iterator[tuple[int, ...]]:
    """The ways to write a total as at most so many parts, each at most `most`, largest first; in falling order."""
    if total == 0:
        yield ()
        return
    if parts == 0:
        return
    for part in range(min(total, most), 0, -1):
        if part * parts < total:
            break
        for rest in partitions(total - part, parts - 1, part):
            yield (part, *rest)


def refuse_many_orbits(n_users: int, n_items: int) -> None:
    """Refuse selections with too many sorted counts, before any is listed."""
    orbits = number_of_partitions(n_users, n_items) if n_users <= MOST_USERS else MOST_ORBITS + 1
    if orbits > MOST_ORBITS:
        shown = f"{orbits:,}" if n_users <= MOST_USERS else f"more than {MOST_ORBITS:,}"
        raise BudgetError(
            f"n_users={n_users} and n_items={n_items} have {shown} sorted counts, each with up to "
            f"{math.isqrt(2 * n_users) + 1} classes of items and tens of constraints (about "
            f"{SECONDS * (orbits * 40 / 75_000) ** 1.5:,.0f} seconds or more to solve); at most {MOST_ORBITS:,} are "
            "accepted: take fewer users or items"
        )


def number_of_partitions(total: int, parts: int) -> int:
    """How many `partitions` there are of a total."""
    ways = [1] + [0] * total
    for part in range(1, min(parts, total) + 1):
        for amount in range(part, total + 1):
            ways[amount] += ways[amount - part]
    return ways[total]


class SumWorld(World):
    """The mechanism sees a sum, and a user moves it by at most the reach."""

    def __init__(self, lowest: int, reach: int, outputs: Sequence[Any], losses: Sequence[Sequence[Fraction]]) -> None:
        self.lowest, self.reach, self.outputs, self.losses = lowest, reach, tuple(outputs), losses

    def described(self) -> dict[str, Any]:
        return {
            "kind": "sum",
            "lowest": self.lowest,
            "reach": self.reach,
            "outputs": list(map(encode, self.outputs)),
            "losses": [list(map(fraction_text, row)) for row in self.losses],
        }

    def _listed(self) -> tuple[list[list[Outputs]], Iterable[Counter[tuple[int, int]]]]:
        k, n = len(self.outputs), len(self.losses)
        classes = [[Outputs(1, loss) for loss in row] for row in self.losses]
        near = ((a, b) for a in range(n) for b in range(max(0, a - self.reach), min(n, a + self.reach + 1)) if a != b)
        return classes, (Counter({(a * k + o, b * k + o): 1 for o in range(k)}) for a, b in near)


@dataclass(frozen=True)
class Symmetry:
    """A relabeling: place i of the universe becomes place examples[i], and output o becomes outputs[o]."""

    examples: tuple[int, ...]
    outputs: tuple[int, ...]


class UsersWorld(World):
    """All multisets of n users, each with a multiset of m examples, up to stated symmetries of the loss."""

    def __init__(
        self,
        universe: Sequence[Any],
        n_users: int,
        n_examples: int,
        outputs: Sequence[Any],
        losses: Sequence[Sequence[Fraction]],
        symmetries: Sequence[Symmetry],
    ) -> None:
        self.universe, self.outputs = tuple(universe), tuple(outputs)
        self.n_users, self.n_examples = n_users, n_examples
        self.losses, self.symmetries = losses, tuple(symmetries)

    def described(self) -> dict[str, Any]:
        return {
            "kind": "users",
            "universe": list(map(encode, self.universe)),
            "n_users": self.n_users,
            "n_examples": self.n_examples,
            "outputs": list(map(encode, self.outputs)),
            "losses": [list(map(fraction_text, row)) for row in self.losses],
            "symmetries": [{"examples": list(s.examples), "outputs": list(s.outputs)} for s in self.symmetries],
        }

    @cached_property
    def types(self) -> list[tuple[int, ...]]:
        """What a user can have: places of examples in the universe, sorted."""
        return types_of(len(self.universe), self.n_examples)

    @cached_property
    def datasets(self) -> list[tuple[int, ...]]:
        """All multisets of users, as sorted places of types."""
        return datasets_of(len(self.types), self.n_users)

    @cached_property
    def place_of(self) -> dict[tuple[int, ...], int]:
        """The place of each multiset."""
        return {dataset: place for place, dataset in enumerate(self.datasets)}

    @cached_property
    def orbits(self) -> list[list[int]]:
        """For each multiset and each output, its orbit: the first of its pairs of both."""
        k = len(self.outputs)
        root = list(range(len(self.datasets) * k))

        def find(pair: int) -> int:
            while root[pair] != pair:
                root[pair] = root[root[pair]]
                pair = root[pair]
            return pair

        for symmetry in self.symmetries:
            for place, image in enumerate(self.image(symmetry)):
                for o in range(k):
                    one, other = find(place * k + o), find(image * k + symmetry.outputs[o])
                    root[max(one, other)] = min(one, other)
        return [[find(place * k + o) for o in range(k)] for place in range(len(self.datasets))]

    def image(self, symmetry: Symmetry) -> list[int]:
        """Where a symmetry takes each multiset."""
        place_of_type = {kind: place for place, kind in enumerate(self.types)}
        moved = [place_of_type[tuple(sorted(symmetry.examples[x] for x in kind))] for kind in self.types]
        return [self.place_of[tuple(sorted(moved[t] for t in dataset))] for dataset in self.datasets]

    @cached_property
    def unknown_of(self) -> dict[int, int]:
        """The unknown that each orbit is."""
        unknown: dict[int, int] = {}
        for place in self.chosen:
            for orbit in self.orbits[place]:
                unknown.setdefault(orbit, len(unknown))
        return unknown

    @cached_property
    def chosen(self) -> list[int]:
        """The first multiset of each orbit."""
        k = len(self.outputs)
        # An orbit of pairs begins in the first multiset of its own orbit.
        return [
            place for place in range(len(self.datasets)) if all(orbit // k == place for orbit in self.orbits[place])
        ]

    def row(self, place: int) -> list[int]:
        """The unknown of each output on a multiset."""
        return [self.unknown_of[orbit] for orbit in self.orbits[place]]

    def _listed(self) -> tuple[list[list[Outputs]], Iterable[Counter[tuple[int, int]]]]:
        classes = []
        for place in self.chosen:
            sizes = Counter(self.orbits[place])  # in the order of the least output
            loss_of = dict(zip(reversed(self.orbits[place]), reversed(self.losses[place]), strict=True))
            classes.append([Outputs(size, loss_of[orbit]) for orbit, size in sizes.items()])

        def moves() -> Iterator[Counter[tuple[int, int]]]:
            for place in self.chosen:
                dataset, here = self.datasets[place], self.row(place)
                for left in dict.fromkeys(dataset):
                    at = dataset.index(left)
                    for came in range(len(self.types)):
                        if came != left:
                            after = tuple(sorted((*dataset[:at], *dataset[at + 1 :], came)))
                            yield Counter(zip(here, self.row(self.place_of[after]), strict=True))

        return classes, moves()


def types_of(size: int, n_examples: int) -> list[tuple[int, ...]]:
    """The multisets of examples, as sorted places of a universe."""
    return list(itertools.combinations_with_replacement(range(size), n_examples))


def datasets_of(n_types: int, n_users: int) -> list[tuple[int, ...]]:
    """The multisets of users, as sorted places of types."""
    return list(itertools.combinations_with_replacement(range(n_types), n_users))


def refuse_many_datasets(size: int, n_users: int, n_examples: int, k: int) -> None:
    """Refuse worlds whose multisets are too many to be listed, before any is."""
    types = capped_binomial(size + n_examples - 1, n_examples, MOST_STATES)
    datasets = capped_binomial(types + n_users - 1, n_users, MOST_STATES) if types <= MOST_STATES else types
    if datasets * k > MOST_STATES:
        shown = f"{datasets:,}" if max(types, datasets) <= MOST_STATES else f"more than {MOST_STATES:,}"
        raise BudgetError(
            f"n_users={n_users}, n_examples={n_examples} and a universe of {size} examples have {shown} datasets up "
            f"to order, each with {k} outputs, and at most {MOST_STATES:,} pairs of both are listed (each takes some "
            "20 microseconds before anything is solved); take fewer users or examples"
        )


def mapping_of(given: Mapping[Any, Any], members: Sequence[Any], name: str) -> tuple[int, ...]:
    """Read a relabeling of members, which may leave out what stays."""
    place = {member: index for index, member in enumerate(members)}
    unknown = [member for member in (*given, *given.values()) if member not in place]
    if unknown:
        raise ValueError(f"symmetries: {unknown[0]!r} is none of the {name}; accepted: a relabeling of {name}")
    found = tuple(place[given.get(member, member)] for member in members)
    if len(set(found)) != len(found):
        raise ValueError(f"symmetries: {given!r} gives two of the {name} one name; accepted: a relabeling of {name}")
    return found


def world_from(described: Mapping[str, Any]) -> World:
    """The world that was `described`, in a certificate that has been checked."""
    given = dict(described)
    kind = given.pop("kind")
    if kind == "selection":
        agreement = given.pop("agreement")
        return SelectionWorld(**given, agreement=None if agreement is None else read_fraction(agreement))
    given["outputs"] = list(map(decode, given["outputs"]))
    given["losses"] = [list(map(read_fraction, row)) for row in given["losses"]]
    if kind == "sum":
        return SumWorld(**given)
    given["universe"] = list(map(decode, given["universe"]))
    given["symmetries"] = [Symmetry(tuple(s["examples"]), tuple(s["outputs"])) for s in given["symmetries"]]
    return UsersWorld(**given)
