"""How many users make empirical errors trustworthy: the statements of Li, Wang and Ye, and a sharper one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from userdp.exact.numbers import check_count, open_unit_interval
from userdp.exceptions import BudgetError

MOST_USERS = 2**1000


@dataclass(frozen=True)
class UniformConvergence:
    """Numbers of users that are enough, by several proofs; made by `uniform_convergence_users`.

    Attributes
    ----------
    single_row : int
        For m = 1, [LWY24, Lemma 3.1]: 576 (4 d + ln(8 / beta)) / alpha**2.
    agnostic : int
        For errors above t, [LWY24, Lemma 4.3]: 64 (d ln(128 m / alpha**2) + ln(8 / beta)) / alpha**2.
    disagreement : int
        For disagreements, in which errors near 0 count less, [LWY24, Lemma 4.4]:
        96 (2 d ln(384 m / alpha) + ln(4 / beta)) / alpha.
    sharper : int
        The least n from which on 4 Pi(2 n m) e**(-alpha**2 n / (16 (1 + alpha / 2))) <= beta / 2, with the bound of
        Sauer's lemma on the growth function, Pi(N) <= (e N / d)**d: the inequality behind `agnostic`, solved.
    """

    single_row: int
    agnostic: int
    disagreement: int
    sharper: int


def uniform_convergence_users(vc_dimension: int, *, m: int, alpha: float, beta: float) -> UniformConvergence:
    """Users for which every hypothesis has nearly its true error, with the constants of the theorems.

    Parameters
    ----------
    vc_dimension : int
        d >= 0, of the class.
    m : int
        Rows of each user, >= 1.
    alpha, beta : float
        Accuracy and failure probability, in (0, 1).

    Returns
    -------
    UniformConvergence

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    BudgetError
        For numbers of users beyond 2**1000.

    Notes
    -----
    Public numbers in, public numbers out: nothing here sees data. These are the sizes that proofs ask for; practice
    needs hundreds of times fewer, see docs/performance.md. Never compare them with a private number of users.

    References
    ----------
    Li, Wang, Ye (2024): [LWY24, Lemma 3.1], [LWY24, Lemma 4.3] and [LWY24, Lemma 4.4]. [LWY24, Lemma A.2].

    Examples
    --------
    >>> uniform_convergence_users(1, m=1, alpha=0.1, beta=0.05)
    UniformConvergence(single_row=522731, agnostic=93008, disagreement=20053, sharper=28611)
    """
    d, rows = check_count(vc_dimension, "vc_dimension", 0), check_count(m, "m")
    width, failure = open_unit_interval(alpha, "alpha"), open_unit_interval(beta, "beta")
    square = width * width

    def growth(size: int) -> float:
        """The logarithm of Sauer's bound."""
        if d == 0:
            return 0.0
        return size * math.log(2) if size < d else d * (1 + math.log(size) - math.log(d))

    def enough(n: int) -> bool:
        decay = square * n / (16 * (1 + width / 2))
        return math.log(4) + growth(2 * n * rows) - decay <= math.log(failure / 2)

    return UniformConvergence(
        single_row=math.ceil(576 / square * (4 * d + math.log(8 / failure))),
        agnostic=math.ceil(64 / square * (d * math.log(128 * rows / square) + math.log(8 / failure))),
        disagreement=math.ceil(96 / width * (2 * d * math.log(384 * rows / width) + math.log(4 / failure))),
        sharper=_least(enough),
    )


def _least(enough: Any) -> int:
    """The least n >= 1 for which it is enough, where it stays enough from there on."""
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_USERS:
            raise BudgetError("more than 2**1000 users would be needed; raise alpha")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
