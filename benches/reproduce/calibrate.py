"""Fit the constants that the planner ships to simulations, and simulate points that the fit has not seen.

    python -m benches.reproduce.calibrate TASK METHOD [--points 16] [--tests 6] [--runs 400] [--refit]

Writes `python/userdp/planning/calibrations/TASK.json` and a row for every point to `benches/reproduce/needs.csv`.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benches.reproduce.simulation import SEED, Point, Simulation, points, users_needed
from benches.reproduce.simulations import SIMULATIONS

from userdp.planning.problem import Problem
from userdp.planning.tasks import TASKS

ROOT = Path(__file__).resolve().parents[2]
NEEDS = ROOT / "benches" / "reproduce" / "needs"
CALIBRATIONS = ROOT / "python" / "userdp" / "planning" / "calibrations"
MARGIN = 0.02
"""The least error that is stated."""


def problem_of(task: str, point: Point) -> Problem:
    """The problem of a point, as the planner reads it."""
    given = dict(point)
    common = {name: given.pop(name) for name in ("m", "epsilon", "delta", "alpha", "beta")}
    return TASKS[task].problem(**common, values=given)


def terms_of(task: str, method: str, point: Point) -> dict[str, float]:
    """The terms of a method at a point, as the planner has them."""
    terms: Callable[[Any], Any] | None = TASKS[task].method(method).terms
    assert terms is not None
    return dict(terms(problem_of(task, point)))


def sizes_of(task: str, method: str, point: Point) -> dict[str, Any]:
    """The numbers of a point in the units that ranges are in."""
    sizes = TASKS[task].method(method).standard(problem_of(task, point)).sizes
    return {name: sizes[name] for name in point if name in sizes}


def fitted(rows: list[dict[str, float]], needs: np.ndarray) -> dict[str, float]:
    """Constants >= 0 with the least squares of relative errors."""
    from scipy.optimize import nnls

    names = list(rows[0])
    matrix = np.array([[row[name] for name in names] for row in rows]) / needs[:, None]
    found, _ = nnls(matrix, np.ones(len(rows)))
    return {name: float(value) for name, value in zip(names, found, strict=True)}


def file_of(task: str, method: str) -> Path:
    """Where the numbers found are written."""
    return NEEDS / f"{task} {method}.csv".replace(" ", "-").replace(",", "")


def simulated(simulation: Simulation, n_points: int, n_tests: int, runs: int) -> list[dict[str, Any]]:
    """The numbers of users found at the points of both purposes."""
    written: list[dict[str, Any]] = []
    for purpose, number in (("fit", n_points), ("test", n_tests)):
        start = 64
        for point in points(simulation, purpose, number):
            need = users_needed(simulation, point, runs, purpose, start)
            start = max(1, round(need.n_users))
            written.append({"purpose": purpose, "point": dict(point), "n": need.n_users, "se": need.standard_error})
            found = f"{need.n_users:.1f} +- {need.standard_error:.1f}"
            print(f"{simulation.task} {simulation.method} {purpose} {dict(point)}: {found}", flush=True)
    return written


def recorded(simulation: Simulation) -> tuple[list[dict[str, Any]], int]:
    """The same as recorded, and the runs: for other terms, without a new simulation."""
    with file_of(simulation.task, simulation.method).open(newline="") as file:
        rows = list(csv.DictReader(file))
    written: list[dict[str, Any]] = []
    for purpose in ("fit", "test"):
        kept = [row for row in rows if row["purpose"] == purpose]
        for point, row in zip(points(simulation, purpose, len(kept)), kept, strict=True):
            if any(row[name] != str(value) for name, value in point.items()):
                raise ValueError(f"recorded for other points: {row}")
            need = {"n": float(row["n_users"]), "se": float(row["standard_error"])}
            written.append({"purpose": purpose, "point": dict(point), **need})
    return written, int(rows[0]["runs"])


def calibrate(simulation: Simulation, n_points: int, n_tests: int, runs: int, refit: bool) -> dict[str, Any]:
    """Simulate, fit, and compare where nothing was fitted."""
    task, method = simulation.task, simulation.method
    if refit:
        written, runs = recorded(simulation)
    else:
        written = simulated(simulation, n_points, n_tests, runs)
    fit = [row for row in written if row["purpose"] == "fit"]
    constants = fitted([terms_of(task, method, row["point"]) for row in fit], np.array([row["n"] for row in fit]))
    for row in written:
        terms = terms_of(task, method, row["point"])
        row["predicted"] = max(1, math.ceil(math.fsum(constants[name] * terms[name] for name in constants)))
        row["error"] = row["predicted"] / row["n"] - 1
    # Both ways: what needs half as many again as was predicted is off by a third of itself, and a third on top of what
    # was predicted would not be enough. In whole users, as they are planned.
    more = max((math.ceil(row["n"]) - 1) / row["predicted"] - 1 for row in written)
    worst = max(math.floor(more * 1000 + 1) / 1000, *(abs(row["error"]) for row in written))
    standard = [sizes_of(task, method, row["point"]) for row in written]
    ranges: dict[str, list[Any]] = {}
    for name in written[0]["point"]:
        seen = [found[name] for found in standard if name in found]
        if seen:
            words = isinstance(seen[0], (bool, str))
            ranges[name] = sorted(set(seen)) if words else [min(seen), max(seen)]
    NEEDS.mkdir(exist_ok=True)
    with file_of(task, method).open("w", newline="") as file:
        writer = csv.writer(file)
        names = list(written[0]["point"])
        writer.writerow(["task", "method", "purpose", *names, "n_users", "standard_error", "predicted", "runs"])
        for row in written:
            found = [f"{row['n']:.2f}", f"{row['se']:.2f}", row["predicted"], runs]
            writer.writerow([task, method, row["purpose"], *row["point"].values(), *found])
    entry = {
        "constants": constants,
        "ranges": ranges,
        "error": max(MARGIN, math.ceil(worst * 1000) / 1000),
        "points": len(written),
        "runs": runs,
        "seed": SEED,
    }
    CALIBRATIONS.mkdir(exist_ok=True)
    path = CALIBRATIONS / f"{task}.json"
    shipped = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"methods": {}}
    shipped["methods"][method] = entry
    path.write_text(json.dumps(shipped, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return entry


def main() -> None:
    """Calibrate the methods that are named, or all of a task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task")
    parser.add_argument("method", nargs="?")
    parser.add_argument("--points", type=int, default=16)
    parser.add_argument("--tests", type=int, default=6)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--refit", action="store_true", help="fit to the numbers that are recorded")
    given = parser.parse_args()
    for simulation in SIMULATIONS:
        # What no terms are known for is simulated for scenarios only.
        fits = TASKS[simulation.task].method(simulation.method).terms is not None
        if fits and simulation.task == given.task and given.method in (None, simulation.method):
            print(json.dumps(calibrate(simulation, given.points, given.tests, given.runs, given.refit)))


if __name__ == "__main__":
    main()
