"""Planning thresholds on one feature, `userdp.learners.ThresholdClassifier`."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from userdp.learners.tolerance import candidates_for_t
from userdp.planning import packings
from userdp.planning.bounds import by_packings, named_count
from userdp.planning.chances import (
    Floats,
    binomial,
    draws_for,
    miss_of_score,
    of_one_record,
    of_records,
    rate_row,
    rounded_up,
    selection_users,
    term,
    users_for,
    usual_ways,
)
from userdp.planning.least_error import proved_medians
from userdp.planning.problem import Bound, Method, NotSimulated, Parameter, Problem, Task, between, counts_from

PLACES = 64
"""Examples of the reference data are at so many neighboring points; the label changes in their middle."""
MOST_ROWS = 2**12
"""Of a user, whose mistakes are drawn here."""
USERS, SEED = 1024, 5
"""What the terms are computed with: users drawn once, and normal approximations of sums over users."""


def log_sizes(n_points: int) -> Floats:
    """Logarithms of how many thresholds make the same mistakes: those between two places, and all beyond an end."""
    outside = n_points - PLACES
    first = outside // 2
    return np.log(np.array([first + 1, *[1] * (PLACES - 1), outside - first + 1], dtype=np.float64))


def excess(eta: float) -> Floats:
    """How much worse than the best one each threshold is."""
    return (1 - 2 * eta) * np.abs(np.arange(PLACES + 1) - PLACES // 2) / PLACES


def mistakes(n_users: int, m: int, eta: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Users of the reference data: the mistakes of each of them by each threshold."""
    right = np.arange(PLACES) >= PLACES // 2
    ones = np.where(right, 1 - eta, eta) / PLACES
    counts = rng.multinomial(m, np.concatenate([ones, 1 / PLACES - ones]), size=n_users)
    missed = np.zeros((n_users, PLACES + 1), dtype=np.int64)
    # Examples up to the threshold are called 0, those above it 1.
    missed[:, 1:] = np.cumsum(counts[:, :PLACES], axis=1)
    missed[:, :-1] += np.cumsum(counts[:, : PLACES - 1 : -1], axis=1)[:, ::-1]
    return missed


def chance_of_miss(
    scores: Floats, n_users: float, rate: float, m: int, alpha: float, eta: float, n_points: int
) -> Floats:
    """The probability of a threshold that is worse than alpha, for scores of shape (candidates for t, ..., thresholds).

    By the method "score".
    """
    bad = excess(eta) > alpha + 1e-12
    return miss_of_score(scores, n_users, rate, bad, log_sizes=log_sizes(n_points))


@lru_cache(maxsize=16)
def _fields(m: int, eta: float) -> tuple[Floats, npt.NDArray[np.float32]]:
    """Of the numbers of users that each threshold fails, for each t: the mean for one user, and centered draws."""
    rng = np.random.default_rng(SEED)
    missed, tolerated = mistakes(USERS, m, eta, rng), candidates_for_t(m)
    normal = rng.standard_normal((draws_for(len(tolerated)), USERS)).astype(np.float32) / np.float32(math.sqrt(USERS))
    rates = eta + excess(eta)
    # Pr[Bin(m, e) > t], for thresholds on one side of the best one, as the other side is alike.
    side = np.array([1 - np.cumsum(binomial(m, e)) for e in rates[: PLACES // 2 + 1]])[:, list(tolerated)]
    means = np.concatenate([side, side[-2::-1]]).T
    drawn = np.empty((len(tolerated), len(normal), PLACES + 1), dtype=np.float32)
    for place, t in enumerate(tolerated):
        fails = (missed > t).astype(np.float32)
        drawn[place] = normal @ (fails - fails.mean(axis=0))
    return means, drawn


def users_of_score(problem: Problem) -> float:
    """Users for which the method "score" misses alpha with probability beta, on reference data."""
    m, alpha, eta, n_points = problem.m, problem.alpha, problem["eta"], problem["n_points"]
    if m > MOST_ROWS:
        raise NotSimulated(f"simulated for m up to {MOST_ROWS} only")
    means, drawn = _fields(m, eta)

    def failure(n: int) -> float:
        scores = np.clip(n * means[:, None, :] + math.sqrt(n) * drawn, 0, n)
        return float(chance_of_miss(scores, n, problem.rate, m, alpha, eta, n_points).mean())

    return users_for(failure, problem.beta)


def _proved(problem: Problem) -> float:
    # Massart's inequality for two distribution functions: mistakes of threshold u are examples up to u with label 1,
    # and those above it with label 0. Each share is within s of its mean for all u, but for 2 exp(-2 n s^2).
    deviations = 2 * math.sqrt(math.log(8 / problem.beta) / 2)
    return selection_users(problem, math.log(problem["n_points"] + 1), deviations)


THEOREM = "Massart's inequality for both kinds of mistakes, and the tail of the exponential mechanism"
ROW = "LWY24: Table 1, thresholds"

THRESHOLD = Task(
    name="threshold",
    question="the best threshold on one feature",
    measure="the error in excess of the least one",
    parameters=(
        Parameter(
            "n_points",
            "how many points a feature may have, in public",
            counts_from(PLACES, 2**63),
            called="domain_size",
        ),
        Parameter(
            "eta", "which part of the labels no threshold gets right, for calibrated numbers", between(0, 0.49), 0.1
        ),
    ),
    methods=(
        Method(
            "score",
            "ThresholdClassifier()",
            row=ROW,
            rate=rate_row("threshold", domain_size=lambda problem: problem["n_points"]),
            terms=term(users_of_score),
        ),
        Method(
            "median",
            "ThresholdClassifier(method='median')",
            row=ROW,
            rate=rate_row("threshold", domain_size=lambda problem: problem["n_points"]),
            theorem="[LWY24, Theorem 5.2] with Massart's inequality and computed gaps, see userdp.planning.least_error",
            proved=proved_medians,
        ),
        *usual_ways(
            (
                "ThresholdClassifier() on the first record of each user",
                "ThresholdClassifier(epsilon=epsilon / m) where each record is a user",
                "the exponential mechanism on sums of users' mean numbers of mistakes, each in [0, 1]",
            ),
            THEOREM,
            users_of_score,
            rounded_up(of_one_record(_proved)),
            rounded_up(of_records(_proved)),
        ),
    ),
    data=(
        f"examples are spread evenly over {PLACES} neighboring points among n_points, the label changes in their "
        "middle, and a part eta of the labels is wrong"
    ),
    largest_alpha=0.5,
    bound=Bound(
        "all learners that answer with a threshold, of all distributions of labeled points",
        by_packings(lambda asked: packings.thresholds(asked["domain_size"], asked.alpha, asked.m)),
        (named_count("domain_size", "points 1, ..., N of the feature"),),
    ),
)
