"""Randomized response and subset selection, and the choice among the local protocols for items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Epsilon, capped_binomial, check_count, is_integer, parse_level, short_repr
from userdp.protocols.local.hadamard import HadamardResponse
from userdp.protocols.local.items import ItemProtocol, NumberedSymbols, Separation
from userdp.protocols.local.protocol import PMF_LIMIT, Integers
from userdp.protocols.messages import Messages

if TYPE_CHECKING:
    from userdp import _core

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

    def _separation(self) -> Separation:
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

    Raises
    ------
    TypeError, ValueError
        For parameters outside these ranges. Nothing is ever raised for a user's item or for a message.

    Notes
    -----
    *Distribution.* The item with probability p = E / (E + k - 1), rounded down to a multiple of 2**-128, and each other
    item with probability (1 - p) / (k - 1), exactly.

    *Privacy.* Every symbol has one of these two probabilities under every item, and their ratio is at most E =
    e**epsilon, checked in integers: each report is epsilon-DP for its user, and so is the transcript when one user's
    item is replaced.

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
        from userdp import _core
        from userdp.exact.epsilon import core_level

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

    Raises
    ------
    TypeError, ValueError
        For parameters outside these ranges. Nothing is ever raised for a user's item or for a message.

    Notes
    -----
    *Distribution.* The set holds the item with probability p = E w / (E w + k - w), rounded down to a multiple of
    2**-128; it is uniform among the sets of w items that hold it, or among those that do not. p is rational, and the
    rest is exact.

    *Privacy.* Every set has one of two probabilities under every item, whose ratio is at most E = e**epsilon, checked
    in integers: each report is epsilon-DP for its user, and so is the transcript when one user's item is replaced.

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
        from userdp import _core
        from userdp.exact.epsilon import core_level

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
        valid: npt.NDArray[np.bool_] = right_size & (beyond == 0)
        return valid

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

    Raises
    ------
    TypeError, ValueError
        As the protocols, and when no message is as short as max_message_bytes.

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
