"""The papers' rates as numbers: how users and errors scale, by row of a table.

A rate has a shape only. It leaves out constants and, but for those that a row writes, logarithms; so it compares
settings of one row, and is no number of people. The rows are data: `rates.json` has one for each row of a paper's
table and for each theorem that stands in none, with its formulas as text. Errata are followed: where a text prints
sqrt(m alpha epsilon), the table's sqrt(m) alpha epsilon is meant, and where it prints sqrt(m epsilon), sqrt(m) epsilon.
Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from userdp.display import Fact, Section, Shown, Table
from userdp.display.numbers import rounded
from userdp.exact.numbers import (
    check_count,
    nonzero_level,
    open_unit_interval,
    parse_delta,
    parse_positive,
    short_repr,
)

Values = Mapping[str, float]
MODELS = ("central", "local", "shuffle")
LEVELS = ("user", "item")
DIRECTIONS = ("upper", "lower")
LABEL = "rate: shape only"
OLD = "previous work"
LARGEST = 1e30
"""Of parameters, and 1 / LARGEST the smallest: products of their powers are floats."""
ROUNDING = 1e-9
"""Of the checks of conditions: parameters are floats."""


def count(least: int) -> Callable[[object, str], float]:
    """A reader of integers from a least one on."""
    return lambda value, name: float(min(check_count(value, name, least), 10**31))


def positive(value: object, name: str) -> float:
    """Read a number > 0 to the nearest float, inf beyond them."""
    number = parse_positive(value, name)
    return float(number) if number < 10**31 else math.inf


def level(value: object, name: str) -> float:
    """Read an epsilon > 0."""
    try:
        return float(nonzero_level(value, name))
    except OverflowError:
        return math.inf


PARAMETERS: Mapping[str, tuple[Callable[[object, str], float], str]] = MappingProxyType(
    {
        "epsilon": (level, "> 0: the privacy parameter, for users; of rows at item level, for records"),
        "delta": (open_unit_interval, "in (0, 1)"),
        "m": (count(1), "records of each user"),
        "n_users": (count(1), "users, where the error is asked for"),
        "alpha": (positive, "> 0: the accuracy; its meaning is in `measures` of the row"),
        "beta": (open_unit_interval, "in (0, 1): the probability to fail"),
        "representation_dimension": (positive, "PRDim, the logarithm of the size of a probabilistic representation"),
        "vc_dimension": (count(1), "of the concept class"),
        "littlestone_dimension": (count(1), "of the concept class"),
        "sq_dimension": (count(1), "by statistical queries, of the concept class"),
        "power": (positive, "the exponent that a paper writes as O(1)"),
        "output_bits": (count(1), "bits of a hypothesis"),
        "domain_size": (count(2), "points of the domain"),
        "n_hypotheses": (count(2), "hypotheses to choose from"),
        "n_symbols": (count(2), "values of a record, or of each of its coordinates"),
        "dimension": (count(1), "coordinates of a record, or of the parameter that is learned"),
        "n_choices": (count(2), "items that users may hold"),
        "n_item_level": (positive, "records that the finite algorithm needs at item level"),
        "n_priv": (positive, "what multiplies log(1/delta)^log_power / epsilon in the number of records"),
        "n_stat": (positive, "the part of the number of records that does not depend on privacy"),
        "log_power": (positive, "c, the power of log(1/delta) in the number of records"),
        "max_norm": (positive, "the largest L2 norm of a record"),
        "max_loss": (positive, "the largest absolute value of a loss"),
        "lipschitz": (positive, "the largest L2 norm of a gradient"),
        "sigma": (positive, "the sub-Gaussian constant of a record or a gradient"),
        "concentration_radius": (positive, "tau: users' values are within it of a point that nobody knows"),
        "radius": (positive, "of the set of parameters"),
        "smoothness": (positive, "of the loss"),
        "strong_convexity": (positive, "of the loss"),
        "iterations": (count(1), "steps of the descent"),
        "n_queries": (count(1), "adaptive queries"),
        "cover_distance": (positive, "how far a parameter may be from the nearest of n_hypotheses that are tried"),
    }
)
"""What rates depend on: how each is read, and what it is."""


def read(name: str, value: object) -> float:
    """A parameter as a float, or an error that names it."""
    number = PARAMETERS[name][0](value, name)
    if name != "delta" and not 1 / LARGEST <= number <= LARGEST:
        raise ValueError(f"{name} must be between {1 / LARGEST:.0e} and {LARGEST:.0e}; got {short_repr(value)}")
    return number


# --- formulas


def iterated_logarithm(x: float) -> float:
    """How often log2 is applied to x until at most 1 is left."""
    times = 0
    while x > 1:
        x, times = math.log2(x), times + 1
    return float(times)


OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "min": min,
    "log2": math.log2,
    "iterated": iterated_logarithm,
}


def _value(node: ast.expr, values: Values) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, values)
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id="log"), args=[inner]):
            return _logarithm(inner, values)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(_value(each, values) for each in arguments))
    raise ValueError(f"not a formula: {ast.unparse(node)}")


def _logarithm(node: ast.expr, values: Values) -> float:
    """Of a product or a ratio by its parts, which may be beyond all floats together."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _logarithm(left, values) + _logarithm(right, values)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _logarithm(left, values) - _logarithm(right, values)
    return math.log(_value(node, values))


