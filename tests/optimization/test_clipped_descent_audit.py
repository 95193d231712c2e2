"""The distribution of the transcripts of clipped descents, over all neighbors in small universes; and planted bugs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

pytest.importorskip("sklearn")

from support.forgotten_plans import forgotten_plans
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.means.gaussian_account import GaussianAccount
from userdp.optimization import ClippedGradientDescent, L2Ball, LogisticLoss, UserLevelLinearRegression
from userdp.optimization import clipped as module
from userdp.optimization import linear_models as _linear_models
from userdp.optimization.finite import CachedUserVectors
from userdp.optimization.losses import GradientRows
from userdp.report import AuditReport

EPSILON, DELTA = 6, Fraction(1, 5)
UNIVERSE = [(1.0, 1.0), (1.0, -1.0)]


class Coarse(ClippedGradientDescent):
    """On a grid of few steps, so that all transcripts can be listed."""

    grid_resolution = 1


def descent(**given: Any) -> Coarse:
    return Coarse(
        **{
            "epsilon": EPSILON,
            "delta": DELTA,
            "loss": LogisticLoss(),
            "constraint": L2Ball(1.0),
            "target_bounds": (-1, 1),
            "max_norm": 1.0,
            "clip": 0.5,
            "step_size": 1.0,
            "m": 1,
            **given,
        }
    )


def audited(n_users: int, *, epsilon: int = EPSILON, delta: Fraction = DELTA, **given: Any) -> AuditReport:
    learner = descent(epsilon=epsilon, delta=delta, **given)
    report = audit_user_level(
        as_finite_algorithm(learner, n_users=n_users),
        universe=UNIVERSE,
        n_users=n_users,
        n_examples=learner.m,
        epsilon=epsilon,
        delta=delta,
    )
    print(f"n={n_users} {given}: worst delta {report.worst_delta.upper:.4g} of {float(delta)}, {report.pairs} pairs")
    return report


CASES: list[tuple[int, dict[str, Any]]] = [
    (2, {"n_iterations": 1}),
    (3, {"n_iterations": 1}),
    (2, {"n_iterations": 1, "m": 2}),
    (3, {"n_iterations": 1, "m": 2}),
    (2, {"n_iterations": 2}),
    (2, {"n_iterations": 2, "m": 2, "epsilon": 10}),
    (3, {"n_iterations": 1, "batch_users": 2}),
    (3, {"n_iterations": 2, "batch_users": 2, "epsilon": 16, "delta": Fraction(1, 4)}),
]


@pytest.fixture(autouse=True)
def _forget_plans() -> Iterator[None]:
    with forgotten_plans():
        yield


@pytest.fixture(autouse=True)
def _remember_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution has thousands of paths, and the same few sums along them."""
    fair, known = GradientRows.at, {}

    def at(self: Any, theta: Any) -> Any:
        chosen = None if self.selected is None else tuple(self.selected.tolist())
        key = (id(self.X), chosen, theta.tobytes())
        if key not in known:
            known[key] = (self.X, CachedUserVectors(fair(self, theta)))  # the array, so that its id stays its own
        return known[key][1]

    monkeypatch.setattr(GradientRows, "at", at)


@pytest.mark.parametrize(("n_users", "given"), CASES, ids=str)
def test_audited(n_users: int, given: dict[str, Any]) -> None:
    report = audited(n_users, **given)
    assert report.holds
    assert report.worst_delta.upper > 0


