"""Users' mean gradients: against fractions and differences of values, and unmoved by other users."""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from userdp.optimization import CustomLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
from userdp.optimization.losses import GradientRows
from userdp.users import UserTable

oracle = importlib.import_module("oracle.descents")

LOSSES = [LogisticLoss(), SmoothedHingeLoss(0.75), SquaredLoss(1.25)]
GRID = 2.0**-29


def data_of(X: Any, y: Any, users: Any, n_users: int) -> UserTable:
    return UserTable(
        np.asarray(X, dtype=np.float64).reshape(len(users), -1),
        np.asarray(y, dtype=np.float64),
        np.asarray(users, dtype=np.uint32),
        n_users,
        1,
    )


def integers(rows: GradientRows, theta: Any, n_users: int, radius: float = 2.0, grid: float = GRID) -> list[Any]:
    """Every user's own integers."""
    vectors = rows.at(np.asarray(theta, dtype=np.float64))
    return [tuple(vectors.subset([user]).clipped_sum(0.0, radius, grid).tolist()) for user in range(n_users)]


def people(seed: int = 0, n: int = 7, d: int = 11) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n), rng.integers(1, 9, size=n))
    order = rng.permutation(len(users))
    X, y = rng.normal(size=(len(users), d)), rng.choice([-1.0, 1.0], size=len(users))
    return X, y, users[order]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("intercept", [False, True])
def test_against_fractions(loss: Any, intercept: bool) -> None:
    X, y, users = people()
    theta = np.random.default_rng(5).normal(size=11 + intercept)
    rows = GradientRows(data_of(X, y, users, 7), loss=loss, max_norm=3.0, fit_intercept=intercept)
    found = np.array(integers(rows, theta, 7, radius=64.0, grid=2.0**-24)) * 2.0**-24
    for user in range(7):
        own = users == user
        expected = oracle.mean_gradient(
            loss.kind,
            Fraction(loss.parameter),
            [Fraction(t) for t in theta],
            [[Fraction(x) for x in row] for row in X[own]],
            [Fraction(t) for t in y[own]],
            Fraction(3),
            intercept,
        )
        # Truncation to the grid, and rounding far below it.
        assert np.all(np.abs(found[user] - [float(x) for x in expected]) < 2.0**-23)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_are_those_of_the_values(loss: Any) -> None:
    X, y, users = people(3, n=1, d=4)
    X = X * (2.0 / np.maximum(2.0, np.linalg.norm(X, axis=1)))[:, None]
    theta, step = np.array([0.3, -0.2, 0.5, 0.1]), 2.0**-14
    rows = GradientRows(data_of(X, y, users, 1), loss=loss, max_norm=2.0, fit_intercept=False)
    found = np.array(integers(rows, theta, 1, radius=64.0, grid=2.0**-24)[0]) * 2.0**-24
    for entry in range(4):
        moved = [theta + sign * step * np.eye(4)[entry] for sign in (1, -1)]
        above, below = (np.mean(loss.value(X @ point, y)) for point in moved)
        assert math.isclose(found[entry], (above - below) / (2 * step), abs_tol=2 * step)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_lipschitz_and_smooth(loss: Any) -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        x, y = rng.normal(size=3), rng.choice([-1.0, 1.0])
        x *= 2.0 / np.linalg.norm(x)
        rows = GradientRows(data_of([x], [y], [0], 1), loss=loss, max_norm=2.0, fit_intercept=False)
        points = rng.normal(size=(2, 3)) * 2
        one, other = (np.array(integers(rows, theta, 1, 64.0, 2.0**-24)[0]) * 2.0**-24 for theta in points)
        assert np.linalg.norm(one) <= loss.lipschitz(2.0) + 1e-6
        assert np.linalg.norm(one - other) <= loss.smoothness(2.0) * np.linalg.norm(points[0] - points[1]) + 1e-6


def own_loss() -> CustomLoss:
    def gradient(theta: Any, X: Any, y: Any) -> Any:
        return (X @ theta - y)[:, None] * X

    return CustomLoss(gradient, lipschitz=5.0, smoothness=9.0)


@pytest.mark.parametrize("loss", [*LOSSES, own_loss()], ids=lambda loss: type(loss).__name__)
def test_other_people_change_no_bit(loss: Any) -> None:
    X, y, users = people(4, n=12, d=13)
    theta = np.random.default_rng(2).normal(size=14)

    def of(X: Any, y: Any, users: Any, n: int) -> list[Any]:
        return integers(GradientRows(data_of(X, y, users, n), loss=loss, max_norm=3.0, fit_intercept=True), theta, n)

    before = of(X, y, users, 12)
    assert len(set(before)) == 12
    for dropped in range(12):
        kept = users != dropped
        renumbered = users[kept] - (users[kept] > dropped)
        assert of(X[kept], y[kept], renumbered, 11) == before[:dropped] + before[dropped + 1 :]
        # The same user with more rows, with fewer, with other values.
        changed = X.copy()
        changed[~kept] = np.nan
        after = of(np.vstack([changed, X[:5]]), np.append(y, y[:5]), np.append(users, [dropped] * 5), 12)
        assert [v for u, v in enumerate(after) if u != dropped] == [v for u, v in enumerate(before) if u != dropped]
    # Users in another order; the rows of each stay in theirs.
    order = np.argsort((users * 5) % 12, kind="stable")
    assert of(X[order], y[order], users[order], 12) == before
    new = np.random.default_rng(3).permutation(12)
    assert [of(X, y, new[users], 12)[new[user]] for user in range(12)] == before


