"""Runs cases under a tool of valgrind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from constant_time.cases import CASES, Case
from constant_time.probe import compile_probe

__all__ = ["Complaint", "cases_of", "library", "run_under"]

HERE = Path(__file__).resolve().parent
OPTIONS = {
    "memcheck": ["--error-limit=no", "--num-callers=20"],
    # One file for each run, in the format that `counts` reads.
    "callgrind": [
        "--instr-atstart=no",
        "--dump-instr=yes",
        "--dump-line=no",
        "--compress-strings=no",
        "--compress-pos=no",
    ],
}


class Complaint(NamedTuple):
    """Something that must not be."""

    case: str
    """The name of the case, or "" for what concerns all of them."""
    text: str

    def __str__(self) -> str:
        return f"{self.case}: {self.text}" if self.case else self.text


def cases_of(kernels: Sequence[str]) -> list[Case]:
    """The cases that call one of some kernels; all for none."""
    return [case for case in CASES if not kernels or set(kernels) & set(case.calls)]


def library(installed: Path) -> Path:
    """The compiled file of an installed wheel."""
    return (installed / "userdp" / "_core.abi3.so").resolve()


def run_under(tool: str, installed: Path, into: Path, cases: Sequence[Case]) -> dict[str, dict[str, Any]]:
    """What the cases saw under a tool, by case and class of secrets."""
    shutil.rmtree(into / tool, ignore_errors=True)
    (into / tool).mkdir(parents=True)
    probe, report, log = compile_probe(into), into / tool / "report.json", into / tool / "log"
    command = ["valgrind", f"--tool={tool}", *OPTIONS[tool], f"--log-file={log}"]
    if tool == "callgrind":
        command.append(f"--callgrind-out-file={into / tool / 'counts'}")
    command += [sys.executable, "-m", "constant_time.inside", tool, str(probe), str(report)]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(installed), str(HERE.parent)]),
        # The interpreter's objects come one by one from the allocator that memcheck watches.
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": str(probe),
    }
    finished = subprocess.run(command + [case.name for case in cases], env=environment, check=False)
    if finished.returncode != 0:
        raise SystemExit(f"the cases ended with status {finished.returncode} under {tool}; see {log}")
    seen = json.loads(report.read_text(encoding="utf-8"))
    if Path(seen["loaded"]) != library(installed):
        raise SystemExit(f"loaded {seen['loaded']} instead of {library(installed)}")
    runs: dict[str, dict[str, Any]] = seen["runs"]
    return runs
