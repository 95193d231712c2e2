"""``userdp delstab``: what DelStab does on one dataset, or one private release from it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from userdp.cli._common import EXIT_HOLDS, add_privacy_arguments, json_bounds, json_float, print_json
from userdp.cli._load import load_mechanism, read_users
from userdp.exact.encoding import encode, fraction_text

NOT_PRIVATE = "Diagnostic, NOT private: what follows is computed from the data without noise. Do not publish it."
CALIBRATIONS = ("optimal", "tight", "paper")
RELATIONS = ("auto", "exact", "distance")


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "delstab",
        help="make an algorithm private for users: explain a dataset, or release one output",
        description="DelStab makes any finite algorithm (epsilon, delta)-DP for the replacement of a user: it leaves "
        "users out, checks that nobody's presence matters on the rest, and answers or refuses. By default it explains "
        "what would happen on this dataset, and why. Only --release is private; the explanation and --law show the "
        "data. Exit code 0 whether it answers or refuses.",
    )
    parser.add_argument("algorithm", help="module:name or path/to/file.py:name of a FiniteAlgorithm")
    parser.add_argument(
        "--dataset", type=Path, required=True, help="JSON file: a list of users, each a list of examples"
    )
    add_privacy_arguments(parser, delta_required=True)
    parser.add_argument("--calibration", choices=CALIBRATIONS, default="optimal", help="default optimal")
    parser.add_argument("--relation", choices=RELATIONS, default="auto", help="between kept sets (default auto)")
    parser.add_argument("--max-types", type=int, help="public bound on the distinct users of a stable pool")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--explain", action="store_true", help="say why it refuses or not; NOT private (the default)")
    action.add_argument("--release", action="store_true", help="draw one output, privately; BOTTOM is a refusal")
    action.add_argument("--law", action="store_true", help="the probabilities of all outputs; NOT private")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.delstab import DelStab

    delstab = DelStab(
        load_mechanism(options.algorithm),
        epsilon=options.epsilon,
        delta=options.delta,
        calibration=options.calibration,
        relation=options.relation,
        max_types=options.max_types,
    )
    people = read_users(options.dataset)
    action = _release if options.release else _law if options.law else _explain
    action(delstab, people, as_json=options.json)
    return EXIT_HOLDS


def _release(delstab: Any, people: Any, *, as_json: bool) -> None:
    from userdp.delstab import BOTTOM

    # All outputs are put into words before the draw, so that none of them can fail afterwards.
    words = {output: _output(output) if as_json else str(output) for output in delstab.outputs}
    drawn = delstab.release(people)
    if as_json:
        print_json({"schema_version": 1, "private": True, "refused": drawn is BOTTOM, "output": words[drawn]})
    else:
        print(words[drawn])


def _explain(delstab: Any, people: Any, *, as_json: bool) -> None:
    explanation = delstab.explain(people)
    if not as_json:
        print(f"{NOT_PRIVATE}\n{explanation}")
        return
    worst = explanation.worst_divergence
    print_json(
        {
            "schema_version": 1,
            "private": False,
            "algorithm": delstab.name,
            "calibration": delstab.calibration.name,
            "n_users": explanation.n_users,
            "deletions": explanation.deletions,
            "engine": explanation.engine,
            "relation": explanation.relation,
            "smallest_stable_size": explanation.smallest_stable_size,
            "largest_size": explanation.largest_size,
            "refusal_probability": json_float(float(explanation.refusal_probability)),
            "exact_refusal_probability": fraction_text(explanation.refusal_probability),
            "worst": explanation.worst,
            "worst_divergence": None if worst is None else json_bounds(worst),
            "allowed_divergence": fraction_text(explanation.allowed_divergence),
            "spread": explanation.spread,
            "distance": explanation.distance,
            "advice": list(explanation.advice),
        }
    )


def _law(delstab: Any, people: Any, *, as_json: bool) -> None:
    from userdp.delstab import PmfBounds

    law = delstab.output_distribution(people)
    exact: list[str] | None = None
    if isinstance(law, PmfBounds):
        bounds = list(zip(law.lower.tolist(), law.upper.tolist(), strict=True))
    else:
        masses = law.fractions()
        exact = list(map(fraction_text, masses))
        bounds = [(float(mass), float(mass)) for mass in masses]
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "private": False,
                "algorithm": delstab.name,
                "exact": exact is not None,
                "outputs": list(map(_output, delstab.outputs)),
                "probabilities": [list(pair) for pair in bounds] if exact is None else exact,
            }
        )
        return
    print(NOT_PRIVATE)
    for output, (lower, upper) in zip(delstab.outputs, bounds, strict=True):
        between = "" if exact is not None else f" (between {lower!r} and {upper!r})"
        print(f"{output}: {upper:.6g}{between}")


def _output(output: Any) -> Any:
    """An output as JSON; a refusal is null, and told from an output None by its place or by `refused`."""
    from userdp.delstab import BOTTOM

    return None if output is BOTTOM else encode(output)
