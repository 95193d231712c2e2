"""Planning a quantile of users' records, as `userdp.tables.quantile` releases it."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from userdp.exact.numbers import open_unit_interval
from userdp.planning import packings
from userdp.planning.bounds import by_packings, named_count
from userdp.planning.chances import Floats, of_one_record, of_records, rounded_up, term, users_for
from userdp.planning.problem import Bound, Method, NotPlanned, Parameter, Problem, Task, choice, counts_from
from userdp.tables import quantile
from userdp.tables.quantiles import FARTHEST, WEIGHT, levels_of, sensitivity_of, unit_of

MOST_POINTS = 2**21
"""Bins that a quantile may have."""
NODES = 256
"""Sampling errors that are looked at, equally likely ones."""


def _share(value: object, name: str) -> Fraction:
    try:
        return quantile("x", value).shares[0]
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("shares", name)) from None


def sensitivity(problem: Problem) -> float:
    """How far one user moves the cost of a value, in users."""
    level = levels_of([problem["share"]])[0]
    return sensitivity_of(level, problem["neighbors"]) / (WEIGHT * unit_of(level))


def users_of_weights(problem: Problem) -> float:
    """Users for which the rank is off by more than alpha with probability beta, on a fine grid of even records."""
    q, alpha = float(problem["share"]), problem.alpha
    spread = math.sqrt(q * (1 - q) / problem.m)
    normal = np.array([NormalDist().inv_cdf((place + 0.5) / NODES) for place in range(NODES)])
    per_user = problem.rate / (2 * sensitivity(problem))

    def failure(n: int) -> float:
        # A value at the rank q + r of the users has a cost of n |r|; the errors of sampling are added to the rank.
        middle = np.clip(normal * (spread / math.sqrt(n)), -q, 1 - q)
        low, high = -q - middle, 1 - q - middle
        inside = _mass(np.maximum(low, -alpha - middle), np.minimum(high, alpha - middle), n * per_user)
        return float(1 - (inside / _mass(low, high, n * per_user)).mean())

    return users_for(failure, problem.beta)


def _mass(low: Floats, high: Floats, rate: float) -> Floats:
    """The integral of rate exp(-rate |r|) from low to high, 0 where low is above."""

    def upto(r: Floats) -> Floats:
        below: Floats = np.exp(-rate * np.abs(r))
        return np.where(r < 0, below, 2 - below)

    return np.maximum(upto(high) - upto(np.minimum(low, high)), 0.0) + 1e-300


def _proved(problem: Problem) -> float:
    # Each with half of beta: the shares of the n m records up to each value are within s of the truth, by Hoeffding's
    # inequality at each value of the grid; and no value whose cost is above 2 S ln(2 points / beta) / epsilon is drawn,
    # as the best one has a cost of 0.
    points = problem["n_points"]
    if math.log(2 * points / problem.beta) > FARTHEST:
        raise NotPlanned(
            f"beta must be above {2 * points * math.exp(-FARTHEST):.2g}, as weights of the draw end somewhere"
        )
    off = 2 * sensitivity(problem) * math.log(2 * points / problem.beta) / problem.rate * 1.001
    deviations = math.sqrt(math.log(4 * points / problem.beta) / (2 * problem.m))
    return ((deviations + math.sqrt(deviations**2 + 4 * off * problem.alpha)) / (2 * problem.alpha)) ** 2


THEOREM = "Hoeffding's inequality at each value of the grid, and the tail of the exponential mechanism"

QUANTILE = Task(
    name="quantile",
    question="the value below which a share of all records is, drawn independently from one distribution by all users",
    measure="how far the value's rank is from the share",
    parameters=(
        Parameter("n_points", "how many values the public grid has", counts_from(2, MOST_POINTS), called="domain_size"),
        Parameter("share", "which quantile, as 1/2 for the median", _share, Fraction(1, 2)),
        Parameter("neighbors", "as of a session", choice("add-remove", "replace"), "add-remove"),
    ),
    methods=(
        Method(
            "weights",
            "userdp.tables.quantile: each user's records share one weight",
            theorem=THEOREM,
            proved=rounded_up(_proved),
            terms=term(users_of_weights),
        ),
        Method(
            "one record per person",
            "userdp.tables.quantile on the first record of each user",
            theorem=THEOREM,
            proved=rounded_up(of_one_record(_proved)),
            terms=term(of_one_record(users_of_weights)),
            baseline="one record per person",
        ),
        Method(
            "group privacy",
            "userdp.tables.quantile at epsilon / m where each record is a user",
            theorem=THEOREM,
            proved=rounded_up(of_records(_proved)),
            terms=term(of_records(users_of_weights)),
            baseline="group privacy",
        ),
    ),
    data="records are even over the grid, independently of each other and of whose they are",
    largest_alpha=0.5,
    bound=Bound(
        "all releases of a value of the grid, of all distributions on it",
        by_packings(lambda asked: packings.quantiles(asked["domain_size"], asked["share"], asked.alpha, asked.m)),
        (
            named_count("domain_size", "values on the grid", 2),
            Parameter("share", "which quantile, in (0, 1)", open_unit_interval, 0.5),
        ),
    ),
    missing={"per-user clipping": "'weights' is that: whatever number of records a user has, they weigh one together"},
)
