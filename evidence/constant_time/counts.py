"""What callgrind counted, read from its files."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Count", "reached_from", "read_counts"]

LABEL = re.compile(r"^desc: Trigger: Client Request: (.*)$", re.MULTILINE)


@dataclass
class Count:
    """One function in one run."""

    calls: int = 0
    instructions: int = 0
    """Executed in the function and in what it called."""
    each: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """How often each instruction of the function itself was executed, by its address."""
    callees: set[str] = field(default_factory=set)
    file: str = ""
    """Where the function's code is from."""


def read_counts(directory: Path, pattern: str) -> dict[str, dict[str, Count]]:
    """Counts by the label of the run and the name of the function, from files that are one run each.

    The format is that of `--dump-instr=yes --dump-line=no --compress-strings=no --compress-pos=no`.
    """
    runs = {}
    for path in directory.glob(pattern):
        text = path.read_text(encoding="utf-8", errors="replace")
        if label := LABEL.search(text):
            runs[label[1]] = read_functions(text)
    return runs


def read_functions(text: str) -> dict[str, Count]:
    """Counts by function, of one file."""
    counts: dict[str, Count] = defaultdict(Count)
    file, callee, called, function = "", "", False, Count()
    for line in text.splitlines():
        if line.startswith("ob="):
            file = line[3:]
        elif line.startswith("fn="):
            function = counts[line[3:]]
            function.file = file
        elif line.startswith("cfn="):
            callee = line[4:]
            function.callees.add(callee)
        elif line.startswith("calls="):
            counts[callee].calls += int(line[6:].split()[0])
            called = True
        elif line.startswith("0x"):
            address, *executed = line.split()
            instructions = int(executed[0]) if executed else 0
            function.instructions += instructions
            # The line after a call is about what was executed in it.
            if not called:
                function.each[address] += instructions
            called = False
    return dict(counts)


def reached_from(kernel: str, counts: dict[str, Count], file: str) -> set[int]:
    """Addresses in a file that were executed in a function, and in all that is called from it."""
    addresses: set[int] = set()
    waiting, seen = [kernel], {kernel}
    while waiting:
        count = counts.get(waiting.pop(), Count())
        if count.file == file:
            addresses.update(int(address, 16) for address in count.each)
        waiting += count.callees - seen
        seen |= count.callees
    return addresses
