"""Bounds that are chosen privately: how many rows of a user should count, or to what a user's total should be clamped.

A bound that is too low leaves out what users give beyond it; one that is too high costs noise in proportion. The best
one has about as many users above it as the noise of a sum of ones is wide, so that is what is searched for, by counts
of users above each candidate. Without more all candidates above the data would be equally good; a public preference
for low ones, as tau**-5, settles that (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from userdp.accounting import PrivacyCost
from userdp.mechanisms import ExponentialMechanism
from userdp.tables.aggregates import CountRows, Sum
from userdp.tables.compiled import Compiled, Statistic, compiled
from userdp.tables.queries import Query
from userdp.tables.rows import Sums
from userdp.tables.schema import ColumnType

POWER = 5
"""Of the public preference for low bounds."""
LOWEST_SHARE = 2**-4
"""The lowest candidate for totals, as a part of the largest value of a row."""


@dataclass(frozen=True)
class Suggestion:
    """A bound that was chosen privately.

    Attributes
    ----------
    bound : int or float
        For `max_rows`, or for `max_total`. It is released, and as private as what it cost.
    cost : PrivacyCost
        What the choice cost.
    """

    bound: int | float
    cost: PrivacyCost


@dataclass(frozen=True)
class Search:
    """The candidates of a choice, and what is looked at for each: two sums whose difference counts users above it."""

    query: Compiled
    candidates: tuple[int, ...]
    at: tuple[Statistic, ...]
    above: tuple[Statistic, ...]
    unit: float

    def users_above(self, sums: Sums) -> Any:
        """How many users have more than each candidate: sum of min(x, tau + 1) minus that of min(x, tau)."""
        low = np.array([int(sums.columns[one][0]) for one in self.at], dtype=np.int64)
        return np.array([int(sums.columns[one][0]) for one in self.above], dtype=np.int64) - low


def search_of(query: Query, schema: Mapping[str, ColumnType]) -> Search:
    """What to look at for a query of one count of rows or one sum, whose bound is the largest candidate."""
    meant = compiled(query, schema)
    if len(meant.answers) != 1 or meant.group or not isinstance(meant.answers[0].aggregate, (CountRows, Sum)):
        raise ValueError(
            "a bound is suggested for one count_rows(max_rows) or one sum(column, max_total=), without groups; the "
            "given bound is the largest one that is considered"
        )
    total = meant.answers[0].total
    assert total is not None
    if total.low < 0:
        raise ValueError("a bound is suggested for sums of what is never negative; clip the column, or give both ends")
    lowest = 1
    if total.value is not None:
        lowest = max(1, math.ceil(max(abs(total.value.low), abs(total.value.high)) * LOWEST_SHARE))
    steps = math.floor(2 * math.log2(max(total.high / lowest, 1)))
    candidates = sorted({math.floor(lowest * 2 ** (j / 2)) for j in range(steps + 1)} | {total.high})

    def capped(most: int) -> Statistic:
        if total.value is None:
            return replace(total, high=most, max_rows=most)
        return replace(total, high=most, ends=(0, most))

    at = tuple(capped(candidate) for candidate in candidates)
    above = tuple(capped(candidate + 1) for candidate in candidates)
    statistics = tuple(dict.fromkeys((*at, *above)))
    unit = 1.0 if total.value is None else total.value.unit
    return Search(replace(meant, statistics=statistics), tuple(candidates), at, above, unit)


def costs_of(search: Search, users_above: Any, epsilon: Fraction, deviation: float) -> Any:
    """How far each candidate is from having the wanted number of users above it, with the public preference."""
    target = round(deviation / 2 + 2 / float(epsilon))
    first = search.candidates[0]
    prior = [round(2 * POWER * math.log(candidate / first) / float(epsilon)) for candidate in search.candidates]
    return np.abs(users_above - target) + np.array(prior, dtype=np.int64)


def choice_of(epsilon: Fraction) -> ExponentialMechanism:
    """One user moves each number of users above a candidate, and so each cost, by at most 1."""
    return ExponentialMechanism(epsilon=epsilon, sensitivity=1)
