"""Each instruction of a kernel must be executed equally often whatever the secrets are, and none may be a division."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from constant_time.cases import Case
from constant_time.counts import Count, reached_from, read_counts
from constant_time.probe import CONTROL
from constant_time.running import Complaint, library, run_under

__all__ = ["branches_of", "check_callgrind", "forbidden_in"]

FORBIDDEN = re.compile(r"i?div|f|v?(add|sub|mul|div|sqrt|rsqrt|rcp|min|max|round|cmp\w*|u?comi|cvt\w*|fn?m\w*)[sp][sd]")
"""Divisions, and arithmetic of floats, whose time may depend on the numbers."""
JUMP = re.compile(r"j(?!mp)")


def check_callgrind(installed: Path, into: Path, cases: Sequence[Case]) -> list[Complaint]:
    """Print the counts of each kernel in each case and of the control, and return what is wrong."""
    runs = run_under("callgrind", installed, into, cases)
    counts = read_counts(into / "callgrind", "counts.*")
    complaints = []
    executed: dict[str, set[int]] = {}
    print(f"\n{'callgrind':<58}{'runs':>6}{'calls':>8}{'instructions':>22}")
    for case in cases:
        seen = {label: counts[f"{case.name}: {label}"] for label in runs[case.name]}
        print(case.name)
        called = {name for run in seen.values() for name in run if name.startswith("userdp_")}
        complaints += [Complaint(case.name, f"{name} is called") for name in sorted(called - set(case.calls))]
        for kernel, calls in case.calls.items():
            of_kernel = {label: run.get(kernel, Count()) for label, run in seen.items()}
            print_line(f"  {kernel}", list(of_kernel.values()))
            complaints += [
                Complaint(case.name, f"{label}: {kernel} is called {count.calls} times, not {calls}")
                for label, count in of_kernel.items()
                if count.calls != calls
            ]
            if not all_equal(of_kernel.values()):
                complaints += [
                    Complaint(case.name, f"{label}: {kernel} executes {count.instructions} instructions")
                    for label, count in of_kernel.items()
                ]
            for run in seen.values():
                executed.setdefault(kernel, set()).update(reached_from(kernel, run, str(library(installed))))
    control = [counts[f"{CONTROL}: {label}"][CONTROL] for label in runs[CONTROL]]
    print_line(f"control: {CONTROL}", control)
    if all_equal(control):
        complaints.append(Complaint("", f"callgrind sees no difference in {CONTROL}"))
    return complaints + check_instructions(installed, executed)


def check_instructions(installed: Path, executed: dict[str, set[int]]) -> list[Complaint]:
    """Print how many instructions of the library each kernel executed, and return the forbidden ones."""
    code = disassembled(library(installed))
    complaints = []
    print(f"\n{'instructions executed, in calls too':<58}{'all':>6}{'jumps':>8}{'forbidden':>11}")
    for kernel, addresses in sorted(executed.items()):
        forbidden = forbidden_in(code, addresses)
        print(f"{kernel:<58}{len(addresses):>6}{branches_of(code, addresses):>8}{len(forbidden):>11}")
        complaints += [Complaint("", f"{kernel} executes {instruction}") for instruction in forbidden]
    return complaints


def all_equal(counts: Iterable[Count]) -> bool:
    """True when the same instructions were executed equally often."""
    first, *others = counts
    return all(count == first for count in others)


def print_line(name: str, seen: Sequence[Count]) -> None:
    """One line of the table: the least and the most instructions of the runs."""
    least, most = (extreme(count.instructions for count in seen) for extreme in (min, max))
    shown = f"{least:,}, all equal" if all_equal(seen) else f"{least:,} to {most:,}"
    print(f"{name:<58}{len(seen):>6}{seen[0].calls:>8,}{shown:>22}")


def disassembled(library: Path) -> dict[int, str]:
    """The instructions of a file by their address."""
    command = ["objdump", "-d", "--no-show-raw-insn", str(library)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = (line.partition(":\t") for line in text.splitlines() if ":\t" in line)
    return {int(address, 16): instruction.strip() for address, _, instruction in lines}


def forbidden_in(code: dict[int, str], addresses: Iterable[int]) -> list[str]:
    """The instructions at these addresses that must not be used on secrets."""
    return [f"{code[address]} at {address:#x}" for address in sorted(addresses) if FORBIDDEN.match(code[address])]


def branches_of(code: dict[int, str], addresses: Iterable[int]) -> int:
    """How many of the instructions are conditional jumps."""
    return sum(JUMP.match(code[address]) is not None for address in addresses)
