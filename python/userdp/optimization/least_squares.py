"""Linear regression from private second moments of features, and their products with targets.

Features are weighted, targets are not: who is far out in features counts less, and targets are cut only where a
released test says that few users are. Sensitivities, the test and its price: docs/proofs/moments.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import COUNTED, counted
from userdp.means.range_search import power_of_two_below
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.coefficients import NormalEquations
from userdp.optimization.cutting import CuttingTest, Verdict, worth_of_noise
from userdp.optimization.moments import (
    WIDEST,
    MatrixRelease,
    MomentProblem,
    MomentSolver,
    SecondMoments,
    UnitSearch,
    regularizer,
    too_few,
    users_needed,
)

if TYPE_CHECKING:
    from userdp.means.gaussian_account import GaussianAccount
    from userdp.users.vectors import JointRows

Floats = npt.NDArray[np.float64]

SEARCH = Fraction(2, 100)
"""Of the account, for how long products of features and targets are."""
ENOUGH = 0.004
"""The noise of not cutting beside what is found, below which nobody is cut and nothing asked."""
TOO_MUCH = 0.15
"""The noise of not cutting, of half the range of targets, above which a warning is given before a fit."""
LOUD = 0.5
"""The noise of predictions beside what was found, above which a warning is given after it."""
NOISY = 2
"""Standard deviations of the noise of a mean square residual, below which none is said."""
UNCUT = 0.1
"""After looks that refused, the noise of predictions beside the deviation of targets above which a warning is given."""
MOVED = 100.0
"""What cutting may have moved predictions by, beside what was found, above which a warning is given. It is the bound
for as many users at the very end as a look cannot exclude: 2 to 18 times what was found where bounds are 100 times too
wide, and 20 to 190 times where they are 1000 times too wide, in fits that were right."""


def look_share(dimension: int) -> Fraction:
    """What a look spends of the account: its noise is about worth the users who decide."""
    return min(Fraction(12, 100), max(Fraction(45, 1000), Fraction(96, 100 * dimension)))


def products_share(dimension: int) -> Fraction:
    """What products get of the last release where targets are cut; second moments have the rest."""
    return Fraction(min(max(1 / (1 + math.sqrt(dimension) / 6), 0.4), 0.8)).limit_denominator(1000)


@dataclass(frozen=True)
class ProductRelease:
    """Noisy sums of users' products, cut to a radius."""

    # Replacing a user moves the sum by at most 2 steps in Euclidean length.

    n_users: int
    size: int
    steps: int
    grid: float
    part: GaussianAccount

    @property
    def noise(self) -> DiscreteGaussian:
        """Of every coordinate."""
        return self.part.noise(2 * self.steps)

    def drawn(self, products: Any, draw: Sampler) -> tuple[int, ...]:
        """The sums."""
        sums = products.clipped_sum(0.0, self.steps * self.grid, self.grid)
        return draw(self.noise, tuple(sums.tolist()))


