"""The log that lasts: kills, power failures, copies, damage, disks that cannot be written to, and waiting."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support import killed_log
from userdp import durable_log
from userdp.durable_log import DurableLog

KIND = "log of a test"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, and is forked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a log?#%20.sqlite"


def made(path: Path, *entries: str) -> DurableLog:
    log = DurableLog.create(path, KIND, "header")
    for entry in entries:
        with log:
            log.append(entry)
    return log


def read(path: Path) -> list[str]:
    with DurableLog(path, KIND) as log:
        assert log.header == "header"
        return log.entries


def test_what_is_written_is_read_by_all(path: Path) -> None:
    one = made(path, "first")
    two = DurableLog(path, KIND)
    with two:
        two.append("se\u0000cond \U0001f40d")
    with one:
        assert (
            (one.entries, one.receipt)
            == (two.entries, two.receipt)
            == (["first", "se\u0000cond \U0001f40d"], two.receipt)
        )
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_equal_entries_have_different_receipts(tmp_path: Path) -> None:
    assert made(tmp_path / "one", "same").receipt != made(tmp_path / "two", "same").receipt


def test_an_old_copy_is_told_by_a_receipt_and_by_who_has_seen_more(path: Path) -> None:
    log = made(path, "first")
    shutil.copy(path, path.with_name("copy"))
    first = log.receipt
    with log:
        log.append("second")
    log.check(first)
    log.check(log.receipt)
    shutil.copy(path.with_name("copy"), path)
    with pytest.raises(ValueError, match="old copy"), log:
        pass
    copy = DurableLog(path, KIND)
    with copy:
        copy.check(first)
        with pytest.raises(ValueError, match="old copy, with 1 entries, and the receipt is of entry 2"):
            copy.check(log.receipt)
        copy.append("second")  # the same text: another history nevertheless
        with pytest.raises(ValueError, match="went on in another way"):
            copy.check(log.receipt)
    with pytest.raises(ValueError, match="old copy, or another file"), log:
        pass


@pytest.mark.parametrize("receipt", ["", "1", "1-", "-1-" + "0" * 64, "1-" + "0" * 63, "٣-" + "0" * 64, 3, None, b"1-"])
def test_receipts_that_are_none(path: Path, receipt: Any) -> None:
    with pytest.raises(ValueError, match="receipt must be"):
        made(path).check(receipt)


def test_there_is_one_file_at_a_path(path: Path, tmp_path: Path) -> None:
    made(path, "first")
    with pytest.raises(FileExistsError, match=r"a log.*there is such a file"):
        made(path)
    assert read(path) == ["first"]
    other = tmp_path / "letter.txt"
    other.write_text("Dear all, " * 1000)
    with pytest.raises(FileExistsError, match=r"letter.*there is such a file"):
        made(other)
    assert other.read_text() == "Dear all, " * 1000


def test_what_is_no_file(path: Path, tmp_path: Path) -> None:
    for open_it in (read, made):
        with pytest.raises(OSError, match="no folder or device"):
            open_it(tmp_path)
        with pytest.raises(OSError, match="no folder or device"):
            open_it(Path(os.devnull))
        with pytest.raises(TypeError, match="path must be"):
            open_it(3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(path)
    with pytest.raises(OSError, match="folder must exist"):
        made(tmp_path / "nowhere" / "log")
    made(path)
    os.link(path, tmp_path / "second name")
    with pytest.raises(OSError, match="hard links"):
        read(path)


def test_files_of_others_are_left_as_they_are(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE letters (text TEXT)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="a database of another program"):
        read(path)
    with pytest.raises(FileExistsError):
        made(path)
    assert path.read_bytes() == before


def test_other_kinds_and_versions(path: Path) -> None:
    made(path, "first")
    with pytest.raises(ValueError, match="no letter, or broken"), DurableLog(path, "letter"):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version=2")
    with pytest.raises(ValueError, match="its format is 2, and this userdp reads 1; update userdp"):
        read(path)


def test_a_making_that_was_cut_short_is_made_anew(path: Path) -> None:
    path.touch()
    with pytest.raises(ValueError, match="create it again"):
        read(path)
    made(path, "first")
    assert read(path) == ["first"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log SET text = 'Second' WHERE number = 2",
        "UPDATE log SET salt = zeroblob(16) WHERE number = 1",
        "UPDATE log SET digest = (SELECT digest FROM log WHERE number = 1) WHERE number = 2",
        "UPDATE log SET text = x'00ff' WHERE number = 2",
        "UPDATE log SET text = 5, salt = 5 WHERE number = 2",
        "UPDATE log SET number = 7 WHERE number = 3",
        "DELETE FROM log WHERE number = 1",
        "DELETE FROM log WHERE number = 0",
        "DELETE FROM log",
        "DROP TABLE log",
        "ALTER TABLE log DROP COLUMN salt",
    ],
)
def test_rows_that_were_changed(path: Path, change: str) -> None:
    made(path, "first", "second", "third")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(change)
    with pytest.raises((ValueError, OSError), match=r"a log.*(broken|empty|old copy|no such)"):
        read(path)


def damages(whole: bytes, number: int, source: random.Random) -> Iterator[bytes]:
    for _ in range(number):
        place = source.randrange(len(whole))
        yield whole[:place] + bytes([whole[place] ^ 1 << source.randrange(8)]) + whole[place + 1 :]
        yield whole[:place]


def test_flipped_and_missing_bytes_are_found_or_change_nothing(path: Path) -> None:
    entries = [f"entry {place}" for place in range(40)]
    made(path, *entries)
    whole, found = path.read_bytes(), 0
    for damaged in damages(whole, 60, random.Random(1)):
        path.write_bytes(damaged)
        try:
            assert read(path) == entries
        except (ValueError, OSError) as error:
            assert str(path) in str(error)  # noqa: PT017
            found += 1
    assert found > 60  # that of all truncated files, and of some others


@pytest.mark.parametrize("moment", ["before", "while"])
def test_a_file_that_is_removed_or_replaced(path: Path, moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = made(path, "first")
    if moment == "before":
        path.unlink()
        with pytest.raises(FileNotFoundError, match=r"no such file\. Nothing was written"), log:
            pass
        return
    with log:
        path.unlink()
        with pytest.raises(FileNotFoundError, match="is not certain"):
            log.append("second")
    made(path)
    with pytest.raises(ValueError, match="another file"), log:
        pass
    log = DurableLog(path, KIND)
    with log:
        shutil.copy(path, path.with_name("copy"))
        path.with_name("copy").replace(path)
        with pytest.raises(OSError, match="replaced meanwhile"):
            log.append("second")
    assert read(path) in ([], ["second"])  # it counts if it was written


def test_a_folder_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = made(folder / "log", "first")
        os.chmod(folder / "log", 0o644)
        os.chmod(folder, 0o555)
        user = os.geteuid()
        if not user:
            os.seteuid(65534)  # the rights of root know no read-only folder
        try:
            with pytest.raises(OSError, match=r"log: .*Nothing was written.*writable"), log:
                pass
            with pytest.raises(OSError, match=r"other: .*Nothing was written.*writable"):
                made(folder / "other")
        finally:
            os.seteuid(user)
            os.chmod(folder, 0o755)
        assert read(folder / "log") == ["first"]


def test_a_full_disk(path: Path) -> None:
    resource: Any = pytest.importorskip("resource")
    log = made(path, "first")
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # More than the file, less than what a long entry adds to it.
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"is not certain.*disk not be full"), log:
            log.append("x" * 200_000)
        with log:
            assert log.entries == ["first"]
            log.append("second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert read(path) == ["first", "second"]


def test_what_cannot_be_synced_is_not_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = made(path, "first")
    with closing(sqlite3.connect(path)) as reader:  # as another program would
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM log").fetchone()
        monkeypatch.setattr(durable_log, "WAIT_SECONDS", 0.2)
        with pytest.raises(TimeoutError, match=r"somebody else has had it for 0\.2 s\. Nothing was written"), log:
            pass
    with log:
        assert log.entries == ["first"]


def test_waiting_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = made(path)
    monkeypatch.setattr(durable_log, "WAIT_SECONDS", 0.2)
    with log:
        for other in (read, made):
            with pytest.raises(TimeoutError, match="try again later"):
                other(path)
        with log:  # who has it may go on
            log.append("first")
        log.append("second")
    assert read(path) == ["first", "second"]


@pytest.mark.serial
def test_threads_share_a_log(path: Path) -> None:
    log = made(path)

    def append() -> None:
        for _ in range(100):
            with log:
                log.append("x")
                log.check(log.receipt)

    def look() -> None:
        for _ in range(100):
            with log:
                log.check(log.receipt)

    with ThreadPoolExecutor() as pool, log:
        for done in [pool.submit(work) for work in (append, append, look, look)]:
            done.result()
    assert read(path) == ["x"] * 200


@pytest.mark.serial
def test_processes_that_are_killed_while_others_write(path: Path) -> None:
    made(path)
    source, receipts = random.Random(3), []
    with ThreadPoolExecutor(3) as pool:
        told = [pool.submit(killed_log.told, path, source.uniform(0.1, 0.3)) for _ in range(9)]
        for one in told:
            receipts += one.result()[1:]  # the first is of what others wrote
    log = DurableLog(path, KIND)
    with log:
        for receipt in receipts:
            log.check(receipt)
    assert len(receipts) == len(set(receipts)) > 9
    assert log.entries == [f"entry {place + 1}" for place in range(len(log.entries))]
    assert len(receipts) <= len(log.entries) + 9


@needs_fork
@pytest.mark.serial
def test_a_forked_child_has_no_part_in_it(path: Path) -> None:
    # The child ends as a program does: what it has of the connection is not closed, which would remove the parent's
    # entries.
    script = """
import os, sys
from userdp.durable_log import DurableLog
log = DurableLog.create(sys.argv[1], "log of a test", "header")
child = 0
with log:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        log.append("first")
        os.kill(os.getpid(), 9)  # before it closes the file
    else:
        try:
            with log:
                pass
        except RuntimeError as error:
            print("refused" if "forked" in str(error) else error)
"""
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("refused\n", -signal.SIGKILL)
    assert read(path) == ["first"]


# --- kills and power failures


@needs_fork
@pytest.mark.serial
def test_a_kill_at_any_statement_loses_nothing() -> None:
    found = list(killed_log.all_statements())
    counts = [count for _, count in found]
    assert len(found) > 50
    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, killed_log.ENTRIES)


@pytest.mark.serial
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_after_a_kill_at_any_sync_a_power_failure_takes_nothing_back_that_was_shown() -> None:
    failures = list(killed_log.all_syncs(1))
    assert len(failures) > 10
    assert sum(failures) > len(failures)


@needs_fork
@pytest.mark.serial
def test_kills_at_random_moments_lose_nothing() -> None:
    found = list(killed_log.moments(20, seed=2))
    counts = [count for receipts, count in found if receipts]
    assert counts == sorted(set(counts))  # each process goes on where all before it were
