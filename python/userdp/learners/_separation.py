"""The number of mistakes that tells a good hypothesis from a bad one best."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from userdp import _core
from userdp._numbers import parse_delta, positive, shown

__all__ = ["best_separating_threshold"]

MOST_ROWS = 2**40


def best_separating_threshold(
    m: int, p: float | int | Fraction | str, q: float | int | Fraction | str
) -> tuple[int, float]:
    r"""Where the numbers of mistakes of two hypotheses are told apart best.

    Of m independent rows a hypothesis of error p gets Bin(m, p) wrong, one of error q Bin(m, q). Counting the users for
    whom a hypothesis gets *more than t* rows wrong separates the two by

    .. math:: \Pr[\mathrm{Bin}(m, q) > t] - \Pr[\mathrm{Bin}(m, p) > t],

    and the t that makes this largest makes it the total variation distance of the two distributions. It grows with
    sqrt(m), which is what several rows per user are good for.

    Parameters
    ----------
    m : int
        Rows per user, 1 <= m <= 2**40.
    p, q : float, int, Fraction or decimal string
        Error probabilities, 0 <= p < q <= 1. Both are rounded to floats.

    Returns
    -------
    t : int
        The smallest best number of mistakes, 0 <= t < m.
    gap : float
        The difference of the two probabilities at t, in (0, 1]; absolute error below 1e-12 for m <= 10**6.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, for an m or probabilities outside these ranges, and for p and q that are not in order or
        are the same float.

    Notes
    -----
    A function of public numbers: t and gap choose parameters, no privacy rests on them.

    The likelihood ratio of k mistakes, (q / p)^k ((1 - q) / (1 - p))^(m - k), increases with k and crosses 1 at
    k* = m A / (A + ln(q / p)), A = ln((1 - p) / (1 - q)). All k > k* are likelier under q, which makes t = ceil(k*) - 1
    best; an integer k* is as likely under both, and then t = k* is as good.

    References
    ----------
    Li, Wang, Ye (2024), Lemma 4.1, which bounds this gap from below.

    Examples
    --------
    >>> best_separating_threshold(1, 0.25, 0.75)
    (0, 0.5)
    >>> t, gap = best_separating_threshold(100, 0.2, 0.3)
    >>> t, round(gap, 6)
    (24, 0.755077)
    """
    rows = positive(m, "m")
    if rows > MOST_ROWS:
        raise ValueError(f"m must be at most 2**40; got {shown(m)}")
    low, high = float(parse_delta(p, "p")), float(parse_delta(q, "q"))
    if low >= high:
        raise ValueError(f"p < q is needed, as floats; got p={shown(p)}, q={shown(q)}")
    threshold, gap, _ = separation(rows, low, high)
    return threshold, gap


@lru_cache(maxsize=2**12)
def separation(m: int, p: float, q: float) -> tuple[int, float, float]:
    """t, the gap at t, and Pr[Bin(m, p) > t], kept: programs ask for the same numbers on each path of their law."""
    return _core.separating_threshold(m, p, q)
