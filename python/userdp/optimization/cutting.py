"""Whether long vectors of users may be cut: a radius that is searched for, and at most two released looks at it.

The search finds a radius beyond which few users are. A look releases how many there are, with noise, and only if these
are worth less than the noise of not cutting are vectors cut to it. Sensitivities and the loss: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import open_unit_interval
from userdp.means.range_search import power_of_two_below
from userdp.optimization.moments import MomentProblem, QuantileSearch, needed_users

if TYPE_CHECKING:
    from userdp.means.gaussian_account import GaussianAccount
    from userdp.mechanisms import DiscreteGaussian
    from userdp.mechanisms.composed import Sampler
    from userdp.users.vectors import UserVectors

PER_OCTAVE = 4
"""Candidates for the radius."""
LOOKS = 2
"""At most, at the radius that is found and at twice it."""
WIDE = 0.5
"""A radius above this part of the longest vector is none: nobody is cut then."""
SEARCHED = 0.25
"""Of the users whom the noise of not cutting is worth, beyond the radius that is searched for; one user at least."""
ACCEPTED, DEVIATIONS = 0.3, 1.3
"""A look accepts so many of these users, and so many standard deviations of its noise more."""

Drawn: TypeAlias = "tuple[int, tuple[int, ...]]"
"""A candidate, and what looks released."""


@saved_as_parameter
@dataclass(frozen=True)
class TargetClipping:
    """How far users' targets were cut, from one released number with noise.

    Attributes
    ----------
    radius : float
        The length to which a user's mean of features, in the units that were found, times target is cut; in units of
        targets.
    longest : float
        What it could be at most.
    users : float
        How many users were cut, with noise: one who lost half of the radius counts as a half, and nobody as more than
        one. May be negative.
    deviation : float
        The standard deviation of that noise.
    n_users : int
        Of all, public.
    rounding : float
        What rounding may have hidden, in users.
    """

    radius: float
    longest: float
    users: float
    deviation: float
    n_users: int
    rounding: float

    def users_at_most(self, level: float = 0.95) -> float:
        """What `users` is without noise, at most, with a probability of at least `level`, in (0, 1), over the noise.

        More users may be cut, who lose little each.
        """
        # One of two looks is reported because it passed: each may fail with half of what is left.
        return self._at_most((1 - open_unit_interval(level, "level")) / LOOKS)

    def moved_at_most(self, level: float = 0.95) -> float:
        """How far cutting moved the mean over users at most, an L2 distance in units of targets, in the same sense."""
        return self.bias((1 - open_unit_interval(level, "level")) / LOOKS)

    def _at_most(self, failure: float) -> float:
        return max(self.users, 0.0) - NormalDist().inv_cdf(failure) * self.deviation + self.rounding

    def bias(self, failure: float) -> float:
        """How far cutting moved the mean at most, where the look that is reported may fail with this probability."""
        # A user who counts as t lost t r up to twice the radius, and at most longest - r beyond.
        return max(self.radius, self.longest - self.radius) * self._at_most(failure) / self.n_users

    @property
    def share(self) -> float:
        """`users` over the number of all users."""
        return self.users / self.n_users

    def in_units(self, unit: float) -> TargetClipping:
        """The same for lengths in other units."""
        return replace(self, radius=self.radius * unit, longest=self.longest * unit)


@dataclass(frozen=True)
class Look:
    """A count of users beyond a radius: one who is beyond by half of it is a half, and nobody more than one."""

    # A user adds min(max(q - r, 0), r) / 2, q the length rounded up, in steps: an integer from 0 to `half`, and so
    # replacing a user moves the count by `half` at most.

    half: int  # half of the radius, in steps of the grid
    grid: float
    threshold: int  # what is accepted, in steps
    part: GaussianAccount

    @property
    def radius(self) -> float:
        """Where vectors would be cut."""
        return 2 * self.half * self.grid

    @property
    def noise(self) -> DiscreteGaussian:
        """Of the count."""
        return self.part.noise(self.half)

    def statistic(self, vectors: UserVectors) -> int:
        """The count, without noise: `half` is one user."""
        # Who is beyond twice the radius counts as if there.
        _, beyond = vectors.clipping_excess(0.0, self.half * self.grid, 2 * self.radius, self.grid, 1)
        return int(beyond[0])


@dataclass(frozen=True)
class Verdict:
    """What a search and its looks come to."""

    found: float  # the radius that was searched for
    looks: int
    left: Fraction  # of the account
    clipping: TargetClipping | None  # None where nobody is to be cut

    @property
    def refused(self) -> bool:
        """Whether looks were taken, and none accepted."""
        return self.looks > 0 and self.clipping is None


class CuttingTest:
    """One search and at most two looks, from a part of an account."""

    # Shares are taken from `left` before anything is drawn with them: on every path they sum to what was there.

    def __init__(
        self,
        problem: MomentProblem,
        account: GaussianAccount,
        left: Fraction,
        *,
        search: Fraction,
        look: Fraction,
        enough: float = 0.0,
    ) -> None:
        self.problem, self.look, self.enough = problem, look, enough
        self.left = left - search
        self._look_part = account.part(look)
        self.users = worth_of_noise(problem.dimension, account.part(self.left))
        candidates = np.exp2(-np.arange(problem.length_steps)[::-1] / PER_OCTAVE)
        needed = needed_users(problem.n_users, max(SEARCHED * self.users, 1.0))
        self.search = QuantileSearch(problem.n_users, candidates, needed, account.part(search).search_epsilon(), 1.0)

    def looks(self, longest: float, index: int) -> list[Look]:
        """The looks that are taken one after the other, until one accepts."""
        found = float(self.search.candidates[index])
        # Where the noise of not cutting is small beside what is found, nothing is asked.
        if self.users / self.problem.n_users <= self.enough * found / math.sqrt(self.problem.dimension):
            return []
        return [self._look(found * 2**k * longest) for k in range(LOOKS) if found * 2**k <= WIDE]

    def _look(self, radius: float) -> Look:
        grid = power_of_two_below(radius / self.problem.grid_resolution)
        half = math.floor(radius / (2 * grid))
        most = ACCEPTED * self.users + DEVIATIONS / self._look_part.mu
        return Look(half, grid, math.floor(most * half), self._look_part)

    def drawn(self, vectors: UserVectors, longest: float, draw: Sampler) -> Drawn:
        """A candidate, and what looks release; no vector is longer than `longest`, which is public or released."""
        vectors = vectors.filled()  # users without rows are within all candidates
        counts = vectors.counts_within(0.0, self.search.candidates * longest)
        index = self.search.drawn(counts, draw)
        released: list[int] = []
        for look in self.looks(longest, index):
            released.append(draw(look.noise, look.statistic(vectors)))
            if released[-1] <= look.threshold:
                break
        return index, tuple(released)

    def verdict(self, longest: float, drawn: Drawn) -> Verdict:
        """Whether to cut, and where."""
        index, released = drawn
        found, clipping = float(self.search.candidates[index]) * longest, None
        for look, count in zip(self.looks(longest, index), released, strict=False):
            if count <= look.threshold:
                deviation = math.sqrt(look.noise.sigma_squared) / look.half
                n_users = self.problem.n_users
                # Every vector and its length are rounded to steps: docs/proofs/combined_mean.md.
                rounding = (1 + n_users * (math.sqrt(self.problem.dimension) + 2)) / look.half
                clipping = TargetClipping(look.radius, longest, count / look.half, deviation, n_users, rounding)
        return Verdict(found, len(released), self.left - len(released) * self.look, clipping)

    def outcomes(self, longest: float) -> Iterator[Drawn]:
        """All that can be drawn."""
        for index in range(len(self.search.candidates)):
            before: list[tuple[int, ...]] = [()]
            looks = self.looks(longest, index)
            if not looks:
                yield index, ()
            for number, look in enumerate(looks):
                support = look.noise.support
                every = range(-support, self.problem.n_users * look.half + support + 1)
                for path, count in product(before, every):
                    if count <= look.threshold or number == len(looks) - 1:
                        yield index, (*path, count)
                before = [(*path, count) for path, count in product(before, every) if count > look.threshold]


def worth_of_noise(dimension: int, account: GaussianAccount) -> float:
    """How many users with the longest vector are worth the noise in the mean of vectors that nobody cuts."""
    return 2 * math.sqrt(dimension) / account.mu
