"""Whether the planner recommends well: scenarios drawn from the seed, each with runs that no fit has seen.

    python -m benches.reproduce.scenarios [--runs 400] [--jobs 2]

For each scenario: what the planner recommends, how many users that method and every other shipped method of the task
really need, with standard errors, and how often the recommended number misses. Writes
`benches/reproduce/scenarios.csv`.
"""

from __future__ import annotations

import argparse
import csv
import json
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benches.reproduce.simulation import Point, Simulation, failure, stream, users_needed
from benches.reproduce.simulations import SIMULATIONS

from userdp.planning.problem import NotPlanned, Problem, Task
from userdp.planning.sample_size import sample_size
from userdp.planning.tasks import TASKS

NUMBER = 24
MORE = 2
"""For each task that none of these is about."""
RESULTS = Path(__file__).resolve().parent / "scenarios.csv"


def problem_of(point: Point, task: Task) -> Problem:
    """The problem that the planner has for a point."""
    given = dict(point)
    common = {name: given.pop(name) for name in ("m", "epsilon", "delta", "alpha", "beta")}
    return task.problem(**common, values=given)


def scenarios() -> list[tuple[Simulation, Point]]:
    """Tasks by chance and those left out by it, one of the methods of each, and a point of that."""
    rng = stream("scenarios")
    names = sorted({simulation.task for simulation in SIMULATIONS})
    found: list[tuple[Simulation, Point]] = []

    def draw(task: str) -> None:
        of_task = [simulation for simulation in SIMULATIONS if simulation.task == task]
        simulation = of_task[rng.integers(len(of_task))]
        found.append((simulation, simulation.point(rng)))

    for _ in range(NUMBER):
        draw(names[rng.integers(len(names))])
    for task in sorted(set(names) - {simulation.task for simulation, _ in found}):
        for _ in range(MORE):
            draw(task)
    return found


def looked_at(runs: int, index: int) -> dict[str, Any]:
    """A row of the results."""
    of, point = scenarios()[index]
    task = TASKS[of.task]
    problem = problem_of(point, task)
    plan = sample_size(task, problem)
    needs: dict[str, tuple[float, float]] = {}
    refused: dict[str, str] = {}
    for simulation in SIMULATIONS:
        if simulation.task != of.task or not task.method(simulation.method).kept(problem):
            continue
        try:
            need = users_needed(simulation, point, runs, f"scenario {index}")
        except (NotPlanned, ValueError) as error:
            refused[simulation.method] = str(error)
            continue
        needs[simulation.method] = (round(need.n_users, 1), round(need.standard_error, 1))
    row = {
        "scenario": index,
        "task": of.task,
        "point": json.dumps(dict(point), sort_keys=True),
        "recommended": plan.method,
        "n_users": plan.n_users,
        "basis": plan.basis,
        "needs": json.dumps(needs, sort_keys=True),
        "not_run": json.dumps(refused, sort_keys=True),
    }
    own = [simulation for simulation in SIMULATIONS if (simulation.task, simulation.method) == (of.task, plan.method)]
    if own:
        ratio, error = failure(own[0], point, plan.n_users, runs, stream("scenario at", index))
        row |= {"failure": f"{ratio:.4f}", "failure_error": f"{error:.4f}"}
    if plan.method in needs:
        row["times_best"] = f"{needs[plan.method][0] / min(n for n, _ in needs.values()):.3f}"
    return row


def main() -> None:
    """Look at all scenarios and write what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    rows = []
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        for row in pool.map(partial(looked_at, given.runs), range(len(scenarios()))):
            print(row, flush=True)
            rows.append(row)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        names = dict.fromkeys(name for row in rows for name in row)
        writer = csv.DictWriter(file, list(names))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
