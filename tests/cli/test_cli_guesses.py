"""``userdp audit-samples``, ``audit-one-run``, ``audit-time``: verdicts, exit codes, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest

from userdp.cli import main
from userdp.report import GuessReport, Report

SOURCE = """
import random

def shown(dataset, rng):
    return sum(map(sum, dataset)) + rng.choice([0, 1])

def even(dataset):
    return random.randrange(4)

def moody(dataset):
    return 1 // random.randrange(2)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "their_mechanisms.py"
    path.write_text(SOURCE)
    return path


def run(*words: Any) -> int:
    return main([str(word) for word in words])


def test_samples_of_a_universe(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, page = tmp_path / "a.json", tmp_path / "a.html"
    small = ("--epsilon", 1, "--draws", 3000, "--training", 600)
    asked = ("--universe", "0,1", "--n-users", 2, "--rng", "random", "--certificate", certificate, "--html", page)
    assert run("audit-samples", f"{source}:shown", *asked, *small) == 1
    assert "VIOLATED" in capsys.readouterr().out
    assert "VIOLATED" in page.read_text()
    report = Report.from_json(certificate.read_text())
    assert report.verify().finding == "consistent"
    assert run("verify", certificate) == 5
    capsys.readouterr()
    assert run("audit-samples", f"{source}:even", "--universe", "0,1", "--n-users", 2, *small, "--json") == 4
    found = json.loads(capsys.readouterr().out)
    assert found["holds"] is None
    assert F(found["verdict"]["epsilon"]["ratio"]) < 2  # e^epsilon
    assert 3590 <= found["runs"] <= 3600  # each dataset is drawn as often in the training
    assert found["raised"] == 0
    assert run("audit-samples", f"{source}:moody", "--universe", "0,1", "--n-users", 2, *small) == 4
    assert re.search(r"Runs that raised +1,\d{3} of 3,600", capsys.readouterr().out)
    assert run("audit-samples", f"{source}:shown", "--universe", "0,1", "--n-users", 2, *small) == 2
    assert "raises in all of 600 runs, TypeError: shown() missing 1 required" in capsys.readouterr().err


def test_samples_of_users_with_several_numbers_of_examples(source: Path) -> None:
    small = ("--epsilon", 1, "--draws", 3000, "--training", 600, "--rng", "random", "--universe", "0,1", "--n-users", 2)
    assert run("audit-samples", f"{source}:shown", *small, "--n-examples", "0,1,2") == 1
    assert run("audit-samples", f"{source}:shown", *small, "--n-examples", "0") == 2
    assert run("audit-samples", f"{source}:shown", *small, "--n-examples", "1,x") == 2


def test_a_module_beside_the_file_is_found(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "beside_it.py").write_text(SOURCE)
    other = tmp_path / "that_imports_it.py"
    other.write_text("from beside_it import shown\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    small = ("--epsilon", 1, "--draws", 3000, "--training", 600, "--rng", "random", "--universe", "0,1", "--n-users", 2)
    assert run("audit-samples", f"{other}:shown", *small) == 1


def test_samples_of_listed_pairs(source: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.json"
    pairs.write_text("[[[[0], [1]], [[0]]]]")
    small = ("--epsilon", 1, "--draws", 3000, "--training", 600, "--rng", "random")
    assert run("audit-samples", f"{source}:shown", "--pairs", pairs, "--neighbors", "add-remove", *small) == 1


def test_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    # The published bounds: 3.743 at 95 %, 1.739 at 1e-9.
    assert run("audit-one-run", "--canaries", 128, "--guesses", 128, "--right", 128, "--epsilon", 1) == 1
    out = capsys.readouterr().out
    assert "epsilon is more than 1.738, but for an error of probability 1e-9" in out
    assert "epsilon is more than 3.743, but for an error of probability 0.05" in out
    assert run("audit-one-run", "--canaries", 128, "--guesses", 128, "--right", 128, "--epsilon", "1.74", "--json") == 4
    assert json.loads(capsys.readouterr().out)["holds"] is None


def test_time_of_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / name for name in "ab"]
    for path in files:
        path.write_text(path.name)
    now = [0]

    def slow_on_b(command: list[str], *, input: bytes, **options: Any) -> Any:
        assert command == ["theirs", "-x"]
        now[0] += 1000 + (input == b"b")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("subprocess.run", slow_on_b)
    monkeypatch.setattr("time.perf_counter_ns", lambda: now[0])
    asked = ("--inputs", *files, "--draws", 300, "--training", 60, "--json", "--", "theirs", "-x")
    assert run("audit-time", *asked) == 1
    report = Report.from_json(capsys.readouterr().out)
    assert isinstance(report, GuessReport)
    assert report.advantage is not None
    assert report.advantage > 0.5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audit-samples", "x:y", "--epsilon", 1), "give --universe and --n-users, or --pairs"),
        (("audit-samples", "x:y", "--epsilon", 1, "--alpha", 2), "--alpha"),
        (("audit-samples", "x:y", "--epsilon", 1, "--certificate", "nowhere/c.json"), "--certificate: nowhere/c.json"),
        (("audit-samples", "x:y", "--epsilon", 1, "--html", "."), "--html: . is a directory"),
        (
            ("audit-one-run", "--canaries", 5, "--guesses", 6, "--right", 1, "--epsilon", 1),
            "n_right <= n_guesses <= n_canaries",
        ),
        (
            ("audit-one-run", "--canaries", 500, "--guesses", 6, "--right", 1, "--epsilon", 1, "--delta", "1e-5"),
            "above the number of canaries times delta",
        ),
    ],
)
def test_words_that_do_not_fit(words: Any, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*words) == 2
    assert said in capsys.readouterr().err
