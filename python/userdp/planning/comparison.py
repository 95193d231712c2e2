"""Predicted errors of methods side by side, from public numbers: means, private descents, and counts by group."""

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
from userdp.means.methods import METHODS, NEED_A_PROMISE
from userdp.means.problem import MeanProblem
from userdp.mechanisms.key_bounds import Neighbors
from userdp.planning.groups import compare_groups
from userdp.public_randomness import PublicSeed
from userdp.report import Comparison, Prediction

if TYPE_CHECKING:
    from userdp.optimization.descent import DescentRounds, PrivateDescent
    from userdp.optimization.winsorized import TrackingDescent

TASKS = ("mean", "descent", "group_by")
MOST_USERS = 2**32
"""Estimators number users by words of 32 bits."""
MOST_RECORDS = 2**31 - 1
"""As the largest m of estimators."""

GROUP = "group privacy"
RECORDS = "records only"
REASON = "what WinsorizedMean takes by itself for what is promised"
FULL_RANGE = ("gaussian", "laplace")
"""The methods that do not think of users: full noise for the whole range."""

MEASURED = "tuned, it was not told apart from winsorized, tracking, and it has fewer settings: docs/optimization.md"
PUBLIC = PublicSeed(bytes(32))
"""Rotations and blocks do not change how large noise is."""


