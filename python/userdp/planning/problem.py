"""What is planned: tasks, their public parameters, and the methods that the package has for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from userdp.accounting import group_privacy
from userdp.exact.epsilon import planned_epsilon
from userdp.exact.numbers import (
    COUNTED,
    Delta,
    Epsilon,
    LogRatio,
    PrivacyLevel,
    check_count,
    open_unit_interval,
    parse_delta,
    parse_level,
    parse_positive,
    short_repr,
    within_floats,
)

if TYPE_CHECKING:
    from userdp.planning.fano import Level
    from userdp.planning.hard_tasks import Term
    from userdp.report import Comparison

MOST_USERS = 2**32
"""Estimators number users by words of 32 bits."""
MOST_RECORDS = 2**31 - 1
"""As the largest m of estimators."""


Kind = Literal["rate", "proved", "exact", "simulated", "extrapolated"]
"""What a number is: a shape without constants; a bound that is proved; an exact calculation; a simulation, which has a
range; or a simulation of other numbers."""


class NotPlanned(Exception):
    """Why a method has no number for a problem: it becomes the note of its row."""


class NotSimulated(NotPlanned):
    """The numbers are outside of what was simulated: the method may do well there."""


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()
Reader = Callable[[Any, str], Any]
"""Reads an argument, given its name, or raises an error that names it."""


@dataclass(frozen=True)
class Parameter:
    """A public number that a task has beside m, epsilon, delta, alpha and beta."""

    name: str
    what: str
    read: Reader
    default: Any = REQUIRED
    called: str = ""
    """What bounds and rates call it, if that is another name."""


@dataclass(frozen=True)
class Problem:
    """A task with all of its public numbers."""

    task: str
    m: int
    epsilon: Fraction | LogRatio
    delta: Fraction
    alpha: float
    beta: float
    values: tuple[tuple[str, Any], ...]

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter of the task."""
        return dict(self.values)[name]

    @property
    def rate(self) -> float:
        """Epsilon, as a float."""
        return float(parse_level(self.epsilon))

    @property
    def sizes(self) -> Mapping[str, Any]:
        """All numbers by name, for tables."""
        first = {"m": self.m, "epsilon": self.rate, "delta": float(self.delta), "alpha": self.alpha, "beta": self.beta}
        if math.isnan(self.alpha):
            del first["alpha"]
        return MappingProxyType(first | {name: _shown(value) for name, value in self.values if value is not None})

    def at(self, **changes: Any) -> Problem:
        """The same with other numbers, which have been read already."""
        given = {name: changes.pop(name) for name, _ in self.values if name in changes}
        values = tuple((name, given.get(name, value)) for name, value in self.values)
        return replace(self, values=values, **changes)


def _some_protection(delta: Delta) -> Fraction:
    """Delta, below 1."""
    part = parse_delta(delta)
    if part >= 1:
        raise ValueError(f"delta must be below 1, where nothing is protected; got {short_repr(delta)}")
    return part


def _shown(value: Any) -> Any:
    return float(parse_level(value)) if isinstance(value, (Fraction, LogRatio)) else value


@dataclass(frozen=True)
class ErrorsAsked:
    """Errors that are asked for with so many users, as given."""

    n_users: int
    m: int | None
    epsilon: Epsilon
    delta: Delta
    beta: float | None
    values: Mapping[str, Any]

    def known(self, task: str, **defaults: Any) -> dict[str, Any]:
        """The parameters of a task, or an error that names the first that is none."""
        for name in self.values:
            if name not in defaults:
                raise TypeError(f"{name} is no parameter of task {task!r}, which has: {', '.join(defaults)}")
        return {**defaults, **{name: value for name, value in self.values.items() if value is not None}}


def users_there(n_users: int) -> int:
    """A number of users that estimators take."""
    users = check_count(n_users, "n_users", 2)
    if users > MOST_USERS:
        raise ValueError(f"n_users must be at most {MOST_USERS}; got {short_repr(n_users)}")
    return users


def records_there(m: int, name: str = "m") -> int:
    """A number of records of a user that estimators take."""
    records = check_count(m, name)
    if records > MOST_RECORDS:
        raise ValueError(f"{name} must be at most {MOST_RECORDS}; got {short_repr(m)}")
    return records


Terms = Mapping[str, float]
"""Numbers of users by name, which are added up."""


