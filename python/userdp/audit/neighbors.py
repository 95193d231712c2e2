"""Neighboring datasets for audits that run a mechanism: a user of any position changes, among others in any order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from userdp.algorithms import Dataset, User
from userdp.algorithms.distributions import read_universe
from userdp.audit.datasets import Labeled, Moves
from userdp.display.numbers import in_digits, plural
from userdp.exact.numbers import (
    capped_binomial,
    capped_power,
    check_count,
    check_neighbors,
    is_integer,
    short_repr,
)
from userdp.report.base import universe_text

MOST_PAIRS = 1000
MOST_DRAWN = 10**6
"""Examples of all drawn datasets together."""
COPIED = 4
"""One of so many drawn users has what another one has."""
CHANGES = 3
"""Values that the changed user of a drawn dataset has, each compared with each other one."""
ENORMOUS = 10**30

Counts: TypeAlias = "int | Sequence[int]"


class NeighboringPairs(list[tuple[Dataset, Dataset]]):
    """Pairs of neighbors; `scope` says in words which datasets they are of, and how many of all pairs they are."""

    scope = ""


def neighboring_pairs(
    universe: Iterable[Any],
    *,
    n_users: int,
    n_examples: Counts = 1,
    neighbors: Literal["replace", "add-remove"] = "replace",
    random_state: int | None = None,
) -> NeighboringPairs:
    """Return pairs of datasets over a small universe that differ in one user, of every position.

    Parameters
    ----------
    universe : iterable
        The possible values of one example, distinct, of plain types.
    n_users : int
        Users of the larger dataset, at least 1.
    n_examples : int or sequence of int
        Examples of every user, at least 1; or the numbers of examples that users may have, such as ``(0, 1, 2)``, for
        mechanisms that take users with more and with fewer.
    neighbors : {"replace", "add-remove"}
        Whether the user is another one in the second dataset, or is missing.
    random_state : int, optional
        Seeds what is drawn.

    Returns
    -------
    list of pairs
        At most 1,000 pairs of datasets, each a tuple of users, each a tuple of examples. The other users are the same
        in both, in the same order. All pairs where there are no more; otherwise, where they fit, all multisets of the
        others with all changes, the users in drawn orders; and otherwise a drawn sample, in which equal users and all
        numbers of examples are frequent. Its attribute ``scope`` says how many of all pairs there are. Each pair is in
        one order: coins stand for both directions.

    Examples
    --------
    >>> pairs = neighboring_pairs((0, 1), n_users=2, neighbors="add-remove")
    >>> pairs[:3]
    [(((0,), (0,)), ((0,),)), (((0,), (1,)), ((1,),)), (((1,), (0,)), ((0,),))]
    >>> pairs.scope
    'all 6 pairs of datasets of 2 users with 1 example each from {0, 1} that differ by removing one user from these'
    """
    n, sizes = check_count(n_users, "n_users"), read_sizes(n_examples)
    check_neighbors(neighbors)
    if random_state is not None and not is_integer(random_state):
        raise TypeError(f"random_state must be an int or None; got {short_repr(random_state)}")
    examples, removal, source = read_universe(universe), neighbors == "add-remove", random.Random(random_state)
    n_values = sum(capped_power(len(examples), size, ENORMOUS) for size in sizes)
    changes = n_values if removal else n_values * (n_values - 1) // 2
    rests = capped_power(n_values, n - 1, ENORMOUS)
    # Removing one of several equal users who stand side by side gives one dataset.
    every = rests * n_values + (n - 1) * rests * (n_values - 1) if removal else n * rests * changes
    multisets = capped_binomial(n_values + n - 2, n - 1, MOST_PAIRS) * changes
    places = range(len(examples))
    found: Iterable[tuple[Dataset, Dataset]]
    if every <= MOST_PAIRS:
        found = _all(values_of_users(places, sizes), n, removal)
    elif multisets <= MOST_PAIRS:
        found = _reordered(values_of_users(places, sizes), n, removal, MOST_PAIRS // multisets, source)
    else:
        found = _drawn(places, sizes, n, removal, source)
    # Equal datasets become one object, so that draws are shared. Examples may be equal that are not the same: 1, True.
    made: dict[Dataset, Dataset] = {}
    pairs = NeighboringPairs()
    for pair in dict.fromkeys(found):
        for users in pair:
            if users not in made:
                made[users] = tuple(tuple(examples[place] for place in user) for user in users)
        pairs.append((made[pair[0]], made[pair[1]]))
    which = "all" if len(pairs) == every else f"{len(pairs):,} drawn ones of"
    each = " or ".join(map(in_digits, sizes[:-1])) + " or " * (len(sizes) > 1) + plural(sizes[-1], "example")
    change = "removing one user from these" if removal else "replacing one user"
    pairs.scope = (
        f"{which} {in_digits(every)} pairs of datasets of {plural(n, 'user')} with {each} each from "
        f"{universe_text(examples)} that differ by {change}"
    )
    return pairs


def read_sizes(n_examples: Counts) -> tuple[int, ...]:
    """The numbers of examples that a user may have, increasing."""
    if is_integer(n_examples) or not isinstance(n_examples, (tuple, list, range)):
        return (check_count(n_examples, "n_examples"),)
    sizes = sorted({check_count(size, "n_examples", 0) for size in n_examples})
    if not sizes or sizes == [0]:
        raise ValueError(
            f"n_examples must be a number, or several of which one is above 0; got {short_repr(n_examples)}"
        )
    return tuple(sizes)


def values_of_users(examples: Sequence[Any], sizes: Iterable[int]) -> list[User]:
    """All values of a user with so many examples."""
    return [value for size in sizes for value in itertools.product(examples, repeat=size)]


def _all(values: Sequence[User], n: int, removal: bool) -> Iterator[tuple[Dataset, Dataset]]:
    space = Labeled(values, n, Moves(len(values), 1, item_level=False), add_remove=removal)
    members = list(space.members())
    for first, second in space.rank_pairs():
        yield from ((members[a], members[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True))


def _reordered(
    values: Sequence[User], n: int, removal: bool, places: int, source: random.Random
) -> Iterator[tuple[Dataset, Dataset]]:
    """All multisets of the others with all changes, at so many positions, each time in a fresh order of the others."""
    for rest in itertools.combinations_with_replacement(values, n - 1):
        for place in source.sample(range(n), min(n, places)):
            yield from _changed(tuple(source.sample(rest, n - 1)), place, values, removal)


def _drawn(
    places: Sequence[int], sizes: Sequence[int], n: int, removal: bool, source: random.Random
) -> Iterator[tuple[Dataset, Dataset]]:
    """Different pairs; users have each number of examples as often, and what another user has one time in `COPIED`."""

    def value(others: Sequence[User]) -> User:
        if others and not source.randrange(COPIED):
            return source.choice(others)
        return tuple(source.choices(places, k=source.choice(sizes)))

    seen: set[frozenset[Dataset]] = set()
    most = max(1, min(MOST_PAIRS, MOST_DRAWN // (n * max(sizes))))
    for _ in range(10 * most):
        if len(seen) == most:
            return
        rest: list[User] = []
        for _ in range(n - 1):
            rest.append(value(rest))
        source.shuffle(rest)
        own = dict.fromkeys(value(rest) for _ in range(CHANGES))
        for pair in _changed(tuple(rest), source.randrange(n), list(own), removal):
            if len(seen) < most and frozenset(pair) not in seen:
                seen.add(frozenset(pair))
                yield pair


def _changed(rest: Dataset, place: int, values: Iterable[User], removal: bool) -> Iterator[tuple[Dataset, Dataset]]:
    """All pairs in which the user at a position changes, each dataset made once."""
    made = [(*rest[:place], value, *rest[place:]) for value in values]
    return ((one, rest) for one in made) if removal else itertools.combinations(made, 2)
