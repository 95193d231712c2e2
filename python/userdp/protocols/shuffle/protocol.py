"""What sums, histograms and modes behind a shuffler have in common, and what each party of a round does."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Delta, Epsilon, LogRatio, check_count, check_flag, short_repr
from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.protocols.messages import (
    MessageFormat,
    Messages,
    MessageServer,
    OneReport,
    Tally,
    as_bytes,
    as_table,
    described_epsilon,
)
from userdp.protocols.shuffle.noise import SharedNoise, parse_beta
from userdp.runtime import source_of
from userdp.users.containers import read_codes

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
        """
        check_flag(again, "again")
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
        return collected[order]


def _each(messages: object) -> Iterator[object]:
    """The messages of an iterable; bytes by themselves, and anything else, are one."""
    if not issubclass(type(messages), (bytes, bytearray, memoryview, str, np.generic, np.ndarray)):
        try:
            return iter(messages)  # type: ignore[call-overload]
        except Exception:  # it only claims to be iterable, or does not
            pass
    return iter([messages])


class Server(MessageServer):
    """The analyst's half of a round: counts messages."""

    # Nothing in a message says who sent it, so a sender who sends too many, or the same twice, is not found out:
    # privacy does not depend on it, the estimates do.

    def __init__(self, protocol: ShuffleProtocol) -> None:
        super().__init__(protocol._format)
        self._protocol = protocol
        self._counts = np.zeros(protocol._n_counts, dtype=np.int64)

    @property
    def counts(self) -> Integers:
        """How many messages of each kind there were, shape (n_items,): all that the server learns."""
        return self._counts.copy()

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
        return self._protocol.n_users - self._counts


class CountServer(Server):
    """The analyst's half of a sum."""

    def estimate(self) -> int:
        """The estimate of the sum, from 0 to n_users."""
        return int(np.clip(self._estimates()[0], 0, self._protocol.n_users))


class HistogramServer(Server):
    """The analyst's half of a histogram."""

    def histogram(self) -> Integers:
        """The estimate of every item's count, shape (n_items,), from 0 to n_users."""
        return np.clip(self._estimates(), 0, self._protocol.n_users)


class ModeServer(Server):
    """The analyst's half of a selection."""

    def select(self) -> int:
        """The item with the largest estimate, the first one of them at a tie."""
        return int(np.argmax(self._estimates()))


MAX_MESSAGES = 10**8
BATCH = 2**22
"""A simulation draws about this many table entries' worth of users at a time."""


Protocol = TypeVar("Protocol", bound="ShuffleProtocol")


