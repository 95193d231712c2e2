"""Numbers of users for thresholds and finite classes: recorded simulations, formulas, and fits of shipped classes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from userdp.concepts import FiniteClass
from userdp.learners import (
    AgnosticPACClassifier,
    CorrelatedSamplingClassifier,
    RealizablePACClassifier,
    ThresholdClassifier,
    best_separating_threshold,
)
from userdp.planning import compare_methods, user_complexity
from userdp.planning.chances import binomial, misses, users_for
from userdp.planning.problem import NotPlanned

USUAL = ("one record per person", "group privacy", "per-user clipping")
SIMULATED = {
    "threshold": ("score", *USUAL),
    "pac": ("realizable", "correlated sampling", *USUAL),
    "agnostic": ("score", "pairwise", *USUAL),
}
PAIRS = [(task, method) for task, methods in SIMULATED.items() for method in methods]


@pytest.mark.parametrize("flips", [False, True])
def test_chances_are_those_of_the_mechanisms(flips: bool) -> None:
    """Of the exponential mechanism and of permute-and-flip, by their exact distributions."""
    from userdp.mechanisms import ExponentialMechanism, PermuteAndFlip

    scores = np.array([3, 0, 7, 2, 2, 11, 5])
    bad = np.array([True, False, True, False, True, True, True])
    kind = PermuteAndFlip if flips else ExponentialMechanism
    exact = kind(epsilon=0.7, sensitivity=2).pmf(scores).probabilities[bad].sum()
    assert float(misses(scores, 0.7 / 4, bad, flips=flips)) == pytest.approx(exact, rel=1e-9)


def test_many_candidates_with_one_score() -> None:
    """A candidate that stands for four is one of weight four."""
    few, many = np.array([0.0, 3.0]), np.array([0.0, 3, 3, 3, 3])
    sizes = np.log([1.0, 4.0])
    found = misses(few, 0.5, np.array([False, True]), log_sizes=sizes)
    assert float(found) == pytest.approx(float(misses(many, 0.5, np.arange(5) > 0)), rel=1e-12)


def test_the_number_of_users_is_where_failures_come_to_beta() -> None:
    """For a failure of exp(-n / 10), ln(1 / beta) times 10; what falls too slowly is not planned."""
    assert users_for(lambda n: math.exp(-n / 10), 0.05) == pytest.approx(10 * math.log(20), rel=1e-2)
    assert binomial(3, 0.25).tolist() == pytest.approx([27 / 64, 27 / 64, 9 / 64, 1 / 64])
    with pytest.raises(NotPlanned, match="would be needed"):
        users_for(lambda n: 0.5, 0.1, 1000)


@pytest.mark.parametrize("m", [1, 3, 64])
def test_the_proved_number_for_labels_that_are_explained(m: int) -> None:
    """The formula of the class, written out: thirds of beta for the best one, a bad one and the draw."""
    size, alpha, beta, epsilon = 200, 0.1, 0.06, 0.5
    third, rows = beta / 3, min(m, 10)
    parts = (37.5 * math.log(1 / third), 4.5 * math.log(size / third), 40 / epsilon * math.log(size / third))
    given: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "beta": beta, "n_hypotheses": size}
    found = user_complexity("pac", method="realizable", m=m, **given)
    assert found.proved.value == math.ceil(max(parts) / (alpha * rows))
    single = user_complexity("pac", method="one record per person", m=m, **given)
    assert single.proved.value == math.ceil(max(parts) / alpha)
    # One record of m m-times as many people at epsilon / m: nothing is gained but where sampling counts.
    grouped = user_complexity("pac", method="group privacy", m=m, **given)
    records = (parts[0], parts[1], m * parts[2])
    assert grouped.proved.value == pytest.approx(max(records) / alpha / m, abs=2)


def test_proved_numbers_for_wrong_labels_solve_their_inequality() -> None:
    """Deviations of all errors and the miss of the draw add up to alpha, and with one user fewer they exceed it."""
    beta, epsilon, alpha = 0.1, 0.5, 0.05

    def excess(n: float, candidates: int, deviation: float) -> float:
        return 2 * deviation / math.sqrt(n) + 2 * math.log(2 * candidates / beta) / (epsilon * n) * 1.001

    given: dict[str, Any] = {"m": 1, "epsilon": epsilon, "alpha": alpha, "beta": beta}
    found = user_complexity("agnostic", method="group privacy", n_hypotheses=100, **given).proved.value
    hoeffding = math.sqrt(math.log(4 * 100 / beta) / 2)
    assert found is not None
    assert excess(found, 100, hoeffding) <= alpha < excess(found - 1, 100, hoeffding)
    found = user_complexity("threshold", method="group privacy", n_points=1000, **given).proved.value
    massart = 2 * math.sqrt(math.log(8 / beta) / 2)
    assert found is not None
    assert excess(found, 1001, massart) <= alpha < excess(found - 1, 1001, massart)


@pytest.mark.parametrize(("m", "alpha"), [(2, 0.1), (16, 0.1), (64, 0.05)])
def test_the_proved_number_of_surrogates_solves_its_inequalities(m: int, alpha: float) -> None:
    """With tails of binomial distributions by SciPy, for every estimate that bisection can come to."""
    from scipy.stats import binom

    size, beta, epsilon = 50, 0.12, 0.8
    found = user_complexity(
        "agnostic", method="surrogate", n_hypotheses=size, m=m, epsilon=epsilon, alpha=alpha, beta=beta
    ).proved.value
    assert found is not None
    third, rounds = beta / 3, math.ceil(math.log2(12 / alpha))
    cells = 2**rounds
    compared, chosen = math.inf, math.inf
    for step in range(cells):
        guess = step / cells
        if step and guess + alpha / 12 <= 1:
            t, gap = best_separating_threshold(m, guess, guess + alpha / 12)
            compared = min(compared, gap)
        if guess + alpha <= 1:
            t, _ = best_separating_threshold(m, guess + alpha / 6, guess + alpha / 3)
            chosen = min(chosen, binom.sf(t, m, guess + alpha) - binom.sf(t, m, guess + alpha / 6))

    def left(n: float) -> float:
        deviation = math.sqrt(n * math.log(2 * size / third) / 2)
        noise = 2 * rounds / epsilon * math.log(2 * rounds / third)
        draw = 4 / epsilon * math.log(size / third) * 1.001
        return min(n * compared / 2 - deviation - noise - 2, n * chosen - 2 * deviation - draw)

    assert left(found + 1) >= 0 > left(found - 2)


def test_one_record_of_each_user_leaves_nothing_to_estimate() -> None:
    """The number of surrogates is then that of counts of mistakes."""
    given: dict[str, Any] = {"m": 1, "epsilon": 1, "alpha": 0.1, "n_hypotheses": 50}
    found = user_complexity("agnostic", method="surrogate", **given).proved.value
    assert found == user_complexity("agnostic", method="one record per person", **given).proved.value


def test_the_proved_number_of_medians() -> None:
    """For m = 1 without estimates: gaps are a sixth of the masses, and the search may lose alpha / 2."""
    epsilon, alpha, beta, size = 1.0, 0.1, 0.1, 2**20
    given: dict[str, Any] = {"epsilon": epsilon, "alpha": alpha, "beta": beta, "n_points": size}
    found = user_complexity("threshold", method="median", m=1, **given).proved.value
    assert found is not None
    rounds, quarter = math.ceil(math.log(2 / alpha) / math.log(1.5)), beta / 4
    mass = (2 / 3) ** (rounds - 1)

    def left(n: float) -> float:
        deviation = math.sqrt(n * math.log(16 * (n + 2) ** 2 / quarter) / 2) + 2
        draw = 2 * math.log((size + 1) * rounds / quarter) * 4 * rounds / epsilon * 1.001
        searched = 2 * rounds * math.log(6 * rounds / quarter) * 4 * rounds / epsilon
        return min(n * mass / 6 - 2 * deviation - draw, n * alpha / 2 - 2 * deviation - searched)

    assert left(found + 1) >= 0 > left(found - 2)
    # Records of each user help, and the numbers are far from those of "score", which stays the one to take.
    many = user_complexity("threshold", method="median", m=64, **given).proved.value
    assert many is not None
    assert many < found / 10
    assert compare_methods("threshold", m=64, **given).best == "score"


@pytest.mark.parametrize(
    ("task", "method", "given", "words"),
    [
        ("agnostic", "surrogate", {"n_hypotheses": 100}, "too small for weights of 64 bits"),
        ("threshold", "median", {"n_points": 2**20}, "beta must be above 6.1e-28"),
    ],
)
def test_no_number_is_proved_for_chances_that_no_draw_can_tell(
    task: str, method: str, given: dict[str, Any], words: str
) -> None:
    common: dict[str, Any] = {"m": 16, "epsilon": 1, "alpha": 0.1, **given}
    assert compare_methods(task, beta=1e-16, **common)[method].proved is not None
    refused = compare_methods(task, beta=1e-30, **common)[method]
    assert refused.proved is None
    assert words in refused.note


def test_statistical_queries_by_the_agreement_that_is_proved() -> None:
    """docs/proofs/statistical_queries.md: users part with at most q I sqrt(v / m), and Markov's inequality."""
    from userdp.mechanisms import ApproximatePrivateMode

    given: dict[str, Any] = {"method": "statistical queries", "epsilon": 1, "alpha": 0.05, "n_hypotheses": 1000}
    given |= {"delta": 1e-6, "queries": 17, "intervals": 20, "beta": 0.1}
    found = user_complexity("pac", m=10**9, **given).proved.value
    parted = 17 * 20 / math.sqrt(10**9)
    mode = ApproximatePrivateMode(epsilon=1, delta=1e-6)
    assert found == mode.users_needed(agreement=1 - 1.5 * parted / 0.1, beta=0.1)
    for change, said in (
        ({"m": 1000}, "from m = 104,040,000 on"),
        ({"m": 10**9, "queries": None}, "give queries="),
        ({"m": 10**9, "delta": 0}, "delta > 0"),
    ):
        with pytest.raises(ValueError, match=said):
            user_complexity("pac", **(given | change))


