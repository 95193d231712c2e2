"""How often the intervals of private tables contain the truth: 30 kinds of releases from real frames, as markdown.

    python evidence/table_intervals.py [--intervals 2000] [--cells FIRST END]

Every number comes from `Session.release` on a pandas frame, and the truth from plain numpy on the same frame. Each user
is in one group, so that bounding leaves nothing out, and the noise of different groups is independent. Where groups are
unknown, the intervals of those that are shown count. The program ends with an error where a cell has so few hits that
intervals which contain the truth with probability 0.95 each would do so with probability below 1e-6 / cells: the rate
of false alarms of the whole table is below 1e-6.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from userdp.tables import Query, Release, Schema, Session, category, count_rows, count_users, key, mean, number
from userdp.tables import sum as total_of
from userdp.tables.release import Drawn

LEVEL = 0.95
FALSE_ALARM = 1e-6
MAX_ROWS = 3


@dataclass(frozen=True)
class Cell:
    """One kind of release."""

    what: str  # count, rows, sum, mean of users, mean of rows
    unknown: bool
    noise: str  # laplace, gaussian (basic with a delta), zcdp
    users: int  # in each group
    epsilon: float
    delta: str = "0"
    max_keys: int = 1
    ends: bool = False  # values at the upper end of the range, and not anywhere in it
    groups: int = 50

    @property
    def title(self) -> tuple[str, ...]:
        known = "unknown" if self.unknown else "known"
        values = "at the end" if self.ends else "anywhere"
        return (self.what, values, known, str(self.max_keys), f"{self.users:,}", f"{self.epsilon:g}", self.delta)


CELLS = [
    Cell("count", False, "laplace", 5, 0.2),
    Cell("count", False, "laplace", 10_000, 5, groups=5),
    Cell("count", False, "zcdp", 5, 1, "1e-6", max_keys=10),
    Cell("count", False, "gaussian", 1_000, 0.2, "1e-6", max_keys=30, groups=20),
    Cell("rows", False, "laplace", 20, 1, max_keys=3),
    Cell("rows", False, "zcdp", 200, 0.5, "1e-8"),
    Cell("sum", False, "laplace", 5, 1),
    Cell("sum", False, "laplace", 1_000, 0.2, ends=True, groups=20),
    Cell("sum", False, "zcdp", 50, 5, "1e-6", ends=True, max_keys=2),
    Cell("mean of users", False, "laplace", 5, 1),
    Cell("mean of users", False, "laplace", 5, 5, ends=True),
    Cell("mean of users", False, "laplace", 50, 0.2),
    Cell("mean of users", False, "laplace", 10_000, 1, groups=5),
    Cell("mean of users", False, "zcdp", 20, 1, "1e-6"),
    Cell("mean of users", False, "zcdp", 20, 5, "1e-6", ends=True, max_keys=4),
    Cell("mean of users", False, "zcdp", 1_000, 0.5, "1e-6", groups=20),
    Cell("mean of rows", False, "laplace", 20, 2),
    Cell("mean of rows", False, "laplace", 500, 1, ends=True, groups=20),
    Cell("mean of rows", False, "zcdp", 100, 1, "1e-6"),
    Cell("count", True, "laplace", 5, 5, "1e-2"),
    Cell("count", True, "laplace", 13, 1, "1e-5"),
    Cell("count", True, "gaussian", 56, 1, "1e-5", max_keys=10),
    Cell("count", True, "gaussian", 10_000, 0.2, "1e-6", max_keys=10, groups=5),
    Cell("count", True, "zcdp", 30, 1, "1e-4", max_keys=2),
    Cell("rows", True, "zcdp", 60, 1, "1e-5"),
    Cell("sum", True, "zcdp", 100, 0.5, "1e-3", ends=True),
    Cell("mean of users", True, "zcdp", 10, 5, "1e-3"),
    Cell("mean of users", True, "zcdp", 40, 1, "1e-4", ends=True),
    Cell("mean of users", True, "gaussian", 500, 1, "1e-5", max_keys=3, groups=40),
    Cell("mean of rows", True, "zcdp", 200, 1, "1e-5", groups=40),
]


def frame_of(cell: Cell, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of so many groups, and the true numbers of the groups."""
    rows = rng.integers(1, MAX_ROWS + 1, (cell.groups, cell.users))
    group = np.repeat(np.repeat(np.arange(cell.groups), cell.users), rows.ravel())
    user = np.repeat(np.arange(cell.groups * cell.users), rows.ravel())
    # Each group has a middle of its own.
    middles = rng.random(cell.groups)
    values = np.clip(rng.normal(middles[group], 0.2), 0, 1)
    if cell.ends:
        values = np.ones(len(group))
    frame = pd.DataFrame({"who": user, "group": group, "x": values}).sample(frac=1, random_state=1)
    per_user = frame.groupby(["group", "who"])["x"].agg(["sum", "mean", "size"]).reset_index()
    by_group = per_user.groupby("group")
    truth = {
        "count": by_group.size(),
        "rows": by_group["size"].sum(),
        "sum": by_group["sum"].sum(),
        "mean of users": by_group["mean"].mean(),
        "mean of rows": by_group["sum"].sum() / by_group["size"].sum(),
    }[cell.what]
    return frame, truth.to_numpy(dtype=float)


