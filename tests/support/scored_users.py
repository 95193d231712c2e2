"""Users with labeled points, and their scores by the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core

Row = tuple[int, int]
User = tuple[Row, ...]


def table(hypotheses: Sequence[Sequence[int]]) -> npt.NDArray[np.uint8]:
    return np.array(hypotheses, dtype=np.uint8)


def rows_of(users: Sequence[User], m: int) -> tuple[npt.NDArray[np.uint8], Any]:
    """Labels, and the rows as the core takes them; points are numbered from 0."""
    flat = [(point, label, code) for code, user in enumerate(users) for point, label in user]
    points, labels, codes = (np.array([row[part] for row in flat], dtype=np.uint32) for part in range(3))
    return labels.astype(np.uint8), (points, codes, len(users), m)


def surrogate(users: Sequence[User], concepts: Any, scored: Any, t: int, s: int, m: int) -> list[int]:
    labels, rows = rows_of(users, m)
    return _core.surrogate_scores(table(concepts), table(scored), labels, rows, t, s).tolist()


def above(users: Sequence[User], hypotheses: Any, t: int, m: int) -> list[int]:
    labels, rows = rows_of(users, m)
    return _core.user_errors_above(table(hypotheses), labels, rows, t).tolist()


def named(hypotheses: Sequence[Sequence[int]]) -> list[dict[int, int]]:
    return [dict(enumerate(values)) for values in hypotheses]
