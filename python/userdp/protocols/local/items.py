"""Local protocols for items 0, ..., k - 1: randomized response, subset selection, Hadamard response."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import (
    Delta,
    Epsilon,
    capped_binomial,
    check_count,
    is_integer,
    parse_delta,
    parse_level,
    short_repr,
)
from userdp.protocols.local.protocol import PMF_LIMIT, Integers, LocalProtocol, log_events, reports_needed
from userdp.protocols.messages import Messages
from userdp.users.containers import read_codes

Separation = tuple[Fraction, Fraction, Fraction]
"""See `ItemProtocol.separation`."""


class ItemProtocol(LocalProtocol):
    """Every user has one of the items 0, ..., n_items - 1. A report *supports* the items that favor its symbol.

    With probability p a report supports its user's own item, and with probability q < p any other one. If N(u) of n
    reports support the item u, (N(u) - n q) / (p - q) is unbiased for the number of users with that item.

    Attributes
    ----------
    n_items : int
    default : int
        The public item that stands for whatever is no item.
    """

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        n_items: int,
        n_users: int,
        round_id: str,
        default: int = 0,
        neighbors: str = "replace",
    ) -> None:
        self.n_items = check_count(n_items, "n_items", 2)
        if self.n_items > self.items_limit:
            raise ValueError(f"n_items must be at most {self.items_limit} here; got {short_repr(n_items)}")
        self.default = check_count(default, "default", 0)
        if self.default >= self.n_items:
            raise ValueError(f"default must be one of the items 0, ..., {self.n_items - 1}; got {short_repr(default)}")
        super().__init__(
            epsilon=epsilon,
            n_users=n_users,
            round_id=round_id,
            neighbors=neighbors,
            **self._item_parameters(),
        )

    def _item_parameters(self) -> dict[str, int]:
        """The parameters that describe the items and the reports, by their names."""
        return {"n_items": self.n_items, "default": self.default}

    items_limit = 2**24
    """More items are refused: a server keeps a number for each."""

    # --- items

    def _read(self, items: Any, name: str) -> Integers:
        # The core puts the default in place of what is no item.
        return np.require(read_codes(items, name), np.int64, ["C", "A"])

    def _favors(self, value: int, symbol: Any) -> bool:
        return self.supports(symbol, value if 0 <= value < self.n_items else self.default)

    @abstractmethod
    def supports(self, symbol: Any, item: int) -> bool:
        """Whether a report of this symbol supports an item.

        Parameters
        ----------
        symbol : one of the outputs of `pmf`
        item : int
        """

    # --- estimates

    @property
    @abstractmethod
    def other_probability(self) -> Fraction:
        """The probability that a report supports an item that is not its user's. Exact."""

    @abstractmethod
    def _supports(self, counts: Integers) -> Integers:
        """How many reports support each item, exactly, shape (n_items,)."""

    @property
    def _gap(self) -> Fraction:
        return self.keep_probability - self.other_probability

    def _estimates(self, counts: Integers, n_reports: int) -> npt.NDArray[np.float64]:
        supports = self._supports(counts).astype(np.float64)
        return (supports - n_reports * float(self.other_probability)) / float(self._gap)

    def _selected(self, counts: Integers) -> int:
        # The estimate grows with the support, and argmax takes the first of equals.
        return int(np.argmax(self._supports(counts)))

    # --- errors

    def variance(self, count: int, n_reports: int | None = None) -> Fraction:
        """The variance of the histogram's entry of an item that so many users have. Exact.

        Parameters
        ----------
        count : int
            From 0 to n_reports.
        n_reports : int, optional
            n_users by default.

        Returns
        -------
        Fraction
            (count p (1 - p) + (n_reports - count) q (1 - q)) / (p - q)^2.
        """
        n = self.n_users if n_reports is None else check_count(n_reports, "n_reports", 0)
        if check_count(count, "count", 0) > n:
            raise ValueError(f"count must be at most the number of reports, {n}; got {short_repr(count)}")
        p, q = self.keep_probability, self.other_probability
        return (count * p * (1 - p) + (n - count) * q * (1 - q)) / self._gap**2

    @property
    def squared_error(self) -> Fraction:
        """The expected sum over all items of the squared errors of the histogram, for each report. Exact.

        It is the same whatever items the users have: `for_items` compares protocols by it.
        """
        return self.variance(1, 1) + (self.n_items - 1) * self.variance(0, 1)

    def _standard_errors(self, counts: Integers, n_reports: int) -> npt.NDArray[np.float64]:
        own, none = float(self.variance(1, 1)), float(self.variance(0, 1))
        clipped = np.clip(self._estimates(counts, n_reports), 0, n_reports)
        return np.sqrt(clipped * own + (n_reports - clipped) * none)

    def error_bound(self, beta: Delta, n_reports: int | None = None) -> float:
        """By how much an entry of the histogram is off at most, all of them at once, except with probability beta.

        Parameters
        ----------
        beta : float, int, Fraction or decimal string
            In (0, 1).
        n_reports : int, optional
            n_users by default.

        Returns
        -------
        float
            The smaller of the bounds of Hoeffding and Bernstein, for any items of the users:
            sqrt(n L / 2) / (p - q) and (L / 3 + sqrt(L^2 / 9 + 2 n v L)) / (p - q), where L = ln(2 n_items / beta) and
            v = max(p (1 - p), q (1 - q)). For Hadamard response the first is coth(epsilon / 2) sqrt(2 n L).
        """
        n = self.n_users if n_reports is None else check_count(n_reports, "n_reports", 0)
        p, q = self.keep_probability, self.other_probability
        logarithm = log_events(2 * self.n_items, beta)
        spread = float(max(p * (1 - p), q * (1 - q)))
        hoeffding = math.sqrt(n * logarithm / 2)
        bernstein = logarithm / 3 + math.sqrt(logarithm**2 / 9 + 2 * n * spread * logarithm)
        return min(hoeffding, bernstein) / float(self._gap)

    @abstractmethod
    def separation(self) -> Separation:
        """How a report tells an item h from another one, v.

        Returns
        -------
        tuple of Fraction
            Three probabilities: of supporting h and not v, and v and not h, for users who have h; and of supporting h
            and not v for those who have neither, which is also that of v and not h, or a bound of it.
        """

    @classmethod
    def users_needed(cls, *, agreement: Delta, beta: Delta, **parameters: Any) -> int:
        """How many reports make `LocalServer.select` right, when independent users have one item so often.

        Parameters
        ----------
        agreement : float, int, Fraction or decimal string
            With at least this probability a user has the common item; above 1/2.
        beta : float, int, Fraction or decimal string
            The probability of another selection, in (0, 1).
        **parameters
            epsilon, n_items and what else describes the protocol, but n_users and round_id.

        Returns
        -------
        int
            For planning; no privacy rests on it.

        Raises
        ------
        BudgetError
            When the result would be above 2**32.

        Notes
        -----
        The least number that a Chernoff bound gives for every other item: docs/proofs/local_protocols.md, "Selection".

        Examples
        --------
        >>> from userdp.protocols.local import HadamardResponse
        >>> HadamardResponse.users_needed(agreement="0.9", beta="0.01", epsilon=1, n_items=1000)
        320
        """
        protocol = cls(n_users=1, round_id="planning", **parameters)
        share = float(majority(agreement))
        plus, minus, neither = (float(number) for number in protocol.separation())
        # When all others have v, who support v as those of h support h.
        up, down = share * plus + (1 - share) * minus, share * minus + (1 - share) * plus
        step = math.sqrt(up / down)

        def expectation(up: float, down: float) -> float:
            return 1 + up * (1 / step - 1) + down * (step - 1)

        others_elsewhere = expectation(share * plus + (1 - share) * neither, share * minus + (1 - share) * neither)
        base = max(expectation(up, down), others_elsewhere)
        return reports_needed(log_events(protocol.n_items - 1, beta), -math.log(base))


