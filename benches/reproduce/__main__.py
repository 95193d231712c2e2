"""Make the figures of docs/does_it_pay.md anew: one command, under half an hour on two cores.

    python -m benches.reproduce [--runs 400] [--into docs/images] [--jobs 2]

Every curve has a generator of its own, which follows from the seed that `benches.reproduce.simulation` states. The
numbers, their standard errors, the runs and the seed are in `benches/reproduce/results.csv`.
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl
from benches.reproduce.curves import CURVES, Curve, measured_curve, slope
from benches.reproduce.simulation import SEED, Need

from userdp.planning import regime_map

mpl.use("agg")
mpl.rcParams.update({"svg.hashsalt": "userdp", "font.size": 10})

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benches" / "reproduce" / "results.csv"


def by_records(found: list[tuple[Curve, list[Need]]], path: Path) -> None:
    """Users needed against m for every method, with the fitted slope and that of the paper's formula."""
    from matplotlib import pyplot as plt

    columns = 3
    rows = -(-len(found) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(11, 3.1 * rows), squeeze=False, layout="constrained")
    for axes, (curve, needs) in zip(grid.flat, found, strict=False):
        users = [need.n_users for need in needs]
        fitted = slope(curve.records, users)
        label = f"simulated: slope {fitted.value:.2f} ± {fitted.standard_error:.2f}"
        bars = [2 * need.standard_error for need in needs]
        axes.errorbar(curve.records, users, yerr=bars, marker="o", label=label)
        rates = curve.rates()
        if rates is not None:
            scale = users[0] / rates[0]
            label = f"the paper's rate, scaled: slope {slope(curve.records, rates).value:.2f}"
            axes.plot(curve.records, [rate * scale for rate in rates], "--", label=label)
        axes.plot(curve.records, [users[0] / math.sqrt(m) for m in curve.records], ":", color="gray", label="1 / √m")
        axes.set(xscale="log", yscale="log", title=f"{curve.task}: {curve.method}", xlabel="m", ylabel="users needed")
        axes.set_xticks(curve.records, [str(m) for m in curve.records])
        axes.minorticks_off()
        axes.legend(frameon=False, fontsize=8)
    for axes in grid.flat[len(found) :]:
        axes.set_visible(False)
    _save(figure, path)


def deletions(path: Path) -> list[dict[str, Any]]:
    """Where DelStab needs fewer users than group privacy, by what is proved."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    found = regime_map(
        "finite",
        m=[4**power for power in range(16)],
        epsilon=1,
        delta=1e-6,
        n_records=10_000,
        item_epsilon=1,
    )
    shown = {name: found.users[name] for name in ("group privacy", "DelStab, tight", "DelStab, optimal")}
    rows = []
    for name, users in shown.items():
        known = [(m, number) for m, number in zip(found.m, users, strict=True) if number is not None]
        axes.plot([m for m, _ in known], [number for _, number in known], marker="o", label=name)
        rows += [{"figure": "delstab", "task": "finite", "method": name, "m": m, "n_users": n} for m, n in known]
    axes.set(xscale="log", yscale="log", xlabel="records of each user (m)", ylabel="users, proved to be enough")
    axes.legend(frameon=False)
    _save(figure, path)
    return rows


def _save(figure: Any, path: Path) -> None:
    from matplotlib import pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    """Simulate, write the numbers and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        measured = list(pool.map(partial(measured_curve, given.runs), range(len(CURVES))))
    found = list(zip(CURVES, measured, strict=True))
    by_records(found, given.into / "users-by-records.svg")
    rows: list[dict[str, Any]] = []
    for curve, needs in found:
        rates = curve.rates()
        users = [need.n_users for need in needs]
        fitted = slope(curve.records, users)
        for index, (m, need) in enumerate(zip(curve.records, needs, strict=True)):
            rows.append(
                {
                    "figure": "by records",
                    "task": curve.task,
                    "method": curve.method,
                    **{
                        name: value
                        for name, value in curve.point.items()
                        if name in ("epsilon", "delta", "alpha", "beta")
                    },
                    "m": m,
                    "n_users": f"{need.n_users:.1f}",
                    "standard_error": f"{need.standard_error:.1f}",
                    "runs": need.runs,
                    "seed": SEED,
                    "rate": "" if rates is None else f"{rates[index]:.4g}",
                    "slope": f"{fitted.value:.3f}",
                    "slope_error": f"{fitted.standard_error:.3f}",
                    "slope_of_rate": "" if rates is None else f"{slope(curve.records, rates).value:.3f}",
                }
            )
    rows += deletions(given.into / "delstab-against-groups.svg")
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} rows in {time.monotonic() - began:.0f} s: {RESULTS}")


if __name__ == "__main__":
    main()
