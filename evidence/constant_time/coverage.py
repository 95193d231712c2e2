"""What is claimed, written, exported and examined must be the same."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from pathlib import Path

from constant_time.cases import CASES, DECIDES

__all__ = ["claimed", "exported", "gaps", "revealed", "written"]

DEFINITION = re.compile(r"^\s*(?:pub(?:\(\w+\))? )?fn (userdp_(?:ct|revealed)_\w+)", re.MULTILINE)


def written(sources: Path) -> dict[str, Path]:
    """Name and file of each kernel that the Rust files under a directory define."""
    found: dict[str, Path] = {}
    for path in sorted(sources.rglob("*.rs")):
        for name in DEFINITION.findall(path.read_text(encoding="utf-8")):
            if name in found:
                raise ValueError(f"{name} is defined in {found[name]} and in {path}")
            found[name] = path
    return found


def exported(library: Path) -> set[str]:
    """Names of the kernels that a built library exports."""
    names = {name.decode() for name in re.findall(rb"userdp_(?:ct|revealed)_[a-z0-9_]+", library.read_bytes())}
    functions = ctypes.CDLL(str(library))
    return {name for name in names if hasattr(functions, name)}


def rows_of(page: Path, heading: str) -> list[str]:
    """The first cells of the table whose first column has this heading."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |"))
    end = next(number for number in range(start, len(lines) + 1) if not "".join(lines[number : number + 1]))
    return [line.split("|")[1] for line in lines[start + 2 : end]]


def claimed(page: Path) -> list[str]:
    """The public calls of which the page says that they are constant time: one for each row of its table."""
    return [call for row in rows_of(page, "call") for call in re.findall(r"`(\w+\.\w+)`", row)]


def revealed(page: Path) -> list[str]:
    """The functions of which the page says what they reveal."""
    return [name for row in rows_of(page, "function") for name in re.findall(r"`(\w+)`", row)]


def gaps(sources: Path, library: Path, page: Path) -> Sequence[str]:
    """What is missing among the functions of the sources and the library, and the calls of the page and the cases."""
    kernels, examined = set(written(sources)), {kernel for case in CASES for kernel in case.calls}
    found = exported(library)
    revealing = {kernel for kernel in kernels if kernel.startswith("userdp_revealed_")}
    calls, cases = set(claimed(page)), {case.claim for case in CASES}
    differences = {
        "is not exported": kernels - found,
        "is exported, but not in the sources": found - kernels,
        "is called by no case": kernels - examined,
        "is called by a case, but not in the sources": examined - kernels,
        "is claimed, and has no case": calls - cases,
        "has a case, and is not claimed": cases - calls,
        "reveals something, and the page does not say what": revealing - set(revealed(page)),
        "is said to reveal something, and is not in the sources": set(revealed(page)) - revealing,
        "reveals something, and no kernel is known that decides it": revealing - set(DECIDES),
    }
    return [f"{name} {what}" for what, names in differences.items() for name in sorted(names)]
