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
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.algorithms import AdditiveAlgorithm
from userdp.algorithms.finite import checked_masses, outputs_of, pmf_error_of
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import PrivacyLevel, bits_of
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
# Where a dataset has more types than a stable pool may have, `Choices` gives the ways to choose those that stay, one
# at a time, those that drop the fewest users first, and what is known to fail is never tried again. The choices that
# are many are those with few kept sets each; `SmallPools` decides these in Python, since a call of the core costs more.

Vector: TypeAlias = "tuple[int, ...]"
Vectors: TypeAlias = npt.NDArray[np.uint16]
PmfsOn: TypeAlias = Callable[[Sequence[int], Vectors], Distributions]
"""From the types in play and deletion vectors over them to the distributions on what is kept."""

MAX_LESSONS, MAX_FUTILE = 1024, 64
"""How often a failure is looked into for its causes, with and without success."""
MAX_SMALL_ROWS = 64
MAX_SMALL_WORK = 20_000
"""Kept sets, and comparisons of vectors, of a pool that `SmallPools` decides."""
MAX_REMEMBERED = 1 << 20
"""Verdicts that it remembers for the next pool."""
MAX_REMEMBERED_MASSES = 1 << 21
"""Probabilities of the distributions that they are about, in integers of any length."""


def most_choices(n_users: int, limit: int, max_types: int) -> int:
    """How many choices of `max_types` types drop at most `limit` < n / 2 users, in any dataset of n users."""
    # Attained by one type of many users beside types of one user each. Proof: docs/proofs/delstab_paper.md, "Choices".
    types = min(n_users, max_types + limit)
    if types <= max_types:
        return 1
    return math.comb(types - 1, max_types - 1) if types >= 2 * max_types else math.comb(types, max_types)


class Choices:
    """The ways to keep a number of types, in the order of the users that they drop, then of the types dropped."""

    def __init__(self, sizes: Sequence[int], kept: int, bound: int) -> None:
        self._sizes = sizes
        self._kept = kept
        self._bound = bound
        self._prefix = [0, *itertools.accumulate(sizes)]
        dropped = len(sizes) - kept
        # A type is dropped with the dropped - 1 smallest of the others, or never.
        least = self._prefix[max(0, dropped - 1)]
        self._droppable = 0 if not dropped else bisect_right(sizes, bound - least)
        self._failures: list[list[int]] = [[] for _ in sizes]
        self.over = dropped > 0 and self._prefix[dropped] > bound

    def exclude(self, places: Sequence[int]) -> None:
        """No choice that keeps all of these types from now on."""
        often = [place for place in places if place < self._droppable]
        if not often:  # they are in every choice
            self.over = True
            return
        self._failures[max(often)].append(sum(1 << place for place in often))

    def droppable(self, place: int) -> bool:
        """False for a type of so many users that every choice keeps it."""
        return place < self._droppable

    def dropping(self, users: int) -> Iterator[tuple[int, ...]]:
        """The choices that drop this many users, as the places of the types that they keep."""
        # Of two choices the one that drops the first type in which they differ comes first.
        if not self.over:
            yield from self._extend((), 0, 0, self._prefix[-1] - users)

    def _extend(self, places: tuple[int, ...], mask: int, start: int, users: int) -> Iterator[tuple[int, ...]]:
        """All ways to keep this many more users, of types from `start` on."""
        missing = self._kept - len(places)
        if missing == 0:
            if users == 0:
                yield places
            return
        sizes, prefix, last = self._sizes, self._prefix, len(self._sizes) - missing
        # One that large with the smallest after it is too much; one that small with the largest of all too little.
        low = bisect_left(sizes, users - (prefix[-1] - prefix[last + 1]), start, last + 1)
        high = bisect_right(range(last + 1), users, start, last + 1, key=lambda p: prefix[p + missing] - prefix[p])
        for place in reversed(range(low, high)):
            number = mask | 1 << place
            if not self.over and not any(failure & number == failure for failure in self._failures[place]):
                yield from self._extend((*places, place), number, place + 1, users - sizes[place])


