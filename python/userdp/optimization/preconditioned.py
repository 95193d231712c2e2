"""Logistic regression in whitened units: private second moments first, then steps of one size along gradients.

In units in which features have second moments about 1 in all directions the logistic loss is curved alike in all of
them, and steps of one size get near the minimum, whatever bounds and correlations there are. Weights that are always in
force look at features only, so that they leave the expected gradient 0 at the same coefficients; users' gradients, in
which classes are, are clipped only where a released test finds that next to nobody is. Sensitivities, what is left
after each part, and the account: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import counted
from userdp.means.range_search import power_of_two_below
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.cutting import CuttingTest, TargetClipping, Verdict, worth_of_noise
from userdp.optimization.moments import (
    MomentProblem,
    MomentSolver,
    QuantileSearch,
    SecondMoments,
    UnitSearch,
    needed_users,
    regularizer,
    solved,
    too_few,
    users_needed,
)
from userdp.users.vectors import SHARE_STEPS

if TYPE_CHECKING:
    from userdp.users.vectors import JointRows, WhitenedRows

Floats = npt.NDArray[np.float64]

ITERATIONS = 100
"""By default."""
SHARES = {
    "classes": Fraction(2, 100),
    "centers": Fraction(4, 100),
    "scales": Fraction(8, 100),
    "reaches": Fraction(12, 100),
}
"""Of the account."""
MOMENTS_SHARE = Fraction(1, 4)
"""Of what these leave."""
RADIUS_SHARE, ROWS_SHARE, SEARCH_SHARE = Fraction(2, 100), Fraction(3, 100), Fraction(2, 100)
"""Of the account. The last is for users of several rows."""
FIRST_SHARE, FIRST_ROUNDS = Fraction(15, 100), Fraction(2, 5)
"""Of what is left for gradients, and of the steps: a first solution, at which users' gradients are measured."""
LOOK_SHARES = Fraction(3, 100), Fraction(8, 100)
"""A look spends .6 / D of the account, within these."""
PAIR = 1449
"""The least integer above 1024 sqrt(2): how far a user can move the sums of shares of the two kinds of labels."""
ROW_STEPS = 33
"""Quarter octaves of lengths of rows."""
LONGEST = 16.0
"""The largest length of a row that is tried, over sqrt(D)."""
LONG_ROWS = 0.5
"""Rows that may count less, in users who are worth the noise against it."""
STEP = 0.75
"""Steps are this over the curvature: at the start, p (1 - p) in all directions, and up to 3 times as much later."""
STEEPER = 3.0
BALL = 40.0
"""No iterate is longer in whitened units."""
NOTHING = 4
"""Standard deviations of a noisy share of rows below which it is none."""
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
WEIGHTS /= WEIGHTS.sum()
SETTLED = 0.03
"""Of its length, by which the mean of the last quarter of the steps may be away from that of the quarter before."""
RESTLESS = 1.5
"""Steps this many times as long as noise makes them do not settle."""
TOO_MUCH = 0.5
"""The noise of a step above which a warning is given, before the fit."""
LOUD = 1 / 8
"""That of log odds over their spread, after it: probabilities are then off by about three times as much of theirs."""


@dataclass(frozen=True)
class LogisticFit:
    """A logistic regression in units of public bounds, and what is known of it."""

    coefficients: Floats
    intercept: float
    noise_ratio: float
    converged: bool
    looks: int
    refused: bool
    clipping: TargetClipping | None  # of gradients, at the first solution
    outside: float  # the share of rows of neither class
    outside_deviation: float
    notes: tuple[str, ...]  # what noise may have done, in sentences


@dataclass(frozen=True)
class Phase:
    """Steps along gradients of users, clipped to one length."""

    rounds: int
    radius: float
    grid: float
    noise: DiscreteGaussian
    n_users: int

    @property
    def spread(self) -> float:
        """The standard deviation of the noise in an entry of a mean gradient."""
        return self.grid * math.sqrt(self.noise.sigma_squared) / self.n_users


