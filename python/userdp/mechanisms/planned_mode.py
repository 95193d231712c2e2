"""Private choice of the item that most users have, by a table of weights that is planned for a number of users.

The exponential mechanism weighs an item by e**(epsilon c / 2) for its c users, whatever the number n of users is. Where
n is public, counts of two items are at most n together, and that leaves room: weights may grow up to twice as fast
where the items that nobody has still weigh most. The table here uses this room where the planned agreement needs it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from userdp.exact.epsilon import enclosure, ln_enclosure, shortened, value_enclosure
from userdp.exact.numbers import Delta, Epsilon, PrivacyLevel, check_count, least, nonzero_level, round_up, short_repr
from userdp.exceptions import BudgetError
from userdp.mechanisms.grouped_exponential import GroupedExponentialMechanism, GroupedScores
from userdp.mechanisms.mode import MARGIN, Counts, Floats, RangeMode, binomial_window, planned

MOST_USERS = 2**10
"""Of a table: whether it is private is decided for all pairs of counts."""
LEAST_EPSILON, MOST_EPSILON = 2.0**-20, 64.0
RESERVED = Fraction(1, 2**36)
"""Of epsilon, for roundings. The table takes the rest."""
ROUNDED = Fraction(9, 10**12)
"""What the roundings cost: less than 7.3e-12 in the draw, and 1e-12 where weights become scores."""
RATIO_BITS = 160
UNIT = 2**64
"""The weight of an item that nobody has."""
MOST_WEIGHT = 2**126
"""The largest weight over the least one: a draw tells weights of 128 bits apart."""
STEPS_PER_NAT = 2**40
"""Scores are logarithms of weights, in units of about half a step."""
LEAST = 2.0**-256
"""Smaller floats are none, so that nothing overflows."""
LEFT_OUT = 1e-33
"""More than the probability of the numbers of users that a plan leaves out."""
SHARES = np.linspace(0, 1, 33)
"""Which parts of epsilon the weights of small counts are tried to grow by."""


class PlannedPrivateMode(RangeMode):
    """Choose the item of most users from a public range, with epsilon-DP, by weights planned for n_users users.

    An item with c users is chosen with probability proportional to weights[c]. The table `weights` follows from public
    numbers alone, and is decided to be private in exact integers, for all counts that n_users users can have. Where the
    range is large and many users agree, far fewer of them are needed than by the exponential mechanism or by
    permute-and-flip.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, from 2**-20 to 64. A float is the decimal it prints as.
    n_items : int
        The items are 0, ..., n_items - 1, from 1 to 2**64 of them. Public.
    n_users : int
        Every release is on the items of exactly so many users, from 1 to 1024. Public.
    agreement : float, int, Fraction or decimal string
        The probability p in (1/2, 1] with which each user is expected to have the common item. It decides how good the
        choice is and not how private. Choose it without looking at the data.
    default : int or None
        What anything that is not an item counts as: a fixed public item, or None for nothing.

    Attributes
    ----------
    weights : tuple of int
        The public table for 0, ..., n_users users.
    failure : float
        How likely another item than the common one is chosen, over users with the planned agreement and the draw,
        whatever the others have.

    Notes
    -----
    *Neighbors* differ in one *replaced* user. The number of users is public, and the promise is for n_users of them: a
    release on any other number raises `ValueError`. Adding and removing users is not what this is for.

    *Privacy.* All of epsilon is spent on the one draw, at delta = 0, roundings included. No bounded range is claimed:
    where rho is counted it costs epsilon**2 / 2, four times as much as `PurePrivateMode`. Replacing g users costs g
    epsilon. Proof: docs/proofs/planned_mode.md.

    *Platforms.* Floats propose the table, so that its last digits may differ between platforms. That it is private is
    decided wherever it is made.

    *Which to take.* `users_needed` says how many users it takes, to be compared with that of `PurePrivateMode`. The
    gain is large for large ranges and much agreement; for two items the choice is the best there is. Other agreements
    than the planned one are served less well. Near ties of three or more items the choice is worse than by the
    exponential mechanism: some three times the regret on the worst data of few users.

    *Time.* The table takes n_users**2 steps. The draw is that of `GroupedExponentialMechanism` over 2 n_users + 1
    groups of items, constant-time in them. Counting, sorting and looking up scores in Python are not constant time.

    References
    ----------
    McSherry, Talwar (FOCS 2007), for the exponential mechanism. The table is this library's own.

    Examples
    --------
    >>> selection = PlannedPrivateMode(epsilon=1, n_items=2**20, n_users=28, agreement="0.9")
    >>> selection.failure < 0.1 / 3
    True
    >>> 0 <= selection.release([12345] * 26 + [7, 8]) < 2**20
    True
    >>> PlannedPrivateMode.users_needed(epsilon=1, n_items=2**20, agreement="0.9", beta="0.1")
    28
    """

    _cost_from: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        n_items: int,
        n_users: int,
        agreement: float | Fraction | str,
        default: int | None = None,
    ) -> None:
        self._level, items, others = _read(epsilon, n_items, agreement)
        self._n_users = check_count(n_users, "n_users")
        if self._n_users > MOST_USERS:
            raise ValueError(f"n_users must be at most {MOST_USERS}; got {short_repr(n_users)}")
        super().__init__(
            epsilon=epsilon,
            n_items=items,
            n_users=self._n_users,
            agreement=agreement,
            neighbors="replace",
            default=default,
        )
        del self._arguments["neighbors"]  # there is no other
        self._weights, self._failure = _planned_table(self._n_users, items, self._level, others)
        if not is_private(self._weights, items, _ratio(self._level)):
            raise ArithmeticError("a table of weights was made that is not private; please report this")
        self._mechanism = GroupedExponentialMechanism(epsilon=1, sensitivity=STEPS_PER_NAT)
        step = self._mechanism._rate.bits_per_unit * ln_enclosure(Fraction(2))[1]
        # Rounded down, by less than 5e-13 in the logarithm of the weight.
        self._scores = [-math.floor(ln_enclosure(Fraction(weight, UNIT))[0] / step) for weight in self._weights]

    @property
    def n_users(self) -> int:
        """How many users every release is about."""
        return self._n_users

    @property
    def weights(self) -> tuple[int, ...]:
        """The public table: how much an item weighs that 0, ..., n_users users have."""
        return self._weights

    @property
    def failure(self) -> float:
        """How likely the common item is missed, at the planned agreement, whatever the others have."""
        return self._failure

    @property
    def certified_epsilon(self) -> float:
        """A proved bound of the loss, all roundings included; at most epsilon."""
        return round_up(value_enclosure(self._level)[1] - RESERVED + ROUNDED)

    def _score(self, count: int) -> int:
        return self._scores[count]

    def _groups(self, counts: Counts, alone: int | None = None, *, padded: bool = False) -> GroupedScores:
        users = sum(count for _, count in self._present(counts)) + int(counts.get(None, 0))
        if users != self.n_users:
            # The number of users is public.
            raise ValueError(f"counts must be those of n_users={self.n_users} users; got {users} of them")
        return super()._groups(counts, alone, padded=padded)

    @classmethod
    def users_needed(cls, *, epsilon: Epsilon, n_items: int, agreement: float | Fraction | str, beta: Delta) -> int:
        """The number of users for which a planned table chooses the common item, but for probability beta / 3.

        Parameters
        ----------
        epsilon, n_items, agreement
            As for the class.
        beta : float, int, Fraction or decimal string
            In (0, 1): the probability with which a learner may fail, a third of it here.

        Returns
        -------
        int
            A number n_users whose table has a `failure` of at most beta / 3, while that of one user fewer has not.

        Raises
        ------
        BudgetError
            When more than 1024 users are needed.

        Notes
        -----
        Floats, for planning from public numbers; no privacy rests on them.

        Examples
        --------
        >>> PlannedPrivateMode.users_needed(epsilon=1, n_items=1024, agreement="0.9", beta="0.1")
        19
        """
        level, items, others = _read(epsilon, n_items, agreement)
        failure = planned(agreement, beta)[1]

        def enough(n: int) -> bool:
            return _planned_table(n, items, level, others)[1] <= failure

        refusal = BudgetError(f"more than {MOST_USERS} users are needed; plan for more agreement or epsilon")
        return least(enough, 0, 1, MOST_USERS, refusal)


def _read(epsilon: Epsilon, n_items: int, agreement: float | Fraction | str) -> tuple[PrivacyLevel, int, float]:
    """The level, the number of items, and the probability that a user has another item."""
    level, items = nonzero_level(epsilon), check_count(n_items, "n_items")
    if not LEAST_EPSILON <= float(level) <= MOST_EPSILON:
        raise ValueError(f"epsilon must be from 2**-20 to {MOST_EPSILON:g}; got {short_repr(epsilon)}")
    if items > 2**64:
        raise ValueError(f"n_items must be at most 2**64; got {short_repr(n_items)}")
    return level, items, planned(agreement, Fraction(1, 2))[0]


def _ratio(level: PrivacyLevel) -> Fraction:
    """What the table takes of e**epsilon, rounded down."""
    return shortened(enclosure(level, "epsilon")[0] * (1 - RESERVED), up=False, bits=RATIO_BITS)


# Exact integers: a table w of weights for the counts 0, ..., n is private at the ratio r = e**epsilon when it does not
# fall, w[i + 1] <= r w[i], and for any two items with i and j users, i + j < n, and all others with none,
#     w[i + 1] (w[i] + w[j + 1] + R) <= r w[i] (w[i + 1] + w[j] + R),    R = (n_items - 2) w[0].


def is_private(weights: Sequence[int], n_items: int, ratio: Fraction) -> bool:
    """Whether the choice by these weights has a loss of at most ln(ratio), for all data of all users; exactly."""
    n, rest = len(weights) - 1, max(n_items - 2, 0) * weights[0]
    more, less = ratio.numerator, ratio.denominator
    return all(
        weights[i] <= weights[i + 1]
        and less * weights[i + 1] <= more * weights[i]
        and all(
            less * weights[i + 1] * (weights[i] + weights[j + 1] + rest)
            <= more * weights[i] * (weights[i + 1] + weights[j] + rest)
            for j in range(n - i)
        )
        for i in range(n)
    )


def private_weights(target: Sequence[float], n_items: int, ratio: Fraction) -> tuple[int, ...]:
    """The largest private weights, one after another, that stay below the target where there is one.

    The condition on (i, j) and on (j, i) bounds weights[i + 1] by those before it, for j < i; and the bounds are never
    below weights[i].
    """
    n, rest = len(target) - 1, max(n_items - 2, 0) * UNIT
    more, less = ratio.numerator, ratio.denominator
    weights = [UNIT]
    for i in range(n):
        own = weights[i]
        bounds = [more * own // less, UNIT * MOST_WEIGHT]
        if math.isfinite(target[i + 1]):
            bounds.append(math.floor(Fraction(target[i + 1]) * UNIT))
        for j in range(min(i, n - i)):
            low, high = weights[j], weights[j + 1]
            bounds.append(more * low * (high + own + rest) // (less * high) - low - rest)
            excess = less * (own + high + rest) - more * own
            if excess > 0:
                bounds.append(more * own * (low + rest) // excess)
        weights.append(max(own, min(bounds)))
    return tuple(weights)


# Floats, which propose and plan. Columns are shares.


def _planned_table(n: int, n_items: int, level: PrivacyLevel, others: float) -> tuple[tuple[int, ...], float]:
    """The table, and how likely it misses the common item."""
    grown = _middle_out(n, n_items, float(level))
    best = int(np.argmin(_missed(_greedy(grown, n_items, float(level)), n_items, others)))
    target = [float(weight) if count <= n // 2 + 1 else math.inf for count, weight in enumerate(grown[:, best])]
    weights = private_weights(target, n_items, _ratio(level))
    drawn = np.array([[weight / UNIT] for weight in weights])
    return weights, min(1.0, float(_missed(drawn, n_items, others)[0]) * MARGIN)


def _missed(weights: Floats, n_items: int, others: float) -> Floats:
    """How likely the common item is missed, where the others do the most harm."""
    n = len(weights) - 1
    if n_items == 1:
        return np.zeros(weights.shape[1])
    k, masses = binomial_window(n, others)
    have = k.astype(np.int64)
    # The most weight of so many users, beyond that of items that nobody has.
    harm = np.zeros_like(weights)
    for users in range(1, n + 1):
        harm[users] = np.max(weights[1 : users + 1] - 1 + harm[users - 1 :: -1], axis=0)
    against = harm[n - have] + (n_items - 1)
    return np.asarray(masses @ (against / (against + weights[have])) + LEFT_OUT)


def _middle_out(n: int, n_items: int, epsilon: float) -> Floats:
    """Weights that grow by a share of epsilon per user for small counts, and as fast as they may for the others.

    From the middle, the pairs of steps (j, i) with i + j = n - 1 are taken outward: the step from i to i + 1 as large
    as the share for j allows, then the one from j to j + 1 as large as it still may be. The weight in the middle is
    sought for which the least one is 1.
    """
    ratio, rest = math.exp(epsilon), float(max(n_items - 2, 0))
    slow = ratio**SHARES
    low, high = np.zeros_like(slow), np.full_like(slow, min(n * epsilon, math.log(MOST_WEIGHT)))
    for _ in range(56):
        middle = (low + high) / 2
        weights = _outward(n, rest, ratio, slow, np.exp(middle))
        above = weights[0] > 1
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.maximum.accumulate(weights / weights[0], axis=0))


def _outward(n: int, rest: float, ratio: float, slow: Floats, middle: Floats) -> Floats:
    """The weights from those in the middle."""
    weights = np.empty((n + 1, len(slow)))
    j = i = n // 2
    weights[j] = middle
    if n % 2:
        i += 1
        weights[i] = np.minimum(ratio * middle, MOST_WEIGHT)
    while j:
        room = ratio * (weights[i] + rest) + (ratio - 1) * weights[j]
        step = np.clip((room / slow - rest) / weights[i], 1, ratio)
        weights[i + 1] = np.minimum(step * weights[i], MOST_WEIGHT)
        # Where the largest weight is reached, small counts grow by their share alone.
        fast = np.where(weights[i + 1] < MOST_WEIGHT, ratio, slow)
        step = np.clip(room / (weights[i + 1] + rest), 1, fast)
        weights[j - 1] = np.maximum(weights[j] / step, LEAST)
        i, j = i + 1, j - 1
    return weights


def _greedy(grown: Floats, n_items: int, epsilon: float) -> Floats:
    """As `private_weights`, for all shares."""
    n, rest, ratio = len(grown) - 1, float(max(n_items - 2, 0)), math.exp(epsilon)
    weights = np.ones_like(grown)
    for i in range(n):
        own = weights[i]
        bound = np.minimum(ratio * own, MOST_WEIGHT)
        if i <= n // 2:
            bound = np.minimum(bound, grown[i + 1])
        end = min(i, n - i)
        low, high = weights[:end], weights[1 : end + 1]
        if end:
            bound = np.minimum(bound, np.min(ratio * low * (high + own + rest) / high - low - rest, axis=0))
            excess = own + high + rest - ratio * own
            with np.errstate(divide="ignore"):
                bounds = np.where(excess > 0, ratio * own * (low + rest) / excess, np.inf)
            bound = np.minimum(bound, np.min(bounds, axis=0))
        weights[i + 1] = np.maximum(bound, own)
    return weights
