"""Every calibrated number beside simulations that no fit has seen, as recorded."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from userdp.planning import user_complexity
from userdp.planning.calibration import calibrations
from userdp.planning.tasks import TASKS

NEEDS = Path(__file__).resolve().parents[2] / "benches" / "reproduce" / "needs"
WHOLE = ("m", "n_points", "n_symbols", "n_columns", "n_hypotheses", "n_items", "dimension")
WORDS = ("neighbors", "norm")
BEYOND = {("logistic-regression", "group privacy"): 1}
"""How many points are farther off, where any are: the stated errors are of all points, and have these."""
PAIRS = [(task, method) for task in TASKS for method in calibrations(task)]


def read(name: str, text: str) -> Any:
    """An argument of the planner."""
    if name in ("homogeneous", "tight_bounds"):
        return text == "True"
    return text if name in WORDS else int(text) if name in WHOLE else float(text)


@pytest.mark.parametrize(("task", "method"), PAIRS)
def test_numbers_are_near_simulations_that_were_not_fitted(task: str, method: str) -> None:
    """Within a quarter of the users needed, a whole number, at points that follow from a seed older than the fit."""
    with (NEEDS / f"{task} {method}.csv".replace(" ", "-").replace(",", "")).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["purpose"] == "test"]
    assert len(rows) >= 4
    names = list(rows[0])[3 : list(rows[0]).index("n_users")]
    beyond = 0
    for row in rows:
        plan = user_complexity(task, method=method, **{name: read(name, row[name]) for name in names})
        assert plan.calibrated.kind == "simulated"  # the ranges are of all points
        need = math.ceil(float(row["n_users"]))
        beyond += plan.calibrated.value != pytest.approx(need, rel=0.25)
        low, high = plan.calibrated.range or (0, 0)
        assert low <= need <= high
        assert plan.basis in ("proved", "exact") or plan.n_users >= high
    assert beyond <= BEYOND.get((task, method), 0)


def test_there_are_as_many_as_the_documentation_says() -> None:
    assert len(PAIRS) == 54
    points = sum(calibrations(task)[method].points for task, method in PAIRS)
    assert points == 1149
