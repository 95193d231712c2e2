"""Laws of features and targets on which linear regression is judged, in units of half their public ranges.

Each takes the numbers of users, rows of each and columns, mu of the budget and a generator, and gives features and
targets in [-1, 1]. Some are benign, some have rare or skewed targets or features, and some are built against cutting:
a few users at the far end, in units of those whom the noise of not cutting is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Law: TypeAlias = "Callable[[int, int, int, float, Any], tuple[Floats, Floats]]"


def spread(rng: Any, rows: int, columns: int) -> Floats:
    """Uniform features."""
    drawn: Floats = rng.uniform(-1, 1, size=(rows, columns))
    return drawn


def bell(rng: Any, rows: int) -> Floats:
    """Normal noise up to four deviations."""
    drawn: Floats = np.clip(rng.normal(size=rows), -4, 4)
    return drawn


def rare(share: float, wide: float = 1.0) -> Law:
    """0/1 targets of which a share is 1."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        return X, (2.0 * (rng.random(n * m) < share * (1 + X[:, 0])) - 1) / wide

    return law


def normal(of_features: float, of_targets: float) -> Law:
    """A line and normal noise, bounds so many times too wide."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        y = X.sum(axis=1) / math.sqrt(d / 3) + bell(rng, n * m) / 2
        return X / of_features, np.clip(y / 5, -1, 1) / of_targets

    return law


def skewed(sigma: float, cap: float) -> Law:
    """Lognormal targets from 0 to a cap."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        y = np.exp(1 + X[:, 0] + sigma * rng.normal(size=n * m))
        return X, 2 * np.clip(y / cap, 0, 1) - 1

    return law


def heavy(freedom: int, cap: float) -> Law:
    """Student's targets."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        return X, np.clip((X[:, 0] + rng.standard_t(freedom, size=n * m)) / cap, -1, 1)

    return law


def marked(share: float) -> Law:
    """A feature that is 1 in a share of the rows, with a large effect, and -1 in all others."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        X[:, 0] = 2.0 * (rng.random(n * m) < share) - 1
        y = 2.5 + 2.5 * X[:, 0] + X[:, 1] + 0.3 * bell(rng, n * m)
        return X, np.clip(y / 8, -1, 1)

    return law


def rare_mark(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
    """A mark of 2 % of the rows of which half have 1, and of all others 1 %."""
    X = spread(rng, n * m, d)
    marks = rng.random(n * m) < 0.02
    X[:, 0] = 2.0 * marks - 1
    return X, 2.0 * (rng.random(n * m) < np.where(marks, 0.5, 0.01)) - 1


def few_far(share: float, near: float) -> Law:
    """A feature near the middle but in few rows, which are far out; targets follow it everywhere."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d) * near
        far = rng.random(n * m) < share
        X[far, 0] = rng.uniform(0.5, 1, size=int(far.sum()))
        return X, 0.9 * X[:, 0] + near / 4 * bell(rng, n * m)

    return law


def skewed_feature(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
    """A lognormal feature, and targets that follow it."""
    X, v = spread(rng, n * m, d), np.minimum(np.exp(rng.normal(size=n * m)), 100)
    X[:, 0] = v / 50 - 1
    return X, np.clip((v + rng.normal(size=n * m)) / 60, -1, 1)


def collinear(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
    """Features of which two directions have nearly all."""
    X = rng.normal(size=(n * m, 2)) @ rng.normal(size=(2, d)) + 0.1 * rng.normal(size=(n * m, d))
    X = np.clip(X / 8, -1, 1)
    return X, np.clip((2 * X[:, :2].sum(axis=1) + 0.3 * bell(rng, n * m)) / 5, -1, 1)


def far_apart(decades: int) -> Law:
    """Features of scales down to 10^-decades of their bounds, and targets of that scale."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        y = np.clip((X.sum(axis=1) / math.sqrt(d / 3) + bell(rng, n * m) / 2) / 5, -1, 1)
        return X * 10.0 ** rng.uniform(-decades, 0, size=d), y * 10.0**-decades

    return law


def minority(worth: float, aligned: bool) -> Law:
    """All but few users within 1/50 of the lower end; these at the upper one, where a feature is large or anywhere."""

    def law(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
        X = spread(rng, n * m, d)
        y = 0.02 * (1 + X[:, 0]) - 1
        far = np.repeat(np.arange(n) < max(1, round(worth * 2 * math.sqrt(d + 1) / (mu * math.sqrt(0.5)))), m)
        y[far] = 1
        if aligned:
            X[far, 0] = np.abs(X[far, 0])
        return X, np.clip(y, -1, 1)

    return law


def alike_within(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
    """Users with intercepts of their own, wide."""
    X = spread(rng, n * m, d)
    own = np.repeat(rng.uniform(-0.6, 0.6, size=n), m)
    return X, np.clip(X[:, 0] / 5 + own + 0.05 * rng.normal(size=n * m), -1, 1)


def zeros_and_tail(n: int, m: int, d: int, mu: float, rng: Any) -> tuple[Floats, Floats]:
    """Four fifths of the targets are 0, the others exponential."""
    X = spread(rng, n * m, d)
    tail = rng.exponential(0.05, size=n * m) * (1.5 + X[:, 0])
    return X, 2 * np.clip(np.where(rng.random(n * m) < 0.8, 0.0, tail), 0, 1) - 1


LAWS: dict[str, Law] = {
    **{f"rare targets, {share:.1%}": rare(share) for share in (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)},
    "rare targets, 5 %, bounds x10": rare(0.05, 10),
    "normal": normal(1, 1),
    "normal, bounds of y x10": normal(1, 10),
    "normal, all bounds x10": normal(10, 10),
    "normal, all bounds x100": normal(100, 100),
    "lognormal 1.5, cap 10,000": skewed(1.5, 1e4),
    "lognormal 1.5, cap 1000": skewed(1.5, 1e3),
    "lognormal 1, cap 200": skewed(1, 200),
    "Student 2, cap 50": heavy(2, 50),
    "Student 3, cap 20": heavy(3, 20),
    "mark of 0.5 %": marked(0.005),
    "mark of 3 %": marked(0.03),
    "mark of 10 %": marked(0.1),
    "mark of 2 %, rare targets": rare_mark,
    "0.8 % of rows far, 1e-3": few_far(0.008, 1e-3),
    "0.3 % of rows far, 1e-3": few_far(0.003, 1e-3),
    "0.8 % of rows far, 1e-2": few_far(0.008, 1e-2),
    "lognormal feature": skewed_feature,
    "collinear": collinear,
    "scales to 1e-3": far_apart(3),
    "scales to 1e-6": far_apart(6),
    **{
        f"minority of {worth:g} A{', aligned' if aligned else ''}": minority(worth, aligned)
        for worth in (0.5, 1, 2, 4)
        for aligned in (True, False)
    },
    "users differ": alike_within,
    "zeros and a tail": zeros_and_tail,
}
"""By name."""
