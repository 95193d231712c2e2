"""What estimators of distributions share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from userdp.estimators.base import UserLevelEstimator
from userdp.exact.numbers import exact_number, open_unit_interval, positive
from userdp.exceptions import BudgetError

Self = TypeVar("Self", bound="DistributionEstimator")

MAX_OUTCOMES = 2**18


class DistributionEstimator(UserLevelEstimator):
    """An estimator of a distribution within alpha in total variation, but with probability beta."""

    released: ClassVar[tuple[str, ...]] = ()

    alpha: Any
    beta: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        open_unit_interval(self.alpha, "alpha")
        open_unit_interval(self.beta, "beta")

    def _accuracy(self) -> Fraction:
        return exact_number(self.alpha) or Fraction(0)

    @abstractmethod
    def _users_needed(self, m: int) -> int:
        """For users of m examples each."""

    def users_needed(self) -> int:
        """Users for which the guarantee of the class is proved; practice needs far fewer. Needs `m`."""
        self._check_parameters()
        return self._users_needed(positive(self.m, "m"))

    def fit(self: Self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Learn the distribution of people's examples.

        Parameters
        ----------
        X : array-like with shape (rows, columns)
            An example in each row, as the class says. What is not valid counts as a public default.
        y : None
            Not used.
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
            For covers that are too large, with their size and what to do instead.
        """
        return self._fit(X, y, groups)


def listed(outcomes: Iterable[Hashable], size: int) -> Sequence[Hashable]:
    """All outcomes, if they are few enough.

    Raises
    ------
    BudgetError
        Otherwise.
    """
    if size > MAX_OUTCOMES:
        raise BudgetError(f"there are {size} outcomes, too many to list (limit {MAX_OUTCOMES}); audit a larger alpha")
    return tuple(outcomes)
