"""Which solvers there are for linear models: each plans a descent from a public problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from userdp.optimization._clipped_descent import clipped_plan
from userdp.optimization._descent import DescentPlan, DescentProblem
from userdp.optimization._gradient_plans import GradientOptions, winsorized_plan
from userdp.optimization._phased_erm import PhasedPlan
from userdp.stability import PublicSeed

__all__ = ["SOLVERS", "Solver"]

Solver: TypeAlias = Callable[[DescentProblem, PublicSeed], DescentPlan]


def _clipped(problem: DescentProblem, seed: PublicSeed) -> DescentPlan:
    return clipped_plan(problem)


def _winsorized(problem: DescentProblem, seed: PublicSeed) -> DescentPlan:
    return winsorized_plan(problem, GradientOptions(), seed)


def _phased(problem: DescentProblem, seed: PublicSeed) -> DescentPlan:
    return PhasedPlan(problem, GradientOptions(variant="strongly-convex"), seed)


SOLVERS: dict[str, Solver] = {"auto": _clipped, "clipped": _clipped, "phased": _phased, "winsorized": _winsorized}
"""By the name that ``solver=`` takes. Plans follow from the problem and public randomness alone, by public defaults."""
