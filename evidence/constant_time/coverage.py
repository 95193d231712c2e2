"""What is written, what is exported and what is examined must be the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from constant_time.cases import CASES
from constant_time.kernels import exported, written
from constant_time.running import SUPPRESSIONS

__all__ = ["gaps", "suppressed"]


def suppressed() -> set[str]:
    """Names of the functions in which memcheck's reports are left out."""
    text = SUPPRESSIONS.read_text(encoding="utf-8")
    return set(re.findall(r"^\s*(?:fun|obj|src):(.*)$", text, re.MULTILINE))


def gaps(sources: Path, library: Path) -> Sequence[str]:
    """What is missing among the kernels of the sources, of a built library and of the cases."""
    kernels, examined = set(written(sources)), {kernel for case in CASES for kernel in case.calls}
    found = exported(library)
    revealing = {kernel for kernel in kernels if kernel.startswith("userdp_revealed_")}
    differences = {
        "is not exported": kernels - found,
        "is exported, but not in the sources": found - kernels,
        "is called by no case": kernels - examined,
        "is called by a case, but not in the sources": examined - kernels,
        "must not be suppressed": suppressed() - revealing,
        "reveals something, but is not suppressed": revealing - suppressed(),
    }
    return [f"{name} {what}" for what, names in differences.items() for name in sorted(names)]
