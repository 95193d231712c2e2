"""Folds of users for cross-validation: who is in which fold follows from public ids alone.

Splitters follow scikit-learn (``pip install 'userdp[learn]'``) and go where its own go: ``cv=UserKFold(5)``. Scores of
cross-validation are not private: docs/model-selection.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.model_selection.splitters import UserKFold, UserShuffleSplit

__all__ = ["UserKFold", "UserShuffleSplit"]

_MODULES = {"UserKFold": "splitters", "UserShuffleSplit": "splitters"}

__getattr__ = loader(__name__, _MODULES, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
