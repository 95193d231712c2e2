"""Predicted errors of methods side by side: means and private descents, from public numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

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
from userdp.means.problem import MeanProblem
from userdp.public_randomness import PublicSeed
from userdp.report import Comparison, Prediction

if TYPE_CHECKING:
    from userdp.optimization.descent import DescentRounds, PrivateDescent
    from userdp.optimization.winsorized import TrackingDescent

TASKS = ("mean", "descent")
MOST_USERS = 2**32
"""Estimators number users by words of 32 bits."""
MOST_RECORDS = 2**31 - 1
"""As the largest m of estimators."""

GROUP = "group privacy"
RECORDS = "records only"
TIE = 1e-9
FULL_RANGE = ("gaussian", "laplace")
"""The methods that do not think of users: full noise for the whole range."""

MEASURED = "tuned, it was not told apart from winsorized, tracking, and it has fewer settings: docs/optimization.md"
PUBLIC = PublicSeed(bytes(32))
"""Rotations and blocks do not change how large noise is."""


def compare_methods(
    task: str = "mean",
    *,
    n_users: int,
    m: int,
    dimension: int = 1,
    max_norm: float = 1.0,
    epsilon: Epsilon,
    delta: Delta = 0,
    concentration: float | None = None,
    radius: float | None = None,
    norm: str = "l2",
    beta: float = 0.01,
    private_concentration: bool = False,
) -> Comparison:
    """Predicted errors of all methods side by side, and which one is recommended.

    Parameters
    ----------
    task : {"mean", "descent"}
        "mean": the methods of `userdp.means.WinsorizedMean`, the mean of all records with noise for the whole range
        at epsilon / m (group privacy), and the same at epsilon, which protects records and not users. "descent": the
        solvers of `userdp.optimization` for logistic regression, by the noise of one step.
    n_users, m : int
        Users, and records of each.
    dimension : int
        Columns of X.
    max_norm : float
        The largest norm of a record.
    epsilon, delta : privacy parameters
        For users. Descents need delta > 0.
    concentration : float, optional
        For means: the expected L2 distance of a user's mean from the mean of all, a promise, by default
        max_norm / sqrt(m).
    radius : float, optional
        For descents: of the L2 ball of parameters, by default 4 sqrt(dimension) / max_norm.
    norm, beta, private_concentration
        For means, as for `userdp.means.WinsorizedMean`.

    Returns
    -------
    Comparison

    Notes
    -----
    Errors of means are predicted by the very plans by which the methods run; the prediction counts on the
    concentration. Users who differ by more than chance have a larger one: see docs/planning.md.

    Examples
    --------
    >>> table = compare_methods("mean", n_users=1000, m=64, epsilon=1)
    >>> table.best, table["iterated"].noise < table["group privacy"].noise
    ('iterated', True)
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}; got {short_repr(task)}")
    if task == "descent":
        if concentration is not None:
            raise ValueError("concentration is for task='mean'; descents have `radius`, of the ball of parameters")
        return _compare_descents(n_users, m, dimension, max_norm, epsilon, delta, radius)
    if radius is not None:
        raise ValueError("radius is for task='descent'; means have `concentration`, the distance of a user's mean")
    problem = mean_problem(
        n_users=n_users,
        m=m,
        dimension=dimension,
        max_norm=max_norm,
        epsilon=epsilon,
        delta=delta,
        concentration=concentration,
        norm=norm,
        beta=beta,
        private_concentration=private_concentration,
    )
    return _compare_means(problem, m)


def users_and_records(n_users: int, m: int) -> tuple[int, int]:
    """Two sizes that estimators take."""
    sizes = check_count(n_users, "n_users", 2), check_count(m, "m")
    for name, size, most in zip(("n_users", "m"), sizes, (MOST_USERS, MOST_RECORDS), strict=True):
        if size > most:
            raise ValueError(f"{name} must be at most {most}; got {short_repr(size)}")
    return sizes


