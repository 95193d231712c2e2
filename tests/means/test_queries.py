"""WinsorizedQueries: exact audits with an adaptive analyst, what questions may do, and one account for all answers."""

from __future__ import annotations

import copy
import itertools
import os
import pickle
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from support.forgotten_plans import forgotten_plans
from userdp import InsecureRandomnessWarning
from userdp.accounting import gaussian_delta
from userdp.algorithms import finite_algorithm
from userdp.audit import audit_user_level
from userdp.exceptions import PrivacyBudgetError
from userdp.means import WinsorizedQueries
from userdp.means import methods as methods_module
from userdp.users import GivenVectors

F = Fraction


def analyst(answers: tuple[Any, ...]) -> Any:
    """First the mean; then, by its sign, how many are above or below it."""
    if not answers:
        return lambda rows: rows[:, 0].mean()
    middle = answers[0][0]
    if middle > 0:
        return lambda rows: np.mean(np.where(rows[:, 0] > middle, 1.0, -1.0))
    return lambda rows: np.mean(np.where(rows[:, 0] < middle, 1.0, 0.0))


def audited(n_users: int, m: int, epsilon: Any, delta: Any = 0, universe: Any = (1.0, -1.0, 0.0), **given: Any) -> Any:
    about = WinsorizedQueries(epsilon=epsilon, delta=delta, n_queries=2, max_norm=1, m=m, **given)

    def pmf(dataset: Any) -> Any:
        rows = [(user, row) for user, of_user in enumerate(dataset) for row in of_user]
        X, groups = np.array([[row] for _, row in rows]), np.array([user for user, _ in rows])
        about.set_params(enrolled=range(len(dataset)))
        return about.output_distribution(X, groups=groups, analyst=analyst)

    algorithm = finite_algorithm(about._plan(n_users, 1).outcomes())(pmf)
    report = audit_user_level(algorithm, universe=universe, n_users=n_users, n_examples=m, epsilon=epsilon, delta=delta)
    print(f"n={n_users}, m={m}, {given}: worst delta {report.worst_delta}, epsilon {report.epsilon}")
    return report


