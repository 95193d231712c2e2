"""Chances that a private choice among scored candidates is a bad one, and the number of users that makes them small."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.exact.epsilon import positive_epsilon
from userdp.planning.problem import BASELINES, MOST_USERS, Method, NotPlanned, Problem

if TYPE_CHECKING:
    from userdp.planning.problem import Terms

Floats = npt.NDArray[np.float64]
Bits = npt.NDArray[np.bool_]

FLIPPED = 64
"""Up to so many candidates learners draw by permute-and-flip, see `userdp.estimators.selection`."""


def misses(
    scores: npt.ArrayLike, rate: float, bad: Bits, *, log_sizes: Floats | None = None, flips: bool = False
) -> Floats:
    """The probability that a bad candidate is drawn, for scores with the shape (..., candidates), lower ones better.

    A score that is larger by s is less likely by exp(-rate s): rate is epsilon / (2 sensitivity). A candidate may stand
    for many with the same score.
    """
    gaps = np.asarray(scores, dtype=np.float64)
    logarithms = -rate * (gaps - gaps.min(axis=-1, keepdims=True))
    if not flips:
        if log_sizes is not None:
            logarithms = logarithms + log_sizes
            logarithms -= logarithms.max(axis=-1, keepdims=True)
        weights = np.exp(logarithms)
        chance: Floats = (weights * bad).sum(axis=-1) / weights.sum(axis=-1)
        return chance
    # Permute-and-flip takes one of the successes, each equally likely: an integral over u in [0, 1] of polynomials of a
    # degree below the number of candidates, which Gauss's rule has without error.
    heads, total = np.exp(logarithms), np.zeros(gaps.shape[:-1])
    for node, weight in zip(*_rule(gaps.shape[-1] // 2 + 1), strict=True):
        kept = 1 - heads * (1 - node)
        total += weight * np.exp(np.log(kept).sum(axis=-1)) * (heads / kept * bad).sum(axis=-1)
    return total


@lru_cache(maxsize=256)
def _rule(n: int) -> tuple[list[float], list[float]]:
    """Gauss's nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


@lru_cache(maxsize=4096)
def _log_binomials(n: int) -> Floats:
    steps = np.log(np.arange(1, n + 1))
    logarithms = np.concatenate([[0.0], np.cumsum(steps)])
    found: Floats = logarithms[-1] - logarithms - logarithms[::-1]
    return found


def binomial(n: int, p: float) -> Floats:
    """The probabilities of 0, ..., n successes."""
    k = np.arange(n + 1)
    if p in (0.0, 1.0):
        certain: Floats = (k == n * p).astype(np.float64)
        return certain
    found: Floats = np.exp(_log_binomials(n) + k * math.log(p) + (n - k) * math.log1p(-p))
    return found


def users_for(failure: Callable[[int], float], beta: float, largest: int = MOST_USERS) -> float:
    """Where a falling probability of failure comes to beta: a number of users, with decimals."""
    low, high, above, below = 0, 1, 1.0, failure(1)
    while below > beta:
        if high >= largest:
            raise NotPlanned(f"more than {largest} users would be needed; raise alpha or epsilon")
        low, above, high = high, below, min(2 * high, largest)
        below = failure(high)
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        at = failure(middle)
        if at > beta:
            low, above = middle, at
        else:
            high, below = middle, at
    if below <= 0 or above <= below:
        return float(high)
    return low + (high - low) * math.log(above / beta) / math.log(above / below)


def draws_for(candidates: int) -> int:
    """How many draws of sums over users failures are means of, where each has so many candidates for t."""
    return min(max(2**12 // candidates, 2**8), 2**11)


def of_records(users: Callable[[Problem], float]) -> Callable[[Problem], float]:
    """The same when all records are used as if each were of one user, at epsilon / m: group privacy."""

    def grouped(problem: Problem) -> float:
        return users(problem.at(m=1, epsilon=positive_epsilon(problem.rate / problem.m))) / problem.m

    return grouped


def of_one_record(users: Callable[[Problem], float]) -> Callable[[Problem], float]:
    """The same with one record of each user."""
    return lambda problem: users(problem.at(m=1))


def term(users: Callable[[Problem], float]) -> Callable[[Problem], Terms]:
    """A number of users as the one term of a method."""
    return lambda problem: {"users at which reference data fail with probability beta": users(problem)}


def rounded_up(users: Callable[[Problem], float]) -> Callable[[Problem], int]:
    """A proved number as an integer, or why there is none."""

    def proved(problem: Problem) -> int:
        number = users(problem)
        if number > MOST_USERS:
            raise NotPlanned(f"more than {MOST_USERS} users would be needed; raise alpha or epsilon")
        return max(1, math.ceil(number * (1 + 1e-9)))

    return proved


def likely_enough(problem: Problem, candidates: float, epsilon: float) -> None:
    """Whether a third of beta is above what the weights of a private draw can tell, or why there is no number."""
    try:
        from userdp.estimators.selection import check_likely_enough
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    try:
        check_likely_enough(problem.beta, math.ceil(candidates), positive_epsilon(epsilon))
    except (ValueError, OverflowError) as error:
        raise NotPlanned(str(error)) from None


def selection_users(problem: Problem, log_candidates: float, deviations: float) -> float:
    """Users with one record each for which a candidate is chosen within alpha of the best, with probability 1 - beta.

    The errors of all candidates are within deviations sqrt(1 / n) of the truth with probability 1 - beta / 2, and the
    exponential mechanism, on counts of errors, misses the least one by 2 (log_candidates + ln(2 / beta)) / epsilon
    with probability beta / 2 at most. Permute-and-flip is no worse.
    """
    # A third of this beta is for the draw there, and half of it is here.
    likely_enough(problem, math.exp(log_candidates), problem.rate)
    draw = 2 * (log_candidates + math.log(2 / problem.beta)) / problem.rate * 1.001
    root = (2 * deviations + math.sqrt(4 * deviations**2 + 4 * draw * problem.alpha)) / (2 * problem.alpha)
    return root**2


def usual_ways(
    runs: Sequence[str],
    theorem: str,
    users: Callable[[Problem], float],
    of_one: Callable[[Problem], int] | None = None,
    grouped: Callable[[Problem], int] | None = None,
    rests: str = "nothing",
) -> tuple[Method, ...]:
    """The three usual ways of what works by sums over users, for which clipping and groups are one distribution."""
    # A user's mean, as of mistakes, is in a range; at epsilon it says what m records at epsilon / m do.
    found = ((of_one_record(users), of_one), (of_records(users), grouped), (of_records(users), grouped))
    return tuple(
        Method(
            name,
            each,
            rests=lambda problem: rests,
            theorem=theorem,
            proved=proved,
            terms=term(needed),
            baseline=name,
        )
        for name, each, (needed, proved) in zip(BASELINES, runs, found, strict=True)
    )


def rate_row(task: str, row: str | None = None, **given: Callable[[Problem], Any]) -> Callable[[Problem], Terms]:
    """The papers' rate of a task at the numbers of a problem."""
    from userdp.planning.rates import rate

    def terms(problem: Problem) -> Terms:
        values = {name: read(problem) for name, read in given.items()}
        values = {name: value for name, value in values.items() if value is not None}
        common: dict[str, Any] = {"m": problem.m, "epsilon": problem.rate, "alpha": problem.alpha, "beta": problem.beta}
        return rate(task, row=row, **common, **values).terms

    return terms
