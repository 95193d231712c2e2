"""What estimators have in common that minimize users' mean loss."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.estimators import fields
from userdp.estimators.base import TargetEstimator, UserLevelEstimator
from userdp.estimators.fields import estimator
from userdp.estimators.plan import ReleasePlan, listed
from userdp.exact.numbers import Delta, parse_delta, short_repr
from userdp.mechanisms.composed import AdaptiveMechanism, Sampler
from userdp.optimization.constraints import Constraint, finite, finite_vector, length
from userdp.optimization.gradients import GradientRows
from userdp.optimization.losses import Loss
from userdp.optimization.problem import DescentPlan, DescentProblem
from userdp.public_randomness import PublicSeed
from userdp.runtime import progress_bar
from userdp.users.table import UserTable

Floats = npt.NDArray[np.float64]


def _strength(value: Any, name: str) -> None:
    if finite(value, name) < 0:
        raise ValueError(f"{name} must be >= 0; got {short_repr(value)}")


def regularization_parameter(doc: str) -> Any:
    """The parameter `regularization` of estimators that have one."""
    return fields.parameter(0.0, check=_strength, kind="float", doc=doc)


def start_parameter() -> Any:
    """The parameter `start` of estimators that have one."""
    return fields.parameter(
        None,
        kind="sequence of float, optional",
        doc="Where the descent starts. Public. By default the center of the constraint.",
    )


@estimator
class DescentEstimator(UserLevelEstimator):
    """An estimator that solves one `DescentProblem` by one `DescentPlan`.

    A subclass says what the problem consists of, which plan solves it (`_plan_of`), and which attributes are released
    (`_fitted`). It may have the parameters `start` and `regularization`.
    """

    caps_rows: ClassVar[bool] = False

    delta: Delta = fields.delta(0, doc="In [0, 1).")
    fit_intercept: bool = fields.flag(False, doc="Whether theta gets a last entry, for a constant 1.")

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

    @abstractmethod
    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        """What is released, from the solution."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self, TargetEstimator):
            low, high = (finite(end, "target_bounds") for end in self._bounds())
            length(high - low, "the length of target_bounds")

    def _problem(self, n_users: int, n_features: int) -> DescentProblem:
        dimension = n_features + bool(self.fit_intercept)
        constraint = self._constraint(n_features)
        middle = constraint.middle(dimension)
        given = getattr(self, "start", None)
        start = middle if given is None else finite_vector(given, "start")
        if len(start) != dimension:
            raise ValueError(f"start must have {dimension} entries, as theta has; got {len(start)}")
        inside = constraint.project(start)
        if np.linalg.norm(inside - start) > 1e-9 * (np.linalg.norm(start) + constraint.reach(dimension)):
            raise ValueError(f"start must be in the constraint {constraint}; got {short_repr(given)}")
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
            regularization=float(getattr(self, "regularization", 0)),
            fit_intercept=bool(self.fit_intercept),
        )

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        problem = self._problem(n_users, n_features)
        descent, bound = self._plan_of(problem), self._feature_bound(n_features)

        def program(table: UserTable) -> AdaptiveMechanism:
            rows = GradientRows(table, loss=problem.loss, bound=bound, fit_intercept=problem.fit_intercept)
            return _shown_as_it_runs(descent.program(rows), descent.draws)

        def outcomes() -> Sequence[Hashable]:
            self._check_exact()
            return listed(descent.outcomes, descent.n_outcomes(), "audit fewer users, steps or a coarser grid")

        return ReleasePlan(
            descent.budget(),
            program,
            outcomes,
            lambda drawn: {**self._fitted(descent.theta(drawn), n_features), **self._public()},
            warnings=tuple(descent.warnings()),
        )

    def _check_exact(self) -> None:
        """Refuse exact output distributions of what differs from fit to fit."""

    def _public(self) -> dict[str, Any]:
        """Fitted attributes that are public."""
        return {}


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


def _seed(value: Any, name: str) -> None:
    if value is not None:
        PublicSeed(value)


@estimator
class PublicRandomEstimator(DescentEstimator):
    """An estimator whose plan may have public randomness."""

    public_seed: PublicSeed | bytes | str | None = fields.parameter(
        None,
        check=_seed,
        kind="PublicSeed, bytes of length 32, or str of 64 hexadecimal digits, optional",
        doc="For public rotations and other public choices. None draws a fresh one in each fit. It is not secret.",
    )

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        # Fixed now, for all that this plan does.
        self._public_seed = PublicSeed.random() if self.public_seed is None else PublicSeed(self.public_seed)
        return super()._plan(n_users, n_features)

    def _seed(self) -> PublicSeed:
        """That of the plan."""
        return self._public_seed

    def _public(self) -> dict[str, Any]:
        return {"public_seed_": self._public_seed.hex}

    def _check_exact(self) -> None:
        if self.public_seed is None:
            raise ValueError("public_seed must be given for an exact distribution: without one, each fit has another")


def _known_loss(value: Any, name: str) -> None:
    if not isinstance(value, Loss):
        raise TypeError(f"{name} must be a loss of userdp.optimization; got {short_repr(value)}")


def _known_constraint(value: Any, name: str) -> None:
    if not isinstance(value, Constraint):
        raise TypeError(f"{name} must be an L2Ball or a Box; got {short_repr(value)}")


@estimator
class Descent(DescentEstimator, TargetEstimator):
    """A private descent by itself: a loss, a constraint, and the theta that is found."""

    released: ClassVar[tuple[str, ...]] = ("theta_",)

    loss: Loss = fields.parameter(
        check=_known_loss,
        kind="LogisticLoss, SquaredLoss, SmoothedHingeLoss or CustomLoss",
        doc="Of a row. What is minimized is the mean over users of the mean loss of their rows.",
    )
    constraint: Constraint = fields.parameter(
        check=_known_constraint, kind="L2Ball or Box", doc="Where theta may be. Public."
    )
    bound: float = fields.parameter(
        1.0,
        check=lambda value, name: length(value, name),
        kind="float",
        doc="Rows of X that are longer in L2 are scaled to this norm. Public.",
    )

    def _loss(self) -> Loss:
        return self.loss

    def _largest_target(self) -> float:
        return max(map(abs, self._bounds()))

    def _feature_bound(self, n_features: int) -> float:
        return float(self.bound)

    def _constraint(self, n_features: int) -> Constraint:
        return self.constraint

    def _fitted(self, theta: Floats, n_features: int) -> dict[str, Any]:
        return {"theta_": theta}
