"""Winsorized means: intervals that are found privately, then sums of what is clamped to them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget
from userdp.exact.numbers import counted
from userdp.means.full_range import FullRangeLaplace
from userdp.means.plan import Floats, MeanMethod, MeanProblem
from userdp.means.range_search import Lattice, RangeSearch, missing, power_of_two_below, range_epsilon, too_few_users
from userdp.means.rotation import padded
from userdp.means.winsorized_budget import (
    ColumnBudget,
    best_column_budget,
    cheapest,
    largest_range_epsilon,
    pure_epsilon,
    rational_epsilon,
)
from userdp.means.winsorized_columns import WinsorizedColumns, squared_error
from userdp.mechanisms import DiscreteGaussian
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

FINEST_SCALE = 2.0**23
"""Half of the largest scale of discrete Laplace noise, in grid steps."""
GAUSSIAN_DISTANCE = Fraction(1, 2**90)
"""A bound of how far the noise of one integer is from the ideal discrete Gaussian."""
REACH = 3.0
"""How far an interval reaches beyond its bin, in standard deviations of a user's value in a column."""
FEWEST_STEPS, MOST_STEPS = 64, 2**28


def plan_paper(problem: MeanProblem) -> MeanMethod:
    """[LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2], with what is wrong in print put right.

    Notes
    -----
    Users' values are taken to be within tau of one point, all with probability 1 - beta: tau = u sqrt(2 ln(2 n / beta))
    for one column and a public spread u. Bins are 2 tau wide and intervals reach 3 tau from their middle. Half of the
    budget finds the range, half is for noise. Several columns are rotated; a column's tau is then
    10 tau sqrt(ln(D n / beta) / D) for tau = u (1 + sqrt(2 ln(n / beta))), and its epsilon is
    epsilon / sqrt(8 D ln(1 / delta)).

    Raises
    ------
    ValueError
        For several columns without delta; for epsilon and delta at which that share of epsilon is not certified.

    References
    ----------
    [LSAKKMS21, Lemma 2].
    """
    _refuse_private_radius(problem, "paper")
    n, beta, columns = problem.n_users, problem.beta, padded(problem.dimension)
    if columns == 1:
        tau = problem.possible_spread * math.sqrt(2 * math.log(2 * n / beta))
    else:
        tau = problem.possible_spread * (1 + math.sqrt(2 * math.log(n / beta)))
        tau *= 10 * math.sqrt(math.log(columns * n / beta) / columns)
    if problem.rho is not None:
        # Range and noise get the same epsilon e: e^2 / 8 + e^2 / 2 in each column.
        each, accounting, delta = 2 * pure_epsilon(problem.rho / columns * Fraction(4, 5)), "zCDP", problem.delta
    elif columns == 1:
        each, accounting, delta = rational_epsilon(problem.epsilon), "pure", Fraction(0)
    else:
        each, accounting, delta = _paper_share(problem, columns), "optimal composition", problem.delta
    lattice = Lattice.of(problem.ball, 2 * tau, 2 * tau, _column_steps(problem, float(each)))
    half = each / 2
    return WinsorizedColumns(
        "paper", problem, lattice, ColumnBudget(columns, half, half, accounting, float(half), delta)
    )


def _paper_share(problem: MeanProblem, columns: int) -> Fraction:
    """The theorem's share, epsilon / sqrt(8 D ln(1 / delta)), where exact composition certifies it."""
    from userdp.accounting import dimension_epsilon

    if not problem.delta:
        raise ValueError(
            f"delta must be > 0 for method='paper' with {problem.dimension} columns; method='practical' takes delta=0"
        )
    try:
        return dimension_epsilon(problem.epsilon, problem.delta, columns)
    except ValueError:
        raise ValueError(
            f"epsilon={float(rational_epsilon(problem.epsilon)):.4g} is too large for method='paper': {columns} columns"
            f" are not proved private at it and delta={float(problem.delta):.4g}; method='practical' has no such limit"
        ) from None


def plan_practical(problem: MeanProblem) -> MeanMethod:
    """The winsorized mean with what makes it accurate.

    Notes
    -----
    One column: intervals reach 3 u beyond a bin of u / 2; most of the budget goes into noise, and as much into
    finding the range as makes a missed range negligible. If a range is not worth its cost, the interval is all of
    [-bound, bound].

    Several columns are rotated by random signs and the Walsh-Hadamard transform. Then either each column has an
    interval, which reaches 3 u / sqrt(D) beyond a bin, and Laplace noise, accounted for as is best of what is certified
    (docs/proofs/winsorized_mean.md); or, with a delta, ranges give the middle of a ball of radius
    sqrt(u^2 (1 + 2 / sqrt(D))^2 + D w^2 / 4) for bins of width w = u / (2 sqrt(D)), vectors are clipped to it in L2,
    and their sum gets discrete Gaussian noise. It is the one with the least predicted error.
    """
    _refuse_private_radius(problem, "practical")
    columns = padded(problem.dimension)
    plans = [_columns(problem, columns)]
    if columns == 1:
        plans.append(_whole_interval(problem))
    if problem.delta:
        # None at an epsilon so large that the distance of the noise from the ideal distribution would take all of
        # delta.
        with suppress(ValueError):
            plans.append(_ball(problem, columns))
    return min(plans, key=lambda plan: plan.predicted_error())


