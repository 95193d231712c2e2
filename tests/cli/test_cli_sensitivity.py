"""``userdp audit-function``: verdicts, exit codes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from userdp.cli import main
from userdp.report import Report

SOURCE = """
def visits(rows):
    return {town: sum(row["town"] == town for row in rows) for town in ("a", "b")}

def visitors(rows):
    return len({row["person"] for row in rows})

def total(frame):
    return float(frame["hours"].clip(0, 8).sum())
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "their_functions.py"
    path.write_text(SOURCE)
    return path


def run(*words: Any) -> int:
    return main([str(word) for word in words])


def test_rows_where_users_were_meant(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, page = tmp_path / "a.json", tmp_path / "a.html"
    asked = ("--schema", '{"town": "str"}', "--user", "person", "--l1", 1, "--neighbors", "add-remove")
    assert run("audit-function", f"{source}:visits", *asked, "--certificate", certificate, "--html", page) == 1
    shown = capsys.readouterr().out
    assert "VIOLATED" in shown
    assert "first = [{'person': 0, 'town': 'a'}, {'person': 0, 'town': 'a'}]" in shown
    assert "VIOLATED" in page.read_text()
    assert Report.from_json(certificate.read_text()).verify().finding == "consistent"
    assert run("audit-function", f"{source}:visits", *asked, "--json") == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["holds"], found["worst"][1]) == (False, "2")


def test_users_of_categories(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--schema", '{"town": ["a", "b"]}', "--user", "person", "--max-rows", 1)
    assert run("audit-function", f"{source}:visitors", *asked, "--l1", 1) == 0
    assert run("audit-function", f"{source}:visitors", *asked) == 4
    assert run("audit-function", f"{source}:visitors", *asked, "--linf", "1/2", "--json") == 1
    assert json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))["worst"][3] == "1"


def test_frames(source: Path) -> None:
    pytest.importorskip("pandas")
    asked = ("--schema", '{"hours": "float"}', "--frame", "pandas", "--bounds", '{"hours": [0, 8]}', "--total-rows", 2)
    asked = (f"{source}:total", *asked, "--neighbors", "add-remove", "--no-nan")
    assert run("audit-function", *asked, "--l1", 8, "--float-slack", "1e-9") == 0
    # 8 and the float below it: their sum is rounded to 16.
    assert run("audit-function", *asked, "--l1", 8) == 1
    assert run("audit-function", *asked, "--l1", 7, "--float-slack", "1e-9") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schema", "town"), "--schema: 'town' is not JSON"),
        (("--schema", "[1]"), "--schema: '[1]' is not a JSON object"),
        (("--schema", '{"town": "blob"}'), "schema"),
        (("--schema", '{"town": "str"}', "--max-rows", 2), "--max-rows goes with --user"),
        (("--schema", '{"town": "str"}', "--l1", "x"), "l1"),
        (("--schema", '{"town": "str"}', "--bounds", '{"town": [0, 1]}'), "bounds"),
        ((), "--schema"),
    ],
)
def test_words_that_do_not_fit(source: Path, words: Any, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("audit-function", f"{source}:visits", *words) == 2
    assert said in capsys.readouterr().err
