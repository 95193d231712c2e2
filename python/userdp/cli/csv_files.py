"""How .csv files are written, as options of commands; and `csv-check`, which says what lines are lost."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli.arguments import UsageError
from userdp.cli.rows import NOT_PRIVATE, Answer, Commands, Option, group, option
from userdp.exact.numbers import short_repr

if TYPE_CHECKING:
    from userdp.tables.csv_files import CsvTable

ENDINGS = tuple(f"{ending}{packed}" for ending in (".csv", ".tsv", ".txt") for packed in ("", ".gz"))
STANDARD_INPUT = Path("-")
MOST_SHOWN = 1000
"""Stretches of lines that are listed."""


class _Once(argparse.Action):
    """An option that may be given once: of two that differ none is right."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "may be given once")
        setattr(namespace, self.dest, values)


def _separator(text: str) -> str:
    return "\t" if text.lower() in ("tab", "\\t") else text


def _listed(text: str) -> list[str]:
    try:
        words = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error:
        words = []
    if not words or "" in words:
        raise argparse.ArgumentTypeError(f"{short_repr(text)} is no list of texts with commas between them")
    return words


def _once(name: str, read: Any, help: str, **told: Any) -> Option:
    return option(f"--{name}", read, help, action=_Once, **told)


CSV_OPTIONS = group(
    "of .csv files",
    _once("separator", _separator, "what is between cells: ',' (default), ';', tab", metavar="CHARACTER"),
    _once(
        "quote",
        ("rfc", "line", "none"),
        "double quotes enclose cells, with line ends in them (rfc, default) or without (line), or are characters",
    ),
    _once("escape", None, "a backslash, in files of MySQL and Spark (default: none)", metavar="CHARACTER"),
    _once("decimal", None, "what is before decimals: . (default) or ,", metavar="CHARACTER"),
    _once("thousands", None, "what may be between groups of three digits (default: nothing)", metavar="CHARACTER"),
    _once("encoding", None, "utf-8 (default), cp1252, utf-16, ...", metavar="NAME"),
    _once("missing", _listed, "cells that stand for nothing, with commas between them: NA,NULL", metavar="LIST"),
    _once("names", _listed, "names of the columns, of a file that has no row of names", metavar="LIST"),
    description="How the file is written. Nothing is guessed, and what is said must not come from single rows "
    "(docs/csv.md).",
)
"""How a .csv file is written."""
NAMES = tuple(each.flags[0].removeprefix("--") for each in CSV_OPTIONS.parts if isinstance(each, Option))


def is_csv(path: Path) -> bool:
    """Whether a file is read as CSV: by its ending, or as it is standard input."""
    return path == STANDARD_INPUT or path.name.lower().endswith(ENDINGS)


def csv_table(path: Path, options: argparse.Namespace) -> CsvTable:
    """The table in a .csv file or on standard input, read as the options say.

    Raises
    ------
    UsageError
        Naming the option or the file.
    """
    from userdp.tables import read_csv

    given = {name: getattr(options, name) for name in NAMES if getattr(options, name, None) is not None}
    if "escape" in given and given["escape"] == "\\\\":
        given["escape"] = "\\"  # as shells without quotes for it make people write
    try:
        return read_csv(sys.stdin.buffer if path == STANDARD_INPUT else path, **given)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except (TypeError, ValueError) as error:
        message = str(error)
        option = next((name for name in NAMES if message.startswith((f"{name} ", f"{name}:"))), None)
        raise UsageError(f"--{message}" if option else message.removeprefix("path: ")) from None


def refuse_csv_options(path: Path, options: argparse.Namespace) -> None:
    """Refuse options of .csv files beside another file."""
    given = next((name for name in NAMES if getattr(options, name) is not None), None)
    if given is not None:
        raise UsageError(
            f"--{given} goes with files of CSV (.csv, .tsv or .txt, perhaps with .gz, or - for standard input); "
            f"got {path}"
        )


COMMANDS = Commands()


@COMMANDS.add(
    "csv-check",
    "which lines of a .csv file are no rows; for the owner's eyes only",
    "Say how many rows a .csv file has in a dialect, and which lines are left out and why. The output "
    "is computed from the data without noise: it is not private, and is for the owner of the file alone.",
    "userdp csv-check people.csv\nuserdp csv-check people.csv --separator ';' --encoding cp1252",
    option("file", Path, "a .csv, .tsv or .txt file, perhaps with .gz, or - for standard input"),
    CSV_OPTIONS,
    "--json",
)
def csv_check(options: argparse.Namespace) -> Answer:
    """Run the command."""
    if not is_csv(options.file):
        raise UsageError(f"{options.file}: the ending must be {' or '.join(ENDINGS)}, or - for standard input")
    table = csv_table(options.file, options)
    found = table.check()
    lines = (
        NOT_PRIVATE,
        table.dialect,
        f"columns: {', '.join(table.names)}",
        f"rows: {found.rows}",
        f"rows with fewer cells than names, the others of which are missing: {found.short}",
        f"lines left out for a quote that is not closed as it should be: {_stretches(found.malformed)}",
        f"lines left out for more cells than names: {_stretches(found.long)}",
    )
    result = {
        "private": False,
        "dialect": table.dialect,
        "columns": list(table.names),
        "rows": found.rows,
        "short": found.short,
        "malformed": list(found.malformed),
        "long": list(found.long),
    }
    return Answer("\n".join(lines), result)


def _stretches(lines: Sequence[int]) -> str:
    """How many lines, and their numbers, with those that follow each other as one stretch."""
    found: list[tuple[int, int]] = []
    for line in lines:
        if found and found[-1][1] == line - 1:
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
    if not found:
        return "0"
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in found[:MOST_SHOWN]]
    more = f" and {len(found) - MOST_SHOWN} more stretches (--json lists all)" if len(found) > MOST_SHOWN else ""
    return f"{len(lines)}: {', '.join(shown)}{more}"
