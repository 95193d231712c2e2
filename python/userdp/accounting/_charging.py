"""How a fit asks a ledger for leave, after its data are read and before anything is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from userdp.learners._privacy import PrivacyRecord

__all__ = ["announce", "charging"]

Charge: TypeAlias = "Callable[[PrivacyRecord], None]"

_CHARGE: ContextVar[Charge | None] = ContextVar("_CHARGE", default=None)


def announce(record: PrivacyRecord) -> None:
    """Say that a release with this guarantee is about to be drawn; raises what the ledger raises, if one listens."""
    if charge := _CHARGE.get():
        charge(record)


@contextmanager
def charging(charge: Charge) -> Iterator[None]:
    """Let `announce` call this, in this thread and inside the block."""
    token = _CHARGE.set(charge)
    try:
        yield
    finally:
        _CHARGE.reset(token)
