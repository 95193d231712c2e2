"""Exact audits of the counts behind a shuffler, from the tables that are drawn from: all neighbors, all counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from oracle.divergence import exp_bounds
from oracle.shuffle import convolved, count_pmf, integer_divergence, products
from userdp.protocols.shuffle import Histogram, Mode, NegativeBinomialSum

DELTAS = [Fraction(1, 10**3), Fraction(1, 10**6)]
E = exp_bounds(Fraction(1), 300)[1]
"""A fraction just above e: what exceeds a delta at it exceeds it at epsilon = 1."""


def worst_sum(tables: Sequence[Sequence[int]]) -> Fraction:
    """Over all inputs of these users and all replaced users: at most this many messages, and exactly so likely."""
    n = len(tables)

    def pmf(inputs: tuple[int, ...]) -> list[int]:
        return convolved([[0] * x + list(t) + [0] * (1 - x) for x, t in zip(inputs, tables, strict=True)])

    pmfs = {inputs: pmf(inputs) for inputs in itertools.product((0, 1), repeat=n)}
    worst = Fraction(0)
    for inputs, user in itertools.product(pmfs, range(n)):
        other = (*inputs[:user], 1 - inputs[user], *inputs[user + 1 :])
        worst = max(worst, integer_divergence(pmfs[inputs], pmfs[other], E))
    return worst


def worst_of_items(table: Sequence[int], n: int, n_items: int, complement: bool) -> Fraction:
    """Over all items of n users and all replaced users: the counts of the other items have the same distributions."""
    pmf = [count_pmf(table, [1] * ones + [0] * (n - ones)) for ones in range(n + 1)]

    def inputs(items: Sequence[int], item: int) -> int:
        own = list(items).count(item)
        return n - own if complement else own

    pairs = set()
    for items in itertools.product(range(n_items), repeat=n):
        for new in set(range(n_items)) - {items[0]}:
            other = (new, *items[1:])
            changed = (items[0], new)
            assert all(inputs(items, u) == inputs(other, u) for u in set(range(n_items)) - set(changed))
            pairs.add(tuple((inputs(items, u), inputs(other, u)) for u in changed))
    assert all(len(pair) == 2 for pair in pairs)
    return max(integer_divergence(products(pmf[a], pmf[b]), products(pmf[c], pmf[d]), E) for (a, c), (b, d) in pairs)


def close(found: Fraction, certified: Fraction) -> bool:
    return certified * (1 - Fraction(1, 10**15)) <= found <= certified


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("delta", DELTAS)
def test_sums(n: int, delta: Fraction) -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=delta, n_users=n, round_id="audit")
    found = worst_sum([protocol.user_noise().weights] * n)
    print(f"n={n}: delta {float(found):.9g}, certified {float(protocol.certified_delta):.9g}")
    assert close(found, protocol.certified_delta)
    assert found <= delta


@pytest.mark.parametrize("estimates", ["at_most", "at_least"])
@pytest.mark.parametrize(("n", "delta"), [(1, DELTAS[0]), (2, DELTAS[0]), (2, DELTAS[1])])
def test_histograms(n: int, delta: Fraction, estimates: str) -> None:
    protocol = Histogram(epsilon=1, delta=delta, n_items=3, n_users=n, round_id="audit", estimates=estimates)
    found = worst_of_items(protocol.user_noise().weights, n, 3, estimates == "at_most")
    print(f"n={n}: delta {float(found):.9g}, certified {float(protocol.certified_delta):.9g}")
    assert close(found, protocol.certified_delta)
    assert found <= delta


def test_selections_draw_what_histograms_draw() -> None:
    common: Any = {"epsilon": 1, "delta": 1e-3, "n_items": 3, "n_users": 2, "round_id": "audit"}
    assert Mode(**common).user_noise().weights == Histogram(**common).user_noise().weights


def test_a_dropout_is_covered_and_two_are_not() -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=3, round_id="audit", dropout="1/3")
    table = protocol.user_noise().weights
    assert worst_sum([table] * 3) < worst_sum([table] * 2)
    assert close(worst_sum([table] * 2), protocol.certified_delta)
    assert worst_sum([table]) > Fraction(1, 1000)


# The same audits fail where they should.


def table_of(r: Fraction, p: Fraction, n: int) -> Sequence[int]:
    from userdp.mechanisms import NegativeBinomial

    return NegativeBinomial(r=r / n, p=p).pmf().weights


def test_the_audit_reads_the_table_of_the_protocol() -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=2, round_id="audit")
    assert table_of(protocol.r, protocol.p, 2) == protocol.user_noise().weights


@pytest.mark.parametrize("delta", DELTAS)
def test_half_the_noise_is_found_out(delta: Fraction) -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=delta, n_users=2, round_id="audit")
    assert worst_sum([table_of(protocol.r / 2, protocol.p, 2)] * 2) > 2 * delta
    items = Histogram(epsilon=1, delta=delta, n_items=3, n_users=2, round_id="audit")
    assert worst_of_items(table_of(items.r / 2, items.p, 2), 2, 3, True) > 2 * delta


def test_the_other_p_is_found_out() -> None:
    r, p = 3 * (1 + Fraction(math.log(1000))), Fraction(math.exp(-0.2))
    assert float(worst_sum([table_of(r, 1 - p, 2)] * 2)) == pytest.approx(0.022459, abs=1e-6)
    assert float(worst_sum([table_of(r, p, 2)] * 2)) == pytest.approx(1.54109e-12, rel=1e-5)


def test_two_changed_counts_need_more_noise_than_one() -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=2, round_id="audit")
    assert worst_of_items(protocol.user_noise().weights, 2, 3, True) > Fraction(3, 2) * DELTAS[0]


def test_one_user_without_noise_is_found_out() -> None:
    protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=2, round_id="audit")
    assert worst_sum([protocol.user_noise().weights, [2**128]]) > DELTAS[0]
