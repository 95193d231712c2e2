"""How often the intervals of private tables contain the truth: 30 kinds of releases, as markdown.

    python evidence/table_intervals.py [--releases 2000] [--cells FIRST END] [--near]

A frame is made, `Session.release` answers once, and the truth is computed by plain numpy. All further releases of the
cell are of the same session's plan and of the integers that the same code adds up from the same frame; their noise is
drawn by the same function, for all releases at once, from the operating system. Each user is in one group, so that
bounding leaves nothing out, and the noise of different groups is independent. Where groups are unknown, the intervals
of those that are shown count.

A second table, which --near prints alone, is of groups with from 5 users fewer than the threshold to 5 more, of which
only those that are shown count: 2,000 of each size.

The program ends with an error where intervals that contain the truth with probability 0.95 each would have so few hits
with probability below 1e-6 over the number of entries of both tables: the rate of false alarms of both together is
below 1e-6.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.stats import binom

from userdp.runtime import source_of
from userdp.tables import Plan, Query, Release, Schema, Session, category, count_rows, count_users, key, mean, number
from userdp.tables import sum as total_of
from userdp.tables.drawing import draw
from userdp.tables.reading import table_of
from userdp.tables.release import Drawn
from userdp.tables.rows import Sums, add_up

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
    Cell("mean of users", False, "laplace", 5, 1, groups=10),
    Cell("mean of users", False, "laplace", 5, 5, ends=True, groups=10),
    Cell("mean of users", False, "laplace", 50, 0.2, groups=10),
    Cell("mean of users", False, "laplace", 10_000, 1, groups=5),
    Cell("mean of users", False, "zcdp", 20, 1, "1e-6", groups=10),
    Cell("mean of users", False, "zcdp", 20, 5, "1e-6", ends=True, max_keys=4, groups=10),
    Cell("mean of users", False, "zcdp", 1_000, 0.5, "1e-6", groups=10),
    Cell("mean of rows", False, "laplace", 20, 2, groups=10),
    Cell("mean of rows", False, "laplace", 500, 1, ends=True, groups=10),
    Cell("mean of rows", False, "zcdp", 100, 1, "1e-6", groups=10),
    Cell("count", True, "laplace", 5, 5, "1e-2"),
    Cell("count", True, "laplace", 13, 1, "1e-5"),
    Cell("count", True, "gaussian", 56, 1, "1e-5", max_keys=10),
    Cell("count", True, "gaussian", 10_000, 0.2, "1e-6", max_keys=10, groups=5),
    Cell("count", True, "zcdp", 30, 1, "1e-4", max_keys=2),
    Cell("rows", True, "zcdp", 60, 1, "1e-5"),
    Cell("sum", True, "zcdp", 100, 0.5, "1e-3", ends=True),
    Cell("mean of users", True, "zcdp", 10, 5, "1e-3", groups=10),
    Cell("mean of users", True, "zcdp", 40, 1, "1e-4", ends=True, groups=10),
    Cell("mean of users", True, "gaussian", 500, 1, "1e-5", max_keys=3, groups=10),
    Cell("mean of rows", True, "zcdp", 200, 1, "1e-5", groups=10),
]


# Two account for counts and thresholds jointly, two by rho; of sums and means too.
NEAR = [
    Cell("count", True, "laplace", 5, 1, "1e-5"),
    Cell("count", True, "gaussian", 5, 1, "1e-5", max_keys=10),
    Cell("count", True, "zcdp", 5, 1, "1e-5", max_keys=4),
    Cell("rows", True, "zcdp", 5, 2, "1e-4"),
    Cell("sum", True, "gaussian", 5, 1, "1e-4", ends=True),
    Cell("mean of users", True, "zcdp", 5, 4, "1e-3", groups=10),
    Cell("mean of users", True, "gaussian", 5, 1, "1e-5", ends=True, max_keys=2, groups=10),
    Cell("mean of rows", True, "gaussian", 5, 2, "1e-3", groups=10),
]
OFF = range(-5, 6)


def frame_of(
    cell: Cell, rng: np.random.Generator, sizes: Sequence[int] | None = None
) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of so many groups, of so many users each, and the true numbers of the groups."""
    users = [cell.users] * cell.groups if sizes is None else sizes
    rows = rng.integers(1, MAX_ROWS + 1, sum(users))
    group = np.repeat(np.repeat(np.arange(cell.groups), users), rows)
    user = np.repeat(np.arange(sum(users)), rows)
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


def begun(cell: Cell, frame: pd.DataFrame) -> tuple[Plan, Sums]:
    """The plan of a cell, and what the users add up to: those of a release, which is made once."""
    groups = key(int) if cell.unknown else category(range(cell.groups))
    schema = Schema(group=groups, x=number(0, 1))
    session = Session(
        frame,
        user="who",
        schema=schema,
        epsilon=cell.epsilon,
        delta=cell.delta,
        composition="zcdp" if cell.noise == "zcdp" else "basic",
    )
    query = asked(cell)
    plan = session.plan(query)
    released = session.release(query)
    assert (released.cost, released.threshold) == (plan.cost, plan.threshold)
    return plan, add_up(plan.query, table_of(frame), "who", schema, memory=2**26, directory=None)


