"""The fates of mutants as a table that is kept in the repository, and rates with their intervals."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

from mutation.planting import KILLED

COLUMNS = ("commit", "seed", "folder", "file", "line", "function", "operator", "text", "ordinal", "fate", "by", "note")
"""`by` is the first test that failed; `note` is written by hand and says of a survivor what came of it."""

IDENTITY = ("commit", "file", "function", "operator", "text", "ordinal")
NORMAL = 1.959963984540054
"""The 97.5% quantile of the normal distribution."""


def keep(results: dict[str, Any], table: Path, *, commit: str, seed: int) -> None:
    """Write the fate of every mutant to `table`, in the order in which they were drawn; notes written there stay."""
    notes = {_identity(row): row["note"] for row in _rows(table)}
    others = [row for row in _rows(table) if (row["commit"], row["seed"]) != (commit, str(seed))]
    drawn = [
        {**result, "commit": commit, "seed": seed, "fate": result["status"], "by": (result["by"] or [""])[0]}
        for result in results.values()
    ]
    written = table.with_suffix(".part")
    with written.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(others)
        writer.writerows({**row, "note": notes.get(_identity(row), "")} for row in drawn)
    written.replace(table)


def _rows(table: Path) -> list[dict[str, str]]:
    if not table.exists():
        return []
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def _identity(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in IDENTITY)


def interval(killed: int, mutants: int) -> tuple[float, float]:
    """Wilson's 95% interval of a rate."""
    rate, square = killed / mutants, NORMAL**2
    middle = (rate + square / (2 * mutants)) / (1 + square / mutants)
    half = NORMAL / (1 + square / mutants) * math.sqrt(rate * (1 - rate) / mutants + square / (4 * mutants**2))
    return max(0.0, middle - half), min(1.0, middle + half)


def rates(results: dict[str, Any]) -> str:
    """Mutants, killed ones and the rate of each folder, as markdown."""
    folders = sorted({result["folder"] for result in results.values()})
    rows = ["| folder | mutants | killed | kill rate | 95% interval |", "|---|---|---|---|---|"]
    for folder in [*folders, "all"]:
        of_it = [result for result in results.values() if folder in (result["folder"], "all")]
        killed = sum(result["status"] in KILLED for result in of_it)
        low, high = interval(killed, len(of_it))
        rows.append(f"| {folder} | {len(of_it)} | {killed} | {killed / len(of_it):.1%} | {low:.1%} to {high:.1%} |")
    return "\n".join(rows)
