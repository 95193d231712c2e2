"""``userdp audit-function``: how much one user changes a function of a table."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import Any

from userdp.cli.arguments import UsageError, load_mechanism, whole
from userdp.cli.rows import Answer, Commands, named, option

COMMANDS = Commands()
NORMS = ("l1", "l2", "linf", "l0")
KINDS = "float, int, str, bool, date, datetime, or a list of categories"


def _mapping(text: str) -> dict[str, Any]:
    """A JSON object."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object from column to what is said of it")
    return found


@COMMANDS.add(
    "audit-function",
    "audit how much one user changes what is computed before noise",
    "Run a function of a table on all small tables of plain and hostile values, and compare those that "
    "differ in the rows of one user. Exit code 0: no listed table breaks the claim, which says nothing of others; "
    "1: two tables break it, and are shown; 4: not all tables were tried, or nothing was claimed.",
    'userdp audit-function counts.py:visits --schema \'{"town": "str"}\' --user person --l1 1\n'
    'userdp audit-function sums.py:total --schema \'{"hours": "float"}\' --user person --l1 8 \\\n'
    "    --bounds '{\"hours\": [0, 8]}' --frame pandas --html audit.html",
    option("function", help="module:name or path/to/file.py:name of a function of a table"),
    option("--schema", _mapping, f"the columns besides that of users: {KINDS}", required=True, metavar="JSON"),
    option("--user", help="the column of users; without it each row is a user", metavar="COLUMN"),
    *(
        option(f"--{each}", help=f"the claimed {each.upper()} sensitivity: 1, 0.5 or 3/2", metavar="X")
        for each in NORMS
    ),
    "--neighbors",
    option(
        "--frame",
        ("rows", "tuples", "pandas", "polars", "lazy", "arrow"),
        "what the function takes: a list of dicts (default), of tuples, or a data frame",
        default="rows",
    ),
    option("--keys", help="columns that name the rows of an output frame", nargs="+", metavar="COLUMN"),
    option("--missing-is-zero", bool, "a key that is not there counts as 0"),
    option("--bounds", _mapping, 'public bounds of columns: {"hours": [0, 8]}', metavar="JSON"),
    option(
        "--float-slack",
        help="by what share of itself a claim may be exceeded, as floats round",
        default="0",
        metavar="X",
    ),
    option("--no-null", bool, "no value is missing"),
    option("--no-nan", bool, "no float is NaN"),
    option("--max-users", whole(1), "users of a table (default 3)"),
    option("--max-rows", whole(1), "rows of a user (default 2)"),
    option("--total-rows", whole(1), "rows of a table (default 4)"),
    option("--letters", whole(1), "values of a column"),
    option("--max-calls", whole(1), "calls of the function (default 20,000)", default=20_000),
    option("--seconds", whole(1), "time for the search (default 60)", default=60),
    "--html --certificate --json",
)
def function(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.audit import audit_sensitivity

    if options.user is None and options.max_rows is not None:
        raise UsageError("--max-rows goes with --user: without a column of users each row is a user")
    report = audit_sensitivity(
        load_mechanism(options.function),
        **named(options, "schema user"),
        **named(options, f"{' '.join(NORMS)} neighbors frame keys bounds float_slack"),
        missing=0 if options.missing_is_zero else None,
        null=not options.no_null,
        nan=not options.no_nan,
        **named(options, "max_users max_rows total_rows letters max_calls"),
        max_seconds=options.seconds,
    )
    answer = Answer.of(report)
    return answer if report.holds is not False else replace(answer, text=f"{answer.text}\n\n{report.witness_code()}")
