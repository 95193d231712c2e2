"""Letters: the values that columns have in small tables, plain ones first, then hostile ones, without a hint.

Beside the generic letters of a kind of column are those that the function itself suggests: its numbers and texts, with
their neighbors, and public bounds. Nobody has to say where a fault is.
"""

from __future__ import annotations

import contextlib
import datetime
import dis
import heapq
import inspect
import itertools
import json
import math
import re
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from userdp.algorithms.small_tables import KINDS, kind_of
from userdp.exact.encoding import NAN, UnknownValue, code_of
from userdp.exact.numbers import exact_number, short_repr

FLOATS = (0.0, 1.0, NAN, None, 2.0, -1.0, 0.5, math.inf, -math.inf, -0.0, 1e308, 5e-324)
INTEGERS = (0, 1, None, 2, -1, 3, 2**31 - 1, -(2**31), 2**53 + 1, 2**63 - 1, -(2**63))
TEXTS = ("a", "b", None, "", "A", " a", "a\u0301", "\u00e1", "\0")
DATES = (datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), None, datetime.date(9999, 12, 31))
TIMES = (datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 23, 59, 59), None)
GENERIC: dict[str, tuple[Any, ...]] = {
    "float": FLOATS,
    "int": INTEGERS,
    "str": TEXTS,
    "bool": (False, True, None),
    "date": DATES,
    "datetime": TIMES,
}
FIRST = 4
"""Generic letters that come before those which the function suggests."""
LARGEST = 2**70
"""Constants beyond are left to the generic letters."""
MOST_DEPTH = 3
"""Of functions that functions call, when their constants are read."""
MOST_CONSTANTS = 24
MOST_TEXT = 1 << 20
"""Characters of a plan that are read."""
NAMES: dict[Any, str] = {
    float: "float",
    int: "int",
    str: "str",
    bool: "bool",
    datetime.date: "date",
    datetime.datetime: "datetime",
}
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,19}(?:\.\d{1,20})?(?:e[-+]?\d{1,3})?(?![\w.])")


@dataclass(frozen=True)
class Letters:
    """The letters of a column.

    Attributes
    ----------
    name, kind : str
    letters : tuple
        In the order in which tables use them.
    fixed : bool
        Whether the caller listed them, so that none may be left out.
    suggested : tuple
        Those that bounds and the function suggest, without their neighbors.
    """

    name: str
    kind: str
    letters: tuple[Any, ...]
    fixed: bool
    suggested: tuple[Any, ...] = ()

    def first(self, number: int) -> tuple[Any, ...]:
        """The first letters, or all where the caller listed them."""
        return self.letters if self.fixed else self.letters[:number]

    def left_out(self, number: int) -> tuple[Any, ...]:
        """What was suggested and is not among the first letters."""
        rest = self.letters[len(self.first(number)) :]
        return tuple(one for one in self.suggested if any(one is other for other in rest))


def read_schema(schema: Any, user: str | None) -> dict[str, tuple[str, tuple[Any, ...] | None]]:
    """For each column its kind and, where they were listed, its categories."""
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema must be a mapping from column to kind; got {short_repr(schema)}")
    found: dict[str, tuple[str, tuple[Any, ...] | None]] = {}
    for name, kind in schema.items():
        if not isinstance(name, str):
            raise TypeError(f"schema: names of columns are texts; got {short_repr(name)}")
        if name == user:
            raise ValueError(f"schema: {name!r} is the column of users, whose values are ids=; leave it out of schema")
        named = NAMES.get(kind) if isinstance(kind, type) else kind if isinstance(kind, str) else None
        if named in KINDS and named != "any":
            found[name] = named, None
        elif isinstance(kind, (list, tuple, range)) and len(kind):
            found[name] = kind_of(kind), _distinct(kind, f"schema[{name!r}]")
        else:
            raise ValueError(
                f"schema[{name!r}] must be float, int, str, bool, datetime.date, datetime.datetime or a list of "
                f"categories; got {short_repr(kind)}"
            )
    if not found and user is None:
        raise ValueError("schema names no column, and there is no column of users")
    return found


