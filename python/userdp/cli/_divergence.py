"""``userdp divergence``: two pmfs compared."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from userdp.cli._common import (
    EXIT_HOLDS,
    add_privacy_arguments,
    exit_code,
    holds_word,
    json_bounds,
    json_float,
    print_json,
)
from userdp.cli._load import parsed_json, read_text

SUFFIXES = (".json", ".csv", ".txt", ".npy")


def add_command(commands: Any) -> None:
    """Add the command to the parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "divergence",
        help="compare two distributions",
        description="Hockey-stick divergences of two distributions in both directions, and with --delta a decided "
        "verdict. A distribution is a list such as 1/2,1/4,1/4 (decimals and fractions are exact) or a .json, .csv, "
        ".txt or .npy file of numbers (.npy floats are taken as the exact numbers they are).",
    )
    parser.add_argument("p", help="first distribution: a list, or a file")
    parser.add_argument("q", help="second distribution: a list, or a file")
    add_privacy_arguments(parser, delta_required=False)
    parser.set_defaults(run=run)


def read_pmf(text: str) -> Any:
    """Read a distribution from a list on the command line or from a file."""
    path = Path(text)
    if path.suffix not in SUFFIXES:
        return [entry.strip() for entry in text.split(",")]
    if path.suffix == ".npy":
        import numpy as np

        try:
            return np.atleast_1d(np.load(path, allow_pickle=False))
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is not an array of numbers: {error}") from None
    content = read_text(path)
    if path.suffix == ".json":
        values = parsed_json(content, str(path), decimals=str)  # which stay exact
        if not isinstance(values, list):
            raise ValueError(f"{path}: expected a JSON list of numbers")
        return values
    return [entry for entry in content.replace(",", " ").split() if entry]


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from userdp.divergence import epsilon_at_delta, hockey_stick_bounds, is_indistinguishable, total_variation

    p, q = read_pmf(options.p), read_pmf(options.q)
    if len(p) != len(q):
        raise ValueError(f"the first distribution has {len(p)} masses and the second {len(q)}; they must match")
    forward, backward = hockey_stick_bounds(p, q, options.epsilon), hockey_stick_bounds(q, p, options.epsilon)
    result: dict[str, Any] = {
        "schema_version": 1,
        "epsilon": str(options.epsilon),
        "hockey_stick_p_q": json_bounds(forward),
        "hockey_stick_q_p": json_bounds(backward),
        "total_variation": json_float(total_variation(p, q)),
    }
    code = EXIT_HOLDS
    if options.delta is not None:
        verdict = is_indistinguishable(p, q, epsilon=options.epsilon, delta=options.delta)
        result |= {
            "delta": options.delta,
            "holds": verdict.holds,
            "event": None if verdict.event is None else list(verdict.event),
            "direction": verdict.direction,
            "decided_by": verdict.decided_by,
            "epsilon_at_delta": json_bounds(epsilon_at_delta(p, q, options.delta)),
        }
        code = exit_code(verdict.holds)
    if options.json:
        print_json(result)
        return code
    print(f"hockey-stick p||q   {_interval(result['hockey_stick_p_q'])}")
    print(f"hockey-stick q||p   {_interval(result['hockey_stick_q_p'])}")
    print(f"total variation     {result['total_variation']}")
    if options.delta is not None:
        print(f"epsilon at delta    {_interval(result['epsilon_at_delta'])}")
        print(f"({options.epsilon}, {options.delta})-indistinguishable: {holds_word(result['holds'])}")
        if not result["holds"]:
            print(f"shown by outputs    {result['event']} ({result['direction']})")
    return code


def _interval(bounds: list[Any]) -> str:
    return str(bounds[0]) if bounds[0] == bounds[1] else f"between {bounds[0]} and {bounds[1]}"
