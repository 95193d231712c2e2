"""A report in words, for terminals and pages."""

from __future__ import annotations

import reprlib
from fractions import Fraction
from typing import TYPE_CHECKING

from userdp._encoding import fraction_text, printable
from userdp._numbers import Bounds, PrivacyLevel

if TYPE_CHECKING:
    from userdp.report import AuditReport

__all__ = ["facts", "level_text", "number_text", "summarize", "verdict", "witness_facts"]

MANY_USERS = 6
"""Datasets with more users are not written out."""

_short = reprlib.Repr()
_short.maxtuple = _short.maxlist = _short.maxset = _short.maxfrozenset = 12
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 4


def number_text(value: Fraction) -> str:
    """Write a number so that short exact values, floats and other fractions can be told apart."""
    try:
        nearest = float(value)
    except OverflowError:
        return "more than any float"
    decimal, text = f"{nearest:.6g}", fraction_text(value)
    if Fraction(decimal) == value:
        return decimal
    if Fraction(nearest) == value:
        return f"{nearest!r} (float)"
    return f"{text} (about {decimal})" if len(text) <= 24 else f"about {decimal}"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def level_text(level: PrivacyLevel) -> str:
    """Write epsilon, exactly when that is short."""
    if level.ratio == 1:
        return number_text(level.exponent)
    log = f"ln({fraction_text(level.ratio)})" + (f" + {fraction_text(level.exponent)}" if level.exponent else "")
    return f"{log if len(log) <= 40 else 'ln(...)'} (about {float(level):.6g})"


def _bounds_text(bounds: Bounds) -> str:
    same = bounds.lower == bounds.upper
    return f"{bounds.lower!r}" if same else f"between {bounds.lower!r} and {bounds.upper!r}"


def verdict(report: AuditReport) -> tuple[str, str]:
    """Return one word and one sentence for the verdict."""
    claim = f"at epsilon = {level_text(report.epsilon_level)}, delta = {number_text(report.delta)}"
    if report.holds is None:
        error = number_text(report.pmf_error)
        return "UNDETERMINED", f"The pmfs are known only within {error}, too little to decide {claim}."
    if report.holds:
        return "HOLDS", f"Every audited pair of neighbours is indistinguishable {claim}."
    return "VIOLATED", f"Some audited neighbours can be told apart {claim}."


def _scope(report: AuditReport) -> str:
    structure = report.structure
    if report.kind == "pair":
        return "one pair of datasets"
    if report.kind == "dataset":
        users, records = _plural(len(structure["dataset"]), "user"), _plural(len(structure["records"]), "record")
        return f"one dataset of {users}, against every replacement of a user by one of {records}"
    users, examples = _plural(structure["n_users"], "user"), _plural(structure["n_examples"], "example")
    change = "one example of one user" if report.kind == "item-level" else "one user"
    change = f"replacing {change}" if report.neighbours == "replace" else "adding or removing one user"
    return (
        f"all datasets of {users} with {examples} each "
        f"from {_plural(len(structure['universe']), 'value')}; neighbours by {change}"
    )


def facts(report: AuditReport) -> list[tuple[str, str]]:
    """Return what the audit asked and found, as labels and texts."""
    least = report.exp_epsilon
    no_finite = "infinite: no epsilon reaches this delta"
    lines = [
        ("Audited", _scope(report)),
        ("Claim", f"epsilon = {level_text(report.epsilon_level)}, delta = {number_text(report.delta)}"),
        ("Worst delta at epsilon", _bounds_text(report.worst_delta)),
        (
            "Epsilon at delta",
            no_finite if least is None else f"{_bounds_text(report.epsilon)}, ln({number_text(least)})",
        ),
        ("Datasets", f"{report.datasets:,}"),
        ("Pairs of neighbours", f"{report.pairs:,} ({_plural(len(report.pmf_pairs), 'distinct pair')} of pmfs)"),
        ("Engine", report.engine),
    ]
    if report.verification == "sampled":
        lines[5] = (
            "Pairs of neighbours",
            f"{report.pairs:,} (a written report holds a drawn sample of them, which cannot establish the claim)",
        )
    if report.pmf_error:
        lines.append(("Relative error of the pmfs", number_text(report.pmf_error)))
    return [(label, printable(text)) for label, text in lines]


def witness_facts(report: AuditReport) -> list[tuple[str, str]]:
    """Return the witness as labels and texts; for large datasets only the user who changes."""
    return [(label, printable(text)) for label, text in _witness_lines(report)]


def _witness_lines(report: AuditReport) -> list[tuple[str, str]]:
    witness = report.witness
    if witness is None:
        return [("Witness", "none: all neighbours have equal output distributions")]
    if report.worst_delta.upper == 0:
        return [("Witness", "none: no event is more than e^epsilon times as likely on any neighbour")]
    event = ", ".join(_short.repr(report.outputs[o]) for o in witness.event_indices) or "(empty)"
    lines = [("Event", event)]
    if witness.changed_user is not None and len(witness.x) == len(witness.x2):
        position = witness.changed_user
        lines.append(("Changed user", f"position {position} of {len(witness.x)}"))
        if report.kind == "dataset" or len(witness.x) > MANY_USERS:
            lines.append(("More likely with", _short.repr(witness.x[position])))
            lines.append(("Less likely with", _short.repr(witness.x2[position])))
            return lines
    lines.append(("More likely on", _short.repr(witness.x)))
    lines.append(("Less likely on", _short.repr(witness.x2)))
    return lines


def summarize(report: AuditReport) -> str:
    """Return the whole report as lines of plain text."""
    word, sentence = verdict(report)
    lines = [f"{printable(report.mechanism)}: {word}", f"  {sentence}"]
    rows = [*facts(report), *witness_facts(report)]
    width = max(len(label) for label, _ in rows)
    return "\n".join(lines + [f"  {label:<{width}}  {text}" for label, text in rows])
