"""Claims about statistical-query algorithms: error with adversarial answers, numbers of queries, and agreement."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import statistical_queries as oracle
from userdp.public_randomness import PublicSeed
from userdp.stability import DecisionListQueries, MarginPerceptronQueries, StatisticalQueryLearner, query_parameters
from userdp.users import UserTable


class Adversary:
    """Answers within the tolerance: multiples of 1/intervals, any of those that are allowed."""

    def __init__(self, algorithm: Any, rows: Any, labels: Any, weights: list[Fraction], choose: Callable[[Any], Any]):
        self.algorithm, self.points, self.labels = algorithm, algorithm.points(rows), labels
        self.weights, self.choose, self.asked = weights, choose, 0
        self.reach = algorithm.tolerance

    def __call__(self, phi: Any) -> Fraction:
        self.asked += 1
        values = np.asarray(phi(self.points, self.labels))
        mean = sum((w * Fraction(v) for w, v in zip(self.weights, values.tolist(), strict=True)), Fraction(0))
        return self.answer(mean)

    def answer(self, mean: Fraction) -> Fraction:
        intervals = self.algorithm.intervals
        low, high = math.ceil(intervals * (mean - self.reach)), math.floor(intervals * (mean + self.reach))
        return Fraction(self.choose(range(low, high + 1)), intervals)

    def at_most(self, phi: Any, bound: Fraction) -> bool:
        return self(phi) <= bound


CHOICES: dict[str, Callable[[Any], Any]] = {
    "lowest": min,
    "highest": max,
    "either": lambda found: random.choice((found[0], found[-1])),
    "any": lambda found: random.choice(found),
}


def error(algorithm: Any, hypothesis: Any, rows: Any, labels: Any, weights: list[Fraction]) -> Fraction:
    wrong = algorithm.predict(hypothesis, rows) != (labels == 1)
    return sum((weight for weight, bad in zip(weights, wrong.tolist(), strict=True) if bad), Fraction(0))


def random_target(d: int, width: int, length: int) -> list[tuple[dict[int, int], int]]:
    rules = random.sample(oracle.terms(d, width)[:-1], length - 1)
    return [*((term, random.randint(0, 1)) for term in rules), ({}, random.randint(0, 1))]


def random_weights(size: int) -> list[Fraction]:
    """Masses of very different sizes, some of them 0."""
    drawn = [random.choice((0, 0, 1, 1, 5, 40, 1000)) for _ in range(size)]
    drawn[random.randrange(size)] += 1
    return [Fraction(weight, sum(drawn)) for weight in drawn]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("d", "width", "length"), [(3, 1, 2), (3, 1, 4), (3, 1, 7), (4, 1, 5), (3, 2, 4)])
def test_decision_lists_err_by_at_most_alpha_whatever_the_answers(choice: str, d: int, width: int, length: int) -> None:
    random.seed(f"{choice} {d} {width} {length}")
    points = np.array([[place >> bit & 1 for bit in range(d)] for place in range(2**d)])
    most = 0
    for _ in range(25):
        target = random_target(d, width, length)
        labels = np.array([oracle.predict_list(target, point) for point in points.tolist()], dtype=np.uint8)
        weights = random_weights(len(points))
        algorithm = DecisionListQueries(d, alpha="0.1", width=width, length=length)
        ask = Adversary(algorithm, points, labels, weights, CHOICES[choice])
        found = algorithm.run(ask)
        assert error(algorithm, found, points, labels, weights) <= algorithm.alpha
        assert ask.asked <= algorithm.max_queries
        most = max(most, ask.asked)
    assert most > 2 * d


def test_fewer_rounds_and_answers_beyond_the_tolerance_break_the_promise() -> None:
    points = np.array([[place >> bit & 1 for bit in range(3)] for place in range(8)])
    weights = [Fraction(1, 8)] * 8
    # A parity of two features is no list of two rules, nor of any number.
    labels = (points[:, 0] ^ points[:, 1]).astype(np.uint8)
    algorithm = DecisionListQueries(3, alpha="0.1")
    found = algorithm.run(Adversary(algorithm, points, labels, weights, min))
    assert error(algorithm, found, points, labels, weights) == Fraction(1, 2)
    # x0 -> 0, x1 -> 1, x2 -> 0, else 1 takes four rounds.
    labels = np.where(points[:, 0] == 1, 0, np.where(points[:, 1] == 1, 1, 1 - points[:, 2])).astype(np.uint8)
    errors = []
    for length, reach in ((4, 1), (1, 1), (4, 60)):
        algorithm = DecisionListQueries(3, alpha="0.1", length=length)
        ask = Adversary(algorithm, points, labels, weights, min)
        ask.reach *= reach
        errors.append(error(algorithm, algorithm.run(ask), points, labels, weights) <= algorithm.alpha)
    assert errors == [True, False, False]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("d", "margin"), [(2, "0.25"), (3, "0.2"), (4, "0.4")])
def test_the_perceptron_errs_by_at_most_alpha_whatever_the_answers(choice: str, d: int, margin: str) -> None:
    random.seed(f"{choice} {d} {margin}")
    for _ in range(3):
        unit = np.array([random.gauss(0, 1) for _ in range(d)])
        unit /= np.linalg.norm(unit)
        rows: list[list[float]] = []
        while len(rows) < 14:
            row = np.array([random.gauss(0, 1) for _ in range(d)])
            row *= random.random() / np.linalg.norm(row)
            if abs(row @ unit) >= float(margin):
                rows.append(row.tolist())
        X = np.array(rows)
        labels = (X @ unit > 0).astype(np.uint8)
        weights = random_weights(len(rows))
        algorithm = MarginPerceptronQueries(d, margin=margin, alpha="0.1")
        ask = Adversary(algorithm, X, labels, weights, CHOICES[choice])
        found = algorithm.run(ask)
        assert error(algorithm, found, X, labels, weights) <= algorithm.alpha
        assert ask.asked <= algorithm.max_queries
        # It stopped by itself, and not because the rounds were over.
        assert ask.asked % (d + 1) == 1
        assert found != algorithm.default


def test_rows_beyond_the_unit_ball_count_by_their_direction() -> None:
    algorithm = MarginPerceptronQueries(2, margin="0.25", alpha="0.1")
    points = algorithm.points(np.array([[3.0, 4.0], [0.3, 0.4], [math.nan, -2.0], [math.inf, 1.0], [-1e308, 1e308]]))
    assert points[:3].tolist() == [[0.6, 0.8], [0.3, 0.4], [0.0, -1.0]]
    assert np.all(np.isfinite(points))
    assert np.allclose(np.hypot(*points.T), [1, 0.5, 1, 1, 1])


# --- agreement


@pytest.mark.parametrize("tolerance", [Fraction(1, 8), Fraction(1, 10), Fraction(2, 9)])
def test_variance_of_decision_lists(tolerance: Fraction) -> None:
    """P[users part on one query], exactly, is at most I sqrt(2 tolerance / m) for every error rate e."""
    algorithm = DecisionListQueries(1, alpha="0.5", tolerance=tolerance)
    intervals, last = algorithm.intervals, algorithm.intervals * tolerance // 1

    def joins(mean: Fraction) -> Fraction:
        # The measure of the offsets s with floor(I mean + s) <= last.
        return min(max(last + 1 - intervals * mean, Fraction(0)), Fraction(1))

    largest = Fraction(0)
    for m in (1, 2, 5, 12):
        for place in range(61):
            e = Fraction(place, 60)
            parts = sum(
                math.comb(m, k) * e**k * (1 - e) ** (m - k) * abs(joins(Fraction(k, m)) - joins(e))
                for k in range(m + 1)
            )
            assert parts**2 <= intervals**2 * algorithm.variance / m
            largest = max(largest, parts**2 * m / (intervals**2 * algorithm.variance))
    # The bound is of the right size.
    assert largest > Fraction(1, 12)


def test_rows_by_the_formula() -> None:
    algorithm = DecisionListQueries(2, alpha="0.3", length=2)
    tau, q = Fraction(3, 100), 2 * 5 + 3
    assert (algorithm.tolerance, algorithm.max_queries, algorithm.intervals) == (tau, q, 34)
    found = query_parameters(algorithm, eta="0.9", nu="2/3")
    budget = Fraction(1, 3) * Fraction(1, 10)
    assert found.m == math.ceil(2 * tau * (34 * q / budget) ** 2)
    assert found.fresh_m == q * found.m
    perceptron = MarginPerceptronQueries(2, margin="0.5", alpha="0.2", max_rounds=3)
    assert query_parameters(perceptron, eta="0.9", nu="2/3").m == math.ceil((perceptron.intervals * 9 / budget) ** 2)


def sampled(rng: np.random.Generator, n_users: int, m: int) -> UserTable:
    """Rows whose label is x0, but for 15% of all rows: between 1 and 2 tolerances of 1/10, so that users may part."""
    X = rng.integers(0, 2, size=(n_users * m, 1))
    labels = X[:, 0] ^ ((rng.random(len(X)) < 0.3) & (X[:, 0] == 1))
    return UserTable(X, labels.astype(np.uint8), np.repeat(np.arange(n_users, dtype=np.uint32), m), n_users, m)


@pytest.mark.parametrize(("m", "agrees"), [(32_400, True), (12, False)])
def test_users_agree_as_often_as_is_claimed(m: int, agrees: bool) -> None:
    """300 seeds, each with two users of its own.

    The two differ only if one of them differs from the canonical hypothesis: with probability at most twice the bound.
    By Hoeffding's inequality the share of 300 seeds exceeds that by 0.16 with probability below 3e-7.
    """
    algorithm = DecisionListQueries(1, alpha="0.5", length=2, tolerance="0.1")
    learner = StatisticalQueryLearner(algorithm)
    rng = np.random.default_rng(11)
    parted = 0
    for place in range(300):
        items = learner.items(sampled(rng, 2, m), PublicSeed(place.to_bytes(32, "big")))
        parted += items[0] != items[1]
    bound = algorithm.max_queries * algorithm.intervals * math.sqrt(algorithm.variance / m)
    assert (2 * bound < 0.45) == agrees
    if agrees:
        assert parted / 300 < 2 * bound + 0.16
    else:
        # So few rows could not pass for enough.
        assert parted / 300 > 0.45 + 0.16


def test_most_users_vote_for_a_list_that_is_right() -> None:
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(60, dtype=np.uint32), 1000)
    X = rng.integers(0, 2, size=(len(users), 5))
    labels = np.where(X[:, 3] == 1, 0, np.where(X[:, 1] == 0, 1, X[:, 4])).astype(np.uint8)
    algorithm = DecisionListQueries(5, alpha="0.1", length=3, tolerance="0.02")
    items = StatisticalQueryLearner(algorithm).items(UserTable(X, labels, users, 60, 1000), PublicSeed("11" * 32))
    (item, votes), *_ = Counter(items).most_common()
    assert votes >= 54
    hypothesis = algorithm.decode(item)  # type: ignore[arg-type]
    assert np.array_equal(algorithm.predict(hypothesis, X), labels == 1)
