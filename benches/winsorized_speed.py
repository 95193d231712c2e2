"""Time and memory of private means of many long vectors beside numpy's mean, as markdown.

    python benches/winsorized_speed.py [--users 100000] [--columns 1024] [--rounds 5]

One row for each user. "copy" is a copy of the table by two threads; "Hadamard pass" makes every user's rotated vector
and counts how many are within a ball, so it includes reading, clipping and a norm; "winsorized mean" is the work on the
data of a winsorized mean: counts of all bins, then the sums, each of which rotates every vector anew; "iterated mean"
is that of three rounds of clipped sums; "fit" is all of `WinsorizedMean.fit` by a method. Every round times each of
them once, in an order that changes; a table cell is the median over the rounds of a time, or of a ratio between two
times of the same round. Processor seconds, of all threads, are the least over the rounds: others who use the machine
disturb them less.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from userdp.means import WinsorizedMean
from userdp.users.table import UserTable
from userdp.users.vectors import MeanVectors

BINS = 128
STEPS = 2**20
ROUNDS_OF_ITERATED = 3


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def copier(table: np.ndarray) -> Callable[[], object]:
    """A copy by two threads into memory that is there already."""
    target = np.zeros_like(table)
    half = len(table) // 2
    pool = ThreadPoolExecutor(2)

    def copy() -> None:
        list(pool.map(np.copyto, (target[:half], target[half:]), (table[:half], table[half:])))

    return copy


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--users", type=int, default=100_000)
    arguments.add_argument("--columns", type=int, default=1024)
    arguments.add_argument("--rounds", type=int, default=5)
    chosen = arguments.parse_args()
    n, d = chosen.users, chosen.columns
    rng = np.random.default_rng(0)
    # Points at distance 1/2 from the origin and 1/8 from each other, in the unit ball.
    table = np.empty((n, d))
    for block in np.array_split(table, max(1, n // 1000)):
        block[:] = 0.5 / d**0.5 + rng.standard_normal(block.shape) * (0.09 / d**0.5)
    data = UserTable(table, np.zeros(n, dtype=np.uint8), np.arange(n, dtype=np.uint32), n, 1)
    padded = 1 << (d - 1).bit_length()
    signs = (1 - 2 * rng.integers(0, 2, size=padded)).astype(np.int8)
    plain, rotated = MeanVectors(data, bound=1.0), MeanVectors(data, bound=1.0, signs=signs)

    def clipped_sum() -> object:
        return plain.clipped_sum(0.5 / d**0.5, 0.125, 2.0**-23)

    def bin_counts() -> object:
        return rotated.bin_counts(BINS, 1.0)

    def winsorized_sum() -> object:
        return rotated.winsorized_sum(-1.0, STEPS, 2.0 / STEPS)

    groups = np.arange(n)

    def fit(**options: object) -> object:
        return WinsorizedMean(epsilon=1, delta=1e-6, max_norm=1, m=1, **options).fit(table, groups=groups)

    steps: dict[str, Callable[[], object]] = {
        "Hadamard pass": lambda: rotated.counts_within(0.0, [1.0]),
        "bin counts": bin_counts,
        "winsorized sum": winsorized_sum,
        "clipped sum": clipped_sum,
        "winsorized mean": lambda: (bin_counts(), winsorized_sum()),
        "iterated mean": lambda: [clipped_sum() for _ in range(ROUNDS_OF_ITERATED)],
        "fit, by default": fit,
        "fit, tested": lambda: fit(user_std=0.125, method="tested"),
        "fit, iterated": lambda: fit(user_std=0.125, method="iterated"),
        "fit, practical": lambda: fit(user_std=0.125, method="practical"),
    }
    before = peak()
    for step in steps.values():
        step()
    memory = (peak() - before) / table.nbytes
    steps |= {"copy": copier(table), "numpy mean": lambda: table.mean(axis=0)}
    times: dict[str, list[float]] = {name: [] for name in steps}
    processor = dict.fromkeys(steps, float("inf"))
    for _ in range(chosen.rounds):
        for name in random.sample(list(steps), len(steps)):
            start, used = time.perf_counter(), processor_seconds()
            steps[name]()
            times[name].append(time.perf_counter() - start)
            processor[name] = min(processor[name], processor_seconds() - used)
    base = [mean + pass_ for mean, pass_ in zip(times["numpy mean"], times["Hadamard pass"], strict=True)]
    print(
        f"n = {n}, d = {d}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; memory over that of the table:"
    )
    print(f"{100 * memory:.1f}% of it.\n")
    both = processor["numpy mean"] + processor["Hadamard pass"]
    print("| what | seconds | over copy | over numpy mean + Hadamard pass | processor seconds | over those of both |")
    print("|---|---|---|---|---|---|")
    for name, seconds in times.items():
        ratios = [[a / b for a, b in zip(seconds, other, strict=True)] for other in (times["copy"], base)]
        over = " | ".join(f"{statistics.median(ratio):.2f}" for ratio in ratios)
        used = f"{processor[name]:.3f} | {processor[name] / both:.2f}"
        print(f"| {name} | {statistics.median(seconds):.3f} | {over} | {used} |")


if __name__ == "__main__":
    main()
