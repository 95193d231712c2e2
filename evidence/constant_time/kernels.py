"""The names of kernels: in the Rust sources, and in a built library."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

__all__ = ["exported", "written"]

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