@pytest.fixture(params=[1, 2], ids=["all noise", "half noise"])
def noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    part = methods_module.equal_part
    monkeypatch.setattr(methods_module, "equal_part", lambda epsilon, parts: part(epsilon, parts) * request.param)
    with forgotten_plans():
        yield request.param


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step of the grid in the bound, so that distributions are small."""
    plan = WinsorizedQueries._problem
    monkeypatch.setattr(WinsorizedQueries, "_problem", lambda self, n: _replaced(plan(self, n)))


def _replaced(problem: Any) -> Any:
    from dataclasses import replace

    return replace(problem, grid_resolution=1)


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("n_users", "m"), [(2, 1), (2, 2), (3, 1)])
def test_audit(n_users: int, m: int, noise: int) -> None:
    universe = (1.0, -1.0, 0.0) if n_users * m < 4 else (1.0, -1.0)
    assert audited(n_users, m, 2, universe=universe, method="laplace").holds is (noise == 1)


@pytest.mark.usefixtures("coarse")
def test_audit_with_gaussian_noise() -> None:
    report = audited(2, 1, 6, F(1, 10), universe=(1.0, -1.0), method="gaussian")
    assert report.holds
    assert report.worst_delta.upper > 0


def session(**given: Any) -> Any:
    X = np.arange(12.0).reshape(6, 2) / 12
    about = WinsorizedQueries(
        **{"epsilon": 1, "delta": 1e-6, "n_queries": 3, "dimension": 2, "max_norm": 2, "m": 2, **given}
    )
    return about.open(X, groups=[1, 1, 2, 2, 3, 3])


def test_the_budget_refuses_one_question_more() -> None:
    about = session()
    for left in (2, 1, 0):
        assert about.release(lambda rows: rows.mean(axis=0)).shape == (2,)
        assert about.remaining == left
    with pytest.raises(PrivacyBudgetError, match="3 questions"):
        about.release(lambda rows: rows.mean(axis=0))
    assert repr(about) == "<QuerySession: 0 of 3 questions left>"


def mean_of(rows: Any) -> Any:
    return rows.mean(axis=0)


@pytest.mark.parametrize("asks_when_tried", [True, False])
def test_questions_ask_no_questions(asks_when_tried: bool) -> None:
    # What they asked would depend on the rows of one user.
    about = session(n_queries=3)
    errors: list[str] = []

    def nested(rows: Any) -> Any:
        if asks_when_tried or rows.any():
            try:
                about.release(lambda others: others.mean(axis=0) * rows[0])
            except RuntimeError as error:
                errors.append(str(error))
        return mean_of(rows)

    about.release(nested)
    assert about.remaining == 2
    assert len(errors) == 3 + asks_when_tried
    assert all("questions ask none themselves" in error for error in errors)


@pytest.mark.serial
def test_threads_have_one_budget_and_take_turns() -> None:
    about = session(n_queries=2)
    tried, go_on = threading.Event(), threading.Event()

    def slow(rows: Any) -> Any:
        tried.set()
        go_on.wait()
        return mean_of(rows)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(about.release, slow)
        tried.wait()
        try:
            with pytest.raises(RuntimeError, match="being asked"):
                about.release(mean_of)
        finally:
            go_on.set()
        assert first.result().shape == (2,)
    about.release(mean_of)
    with pytest.raises(PrivacyBudgetError):
        about.release(mean_of)
    assert about.remaining == 0


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_which_would_have_a_budget_each_are_refused(copied: Any) -> None:
    with pytest.raises(TypeError, match="not copied"):
        copied(session())


def test_another_process_has_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    about = session()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="process"):
        about.release(lambda rows: rows.mean(axis=0))
    assert about.remaining == 3


def test_a_closed_session_has_no_data() -> None:
    with session() as about:
        about.release(lambda rows: rows.mean(axis=0))
    with pytest.raises(RuntimeError, match="closed"):
        about.release(lambda rows: rows.mean(axis=0))
    assert about._data is None
    assert not any(isinstance(value, np.ndarray) for value in vars(about).values())


def test_bad_questions_cost_nothing() -> None:
    about = session()
    with pytest.raises(TypeError, match="callable"):
        about.release(3)
    with pytest.raises(ValueError, match="shape"):
        about.release(lambda rows: rows.mean())
    with pytest.raises(ValueError, match="row of 2 zeros"):
        about.release(lambda rows: 1 // 0)
    assert about.remaining == 3


@pytest.mark.parametrize("value", ["a text", 1j, None, np.zeros(3)])
def test_what_no_answer_can_be_is_refused(value: Any) -> None:
    about = WinsorizedQueries(epsilon=1, max_norm=1, m=1).open(np.array([[1.0], [2.0]]), groups=[1, 2])
    with pytest.raises(ValueError, match="public row"):
        about.release(lambda rows: value)
    assert about.remaining == 1


@pytest.mark.parametrize("kind", ["int64", "uint8", "float32", "bool", "object"])
def test_questions_get_doubles(kind: str) -> None:
    kinds = []

    def question(rows: Any, targets: Any) -> Any:
        kinds.extend([rows.dtype, targets.dtype])
        rows *= 0.5
        return rows.mean()

    X = np.array([[1], [0]]).astype(kind)
    WinsorizedQueries(epsilon=1, max_norm=1, m=1).open(X, X[:, 0], groups=[1, 2]).release(question)
    assert kinds == [np.dtype(np.float64)] * 6
    assert vectors_of(lambda rows: rows.mean() / 2, X, [1, 2]) == [[2**19], [0]]


@pytest.mark.parametrize("method", ["auto", "iterated", "practical"])
def test_a_delta_too_small_for_gaussian_noise_leaves_the_pure_account(method: str) -> None:
    about = WinsorizedQueries(epsilon=1, delta=1e-30, n_queries=2, max_norm=1, m=1, method=method, user_std=0.5).open(
        np.array([[1.0], [2.0]]), groups=[1, 2]
    )
    assert about.privacy_.delta == 0
    with pytest.raises(ValueError, match=r"delta=1e-30 is too small"):
        WinsorizedQueries(epsilon=1, delta=1e-30, max_norm=1, m=1, method="gaussian").open(
            np.array([[1.0], [2.0]]), groups=[1, 2]
        )


@pytest.mark.parametrize(("n_queries", "delta"), [(10**6, 1e-6), (10**6, 0), (10**9, 1e-6)])
def test_plans_of_very_many_questions_take_no_time(n_queries: int, delta: float) -> None:
    about = WinsorizedQueries(epsilon=1, delta=delta, n_queries=n_queries, max_norm=1, m=1)
    assert about.open(np.array([[1.0], [2.0]]), groups=[1, 2]).remaining == n_queries


def vectors_of(question: Any, X: Any, groups: Any, **given: Any) -> list[list[int]]:
    """Every user's integers, by the code that answers use."""
    about = WinsorizedQueries(epsilon=1, max_norm=1, m=2, **{"dimension": 1, **given}).open(X, groups=groups)
    vectors = about._vectors(about._data, question)
    return [vectors.subset([user]).clipped_sum(0.0, 1.0, 2.0**-20).tolist() for user in range(vectors.n_users)]


@pytest.mark.parametrize("failure", ["raise", "exit", "shape", "nan", "text", "none"])
def test_a_question_that_fails_on_somebody_counts_as_zero(failure: str) -> None:
    def question(rows: Any) -> Any:
        if rows[0, 0] != 0.5:
            return rows.mean()
        if failure == "raise":
            raise ArithmeticError("0.5 is secret")
        if failure == "exit":
            raise SystemExit
        return {"shape": np.zeros(3), "nan": np.nan, "text": "x", "none": None}[failure]

    X, groups = np.array([[0.25], [0.5], [0.75], [0.25]]), [1, 2, 3, 3]
    assert vectors_of(question, X, groups) == [[2**18], [0], [2**19]]


