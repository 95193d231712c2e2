"""How long calls take to answer Ctrl-C: each is interrupted after half a second, several times; prints milliseconds."""

from __future__ import annotations

import os
import signal
import statistics
import threading
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from userdp import _core, pairwise_max_divergence
from userdp.divergence import hockey_stick, is_indistinguishable, kl_divergence

RUNS = 5


def calls() -> dict[str, Callable[[], object]]:
    """Work that takes many seconds when nobody interrupts it."""
    level = _core.Level(Fraction(1), Fraction(1, 3))
    pmfs = [([i + 1, 2000 - i], 2001) for i in range(2000)]
    pairs = [(i, j) for j in range(2000) for i in range(j)]
    half = np.full(2**20, 2.0**-20)
    large = np.full(2**22, 2.0**-22)
    source = np.random.default_rng(0)
    p, q = source.dirichlet(np.ones(10**6)), source.dirichlet(np.ones(10**6))
    rows = source.dirichlet(np.ones(64), 40_000)
    scores = source.integers(0, 5, (4, 4))
    counts = [600, 500, 500, 400]
    family = _core.StableFamily(counts, 192, 96)
    distributions = _core.ScoreSelection(_core.Level(Fraction(1), Fraction(1, 200)), 4).matrix_of_vectors(
        scores, counts, family.vectors()
    )

    def bad_pairs() -> None:
        fresh = _core.StableFamily(counts, 192, 96)
        fresh.mark_bad_pairs(distributions, level, Fraction(1, 10**7), [])

    def output_pmf() -> None:
        marked = _core.StableFamily(counts, 192, 96)
        marked.mark_rows([0], [1])
        smallest = marked.smallest_stable_size() or 0
        for _ in range(100):
            marked.output_bounds([0] * smallest + [1] * (97 - smallest), 97, distributions)

    return {
        "largest divergence of 40,000 unlike pmfs": lambda: [
            pairwise_max_divergence(rows, epsilon=0.1) for _ in range(100)
        ],
        "bad pairs of 1.2 million pmfs": bad_pairs,
        "distribution of a release, 1.2 million kept multisets": output_pmf,
        "worst of 2 million exact pairs": lambda: [
            _core.family_worst(pmfs, pairs, level, Fraction(0), None) for _ in range(100)
        ],
        "10^6 exact ties": lambda: [is_indistinguishable(half, half, epsilon=5e-324, delta=0) for _ in range(100)],
        "Kullback-Leibler, k = 10^6": lambda: kl_divergence(p, q),
        "hockey_stick, k = 4 million": lambda: [hockey_stick(large, large, 0.5) for _ in range(10**6)],
    }


def latency(call: Callable[[], object]) -> float:
    """Seconds from the signal to the exception."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.5, interrupt).start()
    try:
        call()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    raise SystemExit("the call finished before the signal")


def main() -> None:
    """Print a markdown table."""
    print("| call | median ms | worst ms |\n|---|---|---|")
    for name, call in calls().items():
        times = [1000 * latency(call) for _ in range(RUNS)]
        print(f"| {name} | {statistics.median(times):.0f} | {max(times):.0f} |")


if __name__ == "__main__":
    main()
