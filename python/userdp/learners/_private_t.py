"""How many mistakes of a user to tolerate, chosen privately.

Hypotheses h are compared by K(h; t): how many users h fails on more than t of at most m examples. Where h errs at a
rate p on everybody's examples, K(h; t) is n Pr[Bin(m, p) > t] on average, which grows fastest with p where about half
of the users are counted. So the best t is near m times the error of the best hypothesis, which is private. It is
found here by one draw, from the minimal errors K(t) = min_h K(h; t) alone: the least t that leaves few users over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp._numbers import Epsilon, positive
from userdp._pmf import Pmf
from userdp._randomness import source_of
from userdp.learners._program import Draw, Program, law_of, run
from userdp.mechanisms import ExponentialMechanism

__all__ = ["T_SHARE", "candidates_for_t", "choose_t", "private_t", "private_t_pmf", "read_minimal_errors", "t_shares"]

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
    draw: Draw,
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
    return law_of(program, candidates_for_t(len(np.asarray(minimal_errors))))


def _program(minimal_errors: npt.ArrayLike, n_users: int, epsilon: Epsilon) -> Program:
    n = positive(n_users, "n_users")
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
