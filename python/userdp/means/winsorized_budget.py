"""What each of several columns may spend on its range and on its noise: the best of the certified accounts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType

from userdp.estimators.plan import Budget, BudgetUnit
from userdp.exact.epsilon import positive_epsilon, rational_below
from userdp.exact.numbers import Epsilon
from userdp.means.problem import MeanProblem
from userdp.means.range_search import fraction_below

RANGE_SHARE = 0.3
"""The most of rho that goes into finding ranges."""
MOST_RANGE_EPSILON = 64.0
"""Range finding refuses 88 and more, and never needs as much."""
CHOICES = 256
MOST_COLUMNS_IN_GROUPS = 128
"""The exact composition of two groups takes a double sum."""
HALVINGS = 16

Error = Callable[[float, float], float]
"""Of the epsilons of range and noise of a column."""


@dataclass(frozen=True)
class ColumnBudget:
    """What each column spends."""

    columns: int
    epsilon_range: Fraction  # of bounded range, hence pure as well; 0 when there is nothing to find
    epsilon_noise: Fraction  # pure
    accounting: str  # why all columns are within the budget: "pure", "optimal composition [of two groups]", "zCDP"
    cap: float  # the most that this account would have allowed the range
    delta: Fraction = Fraction(0)

    def budget(self, problem: MeanProblem) -> Budget:
        """All columns together. In rho, bounded range eta costs eta^2 / 8 and pure epsilon costs epsilon^2 / 2."""
        in_rho = {"range": self.epsilon_range**2 / 8, "noise": self.epsilon_noise**2 / 2}
        parts = {"range": self.epsilon_range, "noise": self.epsilon_noise}
        unit: BudgetUnit = "epsilon"
        if self.accounting == "zCDP":
            parts, unit = {name: self.columns * part for name, part in in_rho.items()}, "rho"
        elif self.accounting == "pure":
            parts = {name: self.columns * part for name, part in parts.items()}
        else:
            parts = {f"{name}, each of {self.columns} columns": part for name, part in parts.items()}
        spent = MappingProxyType({name: part for name, part in parts.items() if part})
        rho = self.columns * sum(in_rho.values(), Fraction(0))
        return problem.budget(spent, delta=self.delta, rho=rho, unit=unit)


@dataclass(frozen=True)
class _Account:
    """What range and noise of a column have together: a rho in zCDP, otherwise an epsilon of pure composition."""

    name: str
    each: Fraction

    @property
    def cap(self) -> float:
        """The most epsilon of the range."""
        return (
            largest_range_epsilon(self.each) if self.name == "zCDP" else min(float(self.each) / 2, MOST_RANGE_EPSILON)
        )

    def noise(self, epsilon_range: Fraction) -> Fraction:
        """The epsilon of the noise that a range leaves."""
        if self.name == "zCDP":
            return pure_epsilon(self.each - epsilon_range**2 / 8)
        return self.each - epsilon_range


def pure_epsilon(rho: Fraction) -> Fraction:
    """An epsilon, just below the largest, whose pure differential privacy is rho-zCDP: epsilon^2 / 2 <= rho."""
    proposed = fraction_below(math.sqrt(2 * float(rho)))
    while proposed**2 > 2 * rho:
        proposed = fraction_below(proposed * (1 - Fraction(1, 2**20)))
    return proposed


def largest_range_epsilon(rho: Fraction, range_rho: float = 1 / 8) -> float:
    """The epsilon of bounded range that takes the share of a column's rho that may go into its range."""
    return min(math.sqrt(RANGE_SHARE * float(rho) / range_rho), MOST_RANGE_EPSILON)


def best_column_budget(
    columns: int, epsilon: Epsilon, delta: Fraction, error: Error, least: float, rho: Fraction | None = None
) -> ColumnBudget:
    """The account, and the split within it, whose error is least; a range has the epsilon `least`, if that can be."""
    accounts = [_Account("pure", rational_below(positive_epsilon(epsilon)) / columns)]
    if rho is not None:  # the columns are a part of a larger account in zCDP
        accounts = [_Account("zCDP", rho / columns)]
    elif delta:
        from userdp.accounting import largest_epsilon_each, largest_rho

        if columns > 1:
            accounts.append(_Account("optimal composition", largest_epsilon_each(columns, epsilon, delta)))
        accounts.append(_Account("zCDP", largest_rho(epsilon, delta) / columns))
    splits = []
    for account in accounts:

        def error_of(part: Fraction, account: _Account = account) -> float:
            return error(float(part), float(account.noise(part)))

        share = cheapest(account.cap, least, error_of)
        split = ColumnBudget(columns, share, account.noise(share), account.name, account.cap)
        splits.append((error_of(share), split))
    best = min(splits, key=lambda one: one[0])[1]
    if best.accounting == "pure" or rho is not None:
        return replace(best, delta=delta if rho is not None else best.delta)
    return _in_two_groups(replace(best, delta=delta), epsilon)


def cheapest(cap: float, least: float, error: Callable[[Fraction], float]) -> Fraction:
    """The part for the range, from `least`, if that can be, to the cap, whose error is least."""
    start = min(cap, least)
    parts = [fraction_below(start * (cap / start) ** (place / CHOICES)) for place in range(CHOICES + 1)]
    return min(parts, key=error)


def _in_two_groups(split: ColumnBudget, epsilon: Epsilon) -> ColumnBudget:
    """The same with the most noise budget that composing ranges and noises apart, exactly, certifies."""
    if split.columns > MOST_COLUMNS_IN_GROUPS:
        return split
    from userdp.accounting import optimal_delta_of_groups

    def certified(noise: Fraction) -> bool:
        groups = [(split.epsilon_range, split.columns), (noise, split.columns)]
        return optimal_delta_of_groups(groups, epsilon) <= split.delta

    low, high, best = split.epsilon_noise, 2 * split.epsilon_noise, split
    for _ in range(HALVINGS):
        middle = fraction_below((low + high) / 2)
        if certified(middle):
            low, best = middle, replace(split, epsilon_noise=middle, accounting="optimal composition of two groups")
        else:
            high = middle
    return best
