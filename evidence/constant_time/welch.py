"""A smoke test with a clock: `make constant-time-welch`.

Calls on one fixed input are timed among calls on varying ones, in random order, and Welch's t tells whether the means
differ. Beyond 4.5 is a reason to look; nothing follows from less, and nothing fails here: clocks of shared machines are
no evidence. The inputs of both classes are made beforehand, by the same code.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from constant_time.__main__ import ROOT, WORK, missing, unsupported
from constant_time.cases import CASES, Inputs, Integers, words
from constant_time.inside import runner
from constant_time.probe import CONTROL, Probe, compile_probe
from constant_time.running import HERE
from constant_time.wheel import install

CALLS = 5_000
KEPT = 0.9
"""The part of the calls that is kept, the fastest: what interrupted the others has nothing to do with them."""


def welch_t(a: Integers, b: Integers) -> float:
    """Welch's t of two samples."""
    spread = a.var(ddof=1) / a.size + b.var(ddof=1) / b.size
    return float((a.mean() - b.mean()) / np.sqrt(spread)) if spread else 0.0


def t_of(run: Callable[[Inputs], Integers], classes: list[Inputs]) -> float:
    """Welch's t of the times on the first class and on the others."""
    fixed, *varying = classes
    order = [index % 2 == 0 for index in range(CALLS)]
    random.shuffle(order)
    drawn = [fixed if first else random.choice(varying) for first in order]
    # A copy for each call, in both classes.
    pool = [Inputs(inputs.label, inputs.values.copy(), bytes(bytearray(inputs.random))) for inputs in drawn]
    times = np.empty(CALLS, dtype=np.int64)
    for index, inputs in enumerate(pool):
        start = time.perf_counter_ns()
        run(inputs)
        times[index] = time.perf_counter_ns() - start
    kept = times <= np.quantile(times, KEPT)
    is_fixed = np.array(order)
    return welch_t(times[kept & is_fixed], times[kept & ~is_fixed])


def measure(library: Path) -> None:
    """Print t of each case, and of the function that leaks on purpose."""
    probe = Probe(library)
    print(f"\n{'Welch t of the times on fixed and on varying secrets':<58}{'t':>10}")
    for case in CASES:
        print(f"{case.name:<58}{t_of(runner(case, probe), list(case.inputs())):>10.2f}", flush=True)
    control = [Inputs(label, np.empty(0, dtype=np.int64), random) for label, random in words(4096, "123456")]
    leak = t_of(lambda inputs: probe.leaky_control(inputs.random), control)
    print(f"{f'control: {CONTROL}':<58}{leak:>10.2f}")


def main() -> int:
    """Run the measurement on the wheel, with the random bits of the harness."""
    parser = argparse.ArgumentParser(prog="constant_time.welch", description=__doc__)
    parser.add_argument("--probe", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probe:
        measure(arguments.probe)
        return 0
    if reason := unsupported() or missing():
        print(f"No evidence on constant time: {reason}.", file=sys.stderr)
        return 1
    installed = install(ROOT, WORK)
    probe = compile_probe(WORK)
    path = os.pathsep.join([str(installed), str(HERE.parent)])
    command = [sys.executable, "-m", "constant_time.welch", "--probe", str(probe)]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path, "LD_PRELOAD": str(probe)}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
