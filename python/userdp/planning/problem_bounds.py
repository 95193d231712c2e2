"""The lower bound of a problem: a number of users below which no method can do, or why none is known."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from userdp.exceptions import BudgetError
from userdp.planning.lower_bounds import lower_bound
from userdp.planning.problem import Problem
from userdp.planning.tasks import task_of
from userdp.planning.tasks.regressions import LINEAR, LOGISTIC, reach
from userdp.planning.tasks.selection_chances import agreement

CALLED = {"n_points": "domain_size", "n_columns": "dimension"}
"""What lower bounds call a parameter of a task."""
REGRESSIONS = {LOGISTIC.name: "logistic", LINEAR.name: "linear"}
"""Models of the one task that lower bounds have for these."""


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
    named = ((CALLED.get(name, name), value) for name, value in problem.values)
    given = {name: value for name, value in named if name in known and value is not None}
    given.pop("neighbors", None)  # of counts and sums, and what others are for anyway
    if problem.task == "selection":
        given["agreement"] = agreement(problem)
    elif not math.isnan(problem.alpha):
        given["alpha"] = problem.alpha
    if task_of(problem.task).accuracy == "probability":
        given["beta"] = problem.beta
    task = problem.task
    if task in REGRESSIONS:
        given |= {"model": REGRESSIONS[task], "radius": reach(problem)}
        task = "regression"
    return _found(task, problem, given)


def _bound_of_totals(problem: Problem) -> tuple[int | None, str, str]:
    """Of one count, or of one sum in which a user has nothing or one record of the largest value."""
    # A root mean square error of alpha is, by Chebyshev, an error above 2 alpha in a quarter of all releases at most.
    if problem.task == "group_by" and problem["n_keys"] is None:
        return None, "where groups are found by their size, none is known for a group of one size", ""
    if 2 * problem.alpha >= 1:
        return None, "none is known for so coarse an answer", ""
    given = {"alpha": 2 * problem.alpha, "beta": "1/4", "neighbors": problem["neighbors"]}
    return _found("count" if problem.task == "group_by" else "sum", problem, given)


def _found(task: str, problem: Problem, given: Mapping[str, Any]) -> tuple[int | None, str, str]:
    try:
        found = lower_bound(task, m=problem.m, epsilon=problem.epsilon, delta=problem.delta, **given)
    except (ValueError, TypeError, BudgetError) as error:
        return None, str(error), ""
    if found.vacuous or found.n_users is None:
        return None, "whether fewer people could do is open", ""
    return found.n_users, "", found.holds_for
