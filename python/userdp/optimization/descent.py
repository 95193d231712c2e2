"""What all private descents share: the public problem, the rounds, where users' data is touched, and the estimators.

A descent is a public algorithm that asks one question again and again: the mean gradient of users' losses at a public
theta. Only `MeanStep.draw` sees data, through `GradientRows`, and it returns integers that were drawn. All else is a
function of public numbers and of those integers: theta can be computed again from the transcript.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.accounting.budget_hook import counted_in_rho
from userdp.estimators import fields
from userdp.estimators.base import TargetEstimator, UserLevelEstimator, read_bounds
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ReleasePlan, listed
from userdp.exact.epsilon import planned_epsilon
from userdp.exact.numbers import Delta, Epsilon, check_count, check_kind, counted, parse_delta, short_repr
from userdp.exceptions import BudgetError
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.constraints import LEAST, Constraint, finite, finite_vector, length
from userdp.optimization.losses import GradientRows, Loss
from userdp.optimization.schedules import Progress, ProjectedDescent
from userdp.public_randomness import PublicSeed
from userdp.runtime import progress_bar
from userdp.users.table import UserTable

Floats = npt.NDArray[np.float64]

MOST_ROUNDS = 2**20
"""More rounds than this are refused."""


def number_of_rounds(value: Any, name: str) -> int:
    """A public number of rounds, or an error that names it."""
    rounds = check_count(value, name)
    if rounds > MOST_ROUNDS:
        raise BudgetError(
            f"{name} must be at most 2**20, as each round reads all rows; got {short_repr(value)}: averages of "
            "fewer rounds are as good, because each then has less noise"
        )
    return rounds


def optional_rounds(value: Any, name: str) -> None:
    """Refuse what is neither None nor a `number_of_rounds`."""
    if value is not None:
        number_of_rounds(value, name)


@dataclass(frozen=True)
class DescentProblem:
    """The public numbers of a minimization: equal problems have equal plans."""

    n_users: int  # n, users without records included
    dimension: int  # d, entries of theta: with an intercept one more than there are columns
    loss: Loss  # of a record; a user's loss is the mean over that user's, and the mean over users is minimized
    constraint: Constraint
    start: tuple[float, ...]  # where the descent starts, in the constraint
    max_norm: float  # rows are scaled to this L2 norm where they are longer, the constant of an intercept included
    m: int  # records that a user is expected to have
    epsilon: Epsilon
    delta: Fraction
    # lambda of the public term lambda |theta - anchor|^2 / 2. Its gradient is added after the private mean, so that no
    # one's gradient gets longer by it.
    regularization: float = 0.0
    anchor: tuple[float, ...] | None = None
    fit_intercept: bool = False  # whether the last entry of theta belongs to a constant 1
    in_rho: bool = False  # whether noise is to be accounted for in zero-concentration, as a ledger asks that counts rho

    def __post_init__(self) -> None:
        # Plans are kept by their problems, which numbers of all types are to find.
        object.__setattr__(self, "epsilon", planned_epsilon(self.epsilon))

    @property
    def lipschitz(self) -> float:
        """G of the loss without the regularizer: no user's mean gradient is longer."""
        return self.loss.lipschitz(self.max_norm)

    @property
    def smoothness(self) -> float:
        """H of the loss with the regularizer."""
        return self.loss.smoothness(self.max_norm) + self.regularization

    @property
    def radius(self) -> float:
        """R: no point of the constraint is farther from the start. Above 0 even where the constraint is one point."""
        middle = self.constraint.middle(self.dimension)
        reach = self.constraint.reach(self.dimension) + float(np.linalg.norm(np.array(self.start) - middle))
        return max(reach, LEAST)

    def regularizer(self, theta: Floats) -> Floats:
        """The gradient of the regularizer: public."""
        return self.regularization * (theta if self.anchor is None else theta - np.array(self.anchor))


class MeanStep(ABC):
    """One private answer: the mean over users of the gradients at a public theta."""

    draws: int = 1
    """How many draws it takes."""

    @abstractmethod
    def draw(self, round: int, rows: GradientRows, theta: Floats, draw: Sampler) -> Hashable:
        """What is drawn in a round, from 0: integers, or tuples of them. The only step that sees data."""

    @abstractmethod
    def estimate(self, round: int, answer: Any) -> Floats:
        """The gradient that what was drawn stands for; public."""

    @abstractmethod
    def answers(self, round: int) -> Iterable[Hashable]:
        """All that can be drawn in a round."""

    @abstractmethod
    def n_answers(self, round: int) -> int:
        """The number of possible answers."""

    def warnings(self) -> list[str]:
        """What should be known before relying on the answers, from public numbers."""
        return []


