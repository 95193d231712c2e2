"""The search for the worst pair of deletion sets, at once or in shards that others work on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from fractions import Fraction

from userdp import _core
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import PrivacyLevel, round_down, round_up
from userdp.lddp.deletions import Deletions
from userdp.runtime import Progress, progress_bar

BLOCKS = 8
"""Blocks of ranks: 28 pairs of them are enough for a dozen workers, and every pmf is made seven times."""


@dataclass(frozen=True)
class Question:
    """What is asked about each pair of distributions."""

    level: PrivacyLevel
    delta: Fraction
    pmf_error: Fraction


@dataclass(frozen=True)
class Finding:
    """The worst pair among some deletion sets; `pair` has two ranks and an event."""

    holds: bool | None
    lower: float
    upper: float
    pair: tuple[int, int, tuple[int, ...]] | None
    stated: float
    evaluated: int


NOTHING = Finding(True, 0.0, 0.0, None, 0.0, 0)


def search(engine: Deletions, ranges: Sequence[range], question: Question, progress: Progress) -> Finding:
    """The worst pair among the members of ranges of ranks.

    Parameters
    ----------
    engine : Deletions
    ranges : sequence of range
        Ranks; each range has step 1.
    question : Question
    progress : bool, callable or None
    """
    with progress_bar(progress, "evaluating the algorithm") as callback:
        matrix, ranks = engine.matrix(ranges, callback)
    if sum(map(len, ranges)) < 2:
        return NOTHING
    level, delta, error = question.level, question.delta, question.pmf_error
    with progress_bar(progress, "comparing deletions") as callback:
        found = _core.pairwise_maximum(matrix, core_level(level), delta, callback)
        if found is None:
            raise AssertionError("there are two members")
        (i, j, event), lower, upper, exceeds, evaluated = found
        holds: bool | None = not exceeds
        pair = (ranks[i], ranks[j], tuple(event)) if upper > 0.0 else None
        stated = lower
        if error:
            # Every true mass is within [(1-r) p, (1+r) p]: see docs/report-format.md.
            minus, plus = 1 - error, 1 + error
            harder = core_level(PrivacyLevel(level.ratio * plus / minus, level.exponent))
            easier = core_level(PrivacyLevel(level.ratio * minus / plus, level.exponent))
            low = _core.pairwise_maximum(matrix, harder, delta / minus, callback)
            high = _core.pairwise_maximum(matrix, easier, delta / plus, callback)
            if low is None or high is None:
                raise AssertionError("there are two members")
            holds = True if not high[3] else False if low[3] else None
            lower, upper = round_down(Fraction(low[1]) * minus), round_up(Fraction(high[2]) * plus)
            evaluated += low[4] + high[4]
    return Finding(holds, lower, upper, pair, stated, evaluated)


def search_in_shards(
    engine: Deletions, members: int, question: Question, progress: Progress, executor: Executor
) -> Finding:
    """The worst pair among all members, by shards: every two blocks of ranks together hold all pairs between them.

    Parameters
    ----------
    engine : Deletions
    members : int
        How many ranks there are.
    question : Question
    progress : bool, callable or None
        Counts shards.
    executor : concurrent.futures.Executor
    """
    blocks = min(BLOCKS, max(1, members // 2))
    ends = [members * block // blocks for block in range(blocks + 1)]
    ranges = [range(start, stop) for start, stop in itertools.pairwise(ends)]
    shards = [[one, other] for place, one in enumerate(ranges) for other in ranges[place + 1 :]] or [ranges]
    futures: list[Future[Finding]] = [executor.submit(search, engine, shard, question, False) for shard in shards]
    found = NOTHING
    try:
        with progress_bar(progress, "comparing deletions") as callback:
            for done, future in enumerate(futures, 1):
                found = _worse(found, future.result())
                callback(done, len(futures))
    finally:
        for future in futures:
            future.cancel()
    return found


def _worse(a: Finding, b: Finding) -> Finding:
    """What two findings say together."""
    verdicts = {a.holds, b.holds}
    best = max((a, b), key=lambda finding: (finding.holds is False, finding.pair is not None, finding.stated))
    return Finding(
        holds=False if False in verdicts else None if None in verdicts else True,
        lower=max(a.lower, b.lower),
        upper=max(a.upper, b.upper),
        pair=best.pair,
        stated=best.stated,
        evaluated=a.evaluated + b.evaluated,
    )
