"""Excess risk of the clipped descent with public radii only, on the users of `descent_risk.py`, as markdown.

    python benches/descent_defaults.py [--seeds 20] [--seed SEED] [--cells 1000x1,1000x16]

Beside it the same descent that clips at G / sqrt(m), on the same users: no gradient of one row is longer.
"""

from __future__ import annotations

import argparse
import secrets

import numpy as np
from descent_risk import SHARED, D, Risk, run, sample, shown

from userdp.optimization import ClippedGradientDescent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cells", default="1000x1,1000x16,1000x256,10000x1")
    parser.add_argument("--seed", type=int, default=secrets.randbits(63))
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    risk = Risk(200_000, rng)
    print(f"Excess risk x 1000, mean of {arguments.seeds} seeds and its standard error.\n")
    print('| n | m | C = G | "small" | C = G / sqrt(m) | small C, T |\n|---|---|---|---|---|---|')
    for size in arguments.cells.split(","):
        n, m = map(int, size.split("x"))
        learner = ClippedGradientDescent(**SHARED, m=m, clip="small")
        plan = learner._descent(learner._problem(n, D), None)
        found: list[list[float]] = [[], [], []]
        for _ in range(arguments.seeds):
            data = sample(n, m, rng)
            for losses, clip in zip(found, ("range", "small", 1 / np.sqrt(m)), strict=True):
                learner = ClippedGradientDescent(**SHARED, m=m, clip=clip)
                losses.append(risk.excess(run(lambda learner=learner: learner, data)))
        texts = " | ".join(map(shown, found))
        print(f"| {n} | {m} | {texts} | {plan.step.clip:.3g}, {plan.rounds} |", flush=True)
    print(f"\nSeed of the users {arguments.seed}.")


if __name__ == "__main__":
    main()
