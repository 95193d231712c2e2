"""``userdp audit``: an exact audit of a mechanism that the user names."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from userdp.cli._common import (
    EXIT_HOLDS,
    EXIT_NOT_ESTABLISHED,
    add_privacy_arguments,
    exit_code,
    json_bounds,
    print_json,
)
from userdp.cli._load import load_mechanism, parsed_json, read_users, tuples
from userdp.exact.encoding import fraction_text


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit",
        help="audit a mechanism over all neighbouring datasets",
        description="Audit a finite algorithm exactly: over all datasets of a small universe (--universe, --n-users, "
        "--n-examples), or one dataset against every replacement of one user (--dataset, --records). Exit code 0: the "
        "claim holds, and the report holds all pmfs; 1: it is violated; 4: undetermined within pmf_error; 5: no "
        "violation, but more than a million pairs, of which a report is a sample that establishes nothing.",
    )
    parser.add_argument("mechanism", help="module:name or path/to/file.py:name of a FiniteAlgorithm")
    add_privacy_arguments(parser, delta_required=True)
    space = parser.add_argument_group("all datasets of a universe")
    space.add_argument("--universe", help="possible examples, as a JSON list: [0, 1]")
    space.add_argument("--n-users", type=int, help="number of users")
    space.add_argument("--n-examples", type=int, default=1, help="examples per user (default 1)")
    space.add_argument("--level", choices=("user", "item"), default="user", help="what neighbours differ in")
    space.add_argument("--neighbours", choices=("replace", "add-remove"), default="replace")
    single = parser.add_argument_group("one dataset")
    single.add_argument("--dataset", type=Path, help="JSON file: a list of users, each a list of examples")
    single.add_argument("--records", type=Path, help="JSON file: what a replaced user may have given, a list of users")
    parser.add_argument("--engine", choices=("auto", "labelled", "symmetric", "additive"), default="auto")
    parser.add_argument("--budget", type=int, help="largest number of pmf-pair-outputs (default 10^13)")
    parser.add_argument("--html", type=Path, help="write the report as a page")
    parser.add_argument("--certificate", type=Path, help="write the report as JSON, for userdp verify")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.audit import audit_dataset, audit_item_level, audit_user_level

    common = {
        "epsilon": options.epsilon,
        "delta": options.delta,
        "engine": options.engine,
        "budget": options.budget,
    }
    if options.dataset is not None:
        if options.records is None or options.universe is not None:
            raise ValueError("--dataset goes with --records, and not with --universe")
        if options.n_users is not None or options.level != "user" or options.neighbours != "replace":
            raise ValueError("--n-users, --level item and --neighbours add-remove go with --universe")
        mechanism = load_mechanism(options.mechanism)
        report = audit_dataset(mechanism, read_users(options.dataset), records=read_users(options.records), **common)
    else:
        if options.universe is None or options.n_users is None:
            raise ValueError("give --universe and --n-users, or --dataset and --records")
        universe = tuples(parsed_json(options.universe, "--universe"))
        space = {"universe": universe, "n_users": options.n_users, "n_examples": options.n_examples}
        mechanism = load_mechanism(options.mechanism)
        if options.level == "item":
            if options.neighbours != "replace":
                raise ValueError("--neighbours add-remove goes with --level user")
            report = audit_item_level(mechanism, **space, **common)
        else:
            report = audit_user_level(mechanism, **space, neighbours=options.neighbours, **common)
    if options.html is not None:
        options.html.write_text(report.to_html(), encoding="utf-8")
    if options.certificate is not None:
        options.certificate.write_text(report.to_json(), encoding="utf-8")
    if options.json:
        print_json(summary_of(report))
    else:
        print(report.summary())
    code = exit_code(report.holds)
    return EXIT_NOT_ESTABLISHED if code == EXIT_HOLDS and report.verification == "sampled" else code


def summary_of(report: Any) -> dict[str, Any]:
    """The parts of a report that scripts ask for."""
    witness = report.witness
    return {
        "schema_version": 1,
        "mechanism": report.mechanism,
        "kind": report.kind,
        "engine": report.engine,
        "neighbours": report.neighbours,
        "delta": fraction_text(report.delta),
        "holds": report.holds,
        "verification": report.verification,
        "assumptions": list(report.assumptions),
        "worst_delta": json_bounds(report.worst_delta),
        "epsilon_at_delta": json_bounds(report.epsilon),
        "exp_epsilon": None if report.exp_epsilon is None else fraction_text(report.exp_epsilon),
        "datasets": report.datasets,
        "pairs": report.pairs,
        "event": None if witness is None else sorted(map(str, witness.event)),
        "changed_user": None if witness is None else witness.changed_user,
    }
