"""Minimizing users' mean loss with privacy for users: descents, and linear models on top of them.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, y, groups=user_ids)``. After LSAKKMS21,
beside the descent with clipped gradients that it is to be compared with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.optimization.clipped import ClippedGradientDescent
    from userdp.optimization.constraints import Box, L2Ball
    from userdp.optimization.finite import FiniteMinimizer
    from userdp.optimization.linear_models import UserLevelLinearRegression, UserLevelLogisticRegression
    from userdp.optimization.losses import CustomLoss, LogisticLoss, SmoothedHingeLoss, SquaredLoss
    from userdp.optimization.phased import PhasedERM
    from userdp.optimization.winsorized import WinsorizedGradientDescent

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
    "Box": "constraints",
    "ClippedGradientDescent": "clipped",
    "CustomLoss": "losses",
    "FiniteMinimizer": "finite",
    "L2Ball": "constraints",
    "LogisticLoss": "losses",
    "PhasedERM": "phased",
    "SmoothedHingeLoss": "losses",
    "SquaredLoss": "losses",
    "UserLevelLinearRegression": "linear_models",
    "UserLevelLogisticRegression": "linear_models",
    "WinsorizedGradientDescent": "winsorized",
}
"""Which module has which name."""


__getattr__ = loader(__name__, _ESTIMATORS, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
