"""Methods side by side, from public numbers: their errors with so many users, or how many users an accuracy needs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from userdp.exact.numbers import (
    Delta,
    Epsilon,
    check_count,
    parse_level,
    short_repr,
)
from userdp.means.methods import METHODS
from userdp.planning.calibration import calibrations
from userdp.planning.groups import compare_groups
from userdp.planning.problem import MOST_RECORDS, MOST_USERS, NotPlanned, Problem, Task
from userdp.planning.problem_bounds import bound_of
from userdp.planning.sample_size import Way, fewest, ways_of, why_not
from userdp.planning.tasks import TASKS, task_of
from userdp.planning.tasks.means import (
    MEAN,
    PROMISES,
    asked_of,
    errors_of,
    full_range,
    mean_problem,
    per_record,
    plan_of,
)
from userdp.report import Comparison, Prediction

GROUP = "group privacy"
RECORDS = "records only"
REASON = "what WinsorizedMean takes by itself for what is promised"
FEWEST = "the fewest users, in simulations where there are any, among the methods whose needs are promised"
NOTHING = "none"
EXTRAPOLATED = "extrapolated beyond the numbers that were simulated"


def compare_methods(
    task: str = "mean",
    *,
    n_users: int | None = None,
    alpha: float | None = None,
    m: int | None = None,
    epsilon: Epsilon,
    delta: Delta = 0,
    beta: float | None = None,
    **parameters: Any,
) -> Comparison:
    """All methods side by side, and which one is recommended for what is vouched for.

    Parameters
    ----------
    task : str
        With `alpha`: one of `userdp.planning.tasks`. With `n_users`: "mean", for the methods of
        `userdp.means.WinsorizedMean`, the mean of all records with noise for the whole range at epsilon / m (group
        privacy), and the same at epsilon, which protects records and not users; "descent", for the solvers of
        `userdp.optimization` for logistic regression, by the excess of the loss that reference users lead to;
        "group_by", for the ways in which `userdp.tables` can count the users of groups, by the noise of one count.
    n_users : int, optional
        How many users there are: the table has errors. Give either this or `alpha`.
    alpha : float, optional
        Which accuracy is wanted: the table has numbers of users, as `user_complexity` has them for one method.
    m : int
        Records of each user. Counts by group take no m.
    epsilon, delta : privacy parameters
        For users. Descents need delta > 0.
    beta : float, optional
        As for `user_complexity`.
    **parameters
        Public numbers of the task. Of "mean": `dimension`, `max_norm`, the promises `user_std` and `homogeneous` of
        `userdp.means.WinsorizedMean`, of which the distance is in L2, and `norm`. What needs a promise that is not
        made is shown for ``homogeneous=True``, and not recommended; "tested" takes them, or m, as a hint. Of
        "descent": `dimension`, `max_norm` and `radius`, of the L2 ball of parameters, by default 4 sqrt(dimension) /
        max_norm. Of "group_by": `n_keys`, how many groups the public list has; `max_keys`, in how many of them a user
        counts at most, by default in all; `neighbors`, as of `userdp.tables.Session`. docs/planning.md has the others.

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
    >>> compare_methods("mean", alpha=0.01, m=16, epsilon=1, homogeneous=True)["laplace"].users
    734
    >>> counts = compare_methods("group_by", n_users=1000, n_keys=10, epsilon=1, delta="1e-5")
    >>> counts.best, round(counts["correlated"].noise, 1), round(counts["gaussian"].noise, 1)
    ('correlated', 7.9, 12.0)
    """
    takes_alpha = task not in TASKS or TASKS[task].has_alpha
    if (n_users is not None and alpha is not None) or (takes_alpha and n_users is alpha is None):
        raise TypeError("give either n_users, for the errors with so many users, or alpha, for the users it needs")
    if n_users is None:
        kind = task_of(task)
        if m is None:
            raise TypeError(f"m is needed for task={task!r}: how many records a user has")
        problem = kind.problem(m=m, epsilon=epsilon, delta=delta, alpha=alpha, beta=beta, values=parameters)
        return _users_needed(kind, problem)
    if task == "group_by":
        if m is not None or beta is not None:
            raise ValueError("m and beta are for means; groups have max_keys")
        return compare_groups(n_users=n_users, epsilon=epsilon, delta=delta, **_known(task, parameters, GROUPS))
    if task not in ("mean", "descent"):
        raise ValueError(f"task must be 'mean', 'descent' or 'group_by' with n_users; got {short_repr(task)}")
    if m is None:
        raise TypeError(f"m is needed for task={task!r}: how many records a user has")
    if task == "descent":
        # These need scikit-learn, which comparing means does not.
        from userdp.planning.descents import compare_descents, descent_problem

        given = _known(task, parameters, DESCENTS)
        return compare_descents(descent_problem(_users(n_users), _records(m), epsilon=epsilon, delta=delta, **given))
    try:
        return _means(n_users, m, epsilon, delta, beta, parameters)
    except NotPlanned as reason:
        raise ValueError(str(reason)) from None


GROUPS: Mapping[str, Any] = {"n_keys": None, "max_keys": None, "neighbors": "add-remove"}
DESCENTS: Mapping[str, Any] = {"dimension": 1, "max_norm": 1.0, "radius": None}


def _known(task: str, given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a task, or an error that names the first that is none."""
    for name in given:
        if name not in defaults:
            raise TypeError(f"{name} is no parameter of task {task!r}, which has: {', '.join(defaults)}")
    return {**defaults, **{name: value for name, value in given.items() if value is not None}}


