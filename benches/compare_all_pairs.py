"""The largest divergence over all pairs of many pmfs: the search beside exhaustive loops, in one process and one run.

Prints markdown tables. Times are the median of several rounds, end to end from a numpy array: copying, validating,
searching, and evaluating the witness in exact arithmetic. Where a baseline would take hours it is run on fewer rows
and extrapolated by the number of pairs; the table says so.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core, pairwise_indistinguishable, pairwise_max_divergence
from userdp.exact.epsilon import level_of

EPSILON = Fraction(1, 3)
Floats = npt.NDArray[np.float64]


def seconds(call: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """Median time of some rounds, and the last answer."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        answer = call()
        times.append(time.perf_counter() - start)
    return statistics.median(times), answer


# --- families of pmfs ------------------------------------------------------------------------------


def normalized(weights: Floats) -> Floats:
    return weights / weights.sum(axis=1, keepdims=True)


def exponential_mechanism(n: int, r: int, outputs: int, rate: float, seed: int = 5) -> Floats:
    """All size-r deletions of n users: exponential mechanism on sums of random integer scores."""
    random = np.random.default_rng(seed)
    scores = random.binomial(6, 0.2 + 0.6 * random.random(outputs), (n, outputs))
    deleted = np.array(list(itertools.combinations(range(n), r)))
    totals = scores.sum(axis=0) - scores[deleted].sum(axis=1)
    return normalized(np.exp(-rate * (totals - totals.min(axis=1, keepdims=True))))


def dirichlet(rows: int, outputs: int, seed: int = 7) -> Floats:
    """No structure at all."""
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), rows)


def four_types(counts: tuple[int, int, int, int], deletions: int, outputs: int, rate: float, seed: int = 5) -> Floats:
    """All deletions of users of four types, by how many of each are deleted."""
    scores = np.random.default_rng(seed).integers(0, 5, (4, outputs))
    a, b, c = (np.arange(deletions + 1),) * 3
    grid = np.stack(np.meshgrid(a, b, c, indexing="ij"), axis=-1).reshape(-1, 3)
    grid = grid[grid.sum(axis=1) <= deletions]
    vectors = np.column_stack([grid, deletions - grid.sum(axis=1)])
    totals = (np.array(counts) - vectors) @ scores
    return normalized(np.exp(-rate * (totals - totals.min(axis=1, keepdims=True)).astype(np.float64)))


# --- baselines -------------------------------------------------------------------------------------


def numpy_broadcast(pmfs: Floats) -> float:
    """A row against all rows at a time."""
    multiplier = math.exp(EPSILON)
    scaled = multiplier * pmfs
    return max(float(np.maximum(0.0, row - scaled).sum(axis=1).max()) for row in pmfs)


def exhaustive(pmfs: Floats, arithmetic: str) -> float:
    value, _, _ = _core.pairwise_exhaustive(_core.PmfMatrix.from_floats(pmfs), level_of(EPSILON), arithmetic)
    return value


# --- tables ----------------------------------------------------------------------------------------


def kernels(rounds: int) -> None:
    pmfs = np.ascontiguousarray(exponential_mechanism(20, 8, 32, 0.1)[::10])
    few = pmfs[:2000]
    baseline, _ = seconds(lambda: numpy_broadcast(few), rounds)
    per_pair = baseline / len(few) ** 2
    print(f"\n## All pairs, nothing discarded (k = 32; numpy at N = {len(few)}, tiles at N = {len(pmfs)})\n")
    print("| arithmetic | pair-outputs per second | ratio to numpy broadcasting |\n|---|---|---|")
    print(f"| numpy broadcasting | {32 / per_pair / 1e9:.2f} G | 1 |")
    for arithmetic in ("float64", "fixed32", "fixed64"):
        time_, _ = seconds(lambda arithmetic=arithmetic: exhaustive(pmfs, arithmetic), rounds)
        tile = time_ / len(pmfs) ** 2
        print(f"| tiles, {arithmetic} | {32 / tile / 1e9:.1f} G | {per_pair / tile:.0f} |")


def search(name: str, pmfs: Floats, rounds: int, baseline: str | None, numpy_per_pair_output: float) -> None:
    """One row: the maximum, verdicts around it, and what the loops would take."""
    rows, outputs = pmfs.shape
    elapsed, found = seconds(lambda: pairwise_max_divergence(pmfs, epsilon=EPSILON), rounds)
    verdicts = []
    for factor in (0.5, 0.999, 1.001, 2.0):
        delta = min(1.0, found.lower * factor)
        time_, verdict = seconds(
            lambda delta=delta: pairwise_indistinguishable(pmfs, epsilon=EPSILON, delta=delta), rounds
        )
        if verdict.holds is not (found.upper <= delta):
            raise AssertionError("a verdict disagrees with the maximum")
        verdicts.append(f"{time_ * 1e3:.0f}")
    loop = ""
    if baseline is not None:
        time_, value = seconds(lambda: exhaustive(pmfs, baseline), 1)
        if abs(value - found.lower) > 1e-6:
            raise AssertionError("the exhaustive maximum disagrees")
        loop = f"{time_:.2f} s ({baseline}): {time_ / elapsed:.1f}x"
    numpy_time = numpy_per_pair_output * rows * rows * outputs
    print(
        f"| {name} | {rows:,} | {outputs} | {found.lower:.5g} | {elapsed * 1e3:.0f} ms | {' / '.join(verdicts)} ms "
        f"| {loop} | {numpy_time:,.0f} s: {numpy_time / elapsed:,.0f}x |",
        flush=True,
    )


HEADER = (
    "| family | N | k | largest divergence | search | verdicts at 0.5, 0.999, 1.001, 2 times it | exhaustive tiles "
    "| numpy, extrapolated from N = 2,000 |\n|---|---|---|---|---|---|---|---|"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="no families of over a million pmfs, one round")
    quick = parser.parse_args().quick
    rounds = 1 if quick else 5
    kernels(rounds)
    few = exponential_mechanism(20, 8, 32, 0.1)[::60][:2000]
    few_time, _ = seconds(lambda: numpy_broadcast(few), rounds)
    cost = few_time / (len(few) ** 2 * few.shape[1])
    print("\n## The largest divergence, exactly\n")
    print(HEADER)
    for rate in (0.03, 0.1, 0.3):
        pmfs = exponential_mechanism(20, 8, 32, rate)
        loop = None if quick or rate != 0.1 else "float64"
        search(f"exponential mechanism, n = 20, 8 deleted, rate {rate}", pmfs, rounds, loop, cost)
    search("Dirichlet, no structure", dirichlet(20_000, 64), min(rounds, 3), "fixed32", cost)
    search("Dirichlet, no structure", dirichlet(40_000, 32), min(rounds, 3), "fixed32", cost)
    if not quick:
        for rate in (2e-3, 6e-4, 4e-4):
            pmfs = four_types((200, 150, 300, 250), 192, 64, rate)
            search(f"4 types, 192 deleted, rate {rate}", pmfs, 3, None, cost)
    print("\n## Growth (exponential mechanism, rate 0.1)\n")
    print(HEADER)
    for n in (16, 18, 20, 22):
        search(f"n = {n}, 8 deleted", exponential_mechanism(n, 8, 32, 0.1), rounds, None, cost)
    for outputs in (16, 64, 128):
        search(f"n = 20, {outputs} outputs", exponential_mechanism(20, 8, outputs, 0.1), rounds, None, cost)
    print(f"\nPeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
