"""The papers' rates as numbers: how users and errors scale, by row of a table.

A rate has a shape only. It leaves out constants and, but for those that a row writes, logarithms; so it compares
settings of one row, and is no number of people. Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from userdp.display import Fact, Section, Shown, Table
from userdp.display.numbers import rounded
from userdp.exact.numbers import parse_delta, short_repr
from userdp.planning.rate_rows import OLD, RATES
from userdp.planning.rate_terms import PARAMETERS, Rate, read

TASK_NAMES = (
    "mean",
    "group_by",
    "quantile",
    "threshold",
    "pac",
    "agnostic",
    "hypothesis-selection",
    "discrete",
    "product",
    "gaussian-mean",
    "gaussian",
    "regression",
    "finite-class",
    "selection",
    "finite",
)
MODELS = ("central", "local", "shuffle")
LEVELS = ("user", "item")
DIRECTIONS = ("upper", "lower")
LABEL = "rate: shape only"

NO_ROW = {"quantile": "the papers state no rate for quantiles; thresholds are their nearest task"}
"""Tasks of the planner without a row, and why."""


@dataclass(frozen=True)
class RateValue(Shown):
    """A row of a paper at given parameters; made by `rate`.

    Attributes
    ----------
    rate : Rate
        The row: where it stands, its terms and its conditions.
    parameters : mapping from str to float
        Those that the row was evaluated at.
    terms : mapping from str to float
        The value of each term, by formula.
    value : float
        Their sum.
    label : str
        "rate: shape only": there are no constants in it.
    """

    rate: Rate
    parameters: Mapping[str, float]
    terms: Mapping[str, float]
    value: float
    label: str = LABEL

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    @property
    def row(self) -> str:
        """The name of the row."""
        return self.rate.name

    @property
    def measures(self) -> str:
        """What the value is: users, records, or an error."""
        return self.rate.measures

    @property
    def conditions(self) -> tuple[str, ...]:
        """Under which the paper states it."""
        return tuple(each.text for each in self.rate.conditions)

    @property
    def largest(self) -> str:
        """The formula of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"row": self.row, "measures": self.measures, "term": name, "value": value, "label": self.label}
            for name, value in self.terms.items()
        ]

    def _sections(self) -> Sequence[Section]:
        total = Fact(self.measures.capitalize(), f"{rounded(self.value)} ({self.label})")
        given = [Fact(name, rounded(value)) for name, value in self.parameters.items()]
        rows = [[name, rounded(value)] for name, value in self.terms.items()]
        return [
            Section(
                f"Rate of {self.row}",
                facts=[("", [total]), ("Parameters", given)],
                tables=[Table("Terms", ("term", "value"), rows)],
                notes=[*self.conditions, "Constants and hidden logarithms are left out."],
                headline=[total],
            )
        ]


