"""(epsilon, delta)-DP selection from any universe: noise for the items that somebody has, and a threshold."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms.finite import BOTTOM, Bottom
from userdp.exact.epsilon import as_epsilon, float_above, level_root
from userdp.exact.numbers import Delta, Epsilon, Neighbors
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.mode import Counts, PrivateMode, least_from_which_on, lower_tail, planned
from userdp.mechanisms.truncated_discrete_laplace import TruncatedDiscreteLaplace, noise_parameters
from userdp.users.containers import Item, item_of

PMF_WORK = 2**28
"""The pmf is refused when it takes about so many products of 128-bit numbers or more."""
BLOCK = 2**20
"""So many noises are drawn at a time."""


class ApproximatePrivateMode(PrivateMode["Item", "Item | Bottom"]):
    """Choose the item of most users, from a universe of any size, with (epsilon, delta)-DP.

    Each item that somebody has gets the value count + X - t - 1, with fresh truncated discrete Laplace noise X on
    -t, ..., t. The item of the largest value is chosen, the first one of several in the order of items, if its value is
    1 or more, and `userdp.BOTTOM` otherwise. So an item that a single user has is never chosen.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, positive. A float is the decimal it prints as.
    delta : float, int, Fraction or decimal string
        A probability strictly between 0 and 1.
    neighbors : {"replace", "add-remove"}
        What the promise is for: replacing one user's item, where the number n of users is public; or adding or
        removing one user, where n is private. "replace" needs about twice as much noise.
    default : int, str or None
        What anything that is not an item counts as: a fixed public item, or None for nothing.

    Raises
    ------
    BudgetError
        For a half-width above 2**20.

    Notes
    -----
    *Items* are told apart by the one text of each (docs/reading.md), which numbers, texts, bytes that are texts, dates
    and times have: 5, 5.0, "5" and b"5" are the item 5, an int, and all that are no integers are items as that text.
    Their order, which decides ties, is integers, then texts. Everything else counts as `default`. Whole numbers beyond
    2**53 are told apart by their doubles, unless their type is public (`exact_integers`).

    *Privacy.* Adding a user to an item changes the value of that item only, and by 1 before the noise, which is
    certified at (epsilon, delta) for that; an item that nobody had stays at 0 or less. Replacing a user changes two
    items, each at (epsilon / 2, delta / 2), where epsilon / 2 is exact or rounded down. All of the budget is spent on
    the one release. Proofs: docs/proofs/selection.md.

    *Accuracy.* Always, not just with high probability: if an item is chosen, no other has more than 2 t more users; and
    BOTTOM is only returned when no item has more than 2 t + 1 users.

    *Time.* About n log n steps, however large the universe is. With "replace", n noises are drawn however many distinct
    items there are; with "add-remove" the time tells about n, which is private there: hide it where that matters.
    Counting and sorting in Python are not constant time.

    References
    ----------
    [GKM21, Lemma 11] and [GKM21, Algorithm 2]; Bun, Nissim, Stemmer (ITCS 2016). [GKM21, Definition 6] and [GKM21,
    Theorem 25].

    Examples
    --------
    >>> selection = ApproximatePrivateMode(epsilon=1, delta="1e-6")
    >>> selection.half_width
    27
    >>> selection.release(["tea"] * 90 + ["milk"] * 10)
    'tea'
    >>> selection.release(["tea", "milk", None])
    BOTTOM
    >>> ApproximatePrivateMode(epsilon=1, delta="1e-6", neighbors="add-remove").half_width
    14
    """

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon", "delta": "delta"}

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta,
        neighbors: Neighbors = "replace",
        default: Item | None = None,
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, neighbors=neighbors, default=default)
        self._level, probability = noise_parameters(epsilon, delta)
        # Between neighbors so many items change their counts, by 1 each.
        self._changed_items = 2 if neighbors == "replace" else 1
        self._noise = self._noise_of(probability)

    def _noise_of(self, delta: Fraction) -> TruncatedDiscreteLaplace:
        """The noise of one item, with its table."""
        level = level_root(self._level, self._changed_items)
        noise = TruncatedDiscreteLaplace(
            epsilon=as_epsilon(level), delta=delta / self._changed_items, half_width="tight"
        )
        try:
            noise.half_width  # noqa: B018  # builds the table
        except BudgetError:
            raise
        except ValueError as error:
            halved = "; neighbors='replace' halves both" if self._changed_items == 2 else ""
            raise ValueError(f"there is no noise for these epsilon and delta{halved}: {error}") from None
        return noise

    @property
    def half_width(self) -> int:
        """The noise takes the values -t, ..., t, and this is t."""
        return self._noise.half_width

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of epsilon from the table that is drawn from; at most epsilon rounded up to a float."""
        return min(self._changed_items * self._noise.certified_epsilon, float_above(self._level))

    @property
    def certified_delta(self) -> Fraction:
        """A proved bound of delta at `certified_epsilon`, exactly: the probability that a change could show."""
        return 1 - (1 - self._noise.certified_delta) ** self._changed_items

    @property
    def accuracy(self) -> int:
        """2 t + 1: the outcome has at most so many users fewer than the item of most users, always (BOTTOM has 0)."""
        return 2 * self.half_width + 1

    def _accepted(self, item: object) -> Item | None:
        return item_of(item)

    def _draw(self, source: _core.Source, counts: Counts) -> Item | Bottom:
        entries = self._present(counts)
        number = sum(counts.values()) if self.neighbors == "replace" else len(entries)
        blocks = [
            self._noise._draw_many(source, (min(BLOCK, number - start),)) for start in range(0, max(number, 1), BLOCK)
        ]
        return self._choose(entries, np.concatenate(blocks)[: len(entries)])

    def _choose(self, entries: Sequence[tuple[Item, int]], noises: npt.ArrayLike) -> Item | Bottom:
        """The outcome for the noises 0, ..., 2 t of the items in order."""
        if not entries:
            return BOTTOM
        values = np.array([count for _, count in entries]) + np.asarray(noises, dtype=np.int64)
        best = int(np.argmax(values))  # the first one of several
        return entries[best][0] if values[best] - 2 * self.half_width - 1 >= 1 else BOTTOM

    def pmf(self, counts: Counts) -> Pmf:
        """The distribution of the outcome of a release, exactly. Not private: for audits.

        Parameters
        ----------
        counts : mapping
            How many users have each item, as from `tally`; what is under None counts for nothing.

        Returns
        -------
        Pmf
            Outputs are the items that somebody has, in order, and BOTTOM last.

        Raises
        ------
        BudgetError
            For very many items that may win.

        Examples
        --------
        >>> selection = ApproximatePrivateMode(epsilon=1, delta="0.1", neighbors="add-remove")
        >>> selection.pmf({"tea": 4, "milk": 3}).probabilities.round(3).tolist()
        [0.2, 0.612, 0.188]
        """
        entries = self._present(counts)
        outputs = (*(item for item, _ in entries), BOTTOM)
        highest = max((count for _, count in entries), default=0)
        # The others are below the item of most users, whatever the noise is.
        rivals = [(index, count) for index, (_, count) in enumerate(entries) if count >= highest - 2 * self.half_width]
        work = (2 * self.half_width + 1) * len(rivals) ** 2
        if work > PMF_WORK:
            raise BudgetError(
                f"the pmf of {len(rivals)} items that may win takes about {work:.3g} steps, above {PMF_WORK:.3g}; "
                "audit fewer items or a larger epsilon or delta"
            )
        *winning, nobody = self._weights([count for _, count in rivals])
        weights = [0] * len(entries)
        for (index, _), weight in zip(rivals, winning, strict=True):
            weights[index] = weight
        return Pmf(outputs, (*weights, nobody))

    def _weights(self, counts: list[int]) -> list[int]:
        """How many of the 2**(128 k) values of the random bits let each of k items win, and none at last."""
        numerators = self._noise.pmf().weights
        cumulative = [0, *itertools.accumulate(numerators)]
        lowest = 2 * self.half_width + 1

        def at_most(count: int, value: int) -> int:
            """How many of the 2**128 lead to at most this value."""
            return cumulative[min(max(value - count + lowest + 1, 0), len(numerators))]

        weights = [0] * len(counts)
        for value in range(max(1, max(counts, default=0) - lowest), max(counts, default=0)):
            # An item wins at this value if those before it are below, and those after it not above.
            after = [at_most(count, value) for count in counts]
            before = [at_most(count, value - 1) for count in counts]
            suffixes = list(itertools.accumulate(reversed(after[1:]), operator.mul, initial=1))
            prefix = 1
            for index, suffix in enumerate(reversed(suffixes)):
                weights[index] += prefix * (after[index] - before[index]) * suffix
                prefix *= before[index]
        return [*weights, math.prod(at_most(count, 0) for count in counts)]

    def users_needed(self, *, agreement: float | Fraction | str, beta: Delta) -> int:
        """The least number of users from which on the common item surely wins, but for probability beta / 3.

        Parameters
        ----------
        agreement : float, int, Fraction or decimal string
            The probability p in (1/2, 1] with which each user, independently, has the common item.
        beta : float, int, Fraction or decimal string
            In (0, 1): the probability with which Algorithm 2 may fail, a third of it here.

        Returns
        -------
        int
            The least n such that for n and all larger numbers of users Pr[Bin(n, p) <= max(floor((n + 2 t) / 2), 2 t +
            1)] <= beta / 3.

        Raises
        ------
        BudgetError
            When the result would be above 2**40.

        Notes
        -----
        K users with the common item make it win, whatever the others have and the noise is, when 2 K > n + 2 t and
        K >= 2 t + 2. The probability is not monotone in n, but it is along even and along odd n: see
        docs/proofs/selection.md. It is computed in floats and moved up by one part in 10**9. For planning, from
        public numbers: with neighbors="add-remove" never compare the result with the number of users there are.

        Examples
        --------
        >>> ApproximatePrivateMode(epsilon=1, delta="1e-6").users_needed(agreement="0.9", beta="0.1")
        81
        """
        others, failure = planned(agreement, beta)
        t = self.half_width
        # From 2 t + 2 users on floor((n + 2 t) / 2) is the larger one; fewer users never make the common item win.
        return least_from_which_on(lambda n: lower_tail(n, others, n // 2 + t) <= failure, start=2 * t + 2)
