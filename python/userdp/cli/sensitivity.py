"""``userdp audit-function``: how much one user changes a function of a table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from userdp.cli.arguments import UsageError, add_json_option, load_mechanism, whole
from userdp.cli.commands import exit_code, print_json, write_report
from userdp.exact.encoding import fraction_text

NORMS = ("l1", "l2", "linf", "l0")
KINDS = "float, int, str, bool, date, datetime, or a list of categories"


def add_function(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit-function",
        help="audit how much one user changes what is computed before noise",
        description="Run a function of a table on all small tables of plain and hostile values, and compare those that "
        "differ in the rows of one user. Exit code 0: no listed table breaks the claim, which says nothing of others; "
        "1: two tables break it, and are shown; 4: not all tables were tried, or nothing was claimed.",
        epilog="examples:\n"
        '  userdp audit-function counts.py:visits --schema \'{"town": "str"}\' --user person --l1 1\n'
        '  userdp audit-function sums.py:total --schema \'{"hours": "float"}\' --user person --l1 8 \\\n'
        "      --bounds '{\"hours\": [0, 8]}' --frame pandas --html audit.html",
    )
    parser.add_argument("function", help="module:name or path/to/file.py:name of a function of a table")
    parser.add_argument(
        "--schema", type=_mapping, required=True, metavar="JSON", help=f"the columns besides that of users: {KINDS}"
    )
    parser.add_argument("--user", metavar="COLUMN", help="the column of users; without it each row is a user")
    for norm in NORMS:
        parser.add_argument(f"--{norm}", metavar="X", help=f"the claimed {norm.upper()} sensitivity: 1, 0.5 or 3/2")
    parser.add_argument("--neighbors", choices=("replace", "add-remove"), default="replace")
    parser.add_argument(
        "--frame",
        choices=("rows", "tuples", "pandas", "polars", "lazy", "arrow"),
        default="rows",
        help="what the function takes: a list of dicts (default), of tuples, or a data frame",
    )
    parser.add_argument("--keys", nargs="+", metavar="COLUMN", help="columns that name the rows of an output frame")
    parser.add_argument("--missing-is-zero", action="store_true", help="a key that is not there counts as 0")
    parser.add_argument("--bounds", type=_mapping, metavar="JSON", help='public bounds of columns: {"hours": [0, 8]}')
    parser.add_argument(
        "--float-slack",
        default="0",
        metavar="X",
        help="by what share of itself a claim may be exceeded, as floats round",
    )
    parser.add_argument("--no-null", action="store_true", help="no value is missing")
    parser.add_argument("--no-nan", action="store_true", help="no float is NaN")
    parser.add_argument("--max-users", type=whole(1), help="users of a table (default 3)")
    parser.add_argument("--max-rows", type=whole(1), help="rows of a user (default 2)")
    parser.add_argument("--total-rows", type=whole(1), help="rows of a table (default 4)")
    parser.add_argument("--letters", type=whole(1), help="values of a column")
    parser.add_argument("--max-calls", type=whole(1), default=20_000, help="calls of the function (default 20,000)")
    parser.add_argument("--seconds", type=whole(1), default=60, help="time for the search (default 60)")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write the report as JSON, for userdp verify")
    add_json_option(parser)
    parser.set_defaults(run=function)


def _mapping(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object from column to what is said of it")
    return found


def function(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.audit import audit_sensitivity

    if options.user is None and options.max_rows is not None:
        raise UsageError("--max-rows goes with --user: without a column of users each row is a user")
    report = audit_sensitivity(
        load_mechanism(options.function),
        schema=options.schema,
        user=options.user,
        **{norm: getattr(options, norm) for norm in NORMS},
        neighbors=options.neighbors,
        frame=options.frame,
        keys=options.keys,
        missing=0 if options.missing_is_zero else None,
        bounds=options.bounds,
        null=not options.no_null,
        nan=not options.no_nan,
        float_slack=options.float_slack,
        max_users=options.max_users,
        max_rows=options.max_rows,
        total_rows=options.total_rows,
        letters=options.letters,
        max_calls=options.max_calls,
        max_seconds=options.seconds,
    )
    write_report(report, options)
    if options.json:
        worst = {name: getattr(report.worst, name) for name in ("l0", "l1", "l2_squared", "linf")}
        print_json(
            {
                "schema_version": 1,
                "function": report.function,
                "holds": report.holds,
                "complete": report.complete,
                "worst": {name: _size(value) for name, value in worst.items()},
                "witness": None if report.holds is not False else report.witness_code(),
                "tables": report.tables,
                "pairs": report.pairs,
                "calls": report.calls,
            }
        )
    else:
        print(report.summary())
        if report.holds is False:
            print("\n" + report.witness_code())
    return exit_code(report.holds)


def _size(value: Any) -> str | int | None:
    """A size as a fraction's text, "infinite", or None."""
    if value is None or isinstance(value, int):
        return value
    return fraction_text(value) if hasattr(value, "numerator") else "infinite"
