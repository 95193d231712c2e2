"""A query as a finite algorithm, so that whole releases can be audited exactly on small worlds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from userdp.algorithms import Dataset, User
from userdp.exact.numbers import check_count
from userdp.exact.pmf import Pmf, whole_multiples
from userdp.exceptions import BudgetError
from userdp.mechanisms import CorrelatedCounts
from userdp.tables.compiled import Compiled, Statistic
from userdp.tables.noise import Allotment, Noise, nearest
from userdp.tables.reading import table_of
from userdp.tables.rows import KeyValue, add_up
from userdp.tables.schema import ColumnType

Vector: TypeAlias = "tuple[tuple[int, ...], ...]"
"""For each key its statistics; an empty tuple for a key that is not there."""

HIDDEN = "hidden"
MOST_OUTPUTS = 2**20
MEMORY = 2**26


class TableAlgorithm:
    """The release of a query's counts, sums and means on small worlds: what it would draw, exactly.

    An example is a row: a tuple of the values of `columns`, or None for no row, so that users may have fewer rows. What
    users add is computed by the same code as for a release. Which groups of a user count is drawn, so the pmf is the
    mixture of all choices. Noisy numbers are merged beyond the values that the numbers can have without noise: for
    discrete Laplace noise nothing is lost by that; for discrete Gaussian noise the audit is then of a function of the
    release. Where counts have noise in common (`CorrelatedCounts`), the audit is of the integers that they are computed
    from, which say more than the counts do.

    Attributes
    ----------
    outputs : tuple
        For each key its numbers, or "hidden". With noise in common: for each key the noisy q count - p users, and last
        the noisy number of users, where p / q is `theta`.
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
        if noise.keyed is None or noise.selected or noise.binned:
            raise ValueError("an exact audit is of counts, sums and means; quantiles and histograms have their own")
        if query.unknown and keys is None:
            raise ValueError("keys: an exact audit with unknown keys needs those that its worlds may have")
        people = check_count(n_users, "n_users")
        self.columns = query.columns
        self.keys: tuple[KeyValue, ...] = tuple(
            (keys or ()) if query.unknown else (() if not query.group else query.keys or ())
        ) or ((),)
        self._query = replace(query, max_keys=max(query.max_keys, len(self.keys)), rule="first")
        self._most, self._rule = query.max_keys, query.rule
        self._schema = schema
        self._noise = noise.keyed.noise
        self._steps = [noise.keyed.step(statistic) for statistic, _ in self._noise]
        self._threshold = None if noise.keyed.sparse is None else noise.keyed.sparse.threshold
        self._cells = [
            self._range(statistic, people, step) for (statistic, _), step in zip(self._noise, self._steps, strict=True)
        ]
        self._correlated = noise.keyed.correlated
        if self._correlated is not None:
            self._steps, self._cells = [1], [_range_in_common(self._correlated, people)]
        each = math.prod(high - low + 1 for low, high in self._cells) + (self._threshold is not None)
        beside = 1 if self._correlated is None else people + 1
        if each ** len(self.keys) * beside > MOST_OUTPUTS:
            raise BudgetError(
                f"the release has {each} ** {len(self.keys)}{'' if beside == 1 else f' * {beside}'} outputs, above "
                "2**20: take fewer keys or users, or columns with fewer steps"
            )
        one_key: list[Hashable] = list(itertools.product(*(range(low, high + 1) for low, high in self._cells)))
        if self._threshold is not None:
            one_key.append(HIDDEN)
        lists: list[list[Hashable]] = [one_key] * len(self.keys)
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
        if self._threshold is not None and statistic.kind == "users":
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
                laws = [self._law(one) for one in total]
            else:
                laws = self._in_common(tuple(one[0] if one else 0 for one in total), users)
            for place, parts in enumerate(itertools.product(*laws)):
                masses[place] += mass * math.prod(parts)
        return Pmf(self.outputs, tuple(whole_multiples(masses)))

    def vector(self, user: User) -> Vector:
        """What a user adds to each key where all keys count."""
        return self._of_user(user)[0]

    def _of_user(self, user: User) -> tuple[Vector, int]:
        """The same, and whether the user counts as one."""
        import pandas

        rows = [row for row in user if row is not None]
        frame = pandas.DataFrame({name: [row[place] for row in rows] for place, name in enumerate(self.columns)})
        frame["user"] = np.zeros(len(rows), dtype=np.int64)
        sums = add_up(self._query, table_of(frame), "user", self._schema, memory=MEMORY, directory=None)
        at = {key: place for place, key in enumerate(sums.keys)}
        columns = [sums.columns[statistic] for statistic in self._query.statistics]
        found = []
        for key in self.keys:
            place = at.get(key)
            numbers = () if place is None else tuple(int(column[place]) for column in columns)
            found.append(numbers if any(numbers) or (place is not None and self._query.unknown) else ())
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

    def _law_of_key(self, total: tuple[int, ...] | None) -> list[Fraction]:
        """The probabilities of what is shown of one key."""
        if self._threshold is not None and not total:
            cells = math.prod(high - low + 1 for low, high in self._cells)
            return [Fraction(0)] * cells + [Fraction(1)]
        values = [
            int(nearest(value, step)) for value, step in zip(total or [0] * len(self._steps), self._steps, strict=True)
        ]
        parts = [
            merged(noise, value, *ends)
            for (_, noise), value, ends in zip(self._noise, values, self._cells, strict=True)
        ]
        if self._threshold is None:
            return [math.prod(each, start=Fraction(1)) for each in itertools.product(*parts)]
        # What is below the threshold is hidden, with all its sums.
        shown = _tail(self._noise[0][1], self._threshold - values[0])
        first = list(parts[0])
        first[0] -= 1 - shown
        law = [math.prod(each, start=Fraction(1)) for each in itertools.product(first, *parts[1:])]
        return [*law, 1 - shown]

    def _law_in_common(self, counts: tuple[int, ...], users: int) -> list[list[Fraction]]:
        """The probabilities of each of the integers that counts with noise in common are computed from."""
        assert self._correlated is not None
        p, q = self._correlated.theta.numerator, self._correlated.theta.denominator
        of_counts, of_users = self._correlated.noises
        laws = [merged(of_counts, q * count - p * users, *self._cells[0]) for count in counts]
        return [*laws, merged(of_users, users, 0, self._people)]


def _range_in_common(counts: CorrelatedCounts, people: int) -> tuple[int, int]:
    """What q count - p users may be."""
    p, q = counts.theta.numerator, counts.theta.denominator
    return -p * people, (q - p) * people


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
