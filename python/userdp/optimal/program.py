"""The linear program of a world, solved in floats by HiGHS: what is proposed here is proved elsewhere.

Its unknowns are the probabilities x of the classes of outputs, and t for the worst case:

* minimize t, or the mean loss under a prior, losses being divided by the largest one;
* sum over a state's classes of multiplicity * x = 1, and of multiplicity * loss * x <= t;
* x[p] - E x[q] <= 0 for every constraint; with delta > 0 x[p] - E x[q] <= z, and the z of a pair of neighbors, times
  their numbers of outputs, sum to at most delta.

Nothing rests on the solution being right: `userdp.optimal.exactly` makes of it a table that is a mechanism and private,
and a bound that holds whatever the multipliers are.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from userdp.optimal.worlds import World

TOLERANCE = 1e-10
"""HiGHS' own 1e-7 costs three digits of the gap."""
UNITS = 2.0**12
"""Probabilities are solved for in these units: tolerances are absolute, and small probabilities must not drown."""
DEVEX = 1
"""The pricing of the dual simplex method: five to ten times faster here than steepest edges."""


class Solution(NamedTuple):
    """What the solver proposes."""

    x: npt.NDArray[np.float64]
    """The probabilities, of each unknown."""
    y: npt.NDArray[np.float64]
    """The multipliers of the constraints, in their order; with delta > 0 group by group. For losses of at most 1."""
    mu: npt.NDArray[np.float64] | None
    """The multipliers of the states' losses; None with a prior."""


def solver() -> Any:
    """The module of the solver, or how to get it."""
    try:
        return importlib.import_module("highspy")
    except ModuleNotFoundError as error:
        if error.name != "highspy":
            raise
        raise ImportError("userdp.optimal needs highspy to solve programs: pip install 'userdp[optimal]'") from None


def solve(world: World, ratio: float, delta: float, prior: Sequence[float] | None) -> Solution:
    """Propose an optimal table and multipliers.

    Raises
    ------
    RuntimeError
        When the solver finds no optimum; there always is one.
    """
    highspy = solver()
    constraints = _constraints(world, delta)
    pairs, n = np.array([pair[:2] for pair in constraints], dtype=np.int64).reshape(-1, 2), world.size
    count = len(pairs)
    slacks = count if delta else 0
    rows, most = _Rows(), float("inf")
    for row, (p, q) in enumerate(pairs.tolist()):
        rows.add([p, q, n + 1 + row][: 3 if delta else 2], [1.0, -ratio, -1.0][: 3 if delta else 2], -most, 0.0)
    if delta:
        start = 0
        for group in world.groups:
            own = range(start, start + len(group))
            rows.add([n + 1 + row for row in own], [float(weight) for _, _, weight in group], -most, delta * UNITS)
            start += len(group)
    losses: list[tuple[list[int], list[float]]] = [([], []) for _ in world.classes]
    sums: list[tuple[list[int], list[float]]] = [([], []) for _ in world.classes]
    for state, place, outputs in world.places():
        sums[state][0].append(place)
        sums[state][1].append(float(outputs.multiplicity))
        if outputs.loss:
            losses[state][0].append(place)
            losses[state][1].append(float(outputs.multiplicity * outputs.loss / world.largest))
    at = rows.count
    cost = np.zeros(n + 1 + slacks)
    if prior is None:
        cost[n] = 1.0
        for columns, values in losses:
            rows.add([*columns, n], [*values, -1.0], -most, 0.0)
    else:
        for (columns, values), weight in zip(losses, prior, strict=True):
            cost[columns] = np.array(values) * weight
    for columns, values in sums:
        rows.add(columns, values, UNITS, UNITS)

    problem = highspy.HighsLp()
    problem.num_col_, problem.num_row_ = len(cost), rows.count
    problem.col_cost_ = cost
    problem.col_lower_, problem.col_upper_ = np.zeros(len(cost)), np.full(len(cost), most)
    problem.row_lower_, problem.row_upper_ = np.array(rows.low), np.array(rows.high)
    problem.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    problem.a_matrix_.start_ = np.array(rows.starts, dtype=np.int32)
    problem.a_matrix_.index_ = np.array(rows.columns, dtype=np.int32)
    problem.a_matrix_.value_ = np.array(rows.values)

    # A solver with callbacks prints a banner before it can be silenced.
    highs = type("Silent", (highspy.Highs,), {"enableCallbacks": lambda self: self.silent()})()
    for name, value in {
        "output_flag": False,
        "threads": 1,
        "presolve": "off",
        "solver": "simplex",
        "simplex_dual_edge_weight_strategy": DEVEX,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
    }.items():
        highs.setOptionValue(name, value)
    highs.passModel(problem)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        status = highs.modelStatusToString(highs.getModelStatus())
        raise RuntimeError(f"the solver found no optimum ({status}); take another epsilon or delta, or a smaller world")
    found = highs.getSolution()
    x, dual = np.array(found.col_value) / UNITS, -np.array(found.row_dual)
    mu = None if prior is not None else np.maximum(dual[at : at + len(world.classes)], 0.0)
    return Solution(np.maximum(x[:n], 0.0), np.maximum(dual[:count], 0.0), mu)


def _constraints(world: World, delta: float) -> list[tuple[int, ...]]:
    """The constraints on pairs of unknowns, in the order in which multipliers are listed."""
    return [entry for group in world.groups for entry in group] if delta else list(world.pairs)


class _Rows:
    """The rows of a sparse matrix, and their bounds."""

    def __init__(self) -> None:
        self.starts, self.columns, self.values = [0], list[int](), list[float]()
        self.low, self.high = list[float](), list[float]()

    @property
    def count(self) -> int:
        return len(self.low)

    def add(self, columns: Sequence[int], values: Sequence[float], low: float, high: float) -> None:
        self.columns += columns
        self.values += values
        self.starts.append(len(self.columns))
        self.low.append(low)
        self.high.append(high)
