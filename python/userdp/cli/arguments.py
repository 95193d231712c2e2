"""What the words of the command line mean: options, numbers, files and mechanisms, with errors that name the option."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
PMF_SUFFIXES = (".json", ".csv", ".txt", ".npy")


class UsageError(Exception):
    """What was typed is not understood."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors begin with the option and come back as an exception.

    Attributes
    ----------
    mixed : bool
        Whether operands may stand anywhere among the options; otherwise several stand together.
    """

    mixed = False

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **{"formatter_class": _Help, **named})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read words: options first where operands are mixed with them."""
        if not self.mixed:
            return super().parse_known_args(args, namespace)
        self.mixed = False  # its two passes come here
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.mixed = True

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


class _Help(argparse.HelpFormatter):
    """Keeps the lines of examples and tables, and fills paragraphs."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "".join(indent + line for line in text.splitlines(keepends=True))


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options and operands of a parser."""
    return [action for action in parser._actions if action.help is not argparse.SUPPRESS]


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, by name."""
    return next(dict(action.choices) for action in parser._actions if isinstance(action, argparse._SubParsersAction))


def _named(read: Callable[[str], T]) -> Callable[[str], T]:
    """A reader whose refusals argparse shows behind the option's name."""

    def named(text: str) -> T:
        try:
            return read(text)
        except OSError as error:
            raise argparse.ArgumentTypeError(f"{text}: {error.strerror or error}") from None
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return named


@_named
def epsilon(text: str) -> str:
    """Epsilon as it was written: a decimal, a fraction, or ln(a/b)."""
    try:
        from userdp.exact.numbers import parse_level

        parse_level(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a privacy parameter >= 0; accepted: 1, 0.5, 3/4, ln(3)") from None
    return text.strip()


@_named
def delta(text: str) -> str:
    """Delta as it was written: a decimal or a fraction."""
    try:
        from userdp.exact.numbers import parse_delta

        parse_delta(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a probability from 0 to 1; accepted: 0, 1e-6, 1/1000000") from None
    return text.strip()


def whole(least: int) -> Callable[[str], int]:
    """A reader of whole numbers from a least one."""

    @_named
    def read(text: str) -> int:
        digits = text.strip().removeprefix("+").replace("_", "")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 40) or int(digits) < least:
            raise ValueError(f"{text!r} is not a whole number >= {least}; accepted: {least}, {least + 1}, {least + 2}")
        return int(digits)

    return read


@_named
def numbers_of(text: str) -> int | tuple[int, ...]:
    """A number of examples, or a comma list of them."""
    found = tuple(map(whole(0), text.split(",")))
    return found if len(found) > 1 else whole(1)(text)


@_named
def universe(text: str) -> list[Any]:
    """Possible examples: a JSON list, or a comma list of numbers and words."""
    if text.lstrip().startswith("["):
        return _json(text, "the list")
    return [_number_or_word(part.strip()) for part in text.split(",")]


def _number_or_word(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else text


@_named
def users(text: str) -> list[Any]:
    """The users of a JSON file."""
    found = _json(read_text(Path(text)), text)
    if not isinstance(found, list):
        raise ValueError(f"{text}: expected a JSON list of users, each a list of examples")
    return found


@_named
def distribution(text: str) -> Any:
    """A distribution: a comma list, or a file of numbers."""
    path = Path(text)
    if path.suffix not in PMF_SUFFIXES:
        return text.split(",")
    if path.suffix == ".npy":
        import numpy as np

        try:
            return np.atleast_1d(np.load(path, allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is not an array of numbers: {error}") from None
    content = read_text(path)
    if path.suffix != ".json":
        return content.replace(",", " ").split()
    values = _json(content, text, decimals=str)  # which stay exact
    if not isinstance(values, list):
        raise ValueError(f"{path}: expected a JSON list of numbers")
    return values


@_named
def content(text: str) -> str:
    """The text of a file."""
    return read_text(Path(text))


def read_text(path: Path) -> str:
    """A file's text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error}") from None


def _json(text: str, name: str, *, decimals: Callable[[str], Any] | None = None) -> Any:
    """What JSON holds, its numbers as `decimals` reads them."""
    try:
        return json.loads(text, parse_float=decimals, parse_int=decimals)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is not JSON: {error}") from None


def require_writable(path: Path, option: str) -> None:
    """Refuse a file that cannot be written, before there is anything to write."""
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--{option}: {path}: there is no such directory")
    if path.is_dir():
        raise UsageError(f"--{option}: {path} is a directory; give the name of a file")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise UsageError(f"--{option}: {path} may not be written")


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
    _look_in(Path.cwd())
    return importlib.import_module(name)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError("there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError("it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    _look_in(path.resolve().parent)  # as `python file.py` does
    spec.loader.exec_module(module)
    return module


def _look_in(folder: Path) -> None:
    """Find modules of a folder, first of all."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
