"""Regime maps: how many users each method needs against the number of records of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from userdp.display import Fact, Section, Shown, Table, axes_or_new
from userdp.exact.numbers import Delta, Epsilon, check_count
from userdp.planning.sample_size import fewest, ways_of
from userdp.planning.tasks import task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RECORDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Regime(Shown):
    """Users needed against records of each; made by `regime_map`.

    Attributes
    ----------
    task : str
    sizes : mapping
        The public numbers, but m.
    m : tuple of int
    users : mapping from str to tuple of int or None
        For each method that has a number somewhere: how many users it needs with each m.
    best : tuple of str or None
        For each m, the method that needs the fewest users among those whose needs are promised.
    kinds : mapping from str to tuple of str
        What each number of `users` is: "proved", "exact", "simulated" or "extrapolated"; empty where there is none.
    """

    task: str
    sizes: Mapping[str, Any]
    m: tuple[int, ...]
    users: Mapping[str, tuple[int | None, ...]]
    best: tuple[str | None, ...]
    kinds: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", MappingProxyType(dict(self.sizes)))
        object.__setattr__(self, "users", MappingProxyType(dict(self.users)))
        object.__setattr__(self, "kinds", MappingProxyType(dict(self.kinds)))

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "m": m,
                "method": name,
                "users": users[index],
                "kind": self.kinds[name][index],
                "best": self.best[index] == name,
            }
            for name, users in self.users.items()
            for index, m in enumerate(self.m)
        ]

    def _sections(self) -> Sequence[Section]:
        rows = [
            (
                name,
                *(
                    "–" if number is None else f"{number:,} ({kind})"
                    for number, kind in zip(users, self.kinds[name], strict=True)
                ),
            )
            for name, users in self.users.items()
        ]
        table = Table("Users needed with so many records of each", ("method", *map(str, self.m)), rows)
        asked = [Fact(name, str(value)) for name, value in self.sizes.items()]
        return [Section(f"Users needed: {self.task}", facts=[("Question", asked)], tables=[table])]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Users needed against records of each, a line for each method; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        ax = axes_or_new(ax)
        for name, users in self.users.items():
            known = [(m, number) for m, number in zip(self.m, users, strict=True) if number is not None]
            wide = 2.5 if name in self.best else 1.2
            ax.plot([m for m, _ in known], [number for _, number in known], marker="o", linewidth=wide, label=name)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel("records of each user (m)")
        ax.set_ylabel("users needed (n)")
        ax.legend(fontsize="small")
        return ax


def regime_map(
    task: str,
    *,
    m: Sequence[int] = RECORDS,
    epsilon: Epsilon,
    delta: Delta = 0,
    alpha: float | None = None,
    beta: float | None = None,
    **parameters: Any,
) -> Regime:
    """How many users each method needs, against the number of records of each user.

    Parameters
    ----------
    task, epsilon, delta, alpha, beta, **parameters
        As for `user_complexity`.
    m : sequence of int
        Numbers of records, at most 64 of them.

    Returns
    -------
    Regime

    Examples
    --------
    >>> found = regime_map("mean", m=(1, 16, 256), epsilon=1, alpha=0.05, homogeneous=True)
    >>> found.best, found.users["laplace"]
    (('laplace', 'laplace', 'iterated'), (409, 71, 58))
    """
    kind = task_of(task)
    sizes = tuple(sorted({check_count(number, "m") for number in m}))
    if not 1 <= len(sizes) <= 64:
        raise ValueError(f"m must have 1 to 64 numbers; got {len(sizes)}")
    rows: dict[str, list[tuple[int | None, str]]] = {way.name: [] for way in kind.methods}
    best: list[str | None] = []
    problem = None
    for number in sizes:
        problem = kind.problem(m=number, epsilon=epsilon, delta=delta, alpha=alpha, beta=beta, values=parameters)
        ways = ways_of(kind, problem)
        for way in ways:
            rows[way.method.name].append(way.number or (None, ""))
        found = fewest(ways, problem)
        best.append(None if found is None else found.method.name)
    assert problem is not None
    known = {name: list(zip(*found, strict=True)) for name, found in rows.items() if any(kind for _, kind in found)}
    users, kinds = ({name: found[place] for name, found in known.items()} for place in (0, 1))
    shown = {name: value for name, value in problem.sizes.items() if name != "m"}
    return Regime(kind.name, shown, sizes, users, tuple(best), kinds)
