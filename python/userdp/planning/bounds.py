"""What no mechanism can do better: how a task states its bound, and a bound as it is found.

Statements and proofs: docs/proofs/lower_bounds.md. Nothing here sees data, and no privacy rests on these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from userdp.display import Fact, Section, Shown
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
from userdp.exceptions import BudgetError
from userdp.planning.fano import Level
from userdp.planning.hard_tasks import Term, packed
from userdp.planning.packings import Packing
from userdp.planning.problem import LARGEST, REQUIRED, Asked, AskedError, Bound, Parameter, Problem, Task, counts_from

LEAST_ALPHA = 1e-9
"""Packings of smaller accuracies would be closer than floats can tell."""
MOST_ROWS = 2**53
"""More records of a user count as so many: that is a bound for fewer, which would need no fewer users."""
MOST_COLUMNS = 2**20
MOST_NAMED = 2**64


def size(value: Any, name: str) -> Fraction:
    """Reads positive numbers that floats are large enough for, exactly."""
    number = parse_positive(value, name)
    if number > LARGEST:
        raise ValueError(f"{name} must be at most {LARGEST:.0e}; got {short_repr(value)}")
    return number


def real(value: Any, name: str) -> float:
    """The same as a float."""
    return float(size(value, name))


def anything(value: Any, name: str) -> Any:
    """For what is read where it is used."""
    return value


def named_count(name: str, what: str, least: int = 1, most: int = MOST_NAMED, default: Any = REQUIRED) -> Parameter:
    """A number of things that a bound takes."""
    return Parameter(name, what, counts_from(least, most), default)


DIMENSION = named_count("dimension", "columns of records", most=MOST_COLUMNS, default=1)
MAX_NORM = Parameter("max_norm", "the largest L2 norm of a record, or of features", size, Fraction(1))
RADIUS = Parameter("radius", "of the ball of parameters", size, Fraction(1))
LIPSCHITZ = Parameter("lipschitz", "the largest L2 norm of a gradient", size, Fraction(1))


def _accuracy(bound: Bound, alpha: Any, task: str) -> float:
    """Alpha, read."""
    if not bound.has_alpha:
        if alpha is not None:
            raise TypeError(f"alpha is not of task={task!r}, where answers are right or wrong: beta says how often")
        return 0.0
    exact = parse_positive(alpha, "alpha")
    if bound.share and exact >= 1:
        raise ValueError(f"alpha must be below 1 for task={task!r}, where it is a share; got {short_repr(alpha)}")
    value = real(alpha, "alpha")
    if value < LEAST_ALPHA:
        raise ValueError(f"alpha must be at least {LEAST_ALPHA}; got {short_repr(alpha)}")
    return value


def by_packings(packings: Callable[[Asked], Iterable[Packing]]) -> Callable[[Asked], dict[str, Term]]:
    """The terms of what is told apart by packings alone."""
    return lambda asked: packed(packings(asked), asked.level, asked.failure)


def read_values(parameters: Sequence[Parameter], given: Mapping[str, Any], task: str) -> dict[str, Any]:
    """The values of parameters, by default or as given; None is not given."""
    values = {}
    for each in parameters:
        value = given.get(each.name)
        if value is None and each.default is REQUIRED:
            raise TypeError(f"{each.name} is needed for task={task!r}")
        values[each.name] = each.default if value is None else each.read(value, each.name)
    return values


@dataclass(frozen=True)
class LowerBound(Shown):
    """A lower bound; made by `lower_bound`.

    Attributes
    ----------
    task : str
    value : float
        The largest of the terms that are proved with all their constants: an error, 0 when none applies, or a number of
        users, at least 1.
    measures : str
        What is at least `value`; "users" where an accuracy was given.
    terms : mapping from str to float
        The parts, by name; those whose side conditions fail, or that say nothing, are absent.
    n_users : int or None
        The number of users that every private algorithm needs at least, where an accuracy was given.
    sources : mapping from str to str
        Which theorem each term is by, and on which distributions.
    holds_for : str
        Which algorithms the bound is about, and which distributions it is over.

    Every term is proved with all its constants, but for one whose name ends with "cited": `kinds` says which.
    """

    task: str
    value: float
    measures: str
    terms: Mapping[str, float]
    n_users: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    holds_for: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))
        object.__setattr__(self, "sources", MappingProxyType(dict(self.sources)))

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing: no error, or a single user."""
        return self.value <= (0 if self.n_users is None else 1)

    @property
    def obstacle(self) -> str | None:
        """The name of the term that is `value`; None for a bound that is vacuous."""
        return next((name for name, term in self.terms.items() if term == self.value and not self.vacuous), None)

    @property
    def kinds(self) -> Mapping[str, str]:
        """What each term is: "proved", or "cited" where it rests on a lemma that nobody proves in the form it takes."""
        return {name: "cited" if name.endswith("cited") else "proved" for name in self.terms}

    def summary(self) -> str:
        """What it says, in a line for the bound and one for each term."""
        if self.vacuous:
            return f"{self.task}: vacuous, no bound is proved for these numbers"
        if self.n_users is None:
            lines = [f"{self.task}: {self.measures} of at least {self.value:.4g}, proved"]
        else:
            lines = [f"{self.task}: at least {self.n_users:,} users, proved"]
        for name, term in self.terms.items():
            mark = " (cited, and not proved)" if self.kinds[name] == "cited" else ""
            mark = " (the obstacle)" if name == self.obstacle else mark
            source = f": {self.sources[name]}" if name in self.sources else ""
            lines.append(f"  {name} {term:,.6g}{mark}{source}")
        return "\n".join(lines)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [
            {
                "term": name,
                "value": term,
                "measures": self.measures,
                "kind": self.kinds[name],
                "source": self.sources.get(name, ""),
            }
            for name, term in self.terms.items()
        ]

    def _sections(self) -> Sequence[Section]:
        first, *rest = self.summary().splitlines()
        facts = [Fact(name, f"{term:,.6g} ({self.kinds[name]})") for name, term in self.terms.items()]
        return [Section(f"Lower bound: {first}", facts=[("", facts)] if rest else [])]


