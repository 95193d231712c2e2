"""Local deletion DP: whether an algorithm's output distribution is stable when r users are deleted, whichever they are.

An algorithm A is (r, epsilon, delta)-LDDP at a dataset x when the distributions of A on x without S and on x without S'
are (epsilon, delta)-indistinguishable for all sets S, S' of r users ([GKKMMZ23, Definition 16]: Ghazi, Kamath, Kumar,
Manurangsi, Meka, Zhang, "User-Level Differential Privacy With Few Examples Per User", NeurIPS 2023). `check_lddp`
decides it exactly. It is a diagnostic: it looks at the data it is given, and its witness names users.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from userdp import _core
from userdp.algorithms import Dataset
from userdp.algorithms.finite import mechanism_name, outputs_of, pmf_error_of, read_users
from userdp.audit.engine import DEFAULT_BUDGET
from userdp.display.numbers import in_digits
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import Delta, Epsilon, PrivacyLevel, parse_delta, parse_level, short_repr
from userdp.exceptions import BudgetError
from userdp.lddp.deletions import Deletions, engine_for
from userdp.report import LDDPResult
from userdp.runtime import Progress, progress_bar

MAX_CALLS = 2_000_000
"""Of the algorithm, in Python."""
MAX_USERS_LISTED = 100_000_000
"""Users of all the datasets that are built for these calls."""


def check_lddp(
    algorithm: Any,
    dataset: Sequence[Any],
    *,
    r: int,
    epsilon: Epsilon,
    delta: Delta,
    progress: Progress = None,
    executor: Executor | None = None,
    budget: int | None = None,
) -> LDDPResult:
    """Decide whether an algorithm is (r, epsilon, delta)-LDDP at a dataset, over all pairs of deletion sets.

    Parameters
    ----------
    algorithm : FiniteAlgorithm
        Anything with ``.outputs`` and ``.pmf(dataset)``. Its class chooses the engine: a `SummedScoreEM`, an
        `AdditiveAlgorithm` and a `SymmetricAlgorithm` are much cheaper than a general algorithm, which is asked for
        every deletion set. A general algorithm sees the kept users in index order.
    dataset : sequence of users
        The n users, each a tuple of examples of plain types: the algorithm is shown their canonical values, see
        `userdp.exact.encoding`.
    r : int
        Number of users to delete, 0 <= r <= n. r = 0 holds trivially.
    epsilon : float, int, Fraction, decimal string or LogRatio
        Privacy parameter, >= 0, taken exactly.
    delta : float, int, Fraction or decimal string
        Probability in [0, 1], taken exactly.
    progress : bool, callable or None
        None shows a bar on a terminal for work over two seconds (with tqdm); a callable gets (done, total).
    executor : concurrent.futures.Executor, optional
        Searches parts of the pairs, in other threads, processes or machines; the algorithm and the dataset must then
        be picklable where the executor needs that. The answer is the same.
    budget : int, optional
        Refuse when pairs of pmfs times outputs exceed this; 10**13 by default. Two million calls of the algorithm are
        the limit whatever the budget.

    Returns
    -------
    LDDPResult
        ``holds`` is decided: True or False, or None within the algorithm's declared ``pmf_error``.

    Raises
    ------
    RuntimeError
        Naming the deleted users, when the algorithm itself raises.
    BudgetError
        When there are too many pmfs or pairs, with the count and the cheaper option.

    Notes
    -----
    [GKKMMZ23, Definition 16], see the module. Every comparison is certified: float64 with a proven error radius
    first, exact arithmetic where that cannot decide.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from userdp.algorithms import AdditiveAlgorithm
    >>> share = AdditiveAlgorithm(
    ...     outputs=("no", "yes"),
    ...     statistic=lambda user: user[0],
    ...     pmf_of_total=lambda total, n: [Fraction(n - total, n), Fraction(total, n)],
    ...     statistic_range=(0, 1),
    ... )
    >>> result = check_lddp(share, [(0,), (1,), (1,), (1,)], r=1, epsilon=0, delta="1/3")
    >>> result.holds, result.subsets, result.engine, result.verify(share, [(0,), (1,), (1,), (1,)]).finding
    (True, 4, 'additive', 'established')
    >>> bool(check_lddp(share, [(0,), (1,), (1,), (1,)], r=1, epsilon=0, delta="0.33"))
    False
    """
    outputs, error = outputs_of(algorithm), pmf_error_of(algorithm)
    users = read_users(dataset, "dataset")
    size = _size(r, len(users))
    question = _Question(parse_level(epsilon), parse_delta(delta), error)
    limit = _limit(budget)
    if executor is not None and not hasattr(executor, "submit"):
        raise TypeError(f"executor must be a concurrent.futures.Executor or None; got {short_repr(executor)}")
    engine = engine_for(algorithm, users, size, outputs)
    members = _members(engine, users, size, len(outputs), limit)
    engine.check()
    if executor is None:
        found = _search(engine, [range(members)], question, progress)
    else:
        found = _search_in_shards(engine, members, question, progress, executor)
    witness = None
    if found.pair is not None:
        first, second, event = found.pair
        witness = (engine.deleted(first), engine.deleted(second), frozenset(outputs[index] for index in event))
    return LDDPResult(
        holds=found.holds,
        lower=found.lower,
        upper=found.upper,
        witness=witness,
        pairs_evaluated=found.evaluated,
        engine=engine.name,
        algorithm=mechanism_name(algorithm),
        outputs=tuple(outputs),
        epsilon=question.level,
        delta=question.delta,
        pmf_error=error,
        r=size,
        n_users=len(users),
    )


def _size(r: Any, n_users: int) -> int:
    if isinstance(r, (bool, np.bool_, np.timedelta64)) or not isinstance(r, (int, np.integer)):
        raise TypeError(f"r must be an int from 0 to the number of users, {n_users}; got {short_repr(r)}")
    if not 0 <= r <= n_users:
        raise ValueError(f"r must be from 0 to the number of users, {n_users}; got {short_repr(r)}")
    return int(r)


def _limit(budget: Any) -> int:
    if budget is None:
        return DEFAULT_BUDGET
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)):
        raise TypeError(f"budget must be an int, in pmf-pair-outputs; got {short_repr(budget)}")
    return int(budget)


def _members(engine: Deletions, users: Dataset, r: int, outputs: int, limit: int) -> int:
    """How many pmfs the engine compares, when that is affordable."""
    members = engine.members
    asked = f"deleting {r} of {len(users)} users"
    if members is None:
        sets = (math.lgamma(len(users) + 1) - math.lgamma(r + 1) - math.lgamma(len(users) - r + 1)) / math.log(10)
        raise BudgetError(
            f"{asked}, about 10^{sets:.0f} deletion sets: more pmfs than the {engine.name} engine can number. "
            f"Cheaper: {engine.cheaper}"
        )
    work = members * (members - 1) // 2 * outputs
    listed = members * len(users) if engine.lists_users else 0
    if (members > MAX_CALLS and not engine.in_core) or listed > MAX_USERS_LISTED or work > limit:
        calls = "" if engine.in_core else f" (limit {in_digits(MAX_CALLS)})"
        users_left = f", of {in_digits(listed)} users (limit {in_digits(MAX_USERS_LISTED)})" if listed else ""
        raise BudgetError(
            f"{asked}: {in_digits(members)} pmfs{calls}{users_left} and {in_digits(work)} "
            f"pmf-pair-outputs (budget {in_digits(limit)}) for the {engine.name} engine. Cheaper: {engine.cheaper}"
        )
    return members


# The search for the worst pair of deletion sets, at once or in shards that others work on -----------------------

BLOCKS = 8
"""Blocks of ranks: 28 pairs of them are enough for a dozen workers, and every pmf is made seven times."""


@dataclass(frozen=True)
class _Question:
    """What is asked about each pair of distributions."""

    level: PrivacyLevel
    delta: Fraction
    pmf_error: Fraction


@dataclass(frozen=True)
class _Finding:
    """The worst pair among some deletion sets; `pair` has two ranks and an event."""

    holds: bool | None
    lower: float
    upper: float
    pair: tuple[int, int, tuple[int, ...]] | None
    evaluated: int


_NOTHING = _Finding(True, 0.0, 0.0, None, 0)


def _search(engine: Deletions, ranges: Sequence[range], question: _Question, progress: Progress) -> _Finding:
    """The worst pair among the members of ranges of ranks, each with step 1."""
    with progress_bar(progress, "evaluating the algorithm") as callback:
        matrix, ranks = engine.matrix(ranges, callback)
    level, delta, error = core_level(question.level), question.delta, question.pmf_error
    # One pmf of several deletion sets may be several in truth, when it is known roughly.
    several = sum(map(len, ranges)) > 1 or (error > 0 and 0 < engine.r < len(engine.dataset))
    if not several:
        return _NOTHING
    with progress_bar(progress, "comparing deletions") as callback:
        found = _core.pairwise_maximum(matrix, level, delta, callback)
        if found is None:
            raise AssertionError("there is a pmf")
        (i, j, event), lower, upper, exceeds, evaluated = found
        holds: bool | None = not exceeds
        pair = (ranks[i], ranks[j], tuple(event)) if upper > 0.0 else None
        if error:
            holds, lower, upper, more = _core.pairwise_band(matrix, level, delta, error, callback)
            evaluated += more
    return _Finding(holds, lower, upper, pair, evaluated)


def _search_in_shards(
    engine: Deletions, members: int, question: _Question, progress: Progress, executor: Executor
) -> _Finding:
    """The worst pair among all members, by shards: every two blocks of ranks hold all pairs between them."""
    blocks = min(BLOCKS, max(1, members // 2))
    ends = [members * block // blocks for block in range(blocks + 1)]
    ranges = [range(start, stop) for start, stop in itertools.pairwise(ends)]
    shards = [[one, other] for place, one in enumerate(ranges) for other in ranges[place + 1 :]] or [ranges]
    futures: list[Future[_Finding]] = [executor.submit(_search, engine, shard, question, False) for shard in shards]
    found: list[_Finding] = []
    try:
        with progress_bar(progress, "comparing deletions") as callback:
            for done, future in enumerate(futures, 1):
                found.append(future.result())
                callback(done, len(futures))
    finally:
        for future in futures:
            future.cancel()
    # Floats do not tell which of the shards' worst pairs is the worst of all.
    ranks = sorted({rank for finding in found if finding.pair is not None for rank in finding.pair[:2]})
    pair = _search(engine, [range(rank, rank + 1) for rank in ranks], question, False).pair if ranks else None
    verdicts = {finding.holds for finding in found}
    return _Finding(
        holds=False if False in verdicts else None if None in verdicts else True,
        lower=max(finding.lower for finding in found),
        upper=max(finding.upper for finding in found),
        pair=pair,
        evaluated=sum(finding.evaluated for finding in found),
    )
