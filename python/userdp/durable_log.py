"""Logs that last: texts in one SQLite file, each synced before it counts, chained by digests, shared by processes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import random
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from userdp.exact.numbers import short_repr

try:
    import fcntl
except ImportError:  # Windows, where a lock of SQLite is a handle's own
    fcntl = None  # type: ignore[assignment]

PathText: TypeAlias = "str | os.PathLike[str]"

APPLICATION = int.from_bytes(b"udpl", "big")
FORMAT = 1
WAIT_SECONDS = 30.0
"""How long to wait for a file that somebody else has; the same whatever they do with it."""
LONGEST_PAUSE = 0.01
NOTHING = "Nothing was written"
IN_DOUBT = "Whether the entry was written is not certain: it counts if it was, and nothing may be released for it"
TABLE = (
    f"PRAGMA application_id={APPLICATION}",
    f"PRAGMA user_version={FORMAT}",
    "CREATE TABLE log (number INTEGER PRIMARY KEY, text TEXT NOT NULL, salt BLOB NOT NULL, digest BLOB NOT NULL)",
)

_OPEN: set[sqlite3.Connection] = set()
_LOCKS: set[int] = set()


def _keep_in_child() -> None:
    """Have a forked child never close its parent's connections, which would remove what the parent is writing."""
    for connection in _OPEN:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
    for lock in _LOCKS:
        os.close(lock)
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep_in_child)


