"""Proved numbers of users for learners that estimate the least error, and for the search by private medians.

[LWY24, Theorem 4.6] and [LWY24, Theorem 5.2] as shipped, with constants: Massart's inequality in place of the theorems'
uniform convergence, and the gaps of binomial distributions computed in place of bounded from below. The proofs are in
docs/proofs/least_error.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from userdp.planning.chances import binomial, least_enough, likely_enough, rounded_up
from userdp.planning.problem import NotPlanned, Problem

MOST_ROWS = 2**12
MOST_ESTIMATES = 2**13
"""The gap is the least one over so many possible estimates of the least error."""
OF_WEIGHTS = 1.001
"""Weights of a private draw are rounded: what is added to its logarithms."""
FARTHEST = 80.0
"""Weights of a median are no less than e**-88 of the largest one."""


def _check(problem: Problem) -> None:
    try:
        import userdp.learners.threshold  # noqa: F401
    except ImportError as error:  # it needs scikit-learn, which the rest of planning does not
        raise NotPlanned(str(error)) from None
    if problem.m > MOST_ROWS:
        raise NotPlanned(f"proved for m up to {MOST_ROWS} only: take so many records of each user")
    if 24 / problem.alpha > MOST_ESTIMATES:
        raise NotPlanned(f"proved for alpha from {24 / MOST_ESTIMATES:.2g} only")


@lru_cache(maxsize=256)
def gap_of_comparisons(m: int, alpha: float) -> float:
    """How far shares of users are apart where `PrivateMinError` compares, at the guess for which that is least."""
    from userdp.learners.min_error import rounds_of
    from userdp.learners.tolerance import separation

    accuracy = Fraction(alpha) / 6
    steps = 2 ** rounds_of(accuracy)
    guesses = (Fraction(step, steps) for step in range(1, steps))
    inside = (guess for guess in guesses if guess + accuracy / 2 <= 1)
    return min(separation(m, float(guess), float(guess + accuracy / 2))[1] for guess in inside)


@lru_cache(maxsize=256)
def gap_of_choices(m: int, alpha: float, part: float) -> float:
    """The same between hypotheses that are worse by part alpha and the best ones, at the t of an estimate."""
    from userdp.learners.min_error import rounds_of
    from userdp.learners.threshold import t_of_error

    width = Fraction(alpha)
    steps, least = 2 ** rounds_of(width / 6), math.inf
    for step in range(steps):
        error = Fraction(step, steps)
        t = t_of_error(m, error, width)
        worse = float(error) + part * alpha
        if t is None or worse > 1:
            continue  # nothing is so bad
        more = binomial(m, worse)[t + 1 :].sum() - binomial(m, float(error + width / 6))[t + 1 :].sum()
        least = min(least, float(more))
    return least


def _rounds_of_estimate(alpha: float) -> int:
    from userdp.learners.min_error import rounds_of

    return rounds_of(Fraction(alpha) / 6)


def _noise(rate: float, draws: int, chance: float) -> float:
    """What none of so many two-sided geometric numbers exceeds, in size, but with that chance."""
    return math.log(2 * draws / chance) / rate


def users_of_surrogate(problem: Problem) -> float:
    """Users for `AgnosticPACClassifier(method="surrogate")` with the class itself, for m > 1.

    Each of three events has a third of beta: shares of users with more than t mistakes deviate for some hypothesis and
    t, by Massart's inequality; noise of a comparison is large; the draw misses the least score.
    """
    _check(problem)
    third, half = problem.beta / 3, problem.rate / 2
    size = problem["n_hypotheses"]
    likely_enough(problem, size, half)
    deviation = math.sqrt(math.log(2 * size / third) / 2)
    rounds = _rounds_of_estimate(problem.alpha)
    noise = _noise(half / rounds, rounds, third)
    compared, chosen = gap_of_comparisons(problem.m, problem.alpha), gap_of_choices(problem.m, problem.alpha, 1.0)
    draw = 2 * math.log(size / third) / half * OF_WEIGHTS

    def enough(n: int) -> bool:
        lost = deviation * math.sqrt(n)
        return n * compared / 2 >= lost + noise + 2 and n * chosen > 2 * lost + draw

    return float(least_enough(enough))


def users_of_medians(problem: Problem) -> float:
    """Users for `ThresholdClassifier(method="median")`.

    Each of four events has a quarter of beta: shares of users deviate, for all thresholds, intervals and tolerances;
    noise of an estimate, or of a comparison of the search, is large; a median misses. With 2 m n + 2 places of the ends
    of intervals, between which there is at most a part 1 / (m n) of the examples, intervals are between two of
    4 (m n + 2)^2 pairs, and shares move by m times that part at most.
    """
    from userdp.learners.min_error import accuracy
    from userdp.learners.threshold import DECAY, rounds_of_search
    from userdp.learners.tolerance import separation

    _check(problem)
    m, rate, quarter = problem.m, problem.rate, problem.beta / 4
    rounds, estimates = rounds_of_search(accuracy(problem.alpha)), _rounds_of_estimate(problem.alpha)
    first = 0.5 if m > 1 else 0.0
    medians, compared = (1 - first) / 4 * rate / rounds, (1 - first) * 0.75 * rate / (3 * rounds)
    tail = math.log(problem["n_points"] + 1) + math.log(rounds / quarter)
    if tail > FARTHEST:
        least = 4 * rounds * (problem["n_points"] + 1) * math.exp(-FARTHEST)
        raise NotPlanned(f"beta must be above {least:.2g}, as weights of the draw end somewhere")
    # A range that is left loses twice the noise of a comparison at most, in each round.
    searched = 2 * rounds * _noise(compared, 3 * rounds, quarter)
    draw = 2 * tail / medians * OF_WEIGHTS
    masses = (float(DECAY**k) for k in range(rounds))
    of_medians = min(separation(m, mass / 2, 2 * mass / 3)[1] for mass in masses)
    of_search = gap_of_choices(m, problem.alpha, 0.5) if m > 1 else problem.alpha / 2
    noise = _noise(rate * first / estimates, estimates, quarter) if m > 1 else 0.0
    of_estimate = gap_of_comparisons(m, problem.alpha) if m > 1 else math.inf

    def enough(n: int) -> bool:
        lost = math.sqrt(n * math.log(16 * (m * n + 2) ** 2 / quarter) / 2) + 2
        return (
            n * of_medians > 2 * lost + draw
            and n * of_search > 2 * lost + searched
            and n * of_estimate / 2 >= lost + noise + 2
        )

    return float(least_enough(enough))


proved_surrogate, proved_medians = rounded_up(users_of_surrogate), rounded_up(users_of_medians)
