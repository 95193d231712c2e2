"""What learners state beside epsilon: bounded range of one draw, rho of several, on all neighbors of tiny worlds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

pytest.importorskip("sklearn")

from oracle.divergence import exp_bounds
from userdp.accounting import PrivacyCost, PrivacyLedger
from userdp.concepts import PointFunctions
from userdp.estimators import as_finite_algorithm
from userdp.learners import (
    AgnosticPACClassifier,
    ClippedPairwiseEM,
    HypothesisSelector,
    RealizablePACClassifier,
    ThresholdClassifier,
)

F = Fraction
CLASS = PointFunctions(5)
LABELED = [(1, 0), (1, 1), (2, 1)]
DICE = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]
PSI = [[[0, 0], [1, -1]], [[-1, 1], [0, 0]]]

# One draw each.
ONE: dict[str, tuple[Any, Any]] = {
    "realizable": (RealizablePACClassifier(epsilon=1, concepts=CLASS, m=1, alpha=0.5), LABELED),
    "score": (AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=1), LABELED),
    "pairwise": (AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=1, method="pairwise"), LABELED),
    "surrogate, one row": (AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=1, method="surrogate"), LABELED),
    "threshold": (ThresholdClassifier(epsilon=1, domain_size=3, m=1), LABELED),
    "distributions": (HypothesisSelector(epsilon=1, candidates=DICE, m=1), [(0,), (1,)]),
    "clipped pairs": (ClippedPairwiseEM(epsilon=1, psi=PSI, m=1), [(0,), (1,)]),
}
# A draw of t before it, or noisy counts; and what that costs in rho.
SEVERAL: dict[str, tuple[Any, Any, Fraction]] = {
    "score": (AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=4), LABELED[:2], F(58, 100) / 8),
    "threshold": (ThresholdClassifier(epsilon=1, domain_size=3, m=4), LABELED[:2], F(58, 100) / 8),
    "surrogate": (
        AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=2, method="surrogate", alpha=0.9),
        LABELED[:2],
        F(1, 4) / 2 + F(1, 4) / 8,
    ),
}


def neighbors(learner: Any, universe: Any, n_users: int) -> Iterator[tuple[list[Fraction], list[Fraction]]]:
    """The distributions of all ordered pairs of neighbors, users in order."""
    algorithm = as_finite_algorithm(learner)
    kinds = list(itertools.product(universe, repeat=learner.m))

    @cache
    def masses(dataset: Any) -> list[Fraction]:
        return algorithm.pmf(dataset).fractions()

    for dataset in itertools.combinations_with_replacement(kinds, n_users):
        for kind in kinds:
            yield masses(dataset), masses(tuple(sorted((kind, *dataset[1:]))))


def widest(learner: Any, universe: Any, n_users: int) -> Fraction:
    """e to the length of the widest interval of losses."""
    pairs = neighbors(learner, universe, n_users)
    spans = (
        max(a / b for a, b in zip(p, q, strict=True)) * max(b / a for a, b in zip(p, q, strict=True)) for p, q in pairs
    )
    return max(spans)


def at(learner: Any, epsilon: Any) -> Any:
    return type(learner)(**{**learner.get_params(deep=False), "epsilon": epsilon})


@pytest.mark.parametrize(("learner", "universe"), list(ONE.values()), ids=list(ONE))
def test_one_draw_has_the_range_that_is_stated(learner: Any, universe: Any) -> None:
    cost = learner.privacy_cost(n_users=3, n_features=1)
    assert cost == PrivacyCost(bounded_range=1)
    assert cost.zcdp()[0] == F(1, 8)
    limit = exp_bounds(F(1))[0]
    assert widest(learner, universe, 3) <= limit
    assert widest(at(learner, 3), universe, 3) > limit


@pytest.mark.parametrize(("learner", "universe", "rho"), list(SEVERAL.values()), ids=list(SEVERAL))
def test_several_draws_have_the_rho_that_is_stated(learner: Any, universe: Any, rho: Fraction) -> None:
    assert learner.privacy_cost(n_users=2, n_features=1) == PrivacyCost(1, rho=rho)
    # The Renyi divergence of order 2 is at most 2 rho.
    pairs = list(neighbors(learner, universe, 2))
    worst = max(sum(a * a / b for a, b in zip(p, q, strict=True)) for p, q in pairs)
    assert 1 < worst <= exp_bounds(2 * rho)[0]


def test_the_method_with_medians_states_epsilon_only() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=1, method="median")
    assert learner.privacy_cost(n_users=9, n_features=1) == PrivacyCost(1)


def test_a_ledger_in_rho_holds_four_times_as_many() -> None:
    ledger = PrivacyLedger(epsilon=1, delta="1e-6", composition="zcdp")
    cost = at(ONE["realizable"][0], "1/20").privacy_cost(n_users=3, n_features=1)
    pure, bounded = PrivacyCost("1/20").zcdp()[0], cost.zcdp()[0]
    assert (pure, bounded) == (F(1, 800), F(1, 3200))
    for _ in range(20):
        ledger.spend(cost)
    assert ledger.spent["rho"] == F(1, 160)
