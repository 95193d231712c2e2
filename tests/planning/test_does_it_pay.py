"""The numbers of docs/does_it_pay.md are those of the planner and of the recorded runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from userdp.planning import compare_methods, user_complexity

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "does_it_pay.md").read_text(encoding="utf-8")


def row(start: str) -> list[int | None]:
    """The numbers of the table's row that begins so."""
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start}")]
    cells = [cell.strip().replace(",", "") for cell in line.strip("|").split("|")[1:]]
    return [int(cell) if cell.isdigit() else None for cell in cells]


@pytest.mark.parametrize(
    ("start", "method"),
    [
        ("one record of each person | 2,509", "one record per person"),
        ("noise for the whole range (per-user", "per-user clipping"),
        ("group privacy", "group privacy"),
        ('`method="iterated"`, people promised to be alike |', "iterated"),
    ],
)
def test_means_of_one_column(start: str, method: str) -> None:
    given: dict[str, Any] = {"epsilon": 1, "alpha": 0.02, "homogeneous": True}
    needed = [user_complexity("mean", method=method, m=m, **given).n_users for m in (1, 4, 16, 64, 256)]
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start}")]
    cells = [int(cell) for cell in line.replace(",", "").replace("|", " ").split() if cell.isdigit()]
    assert cells[-5:] == needed


@pytest.mark.parametrize(("items", "place"), [(10, 0), (1000, 1), (2**20, 2)])
def test_selections(items: int, place: int) -> None:
    found = compare_methods("selection", alpha=0.2, m=1, epsilon=0.5, delta=1e-6, n_items=items)
    for start, method in (
        ("trusted curator, pure", "central, permute-and-flip"),
        ("the same, planned table", "central, planned table"),
        ("trusted curator, (ε", "central, threshold"),
        ("shuffled", "shuffled, histogram"),
    ):
        assert row(start)[place] == found[method].users
    local = [line.users for line in found.rows if line.method.startswith("local") and line.users is not None]
    assert row("nobody trusted")[place] == min(local)
    assert row("*no method")[place] == found.least


@pytest.mark.parametrize(
    ("start", "task", "method", "given"),
    [
        ("median, `userdp", "quantile", "weights", {"alpha": 0.02, "n_points": 1000}),
        ("median, one", "quantile", "one record per person", {"alpha": 0.02, "n_points": 1000}),
        ("symbols, `Disc", "discrete", "symbols", {"alpha": 0.05, "n_symbols": 8}),
        ("symbols, counts", "discrete", "per-user clipping", {"alpha": 0.05, "n_symbols": 8}),
        ("normal mean, `G", "gaussian-mean", "cover", {"alpha": 0.05, "mean_bound": 20}),
        ("normal mean, noise", "gaussian-mean", "per-user clipping", {"alpha": 0.05, "mean_bound": 20}),
    ],
)
def test_quantiles_and_distributions(start: str, task: str, method: str, given: dict[str, Any]) -> None:
    needed = [user_complexity(task, method=method, m=m, epsilon=1, **given).n_users for m in (1, 4, 16, 64, 256)]
    assert row(start) == needed


@pytest.mark.parametrize(
    ("start", "task", "method", "given"),
    [
        ("linear, `User", "linear-regression", "moments", {"alpha": 0.003}),
        ("linear, one", "linear-regression", "one record per person", {"alpha": 0.003}),
        ("logistic, `User", "logistic-regression", "preconditioned", {"alpha": 0.03}),
        ("logistic, one", "logistic-regression", "one record per person", {"alpha": 0.03}),
        ("logistic, `solver", "logistic-regression", "clipped", {"alpha": 0.03, "tight_bounds": True}),
    ],
)
def test_regressions(start: str, task: str, method: str, given: dict[str, Any]) -> None:
    common: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "dimension": 4}
    needed = [user_complexity(task, method=method, m=m, **common, **given).n_users for m in (1, 4, 16, 64)]
    assert row(start) == needed


def test_learning() -> None:
    with (ROOT / "benches" / "reproduce" / "results.csv").open(encoding="utf-8") as file:
        results = [line for line in csv.DictReader(file) if line["figure"] == "by records"]
    for start, task, method in (
        ("PAC, `Real", "pac", "realizable"),
        ("agnostic, `Agn", "agnostic", "score"),
        ('agnostic, `method="p', "agnostic", "pairwise"),
        ("`ThresholdClassifier`", "threshold", "score"),
        ("mean in 32 columns, noise", "mean", "gaussian"),
        ("mean in 32 columns, `m", "mean", "iterated"),
        ("`GaussianMean`, one", "gaussian-mean", "cover"),
        ("`GaussianDistribution`", "gaussian", "cover"),
        ("`DiscreteDistribution`, 4", "discrete", "symbols"),
    ):
        found = [float(line["n_users"]) for line in results if (line["task"], line["method"]) == (task, method)]
        shown = [cell for cell in row(start) if cell is not None]
        assert len(shown) == len(found)
        assert all(abs(cell - users) <= 0.6 for cell, users in zip(shown, found, strict=True))
