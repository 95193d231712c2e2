"""The mean of users' vectors as a problem of public numbers, and what a method for it is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from userdp.accounting.cost import PrivacyCost
from userdp.estimators.plan import Budget, BudgetUnit, Parts
from userdp.exact.epsilon import planned_epsilon
from userdp.exact.numbers import Epsilon, parse_level, short_repr
from userdp.exceptions import BudgetError
from userdp.means.accuracy import Accuracy
from userdp.mechanisms import DiscreteLaplace
from userdp.mechanisms.composed import AdaptiveMechanism

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

MAX_RESOLUTION = 2**30
LEAST_CONCENTRATION = 2.0**-40
"""In units of the ball of all records: bins are counted in 64 bits, and their ends are exact floats."""
LARGEST = 2.0**300
"""The largest length, whose inverse is the least: squares of distances and grid steps are then ordinary floats."""
NOISE_DISTANCE = Fraction(1, 2**90)
"""At least the total variation between the discrete Gaussian noise of one integer and its ideal distribution."""
MOST_SCALE = 2**24
"""Of discrete Laplace noise, in steps of its grid: the tables of larger scales do not fit in memory."""

Floats = npt.NDArray[np.float64]
Norm = Literal["l2", "max"]
Promise = Literal["none", "expected", "at most", "independent"]
"""What the concentration is: a guess; what the caller expects, and plans count on; the most that it can be; and that of
means of independent rows from one distribution."""


@dataclass(frozen=True)
class MeanProblem:
    """The public numbers of a mean: equal problems have equal plans."""

    n_users: int  # users without records included
    dimension: int  # d, columns
    max_norm: float  # records are within this distance of the center 0, in `norm`
    norm: Norm
    concentration: float | None  # expected L2 distance (root mean square) of a user's mean from the mean: utility only
    epsilon: Epsilon
    delta: Fraction  # 0 asks for pure differential privacy
    beta: float  # failure probability allowed to range finding, over all columns
    grid_resolution: int | None = None  # steps of the grid in a radius or interval, a power of two; None: the method's
    promise: Promise = "expected"  # what somebody vouches for
    rho: Fraction | None = None  # what this mean may spend, as one of several under one account in zCDP

    def __post_init__(self) -> None:
        if not 1 / LARGEST <= self.max_norm <= LARGEST:
            raise ValueError(f"max_norm must be from 2**-300 to 2**300; got {self.max_norm:.4g}")
        if self.grid_resolution is not None and self.grid_resolution > MAX_RESOLUTION:
            raise ValueError(f"grid_resolution must be at most 2**30; got {short_repr(self.grid_resolution)}")
        # Plans are kept by their problems, which numbers of all types must find.
        object.__setattr__(self, "epsilon", planned_epsilon(self.epsilon))

    def budget(
        self,
        parts: Parts,
        *,
        delta: Fraction = Fraction(0),
        rho: Fraction | None = None,
        distance: Fraction = Fraction(0),
        unit: BudgetUnit = "epsilon",
    ) -> Budget:
        """What a release for this problem costs. One that has a part of somebody else's rho promises no epsilon."""
        if self.rho is not None:
            return Budget(PrivacyCost(rho=self.rho if rho is None else rho, distance=distance), parts, unit)
        return Budget(PrivacyCost(self.epsilon, delta, rho=rho, distance=distance), parts, unit)

    def largest_rho(self, distance: Fraction) -> Fraction:
        """The most rho that may be spent by draws within a distance of ideal ones, in total variation."""
        return spendable_rho(self.epsilon, self.delta, distance) if self.rho is None else self.rho

    @property
    def ball(self) -> float:
        """The radius of the least L2 ball around 0 that has all records."""
        return self.max_norm if self.norm == "l2" else self.max_norm * self.dimension**0.5

    @property
    def possible_concentration(self) -> float:
        """The concentration, within what grids can tell and what can be: users may be anywhere if there is none."""
        concentration = self.ball if self.concentration is None else self.concentration
        return min(max(concentration, self.ball * LEAST_CONCENTRATION), 2 * self.ball)


def spendable_rho(epsilon: Epsilon, delta: Fraction, distance: Fraction) -> Fraction:
    """The most rho that may be spent by draws within a distance of ideal ones; an error names epsilon or delta."""
    from userdp.accounting import largest_rho

    try:
        return largest_rho(epsilon, delta, distance=distance)
    except ValueError:
        # A delta that is tiny, or an epsilon whose exponential makes the distance cost more than delta.
        most = math.floor(math.log(delta / (4 * distance))) if delta > 12 * distance > 0 else 0
        level = float(parse_level(epsilon))
        if not most or level <= most:
            raise
        raise ValueError(
            f"epsilon must be at most {most} at delta={float(delta):.3g} for Gaussian noise, whose distance from the "
            f"ideal one costs 1 + e^epsilon times itself; got {level:.6g}"
        ) from None


class MeanMethod(ABC):
    """One way to release the mean of users' vectors, planned from public numbers only: immutable."""

    name: str
    """As in ``method=`` of `WinsorizedMean`."""

    @abstractmethod
    def budget(self) -> Budget:
        """What a release costs, and on what it is spent."""

    @abstractmethod
    def predicted_error(self) -> float:
        """Root mean square of the L2 distance of the release from the mean of the users' means, by noise: public."""

    def rotated(self) -> bool:
        """Whether vectors are rotated by public random signs and the Walsh-Hadamard transform before `program`."""
        return False

    @abstractmethod
    def program(self, vectors: UserVectors) -> AdaptiveMechanism:
        """What is drawn; the outcome is a transcript of integers."""

    @abstractmethod
    def outcomes(self) -> Iterable[Hashable]:
        """All transcripts that are possible."""

    @abstractmethod
    def n_outcomes(self) -> int:
        """The number of possible transcripts."""

    @abstractmethod
    def mean(self, outcome: Any) -> Floats:
        """The mean that a transcript stands for, in the coordinates of `program` (rotated back by the caller).

        It may be outside of where records are: intervals are around it, and what is released is the nearest point.
        """

    @abstractmethod
    def accuracy(self, outcome: Any = None) -> Accuracy:
        """How wrong the release may be; where that hangs on the outcome, and there is none, before it is drawn."""

    def clipped_to(self, outcome: Any) -> tuple[Floats, float] | None:
        """The ball to which users' vectors were clipped; None where none was, or none is known."""
        return None

    def warnings(self) -> list[str]:
        """What a user should know before relying on the release, from public numbers: that n is too small, say."""
        return []


def laplace_noise(epsilon: Epsilon, sensitivity: int, bounds: tuple[int, int]) -> DiscreteLaplace:
    """Discrete Laplace noise; a BudgetError, before data are read, where its tables would be too large."""
    noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity, bounds=bounds)
    if noise.scale > MOST_SCALE:
        raise BudgetError(
            f"a sensitivity of {sensitivity} grid steps at epsilon={float(sensitivity / noise.scale):.3g} makes noise "
            f"of scale {noise.scale:.3g} (limit 2^24); take a smaller grid_resolution, or a larger epsilon"
        )
    return noise
