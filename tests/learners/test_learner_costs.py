"""What learners state beside epsilon: bounded range of one draw, rho of several, on all neighbors of tiny worlds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from oracle.divergence import exp_bounds
from userdp.accounting import PrivacyCost, PrivacyLedger, PrivacyLossDistribution
from userdp.concepts import PointFunctions, Thresholds
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import BudgetError
from userdp.learners import (
    AgnosticPACClassifier,
    ClippedPairwiseEM,
    HypothesisSelector,
    RealizablePACClassifier,
    ThresholdClassifier,
)

COST = partial(PrivacyCost, neighbors="replace")

F = Fraction
CLASS = PointFunctions(5)
LABELED = [(1, 0), (1, 1), (2, 1)]
DICE = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]
PSI = [[[0, 0], [1, -1]], [[-1, 1], [0, 0]]]

EM: Any = {"mechanism": "exponential"}

# One draw each.
ONE: dict[str, tuple[Any, Any]] = {
    "realizable": (RealizablePACClassifier(epsilon=1, concepts=CLASS, m=1, alpha=0.5, **EM, classes=(0, 1)), LABELED),
    "score": (AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=1, **EM, classes=(0, 1)), LABELED),
    "pairwise": (
        AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=1, method="pairwise", **EM, classes=(0, 1)),
        LABELED,
    ),
    "surrogate, one row": (
        AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=1, method="surrogate", **EM, classes=(0, 1)),
        LABELED,
    ),
    "threshold": (ThresholdClassifier(epsilon=1, domain_size=3, m=1, **EM, classes=(0, 1)), LABELED),
    "distributions": (HypothesisSelector(epsilon=1, candidates=DICE, m=1, **EM), [(0,), (1,)]),
    "clipped pairs": (ClippedPairwiseEM(epsilon=1, psi=PSI, m=1, **EM), [(0,), (1,)]),
}
# A draw of t before it, or noisy counts; and what that costs in rho.
SEVERAL: dict[str, tuple[Any, Any, Fraction]] = {
    "score": (AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=4, **EM, classes=(0, 1)), LABELED[:2], F(58, 100) / 8),
    "threshold": (
        ThresholdClassifier(epsilon=1, domain_size=3, m=4, **EM, classes=(0, 1)),
        LABELED[:2],
        F(58, 100) / 8,
    ),
    "surrogate": (
        AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=2, method="surrogate", alpha=0.9, **EM, classes=(0, 1)),
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
    assert cost == COST(bounded_range=1)
    assert cost.zcdp()[0] == F(1, 8)
    limit = exp_bounds(F(1))[0]
    assert widest(learner, universe, 3) <= limit
    assert widest(at(learner, 3), universe, 3) > limit


@pytest.mark.parametrize(("learner", "universe", "rho"), list(SEVERAL.values()), ids=list(SEVERAL))
def test_several_draws_have_the_rho_that_is_stated(learner: Any, universe: Any, rho: Fraction) -> None:
    assert learner.privacy_cost(n_users=2, n_features=1) == COST(1, rho=rho)
    # The Renyi divergence of order 2 is at most 2 rho.
    pairs = list(neighbors(learner, universe, 2))
    worst = max(sum(a * a / b for a, b in zip(p, q, strict=True)) for p, q in pairs)
    assert 1 < worst <= exp_bounds(2 * rho)[0]


def test_the_method_with_medians_states_epsilon_only() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=1, method="median", classes=(0, 1))
    assert learner.privacy_cost(n_users=9, n_features=1) == COST(1)


def test_a_ledger_in_rho_holds_four_times_as_many() -> None:
    ledger = PrivacyLedger(epsilon=1, delta="1e-6", composition="zcdp")
    cost = at(ONE["realizable"][0], "1/20").privacy_cost(n_users=3, n_features=1)
    pure, bounded = PrivacyCost("1/20").zcdp()[0], cost.zcdp()[0]
    assert (pure, bounded) == (F(1, 800), F(1, 3200))
    for _ in range(20):
        ledger.spend(cost)
    assert ledger.spent["rho"] == F(1, 160)


# --- which mechanism "auto" is


def auto(name: str) -> Any:
    return ONE[name][0].__class__(**{**ONE[name][0].get_params(deep=False), "mechanism": "auto"})


def fitted(learner: Any, universe: Any, ledger: PrivacyLedger | None = None) -> Any:
    """On three users with one row each, through a ledger or not."""
    rows = [universe[code % len(universe)] for code in range(3)]
    X = np.array([[row[0]] for row in rows])
    y = np.array([row[1] for row in rows]) if len(universe[0]) == 2 else None
    if ledger is None:
        return learner.fit(X, groups=range(3)) if y is None else learner.fit(X, y, groups=range(3))
    return ledger.fit(learner, X, y, groups=range(3))


@pytest.mark.parametrize("name", list(ONE))
def test_auto_flips_where_epsilons_are_added_up(name: str) -> None:
    learner, universe = auto(name), ONE[name][1]
    assert learner.privacy_cost(n_users=3, n_features=1) == COST(1)
    alone = fitted(learner, universe)
    assert (alone.mechanism_, alone.privacy_.cost) == ("permute-and-flip", COST(1))
    ledger = PrivacyLedger(epsilon=1)
    charged = fitted(learner, universe, ledger)
    assert (charged.mechanism_, charged.privacy_.cost) == ("permute-and-flip", COST(1))
    assert [entry.cost for entry in ledger.entries] == [COST(1)]
    # The range is wider than epsilon in some of these worlds, and epsilon holds in all.
    pairs = neighbors(learner, universe, 3)
    assert max(a / b for p, q in pairs for a, b in zip(p, q, strict=True)) <= exp_bounds(F(1))[0]


@pytest.mark.parametrize("name", ["threshold", "score", "distributions"])
def test_permute_and_flip_has_no_bounded_range(name: str) -> None:
    assert widest(auto(name), ONE[name][1], 3) > exp_bounds(F(1))[1]


@pytest.mark.parametrize("name", list(ONE))
@pytest.mark.parametrize("composition", ["zcdp", "exact"])
def test_auto_is_the_exponential_mechanism_where_more_is_counted(name: str, composition: Any) -> None:
    ledger = PrivacyLedger(epsilon=4, delta="1e-6", composition=composition)
    learner = auto(name)
    charged = fitted(learner, ONE[name][1], ledger)
    assert (charged.mechanism_, charged.privacy_.cost) == ("exponential", COST(bounded_range=1))
    # What is fitted next without that ledger flips again, and so does a clone.
    assert fitted(at(charged, 1), ONE[name][1]).mechanism_ == "permute-and-flip"
    assert fitted(charged, ONE[name][1]).mechanism_ == "permute-and-flip"


def test_a_stated_mechanism_is_drawn_whatever_is_counted() -> None:
    ledger = PrivacyLedger(epsilon=8, delta="1e-6", composition="zcdp")
    learner, universe = auto("threshold"), ONE["threshold"][1]
    charged = fitted(learner.set_params(mechanism="permute-and-flip"), universe, ledger)
    assert (charged.mechanism_, charged.privacy_.cost) == ("permute-and-flip", COST(1))
    assert ledger.spent["rho"] == F(1, 2)
    slots = [(PrivacyLossDistribution.pure(1), 1)]
    exact = PrivacyLedger(epsilon=4, delta="1e-6", composition="exact", slots=slots)
    assert fitted(learner, universe, exact).mechanism_ == "permute-and-flip"
    assert [slot.used for slot in exact.slots] == [1]


def test_a_ledger_in_rho_charges_twenty_fits_by_auto_as_exponential_ones() -> None:
    ledger = PrivacyLedger(epsilon=1, delta="1e-6", composition="zcdp")
    learner = at(auto("realizable"), "1/20")
    assert learner.privacy_cost(n_users=3, n_features=1).zcdp()[0] == F(1, 800)
    for _ in range(20):
        fitted(learner, LABELED, ledger)
    assert ledger.spent["rho"] == F(1, 160)


def test_auto_counts_candidates_and_nothing_else() -> None:
    for size, expected in ((63, COST(1)), (64, COST(bounded_range=1))):
        for learner in (
            ThresholdClassifier(epsilon=1, domain_size=size, m=1, classes=(0, 1)),
            RealizablePACClassifier(epsilon=1, concepts=Thresholds(size), m=1, classes=(0, 1)),
            AgnosticPACClassifier(epsilon=1, concepts=Thresholds(size), m=1, classes=(0, 1)),
        ):
            assert learner.privacy_cost(n_users=3, n_features=1) == expected
    dice = [[(64 + k) / 256, (192 - k) / 256] for k in range(65)]
    for size, expected in ((64, COST(1)), (65, COST(bounded_range=1))):
        selector = HypothesisSelector(epsilon=1, candidates=dice[:size], m=1)
        assert selector.privacy_cost(n_users=3, n_features=1) == expected


def test_parts_before_the_choice_state_their_range() -> None:
    """9/100 of 1/8 for t by the exponential mechanism, and 49/100 of 1/2 for what flips."""
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=4, classes=(0, 1))
    rho = F(9, 100) / 8 + F(49, 100) / 2
    assert learner.privacy_cost(n_users=2, n_features=1) == COST(1, rho=rho)
    pairs = list(neighbors(learner, LABELED[:2], 2))
    assert 1 < max(sum(a * a / b for a, b in zip(p, q, strict=True)) for p, q in pairs) <= exp_bounds(2 * rho)[0]


def test_parts_that_are_all_pure_count_apart() -> None:
    """Half of epsilon for noisy counts, and half for what flips: 1/4 of 1/2 twice, below the 1/2 of the whole."""
    learner = AgnosticPACClassifier(epsilon=1, concepts=CLASS, m=2, method="surrogate", alpha=0.9, classes=(0, 1))
    assert learner.privacy_cost(n_users=2, n_features=1) == COST(1, rho=F(1, 4))
    pairs = list(neighbors(learner, LABELED[:2], 2))
    assert 1 < max(sum(a * a / b for a, b in zip(p, q, strict=True)) for p, q in pairs) <= exp_bounds(F(1, 2))[0]


def test_distributions_that_are_not_computed_are_refused_before_work() -> None:
    given: dict[str, Any] = {"epsilon": 1, "m": 1, "mechanism": "permute-and-flip"}
    dice = [[(64 + k) / 256, (192 - k) / 256] for k in range(65)]
    learners = (
        ThresholdClassifier(domain_size=64, **given, classes=(0, 1)),
        RealizablePACClassifier(concepts=Thresholds(64), **given, classes=(0, 1)),
        AgnosticPACClassifier(concepts=Thresholds(64), **given, classes=(0, 1)),
        HypothesisSelector(candidates=dice, **given),
    )
    for learner in learners:
        assert fitted(learner, [(0, 0)] if hasattr(learner, "classes") else [(0,)]).mechanism_ == "permute-and-flip"
        with pytest.raises(BudgetError, match="up to 64 candidates; got 65: audit mechanism='exponential'"):
            learner.output_distribution([[0], [1]], [0, 1] if hasattr(learner, "classes") else None, groups=[1, 2])


@pytest.mark.parametrize("value", ["permute_and_flip", "EM", None, 1, ["auto"]])
def test_other_mechanisms_are_refused(value: Any) -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=3, m=1, mechanism=value, classes=(0, 1))
    with pytest.raises(ValueError, match="mechanism must be one of 'auto', 'exponential', 'permute-and-flip'; got"):
        learner.privacy_cost(n_users=3, n_features=1)


def test_coins_without_end_are_refused() -> None:
    learner = ThresholdClassifier(epsilon=1, domain_size=2**24, m=1, mechanism="permute-and-flip", classes=(0, 1))
    with pytest.raises(ValueError, match=r"at most 2\*\*24; got 16777217: pass mechanism='exponential'"):
        learner.privacy_cost(n_users=3, n_features=1)
    learner = ThresholdClassifier(
        epsilon=1, domain_size=3, m=1, method="median", mechanism="permute-and-flip", classes=(0, 1)
    )
    with pytest.raises(ValueError, match="is for method='score'"):
        learner.privacy_cost(n_users=3, n_features=1)