def test_correlated_sampling_needs_delta() -> None:
    """The reason is in its row."""
    row = compare_methods("pac", m=400, epsilon=1, delta=0, alpha=0.1, n_hypotheses=16)["correlated sampling"]
    assert row.users is None
    assert "delta > 0" in row.note


def test_numbers_follow_what_is_asked() -> None:
    """Less noise, less accuracy and fewer points never need more users, but for a few per cent."""
    asked: dict[str, Any] = {"method": "score", "m": 16, "epsilon": 1, "alpha": 0.1, "n_points": 2**16, "eta": 0.1}
    first = user_complexity("threshold", **asked).n_users
    for change in ({"epsilon": 2}, {"alpha": 0.13}, {"n_points": 2**10}, {"beta": 0.15}):
        assert user_complexity("threshold", **(asked | change)).n_users <= 1.05 * first
    # What is enough for pure privacy is enough for less.
    assert user_complexity("threshold", **(asked | {"delta": 1e-6})).n_users == first


@pytest.mark.parametrize("task", SIMULATED)
def test_every_method_has_a_number_or_a_reason(task: str) -> None:
    """No row is empty, and the usual ways are among them."""
    extra = {"n_points": 4096} if task == "threshold" else {"n_hypotheses": 64}
    table = compare_methods(task, alpha=0.1, m=100, epsilon=1, delta=1e-6, **extra)
    assert set(USUAL) < {row.method for row in table.rows}
    for row in table.rows:
        assert (row.users is None) == row.note.startswith("not planned: ")
        assert row.users is not None or len(row.note) > 40
    assert table.best in SIMULATED[task]
    for given, value in (("m", 1), ("m", 256), ("epsilon", 0.25), ("epsilon", 4.0), ("beta", 0.033), ("beta", 0.2)):
        at: dict[str, Any] = {"m": 8, "epsilon": 1.0, "beta": 0.1, "alpha": 0.1} | extra
        for method in set(SIMULATED[task]) - {"correlated sampling"}:
            assert user_complexity(task, method=method, **(at | {given: value})).basis != "extrapolated"
    far = compare_methods(task, alpha=0.1, m=100, epsilon=100, **extra)
    assert all("simulated for" in row.note or row.users is not None or "not simulated" in row.note for row in far.rows)


