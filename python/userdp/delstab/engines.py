"""Which engine decides stability, by public quantities only, and how it asks the inner algorithm.

Engines: "labeled" takes users in index order; "multiset" counts equal users (equal statistics, equal scores);
"additive" takes totals within a certified distance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from userdp.algorithms import AdditiveAlgorithm, SummedScoreEM, User
from userdp.algorithms.finite import form_of
from userdp.delstab.stable_sets import (
    CoverStability,
    Distributions,
    InnerPmfs,
    Kept,
    Stability,
    TotalPmfs,
    Types,
    Vectors,
    WindowStability,
    count_totals,
    covering,
    exhaustive,
    most_choices,
    most_steps,
    normalized,
    smallest_window,
)
from userdp.exact.encoding import key_of
from userdp.exact.numbers import capped_power, short_repr
from userdp.exact.pmf import Masses
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

Compatibility: TypeAlias = Literal["auto", "exact", "distance"]
PrivateUsers: TypeAlias = "tuple[User | None, ...]"
AnyStability: TypeAlias = Stability | CoverStability | WindowStability

MAX_KEPT = 50_000
"""Kept sets whose distributions are asked for: each is a call of the algorithm in Python."""
DEFAULT_KEPT = 3000
"""Kept multisets up to which types are admitted unasked: when there are more types than admitted, every way to choose
among them has a family of its own."""
MAX_KEPT_OF_SCORES, DEFAULT_KEPT_OF_SCORES = 2_000_000, 50_000
"""The same where the core makes the distributions from scores."""
MAX_MASSES = 1 << 24
MAX_MASSES_OF_SCORES = 1 << 27
"""Probabilities of all kept sets together."""
MAX_TOTAL = 1 << 60
"""Totals of scores stay below."""
MAX_CHOICES = 300_000
"""Ways to keep as many types as are admitted, in the dataset that has most of them."""
MAX_WORK = 1 << 26
"""Kept sets of all these choices together."""
MAX_STEPS = 1 << 24
"""Steps of the search for a smallest vertex cover, in a worst case that is far from any graph."""
MAX_DELETIONS = 1 << 15
"""Deletions on the grid of deletion vectors."""
MAX_CELLS = 1 << 24
"""Cells of the grid of deletion vectors."""
MANY = 1 << 64
"""Kinds of users: more than there are users."""


@dataclass(frozen=True)
class EngineChoice:
    """How datasets of n users are handled; a function of public quantities."""

    engine: str  # "labeled", "multiset" or "additive"
    compatibility: str  # between kept sets: "exact" or "distance"
    max_distinct_users: int  # that a stable pool may have; n where this is no restriction
    # The choices of users who stay that are decided at most, one after the other. Many are needed only where the
    # algorithm fails on all of them; most of them are excluded at once by few of their distinct users.
    choices: int
    kept_sets: int  # looked at for each choice at most (totals, for "additive"), with one distribution each
    work: int  # kept sets looked at for all choices together at most: where choices are many, each has few
    cells: int  # of the grid on which a choice is decided, of eight bytes each at most
    steps: int = 0  # of the search for a smallest vertex cover at most, where one of too many for a grid is kept

    @property
    def covered(self) -> bool:
        """Whether r* is a smallest vertex cover, since there are too many users for a grid."""
        return self.steps > 0


def check_arguments(algorithm: Any, compatibility: Any, max_distinct_users: Any) -> None:
    """Check what can be checked without data."""
    if compatibility not in get_args(Compatibility):
        raise ValueError(f"compatibility must be 'auto', 'exact' or 'distance'; got {short_repr(compatibility)}")
    if compatibility == "distance" and form_of(algorithm) != "additive":
        raise TypeError("compatibility='distance' needs an AdditiveAlgorithm, with the pmf of that class")
    if max_distinct_users is None:
        return
    if isinstance(max_distinct_users, (bool, np.bool_)) or not isinstance(max_distinct_users, (int, np.integer)):
        raise TypeError(f"max_distinct_users must be an int >= 1 or None; got {short_repr(max_distinct_users)}")
    if max_distinct_users < 1:
        raise ValueError(f"max_distinct_users must be an int >= 1 or None; got {short_repr(max_distinct_users)}")


def choose_engine(
    algorithm: Any,
    n_users: int,
    deletions: int,
    limit: int,
    compatibility: Compatibility,
    max_distinct_users: int | None,
) -> EngineChoice:
    """The engine for n users. A stable set that matters has at most `limit` users."""
    form = form_of(algorithm)
    if form == "additive" and compatibility != "exact":
        totals = count_totals(algorithm, n_users - deletions)
        return EngineChoice("additive", "distance", n_users, 1, totals, totals, 0)
    if deletions > MAX_DELETIONS:
        # Whatever the data: how many are left to delete beside those who are deleted anyway is private.
        raise BudgetError(
            f"{deletions:,} deletions where {MAX_DELETIONS:,} are possible; use a larger epsilon or delta, or the "
            "windows of an AdditiveAlgorithm"
        )
    if form == "score" and n_users * algorithm.sensitivity >= MAX_TOTAL:
        raise BudgetError(f"n_users={n_users}: totals of scores may exceed 2**60; use a smaller sensitivity")
    if form != "labeled":
        size = WorstCase(n_users, deletions, limit)
        rows, by_default = _rows(algorithm)
        number = size.types(
            None if max_distinct_users is None else min(int(max_distinct_users), n_users), rows, by_default
        )
        choices, work = size.choices(number), size.work(number)
        return EngineChoice("multiset", "exact", number, choices, size.kept_sets(number), work, size.cells(number))
    return _labeled(n_users, deletions, limit, _rows(algorithm)[0])


def _rows(algorithm: Any) -> tuple[int, int]:
    """Kept sets whose distributions are asked for at most, and up to which types are admitted unasked."""
    outputs = len(algorithm.outputs)
    if form_of(algorithm) == "score":
        return min(MAX_KEPT_OF_SCORES, MAX_MASSES_OF_SCORES // outputs), DEFAULT_KEPT_OF_SCORES
    return min(MAX_KEPT, MAX_MASSES // outputs), DEFAULT_KEPT


def most_kinds(algorithm: Any, n_users: int, deletions: int, limit: int) -> int:
    """The largest `max_distinct_users` for n users."""
    return WorstCase(n_users, deletions, limit).most(_rows(algorithm)[0])


def kinds_of_users(algorithm: Any) -> int:
    """How many kinds of users an algorithm tells apart at most, as it declares in public; some large number for any."""
    if form_of(algorithm) == "additive":
        low, high = algorithm.statistic_range
        return int(high - low + 1)
    return (
        capped_power(algorithm.sensitivity + 1, len(algorithm.outputs), MANY) if form_of(algorithm) == "score" else MANY
    )


def removals(n_users: int, kinds: int, most: int) -> int:
    """How many users must go until at most `most` kinds are left, where this is most: with as many of each kind."""
    each, more = divmod(n_users, min(n_users, kinds))
    return max(0, n_users - most * each - min(most, more))


def _labeled(n_users: int, deletions: int, limit: int, rows: int) -> EngineChoice:
    kept_sets, kept = math.comb(n_users, deletions), n_users - deletions
    if kept == 0 or (kept_sets <= rows and n_users <= MAX_CELLS.bit_length()):
        cells = 1 << min(n_users, MAX_CELLS.bit_length()) - 1
        return EngineChoice("labeled", "exact", n_users, 1, kept_sets, kept_sets, cells)
    steps = most_steps(min(limit, 100))
    if kept == 1 and steps <= MAX_STEPS:
        return EngineChoice("labeled", "exact", n_users, 1, kept_sets, kept_sets, 0, steps)
    needed = f"{about(kept_sets)} kept sets (limit {rows:,}, up to {MAX_CELLS.bit_length()} users)"
    if kept == 1:
        needed = f"one user kept, and up to {about(steps)} steps to find who must go (limit {MAX_STEPS:,})"
    raise BudgetError(
        f"n_users={n_users}: {n_users} labeled users with {deletions} deletions have {needed}. Cheaper: a "
        "SymmetricAlgorithm is decided by types of users, an AdditiveAlgorithm by windows of sorted statistics"
    )


def about(number: int) -> str:
    """A number that may be very large, for a message."""
    return f"{number:,}" if number < 10**12 else f"over 10^{len(str(min(number, 10**4000))) - 1}"


@dataclass(frozen=True)
class WorstCase:
    """What deciding by types takes in the worst dataset of n users."""

    n_users: int
    deletions: int
    limit: int

    def types(self, wanted: int | None, rows: int, by_default: int) -> int:
        """The types that a stable pool may have: as wanted; all, if n is small; or as many as stay within seconds."""
        if wanted is not None:
            if self.fits(wanted, rows):
                return wanted
            most = self.most(rows)
            raise BudgetError(
                f"max_distinct_users={wanted}: {wanted} types among {self.n_users} users with {self.deletions} "
                f"deletions have up to {about(self.kept_sets(wanted))} kept sets (limit {rows:,}), "
                f"{about(self.choices(wanted))} ways to choose them (limit {MAX_CHOICES:,}; with all their kept sets, "
                f"{MAX_WORK:,}), or a grid of over {MAX_CELLS:,} cells. Cheaper: max_distinct_users={most}, an "
                "algorithm of a coarser statistic, or an AdditiveAlgorithm"
            )
        if self.fits(self.n_users, min(rows, MAX_KEPT)):
            return self.n_users
        return self.most(min(rows, by_default))

    def most(self, rows: int) -> int:
        """The largest number of types that fits with all smaller ones."""
        number = 1
        while number < self.n_users and self.fits(number + 1, rows):
            number += 1
        return number

    def fits(self, number: int, rows: int) -> bool:
        """Whether that many types are within all limits."""
        if self.cells(number) > MAX_CELLS or self.kept_sets(number) > rows:
            return False
        return self.choices(number) <= MAX_CHOICES and self.work(number) <= MAX_WORK

    def cells(self, number: int) -> int:
        """Cells of the grid of one choice of that many types; one too many stands for more."""
        if number > MAX_CELLS.bit_length():
            return MAX_CELLS + 1
        # The most frequent type needs no axis, so the others have at most n (K - 1) / K users: at most n / K + 1 values
        # each on average, and at most D + 1.
        cells = min(self.n_users // number + 2, self.deletions + 1) ** (number - 1)
        return int(min(cells, 1 << self.n_users - 1) if self.n_users < 2 * number else cells)

    def kept_sets(self, number: int) -> int:
        """An upper bound on the kept multisets of that many types."""
        smaller = min(self.n_users - self.deletions, self.deletions)
        if smaller + number - 1 <= self.n_users:  # multisets are no more than sets then, whose number may be very long
            return math.comb(smaller + number - 1, number - 1)
        return math.comb(self.n_users, self.deletions)

    def choices(self, number: int) -> int:
        """Ways to choose that many types that a release may have to look at."""
        return 1 if self.n_users == self.deletions else most_choices(self.n_users, self.limit, number)

    def work(self, number: int) -> int:
        """An upper bound on the kept sets of all these choices together."""
        most = self.kept_sets(number)
        if self.n_users == self.deletions:  # nobody is kept
            return most
        for dropped in range(1, min(self.limit, self.n_users - number) + 1):
            most = max(most, *(self._work(number, dropped, some) for some in range(1, number + 1)))
        return most

    def _work(self, number: int, dropped: int, some: int) -> int:
        """The same for `number` + `dropped` types; `some` of those kept are not in every choice."""
        # Proof: docs/proofs/delstab_paper.md, "Choices".
        always, largest = number - some, self.limit - dropped + 1
        users = min(self.n_users - always, self.limit + some * largest)
        average = 1 + Fraction(users, dropped + some)
        rest = WorstCase(self.n_users - dropped, self.deletions - dropped, self.limit - dropped)
        if always:
            ways = math.comb(dropped + some, some)
            grids = ways * average**some * min(rest.n_users // always + 2, rest.deletions + 1) ** (always - 1)
        elif number * largest < self.n_users - self.limit:
            return 0
        else:
            ways = most_choices(number + dropped, dropped, number)
            grids = 2 * number * math.comb(dropped + number, number - 1) * average ** (number - 1)
        return int(min(grids, ways * rest.kept_sets(number)))


def find_stability(
    algorithm: Any,
    users: PrivateUsers,
    choice: EngineChoice,
    deletions: int,
    limit: int,
    inner: InnerPmfs,
    totals: TotalPmfs | None,
    progress: ProgressCallback,
) -> AnyStability:
    """Find the smallest stable sets of a dataset."""
    kept = len(users) - deletions
    if totals is not None:
        return smallest_window(_statistics(algorithm, users, inner), deletions, limit, kept, totals)
    if kept == 0:
        # The algorithm runs on nobody, whoever is there.
        question = [partial(algorithm.pmf, ())]
        nobody = Types((len(users),), 0, 1, 1, lambda active, vectors: inner.distributions(question))
        return exhaustive(nobody, kept, limit, inner, progress)
    if choice.covered:
        pmfs = inner.evaluate([partial(_pmf_on, algorithm, (user,)) for user in users])
        return covering([None if pmf is None else normalized(pmf) for pmf in pmfs], limit, inner)
    if choice.engine == "labeled":
        types = Types((1,) * len(users), 0, len(users), 1, partial(_on_labeled, algorithm, users, inner))
    elif form_of(algorithm) == "additive":
        types = _by_statistic(algorithm, users, choice, kept, inner)
    elif form_of(algorithm) == "score":
        types = _by_scores(algorithm, users, choice, inner)
    else:
        types = _by_data(algorithm, users, choice, inner)
    return exhaustive(types, kept, limit, inner, progress)


@dataclass
class _RememberedPmfs:
    """Distributions by what they depend on, each asked for once as long as there is room to keep it."""

    distribution_of: Callable[[Any], Any]
    inner: InnerPmfs
    pmfs_by_key: dict[Hashable, Masses | None] = field(default_factory=dict)

    def on(self, active: None, keys: Sequence[Hashable]) -> Distributions:
        """The distributions on some keys."""
        if len(self.pmfs_by_key) > min(MAX_KEPT, MAX_MASSES // len(self.inner.outputs)):
            self.pmfs_by_key.clear()
        new = [key for key in dict.fromkeys(keys) if key not in self.pmfs_by_key]
        pmfs = self.inner.evaluate([partial(self.distribution_of, key) for key in new])
        self.pmfs_by_key.update(zip(new, pmfs, strict=True))
        return self.inner.table([self.pmfs_by_key[key] for key in keys])


def _on_labeled(
    algorithm: Any, users: PrivateUsers, inner: InnerPmfs, active: Sequence[int], vectors: Vectors
) -> Distributions:
    kept = [tuple(itertools.compress(users, row)) for row in (vectors == 0).tolist()]
    return inner.distributions([partial(_pmf_on, algorithm, each) for each in kept])


def _pmf_on(algorithm: Any, users: PrivateUsers) -> Any:
    """The algorithm's answer, where all users have canonical values."""
    if any(user is None for user in users):
        raise ValueError("a user has no canonical value")
    return algorithm.pmf(users)


