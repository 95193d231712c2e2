"""The same mutants in a later tree: where each one is now, and which of its tests are there."""

from __future__ import annotations

import ast
import difflib
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from mutation.mutants import Mutant, all_mutants
from mutation.selecting import Map, Stage

ALIKE = 0.72
"""How alike a place must be to count as the same, from 0 to 1."""


def followed(before: list[Mutant], tree: Path) -> dict[str, Mutant | None]:
    """For each mutant by name, the one of `tree` with the same operator at the place most like its own, or None.

    A place is a statement with the expression in it and the function around. No place is taken twice.
    """
    folders = tuple(sorted(path.name for path in (tree / "python" / "userdp").iterdir() if path.is_dir()))
    later = [mutant for mutants in all_mutants(tree, folders).values() for mutant in mutants]
    exact = {_identity(mutant): mutant for mutant in later}
    found = {mutant.name: exact[_identity(mutant)] for mutant in before if _identity(mutant) in exact}
    taken = {mutant.name for mutant in found.values()}
    by_operator: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in later:
        if mutant.name not in taken:
            by_operator[mutant.operator].append(mutant)
    pairs: list[tuple[float, str, Mutant]] = []
    for mutant in before:
        for other in by_operator[mutant.operator] if mutant.name not in found else ():
            if not _hopeless(mutant, other) and (alike := _likeness(mutant, other)) >= ALIKE:
                pairs.append((alike, mutant.name, other))
    pairs.sort(key=lambda pair: (-pair[0], pair[1], pair[2].name))
    for _, name, other in pairs:
        if name not in found and other.name not in taken:
            found[name] = other
            taken.add(other.name)
    return {mutant.name: found.get(mutant.name) for mutant in before}


def _identity(mutant: Mutant) -> tuple[str, ...]:
    """What a mutant that has not changed keeps, whatever file it is in."""
    return mutant.function, mutant.operator, mutant.text, mutant.statement, str(mutant.ordinal)


def _hopeless(one: Mutant, other: Mutant) -> bool:
    """Whether two places have too little in common to be compared at length."""
    if one.function.split(".")[-1] == other.function.split(".")[-1]:
        return False
    return one.folder != other.folder or _ratio(one.text, other.text) < 0.6


def _likeness(one: Mutant, other: Mutant) -> float:
    """How alike two places are."""
    parts = (
        (0.45, _ratio(one.statement, other.statement)),
        (0.25, _ratio(one.text, other.text)),
        (0.15, _ratio(one.function.split(".")[-1], other.function.split(".")[-1])),
        (0.05, _ratio(one.function, other.function)),
        (0.06, float(one.folder == other.folder)),
        (0.04, float(one.ordinal == other.ordinal)),
    )
    return sum(weight * value for weight, value in parts)


def _ratio(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1."""
    if one == other:
        return 1.0
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() > 0.6 else 0.0


class Test(NamedTuple):
    """A test as it is called: the function or the documented name, and the parameters in brackets."""

    function: str
    parameters: str


def called(test: str) -> Test:
    """What a test is called, whatever file it is in."""
    file, _, name = test.partition("::")
    function, _, parameters = name.partition("[")
    if file.startswith("python/"):
        return Test("doctest " + ".".join(function.split(".")[-2:]), "")
    return Test(function, parameters.rstrip("]"))


class Tests:
    """The test functions of a tree, found by reading its files."""

    def __init__(self, tree: Path) -> None:
        self.files: dict[str, list[str]] = defaultdict(list)
        self.documented: dict[str, list[str]] = defaultdict(list)
        for path in sorted((tree / "tests").rglob("test_*.py")):
            for name in re.findall(r"^(?:    )?def (test_\w+)", path.read_text(), re.MULTILINE):
                self.files[name].append(str(path.relative_to(tree)))
        for path in sorted((tree / "python").rglob("*.py")):
            if ">>> " not in path.read_text():
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and ">>> " in (ast.get_docstring(node) or ""):
                    self.documented[node.name].append(str(path.relative_to(tree)))

    def files_of(self, test: Test) -> list[str]:
        """The files that may have the test."""
        if test.function.startswith("doctest "):
            return self.documented.get(test.function.split(".")[-1], [])
        return self.files.get(self.name_of(test.function), [])

    def name_of(self, function: str) -> str:
        """What a test function is called here: as it was, or as the name most like it."""
        if function in self.files or function.startswith("doctest "):
            return function
        return next(iter(difflib.get_close_matches(function, self.files, 1, 0.75)), function)


def stages_after(mutant: Mutant, result: dict[str, Any], tests: Map, there: Tests, cap: float) -> list[Stage]:
    """The tests of a mutant, as they are called in the later tree: the one that killed it before, then the others.

    A stage's tests are names without files here, and `Failures` takes them so.
    """
    stages = []
    for name in result["by"][:1]:
        if "::" in name:
            test = called(name)
            stages.append(Stage(there.files_of(test), [there.name_of(test.function)], tests.seconds.get(name, 1.0)))
    for stage in tests.stages(mutant, cap, 8.0):
        names = list(dict.fromkeys(there.name_of(called(name).function) for name in stage.tests))
        files = sorted({file for name in stage.tests for file in there.files_of(called(name))})
        stages.append(Stage(files, names, 2 * stage.seconds))
    return [stage for stage in stages if stage.files]


def missing(result: dict[str, Any], there: Tests) -> list[str]:
    """The tests that killed a mutant before and are not in the later tree under the same name."""
    return [name for name in result["by"] if "::" in name and not there.files_of(called(name))]
