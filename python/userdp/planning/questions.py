"""The inverse questions: which accuracy, how many records of each or which epsilon so many users are enough for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.display import Fact, Section, Shown
from userdp.display.numbers import rounded
from userdp.exact.numbers import Delta, Epsilon, short_repr
from userdp.planning.problem import MOST_USERS, Method, NotPlanned, Problem, Task, records_there, users_there
from userdp.planning.sample_size import (
    NEAR,
    SampleSize,
    calibrated_figure,
    chosen,
    figures,
    least_for_all,
    sample_size,
    sure_of,
)
from userdp.planning.tasks import task_of

STEPS_PER_DECADE = 4
DIGITS = 2e-3
"""How closely answers are found, relatively."""


@dataclass(frozen=True)
class Answer(Shown):
    """The answer to an inverse question; made by `accuracy_reached`, `records_needed` and `epsilon_needed`.

    Attributes
    ----------
    quantity : {"alpha", "m", "epsilon"}
    value : float or int or None
        The least one with which the users are enough; None where none of those looked at is.
    plan : SampleSize or None
        The plan for it, which says by which method and what it rests on.
    n_users : int
    looked_at : tuple of float
        The least and the largest value that were looked at.
    reason : str
        Why there is no value.
    """

    quantity: str
    value: float | int | None
    plan: SampleSize | None
    n_users: int
    looked_at: tuple[float, float]
    reason: str = ""

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        found = {} if self.plan is None else dict(self.plan._rows()[0])
        return [
            {"quantity": self.quantity, "value": self.value, "of_users": self.n_users, "reason": self.reason} | found
        ]

    def _sections(self) -> Sequence[Section]:
        basis = "" if self.plan is None else f" ({self.plan.basis})"
        text = self.reason if self.value is None else f"{rounded(self.value)}{basis}"
        answer = Fact(f"Least {self.quantity}", text)
        facts = [answer, Fact("Users", f"{self.n_users:,}")]
        if self.plan is not None:
            facts += [Fact("Method", self.plan.method), Fact("Basis", self.plan.basis)]
        return [Section(f"What {self.n_users:,} users are enough for", facts=[("", facts)], headline=[answer])]


def accuracy_reached(
    task: str,
    *,
    n_users: int,
    method: str = "auto",
    m: int,
    epsilon: Epsilon,
    delta: Delta = 0,
    beta: float | None = None,
    **parameters: Any,
) -> Answer:
    """The least alpha for which so many users are enough.

    Parameters
    ----------
    task, method, m, epsilon, delta, beta, **parameters
        As for `user_complexity`.
    n_users : int
        From 2 to 2**32.

    Returns
    -------
    Answer
        Its value is within two thousandths of the least one, in a range whose plans say what they rest on.

    Raises
    ------
    ValueError
        As `user_complexity`, but that a number is missing is the answer's reason.

    Examples
    --------
    >>> answer = accuracy_reached("mean", n_users=735, method="laplace", m=16, epsilon=1, homogeneous=True)
    >>> round(answer.value, 4), answer.plan.n_users
    (0.01, 734)
    """
    kind, users = task_of(task), users_there(n_users)
    if not kind.has_alpha:
        raise ValueError(f"task {task!r} has no accuracy of its own: that is the algorithm's")
    first = kind.problem(
        m=m, epsilon=epsilon, delta=delta, alpha=min(1.0, kind.largest_alpha) / 2, beta=beta, values=parameters
    )
    top = min(kind.largest_alpha * (1 - 1e-9), 2 * kind.scale(first))
    return least_value(kind, first, method, users, "alpha", (top * 1e-6, top), float)


def records_needed(
    task: str,
    *,
    n_users: int,
    method: str = "auto",
    epsilon: Epsilon,
    delta: Delta = 0,
    alpha: float | None = None,
    beta: float | None = None,
    most: int = 2**20,
    **parameters: Any,
) -> Answer:
    """The least m, records of each user, for which so many users are enough.

    Parameters
    ----------
    task, method, epsilon, delta, alpha, beta, **parameters
        As for `user_complexity`.
    n_users : int
        From 2 to 2**32.
    most : int
        The largest m to look at.

    Returns
    -------
    Answer
        With no value where no number of records helps: with few users none does.

    Examples
    --------
    >>> records_needed("mean", n_users=1000, method="laplace", epsilon=1, alpha=0.01, homogeneous=True).value
    11
    """
    kind, users = task_of(task), users_there(n_users)
    largest = records_there(most, "most")
    first = kind.problem(m=1, epsilon=epsilon, delta=delta, alpha=alpha, beta=beta, values=parameters)
    return least_value(kind, first, method, users, "m", (1, largest), round)


def epsilon_needed(
    task: str,
    *,
    n_users: int,
    method: str = "auto",
    m: int,
    delta: Delta = 0,
    alpha: float | None = None,
    beta: float | None = None,
    most: float = 16,
    **parameters: Any,
) -> Answer:
    """The least epsilon, down to 0.01, for which so many users are enough.

    Parameters
    ----------
    task, method, m, delta, alpha, beta, **parameters
        As for `user_complexity`.
    n_users : int
        From 2 to 2**32.
    most : float
        The largest epsilon to look at, from 0.01 on.

    Returns
    -------
    Answer

    Examples
    --------
    >>> answer = epsilon_needed("mean", n_users=1000, method="laplace", m=16, alpha=0.01, homogeneous=True)
    >>> round(answer.value, 2)
    0.46
    """
    kind, users = task_of(task), users_there(n_users)
    if isinstance(most, bool) or not isinstance(most, (int, float)) or not 0.01 <= most < math.inf:
        raise ValueError(f"most must be a number from 0.01 on; got {short_repr(most)}")
    first = kind.problem(m=m, epsilon=1, delta=delta, alpha=alpha, beta=beta, values=parameters)
    return least_value(kind, first, method, users, "epsilon", (0.01, float(most)), Fraction)


def least_value(
    task: Task,
    problem: Problem,
    method: str,
    n_users: int,
    quantity: str,
    span: tuple[float, float],
    make: Callable[[float], Any],
    digits: float = DIGITS,
) -> Answer:
    """The least value with which the users are enough: by steps over the range, and by halving between two of them."""
    # More records, a larger epsilon and a larger alpha are taken to need no more users. A number may be known for a
    # part of the range only; and where a method loses by more records, a smaller m between two steps may be passed by.
    if method != "auto":
        named = task.method(method)
        if not named.kept(problem):
            raise TypeError(f"method={method!r} needs a promise of how users are: {named.needs(problem)}")
    ways = [way for way in task.methods if way.protects == "user" and way.kept(problem)]
    ways = [way for way in ways if method in ("auto", way.name)]
    why: list[str] = []

    def enough(value: Any) -> Method | None:
        """The first method for which the users are enough."""
        asked = problem.at(**{quantity: value})
        for way in ways:
            if _is_enough(way, task, asked, n_users, why):
                return way
        return None

    low, high = span
    steps = max(1, math.ceil(STEPS_PER_DECADE * math.log10(high / low))) if high > low else 0
    values = sorted({make(low * (high / low) ** (step / max(steps, 1))) for step in range(steps + 1)})
    before: Any = None
    found: tuple[Any, Method] | None = None
    # Small accuracies take long to plan, and are not looked at unless larger ones are reached.
    for value in reversed(values) if quantity == "alpha" else values:
        way = enough(value)
        if way is not None:
            found, before = (value, way), None if quantity == "alpha" else before
        else:
            before = value
        if found is not None and not (quantity == "alpha" and before is None):
            break
    if found is None:
        reason = f"not enough at any {quantity} looked at" + (f": {why[-1]}" if why else "")
        return Answer(quantity, None, None, n_users, span, reason)
    while before is not None and found[0] > before * (1 + digits) and found[0] - before > (1 if quantity == "m" else 0):
        middle = make(math.sqrt(float(before) * float(found[0])))
        if middle in (before, found[0]):
            middle = make((before + found[0]) / 2)
            if middle in (before, found[0]):
                break
        nearer = enough(middle)
        if nearer is None:
            before = middle
        else:
            found = (middle, nearer)
    least = found[0] if quantity == "m" else float(found[0])
    made = sample_size(task, problem.at(**{quantity: found[0]}), found[1].name)
    return Answer(quantity, least, made, n_users, span)


def _is_enough(way: Method, task: Task, problem: Problem, n_users: int, why: list[str]) -> bool:
    """Whether `chosen` would take at most so many users; without a search for the proved number where it can be."""
    if way.too_few is not None and way.too_few(problem, n_users):
        why.append(f"more than {n_users:,} users are needed by {way.name}")
        return False
    least = least_for_all(problem)
    if way.reached is None:
        found = chosen(figures(way, task, problem), least)
    else:
        with suppress(NotPlanned):
            if way.reached(problem, n_users) <= problem.alpha:
                return True
        # More than n_users are proved. They are not taken where they are far more than the calibrated ones.
        found = sure_of(calibrated_figure(way, task, problem), least)
        with suppress(NotPlanned):
            if found is not None and way.reached(problem, min(NEAR * found[0], MOST_USERS)) <= problem.alpha:
                return False
    if found is None or found[0] <= n_users:
        return found is not None
    why.append(f"{found[0]:,} users are needed by {way.name}")
    return False
