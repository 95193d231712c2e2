"""Comparisons of methods, and numbers of users, beside formulas and the plans that run."""

from __future__ import annotations

import json
import math
import warnings
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from userdp.accounting import group_privacy, largest_mu2
from userdp.exceptions import BudgetError, InsecureRandomnessWarning, TooFewUsersWarning
from userdp.means import WinsorizedMean
from userdp.optimization import ClippedGradientDescent, L2Ball, LogisticLoss, PhasedERM, WinsorizedGradientDescent
from userdp.planning import Comparison, compare_methods, user_complexity


def test_means_are_predicted_by_the_plans_that_run() -> None:
    """The table has what fits say of their errors, which depends on public numbers only."""
    given: dict[str, Any] = {"max_norm": 2.0, "epsilon": 0.5, "delta": 1e-6, "homogeneous": True}
    table = compare_methods("mean", n_users=300, m=4, dimension=3, **given)
    rows, people = np.zeros((1200, 3)), np.repeat(np.arange(300), 4)
    found = {row.method for row in table.rows} - {"group privacy", "records only"}
    assert found == {"tested", "iterated", "gaussian", "practical", "paper", "laplace"}
    for method in ("iterated", "gaussian", "laplace"):
        fitted = WinsorizedMean(method=method, m=4, **given).fit(rows, groups=people)
        assert table[method].noise == pytest.approx(np.linalg.norm(fitted.noise_))
        # And by how much users' vectors may be rounded, in the direction of what clipping moves.
        noise, worst = np.linalg.norm(fitted.noise_), np.linalg.norm(fitted.worst_error_)
        moved = math.sqrt(max(worst**2 - noise**2, 0)) + math.sqrt(3) * fitted.accuracy_.rounding * fitted.scales_[0]
        assert table[method].worst_error == pytest.approx(math.hypot(noise, moved), rel=1e-9)
        assert table[method].needs == ("homogeneous=True" if method == "iterated" else "nothing")
    assert table["practical"].worst_error is None
    proved = [row for row in table.rows if row.method in found and row.worst_error is not None]
    # The estimator takes it by what rounding does not count in.
    assert (table[table.best].worst_error or 0) <= 1.02 * min(row.worst_error or 0 for row in proved)
    assert WinsorizedMean(m=4, **given).fit(rows, groups=people).method_ == table.best


@pytest.mark.parametrize("m", [1, 16, 256])
def test_group_privacy_gains_nothing_from_rows(m: int) -> None:
    """In closed form: Laplace noise of scale 2 B / (n epsilon), whatever m is, up to rounding to a grid."""
    table = compare_methods("mean", n_users=1000, m=m, max_norm=3, epsilon=0.5)
    assert table["group privacy"].noise == pytest.approx(math.sqrt(2) * 6 / (1000 * 0.5), rel=1e-3)
    assert table["records only"].noise == pytest.approx(math.sqrt(2) * 6 / (1000 * m * 0.5), rel=1e-3)
    assert table.rows[-1].method == "records only"
    assert table.rows[-1].protects == "record"
    assert table.best != "records only"


def test_group_privacy_with_a_delta() -> None:
    """The Gaussian one at epsilon / m and a delta that m rows may have together."""
    n, m, d, epsilon, delta = 2000, 8, 16, 1, Fraction(1, 10**6)
    table = compare_methods("mean", n_users=n, m=m, dimension=d, epsilon=epsilon, delta=delta)
    row_delta = delta * Fraction(math.expm1(1 / m) / math.expm1(1)) * Fraction(999, 1000)
    assert group_privacy(Fraction(1, m), row_delta, m).delta <= delta
    rho = float(largest_mu2(Fraction(1, m), row_delta)) / 2
    assert table["group privacy"].noise == pytest.approx(2 / (n * m) * math.sqrt(d / (2 * rho)), rel=1e-2)
    assert table["group privacy"].noise >= table["gaussian"].noise * 0.99


def test_many_rows_pay() -> None:
    """Under the promise that users are alike; without one they buy nothing."""
    given: dict[str, Any] = {"n_users": 2000, "dimension": 16, "epsilon": 1, "delta": 1e-6}

    def error(m: int, **promise: Any) -> float:
        table = compare_methods("mean", m=m, **given, **promise)
        return table[table.best].noise  # the least error to expect is what is recommended

    alike = [error(m, homogeneous=True) for m in (1, 16, 256)]
    assert alike[1] <= alike[0]
    assert alike[2] < alike[1] / 2
    # Users who differ more than chance: rows help no more than that.
    assert error(16, user_std=0.3) == error(256, user_std=0.3) > alike[2]
    assert error(1) == error(16) == error(256) == alike[0]


def test_what_needs_a_promise_is_shown_and_not_recommended() -> None:
    table = compare_methods("mean", n_users=1000, m=256, epsilon=1)
    assert table.best == "laplace"
    assert {row.method: row.needs for row in table.rows if row.needs != "nothing"} == dict.fromkeys(
        ("iterated", "practical", "paper"), "homogeneous=True"
    )
    assert table["iterated"].worst_error < table["laplace"].worst_error  # type: ignore[operator]
    assert compare_methods("mean", n_users=1000, m=256, epsilon=1, homogeneous=True).best == "iterated"


