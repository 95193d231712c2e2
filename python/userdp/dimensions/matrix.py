"""What a class of concepts is to this package: a 0/1 matrix, rows = concepts, columns = points."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.concepts.classes import ConceptClass, DomainClass, read_table
from userdp.exact.numbers import check_count, short_repr
from userdp.exceptions import BudgetError

Matrix: TypeAlias = "npt.ArrayLike | ConceptClass"

DEFAULT_BUDGET = 10**7
"""Sets of points that a search looks at: seconds to minutes."""

DEFAULT_MEMORY = 10**9
"""Bytes for the version spaces that a search remembers."""

MAX_ENTRIES = 2**30


def matrix_of(matrix: Any) -> npt.NDArray[np.uint8]:
    """Read a class of concepts."""
    if isinstance(matrix, ConceptClass):
        if not isinstance(matrix, DomainClass):
            raise TypeError(f"matrix must be a 0/1 matrix or a class on finitely many points; got {short_repr(matrix)}")
        if matrix.size * matrix.domain_size > MAX_ENTRIES:
            raise BudgetError(
                f"matrix: {short_repr(matrix)} has {matrix.size} x {matrix.domain_size} entries, and at most 2**30 are "
                "written out; use a smaller domain"
            )
        points = np.arange(matrix.first, matrix.first + matrix.domain_size)
        return np.ascontiguousarray(matrix.predict(points).T, dtype=np.uint8)
    return np.ascontiguousarray(read_table(matrix, "concepts, points"), dtype=np.uint8)


def spaces_of(matrix: Any) -> _core.VersionSpaces:
    """The subsets of a class, for the core."""
    return _core.VersionSpaces(matrix_of(matrix))


def budget_of(budget: Any) -> int:
    """Read a budget."""
    if budget is None:
        return DEFAULT_BUDGET
    return min(check_count(budget, "budget"), 2**64 - 1)


def spaces_budget(budget: Any, spaces: _core.VersionSpaces) -> int:
    """Read a budget of version spaces; None stands for a gigabyte of them."""
    concepts, _ = spaces.reduced_shape
    return DEFAULT_MEMORY // (100 + concepts // 8) if budget is None else budget_of(budget)