def compare_methods(
    task: str = "mean",
    *,
    n_users: int,
    m: int | None = None,
    dimension: int = 1,
    max_norm: float = 1.0,
    epsilon: Epsilon,
    delta: Delta = 0,
    user_std: float | None = None,
    homogeneous: bool = False,
    radius: float | None = None,
    norm: str = "l2",
    beta: float = 0.01,
    n_keys: int | None = None,
    max_keys: int | None = None,
    neighbors: Neighbors | None = None,
) -> Comparison:
    """Errors of all methods side by side, and which one is recommended for what is vouched for.

    Parameters
    ----------
    task : {"mean", "descent", "group_by"}
        "mean": the methods of `userdp.means.WinsorizedMean`, the mean of all records with noise for the whole range
        at epsilon / m (group privacy), and the same at epsilon, which protects records and not users. "descent": the
        solvers of `userdp.optimization` for logistic regression, by the noise of one step. "group_by": the ways in
        which `userdp.tables` can count the users of groups, by the noise of one count.
    n_users, m : int
        Users, and records of each. Counts by group take no m.
    dimension : int
        Columns of X.
    max_norm : float
        The largest norm of a record.
    epsilon, delta : privacy parameters
        For users. Descents need delta > 0.
    user_std : float, optional
    homogeneous : bool, default=False
        For means: promises, as for `userdp.means.WinsorizedMean`; the distance is in L2. What needs none of them is
        always there; what needs one that is not made is shown for ``homogeneous=True``, and not recommended.
        "tested" takes them, or m, as a hint.
    radius : float, optional
        For descents: of the L2 ball of parameters, by default 4 sqrt(dimension) / max_norm.
    norm : {"l2", "max"}
        For means: whether `max_norm` bounds the L2 norm of a record, or each column.
    beta : float
        For means, as for `userdp.means.WinsorizedMean`.
    n_keys : int, optional
        For counts by group: how many groups the public list has; None where there is none.
    max_keys : int, optional
        For counts by group: in how many of them a user counts at most, by default in all. Rows with fewer groups of a
        user show what a tighter bound buys.
    neighbors : {"add-remove", "replace"}, optional
        For counts by group; by default as of `userdp.tables.Session`.

    Returns
    -------
    Comparison

    Notes
    -----
    Noise of means is that of the plans by which the methods run, from its exact distribution; the worst error adds the
    most that clipping can move under the promise. Errors are against the mean of these users' means.

    Examples
    --------
    >>> table = compare_methods("mean", n_users=1000, m=256, epsilon=1)
    >>> table.best, table["laplace"].noise < table["group privacy"].noise
    ('laplace', True)
    >>> compare_methods("mean", n_users=1000, m=256, epsilon=1, homogeneous=True).best
    'iterated'
    >>> counts = compare_methods("group_by", n_users=1000, n_keys=10, epsilon=1, delta="1e-5")
    >>> counts.best, round(counts["correlated"].noise, 1), round(counts["gaussian"].noise, 1)
    ('correlated', 7.9, 12.0)
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}; got {short_repr(task)}")
    if task == "group_by":
        if m is not None or user_std is not None or homogeneous or radius is not None:
            raise ValueError("m, user_std, homogeneous and radius are for means and descents; groups have max_keys")
        return compare_groups(
            n_users=n_users,
            n_keys=n_keys,
            max_keys=max_keys,
            epsilon=epsilon,
            delta=delta,
            neighbors="add-remove" if neighbors is None else neighbors,
        )
    if n_keys is not None or max_keys is not None or neighbors is not None:
        raise ValueError("n_keys, max_keys and neighbors are for task='group_by'")
    if m is None:
        raise TypeError(f"m is needed for task={task!r}: how many records a user has")
    if task == "descent":
        if user_std is not None or homogeneous:
            raise ValueError("user_std and homogeneous are for task='mean'; descents have `radius`, of parameters")
        return _compare_descents(n_users, m, dimension, max_norm, epsilon, delta, radius)
    if radius is not None:
        raise ValueError("radius is for task='descent'; means have `user_std`, the distance of users' means")
    problem = mean_problem(
        n_users=n_users,
        m=m,
        dimension=dimension,
        max_norm=max_norm,
        epsilon=epsilon,
        delta=delta,
        user_std=user_std,
        homogeneous=homogeneous,
        norm=norm,
        beta=beta,
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
    user_std: float | None,
    homogeneous: bool,
    norm: str,
    beta: float,
) -> MeanProblem:
    """The public problem that `WinsorizedMean` has for these parameters; without a promise users may be anywhere."""
    users, records = users_and_records(n_users, m)
    size = float(parse_positive(max_norm, "max_norm"))
    if not isinstance(homogeneous, bool):
        raise TypeError(f"homogeneous must be a bool; got {short_repr(homogeneous)}")
    if user_std is not None and homogeneous:
        raise ValueError("user_std and homogeneous=True promise the same thing: give one of them")
    if norm not in ("l2", "max"):
        raise ValueError(f"norm must be 'l2' or 'max'; got {short_repr(norm)}")
    problem = MeanProblem(
        n_users=users,
        dimension=check_count(dimension, "dimension"),
        max_norm=size,
        norm="l2" if norm == "l2" else "max",
        concentration=size,
        epsilon=positive_epsilon(epsilon),
        delta=parse_delta(delta),
        beta=open_unit_interval(beta, "beta"),
        promise="none",
    )
    if user_std is not None:
        return replace(problem, promise="at most", concentration=float(parse_positive(user_std, "user_std")))
    if homogeneous:
        return _homogeneous(problem, records)
    return replace(problem, concentration=problem.ball)


def _homogeneous(problem: MeanProblem, m: int) -> MeanProblem:
    return replace(problem, promise="independent", concentration=problem.ball / math.sqrt(m))


@lru_cache(maxsize=4096)
def errors_of(method: str, problem: MeanProblem) -> tuple[float, float]:
    """Root mean squares of the L2 error of a method, by noise only and with the most that clipping can move."""
    plan = METHODS[method](problem)
    worst = plan.accuracy().worst(problem.dimension)
    # How much noise "tested" has, hangs on what is drawn.
    return plan.predicted_error() if plan.name == "tested" else math.sqrt(
        problem.dimension
    ) * plan.accuracy().noise(), worst


PROMISES = {"none": "nothing", "at most": "user_std", "independent": "homogeneous=True"}


def _compare_means(problem: MeanProblem, m: int) -> Comparison:
    """All methods that can run at this privacy, the group-privacy baseline, and the mean that protects records."""
    promised = problem if problem.promise != "none" else _homogeneous(problem, m)
    automatic = METHODS["auto"](replace(promised, promise=problem.promise)).name
    rows: list[Prediction] = []
    for method in METHODS:
        if method == "auto":
            continue
        # A hint for "tested" is no promise; the others of these do not use it.
        asked = promised if method in NEED_A_PROMISE else replace(promised, promise="none")
        try:
            noise, worst = errors_of(method, asked)
            plan = METHODS[method](asked)
        except ValueError:  # it needs a positive delta, or cannot be certified at this one
            continue
        notes = ["too few users for it"] * bool(plan.warnings())
        needs = PROMISES[asked.promise]
        rows.append(Prediction(method, "user", noise, worst if worst < math.inf else None, needs, "; ".join(notes)))
    rows += _baselines(problem, m)
    sizes = {
        "n_users": problem.n_users,
        "m": m,
        "dimension": problem.dimension,
        "max_norm": problem.max_norm,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "promise": PROMISES[problem.promise],
    }
    return Comparison("mean", sizes, tuple(rows), automatic, REASON)


def _baselines(problem: MeanProblem, m: int) -> Iterator[Prediction]:
    """The mean of all records with full-range noise: at epsilon / m, and at epsilon, which does not protect users."""
    records = replace(problem, n_users=problem.n_users * m, promise="none", concentration=problem.ball)
    level = Fraction(float(parse_level(problem.epsilon)))
    per_record = replace(records, epsilon=level / m, delta=_record_delta(level, problem.delta, m))
    noise = min(_full_range(per_record))
    note = f"one record at epsilon / {m}" + (" and less delta" if problem.delta else "")
    yield Prediction(GROUP, "user", noise, noise, note=note)
    noise = min(_full_range(records))
    yield Prediction(RECORDS, "record", noise, noise, note="no guarantee for users")


def _full_range(problem: MeanProblem) -> list[float]:
    return [errors_of(method, problem)[0] for method in FULL_RANGE if problem.delta or method == "laplace"]


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
        rows.append(Prediction(name, "user", noise, error, note=f"{steps} steps"))
    options = GradientOptions(variant="strongly-convex")
    phased = PhasedDescent(problem, options, PUBLIC)
    blocks = phased.phases.users
    last = phased.round(len(blocks) - 1, np.array(problem.start))
    note = f"{len(blocks)} blocks, the last of {blocks[-1]} users; no rate is proved"
    rows.append(Prediction("phased", "user", gradient_noise(last), None, note=note))
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
        share = problem.dimension * (2 / n) ** 2 / (2 * float(descent.account.rho) / descent.rounds)
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
