"""Composition by its definition: all outcomes of all mechanisms, and all adaptive strategies. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache

Pair = tuple[tuple[Fraction, Fraction], ...]
"""A mechanism on two neighbors: for each outcome its mass on the one and on the other."""


def response(level: Fraction, leak: Fraction = Fraction(0)) -> Pair:
    """Randomized response at e^epsilon = level, which with probability leak shows the truth: the worst there is."""
    right = (1 - leak) * level / (1 + level)
    wrong = (1 - leak) / (1 + level)
    leaks = ((leak, Fraction(0)), (Fraction(0), leak)) if leak else ()
    return ((right, wrong), (wrong, right), *leaks)


def composed_delta(pairs: Sequence[Iterable[tuple[Fraction, Fraction]]], multiplier: Fraction) -> Fraction:
    """The divergence of the product of the mechanisms, outcome by outcome; those of the same masses are counted."""
    whole, known = 1, Counter({(1, 1): 1})
    for pair in pairs:
        unit, outcomes = over_one_denominator(pair)
        whole, further = whole * unit, Counter[tuple[int, int]]()
        for (p, q), times in known.items():
            for a, b in outcomes:
                further[p * a, q * b] += times
        known = further
    top, bottom = multiplier.as_integer_ratio()
    return Fraction(sum(times * max(0, p * bottom - top * q) for (p, q), times in known.items()), whole * bottom)


def over_one_denominator(pair: Iterable[tuple[Fraction, Fraction]]) -> tuple[int, list[tuple[int, int]]]:
    """A denominator of all masses, and their numerators."""
    listed = [(a.as_integer_ratio(), b.as_integer_ratio()) for a, b in pair]
    unit = math.lcm(*(bottom for outcome in listed for _, bottom in outcome))
    return unit, [(a * (unit // under_a), b * (unit // under_b)) for (a, under_a), (b, under_b) in listed]


def renyi_bound(pair: Pair, order: int) -> Fraction:
    """E_Q[(P/Q)^order] for an integer order: e^((order - 1) D)."""
    return sum((q * (p / q) ** order for p, q in pair), Fraction(0))


def worst_strategy(
    menu: dict[Hashable, Pair],
    allowed: Callable[[tuple[Hashable, ...]], bool],
    multiplier: Fraction,
    depth: int,
) -> Fraction:
    """The largest divergence that an adversary reaches who chooses each mechanism by what came out before.

    The filter says of a sorted tuple of names whether so much may be spent. Whatever follows one outcome can be chosen
    apart from what follows another, so the best choice in every state is the best strategy of all.
    """
    ask = lru_cache(maxsize=None)(allowed)
    top, bottom = multiplier.as_integer_ratio()
    # Masses are integers over the unit to the power of how many came before, and values over that of the depth.
    unit, _ = over_one_denominator(outcome for pair in menu.values() for outcome in pair)
    choices = {name: [(int(a * unit), int(b * unit)) for a, b in pair] for name, pair in menu.items()}

    @cache
    def best(p: int, q: int, spent: tuple[Hashable, ...]) -> int:
        value = max(0, p * bottom - top * q) * unit ** (depth - len(spent))
        if len(spent) < depth:
            for name, pair in choices.items():
                after = tuple(sorted((*spent, name), key=str))
                if ask(after):
                    value = max(value, sum(best(p * a, q * b, after) for a, b in pair))
        return value

    return Fraction(best(1, 1, ()), unit**depth * bottom)


def optimal_delta(levels: Iterable[tuple[Fraction, int]], multiplier: Fraction) -> Fraction:
    """Kairouz, Oh and Viswanath: the sum over numbers of lies in each group."""
    groups = list(levels)
    total = Fraction(0)
    for lies in itertools.product(*(range(k + 1) for _, k in groups)):
        p = q = Fraction(1)
        for (level, k), lied in zip(groups, lies, strict=True):
            p *= math.comb(k, lied) * level ** (k - lied) / (1 + level) ** k
            q *= level**lied / level ** (k - lied)
        total += max(Fraction(0), p - multiplier * p * q)
    return total


def zcdp_delta(rho: str, epsilon: str, digits: int = 50) -> Decimal:
    """The conversion of rho-zCDP, minimized over the order by golden section on a log scale."""
    with localcontext() as context:
        context.prec = digits
        r, e = Decimal(rho), Decimal(epsilon)

        def exponent(log_x: Decimal) -> Decimal:
            x = log_x.exp()
            return x * ((1 + x) * r - e) - x * (1 + 1 / x).ln() - (1 + x).ln()

        low, high = Decimal(-60), Decimal(60)
        part = (Decimal(5).sqrt() - 1) / 2
        for _ in range(260):
            left, right = high - part * (high - low), low + part * (high - low)
            if exponent(left) < exponent(right):
                high = right
            else:
                low = left
        return min(Decimal(1), exponent((low + high) / 2).exp())
