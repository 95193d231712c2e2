"""Pure-DP learners for people who give several examples each.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, y, groups=user_ids)``. Functions that they
are made of can be called alone and need no scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from userdp.learners._contributions import bound_contributions
from userdp.learners._privacy import PrivacyRecord

if TYPE_CHECKING:
    from userdp.learners._base import as_finite_algorithm
    from userdp.learners._hypothesis import HypothesisSelector
    from userdp.learners._pairwise import PairwiseScoreSelector

__all__ = ["HypothesisSelector", "PairwiseScoreSelector", "PrivacyRecord", "as_finite_algorithm", "bound_contributions"]

_ESTIMATORS = {
    "HypothesisSelector": "_hypothesis",
    "PairwiseScoreSelector": "_pairwise",
    "as_finite_algorithm": "_base",
}
"""What needs scikit-learn, and the module that has it."""


def __getattr__(name: str) -> Any:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_ESTIMATORS[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "sklearn":
            raise
        raise ImportError(f"userdp.learners.{name} needs scikit-learn: pip install 'userdp[learn]'") from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