@pytest.mark.parametrize(
    ("task", "change", "error", "said"),
    [
        ("threshold", {}, TypeError, "n_points is needed"),
        ("threshold", {"n_points": 10}, ValueError, "n_points must be"),
        ("threshold", {"n_points": 100, "eta": 0.5}, ValueError, "eta must be a number from 0 to 0.49"),
        ("threshold", {"n_points": 100, "alpha": 0.5}, ValueError, "alpha must be below 0.5"),
        ("threshold", {"n_points": 100, "n_hypotheses": 3}, TypeError, "n_hypotheses is no parameter"),
        ("pac", {"n_hypotheses": 1}, ValueError, "n_hypotheses must be"),
        ("pac", {"n_hypotheses": 100, "m": 0}, ValueError, "m must be"),
        ("pac", {"n_hypotheses": 100, "method": "best"}, ValueError, "method must be 'auto' or one of 'realizable'"),
        ("agnostic", {"n_hypotheses": 64, "eta": math.nan}, ValueError, "eta must be"),
        ("agnostic", {"n_hypotheses": 64, "eta": "low"}, TypeError, "eta must be"),
    ],
)
def test_bad_input(task: str, change: dict[str, Any], error: type[Exception], said: str) -> None:
    """Errors name the argument and say what is accepted."""
    with pytest.raises(error, match=said):
        user_complexity(task, **({"m": 8, "epsilon": 1, "alpha": 0.1} | change))