class SmallPools:
    """Decides pools of one dataset, and remembers which distributions are compatible."""

    def __init__(
        self,
        key_of: Callable[[Sequence[int], Vector], Hashable],
        pmfs_of: Callable[[Sequence[Hashable]], Sequence[Masses | None]],
        inner: InnerPmfs,
    ) -> None:
        self._key_of, self._pmfs_of, self._inner = key_of, pmfs_of, inner
        self._forget()

    def _forget(self) -> None:
        self._rows: dict[tuple[Vector, int], list[Vector]] = {}
        self._class_of_key: dict[Hashable, int] = {}
        self._class_of_pmf: dict[Hashable, int] = {}
        self._examples: list[ExactMasses] = []
        self._alike: dict[tuple[int, int], bool] = {}
        self._joins: dict[Any, list[Vector]] = {}

    def needs(self, active: Sequence[int], counts: Vector, kept: int, room: int) -> bool | None:
        """True when no set of fewer than `room` users is stable, False when one is; None for larger pools."""
        vectors = MAX_SMALL_ROWS * max(len(self._rows), MAX_SMALL_ROWS * len(self._joins))
        if (
            max(len(self._class_of_key), len(self._alike), vectors) > MAX_REMEMBERED
            or len(self._examples) * len(self._inner.outputs) > MAX_REMEMBERED_MASSES
        ):
            self._forget()
        rows = self._kept_vectors(counts, kept)
        if len(rows) > MAX_SMALL_ROWS:
            return None
        classes = tuple(self._classes([self._key_of(active, row) for row in rows]))
        pattern = counts, kept, classes
        if pattern not in self._joins:
            self._joins[pattern] = self._joins_of(rows, classes)
        return _unavoidable(counts, self._joins[pattern], room - 1)

    def _joins_of(self, rows: Sequence[Vector], classes: tuple[int, ...]) -> list[Vector]:
        """What incompatible pairs of rows hold together, the smallest first; failing rows are incompatible with all."""
        alike = {(a, b) for a in set(classes) for b in set(classes) if min(a, b) >= 0 and self._compatible(a, b)}
        joins = {row for row, number in zip(rows, classes, strict=True) if number < 0}
        for place, (row, number) in enumerate(zip(rows, classes, strict=True)):
            for other, of_other in zip(rows[: place + 1], classes, strict=False):
                if min(number, of_other) >= 0 and (number, of_other) not in alike:
                    joins.add(tuple(map(max, row, other)))
        return sorted(joins, key=sum)

    def _kept_vectors(self, counts: Vector, kept: int) -> list[Vector]:
        """How many users of each type may be kept; one more than `MAX_SMALL_ROWS` ways stand for more."""
        if (counts, kept) not in self._rows:
            self._rows[counts, kept] = list(islice(_vectors(counts, kept), MAX_SMALL_ROWS + 1))
        return self._rows[counts, kept]

    def _classes(self, keys: Sequence[Hashable]) -> list[int]:
        """Equal numbers for equal distributions, and -1 where there is none."""
        new = [key for key in dict.fromkeys(keys) if key not in self._class_of_key]
        for key, pmf in zip(new, self._pmfs_of(new), strict=True):
            self._class_of_key[key] = -1 if pmf is None else self._class(normalized(pmf))
        return [self._class_of_key[key] for key in keys]

    def _class(self, pmf: ExactMasses) -> int:
        number = self._class_of_pmf.setdefault(distinct_masses(pmf), len(self._examples))
        if number == len(self._examples):
            self._examples.append(pmf)
        return number

    def _compatible(self, a: int, b: int) -> bool:
        pair = (a, b) if a <= b else (b, a)
        if pair not in self._alike:
            first, second = self._examples[pair[0]], self._examples[pair[1]]
            self._alike[pair], *_ = _core.is_indistinguishable(first, second, self._inner.level, self._inner.delta)
        return self._alike[pair]


