"""User-level scores over finite lists of hypotheses, one user and one pair at a time, in exact rationals.

A user is a sequence of rows (point, label), a hypothesis a mapping from points to labels, a distribution one from
symbols to masses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Hypothesis = Mapping[Any, int]
User = Sequence[tuple[Any, int]]
Number = int | Fraction


def scaled(wrong: int, rows: int, m: int) -> int:
    """The count of a user with `wrong` mistakes in `rows` rows, as if they were m: rounded up."""
    return 0 if rows == 0 else math.ceil(Fraction(wrong * m, rows))


def mistakes(user: User, h: Hypothesis, m: int) -> int:
    """Scaled."""
    return scaled(sum(h[point] != label for point, label in user), len(user), m)


def disagreements(user: User, c: Hypothesis, h: Hypothesis, m: int) -> int:
    """Scaled."""
    return scaled(sum(c[point] != h[point] for point, _ in user), len(user), m)


def errors_above(users: Iterable[User], h: Hypothesis, t: int, m: int) -> int:
    return sum(mistakes(user, h, m) > t for user in users)


def disagreements_above(users: Iterable[User], c: Hypothesis, h: Hypothesis, s: int, m: int) -> int:
    return sum(disagreements(user, c, h, m) > s for user in users)


def surrogate(users: Sequence[User], h: Hypothesis, concepts: Iterable[Hypothesis], t: int, s: int, m: int) -> int:
    return min(errors_above(users, c, t, m) + disagreements_above(users, c, h, s, m) for c in concepts)


def clip(value: Number, tau: Number) -> Number:
    return min(max(value, -tau), tau)


def pairwise(users: Sequence[Any], size: int, sums: Callable[[int, int, Any], Number], tau: Number) -> list[Number]:
    """The largest sum of clipped `sums(a, b, user)` over b != a, for every a; 0 if there is no b."""
    return [
        max((sum(clip(sums(a, b, user), tau) for user in users) for b in range(size) if b != a), default=0)
        for a in range(size)
    ]


def clipped_pairwise(counts: Sequence[Sequence[int]], tau: int) -> list[Number]:
    """From counts[candidate][user]."""
    rows = [[int(count) for count in row] for row in counts]

    def total(a: int, b: int) -> int:
        changes = (x - y for x, y in zip(rows[a], rows[b], strict=True))
        return sum(-tau if change < -tau else tau if change > tau else change for change in changes)

    return [max((total(a, b) for b in range(len(rows)) if b != a), default=0) for a in range(len(rows))]


def by_table(psi: Any, users: Sequence[Sequence[int]], tau: int) -> list[Number]:
    """From psi[a][b][point] and the points of every user."""
    return pairwise(users, len(psi), lambda a, b, user: sum(int(psi[a][b][point]) for point in user), tau)


def scheffe(
    pmfs: Sequence[Mapping[Hashable, Number]], users: Sequence[Sequence[Hashable]], tau: Number
) -> list[Number]:
    """The mass that a gives to where it gives more than b, less 1 for each of a user's symbols there."""

    def sums(a: int, b: int, user: Sequence[Hashable]) -> Number:
        where = {symbol for symbol, mass in pmfs[a].items() if mass > pmfs[b][symbol]}
        inside = sum(mass for symbol, mass in pmfs[a].items() if symbol in where)
        return sum((inside - (symbol in where) for symbol in user), Fraction(0))

    return pairwise(users, len(pmfs), sums, tau)
