"""One run with canary users: mechanisms that keep and break their claims, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp.audit import audit_estimator, audit_one_run
from userdp.optimization import UserLevelLogisticRegression
from userdp.report import GuessReport, Report

N, ROWS = 200, 8
CANARIES = [[(place, 1)] * ROWS for place in range(N)]
NOBODY: list[list[Any]] = [[] for _ in range(N)]


def noise(source: random.Random, stop: tuple[int, int]) -> int:
    """Two-sided geometric noise that goes on with probability stop[0] / stop[1]: a unit costs the inverse of it."""
    sides = [0, 0]
    for side in (0, 1):
        while source.randrange(stop[1]) < stop[0]:
            sides[side] += 1
    return sides[0] - sides[1]


def totals(users: list[Any], per_user: int) -> list[int]:
    """Rows at each place, of which a user gives some at most."""
    found = [0] * N
    for rows in users:
        for place, value in rows[:per_user]:
            found[place] += min(value, 1)
    return found


def mechanism(seed: int, per_user: int) -> Callable[[list[Any]], list[int]]:
    source = random.Random(seed)
    return lambda users: [total + noise(source, (3, 8)) for total in totals(users, per_user)]


def audited(seed: int, per_user: int, **options: Any) -> GuessReport:
    # ln(8 / 3) = 0.98 for a unit.
    return audit_one_run(
        mechanism(seed, per_user),
        canaries=CANARIES,
        score=lambda output: output,
        epsilon=1,
        random_state=1000 + seed,
        **{"others": NOBODY} | options,
    )


@pytest.mark.parametrize("test", ["fixed", "anytime"])
def test_rows_that_are_clipped_one_by_one(test: str) -> None:
    for seed in range(10):
        report = audited(seed, ROWS, test=test)
        assert report.holds is False
        # Eight units of 0.98 for a user: hardly any guess is wrong.
        assert float(report.verdict.epsilon) > 1.3
        assert float(report.lower) > 2.5


@pytest.mark.parametrize("test", ["fixed", "anytime"])
@pytest.mark.statistical
def test_users_that_are_clipped(test: str) -> None:
    """A wrong verdict has probability 1e-9. A bound is above the truth in 5 %, so that 17 of 40 are with < 1e-9."""
    reports = [audited(seed, 1, test=test) for seed in range(40)]
    assert all(report.holds is None for report in reports)
    truth = Fraction(8, 3)
    assert all(report.verdict.epsilon.ratio <= truth for report in reports)
    assert sum(report.lower.ratio > truth for report in reports) < 17
    # The bound is of use: most runs show more than a tenth.
    assert sum(float(report.lower) > 0.1 for report in reports) > 30


def test_a_fixed_number_of_guesses_is_of_the_extremes() -> None:
    # 0 and 1 are told apart only at the ends.
    def shown(users: list[Any]) -> list[float]:
        inside = {rows[0][0] for rows in users if rows}
        return [float(place in inside) if place < 60 else 0.5 for place in range(N)]

    options: dict[str, Any] = {
        "canaries": CANARIES,
        "others": NOBODY,
        "score": lambda output: output,
        "epsilon": 1,
        "random_state": 3,
    }
    few = audit_one_run(shown, n_guesses=20, **options)
    assert (few.verdict.right, few.verdict.wrong) == (20, 0)
    every = audit_one_run(shown, n_guesses=N, **options)
    assert every.verdict.right + every.verdict.wrong == N
    assert every.verdict.wrong > 30
    best = audit_one_run(shown, test="anytime", alpha="1e-3", **options)
    assert best.verdict.wrong == 0
    assert 40 <= best.verdict.right <= 60
    assert best.holds is False


def test_canaries_are_left_out_or_replaced() -> None:
    seen: list[Any] = []

    def run(users: list[Any]) -> Any:
        seen.append(users)
        return [0.0] * 4

    common: dict[str, Any] = {
        "canaries": "abcd",
        "score": lambda output: output,
        "epsilon": 1,
        "background": ["x", "y"],
    }
    for seed in range(20):
        audit_one_run(run, neighbors="add-remove", random_state=seed, **common)
        audit_one_run(run, others="ABCD", random_state=seed, **common)
    assert all(users[:2] == ["x", "y"] for users in seen)
    assert all(list(map(str.lower, users[2:])) == list("abcd") for users in seen[1::2])
    # The same coins, seen in two ways.
    assert all([user for user in b if user.islower()] == a for a, b in zip(seen[::2], seen[1::2], strict=True))
    assert len({tuple(users) for users in seen[::2]}) > 5


def test_scores_without_an_opinion() -> None:
    report = audit_one_run(
        lambda users: None,
        canaries=CANARIES,
        others=NOBODY,
        score=lambda output: [float("nan")] * (N - 1) + [np.inf],
        epsilon=0,
        random_state=1,
    )
    assert report.holds is None


def test_delta_takes_its_share() -> None:
    pure, approximate = (audited(5, ROWS, delta=delta) for delta in (0, "1e-5"))
    assert pure.verdict.alpha == Fraction(1, 10**9)
    assert approximate.verdict.alpha == 2 * N * Fraction(1, 10**5)
    assert approximate.estimate.alpha == Fraction(1, 20)
    assert approximate.lower.ratio < pure.lower.ratio
    assert approximate.holds is False
    with pytest.raises(ValueError, match=r"alpha must be above the number of canaries times delta, 200 \* 1e-05"):
        audited(5, ROWS, delta="1e-5", alpha="1e-9")
    with pytest.raises(ValueError, match="alpha must be above"):
        audited(5, ROWS, delta="1/100")


def test_reports_are_read_back_and_verified() -> None:
    for report in (audited(1, ROWS), audited(1, 1), audited(2, ROWS, test="anytime", delta="1e-6")):
        assert Report.from_json(report.to_json()) == report
        assert report.verify().finding == "consistent"
    assert "VIOLATED" in audited(1, ROWS).summary()
    assert "NO VIOLATION SHOWN" in audited(1, 1).summary()
    assert not audited(1, ROWS)
    with pytest.raises(ValueError, match="does not show that the claim holds"):
        bool(audited(1, 1))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"others": None}, ValueError, "needs others="),
        ({"neighbors": "add-remove"}, ValueError, "others goes with"),
        ({"neighbors": "row"}, ValueError, "neighbors must be"),
        ({"others": NOBODY[1:]}, ValueError, "others must be as many as canaries"),
        ({"canaries": []}, ValueError, "canaries must be 1 to"),
        ({"canaries": 7}, TypeError, "must be sequences of users"),
        ({"n_guesses": N + 1}, ValueError, "n_guesses must be at most"),
        ({"n_guesses": 4, "test": "anytime"}, ValueError, "n_guesses goes with"),
        ({"test": "t"}, ValueError, "test must be"),
        ({"score": lambda output: output[1:]}, ValueError, r"the shape \(199,\)"),
        ({"score": lambda output: "x"}, TypeError, "score must return a number"),
        ({"alpha": "0.1", "estimate_alpha": "0.01"}, ValueError, "estimate_alpha must be at least alpha"),
        ({"epsilon": -1}, ValueError, "epsilon"),
    ],
)
def test_arguments_that_do_not_fit(options: Any, error: type[Exception], words: str) -> None:
    arguments = {"canaries": CANARIES, "others": NOBODY, "score": lambda output: output, "epsilon": 1} | options
    with pytest.raises(error, match=words):
        audit_one_run(mechanism(0, 1), **arguments)


class RecordClipping:
    """Logistic regression by gradient steps in which every row is clipped, with Gaussian noise for one row."""

    def __init__(self, per_user: bool = False) -> None:
        self.per_user = per_user

    def fit(self, X: Any, y: Any, groups: Any) -> RecordClipping:
        source, steps = np.random.default_rng(groups.sum()), 10
        sigma = 2 * np.sqrt(2 * steps * np.log(1.25e13))
        self.weights = np.zeros(X.shape[1])
        signs = 2.0 * np.asarray(y) - 1
        for _ in range(steps):
            parts = -(signs / (1 + np.exp(signs * (X @ self.weights))))[:, None] * X
            if self.per_user:
                parts = np.stack([parts[groups == user].mean(axis=0) for user in np.unique(groups)])
            parts /= np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1)
            self.weights -= parts.sum(axis=0) + source.normal(0, sigma, len(self.weights))
        return self

    def decision_function(self, X: Any) -> Any:
        return X @ self.weights


def test_estimators_that_clip_rows_and_users() -> None:
    options: dict[str, Any] = {"n_canaries": 256, "n_rows": 192, "epsilon": 1, "delta": "1e-13", "random_state": 1}
    wrong = audit_estimator(RecordClipping(), **options)
    assert wrong.holds is False
    assert wrong.mechanism == "RecordClipping"
    assert float(wrong.verdict.epsilon) > 1.7
    assert audit_estimator(RecordClipping(per_user=True), **options | {"n_rows": 8}).holds is None


def test_logistic_regression_of_users() -> None:
    model = UserLevelLogisticRegression(epsilon=1, delta=1e-6, feature_bounds=(-1, 1), m=8, classes=(0, 1))
    for seed in range(3):
        with pytest.warns(UserWarning, match="users"):
            report = audit_estimator(model, n_canaries=100, n_rows=8, epsilon=1, delta=1e-6, random_state=seed)
        assert report.holds is None
        assert float(report.verdict.epsilon) == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n_canaries": 0}, ValueError, "n_canaries must be at least 1"),
        ({"n_canaries": 10**5}, ValueError, "take fewer canaries"),
        ({"size": 0}, ValueError, "size must be finite and not 0"),
        ({"targets": (1,)}, TypeError, "targets must be a pair"),
        ({"estimator": 7}, TypeError, "must have a method fit"),
        ({"estimator": type("Fit", (), {"fit": None})()}, TypeError, "decision_function, predict_proba or predict"),
    ],
)
def test_estimators_that_do_not_fit(options: Any, error: type[Exception], words: str) -> None:
    arguments = {"estimator": RecordClipping(), "n_canaries": 10, "n_rows": 1, "epsilon": 1} | options
    with pytest.raises(error, match=words):
        audit_estimator(**arguments)
