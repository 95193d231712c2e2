"""Processes that write to a log until they are killed, and what a power failure leaves of the files that they wrote.

``python tests/support/killed_log.py 200`` kills at every statement and sync and at 200 moments, and says what it found.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from userdp.durable_log import DurableLog

KIND = "log of a test"
ENTRIES = 3
SYNCS = "fsync,fdatasync"
CALLS = f"openat,write,pwrite64,ftruncate,unlink,{SYNCS}"
PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from support.killed_log import work
work(sys.argv[1], int(sys.argv[2]))
"""
LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (\d+)(?:<.*)?$")


def work(path: str, entries: int, say: int = 1) -> None:
    """Open or make a log, add entries, and say the receipt of all that is shown."""
    try:
        log = DurableLog(path, KIND)
        with log:
            os.write(say, log.receipt.encode() + b"\n")
    except (FileNotFoundError, ValueError):  # not made, or its making was cut short
        log = DurableLog.create(path, KIND, "header")
    for _ in range(entries):
        with log:
            log.append(f"entry {len(log.entries) + 1}")
            os.write(say, log.receipt.encode() + b"\n")


def said(path: Path, do: Callable[[int], None], after: float | None = None) -> tuple[list[str], bool]:
    """The receipts that a forked child said that was killed, by itself or after some seconds; and whether it was."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(ours)
            do(theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(ours) as pipe:
        receipts = [line.strip() for line in pipe if line.endswith("\n")]
    return receipts, os.waitpid(child, 0)[1] == signal.SIGKILL


def told(path: Path, after: float) -> list[str]:
    """What a process of its own says that writes as fast as it can, until some seconds after its first word."""
    command = [sys.executable, "-c", PROGRAM, str(path), str(10**6)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        lines = process.stdout.readline()  # then the time begins
        time.sleep(after)
        process.kill()
        return (lines + process.stdout.read()).split("\n")[:-1]


def killed_at_statement(path: Path, number: int) -> tuple[list[str], bool]:
    """What is said before the statement of a number begins; closing a file counts as one."""
    left = [number]

    def count(_: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def do(say: int) -> None:
        connect, close = sqlite3.connect, DurableLog._close

        def connected(*given: Any, **named: Any) -> sqlite3.Connection:
            connection = connect(*given, **named)
            connection.set_trace_callback(count)
            return connection

        def closed(log: DurableLog) -> None:
            count("close")
            close(log)
            count("closed")

        sqlite3.connect, DurableLog._close = connected, closed  # type: ignore[assignment]
        work(str(path), ENTRIES, say)

    return said(path, do)


def opens(path: Path, receipts: list[str]) -> int:
    """How many entries there are after a kill, all that were said among them; then another is added."""
    if not path.exists() and not receipts:
        return 0
    log = DurableLog(path, KIND)
    try:
        with log:
            pass
    except ValueError as error:
        if receipts or "create it again" not in str(error):
            raise
        DurableLog.create(path, KIND, "header")
        with log:
            pass
    for receipt in receipts:
        log.check(receipt)
    count = len(log.entries)
    assert log.entries == [f"entry {place + 1}" for place in range(count)]
    assert count <= int(receipts[-1].partition("-")[0]) + 1 if receipts else count == 0
    with log:
        log.append(f"entry {count + 1}")
    return count


def traced(path: Path, entries: int, kill_at: int | None, place: Path) -> tuple[list[str], bool]:
    """The calls of `work` in a process of its own, killed at a sync or not; and whether it was."""
    inject = [] if kill_at is None else ["-e", f"inject={SYNCS}:signal=KILL:when={kill_at}"]
    command = ["strace", "-f", "-y", "-xx", "-s", "100000", "-o", str(place), "-e", f"trace={CALLS}", *inject]
    done = subprocess.run(
        [*command, sys.executable, "-c", PROGRAM, str(path), str(entries)], capture_output=True, check=False
    )
    assert kill_at is not None or done.returncode == 0, done.stderr
    return place.read_text().splitlines(), done.returncode != 0


def unhexed(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class Disk:
    """What is on the disk for certain: contents at their last sync, under the names of the folder's last sync."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now: dict[str, int] = {}
        self.names: dict[str, int] = {}
        self.written: list[bytearray] = []
        self.synced: list[bytes] = []

    def play(self, lines: list[str]) -> Iterator[str]:
        """Follow the calls of a process; yields what it said, while the disk is as it was then."""
        for line in lines:
            found = LINE.match(line)
            if not found:
                continue
            call, given, result = found.groups()
            quoted = re.search(r'"((?:\\x[0-9a-f]{2})*)"', given)
            text = unhexed(quoted[1]) if quoted else b""
            if call == "write" and given.startswith("1<"):
                yield text.decode().strip()
            if call in ("openat", "unlink"):
                path = Path(os.fsdecode(text))
                if path.parent == self.folder:
                    self.name(call, path.name, "O_CREAT" in given)
                continue
            target = re.match(r"\d+<([^>]*)>", given)
            place = Path(os.fsdecode(unhexed(target[1]))) if target else Path()
            if place == self.folder:
                self.names = dict(self.now)
            if place.parent != self.folder:
                continue
            content, numbers = self.written[self.now[place.name]], given.rpartition('"')[2].split(",")
            if call == "pwrite64":
                start = int(numbers[-1])
                content.extend(bytes(max(start - len(content), 0)))
                content[start : start + int(result)] = text[: int(result)]
            elif call == "ftruncate":
                size = int(numbers[-1])
                content[size:] = bytes(max(size - len(content), 0))
            elif call in SYNCS:
                self.synced[self.now[place.name]] = bytes(content)

    def name(self, call: str, name: str, made: bool) -> None:
        if call == "unlink":
            self.now.pop(name, None)
        elif made and name not in self.now:
            self.now[name] = len(self.written)
            self.written.append(bytearray())
            self.synced.append(b"")

    def restore(self, folder: Path) -> None:
        for name, number in self.names.items():
            (folder / name).write_bytes(self.synced[number])