@pytest.mark.parametrize(("n_users", "given"), [CASES[0], CASES[3], CASES[4]], ids=str)
def test_half_the_noise_is_found(n_users: int, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fair = module._noise_of_rounds
    monkeypatch.setattr(module, "_noise_of_rounds", lambda *a: replace(fair(*a), part=fair(*a).part.part(4)))
    assert not audited(n_users, **given).holds


@pytest.mark.parametrize("share", [1, 4])
def test_noise_by_the_exact_curve(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of more steps have less noise by the exact curve of Gaussian noise; four times mu^2 fails."""
    fair = module._noise_of_rounds
    monkeypatch.setattr(module, "_noise_of_rounds", lambda *a: replace(fair(*a), part=fair(*a).part.part(share)))
    monkeypatch.setattr(Coarse, "grid_resolution", 8)
    cost = descent(n_iterations=1, enrolled=[1, 2]).privacy_cost(n_users=2, n_features=1)
    assert cost.mu2 is not None
    assert audited(2, n_iterations=1).holds is (share == 1)


@pytest.mark.parametrize(("n_users", "given"), [CASES[0], CASES[4]], ids=str)
def test_noise_for_adding_a_user_is_found(n_users: int, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    fair = GaussianAccount.noise

    def for_adding(self: GaussianAccount, sensitivity: int) -> Any:
        assert sensitivity % 2 == 0
        return fair(self, sensitivity // 2)

    monkeypatch.setattr(GaussianAccount, "noise", for_adding)
    assert not audited(n_users, **given).holds


def test_a_share_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amplification as if one user in a hundred were drawn, when two of three are."""
    fair = module._amplified
    monkeypatch.setattr(module, "_amplified", lambda e, d, steps, share, *a: fair(e, d, steps, Fraction(1, 100), *a))
    assert not audited(3, n_iterations=1, batch_users=2).holds


def test_a_batch_that_is_released_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Amplification holds for secret batches; of a batch that is in the transcript it is none."""
    fair = module.ClippedMean.draw

    def telling(self: Any, round: int, rows: Any, theta: Any, draw: Any) -> Any:
        drawn: list[Any] = []

        def noted(mechanism: Any, /, *arguments: Any) -> Any:
            drawn.append(draw(mechanism, *arguments))
            return drawn[-1]

        answer = fair(self, round, rows, theta, noted)
        return (*answer, tuple(drawn[0]))

    def answers(self: Any, round: int) -> Any:
        subsets = [tuple(subset) for subset in self.subset.pmf().outputs]
        return ((total, subset) for total in range(-self._ends(), self._ends() + 1) for subset in subsets)

    monkeypatch.setattr(module.ClippedMean, "draw", telling)
    monkeypatch.setattr(module.ClippedMean, "answers", answers)
    estimate = module.ClippedMean.estimate
    monkeypatch.setattr(module.ClippedMean, "estimate", lambda self, *a: estimate(self, *a[:-1], a[-1][:1]))
    monkeypatch.setattr(Coarse, "_symmetric", lambda self: False)
    assert not audited(5, epsilon=1, delta=Fraction(1, 1000), n_iterations=1, batch_users=1).holds


@pytest.mark.parametrize(("steps", "m"), [(1, 2), (2, 1)])
@pytest.mark.parametrize("share", [1, 4])
def test_linear_regression(steps: int, m: int, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The regressor, with targets in units of their range, on a coarse grid; four times rho, half the noise, fails."""
    fair = module._noise_of_rounds
    monkeypatch.setattr(module, "_noise_of_rounds", lambda *a: replace(fair(*a), part=fair(*a).part.part(share)))
    coarse = {"clip": 0.5, "n_iterations": steps, "step_size": 1.0, "grid_resolution": 1}
    solvers = {"clipped": lambda problem, seed, n_iterations: module.clipped_descent(problem, **coarse)}
    monkeypatch.setattr(_linear_models, "DESCENTS", solvers)
    model = UserLevelLinearRegression(
        epsilon=EPSILON,
        delta=DELTA,
        max_feature_norm=2.0,
        target_bounds=(-3, 5),
        fit_intercept=False,
        solver="clipped",
        m=m,
        public_seed=bytes(32),
    )
    report = audit_user_level(
        as_finite_algorithm(model, n_users=2),
        universe=[(2.0, 5.0), (2.0, -3.0), (-4.0, float("nan"))],
        n_users=2,
        n_examples=m,
        epsilon=EPSILON,
        delta=DELTA,
    )
    print(f"T={steps} m={m} share={share}: worst delta {report.worst_delta.upper:.4g}, {report.pairs} pairs")
    assert report.holds is (share == 1)
