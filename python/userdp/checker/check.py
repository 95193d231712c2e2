"""Check a report again, with nothing but the standard library, and say how much that establishes.

The modules of this folder share no code with the rest of the package, compiled or not, so that a mistake there cannot
hide here. They follow docs/report-format.md; every decision is exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from userdp.checker import (
    audits,
    certificates,
    claims,
    compositions,
    guesses,
    optimality,
    sampler_laws,
    sensitivity,
    work,
)
from userdp.checker.running import KINDS, Asked, Checked, Declared, Finding, Mechanism
from userdp.checker.values import Problem, canonical_digest, need, parsed

__all__ = [
    "EXPLANATIONS",
    "Declared",
    "Finding",
    "Mechanism",
    "Verification",
    "check",
    "format_of",
    "kind_of",
    "read_form",
]

FORMAT = 3


# Each registers what it checks in KINDS.
CHECKERS = (audits, certificates, claims, compositions, guesses, optimality, sampler_laws, sensitivity)
MALFORMED = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What reading a text that is no report may raise."""

EXPLANATIONS: dict[Finding, str] = {
    "wrong": "the report contradicts itself, the mechanism or the file for Coq",
    "refused": "the report was not checked, and nothing is said about whether it is right",
    "consistent": "the numbers of the report agree with each other. Nothing ties them to a mechanism: "
    "verify(mechanism=...) does",
    "spot-checked": "the numbers of the report agree with each other and, on the datasets that were tried, with the "
    "mechanism. The others were not tried, so this establishes no claim",
    "established": "everything that the claim rests on was computed again, from the mechanism, the listed releases "
    "or the table, under the assumptions that the report states",
}


@dataclass(frozen=True)
class Verification:
    """What checking a report again found.

    Attributes
    ----------
    finding : {"wrong", "refused", "consistent", "spot-checked", "established"}
        *wrong*: there are problems. *refused*: checking takes longer than is allowed, and nothing is said about whether
        the report is right. *consistent*: the numbers inside the report agree with each
        other, and no mechanism was given. *spot-checked*: the pmfs of some of the datasets that the claim is about were
        computed again from the mechanism, and agree. *established*: those of all of them were; of a composition, an
        optimum or a certificate of a table, the whole of it was.
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
        counts = f" ({self.pairs:,} pairs of neighbors decided again, {self.datasets:,} datasets run again.)"
        refuted = "\nThe claim is refuted: what the mechanism gives on two neighbors violates it." * self.refuted
        return f"{self.finding}: {self.explanation}.{counts if self.pairs or self.datasets else ''}{refuted}"


def _printable(text: str) -> str:
    """Escape what a terminal could take for a command."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def format_of(kind: str) -> str:
    """What the field `format` says of a kind."""
    return f"userdp-{kind}/{FORMAT}"


def kind_of(report: Any) -> str:
    """The kind of report that a JSON object says it is."""
    stated = report.get("format") if isinstance(report, dict) else None
    match = re.fullmatch(r"userdp-([a-z]+)/([0-9]{1,9})", stated) if isinstance(stated, str) else None
    need(match is not None and match[1] in KINDS, "no report: it has no format that is known")
    assert match is not None
    reason = "whose keys are spelled in another way" if match[2] == "2" else "which does not say what it rests on"
    need(match[2] not in ("1", "2"), f"it is of format {match[2]}, {reason}; audit the mechanism again")
    need(match[2] == str(FORMAT), f"unknown format {stated!r:.40}")
    return match[1]


def read(text: str) -> dict[str, Any]:
    """The report that a text holds; `Problem` where there is none, and `work.TooMuch` where that is not soon known."""
    try:
        with work.at_most():
            report = parsed(text)
            read_form(report)
    except work.TooMuch:
        raise
    except MALFORMED as error:
        raise Problem(f"not a userdp report: {type(error).__name__}: {error}") from None
    return dict(report)


def holds_of(report: Mapping[str, Any]) -> bool | None:
    """The verdict of a report, if its kind has one; a certificate says that what it claims holds."""
    kind = kind_of(report)
    if KINDS[kind].certain:
        return True
    holds = (report["result"] if kind == "audit" else report).get("holds")
    return holds if isinstance(holds, bool) else None


def said_by(report: Mapping[str, Any], before: str = "") -> list[str]:
    """Lines of what a report says: its numbers and words, and how many entries longer parts have."""
    lines = []
    for name, value in report.items():
        if isinstance(value, dict) and set(value) == {"ratio", "exponent"}:
            logarithm = [] if value["ratio"] == "1" else [f"ln({value['ratio']})"]
            value = " + ".join(logarithm + [str(value["exponent"])] * (value["exponent"] != "0")) or "0"
        if isinstance(value, dict) and before == "":
            lines += said_by(value, f"{name}.")
            continue
        if isinstance(value, (dict, list)):
            value = f"{len(value)} entries"
        elif isinstance(value, str) and re.match("0x[01][.]", value):
            value = float.fromhex(value)
        text = _printable(str(value))
        lines.append(f"  {before}{name}: {text if len(text) <= 80 else text[:77] + '...'}")
    return lines


def read_form(report: Any) -> str:
    """Refuse what has not the form of a report; the kind of what has. Whether numbers are right is not looked at."""
    kind = kind_of(report)
    expected = KINDS[kind].fields | {"format", "userdp_version", "digest"}
    expected |= {"sample"} if kind == "audit" and report.get("verification") == "sampled" else set()
    need(set(report) == expected, f"fields missing or unknown: {sorted(set(report) ^ expected)}")
    need(all(isinstance(report[name], str) for name in ("userdp_version", "digest")), "names must be strings")
    if kind == "audit":
        audits.read_form(report)
    return kind


def check(
    report: Any,
    mechanism_pmf: Mechanism | None = None,
    declared: Declared | None = None,
    dataset: tuple[Any, ...] | None = None,
    problems: Sequence[str] = (),
) -> Verification:
    """Check a report as docs/report-format.md says, and say how much that establishes.

    Parameters
    ----------
    report : dict
        The parsed JSON. Anything else, or anything malformed, is a problem and never an exception.
    mechanism_pmf : callable, optional
        Gives the exact pmf of a dataset; every dataset that the report is about is then given to it again.
    declared : Declared, optional
        What the mechanism declares; the report's engine and pmf_error must not claim more. Without it the
        mechanism is taken to be what the engine assumes.
    dataset : tuple, optional
        For checks of deletions: the users, which such a report does not hold.
    problems : sequence of str
        What is wrong already.

    Returns
    -------
    Verification
        "wrong" with the problems that were found, and otherwise how much was recomputed.
    """
    said = list(problems)
    try:
        with work.at_most():
            found = _checked(report, Asked(mechanism_pmf, declared, dataset, said))
    except work.TooMuch as problem:
        if not said:
            return Verification("refused", (str(problem),))
    except Problem as problem:
        said.append(str(problem))
    except MALFORMED as error:
        said.append(f"the report is malformed: {type(error).__name__}: {error}")
    return Verification("wrong", tuple(said)) if said else Verification(found[0], (), *found[1:])


def _checked(report: Any, asked: Asked) -> Checked:
    kind = read_form(report)
    content = {name: value for name, value in report.items() if name != "digest"}
    if report["digest"] != "sha256:" + canonical_digest(content):
        asked.problems.append("the digest does not match the content")
    return KINDS[kind].check(report, asked)