def _vectors(counts: Sequence[int], kept: int) -> Iterator[Vector]:
    """All vectors up to the counts with that sum."""
    if not counts:
        if kept == 0:
            yield ()
        return
    rest = sum(counts[1:])
    for number in range(max(0, kept - rest), min(counts[0], kept) + 1):
        for others in _vectors(counts[1:], kept - number):
            yield (number, *others)


def _unavoidable(pool: Vector, joins: Sequence[Vector], budget: int) -> bool | None:
    """Whether every pool of at most `budget` users fewer is above one of the joins; None if that takes long."""
    work = MAX_SMALL_WORK
    stack = [(pool, budget)]
    while stack:
        left, users = stack.pop()
        work -= len(joins)
        if work < 0:
            return None
        above = next((join for join in joins if all(a >= b for a, b in zip(left, join, strict=True))), None)
        if above is None:
            return False
        for kind, (have, needed) in enumerate(zip(left, above, strict=True)):
            if needed and have - needed < users:
                stack.append(((*left[:kind], needed - 1, *left[kind + 1 :]), users - (have - needed + 1)))
    return True


@dataclass(frozen=True)
class Types:
    """Users grouped by type."""

    counts: tuple[int, ...]  # Users of each type
    unusable: frozenset[int]  # Types on which the inner algorithm is known to fail: no pool with them is stable
    max_types: int  # Public bound on the types of a stable pool
    # Public bound on the ways to keep that many, when no more users are dropped than a release may drop.
    max_choices: int
    pmfs_on: PmfsOn  # Evaluates the inner algorithm
    small: SmallPools | None = None  # Decides choices with few kept sets


