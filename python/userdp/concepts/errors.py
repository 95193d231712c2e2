"""How all hypotheses of a class do on users' rows: exact integer counts, from the compiled core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from userdp.concepts.classes import ConceptClass
from userdp.exceptions import BudgetError
from userdp.users.table import UserTable

Counts = npt.NDArray[np.int64]
Table = npt.NDArray[np.uint8]

CELLS = 2**26
"""Predictions that are held at a time, unless 256 hypotheses have more."""

MAX_PREDICTIONS = 2**36
"""Points times hypotheses: some minutes."""

MAX_COMPARISONS = 2**42
"""Rows times hypotheses (times hypotheses of another class), which are compared 256 at a time: some minutes."""

MAX_M = 2**16
"""The most rows of a user where the least errors are needed for every t < m."""


def check_work(hypotheses: ConceptClass, n_users: int, m: int, *, times: int = 1) -> None:
    """Refuse what would take hours; from public numbers only."""
    rows = n_users * m
    points = rows if hypotheses.domain_size is None else min(rows, hypotheses.domain_size)
    predictions, comparisons = points * hypotheses.size, rows * hypotheses.size * times
    if predictions > MAX_PREDICTIONS or comparisons > MAX_COMPARISONS:
        raise BudgetError(
            f"{hypotheses.size} hypotheses on up to {rows} rows take {predictions:.2g} predictions and "
            f"{comparisons:.2g} comparisons (limits {MAX_PREDICTIONS:.2g} and {MAX_COMPARISONS:.2g}); use a smaller "
            "class or m, or for thresholds ThresholdClassifier"
        )


class ClassErrors:
    """The mistakes of all hypotheses of a class on users' rows."""

    # A user with r rows and w mistakes counts as ceil(w m / r) mistakes in m, w itself for r = m: a short user counts
    # by rate.

    def __init__(self, hypotheses: ConceptClass, data: UserTable) -> None:
        self.hypotheses = hypotheses
        self.data = data
        self.points, codes = np.unique(hypotheses.points(data.X), axis=0, return_inverse=True)
        self._codes = codes.ravel().astype(np.uint32)

    def above(self, t: int) -> Counts:
        """For each hypothesis the number of users who count more than t mistakes; sensitivity 1."""
        from userdp import _core

        rows = (self._codes, self.data.users, self.data.n_users, self.data.m)
        parts = [_core.user_errors_above(table, self.data.labels, rows, t) for table in self._tables()]
        return np.concatenate(parts)

    def least(self) -> Counts:
        """For t = 0, ..., m - 1 the least that `above` has for any hypothesis; sensitivity 1."""
        from userdp import _core

        rows = (self._codes, self.data.users, self.data.n_users, self.data.m)
        parts = [_core.least_errors_above(table, self.data.labels, rows) for table in self._tables()]
        return np.min(parts, axis=0)

    def mistakes(self) -> npt.NDArray[np.unsignedinteger]:
        """Plain numbers of mistakes, not by rate, with shape (hypotheses, users)."""
        from userdp import _core

        rows = (self._codes, self.data.users, self.data.n_users, self.data.m)
        return np.concatenate([_core.user_errors(table, self.data.labels, rows, False) for table in self._tables()])

    def _tables(self) -> Iterator[Table]:
        """What the hypotheses say about each point, some hypotheses at a time."""
        step = max(256, min(CELLS // max(1, len(self.points)), 2**24 // self.data.m) // 256 * 256)
        for start in range(0, self.hypotheses.size, step):
            yield _table(self.hypotheses, self.points, start, min(start + step, self.hypotheses.size))


def surrogate_scores(concepts: ConceptClass, hypotheses: ConceptClass, data: UserTable, t: int) -> Counts:
    """Score hypotheses by way of another class: min over concepts c of err^t(c) + dis^0(c, h); sensitivity 2."""
    # The first term counts the users on whom c makes more than t mistakes, the second those on whom c and h differ.
    from userdp import _core

    points = [kind.points(data.X) for kind in (concepts, hypotheses)]
    columns = [column[:, None] if column.ndim == 1 else column for column in points]
    distinct, codes = np.unique(np.hstack(columns), axis=0, return_inverse=True)
    width = columns[0].shape[1]
    of_concepts, of_hypotheses = (
        part if column.ndim == 2 else part[:, 0]
        for part, column in zip((distinct[:, :width], distinct[:, width:]), points, strict=True)
    )
    rows = (codes.ravel().astype(np.uint32), data.users, data.n_users, data.m)
    class_table = _table(concepts, of_concepts, 0, concepts.size)
    step = max(256, CELLS // max(1, len(distinct)))
    return np.concatenate(
        [
            _core.surrogate_scores(
                class_table,
                _table(hypotheses, of_hypotheses, start, min(start + step, hypotheses.size)),
                data.labels,
                rows,
                t,
                0,
            )
            for start in range(0, hypotheses.size, step)
        ]
    )


def _table(hypotheses: ConceptClass, points: npt.NDArray[np.integer], start: int, stop: int) -> Table:
    """Predictions as the core takes them: a row for each hypothesis."""
    return np.ascontiguousarray(hypotheses.predict(points, start, stop).T).view(np.uint8)
