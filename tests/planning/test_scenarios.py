"""What was recorded for the scenarios: the planner's recommendations against simulations that no fit has seen."""

from __future__ import annotations

import csv
import json
from typing import Any

import pytest
from benches.reproduce.scenarios import NUMBER, RESULTS, scenarios
from benches.reproduce.simulations import SIMULATIONS

from userdp.planning import user_complexity
from userdp.planning.calibration import calibrations
from userdp.planning.lower_bounds import bound_of
from userdp.planning.problem import Problem
from userdp.planning.tasks import TASKS

ROWS = list(csv.DictReader(RESULTS.read_text(encoding="utf-8").splitlines()))


def _asked(row: dict[str, str]) -> dict[str, Any]:
    return json.loads(row["point"])  # type: ignore[no-any-return]


def _problem(row: dict[str, str]) -> Problem:
    point = _asked(row)
    common = {name: point.pop(name) for name in ("m", "epsilon", "delta", "alpha", "beta")}
    return TASKS[row["task"]].problem(**common, values=point)


def test_the_scenarios_are_those_of_the_seed() -> None:
    assert len(ROWS) >= NUMBER == 24
    assert {row["task"] for row in ROWS} == {simulation.task for simulation in SIMULATIONS}
    drawn = [(of.task, dict(point)) for of, point in scenarios()]
    assert [(row["task"], _asked(row)) for row in ROWS] == drawn


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['scenario']} {row['task']}")
def test_the_recommended_method_needs_at_most_a_quarter_more_users_than_any_other(row: dict[str, str]) -> None:
    """Any other that is planned by simulations; "winsorized" has a rate only, and needs up to a third fewer."""
    needs = json.loads(row["needs"])
    own, _ = needs[row["recommended"]]
    assert len(needs) > 1
    assert own <= 1.25 * min(number for name, (number, _) in needs.items() if name != "winsorized")
    assert own <= 1.5 * min(number for number, _ in needs.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['scenario']} {row['task']}")
def test_the_recommended_number_of_users_keeps_the_stated_rate(row: dict[str, str]) -> None:
    """The share of misses in units of beta, or the mean square in units of alpha squared, was at most 1."""
    assert float(row["failure"]) <= 1 + 3 * float(row["failure_error"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['scenario']} {row['task']}")
def test_the_planner_still_recommends_what_was_simulated(row: dict[str, str]) -> None:
    made = user_complexity(row["task"], **_asked(row))
    # With one record of each user some methods are the same, and which comes first is a matter of the last digit.
    needs = json.loads(row["needs"])
    assert made.method == row["recommended"] or needs[made.method][0] <= needs[row["recommended"]][0]
    assert made.basis == row["basis"]
    # Simulated with a known part of wrong labels, and not given where no method can do for all of them. The stated
    # errors of some methods have grown since.
    least = max(bound_of(_problem(row))[0] or 2, int(row["n_users"]))
    assert least <= made.n_users <= 1.2 * least + 1


def test_every_method_that_is_simulated_was_run_or_says_why_not() -> None:
    """But for those that need a promise which the scenario does not make."""
    for row in ROWS:
        task, problem = TASKS[row["task"]], _problem(row)
        refused = json.loads(row["not_run"])
        assert all(refused.values())
        kept = {method.name for method in task.methods if method.kept(problem)}
        assert kept & set(calibrations(row["task"])) <= set(json.loads(row["needs"])) | set(refused)