def mean_problem(
    *,
    n_users: int,
    m: int,
    dimension: int,
    max_norm: float,
    epsilon: Epsilon,
    delta: Delta,
    concentration: float | None,
    norm: str,
    beta: float,
    private_concentration: bool,
) -> MeanProblem:
    """The public problem that `WinsorizedMean` has for these parameters."""
    users, records = users_and_records(n_users, m)
    size = float(parse_positive(max_norm, "max_norm"))
    if not isinstance(private_concentration, bool):
        raise TypeError(f"private_concentration must be a bool; got {short_repr(private_concentration)}")
    if norm not in ("l2", "max"):
        raise ValueError(f"norm must be 'l2' or 'max'; got {short_repr(norm)}")
    return MeanProblem(
        n_users=users,
        dimension=check_count(dimension, "dimension"),
        max_norm=size,
        norm="l2" if norm == "l2" else "max",
        concentration=float(
            size / math.sqrt(records) if concentration is None else parse_positive(concentration, "concentration")
        ),
        epsilon=positive_epsilon(epsilon),
        delta=parse_delta(delta),
        beta=open_unit_interval(beta, "beta"),
        private_concentration=private_concentration,
    )


@lru_cache(maxsize=4096)
def noise_of(method: str, problem: MeanProblem) -> float:
    """The predicted error of a method, by noise only."""
    return METHODS[method](problem).predicted_error()


def _compare_means(problem: MeanProblem, m: int) -> Comparison:
    """All methods that can run at this privacy, the group-privacy baseline, and the mean that protects records."""
    sampling = problem.concentration / math.sqrt(problem.n_users)
    automatic = METHODS["auto"](problem).name
    rows: list[Prediction] = []
    for method in METHODS:
        if method == "auto":
            continue
        try:
            plan = METHODS[method](problem)
        except ValueError:  # it needs a positive delta, or cannot be certified at this one
            continue
        notes = ["taken by method='auto'"] * (method == automatic) + ["too few users for it"] * bool(plan.warnings())
        rows.append(_prediction(method, "user", plan.predicted_error(), sampling, "; ".join(notes)))
    # The one that is taken by itself where rounding alone is between them.
    best = min(rows, key=lambda row: row.noise * (1 + (row.method != automatic) * TIE))
    rows += _baselines(problem, m, sampling)
    sizes = {
        "n_users": problem.n_users,
        "m": m,
        "dimension": problem.dimension,
        "max_norm": problem.max_norm,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "concentration": problem.concentration,
    }
    return Comparison(
        "mean", sizes, tuple(rows), best.method, "the least predicted error of the methods of WinsorizedMean"
    )


def _prediction(method: str, protects: str, noise: float, sampling: float, note: str) -> Prediction:
    return Prediction(method, protects, noise, math.hypot(noise, sampling), note)


def _baselines(problem: MeanProblem, m: int, sampling: float) -> Iterator[Prediction]:
    """The mean of all records with full-range noise: at epsilon / m, and at epsilon, which does not protect users."""
    records = replace(problem, n_users=problem.n_users * m, private_concentration=False, concentration=problem.ball)
    level = Fraction(float(parse_level(problem.epsilon)))
    per_record = replace(records, epsilon=level / m, delta=_record_delta(level, problem.delta, m))
    noise = min(_full_range(per_record))
    yield _prediction(
        GROUP, "user", noise, sampling, f"one record at epsilon / {m}" + (" and less delta" if problem.delta else "")
    )
    yield _prediction(RECORDS, "record", min(_full_range(records)), sampling, "no guarantee for users")


def _full_range(problem: MeanProblem) -> list[float]:
    return [noise_of(method, problem) for method in FULL_RANGE if problem.delta or method == "laplace"]


def _record_delta(level: Fraction, delta: Fraction, m: int) -> Fraction:
    """The largest delta of a record, nearly, with which m records have the delta of a user."""
    if not delta:
        return delta
    share = math.expm1(float(level) / m) / math.expm1(float(level)) if level < 500 else 0.0
    part = delta * Fraction(share) * (1 - Fraction(1, 2**40))
    assert Fraction(group_privacy(level / m, part, m).delta) <= delta
    return part


