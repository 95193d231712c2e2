"""Finding a short interval in each column, on a public grid, with `PrivateRange`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from userdp.means.problem import Floats, MeanProblem
from userdp.mechanisms import GroupedScores, PrivateRange
from userdp.mechanisms.composed import Sampler
from userdp.runtime import progress_bar

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

MOST_COUNTS = 2**22
"""The most numbers of users in bins that are held at once, over all columns."""
FRACTION_BITS = 30


@dataclass(frozen=True)
class Lattice:
    """Bins and intervals of a column in steps of a grid: multiples of them by construction."""

    grid: float  # the step, a power of two
    half_bin: int  # half the width of a bin, in steps
    half: int  # half the length of an interval, in steps
    n_bins: int  # bins from -n_bins * half_bin to as much

    @classmethod
    def of(cls, bound: float, width: float, reach: float, resolution: int) -> Lattice:
        """Bins of about this width that cover [-bound, bound]; intervals reach at least as far from the whole bin."""
        # An interval has from `resolution` to about twice as many steps.
        grid = power_of_two_below((2 * reach + width) / resolution)
        half_bin = max(1, round(width / (2 * grid)))
        return cls(grid, half_bin, half_bin + math.ceil(reach / grid), max(1, math.ceil(bound / (half_bin * grid))))

    @property
    def steps(self) -> int:
        """The length of an interval in steps."""
        return 2 * self.half

    @property
    def length(self) -> float:
        """The length of an interval."""
        return self.steps * self.grid

    @property
    def bound(self) -> float:
        """Where the bins end."""
        return self.n_bins * self.half_bin * self.grid


class RangeSearch:
    """An interval in each of several columns, each found with an epsilon of its own. One bin needs no search."""

    def __init__(self, lattice: Lattice, columns: int, epsilon: Fraction) -> None:
        step = Fraction(lattice.grid)
        self.lattice = lattice
        self.columns = columns
        self.range = PrivateRange(
            epsilon=epsilon or 1,
            bound=lattice.n_bins * lattice.half_bin * step,
            width=2 * lattice.half_bin * step,
            half_width=lattice.half * step,
        )
        self._first, self._apart, length = self.range.steps(step)
        if length != lattice.steps or (not epsilon and lattice.n_bins > 1):
            raise AssertionError("the sensitivity must be the length of the interval, and a search needs an epsilon")

    def drawn(self, vectors: UserVectors, draw: Sampler) -> tuple[int, ...]:
        """A bin for each column."""
        n_bins, bound = self.lattice.n_bins, self.lattice.bound
        if n_bins == 1:
            return (0,) * self.columns
        bins: list[int] = []
        with progress_bar(None, "ranges") as report:
            for done, column in enumerate(self._groups(vectors, n_bins, bound)):
                bins.append(draw(self.range.choice, column))
                report(done + 1, self.columns)
        return tuple(bins)

    def _groups(self, vectors: UserVectors, n_bins: int, bound: float) -> Iterator[GroupedScores]:
        """The costs of all bins, column by column."""
        if self.columns * n_bins <= MOST_COUNTS:
            yield from map(self.range.groups_of_counts, vectors.bin_counts(n_bins, bound))
        else:
            for occupied, counts in vectors.occupied_bins(n_bins, bound):
                yield self.range.groups_of_occupied(occupied, counts, vectors.n_users)

    def lows(self, bins: tuple[int, ...]) -> Floats:
        """Where the intervals around bins begin."""
        return (self._first + self._apart * np.array(bins, dtype=np.float64)) * self.lattice.grid

    def middles(self, bins: tuple[int, ...]) -> Floats:
        """The middles of bins."""
        return self.lows(bins) + self.lattice.half * self.lattice.grid


def missing(lattice: Lattice, columns: int, epsilon: float, n_users: int) -> float:
    """A bound of how likely it is that in some column the bin is outside of those between users' values."""
    # Such a bin costs n and a median bin n / 2 at most, so that it is e**(-epsilon n / 4) times as likely.
    return 0.0 if lattice.n_bins == 1 else columns * lattice.n_bins * math.exp(-epsilon * n_users / 4)


def range_epsilon(lattice: Lattice, columns: int, n_users: int, beta: float) -> float:
    """The epsilon at which `missing` is beta."""
    return 4 * math.log(columns * lattice.n_bins / beta) / n_users


def too_few_users(name: str, problem: MeanProblem, search: RangeSearch, most: float) -> list[str]:
    """A warning when even the largest epsilon of a range leaves it unlikely to be found; from public numbers."""
    lattice, columns = search.lattice, search.columns
    if lattice.n_bins == 1 or range_epsilon(lattice, columns, problem.n_users, problem.beta) <= most:
        return []
    needed = math.ceil(range_epsilon(lattice, columns, 1, problem.beta) / most)
    return [
        f"{problem.n_users} users are too few for method={name!r} to find the range of users' values at this epsilon:"
        f" {needed} are needed"
    ]


def power_of_two_below(x: float) -> float:
    """The largest power of two that is not above x > 0."""
    return math.ldexp(0.5, math.frexp(x)[1])


def fraction_below(x: float | Fraction) -> Fraction:
    """A number of few bits that is not above x > 0, and near."""
    exact = Fraction(x)
    places = FRACTION_BITS - (exact.numerator.bit_length() - exact.denominator.bit_length())
    unit = Fraction(2) ** -places
    return math.floor(exact / unit) * unit
