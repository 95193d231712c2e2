"""Errors of the methods of `WinsorizedMean` with their exact noise, side by side in one run.

    python benches/mean_error.py [--quick] [--runs 1000:100,10000:30] [--distributions signs,zipf,...]

Records are in the unit ball of 64 columns (--columns), independent and of one distribution for all users, unless the
distribution says otherwise. What is drawn for a user is the mean of the user's m records, from its exact distribution
(binomial and multinomial counts); the rest is the code that `WinsorizedMean.fit` runs on those means. Errors are root
mean squares of the L2 distance from the mean of the *distribution*, times 1000, with their standard errors; every
method sees the same users.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from userdp.means.methods import METHODS
from userdp.means.problem import MeanMethod, MeanProblem, Promise
from userdp.means.winsorized import rotated_back, signs_of
from userdp.mechanisms.composed import run
from userdp.public_randomness import PublicSeed
from userdp.runtime import source_of
from userdp.users.vectors import GivenVectors

D = 64
DELTA = Fraction(1, 10**6)

People = tuple[np.ndarray, np.ndarray]
Distribution = Callable[[int, int, np.random.Generator], People]


def signs(n: int, m: int, rng: np.random.Generator) -> People:
    """Columns are -1/sqrt(64) or 1/sqrt(64), this with probability 0.675: unit vectors with a mean of length 0.35."""
    counts = rng.binomial(m, 0.675, size=(n, D))
    return (2 * counts - m) / (m * math.sqrt(D)), np.full(D, 0.35 / math.sqrt(D))


def centered(n: int, m: int, rng: np.random.Generator) -> People:
    """As "signs" with mean 0: users are exactly as far from the mean as homogeneous=True promises."""
    counts = rng.binomial(m, 0.5, size=(n, D))
    return (2 * counts - m) / (m * math.sqrt(D)), np.zeros(D)


def zipf(n: int, m: int, rng: np.random.Generator) -> People:
    """One of 64 unit vectors, number k with probability proportional to 1/k."""
    pmf = 1 / np.arange(1, D + 1)
    pmf /= pmf.sum()
    return rng.multinomial(m, pmf, size=n) / m, pmf


def line(n: int, m: int, rng: np.random.Generator) -> People:
    """A fixed unit vector with a random sign: all variation is in one direction."""
    counts = rng.binomial(m, 0.5, size=n)
    return np.outer((2 * counts - m) / m, np.full(D, 1 / math.sqrt(D))), np.zeros(D)


def skewed_line(n: int, m: int, rng: np.random.Generator) -> People:
    """A fixed unit vector with the sign + nine times out of ten."""
    counts = rng.binomial(m, 0.9, size=n)
    return np.outer((2 * counts - m) / m, np.full(D, 1 / math.sqrt(D))), np.full(D, 0.8 / math.sqrt(D))


def sparse(n: int, m: int, rng: np.random.Generator) -> People:
    """Zero, but one of the first four unit vectors with probability 1/10: skewed and concentrated."""
    pmf = np.zeros(D)
    pmf[:4] = 0.1 / len(pmf[:4])
    return rng.multinomial(m, np.append(pmf, 0.9), size=n)[:, :D] / m, pmf


def different(n: int, m: int, rng: np.random.Generator) -> People:
    """As "signs", with users who differ: each has a mean of their own, at a distance of 0.1 in root mean square."""
    shift = 0.1 / math.sqrt(D) * np.where(rng.random((n, D)) < 0.5, 1, -1)
    counts = rng.binomial(m, (1 + 0.35 + shift * math.sqrt(D)) / 2)
    return (2 * counts - m) / (m * math.sqrt(D)), np.full(D, 0.35 / math.sqrt(D))


def corner(n: int, m: int, rng: np.random.Generator) -> People:
    """As "signs", but one user in twenty has the opposite mean: clipped toward the others."""
    odd = rng.random((n, 1)) < 0.05
    counts = rng.binomial(m, np.where(odd, 0.325, 0.675), size=(n, D))
    return (2 * counts - m) / (m * math.sqrt(D)), np.full(D, 0.9 * 0.35 / math.sqrt(D))


PMFS: dict[str, Distribution] = {
    pmf.__name__: pmf for pmf in (signs, centered, zipf, line, skewed_line, sparse, different, corner)
}
CELLS = [(n, m, epsilon) for n in (1000, 10_000) for m in (1, 16, 256) for epsilon in ("0.5", "1")]


def planned(method: str, n: int, m: int, epsilon: str, promise: Promise) -> MeanMethod:
    """What `WinsorizedMean` plans with ``homogeneous=True``, or without a promise."""
    problem = MeanProblem(
        n_users=n,
        dimension=D,
        max_norm=1.0,
        norm="l2",
        concentration=1 / math.sqrt(m),
        epsilon=epsilon,
        delta=DELTA,
        beta=0.01,
        promise=promise,
    )
    return METHODS[method](problem)


def released(plan: MeanMethod, people: np.ndarray) -> np.ndarray:
    """What `WinsorizedMean.fit` releases for users with these means."""
    present = np.ones(len(people), dtype=bool)
    if plan.rotated():
        signs = signs_of(PublicSeed.random(), D)
        outcome = run(plan.program(GivenVectors(people, present, signs=signs)), source_of(None))
        mean = rotated_back(plan.mean(outcome), signs, D)
    else:
        mean = plan.mean(run(plan.program(GivenVectors(people, present)), source_of(None)))
    return mean / max(1.0, float(np.linalg.norm(mean)))


def worst_of(plan: MeanMethod) -> float:
    """The L2 error that is not exceeded in root mean square, times 1000."""
    accuracy = plan.accuracy()
    return 1000 * math.hypot(math.sqrt(D) * accuracy.noise(), accuracy.bias.root_mean_square() if accuracy.bias else 0)


class Errors:
    """Squared errors of one method."""

    def __init__(self) -> None:
        self.squared: list[float] = []

    def add(self, estimate: np.ndarray, truth: np.ndarray) -> None:
        """One run."""
        self.squared.append(float(np.sum((estimate - truth) ** 2)))

    @property
    def rms(self) -> float:
        """Times 1000."""
        return 1000 * math.sqrt(np.mean(self.squared))

    @property
    def standard_error(self) -> float:
        """Of `rms`."""
        spread = np.std(self.squared, ddof=1) / math.sqrt(len(self.squared))
        return float(1000 * spread / (2 * math.sqrt(np.mean(self.squared))))

    def __str__(self) -> str:
        return f"{self.rms:.3g} ({self.standard_error:.2g})"


def cell(
    pmf: Distribution, n: int, m: int, epsilon: str, methods: list[str], runs: int, rng: np.random.Generator
) -> list[str]:
    """One row of the table."""
    plans = {
        method: planned(
            *(("auto", n, m, epsilon, "none") if method == "default" else (method, n, m, epsilon, "independent"))
        )
        for method in methods
    }
    errors = {method: Errors() for method in ["none", *methods]}
    for _ in range(runs):
        people, truth = pmf(n, m, rng)
        errors["none"].add(people.mean(axis=0), truth)
        for method, plan in plans.items():
            errors[method].add(released(plan, people), truth)
    auto = plans["auto"]
    worst = worst_of(auto)
    row = [f"{n}", f"{m}", epsilon, f"{auto.name}", f"{worst:.3g}", *(str(errors[name]) for name in errors)]
    others = [errors["auto"].rms / errors[name].rms for name in methods if name in ("gaussian", "practical")]
    return [*row, f"{max(others, default=math.nan):.3f}", str(runs)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few runs, n = 1000 only")
    parser.add_argument("--runs", default="1000:100,10000:30", help="runs for each number of users")
    parser.add_argument("--distributions", default=",".join(PMFS))
    parser.add_argument("--methods", default="default,auto,gaussian,practical")
    parser.add_argument("--seed", type=int, default=0, help="of the users; the noise is fresh each time")
    parser.add_argument("--columns", type=int, default=64)
    options = parser.parse_args()
    global D  # the distributions above are of D columns
    D = options.columns
    runs = {int(n): int(times) for n, times in (pair.split(":") for pair in options.runs.split(","))}
    cells = [c for c in CELLS if c[0] in runs]
    if options.quick:
        runs, cells = {1000: 10}, [c for c in CELLS if c[0] == 1000]
    methods = options.methods.split(",")
    for name in options.distributions.split(","):
        rng = np.random.default_rng(options.seed)
        head = ["users", "m", "epsilon", "auto is", "worst error", "no privacy", *methods, "auto / best", "runs"]
        print(
            f"\n{name}: {PMFS[name].__doc__}\n",
            "|".join(["", *head, ""]),
            "|".join(["", *["-"] * len(head), ""]),
            sep="\n",
        )
        for n, m, epsilon in cells:
            print("|".join(["", *cell(PMFS[name], n, m, epsilon, methods, runs[n], rng), ""]), flush=True)


if __name__ == "__main__":
    main()
