"""How many users are needed for the item that most of them share to be chosen.

Floats: these numbers plan, from public parameters; no privacy rests on them. They are moved up by `MARGIN`, far more
than their rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Delta, parse_delta, parse_positive, short_repr
from userdp.exceptions import BudgetError

MARGIN = 1 + 1e-9
MOST_USERS = 2**40
LEAST_DISAGREEMENT = 2.0**-60


def planned(agreement: float | Fraction | str, beta: Delta) -> tuple[float, float]:
    """The probability that a user has another item, and a third of beta.

    Raises
    ------
    TypeError, ValueError
        Unless 1/2 < agreement <= 1 and 0 < beta < 1.
    """
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
    """The least number from which on a predicate holds that, once true, stays true two steps later.

    Raises
    ------
    BudgetError
        When it is above 2**40.
    """
    # The larger of the least even and the least odd number: the one before it holds too, the one before that does not.
    return max(_least(holds, start), _least(holds, start + 1)) - 1


def _least(holds: Callable[[int], bool], first: int) -> int:
    """The least of first, first + 2, ... at which a monotone predicate holds."""
    if holds(first):
        return first
    low, high = 0, 1
    while not holds(first + 2 * high):
        low, high = high, 2 * high
        if high > MOST_USERS // 4:
            raise BudgetError(f"more than {MOST_USERS // 2:.3g} users are needed; plan for more agreement or epsilon")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(first + 2 * middle) else (middle, high)
    return first + 2 * high
