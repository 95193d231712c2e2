"""Private choice of the item that most users have: the base, and the pure mechanism on a public range of integers.

Everybody has one item. `PurePrivateMode` is the exponential mechanism on counts, in time independent of the range;
`ApproximatePrivateMode`, in the next module, takes items of any universe. Both are made for one of two neighbor
relations, replacing a user or adding and removing one, and are calibrated for it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Set
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    Neighbors,
    check_count,
    check_neighbors,
    is_integer,
    is_listed,
    least,
    parse_delta,
    parse_positive,
    short_repr,
)
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import PMF_CANDIDATES, Mechanism
from userdp.mechanisms.grouped_exponential import GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.permute_and_flip import MOST_CANDIDATES, PermuteAndFlip
from userdp.runtime import source_of
from userdp.users.containers import Item, item_of, read_items

if TYPE_CHECKING:
    from userdp.accounting.cost import PrivacyCost

SelectionMechanism: TypeAlias = Literal["exponential", "permute-and-flip"]
Counts: TypeAlias = "Mapping[Any, int]"
"""How many users have each item; `None` for those whose item counts for nothing."""
ItemT = TypeVar("ItemT", bound="int | str")
Outcome = TypeVar("Outcome")


MOST_COUNT = 2**62
"""Of an item: scores have 64 bits."""


class PrivateMode(Mechanism, Generic[ItemT, Outcome]):
    """Choose an item that many users have, from keyword arguments that say everything."""

    def __init__(self, *, neighbors: Neighbors, default: Item | None, **arguments: Any) -> None:
        check_neighbors(neighbors)
        self._neighbors = neighbors
        self._default = None if default is None else self._accepted(default)
        if default is not None and self._default is None:
            raise ValueError(f"default must be None or an item of this selection; got {short_repr(default)}")
        super().__init__(**arguments, neighbors=neighbors, default=self._default)

    @property
    def neighbors(self) -> Neighbors:
        """What the promise is for: "replace" or "add-remove"."""
        return self._neighbors

    @property
    def default(self) -> ItemT | None:
        """What anything that is no item counts as; None: it counts for nothing."""
        return self._default

    _largest: int | None = None
    """The largest integer that is an item, if there is one."""

    @abstractmethod
    def _accepted(self, item: object) -> ItemT | None:
        """The item in its one form, or None for what is no item of this selection; never raises."""

    @abstractmethod
    def _draw(self, source: _core.Source, counts: Counts) -> Outcome:
        """One draw from ``pmf(counts)``."""

    @abstractmethod
    def pmf(self, counts: Counts) -> Pmf:
        """The distribution of a draw."""

    def tally(self, items: Any, *, exact_integers: bool = False) -> Counter[ItemT | None]:
        """Count the items, as `release` does. Not private: for adaptive mechanisms, and for audits.

        Parameters
        ----------
        items, exact_integers
            As for `release`.

        Returns
        -------
        Counter
            How many users have each item, in the items' one form. Users whose item counts for nothing are counted
            under None, so that the total is the number of users.
        """
        if isinstance(items, (Mapping, Set)) or not is_listed(items):
            # Such as one item in place of everybody's; nothing private is said of it.
            raise TypeError(f"items must be a sequence with one item for each user; got a {type(items).__name__}")
        counts: Counter[ItemT | None] = Counter()
        for item, count in read_items(items, "items", self._largest, exact_integers=exact_integers):
            if count:
                counts[self._item(item)] += count
        return counts

    def _item(self, item: object) -> ItemT | None:
        accepted = self._accepted(item)
        return self._default if accepted is None else accepted

    def _present(self, counts: Counts) -> list[tuple[ItemT, int]]:
        """The items that somebody has, each with its count: integers first, then texts, each in order."""
        if not isinstance(counts, Mapping):
            raise TypeError(f"counts must be a mapping from items to counts; got a {type(counts).__name__}")
        found: dict[type, Counter[ItemT]] = {int: Counter(), str: Counter()}
        for key, count in counts.items():
            if type(count) is not int and not is_integer(count):
                raise TypeError(f"counts must be ints; one is a {type(count).__name__}")
            if count < 0:
                raise ValueError("counts must be at least 0; one is negative")
            if count > MOST_COUNT:
                raise ValueError("counts must be at most 2**62; one is larger")
            if key is None:
                continue
            item = self._accepted(key)
            if item is None:
                raise ValueError("counts must be of items of this mechanism; one key is none")
            if count:
                found[type(item)][item] += int(count)
        return [entry for entries in found.values() for entry in sorted(entries.items())]

    def release(self, items: Any, random_state: int | None = None, *, exact_integers: bool = False) -> Outcome:
        """Choose an item, once, with the whole of the budget.

        Parameters
        ----------
        items : array, sequence, or series with shape (n,)
            One item for each of the n users. Whatever is no item counts as `default`, and nothing about it is raised
            or warned about. A user who has nothing to say keeps an entry, such as None: with ``neighbors="replace"``,
            n is public.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the draw reproducible,
            for tests only, and warns.
        exact_integers : bool
            True promises that the type of `items` is public. Otherwise integers beyond 2**53 - 1 are read as doubles,
            which one missing value would make of them, but in columns of Arrow and polars.

        Returns
        -------
        item
            In its plain form; for an `ApproximatePrivateMode` possibly `userdp.BOTTOM`.

        Notes
        -----
        Every call spends the budget again, also a call after `userdp.BOTTOM`, or with new public randomness for the
        same users. The counts themselves, or how many users fell back to `default`, are not private.
        """
        return self._draw(source_of(random_state), self.tally(items, exact_integers=exact_integers))


class RangeMode(PrivateMode[int, int]):
    """Choose one of the integers of a public range, by groups of those that as many users have."""

    _mechanism: GroupedExponentialMechanism
    """What draws an item, the lower its score the likelier."""

    def __init__(self, *, epsilon: Epsilon, n_items: int, **arguments: Any) -> None:
        self._n_items = n_items
        self._largest = n_items - 1
        super().__init__(epsilon=epsilon, n_items=n_items, **arguments)

    @property
    def n_items(self) -> int:
        """The items are 0, ..., n_items - 1."""
        return self._n_items

    def _score(self, count: int) -> int:
        """The score of an item that so many users have."""
        return -count

    def _accepted(self, item: object) -> int | None:
        number = item_of(item)
        return number if isinstance(number, int) and 0 <= number < self.n_items else None

    def _groups(self, counts: Counts, alone: int | None = None, *, padded: bool = False) -> GroupedScores:
        """A group for every item that somebody has, and for one more if wanted, and those between them.

        Empty groups before the first item change no probability; with `padded` there are as many as a draw needs.
        """
        count_of = {} if alone is None else {alone: 0}
        count_of |= dict(self._present(counts))
        starts, scores, free = [], [], 0
        for item in sorted(count_of):
            starts += [free, item]
            scores += [self._score(0), self._score(count_of[item])]
            free = item + 1
        if free < self.n_items:
            starts.append(free)
            scores.append(self._score(0))
        # Where n is public, a draw does not show the number of distinct items. Audits list no group for each user.
        size = 2 * sum(counts.values()) + 1 if padded and self.neighbors == "replace" else 0
        empty = max(size - len(starts), 0)
        return GroupedScores(
            np.pad(np.array(starts, dtype=np.uint64), (empty, 0)),
            np.pad(np.array(scores, dtype=np.int64), (empty, 0)),
            self.n_items - 1,
        )

    def _draw(self, source: _core.Source, counts: Counts) -> int:
        return self._mechanism._draw(source, self._groups(counts, padded=True))

    def pmf(self, counts: Counts) -> Pmf:
        """The distribution of the outcome of a release, exactly. Not private: for audits.

        Parameters
        ----------
        counts : mapping
            How many users have each item, as from `tally`; what is under None counts for nothing.

        Returns
        -------
        Pmf
            Outputs 0, ..., n_items - 1 and integer weights of total 2**384.

        Raises
        ------
        BudgetError
            For more than 2**22 items, where `probability` takes any number.
        """
        if self.n_items > PMF_CANDIDATES:
            raise BudgetError(
                f"the pmf of {self.n_items} items would fill gigabytes (limit {PMF_CANDIDATES}); probability() gives "
                "that of one item of any number"
            )
        return self._mechanism.pmf(self._groups(counts))

    def probability(self, item: int, counts: Counts) -> Fraction:
        """How likely an item is chosen, exactly, in time that does not depend on n_items. Not private: for audits.

        Parameters
        ----------
        item : int
            From 0 to n_items - 1.
        counts : mapping
            As for `pmf`.

        Raises
        ------
        BudgetError
            For more than about 2**21 items that somebody has.
        """
        wanted = self._wanted(item)
        groups = self._groups(counts, alone=wanted)
        # Of the groups that begin with the item all but the last are empty.
        last = int(np.searchsorted(groups.starts, np.uint64(wanted), side="right")) - 1
        return self._mechanism.group_probabilities(groups)[last]

    def _wanted(self, item: int) -> int:
        """The item whose probability is asked for."""
        wanted = self._accepted(item)
        if wanted is None:
            raise ValueError(f"item must be an int from 0 to {self.n_items - 1}; got {short_repr(item)}")
        return wanted


# How many users are needed for the item that most of them share to be chosen. Floats: these numbers plan, from public
# parameters; no privacy rests on them. They are moved up by MARGIN, far more than their rounding.

MARGIN = 1 + 1e-9
MOST_USERS = 2**40
LEAST_DISAGREEMENT = 2.0**-60


def planned(agreement: float | Fraction | str, beta: Delta) -> tuple[float, float]:
    """The probability that a user has another item, and a third of beta."""
    p, failure = parse_positive(agreement, "agreement"), parse_delta(beta, "beta")
    if not Fraction(1, 2) < p <= 1:
        raise ValueError(
            "agreement must be in (1/2, 1], since the others may all agree on another item; got "
            f"{short_repr(agreement)}"
        )
    if not 0 < failure < 1:
        raise ValueError(f"beta must be in (0, 1), ends excluded; got {short_repr(beta)}")
    return max(float(1 - p), LEAST_DISAGREEMENT), float(failure / 3)


def lower_tail(n: int, others: float, most: int) -> float:
    """Pr[Bin(n, 1 - others) <= most] for n >= 1, moved up."""
    return 1.0 if most >= n else _core.binomial_tail(n, others, n - most - 1) * MARGIN


def binomial_window(n: int, others: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Numbers k of users around n (1 - others), and their probabilities; all others have less than 1e-34 together."""
    center, width = round(n * (1 - others)), math.isqrt(40 * n) + 2  # Hoeffding: 2 exp(-80)
    k = np.arange(max(0, center - width), min(n, center + width) + 1, dtype=np.float64)
    steps = np.log((n - k[:-1]) / (k[:-1] + 1)) + math.log((1 - others) / others)
    logarithms = np.concatenate([[0.0], np.cumsum(steps)])
    masses = np.exp(logarithms - logarithms.max())
    return k, masses / masses.sum()


