"""Slow reference for the best of a random number of runs: sums over the number of runs, from first principles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

Distribution = Sequence[Fraction]


def geometric(gamma: Fraction, most: int) -> dict[int, Fraction]:
    """The number of runs, given that it is at most so many."""
    masses = {k: gamma * (1 - gamma) ** (k - 1) for k in range(1, most + 1)}
    return {k: mass / sum(masses.values()) for k, mass in masses.items()}


def capped(gamma: Fraction, most: int) -> dict[int, Fraction]:
    """The number of runs that stop at a cap: all the mass beyond is on it."""
    masses = {k: gamma * (1 - gamma) ** (k - 1) for k in range(1, most)}
    return {**masses, most: 1 - sum(masses.values())}


def least_outcome(one_run: Distribution, runs: Mapping[int, Fraction]) -> list[Fraction]:
    """The distribution of the least outcome: it is at least i when all runs are."""
    at_least = [sum(one_run[i:], Fraction(0)) for i in range(len(one_run) + 1)]
    tails = [sum((mass * tail**k for k, mass in runs.items()), Fraction(0)) for tail in at_least]
    return [a - b for a, b in itertools.pairwise(tails)]


def by_listing(one_run: Distribution, runs: Mapping[int, Fraction]) -> list[Fraction]:
    """The same by listing all outcomes of all runs."""
    pmf = [Fraction(0)] * len(one_run)
    for k, mass in runs.items():
        for outcomes in itertools.product(range(len(one_run)), repeat=k):
            pmf[min(outcomes)] += mass * math.prod((one_run[i] for i in outcomes), start=Fraction(1))
    return pmf


def largest_ratio(p: Distribution, q: Distribution) -> Fraction:
    """e to the loss, in both directions."""
    return max(max(a / b, b / a) for a, b in zip(p, q, strict=True) if a != b) if list(p) != list(q) else Fraction(1)


def private_pairs(size: int, total: int, ratio: Fraction) -> Iterable[tuple[list[Fraction], list[Fraction]]]:
    """All pairs of pmfs of one run in multiples of 1 / total whose probabilities differ by at most a factor."""
    pmfs = [
        [Fraction(w, total) for w in weights]
        for weights in itertools.product(range(1, total), repeat=size)
        if sum(weights) == total
    ]
    return ((p, q) for p, q in itertools.permutations(pmfs, 2) if largest_ratio(p, q) <= ratio)
