"""Which tests a mutant has to pass: those that run its line, cheapest first, up to a cap."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from mutation.covering import WHOLE_FILE
from mutation.mutants import Mutant


class Stage(NamedTuple):
    """Tests that are run in one process."""

    files: list[str]
    tests: list[str]
    seconds: float
    """What they took under coverage.py."""


class Map:
    """Which tests run which line, and what each costs."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.overhead: dict[str, float] = {}
        self.tests_in: dict[str, list[str]] = {}
        self.lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for kept in sorted(folder.glob("*.json")):
            found = json.loads(kept.read_text())
            file = found["file"]
            self.overhead[file] = found.get("overhead", 1.0)
            self.tests_in[file] = list(found["seconds"])
            self.seconds.update(found["seconds"])
            for path, lines in found["lines"].items():
                for line, names in lines.items():
                    here = self.lines[path][int(line)]
                    for name in names:
                        here.update(found["seconds"] if name == WHOLE_FILE else (name,))
                    here.discard("")
        for lines_of in self.lines.values():
            for line in lines_of:
                lines_of[line] = {name for name in lines_of[line] if name in self.seconds}
        self.sources = {
            str(path.relative_to(tree)): path.read_text().splitlines() for path in (tree / "python").rglob("*.py")
        }

    def running(self, mutant: Mutant) -> set[str]:
        """The tests that run the mutant's lines; for a line that runs at import, those that run what needs it."""
        lines = self.lines.get(mutant.file, {})
        first, last = mutant.line, mutant.last_line
        if mutant.statement.startswith("def "):
            first, last = self._body(mutant)  # a default counts where the function runs
        found = set().union(*(lines.get(line, ()) for line in range(first, last + 1)))
        # A line outside of functions runs for the first test that loads the module.
        return found | self._by_name(mutant) if not found or not mutant.function else found

    def _body(self, mutant: Mutant) -> tuple[int, int]:
        """The first and the last line of the body of the function whose head has the mutant."""
        for node in ast.walk(ast.parse("\n".join(self.sources[mutant.file]))):
            if isinstance(node, ast.FunctionDef) and node.lineno <= mutant.line < node.body[0].lineno:
                return node.body[0].lineno, node.end_lineno or node.lineno
        return mutant.line, mutant.last_line

    def _by_name(self, mutant: Mutant) -> set[str]:
        """The tests that run lines with the name that the statement defines, in any module."""
        match = re.match(r"(?:def |class )(\w+)|(\w+)\s*(?::[^=]*)?=", mutant.statement)
        if not match:
            return set()
        name = re.compile(rf"\b{match[1] or match[2]}\b")
        found: set[str] = set()
        for path, source in self.sources.items():
            for number, text in enumerate(source, start=1):
                if name.search(text):
                    found |= self.lines.get(path, {}).get(number, set())
        return found

    def stages(self, mutant: Mutant, cap: float, first: float) -> list[Stage]:
        """The tests in two stages: files that deal most with this line, for `first` seconds; the rest up to `cap`."""
        tests = self.running(mutant)
        files: dict[str, list[str]] = defaultdict(list)
        for test in tests:
            files[file_of(test)].append(test)
        for chosen in files.values():
            chosen.sort(key=lambda name: (self.seconds[name], name))
        share = {file: len(chosen) / len(self.tests_in[file]) for file, chosen in files.items()}
        near = sorted(files, key=lambda file: (-round(share[file], 1), self.overhead[file], file))[:3]
        early = self._fill([(file, test) for file in near for test in files[file][:25]], first, set())
        late = self._fill(
            sorted(((file, test) for file, chosen in files.items() for test in chosen), key=self._price),
            cap - early.seconds,
            set(early.tests),
        )
        return [stage for stage in (early, late) if stage.tests]

    def _price(self, pair: tuple[str, str]) -> tuple[float, str]:
        return self.seconds[pair[1]], pair[1]

    def _fill(self, pairs: list[tuple[str, str]], cap: float, done: set[str]) -> Stage:
        """As many tests as fit, in this order; reading a file counts when its first test is taken."""
        files: list[str] = []
        tests: list[str] = []
        spent = 0.0
        for file, test in sorted(pairs, key=self._price):
            cost = self.seconds[test] + (0 if file in files else self.overhead[file])
            if test in done or spent + cost > cap:
                continue
            spent += cost
            tests.append(test)
            if file not in files:
                files.append(file)
        return Stage(files, tests, spent)


def file_of(test: str) -> str:
    """The file of a test."""
    return test.split("::")[0]
