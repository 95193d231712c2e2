"""What all private descents share: the public problem, the rounds, and where users' data is touched.

A descent is a public algorithm that asks one question again and again: the mean gradient of users' losses at a public
theta. Only `MeanStep.draw` sees data, through `GradientRows`, and it returns integers that were drawn. All else is a
function of public numbers and of those integers: theta can be computed again from the transcript.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from userdp.accounting.cost import PrivacyCost
from userdp.estimators.plan import Budget, BudgetUnit, Parts
from userdp.exact.epsilon import planned_epsilon
from userdp.exact.numbers import Epsilon, check_count, counted, short_repr
from userdp.exceptions import BudgetError
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.constraints import LEAST, Constraint
from userdp.optimization.gradients import GradientRows
from userdp.optimization.losses import Loss

Floats = npt.NDArray[np.float64]
State = TypeVar("State")

MOST_ROUNDS = 2**20
"""More rounds than this are refused."""


def number_of_rounds(value: Any, name: str) -> int:
    """A public number of rounds, or an error that names it."""
    given = check_count(value, name)
    if given > MOST_ROUNDS:
        raise BudgetError(
            f"{name} must be at most 2**20, as each round reads all rows; got {short_repr(value)}: averages of "
            "fewer rounds "
            "are as good, because each then has less noise"
        )
    return given


def optional_rounds(value: Any, name: str) -> None:
    """Refuse what is neither None nor a `number_of_rounds`."""
    if value is not None:
        number_of_rounds(value, name)


@dataclass(frozen=True)
class DescentProblem:
    """The public numbers of a minimization.

    Attributes
    ----------
    n_users : int
        n, users without rows included.
    dimension : int
        d, entries of theta; with an intercept one more than there are columns.
    loss : Loss
        Of a row; a user's loss is the mean over that user's rows, and what is minimized the mean over users. It knows
        its bound of residuals (`Loss.within`).
    constraint : Constraint
    start : tuple of float
        Where the descent starts, in the constraint.
    bound : float
        Rows are scaled to this L2 norm where they are longer, the constant of an intercept included.
    m : int
        Rows that a user is expected to have.
    epsilon : privacy parameter
    delta : Fraction
    regularization : float
        lambda of the public term lambda |theta - anchor|^2 / 2. Its gradient is added after the private mean, so that
        no one's gradient gets longer by it.
    anchor : tuple of float
    fit_intercept : bool
        Whether the last entry of theta belongs to a constant 1.
    """

    n_users: int
    dimension: int
    loss: Loss
    constraint: Constraint
    start: tuple[float, ...]
    bound: float
    m: int
    epsilon: Epsilon
    delta: Fraction
    regularization: float = 0.0
    anchor: tuple[float, ...] | None = None
    fit_intercept: bool = False

    def __post_init__(self) -> None:
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
        """What a release for this problem costs."""
        return Budget(PrivacyCost(self.epsilon, delta, rho=rho, distance=distance), parts, unit)

    @property
    def lipschitz(self) -> float:
        """G of the loss without the regularizer: no user's mean gradient is longer."""
        return self.loss.lipschitz(self.bound)

    @property
    def smoothness(self) -> float:
        """H of the loss with the regularizer."""
        return self.loss.smoothness(self.bound) + self.regularization

    @property
    def radius(self) -> float:
        """R: no point of the constraint is farther from the start. Above 0 even where the constraint is one point."""
        middle = self.constraint.middle(self.dimension)
        reach = self.constraint.reach(self.dimension) + float(np.linalg.norm(np.array(self.start) - middle))
        return max(reach, LEAST)

    def regularizer(self, theta: Floats) -> Floats:
        """The gradient of the regularizer: public."""
        return self.regularization * (theta if self.anchor is None else theta - np.array(self.anchor))