def majority(agreement: Delta) -> Fraction:
    """Read an agreement, a probability above 1/2."""
    number = parse_delta(agreement, "agreement")
    if number <= Fraction(1, 2):
        raise ValueError(f"agreement must be above 1/2; got {short_repr(agreement)}")
    return number


SYMBOL = np.dtype("<u4")


class NumberedSymbols(LocalProtocol):
    """The symbols are 0, ..., n_symbols - 1, in four bytes of a message; a server counts each."""

    def _width(self) -> int:
        return SYMBOL.itemsize

    def _symbols(self) -> Sequence[Any]:
        return range(self.n_symbols)

    def _symbol(self, encoded: Messages) -> int:
        return int(numbers_of(encoded)[0])

    def _encoded(self, symbol: int) -> Messages:
        return self._encode(np.array([symbol]))

    def _encode(self, reports: Integers) -> Messages:
        return reports.astype(SYMBOL).view(np.uint8).reshape(-1, SYMBOL.itemsize)

    def _valid(self, encoded: Messages) -> npt.NDArray[np.bool_]:
        return numbers_of(encoded) < self.n_symbols

    def _no_counts(self) -> Integers:
        return np.zeros(self.n_symbols, dtype=np.int64)

    def _count(self, counts: Integers, encoded: Messages, slots: Integers) -> None:
        np.add.at(counts, numbers_of(encoded), 1)


