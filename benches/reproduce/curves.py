"""Users needed against the number of records of each: what is simulated, and the slope beside that of the paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from benches.reproduce.simulation import Need, Point, Simulation, users_needed
from benches.reproduce.simulations import SIMULATIONS

from userdp.planning.rates import rate

RECORDS = (1, 4, 16, 64, 256)


@dataclass(frozen=True)
class Curve:
    """A method at one point but for m."""

    task: str
    method: str
    point: Point
    """But for m."""
    rate_of: Mapping[str, Any] | None
    """What the paper's row takes beside m, epsilon, delta and alpha; None where no row is about it."""
    records: Sequence[int] = RECORDS
    row: str | None = None

    @property
    def simulation(self) -> Simulation:
        """The simulation of the method."""
        for found in SIMULATIONS:
            if (found.task, found.method) == (self.task, self.method):
                return found
        raise LookupError(f"{self.task}, {self.method} is not simulated")

    def measured(self, runs: int) -> list[Need]:
        """Users needed at each number of records."""
        found: list[Need] = []
        for m in self.records:
            start = max(1, round(found[-1].n_users)) if found else 256
            found.append(users_needed(self.simulation, {**self.point, "m": m}, runs, "curve", start))
        return found

    def rates(self) -> list[float] | None:
        """The paper's formula at each number of records, without constants."""
        if self.rate_of is None:
            return None
        common = {name: self.point[name] for name in ("epsilon", "delta", "alpha")}
        return [rate(self.task, row=self.row, m=m, **common, **self.rate_of).value for m in self.records]


@dataclass(frozen=True)
class Slope:
    """The slope of a line through log n against log m."""

    value: float
    standard_error: float


def slope(records: Sequence[int], users: Sequence[float]) -> Slope:
    """By least squares. The standard error is of the line: numbers of users do not lie on one, and are known better."""
    x, y = np.log(np.array(records, dtype=float)), np.log(np.array(users))
    across = float(np.sum((x - x.mean()) ** 2))
    value = float(np.sum((x - x.mean()) * y) / across)
    left = y - y.mean() - value * (x - x.mean())
    return Slope(value, math.sqrt(float(np.sum(left**2)) / (len(x) - 2) / across))


LEARNING: Point = {"epsilon": 1.0, "delta": 0, "alpha": 0.05, "beta": 0.1}
MEAN: Point = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.05, "beta": 0.01, "norm": "l2", "homogeneous": True}
REGRESSION: Point = {"epsilon": 1.0, "delta": 1e-6, "alpha": 0.02, "beta": 0.1, "dimension": 4}
COROLLARY = "LSAKKMS21: Corollary 1, bounded vectors, inverted to users"
CLASS: Mapping[str, Any] = {"representation_dimension": math.log(32), "vc_dimension": 5}

CURVES: tuple[Curve, ...] = (
    Curve("pac", "realizable", {**LEARNING, "n_hypotheses": 256}, {"representation_dimension": math.log(256)}),
    Curve("agnostic", "score", {**LEARNING, "n_hypotheses": 32, "eta": 0.1}, CLASS, (1, 4, 16, 64)),
    Curve("agnostic", "pairwise", {**LEARNING, "n_hypotheses": 32, "eta": 0.1}, CLASS, (1, 4, 16, 64)),
    Curve("threshold", "score", {**LEARNING, "n_points": 2**16, "eta": 0.1}, {"domain_size": 2**16}),
    Curve("mean", "gaussian", {**MEAN, "dimension": 32}, None),
    Curve("mean", "iterated", {**MEAN, "dimension": 32}, {"max_norm": 1, "dimension": 32}, row=COROLLARY),
    Curve("quantile", "weights", {**LEARNING, "n_points": 2**10, "share": 0.5, "neighbors": "replace"}, None),
    Curve("discrete", "symbols", {**LEARNING, "n_symbols": 4}, {"n_symbols": 4}),
    Curve("gaussian-mean", "cover", {**LEARNING, "mean_bound": 10, "n_columns": 1}, {"dimension": 1}),
    Curve("gaussian", "cover", {**LEARNING, "mean_bound": 10, "kappa": 4, "n_columns": 1}, {"dimension": 1}),
    Curve("linear-regression", "moments", {**REGRESSION, "alpha": 0.003}, None, (1, 4, 16, 64)),
    Curve("logistic-regression", "preconditioned", {**REGRESSION, "tight_bounds": True}, None, (2, 4, 8, 16)),
)


def measured_curve(runs: int, index: int) -> list[Need]:
    """The numbers of a curve, for a process of its own."""
    return CURVES[index].measured(runs)
