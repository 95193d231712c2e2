"""Fresh processes: where other people's code answers again, and finds nothing that an earlier call has left behind.

A process is started for many questions, with a folder to work in, a home and a folder for temporary files that are
empty, and with an environment of its own. The first answers in forks from before all questions, where there are forks;
the others answer one question after the other, in orders of their own. What the code keeps at a fixed path elsewhere is
kept here too.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import importlib
import importlib.util
import io
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from userdp.exceptions import BudgetError

PROCESSES = 2
"""Of one audit, where nobody says how many: one that answers each question as its first, and one that goes on."""
FORKS, FORK_SECONDS = 8, 5.0
"""Answers of forks, at least, and how long there may be more; the first of many calls may be slow."""
ALONE_SECONDS = 30
"""For one answer of a fork."""
START_SECONDS = 120.0
"""For a process to start, and to import what it needs, on a busy machine."""
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONUTF8")
_HOMES = {"HOME": "home", "USERPROFILE": "home", "TMPDIR": "tmp", "TEMP": "tmp", "TMP": "tmp"}
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class Work(NamedTuple):
    """A function of a question as other processes read it, its module and that one's file, and what else it needs."""

    written: bytes
    module: tuple[str, str | None]
    needs: str | None


class Unwritable(ValueError):
    """Why a function cannot be run in a fresh process."""


def written(function: Callable[[Any], Any], about: Any, needs: str | None = None) -> Work:
    """Write a function of questions down, as it is before it is called. `about` is the code of others in it."""
    module = getattr(about, "__module__", None) or ""
    to = io.BytesIO()
    try:
        _writer()(to, pickle.HIGHEST_PROTOCOL).dump(function)
    except Exception as error:
        hint = "" if importlib.util.find_spec("cloudpickle") else "; cloudpickle, which writes more, is not installed"
        raise Unwritable(f"it cannot be written for other processes, {_said(error)}{hint}") from None
    return Work(to.getvalue(), (module, getattr(sys.modules.get(module), "__file__", None)), needs)


def _writer() -> Any:
    """Writes functions of notebooks and closures too where cloudpickle is installed, and memories as empty ones."""
    found = importlib.util.find_spec("cloudpickle")
    base: Any = importlib.import_module("cloudpickle").CloudPickler if found else pickle.Pickler

    class Writer(base):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, functools._lru_cache_wrapper) and not _is_found(thing):
                return _cached, (thing.__wrapped__, *thing.cache_parameters().values())
            if type(thing) is threading.local:
                return threading.local, ()
            if isinstance(thing, _LOCKS):
                return (threading.Lock if type(thing) is _LOCKS[0] else threading.RLock), ()
            if isinstance(thing, contextvars.ContextVar):
                default = contextvars.Context().run(thing.get, _NOTHING)
                return _variable, (thing.name, [] if default is _NOTHING else [default])
            return super().reducer_override(thing) if found else NotImplemented

    return Writer


_NOTHING = object()


def _is_found(thing: Any) -> bool:
    """Whether other processes find it by its name, as it is when it was just made."""
    return (
        thing.__module__ != "__main__" and getattr(sys.modules.get(thing.__module__), thing.__qualname__, None) is thing
    )


def _cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    return functools.lru_cache(maxsize=maxsize, typed=typed)(function)


def _variable(name: str, default: list[Any]) -> Any:
    return contextvars.ContextVar(name, default=default[0]) if default else contextvars.ContextVar(name)


def answers(work: Work, questions: Sequence[Any], number: int, seconds: float | None) -> list[list[tuple[Any, Any]]]:
    """Ask so many fresh processes all questions, each in an order of its own: each question with its answer.

    Raises
    ------
    Unwritable
        Where no process can do the work.
    BudgetError
        Where one takes more seconds than that.
    """
    orders = [random.Random(seed).sample(questions, len(questions)) for seed in range(number)]
    limit = None if seconds is None else START_SECONDS + seconds
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_started()) for _ in orders]
        found = []
        for process, order in zip(running, orders, strict=True):
            try:
                said, _ = process.communicate(pickle.dumps((work, order, not found)), timeout=limit)
            except subprocess.TimeoutExpired:
                raise BudgetError(
                    f"a fresh process did not answer {len(questions)} times within {limit:g} seconds, and here the "
                    "function does; what it waits for may be in the environment, or in a folder that is empty there"
                ) from None
            reply = pickle.loads(said) if said else "it ended"  # what `serve` has written
            if isinstance(reply, str):
                raise Unwritable(f"in a fresh process: {reply}")
            found.append(list(zip(order, reply, strict=True)))
        return found


@contextlib.contextmanager
def _started() -> Any:
    """A process that waits for its work, and that ends with this block, with all that it has started."""
    own = {name: value for name, value in os.environ.items() if name in _KEPT or name.endswith("_THREADS")}
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
    own |= {"PYTHONPATH": paths, "PYTHONHASHSEED": "0", "PYTHONOPTIMIZE": str(sys.flags.optimize or "")}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for name in ("work", *_HOMES.values()):
            Path(folder, name).mkdir(exist_ok=True)
        with subprocess.Popen(
            [sys.executable, "-c", "from userdp.algorithms.processes import serve; serve()"],
            cwd=Path(folder, "work"),
            env=own | {name: str(Path(folder, where)) for name, where in _HOMES.items()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()


def serve() -> None:
    """Do what the standard input says, and write the answers to the standard output: the other end of `answers`."""
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    to = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the code prints is no answer
    try:
        work, questions, alone = pickle.load(sys.stdin.buffer)
        name, path = work.module
        if path is not None and name != "__main__" and _spec(name) is None:
            spec: Any = importlib.util.spec_from_file_location(name, path)
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
        if work.needs is not None:
            importlib.import_module(work.needs)
        function = pickle.loads(work.written)
        found = _alone(function, questions) if alone and hasattr(os, "fork") else []
        reply: Any = pickle.dumps(found + [function(question) for question in questions[len(found) :]])
    except BaseException as error:
        reply = pickle.dumps(_said(error))
    to.write(reply)
    to.flush()
    os._exit(0)  # threads of the code, and what it wants to do at the end, are not waited for


def _alone(function: Callable[[Any], Any], questions: Sequence[Any]) -> list[Any]:
    """The answers of forks, of which none has seen another's question, up to one that does not answer."""
    found: list[Any] = []
    end = time.monotonic() + FORK_SECONDS
    for question in questions:
        if len(found) >= FORKS and time.monotonic() > end:
            break
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                signal.alarm(ALONE_SECONDS)
                os.fdopen(write, "wb", buffering=0).write(pickle.dumps(function(question)))
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as source:
            said = source.read()
        os.waitpid(child, 0)
        for name in {os.getcwd(), *map(os.environ.__getitem__, _HOMES)}:
            for left in os.scandir(name):
                shutil.rmtree(left) if left.is_dir(follow_symlinks=False) else os.unlink(left)
        if not said:
            break
        found.append(pickle.loads(said))
    return found


def _spec(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
