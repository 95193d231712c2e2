"""What estimators of distributions share."""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction

from userdp.estimators import fields
from userdp.estimators.base import UserLevelEstimator
from userdp.estimators.fields import estimator
from userdp.exact.numbers import check_count, exact_number


@estimator
class DistributionEstimator(UserLevelEstimator):
    """An estimator of a distribution within alpha in total variation, but with probability beta."""

    alpha: float = fields.open_unit(0.1, doc="The accuracy in total variation, in (0, 1).")
    beta: float = fields.open_unit(0.1, doc="The failure probability in `users_needed`, in (0, 1).")

    def _accuracy(self) -> Fraction:
        return exact_number(self.alpha) or Fraction(0)

    @abstractmethod
    def _users_needed(self, m: int) -> int:
        """For users of m examples each."""

    def users_needed(self) -> int:
        """Users for which the guarantee of the class is proved; practice needs far fewer. Needs `m`."""
        self._check_parameters()
        return self._users_needed(check_count(self.m, "m"))