def numbers_of(encoded: Messages) -> Integers:
    """The symbols of rows of four bytes."""
    return np.ascontiguousarray(encoded).view(SYMBOL).reshape(-1).astype(np.int64)


class HadamardResponse(NumberedSymbols, ItemProtocol):
    """Report a column of Sylvester's matrix in which the item's row is more often +1 than -1.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Above 0. What one report loses; `certified_epsilon` says how much exactly.
    n_items : int
        k, from 2 to 2**24.
    n_users : int
        The number of slots, up to 2**32, public and fixed before anybody reports.
    round_id : str
        Names the round. A name is used once.
    default : int
        The public item that stands for whatever is no item: nothing is ever raised for a user's item or a message.
    neighbors : {"replace"}
        Two datasets that differ in what one user holds. "add-remove" is refused: messages are counted by anybody.

    Notes
    -----
    *Distribution.* K is the least power of two above k. Item u has row u + 1 of the matrix (-1)**(ones of row &
    column); row 0 is constant and nobody's. A coin with p = E / (E + 1), rounded down to a multiple of 2**-128, chooses
    the sign, and the column is uniform among the K / 2 with it.

    *Privacy.* Every column has one of the two probabilities 2 p / K and 2 (1 - p) / K under every item. Their ratio is
    at most E = e**epsilon, checked in integers: each report is epsilon-DP for its user, and so is the transcript when
    one user's item is replaced. No composition, no sensitivity, no delta.

    *Histogram.* Rows are orthogonal, so that a report supports any other item with q = 1/2. The sums over the reports
    of the rows' entries come from one fast Walsh-Hadamard transform of integers. Errors are at most coth(epsilon / 2)
    sqrt(2 n ln(2 k / beta)) for all items at once with probability 1 - beta, by Hoeffding's inequality.

    References
    ----------
    Acharya, Sun and Zhang, "Hadamard response: estimating distributions privately, efficiently, and with little
    communication" (2019); [GKM21, Lemma 13]. Proofs: docs/proofs/local_protocols.md.

    Examples
    --------
    >>> from userdp.protocols.local import HadamardResponse
    >>> protocol = HadamardResponse(epsilon=1, n_items=100, n_users=5000, round_id="example")
    >>> server = protocol.server()
    >>> server.receive_many(protocol.report_many([42] * 5000))
    5000
    >>> server.select()
    42
    >>> server.error_bound(0.01) < 1000
    True
    """

    kind = "local-hadamard-response"

    @property
    def n_symbols(self) -> int:
        """K, the number of columns."""
        return 1 << self.n_items.bit_length()

    def _randomizer(self) -> _core.LocalRandomizer:
        return _core.LocalRandomizer.hadamard_response(core_level(self._level), self.n_items, self.default)

    def _share(self) -> tuple[int, int]:
        return 1, 2

    def supports(self, symbol: int, item: int) -> bool:
        """Whether the item's row has +1 in this column."""
        return (symbol & (item + 1)).bit_count() % 2 == 0

    @property
    def other_probability(self) -> Fraction:
        """1/2."""
        return Fraction(1, 2)

    def _supports(self, counts: Integers) -> Integers:
        sums = _core.hadamard_transform(np.ascontiguousarray(counts))
        # As many of either sign as there are reports: the sum and row 0 have the same parity.
        return (sums[0] + sums[1 : self.n_items + 1]) // 2

    def separation(self) -> Separation:
        p = self.keep_probability
        # The product of two items' rows is a third one's or nobody's: users of neither are at one of these.
        return p / 2, (1 - p) / 2, max(Fraction(1, 4), (1 - p) / 2)


ONES = np.array([byte.bit_count() for byte in range(256)], dtype=np.uint8)
"""How many bits of a byte are set."""


