"""Subsampling, stability under deletions and perfect generalization by their definitions. No import of userdp."""

from __future__ import annotations

import decimal
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Distribution = Sequence[Fraction]
Algorithm = Callable[[tuple[Any, ...]], Distribution]


def hockey_stick(p: Distribution, q: Distribution, multiplier: Fraction) -> Fraction:
    return sum((max(Fraction(0), a - multiplier * b) for a, b in zip(p, q, strict=True)), Fraction(0))


def alike(p: Distribution, q: Distribution, multiplier: Fraction, delta: Fraction) -> bool:
    return max(hockey_stick(p, q, multiplier), hockey_stick(q, p, multiplier)) <= delta


def subsampled(algorithm: Algorithm, items: Sequence[Any], size: int) -> list[Fraction]:
    """Average over all subsets of positions."""
    pmfs = [algorithm(tuple(items[i] for i in chosen)) for chosen in itertools.combinations(range(len(items)), size)]
    return [sum(column, Fraction(0)) / len(pmfs) for column in zip(*pmfs, strict=True)]


def samples(distribution: dict[Any, Fraction], n_users: int, n_examples: int) -> list[tuple[Any, Fraction]]:
    """All datasets with their probabilities."""
    users = list(itertools.product(distribution, repeat=n_examples))
    return [
        (dataset, math.prod((distribution[z] for user in dataset for z in user), start=Fraction(1)))
        for dataset in itertools.product(users, repeat=n_users)
    ]


def sample_perfect(
    algorithm: Algorithm, weighted: list[tuple[Any, Fraction]], multiplier: Fraction, delta: Fraction
) -> Fraction:
    """The probability that two independent samples have distributions that are not alike."""
    return sum(
        (
            mass * other_mass
            for x, mass in weighted
            for x2, other_mass in weighted
            if not alike(algorithm(x), algorithm(x2), multiplier, delta)
        ),
        Fraction(0),
    )


def mixture(algorithm: Algorithm, weighted: list[tuple[Any, Fraction]]) -> list[Fraction]:
    columns = zip(*([mass * p for p in algorithm(x)] for x, mass in weighted), strict=True)
    return [sum(column, Fraction(0)) for column in columns]


def perfect(
    algorithm: Algorithm,
    weighted: list[tuple[Any, Fraction]],
    simulator: Distribution,
    multiplier: Fraction,
    delta: Fraction,
) -> Fraction:
    """The probability that a sample's distribution is not like the simulator's."""
    return sum((mass for x, mass in weighted if not alike(algorithm(x), simulator, multiplier, delta)), Fraction(0))


def lddp(algorithm: Algorithm, dataset: Sequence[Any], deletions: int, multiplier: Fraction, delta: Fraction) -> bool:
    """Whether all pairs of deletions have distributions that are alike."""
    pmfs = [algorithm(kept) for kept in itertools.combinations(dataset, len(dataset) - deletions)]
    return all(alike(p, q, multiplier, delta) for p, q in itertools.combinations(pmfs, 2))


def concentration(epsilon: float, delta: float, n: int, log_failure: float, slack: float) -> tuple[float, float, int]:
    """(epsilon', delta', moves) of the explicit Theorem 13, straight from its formulas, with 60 digits."""
    with decimal.localcontext() as context:
        context.prec = 60
        e, d, free = decimal.Decimal(epsilon), decimal.Decimal(delta), decimal.Decimal(slack)
        v = 4 * n * e * e
        pi = decimal.Decimal("3.14159265358979323846264338327950288419716939937510")
        bulge = max(decimal.Decimal(0), (pi * v / 2).ln() / 2)
        a = v + (2 * v * (-free.ln() + v / 2 + bulge)).sqrt()
        lemma = (1 + a.exp()) * free + (1 + (2 * a).exp()) * (1 + (-e).exp()) * n * d
        t = int((n * decimal.Decimal(2).ln()).sqrt() + (n * decimal.Decimal(log_failure)).sqrt())
        group = sum((d * (j * e).exp() for j in range(t)), decimal.Decimal(0))
        return float(2 * a + t * e), float((2 * a).exp() * group + 4 * (t * e).exp() * lemma), t
