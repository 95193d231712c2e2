"""No instruction may branch on a secret, or read or write at an address that depends on one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constant_time.cases import Case
from constant_time.probe import CONTROL
from constant_time.running import Complaint, run_under

__all__ = ["check_memcheck"]

REMARKS = {0: "", None: "  as many as making an int of the draw causes alone"}
"""What a line of the table adds to its number of errors."""


def check_memcheck(installed: Path, into: Path, cases: Sequence[Case]) -> list[Complaint]:
    """Print what memcheck reports for each case and for the control, and return what is wrong."""
    runs = run_under("memcheck", installed, into, cases)
    complaints = []
    print(f"\n{'memcheck':<58}{'runs':>6}{'secret bytes':>14}{'draws':>8}{'errors':>8}")
    for case in cases:
        print_line(case.name, runs[case.name], REMARKS.get(case.errors, "  on the released bit, as stated"))
        for label, run in runs[case.name].items():
            complaints += [Complaint(case.name, f"{label}: {what}") for what in wrong_in(run, case)]
    print_line(f"control: {CONTROL}", runs[CONTROL])
    missed = [label for label, run in runs[CONTROL].items() if run["errors"] == 0]
    complaints += [Complaint("", f"memcheck does not report {CONTROL} on {label}") for label in missed]
    if complaints:
        complaints.append(Complaint("", f"memcheck's reports are in {into / 'memcheck' / 'log'}"))
    return complaints


def wrong_in(run: dict[str, Any], case: Case) -> list[str]:
    """What is not as it must be in one run."""
    expected = {"marked": case.secret_bytes, "draws": case.draws, "equal": True}
    expected["errors"] = run["errors_of_conversion"] if case.errors is None else case.errors
    if case.errors == 0:
        # A public draw would mean that its secrets were lost on the way, and that nothing was examined.
        expected["secret_draws"] = case.draws
    wrong = [f"{what} is {run[what]}, not {wanted}" for what, wanted in expected.items() if run[what] != wanted]
    if case.errors is None and run["errors"] == 0:
        wrong.append("the conversion of the draw is not reported: its secrets were lost on the way")
    return wrong


def print_line(name: str, seen: dict[str, Any], remark: str = "") -> None:
    """One line of the table: sums over the runs."""
    marked, draws, errors = (sum(run[what] for run in seen.values()) for what in ("marked", "draws", "errors"))
    print(f"{name:<58}{len(seen):>6}{marked:>14,}{draws:>8,}{errors:>8,}{remark}")
