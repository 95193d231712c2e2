"""From floats to proofs: a table of integers that is a private mechanism, and a bound below which no mechanism is.

All decisions are in integers and fractions. Floats only propose. Proofs: docs/proofs/optimal_mechanisms.md.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from userdp.optimal.program import Solution, solve
from userdp.optimal.worlds import World

SCALE_BITS = 80
"""Multipliers are integers over 2^80: floats of their size have fewer digits."""
SLACKS = (1e-13, 1e-12, 1e-11, 1e-10, 1e-9)
"""By how much less than delta is asked of the solver, so that rounding stays within delta: the least that is enough."""


MOST_SIMPLE = 2_000
"""With at most so many unknowns, short fractions near the solution are tried first."""
SHORT = (1_000, 100_000, 10_000_000)
"""Denominators of these."""


class Proved(NamedTuple):
    """A table and multipliers, and what they prove."""

    table: list[int]
    total: int
    y: list[tuple[int, int]]
    mu: list[int] | None
    scale: int
    value: Fraction
    lower_bound: Fraction


class NotRepaired(ValueError):
    """No exact table was found near the solver's."""


def proved_optimum(
    world: World, below: Fraction, above: Fraction, delta: Fraction, prior: Sequence[Fraction] | None
) -> Proved:
    """Solve a world and prove both sides: below <= e^epsilon <= above.

    Raises
    ------
    NotRepaired
        When rounding to integers breaks a constraint; floats of 53 bits are too coarse for this epsilon or delta then.
    """
    weights = None if prior is None else [float(weight) for weight in prior]
    simple = world.size <= MOST_SIMPLE
    found = solve(world, float(below), float(delta), weights) if simple or not delta else None
    exact = _simple(world, found, below, above, delta, prior) if simple and found is not None else None
    if exact is not None:
        return exact
    if not delta:
        assert found is not None
        table = _repaired(world, found.x, below)
    else:
        for slack in SLACKS:
            found = solve(world, float(below), float(delta) - slack, weights)
            table = _rounded(world, found.x)
            if is_private(world, table, below, delta, world.total):
                break
        else:
            raise NotRepaired(f"delta={float(delta)!r}: no rounded solution is within delta")
    if not is_private(world, table, below, delta, world.total):
        raise NotRepaired("no exactly private table was found near the solution")
    # Multipliers of constraints are for losses of at most 1, and those of states sum to 1.
    scale = math.ceil((1 << SCALE_BITS) / min(world.largest, Fraction(1)))
    y = [(row, units) for row, units in enumerate(_units(found.y, scale * world.largest)) if units]
    mu = None if found.mu is None else _units(found.mu, Fraction(scale))
    if mu is not None and not any(mu):
        mu[0] = scale
    if mu is not None:
        # Multipliers of any size prove the same; those of states sum to the scale.
        scale = sum(mu)
    value, bound = loss_of(world, table, world.total, prior), bound_of(world, y, mu, scale, above, delta, prior)
    if bound < 0:
        # Losses are not negative: no constraint is needed to see that.
        y, bound = [], bound_of(world, [], mu, scale, above, delta, prior)
    return Proved(table, world.total, y, mu, scale, value, bound)


