"""Optimal selections, what any selection needs, and how far other algorithms are from the best."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

pytest.importorskip("highspy")
pytest.importorskip("sklearn")

from oracle import optimal as oracle
from userdp.algorithms import SymmetricAlgorithm, finite_algorithm
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.exact import LogRatio
from userdp.exceptions import BudgetError
from userdp.learners import ThresholdClassifier
from userdp.mechanisms import ExponentialMechanism, PurePrivateMode
from userdp.optimal import OptimalSelection, agreement_certificate, optimal_mechanism, optimality_gap
from userdp.testing import assert_user_private

F = Fraction


@cache
def choice(n_users: int = 4, n_items: int = 3) -> OptimalSelection:
    return OptimalSelection(n_items=n_items, n_users=n_users, epsilon=LogRatio(3))


def test_a_selection_is_what_the_general_program_finds() -> None:
    known = optimal_mechanism(oracle.regret, universe=range(3), n_users=4, epsilon=LogRatio(3))
    assert choice().value == choice().lower_bound == known.value
    for items in itertools.product(range(3), repeat=4):
        masses = choice().pmf(choice().tally(items))
        loss = sum(mass * oracle.regret([(item,) for item in items], o) for o, mass in enumerate(masses.fractions()))
        assert loss <= choice().value


def test_a_selection_passes_its_audit_and_fails_that_of_half() -> None:
    known = {"universe": range(3), "n_users": 4, "n_examples": 1, "delta": 0}
    assert_user_private(choice().as_finite_algorithm(), **known, epsilon=LogRatio(3))
    assert audit_user_level(choice().as_finite_algorithm(), **known, epsilon=LogRatio(2)).holds is False
    assert choice().cost.epsilon == LogRatio(3)


@pytest.mark.parametrize("delta", ["0", "1/20"])
def test_probability_of_error(delta: str) -> None:
    """One user with one of k items: randomized response."""
    found = OptimalSelection(n_items=5, n_users=1, epsilon=LogRatio(3), delta=delta, loss="error")
    assert found.value == found.lower_bound == oracle.randomized_response(5, F(3), F(delta))
    assert found.verify().finding == "established"


def test_what_is_no_item_counts_as_the_default() -> None:
    for odd in (None, "a", 3, -1, 1.5, float("nan"), object(), [], {}, b"", True):
        assert choice().tally([odd, 1, 1, 2]) == {0: 1, 1: 2, 2: 1} or odd in (True, 1)
        assert choice().release([odd, 1, 1, 2]) in range(3)
    other = OptimalSelection(n_items=2, n_users=1, epsilon=1, default=1)
    assert other.tally(["?"]) == {1: 1}
    for items in ([], [0] * 3, [0] * 5):
        with pytest.raises(ValueError, match="counts must be those of n_users=4 users"):
            choice().release(items)


@pytest.mark.statistical
def test_draws_of_a_selection_have_the_stated_distribution() -> None:
    """A chi-squared test with a false-alarm rate of 1e-6 (two degrees of freedom: 27.63)."""
    items, draws, seen = [0, 0, 1, 2], 4000, [0, 0, 0]
    for _ in range(draws):
        seen[choice().release(items)] += 1
    expected = choice().pmf(choice().tally(items)).probabilities * draws
    assert sum((a - b) ** 2 / b for a, b in zip(seen, expected, strict=True)) < 27.63


def test_copies_of_a_selection() -> None:
    text = choice().certificate.to_json()
    for copy in (pickle.loads(pickle.dumps(choice())), OptimalSelection.from_certificate(text, default=2)):
        assert copy.pmf({0: 2, 1: 2}) == choice().pmf({0: 2, 1: 2})
        assert (copy.n_items, copy.n_users, copy.epsilon, copy.delta) == (3, 4, LogRatio(3), 0)
    assert OptimalSelection.from_certificate(text, default=2).default == 2
    with pytest.raises(ValueError, match="default must be an item from 0 to 2; got 3"):
        OptimalSelection.from_certificate(text, default=3)
    bound = agreement_certificate(2, 3, F(9, 10), 1)
    with pytest.raises(ValueError, match="certificate is about a bound"):
        OptimalSelection.from_certificate(bound)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"n_items": 0}, ValueError, "n_items must be at least 1"),
    ({"n_items": 2**20}, ValueError, "n_items must be at most 1024; got 1048576"),
    ({"n_users": True}, TypeError, "n_users must be an int"),
    ({"loss": "cost"}, ValueError, "loss must be 'regret' or 'error'; got 'cost'"),
    ({"default": None}, ValueError, "default must be an item from 0 to 2; got None"),
    ({"default": 3}, ValueError, "default must be an item from 0 to 2; got 3"),
    ({"delta": 1e-12}, ValueError, "delta must be 0 or at least 1e-8"),
    ({"n_users": 10**12}, BudgetError, "have more than 50,000 sorted counts"),
    ({"n_users": 200, "n_items": 50}, BudgetError, r"n_users=200 and n_items=50 have [\d,]+ sorted counts"),
    (
        {"n_users": 30, "max_constraints": 1000},
        BudgetError,
        "91 orbits of datasets, 256 unknowns and 1,380 constraints",
    ),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD, ids=[str(place) for place in range(len(BAD))])
def test_bad_selections(change: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        OptimalSelection(**({"n_items": 3, "n_users": 4, "epsilon": 1} | change))


# --- what any selection needs


def agreeing(n: int, k: int, p: Fraction, pmf: Any) -> Fraction:
    """How likely a selection misses the item 0, which users have with probability p; the others have the item 1."""
    missed = F(0)
    for has in range(n + 1):
        counts = {0: has, 1: n - has}
        chance = math.comb(n, has) * p**has * (1 - p) ** (n - has)
        missed += chance * (1 - pmf({item: count for item, count in counts.items() if count}).fractions()[0])
    return missed


@pytest.mark.parametrize(("n", "k"), [(1, 2), (3, 2), (4, 3), (3, 5), (5, 4)])
def test_no_selection_misses_less(n: int, k: int) -> None:
    p = F(4, 5)
    bound = agreement_certificate(n, k, p, LogRatio(3)).lower_bound
    exponential = PurePrivateMode(epsilon=LogRatio(3), n_items=k)
    assert bound <= agreeing(n, k, p, exponential.pmf)
    assert bound <= agreeing(n, k, p, choice(n, k).pmf)


PUBLISHED = [
    (7, 2, "0.9", 0.040414, 0.032270),
    (24, 2, "0.7", 0.038365, 0.032790),
    (8, 3, "0.9", 0.040486, 0.027152),
    (10, 16, "0.9", 0.040561, 0.029245),
    (15, 1024, "0.9", 0.041338, 0.026584),
]


@pytest.mark.parametrize(("n", "k", "agreement", "before", "then"), PUBLISHED)
def test_bounds_that_were_computed_elsewhere(n: int, k: int, agreement: str, before: float, then: float) -> None:
    """With n users every mechanism misses too often for beta = 0.1, and with one more some mechanism does not."""
    first = agreement_certificate(n, k, F(agreement), 1)
    assert float(first.lower_bound) == pytest.approx(before, abs=1e-6)
    assert first.lower_bound > F(1, 30)
    second = agreement_certificate(n + 1, k, F(agreement), 1)
    assert float(second.value) == pytest.approx(then, abs=1e-6)
    assert first.verify().finding == second.verify().finding == "established"


def test_bad_agreements() -> None:
    for agreement in (0.9, 2, F(3, 2), F(-1, 2), None):
        with pytest.raises(ValueError, match="agreement must be a Fraction in"):
            agreement_certificate(2, 2, agreement, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="agreement must have a denominator"):
        agreement_certificate(2, 2, F(1, 3**100), 1)
    with pytest.raises(ValueError, match="n_items must be at least 2"):
        agreement_certificate(2, 1, F(1, 2), 1)
    with pytest.raises(BudgetError, match="A smaller n_users gives a bound as well"):
        agreement_certificate(100, 100, F(9, 10), 1)


# --- how far algorithms are


def excess(dataset: Any, threshold: Any) -> int:
    """How many more mistakes a threshold on 1, 2 makes than the best one; points above it are of the second class."""
    rows = [row for user in dataset for row in user]

    def mistakes(t: int) -> int:
        return sum((x > t) != y for x, y in rows)

    return mistakes(threshold) - min(map(mistakes, (0, 1, 2)))


def test_a_learner_beside_the_best() -> None:
    """The optimum for 2 points and 4 users was computed elsewhere."""
    learner = as_finite_algorithm(ThresholdClassifier(epsilon=1, domain_size=2, m=1, classes=(0, 1)), n_users=4)
    universe = [(x, y) for x in (1, 2) for y in (0, 1)]
    found = optimality_gap(learner, excess, universe=universe, n_users=4, epsilon=1)
    assert float(found.lower_bound) == pytest.approx(0.5575, abs=5e-5)
    assert found.ratio == pytest.approx(float(found.value / found.lower_bound))
    assert 1.1 < found.ratio < 1.7
    # The dataset is one on which the algorithm loses as much.
    pmf = learner.pmf(found.dataset)
    masses = pmf.fractions() if hasattr(pmf, "fractions") else [F(mass) for mass in pmf]
    assert sum(m * excess(found.dataset, o) for m, o in zip(masses, learner.outputs, strict=True)) == found.value


def test_the_best_is_as_good_as_itself() -> None:
    best = optimal_mechanism(oracle.regret, universe=("a", "b"), n_users=3, epsilon=LogRatio(4))
    found = optimality_gap(best, oracle.regret, universe=("a", "b"), n_users=3, epsilon=LogRatio(4))
    assert found.ratio == 1
    assert found.certificate.verify().finding == "established"
    free = SymmetricAlgorithm((0,), lambda dataset: [1])
    assert optimality_gap(free, lambda dataset, o: 0, universe=(0, 1), n_users=2, epsilon=1).ratio == 1


def test_the_exponential_mechanism_for_two_items() -> None:
    """e^epsilon = 4, 7 users: 1/3 beside the best 1/5."""
    mechanism = ExponentialMechanism(epsilon=LogRatio(4), sensitivity=1, maximize=True)

    def distribution(dataset: Any) -> Any:
        items = [user[0] for user in dataset]
        return mechanism.pmf([items.count(0), items.count(1)])

    algorithm = SymmetricAlgorithm((0, 1), distribution)
    found = optimality_gap(algorithm, oracle.regret, universe=(0, 1), n_users=7, epsilon=LogRatio(4))
    assert found.lower_bound == F(1, 5)
    assert float(found.value) == pytest.approx(1 / 3, rel=1e-9)
    assert found.ratio == pytest.approx(5 / 3, rel=1e-9)


def test_algorithms_that_are_not_compared() -> None:
    loud = SymmetricAlgorithm((0, 1), lambda dataset: [1, 0] if dataset[0][0] == 0 else [0, 1])
    with pytest.raises(ValueError, match="not shown to be private at this level"):
        optimality_gap(loud, lambda dataset, o: int(dataset[0][0] != o), universe=(0, 1), n_users=1, epsilon=3)

    @finite_algorithm(outputs=(0, 1))
    def first(dataset: Any) -> list[str]:
        return ["3/4", "1/4"] if dataset[0][0] == 0 else ["1/4", "3/4"]

    with pytest.raises(ValueError, match="algorithm must be one that depends on the multiset of users only"):
        optimality_gap(first, oracle.regret, universe=(0, 1), n_users=2, epsilon=LogRatio(3))
    with pytest.raises(TypeError, match="mechanism must be a FiniteAlgorithm"):
        optimality_gap(3, oracle.regret, universe=(0, 1), n_users=2, epsilon=1)
