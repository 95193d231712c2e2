"""What all local protocols have in common: public parameters, clients that report once, servers that count."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Delta, Epsilon, check_count, parse_delta, parse_level, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.protocols.messages import (
    MessageFormat,
    Messages,
    MessageServer,
    OneReport,
    check_round,
    described_epsilon,
)
from userdp.runtime import source_of

Integers = npt.NDArray[np.int64]

PMF_LIMIT = 2**20
"""The most symbols of a pmf that is written out."""
USERS_LIMIT = 2**32
LEVEL_BITS = 2**13
SLOT = np.dtype("<u4")
"""How a slot begins a message's payload."""


class LocalProtocol(ABC):
    """The public description of a local protocol. Its halves are made by `client` and `server`.

    Attributes
    ----------
    epsilon : as given
    n_users : int
        The number of slots, fixed before anybody reports. Slots without a report are allowed.
    round_id : str
    """

    kind: ClassVar[str]
    """Names the protocol in messages and in JSON."""
    symbol_bytes: int
    """Bytes of a message's symbol."""
    _core_randomizer: _core.LocalRandomizer

    def __init__(
        self, *, epsilon: Epsilon, n_users: int, round_id: str, neighbors: str = "replace", **parameters: int
    ) -> None:
        if neighbors != "replace":
            raise ValueError(
                f"neighbors must be 'replace' in the local model; got {short_repr(neighbors)}. Whether a user sends a "
                "message at all is seen by everybody, so that adding or removing a user cannot be hidden by its content"
            )
        self.epsilon = epsilon
        self._level = parse_level(epsilon)
        parts = (*self._level.ratio.as_integer_ratio(), *self._level.exponent.as_integer_ratio())
        if max(part.bit_length() for part in parts) > LEVEL_BITS:
            raise ValueError(
                f"epsilon must be of numbers below 2**{LEVEL_BITS}, which messages name; got {short_repr(epsilon)}"
            )
        self.n_users = check_count(n_users, "n_users")
        if self.n_users > USERS_LIMIT:
            raise ValueError(f"n_users must be at most 2**32; got {short_repr(n_users)}")
        self.round_id = check_round(round_id)
        self._parameters = parameters
        self._core_randomizer = self._randomizer()
        self.symbol_bytes = self._width()
        self.format = MessageFormat(
            self.kind, {**self._described(), "n_users": self.n_users}, round_id, SLOT.itemsize + self.symbol_bytes
        )

    def __setattr__(self, name: str, value: Any) -> None:
        # The format is the last to be set: it names the parameters in every message.
        if "format" in vars(self):
            raise AttributeError(f"{name} of a protocol does not change: other parameters are another protocol")
        super().__setattr__(name, value)

    # --- what a protocol says about itself

    def __repr__(self) -> str:
        arguments = {"epsilon": self.epsilon, **self._parameters, "n_users": self.n_users, "round_id": self.round_id}
        return f"{type(self).__name__}({', '.join(f'{name}={short_repr(value)}' for name, value in arguments.items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LocalProtocol) and self.format.fingerprint == other.format.fingerprint

    def __hash__(self) -> int:
        return hash(self.format.fingerprint)

    def __reduce__(self) -> tuple[Callable[[str], LocalProtocol], tuple[str]]:
        return LocalProtocol.from_json, (self.to_json(),)

    def _described(self) -> dict[str, Any]:
        level = {"ratio": str(self._level.ratio), "exponent": str(self._level.exponent)}
        return {"epsilon": level, **self._parameters}

    def to_json(self) -> str:
        """The description as JSON text, from which other machines make the same protocol."""
        described = {"protocol": self.kind, **self._described(), "n_users": self.n_users, "round_id": self.round_id}
        return json.dumps(described, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> LocalProtocol:
        """The protocol, of its own class, that `to_json` described.

        Examples
        --------
        >>> from userdp.protocols import local
        >>> protocol = local.KRandomizedResponse(epsilon="0.5", n_items=4, n_users=100, round_id="a")
        >>> local.LocalProtocol.from_json(protocol.to_json()) == protocol
        True
        """
        try:
            described = json.loads(text)
            kind, level = described.pop("protocol"), described.pop("epsilon")
            epsilon = described_epsilon(level["ratio"], level["exponent"])
            protocol = _protocols_by_kind().get(kind)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"text is not the JSON of a local protocol: {type(error).__name__}: {error}") from None
        if protocol is None or not issubclass(protocol, cls):
            raise ValueError(f"text describes the protocol {short_repr(kind)}, which is no {cls.__name__}")
        try:
            return protocol(epsilon=epsilon, **described)
        except TypeError as error:
            raise ValueError(f"text is not the JSON of {protocol.__name__}: {error}") from None

    # --- privacy

    @property
    def certified_ratio(self) -> Fraction:
        """The largest ratio of the probabilities of one message under two items: exact, at most e**epsilon."""
        favored, other = self._weights()
        return Fraction(max(favored, other), min(favored, other))

    @property
    def certified_epsilon(self) -> float:
        """The logarithm of `certified_ratio`, rounded up: what one report loses, at most a rounding above epsilon."""
        return _core.ln_bounds(self.certified_ratio)[1]

    @property
    def keep_probability(self) -> Fraction:
        """With which probability a report is one of the symbols that the user's item favors. Exact."""
        return Fraction(self._core_randomizer.favor, 2**128)

    def _weights(self) -> tuple[int, int]:
        """In proportion to the probabilities of one favored and one other symbol."""
        favored, symbols = self._share()
        keep = self._core_randomizer.favor
        return keep * (symbols - favored), (2**128 - keep) * favored

    def pmf(self, item: Any, slot: int = 0) -> Pmf:
        """The exact distribution of the symbol that a user with this item sends.

        Parameters
        ----------
        item : as for `LocalClient.report`
        slot : int
            Only of protocols whose users do different things.

        Raises
        ------
        BudgetError
            For more than 2**20 symbols.
        """
        symbols = self.n_symbols
        if symbols > PMF_LIMIT:
            raise BudgetError(
                f"the pmf would have {symbols} symbols, and at most {PMF_LIMIT} are written out; every favored one "
                "is certified_ratio times as likely as every other one"
            )
        value = int(self._value(item, slot)[0])
        favored, other = self._weights()
        outputs = tuple(self._symbols())
        return Pmf(outputs, tuple(favored if self._favors(value, output) else other for output in outputs))

    def _draw(self, source: _core.Source, item: Any, slot: int = 0) -> Any:
        """One symbol from ``pmf(item, slot)``."""
        return self._symbol(self._encode(self._core_randomizer.report_many(source, self._value(item, slot)))[0])

    def _value(self, item: Any, slot: int) -> Integers:
        """What one user randomizes, shape (1,)."""
        return self._values_of_slots(self._read([item], "item"), np.array([slot]))

    # --- the halves

    def client(self, slot: int) -> LocalClient:
        """The half of the user in a slot.

        Parameters
        ----------
        slot : int
            From 0 to n_users - 1: the user's own number. It is public and must have been fixed without anybody's data,
            for instance at enrolment. The rank among the ids that are present is not: one user who is replaced by
            another moves all others (docs/proofs/local_protocols.md).
        """
        return LocalClient(self, slot)

    def server(self) -> LocalServer:
        """The half that receives the reports."""
        return LocalServer(self)

    def report_many(
        self,
        items: Any,
        *,
        slots: npt.ArrayLike | None = None,
        random_state: int | None = None,
    ) -> Messages:
        """The messages of many users at once, for simulations and for devices that speak for several users.

        Parameters
        ----------
        items : array, list or other sequence, or series or frame, with one entry per slot
            As for `LocalClient.report`, along the first axis. What kind of container it is is public. Arrays of int64
            are randomized in constant time.
        slots : array-like of int, shape (n,), optional
            Distinct slots; all of them by default.
        random_state : None or int
            None draws from the operating system's cryptographic generator. An integer makes the reports reproducible,
            for tests only, and warns.
        """
        numbers = self._slots(slots)
        return self._reported(items, numbers, source_of(random_state))

    def _reported(self, items: Any, slots: Integers, source: _core.Source) -> Messages:
        codes = self._read(items, "items")
        if len(codes) != len(slots):
            raise ValueError(f"items must have one entry per slot, {len(slots)}; got {len(codes)}")
        return self._reports(self._values_of_slots(codes, slots), slots, source)

    def _slots(self, slots: npt.ArrayLike | None) -> Integers:
        if slots is None:
            return np.arange(self.n_users)
        numbers = np.asarray(slots)
        if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
            raise TypeError(f"slots must be one-dimensional integers; got {short_repr(slots)}")
        if numbers.size and not (numbers.min() >= 0 and numbers.max() < self.n_users):
            raise ValueError(f"slots must be from 0 to {self.n_users - 1}; got {short_repr(slots)}")
        if len(np.unique(numbers)) != len(numbers):
            raise ValueError("slots must be distinct: a user who reports twice loses twice the epsilon")
        return numbers.astype(np.int64)

    def _reports(self, values: Integers, slots: Integers, source: _core.Source) -> Messages:
        """The messages of users whose values have been read."""
        payloads = np.empty((len(slots), SLOT.itemsize + self.symbol_bytes), dtype=np.uint8)
        payloads[:, : SLOT.itemsize] = slots.astype(SLOT).view(np.uint8).reshape(-1, SLOT.itemsize)
        payloads[:, SLOT.itemsize :] = self._encode(self._core_randomizer.report_many(source, values))
        return self.format.encode_many(payloads)

    # --- what the protocols differ in

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """The number of different symbols."""

    @abstractmethod
    def _randomizer(self) -> _core.LocalRandomizer:
        """The core's half, from public parameters, which it checks."""

    @abstractmethod
    def _width(self) -> int:
        """Bytes of a symbol."""

    @abstractmethod
    def _share(self) -> tuple[int, int]:
        """Which share of the symbols an item favors, as two integers."""

    @abstractmethod
    def _read(self, items: Any, name: str) -> Integers:
        """Users' items as integers, one or one row of them for each user; others for what is no item."""

    def _values_of_slots(self, codes: Integers, slots: Integers) -> Integers:
        """What the users in these slots randomize."""
        return codes

    @abstractmethod
    def _favors(self, value: int, symbol: Any) -> bool:
        """Whether a value favors a symbol."""

    @abstractmethod
    def _symbols(self) -> Sequence[Any]:
        """All symbols in order."""

    @abstractmethod
    def _symbol(self, encoded: Messages) -> Any:
        """One symbol from its bytes."""

    @abstractmethod
    def _encoded(self, symbol: Any) -> Messages:
        """The bytes of one symbol, shape (1, symbol_bytes): the inverse of `_symbol`."""

    @abstractmethod
    def _encode(self, reports: Integers) -> Messages:
        """The bytes of the core's reports, shape (n, symbol_bytes)."""

    @abstractmethod
    def _valid(self, encoded: Messages) -> npt.NDArray[np.bool_]:
        """Which rows of bytes are symbols."""

    @abstractmethod
    def _no_counts(self) -> Integers:
        """The counts of a server without reports."""

    @abstractmethod
    def _count(self, counts: Integers, encoded: Messages, slots: Integers) -> None:
        """Add valid symbols to a server's counts."""

    @abstractmethod
    def _estimates(self, counts: Integers, n_reports: int) -> npt.NDArray[np.float64]:
        """The unbiased histogram."""

    @abstractmethod
    def _selected(self, counts: Integers) -> Any:
        """The choice of `LocalServer.select`."""

    @abstractmethod
    def error_bound(self, beta: Delta, n_reports: int | None = None) -> float:
        """How far any entry of the histogram is off, except with probability beta."""

    @abstractmethod
    def _standard_errors(self, counts: Integers, n_reports: int) -> npt.NDArray[np.float64]:
        """The standard deviations of the histogram's entries, at their own estimates."""


