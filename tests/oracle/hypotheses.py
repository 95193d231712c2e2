"""Scores of hypotheses on users' examples, counted as they are defined.

A hypothesis is a dict from points to 0 or 1. A dataset is a sequence of users, a user one of pairs (point, label).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil

Hypothesis = Mapping[int, int]
User = Sequence[tuple[int, int]]


def mistakes(h: Hypothesis, user: User) -> int:
    return sum(1 for x, y in user if h[x] != y)


def at_rate(wrong: int, rows: int, m: int) -> int:
    """So many mistakes in so many rows, as mistakes in m."""
    return ceil(Fraction(wrong * m, rows)) if rows else 0


def errors_above(h: Hypothesis, users: Sequence[User], t: int, m: int) -> int:
    return sum(1 for user in users if at_rate(mistakes(h, user), len(user), m) > t)


def disagreements_above(c: Hypothesis, h: Hypothesis, users: Sequence[User], s: int, m: int) -> int:
    return sum(1 for user in users if at_rate(sum(1 for x, _ in user if c[x] != h[x]), len(user), m) > s)


def any_error(h: Hypothesis, users: Sequence[User], first: int) -> int:
    return sum(1 for user in users if any(h[x] != y for x, y in user[:first]))


def clipped_pairwise(hypotheses: Sequence[Hypothesis], users: Sequence[User], tau: int) -> list[int]:
    def against(a: Hypothesis, b: Hypothesis) -> int:
        return sum(max(-tau, min(tau, mistakes(a, user) - mistakes(b, user))) for user in users)

    return [
        max(against(a, b) for other, b in enumerate(hypotheses) if other != this) for this, a in enumerate(hypotheses)
    ]


def surrogate(
    concepts: Sequence[Hypothesis], h: Hypothesis, users: Sequence[User], t: int, s: int, m: int
) -> tuple[list[int], list[int]]:
    """Both counts for each concept; the score is the least sum."""
    errors = [errors_above(c, users, t, m) for c in concepts]
    return errors, [disagreements_above(c, h, users, s, m) for c in concepts]


def surrogate_score(concepts: Sequence[Hypothesis], h: Hypothesis, users: Sequence[User], t: int, m: int) -> int:
    return min(map(sum, zip(*surrogate(concepts, h, users, t, 0, m), strict=True)))
