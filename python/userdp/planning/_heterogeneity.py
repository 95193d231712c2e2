"""What it costs when people's distributions differ: a bound for any algorithm, from public numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

from userdp._numbers import Delta, parse_delta, parse_positive, positive, shown

__all__ = ["HeterogeneityBound", "heterogeneity_bound"]

MOST_ROWS = 10**300
"""Beyond them numbers are no floats."""


@dataclass(frozen=True)
class HeterogeneityBound:
    """Bounds of the expected excess loss for every user; made by `heterogeneity_bound`.

    Attributes
    ----------
    paper : float
        L + B (m n + 2) Delta.
    sharper : float
        L + B (1 - (1 - Delta)^(m n) + 2 Delta): never above `paper`, and never above L + B (1 + 2 Delta).
    """

    paper: float
    sharper: float


def heterogeneity_bound(
    excess: float, *, n_users: int, m: int, distance: Delta, bound: float = 1.0
) -> HeterogeneityBound:
    """The expected excess loss for every user, when users' distributions differ a little from a common one.

    Parameters
    ----------
    excess : float
        L >= 0: the expected excess loss that the algorithm is known to have when all rows of all users are drawn from
        one distribution.
    n_users, m : int
        Users, and rows of each.
    distance : number in [0, 1]
        Delta: every user's distribution is within this total variation of the common one. Public: an assumption.
    bound : float
        B: losses are in [0, B].

    Returns
    -------
    HeterogeneityBound
        For the loss of each user against the best for that user.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Warns
    -----
    The bound is of use for differences below 1/(m n) only: nothing says that the algorithms are good for users who
    differ more. Privacy never rests on it. See docs/planning.md.

    Notes
    -----
    Proof. Rows of a user and of the common distribution can be coupled to be equal with probability 1 - Delta,
    independently for all m n rows; so the two data sets are equal but for probability 1 - (1 - Delta)^(m n), and what
    the algorithm returns with them. Where they are not, the loss differs by at most B. The loss of any parameter under
    a user's distribution and under the common one differ by at most B Delta, twice: for what was returned, and for the
    best.

    References
    ----------
    Levy, Sun, Amin, Kale, Kulesza, Mohri, Suresh (2021), Theorem 9.

    Examples
    --------
    >>> found = heterogeneity_bound(0.1, n_users=100, m=10, distance=0.0001)
    >>> round(found.paper, 4), round(found.sharper, 4)
    (0.2002, 0.1954)
    """
    try:
        risk = float(excess)
    except (TypeError, ValueError):
        raise TypeError(f"excess must be a number >= 0; got {shown(excess)}") from None
    if not 0 <= risk < math.inf:
        raise ValueError(f"excess must be a finite number >= 0; got {shown(excess)}")
    rows = positive(n_users, "n_users") * positive(m, "m")
    if rows > MOST_ROWS:
        raise ValueError(f"n_users * m must be at most {MOST_ROWS:.0e}; got {shown(n_users)} and {shown(m)}")
    shift = float(parse_delta(distance, "distance"))
    size = float(parse_positive(bound, "bound"))
    differ = 1.0 if shift == 1 else -math.expm1(rows * math.log1p(-shift))
    return HeterogeneityBound(risk + size * (rows + 2) * shift, risk + size * (differ + 2 * shift))
