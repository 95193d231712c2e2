"""Client, shuffler and servers: what each party of a round does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import short_repr
from userdp.protocols.messages import MessageFormat, Messages, Tally, as_bytes, as_table
from userdp.protocols.once import OneReport
from userdp.runtime import source_of

if TYPE_CHECKING:
    from userdp.protocols.shuffle.protocol import ShuffleProtocol

Integers = npt.NDArray[np.int64]


class Client:
    """One user's half of a round: reports **once**.

    The draws are those of tables, read whole whatever is drawn, with the bits of the operating system. How many
    messages a user sends depends on the item and the noise, and everybody who sees the user's traffic sees it: the
    transport to the shuffler has to hide it, or the shuffler's operator has to be trusted with it.

    Nothing in a message says whose it is, so that nobody but the client can refuse a second report. Copies of a client
    share its one report. A client that has reported stays so when it is saved; one that has not is not saved.
    """

    def __init__(self, protocol: ShuffleProtocol) -> None:
        self._protocol = protocol
        self._once = OneReport()

    def report(self, item: Any, random_state: int | None = None, *, again: bool = False) -> list[bytes]:
        """The user's messages, for the shuffler.

        Parameters
        ----------
        item : object
            Anything that is not an item counts as the protocol's public default: no error tells it from an item.
        random_state : None or int
            For tests only; see `userdp.mechanisms`.
        again : bool
            True reports whatever was reported before. Reports of one user in one round add up: those who report j
            times are protected at j epsilon and delta (1 + e**epsilon + ... + e**((j - 1) epsilon)) only, and count as
            j users in the estimates. Messages that are sent twice are worse, as their noise is the same: report again
            in a round of another name instead.

        Raises
        ------
        RuntimeError
            For a second report, unless it is asked for. Also in a process that was forked after the client was made,
            which cannot know.
        TypeError, ValueError
            For other values of random_state and again.
        """
        if type(again) is not bool:
            raise TypeError(f"again must be a bool; got {short_repr(again)}")
        protocol, source = self._protocol, source_of(random_state)
        if not self._once.use() and not again:
            raise RuntimeError(
                "this client has reported already, or may have in a process from which this one was forked; a second "
                "report in the round costs its epsilon and delta once more: make a client for each user, or say "
                "again=True if that is meant"
            )
        ids, _ = protocol._reports(protocol._codes([item], "item"), source)
        return [protocol._format.encode(payload.tobytes()) for payload in protocol._payloads(ids)]


class Shuffler:
    """Collects the messages of all users, forgets who sent what, and releases them in a uniformly random order.

    What is not bytes of a message's length is dropped and counted, since it would stand out. Everything else is
    passed on: it is the server that knows which messages belong to its round.

    **The guarantee is about one release of the messages of all users.** Messages that are forwarded in parts, or with
    their time of arrival, are not hidden among the others.

    Attributes
    ----------
    tally : Tally
        What was collected and dropped in all.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._collected: list[bytes] = []
        self.tally = Tally()

    def collect(self, messages: Iterable[object] | Messages) -> None:
        """Take messages of one or many senders.

        Parameters
        ----------
        messages : iterable of bytes, or ndarray of uint8 with shape (k, width)
            Whatever came in: bytes by themselves, and what cannot be iterated over, are one message. Nothing is raised
            but what an iterator itself raises.
        """
        table = as_table(messages)
        if table is None:
            for message in _each(messages):
                self._collect(message)
        elif table.shape[1] != self._width:
            self.tally.reject("wrong length", len(table))
        else:
            self._collected.append(table.tobytes())
            self.tally.accept(len(table))

    def _collect(self, message: object) -> None:
        received = as_bytes(message)
        if received is None:
            self.tally.reject("wrong type")
        elif len(received) != self._width:
            self.tally.reject("wrong length")
        else:
            self._collected.append(received)
            self.tally.accept()

    def release(self, random_state: int | None = None) -> Messages:
        """All messages in a random order, for the server; the shuffler forgets them.

        Parameters
        ----------
        random_state : None or int
            For tests only. The order is otherwise made of the bits of the operating system.
        """
        source = source_of(random_state)
        collected = np.frombuffer(b"".join(self._collected), dtype=np.uint8).reshape(-1, self._width)
        self._collected = []
        order = _core.random_permutation(source, len(collected))
        shuffled: Messages = collected[order]
        return shuffled


def _each(messages: object) -> Iterator[object]:
    """The messages of an iterable; bytes by themselves, and anything else, are one."""
    if not issubclass(type(messages), (bytes, bytearray, memoryview, str, np.generic, np.ndarray)):
        try:
            return iter(messages)  # type: ignore[call-overload, no-any-return]
        except Exception:  # it only claims to be iterable, or does not
            pass
    return iter([messages])


class Server:
    """The analyst's half of a round: counts messages."""

    # Nothing in a message says who sent it, so a sender who sends too many, or the same twice, is not found out:
    # privacy does not depend on it, the estimates do.

    def __init__(self, protocol: ShuffleProtocol) -> None:
        self._protocol = protocol
        self._format: MessageFormat = protocol._format
        self._tally = Tally()
        self._counts = np.zeros(protocol._n_counts, dtype=np.int64)

    @property
    def accepted(self) -> int:
        """How many messages were counted."""
        return self._tally.accepted

    @property
    def rejected(self) -> dict[str, int]:
        """How many were not, by reason."""
        return dict(self._tally.rejected)

    @property
    def counts(self) -> Integers:
        """How many messages of each kind there were, shape (n_items,): all that the server learns."""
        counts: Integers = self._counts.copy()
        return counts

    def receive(self, message: object) -> bool:
        """Count one message; False for what is not a message of this round, which is counted by reason."""
        payload = self._format.decode(message, self._tally)
        if payload is None:
            return False
        return self._count(np.frombuffer(payload, dtype=np.uint8).reshape(1, -1)) == 1

    def receive_many(self, messages: object) -> int:
        """Count the rows of an array of uint8 of shape (k, width); returns how many were messages of this round."""
        return self._count(self._format.decode_many(messages, self._tally))

    def _count(self, payloads: Messages) -> int:
        ids = self._protocol._ids(payloads)
        known = ids[(ids >= 0) & (ids < len(self._counts))]
        self._counts += np.bincount(known, minlength=len(self._counts))
        self._tally.accept(len(known))
        self._tally.reject("out of range", len(ids) - len(known))
        return len(known)

    def _estimates(self) -> Integers:
        """Of every count, one-sided, before it is cut to [0, n_users]."""
        if self._protocol.estimates == "at_least":
            return self.counts
        missing: Integers = self._protocol.n_users - self._counts
        return missing


class CountServer(Server):
    """The analyst's half of a sum."""

    def estimate(self) -> int:
        """The estimate of the sum, from 0 to n_users."""
        return int(np.clip(self._estimates()[0], 0, self._protocol.n_users))


class HistogramServer(Server):
    """The analyst's half of a histogram."""

    def histogram(self) -> Integers:
        """The estimate of every item's count, shape (n_items,), from 0 to n_users."""
        cut: Integers = np.clip(self._estimates(), 0, self._protocol.n_users)
        return cut


class SelectionServer(Server):
    """The analyst's half of a selection."""

    def select(self) -> int:
        """The item with the largest estimate, the first one of them at a tie."""
        return int(np.argmax(self._estimates()))
