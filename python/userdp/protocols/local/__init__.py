"""The local model: every user sends one message that is private by itself, and nobody is trusted with more.

A protocol object is the public description: parameters, the number of users, the name of the round. It is made from the
same arguments on all machines, or sent as JSON. `protocol.client(slot)` is one user's half and `protocol.server()` the
half of whoever counts:

>>> from userdp.protocols import local
>>> protocol = local.HadamardResponse(epsilon=1, n_items=10, n_users=1000, round_id="fruit-1")
>>> server = protocol.server()
>>> server.receive(protocol.client(slot=0).report(3))
True
>>> server.receive(protocol.client(slot=1).report(7))
True
>>> server.accepted
2

Neighbors differ in what one user holds; who takes part is public (docs/proofs/local_protocols.md).
"""

from __future__ import annotations

from userdp.protocols.local.bits import BitwiseMajority
from userdp.protocols.local.items import (
    HadamardResponse,
    ItemProtocol,
    KRandomizedResponse,
    SubsetSelection,
    for_items,
)
from userdp.protocols.local.protocol import LocalClient, LocalProtocol, LocalServer

__all__ = [
    "BitwiseMajority",
    "HadamardResponse",
    "ItemProtocol",
    "KRandomizedResponse",
    "LocalClient",
    "LocalProtocol",
    "LocalServer",
    "SubsetSelection",
    "for_items",
]
