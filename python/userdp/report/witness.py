"""Parts of an audit report: its structure and witness, and what a mechanism confirms of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from userdp.algorithms.finite import form_of, relative_error
from userdp.checker import check as checker
from userdp.checker import spaces, values
from userdp.exact.encoding import encode
from userdp.exact.pmf import Pmf, aligned, fractions_of, masses_of


class Structure(Mapping[str, Any]):
    """A read-only mapping."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = dict(parts)

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return repr(self._parts)


@dataclass(frozen=True)
class Witness:
    """Neighboring datasets and an event that attain the worst divergence; unpacks as ``x, x2, event``.

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
        held: int | None = None,
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
        held : int, optional
            The number of datasets whose pmfs the report holds; more are not enumerated.
        """
        space = spaces.space_of(question, held)
        a, b = (values.count(rank, "a witness rank") for rank in ranks)
        if max(b, a) not in space.above(min(a, b)):
            raise ValueError(f"witness ranks {ranks} are not neighbors among the {space.datasets} datasets")
        x, x2 = space.witness(a, b, structure)
        indices = tuple(sorted(event_indices))
        if indices and not 0 <= indices[0] <= indices[-1] < len(outputs):
            raise ValueError(f"witness event {indices} is not a set of output positions")
        changed = None
        if question["kind"] == "dataset":
            changed = structure["replaceable"][(max(ranks) - 1) // len(structure["records"])]
        elif len(x) == len(x2):
            both = enumerate(zip(x, x2, strict=True))
            differ = [place for place, (user, user2) in both if encode(user) != encode(user2)]
            changed = differ[0] if len(differ) == 1 else None
        return cls(x, x2, frozenset(outputs[o] for o in indices), ranks, indices, changed)


def confirmed_by(mechanism: Any, outputs: tuple[Any, ...]) -> tuple[checker.Mechanism, checker.Declared, list[str]]:
    """What the checker needs of a mechanism, and the problems seen already.

    Parameters
    ----------
    mechanism : finite algorithm or callable
    outputs : tuple
        The outputs that the report states.

    Raises
    ------
    TypeError
        For what is no mechanism.
    """
    problems, error = [], Fraction(0)
    try:
        own, pmf = getattr(mechanism, "outputs", None), getattr(mechanism, "pmf", mechanism)
        stated, form = getattr(mechanism, "pmf_error", 0), form_of(mechanism)
        order = outputs if own is None or isinstance(mechanism, type) else tuple(own)
        code = encode(order)
    except Exception as wrong:
        raise TypeError(f"mechanism: what it declares cannot be read: {type(wrong).__name__}: {wrong}") from wrong
    if isinstance(mechanism, type) or not callable(pmf):
        kind = f"the class {mechanism.__name__}" if isinstance(mechanism, type) else type(mechanism).__name__
        raise TypeError(
            "mechanism must be a FiniteAlgorithm, with .outputs and .pmf(dataset), or a function from datasets to "
            f"pmfs; got {kind}"
        )
    if code != encode(outputs):
        problems.append("the mechanism has other outputs than the report states")
    try:
        error = relative_error(stated)
    except (TypeError, ValueError) as wrong:
        problems.append(f"the mechanism's pmf_error is no relative error: {wrong}")
    declared = checker.Declared(
        symmetric=form != "labeled",
        statistic_of=mechanism.statistic_of if form == "additive" else None,
        pmf_error=error,
        by_construction=form in ("additive", "score"),
    )
    return _exact_pmf(pmf, order), declared, problems


def _exact_pmf(pmf: Callable[[tuple[Any, ...]], Any], outputs: tuple[Any, ...]) -> checker.Mechanism:
    """Read whatever a finite algorithm returns as a pmf, exactly, in the order of the outputs, as audits do."""

    def masses(dataset: tuple[Any, ...]) -> list[Fraction]:
        result = pmf(dataset)
        if isinstance(result, Pmf):
            result = aligned(result, outputs)
        if hasattr(result, "fractions"):
            result = list(result.fractions())
        return list(fractions_of(masses_of(result, "the pmf")))

    return masses
