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

    Examples
    --------
    >>> from userdp.protocols import local
    >>> local.for_items(epsilon=3, n_items=4, n_users=100, round_id="a")
    KRandomizedResponse(epsilon=3, n_items=4, default=0, n_users=100, round_id='a')
    >>> type(local.for_items(epsilon=1, n_items=10**5, n_users=100, round_id="a")).__name__
    'HadamardResponse'
    """
    limit = positive(max_message_bytes, "max_message_bytes")
    parameters = {"n_items": n_items, "n_users": n_users, "default": default}
    found: ItemProtocol = HadamardResponse(epsilon=epsilon, round_id=round_id, **parameters)
    for candidate in CANDIDATES:
        if n_items <= candidate.items_limit:
            protocol = candidate(epsilon=epsilon, round_id=round_id, **parameters)
            fits = protocol.format.width <= limit
            if fits and (found.format.width > limit or protocol.squared_error < found.squared_error):
                found = protocol
    if found.format.width > limit:
        raise ValueError(f"max_message_bytes must be at least {found.format.width}; got {limit}")
    return found
