"""How the comparisons take times: candidates in turn, round by round, and ratios inside a round."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import itertools
import math
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Call = Callable[..., Any]
Rows = list[tuple[Any, ...]]


@dataclass
class Candidate:
    """One way to do a task: a call and the ready-made arguments it goes round."""

    name: str
    call: Call
    rows: Rows
    calls: int = 1
    _round: Iterator[tuple[Any, ...]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._round = itertools.cycle(self.rows)

    def results(self, count: int) -> list[Any]:
        """Return the results on the first `count` rows."""
        return [self.call(*row) for row in self.rows[:count]]

    def seconds(self, least: float) -> float:
        """Seconds per call, over a batch that takes at least `least` seconds."""
        while True:
            batch = list(itertools.islice(self._round, self.calls))
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            for row in batch:
                self.call(*row)
            spent = time.perf_counter() - start
            gc.enable()
            if spent >= least:
                return spent / self.calls
            self.calls = max(2 * self.calls, math.ceil(1.2 * self.calls * least / max(spent, 1e-9)))


class Runner(Protocol):
    """What can be timed: a candidate here, or one in another process."""

    name: str

    def seconds(self, least: float) -> float:
        """Seconds per call."""
        ...


@dataclass
class Times:
    """Times of all candidates, by name, one a round."""

    rows: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Seconds per call."""
        return statistics.median(self.rows[name])

    def ratios(self, name: str, anchor: str) -> list[float]:
        """Ratios to another candidate, each of two times of the same round."""
        return [mine / its for mine, its in zip(self.rows[name], self.rows[anchor], strict=True)]

    def ratio(self, name: str, anchor: str) -> float:
        """The median of these ratios."""
        return statistics.median(self.ratios(name, anchor))


def take_turns(runners: Sequence[Runner], rounds: int, least: float) -> Times:
    """Time every candidate once a round, after a round that does not count.

    The order is another one in each round, so that nobody always comes after the same candidate's use of the caches.
    """
    order = random.Random(0)
    for runner in runners:
        runner.seconds(least)
    rows: dict[str, list[float]] = {runner.name: [] for runner in runners}
    for _ in range(rounds):
        for runner in order.sample(runners, len(runners)):
            rows[runner.name].append(runner.seconds(least))
    return Times(rows)


def human(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("ns", 1e9), ("µs", 1e6), ("ms", 1e3)):
        if seconds * scale < 1000:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds:.3g} s"


def environment(packages: Sequence[str]) -> dict[str, Any]:
    """The machine, how busy it is, and the versions of what is compared."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        cpu = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), cpu)
    versions = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {
        "cpu": cpu,
        "logical_cpus": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_at_start": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def described(environment: dict[str, Any]) -> str:
    """The environment as one sentence."""
    versions = ", ".join(f"{name} {version}" for name, version in environment["versions"].items())
    return (
        f"{environment['cpu']}, {environment['logical_cpus']} logical CPUs, {environment['system']}, "
        f"load {environment['load_at_start']}; {versions}."
    )


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def expect(condition: bool, message: str) -> None:
    """End the run when results disagree."""
    if not condition:
        raise SystemExit(f"results disagree: {message}")


def progress(message: str) -> None:
    """Say on stderr what is measured next."""
    print(message, file=sys.stderr, flush=True)
