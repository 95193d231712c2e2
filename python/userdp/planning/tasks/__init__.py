"""The tasks that can be planned, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from userdp.exact.numbers import short_repr
from userdp.planning.problem import Task
from userdp.planning.tasks.convex import SCO
from userdp.planning.tasks.distributions import DISCRETE, GAUSSIAN, GAUSSIAN_MEAN, PRODUCT
from userdp.planning.tasks.finite import FINITE, TESTING
from userdp.planning.tasks.hypotheses import HYPOTHESES
from userdp.planning.tasks.means import MEAN
from userdp.planning.tasks.pac import AGNOSTIC, FINITE_CLASS, PAC
from userdp.planning.tasks.quantiles import QUANTILE
from userdp.planning.tasks.regressions import DESCENT, LINEAR, LOGISTIC, REGRESSION
from userdp.planning.tasks.selection import SELECTION
from userdp.planning.tasks.tables import COUNT, GROUP_BY, SUM
from userdp.planning.tasks.thresholds import THRESHOLD

ALL_TASKS: Mapping[str, Task] = MappingProxyType(
    {
        task.name: task
        for task in (
            MEAN,
            SELECTION,
            FINITE,
            THRESHOLD,
            PAC,
            AGNOSTIC,
            SUM,
            GROUP_BY,
            QUANTILE,
            DISCRETE,
            PRODUCT,
            GAUSSIAN_MEAN,
            GAUSSIAN,
            HYPOTHESES,
            LOGISTIC,
            LINEAR,
            SCO,
            TESTING,
            COUNT,
            FINITE_CLASS,
            REGRESSION,
            DESCENT,
        )
    }
)


TASKS: Mapping[str, Task] = MappingProxyType({name: task for name, task in ALL_TASKS.items() if task.methods})
"""Those with methods; the others have a bound, or errors with so many users, only."""


def task_of(name: str) -> Task:
    """The task of a name, or an error that lists the known ones."""
    if not isinstance(name, str) or name not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}; got {short_repr(name)}")
    return TASKS[name]
