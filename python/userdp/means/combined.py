"""The tested mean: clipped about a center that is found, if released tests say that clipping moves the mean by little.

First the public plan, then what is released (sums, second moments, tests), the run that decides between them, and the
method. See docs/proofs/combined_mean.md.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import Budget
from userdp.estimators.saving import saved_as_parameter
from userdp.exact.numbers import COUNTED, counted
from userdp.means.accuracy import NODES, Accuracy, BiasOfSize, ClippingBias, NoiseTerm
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.iterated import LEAST_RESOLUTION, GaussianRounds, planned_rounds
from userdp.means.problem import LEAST_CONCENTRATION, Floats, MeanMethod, MeanProblem
from userdp.mechanisms import DiscreteGaussian, ExponentialMechanism
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

MOST_ROUNDS = 6
"""Before the last release."""

SHARES = tuple(Fraction(share, 1000) for share in (2, 4, 8, 15, 25, 40, 60, 80, 100, 120, 150, 200))
"""What a round may spend."""
ROUNDS_AT_ONCE = 3
"""After the first one, in one plan."""
LEAST_AT_THE_END = Fraction(3, 10)
COST_OF_A_ROUND = 0.02
"""Which the predicted error must gain by a round more."""
KAPPAS = (1.1, 1.5)
"""The least and the largest ratio of the radius to the distance expected of a user from the center."""

SHARE_OF_SQUARES = Fraction(1, 20)
"""The part of a round's share that goes to the second moment."""
SURPRISE = 4.0
"""Standard deviations by which the second moment must exceed what was expected for the plan to be made anew."""
SATURATED = 0.7
"""The part of the largest second moment above which it says little: the radius is at least doubled."""

TAUS = (Fraction(50, 100), Fraction(47, 100))
"""What the first and the second test accept, in units of A users; see `CombinedMean.users`."""
LEAST_WEIGHT = 0.6
"""Of what a test looks at, relative to users at the other end."""
WIDE = 0.7
"""A radius from this part of the ball on is none: nobody is clipped then."""
WORTH_CLIPPING = 0.6
"""The most of the error of no clipping that a plan may predict."""

SEARCH_SHARE = Fraction(1, 100)
"""Spent on finding the spread where there is no hint, or less for many users."""
SEARCH_USERS = 300
"""A search need not tell fewer users apart than this over eight times its epsilon."""
QUANTILE = Fraction(9, 10)
"""Of the users' distances from the center, which is what is searched for."""
PER_DOUBLING = 16
"""Candidates for it."""
COST_OF_A_STEP = 0.35
"""Over epsilon, in users: what a candidate must gain on the one before it."""
PER_USER = 2**10
"""Steps of scores, so that costs can be whole numbers."""
LEAST_SPREAD = 0.2
"""Of the distance that was found: the least spread that is believed."""
LOWEST_HINT = 0.2
"""Of a hint: what second moments lower it to at most."""
UNKNOWN = 0.02
"""Of the ball: the spread for which the first round is planned without a hint."""
MOST_WHOLE_ERROR = 0.1
"""Without a hint, the most that noise for the whole range may be, of the ball."""

LEAST_RADIUS = 2.0**-16
"""Of the ball: the finest grid of a test, which has 2**30 steps for its diameter, has 2**11 steps in such a radius."""
RADIUS_BITS = 11
"""Radii have so many significant bits, and so are whole numbers of steps on all default grids."""
LEAST_RHO = 2.0**-32
"""Below it the variance of the noise of a grid of 2**31 steps might be out of range; no plan is worth it there."""
MOST_SQUARES = 2**30
"""The steps of a second moment."""

PURE_OR_NOT = 0.8
"""The most of the Laplace error in the whole range that the Gaussian error may be."""
LEAST_DIMENSION = 17
"""A test costs a share of the budget that grows as the dimension falls."""


def share_of_test(number: int, dimension: int) -> Fraction:
    """What the first (0) or the second test (1) spends: as much as its noise asks for, which grows as d falls."""
    part = (Fraction(7, 100), Fraction(10, 100))[number]
    return min(part * 64 / dimension, Fraction(12, 100))


def false_alarm(dimension: int) -> float:
    """How likely both tests refuse users of whom none is far, by their noise alone."""
    chance = 1.0
    for number, tau in enumerate(TAUS):
        chance *= NormalDist().cdf(-2 * float(tau) * math.sqrt(dimension * share_of_test(number, dimension)))
    return chance


