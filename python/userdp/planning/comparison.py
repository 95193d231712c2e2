"""Predicted errors of methods side by side."""

from __future__ import annotations

from userdp.exact.numbers import Delta, Epsilon, short_repr
from userdp.report import Comparison

TASKS = ("mean", "descent")


def compare_methods(
    task: str = "mean",
    *,
    n_users: int,
    m: int,
    dimension: int = 1,
    bound: float = 1.0,
    epsilon: Epsilon,
    delta: Delta = 0,
    radius: float | None = None,
    norm: str = "l2",
    beta: float = 0.01,
    private_radius: bool = False,
) -> Comparison:
    """Predicted errors of all methods side by side, and which one is recommended.

    Parameters
    ----------
    task : {"mean", "descent"}
        "mean": the methods of `userdp.means.WinsorizedMean`, the mean of all rows with noise for the whole range
        at epsilon / m (group privacy), and the same at epsilon, which protects rows and not users. "descent": the
        solvers of `userdp.optimization` for logistic regression, by the noise of one step.
    n_users, m : int
        Users, and rows of each.
    dimension : int
        Columns of X.
    bound : float
        Largest norm of a row.
    epsilon, delta : privacy parameters
        For users. Descents need delta > 0.
    radius : float, optional
        For means: the expected L2 distance of a user's mean from the mean of all, a promise, by default
        bound / sqrt(m). For descents: of the L2 ball of parameters, by default 4 sqrt(dimension) / bound.
    norm, beta, private_radius
        For means, as for `userdp.means.WinsorizedMean`.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    Errors of means are predicted by the very plans by which the methods run; the prediction counts on the radius.
    Users who differ by more than chance have a larger one: see docs/planning.md.

    Examples
    --------
    >>> table = compare_methods("mean", n_users=1000, m=64, epsilon=1)
    >>> table.best, table["iterated"].noise < table["group privacy"].noise
    ('iterated', True)
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))}; got {short_repr(task)}")
    if task == "descent":
        from userdp.planning.descents import compare_descents

        return compare_descents(
            n_users=n_users, m=m, dimension=dimension, bound=bound, epsilon=epsilon, delta=delta, radius=radius
        )
    from userdp.planning.means import compare_means, mean_problem

    problem = mean_problem(
        n_users=n_users,
        m=m,
        dimension=dimension,
        bound=bound,
        epsilon=epsilon,
        delta=delta,
        radius=radius,
        norm=norm,
        beta=beta,
        private_radius=private_radius,
    )
    return compare_means(problem, m)
