"""Which exceptions are answers to bad input, and which are failures of the program."""

from __future__ import annotations

import dis
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def is_refusal(error: BaseException) -> bool:
    """Whether an exception says that the input is bad.

    One about a file by name does. Others do if a ``raise`` statement of this package raised them, as those that name an
    argument; a TypeError from adding None to 1 does not.
    """
    if isinstance(error, OSError):
        return error.filename is not None
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