class SetProtocol(ItemProtocol):
    """A report is a set of `subset_size` items, which holds the user's item more often than others."""

    subset_size: int

    @property
    def other_probability(self) -> Fraction:
        """The probability that a report supports an item that is not its user's. Exact."""
        p, w, k = self.keep_probability, self.subset_size, self.n_items
        return (p * (w - 1) + (1 - p) * w) / (k - 1)

    def _share(self) -> tuple[int, int]:
        return self.subset_size, self.n_items

    def _supports(self, counts: Integers) -> Integers:
        return counts

    def separation(self) -> Separation:
        p, w, k = self.keep_probability, self.subset_size, self.n_items
        own, other = p * Fraction(k - w, k - 1), (1 - p) * Fraction(w, k - 1)
        if k == 2:  # nobody has neither
            return own, other, Fraction(0)
        return own, other, (p * (w - 1) * (k - w) + (1 - p) * w * (k - 1 - w)) / ((k - 1) * (k - 2))


class KRandomizedResponse(NumberedSymbols, SetProtocol):
    """Report the item itself, or any other one: the simplest randomizer, best for few items.

    Parameters
    ----------
    epsilon, n_items, n_users, round_id, default, neighbors
        As for `HadamardResponse`.

    Notes
    -----
    *Distribution.* The item with probability p = E / (E + k - 1), rounded down to a multiple of 2**-128, and each other
    item with probability (1 - p) / (k - 1), exactly.

    *Privacy.* Every symbol has one of these two probabilities under every item: epsilon-DP as `HadamardResponse`.

    References
    ----------
    Warner, "Randomized response" (1965); Kairouz, Oh and Viswanath, "Extremal mechanisms for local differential
    privacy" (2014). Proofs: docs/proofs/local_protocols.md.

    Examples
    --------
    >>> from userdp import LogRatio
    >>> from userdp.protocols.local import KRandomizedResponse
    >>> protocol = KRandomizedResponse(epsilon=LogRatio(3), n_items=3, n_users=1000, round_id="example")
    >>> [float(mass) for mass in protocol.pmf(0).fractions()]
    [0.6, 0.2, 0.2]
    >>> protocol.certified_epsilon <= 1.0986122886681098
    True
    """

    kind = "local-randomized-response"
    subset_size = 1

    @property
    def n_symbols(self) -> int:
        """k, the number of items."""
        return self.n_items

    def _randomizer(self) -> _core.LocalRandomizer:
        return _core.LocalRandomizer.randomized_response(core_level(self._level), self.n_items, self.default)

    def supports(self, symbol: int, item: int) -> bool:
        """Whether the symbol is the item."""
        return symbol == item


