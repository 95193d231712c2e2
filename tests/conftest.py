"""Which tests are slow: the processor time of every test, written to docs/test-durations.md and read from there.

Processor time, of all threads and of the processes that a test waits for, hardly changes with the number of workers and
with what else a machine does.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[1] / "docs" / "test-durations.md"
SLOW = 0.25
"""Seconds of all cases of a test together, from which on it is marked `slow`."""
UNLISTED = 4 * SLOW
"""A test that the table does not have is named at the end if it takes so long."""

_START = pytest.StashKey[float]()


@pytest.fixture(autouse=True)
def _no_fresh_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Audits start no processes, which would take half a second each, but in tests that are marked `fresh`."""
    if request.node.get_closest_marker("fresh") is None:
        for name in ("sensitivity", "sampler_law"):
            module = sys.modules.get(f"userdp.audit.{name}")
            if module is not None:
                monkeypatch.setattr(module, "PROCESSES", 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-durations", action="store_true", help=f"write {TABLE.name}, after all tests have run")


def pytest_configure(config: pytest.Config) -> None:
    # As a plugin: hooks of this file alone are not called for the examples in docstrings.
    config.pluginmanager.register(_Clock())
    # The workers of pytest-xdist send their reports to the process that started them.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Recorder(write=config.getoption("--record-durations")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    listed = _listed()
    for item in items:
        if _without_case(item.nodeid) in listed:
            item.add_marker(pytest.mark.slow)


def _listed() -> set[str]:
    """The tests that the table says are slow."""
    return set(re.findall(r"^\| `([^`]+)`", TABLE.read_text(), flags=re.MULTILINE)) if TABLE.exists() else set()


def _without_case(test: str) -> str:
    return test.partition("[")[0]


def _seconds() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class _Clock:
    """Adds the processor time of its phases to the reports of each test."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        item.stash[_START] = _seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = _seconds()
        report.user_properties.append(("seconds", now - item.stash[_START]))
        item.stash[_START] = now
        return report


class _Recorder:
    """Adds up the phases and the cases of each test, and writes the table, or names what it misses."""

    def __init__(self, *, write: bool) -> None:
        self.write = write
        self.cases: defaultdict[str, dict[str, float]] = defaultdict(dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cases = self.cases[_without_case(report.nodeid)]
        seconds = sum(float(str(value)) for name, value in report.user_properties if name == "seconds")
        cases[report.nodeid] = cases.get(report.nodeid, 0.0) + seconds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.write:
            return
        totals = {test: sum(cases.values()) for test, cases in self.cases.items()}
        missing = {test for test, seconds in totals.items() if seconds >= UNLISTED} - _listed()
        if missing:
            terminalreporter.section(f"slow, and not in {TABLE.name}: make test-durations")
        for test in sorted(missing, key=lambda test: -totals[test]):
            terminalreporter.line(f"{totals[test]:6.1f} s  {test}")

    def pytest_sessionfinish(self) -> None:
        if not self.write:
            return
        totals = {test: sum(cases.values()) for test, cases in self.cases.items()}
        folders: defaultdict[str, list[float]] = defaultdict(list)
        for test, cases in self.cases.items():
            folders[str(Path(test.partition("::")[0]).parent)] += cases.values()
        slow = sorted((test for test, seconds in totals.items() if seconds >= SLOW), key=lambda test: -totals[test])
        fast = sum(seconds for test, seconds in totals.items() if test not in set(slow))
        lines = [
            "# How long the tests take",
            "",
            "Processor seconds, of all threads and child processes. `make test-durations` writes this page.",
            f"It lists every test whose cases take {SLOW} s or more together. `tests/conftest.py` marks these `slow`,",
            "and `make quick` leaves them out.",
            "",
            f"{datetime.date.today()}, {_machine()}: {sum(map(len, self.cases.values())):,} tests in "
            f"{sum(totals.values()):,.0f} s; those that are not listed take {fast:,.0f} s.",
            "",
            "| folder | tests | seconds |",
            "|---|--:|--:|",
            *(f"| {name} | {len(times):,} | {sum(times):.1f} |" for name, times in sorted(folders.items())),
            "",
            "| test | cases | seconds |",
            "|---|--:|--:|",
            *(f"| `{test}` | {len(self.cases[test])} | {totals[test]:.1f} |" for test in slow),
        ]
        TABLE.write_text("\n".join(lines) + "\n")


def _machine() -> str:
    info = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", info.read_text()) if info.exists() else None
    name = model[1] if model else platform.machine()
    return f"{name}, {os.cpu_count()} cores, {platform.system()}, Python {sys.version.split()[0]}"
