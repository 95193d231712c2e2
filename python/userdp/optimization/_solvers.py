"""Which solvers there are for linear models: each plans a descent from a public problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from userdp.optimization._clipped_descent import clipped_plan
from userdp.optimization._descent import DescentPlan, DescentProblem

__all__ = ["SOLVERS", "Solver"]

Solver: TypeAlias = Callable[[DescentProblem], DescentPlan]

SOLVERS: dict[str, Solver] = {"auto": clipped_plan, "clipped": clipped_plan}
"""By the name that ``solver=`` takes. Plans follow from the problem alone, by public defaults."""