def letters_of_columns(
    schema: Mapping[str, tuple[str, tuple[Any, ...] | None]],
    *,
    alphabets: Any,
    bounds: Any,
    null: bool | Sequence[str],
    nan: bool | Sequence[str],
    constants: Sequence[Any],
) -> tuple[Letters, ...]:
    """The letters of every column, all that there are."""
    given, limits = _by_column(alphabets, "alphabets", schema), _by_column(bounds, "bounds", schema)
    nulls, nans = _columns(null, "null", schema), _columns(nan, "nan", schema)
    made = []
    for name, (kind, categories) in schema.items():
        if name in given:
            letters: tuple[Any, ...] = _distinct(given[name], f"alphabets[{name!r}]")
            made.append(Letters(name, kind if kind != "any" else kind_of(letters), letters, fixed=True))
            continue
        ends = _ends(limits[name], kind, f"bounds[{name!r}]") if name in limits else []
        own = [*ends, *_fitting(kind, _suggested(kind, constants))]
        pool = _pool(kind, categories, [*own, *_fitting(kind, _beside(kind, own[len(ends) :]))])
        kept = [x for x in pool if (x is not None or name in nulls) and (x is None or x == x or name in nans)]
        made.append(Letters(name, kind, _distinct(kept, name), fixed=categories is not None, suggested=tuple(own)))
    return tuple(made)


def _pool(kind: str, categories: tuple[Any, ...] | None, suggested: Sequence[Any]) -> list[Any]:
    if categories is not None:
        beyond = [one for one in ("other", 2**31 - 1, -1.5) if type(one) is type(categories[0])][:1]
        return [*categories, None, *(one for one in beyond if one not in categories)]
    generic = GENERIC[kind]
    return [*generic[:FIRST], *suggested, *generic[FIRST:]]


def _ends(pair: Any, kind: str, name: str) -> list[Any]:
    """Public bounds, and what is beyond them."""
    ends = list(pair) if isinstance(pair, (list, tuple)) else []
    numbers = [exact_number(end) for end in ends]
    if len(ends) != 2 or kind not in ("float", "int") or any(number is None for number in numbers):
        raise ValueError(f"{name} must be (low, high), two numbers of a column of floats or integers")
    low, high = (float(end) if kind == "float" else math.floor(number) for end, number in zip(ends, numbers))  # type: ignore[arg-type] # noqa: B905
    return _fitting(kind, [low, high, low - 1, high + 1])


def _suggested(kind: str, constants: Sequence[Any]) -> list[Any]:
    """Constants as values of a column."""
    own: list[Any] = []
    for one in constants:
        if kind in ("str", "date", "datetime"):
            own += [one] if NAMES.get(type(one)) == kind else []
            if kind != "str" and isinstance(one, str):
                with contextlib.suppress(ValueError):
                    own.append((datetime.date if kind == "date" else datetime.datetime).fromisoformat(one))
        elif kind in ("int", "float") and type(one) in (int, float) and abs(one) < LARGEST:
            own.append(math.floor(one) if kind == "int" else float(one))
    return own


def _beside(kind: str, numbers: Sequence[Any]) -> list[Any]:
    """The neighbors of numbers."""
    near = [number + step for number in numbers for step in (1, -1)] if kind in ("int", "float") else []
    if kind == "float":
        near += [math.nextafter(number, end) for number in numbers for end in (math.inf, -math.inf)]
    return near


def _fitting(kind: str, letters: Sequence[Any]) -> list[Any]:
    """Those that columns of the kind can hold."""
    return [one for one in letters if kind != "int" or -(2**63) <= one < 2**63]


