"""Stable sets of one dataset: how kept datasets are compared, and three ways to find a smallest stable set.

DelStab removes a set S of users, and what S leaves is a pool. Only some users of the pool are kept. S is *stable* when
all datasets that may be kept are compatible: the inner algorithm's exact pmfs on them are close. This file has:

* **Compatibility**: the inner algorithm's pmfs on kept datasets, and how two of them are compared.
* **Types**: users who look alike to the inner algorithm are counted together, and sets are found on a grid of counts.
* **Vertex covers**: when one user is kept, of more than a grid can hold, a smallest stable set is a smallest cover.
* **Windows**: when only a total of statistics matters, a smallest stable set is all users outside a window.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import AdditiveAlgorithm
from userdp.algorithms.finite import checked_masses, outputs_of, pmf_error_of
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import PrivacyLevel
from userdp.exact.pmf import ExactMasses, Masses, Pmf, distinct_masses, masses_of
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

Distribution: TypeAlias = "tuple[list[int], int]"
"""Weights of the inner algorithm's outputs, and a total; the refusal has what is missing."""


# --- compatibility: the inner algorithm's exact pmfs on kept datasets, and how they are compared

DETERMINISM_SAMPLES = 16
LARGEST_EPSILON = 256
"""Bad pairs are searched with float64 first, which holds e^epsilon up to here with room to spare."""


