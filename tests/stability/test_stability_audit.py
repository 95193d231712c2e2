"""Exact stability against brute force over all sequences, and the conversions between its notions."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oracle.agreement import (
    darts_agreement,
    exponential_pmf,
    listing_probability,
    race_agreement,
    sequences,
    two_sample_agreement,
)
from userdp import BudgetError, Pmf
from userdp.concepts import FiniteClass, Thresholds
from userdp.public_randomness import PublicSeed
from userdp.stability import (
    DecisionListQueries,
    ListStabilityLearner,
    RepresentationLearner,
    StableLearner,
    StatisticalQueryLearner,
    VersionSpace,
    agreement_from_stability,
    audit_stability,
    measure_agreement,
    stability_from_agreement,
)
from userdp.stability.audit import PRECISION, pair_agreement

CASES = json.loads((Path(__file__).parents[1] / "data/correlated_sampling/stability.json").read_text())
FORMS = {"race": race_agreement, "darts": darts_agreement}
CLOSE = F(1, 2**240)
THRESHOLDS = [[0, 0], [1, 0], [1, 1]]
HALVES = {(0, 1): F(1, 2), (1, 0): F(1, 2)}


def distribution_of(rows: list[list[int]], base: F) -> Any:
    return lambda sample: exponential_pmf(rows, sample, base)


def random_distribution(source: random.Random, examples: list[Any]) -> dict[Any, F]:
    weights = [source.randrange(1, 5) for _ in examples]
    return {z: F(weight, sum(weights)) for z, weight in zip(examples, weights, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("method", ["race", "darts"])
def test_known_agreements(case: dict[str, Any], method: Any) -> None:
    distribution = {(x, y): mass for x, y, mass in case["distribution"]}
    learner = RepresentationLearner(FiniteClass(case["hypotheses"]), gamma=1)
    as_learner = lambda sample: learner.pmf(  # noqa: E731
        np.array([[x] for x, _ in sample]), np.array([y for _, y in sample], dtype=np.uint8), base=F(case["base"])
    )
    for pmf in (as_learner, distribution_of(case["hypotheses"], F(case["base"]))):
        found = audit_stability(pmf, distribution, m=case["m"], method=method).agreement
        assert found is not None
        assert found.lower <= F(case["agreement"][method]) <= found.upper
        assert found.upper - found.lower < CLOSE


@pytest.mark.parametrize(("m", "expected"), [(8, 0.971), (16, 0.993), (32, 0.998)])
def test_agreement_on_thresholds_of_two_points(m: int, expected: float) -> None:
    learner = RepresentationLearner(FiniteClass(THRESHOLDS), gamma=16)
    for method in ("race", "darts"):
        report = audit_stability(learner, HALVES, m=m, alpha=0, method=method)
        assert report.agreement is not None
        assert round(float(report.agreement), 3) == expected
        assert report.samples == m + 1


def test_pairs_of_pmfs_against_first_principles() -> None:
    source = random.Random(1)
    for _ in range(300):
        size = source.randrange(1, 6)
        p, q = ([source.choice([0, 0, 1, 2, 3, 7, 50]) for _ in range(size)] for _ in range(2))
        if not any(p) or not any(q):
            continue
        exact = [{x: F(weight, sum(pmf)) for x, weight in enumerate(pmf)} for pmf in (p, q)]
        for method, form in FORMS.items():
            low, high = pair_agreement(p, q, method)  # type: ignore[arg-type]
            assert F(low, 2**PRECISION) <= form(*exact) <= F(high, 2**PRECISION)
            assert 0 <= high - low <= size


def test_pmfs_against_all_sequences() -> None:
    source = random.Random(2)
    rows = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0]]
    for m, base in ((1, F(2)), (2, F(7, 3)), (3, F(3, 2))):
        distribution = random_distribution(source, [(0, 1), (1, 1), (2, 0)])
        pmf = distribution_of(rows, base)
        errors = {h: sum(mass for (x, y), mass in distribution.items() if row[x] != y) for h, row in enumerate(rows)}
        probability = {h: sum(mass * pmf(s)[h] for s, mass in sequences(distribution, m)) for h in range(len(rows))}
        for alpha in (F(0), F(1, 3), F(1)):
            for method, form in FORMS.items():
                report = audit_stability(
                    pmf,
                    distribution,
                    m=m,
                    alpha=alpha,
                    errors=errors.get,
                    method=method,  # type: ignore[arg-type]
                )
                assert report.items[0].item == max(probability, key=probability.__getitem__)
                for own in report.items:
                    assert own.error == errors[own.item]
                    assert own.probability.lower <= probability[own.item] <= own.probability.upper
                    assert own.probability.upper - own.probability.lower < CLOSE
                best = max((probability[h] for h in errors if errors[h] <= alpha), default=F(0))
                assert report.global_stability.lower <= best <= report.global_stability.upper
                exact = two_sample_agreement(pmf, distribution, m, form)
                assert report.agreement is not None
                assert report.agreement.lower <= exact <= report.agreement.upper
        # The distance to a distribution that is given.
        canonical = {0: F(1, 7), 2: F(6, 7)}
        report = audit_stability(pmf, distribution, m=m, canonical=canonical)
        missed = sum(mass * (1 - race_agreement(pmf(s), canonical)) for s, mass in sequences(distribution, m))
        assert report.distance is not None
        assert report.distance.lower <= missed <= report.distance.upper
        assert report.distance.upper - report.distance.lower < CLOSE


def test_deterministic_learners_are_counted_exactly() -> None:
    distribution = {0: F(1, 3), 1: F(2, 3)}
    report = audit_stability(max, distribution, m=3)
    assert report.items[0].item == 1
    assert report.items[0].probability.lower == report.items[0].probability.upper == 1 - F(1, 27)
    assert report.agreement is not None
    assert report.agreement.lower == report.agreement.upper == F(26, 27) ** 2 + F(1, 27) ** 2


def test_version_spaces_are_list_stable() -> None:
    rows = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]]
    distribution = {(0, 1): F(1, 2), (1, 1): F(1, 6), (2, 0): F(1, 3)}

    def consistent(sample: Any) -> set[int]:
        return {h for h, row in enumerate(rows) if all(row[x] == y for x, y in sample)}

    for m in (1, 2, 4):
        report = audit_stability(VersionSpace(FiniteClass(rows)), distribution, m=m, alpha=0)
        expected = listing_probability(consistent, distribution, m)
        assert {own.item: own.probability.lower for own in report.items} == expected
        assert all(own.probability.lower == own.probability.upper for own in report.items)
        assert report.global_stability.lower == report.global_stability.upper == 1
        assert report.list_size == max(len(consistent(s)) for s, _ in sequences(distribution, m))
        as_callable = audit_stability(consistent, distribution, m=m)
        assert as_callable.list_size == report.list_size
        assert {own.item: own.probability for own in as_callable.items} == {
            own.item: own.probability for own in report.items
        }


@pytest.mark.parametrize("method", ["race", "darts"])
def test_pmfs_with_long_weights(method: Any) -> None:
    # Beyond 320 bits they are rounded, which the enclosures have to allow for.
    pmf = distribution_of(THRESHOLDS, F(3**251, 2**397))
    canonical = {0: F(1, 3), 1: F(2**500 + 1, 3 * 2**500), 2: 1 - F(1, 3) - F(2**500 + 1, 3 * 2**500)}
    report = audit_stability(pmf, HALVES, m=4, method=method, canonical=canonical)
    assert report.agreement is not None
    assert report.distance is not None
    exact = two_sample_agreement(pmf, HALVES, 4, FORMS[method])
    missed = 1 - sum(mass * FORMS[method](pmf(sample), canonical) for sample, mass in sequences(HALVES, 4))
    for found, expected in ((report.agreement, exact), (report.distance, missed)):
        assert found.lower < expected < found.upper
        assert found.upper - found.lower < CLOSE


def test_list_stability_over_all_sequences() -> None:
    # The order of rows counts: blocks are cut by position.
    rows = [[0, 0], [1, 0], [1, 1]]
    learner = ListStabilityLearner(VersionSpace(FiniteClass(rows)), eta=1, k1=2, k2=2, gamma=math.log(3) * 2)
    distribution = {(0, 1): F(1, 4), (1, 0): F(3, 4)}
    base = F(math.exp(learner.gamma / 2))

    def pmf(sample: Any) -> dict[Any, F]:
        lists = [{h for h, row in enumerate(rows) if all(row[x] == y for x, y in [z])} for z in sample]
        heavy = [h for h in range(3) if sum(h in own for own in lists[:2]) >= 1]
        weights = {h: base ** sum(h in own for own in lists[2:]) for h in heavy}
        return {h: weight / sum(weights.values()) for h, weight in weights.items()}

    report = audit_stability(learner, distribution, m=4, alpha=0, symmetric=False)
    assert report.samples == 16
    exact = two_sample_agreement(pmf, distribution, 4, race_agreement)
    assert report.agreement is not None
    assert report.agreement.lower <= exact <= report.agreement.upper
    with pytest.raises(ValueError, match="listed in another order"):
        audit_stability(learner, distribution, m=4)


def test_seeds_one_by_one() -> None:
    # Seed "a" is stable and accurate, "b" stable and wrong, "c" neither.
    distribution = {(0, 0): F(1, 2), (0, 1): F(1, 2)}
    errors = {"right": F(0), "wrong": F(1, 2)}

    def learner(sample: Any, seed: str) -> str:
        return {"a": "right", "b": "wrong", "c": "right" if sample[0][1] else "wrong"}[seed]

    report = audit_stability(
        learner,
        distribution,
        m=1,
        alpha="1/4",
        eta="2/3",
        seeds={"a": "1/2", "b": "1/3", "c": "1/6"},
        errors=errors.__getitem__,
    )
    assert report.nu is not None
    assert report.nu.lower == report.nu.upper == F(1, 2)
    assert [(own.seed, own.stable, own.accurate) for own in report.seeds] == [
        ("a", True, True),
        ("b", True, False),
        ("c", False, False),
    ]
    assert report.seeds[2].best.item == "right"
    assert {own.item: own.probability.lower for own in report.items} == {
        "right": F(1, 2) + F(1, 12),
        "wrong": F(1, 3) + F(1, 12),
    }
    # (1 - beta, nu): the seed "b" counts for one of the two, never in parts.
    assert report.tradeoffs() == ((F(2, 3), F(5, 6)), (F(1), F(1, 2)))
    only = audit_stability(
        lambda sample, seed: "wrong", distribution, m=1, alpha=0, seeds=["r"], errors=errors.__getitem__
    )
    assert only.tradeoffs() == ((F(0), F(1)), (F(1), F(0)))


def test_seeds_of_a_stable_learner() -> None:
    rows = [[0, 0], [1, 0], [1, 1]]
    learner = RepresentationLearner(FiniteClass(rows), gamma=3)
    seeds = [PublicSeed(bytes([k]) * 32) for k in range(4)]
    report = audit_stability(learner, HALVES, m=3, seeds=seeds, alpha=0, eta="3/4")
    queries = StatisticalQueryLearner(DecisionListQueries(1, alpha="0.1", tolerance="0.2"))
    lists = audit_stability(queries, {(0, 1): F(1, 2), (1, 1): F(1, 2)}, m=2, seeds=seeds, alpha="0.1")
    assert lists.nu is not None
    assert lists.nu.lower == 1
    for own in report.seeds:
        found: dict[int, F] = {}
        for sample, mass in sequences(HALVES, 3):
            X, y = np.array([[x] for x, _ in sample]), np.array([y for _, y in sample], dtype=np.uint8)
            item = learner.item(X, y, own.seed)
            found[item] = found.get(item, F(0)) + mass
        assert own.best.probability.lower == max(found.values())
        assert own.accurate == (found.get(1, F(0)) >= F(3, 4))


def test_what_agreement_says_about_stability() -> None:
    """For learners with finitely much public randomness both sides are known."""
    source = random.Random(3)
    tight = 0
    for _ in range(2000):
        size, n_seeds = source.randrange(1, 4), source.randrange(1, 4)
        pmfs = []
        for _ in range(n_seeds):
            weights = [source.choice([0, 1, 2, 3, 10, 40]) for _ in range(size)]
            if not any(weights):
                weights[0] = 1
            pmfs.append([F(weight, sum(weights)) for weight in weights])
        rho = sum((sum(p * p for p in pmf) for pmf in pmfs), F(0)) / n_seeds
        for eta in (F(1, 5), F(1, 2), F(2, 3), F(9, 10), F(1)):
            nu = F(sum(max(pmf) >= eta for pmf in pmfs), n_seeds)
            assert stability_from_agreement(rho, eta) <= nu
            assert agreement_from_stability(eta, nu) <= rho
    # Two hypotheses of probabilities just off eta and 1 - eta attain the bound, so a larger constant would be wrong.
    for eta in (F(1, 2), F(3, 4), F(9, 10)):
        largest = eta - F(1, 10**9)
        rho = largest**2 + (1 - largest) ** 2
        assert 0 <= stability_from_agreement(rho, eta) < F(1, 10**6)
        tight += 1 - (1 - rho) / (F(21, 20) * 2 * eta * (1 - eta)) > 0
    assert tight == 3


def test_what_an_audit_says_about_all_seeds() -> None:
    """The enclosure of nu, against the stability of many seeds; a false alarm has probability below 1e-6."""
    learner = RepresentationLearner(FiniteClass(THRESHOLDS), gamma=16)
    seeds = [PublicSeed(bytes([k % 256, k // 256]) * 16) for k in range(600)]
    all_seeds = audit_stability(learner, HALVES, m=8, alpha=0)
    some = audit_stability(learner, HALVES, m=8, alpha=0, seeds=seeds)
    assert all_seeds.nu is not None
    assert some.nu is not None
    # Hoeffding: 600 independent seeds are within 0.11 but for 2 exp(-2 * 600 * 0.11**2) < 1e-6.
    assert float(all_seeds.nu.lower) - 0.11 < float(some.nu.lower) < float(all_seeds.nu.upper) + 0.11
    assert float(all_seeds.nu.lower) > 0.8


@pytest.mark.parametrize("m", [4, 16])
def test_measured_agreement_is_the_exact_one(m: int) -> None:
    learner = RepresentationLearner(FiniteClass(THRESHOLDS), gamma=6)
    exact = audit_stability(learner, HALVES, m=m).agreement
    assert exact is not None

    def sampler(generator: np.random.Generator, rows: int) -> tuple[Any, Any]:
        x = generator.integers(0, 2, size=(rows, 1))
        return x, 1 - x[:, 0]

    found = measure_agreement(learner, sampler, m=m, trials=2000, confidence=1 - 1e-7)
    assert found.probability.lower <= float(exact) <= found.probability.upper
    assert found.probability.upper - found.probability.lower < 0.15

    # A planted mistake is seen: two seeds where one was meant.
    class Careless(StableLearner):
        default = -1

        def item(self, X: Any, labels: Any, seed: Any) -> int:
            return learner.item(X, labels, PublicSeed(seed.block("other", labels.tobytes()[0])))

    other = measure_agreement(Careless(), sampler, m=m, trials=2000, confidence=1 - 1e-7)
    assert other.probability.upper < float(exact)
    # Under one seed: the sum of squares of its probabilities.
    seed = PublicSeed(bytes(32))
    own = audit_stability(learner, HALVES, m=m, seeds=[seed])
    fixed = measure_agreement(learner, sampler, m=m, trials=2000, seed=seed, confidence=1 - 1e-7)
    squares = sum(float(item.probability) ** 2 for item in own.items)
    assert fixed.probability.lower <= squares <= fixed.probability.upper


def test_defaults_are_counted() -> None:
    learner = ListStabilityLearner(VersionSpace(Thresholds(4)), eta=1, k1=2, k2=2, gamma=1)
    found = measure_agreement(learner, lambda generator, rows: (np.ones((rows, 1)), np.zeros(rows)), m=3, trials=10)
    assert (found.agreed, found.defaults) == (10, 20)
    assert "20 of 20" in str(found)


def test_reports_as_text_and_json() -> None:
    learner = RepresentationLearner(FiniteClass(THRESHOLDS), gamma=16)
    report = audit_stability(learner, HALVES, m=4, alpha=0)
    content = json.loads(report.to_json())
    assert content["format"] == "userdp-stability/3"
    assert report.agreement is not None
    assert [F(end) for end in content["agreement"]] == [report.agreement.lower, report.agreement.upper]
    assert content["distribution"] == [[[0, 1], "1/2"], [[1, 0], "1/2"]]
    assert "Two users agree                        0.8751" in str(report)
    assert "race" in str(report)
    bounds = report.agreement.bounds
    assert bounds.lower <= report.agreement.lower <= report.agreement.upper <= bounds.upper
    with pytest.raises(AttributeError):
        report.m = 5  # type: ignore[misc]
    with pytest.raises(ValueError, match="listed seeds"):
        report.tradeoffs()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"distribution": {(0, 1): "1/2", (1, 0): "1/3"}}, ValueError, "must sum to exactly 1"),
        ({"distribution": {(0, 1): 0.1, (1, 0): 0.9000001}}, ValueError, "must sum to exactly 1"),
        ({"distribution": {(0, 1): -1, (1, 0): 2}}, ValueError, "finite number >= 0"),
        ({"distribution": 3}, TypeError, "distribution must be a mapping"),
        ({"distribution": {(0, 2): 1}}, ValueError, "y 0 or 1"),
        ({"distribution": {(0, 0): "1/2", (0, 1): "1/2"}, "alpha": 0}, ValueError, "not realizable"),
        ({"m": 0}, ValueError, "m must be at least 1"),
        ({"alpha": 1.5}, ValueError, "alpha must be in"),
        ({"eta": -1}, ValueError, "eta must be in"),
        ({"eta": 0}, ValueError, "eta must be in"),
        ({"method": "dart"}, ValueError, "'race' or 'darts'"),
        ({"learner": 3}, TypeError, "learner must be"),
        ({"learner": max, "alpha": 0}, TypeError, "needs errors"),
        ({"learner": lambda sample: [1]}, TypeError, "the outcome for sample 0"),
        ({"learner": lambda sample: sample[1], "m": 3}, ValueError, "listed in another order"),
        ({"m": 10**18}, BudgetError, "runs"),
        ({"m": 10**6}, BudgetError, "examples"),
        ({"seeds": [0, 1]}, TypeError, "PublicSeed"),
        ({"concepts": 5, "alpha": 0}, TypeError, "concepts must be"),
        ({"canonical": {0, 1}}, TypeError, "canonical must be"),
        ({"learner": lambda sample: {1: "1/2"}}, ValueError, "the outcome for sample 0 must sum"),
        ({"learner": lambda sample: {1} if sum(x for x, _ in sample) else 1}, TypeError, "distributions or items"),
        ({"learner": max, "alpha": 0, "errors": lambda item: 2}, ValueError, "errors: the error"),
        ({"m": 3_000_000}, BudgetError, "at most 2,000,000 runs"),
        ({"m": 10, "budget": 10}, BudgetError, "pairs of 11 distinct distributions"),
        ({"seeds": ["a", "a"]}, ValueError, "same entry twice"),
    ],
)
def test_bad_audits(change: dict[str, Any], error: type[Exception], message: str) -> None:
    learner = RepresentationLearner(FiniteClass(THRESHOLDS), gamma=16)
    call: dict[str, Any] = {"learner": learner, "distribution": HALVES, "m": 2} | change
    with pytest.raises(error, match=message):
        audit_stability(call.pop("learner"), call.pop("distribution"), **call)


def test_pmfs_may_be_pmfs() -> None:
    report = audit_stability(lambda sample: Pmf(("a", "b"), (len(set(sample)), 1)), {0: F(1, 2), 1: F(1, 2)}, m=2)
    assert report.outcomes == 2
    mixed = {own.item: own.probability for own in report.items}
    assert mixed["a"].lower <= F(1, 2) * F(1, 2) + F(1, 2) * F(2, 3) <= mixed["a"].upper


def test_examples_are_multisets_with_multinomial_weights() -> None:
    distribution = {0: F(1, 6), 1: F(1, 3), 2: F(1, 2)}
    for symmetric in (True, False):
        report = audit_stability(lambda sample: sum(sample), distribution, m=3, symmetric=symmetric)
        expected: dict[int, F] = {}
        for sample in itertools.product(distribution, repeat=3):
            mass = math.prod((distribution[z] for z in sample), start=F(1))
            expected[sum(sample)] = expected.get(sum(sample), F(0)) + mass
        assert {own.item: own.probability.lower for own in report.items} == expected