@dataclass(frozen=True)
class Term:
    """A formula of parameters, such as ``dimension / (epsilon * sqrt(m))``."""

    formula: str

    @cached_property
    def _tree(self) -> ast.expr:
        text = self.formula.replace("log*(", "iterated(").replace("^", "**")
        # A product inside of a function is written without a sign.
        return ast.parse(re.sub(r"(?<=[\w)]) (?=[\w(])", " * ", text), mode="eval").body

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The parameters that the term depends on."""
        found = [node for node in ast.walk(self._tree) if isinstance(node, ast.Name) and node.id in PARAMETERS]
        return tuple(dict.fromkeys(node.id for node in sorted(found, key=lambda node: node.col_offset)))

    def __call__(self, values: Values) -> float:
        """The value of the term."""
        return float(_value(self._tree, values))


# --- conditions


def _tiny(values: Values) -> float:
    """What [LSAKKMS21, Theorem 8] asks delta to be below."""
    exponent = values["n_users"] * values["epsilon"] + math.log(2 * values["n_users"])
    return math.exp(-exponent) if exponent < 700 else 0.0


Check = tuple[tuple[str, ...], Callable[[Values], bool], Callable[[Values], str]]
FEW = "m <= 1/alpha^2; more records of each user do not lower the number of users further"
CHECKS: Mapping[str, Check] = {
    "alpha < 1": (("alpha",), lambda v: v["alpha"] < 1, lambda v: "take an accuracy below 1"),
    "epsilon < 1": ((), lambda v: v["epsilon"] < 1, lambda v: "take epsilon below 1"),
    "epsilon <= 1": ((), lambda v: v["epsilon"] <= 1, lambda v: "take epsilon at most 1"),
    "alpha < max_norm": ((), lambda v: v["alpha"] < v["max_norm"], lambda v: "take alpha below max_norm"),
    "alpha < lipschitz radius": (
        (),
        lambda v: v["alpha"] < v["lipschitz"] * v["radius"],
        lambda v: "take alpha below lipschitz radius",
    ),
    "delta is far below epsilon": (
        (),
        lambda v: v["delta"] < v["epsilon"],
        lambda v: f"take delta far below {v['epsilon']:.4g}",
    ),
    FEW: (
        (),
        lambda v: v["m"] * v["alpha"] ** 2 <= 1 + ROUNDING,
        lambda v: f"take m = {max(1, math.floor(v['alpha'] ** -2 * (1 + ROUNDING)))} of the records of each user",
    ),
    "n_hypotheses n_users m epsilon > 1": (
        (),
        lambda v: v["n_hypotheses"] * v["n_users"] * v["m"] * v["epsilon"] > 1,
        lambda v: "take more users, records or epsilon",
    ),
    "log2(n_hypotheses) >= 32 ln 2": (
        (),
        lambda v: math.log2(v["n_hypotheses"]) >= 32 * math.log(2),
        lambda v: f"the theorem begins at n_hypotheses = {math.ceil(2 ** (32 * math.log(2)))}",
    ),
    "delta < 0.1 epsilon^1.1": (
        (),
        lambda v: v["delta"] < 0.1 * v["epsilon"] ** 1.1,
        lambda v: f"take delta below {0.1 * v['epsilon'] ** 1.1:.3g}",
    ),
    "delta < exp(-n_users epsilon) / (2 n_users)": (
        (),
        # Solved for the number of users, there is none to check it with.
        lambda v: "n_users" not in v or v["delta"] < _tiny(v),
        lambda v: f"take delta below {_tiny(v):.3g}" if _tiny(v) else "take far fewer users, or a far smaller epsilon",
    ),
}
"""Conditions that can be checked: what they read that a formula may not have, whether they hold, and what would do."""


def _check_of(text: str) -> Check | None:
    """How a condition is checked; None where a paper hides a constant, so that nobody can tell."""
    if text.startswith("m >= "):
        threshold = Term(text.removeprefix("m >= "))
        return (
            ("m", *threshold.parameters),
            lambda v: v["m"] >= threshold(v) * (1 - ROUNDING),
            lambda v: f"take at least m = {math.ceil(threshold(v) * (1 - ROUNDING))}",
        )
    return CHECKS.get(text)


# --- rows


@dataclass(frozen=True)
class Rate:
    """A row of a paper as a formula: its shape only, without constants, and without the logarithms that O~ hides.

    Attributes
    ----------
    paper, table, row, column : str
        Where it stands.
    task : str
        Of the planner.
    model : {"central", "local", "shuffle"}
        Who is trusted.
    privacy : {"pure", "approximate"}
    level : {"user", "item"}
        Whom privacy protects.
    direction : {"upper", "lower", "tight"}
        A number that is enough, one that every algorithm needs, or both.
    measures : str
        What the sum of the terms is.
    terms : mapping from str to callable
        By formula. Each takes the parameters by name.
    conditions : tuple of str
        Under which the paper states it.
    """

    paper: str
    table: str
    row: str
    column: str
    task: str
    terms: Mapping[str, Term]
    conditions: tuple[str, ...] = ()
    model: str = "central"
    privacy: Literal["pure", "approximate"] = "pure"
    level: str = "user"
    direction: Literal["upper", "lower", "tight"] = "upper"
    measures: str = "users"

    @classmethod
    def of(cls, terms: Sequence[str], conditions: Sequence[str] = (), **place: Any) -> Rate:
        """A row as it is written."""
        return cls(terms=MappingProxyType({text: Term(text) for text in terms}), conditions=tuple(conditions), **place)

    @property
    def name(self) -> str:
        """The name of the row, as `rate` takes it."""
        return f"{self.paper}: {self.table}, {self.row}, {self.column}"

    @cached_property
    def checks(self) -> Mapping[str, Check]:
        """Its conditions that can be checked."""
        return {text: check for text in self.conditions if (check := _check_of(text)) is not None}

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """What the formula and its conditions that can be checked depend on, always with the privacy parameters."""
        names = [name for each in self.terms.values() for name in each.parameters]
        names += [name for read, _, _ in self.checks.values() for name in read]
        return tuple(dict.fromkeys([*names, "epsilon", *(["delta"] if self.privacy == "approximate" else [])]))

    @property
    def needs_delta(self) -> bool:
        """Whether a term depends on delta, so that it has no value for pure privacy."""
        return any("delta" in each.parameters for each in self.terms.values())


def _written() -> list[Mapping[str, Any]]:
    text = files("userdp.planning").joinpath("rates.json").read_text(encoding="utf-8")
    return json.loads(text)


RATES: tuple[Rate, ...] = tuple(Rate.of(**row) for row in _written())
"""All rows. Of those that answer a question, the first is the default of `rate`."""
NO_ROW = {"quantile": "the papers state no rate for quantiles; thresholds are their nearest task"}
"""Tasks of the planner without a row, and why."""
TASK_NAMES = (*dict.fromkeys(row.task for row in RATES), *NO_ROW)


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
        return self.rate.conditions

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
        By the names of `PARAMETERS` of `userdp.planning.rates`: epsilon, delta, m, alpha, and what the row takes.
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
    try:
        for text, (_, holds, remedy) in chosen.checks.items():
            if not holds(used):
                got = ", ".join(f"{name} = {value:.6g}" for name, value in used.items())
                raise ValueError(f"the row {chosen.name!r} is stated for {text}; got {got}; {remedy(used)}")
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
