"""A private interval of public length around users' values: the exponential mechanism on bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Epsilon, defensive_copy, parse_positive, short_repr
from userdp.exact.pmf import Pmf
from userdp.mechanisms.base import Mechanism
from userdp.mechanisms.grouped_exponential import GroupedExponentialMechanism, GroupedScores
from userdp.runtime import source_of
from userdp.users.containers import read_numbers

MOST_BINS = 2**62
NOBODY = -1
"""The bin of a user without rows."""


@dataclass(frozen=True)
class ReleasedRange:
    """An interval around a bin that was drawn.

    Attributes
    ----------
    bin : int
        The bin, from 0.
    low, high : Fraction
        The ends of the interval, in the units of the values.
    """

    bin: int
    low: Fraction
    high: Fraction

    @property
    def middle(self) -> Fraction:
        """The middle of the bin, and of the interval."""
        return (self.low + self.high) / 2


class PrivateRange(Mechanism):
    """Find an interval of public length near the middle of users' values, one value a user.

    [-bound, bound] is cut into bins of one width. A bin's cost is the number of users below it or the number above
    it, whichever is larger, and a bin is drawn by the exponential mechanism on costs: near the median bin.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88.
    bound : float, int, Fraction or decimal string
        Values count as the nearest point of [-bound, bound]. Public, > 0.
    width : float, int, Fraction or decimal string
        The width of a bin, > 0; the last bin may be shorter. Public. At most 2**62 bins.
    half_width : float, int, Fraction or decimal string, optional
        The interval is the bin's middle, plus and minus this. Public. By default 3/2 of the width: when all values are
        within tau of some point and the width is 2 tau, an interval around any occupied bin must reach
        2 tau + width / 2 = 3 tau to contain all of them.

    Attributes
    ----------
    bound, width, half_width : Fraction
    n_bins : int
    choice : GroupedExponentialMechanism
        Draws a bin from the groups that `groups_of_bins` and `groups_of_counts` make.

    Notes
    -----
    *Neighbors and sensitivity.* Replacing one user changes no bin's number of users below, or above, by more than 1. So
    one draw is epsilon-DP (delta = 0) for a user. Moreover the log ratios of all bins lie in an interval of length
    epsilon, roundings included (*bounded range*), so that a draw is (epsilon**2 / 8)-zCDP. Proof:
    docs/proofs/winsorized_mean.md. The whole budget is spent on the draw; the interval is post-processing.

    *Values.* NaN counts as 0 and what is out of range as the nearest bin, never with an error. Users without rows count
    neither below nor above.

    *Utility.* For n users with rows, the bin is outside the least interval of bins that contains all values with
    probability at most n_bins * e**(-epsilon n / 4), nearly: such a bin costs n, and a median bin n / 2 at most.

    *Time.* O(n log n) for any number of bins: empty bins between two users are one group. Groups are filled up to the
    public number min(2 n + 1, n_bins). Making groups sorts and is not constant time; drawing from them is.

    References
    ----------
    [LSAKKMS21, Algorithm 6]. The printed half-width 2 tau is too small: docs/errata.md.

    Examples
    --------
    >>> import numpy as np
    >>> search = PrivateRange(epsilon=1, bound=100, width="0.5")
    >>> found = search.sample(np.full(1000, 42.0))
    >>> found.low < 42 < found.high, found.high - found.low
    (True, Fraction(3, 2))
    >>> PrivateRange(epsilon=1, bound=1, width=1).pmf([0.5, 0.5, -0.2]).probabilities.round(3).tolist()
    [0.378, 0.622]
    """

    _cost_from: ClassVar[dict[str, str]] = {"bounded_range": "epsilon"}

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        bound: float | Fraction | str,
        width: float | Fraction | str,
        half_width: float | Fraction | str | None = None,
    ) -> None:
        self.bound = parse_positive(bound, "bound")
        self.width = parse_positive(width, "width")
        self.half_width = 3 * self.width / 2 if half_width is None else parse_positive(half_width, "half_width")
        self.n_bins = max(1, math.ceil(2 * self.bound / self.width))
        if self.n_bins > MOST_BINS:
            raise ValueError(f"width must leave at most 2**62 bins of [-bound, bound]; got {short_repr(width)}")
        for name, value in (("bound", self.bound), ("width", self.width)):
            if not 2.0**-1000 < value < 2.0**1000:
                raise ValueError(
                    f"{name} must be between 2**-1000 and 2**1000; got {short_repr(defensive_copy(value))}"
                )
        self.choice = GroupedExponentialMechanism(epsilon=epsilon, sensitivity=1)
        super().__init__(epsilon=epsilon, bound=bound, width=width, half_width=half_width)

    neighbors: ClassVar[Literal["replace"]] = "replace"

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the loss, and of how far apart its extremes are, roundings included; at most epsilon."""
        return self.choice.certified_epsilon

    def interval(self, chosen: int) -> ReleasedRange:
        """The interval around a bin."""
        middle = -self.bound + self.width * (chosen + Fraction(1, 2))
        return ReleasedRange(int(chosen), middle - self.half_width, middle + self.half_width)

    def steps(self, grid: float | Fraction | str) -> tuple[int, int, int]:
        """The interval on a grid: where that of bin 0 begins, how far the next one's begins, and how long all are.

        Parameters
        ----------
        grid : float, int, Fraction or decimal string
            The distance of grid points, one of which is 0.

        Returns
        -------
        tuple of int
            In grid steps. A value that is rounded to the grid within the interval is one of length + 1 integers, so
            that the sensitivity of a sum of them is exactly the length.

        Examples
        --------
        >>> PrivateRange(epsilon=1, bound=4, width=2, half_width=3).steps(1)
        (-6, 2, 6)
        """
        step = parse_positive(grid, "grid")
        parts = {"half_width": self.half_width, "bound": self.bound, "width / 2": self.width / 2}
        whole = {name: part / step for name, part in parts.items()}
        if beside := [name for name, part in whole.items() if part.denominator != 1]:
            raise ValueError(f"{beside[0]} must be an integer multiple of the grid; got the grid {short_repr(grid)}")
        half, bound, half_bin = (int(part) for part in whole.values())
        return half_bin - bound - half, 2 * half_bin, 2 * half

    def bins(self, values: npt.ArrayLike, present: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """The bin of each user's value, -1 for users without rows.

        Parameters
        ----------
        values : array-like of float with shape (n_users,)
            What is no number counts as 0; what is out of range as the nearest bin.
        present : array-like of bool with shape (n_users,), optional
            False for users without rows, whatever their value says.

        Returns
        -------
        ndarray of int64 with shape (n_users,)
            A user's bin depends on that user's value only.
        """
        numbers = read_numbers(values, "values")
        if not numbers.size:
            raise ValueError("values must be a vector with a number for each user; got none")
        bound, width = float(self.bound), float(self.width)
        numbers = np.clip(np.where(np.isnan(numbers), 0.0, numbers), -bound, bound)
        # Below 2**63 as floats, below n_bins as integers.
        places = np.clip(np.floor((numbers + bound) / width), 0.0, float(MOST_BINS)).astype(np.int64)
        places = np.minimum(places, self.n_bins - 1)
        if present is None:
            return places
        there = np.asarray(present)
        if there.dtype != np.bool_ or there.shape != numbers.shape:
            raise ValueError(f"present must be {len(numbers)} bools, one for each value; got {short_repr(there.shape)}")
        return np.where(there, places, NOBODY)

    def groups_of_bins(self, bins: npt.ArrayLike) -> GroupedScores:
        """The costs of all bins, in groups of one cost, from the bin of each user (-1 for users without rows)."""
        places = np.asarray(bins)
        if places.ndim != 1 or not places.size or not np.issubdtype(places.dtype, np.integer):
            raise TypeError(f"bins must be a vector of integers, one for each user; got a {type(bins).__name__}")
        if places.min() < NOBODY or places.max() >= self.n_bins:
            raise ValueError(f"bins must be from 0 to {self.n_bins - 1}, or -1 for a user without rows")
        occupied, counts = np.unique(places[places != NOBODY], return_counts=True)
        return self.groups_of_occupied(occupied, counts, len(places))

    def groups_of_occupied(
        self, occupied: npt.NDArray[np.integer[Any]], counts: npt.NDArray[np.integer[Any]], n_users: int
    ) -> GroupedScores:
        """The same from the bins that somebody is in, ascending, and how many users are in each.

        Parameters
        ----------
        occupied, counts : ndarray of integers with shape (r,)
        n_users : int
            Public: all users, those without rows included.
        """
        occupied, counts = occupied.astype(np.int64), counts.astype(np.int64)
        until = np.cumsum(counts)
        before, total = until - counts, int(until[-1]) if len(until) else 0
        # Each occupied bin, and the empty ones that follow it; first of all the empty ones before the first.
        starts = np.concatenate(([0], np.stack((occupied, occupied + 1), axis=1).ravel()))
        own, gaps = np.maximum(before, total - until), np.maximum(until, total - until)
        scores = np.concatenate(([total], np.stack((own, gaps), axis=1).ravel()))
        # A public number of groups: the empty ones come last, wherever they were.
        lengths = np.diff(starts, append=self.n_bins)
        real = lengths > 0
        public = min(2 * n_users + 1, self.n_bins)
        padded_starts = np.full(public, self.n_bins, dtype=np.uint64)
        padded_scores = np.zeros(public, dtype=np.int64)
        number = int(real.sum())
        padded_starts[:number], padded_scores[:number] = starts[real], scores[real]
        return GroupedScores(padded_starts, padded_scores, self.n_bins - 1)

    def groups_of_counts(self, counts: npt.ArrayLike) -> GroupedScores:
        """The costs of all bins, each a group of its own, from the number of users in each bin."""
        numbers = np.asarray(counts)
        if numbers.shape != (self.n_bins,) or not np.issubdtype(numbers.dtype, np.integer):
            raise TypeError(f"counts must be a vector of {self.n_bins} integers, one for each bin")
        return GroupedScores(np.arange(self.n_bins, dtype=np.uint64), bin_costs(numbers), self.n_bins - 1)

    def sample(
        self, values: npt.ArrayLike, *, present: npt.ArrayLike | None = None, random_state: int | None = None
    ) -> ReleasedRange:
        """Draw an interval around users' values.

        Parameters
        ----------
        values, present
            As for `bins`.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draws reproducible,
            for tests only, and warns.
        """
        return self._draw(source_of(random_state), self.groups_of_bins(self.bins(values, present)))

    def sample_bins(self, bins: npt.ArrayLike, *, random_state: int | None = None) -> ReleasedRange:
        """Draw an interval from each user's bin; -1 is a user without rows."""
        return self._draw(source_of(random_state), self.groups_of_bins(bins))

    def sample_counts(self, counts: npt.ArrayLike, *, random_state: int | None = None) -> ReleasedRange:
        """Draw an interval from the number of users in each bin."""
        return self._draw(source_of(random_state), self.groups_of_counts(counts))

    def _draw(self, source: _core.Source, groups: GroupedScores) -> ReleasedRange:
        return self.interval(self.choice._draw(source, groups))

    def pmf(self, values: npt.ArrayLike, *, present: npt.ArrayLike | None = None) -> Pmf:
        """The distribution of the bin that is drawn, exactly. **Not private**: for audits.

        Raises
        ------
        BudgetError
            For more than 2**22 bins; see `group_probabilities`.
        """
        return self.pmf_of_bins(self.bins(values, present))

    def pmf_of_bins(self, bins: npt.ArrayLike) -> Pmf:
        """The same from each user's bin; -1 is a user without rows."""
        return self.choice.pmf(self.groups_of_bins(bins))

    def group_probabilities(self, bins: npt.ArrayLike) -> list[tuple[int, int, int, Fraction]]:
        """First bin, last bin, cost and probability of each group of bins. **Not private**: for audits."""
        groups = self.groups_of_bins(bins)
        probabilities = self.choice.group_probabilities(groups)
        # Groups without a bin are the last ones.
        return [(*triple, mass) for triple, mass in zip(groups, probabilities, strict=False)]


def bin_costs(counts: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The larger of the numbers of users below and above each bin, from the number in each, along the last axis."""
    until = np.cumsum(counts, axis=-1, dtype=np.int64)
    return np.maximum(until - counts, until[..., -1:] - until)
