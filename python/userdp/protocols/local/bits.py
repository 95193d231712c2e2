"""Bitwise majority: one bit from every user, for items of many bits that most users share."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.epsilon import core_level
from userdp.exact.numbers import Delta, Epsilon, check_count, parse_level, short_repr
from userdp.protocols.local.items import NumberedSymbols, majority, numbers_of
from userdp.protocols.local.protocol import Integers, log_events, reports_needed
from userdp.protocols.messages import Messages
from userdp.users.containers import read_grid

BITS_LIMIT = 2**24
BLOCK = 2**22
"""So many bits are read in one call of the core, or one row."""


class BitwiseMajority(NumberedSymbols):
    """The user in slot i reports bit i mod n_bits of an item, randomized; the server takes the majority of every bit.

    For items of too many bits to count each item, when most users have the same one. The number of users grows with the
    number of bits times its logarithm, and the time with the number of users alone.

    Parameters
    ----------
    epsilon, n_users, round_id, neighbors
        As for `HadamardResponse`. Nothing is ever raised for a user's item or for a message.
    n_bits : int
        b, from 1 to 2**24. At most n_users: every bit needs a slot.

    Notes
    -----
    *Distribution.* The bit is kept with probability p = E / (E + 1), rounded down to a multiple of 2**-128, and flipped
    otherwise. An item counts by its first n_bits entries; one that is shorter, is no list, tuple or vector, or has
    anything else than zeros and ones among them stands for all zeros.

    *Privacy.* A message depends on its user's item and slot only, and either symbol's ratio is at most E = e**epsilon,
    checked in integers. The slot must be the user's own number, fixed without data, for instance at enrolment and not
    the rank among the ids that are present (docs/proofs/local_protocols.md, "Slots are not ranks").

    *Selection.* `users_needed` are enough for all bits to be right, by Hoeffding's inequality.

    References
    ----------
    [GKM21, Theorem 5] (iii), has hypotheses of b bits; its own selection looks at all 2**b of them. Proofs:
    docs/proofs/local_protocols.md.

    Examples
    --------
    >>> import numpy as np
    >>> from userdp.protocols.local import BitwiseMajority
    >>> n_users = BitwiseMajority.users_needed(agreement="0.9", beta="0.01", epsilon=1, n_bits=40)
    >>> n_users
    4880
    >>> protocol = BitwiseMajority(epsilon=1, n_bits=40, n_users=n_users, round_id="example")
    >>> server = protocol.server()
    >>> server.receive_many(protocol.report_many(np.tile([1, 0, 1, 1], (n_users, 10))))
    4880
    >>> server.select()[:8]
    array([1, 0, 1, 1, 1, 0, 1, 1], dtype=uint8)
    """

    kind = "local-bitwise-majority"

    def __init__(
        self, *, epsilon: Epsilon, n_bits: int, n_users: int, round_id: str, neighbors: str = "replace"
    ) -> None:
        self.n_bits = check_count(n_bits, "n_bits")
        if self.n_bits > BITS_LIMIT:
            raise ValueError(f"n_bits must be at most 2**24; got {short_repr(n_bits)}")
        if check_count(n_users, "n_users") < self.n_bits:
            raise ValueError(f"n_users must be at least n_bits={self.n_bits}, a slot for every bit; got {n_users}")
        super().__init__(epsilon=epsilon, n_users=n_users, round_id=round_id, neighbors=neighbors, n_bits=self.n_bits)

    @property
    def n_symbols(self) -> int:
        """Two: a bit."""
        return 2

    def _randomizer(self) -> _core.LocalRandomizer:
        return _core.LocalRandomizer.randomized_response(core_level(self._level), 2, 0)

    def _share(self) -> tuple[int, int]:
        return 1, 2

    def _favors(self, value: int, symbol: int) -> bool:
        return symbol == value

    # --- items

    def _read(self, items: Any, name: str) -> Integers:
        grid = read_grid(items, name, width=self.n_bits)
        if grid.shape[1] != self.n_bits:
            raise ValueError(f"{name} must have n_bits={self.n_bits} columns; got {grid.shape[1]}")
        return np.require(grid.codes(), np.int64, ["C", "A"])

    def _values_of_slots(self, codes: Integers, slots: Integers) -> Integers:
        places = (slots % self.n_bits).astype(np.uint64)
        step = max(1, BLOCK // self.n_bits)
        bits = np.empty(len(codes), dtype=np.int64)
        for start in range(0, len(codes), step):
            rows = slice(start, start + step)
            bits[rows] = _core.bits_of_rows(codes[rows], places[rows])
        return bits

    # --- counts

    def _no_counts(self) -> Integers:
        return np.zeros((self.n_bits, 2), dtype=np.int64)

    def _count(self, counts: Integers, encoded: Messages, slots: Integers) -> None:
        np.add.at(counts, (slots % self.n_bits, numbers_of(encoded)), 1)

    def _estimates(self, counts: Integers, n_reports: int) -> npt.NDArray[np.float64]:
        p = self.keep_probability
        flipped = counts.sum(axis=1) * float(1 - p)
        return (counts[:, 1] - flipped) / float(2 * p - 1)

    def _selected(self, counts: Integers) -> npt.NDArray[np.uint8]:
        return (counts[:, 1] > counts[:, 0]).astype(np.uint8)

    def _standard_errors(self, counts: Integers, n_reports: int) -> npt.NDArray[np.float64]:
        p = self.keep_probability
        return np.sqrt(counts.sum(axis=1) * float(p * (1 - p) / (2 * p - 1) ** 2))

    def error_bound(self, beta: Delta, n_reports: int | None = None) -> float:
        """By how much an entry of the histogram is off at most, all of them at once, except with probability beta.

        Parameters
        ----------
        beta : number in (0, 1)
        n_reports : int, optional
            n_users by default. It is taken that they are spread over the bits as slots are.

        Returns
        -------
        float
            coth(epsilon / 2) sqrt(g ln(2 n_bits / beta) / 2) by Hoeffding's inequality, for g = ceil(n_reports /
            n_bits) reports of a bit.
        """
        n = self.n_users if n_reports is None else check_count(n_reports, "n_reports", 0)
        reports = -(-n // self.n_bits)
        logarithm = log_events(2 * self.n_bits, beta)
        return math.sqrt(reports * logarithm / 2) / float(2 * self.keep_probability - 1)

    @classmethod
    def users_needed(cls, *, agreement: Delta, beta: Delta, epsilon: Epsilon, n_bits: int) -> int:
        """How many reports make `LocalServer.select` right, when independent users have one item so often.

        Parameters
        ----------
        agreement, beta
            As for `ItemProtocol.users_needed`.
        epsilon : float, int, Fraction, decimal string or LogRatio
        n_bits : int

        Returns
        -------
        int
            n_bits ceil(2 ln(n_bits / beta) / ((2 agreement - 1)^2 tanh(epsilon / 2)^2)). For planning; no privacy rests
            on it.

        Raises
        ------
        BudgetError
            When every bit needs more than 2**32 reports.
        """
        b = check_count(n_bits, "n_bits")
        advantage = (2 * majority(agreement) - 1) * Fraction(math.tanh(float(parse_level(epsilon)) / 2))
        if advantage == 0:
            raise ValueError(f"epsilon must be > 0; got {short_repr(epsilon)}")
        return b * reports_needed(2 * log_events(b, beta), float(advantage) ** 2)
