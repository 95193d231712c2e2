"""Runs of pytest in forked children, in a tree that may be mutated while no child runs."""

from __future__ import annotations

import compileall
import contextlib
import importlib
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

PRELOADED = ("hypothesis", "numpy", "sklearn.base", "sklearn.utils.validation")
"""What most tests import. It is loaded once and forked; nothing of the package is, as the package is what changes."""

PATIENCE = 20
"""How many times as long as its processor time a run may take by the clock, as other programs may run too."""

MEMORY = 8 << 30
"""Bytes that a run may address: a fault must not take the memory of the machine."""


class Outcome(NamedTuple):
    """How one run of pytest ended."""

    code: int
    """pytest's exit code; -1 when time ran out."""
    seconds: float
    """Processor seconds, of all threads and of the processes that were waited for."""
    failed: tuple[str, ...]
    """The tests that failed, or the files that could not be read."""


class Failures:
    """A plugin: writes down which tests fail, and runs only the chosen ones, in their order."""

    def __init__(self, chosen: list[str] | None) -> None:
        self.rank = None if chosen is None else {name: place for place, name in enumerate(chosen)}
        self.failed: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen tests, in the order in which they were chosen."""
        if self.rank is not None:
            places = {item: place for item in items if (place := self._place(item)) is not None}
            items[:] = sorted(places, key=lambda item: places[item])

    def _place(self, item: pytest.Item) -> int | None:
        """When a test is run, or None; tests are chosen by their id, or by what the function is called."""
        assert self.rank is not None
        function = item.name.partition("[")[0]
        documented = "doctest " + ".".join(function.split(".")[-2:])
        found = (self.rank.get(name) for name in (item.nodeid, function, documented))
        return next((place for place in found if place is not None), None)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported fails."""
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test, its setup or its teardown fails."""
        if report.failed:
            self.failed.append(report.nodeid)


def preload(tree: Path) -> None:
    """Import what children share, and let them find the package and the helpers of the tests in `tree`."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    paths = [str(tree / folder) for folder in ("python", "tests", "evidence")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    for name in PRELOADED:
        importlib.import_module(name)
    if loaded := [name for name in sys.modules if name.split(".")[0] == "userdp"]:
        raise RuntimeError(f"the package must not be loaded before a child is forked; it is: {loaded[:3]}")
    sys.path[:0] = paths
    for path in paths:
        compileall.compile_dir(path, quiet=2)


def pytest_run(
    tree: Path,
    files: list[str],
    chosen: list[str] | None = None,
    *,
    seconds: float,
    stop: bool = True,
    test_seconds: float | None = None,
    inside: Callable[[], object] | None = None,
    after: Callable[[], None] | None = None,
) -> Outcome:
    """Run `chosen` tests of `files`, or all of them, in a forked child that is killed after `seconds`.

    They are processor seconds, so that what else the machine does decides nothing; `test_seconds` are those of a clock.
    """
    # Modules with examples come last: pytest would load them a second time for the tests that import them.
    files = sorted(files, key=lambda file: (file.startswith("python/"), file))
    scratch = Path(tempfile.mkdtemp(prefix="mutation-"))
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        options = [*(["-x"] if stop else []), *([f"--timeout={test_seconds}"] if test_seconds else []), *files]
        _child(tree, options, chosen, scratch, inside, after)
    # A test that waits for ever uses no processor.
    code, spent = _wait(child, time.monotonic() + PATIENCE * (seconds + 30))
    if code not in (*range(6), -1):
        raise RuntimeError(f"the child broke: {(scratch / 'output').read_text()[-2000:]}")
    found = scratch / "failed"
    failed = tuple(found.read_text().splitlines()) if found.exists() else ()
    shutil.rmtree(scratch, ignore_errors=True)
    return Outcome(code, spent, failed)


def _child(
    tree: Path,
    arguments: list[str],
    chosen: list[str] | None,
    scratch: Path,
    inside: Callable[[], object] | None,
    after: Callable[[], None] | None,
) -> None:
    """What the child does; it never returns."""
    code = 70
    try:
        os.setsid()
        output = os.open(scratch / "output", os.O_WRONLY | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(tree)
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(scratch / "hypothesis")
        failures = Failures(chosen)
        options = [
            "-q",
            "--tb=no",
            "--assert=plain",
            "--no-header",
            "-p",
            "no:cacheprovider",
            f"--basetemp={scratch / 'tmp'}",
        ]
        plugins = [failures, *([inside()] if inside else [])]
        code = int(pytest.main([*options, *arguments], plugins=plugins))
        (scratch / "failed").write_text("\n".join(failures.failed))
        if after:
            after()
    except BaseException as error:
        os.write(2, repr(error).encode())
    finally:
        os._exit(code)


def _wait(child: int, deadline: float) -> tuple[int, float]:
    """The exit code of `child`, or -1 when its processor time ran out or the deadline passed, and what it used."""
    pause = 0.01
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            _kill(child)  # what the tests started and left behind
            code = os.waitstatus_to_exitcode(status)
            late = code in (-signal.SIGXCPU, -signal.SIGKILL)
            return -1 if late else code, used.ru_utime + used.ru_stime
        if time.monotonic() > deadline:
            _kill(child)
            _, _, used = os.wait4(child, 0)
            return -1, used.ru_utime + used.ru_stime
        time.sleep(pause)
        pause = min(0.1, pause * 1.5)


def _kill(child: int) -> None:
    """Kill the group of processes that `child` leads."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
