"""Statistical-query algorithms and users for tests."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from userdp.stability import DecisionListQueries, MarginPerceptronQueries, StatisticalQueryAlgorithm
from userdp.users import UserTable


class OneMean(StatisticalQueryAlgorithm):
    """One query, of the first column; the hypothesis is the answer."""

    n_features, max_queries, hypothesis_bits, default = 1, 1, 64, Fraction(0)

    def __init__(self, intervals: int) -> None:
        self.tolerance = Fraction(1, intervals)

    def run(self, ask: Any) -> Any:
        return ask(lambda X, labels: X[:, 0])

    def predict(self, hypothesis: Any, X: Any) -> Any:
        return np.full(len(X), hypothesis > 0)

    def encode(self, hypothesis: Any) -> bytes:
        return int(hypothesis * self.intervals).to_bytes(8, "big", signed=True)

    def decode(self, item: bytes) -> Any:
        return Fraction(int.from_bytes(item, "big", signed=True), self.intervals)


def data_of(users: list[list[tuple[Any, int]]], m: int | None = None) -> UserTable:
    """Users' rows, in an order in which no one's rows are side by side."""
    rows = [(place, user, *row) for user, theirs in enumerate(users) for place, row in enumerate(theirs)]
    rows.sort(key=lambda row: row[:2])
    width = len(rows[0][2])
    return UserTable(
        np.array([row[2] for row in rows], dtype=np.float64).reshape(len(rows), width),
        np.array([row[3] for row in rows], dtype=np.uint8),
        np.array([row[1] for row in rows], dtype=np.uint32),
        len(users),
        m or max(map(len, users)),
    )


def lists(**changes: Any) -> DecisionListQueries:
    arguments: dict[str, Any] = {"n_features": 3, "alpha": "0.4", "tolerance": "0.1", "length": 3}
    return DecisionListQueries(**(arguments | changes))


ALGORITHMS = [
    lists(),
    lists(width=2, length=2),
    MarginPerceptronQueries(3, margin="0.2", alpha="0.3", tolerance="0.1", max_rounds=4),
]
