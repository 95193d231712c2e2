"""Private bisection for a threshold with ideal mechanisms of rational bases: slow, and exact up to 2^-100.

An exponential mechanism weighs a score K by a^K; two-sided geometric noise of base b is r with a probability
proportional to b^|r|.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from oracle.thresholds import User, errors, median_score

F = Fraction
Count: TypeAlias = int | None
"""None is infinity."""
Choice: TypeAlias = Callable[[Count, int, Count], tuple[Fraction, Fraction, Fraction]]
"""The probabilities of left, middle and right."""


def exponential_pmf(scores: Sequence[int], base: Fraction) -> list[Fraction]:
    """Probabilities proportional to base^score."""
    weights = [base**score for score in scores]
    return [weight / sum(weights) for weight in weights]


def noise_tail(base: Fraction, above: int) -> Fraction:
    """Pr[r > above]"""
    return base ** (above + 1) / (1 + base) if above >= -1 else 1 - base**-above / (1 + base)


def noisy_choice(base: Fraction) -> Choice:
    """Middle if it is below both others after noise, else left if it is below right, else right."""
    steps = 1
    while base**steps > F(1, 2**110):
        steps += 1

    def above(count: Count, value: int) -> Fraction:
        return F(1) if count is None else noise_tail(base, value - count)

    def at(count: Count, value: int) -> Fraction:
        return F(0) if count is None else (1 - base) / (1 + base) * base ** abs(value - count)

    def pmf(left: Count, middle: int, right: Count) -> tuple[Fraction, Fraction, Fraction]:
        finite = [count for count in (left, middle, right) if count is not None]
        values = range(min(finite) - steps, max(finite) + steps + 1)
        in_middle = sum((at(middle, v) * above(left, v) * above(right, v) for v in values), F(0))
        to_left = sum((at(left, v) * above(right, v) * above(middle, v - 1) for v in values), F(0))
        return to_left, in_middle, 1 - to_left - in_middle

    return pmf


def exponential_choice(base: Fraction) -> Choice:
    """One draw from the sides that are not empty."""

    def pmf(left: Count, middle: int, right: Count) -> tuple[Fraction, Fraction, Fraction]:
        weights = [F(0) if count is None else base**count for count in (left, middle, right)]
        a, b, c = (weight / sum(weights) for weight in weights)
        return a, b, c

    return pmf


def pmf_of_search(
    users: Sequence[User], m: int, domain_size: int, t: int, tolerances: Sequence[int], base: Fraction, choice: Choice
) -> list[Fraction]:
    """The probability of each threshold."""
    scores = [errors(users, u, t, m) for u in range(domain_size + 1)]
    masses = [F(0)] * (domain_size + 1)

    def go(low: int, high: int, left: Sequence[int], mass: Fraction) -> None:
        if not left or low == high:
            masses[low] += mass
            return
        medians = [median_score(users, low, high, u, left[0]) for u in range(low, high + 1)]
        for middle, probability in enumerate(exponential_pmf(medians, base), start=low):
            best = [min(scores[a:b], default=None) for a, b in ((low, middle), (middle + 1, high + 1))]
            to_left, here, to_right = choice(best[0], scores[middle], best[1])
            masses[middle] += mass * probability * here
            if middle > low:
                go(low, middle - 1, left[1:], mass * probability * to_left)
            if middle < high:
                go(middle + 1, high, left[1:], mass * probability * to_right)

    go(0, domain_size, tolerances, F(1))
    return masses
