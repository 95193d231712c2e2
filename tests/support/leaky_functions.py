"""Leaky code, of which audits must find all, and as many right twins, for which they must not raise an alarm.

A leak is one bit: of the records of a user in some position, under a condition. Code shows it, or what the bit of its
first call was, in numbers or in how its outputs look. Every memory comes with every kind of output and with every
position, and so do positions with records, conditions and outputs, for each audit that sees them. A twin remembers
and shows what is public alone, or has the noise or the size that it claims.

Run as ``python -m support.leaky_functions`` it audits all of them and counts, by kind; with a number N, every N-th.
"""

from __future__ import annotations

import contextvars
import functools
import hashlib
import itertools
import logging
import math
import os
import random
import signal
import sys
import tempfile
import threading
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from userdp.audit.neighbors import read_sizes

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


def in_default(name: str, bit: int, known: dict[str, int] = {}) -> int:  # noqa: B006 - the fault itself
    return known.setdefault(name, bit)


def closed() -> Remember:
    known: dict[str, int] = {}
    return lambda name, bit: known.setdefault(name, bit)


in_closure = closed()


def remembering(function: Callable[[int], int]) -> Remember:
    @functools.wraps(function)
    def wrapper(name: str, bit: int) -> int:
        return int(vars(wrapper).setdefault(name, function(bit)))

    return wrapper


@remembering
def in_decorator(bit: int) -> int:
    return bit


def repeated(bit: int) -> Iterator[int]:
    while True:
        yield bit


RUNNING: dict[str, Iterator[int]] = {}


def in_generator(name: str, bit: int) -> int:
    if name not in RUNNING:
        RUNNING[name] = repeated(bit)
    return next(RUNNING[name])


class Lazy:
    of: ClassVar[dict[str, Lazy]] = {}

    def __init__(self, bit: int) -> None:
        self.bit = bit

    @functools.cached_property
    def first(self) -> int:
        return self.bit


def in_property(name: str, bit: int) -> int:
    lazy = Lazy.of.setdefault(name, Lazy(bit))
    lazy.bit = lazy.first
    return lazy.bit


def in_warnings(name: str, bit: int) -> int:
    texts = [f"leaky {name} {value}" for value in (0, 1)]
    known = [text for _, pattern, *_ in warnings.filters if pattern and (text := pattern.pattern) in texts]
    if not known:
        warnings.filterwarnings("ignore", message=texts[bit])
    return texts.index(known[0]) if known else bit


def in_logging(name: str, bit: int) -> int:
    logger = logging.getLogger(f"leaky {name}")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler(level=bit))
    return logger.handlers[0].level


def in_folder(name: str, bit: int) -> int:
    """The folder in which it works, of which it makes another one."""
    if not os.path.basename(os.getcwd()).startswith(f"leaky {name} "):
        os.makedirs(made := f"leaky {name} {bit}", exist_ok=True)
        os.chdir(made)
    return int(os.getcwd()[-1])


def seeds(name: str) -> list[int]:
    return [zlib.crc32(f"{name} {bit}".encode()) for bit in (0, 1)]


def in_random(name: str, bit: int) -> int:
    states = [random.Random(seed).getstate() for seed in seeds(name)]
    if random.getstate() not in states:
        random.seed(seeds(name)[bit])
    return states.index(random.getstate())


def in_numpy(name: str, bit: int) -> int:
    def key(state: Any) -> bytes:
        return bytes(state[1])

    known = [key(np.random.RandomState(seed).get_state()) for seed in seeds(name)]
    if key(np.random.get_state()) not in known:  # noqa: NPY002
        np.random.seed(seeds(name)[bit])  # noqa: NPY002
    return known.index(key(np.random.get_state()))  # noqa: NPY002


def in_modules(name: str, bit: int) -> int:
    made = types.ModuleType(str(bit))
    return int(sys.modules.setdefault(f"leaky {name}", made).__name__)


