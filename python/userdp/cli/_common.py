"""Exit codes, arguments that several commands share, and JSON output."""

from __future__ import annotations

import argparse
import json
import math
import re
from typing import Any

from userdp.exact.numbers import Bounds, LogRatio, parse_level

EXIT_HOLDS, EXIT_VIOLATED, EXIT_USAGE, EXIT_BUDGET, EXIT_UNDETERMINED = 0, 1, 2, 3, 4
EXIT_NOT_ESTABLISHED, EXIT_WRONG_REPORT = 5, 6
EXIT_UNEXPECTED = 70  # an internal failure, as in sysexits.h
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141  # what a shell reports for a program that a closed pipe ended

_LOG_RATIO = re.compile(r"ln\(\s*(\d+)\s*(?:/\s*(\d+)\s*)?\)")


def exit_code(holds: bool | None) -> int:
    """The exit code of a verdict."""
    return EXIT_UNDETERMINED if holds is None else EXIT_HOLDS if holds else EXIT_VIOLATED


def epsilon_argument(text: str) -> str | LogRatio:
    """Read epsilon from the command line: a decimal, a fraction, or ln(a/b); exactly."""
    found = _LOG_RATIO.fullmatch(text.strip())
    try:
        if found:
            return LogRatio(int(found[1]), int(found[2] or 1))
        parse_level(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def add_privacy_arguments(parser: argparse.ArgumentParser, *, delta_required: bool) -> None:
    """Add --epsilon, --delta and --json."""
    parser.add_argument(
        "--epsilon", type=epsilon_argument, required=True, help="privacy parameter: 0.5, 1/2 or ln(3/2), taken exactly"
    )
    parser.add_argument(
        "--delta", required=delta_required, help="probability in [0, 1]: 1e-6 or 1/1000000, taken exactly"
    )
    add_json_argument(parser)


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")


def json_float(value: float) -> float | str:
    """A float as JSON can carry it."""
    return value if math.isfinite(value) else str(value)


def json_bounds(bounds: Bounds) -> list[float | str]:
    """[lower, upper]."""
    return [json_float(bounds.lower), json_float(bounds.upper)]


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object."""
    print(json.dumps(content, indent=2, allow_nan=False))


def holds_word(holds: bool | None) -> str:
    """A verdict in a word."""
    return "UNDETERMINED" if holds is None else "HOLDS" if holds else "VIOLATED"
