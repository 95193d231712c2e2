"""Stability when one user is kept, of more than a grid of all sets can hold: r* as a smallest vertex cover.

S is stable exactly when it meets every pair of users who are incompatible as the one that is kept. S is then one
smallest cover, whatever larger size was drawn: the privacy proof needs |S| <= R1 only, and no rule for choosing S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp import _core
from userdp.delstab.compatibility import InnerPmfs
from userdp.delstab.stable_sets import Distribution
from userdp.exact.pmf import ExactMasses, distinct_masses


@dataclass(frozen=True)
class CoverStability:
    """A smallest stable set of one dataset, by the users that it leaves."""

    smallest: int | None  # Its size; None if it exceeds the limit
    pmfs: list[ExactMasses]  # on each of the users that it leaves

    def distribution(self, mixture: Sequence[int], total: int) -> Distribution:
        """The distribution of the release, when |S| = r with probability mixture[r] / total."""
        released = Fraction(sum(mixture), total) / len(self.pmfs)
        sums = [sum((Fraction(w[o], t) for w, t in self.pmfs), Fraction(0)) for o in range(len(self.pmfs[0][0]))]
        scaled = [released * mass for mass in sums]
        scale = math.lcm(*(mass.denominator for mass in scaled))
        return [int(mass * scale) for mass in scaled], scale

    def draw(self, size: int, source: _core.Source) -> list[Any]:
        """Draw one of the users that are left; its distribution."""
        weights, total = self.pmfs[int(source.below(len(self.pmfs)))]
        return [Fraction(weight, total) for weight in weights]


def covering(pmfs: Sequence[ExactMasses | None], limit: int, inner: InnerPmfs) -> CoverStability:
    """Find a smallest stable set."""
    groups: dict[Any, list[int]] = {}
    for user, pmf in enumerate(pmfs):
        groups.setdefault(None if pmf is None else distinct_masses(pmf), []).append(user)
    users = {key: sum(1 << user for user in members) for key, members in groups.items()}
    apart = [0] * len(pmfs)
    # With itself too: a declared pmf_error may leave even equal masses apart.
    for a, b in itertools.combinations_with_replacement(groups, 2):
        first, second = pmfs[groups[a][0]], pmfs[groups[b][0]]
        if first is None or second is None:
            alike = not (first is None and second is None) and a != b  # those who fail are in every cover anyway
        else:
            alike = _core.is_indistinguishable(first, second, inner.level, inner.delta)[0]
        if not alike:
            for user in groups[a]:
                apart[user] |= users[b]
            for user in groups[b]:
                apart[user] |= users[a]
    cover = smallest_cover(apart, limit)
    if cover is None:
        return CoverStability(None, [])
    return CoverStability(cover.bit_count(), [pmf for user, pmf in enumerate(pmfs) if not cover >> user & 1 and pmf])


def most_steps(limit: int) -> int:
    """How many steps `smallest_cover` takes at most, for any graph."""
    # A step with room for k more vertices leads to one with room for k - 1 and one for k - 3 at most.
    steps = [1, 1, 1]
    for _ in range(limit + 1):
        steps.append(1 + steps[-1] + steps[-3])
    return sum(steps[3:])


def smallest_cover(apart: Sequence[int], limit: int) -> int | None:
    """A smallest set of at most `limit` vertices that meets every edge, or None, as bits."""
    loops = sum(1 << vertex for vertex, others in enumerate(apart) if others >> vertex & 1)
    alive = ((1 << len(apart)) - 1) & ~loops
    for room in range(limit - loops.bit_count() + 1):
        cover = _cover(apart, alive, room)
        if cover is not None:
            return cover | loops
    return None


def _cover(apart: Sequence[int], alive: int, room: int) -> int | None:
    """A cover, of at most `room` vertices, of the edges within `alive`."""
    cover = 0
    while True:
        degrees = [((apart[vertex] & alive).bit_count(), -vertex) for vertex in _members(alive)]
        ones = [-place for degree, place in degrees if degree == 1]
        most, place = max(degrees, default=(0, 0))
        if most == 0:
            return cover if room >= 0 else None
        if sum(degree for degree, _ in degrees) > 2 * most * room:
            return None
        if ones:
            taken = apart[ones[0]] & alive  # as good as the vertex itself
        elif most == 2:
            taken = 1 << -place  # in a circle all vertices are equal
        else:
            break
        cover, alive, room = cover | taken, alive & ~taken, room - 1
    vertex, others = 1 << -place, apart[-place] & alive
    for taken in (vertex, others):
        members = _cover(apart, alive & ~taken, room - taken.bit_count())
        if members is not None:
            return cover | taken | members
    return None


def _members(vertices: int) -> list[int]:
    members = []
    while vertices:
        lowest = vertices & -vertices
        members.append(lowest.bit_length() - 1)
        vertices ^= lowest
    return members