def test_some_users_only() -> None:
    X, y, users = people()
    theta = np.linspace(-1, 1, 11)
    for loss in (LogisticLoss(), own_loss()):
        rows = GradientRows(data_of(X, y, users, 7), loss=loss, max_norm=3.0, fit_intercept=False)
        each = np.array(integers(rows, theta, 7))
        assert rows.of([4, 1]).of([1]).n_users == 1
        assert np.array_equal(rows.of((4, 1)).at(theta).clipped_sum(0.0, 2.0, GRID), each[4] + each[1])
        assert np.array_equal(rows.of([4, 1]).of([1]).at(theta).clipped_sum(0.0, 2.0, GRID), each[1])


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_one_user_moves_the_sum_by_two_radii_at_most(loss: Any) -> None:
    """All pairs of users of one and two rows over a tiny universe with the worst of values."""
    values = [(-1.0, 1.0), (1.0, 1.0), (1.0, -0.5), (np.nan, np.inf), (1e300, -1e300), (-np.inf, 0.0)]
    rows = list(product(values, (-1.0, 1.0)))
    users = [(row,) for row in rows] + list(product(rows, repeat=2)) + [()]
    X = [row[0] for user in users for row in user]
    y = [row[1] for user in users for row in user]
    codes = [code for code, user in enumerate(users) for _ in user]
    for radius, grid in ((0.4, 0.25), (1.0, 0.25), (0.3, 2.0**-10)):
        steps = math.floor(radius / grid)
        worst = 0
        vectors = GradientRows(data_of(X, y, codes, len(users)), loss=loss, max_norm=1.5, fit_intercept=False)
        for theta in ((0.0, 0.0), (3.0, -2.0)):
            each = np.array(integers(vectors, theta, len(users), radius, grid))
            assert not each[-1].any()
            assert np.all(np.sum(each * each, axis=1) <= steps**2)
            between = each[:, None] - each[None]
            worst = max(worst, int(np.max(np.sum(between * between, axis=2))))
        assert worst <= (2 * steps) ** 2
    assert worst > steps**2  # one that is calibrated to adding users would not do


# --- a user's own gradient


def test_called_once_for_each_user_with_that_users_rows() -> None:
    seen = []

    def gradient(theta: Any, X: Any, y: Any) -> Any:
        seen.append((X.copy(), y.copy()))
        X[...] = np.nan  # copies: nobody else's rows change, and neither do these
        return np.ones(len(theta))

    data = data_of([[1.0], [2.0], [3.0]], [1, 0, -1], [1, 0, 1], 3)
    rows = GradientRows(data, loss=CustomLoss(gradient, lipschitz=1, smoothness=1), max_norm=5.0, fit_intercept=False)
    seen.clear()
    for _ in range(2):
        assert rows.at(np.zeros(1)).clipped_sum(0.0, 1.0, 0.5).tolist() == [4]
    assert [X[:, 0].tolist() for X, _ in seen] == [[2.0], [1.0, 3.0]] * 2
    assert [y.tolist() for _, y in seen] == [[0.0], [1.0, -1.0]] * 2


def failing(kind: str) -> Any:
    def gradient(theta: Any, X: Any, y: Any) -> Any:
        if not np.any(X == 7.0):
            return np.ones((len(X), 2))
        if kind == "error":
            raise RuntimeError("about somebody")
        if kind == "warning":
            return np.log(np.zeros(2) - X.sum())
        return {"nan": np.full(2, np.nan), "shape": np.ones(3), "text": "no", "none": None, "ragged": [[1], [1, 2]]}[
            kind
        ]

    return gradient


@pytest.mark.parametrize("kind", ["error", "warning", "nan", "shape", "text", "none", "ragged"])
def test_what_fails_counts_as_zero(kind: str) -> None:
    data = data_of([[1.0, 0.0], [7.0, 0.0], [1.0, 1.0]], [1, 1, 1], [0, 1, 2], 3)
    loss = CustomLoss(failing(kind), lipschitz=1, smoothness=1)
    rows = GradientRows(data, loss=loss, max_norm=9.0, fit_intercept=False)
    assert integers(rows, np.zeros(2), 3, 2.0, 0.5) == [(2, 2), (0, 0), (2, 2)]


@pytest.mark.parametrize("found", [np.zeros(3), np.zeros((2, 3)), np.zeros((3, 2)), 0.0])
def test_wrong_shapes_are_found_on_public_rows(found: Any) -> None:
    loss = CustomLoss(lambda theta, X, y: found, lipschitz=1, smoothness=1)
    with pytest.raises(ValueError, match=r"gradient must return an array of shape \(rows, 2\) or \(2,\)"):
        GradientRows(data_of([[1.0, 2.0]], [0], [0], 1), loss=loss, max_norm=1.0, fit_intercept=False)
