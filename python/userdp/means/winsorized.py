"""Winsorized means: intervals that are found privately, then sums of what is clamped to them.

The public rotation, the three methods (Laplace noise on intervals, Gaussian noise in a ball, and the baseline with
noise for the whole range), and their plans.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.estimators.plan import Budget, split_budget
from userdp.exact.epsilon import positive_epsilon, rational_below
from userdp.exact.numbers import counted
from userdp.means.accuracy import ROUNDING, Accuracy, NoiseTerm, UnknownBias
from userdp.means.gaussian_account import NOISE_DISTANCE, GaussianAccount
from userdp.means.problem import Floats, MeanMethod, MeanProblem, laplace_noise
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
    back: Floats = (signs * values)[:dimension] / np.sqrt(size)
    return back


class WinsorizedColumns(MeanMethod):
    """[LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2], on integers; private by [LSAKKMS21, Theorem 1]."""

    # In each of D columns (one, or those after the rotation, which pads their number to a power of two) a bin is drawn
    # with `each.epsilon_range`; every user's value is clipped to the interval around it and rounded to one of W + 1
    # integers; their sum, of sensitivity W, gets discrete Laplace noise of `each.epsilon_noise`. With one bin there is
    # nothing to find. See docs/proofs/winsorized_mean.md.

    def __init__(self, name: str, problem: MeanProblem, lattice: Lattice, each: ColumnBudget) -> None:
        self.name = name
        self.problem = problem
        self.lattice = lattice
        self.each = each
        self.search = RangeSearch(lattice, each.columns, each.epsilon_range)
        most = problem.n_users * lattice.steps
        self.noise = laplace_noise(each.epsilon_noise, lattice.steps, (0, most))

    @property
    def accounting(self) -> str:
        """Why all columns together are within the budget."""
        return self.each.accounting

    def budget(self) -> Budget:
        return self.each.budget(self.problem)

    def predicted_error(self) -> float:
        each = self.each
        return math.sqrt(
            squared_error(self.problem, self.lattice, float(each.epsilon_range), float(each.epsilon_noise))
        )

    def rotated(self) -> bool:
        return self.problem.dimension > 1

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        everybody = vectors.filled()

        def released(draw: Sampler) -> Hashable:
            bins = self.search.drawn(everybody, draw)
            sums = everybody.winsorized_sum(self.search.lows(bins), self.lattice.steps, self.lattice.grid)
            return bins, tuple(draw(self.noise, total) for total in sums.tolist())

        return released

    def accuracy(self, outcome: Any = None) -> Accuracy:
        term = NoiseTerm.of(self.noise, self.lattice.grid / self.problem.n_users)
        bias = None if self.lattice.n_bins == 1 else UnknownBias()
        return Accuracy((term,), self.lattice.grid, bias, mixed=self.rotated())

    def mean(self, outcome: Any) -> Floats:
        bins, sums = outcome
        steps = np.array(sums, dtype=np.float64) / self.problem.n_users
        return self.search.lows(bins) + self.lattice.grid * steps

    def outcomes(self) -> Iterable[Hashable]:
        columns, (low, high) = self.each.columns, self.noise.bounds
        bins = itertools.product(range(self.lattice.n_bins), repeat=columns)
        return itertools.product(bins, itertools.product(range(low, high + 1), repeat=columns))

    def n_outcomes(self) -> int:
        low, high = self.noise.bounds
        return counted((self.lattice.n_bins * (high - low + 1), self.each.columns))

    def warnings(self) -> list[str]:
        return too_few_users(self.name, self.problem, self.lattice, self.each.columns, self.each.cap)


def squared_error(problem: MeanProblem, lattice: Lattice, epsilon_range: float, epsilon_noise: float) -> float:
    """Mean square of the error by noise, and what a range that is missed may add to it."""
    # Each column's noise has 2 (W / (n epsilon_noise))^2; rotating back drops the columns that padding added.
    noise = 2 * (lattice.length / (problem.n_users * epsilon_noise)) ** 2
    missed = missing(lattice, 1, epsilon_range, problem.n_users) * (2 * lattice.bound) ** 2
    return problem.dimension * (noise + missed)


class WinsorizedBall(MeanMethod):
    """Ranges of bounded range, then one clip in L2 and discrete Gaussian noise."""

    # In each of D columns a bin is drawn with `epsilon_range`, whose bounded range costs a part of the account; every
    # user's vector, less the middles of these bins, is clipped to an L2 ball and rounded to integers, toward 0; the
    # noise of their sum has the rest. See docs/proofs/winsorized_mean.md.

    def __init__(
        self,
        name: str,
        problem: MeanProblem,
        columns: int,
        lattice: Lattice,  # the public grid of the bins; its intervals are not used
        radius: float,
        resolution: int,  # the radius has from so many to twice as many steps of a grid
        epsilon_range: Fraction,
        account: GaussianAccount,
        distance: Fraction,
    ) -> None:
        self.name = name
        self.problem = problem
        self.columns = columns
        self.lattice = lattice
        self.radius = radius
        self.grid = power_of_two_below(radius / resolution)
        self.epsilon_range = epsilon_range
        self.account = account
        self.range_share = columns * account.of_search(epsilon_range) / account.amount
        self.distance = distance
        self.search = RangeSearch(lattice, columns, epsilon_range)
        self.steps = math.floor(radius / self.grid)
        self.noise = account.part(1 - self.range_share).noise(2 * self.steps)
        if columns * self.noise.distance > distance:
            raise AssertionError("the noise is farther from the ideal than was accounted for")

    @property
    def accounting(self) -> str:
        """What counts ranges and noise together."""
        return "zCDP" if self.account.unit == "rho" else "Gaussian"

    def budget(self) -> Budget:
        shares = {"range": self.range_share, "noise": 1 - self.range_share}
        return self.problem.gaussian_budget(self.account, shares, self.distance)

    def predicted_error(self) -> float:
        squared = squared_error_of_ball(
            self.problem, self.columns, self.lattice, self.radius, float(self.epsilon_range), self.account
        )
        return math.sqrt(squared)

    def rotated(self) -> bool:
        return self.problem.dimension > 1

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        everybody = vectors.filled()

        def released(draw: Sampler) -> Hashable:
            bins = self.search.drawn(everybody, draw)
            sums = everybody.clipped_sum(self.search.middles(bins), self.radius, self.grid)
            return bins, draw(self.noise, tuple(sums.tolist()))

        return released

    def accuracy(self, outcome: Any = None) -> Accuracy:
        term = NoiseTerm.of(self.noise, self.grid / self.problem.n_users)
        return Accuracy((term,), ROUNDING * self.grid, UnknownBias(), mixed=self.rotated())

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
        cap = largest_range_epsilon(self.account.rho / self.columns, self.account.range_rho)
        return too_few_users(self.name, self.problem, self.lattice, self.columns, cap)


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


class FullRangeLaplace(MeanMethod):
    """The baseline: sums of users' vectors, with discrete Laplace noise for the whole range: pure."""

    # Sensitivity. Within the L2 ball a vector is rounded to integers y with sum y_j^2 <= R^2, so that
    # sum |y_j| <= sqrt(d) R; replacing one user moves the sums by 2 floor(sqrt(d) R) in L1 at most. Within the cube
    # (of one column too) each column's value is one of W + 1 integers, and the sums move by d W. All columns get noise
    # of that L1 sensitivity at the whole epsilon, which is epsilon-DP.

    name = "laplace"
    accounting = "pure"

    def __init__(self, problem: MeanProblem, resolution: int) -> None:
        self.problem = problem
        self.grid = power_of_two_below(problem.max_norm / resolution)
        d, n = problem.dimension, problem.n_users
        if problem.norm == "l2" and d > 1:
            self.steps = math.floor(problem.max_norm / self.grid)
            sensitivity, bounds = 2 * math.isqrt(d * self.steps**2), (-n * self.steps, n * self.steps)
        else:
            self.steps = 2 * math.ceil(problem.max_norm / self.grid)
            sensitivity, bounds = d * self.steps, (0, n * self.steps)
        self.noise = laplace_noise(problem.epsilon, sensitivity, bounds)

    @property
    def low(self) -> float:
        """What the integer 0 stands for."""
        return 0.0 if self.noise.bounds[0] else -self.grid * self.steps / 2

    def budget(self) -> Budget:
        return self.problem.budget(split_budget(self.problem.epsilon, {"noise": 1}))

    def predicted_error(self) -> float:
        return math.sqrt(2 * self.problem.dimension) * self.grid * self.noise.scale / self.problem.n_users

    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        d = self.problem.dimension

        def released(draw: Sampler) -> Hashable:
            if self.low:
                sums = vectors.winsorized_sum(np.full(d, self.low), self.steps, self.grid)
            else:
                sums = vectors.clipped_sum(np.zeros(d), self.problem.max_norm, self.grid)
            return tuple(draw(self.noise, total) for total in sums.tolist())

        return released

    def accuracy(self, outcome: Any = None) -> Accuracy:
        term = NoiseTerm.of(self.noise, self.grid / self.problem.n_users)
        return Accuracy((term,), (0.5 if self.low else ROUNDING) * self.grid, None)

    def mean(self, outcome: Any) -> Floats:
        mean: Floats = self.low + self.grid * (np.array(outcome, dtype=np.float64) / self.problem.n_users)
        return mean

    def outcomes(self) -> Iterable[Hashable]:
        low, high = self.noise.bounds
        return itertools.product(range(low, high + 1), repeat=self.problem.dimension)

    def n_outcomes(self) -> int:
        low, high = self.noise.bounds
        return counted((high - low + 1, self.problem.dimension))


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
    return WinsorizedColumns("practical", problem, lattice, budget)


