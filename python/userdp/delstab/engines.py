"""Which engine decides stability, by public quantities only, and how it asks the inner algorithm.

Engines: "labelled" takes users in index order; "types" counts equal users (equal statistics, equal scores); "additive"
takes totals within a certified distance.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from userdp.algorithms import AdditiveAlgorithm, ScoreSelection, User
from userdp.algorithms.forms import form_of
from userdp.delstab.compatibility import InnerLaws, normalised
from userdp.delstab.cover import CoverStability, covering
from userdp.delstab.kept import Laws, LawsOn, Stability, Types, Vectors, exhaustive
from userdp.delstab.windows import TotalLaws, WindowStability, smallest_window
from userdp.exact.encoding import key_of
from userdp.exact.numbers import shown
from userdp.exact.pmf_input import ExactMasses
from userdp.exceptions import BudgetError
from userdp.runtime import ProgressCallback

Relation: TypeAlias = Literal["auto", "exact", "distance"]
PrivateUsers: TypeAlias = "tuple[User | None, ...]"
AnyStability: TypeAlias = Stability | CoverStability | WindowStability

MAX_KEPT = 50_000
"""Kept sets whose laws are asked for: each is a call of the algorithm in Python."""
DEFAULT_KEPT = 3000
"""Kept multisets up to which types are admitted unasked: when there are more types than admitted, every way to choose
among them has a family of its own."""
MAX_KEPT_OF_SCORES, DEFAULT_KEPT_OF_SCORES = 2_000_000, 50_000
"""The same where the core makes the laws from scores."""
MAX_MASSES = 1 << 24
MAX_MASSES_OF_SCORES = 1 << 27
"""Probabilities of all kept sets together."""
MAX_TOTAL = 1 << 60
"""Totals of scores stay below."""
MAX_COVERED = 1000
"""Kept sets all of whose pairs are compared one by one when there are too many users for a grid."""
MAX_DELETIONS = 1 << 15
"""Deletions on the grid of deletion vectors."""
MAX_CELLS = 1 << 24
"""Cells of the grid of deletion vectors."""


@dataclass(frozen=True)
class Plan:
    """How datasets of n users are handled; a function of public quantities.

    Attributes
    ----------
    engine : {"labelled", "types", "additive"}
        Which engine runs.
    relation : {"exact", "distance"}
        Which relation between kept sets it uses.
    max_types : int
        Types that a stable pool may have; n where this is no restriction.
    covered : bool
        Whether r* is a smallest hitting set, since there are too many users for a grid.
    """

    engine: str
    relation: str
    max_types: int
    covered: bool = False


def check_arguments(algorithm: Any, relation: Any, max_types: Any) -> None:
    """Check what can be checked without data.

    Raises
    ------
    ValueError, TypeError
        For a relation or a number of types that the algorithm cannot have.
    """
    if relation not in get_args(Relation):
        raise ValueError(f"relation must be 'auto', 'exact' or 'distance'; got {shown(relation)}")
    if relation == "distance" and form_of(algorithm) != "additive":
        raise TypeError("relation='distance' needs an AdditiveAlgorithm, with the pmf of that class")
    if max_types is None:
        return
    if isinstance(max_types, (bool, np.bool_)) or not isinstance(max_types, (int, np.integer)):
        raise TypeError(f"max_types must be an int >= 1 or None; got {shown(max_types)}")
    if max_types < 1:
        raise ValueError(f"max_types must be an int >= 1 or None; got {shown(max_types)}")


def plan(algorithm: Any, n_users: int, deletions: int, relation: Relation, max_types: int | None) -> Plan:
    """Choose the engine for n users.

    Raises
    ------
    BudgetError
        For too many users for any engine, with the way out.
    """
    form = form_of(algorithm)
    if form == "additive" and relation != "exact":
        return Plan("additive", "distance", n_users)
    if deletions > MAX_DELETIONS:
        # Whatever the data: how many are left to delete beside those who are deleted anyway is private.
        raise BudgetError(
            f"{deletions:,} deletions where {MAX_DELETIONS:,} are possible; use a larger epsilon or delta, or the "
            "windows of an AdditiveAlgorithm"
        )
    rows = min(MAX_KEPT, MAX_MASSES // len(algorithm.outputs))
    if form == "score" and n_users * algorithm.sensitivity >= MAX_TOTAL:
        raise BudgetError(f"n_users={n_users}: totals of scores may exceed 2**60; use a smaller sensitivity")
    if form != "labelled":
        wanted = None if max_types is None else min(int(max_types), n_users)
        by_default = DEFAULT_KEPT
        if form == "score":
            rows = min(MAX_KEPT_OF_SCORES, MAX_MASSES_OF_SCORES // len(algorithm.outputs))
            by_default = DEFAULT_KEPT_OF_SCORES
        return Plan("types", "exact", _types(n_users, deletions, wanted, rows, by_default))
    return _labelled(n_users, deletions, rows)


def _labelled(n_users: int, deletions: int, rows: int) -> Plan:
    kept_sets = math.comb(n_users, deletions)
    if kept_sets <= rows and 1 << n_users - 1 <= MAX_CELLS:
        return Plan("labelled", "exact", n_users)
    if kept_sets <= min(rows, MAX_COVERED):
        return Plan("labelled", "exact", n_users, covered=True)
    raise BudgetError(
        f"n_users={n_users}: {n_users} labelled users with {deletions} deletions have {_about(kept_sets)} kept sets "
        f"(limit {rows:,} up to {MAX_CELLS.bit_length()} users, {min(rows, MAX_COVERED):,} beyond). Cheaper: a "
        "SymmetricAlgorithm is decided by types of users, an AdditiveAlgorithm by windows of sorted statistics"
    )


def _about(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"over 10^{len(str(min(number, 10**4000))) - 1}"


def _types(n_users: int, deletions: int, wanted: int | None, rows: int, by_default: int) -> int:
    """The types that a stable pool may have: as wanted; all, if n is small; or as many as stay within seconds."""
    if wanted is not None:
        if _fits(wanted, n_users, deletions, rows):
            return wanted
        raise BudgetError(
            f"max_types={wanted}: {wanted} types among {n_users} users with {deletions} deletions have up to "
            f"{_about(_kept_vectors(wanted, n_users, deletions))} kept sets (limit {rows:,}), or a grid of over "
            f"{MAX_CELLS:,} cells. Cheaper: fewer types, an algorithm of a coarser statistic, or an AdditiveAlgorithm"
        )
    if _fits(n_users, n_users, deletions, min(rows, MAX_KEPT)):
        return n_users
    number = 1
    while _fits(number + 1, n_users, deletions, min(rows, by_default)):
        number += 1
    return number


def _fits(number: int, n_users: int, deletions: int, rows: int) -> bool:
    # The most frequent type needs no axis, so the others have at most n (K - 1) / K users: at most n / K + 1 values
    # each on average, and at most D + 1.
    cells = min(n_users // number + 2, deletions + 1) ** (number - 1)
    if n_users < 2 * number:
        cells = min(cells, 1 << n_users - 1)
    return cells <= MAX_CELLS and _kept_vectors(number, n_users, deletions) <= rows


def _kept_vectors(number: int, n_users: int, deletions: int) -> int:
    """An upper bound on the kept multisets of that many types."""
    smaller = min(n_users - deletions, deletions)
    return min(math.comb(smaller + number - 1, number - 1), math.comb(n_users, deletions))


def find_stability(
    algorithm: Any,
    users: PrivateUsers,
    chosen: Plan,
    deletions: int,
    limit: int,
    inner: InnerLaws,
    totals: Callable[[], TotalLaws],
    progress: ProgressCallback,
) -> AnyStability:
    """Find the smallest stable sets of a dataset.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        The inner algorithm.
    users : tuple
        The n canonical users, None for whoever has none.
    chosen : Plan
        From `plan`.
    deletions, limit : int
        D, and the largest size of a stable set that matters.
    inner : InnerLaws
        The relation; if strict, statistics and scores that fail are errors.
    totals : callable
        Gives the certified totals, for the additive engine.
    progress : callable
        Called with (done, total).
    """
    kept = len(users) - deletions
    if chosen.engine == "additive":
        return smallest_window(_statistics(algorithm, users, inner), deletions, limit, kept, totals())
    if kept == 0:
        # The algorithm runs on nobody, whoever is there.
        question = [partial(algorithm.pmf, ())]
        nobody = Types((len(users),), frozenset(), 1, lambda active, vectors: _listed(question, inner))
        return exhaustive(nobody, deletions, limit, inner, progress)
    if chosen.covered:
        return covering(_labelled_laws(algorithm, users, kept, inner), len(users), kept, limit, inner)
    if chosen.engine == "labelled":
        types = Types((1,) * len(users), frozenset(), len(users), partial(_on_labelled, algorithm, users, inner))
    elif form_of(algorithm) == "additive":
        types = _by_statistic(algorithm, users, chosen, kept, inner)
    elif form_of(algorithm) == "score":
        types = _by_scores(algorithm, users, chosen, inner)
    else:
        types = _by_data(algorithm, users, chosen, inner)
    return exhaustive(types, deletions, limit, inner, progress)


def _listed(questions: Sequence[Callable[[], Any]], inner: InnerLaws) -> Laws:
    return Laws(*inner.matrix(inner.evaluate(questions)))


def _labelled_laws(algorithm: Any, users: PrivateUsers, kept: int, inner: InnerLaws) -> list[ExactMasses | None]:
    laws = inner.evaluate([partial(_pmf_on, algorithm, chosen) for chosen in itertools.combinations(users, kept)])
    return [None if law is None else normalised(law) for law in laws]


def _on_labelled(
    algorithm: Any, users: PrivateUsers, inner: InnerLaws, active: Sequence[int], vectors: Vectors
) -> Laws:
    kept = [tuple(itertools.compress(users, row)) for row in (vectors == 0).tolist()]
    return _listed([partial(_pmf_on, algorithm, chosen) for chosen in kept], inner)


def _pmf_on(algorithm: Any, users: PrivateUsers) -> Any:
    """The algorithm's answer, where all users have canonical values."""
    if any(user is None for user in users):
        raise ValueError("a user has no canonical value")
    return algorithm.pmf(users)


