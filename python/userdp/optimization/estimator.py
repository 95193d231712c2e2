"""What estimators have in common that minimise people's mean loss."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from userdp.distributions.base import listed
from userdp.estimators.base import TargetEstimator, UserLevelEstimator
from userdp.estimators.privacy import Budget, Spending
from userdp.exact.numbers import parse_delta, shown
from userdp.mechanisms.composed import Draw, Program
from userdp.optimization.constraints import Constraint, finite, finite_vector, length
from userdp.optimization.gradients import GradientRows
from userdp.optimization.losses import Loss
from userdp.optimization.problem import DescentPlan, DescentProblem
from userdp.public_randomness import PublicSeed
from userdp.runtime import progress_bar
from userdp.users.contributions import UserData

Self = TypeVar("Self", bound="Descent")


class DescentEstimator(UserLevelEstimator):
    """An estimator that solves one `DescentProblem` by one `DescentPlan`.

    A subclass says what the problem consists of and which plan solves it (`_plan_of`).
    """

    caps_rows: ClassVar[bool] = False

    delta: Any
    start: Any
    regularization: Any
    fit_intercept: Any

    @abstractmethod
    def _loss(self) -> Loss:
        """The loss of a row."""

    @abstractmethod
    def _largest_target(self) -> float:
        """No target is farther from 0."""

    @abstractmethod
    def _feature_bound(self, n_features: int) -> float:
        """No row is longer in L2, the constant of an intercept not included."""

    @abstractmethod
    def _constraint(self, n_features: int) -> Constraint:
        """Where theta may be."""

    @abstractmethod
    def _plan_of(self, problem: DescentProblem) -> DescentPlan:
        """The plan that solves a problem, from public parameters; equal problems give equal plans."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self, TargetEstimator):
            low, high = (finite(end, "target_bounds") for end in self._bounds())
            length(high - low, "the length of target_bounds")
        parse_delta(self.delta)
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise TypeError(f"fit_intercept must be a bool; got {shown(self.fit_intercept)}")
        if finite(self.regularization, "regularization") < 0:
            raise ValueError(f"regularization must be >= 0; got {shown(self.regularization)}")

    def _problem(self, n_users: int, n_features: int) -> DescentProblem:
        dimension = n_features + bool(self.fit_intercept)
        constraint = self._constraint(n_features)
        middle = constraint.middle(dimension)
        start = middle if self.start is None else finite_vector(self.start, "start")
        if len(start) != dimension:
            raise ValueError(f"start must have {dimension} entries, as theta has; got {len(start)}")
        inside = constraint.project(start)
        if np.linalg.norm(inside - start) > 1e-9 * (np.linalg.norm(start) + constraint.reach(dimension)):
            raise ValueError(f"start must be in the constraint {constraint}; got {shown(self.start)}")
        bound = math.hypot(self._feature_bound(n_features), float(self.fit_intercept))
        reach = bound * (constraint.reach(dimension) + float(np.linalg.norm(middle)))
        return DescentProblem(
            n_users=n_users,
            dimension=dimension,
            loss=self._loss().within(reach, self._largest_target()),
            constraint=constraint,
            start=tuple(inside.tolist()),
            bound=bound,
            m=1 if self.m is None else int(self.m),
            epsilon=self.epsilon,
            delta=parse_delta(self.delta),
            regularization=float(self.regularization),
            fit_intercept=bool(self.fit_intercept),
        )

    def _plan(self, n_users: int, n_features: int) -> DescentPlan:
        return self._plan_of(self._problem(n_users, n_features))

    def _theta(self, outcome: Any) -> npt.NDArray[np.float64]:
        """The result that a transcript stands for, with warnings about public numbers."""
        plan = self._plan(self.n_users_, self.n_features_in_)
        # Not in `_program`, which runs where nothing that is private can warn.
        for warning in plan.warnings():
            warnings.warn(warning, UserWarning, stacklevel=5)
        return plan.theta(outcome)

    def _budget(self) -> Budget:
        raise NotImplementedError  # `_spending` says it, which knows the shape of the data

    def _spending(self, n_users: int, n_features: int) -> Spending:
        return self._plan(n_users, n_features).spending()

    def _program(self, data: UserData) -> Program:
        problem = self._problem(data.n_users, data.n_columns)
        plan = self._plan_of(problem)
        program = plan.program(
            GradientRows(
                data,
                loss=problem.loss,
                bound=self._feature_bound(data.n_columns),
                fit_intercept=problem.fit_intercept,
            )
        )

        def shown_as_it_runs(draw: Draw) -> Hashable:
            done = 0
            with progress_bar(None, "descent") as show:

                def counted(mechanism: Any, /, *arguments: Any) -> Any:
                    nonlocal done
                    done += 1
                    show(min(done, plan.draws), plan.draws)
                    return draw(mechanism, *arguments)

                return program(counted)

        return shown_as_it_runs

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        plan = self._plan(n_users, n_features)
        return listed(plan.outcomes(), plan.n_outcomes())


