"""The winsorized mean with Gaussian noise: an interval in every column, then a ball around the middle of all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimation._mean_method import Floats, MeanMethod, MeanProblem
from userdp.estimation._range_search import Lattice, RangeSearch, missing, power_of_two_below, too_few_users
from userdp.estimation._winsorized_budget import largest_range_epsilon
from userdp.learners._privacy import Spending
from userdp.learners._program import Draw, Program
from userdp.mechanisms import DiscreteGaussian

if TYPE_CHECKING:
    from userdp._vectors import UserVectors

__all__ = ["WinsorizedBall", "squared_error_of_ball"]


class WinsorizedBall(MeanMethod):
    """Ranges of bounded range, then one clip in L2 and discrete Gaussian noise.

    In each of D columns a bin is drawn with `epsilon_range`; every user's vector, less the middles of these bins, is
    clipped to an L2 ball and rounded to integers, towards 0; the noise of their sum has the rest of rho. See
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

    def spending(self) -> Spending:
        budget = {"range": self.rho_range, "noise": self.rho - self.rho_range}
        return Spending(budget, self.problem.delta, rho=self.rho, distance=self.distance, budget_unit="rho")

    def predicted_error(self) -> float:
        squared = squared_error_of_ball(
            self.problem, self.columns, self.lattice, self.radius, float(self.epsilon_range), float(self.rho)
        )
        return math.sqrt(squared)

    def rotated(self) -> bool:
        return self.problem.dimension > 1

    def program(self, vectors: UserVectors) -> Program:
        def released(draw: Draw) -> Hashable:
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
        return int((self.lattice.n_bins * (2 * most + 1)) ** self.columns)

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
