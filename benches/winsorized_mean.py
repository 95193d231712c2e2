"""Errors of the winsorized mean of one column beside Laplace noise for the full range, with the noise that is drawn.

    python benches/winsorized_mean.py [--runs 4000] [--epsilon 0.5] [--users 1000]

Records are -1 or 1 with mean 0.3; what is drawn for a user is the mean of m of them. Errors are root mean squares times
1000: "by noise" from the mean of the users' means, beside the formula sqrt(2) W / (n epsilon_noise), and "total" from
0.3. Every method sees the same users.
"""

from __future__ import annotations

import argparse
import math
from fractions import Fraction

import numpy as np

from userdp.means.methods import METHODS
from userdp.means.problem import MeanProblem
from userdp.mechanisms.composed import run
from userdp.runtime import source_of
from userdp.users.vectors import GivenVectors

MEAN = 0.3
METHOD_NAMES = ("paper", "practical", "laplace")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--runs", type=int, default=4000)
    arguments.add_argument("--epsilon", default="0.5")
    arguments.add_argument("--users", type=int, default=1000)
    chosen = arguments.parse_args()
    n, epsilon = chosen.users, Fraction(chosen.epsilon)
    rng, source = np.random.default_rng(0), source_of(None)
    print(f"n = {n}, epsilon = {chosen.epsilon}, {chosen.runs} runs\n")
    print("| m | method | by noise | formula | total | of the full range's |")
    print("|---|---|---|---|---|---|")
    for m in (1, 16, 256):
        problem = MeanProblem(
            n_users=n,
            dimension=1,
            max_norm=1.0,
            norm="l2",
            concentration=1 / math.sqrt(m),
            epsilon=epsilon,
            delta=Fraction(0),
            beta=0.01,
        )
        plans = {name: METHODS[name](problem) for name in METHOD_NAMES}
        squares = {name: np.zeros(2) for name in plans}
        for _ in range(chosen.runs):
            means = (2 * rng.binomial(m, (1 + MEAN) / 2, size=(n, 1)) / m - 1).astype(np.float64)
            vectors = GivenVectors(means, np.ones(n, dtype=bool))
            for name, plan in plans.items():
                estimate = float(np.clip(plan.mean(run(plan.program(vectors), source)), -1, 1)[0])
                squares[name] += np.square([estimate - means.mean(), estimate - MEAN])
        errors = {name: 1000 * np.sqrt(total / chosen.runs) for name, total in squares.items()}
        for name, (noise, total) in errors.items():
            formula = 1000 * plans[name].predicted_error()
            quotient = total / errors["laplace"][1]
            print(f"| {m} | {name} | {noise:.3f} | {formula:.3f} | {total:.3f} | {quotient:.3f} |")


if __name__ == "__main__":
    main()
