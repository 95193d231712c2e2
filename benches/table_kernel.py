"""Bounded sums over users of 10^7 rows by the compiled kernel, beside Polars' group_by, as markdown.

Rows have a user, a key by Zipf's law and one value. The kernel keeps at most 10 keys of a user by a keyed hash and adds
up users and clamped sums. Polars does the same with its own hash of the pair in place of the keyed one: two group_by
and one choice. Every run is a process of its own, so that memory is its own too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

MAX_KEYS = 10


def make_rows(rows: int, start: int, count: int, users: int, keys: int) -> tuple[Any, Any, Any]:
    """Rows start, ..., start + count - 1 of so many."""
    random = np.random.default_rng([rows, start])
    weights = np.cumsum(1.0 / np.arange(1, keys + 1))
    drawn = np.searchsorted(weights, random.random(count) * weights[-1]).astype(np.uint32)
    return random.integers(users, size=count, dtype=np.uint32), drawn, random.integers(0, 1 << 16, count)


def kernel(parts: Any, users: int, keys: int, memory: int) -> dict[str, float]:
    """Adds the parts and asks for the sums."""
    from userdp._core import TableIndex, TableSums

    index, key_index = TableIndex(), TableIndex()
    index.integers(np.arange(users))
    key_index.integers(np.arange(keys))
    sums, digests, order = TableSums(1, memory=memory), key_index.digests(bytes(32)), np.arange(keys, dtype=np.uint32)
    times = Times()
    for part in parts:
        times.start()
        sums.add(part[0], part[1], [part[2]])
        times.stop("add")
    times.start()
    found, _ = sums.bounded(
        users=index,
        key_order=order,
        max_keys=MAX_KEYS,
        rule="random",
        columns=[("users",), ("sum", 0, 0, 1 << 16, 1 << 15)],
        key_digests=digests,
        prf_key=bytes(32),
    )
    times.stop("bounded")
    return times.seconds | {"keys": len(found)}


def polars(parts: Any, *_: int) -> dict[str, float]:
    """The same in Polars."""
    import polars as pl

    times = Times()
    frame = pl.concat([pl.DataFrame({"user": u, "key": k, "value": v}) for u, k, v in parts], rechunk=False)
    times.start()
    cells = frame.lazy().group_by("user", "key").agg(pl.col("value").sum())
    cells = cells.with_columns(pl.struct("user", "key").hash(1).alias("coin"))
    kept = cells.filter(pl.col("coin").rank("ordinal").over("user") <= MAX_KEYS)
    sums = kept.group_by("key").agg(pl.len(), (pl.col("value").clip(0, 1 << 16) - (1 << 15)).sum()).sort("key")
    found = sums.collect(engine="streaming")
    times.stop("all")
    return times.seconds | {"keys": len(found)}


def polars_cells(parts: Any, *_: int) -> dict[str, float]:
    """The first group_by of Polars alone, which bounds nothing."""
    import polars as pl

    times = Times()
    frame = pl.concat([pl.DataFrame({"user": u, "key": k, "value": v}) for u, k, v in parts], rechunk=False)
    times.start()
    cells = frame.lazy().group_by("user", "key").agg(pl.col("value").sum(), pl.len()).collect(engine="streaming")
    times.stop("all")
    return times.seconds | {"cells": len(cells)}


class Times:
    """Seconds of the clock and of all processors, by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.began = (0.0, 0.0)

    def start(self) -> None:
        self.began = (time.perf_counter(), time.process_time())

    def stop(self, step: str) -> None:
        now = (time.perf_counter(), time.process_time())
        for kind, before, after in zip(("clock", "processor"), self.began, now, strict=True):
            name = f"{step}: {kind} [s]"
            self.seconds[name] = self.seconds.get(name, 0.0) + after - before


CANDIDATES = {"kernel": kernel, "polars": polars, "polars, first group_by": polars_cells}


def measure(name: str, rows: int, users: int, keys: int, memory: int) -> None:
    """Prints a run as JSON."""
    batch = min(rows, 10_000_000)
    parts = (make_rows(rows, start, batch, users, keys) for start in range(0, rows, batch))
    ready = list(parts) if rows <= batch else parts
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = CANDIDATES[name](ready, users, keys, memory)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(found | {"rows in memory [MiB]": before / 1024, "peak above them [MiB]": (most - before) / 1024}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--users", type=int, help="a tenth of the rows by default")
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--memory", type=int, default=2**30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--candidates", nargs="+", choices=CANDIDATES, default=list(CANDIDATES))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    users = options.users or options.rows // 10
    if options.one:
        measure(options.one, options.rows, users, options.keys, options.memory)
        return
    arguments = [f"--{name}={getattr(options, name)}" for name in ("rows", "keys", "memory")] + [f"--users={users}"]
    for name in options.candidates:
        runs = []
        for _ in range(options.rounds):
            done = subprocess.run(
                [sys.executable, __file__, "--one", name, *arguments], capture_output=True, text=True, check=True
            )
            runs.append(json.loads(done.stdout))
        print(f"\n## {name}: {options.rows} rows, {users} users\n\n| | median |\n|---|--:|")
        for key in runs[0]:
            print(f"| {key} | {sorted(run[key] for run in runs)[len(runs) // 2]:.2f} |")


if __name__ == "__main__":
    main()
