"""Planning counts by group and sums, by the noise with which `userdp.tables` releases them.

Their noise does not hang on the number of users, so that all numbers of users follow from its exact variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from userdp.exact.numbers import LogRatio, Neighbors, parse_level
from userdp.planning.bounds import LEAST_ALPHA, Known, known_of, named_count
from userdp.planning.chances import least_enough
from userdp.planning.fano import MARGIN
from userdp.planning.groups import LISTED, compare_groups, most_groups, of_listed, of_unlisted
from userdp.planning.hard_tasks import Term, group_terms
from userdp.planning.problem import (
    MOST_USERS,
    Asked,
    Bound,
    Method,
    NotPlanned,
    Parameter,
    Problem,
    Task,
    choice,
    counts_from,
    positive,
    record_delta,
)
from userdp.tables import Query, Schema, number
from userdp.tables import sum as total_of
from userdp.tables.compiled import compiled
from userdp.tables.noise import Budget, allot

EXACT = "the exact variance of the noise"
SUM_STEPS = 2**12
"""Of the grid on which values are rounded; it is fine enough not to matter."""


def _record_level(problem: Problem) -> tuple[Fraction | LogRatio, Fraction]:
    """Epsilon and delta of single records with which groups of m have those of a user."""
    if problem.m == 1:
        return problem.epsilon, problem.delta
    level = Fraction(float(parse_level(problem.epsilon)))
    return level / problem.m, record_delta(level, problem.delta, problem.m)


def _users(noise: float, alpha: float) -> int:
    """The least n for which noise of a total is at most alpha for each user."""
    if not noise / alpha <= MOST_USERS:
        raise NotPlanned(f"more than 2**{MOST_USERS.bit_length() - 1} users would be needed; raise alpha or epsilon")
    return max(1, math.ceil(noise / alpha))


# --- counts by group


def _most(problem: Problem) -> int:
    return most_groups(problem["n_keys"], problem["max_keys"])


def _listed(name: str, problem: Problem, most: int, epsilon: Fraction | LogRatio, delta: Fraction) -> float:
    """The noise of a count where the list of groups is public."""
    keys = problem["n_keys"]
    if keys is None:
        raise NotPlanned("it needs a public list of groups: give n_keys, how many there are")
    relation: Neighbors = problem["neighbors"]
    for way, noise, _ in of_listed(keys, min(most, keys), epsilon, delta, relation):
        if way == name:
            return noise
    raise NotPlanned(
        {
            "correlated": "noise in common is for several groups, delta > 0 and add-remove neighbors",
            "gaussian": "it needs delta > 0",
        }.get(name, "its noise is too wide to draw at this epsilon")
    )


def _count(name: str, problem: Problem) -> int:
    return _users(_listed(name, problem, _most(problem), problem.epsilon, problem.delta), problem.alpha)


def _least(problem: Problem, most: int, epsilon: Fraction | LogRatio, delta: Fraction) -> float:
    found, reasons = [], []
    for name in ("laplace", "gaussian"):
        try:
            found.append(_listed(name, problem, most, epsilon, delta))
        except NotPlanned as reason:
            reasons.append(str(reason))
    if not found:
        raise NotPlanned("; ".join(dict.fromkeys(reasons)))
    return min(found)


def _clipped_count(problem: Problem) -> int:
    return _users(_least(problem, _most(problem), problem.epsilon, problem.delta), problem.alpha)


def _grouped_count(problem: Problem) -> int:
    # A record is in one group.
    return _users(_least(problem, 1, *_record_level(problem)), problem.alpha)


def _unlisted(problem: Problem) -> int:
    """The least n for which a group of the share has a mean squared error of at most (alpha n)^2."""
    if not problem.delta:
        raise NotPlanned("which groups there are is private without a public list: it needs delta > 0")
    relation: Neighbors = problem["neighbors"]
    try:
        noise, shown = of_unlisted(_most(problem), problem.epsilon, problem.delta, relation)
    except ValueError as error:
        raise NotPlanned(str(error)) from None

    def enough(n: int) -> bool:
        users = math.floor(problem["share"] * n)
        hidden = float(1 - shown.release_probability(users))
        # A group that is hidden counts as 0.
        return math.hypot(noise, math.sqrt(hidden) * users) <= problem.alpha * n

    # From where groups of the share are nearly always shown, more users are better.
    return least_enough(enough, max(2, math.ceil(noise / problem.alpha)))


def _bounded(problem: Problem) -> str:
    """What is left out where it does not hold: users in more groups than are counted."""
    most = _most(problem)
    return f"no user in more than {most} group{'' if most == 1 else 's'}"


def _listed_needs(problem: Problem) -> str:
    keys = problem["n_keys"]
    return LISTED if keys is None or keys == _most(problem) else f"{LISTED}, {_bounded(problem)}"


def _grouped_needs(problem: Problem) -> str:
    """Records are counted, and not users."""
    return LISTED if problem.m == 1 else f"{LISTED}, no two records of a user in one group"


# --- bounds: how many users some groups have, of all datasets

COUNTED = "all releases of such counts or sums of all datasets of n users, at any n"
NEIGHBORS = Parameter("neighbors", "as of a session", choice("add-remove", "replace"), "add-remove")


def _bound(asked: Asked) -> dict[str, Term]:
    keys = asked.values.get("n_keys", 1)
    most = min(keys, asked.values.get("max_keys") or keys)
    replaced = asked["neighbors"] == "replace"
    return group_terms(keys, most, asked.alpha, asked.failure, asked.level, replace=replaced)


COUNT = Task(
    name="count",
    question="how many users there are, or have something",
    measure="the error as a share of all users",
    bound=Bound(COUNTED, _bound, (NEIGHBORS,)),
)


def _hard(problem: Problem, alpha: float) -> Known:
    """Of one count, or of one sum in which a user has nothing or the largest total."""
    # A root mean square error of alpha is, by Chebyshev, an error above 2 alpha in a quarter of all releases at most.
    if 2 * alpha >= 1:
        return None, "none is known for so coarse an answer", ""
    asked: dict[str, Any] = {"alpha": max(2 * alpha, LEAST_ALPHA) * (1 + MARGIN), "beta": "1/4"}
    assert COUNT.bound is not None
    return known_of(COUNT.bound, problem.task, problem, {"neighbors": problem["neighbors"]}, **asked)


def _hard_groups(problem: Problem) -> Known:
    if problem["n_keys"] is None:
        return None, "where groups are found by their size, none is known for a group of one size", ""
    return _hard(problem, problem.alpha)


def _hard_sum(problem: Problem) -> Known:
    return _hard(problem, problem.alpha * problem["max_value"] / total_of_user(problem))


def _check_groups(problem: Problem) -> None:
    _most(problem)
    if problem["n_keys"] is None and not problem.delta:
        raise ValueError("delta must be > 0 where n_keys is None: which groups there are is private then; got 0")


GROUP_BY = Task(
    name="group_by",
    question="how many users each group has",
    measure="the root mean square error of one group's count, as a share of all users,",
    parameters=(
        Parameter("n_keys", "how many groups the public list has; None where there is no list", counts_from(1), None),
        Parameter("max_keys", "in how many groups a user counts at most; None for all", counts_from(1), None),
        Parameter("share", "the share of all users whom a group without a list has", positive, 0.01),
        NEIGHBORS,
    ),
    methods=(
        *(
            Method(
                name,
                f"userdp.tables, {what}",
                needs=_listed_needs,
                theorem=EXACT,
                exact=True,
                proved=partial(_count, name),
            )
            for name, what in (
                ("laplace", "Laplace noise for listed groups"),
                ("gaussian", "Gaussian noise for listed groups"),
                ("correlated", "noise in common for listed groups (CorrelatedCounts)"),
            )
        ),
        Method(
            "threshold",
            "userdp.tables, groups that nobody listed",
            rests=_bounded,
            theorem="the exact variance of the noise, and the exact probability that a group is hidden",
            exact=True,
            proved=_unlisted,
        ),
        Method(
            "group privacy",
            "counts of records at epsilon / m",
            needs=_grouped_needs,
            theorem=EXACT,
            exact=True,
            proved=_grouped_count,
            baseline="group privacy",
        ),
        Method(
            "per-user clipping",
            "each user in max_keys groups, with the full noise",
            needs=_listed_needs,
            theorem=EXACT,
            exact=True,
            proved=_clipped_count,
            baseline="per-user clipping",
        ),
    ),
    accuracy="root mean square",
    check=_check_groups,
    bound=Bound(
        COUNTED,
        _bound,
        (
            named_count("n_keys", "groups"),
            named_count("max_keys", "in how many a user counts at most; by default in all", default=None),
            NEIGHBORS,
        ),
    ),
    hard=_hard_groups,
    errors=compare_groups,
    missing={
        "one record per person": "it counts every user in one group only, so that counts stay wrong however many users "
        "there are"
    },
)


# --- sums


def _spread(problem: Problem, total: float, epsilon: Fraction | LogRatio, delta: Fraction, gaussian: bool) -> float:
    """The noise of a sum to which a user adds from 0 to `total`."""
    relation: Neighbors = problem["neighbors"]
    if gaussian and not delta:
        raise NotPlanned("it needs delta > 0")
    query = compiled(Query().agg(s=total_of("x", max_total=total)), Schema(x=number(0, total, steps=SUM_STEPS)))
    budget = Budget("basic", epsilon, delta if gaussian else Fraction(0))
    try:
        made = allot(query, relation, budget)
    except ValueError as error:
        raise NotPlanned(str(error)) from None
    assert made.keyed is not None
    if gaussian and made.method != "gaussian":
        raise NotPlanned("userdp.tables takes Laplace noise here, which is less")
    (statistic, spread), *_ = [row for row in made.keyed.spreads if row[0].value is not None]
    assert statistic.value is not None
    return spread * statistic.value.unit


def total_of_user(problem: Problem) -> float:
    """The largest total that a user adds."""
    return problem.m * problem["max_value"] if problem["max_total"] is None else float(problem["max_total"])


def _sum(gaussian: bool, problem: Problem) -> int:
    total = total_of_user(problem)
    # In units of the bound of a record, as alpha is.
    spread = _spread(problem, 1.0, problem.epsilon, problem.delta, gaussian)
    return _users(spread * total / problem["max_value"], problem.alpha)


def _least_sum(problem: Problem) -> int:
    found, reasons = [], []
    for gaussian in (False, True):
        try:
            found.append(_sum(gaussian, problem))
        except NotPlanned as reason:
            reasons.append(str(reason))
    if not found:
        raise NotPlanned("; ".join(reasons))
    return min(found)


def _grouped_sum(problem: Problem) -> int:
    epsilon, delta = _record_level(problem)
    one = replace(problem.at(epsilon=epsilon, delta=delta), m=1)
    return _least_sum(one.at(max_total=None))


def _check_sum(problem: Problem) -> None:
    most = problem.m * problem["max_value"]
    if problem["max_total"] is not None and problem["max_total"] > most:
        raise ValueError(
            f"max_total must be at most m max_value = {most:g}, which is all that a user's records can add; got "
            f"{problem['max_total']:g}"
        )


def _is_cut(problem: Problem) -> bool:
    """Whether a user's total may be above what is counted of it."""
    return bool(total_of_user(problem) < problem.m * problem["max_value"])


