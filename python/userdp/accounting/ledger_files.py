"""A ledger in a file: how it is made and opened, and what is read of the file before anything is said or spent."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from userdp.display import Shown
from userdp.durable_log import DurableLog, PathText

KIND = "privacy ledger"

Ledger = TypeVar("Ledger", bound="LedgerInFile")


class LedgerInFile(Shown):
    """What a `PrivacyLedger` does with its file, if it has one."""

    _log: DurableLog | None = None
    _lock: threading.Lock
    _entries: Sequence[Any]

    @abstractmethod
    def to_json(self) -> str: ...

    @abstractmethod
    def _replay_text(self, text: str) -> None: ...

    @classmethod
    def create(cls: type[Ledger], path: PathText, *promise: Any, **arguments: Any) -> Ledger:
        """Make a ledger in a file, which several processes may open and spend from.

        Parameters
        ----------
        path : str or path-like
            Of a new file, on a disk of this machine: network file systems may not lock files.
        *promise, **arguments
            As for `PrivacyLedger`.

        Raises
        ------
        OSError
            FileExistsError where there is a file, TimeoutError where somebody else has it, and others where it cannot
            be written.

        Notes
        -----
        It does what any ledger does. Whatever is asked of it locks the file, waiting for at most 30 seconds, makes sure
        that what it reads is on the disk, and leaves the file. When `spend` returns, its entry is on the disk. Where it
        raises an OSError, the message says whether the entry may have been written; it counts then, and the release
        must not be made. With composition="exact" and slots, a fit has the file for itself until it ends, so that
        others wait; where its process ends, so does the fit.

        A copy of the file would allow once more what is left. It is refused where `open` is shown the receipt of
        something that was spent later, and an object in use sees if an old copy takes the place of its file.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from userdp.accounting import PrivacyCost, PrivacyLedger
        >>> with TemporaryDirectory() as folder:
        ...     PrivacyLedger.create(Path(folder) / "panel.ledger", 1).spend(PrivacyCost("1/4"), "wages")
        ...     ledger = PrivacyLedger.open(Path(folder) / "panel.ledger")
        ...     ledger.spend(PrivacyCost("1/2"), "hours")
        ...     ledger.remaining(), ledger.receipt[:2]
        ({'epsilon': 0.25, 'delta': 0}, '2-')
        """
        ledger = cls(*promise, **arguments)
        ledger._log = DurableLog.create(path, KIND, ledger.to_json())
        return ledger

    @classmethod
    def open(cls: type[Ledger], path: PathText, receipt: str | None = None) -> Ledger:
        """Open the file of a ledger, with what was spent by all who have opened it.

        Parameters
        ----------
        path : str or path-like
            Where `create` made it.
        receipt : str, optional
            The last `receipt` that you have, kept apart from the file: an older copy of it is refused. Without one it
            cannot be told whether the file is the latest, and what an old copy has left may be spent twice.

        Raises
        ------
        OSError
            FileNotFoundError, TimeoutError where somebody else has the file, and others where it cannot be written.
        ValueError
            Where the file is broken, no ledger, of a newer version, or does not have the entry of the receipt.
        """
        with DurableLog(path, KIND) as log:
            if receipt is not None:
                log.check(receipt)
        try:  # without the file, as to certify slots may take a while
            ledger: Ledger = cls.from_json(log.header)  # type: ignore[attr-defined]
        except ValueError as error:
            raise ValueError(f"{log.path}: {error}") from None
        ledger._log = log
        with ledger._current():
            return ledger

    @property
    def receipt(self) -> str | None:
        """Of a ledger in a file: the number and digest of the last entry that this object wrote or saw."""
        return None if self._log is None else self._log.receipt

    @contextmanager
    def _current(self) -> Iterator[None]:
        """The lock; for a ledger in a file that of the file as well, with all that it has."""
        if self._log is not None:
            self._log.check_process()  # before a lock that a thread of the parent may have had
        with self._lock, self._log or nullcontext():
            self._read_on()
            yield

    def _read_on(self) -> None:
        """Count what the file has and memory has not, which is a beginning of the same chain."""
        if self._log is not None:
            for text in self._log.entries[len(self._entries) :]:
                try:
                    self._replay_text(text)
                except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
                    raise ValueError(f"{self._log.path}: {error}") from None
