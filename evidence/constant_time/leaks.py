"""The harness must fail for a leak in any kernel, and in any function that reveals: `make constant-time-leaks`.

The sources are copied, and a branch on the secrets is planted into each of these functions, asleep until an environment
variable names the function. The copy is built once. With no leak awake it must pass; with one awake, every case that
calls the function must fail, under memcheck and under callgrind.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

from constant_time.__main__ import ROOT, WORK, missing, unsupported
from constant_time.callgrind import check_callgrind
from constant_time.cases import DISORDER
from constant_time.coverage import written
from constant_time.memcheck import check_memcheck
from constant_time.running import cases_of
from constant_time.wheel import install

COPIED = [
    "Cargo.toml",
    "Cargo.lock",
    "pyproject.toml",
    "README.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "rust",
    "python",
]
UNSEEN = {(check_callgrind, DISORDER)}
"""All that this one is told is the bit that it reveals, which is the same for all data."""
DOCUMENTED = r"((?:[ \t]*(?:///|#\[)[^\n]*\n)+)"
KERNEL = re.compile(
    DOCUMENTED + r"[ \t]*pub(?:\(\w+\))? fn (userdp_(?:ct|revealed)_\w+)\(([^{}]*?)\)(?: -> [^{}]*)? \{\n"
)


def secrets_of(kernel: str, documentation: str, arguments: str) -> list[str]:
    """The arguments that the documentation of a kernel names as secret."""
    text = " ".join(line.strip().removeprefix("///").strip() for line in documentation.splitlines())
    names = re.findall(r"(\w+):", arguments)
    sentence = re.search(r"Secret: ([^.]*)\.", text)
    words = re.findall(r"\w+", sentence[1]) if sentence else []
    secrets = names if {"both", "all"} & set(words) else [name for name in names if name in words]
    if not secrets:
        raise SystemExit(f"no leak can be planted in {kernel}: its documentation names no secret argument")
    return secrets


def plant(copy: Path) -> list[str]:
    """Plant a leak into each kernel below a directory, and return their names."""
    planted = []

    def with_leak(definition: re.Match[str]) -> str:
        documentation, kernel, arguments = definition.groups()
        planted.append(kernel)
        leaks = (
            f'crate::planted::leak("{kernel}", &{name});\n' for name in secrets_of(kernel, documentation, arguments)
        )
        return definition[0] + "".join(leaks)

    core = copy / "rust" / "core" / "src"
    for path in core.rglob("*.rs"):
        path.write_text(KERNEL.sub(with_leak, path.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copy(Path(__file__).with_name("planted.rs"), core)
    with (core / "lib.rs").open("a", encoding="utf-8") as library:
        library.write("mod planted;\n")
    kernels = set(written(copy / "rust"))
    if sorted(planted) != sorted(kernels):
        raise SystemExit(f"no leak is planted in {sorted(kernels - set(planted))}")
    return sorted(planted)


def leaky_copy(into: Path) -> tuple[Path, list[str]]:
    """The installed wheel with leaks, and their names."""
    shutil.rmtree(into, ignore_errors=True)
    copy = into / "project"
    copy.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
        else:
            shutil.copy(ROOT / name, copy / name)
    kernels = plant(copy)
    # Libraries of the same name from one directory would take each other's place.
    os.environ["CARGO_TARGET_DIR"] = str(into.with_name("leaky-target"))
    return install(copy, into), kernels


def main() -> int:
    """Print which leaks were found; 0 when all were."""
    parser = argparse.ArgumentParser(prog="constant_time.leaks", description=__doc__)
    parser.add_argument("--kernel", action="append", default=[], help="only leaks of this kernel; may be repeated")
    only = parser.parse_args().kernel
    if reason := unsupported() or missing():
        print(f"No evidence on constant time: {reason}.", file=sys.stderr)
        return 1
    work = WORK / "leaky"
    installed, planted = leaky_copy(work)
    if unknown := sorted(set(only) - set(planted)):
        raise SystemExit(f"there is no kernel {', '.join(unknown)}")
    kernels = only or planted
    failures = [
        f"with all leaks asleep: {complaint}"
        for check in (check_memcheck, check_callgrind)
        for complaint in check(installed, work, cases_of(only))
    ]
    found = 0
    for kernel in kernels:
        os.environ["USERDP_PLANTED_LEAK"] = kernel
        print(f"\n=== {kernel} leaks")
        cases = cases_of([kernel])
        for check in (check_memcheck, check_callgrind):
            if (check, kernel) in UNSEEN:
                continue
            complaints = check(installed, work, cases)
            for case in cases:
                if any(complaint.case == case.name for complaint in complaints):
                    found += 1
                else:
                    failures.append(f"{check.__name__} does not find the leak of {kernel} in {case.name}")
        del os.environ["USERDP_PLANTED_LEAK"]
    print(f"\n{len(kernels)} functions leaked in turn: {found} failures, as there should be; {len(failures)} missing")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