@dataclass(frozen=True)
class Stability:
    """The stable sets of one dataset, and the distributions of what they keep."""

    smallest: int | None  # Size of the smallest stable set; None if it exceeds the limit
    dropped: int  # users in every S, because their types are not kept
    active: tuple[int, ...]  # types that are kept, by their index
    counts: tuple[int, ...]  # users of each of them
    family: _core.StableFamily | None
    pmfs: Distributions | None
    vectors: Vectors | None

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

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Draw S uniformly among the stable sets of a size, then the kept set; its distribution."""
        family, pmfs = self._kept()
        _, removed = family.sample(size - self.dropped, source.below)
        assert self.vectors is not None
        row = np.flatnonzero((self.vectors == np.array(removed, dtype=np.uint16)).all(axis=1))[0]
        return pmfs.matrix.row(int(row))

    def _kept(self) -> tuple[_core.StableFamily, Distributions]:
        assert self.family is not None, "there is a stable set, or nothing is asked"
        assert self.pmfs is not None
        return self.family, self.pmfs

    def _shifted(self, mixture: Sequence[int]) -> list[int]:
        return list(mixture[self.dropped :])


NOTHING = Stability(None, 0, (), (), None, None, None)


def exhaustive(
    types: Types, kept: int, deletions: int, limit: int, inner: InnerPmfs, progress: ProgressCallback
) -> Stability:
    """Find the smallest stable sets."""
    usable = [kind for kind in range(len(types.counts)) if kind not in types.unusable]
    base = sum(types.counts[kind] for kind in types.unusable)
    ordered = sorted(usable, key=lambda kind: (types.counts[kind], kind))
    choices = Choices([types.counts[kind] for kind in ordered], min(types.max_types, len(usable)), limit - base)
    best, tried, lessons = NOTHING, 0, Lessons()
    for dropped in range(base, limit + 1 if usable else 0):
        if best.smallest is not None and dropped >= best.smallest:
            break
        for places in choices.dropping(dropped - base):
            if inner.strict and tried == types.max_choices:
                raise BudgetError(
                    f"sets of up to {limit} users may leave more than {tried:,} choices of {types.max_types} types; "
                    "refusal_probability looks at those up to the largest size that a release needs"
                )
            tried += 1
            active = tuple(sorted(ordered[place] for place in places))
            room = (limit + 1 if best.smallest is None else best.smallest) - dropped
            if len(places) == len(ordered) or not _needs(types, active, kept, room, inner, progress, small_only=True):
                counts, family, vectors, pmfs = _marked(
                    types, active, deletions - dropped, limit - dropped, inner, progress
                )
                removed = family.smallest_stable_size()
                if removed is not None and removed < room:
                    best = Stability(dropped + removed, dropped, active, counts, family, pmfs, vectors)
                    if best.smallest == dropped:
                        return best
                    continue
            if lessons.wanted:

                def fails(some: Sequence[int], room: int = room) -> bool:
                    return _needs(types, sorted(ordered[place] for place in some), kept, room, inner, progress)

                lessons.learn(choices, places, fails)
    return best


@dataclass
class Lessons:
    """What is learned from choices that fail: few of their types that fail already."""

    # Too many lessons slow down more than they help, and so do futile ones.

    learned: int = 0
    futile: int = 0

    @property
    def wanted(self) -> bool:
        """Whether to go on."""
        return self.learned < MAX_LESSONS and self.futile < MAX_FUTILE

    def learn(self, choices: Choices, places: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> None:
        """Leave types out of a choice as long as the rest fails, and exclude the rest."""
        rest = list(places)
        for place in places:
            fewer = [other for other in rest if other != place]
            if choices.droppable(place) and fails(fewer):
                rest = fewer
        if len(rest) < len(places):
            choices.exclude(rest)
            self.learned += 1
        else:
            self.futile += 1


def _needs(
    types: Types,
    active: Sequence[int],
    kept: int,
    room: int,
    inner: InnerPmfs,
    progress: ProgressCallback,
    *,
    small_only: bool = False,
) -> bool:
    """True when at least `room` users of these types are in every stable set, whoever else is there."""
    # With `small_only` larger pools are not decided.
    counts = tuple(types.counts[kind] for kind in active)
    deletions = sum(counts) - kept
    if deletions < room - 1:
        return False
    needs = types.small.needs(active, counts, kept, room) if types.small else None
    if needs is None and not small_only:
        _, family, _, _ = _marked(types, active, deletions, room - 1, inner, progress)
        return family.smallest_stable_size() is None
    return bool(needs)


def _marked(
    types: Types, active: Sequence[int], deletions: int, limit: int, inner: InnerPmfs, progress: ProgressCallback
) -> tuple[tuple[int, ...], _core.StableFamily, Vectors, Distributions]:
    """The family of the deletions from some types, with what is bad marked."""
    counts = tuple(types.counts[kind] for kind in active)
    family = _core.StableFamily(list(counts), deletions, limit)
    vectors = family.vectors()
    pmfs = types.pmfs_on(active, vectors)
    family.mark_bad_pairs(pmfs.matrix, inner.level, inner.delta, pmfs.incompatible, progress)
    return counts, family, vectors, pmfs


# --- vertex covers: stability when one user is kept, of more than a grid of all sets can hold
#
# S is stable exactly when it meets every pair of users who are incompatible as the one that is kept. S is then one
# smallest cover, whatever larger size was drawn: the privacy proof needs |S| <= R1 only, and no rule for choosing S.


@dataclass(frozen=True)
class CoverStability:
    """A smallest stable set of one dataset, by the users that it leaves."""

    smallest: int | None  # Its size; None if it exceeds the limit
    pmfs: list[ExactMasses]  # on each of the users that it leaves

    def distribution(self, mixture: Sequence[int], total: int) -> Distribution:
        """The distribution of the release, when |S| = r with probability mixture[r] / total."""
        released = Fraction(sum(mixture), total) / len(self.pmfs)
        sums = [sum((Fraction(w[o], t) for w, t in self.pmfs), Fraction(0)) for o in range(len(self.pmfs[0][0]))]
        scaled = [released * mass for mass in sums]
        scale = math.lcm(*(mass.denominator for mass in scaled))
        return [int(mass * scale) for mass in scaled], scale

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Draw one of the users that are left; its distribution."""
        weights, total = self.pmfs[int(source.below(len(self.pmfs)))]
        return [Fraction(weight, total) for weight in weights]


