"""What a command is: a row with its texts, its options and its function; and what it answers.

An option that two commands have is said in `SHARED`. One that a single command has is said in its row.
"""

from __future__ import annotations

import argparse
import json
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from userdp.cli.arguments import Parser, delta, epsilon, users, whole

EXIT_HOLDS, EXIT_VIOLATED, EXIT_USAGE, EXIT_BUDGET, EXIT_UNDETERMINED = 0, 1, 2, 3, 4
EXIT_NOT_ESTABLISHED, EXIT_WRONG_REPORT = 5, 6
EXIT_UNEXPECTED = 70  # an internal failure, as in sysexits.h
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # what a shell reports for a program that a closed pipe ended

NOT_PRIVATE = "Diagnostic, NOT private: what follows is computed from the data without noise. Do not publish it."
MECHANISM = "module:name or path/to/file.py:name of a FiniteAlgorithm"
DATASET = "JSON file: a list of users, each a list of examples"

# --- what a command answers


def exit_code(holds: bool | None) -> int:
    """The exit code of a verdict."""
    return EXIT_UNDETERMINED if holds is None else EXIT_HOLDS if holds else EXIT_VIOLATED


def holds_word(holds: bool | None) -> str:
    """A verdict in a word."""
    return "UNDETERMINED" if holds is None else "HOLDS" if holds else "VIOLATED"


class Written(Protocol):
    """A result that writes itself."""

    def to_json(self) -> str:
        """The result as JSON."""


class Judged(Written, Protocol):
    """A report with a verdict."""

    @property
    def holds(self) -> bool | None:
        """The verdict."""

    def summary(self) -> str:
        """The report in a few lines."""


@dataclass(frozen=True)
class Answer:
    """What a command prints and leaves with.

    Attributes
    ----------
    text : str
        For people.
    content : dict or Written
        For --json: an object, or a result that writes its own. Of the second --certificate is the same JSON, and --html
        its page. None where there is text only.
    code : int
        The exit code.
    """

    text: str
    content: Mapping[str, Any] | Written | None = None
    code: int = EXIT_HOLDS

    @classmethod
    def of(cls, report: Judged) -> Answer:
        """A report's own words and verdict."""
        return cls(report.summary(), report, exit_code(report.holds))

    def shown(self, *, as_json: bool) -> str:
        """The text, or the JSON."""
        if not as_json or self.content is None:
            return self.text
        if isinstance(self.content, Mapping):
            return json_text({"schema_version": 1, **self.content})
        return self.content.to_json()


def ends(bounds: Any) -> list[float]:
    """Bounds as JSON has them: [lower, upper]."""
    return [bounds.lower, bounds.upper]


