"""Selection by clipped pairwise scores and by Scheffe sets, against their definitions and exact audits."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from oracle.scheffe import clip, largest_change, midpoint_psi, pairwise_scores, scheffe_psi
from userdp import LogRatio
from userdp.audit import audit_user_level
from userdp.distributions.line_selection import MedianSelection, ProportionSelection
from userdp.estimators import as_finite_algorithm
from userdp.estimators import selection as selection_module
from userdp.exceptions import BudgetError
from userdp.learners import ClippedPairwiseEM, HypothesisSelector
from userdp.learners.clipped_pairwise import PairwiseEM, ScheffeEM, Symbols, clipping_bound, on_grid, users_needed
from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip

CASES = json.loads((Path(__file__).parents[1] / "data" / "pairwise_cases.json").read_text())["cases"]


def cases(kind):
    return [pytest.param(case["input"], case["expected"], id=case["id"]) for case in CASES if case["kind"] == kind]


def symbols_of(users, n_symbols, m):
    values = np.array([z for user in users for z in user], dtype=np.int64)
    codes = np.array([i for i, user in enumerate(users) for _ in user], dtype=np.uint32)
    return Symbols(values, n_symbols, codes, len(users), m)


def fractions(scores, unit):
    return [Fraction(int(score), unit) for score in scores]


# The scores.


@pytest.mark.parametrize(("given", "expected"), cases("clipped_pairwise"))
def test_agnostic_scores_of_the_shared_case(given, expected):
    names = list(given["hypotheses"])
    examples = list(product((0, 1), repeat=2))

    def wrong(name, example):
        return given["hypotheses"][name][str(example[0])] != example[1]

    psi = [[[wrong(a, x) - wrong(b, x) for x in examples] for b in names] for a in names]
    users = [[examples.index(tuple(x)) for x in user] for user in given["users"]]
    selection = PairwiseEM(np.array(psi), epsilon=Fraction(1), m=2, tau=given["tau"], unit=1)
    scores = selection.scores(symbols_of(users, 4, 2))
    assert dict(zip(names, map(str, scores), strict=True)) == expected["scores"]
    assert str(selection.sensitivity) == expected["sensitivity"]


@pytest.mark.parametrize(("given", "expected"), cases("clipped_pairwise_scheffe"))
@pytest.mark.parametrize("unit", [4, 2**20])
def test_scheffe_scores_of_the_shared_cases(given, expected, unit):
    names = list(given["dists"])
    masses = [on_grid([Fraction(p) for p in given["dists"][name].values()], unit, name) for name in names]
    selection = ScheffeEM(np.array(masses), epsilon=Fraction(1), m=2, tau=given["tau"], unit=unit)
    users = [[int(z) for z in user] for user in given["users"]]
    scores = fractions(selection.scores(symbols_of(users, 3, 2)), unit)
    assert dict(zip(names, scores, strict=True)) == {name: Fraction(s) for name, s in expected["scores"].items()}


@pytest.mark.parametrize(("given", "expected"), cases("em"))
def test_exponential_mechanism_of_the_shared_cases(given, expected):
    """To 2**-30 of each probability, or 2**-60 in all beyond the 64 bits that the mechanism resolves."""
    base = Fraction(given["base=exp(eps/2Delta)"])
    level = LogRatio((base**2).numerator, (base**2).denominator)
    pmf = ExponentialMechanism(epsilon=level, sensitivity=1).pmf(list(given["scores"].values()))
    for weight, name in zip(pmf.weights, expected["pmf"], strict=True):
        probability, wanted = Fraction(weight, pmf.total), Fraction(expected["pmf"][name])
        assert probability > 0
        assert abs(probability - wanted) <= max(wanted * Fraction(1, 2**30), Fraction(1, 2**60))


@pytest.mark.parametrize("seed", range(8))
def test_scores_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    k, n_symbols, m, unit = int(rng.integers(2, 6)), int(rng.integers(1, 5)), int(rng.integers(1, 5)), 8
    users = [rng.integers(n_symbols, size=rng.integers(m + 1)).tolist() for _ in range(6)]
    tau = Fraction(int(rng.integers(1, m * unit + 1)), unit)
    psi = rng.integers(-unit, unit + 1, size=(k, k, n_symbols))
    found = PairwiseEM(psi, epsilon=Fraction(1), m=m, tau=tau, unit=unit).scores(symbols_of(users, n_symbols, m))
    wanted = pairwise_scores(users, k, lambda a, b, z: Fraction(int(psi[a, b, z]), unit), tau)
    assert fractions(found, unit) == wanted

    masses = rng.multinomial(unit, np.full(n_symbols, 1 / n_symbols), size=k)
    found = ScheffeEM(masses, epsilon=Fraction(1), m=m, tau=tau, unit=unit).scores(symbols_of(users, n_symbols, m))
    shares = [fractions(row, unit) for row in masses]
    assert fractions(found, unit) == pairwise_scores(users, k, scheffe_psi(shares), tau)


@pytest.mark.parametrize("seed", range(8))
def test_lines_have_the_scores_of_all_pairs(seed):
    """Comparing neighbors gives the maxima over all pairs."""
    rng = np.random.default_rng(seed)
    m, unit = int(rng.integers(1, 5)), int(rng.integers(1, 7))
    users = [rng.integers(2, size=rng.integers(m + 1)).tolist() for _ in range(7)]
    tau = Fraction(int(rng.integers(1, m * unit + 1)), unit)
    counts = symbols_of(users, 2, m).histograms.astype(np.int64)
    found = ProportionSelection(unit, epsilon=Fraction(1), m=m, tau=tau).scores(counts[:, 1], counts.sum(axis=1))
    bernoulli = [[1 - Fraction(a, unit), Fraction(a, unit)] for a in range(unit + 1)]
    assert fractions(found, unit) == pairwise_scores(users, unit + 1, scheffe_psi(bernoulli), tau)

    k = int(rng.integers(2, 7))
    points = [2 * a for a in range(k)]
    people = [rng.integers(-1, 2 * k, size=rng.integers(m + 1)).tolist() for _ in range(7)]
    tau = Fraction(int(rng.integers(1, 2 * m + 1)), 2)
    values = np.array([float(x) for user in people for x in user])
    codes = np.array([i for i, user in enumerate(people) for _ in user], dtype=np.uint32)
    thresholds = np.array([2.0 * a + 1 for a in range(k - 1)])
    found = MedianSelection(thresholds, epsilon=Fraction(1), m=m, tau=tau).scores(values, codes, len(people))
    assert fractions(found, 2) == pairwise_scores(people, k, midpoint_psi(points), tau)


# Sensitivity.


def agnostic_psi(a, b, z):
    """Example z = (x, y) of the two constants and the identity on {0, 1}."""
    x, y = divmod(z, 2)
    predictions = (0, x, 1)
    return (predictions[a] != y) - (predictions[b] != y)


SENSITIVITIES = {
    "table": lambda m, tau: (
        PairwiseEM(
            np.array([[[agnostic_psi(a, b, z) for z in range(4)] for b in range(3)] for a in range(3)]),
            epsilon=Fraction(1),
            m=m,
            tau=tau,
            unit=1,
        ),
        lambda users: pairwise_scores(users, 3, agnostic_psi, tau),
        range(4),
        1,
    ),
    "scheffe": lambda m, tau: (
        ScheffeEM(np.array([[2, 2, 0], [2, 1, 1], [0, 2, 2]]), epsilon=Fraction(1), m=m, tau=tau, unit=4),
        lambda users: pairwise_scores(
            users, 3, scheffe_psi([[Fraction(p, 4) for p in row] for row in ([2, 2, 0], [2, 1, 1], [0, 2, 2])]), tau
        ),
        range(3),
        4,
    ),
    "proportion": lambda m, tau: (
        ProportionSelection(4, epsilon=Fraction(1), m=m, tau=tau),
        lambda users: pairwise_scores(
            users, 5, scheffe_psi([[Fraction(4 - a, 4), Fraction(a, 4)] for a in range(5)]), tau
        ),
        range(2),
        4,
    ),
    "median": lambda m, tau: (
        MedianSelection(np.array([1.0, 3.0]), epsilon=Fraction(1), m=m, tau=tau),
        lambda users: pairwise_scores(users, 3, midpoint_psi([0, 2, 4]), tau),
        (0, 2, 4),
        2,
    ),
}


@pytest.mark.parametrize("name", SENSITIVITIES)
@pytest.mark.parametrize(("m", "tau"), [(1, 1), (2, 2), (2, 1), (2, 1.5)])
def test_sensitivity_is_attained_and_not_exceeded(name, m, tau):
    if name == "table":
        tau = int(tau)  # its votes are integers
    selection, scores_of, examples, unit = SENSITIVITIES[name](m, Fraction(tau))
    # Users of up to m examples.
    assert largest_change(scores_of, examples, m, 2) == Fraction(selection.sensitivity, unit)


def test_sensitivity_of_half_spread_is_not_that_of_the_paper():
    """Unclipped Scheffe votes differ by at most 1, so m bounds a user; the general bound is 2 m."""
    selection, _, _, unit = SENSITIVITIES["scheffe"](2, 2)
    assert Fraction(selection.sensitivity, unit) == 2
    assert SENSITIVITIES["table"](2, 2)[0].sensitivity == 4


def test_clipping_bias_of_the_default_tau():
    """Users whose votes have a mean of alpha / 2 lose at most 0.05 alpha m: exact binomial sums."""
    for alpha, m, spread in product((0.05, 0.1, 0.5), (1, 4, 64, 400), (1, 2)):
        tau = float(clipping_bound(alpha, m, spread))
        # The votes with the largest variance: two values that are spread apart.
        low, high = (-1, 1) if spread == 2 else (-0.5, 0.5)
        p = (alpha / 2 - low) / (high - low)
        counts = np.arange(m + 1)
        factorials = np.cumsum(np.log(np.maximum(counts, 1)))
        logs = factorials[m] - factorials - factorials[::-1] + counts * np.log(p) + (m - counts) * np.log1p(-p)
        bias = (np.exp(logs) * np.maximum(low * m + counts * (high - low) - tau, 0)).sum()
        assert bias <= 0.05 * alpha * m
        assert 0 < tau <= m


# Exact audits.


def psi_three(a, b):
    return [agnostic_psi(a, b, z) for z in range(4)]


SELECTORS = {
    "pairwise": lambda **given: ClippedPairwiseEM(psi=psi_three, n_hypotheses=3, **given),
    "scheffe": lambda **given: HypothesisSelector(candidates=[[0.5, 0, 0.5], [0, 0.5, 0.5]], **given),
}


def worst(estimator, universe, epsilon, m=2):
    return audit_user_level(
        as_finite_algorithm(estimator), universe=universe, n_users=2, n_examples=m, epsilon=epsilon, delta=0
    )


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("tau", [1, 2, None])
@pytest.mark.parametrize("kind", [ExponentialMechanism, PermuteAndFlip])
def test_exact_audit(name, tau, kind, monkeypatch):
    mechanism = "exponential" if kind is ExponentialMechanism else "permute-and-flip"
    selector = SELECTORS[name](epsilon=1, m=2, tau=tau, alpha=0.5, mechanism=mechanism)
    # What is no symbol has the distribution of symbol 0.
    universe = [0, 1, 2, 3, -7] if name == "pairwise" else [0, 1, 2, -7, 0.5]
    assert worst(selector, universe, 1).holds
    monkeypatch.setattr(
        selection_module,
        kind.__name__,
        lambda epsilon, sensitivity: kind(epsilon=2 * epsilon, sensitivity=sensitivity),
    )
    assert not worst(selector, universe, 1).holds


# What fitting does.


def test_the_best_hypothesis_is_found():
    """400 users with 8 examples: another one is selected with a probability below 1e-12, exactly."""
    rng = np.random.default_rng(1)
    candidates = [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]
    X, groups = rng.choice(3, size=(3200, 1), p=candidates[1]), np.repeat(np.arange(400), 8)
    selector = HypothesisSelector(epsilon=8, candidates=candidates, m=8).fit(X, groups=groups)
    assert selector.selected_ == 1
    assert selector.distribution_.tolist() == candidates[1]
    assert selector.privacy_.released == ("selected_", "distribution_")
    assert dict(selector.privacy_.budget) == {"selection": 8}
    assert selector.is_private_
    pmf = selector.output_distribution(X, groups=groups)
    assert Fraction(pmf.weights[1], pmf.total) > 1 - Fraction(1, 10**12)


def test_bad_values_count_as_symbol_0():
    values = [np.nan, np.inf, -np.inf, -1, 3, 1e300, 0.5]
    groups = np.arange(len(values))
    for make in SELECTORS.values():
        selector = make(epsilon=1, m=1)
        X = np.array(values)[:, None]
        if make is SELECTORS["pairwise"]:
            X[4] = 4
        pmf = selector.output_distribution(X, groups=groups)
        assert pmf == selector.output_distribution(np.zeros((len(values), 1)), groups=groups)
        with pytest.raises(ValueError, match=r"not one of the symbols|NaN|infinity"):
            selector.set_params(on_invalid="raise", random_state=None).fit(X, groups=groups)


def test_short_and_absent_users_count():
    selector = SELECTORS["scheffe"](epsilon=1, m=3, enrolled=("ann", "bob", "eve"))
    pmf = selector.output_distribution([[0], [1]], groups=["ann", "ann"])
    assert pmf.outputs == (0, 1)
    assert selector.fit([[0], [1]], groups=["ann", "ann"]).n_users_ == 3


def test_saving_and_cloning():
    selector = SELECTORS["scheffe"](epsilon=Fraction(1, 3), m=2, tau="0.5").fit([[0], [1]], groups=[0, 1])
    again = HypothesisSelector.from_json(selector.to_json())
    assert again.selected_ == selector.selected_
    assert again.distribution_.tolist() == selector.distribution_.tolist()
    assert again.get_params() == selector.get_params() == clone(selector).get_params()
    pairwise = SELECTORS["pairwise"](epsilon=1, m=2).fit([[0], [1]], groups=[0, 1])
    with pytest.raises(TypeError, match="cannot be saved"):
        pairwise.to_json()
    table = [[psi_three(a, b) for b in range(3)] for a in range(3)]
    listed = ClippedPairwiseEM(epsilon=1, psi=table, m=2)
    X, groups = [[0], [1], [3]], [0, 1, 1]
    assert listed.output_distribution(X, groups=groups) == pairwise.output_distribution(X, groups=groups)
    assert ClippedPairwiseEM.from_json(listed.fit(X, groups=groups).to_json()).psi == table


def test_psi_is_rounded_down_to_the_grid():
    third = ClippedPairwiseEM(epsilon=1, psi=[[[0], [Fraction(1, 3)]], [[-0.4], [0]]], m=1, granularity=0.25)
    third._check_parameters()
    assert third._table.ravel().tolist() == [0, 1, -2, 0]


def test_masses_are_rounded_to_the_largest_remainders():
    assert on_grid(["1/3", "1/3", "1/3"], 4, "x").tolist() == [2, 1, 1]
    assert on_grid([0.1] * 10, 2**20, "x").sum() == 2**20


def test_users_needed():
    """The numbers for K = 100 with tau of a spread of 2, as they follow from the formula of the docstring."""
    for m, wanted in ((1, 640510), (100, 6406), (10**4, 198)):
        tau = clipping_bound(0.1, m)
        found = users_needed(100, epsilon=Fraction(1), alpha=0.1, beta=0.1, m=m, tau=tau)
        assert found == wanted
    # ln(3000) is 8.006, and half of the tail leaves ln(1500) = 7.313: at m = 10**4, where privacy decides.
    wanted = math.ceil(198 * math.log(1500) / math.log(3000))
    tau = clipping_bound(0.1, 10**4)
    found = users_needed(100, epsilon=Fraction(1), alpha=0.1, beta=0.1, m=10**4, tau=tau, flips=True)
    assert abs(found - wanted) <= 1
    for mechanism, flips in (("exponential", False), ("auto", True), ("permute-and-flip", True)):
        selector = HypothesisSelector(epsilon="0.01", candidates=[[0, 1], [1, 0]], m=4, mechanism=mechanism)
        assert selector.users_needed() == users_needed(
            2, epsilon=Fraction(1, 100), alpha=0.1, beta=0.1, m=4, tau=clipping_bound(0.1, 4, 1), flips=flips
        )


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_a_failure_below_all_weights_is_not_promised(mechanism):
    def selector(beta):
        return HypothesisSelector(
            epsilon=20, candidates=[[0, 1], [1, 0]], m=1, tau=1, granularity=1, mechanism=mechanism, beta=beta
        )

    n = 500
    missed = selector(0.1).output_distribution(np.ones((n, 1)), groups=np.arange(n)).fractions()[1]
    assert missed > 2.0**-66
    with pytest.raises(ValueError, match="among 2 candidates needs"):
        selector(float(3 * missed * Fraction(99, 100))).users_needed()
    assert selector(1e-12).users_needed() > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tau": 0}, "tau"),
        ({"tau": -1}, "tau"),
        ({"tau": 2.0**-40}, "tau must be at least"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"beta": 0}, "beta"),
        ({"beta": 1}, "beta"),
        ({"granularity": 0.3}, "granularity"),
        ({"granularity": 2}, "granularity"),
        ({"epsilon": 0}, "epsilon"),
        ({"candidates": [[1.0]]}, "at least two"),
        ({"candidates": [[0.5, 0.5], [0.5, 0.5]]}, "candidates 0 and 1 are the same"),
        ({"candidates": [[0.5, 0.5], [0.5, 0.4]]}, "sum 1"),
        ({"candidates": [[0.5, 0.5], [1.5, -0.5]]}, "masses"),
        ({"candidates": [[0.5, 0.5], [np.nan, 1]]}, "masses"),
        ({"candidates": [["x", 0.5], [0, 1]]}, r"candidates\[0\] has the mass"),
        ({"candidates": []}, "candidates"),
        ({"candidates": [0.5, 0.5]}, "shape"),
        ({"candidates": [[0.5, 0.5], [1]]}, "shape"),
    ],
)
def test_bad_parameters_of_hypothesis_selection(given, message):
    selector = HypothesisSelector(**{"epsilon": 1, "candidates": [[0.5, 0.5], [0, 1]], "m": 2, **given})
    with pytest.raises(ValueError, match=message):
        selector.fit([[0], [1]], groups=[0, 1])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"psi": [[[0.0]]]}, "at least two"),
        ({"psi": [[0.0]]}, "shape"),
        ({"psi": [[[0.0], [1.5]], [[0.0], [0.0]]]}, r"psi\[0, 1\]"),
        ({"psi": [[[0.0], [np.nan]], [[0.0], [0.0]]]}, r"psi\[0, 1\]"),
        ({"psi": lambda a, b: [2]}, r"psi\[0, 1\]"),
        ({"psi": lambda a, b: [Fraction(1, 2), "x"]}, "psi must be numbers"),
        ({"psi": lambda a, b: []}, "psi"),
        ({"psi": lambda a, b: 0.5}, "psi"),
        ({"psi": lambda a, b: [0] * (a + 1)}, "same number|shape"),
        ({"n_hypotheses": 1}, "n_hypotheses"),
        ({"n_hypotheses": None}, "n_hypotheses"),
        ({"psi": np.zeros((2, 2, 1)), "n_hypotheses": 3}, "n_hypotheses"),
    ],
)
def test_bad_parameters_of_pairwise_selection(given, message):
    selector = ClippedPairwiseEM(**{"epsilon": 1, "psi": lambda a, b: [0.5, -0.5], "n_hypotheses": 2, "m": 2, **given})
    with pytest.raises(ValueError, match=message):
        selector.fit([[0], [0]], groups=[0, 1])


def test_bad_shapes():
    selector = HypothesisSelector(epsilon=1, candidates=[[0.5, 0.5], [0, 1]], m=2)
    with pytest.raises(ValueError, match="columns"):
        selector.fit(np.array([[0, 1], [1, 0]]), groups=[0, 1])
    with pytest.raises(ValueError, match="groups is missing"):
        selector.fit([[0], [1]])
    with pytest.raises(ValueError, match="at least 2 users"):
        selector.fit([[0], [1]], groups=[0, 0])


def test_sums_beyond_64_bits_are_refused():
    selector = HypothesisSelector(
        epsilon=1, candidates=[[0.5, 0.5], [0, 1]], m=2**31 - 1, tau=2**31, granularity=2**-30
    )
    with pytest.raises(BudgetError, match="granularity"):
        selector.fit([[0], [1], [1]], groups=[0, 1, 2])


def test_too_many_symbols_are_refused():
    candidates = np.full((2, 1025), 1 / 1025)
    candidates[0, :2] = [2 / 1025, 0]
    with pytest.raises(BudgetError, match="1025 symbols"):
        HypothesisSelector(epsilon=1, candidates=candidates, m=2).fit([[0], [1]], groups=[0, 1])


def test_clip_of_the_reference():
    assert [clip(x, 2) for x in (-3, -1, 5)] == [-2, -1, 2]
