"""``userdp certificate``: write for Coq and for verify, and refuse by option."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from userdp.cli import main
from userdp.report import Certificate


def test_written_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, subject in (
        (["delstab", "--epsilon", "8", "--delta", "0.01"], "optimal"),
        (["delstab", "--epsilon", "8", "--delta", "0.01", "--inner-budget", "1/20,1/2"], "optimal"),
        (["delstab", "--epsilon", "8", "--delta", "0.01", "--calibration", "paper"], "paper"),
        (["noise", "--epsilon", "ln(2)", "--delta", "0.01", "--half-width", "tight"], "noise"),
        (["selection", "--epsilon", "8", "--sensitivity", "0.5", "--granularity", "0.5"], "selection"),
        (["selection", "--epsilon", "8", "--sensitivity", "1", "--n-candidates", "9"], "selection"),
        (["pair", "--p", "2/3,1/3", "--q", "1/3,2/3", "--epsilon", "ln(2)", "--delta", "0"], "pair"),
    ):
        file = tmp_path / "found.json"
        assert main(["certificate", *words, "--output", str(file)]) == 0
        assert f"written to {file}" in capsys.readouterr().out
        made = Certificate.from_json(file.read_text(encoding="ascii"))
        assert made.subject == subject
        assert main(["verify", str(file)]) == 0
        assert capsys.readouterr().out.startswith("established")
        other = tmp_path / "found.v"
        assert main(["certificate", *words, "--output", str(other), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["digest"] == made.digest
        assert other.read_text(encoding="ascii") == made.to_coq()


def test_a_changed_file_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "found.json"
    assert main(["certificate", "noise", "--epsilon", "2", "--delta", "0.01", "--output", str(file)]) == 0
    file.write_text(file.read_text(encoding="ascii").replace('"delta": "1/100"', '"delta": "1/101"'), encoding="ascii")
    assert main(["verify", str(file)]) == 6
    assert "the digest does not match the content" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["noise", "--epsilon", "1"], "--delta is needed for noise", 2),
        (["noise", "--epsilon", "1", "--delta", "0.1", "--calibration", "paper"], "--calibration does not go with", 2),
        (["selection", "--epsilon", "1"], "--sensitivity is needed for selection", 2),
        (["selection", "--epsilon", "1", "--sensitivity", "1", "--delta", "0"], "--delta does not go with", 2),
        (["pair", "--epsilon", "1", "--delta", "0", "--p", "1"], "--q is needed for pair", 2),
        (["pair", "--epsilon", "0", "--delta", "0", "--p", "1,0", "--q", "0,1"], "not indistinguishable", 2),
        (["delstab", "--epsilon", "1", "--delta", "0.1", "--inner-budget", "x"], "--inner-budget must be", 2),
        (["selection", "--epsilon", "0.001", "--sensitivity", "9"], "refused: ", 3),
    ],
)
def test_refusals(
    words: list[str], message: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "found.v"
    assert main(["certificate", *words, "--output", str(file)]) == code
    assert message in capsys.readouterr().err
    assert not file.exists()


def test_where_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["certificate", "noise", "--epsilon", "2", "--delta", "0.01", "--output"]
    assert main([*asked, str(tmp_path / "found.txt")]) == 2
    assert "--output must end in .v" in capsys.readouterr().err
    assert main([*asked, str(tmp_path / "none" / "found.v")]) == 2
    assert "no such directory" in capsys.readouterr().err