class Optimizer(ABC, Generic[State]):
    """A public first-order method: it sees its own state and private answers, never data."""

    rounds: int
    """How many gradients it asks for: fixed in advance."""

    @abstractmethod
    def begin(self) -> State:
        """The state before the first round."""

    @abstractmethod
    def query(self, state: State) -> Floats:
        """Where the next gradient is wanted."""

    @abstractmethod
    def update(self, state: State, gradient: Floats) -> State:
        """The state after the answer."""

    @abstractmethod
    def aggregate(self, state: State) -> Floats:
        """The result, from the last state."""


class MeanStep(ABC):
    """One private answer: the mean over users of the gradients at a public theta."""

    draws: int = 1
    """How many draws it takes."""

    @abstractmethod
    def draw(self, round: int, rows: GradientRows, theta: Floats, draw: Sampler) -> Hashable:
        """What is drawn in a round, from 0: integers, or tuples of them. The only step that sees data."""

    @abstractmethod
    def estimate(self, round: int, theta: Floats, answer: Any) -> Floats:
        """The gradient that what was drawn stands for; public."""

    @abstractmethod
    def answers(self, round: int) -> Iterable[Hashable]:
        """All that can be drawn in a round."""

    @abstractmethod
    def n_answers(self, round: int) -> int:
        """How many those are."""

    def warnings(self) -> list[str]:
        """What should be known before relying on the answers, from public numbers."""
        return []


class DescentPlan(ABC):
    """One way to solve a problem, planned from public numbers only: equal problems give equal plans."""

    draws: int
    """How many draws it takes, for progress bars: public."""

    @abstractmethod
    def budget(self) -> Budget:
        """What a fit costs, and on what it is spent."""

    @abstractmethod
    def program(self, rows: GradientRows) -> AdaptiveMechanism:
        """What is drawn; the outcome is a transcript of integers."""

    @abstractmethod
    def theta(self, outcome: Any) -> Floats:
        """The result that a transcript stands for."""

    @abstractmethod
    def outcomes(self) -> Iterable[Hashable]:
        """All transcripts that are possible."""

    @abstractmethod
    def n_outcomes(self) -> int:
        """How many there are."""

    def warnings(self) -> list[str]:
        """What should be known before relying on the result, from public numbers: that n is too small, say."""
        return []


class Rounds(DescentPlan):
    """An optimizer whose every question is answered by a step. The transcript is the tuple of the answers."""

    def __init__(self, problem: DescentProblem, optimizer: Optimizer[Any], step: MeanStep, budget: Budget) -> None:
        self.problem = problem
        self.optimizer = optimizer
        self.step = step
        self.rounds = optimizer.rounds
        self.draws = self.rounds * step.draws
        self._budget = budget

    def budget(self) -> Budget:
        return self._budget

    def program(self, rows: GradientRows) -> AdaptiveMechanism:
        def transcript(draw: Sampler) -> Hashable:
            answers: list[Hashable] = []
            state = self.optimizer.begin()
            for round in range(self.rounds):
                theta = self.optimizer.query(state)
                answers.append(self.step.draw(round, rows, theta, draw))
                state = self._updated(state, round, theta, answers[-1])
            return tuple(answers)

        return transcript

    def theta(self, outcome: Any) -> Floats:
        state = self.optimizer.begin()
        for round, answer in enumerate(outcome):
            state = self._updated(state, round, self.optimizer.query(state), answer)
        return self.optimizer.aggregate(state)

    def _updated(self, state: Any, round: int, theta: Floats, answer: Hashable) -> Any:
        gradient = self.step.estimate(round, theta, answer) + self.problem.regularizer(theta)
        return self.optimizer.update(state, gradient)

    def outcomes(self) -> Iterator[Hashable]:
        return product(*(self.step.answers(round) for round in range(self.rounds)))

    def n_outcomes(self) -> int:
        return counted(*((self.step.n_answers(round), 1) for round in range(self.rounds)))

    def warnings(self) -> list[str]:
        return self.step.warnings()
