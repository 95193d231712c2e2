"""The inverse of composition: the largest epsilon that each of k mechanisms may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from userdp.accounting.composition import compose_advanced, optimal_delta, optimal_delta_of_groups
from userdp.exact.epsilon import ln_enclosure, ln_float, root_above, shortened, value_enclosure
from userdp.exact.numbers import Delta, Epsilon, check_count, nonzero_level, parse_delta, parse_positive, short_repr
from userdp.exceptions import BudgetError

Shares: TypeAlias = "Iterable[tuple[float | int | Fraction | str, int]]"

RESULT_BITS = 40
MOST_STEPS = 200


def largest_epsilon_each(k: int | Shares, epsilon: Epsilon, delta: Delta, *, delta_each: Delta = 0) -> Fraction:
    """The most that each of k mechanisms may cost when all of them together are to be (epsilon, delta)-DP.

    Parameters
    ----------
    k : int, or iterable of (share, count)
        How many mechanisms, >= 1. Or groups of them of unequal epsilon: count mechanisms that get share times the
        result each, for a positive share.
    epsilon, delta : privacy parameters
        Of all together; epsilon > 0 and delta < 1.
    delta_each : privacy parameter
        Of each mechanism.

    Returns
    -------
    Fraction
        Certified by `optimal_delta`, or `optimal_delta_of_groups`; below the largest such number by a part in 2^39 or
        so.

    Raises
    ------
    BudgetError
        As `optimal_delta`.

    Examples
    --------
    >>> float(largest_epsilon_each(64, 1, "1e-6"))  # doctest: +ELLIPSIS
    0.03019...
    >>> float(largest_epsilon_each([("1/4", 64), ("3/4", 64)], 1, "1e-6"))  # doctest: +ELLIPSIS
    0.0381...
    """
    level, target = nonzero_level(epsilon), parse_delta(delta)
    each = parse_delta(delta_each, "delta_each")
    groups = [_share(group) for group in k] if isinstance(k, Iterable) else [(Fraction(1), check_count(k, "k"))]
    if not groups:
        raise ValueError("k must have a group")
    if target == 1:
        raise ValueError("delta must be below 1: every epsilon serves at delta = 1")

    def cost(proposed: Fraction) -> Fraction:
        return optimal_delta_of_groups([(share * proposed, count, each) for share, count in groups], epsilon)

    # By basic composition, which costs nothing but the deltas of the mechanisms.
    basic = value_enclosure(level)[0] / sum(share * count for share, count in groups)
    low = shortened(basic, up=False, bits=RESULT_BITS)
    least = cost(low)
    if least > target:
        raise ValueError(
            f"delta={float(target):.3g} is below 1 - (1 - delta_each)^k = {float(least):.3g}; take a larger delta"
        )
    if least == target:
        return low
    # Where one of the mechanisms alone costs more: e^e > (2 / (1 - delta)) e^epsilon.
    high = (value_enclosure(level)[1] + ln_enclosure(2 / (1 - target))[1]) / max(share for share, _ in groups)
    return largest_within(cost, low, shortened(high, up=True, bits=RESULT_BITS), target)


def _share(group: object) -> tuple[Fraction, int]:
    if not isinstance(group, tuple) or len(group) != 2:
        raise TypeError(f"k must be an int or tuples (share, count); got {short_repr(group)}")
    return parse_positive(group[0], "share"), check_count(group[1], "count")


def largest_within(cost: Callable[[Fraction], Fraction], low: Fraction, high: Fraction, target: Fraction) -> Fraction:
    """The largest number, to `RESULT_BITS` bits, whose increasing cost is within the target, as that of low is."""

    def excess(value: Fraction) -> float:
        return ln_float(value) - ln_float(target) if value else -math.inf

    # False position on a log scale, where costs are nearly straight, with the Illinois weights: both ends move.
    while high > 2 * low:
        middle = low * (1 << int((ln_float(high / low)) / (2 * math.log(2)) + 0.5))
        low, high = (middle, high) if cost(middle) <= target else (low, middle)
    high_excess = excess(cost(high))
    low_excess = excess(cost(low))
    moved = 0
    for _ in range(MOST_STEPS):
        width = ln_float(high / low)
        if width <= 2.0 ** (1 - RESULT_BITS):
            break
        part = 0.5
        if low_excess > -math.inf:
            part = min(max(-low_excess / (high_excess - low_excess), 0.0), 1.0) if high_excess > low_excess else 0.5
        # A step of at least half of what is to be told apart, so that the other end follows.
        part = min(max(part, 2.0**-RESULT_BITS / width), 1 - 2.0**-RESULT_BITS / width)
        middle = shortened(low * Fraction(math.exp(part * width)), up=False, bits=RESULT_BITS + 2)
        if not low < middle < high:
            break
        value = cost(middle)
        if value <= target:
            low, low_excess = middle, min(excess(value), 0.0)
            high_excess = high_excess / 2 if moved == 1 else high_excess
            moved = 1
        else:
            high, high_excess = middle, max(excess(value), 0.0)
            low_excess = low_excess / 2 if moved == -1 else low_excess
            moved = -1
    return low


def dimension_epsilon(epsilon: Epsilon, delta: Delta, dimension: int) -> Fraction:
    """The closed form of the epsilon of each coordinate: epsilon / sqrt(8 d ln(1 / delta)), where it is certified.

    Parameters
    ----------
    epsilon, delta : privacy parameters
        Of all coordinates together; epsilon > 0 and delta in (0, 1).
    dimension : int
        How many coordinates d, each released by a pure mechanism, >= 1.

    Returns
    -------
    Fraction
        Rounded down, by a part in 2^60 or so.

    Raises
    ------
    TypeError, ValueError
        Naming the argument; where neither advanced nor optimal composition certifies the closed form.

    Notes
    -----
    [LSAKKMS21, Theorem 2] and [LSAKKMS21, Algorithm 2], which state it without a limit on epsilon. It is not proved
    beyond a limit of the order of 4 ln(1 / delta), and so is refused there: at delta = 1/100 and d = 64 optimal
    composition of 64 mechanisms that are no more than epsilon'-DP costs more than epsilon from epsilon = 58.7 on.
    `largest_epsilon_each` is above it for all parameters for which both are defined.

    Examples
    --------
    >>> float(dimension_epsilon(1, "1e-6", 64))  # doctest: +ELLIPSIS
    0.011889991...
    """
    level, target = nonzero_level(epsilon), parse_delta(delta)
    count = check_count(dimension, "dimension")
    if not 0 < target < 1:
        raise ValueError(
            f"delta must be in (0, 1); got {short_repr(delta)}. At delta = 0 each coordinate gets epsilon / d"
        )
    whole = value_enclosure(level)[0]
    each = shortened(whole / root_above(8 * count * ln_enclosure(1 / target)[1]), up=False)
    if not _is_certified(each, count, epsilon, whole, target):
        raise ValueError(
            f"epsilon={float(level):.3g}: epsilon / sqrt(8 d ln(1/delta)) is not proved to give (epsilon, delta) at"
            f" delta={float(target):.3g} and dimension={count}; take largest_epsilon_each or largest_rho instead"
        )
    return each


def _is_certified(each: Fraction, count: int, epsilon: Epsilon, whole: Fraction, delta: Fraction) -> bool:
    try:
        advanced = compose_advanced(each, count, delta).epsilon
        if isinstance(advanced, Fraction) and advanced <= whole:
            return True
    except ValueError:  # an e^epsilon that cannot be written out
        return False
    try:
        return optimal_delta(each, count, epsilon) <= delta
    except BudgetError:
        return False
