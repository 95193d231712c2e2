"""The whole generator of reading: cells in all containers, tables with a hostile user, people, and tables in all forms.

``PYTHONPATH=tests python -m support.reading_generator --cells 100000 --tables 10000`` prints counts by container and
kind, and what is wrong; it ends with an error if anything is.
"""

from __future__ import annotations

import argparse
import itertools
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support import reading_cases, reading_csv, reading_tables
from support.reading_cells import cells, drawn
from support.reading_containers import Column, columns
from support.reading_findings import Findings

PART = 400
"""So many cells are put into the containers at a time."""


def read_all(wanted: int, seed: int, findings: Findings, folder: Path) -> None:
    """Read the listed cells in all containers, and then at least so many cells in containers that are drawn."""
    rng = random.Random(seed)
    known = set()
    for column in columns(cells(), folder):
        reading_cases.judge(column, findings)
        known.add((str(column), repr(column.cells)))
    listed = findings.asked["cells"]
    while findings.asked["cells"] < listed + wanted:
        for column in columns([drawn(rng) for _ in range(PART)], folder):
            # Types with the same cells as before are read once.
            if (str(column), repr(column.cells)) not in known:
                reading_cases.judge(column, findings)


def try_tables(many: int, seed: int, findings: Findings, own: Sequence[Column]) -> None:
    """In half of the tables types follow from values, in half they are declared or kept; of some there is a release."""
    values = reading_tables.hostile_values(cells())
    flips = reading_tables.hostile_trials(random.Random(f"values {seed}"), values)
    typed = reading_tables.typed_trials(random.Random(f"types {seed}"), own)
    for trials in (flips, typed):
        for number, trial in enumerate(itertools.islice(trials, many // 2)):
            reading_tables.judge(trial, findings, released=number % 4 == 0)


def try_people(many: int, seed: int, findings: Findings) -> None:
    """People in two containers."""
    rng = random.Random(f"people {seed}")
    for _ in range(many):
        reading_tables.judge_people(rng, findings)


def try_containers(many: int, seed: int, findings: Findings) -> None:
    """Tables in all containers."""
    rng = random.Random(f"containers {seed}")
    for _ in range(many):
        reading_tables.judge_containers(rng, findings)


def try_files(many: int, seed: int, findings: Findings, folder: Path) -> None:
    """CSV files with hostile lines."""
    rng = random.Random(f"files {seed}")
    for number in range(many):
        reading_csv.judge_file(number, rng, folder, findings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=100_000, help="drawn ones, beside the listed ones")
    parser.add_argument("--tables", type=int, default=10_000, help="with a hostile user each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=60, help="show at most so many kinds of what is wrong")
    asked = parser.parse_args()
    findings = Findings()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read_all(asked.cells, asked.seed, findings, folder)
        try_tables(asked.tables, asked.seed, findings, list(columns(cells(), folder)))
        try_people(asked.tables // 5, asked.seed, findings)
        try_containers(asked.tables // 100, asked.seed, findings)
        try_files(asked.tables, asked.seed, findings, folder)
    print(findings.report(asked.examples))
    raise SystemExit(1 if findings.found else 0)


if __name__ == "__main__":
    main()
