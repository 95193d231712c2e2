"""The command line: ``userdp`` and ``python -m userdp``.

Results go to stdout, progress and errors to stderr. Exit codes:

===  ==================================================================================================
0    the claim is established
1    the claim is refuted
2    bad input: arguments, files, or a mechanism that is none
3    refused for budget
4    undetermined within a declared pmf_error
5    not established: a sampled report, or a check without the mechanism or of a part (audit, verify)
6    the report is wrong: it contradicts itself or the mechanism (verify)
70   an error of the program
130  interrupted
141  output closed
===  ==================================================================================================

For ``delstab`` 0 means an answer or a refusal, and for ``demo`` 1 a verdict other than the expected one.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from userdp.cli import _audit, _delstab, _demo, _divergence, _lddp, _verify
from userdp.cli._common import EXIT_BUDGET, EXIT_INTERRUPTED, EXIT_PIPE_CLOSED, EXIT_UNEXPECTED, EXIT_USAGE
from userdp.cli._errors import is_refusal
from userdp.exceptions import BudgetError

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    from importlib.metadata import version

    parser = argparse.ArgumentParser(
        prog="userdp",
        description="Exact, certified answers to user-level differential privacy questions.",
        epilog="exit codes: 0 the claim is established, 1 it is refuted, 2 bad input, 3 refused for budget, "
        "4 undetermined within a declared pmf_error, 5 not established (a sampled report, or one that was checked in "
        "part), 6 a wrong report, 70 an error of the program, 130 interrupted",
    )
    parser.add_argument("--version", action="version", version=f"userdp {version('userdp')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for module in (_divergence, _audit, _lddp, _delstab, _verify, _demo):
        module.add_command(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program's name; ``sys.argv`` by default.

    Returns
    -------
    int
        The exit code.
    """
    options = _parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is no error of the program
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        print("userdp: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE_CLOSED
    except BudgetError as error:
        print(f"userdp: refused: {error}", file=sys.stderr)
        return EXIT_BUDGET
    except BaseException as error:
        if is_refusal(error):
            print(f"userdp: error: {error}", file=sys.stderr)
            return EXIT_USAGE
        # A crash must not look like a verdict, and neither must a mechanism that ends the program.
        print(f"userdp: unexpected {type(error).__name__}: {error}", file=sys.stderr)
        return EXIT_UNEXPECTED
    return code
