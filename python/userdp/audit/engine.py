"""The one path of every audit: evaluate, compare all neighboring pairs, decide, report."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from userdp import _core
from userdp.algorithms import Dataset
from userdp.algorithms.finite import (
    MOST_REORDERED,
    DistinctPmfs,
    Totals,
    call_on,
    evaluate_datasets,
    mechanism_name,
    outputs_of,
    pmf_error_of,
)
from userdp.audit.datasets import Additive, Neighborhood, Replacements
from userdp.display.numbers import in_digits
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import Bounds, Delta, Epsilon, PrivacyLevel, parse_delta, parse_level, short_repr
from userdp.exact.pmf import Masses, distinct_masses, fractions_of
from userdp.exceptions import BudgetError
from userdp.report import AuditReport, Witness
from userdp.runtime import Progress, progress_bar

DEFAULT_BUDGET = 10**13
"""Pmf-pair-outputs."""
MAX_DATASETS = 2_000_000
"""Every dataset is one call of the mechanism in Python, and its pmf may have to be kept."""
MAX_PAIRS = 200_000_000
"""Pairs of neighboring datasets: each is looked at once, in blocks."""
MAX_PMF_PAIRS = 5_000_000
MAX_USERS = 20 * MAX_DATASETS
"""Users of all datasets together, where datasets are listed."""
CHEAPER = {
    "labeled": "a SymmetricAlgorithm is audited over multisets of users, an AdditiveAlgorithm over totals",
    "symmetric": "an AdditiveAlgorithm is audited over totals",
    "additive": "a narrower statistic_range, or fewer records at a time",
}
LEAST_ORDERS, MORE_SECONDS = 256, 1.0
"""Other orders of users in which a claimed symmetry is tried: of each of `MOST_REORDERED` datasets one, so that an
audit takes at most twice as long; of few datasets more, so many in all, within seconds."""


def run_audit(
    mechanism: Any,
    space: Neighborhood,
    *,
    kind: str,
    neighbors: str,
    engine: str,
    structure: dict[str, Any],
    epsilon: Epsilon,
    delta: Delta,
    budget: int | None,
    progress: Progress,
) -> AuditReport:
    level, threshold = parse_level(epsilon), parse_delta(delta)
    outputs, error = outputs_of(mechanism), pmf_error_of(mechanism)
    check_work(space.datasets, space.pairs, len(outputs), budget, CHEAPER[engine])
    found = _evaluate(mechanism, space, engine, outputs, progress)
    pmf_pairs = _pmf_pairs(space, found, self_pairs=error > 0)
    verdict = _decide(found, pmf_pairs, level, threshold, error, progress)
    witness = _witness(space, found, verdict.worst, outputs)
    return AuditReport(
        mechanism=mechanism_name(mechanism),
        kind=kind,
        neighbors=neighbors,
        engine=engine,
        epsilon_level=level,
        delta=threshold,
        pmf_error=error,
        structure=structure,
        outputs=outputs,
        pmfs=tuple(fractions_of(masses) for masses in found.masses),
        pmf_of=tuple(found.index_of),
        datasets=space.datasets,
        pairs=space.pairs,
        pmf_pairs=tuple(pmf_pairs),
        holds=verdict.holds,
        worst_delta=verdict.worst_delta,
        epsilon=verdict.epsilon,
        exp_epsilon=verdict.exp_epsilon,
        witness=witness,
    )


def check_work(datasets: int, pairs: int, outputs: int, budget: int | None, advice: str) -> None:
    """Refuse an audit that is too large, with the counts."""
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, (int, np.integer))):
        raise TypeError(f"budget must be an int, in pmf-pair-outputs; got {short_repr(budget)}")
    limit = DEFAULT_BUDGET if budget is None else int(budget)
    if datasets > MAX_DATASETS or pairs > MAX_PAIRS or pairs * outputs > limit:
        raise BudgetError(
            f"{in_digits(datasets)} datasets (limit {in_digits(MAX_DATASETS)}) with {in_digits(pairs)} pairs of "
            f"neighbors (limit {in_digits(MAX_PAIRS)}), {in_digits(pairs * outputs)} pmf-pair-outputs (budget "
            f"{in_digits(limit)}). Cheaper: {advice}"
        )


def _evaluate(
    mechanism: Any, space: Neighborhood, engine: str, outputs: tuple[Any, ...], progress: Progress
) -> DistinctPmfs:
    if engine == "additive":
        return _evaluate_totals(mechanism, space, outputs)
    with progress_bar(progress, "evaluating the mechanism") as callback:
        found = evaluate_datasets(mechanism, outputs, space.members(), space.datasets, callback)
    if engine == "symmetric":
        check_symmetry(mechanism, space, found)
    return found


def _evaluate_totals(mechanism: Any, space: Neighborhood, outputs: tuple[Any, ...]) -> DistinctPmfs:
    """An additive mechanism is asked once for every total that occurs."""
    if isinstance(space, Additive):
        totals = space.totals()
    elif isinstance(space, Replacements):
        n_users = len(space.dataset)
        own = [mechanism.statistic_of(user) for user in space.dataset]
        given = [mechanism.statistic_of(record) for record in space.records]
        base = sum(own)
        totals = [(base, n_users)]
        for position in space.replaceable:
            rest = base - own[position]
            totals.extend((rest + statistic, n_users) for statistic in given)
    else:
        raise TypeError("the additive engine takes all totals, or one dataset's replacements")
    found = DistinctPmfs(outputs)
    seen: dict[tuple[int, int], int] = {}
    for total, n_users in totals:
        known = seen.get((total, n_users))
        if known is None:
            where = Totals(f"with total {short_repr(total)} of {n_users} users")
            found.add(call_on(lambda pair: mechanism.pmf_of_total(*pair), (total, n_users), where), where)
            seen[total, n_users] = found.index_of[-1]
        else:
            found.index_of.append(known)
    return found


class Ranked(Protocol):
    """Datasets in a definite order."""

    datasets: int

    def members(self) -> Iterator[Dataset]:
        """The datasets."""
        ...


def check_symmetry(mechanism: Any, space: Ranked, found: DistinctPmfs) -> None:
    """Try the claimed symmetry in fresh orders of datasets spread over the space; a refuted claim is an error."""
    source, end = random.Random(), time.perf_counter() + MORE_SECONDS
    chosen = set(np.linspace(0, space.datasets - 1, MOST_REORDERED, dtype=np.int64).tolist())
    for rank, dataset in enumerate(space.members()):
        tried = {tuple(map(id, dataset))}
        for number in range(-(-LEAST_ORDERS // len(chosen)) if rank in chosen else 0):
            order = tuple(source.sample(dataset, len(dataset)))
            if number and time.perf_counter() > end:
                break
            if tuple(map(id, order)) in tried:
                continue
            tried.add(tuple(map(id, order)))
            reordered = DistinctPmfs(found.outputs)
            reordered.add(call_on(mechanism.pmf, order, order), order)
            if distinct_masses(reordered.masses[0]) != distinct_masses(found.masses[found.index_of[rank]]):
                raise ValueError(
                    "the mechanism is declared symmetric, but its pmf changes when the users are listed in "
                    f"another order (dataset {rank} of the audit). Return exactly the same masses for every order, or "
                    "use engine='labeled'"
                )


def _pmf_pairs(space: Neighborhood, found: DistinctPmfs, *, self_pairs: bool) -> list[tuple[int, int]]:
    """Distinct unordered pairs of pmf indices on neighbors, sorted; equal ones only when they may differ in truth."""
    index_of = np.array(found.index_of, dtype=np.int64)
    count = len(found.masses)
    codes = np.zeros(0, dtype=np.int64)
    fresh: list[np.ndarray[Any, np.dtype[np.int64]]] = []
    waiting = 0
    for a, b in space.rank_pairs():
        i, j = index_of[a], index_of[b]
        low, high = np.minimum(i, j), np.maximum(i, j)
        if not self_pairs:
            low, high = low[low != high], high[low != high]
        fresh.append(np.unique(low * count + high))
        waiting += len(fresh[-1])
        if waiting > 1 << 20:
            codes, fresh, waiting = np.unique(np.concatenate([codes, *fresh])), [], 0
            _check_pmf_pairs(len(codes))
    codes = np.unique(np.concatenate([codes, *fresh]))
    _check_pmf_pairs(len(codes))
    return [divmod(code, count) for code in codes.tolist()]


def _check_pmf_pairs(found: int) -> None:
    if found > MAX_PMF_PAIRS:
        raise BudgetError(
            f"the neighbors have over {MAX_PMF_PAIRS:,} distinct pairs of pmfs, more than a report can hold; audit "
            "fewer users, examples or values"
        )


@dataclass(frozen=True)
class _Decision:
    holds: bool | None
    worst_delta: Bounds
    epsilon: Bounds
    exp_epsilon: Fraction | None
    worst: tuple[int, int, Sequence[int]] | None


def _decide(
    found: DistinctPmfs,
    pairs: list[tuple[int, int]],
    level: PrivacyLevel,
    delta: Fraction,
    error: Fraction,
    progress: Progress,
) -> _Decision:
    pmfs: list[Masses] = found.masses
    different = [(i, j) for i, j in pairs if i != j]
    core = core_level(level)
    with progress_bar(progress, "comparing neighbors") as callback:
        stated = _core.family_worst(pmfs, different, core, delta, callback)
        lower, upper, exp_epsilon = _core.family_epsilon(pmfs, different, delta, callback)
        holds: bool | None = stated is None or not stated[5]
        worst_delta = Bounds(0.0, 0.0) if stated is None else Bounds(*stated[3:5])
        if error:
            holds, least, most = _core.family_band(pmfs, pairs, core, delta, error, callback)
            worst_delta = Bounds(least, most)
    return _Decision(
        holds=holds,
        worst_delta=worst_delta,
        epsilon=Bounds(lower, upper),
        exp_epsilon=exp_epsilon,
        worst=None if stated is None else stated[:3],
    )


def _witness(
    space: Neighborhood,
    found: DistinctPmfs,
    worst: tuple[int, int, Sequence[int]] | None,
    outputs: tuple[Any, ...],
) -> Witness | None:
    """The first neighboring ranks with the worst pair of pmfs, as datasets, and the event that shows it."""
    if worst is None:
        return None
    i, j, event = worst
    index_of = np.array(found.index_of, dtype=np.int64)
    first: tuple[int, int] | None = None
    for a, b in space.rank_pairs():
        same_way = (index_of[a] == i) & (index_of[b] == j)
        other_way = (index_of[a] == j) & (index_of[b] == i)
        hits = np.flatnonzero(same_way | other_way)
        if len(hits):
            ranks = np.where(same_way, a, b)[hits], np.where(same_way, b, a)[hits]
            block_first = min(zip(ranks[0].tolist(), ranks[1].tolist(), strict=True))
            first = block_first if first is None else min(first, block_first)
    if first is None:
        raise AssertionError("the worst pair is not among the neighbors")
    x, x2, changed = space.witness(*first)
    return Witness(
        x=x,
        x2=x2,
        event=frozenset(outputs[index] for index in event),
        ranks=first,
        event_indices=tuple(event),
        changed_user=changed,
    )
