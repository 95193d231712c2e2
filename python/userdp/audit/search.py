"""The search for the worst pair of neighboring small tables.

Tables are taken by cost, and every one is compared with all earlier ones from which it differs in one user. Since only
distinct outputs matter, that is linear in the number of tables and quadratic in that of outputs.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from userdp.algorithms.outputs import NONE, NORMS, RAISES, Change, worse
from userdp.audit.runner import Runner
from userdp.audit.worlds import Entries, Limits, Rows, Value, World, all_worlds, entries_of, orders_of
from userdp.exceptions import BudgetError

MOST_ROWS_LISTED = 200_000
"""Different rows that are listed."""
MOST_ORDERED_ROWS = 7
"""Rows of a table of which every order is tried."""
FIRST_CHECKS = 12
"""Tables on which order, determinism and the like are checked as soon as they come."""
LAST_CHECKS = 38
"""Tables, drawn from all, on which they are checked at the end."""
MORE_ORDERS = 1024
"""Other orders of rows that are tried besides: each order of all tables where there are few."""
FORGETFUL_CHECKS = 8
"""Tables, of the first and of the last ones, on which a copy from before all calls is run."""
POOL = 16
"""Pairs that random search goes on from."""

Claim = tuple[Fraction | None, ...]
"""What is claimed in each of `NORMS`."""


class Pair(NamedTuple):
    """Two neighboring tables: who changes, from which rows to which, beside which rows of others; and their orders."""

    who: int
    mine: Value
    other: Value
    background: World
    first: Entries
    second: Entries


@dataclass
class Found:
    """What a search found."""

    worst: Change = NONE
    worst_pairs: dict[str, Pair] = field(default_factory=dict)
    violation: Pair | None = None
    complete: bool = False
    tables: int = 0
    pairs: int = 0
    random_tables: int = 0
    checked: int = 0
    excluded: int = 0
    order_dependent: str = ""
    form_dependent: str = ""


class OrderMatters(Exception):
    """The order of rows changes an output, so that all orders have to be taken."""


class Search:
    """One search over the worlds of some limits.

    Parameters
    ----------
    runner : Runner
    rows, limits
        Which worlds there are.
    neighbors : {"replace", "add-remove"}
    claim : tuple
    ordered : bool
        Whether all orders of rows are taken, on both sides.
    check_order : bool
        Whether to try other orders on some tables.
    domain, invariant : callable or None
        On rows: whether a table is admissible, and what is public of it.
    """

    def __init__(
        self,
        runner: Runner,
        rows: Rows,
        limits: Limits,
        *,
        neighbors: str,
        claim: Claim,
        slack: Fraction,
        ordered: bool,
        check_order: bool,
        domain: Callable[[Entries], bool] | None,
        invariant: Callable[[Entries], Hashable] | None,
        max_calls: int,
        deadline: float,
        progress: Callable[[int, int], object],
        total: int,
    ) -> None:
        self.runner, self.rows, self.limits = runner, rows, limits
        self.found = Found()
        self._replace = neighbors == "replace"
        self._claim = tuple(None if one is None else one * (1 + slack) for one in claim)
        self.ordered, self._check_order = ordered, check_order
        self._domain, self._invariant = domain, invariant
        self._most_calls, self._deadline = runner.calls + max_calls, deadline
        self._progress, self.total = progress, total
        self.needed_seconds: int | None = None
        self._results: dict[World, tuple[Hashable, list[tuple[int, Entries]]]] = {}
        self._beside: dict[Hashable, dict[int, tuple[Value, Entries]]] = {}
        self._members: dict[Hashable, int] = {}
        self._pending: Pair | None = None
        self.forgetful = 0

    def exceeds(self, change: Change) -> bool:
        """Whether a change is above what is claimed."""
        return any(most is not None and step > most for step, most in zip(change, self._claim, strict=True))

    def run(self) -> Found:
        """Search until a violation is found, everything was tried, or the budget is used."""
        found, limits = self.found, self.limits
        found.complete = True
        listed = 0
        for world in all_worlds(self.rows, limits, MOST_ROWS_LISTED):
            if self.runner.calls >= self._most_calls or time.perf_counter() > self._deadline:
                found.complete = False
                break
            listed += 1
            if listed % 256 == 0:
                self._progress(listed, self.total)
            result = self._result(world)
            if result is None:
                found.excluded += 1
                continue
            found.tables += 1
            entries = result[1][0][1]
            if found.checked < FIRST_CHECKS:
                self.check(entries)
            self._compare(world, *result)
            if self._settled():
                found.complete = False
                return found
        else:
            found.complete = listed == self.total
        self._pending_is_found()
        return found

    def _settled(self) -> bool:
        """Whether a violation is found, of a function that does not always raise."""
        if self._pending is not None and self.runner.answered:
            self._pending_is_found()
        return self.found.violation is not None

    def _pending_is_found(self) -> None:
        if self._pending is not None and self.found.violation is None:
            self.found.violation = self._pending

    def _result(self, world: World) -> tuple[Hashable, list[tuple[int, Entries]]] | None:
        """What is public of a table, and its distinct outputs with an order for each; None outside of the domain."""
        entries = entries_of(world, named=self.limits.named)
        if self._domain is not None and not self._domain(entries):
            return None
        public = self._invariant(entries) if self._invariant is not None else None
        result = public, self._outputs(entries)
        self._results[world] = result
        return result

    def _outputs(self, entries: Entries) -> list[tuple[int, Entries]]:
        if not self.ordered or len(entries) < 2:
            return [(self.runner.output(entries), entries)]
        if len(entries) > MOST_ORDERED_ROWS:
            raise BudgetError(
                f"all orders of {len(entries)} rows are too many; take total_rows={MOST_ORDERED_ROWS} or fewer"
            )
        made: dict[int, Entries] = {}
        for order in orders_of(entries):
            made.setdefault(self.runner.output(order), order)
        return list(made.items())

    def _compare(self, world: World, public: Hashable, outputs: list[tuple[int, Entries]]) -> None:
        named = self.limits.named
        if len(outputs) > 1:  # two orders of one table
            who = outputs[0][1][0][0]
            value, others = world[who], _without(world, who)
            for place, (one, first) in enumerate(outputs):
                for two, second in outputs[:place]:
                    self._measure(one, two, partial(Pair, who, value, value, others, first, second))
        if not self._replace:
            for place in _places(world, self.limits):
                if place >= len(world) or not world[place]:
                    continue
                base = _without(world, place) if named else world[:place] + world[place + 1 :]
                known = self._results.get(base)
                if known is None or known[0] != public:
                    continue
                self.found.pairs += 1
                for one, first in outputs:
                    for two, second in known[1]:
                        self._measure(
                            one,
                            two,
                            partial(Pair, place if named else 0, world[place], (), base, first, second),
                        )
            return
        for place in _places(world, self.limits):
            if named:
                rest, mine = _without(world, place), world[place]
                key: Hashable = (place, rest, public)
            else:
                mine = world[place] if place < len(world) else ()
                rest = world[:place] + world[place + 1 :] if mine else world
                key = (rest, public)
            beside = self._beside.setdefault(key, {})
            self.found.pairs += self._members.get(key, 0)
            self._members[key] = self._members.get(key, 0) + 1
            for one, first in outputs:
                if one in beside:
                    continue
                for two, (other, second) in beside.items():
                    self._measure(
                        one,
                        two,
                        partial(Pair, place if named else 0, mine, other, rest, first, second),
                    )
                beside[one] = mine, first

    def _measure(self, one: int, two: int, pair: Callable[[], Pair]) -> None:
        if one == two:
            return
        change, worst = self.runner.change(one, two), self.found.worst
        if any(map(_above, change, worst)):
            made = pair()
            for norm, step, most in zip(NORMS, change, worst, strict=True):
                if step > most:
                    self.found.worst_pairs[norm] = made
            self.found.worst = worse(change, worst)
        if self._pending is None and self.exceeds(change):
            self._pending = pair()

    # --- checks beside the search

    def check(self, entries: Entries) -> None:
        """Determinism, an untouched input, other orders of the rows and other forms of the table, on one table."""
        runner = self.runner
        self.found.checked += 1
        runner.require_same(entries, "when it was called again")
        runner.require_untouched(entries)
        if self.forgetful < FORGETFUL_CHECKS:
            self.forgetful += 1
            runner.require_forgetful(entries)
        number = runner.output(entries)
        if self._check_order and len(entries) > 1:
            for order in _some_orders(entries):
                self._check_same_in(order, number)
        if not self.found.form_dependent:
            for words, other in runner.other_forms(entries) if entries else ():
                if other != number:
                    self.found.form_dependent = f"{words}: {runner.shown(entries)}"

    def _check_same_in(self, order: Entries, number: int) -> None:
        if self.runner.output(order) != number:
            self.found.order_dependent = self.runner.shown(order)
            raise OrderMatters

    def _check_orders(self, worlds: Sequence[World], source: random.Random) -> None:
        """Other orders of many tables: of each one, and more of them where there are few tables."""
        tables = [entries_of(world, named=self.limits.named) for world in source.sample(worlds, len(worlds))]
        several = [entries for entries in tables if len(entries) > 1][:MORE_ORDERS]
        tried = set[Entries]()
        others = ([(entries, order) for order in _some_orders(entries)] for entries in several)
        turns = itertools.zip_longest(*(source.sample(pairs, len(pairs)) for pairs in others))
        for entries, order in itertools.islice(filter(None, itertools.chain.from_iterable(turns)), MORE_ORDERS):
            if self.runner.calls >= self._most_calls + 40 * LAST_CHECKS or time.perf_counter() > self._deadline:
                return
            self._check_same_in(order, self.runner.output(entries))
            tried.add(entries)
            self.found.checked = max(self.found.checked, len(tried))

    def check_some(self) -> None:
        """The same on tables from all over the search; and on the very first ones again, after all other calls."""
        worlds = list(self._results)
        self.forgetful = 0
        drawn = random.Random(0).sample(worlds, min(LAST_CHECKS, len(worlds)))
        for world in drawn:
            if self.runner.calls >= self._most_calls + 40 * LAST_CHECKS or time.perf_counter() > self._deadline:
                return
            self.check(entries_of(world, named=self.limits.named))
        if self._check_order:
            self._check_orders(worlds, random.Random(2))
        for world in worlds[:FIRST_CHECKS]:
            self.runner.require_same(entries_of(world, named=self.limits.named), "after other calls")

    def share(self) -> list[Entries]:
        """A quarter of the tables, between 16 and 128 of them, drawn from all."""
        worlds = list(self._results)
        number = min(len(worlds), max(16, min(128, len(worlds) // 4)))
        drawn = random.Random(1).sample(worlds, number)
        return [entries_of(world, named=self.limits.named) for world in drawn]

    # --- beyond the listed worlds

    def at_random(self, number: int, source: random.Random, sizes: tuple[int, ...]) -> None:
        """Pairs of drawn tables, also of later letters; pairs that changed much are changed a little more."""
        pool: list[tuple[Any, Pair]] = []
        for _ in range(number):
            if time.perf_counter() > self._deadline:
                return
            parent = source.choice(pool)[1] if pool and source.random() < 0.5 else None
            pair = self._drawn(source, sizes, parent)
            self.found.random_tables += 1
            changed = self.measured(pair)
            if changed is None:
                continue
            change, made = changed
            number_of = self.runner.output
            self._measure(number_of(made.first), number_of(made.second), partial(_same, made))
            if self._settled():
                return
            pool = sorted([*pool, (change, made)], key=lambda one: one[0], reverse=True)[:POOL]

    def _drawn(self, source: random.Random, sizes: tuple[int, ...], parent: Pair | None) -> Pair:
        limits = self.limits

        def row() -> int:
            return self.rows.number(
                tuple(source.randrange(size if source.random() < 1 / 3 else min(size, 3)) for size in sizes)
            )

        def value() -> Value:
            return tuple(sorted(row() for _ in range(source.randint(0, limits.max_rows))))

        if parent is None:
            background = tuple(value() for _ in range(limits.max_users))
            who, mine, other = source.randrange(limits.max_users) if limits.named else 0, value(), value()
        else:
            background, who, mine, other = parent.background, parent.who, parent.mine, parent.other
            part = source.randrange(3)
            if part == 0 and background:
                at = source.randrange(len(background))
                background = (*background[:at], value(), *background[at + 1 :])
            elif part == 1:
                mine = value()
            else:
                other = value()
        if limits.named:
            background = (*background[:who], (), *background[who + 1 :])
        else:
            background = tuple(sorted(one for one in background if one))[: limits.max_users - 1]
        if not self._replace:
            other = ()
        return Pair(who, mine, other, background, (), ())

    def measured(self, pair: Pair) -> tuple[Change, Pair] | None:
        """The change of a pair, at its worst over the orders of rows; None where it is no pair of neighbors."""
        tables = [self._table(pair, own) for own in (pair.mine, pair.other)]
        if self._domain is not None and not all(map(self._domain, tables)):
            return None
        if self._invariant is not None and self._invariant(tables[0]) != self._invariant(tables[1]):
            return None
        if self.ordered and max(map(len, tables)) > MOST_ORDERED_ROWS:
            return None
        worst, at = Change(-1, -1, -1, -1), (tables[0], tables[1])
        for one, first in self._outputs(tables[0]):
            for two, second in self._outputs(tables[1]):
                change = self.runner.change(one, two)
                if _key(change, self._claim) > _key(worst, self._claim):
                    worst, at = change, (first, second)
        return worst, pair._replace(first=at[0], second=at[1])

    def _table(self, pair: Pair, own: Value) -> Entries:
        if self.limits.named:
            world = (*pair.background[: pair.who], own, *pair.background[pair.who + 1 :])
        else:
            world = (*pair.background, own)
        return entries_of(world, named=self.limits.named)


def _same(pair: Pair) -> Pair:
    return pair


def _above(step: Any, most: Any) -> bool:
    return bool(step > most)


def _key(change: Change, claim: Claim) -> tuple[Any, ...]:
    """Changes by what is claimed, and then by the sum."""
    return (*(step for step, most in zip(change, claim, strict=True) if most is not None), change.l1)


def _without(world: World, place: int) -> World:
    return (*world[:place], (), *world[place + 1 :])


def _places(world: World, limits: Limits) -> Iterator[int]:
    """The users who may change; of equal ones without names, one."""
    if limits.named:
        yield from range(len(world))
        return
    for place, value in enumerate(world):
        if place == 0 or world[place - 1] != value:
            yield place
    if len(world) < limits.most_rows:
        yield len(world)


def _some_orders(entries: Entries) -> list[Entries]:
    """Other orders: all of up to four rows, and otherwise backwards and three drawn ones."""
    if len(entries) <= 4:
        return orders_of(entries)[1:]
    source, drawn = random.Random(len(entries)), [entries[::-1]]
    for _ in range(3):
        mixed = list(entries)
        source.shuffle(mixed)
        drawn.append(tuple(mixed))
    return drawn


def always_raises(runner: Runner) -> bool:
    """Whether every call raised."""
    return bool(runner.outputs) and all(output.form == RAISES for output in runner.outputs)
