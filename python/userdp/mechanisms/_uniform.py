"""Uniform integers and uniform subsets."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from userdp._numbers import capped_binomial, positive, shown
from userdp._pmf import Pmf
from userdp._sizes import number_of
from userdp.exceptions import BudgetError
from userdp.mechanisms._law import IntegerLaw, Law

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["RandomSubset", "UniformInteger"]

PMF_LIMIT = 2**20
"""The most outputs of a pmf that is written out."""


def _int64(value: int, name: str) -> int:
    number = positive(value, name, -(2**63))
    if number >= 2**63:
        raise ValueError(f"{name} must be below 2**63; got {shown(value)}")
    return number


class UniformInteger(IntegerLaw):
    """An integer from low to high, both included, each with exactly the same probability.

    Parameters
    ----------
    low, high : int
        Integers of 64 bits with low <= high.

    Raises
    ------
    TypeError, ValueError
        For other bounds.

    Notes
    -----
    *Law.* A word w of 128 random bits stands for low + floor(w n / 2**128), where n = high - low + 1. Words with
    w n mod 2**128 < 2**128 mod n are rejected and replaced, which leaves floor(2**128 / n) words for every integer.

    *Time.* A draw takes the same instructions whatever its result is. Only the number of rejections shows (each has
    probability below 2**-64), and that is independent of the integer that is returned.

    References
    ----------
    Lemire, "Fast random integer generation in an interval", ACM Transactions on Modeling and Computer Simulation 29
    (2019).

    Examples
    --------
    >>> die = UniformInteger(low=1, high=6)
    >>> die.pmf().fractions()[0]
    Fraction(1, 6)
    >>> 1 <= die.sample() <= 6
    True
    """

    def __init__(self, *, low: int, high: int) -> None:
        super().__init__(low=low, high=high)
        self.low, self.high = _int64(low, "low"), _int64(high, "high")
        if self.low > self.high:
            raise ValueError(f"low must be at most high; got low={self.low} and high={self.high}")
        from userdp import _core

        self._core_law = _core.UniformInteger(self.low, self.high - self.low + 1)

    def pmf(self) -> Pmf:
        """The law: outputs low, ..., high of weight 1.

        Raises
        ------
        BudgetError
            For more than 2**20 of them.
        """
        count = self.high - self.low + 1
        if count > PMF_LIMIT:
            raise BudgetError(
                f"the pmf would have {count} outputs, and at most {PMF_LIMIT} are written out; each has probability "
                f"1 / {count}"
            )
        return Pmf(tuple(range(self.low, self.high + 1)), (1,) * count)


class RandomSubset(Law[npt.NDArray[np.int64], np.int64]):
    """A subset of {0, ..., population - 1} of a given size, each with exactly the same probability.

    Parameters
    ----------
    population : int
        From 0 to 2**63 - 1.
    subset_size : int
        From 0 to the population; 2**27 elements at most in all the subsets of a call.

    Raises
    ------
    TypeError, ValueError
        For other numbers.

    Notes
    -----
    *Law.* Floyd's algorithm: elements are drawn below j + 1 for j = population - subset_size, ..., population - 1, and
    one that is there already is replaced by j. By induction the set is uniform among the subsets of {0, ..., j} of its
    size.

    *Time.* Not constant time: which elements are chosen shows in branches and addresses. Use it where the subset is not
    secret, or where nobody who must not know it can measure.

    Examples
    --------
    >>> hand = RandomSubset(population=52, subset_size=5)
    >>> hand.sample().shape, hand.sample(3).shape
    ((5,), (3, 5))
    """

    def __init__(self, *, population: int, subset_size: int) -> None:
        super().__init__(population=population, subset_size=subset_size)
        self.population = positive(population, "population", 0)
        self.subset_size = positive(subset_size, "subset_size", 0)
        if self.population >= 2**63:
            raise ValueError(f"population must be below 2**63; got {shown(population)}")
        if self.subset_size > self.population:
            raise ValueError(
                f"subset_size must be at most the population of {self.population}; got {shown(subset_size)}"
            )

    def pmf(self) -> Pmf:
        """The law over subsets as tuples in increasing order, each of weight 1.

        Raises
        ------
        BudgetError
            For more than 2**20 of them.
        """
        if capped_binomial(self.population, self.subset_size, PMF_LIMIT) > PMF_LIMIT:
            raise BudgetError(f"the pmf would have more than {PMF_LIMIT} outputs, all of the same probability")
        subsets = tuple(combinations(range(self.population), self.subset_size))
        return Pmf(subsets, (1,) * len(subsets))

    def _draw(self, source: _core.Source) -> npt.NDArray[np.int64]:
        return self._draw_many(source, ())

    def _draw_many(self, source: _core.Source, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        from userdp import _core

        draws = _core.random_subsets(source, self.population, self.subset_size, number_of(shape))
        return draws.reshape((*shape, self.subset_size))
