"""Running a function on small tables, each once, and what is refused while that is done.

A function under audit is other people's code: it may hang, draw noise, remember earlier calls, or write to its input.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn, TypeVar

from userdp.algorithms.outputs import (
    EMPTY,
    RAISES,
    Change,
    Output,
    UnreadableOutput,
    change_between,
    materialized,
    output_of,
    raised,
)
from userdp.algorithms.processes import Fresh, NotAsked
from userdp.algorithms.small_tables import Row, TableMaker, code_of_rows, same_content
from userdp.audit.fresh import remade
from userdp.audit.worlds import Entries
from userdp.exceptions import BudgetError, NotDeterministicError

Result = TypeVar("Result")
_POLL_SECONDS = 0.1
LACKS = ("FileNotFoundError", "ModuleNotFoundError", "ImportError", "NotADirectoryError", "PermissionError")
"""What a function raises where something of its own is not in the empty folders."""


class _Stopped(BaseException):
    """Ends a call that takes too long, where Python can."""


class Runner:
    """Runs a function on tables, and remembers the outputs.

    Attributes
    ----------
    calls : int
        How often the function was called.
    answered : bool
        Whether it ever returned without an exception.
    says_something : bool
        Whether an output ever held a number or a text.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        maker: TableMaker,
        rows_of: Callable[[Entries], list[Row]],
        keys: Sequence[str] | None,
        missing_is_zero: bool,
        compare: str,
    ) -> None:
        self.calls, self.answered, self.says_something = 0, False, False
        self.first_error: BaseException | None = None
        self.outputs: list[Output] = []
        self._compare = compare
        self.started: float | None = None
        self.seconds = 0.0
        self.stopped = False
        self.current: Entries = ()
        self._at_first = remade(function)
        self._function, self._maker, self._keys, self._missing = function, maker, keys, missing_is_zero
        self.rows_of = rows_of
        self._memo: dict[Entries, int] = {}
        self._ids: dict[Hashable, int] = {}
        self._changes: dict[tuple[int, int], Change] = {}

    def output(self, entries: Entries) -> int:
        """The number of the output on a table; equal outputs have equal numbers."""
        found = self._memo.get(entries)
        if found is None:
            found = self._memo[entries] = self.fresh(entries)
        return found

    def fresh(self, entries: Entries, table: Any = None, function: Callable[[Any], Any] | None = None) -> int:
        """The same, run again; on a table given in another form, or by another function, where there is one."""
        if self.stopped:
            raise _Stopped
        made = self._made(entries) if table is None else table
        self.calls += 1
        self.current = entries
        self.started = time.perf_counter()
        output = None
        try:
            value = materialized((self._function if function is None else function)(made))
        except (Exception, SystemExit) as error:
            if self.first_error is None:
                self.first_error = error
            output = raised(error)
        finally:
            self.seconds += time.perf_counter() - self.started
            self.started = None
        if output is None:
            output = self._read(value, entries)
        identity = output.identity(self._compare)
        number = self._ids.get(identity)
        if number is None:
            number = self._ids[identity] = len(self.outputs)
            self.outputs.append(output)
            if output.form != RAISES:
                self.answered = True
                self.says_something |= any(entry not in ("nothing", EMPTY) for entry in output.entries.values())
        return number

    def _made(self, entries: Entries) -> Any:
        try:
            return self._maker.table(self.rows_of(entries))
        except Exception as error:
            why = str(error).partition("\n")[0]
            raise ValueError(
                f"no frame={self._maker.layout!r} can be made of the rows {self.rows_of(entries)!r:.200}: "
                f"{type(error).__name__}: {why}; list other values in alphabets, schema or ids"
            ) from error

    def _read(self, value: Any, entries: Entries) -> Output:
        # What fails here is the reading: counted as an exception of the function, it would hide differences.
        try:
            return output_of(value, self._keys)
        except UnreadableOutput as error:
            raise ValueError(f"{error} (on the table {self.shown(entries)})") from None
        except Exception as error:
            raise ValueError(
                f"what the function returns on the table {self.shown(entries)} cannot be read, {type(error).__name__}: "
                f"{error}; return numbers, or mappings, sequences or frames of them"
            ) from error

    def change(self, one: int, other: int) -> Change:
        """How far two outputs are apart."""
        pair = (one, other) if one < other else (other, one)
        found = self._changes.get(pair)
        if found is None:
            found = change_between(
                self.outputs[one], self.outputs[other], missing_is_zero=self._missing, compare=self._compare
            )
            self._changes[pair] = found
        return found

    def shown(self, entries: Entries) -> str:
        """A table as Python that makes it."""
        return code_of_rows(self._maker, self.rows_of(entries))

    def require_same(self, entries: Entries, when: str) -> None:
        """Refuse a function that gives another output on the same table."""
        self._require(entries, self.fresh(entries), when)

    def require_forgetful(self, entries: Entries) -> None:
        """Refuse a function that gives another output as its very first one."""
        self._require(entries, self.fresh(entries, function=remade(self._at_first)), "as its first call")

    def _require(self, entries: Entries, after: int, when: str) -> None:
        before = self.output(entries)
        if before != after:
            first, second = _short(self.outputs[before]), _short(self.outputs[after])
            if self.outputs[before].identity("values") == self.outputs[after].identity("values"):
                second += " in another form (sort the rows, or leave form out with compare='values')"
            self._refuse(entries, first, when, second)

    def _refuse(self, entries: Entries, first: str, when: str, second: str) -> NoReturn:
        raise NotDeterministicError(
            f"the function is not deterministic: on the table {self.shown(entries)} it gave {first} and, {when}, "
            f"{second}. Turn its noise off, or fix its seed inside the function; what one call leaves behind must not "
            "change the next"
        )

    def compared_in(self, fresh: Fresh, tables: Sequence[Entries], call_seconds: float | None) -> None:
        """Refuse a function that gives other outputs in fresh processes, each of which has an order of its own.

        Values are compared with those of here, and forms among these processes alone, which hash texts alike.
        """
        spent = 5 * len(tables) * self.seconds / max(self.calls, 1)
        rows = {entries: self.rows_of(entries) for entries in tables}
        found = fresh.answers(list(rows.items()), None if call_seconds is None else call_seconds + spent)
        first = {entries: said for (entries, _), said in found[0]}
        for entries, (holds, _, shown) in first.items():
            lacks = holds.startswith(RAISES) and any(name in shown for name in LACKS)
            if lacks and self.outputs[self.output(entries)].form != RAISES:
                raise NotAsked(f"in a fresh process it gives {shown}")
        if self.answered and all(holds.startswith(RAISES) for holds, *_ in first.values()):
            raise NotAsked(f"in a fresh process it only gives {found[0][0][1][2]}")
        for order in found:
            for (entries, _), (holds, form, shown) in order:
                here = self.outputs[self.output(entries)]
                if holds != here.written()[0] or (self._compare == "form" and form != first[entries][1]):
                    when = "in a fresh process, where its folders are empty and other tables came before"
                    self._refuse(entries, _short(here), when, shown + " in another form" * (shown == _short(here)))

    def require_untouched(self, entries: Entries) -> None:
        """Refuse a function that writes to its input."""
        rows = self.rows_of(entries)
        table = self._maker.table(rows)
        self.fresh(entries, table)
        if not same_content(self._maker, table, rows):
            raise ValueError(
                f"the function writes to its input: the table {self.shown(entries)} was changed by the call; let it "
                "work on a copy"
            )

    def other_forms(self, entries: Entries) -> list[tuple[str, int]]:
        """Outputs on the same table stored in other ways, with what was done."""
        forms = self._maker.other_forms(self.rows_of(entries))
        return [(words, self.fresh(entries, make())) for words, make in forms]


