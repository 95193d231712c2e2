"""Winsorized means: intervals that are found privately, then sums of what is clamped to them.

The public rotation, the method, and its three makers: Laplace noise on intervals, Gaussian noise in a ball, and the
baseline with noise for the whole range.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import Budget, split_budget
from userdp.exact.epsilon import positive_epsilon, rational_below
from userdp.exact.numbers import counted
from userdp.means.accuracy import ROUNDING, Accuracy, NoiseTerm, UnknownBias
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.problem import Floats, MeanMethod, MeanProblem, SumNoise, laplace_noise
from userdp.means.range_search import Lattice, RangeSearch, missing, power_of_two_below, range_epsilon, too_few_users
from userdp.means.winsorized_budget import (
    ColumnBudget,
    best_column_budget,
    cheapest,
    largest_range_epsilon,
    pure_epsilon,
)
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.public_randomness import PublicSeed

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

FINEST_SCALE = 2.0**23
"""Half of the largest scale of discrete Laplace noise, in grid steps."""
REACH = 3.0
"""How far an interval reaches beyond its bin, in standard deviations of a user's value in a column."""
LEAST_RESOLUTION, MOST_RESOLUTION = 64, 2**28
"""Steps of the grid in an interval, by default."""
ROTATION_LABEL = "userdp mean rotation"


def padded(dimension: int) -> int:
    """The least power of two that is at least the dimension: a Walsh-Hadamard matrix has such a size."""
    return 1 << (dimension - 1).bit_length()