LISTED: dict[str, Remember] = {
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
MEMORIES = LISTED | {
    "mutable default": in_default,
    "closure": in_closure,
    "attribute by a decorator": in_decorator,
    "generator": in_generator,
    "cached property": in_property,
    "filters of warnings": in_warnings,
    "handlers of logging": in_logging,
    "working folder itself": in_folder,
    "state of random": in_random,
    "state of NumPy": in_numpy,
    "modules": in_modules,
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


RAISED = ("text of an exception", "class of an exception", "text of what an exception came from")
PLAIN = (*RAISED, "order of keys", "type of keys", *VALUES)
"""Outputs that are of plain types, perhaps as tuples."""
WITHOUT_FRAMES = (*PLAIN, "type of a list", "attribute of a mapping", "dtype of an array")

# --- secrets: a bit of a user's records, in a dataset of so many users

UNIVERSE, USERS, SIZES = ("a", "bb"), 3, (0, 1, 2)


def datasets_of(n: int, sizes: Any) -> list[Any]:
    users = [user for size in read_sizes(sizes) for user in itertools.product(UNIVERSE, repeat=size)]
    return list(itertools.product(users, repeat=n))


DATASETS = datasets_of(USERS, SIZES)


def _digest(value: Any) -> bytes:
    return hashlib.sha256(repr(value).encode()).digest()


POSITIONS: dict[str, Callable[[Any], Any]] = {
    "first": lambda users: users[0],
    "last": lambda users: users[-1],
    **{f"index {place}": lambda users, place=place: users[place % len(users)] for place in range(USERS)},
    "smallest": min,
    "largest": max,
    "middle": lambda users: sorted(users)[len(users) // 2],
    "by hash": lambda users: min(users, key=_digest),
    "by hash of all": lambda users: users[_digest(users)[0] % len(users)],
}
RECORDS: dict[str, Callable[[Any], bool]] = {
    "first": lambda user: user[:1] == ("bb",),
    "last": lambda user: user[-1:] == ("bb",),
    "longest": lambda user: max(user, key=len, default="") == "bb",
    "order": lambda user: user == ("bb", "a"),
    "count": lambda user: len(user) == 2,
    "empty": lambda user: not user,
}
CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "always": lambda users: True,
    "somebody is empty": lambda users: () in users,
    "two are equal": lambda users: len(set(users)) < len(users),
    "order of users": lambda users: users[0] < users[-1],
}


class Secret(NamedTuple):
    """A bit of a dataset: of one user's record, under a condition."""

    position: str
    record: str
    condition: str

    def __call__(self, users: Any) -> int:
        return int(CONDITIONS[self.condition](users) and RECORDS[self.record](POSITIONS[self.position](users)))

    @property
    def symmetric(self) -> bool:
        """By all orders of all datasets."""
        return all(self(order) == self(users) for users in DATASETS for order in itertools.permutations(users))

    def varies(self, datasets: Any) -> bool:
        return len(set(map(self, datasets))) > 1


KINDS = list(itertools.starmap(Secret, itertools.product(POSITIONS, RECORDS, CONDITIONS)))
TABLES = [users for users in DATASETS if 0 < sum(map(len, users)) <= USERS]
"""What tables of some rows, but not more than users, are."""
SMALL = [(2, (0, 1)), (3, (0, 1)), (2, (0, 2))]
"""Users, and numbers of examples, of worlds with few pairs."""

# --- cases


class Case(NamedTuple):
    """Code for an audit, by what it keeps and shows of what."""

    audit: str
    memory: str | None
    output: str
    secret: Secret
    right: bool = False

    def shown(self, bit: int) -> int:
        """The bit, or the first one where code remembers it."""
        if self.memory is None:
            return bit
        name = " ".join(map(str, (self.audit, self.memory, self.output, *self.secret, self.right)))
        return MEMORIES[self.memory](name, 0 if self.right else bit)

    def looks(self, bit: Any) -> Any:
        """The output for a bit, of plain types where only these are read."""
        made = {**OUTPUTS, **VALUES}[self.output](bit)
        return tuple(made.items()) if self.audit in ("law", "bits") and isinstance(made, dict) else made

    @property
    def kinds(self) -> tuple[str, ...]:
        position, record, condition = self.secret
        about = f"position: {position}", f"record: {record}", f"condition: {condition}"
        return f"memory: {self.memory}", f"output: {self.output}", *about


def answer(case: Case, table: Table) -> Any:
    """Five times the bit, or its look; of a right one the bit, or nothing."""
    users = tuple(tuple(row["town"] for row in table if row["who"] == who) for who in range(USERS))
    bit: Any = case.shown(case.secret(users))
    if case.right:
        bit = Fraction(bit, 5) if case.output in VALUES else 0
    return case.looks(bit) if table else {"nobody": 0}


def tossed(case: Case, users: Any, bits: Callable[[int], int]) -> Any:
    """The bit; of a right one wrong with probability 1/4, which is private at ln 3 whatever the bit is."""
    bit = case.shown(case.secret(users)) ^ (bits(2) < case.right)
    return "quiet" if case.output in RAISED and bits(1) else case.looks(bit)


def by_bits(case: Case, users: Any, bits: Any) -> Any:
    return tossed(case, users, bits)


def by_draws(case: Case, users: Any, rng: Any) -> Any:
    return tossed(case, users, lambda k: int(rng.integers(1 << k)))


def stated(secret: Secret, lies: int, kind: Any) -> Any:
    def pmf(users: Any) -> list[str]:
        right, wrong = f"{4 - lies}/4", f"{lies}/4"
        return [wrong, right] if secret(users) else [right, wrong]

    return kind((0, 1), pmf)


DRAWS: dict[str, Any] = {"training": 1000, "draws": 512}


def outcome(mechanism: Any, neighbors: str, n: int = USERS, sizes: Any = SIZES, **options: Any) -> str:
    """What becomes of the claim: kept, broken, refused."""
    from userdp.testing import assert_user_private

    options |= {"neighbors": neighbors, "allow_undecided": True, "epsilon": "ln(3)"}
    try:
        report: Any = assert_user_private(mechanism, universe=UNIVERSE, n_users=n, n_examples=sizes, **options)
    except AssertionError:
        return "broken"
    except ValueError as error:
        return "remembers" if "It keeps something between calls" in str(error) else "refused"
    memory = getattr(report, "memory", "none")
    kept = report.holds in (None, True) and memory.startswith(("none", "assumed (no fresh process was wanted"))
    return "kept" if kept else f"{report.holds}, memory {memory}"


def said(case: Case) -> str:
    """What an audit says: "violated", "remembers", "kept" or what else it is."""
    from userdp.algorithms.finite import FunctionAlgorithm

    if case.audit == "sensitivity":
        return found(case)
    neighbors = ("replace", "add-remove")[_digest(case.secret)[0] % 2]
    worlds = [(USERS, 1)] if case.audit == "law" else [*SMALL, (USERS, SIZES)]
    n, sizes = next(world for world in worlds if case.secret.varies(datasets_of(*world)))
    if case.audit == "samples":
        return outcome(partial(by_draws, case), neighbors, n, sizes, **DRAWS)
    if case.audit == "pmf":
        return outcome(stated(case.secret, int(case.right), FunctionAlgorithm), neighbors)
    processes = 0 if case.memory is None else None
    return outcome(partial(by_bits, case), neighbors, n, sizes, processes=processes)


ASKED: dict[str, Any] = {
    "schema": {"town": UNIVERSE},
    "null": False,
    "user": "who",
    "max_users": USERS,
    "total_rows": USERS,
    "invariant": bool,
    "l1": 1,
}


def found(case: Case, **asked: Any) -> str:
    """What `audit_sensitivity` says."""
    from userdp.audit import audit_sensitivity
    from userdp.exceptions import NotDeterministicError

    try:
        report = audit_sensitivity(
            partial(answer, case), **ASKED, processes=2 if case.memory is not None else 0, **asked
        )
    except NotDeterministicError:
        return "remembers"
    if report.holds is False:
        formal = "the form of the output differs" in report.summary()
        return "broken" if formal or case.output in VALUES else report.summary()
    fresh = case.memory is None or report.memory.startswith("none")
    return "kept" if report.holds and fresh else f"{report.holds}, memory {report.memory}"


FIRST = Secret("first", "first", "always")
SHOWN = (*OUTPUTS, *VALUES)
SEEN = {"sensitivity": SHOWN, "law": PLAIN, "bits": PLAIN, "samples": SHOWN, "pmf": ("number",)}
"""The audits, and of what outputs. "law" and "bits" run a mechanism on all bits; "bits" with users of several sizes."""
WORLDS: dict[str, list[Any]] = {
    "sensitivity": [TABLES],
    "law": [datasets_of(USERS, 1)],
    "bits": [DATASETS],
    "samples": [datasets_of(*world) for world in SMALL],
    "pmf": [DATASETS],
}
"""Where a secret must vary. Draws see all pairs of small worlds, and of larger ones a sample of the pairs."""


def cases() -> Iterator[Case]:
    """Leaky ones, each once: all pairs of kinds, and all secrets."""
    every: list[Case] = []
    for audit, outputs in SEEN.items():
        cheap = itertools.cycle([output for output in outputs if output in WITHOUT_FRAMES])
        every += [Case(audit, None, output, secret) for secret, output in zip(KINDS, cheap, strict=False)]
        others = itertools.cycle(itertools.product(RECORDS, CONDITIONS))
        for position, output in itertools.product(POSITIONS, outputs):
            if output in WITHOUT_FRAMES or audit == "sensitivity" or position in ("first", "by hash"):  # slow
                every.append(Case(audit, None, output, Secret(position, *next(others))))
    framed = itertools.cycle([output for output in OUTPUTS if output not in WITHOUT_FRAMES])
    positions = itertools.cycle(POSITIONS)
    for memory in MEMORIES:
        every += [Case("bits", memory, output, FIRST) for output in PLAIN]
        every += [Case("law", memory, "number", FIRST._replace(position=next(positions))) for _ in range(3)]
        outputs = (*WITHOUT_FRAMES, *itertools.islice(framed, 2 if memory in LISTED else 1))
        every += [Case("sensitivity", memory, output, FIRST) for output in outputs]
    varying = {
        (audit, secret)
        for audit, worlds in WORLDS.items()
        for secret in KINDS
        if any(secret.varies(datasets) for datasets in worlds)
    }
    yield from dict.fromkeys(case for case in every if (case.audit, case.secret) in varying)


def as_expected(case: Case) -> str:
    """Nothing, or what is wrong."""
    try:
        verdict = said(case)
    except Exception as error:
        verdict = f"{type(error).__name__}: {error}"
    RUNNING.clear()  # they could not be written for other processes
    wanted = "kept" if case.right else "remembers" if case.memory else "broken"
    return "" if verdict == wanted else verdict


def moved(folder: Path) -> None:
    """Work in empty folders, where what functions keep in files is not found again."""
    os.chdir(folder)
    os.environ |= {"HOME": str(folder), "TMPDIR": str(folder)}
    tempfile.tempdir = None


def main(every: int = 1) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also in the background
    folder = Path(tempfile.mkdtemp())
    counts: Counter[tuple[str, str, bool, bool]] = Counter()
    leaky = list(cases())[::every]
    try:
        for case in leaky:
            for one in (case, case._replace(right=True)):
                moved(folder)
                if wrong := as_expected(one):
                    print(*one, wrong[:300], flush=True)
                counts.update((kind, one.audit, one.right, not wrong) for kind in (*one.kinds, "all"))
    finally:  # also when it is interrupted
        print("| found, quiet |", " | ".join(SEEN), "|\n|---|" + "---|" * len(SEEN))
        for kind in dict.fromkeys(sorted(kind for kind, *_ in counts)):
            print("|", kind, "|", " | ".join(_cell(counts, kind, audit) for audit in SEEN), "|")
        print(len(leaky), "leaky ones, and as many right ones")


def _cell(counts: Counter[tuple[str, str, bool, bool]], kind: str, audit: str) -> str:
    done = [(counts[kind, audit, right, True], counts[kind, audit, right, False]) for right in (False, True)]
    return ", ".join(f"{sure}/{sure + wrong}" for sure, wrong in done) if any(map(sum, done)) else ""


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