class MomentRegression(MomentSolver):
    """Least squares from private second moments: the plan of a fit."""

    def __init__(self, problem: MomentProblem, cut: bool = True) -> None:
        self.problem, self.cut = problem, cut
        self.account, self._distance = problem.account()
        self.shares = problem.shares(Fraction(1))
        self.left = self.shares["moments"]
        if cut:
            self.shares |= {"search": SEARCH, "moments": self.left - SEARCH}
        self.parts = {name: self.account.part(share) for name, share in self.shares.items()}
        self.search = UnitSearch(problem, self.parts)
        self.moments = SecondMoments(problem, radius=self.parts["radius"], moments=self.account.part(self.left))
        look = look_share(problem.dimension)
        self.test = CuttingTest(problem, self.account, self.left, search=SEARCH, look=look, enough=ENOUGH)

    # What follows from what was released.

    def farthest(self, units: Any) -> float:
        """H: the longest that a target may be from its center."""
        return 1 + abs(float(self.search.center(units[0])[-1])) if self.search.rounds else 1.0

    def longest(self, units: Any, index: int) -> float:
        """B: no user's product is longer."""
        # |mean of z e| <= |mean of z z^T|^(1/2) H, and the weight leaves at most R of the norm.
        return math.sqrt(float(self.moments.radius.candidates[index])) * self.farthest(units)

    def verdict(self, units: Any, index: int, cutting: Any) -> Verdict:
        """Whether products are cut."""
        if not self.cut:
            return Verdict(self.longest(units, index), 0, self.left, None)
        return self.test.verdict(self.longest(units, index), cutting)

    def last(self, index: int, verdict: Verdict) -> tuple[MatrixRelease, ProductRelease | None]:
        """What is released at the end, with all that is left."""
        problem, radius = self.problem, float(self.moments.radius.candidates[index])
        size, whole = problem.dimension, self.account.part(verdict.left)
        if verdict.clipping is None:
            # With a target as long as all features together, no user's matrix has a norm above 2 R.
            return MatrixRelease.of(problem, size + 1, 2 * radius, whole), None
        share = products_share(size)
        grid = power_of_two_below(verdict.clipping.radius / problem.grid_resolution)
        steps = math.floor(verdict.clipping.radius / grid)
        products = ProductRelease(problem.n_users, size, steps, grid, whole.part(share))
        return MatrixRelease.of(problem, size, radius, whole.part(1 - share)), products

    def program(self, rows: JointRows) -> AdaptiveMechanism:
        def transcript(draw: Sampler) -> Hashable:
            units = self.search.drawn(rows, draw)
            measured = self.search.in_units(units, rows)
            index = self.moments.radius.drawn(measured.norm_counts(self.moments.radius.candidates), draw)
            radius, longest = float(self.moments.radius.candidates[index]), self.longest(units, index)
            vectors = measured.products(radius)
            cutting = self.test.drawn(vectors, longest, draw) if self.cut else None
            matrix, products = self.last(index, self.verdict(units, index, cutting))
            if products is not None:
                sums = products.drawn(vectors, draw)
                triangle = measured.moment_sum(matrix.steps, matrix.grid)
                return units, index, cutting, sums, matrix.drawn(triangle, draw)
            factor = math.sqrt(radius) / self.farthest(units)
            triangle = measured.weighted_moment_sum(
                matrix.steps, matrix.grid, norm=radius, factor=factor, longest=math.sqrt(radius)
            )
            return units, index, cutting, (), matrix.drawn(triangle, draw)

        return transcript

    def outcomes(self) -> Iterable[Hashable]:
        for units in self.search.outcomes():
            for index in range(self.problem.radius_steps):
                for cutting in self._cuttings(units, index):
                    matrix, products = self.last(index, self.verdict(units, index, cutting))
                    sums: Iterable[tuple[int, ...]] = [()]
                    if products is not None:
                        most = self.problem.n_users * products.steps + products.noise.support
                        sums = product(range(-most, most + 1), repeat=products.size)
                    for total in sums:
                        yield from ((units, index, cutting, total, drawn) for drawn in matrix.outcomes())

    def _cuttings(self, units: Any, index: int) -> Iterator[Any]:
        return iter([None]) if not self.cut else self.test.outcomes(self.longest(units, index))

    def n_outcomes(self) -> int:
        known, total = self.search.n_outcomes(), 0
        if counted(*known) > 2**20:
            return counted(*known, (2, 20))
        for _ in self.outcomes():
            total += 1
            if total > 2**20:
                return COUNTED + 1
        return total

    # Before a fit, and after it.

    def warnings(self) -> list[str]:
        problem = self.problem
        # Second moments with R = D / 2, as of rows of unit variance; and targets that no look lets be cut.
        noise = 2 * self.moments.planned_noise() * math.sqrt(2 * problem.dimension) / TOO_MUCH
        uncut = worth_of_noise(problem.dimension, self.parts["moments"]) * math.sqrt(problem.dimension)
        needed = (*self.search.ratios(), noise, uncut / problem.n_users / TOO_MUCH)
        return too_few(problem, users_needed(problem.n_users, *needed))

    def fit(self, outcome: Any) -> LinearFit:
        problem, (units, index, cutting, sums, drawn) = self.problem, outcome
        size, n_features = problem.dimension, problem.n_features
        verdict = self.verdict(units, index, cutting)
        release, of_products = self.last(index, verdict)
        matrix, entry = release.matrix(drawn), release.sigma / math.sqrt(2)
        squares, factor = None, 1.0
        if of_products is None:
            factor = math.sqrt(float(self.moments.radius.candidates[index])) / self.farthest(units)
            products, squares = matrix[:size, size] / factor, float(matrix[size, size]) / factor**2
            matrix, deviation = matrix[:size, :size], entry / factor
        else:
            step = of_products.grid / problem.n_users
            products = np.array(sums, dtype=np.float64) * step
            deviation = step * math.sqrt(of_products.noise.sigma_squared)
        center, scale = self.search.units(units)
        gram = matrix + regularizer(problem, scale)
        ridge = math.sqrt(2 * size) * entry
        equations = NormalEquations(gram, products, entry, deviation, ridge)
        found = equations.solution()
        slopes, intercept = self.search.line(units, matrix, found)
        residual = None
        if squares is not None:
            weight = max(float(matrix[-1, -1]), 1 / WIDEST**2) if problem.fit_intercept else 1.0
            squared = float(squares - 2 * found @ products + found @ matrix @ found)
            # A quadratic form of the matrix that was released, whose noise has this deviation on a diagonal.
            hidden = NOISY * release.sigma * (float(found @ found) + 1 / factor**2)
            residual = math.sqrt(squared / weight) if squared > hidden else None
        line = np.zeros((n_features + 1, size))
        line[:-1, :n_features] = np.diag(1 / scale)
        shift = 0.0
        if problem.fit_intercept:
            shift = float(center[-1])
            line[-1] = [*(-center[:n_features] / scale), 1.0]
        unsure = self.search.unsure(units, matrix)
        notes = [*self._notes(verdict, equations, squares, units, index), *self.search.notes(units, unsure)]
        notes += self._steep(slopes, equations.estimates(line, np.zeros(len(line)), 1.0, None).deviations, unsure)
        return LinearFit(slopes, intercept + shift, equations, line, shift, unsure, verdict, residual, tuple(notes))

    def _notes(
        self, verdict: Verdict, equations: NormalEquations, squares: float | None, units: Any, index: int
    ) -> Iterator[str]:
        """What is to be said of noise and of cutting."""
        noise, found = equations.of_predictions(constant=self.problem.fit_intercept)
        if verdict.refused and squares is not None and noise > UNCUT * math.sqrt(max(squares, 0.0)):
            yield (
                "targets far out are too many to be cut and too few to be seen, so that noise is for the whole range "
                f"of targets, where most are within {verdict.found / self.longest(units, index):.1g} of it: tighter "
                "target_bounds or more users help"
            )
        if noise > LOUD * found:
            yield (
                f"the noise of predictions, {noise:.2g} of half the range of targets, is as large as what was found, "
                f"{found:.2g}: coefficients may be noise; more users, or fewer columns, help"
            )
        if verdict.clipping is not None:
            moved = verdict.clipping.moved_at_most() / math.sqrt(float(equations.eigen()[0][0]))
            if moved > MOVED * found:
                yield (
                    f"cutting the targets of few users may have moved predictions by up to {moved:.2g} of half the "
                    f"range of targets, where {found:.2g} was found: tighter target_bounds help, or compare with "
                    "clip='never'"
                )

    def _steep(self, slopes: Floats, noise: Floats, said: npt.NDArray[np.bool_]) -> Iterator[str]:
        """What is to be said of columns whose rows far out are predicted by noise, however many these are."""
        # In units of bounds and targets a slope of 1 leads from the middle of the targets' range to its end.
        known = np.isfinite(noise[:-1])
        size = np.where(known, noise[:-1], np.abs(slopes))
        for column in np.flatnonzero((size > 1) & ~said):
            what = "noise in the coefficient" if known[column] else "the coefficient, of unknown noise,"
            yield (
                f"{what} of column {column} of X moves predictions by up to {size[column]:.2g} times half the range of "
                "targets within its bounds: rows far from most may be predicted wrongly; tighter bounds, or leaving it "
                "out, help"
            )