class ShuffleProtocol(ABC):
    """What sums, histograms and selections have in common; see these."""

    default = 0
    """What an item that is none counts as."""
    estimates: str
    """"at_least": no estimate is below its true value; "at_most": none is above it."""

    _kind: ClassVar[str]
    _n_counts: int
    """The number of noisy counts: of kinds of messages."""
    _n_values: int
    """The number of things a user can have."""

    def __init__(
        self,
        *,
        noise: SharedNoise,
        n_counts: int,
        n_values: int,
        round_id: str,
        estimates: str,
        max_messages: int,
        payload_bytes: int,
    ) -> None:
        self._noise = noise
        self._n_counts, self._n_values = n_counts, n_values
        self.estimates = estimates
        self.round_id = round_id
        self.max_messages = check_count(max_messages, "max_messages")
        if self.expected_messages > self.max_messages:
            raise BudgetError(self._too_many())
        self._format = MessageFormat(self._kind, self._parameters(), round_id, payload_bytes)

    def _too_many(self) -> str:
        cheaper = "fewer users, or a larger max_messages"
        if self._n_counts > 1:
            cheaper = "fewer items, " + cheaper
            if self.estimates == "at_most":
                cheaper = "estimates='at_least', where a user sends 1 message besides the noise, " + cheaper
        return (
            f"a round would have about {self.expected_messages:.3g} messages, more than "
            f"max_messages={self.max_messages}; choose {cheaper}"
        )

    # What is public.

    @property
    def epsilon(self) -> Fraction | LogRatio:
        """Epsilon, exactly."""
        return self._noise.epsilon

    @property
    def delta(self) -> Fraction:
        """The delta asked for."""
        return self._noise.delta

    @property
    def certified_delta(self) -> Fraction:
        """The delta that is certified at epsilon, with the tables that are drawn from: at most `delta`."""
        return self._noise.certified_delta

    @property
    def n_users(self) -> int:
        """The public number of users."""
        return self._noise.n_users

    @property
    def dropout(self) -> Fraction:
        """The fraction of the users who may be absent, or in league with the analyst."""
        return self._noise.dropout

    @property
    def r(self) -> Fraction:
        """The r of the noise NB(r, p) that all users but the dropouts add up to, in each count."""
        return self._noise.r

    @property
    def p(self) -> Fraction:
        """The p of the noise."""
        return self._noise.p

    @property
    def mean_noise(self) -> float:
        """The mean of the noise in one count when all users take part."""
        return self._noise.mean

    def user_noise(self) -> Pmf:
        """What one user adds to each count, as it is drawn: outputs 0, 1, ... and weights of total 2**128."""
        weights = self._noise.core.numerators
        return Pmf(tuple(range(len(weights))), tuple(weights))

    def noise_quantile(self, beta: Delta) -> int:
        """A number that the noise in one count exceeds with probability at most beta, when all users take part."""
        return self._noise.quantile(parse_beta(beta))

    @abstractmethod
    def error_bound(self, beta: Delta) -> int:
        """How far off the result is at most, with probability 1 - beta, when all users take part."""

    def privacy_profile(self, epsilons: Sequence[Epsilon] | npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Certified delta at each epsilon."""
        return self._noise.profile(epsilons)

    @property
    def messages_per_user(self) -> float:
        """How many messages a user sends on average."""
        inputs = 1 if self.estimates == "at_least" else max(1, self._n_counts - 1)
        return inputs + self._n_counts * self.mean_noise / self.n_users

    @property
    def expected_messages(self) -> float:
        """How many messages the round has on average, at most."""
        return self.n_users * self.messages_per_user

    @property
    def message_bytes(self) -> int:
        """The length of every message."""
        return self._format.width

    # The parties.

    def client(self) -> Client:
        """One user's half. Every user has one, and it reports once."""
        return Client(self)

    def shuffler(self) -> Shuffler:
        """The mixer between users and server."""
        return Shuffler(self.message_bytes)

    @abstractmethod
    def server(self) -> Server:
        """The analyst's half."""

    def report_many(self, items: Any, random_state: int | None = None) -> Messages:
        """The messages of many users, one user after the other, in one call: for simulations."""
        source = source_of(random_state)
        ids, _ = self._reports(self._codes(items, "items"), source)
        return self._format.encode_many(self._payloads(ids))

    def _codes(self, items: Any, name: str) -> Integers:
        """Each item as an integer in [0, n_values): the default for whatever is none."""
        codes = read_codes(items, name)
        return np.where((codes >= 0) & (codes < self._n_values), codes, self.default)

    def _simulated(self, items: Any, source: _core.Source) -> Any:
        """The server after a round of all users, who are simulated in this process."""
        codes = self._codes(items, "items")
        if len(codes) != self.n_users:
            raise ValueError(f"items must have one item for each of {self.n_users} users; got {len(codes)}")
        server = self.server()
        batch = max(1, BATCH // math.ceil(self.messages_per_user))
        for start in range(0, len(codes), batch):
            ids, _ = self._reports(codes[start : start + batch], source)
            server._counts += np.bincount(ids, minlength=self._n_counts)
            server._tally.accept(len(ids))
        return server

    def _reports(self, codes: Integers, source: _core.Source) -> tuple[Any, Any]:
        """The kinds of all messages, user by user, and how many each user sends."""
        return self._noise.core.reports(codes, self._n_counts, self.estimates == "at_most", source)

    def _payloads(self, ids: npt.NDArray[np.uint32]) -> Messages:
        """The kinds of messages as 4 bytes, the least significant first."""
        return ids.astype("<u4").view(np.uint8).reshape(-1, 4)

    def _ids(self, payloads: Messages) -> Integers:
        """The inverse of `_payloads`."""
        return np.ascontiguousarray(payloads).view("<u4").reshape(-1).astype(np.int64)

    # As text.

    def _parameters(self) -> dict[str, Fraction | int | str]:
        level = self._noise.level
        return {
            "delta": self.delta,
            "dropout": self.dropout,
            "estimates": self.estimates,
            "exponent": level.exponent,
            "n_users": self.n_users,
            "p": self.p,
            "r": self.r,
            "ratio": level.ratio,
        }

    def to_json(self) -> str:
        """The public description, with the noise: what every party builds its half from."""
        described = {
            name: value if isinstance(value, int) else str(value) for name, value in self._parameters().items()
        }
        return json.dumps({"protocol": self._kind, "round_id": self.round_id, **described}, sort_keys=True)

    @classmethod
    def from_json(cls: type[Protocol], text: str, *, max_messages: int = MAX_MESSAGES) -> Protocol:
        """The protocol of a description; what it promises is certified again."""
        try:
            described = json.loads(text)
            kind = described.pop("protocol")
            epsilon = described_epsilon(described.pop("ratio"), described.pop("exponent"))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"text is not the JSON of a shuffle protocol: {type(error).__name__}: {error}") from None
        if kind != cls._kind:
            raise ValueError(f"text describes the protocol {short_repr(kind)}, which is no {cls.__name__}")
        make: Any = cls
        try:
            return make(epsilon=epsilon, max_messages=max_messages, **described)
        except TypeError as error:
            raise ValueError(f"text is not the JSON of a {cls.__name__}: {error}") from None

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return partial(type(self).from_json, max_messages=self.max_messages), (self.to_json(),)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShuffleProtocol):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(epsilon={self.epsilon}, delta={float(self.delta):g}, n_users={self.n_users}, "
            f"round_id={self.round_id!r}, r={float(self.r):.6g}, p={float(self.p):.6g})"
        )


def parse_estimates(estimates: object) -> str:
    """Read on which side of the truth estimates are."""
    if estimates in ("at_least", "at_most") and isinstance(estimates, str):
        return estimates
    raise ValueError(f"estimates must be 'at_least' or 'at_most'; got {short_repr(estimates)}")
