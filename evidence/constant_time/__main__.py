"""Evidence that the samplers are constant time: `make constant-time`, or `python -m constant_time` in evidence/."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from constant_time.callgrind import check_callgrind
from constant_time.coverage import gaps
from constant_time.memcheck import check_memcheck
from constant_time.running import Complaint, cases_of, library
from constant_time.wheel import install

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "constant-time"
PAGE = ROOT / "docs" / "constant-time.md"


def unsupported() -> str | None:
    """Why a machine of this kind cannot produce the evidence."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        return None
    return f"it is produced on x86-64 Linux; this is {platform.machine()} {platform.system()}"


def missing() -> str | None:
    """What has to be installed first."""
    programs = {"valgrind": "valgrind and libc6-dbg", "cc": "gcc and libc6-dev", "objdump": "binutils"}
    absent = [f"{program} (on Debian: {package})" for program, package in programs.items() if not shutil.which(program)]
    return f"it needs {', '.join(absent)}" if absent else None


def main() -> int:
    """Print the evidence; 0 when it holds, 1 when it does not."""
    parser = argparse.ArgumentParser(prog="constant_time", description=__doc__)
    parser.add_argument("--kernel", action="append", default=[], help="only what calls this kernel; may be repeated")
    parser.add_argument("--tool", action="append", choices=["memcheck", "callgrind"], help="only this tool")
    parser.add_argument("--installed", type=Path, help="a directory with the wheel installed, instead of a new one")
    parser.add_argument("--if-possible", action="store_true", help="outside CI, missing programs are no failure")
    arguments = parser.parse_args()

    if reason := unsupported() or missing():
        print(f"No evidence on constant time: {reason}.", file=sys.stderr)
        # CI must never pass without.
        return 0 if (unsupported() or arguments.if_possible) and not os.environ.get("CI") else 1
    start = time.monotonic()
    version = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    print(f"{version}, {platform.platform()}", flush=True)
    installed = arguments.installed or install(ROOT, WORK)
    work = installed.parent
    cases = cases_of(arguments.kernel)
    tools = arguments.tool or ["memcheck", "callgrind"]
    complaints = [Complaint("", gap) for gap in gaps(ROOT / "rust", library(installed), PAGE)]
    if "memcheck" in tools:
        complaints += check_memcheck(installed, work, cases)
    if "callgrind" in tools:
        complaints += check_callgrind(installed, work, cases)
    print(f"\n{time.monotonic() - start:.0f} s; {'FAILED' if complaints else 'passed'}", flush=True)
    for complaint in complaints:
        print(f"FAILED: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