def asked(cell: Cell) -> Query:
    aggregate = {
        "count": count_users(),
        "rows": count_rows(MAX_ROWS),
        "sum": total_of("x", max_total=MAX_ROWS),
        "mean of users": mean("x"),
        "mean of rows": mean("x", weighting="rows", max_rows=MAX_ROWS),
    }[cell.what]
    return Query().group_by("group", max_keys=cell.max_keys).agg(answer=aggregate)


def run(cell: Cell, intervals: int, seed: int) -> tuple[str, int, int, float]:
    """The noise, how many intervals, how many of them contain the truth, and their mean width."""
    frame, truth = frame_of(cell, np.random.default_rng(seed))
    groups = key(int) if cell.unknown else category(range(cell.groups))
    schema = Schema(group=groups, x=number(0, 1))
    query = asked(cell)
    releases = []
    for _ in range(-(-intervals // cell.groups)):
        session = Session(
            frame,
            user="who",
            schema=schema,
            epsilon=cell.epsilon,
            delta=cell.delta,
            composition="zcdp" if cell.noise == "zcdp" else "basic",
        )
        releases.append(session.release(query))
    pooled = pool(releases)
    found = pooled.intervals(LEVEL, backend="pandas")
    true = truth[found["group"].to_numpy(dtype=np.int64)]
    # Sums are of doubles here and of steps of a grid there.
    inside = (found["answer_low"] <= true + 1e-9) & (true - 1e-9 <= found["answer_high"])
    width = float((found["answer_high"] - found["answer_low"]).mean())
    law = {type(noise).__name__ for _, noise in releases[0]._noise.keyed.noise}  # type: ignore[union-attr]
    return " and ".join(sorted(law)), len(found), int(inside.sum()), width


def pool(releases: list[Release]) -> Release:
    """The rows of many releases of one plan as one release: intervals look at one row and the plan."""
    first = releases[0]
    drawn: list[Any] = [one._drawn for one in releases]
    keys = tuple(one for each in drawn for one in each.keys)
    numbers = {name: np.concatenate([each.numbers[name] for each in drawn]) for name in drawn[0].numbers}
    return Release(first._query, first._noise, Drawn(keys, numbers, {}, {}), {}, first.neighbors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--intervals", type=int, default=2000)
    parser.add_argument("--cells", type=int, nargs=2, default=[0, len(CELLS)], help="from this one to before that one")
    options = parser.parse_args()
    head = "number, values, groups, of a user, users, epsilon, delta, noise, intervals, with the truth, mean width"
    names = head.split(", ")
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names), flush=True)
    failures = []
    for place, cell in enumerate(CELLS):
        if not options.cells[0] <= place < options.cells[1]:
            continue
        began = time.perf_counter()
        law, count, inside, width = run(cell, options.intervals, place)
        line = " | ".join((*cell.title, law, f"{count:,}", f"{inside / max(count, 1):.4f}", f"{width:.3g}"))
        print(f"| {line} |", flush=True)
        print(f"{time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
        if binom.cdf(inside, count, LEVEL) < FALSE_ALARM / len(CELLS) or count < options.intervals / 20:
            failures.append(line)
    for line in failures:
        print("too few:", line, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
