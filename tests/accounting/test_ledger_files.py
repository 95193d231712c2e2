"""Ledgers in a file: they do what those in memory do, and what processes spend together is within the promise."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from support import killed_log
from userdp import LogRatio, durable_log
from userdp.accounting import PrivacyCost, PrivacyLedger, PrivacyLossDistribution
from userdp.durable_log import DurableLog
from userdp.exceptions import PrivacyBudgetError
from userdp.learners import ThresholdClassifier
from userdp.means import WinsorizedQueries
from userdp.tables import Schema, Session, count_users, number

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, and is forked

F = Fraction
PEOPLE = np.repeat(np.arange(30), 4)
HOURS = np.arange(120) % 10 + 1
CHOICE = PrivacyLossDistribution.bounded_range("0.08")
PROMISES: dict[str, dict[str, Any]] = {
    "basic": {"epsilon": LogRatio(9), "delta": "1/100"},
    "zcdp": {"epsilon": 2, "delta": "1e-6", "composition": "zcdp", "added_delta": "1e-7"},
    "exact": {
        "epsilon": 1,
        "delta": "1e-4",
        "composition": "exact",
        "added_delta": "1e-5",
        "slots": [(CHOICE, 2), (PrivacyLossDistribution.pure("1/20"), 2)],
        "gaussian": "1/50",
    },
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "panel.ledger"


def classifier(**changes: Any) -> ThresholdClassifier:
    given: dict[str, Any] = {"epsilon": "1/2", "domain_size": 10, "m": 4, "classes": (False, True)}
    return ThresholdClassifier(**(given | changes))


def costs(source: random.Random) -> Iterator[Any]:
    """Whatever somebody may want to spend; much of it is refused by one composition or another."""
    while True:
        part = F(source.randrange(1, 30), source.randrange(30, 900))
        yield source.choice(
            [
                PrivacyCost(part),
                PrivacyCost(LogRatio(source.randrange(11, 20), 10), part / 10**6),
                PrivacyCost(rho=part / 10),
                PrivacyCost(mu2=part / 50, added_delta=part / 10**6),
                PrivacyCost(bounded_range="0.08"),
                PrivacyCost("1/20"),
                PrivacyLossDistribution.pure("1/30").within("1e-20"),
                CHOICE,
            ]
        )


@pytest.mark.parametrize("composition", list(PROMISES))
@pytest.mark.parametrize("seed", range(4))
def test_it_does_what_a_ledger_in_memory_does(composition: str, seed: int, path: Path) -> None:
    memory = PrivacyLedger(**PROMISES[composition])
    PrivacyLedger.create(path, **PROMISES[composition])
    objects = [PrivacyLedger.open(path) for _ in range(3)]
    source = random.Random(seed)
    for place, cost in zip(range(40), costs(source), strict=False):
        name, slot = source.choice([None, f"release é {place}"]), source.choice([None, None, None, 0, 1])
        answers = []
        for ledger in (source.choice(objects), memory):
            try:
                answers.append((ledger.can_spend(cost, slot=slot), ledger.spend(cost, name, slot=slot)))
            except (ValueError, TypeError) as error:
                answers.append((type(error), str(error)))
        assert answers[0] == answers[1]
        ledger = source.choice([*objects, PrivacyLedger.open(path, objects[0].receipt)])
        assert ledger.to_json() == memory.to_json()
    assert len(memory.entries) > 3
    for ledger in objects:
        assert repr(ledger) == repr(memory)
        assert ledger.entries == memory.entries
        assert ledger.spent == memory.spent
        assert ledger.remaining() == memory.remaining()
        assert ledger.limits == memory.limits
        assert ledger.slots == memory.slots
        assert ledger._rows() == memory._rows()
        assert ledger.receipt == objects[0].receipt
    assert PrivacyLedger.from_json(objects[0].to_json()).receipt is None


def test_fits_and_sessions_are_charged_in_the_file(path: Path) -> None:
    ledger = PrivacyLedger.create(path, 4)
    other = PrivacyLedger.open(path)
    ledger.fit(classifier(), HOURS[:, None], HOURS > 5, groups=PEOPLE, name="threshold")
    queries = WinsorizedQueries(epsilon=1, n_queries=3, max_norm=10, m=4)
    with other.open_session(queries, HOURS[:, None], groups=PEOPLE, name="questions"):
        assert ledger.remaining() == {"epsilon": F(5, 2), "delta": 0}
    assert [entry.name for entry in PrivacyLedger.open(path).entries] == ["threshold", "questions"]


def test_sessions_of_tables_share_a_file(path: Path) -> None:
    PrivacyLedger.create(path, 1, neighbors="add-remove")
    table = pl.DataFrame({"who": PEOPLE, "hours": HOURS})
    people = [
        Session(table, user="who", schema=Schema(hours=number(0, 10)), ledger=PrivacyLedger.open(path))
        for _ in range(2)
    ]
    query = people[0].query().agg(people=count_users())
    people[0].release(query, epsilon="3/4")
    with pytest.raises(PrivacyBudgetError, match=r"0\.25 is left"):
        people[1].release(query, epsilon="1/2")
    people[1].release(query)
    assert people[0].remaining()["epsilon"] == 0
    assert len(PrivacyLedger.open(path).entries) == 2


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copies_are_refused(copied: Callable[[Any], Any], path: Path) -> None:
    with pytest.raises(TypeError, match="not copied"):
        copied(PrivacyLedger.create(path, 1))


def test_an_old_copy_is_refused_where_the_receipt_of_a_later_spend_is_shown(path: Path) -> None:
    ledger = PrivacyLedger.create(path, 1)
    ledger.spend(PrivacyCost("1/2"))
    first = ledger.receipt
    old = shutil.copy(path, path.with_name("old"))
    ledger.spend(PrivacyCost("1/2"))
    assert PrivacyLedger.open(old, first).remaining()["epsilon"] == F(1, 2)
    with pytest.raises(ValueError, match=r"old: an old copy, with 1 entries, and the receipt is of entry 2"):
        PrivacyLedger.open(old, ledger.receipt)
    assert PrivacyLedger.open(path, ledger.receipt).receipt == ledger.receipt
    shutil.copy(old, path)
    for ask in (ledger.remaining, lambda: ledger.spend(PrivacyCost("1/4")), lambda: repr(ledger)):
        with pytest.raises(ValueError, match="old copy"):
            ask()


def test_bad_arguments_make_no_file(path: Path) -> None:
    for arguments, name in ({"epsilon": 0}, "epsilon"), ({"epsilon": 1, "unit": "town"}, "unit"):
        with pytest.raises(ValueError, match=name):
            PrivacyLedger.create(path, **arguments)
    assert not path.exists()


@pytest.mark.parametrize("epsilon", ["2", "-1", "1/0", "nan", "ln(3/1)", None, 1])
def test_an_entry_that_the_promise_does_not_allow_is_refused(path: Path, epsilon: Any) -> None:
    ledger = PrivacyLedger.create(path, 1)
    ledger.spend(PrivacyCost("1/2"), "fine")
    with DurableLog(path, "privacy ledger") as log:
        entry = json.loads(log.entries[0])
        log.append(json.dumps(entry | {"cost": entry["cost"] | {"epsilon": epsilon}}))
    for ask in (lambda: PrivacyLedger.open(path), ledger.remaining):
        with pytest.raises(ValueError, match=r"panel\.ledger: "):
            ask()


@pytest.mark.parametrize("text", ["", "{}", "null", '{"name": "x"}', "[" * 10**5])
def test_a_file_whose_entries_are_none_is_refused(path: Path, text: str) -> None:
    PrivacyLedger.create(path, 1)
    with DurableLog(path, "privacy ledger") as log:
        log.append(text)
    with pytest.raises(ValueError, match=r"panel\.ledger: "):
        PrivacyLedger.open(path)


@pytest.mark.parametrize(
    "text", ["", "{}", PrivacyLedger(1).to_json().replace('"schema_version": ', '"schema_version": 9')]
)
def test_a_file_without_a_ledger_is_refused(path: Path, text: str) -> None:
    DurableLog.create(path, "privacy ledger", text)
    with pytest.raises(ValueError, match=r"panel\.ledger: the text is not a ledger"):
        PrivacyLedger.open(path)


def test_what_is_left_can_be_read_and_is_exact() -> None:
    ledger = PrivacyLedger(1, "1e-6")
    ledger.spend(PrivacyCost(F(1, 3), F(1, 3 * 10**6)))
    assert repr(ledger.remaining()) == "{'epsilon': 0.666667, 'delta': 6.66667e-7}"
    assert repr(PrivacyLedger("ln(3)").limits) == "{'epsilon': 1.09861, 'delta': 0}"
    assert ledger.remaining() == {"epsilon": F(2, 3), "delta": F(2, 3 * 10**6)}
    assert dict(ledger.spent) == {"epsilon": F(1, 3), "delta": F(1, 3 * 10**6)}
    assert str(ledger.entries[0].charged) == "{'epsilon': 0.333333, 'delta': 3.33333e-7}"


# --- several at once


class Slow(ThresholdClassifier):
    """Runs something in the middle of its fit, after it has been charged."""

    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Any:
        fitted = super().fit(X, y, groups=groups)
        type(self).meanwhile()
        return fitted

    meanwhile: Callable[[], None] = staticmethod(lambda: None)


@pytest.mark.parametrize("slot", [None, 0])
def test_a_fit_beside_slots_has_the_file_until_it_ends(
    path: Path, slot: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    PrivacyLedger.create(
        path, 2, "1e-4", composition="exact", slots=[(PrivacyLossDistribution.pure("1/2"), 2)], gaussian="1/50"
    )
    ledger, other = PrivacyLedger.open(path), PrivacyLedger.open(path)
    monkeypatch.setattr(durable_log, "WAIT_SECONDS", 0.2)
    said: list[str] = []

    def meanwhile() -> None:
        for ask in (
            lambda: other.spend(PrivacyCost(mu2="1/1000")),
            lambda: other.spend(PrivacyCost("1/2")),
            other.remaining,
            lambda: PrivacyLedger.open(path).entries,
        ):
            with pytest.raises(TimeoutError, match="Nothing was written"):
                ask()
        assert len(ledger.entries) == 1  # who has the file may read it
        with pytest.raises(RuntimeError, match="has not ended"):
            ledger.spend(PrivacyCost(mu2="1/1000"))
        said.append("refused")

    monkeypatch.setattr(Slow, "meanwhile", staticmethod(meanwhile))
    model = Slow(epsilon="1/2", domain_size=10, m=4, classes=(False, True))
    ledger.fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE, slot=slot)
    assert said == ["refused"]
    other.spend(PrivacyCost("1/2"))
    assert [entry.slot for entry in ledger.entries] == [0, 0]


def together(path: Path, number: int, share: PrivacyCost) -> list[int]:
    """How often each of some processes was allowed a share, all of them as fast as they can."""

    def spend(say: int) -> None:
        ledger = PrivacyLedger.open(path)
        while True:
            try:
                ledger.spend(share)
            except PrivacyBudgetError:
                return
            os.write(say, b"spent\n")

    pipes = [os.pipe() for _ in range(number)]
    children = []
    for _, end in pipes:
        child = os.fork()
        if not child:
            try:
                spend(end)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    for _, end in pipes:
        os.close(end)
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
    counts = []
    for start, _ in pipes:
        with os.fdopen(start) as pipe:
            counts.append(len(pipe.readlines()))
    return counts


@needs_fork
@pytest.mark.serial
@pytest.mark.parametrize(
    ("promise", "share", "times"),
    [
        ({"epsilon": 1}, PrivacyCost("1/150"), 150),
        ({"epsilon": "ln(2)"}, PrivacyCost("ln(3/2)"), 1),
        (PROMISES["exact"], PrivacyCost("1/20"), 2),
        (PROMISES["exact"], PrivacyCost(mu2="1/2000"), 40),
    ],
)
def test_three_processes_spend_the_budget_and_nothing_twice(
    path: Path, promise: dict[str, Any], share: PrivacyCost, times: int
) -> None:
    PrivacyLedger.create(path, **promise)
    counts = together(path, 3, share)
    ledger = PrivacyLedger.open(path)
    assert sum(counts) == len(ledger.entries) == times
    with pytest.raises(PrivacyBudgetError):
        ledger.spend(share)
    if "composition" not in promise and times > 1:
        assert ledger.spent == {"epsilon": 1, "delta": 0}


@pytest.mark.serial
def test_threads_of_one_object_and_of_several_spend_the_budget(path: Path) -> None:
    PrivacyLedger.create(path, 1)
    shared = PrivacyLedger.open(path)
    counts: list[int] = []

    def spend(ledger: PrivacyLedger) -> None:
        for count in range(100):
            try:
                ledger.spend(PrivacyCost("1/60"))
            except PrivacyBudgetError:
                counts.append(count)
                return

    threads = [threading.Thread(target=spend, args=(ledger,)) for ledger in (shared, shared, PrivacyLedger.open(path))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(counts) == 60
    assert shared.remaining()["epsilon"] == 0


@needs_fork
@pytest.mark.serial
def test_a_process_that_is_killed_in_a_fit_leaves_the_file(path: Path) -> None:
    PrivacyLedger.create(path, 1, composition="basic")
    PrivacyLedger.create(
        path.with_name("slots"),
        2,
        "1e-4",
        composition="exact",
        slots=[(PrivacyLossDistribution.pure("1/2"), 2)],
        gaussian=0,
    )

    def fit(say: int) -> None:
        Slow.meanwhile = staticmethod(lambda: os.kill(os.getpid(), signal.SIGKILL))  # type: ignore[method-assign]
        model = Slow(epsilon="1/2", domain_size=10, m=4, classes=(False, True))
        PrivacyLedger.open(path.with_name("slots")).fit(model, HOURS[:, None], HOURS > 5, groups=PEOPLE)

    assert killed_log.said(path, fit)[1]
    ledger = PrivacyLedger.open(path.with_name("slots"))
    assert [entry.slot for entry in ledger.entries] == [0]
    ledger.spend(PrivacyCost("1/2"))
    with pytest.raises(PrivacyBudgetError):
        ledger.spend(PrivacyCost("1/2"))


@needs_fork
@pytest.mark.serial
def test_a_forked_process_opens_the_file_anew(path: Path) -> None:
    ledger = PrivacyLedger.create(path, 1)

    def child(say: int) -> None:
        for ask in (ledger.remaining, lambda: ledger.spend(PrivacyCost("1/2"))):
            with pytest.raises(RuntimeError, match="process"):
                ask()
        PrivacyLedger.open(path).spend(PrivacyCost("1/2"))
        os.write(say, b"done\n")

    assert killed_log.said(path, child)[0] == ["done"]
    assert ledger.remaining()["epsilon"] == F(1, 2)


def test_a_spend_in_doubt_is_no_release(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = PrivacyLedger.create(path, 1)
    write = DurableLog._write

    def fail_after(self: DurableLog, *given: Any) -> None:
        write(self, *given)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(DurableLog, "_write", fail_after)
    with pytest.raises(OSError, match="it counts if it was, and nothing may be released for it"):
        ledger.spend(PrivacyCost("3/4"))
    monkeypatch.undo()
    assert ledger.remaining()["epsilon"] == F(1, 4)
    with pytest.raises(PrivacyBudgetError):
        PrivacyLedger.open(path).spend(PrivacyCost("1/2"))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM log").fetchone() == (2,)


def test_whoever_copies_the_file_takes_no_lock_away(path: Path) -> None:
    """Closing a file ends all of this process's locks on it that are POSIX's, as those of SQLite are."""
    ledger = PrivacyLedger.create(path, 1)
    program = f"""