def share_of_rounds(dimension: int) -> Fraction:
    """The most that rounds after the first spend, which is lost when tests fail: less where tests cost more."""
    return Fraction(12, 100) * max(min(Fraction(dimension, 64), Fraction(1)), Fraction(1, 4))


@dataclass(frozen=True)
class Moves:
    """Public numbers of the errors of a problem: everything that a plan needs."""

    n_users: int
    users: float  # A: how many users at the end of the ball move the mean by the noise of no clipping
    ball: float
    kappa: float
    search_share: Fraction = Fraction(0)  # spent after each round

    def error(self, radius: float, share: float) -> float:
        """The root mean square of the length of the noise of a round."""
        return self.users * radius / (self.n_users * math.sqrt(share))

    def radius(self, distance: float) -> float:
        """Where to clip users who are expected at this distance from the center."""
        return min(self.kappa * distance, 2 * self.ball)

    def plan(
        self, user_std: float, radius: float, left: Fraction, most: Fraction, rounds: int, first: bool
    ) -> tuple[float, tuple[Fraction, ...]]:
        """The predicted error of the last release and the shares of the rounds before it, for the least such error.

        `left` is for rounds and the last release, `most` for rounds other than the first, `rounds` their number.
        """
        best: tuple[float, tuple[Fraction, ...]] = (self.error(min(radius, self.ball), float(left)), ())
        for start in SHARES if first else (None,):
            for number in range(rounds + 1):
                for share in SHARES if number else (Fraction(0),):
                    shares = (*(() if start is None else (start,)), *[share] * number)
                    rest = left - sum(shares) - len(shares) * self.search_share
                    if number * (share + self.search_share) > most or not shares or rest < LEAST_AT_THE_END:
                        continue
                    clip = radius
                    for part in shares:
                        off = self.error(clip, float(part * (1 - SHARE_OF_SQUARES)))
                        clip = self.radius(math.hypot(user_std, off))
                    error = self.error(clip, float(rest)) * (1 + COST_OF_A_ROUND * len(shares))
                    best = min(best, (error, shares), key=lambda plan: plan[0])
        return best


class Release(ABC):
    """Integers of private data with noise, all other arguments public or released."""

    @abstractmethod
    def draw(self, draw: Sampler, vectors: UserVectors) -> tuple[int, ...]:
        """What is released."""

    @abstractmethod
    def possible(self) -> list[range]:
        """What each of the integers can be."""


@dataclass(frozen=True, eq=False)
class ClippedSum(Release):
    """The sum of vectors clipped to a ball."""

    # Replacing a user moves the sum by at most 2 reach in Euclidean length.

    center: Floats
    grid: float
    reach: int  # the radius, in steps of the grid
    n_users: int
    part: GaussianAccount  # for the sum

    @property
    def radius(self) -> float:
        """The radius of the ball."""
        return self.reach * self.grid

    @property
    def noise(self) -> DiscreteGaussian:
        """Of every coordinate."""
        return self.part.noise(2 * self.reach)

    def draw(self, draw: Sampler, vectors: UserVectors) -> tuple[int, ...]:
        sums = vectors.clipped_sum(self.center, self.radius, self.grid)
        return draw(self.noise, tuple(sums.tolist()))

    def possible(self) -> list[range]:
        largest = self.n_users * self.reach + self.noise.support
        return [range(-largest, largest + 1)] * len(self.center)

    def mean(self, released: tuple[int, ...]) -> Floats:
        """The center and the mean of clipped vectors from it, with noise."""
        sums = np.array(released[: len(self.center)], dtype=np.float64)
        return self.center + self.grid * (sums / self.n_users)

    @property
    def rounding(self) -> float:
        """The most that truncation moves a coordinate of the mean."""
        # A step for each user; and one more where rounding errors of a length left a vector too long for the integers:
        # then truncation had taken next to nothing from coordinates that are not small (see the proofs).
        slack = 2 * (len(self.center) / 32 + 16) * 2.0**-52 * self.reach**2
        return self.grid * (1 + min(1.0, slack))