def test_alpha_for_which_no_hypothesis_can_be_so_bad() -> None:
    """The obstacle is in the row."""
    table = compare_methods("agnostic", alpha=0.3, m=8, epsilon=1, n_hypotheses=64, eta=0.2)
    assert "simulated for alpha" in table["score"].note


# Fits of the shipped classes on reference users that are drawn here, as examples and not as numbers of mistakes.

RUNS = 50
EPSILON, ALPHA, BETA, ETA, SIZE, POINTS = 1.0, 0.1, 0.1, 0.1, 40, 2**12
EXTRA: dict[str, dict[str, Any]] = {
    "threshold": {"n_points": POINTS, "eta": ETA},
    "pac": {"n_hypotheses": SIZE},
    "agnostic": {"n_hypotheses": SIZE, "eta": ETA},
}


def share_of_successes(task: str, method: str, m: int, n: int) -> float:
    """Of fits with so many users of m records each."""
    rng, good = np.random.default_rng([7, n, m]), 0
    part = 2 * ALPHA / (1 - 2 * ETA if task == "agnostic" else 1)
    for run in range(RUNS):
        users = np.repeat(np.arange(n), m)
        given: dict[str, Any] = {"epsilon": EPSILON, "m": m, "random_state": run}
        if method == "one record per person":
            users, given["m"] = np.arange(n), 1
        elif method in USUAL:
            users, given = np.arange(n * m), given | {"m": 1, "epsilon": EPSILON / m}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # random_state is for tests only
            if task == "threshold":
                places = rng.integers(64, size=len(users))
                labels = (places >= 32) ^ (rng.random(len(users)) < ETA)
                model: Any = ThresholdClassifier(domain_size=POINTS, **given, classes=(0, 1))
                model.fit((POINTS // 2 + places)[:, None], labels.astype(int), groups=users)
                cut = min(max(model.threshold_ - POINTS // 2 + 1, 0), 64)
                good += (1 - 2 * ETA) * abs(cut - 32) / 64 <= ALPHA + 1e-9
                continue
            table = rng.random((SIZE, 4096)) < part
            right = rng.random(4096) < 0.5
            table[0] = False
            kind: Callable[..., Any] = AgnosticPACClassifier if task == "agnostic" else RealizablePACClassifier
            if task == "agnostic" and method == "pairwise":
                given["method"] = "pairwise"
            if method == "correlated sampling":
                kind, given = CorrelatedSamplingClassifier, given | {"delta": 1e-6}
            points = rng.integers(4096, size=len(users))
            labels = right[points] ^ (rng.random(len(users)) < (ETA if task == "agnostic" else 0))
            model = kind(concepts=FiniteClass(table ^ right), alpha=ALPHA, classes=(0, 1), **given)
            model.fit(points[:, None], labels.astype(int), groups=users)
            good += model.concept_ == 0 and getattr(model, "selected_", True)
    return good / RUNS


@pytest.mark.parametrize(("task", "method"), PAIRS)
def test_fits_reach_the_stated_success_rate(task: str, method: str) -> None:
    """With the users recommended, within three standard errors, from fixed seeds."""
    m = 150 if method == "correlated sampling" else 12
    delta = 1e-6 if method == "correlated sampling" else 0
    plan = user_complexity(
        task, method=method, m=m, epsilon=EPSILON, delta=delta, alpha=ALPHA, beta=BETA, **EXTRA[task]
    )
    assert plan.basis == "simulated"
    found = share_of_successes(task, method, m, plan.n_users)
    assert found >= 1 - BETA - 3 * math.sqrt(BETA * (1 - BETA) / RUNS)
    # The number is not idle: with a fourth of the users it is missed.
    assert share_of_successes(task, method, m, max(2, plan.n_users // 4)) < 1 - BETA


def test_users_with_many_records_separate_better() -> None:
    """The gap that the numbers rest on grows with m, and so fewer users are needed."""
    assert best_separating_threshold(64, 0.1, 0.2)[1] > 2 * best_separating_threshold(4, 0.1, 0.2)[1]
    needs = [
        user_complexity("threshold", method="score", m=m, epsilon=1, alpha=0.05, n_points=2**20).n_users
        for m in (1, 16)
    ]
    assert needs[0] > 1.5 * needs[1]
