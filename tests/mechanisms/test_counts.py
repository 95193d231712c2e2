"""Negative binomial and geometric counts: tables against high precision, listed bits against definitions."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import pytest

from oracle import distributions as oracle
from support.distribution_draws import fits, listed, seeded, words_of
from userdp.exceptions import BudgetError
from userdp.mechanisms import (
    Geometric,
    NegativeBinomial,
)

F = Fraction
WORD = 2**128


# --- negative binomial counts

COUNTS: list[tuple[Any, Any]] = [
    (1, "0.5"),
    (3, F(1, 3)),
    ("23.7233", "0.8187"),
    (F(237233, 10**4 * 50), "0.8187"),
    (F(1, 10**6), F(9, 10)),
    (0.5, 0.25),
    ("1e-30", "1e-30"),
    (10**9, F(1, 10**9)),
    (1000, F(1, 2)),
    (F(1, 7), F(99, 100)),
]


@pytest.mark.parametrize(("r", "p"), COUNTS)
def test_counts_are_within_the_certified_distance(r: Any, p: Any) -> None:
    pmf = NegativeBinomial(r=r, p=p)
    weights = pmf.pmf().weights
    assert sum(weights) == WORD
    assert pmf.pmf().outputs == tuple(range(len(weights)))
    ideal = oracle.negative_binomial(F(r), F(p), len(weights) + 1)
    with localcontext() as context:
        context.prec = oracle.DIGITS
        masses = [Decimal(weight) / WORD for weight in weights]
        excess = [max(mass - exact, Decimal(0)) for mass, exact in zip(masses, ideal, strict=False)]
        certified = Decimal(pmf.certified_distance.numerator) / pmf.certified_distance.denominator
        slack = Decimal("1e-90")
        # Only the first of the largest entries is above the ideal mass, and by no more than was certified.
        largest = weights.index(max(weights))
        assert [k for k, above in enumerate(excess) if above > slack] in ([largest], [])
        assert sum(excess) <= certified + slack
        # Floors: every other entry is within one unit, and what follows the table is at most one.
        for k, (weight, exact) in enumerate(zip(weights, ideal, strict=False)):
            if k != largest:
                assert math.floor((exact - slack) * WORD) <= weight <= math.floor((exact + slack) * WORD)
        assert ideal[len(weights)] * WORD <= 1
    assert pmf.certified_distance <= F(len(weights) * 2, WORD) + F(1, 2**110)
    assert pmf.certified_distance < F(1, 2**108)


@pytest.mark.parametrize(("r", "p"), [(1, F(1, 2)), (2, F(1, 3)), (7, F(9, 10)), (40, F(1, 100))])
def test_counts_of_whole_r(r: int, p: Fraction) -> None:
    pmf = NegativeBinomial(r=r, p=p)
    fractions = pmf.pmf().fractions()
    ideal = oracle.negative_binomial_exactly(r, p, len(fractions))
    distance = sum(max(mass - exact, F(0)) for mass, exact in zip(fractions, ideal, strict=True))
    assert distance <= pmf.certified_distance
    # The other half of the same distance, with the tail beyond the table.
    below = sum(max(exact - mass, F(0)) for mass, exact in zip(fractions, ideal, strict=True)) + 1 - sum(ideal)
    assert below == distance


def test_convention_of_p() -> None:
    # Mean r p / (1 - p), not numpy's r (1 - p) / p: 4 rather than 1 here.
    pmf = NegativeBinomial(r=2, p=F(2, 3))
    mean = sum(k * mass for k, mass in enumerate(pmf.pmf().fractions()))
    assert abs(mean - 4) < F(1, 2**100)


def test_shares_sum_to_the_whole() -> None:
    users, r, p = 5, F(7, 2), F(1, 4)
    share = NegativeBinomial(r=r / users, p=p)
    whole = NegativeBinomial(r=r, p=p)
    total = [1]
    for _ in range(users):
        total = convolved(total, share.pmf().weights)
    ideal = oracle.negative_binomial(r, p, len(total))
    with localcontext() as context:
        context.prec = oracle.DIGITS
        distance = sum(
            (abs(Decimal(weight) / Decimal(WORD**users) - exact) for weight, exact in zip(total, ideal, strict=True)),
            Decimal(0),
        )
        bound = users * share.certified_distance
        assert distance / 2 <= Decimal(bound.numerator) / bound.denominator
        assert distance > 0
    assert whole.certified_distance < F(1, 2**110)


def convolved(a: Sequence[int], b: Sequence[int]) -> list[int]:
    result = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return result


@pytest.mark.statistical
def test_count_draws() -> None:
    pmf = NegativeBinomial(r="2.5", p="0.8")
    draws = seeded(pmf, 1_000_000, 13)
    cumulative = list(accumulate(pmf.pmf().weights))
    expected = [sum(edge <= word for edge in cumulative) for word in words_of(13, 500)]
    assert draws[:500].tolist() == expected
    counts = np.bincount(draws, minlength=len(cumulative)).tolist()
    assert fits(counts, pmf.pmf().fractions(), 1_000_000)
    other = NegativeBinomial(r="2.5", p="0.79").pmf().fractions()
    other += [F(0)] * (len(counts) - len(other))
    assert not fits(counts, other, 1_000_000)


def test_too_many_counts() -> None:
    for r, p in [(2**22, "0.5"), ("1e300", "0.5"), ("0.1", 1 - F(1, 2**30)), (1, 1 - F(1, 10**300))]:
        with pytest.raises(BudgetError, match="entries; choose a smaller r or p"):
            NegativeBinomial(r=r, p=p).pmf()


# --- geometric counts

SUCCESSES = [F(1, 2), F(1, 3), F(9, 10), 1 - F(1, 10**30), F(1, 1000), F(0.1), F(1, 10**9), F(1, 2**52)]


@pytest.mark.parametrize("p", SUCCESSES, ids=str)
def test_geometric_draws_of_listed_bits(p: Fraction) -> None:
    pmf, q = Geometric(p=p), 1 - p
    source = random.Random(5)
    cases = [[source.getrandbits(128) >> shift, source.getrandbits(128)] for shift in (0, 0, 0, 1, 30, 64, 100, 127)]
    cases += [[WORD - 1, 7], [0, 5], [0, 0, 9], [1, 0]]
    if q.denominator <= 1000:
        # Next to q^k, where the first 128 bits and even 256 do not decide.
        for k in (1, 2, 5, 20):
            for count in (1, 2):
                edge = math.floor(q**k * WORD**count)
                words = [edge // WORD ** (count - 1 - i) % WORD for i in range(count)]
                cases += [[*words, 0, 1], [*words, WORD - 1, WORD - 2]]
    powers = oracle.rational_powers(q) if q.denominator <= 10 else powers_by_logarithm(q)
    for words in cases:
        spare = [source.getrandbits(128) for _ in range(3)]
        assert pmf._draw(listed([*words, *spare])) == oracle.geometric(powers, [*words, *spare]), words


def powers_by_logarithm(q: Fraction) -> oracle.Powers:
    """Around q^k for a q of many digits, from 300-digit decimals."""

    @cache
    def powers(k: int, _: int) -> tuple[Fraction, Fraction]:
        with localcontext() as context:
            context.prec = 400
            context.Emin = -(10**17)
            power = F(((Decimal(q.numerator) / Decimal(q.denominator)).ln() * k).exp())
        return power * (1 - F(1, 10**360)), power * (1 + F(1, 10**360))

    return powers


def test_geometric_ties_need_more_bits() -> None:
    # q = 1/3: U = 0.0101... is q itself, as far as its words are all the same.
    third, pmf = WORD // 3, Geometric(p=F(2, 3))
    for ties in (1, 2, 3):
        assert pmf._draw(listed([third] * ties + [0, 0])) == 1
        assert pmf._draw(listed([third] * ties + [WORD - 1, 0])) == 0
        with pytest.raises(OSError, match="used up"):
            pmf._draw(listed([third] * ties))


@pytest.mark.statistical
def test_geometric_draws() -> None:
    pmf = Geometric(p=F(1, 5))
    draws = seeded(pmf, 300_000, 14)
    powers = oracle.rational_powers(F(4, 5))
    assert draws[:300].tolist() == [oracle.geometric(powers, [word]) for word in words_of(14, 300)]
    size = 200
    counts = np.bincount(draws, minlength=size)[:size].tolist()
    assert fits(counts, [pmf.probability(x) for x in range(size)], 300_000)
    assert not fits(counts, [F(19, 100) * F(81, 100) ** x for x in range(size)], 300_000)


def test_geometric_probabilities() -> None:
    pmf = Geometric(p="1/3")
    assert [pmf.probability(x) for x in range(3)] == [F(1, 3), F(2, 9), F(4, 27)]
    assert [Geometric(p=1).probability(x) for x in (0, 1, 10**9)] == [1, 0, 0]
    assert Geometric(p=1).sample(4).tolist() == [0, 0, 0, 0]
    with pytest.raises(BudgetError, match="bits"):
        Geometric(p=0.1).probability(10**7)
    for x in (10**400, 10**5000):  # beyond floats, and beyond what Python writes in decimal
        with pytest.raises(BudgetError, match="bits"):
            Geometric(p=0.5).probability(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: NegativeBinomial(r=0, p=0.5), ValueError, "r must be > 0"),
        (lambda: NegativeBinomial(r="many", p=0.5), ValueError, "r='many'"),
        (lambda: NegativeBinomial(r=None, p=0.5), TypeError, "r must be"),  # type: ignore[arg-type]
        (lambda: NegativeBinomial(r=1, p=0), ValueError, r"p must be in \(0, 1\)"),
        (lambda: NegativeBinomial(r=1, p=1), ValueError, r"p must be in \(0, 1\)"),
        (lambda: NegativeBinomial(r=1, p=2), ValueError, r"p must be in \[0, 1\]"),
        (lambda: Geometric(p=0), ValueError, r"p must be from 2\*\*-52"),
        (lambda: Geometric(p="1e-16"), ValueError, r"p must be from 2\*\*-52"),
        (lambda: Geometric(p=1.5), ValueError, "p must be in"),
        (lambda: Geometric(p=None), TypeError, "p must be"),  # type: ignore[arg-type]
        (lambda: Geometric(p=0.5).probability(-1), ValueError, "x must be at least 0"),
        (lambda: Geometric(p=0.5).probability(0.5), TypeError, "x must be an int"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
