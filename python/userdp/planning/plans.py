"""A plan for readers: people needed, what is promised for it, what nobody can do better, and what would halve it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from userdp.display import Fact, Lines, Section, Shown, Table, render_page
from userdp.display.numbers import rounded
from userdp.exact.numbers import Delta, Epsilon
from userdp.planning.comparison import compare_methods
from userdp.planning.lower_bounds import bound_of
from userdp.planning.problem import MOST_RECORDS, Problem, Task, users_there
from userdp.planning.questions import Answer, accuracy_reached, least_value
from userdp.planning.sample_size import SampleSize, chosen, fewest, figures, least_for_all, measure_of, sized, ways_of
from userdp.planning.tasks import task_of
from userdp.report import Comparison

DOUBLINGS = 12
"""How often a number is doubled to find what halves the people."""
NEARLY = 0.05
"""How near answers are to the least one, relatively."""
MOST_EPSILON = 16
DRAWN = (1, 3, 10, 30, 100, 300, 1000)
"""Records of each person in the picture."""

WAYS = {
    "one record per person": "use one record of each person and leave out the others",
    "group privacy": "protect single records, so strongly that all records of a person are protected together",
    "per-user clipping": "cut off what one person can contribute, for the whole range that is possible",
}
"""The usual ways, in plain words."""

CLOSING = (
    "No data were looked at for this page: everything follows from the public numbers in it. "
    "It is a plan, and promises nothing about a release that does not follow it."
)


@dataclass(frozen=True)
class Change:
    """What would halve the number of people.

    Attributes
    ----------
    what : str
        "m", "epsilon", "alpha", or the name of a promise.
    value : float or None
        The number that it would have to be, within 5 %; None where none that was looked at will do, and for promises.
    n_users : int or None
        The people needed then.
    kind : str
        What that number is, as of `SampleSize.basis`; empty where there is none.
    text : str
        The same in words.
    """

    what: str
    value: float | None
    n_users: int | None
    text: str
    kind: str = ""


@dataclass(frozen=True)
class Plan(Shown):
    """How many people a question needs, for readers; made by `plan`.

    Attributes
    ----------
    task, question, measure : str
    sizes : mapping
        The public numbers.
    n_users : int or None
        How many people there are, where that was said.
    best : SampleSize or None
        The method that needs the fewest people, among those whose promises were made; None where nothing can be
        planned.
    ways : Comparison
        All methods, with numbers or with the reason why there is none.
    least : int or None
        No method with this protection can do with fewer people; None where no such number is known, and `no_bound`
        says why.
    no_bound : str
    least_for : str
        Which methods and which people the bound is about.
    reached : float or None
        The least accuracy, within 5 %, that the people there are, are enough for with the best method; None where
        nobody said how many there are, and where no accuracy will do.
    changes : tuple of Change
        What would halve the number of people.
    lines : mapping from str to tuple of (int, int, str)
        For the best method and the usual ways: records of each person, people needed, and what that number is.
    reached_kind : str
        What the number of people for `reached` is.
    explained : mapping from str to str
        Public numbers, methods and promises in plain words.
    typical : bool
        Whether the accuracy is a root mean square, or is kept in most releases.
    """

    task: str
    question: str
    measure: str
    sizes: Mapping[str, Any]
    n_users: int | None
    best: SampleSize | None
    ways: Comparison
    least: int | None
    no_bound: str
    least_for: str
    reached: float | None
    changes: tuple[Change, ...]
    lines: Mapping[str, tuple[tuple[int, int, str], ...]]
    explained: Mapping[str, str]
    typical: bool
    reached_kind: str = ""

    def __post_init__(self) -> None:
        for name in ("sizes", "lines", "explained"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def enough(self) -> bool | None:
        """Whether the people there are, are enough; None where nobody said how many, or nothing can be planned."""
        if self.n_users is None or self.best is None:
            return None
        return self.n_users >= self.best.n_users

    def to_html(self) -> str:
        """The plan as one page of HTML, in plain words; needs Jinja2 (``pip install 'userdp[report]'``)."""
        return render_page(self._sections(), "How many people does it take?", closing=CLOSING)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return self.ways._rows()

    def _sections(self) -> Sequence[Section]:
        first = Section(
            f"The question: {self.question}",
            word=self._word(),
            sentence=self._sentence(),
            tone="open" if self.best is None else "plain" if self.n_users is None else "good" if self.enough else "bad",
            facts=[("", self._protection())],
            lines=self._picture(),
        )
        halves = [(change.text,) for change in self.changes]
        return [
            first,
            Section("The ways to do it", tables=[self._table()], notes=self._notes()),
            Section("What no method can do", sentence=self._least()),
            *([Section("What would halve the number of people", tables=[Table("", ("",), halves)])] if halves else []),
            Section(
                "What is public",
                sentence="The plan rests on these numbers alone. They must be known without a look at the data: a "
                "number that was taken from the data is a release of its own.",
                facts=[
                    ("", [Fact(self.explained.get(name, name), _text(value)) for name, value in self.sizes.items()])
                ],
            ),
        ]

    def _word(self) -> str:
        if self.best is None:
            return "No number of people can be given"
        if self.n_users is None:
            return f"{self.best.n_users:,} people are needed"
        return f"{self.n_users:,} people are {'enough' if self.enough else 'not enough'}"

    def _sentence(self) -> str:
        if self.best is None:
            return "None of the methods can be planned for these numbers. The table below says why for each of them."
        records = self.sizes["m"]
        gives = "gives one record" if records == 1 else f"gives {records:,} records"
        needed = f"{self.best.n_users:,} people, each of whom {gives}, are needed by the best method known here: "
        alpha = self.sizes.get("alpha")
        plain = f"the answer is typically within {alpha:.4g} of the truth: " if self.typical else ""
        return f"{needed}{self.best.method}. With them, {plain}{self.best.measure}."

    def _protection(self) -> list[Fact]:
        epsilon, delta = self.sizes["epsilon"], self.sizes["delta"]
        factor = rounded(math.exp(epsilon)) if epsilon < 700 else "a number beyond counting"
        text = (
            f"All records of a person are protected together. Whatever one person gives, the chance of any result "
            f"changes by a factor of at most {factor}"
        )
        text += f", but for a chance of {_chance(delta)}." if delta else "."
        facts = [Fact("Protection", text)]
        if self.reached is not None:
            facts.append(
                Fact(
                    f"With {self.n_users:,} people",
                    f"an accuracy of about {self.reached:.3g} can be had ({self.reached_kind})",
                )
            )
        if self.best is not None and self.best.without_privacy is not None:
            text = f"{self.best.without_privacy:,} people would be enough (proved)"
            facts.append(Fact("Without any protection", text))
        if self.best is not None:
            facts.append(Fact("The number rests on", _basis(self.best)))
        return facts

    def _picture(self) -> Lines | None:
        series = {
            name: [(m, users) for m, users, _ in points] for name, points in self.lines.items() if len(points) > 1
        }
        if not series:
            return None
        return Lines(
            "People needed, by how many records each person gives",
            "records of each person",
            "people needed",
            series,
            None if self.n_users is None else (self.n_users, "people there are"),
            note="Both axes are logarithmic: a step of the grid is a factor. Lower is better, "
            "and lines that nobody sees lie under the thick one.",
        )

    def _table(self) -> Table:
        rows = []
        for line in self.ways.rows:
            users = "–" if line.users is None else f"{line.users:,}"
            why = line.note.removeprefix("not planned: ")
            if line.protects == "record":
                why = f"{why}; protects single records only, so it does not count here"
            rows.append((self._named(line.method), users, self.explained.get(line.needs, line.needs), why))
        columns = ("way", "people needed", "somebody must promise", "the number is, or why there is none")
        return Table("", columns, rows)

    def _named(self, method: str) -> str:
        """A method with what it does, or what runs it."""
        does = WAYS.get(method, self.explained.get(method, ""))
        return f"{method}: {does}" if does else method

    def _notes(self) -> list[str]:
        return [
            "A proved number holds for all people who keep to what is promised; an exact one does, and for some people "
            "one fewer would not. A simulated one was found with made-up people, and holds for people like them: at "
            "all points that were looked at, what was needed lay in the range that is given. The lines of the picture "
            "are of the same kinds."
        ]

    def _least(self) -> str:
        if self.least is None:
            return f"No such number is known here: {self.no_bound}."
        more = ""
        if self.best is not None and self.best.basis in ("proved", "exact"):
            more = f" The best method here needs {_beside(self.best.n_users, self.least)}."
        elif self.best is not None:
            more = " The number of the best method here is for people as they were simulated, and not for all."
        return (
            f"No method with this protection can do with fewer than {self.least:,} people, whoever invents it: that is "
            f"proved.{more} "
            f"This is about {self.least_for}."
        )


def plan(
    task: str,
    *,
    m: int = 1,
    epsilon: Epsilon,
    delta: Delta = 0,
    alpha: float | None = None,
    beta: float | None = None,
    n_users: int | None = None,
    **parameters: Any,
) -> Plan:
    """How many people a question needs, in words for readers, with all that the number rests on.

    Parameters
    ----------
    task, m, epsilon, delta, beta, **parameters
        As for `user_complexity`.
    alpha : float, optional
        The accuracy, for tasks that have one. With n_users it may be left out: the plan is then for the best accuracy,
        within 5 %, that so many people are enough for.
    n_users : int, optional
        How many people there are, from 2 to 2**32.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError, TypeError
        For unknown tasks and bad numbers, by name. That nothing can be planned is no error: the plan says why.

    Examples
    --------
    >>> made = plan("selection", epsilon=1, alpha=0.5, n_items=100, n_users=40)
    >>> made.enough, made.best.n_users <= 40
    (True, True)
    """
    kind = task_of(task)
    there = None if n_users is None else users_there(n_users)
    given: dict[str, Any] = {"m": m, "epsilon": epsilon, "delta": delta, "beta": beta}
    wanted: Any = alpha
    if alpha is None and there is not None and kind.has_alpha:
        found = accuracy_reached(task, n_users=there, **given, **parameters)
        if found.value is None:
            raise ValueError(f"n_users={there} are not enough for any alpha; give alpha for a plan that says why")
        wanted = found.value
    problem = kind.problem(**given, alpha=wanted, values=parameters)
    taken = fewest(ways_of(kind, problem), problem)
    best = None if taken is None else sized(kind, problem, taken)
    least, no_bound, least_for = bound_of(problem)
    reached = Answer("alpha", None, None, there or 0, (0, 0))
    if there is not None and best is not None and kind.has_alpha:
        reached = _reached(kind, problem, there, best.method)
    return Plan(
        task=task,
        question=kind.question,
        measure=measure_of(kind, problem),
        sizes=problem.sizes,
        n_users=there,
        best=best,
        ways=compare_methods(task, **given, alpha=wanted, **parameters),
        least=least,
        no_bound=no_bound,
        least_for=least_for,
        reached=reached.value,
        reached_kind="" if reached.plan is None else reached.plan.basis,
        changes=() if best is None else tuple(_changes(kind, problem, best)),
        lines={} if best is None else _lines(kind, problem, best),
        explained=_explained(kind),
        typical=kind.accuracy != "probability",
    )


def _reached(task: Task, problem: Problem, n_users: int, method: str) -> Answer:
    """The least accuracy, within 5 %, that so many people are enough for: by one method."""
    top = min(task.largest_alpha * (1 - 1e-9), max(problem.alpha, 2 * task.scale(problem)))
    return least_value(task, problem, method, n_users, "alpha", (top * 1e-6, top), float, NEARLY)


def _changes(task: Task, problem: Problem, best: SampleSize) -> Sequence[Change]:
    """What would halve the people of the best method."""
    half = max(1, best.n_users // 2)

    def search(name: str, start: float, most: float, make: Callable[[float], Any]) -> tuple[float, SampleSize] | None:
        end = min(most, start * 2**DOUBLINGS)
        if end <= start:
            return None
        found = least_value(task, problem, best.method, half, name, (start, end), make, NEARLY)
        return None if found.value is None or found.plan is None else (float(found.value), found.plan)

    changes = []

    def add(name: str, found: tuple[float, SampleSize] | None, text: str) -> None:
        value, users, basis = (None, None, "") if found is None else (found[0], found[1].n_users, found[1].basis)
        changes.append(Change(name, value, users, f"{text} ({basis})" if basis else text, basis))

    m, epsilon = problem.m, problem.rate
    found = search("m", m, MOST_RECORDS, lambda value: math.ceil(value - 1e-9))
    text = (
        f"About {found[0]:,.0f} records of each person, in place of {m:,}."
        if found
        else "More records of each person: no number that was tried halves it."
    )
    add("m", found, text)
    found = search("epsilon", epsilon, MOST_EPSILON, lambda value: Fraction(f"{value:.3g}"))
    text = (
        f"Weaker protection: epsilon about {found[0]:.3g}, in place of {epsilon:.3g}. The chance of a result then "
        f"changes by a factor of up to {rounded(math.exp(found[0]))}, in place of {rounded(math.exp(epsilon))}."
        if found
        else f"Weaker protection: no epsilon up to {MOST_EPSILON} halves it."
    )
    add("epsilon", found, text)
    if not math.isnan(problem.alpha):
        most = task.largest_alpha * 0.999 if math.isfinite(task.largest_alpha) else problem.alpha * 2**DOUBLINGS
        found = search("alpha", problem.alpha, most, lambda value: float(f"{value:.3g}"))
        text = (
            f"A coarser answer: accuracy about {found[0]:.3g}, in place of {problem.alpha:.3g}."
            if found
            else "A coarser answer: no accuracy that has a meaning halves it."
        )
        add("alpha", found, text)
    for parameter in task.parameters:
        if parameter.default is False and problem[parameter.name] is False:
            asked = problem.at(**{parameter.name: True})
            way = fewest(ways_of(task, asked), asked)
            if way is not None and way.number is not None and way.number[0] < best.n_users:
                users, basis = way.number
                halves = "halves it" if users <= half else "helps, and does not halve it"
                text = f"{parameter.what[0].upper()}{parameter.what[1:]}. This {halves}: {users:,} people ({basis})."
                changes.append(Change(parameter.name, None, users, text, basis))
    return changes


def _lines(task: Task, problem: Problem, best: SampleSize) -> dict[str, tuple[tuple[int, int, str], ...]]:
    """People needed against records of each, by the best method and by the usual ways."""
    names = [best.method, *(way.name for way in task.methods if way.baseline and way.name != best.method)]
    lines: dict[str, tuple[tuple[int, int, str], ...]] = {}
    for name in names:
        points: list[tuple[int, int, str]] = []
        for m in sorted({*DRAWN, problem.m}):
            asked = problem.at(m=m)
            found = chosen(figures(task.method(name), task, asked), least_for_all(asked))
            if found is not None:
                points.append((m, *found))
        lines[name] = tuple(points)
    return lines


def _explained(task: Task) -> dict[str, str]:
    """What each public number is, in plain words."""
    accuracy = f"accuracy (alpha): {task.measure}"
    common = {
        "m": "records of each person (m)",
        "epsilon": "strength of the protection (epsilon): smaller is stronger",
        "delta": "chance that the protection may fail (delta)",
        "alpha": accuracy,
        "beta": "chance that the accuracy may be missed (beta)",
    }
    common |= {each.name: f"{each.what} ({each.name})" for each in task.parameters}
    promises = {f"{each.name}=True": each.what.removeprefix("a promise: ") for each in task.parameters}
    return common | promises | {way.name: way.runs for way in task.methods if not way.baseline}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return rounded(value) if isinstance(value, float) else str(value)


def _chance(delta: float) -> str:
    return f"1 in {1 / delta:,.0f}" if 1e-15 < delta < 0.01 else rounded(delta)


def _beside(users: int, least: int) -> str:
    if users == least:
        return "just as many"
    ratio = users / least
    return f"{ratio:.3g} times as many" if ratio >= 1.05 else f"{users - least:,} more"


def _basis(best: SampleSize) -> str:
    if best.basis in ("proved", "exact"):
        return f"{'a proof' if best.basis == 'proved' else 'an exact calculation'}: {best.proved.source}"
    wide = f"{100 * (best.calibrated.error or 0):.0f} %"
    if best.basis == "extrapolated":
        return f"a simulation of other numbers, {best.calibrated.source}; {wide} were added"
    low, high = best.calibrated.range or (0, 0)
    return f"a simulation: {best.calibrated.source}; it was off by up to {wide}: from {low:,} to {high:,} people"