def least_from_which_on(holds: Callable[[int], bool], start: int) -> int:
    """The least number from which on a predicate holds that, once true, stays true two steps later."""
    # The larger of the least even and the least odd number: the one before it holds too, the one before that does not.
    return max(_least(holds, start), _least(holds, start + 1)) - 1


def _least(holds: Callable[[int], bool], first: int) -> int:
    """The least of first, first + 2, ... at which a monotone predicate holds."""
    if holds(first):
        return first
    refusal = BudgetError(f"more than {MOST_USERS // 2:.3g} users are needed; plan for more agreement or epsilon")
    return first + 2 * least(lambda pairs: holds(first + 2 * pairs), 0, 1, MOST_USERS // 4, refusal)


LEAST_FAILURE = 1e-10
"""Smaller thirds of beta are not planned for with coins: their sums are exact to about 1e-12 only."""


class PurePrivateMode(RangeMode):
    """Choose the item of most users, from a public range of integers, with epsilon-DP.

    Item u is chosen with probability proportional to e**(epsilon c_u / 2), or to e**(epsilon c_u) with
    ``neighbors="add-remove"``, where c_u of the n users have it; also items that nobody has. It takes the same time
    for 2 items and for 2**64. With ``mechanism="permute-and-flip"`` the item of most users is likelier at the same
    epsilon, at one coin for each item of the range.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88. A float is the decimal it prints as.
    n_items : int
        The items are 0, ..., n_items - 1, from 1 to 2**64 of them. Public.
    neighbors : {"replace", "add-remove"}
        What the promise is for: replacing one user's item, where the number n of users is public; or adding or
        removing one user, where n is private.
    default : int or None
        What anything that is not an item counts as: a fixed public item, or None for nothing.
    mechanism : {"exponential", "permute-and-flip"}
        "exponential", for up to 2**64 items: `GroupedExponentialMechanism`. "permute-and-flip", for up to 2**24:
        `PermuteAndFlip`, which needs two to four users less, however many there are. Public. Where epsilons are added
        up, or this is all that is released, take the second one for few items. Where rho is counted take the first:
        replacing a user then costs epsilon**2 / 8 of it, and epsilon**2 / 2 with the second.

    Notes
    -----
    *Privacy.* It is the mechanism with the score -c_u. Replacing a user changes two scores by 1, one up and one down:
    sensitivity 1, not monotone. Adding a user changes one score, which allows twice the rate. All of epsilon is spent
    on the one draw, at delta = 0, roundings included. Proofs: docs/proofs/selection.md. Replacing g users costs g
    epsilon.

    *Resolution.* With "exponential" the distribution that is drawn from is one of integers over 2**384, within a factor
    e**(2**-36 (d + 1)) of the stated ratio for counts that differ by d and less than 128 bits of weight; beyond these
    the less likely item counts as just so much worse. With "permute-and-flip" it is one of integers over 2**(103
    n_items + 128), and counts that differ by 64 bits of weight or more are not told apart.

    *Accuracy.* `accuracy`, logarithmic in n_items: choose the public range as small as it can be.

    *Time.* About n log n steps. With "replace" the draw is over 2 n + 1 groups of items however many distinct items
    there are, and constant-time in them. Counting and sorting in Python are not constant time. With "add-remove" the
    time tells about n, which is private there.

    References
    ----------
    [GKM21, Lemma 12]; McSherry, Talwar (FOCS 2007). [GKM21, Theorem 30].

    Examples
    --------
    >>> selection = PurePrivateMode(epsilon=1, n_items=2**64)
    >>> selection.release([2**63] * 300 + list(range(100)), exact_integers=True)
    9223372036854775808
    >>> 0 <= selection.release([], exact_integers=True) < 2**64
    True
    >>> from userdp import LogRatio
    >>> PurePrivateMode(epsilon=LogRatio(4), n_items=3).pmf({0: 2, 1: 1}).probabilities.round(4).tolist()
    [0.5714, 0.2857, 0.1429]
    """

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        n_items: int,
        neighbors: Neighbors = "replace",
        default: int | None = None,
        mechanism: SelectionMechanism = "exponential",
    ) -> None:
        size = check_count(n_items, "n_items")
        if not isinstance(mechanism, str) or mechanism not in ("exponential", "permute-and-flip"):
            raise ValueError(f"mechanism must be 'exponential' or 'permute-and-flip'; got {short_repr(mechanism)}")
        flips = mechanism == "permute-and-flip"
        if size > (MOST_CANDIDATES if flips else 2**64):
            most = "2**24 with mechanism='permute-and-flip', which tosses a coin for each" if flips else "2**64"
            raise ValueError(f"n_items must be at most {most}; got {short_repr(n_items)}")
        super().__init__(
            epsilon=epsilon,
            n_items=size,
            neighbors=neighbors,
            default=default,
            mechanism=mechanism if flips else None,
        )
        # Adding or removing a user moves all scores in one direction, replacing one does not.
        monotone = neighbors == "add-remove"
        common: dict[str, Any] = {"epsilon": epsilon, "sensitivity": 1, "monotone": monotone, "neighbors": neighbors}
        self._mechanism = GroupedExponentialMechanism(**common)
        self._flips = PermuteAndFlip(**common, maximize=True) if flips else None

    @property
    def mechanism(self) -> SelectionMechanism:
        """What the item is drawn by: "exponential" or "permute-and-flip"."""
        return "exponential" if self._flips is None else "permute-and-flip"

    @property
    def cost(self) -> PrivacyCost:
        """What a release costs. For replaced users the exponential mechanism states its bounded range."""
        return (self._flips or self._mechanism).cost

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the loss, all roundings included; at most epsilon."""
        return self._mechanism.certified_epsilon if self._flips is None else self._flips.certified_epsilon

    def _listed(self, counts: Counts) -> npt.NDArray[np.int64]:
        """How many users have each of all items."""
        scores = np.zeros(self.n_items, dtype=np.int64)
        for item, count in self._present(counts):
            scores[item] = count
        return scores

    def _draw(self, source: _core.Source, counts: Counts) -> int:
        if self._flips is not None:
            return self._flips._draw(source, self._listed(counts))
        return super()._draw(source, counts)

    def pmf(self, counts: Counts) -> Pmf:
        """The distribution of the outcome of a release, exactly. Not private: for audits.

        Parameters
        ----------
        counts : mapping
            How many users have each item, as from `tally`; what is under None counts for nothing.

        Returns
        -------
        Pmf
            Outputs 0, ..., n_items - 1 and integer weights of total 2**384, or of 2**(103 n_items + 128) with
            "permute-and-flip".

        Raises
        ------
        BudgetError
            For more than 2**22 items, where `probability` takes any number; with "permute-and-flip" for more than 64.
        """
        if self._flips is not None:
            return self._flips.pmf(self._listed(counts))
        return super().pmf(counts)

    def probability(self, item: int, counts: Counts) -> Fraction:
        """How likely an item is chosen, exactly, in time that does not depend on n_items. Not private: for audits.

        Parameters
        ----------
        item : int
            From 0 to n_items - 1.
        counts : mapping
            As for `pmf`.

        Raises
        ------
        BudgetError
            For more than about 2**21 items that somebody has; with "permute-and-flip" for more than 64 items.

        Examples
        --------
        >>> selection = PurePrivateMode(epsilon=2, n_items=2**20)
        >>> [round(float(selection.probability(item, {7: 20, 9: 1})), 6) for item in (7, 9, 8)]
        [0.997843, 0.0, 0.0]
        """
        if self._flips is not None:
            return self.pmf(counts).fractions()[self._wanted(item)]
        return super().probability(item, counts)

    def accuracy(self, beta: Delta) -> int:
        """By how much the count of the outcome may be below the largest one, but for probability beta.

        Parameters
        ----------
        beta : float, int, Fraction or decimal string
            In (0, 1).

        Returns
        -------
        int
            The least a for which e**(-epsilon (a + 1) / 2) n_items <= beta (with epsilon for epsilon / 2 where users
            are added and removed, and with (n_items - 1) / 2 for n_items with "permute-and-flip"). An item with more
            than a users less than the one of most users is chosen with probability at most beta.

        Examples
        --------
        >>> PurePrivateMode(epsilon=1, n_items=2**20).accuracy("0.01")
        36
        """
        failure = parse_delta(beta, "beta")
        if not 0 < failure < 1:
            raise ValueError(f"beta must be in (0, 1), ends excluded; got {short_repr(beta)}")
        if self._flips is not None and self.n_items == 1:
            return 0
        rate = self._mechanism._rate if self._flips is None else self._flips._rate
        per_unit = float(rate.bits_per_unit)
        odds = (self.n_items if self._flips is None else Fraction(self.n_items - 1, 2)) / failure
        # Of integers, which may be beyond all floats.
        bits = math.log2(odds.numerator) - math.log2(odds.denominator)
        gap = max(1, math.ceil(bits * MARGIN / per_unit))
        if gap > rate.largest_gap:
            weights = f"weights of {128 if self._flips is None else 64} bits and {self.n_items} items"
            raise ValueError(f"beta is too small for {weights}; got {short_repr(beta)}")
        return gap - 1

    def users_needed(self, *, agreement: float | Fraction | str, beta: Delta) -> int:
        """The least number of users from which on the common item is chosen, but for probability beta / 3.

        Parameters
        ----------
        agreement : float, int, Fraction or decimal string
            The probability p in (1/2, 1] with which each user, independently, has the common item. All others may
            agree on another one: that is the worst that they can do.
        beta : float, int, Fraction or decimal string
            In (0, 1): the probability with which a learner may fail, a third of it here.

        Returns
        -------
        int
            The least n such that for n and all larger numbers of users the probability, over the users and the draw,
            that another item is chosen is at most beta / 3.

        Raises
        ------
        BudgetError
            When the result would be above 2**39.

        Notes
        -----
        As for `ApproximatePrivateMode.users_needed`: floats, for planning from public numbers only. Proof:
        docs/proofs/selection.md.

        Examples
        --------
        >>> PurePrivateMode(epsilon=1, n_items=2**20).users_needed(agreement="0.9", beta="0.1")
        40
        """
        others, failure = planned(agreement, beta)
        if self.n_items == 1:
            return 1
        of_draws = self._mechanism._rate if self._flips is None else self._flips._rate
        bits = 128 if self._flips is None else 64
        rate = float(of_draws.bits_per_unit) * math.log(2)
        clamped = math.ldexp(self.n_items, -bits) * 2.0 ** float(of_draws.bits_per_unit)
        if clamped > failure / 2 or (self._flips is not None and failure < LEAST_FAILURE):
            raise ValueError(
                f"beta is too small for weights of {bits} bits and {self.n_items} items; got {short_repr(beta)}"
            )
        lost_of = lost_by_weights if self._flips is None else lost_by_coins

        def holds(n: int) -> bool:
            k, masses = binomial_window(n, others)
            lost = masses @ lost_of(k, n - k, self.n_items - 2, rate)
            return bool(lost * MARGIN + clamped <= failure)

        return least_from_which_on(holds, start=1)


Floats: TypeAlias = npt.NDArray[np.float64]


def lost_by_weights(common: Floats, rival: Floats, others: int, rate: float) -> Floats:
    """How likely the exponential mechanism misses the common item, where `others` items have no users."""
    rest = math.log(others) if others else -math.inf
    # The logarithm of the odds of what is not the common item.
    odds = np.logaddexp(rate * rival, rest) - rate * common
    return np.exp(-np.logaddexp(0, -odds))


def lost_by_coins(common: Floats, rival: Floats, others: int, rate: float) -> Floats:
    """As `lost_by_weights`, for permute-and-flip; up to 1e-12, which is added."""
    most = np.maximum(common, rival)
    own, one, each = (np.exp(rate * (count - most)) for count in (common, rival, np.zeros_like(most)))
    # With B of the others' coins successful: the mean of 1 / (1 + B), and of 1 / (2 + B) where the rival's is, too.
    # E t^B = (1 - q + q t)^others gives both as integrals over t.
    each = np.clip(each, 1e-290, 1 - 1e-16)
    first, more = (-np.expm1((others + j) * np.log1p(-each)) / ((others + j) * each) for j in (1, 2))
    mean = others * each
    small = mean < 1e-2
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        second = (1 - more) / ((others + 1) * each)
    # The alternating sum over subsets; it ends with a negative term, which makes it a lower bound.
    term, series = np.ones_like(mean), np.full_like(mean, 0.5)
    for m in range(1, 8):
        term = term * (others - m + 1) * each / m
        series += (-1) ** m * term / ((m + 1) * (m + 2))
    second = np.where(small, series, second)
    return 1 - own * ((1 - one) * first + one * second) + 1e-12
