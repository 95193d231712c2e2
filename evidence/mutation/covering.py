"""Which tests run which lines: one run of every test file under coverage.py, with the test as context."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mutation.mutants import FOLDERS
from mutation.running import PATIENCE, pytest_run

WHOLE_FILE = "*"
"""The context of what a file's tests share: fixtures that are set up once."""

LONGEST = 40
"""Processor seconds above which a test is left out: it would not fit under the cap of a mutant."""


class Contexts:
    """A plugin: tells coverage.py which test runs, and how long each took."""

    def __init__(self, coverage: Any) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.reading = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Attribute lines to the test; results that earlier tests left in caches are forgotten first."""
        forget()
        self.coverage.switch_context(item.nodeid)
        started = processor_seconds()
        result = yield
        self.seconds[item.nodeid] = processor_seconds() - started
        self.coverage.switch_context("")
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        """Attribute what is set up once to the whole file."""
        if fixturedef.scope == "function":
            return (yield)
        self.coverage.switch_context(WHOLE_FILE)
        result = yield
        self.coverage.switch_context(request.node.nodeid if request.scope == "function" else WHOLE_FILE)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what did not pass."""
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


def processor_seconds() -> float:
    """What this process has used so far, with its threads and the processes that it waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def forget() -> None:
    """Empty the caches of the package's functions, so that a line counts for every test that needs it."""
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == "userdp":
            for holder in (module, *(value for value in vars(module).values() if isinstance(value, type))):
                for value in vars(holder).values():
                    if hasattr(value, "cache_clear"):
                        value.cache_clear()


def cover_file(tree: Path, file: str, kept: Path) -> str:
    """Run one test file and keep which lines of the package each test runs; say how it went."""
    state: dict[str, Any] = {}

    def inside() -> Contexts:
        import coverage

        measure = coverage.Coverage(data_file=None, include=[str(tree / "python" / "userdp" / "*")], config_file=False)
        measure.start()
        state["contexts"] = Contexts(measure)
        return state["contexts"]

    def after() -> None:
        contexts: Contexts = state["contexts"]
        contexts.coverage.stop()
        data = contexts.coverage.get_data()
        lines = {
            str(Path(path).relative_to(tree)): {
                str(line): sorted(names) for line, names in data.contexts_by_lineno(path).items()
            }
            for path in data.measured_files()
        }
        left_out = contexts.failed | {name for name, spent in contexts.seconds.items() if spent > LONGEST}
        seconds = {name: round(spent, 4) for name, spent in contexts.seconds.items() if name not in left_out}
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({"file": file, "seconds": seconds, "lines": lines, "bad": sorted(contexts.failed)}))

    outcome = pytest_run(
        tree, [file], seconds=900, stop=False, test_seconds=PATIENCE * LONGEST, inside=inside, after=after
    )
    if kept.exists():
        found = json.loads(kept.read_text())
        found["overhead"] = round(max(0.3, outcome.seconds - sum(found["seconds"].values())), 3)
        kept.write_text(json.dumps(found))
    return f"{file}: code {outcome.code}, {outcome.seconds:.1f} s, {len(outcome.failed)} failed"


def test_files(tree: Path) -> list[str]:
    """The files with tests: those of tests/, and modules with examples; what deals with the mutated folders first."""
    tests = sorted((tree / "tests").rglob("test_*.py"))
    examples = [path for path in sorted((tree / "python").rglob("*.py")) if ">>> " in path.read_text()]
    return [str(path.relative_to(tree)) for path in sorted((*tests, *examples), key=_distance)]


def _distance(path: Path) -> tuple[int, Path]:
    """How many other folders of the package a file deals with; far away, when it deals with none that is mutated."""
    text = path.read_text()
    folders = {name.split(".")[1] for name in re.findall(r"userdp\.[a-z_]+", text)}
    if "python" in path.parts:
        folders = {path.parent.name}
    return len(folders - {*FOLDERS, "exact", "runtime", "divergence"}) + 100 * (not folders & {*FOLDERS}), path


def cover(tree: Path, folder: Path) -> None:
    """Run every test file once, except those whose map is there already."""
    for file in test_files(tree):
        kept = folder / (file.replace("/", "~") + ".json")
        if not kept.exists():
            print(cover_file(tree, file, kept), flush=True)
