"""Distributions of independent symbols."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp.distributions.base import DistributionEstimator
from userdp.distributions.covers import Masses, grid_of, grid_size, members, refuse_beyond
from userdp.distributions.discrete import SelectionPlan, in_units, plan_of
from userdp.estimators import fields
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, Parts, ReleasePlan, listed, split_budget
from userdp.exact.numbers import counted
from userdp.learners.clipped_pairwise import ScheffeEM, Symbols, clipping_bound, read_symbols, users_needed
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.users.containers import Grid

METHODS = ("auto", "joint", "coordinate")


@estimator
class ProductDistribution(DistributionEstimator):
    """The distribution of d independent symbols of users' examples, with pure privacy for users.

    Attributes
    ----------
    probabilities_ : ndarray with shape (d, k)
        A distribution for each column. Released.
    privacy_ : PrivacyRecord

    Notes
    -----
    *Privacy.* As for `DiscreteDistribution`. The parts of epsilon of all coordinates sum to epsilon, exactly.

    *Utility.* The total variation of products is at most the sum over coordinates. So with either method the result is
    within 0.7 alpha of the truth with probability 1 - beta, for `users_needed()` users, if coordinates are independent.
    As a function of epsilon that number grows as d k / (epsilon alpha sqrt(m)) for "joint", up to logarithms. A
    coordinate has alpha / d and epsilon / d, so for "coordinate" it is d times larger, and so is the
    part without epsilon, d k / (alpha**2 m).

    References
    ----------
    [GKKMMZ23, Theorem 41] and [GKKMMZ23, Theorem 44].

    Examples
    --------
    >>> import numpy as np
    >>> answers = np.array([[0, 1], [1, 1]] * 4000)
    >>> people = np.repeat(np.arange(4000), 2)
    >>> learner = ProductDistribution(epsilon=2, n_symbols=2, n_columns=2, m=2, alpha=0.5).fit(answers, groups=people)
    >>> bool(np.abs(learner.probabilities_ - [[0.5, 0.5], [0, 1]]).max() < 0.3)
    True
    """

    released: ClassVar[tuple[str, ...]] = ("probabilities_",)

    n_symbols: int = fields.count(least=2, doc="k >= 2, public: each of the columns of X has symbols 0, ..., k - 1.")
    n_columns: int = fields.count(doc="d >= 1, public.")
    method: str = fields.choice(
        "auto",
        METHODS,
        doc="""
        "joint" selects from the products of covers of the coordinates, C(N + k - 1, k - 1)**d members with
        N = 2.5 k d / alpha rounded up. "coordinate" learns each coordinate at alpha / d with epsilon / d, by the method
        that `DiscreteDistribution` takes by itself. "auto" is "joint" up to `max_candidates` members.
        """,
    )
    max_candidates: int = fields.count(4096, least=2, doc="Larger covers are refused.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._selections()

    def _selections(self) -> _JointProduct | _Columns:
        k, d, limit = int(self.n_symbols), int(self.n_columns), int(self.max_candidates)
        accuracy = self._accuracy()
        if self.method != "coordinate":
            joint = _JointProduct(k, d, accuracy)
            if self.method == "joint":
                refuse_beyond(joint.size, limit, "the cover", "method='coordinate' learns one column at a time")
            if joint.size <= limit:
                return joint
        return _Columns(plan_of("auto", k, accuracy / d, limit), d)

    def _columns(self) -> int:
        return int(self.n_columns)

    def _read_X(self, grid: Grid) -> npt.NDArray[np.int64]:
        return read_symbols(super()._read_X(grid), self.n_symbols, self.n_columns, self.on_invalid)

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        selections, k = self._selections(), int(self.n_symbols)
        budget = Budget.of(self.epsilon, selections.shares)
        return ReleasePlan(
            budget,
            lambda table: selections.program(budget.parts, [Symbols.of(table, column, k) for column in table.X.T]),
            lambda: listed(selections.outcomes, selections.n_outcomes(), "audit a larger alpha"),
            lambda drawn: {"probabilities_": np.array(selections.probabilities(drawn))},
        )

    def _users_needed(self, m: int) -> int:
        selections = self._selections()
        return selections.users_needed(split_budget(self.epsilon, selections.shares), float(self.beta), m)


class _JointProduct:
    """One selection from all products of members of the coordinates' covers."""

    def __init__(self, k: int, d: int, alpha: Fraction) -> None:
        self.k, self.d, self.alpha = k, d, alpha
        self.unit = grid_of(k, alpha / d)
        self.size = math.prod([grid_size(self.unit, k)] * d)
        self.shares: Mapping[str, Fraction] = {"selection": Fraction(1)}

    def program(self, budget: Parts, columns: list[Symbols]) -> AdaptiveMechanism:
        first = columns[0]
        cells = np.zeros_like(first.values)
        for column in columns:
            cells = cells * self.k + column.values
        cover = list(self.outcomes())
        masses = np.ones((len(cover), 1), dtype=np.int64)
        for own in np.moveaxis(np.array(cover, dtype=np.int64), 1, 0):
            masses = (masses[:, :, None] * own[:, None, :]).reshape(len(cover), -1)
        selection = ScheffeEM(
            masses,
            epsilon=budget["selection"],
            m=first.m,
            tau=clipping_bound(float(self.alpha), first.m, 1),
            unit=self.unit**self.d,
        )
        scores = selection.scores(replace(first, values=cells, n_symbols=self.k**self.d))
        return lambda draw: cover[selection.choose(draw, scores)]

    def outcomes(self) -> Iterable[tuple[Masses, ...]]:
        return product(members(self.unit, self.k), repeat=self.d)

    def n_outcomes(self) -> int:
        return self.size

    def probabilities(self, outcome: tuple[Masses, ...]) -> npt.NDArray[np.float64]:
        return in_units(outcome, self.unit)

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return users_needed(
            self.size,
            epsilon=budget["selection"],
            alpha=float(self.alpha),
            beta=beta,
            m=m,
            tau=clipping_bound(float(self.alpha), m, 1),
        )


class _Columns:
    """A plan for each column."""

    def __init__(self, plan: SelectionPlan, d: int) -> None:
        self.plan, self.d = plan, d
        self.shares: Mapping[str, Fraction] = {
            f"column {j}, {part}": share for j in range(d) for part, share in plan.shares.items()
        }

    def _part(self, budget: Parts, j: int) -> Parts:
        return {part: budget[f"column {j}, {part}"] for part in self.plan.shares}

    def program(self, budget: Parts, columns: list[Symbols]) -> AdaptiveMechanism:
        programs = [self.plan.program(self._part(budget, j), column) for j, column in enumerate(columns)]
        return lambda draw: tuple(program(draw) for program in programs)

    def outcomes(self) -> Iterable[tuple[Hashable, ...]]:
        return product(self.plan.outcomes(), repeat=self.d)

    def n_outcomes(self) -> int:
        return counted((self.plan.n_outcomes(), self.d))

    def probabilities(self, outcome: tuple[Any, ...]) -> list[npt.NDArray[np.float64]]:
        return [self.plan.probabilities(column) for column in outcome]

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        return self.plan.users_needed(self._part(budget, 0), beta / self.d, m)
