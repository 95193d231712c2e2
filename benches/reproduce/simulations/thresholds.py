"""Users needed to learn a threshold: users are drawn, and the distribution of the release is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from benches.reproduce.simulation import Floats, Point, between, ends, whole

from userdp.learners.tolerance import candidates_for_t
from userdp.planning.tasks.thresholds import chance_of_miss, mistakes

OF_ONE = 16
"""Repetitions of a run with one record of each user."""
POOL = 2**12
"""At least so many users are drawn, and eight times those of a run: the runs at a number of users draw from them."""


def learner_point(rng: np.random.Generator) -> dict[str, Any]:
    """The numbers that all tasks of learners have, over the ranges that all of their methods share."""
    return {
        "m": int(ends(rng, 1, 256, lambda: whole(rng, 1, 256))),
        "epsilon": ends(rng, 0.25, 4, lambda: between(rng, 0.25, 4)),
        "delta": 0,
        "alpha": ends(rng, 0.02, 0.15, lambda: between(rng, 0.02, 0.15)),
        "beta": ends(rng, 0.03, 0.2, lambda: between(rng, 0.03, 0.2)),
    }


@dataclass(frozen=True)
class Threshold:
    """`userdp.learners.ThresholdClassifier` with method "score", for all records or with one of each user."""

    method: str
    task: str = "threshold"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        return learner_point(rng) | {
            "n_points": int(ends(rng, 2**6, 2**30, lambda: whole(rng, 2**6, 2**30))),
            "eta": ends(rng, 0, 0.3, lambda: round(float(rng.uniform(0, 0.3)), 3)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        m, rate, n = point["m"], float(point["epsilon"]), n_users
        if self.method == "one record per person":
            m = 1
        elif self.method != "score":
            m, rate, n = 1, rate / m, n * m
        given = (m, point["alpha"], point["eta"], point["n_points"])
        if m == 1:  # sums over users are all that counts
            # Where failures are all or nothing it takes many; these are cheap.
            drawn = mistakes(OF_ONE * runs, n, point["eta"], rng)[None]
            return chance_of_miss(drawn, n, rate, *given).reshape(runs, OF_ONE).mean(axis=1)
        drawn = mistakes(max(POOL, 8 * n), m, point["eta"], rng)
        fails = np.concatenate([drawn > t for t in candidates_for_t(m)], axis=1).astype(np.float32)
        times = rng.multinomial(n, np.full(len(drawn), 1 / len(drawn)), size=runs).astype(np.float32)
        scores = (times @ fails).astype(np.float64).reshape(runs, -1, drawn.shape[1])
        return chance_of_miss(scores.transpose(1, 0, 2), n, rate, *given)


SIMULATIONS = tuple(
    Threshold(method) for method in ("score", "one record per person", "group privacy", "per-user clipping")
)
