"""The winsorized mean with Laplace noise: in every column an interval, and a noisy sum of values within it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.estimators.plan import Budget
from userdp.exact.numbers import counted
from userdp.means.plan import Floats, MeanMethod, MeanProblem
from userdp.means.range_search import Lattice, RangeSearch, laplace_noise, missing, too_few_users
from userdp.means.winsorized_budget import ColumnBudget
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors


class WinsorizedColumns(MeanMethod):
    """[LSAKKMS21, Algorithm 1] and [LSAKKMS21, Algorithm 2], on integers.

    In each of D columns a bin is drawn with `each.epsilon_range`; every user's value is clipped to the interval
    around it and rounded to one of W + 1 integers; their sum, of sensitivity W, gets discrete Laplace noise of
    `each.epsilon_noise`. With one bin there is nothing to find. See docs/proofs/winsorized_mean.md.

    Parameters
    ----------
    name : str
    problem : MeanProblem
    lattice : Lattice
        The public grid.
    each : ColumnBudget
        What each column spends, and why that is the whole budget. It has one column, or those after the rotation,
        which pads their number to a power of two.

    References
    ----------
    [LSAKKMS21, Theorem 1].
    """

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
        def released(draw: Sampler) -> Hashable:
            bins = self.search.drawn(vectors, draw)
            sums = vectors.winsorized_sum(self.search.lows(bins), self.lattice.steps, self.lattice.grid)
            return bins, tuple(draw(self.noise, total) for total in sums.tolist())

        return released

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
    """Mean square of the error by noise, and what a range that is missed may add to it.

    Each column's noise has 2 (W / (n epsilon_noise))^2; rotating back drops the columns that padding added.
    """
    noise = 2 * (lattice.length / (problem.n_users * epsilon_noise)) ** 2
    missed = missing(lattice, 1, epsilon_range, problem.n_users) * (2 * lattice.bound) ** 2
    return problem.dimension * (noise + missed)
