"""Planting mutants in a tree, one after the other, and seeing which tests notice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from mutation.mutants import Mutant, mutated
from mutation.running import pytest_run
from mutation.selecting import Map, Stage, file_of

KILLED = ("killed", "timeout")


def planted(
    tree: Path, mutant: Mutant, stages: list[Stage], slack: float, trusted: Sequence[str] = ()
) -> dict[str, Any]:
    """Plant one mutant, run the stages until a test fails, and take the mutant out again.

    What fails must pass without the mutant; that is not asked of `trusted` tests.
    """
    path = tree / mutant.file
    original = path.read_bytes()
    times = path.stat()
    spent = 0.0
    n_tests = 0
    last: Stage | None = None
    result: dict[str, Any] = {"status": "survived" if stages else "not run by any test", "by": []}
    try:
        path.write_bytes(mutated(original, mutant))
        # Another time than the original's, so that no compiled file of the original is taken for it.
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 10**9 + mutant.start * 10**6))
        for stage in stages:
            outcome = pytest_run(tree, stage.files, stage.tests, seconds=30 + slack * stage.seconds)
            spent += outcome.seconds
            n_tests += len(stage.tests)
            if outcome.code == -1:
                result = {"status": "timeout", "by": stage.files[:3]}
                break
            if outcome.code not in (0, 5):
                result = {"status": "killed", "by": list(outcome.failed[:3])}
                last = stage
                break
    finally:
        path.write_bytes(original)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    known = last and result["by"] and any(named_alike(name, result["by"][0]) for name in trusted)
    if last and not known and not passes(tree, last, result["by"], slack):
        result["status"] = "unclear"
    return {**result, "seconds": round(spent, 2), "tests": n_tests}


def named_alike(chosen: str, test: str) -> bool:
    """Whether a test was chosen by this, its id or what it is called."""
    name = test.split("::")[-1].partition("[")[0]
    return chosen in (test, name, "doctest " + ".".join(name.split(".")[-2:]))


def passes(tree: Path, stage: Stage, failed: list[str], slack: float) -> bool:
    """Whether the tests up to the one that failed pass on the code without the mutant: the failure is the mutant's."""
    same = [place for place, test in enumerate(stage.tests) if failed and named_alike(test, failed[0])]
    tests = stage.tests[: same[0] + 1] if same else stage.tests
    files = sorted({file_of(test) for test in tests}) if all("::" in test for test in tests) else stage.files
    return pytest_run(tree, files, tests, seconds=30 + slack * stage.seconds).code == 0


def plant_all(
    tree: Path,
    mutants: Iterable[Mutant],
    tests: Map,
    kept: Path,
    *,
    cap: float,
    first: float,
    slack: float = 5.0,
    after: Callable[[dict[str, Any]], None] = lambda results: None,
) -> None:
    """Plant the mutants that have no result in `kept` yet, and write each result down at once; `after` gets all.

    A mutant that survived is planted again when there are other tests for it now.
    """
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    for mutant in sorted(mutants, key=lambda mutant: mutant.name in results):
        stages = tests.stages(mutant, cap, first)
        before = results.get(mutant.name)
        same = before and before["tests"] == sum(len(stage.tests) for stage in stages)
        if before and (before["status"] in KILLED or (same and before["status"] != "unclear")):
            continue
        result = planted(tree, mutant, stages, slack)
        results[mutant.name] = {**mutant.as_dict(), "folder": mutant.folder, **result}
        written = kept.with_suffix(".part")
        written.write_text(json.dumps(results, indent=1))
        written.replace(kept)
        after(results)
        by = result["by"][0] if result["by"] else ""
        print(f"{len(results)} {result['status']} {result['seconds']:.1f} s {mutant.name} {by}", flush=True)
