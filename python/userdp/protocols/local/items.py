"""What local protocols for items 0, ..., k - 1 have in common."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.exact.numbers import Delta, Epsilon, check_count, parse_delta, short_repr
from userdp.protocols.local.protocol import Integers, LocalProtocol, log_events, plan_of
from userdp.protocols.messages import Messages
from userdp.users.containers import read_codes

Separation = tuple[Fraction, Fraction, Fraction]
"""See `ItemProtocol._separation`."""


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
        estimates: npt.NDArray[np.float64] = (supports - n_reports * float(self.other_probability)) / float(self._gap)
        return estimates

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
        deviations: npt.NDArray[np.float64] = np.sqrt(clipped * own + (n_reports - clipped) * none)
        return deviations

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
    def _separation(self) -> Separation:
        """How reports tell the item h from another one, v: three probabilities."""
        # Of supporting h and not v, and v and not h, for users who have h; and of supporting h and not v for those who
        # have neither, which is also that of v and not h, or a bound of it.

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
        TypeError, ValueError
            For values outside these ranges.
        BudgetError
            When the result would be above 2**32.

        Notes
        -----
        For the common item h and another item v let D = 1 for a report that supports h and not v, -1 for the opposite,
        0 otherwise. v is selected only if the sum of D is at most 0, which has probability at most (E e^(-t D))^n for
        every t >= 0. All other users having v or none having it is the worst case, since the expectation is linear in
        the users' distribution; t is the best one for the first. A union over n_items - 1 items v ends it.

        Examples
        --------
        >>> from userdp.protocols.local import HadamardResponse
        >>> HadamardResponse.users_needed(agreement="0.9", beta="0.01", epsilon=1, n_items=1000)
        320
        """
        protocol = cls(n_users=1, round_id="planning", **parameters)
        share = float(majority(agreement))
        plus, minus, neither = (float(number) for number in protocol._separation())
        # When all others have v, who support v as those of h support h.
        up, down = share * plus + (1 - share) * minus, share * minus + (1 - share) * plus
        step = math.sqrt(up / down)

        def expectation(up: float, down: float) -> float:
            return 1 + up * (1 / step - 1) + down * (step - 1)

        others_elsewhere = expectation(share * plus + (1 - share) * neither, share * minus + (1 - share) * neither)
        base = max(expectation(up, down), others_elsewhere)
        return plan_of(log_events(protocol.n_items - 1, beta), -math.log(base))


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