def rate(
    task: str,
    *,
    row: str | None = None,
    direction: str = "upper",
    model: str = "central",
    level: str = "user",
    **parameters: object,
) -> RateValue:
    """What a row of the papers' tables gives for these parameters, without constants.

    Parameters
    ----------
    task : str
        One of "mean", "group_by", "threshold", "pac", "agnostic", "hypothesis-selection", "discrete", "product",
        "gaussian-mean", "gaussian", "regression", "finite-class", "selection" and "finite", which is any finite
        algorithm.
    row : str, optional
        The name of a row of the task, as ``RATES[0].name``. By default the first that answers: what the paper itself
        shows before what it cites, and a row for the privacy asked for before one for pure privacy.
    direction : {"upper", "lower"}
        A number that is enough, or one that every algorithm needs. Rows that are tight are both.
    model : {"central", "local", "shuffle"}
        Who is trusted.
    level : {"user", "item"}
        Whether privacy protects users, or records.
    **parameters
        By the names of `PARAMETERS` of `userdp.planning.rate_terms`: epsilon, delta, m, alpha, and what the row takes.
        With delta = 0, or none, pure privacy is asked for. With n_users the error is asked for, where there is a row
        for it. Those that the row does not take are read and not used, so that rows can be compared.

    Returns
    -------
    RateValue
        With the value of each term and their sum, the row named, and the conditions under which the paper states it.

    Raises
    ------
    ValueError
        For an unknown task or row, which lists the known; when no row answers; for a row for approximate privacy
        without a delta > 0; and when parameters do not meet a condition, with what would do.
    TypeError
        For an unknown parameter, or when one is missing.

    References
    ----------
    [GKKMMZ23, Table 1], [GKKMMZ23, Table 2], [GKKMMZ23, Corollary 3], [GKM21, Table 1], [LWY24, Table 1],
    [LSAKKMS21, Corollary 3], [LSAKKMS21, Corollary 4], [LSAKKMS21, Corollary 5] and [LSAKKMS21, Remark 1]. [LSAKKMS21]
    has no table: its rows are its theorems, and the same solved for the number of users.

    Examples
    --------
    >>> few = rate("pac", m=16, epsilon=0.5, alpha=0.25, representation_dimension=8)
    >>> few.row
    'GKKMMZ23: Table 1, PAC learning, users, this paper'
    >>> dict(few.terms)
    {'representation_dimension / epsilon': 16.0, 'representation_dimension / (epsilon * alpha * m)': 4.0}
    >>> few.value, few.label
    (20.0, 'rate: shape only')
    """
    if task not in TASK_NAMES:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASK_NAMES))}; got {short_repr(task)}")
    for name, choice, known in (
        ("direction", direction, DIRECTIONS),
        ("model", model, MODELS),
        ("level", level, LEVELS),
    ):
        if choice not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; got {short_repr(choice)}")
    for name in parameters:
        if name not in PARAMETERS:
            raise TypeError(f"unknown parameter {name!r}; rates take {', '.join(PARAMETERS)}")
    given = dict(parameters)
    pure = given.get("delta") is None or parse_delta(given["delta"]) == 0
    if pure:
        given.pop("delta", None)
    values = {name: read(name, value) for name, value in given.items()}
    chosen = _chosen(task, row, direction, model, level, pure, values)
    if pure and not chosen.needs_delta and chosen.direction != "upper":
        values["delta"] = 0.0  # a bound for less privacy
    missing = [name for name in chosen.parameters if name not in values]
    if missing:
        needed = "; ".join(f"{name}: {PARAMETERS[name][1]}" for name in missing)
        if missing == ["delta"]:
            raise ValueError(f"the row {chosen.name!r} is for approximate privacy: take delta > 0, or another row")
        raise TypeError(f"the row {chosen.name!r} needs {needed}")
    used = {name: values[name] for name in chosen.parameters}
    for condition in chosen.conditions:
        if condition.holds is not None and not condition.holds(used):
            remedy = f"; {condition.remedy(used)}" if condition.remedy else ""
            got = ", ".join(f"{name} = {value:.6g}" for name, value in used.items())
            raise ValueError(f"the row {chosen.name!r} is stated for {condition.text}; got {got}{remedy}")
    try:
        terms = {formula: each(used) for formula, each in chosen.terms.items()}
    except OverflowError:
        terms = {"": math.inf}
    value = math.fsum(terms.values())
    if not math.isfinite(value):
        raise ValueError(f"the row {chosen.name!r} is beyond all floats here; take less extreme parameters")
    return RateValue(chosen, used, terms, value)


def _chosen(
    task: str, row: str | None, direction: str, model: str, level: str, pure: bool, values: Mapping[str, float]
) -> Rate:
    """The row by name, or the first that answers the question."""
    of_task = [each for each in RATES if each.task == task]
    if not of_task:
        raise ValueError(f"no rate for task={task!r}: {NO_ROW[task]}")
    names = "; ".join(each.name for each in of_task)
    if row is not None:
        for each in of_task:
            if each.name == row:
                return each
        raise ValueError(f"row must be one of {task!r}: {names}; got {short_repr(row)}")
    fitting = [
        each
        for each in of_task
        if each.direction in (direction, "tight")
        and (each.model, each.level) == (model, level)
        # A number that is enough for pure privacy is enough for less; a bound for less holds for pure privacy.
        and (each.privacy == ("pure" if pure else "approximate") or (each.privacy == "pure") == (direction == "upper"))
        and not (pure and each.needs_delta)
    ]
    if not fitting:
        privacy = "pure" if pure else "approximate"
        raise ValueError(
            f"no row of {task!r} is a {direction} bound in the {model} model at {level} level for {privacy} privacy;"
            f" the rows of the task are {names}"
        )
    wanted = "pure" if pure else "approximate"
    fitting.sort(
        key=lambda each: (
            ("n_users" in each.parameters) != ("n_users" in values),
            any(name not in values and name != "delta" for name in each.parameters),
            each.privacy != wanted,
            OLD in each.column,
        )
    )
    return fitting[0]
