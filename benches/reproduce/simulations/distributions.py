"""Estimates of distributions: fits of the shipped classes on drawn records, and the law of the usual ways."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from benches.reproduce.simulation import Floats, Point, between, whole

from userdp.distributions import DiscreteDistribution, GaussianDistribution, GaussianMean
from userdp.exceptions import InsecureRandomnessWarning
from userdp.planning.chances import distance_of_normals
from userdp.planning.tasks.distributions import MARGIN, distance_of_means, distance_of_shares

SLOW = 80
"""Runs where each compares thousands of members of a cover with each other."""


def common(rng: np.random.Generator, least_alpha: float) -> dict[str, Any]:
    """What all points have."""
    return {
        "m": whole(rng, 1, 256),
        "epsilon": between(rng, 0.25, 4),
        "delta": 0,
        "alpha": between(rng, least_alpha, 0.4),
        "beta": between(rng, 0.03, 0.2),
    }


def fitted(model: Any, X: Floats, groups: Any, rng: np.random.Generator) -> Any:
    """A fit whose randomness follows from the generator."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureRandomnessWarning)
        return model.set_params(random_state=int(rng.integers(2**31))).fit(X, groups=groups)


def noisy(n: int, m: int, method: str) -> tuple[int, float]:
    """Records that are averaged, and how many of them one unit of noise is divided by."""
    return (n, n) if method == "one record per person" else (n * m, n)


@dataclass(frozen=True)
class Discrete:
    """Records that are even over the symbols."""

    method: str
    most_symbols: int
    least_alpha: float = 0.05
    task: ClassVar[str] = "discrete"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    def point(self, rng: np.random.Generator) -> Point:
        return common(rng, self.least_alpha) | {"n_symbols": int(rng.integers(2, self.most_symbols + 1))}

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        size, m = point["n_symbols"], point["m"]
        even = np.full(size, 1 / size)
        if self.method not in ("joint", "coarse-to-fine", "symbols"):
            records, count = noisy(n_users, m, self.method)
            shares = rng.multinomial(records, even, size=runs) / records - even
            return distance_of_shares(shares + rng.laplace(0, 2 / (point["epsilon"] * count), shares.shape))
        model = DiscreteDistribution(
            epsilon=point["epsilon"], n_symbols=size, m=m, alpha=point["alpha"], method=self.method
        )
        if self.method != "symbols" and size > 2:
            runs = min(runs, SLOW)
        count = max(n_users, 2)
        users, found = np.repeat(np.arange(count), m), np.empty(runs)
        for run in range(runs):
            X = rng.integers(0, size, count * m)[:, None]
            found[run] = np.abs(fitted(model, X, users, rng).probabilities_ - even).sum() / 2
        return found


@dataclass(frozen=True)
class NormalMean:
    """Records with variance 1 and a mean of half the bound in length."""

    method: str
    task: ClassVar[str] = "gaussian-mean"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    def point(self, rng: np.random.Generator) -> Point:
        return common(rng, 0.05) | {"mean_bound": between(rng, 2, 50), "n_columns": int(rng.integers(1, 4))}

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        d, m, bound = point["n_columns"], point["m"], point["mean_bound"]
        mean = np.full(d, bound / 2 / math.sqrt(d))
        if self.method != "cover":
            records, count = noisy(n_users, m, self.method)
            errors = rng.normal(0, 1 / math.sqrt(records), (runs, d))
            # The whole range of a column is cut to plus or minus the bound and the margin, a d-th of epsilon for each.
            return distance_of_means(
                errors + rng.laplace(0, 2 * (bound + MARGIN) * d / (point["epsilon"] * count), errors.shape)
            )
        model = GaussianMean(epsilon=point["epsilon"], mean_bound=bound, n_columns=d, m=m, alpha=point["alpha"])
        users, found = np.repeat(np.arange(n_users), m), np.empty((runs, d))
        for run in range(runs):
            X = mean + rng.standard_normal((n_users * m, d))
            found[run] = fitted(model, X, users, rng).mean_ - mean
        return distance_of_means(found)


@dataclass(frozen=True)
class Normal:
    """Records of one column, with a variance of half of kappa and a mean of half the bound."""

    method: str
    task: ClassVar[str] = "gaussian"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    def point(self, rng: np.random.Generator) -> Point:
        return common(rng, 0.05) | {
            "mean_bound": between(rng, 2, 50),
            "kappa": between(rng, 2, 16),
            "n_columns": 1,
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        m, bound, epsilon = point["m"], point["mean_bound"], point["epsilon"]
        if self.method == "one record per person":
            m = 1
        elif self.method == "group privacy":
            n_users, m, epsilon = n_users * m, 1, epsilon / m
        mean, scale = bound / 2, math.sqrt(max(point["kappa"] / 2, 1))
        model = GaussianDistribution(
            epsilon=epsilon, mean_bound=bound, kappa=point["kappa"], n_columns=1, m=m, alpha=point["alpha"]
        )
        users, found = np.repeat(np.arange(n_users), m), np.empty((2, runs))
        for run in range(runs):
            made = fitted(model, mean + scale * rng.standard_normal((n_users * m, 1)), users, rng)
            found[:, run] = (made.mean_[0] - mean) / scale, math.sqrt(made.covariance_[0, 0]) / scale
        return distance_of_normals(*found)


USUAL = ("one record per person", "group privacy", "per-user clipping")
SIMULATIONS = (
    Discrete("joint", 3, 0.15),
    Discrete("coarse-to-fine", 3),
    Discrete("symbols", 12),
    *(Discrete(method, 64) for method in USUAL),
    NormalMean("cover"),
    *(NormalMean(method) for method in USUAL),
    *(Normal(method) for method in ("cover", "one record per person", "group privacy")),
)
