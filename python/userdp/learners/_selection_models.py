"""How the votes of all users become one: selections in the central, the local and the shuffle model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from userdp._numbers import shown
from userdp._pmf import Pmf
from userdp.exceptions import BudgetError
from userdp.learners._privacy import ExactEpsilon
from userdp.learners._program import Draw, Mechanism, law_of
from userdp.protocols import local, shuffle
from userdp.selection import ApproximateSelection, PureSelection

if TYPE_CHECKING:
    from userdp import _core

__all__ = ["LocalRound", "Model", "SelectionModel", "check_model", "selection_model"]

Model: TypeAlias = Literal["central-approx", "central-pure", "local", "shuffle"]
MODELS: tuple[Model, ...] = get_args(Model)

NEED_DELTA = ("central-approx", "shuffle")

IN_PROCESS = "in one process"
"""The name of every simulated round: its messages go nowhere else."""


@dataclass(frozen=True)
class SelectionModel:
    """One draw that selects a common vote.

    Attributes
    ----------
    mechanism : Mechanism
        Private for lists of votes that differ in one.
    argument : callable
        The mechanism's argument, from the votes of all users, one for each.
    vote : callable
        The vote that an outcome of the mechanism stands for, or BOTTOM; by default the outcome.
    """

    mechanism: Mechanism
    argument: Callable[[Sequence[Any]], Any]
    vote: Callable[[Any], Hashable] = lambda outcome: outcome


def check_model(model: Any, delta: Fraction) -> None:
    """Refuse models that do not exist, and deltas that do not fit them.

    Raises
    ------
    ValueError
        Naming what fits.
    """
    if model not in MODELS:
        raise ValueError(f"model must be one of {MODELS}; got {shown(model)}")
    if model in NEED_DELTA and not 0 < delta < 1:
        raise ValueError(
            f"delta must be in (0, 1), ends excluded, for model={model!r}; got {float(delta):g}. The models "
            "'central-pure' and 'local' need no delta"
        )
    if model not in NEED_DELTA and delta:
        raise ValueError(f"delta must be 0 for model={model!r}, which is purely private; got {float(delta):g}")


def selection_model(
    model: Model, *, epsilon: ExactEpsilon, delta: Fraction, n_items: int, n_users: int, default: int
) -> SelectionModel:
    """The selection of one of n_items from the votes of n_users, with the whole of the budget.

    Parameters
    ----------
    model : {"central-approx", "central-pure", "local", "shuffle"}
    epsilon : Fraction or LogRatio
    delta : Fraction
        As `check_model` accepts it.
    n_items, n_users : int
    default : int
        What a vote for none of the items counts as.

    Raises
    ------
    ValueError, BudgetError
        For parameters that the selection refuses.
    """
    if model == "central-approx":
        approximate = ApproximateSelection(epsilon=epsilon, delta=delta, default=default)
        return SelectionModel(approximate, approximate.tally)
    if model == "central-pure":
        pure = PureSelection(epsilon=epsilon, n_items=n_items, default=default)
        return SelectionModel(pure, pure.tally)
    if model == "local":
        parties = local.for_items(
            epsilon=epsilon, n_items=n_items, n_users=n_users, round_id=IN_PROCESS, default=default
        )
        return SelectionModel(LocalRound(parties, range(n_items)), tuple)
    mixed = shuffle.Selection(
        epsilon=epsilon, delta=delta, n_items=n_items, n_users=n_users, round_id=IN_PROCESS, default=default
    )
    return SelectionModel(ShuffledRound(mixed), tuple)


class LocalRound:
    """What the server of a local protocol selects after a round in which every user has reported once.

    Attributes
    ----------
    protocol : local.LocalProtocol
    outputs : sequence of hashable
        All that the server may select.
    """

    def __init__(self, protocol: local.LocalProtocol, outputs: Sequence[Hashable]) -> None:
        self.protocol = protocol
        self.outputs = outputs

    def _draw(self, source: _core.Source, items: Sequence[Any]) -> Any:
        slots = self.protocol._slots(None)
        server = self.protocol.server()
        server.receive_many(self.protocol._reports(self.protocol._values(items, slots), slots, source))
        return server.select()

    def pmf(self, items: Sequence[Any]) -> Pmf:
        """The law of what is selected, from all the lists of symbols that the users may send."""

        def program(draw: Draw) -> Hashable:
            symbols = [draw(self.protocol, item, slot) for slot, item in enumerate(items)]
            encoded = np.concatenate([self.protocol._encoded(symbol) for symbol in symbols])
            counts = self.protocol._no_counts()
            self.protocol._count(counts, encoded, np.arange(len(items)))
            selected: Hashable = self.protocol._selected(counts)
            return selected

        return law_of(program, self.outputs)


class ShuffledRound:
    """What the server of a shuffle protocol selects after a round of all users."""

    def __init__(self, protocol: shuffle.Selection) -> None:
        self.protocol = protocol

    def _draw(self, source: _core.Source, items: Sequence[Any]) -> int:
        selected: int = self.protocol._simulated(items, source).select()
        return selected

    def pmf(self, items: Sequence[Any]) -> Pmf:
        """Refused: see the message."""
        raise BudgetError(
            "the law of a selection behind a shuffler has too many paths, and privacy there is about all that the "
            "server receives: read certified_delta and privacy_profile of userdp.protocols.shuffle.Selection instead"
        )