def _by_data(algorithm: Any, users: PrivateUsers, chosen: Plan, inner: InnerLaws) -> Types:
    """Equal users are one type. The kept ones are presented in the order of their codes."""
    groups: dict[str, list[User]] = {}
    for user in users:
        if user is not None:
            groups.setdefault(key_of(user), []).append(user)
    ordered = [groups[key] for key in sorted(groups)]
    missing = len(users) - sum(map(len, ordered))

    def laws_on(active: Sequence[int], vectors: Vectors) -> Laws:
        counts = np.array([len(ordered[kind]) for kind in active])
        questions: list[Callable[[], Any]] = []
        for row in (counts - vectors).tolist():
            members = [(ordered[kind][0],) * count for kind, count in zip(active, row, strict=True)]
            questions.append(partial(algorithm.pmf, tuple(itertools.chain.from_iterable(members))))
        return _listed(questions, inner)

    return _with_missing([len(group) for group in ordered], missing, chosen, laws_on)


def _with_missing(counts: Sequence[int], missing: int, chosen: Plan, laws_on: LawsOn) -> Types:
    """The types of usable users, and one more for the others if there are any."""
    if not missing:
        return Types(tuple(counts), frozenset(), chosen.max_types, laws_on)
    return Types((*counts, missing), frozenset({len(counts)}), chosen.max_types, laws_on)


