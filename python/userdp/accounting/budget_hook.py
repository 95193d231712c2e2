"""How a fit asks a ledger for leave, after its data are read and before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Charge: TypeAlias = Callable[[Any], None]

_CHARGES: ContextVar[tuple[Charge, ...]] = ContextVar("_CHARGES", default=())


def announce(record: Any) -> None:
    """Say that a release with this guarantee is about to be drawn; raises what a ledger raises that listens."""
    for charge in _CHARGES.get():
        charge(record)


@contextmanager
def charging(charge: Charge) -> Iterator[None]:
    """Let `announce` call this, in this thread and inside the block."""
    token = _CHARGES.set((*_CHARGES.get(), charge))
    try:
        yield
    finally:
        _CHARGES.reset(token)
