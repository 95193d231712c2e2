"""Finite covers of families of distributions in total variation, and what estimators that select from them share.

Distributions on symbols: [GKKMMZ23, Theorem 42] and [GKKMMZ23, Theorem 43], and products of them: [GKKMMZ23, Theorem
44]. A cover at accuracy alpha has a member within alpha / 10 of every member of the family. Normal distributions are in
`gaussian`.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, ClassVar, Protocol, TypeAlias

from userdp.estimators import fields
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.fields import estimator
from userdp.estimators.plan import Budget, ExactEpsilon, Parts, ReleasePlan, listed, split_budget
from userdp.exact.numbers import (
    COUNTED,
    capped_binomial,
    check_count,
    exact_number,
)
from userdp.exceptions import BudgetError
from userdp.learners.clipped_pairwise import clipping_bound, users_needed
from userdp.mechanisms.composed import AdaptiveMechanism
from userdp.users.table import UserTable

LARGEST_LINE = 2**20
"""The most candidates for one number."""
LARGEST_WHOLE = 2**27
"""The most candidates of all selections together: a GiB of scores."""
FAR_BEYOND = 2**63
"""No cover is counted further."""

Masses: TypeAlias = tuple[int, ...]
"""A distribution in units of 1 / N: integers of sum N."""


def grid_of(n_symbols: int, alpha: Fraction) -> int:
    """N such that the distributions with masses in multiples of 1 / N are a cover at accuracy alpha."""
    # N = 2.5 k / alpha, rounded up: rounding moves at most k / 4 units (docs/proofs/distributions.md).
    return math.ceil(Fraction(5, 2) * n_symbols / alpha)


def grid_size(n: int, n_symbols: int) -> int:
    """The number of distributions on the symbols in multiples of 1 / n: [GKKMMZ23, Theorem 42]."""
    return capped_binomial(n + n_symbols - 1, n_symbols - 1, COUNTED)


def members(n: int, n_symbols: int) -> Iterator[Masses]:
    """All distributions on the symbols in multiples of 1 / n, in lexicographic order."""
    for bars in combinations(range(n + n_symbols - 1), n_symbols - 1):
        edges = (-1, *bars, n + n_symbols - 1)
        yield tuple(right - left - 1 for left, right in pairwise(edges))


def near(center: Masses, radius: int) -> Iterator[Masses]:
    """All distributions that move at most `radius` units from a center, in lexicographic order."""

    def extend(prefix: Masses, gained: int, lost: int) -> Iterator[Masses]:
        place = len(prefix)
        if place == len(center):
            if gained == lost:
                yield prefix
            return
        low = max(-center[place], lost - radius)
        for change in range(low, radius - gained + 1):
            yield from extend((*prefix, center[place] + change), gained + max(change, 0), lost + max(-change, 0))

    return extend((), 0, 0)


def near_size(n_symbols: int, radius: int) -> int:
    """The most that `near` has, for any center: p symbols gain s units and the others lose s; capped."""
    size = 1
    for units in range(1, radius + 1):
        for gaining in range(1, min(units, n_symbols - 1) + 1):
            losing = n_symbols - gaining
            ways = math.comb(units - 1, gaining - 1) * capped_binomial(units + losing - 1, losing - 1, FAR_BEYOND)
            size += capped_binomial(n_symbols, gaining, FAR_BEYOND) * ways
        if size > FAR_BEYOND:
            break
    return size


def refuse_beyond(size: int, limit: int, what: str, instead: str) -> None:
    """Refuse a cover that is too large to enumerate, before it is: a BudgetError that says what to do instead."""
    if size > limit:
        about = "about" if size < FAR_BEYOND else "more than"
        count = str(size) if size < 10**9 else f"{about} 10**{math.log10(min(size, FAR_BEYOND)):.0f}"
        raise BudgetError(f"{what} has {count} members (limit {limit}); {instead}")


def users_of_selection(size: int, alpha: Fraction | float, epsilon: ExactEpsilon, beta: float, m: int) -> int:
    """Users with which one selection from a cover of this size is proved."""
    tau = clipping_bound(float(alpha), m, 1)
    return users_needed(size, epsilon=epsilon, alpha=float(alpha), beta=beta, m=m, tau=tau)


class Selections(Protocol):
    """One or more selections by which a distribution is learned, planned from public parameters."""

    @property
    def shares(self) -> Mapping[str, Fraction]:
        """What the budget is for, and its shares."""

    def program(self, budget: Parts, data: Any) -> AdaptiveMechanism:
        """What draws an outcome from users' examples."""

    def outcomes(self) -> Iterable[Hashable]:
        """All that can be drawn."""

    def n_outcomes(self) -> int:
        """The number of possible outcomes."""

    def users_needed(self, budget: Parts, beta: float, m: int) -> int:
        """Users for which the guarantee is proved."""


@estimator
class DistributionEstimator(UserLevelEstimator):
    """An estimator of a distribution within alpha in total variation, but with probability beta."""

    without_rows: ClassVar[str] = "Users without rows add nothing to any score, and so favor no distribution."

    alpha: float = fields.open_unit(default=0.1, doc="The accuracy in total variation, in (0, 1).")
    beta: float = fields.open_unit(default=0.1, doc="The failure probability in `users_needed`, in (0, 1).")

    @abstractmethod
    def _selections(self) -> Selections:
        """What is drawn, from parameters only."""

    @abstractmethod
    def _fitted(self, selections: Any, outcome: Any) -> dict[str, Any]:
        """Fitted attributes from what was drawn."""

    def _examples(self, table: UserTable) -> Any:
        """What selections read of users' examples."""
        return table

    def _accuracy(self) -> Fraction:
        return exact_number(self.alpha) or Fraction(0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._selections()

    def _plan(self, n_users: int, n_features: int) -> ReleasePlan:
        selections = self._selections()
        budget = Budget.of(self.epsilon, selections.shares)
        return ReleasePlan(
            budget,
            lambda table: selections.program(budget.parts, self._examples(table)),
            lambda: listed(selections.outcomes, selections.n_outcomes(), "audit a larger alpha"),
            lambda drawn: self._fitted(selections, drawn),
        )

    def users_needed(self) -> int:
        """Users for which the guarantee of the class is proved; practice needs far fewer. Needs `m`.

        Raises
        ------
        ValueError
            For a beta that is too small for weights of 64 bits, however many users there are.
        """
        self._check_parameters()
        selections = self._selections()
        budget = split_budget(self.epsilon, selections.shares)
        return selections.users_needed(budget, float(self.beta), check_count(self.m, "m"))