def _by_statistic(
    algorithm: AdditiveAlgorithm, users: PrivateUsers, chosen: Plan, kept: int, inner: InnerLaws
) -> Types:
    """Users with equal statistics are one type; those without an integer are unusable."""
    values = _statistics(algorithm, users, inner)
    present = sorted({value for value in values if value is not None})
    counts = [values.count(value) for value in present]
    missing = values.count(None)

    def laws_on(active: Sequence[int], vectors: Vectors) -> Laws:
        own = np.array([present[kind] for kind in active], dtype=object)
        size = np.array([counts[kind] for kind in active])
        totals = [int(total) for total in (size - vectors).astype(object) @ own]
        distinct = sorted(set(totals))
        found = inner.evaluate([partial(algorithm.pmf_of_total, total, kept) for total in distinct])
        law_of = dict(zip(distinct, found, strict=True))
        return Laws(*inner.matrix([law_of[total] for total in totals]))

    return _with_missing(counts, missing, chosen, laws_on)


def _by_scores(algorithm: ScoreSelection, users: PrivateUsers, chosen: Plan, inner: InnerLaws) -> Types:
    """Users with equal clamped scores are one type; the core makes the pmfs."""
    groups: dict[tuple[int, ...] | None, int] = {}
    for user in users:
        scores = None if user is None else _usable(partial(_scores_of, algorithm, user), inner)
        groups[scores] = groups.get(scores, 0) + 1
    missing = groups.pop(None, 0)
    present = sorted(scores for scores in groups if scores is not None)
    counts = [groups[scores] for scores in present]

    def laws_on(active: Sequence[int], vectors: Vectors) -> Laws:
        table = np.array([present[kind] for kind in active], dtype=np.int64)
        return Laws(algorithm.core().matrix_of_vectors(table, [counts[kind] for kind in active], vectors), [])

    return _with_missing(counts, missing, chosen, laws_on)


def _scores_of(algorithm: ScoreSelection, user: User) -> tuple[int, ...]:
    return tuple(algorithm.scores_of(user).tolist())


def _statistics(algorithm: AdditiveAlgorithm, users: PrivateUsers, inner: InnerLaws) -> list[int | None]:
    return [None if user is None else _usable(partial(algorithm.statistic_of, user), inner) for user in users]


def _usable(question: Callable[[], Any], inner: InnerLaws) -> Any:
    """A user's own number, or None where it fails; in diagnostics a failure is an error."""
    if inner.strict:
        return question()
    try:
        return question()
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
