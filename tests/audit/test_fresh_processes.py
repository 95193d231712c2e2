"""What functions keep between calls is found in fresh processes, and what their outputs look like is compared.

The functions are those of `support.leaky_functions`, which run as a program has all combinations.
"""

from __future__ import annotations

import subprocess
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from support.leaky_functions import (
    ASKED,
    FIRST,
    MEMORIES,
    OUTPUTS,
    WITHOUT_FRAMES,
    Case,
    Table,
    as_expected,
    cases,
    cell,
    found,
    in_globals,
)
from userdp.audit import audit_sampler_law, audit_sensitivity
from userdp.cli.arguments import load_mechanism
from userdp.exceptions import BudgetError, NotDeterministicError
from userdp.report import Report

WITHOUT_VALUES = ["text of an exception", "order of keys", "type of keys", "type of a list", "dtype of an array"]
AUDITS = ("sensitivity", "bits", "law")
REMEMBERING = [case for case in cases() if case.memory and case.output in WITHOUT_FRAMES]


@pytest.fixture(autouse=True)
def _empty_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


# --- memory between calls


@pytest.mark.fresh
@pytest.mark.parametrize(("place", "memory"), tuple(enumerate(MEMORIES)))
def test_what_a_call_leaves_behind_is_found_and_refused(place: int, memory: str) -> None:
    """One case of each memory, of one audit after the other."""
    every = [case for case in REMEMBERING if case.memory == memory and case.audit == AUDITS[place % len(AUDITS)]]
    assert not as_expected(every[place % len(every)])


@pytest.mark.fresh
@pytest.mark.parametrize("memory", ["lru_cache in a helper", "file in the working folder", "filters of warnings"])
def test_no_alarm_where_only_what_is_public_is_kept(memory: str) -> None:
    assert not as_expected(Case("sensitivity", memory, "order of keys", FIRST, right=True))


CELL = """
from functools import lru_cache
@lru_cache
def first(): return []
def bounded(rows):
    kept = first()
    if not kept: kept.append(len(rows))
    return min(len(rows), kept[0])
"""


