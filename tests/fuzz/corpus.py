"""The parsers that are fuzzed, and the inputs that are kept of each: one in a line of tests/data/fuzz."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import userdp
from fuzz import inputs, reports
from fuzz.modules import MODULES

ROOT = Path(userdp.__file__).parent
FOLDER = Path(__file__).parents[1] / "data" / "fuzz"
LONGEST = 3000
"""Bytes of an input that is kept."""


class Target(NamedTuple):
    """One parser: what is done with an input (whether it got past the parser), and how others are made of it."""

    run: Callable[[bytes], bool]
    alter: Callable[[bytes, random.Random], bytes]

    def kind(self, data: bytes) -> str:
        """A word for inputs of one kind."""
        at = data.find(b'"format": "')
        return data[at : at + 30].decode(errors="replace") if at >= 0 else data[:12].decode(errors="replace")


TARGETS = {
    "reports": Target(reports.run, reports.alter),
    "certificates": Target(reports.run, reports.alter),
    "messages": Target(inputs.run_messages, inputs.alter_messages),
    "ledgers": Target(inputs.run_ledgers, inputs.alter_ledgers),
    "schemas": Target(inputs.run_schemas, inputs.alter_schemas),
}


def read(name: str) -> list[bytes]:
    """The inputs that are kept."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="ascii").splitlines()
    return [json.loads(line).encode("utf-8" if name != "messages" else "latin-1", "surrogatepass") for line in lines]


def smallest(name: str, kept: list[bytes], found: list[bytes]) -> list[bytes]:
    """What is kept, and of others those that reach more pairs of lines one after the other, the shortest ones first."""
    files = {str(ROOT / f"{module.replace('.', '/')}.py") for module in MODULES[name].split()}
    seen, steps, more = set[tuple[str, int, int]](), set[tuple[str, int, int]](), list[bytes]()

    def watch(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename not in files:
            return None
        last = 0

        def line(inner: FrameType, event: str, _: object) -> Any:
            nonlocal last
            steps.add((inner.f_code.co_filename, last, inner.f_lineno))
            last = inner.f_lineno
            return line

        return line

    for one in [*kept, *sorted(found, key=len)]:
        steps.clear()
        sys.settrace(watch)
        try:
            TARGETS[name].run(one)
        finally:
            sys.settrace(None)
        if steps - seen:
            seen |= steps
            more += [] if one in kept else [one]
    return [*kept, *more]


def main(name: str, folder: Path) -> None:
    """Keep what is kept already, and of a folder what reaches more."""
    found = [path.read_bytes() for path in sorted(folder.iterdir())]
    kept = smallest(name, read(name), [one for one in found if len(one) <= LONGEST])
    coding = "latin-1" if name == "messages" else "utf-8"
    lines = [json.dumps(one.decode(coding, "surrogatepass")) for one in kept]
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
    print(f"{name}: {len(kept)} of {len(found)} inputs kept, {sum(map(len, kept))} bytes")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