class PreconditionedRegression(MomentSolver):
    """Descent in whitened units, by weights that look at features, and a clip that was tested."""

    def __init__(
        self, problem: MomentProblem, n_iterations: int | None = None, several: bool = True, tested: bool = True
    ) -> None:
        self.problem, self.tested = problem, several and tested
        size, n = problem.dimension, problem.n_users
        self.rounds = n_iterations or ITERATIONS
        self.first_rounds = math.ceil(FIRST_ROUNDS * self.rounds) if self.tested else 0
        self.account, self._distance = problem.account((self.rounds + self.first_rounds) * size + 4)
        shares = dict(SHARES) if problem.fit_intercept else {**SHARES, "centers": Fraction(0)}
        shares["moments"] = MOMENTS_SHARE * (1 - sum(shares.values(), Fraction(0)))
        shares |= {"radius": RADIUS_SHARE, "rows": ROWS_SHARE}
        left = 1 - sum(shares.values(), Fraction(0))
        self.worth = worth_of_noise(size, self.account.part(left))
        """A: users with the longest gradient who are worth the noise of not clipping."""
        if self.tested:
            # The test takes the shares of its looks from what is left after its search, before that is used.
            shares["first"] = FIRST_SHARE * left
            look = max(LOOK_SHARES[0], min(LOOK_SHARES[1], Fraction(3, 5 * size)))
            self.test = CuttingTest(problem, self.account, left - shares["first"], search=SEARCH_SHARE, look=look)
            shares["search"] = SEARCH_SHARE
        shares["gradients"] = 1 - sum(shares.values(), Fraction(0))
        self.shares = shares
        self.parts = {name: self.account.part(share) for name, share in shares.items()}
        # Whitened rows have norm sqrt(D), and gradients at 0 half of that: the noise of a step, were there one.
        self._noise = size / (n * math.sqrt(2 * self.parts["gradients"].rho))
        self.class_noise = self.parts["classes"].noise(PAIR)
        self.search = UnitSearch(problem, self.parts)
        self.moments = SecondMoments(problem, radius=self.parts["radius"], moments=self.parts["moments"])
        lengths = LONGEST * math.sqrt(size) * np.exp2(-np.arange(ROW_STEPS)[::-1] / 4)
        needed = needed_users(n, max(LONG_ROWS * self.worth, 1.0))
        epsilon = self.parts["rows"].search_epsilon()
        self.long_rows = QuantileSearch(n, lengths, needed, epsilon, 1.0, per_user=SHARE_STEPS)

    # --- what follows from what was drawn

    def classes(self, drawn: tuple[int, int]) -> tuple[float, float, float]:
        """The share of the second class among rows of both, that of rows of neither, and the noise of the latter."""
        unit = 1 / (SHARE_STEPS * self.problem.n_users)
        second, outside = (number * unit for number in drawn)
        noise = unit * math.sqrt(self.class_noise.sigma_squared)
        both = max(1 - outside, 4 * noise)
        least = 2 * noise / both
        return min(max(second / both, least), 1 - least) if least < 1 / 2 else 1 / 2, outside, noise

    def basis(self, moments: Any) -> tuple[Floats, Floats]:
        """Eigenvalues of Q with its ridge, and eigenvectors: W has these over the roots of those."""
        matrix, sigma = self.moments.matrix(moments)
        return solved(matrix, sigma * math.sqrt(self.problem.dimension))

    @lru_cache(maxsize=256)  # noqa: B019  plans are few
    def phase(self, radius: float, share: Fraction, rounds: int) -> Phase:
        """Steps that spend a share."""
        grid = power_of_two_below(radius / self.problem.grid_resolution)
        # Clipped gradients have norm R at most, in integers: replacing a user moves the sum by 2 R.
        noise = self.account.part(share / rounds).noise(2 * math.floor(radius / grid))
        return Phase(rounds, radius, grid, noise, self.problem.n_users)

    def first(self, longest: float) -> Phase:
        """The steps to the first solution."""
        return self.phase(longest, self.shares["first"], self.first_rounds)

    def last(self, longest: float, verdict: Verdict | None) -> Phase:
        """All other steps, after the test."""
        if verdict is None:
            return self.phase(longest, self.shares["gradients"], self.rounds)
        radius = longest if verdict.clipping is None else verdict.clipping.radius
        return self.phase(radius, verdict.left, self.rounds)

    # --- drawing

    def program(self, rows: JointRows) -> AdaptiveMechanism:
        def transcript(draw: Sampler) -> Hashable:
            classes = draw(self.class_noise, tuple(rows.class_shares().tolist()))
            units = self.search.drawn(rows, draw)
            center, scale = self.search.units(units)
            moments = self.moments.drawn(self.search.in_units(units, rows), draw)
            descent = _Descent(self, classes, units, moments)
            radius = float(self.moments.radius.candidates[moments[0]])
            constant = self.problem.fit_intercept
            white = rows.whitened(center, scale, descent.whitening, constant=constant, radius=radius)
            place = self.long_rows.drawn(white.shares_within(self.long_rows.candidates), draw)
            return classes, units, moments, place, *self.descended(white, descent, place, draw)

        return transcript

    def descended(self, white: WhitenedRows, descent: _Descent, place: int, draw: Sampler) -> tuple[Hashable, ...]:
        """What is drawn of users' gradients, rows being no longer than the candidate at a place."""
        longest = float(self.long_rows.candidates[place])
        origin = np.zeros(self.problem.dimension)

        def steps(phase: Phase) -> tuple[tuple[int, ...], ...]:
            sums: list[tuple[int, ...]] = []

            def total(_: int, theta: Floats) -> tuple[int, ...]:
                clipped = white.gradients(theta, longest).clipped_sum(origin, phase.radius, phase.grid)
                sums.append(draw(phase.noise, tuple(clipped.tolist())))
                return sums[-1]

            descent.walk(phase, total)
            return tuple(sums)

        if not self.tested:
            return (steps(self.last(longest, None)),)
        first = steps(self.first(longest))
        tested = self.test.drawn(white.gradients(descent.theta, longest), longest, draw)
        return first, tested, steps(self.last(longest, self.test.verdict(longest, tested)))

    def _sums(self, phase: Phase) -> Iterator[Hashable]:
        most = self.problem.n_users * math.floor(phase.radius / phase.grid) + phase.noise.support
        entries = product(range(-most, most + 1), repeat=self.problem.dimension)
        return product(tuple(entries), repeat=phase.rounds)

    def _n_sums(self, phase: Phase) -> int:
        most = self.problem.n_users * math.floor(phase.radius / phase.grid) + phase.noise.support
        return counted((2 * most + 1, self.problem.dimension * phase.rounds))

    def _classes(self) -> range:
        support = self.class_noise.support
        return range(-support, SHARE_STEPS * self.problem.n_users + support + 1)

    def _tails(self, longest: float) -> Iterator[tuple[Hashable, ...]]:
        """All that gradients may come to."""
        if not self.tested:
            yield from ((last,) for last in self._sums(self.last(longest, None)))
            return
        for first, tested in product(self._sums(self.first(longest)), self.test.outcomes(longest)):
            last = self._sums(self.last(longest, self.test.verdict(longest, tested)))
            yield from ((first, tested, sums) for sums in last)

    def outcomes(self) -> Iterator[Hashable]:
        moments = list(self.moments.outcomes())
        for head in product(product(self._classes(), repeat=2), self.search.outcomes(), moments):
            for place, longest in enumerate(self.long_rows.candidates.tolist()):
                yield from ((*head, place, *tail) for tail in self._tails(longest))

    def n_outcomes(self) -> int:
        tails = 0
        for longest in self.long_rows.candidates.tolist():
            if not self.tested:
                tails += self._n_sums(self.last(longest, None))
                continue
            first = (self._n_sums(self.first(longest)), 1)
            for index in range(len(self.test.search.candidates)):
                looks = self.test.looks(longest, index)
                sizes = [(2 * look.noise.support + self.problem.n_users * look.half + 1, 1) for look in looks]
                # No radius has more steps than twice the grid's, and no part less than the last.
                least = self.phase(longest, self.test.left - len(looks) * self.test.look, self.rounds)
                tails += counted(first, (self._n_sums(least), 1), *sizes)
        head = (len(self._classes()), 2)
        return counted(head, *self.search.n_outcomes(), (self.moments.n_outcomes(), 1), (tails, 1))

    # --- what it stands for

    def warnings(self) -> list[str]:
        problem = self.problem
        step = self._noise * math.sqrt(30) / TOO_MUCH
        return too_few(problem, users_needed(problem.n_users, *self.search.ratios(), step))

    def fit(self, outcome: Any) -> LogisticFit:
        classes, units, moments, place, *tested, last = outcome
        descent = _Descent(self, classes, units, moments)
        longest = float(self.long_rows.candidates[place])
        verdict = None
        if self.tested:
            first, drawn = tested
            descent.walk(self.first(longest), lambda done, _: first[done])
            verdict = self.test.verdict(longest, drawn)
        phase = self.last(longest, verdict)
        points = descent.walk(phase, lambda done, _: last[done])
        _, outside, deviation = self.classes(classes)
        # Where hardly any row has a class, or hardly any user rows, there is nothing that steps could find.
        matrix, spread = self.moments.matrix(moments)
        nothing = 1 - outside < NOTHING * deviation
        if self.problem.fit_intercept:
            nothing = nothing or matrix[-1, -1] < NOTHING * spread
        beta = descent.whitening @ (descent.start if nothing else descent.theta)
        coefficients, intercept = self.search.line(units, matrix, beta)
        if nothing:
            notes = ["hardly any row has a label of the two classes: the model is a constant"]
        else:
            notes = [*self._rare(*self.classes(classes)), *descent.drowned(phase, matrix)]
            notes += self.search.notes(units, self.search.unsure(units, matrix))
            notes += descent.restless(points, phase)
        return LogisticFit(
            coefficients,
            intercept,
            descent.noise_ratio,
            not notes,
            verdict.looks if verdict else 0,
            verdict.refused if verdict else False,
            verdict.clipping if verdict else None,
            outside,
            deviation,
            tuple(notes),
        )

    def _rare(self, share: float, outside: float, noise: float) -> list[str]:
        rarer, n = min(share, 1 - share) * min(1 - outside, 1.0), self.problem.n_users
        if rarer * n >= self.worth and rarer > 2 * noise / max(1 - outside, 4 * noise):
            return []
        return [
            f"the rarer class is hardly known to be there: at most about {rarer * n:.3g} of {n} users are "
            "in it, which noise hides"
        ]