def _whole_interval(problem: MeanProblem) -> MeanMethod:
    if problem.rho is None:
        epsilon, accounting, delta = _epsilon(problem), "pure", Fraction(0)
    else:
        epsilon, accounting, delta = pure_epsilon(problem.rho), "zCDP", problem.delta
    grid = power_of_two_below(2 * problem.max_norm / _column_resolution(problem, float(epsilon)))
    half = math.ceil(problem.max_norm / grid)
    budget = ColumnBudget(1, Fraction(0), epsilon, accounting, 0.0, delta)
    return WinsorizedColumns("practical", problem, Lattice(grid, half, half, 1), budget)


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
    return WinsorizedBall("practical", problem, columns, lattice, radius, resolution, part, account, distance)


def plan_laplace(problem: MeanProblem) -> MeanMethod:
    """The baseline: Laplace noise for the whole range. Pure; delta is not used."""
    # The root mean square of the error is 2 sqrt(2) B d / (n epsilon) in the L2 ball of radius B, whose L1 diameter is
    # 2 sqrt(d) B, and 2 sqrt(2) B d^(3/2) / (n epsilon) in the cube: it does not fall as users give more.
    d = problem.dimension
    diameter = 2 * (math.sqrt(d) if problem.norm == "l2" or d == 1 else d)
    scale = min(16.0 * problem.n_users, FINEST_SCALE)
    resolution = problem.grid_resolution or _resolution(scale * float(_epsilon(problem)) / diameter, 1)
    return FullRangeLaplace(problem, resolution)


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
