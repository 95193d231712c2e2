"""Methods side by side, from public numbers: their errors with so many users, or how many users an accuracy needs."""

from __future__ import annotations

from typing import Any

from userdp.exact.numbers import Delta, Epsilon, short_repr
from userdp.planning.calibration import calibrations
from userdp.planning.lower_bounds import bound_of
from userdp.planning.problem import ErrorsAsked, NotPlanned, Problem, Task
from userdp.planning.sample_size import Way, fewest, ways_of, why_not
from userdp.planning.tasks import ALL_TASKS, task_of
from userdp.report import Comparison, Prediction

FEWEST = "the fewest users, in simulations where there are any, among the methods whose needs are promised"
NOTHING = "none"


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
        The note of a row begins with what its number is: "proved", "exact", "simulated" or "extrapolated", the last two
        with their range; of errors, what each of them is. The lower bound is proved, and "rate" is a shape only.

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
    735
    >>> counts = compare_methods("group_by", n_users=1000, n_keys=10, epsilon=1, delta="1e-5")
    >>> counts.best, round(counts["correlated"].noise, 1), round(counts["gaussian"].noise, 1)
    ('correlated', 7.9, 12.0)
    """
    kind = ALL_TASKS.get(task) if isinstance(task, str) else None
    takes_alpha = kind is None or kind.has_alpha
    if (n_users is not None and alpha is not None) or (takes_alpha and n_users is alpha is None):
        raise TypeError("give either n_users, for the errors with so many users, or alpha, for the users it needs")
    if n_users is None:
        planned = task_of(task)
        if m is None:
            raise TypeError(f"m is needed for task={task!r}: how many records a user has")
        problem = planned.problem(m=m, epsilon=epsilon, delta=delta, alpha=alpha, beta=beta, values=parameters)
        return _users_needed(planned, problem)
    if kind is None or kind.errors is None:
        *others, last = (repr(name) for name, each in ALL_TASKS.items() if each.errors is not None)
        raise ValueError(f"task must be {', '.join(others)} or {last} with n_users; got {short_repr(task)}")
    try:
        return kind.errors(ErrorsAsked(n_users, m, epsilon, delta, beta, parameters))
    except NotPlanned as reason:
        raise ValueError(str(reason)) from None


def _not_simulated(way: Way, problem: Problem) -> bool:
    """Whether a method that may be taken is calibrated, and not for these numbers."""
    known = calibrations(problem.task)
    return way.may_be_taken(problem) and way.method.name in known and way.numbers[2].outside


def _note(way: Way) -> str:
    """What the number is, or why there is none."""
    return f"not planned: {why_not(way.numbers)}" if way.number is None else way.rests_on


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
