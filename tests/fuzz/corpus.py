"""The parsers that are fuzzed, and the inputs that are kept of each: one in a line of tests/data/fuzz."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz import inputs, reports

FOLDER = Path(__file__).parents[1] / "data" / "fuzz"


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


def write(name: str, inputs: list[bytes]) -> None:
    """Keep these inputs."""
    coding = "utf-8" if name != "messages" else "latin-1"
    lines = [json.dumps(one.decode(coding, "surrogatepass")) for one in inputs]
    (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="ascii")