@dataclass(frozen=True)
class Method:
    """One way to do a task that the package has.

    Every function of a problem may raise `NotPlanned` with the reason in words.
    """

    name: str
    runs: str
    """What runs it, as one would write it: ``ThresholdClassifier(mechanism='auto')``."""
    protects: Literal["user", "record"] = "user"
    needs: Callable[[Problem], str] = lambda problem: "nothing"
    """What somebody must vouch for, for it to run well."""
    rests: Callable[[Problem], str] = lambda problem: "nothing"
    """What its number rests on where it needs nothing: if that is false it runs as well, but with another accuracy."""
    kept: Callable[[Problem], bool] = lambda problem: True
    """Whether what it needs has been promised: what has not is shown, and not recommended."""
    row: str = ""
    """The row of a paper's table, or its theorem, that `rate` is."""
    rate: Callable[[Problem], Terms] | None = None
    theorem: str = ""
    """What the proved number rests on."""
    proved: Callable[[Problem], int] | None = None
    exact: bool = False
    """Whether that is an exact calculation: with one user fewer, some users have a larger error, or fail more often."""
    reached: Callable[[Problem, int], float] | None = None
    """The accuracy that is proved for so many users, where that is quicker than a search for `proved`."""
    too_few: Callable[[Problem, int], bool] | None = None
    """Whether just so many users miss the accuracy, where that is quicker to say than `proved`."""
    terms: Callable[[Problem], Terms] | None = None
    """What the calibrated number is a combination of: numbers of users but for constants, which are fitted."""
    standard: Callable[[Problem], Problem] = lambda problem: problem
    """The same problem in the units that were simulated, whose numbers must be within the range simulated."""
    baseline: str = ""
    """Which of the three usual ways it is, if it is one: see `BASELINES`."""

    def promise(self, problem: Problem) -> str:
        """What somebody must vouch for, for its number to hold."""
        needs = self.needs(problem)
        return self.rests(problem) if needs == "nothing" else needs


BASELINES = ("one record per person", "group privacy", "per-user clipping")


# --- what no algorithm can beat

LARGEST = 1e100
"""Of sizes in bounds."""


@dataclass(frozen=True)
class Asked:
    """Users that are asked for, for an accuracy."""

    alpha: float
    """0 for tasks without one."""
    beta: float | None
    """None for an expected error."""
    m: int
    epsilon: Epsilon
    delta: Delta
    level: Level
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter of the bound."""
        return self.values[name]

    @property
    def failure(self) -> float:
        """Beta, where there is one."""
        assert self.beta is not None
        return self.beta


@dataclass(frozen=True)
class AskedError:
    """An error that is asked for, with so many users."""

    n: int
    m: int
    level: PrivacyLevel
    delta: Fraction
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of a parameter of the bound."""
        return self.values[name]

    @property
    def rate(self) -> float:
        """Epsilon: of a larger one bounds are lower, and floats are as small as this."""
        return max(float(self.level), 1 / LARGEST)


@dataclass(frozen=True)
class Bound:
    """What no algorithm can beat, of a task."""

    holds_for: str = ""
    """Which algorithms the number of users is about, and which distributions it is over."""
    terms: Callable[[Asked], dict[str, Term]] | None = None
    """Numbers of users; None where there are errors only."""
    parameters: tuple[Parameter, ...] = ()
    mean: bool = False
    """Whether an expected error can be asked for."""
    share: bool = True
    """Whether accuracies are probabilities or shares, below 1."""
    has_alpha: bool = True
    error: Callable[[AskedError], tuple[str, dict[str, float]]] | None = None
    """What is at least so large with n users, and its terms."""
    error_parameters: tuple[Parameter, ...] = ()


# --- tasks


