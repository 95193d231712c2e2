"""The additive engine: totals within a certified distance, and windows of the sorted statistics.

Source: docs/proofs/delstab_paper.md, "Which relations are used" and "Windows".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp import _core
from userdp._delstab.kept import Law
from userdp._delstab.relation import InnerLaws, normalised
from userdp._evaluation import Totals, call_on, checked_masses
from userdp._masses import ExactMasses
from userdp.algorithms import AdditiveAlgorithm
from userdp.exceptions import BudgetError

__all__ = ["TotalLaws", "WindowStability", "certified", "smallest_window"]

MAX_TOTALS = 100_000
"""Totals in the public range, each a call of `pmf_of_total`."""
MAX_COMPARISONS = 20_000_000
"""Pairs of totals compared to certify a distance."""


@dataclass(frozen=True)
class TotalLaws:
    """The algorithm on every total that n - D users may have, and the distance that they tolerate.

    Attributes
    ----------
    low : int
        The smallest statistic.
    laws : list
        Exact masses for the totals of (statistic - low): 0, 1, ...
    distance : int
        All totals within this distance are indistinguishable at the inner level; -1 if not even equal ones are.
    """

    low: int
    laws: list[ExactMasses]
    distance: int


def certified(algorithm: AdditiveAlgorithm, kept: int, deletions: int, inner: InnerLaws) -> TotalLaws:
    """Evaluate the algorithm on all totals of `kept` users, and find the largest certified distance.

    Nothing here depends on data, so errors may tell everything.

    Raises
    ------
    BudgetError
        When the public range has too many totals.
    RuntimeError, ValueError, TypeError
        Naming the total, when the algorithm fails on one.
    """
    low, high = algorithm.statistic_range
    count = kept * (high - low) + 1
    if count > MAX_TOTALS:
        raise BudgetError(
            f"{kept} kept users with statistics in {low}..{high} have {count:,} totals (limit {MAX_TOTALS:,}); "
            "a narrower statistic_range or a coarser statistic has fewer"
        )
    laws = []
    for total in range(kept * low, kept * high + 1):
        where = Totals(f"with total {total} of {kept} users")
        returned = call_on(lambda total: algorithm.pmf_of_total(total, kept), total, where)
        laws.append(normalised(checked_masses(returned, inner.outputs, f"the pmf of the algorithm {where}")))
    cap = min(deletions, kept) * (high - low)
    return TotalLaws(low, laws, _distance(laws, min(cap, MAX_COMPARISONS // count), inner))


def _distance(laws: list[ExactMasses], cap: int, inner: InnerLaws) -> int:
    """Largest t <= cap such that all laws within t of each other are compatible; by doubling, then halving."""

    def compatible(first: int, last: int) -> bool:
        pairs = [(i, i + gap) for gap in range(first, last + 1) for i in range(len(laws) - gap)]
        worst = _core.family_worst(laws, pairs, inner.level, inner.delta) if pairs else None
        return worst is None or not worst[5]

    if not compatible(0, 0):
        return -1
    known, step = 0, 1
    while known < cap:
        reach = min(known + step, cap)
        if compatible(known + 1, reach):
            known, step = reach, 2 * step
        elif step == 1 or reach == known + 1:
            return known
        else:
            step = max(1, (reach - known) // 2)
            cap = reach - 1
    return known


@dataclass(frozen=True)
class WindowStability:
    """The lowest smallest stable window of one dataset.

    Attributes
    ----------
    smallest : int or None
        r*, the size of the smallest stable set; None if it exceeds the limit.
    window : tuple of int
        The (statistics - low) that are left, sorted.
    kept : int
        How many of them are kept.
    """

    smallest: int | None
    window: tuple[int, ...]
    kept: int
    totals: TotalLaws

    def law(self, mixture: Sequence[int], total: int) -> Law:
        """The law of the release, when |S| = r with probability mixture[r] / total."""
        released = Fraction(sum(mixture), total)
        first, step, ways, sets = _core.window_total_weights(list(self.window), len(self.window) - self.kept, 0, 0)
        parts = [(Fraction(way, sets), self.totals.laws[first + step * place]) for place, way in enumerate(ways) if way]
        scale = math.lcm(*(part.denominator * masses[1] for part, masses in parts))
        weights = [0] * len(parts[0][1][0])
        for part, (masses, mass_total) in parts:
            factor = part.numerator * (scale // (part.denominator * mass_total))
            weights = [weight + factor * mass for weight, mass in zip(weights, masses, strict=True)]
        return [weight * released.numerator for weight in weights], scale * released.denominator

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Keep users of the window uniformly; the algorithm's law on their total. The size of S does not matter."""
        chosen = source.subset(len(self.window), self.kept)
        masses, total = self.totals.laws[sum(self.window[place] for place in chosen)]
        return [Fraction(mass, total) for mass in masses]


def smallest_window(
    values: Sequence[int | None], deletions: int, limit: int, kept: int, totals: TotalLaws
) -> WindowStability:
    """Find the smallest stable set: all users without a usable statistic (None), and all outside a window."""
    # When nobody is kept the range may be beyond all machine integers, and no value matters.
    usable = sorted(value - totals.low if kept else 0 for value in values if value is not None)
    missing = len(values) - len(usable)
    nothing = WindowStability(None, (), kept, totals)
    if missing > limit or totals.distance < 0:
        return nothing
    found = _core.smallest_window(usable, deletions - missing, totals.distance, limit - missing)
    if found is None:
        return nothing
    removed, start = found
    window = tuple(usable[start : start + len(usable) - removed])
    return WindowStability(missing + removed, window, kept, totals)
