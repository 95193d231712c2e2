"""What all estimators share: declared parameters, one plan of a release, one draw, and what was promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.estimators.plan import PrivacyRecord
from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.estimators.base import UserLevelClassifier, UserLevelEstimator, UserLevelRegressor, as_finite_algorithm

__all__ = ["PrivacyRecord", "UserLevelClassifier", "UserLevelEstimator", "UserLevelRegressor", "as_finite_algorithm"]

_NEED_SKLEARN = {
    "UserLevelClassifier": "base",
    "UserLevelEstimator": "base",
    "UserLevelRegressor": "base",
    "as_finite_algorithm": "base",
}

__getattr__ = loader(__name__, _NEED_SKLEARN, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
