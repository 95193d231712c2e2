"""Finite algorithms: the things that can be audited exactly.

A *dataset* is a tuple of users, a *user* is a tuple of examples. A finite algorithm has finitely many outputs and can
state its output distribution on every dataset. Anything with ``.outputs`` and ``.pmf(dataset)`` will do (see
`FiniteAlgorithm`); the classes here say more about the algorithm and so make larger audits affordable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from userdp.algorithms.finite import (
    AdditiveAlgorithm,
    Dataset,
    FiniteAlgorithm,
    SymmetricAlgorithm,
    User,
    finite_algorithm,
)

if TYPE_CHECKING:
    from userdp.algorithms.score_selection import SummedScoreEM

__all__ = [
    "AdditiveAlgorithm",
    "Dataset",
    "FiniteAlgorithm",
    "SummedScoreEM",
    "SymmetricAlgorithm",
    "User",
    "finite_algorithm",
]


def __getattr__(name: str) -> Any:
    # Lazy, so that reports can be verified where the compiled core cannot be imported.
    if name == "SummedScoreEM":
        from userdp.algorithms.score_selection import SummedScoreEM

        return SummedScoreEM
    raise AttributeError(f"module 'userdp.algorithms' has no attribute {name!r}")
