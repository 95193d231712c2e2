"""Composition by its definition: all outcomes of all mechanisms, and all adaptive strategies. No import of userdp."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

Pair = tuple[tuple[Fraction, Fraction], ...]
"""A mechanism on two neighbors: for each outcome its mass on the one and on the other."""


def response(level: Fraction, leak: Fraction = Fraction(0)) -> Pair:
    """Randomized response at e^epsilon = level, which with probability leak shows the truth: the worst there is."""
    right = (1 - leak) * level / (1 + level)
    wrong = (1 - leak) / (1 + level)
    leaks = ((leak, Fraction(0)), (Fraction(0), leak)) if leak else ()
    return ((right, wrong), (wrong, right), *leaks)


def composed_delta(pairs: Sequence[Pair], multiplier: Fraction) -> Fraction:
    """The divergence of the product of the mechanisms, outcome by outcome."""
    total = Fraction(0)
    for outcomes in itertools.product(*pairs):
        p = math.prod((mass for mass, _ in outcomes), start=Fraction(1))
        q = math.prod((mass for _, mass in outcomes), start=Fraction(1))
        total += max(Fraction(0), p - multiplier * q)
    return total


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

    def best(p: Fraction, q: Fraction, spent: tuple[Hashable, ...]) -> Fraction:
        value = max(Fraction(0), p - multiplier * q)
        if len(spent) < depth:
            for name, pair in menu.items():
                after = tuple(sorted((*spent, name), key=str))
                if ask(after):
                    value = max(value, sum((best(p * a, q * b, after) for a, b in pair), Fraction(0)))
        return value

    return best(Fraction(1), Fraction(1), ())


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
