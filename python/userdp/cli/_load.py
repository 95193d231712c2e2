"""What users name on the command line: algorithms, and files of people's data."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def load_mechanism(target: str) -> Any:
    """Import the object that module:name or file.py:name names."""
    source, separator, name = target.rpartition(":")
    if not separator or not source or not name:
        raise ValueError(f"mechanism must be module:name or path/to/file.py:name; got {target!r}")
    try:
        module = _import_file(Path(source)) if source.endswith(".py") else _import_module(source)
    except (Exception, SystemExit) as error:
        raise ValueError(f"mechanism: importing {source} failed: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if found is None:
        raise ValueError(f"mechanism: {source} has no {name!r}")
    return found


def _import_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError("it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def read_text(path: Path) -> str:
    """A file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from None


def parsed_json(text: str, name: str, *, decimals: Callable[[str], Any] | None = None) -> Any:
    """What JSON holds, its numbers as `decimals` reads them; what is no JSON is refused by its name."""
    try:
        return json.loads(text, parse_float=decimals, parse_int=decimals)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from None


def tuples(value: Any) -> Any:
    """JSON lists as tuples, since examples must be hashable."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def read_users(path: Path) -> Any:
    """The users of a JSON file."""
    users = tuples(parsed_json(read_text(path), str(path)))
    if not isinstance(users, tuple):
        raise ValueError(f"{path}: expected a JSON list of users")
    return users