class Again:
    """Answers a table again in another process: what the output holds, its form, and both for readers, as texts."""

    def __init__(self, function: Callable[[Any], Any], maker: TableMaker, keys: Sequence[str] | None) -> None:
        self._function, self._maker, self._keys = function, maker, keys

    def __call__(self, question: tuple[Entries, list[Row]]) -> tuple[str, str, str]:
        table = self._maker.table(question[1])
        try:
            value = materialized(self._function(table))
        except (Exception, SystemExit) as error:
            output = raised(error)
        else:
            output = output_of(value, self._keys)
        return *output.written(), _short(output)


def _short(output: Output) -> str:
    if output.form == RAISES:
        return f"the exception {output.looks[0][1]:.200}"
    values: Any = output.entries[()] if list(output.entries) == [()] else dict(output.entries)
    return f"{values!r:.200}"


def run_watched(work: Callable[[], Result], runner: Runner, call_seconds: float | None) -> Result:
    """Do the work, and refuse the function when one of its calls takes longer than that.

    The work is in a thread of its own, since a call cannot be watched from inside.
    """
    if call_seconds is None:
        return work()
    box: dict[str, Any] = {}
    done = threading.Event()
    context = contextvars.copy_context()

    def target() -> None:
        try:
            box["result"] = context.run(work)
        except BaseException as error:
            box["error"] = error
        finally:
            done.set()

    thread = threading.Thread(target=target, name="userdp audit", daemon=True)
    thread.start()
    try:
        while not done.wait(_POLL_SECONDS):
            started = runner.started
            if started is not None and time.perf_counter() - started > call_seconds:
                raise BudgetError(
                    f"the function did not return within call_seconds={call_seconds:g} on the table "
                    f"{runner.shown(runner.current)}"
                )
    except BaseException:
        runner.stopped = True
        # Ends loops in Python; compiled code runs on until it returns.
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_Stopped))
        raise
    if "error" in box:
        raise box["error"]
    return box["result"]
