"""Messages of fixed width that say which protocol, parameters and round they belong to, and the right to send one.

A message is 4 bytes ``udp1``, the 16 bytes of the fingerprint of the format, and the payload. The fingerprint is a hash
of the kind of message, of the public parameters of the protocol and of the round: two machines that were set up
differently reject the messages of each other instead of adding up numbers that do not belong together. It is no
authentication.

Whoever reads messages reads what strangers sent. So reading never raises: what is not a message of this round is
counted in a `Tally` and dropped.
"""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import LogRatio, check_count, exact_number, short_repr

Messages = npt.NDArray[np.uint8]

MAGIC = b"udp1"
FINGERPRINT_BYTES = 16
HEADER_BYTES = len(MAGIC) + FINGERPRINT_BYTES


class Tally:
    """How many messages were accepted, and how many were rejected for which reason.

    Examples
    --------
    >>> tally = Tally()
    >>> tally.accept(3)
    >>> tally.reject("wrong length")
    >>> tally
    Tally(accepted=3, rejected={'wrong length': 1})
    """

    def __init__(self) -> None:
        self.accepted = 0
        # By reason. The reasons are a fixed list of the protocol's; nothing of a rejected message is kept.
        self.rejected: dict[str, int] = {}

    def accept(self, count: int = 1) -> None:
        """Count accepted messages."""
        self.accepted += count

    def reject(self, reason: str, count: int = 1) -> None:
        """Count rejected messages; none are not counted."""
        if count:
            self.rejected[reason] = self.rejected.get(reason, 0) + count

    def __repr__(self) -> str:
        return f"Tally(accepted={self.accepted}, rejected={self.rejected})"


class MessageFormat:
    """How the messages of one kind, of one protocol with its parameters, in one round, look.

    Examples
    --------
    >>> reports = MessageFormat("vote", {"epsilon": 1.0}, "2024-05-01", payload_bytes=2)
    >>> message = reports.encode(b"ab")
    >>> tally = Tally()
    >>> reports.decode(message, tally)
    b'ab'
    >>> MessageFormat("vote", {"epsilon": 2.0}, "2024-05-01", payload_bytes=2).decode(message, tally) is None
    True
    >>> tally
    Tally(accepted=0, rejected={'another round': 1})
    """

    def __init__(self, kind: str, parameters: Mapping[str, object], round_id: str, payload_bytes: int) -> None:
        check_round(round_id)
        self.payload_bytes = check_count(payload_bytes, "payload_bytes")
        described = canonical_json({"kind": kind, "parameters": dict(parameters), "round": round_id})
        self.fingerprint = blake2b(described.encode(), digest_size=FINGERPRINT_BYTES, person=MAGIC).digest()
        self.width = HEADER_BYTES + self.payload_bytes  # of every message
        self._header = MAGIC + self.fingerprint

    def encode(self, payload: bytes) -> bytes:
        """The message with this payload."""
        if len(payload) != self.payload_bytes:
            raise ValueError(f"payload must have {self.payload_bytes} bytes; got {len(payload)}")
        return self._header + payload

    def encode_many(self, payloads: Messages) -> Messages:
        """A message for each row of payloads."""
        messages = np.empty((len(payloads), self.width), dtype=np.uint8)
        messages[:, :HEADER_BYTES] = np.frombuffer(self._header, dtype=np.uint8)
        messages[:, HEADER_BYTES:] = payloads
        return messages

    def decode(self, message: object, tally: Tally) -> bytes | None:
        """The payload of one message, or None for what is not a message of this round, which is counted."""
        received = as_bytes(message)
        if received is None:
            tally.reject("wrong type")
        elif len(received) != self.width:
            tally.reject("wrong length")
        elif not received.startswith(MAGIC):
            tally.reject("not a message")
        elif not received.startswith(self._header):
            tally.reject("another round")
        else:
            return received[HEADER_BYTES:]
        return None

    def decode_many(self, messages: object, tally: Tally) -> Messages:
        """The payloads of those rows that are messages of this round; the others are counted."""
        none: Messages = np.empty((0, self.payload_bytes), dtype=np.uint8)
        table = as_table(messages)
        if table is None:
            tally.reject("wrong type")
            return none
        if table.shape[1] != self.width:
            tally.reject("wrong length", len(table))
            return none
        header = np.frombuffer(self._header, dtype=np.uint8)
        is_message = (table[:, : len(MAGIC)] == header[: len(MAGIC)]).all(axis=1)
        of_round = (table[:, :HEADER_BYTES] == header).all(axis=1)
        tally.reject("not a message", int((~is_message).sum()))
        tally.reject("another round", int((is_message & ~of_round).sum()))
        return table[of_round, HEADER_BYTES:]