def _means(
    n_users: int, m: int, epsilon: Epsilon, delta: Delta, beta: float | None, parameters: Mapping[str, Any]
) -> Comparison:
    """All methods that can run at this privacy, the group-privacy baseline, and the mean that protects records."""
    users = _users(n_users)
    # Accuracies of means may be any: here they are what is asked for.
    planned = MEAN.problem(m=m, epsilon=epsilon, delta=delta, alpha=1, beta=beta, values=parameters)
    problem = mean_problem(planned, users)
    automatic = plan_of("auto", replace(asked_of("auto", problem, m), promise=problem.promise)).name
    rows: list[Prediction] = []
    for method in METHODS:
        if method == "auto":
            continue
        asked = asked_of(method, problem, m)
        try:
            noise, worst = errors_of(method, asked)
        except NotPlanned:  # it needs a positive delta, or cannot be certified at this one
            continue
        notes = ["too few users for it"] * bool(plan_of(method, asked).warnings())
        needs = PROMISES[asked.promise]
        rows.append(Prediction(method, "user", noise, worst if worst < math.inf else None, needs, "; ".join(notes)))
    note = f"one record at epsilon / {m}" + (" and less delta" if problem.delta else "")
    try:
        noise = full_range(per_record(problem, m, group=True))
        rows.append(Prediction(GROUP, "user", noise, noise, note=note))
    except NotPlanned as reason:
        rows.append(Prediction(GROUP, "user", None, None, note=f"not planned: {reason}"))
    noise = full_range(per_record(problem, m, group=False))
    rows.append(Prediction(RECORDS, "record", noise, noise, note="no guarantee for users"))
    sizes = {
        "n_users": problem.n_users,
        "m": m,
        "dimension": problem.dimension,
        "max_norm": problem.max_norm,
        "epsilon": float(parse_level(problem.epsilon)),
        "delta": float(problem.delta),
        "promise": PROMISES[problem.promise],
    }
    return Comparison(task="mean", sizes=sizes, rows=tuple(rows), best=automatic, reason=REASON)


def _records(m: int) -> int:
    """A number of records of a user that estimators take."""
    records = check_count(m, "m")
    if records > MOST_RECORDS:
        raise ValueError(f"m must be at most {MOST_RECORDS}; got {short_repr(m)}")
    return records


def _not_simulated(way: Way, problem: Problem) -> bool:
    """Whether a method that may be taken is calibrated, and not for these numbers."""
    known = calibrations(problem.task)
    return way.may_be_taken(problem) and way.method.name in known and way.numbers[2].outside


def _note(way: Way) -> str:
    """Why there is no number, or that it is extrapolated."""
    if way.number is None:
        return f"not planned: {why_not(way.numbers)}"
    return EXTRAPOLATED if way.number[1] == "extrapolated" else ""


def _users_needed(task: Task, problem: Problem) -> Comparison:
    """Every method of a task, with its three numbers of users or the reason why there is none."""
    ways = ways_of(task, problem)
    rows = []
    for way in ways:
        rate, proved, calibrated = way.numbers
        rows.append(
            Prediction(
                way.method.name,
                way.method.protects,
                None,
                None,
                way.method.promise(problem),
                _note(way),
                rate=rate.value,
                proved=None if proved.value is None else int(proved.value),
                calibrated=None if calibrated.value is None else int(calibrated.value),
                users=None if way.number is None else way.number[0],
            )
        )
    rows += [
        Prediction(name, "user", None, None, note=f"not planned: {reason}") for name, reason in task.missing.items()
    ]
    found = fewest(ways, problem)
    best, reason = (NOTHING, "each row says why") if found is None else (found.method.name, FEWEST)
    # A method whose simulations are of other numbers has none here, or a proved one, and may still be the best.
    aside = [way.method.name for way in ways if _not_simulated(way, problem)]
    if found is not None and aside:
        reason += f"; not simulated for these numbers, and perhaps better: {', '.join(aside)}"
    least, why_none, about = bound_of(problem)
    bound = about if least is not None else why_none
    return Comparison(
        task=task.name, sizes=problem.sizes, rows=tuple(rows), best=best, reason=reason, least=least, bound=bound
    )


def _users(n_users: int) -> int:
    """A number of users that estimators take."""
    users = check_count(n_users, "n_users", 2)
    if users > MOST_USERS:
        raise ValueError(f"n_users must be at most {MOST_USERS}; got {short_repr(n_users)}")
    return users