def _distinct(letters: Any, name: str) -> tuple[Any, ...]:
    """Letters, each once: 1, 1.0 and True are three."""
    if isinstance(letters, (str, bytes)) or not hasattr(letters, "__iter__"):
        raise TypeError(f"{name} must be a sequence of values; got {short_repr(letters)}")
    found: dict[str, Any] = {}
    for one in letters:
        try:
            code = json.dumps(code_of(one), sort_keys=True)
        except UnknownValue as error:
            raise TypeError(f"{name}: a value {error}") from None
        found.setdefault(code, one.item() if isinstance(one, np.generic) else one)
    if not found:
        raise ValueError(f"{name} has no letters: without null and NaN nothing is left of it")
    return tuple(found.values())


def _by_column(given: Any, name: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{name} must be a mapping by column; got {short_repr(given)}")
    if unknown := [one for one in given if one not in schema]:
        raise ValueError(f"{name}: {unknown[0]!r} is no column of schema; there are {', '.join(map(repr, schema))}")
    return given


def _columns(wish: Any, name: str, schema: Mapping[str, Any]) -> set[str]:
    """The columns that a wish is about: all, none, or those that are named."""
    if isinstance(wish, bool):
        return set(schema) if wish else set()
    if isinstance(wish, str) or not isinstance(wish, (list, tuple, set, frozenset)):
        raise TypeError(f"{name} must be a bool or a sequence of columns; got {short_repr(wish)}")
    if unknown := [one for one in wish if one not in schema]:
        raise ValueError(f"{name}: {unknown[0]!r} is no column of schema; there are {', '.join(map(repr, schema))}")
    return set(wish)


# --- constants of a function


def constants_of(function: Callable[..., Any], known: Sequence[str] = ()) -> tuple[Any, ...]:
    """Numbers and texts in a function: its code, defaults and closure, plans that it holds, and functions it calls.

    Members of lists come first, since a public list is one: texts of their own are names of functions and options too.

    Parameters
    ----------
    function : callable
    known : sequence of str
        Texts that are no values: names of columns.
    """
    listed: list[Any] = []
    alone = list(_walk(function, MOST_DEPTH, set(), listed))
    found: dict[tuple[str, Any], Any] = {}
    for one in (*listed, *alone):
        if not isinstance(one, str) or (one not in known and len(one) <= 40 and one.isprintable()):
            found.setdefault((type(one).__name__, repr(one)), one)
    return tuple(found.values())[:MOST_CONSTANTS]


def _walk(thing: Any, depth: int, seen: set[int], listed: list[Any]) -> Iterator[Any]:
    if depth < 0 or id(thing) in seen:
        return
    if isinstance(thing, Enum):
        thing = thing.value
    if isinstance(thing, (bool, type(None))):
        return
    if isinstance(thing, (int, float, str, datetime.date)):
        yield thing
        return
    seen.add(id(thing))
    if isinstance(thing, (list, tuple, set, frozenset, dict)):
        # A set of texts has another order in each process.
        some = itertools.islice(
            itertools.chain(thing, thing.values() if isinstance(thing, dict) else ()), MOST_CONSTANTS
        )
        is_set = isinstance(thing, (set, frozenset))
        for member in heapq.nsmallest(MOST_CONSTANTS, thing, key=repr) if is_set else some:
            listed += _walk(member, depth, seen, listed)
    elif isinstance(thing, types.CodeType):
        yield from _of_code(thing, depth, seen, listed)
    elif isinstance(thing, types.FunctionType):
        yield from _of_function(thing, depth, seen, listed)
    elif isinstance(thing, types.MethodType):
        yield from _walk(thing.__func__, depth, seen, listed)
        yield from _of_object(thing.__self__, depth - 1, seen, listed)
    elif hasattr(thing, "func") and hasattr(thing, "args"):  # a partial function
        for part in (thing.func, *thing.args, *getattr(thing, "keywords", {}).values()):
            yield from _walk(part, depth, seen, listed)
    elif type(thing).__module__.split(".")[0] == "polars":
        yield from _of_plan(thing)
    elif callable(thing) and not isinstance(thing, type):
        yield from _walk(vars(type(thing)).get("__call__"), depth, seen, listed)
        yield from _of_object(thing, depth, seen, listed)


def _of_code(code: types.CodeType, depth: int, seen: set[int], listed: list[Any]) -> Iterator[Any]:
    names = _names_of(code)
    for place, constant in enumerate(code.co_consts):
        if place in names:
            continue
        yield from _walk(constant, depth, seen, listed)


def _names_of(code: types.CodeType) -> set[int]:
    """The places of constants that are names alone: of keyword arguments, and of what is imported."""
    loaded, names = Counter[int](), Counter[int]()
    before = None
    for one in dis.get_instructions(code):
        if one.opname == "KW_NAMES" and one.arg is not None:
            loaded[one.arg] += 1
            names[one.arg] += 1
        elif one.opname.startswith("LOAD_CONST") and one.arg is not None:
            loaded[one.arg] += 1
        elif one.opname in ("CALL_KW", "CALL_FUNCTION_KW", "IMPORT_NAME") and before is not None:
            names[before] += 1
        elif one.opname == "MAKE_FUNCTION" and before is not None and isinstance(code.co_consts[before], str):
            names[before] += 1  # until Python 3.10
        before = one.arg if one.opname.startswith("LOAD_CONST") else None
    return {place for place in names if names[place] == loaded[place]}


def _of_function(function: types.FunctionType, depth: int, seen: set[int], listed: list[Any]) -> Iterator[Any]:
    for one in _of_code(function.__code__, depth, seen, listed):
        if one != function.__doc__:
            yield one
    for part in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield from _walk(part, depth, seen, listed)
    for cell in function.__closure__ or ():
        try:
            yield from _walk(cell.cell_contents, depth - 1, seen, listed)
        except ValueError:  # a cell that is empty
            continue
    names = _all_names(function.__code__)
    for name in names:
        called = function.__globals__.get(name)
        if isinstance(called, (types.FunctionType, int, float, str, tuple, frozenset, set, list, dict, datetime.date)):
            yield from _walk(called, depth - 1, seen, listed)
        elif type(called).__module__.split(".")[0] == "polars":
            yield from _of_plan(called)
        elif isinstance(called, (type, types.ModuleType)) and _is_own(called):
            for inside in names:
                yield from _walk(inspect.getattr_static(called, inside, None), depth - 1, seen, listed)


def _all_names(code: types.CodeType) -> tuple[str, ...]:
    """The names that code looks up, also in its comprehensions and inner functions."""
    inner = (_all_names(one) for one in code.co_consts if isinstance(one, types.CodeType))
    return tuple(dict.fromkeys((*code.co_names, *(name for names in inner for name in names))))


def _is_own(thing: type | types.ModuleType) -> bool:
    """Whether a class or a module is of no installed package, whose constants are not the function's."""
    name = thing.__name__ if isinstance(thing, types.ModuleType) else str(thing.__module__)
    file = getattr(sys.modules.get(name), "__file__", None)
    return name.partition(".")[0] not in sys.stdlib_module_names and (file is None or "site-packages" not in file)


def _of_object(thing: Any, depth: int, seen: set[int], listed: list[Any]) -> Iterator[Any]:
    for value in list(getattr(thing, "__dict__", {}).values())[:MOST_CONSTANTS]:
        yield from _walk(value, depth, seen, listed)


def _of_plan(plan: Any) -> Iterator[Any]:
    """Numbers of a plan or an expression. The data of a frame that a plan begins with are never looked at."""
    reads: tuple[Callable[[], Any], ...] = ()
    if type(plan).__name__ == "LazyFrame":
        reads = (plan.explain,)
    elif type(plan).__name__ == "Expr":
        # The text of an expression hides the breaks of bins.
        reads = (plan.__str__, lambda: plan.meta.serialize(format="json"))
    for read in reads:
        try:
            text = str(read())
        except Exception:
            continue
        yield from numbers_in(text)


def numbers_in(text: str) -> Iterator[int | float]:
    """The numbers that a text mentions."""
    for number in _NUMBER.findall(text[:MOST_TEXT]):
        yield float(number) if "." in number or "e" in number else int(number)
