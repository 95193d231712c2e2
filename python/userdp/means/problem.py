"""The mean of users' vectors as a problem of public numbers, and what a method for it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from userdp.accounting.cost import PrivacyCost
from userdp.estimators.plan import Budget, BudgetUnit, Parts
from userdp.exact.epsilon import planned_epsilon
from userdp.exact.numbers import Epsilon, short_repr
from userdp.exceptions import BudgetError
from userdp.means.accuracy import Accuracy
from userdp.means.gaussian_account import GaussianAccount, gaussian_account, gaussian_accounts
from userdp.mechanisms import DiscreteGaussian, DiscreteLaplace
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

MAX_RESOLUTION = 2**30
LEAST_CONCENTRATION = 2.0**-40
"""In units of the ball of all records: bins are counted in 64 bits, and their ends are exact floats."""
LARGEST = 2.0**300
"""The largest length, whose inverse is the least: squares of distances and grid steps are then ordinary floats."""
MOST_SCALE = 2**24
"""Of discrete Laplace noise, in steps of its grid: the tables of larger scales do not fit in memory."""

Floats = npt.NDArray[np.float64]
Norm = Literal["l2", "max"]
Promise = Literal["none", "expected", "at most", "independent"]
"""What the concentration is: a guess; what the caller expects, and plans count on; the most that it can be; and that of
means of independent rows from one distribution."""


Objective = Literal["expected", "worst"]


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
    objective: Objective = "expected"  # which error is least, under a promise
    part: GaussianAccount | None = None  # what this mean may spend, as one of several under one account
    in_rho: bool = False  # whether the account must be zero-concentration, as a ledger asks that counts rho

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
        """What a release for this problem costs. One that has a part of somebody else's account promises no epsilon."""
        if self.part is not None:
            own = self.part.cost(distance) if rho is None else PrivacyCost(rho=rho, distance=distance)
            return Budget(own, parts, unit)
        return Budget(PrivacyCost(self.epsilon, delta, rho=rho, distance=distance), parts, unit)

    def account(self, integers: int, least_reach: int) -> GaussianAccount:
        """What Gaussian noise may spend, for so many noisy integers and radii of that many steps at least."""
        if self.part is not None:
            return self.part
        return gaussian_account(self.epsilon, self.delta, integers, **self._account_of(least_reach))

    def accounts(self, integers: int, least_reach: int) -> tuple[GaussianAccount, ...]:
        """All accounts that hold, the one with less noise first."""
        return gaussian_accounts(self.epsilon, self.delta, integers, **self._account_of(least_reach))

    def _account_of(self, least_reach: int) -> dict[str, Any]:
        return {"sensitivity": self.grid_resolution or least_reach, "in_rho": self.in_rho}

    @property
    def rho(self) -> Fraction | None:
        """The part of an account in zero-concentration, which pure noise may spend, too."""
        if self.part is None:
            return None
        if self.part.unit != "rho":
            raise ValueError("pure noise takes no part of an account of Gaussian noise")
        return self.part.amount

    def gaussian_budget(
        self, account: GaussianAccount, shares: Mapping[str, Fraction | int], distance: Fraction
    ) -> Budget:
        """What a release costs that spends shares of an account."""
        if self.part is not None:
            return account.budget(shares, distance)
        return account.budget(shares, distance, self.epsilon, self.delta)

    @property
    def ball(self) -> float:
        """The radius of the least L2 ball around 0 that has all records."""
        return self.max_norm if self.norm == "l2" else self.max_norm * self.dimension**0.5

    @property
    def possible_concentration(self) -> float:
        """The concentration, within what grids can tell and what can be: users may be anywhere if there is none."""
        concentration = self.ball if self.concentration is None else self.concentration
        return min(max(concentration, self.ball * LEAST_CONCENTRATION), 2 * self.ball)


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


@dataclass(frozen=True)
class SumNoise:
    """Exact noise on the sums of integers of each column."""

    mechanism: DiscreteLaplace | DiscreteGaussian

    @property
    def gaussian(self) -> bool:
        """Whether all columns get their noise in one draw, to integers without bounds."""
        return isinstance(self.mechanism, DiscreteGaussian)

    def drawn(self, draw: Sampler, sums: tuple[int, ...]) -> tuple[int, ...]:
        """The sums with noise."""
        return draw(self.mechanism, sums) if self.gaussian else tuple(draw(self.mechanism, each) for each in sums)

    def released(self, largest: int) -> range:
        """What a released sum can be when no sum is above `largest` in absolute value."""
        if isinstance(self.mechanism, DiscreteGaussian):
            return range(-largest - self.mechanism.support, largest + self.mechanism.support + 1)
        low, high = self.mechanism.bounds
        return range(low, high + 1)


def laplace_noise(epsilon: Epsilon, sensitivity: int, bounds: tuple[int, int]) -> DiscreteLaplace:
    """Discrete Laplace noise; a BudgetError, before data are read, where its tables would be too large."""
    noise = DiscreteLaplace(epsilon=epsilon, sensitivity=sensitivity, bounds=bounds)
    if noise.scale > MOST_SCALE:
        raise BudgetError(
            f"a sensitivity of {sensitivity} grid steps at epsilon={float(sensitivity / noise.scale):.3g} makes noise "
            f"of scale {noise.scale:.3g} (limit 2^24); take a smaller grid_resolution, or a larger epsilon"
        )
    return noise