def _clipped_needs(problem: Problem) -> str:
    return "max_total, above which a user's total is cut" if _is_cut(problem) else "nothing"


def _whole_needs(problem: Problem) -> str:
    return "totals of max_total at most, as single records are not cut" if _is_cut(problem) else "nothing"


_SUMS: tuple[tuple[str, Callable[[Problem], int], str, str], ...] = (
    ("laplace", partial(_sum, False), "userdp.tables.sum, Laplace noise", ""),
    ("gaussian", partial(_sum, True), "userdp.tables.sum, Gaussian noise", ""),
    ("group privacy", _grouped_sum, "the sum of records at epsilon / m", "group privacy"),
    ("per-user clipping", _least_sum, "userdp.tables.sum with max_total", "per-user clipping"),
)

SUM = Task(
    name="sum",
    question="the sum of all users' records, of which a user's total is cut at max_total",
    measure="the root mean square error of the sum for each user (divided by their number), in units of max_value,",
    parameters=(
        Parameter("max_value", "records are from 0 to it", positive, 1.0),
        Parameter("max_total", "a user's total is cut there; None for m max_value, where none is", positive, None),
        NEIGHBORS,
    ),
    methods=tuple(
        Method(
            name,
            runs,
            needs=_whole_needs if baseline == "group privacy" else _clipped_needs,
            kept=(lambda problem: not _is_cut(problem)) if baseline == "group privacy" else (lambda problem: True),
            theorem=f"{EXACT}, where the grid of values is too fine to matter",
            exact=True,
            proved=proved,
            baseline=baseline,
        )
        for name, proved, runs, baseline in _SUMS
    ),
    largest_alpha=math.inf,
    accuracy="root mean square",
    check=_check_sum,
    bound=COUNT.bound,
    hard=_hard_sum,
    missing={"one record per person": "a sum of one record of each user is another sum; for it, ask with m=1"},
)
