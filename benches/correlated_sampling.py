"""Shared draws among many items beside a race of numpy's own, in one process and one run.

Prints a markdown table; see benches/README.md for the method. NumPy's race is no peer in what it promises: its stream
belongs to one process and position, and its logarithm to one platform.
"""

from __future__ import annotations

import argparse
import os

import numpy as np
import numpy.typing as npt
from rounds import Candidate, described, environment, expect, human, progress, table, take_turns

from userdp.public_randomness import CorrelatedSampler, PublicSeed

SEED = PublicSeed(bytes(range(32)))
ANCHOR = "numpy, exponential"
Weights = npt.NDArray[np.float64]


def numpy_exponential(generator: np.random.Generator, weights: Weights) -> int:
    """Exponential variables over weights, the least."""
    return int((generator.standard_exponential(len(weights)) / weights).argmin())


def numpy_gumbel(generator: np.random.Generator, weights: Weights) -> int:
    """The same race by logarithms of 64-bit uniform numbers, as a shared race would do it in numpy."""
    return int((np.log(weights) - np.log(-np.log1p(-generator.random(len(weights))))).argmax())


def candidates(count: int, lists: int) -> list[Candidate]:
    """The ways to draw, each going round lists of weights."""
    generator = np.random.default_rng(0)
    rows = [generator.random(count) for _ in range(lists)]
    logarithms = [np.log(weights) for weights in rows]
    items = [b"item %d" % item for item in range(count)]
    probabilities = [weights / weights.sum() for weights in rows]
    race, darts = CorrelatedSampler(SEED), CorrelatedSampler(SEED, method="darts")
    for weights, log_weights in zip(rows, logarithms, strict=True):
        sums = log_weights + SEED.race_keys("sample", 0, count)
        expect(race.sample(log_weights=log_weights) == sums.argmax(), "the race and the largest sum")
        expect(abs(sums[race.sample(weights)] - sums.max()) < 1e-12, "weights and their logarithms")
    keys = ("bench", 0, count)
    return [
        Candidate(ANCHOR, numpy_exponential, [(generator, weights) for weights in rows]),
        Candidate("numpy, logarithms", numpy_gumbel, [(generator, weights) for weights in rows]),
        Candidate("keys alone", SEED.race_keys, [keys]),
        Candidate("race, weights", race.sample, [(weights,) for weights in rows]),
        Candidate("race, log-weights", lambda values: race.sample(log_weights=values), [(v,) for v in logarithms]),
        Candidate("race, items by bytes", lambda values: race.sample(values, items=items), [(v,) for v in rows]),
        Candidate("darts", darts.sample, [(values,) for values in probabilities]),
    ]


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 3 if parser.parse_args().quick else 11
    print(described(environment(["userdp", "numpy"])), f"{os.cpu_count()} threads.\n")
    rows = []
    for count in (16, 1000, 1_000_000):
        progress(f"{count} items")
        runners = candidates(count, 2)
        times = take_turns(runners, rounds, 0.02)
        cells = [f"{human(times.median(r.name))} ({times.ratio(r.name, ANCHOR):.3g})" for r in runners]
        rows.append([str(count), *cells])
    print("\n".join(table(["items", *(runner.name for runner in runners)], rows)))


if __name__ == "__main__":
    main()
