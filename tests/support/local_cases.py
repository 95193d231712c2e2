"""The local protocols of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from userdp import LogRatio
from userdp.protocols.local import (
    BitwiseMajority,
    HadamardResponse,
    KRandomizedResponse,
    LocalProtocol,
    SubsetSelection,
)

LN3 = LogRatio(3)
ITEMS = (KRandomizedResponse, SubsetSelection, HadamardResponse)


def small(epsilon: Any = LN3, n_users: int = 2) -> Iterator[LocalProtocol]:
    """Every randomizer of 2 to 6 items, subsets of every size."""
    public: dict[str, Any] = {"epsilon": epsilon, "n_users": n_users, "round_id": "test"}
    for k in range(2, 7):
        yield KRandomizedResponse(n_items=k, **public)
        yield HadamardResponse(n_items=k, **public)
        for w in range(1, k):
            yield SubsetSelection(n_items=k, subset_size=w, **public)


def bits(epsilon: Any = LN3, n_bits: int = 2, n_users: int = 2) -> BitwiseMajority:
    return BitwiseMajority(epsilon=epsilon, n_bits=n_bits, n_users=n_users, round_id="test")
