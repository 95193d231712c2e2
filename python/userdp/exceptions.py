"""Exceptions that userdp raises beside ValueError and TypeError."""

from __future__ import annotations

__all__ = ["BudgetError"]


class BudgetError(ValueError):
    """The work asked for is larger than the budget; the message has an estimate and a cheaper option."""
