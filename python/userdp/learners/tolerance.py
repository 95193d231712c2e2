"""How many mistakes a user may make: the best separating number, and its private choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Epsilon, check_count, parse_delta, short_repr
from userdp.exact.pmf import Pmf
from userdp.mechanisms import ExponentialMechanism
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler, output_distribution, run
from userdp.runtime import source_of

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
    Li, Wang, Ye (2024): [LWY24, Lemma 4.1], which bounds this gap from below.

    Examples
    --------
    >>> best_separating_threshold(1, 0.25, 0.75)
    (0, 0.5)
    >>> t, gap = best_separating_threshold(100, 0.2, 0.3)
    >>> t, round(gap, 6)
    (24, 0.755077)
    """
    rows = check_count(m, "m")
    if rows > MOST_ROWS:
        raise ValueError(f"m must be at most 2**40; got {short_repr(m)}")
    low, high = float(parse_delta(p, "p")), float(parse_delta(q, "q"))
    if low >= high:
        raise ValueError(f"p < q is needed, as floats; got p={short_repr(p)}, q={short_repr(q)}")
    threshold, gap, _ = separation(rows, low, high)
    return threshold, gap


@lru_cache(maxsize=2**12)
def separation(m: int, p: float, q: float) -> tuple[int, float, float]:
    """t, the gap at t, and Pr[Bin(m, p) > t], kept: programs ask for the same numbers on each path of their pmf."""
    return _core.separating_threshold(m, p, q)


# The practical default: chosen by simulation, one for all tasks. See docs/performance.md, "How the default was chosen".
T_SHARE = Fraction(3, 10)
"""The share of epsilon that the choice of t takes, where there is a choice."""

LEFT_OVER = Fraction(2, 5)
"""The least t is wanted at which the best hypothesis fails at most this part of the users."""

SPACING = 1.5
"""Candidates for t are so many standard deviations of a user's mistakes apart."""


def candidates_for_t(m: int) -> tuple[int, ...]:
    """The candidates for t: 0 and up to m / 2, at about equal distances in standard deviations of Bin(m, t / m).

    Parameters
    ----------
    m : int
        The most examples of a user, >= 1; public.

    Returns
    -------
    tuple of int
        Increasing from 0; just 0 for m < 4, and about sqrt(m) of them for large m.

    Notes
    -----
    The arcsine of sqrt(Bin(m, p) / m) has a standard deviation of nearly 1 / (2 sqrt(m)) whatever p is, so that equal
    steps of the arcsine are equal steps in standard deviations.

    Examples
    --------
    >>> candidates_for_t(3), candidates_for_t(16), candidates_for_t(64)
    ((0,), (0, 2, 4, 7), (0, 2, 4, 8, 13, 18, 23, 29))
    """
    step = SPACING / (2 * math.sqrt(m))
    angles = (index * step for index in range(int(math.pi / 4 / step) + 1))
    return tuple(sorted({int(m * math.sin(angle) ** 2) for angle in angles}))


def t_shares(m: int, selection: str) -> dict[str, Fraction]:
    """The shares of epsilon that choosing t, and the `selection` that comes after it, take for up to m examples."""
    if len(candidates_for_t(m)) == 1:
        return {selection: Fraction(1)}
    return {"choice of t": T_SHARE, selection: 1 - T_SHARE}


def choose_t(
    draw: Sampler,
    mechanism: ExponentialMechanism,
    m: int,
    minimal_errors: Callable[[], npt.NDArray[np.int64]],
    n_users: int,
) -> int:
    """The choice as a part of a program; see `private_t`. One candidate is chosen without a look at the data."""
    candidates = candidates_for_t(m)
    if len(candidates) == 1:
        return candidates[0]
    scores = first_crossing_scores(minimal_errors()[list(candidates)], n_users)
    chosen: int = draw(mechanism, scores)
    return candidates[chosen]


