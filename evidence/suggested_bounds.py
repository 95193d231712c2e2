"""How near suggested bounds are to the best in hindsight: the exact law of the choice on 24 workloads.

For each workload the expected squared error of a sum with the chosen bound, over the exact distribution of the choice,
beside the least one of any fixed bound that has the whole budget. Nothing is simulated but the workloads, whose seed is
fixed. It prints the table of docs/tables.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from userdp.tables.suggestions import choice_of, costs_of

RHO, PART = 0.0244, 0.2  # of (1, 1e-6), and the part of it that the choice takes
LARGEST = 2**20
SIZES = (1000, 10_000, 100_000)


def workloads(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Whole numbers of users."""
    return {
        "all 8": np.full(n, 8),
        "1 to 20 alike": rng.integers(1, 21, n),
        "Poisson 5": rng.poisson(5, n),
        "geometric 10": rng.geometric(0.1, n),
        "lognormal": np.ceil(rng.lognormal(2, 1, n)).astype(np.int64),
        "Zipf 2.5": np.minimum(rng.zipf(2.5, n), LARGEST),
        "Zipf 1.7": np.minimum(rng.zipf(1.7, n), LARGEST),
        "a tenth has 100": np.where(np.arange(n) < n // 10, 100, 0),
    }


def ratio(users: np.ndarray) -> float:
    """The root mean square error with a chosen bound, over that of the best fixed one."""
    candidates = sorted({math.floor(2 ** (j / 2)) for j in range(41)})
    epsilon = Fraction(math.sqrt(8 * PART * RHO))
    left = 1 / math.sqrt(2 * (1 - PART) * RHO)
    above = np.array([int((users > candidate).sum()) for candidate in candidates])
    costs = costs_of(SimpleNamespace(candidates=candidates), above, epsilon, left)  # type: ignore[arg-type]
    masses = [float(mass) for mass in choice_of(epsilon).pmf(costs).fractions()]
    bias = [float(np.maximum(users - candidate, 0).sum()) for candidate in candidates]
    chosen = sum(
        mass * (off**2 + (candidate * left) ** 2) for mass, off, candidate in zip(masses, bias, candidates, strict=True)
    )
    fixed = np.unique(np.concatenate([users, candidates]))
    ordered = np.sort(users)
    totals = np.concatenate([[0], np.cumsum(ordered)])
    place = np.searchsorted(ordered, fixed, side="right")
    beyond = totals[-1] - totals[place] - (len(users) - place) * fixed
    best = np.min(beyond.astype(float) ** 2 + fixed.astype(float) ** 2 / (2 * RHO))
    return math.sqrt(chosen / best)


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(2026)
    ratios = {n: {name: ratio(users) for name, users in workloads(n, rng).items()} for n in SIZES}
    print("| users | " + " | ".join(ratios[SIZES[0]]) + " |")
    print("|---|" + "---|" * len(ratios[SIZES[0]]))
    for n, row in ratios.items():
        print(f"| {n:,} | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")
    every = sorted(value for row in ratios.values() for value in row.values())
    print(
        f"median {every[len(every) // 2]:.2f}; at most 2 in {sum(value <= 2 for value in every)} of {len(every)}, ",
        end="",
    )
    print(f"at most 1.3 in {sum(value <= 1.3 for value in every)}")


if __name__ == "__main__":
    main()
