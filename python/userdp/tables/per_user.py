"""One user's rows through a function of Python: what it gets, and how what it returns is read.

The function is trusted code. It is given one user's rows and nothing else, in an order that is a function of their
content, and its result is read value by value against a public schema. But it runs in this process: one that writes to
a global, a file or a cache carries a user's rows to the next user, and nothing here can see that.
"""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from userdp.tables.schema import Cells, ColumnType
from userdp.tables.values import Plain, canonical_value, plain_values
from userdp.users import values as raw

Row: TypeAlias = "dict[str, Plain | None]"

_ONE_AT_A_TIME = threading.RLock()  # the streams of a process are those of all its threads


def rows_of(cells: Mapping[str, Cells], schema: Mapping[str, ColumnType]) -> list[Row]:
    """Return the rows of some columns, as plain Python values by name, None where there is none.

    Parameters
    ----------
    cells : mapping from str to Cells
        As the types of the schema read them, all of the same number of rows.
    schema : mapping from str to column type
        Their types.
    """
    columns = [plain_values(column, schema[name]) for name, column in cells.items()]
    return [dict(zip(cells, row, strict=True)) for row in zip(*columns, strict=True)]


def canonical_order(rows: Sequence[Mapping[str, Plain | None]]) -> list[Row]:
    """Return new rows with the same values, in an order that their content alone decides.

    Rows are compared by their columns in order of name; no value comes first, and integers come before texts.

    Examples
    --------
    >>> canonical_order([{"year": 2001, "job": "cook"}, {"year": None, "job": "clerk"}, {"year": 1999, "job": "cook"}])
    [{'year': None, 'job': 'clerk'}, {'year': 1999, 'job': 'cook'}, {'year': 2001, 'job': 'cook'}]
    """
    fresh = [{name: canonical_value(value) for name, value in row.items()} for row in rows]
    return sorted(fresh, key=lambda row: [_rank(row[name]) for name in sorted(row)])


def _rank(value: Any) -> tuple[Any, ...]:
    # Two values of one column differ in type only where a category lists both integers and texts.
    return (0,) if value is None else (1, isinstance(value, str), value)


def apply_per_user(
    function: Callable[[list[Row]], Any],
    returns: Mapping[str, ColumnType],
    rows: Sequence[Mapping[str, Plain | None]],
) -> list[Row]:
    """Return what a function makes of one user's rows, read against a schema.

    **The function is trusted code.** A promise of privacy for users holds if its result is a function of the rows that
    it is given. It gets no other user's rows and no state. But it is not isolated: a global, a default argument that it
    changes, a cache, a file, a random generator with a seed, all carry what it saw to the next user. Output other than
    through `sys.stdout` and `sys.stderr`, such as a logger that was set up before or a subprocess, shows. How long it
    takes shows too.

    Parameters
    ----------
    function : callable
        Called with a list of dicts, one for each row of the user in canonical order: by the values of the columns in
        order of their names, so that the order in which rows arrived says nothing. For another order it sorts. The list
        and the dicts are its own. It returns a dict, a list or tuple of dicts, or None for no row.
    returns : Schema
        The columns of its rows, of which values are plain Python's or NumPy's. A value that a column cannot hold, or
        that is missing, becomes the default of the column's type, or none. Entries of other names are left out.
    rows : sequence of mapping from str to value
        The rows of one user, in any order, None where there is no value.

    Returns
    -------
    list of dict
        In the order in which the function returned them, with the columns of `returns`. No rows where the function
        raised, called `sys.exit`, or returned something else; KeyboardInterrupt alone passes. Nothing is shown, as
        both the error and the fact of it are the user's.

    Raises
    ------
    TypeError
        If the function is not callable.

    Examples
    --------
    >>> from userdp.tables.schema import Schema, integer, number
    >>> def first_and_last(rows):
    ...     rows.sort(key=lambda row: row["year"])
    ...     return {"raise": rows[-1]["pay"] - rows[0]["pay"], "years": len(rows)}
    >>> rows = [{"year": 2001, "pay": 9.0}, {"year": 1999, "pay": 7.5}]
    >>> apply_per_user(first_and_last, Schema({"raise": number(0, 5), "years": integer(1, 50)}), rows)
    [{'raise': 1.5, 'years': 2}]
    """
    if not callable(function):
        raise TypeError(f"function must be callable; got a {type(function).__name__}")
    given = canonical_order(rows)
    try:
        with _discarded_output():
            result = function(given)
            found = _dicts_of(result)
    except KeyboardInterrupt:
        raise
    except BaseException:  # SystemExit too: which users make the function exit is theirs
        return []
    return _read(found, returns)


@contextlib.contextmanager
def _discarded_output() -> Iterator[None]:
    """Leave nothing of what is printed. Threads that print meanwhile lose it, and one waits for another."""
    with (
        _ONE_AT_A_TIME,
        contextlib.redirect_stdout(_Nowhere()),
        contextlib.redirect_stderr(_Nowhere()),
    ):
        yield


class _Nowhere(io.TextIOBase):
    """A stream that forgets."""

    def writable(self) -> bool:
        """Whether it takes text."""
        return True

    def write(self, text: str) -> int:
        """Forget a text."""
        return len(text)


def _dicts_of(result: object) -> list[dict[Any, Any]]:
    """The dicts among what a function returned."""
    rows: Sequence[object] = result if isinstance(result, (list, tuple)) else [result]
    return [dict(row) for row in rows if isinstance(row, dict)]


def _read(found: list[dict[Any, Any]], returns: Mapping[str, ColumnType]) -> list[Row]:
    """Values by the types of their columns; their own methods are not called."""
    if not found:
        return []
    cells = {
        name: declared.read(raw.of_objects([_value_of(row, name) for row in found]), name)
        for name, declared in returns.items()
    }
    return rows_of(cells, returns)


def _value_of(row: dict[Any, Any], name: str) -> object:
    return next((value for key, value in row.items() if type(key) is str and key == name), None)
