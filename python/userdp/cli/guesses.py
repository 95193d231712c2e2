"""``userdp audit-samples``, ``audit-one-run`` and ``audit-time``: audits of what can only be run."""

from __future__ import annotations

import argparse
import json
from typing import Any

from userdp.cli.arguments import UsageError, content, load_mechanism, numbers_of, universe, whole
from userdp.cli.rows import Answer, Commands, exit_code, named, option
from userdp.display.numbers import level_text
from userdp.exact.numbers import parse_delta, parse_level

COMMANDS = Commands()
NEVER = "Exit code 1: the claim is refuted; 4: no violation was shown, which acquits nobody."


@COMMANDS.add(
    "audit-samples",
    "audit a mechanism that can only be run, by its draws",
    "Run mechanism(dataset) on neighboring datasets that coins choose, and guess the coins: a lower "
    "bound of epsilon, valid at any moment. A dataset is a list of users, each a list of examples: all pairs of a "
    f"small --universe, or those of a --pairs file. {NEVER}",
    "userdp audit-samples count.py:noisy_count --universe 0,1 --n-users 2 --epsilon 0.1 --rng numpy\n"
    "userdp audit-samples count.py:noisy_count --pairs pairs.json --epsilon 1 --delta 1e-6 --html audit.html",
    option("mechanism", help="module:name or path/to/file.py:name of a function"),
    "--epsilon! --delta --json",
    option("--universe", universe, "possible examples: 0,1 or a JSON list"),
    "--n-users",
    option("--n-examples", numbers_of, "examples per user (default 1), or several such as 0,1,2", default=1),
    option("--pairs", content, "JSON file: a list of pairs of datasets, in place of --universe", metavar="FILE"),
    "--neighbors",
    option("--rng", ("random", "numpy"), "call mechanism(dataset, rng) with a generator of this kind"),
    "--draws=200000 --training=20000 --alpha --estimate-alpha --html --certificate",
)
def samples(options: argparse.Namespace) -> Answer:
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
        pairs = neighboring_pairs(options.universe, **named(options, "n_users n_examples neighbors"))
    report = audit_samples(
        load_mechanism(options.mechanism),
        pairs,
        epsilon=options.epsilon,
        delta=options.delta or 0,
        **named(options, "draws training alpha estimate_alpha rng neighbors"),
    )
    return Answer.of(report)


def _dataset(users: Any) -> tuple[Any, ...]:
    if not isinstance(users, list) or not all(isinstance(user, list) for user in users):
        raise ValueError
    return tuple(map(tuple, users))


@COMMANDS.add(
    "audit-one-run",
    "what guesses about canary users of one run prove",
    "Bound epsilon from below by one run: fair coins put --canaries users in or out, or chose one of "
    "two versions of each; --guesses coins, a number fixed before, were guessed from what came out, and --right of "
    f"them rightly. How many rows a canary has does not matter. {NEVER}",
    "userdp audit-one-run --canaries 256 --guesses 128 --right 128 --epsilon 1\n"
    "userdp audit-one-run --canaries 500 --guesses 100 --right 100 --epsilon 3 --delta 1e-5 --alpha 0.01",
    option("--canaries", whole(1), "users for whom a coin was tossed", required=True),
    option("--guesses", whole(1), "coins that were guessed", required=True),
    option("--right", whole(0), "guesses that were right", required=True),
    "--epsilon! --delta --json --alpha --estimate-alpha",
)
def one_run(options: argparse.Namespace) -> Answer:
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
    found = {
        "epsilon": options.epsilon,
        "delta": parse_delta(most),
        "holds": False if refuted else None,
        "alpha": options.alpha,
        "epsilon_above": float(verdict),
        "estimate_alpha": options.estimate_alpha,
        "estimate_epsilon_above": float(estimate),
    }
    only = f"REFUTED AT AN ERROR OF {options.estimate_alpha} ONLY"
    open_word = only if estimate.ratio > claimed else "NO VIOLATION SHOWN"
    lines = [f"epsilon {options.epsilon}, delta {most}: {'VIOLATED' if refuted else open_word}"]
    for alpha, level in ((options.alpha, verdict), (options.estimate_alpha, estimate)):
        lines.append(f"epsilon is more than {level_text(level, 'down')[0]}, but for an error of probability {alpha}")
    return Answer("\n".join(lines), found, exit_code(False if refuted else None))


@COMMANDS.add(
    "audit-time",
    "what the time of a command tells about its input",
    "Start a command again and again with one of two inputs on its standard input, which coins choose, "
    f"and guess the coins by its time. {NEVER}",
    "userdp audit-time --inputs low.json high.json -- ./release --stdin",
    option("--inputs", content, "two files of the same length", nargs=2, required=True, metavar="FILE"),
    "--draws=2000 --training=400 --alpha --estimate-alpha --html --certificate --json",
    option("words", help="the command and its words, after --", nargs="+", metavar="word"),
)
def timed(options: argparse.Namespace) -> Answer:
    """Run the command."""
    from userdp.audit import audit_time

    report = audit_time(
        options.words,
        inputs=(options.inputs[0], options.inputs[1]),
        **named(options, "draws training alpha estimate_alpha"),
    )
    return Answer.of(report)
