"""Shared draws and their exact distributions, against their definitions in plain Python."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from oracle import correlated_sampling as oracle
from oracle import public_randomness as public
from oracle.statistics import hoeffding_slack
from userdp import BudgetError, Pmf
from userdp.divergence import total_variation
from userdp.public_randomness import CorrelatedSampler, PublicSeed, disagreement_probability, joint_distribution

SEED = bytes(range(32))
CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/sampling.json").read_text())["cases"]
METHODS = ("race", "darts", "inverse-cdf")


def compositions(total, parts):
    """All lists of that many integers >= 0 of that sum."""
    for cuts in itertools.combinations(range(total + parts - 1), parts - 1):
        yield tuple(b - a - 1 for a, b in itertools.pairwise((-1, *cuts, total + parts - 1)))


def fractions(weights):
    return [Fraction(weight, sum(weights)) for weight in weights]


# --- the exact distributions


@pytest.mark.parametrize("case", [case for case in CASES if case["kind"] == "corr_sampling"], ids=lambda c: c["input"])
def test_shared_cases_of_disagreement(case):
    p, q, expected = case["input"]["P"], case["input"]["Q"], case["expected"]
    for method, name in zip(METHODS, ("race", "dart", "inverse_cdf"), strict=True):
        assert disagreement_probability(p, q, method=method) == Fraction(expected[name])
    d = Fraction(expected["tv"])
    assert total_variation(p, q) == float(d)
    assert 2 * d / (1 + d) == Fraction(expected["bound_2d_over_1pd"])


def test_race_of_three_is_an_area():
    for p, q in itertools.product(compositions(5, 3), repeat=2):
        p, q = fractions(p), fractions(q)
        assert disagreement_probability(p, q) == 1 - oracle.race_agreement_of_three(p, q)


def test_race_of_two_differs_by_the_total_variation():
    for a, b in itertools.product(range(8), repeat=2):
        p, q = fractions((a, 7 - a)), fractions((b, 7 - b))
        assert disagreement_probability(p, q) == abs(p[0] - q[0])


@pytest.mark.parametrize("parts", [2, 3])
def test_darts_are_the_first_cell_of_a_permutation(parts):
    for p, q in itertools.product(compositions(3, parts), repeat=2):
        expected = oracle.darts_by_permutation(p, q)
        assert joint_distribution(fractions(p), fractions(q)) == expected
        disagreement = sum(share for (x, y), share in expected.items() if x != y)
        assert disagreement_probability(fractions(p), fractions(q), method="darts") == disagreement


def test_inverse_cdf_by_unit_intervals():
    for p, q in itertools.product(compositions(6, 3), repeat=2):
        expected = oracle.inverse_cdf_disagreement(p, q)
        assert disagreement_probability(fractions(p), fractions(q), method="inverse-cdf") == expected


@pytest.mark.parametrize(("parts", "total"), [(2, 7), (3, 5), (4, 4)])
def test_the_race_is_never_worse_than_darts(parts, total):
    strictly = 0
    for p, q in itertools.product(compositions(total, parts), repeat=2):
        p, q = fractions(p), fractions(q)
        d = oracle.total_variation(p, q)
        race, darts, inverse = (disagreement_probability(p, q, method=method) for method in METHODS)
        assert d <= race <= darts <= 2 * d / (1 + d)
        assert d <= inverse <= (parts - 1) * d
        assert race == disagreement_probability(q, p)
        strictly += race < darts
    assert strictly or parts == 2


def test_joint_pmf_of_darts_has_the_right_marginals():
    rng = np.random.default_rng(0)
    for size in (1, 2, 6):
        p, q = (fractions((rng.integers(0, 9, size) + (np.arange(size) == 0)).tolist()) for _ in range(2))
        joint = joint_distribution(p, q)
        for x in range(size):
            assert sum(share for (a, _), share in joint.items() if a == x) == p[x]
            assert sum(share for (_, b), share in joint.items() if b == x) == q[x]
        agreement = sum(share for (a, b), share in joint.items() if a == b)
        assert disagreement_probability(p, q, method="darts") == 1 - agreement


def test_pmfs_are_read_exactly():
    p, q = [0.1, 0.2, 0.7], [0.2, 0.2, 0.6]
    sums = [sum(map(Fraction, pmf)) for pmf in (p, q)]
    exact = [[Fraction(mass) / total for mass in pmf] for pmf, total in zip((p, q), sums, strict=True)]
    for method in METHODS:
        assert disagreement_probability(p, q, method=method) == disagreement_probability(*exact, method=method)
    half = Pmf(("a", "b"), (1, 1))
    other = Pmf(("b", "a"), (1, 3))
    mappings = {"a": "1/2", "b": "1/2"}, {"b": "1/4", "a": "3/4"}
    assert disagreement_probability(half, other) == disagreement_probability(*mappings) == Fraction(1, 4)
    joint = joint_distribution(*mappings)
    assert joint == joint_distribution(half, other)
    assert joint["b", "a"] == disagreement_probability(half, other, method="darts")


def test_long_races_stay_fast_and_are_refused_when_not():
    ones = np.arange(1, 2001)
    p, q = Pmf.from_weights(ones.tolist()), Pmf.from_weights(ones[::-1].tolist())
    race, darts = (disagreement_probability(p, q, method=method) for method in ("race", "darts"))
    assert race <= darts
    rng = np.random.default_rng(1)
    p, q = (weights / weights.sum() for weights in rng.random((2, 50_000)))
    with pytest.raises(BudgetError, match="darts"):
        disagreement_probability(p, q)
    assert 0 < disagreement_probability(p, q, method="darts") < 1
    with pytest.raises(BudgetError, match="pairs"):
        joint_distribution(p, q)


@pytest.mark.parametrize(
    ("p", "q", "error", "words"),
    [
        ({"a": 1}, {"b": 1}, ValueError, "different supports"),
        ([1], ["1/2", "1/2"], ValueError, "different supports"),
        (Pmf(("a",), (1,)), Pmf(("b",), (1,)), ValueError, "different supports"),
        ({"a": 1}, [1], TypeError, "both be mappings"),
        ([0.5, 0.6], [0.5, 0.5], ValueError, "sum to 1"),
        ([1.0, 0.0], [math.nan, 1.0], ValueError, "q: "),
        ([1.0, 0.0], [-0.5, 1.5], ValueError, "q: "),
        (["1/2", "1/3"], ["1/2", "1/2"], ValueError, "sum to exactly 1"),
        ([], [], ValueError, "empty"),
    ],
)
def test_what_is_no_pair_of_pmfs_is_refused(p, q, error, words):
    for ask in (disagreement_probability, joint_distribution):
        with pytest.raises(error, match=words):
            ask(p, q)


def test_unknown_methods_are_refused():
    with pytest.raises(ValueError, match="'race', 'darts', 'inverse-cdf'"):
        disagreement_probability([1], [1], method="best")
    with pytest.raises(ValueError, match="'race' or 'darts'"):
        CorrelatedSampler(SEED, method="inverse-cdf")


# --- the samplers


def test_the_race_is_won_as_documented():
    rng = np.random.default_rng(2)
    sampler = CorrelatedSampler(SEED, label="documented")
    for query in range(60):
        weights = rng.random(5) * rng.integers(0, 2, 5)
        weights[query % 5] = 10.0 ** rng.integers(-300, 300)
        expected = oracle.race(SEED, "documented", query, weights.tolist())
        assert sampler.sample(weights, query=query) == expected
        logarithms = [public.rounded_logarithm(weight) for weight in weights.tolist()]
        assert sampler.sample(log_weights=logarithms, query=query) == expected
        items = [bytes(rng.integers(0, 256, rng.integers(1, 90), dtype=np.uint8)) for _ in range(5)]
        assert sampler.sample(weights, items=items, query=query) == oracle.race(
            SEED, "documented", query, weights.tolist(), items
        )


def test_the_race_is_the_argmax_of_its_keys():
    count = 200_001
    log_weights = np.random.default_rng(3).normal(size=count) * 5
    keys = PublicSeed(SEED).race_keys("sample", 8, count)
    sampler = CorrelatedSampler(SEED)
    assert sampler.sample(log_weights=log_weights, query=8) == np.argmax(log_weights + keys)
    assert sampler.sample(log_weights=-keys, query=8) == 0  # all sums equal: the first


def test_items_are_known_by_their_bytes():
    sampler = CorrelatedSampler(SEED)
    weights = {b"one": 0.2, b"two": 0.5, b"three": 0.3, b"": 0.1}
    for query in range(20):
        winners = set()
        for order in itertools.permutations(weights):
            winners.add(order[sampler.sample([weights[item] for item in order], items=order, query=query)])
        padded = {**weights, b"never": 0.0}
        winners.add(list(padded)[sampler.sample(list(padded.values()), items=list(padded), query=query)])
        assert len(winners) == 1


def test_ties_between_items_go_to_the_least_bytes():
    # Weights that undo the keys: all sums are 0.
    items = [b"b", b"ab", b"a", b"c"]
    keys = [public.rounded_key(public.item_word(SEED, "sample", 0, item)) for item in items]
    assert CorrelatedSampler(SEED).sample(log_weights=[-key for key in keys], items=items) == 2


def test_darts_are_thrown_as_documented():
    for query in range(40):
        weights = [5, 0, 3, 2]
        item, thrown = oracle.darts(SEED, "sample", query, weights, 1000)
        sampler = CorrelatedSampler(SEED, method="darts", total=10)
        assert sampler.sample(weights, query=query) == item
        assert CorrelatedSampler(SEED, method="darts", total=10, max_darts=thrown).sample(weights, query=query) == item
        if thrown > 1:
            capped = CorrelatedSampler(SEED, method="darts", total=10, max_darts=thrown - 1, default=1)
            assert capped.sample(weights, query=query) == 1
        unlimited = CorrelatedSampler(SEED, method="darts", total=10, max_darts=2**70)
        assert unlimited.sample(weights, query=query) == item


def test_darts_round_probabilities_by_largest_remainders():
    from userdp import _core

    assert _core.quantized_masses(([1, 1, 1], 3), 8) == [3, 3, 2]
    assert _core.quantized_masses(([0, 1, 2], 3), 10) == [0, 3, 7]
    floats = np.array([0.1, 0.2, 0.7])
    total = 2**62
    exact = [total * Fraction(mass) / sum(map(Fraction, floats.tolist())) for mass in floats.tolist()]
    rounded = _core.quantized_masses(floats, total)
    assert sum(rounded) == total
    assert all(abs(whole - mass) < 1 for whole, mass in zip(rounded, exact, strict=True))
    sampler = CorrelatedSampler(SEED, method="darts")
    for query in range(20):
        expected = oracle.darts(SEED, "sample", query, rounded, 1000)[0]
        assert sampler.sample(floats, query=query) == sampler.sample(rounded, query=query) == expected


@pytest.mark.statistical
@pytest.mark.parametrize("method", ["race", "darts"])
def test_draws_have_their_pmf_and_agree_as_often_as_they_should(method):
    trials = 20_000
    p, q = [0.5, 0.25, 0.125, 0.125], [0.375, 0.25, 0.0, 0.375]
    sampler, stranger = CorrelatedSampler(SEED, method=method), CorrelatedSampler(bytes(32), method=method)
    draws_p, draws_q, others = (
        np.array([which.sample(pmf, query=query) for query in range(trials)])
        for which, pmf in ((sampler, p), (sampler, q), (stranger, q))
    )
    slack = hoeffding_slack(trials)
    for item in range(4):
        assert abs(np.mean(draws_p == item) - p[item]) < slack
        assert abs(np.mean(draws_q == item) - q[item]) < slack
    expected = float(disagreement_probability(p, q, method=method))
    assert abs(np.mean(draws_p != draws_q) - expected) < slack
    # Without a common seed the same users would differ far more often.
    assert np.mean(draws_p != others) > expected + 10 * slack


def test_draws_depend_on_nothing_before_them():
    sampler = CorrelatedSampler(SEED)
    alone = [sampler.sample([1, 2, 3], query=query) for query in range(10)]
    mixed = []
    for query in reversed(range(10)):
        sampler.sample(np.ones(50_000), query=query)
        mixed.append(sampler.sample([1, 2, 3], query=query))
    assert mixed[::-1] == alone


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, TypeError, "exactly one"),
        ({"weights": [1], "log_weights": [0]}, TypeError, "exactly one"),
        ({"weights": []}, ValueError, "empty"),
        ({"weights": [[1.0]]}, ValueError, "1 dimension"),
        ({"weights": [1.0, -0.5]}, ValueError, "-0.5 at index 1"),
        ({"weights": [1.0, math.nan]}, ValueError, "NaN at index 1"),
        ({"weights": [math.inf]}, ValueError, "inf at index 0"),
        ({"weights": [0.0, 0]}, ValueError, "all are zero"),
        ({"weights": np.array([1 + 1j])}, TypeError, "real numbers"),
        ({"weights": np.array([True])}, TypeError, "real numbers"),
        ({"weights": "12"}, TypeError, "array-like"),
        ({"weights": ["a"]}, TypeError, "real numbers"),
        ({"weights": [[1.0], [1.0, 2.0]]}, ValueError, "weights must have 1 dimension"),
        ({"weights": np.ma.MaskedArray([1.0, 2.0], mask=[False, True])}, TypeError, "masked"),
        ({"log_weights": [0.0, math.inf]}, ValueError, "inf at index 1"),
        ({"log_weights": [math.nan]}, ValueError, "NaN at index 0"),
        ({"log_weights": [-math.inf, -math.inf]}, ValueError, "all are -inf"),
        ({"weights": [1, 1], "items": [b"a"]}, ValueError, "1 entries"),
        ({"weights": [1, 1], "items": [b"a", b"a"]}, ValueError, "distinct"),
        ({"weights": [1, 1], "items": ["a", "b"]}, TypeError, "bytes"),
        ({"weights": [1, -1], "items": [b"a", b"b"]}, ValueError, "index 1"),
        ({"weights": [math.inf, 1], "items": [b"a", b"b"]}, ValueError, "index 0"),
        ({"weights": [0, 0], "items": [b"a", b"b"]}, ValueError, "all are zero"),
        ({"weights": [1], "query": -1}, ValueError, "query"),
        ({"weights": [1], "query": 0.5}, ValueError, "query"),
    ],
)
def test_bad_arguments_of_the_race_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        CorrelatedSampler(SEED).sample(**arguments)


@pytest.mark.parametrize(
    ("options", "arguments", "words"),
    [
        ({}, {"weights": [0.5, 0.4]}, "sum to 1"),
        ({}, {"weights": ["1/2", "1/3"]}, "sum to exactly 1"),
        ({}, {"weights": [3, 4]}, "must sum to the total"),
        ({"total": 7}, {"weights": [3, 5]}, "must sum to the total"),
        ({"total": 7}, {"weights": [8, -1]}, "negative"),
        ({}, {"weights": [-0.5, 1.5]}, "not a finite number"),
        ({}, {"log_weights": [0.0]}, "method='race'"),
        ({}, {"weights": [1.0], "items": [b"a"]}, "method='race'"),
        ({"default": 2}, {"weights": [0.5, 0.5]}, "default"),
    ],
)
def test_bad_arguments_of_darts_are_refused(options, arguments, words):
    with pytest.raises(ValueError, match=words):
        CorrelatedSampler(SEED, method="darts", **options).sample(**arguments)


@pytest.mark.parametrize("options", [{"total": 0}, {"total": 2**63 + 1}, {"max_darts": 0}, {"default": -1}])
def test_bad_options_of_darts_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        CorrelatedSampler(SEED, method="darts", **options)
