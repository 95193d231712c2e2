"""The house: which folder may import from which, and what an import costs.

A folder's modules are open to the folders above it, unless their name begins with an underscore. `FLOORS` is the order
(decision 0019). Lazy imports and those for type checkers count like all others.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import userdp

ROOT = Path(userdp.__file__).parent
FLOORS = """
    exceptions exact runtime accounting checker divergence algorithms report audit lddp delstab item_to_user users
    mechanisms selection estimators public_randomness concepts dimensions stability protocols learners distributions
    means optimization planning model_selection datasets demo cli
""".split()  # noqa: SIM905
"""From the ground up. `userdp._core`, the compiled extension, is below all of them; the package's face above."""

Import = tuple[str, str, tuple[str, ...]]
"""The module that imports, the module that is imported, and the names that are taken from it."""


def module_of(path: Path) -> str:
    parts = ("userdp", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in ROOT.rglob("*.py")}


def folder_of(module: str) -> str:
    """The folder or top-level module that a module is in."""
    return module.split(".")[1] if "." in module else ""


def imports() -> Iterator[Import]:
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "userdp":
                        yield module, alias.name, ()
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "userdp":
                source = str(node.module)
                for alias in node.names:
                    whole = f"{source}.{alias.name}"
                    if whole in MODULES or whole == "userdp._core":
                        yield module, whole, ()
                    else:
                        yield module, source, (alias.name,)


def of_folders() -> Iterator[Import]:
    """Imports between folders, but those of the package's face, which shows all of them, and of the compiled core."""
    for module, source, names in imports():
        face = module in ("userdp", "userdp.__main__")
        if not face and source != "userdp._core" and folder_of(module) != folder_of(source):
            yield module, source, names


def test_every_folder_has_a_floor() -> None:
    folders = {folder_of(module) for module in MODULES} - {"", "__main__"}
    assert folders == set(FLOORS)


def test_folders_import_from_lower_floors_only() -> None:
    wrong = [
        (module, source)
        for module, source, _ in of_folders()
        if FLOORS.index(folder_of(source)) >= FLOORS.index(folder_of(module))
    ]
    assert not wrong


def test_nothing_private_is_imported_across_folders() -> None:
    wrong = [
        (module, source, names)
        for module, source, names in of_folders()
        if any(part.startswith("_") for part in (*source.split("."), *names))
    ]
    assert not wrong


def test_the_checker_imports_nothing_of_the_package() -> None:
    assert not [source for module, source, _ in of_folders() if folder_of(module) == "checker"]


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
    assert set(FLOORS) - {"runtime", "checker", "demo", "cli"} <= set(dir(userdp))