def _compare_descents(
    n_users: int, m: int, dimension: int, max_norm: float, epsilon: Epsilon, delta: Delta, radius: float | None
) -> Comparison:
    """The descents of `userdp.optimization` for logistic regression, by their defaults."""
    # These need scikit-learn, which comparing means does not.
    from userdp.optimization import L2Ball, LogisticLoss
    from userdp.optimization.clipped import clipped_descent
    from userdp.optimization.descent import DescentProblem
    from userdp.optimization.phased import PhasedDescent
    from userdp.optimization.schedules import convex_bound
    from userdp.optimization.winsorized import GradientOptions, winsorized_descent

    if not parse_delta(delta):
        raise ValueError("delta must be > 0 for descents, whose noise is Gaussian; got 0")
    users, records = users_and_records(n_users, m)
    d, longest = check_count(dimension, "dimension"), float(parse_positive(max_norm, "max_norm"))
    reach = 4 * math.sqrt(d) / longest if radius is None else float(parse_positive(radius, "radius"))
    problem = DescentProblem(
        n_users=users,
        dimension=d,
        loss=LogisticLoss(),
        constraint=L2Ball(reach),
        start=(0.0,) * d,
        max_norm=longest,
        m=records,
        epsilon=positive_epsilon(epsilon),
        delta=parse_delta(delta),
    )
    descents: dict[str, DescentRounds | TrackingDescent] = {
        "clipped": clipped_descent(problem),
        "winsorized": winsorized_descent(problem, GradientOptions(method="auto"), PUBLIC),
        "winsorized, tracking": winsorized_descent(problem, GradientOptions(method="tracking"), PUBLIC),
    }
    rows = []
    for name, descent in descents.items():
        noise, steps = gradient_noise(descent), descent.rounds
        error = convex_bound(steps, smoothness=problem.smoothness, radius=problem.radius, noise=noise)
        rows.append(Prediction(name, "user", noise, error, f"{steps} steps"))
    options = GradientOptions(variant="strongly-convex")
    phased = PhasedDescent(problem, options, PUBLIC)
    blocks = phased.phases.users
    last = phased.round(len(blocks) - 1, np.array(problem.start))
    note = f"{len(blocks)} blocks, the last of {blocks[-1]} users; no rate is proved"
    rows.append(Prediction("phased", "user", gradient_noise(last), None, note))
    sizes = {
        "n_users": problem.n_users,
        "m": problem.m,
        "dimension": d,
        "max_norm": longest,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "radius": reach,
    }
    return Comparison("descent", sizes, tuple(rows), "clipped", MEASURED)


def gradient_noise(descent: PrivateDescent) -> float:
    """Root mean square of the L2 noise in the gradient of a step, once theta hardly moves."""
    from userdp.optimization.clipped import ClippedMean
    from userdp.optimization.descent import DescentRounds
    from userdp.optimization.winsorized import AnsweredMean, TrackingDescent

    if isinstance(descent, TrackingDescent):
        problem, n = descent.problem, descent.problem.n_users
        # V = share * radius^2, and radius^2 = kappa^2 (u^2 + V).
        share = problem.dimension * (2 / n) ** 2 / (2 * float(descent.rho) / descent.rounds)
        left = 1 / descent.kappa**2 - share
        largest = 2 * problem.lipschitz
        radius = min(descent.concentration / math.sqrt(left), largest) if left > 0 else largest
        return radius * math.sqrt(share)
    assert isinstance(descent, DescentRounds)
    step = descent.step
    if isinstance(step, ClippedMean):
        return step.grid / step.count * math.sqrt(step.dimension * float(step.noise.sigma_squared))
    assert isinstance(step, AnsweredMean)
    return step.means.method.predicted_error()