def test_tables_print_and_save() -> None:
    table = compare_methods("mean", n_users=500, m=8, epsilon=1)
    lines = repr(table).splitlines()
    assert lines[0] == "Methods for: mean"
    assert lines[1].split() == ["Recommended", table.best, *f"({table.reason})".split()]
    assert [line.split() for line in lines[2:4]] == [["n_users", "500"], ["m", "8"]]
    assert all(row.method in line for row, line in zip(table.rows, lines[-len(table.rows) :], strict=True))
    saved = json.loads(json.dumps(table.to_dict()))
    assert saved["best"] == table.best
    assert [row["method"] for row in saved["rows"]] == [row.method for row in table.rows]
    assert dict(saved["sizes"])["promise"] == "nothing"
    with pytest.raises(KeyError, match="'median'; there are"):
        table["median"]
    with pytest.raises(AttributeError):
        table.best = "laplace"  # type: ignore[misc]


def test_tables_plot() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    table = compare_methods("mean", n_users=500, m=8, epsilon=1)
    ax = table.plot()
    assert len(ax.patches) == sum(row.worst_error is not None for row in table.rows)
    assert table.plot(ax) is ax
    plt.close(ax.figure)


@pytest.mark.parametrize("method", ["laplace", "iterated"])
@pytest.mark.parametrize(("m", "alpha"), [(1, 0.05), (64, 0.002)])
def test_the_least_number_of_users(method: str, m: int, alpha: float) -> None:
    plan = user_complexity("mean", method=method, m=m, epsilon=1, alpha=alpha, homogeneous=True)

    def error(n: int) -> float:
        table = compare_methods("mean", n_users=n, m=m, epsilon=1, homogeneous=True)
        found = table[method].worst_error
        assert found is not None
        return math.hypot(found, 1 / math.sqrt(m * n))

    # Rounded means of users spread a little more than their means.
    assert error(plan.n_users) <= alpha < 1.001 * error(plan.n_users - 1)
    assert plan.proved.value == plan.n_users
    assert plan.without_privacy == math.ceil(1 / (m * alpha**2)) <= plan.n_users


def test_the_best_method_needs_fewest_users() -> None:
    needed = {
        method: user_complexity("mean", method=method, m=64, epsilon=0.5, alpha=0.004, homogeneous=True).n_users
        for method in ("auto", "iterated", "laplace")
    }
    assert needed["auto"] <= needed["iterated"] < needed["laplace"]


def test_users_who_may_be_anywhere_are_sampled_as_widely() -> None:
    plan = user_complexity("mean", m=64, epsilon=1, alpha=0.01)
    assert plan.without_privacy == 10_000 <= plan.n_users
    assert math.hypot(math.sqrt(8) / plan.n_users, 1 / math.sqrt(plan.n_users)) == pytest.approx(0.01, rel=1e-3)
    with pytest.raises(TypeError, match="'iterated' needs a promise"):
        user_complexity("mean", method="iterated", m=64, epsilon=1, alpha=0.01)


def test_more_users_than_there_are() -> None:
    for alpha in (1e-7, 1e-90):
        with pytest.raises(BudgetError, match="more than 2\\*\\*32 users"):
            user_complexity("mean", method="laplace", m=1, epsilon=1, alpha=alpha)
    with pytest.raises(ValueError, match=r"alpha must be from 2\*\*-300"):
        user_complexity("mean", method="laplace", m=1, epsilon=1, alpha=1e-300)


def test_no_plan_is_for_one_user() -> None:
    assert user_complexity("mean", method="laplace", m=1, epsilon=1, alpha=1e3).n_users == 2


@pytest.mark.parametrize("delta", [0, 1e-6])
def test_ties_go_to_what_is_taken_by_itself(delta: float) -> None:
    table = compare_methods("mean", n_users=5, m=1, epsilon=1, delta=delta)
    assert table["laplace"].noise == pytest.approx(table["iterated"].noise, rel=1e-4)
    assert table.best == "laplace"


def test_descents() -> None:
    table = compare_methods("descent", n_users=10_000, m=16, dimension=8, epsilon=1, delta=1e-6, radius=6)
    assert isinstance(table, Comparison)
    assert {row.method for row in table.rows} == {"clipped", "winsorized", "winsorized, tracking", "phased"}
    # In closed form: C = G = 1, 2 C / n of sensitivity, and rho / T of each step.
    steps = int(table["clipped"].note.split("; ")[1].split()[0])
    rho = float(largest_mu2(1, Fraction(1e-6), distance=8 * steps * Fraction(1, 2**90))) / 2
    expected = 2 / 10_000 * math.sqrt(8 / (2 * rho / steps))
    assert table["clipped"].noise == pytest.approx(expected, rel=1e-3)
    assert table["phased"].worst_error is None
    assert table.rows[-1].method == "phased"
    assert table.best == table.rows[0].method
    for row in table.rows:
        assert row.expected is not None
        assert row.worst_error is None or row.expected < row.worst_error


