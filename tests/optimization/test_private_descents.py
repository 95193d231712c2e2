"""Winsorized descents and phased minimization: exact audits of what fit draws, planted bugs, and the plans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.forgotten_plans import forgotten_plans
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.means import methods as methods_module
from userdp.optimization import Box, L2Ball, LogisticLoss, PhasedERM, SquaredLoss, WinsorizedGradientDescent
from userdp.optimization import phased as phased_module
from userdp.optimization.phased import blocks_of, default_least_users, phase_iterations, phases
from userdp.optimization.winsorized import TrackingDescent, gradient_options
from userdp.public_randomness import PublicSeed

F = Fraction
ROWS = [((1.0,), 1.0), ((-1.0,), 1.0), ((float("nan"),), -1.0)]
TINY: dict[str, Any] = {
    "epsilon": 2,
    "loss": SquaredLoss(1.0),
    "constraint": L2Ball(2.0),
    "target_bounds": (-1, 1),
    "max_norm": 1.0,
    "public_seed": bytes(32),
    "grid_resolution": 1,
    "method": "laplace",
}
CASES = json.loads((Path(__file__).parents[1] / "data" / "mean_erm_sco" / "optimization.json").read_text())["cases"]


def audited(learner: Any, n_users: int, m: int, rows: Any = ROWS, delta: Any = 0) -> Any:
    algorithm = as_finite_algorithm(learner.set_params(m=m), n_users=n_users, n_features=1)
    report = audit_user_level(
        algorithm, universe=rows, n_users=n_users, n_examples=m, epsilon=learner.epsilon, delta=delta
    )
    print(f"n={n_users}, m={m}: worst delta {report.worst_delta}, epsilon {report.epsilon}, {report.pairs} pairs")
    return report


@pytest.fixture(params=[1, 2], ids=["all noise", "half noise"])
def noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    part, of_a_round = methods_module.equal_part, TrackingDescent.part.fget
    monkeypatch.setattr(methods_module, "equal_part", lambda epsilon, parts: part(epsilon, parts) * request.param)
    monkeypatch.setattr(TrackingDescent, "part", property(lambda self: of_a_round(self).part(request.param**2)))
    with forgotten_plans():
        yield request.param


@pytest.mark.parametrize(("n_users", "m", "steps"), [(2, 1, 1), (2, 1, 2), (2, 2, 1), (3, 1, 1), (4, 1, 1)])
def test_audit_of_descent(n_users: int, m: int, steps: int, noise: int) -> None:
    report = audited(WinsorizedGradientDescent(n_iterations=steps, **TINY), n_users, m)
    assert report.holds is (noise == 1)


def test_audit_of_tracking(noise: int) -> None:
    learner = WinsorizedGradientDescent(
        **{**TINY, "method": "tracking", "epsilon": 6, "delta": F(1, 10)}, n_iterations=2, concentration=0.1
    )
    assert audited(learner, 2, 1, ROWS[:2], F(1, 10)).holds is (noise == 1)


@pytest.mark.parametrize("assignment", ["random", "enrolled"])
def test_audit_of_phases(assignment: str, noise: int) -> None:
    # Two rounds on three users and on one; each has the whole budget.
    learner = PhasedERM(**TINY, n_iterations=1, least_users=1, assignment=assignment)
    plan = phased_module.PhasedDescent(
        learner._problem(4, 1),
        gradient_options(learner, variant="strongly-convex"),
        PublicSeed(bytes(32)),
        least_users=1,
        assignment=assignment,
    )
    assert [len(block) for block in plan.blocks] == [3, 1]
    assert audited(learner, 4, 1, ROWS[:2]).holds is (noise == 1)


def test_blocks_by_the_data_fail_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first user's row says which of the last two is in the first block: replacing that user moves them.
    def program(self: Any, rows: Any) -> Any:
        order = [0, 1, 2, 3] if rows.X[0, 0] > 0 else [0, 1, 3, 2]
        self.blocks = [np.array(order[:3], dtype=np.uint32), np.array(order[3:], dtype=np.uint32)]
        return planned(self, rows)

    planned = phased_module.PhasedDescent.program
    monkeypatch.setattr(phased_module.PhasedDescent, "program", program)
    parameters = {**TINY, "n_iterations": 1, "least_users": 1, "assignment": "enrolled"}
    assert not audited(PhasedERM(**parameters), 4, 1, ROWS[:2]).holds
    monkeypatch.undo()
    assert audited(PhasedERM(**parameters), 4, 1, ROWS[:2]).holds


# --- phases


def test_known_phases() -> None:
    (case,) = [case for case in CASES if case["name"] == "phased_schedule"]
    given = {name: float(F(value)) for name, value in case["input"].items()}
    whole = ("n_users", "dimension", "m", "least_users")
    plan = phases(**{name: int(value) if name in whole else value for name, value in given.items()})
    n = case["input"]["n_users"]
    assert plan.printed_rounds == case["expected"]["printed_rounds"]
    assert [n >> t for t in range(1, plan.printed_rounds + 1)] == case["expected"]["printed_users"]
    assert plan.rounds == case["expected"]["rounds"]
    assert list(plan.users) == case["expected"]["users"]
    assert [b / a for a, b in zip(plan.regularizations, plan.regularizations[1:], strict=False)] == [4.0] * 4
    least = (1 * min(1, 0.1 * 8**0.5) / (n * 256) + (0.1 * 8 / n) ** 2 / 256) ** 0.5
    assert plan.regularizations[0] == pytest.approx(4 * least)


@pytest.mark.parametrize("n_users", [2, 3, 10, 1000])
@pytest.mark.parametrize("seed", [None, PublicSeed(bytes(32))])
def test_blocks_are_disjoint_and_public(n_users: int, seed: PublicSeed | None) -> None:
    users = tuple(n_users >> t for t in range(1, n_users.bit_length()))
    blocks = blocks_of(n_users, users, seed)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(n_users))
    assert [len(block) for block in blocks[1:]] == list(users[1:])
    again = blocks_of(n_users, users, seed)
    assert all(np.array_equal(a, b) for a, b in zip(blocks, again, strict=True))
    assert seed is None or n_users < 10 or not np.array_equal(blocks[-1], blocks_of(n_users, users, None)[-1])


def test_numbers_of_phases() -> None:
    given: dict[str, Any] = {
        "smoothness": 1.0, "n_users": 100, "m": 4, "lipschitz": 1.0, "sub_gaussian": 0.5, "dimension": 2,
        "epsilon": 1.0, "radius": 1.0,
    }  # fmt: skip
    assert phase_iterations(regularization=1.0, most=1000, **given) == 22  # 2 ln(100^2 4 / (0.5 2)^2) = 21.2
    assert phase_iterations(regularization=1e-3, most=50, **given) == 50
    assert default_least_users(8, 1.0, 1e-6) == 119
    assert default_least_users(8, 1.0, 0.0) == 256


# --- descents


def people(n_users: int = 1000, m: int = 64) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_users * m, 2)) / 2
    y = rng.random(n_users * m) < 1 / (1 + np.exp(-2 * X[:, 0]))
    return X, y, np.repeat(np.arange(n_users), m)


@pytest.mark.parametrize("method", ["auto", "tracking", "gaussian", "practical"])
@pytest.mark.parametrize("variant", ["convex", "strongly-convex", "nonconvex"])
def test_descents_find_the_direction(method: str, variant: str) -> None:
    X, y, groups = people()
    learner = WinsorizedGradientDescent(
        epsilon=2,
        delta=1e-6,
        loss=LogisticLoss(),
        constraint=Box(-3.0, 3.0),
        max_norm=1.5,
        m=64,
        method=method,
        sub_gaussian=None if method in ("auto", "gaussian") else 1.5 / 2**0.5,  # what was the default
        variant=variant,
        n_iterations=16,
        regularization=0.1 if variant == "strongly-convex" else 0.0,
        # The public query point of this seed is one of the last.
        public_seed=bytes([7] * 32),
        target_bounds=(-1, 1),
    )
    theta = learner.fit(X, y, groups=groups).theta_
    print(method, variant, theta)
    assert learner.privacy_.rho <= learner._problem(1000, 2).epsilon
    assert theta.shape == (2,)
    # The worst case is (0.61, 0) with normal noise of 0.05 in each column, as 20 runs measured it: what is asked for is
    # 7 standard deviations away, with a probability below 1e-11 of less.
    assert variant == "nonconvex" or theta[0] > max(0.25, abs(theta[1]))


def test_all_of_the_budget_is_spent_and_no_more() -> None:
    from userdp.accounting import gaussian_delta

    X, y, groups = people(200, 8)
    for learner in (
        WinsorizedGradientDescent(
            epsilon=1,
            delta=1e-6,
            loss=LogisticLoss(),
            constraint=L2Ball(1.0),
            m=8,
            n_iterations=5,
            method="gaussian",
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
        WinsorizedGradientDescent(
            epsilon=1,
            delta=1e-6,
            loss=LogisticLoss(),
            constraint=L2Ball(1.0),
            m=8,
            n_iterations=5,
            method="tracking",
            concentration=0.35,
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
        PhasedERM(
            epsilon=1,
            delta=1e-6,
            loss=LogisticLoss(),
            constraint=L2Ball(1.0),
            m=8,
            n_iterations=3,
            target_bounds=(-1, 1),
            max_norm=1.0,
        ),
    ):
        record = learner.fit(X, y, groups=groups).privacy_
        assert record.rho == record.mu2 / 2
        delta = gaussian_delta(record.mu2, record.epsilon, distance=record.distance)
        assert record.delta * F(99, 100) <= delta <= record.delta


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (WinsorizedGradientDescent, {"variant": "concave"}, "variant"),
        (WinsorizedGradientDescent, {"method": "mean"}, "method"),
        (WinsorizedGradientDescent, {"variant": "strongly-convex"}, "strong_convexity"),
        (WinsorizedGradientDescent, {"n_iterations": 0}, "n_iterations"),
        (WinsorizedGradientDescent, {"gamma": 0}, "gamma"),
        (WinsorizedGradientDescent, {"kappa": -1}, "kappa"),
        (WinsorizedGradientDescent, {"grid_resolution": 3}, "grid_resolution"),
        (WinsorizedGradientDescent, {"method": "tracking", "delta": 0, "concentration": 0.1}, "delta"),
        (WinsorizedGradientDescent, {"public_seed": "0"}, "public_seed"),
        (PhasedERM, {"assignment": "rows"}, "assignment"),
        (PhasedERM, {"least_users": 0}, "least_users"),
        (PhasedERM, {"max_iterations": 0}, "max_iterations"),
        (PhasedERM, {"epsilon": 0}, "epsilon"),
    ],
)
def test_bad_parameters(kind: Any, parameters: dict[str, Any], message: str) -> None:
    shared = {"epsilon": 1, "delta": 1e-6, "loss": LogisticLoss(), "constraint": L2Ball(1.0), "m": 8}
    given = {**shared, "target_bounds": (-1, 1), "max_norm": 1.0, **parameters}
    X, y, groups = people(20, 2)
    with pytest.raises(ValueError, match=message):
        kind(**given).fit(X, y, groups=groups)