def drawn(plan: Plan, sums: Sums, times: int) -> Release:
    """The rows of so many releases as one release: noise and intervals look at one row and the plan.

    Of noise in common there is one row of each release.
    """
    if plan.noise.keyed is not None and plan.noise.keyed.correlated is not None:
        rows = range(len(sums.keys))
        releases = [draw(plan.query, plan.noise, sums, source_of(None)) for _ in range(times)]
        chosen = [(one, place % len(rows)) for place, one in enumerate(releases)]
        numbers = {name: np.array([one.numbers[name][place] for one, place in chosen]) for name in releases[0].numbers}
        keys = tuple(one.keys[place] for one, place in chosen)
        return Release(plan.query, plan.noise, Drawn(keys, numbers, {}, {}), {}, plan.neighbors)
    whole = Sums(
        sums.keys * times, {name: np.tile(column, times) for name, column in sums.columns.items()}, sums.splits
    )
    return Release(plan.query, plan.noise, draw(plan.query, plan.noise, whole, source_of(None)), {}, plan.neighbors)


def hits(release: Release, truth: np.ndarray) -> tuple[int, int, float]:
    """How many intervals, how many of them contain the truth, and their mean width."""
    found = release.intervals(LEVEL, backend="pandas")
    true = truth[found["group"].to_numpy(dtype=np.int64)]
    # Sums are of doubles here and of steps of a grid there.
    inside = (found["answer_low"] <= true + 1e-9) & (true - 1e-9 <= found["answer_high"])
    return len(found), int(inside.sum()), float((found["answer_high"] - found["answer_low"]).mean())


def noise_of(plan: Plan) -> str:
    """The kinds of noise."""
    assert plan.noise.keyed is not None
    if plan.noise.keyed.correlated is not None:
        return "CorrelatedCounts"
    return " and ".join(sorted({type(noise).__name__ for _, noise in plan.noise.keyed.noise}))


def too_few(inside: int, count: int) -> bool:
    """Whether right intervals would have so few hits next to never."""
    return bool(binom.cdf(inside, count, LEVEL) < FALSE_ALARM / (len(CELLS) + len(NEAR) * len(OFF)))


def heading(names: str) -> None:
    """The first two lines of a table."""
    columns = names.split(", ")
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def all_cells(first: int, end: int, releases: int) -> list[str]:
    """The first table; what is wrong with it."""
    heading(
        "number, values, groups, of a user, users, epsilon, delta, noise, releases, intervals, with the truth, "
        "mean width"
    )
    failures = []
    for place, cell in enumerate(CELLS[first:end], first):
        began = time.perf_counter()
        frame, truth = frame_of(cell, np.random.default_rng(place))
        plan, sums = begun(cell, frame)
        count, inside, width = hits(drawn(plan, sums, releases), truth)
        shown = f"{inside / max(count, 1):.4f}"
        line = " | ".join((*cell.title, noise_of(plan), f"{releases:,}", f"{count:,}", shown, f"{width:.3g}"))
        print(f"| {line} |", flush=True)
        print(f"{time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
        if too_few(inside, count) or count < releases / 20:
            failures.append(line)
    return failures


def near_the_threshold(wanted: int) -> list[str]:
    """The second table; what is wrong with it."""
    heading("number, of a user, epsilon, delta, noise, threshold, " + ", ".join(f"T {off:+d}" for off in OFF))
    failures = []
    for cell in NEAR:
        began = time.perf_counter()
        threshold = begun(cell, frame_of(cell, np.random.default_rng(0))[0])[0].threshold
        assert threshold is not None
        sizes = [max(threshold + off, 1) for off in OFF]
        frame, truth = frame_of(replace(cell, groups=len(sizes)), np.random.default_rng(1), sizes)
        plan, sums = begun(cell, frame)
        assert plan.threshold == threshold
        cells = []
        for place in range(len(sizes)):
            one = Sums(
                sums.keys[place : place + 1],
                {name: column[place : place + 1] for name, column in sums.columns.items()},
                sums.splits,
            )
            count, inside, times = 0, 0, wanted
            while count < wanted:
                more = hits(drawn(plan, one, times), truth)
                count, inside, times = count + more[0], inside + more[1], min(2 * times, 2**20)
            cells.append(f"{inside / count:.4f}")
            if too_few(inside, count):
                failures.append(f"{cell.title}, {sizes[place]} users: {inside} of {count}")
        line = (cell.what, str(cell.max_keys), f"{cell.epsilon:g}", cell.delta, noise_of(plan), str(threshold))
        print(f"| {' | '.join((*line, *cells))} |", flush=True)
        print(f"{time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=2000)
    parser.add_argument("--cells", type=int, nargs=2, default=[0, len(CELLS)], help="from this one to before that one")
    parser.add_argument("--near", action="store_true", help="the second table alone")
    options = parser.parse_args()
    failures = [] if options.near else all_cells(*options.cells, options.releases)
    if options.near or options.cells == [0, len(CELLS)]:
        print(flush=True)
        failures += near_the_threshold(options.releases)
    for line in failures:
        print("too few:", line, file=sys.stderr)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
