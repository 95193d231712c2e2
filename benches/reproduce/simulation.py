"""One method on one problem: the losses of runs, and the least number of users that reaches an accuracy."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Point = Mapping[str, Any]
"""m, epsilon, delta, alpha and beta, and the parameters of the task."""

SEED = 20261123
"""Of all points and runs. It was committed before anything was fitted."""
MOST_USERS = 2**22


class Simulation(Protocol):
    """How a method does on users of one kind."""

    task: str
    method: str
    root_mean_square: bool
    """Whether alpha is a root mean square error, and not kept with probability 1 - beta."""

    def point(self, rng: np.random.Generator) -> Point:
        """Draw a point within the range that is to be calibrated."""
        ...

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """Draw users and a release, so many times or fewer: the loss of each run, or its expected failure.

        A simulation that knows the distribution of a release exactly may return, for each draw of users, the
        probability that the loss is above alpha, as numbers from 0 to 1 with `exact` set.
        """
        ...

    exact: bool


def stream(*words: object) -> np.random.Generator:
    """A generator of its own for a purpose, which follows from the seed and the words."""
    return np.random.default_rng([SEED, *(zlib.crc32(repr(word).encode()) for word in words)])


def points(simulation: Simulation, purpose: str, number: int) -> list[Point]:
    """The points of a purpose ("fit", "test"): drawn from the seed, whatever is found."""
    rng = stream(simulation.task, simulation.method, purpose)
    return [simulation.point(rng) for _ in range(number)]


def between(rng: np.random.Generator, low: float, high: float) -> float:
    """A number of a range, evenly on a logarithmic scale, with three digits."""
    return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.3g}")


def whole(rng: np.random.Generator, low: int, high: int) -> int:
    """An integer of a range, evenly on a logarithmic scale."""
    return min(max(round(math.exp(rng.uniform(math.log(low), math.log(high)))), low), high)


AT_AN_END = 0.2
"""How often `ends` takes the least number of a range, and how often the largest one."""


def ends(rng: np.random.Generator, low: float, high: float, draw: Callable[[], float]) -> float:
    """What is drawn within a range, or often enough an end of it that the points reach from one to the other."""
    at = rng.random()
    drawn = draw()
    return low if at < AT_AN_END else high if at >= 1 - AT_AN_END else drawn


@dataclass(frozen=True)
class Need:
    """The number of users that an accuracy needs, found by simulation."""

    n_users: float
    standard_error: float
    runs: int


def failure(
    simulation: Simulation, point: Point, n_users: int, runs: int, rng: np.random.Generator
) -> tuple[float, float]:
    """What must be at most 1, and its error: the share of misses over beta, or the mean square over alpha squared."""
    ratios = _ratios(simulation, point, n_users, runs, rng)
    return float(ratios.mean()), float(ratios.std() / math.sqrt(len(ratios)))


def _ratios(simulation: Simulation, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
    """Of each run."""
    found = simulation.losses(point, n_users, runs, rng)
    if simulation.root_mean_square:
        return np.asarray((found / point["alpha"]) ** 2)
    misses = found if simulation.exact else (found > point["alpha"]).astype(float)
    return np.asarray(misses / point["beta"])


def users_needed(simulation: Simulation, point: Point, runs: int, purpose: str, start: int = 64) -> Need:
    """The n at which the failure comes to what is accepted, by a line through its logarithm around there."""
    rng = stream(simulation.task, simulation.method, purpose, sorted(point.items()))
    few = max(20, runs // 5)
    low, high, n = 1, 0, start
    while True:  # the first power of the factor that is enough, and the last that is not
        enough = failure(simulation, point, n, few, rng)[0] <= 1
        if enough:
            high = n
            if n == 1 or low >= n // 2:
                break
            n = max(1, n // 2)
            if n <= low:
                break
        else:
            low = n
            if high:
                break
            n *= 2
            if n > MOST_USERS:
                raise ValueError(f"more than {MOST_USERS} users are needed at {dict(point)}")
    sizes = sorted({max(1, round(low * (high / low) ** (step / 4))) for step in range(-1, 6)})
    seen, done = [], runs
    for n in sizes:
        ratios = _ratios(simulation, point, n, runs, rng)
        done = min(done, len(ratios))
        seen.append((n, float(ratios.mean()), float(ratios.std() / math.sqrt(len(ratios)))))
    return Need(*_crossing(seen), done)


def _crossing(seen: list[tuple[int, float, float]]) -> tuple[float, float]:
    """Where a line through log(failure) against log(n) has the value 0, and how surely."""
    used = [(math.log(n), math.log(ratio), max(error / ratio, 1e-3)) for n, ratio, error in seen if 0.05 < ratio < 20]
    if len(used) < 2:
        best = min(seen, key=lambda row: abs(math.log(max(row[1], 1e-9))))
        return float(best[0]), float(best[0]) / 4
    x, y, spreads = (np.array(column) for column in zip(*used, strict=True))
    # What is near the crossing tells most.
    weight = 1 / (spreads**2 + (y / 4) ** 2)
    center = np.average(x, weights=weight)
    slope = np.average((x - center) * (y - np.average(y, weights=weight)), weights=weight) / max(
        np.average((x - center) ** 2, weights=weight), 1e-12
    )
    slope = min(slope, -0.3)
    at = center - np.average(y, weights=weight) / slope
    # Where failures fall steeply no line fits: the crossing is between what is surely too few and surely enough.
    last = max((place for place, (_, ratio, error) in enumerate(seen) if ratio - 3 * error > 1), default=-1)
    later = (row for row in seen[last + 1 :] if row[1] + 3 * row[2] < 1)
    first = next(later, None)
    if last >= 0 and first is not None:
        (n, above, _), (larger, below, _) = seen[last], first
        if not math.log(n) <= at <= math.log(larger):
            at = math.log(n) + math.log(above) / math.log(above / max(below, 1e-9)) * math.log(larger / n)
    spread = math.sqrt(1 / float(np.sum(1 / spreads**2))) / abs(slope)
    return math.exp(at), math.exp(at) * spread
