"""No instruction may branch on a secret, or read or write at an address that depends on one.

Functions that reveal branch on what a kernel has decided, once each time: they must be reported exactly as often.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from constant_time.cases import DECIDES, Case
from constant_time.probe import CONTROL
from constant_time.running import Complaint, run_under

__all__ = ["check_memcheck", "reports_in"]

NOTE = re.compile(r"\*\*\d+\*\* --- (.*?): ")
BRANCH = "Conditional jump or move depends on uninitialised value(s)"
"""memcheck's words for a branch on a secret."""
FRAME = re.compile(r"==\d+==    at 0x[0-9A-F]+: (\S+)")


def check_memcheck(installed: Path, into: Path, cases: Sequence[Case]) -> list[Complaint]:
    """Print what memcheck reports for each case and for the control, and return what is wrong."""
    runs = run_under("memcheck", installed, into, cases)
    complaints = []
    print(f"\n{'memcheck':<58}{'runs':>6}{'secret bytes':>14}{'draws':>8}{'revealed':>10}{'errors':>8}")
    for case in cases:
        print_line(case.name, runs[case.name], case.revealed, remark_on(case))
        for label, run in runs[case.name].items():
            complaints += [Complaint(case.name, f"{label}: {what}") for what in wrong_in(run, case)]
    print_line(f"control: {CONTROL}", runs[CONTROL])
    missed = [label for label, run in runs[CONTROL].items() if run["errors"] == 0]
    complaints += [Complaint("", f"memcheck does not report {CONTROL} on {label}") for label in missed]
    log = into / "memcheck" / "log"
    complaints += out_of_place(log.read_text(encoding="utf-8", errors="replace"), cases)
    if complaints:
        complaints.append(Complaint("", f"memcheck's reports are in {log}"))
    return complaints


def wrong_in(run: dict[str, Any], case: Case) -> list[str]:
    """What is not as it must be in one run."""
    expected = {"marked": case.secret_bytes, "draws": case.draws, "equal": True}
    expected["errors"] = (run["errors_of_conversion"] if case.errors is None else case.errors) + case.revealed
    if case.errors == 0:
        # A public draw would mean that its secrets were lost on the way, and that nothing was examined.
        expected["secret_draws"] = case.draws
    wrong = [f"{what} is {run[what]}, not {wanted}" for what, wanted in expected.items() if run[what] != wanted]
    if case.errors is None and run["errors_of_conversion"] == 0:
        wrong.append("the conversion of the draw is not reported: its secrets were lost on the way")
    return wrong


def reports_in(log: str) -> Iterator[tuple[str, str, str]]:
    """Of each report in a log: the case, what it is about, and the function. Reports that are alike are listed once."""
    case, about = "", ""
    for line in log.splitlines():
        if note := NOTE.match(line):
            case = note[1]
        elif frame := FRAME.match(line):
            yield case, about, frame[1]
        else:
            about = line.partition("== ")[2]


def out_of_place(log: str, cases: Sequence[Case]) -> list[Complaint]:
    """Reports that are not of a branch in a function that reveals, of the cases that may have no others."""
    reveal = {case.name: set(case.calls) & set(DECIDES) for case in cases if case.errors == 0}
    return [
        Complaint(case, f"in {function}: {about}")
        for case, about, function in reports_in(log)
        if case in reveal and not (about == BRANCH and function in reveal[case])
    ]


def remark_on(case: Case) -> str:
    """What a line of the table adds to its number of errors."""
    if case.errors is None:
        return "  as many as making an int of the draw causes alone"
    return "  on the released bit, as stated" if case.errors else ""


def print_line(name: str, seen: dict[str, Any], revealed: int = 0, remark: str = "") -> None:
    """One line of the table: sums over the runs."""
    marked, draws, errors = (sum(run[what] for run in seen.values()) for what in ("marked", "draws", "errors"))
    revealed *= len(seen)
    print(f"{name:<58}{len(seen):>6}{marked:>14,}{draws:>8,}{revealed:>10,}{errors - revealed:>8,}{remark}")