@dataclass(frozen=True, eq=False)
class Round(ClippedSum):
    """The same, and the sum of squared distances from the center, cut at twice the radius."""

    # Replacing a user moves the second by at most `squares`.

    squares: int  # steps of the largest squared distance, that of twice the radius
    part_of_squares: GaussianAccount

    @property
    def noise_of_squares(self) -> DiscreteGaussian:
        """Of the second moment."""
        return self.part_of_squares.noise(self.squares)

    def moments(self, released: int, moved: float) -> tuple[float, float, float, float]:
        """What a released second moment says; `moved` is the squared distance from the center to the next one.

        The squared noise of the next center; the second moment about the old one; that about the next one, less its
        noise, which estimates the squared spread of users; and the standard deviation of this.
        """
        d, n, largest = len(self.center), self.n_users, (2 * self.radius) ** 2
        noise = d * largest / (2 * n * n * float(self.part.rho))
        second = released * (largest / self.squares) / n
        noise_of_second = largest / (n * math.sqrt(2 * float(self.part_of_squares.rho)))
        off = math.sqrt(noise_of_second**2 + (2 * noise**2 + 4 * max(moved - noise, 0.0) * noise) / d)
        return noise, second, second - moved + noise, off

    def draw(self, draw: Sampler, vectors: UserVectors) -> tuple[int, ...]:
        sums, second = vectors.clipped_moments(self.center, self.radius, self.grid, self.squares)
        return (*draw(self.noise, tuple(sums.tolist())), draw(self.noise_of_squares, second))

    def possible(self) -> list[range]:
        support = self.noise_of_squares.support
        return [*super().possible(), range(-support, self.n_users * self.squares + support + 1)]


@dataclass(frozen=True, eq=False)
class Look(Release):
    """A test of how much clipping would move the mean."""

    # What is released is the largest of several numbers that each move by at most `reach` when a user is replaced: the
    # length of a vector that moves by at most 2 reach, halved, and sums of which a user adds 0 to reach; all times
    # public weights of at most 1, rounded down. A floor of something that moves by at most a whole number moves by no
    # more than that.

    center: Floats
    grid: float
    reach: int  # the radius at which users would be clipped, in steps of the grid
    ball: float
    n_users: int
    threshold: int  # what is accepted, in steps
    part: GaussianAccount

    @property
    def radius(self) -> float:
        """Where users would be clipped."""
        return self.reach * self.grid

    @property
    def noise(self) -> DiscreteGaussian:
        """Of what is tested."""
        return self.part.noise(self.reach)

    @property
    def end(self) -> float:
        """More than the distance of any two points of the ball."""
        return 2.01 * self.ball

    @cached_property
    def rungs(self) -> int:
        """Distances 2, 4, .. radii, the last of which is the first that is not below that of the ball."""
        rungs = 1
        while math.ldexp(self.radius, rungs) < self.ball:
            rungs += 1
        return rungs

    @cached_property
    def weights(self) -> tuple[Fraction, ...]:
        """Of what is within two radii, and of what is beyond each distance."""
        parts = [2 * self.radius / self.ball]
        parts += [2 * math.ldexp(self.radius, rung) / self.ball for rung in range(1, self.rungs + 1)]
        return tuple(Fraction(math.floor(2**16 * min(1.0, max(part, LEAST_WEIGHT))), 2**16) for part in parts)

    def statistic(self, vectors: UserVectors) -> int:
        """What is tested, without noise: in steps, a user at the other end is `reach`."""
        pull, beyond = vectors.clipping_excess(self.center, self.radius, self.end, self.grid, self.rungs)
        half = math.isqrt(sum(x * x for x in pull.tolist())) // 2
        return max(math.floor(w * x) for w, x in zip(self.weights, (half, *beyond.tolist()), strict=True))

    def draw(self, draw: Sampler, vectors: UserVectors) -> tuple[int, ...]:
        return (draw(self.noise, self.statistic(vectors)),)

    def possible(self) -> list[range]:
        support = self.noise.support
        return [range(-support, self.n_users * self.reach + support + 1)]

    def passed(self, released: tuple[int, ...]) -> bool:
        """Whether users may be clipped."""
        return released[0] <= self.threshold

    def moved_at_most(self, largest: float) -> float:
        """How far clipping moves the mean when the statistic is at most this: an L2 distance."""
        # A vector's excess beyond the radius is at most one radius of the first kind and then, as (q - 2r)+ is the sum
        # of 2^i r far_i(q), one of each rung. The last rung has at most as many users, of at most 2B - 2^k r each, as
        # the one before it has at its end. Rounding: see docs/proofs/combined_mean.md.
        lost = self.n_users * (math.sqrt(len(self.center)) + 2)
        sums = [((largest + 1) / float(weight) + lost) * self.grid for weight in self.weights]
        moved = 2 * sums[0]
        for rung, part in enumerate(sums[1:], 1):
            whole = math.ldexp(part, rung)
            if rung == self.rungs > 1:
                beyond = max(2 * self.ball - math.ldexp(self.radius, rung), 0.0)
                whole = min(whole, sums[rung - 1] * beyond / self.radius)
            moved += whole
        return moved / self.n_users


