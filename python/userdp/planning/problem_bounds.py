"""The lower bound of a problem: a number of users below which no method can do, or why none is known."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction

from userdp.exceptions import BudgetError
from userdp.planning.lower_bounds import lower_bound
from userdp.planning.problem import Problem
from userdp.planning.tasks import task_of

CALLED = {"n_points": "domain_size", "n_columns": "dimension"}
"""What lower bounds call a parameter of a task."""


def bound_of(problem: Problem) -> tuple[int | None, str, str]:
    """A number of people below which no method can do, or why none is known; and what it is about."""
    if problem.task == "finite":
        return None, "it depends on what the algorithm is to find out", ""
    known = inspect.signature(lower_bound).parameters
    named = ((CALLED.get(name, name), value) for name, value in problem.values)
    given = {name: value for name, value in named if name in known and value is not None}
    if problem.task == "selection":
        given["agreement"] = (1 + Fraction(problem.alpha)) / 2
    elif not math.isnan(problem.alpha):
        given["alpha"] = problem.alpha
    if task_of(problem.task).accuracy == "probability":
        given["beta"] = problem.beta
    if problem.task == "group_by":
        given.setdefault("neighbors", "replace")
    try:
        found = lower_bound(problem.task, m=problem.m, epsilon=problem.epsilon, delta=problem.delta, **given)
    except (ValueError, TypeError, BudgetError) as error:
        return None, str(error), ""
    if found.vacuous or found.n_users is None:
        return None, "whether fewer people could do is open", ""
    return found.n_users, "", found.holds_for
