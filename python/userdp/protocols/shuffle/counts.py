"""Sums, histograms and modes (most frequent items) behind a shuffler."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Delta, Epsilon, check_count, short_repr
from userdp.protocols.messages import Messages
from userdp.protocols.shuffle.noise import SharedNoise, parse_beta
from userdp.protocols.shuffle.protocol import (
    MAX_MESSAGES,
    CountServer,
    HistogramServer,
    Integers,
    ModeServer,
    ShuffleProtocol,
    parse_estimates,
)
from userdp.runtime import source_of


class NegativeBinomialSum(ShuffleProtocol):
    """How many of n users have a 1, with the least noise that is certified to be enough.

    [GKM21, Algorithm 7] and [GKM21, Algorithm 8].

    Every user sends x + Z times the same message, Z one draw next to NB(r / n, p). The server counts messages.

    Parameters
    ----------
    epsilon : float, int, Fraction, decimal string or LogRatio
        Above 0, at most 64.
    delta : float, int, Fraction or decimal string
        In (0, 1).
    n_users : int
        The public number of users, each with one input, 0 or 1; at most 2**32.
    round_id : str
        Names the round; use every name once.
    estimates : {"at_least", "at_most"}
        "at_least": the estimate is never below the sum ([GKM21, Corollary 40]). "at_most": users count the zeros, and
        the estimate is never above the sum of those who take part plus the number of those who do not ([GKM21, Lemma
        38]).
    beta : None, float, int, Fraction or decimal string
        The noise has the least (1 - beta)-quantile that the search finds, or, for None, the least mean.
    r, p : None, float, int, Fraction or decimal string
        Both or none: noise NB(r, p) of your own, which must be enough. None searches.
    dropout : float, int, Fraction or decimal string
        In [0, 1). Up to this fraction of the users, rounded down, may be absent or tell the analyst what they sent:
        the others' noise is enough. It costs 1 / (1 - dropout) of the noise.
    max_messages : int
        Rounds with more messages than this on average are refused.

    Raises
    ------
    BudgetError
        For too many messages, and noise of more than 2**20 values.

    Notes
    -----
    *Neighbors.* One user's input is replaced. Removing a user is not covered: the noise would go with the user, and
    in the shuffle model everybody sees how many users there are.

    *What is protected, and from whom.* From whoever sees the messages in a random order, or their number. This needs
    a shuffler that hides who sent what **and how many messages each user sent**, and (1 - dropout) n users who follow
    the protocol.

    *Certificate.* `certified_delta` is the exact divergence at (r, p), rounded outwards, plus n t (1 + e**epsilon) for
    n tables at distance t of their distributions. The calibration's search is done with floats and decides nothing.
    Proofs: docs/proofs/shuffle.md.

    *One-sided.* Counts only ever gain from noise. The estimate is cut to [0, n_users].

    [GKM21, Theorem 39] asks for r = 3 (1 + ln(1/delta)) and p = e**(-0.2 epsilon): 8 times the noise at epsilon = 1,
    delta = 1e-3 (`theorem_39_parameters`).

    Examples
    --------
    >>> protocol = NegativeBinomialSum(epsilon=1, delta=1e-3, n_users=1000, round_id="example")
    >>> float(protocol.certified_delta) <= 1e-3
    True
    >>> 12 < protocol.mean_noise < 13
    True
    >>> shuffler, server = protocol.shuffler(), protocol.server()
    >>> for user in range(1000):
    ...     shuffler.collect(protocol.client().report(user < 300))
    >>> server.receive_many(shuffler.release()) == server.accepted
    True
    >>> 300 <= server.estimate() <= 300 + 80
    True
    """

    _kind = "shuffle-sum"

    def __init__(
        self,
        *,
        epsilon: Epsilon,
        delta: Delta,
        n_users: int,
        round_id: str,
        estimates: str = "at_least",
        beta: Delta | None = None,
        r: Delta | None = None,
        p: Delta | None = None,
        dropout: Delta = 0,
        max_messages: int = MAX_MESSAGES,
    ) -> None:
        super().__init__(
            noise=SharedNoise(
                epsilon=epsilon, delta=delta, n_users=n_users, counts=1, dropout=dropout, beta=beta, r=r, p=p
            ),
            n_counts=1,
            n_values=2,
            round_id=round_id,
            estimates=parse_estimates(estimates),
            max_messages=max_messages,
            payload_bytes=1,
        )

    def server(self) -> CountServer:
        """The analyst's half."""
        return CountServer(self)

    def error_bound(self, beta: Delta) -> int:
        """What the estimate is off by at most, with probability 1 - beta, when all users take part."""
        return self.noise_quantile(beta)

    def release(self, items: Any, random_state: int | None = None) -> int:
        """The estimate of a whole round that is simulated in this process.

        Parameters
        ----------
        items : sequence of n_users inputs
            0 or 1, False or True; anything else counts as 0.
        random_state : None or int
            For tests only.
        """
        return self._simulated(items, source_of(random_state)).estimate()

    def _reports(self, codes: Integers, source: _core.Source) -> tuple[Any, Any]:
        return super()._reports(1 - codes, source)  # the one kind of message is number 0

    def _payloads(self, ids: npt.NDArray[np.uint32]) -> Messages:
        return np.ones((len(ids), 1), dtype=np.uint8)

    def _ids(self, payloads: Messages) -> Integers:
        return 1 - payloads[:, 0].astype(np.int64)


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
        return self._simulated(items, source_of(random_state)).histogram()


class Mode(_OfItems):
    """An item that many users have: [GKM21, Lemma 36], the largest estimate of a `Histogram`.

    Parameters
    ----------
    epsilon, delta, n_items, n_users, round_id, default, estimates, beta, r, p, dropout, max_messages
        As for `Histogram`.

    Notes
    -----
    *Privacy* as for `Histogram`: the selection is a function of its counts.

    *Usefulness.* With "at_most", only the noise in the count of the most frequent item can mislead: the selected item
    has, with probability 1 - beta, at most `error_bound` users fewer. With "at_least", large noise in any of the
    n_items counts can, and the bound grows with ln(n_items); it needs fewer messages.

    Examples
    --------
    >>> protocol = Mode(epsilon=1, delta=1e-3, n_items=8, n_users=300, round_id="example")
    >>> protocol.release([5] * 200 + [1] * 100)
    5
    >>> protocol.error_bound(0.01)
    27
    """

    _kind = "shuffle-mode"

    def server(self) -> ModeServer:
        """The analyst's half."""
        return ModeServer(self)

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
        return self._simulated(items, source_of(random_state)).select()
