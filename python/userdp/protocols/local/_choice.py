"""Which randomizer has the least error."""

from __future__ import annotations

from userdp._numbers import Epsilon, positive
from userdp.protocols.local._hadamard import HadamardResponse
from userdp.protocols.local._items import ItemProtocol
from userdp.protocols.local._subsets import KRandomizedResponse, SubsetSelection

__all__ = ["for_items"]

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
    limit = positive(max_message_bytes, "max_message_bytes")
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
