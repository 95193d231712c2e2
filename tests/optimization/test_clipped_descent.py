"""Descent with clipped gradients: replayed from its transcript, near the optimum with little noise, nothing kept."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone

from support.forgotten_plans import little_noise
from userdp.accounting import gaussian_delta, largest_epsilon_each
from userdp.exceptions import InsecureRandomnessWarning
from userdp.means.gaussian_account import NOISE_DISTANCE
from userdp.mechanisms.composed import run
from userdp.optimization import (
    Box,
    ClippedGradientDescent,
    CustomLoss,
    L2Ball,
    LogisticLoss,
    SmoothedHingeLoss,
    SquaredLoss,
)
from userdp.optimization.clipped import _amplified, relative_noise
from userdp.runtime import source_of

N, M, D = 40, 3, 2


def people() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.7, 0.7, size=(N * M, D))
    y = np.clip(X @ [0.8, -0.5] + rng.normal(size=N * M) * 0.2, -1, 1)
    return X, y, np.repeat(np.arange(N), M)


def learner(**given: Any) -> ClippedGradientDescent:
    return ClippedGradientDescent(
        **{
            "epsilon": 1,
            "delta": 1e-6,
            "loss": SquaredLoss(),
            "constraint": L2Ball(3.0),
            "max_norm": 1.0,
            "target_bounds": (-1, 1),
            "m": M,
            **given,
        }
    )


def planned(model: ClippedGradientDescent, n_users: int, n_features: int) -> Any:
    """The rounds that a fit makes."""
    return model._descent(model._problem(n_users, n_features), None)


FREE: dict[str, Any] = {"epsilon": 10, "delta": "1/10", "clip": 20.0}
"""Clips nobody."""


@pytest.fixture
def _quiet() -> Iterator[None]:
    with little_noise():
        yield


@pytest.mark.usefixtures("_quiet")
def test_the_optimum_is_found_when_noise_is_little() -> None:
    X, y, users = people()
    best, *_ = np.linalg.lstsq(X, y, rcond=None)
    found = learner(**FREE, n_iterations=400, average="last").fit(X, y, groups=users)
    assert np.linalg.norm(found.theta_ - best) < 1e-4
    # The constraint binds.
    held = learner(**FREE, n_iterations=400, average="last", constraint=Box(-0.25, 0.25)).fit(X, y, groups=users)
    assert np.all(np.abs(held.theta_) <= 0.25)
    assert np.abs(held.theta_[0] - 0.25) < 1e-4
    # Ridge, with every user of the same weight.
    ridge = learner(**FREE, n_iterations=400, average="last", regularization=0.5).fit(X, y, groups=users)
    exact = np.linalg.solve(X.T @ X / len(y) + 0.5 * np.eye(D), X.T @ y / len(y))
    assert np.linalg.norm(ridge.theta_ - exact) < 1e-4


@pytest.mark.usefixtures("_quiet")
def test_users_have_the_same_weight_whatever_they_give() -> None:
    X = np.ones((12, 1))
    y = np.array([1.0] * 10 + [0.0, -1.0])
    users = [0] * 10 + [1, 2]
    found = learner(**FREE, n_iterations=100, average="last").fit(X, y, groups=users)
    assert abs(found.theta_[0]) < 1e-4
    absent = learner(**FREE, n_iterations=100, average="last", enrolled=range(4), regularization=1.0)
    # (3/4) theta + theta = (1 + 0 - 1/2) / 4: who has no rows has the gradient 0.
    y[-1] = -0.5
    assert abs(absent.fit(X, y, groups=users).theta_[0] - 0.125 / 1.75) < 1e-4


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("loss", [LogisticLoss(), SmoothedHingeLoss(0.5)])
@pytest.mark.parametrize("batch_users", [None, 30])
def test_losses_of_labels_fall(loss: Any, batch_users: Any) -> None:
    X, y, users = people()
    fitted = learner(**FREE, loss=loss, fit_intercept=True, n_iterations=50, batch_users=batch_users)
    theta = fitted.fit(X, np.sign(y), groups=users).theta_
    assert theta.shape == (D + 1,)
    with_constant = np.column_stack([X, np.ones(len(X))])
    value = np.mean(loss.value(with_constant @ theta, y))
    assert value < 0.75 * np.mean(loss.value(np.zeros(len(y)), y))


@pytest.mark.usefixtures("_quiet")
def test_a_loss_of_ones_own_is_the_same_descent() -> None:
    X, y, users = people()
    own = CustomLoss(lambda theta, X, y: (X @ theta - y)[:, None] * X, lipschitz=4.0, smoothness=1.0)
    given = {**FREE, "n_iterations": 30, "step_size": 0.5}
    found = learner(**given, loss=own).fit(X, y, groups=users)
    assert np.allclose(found.theta_, learner(**given).fit(X, y, groups=users).theta_, atol=1e-4)


@pytest.mark.parametrize(
    "given", [{}, {"batch_users": 10, "average": "all"}, {"average": "last", "fit_intercept": True}]
)
def test_theta_is_a_function_of_the_transcript(given: dict[str, Any]) -> None:
    X, y, users = people()
    model = learner(n_iterations=5, **given)
    table, _ = model._read(X, y, users)
    release = model._plan(N, D)
    outcome = run(release.program(table), source_of(None))
    assert len(outcome) == 5
    assert all(isinstance(number, int) for answer in outcome for number in answer)
    theta_ = release.fitted(outcome)["theta_"]
    # By hand, from integers and public numbers only.
    plan = planned(model, N, D)
    size, grid = plan.optimizer.step_sizes[0], plan.step.grid
    theta, visited = np.zeros(D + bool(model.fit_intercept)), []
    for answer in outcome:
        theta = theta - size * grid * np.array(answer) / (model.batch_users or N)
        theta *= min(1.0, 3.0 / np.linalg.norm(theta))
        visited.append(theta)
    kept = {"tail": visited[2:], "all": visited, "last": visited[-1:]}[model.average]
    assert np.allclose(theta_, np.mean(kept, axis=0), rtol=1e-12)


def test_what_is_kept() -> None:
    X, y, users = people()
    fitted = learner().fit(X, y, groups=users)
    names = {name for name in vars(fitted) if name not in fitted.get_params()}
    assert names == {"theta_", "n_users_", "n_features_in_", "unit_", "privacy_", "is_private_"}
    assert fitted.privacy_.released == ("theta_",)
    assert fitted.is_private_
    again = ClippedGradientDescent.from_json(fitted.to_json())
    assert again.theta_.tolist() == fitted.theta_.tolist()
    assert again.get_params() == fitted.get_params()
    assert pickle.loads(pickle.dumps(fitted)).theta_.tolist() == fitted.theta_.tolist()
    assert len(json.dumps(fitted.to_json())) < 4000
    assert clone(fitted).get_params() == fitted.get_params()


def test_budget_of_full_batches() -> None:
    budget = learner(n_iterations=7).release_plan(n_users=N, n_features=D).budget
    cost = budget.cost
    assert budget.parts == {"gradients": cost.mu2}
    assert budget.unit == "mu2"
    assert cost.mu2 is not None
    assert cost.rho == cost.mu2 / 2
    step = planned(learner(n_iterations=7), N, D).step
    sensitivity = 2 * math.floor(step.clip / step.grid)
    assert 7 * Fraction(sensitivity**2) / (step.noise.sigma_squared - 4) <= cost.mu2
    assert 7 * D * step.noise.distance <= cost.distance
    assert gaussian_delta(cost.mu2, 1, distance=cost.distance) <= Fraction(1e-6)
    assert gaussian_delta(cost.mu2 * Fraction(1001, 1000), 1) > Fraction(1e-6)


def test_budget_of_batches() -> None:
    n, batch, steps = 100_000, 100, 20
    full, part = (planned(learner(n_iterations=steps, clip=1.0, batch_users=b), n, D) for b in (None, batch))
    assert part.budget().parts == {"gradients": Fraction(1)}
    assert part.budget().cost.rho is None
    sensitivity = 2 * math.floor(part.step.clip / part.step.grid)
    mu2 = Fraction(sensitivity**2) / (part.step.noise.sigma_squared - 4)
    assert mu2 > full.budget().cost.mu2 / steps  # amplification
    # e^e0 <= 1 + (e^e - 1) / q, and T q d0 + delta / 2 <= delta.
    each = float(largest_epsilon_each(steps, 1, Fraction(1e-6) / 2))
    on_batch = math.log1p(math.expm1(each) * n / batch)
    delta_on_batch = Fraction(1e-6) / 2 / steps * n / batch
    assert gaussian_delta(mu2, on_batch * (1 + 1e-9), distance=D * NOISE_DISTANCE) <= delta_on_batch
    assert gaussian_delta(mu2 * Fraction(1001, 1000), on_batch) > delta_on_batch
    # All users in every batch: no amplification, and no other rule.
    every = planned(learner(n_iterations=steps, clip=1.0, batch_users=n), n, D)
    assert every.budget() == full.budget()


def test_amplification_never_with_too_small_a_delta() -> None:
    assert _amplified(1, Fraction(1, 2**95), 10, Fraction(1, 2), 8, 2**20) is None


def test_defaults_are_public() -> None:
    X, y, users = people()
    one = learner().fit(X, y, groups=users)
    other = learner().fit(-3 * X, y * 0, groups=users)
    assert one.privacy_ == other.privacy_
    plan = planned(learner(m=16, clip="small"), 1000, 8)
    assert plan.step.clip == pytest.approx(plan.problem.lipschitz * 0.1538, rel=0.01)
    assert planned(learner(m=10**6, clip="small"), 1000, 8).step.clip == plan.problem.lipschitz / 20
    assert planned(learner(m=10**6), 1000, 8).step.clip == plan.problem.lipschitz
    assert 1 <= plan.rounds <= 200
    assert planned(learner(), 10**6, 8).rounds == 200


def test_what_is_not_valid_counts_as_it_says() -> None:
    X, y, users = people()
    clean = X.copy()
    bad = X.copy()
    bad[4], clean[4] = [np.nan, 0.5], [0.0, 0.5]
    bad[7], clean[7] = [np.inf, 0.1], [1.0, 0.0]
    targets = y.copy()
    targets[9], y[9] = np.inf, 1.0
    targets = np.insert(targets, 11, np.nan)  # a row that does not count
    bad, others = np.insert(bad, 11, 0.3, axis=0), np.insert(users, 11, users[11])
    with pytest.warns(InsecureRandomnessWarning):
        one = learner(random_state=3).fit(bad, targets, groups=others)
    with pytest.warns(InsecureRandomnessWarning):
        other = learner(random_state=3).fit(clean, y, groups=users)
    assert np.array_equal(one.theta_, other.theta_)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"delta": 0}, ValueError, "delta must be > 0"),
        ({"delta": 1e-40}, ValueError, "delta"),
        ({"delta": 2}, ValueError, "delta"),
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"loss": "logistic"}, TypeError, "loss must be"),
        ({"constraint": 3.0}, TypeError, "constraint must be"),
        ({"constraint": L2Ball(1.0, (0.0,) * 5)}, ValueError, "center must have 2 entries"),
        ({"max_norm": 0}, ValueError, "max_norm must be > 0"),
        ({"max_norm": np.nan}, ValueError, "max_norm"),
        ({"clip": 0.0}, ValueError, "clip must be > 0"),
        ({"clip": np.inf}, ValueError, "clip"),
        ({"n_iterations": 0}, ValueError, "n_iterations"),
        ({"n_iterations": 2.5}, TypeError, "n_iterations"),
        ({"step_size": -1.0}, ValueError, "step_size"),
        ({"batch_users": 41}, ValueError, "batch_users must be at most the number of users, 40"),
        ({"batch_users": 0}, ValueError, "batch_users"),
        ({"average": "none"}, ValueError, "average"),
        ({"regularization": -1}, ValueError, "regularization"),
        ({"fit_intercept": 1}, TypeError, "fit_intercept"),
        ({"start": [0.0]}, ValueError, "start must have 2 entries"),
        ({"target_bounds": (1, 0)}, ValueError, "target_bounds"),
        (
            {"m": None, "clip": "small"},
            ValueError,
            "^m, the public number of rows of a user that are expected, must be given",
        ),
    ],
)
def test_refused(given: dict[str, Any], error: type[Exception], words: str) -> None:
    X, y, users = people()
    with pytest.raises(error, match=words):
        learner(**given).fit(X, y, groups=users)


@pytest.mark.parametrize(
    ("n_users", "m", "clip"), [(10**3, 1, 0.677), (10**4, 1, 0.95), (10**7, 1, 1.0), (100, 1, 0.6), (10**3, 16, 0.154)]
)
def test_small_clips_less_where_noise_is_little(n_users: int, m: int, clip: float) -> None:
    given = learner(loss=LogisticLoss(), m=m, clip="small")
    step: Any = planned(given, n_users, 8).step
    assert step.clip == pytest.approx(clip, abs=0.01)
    assert planned(given.set_params(m=10**6), n_users, 8).step.clip == pytest.approx(1 / 20)


def test_the_default_goes_on_until_noise_is_what_is_left_or_time_is() -> None:
    given = learner(loss=LogisticLoss(), m=4)
    rounds = [planned(given, n_users, 8).optimizer.rounds for n_users in (200, 2000, 20_000, 10**6, 10**7)]
    assert rounds[0] < rounds[1] < rounds[2]
    assert 200 < rounds[2] <= 2000
    # 2**32 numbers, or 200 rounds.
    assert rounds[3:] == [200, 200]
    balanced = planned(given, 2000, 8)
    error = balanced.problem.smoothness * balanced.problem.radius / (2 * math.sqrt(2) * rounds[1])
    noise = relative_noise(balanced.problem, 2000) * balanced.step.clip
    assert noise * (1 - 2 / rounds[1]) < error <= noise
