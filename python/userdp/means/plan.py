"""What a method for the mean of users' vectors is: planned from public numbers, drawn as one program."""

from __future__ import annotations

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
from userdp.exact.numbers import Epsilon, short_repr
from userdp.mechanisms.composed import AdaptiveMechanism

if TYPE_CHECKING:
    from userdp.users.vectors import UserVectors

MOST_STEPS = 2**30
LEAST_SPREAD = 2.0**-40
"""Of the ball of all rows: bins are counted in 64 bits, and their ends are exact floats."""
LARGEST = 2.0**300
"""What lengths, and their inverses, may be: squares of distances and steps of grids are then ordinary floats."""

Floats = npt.NDArray[np.float64]
Norm = Literal["l2", "max"]


@dataclass(frozen=True)
class MeanProblem:
    """The public numbers of a mean.

    Attributes
    ----------
    n_users : int
        Users, those without rows included.
    dimension : int
        d, columns.
    bound : float
        Rows are within this distance of the center 0: of the L2 ball for norm "l2", in every column for "max".
    norm : {"l2", "max"}
    spread : float
        How far a user's mean is expected from the mean of all, in L2 (root mean square): a promise about utility only.
    epsilon : privacy parameter
    delta : Fraction
        0 asks for pure differential privacy.
    beta : float
        Failure probability allowed to range finding, over all coordinates.
    steps : int or None
        Resolution: how many steps of the public grid a radius, or an interval, has, a power of two; None is for the
        method to choose.
    private_radius : bool
        Whether a part of the budget goes into finding the spread.
    rho : Fraction or None
        What this mean may spend where it is one of several under one account in zCDP, which epsilon and delta are of.
    """

    n_users: int
    dimension: int
    bound: float
    norm: Norm
    spread: float
    epsilon: Epsilon
    delta: Fraction
    beta: float
    steps: int | None = None
    private_radius: bool = False
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        if not 1 / LARGEST <= self.bound <= LARGEST:
            raise ValueError(f"bound must be from 2**-300 to 2**300; got {self.bound:.4g}")
        if self.steps is not None and self.steps > MOST_STEPS:
            raise ValueError(f"steps must be at most 2**30; got {short_repr(self.steps)}")
        # Plans are kept by their problems, which numbers of all types are to find.
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
        """The most rho that may be spent when draws are within a distance of ideal ones, in total variation."""
        from userdp.accounting import largest_rho

        return largest_rho(self.epsilon, self.delta, distance=distance) if self.rho is None else self.rho

    @property
    def ball(self) -> float:
        """The radius of the least L2 ball around 0 that has all rows."""
        return self.bound if self.norm == "l2" else self.bound * self.dimension**0.5

    @property
    def possible_spread(self) -> float:
        """The spread, within what grids can tell and what can be."""
        return min(max(self.spread, self.ball * LEAST_SPREAD), 2 * self.ball)


class MeanMethod(ABC):
    """One way to release the mean of users' vectors, planned from public numbers only.

    Subclasses are immutable: equal problems give equal plans, so that what is drawn, what is accounted for and what is
    computed from the draws agree.
    """

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
        """How many there are."""

    @abstractmethod
    def mean(self, outcome: Any) -> Floats:
        """The release that a transcript stands for, in the coordinates of `program` (rotated back by the caller)."""

    def warnings(self) -> list[str]:
        """What a user should know before relying on the release, from public numbers: that n is too small, say."""
        return []
