"""Predicted errors of methods side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from userdp.exact.numbers import Delta, Epsilon, short_repr

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Prediction:
    """What is predicted of one method.

    Attributes
    ----------
    method : str
        As in the parameter of the estimator that has it, or what it is.
    protects : {"user", "row"}
        Whose data the guarantee is for. One for rows is no guarantee for users, and is there for comparison.
    noise : float
        Root mean square of the L2 error by what the method does for privacy.
        For descents: of the gradient of one step.
    error : float or None
        The same with sampling: the error against the mean that users are drawn from. For descents: the bound of the
        excess of the loss, where nobody's gradient is clipped; None where nothing is proved.
    note : str
    """

    method: str
    protects: str
    noise: float
    error: float | None
    note: str = ""


@dataclass(frozen=True, repr=False)
class Comparison:
    """Methods side by side; made by `compare_methods`. It prints as a table.

    Attributes
    ----------
    task : str
    sizes : mapping
        The public numbers that it is for.
    rows : tuple of Prediction
        With increasing error among those that protect users; the others come last.
    best : str
        The method that is recommended.
    reason : str
        Why.
    """

    task: str
    sizes: Mapping[str, Any]
    rows: tuple[Prediction, ...]
    best: str
    reason: str

    def __post_init__(self) -> None:
        order = sorted(self.rows, key=_order)
        object.__setattr__(self, "rows", tuple(order))
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))

    def __getitem__(self, method: str) -> Prediction:
        """The row of a method."""
        for row in self.rows:
            if row.method == method:
                return row
        raise KeyError(f"{method!r}; there are {', '.join(repr(row.method) for row in self.rows)}")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self.sizes.items())
        width = max(len(row.method) for row in self.rows)
        lines = [
            f"{self.task}: {sizes}",
            f"{'method':<{width}}  protects  {'noise':>9}  {'error':>9}",
            *(_line(row, width) for row in self.rows),
            f"best: {self.best} ({self.reason})",
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers.

        Returns
        -------
        dict
        """
        return {
            "task": self.task,
            "sizes": dict(self.sizes),
            "rows": [asdict(row) for row in self.rows],
            "best": self.best,
            "reason": self.reason,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Errors as bars; needs matplotlib (``pip install 'userdp[plot]'``).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ModuleNotFoundError:
                raise ImportError("plots need matplotlib: pip install 'userdp[plot]'") from None
            _, ax = plt.subplots(layout="constrained")
        rows = [row for row in self.rows if row.error is not None]
        colors = ["C1" if row.protects == "row" else "C0" for row in rows]
        ax.barh([row.method for row in rows], [row.error or 0.0 for row in rows], color=colors)
        ax.invert_yaxis()
        ax.set_xscale("log")
        ax.set_xlabel("predicted error (orange: protects rows, not users)")
        return ax


def _order(row: Prediction) -> tuple[bool, float]:
    return row.protects != "user", math.inf if row.error is None else row.error


def _line(row: Prediction, width: int) -> str:
    error = "-" if row.error is None else f"{row.error:.3g}"
    return f"{row.method:<{width}}  {row.protects:<8}  {row.noise:>9.3g}  {error:>9}  {row.note}".rstrip()


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
