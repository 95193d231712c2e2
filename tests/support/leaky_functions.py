"""Functions of a table that remember whether their first one had a certain letter, or that show it in how they look.

Every kind of memory comes with every kind of output; each has a twin that keeps, or shows, what is public alone. Run as
``python -m support.leaky_functions`` it audits all of them and counts; with a number N, every N-th of them.
"""

from __future__ import annotations

import contextvars
import functools
import math
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Table = list[dict[str, Any]]
Remember = Callable[[str, int], int]

# --- memories: what the first call gave, for all calls with one name

HELD: dict[str, int] = {}
LOCAL = threading.local()
VARIABLE: contextvars.ContextVar[dict[str, int] | None] = contextvars.ContextVar("first", default=None)


class Holder:
    first: dict[str, int] | None = None


@functools.lru_cache
def cell(name: str) -> list[int]:
    return []


def in_cache(name: str, bit: int) -> int:
    kept = cell(name)
    if not kept:
        kept.append(bit)
    return kept[0]


def in_class(name: str, bit: int) -> int:
    if Holder.first is None:
        Holder.first = {}
    return Holder.first.setdefault(name, bit)


def in_module(name: str, bit: int) -> int:
    place = f"leaky first of {name}"
    if not hasattr(math, place):
        setattr(math, place, bit)
    return int(getattr(math, place))


def in_function(name: str, bit: int) -> int:
    return int(vars(in_function).setdefault(name, bit))


def in_globals(name: str, bit: int) -> int:
    return HELD.setdefault(name, bit)


def in_thread(name: str, bit: int) -> int:
    return int(vars(LOCAL).setdefault(name, bit))


def in_context(name: str, bit: int) -> int:
    known = VARIABLE.get() or {}
    VARIABLE.set({name: bit} | known)
    return known.get(name, bit)


def in_environment(name: str, bit: int) -> int:
    return int(os.environ.setdefault(f"LEAKY {name}", str(bit)))


def in_file(folder: Callable[[], str], name: str, bit: int) -> int:
    path = Path(folder(), f"leaky {name}")
    if not path.exists():
        path.write_text(str(bit))
    return int(path.read_text())


def home() -> str:
    return str(Path.home())


MEMORIES: dict[str, Remember] = {
    "lru_cache in a helper": in_cache,
    "class attribute": in_class,
    "module attribute": in_module,
    "attribute of a function": in_function,
    "globals of a helper": in_globals,
    "thread-local": in_thread,
    "context variable": in_context,
    "environment": in_environment,
    "file in the working folder": partial(in_file, os.getcwd),
    "file in the home folder": partial(in_file, home),
    "file in the temporary folder": partial(in_file, tempfile.gettempdir),
}

# --- outputs: of a bit, and of tables that are not empty


def raised(bit: int) -> Any:
    raise ValueError(f"there are {bit}")


def raised_as(bit: int) -> Any:
    raise (KeyError if bit else LookupError)("nothing")


def caused(bit: int) -> Any:
    try:
        raised(bit)
    except ValueError as error:
        raise RuntimeError("it failed") from error


def frame(bit: int, **options: Any) -> Any:
    import pandas

    return pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=["a", "b"], **options)


def series(bit: int, dtype: str = "float64", name: str = "x") -> Any:
    import pandas

    return pandas.Series([1, 2], index=["a", "b"], dtype=dtype, name=name)


def array(bit: int) -> Any:
    import numpy as np

    return np.array([1, 2], dtype=np.float32 if bit else np.float64)


def noted(bit: int) -> Any:
    made = frame(bit)
    made.attrs["note"] = bit
    return made


def categories(bit: int) -> Any:
    import pandas

    kind = pandas.CategoricalDtype(["a", "b", *["c"] * bit])
    return pandas.Series([1, 2], index=pandas.Index(["a", "b"], dtype=kind))


class Numbers(dict[str, int]):
    pass


def with_attribute(bit: int) -> Any:
    made = Numbers(a=1)
    made.note = bit  # type: ignore[attr-defined]
    return made


OUTPUTS: dict[str, Callable[[int], Any]] = {
    "text of an exception": raised,
    "class of an exception": raised_as,
    "text of what an exception came from": caused,
    "order of keys": lambda bit: dict([("a", 1), ("b", 2)][:: -1 if bit else 1]),
    "order of rows": lambda bit: frame(bit).iloc[:: -1 if bit else 1],
    "order of columns": lambda bit: frame(bit)[["y", "x"] if bit else ["x", "y"]],
    "name of a series": lambda bit: series(bit, name="y" if bit else "x"),
    "name of an index": lambda bit: series(bit).rename_axis("of" if bit else "for"),
    "dtype of a series": lambda bit: series(bit, "float32" if bit else "float64"),
    "dtype of a column": lambda bit: frame(bit).astype({"x": "int64" if bit else "float64"}),
    "dtype of an array": array,
    "categories of an index": categories,
    "attributes of a frame": noted,
    "attribute of a mapping": with_attribute,
    "type of keys": lambda bit: {1.0 if bit else 1: 2},
    "type of a list": lambda bit: (1, 2) if bit else [1, 2],
}
VALUES: dict[str, Callable[[int], Any]] = {"number": lambda bit: 5 * bit, "numbers by key": lambda bit: {"a": 5 * bit}}


def answer(memory: str | None, output: str, right: bool, table: Table) -> Any:
    """The output for the bit that the first table had, or this one where nothing is remembered."""
    bit = 0 if right else int(any(row["town"] == "b" for row in table))
    if memory is not None:
        bit = MEMORIES[memory](f"{memory}, {output}, {right}", bit)
    return {**OUTPUTS, **VALUES}[output](bit) if table else {"nobody": 0}


ASKED: dict[str, Any] = {
    "schema": {"town": ("a", "b")},
    "null": False,
    "user": "who",
    "max_users": 2,
    "total_rows": 2,
    "invariant": len,
    "l1": 1,
}


def found(memory: str | None, output: str, *, right: bool, **asked: Any) -> str:
    """What an audit says: "violated", "remembers", or what else it is."""
    from userdp.audit import audit_sensitivity
    from userdp.exceptions import NotDeterministicError

    try:
        report = audit_sensitivity(partial(answer, memory, output, right), **ASKED, **asked)
    except NotDeterministicError as error:
        return "remembers" if "fresh process" in str(error) else str(error)
    if report.holds is False:
        return "violated" if "the form of the output differs" in report.summary() else report.summary()
    return f"{report.holds}, {report.memory}"


def moved(folder: Path) -> None:
    """Work in empty folders, where what functions keep in files is not found again."""
    os.chdir(folder)
    os.environ |= {"HOME": str(folder), "TMPDIR": str(folder)}
    tempfile.tempdir = None


def main(every: int = 1) -> None:
    moved(Path(tempfile.mkdtemp()))
    counts: Counter[tuple[str, str, str]] = Counter()
    cases: list[tuple[str | None, str]] = [(memory, output) for memory in MEMORIES for output in {**OUTPUTS, **VALUES}]
    cases = cases[::every] + [(None, output) for output in OUTPUTS]
    for memory, output in cases:
        for right in (False, True):
            said = found(memory, output, right=right)
            wanted = "True, none" if right else "violated" if memory is None else "remembers"
            verdict = "as expected" if said.startswith(wanted) else "WRONG"
            counts["right" if right else "leaky", verdict, memory or "form alone"] += 1
            if verdict == "WRONG":
                print(memory, output, right, said[:300], flush=True)
    for kind, number in counts.items():
        print(f"{number:4}  {',  '.join(kind)}")
    print(len(cases), "leaky functions, and as many right ones")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
