"""How many users a method needs for an accuracy: by the papers' rates, by proofs with constants, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from userdp.display import Fact, Section, Shown, Table
from userdp.display.numbers import rounded
from userdp.exact.numbers import Delta, Epsilon
from userdp.exceptions import BudgetError
from userdp.planning.calibration import WIDER, calibration_of
from userdp.planning.lower_bounds import bound_of
from userdp.planning.problem import MOST_USERS, Kind, Method, NotPlanned, NotSimulated, Problem, Task
from userdp.planning.tasks import task_of

NEAR = 2
"""A proved number up to so many times a calibrated one is taken in its place, as it holds for all users."""


EQUAL = 1.1
"""Simulated numbers that are no farther apart are taken to be equal: they are off by about as much."""


@dataclass(frozen=True)
class Figure:
    """One number of users, and what it rests on.

    Attributes
    ----------
    kind : {"rate", "proved", "exact", "simulated", "extrapolated"}
    value : float or None
        "rate": the paper's formula, without constants and logarithms: for its shape only. "proved": with so many users
        the accuracy is kept, by a theorem with explicit constants. "exact": the same by an exact calculation, and with
        one user fewer it is not kept for all users. "simulated": by simulations with users of one kind.
        "extrapolated": the same formula beyond the numbers that were simulated. None where there is none.
    source : str
        The paper's row, what is proved, or what was simulated.
    terms : mapping from str to float
        What the value is the sum of.
    error : float or None
        Of a simulated number: the largest relative error at the points simulated, in units of the number and of what
        was needed; twice that where it is extrapolated, which is a margin and no bound.
    reason : str
        Why there is no value.
    outside : bool
        Whether there is none because the numbers are outside of what was simulated.
    """

    kind: Kind
    value: float | None
    source: str
    terms: Mapping[str, float] = field(default_factory=dict)
    error: float | None = None
    reason: str = ""
    outside: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", MappingProxyType(dict(self.terms)))

    @property
    def range(self) -> tuple[int, int] | None:
        """Of a simulated number: between which users the need was, in these units, at all points simulated."""
        if self.value is None or self.error is None:
            return None
        return max(1, math.floor(self.value * (1 - self.error))), math.ceil(self.value * (1 + self.error))

    @property
    def rests_on(self) -> str:
        """What the value is, in a few words."""
        if self.range is None:
            return "rate, shape only" if self.kind == "rate" else self.kind
        beyond = " beyond the numbers that were simulated" if self.kind == "extrapolated" else ""
        return f"{self.kind}{beyond}, from {self.range[0]:,} to {self.range[1]:,}"


def figures(method: Method, task: Task, problem: Problem) -> tuple[Figure, Figure, Figure]:
    """The three numbers of a method, each with its source or with the reason why it is missing."""
    return _rate(method, problem), _proved(method, problem), calibrated_figure(method, task, problem)


def _rate(method: Method, problem: Problem) -> Figure:
    if method.rate is None:
        return Figure("rate", None, method.row, reason="no row of the four papers is about it")
    try:
        terms = method.rate(problem)
    except (NotPlanned, ValueError) as error:
        return Figure("rate", None, method.row, reason=str(error))
    return Figure("rate", math.fsum(terms.values()), method.row, terms)


def _proved(method: Method, problem: Problem) -> Figure:
    kind: Kind = "exact" if method.exact else "proved"
    if method.proved is None:
        return Figure(kind, None, method.theorem, reason="no number of users is proved with constants")
    try:
        users = method.proved(problem)
        if users > MOST_USERS:
            raise NotPlanned(f"more than {MOST_USERS} users would be needed; raise alpha or epsilon")
        least = least_for_all(problem)
        if method.protects == "user" and max(2, users) < least:  # tests look for such a case, and know of none
            raise NotPlanned(f"its proof of {users:,} users contradicts the bound of {least:,}: please report this")
        return Figure(kind, users, method.theorem)
    except (NotPlanned, BudgetError, ImportError) as error:  # learners need scikit-learn, which planning does not
        return Figure(kind, None, method.theorem, reason=str(error))


def calibrated_figure(method: Method, task: Task, problem: Problem) -> Figure:
    """What simulations say, or why they say nothing."""
    try:
        found, beyond = calibration_of(method, problem)
        assert method.terms is not None
        terms = {name: found.constants[name] * size for name, size in method.terms(problem).items()}
    except (NotPlanned, ImportError) as error:
        return Figure("simulated", None, task.data, reason=str(error), outside=isinstance(error, NotSimulated))
    users = max(1, math.ceil(math.fsum(terms.values())))
    if users > MOST_USERS:
        return Figure("simulated", None, task.data, reason=f"more than {MOST_USERS} users")
    source = f"{found.points} points simulated, {found.runs} runs each, seed {found.seed}: {task.data}"
    if beyond:
        source = f"extrapolated, as it was simulated for {' and '.join(beyond)} only: {source}"
        return Figure("extrapolated", users, source, terms, WIDER * found.error)
    return Figure("simulated", users, source, terms, found.error)


@dataclass(frozen=True)
class SampleSize(Shown):
    """How many users reach an accuracy; made by `user_complexity`.

    Attributes
    ----------
    task, method : str
    measure : str
        What is at most alpha, and how surely.
    n_users : int
        The number to take, at least 2: the simulated one with its error on top, but no fewer than the lower bound for
        all users; or the proved one where that is at most twice as large or nothing was simulated.
    basis : {"proved", "exact", "simulated", "extrapolated"}
        Which of these it is.
    rate, proved, calibrated : Figure
        The last one is "extrapolated" where the numbers are beyond those simulated.
    without_privacy : int or None
        How many users are enough for sampling alone, where that is known: proved.
    sizes : mapping
        The public numbers that it is for.
    """

    task: str
    method: str
    measure: str
    n_users: int
    basis: Kind
    rate: Figure
    proved: Figure
    calibrated: Figure
    without_privacy: int | None
    sizes: Mapping[str, Any]

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        low, high = self.calibrated.range or (None, None)
        return [
            {
                "task": self.task,
                "method": self.method,
                "n_users": self.n_users,
                "basis": self.basis,
                "rate": self.rate.value,
                "proved": self.proved.value,
                "proved_kind": self.proved.kind,
                "calibrated": self.calibrated.value,
                "calibrated_kind": self.calibrated.kind,
                "range_low": low,
                "range_high": high,
                "without_privacy": self.without_privacy,
            }
        ]

    def _sections(self) -> Sequence[Section]:
        users = Fact("Users", f"{self.n_users:,} ({self.basis})")
        facts = [users, Fact("Accuracy", self.measure)]
        if self.without_privacy is not None:
            facts.append(Fact("Enough for sampling alone", f"{self.without_privacy:,} (proved)"))
        rows = [
            (figure.rests_on, "–" if figure.value is None else rounded(figure.value), figure.reason or figure.source)
            for figure in (self.rate, self.proved, self.calibrated)
        ]
        table = Table("Three numbers of users", ("kind", "users", "what it rests on"), rows)
        asked = [Fact(name, str(value)) for name, value in self.sizes.items()]
        title = f"Users needed: {self.task}, by {self.method}"
        return [Section(title, facts=[("", facts), ("Question", asked)], tables=[table], headline=[users])]


def measure_of(task: Task, problem: Problem) -> str:
    """What an accuracy means, in words."""
    if not task.has_alpha:
        return f"{task.measure} in {1 - problem.beta:.4g} of all releases"
    if task.accuracy != "probability":
        return f"{task.measure} is at most {problem.alpha:g}"
    return f"{task.measure} is at most {problem.alpha:g} in {1 - problem.beta:.4g} of all releases"


def least_for_all(problem: Problem) -> int:
    """Below it no method can do for all users; 2 where no such number is known."""
    return max(2, bound_of(problem)[0] or 2)


def sure_of(calibrated: Figure, least: int) -> tuple[int, Kind] | None:
    """The calibrated number with its error on top; no fewer than the least, as users may be other than simulated."""
    if calibrated.value is None:
        return None
    return max(least, math.ceil(calibrated.value * (1 + (calibrated.error or 0)))), calibrated.kind


def chosen(figures_of: tuple[Figure, Figure, Figure], least: int) -> tuple[int, Kind] | None:
    """The number of users to take, and which of the three it is."""
    _, proved, calibrated = figures_of
    sure = sure_of(calibrated, least)
    if proved.value is not None and (sure is None or proved.value <= NEAR * sure[0]):
        return max(2, int(proved.value)), proved.kind
    return sure


def user_complexity(
    task: str,
    *,
    method: str = "auto",
    m: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    alpha: float | None = None,
    beta: float | None = None,
    **parameters: Any,
) -> SampleSize:
    """The number of users with which a method reaches an accuracy: by rate, by proof and by simulation.

    Parameters
    ----------
    task : str
        One of `userdp.planning.tasks`; docs/planning.md has what each of them means.
    method : str
        One of the task's methods, or "auto": what needs the fewest users in simulations, or by proof where nothing was
        simulated, among those whose needs are promised.
    m : int
        Records of each user.
    epsilon, delta : privacy parameters
        For replacing one user.
    alpha : float
        > 0: the accuracy, for all tasks but "finite". Its measure belongs to the task: for "mean" it is the root mean
        square of the L2 error against the mean that users are drawn from.
    beta : float, optional
        In (0, 1): the probability with which the accuracy may be missed, by default 0.1. For "mean", whose accuracy is
        a root mean square, it is the parameter of `userdp.means.WinsorizedMean`, by default 0.01.
    **parameters
        Public numbers of the task, as ``dimension``, ``max_norm``, ``user_std``, ``homogeneous`` and ``norm`` of
        "mean".

    Returns
    -------
    SampleSize

    Raises
    ------
    ValueError
        For unknown tasks and methods, numbers out of range, and when no number is known: the message has each reason.

    Notes
    -----
    A simulated number is for users as simulated, which `SampleSize.calibrated` describes. Up to 10 times beyond the
    range simulated it is called extrapolated, and has twice the error on top. A proved number is for all users, as its
    theorem says.

    Examples
    --------
    >>> plan = user_complexity("mean", method="laplace", m=16, epsilon=1, alpha=0.01, homogeneous=True)
    >>> plan.n_users, plan.basis, plan.without_privacy
    (735, 'proved', 625)
    """
    kind = task_of(task)
    problem = kind.problem(m=m, epsilon=epsilon, delta=delta, alpha=alpha, beta=beta, values=parameters)
    return sample_size(kind, problem, method)


def sample_size(task: Task, problem: Problem, method: str = "auto") -> SampleSize:
    """The same for a problem that has been read."""
    if method == "auto":
        ways = ways_of(task, problem)
        found = fewest(ways, problem)
        if found is None:
            reasons = "; ".join(f"{way.method.name}: {why_not(way.numbers)}" for way in ways)
            raise ValueError(f"no method of {task.name!r} can be planned here: {reasons}")
        return sized(task, problem, found)
    named = task.method(method)
    if not named.kept(problem):
        raise TypeError(f"method={method!r} needs a promise of how users are: {named.needs(problem)}")
    numbers = figures(named, task, problem)
    least = least_for_all(problem)
    number = chosen(numbers, least)
    if number is None:
        raise BudgetError(f"method={method!r} cannot be planned here: {why_not(numbers)}")
    return sized(task, problem, Way(named, numbers, number, least))


def sized(task: Task, problem: Problem, way: Way) -> SampleSize:
    """The number of users of a method that has one."""
    assert way.number is not None
    (users, basis), numbers = way.number, way.numbers
    free = None
    if task.without_privacy is not None:
        with suppress(NotPlanned):
            free = task.without_privacy(problem)
    return SampleSize(
        task=task.name,
        method=way.method.name,
        measure=measure_of(task, problem),
        n_users=users,
        basis=basis,
        rate=numbers[0],
        proved=numbers[1],
        calibrated=numbers[2],
        without_privacy=free,
        sizes=problem.sizes,
    )


class Way(NamedTuple):
    """A method on a problem: its three numbers, the one to take, and below what no method can do."""

    method: Method
    numbers: tuple[Figure, Figure, Figure]
    number: tuple[int, Kind] | None
    least: int

    @property
    def rests_on(self) -> str:
        """What the number to take is, in a few words."""
        if self.number is None:
            return ""
        users, kind = self.number
        words = next(figure.rests_on for figure in self.numbers[1:] if figure.kind == kind)
        raised = kind in ("simulated", "extrapolated") and users == self.least and self.simulated < users
        return f"{words}; no fewer than the lower bound" if raised else words

    @property
    def simulated(self) -> float:
        """What was simulated, without its error, or what is proved."""
        _, proved, calibrated = self.numbers
        known = [number.value for number in (proved, calibrated) if number.value is not None]
        return min(known, default=math.inf)

    @property
    def expected(self) -> float:
        """The users that it is expected to need, never fewer than are certified to be needed."""
        return max(self.least, self.simulated)

    def may_be_taken(self, problem: Problem) -> bool:
        """Whether it protects users and what it needs is promised."""
        return self.method.protects == "user" and self.method.kept(problem)


def ways_of(task: Task, problem: Problem) -> list[Way]:
    """All methods of a task."""
    found, least = [], least_for_all(problem)
    for method in task.methods:
        numbers = figures(method, task, problem)
        found.append(Way(method, numbers, chosen(numbers, least), least))
    return found


def fewest(ways: Sequence[Way], problem: Problem) -> Way | None:
    """Of those that may be taken, the one with the fewest users; of nearly equal ones, one that needs no promise."""
    # Numbers are compared as simulated: proofs are less tight for some methods than for others.
    known = [way for way in ways if way.number is not None and way.may_be_taken(problem)]
    least = min((way.expected for way in known), default=math.inf)
    nearly = [way for way in known if way.expected <= EQUAL * least]
    free = [way for way in nearly if way.method.needs(problem) == "nothing"] or nearly
    if not free:
        return None
    # Of those that the bound makes equal, the one that was simulated with fewer.
    fewer = EQUAL * min(way.simulated for way in free)
    return min((way for way in free if way.simulated <= fewer), key=lambda way: chosen(way.numbers, 2) or (0, ""))


def why_not(numbers: tuple[Figure, Figure, Figure]) -> str:
    """Why neither a proved nor a calibrated number is known."""
    return " and ".join(f"{figure.kind}: {figure.reason}" for figure in numbers[1:] if figure.reason)
