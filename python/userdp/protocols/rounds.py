"""Whole rounds in one process, as mechanisms: what the server selects when every user has reported once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from userdp.exact.pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.mechanisms.composed import Sampler, output_distribution
from userdp.protocols.local.protocol import LocalProtocol
from userdp.protocols.shuffle.counts import Mode

if TYPE_CHECKING:
    from userdp import _core


class LocalRound:
    """What the server of a local protocol selects, one of `outputs`, when every user has reported once."""

    def __init__(self, protocol: LocalProtocol, outputs: Sequence[Hashable]) -> None:
        self.protocol = protocol
        self.outputs = outputs

    def _draw(self, source: _core.Source, items: Sequence[Any]) -> Any:
        server = self.protocol.server()
        server.receive_many(self.protocol._reported(items, self.protocol._slots(None), source))
        return server.select()

    def pmf(self, items: Sequence[Any]) -> Pmf:
        """The distribution of what is selected, from all the lists of symbols that the users may send."""

        def program(draw: Sampler) -> Hashable:
            symbols = [draw(self.protocol, item, slot) for slot, item in enumerate(items)]
            encoded = np.concatenate([self.protocol._encoded(symbol) for symbol in symbols])
            counts = self.protocol._no_counts()
            self.protocol._count(counts, encoded, np.arange(len(items)))
            return self.protocol._selected(counts)

        return output_distribution(program, self.outputs)


class ShuffledRound:
    """What the server of a shuffle protocol selects after a round of all users."""

    def __init__(self, protocol: Mode) -> None:
        self.protocol = protocol

    def _draw(self, source: _core.Source, items: Sequence[Any]) -> int:
        return self.protocol._simulated(items, source).select()

    def pmf(self, items: Sequence[Any]) -> Pmf:
        """Refused: see the message."""
        raise BudgetError(
            "the distribution of a selection behind a shuffler has too many paths, and privacy there is about all that "
            "the server receives: read certified_delta and privacy_profile of userdp.protocols.shuffle.Mode instead"
        )
