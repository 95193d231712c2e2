"""The methods for means, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from userdp.estimation._choose import choose
from userdp.estimation._iterated import plan_gaussian, plan_iterated
from userdp.estimation._mean_method import MeanMethod, MeanProblem
from userdp.estimation._winsorized import plan_laplace, plan_paper, plan_practical

__all__ = ["METHODS"]

METHODS: Mapping[str, Callable[[MeanProblem], MeanMethod]] = {
    "auto": choose,
    "iterated": plan_iterated,
    "gaussian": plan_gaussian,
    "practical": plan_practical,
    "paper": plan_paper,
    "laplace": plan_laplace,
}
"""Each plans a release from public numbers."""
