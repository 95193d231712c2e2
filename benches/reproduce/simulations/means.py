"""Means of users' records, by `userdp.means.WinsorizedMean` and by the three usual ways."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from benches.reproduce.simulation import Floats, Point

from userdp.exceptions import InsecureRandomnessWarning, TooFewUsersWarning
from userdp.means import WinsorizedMean
from userdp.means.problem import MeanProblem
from userdp.planning.tasks.means import MEAN, SHIFT, asked_of, errors_of, full_range, mean_problem, per_record, plan_of

HOMOGENEOUS = ("iterated", "practical")
CLIPPING = ("iterated", "practical", "tested")
TOGETHER = ("one record per person", "group privacy", "per-user clipping")


def rounded(value: float) -> float:
    """Three digits of a number."""
    return float(f"{value:.3g}")


@dataclass(frozen=True)
class MeanSimulation:
    """Fits of a method to records with two values in each column."""

    method: str
    columns: tuple[int, ...]
    most_records: int = 256
    most_users: int = 20000
    task: str = "mean"
    root_mean_square: bool = True
    exact: bool = False

    def point(self, rng: np.random.Generator) -> Point:
        pure = self.method == "laplace"
        point: dict[str, Any] = {
            "m": round(math.exp(rng.uniform(0, math.log(self.most_records)))),
            "epsilon": rounded(0.25 * 16 ** rng.random()),
            "delta": 0.0 if pure else rounded(10 ** rng.uniform(-8, -5)),
            "alpha": 1.0,
            "beta": 0.01,
            "dimension": int(rng.choice(self.columns)),
            "norm": str(rng.choice(["l2", "max"])),
            "homogeneous": self.method in HOMOGENEOUS or bool(rng.integers(2)),
        }
        # Of the order of what so many users reach, so that numbers of users are within what can be simulated.
        users = 200 * (self.most_users / 200) ** rng.random()
        if self.method in HOMOGENEOUS and self.method != "iterated":
            users = self.most_users / 2 * 2 ** rng.random()
        # All of these users are alike, whatever a method counts on: the calibrated number is for that promise.
        return point | {"alpha": rounded(self._error(point, round(users))), "homogeneous": True}

    def _error(self, point: Point, n_users: int) -> float:
        problem, m = self._problem(point, n_users), point["m"]
        if self.method in TOGETHER:
            grouped = self.method == "group privacy"
            noise = full_range(per_record(problem, m, group=True) if grouped else problem)
        else:
            noise = errors_of(self.method, asked_of(self.method, problem, m))[0]
        used = 1 if self.method == "one record per person" else m
        return min(math.hypot(noise, problem.ball / math.sqrt(n_users * used)), problem.ball)

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        n, d = max(n_users, 2), point["dimension"]
        most = 1 / math.sqrt(d) if point["norm"] == "l2" else 1.0
        if self.method not in CLIPPING:
            return self._drawn(point, n, runs, rng, most)
        bounds: dict[str, Any] = {"max_norm": 1.0} if point["norm"] == "l2" else {"bounds": (-1.0, 1.0)}
        made = WinsorizedMean(
            method=self.method,
            epsilon=point["epsilon"],
            delta=point["delta"],
            m=point["m"],
            homogeneous=self.method in HOMOGENEOUS,
            **bounds,
        )
        found = np.empty(runs)
        for run in range(runs):
            # The mean of a user's records is all that is used of them.
            means = most * (2 * rng.binomial(point["m"], (1 + SHIFT) / 2, size=(n, d)) / point["m"] - 1)
            with warnings.catch_warnings():
                for kind in (InsecureRandomnessWarning, TooFewUsersWarning):
                    warnings.simplefilter("ignore", kind)
                made.set_params(random_state=int(rng.integers(2**31)))
                fitted = made.fit(means, groups=np.arange(n))
            found[run] = np.linalg.norm(fitted.mean_ - SHIFT * most)
        return cast(Floats, found)

    def _drawn(self, point: Point, n: int, runs: int, rng: np.random.Generator, most: float) -> Floats:
        """Where nobody is clipped: the mean of all records, noise as large as the plan's, and the projection."""
        problem, records = self._problem(point, n), point["m"] * n
        method = self.method
        if method == "one record per person":
            records = n
        elif method == "group privacy":
            problem = per_record(problem, point["m"], group=True)
        if method in TOGETHER:
            method = min(("gaussian", "laplace"), key=lambda each: errors_of(each, problem)[0])
        size = (runs, point["dimension"])
        released = most * (2 * rng.binomial(records, (1 + SHIFT) / 2, size=size) / records - 1)
        for term in plan_of(method, problem).accuracy().terms:
            spread = term.scale * term.step
            released += rng.normal(0, spread, size) if term.kind == "gaussian" else rng.laplace(0, spread, size)
        if point["norm"] == "max":
            released = np.clip(released, -1, 1)
        else:
            released /= np.maximum(np.linalg.norm(released, axis=1, keepdims=True), 1)
        return cast(Floats, np.linalg.norm(released - SHIFT * most, axis=1))

    def _problem(self, point: Point, n_users: int) -> MeanProblem:
        given = dict(point)
        common = {name: given.pop(name) for name in ("m", "epsilon", "delta", "alpha", "beta")}
        return mean_problem(MEAN.problem(**common, values=given), n_users)


MEANS = (
    MeanSimulation("laplace", (1, 2, 4)),
    MeanSimulation("gaussian", (2, 8, 64)),
    MeanSimulation("iterated", (1, 8, 32), most_users=1500),
    MeanSimulation("tested", (32, 64), most_users=1500),
    MeanSimulation("practical", (1, 4), most_users=4000),
    MeanSimulation("one record per person", (1, 8, 64)),
    MeanSimulation("group privacy", (1, 8), most_records=64),
    MeanSimulation("per-user clipping", (1, 8, 64)),
)