def json_text(content: Mapping[str, Any]) -> str:
    """One JSON object."""
    return json.dumps(_plain(dict(content)), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value as JSON can carry it: fractions and floats that are not finite as text."""
    match value:
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case float() if not math.isfinite(value):
            return str(value)
        case Fraction():
            from userdp.exact.encoding import fraction_text

            return fraction_text(value)
    return value


# --- options


class Option(NamedTuple):
    """An option or an operand: its names, and what argparse is told of it."""

    flags: tuple[str, ...]
    told: Mapping[str, Any]

    def varied(self, *, required: bool, default: str) -> Option:
        """The same as a row wants it."""
        told = {**self.told}
        if required:
            told["required"] = True
        if default:
            told["default"] = told["type"](default)
            told["help"] = told["help"].replace("{default}", f"{told['default']:,}")
        return self._replace(told=told)


def option(
    flags: str, read: Callable[[str], Any] | tuple[str, ...] | None = None, help: str | None = None, **told: Any
) -> Option:
    """An option by its names, how its value is read, and its help.

    Parameters
    ----------
    flags : str
        Such as "--deletions -r"; a word without dashes is an operand.
    read : callable or tuple of str, optional
        A reader, or the words that are accepted; ``bool`` for an option without a value, and None for any text.
    help : str, optional
    **told
        What else argparse is told, such as ``default``.
    """
    if read is bool:
        told["action"] = "store_true"
    elif isinstance(read, tuple):
        told["choices"] = read
    elif read is not None:
        told["type"] = read
    return Option(tuple(flags.split()), {"help": help, **told})


Part: TypeAlias = "str | Option | Group"
"""Names of shared options with spaces between them, an option of one command, or a group."""


class Group(NamedTuple):
    """Options under a title of their own; without one, options that exclude each other."""

    title: str | None
    description: str | None
    parts: tuple[Part, ...]


def group(title: str | None, *parts: Part, description: str | None = None) -> Group:
    """A group of options."""
    return Group(title, description, parts)


SHARED: Mapping[str, Option] = {
    each.flags[0]: each
    for each in (
        option("mechanism", help=MECHANISM),
        option("algorithm", help=MECHANISM),
        option("--epsilon", epsilon, "privacy parameter: 0.5, 1/2 or ln(3/2), exactly"),
        option("--delta", delta, "probability in [0, 1]: 1e-6 or 1/1000000, exactly"),
        option("--json", bool, "print one JSON object instead of text"),
        option("--dataset", users, DATASET, metavar="FILE"),
        option("--n-users", whole(1), "number of users"),
        option("--neighbors", ("replace", "add-remove"), default="replace"),
        option("--budget", whole(1), "largest number of pmf-pair-outputs (default 10^13)"),
        option("--html", Path, "write the report as a page", metavar="FILE"),
        option("--certificate", Path, "write the report as JSON, for userdp verify", metavar="FILE"),
        option("--draws", whole(1), "most draws of the test (default {default})"),
        option("--training", whole(2), "draws to choose what is tested (default {default})"),
        option("--alpha", delta, "probability of a wrong verdict, at most 1/2 (default 1e-9)", default="1e-9"),
        option("--estimate-alpha", delta, "the same for the printed bound (default 0.05)", default="0.05"),
    )
}


# --- commands


class Command(NamedTuple):
    """A row: what a command is called, what is said of it, its options, and what it does."""

    name: str
    text: str
    description: str
    examples: str
    parts: tuple[Part, ...]
    run: Callable[[argparse.Namespace], Answer]

    def options(self) -> Iterator[Option]:
        """All of its options."""
        yield from _flat(self.parts)

    def add_to(self, commands: Any) -> None:
        """Add it to the parser."""
        parser: Parser = commands.add_parser(
            self.name,
            help=self.text,
            description=self.description,
            epilog="examples:\n" + textwrap.indent(self.examples, "  "),
        )
        parser.mixed = any(each.told.get("nargs") == "*" for each in self.options())
        _add(parser, self.parts)
        parser.set_defaults(run=self.answer)

    def answer(self, options: argparse.Namespace) -> int:
        """Run it, write and print what it found, and give the exit code."""
        found = self.run(options)
        for name, written in (("certificate", "to_json"), ("html", "to_html")):
            path = getattr(options, name, None)
            if isinstance(path, Path) and found.content is not None and not isinstance(found.content, Mapping):
                path.write_text(getattr(found.content, written)(), encoding="utf-8")
        print(found.shown(as_json=getattr(options, "json", False)))
        return found.code


def _flat(parts: tuple[Part, ...]) -> Iterator[Option]:
    for part in parts:
        if isinstance(part, Group):
            yield from _flat(part.parts)
        elif isinstance(part, Option):
            yield part
        else:
            for word in part.split():
                name, _, default = word.rstrip("!").partition("=")
                yield SHARED[name].varied(required=word.endswith("!"), default=default)


def _add(parser: Any, parts: tuple[Part, ...]) -> None:
    """Tell argparse of the options."""
    for part in parts:
        if not isinstance(part, Group):
            for each in _flat((part,)):
                parser.add_argument(*each.flags, **each.told)
        elif part.title is None:
            _add(parser.add_mutually_exclusive_group(), part.parts)
        else:
            _add(parser.add_argument_group(part.title, part.description), part.parts)


class Commands(dict[str, Command]):
    """Commands by name, in the order of the help."""

    def add(
        self, name: str, text: str, description: str, examples: str, *parts: Part
    ) -> Callable[[Callable[[argparse.Namespace], Answer]], Callable[[argparse.Namespace], Answer]]:
        """The function below is a command.

        Parameters
        ----------
        name : str
        text : str
            For the list of commands.
        description : str
        examples : str
            A line for each.
        *parts : str, Option or Group
            Its options in the order of its help; those of `SHARED` by name, with ! where one is required, and with
            =value where one has a default.
        """

        def added(run: Callable[[argparse.Namespace], Answer]) -> Callable[[argparse.Namespace], Answer]:
            self[name] = Command(name, text, description, examples, parts, run)
            return run

        return added


def named(options: argparse.Namespace, names: str) -> dict[str, Any]:
    """The values of options, by name."""
    return {name: getattr(options, name) for name in names.split()}
