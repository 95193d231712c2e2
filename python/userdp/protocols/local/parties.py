"""The two halves of a local protocol: who reports, and who counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Delta, check_count, short_repr
from userdp.protocols.local.protocol import SLOT, LocalProtocol
from userdp.protocols.messages import Messages, Tally
from userdp.protocols.once import OneReport
from userdp.runtime import source_of

BLOCK = 2**14
"""Messages that a server reads at a time."""


class LocalClient:
    """One user's half: makes one report, on the user's own machine. See `LocalProtocol.client`.

    Copies of a client share its one report. A client that has reported stays so when it is saved; one that has not is
    not saved.

    Attributes
    ----------
    protocol : LocalProtocol
    slot : int
    """

    def __init__(self, protocol: LocalProtocol, slot: int) -> None:
        self.protocol = protocol
        self.slot = check_count(slot, "slot", 0)
        if self.slot >= protocol.n_users:
            raise ValueError(f"slot must be below n_users={protocol.n_users}; got {short_repr(slot)}")
        self._once = OneReport()

    def report(self, item: Any, random_state: int | None = None) -> bytes:
        """Randomize the user's item, once.

        Parameters
        ----------
        item : int, or a sequence of bits for `BitwiseMajority`
            Private. Anything that is no item of the protocol stands for its public default: nothing is raised.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the report reproducible,
            for tests only, and warns.

        Returns
        -------
        bytes
            The message for the server. It holds the slot, a hash of the public parameters, and the randomized symbol.

        Raises
        ------
        RuntimeError
            For a second report: two lose twice the epsilon. Send the first one again if it was lost. Also in a process
            that was forked after the client was made, which cannot know.
        TypeError, ValueError
            For other values of random_state.
        """
        source = source_of(random_state)
        if not self._once.use():
            raise RuntimeError(
                f"the client of slot {self.slot} has reported already, or may have in a process from which this one "
                "was forked, and two reports lose twice the epsilon; send the first message again if it was lost"
            )
        value = self.protocol._value(item, self.slot)
        message: bytes = self.protocol._reports(value, np.array([self.slot]), source)[0].tobytes()
        return message


class LocalServer:
    """Counts reports. It keeps sums and which slots have reported, no message. See `LocalProtocol.server`.

    Attributes
    ----------
    protocol : LocalProtocol
    counts : ndarray of int64
        What the messages add up to: of each symbol for `KRandomizedResponse` and `HadamardResponse`, of the sets that
        hold each item for `SubsetSelection`, of zeros and ones for every bit for `BitwiseMajority`.
    accepted : int
    rejected : dict from str to int
        Messages that were dropped, by reason: those of `userdp.protocols`, "out of range" for a slot or a symbol that
        does not exist, and "slot taken" for the second message of a slot. Nothing else of them is kept.

    Notes
    -----
    The slots say whose message counts, and nothing checks who sends it: whoever can send messages can take a slot that
    is not theirs. Authenticate users outside of this protocol if that matters.

    What a server holds is a function of messages, which are private already: everything here may be published.
    """

    def __init__(self, protocol: LocalProtocol) -> None:
        self.protocol = protocol
        self.counts = protocol._no_counts()
        self._taken = np.zeros(protocol.n_users, dtype=np.bool_)
        self._tally = Tally()

    def __repr__(self) -> str:
        return f"LocalServer({self.protocol!r}, accepted={self.accepted}, rejected={self.rejected})"

    @property
    def accepted(self) -> int:
        """The number of reports that were counted."""
        return self._tally.accepted

    @property
    def rejected(self) -> dict[str, int]:
        """How many messages were dropped, by reason."""
        return dict(self._tally.rejected)

    def receive(self, message: object) -> bool:
        """Count one message.

        Parameters
        ----------
        message : bytes
            Whatever came in. Nothing is raised for anything.

        Returns
        -------
        bool
            False when it was rejected.
        """
        payload = self.protocol.format.decode(message, self._tally)
        return payload is not None and self._count(np.frombuffer(payload, dtype=np.uint8).reshape(1, -1)) == 1

    def receive_many(self, messages: object) -> int:
        """Count a table of messages, as `report_many` makes it: the same as one by one, in order.

        Parameters
        ----------
        messages : ndarray of uint8 with shape (n, width)
            Whatever came in. Nothing is raised for anything.

        Returns
        -------
        int
            How many were accepted.
        """
        payloads = self.protocol.format.decode_many(messages, self._tally)
        return sum(self._count(payloads[start : start + BLOCK]) for start in range(0, len(payloads), BLOCK))

    def _count(self, payloads: Messages) -> int:
        """Count the payloads that are reports of free slots, of each slot the first one."""
        width = SLOT.itemsize
        slots = np.ascontiguousarray(payloads[:, :width]).view(SLOT).reshape(-1).astype(np.int64)
        symbols = payloads[:, width:]
        valid = (slots < self.protocol.n_users) & self.protocol._valid(symbols)
        slots, symbols = slots[valid], symbols[valid]
        first = np.zeros(len(slots), dtype=np.bool_)
        first[np.unique(slots, return_index=True)[1]] = True
        free = first & ~self._taken[slots]
        self._tally.reject("out of range", int(len(valid) - valid.sum()))
        self._tally.reject("slot taken", int(len(free) - free.sum()))
        slots = slots[free]
        self._taken[slots] = True
        self.protocol._count(self.counts, symbols[free], slots)
        self._tally.accept(len(slots))
        return len(slots)

    def merge(self, other: LocalServer) -> None:
        """Add what another server of the same round has received.

        Parameters
        ----------
        other : LocalServer

        Raises
        ------
        ValueError
            For a server of another protocol or round, or one that has accepted a message of the same slot.
        """
        if not isinstance(other, LocalServer) or other.protocol != self.protocol:
            raise ValueError(f"other must be a LocalServer of the same protocol and round; got {short_repr(other)}")
        if np.any(self._taken & other._taken):
            raise ValueError("other has accepted messages of slots that have been counted here")
        self._taken |= other._taken
        self.counts += other.counts
        self._tally.accept(other.accepted)
        for reason, count in other.rejected.items():
            self._tally.reject(reason, count)

    def histogram(self) -> npt.NDArray[np.float64]:
        """Unbiased estimates of how many of the users whose reports were accepted have each item (each bit set).

        Returns
        -------
        ndarray of float64 with shape (n_items,), or (n_bits,)
            Negative values and values above the number of reports occur, and are needed to be unbiased.
        """
        return self.protocol._estimates(self.counts, self.accepted)

    def select(self) -> Any:
        """The item with the largest estimate; the item of the majority of each bit for `BitwiseMajority`.

        Returns
        -------
        int, or ndarray of uint8 with shape (n_bits,)
            From comparisons of integers: ties go to the lowest item, and to 0 for bits.
        """
        return self.protocol._selected(self.counts)

    def error_bound(self, beta: Delta) -> float:
        """By how much an entry of the histogram is off at most, all of them at once, except with probability beta.

        Parameters
        ----------
        beta : float, int, Fraction or decimal string
            In (0, 1).

        Returns
        -------
        float
            For the reports that were accepted; see the protocol's own `error_bound`.
        """
        return self.protocol.error_bound(beta, self.accepted)

    @property
    def standard_error(self) -> npt.NDArray[np.float64]:
        """The standard deviation of each entry of the histogram, at its own estimate."""
        return self.protocol._standard_errors(self.counts, self.accepted)
