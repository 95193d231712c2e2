"""Subsampling and the order of records: [GKKMMZ23, Theorem 7] is for mechanisms that do not look at it."""

from __future__ import annotations

import itertools
from fractions import Fraction

from userdp import LogRatio
from userdp.accounting import subsampling_amplification
from userdp.algorithms import finite_algorithm
from userdp.item_to_user import SubsampledAlgorithm

EIGHTH = Fraction(1, 8)
KNOWN = {("a", "b"): 4 * EIGHTH, ("a", "c"): 2 * EIGHTH, ("A", "b"): 2 * EIGHTH, ("A", "c"): EIGHTH, ("b", "c"): EIGHTH}


def ones(pair: tuple[str, ...]) -> Fraction:
    """The largest extension of the known probabilities that changes by 2 at most where a record is replaced."""
    return min(mass * 2 ** sum(u != v for u, v in zip(pair, known, strict=True)) for known, mass in KNOWN.items())


def test_a_mechanism_that_looks_at_the_order_exceeds_the_formula() -> None:
    for pair, other in itertools.product(itertools.product("abcA", repeat=2), repeat=2):
        if sum(u != v for u, v in zip(pair, other, strict=True)) == 1:
            assert ones(pair) <= 2 * ones(other)
            assert 1 - ones(pair) <= 2 * (1 - ones(other))
    ordered = finite_algorithm((0, 1))(lambda pair: [1 - ones(tuple(pair)), ones(tuple(pair))])
    subsampled = SubsampledAlgorithm(ordered, 2)
    before, after = (subsampled.pmf(((first,), ("b",), ("c",))).fractions()[1] for first in "aA")
    assert (before, after) == (Fraction(7, 24), Fraction(1, 6))
    allowed = subsampling_amplification(LogRatio(2), 0, n_sampled=2, n_total=3).epsilon
    assert allowed == LogRatio(5, 3)
    assert before / after == Fraction(7, 4) > Fraction(5, 3)
