"""How .csv files are written, as options of commands; and `csv-check`, which says what lines are lost."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli.arguments import Parser, UsageError, add_json_option
from userdp.cli.rows import NOT_PRIVATE, print_json
from userdp.exact.numbers import short_repr

if TYPE_CHECKING:
    from userdp.tables.csv_files import CsvTable

ENDINGS = tuple(f"{ending}{packed}" for ending in (".csv", ".tsv", ".txt") for packed in ("", ".gz"))
STANDARD_INPUT = Path("-")
OPTIONS = ("separator", "quote", "escape", "decimal", "thousands", "encoding", "missing", "names")
MOST_SHOWN = 1000
"""Stretches of lines that are listed."""


class _Once(argparse.Action):
    """An option that may be given once: of two that differ none is right."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: Any = None) -> None:
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "may be given once")
        setattr(namespace, self.dest, values)


def add_csv_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a .csv file is written."""
    group = parser.add_argument_group(
        "of .csv files",
        "How the file is written. Nothing is guessed, and what is said must not come from single rows (docs/csv.md).",
    )

    def add(name: str, **named: Any) -> None:
        group.add_argument(f"--{name}", action=_Once, **named)

    add("separator", metavar="CHARACTER", type=_separator, help="what is between cells: ',' (default), ';', tab")
    add(
        "quote",
        choices=("rfc", "line", "none"),
        help="double quotes enclose cells, with line ends in them (rfc, default) or without (line), or are characters",
    )
    add("escape", metavar="CHARACTER", help="a backslash, in files of MySQL and Spark (default: none)")
    add("decimal", metavar="CHARACTER", help="what is before decimals: . (default) or ,")
    add("thousands", metavar="CHARACTER", help="what may be between groups of three digits (default: nothing)")
    add("encoding", metavar="NAME", help="utf-8 (default), cp1252, utf-16, ...")
    add("missing", metavar="LIST", type=_listed, help="cells that stand for nothing, with commas between them: NA,NULL")
    add("names", metavar="LIST", type=_listed, help="names of the columns, of a file that has no row of names")


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

    given = {name: getattr(options, name) for name in OPTIONS if getattr(options, name, None) is not None}
    if "escape" in given and given["escape"] == "\\\\":
        given["escape"] = "\\"  # as shells without quotes for it make people write
    try:
        return read_csv(sys.stdin.buffer if path == STANDARD_INPUT else path, **given)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except (TypeError, ValueError) as error:
        message = str(error)
        option = next((name for name in OPTIONS if message.startswith((f"{name} ", f"{name}:"))), None)
        raise UsageError(f"--{message}" if option else message.removeprefix("path: ")) from None


def refuse_csv_options(path: Path, options: argparse.Namespace) -> None:
    """Refuse options of .csv files beside another file."""
    given = next((name for name in OPTIONS if getattr(options, name) is not None), None)
    if given is not None:
        raise UsageError(
            f"--{given} goes with files of CSV (.csv, .tsv or .txt, perhaps with .gz, or - for standard input); "
            f"got {path}"
        )


def add_csv_check(commands: Any) -> None:
    """Add the command to the parser."""
    parser: Parser = commands.add_parser(
        "csv-check",
        help="which lines of a .csv file are no rows; for the owner's eyes only",
        description="Say how many rows a .csv file has in a dialect, and which lines are left out and why. The output "
        "is computed from the data without noise: it is not private, and is for the owner of the file alone.",
        epilog="examples:\n  userdp csv-check people.csv\n"
        "  userdp csv-check people.csv --separator ';' --encoding cp1252",
    )
    parser.add_argument("file", type=Path, help="a .csv, .tsv or .txt file, perhaps with .gz, or - for standard input")
    add_csv_options(parser)
    add_json_option(parser)
    parser.set_defaults(run=csv_check)


def csv_check(options: argparse.Namespace) -> int:
    """Run the command."""
    if not is_csv(options.file):
        raise UsageError(f"{options.file}: the ending must be {' or '.join(ENDINGS)}, or - for standard input")
    table = csv_table(options.file, options)
    found = table.check()
    if options.json:
        print_json(
            {
                "private": False,
                "dialect": table.dialect,
                "columns": list(table.names),
                "rows": found.rows,
                "short": found.short,
                "malformed": list(found.malformed),
                "long": list(found.long),
            }
        )
        return 0
    print(NOT_PRIVATE)
    print(table.dialect)
    print(f"columns: {', '.join(table.names)}")
    print(f"rows: {found.rows}")
    print(f"rows with fewer cells than names, the others of which are missing: {found.short}")
    print(f"lines left out for a quote that is not closed as it should be: {_stretches(found.malformed)}")
    print(f"lines left out for more cells than names: {_stretches(found.long)}")
    return 0


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
