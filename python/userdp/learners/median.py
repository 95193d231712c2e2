"""A point that splits users' samples, chosen privately: PrivateMedian of Li, Wang, Ye (2024), [LWY24, Lemma 5.1]."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.concepts.points import points_of, read_domain_size
from userdp.estimators.plan import check_listed
from userdp.exact.numbers import Epsilon, check_count, is_integer, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.learners.tolerance import ComposedMechanism, Counts, separation
from userdp.mechanisms import GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.users.containers import read_point_column
from userdp.users.table import LARGEST_M, check_enrolled, encode_users, first_rows

MedianScores: TypeAlias = Callable[[int, int, int], tuple[npt.NDArray[np.uint64], Counts]]
"""Starts and scores of groups for low, high and s."""

LISTED_POINTS = 2**12
"""The most points whose exact probabilities are listed."""


def tolerance_of_median(m: int, mass: float) -> int:
    """Return how many samples of a user beside a median are no offence: what tells mass / 2 from 2 mass / 3 best."""
    t, _, _ = separation(m, mass / 2, 2 * mass / 3)
    return t


def draw_median(
    draw: Sampler, mechanism: GroupedExponentialMechanism, scores: MedianScores, low: int, high: int, s: int
) -> int:
    """Draw a median as a part of a program; see `PrivateMedian`."""
    starts, offences = scores(low, high, s)
    return int(draw(mechanism, GroupedScores(starts, offences, high)))


class PrivateMedian(ComposedMechanism):
    """Choose a point u such that few users have many samples on either side of it: epsilon-DP.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88.
    m : int
        The most rows of a user that count, public; the first m do.
    domain_size : int
        N, at most 2**64 - 1; public.
    low, high : int
        The median is of the samples in low..high and is one of these points, 0 <= low <= high <= N; by default 0 and N.
    mass : float, int, Fraction or decimal string
        A guess, in (0, 1], of how large a part of all samples is in low..high. It matters for utility only.
    enrolled : sequence, optional
        The public list of all users, in which those without rows count too: they favor no point. By default the users
        who have rows.
    exact_integers : bool
        True promises that the type of the points is public. Otherwise integers are read as doubles, but in columns of
        Arrow and polars.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of all that one user gave. *Proof.* The score of u is
    max(L(u), R(u)), with L(u) the number of users who have more than s samples in low..u-1, R(u) of those who have more
    than s in u+1..high, and s public: what tells Bin(m, mass / 2) from Bin(m, 2 mass / 3) best. Replacing one user
    changes L(u) and R(u), and so their maximum, by at most 1. u is drawn by `GroupedExponentialMechanism` with all of
    epsilon, over all points of low..high.

    Whether `mass` is right is never checked: that would be a look at the data that nothing pays for.

    References
    ----------
    Li, Wang, Ye, "Improved Bounds for Pure Private Agnostic Learning" (ICML 2024): [LWY24, Lemma 5.1].

    Examples
    --------
    >>> import numpy as np
    >>> points, users = np.repeat([10, 20, 30], 400), np.arange(1200) // 2
    >>> 10 <= PrivateMedian(epsilon=1, m=2, domain_size=2**20).sample(points, users) <= 30
    True
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        m: int,
        domain_size: int,
        low: int = 0,
        high: int | None = None,
        mass: Any = 1,
        enrolled: Iterable[Any] | None = None,
        exact_integers: bool = False,
    ) -> None:
        size, self.m = read_domain_size(domain_size), check_count(m, "m", most=LARGEST_M)
        last = size if high is None else high
        if not is_integer(low) or not is_integer(last):
            raise TypeError(f"low and high must be ints; got {short_repr(low)} and {short_repr(last)}")
        if not 0 <= low <= last <= size:
            raise ValueError(
                f"0 <= low <= high <= domain_size is needed; got low = {short_repr(low)} and high = {short_repr(last)}"
            )
        part = float(parse_delta(mass, "mass"))
        if not part:
            raise ValueError(f"mass must be above 0; got {short_repr(mass)}")
        self.domain_size, self.low, self.high = size, int(low), int(last)
        check_enrolled(enrolled, "enrolled")
        # A list that its owner changes later would change who is counted.
        self.enrolled, self.exact_integers = copy.deepcopy(enrolled), exact_integers
        super().__init__(
            epsilon=epsilon,
            m=m,
            domain_size=domain_size,
            low=low,
            high=high,
            mass=mass,
            enrolled=self.enrolled,
            exact_integers=exact_integers,
        )
        self._s = tolerance_of_median(self.m, part)
        self._mechanism = GroupedExponentialMechanism(epsilon=epsilon, sensitivity=1)

    def sample(self, points: npt.ArrayLike, groups: npt.ArrayLike, random_state: int | None = None) -> int:
        """Draw the median.

        Parameters
        ----------
        points : array-like of numbers with shape (rows,)
            Private. A number x counts as ceil(x), clamped to 1, ..., domain_size; NaN and what is no number count as 1.
            Whole numbers beyond 2^53 are exact in columns of Arrow and polars, and with `exact_integers`.
        groups : array-like with shape (rows,)
            User ids: texts, bytes, numbers, bools, dates, times, UUIDs, or tuples of these. Rows without one are left
            out.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible, for
            tests only, and warns.

        Returns
        -------
        int
            u in low..high. With enough users, and at most a part `mass` of the samples in low..high, at most a part
            2 mass / 3 is in low..u-1, and in u+1..high, with high probability.
        """
        return int(self._sample(random_state, points, groups))

    def pmf(self, points: npt.ArrayLike, groups: npt.ArrayLike) -> Pmf:
        """Return the exact distribution of `sample` over low..high. **Not private**: for audits.

        Raises
        ------
        BudgetError
            For more than 2**12 points in low..high.
        """
        return self._pmf(points, groups)

    def _program(self, points: Any, groups: Any) -> tuple[AdaptiveMechanism, Callable[[], Sequence[int]]]:
        from userdp import _core

        numbers = read_point_column(points, "points", self.domain_size, exact_integers=self.exact_integers)
        users = encode_users(groups, len(numbers), self.enrolled)
        rows = first_rows(users, self.m)
        counted, codes = points_of(users.of(numbers)[rows], self.domain_size), users.codes[rows]
        labels = np.zeros(len(counted), np.uint8)
        sweep = _core.ThresholdSweep(counted, labels, codes, users.n_users, self.m, self.domain_size)
        scores = sweep.median_groups
        return lambda draw: draw_median(draw, self._mechanism, scores, self.low, self.high, self._s), self._outcomes

    def _outcomes(self) -> Sequence[int]:
        check_listed(self.high - self.low + 1, "narrow low..high", LISTED_POINTS)
        return range(self.low, self.high + 1)
