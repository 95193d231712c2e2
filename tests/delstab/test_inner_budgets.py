"""Inner budgets of DelStab: what they leave out, what they never refuse, and what no split can go below."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from oracle import delstab as reference
from oracle.divergence import exp_bounds
from userdp import LogRatio
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm
from userdp.delstab import BOTTOM, DelStab, compare_inner_budgets

F = Fraction
CONSTANT = SymmetricAlgorithm((0, 1), lambda kept: [1, 0])
LEFT_OUT = {
    ("1/10", "1/2"): 68,
    ("1/20", "1/2"): 62,
    ("1/20", "1/10"): 60,
    ("1/100", "1/10"): 56,
    ("1/1000", "1/10"): 54,
}
"""At epsilon = 1, delta = 1e-6."""


def steps(epsilon: Fraction, delta: Fraction) -> int:
    """The least M with q_0 = 0 and q_M = 1, by the reference."""
    low, high = exp_bounds(epsilon, 200)
    chains = {len(reference.refusal_probabilities(multiplier, delta)) for multiplier in (low, high)}
    (length,) = chains
    return length - 1


@pytest.mark.parametrize(("budget", "left_out"), LEFT_OUT.items(), ids=str)
def test_users_left_out(budget: Any, left_out: int) -> None:
    delstab = DelStab(CONSTANT, epsilon=1, delta="1e-6", inner_budget=budget)
    noise = 1 - 2 * F(budget[0]), F("1e-6") * (1 - F(budget[1]))
    assert delstab.deletions == left_out
    assert 2 * steps(*noise) - 2 in (left_out, left_out - 2)  # the table is rounded: a step more at most
    assert delstab.epsilon_bar == F(budget[0])
    assert delstab.release([(0,)] * left_out + [(0,)]) in (0, 1)


def test_no_split_leaves_out_fewer_than_the_bound() -> None:
    assert 2 * steps(F(1), F("1e-6")) - 2 == 54
    # What the bound rests on: refusals cannot rise faster than the recursion, whatever they do on the way.
    multiplier, delta = F(3, 2), F(1, 10)
    fastest = reference.refusal_probabilities(multiplier, delta)
    tried = 0
    for grid in itertools.product(range(21), repeat=3):
        chain = [F(0), *(F(place, 20) for place in grid)]
        if all(
            after <= multiplier * before + delta and 1 - before <= multiplier * (1 - after) + delta
            for before, after in itertools.pairwise(chain)
        ):
            tried += 1
            assert all(q <= most for q, most in zip(chain, fastest, strict=False))
    assert tried > 10


def laplace(total: int, n_users: int) -> Sequence[Fraction]:
    weights = [F(9, 10) ** abs(output - total) for output in range(2 * n_users + 1)]
    return [weight / sum(weights) for weight in weights] + [F(0)] * (80 - 2 * n_users)


def test_data_within_the_width_are_never_refused() -> None:
    counts = AdditiveAlgorithm(range(81), lambda user: user[0], laplace, statistic_range=(0, 2))
    compared = compare_inner_budgets(
        counts, epsilon=6, delta="0.01", n_users=12, width=1, inner_budgets=[("1/4", "1/2"), ("1/10", "1/2")]
    )
    assert [row.deletions for row in compared.rows] == sorted(row.deletions for row in compared.rows)
    answered = refused = 0
    for row in compared.rows:
        delstab = DelStab(counts, epsilon=6, delta="0.01", inner_budget=row.inner_budget)
        assert row.widest is not None
        for low in (0, 1):
            for ones in range(13):
                users = [(low,)] * ones + [(low + 1,)] * (12 - ones)
                if row.widest >= 1:
                    assert delstab.refusal_probability(users) == 0
                    answered += 1
        refused += delstab.refusal_probability([(0,)] * 6 + [(2,)] * 6) > 0
    assert answered
    assert refused
    assert compared.best.deletions == min(row.deletions for row in compared.rows if (row.widest or 0) >= 1)
    assert "never refused" in compared.reason


def test_a_width_is_not_compared_with_a_smoothness() -> None:
    """Equal users are answered by all, users half a step apart by none: a width of 0 is no reason to look elsewhere."""
    counts = AdditiveAlgorithm(range(81), lambda user: user[0], laplace, statistic_range=(0, 2))
    asked: Any = {"epsilon": 1, "delta": "0.01", "n_users": 30, "inner_budgets": [("1/4", "1/2"), ("1/100", "1/2")]}
    compared = compare_inner_budgets(counts, width="1/1000000", **asked)
    assert 0 in [row.widest for row in compared.rows]
    enough = [row for row in compared.rows if row.widest is not None and row.widest >= F("1/1000000")]
    assert compared.best == (enough[0] if enough else max(compared.rows, key=lambda row: row.widest or 0))
    assert ("never refused" in compared.reason) is bool(enough)
    few_kinds = compare_inner_budgets(CONSTANT, epsilon=1, delta="1e-6", n_users=1000, smoothness="1/1000")
    assert "of at most 3 kinds of users are never refused" in few_kinds.reason


def test_smooth_algorithms_are_never_refused() -> None:
    """One replaced user moves the pmf by a factor of at most e^s; positions count for an algorithm that sees them."""
    for kind in (lambda pmf: SymmetricAlgorithm((0, 1), pmf), finite_algorithm((0, 1))):
        compared = compare_inner_budgets(
            kind(lambda kept: [F(1, 2), F(1, 2)]), epsilon=6, delta="0.01", n_users=10, smoothness=0
        )
        row = compared.best
        ratio = exp_bounds(F(row.smoothness), 200)[0]

        def smooth(kept: Any, ratio: Fraction = ratio) -> list[Fraction]:
            weights = [ratio ** sum(user[0] for user in kept), F(1)]
            return [weight / sum(weights) for weight in weights]

        delstab = DelStab(kind(smooth), epsilon=6, delta="0.01", inner_budget=row.inner_budget)
        for ones in range(11):
            assert delstab.refusal_probability([(1,)] * ones + [(0,)] * (10 - ones)) == 0


def test_tables_and_reasons() -> None:
    compared = compare_inner_budgets(CONSTANT, epsilon=1, delta="1e-6", n_users=70)
    assert "inner_budget (1/10, 1/2)" in repr(compared)
    assert compared.to_frame("pandas").shape == (5, 9)
    assert "left out" in compared._repr_html_()
    hopeless = compare_inner_budgets(CONSTANT, epsilon=1, delta="1e-6", n_users=70, smoothness=3)
    assert hopeless.best == compared.best
    assert "comes nearest" in hopeless.reason
    # A row for each budget that leaves anyone in, and a refusal only where none does.
    with pytest.raises(ValueError, match="n_users=56 are too few: 57 are needed"):
        compare_inner_budgets(CONSTANT, epsilon=1, delta="1e-6", n_users=56)


@pytest.mark.parametrize(
    ("budget", "error", "match"),
    [
        ("1/10", TypeError, "inner_budget must be two shares"),
        (("1/10",), TypeError, "two shares"),
        ((0, "1/2"), ValueError, "in \\(0, 1/2\\)"),
        (("1/2", "1/2"), ValueError, "in \\(0, 1/2\\)"),
        (("1/10", 1), ValueError, "of delta in"),
        ((float("nan"), "1/2"), ValueError, "inner_budget must be finite"),
        ((None, "1/2"), TypeError, "inner_budget must be"),
        ((0.1, 0.5), ValueError, "denominator of at most 1000"),
    ],
    ids=str,
)
def test_bad_budgets(budget: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        DelStab(CONSTANT, epsilon=LogRatio(3), delta="0.01", inner_budget=budget)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="inner_budget is for calibration='optimal'"):
        DelStab(CONSTANT, epsilon=1, delta="0.01", calibration="tight", inner_budget=("1/10", "1/2"))
    ask: Any = lambda **given: compare_inner_budgets(CONSTANT, epsilon=1, delta="0.01", n_users=90, **given)  # noqa: E731
    with pytest.raises(TypeError, match="width is for an AdditiveAlgorithm"):
        ask(width=1)
    with pytest.raises(TypeError, match="not both"):
        ask(width=1, smoothness=1)
    with pytest.raises(ValueError, match="smoothness must be >= 0"):
        ask(smoothness=-1)
    with pytest.raises(ValueError, match="inner_budgets must hold"):
        ask(inner_budgets=[])
    with pytest.raises(ValueError, match="only an AdditiveAlgorithm"):
        DelStab(CONSTANT, epsilon=8, delta="0.01").certified_distance(20)


def test_copies_keep_the_budget() -> None:
    import copy

    delstab = DelStab(CONSTANT, epsilon=1, delta="1e-6", inner_budget=("1/20", "1/10"))
    assert copy.copy(delstab).deletions == delstab.deletions == 60
    assert BOTTOM in delstab.outputs
