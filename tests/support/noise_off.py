"""The audit of a path before its noise: how far numbers of neighboring small tables are apart, and what was claimed.

The order of rows is private too, so neighbors are compared in several orders of both. A user who is removed has no
rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Row: TypeAlias = "tuple[Any, ...]"
User: TypeAlias = "tuple[Row, ...]"
Numbers: TypeAlias = "Mapping[str, Mapping[Hashable, int]]"
"""By the name of a statistic, and by key; keys that are not there count as 0."""
Path: TypeAlias = "Callable[[list[tuple[int, Row]]], Numbers]"
"""From rows with their user's id, in the order of the file."""


@dataclass(frozen=True)
class Change:
    """How far the numbers of one statistic are apart: over keys the sum, the sum of squares and the largest."""

    l1: int = 0
    l2_squared: int = 0
    linf: int = 0

    def at_least(self, other: Change) -> Change:
        """The larger of the two, each for itself."""
        return Change(max(self.l1, other.l1), max(self.l2_squared, other.l2_squared), max(self.linf, other.linf))

    def within(self, claim: Change) -> bool:
        """Whether each of the three is at most what is claimed."""
        return self.l1 <= claim.l1 and self.l2_squared <= claim.l2_squared and self.linf <= claim.linf


def files(world: Sequence[User]) -> Iterator[list[tuple[int, Row]]]:
    """The rows of a table in several orders: by user, backwards, and the users in turns."""
    rows = [(who, row) for who, user in enumerate(world) for row in user]
    yield rows
    yield rows[::-1]
    turns = itertools.zip_longest(*([(who, row) for row in user] for who, user in reversed(list(enumerate(world)))))
    yield [row for turn in turns for row in turn if row is not None]


def change_between(one: Numbers, other: Numbers) -> dict[str, Change]:
    """The change of each statistic."""
    found = {}
    for name in {*one, *other}:
        first, second = one.get(name, {}), other.get(name, {})
        steps = [abs(first.get(key, 0) - second.get(key, 0)) for key in {*first, *second}]
        found[name] = Change(sum(steps), sum(step * step for step in steps), max(steps, default=0))
    return found


class AllTables:
    """What a path gives on all tables of so many users of these kinds, in each of several orders of the rows."""

    def __init__(
        self,
        path: Path,
        kinds: Sequence[User],
        n_users: int,
        orders: Callable[[Sequence[User]], Iterator[list[tuple[int, Row]]]] = files,
    ) -> None:
        users = [*kinds, ()]
        self._results: dict[tuple[int, ...], list[Numbers]] = {}
        for world in itertools.product(range(len(users)), repeat=n_users):
            # Distinct results, of which a path that does not look at the order has one.
            made: list[Numbers] = []
            for rows in orders([users[kind] for kind in world]):
                numbers = path(rows)
                if numbers not in made:
                    made.append(numbers)
            self._results[world] = made
        self._nobody = len(kinds)

    def greatest_changes(self, neighbors: str) -> dict[str, Change]:
        """The greatest change of each statistic over all neighbors, in all orders of the rows of both."""
        greatest: dict[str, Change] = {}
        for world, made in self._results.items():
            for who, own in enumerate(world):
                for other in [self._nobody] if neighbors == "add-remove" else range(own):
                    beside = self._results[(*world[:who], other, *world[who + 1 :])]
                    for one, two in itertools.product(made, beside):
                        for name, change in change_between(one, two).items():
                            greatest[name] = greatest.get(name, Change()).at_least(change)
        return greatest


def violations(greatest: Mapping[str, Change], claims: Mapping[str, Change]) -> dict[str, Change]:
    """What changes by more than is claimed; what nothing is claimed of gets no noise, and must not change."""
    return {name: change for name, change in greatest.items() if not change.within(claims.get(name, Change()))}