def first_crossing_scores(minimal_errors: npt.NDArray[np.int64], n_users: int) -> npt.NDArray[np.int64]:
    """How far each entry is from being the first that is at most a fixed part of n: 0 for that one, else positive.

    Parameters
    ----------
    minimal_errors : ndarray of int64 with shape (k,)
        K_1, ..., K_k, each in 0, ..., n.
    n_users : int
        n, public.

    Returns
    -------
    ndarray of int64 with shape (k,)
        max(T - K_{j-1}, K_j - T, 0) with K_0 = n and T = floor(2 n / 5).

    Notes
    -----
    *Sensitivity 1.* T is public. Replacing one user changes each K_j by at most 1, and the maximum of numbers that
    change by at most 1 changes by at most 1.

    Both sides are needed: |K_j - T| would be the same for all j at which the best hypothesis fails nobody, and its
    least value may belong to a j where it fails everybody.
    """
    target = math.floor(n_users * LEFT_OVER)
    before = np.concatenate(([n_users], minimal_errors[:-1]))
    scores: npt.NDArray[np.int64] = np.maximum(np.maximum(target - before, minimal_errors - target), 0)
    return scores


def private_t(minimal_errors: npt.ArrayLike, *, n_users: int, epsilon: Epsilon, random_state: int | None = None) -> int:
    """Choose how many mistakes of a user to tolerate, so that hypotheses are told apart well: epsilon-DP.

    Parameters
    ----------
    minimal_errors : array-like of int with shape (m,)
        For t = 0, ..., m - 1 the exact minimum over all hypotheses h of the number of users on whom h makes more than t
        mistakes. Private. Values outside 0, ..., n_users are clamped.
    n_users : int
        The number of users n, >= 1; public.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, above 2**-35 and below 88.
    random_state : None or int
        None draws from the operating system's cryptographic generator. An integer makes the draw reproducible, for
        tests only, and warns.

    Returns
    -------
    int
        One of `candidates_for_t(m)`.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    *Guarantee.* epsilon-DP, pure, for the replacement of all that one user gave. *Proof.* Replacing one user changes
    each K(h; t) by at most 1, and so their minimum over h, if it is exact: a minimum over hypotheses found by a search
    in the data may change by more. The scores max(T - K(t_{j-1}), K(t_j) - T, 0) then have sensitivity 1 (T is public),
    and t is drawn by `ExponentialMechanism` with all of epsilon. Where there is one candidate nothing is drawn.

    *Use.* Give it 3/10 of the budget and draw the hypothesis with the rest, as `ThresholdClassifier` does. It costs a
    number of users that grows with ln(sqrt(m)) / epsilon, whereas bisection for the error (`private_min_error`) splits
    its budget over all its steps.

    Examples
    --------
    >>> private_t([900, 700, 360, 120], n_users=1000, epsilon=1) in (0, 1)
    True
    """
    return int(run(_program(minimal_errors, n_users, epsilon), source_of(random_state)))


def private_t_pmf(minimal_errors: npt.ArrayLike, *, n_users: int, epsilon: Epsilon) -> Pmf:
    """The exact distribution of `private_t` on the same arguments. **Not private**: for audits.

    Examples
    --------
    >>> private_t_pmf([900, 700, 360, 120], n_users=1000, epsilon=1).probabilities.round(3).tolist()
    [0.0, 1.0]
    """
    program = _program(minimal_errors, n_users, epsilon)
    return output_distribution(program, candidates_for_t(len(np.asarray(minimal_errors))))


def _program(minimal_errors: npt.ArrayLike, n_users: int, epsilon: Epsilon) -> AdaptiveMechanism:
    n = check_count(n_users, "n_users")
    errors = read_minimal_errors(minimal_errors, n)
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=1)
    return lambda draw: choose_t(draw, mechanism, len(errors), lambda: errors, n)


def read_minimal_errors(minimal_errors: Any, n_users: int) -> npt.NDArray[np.int64]:
    """The minimal errors for t = 0, ..., m - 1, clamped to 0, ..., n_users.

    Raises
    ------
    TypeError, ValueError
        By shape and type only; the values are private.
    """
    try:
        errors = np.asarray(minimal_errors)
    except ValueError:
        raise TypeError("minimal_errors must be a vector of integers, one for each t = 0, ..., m - 1") from None
    if errors.ndim != 1 or not errors.size:
        raise ValueError(
            f"minimal_errors must be a vector of integers, one for each t = 0, ..., m - 1; got the shape {errors.shape}"
        )
    if errors.dtype.kind not in "iu":
        raise TypeError(f"minimal_errors must be integers of at most 64 bits; got dtype {errors.dtype}")
    if n_users >= 2**62:
        raise ValueError(f"n_users must be below 2**62; got {n_users}")
    if errors.dtype.kind == "u":
        errors = np.minimum(errors.astype(np.uint64), np.uint64(n_users))
    clamped: npt.NDArray[np.int64] = np.clip(errors.astype(np.int64), 0, n_users)
    return clamped