MAKERS: dict[str, Any] = {
    "clipped": ClippedGradientDescent,
    "winsorized": WinsorizedGradientDescent,
    "winsorized, tracking": partial(WinsorizedGradientDescent, method="tracking"),
    "phased": PhasedERM,
}


@pytest.mark.parametrize(
    ("n_users", "m", "dimension", "radius", "epsilon"),
    [(1000, 1, 8, 6, 1), (1000, 16, 8, 6, 1), (3000, 4, 4, 8, "0.5"), (2000, 4, 20, 18, 2)],
)
def test_expected_errors_of_descents_are_near_what_fits_reach(
    n_users: int, m: int, dimension: int, radius: float, epsilon: Any
) -> None:
    """Fits of fresh users of a logistic model, whose expected loss is known; the seeds decide, as all is drawn."""
    given: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6, "max_norm": 1.0, "m": m}
    table = compare_methods("descent", n_users=n_users, dimension=dimension, radius=radius, **given)
    rng = np.random.default_rng(17)

    def rows(count: int) -> Any:
        drawn = rng.standard_normal((count, dimension))
        return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)

    truth = np.full(dimension, min(radius / 2, 3) / math.sqrt(dimension))
    fresh = rows(50_000)
    chances = 1 / (1 + np.exp(-fresh @ truth))

    def loss(theta: Any) -> float:
        return float(np.mean(np.logaddexp(0, fresh @ theta) - chances * (fresh @ theta)))

    for name, make in MAKERS.items():
        found = []
        for seed in range(3):
            X = rows(n_users * m)
            y = np.where(rng.random(len(X)) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
            with warnings.catch_warnings():
                for kind in (InsecureRandomnessWarning, TooFewUsersWarning):
                    warnings.simplefilter("ignore", kind)
                model = make(
                    **given,
                    loss=LogisticLoss(),
                    constraint=L2Ball(radius),
                    target_bounds=(-1, 1),
                    random_state=seed,
                    **({} if name == "clipped" else {"public_seed": bytes(32)}),
                    # What is compared counts on directions that are alike; a fit asks for somebody's word.
                    **({"sub_gaussian": 1 / math.sqrt(dimension)} if name.endswith("tracking") else {}),
                )
                found.append(loss(model.fit(X, y, groups=np.repeat(np.arange(n_users), m)).theta_) - loss(truth))
        reached = float(np.mean(found))
        expected = table[name].expected
        assert expected is not None
        assert reached / 3 < expected < 10 * reached, name
        if table[name].worst_error is not None:
            assert reached < table[name].worst_error


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": "median"}, "task must be 'mean', 'group_by' or 'descent' with n_users"),
        ({"n_users": 1}, "n_users must be at least 2"),
        ({"n_users": 10**400}, "n_users must be at most"),
        ({"m": 2**40}, "m must be at most"),
        ({"epsilon": "1e-400"}, "epsilon must be from"),
        ({"epsilon": "1e400"}, "epsilon must be from"),
        ({"max_norm": "1e308"}, "max_norm must be from"),
        ({"task": "descent", "delta": 1e-6, "n_users": 10**400}, "n_users must be at most"),
        ({"task": "descent", "delta": 1e-6, "epsilon": "1e400"}, "epsilon must be from"),
        ({"m": 0}, "m must be at least 1"),
        ({"dimension": 0}, "dimension must be at least 1"),
        ({"max_norm": -1}, "max_norm must be > 0"),
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"delta": 2}, "delta must be in"),
        ({"user_std": 0}, "user_std must be > 0"),
        ({"user_std": 1, "homogeneous": True}, "promise the same thing"),
        ({"norm": "l1"}, "norm must be"),
        ({"beta": 1}, "beta must be strictly between"),
        ({"task": "descent"}, "delta must be > 0 for descents"),
    ],
)
def test_bad_numbers(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compare_methods(**({"task": "mean", "n_users": 100, "m": 2, "epsilon": 1} | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"radius": 1},
        {"task": "descent", "delta": 1e-6, "user_std": 1},
        {"task": "descent", "delta": 1e-6, "homogeneous": True},
        {"task": "group_by", "m": None, "radius": 1},
    ],
)
def test_parameters_of_other_tasks_are_named(changed: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"is no parameter of task '\w+', which has: \w+"):
        compare_methods(**({"task": "mean", "n_users": 100, "m": 2, "epsilon": 1} | changed))


@pytest.mark.parametrize("both", [{}, {"n_users": 100, "alpha": 0.1}])
def test_errors_or_users(both: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="give either n_users"):
        compare_methods("mean", m=2, epsilon=1, **both)


def test_homogeneous_is_a_bool() -> None:
    with pytest.raises(TypeError, match="homogeneous must be a bool"):
        compare_methods("mean", n_users=100, m=2, epsilon=1, homogeneous="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": "poetry"}, "task must be one of 'mean'"),
        ({"method": "median"}, "method must be 'auto' or one of"),
        ({"alpha": 0}, "alpha must be > 0"),
        ({"m": 0}, "m must be at least 1"),
    ],
)
def test_bad_plans(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        user_complexity(**({"task": "mean", "m": 2, "epsilon": 1, "alpha": 0.1} | changed))
