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
from typing import Any

from userdp.exact.numbers import check_count
from userdp.exceptions import BudgetError

PROCESSES = 2
"""Of one audit, where nobody says how many: one that answers each question as its first, and one that goes on. Their
answers are compared too, since both hash texts alike."""
FORKS, FORK_SECONDS = 8, 5.0
"""Answers of forks, at least, and how long there may be more; the first of many calls may be slow."""
FIRST_SECONDS, ALONE_SECONDS = 6, 30
"""For one answer of a fork. The first has less: where a library has threads, a fork may wait for a lock for ever."""
START_SECONDS = 120.0
"""For a process to start, and to import what it needs, on a busy machine."""
_KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONUTF8")
_HOMES = {"HOME": "home", "USERPROFILE": "home", "TMPDIR": "tmp", "TEMP": "tmp", "TMP": "tmp"}
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class NotAsked(ValueError):
    """Why no fresh process answers."""


class Fresh:
    """So many fresh processes, and a function of questions as it is now, before it is called.

    Attributes
    ----------
    number : int
        0 where nobody wants any.
    """

    def __init__(self, number: int, function: Callable[[Any], Any], about: Any, needs: str | None = None) -> None:
        """`about` is the code of others in the function, of which a file may be needed; `needs` is what it imports."""
        self.number, self._why = number, "" if number else "no fresh process was wanted"
        module, to = getattr(about, "__module__", None) or "", io.BytesIO()
        self._module = (needs, module, getattr(sys.modules.get(module), "__file__", None))
        try:
            if number:
                _writer()(to, pickle.HIGHEST_PROTOCOL).dump(function)
        except Exception as error:
            lacks = importlib.util.find_spec("cloudpickle") is None
            hint = "; cloudpickle, which writes more, is not installed" if lacks else ""
            self._why = f"it cannot be written for other processes, {_said(error)}{hint}"
        self._written = to.getvalue()

    def __str__(self) -> str:
        return f"{self.number} fresh processes"

    def answers(self, questions: Sequence[Any], seconds: float | None) -> list[list[tuple[Any, Any]]]:
        """Ask each process all questions, in an order of its own: each question with its answer.

        Raises
        ------
        NotAsked
            Where no process can do the work.
        BudgetError
            Where one takes more seconds than that, and than it may take to start.
        """
        if self._why:
            raise NotAsked(self._why)
        orders = [random.Random(seed).sample(questions, len(questions)) for seed in range(self.number)]
        limit = None if seconds is None else START_SECONDS + seconds
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(_started()) for _ in orders]
            found: list[list[tuple[Any, Any]]] = []
            for process, order in zip(running, orders, strict=True):
                asked = pickle.dumps((self._module, self._written, order, not found))
                try:
                    said, _ = process.communicate(asked, timeout=limit)
                except subprocess.TimeoutExpired:
                    raise BudgetError(
                        f"a fresh process did not answer {len(questions)} times within {limit:g} seconds; does the "
                        "function wait for something that is not in its empty folders and environment?"
                    ) from None
                reply = pickle.loads(said) if said else "it ended"  # what `serve` has written
                if isinstance(reply, str):
                    raise NotAsked(f"in a fresh process: {reply}")
                found.append(list(zip(order, reply, strict=True)))
            return found


def check_processes(number: Any, default: int) -> int:
    """Read a number of processes."""
    read = default if number is None else check_count(number, "processes", 0)
    if read == 1:
        raise ValueError("processes must be 0 or at least 2, since their answers are compared; got 1")
    return read


def _writer() -> Any:
    """Writes functions of notebooks and closures too where cloudpickle is installed, and memories as empty ones."""
    found = importlib.util.find_spec("cloudpickle")
    base: Any = importlib.import_module("cloudpickle").CloudPickler if found else pickle.Pickler

    class Writer(base):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, functools._lru_cache_wrapper) and not _is_found(thing):
                return functools.lru_cache, (thing.__wrapped__,)
            if type(thing) is threading.local:
                return threading.local, ()
            if isinstance(thing, _LOCKS):
                return (threading.Lock if type(thing) is _LOCKS[0] else threading.RLock), ()
            if isinstance(thing, contextvars.ContextVar):
                given = {}
                with contextlib.suppress(LookupError):
                    given["default"] = contextvars.Context().run(thing.get)
                return functools.partial(contextvars.ContextVar, thing.name, **given), ()
            return super().reducer_override(thing) if found else NotImplemented

    return Writer


def _is_found(thing: Any) -> bool:
    """Whether other processes find it by its name, as it is when it was just made."""
    module = sys.modules.get(thing.__module__)
    return thing.__module__ != "__main__" and getattr(module, thing.__qualname__, None) is thing


@contextlib.contextmanager
def _started() -> Any:
    """A process that waits for its work, and that ends with this block, with all that is in its session."""
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
    """Do what the standard input says, and write the answers to the standard output: the other end of `Fresh`."""
    parent = os.getppid()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    folders = {os.getcwd(), *map(os.environ.__getitem__, _HOMES)}  # before the code can name others
    to = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the code prints is no answer
    try:
        (needs, name, path), written, questions, alone = pickle.load(sys.stdin.buffer)
        if needs is not None:
            importlib.import_module(needs)
        try:
            function = pickle.loads(written)
        except ModuleNotFoundError:  # of a file that was loaded by its path
            spec: Any = importlib.util.spec_from_file_location(name, path)
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
            function = pickle.loads(written)
        found = _alone(function, questions, folders) if alone and hasattr(os, "fork") else []
        reply: Any = pickle.dumps(found + [function(question) for question in questions[len(found) :]])
    except BaseException as error:
        reply = pickle.dumps(_said(error))
    to.write(reply)
    to.flush()
    os._exit(0)  # threads of the code, and what it wants to do at the end, are not waited for


def _alone(function: Callable[[Any], Any], questions: Sequence[Any], folders: set[str]) -> list[Any]:
    """The answers of forks, of which none has seen another's question or files, up to one that does not answer."""
    found: list[Any] = []
    end = time.monotonic() + FORK_SECONDS
    for question in questions:
        if len(found) >= FORKS and time.monotonic() > end:
            break
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                signal.alarm(ALONE_SECONDS if found else FIRST_SECONDS)
                os.fdopen(write, "wb", buffering=0).write(pickle.dumps(function(question)))
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as source:
            said = source.read()
        os.waitpid(child, 0)
        for left in (entry for folder in folders for entry in os.scandir(folder)):
            shutil.rmtree(left) if left.is_dir(follow_symlinks=False) else os.unlink(left)
        if not said:
            break
        found.append(pickle.loads(said))
    return found


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # forks too: this process began a session of its own
    os._exit(1)


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
