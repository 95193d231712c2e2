"""Judges that every cell in every container is read as the reference says, and that types are refused as it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oracle.reading import declared, read
from support.reading_adapter import KINDS, LARGEST, OF_REFERENCE, Outcome, prepared, read_values, watched
from support.reading_containers import Column
from support.reading_findings import (
    ACCEPTED,
    FAILED,
    INVENTED,
    LOST,
    PEOPLE,
    PRINTED,
    REFUSED,
    VALUE,
    WARNED,
    Findings,
)


def expected_values(column: Column, kind: str) -> list[Any]:
    """What the reference reads of each row."""
    found = [read(OF_REFERENCE.get(kind, kind), cell, column.digits) for cell in column.cells]
    if kind == "integer":
        return [None if one is None else max(-LARGEST, min(one, LARGEST)) for one in found]
    if kind == "category":
        # A list of categories may not have two values that are one to doubles.
        listed: dict[Any, str] = {}
        for one in found:
            if one is not None:
                listed.setdefault(read("text", one), one)
        return [one if one in listed.values() else None for one in found]
    return found


def to_be_refused(column: Column, kind: str) -> bool:
    """Whether a declared type of a part can hold nothing of the kind."""
    return any(not declared(family, OF_REFERENCE.get(kind, kind)) for family in column.families)


def judge(column: Column, findings: Findings, kinds: Sequence[str] = KINDS) -> None:
    """Read a column as all kinds, and compare."""
    for kind in kinds:
        _judge(column, kind, findings)


def _judge(column: Column, kind: str, findings: Findings) -> None:
    where, refused = column.container, to_be_refused(column, kind)
    expected = expected_values(column, kind)
    frame, make = prepared(column.frame, kind, expected)
    made = watched(make)
    findings.compare(where, kind, "types refused or read")
    _seen(made, column, kind, findings)
    if made.raised or refused:
        is_refusal = made.raised.startswith(("TypeError", "ValueError"))
        if bool(made.raised) != refused or (refused and not is_refusal):
            what = ACCEPTED if not made.raised else FAILED if refused or not is_refusal else REFUSED
            findings.add(what, where, kind, f"{column}: {made.raised}")
        return
    outcome = watched(lambda: read_values(frame, made.result, kind, expected))
    findings.compare(where, kind, "cells", len(expected))
    _seen(outcome, column, kind, findings)
    if outcome.raised:
        findings.add(FAILED, where, kind, f"{column}: {outcome.raised}")
        return
    for place, (own, got) in enumerate(zip(expected, outcome.result, strict=True)):
        if type(own) is not type(got) or own != got:
            what = INVENTED if own is None else LOST if got is None else PEOPLE if kind == "id" else VALUE
            cell = f"{column}, row {place}: {_named(column.cells[place])}: {_named(own)} expected, {_named(got)} read"
            findings.add(what, where, kind, cell)


def _named(value: Any) -> str:
    try:
        return repr(value)[:90]
    except BaseException as error:
        return f"a {type(value).__name__} that answers {error}"


def _seen(outcome: Outcome, column: Column, kind: str, findings: Findings) -> None:
    if outcome.warned:
        findings.add(WARNED, column.container, kind, f"{column}: {outcome.warned[0]}")
    if outcome.printed:
        findings.add(PRINTED, column.container, kind, f"{column}: {outcome.printed[:200]!r}")