def signs_of(seed: PublicSeed, dimension: int) -> npt.NDArray[np.int8]:
    """One public random sign for each coordinate of the padded vector."""
    size = padded(dimension)
    blocks = b"".join(seed.block(ROTATION_LABEL, i) for i in range(-(-size // 256)))
    bits = np.unpackbits(np.frombuffer(blocks, dtype=np.uint8), count=size)
    return (1 - 2 * bits.astype(np.int8)).astype(np.int8)


def rotated_back(vector: Floats, signs: npt.NDArray[np.int8], dimension: int) -> Floats:
    """The vector whose rotation this is: post-processing of something released."""
    values, size = vector.copy(), len(vector)
    half = 1
    while half < size:
        pairs = values.reshape(-1, 2, half)
        values = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).ravel()
        half *= 2
    return (signs * values)[:dimension] / np.sqrt(size)


@dataclass(frozen=True, eq=False)
class SummedMean(MeanMethod):
    """Users' vectors, clipped and rounded to integers, summed with noise: perhaps around bins that are drawn first."""

    # With a search a bin is drawn in each column: of one column, or of those after the rotation, which pads their
    # number to a power of two. Then every user's vector is clipped, in each column to an interval or in L2 to a ball,
    # and rounded to integers, whose sums get noise. Makers say of what sensitivity. One bin needs no search.

    name: str
    problem: MeanProblem
    accounting: str  # why all draws together are within the budget
    spent: Budget
    error: float  # predicted
    noise: SumNoise
    grid: float
    steps: int  # of the grid: in an interval, or in the radius of the ball
    rounding: float  # of a coordinate, at most: in steps
    search: RangeSearch | None = None
    radius: float | None = None  # of the ball; None for intervals
    cap: float = math.inf  # the most epsilon of a range

    def budget(self) -> Budget:
        return self.spent

    def predicted_error(self) -> float:
        return self.error

    def rotated(self) -> bool:
        return self.search is not None and self.problem.dimension > 1

    @property
    def _columns(self) -> int:
        return self.problem.dimension if self.search is None else self.search.columns

    def _origin(self, bins: tuple[int, ...]) -> Floats:
        """What the integers 0 stand for."""
        if self.search is None:
            return np.full(self._columns, 0.0 if self.radius else -self.grid * self.steps / 2)
        return self.search.middles(bins) if self.radius else self.search.lows(bins)

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        everybody = vectors if self.search is None else vectors.filled()

        def released(draw: Sampler) -> Hashable:
            bins = () if self.search is None else self.search.drawn(everybody, draw)
            origin = self._origin(bins)
            if self.radius is None:
                sums = everybody.winsorized_sum(origin, self.steps, self.grid)
            else:
                sums = everybody.clipped_sum(origin, self.radius, self.grid)
            noisy = self.noise.drawn(draw, tuple(sums.tolist()))
            return noisy if self.search is None else (bins, noisy)

        return released

    def accuracy(self, outcome: Any = None) -> Accuracy:
        clips = self.search is not None and (self.radius is not None or self.search.lattice.n_bins > 1)
        term = NoiseTerm.of(self.noise.mechanism, self.grid / self.problem.n_users)
        return Accuracy((term,), self.rounding * self.grid, UnknownBias() if clips else None, mixed=self.rotated())

    def mean(self, outcome: Any) -> Floats:
        bins, sums = ((), outcome) if self.search is None else outcome
        return self._origin(bins) + self.grid * (np.array(sums, dtype=np.float64) / self.problem.n_users)

    @property
    def _released(self) -> range:
        """What a released sum can be."""
        return self.noise.released(self.problem.n_users * self.steps)

    def outcomes(self) -> Iterable[Hashable]:
        sums = itertools.product(self._released, repeat=self._columns)
        if self.search is None:
            return sums
        bins = itertools.product(range(self.search.lattice.n_bins), repeat=self._columns)
        return itertools.product(bins, sums)

    def n_outcomes(self) -> int:
        n_bins = 1 if self.search is None else self.search.lattice.n_bins
        return counted((n_bins * len(self._released), self._columns))

    def warnings(self) -> list[str]:
        return [] if self.search is None else too_few_users(self.name, self.problem, self.search, self.cap)


def winsorized_columns(name: str, problem: MeanProblem, lattice: Lattice, each: ColumnBudget) -> SummedMean:
    """[LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2], on integers; private by [LSAKKMS21, Theorem 1]."""
    # In each column a bin is drawn with `each.epsilon_range`; every user's value is clipped to the interval around it
    # and rounded to one of W + 1 integers; their sum, of sensitivity W, gets discrete Laplace noise of
    # `each.epsilon_noise`. See docs/proofs/winsorized_mean.md.
    return SummedMean(
        name,
        problem,
        each.accounting,
        each.budget(problem),
        math.sqrt(squared_error(problem, lattice, float(each.epsilon_range), float(each.epsilon_noise))),
        SumNoise(laplace_noise(each.epsilon_noise, lattice.steps, (0, problem.n_users * lattice.steps))),
        lattice.grid,
        lattice.steps,
        rounding=1.0,
        search=RangeSearch(lattice, each.columns, each.epsilon_range),
        cap=each.cap,
    )


def squared_error(problem: MeanProblem, lattice: Lattice, epsilon_range: float, epsilon_noise: float) -> float:
    """Mean square of the error by noise, and what a range that is missed may add to it."""
    # Each column's noise has 2 (W / (n epsilon_noise))^2; rotating back drops the columns that padding added.
    noise = 2 * (lattice.length / (problem.n_users * epsilon_noise)) ** 2
    missed = missing(lattice, 1, epsilon_range, problem.n_users) * (2 * lattice.bound) ** 2
    return problem.dimension * (noise + missed)


def winsorized_ball(
    problem: MeanProblem,
    search: RangeSearch,  # of which only the bins are used, not the intervals
    radius: float,
    resolution: int,  # the radius has from so many to twice as many steps of a grid
    epsilon_range: Fraction,
    account: GaussianAccount,
    distance: Fraction,
) -> SummedMean:
    """Ranges of bounded range, then one clip in L2 and discrete Gaussian noise."""
    # In each column a bin is drawn with `epsilon_range`, whose bounded range costs a part of the account; every
    # user's vector, less the middles of these bins, is clipped to an L2 ball and rounded to integers, toward 0; the
    # noise of their sum has the rest. See docs/proofs/winsorized_mean.md.
    columns, grid = search.columns, power_of_two_below(radius / resolution)
    steps = math.floor(radius / grid)
    share = columns * account.of_search(epsilon_range) / account.amount
    noise = account.part(1 - share).noise(2 * steps)
    if columns * noise.distance > distance:
        raise AssertionError("the noise is farther from the ideal than was accounted for")
    squared = squared_error_of_ball(problem, columns, search.lattice, radius, float(epsilon_range), account)
    return SummedMean(
        "practical",
        problem,
        "zCDP" if account.unit == "rho" else "Gaussian",
        problem.gaussian_budget(account, {"range": share, "noise": 1 - share}, distance),
        math.sqrt(squared),
        SumNoise(noise),
        grid,
        steps,
        ROUNDING,
        search,
        radius,
        largest_range_epsilon(account.rho / columns, account.range_rho),
    )


def squared_error_of_ball(
    problem: MeanProblem,
    columns: int,
    lattice: Lattice,
    radius: float,
    epsilon_range: float,
    account: GaussianAccount,
) -> float:
    """Mean square of the error by noise, and what a range that is missed may add to it."""
    # Each column's noise has (2 radius / n)^2 / (2 rho'), where rho' is what the ranges leave.
    left = float(account.rho) - columns * epsilon_range**2 * account.range_rho
    noise = (2 * radius / problem.n_users) ** 2 / (2 * left)
    missed = missing(lattice, 1, epsilon_range, problem.n_users) * (2 * lattice.bound) ** 2
    return problem.dimension * (noise + missed)


def plan_paper(problem: MeanProblem) -> MeanMethod:
    """[LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2] (with [LSAKKMS21, Lemma 2]), their misprints put right."""
    # Users' values are taken to be within tau of one point, all with probability 1 - beta: tau = u sqrt(2 ln(2 n/beta))
    # for one column and a public concentration u. Bins are 2 tau wide and intervals reach 3 tau from their middle. Half
    # of the budget finds the range, half is for noise. Several columns are rotated; a column's tau is then
    # 10 tau sqrt(ln(D n / beta) / D) for tau = u (1 + sqrt(2 ln(n / beta))), and its
    # epsilon is epsilon / sqrt(8 D ln(1 / delta)).
    n, beta, columns = problem.n_users, problem.beta, padded(problem.dimension)
    if columns == 1:
        tau = problem.possible_concentration * math.sqrt(2 * math.log(2 * n / beta))
    else:
        tau = problem.possible_concentration * (1 + math.sqrt(2 * math.log(n / beta)))
        tau *= 10 * math.sqrt(math.log(columns * n / beta) / columns)
    if problem.rho is not None:
        # Range and noise get the same epsilon e: e^2 / 8 + e^2 / 2 in each column.
        each, accounting, delta = 2 * pure_epsilon(problem.rho / columns * Fraction(4, 5)), "zCDP", problem.delta
    elif columns == 1:
        each, accounting, delta = _epsilon(problem), "pure", Fraction(0)
    else:
        each, accounting, delta = _paper_share(problem, columns), "optimal composition", problem.delta
    lattice = Lattice.of(problem.ball, 2 * tau, 2 * tau, _column_resolution(problem, float(each)))
    half = each / 2
    return winsorized_columns(
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
            f"epsilon={float(_epsilon(problem)):.4g} is too large for method='paper': {columns} columns"
            f" are not proved private at it and delta={float(problem.delta):.4g}; method='practical' has no such limit"
        ) from None


def plan_practical(problem: MeanProblem) -> MeanMethod:
    """The winsorized mean with what makes it accurate: of its variants the one with the least predicted error."""
    # One column: intervals reach 3 u beyond a bin of u / 2; most of the budget goes into noise, and as much into
    # finding the range as makes a missed range negligible. If a range is not worth its cost, the interval is all of
    # [-max_norm, max_norm].
    #
    # Several columns are rotated by random signs and the Walsh-Hadamard transform. Then either each column has an
    # interval, which reaches 3 u / sqrt(D) beyond a bin, and Laplace noise, accounted for as is best of what is
    # certified (docs/proofs/winsorized_mean.md); or, with a delta, ranges give the middle of a ball of radius
    # sqrt(u^2 (1 + 2 / sqrt(D))^2 + D w^2 / 4) for bins of width w = u / (2 sqrt(D)), vectors are clipped to it in L2,
    # and their sum gets discrete Gaussian noise.
    columns = padded(problem.dimension)
    plans: list[MeanMethod] = []
    if problem.part is None or problem.part.unit == "rho":
        plans.append(_columns(problem, columns))
        if columns == 1:
            plans.append(_whole_interval(problem))
    if problem.delta:
        with suppress(ValueError):  # at so large an epsilon the distance of the noise would take all of delta
            plans.append(_ball(problem, columns))
    return min(plans, key=lambda plan: plan.predicted_error())


def _columns(problem: MeanProblem, columns: int) -> MeanMethod:
    sigma = problem.possible_concentration / math.sqrt(columns)
    each = float(_epsilon(problem)) / (columns if not problem.delta else math.sqrt(columns))
    lattice = Lattice.of(_column_bound(problem, columns), sigma / 2, REACH * sigma, _column_resolution(problem, each))
    budget = best_column_budget(
        columns,
        problem.epsilon,
        problem.delta,
        lambda part, noise: squared_error(problem, lattice, part, noise),
        range_epsilon(lattice, columns, problem.n_users, problem.beta),
        problem.rho,
    )
    return winsorized_columns("practical", problem, lattice, budget)


def _whole_interval(problem: MeanProblem) -> MeanMethod:
    if problem.rho is None:
        epsilon, accounting, delta = _epsilon(problem), "pure", Fraction(0)
    else:
        epsilon, accounting, delta = pure_epsilon(problem.rho), "zCDP", problem.delta
    grid = power_of_two_below(2 * problem.max_norm / _column_resolution(problem, float(epsilon)))
    half = math.ceil(problem.max_norm / grid)
    budget = ColumnBudget(1, Fraction(0), epsilon, accounting, 0.0, delta)
    return winsorized_columns("practical", problem, Lattice(grid, half, half, 1), budget)


def _ball(problem: MeanProblem, columns: int) -> MeanMethod:
    n, concentration = problem.n_users, problem.possible_concentration
    sigma = concentration / math.sqrt(columns)
    lattice = Lattice.of(_column_bound(problem, columns), sigma / 2, 0.0, LEAST_RESOLUTION)
    # The mean may be at the same place of the bin in every column, at its end, say.
    off = columns * lattice.length**2 / 4
    radius = math.sqrt((concentration * (1 + 2 / math.sqrt(columns))) ** 2 + off)
    radius = min(radius, 2 * problem.ball)
    distance = columns * NOISE_DISTANCE
    account = problem.account(columns, LEAST_RESOLUTION)
    part = cheapest(
        largest_range_epsilon(account.rho / columns, account.range_rho),
        range_epsilon(lattice, columns, n, problem.beta),
        lambda part: squared_error_of_ball(problem, columns, lattice, radius, float(part), account),
    )
    # Rounding toward 0 moves a sum by n steps at most, which noise must exceed by far.
    resolution = problem.grid_resolution or _resolution(16 * n * math.sqrt(2 * float(account.rho)))
    return winsorized_ball(problem, RangeSearch(lattice, columns, part), radius, resolution, part, account, distance)


def plan_laplace(problem: MeanProblem) -> MeanMethod:
    """The baseline, in which nobody is clipped: Laplace noise for the whole range. Pure; delta is not used."""
    # The root mean square of the error is 2 sqrt(2) B d / (n epsilon) in the L2 ball of radius B, whose L1 diameter is
    # 2 sqrt(d) B, and 2 sqrt(2) B d^(3/2) / (n epsilon) in the cube: it does not fall as users give more.
    d = problem.dimension
    diameter = 2 * (math.sqrt(d) if problem.norm == "l2" or d == 1 else d)
    scale = min(16.0 * problem.n_users, FINEST_SCALE)
    resolution = problem.grid_resolution or _resolution(scale * float(_epsilon(problem)) / diameter, 1)
    # Sensitivity. Within the L2 ball a vector is rounded to integers y with sum y_j^2 <= R^2, so that
    # sum |y_j| <= sqrt(d) R; replacing one user moves the sums by 2 floor(sqrt(d) R) in L1 at most. Within the cube
    # (of one column too) each column's value is one of W + 1 integers, and the sums move by d W. All columns get noise
    # of that L1 sensitivity at the whole epsilon, which is epsilon-DP.
    grid, n = power_of_two_below(problem.max_norm / resolution), problem.n_users
    if problem.norm == "l2" and d > 1:
        radius, steps = problem.max_norm, math.floor(problem.max_norm / grid)
        sensitivity, bounds, rounding = 2 * math.isqrt(d * steps**2), (-n * steps, n * steps), ROUNDING
    else:
        radius, steps = None, 2 * math.ceil(problem.max_norm / grid)
        sensitivity, bounds, rounding = d * steps, (0, n * steps), 0.5
    noise = laplace_noise(problem.epsilon, sensitivity, bounds)
    spent = problem.budget(split_budget(problem.epsilon, {"noise": 1}))
    error = math.sqrt(2 * d) * grid * noise.scale / n
    return SummedMean("laplace", problem, "pure", spent, error, SumNoise(noise), grid, steps, rounding, radius=radius)


def _column_bound(problem: MeanProblem, columns: int) -> float:
    """Where bins of a column end: what is farther out counts as in the last bin."""
    # A rotated coordinate of a fixed vector of length B exceeds B sqrt(2 ln(2 / beta) / D) for a share beta of all
    # signs at most, and B never.
    if columns == 1:
        return problem.max_norm
    return problem.ball * min(1.0, math.sqrt(2 * math.log(4 * columns / problem.beta) / columns))


def _column_resolution(problem: MeanProblem, epsilon: float) -> int:
    """Steps of an interval, at which rounding is small beside the noise of a column of this epsilon."""
    finest = FINEST_SCALE / 4 * epsilon
    wanted = min(8.0 * problem.n_users * epsilon, finest)
    return problem.grid_resolution or _resolution(wanted, least=min(LEAST_RESOLUTION, finest))


def _resolution(wanted: float, least: float = LEAST_RESOLUTION) -> int:
    return int(power_of_two_below(min(max(wanted, least, 1), MOST_RESOLUTION)))


def _epsilon(problem: MeanProblem) -> Fraction:
    return rational_below(positive_epsilon(problem.epsilon))
