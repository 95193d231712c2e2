"""FiniteMinimizer: exact audits of the program that fit runs, planted bugs, and what it finds."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from userdp import InsecureRandomnessWarning
from userdp.audit import audit_user_level
from userdp.estimators import as_finite_algorithm
from userdp.exceptions import BudgetError
from userdp.mechanisms import PrivateBestOf
from userdp.optimization import FiniteMinimizer
from userdp.optimization import finite as finite_module
from userdp.optimization.finite import CachedUserVectors
from userdp.users import GivenVectors

LOSSES = [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (-3.0, 0.0), (float("nan"), 7.0)]


def audited(n_users: int, m: int, **parameters: Any) -> Any:
    learner = FiniteMinimizer(
        loss_bounds=(0, 1), **{"epsilon": 3, "m": m, "grid_resolution": 1, "stopping_probability": "1/4", **parameters}
    )
    algorithm = as_finite_algorithm(learner, n_users=n_users, n_features=2)
    universe = LOSSES if m == 1 else LOSSES[:3]
    return audit_user_level(algorithm, universe=universe, n_users=n_users, n_examples=m, epsilon=3, delta=0)


@pytest.fixture(params=[1, 2], ids=["all noise", "half noise"])
def noise(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    third = finite_module.equal_part
    monkeypatch.setattr(finite_module, "equal_part", lambda epsilon, parts: third(epsilon, parts) * request.param)
    return request.param


@pytest.mark.parametrize(
    ("n_users", "m", "parameters"),
    [
        (2, 1, {"method": "laplace"}),
        (2, 1, {"method": "laplace", "most_runs": 5}),
        (2, 1, {"method": "laplace", "most_runs": 5, "hide_time": True}),
        (2, 1, {"method": "practical", "grid_resolution": 2}),
        (3, 1, {"method": "laplace"}),
        (2, 2, {"method": "laplace"}),
    ],
)
def test_audit(n_users: int, m: int, parameters: dict[str, Any], noise: int) -> None:
    report = audited(n_users, m, **parameters)
    print(f"n={n_users}, m={m}, {parameters}: worst delta {report.worst_delta}, epsilon {report.epsilon}")
    assert report.holds is (noise == 1)


def test_audit_with_a_range() -> None:
    # Several bins, found privately in each run.
    report = audited(2, 1, method="paper", concentration=0.02, grid_resolution=4)
    plan: Any = FiniteMinimizer(
        epsilon=3, m=1, method="paper", concentration=0.02, grid_resolution=4, loss_bounds=(0, 1)
    )._method(2, 2)
    print(plan.search.lattice)
    assert plan.search.lattice.n_bins > 1
    assert report.holds
    print(f"worst delta {report.worst_delta}, epsilon {report.epsilon}")


def test_a_cap_fails_the_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    # All runs up to a fixed number, whatever the coins say: 10 runs at epsilon / 3 each.
    def capped(self: PrivateBestOf, one_run: Any) -> Any:
        from oracle.repeated_selection import least_outcome
        from userdp.mechanisms import Pmf

        order = sorted(range(len(one_run)), key=lambda i: one_run.outputs[i])
        masses = one_run.fractions()
        pmf = least_outcome([masses[i] for i in order], {10: Fraction(1)})
        return Pmf.from_weights(pmf, [one_run.outputs[i] for i in order])

    assert audited(2, 1, method="laplace").holds
    monkeypatch.setattr(PrivateBestOf, "pmf_from", capped)
    report = audited(2, 1, method="laplace")
    print(f"a fixed number of 10 runs: epsilon {report.epsilon}")
    assert not report.holds


def test_users_without_rows_are_in_the_middle() -> None:
    learner = FiniteMinimizer(
        epsilon=3,
        m=1,
        method="laplace",
        grid_resolution=4,
        stopping_probability="1/2",
        enrolled=[1, 2, 3],
        loss_bounds=(0, 1),
    )
    with_nobody = learner.output_distribution(np.array([[0.0, 1.0], [1.0, 1.0]]), groups=[1, 2])
    in_the_middle = learner.output_distribution(np.array([[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]), groups=[1, 2, 3])
    assert with_nobody == in_the_middle


def test_rows_count_by_user() -> None:
    # A user's mean loss counts, not rows: three rows of one user are one of 2 users.
    learner = FiniteMinimizer(
        epsilon=3, m=1, method="laplace", grid_resolution=4, stopping_probability="1/2", loss_bounds=(0, 1)
    )
    a = learner.output_distribution(np.array([[0.0, 1.0], [0.5, 0.0], [1.0, 0.5], [0.0, 0.25]]), groups=[1, 2, 2, 2])
    b = learner.output_distribution(np.array([[0.0, 1.0], [0.5, 0.25]]), groups=[1, 2])
    assert a == b


@pytest.mark.parametrize("method", ["auto", "practical", "laplace"])
def test_the_best_candidate_is_found(method: str) -> None:
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(2000), 20)
    losses = 2 * (rng.random((40_000, 5)) < [0.5, 0.4, 0.1, 0.3, 0.9]) - 1
    # Seeded: with probability alpha / 5 the best candidate is never drawn.
    learner = FiniteMinimizer(epsilon=1, m=20, loss_bounds=(-1, 1), method=method, random_state=1)
    with pytest.warns(InsecureRandomnessWarning):
        learner.fit(losses, groups=people)
    assert learner.index_ == 2
    assert abs(learner.value_ + 0.8) < 0.1


def test_the_pmf_is_drawn_from() -> None:
    rows, groups = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), [1, 2, 3]
    learner = FiniteMinimizer(
        epsilon=6,
        m=1,
        method="laplace",
        grid_resolution=1,
        stopping_probability="1/3",
        random_state=1,
        loss_bounds=(0, 1),
    )
    pmf = learner.output_distribution(rows, groups=groups)
    expected: dict[int, Fraction] = {}
    for (_, index), mass in zip(pmf.outputs, pmf.fractions(), strict=True):
        expected[index] = expected.get(index, Fraction(0)) + mass
    counts = {0: 0, 1: 0}
    for seed in range(400):
        with pytest.warns(InsecureRandomnessWarning):
            counts[learner.set_params(random_state=seed).fit(rows, groups=groups).index_] += 1
    share, p = counts[0] / 400, float(expected[0])
    print(f"candidate 0: {share:.3f} of draws, {p:.3f} in the distribution")
    # 6 standard deviations: fewer than 1e-8 of right programs fail.
    assert abs(share - p) < 6 * (p * (1 - p) / 400) ** 0.5


def test_nothing_tells_how_many_runs_there_were() -> None:
    learner = FiniteMinimizer(epsilon=1, m=1, method="laplace", loss_bounds=(0, 1)).fit(np.eye(4), groups=range(4))
    fitted = {name for name in vars(learner) if name.endswith("_")}
    assert fitted == {"index_", "value_", "n_users_", "n_features_in_", "unit_", "privacy_", "is_private_"}
    saved = json.loads(learner.to_json())
    assert saved["fitted"]["index_"] == learner.index_
    assert FiniteMinimizer.from_json(learner.to_json()).value_ == learner.value_


def test_sums_are_remembered() -> None:
    vectors = GivenVectors(np.array([[0.25], [0.5], [-1.0]]), np.array([True, True, False]))
    remembered = CachedUserVectors(vectors)
    for _ in range(2):
        assert remembered.winsorized_sum(-1.0, 8, 0.25).tolist() == vectors.winsorized_sum(-1.0, 8, 0.25).tolist()
        assert remembered.clipped_sum(0.0, 1.0, 0.25).tolist() == vectors.clipped_sum(0.0, 1.0, 0.25).tolist()
        for ours, plain in ((remembered, vectors), (remembered.filled(), vectors.filled())):
            sums, second = ours.clipped_moments(0.5, 1.0, 0.25, 64)
            assert (sums.tolist(), second) == (
                plain.clipped_moments(0.5, 1.0, 0.25, 64)[0].tolist(),
                plain.clipped_moments(0.5, 1.0, 0.25, 64)[1],
            )
            excess = [np.concatenate(each.clipping_excess(0.5, 0.5, 4.0, 0.25, 2)).tolist() for each in (ours, plain)]
            assert excess[0] == excess[1]
        assert remembered.bin_counts(4, 1.0).tolist() == vectors.bin_counts(4, 1.0).tolist()
        assert remembered.counts_within(0.0, [0.3, 1.0]).tolist() == vectors.counts_within(0.0, [0.3, 1.0]).tolist()
        (got,), (expected,) = remembered.occupied_bins(4, 1.0), vectors.occupied_bins(4, 1.0)
        assert [part.tolist() for part in got] == [part.tolist() for part in expected]
    assert len(remembered._cache) == 7


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"epsilon": 0}, ValueError, "epsilon"),
        ({"loss_bounds": (1, 1)}, ValueError, "loss_bounds"),
        ({"loss_bounds": (0, float("inf"))}, ValueError, "loss_bounds"),
        ({"loss_bounds": None}, ValueError, "loss_bounds"),
        ({"concentration": 0}, ValueError, "concentration"),
        ({"method": "median"}, ValueError, "method"),
        ({"alpha": 1}, ValueError, "alpha"),
        ({"grid_resolution": 3}, ValueError, "grid_resolution"),
        ({"stopping_probability": 2}, ValueError, "stopping_probability"),
        ({"most_runs": 0}, ValueError, "most_runs"),
        ({"hide_time": True}, ValueError, "most_runs"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        FiniteMinimizer(**{"epsilon": 1, "m": 1, "loss_bounds": (0, 1), **parameters}).fit(np.eye(3), groups=range(3))


@pytest.mark.parametrize(
    "parameters",
    [
        {"stopping_probability": 2.0**-50},
        # An hour and more, which was once accepted.
        {"stopping_probability": 2.0**-23},
        {"most_runs": 2**23, "hide_time": True},
    ],
)
def test_too_much_work_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(BudgetError, match=r"measurements of 3 users .* about .* hours; at most 523904 .*: raise"):
        FiniteMinimizer(epsilon=1, m=1, loss_bounds=(0, 1), **parameters).release_plan(n_users=3, n_features=3)
