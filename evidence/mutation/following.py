"""The mutants of an earlier tree, planted in a later one: no test may have lost what it noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mutation.comparing import Tests, followed, missing, stages_after
from mutation.mutants import Mutant
from mutation.planting import KILLED, planted
from mutation.selecting import Map

FIELDS = tuple(Mutant.__dataclass_fields__)


def mutant_of(result: dict[str, Any]) -> Mutant:
    """The mutant that a result is about."""
    return Mutant(**{name: result[name] for name in FIELDS})


def plant_again(
    before: dict[str, Any],
    tree: Path,
    tests: Map,
    kept: Path,
    *,
    cap: float,
    only_killed: bool = False,
    slack: float = 6.0,
) -> None:
    """Plant in `tree` what `before` says of an earlier tree; results that are in `kept` stay."""
    mutants = [mutant_of(result) for result in before.values()]
    places = followed(mutants, tree)
    there = Tests(tree)
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for mutant in sorted(mutants, key=lambda mutant: before[mutant.name]["status"] not in KILLED):
        result = before[mutant.name]
        if mutant.name in results or (only_killed and result["status"] not in KILLED):
            continue
        place = places[mutant.name]
        if place is None:
            after: dict[str, Any] = {"status": "not found", "by": []}
        else:
            stages = stages_after(mutant, result, tests, there, cap)
            after = {
                **planted(tree, place, stages, slack, stages[0].tests if stages else ()),
                "file": place.file,
                "line": place.line,
                "text": place.text,
            }
        after["was"] = result["status"]
        after["folder"] = mutant.folder
        after["missing"] = missing(result, there)
        results[mutant.name] = after
        written = kept.with_suffix(".part")
        written.write_text(json.dumps(results, indent=1))
        written.replace(kept)
        print(f"{len(results)} {result['status']} -> {after['status']} {mutant.name} {after['by'][:1]}", flush=True)