class _Descent:
    """Iterates in whitened units: a function of what was drawn."""

    def __init__(self, plan: PreconditionedRegression, classes: Any, units: Any, moments: Any) -> None:
        problem = plan.problem
        values, vectors = plan.basis(moments)
        self.whitening: Floats = vectors / np.sqrt(values)
        self.noise_ratio = plan.moments.matrix(moments)[1] * math.sqrt(2 * problem.dimension) / float(values[0])
        self.share = plan.classes(classes)[0]
        # The constant model: W theta is the logarithm of the odds, for the last entry alone.
        odds = math.log(self.share / (1 - self.share)) if problem.fit_intercept else 0.0
        self.start: Floats = np.sqrt(values) * vectors[-1] * odds
        self.theta = self.start
        self.variance = self.share * (1 - self.share) if problem.fit_intercept else 1 / 4
        self._regularizer = self.whitening.T @ regularizer(problem, plan.search.units(units)[1]) @ self.whitening
        self._features, self._intercept = problem.n_features, problem.fit_intercept

    def noise(self, phase: Phase) -> float:
        """The root mean square length of the noise of the mean of all gradients."""
        return phase.spread * math.sqrt(len(self.theta) / phase.rounds)

    def ridge(self, phase: Phase) -> float:
        """As large as it makes sense beside this noise, about the start."""
        return self.noise(phase) ** 2 / self.variance

    def size(self, phase: Phase) -> float:
        """Of a step."""
        curvature = min(1 / 4, STEEPER * self.variance)
        return STEP / (curvature + self.ridge(phase) + float(np.linalg.norm(self._regularizer, 2)))

    def walk(self, phase: Phase, total: Callable[[int, Floats], tuple[int, ...]]) -> Floats:
        """All points of a phase; theta is then the mean of the last half of them."""
        ridge, size, points = self.ridge(phase), self.size(phase), []
        for done in range(phase.rounds):
            gradient = np.array(total(done, self.theta), dtype=np.float64) * (phase.grid / phase.n_users)
            gradient += ridge * (self.theta - self.start) + self._regularizer @ self.theta
            theta = self.theta - size * gradient
            self.theta = theta * min(1.0, BALL / max(float(np.linalg.norm(theta)), BALL))
            points.append(self.theta)
        self.theta = np.mean(points[phase.rounds // 2 :], axis=0)
        return np.array(points)

    def curvature(self) -> float:
        """About the least of the mean loss at theta, or half of that at the start: log odds as if they were normal."""
        middle = float((self.whitening @ self.theta)[-1]) if self._intercept else 0.0
        spread = math.sqrt(max(float(self.theta @ self.theta) - middle**2, 0.0))
        odds = middle + spread * NODES
        slope = WEIGHTS / (2 + np.exp(odds) + np.exp(-odds))
        return min(self.variance / 2, float(slope.sum()), float(slope @ NODES**2))

    def restless(self, points: Floats, phase: Phase) -> list[str]:
        """That the last quarter of the steps has moved more than noise would, or that they leapt."""
        noise = phase.spread * math.sqrt(len(self.theta))
        quarter = max(1, phase.rounds // 4)
        before = points[max(0, len(points) - 2 * quarter) : max(1, len(points) - quarter)].mean(axis=0)
        last = points[-quarter:].mean(axis=0)
        # Means of T / 4 noisy gradients over the curvature, and no more than a walk of such steps would make of them.
        by_curvature = noise * math.sqrt(8 / phase.rounds) / (self.curvature() + self.ridge(phase))
        by_noise = min(by_curvature, self.size(phase) * noise * math.sqrt(2 * quarter / 3))
        enough = SETTLED * float(np.linalg.norm(last - self.start))
        leaps = np.diff(points[len(points) // 2 :], axis=0)
        leap = math.sqrt(float(np.mean(np.sum(leaps**2, axis=1)))) if len(leaps) else 0.0
        moved = float(np.linalg.norm(last - before))
        if moved <= max(1.5 * by_noise, enough) and leap <= RESTLESS * max(self.size(phase) * noise, enough):
            return []
        return [
            f"the last of {phase.rounds} steps still moved: coefficients are not those of least loss. Rare classes "
            "with strong features need a larger n_iterations; rows far out in a feature may need other bounds"
        ]

    def drowned(self, phase: Phase, matrix: Floats) -> list[str]:
        """That the noise of log odds is about as large as what features make of them."""
        slopes = (self.whitening @ self.theta)[: self._features]
        spread = slopes @ matrix[: self._features, : self._features] @ slopes
        if len(matrix) > self._features:
            spread -= (slopes @ matrix[: self._features, -1]) ** 2 / max(float(matrix[-1, -1]), 1e-3)
        noise = self.noise(phase) / (self.variance + self.ridge(phase)) * math.sqrt(self._features / len(matrix))
        if noise <= LOUD * math.sqrt(max(float(spread), 0.0)):
            return []
        return [
            f"noise moves log odds by about {noise:.2g}, and features by {math.sqrt(max(float(spread), 0.0)):.2g}: the "
            "probabilities and coefficients may be far off"
        ]


@lru_cache(maxsize=64)
def preconditioned_regression(
    problem: MomentProblem, n_iterations: int | None, several: bool, tested: bool
) -> PreconditionedRegression:
    """The plan of a logistic regression."""
    return PreconditionedRegression(problem, n_iterations, several, tested)