def _columns(problem: MeanProblem, columns: int) -> MeanMethod:
    sigma = problem.possible_spread / math.sqrt(columns)
    each = float(rational_epsilon(problem.epsilon)) / (columns if not problem.delta else math.sqrt(columns))
    lattice = Lattice.of(_column_bound(problem, columns), sigma / 2, REACH * sigma, _column_steps(problem, each))
    budget = best_column_budget(
        columns,
        problem.epsilon,
        problem.delta,
        lambda part, noise: squared_error(problem, lattice, part, noise),
        range_epsilon(lattice, columns, problem.n_users, problem.beta),
        problem.rho,
    )
    return WinsorizedColumns("practical", problem, lattice, budget)


def _whole_interval(problem: MeanProblem) -> MeanMethod:
    if problem.rho is None:
        epsilon, accounting, delta = rational_epsilon(problem.epsilon), "pure", Fraction(0)
    else:
        epsilon, accounting, delta = pure_epsilon(problem.rho), "zCDP", problem.delta
    grid = power_of_two_below(2 * problem.bound / _column_steps(problem, float(epsilon)))
    half = math.ceil(problem.bound / grid)
    budget = ColumnBudget(1, Fraction(0), epsilon, accounting, 0.0, delta)
    return WinsorizedColumns("practical", problem, Lattice(grid, half, half, 1), budget)


def _ball(problem: MeanProblem, columns: int) -> MeanMethod:
    n, spread = problem.n_users, problem.possible_spread
    sigma = spread / math.sqrt(columns)
    lattice = Lattice.of(_column_bound(problem, columns), sigma / 2, 0.0, FEWEST_STEPS)
    # The mean may be at the same place of the bin in every column, at its end, say.
    off = columns * lattice.length**2 / 4
    radius = math.sqrt((spread * (1 + 2 / math.sqrt(columns))) ** 2 + off)
    radius = min(radius, 2 * problem.ball)
    distance = columns * GAUSSIAN_DISTANCE
    rho = problem.largest_rho(distance)
    part = cheapest(
        largest_range_epsilon(rho / columns),
        range_epsilon(lattice, columns, n, problem.beta),
        lambda part: squared_error_of_ball(problem, columns, lattice, radius, float(part), float(rho)),
    )
    # Rounding toward 0 moves a sum by n steps at most, which noise must exceed by far.
    steps = problem.steps or _steps(16 * n * math.sqrt(2 * float(rho)))
    return WinsorizedBall("practical", problem, columns, lattice, radius, steps, part, rho, distance)


def plan_laplace(problem: MeanProblem) -> MeanMethod:
    """The baseline: Laplace noise for the whole range. Pure; delta is not used.

    Notes
    -----
    The root mean square of the error is 2 sqrt(2) B d / (n epsilon) in the L2 ball of radius B, whose L1 diameter is
    2 sqrt(d) B, and 2 sqrt(2) B d^(3/2) / (n epsilon) in the cube: it does not fall as users give more.
    """
    _refuse_private_radius(problem, "laplace")
    d = problem.dimension
    diameter = 2 * (math.sqrt(d) if problem.norm == "l2" or d == 1 else d)
    scale = min(16.0 * problem.n_users, FINEST_SCALE)
    return FullRangeLaplace(
        problem, problem.steps or _steps(scale * float(rational_epsilon(problem.epsilon)) / diameter, 1)
    )


def _column_bound(problem: MeanProblem, columns: int) -> float:
    """Where bins of a column end: what is farther out counts as in the last bin.

    A rotated coordinate of a fixed vector of length B exceeds B sqrt(2 ln(2 / beta) / D) for a share beta of all signs
    at most, and B never.
    """
    if columns == 1:
        return problem.bound
    return problem.ball * min(1.0, math.sqrt(2 * math.log(4 * columns / problem.beta) / columns))


