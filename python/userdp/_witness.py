"""Parts of an audit report: the witness of the worst divergence, and the outcome of checking a report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from userdp import _spaces
from userdp._encoding import encode

__all__ = ["Verification", "Witness"]


@dataclass(frozen=True)
class Witness:
    """Neighbouring datasets and an event that attain the worst divergence; unpacks as ``x, x2, event``.

    Attributes
    ----------
    x, x2 : tuple
        The datasets: P(event) - e^epsilon P2(event) is the worst divergence.
    event : frozenset
        Outputs.
    ranks : tuple of int
        Ranks of x and x2 among the audited datasets.
    event_indices : tuple of int
        Positions of the event's outputs, sorted.
    changed_user : int or None
        Position of the user whose record differs, when users have positions.
    """

    x: tuple[Any, ...]
    x2: tuple[Any, ...]
    event: frozenset[Any]
    ranks: tuple[int, int]
    event_indices: tuple[int, ...]
    changed_user: int | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.x, self.x2, self.event))

    @classmethod
    def from_ranks(
        cls,
        question: Mapping[str, Any],
        structure: Mapping[str, Any],
        outputs: tuple[Any, ...],
        ranks: tuple[int, int],
        event_indices: Iterable[int],
    ) -> Witness:
        """Build the datasets of two ranks.

        Parameters
        ----------
        question : mapping
            The encoded question, as in the report format.
        structure : mapping
            The same structure holding the objects themselves.
        outputs : tuple
            The outputs themselves.
        ranks, event_indices
            As stored in the witness.
        """
        space = _spaces.space_of(question)
        if not all(0 <= rank < space.datasets for rank in ranks):
            raise ValueError(f"witness ranks {ranks} are not ranks of the {space.datasets} datasets")
        x, x2 = (space.dataset(rank, structure) for rank in ranks)
        indices = tuple(sorted(event_indices))
        if indices and not 0 <= indices[0] <= indices[-1] < len(outputs):
            raise ValueError(f"witness event {indices} is not a set of output positions")
        changed = None
        if question["kind"] == "dataset":
            changed = structure["replaceable"][(max(ranks) - 1) // len(structure["records"])]
        elif question["engine"] == "labelled" and len(x) == len(x2):
            differ = [i for i, (user, user2) in enumerate(zip(x, x2, strict=True)) if encode(user) != encode(user2)]
            changed = differ[0] if len(differ) == 1 else None
        return cls(x, x2, frozenset(outputs[o] for o in indices), ranks, indices, changed)


@dataclass(frozen=True)
class Verification:
    """What checking a report again found; true when nothing is wrong."""

    ok: bool
    problems: tuple[str, ...]
    checked_pairs: int
    mode: str

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        scope = "all" if self.mode == "complete" else "a drawn sample of"
        if self.ok:
            return f"verified: {scope} {self.checked_pairs} pairs of neighbours decided again, exactly"
        return "\n  - ".join(["NOT verified:", *self.problems])