class DurableLog:
    """A header and entries that only grow in number, all of them texts, in one file.

    Within ``with log:`` nobody else has the file, and what was read of it is on the disk, so that a crash, also of the
    machine, takes nothing back that was shown. Each digest is of the one before it, 16 random bytes and the text. A
    receipt is the number of entries and the last digest, as "17-3f9c...". What cannot be read or written is an OSError,
    TimeoutError after `WAIT_SECONDS` among them; what is broken, of another kind or version, or older than a receipt or
    than what was read before, is a ValueError; a forked process gets a RuntimeError.
    """

    def __init__(self, path: PathText, kind: str) -> None:
        try:
            self.path = Path(os.fsdecode(path)).absolute()
        except TypeError:
            raise TypeError(f"path must be a str or path-like; got {short_repr(path)}") from None
        if "\0" in str(self.path):
            raise ValueError(f"path must have no null character; got {short_repr(path)}")
        self.kind = kind
        self.header = ""
        self.entries: list[str] = []
        self._digests: list[bytes] = []
        self._lock = threading.Lock()
        self._users = 0
        self._process = os.getpid()

    @classmethod
    def create(cls, path: PathText, kind: str, header: str) -> DurableLog:
        """Make the file, also where its making was cut short before."""
        log = cls(path, kind)
        if log.path.exists():
            log._file()
            with log.path.open("rb") as file:
                if file.read(16) not in (b"", b"SQLite format 3\0"):
                    raise FileExistsError(f"{log.path}: there is such a file; take another path")
        with log._explained(NOTHING):
            try:
                log._connect("rwc")
                log._connection.execute("BEGIN EXCLUSIVE")
                log._connection.execute("COMMIT")
                if log._number("SELECT count(*) FROM sqlite_master"):
                    raise FileExistsError(f"{log.path}: there is such a file; open it, or take another path")
                os.chmod(log.path, 0o600)
                log._recover()
                log._write(header, TABLE)
            finally:
                log._close()
        with log:
            return log

    def check_process(self) -> None:
        """Refuse a forked process."""
        if os.getpid() != self._process:
            raise RuntimeError(f"{self.path}: it was opened by the process that forked this one; open it here")

    def __enter__(self) -> DurableLog:
        self.check_process()
        with self._lock, self._explained(NOTHING):
            try:
                if not self._users:
                    self._identity = self._file()
                    self._connect("rw")
                    self._check_format()
                    self._recover()
                self._read()
                self._users += 1
            finally:
                if not self._users:
                    self._close()
        return self

    def __exit__(self, *exception: object) -> None:
        if os.getpid() == self._process:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._close()

    @property
    def receipt(self) -> str:
        digests = tuple(self._digests)  # which other threads may add to
        return f"{len(digests) - 1}-{digests[-1].hex()}"

    def check(self, receipt: str) -> None:
        """Refuse a file that does not have the entry of a receipt."""
        number, _, digest = receipt.partition("-") if isinstance(receipt, str) else ("", "", "")
        if not (number.isascii() and number.isdigit() and len(number) < 20 and len(digest) == 64):
            raise ValueError(f"receipt must be a text as '17-3f9c...', of 64 hex digits; got {short_repr(receipt)}")
        if int(number) >= len(self._digests):
            raise ValueError(
                f"{self.path}: an old copy, with {len(self.entries)} entries, and the receipt is of entry {number}; "
                "open the file that gave the receipt, as each copy would allow once more what is left"
            )
        if self._digests[int(number)].hex() != digest.lower():
            raise ValueError(f"{self.path}: the receipt is of another file, or of a copy that went on in another way")

    def append(self, text: str) -> None:
        """Write an entry, within ``with``; when this returns it is on the disk."""
        with self._lock, self._explained(IN_DOUBT):
            self._write(text)
            if self._identity != self._file(IN_DOUBT):
                raise OSError(f"{self.path}: it was replaced meanwhile. {IN_DOUBT}")

    def _write(self, text: str, before: tuple[str, ...] = ()) -> None:
        """One transaction, which is synced when it ends."""
        number, salt = len(self._digests), secrets.token_bytes(16)
        digest = self._next(self._digests, salt, text.encode())
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement in before:
                self._connection.execute(statement)
            self._connection.execute("INSERT INTO log VALUES (?, ?, ?, ?)", (number, text, salt, digest))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise
        self._digests.append(digest)
        if number:
            self.entries.append(text)

    def _next(self, digests: list[bytes], salt: bytes, text: bytes) -> bytes:
        before = digests[-1] if digests else hashlib.sha256(self.kind.encode()).digest()
        return hashlib.sha256(before + salt + text).digest()

    def _file(self, state: str = NOTHING) -> tuple[int, int]:
        """Which file it is; one with two names would have two places for what is not yet in it."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path}: no such file. {state}; if it was moved, restore it") from None
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise OSError(f"{self.path}: must be a file, no folder or device, and without other hard links")
        return found.st_dev, found.st_ino

    @contextmanager
    def _explained(self, state: str) -> Iterator[None]:
        """Errors of SQLite in words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise TimeoutError(
                    f"{self.path}: somebody else has had it for {WAIT_SECONDS:g} s. {state}; try again later"
                ) from error
            raise OSError(
                f"{self.path}: {error}. {state}. It and its folder must exist and be writable, and the disk not be full"
            ) from error
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter: of a message about a damaged name
            raise ValueError(self._broken(str(error))) from error

    def _broken(self, why: str) -> str:
        return (
            f"{self.path}: no {self.kind}, or broken ({why}). If it was one, restore a copy, and open it with your "
            "last receipt, which a copy that is too old does not have"
        )

    def _connect(self, mode: str) -> None:
        """Have the file alone. Pauses are random: else who has just had it always wins."""
        end = time.monotonic() + WAIT_SECONDS
        place = f"{self.path.as_uri()}?mode={mode}"
        while True:
            try:
                self._hold()
                connection = sqlite3.connect(place, 0, uri=True, isolation_level=None, check_same_thread=False)
                self._connection = connection
                _OPEN.add(connection)
                connection.text_factory = bytes
                # First of all: then nothing is in memory that processes share.
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                for setting in ("synchronous=FULL", "fullfsync=ON", "checkpoint_fullfsync=ON", "temp_store=MEMORY"):
                    connection.execute(f"PRAGMA {setting}")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return
            except sqlite3.OperationalError as error:
                # Before the pause: else it keeps the half of a lock, and so would all others.
                self._close()
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
            time.sleep(random.uniform(0, LONGEST_PAUSE))

    def _hold(self) -> None:
        """Lock a file beside it: locks of SQLite end when anybody in this process closes the file, as a copy does."""
        if fcntl is None:
            return
        name = f"{self.path}.lock"
        try:
            lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise sqlite3.OperationalError(f"{error.strerror} (a .lock beside it)") from None
        self._held = lock
        _LOCKS.add(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise sqlite3.OperationalError("locked") from None
        if not os.path.exists(name) or not os.path.samestat(os.fstat(lock), os.stat(name)):
            raise sqlite3.OperationalError("locked, and its lock was removed")

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])

    def _check_format(self) -> None:
        """Before anything is changed."""
        made = self._connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        if not made:
            raise ValueError(f"{self.path}: empty, as its making did not end; nothing was spent, so create it again")
        if self._number("PRAGMA application_id") != APPLICATION:
            raise ValueError(self._broken("a database of another program"))
        if (version := self._number("PRAGMA user_version")) != FORMAT:
            raise ValueError(f"{self.path}: its format is {version}, and this userdp reads {FORMAT}; update userdp")
        # A trigger could take back what is written.
        if made != [(b"table", b"log", TABLE[-1].encode())]:
            raise ValueError(self._broken("it has more than the table of entries"))

    def _recover(self) -> None:
        """Sync what was committed, also by a process that was killed before its sync ended."""
        mode = self._connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if mode != (b"wal",) or self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() != (0, 0, 0):
            raise sqlite3.OperationalError("what was written before could not be synced")

    def _read(self) -> None:
        """Everything, checked against damage, and against what was read before."""
        if self._connection.execute("PRAGMA integrity_check(1)").fetchone() != (b"ok",):
            raise ValueError(self._broken("its pages do not fit together"))
        digests: list[bytes] = []
        texts: list[str] = []
        rows = self._connection.execute("SELECT number, text, salt, digest FROM log ORDER BY number")
        for number, text, salt, digest in rows:
            whole = number == len(texts) and isinstance(text, bytes) and isinstance(salt, bytes)
            if not whole or self._next(digests, salt, text) != digest:
                raise ValueError(self._broken(f"row {len(texts)} is damaged"))
            digests.append(digest)
            texts.append(text.decode())
        if not texts or digests[: len(self._digests)] != self._digests:
            raise ValueError(f"{self.path}: an old copy, or another file, is in the place of what was read before")
        self._digests, (self.header, *self.entries) = digests, texts

    def _close(self) -> None:
        connection, lock = vars(self).pop("_connection", None), vars(self).pop("_held", None)
        if connection is not None:
            connection.close()
            _OPEN.discard(connection)
        if lock is not None:
            _LOCKS.discard(lock)
            os.close(lock)
