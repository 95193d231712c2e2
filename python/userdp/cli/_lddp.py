"""``userdp lddp``: whether an algorithm is stable when users are deleted from one dataset."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from userdp.cli._common import add_privacy_arguments, exit_code, json_bounds, print_json
from userdp.cli._load import load_mechanism, read_users
from userdp.exact.encoding import encode, fraction_text
from userdp.exact.numbers import Bounds


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "lddp",
        help="check stability under deletion of users",
        description="Decide exactly whether the output laws of a finite algorithm are within (epsilon, delta) of each "
        "other whichever r users are deleted from a dataset (local deletion DP).",
    )
    parser.add_argument("algorithm", help="module:name or path/to/file.py:name of a FiniteAlgorithm")
    parser.add_argument(
        "--dataset", type=Path, required=True, help="JSON file: a list of users, each a list of examples"
    )
    parser.add_argument("--deletions", "-r", type=int, required=True, metavar="R", help="number of users to delete")
    add_privacy_arguments(parser, delta_required=True)
    parser.add_argument("--budget", type=int, help="largest number of pmf-pair-outputs (default 10^13)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.lddp import check_lddp

    result = check_lddp(
        load_mechanism(options.algorithm),
        read_users(options.dataset),
        r=options.deletions,
        epsilon=options.epsilon,
        delta=options.delta,
        budget=options.budget,
    )
    if options.json:
        print_json(summary_of(result))
    else:
        print(result.summary())
    return exit_code(result.holds)


def summary_of(result: Any) -> dict[str, Any]:
    """The result as JSON."""
    witness = None
    if result.witness is not None:
        first, second, event = result.witness
        witness = {
            "deleted": [list(first), list(second)],
            "event": sorted((encode(output) for output in event), key=str),
        }
    return {
        "schema_version": 1,
        "algorithm": result.algorithm,
        "engine": result.engine,
        "n_users": result.n_users,
        "r": result.r,
        "delta": fraction_text(result.delta),
        "holds": result.holds,
        "worst_delta": json_bounds(Bounds(result.lower, result.upper)),
        "subsets": result.subsets,
        "pairs": result.pairs,
        "pairs_evaluated": result.pairs_evaluated,
        "witness": witness,
    }
