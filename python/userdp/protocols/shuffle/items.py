"""Histograms and selections behind a shuffler."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from userdp.exact.numbers import Delta, Epsilon, check_count, short_repr
from userdp.protocols.shuffle.noise import SharedNoise, parse_beta
from userdp.protocols.shuffle.parties import HistogramServer, Integers, SelectionServer
from userdp.protocols.shuffle.protocol import MAX_MESSAGES, ShuffleProtocol, parse_estimates
from userdp.runtime import source_of

ITEMS_LIMIT = 2**24


class _OfItems(ShuffleProtocol):
    """A noisy count for each of n_items items."""

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta,
        n_items: int,
        n_users: int,
        round_id: str,
        default: int = 0,
        estimates: str = "at_most",
        beta: Delta | None = None,
        r: Delta | None = None,
        p: Delta | None = None,
        dropout: Delta = 0,
        max_messages: int = MAX_MESSAGES,
    ) -> None:
        self.n_items = check_count(n_items, "n_items", 2)
        if self.n_items > ITEMS_LIMIT:
            raise ValueError(f"n_items must be at most 2**24: a user adds noise for each; got {short_repr(n_items)}")
        self.default = check_count(default, "default", 0)
        if self.default >= self.n_items:
            raise ValueError(f"default must be an item, from 0 to {self.n_items - 1}; got {short_repr(default)}")
        super().__init__(
            noise=SharedNoise(
                epsilon=epsilon, delta=delta, n_users=n_users, counts=2, dropout=dropout, beta=beta, r=r, p=p
            ),
            n_counts=self.n_items,
            n_values=self.n_items,
            round_id=round_id,
            estimates=parse_estimates(estimates),
            max_messages=max_messages,
            payload_bytes=4,
        )

    def _parameters(self) -> dict[str, Fraction | int | str]:
        return {**super()._parameters(), "default": self.default, "n_items": self.n_items}

    def _any_count(self, beta: Delta, counts: int) -> int:
        """What the noise of none of these counts exceeds, with probability 1 - beta."""
        return self._noise.quantile(parse_beta(beta) / counts)


class Histogram(_OfItems):
    """How many of n users have each item: [GKM21, Lemma 37], calibrated jointly over the two counts that change.

    For every item a user sends x + Z messages that name it, Z one draw next to NB(r / n, p). With
    ``estimates="at_most"`` x is 0 for the user's item and 1 for all others, and n minus an item's messages estimates
    its count from below: items that nobody has get 0, exactly. With ``estimates="at_least"`` x is 1 for the user's
    item, and the messages are counted.

    Parameters
    ----------
    epsilon, delta, n_users, round_id, beta, r, p, dropout, max_messages
        As for `NegativeBinomialSum`.
    n_items : int
        The items are 0, ..., n_items - 1; from 2 to 2**24 of them.
    default : int
        The public item of whoever has none of them.
    estimates : {"at_most", "at_least"}
        On which side of the true counts the estimates are. "at_most" needs n (n_items - 1) messages besides the
        noise, "at_least" n. Users who do not take part count as having every item in "at_most", and none in
        "at_least".

    Raises
    ------
    TypeError, ValueError, BudgetError
        As `NegativeBinomialSum`.

    Notes
    -----
    *Neighbors*, and from whom what is protected: as for `NegativeBinomialSum`. Replacing one user's item changes two
    counts by 1, in opposite directions; `certified_delta` is the exact divergence of those two noisy counts, 14.2
    messages of noise in each count at epsilon = 1, delta = 1e-3, where halving epsilon and delta, as in the paper's
    proof, takes 27.6.

    Examples
    --------
    >>> protocol = Histogram(epsilon=1, delta=1e-3, n_items=4, n_users=500, round_id="example")
    >>> estimates = protocol.release([0] * 300 + [2] * 200)
    >>> [int(estimates[1]), int(estimates[3])]
    [0, 0]
    >>> bool(300 - 90 < estimates[0] <= 300)
    True
    """

    _kind = "shuffle-histogram"

    def server(self) -> HistogramServer:
        """The analyst's half."""
        return HistogramServer(self)

    def error_bound(self, beta: Delta) -> int:
        """What every estimate is off by at most, with probability 1 - beta, when all users take part.

        Estimates "at_most" are exact for items without users, so at most n_users counts can be off.
        """
        return self._any_count(beta, min(self.n_items, self.n_users) if self.estimates == "at_most" else self.n_items)

    def release(self, items: Any, random_state: int | None = None) -> Integers:
        """The estimates of a whole round that is simulated in this process.

        Parameters
        ----------
        items : sequence of n_users items
            False and True are the items 0 and 1; anything that is no item counts as the default.
        random_state : None or int
            For tests only.
        """
        estimates: Integers = self._simulated(items, source_of(random_state)).histogram()
        return estimates


class Selection(_OfItems):
    """An item that many users have: [GKM21, Lemma 36], the largest estimate of a `Histogram`.

    Parameters
    ----------
    epsilon, delta, n_items, n_users, round_id, default, estimates, beta, r, p, dropout, max_messages
        As for `Histogram`.

    Raises
    ------
    TypeError, ValueError, BudgetError
        As `NegativeBinomialSum`.

    Notes
    -----
    *Privacy* as for `Histogram`: the selection is a function of its counts.

    *Usefulness.* With "at_most", only the noise in the count of the most frequent item can mislead: the selected item
    has, with probability 1 - beta, at most `error_bound` users fewer. With "at_least", large noise in any of the
    n_items counts can, and the bound grows with ln(n_items); it needs fewer messages.

    Examples
    --------
    >>> protocol = Selection(epsilon=1, delta=1e-3, n_items=8, n_users=300, round_id="example")
    >>> protocol.release([5] * 200 + [1] * 100)
    5
    >>> protocol.error_bound(0.01)
    27
    """

    _kind = "shuffle-selection"

    def server(self) -> SelectionServer:
        """The analyst's half."""
        return SelectionServer(self)

    def error_bound(self, beta: Delta) -> int:
        """How many users fewer the selected item has at most, with probability 1 - beta, when all take part."""
        return self._any_count(beta, 1 if self.estimates == "at_most" else self.n_items)

    def release(self, items: Any, random_state: int | None = None) -> int:
        """The item selected in a whole round that is simulated in this process.

        Parameters
        ----------
        items : sequence of n_users items
            Anything that is no item counts as the default.
        random_state : None or int
            For tests only.
        """
        selected: int = self._simulated(items, source_of(random_state)).select()
        return selected
