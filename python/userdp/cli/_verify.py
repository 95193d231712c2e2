"""``userdp verify``: check an audit certificate, without the compiled core."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from userdp.cli._common import add_json_argument, print_json


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "verify",
        help="check an audit certificate in pure Python",
        description="Decide an audit's verdict again from its certificate (a JSON file written by userdp audit "
        "--certificate or AuditReport.to_json), in pure Python. Exit code 0: verified; 1: something is wrong with it. "
        "Whether the audited claim holds is printed, and is not the exit code.",
    )
    parser.add_argument("certificate", type=Path, help="the JSON file")
    add_json_argument(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.report import AuditReport

    report = AuditReport.from_json(options.certificate.read_text(encoding="utf-8"))
    verification = report.verify()
    if options.json:
        print_json(
            {
                "schema_version": 1,
                "verified": verification.ok,
                "mode": verification.mode,
                "problems": list(verification.problems),
                "holds": report.holds,
            }
        )
    else:
        print(verification)
        if verification.ok:
            print(report.summary())
    return 0 if verification.ok else 1