class PrivateDescent(ABC):
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
        """The number of possible transcripts."""

    def warnings(self) -> list[str]:
        """What should be known before relying on the result, from public numbers: that n is too small, say."""
        return []


class DescentRounds(PrivateDescent):
    """A projected descent whose every gradient is answered by a step. The transcript is the tuple of the answers."""

    def __init__(self, problem: DescentProblem, optimizer: ProjectedDescent, step: MeanStep, budget: Budget) -> None:
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
                answers.append(self.step.draw(round, rows, state.theta, draw))
                state = self._updated(state, round, answers[-1])
            return tuple(answers)

        return transcript

    def theta(self, outcome: Any) -> Floats:
        state = self.optimizer.begin()
        for round, answer in enumerate(outcome):
            state = self._updated(state, round, answer)
        return self.optimizer.aggregate(state)

    def _updated(self, state: Progress, round: int, answer: Hashable) -> Progress:
        gradient = self.step.estimate(round, answer) + self.problem.regularizer(state.theta)
        return self.optimizer.update(state, gradient)

    def outcomes(self) -> Iterator[Hashable]:
        return product(*(self.step.answers(round) for round in range(self.rounds)))

    def n_outcomes(self) -> int:
        return counted(*((self.step.n_answers(round), 1) for round in range(self.rounds)))

    def warnings(self) -> list[str]:
        return self.step.warnings()


def _strength(value: Any, name: str) -> None:
    if finite(value, name) < 0:
        raise ValueError(f"{name} must be >= 0; got {short_repr(value)}")


def regularization_parameter(doc: str) -> Any:
    """The parameter `regularization` of estimators that have one."""
    return fields.parameter(default=0.0, check=_strength, kind="float", doc=doc)


def start_parameter() -> Any:
    """The parameter `start` of estimators that have one."""
    return fields.parameter(
        default=None,
        kind="sequence of float, optional",
        doc="Where the descent starts. Public. By default the center of the constraint.",
    )