def _by_data(algorithm: Any, users: PrivateUsers, choice: EngineChoice, inner: InnerPmfs) -> Types:
    """Equal users are one type. The kept ones are presented in the order of their codes."""
    groups: dict[str, list[User]] = {}
    for user in users:
        if user is not None:
            groups.setdefault(key_of(user), []).append(user)
    ordered = [groups[key] for key in sorted(groups)]
    counts = [len(group) for group in ordered]

    def distribution_of(kept: Kept) -> Any:
        members = [(ordered[kind][0],) * count for kind, count in kept]
        return algorithm.pmf(tuple(itertools.chain.from_iterable(members)))

    pmfs = _RememberedPmfs(distribution_of, inner)
    return Types(counts, len(users) - sum(counts), choice.max_distinct_users, choice.choices, pmfs.on, keyed=True)


def _by_statistic(
    algorithm: AdditiveAlgorithm, users: PrivateUsers, choice: EngineChoice, kept: int, inner: InnerPmfs
) -> Types:
    """Users with equal statistics are one type; those without an integer are unusable."""
    values = _statistics(algorithm, users, inner)
    present = sorted({value for value in values if value is not None})
    counts = [values.count(value) for value in present]
    pmfs = _RememberedPmfs(lambda total: algorithm.pmf_of_total(total, kept), inner)
    unusable = values.count(None)
    return Types(counts, unusable, choice.max_distinct_users, choice.choices, pmfs.on, keyed=True, values=present)