@pytest.mark.fresh
@pytest.mark.parametrize("where", ["notebook", "file"])
def test_functions_of_notebooks_and_of_files_are_run_elsewhere(where: str, tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    if where == "notebook":
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(CELL, names)
        function = names["bounded"]
    else:
        (tmp_path / "bounded_by_its_first.py").write_text(CELL)
        function = load_mechanism(f"{tmp_path}/bounded_by_its_first.py:bounded")
    with pytest.raises(NotDeterministicError, match="in a fresh process, where its folders are empty"):
        audit_sensitivity(function, **ASKED)


def test_what_cannot_be_run_elsewhere_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started for it, so that the verdict says so; without cloudpickle a closure is such a function."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    report = audit_sensitivity(lambda rows: len(rows), schema={"x": int}, l1=1, processes=2)
    assert report.holds is True
    assert report.memory.startswith("assumed (it cannot be written")
    assert "cloudpickle, which writes more, is not installed" in report.memory
    assert "Memory between calls: assumed." in report.summary()
    assert Report.from_json(report.to_json()).verify().finding == "consistent"


def test_an_output_that_is_one_constant_is_said() -> None:
    report = audit_sensitivity(lambda rows: 7, schema={"x": int}, l1=0)
    assert (report.holds, report.outputs) == (True, 1)
    assert "The output is one constant." in report.summary()
    other = audit_sensitivity(lambda rows: len(rows), schema={"x": int}, l1=1)
    assert "constant" not in other.summary()


def capped(dataset: Any, bits: Any) -> int:
    """The first dataset's number of ones, and a coin."""
    return in_globals("law", sum(user[0] for user in dataset)) + bits(1)


def cached(dataset: Any, bits: Any) -> int:
    kept = cell("law")
    if not kept:
        kept.append(sum(user[0] for user in dataset))
    return kept[0] + bits(1)


def coin(dataset: Any, bits: Any) -> int:
    return int(bits(1))


@pytest.mark.fresh
def test_laws_of_samplers_that_remember() -> None:
    asked: dict[str, Any] = {"universe": (0, 1), "n_users": 2, "n_examples": 1, "epsilon": 0, "delta": 0}
    for mechanism in (capped, cached):
        with pytest.raises(ValueError, match="with the same bits in a fresh process"):
            audit_sampler_law(mechanism, **asked)
    report = audit_sampler_law(coin, **asked)
    assert (report.holds, report.memory) == (True, "none on 4 datasets in 2 fresh processes")
    assert report.law([(1,), (0,)])[0][1] == Fraction(1, 2)
    constant = audit_sampler_law(lambda dataset, bits: 0, **asked, processes=0)
    assert "Memory between calls: assumed." in constant.summary()
    assert "one constant on all datasets" in constant.summary()


@pytest.mark.fresh
@pytest.mark.parametrize("ends", [subprocess.TimeoutExpired("", 0), KeyboardInterrupt()])
def test_no_process_outlives_the_audit(ends: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever ends it, such as Ctrl-C while it waits; the processes wait for their work then."""
    seen: list[subprocess.Popen[bytes]] = []

    def waiting(process: subprocess.Popen[bytes], *given: Any, **options: Any) -> Any:
        seen.append(process)
        raise ends

    monkeypatch.setattr(subprocess.Popen, "communicate", waiting)
    with pytest.raises(KeyboardInterrupt if isinstance(ends, KeyboardInterrupt) else BudgetError):
        audit_sensitivity(table_length, **ASKED)
    assert len(seen) == 1
    assert seen[0].returncode is not None


def table_length(rows: Table) -> int:
    return len(rows)


# --- how an output looks


@pytest.mark.parametrize("output", OUTPUTS)
def test_how_an_output_looks_is_compared(output: str) -> None:
    if output not in WITHOUT_FRAMES:
        pytest.importorskip("pandas")
    case = Case("sensitivity", None, output, FIRST)
    assert not as_expected(case)
    assert not as_expected(case._replace(right=True))


@pytest.mark.parametrize("output", ["class of an exception", *WITHOUT_VALUES])
def test_form_may_be_left_out_and_the_report_says_what_is_assumed(output: str) -> None:
    said = found(Case("sensitivity", None, output, FIRST), compare="values")
    if output == "class of an exception":
        assert said.startswith("Sensitivity of")
        return
    assert said == "kept"
    report = audit_sensitivity(table_length, schema={"x": int}, l1=1, compare="values")
    assert "nobody is shown the form of the output: the order of keys, rows and columns" in report.summary()
    assert "What the verdict means" in [title for section in report._sections() for title, _ in section.facts]


def test_counts_in_the_order_of_counts() -> None:
    """Each count changes by one, and their order tells who has more."""
    pandas = pytest.importorskip("pandas")
    asked: dict[str, Any] = {"schema": {"town": ("a", "b")}, "null": False, "frame": "pandas", "l1": 2, "max_users": 3}
    asked |= {"alphabets": {"town": ["a", "b"]}, "invariant": lambda rows: len(rows)}

    def counted(frame: Any) -> Any:
        return pandas.concat([frame["town"], pandas.Series(["a", "b"])]).value_counts()

    report = audit_sensitivity(counted, **asked)
    assert report.holds is False
    assert "the form of the output differs" in report.witness_code()
    assert report.verify(counted).refuted
    again = Report.from_json(report.to_json())
    assert again.verify().finding == "consistent"
    assert audit_sensitivity(lambda frame: counted(frame).reindex(["a", "b"]), **asked).holds is True
    assert audit_sensitivity(counted, **asked, compare="values").worst.l1 == 2


def test_orders_and_looks_that_are_forged_are_refused() -> None:
    """The checker computes from the stored form that the change is infinite."""
    report = audit_sensitivity(lambda rows: dict([("a", 1), ("b", 2)][:: -1 if rows else 1]), schema={"x": int}, l1=1)
    text = report.to_json()
    assert Report.from_json(text).verify().finding == "consistent"
    assert report.worst.l1 == float("inf")
    for forged in (text.replace('"compare": "form"', '"compare": "values"'), text.replace('"none on', '"never on')):
        if forged != text:
            assert Report.from_json(forged).verify().finding == "wrong"


def test_numbers_have_no_form() -> None:
    """An empty sum is an int, and others are floats: noise makes one type of them."""
    report = audit_sensitivity(lambda rows: sum(1.0 for _ in rows), schema={"x": int}, l1=1)
    assert report.holds is True


def test_dtypes_of_polars_and_arrow() -> None:
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")

    def of_polars(rows: Table) -> Any:
        return polars.Series("n", [1], dtype=polars.Int32 if rows else polars.Int64)

    def of_arrow(rows: Table) -> Any:
        return arrow.table({"n": [1]}).replace_schema_metadata({"note": "yes" if rows else "no"})

    for function in (of_polars, of_arrow):
        report = audit_sensitivity(function, schema={"x": int}, l1=1)
        assert report.holds is False
        assert "the form of the output differs" in report.summary()
