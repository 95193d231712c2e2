"""Quantiles of even records: the exact law of the choice, for drawn users."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from benches.reproduce.simulation import Floats, Point, between, whole

from userdp.planning.chances import misses

CELLS = 2**22
"""Of runs by values that are held at once."""


@dataclass(frozen=True)
class Quantile:
    """The exponential mechanism on how far each value is from the share, in users."""

    method: str
    task: ClassVar[str] = "quantile"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def point(self, rng: np.random.Generator) -> Point:
        return {
            "m": whole(rng, 1, 256),
            "epsilon": between(rng, 0.1, 4),
            "delta": 0,
            "alpha": between(rng, 0.01, 0.15),
            "beta": between(rng, 0.02, 0.2),
            "n_points": whole(rng, 2**9, 2**13),
            "share": round(float(rng.uniform(0.2, 0.8)), 2),
            "neighbors": str(rng.choice(["add-remove", "replace"])),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        m, epsilon, n, size = point["m"], point["epsilon"], n_users, point["n_points"]
        if self.method == "one record per person":
            m = 1
        elif self.method == "group privacy":
            n, m, epsilon = n * m, 1, epsilon / m
        q = float(Fraction(point["share"]).limit_denominator(1000))
        moved = 1.0 if point["neighbors"] == "replace" else max(q, 1 - q)
        ends = np.arange(size + 1) / size
        bad = np.maximum(np.maximum(ends[:-1] - q, q - ends[1:]), 0) > point["alpha"]
        found, even = [], np.full(size, 1 / size)
        for first in range(0, runs, max(1, CELLS // size)):
            several = min(max(1, CELLS // size), runs - first)
            upto = np.cumsum(rng.multinomial(n * m, even, size=several), axis=1) / m
            before = np.concatenate([np.zeros((several, 1)), upto[:, :-1]], axis=1)
            costs = np.maximum(np.maximum(before - q * n, q * n - upto), 0)
            found.append(misses(costs, epsilon / (2 * moved), bad))
        return np.concatenate(found)


SIMULATIONS = tuple(Quantile(method) for method in ("weights", "one record per person", "group privacy"))
