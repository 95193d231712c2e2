"""A query as a finite algorithm, so that whole releases can be audited exactly on small worlds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from userdp.algorithms import Dataset, User
from userdp.audit.noise_free import NoiseFree
from userdp.exact.numbers import Neighbors, check_count
from userdp.exact.pmf import Pmf, whole_multiples
from userdp.exceptions import BudgetError
from userdp.mechanisms import CorrelatedCounts
from userdp.mechanisms.key_bounds import keyed_sensitivity
from userdp.mechanisms.set_union import SetUnion
from userdp.mechanisms.sparse_histogram import SparseHistogram
from userdp.tables.compiled import USERS, Compiled, Statistic, key_cells
from userdp.tables.drawing import key_of, law_of_choices
from userdp.tables.noise import Allotment, KeyFinder, Noise, nearest
from userdp.tables.quantiles import WEIGHT
from userdp.tables.queries import KeySet
from userdp.tables.reading import table_of
from userdp.tables.rows import KeyValue, UserColumns, add_up, bins_of, keys_of_users
from userdp.tables.schema import ColumnType

Vector: TypeAlias = "tuple[tuple[int, ...], ...]"
"""For each key its statistics; an empty tuple for a key that is not there."""

HIDDEN = "hidden"
MOST_OUTPUTS = 2**20
MEMORY = 2**26


class TableAlgorithm:
    """The release of a query on small worlds: what it would draw, exactly.

    An example is a row: a tuple of the values of `columns`, or None for no row, so that users may have fewer rows. What
    users add is computed by the same code as for a release. Which groups of a user count is drawn, so the pmf is the
    mixture of all choices. Noisy numbers are merged beyond the values that the numbers can have without noise: for
    discrete Laplace noise nothing is lost by that; for discrete Gaussian noise the audit is then of a function of the
    release. Where counts have noise in common (`CorrelatedCounts`), the audit is of the integers that they are computed
    from, which say more than the counts do. Quantiles are chosen by the same code as in a release, with every choice in
    place of a drawn one.

    Attributes
    ----------
    outputs : tuple
        For each key its numbers, the bins of its quantiles and the numbers of its histograms, or "hidden". With noise
        in common: for each key the noisy q count - p users in place of the count, and last the noisy number of users,
        where p / q is `theta`.
    columns : tuple of str
        What the values of a row are.
    keys : tuple
        The keys that are looked at: those of the public list, or those that were given.
    """

    symmetric = True

    def __init__(
        self,
        query: Compiled,
        noise: Allotment,
        schema: Mapping[str, ColumnType],
        *,
        n_users: int,
        keys: Sequence[KeyValue] | None = None,
    ) -> None:
        if query.unknown and keys is None:
            raise ValueError("keys: an exact audit with unknown keys needs those that its worlds may have")
        people = check_count(n_users, "n_users")
        self.columns = query.columns
        public = tuple(query.keys or ()) if query.group else ()
        beyond: tuple[KeyValue, ...] = ()
        if query.unknown and keys:
            # Those of a public list come first, and then the others in the order of their values.
            beyond = tuple(key_cells(KeySet.from_values([tuple(one) for one in keys]), query.group, query.types))
            if public:
                beyond = tuple(
                    sorted(set(beyond) - set(public), key=lambda key: [(isinstance(part, str), part) for part in key])
                )
        self._listed = query.listed
        self._cells_of_keys: tuple[KeyValue, ...] = (*public, *beyond) or ((),)
        self.keys = tuple(key_of(query, one) for one in self._cells_of_keys)
        # With a count of users, so that it shows which keys a user has.
        known = USERS in query.statistics
        statistics = query.statistics if known else (USERS, *query.statistics)
        most = max(query.max_keys, len(self.keys))
        self._query = replace(query, max_keys=most, rule="first", statistics=statistics)
        self._most, self._rule = query.max_keys, query.rule
        self._schema = schema
        keyed = noise.keyed
        self._selected, self._binned = noise.selected, noise.binned
        self._noise = keyed.noise if keyed is not None else ()
        # What a user adds to a key: statistics in this order, and then weights by bins.
        self._counted = [statistic for statistic, _ in keyed.spreads] if keyed is not None else []
        self._steps = [keyed.step(statistic) for statistic, _ in keyed.noise] if keyed is not None else []
        self._threshold = None if keyed is None or keyed.sparse is None else keyed.sparse.threshold
        self._cells = [
            self._range(statistic, people, step) for (statistic, _), step in zip(self._noise, self._steps, strict=True)
        ]
        self._correlated = None if keyed is None else keyed.correlated
        if self._correlated is not None:
            self._cells = [_range_in_common(self._correlated, people)]
        of_bins = [int(nearest(people * WEIGHT, part.step)) for part in self._binned]
        ranges = [high - low + 1 for low, high in self._cells]
        ranges += [part.bins ** len(part.shares) for part in self._selected]
        ranges += [
            (top + 1) ** bins_of(part.answer, query.types).count
            for part, top in zip(self._binned, of_bins, strict=True)
        ]
        each = math.prod(ranges) + (self._threshold is not None)
        if self._listed:
            each = max(each, math.prod([people + 1, *ranges[1:]]))
        beside = 1 if self._correlated is None else people + 1
        if each ** len(self.keys) * beside > MOST_OUTPUTS:
            raise BudgetError(
                f"the release has {each} ** {len(self.keys)}{'' if beside == 1 else f' * {beside}'} outputs, above "
                "2**20: take fewer keys or users, or columns with fewer steps"
            )
        self._tops = of_bins
        alphabets: list[Any] = [range(low, high + 1) for low, high in self._cells]
        alphabets += [list(itertools.product(range(part.bins), repeat=len(part.shares))) for part in self._selected]
        alphabets += [
            list(itertools.product(range(top + 1), repeat=bins_of(part.answer, query.types).count))
            for part, top in zip(self._binned, of_bins, strict=True)
        ]
        one_key: list[Hashable] = list(itertools.product(*alphabets))
        self._shown_outputs = len(one_key)
        if self._threshold is not None:
            one_key.append(HIDDEN)
        always: list[Hashable] = list(itertools.product(range(people + 1), *alphabets[1:])) if self._listed else []
        lists: list[list[Hashable]] = [always] * self._listed + [one_key] * (len(self.keys) - self._listed)
        if self._correlated is not None:
            lists.append([(users,) for users in range(people + 1)])
        self.outputs: tuple[Hashable, ...] = tuple(itertools.product(*lists))
        self._people = people
        self._law = cache(self._law_of_key)
        self._in_common = cache(self._law_in_common)
        self._vectors = cache(self._choices_of_user)
        self._added = cache(self._of_user)

    def _range(self, statistic: Statistic, people: int, step: int) -> tuple[int, int]:
        low, high = min(statistic.low, 0) * people, max(statistic.high, 0) * people
        if self._threshold is not None and statistic == USERS:
            return self._threshold, max(self._threshold, high)
        return int(nearest(low, step)), int(nearest(high, step))

    def pmf(self, dataset: Dataset, /) -> Pmf:
        """The exact probabilities of the outputs on a world."""
        # A mixture over the choices of all users, which are independent.
        totals: dict[tuple[Any, ...], Fraction] = {tuple(None for _ in self.keys): Fraction(1)}
        for user in dataset:
            moved: dict[tuple[Any, ...], Fraction] = {}
            for before, mass in totals.items():
                for vector, part in self._vectors(tuple(user)):
                    after = tuple(map(_plus, before, vector))
                    moved[after] = moved.get(after, Fraction(0)) + mass * part
            totals = moved
        masses = [Fraction(0)] * len(self.outputs)
        users = sum(self._added(tuple(user))[1] for user in dataset)
        for total, mass in totals.items():
            if self._correlated is None:
                laws = [self._law(one, place < self._listed) for place, one in enumerate(total)]
            else:
                laws = self._in_common(total, users)
            for place, parts in enumerate(itertools.product(*laws)):
                masses[place] += mass * math.prod(parts)
        return Pmf(self.outputs, tuple(whole_multiples(masses)))

    def vector(self, user: User) -> Vector:
        """What a user adds to each key where all keys count."""
        return self._of_user(user)[0]

    def _of_user(self, user: User) -> tuple[Vector, int]:
        """The same, and whether the user counts as one."""
        table = _table_of_user(user, self.columns)
        sums = add_up(self._query, table, UserColumns(("user",)), self._schema, memory=MEMORY, directory=None)
        at = {key: place for place, key in enumerate(sums.keys)}
        columns = [sums.columns[statistic] for statistic in self._counted]
        names = [part.answer.name for part in self._selected] + [part.answer.name for part in self._binned]
        splits = [sums.splits[name] for name in names]
        found: list[tuple[int, ...]] = []
        for key in self._cells_of_keys:
            place = at.get(key)
            if place is None or not sums.columns[USERS][place]:
                found.append(())
                continue
            numbers = [int(column[place]) for column in columns]
            found.append((*numbers, *(int(weight) for split in splits for weight in split.of(place))))
        return tuple(found), sums.users

    def _choices_of_user(self, user: User) -> list[tuple[Vector, Fraction]]:
        whole = self._added(user)[0]
        present = [place for place, numbers in enumerate(whole) if numbers]
        kept = min(self._most, len(present))
        subsets = list(itertools.combinations(present, kept))
        if self._rule == "first":
            subsets = subsets[:1]
        return [
            (
                tuple(numbers if place in subset else () for place, numbers in enumerate(whole)),
                Fraction(1, len(subsets)),
            )
            for subset in subsets
        ]

    def _law_of_key(self, total: tuple[int, ...] | None, always: bool) -> list[Fraction]:
        """The probabilities of what is shown of one key, which may be always shown."""
        if self._threshold is not None and not total and not always:
            return [Fraction(0)] * self._shown_outputs + [Fraction(1)]
        laws = self._laws_of_numbers(total, always) + self._laws_of_others(total)
        joint = [math.prod(each, start=Fraction(1)) for each in itertools.product(*laws)]
        if self._threshold is None or always:
            return joint
        # What is below the threshold is hidden, with all that goes with it.
        return [*joint, 1 - sum(joint, Fraction(0))]

    def _laws_of_others(self, total: tuple[int, ...] | None) -> list[list[Fraction]]:
        """The distributions of a key's quantiles and histograms."""
        laws = []
        rest = np.array((total or ())[len(self._counted) :], dtype=np.int64)
        for part in self._selected:
            weights, rest = (rest[: part.bins], rest[part.bins :]) if total else (np.zeros(part.bins, np.int64), rest)
            law = law_of_choices(part, weights)
            outcomes = itertools.product(range(part.bins), repeat=len(part.shares))
            laws.append([law.get(outcome, Fraction(0)) for outcome in outcomes])
        for binned, top in zip(self._binned, self._tops, strict=True):
            bins = bins_of(binned.answer, self._query.types).count
            weights, rest = (rest[:bins], rest[bins:]) if total else (np.zeros(bins, np.int64), rest)
            values = [int(nearest(int(weight), binned.step)) for weight in weights]
            parts = [merged(binned.noise, value, 0, top) for value in values]
            laws.append([math.prod(each, start=Fraction(1)) for each in itertools.product(*parts)])
        return laws

    def _laws_of_numbers(self, total: tuple[int, ...] | None, always: bool) -> list[list[Fraction]]:
        """The distribution of each statistic, that of the users without what is below the threshold."""
        cells = [(0, self._people), *self._cells[1:]] if always else self._cells
        values = [
            int(nearest(value, step))
            for value, step in zip((total or [0] * len(self._steps))[: len(self._steps)], self._steps, strict=True)
        ]
        laws = [merged(noise, value, *ends) for (_, noise), value, ends in zip(self._noise, values, cells, strict=True)]
        if self._threshold is not None and not always:
            laws[0][0] -= 1 - _tail(self._noise[0][1], self._threshold - values[0])
        return laws

    def _law_in_common(self, total: tuple[tuple[int, ...] | None, ...], users: int) -> list[list[Fraction]]:
        """The probabilities of each of the integers that counts with noise in common are computed from, by key."""
        assert self._correlated is not None
        p, q = self._correlated.theta.numerator, self._correlated.theta.denominator
        of_counts, of_users = self._correlated.noises
        found = []
        for one in total:
            count = one[0] if one else 0
            laws = [merged(of_counts, q * count - p * users, *self._cells[0]), *self._laws_of_others(one)]
            found.append([math.prod(each, start=Fraction(1)) for each in itertools.product(*laws)])
        return [*found, merged(of_users, users, 0, self._people)]


