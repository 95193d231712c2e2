"""Minimising people's mean loss with privacy for users: descents, and linear models on top of them.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, y, groups=user_ids)``. After LSAKKMS21,
beside the descent with clipped gradients that it is to be compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp._optional import loader

if TYPE_CHECKING:
    from userdp.optimization._clipped_descent import ClippedGradientDescent
    from userdp.optimization._constraints import Box, L2Ball
    from userdp.optimization._finite_minimizer import FiniteMinimizer
    from userdp.optimization._linear_models import UserLevelLinearRegression, UserLevelLogisticRegression
    from userdp.optimization._losses import CustomLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
    from userdp.optimization._phased_erm import PhasedERM
    from userdp.optimization._winsorized_descent import WinsorizedGradientDescent

__all__ = [
    "Box",
    "ClippedGradientDescent",
    "CustomLoss",
    "FiniteMinimizer",
    "L2Ball",
    "LogisticLoss",
    "PhasedERM",
    "SmoothedHingeLoss",
    "SquaredLoss",
    "UserLevelLinearRegression",
    "UserLevelLogisticRegression",
    "WinsorizedGradientDescent",
]

_ESTIMATORS = {
    "Box": "_constraints",
    "ClippedGradientDescent": "_clipped_descent",
    "CustomLoss": "_losses",
    "FiniteMinimizer": "_finite_minimizer",
    "L2Ball": "_constraints",
    "LogisticLoss": "_losses",
    "PhasedERM": "_phased_erm",
    "SmoothedHingeLoss": "_losses",
    "SquaredLoss": "_losses",
    "UserLevelLinearRegression": "_linear_models",
    "UserLevelLogisticRegression": "_linear_models",
    "WinsorizedGradientDescent": "_winsorized_descent",
}
"""Which module has which name."""


__getattr__ = loader(__name__, _ESTIMATORS, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
