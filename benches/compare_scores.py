"""User-level scores beside vectorized numpy, in one process and one run, on two threads each.

Prints markdown tables (or JSON with ``--json``); see benches/README.md for the method. Set the threads of numpy's BLAS
(``OPENBLAS_NUM_THREADS=2``) and of the core (``RAYON_NUM_THREADS=2``) before the start; without them this program does.
"""

from __future__ import annotations

import argparse
import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

THREADS = 2
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(variable, str(THREADS))
# OpenBLAS's idle threads spin for up to 2^26 cycles otherwise, beside whoever comes next.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import numpy as np  # noqa: E402
import numpy.typing as npt  # noqa: E402
from rounds import Candidate, described, environment, expect, human, progress, table, take_turns  # noqa: E402

from userdp import _core  # noqa: E402
from userdp.learners.scores import clipped_pairwise_scores, user_level_errors  # noqa: E402

TAU = 4
ANCHOR = "userdp"

Result = dict[str, Any]
Integers = npt.NDArray[np.int64]


# --- the same scores in numpy -----------------------------------------------------------------------


def best_of_others(sums: npt.NDArray[Any]) -> Integers:
    """The largest entry of each row off the diagonal."""
    np.fill_diagonal(sums, np.iinfo(np.int64).min)
    return np.asarray(sums.max(axis=1), dtype=np.int64)


def in_place(counts: npt.NDArray[np.int8]) -> Integers:
    """In bytes: subtract, clip and sum, candidate by candidate; half of the candidates on each thread."""
    sums = np.empty((len(counts), len(counts)), dtype=np.int64)

    def part(rows: range) -> None:
        work = np.empty_like(counts)
        for a in rows:
            np.subtract(counts[a], counts, out=work)
            np.clip(work, -TAU, TAU, out=work)
            work.sum(axis=1, dtype=np.int64, out=sums[a])

    with ThreadPoolExecutor(THREADS) as executor:
        list(executor.map(part, [range(first, len(counts), THREADS) for first in range(THREADS)]))
    return best_of_others(sums)


def one_hot(counts: npt.NDArray[np.int8], m: int) -> Integers:
    """One product of float32 matrices: the clipped difference as a sum over the values 1 to m of the first count.

    clip(v - w) = clip(0 - w) + sum over 1 <= j <= v of (clip(j - w) - clip(j - 1 - w)).
    """
    candidates = len(counts)
    values = np.arange(1, m + 1, dtype=np.int8)
    steps = np.clip(values[:, None] - np.arange(m + 1), -TAU, TAU) - np.clip(
        values[:, None] - 1 - np.arange(m + 1), -TAU, TAU
    )
    at_least = (counts[:, :, None] >= values).astype(np.float32).reshape(candidates, -1)
    worth = steps.T.astype(np.float32)[counts].reshape(candidates, -1)
    of_zero = np.clip(-counts, -TAU, TAU).sum(axis=1, dtype=np.int64)
    return best_of_others((at_least @ worth.T).astype(np.int64) + of_zero)


def gathered(psi: Integers, points: npt.NDArray[np.uint32], tau: int) -> Integers:
    """Of any comparison: look up, sum, clip and sum, pair by row of the table."""
    sums = np.empty(psi.shape[:2], dtype=np.int64)

    def part(rows: range) -> None:
        for a in rows:
            # Of shape (b, users, m).
            sums[a] = np.clip(psi[a][:, points].sum(axis=2), -tau, tau).sum(axis=1)

    with ThreadPoolExecutor(THREADS) as executor:
        list(executor.map(part, [range(first, len(psi), THREADS) for first in range(THREADS)]))
    return best_of_others(sums)


# --- measurements -----------------------------------------------------------------------------------


def made_counts(candidates: int, users: int, m: int, seed: int) -> npt.NDArray[np.int8]:
    """Mistakes of candidates with different error rates."""
    random = np.random.default_rng(seed)
    rates = random.uniform(0.2, 0.5, (candidates, 1))
    return random.binomial(m, rates, (candidates, users)).astype(np.int8)


def clipped(candidates: int, users: int, m: int, options: argparse.Namespace) -> Result:
    progress(f"clipped pairwise scores, K = {candidates}, n = {users}, m = {m}")
    rows = [(made_counts(candidates, users, m, seed),) for seed in range(3)]
    contenders = [
        Candidate(ANCHOR, lambda counts: clipped_pairwise_scores(counts, TAU), rows),
        Candidate("numpy, int8 in place", in_place, rows),
        Candidate("numpy, one-hot BLAS", lambda counts: one_hot(counts, m), rows),
    ]
    results = [contender.results(1)[0] for contender in contenders]
    for contender, result in zip(contenders, results, strict=True):
        expect(np.array_equal(result, results[0]), f"{contender.name}: other scores")
    times = take_turns(contenders, options.rounds, options.seconds)
    return summary({"K": candidates, "n": users, "m": m}, times)