def covering(pmfs: Sequence[ExactMasses | None], limit: int, inner: InnerPmfs) -> CoverStability:
    """Find a smallest stable set."""
    groups: dict[Any, list[int]] = {}
    for user, pmf in enumerate(pmfs):
        groups.setdefault(None if pmf is None else distinct_masses(pmf), []).append(user)
    users = {key: sum(1 << user for user in members) for key, members in groups.items()}
    apart = [0] * len(pmfs)
    # With itself too: a declared pmf_error may leave even equal masses apart.
    for a, b in itertools.combinations_with_replacement(groups, 2):
        first, second = pmfs[groups[a][0]], pmfs[groups[b][0]]
        if first is None or second is None:
            alike = not (first is None and second is None) and a != b  # those who fail are in every cover anyway
        else:
            alike = _core.is_indistinguishable(first, second, inner.level, inner.delta)[0]
        if not alike:
            for user in groups[a]:
                apart[user] |= users[b]
            for user in groups[b]:
                apart[user] |= users[a]
    cover = smallest_cover(apart, limit)
    if cover is None:
        return CoverStability(None, [])
    return CoverStability(cover.bit_count(), [pmf for user, pmf in enumerate(pmfs) if not cover >> user & 1 and pmf])


def most_steps(limit: int) -> int:
    """How many steps `smallest_cover` takes at most, for any graph."""
    # A step with room for k more vertices leads to one with room for k - 1 and one for k - 3 at most.
    steps = [1, 1, 1]
    for _ in range(limit + 1):
        steps.append(1 + steps[-1] + steps[-3])
    return sum(steps[3:])


def smallest_cover(apart: Sequence[int], limit: int) -> int | None:
    """A smallest set of at most `limit` vertices that meets every edge, or None, as bits."""
    loops = sum(1 << vertex for vertex, others in enumerate(apart) if others >> vertex & 1)
    alive = ((1 << len(apart)) - 1) & ~loops
    for room in range(limit - loops.bit_count() + 1):
        cover = _cover(apart, alive, room)
        if cover is not None:
            return cover | loops
    return None


def _cover(apart: Sequence[int], alive: int, room: int) -> int | None:
    """A cover, of at most `room` vertices, of the edges within `alive`."""
    cover = 0
    while True:
        degrees = [((apart[vertex] & alive).bit_count(), -vertex) for vertex in bits_of(alive)]
        ones = [-place for degree, place in degrees if degree == 1]
        most, place = max(degrees, default=(0, 0))
        if most == 0:
            return cover if room >= 0 else None
        if sum(degree for degree, _ in degrees) > 2 * most * room:
            return None
        if ones:
            taken = apart[ones[0]] & alive  # as good as the vertex itself
        elif most == 2:
            taken = 1 << -place  # in a circle all vertices are equal
        else:
            break
        cover, alive, room = cover | taken, alive & ~taken, room - 1
    vertex, others = 1 << -place, apart[-place] & alive
    for taken in (vertex, others):
        members = _cover(apart, alive & ~taken, room - taken.bit_count())
        if members is not None:
            return cover | taken | members
    return None


# --- windows: totals within a certified distance, and windows of the sorted statistics
#
# Source: docs/proofs/delstab_paper.md, "Which relations are used" and "Windows".

MAX_TOTALS = 1_000_000
"""Totals in the public range, each a call of `pmf_of_total`."""
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
