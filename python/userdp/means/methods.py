"""The methods for means by name, and the rule of method="auto"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache

from userdp.means.iterated import plan_gaussian, plan_iterated
from userdp.means.plan import MeanMethod, MeanProblem
from userdp.means.winsorized import plan_laplace, plan_paper, plan_practical

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


METHODS: Mapping[str, Callable[[MeanProblem], MeanMethod]] = {
    "auto": choose,
    "iterated": plan_iterated,
    "gaussian": plan_gaussian,
    "practical": plan_practical,
    "paper": plan_paper,
    "laplace": plan_laplace,
}
"""Each plans a release from public numbers."""


@lru_cache(maxsize=64)
def planned_method(plan: Callable[[MeanProblem], MeanMethod], problem: MeanProblem) -> MeanMethod:
    """A plan for a problem, kept while it is in use: it may take tenths of a second to search."""
    return plan(problem)
