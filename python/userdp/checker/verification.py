"""What checking a report again finds: one of four answers, which are not one yes or no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

Finding = Literal["wrong", "consistent", "spot-checked", "established"]

EXPLANATIONS: dict[Finding, str] = {
    "wrong": "the report contradicts itself, or the mechanism",
    "consistent": "the numbers of the report agree with each other. Nothing ties them to a mechanism: "
    "verify(mechanism=...) does",
    "spot-checked": "the numbers of the report agree with each other and, on the datasets that were tried, with the "
    "mechanism. The others were not tried, so this establishes no claim",
    "established": "everything that the claim rests on was computed again from the mechanism, under the assumptions "
    "that the report states",
}


@dataclass(frozen=True)
class Verification:
    """What checking a report again found.

    Attributes
    ----------
    finding : {"wrong", "consistent", "spot-checked", "established"}
        *wrong*: there are problems. *consistent*: the numbers inside the report agree with each other, and no mechanism
        was given. *spot-checked*: the pmfs of some of the datasets that the claim is about were computed again from
        the mechanism, and agree. *established*: those of all of them were.
    problems : tuple of str
        What is wrong; empty otherwise.
    datasets : int
        How many datasets the mechanism was run on.
    pairs : int
        How many pairs of neighbors of the report were decided again, exactly.
    refuted : bool
        Whether the claim is refuted: the mechanism gave two neighbors the pmfs that violate it. A spot check can
        refute a claim, and never establish one.

    Notes
    -----
    It has no truth value, since what is good enough depends on the question.

    Examples
    --------
    >>> Verification("consistent", pairs=4).finding
    'consistent'
    """

    finding: Finding
    problems: tuple[str, ...] = ()
    datasets: int = 0
    pairs: int = 0
    refuted: bool = False

    @property
    def explanation(self) -> str:
        """What the finding means, in a sentence or two."""
        return EXPLANATIONS[self.finding]

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a verification is no yes or no: compare .finding with 'consistent', 'spot-checked' or 'established', or "
            "look at .problems"
        )

    def __str__(self) -> str:
        if self.problems:
            return "\n  - ".join([f"{self.finding}: {self.explanation}", *map(_printable, self.problems)])
        counts = f"{self.pairs:,} pairs of neighbors decided again, {self.datasets:,} datasets run again"
        refuted = "\nThe claim is refuted: the mechanism gives two neighbors pmfs that violate it." * self.refuted
        return f"{self.finding}: {self.explanation}. ({counts}.){refuted}"


def _printable(text: str) -> str:
    """Escape what a terminal could take for a command."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
