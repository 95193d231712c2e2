"""The sum of users' bits behind a shuffler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from userdp import _core
from userdp.exact.numbers import Delta, Epsilon
from userdp.protocols.messages import Messages
from userdp.protocols.shuffle.noise import SharedNoise
from userdp.protocols.shuffle.parties import CountServer, Integers
from userdp.protocols.shuffle.protocol import MAX_MESSAGES, ShuffleProtocol, parse_estimates
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
    TypeError, ValueError
        For parameters outside these ranges; for an r and p that are not enough; for a delta that is too small for
        tables of 128 bits.
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
        estimate: int = self._simulated(items, source_of(random_state)).estimate()
        return estimate

    def _reports(self, codes: Integers, source: _core.Source) -> tuple[Any, Any]:
        return super()._reports(1 - codes, source)  # the one kind of message is number 0

    def _payloads(self, ids: npt.NDArray[np.uint32]) -> Messages:
        return np.ones((len(ids), 1), dtype=np.uint8)

    def _ids(self, payloads: Messages) -> Integers:
        return 1 - payloads[:, 0].astype(np.int64)
