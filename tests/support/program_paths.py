"""All paths of a program, and what its draws may tell together.

If on every path the arguments of each draw change by at most the sensitivity that the mechanism is made for, between
neighbors that drew the same before, and the mechanisms' epsilons add up to at most epsilon on every path, then by
adaptive composition the program is epsilon-DP. That is sharper than the distribution of a program's outcome, which
hides much of what the draws lose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from userdp import Pmf
from userdp.mechanisms import GroupedScores
from userdp.mechanisms.composed import AdaptiveMechanism

Draws = list[tuple[Any, tuple[Any, ...], Any]]
"""Of one path: mechanism, arguments, outcome."""


def paths_of(program: AdaptiveMechanism) -> dict[tuple[Any, ...], Draws]:
    """Every path by its outcomes."""
    found = {}
    pending: list[tuple[Any, ...]] = [()]
    while pending:
        begun, draws = pending.pop(), []

        def draw(mechanism: Any, /, *arguments: Any, begun: tuple[Any, ...] = begun, draws: Draws = draws) -> Any:
            if len(draws) < len(begun):
                outcome = begun[len(draws)]
            else:
                pmf = mechanism.pmf(*arguments)
                outcome, *others = [o for o, weight in zip(pmf.outputs, pmf.weights, strict=True) if weight]
                before = tuple(past for _, _, past in draws)
                pending.extend((*before, other) for other in others)
            draws.append((mechanism, arguments, outcome))
            return outcome

        program(draw)
        found[tuple(outcome for _, _, outcome in draws)] = draws
    return found


def distance(a: Any, b: Any) -> float:
    """By how much arguments differ: the largest change of a score, infinite where they cannot be compared."""
    if isinstance(a, GroupedScores):
        first, second = (np.array([score for x, y, score in g for _ in range(x, y + 1)]) for g in (a, b))
        return distance(first, second) if (a.first, a.last) == (b.first, b.last) else float("inf")
    if a is None or b is None:
        return 0 if a is b else float("inf")
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0)) if np.shape(a) == np.shape(b) else np.inf


def largest_change(
    program_of: Callable[[Any], AdaptiveMechanism], pairs: Iterable[tuple[Any, Any]]
) -> tuple[float, float]:
    """The largest change of an argument between neighbors, and the largest sum of epsilons along a path.

    The programs must take the same paths on all datasets; infinite change if they do not.
    """
    known: dict[Any, dict[tuple[Any, ...], Draws]] = {}

    def paths(dataset: Any) -> dict[tuple[Any, ...], Draws]:
        if dataset not in known:
            known[dataset] = paths_of(program_of(dataset))
        return known[dataset]

    epsilons: dict[int, float] = {}

    def epsilon_of(mechanism: Any) -> float:
        # By identity, as `known` keeps them all.
        if id(mechanism) not in epsilons:
            epsilons[id(mechanism)] = mechanism.certified_epsilon
        return epsilons[id(mechanism)]

    change = spent = 0.0
    for x, x2 in pairs:
        first, second = paths(x), paths(x2)
        if first.keys() != second.keys():
            return float("inf"), float("inf")
        for outcomes, draws in first.items():
            for (mechanism, arguments, _), (mechanism2, arguments2, _) in zip(draws, second[outcomes], strict=True):
                if epsilon_of(mechanism) != epsilon_of(mechanism2):
                    return float("inf"), float("inf")
                change = max([change, *map(distance, arguments, arguments2)])
            spent = max(spent, sum(epsilon_of(mechanism) for mechanism, _, _ in draws))
    return change, spent


def worst_loss(program_of: Callable[[Any], AdaptiveMechanism], pairs: Iterable[tuple[Any, Any]]) -> float:
    """The largest privacy loss of everything that is drawn along a path, between neighbors; infinite if paths differ.

    What a learner releases is a function of it, so this is an upper bound of the learner's loss, and sharper than what
    the distribution of its outcome shows.
    """
    known: dict[Any, dict[tuple[Any, ...], float]] = {}

    def logarithms(dataset: Any) -> dict[tuple[Any, ...], float]:
        if dataset not in known:
            known[dataset] = {
                outcomes: sum(_logarithm(mechanism.pmf(*arguments), outcome) for mechanism, arguments, outcome in draws)
                for outcomes, draws in paths_of(program_of(dataset)).items()
            }
        return known[dataset]

    loss = 0.0
    for x, x2 in pairs:
        first, second = logarithms(x), logarithms(x2)
        if first.keys() != second.keys():
            return float("inf")
        loss = max(loss, *(abs(logarithm - second[outcomes]) for outcomes, logarithm in first.items()))
    return loss


def _logarithm(pmf: Pmf, outcome: Any) -> float:
    return math.log(pmf.weights[pmf.outputs.index(outcome)]) - math.log(pmf.total)
