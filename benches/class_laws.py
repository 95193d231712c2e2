"""Laws of features and labels on which logistic regression is judged, in units of half the public ranges of features.

Each takes the numbers of users, rows of each and columns and a generator, and gives features in [-1, 1] and labels 0
and 1. Log odds are `slope` times the first feature and -1/2 of that times the second, in their deviations, about what
gives the second class its share; "far" laws have rows far out in a feature, "alike" ones users with one label each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Law: TypeAlias = "Callable[[int, int, int, Any], tuple[Floats, Floats]]"


def sigmoid(odds: Floats) -> Floats:
    """Probabilities by log odds."""
    return (1 + np.tanh(odds / 2)) / 2  # type: ignore[no-any-return]


def centered(odds: Floats, share: float) -> Floats:
    """Log odds moved so that the mean probability is a share."""
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sigmoid(odds + middle).mean() < share else (low, middle)
    return odds + low


def classes_of(share: float, slope: float = 1.0, wide: float = 1.0, between: float = 0.0, kind: str = "") -> Law:
    """A share of the second class; bounds so many times too wide; users who differ by a deviation."""

    def law(n: int, m: int, d: int, rng: Any) -> tuple[Floats, Floats]:
        X = rng.uniform(-1, 1, size=(n * m, d))
        if kind == "normal":
            X = np.clip(rng.normal(size=(n * m, d)) / 4, -1, 1)
        elif kind == "heavy":
            X[:, 0] = np.clip(rng.standard_t(2, size=n * m) / 50, -1, 1)
        elif kind:
            X[:, 0] = 2.0 * (rng.random(n * m) < float(kind)) - 1
        z = (X - X.mean(axis=0)) / X.std(axis=0)
        odds = slope * (z[:, 0] - z[:, 1] / 2) + np.repeat(between * rng.normal(size=n), m)
        return X / wide, (rng.random(n * m) < sigmoid(centered(odds, share))).astype(float)

    return law


def far(share: float, inner: float) -> Law:
    """A share of the rows far out in the first feature, where all that is known of its slope is."""

    def law(n: int, m: int, d: int, rng: Any) -> tuple[Floats, Floats]:
        X = rng.uniform(-1, 1, size=(n * m, d)) * inner
        out = rng.random(n * m) < share
        X[out, 0] = rng.uniform(0.5, 1, size=out.sum()) * rng.choice([-1.0, 1.0], size=out.sum())
        return X, (rng.random(n * m) < sigmoid(3 * X[:, 0] - 1)).astype(float)

    return law


def alike(share: float) -> Law:
    """All labels of a user are the same."""

    def law(n: int, m: int, d: int, rng: Any) -> tuple[Floats, Floats]:
        X, user = rng.uniform(-1, 1, size=(n * m, d)), rng.uniform(-1, 1, size=n)
        X[:, 0] = 0.9 * np.repeat(user, m) + 0.1 * X[:, 0]
        return X, np.repeat(rng.random(n) < share * (1 + 0.8 * user), m).astype(float)

    return law


LAWS: dict[str, Law] = {
    **{f"share {share}": classes_of(share) for share in (0.005, 0.02, 0.05, 0.1, 0.5)},
    "share .5, slope 3": classes_of(0.5, 3.0),
    "share .05, slope 3": classes_of(0.05, 3.0),
    "share .05, bounds x 10": classes_of(0.05, wide=10.0),
    "share .02, bounds x 10": classes_of(0.02, wide=10.0),
    "share .02, normal": classes_of(0.02, kind="normal"),
    "share .5, heavy tails": classes_of(0.5, kind="heavy"),
    "share .1, users differ": classes_of(0.1, between=1.5),
    "share .1, a mark of 3 %": classes_of(0.1, 0.3, kind="0.03"),
    "share .5, a mark of 1 %": classes_of(0.5, 0.2, kind="0.01"),
    "share .05, users alike": alike(0.05),
    ".8 % far, others .001": far(0.008, 1e-3),
    ".8 % far, others .01": far(0.008, 1e-2),
    "2 % far, others .01": far(0.02, 1e-2),
}


def likeliest(X: Floats, y: Floats) -> Floats:
    """The probabilities of the likeliest logistic regression without privacy, by Newton's steps."""
    design = np.column_stack([X, np.ones(len(X))])
    design = design / np.abs(design).max(axis=0)
    theta = np.zeros(design.shape[1])
    for _ in range(60):
        p = sigmoid(design @ theta)
        curvature = (design * (p * (1 - p))[:, None]).T @ design / len(y) + 1e-12 * np.eye(len(theta))
        step = np.linalg.solve(curvature, design.T @ (p - y) / len(y))
        theta -= step * min(1.0, 3 / max(float(np.linalg.norm(step)), 1e-300))
    return sigmoid(design @ theta)