def _protocols_by_kind() -> dict[str, type[LocalProtocol]]:
    """The protocols that can be described."""
    by_kind, classes = {}, LocalProtocol.__subclasses__()
    while classes:
        protocol = classes.pop()
        classes += protocol.__subclasses__()
        if hasattr(protocol, "kind"):
            by_kind[protocol.kind] = protocol
    return by_kind


def log_events(events: int, beta: Delta) -> float:
    """ln(events / beta) for so many events that may fail with probability beta together, in (0, 1)."""
    number = parse_delta(beta, "beta")
    if not 0 < number < 1:
        raise ValueError(f"beta must be in (0, 1), ends excluded; got {short_repr(beta)}")
    odds = events / number
    return math.log(odds.numerator) - math.log(odds.denominator)  # of integers beyond all floats, too


def reports_needed(reports: float, gain: float) -> int:
    """How many reports are needed, of which each one brings the gain."""
    if reports >= gain * USERS_LIMIT:
        raise BudgetError("more than 2**32 users are needed; plan for more agreement or a larger epsilon or beta")
    return max(1, math.ceil(reports / gain))


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
        """
        source = source_of(random_state)
        if not self._once.use():
            raise RuntimeError(
                f"the client of slot {self.slot} has reported already, or may have in a process from which this one "
                "was forked, and two reports lose twice the epsilon; send the first message again if it was lost"
            )
        value = self.protocol._value(item, self.slot)
        return self.protocol._reports(value, np.array([self.slot]), source)[0].tobytes()


class LocalServer(MessageServer):
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
        super().__init__(protocol.format)
        self.protocol = protocol
        self.counts = protocol._no_counts()
        self._taken = np.zeros(protocol.n_users, dtype=np.bool_)

    def __repr__(self) -> str:
        return f"LocalServer({self.protocol!r}, accepted={self.accepted}, rejected={self.rejected})"

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
        payloads = self._format.decode_many(messages, self._tally)
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

    def select(self) -> int | npt.NDArray[np.uint8]:
        """The item with the largest estimate; the item of the majority of each bit for `BitwiseMajority`.

        Returns
        -------
        int, or ndarray of uint8 with shape (n_bits,)
            From comparisons of integers: ties go to the lowest item, and to 0 for bits.
        """
        return self.protocol._selected(self.counts)

    def error_bound(self, beta: Delta) -> float:
        """The bound of the protocol's `error_bound` for the reports that were accepted."""
        return self.protocol.error_bound(beta, self.accepted)

    @property
    def standard_error(self) -> npt.NDArray[np.float64]:
        """The standard deviation of each entry of the histogram, at its own estimate."""
        return self.protocol._standard_errors(self.counts, self.accepted)
