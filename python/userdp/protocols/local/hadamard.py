"""Hadamard response: short messages and a fast server for long lists of items."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from userdp.protocols.local.items import ItemProtocol, NumberedSymbols, Separation
from userdp.protocols.local.protocol import Integers

if TYPE_CHECKING:
    from userdp import _core


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
        The public item that stands for whatever is no item.
    neighbors : {"replace"}
        Two datasets that differ in what one user holds. "add-remove" is refused: messages are counted by anybody.

    Raises
    ------
    TypeError, ValueError
        For parameters outside these ranges. Nothing is ever raised for a user's item or for a message.

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
        from userdp import _core
        from userdp.exact.epsilon import core_level

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
        from userdp import _core

        sums = _core.hadamard_transform(np.ascontiguousarray(counts))
        # As many of either sign as there are reports: the sum and row 0 have the same parity.
        supports: Integers = (sums[0] + sums[1 : self.n_items + 1]) // 2
        return supports

    def _separation(self) -> Separation:
        p = self.keep_probability
        # The product of two items' rows is a third one's or nobody's: users of neither are at one of these.
        return p / 2, (1 - p) / 2, max(Fraction(1, 4), (1 - p) / 2)
