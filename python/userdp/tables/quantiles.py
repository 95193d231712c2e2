"""Quantiles of users' weight over public bins: which bin is asked for when, and how much one user moves its cost.

One quantile is one choice by the exponential mechanism. Several are found by halving: first the middle one, then those
on both sides of it among the bins that are left there. All choices of one level are about disjoint bins, where one user
has no more than one weight in all, so a level costs as much as one choice (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.mechanisms.key_bounds import Neighbors

Integers: TypeAlias = npt.NDArray[np.int64]

WEIGHT = 2**20
"""Of a user, in integers."""
MOST_PIECES = 2**8
MOST_CANDIDATES = 2**21
MOST_USERS = 2**30
"""Beyond so many users costs are computed in Python's integers."""


@dataclass(frozen=True)
class Node:
    """One choice: a quantile between two that were chosen before."""

    place: int  # in the list of shares
    below: int | None  # the place of the next smaller one that is known by then
    above: int | None
    share: Fraction  # among what is between them


def levels_of(shares: Sequence[Fraction]) -> list[list[Node]]:
    """The choices, level by level, for shares that rise."""
    levels: list[list[Node]] = []
    parts: list[tuple[int, int, int | None, int | None]] = [(0, len(shares), None, None)]
    while parts:
        level: list[Node] = []
        following: list[tuple[int, int, int | None, int | None]] = []
        for first, end, below, above in parts:
            low = Fraction(0) if below is None else shares[below]
            high = Fraction(1) if above is None else shares[above]
            inside = range(first, end)
            # The one that is nearest to half of what is there: it costs least.
            place = min(inside, key=lambda one: (abs((shares[one] - low) / (high - low) - Fraction(1, 2)), one))
            level.append(Node(place, below, above, (shares[place] - low) / (high - low)))
            if first < place:
                following.append((first, place, below, place))
            if place + 1 < end:
                following.append((place + 1, end, place, above))
        levels.append(level)
        parts = following
    return levels


def pieces_of(bins: int, shares: Sequence[Fraction]) -> int:
    """Into how many parts each bin is cut, from public numbers: a power of two.

    Several quantiles may be in one bin, as where many users have the same value. The next choice is among what is
    beyond the last one, so bins that are whole could not be chosen twice.
    """
    if len(shares) == 1:
        return 1
    most = min(MOST_PIECES, max(MOST_CANDIDATES // bins, 1))
    return 1 << (most.bit_length() - 1)


def sensitivity_of(level: Sequence[Node], neighbors: Neighbors, pieces: int = 1) -> int:
    """How much the costs of a level are to be worth: a user moves a release of all its nodes by epsilon at this number.

    Costs are `unit_of` times those of one share, for weights that are `pieces` times as large.
    """
    unit = unit_of(level) * pieces
    largest = max(max(node.share, 1 - node.share) for node in level)
    if len(level) == 1 and level[0].below is None and level[0].above is None and neighbors == "replace":
        # All of a user's weight is in it, whatever it is replaced by.
        return WEIGHT * unit
    users = 1 if neighbors == "add-remove" else 2
    return math.ceil(users * WEIGHT * unit * largest)


def unit_of(level: Sequence[Node]) -> int:
    """What the costs of a level are multiplied by, so that they are integers."""
    return math.lcm(*(node.share.denominator for node in level))


def costs_of(weights: Integers, mass: int, share: Fraction, unit: int) -> Integers:
    """How far each bin is from having this share of the mass below it, times unit.

    The cost of bin i is max(0, F(< i) - share mass, share mass - F(<= i)), F(<= i) the weight at or below it.
    """
    exact: Any = weights if mass <= MOST_USERS * WEIGHT and unit <= 2**11 else weights.astype(object)
    at_or_below = np.cumsum(exact)
    target = int(share * unit) * mass if (share * unit).denominator == 1 else int(share * unit * mass)
    over, under = unit * (at_or_below - exact) - target, target - unit * at_or_below
    costs = np.maximum(np.maximum(over, under), 0)
    clamped: Integers = np.minimum(costs, 2**62).astype(np.int64)
    return clamped


def choose(
    weights: Integers, users: int, shares: Sequence[Fraction], draw: Callable[[int, Integers], int], pieces: int = 1
) -> list[int]:
    """The bins of the quantiles; `draw` chooses by the costs at a level.

    Each bin is cut into so many pieces, and each piece gets the bin's weight: a user has `pieces` times WEIGHT in all,
    spread evenly within a bin, whoever else is in it.
    """
    chosen: list[int] = [0] * len(shares)
    weights = np.repeat(weights, pieces)
    for number, level in enumerate(levels_of(shares)):
        unit = unit_of(level)
        for node in level:
            first = 0 if node.below is None else chosen[node.below] + 1
            end = len(weights) if node.above is None else chosen[node.above]
            if first >= end:
                # Nothing is between the two: public by now.
                chosen[node.place] = min(first, len(weights) - 1) if node.below is None else chosen[node.below]
                continue
            inside = weights[first:end]
            # The mass of all users is known from their number alone; that of a part is a sum of its own.
            whole = first == 0 and end == len(weights)
            mass = users * WEIGHT * pieces if whole else int(inside.sum())
            chosen[node.place] = first + draw(number, costs_of(inside, mass, node.share, unit))
    return [place // pieces for place in chosen]
