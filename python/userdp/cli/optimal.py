"""``userdp optimal``: the best private choice of the item of most users, and what no private choice can do."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli.arguments import UsageError, add_json_option, delta, epsilon, whole
from userdp.cli.rows import print_json
from userdp.display.numbers import bounded
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import parse_delta

if TYPE_CHECKING:
    from userdp.report import OptimalityCertificate


def add_optimal(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "optimal",
        help="solve for the best private selection",
        description="The private choice among --n-items items with the least loss on the worst dataset of --n-users "
        "users, each of whom has one item; or, with --agreement, how likely every private choice misses an item that "
        "users have with this probability. Both sides are certified: the loss of a mechanism, and a bound below which "
        "none is. Needs highspy (pip install 'userdp[optimal]'); userdp verify does not.",
        epilog="examples:\n"
        "  userdp optimal --n-users 40 --n-items 4 --epsilon 1 --certificate best.json\n"
        "  userdp verify best.json\n"
        "  userdp optimal --n-users 15 --n-items 1024 --epsilon 1 --agreement 0.9 --json",
    )
    parser.add_argument("--n-users", type=whole(1), required=True, help="users, each with one item")
    parser.add_argument("--n-items", type=whole(1), required=True, help="items to choose from")
    parser.add_argument(
        "--epsilon", type=epsilon, required=True, help="privacy parameter: 0.5, 1/2 or ln(3/2), exactly"
    )
    parser.add_argument("--delta", type=delta, default="0", help="0 (default), or a probability from 1e-8 on")
    parser.add_argument(
        "--loss",
        choices=("regret", "error"),
        default=None,
        help="how many more users the winner has (default), or whether the choice is no winner",
    )
    parser.add_argument(
        "--agreement", type=delta, metavar="P", help="the probability with which each user has the common item"
    )
    parser.add_argument("--max-constraints", type=whole(1), help="the largest program that is solved")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write the proof, for userdp verify")
    add_json_option(parser)
    parser.set_defaults(run=optimal)


def optimal(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.agreement is not None and options.loss is not None:
        raise UsageError("--loss is about the worst dataset, and --agreement about users drawn at random: give one")
    found = _solved(options)
    if options.certificate is not None:
        options.certificate.write_text(found.to_json(), encoding="utf-8")
    if options.json:
        print_json(
            {
                "schema_version": 1,
                "world": dict(found.world),
                "epsilon": options.epsilon,
                "delta": fraction_text(found.delta),
                "objective": found.objective,
                "value": float(found.value),
                "lower_bound": float(found.lower_bound),
                "gap": found.gap,
                "unknowns": len(found.table),
                "digest": found.digest,
            }
        )
        return 0
    what = "loss on the worst dataset" if options.agreement is None else "probability to miss the common item"
    print(f"{what}: {bounded(found.value, digits=9)} by the best mechanism that was found")
    print(f"certified: none is below {bounded(max(found.lower_bound, Fraction(0)), 'down', 9)} (gap {found.gap:.1e})")
    return 0


def _solved(options: argparse.Namespace) -> OptimalityCertificate:
    from userdp.optimal import OptimalSelection, agreement_certificate

    common = {name: getattr(options, name) for name in ("n_users", "n_items", "epsilon", "delta")}
    if options.max_constraints is not None:
        common["max_constraints"] = options.max_constraints
    if options.agreement is not None:
        return agreement_certificate(agreement=parse_delta(options.agreement, "agreement"), **common)
    return OptimalSelection(loss=options.loss or "regret", **common).certificate
