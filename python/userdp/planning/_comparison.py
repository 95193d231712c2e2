"""A table of methods and what is predicted of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Comparison", "Prediction"]


@dataclass(frozen=True)
class Prediction:
    """What is predicted of one method.

    Attributes
    ----------
    method : str
        As in the parameter of the estimator that has it, or what it is.
    protects : {"user", "row"}
        Whose data the guarantee is for. One for rows is no guarantee for people, and is there for comparison.
    noise : float
        Root mean square of the L2 error by what the method does for privacy.
        For descents: of the gradient of one step.
    error : float or None
        The same with sampling: the error against the mean that people are drawn from. For descents: the bound of the
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
        ax.set_xlabel("predicted error (orange: protects rows, not people)")
        return ax


def _order(row: Prediction) -> tuple[bool, float]:
    return row.protects != "user", math.inf if row.error is None else row.error


def _line(row: Prediction, width: int) -> str:
    error = "-" if row.error is None else f"{row.error:.3g}"
    return f"{row.method:<{width}}  {row.protects:<8}  {row.noise:>9.3g}  {error:>9}  {row.note}".rstrip()
