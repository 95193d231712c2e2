"""BOTTOM, the output that stands for a refusal to answer."""

from __future__ import annotations

from typing import Final, final


@final
class Bottom:
    """The type of `BOTTOM`, which has one instance: equal to itself alone, in every process."""

    _instance: Bottom | None = None

    def __new__(cls) -> Bottom:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def __repr__(self) -> str:
        return "BOTTOM"

    def __reduce__(self) -> str:
        return "BOTTOM"


BOTTOM: Final = Bottom()
"""What DelStab returns when it refuses to answer."""
