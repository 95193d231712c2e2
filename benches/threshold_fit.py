"""Time and memory of a threshold fit on 10^7 rows, as markdown.

    python benches/threshold_fit.py [--rows 10000000] [--rounds 3]

Every line is a process of its own, so that its peak memory is its own. "scores" are the sort by point, the least errors
for every t and the profile at one t; "draw" is the constant-time draw from the profile; "fit" is the whole call of
`ThresholdClassifier.fit` on a domain of 2^64 - 1 points, user ids and all.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

DOMAIN = 2**64 - 1


def people(rows: int, users: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows in random order: points, labels that a threshold explains but for a fifth, int64 ids without a pattern."""
    rng = np.random.default_rng(7)
    points = rng.integers(1, DOMAIN, size=(rows, 1), dtype=np.uint64, endpoint=True)
    labels = ((points[:, 0] > np.uint64(2**62)) ^ (rng.random(rows) < 0.2)).astype(np.int8)
    ids = rng.permutation(np.arange(rows, dtype=np.int64) % users) * 1_000_003
    return points, labels, ids


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(rows: int, users: int) -> dict[str, float]:
    """One round: seconds of each step, and memory over that of the inputs."""
    from userdp import _core
    from userdp.learners import ThresholdClassifier
    from userdp.mechanisms import GroupedExponentialMechanism, GroupedScores

    m = rows // users
    learner = ThresholdClassifier(epsilon=1, domain_size=DOMAIN, m=m, exact_integers=True, classes=(0, 1))
    # What is imported and started at the first call, on a few users.
    few = people(1000, 100)
    learner.fit(few[0], few[1], groups=few[2])
    points, labels, ids = people(rows, users)
    inputs = points.nbytes + labels.nbytes + ids.nbytes
    before = peak()
    start = time.perf_counter()
    learner.fit(points, labels, groups=ids)
    fit = time.perf_counter() - start
    used = peak()
    start = time.perf_counter()
    codes, found = _core.user_codes(ids)
    _core.first_rows(codes, len(found), m)
    encode = time.perf_counter() - start
    start = time.perf_counter()
    sweep = _core.ThresholdSweep(points[:, 0], labels.view(np.uint8), codes, len(found), m, DOMAIN)
    sweep.minimal_errors()
    starts, scores = sweep.groups(m // 4)
    computed = time.perf_counter() - start
    start = time.perf_counter()
    GroupedExponentialMechanism(epsilon=1, sensitivity=1).sample(GroupedScores(starts, scores, DOMAIN))
    draw = time.perf_counter() - start
    return {
        "fit": fit,
        "ids": encode,
        "scores": computed,
        "draw": draw,
        "peak of a fit / inputs": (used - before + inputs) / inputs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.rows, arguments.one)))
        return
    print(f"{arguments.rows} rows, medians of {arguments.rounds} processes\n")
    print("| users | fit | ids | scores | draw | peak of a fit / inputs |\n|---|---|---|---|---|---|")
    for users in (arguments.rows // 1000, arguments.rows // 100, arguments.rows // 10):
        command = [sys.executable, __file__, "--rows", str(arguments.rows), "--one", str(users)]
        found = [json.loads(subprocess.check_output(command)) for _ in range(arguments.rounds)]
        middle = {name: float(np.median([one[name] for one in found])) for name in found[0]}
        times = " | ".join(f"{middle[name]:.2f} s" for name in ("fit", "ids", "scores", "draw"))
        print(f"| {users} | {times} | {middle['peak of a fit / inputs']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
