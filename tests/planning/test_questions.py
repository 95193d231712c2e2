"""The inverse questions: at the answer the users are enough, and a little below they are not."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from userdp.planning import (
    accuracy_reached,
    compare_methods,
    epsilon_needed,
    records_needed,
    regime_map,
    user_complexity,
)

CASES: list[tuple[str, dict[str, Any]]] = [
    ("mean", {"homogeneous": True, "method": "laplace", "m": 16, "epsilon": 1, "alpha": 0.02}),
    ("mean", {"homogeneous": True, "method": "iterated", "m": 200, "epsilon": 1, "alpha": 0.02}),
    ("selection", {"n_items": 50, "method": "central, exponential", "m": 1, "epsilon": 1, "alpha": 0.3}),
    ("pac", {"n_hypotheses": 64, "method": "realizable", "m": 4, "epsilon": 1, "alpha": 0.1}),
]


@pytest.mark.parametrize(("task", "given"), CASES)
@pytest.mark.parametrize("quantity", ["alpha", "epsilon"])
def test_the_answer_is_the_least_one(task: str, given: dict[str, Any], quantity: str) -> None:
    ask = {"alpha": accuracy_reached, "epsilon": epsilon_needed}[quantity]
    users = user_complexity(task, **given).n_users
    others = {name: value for name, value in given.items() if name != quantity}
    answer = ask(task, n_users=users, **others)
    assert answer.value is not None
    assert answer.value <= given[quantity] * 1.01
    assert user_complexity(task, **others, **{quantity: answer.value}).n_users <= users
    fewer: dict[str, Any] = {quantity: answer.value * 0.98}
    assert user_complexity(task, **others, **fewer).n_users > users


def test_records() -> None:
    given: dict[str, Any] = {"homogeneous": True, "method": "laplace", "epsilon": 1, "alpha": 0.02}
    answer = records_needed("mean", n_users=300, **given)
    assert answer.value is not None
    assert user_complexity("mean", m=int(answer.value), **given).n_users <= 300
    assert user_complexity("mean", m=int(answer.value) - 1, **given).n_users > 300
    # Noise alone needs some 142 users, whatever m is.
    none = records_needed("mean", n_users=100, **given)
    assert none.value is None
    assert none.plan is None
    assert "not enough at any m" in none.reason


@pytest.mark.parametrize(
    ("ask", "changed", "message"),
    [
        (accuracy_reached, {"n_users": 1}, "n_users must be at least 2"),
        (accuracy_reached, {"n_users": 2**33}, "n_users must be at most"),
        (accuracy_reached, {"m": 0}, "m must be at least 1"),
        (epsilon_needed, {"most": 0.001}, "most must be a number from 0.01"),
        (records_needed, {"most": 2**40}, "most must be at most"),
        (records_needed, {"alpha": 0}, "alpha must be > 0"),
        (epsilon_needed, {"task": "mood"}, "task must be one of 'mean'"),
    ],
)
def test_bad_questions(ask: Any, changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"task": "mean", "n_users": 100, "m": 2, "epsilon": 1, "alpha": 0.1}
    del given[{accuracy_reached: "alpha", records_needed: "m", epsilon_needed: "epsilon"}[ask]]
    with pytest.raises(ValueError, match=message):
        ask(**(given | changed))


def test_maps_have_the_numbers_of_the_plans() -> None:
    given: dict[str, Any] = {"epsilon": 1, "alpha": 0.3, "n_items": 50, "delta": 1e-6}
    found = regime_map("selection", m=(4, 1), **given)
    assert found.m == (1, 4)
    for method, users in found.users.items():
        assert users == tuple(user_complexity("selection", method=method, m=m, **given).n_users for m in (1, 4))
    assert all(found.users[best][place] == min(row[place] for row in found.users.values() if row[place] is not None)
               for place, best in enumerate(found.best) if best is not None)  # fmt: skip


def test_what_was_not_simulated_here_is_named_as_perhaps_better() -> None:
    """So many records are far outside of what was simulated for thresholds."""
    table = compare_methods("threshold", m=5000, epsilon=1, alpha=0.1, n_points=1000, eta=0.1)
    assert table["score"].calibrated is None
    assert "perhaps better: score" in table.reason


def test_numbers_a_little_outside_of_what_was_simulated_are_called_extrapolated() -> None:
    """So many wrong labels were not simulated, and need more users than fewer of them."""
    given: dict[str, Any] = {"method": "score", "m": 3, "epsilon": 1, "alpha": 0.1, "n_points": 1000}
    wrong, noisy = (user_complexity("threshold", eta=eta, **given) for eta in (0.35, 0.1))
    assert (wrong.basis, noisy.basis) == ("extrapolated", "simulated")
    assert "simulated for eta from 0 to" in wrong.calibrated.source
    assert wrong.calibrated.error is not None
    assert noisy.calibrated.error is not None
    assert wrong.calibrated.error == 2 * noisy.calibrated.error
    assert wrong.n_users > noisy.n_users
    del given["method"]
    row = compare_methods("threshold", eta=0.35, **given)["score"]
    assert row.users == wrong.n_users
    assert "extrapolated" in row.note


@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("mean", {"alpha": 0.02}),
        ("sum", {"alpha": 0.002, "max_value": 7.0}),
        ("group_by", {"alpha": 0.002, "n_keys": 5}),
        ("group_by", {"alpha": 0.002, "n_keys": 5, "neighbors": "replace"}),
        ("threshold", {"alpha": 0.05, "n_points": 2**16}),
        ("pac", {"alpha": 0.05, "n_hypotheses": 2**10}),
        ("agnostic", {"alpha": 0.05, "n_hypotheses": 2**10}),
        ("selection", {"alpha": 0.2, "n_items": 1000}),
    ],
)
def test_comparisons_have_a_lower_bound_that_no_proved_number_is_below(task: str, given: dict[str, Any]) -> None:
    table = compare_methods(task, m=4, epsilon="0.1", **given)
    assert table.least is not None, table.bound
    assert all(row.proved is None or row.proved >= table.least for row in table.rows)
    assert table.bound.startswith("all ")


WITHOUT_SKLEARN = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ImportError("there is no sklearn here")

sys.meta_path.insert(0, Missing())
from userdp.planning import compare_methods

given = {
    "discrete": {"n_symbols": 3},
    "product": {"n_symbols": 2, "n_columns": 2},
    "gaussian-mean": {"mean_bound": 5},
    "gaussian": {"mean_bound": 5},
    "quantile": {"n_points": 1000},
    "hypothesis-selection": {"n_hypotheses": 9},
    "threshold": {"n_points": 1000},
    "agnostic": {"n_hypotheses": 10},
    "pac": {"n_hypotheses": 10},
    "mean": {},
    "logistic-regression": {"delta": 1e-6},
    "linear-regression": {"delta": 1e-6},
}
for task, values in given.items():
    for row in compare_methods(task, m=4, epsilon=1, alpha=0.1, **values).rows:
        assert row.users is not None or row.note.startswith("not planned: "), (task, row)
"""


def test_every_task_is_planned_without_scikit_learn() -> None:
    """What needs it is a row that says so."""
    subprocess.run([sys.executable, "-c", WITHOUT_SKLEARN], check=True, timeout=300)
