"""Means of users' vectors and adaptive queries about them, private for users, after LSAKKMS21.

Estimators follow scikit-learn (``pip install 'userdp[learn]'``): ``fit(X, groups=user_ids)``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from userdp.runtime import loader

if TYPE_CHECKING:
    from userdp.means.concentration import concentration_radius
    from userdp.means.estimator import WinsorizedMean
    from userdp.means.queries import QuerySession, WinsorizedQueries

__all__ = [
    "QuerySession",
    "WinsorizedMean",
    "WinsorizedQueries",
    "concentration_radius",
]

_MODULES = {
    "QuerySession": "queries",
    "WinsorizedMean": "estimator",
    "WinsorizedQueries": "queries",
    "concentration_radius": "concentration",
}
"""Which module has which name."""

__getattr__ = loader(__name__, _MODULES, needs="sklearn", distribution="scikit-learn", extra="learn")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