def _column_steps(problem: MeanProblem, epsilon: float) -> int:
    """Steps of an interval, at which rounding is small beside the noise of a column of this epsilon."""
    finest = FINEST_SCALE / 4 * epsilon
    return problem.steps or _steps(min(8.0 * problem.n_users * epsilon, finest), least=min(FEWEST_STEPS, finest))


def _steps(wanted: float, least: float = FEWEST_STEPS) -> int:
    return int(power_of_two_below(min(max(wanted, least, 1), MOST_STEPS)))


def _refuse_private_radius(problem: MeanProblem, name: str) -> None:
    if problem.private_radius:
        raise ValueError(f"private_radius goes with method='auto' and 'iterated'; got True with method={name!r}")


class WinsorizedBall(MeanMethod):
    """Ranges of bounded range, then one clip in L2 and discrete Gaussian noise.

    In each of D columns a bin is drawn with `epsilon_range`; every user's vector, less the middles of these bins, is
    clipped to an L2 ball and rounded to integers, toward 0; the noise of their sum has the rest of rho. See
    docs/proofs/winsorized_mean.md.

    Parameters
    ----------
    name : str
    problem : MeanProblem
    columns : int
        One, or those after the rotation, which pads their number to a power of two.
    lattice : Lattice
        The public grid of the bins; its intervals are not used.
    radius : float
        Of the ball.
    steps : int
        The radius has from so many to twice as many steps of a grid.
    epsilon_range : Fraction
        Of bounded range, for each column: epsilon_range^2 / 8 of rho.
    rho, distance : Fraction
        Of all.
    """

    accounting = "zCDP"

    def __init__(
        self,
        name: str,
        problem: MeanProblem,
        columns: int,
        lattice: Lattice,
        radius: float,
        steps: int,
        epsilon_range: Fraction,
        rho: Fraction,
        distance: Fraction,
    ) -> None:
        self.name = name
        self.problem = problem
        self.columns = columns
        self.lattice = lattice
        self.radius = radius
        self.grid = power_of_two_below(radius / steps)
        self.epsilon_range = epsilon_range
        self.rho_range = columns * epsilon_range**2 / 8
        self.rho = rho
        self.distance = distance
        self.search = RangeSearch(lattice, columns, epsilon_range)
        self.steps = math.floor(radius / self.grid)
        self.noise = DiscreteGaussian(rho=rho - self.rho_range, sensitivity=2 * self.steps)
        if columns * self.noise.distance > distance:
            raise AssertionError("the noise is farther from the ideal than was accounted for")

    def budget(self) -> Budget:
        parts = {"range": self.rho_range, "noise": self.rho - self.rho_range}
        delta, rho, distance = self.problem.delta, self.rho, self.distance
        return self.problem.budget(parts, delta=delta, rho=rho, distance=distance, unit="rho")

    def predicted_error(self) -> float:
        squared = squared_error_of_ball(
            self.problem, self.columns, self.lattice, self.radius, float(self.epsilon_range), float(self.rho)
        )
        return math.sqrt(squared)

    def rotated(self) -> bool:
        return self.problem.dimension > 1

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        def released(draw: Sampler) -> Hashable:
            bins = self.search.drawn(vectors, draw)
            sums = vectors.clipped_sum(self.search.middles(bins), self.radius, self.grid)
            return bins, draw(self.noise, tuple(sums.tolist()))

        return released

    def mean(self, outcome: Any) -> Floats:
        bins, sums = outcome
        return self.search.middles(bins) + self.grid * (np.array(sums, dtype=np.float64) / self.problem.n_users)

    def outcomes(self) -> Iterable[Hashable]:
        most = self.problem.n_users * self.steps + self.noise.support
        bins = itertools.product(range(self.lattice.n_bins), repeat=self.columns)
        return itertools.product(bins, itertools.product(range(-most, most + 1), repeat=self.columns))

    def n_outcomes(self) -> int:
        most = self.problem.n_users * self.steps + self.noise.support
        return counted((self.lattice.n_bins * (2 * most + 1), self.columns))

    def warnings(self) -> list[str]:
        cap = largest_range_epsilon(self.rho / self.columns)
        return too_few_users(self.name, self.problem, self.lattice, self.columns, cap)


def squared_error_of_ball(
    problem: MeanProblem, columns: int, lattice: Lattice, radius: float, epsilon_range: float, rho: float
) -> float:
    """Mean square of the error by noise, and what a range that is missed may add to it.

    Each column's noise has (2 radius / n)^2 / (2 rho'), where rho' is what the ranges leave.
    """
    noise = (2 * radius / problem.n_users) ** 2 / (2 * (rho - columns * epsilon_range**2 / 8))
    missed = missing(lattice, 1, epsilon_range, problem.n_users) * (2 * lattice.bound) ** 2
    return problem.dimension * (noise + missed)