class MessageServer(ABC):
    """Whoever counts the messages of a round: what is none of the round is dropped, and counted by reason."""

    def __init__(self, message_format: MessageFormat) -> None:
        self._format = message_format
        self._tally = Tally()

    @property
    def accepted(self) -> int:
        """How many messages were counted."""
        return self._tally.accepted

    @property
    def rejected(self) -> dict[str, int]:
        """How many messages were dropped, by reason."""
        return dict(self._tally.rejected)

    def receive(self, message: object) -> bool:
        """Count one message, whatever came in; False when it was rejected. Nothing is raised for anything."""
        payload = self._format.decode(message, self._tally)
        return payload is not None and self._count(np.frombuffer(payload, dtype=np.uint8).reshape(1, -1)) == 1

    @abstractmethod
    def _count(self, payloads: Messages) -> int:
        """Count the payloads of this round that are possible; how many these are."""


def as_bytes(message: object) -> bytes | None:
    """One message as plain bytes, or None for anything else; never raises."""
    if type(message) is bytes:
        return message
    try:
        if issubclass(type(message), (bytes, bytearray, memoryview)):
            return memoryview(message).tobytes()  # type: ignore[arg-type]
    except Exception:  # such as a memoryview that has been released
        pass
    return None


def as_table(messages: object) -> Messages | None:
    """A table of messages, a plain array whose rows they are, or None for anything else; never raises."""
    try:
        if issubclass(type(messages), np.ndarray):
            table: Messages = np.asarray(messages)
            return table if table.dtype == np.uint8 and table.ndim == 2 else None
    except Exception:  # a type may raise when it is looked at
        pass
    return None


def check_round(round_id: object) -> str:
    """Read the name of a round."""
    if not isinstance(round_id, str):
        raise TypeError(f"round_id must be a str that names the round, never used before; got {short_repr(round_id)}")
    if not round_id:
        raise ValueError("round_id must not be empty: name every round differently")
    return round_id


def described_epsilon(ratio: object, exponent: object) -> Fraction | LogRatio:
    """Read the two numbers that stand for a privacy level in the JSON of a protocol."""
    factor, power = exact_number(ratio), exact_number(exponent)
    if factor is None or power is None or (factor != 1 and power != 0):
        raise ValueError("it has an epsilon that is neither a number nor the logarithm of one")
    return power if factor == 1 else LogRatio(factor.numerator, factor.denominator)


def canonical_json(value: object) -> str:
    """Public values as JSON text that is the same on every machine, for equal values only."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> object:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, (int, float, Fraction)):
        return {"rational": str(Fraction(value))}
    if isinstance(value, LogRatio):
        return {"log": str(value.ratio)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"entries": [[name, _plain(value[name])] for name in sorted(value)]}
    raise TypeError(f"a public parameter must be a number, a str, bytes or a list of these; got {short_repr(value)}")


class OneReport:
    """The right to report once. Copies within the process share it; it never comes to another process.

    Examples
    --------
    >>> right = OneReport()
    >>> right.use(), right.use()
    (True, False)
    """

    # What is made by `copy` is the right itself. A right that has been used is pickled as such, and one that has not is
    # not pickled: each copy could be used once. A process that was forked cannot know what its parent did, and has
    # none.

    def __init__(self, used: bool = False) -> None:
        self._used = used
        self._process = os.getpid()
        self._lock = threading.Lock()

    def use(self) -> bool:
        """True for the first caller; of threads that call at the same time, for one."""
        if self._process != os.getpid():  # asked first: the lock may have been held when the process was forked
            return False
        with self._lock:
            first = not self._used
            self._used = True
            return first

    def __copy__(self) -> OneReport:
        return self

    def __deepcopy__(self, memo: object) -> OneReport:
        return self

    def __reduce__(self) -> tuple[Callable[[bool], OneReport], tuple[bool]]:
        if not self._used:
            raise TypeError(
                "a client that has not reported is not saved or sent: each copy could report once; send the protocol, "
                "and make the client where it reports"
            )
        return OneReport, (True,)