def lost_power(kill_at: int, entries: int) -> tuple[int, bool]:
    """Kill a process at a sync and open the file in another. After each receipt that is said the power fails."""
    with tempfile.TemporaryDirectory() as folder:
        live = Path(folder) / "live"
        live.mkdir()
        disk, failures = Disk(live), 0
        first, killed = traced(live / "log", entries, kill_at, Path(folder) / "first")
        second, _ = traced(live / "log", 1, None, Path(folder) / "second")
        for lines in (first, second):
            for receipt in disk.play(lines):
                failures += survives(disk, receipt)
        return failures, killed


def survives(disk: Disk, receipt: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        disk.restore(Path(folder))
        with DurableLog(Path(folder) / "log", KIND) as log:
            log.check(receipt)
    return 1


def all_statements() -> Iterator[tuple[list[str], int]]:
    """Kill at each statement of a making and some entries, until one ends before it is killed."""
    for number in range(1000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log"
            receipts, killed = killed_at_statement(path, number)
            yield receipts, opens(path, receipts)
            if not killed:
                return


def all_syncs(entries: int) -> Iterator[int]:
    """Kill at each sync; how many power failures there were after each kill."""
    for number in range(1, 1000):
        failures, killed = lost_power(number, entries)
        yield failures
        if not killed:
            return


def moments(number: int, seed: int) -> Iterator[tuple[list[str], int]]:
    """Kill at random moments a process that writes as fast as it can, again and again to one file."""
    source = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        DurableLog.create(path, KIND, "header")
        for _ in range(number):
            receipts, killed = said(path, lambda say: work(str(path), 10**6, say), source.uniform(0, 0.03))
            assert killed
            yield receipts, opens(path, receipts) if receipts else 0


if __name__ == "__main__":
    statements = list(all_statements())
    print(f"killed at each of {len(statements) - 1} statements and ends: all that was shown is there")
    if shutil.which("strace"):
        syncs = list(all_syncs(ENTRIES))
        print(f"killed at each of {len(syncs) - 1} syncs, then {sum(syncs)} power failures: likewise")
    ends = list(moments(int(sys.argv[1]), seed=1))
    print(f"killed at {len(ends)} moments, of which {sum(bool(r) for r, _ in ends)} had written: likewise")
