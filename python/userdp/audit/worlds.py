"""All small tables, small ones first: who has which rows, for listed names of users and listed letters of columns.

A *row* is a tuple of letters, one of each column. A *value* is what a user has: a multiset of rows, perhaps none. A
*world* of users with names gives a value to each name; a world without names is a multiset of rows, of which each is a
user. The cost of a world is its number of rows and the place of its latest letter, so that plain tables come first.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = "tuple[int, ...]"
"""Rows of one user, by number, in order."""
World: TypeAlias = "tuple[Value, ...]"
Entries: TypeAlias = "tuple[tuple[int, int], ...]"
"""The rows of a table in an order: who, and which row."""


@dataclass
class Rows:
    """Rows by number: by their latest letter, so that rows of early letters have the first numbers."""

    sizes: tuple[int, ...]
    letters: list[tuple[int, ...]] = field(default_factory=list)
    numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    levels: int = 0

    def up_to(self, latest: int) -> int:
        """How many rows have no letter after this place; they have numbers from then on."""
        while self.levels <= latest:
            tops = [range(min(self.levels + 1, size)) for size in self.sizes]
            fresh = [row for row in itertools.product(*tops) if max(row, default=0) == self.levels]
            for row in sorted(fresh, key=lambda row: (sum(row), row)):
                self.number(row)
            self.levels += 1
        return self.counted(latest)

    def counted(self, latest: int) -> int:
        """The same number without making the rows."""
        return math.prod(min(latest + 1, size) for size in self.sizes) if latest >= 0 else 0

    def number(self, row: tuple[int, ...]) -> int:
        """The number of a row, a new one for one that has none."""
        found = self.numbers.get(row)
        if found is None:
            found = self.numbers[row] = len(self.letters)
            self.letters.append(row)
        return found


@dataclass(frozen=True)
class Limits:
    """How large worlds are.

    Attributes
    ----------
    max_users, max_rows, total_rows : int
        Users, rows of a user, and rows in all, at most.
    named : bool
        Whether users have names. Without names each row is a user.
    """

    max_users: int
    max_rows: int
    total_rows: int
    named: bool

    @property
    def most_rows(self) -> int:
        """Rows in all that worlds can have."""
        return min(self.total_rows, self.max_users * self.max_rows)

    def worlds(self, n_rows: int) -> int:
        """How many worlds there are of so many different rows."""
        if not self.named:
            return sum(_multisets(n_rows, rows) for rows in range(self.most_rows + 1))
        # Coefficients of a power: ways to spread so many rows over the users.
        ways = [1] + [0] * self.most_rows
        for _ in range(self.max_users):
            ways = [
                sum(ways[rows - own] * _multisets(n_rows, own) for own in range(min(rows, self.max_rows) + 1))
                for rows in range(self.most_rows + 1)
            ]
        return sum(ways)


def _multisets(kinds: int, size: int) -> int:
    return math.comb(kinds + size - 1, size) if kinds or not size else 0


def all_worlds(rows: Rows, limits: Limits, most_rows_listed: int) -> Iterator[World]:
    """All worlds by cost, each once. It ends early where so many different rows would have to be listed."""
    yield ((),) * limits.max_users if limits.named else ()
    latest = max(rows.sizes, default=1) - 1
    for cost in range(1, limits.most_rows + latest + 1):
        for number in range(1, min(cost, limits.most_rows) + 1):
            letter = cost - number
            if letter > latest:
                continue
            if rows.counted(letter) > most_rows_listed:
                return
            fresh, old = rows.up_to(letter), rows.counted(letter - 1)
            if limits.named:
                yield from _named(number, old, fresh, limits)
            else:
                yield from (tuple((row,) for row in world) for world in _fresh(number, old, fresh))


def _named(number: int, old: int, rows: int, limits: Limits) -> Iterator[World]:
    """Worlds of users with names with so many rows in all, at least one of which is not old."""
    for sizes in _spread(number, limits.max_users, limits.max_rows):
        for first in range(limits.max_users):
            if sizes[first]:
                yield from _filled(sizes, first, old, rows, ())


def _filled(sizes: Sequence[int], first: int, old: int, rows: int, made: World) -> Iterator[World]:
    """Users before the first one with a new row have old ones, and those after it any."""
    place = len(made)
    if place == len(sizes):
        yield made
        return
    size = sizes[place]
    values: Iterator[Value]
    if place < first:
        values = itertools.combinations_with_replacement(range(old), size)
    elif place == first:
        values = _fresh(size, old, rows)
    else:
        values = itertools.combinations_with_replacement(range(rows), size)
    for value in values:
        yield from _filled(sizes, first, old, rows, (*made, value))


def _fresh(size: int, old: int, rows: int) -> Iterator[Value]:
    """Multisets of rows, at least one of which is not old."""
    for new in range(1, size + 1):
        for before in itertools.combinations_with_replacement(range(old), size - new):
            for after in itertools.combinations_with_replacement(range(old, rows), new):
                yield before + after


def _spread(number: int, users: int, most: int) -> Iterator[tuple[int, ...]]:
    """Ways to give so many rows to the users."""
    if users == 1:
        if number <= most:
            yield (number,)
        return
    for own in range(min(number, most), -1, -1):
        for rest in _spread(number - own, users - 1, most):
            yield (own, *rest)


def entries_of(world: World, *, named: bool) -> Entries:
    """The table of a world in its canonical order: by user, and then by row."""
    if named:
        return tuple((who, row) for who, value in enumerate(world) for row in value)
    return tuple((0, row) for row in sorted(row for value in world for row in value))


def orders_of(entries: Entries) -> list[Entries]:
    """The rows of a table in every order in which it looks different, the given one first."""
    return list(dict.fromkeys(itertools.permutations(entries)))
