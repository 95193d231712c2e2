"""``userdp audit-samples``, ``audit-one-run`` and ``audit-time``: audits of what can only be run."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from userdp.cli.arguments import (
    UsageError,
    add_json_option,
    add_privacy_options,
    content,
    delta,
    load_mechanism,
    numbers_of,
    universe,
    whole,
)
from userdp.cli.commands import exit_code, print_json, write_report
from userdp.display.numbers import level_text
from userdp.exact.encoding import fraction_text
from userdp.exact.numbers import parse_delta, parse_level

if TYPE_CHECKING:
    from userdp.report import GuessReport

NEVER = "Exit code 1: the claim is refuted; 4: no violation was shown, which acquits nobody."


def _add_errors(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--alpha", type=delta, default="1e-9", help="probability of a wrong verdict, at most 1/2 (default 1e-9)"
    )
    parser.add_argument(
        "--estimate-alpha", type=delta, default="0.05", help="the same for the printed bound (default 0.05)"
    )


def _add_draws(parser: argparse.ArgumentParser, draws: int, training: int) -> None:
    parser.add_argument("--draws", type=whole(1), default=draws, help=f"most draws of the test (default {draws:,})")
    parser.add_argument(
        "--training", type=whole(2), default=training, help=f"draws to choose what is tested (default {training:,})"
    )
    _add_errors(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the report as a page")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="write the report as JSON, for userdp verify")


def add_samples(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit-samples",
        help="audit a mechanism that can only be run, by its draws",
        description="Run mechanism(dataset) on neighboring datasets that coins choose, and guess the coins: a lower "
        "bound of epsilon, valid at any moment. A dataset is a list of users, each a list of examples: all pairs of a "
        f"small --universe, or those of a --pairs file. {NEVER}",
        epilog="examples:\n"
        "  userdp audit-samples count.py:noisy_count --universe 0,1 --n-users 2 --epsilon 0.1 --rng numpy\n"
        "  userdp audit-samples count.py:noisy_count --pairs pairs.json --epsilon 1 --delta 1e-6 --html audit.html",
    )
    parser.add_argument("mechanism", help="module:name or path/to/file.py:name of a function")
    add_privacy_options(parser, delta_required=False)
    parser.add_argument("--universe", type=universe, help="possible examples: 0,1 or a JSON list")
    parser.add_argument("--n-users", type=whole(1), help="number of users")
    parser.add_argument(
        "--n-examples", type=numbers_of, default=1, help="examples per user (default 1), or several such as 0,1,2"
    )
    parser.add_argument(
        "--pairs", type=content, metavar="FILE", help="JSON file: a list of pairs of datasets, in place of --universe"
    )
    parser.add_argument("--neighbors", choices=("replace", "add-remove"), default="replace")
    parser.add_argument(
        "--rng", choices=("random", "numpy"), help="call mechanism(dataset, rng) with a generator of this kind"
    )
    _add_draws(parser, 200_000, 20_000)
    parser.set_defaults(run=samples)


def samples(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.audit import audit_samples, neighboring_pairs

    pairs: Any
    if options.pairs is not None:
        if options.universe is not None or options.n_users is not None:
            raise UsageError("--pairs goes without --universe and --n-users")
        try:
            pairs = [[_dataset(side) for side in pair] for pair in json.loads(options.pairs)]
        except (TypeError, ValueError):
            raise UsageError("--pairs must be a JSON list of pairs of datasets, each a list of lists") from None
    elif options.universe is None or options.n_users is None:
        raise UsageError("give --universe and --n-users, or --pairs")
    else:
        pairs = neighboring_pairs(
            options.universe, n_users=options.n_users, n_examples=options.n_examples, neighbors=options.neighbors
        )
    report = audit_samples(
        load_mechanism(options.mechanism),
        pairs,
        epsilon=options.epsilon,
        delta=options.delta or 0,
        draws=options.draws,
        training=options.training,
        alpha=options.alpha,
        estimate_alpha=options.estimate_alpha,
        rng=options.rng,
        neighbors=options.neighbors,
    )
    return _reported(report, options)


def _dataset(users: Any) -> tuple[Any, ...]:
    if not isinstance(users, list) or not all(isinstance(user, list) for user in users):
        raise ValueError
    return tuple(map(tuple, users))


def add_one_run(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit-one-run",
        help="what guesses about canary users of one run prove",
        description="Bound epsilon from below by one run: fair coins put --canaries users in or out, or chose one of "
        "two versions of each; --guesses coins, a number fixed before, were guessed from what came out, and --right of "
        f"them rightly. How many rows a canary has does not matter. {NEVER}",
        epilog="examples:\n"
        "  userdp audit-one-run --canaries 256 --guesses 128 --right 128 --epsilon 1\n"
        "  userdp audit-one-run --canaries 500 --guesses 100 --right 100 --epsilon 3 --delta 1e-5 --alpha 0.01",
    )
    parser.add_argument("--canaries", type=whole(1), required=True, help="users for whom a coin was tossed")
    parser.add_argument("--guesses", type=whole(1), required=True, help="coins that were guessed")
    parser.add_argument("--right", type=whole(0), required=True, help="guesses that were right")
    add_privacy_options(parser, delta_required=False)
    _add_errors(parser)
    parser.set_defaults(run=one_run)


def one_run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.audit import one_run_epsilon
    from userdp.exact.epsilon import upper

    most = options.delta or "0"
    verdict, estimate = (
        parse_level(one_run_epsilon(options.canaries, options.guesses, options.right, delta=most, alpha=alpha))
        for alpha in (options.alpha, options.estimate_alpha)
    )
    claimed = upper(parse_level(options.epsilon))
    refuted = verdict.ratio > claimed
    if options.json:
        print_json(
            {
                "schema_version": 1,
                "epsilon": options.epsilon,
                "delta": fraction_text(parse_delta(most)),
                "holds": False if refuted else None,
                "alpha": options.alpha,
                "epsilon_above": float(verdict),
                "estimate_alpha": options.estimate_alpha,
                "estimate_epsilon_above": float(estimate),
            }
        )
    else:
        only = f"REFUTED AT AN ERROR OF {options.estimate_alpha} ONLY"
        open_word = only if estimate.ratio > claimed else "NO VIOLATION SHOWN"
        print(f"epsilon {options.epsilon}, delta {most}: {'VIOLATED' if refuted else open_word}")
        for alpha, level in ((options.alpha, verdict), (options.estimate_alpha, estimate)):
            print(f"epsilon is more than {level_text(level, 'down')[0]}, but for an error of probability {alpha}")
    return exit_code(False if refuted else None)


def add_time(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit-time",
        help="what the time of a command tells about its input",
        description="Start a command again and again with one of two inputs on its standard input, which coins choose, "
        f"and guess the coins by its time. {NEVER}",
        epilog="example:\n  userdp audit-time --inputs low.json high.json -- ./release --stdin",
    )
    parser.add_argument(
        "--inputs", type=content, nargs=2, required=True, metavar="FILE", help="two files of the same length"
    )
    _add_draws(parser, 2000, 400)
    add_json_option(parser)
    parser.add_argument("words", nargs="+", metavar="word", help="the command and its words, after --")
    parser.set_defaults(run=timed)


def timed(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.audit import audit_time

    report = audit_time(
        options.words,
        inputs=(options.inputs[0], options.inputs[1]),
        draws=options.draws,
        training=options.training,
        alpha=options.alpha,
        estimate_alpha=options.estimate_alpha,
    )
    return _reported(report, options)


def _reported(report: GuessReport, options: argparse.Namespace) -> int:
    """Write and print the report, and give the exit code."""
    write_report(report, options)
    if options.json:
        advantage = report.advantage
        print_json(
            {
                "schema_version": 1,
                "mechanism": report.mechanism,
                "holds": report.holds,
                "alpha": float(report.verdict.alpha),
                "epsilon_above": float(report.verdict.epsilon),
                "estimate_alpha": float(report.estimate.alpha),
                "estimate_epsilon_above": float(report.estimate.epsilon),
                "advantage_above": None if advantage is None else float(advantage),
                "right": report.verdict.right,
                "wrong": report.verdict.wrong,
                "none": report.verdict.none,
                "runs": report.runs,
                "raised": report.raised,
                "about": report.about,
            }
        )
    else:
        print(report.summary())
    return exit_code(report.holds)
