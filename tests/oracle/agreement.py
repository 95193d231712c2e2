"""Slow reference for stability: pmfs as dictionaries, one sequence at a time, agreement from first principles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

Distribution = Mapping[Hashable, Fraction]


def race_agreement(p: Distribution, q: Distribution) -> Fraction:
    """The chance that one item wins both races: its exponential is below every other's by the larger of two factors."""
    agree = Fraction(0)
    for x in p:
        if p[x] and q.get(x):
            others = (y for y in {*p, *q} if y != x)
            agree += 1 / (1 + sum(max(p.get(y, Fraction(0)) / p[x], q.get(y, Fraction(0)) / q[x]) for y in others))
    return agree


def darts_agreement(p: Distribution, q: Distribution) -> Fraction:
    """Throw darts until the first that anybody accepts; whoever did not gets a fresh draw."""
    items = {*p, *q}
    hit = sum(max(p.get(x, Fraction(0)), q.get(x, Fraction(0))) for x in items)
    agree = Fraction(0)
    for x in items:
        a, b = p.get(x, Fraction(0)), q.get(x, Fraction(0))
        agree += min(a, b) / hit + max(a - b, Fraction(0)) / hit * b + max(b - a, Fraction(0)) / hit * a
    return agree


def sequences(distribution: Mapping[Any, Fraction], m: int) -> Iterable[tuple[tuple[Any, ...], Fraction]]:
    """All samples in order, with their probabilities."""
    for sample in itertools.product(distribution, repeat=m):
        yield sample, math.prod((distribution[z] for z in sample), start=Fraction(1))


def exponential_pmf(
    hypotheses: Sequence[Sequence[int]], sample: Sequence[tuple[int, int]], base: Fraction
) -> Distribution:
    """Probabilities proportional to base**-errors."""
    weights = [base ** -sum(h[x] != y for x, y in sample) for h in hypotheses]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


def two_sample_agreement(
    pmf: Callable[[Any], Distribution],
    distribution: Mapping[Any, Fraction],
    m: int,
    agreement: Callable[[Distribution, Distribution], Fraction],
) -> Fraction:
    """How often two users of independent samples agree."""
    weighted = [(pmf(sample), mass) for sample, mass in sequences(distribution, m)]
    pairs = itertools.product(weighted, repeat=2)
    return sum((a * b * agreement(p, q) for (p, a), (q, b) in pairs), Fraction(0))


def listing_probability(
    listed: Callable[[Any], Iterable[Hashable]], distribution: Mapping[Any, Fraction], m: int
) -> dict[Hashable, Fraction]:
    """For every item the probability to be listed."""
    found: dict[Hashable, Fraction] = {}
    for sample, mass in sequences(distribution, m):
        for item in set(listed(sample)):
            found[item] = found.get(item, Fraction(0)) + mass
    return found
