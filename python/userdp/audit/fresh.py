"""What keeps runs of other people's code apart: inputs that are new for each run, and generators that are not copied.

Guesses of coins assume that every run is private given the earlier ones. A run that writes to its input gives the next
one another dataset, and a process that inherits a generator draws what another process has drawn: then right code could
be refuted.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import functools
import io
import os
import pickle
import random
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, str, bytes, bool, type(None), Fraction, datetime.date, np.generic)
_GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)
_seeded: list[int] = []
"""Processes in which the generators of the libraries were seeded."""


def fresh(value: Any) -> Callable[[], Any]:
    """A function that gives the value, made anew each time unless nobody can write to it."""
    if _is_plain(value):
        return functools.partial(_itself, value)
    try:
        written = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        pickle.loads(written)  # what was written here a line above
    except Exception:
        return functools.partial(_copied, value)
    return functools.partial(pickle.loads, written)


def _itself(value: Any) -> Any:
    return value


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception as error:
        raise ValueError(
            f"a {type(value).__name__} that is given to the mechanism cannot be copied, and each run needs its own: "
            f"{type(error).__name__}: {error}"
        ) from error


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def remade(function: Any, known: dict[int, Any] | None = None) -> Any:
    """A copy of a function with what it could keep between calls: its closure, defaults, globals or attributes.

    So are functions that it wraps. Where something cannot be copied, the copy shares it.
    """
    known = {} if known is None else known
    if id(function) in known:
        return known[id(function)]
    if isinstance(function, functools.partial):
        func, *args = (remade(part, known) for part in (function.func, *function.args))
        return functools.partial(func, *args, **{key: remade(part, known) for key, part in function.keywords.items()})
    if not isinstance(function, types.FunctionType):
        return _copy_of(function)
    names = {**function.__globals__}
    for name in function.__code__.co_names:
        if name in names:
            names[name] = _copy_of(names[name])
    cells = tuple(types.CellType() for _ in function.__closure__ or ())
    made = types.FunctionType(function.__code__, names, function.__name__, _copy_of(function.__defaults__), cells)
    known[id(function)] = made
    for cell, old in zip(cells, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # empty
            cell.cell_contents = remade(old.cell_contents, known)
    made.__kwdefaults__ = _copy_of(function.__kwdefaults__)
    made.__dict__.update(_copy_of(function.__dict__))
    return made


def _copy_of(thing: Any) -> Any:
    if isinstance(thing, (types.ModuleType, type, types.BuiltinFunctionType)):
        return thing
    try:
        return copy.deepcopy(thing)
    except Exception:
        return thing


class _Reading(pickle.Pickler):
    """Writes to nowhere, and finds generators on the way."""

    def reducer_override(self, thing: Any) -> Any:
        _refuse_generator(thing)
        if isinstance(thing, types.FunctionType):
            for name in thing.__code__.co_names:
                _refuse_generator(thing.__globals__.get(name))
        return NotImplemented


class _Copied(ValueError):
    """A generator would be copied to other processes."""


def _refuse_generator(thing: Any) -> None:
    if isinstance(thing, _GENERATORS) and not isinstance(thing, random.SystemRandom):
        raise _Copied(
            f"executor: the mechanism holds a generator of random numbers, a {type(thing).__name__}; other processes "
            "would draw the same numbers again and again. Take it as an argument, rng=, or run in this process"
        )


def refuse_generators(mechanism: Any) -> None:
    """Refuse what would take a copy of a generator to other processes."""
    try:
        _Reading(io.BytesIO(), pickle.HIGHEST_PROTOCOL).dump(mechanism)
    except _Copied as error:
        raise ValueError(str(error)) from None
    except Exception:
        return  # the executor has its own way of writing, or says what cannot be written


def seed_libraries(home: int) -> None:
    """Seed the global generators in another process than `home`, once: a forked one has those of its parent."""
    if os.getpid() != home and os.getpid() not in _seeded:
        _seeded.append(os.getpid())
        random.seed()
        np.random.seed()  # noqa: NPY002 - the global one, which the mechanism may use
