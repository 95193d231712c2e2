"""Releases of DelStab on random datasets: nothing beyond what the public plan states, and the time and memory it takes.

Up to 80 users of 1 to 80 kinds, at several levels, with algorithms that range from constant to random; the datasets
range from one kind for everybody to one for each. Prints a markdown table of the maxima, and checks them against the
plans.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from userdp import BudgetError, DelStab, SymmetricAlgorithm, _core
from userdp.delstab import stable_sets

LEVELS = {(1, "1e-6"): 92, (2, "1e-4"): 2, (2, "1e-6"): 2, (4, "1e-6"): 2, (8, "1e-2"): 2}
"""And how often: at the first one nearly all of 80 users are left out, and a release takes milliseconds."""
EVEN, ODD = [0.5, 0.5], [0.25, 0.75]
MAX_LESSONS = 1024
"""Failures that a search looks into: each may take a grid for every type of a choice."""
SHARES = (0.0, 0.001, 0.02, 0.3)
"""How often a kept set gets the other distribution, which the first is not compatible with."""


@dataclass
class Work:
    """What a release did, and what the algorithm was in it."""

    seed: int = 0
    share: float = 0
    choices: int = 0
    kept_sets: int = 0
    pmfs: int = 0


class WatchedSearch:
    """A search whose choices are counted, those with few kept sets too."""

    work: Work

    def __init__(self, *arguments: Any) -> None:
        self._search = _core.StableSearch(*arguments)

    def step(self, progress: Any) -> Any:
        """Go on, and take note of what was done at the end."""
        question = self._search.step(progress)
        if question is None:
            grids, kept_sets, pools = self._search.work()
            self.work.choices += grids + pools
            self.work.kept_sets = max(self.work.kept_sets, kept_sets)
        return question

    def __getattr__(self, name: str) -> Any:
        return getattr(self._search, name)


def watched() -> Work:
    """Counts the choices that are decided."""
    WatchedSearch.work = Work()
    watching = SimpleNamespace(**{**vars(_core), "StableSearch": WatchedSearch})
    stable_sets._core = watching  # type: ignore[assignment]
    return WatchedSearch.work


def algorithm(work: Work) -> SymmetricAlgorithm:
    """A distribution by the kept multiset, or by the set of kinds, made up as it is asked for."""

    def pmf(users: Any) -> list[float]:
        work.pmfs += 1
        key = tuple(sorted(set(users))) if work.seed % 2 else users
        return ODD if hash((work.seed, key)) % 10_000 < 10_000 * work.share else EVEN

    return SymmetricAlgorithm((0, 1), pmf)


def dataset(source: random.Random, n: int) -> tuple[tuple[int], ...]:
    """Kinds as likely as each other or as unlike as can be; and, rarely, one or two giants beside users who are alone.

    The last are what takes longest.
    """
    kinds = source.randint(1, n)
    form = source.choices(("even", "skewed", "giant", "giants"), weights=(69, 29, 1, 1))[0]
    if form in ("giant", "giants"):
        alone = min(kinds, n - 1)
        rest = n - alone
        first = rest if form == "giant" else source.randint(0, rest)
        return tuple((kind,) for kind in (*range(alone), *(1000,) * first, *(1001,) * (rest - first)))
    weights = [source.random() ** (1 if form == "even" else 12) for _ in range(kinds)]
    return tuple((kind,) for kind in source.choices(range(kinds), weights=weights, k=n))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first dataset")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no dataset is begun later")
    options = parser.parse_args()
    work = watched()
    mechanisms = {level: DelStab(algorithm(work), epsilon=level[0], delta=level[1]) for level in LEVELS}
    rows: dict[tuple[Any, str], list[float]] = {}
    start = time.perf_counter()
    refused = 0
    done = 0
    for seed in range(options.first, options.first + options.datasets):
        if time.perf_counter() - start > 60 * options.minutes:
            break
        done += 1
        source = random.Random(seed)
        level = source.choices(list(LEVELS), weights=list(LEVELS.values()))[0]
        mechanism = mechanisms[level]
        work.seed, work.share = seed, source.choice(SHARES)
        n = source.randint(mechanism.deletions, 80)
        plan = mechanism.plan(n)
        users = dataset(source, n)
        work.choices = work.kept_sets = work.pmfs = 0
        before = time.perf_counter()
        try:
            answer = mechanism.release(users)
        except BudgetError:  # the plan has admitted it
            raise AssertionError(f"seed {seed}") from None
        elapsed = time.perf_counter() - before
        assert answer in mechanism.outputs, seed
        assert work.choices <= plan.choices + MAX_LESSONS * plan.max_distinct_users, seed
        assert work.kept_sets <= plan.kept_sets, seed
        refused += answer is mechanism.outputs[-1]
        row = rows.setdefault(level, [0, 0, 0, 0, 0, 0, 0])
        found = (elapsed, work.choices, work.kept_sets, work.pmfs, plan.choices, plan.kept_sets)
        rows[level] = [row[0] + 1, *(max(pair) for pair in zip(row[1:], found, strict=True))]
        if seed % 10_000 == 0:
            print(f"<!-- {seed}: {time.perf_counter() - start:.0f} s -->", flush=True)
    print(
        "| ε, δ | datasets | longest release | most choices decided | of | most kept sets of one | "
        "of | most distributions |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for (epsilon, delta), row in sorted(rows.items(), key=str):
        count, elapsed, choices, kept_sets, pmfs, all_choices, all_kept = row
        print(
            f"| {epsilon}, {delta} | {count:,} | {elapsed:.2f} s | {choices:,} | {all_choices:,} | {kept_sets:,} | "
            f"{all_kept:,} | {pmfs:,} |"
        )
    total = time.perf_counter() - start
    print(f"\n{done:,} datasets in {total:.0f} s, {refused:,} refusals, peak memory ", end="")
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:.0f} MiB")


if __name__ == "__main__":
    main()
