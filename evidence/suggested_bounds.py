"""How near suggested bounds are to the best in hindsight, on 24 workloads.

For each workload the mean squared error of a sum with the chosen bound, over 1,000 draws of the noise of the choice,
beside the least one of any fixed bound that has the whole budget. The squared error for each bound is exact: the square
of what the bound leaves out, and the variance of noise. It prints the table of docs/tables.md. How far its median and
its counts are a matter of which users were drawn, more drawings of all users say; it takes some minutes.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

from userdp.accounting import PrivacyCost
from userdp.mechanisms import DiscreteGaussian
from userdp.tables.suggestions import BinNoise, bound_of

RHO, PART = 0.0244, 0.2  # of (1, 1e-6), and the part of it that the choice takes
LARGEST = 2**20
DRAWS = 1000
SIZES = (1000, 10_000, 100_000)
REDRAWN = 8
"""Further drawings of the users of all workloads..."""
FEWER_DRAWS = 400
"""...each with so many draws of the noise of the choice."""


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


def ratio(users: np.ndarray, rng: np.random.Generator, draws: int = DRAWS) -> float:
    """The root mean square error with a chosen bound, over that of the best fixed one."""
    candidates = sorted({math.floor(2 ** (j / 2)) for j in range(41)})
    left = 1 / math.sqrt(2 * (1 - PART) * RHO)
    between = -np.diff([int((users > candidate).sum()) for candidate in candidates])
    search = SimpleNamespace(candidates=candidates, bins=len(between))
    noise = BinNoise(DiscreteGaussian(sigma_squared=Fraction(1 / (2 * PART * RHO))), 1, PrivacyCost(0))
    off = rng.normal(0, 1 / math.sqrt(2 * PART * RHO), (draws, len(between)))
    places = [bound_of(search, between + np.rint(one), noise, left) for one in off]  # type: ignore[arg-type]
    bias = np.array([float(np.maximum(users - candidate, 0).sum()) for candidate in candidates])
    chosen = np.mean(bias[places] ** 2 + (np.array(candidates)[places] * left) ** 2)
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
    of_noise = np.random.default_rng(2027)
    ratios = {n: {name: ratio(users, of_noise) for name, users in workloads(n, rng).items()} for n in SIZES}
    print("| users | " + " | ".join(ratios[SIZES[0]]) + " |")
    print("|---|" + "---|" * len(ratios[SIZES[0]]))
    for n, row in ratios.items():
        print(f"| {n:,} | " + " | ".join(f"{value:.2f}" for value in row.values()) + " |")
    every = sorted(value for row in ratios.values() for value in row.values())
    print(
        f"median {np.median(every):.2f}; at most 2 in {sum(value <= 2 for value in every)} of {len(every)}, ",
        end="",
    )
    print(f"at most 1.3 in {sum(value <= 1.3 for value in every)}")
    medians, counts = [], []
    for _ in range(REDRAWN):
        found = [ratio(users, of_noise, FEWER_DRAWS) for n in SIZES for users in workloads(n, rng).values()]
        medians.append(float(np.median(found)))
        counts.append(sum(value <= 2 for value in found))
    error = np.std(medians, ddof=1) / math.sqrt(REDRAWN)
    print(
        f"{REDRAWN} more drawings of the users: median {np.mean(medians):.3f} (standard error {error:.3f}), from ",
        end="",
    )
    print(f"{min(medians):.2f} to {max(medians):.2f}; at most 2 in {min(counts)} to {max(counts)}")


if __name__ == "__main__":
    main()