@dataclass(frozen=True, eq=False)
class DistanceSearch(Release):
    """The distance from the center within which most users are, by the exponential mechanism."""

    # Replacing a user by one who is farther away lowers counts of users within distances, by at most 1 each, and raises
    # none; the other way round by one who is nearer. So all scores move in one direction, by at most PER_USER; their
    # costs are public. The choice has epsilon-bounded range.

    center: Floats
    candidates: tuple[float, ...]
    n_users: int
    epsilon: Fraction

    @property
    def choice(self) -> ExponentialMechanism:
        """Takes `scores` and gives the index of a candidate."""
        return ExponentialMechanism(epsilon=self.epsilon, sensitivity=PER_USER, monotone=True)

    def scores(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Lower is better: how many users are missing, and a cost that grows with the distance."""
        missing = np.maximum(math.ceil(QUANTILE * self.n_users) - counts, 0)
        cost = PER_USER * COST_OF_A_STEP / float(self.epsilon)
        costs = np.array([round(cost * step) for step in range(len(self.candidates))], dtype=np.int64)
        return PER_USER * missing + costs

    def draw(self, draw: Sampler, vectors: UserVectors) -> tuple[int, ...]:
        counts = vectors.counts_within(self.center, self.candidates)
        return (int(draw(self.choice, self.scores(counts))),)

    def possible(self) -> list[range]:
        return [range(len(self.candidates))]


@saved_as_parameter
@dataclass(frozen=True)
class SeenBias(ClippingBias):
    """Of a mean whose clipping passed one of two tests: what they say about it."""

    none: float  # the bias that may be where a test has no noise and sees nobody: rounding
    user: float  # for each user whom it sees
    seen: float  # users that were released
    sigma: float  # of the noise of it
    step: float

    def at_most(self, failure: float) -> float:
        # P[Z <= -h] <= P[N <= 1 - h] for discrete Gaussian Z and a normal N of the same sigma (Canonne, Kamath and
        # Steinke 2020, Proposition 25); what is drawn is within 2**-90 of Z. Either test may fail with half of it.
        normal = -NormalDist().inv_cdf(max(failure / 2 * (1 - 2.0**-30) - 2.0**-80, 1e-300))
        return self.none + self.user * max(self.seen + normal * self.sigma + self.step, 0.0)

    def root_mean_square(self, nodes: int = NODES) -> float:
        return math.hypot(self.none + self.user * max(self.seen, 0.0), self.user * self.sigma)


@dataclass(frozen=True)
class Ending:
    """What the mean is made of: releases, their weights, and the test that allowed for clipping."""

    parts: tuple[tuple[Fraction, ClippedSum, tuple[int, ...]], ...]
    look: Look | None  # None where nobody is clipped
    seen: int = 0  # what was released of it


class _Run:
    """One run: what has been released decides, with public numbers, on what is released next."""

    # `left` is the part of the account that is not spent. Every share is taken from it before anything is drawn with
    # it, and the last release takes all: on every path the shares sum to 1.

    def __init__(self, method: CombinedMean, release: Callable[[Release], tuple[int, ...]]) -> None:
        self.method, self.release = method, release
        self.left = Fraction(1)
        self.center: Floats = np.zeros(method.problem.dimension)
        self.user_std = method.expected
        self.first: tuple[Fraction, ClippedSum, tuple[int, ...]] | None = None

    def ending(self) -> Ending:
        """Runs to the end."""
        method = self.method
        if not method.worth_it:
            return self._whole()
        radius = self._rounds(list(method.planned[1]))
        for number in range(2):
            if radius >= WIDE * method.problem.ball:
                break
            look = method.look(number, self.center, radius)
            self._spend(share_of_test(number, method.problem.dimension))
            seen = self.release(look)
            if look.passed(seen):
                last = method.clipped_sum(self.center, look.radius, self._spend(self.left))
                return Ending(((Fraction(1), last, self.release(last)),), look, seen[0])
            if 2 * look.radius < WIDE * method.problem.ball:
                radius = 2 * look.radius
        return self._whole()

    def _spend(self, share: Fraction) -> Fraction:
        if not 0 < share <= self.left:
            raise AssertionError("more is to be spent than is left")
        self.left -= share
        return share

    def _whole(self) -> Ending:
        """Nobody is clipped: the mean of all such releases, each with a weight for its precision."""
        share = self._spend(self.left)
        last = self.method.clipped_sum(np.zeros_like(self.center), None, share)
        released = self.release(last)
        if self.first is None:
            return Ending(((Fraction(1), last, released),), None)
        before, step, sums = self.first
        weight = before / (before + last.part.amount)
        return Ending(((weight, step, sums), (1 - weight, last, released)), None)

    def _rounds(self, shares: list[Fraction]) -> float:
        """Moves the center round by round; the radius for the test, or one that is too wide for it."""
        method, ball = self.method, self.method.problem.ball
        radius, rounds, on_rounds = ball, 0, Fraction(0)
        while shares:
            share = self._spend(shares.pop(0))
            step = method.round_of(self.center, radius if rounds else None, share)
            released = self.release(step)
            rounds += 1
            if self.first is None:
                self.first = (step.part.amount, step, released)
            else:
                on_rounds += share + method.search_share
            before, self.center = self.center, method.inside(step.mean(released))
            noise, second, spread, off = step.moments(released[-1], _squared(self.center - before))
            again = method.hint is None
            if again:
                self.user_std = self._searched(noise)
            surprised = spread > self.user_std**2 + SURPRISE * off
            if surprised:
                again, self.user_std = True, math.sqrt(spread + off / 2)
            elif method.hint is not None and spread + 2 * off < self.user_std**2:
                # Users are nearer than the hint said: smaller radii, which the tests judge.
                self.user_std = math.sqrt(max(spread + 2 * off, (LOWEST_HINT * method.hint) ** 2))
            radius = method.moves.radius(math.sqrt(self.user_std**2 + noise))
            if surprised and second > SATURATED * (2 * step.radius) ** 2:
                radius = min(max(radius, 2 * step.radius), 2 * ball)
            if again:
                if method.moves.kappa * self.user_std >= WIDE * ball:
                    return 2 * ball
                d = method.problem.dimension
                left, most = self.left - share_of_test(0, d), share_of_rounds(d) - on_rounds
                more = min(ROUNDS_AT_ONCE, MOST_ROUNDS - rounds)
                _, planned = method.moves.plan(self.user_std, radius, left, most, more, False)
                shares = list(planned)
        return radius

    def _searched(self, noise: float) -> float:
        """How far users are from the mean, from how far they are from a center with this squared noise."""
        search = self.method.search(self.center, noise)
        self._spend(self.method.search_share)
        found = search.candidates[self.release(search)[0]]
        return max(math.sqrt(max(found**2 - noise, 0.0)), LEAST_SPREAD * found)


def _squared(vector: Floats) -> float:
    """The squared Euclidean length, correctly rounded, so that every machine takes the same decisions."""
    return math.fsum((vector * vector).tolist())


class _NextRelease(Exception):
    def __init__(self, release: Release) -> None:
        self.next = release


@dataclass(frozen=True, eq=False)
class CombinedMean(MeanMethod):
    """Rounds of clipping from a hint, second moments that correct it, and tests before anybody is clipped."""

    # The transcript is all that was released, in order. Everything else, the decisions included, follows from it and
    # from public numbers by one piece of code, `_Run`, that draws in `program` and reads in all the other methods.

    name: str
    problem: MeanProblem
    noise: GaussianRounds
    hint: float | None  # how far users are expected from the mean: about efficiency only

    @classmethod
    def of(cls, problem: MeanProblem) -> CombinedMean:
        """All that (epsilon, delta) allows, the distance of the noise from ideal distributions paid.

        Where the hint promises no gain it is forgotten: users may be much nearer than it says.
        """
        # At most MOST_ROUNDS rounds of d + 1 integers, two tests and d integers at the end: fewer than 2**7 d.
        account = problem.account(2**7 * problem.dimension, LEAST_RESOLUTION)
        noise = GaussianRounds(problem.n_users, problem.dimension, account, problem.delta)
        hinted = cls("tested", problem, noise, _hint(problem))
        return hinted if hinted.hint is None or hinted.worth_it else replace(hinted, hint=None)

    @property
    def expected(self) -> float:
        """The spread for which the first rounds are planned."""
        return UNKNOWN * self.problem.ball if self.hint is None else self.hint

    @cached_property
    def search_share(self) -> Fraction:
        """What is spent on finding the spread; 0 with a hint."""
        if self.hint is not None:
            return Fraction(0)
        account = self.noise.account
        cost = float(account.of_search(Fraction(1)) / account.amount)
        enough = (SEARCH_USERS / self.problem.n_users) ** 2 * cost
        return min(SEARCH_SHARE, Fraction(math.ceil(enough * 2**40), 2**40))

    @cached_property
    def users(self) -> float:
        """A: so many users at the other end of the ball move the mean by the noise of no clipping."""
        return 2 * math.sqrt(self.problem.dimension / (2 * float(self.noise.rho)))

    @cached_property
    def moves(self) -> Moves:
        """What plans need."""
        problem = self.problem
        kappa = planned_rounds(problem.dimension, problem.ball, self.expected, self.noise.size()).kappa
        low, high = KAPPAS
        return Moves(problem.n_users, self.users, problem.ball, min(max(kappa, low), high), self.search_share)

    @cached_property
    def planned(self) -> tuple[float, tuple[Fraction, ...]]:
        """The predicted error, and the shares of the rounds before a test."""
        left = 1 - share_of_test(0, self.problem.dimension)
        most = share_of_rounds(self.problem.dimension)
        return self.moves.plan(self.expected, self.problem.ball, left, most, ROUNDS_AT_ONCE, True)

    @cached_property
    def worth_it(self) -> bool:
        """Whether anybody may be clipped at all; public. Otherwise all is spent on noise for the whole range."""
        error, shares = self.planned
        if self.hint is None and self._whole_error > MOST_WHOLE_ERROR * self.problem.ball:
            return False
        return bool(shares) and error <= WORTH_CLIPPING * self._whole_error and self.noise.rho >= LEAST_RHO

    @property
    def _whole_error(self) -> float:
        return self.users * self.problem.ball / self.problem.n_users

    def predicted_error(self) -> float:
        # Without a hint nothing says how near users are, and so not how little noise there will be.
        return self.planned[0] if self.worth_it and self.hint is not None else self._whole_error

    def expected_error(self) -> float:
        """Of users as near as was hinted, with what it costs that tests refuse some of those."""
        hinted = self if self.hint is not None else replace(self, hint=_hint(self.problem))
        alarm = false_alarm(self.problem.dimension)
        return math.hypot(hinted.planned[0] * math.sqrt(1 - alarm), self._whole_error * math.sqrt(alarm))

    def budget(self) -> Budget:
        d = self.problem.dimension
        integers = MOST_ROUNDS * (d + 1) + 2 + d
        return self.problem.gaussian_budget(self.noise.account, {"mean": 1}, integers * NOISE_DISTANCE)

    # What is released.

    def clipped_sum(self, center: Floats, radius: float | None, share: Fraction) -> ClippedSum:
        """The sum of vectors clipped to a ball, or of whole ones, for a share of the account."""
        part = self.noise.account.part(share)
        return ClippedSum(center, *self._ball(radius, share), self.problem.n_users, part)

    def round_of(self, center: Floats, radius: float | None, share: Fraction) -> Round:
        """A sum and a second moment for a share of the account together."""
        moment = share * SHARE_OF_SQUARES
        grid, reach = self._ball(None if radius is None else self._rounded(radius), share - moment)
        squares, part = min((2 * reach) ** 2, MOST_SQUARES), self.noise.account.part
        return Round(center, grid, reach, self.problem.n_users, part(share - moment), squares, part(moment))

    def _ball(self, radius: float | None, share: Fraction) -> tuple[float, int]:
        """The grid and the reach of a ball around a center, or of one around the origin that has all records."""
        resolution = self.problem.grid_resolution or self.noise.resolution(share)
        if radius is None:
            grid = _grid(self.problem.ball, min(resolution, 2**29))
            return grid, math.ceil(self.problem.ball / grid)
        grid = _grid(radius, resolution)
        return grid, math.floor(radius / grid)

    def look(self, number: int, center: Floats, radius: float) -> Look:
        """The first (0) or the second test (1), of clipping at a radius."""
        problem, radius = self.problem, self._rounded(radius)
        # As fine as 32 bits allow for, unless a coarser grid is asked for.
        grid = _grid(2.01 * problem.ball, 2**29)
        if problem.grid_resolution is not None:
            grid = max(grid, _grid(radius, problem.grid_resolution))
        reach = math.floor(radius / grid)
        threshold = math.floor(TAUS[number] * Fraction(self.users) * reach)
        part = self.noise.account.part(share_of_test(number, problem.dimension))
        return Look(center, grid, reach, problem.ball, problem.n_users, threshold, part)

    def search(self, center: Floats, noise: float) -> DistanceSearch:
        """A search for how far most users are from a center with this squared noise, whose length hardly varies."""
        problem, d = self.problem, self.problem.dimension
        normal = max(1 - 2 / (9 * d) - 2 * math.sqrt(2 / (9 * d)), 0.05) ** 1.5
        candidates = [min(math.sqrt(noise) * normal, problem.ball)]
        while candidates[-1] < 2 * problem.ball:
            candidates.append(candidates[0] * 2 ** (len(candidates) / PER_DOUBLING))
        epsilon = self.noise.account.part(self.search_share).search_epsilon()
        return DistanceSearch(center, tuple(candidates), problem.n_users, epsilon)

    def _rounded(self, radius: float) -> float:
        """A radius of few significant bits that is not below it."""
        mantissa, exponent = math.frexp(max(radius, LEAST_RADIUS * self.problem.ball))
        return math.ldexp(math.ceil(mantissa * 2**RADIUS_BITS), exponent - RADIUS_BITS)

    def inside(self, point: Floats) -> Floats:
        """The nearest point of the ball of all records."""
        length = math.sqrt(_squared(point))
        return point * (self.problem.ball / max(self.problem.ball, length))

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        # Users without rows are at the origin on all paths, and clipped like everybody.
        vectors = vectors.filled()
        _ = self.worth_it  # what is refused, is refused before anything is drawn

        def release(draw: Sampler) -> Hashable:
            transcript: list[tuple[int, ...]] = []

            def drawn(step: Release) -> tuple[int, ...]:
                transcript.append(step.draw(draw, vectors))
                return transcript[-1]

            _Run(self, drawn).ending()
            return tuple(transcript)

        return release

    # What follows from a transcript.

    def ending(self, outcome: Any) -> Ending:
        """What the mean is made of."""
        released = iter(outcome)
        return _Run(self, lambda step: next(released)).ending()

    def mean(self, outcome: Any) -> Floats:
        parts = [float(weight) * step.mean(released) for weight, step, released in self.ending(outcome).parts]
        return np.sum(parts, axis=0)

    def noise_terms(self, outcome: Any) -> tuple[tuple[DiscreteGaussian, float], ...]:
        """The independent noises of each coordinate of the mean, and what a step of each moves it by."""
        n = self.problem.n_users
        return tuple((step.noise, float(weight) * step.grid / n) for weight, step, _ in self.ending(outcome).parts)

    def rounding(self, outcome: Any) -> float:
        """The most that truncation to grids moves a coordinate of the mean."""
        return sum(float(weight) * step.rounding for weight, step, _ in self.ending(outcome).parts)

    def clipped(self, outcome: Any) -> bool:
        """Whether anybody may have been clipped by the last release."""
        return self.ending(outcome).look is not None

    def clipped_to(self, outcome: Any) -> tuple[Floats, float] | None:
        look = self.ending(outcome).look
        return None if look is None else (look.center, look.radius)

    def moved_at_most(self, outcome: Any, failure: float) -> float:
        """How far clipping moved the mean, an L2 distance, with probability at least 1 - failure over the noise.

        In units of the records, and 0 where nobody was clipped.
        """
        if not 0 < failure < 1:
            raise ValueError(f"failure must be between 0 and 1; got {failure}")
        bias = self._bias(self.ending(outcome))
        return 0.0 if bias is None else bias.at_most(failure)

    def _bias(self, ending: Ending) -> SeenBias | None:
        if ending.look is None:
            return None
        noise, none = ending.look.noise, ending.look.moved_at_most(0)
        # Linear, as the weights of the last two rungs are 1.
        user = ending.look.moved_at_most(ending.look.reach) - none
        sigma = math.sqrt(noise.sigma_squared) * (1 + 2.0**-40)
        return SeenBias(none, user, ending.seen / ending.look.reach, sigma / ending.look.reach, 1 / ending.look.reach)

    def accuracy(self, outcome: Any = None) -> Accuracy:
        """How wrong the release is; before it is drawn, the noise after both tests failed and the largest bias."""
        d, n = self.problem.dimension, self.problem.n_users
        if outcome is None:
            # The first round counts in the mean of whole vectors, but for what it spent on squares and the search.
            tests = sum((share_of_test(number, d) for number in range(len(TAUS))), Fraction(0))
            first = SHARE_OF_SQUARES * SHARES[-1] + self.search_share
            lost = share_of_rounds(d) + first + tests if self.worth_it else Fraction(0)
            step = self.clipped_sum(np.zeros(d), None, 1 - lost)
            bias = BiasOfSize(self._largest_bias()) if self.worth_it else None
            return Accuracy((NoiseTerm.of(step.noise, step.grid / n),), step.rounding, bias)
        terms = tuple(NoiseTerm.of(noise, step) for noise, step in self.noise_terms(outcome))
        return Accuracy(terms, self.rounding(outcome), self._bias(self.ending(outcome)))

    def _largest_bias(self) -> float:
        """The largest root mean square of the bias of a run, whatever the data are."""
        # Where T users' worth is beyond the radius, clipping moves the mean by max(2B, 4r) T / n / LEAST_WEIGHT at
        # most, with r below WIDE B, and a test lets it pass with the probability that its noise allows for. Each of the
        # two tests has its own radius and T. A step of T has the most that is moved and the probability at its start.
        d = self.problem.dimension
        users = np.linspace(0, 4 * self.users, 4000)
        moved = max(2.0, 4 * WIDE) * self.problem.ball * users[1:] / (self.problem.n_users * LEAST_WEIGHT)
        squared = 0.0
        for number, tau in enumerate(TAUS):
            deviation = self.users / (2 * math.sqrt(d * share_of_test(number, d)))
            passed = [NormalDist(0, deviation).cdf(float(tau) * self.users - each) for each in users[:-1]]
            squared += float(np.max(moved**2 * passed))
        return math.sqrt(squared)

    # All transcripts, for tiny problems.

    def outcomes(self) -> Iterator[Hashable]:
        for outcome, _ in self._leaves(math.inf):
            yield outcome

    def n_outcomes(self) -> int:
        total = 0
        for _, size in self._leaves(MOST_LISTED):
            total += size
            if total > MOST_LISTED:
                return COUNTED + 1
        return total

    def _leaves(self, most: float) -> Iterator[tuple[Hashable, int]]:
        """All transcripts; where one release has more outcomes than `most`, one of them, and their number."""
        waiting: list[tuple[tuple[int, ...], ...]] = [()]
        while waiting:
            path = waiting.pop()
            released = iter(path)

            def known(step: Release, released: Iterator[tuple[int, ...]] = released) -> tuple[int, ...]:
                for values in released:
                    return values
                raise _NextRelease(step)

            try:
                _Run(self, known).ending()
                yield path, 1
            except _NextRelease as stopped:
                possible = stopped.next.possible()
                size = counted(*((len(values), 1) for values in possible))
                if size > most:
                    yield path, size
                    return
                waiting += [(*path, values) for values in itertools.product(*possible)]


MOST_LISTED = 2**20
"""More transcripts than these are not counted."""


def _grid(length: float, resolution: int) -> float:
    """The largest power of two of which the length has at least so many steps, for a power of two."""
    return math.ldexp(1.0, math.frexp(length)[1] - resolution.bit_length())


def _hint(problem: MeanProblem) -> float | None:
    """The distance expected of a user's mean from the mean of all, within what can be; None where it is not known."""
    hint = problem.concentration
    return None if hint is None else min(max(hint, problem.ball * LEAST_CONCENTRATION), 2 * problem.ball)


def plan_combined(problem: MeanProblem) -> MeanMethod:
    """Clipping that is tested before it is believed; needs delta > 0."""
    if not problem.delta and problem.part is None:
        raise ValueError("method='tested' needs delta > 0; with delta=0 use 'laplace'")
    return CombinedMean.of(problem)


def combined_by_default(problem: MeanProblem) -> bool:
    """Whether `plan_combined` is to be used when nothing is asked for: from public numbers only.

    It needs several columns, Gaussian noise that is clearly less than Laplace noise in the whole range, and a plan
    whose predicted error is at most 0.6 times that of no clipping.
    """
    if not problem.delta and problem.part is None:
        return False
    try:
        method = CombinedMean.of(problem)
    except ValueError:  # no rho where the distance of the noise takes all of delta
        return False
    laplace = 2 * math.sqrt(2) * problem.dimension / float(problem.epsilon)
    # As one of several under one account of Gaussian noise, Laplace noise is no alternative.
    gaussian = problem.part is not None or method.users <= PURE_OR_NOT * laplace
    return gaussian and problem.dimension >= LEAST_DIMENSION and method.worth_it
