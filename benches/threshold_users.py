"""Users needed to learn a threshold with the practical default, as markdown.

    python benches/threshold_users.py [--quick] [--seed SEED] [--jobs 1]

A trial draws a task and users' examples, fits a `ThresholdClassifier` as it comes (epsilon 1, 2^20 points), and
succeeds when the error of the threshold is at most 0.1 above the least possible one, which is known. Data come from
NumPy's generator, seeded afresh; what the mechanisms draw comes from the operating system. The naive baseline keeps one
example of each user (m = 1).

1. *Users needed*: the least n, on a grid with steps of 5 per cent, with a success rate of 0.9, by bisection; 200 trials
   at each n, 2,000 for the baseline.
2. *No worse than the baseline*: success in 2,000 fresh trials at 1.1 times the baseline's need, for all m.
"""

from __future__ import annotations

import argparse
import math
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

POINTS = 2**20
ALPHA = 0.1
RATE = 0.9
SIZES = (1, 4, 16, 64)
ATOMS = 32


class Cell(NamedTuple):
    """A kind of task, and the part of labels that are wrong."""

    kind: str
    noise: float

    def __str__(self) -> str:
        return f"{self.kind}, {self.noise:g}"


CELLS = (Cell("hard", 0.2), Cell("clump", 0.0), Cell("clump", 0.2), Cell("spread", 0.2))


class Task(NamedTuple):
    """Where examples are, how likely each place is, and between which places the label changes."""

    places: np.ndarray
    masses: np.ndarray
    cut: int


def task(kind: str, noise: float, rng: np.random.Generator) -> Task:
    """A random task.

    hard: thresholds outside a cluster of 32 places are only 0.12 worse than the best one, which is in its middle.
    clump: all examples are at 32 neighboring places. spread: 64 places over the whole domain.
    """
    middle = int(rng.integers(2000, POINTS - 2000))
    cluster = np.arange(middle - ATOMS // 2 + 1, middle + ATOMS // 2 + 1)
    if kind == "clump":
        return Task(cluster, np.full(ATOMS, 1 / ATOMS), ATOMS // 2)
    if kind == "hard":
        inside = 0.24 / (1 - 2 * noise)
        ends = (1 - inside) / 2
        masses = np.concatenate([[ends], np.full(ATOMS, inside / ATOMS), [ends]])
        return Task(np.concatenate([[1], cluster, [POINTS]]), masses, 1 + ATOMS // 2)
    step = POINTS // (2 * ATOMS)
    places = np.arange(2 * ATOMS) * step + int(rng.integers(1, step))
    return Task(places, np.full(2 * ATOMS, 1 / (2 * ATOMS)), int(rng.integers(9, 2 * ATOMS - 7)))


def succeeds(cell: Cell, m: int, n: int, rng: np.random.Generator) -> bool:
    """One trial."""
    from userdp.learners import ThresholdClassifier

    places, masses, cut = task(*cell, rng)
    drawn = rng.choice(len(places), size=n * m, p=masses / masses.sum())
    labels = (drawn >= cut) ^ (rng.random(n * m) < cell.noise)
    learner = ThresholdClassifier(epsilon=1, domain_size=POINTS, m=m, classes=(0, 1))
    learner.fit(places[drawn][:, None], labels.astype(np.int8), groups=np.repeat(np.arange(n), m))
    # Examples up to the threshold are called 0; those between it and the right place are wrong.
    found = int(np.searchsorted(places, learner.threshold_, side="right"))
    between = masses[min(found, cut) : max(found, cut)].sum()
    return bool((1 - 2 * cell.noise) * between <= ALPHA + 1e-12)


def successes(cell: Cell, m: int, n: int, trials: int, seed: int) -> int:
    rng = np.random.default_rng([seed, CELLS.index(cell), m, n])
    return sum(succeeds(cell, m, n, rng) for _ in range(trials))


Rate = Callable[[Cell, int, int, int], float]


def need(rate: Rate, cell: Cell, m: int, trials: int) -> int:
    """The least n on the grid at which the success rate is reached, by bisection."""

    def size(step: int) -> int:
        return round(4 * 1.05**step)

    low, high = 0, 16
    while rate(cell, m, size(high), trials) < RATE:
        low, high = high, high + 16
    while high - low > 1:
        middle = (low + high) // 2
        if size(middle) < size(high) and rate(cell, m, size(middle), trials) < RATE:
            low = middle
        else:
            high = middle
    return size(high)


def shared(pool: ProcessPoolExecutor, jobs: int, seed: int) -> Rate:
    """Success rates from trials that processes share."""
    calls: Iterator[int] = iter(range(10**9))

    def rate(cell: Cell, m: int, n: int, trials: int) -> float:
        parts = [trials // jobs + (part < trials % jobs) for part in range(jobs)]
        begun = [pool.submit(successes, cell, m, n, part, seed + next(calls)) for part in parts]
        return sum(done.result() for done in begun) / trials

    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    parser.add_argument("--seed", type=int, default=None, help="of the data; drawn afresh by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    arguments = parser.parse_args()
    few, many = (20, 200) if arguments.quick else (200, 2000)
    seed = secrets.randbits(63) if arguments.seed is None else arguments.seed
    began = time.perf_counter()
    with ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool:
        rate = shared(pool, arguments.jobs, seed)
        report(rate, few, many)
    print(f"\nSeed of the data {seed}, {time.perf_counter() - began:.0f} s, {arguments.jobs} processes.")


def report(rate: Rate, few: int, many: int) -> None:
    line = partial(print, flush=True)
    line(f"Users needed for success in {RATE:.0%} of trials: {few} trials at each n, {many} for the baseline\n")
    line("| task, noise | baseline | " + " | ".join(f"m = {m}" for m in SIZES[1:]) + " | m = 64 of baseline |")
    line("|---|---|" + "---|" * len(SIZES))
    baseline = {}
    for cell in CELLS:
        baseline[cell] = need(rate, cell, 1, many)
        needs = [need(rate, cell, m, few) for m in SIZES[1:]]
        share = needs[-1] / baseline[cell]
        line(f"| {cell} | {baseline[cell]} | " + " | ".join(map(str, needs)) + f" | {share:.2f} |")
    lowest = RATE - 3 * math.sqrt(RATE * (1 - RATE) / many)
    line(f"\nSuccess at 1.1 times the baseline's need, {many} trials; at least {lowest:.3f} is wanted\n")
    line("| task, noise | users | " + " | ".join(f"m = {m}" for m in SIZES) + " |")
    line("|---|---|" + "---|" * len(SIZES))
    for cell in CELLS:
        n = math.ceil(1.1 * baseline[cell])
        rates = [rate(cell, m, n, many) for m in SIZES]
        line(f"| {cell} | {n} | " + " | ".join(f"{r:.3f}" + " **low**" * (r < lowest) for r in rates) + " |")


if __name__ == "__main__":
    main()
