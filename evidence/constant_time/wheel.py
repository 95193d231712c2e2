"""The library that is examined: the wheel as it is released, installed by itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["install"]


def install(project: Path, into: Path) -> Path:
    """Build the wheel of a project as for a release, and install it into a new directory, which is returned."""
    wheels, installed = into / "wheel", into / "installed"
    for directory in (wheels, installed):
        shutil.rmtree(directory, ignore_errors=True)
    run = [sys.executable, "-m"]
    environment = os.environ | {"PYO3_PYTHON": sys.executable}
    build = [*run, "maturin", "build", "--release", "--quiet", "--out", str(wheels)]
    subprocess.run(build, check=True, cwd=project, env=environment)
    (wheel,) = wheels.glob("*.whl")
    subprocess.run(
        [*run, "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(installed), str(wheel)],
        check=True,
    )
    print(f"examined: {wheel.name}, installed into {installed}")
    return installed
