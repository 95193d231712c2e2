"""Quantiles of users' weight over public bins: which bin is asked for when, and how much one user moves its cost.

One quantile is one choice by the exponential mechanism. Several are found by halving: first the middle one, then those
on both sides of it among the bins that are left there. All choices of one level are about disjoint bins, where one user
has no more than one weight in all, so a level costs as much as one choice. By group each key has choices of its own,
and a user has a weight in each of at most so many keys (docs/proofs/tables.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Neighbors

Integers: TypeAlias = npt.NDArray[np.int64]

WEIGHT = 2**20
"""Of a user, in integers."""
MOST_PIECES = 2**8
MOST_CANDIDATES = 2**21
MOST_CANDIDATES_OF_A_KEY = 2**18
"""Of each of several keys."""
ROUNDING = Fraction(1, 2**36)
"""More than what roundings add to the loss, and to the range of losses, of one choice (exponential_mechanism.md)."""
FARTHEST = 40
"""Choices are bounded as far as weights reach: beyond e**-40 nothing is said."""
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


def pieces_of(bins: int, shares: Sequence[Fraction], *, by_key: bool = False) -> int:
    """Into how many parts each bin is cut, from public numbers: a power of two.

    Several quantiles may be in one bin, as where many users have the same value. The next choice is among what is
    beyond the last one, so bins that are whole could not be chosen twice.
    """
    if len(shares) == 1:
        return 1
    candidates = MOST_CANDIDATES_OF_A_KEY if by_key else MOST_CANDIDATES
    most = min(MOST_PIECES, max(candidates // bins, 1))
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


def losses_of(
    levels: Sequence[Sequence[Node]], neighbors: Neighbors, shapes: Sequence[tuple[int, int]]
) -> tuple[Fraction, Fraction]:
    """What all choices cost where each level is made at epsilon: in units of epsilon, and of epsilon**2 / 8 in rho.

    Parameters
    ----------
    levels : sequence of levels
        Of one key; each key has the same.
    neighbors : {"add-remove", "replace"}
    shapes : sequence of (int, int)
        In how many keys both versions of a user are, and in how many only one: the ends of what there may be.
    """
    # In a key that only one of the two is in, a cost moves as if the user were added: for "replace" by less than what
    # the level is worth, but by more than half of it where the share is not 1/2.
    own = [Fraction(sensitivity_of(level, "add-remove"), sensitivity_of(level, neighbors)) for level in levels]
    return (
        max(sum((common + single * part for part in own), Fraction(0)) for common, single in shapes),
        max(sum((common + single * part**2 for part in own), Fraction(0)) for common, single in shapes),
    )


def rate_of(epsilon: Fraction, level: Sequence[Node], *, whole: bool) -> Fraction:
    """The parameter of each mechanism of a level that is to cost epsilon.

    `whole`: there is one choice, and one user may move it by all that it is calibrated for. Otherwise several choices,
    or choices that move by a part of that, have their roundings on top.
    """
    return epsilon if whole else epsilon - 2 * len(level) * ROUNDING


def unit_of(level: Sequence[Node]) -> int:
    """What the costs of a level are multiplied by, so that they are integers."""
    return math.lcm(*(node.share.denominator for node in level))


def costs_of(weights: Integers, mass: int, share: Fraction, unit: int) -> Integers:
    """How far each bin is from having this share of the mass below it, times unit.

    The cost of bin i is max(0, F(< i) - share mass, share mass - F(<= i)), F(<= i) the weight at or below it.
    """
    exact: Any = weights if mass <= MOST_USERS * WEIGHT and unit <= 2**11 else weights.astype(object)
    target = int(share * unit) * mass if (share * unit).denominator == 1 else int(share * unit * mass)
    scaled = unit * exact
    costs = np.cumsum(scaled)  # in place from here on: there may be a quarter of a million of them for each choice
    costs -= target
    np.subtract(costs, scaled, out=scaled)
    np.negative(costs, out=costs)
    np.maximum(costs, scaled, out=costs)
    clamped: Integers = np.clip(costs, 0, 2**62, out=costs).astype(np.int64, copy=False)
    return clamped


def choose(
    weights: Integers, shares: Sequence[Fraction], draw: Callable[[int, Integers], int], pieces: int = 1
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
            chosen[node.place] = first + draw(number, costs_of(inside, int(inside.sum()), node.share, unit))
    return [place // pieces for place in chosen]


def law_of(
    weights: Integers, shares: Sequence[Fraction], pmf: Callable[[int, Integers], Sequence[Fraction]], pieces: int = 1
) -> Mapping[tuple[int, ...], Fraction]:
    """The exact distribution of what `choose` returns, from that of its choices by the costs at a level."""
    found: dict[tuple[int, ...], Fraction] = {}
    for outcome, mass in _branches(weights, shares, pmf, pieces, ()):
        found[outcome] = found.get(outcome, Fraction(0)) + mass
    return found


def _branches(
    weights: Integers,
    shares: Sequence[Fraction],
    pmf: Callable[[int, Integers], Sequence[Fraction]],
    pieces: int,
    script: tuple[int, ...],
) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """All ways in which choices may go on after a script of them."""
    asked = 0

    def draw(level: int, costs: Integers) -> int:
        nonlocal asked
        if asked == len(script):
            raise _NextChoice(level, costs)
        asked += 1
        return script[asked - 1]

    try:
        yield tuple(choose(weights, shares, draw, pieces)), Fraction(1)
        return
    except _NextChoice as choice:
        masses = pmf(choice.level, choice.costs)
    for place, mass in enumerate(masses):
        for outcome, rest in _branches(weights, shares, pmf, pieces, (*script, place)):
            yield outcome, mass * rest


class _NextChoice(Exception):
    """A choice that a script does not have yet."""

    def __init__(self, level: int, costs: Integers) -> None:
        super().__init__()
        self.level, self.costs = level, costs


# --- how wrong


def rank_errors(
    shares: Sequence[Fraction], rates: Sequence[tuple[Fraction, int]], bins: int, pieces: int, failure: float
) -> list[tuple[float, float]]:
    """How far in rank a chosen bin is from its share, but for a probability of `failure` for each share.

    Parameters
    ----------
    shares : sequence of Fraction
    rates : sequence of (Fraction, int)
        For each level the epsilon and the sensitivity of its mechanism.
    bins, pieces : int
    failure : float

    Returns
    -------
    list of (float, float)
        For each share a number of users, and a part of all users that is to be added to it: some share that far from
        the one that was asked for is in the bin.
    """
    levels = levels_of(shares)
    found: list[tuple[float, float]] = [(0.0, 0.0)] * len(shares)
    for depth, level in enumerate(levels, start=1):
        # What is between two chosen bins begins and ends where their choices were off, and leaves out a piece of each.
        # Each of the choices on the way has a part of the failure.
        off = sum(
            _off(one, *rate, pieces, math.log(1.001 * bins * pieces * depth / failure))
            for one, rate in zip(levels[:depth], rates, strict=False)
        )
        for node in level:
            found[node.place] = (off, (depth - 1) / pieces)
    return found


def _off(level: Sequence[Node], epsilon: Fraction, sensitivity: int, pieces: int, exponent: float) -> float:
    """By how many users a choice is off at most, but for a probability of e**-exponent for each candidate."""
    rate = float(epsilon - ROUNDING)
    if exponent > FARTHEST or rate <= 0:
        return math.inf
    return 2 * sensitivity * exponent / rate / (unit_of(level) * pieces * WEIGHT)