def test_a_user_is_the_same_whoever_else_there_is() -> None:
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 3)), np.repeat(np.arange(8), 5)

    def question(rows: Any) -> Any:
        return np.tanh(rows @ [0.1, 0.2, 0.7]).mean()

    alone = vectors_of(question, X, groups)
    order = rng.permutation(40)
    order = order[np.argsort(np.argsort(groups)[order] // 5, kind="stable")]
    kept = np.isin(groups, [1, 4, 5])
    for picked, users in ((kept, [1, 4, 5]), (groups != 3, [0, 1, 2, 4, 5, 6, 7])):
        assert vectors_of(question, X[picked], groups[picked]) == [alone[user] for user in users]
    shuffled = np.concatenate([np.flatnonzero(groups == user) for user in (6, 2, 0, 1, 7, 3, 5, 4)])
    assert vectors_of(question, X[shuffled], groups[shuffled]) == alone


def test_questions_get_copies_and_targets() -> None:
    seen = []

    def question(rows: Any, targets: Any) -> Any:
        seen.append((rows.tolist(), targets.tolist()))
        rows[:] = 7
        return targets.mean()

    about = WinsorizedQueries(epsilon=1, n_queries=2, max_norm=1, m=2, n_features=1, enrolled=[1, 2, 3])
    with about.open([[1.0], [2.0], ["x"]], [0.5, 1.5, 2.5], groups=[3, 1, 3]) as asked:
        asked.release(question)
        asked.release(question)
    assert seen[1:3] == [([[2.0]], [1.5]), ([[1.0], [seen[2][0][1][0]]], [0.5, 2.5])]
    assert np.isnan(seen[2][0][1][0])
    assert str(seen[1:3]) == str(seen[4:])


@pytest.mark.parametrize("method", ["auto", "gaussian", "practical"])
def test_one_flat_account(method: str) -> None:
    about = WinsorizedQueries(
        epsilon=1, delta=1e-6, n_queries=100, dimension=8, max_norm=1, m=1, method=method, user_std=0.5
    )
    answers = about._plan(10_000, 1).answers
    cost = answers.budget.cost
    assert cost.mu2 is not None
    assert cost.rho == cost.mu2 / 2
    delta = gaussian_delta(cost.mu2, 1, distance=cost.distance)
    print(f"{method}: delta {float(delta):.4g}, predicted error {answers.method.predicted_error():.4g}")
    assert F(99, 100) * F(1, 10**6) <= delta <= F(1, 10**6)


def test_answers_are_near() -> None:
    rng = np.random.default_rng(1)
    X, groups = rng.uniform(-1, 1, size=(20_000, 3)) + 0.2, np.repeat(np.arange(2000), 10)
    about = WinsorizedQueries(
        epsilon=2, delta=1e-6, n_queries=3, dimension=3, max_norm=2, m=10, random_state=1, public_seed=bytes(32)
    )
    with pytest.warns(InsecureRandomnessWarning):
        asked = about.open(X, groups=groups)
    with asked:
        for power in (1, 2, 3):
            answer = asked.release(lambda rows, power=power: (rows**power).mean(axis=0))
            assert np.linalg.norm(answer - (X**power).mean(axis=0)) < 0.1
        assert asked.noise == asked.worst_error < 0.05
        assert not asked.privacy_.is_private


def test_vectors_are_rotated_as_means_are() -> None:
    rng = np.random.default_rng(2)
    table, present = rng.normal(size=(5, 3)), np.array([True, True, False, True, True])
    signs = np.array([1, -1, -1, 1], dtype=np.int8)
    rotated, given = GivenVectors(table, present).rotated(signs), GivenVectors(table, present, signs=signs)
    assert rotated.dimension == 4
    for vectors in (rotated, given):
        assert vectors.n_users == 5
    sums = [vectors.clipped_sum(0.1, 1.0, 2.0**-20).tolist() for vectors in (rotated, given)]
    assert sums[0] == sums[1] != GivenVectors(table, present).clipped_sum(0.1, 1.0, 2.0**-20).tolist()
    with pytest.raises(ValueError, match="signs"):
        GivenVectors(table, present).rotated(signs[:2]).clipped_sum(0.0, 1.0, 0.5)


def test_progress_counts_all_users() -> None:
    calls: list[tuple[int, int]] = []
    about = WinsorizedQueries(epsilon=1, max_norm=1, m=1, enrolled=range(4))
    with about.open(np.array([[0.5]]), groups=[2], progress=lambda done, total: calls.append((done, total))) as asked:
        asked.release(lambda rows: rows.mean())
    assert calls == list(itertools.product([1, 2, 3, 4], [4]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 2}, "delta"),
        ({"n_queries": 0}, "n_queries"),
        ({"dimension": 0}, "dimension"),
        ({"max_norm": 0}, "max_norm"),
        ({"user_std": -1}, "user_std"),
        ({"method": "median"}, "method"),
        ({"beta": 0}, "beta"),
        ({"delta": 0, "method": "gaussian"}, "delta"),
        ({"m": 0}, "m must be"),
    ],
)
def test_bad_parameters(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        session(**given)