def _range_in_common(counts: CorrelatedCounts, people: int) -> tuple[int, int]:
    """What q count - p users may be."""
    p, q = counts.theta.numerator, counts.theta.denominator
    return -p * people, (q - p) * people


def paths_before_noise(
    query: Compiled, schema: Mapping[str, ColumnType], user: UserColumns, neighbors: Neighbors, coins: bytes
) -> dict[str, NoiseFree]:
    """What a release adds noise to, as functions of a table, by the code of a release; and what noise is made for.

    One for each statistic, by its name. Which keys of a user count is drawn by `coins`.
    """
    paths = {}
    for statistic in query.statistics:
        most = keyed_sensitivity(
            n_keys=query.n_keys,
            max_keys=query.max_keys,
            low=statistic.low,
            high=statistic.high,
            neighbors=neighbors,
        )
        paths[name_of(statistic)] = NoiseFree(
            partial(_statistic_of, query, schema, user, coins, statistic),
            {"l1": most.l1, "l2_squared": most.l2_squared, "linf": most.linf},
            {"user": user.columns[0], "neighbors": neighbors, "frame": "polars", "missing": 0},
        )
    return paths


def _statistic_of(
    query: Compiled, schema: Mapping[str, ColumnType], user: UserColumns, coins: bytes, statistic: Statistic, table: Any
) -> dict[KeyValue, int]:
    """One statistic of a table, by key."""
    sums = add_up(query, table_of(table), user, schema, memory=MEMORY, directory=None, coins=coins)
    return {key: int(value) for key, value in zip(sums.keys, sums.columns[statistic], strict=True)}


