"""How long a sum of clipped gradients over users takes, beside numpy.

    python benches/gradients.py

Prints a Markdown table. 10,000 users of 16 rows and 64 columns, logistic loss; the best of many calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rounds import described, environment, human

from userdp.optimization import LogisticLoss
from userdp.optimization.losses import GradientRows
from userdp.users.table import UserTable

USERS, ROWS, COLUMNS = 10_000, 16, 64
BOUND, CLIP, GRID = 8.0, 1.0, 2.0**-28
REPEATS = 30


def best(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(USERS * ROWS, COLUMNS))
    y = rng.choice([-1.0, 1.0], size=USERS * ROWS)
    theta = rng.normal(size=COLUMNS) / 4
    users = np.repeat(np.arange(USERS, dtype=np.uint32), ROWS)
    rows = GradientRows(UserTable(X, y, users, USERS, ROWS), loss=LogisticLoss(), max_norm=BOUND, fit_intercept=False)
    # numpy gets rows that are clipped already.
    clipped = X * np.minimum(1, BOUND / np.linalg.norm(X, axis=1))[:, None]

    def ours() -> Any:
        return rows.at(theta).clipped_sum(0.0, CLIP, GRID)

    def of_means(means: Any) -> Any:
        return (means * np.minimum(1, CLIP / np.linalg.norm(means, axis=1))[:, None]).sum(axis=0)

    def slopes() -> Any:
        return -y / (1 + np.exp(y * (clipped @ theta)))

    def by_reshaping() -> Any:
        return of_means((slopes()[:, None] * clipped).reshape(USERS, ROWS, COLUMNS).mean(axis=1))

    def by_einsum() -> Any:
        shaped = clipped.reshape(USERS, ROWS, COLUMNS)
        return of_means(np.einsum("nm,nmd->nd", slopes().reshape(USERS, ROWS), shaped, optimize=True) / ROWS)

    assert np.max(np.abs(ours() * GRID - by_reshaping())) < 1e-3
    first = best(ours)
    print(described(environment(["numpy"])))
    print()
    print("| | time | ratio |\n|---|---|---|")
    print(f"| userdp: clip rows, gradients, clip users, sum integers | {human(first)} | 1 |")
    for name, call in (("numpy, means of a table of gradients", by_reshaping), ("numpy, einsum", by_einsum)):
        taken = best(call)
        print(f"| {name}: rows clipped beforehand, no integers | {human(taken)} | {taken / first:.2f} |")


if __name__ == "__main__":
    main()
