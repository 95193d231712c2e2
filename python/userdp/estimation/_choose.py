"""The rule of ``method="auto"``: the least predicted error, from public numbers only."""

from __future__ import annotations

from contextlib import suppress

from userdp.estimation._iterated import plan_iterated
from userdp.estimation._mean_method import MeanMethod, MeanProblem
from userdp.estimation._winsorized import plan_laplace, plan_practical

__all__ = ["choose"]

CLEARLY = 0.9
"""What another method's predicted error must be below, of that of the iterated mean, which is better proven."""


def choose(problem: MeanProblem) -> MeanMethod:
    """The method to use when the user names none.

    Depends on the numbers of users and columns, bound, spread, epsilon and delta only.
    """
    iterated = plan_iterated(problem)
    if problem.private_radius:
        return iterated  # the others have no search for it
    others = []
    for plan in (plan_practical,) if problem.delta else (plan_practical, plan_laplace):
        with suppress(ValueError):  # its mechanisms do not reach so small an epsilon
            others.append(plan(problem))
    best = min(others, key=lambda method: method.predicted_error(), default=iterated)
    return best if best.predicted_error() < CLEARLY * iterated.predicted_error() else iterated