class PublicRandomEstimator(DescentEstimator):
    """An estimator whose plan may have public randomness."""

    public_seed: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.public_seed is not None:
            PublicSeed(self.public_seed)

    def _program(self, data: UserData) -> Program:
        self.public_seed_ = (PublicSeed.random() if self.public_seed is None else PublicSeed(self.public_seed)).hex
        return super()._program(data)

    def _seed(self) -> PublicSeed:
        """That of the fit; before there is one, any."""
        given = getattr(self, "public_seed_", None) if self.public_seed is None else self.public_seed
        return PublicSeed(bytes(32) if given is None else given)

    def _outcomes(self, n_users: int, n_features: int) -> Sequence[Hashable]:
        if self.public_seed is None:
            raise ValueError("public_seed must be given for an exact law: without one, each fit has another")
        return super()._outcomes(n_users, n_features)


class Descent(DescentEstimator, TargetEstimator):
    """A private descent by itself: a loss, a constraint, and the theta that is found.

    Subclasses have the parameters epsilon, delta, loss, constraint, bound, target_bounds, fit_intercept, start,
    regularization, m, on_invalid, require_groups, enrolled, random_state and their own, and say which plan
    (`_plan_of`).
    """

    released: ClassVar[tuple[str, ...]] = ("theta_",)

    loss: Any
    constraint: Any
    bound: Any

    def fit(self: Self, X: Any, y: Any, groups: Any = None) -> Self:
        """Minimise the mean over users of the mean loss of their rows.

        Parameters
        ----------
        X : array-like of numbers with shape (rows, columns)
        y : array-like of numbers with shape (rows,)
            Targets, clipped to `target_bounds`. For losses of labels those above 0 are one class and others the other.
        groups : array-like with shape (rows,)
            The user id of every row.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            For bad parameters and shapes, naming the argument; never for what is in a row, unless on_invalid="raise".
        BudgetError
            For work that is too large, with an estimate.
        """
        return self._fit(X, y, groups)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.loss, Loss):
            raise TypeError(f"loss must be a loss of userdp.optimization; got {shown(self.loss)}")
        if not isinstance(self.constraint, Constraint):
            raise TypeError(f"constraint must be an L2Ball or a Box; got {shown(self.constraint)}")
        length(self.bound, "bound")

    def _loss(self) -> Loss:
        return self.loss  # type: ignore[no-any-return]

    def _largest_target(self) -> float:
        return max(map(abs, self._bounds()))

    def _feature_bound(self, n_features: int) -> float:
        return float(self.bound)

    def _constraint(self, n_features: int) -> Constraint:
        return self.constraint  # type: ignore[no-any-return]

    def _accept(self, outcome: Any) -> None:
        self.theta_ = self._theta(outcome)