class SubsetSelection(SetProtocol):
    """Report a set of items that holds the user's own more often than others: the least error, with long messages.

    Parameters
    ----------
    epsilon, n_users, round_id, default, neighbors
        As for `HadamardResponse`.
    n_items : int
        k, from 2 to 2**16. A message has a bit for each item.
    subset_size : int, optional
        w, from 1 to k - 1. By default k / (e**epsilon + 1) rounded, at least 1: about the size of least error.

    Notes
    -----
    *Distribution.* The set holds the item with probability p = E w / (E w + k - w), rounded down to a multiple of
    2**-128; it is uniform among the sets of w items that hold it, or among those that do not. p is rational, and the
    rest is exact.

    *Privacy.* Every set has one of two probabilities under every item: epsilon-DP as `HadamardResponse`.

    References
    ----------
    Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential privacy" (2018); Wang
    and others, "Local private discrete distribution estimation with subset selection" (2016). Proofs:
    docs/proofs/local_protocols.md.

    Examples
    --------
    >>> from userdp.protocols.local import SubsetSelection
    >>> protocol = SubsetSelection(epsilon=1, n_items=12, n_users=4000, round_id="example")
    >>> protocol.subset_size
    3
    >>> server = protocol.server()
    >>> server.receive_many(protocol.report_many([7] * 4000))
    4000
    >>> server.select()
    7
    """

    kind = "local-subset-selection"
    items_limit = 2**16

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        n_items: int,
        n_users: int,
        round_id: str,
        default: int = 0,
        neighbors: str = "replace",
        subset_size: int | None = None,
    ) -> None:
        self.subset_size = 1
        if subset_size is None:
            level = float(parse_level(epsilon))
            if is_integer(n_items) and n_items > 2:  # otherwise 1, or refused below
                self.subset_size = max(1, round(int(n_items) / (math.exp(min(level, 700)) + 1)))
        elif not is_integer(subset_size) or subset_size < 1 or (is_integer(n_items) and subset_size >= n_items):
            raise ValueError(f"subset_size must be an int from 1 to n_items - 1; got {short_repr(subset_size)}")
        else:
            self.subset_size = int(subset_size)
        super().__init__(
            epsilon=epsilon,
            n_items=n_items,
            n_users=n_users,
            round_id=round_id,
            default=default,
            neighbors=neighbors,
        )

    def _item_parameters(self) -> dict[str, int]:
        return {**super()._item_parameters(), "subset_size": self.subset_size}

    @property
    def n_symbols(self) -> int:
        """The number of sets, or some number above 2**20 when it is above that."""
        return capped_binomial(self.n_items, self.subset_size, PMF_LIMIT)

    def _randomizer(self) -> _core.LocalRandomizer:
        level = core_level(self._level)
        return _core.LocalRandomizer.subset_selection(level, self.n_items, self.subset_size, self.default)

    def supports(self, symbol: tuple[int, ...], item: int) -> bool:
        """Whether the set holds the item."""
        return item in symbol

    def _width(self) -> int:
        return -(-self.n_items // 8)

    def _symbols(self) -> Sequence[Any]:
        return list(combinations(range(self.n_items), self.subset_size))

    def _symbol(self, encoded: Messages) -> tuple[int, ...]:
        return tuple(int(item) for item in np.flatnonzero(np.unpackbits(encoded, bitorder="little")))

    def _encoded(self, symbol: tuple[int, ...]) -> Messages:
        members = np.zeros((1, 8 * self.symbol_bytes), dtype=np.uint8)
        members[0, list(symbol)] = 1
        return np.packbits(members, axis=1, bitorder="little")

    def _encode(self, reports: Integers) -> Messages:
        words = -(-self.n_items // 64)
        in_order = np.ascontiguousarray(reports.astype("<i8").reshape(-1, words))
        return in_order.view(np.uint8).reshape(-1, 8 * words)[:, : self.symbol_bytes]

    def _valid(self, encoded: Messages) -> npt.NDArray[np.bool_]:
        right_size = ONES[encoded].sum(axis=1, dtype=np.int64) == self.subset_size
        beyond = encoded[:, -1].astype(np.int64) >> (self.n_items - 8 * (self.symbol_bytes - 1))
        return right_size & (beyond == 0)

    def _no_counts(self) -> Integers:
        return np.zeros(self.n_items, dtype=np.int64)

    def _count(self, counts: Integers, encoded: Messages, slots: Integers) -> None:
        bits = np.unpackbits(encoded, axis=1, bitorder="little", count=self.n_items)
        # A block of messages is below 2^16 of them, and sums of short integers are fast.
        counts += bits.sum(axis=0, dtype=np.uint16)


CANDIDATES: tuple[type[ItemProtocol], ...] = (KRandomizedResponse, HadamardResponse, SubsetSelection)
"""In the order of what they cost."""


def for_items(
    *,
    epsilon: Epsilon,
    n_items: int,
    n_users: int,
    round_id: str,
    default: int = 0,
    max_message_bytes: int = 1024,
) -> ItemProtocol:
    """The protocol whose histogram has the least expected squared error.

    Parameters
    ----------
    epsilon, n_items, n_users, round_id, default
        As for `HadamardResponse`.
    max_message_bytes : int
        Protocols with longer messages are left out: those of `SubsetSelection` have a bit for each item.

    Returns
    -------
    KRandomizedResponse, HadamardResponse or SubsetSelection
        The one of least `squared_error`, compared as fractions; of equal ones the cheapest. From public parameters
        only.

    Notes
    -----
    The expected sum of squared errors is the same whatever the users hold, so that there is one answer. Subsets of the
    best size are never worse than single items, which are subsets of size 1. Hadamard response is close to them where
    epsilon is small, and needs 28 bytes and no time for each item.

    Examples
    --------
    >>> from userdp.protocols import local
    >>> local.for_items(epsilon=3, n_items=4, n_users=100, round_id="a")
    KRandomizedResponse(epsilon=3, n_items=4, default=0, n_users=100, round_id='a')
    >>> type(local.for_items(epsilon=1, n_items=10**5, n_users=100, round_id="a")).__name__
    'HadamardResponse'
    """
    limit = check_count(max_message_bytes, "max_message_bytes")
    protocols = [
        candidate(epsilon=epsilon, n_items=n_items, n_users=n_users, round_id=round_id, default=default)
        for candidate in CANDIDATES
        if candidate is CANDIDATES[0] or n_items <= candidate.items_limit
    ]
    short = [protocol for protocol in protocols if protocol.format.width <= limit]
    if not short:
        least = min(protocol.format.width for protocol in protocols)
        raise ValueError(f"max_message_bytes must be at least {least}; got {limit}")
    return min(short, key=lambda protocol: protocol.squared_error)