@dataclass(frozen=True)
class Task:
    """A question, with all that the planner has for it: methods, a bound for all methods, errors with so many users."""

    name: str
    question: str = ""
    """In words: "the mean of users' records"."""
    measure: str = ""
    """Of what alpha is the bound."""
    parameters: tuple[Parameter, ...] = ()
    methods: tuple[Method, ...] = ()
    """None for what has a bound or errors only."""
    data: str = ""
    """The users that calibrated numbers were simulated with."""
    bound: Bound | None = None
    hard: Callable[[Problem], tuple[int | None, str, str]] | None = None
    """The bound of a problem, where it is not that for the values of its parameters: see `userdp.planning.bounds`."""
    errors: Callable[[ErrorsAsked], Comparison] | None = None
    """Methods side by side, by their errors with so many users."""
    largest_alpha: float = 1.0
    """Accuracies are below it."""
    scale: Callable[[Problem], float] = lambda problem: 1.0
    """The size of what is estimated, in the units of alpha."""
    has_alpha: bool = True
    """Whether an accuracy is asked for, or is that of something given."""
    beta: float = 0.1
    accuracy: Literal["probability", "root mean square", "mean"] = "probability"
    """Whether alpha is kept with probability 1 - beta, is a root mean square error, or a mean over all releases."""
    check: Callable[[Problem], None] = lambda problem: None
    """Refuses combinations that no method has, with an error that says why."""
    without_privacy: Callable[[Problem], int] | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    """Which of the usual ways has no method, and why."""

    def problem(
        self,
        *,
        m: int,
        epsilon: Epsilon,
        delta: Delta,
        alpha: float | None,
        beta: float | None,
        values: Mapping[str, Any],
    ) -> Problem:
        """Read all arguments; errors name them and say what is accepted."""
        records = records_there(m)
        accuracy = self._accuracy(alpha)
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in values:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise TypeError(f"{name} is no parameter of task {self.name!r}, which has: {listed}")
        read = []
        for parameter in self.parameters:
            value = values.get(parameter.name, parameter.default)
            if value is REQUIRED:
                raise TypeError(f"{parameter.name} is needed for task {self.name!r}: {parameter.what}")
            is_default = parameter.name not in values or (value is None and parameter.default is None)
            read.append((parameter.name, value if is_default else parameter.read(value, parameter.name)))
        problem = Problem(
            task=self.name,
            m=records,
            epsilon=planned_epsilon(epsilon),
            delta=_some_protection(delta),
            alpha=accuracy,
            beta=open_unit_interval(self.beta if beta is None else beta, "beta"),
            values=tuple(read),
        )
        self.check(problem)
        return problem

    def _accuracy(self, alpha: float | None) -> float:
        if not self.has_alpha:
            if alpha is not None:
                raise TypeError(f"task {self.name!r} takes no alpha; got {short_repr(alpha)}")
            return math.nan
        if alpha is None:
            raise TypeError(f"alpha is needed for task {self.name!r}: {self.measure} is to be at most alpha")
        accuracy = within_floats(parse_positive(alpha, "alpha"), "alpha")
        if accuracy >= self.largest_alpha:
            raise ValueError(
                f"alpha must be below {self.largest_alpha:g} for {self.name!r}, whose accuracy is {self.measure}; got "
                f"{short_repr(alpha)}"
            )
        return accuracy

    def method(self, name: str) -> Method:
        """The method of a name."""
        for method in self.methods:
            if method.name == name:
                return method
        listed = ", ".join(repr(method.name) for method in self.methods)
        raise ValueError(f"method must be 'auto' or one of {listed}; got {short_repr(name)}")


def record_delta(level: Fraction, delta: Fraction, m: int) -> Fraction:
    """The largest delta of a record, nearly, with which m records have the delta of a user; 0 where none is left."""
    share = math.expm1(float(level) / m) / math.expm1(float(level)) if level < 500 else 0.0
    part = delta * Fraction(share) * (1 - Fraction(1, 2**40))
    # Of a delta next to 0 roundings leave nothing.
    return part if Fraction(group_privacy(level / m, part, m).delta) <= delta else Fraction(0)


def counts_from(least: int, most: int | None = None) -> Reader:
    """Reads integers of a range."""

    def read(value: Any, name: str) -> int:
        return check_count(value, name, least, COUNTED if most is None else most)

    return read


def positive(value: Any, name: str) -> float:
    """Reads positive floats."""
    return within_floats(parse_positive(value, name), name)


def between(low: float, high: float) -> Reader:
    """Reads numbers of a closed range."""

    def read(value: Any, name: str) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"{name} must be a number from {low:g} to {high:g}; got {short_repr(value)}") from None
        if isinstance(value, bool) or not (low <= number <= high) or math.isnan(number):
            raise ValueError(f"{name} must be a number from {low:g} to {high:g}; got {short_repr(value)}")
        return number

    return read


def choice(*accepted: str) -> Reader:
    """Reads one of some words."""

    def read(value: Any, name: str) -> str:
        if not isinstance(value, str) or value not in accepted:
            raise ValueError(f"{name} must be one of {', '.join(map(repr, accepted))}; got {short_repr(value)}")
        return value

    return read


def flag(value: Any, name: str) -> bool:
    """Reads True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be a bool; got {short_repr(value)}")
    return value