def users_at_least(
    task: str,
    bound: Bound,
    *,
    alpha: Any,
    beta: Any,
    epsilon: Epsilon,
    delta: Delta,
    m: int,
    given: Mapping[str, Any],
) -> LowerBound:
    """The number of users for an accuracy."""
    assert bound.terms is not None
    accuracy = _accuracy(bound, alpha, task)
    failure = None if beta is None else open_unit_interval(beta, "beta")
    if failure is None and not bound.mean:
        raise TypeError(f"beta is needed for task={task!r}: how often the answer may be worse")
    rows = min(check_count(m, "m"), MOST_ROWS)
    level, values = Level.of(epsilon, delta), read_values(bound.parameters, given, task)
    # What counts a part of beta reads it itself, exactly.
    found = bound.terms(Asked(accuracy, failure, rows, epsilon, delta, level, {**values, "beta": beta}))
    terms = {name: float(term.users) for name, term in sorted(found.items(), key=lambda item: -item[1].users)}
    users = max((term.users for term in found.values()), default=1)
    sources = {name: found[name].source for name in terms}
    return LowerBound(task, float(users), "users", terms, users, sources, bound.holds_for)


def error_at_least(
    task: str, bound: Bound, *, n_users: int, epsilon: Epsilon, delta: Delta, m: int, given: Mapping[str, Any]
) -> LowerBound:
    """The least error with so many users."""
    assert bound.error is not None
    n, rows = (int(size(check_count(number, name), name)) for name, number in (("n_users", n_users), ("m", m)))
    level, slack = parse_level(epsilon), parse_delta(delta)
    if level.ratio == 1 and level.exponent == 0:
        raise ValueError(f"epsilon must be > 0; got {short_repr(epsilon)}")
    values = read_values(bound.error_parameters, given, task)
    measures, terms = bound.error(AskedError(n, rows, level, slack, values))
    # A term that is only cited is shown, and not counted.
    found = LowerBound(task, 0.0, measures, terms)
    value = max((term for name, term in terms.items() if found.kinds[name] == "proved"), default=0.0)
    return LowerBound(task, value, measures, terms)


# --- the bound of a problem that is planned

Known = tuple[int | None, str, str]
"""A number of people below which no method can do, or why none is known; and what it is about."""
HARD_ANYWAY = ("homogeneous", "eta", "smoothness")
"""What is promised or chosen by these, the hard distributions have: records of one distribution, noise of labels of any
share, and losses that are linear. What any other parameter that bounds do not know promises, they may break."""


def known_of(
    bound: Bound, task: str, problem: Problem, given: Mapping[str, Any], *, term: str | None = None, **asked: Any
) -> Known:
    """A bound for a problem, or one of its terms only."""
    common = {"alpha": None, "beta": None, "epsilon": problem.epsilon, "delta": problem.delta, "m": problem.m}
    try:
        found = users_at_least(task, bound, **{**common, **asked}, given=given)
    except (ValueError, BudgetError) as error:
        return None, str(error), ""
    users = found.n_users if term is None else int(found.terms.get(term, 1))
    if users is None or users <= 1:
        return None, "whether fewer people could do is open", ""
    return users, "", found.holds_for


def known_for(task: Task, problem: Problem, *, bound: Bound | None = None, name: str = "", **more: Any) -> Known:
    """The bound of a problem with the values of its parameters, where none of them is a promise that it may break."""
    stated = task.bound if bound is None else bound
    if stated is None:
        return None, "no bound is proved for this task", ""
    named = {each.called or each.name: problem[each.name] for each in task.parameters}
    if named.get("neighbors") == "add-remove":
        return None, "it is known for neighbors='replace' only", ""
    named.pop("neighbors", None)  # what bounds are for anyway
    known = {each.name for each in stated.parameters}
    for parameter, value in named.items():
        if value is not None and value is not False and parameter not in known and parameter not in HARD_ANYWAY:
            return None, f"the bound for all distributions does not hold under {parameter}={value}, a promise", ""
    given = {parameter: value for parameter, value in named.items() if parameter in known}
    asked: dict[str, Any] = {"alpha": problem.alpha} if stated.has_alpha else {}
    asked |= {"beta": problem.beta} if task.accuracy == "probability" else {}
    return known_of(stated, name or task.name, problem, given | more, **asked)
