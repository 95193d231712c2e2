"""The additive engine: totals within a certified distance, and windows of the sorted statistics.

Source: docs/proofs/delstab_paper.md, "Which relations are used" and "Windows".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import AdditiveAlgorithm
from userdp.algorithms.evaluation import checked_masses
from userdp.delstab.compatibility import InnerPmfs, matrix_of
from userdp.delstab.stable_sets import Distribution
from userdp.exact.pmf import Pmf, masses_of
from userdp.exceptions import BudgetError

MAX_TOTALS = 1_000_000
"""Totals in the public range, each a call of `pmf_of_total`."""
MAX_MASSES = 1 << 25
"""Their probabilities together."""
FLOAT = {float}
CLEARLY = 0.9e-9
"""Float sums this near to 1 are within the 1e-9 of a float pmf, whatever the order of their additions."""
MAX_COMPARISONS = 500_000_000
"""Pairs of totals that would be compared to certify a distance, if blocks of them did not settle most."""


@dataclass(frozen=True)
class TotalPmfs:
    """The algorithm on every total that n - D users may have, and the distance that they tolerate."""

    low: int  # The smallest statistic
    pmfs: _core.PmfMatrix  # exact masses for the totals of (statistic - low): 0, 1, ...
    # All totals within this distance are indistinguishable at the inner level; -1 if not even equal ones are.
    distance: int


def count_totals(algorithm: AdditiveAlgorithm, kept: int) -> int:
    """How many totals `kept` users may have."""
    low, high = algorithm.statistic_range
    count = kept * (high - low) + 1
    limit = min(MAX_TOTALS, MAX_MASSES // len(algorithm.outputs))
    if count > limit:
        raise BudgetError(
            f"{kept} kept users with statistics in {low}..{high} have {count:,} totals (limit {limit:,}); "
            "a narrower statistic_range or a coarser statistic has fewer"
        )
    return count


def certified(algorithm: AdditiveAlgorithm, kept: int, deletions: int, inner: InnerPmfs) -> TotalPmfs:
    """Evaluate the algorithm on all totals of `kept` users, and find the largest certified distance."""
    # Nothing here depends on data, so errors may tell everything.
    low, high = algorithm.statistic_range
    count = count_totals(algorithm, kept)
    pmfs = _pmfs(algorithm, range(kept * low, kept * high + 1), kept, inner.outputs)
    # No two kept sets of one dataset have totals that are farther apart than this.
    cap = min(min(deletions, kept) * (high - low), MAX_COMPARISONS // count)
    distance = _core.largest_shift(pmfs, inner.level, inner.delta, cap)
    return TotalPmfs(low, pmfs, -1 if distance is None else distance)


def _pmfs(algorithm: AdditiveAlgorithm, totals: range, kept: int, outputs: tuple[Any, ...]) -> _core.PmfMatrix:
    """The distributions on all totals; those in plain floats are checked all at once, which is much faster."""
    answers: list[Any] = []
    plain = True
    for total in totals:
        try:
            answer: Any = algorithm.pmf_of_total(total, kept)
        except Exception as error:
            where = _where(total, kept)
            raise RuntimeError(f"the mechanism raised {type(error).__name__} ({error}) {where}") from error
        # The algorithm may use its own list or array again, so each answer is copied or read before the next.
        kind = type(answer)
        if (kind is list or kind is tuple) and set(map(type, answer)) == FLOAT:
            answers.append(tuple(answer))
        elif kind is np.ndarray and answer.dtype == float and answer.ndim == 1:
            answers.append(answer.copy())
        else:
            plain = False
            answers.append(_checked(answer, total, kept, outputs))
    table = _table(answers, len(outputs)) if plain else None
    if table is not None:
        return _core.PmfMatrix.from_normalized(table)
    checked = (_checked(answer, total, kept, outputs) for total, answer in zip(totals, answers, strict=True))
    return matrix_of([masses_of(distribution, "the pmf") for distribution in checked])


def _table(answers: list[Any], outputs: int) -> npt.NDArray[np.float64] | None:
    """Answers in plain floats as one table, if all of them are clearly pmfs."""
    if set(map(len, answers)) != {outputs}:
        return None
    table = np.fromiter(itertools.chain.from_iterable(answers), float, len(answers) * outputs)
    table = table.reshape(-1, outputs)
    clear = (table >= 0).all() and (abs(table.sum(axis=1) - 1) < CLEARLY).all()
    return table if clear else None


def _checked(answer: Any, total: int, kept: int, outputs: tuple[Any, ...]) -> Any:
    """An answer as a float vector or a Pmf, both of which may be checked again."""
    masses = checked_masses(answer, outputs, f"the pmf of the algorithm {_where(total, kept)}")
    return masses.copy() if isinstance(masses, np.ndarray) else Pmf(outputs, tuple(masses[0]))


def _where(total: int, kept: int) -> str:
    return f"with total {total} of {kept} users"


@dataclass(frozen=True)
class WindowStability:
    """The lowest smallest stable window of one dataset."""

    smallest: int | None  # r*, the size of the smallest stable set; None if it exceeds the limit
    window: tuple[int, ...]  # The (statistics - low) that are left, sorted
    kept: int  # How many of them are kept
    totals: TotalPmfs

    def distribution(self, mixture: Sequence[int], total: int) -> Distribution:
        """The distribution of the release, when |S| = r with probability mixture[r] / total."""
        released = Fraction(sum(mixture), total)
        first, step, ways, sets = _core.window_total_weights(list(self.window), len(self.window) - self.kept, 0, 0)
        rows = [(way, self.totals.pmfs.row(first + step * place)) for place, way in enumerate(ways) if way]
        scale = math.lcm(*(mass.denominator for _, masses in rows for mass in masses))
        weights = [0] * self.totals.pmfs.shape[1]
        for way, masses in rows:
            for output, mass in enumerate(masses):
                weights[output] += way * mass.numerator * (scale // mass.denominator)
        return [weight * released.numerator for weight in weights], scale * sets * released.denominator

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Keep users of the window uniformly; the algorithm's distribution on their total."""
        # The size of S does not matter.
        places = source.subset(len(self.window), self.kept)
        return self.totals.pmfs.row(sum(self.window[place] for place in places))


def smallest_window(
    values: Sequence[int | None], deletions: int, limit: int, kept: int, totals: TotalPmfs
) -> WindowStability:
    """Find the smallest stable set: all users without a usable statistic (None), and all outside a window."""
    # When nobody is kept the range may be beyond all machine integers, and no value matters.
    usable = sorted(value - totals.low if kept else 0 for value in values if value is not None)
    missing = len(values) - len(usable)
    nothing = WindowStability(None, (), kept, totals)
    if missing > limit or totals.distance < 0:
        return nothing
    smallest = _core.smallest_window(usable, deletions - missing, totals.distance, limit - missing)
    if smallest is None:
        return nothing
    removed, start = smallest
    window = tuple(usable[start : start + len(usable) - removed])
    return WindowStability(missing + removed, window, kept, totals)
