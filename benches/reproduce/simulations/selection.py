"""Selections of the most common item: by the exact distribution of releases and of reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from benches.reproduce.simulation import Floats, Point, between

from userdp.mechanisms import ApproximatePrivateMode, PlannedPrivateMode, PurePrivateMode
from userdp.mechanisms.mode import lost_by_coins
from userdp.planning.problem import NotPlanned
from userdp.protocols import local, shuffle

COMMON, RIVAL = 0, 1
WRITTEN = 64
"""Up to so many candidates permute-and-flip writes its exact distribution out."""


@dataclass(frozen=True)
class CentralSelection:
    """Users draw their items, and the probability of the wrong release given these is computed exactly."""

    method: str
    missed: Callable[[Point, int, Floats], Floats]
    """For so many users, of whom so many have the common item: how likely another one is released."""
    most_items: int = 2**20
    has_delta: bool = False
    least_alpha: float = 0.08
    least_epsilon: float = 0.1
    task: ClassVar[str] = "selection"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def point(self, rng: np.random.Generator) -> Point:
        """Numbers that a curator meets."""
        return {
            "m": int(rng.integers(1, 257)),
            "epsilon": between(rng, self.least_epsilon, 2),
            "delta": between(rng, 1e-9, 1e-4) if self.has_delta else 0,
            "alpha": between(rng, self.least_alpha, 0.8),
            "beta": between(rng, 0.02, 0.3),
            "n_items": int(between(rng, 2, self.most_items)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """The probability of another item, for each draw of the users."""
        if self.has_delta and not point["delta"]:
            raise NotPlanned("delta must be > 0 for it")
        having = rng.binomial(n_users, (1 + point["alpha"]) / 2, size=runs)
        different, places = np.unique(having, return_inverse=True)
        return self.missed(point, n_users, different.astype(np.float64))[places]


def _counts(n_users: int, having: float) -> dict[int, int]:
    return {COMMON: int(having), RIVAL: n_users - int(having)}


def _of_weights(point: Point, n_users: int, having: Floats) -> Floats:
    selection = PurePrivateMode(epsilon=point["epsilon"], n_items=point["n_items"])
    return np.array([1 - float(selection.probability(COMMON, _counts(n_users, k))) for k in having])


def _of_coins(point: Point, n_users: int, having: Floats) -> Floats:
    size = point["n_items"]
    if size > WRITTEN:  # by integrals that tests compare with the exact distribution
        return lost_by_coins(having, n_users - having, size - 2, float(point["epsilon"]) / 2)
    selection = PurePrivateMode(epsilon=point["epsilon"], n_items=size, mechanism="permute-and-flip")
    return np.array([1 - float(selection.probability(COMMON, _counts(n_users, k))) for k in having])


def _of_table(point: Point, n_users: int, having: Floats) -> Floats:
    if n_users > 1024:
        raise NotPlanned("tables are for up to 1024 users")
    selection = PlannedPrivateMode(
        epsilon=point["epsilon"], n_items=point["n_items"], n_users=n_users, agreement=(1 + point["alpha"]) / 2
    )
    return np.array([1 - float(selection.probability(COMMON, _counts(n_users, k))) for k in having])


def _of_threshold(point: Point, n_users: int, having: Floats) -> Floats:
    selection = ApproximatePrivateMode(epsilon=point["epsilon"], delta=point["delta"])
    surely = 2 * selection.half_width
    found = np.ones(len(having))
    for place, k in enumerate(having):
        if 2 * k - n_users > surely and k >= surely + 2:  # always, see the class
            found[place] = 0.0
        elif k:  # outputs are the items that somebody has, in order
            found[place] = 1 - float(selection.pmf(_counts(n_users, k)).probabilities[0])
    return found


@dataclass(frozen=True)
class ShuffledSelection:
    """Users draw their items, and the noise of all of them together is drawn."""

    method: str = "shuffled, histogram"
    task: str = "selection"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        """Numbers that an analyst behind a shuffler meets."""
        return {
            "m": int(rng.integers(1, 257)),
            "epsilon": between(rng, 0.25, 2),
            "delta": between(rng, 1e-9, 1e-4),
            "alpha": between(rng, 0.08, 0.8),
            "beta": between(rng, 0.02, 0.3),
            "n_items": int(between(rng, 2, 2**20)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """Whether the other item has the larger estimate, n less its messages; the common one loses ties."""
        if not point["delta"]:
            raise NotPlanned("delta must be > 0 for it")
        round_ = shuffle.Mode(
            epsilon=point["epsilon"], delta=point["delta"], n_items=point["n_items"], n_users=2, round_id="simulated"
        )
        having = rng.binomial(n_users, (1 + point["alpha"]) / 2, size=runs)
        noise = rng.negative_binomial(float(round_.r), 1 - float(round_.p), size=(2, runs))
        return (having - noise[0] <= n_users - having - noise[1]).astype(float)


@dataclass(frozen=True)
class BitwiseSelection:
    """Users draw their items, of which the other one has all other bits, and their reports of each bit are drawn."""

    method: str = "local, bit by bit"
    task: str = "selection"
    root_mean_square: bool = False
    exact: bool = True

    def point(self, rng: np.random.Generator) -> Point:
        """Numbers that a collector of reports meets."""
        return LOCAL[0].point(rng) | {"n_items": int(between(rng, 2, 2**20))}

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """Whether a bit has more reports for the wrong value; where it has as many, the right one wins half of them."""
        bits = max(1, (point["n_items"] - 1).bit_length())
        keep = float(
            local.BitwiseMajority(
                epsilon=point["epsilon"], n_bits=bits, n_users=bits, round_id="simulated"
            ).keep_probability
        )
        share = (1 + point["alpha"]) / 2
        right = share * keep + (1 - share) * (1 - keep)
        of_bit = np.full(bits, n_users // bits) + (np.arange(bits) < n_users % bits)
        lead = 2 * rng.binomial(of_bit, right, size=(runs, bits)) - of_bit
        return 1 - np.prod((1 + np.sign(lead)) / 2, axis=1)


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
    most_items: int = 13
    task: ClassVar[str] = "selection"
    root_mean_square: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def point(self, rng: np.random.Generator) -> Point:
        """Numbers that a collector of reports meets."""
        return {
            "m": int(rng.integers(1, 257)),
            "epsilon": between(rng, 0.25, 4),
            "delta": 0,
            "alpha": between(rng, 0.1, 0.8),
            "beta": between(rng, 0.02, 0.3),
            "n_items": int(between(rng, 2, self.most_items)),
        }

    def losses(self, point: Point, n_users: int, runs: int, rng: np.random.Generator) -> Floats:
        """How likely another item is selected: the first of those with the most reports, the items in any order."""
        if point["n_items"] > 4 * self.most_items:
            raise NotPlanned(f"simulated for up to {4 * self.most_items} items only, as tables of reports are large")
        common, rival, supports = _reports(self.protocol, point["epsilon"], point["n_items"])
        having = rng.binomial(n_users, (1 + point["alpha"]) / 2, size=runs)
        sent = rng.multinomial(having, common / common.sum()) + rng.multinomial(n_users - having, rival / rival.sum())
        support = sent @ supports
        most = support == support.max(axis=1, keepdims=True)
        return 1 - most[:, -1] / most.sum(axis=1)


LOCAL = (
    LocalSelection("local, randomized response", local.KRandomizedResponse),
    LocalSelection("local, Hadamard response", local.HadamardResponse, 1000),
    LocalSelection("local, subset selection", local.SubsetSelection),
)
SIMULATIONS = (
    CentralSelection("central, exponential", _of_weights),
    CentralSelection("central, permute-and-flip", _of_coins),
    CentralSelection("central, threshold", _of_threshold, has_delta=True),
    CentralSelection("central, planned table", _of_table, least_alpha=0.2, least_epsilon=0.25),
    CentralSelection("one record per person", _of_coins),
    ShuffledSelection(),
    *LOCAL,
    BitwiseSelection(),
)
