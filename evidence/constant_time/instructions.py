"""Which instructions were executed, from the disassembly of the library."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["branches_of", "disassembled", "forbidden_in"]

FORBIDDEN = re.compile(r"i?div|f|v?(add|sub|mul|div|sqrt|rsqrt|rcp|min|max|round|cmp\w*|u?comi|cvt\w*|fn?m\w*)[sp][sd]")
"""Divisions, and arithmetic of floats, whose time may depend on the numbers."""
JUMP = re.compile(r"j(?!mp)")


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
