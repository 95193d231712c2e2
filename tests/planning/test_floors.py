"""Numbers of simulated users beside what is certified for all: never ranked below it, and never divided by it."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from userdp.cli import main
from userdp.planning import compare_methods, lower_bound, plan, user_complexity
from userdp.planning.sample_size import fewest, ways_of
from userdp.planning.tasks import TASKS

# A bound of 548 users, and the simulated ones need 338: a learner of a threshold, with one label in ten wrong.
LOW: dict[str, Any] = {"m": 1, "epsilon": "0.23", "alpha": 0.066, "n_points": 2**20}

GIVEN: dict[str, dict[str, list[Any]]] = {
    "mean": {"homogeneous": [True, False]},
    "selection": {"n_items": [2, 10, 1000]},
    "threshold": {"n_points": [64, 1000, 2**20], "eta": [0, 0.1, 0.3]},
    "pac": {"n_hypotheses": [8, 2**12]},
    "agnostic": {"n_hypotheses": [8], "eta": [0.1]},
    "quantile": {"n_points": [16, 256], "neighbors": ["replace", "add-remove"]},
    "discrete": {"n_symbols": [2, 64]},
    "product": {"n_symbols": [2], "n_columns": [3]},
    "gaussian-mean": {"mean_bound": [4.0, 32.0], "n_columns": [1, 2]},
    "gaussian": {"mean_bound": [4.0]},
    "hypothesis-selection": {"n_hypotheses": [2, 50]},
    "group_by": {"n_keys": [1, 10]},
    "sum": {"max_total": [None, 1.0]},
    "logistic-regression": {"dimension": [2, 8]},
    "linear-regression": {"dimension": [2]},
    "sco": {"dimension": [2, 8]},
    "finite": {"n_records": [100], "item_epsilon": [0.5]},
}
PROBLEMS = {"threshold": 12, "quantile": 6, "discrete": 6, "pac": 5, "agnostic": 1, "gaussian": 1, "mean": 2}


def problem(source: random.Random, task: str) -> dict[str, Any]:
    chosen = {name: source.choice(values) for name, values in GIVEN[task].items()}
    asked: dict[str, Any] = {"m": source.choice([1, 4, 64]), "epsilon": round(10 ** source.uniform(-1, 0.6), 3)}
    asked["delta"] = source.choice(["1e-6", 0]) if task != "sco" else "1e-6"
    if TASKS[task].has_alpha:
        asked["alpha"] = round(10 ** source.uniform(-1.7, -0.4), 3)
    return asked | chosen


def test_every_task_is_here() -> None:
    assert set(GIVEN) == set(TASKS)


@pytest.mark.parametrize("task", GIVEN)
def test_no_number_is_ranked_below_what_is_certified(task: str) -> None:
    source = random.Random(task)
    for _ in range(PROBLEMS.get(task, 3)):
        given = problem(source, task)
        table = compare_methods(task, **given)
        kind = TASKS[task]
        values = {name: value for name, value in given.items() if name not in ("m", "epsilon", "delta", "alpha")}
        asked = kind.problem(
            m=given["m"],
            epsilon=given["epsilon"],
            delta=given["delta"],
            alpha=given.get("alpha"),
            beta=None,
            values=values,
        )
        ways, least = ways_of(kind, asked), table.least or 2
        assert all(way.expected >= least for way in ways)
        assert all(way.number[0] >= least for way in ways if way.number is not None)
        assert all(line.users >= least for line in table.rows if line.users is not None and line.protects == "user")
        best = fewest(ways, asked)
        assert table.best == ("none" if best is None else best.method.name)
        # Only what is proved for all is divided by what is certified for all.
        for line, row in zip(table.rows, table._rows(), strict=True):
            divided = line.users is not None and line.users == line.proved and table.least is not None
            assert row["times_bound"] == (line.users / table.least if divided else None)


def test_ties_at_the_bound_go_to_what_was_simulated_with_fewer() -> None:
    table = compare_methods("threshold", **LOW)
    certified = lower_bound("threshold", m=1, epsilon="0.23", alpha=0.066, beta=0.1, domain_size=2**20)
    assert table.least == certified.n_users == 548
    simulated = {line.method: line.calibrated for line in table.rows if line.calibrated is not None}
    assert max(simulated.values()) < 548
    assert {line.users for line in table.rows if line.calibrated is not None} == {548}
    assert simulated[table.best] <= 1.1 * min(simulated.values())  # as far as simulations tell
    assert user_complexity("threshold", **LOW).n_users == 548
    assert math.isclose(table["median"].users / 548, table._rows()[-1]["times_bound"])


def test_plans_do_not_divide_simulated_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    made = plan("threshold", **LOW)
    page = made.to_html()
    assert "times as many" not in page
    assert "just as many" not in page
    assert "for people as they were simulated, and not for all" in page
    proved = plan("selection", epsilon="0.5", alpha=0.2, n_items=1000)
    assert proved.best is not None
    assert proved.best.basis == "exact"
    assert "The best method here needs" in proved.to_html()
    assert main(["plan", "threshold", "--epsilon", "0.23", "--alpha", "0.066", "n_points=1048576"]) == 0
    assert (
        "fewer than: 548 (proved), whoever the people are; the number above is for people as sim"
        in capsys.readouterr().out
    )


def test_delstab_is_not_planned_for_people_it_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {"m": 10**6, "epsilon": 4, "delta": "1e-3", "n_records": 10**5, "item_epsilon": "0.5"}
    table = compare_methods("finite", **asked)
    assert table.best == "group privacy"
    assert table["DelStab, tight"].users is None
    assert "decides for 3 kinds, and is sure to refuse users who all differ" in table["DelStab, tight"].note
    few = compare_methods("finite", **asked, kinds=3)
    assert few.best == "DelStab, tight"
    assert compare_methods("finite", **asked, kinds=4)["DelStab, tight"].users is None
    words = ["plan", "finite", "--m", "1000000", "--epsilon", "4", "--delta", "1e-3", "n_records=100000"]
    assert main([*words, "item_epsilon=0.5"]) == 0
    assert "kinds= is how many there can be" in capsys.readouterr().out
