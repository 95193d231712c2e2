"""Finite covers of families of distributions in total variation: their sizes first, then their members.

[GKKMMZ23, Theorem 42], [GKKMMZ23, Theorem 43], [GKKMMZ23, Theorem 44], [GKKMMZ23, Theorem 45] and [GKKMMZ23, Theorem
46]. A cover at accuracy alpha has a member within alpha / 10 of every member of the family.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TypeAlias

from userdp.exceptions import BudgetError

LARGEST_LINE = 2**20
"""The most candidates for one number."""

Masses: TypeAlias = tuple[int, ...]
"""A distribution in units of 1 / N: integers of sum N."""


def grid_of(n_symbols: int, alpha: Fraction) -> int:
    """N such that the distributions with masses in multiples of 1 / N are a cover at accuracy alpha.

    Rounding masses down and giving the j units that are left to the largest remainders moves at most
    j (1 - j / k) <= k / 4 units, so N = 2.5 k / alpha, rounded up, makes it at most alpha / 10.
    """
    return math.ceil(Fraction(5, 2) * n_symbols / alpha)


def grid_size(n: int, n_symbols: int) -> int:
    """The number of distributions on the symbols in multiples of 1 / n.

    [GKKMMZ23, Theorem 42].
    """
    return math.comb(n + n_symbols - 1, n_symbols - 1)


def members(n: int, n_symbols: int) -> Iterator[Masses]:
    """All distributions on the symbols in multiples of 1 / n, in lexicographic order."""
    for bars in combinations(range(n + n_symbols - 1), n_symbols - 1):
        edges = (-1, *bars, n + n_symbols - 1)
        yield tuple(right - left - 1 for left, right in pairwise(edges))


def near(center: Masses, radius: int) -> Iterator[Masses]:
    """All distributions that move at most `radius` units from a center, in lexicographic order."""

    def extend(prefix: Masses, gained: int, lost: int) -> Iterator[Masses]:
        place = len(prefix)
        if place == len(center):
            if gained == lost:
                yield prefix
            return
        low = max(-center[place], lost - radius)
        for change in range(low, radius - gained + 1):
            yield from extend((*prefix, center[place] + change), gained + max(change, 0), lost + max(-change, 0))

    return extend((), 0, 0)


def near_size(n_symbols: int, radius: int) -> int:
    """The most distributions that `near` has, for any center: p symbols gain s units and the others lose s."""
    size = 1
    for units in range(1, radius + 1):
        for gaining in range(1, n_symbols):
            losing = n_symbols - gaining
            ways = math.comb(units - 1, gaining - 1) * math.comb(units + losing - 1, losing - 1)
            size += math.comb(n_symbols, gaining) * ways
    return size


def gaussian_cover_size(d: int, radius: float, kappa: float, alpha: float) -> int:
    """The size of a cover of the normal distributions with means in [-radius, radius]**d and I <= Sigma <= kappa I.

    Half of alpha / 10 goes to the mean, a grid with step 0.1 sqrt(2 pi) alpha / sqrt(d), and half to the covariance, a
    grid of entries with step 0.2 alpha (1 - alpha / 10) / d, on [1, kappa] for the diagonal and +-(kappa - 1) / 2 off
    it. Matrices whose eigenvalues are not in the range are counted, too.
    """
    mean_step = 0.1 * math.sqrt(2 * math.pi) * alpha / math.sqrt(d)
    step = 0.2 * alpha * (1 - alpha / 10) / d
    means = (math.ceil(2 * radius / mean_step) + 1) ** d
    entries = math.ceil((kappa - 1) / step) + 1
    return int(means * entries ** (d * (d + 1) // 2))


def refuse_beyond(size: int, limit: int, what: str, instead: str) -> None:
    """Refuse a cover that is too large to enumerate, before it is.

    Raises
    ------
    BudgetError
        With the size and what to do instead.
    """
    if size > limit:
        shown = str(size) if size < 10**9 else f"about 10**{math.log10(size):.0f}"
        raise BudgetError(f"{what} has {shown} members (limit {limit}); {instead}")
