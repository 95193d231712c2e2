"""Regressions: the shipped estimators on drawn users, and the excess of what they release, without sampling error."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from benches.reproduce.simulation import Floats, Point, between, ends, whole

from userdp.exceptions import InsecureRandomnessWarning, TooFewUsersWarning
from userdp.optimization import UserLevelLinearRegression, UserLevelLogisticRegression
from userdp.planning.problem import record_delta
from userdp.planning.tasks.regressions import ALONE, SIGNAL

FRESH = 2**12
"""Rows by which an excess is measured."""


def rows_of(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Evenly on the sphere of radius 1."""
    X = rng.standard_normal((n, d))
    found: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return found


@dataclass(frozen=True)
class Regression:
    """One estimator, by its defaults."""

    task: str
    method: str
    solver: str = "auto"
    most_records: int = 64
    most_columns: int = 8
    least_records: int = 1
    least_columns: int = 1
    largest_alpha: float = 0.06
    most_runs: int = 100
    """Each of them is a fit of all users."""
    single: bool = False
    """Whether each record is all that a user has: coarser accuracies then, as clipping moves what is found."""
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    def point(self, rng: np.random.Generator) -> Point:
        low, high = (0.001, 0.01) if self.task == "linear-regression" else (0.01, self.largest_alpha)
        if self.single:
            low, high = ALONE, 0.15
        few, many, fewest, widest = self.least_records, self.most_records, self.least_columns, self.most_columns
        point: Point = {
            "m": round(ends(rng, few, many, lambda: whole(rng, few, many))),
            "epsilon": ends(rng, 0.5, 4, lambda: between(rng, 0.5, 4)),
            "delta": between(rng, 1e-8, 1e-5),
            "alpha": ends(rng, low, high, lambda: between(rng, low, high)),
            "beta": ends(rng, 0.05, 0.2, lambda: between(rng, 0.05, 0.2)),
            "dimension": round(ends(rng, fewest, widest, lambda: whole(rng, fewest, widest))),
        }
        # As these rows have them.
        return point if self.task == "linear-regression" else {**point, "tight_bounds": True}

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        return np.array([self._excess(point, n_users, rng) for _ in range(min(runs, self.most_runs))])

    def _excess(self, point: Point, n_users: int, rng: np.random.Generator) -> float:
        n, m, d = n_users, point["m"], point["dimension"]
        epsilon, delta = Fraction(point["epsilon"]), Fraction(point["delta"])
        if self.method == "one record per person":
            m = 1
        elif self.method == "group privacy":
            n, m, epsilon, delta = n * m, 1, epsilon / m, record_delta(epsilon, delta, m)
        X, truth = rows_of(rng, n * m, d), np.full(d, 1 / math.sqrt(d))
        common: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "m": m, "max_feature_norm": 1.0}
        common |= {"fit_intercept": False, "solver": self.solver, "random_state": int(rng.integers(2**31))}
        fresh = rows_of(rng, FRESH, d)
        groups = np.repeat(np.arange(max(n, 2)), m)[: n * m] if n > 1 else np.arange(n * m)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRandomnessWarning)
            warnings.simplefilter("ignore", TooFewUsersWarning)
            if self.task == "linear-regression":
                y = (X @ truth + rng.uniform(-1, 1, size=n * m)) / 2
                model: Any = UserLevelLinearRegression(target_bounds=(-1, 1), **common).fit(X, y, groups=groups)
                return float(((fresh @ (model.coef_ - truth / 2)) ** 2).mean() / 2)
            labels = rng.random(n * m) < 1 / (1 + np.exp(-SIGNAL * (X @ truth)))
            fit = UserLevelLogisticRegression(classes=(False, True), **common).fit(X, labels, groups=groups)
        right, made = SIGNAL * (fresh @ truth), fresh @ fit.coef_[0]
        # The mean divergence of labels: p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)).
        p = 1 / (1 + np.exp(-right))
        gaps = p * (np.logaddexp(0, -made) - np.logaddexp(0, -right))
        gaps += (1 - p) * (np.logaddexp(0, made) - np.logaddexp(0, right))
        return float(gaps.mean())


SMALL: dict[str, Any] = {"most_records": 16, "most_columns": 5}
ALONG: dict[str, Any] = {**SMALL, "least_records": 2, "least_columns": 2, "largest_alpha": 0.03}
SIMULATIONS = (
    Regression("logistic-regression", "preconditioned", **SMALL, least_records=2),
    Regression("logistic-regression", "clipped", "clipped", **ALONG),
    Regression("logistic-regression", "winsorized", "winsorized", **SMALL),
    Regression("logistic-regression", "one record per person", **SMALL, single=True, most_runs=200),
    Regression("logistic-regression", "group privacy", most_records=8, most_columns=5, single=True),
    Regression("linear-regression", "moments"),
    Regression("linear-regression", "one record per person"),
    Regression("linear-regression", "group privacy", most_records=8),
)
