"""Numbers of users by simulation: constants that were fitted, the range that was simulated, and the error that is left.

A calibrated number is a combination of a method's terms (numbers of users but for constants) with constants of a fit to
simulations. The file of a task in `calibrations` has them, and where simulations of points that the fit has not seen
lie. `benches/reproduce` makes the files.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from userdp.planning.problem import BASELINES, Method, NotSimulated, Problem, Terms

FAR = 10
"""Numbers are extrapolated up to so many times beyond the range simulated."""
WIDER = 2
"""The error that is stated for an extrapolated number, in those of the points simulated."""


@dataclass(frozen=True)
class Calibration:
    """What simulations say of one method.

    Attributes
    ----------
    constants : mapping from str to float
        By the names of the method's terms.
    ranges : mapping from str to sequence
        For each public number: the least and the largest one, or the words, that were simulated.
    error : float
        The largest relative error of the fit, at all points simulated.
    points, runs : int
        How many points were simulated, and runs at each number of users.
    seed : int
    """

    constants: Mapping[str, float]
    ranges: Mapping[str, tuple[Any, ...]]
    error: float
    points: int
    runs: int
    seed: int

    def beyond(self, problem: Problem, unused: Set[str]) -> tuple[str, ...]:
        """Which numbers of a problem are outside of what was simulated, in words; far outside is refused."""
        found = []
        for name, value in problem.sizes.items():
            span = self.ranges.get(name)
            if span is None or name in unused:
                continue
            if name == "delta" and set(span) == {0}:
                continue  # what is enough for pure privacy is enough for less
            if isinstance(value, (bool, str)):
                if value not in span:
                    raise NotSimulated(f"simulated for {name} {' or '.join(map(str, span))} only")
                continue
            low, high = min(span), max(span)
            if low * (1 - 1e-9) <= value <= high * (1 + 1e-9):
                continue
            # A number like a share may go on from small ones to 0.
            if not (low / FAR <= value <= high * FAR or low - (high - low) <= value <= high):
                raise NotSimulated(f"simulated for {name} from {low:g} to {high:g} only")
            found.append(f"{name} from {low:g} to {high:g}")
        return tuple(found)

    def predict(self, terms: Terms) -> float:
        """The number of users with which half of such simulations would do."""
        return math.fsum(self.constants[name] * terms[name] for name in self.constants)


@cache
def calibrations(task: str) -> Mapping[str, Calibration]:
    """All calibrated methods of a task, by name."""
    file = files("userdp.planning").joinpath("calibrations").joinpath(f"{task}.json")
    if not file.is_file():
        return {}
    written = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: Calibration(
            constants=entry["constants"],
            ranges={parameter: tuple(span) for parameter, span in entry["ranges"].items()},
            error=entry["error"],
            points=entry["points"],
            runs=entry["runs"],
            seed=entry["seed"],
        )
        for name, entry in written["methods"].items()
    }


def calibration_of(method: Method, problem: Problem) -> tuple[Calibration, tuple[str, ...]]:
    """The calibration of a method, and what it was simulated for where the problem is outside of that."""
    found = calibrations(problem.task).get(method.name)
    if found is None or method.terms is None:
        raise NotSimulated("not simulated")
    beyond = found.beyond(method.standard(problem), {"m"} if method.baseline == BASELINES[0] else set())
    return found, beyond