def normalized(masses: Masses) -> ExactMasses:
    """The masses over their exact sum, in lowest terms."""
    if isinstance(masses, np.ndarray):
        ratios = [mass.as_integer_ratio() for mass in masses.tolist()]
        scale = max(denominator for _, denominator in ratios)  # powers of two
        weights = [numerator * (scale // denominator) for numerator, denominator in ratios]
    else:
        weights = masses[0]
    divisor = math.gcd(*weights)
    reduced = [weight // divisor for weight in weights]
    return reduced, sum(reduced)


@dataclass(frozen=True)
class Distributions:
    """The inner distributions on all kept sets of some types, in the order of the deletion vectors."""

    matrix: _core.PmfMatrix
    incompatible: list[int]  # rows for kept sets on which the algorithm fails


@dataclass
class InnerPmfs:
    """The distributions of an algorithm on kept datasets, as they are compared and as they are drawn from."""

    outputs: tuple[Any, ...]  # The algorithm's k outputs
    # Two distributions are compatible when they are indistinguishable at this level, which is the
    # calibration's unless the algorithm declares a `pmf_error`, and then one at which no distributions within that
    # error are farther apart.
    level: _core.Level
    delta: Fraction
    strict: bool = False  # True in diagnostics: the first answers are asked for twice, and must not differ

    @classmethod
    def of(cls, algorithm: Any, level: PrivacyLevel, delta: Fraction, *, strict: bool = False) -> InnerPmfs:
        """What a calibration's inner level and inner delta ask of the algorithm's distributions."""
        error = pmf_error_of(algorithm)
        if error:
            level = PrivacyLevel(level.ratio * (1 - error) / (1 + error), level.exponent)
            delta /= 1 + error
        epsilon = float(level.exponent) + math.log(level.ratio.numerator) - math.log(level.ratio.denominator)
        if abs(epsilon) > LARGEST_EPSILON:
            raise ValueError(
                f"epsilon: kept sets would have to be compared at the level {epsilon:.4g}, and levels are limited to "
                f"{LARGEST_EPSILON} (a pmf_error near 1 makes them negative)"
            )
        return cls(outputs_of(algorithm), core_level(level), delta, strict)

    def evaluate(self, questions: Sequence[Callable[[], Any]]) -> list[Masses | None]:
        """Ask for one distribution after the other; None where the algorithm raises or answers with what is no pmf."""
        answers = [self._answer(question) for question in questions]
        if self.strict:
            for question, answer in list(zip(questions, answers, strict=True))[:DETERMINISM_SAMPLES]:
                again = self._answer(question)
                if (again is None) != (answer is None) or (
                    again is not None and answer is not None and distinct_masses(again) != distinct_masses(answer)
                ):
                    raise ValueError(
                        "the algorithm returned two different pmfs on the same kept users; pmf must be deterministic"
                    )
        return answers

    def _answer(self, question: Callable[[], Any]) -> Masses | None:
        # Whatever goes wrong on a dataset is a property of that dataset, and as private as the data; SystemExit too.
        try:
            masses = checked_masses(question(), self.outputs, "the pmf")
            # The algorithm may use its own array again.
            return masses.copy() if isinstance(masses, np.ndarray) else masses
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None

    def distributions(self, questions: Sequence[Callable[[], Any]]) -> Distributions:
        """The answers to some questions as a matrix."""
        return self.table(self.evaluate(questions))

    def table(self, pmfs: Sequence[Masses | None]) -> Distributions:
        """The pmfs as a matrix; where there is none, another one stands in its place."""
        filler: Masses = np.eye(1, len(self.outputs))[0]
        rows = [filler if pmf is None else pmf for pmf in pmfs]
        return Distributions(matrix_of(rows), [row for row, pmf in enumerate(pmfs) if pmf is None])


def matrix_of(pmfs: Sequence[Masses]) -> _core.PmfMatrix:
    """Checked distributions over their exact sums; without a fraction where all of them are floats."""
    if all(isinstance(pmf, np.ndarray) for pmf in pmfs):
        return _core.PmfMatrix.from_normalized(np.array(pmfs))
    return _core.PmfMatrix.from_masses([normalized(pmf) for pmf in pmfs])


# --- types: labeled users (types of one user each) and multisets of equal users
#
# A *type* is what the inner algorithm can see of a user, and a pool (what a set S leaves) counts as stable when all its
# kept sets are compatible and it has at most `max_types` types. Both conditions depend on the data of the pool
# alone and pass to smaller pools, which is all that the privacy proof asks of "stable".
#
# Where a dataset has more types than a stable pool may have, the core goes through the ways to choose those that stay,
# one at a time, and asks for the distributions that it needs.

Kept: TypeAlias = "tuple[tuple[int, int], ...]"
"""Types, and how many users of each are kept."""
Vectors: TypeAlias = npt.NDArray[np.uint16]


def most_choices(n_users: int, limit: int, max_types: int) -> int:
    """How many choices of `max_types` types drop at most `limit` < n / 2 users, in any dataset of n users."""
    # Attained by one type of many users beside types of one user each. Proof: docs/proofs/delstab_paper.md, "Choices".
    types = min(n_users, max_types + limit)
    if types <= max_types:
        return 1
    return math.comb(types - 1, max_types - 1) if types >= 2 * max_types else math.comb(types, max_types)


@dataclass(frozen=True)
class Types:
    """Users grouped by type, and how the inner algorithm is asked for what is kept of them."""

    counts: Sequence[int]  # Users of each type
    unusable: int  # Users on whom the inner algorithm is known to fail: no pool with them is stable
    max_types: int  # Public bound on the types of a stable pool
    # Public bound on the ways to keep that many, when no more users are dropped than a release may drop.
    max_choices: int
    # The distributions for the types in play and deletion vectors from them, or for keys if that is None.
    pmfs_on: Callable[[Any, Any], Distributions]
    keyed: bool = False  # Whether questions are keys: what is kept of each type, or its total of `values`
    values: Sequence[int] | None = None


@dataclass(frozen=True)
class Stability:
    """The stable sets of one dataset, and the distributions of what they keep."""

    smallest: int | None  # Size of the smallest stable set; None if it exceeds the limit
    dropped: int  # users in every S, because their types are not kept
    active: Sequence[int]  # types that are kept, by their index
    counts: Sequence[int]  # users of each of them
    family: _core.StableFamily | None
    pmfs: Distributions | None

    @property
    def vectors(self) -> Vectors | None:
        """The deletion vectors, in the order of the distributions."""
        return None if self.family is None else self.family.vectors()

    def distribution(self, mixture: Sequence[int], total: int) -> Distribution:
        """The distribution of the release, when |S| = r with probability mixture[r] / total."""
        family, pmfs = self._kept()
        weights, scale = family.exact_output_distribution(self._shifted(mixture), total, pmfs.matrix)
        return list(weights), scale

    def bounds(
        self, mixture: Sequence[int], total: int, progress: ProgressCallback
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Certified bounds of the same probabilities."""
        family, pmfs = self._kept()
        lower, upper = family.output_bounds(self._shifted(mixture), total, pmfs.matrix, progress)
        return np.asarray(lower), np.asarray(upper)

    def layer_sizes(self, limit: int) -> tuple[int, ...]:
        """The number of stable sets of each size up to the limit (those that keep the active types only)."""
        if self.family is None:
            return (0,) * (limit + 1)
        sizes = [0] * self.dropped + [int(size) for size in self.family.layer_sizes()]
        return tuple(sizes[: limit + 1])

    def draw(self, size: int, source: _core.Source) -> int:
        """Draw S uniformly among the stable sets of a size, then the kept set, then the place of an output."""
        family, pmfs = self._kept()
        return family.draw(size - self.dropped, pmfs.matrix, source)

    def _kept(self) -> tuple[_core.StableFamily, Distributions]:
        assert self.family is not None, "there is a stable set, or nothing is asked"
        assert self.pmfs is not None
        return self.family, self.pmfs

    def _shifted(self, mixture: Sequence[int]) -> list[int]:
        return list(mixture[self.dropped :])


def exhaustive(types: Types, kept: int, limit: int, inner: InnerPmfs, progress: ProgressCallback) -> Stability:
    """Find the smallest stable sets."""
    search = _core.StableSearch(
        types.counts,
        types.unusable,
        kept,
        limit,
        types.max_types,
        types.max_choices if inner.strict else None,
        inner.level,
        inner.delta,
        types.keyed,
        types.values,
    )
    while (question := search.step(progress)) is not None:
        answer = types.pmfs_on(*question)
        search.answer(answer.matrix, answer.incompatible)
    found = search.found()
    if found is None:
        return Stability(None, 0, (), (), None, None)
    smallest, dropped, active, counts, family, matrix, incompatible = found
    return Stability(smallest, dropped, active, counts, family, Distributions(matrix, incompatible))


# --- vertex covers: stability when one user is kept, of more than a grid of all sets can hold
#
# S is stable exactly when it meets every pair of users who are incompatible as the one that is kept. S is then one
# smallest cover, whatever larger size was drawn: the privacy proof needs |S| <= R1 only, and no rule for choosing S.


@dataclass(frozen=True)
class CoverStability:
    """A smallest stable set of one dataset, by the users that it leaves."""

    smallest: int | None  # Its size; None if it exceeds the limit
    pmfs: _core.PmfMatrix | None  # on each of the users that it leaves

    def distribution(self, mixture: Sequence[int], total: int) -> Distribution:
        """The distribution of the release, when |S| = r with probability mixture[r] / total."""
        assert self.pmfs is not None
        users, _ = self.pmfs.shape
        return _mixed(self.pmfs, [(user, 1) for user in range(users)], Fraction(sum(mixture), total * users))

    def draw(self, size: int, source: _core.Source) -> int:
        """Draw one of the users that are left, then the place of an output."""
        assert self.pmfs is not None
        return _core.draw_of_rows(self.pmfs, source)


def _mixed(pmfs: _core.PmfMatrix, ways: Sequence[tuple[int, int]], each: Fraction) -> Distribution:
    """The distribution that has rows so many times, each with the same probability."""
    rows = [(way, pmfs.row(row)) for row, way in ways]
    scale = math.lcm(*(mass.denominator for _, masses in rows for mass in masses))
    weights = [0] * pmfs.shape[1]
    for way, masses in rows:
        for output, mass in enumerate(masses):
            weights[output] += way * mass.numerator * (scale // mass.denominator)
    return [weight * each.numerator for weight in weights], scale * each.denominator


def covering(pmfs: Sequence[ExactMasses | None], limit: int, inner: InnerPmfs) -> CoverStability:
    """Find a smallest stable set."""
    left = _core.outside_smallest_cover(pmfs, inner.level, inner.delta, limit)
    if left is None:
        return CoverStability(None, None)
    kept = [pmf for pmf in map(pmfs.__getitem__, left) if pmf is not None]
    return CoverStability(len(pmfs) - len(kept), _core.PmfMatrix.from_masses(kept))


def most_steps(limit: int) -> int:
    """How many steps the search for a smallest cover takes at most, for any graph."""
    # A step with room for k more vertices leads to one with room for k - 1 and one for k - 3 at most.
    steps = [1, 1, 1]
    for _ in range(limit + 1):
        steps.append(1 + steps[-1] + steps[-3])
    return sum(steps[3:])


# --- windows: totals within a certified distance, and windows of the sorted statistics
#
# Source: docs/proofs/delstab_paper.md, "Which relations are used" and "Windows".

MAX_TOTALS = 1_000_000
"""Totals in the public range, each a call of `pmf_of_total`."""
MAX_KEPT = 1 << 24
"""Users of whom a release draws a set."""
MAX_MASSES_OF_TOTALS = 1 << 25
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
    if kept > MAX_KEPT:
        raise BudgetError(f"{kept:,} kept users are more than a release draws of (limit {MAX_KEPT:,}); fewer users do")
    count = kept * (high - low) + 1
    limit = min(MAX_TOTALS, MAX_MASSES_OF_TOTALS // len(algorithm.outputs))
    if count > limit:
        raise BudgetError(
            f"{kept} kept users with statistics in {low}..{high} have {count:,} totals (limit {limit:,}); "
            "a narrower statistic_range or a coarser statistic has fewer"
        )
    return count


def certified_totals(algorithm: AdditiveAlgorithm, kept: int, deletions: int, inner: InnerPmfs) -> TotalPmfs:
    """Evaluate the algorithm on all totals of `kept` users, and find the largest certified distance."""
    # Nothing here depends on data, so errors may tell everything.
    low, high = algorithm.statistic_range
    count = count_totals(algorithm, kept)
    pmfs = _pmfs_of_totals(algorithm, range(kept * low, kept * high + 1), kept, inner.outputs)
    # No two kept sets of one dataset have totals that are farther apart than this.
    cap = min(min(deletions, kept) * (high - low), MAX_COMPARISONS // count)
    distance = _core.largest_shift(pmfs, inner.level, inner.delta, cap)
    return TotalPmfs(low, pmfs, -1 if distance is None else distance)


def _pmfs_of_totals(
    algorithm: AdditiveAlgorithm, totals: range, kept: int, outputs: tuple[Any, ...]
) -> _core.PmfMatrix:
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
            answers.append(_checked_answer(answer, total, kept, outputs))
    table = _float_table(answers, len(outputs)) if plain else None
    if table is not None:
        return _core.PmfMatrix.from_normalized(table)
    checked = (_checked_answer(answer, total, kept, outputs) for total, answer in zip(totals, answers, strict=True))
    return matrix_of([masses_of(distribution, "the pmf") for distribution in checked])


def _float_table(answers: list[Any], outputs: int) -> npt.NDArray[np.float64] | None:
    """Answers in plain floats as one table, if all of them are clearly pmfs."""
    if set(map(len, answers)) != {outputs}:
        return None
    table = np.fromiter(itertools.chain.from_iterable(answers), float, len(answers) * outputs)
    table = table.reshape(-1, outputs)
    clear = (table >= 0).all() and (abs(table.sum(axis=1) - 1) < CLEARLY).all()
    return table if clear else None


def _checked_answer(answer: Any, total: int, kept: int, outputs: tuple[Any, ...]) -> Any:
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
        first, step, ways, sets = _core.window_total_weights(list(self.window), len(self.window) - self.kept, 0, 0)
        rows = [(first + step * place, way) for place, way in enumerate(ways) if way]
        return _mixed(self.totals.pmfs, rows, Fraction(sum(mixture), total * sets))

    def draw(self, size: int, source: _core.Source) -> int:
        """Keep users of the window uniformly; draw the place of an output on their total."""
        # The size of S does not matter.
        return _core.draw_of_window(self.window, self.kept, self.totals.pmfs, source)


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
