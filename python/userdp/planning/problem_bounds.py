"""The lower bound of a problem: a number of users below which no method can do, or why none is known."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from userdp.exceptions import BudgetError
from userdp.planning.fano import MARGIN
from userdp.planning.lower_bounds import LEAST_ALPHA, lower_bound
from userdp.planning.problem import Problem
from userdp.planning.tasks import task_of
from userdp.planning.tasks.regressions import LINEAR, LOGISTIC, reach
from userdp.planning.tasks.selection_chances import agreement
from userdp.planning.tasks.tables import total_of_user

CALLED = {"n_points": "domain_size", "n_columns": "dimension"}
"""What lower bounds call a parameter of a task."""
REGRESSIONS = {LOGISTIC.name: "logistic", LINEAR.name: "linear"}
"""Models of the one task that lower bounds have for these."""
HARD_ANYWAY = ("homogeneous", "eta", "smoothness")
"""What is promised or chosen by these, the hard distributions have: records of one distribution, noise of labels of any
share, and losses that are linear. What any other parameter that bounds do not know promises, they may break."""
NEAR = "all estimates of the mean of users in the ball (or cube) whose means are within user_std of it (in RMS)"


@lru_cache(maxsize=1024)
def bound_of(problem: Problem) -> tuple[int | None, str, str]:
    """A number of people below which no method can do, or why none is known; and what it is about."""
    if problem.task == "finite":
        return None, "it depends on what the algorithm is to find out", ""
    if problem.task in ("group_by", "sum"):
        return _bound_of_totals(problem)
    if dict(problem.values).get("neighbors") == "add-remove":
        return None, "it is known for neighbors='replace' only", ""
    known = inspect.signature(lower_bound).parameters
    named = {CALLED.get(name, name): value for name, value in problem.values if value is not None}
    given = {name: value for name, value in named.items() if name in known}
    given.pop("neighbors", None)  # of counts and sums, and what others are for anyway
    if problem.task == "selection":
        given["agreement"] = agreement(problem)
    elif not math.isnan(problem.alpha):
        given["alpha"] = problem.alpha
    if task_of(problem.task).accuracy == "probability":
        given["beta"] = problem.beta
    if named.pop("user_std", None) is not None:
        return _bound_of_near_users(problem, given)
    for name, value in named.items():
        if value is not False and name not in (*known, *HARD_ANYWAY):
            return None, f"the bound for all distributions does not hold under {name}={value}, a promise", ""
    task = problem.task
    if task in REGRESSIONS:
        given |= {"model": REGRESSIONS[task], "radius": reach(problem)}
        task = "regression"
    return _found(task, problem, given)


def _bound_of_near_users(problem: Problem, given: Mapping[str, Any]) -> tuple[int | None, str, str]:
    """Of means of users who are near each other: by users whose records are all alike, which m does not help."""
    # No user is farther from the middle of a smaller ball, or of a smaller cube, than user_std.
    corners = math.sqrt(problem["dimension"]) if problem["norm"] == "max" else 1.0
    size = min(problem["max_norm"], problem["user_std"] * (1 - MARGIN) / corners)
    near, none, _ = _found("mean", problem.at(m=1), {**given, "max_norm": size})
    # And a user at the mean is at no distance from it: what few users say, whatever they have, is by such ones.
    few, few_none, _ = _found("mean", problem, given, "few users")
    least = max(near or 0, few or 0)
    return (least, "", NEAR) if least else (None, none or few_none, "")


def _bound_of_totals(problem: Problem) -> tuple[int | None, str, str]:
    """Of one count, or of one sum in which a user has nothing or the largest total."""
    # A root mean square error of alpha is, by Chebyshev, an error above 2 alpha in a quarter of all releases at most.
    if problem.task == "group_by" and problem["n_keys"] is None:
        return None, "where groups are found by their size, none is known for a group of one size", ""
    alpha = 2 * problem.alpha
    if problem.task == "sum":
        alpha *= problem["max_value"] / total_of_user(problem)
    if alpha >= 1:
        return None, "none is known for so coarse an answer", ""
    alpha = max(alpha, LEAST_ALPHA) * (1 + MARGIN)
    given = {"alpha": alpha, "beta": "1/4", "neighbors": problem["neighbors"]}
    return _found("count" if problem.task == "group_by" else "sum", problem, given)


def _found(
    task: str, problem: Problem, given: Mapping[str, Any], term: str | None = None
) -> tuple[int | None, str, str]:
    """The bound, or one of its terms only."""
    try:
        found = lower_bound(task, m=problem.m, epsilon=problem.epsilon, delta=problem.delta, **given)
    except (ValueError, TypeError, BudgetError) as error:
        return None, str(error), ""
    users = found.n_users if term is None else int(found.terms.get(term, 1))
    if users is None or users <= 1:
        return None, "whether fewer people could do is open", ""
    return users, "", found.holds_for