from userdp.accounting import PrivacyCost, PrivacyLedger
from userdp import durable_log
durable_log.WAIT_SECONDS = 0.2
PrivacyLedger.open({str(path)!r}).spend(PrivacyCost(1), "child")
"""
    assert ledger._log is not None
    with ledger._log:
        path.read_bytes()
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ)
        assert "TimeoutError" in done.stderr, done.stderr
        ledger._log.append(ledger._log.header)
    assert len(DurableLog(path, "privacy ledger").__enter__().entries) == 1


def test_a_file_that_takes_back_what_is_written_is_refused(path: Path) -> None:
    PrivacyLedger.create(path, 1)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TRIGGER t AFTER INSERT ON log BEGIN DELETE FROM log WHERE number = new.number; END")
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match="more than the table of entries"):
        PrivacyLedger.open(path)


@pytest.mark.serial
def test_a_fork_while_a_thread_reads_does_not_hang(path: Path) -> None:
    ledger, stop = PrivacyLedger.create(path, 1), threading.Event()

    def busy() -> None:
        while not stop.is_set():
            ledger.remaining()

    thread = threading.Thread(target=busy)
    thread.start()
    children = []
    for _ in range(5):
        time.sleep(0.02)
        child = os.fork()
        if not child:
            try:
                ledger.remaining()
            except RuntimeError:
                os._exit(3)
            os._exit(1)
        children.append(child)
    stop.set()
    thread.join()
    end = time.monotonic() + 20
    for child in children:
        while (found := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
            time.sleep(0.01)
        if found[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(found[1]) == 3, "it hung"


def test_names_and_paths_of_odd_kinds(path: Path) -> None:
    ledger = PrivacyLedger.create(path, 10**400)
    assert repr(ledger.remaining()) == "{'epsilon': 1e+400, 'delta': 0}"

    class Name:
        def __str__(self) -> str:
            return f"{ledger.remaining()!r:.12}"

    ledger.spend(PrivacyCost(1), Name())  # type: ignore[arg-type]
    assert ledger.entries[0].name == "{'epsilon': "
    with pytest.raises(ValueError, match="null character"):
        PrivacyLedger.create(f"{path}\0x", 1)
    other = path.with_name("notes.txt")
    other.write_text("not a ledger, and longer than a header")
    with pytest.raises(FileExistsError, match="there is such a file"):
        PrivacyLedger.create(other, 1)
    assert other.read_text().startswith("not a ledger")
