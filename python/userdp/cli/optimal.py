"""``userdp optimal``: the best private choice of the item of most users, and what no private choice can do."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from userdp.cli.arguments import UsageError, delta, whole
from userdp.cli.rows import Answer, Commands, option
from userdp.display.numbers import bounded
from userdp.exact.numbers import parse_delta

if TYPE_CHECKING:
    from userdp.report import OptimalityCertificate


COMMANDS = Commands()


@COMMANDS.add(
    "optimal",
    "solve for the best private selection",
    "The private choice among --n-items items with the least loss on the worst dataset of --n-users "
    "users, each of whom has one item; or, with --agreement, how likely every private choice misses an item that "
    "users have with this probability. Both sides are certified: the loss of a mechanism, and a bound below which "
    "none is. Needs highspy (pip install 'userdp[optimal]'); userdp verify does not.",
    "userdp optimal --n-users 40 --n-items 4 --epsilon 1 --certificate best.json\n"
    "userdp verify best.json\n"
    "userdp optimal --n-users 15 --n-items 1024 --epsilon 1 --agreement 0.9 --json",
    option("--n-users", whole(1), "users, each with one item", required=True),
    option("--n-items", whole(1), "items to choose from", required=True),
    "--epsilon!",
    option("--delta", delta, "0 (default), or a probability from 1e-8 on", default="0"),
    option(
        "--loss",
        ("regret", "error"),
        "how many more users the winner has (default), or whether the choice is no winner",
    ),
    option("--agreement", delta, "the probability with which each user has the common item", metavar="P"),
    option("--max-constraints", whole(1), "the largest program that is solved"),
    option("--certificate", Path, "write the proof, for userdp verify", metavar="FILE"),
    "--json",
)
def optimal(options: argparse.Namespace) -> Answer:
    """Run the command."""
    if options.agreement is not None and options.loss is not None:
        raise UsageError("--loss is about the worst dataset, and --agreement about users drawn at random: give one")
    found = _solved(options)
    what = "loss on the worst dataset" if options.agreement is None else "probability to miss the common item"
    bound = bounded(max(found.lower_bound, Fraction(0)), "down", 9)
    return Answer(
        f"{what}: {bounded(found.value, digits=9)} by the best mechanism that was found\n"
        f"certified: none is below {bound} (gap {found.gap:.1e})",
        found,
    )


def _solved(options: argparse.Namespace) -> OptimalityCertificate:
    from userdp.optimal import OptimalSelection, agreement_certificate

    common = {name: getattr(options, name) for name in ("n_users", "n_items", "epsilon", "delta")}
    if options.max_constraints is not None:
        common["max_constraints"] = options.max_constraints
    if options.agreement is not None:
        return agreement_certificate(agreement=parse_delta(options.agreement, "agreement"), **common)
    return OptimalSelection(loss=options.loss or "regret", **common).certificate