@dataclass(frozen=True)
class LinearFit:
    """A linear regression in units of public bounds, and what is known of it."""

    coefficients: Floats
    intercept: float
    equations: NormalEquations
    line: Floats  # from what solves the equations to coefficients, the intercept last
    shift: float  # and what is added to the intercept
    unsure: npt.NDArray[np.bool_]  # features whose coefficient is not what the line says
    verdict: Verdict
    residual: float | None
    notes: tuple[str, ...]

    @property
    def noise_ratio(self) -> float:
        """The noise of second moments over their least eigenvalue."""
        return self.equations.noise_ratio

    @property
    def converged(self) -> bool:
        """Whether noise is small beside what is known least of the features."""
        return self.noise_ratio <= 0.5

    def released(self, middle: Floats, unit: Floats, target: tuple[float, float]) -> dict[str, Any]:
        """What is known of the fit, in units of the data: columns and targets have middles and units."""
        coefficients = self.line[:-1] / unit[:, None]
        line = np.vstack([coefficients, self.line[-1] - middle @ coefficients]) * target[1]
        shift = np.zeros(len(line))
        shift[-1] = self.shift * target[1] + target[0]
        clipping = None if self.verdict.clipping is None else self.verdict.clipping.in_units(target[1])
        noise = self.equations.estimates(line, shift, target[1], clipping)
        if self.unsure.any():
            # The intercept goes with them, where there is one.
            noise.deviations[np.append(self.unsure, self.line[-1].any())] = math.inf
        return {
            "clipping_": clipping,
            "looks_": self.verdict.looks,
            "refused_": self.verdict.refused,
            "estimates_": noise,
            "coef_noise_": noise.deviations.copy(),
            "residual_std_": None if self.residual is None else self.residual * target[1],
            "notes_": self.notes,
        }


@lru_cache(maxsize=64)
def moment_regression(problem: MomentProblem, cut: bool = True) -> MomentRegression:
    """The plan of a linear regression."""
    return MomentRegression(problem, cut)
