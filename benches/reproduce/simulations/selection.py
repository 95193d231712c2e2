"""Selections of the most common item: by the exact distribution of releases and of reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from benches.reproduce.simulation import Floats, Point

from userdp.mechanisms import ApproximatePrivateMode, PurePrivateMode
from userdp.protocols import local

COMMON, RIVAL = 0, 1


def drawn_between(rng: np.random.Generator, low: float, high: float) -> float:
    """Of a range, evenly in the logarithm, with three digits."""
    return float(f"{np.exp(rng.uniform(np.log(low), np.log(high))):.3g}")


@dataclass(frozen=True)
class CentralSelection:
    """Users draw their items, and the probability of the wrong release given these is computed exactly."""

    method: str
    make: Callable[[Point], Any]
    most_items: int
    has_delta: bool = False
    task: ClassVar[str] = "selection"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def point(self, rng: np.random.Generator) -> Point:
        """Numbers that a curator meets."""
        return {
            "m": int(rng.integers(1, 257)),
            "epsilon": drawn_between(rng, 0.1, 2),
            "delta": drawn_between(rng, 1e-9, 1e-4) if self.has_delta else 0,
            "alpha": drawn_between(rng, 0.08, 0.8),
            "beta": drawn_between(rng, 0.02, 0.3),
            "n_items": int(drawn_between(rng, 2, self.most_items)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """The probability of another item, for each draw of the users."""
        having = rng.binomial(n_users, (1 + point["alpha"]) / 2, size=runs)
        selection = self.make(point)
        right = {k: self._right(selection, {COMMON: k, RIVAL: n_users - k}) for k in set(having.tolist())}
        return np.array([1 - right[k] for k in having.tolist()])

    def _right(self, selection: Any, counts: dict[int, int]) -> float:
        if not self.has_delta:
            return float(selection.probability(COMMON, counts))
        # Outputs are the items that somebody has, in order.
        return float(selection.pmf(counts).probabilities[0]) if counts[COMMON] else 0.0


@lru_cache(maxsize=64)
def _reports(protocol: type, epsilon: float, n_items: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """How likely each symbol is for the common item and for the rival, and which items each supports."""
    made = protocol(epsilon=epsilon, n_items=n_items, n_users=1, round_id="simulated")
    laws = [np.asarray(made.pmf(item).probabilities, dtype=float) for item in (n_items - 1, 0)]
    supports = np.array(
        [[made.supports(symbol, item) for item in range(n_items)] for symbol in made.pmf(0).outputs], dtype=np.int64
    )
    return laws[0], laws[1], supports


@dataclass(frozen=True)
class LocalSelection:
    """Users draw their items, and their reports are drawn together, by how many send each symbol."""

    method: str
    protocol: type
    task: ClassVar[str] = "selection"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def point(self, rng: np.random.Generator) -> Point:
        """Numbers that a collector of reports meets."""
        return {
            "m": int(rng.integers(1, 257)),
            "epsilon": drawn_between(rng, 0.25, 4),
            "delta": 0,
            "alpha": drawn_between(rng, 0.1, 0.8),
            "beta": drawn_between(rng, 0.02, 0.3),
            "n_items": int(drawn_between(rng, 2, 13)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """Whether another item has the most reports; the common one is last, and loses ties."""
        common, rival, supports = _reports(self.protocol, point["epsilon"], point["n_items"])
        having = rng.binomial(n_users, (1 + point["alpha"]) / 2, size=runs)
        sent = rng.multinomial(having, common / common.sum()) + rng.multinomial(n_users - having, rival / rival.sum())
        won = np.argmax(sent @ supports, axis=1) == point["n_items"] - 1
        return (~won).astype(float)


def _pure(mechanism: Any) -> Callable[[Point], Any]:
    return lambda point: PurePrivateMode(epsilon=point["epsilon"], n_items=point["n_items"], mechanism=mechanism)


SIMULATIONS = (
    CentralSelection("central, exponential", _pure("exponential"), 2**20),
    CentralSelection("central, permute-and-flip", _pure("permute-and-flip"), 33),
    CentralSelection(
        "central, threshold",
        lambda point: ApproximatePrivateMode(epsilon=point["epsilon"], delta=point["delta"]),
        2**20,
        has_delta=True,
    ),
    LocalSelection("local, randomized response", local.KRandomizedResponse),
    LocalSelection("local, Hadamard response", local.HadamardResponse),
    LocalSelection("local, subset selection", local.SubsetSelection),
)
