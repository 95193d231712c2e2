"""``userdp verify``: check an audit certificate, without the compiled core."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli._common import (
    EXIT_NOT_ESTABLISHED,
    EXIT_VIOLATED,
    EXIT_WRONG_REPORT,
    add_json_argument,
    exit_code,
    print_json,
)
from userdp.cli._load import load_mechanism, read_text

if TYPE_CHECKING:
    from userdp.report import Verification


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "verify",
        help="check an audit certificate in pure Python",
        description="Decide an audit's verdict again from its certificate (a JSON file written by userdp audit "
        "--certificate or AuditReport.to_json), in pure Python, and with --mechanism compute its pmfs again. Exit code "
        "0: the claim is established; 1: it is refuted; 4: undetermined within pmf_error; 5: not established, since "
        "nothing (no --mechanism) or only a part was computed again; 6: the report is wrong.",
    )
    parser.add_argument("certificate", type=Path, help="the JSON file")
    parser.add_argument("--mechanism", help="module:name or path/to/file.py:name of the FiniteAlgorithm; it is run")
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.report import AuditReport

    report = AuditReport.from_json(read_text(options.certificate))
    found = report.verify(None if options.mechanism is None else load_mechanism(options.mechanism))
    if options.json:
        print_json(
            {
                "schema_version": 2,
                "finding": found.finding,
                "explanation": found.explanation,
                "problems": list(found.problems),
                "datasets": found.datasets,
                "pairs": found.pairs,
                "holds": report.holds,
                "refuted": found.refuted,
                "assumptions": list(report.assumptions),
            }
        )
    else:
        print(found)
        if not found.problems:
            print(report.summary())
    return code_of(found, report.holds)


def code_of(found: Verification, holds: bool | None) -> int:
    """The exit code: 0 for what is established and holds, and for nothing else."""
    if found.finding == "wrong":
        return EXIT_WRONG_REPORT
    if found.refuted:
        return EXIT_VIOLATED
    return exit_code(holds) if found.finding == "established" else EXIT_NOT_ESTABLISHED
