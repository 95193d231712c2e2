"""The table of docs/performance.md from what `cargo bench` left in target/criterion; `--write` puts it there."""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- core numbers: begin -->\n", "<!-- core numbers: end -->"
LIMIT = "merge of two sorted pmfs"

GROUPS = ("divergences", "keys", "accounts", "enumeration", "stable sets", "samplers", "race", "patterns")

Row = tuple[str, float, str, float, float | None]
"""Name, size as a number and as it is written, and medians of a call and of each element in nanoseconds."""


def rows(results: Path, group: str) -> list[Row]:
    """The latest run of every benchmark of a group, by name and size."""
    found = []
    for path in (results / group).glob("**/new/benchmark.json"):
        bench = json.loads(path.read_text())
        call = json.loads(path.with_name("estimates.json").read_text())["median"]["point_estimate"]
        size = bench["value_str"] or ""
        number = float(size) if re.fullmatch(r"[\d.]+", size) else 0
        each = call / bench["throughput"]["Elements"] if "Elements" in (bench["throughput"] or {}) else None
        found.append((bench["function_id"], number, size, call, each))
    return sorted(found)


def time(nanoseconds: float) -> str:
    units = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns"))
    unit, name = next((entry for entry in units if nanoseconds >= entry[0]), units[-1])
    return f"{nanoseconds / unit:.3g} {name}"


def table(results: Path) -> str:
    """Markdown; the last column is the ratio to the merge of the same size."""
    lines = ["| group | what | size | a call | each | each / merge |", "|---|---|---|---|---|---|"]
    for group in GROUPS:
        found = rows(results, group)
        limits = {size: each for what, _, size, _, each in found if what == LIMIT and each is not None}
        for what, _, size, call, each in found:
            ratio = f"{each / limits[size]:.3g}" if each is not None and size in limits else ""
            written = f"`{size}`" if group == "patterns" else size
            cells = (group, what, written.replace("|", r"\|"), time(call), "" if each is None else time(each), ratio)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the table in docs/performance.md")
    written = table(Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "criterion")
    if parser.parse_args().write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + BEGIN + "\n" + written + "\n" + END + rest.partition(END)[2])
    else:
        print(written, end="")
