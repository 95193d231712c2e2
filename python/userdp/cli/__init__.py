"""The command line: ``userdp`` and ``python -m userdp``.

Results go to stdout, progress and errors to stderr. ``userdp --help`` lists the exit codes, and each command's
``--help`` its options with examples.
"""

from __future__ import annotations

import argparse
import dis
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from userdp.cli import commands, rows
from userdp.cli.arguments import Parser, UsageError, commands_of, options_of, require_writable
from userdp.exceptions import BudgetError

__all__ = ["main"]

_PACKAGE = Path(__file__).parent.parent
EXIT_CODES = """\
exit codes:
  0    the claim is established
  1    the claim is refuted; for demo, a verdict is not the expected one; for plan, more
       people are needed than there are
  2    bad input: arguments, files, or a mechanism that is none
  3    refused for budget, or because checking takes too long (verify)
  4    undetermined: within a declared pmf_error, by the bounds that were found (compose), since what can only be
       run is never acquitted (audit-samples, audit-one-run, audit-time), or as no method can be planned (plan)
  5    not established: a sampled report, or a check without the mechanism or of a part (audit, verify)
  6    the report is wrong: it contradicts itself or the mechanism (verify)
  70   an error of the program
  130  interrupted
  141  output closed
delstab leaves with 0 when it answers and when it refuses."""


class _Version(argparse.Action):
    """Prints the installed version, which is looked up when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"userdp {version('userdp')}")
        parser.exit()


def _parser(command: str) -> Parser:
    """The parser of all commands; of verify alone for it, which loads nothing that the others need."""
    parser = Parser(
        prog="userdp",
        description="Exact, certified answers to user-level differential privacy questions. Each command has its own "
        "--help, with examples.",
        epilog=EXIT_CODES,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    known = parser.add_subparsers(dest="command", required=True, metavar="command")
    if command == "verify":
        commands.COMMANDS["verify"].add_to(known)
        return parser
    from userdp.cli import certificate, completion, compose, csv_files, demo, guesses, optimal, plan, sensitivity, table

    chapters = (commands, sensitivity, guesses, compose, optimal, plan, certificate, table, csv_files, demo, completion)
    for chapter in chapters:
        for row in chapter.COMMANDS.values():
            row.add_to(known)
    known.choices["completion"].set_defaults(parser=parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``--help`` and ``--version`` raise SystemExit, as usual.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program's name; ``sys.argv`` by default.

    Returns
    -------
    int
        The exit code.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the terminal cannot show is no error of the program
        sys.stdout.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else arguments
    parser, options = _parser(words[0] if words else ""), argparse.Namespace(command=None)
    try:
        options = parser.parse_args(words)
        for name in ("certificate", "html", "save"):
            if isinstance(path := getattr(options, name, None), Path):
                require_writable(path, name)
        code: int = options.run(options)
    except KeyboardInterrupt:
        print("userdp: interrupted", file=sys.stderr)
        return rows.EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has seen enough; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return rows.EXIT_PIPE_CLOSED
    except BudgetError as error:
        print(f"userdp: refused: {error}", file=sys.stderr)
        return rows.EXIT_BUDGET
    except BaseException as error:
        if isinstance(error, SystemExit) and options.command is None:  # --help and --version
            raise
        if is_refusal(error):
            print(f"userdp: error: {_with_option(str(error), parser, options.command)}", file=sys.stderr)
            return rows.EXIT_USAGE
        # A crash must not look like a verdict, and neither must a mechanism that ends the program.
        print(f"userdp: unexpected {type(error).__name__}: {error}", file=sys.stderr)
        return rows.EXIT_UNEXPECTED
    return code


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that the input is bad, and is no failure of the program.

    One about a file by name does. Others do if a ``raise`` statement of this package raised them, as those that name an
    argument; a TypeError from adding None to 1 does not.
    """
    if isinstance(error, OSError):
        return error.filename is not None
    if isinstance(error, UsageError):
        return True
    if not isinstance(error, (ValueError, TypeError, ImportError, RuntimeError)) or isinstance(error, RecursionError):
        return False
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    raised = dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
    return raised and _PACKAGE in Path(code.co_filename).parents


def _with_option(message: str, parser: Parser, command: str | None) -> str:
    """The message of a library call, which begins with an argument's name, with the option that gave it."""
    if command is None:
        return message
    for action in options_of(commands_of(parser)[command]):
        name = "r" if action.dest == "deletions" else action.dest
        if action.option_strings and re.match(rf"{name}\b", message):
            return action.option_strings[0] + message[len(name) :]
    return message