def any_psi(candidates: int, users: int, m: int, points: int, options: argparse.Namespace) -> Result:
    progress(f"any psi, K = {candidates}, n = {users}, m = {m}, {points} points")
    random = np.random.default_rng(2)
    psi = random.integers(-1000, 1000, (candidates, candidates, points), dtype=np.int64, endpoint=True)
    of_users = random.integers(0, points, (users, m), dtype=np.uint32)
    rows = (of_users.ravel(), np.repeat(np.arange(users, dtype=np.uint32), m), users, m)
    contenders = [
        Candidate(ANCHOR, lambda: _core.psi_scores(psi, rows, 1000 * TAU), [()]),
        Candidate("numpy", lambda: gathered(psi, of_users, 1000 * TAU), [()]),
    ]
    results = [contender.results(1)[0] for contender in contenders]
    expect(np.array_equal(*results), "any psi: other scores")
    times = take_turns(contenders, options.rounds, options.seconds)
    return summary({"K": candidates, "n": users, "m": m}, times)


def summary(sizes: dict[str, int], times: Any) -> Result:
    return {
        **sizes,
        "seconds": {name: times.median(name) for name in times.rows},
        "times_ours": {name: times.ratio(name, ANCHOR) for name in times.rows},
    }


def growth(candidates: int, users: int, m: int, options: argparse.Namespace) -> Result:
    """Seconds from predictions to counts, and from counts to scores."""
    progress(f"growth, K = {candidates}, n = {users}, m = {m}")
    random = np.random.default_rng(3)
    ids = np.repeat(np.arange(users), m)
    predictions = random.integers(0, 2, (candidates, users * m), dtype=np.uint8)
    labels = random.integers(0, 2, users * m, dtype=np.uint8)
    counts = user_level_errors(predictions, labels, groups=ids, m=m)
    points, codes = np.arange(users * m, dtype=np.uint32), ids.astype(np.uint32)
    rows = (points, codes, users, m)
    contenders = [
        Candidate("counts", lambda: user_level_errors(predictions, labels, groups=ids, m=m), [()]),
        Candidate("users above t", lambda: _core.user_errors_above(predictions, labels, rows, m // 2), [()]),
        Candidate("clipped pairs", lambda: clipped_pairwise_scores(counts, TAU), [()]),
    ]
    times = take_turns(contenders, options.rounds, options.seconds)
    return {"K": candidates, "n": users, "m": m, "seconds": {name: times.median(name) for name in times.rows}}


# --- tables -----------------------------------------------------------------------------------------


def sizes(row: Result) -> list[str]:
    return [str(row["K"]), str(row["n"]), str(row["m"])]


def compared(rows: list[Result]) -> list[str]:
    names = list(rows[0]["seconds"])
    cells = [[f"{human(row['seconds'][name])} ({row['times_ours'][name]:.3g})" for name in names] for row in rows]
    return table(["K", "n", "m", *names], [[*sizes(row), *cell] for row, cell in zip(rows, cells, strict=True)])


def markdown(report: Result) -> str:
    names = list(report["growth"][0]["seconds"])
    return "\n".join(
        [
            described(report["environment"]),
            "",
            f"### Clipped pairwise scores, τ = {TAU}: median time of a call (its median ratio to userdp's)",
            "",
            *compared(report["clipped"]),
            "",
            "### Any comparison, 64 points, likewise",
            "",
            *compared(report["psi"]),
            "",
            "### Growth with K, n and m: median time of a call",
            "",
            *table(
                ["K", "n", "m", *names],
                [[*sizes(row), *(human(row["seconds"][name]) for name in names)] for row in report["growth"]],
            ),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", nargs="?", const="-", help="write JSON, to stdout without FILE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02, help="least time of one batch")
    parser.add_argument("--quick", action="store_true", help="small sizes only, to see that everything runs")
    options = parser.parse_args()

    k, n = (100, 1000) if options.quick else (1000, 10_000)
    report: Result = {
        "environment": environment(("userdp", "numpy")),
        "clipped": [clipped(k, n, 16, options)],
        "psi": [any_psi(k // 10, n // 5, 16, 64, options)],
        "growth": [
            growth(*size, options)
            for size in ((k, n, 16), (2 * k, n, 16), (k, 2 * n, 16), (k, n, 32), (k, n, 64), (k // 4, n, 256))
        ],
    }
    text = json.dumps(report, indent=1)
    if options.json == "-":
        print(text)
        return
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    print(markdown(report))


if __name__ == "__main__":
    main()
