"""What a check may cost, counted before it is done, so that no report keeps its reader busy.

Steps are nanoseconds on a slow processor, rounded up, and what is kept in memory costs more of them. Counts depend on
the report alone, so that a report is refused everywhere or nowhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

H = TypeVar("H", bound=Hashable)
SECONDS = 8.0
"""By count, for reading a report and checking it; docs/report-format.md promises 10 of a processor."""
KEPT = 1000
"""Steps for an object that is kept: about 100 bytes, so that a second of them is 100 MB."""

_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


class Problem(ValueError):
    """A defect that leaves nothing more to check."""


class TooMuch(Problem):
    """A report that takes longer to check than is allowed: nothing is said about whether it is right."""


@contextmanager
def at_most(seconds: float | None = None) -> Iterator[None]:
    """Allow what is read and checked inside so many seconds by count; by default what is allowed already, or `SECONDS`.

    Parameters
    ----------
    seconds : float, optional
        Above 0.
    """
    if seconds is None and _left.get() is not None:
        yield
        return
    token = _left.set([1e9 * (SECONDS if seconds is None else seconds)])
    try:
        yield
    finally:
        _left.reset(token)


def spend(steps: float, cure: str = "") -> None:
    """Count steps before they are done; `TooMuch` if they are more than are left."""
    left = _left.get()
    if left is None:
        return
    left[0] -= steps
    if left[0] < 0:
        more = "userdp verify --seconds, or userdp.checker.work.at_most around it, allows more"
        raise TooMuch(f"the report takes too long to be checked, by count; {cure + ', and ' if cure else ''}{more}")


def afford(condition: bool, problem: str) -> None:
    """Raise `TooMuch` unless a size is one that is checked."""
    if not condition:
        raise TooMuch(problem)


def product(bits: int, other: int | None = None) -> float:
    """Steps of multiplying, dividing or comparing integers of so many bits."""
    return 100 + bits * (bits if other is None else other) / 1000


def spread(items: Iterable[H]) -> set[H]:
    """A set of different items, which somebody may have chosen to have one hash: that makes a set slow."""
    listed = list(items)
    spend(50 * sum(times * times for times in Counter(map(hash, listed)).values()))
    return set(listed)
