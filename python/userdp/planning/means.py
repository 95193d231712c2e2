"""Methods for means: predicted errors from the very plans by which they run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from userdp.accounting import group_privacy
from userdp.exact.epsilon import positive_epsilon
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    check_count,
    open_unit_interval,
    parse_delta,
    parse_level,
    parse_positive,
    short_repr,
)
from userdp.means.methods import METHODS
from userdp.means.plan import MeanProblem
from userdp.report import Comparison, Prediction

MOST_USERS = 2**32
"""Estimators number users by words of 32 bits."""
MOST_ROWS = 2**31 - 1
"""As the largest m of estimators."""

GROUP = "group privacy"
ROWS = "rows only"
TIE = 1e-9
FULL_RANGE = ("gaussian", "laplace")
"""What users do without thinking of users: full noise for the whole range."""


def users_and_rows(n_users: int, m: int) -> tuple[int, int]:
    """Two sizes that estimators take.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    sizes = check_count(n_users, "n_users", 2), check_count(m, "m")
    for name, size, most in zip(("n_users", "m"), sizes, (MOST_USERS, MOST_ROWS), strict=True):
        if size > most:
            raise ValueError(f"{name} must be at most {most}; got {short_repr(size)}")
    return sizes


def mean_problem(
    *,
    n_users: int,
    m: int,
    dimension: int,
    bound: float,
    epsilon: Epsilon,
    delta: Delta,
    radius: float | None,
    norm: str,
    beta: float,
    private_radius: bool,
) -> MeanProblem:
    """The public problem that `WinsorizedMean` has for these parameters."""
    users, rows = users_and_rows(n_users, m)
    size = float(parse_positive(bound, "bound"))
    if not isinstance(private_radius, bool):
        raise TypeError(f"private_radius must be a bool; got {short_repr(private_radius)}")
    if norm not in ("l2", "max"):
        raise ValueError(f"norm must be 'l2' or 'max'; got {short_repr(norm)}")
    return MeanProblem(
        n_users=users,
        dimension=check_count(dimension, "dimension"),
        bound=size,
        norm="l2" if norm == "l2" else "max",
        spread=size / math.sqrt(rows) if radius is None else float(parse_positive(radius, "radius")),
        epsilon=positive_epsilon(epsilon),
        delta=parse_delta(delta),
        beta=open_unit_interval(beta, "beta"),
        private_radius=private_radius,
    )


@lru_cache(maxsize=4096)
def noise_of(method: str, problem: MeanProblem) -> float:
    """The predicted error of a method, by noise only."""
    return METHODS[method](problem).predicted_error()


def compare_means(problem: MeanProblem, m: int) -> Comparison:
    """All methods that can run at this privacy, the group-privacy baseline, and the mean that protects rows."""
    sampling = problem.spread / math.sqrt(problem.n_users)
    chosen = METHODS["auto"](problem).name
    rows: list[Prediction] = []
    for method in METHODS:
        if method == "auto":
            continue
        try:
            plan = METHODS[method](problem)
        except ValueError:  # it needs a positive delta, or cannot be certified at this one
            continue
        notes = ["taken by method='auto'"] * (method == chosen) + ["too few users for it"] * bool(plan.warnings())
        rows.append(_row(method, "user", plan.predicted_error(), sampling, "; ".join(notes)))
    # The one that is taken by itself where rounding alone is between them.
    best = min(rows, key=lambda row: row.noise * (1 + (row.method != chosen) * TIE))
    rows += _baselines(problem, m, sampling)
    sizes = {
        "n_users": problem.n_users,
        "m": m,
        "dimension": problem.dimension,
        "bound": problem.bound,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "radius": problem.spread,
    }
    return Comparison(
        "mean", sizes, tuple(rows), best.method, "the least predicted error of the methods of WinsorizedMean"
    )


def _row(method: str, protects: str, noise: float, sampling: float, note: str) -> Prediction:
    return Prediction(method, protects, noise, math.hypot(noise, sampling), note)


def _baselines(problem: MeanProblem, m: int, sampling: float) -> Iterator[Prediction]:
    """The mean of all rows with full-range noise: at epsilon / m, and at epsilon, which does not protect users."""
    rows = replace(problem, n_users=problem.n_users * m, private_radius=False, spread=problem.ball)
    level = Fraction(float(parse_level(problem.epsilon)))
    per_row = replace(rows, epsilon=level / m, delta=_row_delta(level, problem.delta, m))
    noise = min(_full_range(per_row))
    yield _row(
        GROUP, "user", noise, sampling, f"one row at epsilon / {m}" + (" and less delta" if problem.delta else "")
    )
    yield _row(ROWS, "row", min(_full_range(rows)), sampling, "no guarantee for users")


def _full_range(problem: MeanProblem) -> list[float]:
    return [noise_of(method, problem) for method in FULL_RANGE if problem.delta or method == "laplace"]


def _row_delta(level: Fraction, delta: Fraction, m: int) -> Fraction:
    """The largest delta of a row, nearly, with which m rows have the delta of a user."""
    if not delta:
        return delta
    share = math.expm1(float(level) / m) / math.expm1(float(level)) if level < 500 else 0.0
    found = delta * Fraction(share) * (1 - Fraction(1, 2**40))
    assert Fraction(group_privacy(level / m, found, m).delta) <= delta
    return found