def name_of(statistic: Statistic) -> str:
    """What a statistic is called: its kind, and the column that it is of."""
    column = statistic.value or statistic.of
    return statistic.kind if column is None else f"{statistic.kind} of {column.column}"


class KeysAlgorithm:
    """Which keys a query shows on small worlds: what a release would draw, exactly, and in which round.

    An example is a row: a tuple of the values of `columns`, or None for no row. Which keys users have is found by the
    same code as for a release, and what is shown of them by the mechanism's own `pmf`.

    Attributes
    ----------
    outputs : tuple
        What every round shows: for each a tuple of keys.
    columns : tuple of str
        What the values of a row are.
    keys : tuple
        The keys that worlds may have.
    """

    symmetric = True

    def __init__(
        self,
        query: Compiled,
        finder: KeyFinder,
        schema: Mapping[str, ColumnType],
        *,
        keys: Sequence[KeyValue] | None = None,
    ) -> None:
        if keys is None:
            raise ValueError("keys: an exact audit with unknown keys needs those that its worlds may have")
        self.columns = query.columns
        self.keys: tuple[KeyValue, ...] = tuple(key if isinstance(key, tuple) else (key,) for key in keys)
        self._query, self._finder, self._schema = query, finder, schema
        rounds = 1
        if isinstance(finder, SetUnion):
            rounds = len(finder.rounds)
            try:
                finder.pmf([self.keys[:1]])
            except BudgetError as error:
                raise BudgetError(
                    f"keys_only() cannot be audited: {error}. A user's weight is in {finder.weight} steps; a "
                    "userdp.mechanisms.SetUnion with a smaller weight= can be"
                ) from None
        if (rounds + 1) ** len(self.keys) > MOST_OUTPUTS:
            raise BudgetError(f"the release has {rounds + 1} ** {len(self.keys)} outputs, above 2**20: take fewer keys")
        places = itertools.product(range(rounds + 1), repeat=len(self.keys))
        self.outputs: tuple[Any, ...] = tuple(
            tuple(
                tuple(key for key, place in zip(self.keys, chosen, strict=True) if place == number)
                for number in range(rounds)
            )
            for chosen in places
        )
        self._keys_of = cache(self._read)

    def pmf(self, dataset: Dataset, /) -> Pmf:
        """The exact probabilities of the outputs on a world."""
        # Keys go by their places, since what a union shows has one spelling of its own.
        places = {key: place for place, key in enumerate(self.keys)}
        users = [[places[key] for key in self._keys_of(tuple(user))] for user in dataset]
        masses: dict[Any, Fraction] = {}
        for outcome, mass in self._law(users):
            one = tuple(tuple(key for key, place in places.items() if place in shown) for shown in outcome)
            masses[one] = masses.get(one, Fraction(0)) + mass
        return Pmf(self.outputs, tuple(whole_multiples([masses.get(one, Fraction(0)) for one in self.outputs])))

    def _law(self, users: Sequence[Sequence[int]]) -> Iterator[tuple[Any, Fraction]]:
        """What every round shows of the keys of users, by their places; an outcome may come several times."""
        finder = self._finder
        if isinstance(finder, SetUnion):
            drawn = finder.pmf(users)
            yield from zip(drawn.outputs, drawn.fractions(), strict=True)
            return
        # Which keys of a user count is drawn first.
        choices = [list(itertools.combinations(keys, min(len(keys), finder.max_keys))) for keys in users]
        ways = math.prod(map(len, choices))
        for choice in itertools.product(*choices):
            counts = [sum(place in keys for keys in choice) for place in range(len(self.keys))]
            if isinstance(finder, SparseHistogram):
                drawn = finder.pmf(counts, largest=finder.threshold)
                outcomes: Any = drawn.outputs
                shown: Any = [[place for place, _ in outcome] for outcome in outcomes]
            else:
                drawn = finder.pmf(counts)
                shown = drawn.outputs
            yield from (((one,), mass / ways) for one, mass in zip(shown, drawn.fractions(), strict=True))

    def _read(self, user: User) -> tuple[KeyValue, ...]:
        """The keys that a user has rows with."""
        _, found = keys_of_users(
            self._query,
            _table_of_user(user, self.columns),
            UserColumns(("user",)),
            self._schema,
            memory=MEMORY,
            directory=None,
        )
        return tuple(found)


def _table_of_user(user: User, columns: Sequence[str]) -> Any:
    """One user's rows as a table."""
    import pandas

    rows = [row for row in user if row is not None]
    frame = pandas.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(columns)})
    frame["user"] = np.zeros(len(rows), dtype=np.int64)
    return table_of(frame)


def _plus(before: tuple[int, ...] | None, added: tuple[int, ...]) -> tuple[int, ...] | None:
    if not added:
        return before
    return added if not before else tuple(a + b for a, b in zip(before, added, strict=True))


def _tail(noise: Noise, least: int) -> Fraction:
    """The probability that noise is `least` or more, exactly as it is drawn."""
    return noise.tail(least)


def merged(noise: Noise, value: int, low: int, high: int) -> list[Fraction]:
    """The distribution of a value with noise on low, ..., high, where what is beyond counts as the ends."""
    tails = [Fraction(1), *(_tail(noise, x - value) for x in range(low + 1, high + 1)), Fraction(0)]
    return [before - after for before, after in itertools.pairwise(tails)]
