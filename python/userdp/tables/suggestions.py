"""Bounds that are chosen privately: how many rows of a user should count, or to what a user's total should be clamped.

A bound that is too low leaves out what users give beyond it; one that is too high costs noise in proportion. Each user
is between two candidates, so how many users are between each two is a histogram in which a user is in one bin. It is
released with noise, and everything else is done with released numbers: how much each candidate would leave out, of
users that are there beyond doubt, and how much noise it would cost (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.accounting import PrivacyCost
from userdp.exact.epsilon import rational_below
from userdp.exact.numbers import Neighbors
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.base import release_from
from userdp.mechanisms.discrete_gaussian import SMOOTHED_WITHIN, SMOOTHING
from userdp.tables.aggregates import CountRows, Sum
from userdp.tables.compiled import Compiled, Statistic, compiled
from userdp.tables.noise import Budget, Noise, cost_as_range, epsilon_within, laplace_noise, nearest, rounded_up
from userdp.tables.queries import Query
from userdp.tables.rows import Sums
from userdp.tables.schema import ColumnType

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

DOUBT = 3.0
"""Users are taken to be there where noise alone would show as many with a probability of e**-3, one in twenty..."""
POWER = 3
"""...times (tau / tau')**3 for users at tau who would raise a bound of tau': the squared error grows as tau**2."""
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
    """The candidates of a choice, and what is looked at for each: the users above it.

    They are the sum of min(x, tau + 1) - min(x, tau) over users. Of totals each user's is taken, so that nothing is
    near 64 bits. Of rows the two sums are: they are at most the number of all rows.
    """

    query: Compiled
    candidates: tuple[int, ...]
    above: tuple[Statistic, ...]
    at: tuple[Statistic, ...]  # of rows: what is taken off
    unit: float

    def users_above(self, sums: Sums) -> Integers:
        """How many users have more than each candidate."""
        above, at = (np.array([int(sums.columns[one][0]) for one in kind]) for kind in (self.above, self.at))
        return (above - at if self.at else above).astype(np.int64)

    def users_between(self, sums: Sums) -> Integers:
        """How many users have more than each candidate and not more than the next: each user is in one bin at most.

        Users above the last candidate are in the last bin, as a higher bound is not considered.
        """
        above = self.users_above(sums)
        above[-1] = 0
        return -np.diff(above)

    @property
    def bins(self) -> int:
        """Between candidates."""
        return len(self.candidates) - 1


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
    lowest = min(lowest, total.high)
    steps = math.floor(2 * math.log2(max(total.high / lowest, 1)))
    candidates = sorted({math.floor(lowest * 2 ** (j / 2)) for j in range(steps + 1)} | {total.high})

    if total.value is None:
        at = tuple(replace(total, high=most, max_rows=most) for most in candidates)
        above = tuple(replace(total, high=most + 1, max_rows=most + 1) for most in candidates)
    else:
        at, above = (), tuple(replace(total, high=1, ends=(most, most + 1), shift=most) for most in candidates)
    statistics = tuple(dict.fromkeys((*at, *above)))
    unit = 1.0 if total.value is None else total.value.unit
    return Search(replace(meant, statistics=statistics), tuple(candidates), above, at, unit)


@dataclass(frozen=True)
class BinNoise:
    """The noise of the numbers of users between candidates, in steps to which they are rounded before."""

    noise: Noise
    step: int
    cost: PrivacyCost

    def released(self, users: Integers, source: Any) -> Integers:
        """The numbers with noise."""
        whole = np.ascontiguousarray(nearest(users, self.step), dtype=np.int64)
        found: Integers = release_from(self.noise, source, whole) * self.step
        return found

    def reach(self, bins: Floats, doubt: Floats) -> Floats:
        """What the noise of so many bins together is above with a probability of about e**-doubt."""
        if isinstance(self.noise, DiscreteGaussian):
            wide: Floats = np.sqrt(2 * doubt * bins * float(self.noise.sigma_squared))
            return wide
        found: Floats = np.maximum(np.sqrt(4 * doubt * bins), doubt) * float(self.noise.scale) * self.step
        return found


def noise_of(search: Search, neighbors: Neighbors, budget: Budget) -> BinNoise:
    """Noise within a budget: a user who comes or goes moves one bin by 1, one who is replaced two bins."""
    made = _noise(search, 1 if neighbors == "add-remove" else 2, budget)
    return replace(made, cost=replace(made.cost, neighbors=neighbors))


def _noise(search: Search, moved: int, budget: Budget) -> BinNoise:
    if budget.epsilon is not None:
        epsilon = rational_below(budget.epsilon)
        return _laplace(search, moved, epsilon, PrivacyCost(epsilon))
    gaussian = _gaussian(search, moved, budget)
    if budget.distance is None or gaussian.cost.distance <= budget.distance:
        return gaussian
    # As of a release: what has no distance.
    epsilon = epsilon_within(budget)
    return _laplace(search, moved, epsilon, PrivacyCost(epsilon) if budget.mu2 is None else cost_as_range(epsilon))


def _laplace(search: Search, moved: int, epsilon: Fraction, cost: PrivacyCost) -> BinNoise:
    noise, step = laplace_noise(epsilon, moved, search.bins)
    return BinNoise(noise, step, cost)


def _gaussian(search: Search, moved: int, budget: Budget) -> BinNoise:
    if budget.mu2 is None:
        assert budget.rho is not None
        noise = DiscreteGaussian(sigma_squared=rounded_up(Fraction(moved) / (2 * budget.rho)))
        cost = PrivacyCost(rho=moved / (2 * noise.sigma_squared), distance=search.bins * noise.distance)
    else:
        noise = DiscreteGaussian(sigma_squared=rounded_up(moved / budget.mu2) + SMOOTHING)
        far = search.bins * (noise.distance + SMOOTHED_WITHIN)
        cost = PrivacyCost(mu2=moved / (noise.sigma_squared - SMOOTHING), distance=far)
    return BinNoise(noise, 1, cost)


def bound_of(search: Search, released: Integers, noise: BinNoise, deviation: float) -> int:
    """The place of the candidate with the least error that can be told from released numbers.

    With the bound tau a sum has noise of `deviation` times tau, and it leaves out the integral over t > tau of how many
    users have more than t. That number is taken to be as small as noise leaves room for: of all runs of bins above t
    the one with most users beyond doubt.
    """
    places = np.arange(len(search.candidates))
    bounds = np.array(search.candidates, dtype=np.float64)
    upto = np.concatenate([[0.0], np.cumsum(released.astype(np.float64))])
    runs = upto[None, :] - upto[:, None]  # [i, k]: users above candidate i and not above candidate k
    lengths = (places[None, :] - places[:, None]).astype(np.float64)
    steps = np.diff(bounds, append=bounds[-1])
    errors = []
    for place in places:
        doubt = DOUBT + POWER * np.log(bounds[place:] / bounds[place])
        some = lengths[place:, place:]
        beyond = runs[place:, place:] - noise.reach(np.maximum(some, 0.0), doubt[:, None])
        sure = np.maximum(np.where(some > 0, beyond, 0.0).max(axis=1), 0.0)
        # Users above a candidate are above all lower ones.
        sure = np.maximum.accumulate(sure[::-1])[::-1]
        left_out = float((sure * steps[place:]).sum())
        errors.append(math.hypot(left_out, deviation * bounds[place]))
    return int(np.argmin(errors))
