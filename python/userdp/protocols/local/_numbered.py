"""Symbols that are numbers below a bound, and counts of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from userdp.protocols._messages import Messages
from userdp.protocols.local._protocol import Integers, LocalProtocol

__all__ = ["NumberedSymbols", "numbers_of"]

SYMBOL = np.dtype("<u4")


class NumberedSymbols(LocalProtocol):
    """The symbols are 0, ..., n_symbols - 1, in four bytes of a message; a server counts each."""

    def _width(self) -> int:
        return SYMBOL.itemsize

    def _symbols(self) -> Sequence[Any]:
        return range(self.n_symbols)

    def _symbol(self, encoded: Messages) -> int:
        return int(numbers_of(encoded)[0])

    def _encoded(self, symbol: int) -> Messages:
        return self._encode(np.array([symbol]))

    def _encode(self, reports: Integers) -> Messages:
        return reports.astype(SYMBOL).view(np.uint8).reshape(-1, SYMBOL.itemsize)

    def _valid(self, encoded: Messages) -> npt.NDArray[np.bool_]:
        return numbers_of(encoded) < self.n_symbols

    def _no_counts(self) -> Integers:
        return np.zeros(self.n_symbols, dtype=np.int64)

    def _count(self, counts: Integers, encoded: Messages, slots: Integers) -> None:
        np.add.at(counts, numbers_of(encoded), 1)


def numbers_of(encoded: Messages) -> Integers:
    """The symbols of rows of four bytes."""
    return np.ascontiguousarray(encoded).view(SYMBOL).reshape(-1).astype(np.int64)