@estimator
class DescentEstimator(UserLevelEstimator):
    """An estimator that solves one `DescentProblem` by one `PrivateDescent`.

    A subclass says what the problem consists of, which descent solves it (`_descent`), and which attributes are
    released (`_fitted`). It may have the parameters `start` and `regularization`.
    """

    caps_rows: ClassVar[bool] = False
    without_rows: ClassVar[str] = "Users without rows count with a gradient of zero."

    delta: Delta = fields.delta(default=0, doc="In [0, 1).")
    fit_intercept: bool = fields.flag(default=False, doc="Whether theta gets a last entry, for a constant 1.")

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of a record."""

    @abstractmethod
    def _largest_target(self) -> float:
        """No target is farther from 0."""

    @abstractmethod
    def _max_feature_norm(self, n_features: int) -> float:
        """No row is longer in L2, the constant of an intercept not included."""

    @abstractmethod
    def _constraint(self, n_features: int) -> Constraint:
        """Where theta may be."""

    @abstractmethod
    def _descent(self, problem: DescentProblem, seed: PublicSeed | None) -> PrivateDescent:
        """The descent that solves a problem, from public parameters; equal problems and seeds give equal descents."""

    @abstractmethod
    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        """What is released, from the solution."""

    def _uses_m(self) -> bool:
        """Whether the default noise or clipping is made for the number of rows of a user."""
        return getattr(self, "concentration", None) is None

    def _lacking(self, grouped: bool) -> dict[str, str]:
        if grouped and self.m is None and self._uses_m():
            return {"m": "the public number of rows of a user that are expected"}
        return {}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self, TargetEstimator):
            bounds = read_bounds(self.target_bounds, "target_bounds")
            low, high = (finite(end, "target_bounds") for end in bounds)
            length(high - low, "the length of target_bounds")
            loss = getattr(self, "loss", None)
            if getattr(loss, "of_signs", False) and not low <= 0 < high:
                raise ValueError(
                    f"target_bounds must have 0 inside, low <= 0 < high: {loss} takes targets above 0 as one class and "
                    f"all others as the other; got {short_repr(bounds)}"
                )

    def _problem(self, n_users: int, n_features: int) -> DescentProblem:
        dimension = n_features + bool(self.fit_intercept)
        constraint = self._constraint(n_features)
        middle = constraint.middle(dimension)
        public_start = getattr(self, "start", None)
        start = middle if public_start is None else finite_vector(public_start, "start")
        if len(start) != dimension:
            raise ValueError(f"start must have {dimension} entries, as theta has; got {len(start)}")
        inside = constraint.project(start)
        if np.linalg.norm(inside - start) > 1e-9 * (np.linalg.norm(start) + constraint.reach(dimension)):
            raise ValueError(f"start must be in the constraint {constraint}; got {short_repr(public_start)}")
        max_norm = math.hypot(self._max_feature_norm(n_features), float(self.fit_intercept))
        reach = max_norm * (constraint.reach(dimension) + float(np.linalg.norm(middle)))
        return DescentProblem(
            n_users=n_users,
            dimension=dimension,
            loss=self._loss().within(reach, self._largest_target()),
            constraint=constraint,
            start=tuple(inside.tolist()),
            max_norm=max_norm,
            m=1 if self.m is None else int(self.m),
            epsilon=self.epsilon,
            delta=parse_delta(self.delta),
            regularization=float(getattr(self, "regularization", 0)),
            fit_intercept=bool(self.fit_intercept),
            in_rho=counted_in_rho(self),
        )

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        problem = self._problem(n_users, n_features)
        # Fixed now, for all that this plan does.
        seed = self._fixed_seed()
        public = {} if seed is None else {"public_seed_": seed.hex}
        descent, max_norm = self._descent(problem, seed), self._max_feature_norm(n_features)

        def program(table: UserTable) -> AdaptiveMechanism:
            rows = GradientRows(table, loss=problem.loss, max_norm=max_norm, fit_intercept=problem.fit_intercept)
            return _shown_as_it_runs(descent.program(rows), descent.draws)

        def outcomes() -> Sequence[Hashable]:
            self._check_exact()
            return listed(descent.outcomes, descent.n_outcomes(), "audit fewer users, iterations or a coarser grid")

        return ReleasePlan(
            descent.budget(),
            program,
            outcomes,
            lambda drawn: {**self._fitted(descent.theta(drawn), n_features), **public},
            warnings=tuple(descent.warnings()),
        )

    def _check_exact(self) -> None:
        """Refuse exact output distributions of what differs from fit to fit."""

    def _fixed_seed(self) -> PublicSeed | None:
        """The public seed of one plan; None where it has no public randomness."""
        return None


def _shown_as_it_runs(program: AdaptiveMechanism, draws: int) -> AdaptiveMechanism:
    """A program whose draws, which are a public number, move a progress bar."""

    def shown_program(draw: Sampler) -> Hashable:
        done = 0
        with progress_bar(None, "descent") as show:

            def counted(mechanism: Any, /, *arguments: Any) -> Any:
                nonlocal done
                done += 1
                show(min(done, draws), draws)
                return draw(mechanism, *arguments)

            return program(counted)

    return shown_program


@estimator
class PublicRandomEstimator(DescentEstimator):
    """An estimator whose plan may have public randomness."""

    public_seed: PublicSeed | bytes | str | None = fields.parameter(
        default=None,
        check=fields.or_none(lambda value, name: PublicSeed(value)),
        kind="PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional",
        doc="For public rotations and other public choices. None draws a fresh one in each fit. It is not secret.",
    )

    def _fixed_seed(self) -> PublicSeed:
        return PublicSeed.random() if self.public_seed is None else PublicSeed(self.public_seed)

    def _check_exact(self) -> None:
        if self.public_seed is None:
            raise ValueError("public_seed must be given for an exact distribution: without one, each fit has another")


def _known_loss(value: Any, name: str) -> None:
    check_kind(value, Loss, name, "a loss of userdp.optimization")


def _known_constraint(value: Any, name: str) -> None:
    check_kind(value, Constraint, name, "an L2Ball or a Box")


@estimator
class Descent(DescentEstimator, TargetEstimator):
    """A private descent by itself: a loss, a constraint, and the theta that is found."""

    released: ClassVar[tuple[str, ...]] = ("theta_",)

    loss: Loss = fields.parameter(
        check=_known_loss,
        kind="LogisticLoss, SquaredLoss, SmoothedHingeLoss or CustomLoss",
        doc="Of a record. What is minimized is the mean over users of the mean loss of their records.",
    )
    constraint: Constraint = fields.parameter(
        check=_known_constraint, kind="L2Ball or Box", doc="Where theta may be. Public."
    )
    max_norm: float = fields.parameter(
        check=lambda value, name: length(value, name),
        kind="float",
        doc="Rows of X that are longer in L2 are scaled to this norm. Public.",
    )

    def _loss(self) -> Loss:
        return self.loss

    def _largest_target(self) -> float:
        return max(map(abs, self._bounds()))

    def _max_feature_norm(self, n_features: int) -> float:
        return float(self.max_norm)

    def _constraint(self, n_features: int) -> Constraint:
        return self.constraint

    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        return {"theta_": theta}