def _simple(
    world: World,
    found: Solution,
    below: Fraction,
    above: Fraction,
    delta: Fraction,
    prior: Sequence[Fraction] | None,
) -> Proved | None:
    """The optimum itself, where short fractions near the solution are one and prove it."""
    for longest in SHORT:
        x = _short(found.x, longest)
        y = [value * world.largest for value in _short(found.y, longest)]
        mu = None if found.mu is None else _short(found.mu, longest)
        total = math.lcm(*(value.denominator for value in x))
        scale = math.lcm(*(value.denominator for value in (*y, *(mu or ()))))
        if max(total, scale // world.largest.denominator) > 1 << SCALE_BITS or (mu is not None and sum(mu) != 1):
            continue
        table = [int(value * total) for value in x]
        if set(_sums(world, table)) != {total} or not is_private(world, table, below, delta, total):
            continue
        steps = [(row, int(value * scale)) for row, value in enumerate(y) if value]
        states = None if mu is None else [int(value * scale) for value in mu]
        value = loss_of(world, table, total, prior)
        if value == bound_of(world, steps, states, scale, above, delta, prior):
            return Proved(table, total, steps, states, scale, value, value)
    return None


def _short(values: npt.NDArray[np.float64], longest: int) -> list[Fraction]:
    """The nearest fractions with short denominators."""
    known = {value: Fraction(value).limit_denominator(longest) for value in set(values.tolist())}
    return [known[value] for value in values.tolist()]


def _units(values: npt.NDArray[np.float64], scale: Fraction) -> list[int]:
    return [int(Fraction(value) * scale) if value else 0 for value in values.tolist()]


# --- what is proved


def is_private(world: World, table: Sequence[int], below: Fraction, delta: Fraction, total: int) -> bool:
    """Whether integers of this sum are within (ln below, delta) on all neighbors."""
    top, bottom = below.numerator, below.denominator
    if not delta:
        return all(table[p] * bottom <= table[q] * top for p, q in world.pairs)
    allowed = delta * total * bottom
    return all(
        sum(weight * max(0, table[p] * bottom - table[q] * top) for p, q, weight in group) <= allowed
        for group in world.groups
    )


def loss_of(world: World, table: Sequence[int], total: int, prior: Sequence[Fraction] | None) -> Fraction:
    """The worst loss of a table over the states, or the mean under a prior."""
    losses = [Fraction(0)] * len(world.classes)
    for state, place, outputs in world.places():
        losses[state] += outputs.multiplicity * table[place] * outputs.loss
    if prior is None:
        return max(losses) / total
    return sum((weight * loss for weight, loss in zip(prior, losses, strict=True) if weight), Fraction(0)) / total


def bound_of(
    world: World,
    y: Sequence[tuple[int, int]],
    mu: Sequence[int] | None,
    scale: int,
    above: Fraction,
    delta: Fraction,
    prior: Sequence[Fraction] | None,
) -> Fraction:
    """What every private mechanism loses at least: weak duality for any y >= 0, v and w being the best for it.

    A class of m equal outputs has one row m v <= m mu loss + gain, so that an output's own share is gain / m.
    """
    gain = [0] * world.size
    charged = Fraction(0)
    if not delta:
        for row, units in y:
            p, q = world.pairs[row]
            gain[p] += units * above.denominator
            gain[q] -= units * above.numerator
    else:
        ends = list(itertools.accumulate(map(len, world.groups)))
        most: dict[int, Fraction] = {}
        group = 0
        for row, units in y:
            while row >= ends[group]:
                group += 1
            p, q, weight = world.groups[group][row - ends[group]]
            gain[p] += units * above.denominator
            gain[q] -= units * above.numerator
            most[group] = max(most.get(group, Fraction(0)), Fraction(units, weight))
        charged = sum(most.values(), Fraction(0))
    weights: Sequence[Fraction | int] = mu if mu is not None else [weight * scale for weight in prior or ()]
    best: list[Fraction | None] = [None] * len(world.classes)
    for state, place, outputs in world.places():
        own = weights[state] * outputs.loss + Fraction(gain[place], outputs.multiplicity * above.denominator)
        known = best[state]
        best[state] = own if known is None else min(known, own)
    return (sum((part for part in best if part is not None), Fraction(0)) - delta * charged) / scale


# --- repair


def _sums(world: World, table: Sequence[int]) -> list[int]:
    sums = [0] * len(world.classes)
    for state, place, outputs in world.places():
        sums[state] += outputs.multiplicity * table[place]
    return sums


def _shared_out(world: World, state: int, table: list[int], left: int) -> None:
    """Give what is left of a state's total to its classes: nearly all to the largest, a little for divisibility."""
    own = [place for place in range(world.first[state], world.first[state + 1]) if table[place] > 0]
    own.sort(key=lambda place: (-table[place], place))
    size = {place: world.classes[state][place - world.first[state]].multiplicity for place in own}
    divisors = list(itertools.accumulate((size[place] for place in own), math.gcd))
    for place, divisor in zip(reversed(own[1:]), reversed(divisors[:-1]), strict=True):
        # The classes before share out multiples of their divisor: the least number that leaves one.
        common = math.gcd(divisor, size[place])
        steps = left // common * pow(size[place] // common, -1, divisor // common) % (divisor // common)
        table[place] += steps
        left -= steps * size[place]
    if left < 0 or left % size[own[0]]:
        raise NotRepaired("the masses of a state leave no room to round them")
    table[own[0]] += left // size[own[0]]


def _reserve(world: World) -> int:
    """More than what `_shared_out` may need."""
    most = max(outputs.multiplicity for classes in world.classes for outputs in classes)
    return (1 + max(map(len, world.classes))) * (most + 1) ** 2


def _rounded(world: World, x: npt.NDArray[np.float64]) -> list[int]:
    """Integers near x that sum to the total in every state: within 2^-40 of x in sum."""
    total, reserve = world.total, _reserve(world)
    exact = [Fraction(value) for value in x.tolist()]
    table = [0] * world.size
    for state, (start, end) in enumerate(itertools.pairwise(world.first)):
        sizes = [outputs.multiplicity for outputs in world.classes[state]]
        whole = sum(m * value for m, value in zip(sizes, exact[start:end], strict=True))
        for place in range(start, end):
            table[place] = int(exact[place] * (total - reserve) / whole)
        left = total - sum(m * units for m, units in zip(sizes, table[start:end], strict=True))
        _shared_out(world, state, table, left)
    return table


def _repaired(world: World, x: npt.NDArray[np.float64], ratio: Fraction) -> list[int]:
    """Integers near x of the total in every state, with table[p] <= ratio table[q] for every constraint.

    Constraints are closed upwards; then all is scaled down so that every state has room, and the room is filled with a
    mechanism that has half of epsilon, whose own constraints are slack.
    """
    total, reserve = world.total, _reserve(world)
    after: list[list[int]] = [[] for _ in range(world.size)]
    for p, q in world.pairs:
        after[p].append(q)
    table = _closed([int(Fraction(value) * total) for value in x.tolist()], after, ratio)
    sums = _sums(world, table)
    spread = max(max(sums) - total, 0) + max(total - min(sums), 0)
    quarter = math.expm1(math.log(ratio) / 4) if ratio > 1 else 1.0
    room = max(*sums, total) + int(Fraction(spread) / Fraction(quarter)) + (total >> 60) + 4 * reserve
    table = _closed([-(-units * total // room) for units in table], after, ratio)
    filler = _filler(world, [units > 0 for units in table], float(ratio))
    for state, have in enumerate(_sums(world, table)):
        gap = total - have - 2 * reserve
        if gap <= 0:
            raise NotRepaired("the solution leaves no room to round it")
        for place in range(world.first[state], world.first[state + 1]):
            table[place] += int(Fraction(filler[place]) * gap * (1 - Fraction(1, 2**45)))
    for state, have in enumerate(_sums(world, table)):
        _shared_out(world, state, table, total - have)
    return table


def _closed(table: list[int], after: Sequence[Sequence[int]], ratio: Fraction) -> list[int]:
    """The least table at or above this one with table[p] <= ratio table[q] for all q after p."""
    up, down = ratio.numerator, ratio.denominator
    heap = [(-units, place) for place, units in enumerate(table)]
    heapq.heapify(heap)
    while heap:
        units, place = heapq.heappop(heap)
        if -units < table[place]:
            continue
        need = -(units * down // up)
        for other in after[place]:
            if table[other] < need:
                table[other] = need
                heapq.heappush(heap, (-need, other))
    return table


def _filler(world: World, used: Sequence[bool], ratio: float) -> list[float]:
    """The exponential mechanism on the losses with half of epsilon, over the outputs that are used at all."""
    losses = [0.0] * world.size
    for _, place, outputs in world.places():
        losses[place] = float(outputs.loss / world.largest)
    change = max((abs(losses[p] - losses[q]) for p, q in world.pairs), default=0.0) or 1.0
    rate = math.log(ratio) / (4 * change)
    weights = [math.exp(-rate * loss) * use for loss, use in zip(losses, used, strict=True)]
    sums = [0.0] * len(world.classes)
    for state, place, outputs in world.places():
        sums[state] += outputs.multiplicity * weights[place]
    return [weights[place] / sums[state] for state, place, _ in world.places()]
