"""Adaptive mechanisms: the same function is run to fit and enumerated to audit.

An *adaptive mechanism* is a function of one argument ``draw`` that reaches private data only to make arguments for
exact mechanisms, calls ``draw(mechanism, *arguments)`` for each of them, and returns an outcome that depends on what
was drawn only. `run` lets the mechanisms draw. `output_distribution` follows every path with its exact probability. So
the distribution that is audited is the distribution that is drawn from, whatever the function does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import gcd, lcm
from typing import Any, Protocol, TypeAlias

from userdp import _core
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.base import SupportsDraw

MAX_PATHS = 2**20


class Sampler(Protocol):
    """What an adaptive mechanism calls to draw from an exact one."""

    def __call__(self, mechanism: SupportsDraw, /, *arguments: Any) -> Any:
        """The outcome of the mechanism on these arguments."""
        ...


AdaptiveMechanism: TypeAlias = Callable[[Sampler], Hashable]


def run(adaptive: AdaptiveMechanism, source: _core.Source) -> Any:
    """The outcome where all mechanisms draw from one source."""
    return adaptive(lambda mechanism, *arguments: mechanism._draw(source, *arguments))


def output_distribution(adaptive: AdaptiveMechanism, outputs: Sequence[Hashable], *, max_paths: int = MAX_PATHS) -> Pmf:
    """The exact distribution of the outcome over its possible outputs, which follow from public parameters only."""
    # Weights by the total that they are over: paths have few totals, and an integer costs less than a reduced fraction.
    weights: dict[Hashable, dict[int, int]] = {output: {} for output in outputs}
    prefixes: list[_Path] = [_Path((), 1, 1)]
    done = 0
    while prefixes:
        path = prefixes.pop()
        branches: list[_Path] = []
        outcome = adaptive(PathEnumerator(path, branches, done + len(prefixes), max_paths))
        prefixes.extend(branches)
        done += 1
        if outcome not in weights:
            raise RuntimeError(f"an adaptive mechanism returned {outcome!r}, which is not among its public outputs")
        by_total = weights[outcome]
        by_total[path.total] = by_total.get(path.total, 0) + path.weight
    whole = lcm(*{total for by_total in weights.values() for total in by_total})
    found = [sum(weight * (whole // total) for total, weight in by_total.items()) for by_total in weights.values()]
    common = gcd(whole, *found)
    return Pmf(tuple(weights), tuple(weight // common for weight in found))


class _Path:
    """The first outcomes of the draws, and their probability together, weight / total."""

    def __init__(self, outcomes: tuple[Any, ...], weight: int, total: int) -> None:
        self.outcomes = outcomes
        self.weight = weight
        self.total = total


class PathEnumerator:
    """Draws the outcomes of a path; beyond its end the first possible one, noting the others."""

    def __init__(self, path: _Path, branches: list[_Path], others: int, max_paths: int) -> None:
        self.path = path
        self.branches = branches
        self.others = others
        self.max_paths = max_paths
        self.position = 0

    def __call__(self, mechanism: SupportsDraw, /, *arguments: Any) -> Any:
        position, self.position = self.position, self.position + 1
        if position < len(self.path.outcomes):
            return self.path.outcomes[position]
        pmf = mechanism.pmf(*arguments)
        possible = [(outcome, weight) for outcome, weight in zip(pmf.outputs, pmf.weights, strict=True) if weight]
        # A mechanism may draw without end.
        if self.others + len(self.branches) + len(possible) > self.max_paths:
            raise BudgetError(
                f"the exact distribution has more than {self.max_paths} paths; audit a smaller domain or fewer rounds"
            )
        before, above, total = self.path.outcomes, self.path.weight, self.path.total * pmf.total
        self.branches.extend(_Path((*before, outcome), above * weight, total) for outcome, weight in possible[1:])
        first, weight = possible[0]
        self.path.outcomes, self.path.weight, self.path.total = (*before, first), above * weight, total
        return first
