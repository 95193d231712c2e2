"""The house: which folder may import from which, and what an import costs.

A folder's modules are open to the folders above it, unless their name begins with an underscore. `FLOORS` is the order
(decision 0019), in evidence/architecture.py, which also reads the imports and draws docs/architecture.md. Lazy imports
and those for type checkers count like all others.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from functools import cache

import pytest

import userdp
from architecture import (
    FLOORS,
    MODULES,
    PAGE,
    PICTURE,
    circles,
    folder_of,
    graph_of_files,
    graph_of_folders,
    of_folders,
    picture,
    rewritten,
)


def test_every_folder_has_a_floor() -> None:
    folders = {folder_of(module) for module in MODULES} - {"", "__main__"}
    assert folders == set(FLOORS)


def test_folders_import_from_lower_floors_only() -> None:
    wrong = [
        (module, source)
        for module, source, *_ in of_folders()
        if FLOORS.index(folder_of(source)) >= FLOORS.index(folder_of(module))
    ]
    assert not wrong


def test_nothing_private_is_imported_across_folders() -> None:
    wrong = [
        (module, source, names)
        for module, source, names, _ in of_folders()
        if any(part.startswith("_") for part in (*source.split("."), *names))
    ]
    assert not wrong


def test_private_attributes_are_read_in_their_own_folder() -> None:
    """`thing._name` is of the folder that defines `_name`.

    A folder defines what it assigns, and the methods that its classes and protocols have. Within a class the names of
    its base classes are its own, wherever these stand: they are what a base asks of a subclass, and offers it. Names
    that the package defines nowhere are those of other libraries.
    """
    trees = {module: ast.parse(path.read_text()) for module, path in MODULES.items()}
    classes = defaultdict(list)
    for kind in (node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        classes[kind.name].append(kind)
    names = {module: names_of(tree) for module, tree in trees.items()}
    own = defaultdict(set)
    for module, (_, defined) in names.items():
        own[folder_of(module)] |= defined
    ours = set[str]().union(*own.values()) - OF_OTHERS

    @cache
    def of_class(kind: ast.ClassDef) -> set[str]:
        bases = {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in kind.bases} - {kind.name}
        return names_of(kind)[1].union(*(of_class(one) for base in bases for one in classes[base]))

    wrong = []
    for module, (read, _) in names.items():
        suspects = [node for node in read if node.attr in ours - own[folder_of(module)]]
        for kind in (node for node in ast.walk(trees[module]) if suspects and isinstance(node, ast.ClassDef)):
            within = set(ast.walk(kind))
            suspects = [node for node in suspects if node not in within or node.attr not in of_class(kind)]
        wrong += [f"{module}:{node.lineno} {ast.unparse(node)}" for node in suspects]
    assert not wrong


OF_OTHERS = {"_replace", "_symmetric"}
"""Private names of others that are names of the package, too: of named tuples, of dp_accounting's distributions."""


def names_of(tree: ast.AST) -> tuple[list[ast.Attribute], set[str]]:
    """The private attributes that are read, and the private names that are defined or assigned."""
    read, defined = [], set()
    for node in ast.walk(tree):
        name = getattr(node, "attr", None) or getattr(node, "id", None) or getattr(node, "name", None) or ""
        if not name.startswith("_") or name.startswith("__"):
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            read.append(node)
        elif not isinstance(node, ast.Name) or isinstance(node.ctx, ast.Store):
            defined.add(name)
    return read, defined


def test_the_checker_imports_nothing_of_the_package() -> None:
    assert not [source for module, source, *_ in of_folders() if folder_of(module) == "checker"]


def test_no_circle_of_folders() -> None:
    assert not circles(graph_of_folders())


def test_no_circle_of_files() -> None:
    """Also by imports that are made later or for type checkers alone."""
    assert not circles(graph_of_files(lazy=True))


def test_the_picture_is_of_the_imports() -> None:
    assert PICTURE.read_text() == picture(), "run `make architecture`"


def test_the_page_has_the_folders_and_ways_of_the_code() -> None:
    pytest.importorskip("sklearn")
    page = PAGE.read_text()
    assert page == rewritten(page), "run `make architecture`"


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_loads_next_to_nothing() -> None:
    loaded = fresh("import sys; before = set(sys.modules); import userdp; print(*sorted(set(sys.modules) - before))")
    heavy = {name.split(".")[0] for name in loaded.split()} & {
        "numpy",
        "sklearn",
        "narwhals",
        "matplotlib",
        "fractions",
    }
    assert not heavy
    assert "userdp._core" not in loaded.split()


def test_nothing_is_silenced_for_the_whole_process() -> None:
    """Filters of warnings belong to all threads: what is private must not be able to warn in the first place."""
    words = ("catch_warnings", "simplefilter", "filterwarnings", "np.seterr", "numpy.seterr")
    assert not [path for path in MODULES.values() if any(word in path.read_text() for word in words)]


def test_the_face_lists_what_it_has() -> None:
    fresh("import userdp; [getattr(userdp, name) for name in dir(userdp)]")
    assert set(FLOORS) - {"runtime", "durable_log", "display", "checker", "demo", "cli", "pytest_plugin"} <= set(
        dir(userdp)
    )