def _by_scores(algorithm: SummedScoreEM, users: PrivateUsers, choice: EngineChoice, inner: InnerPmfs) -> Types:
    """Users with equal clamped scores are one type; the core makes the pmfs."""
    groups: dict[tuple[int, ...] | None, int] = {}
    for user in users:
        scores = None if user is None else _usable(partial(_clamped_scores, algorithm, user), inner)
        groups[scores] = groups.get(scores, 0) + 1
    unusable = groups.pop(None, 0)
    present = sorted(scores for scores in groups if scores is not None)
    counts = [groups[scores] for scores in present]

    def pmfs_on(active: Sequence[int], vectors: Vectors) -> Distributions:
        table = np.array([present[kind] for kind in active], dtype=np.int64)
        return Distributions(algorithm.core().matrix_of_vectors(table, [counts[kind] for kind in active], vectors), [])

    return Types(counts, unusable, choice.max_distinct_users, choice.choices, pmfs_on)


def _clamped_scores(algorithm: SummedScoreEM, user: User) -> tuple[int, ...]:
    return tuple(algorithm.scores_of(user).tolist())


def _statistics(algorithm: AdditiveAlgorithm, users: PrivateUsers, inner: InnerPmfs) -> list[int | None]:
    return [None if user is None else _usable(partial(algorithm.statistic_of, user), inner) for user in users]


def _usable(question: Callable[[], Any], inner: InnerPmfs) -> Any:
    """A user's own number, or None where it fails; in diagnostics a failure is an error."""
    if inner.strict:
        return question()
    try:
        return question()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
