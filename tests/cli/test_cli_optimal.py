"""``userdp optimal``: solve, write the proof, check it again."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("highspy")

from userdp.cli import main


def test_the_proof_is_written_and_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "best.json"
    asked = ["optimal", "--n-users", "6", "--n-items", "3", "--epsilon", "ln(4)", "--certificate", str(file)]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert said == (
        "loss on the worst dataset: 0.35 by the best mechanism that was found\n"
        "certified: none is below 0.35 (gap 0.0e+00)\n"
    )
    assert main(["verify", str(file)]) == 0
    assert capsys.readouterr().out.startswith("established")
    content = json.loads(file.read_text())
    content["value"] = "1/3"
    file.write_text(json.dumps(content))
    assert main(["verify", str(file)]) == 6
    assert "value is not what the table loses" in capsys.readouterr().out


def test_json_and_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["optimal", "--n-users", "7", "--n-items", "2", "--epsilon", "1", "--agreement", "0.9", "--json"]
    assert main(asked) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["objective"] == "bayes"
    assert float(Fraction(said["lower_bound"])) == pytest.approx(0.040414, abs=1e-6)
    assert "9/10" in json.dumps(said["world"])
    assert main(asked[:-1]) == 0
    assert capsys.readouterr().out.startswith("probability to miss the common item: 0.0404")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--n-users", "3", "--n-items", "3", "--epsilon", "1", "--delta", "1e-9"], 2, "--delta must be 0 or at least"),
        (["--n-users", "3", "--n-items", "3", "--epsilon", "0"], 2, "--epsilon must be > 0"),
        (["--n-users", "3", "--n-items", "9999", "--epsilon", "1"], 2, "--n-items must be at most 1024"),
        (["--n-users", "900", "--n-items", "90", "--epsilon", "1"], 3, "sorted counts"),
        (["--n-users", "0", "--n-items", "3", "--epsilon", "1"], 2, "--n-users"),
        (
            ["--n-users", "3", "--n-items", "3", "--epsilon", "1", "--loss", "error", "--agreement", "0.9"],
            2,
            "--agreement about users drawn at random: give one",
        ),
        (["--n-users", "3", "--n-items", "1", "--epsilon", "1", "--agreement", "0.9"], 2, "must be at least 2; got 1"),
    ],
)
def test_what_is_refused(words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimal", *words]) == code
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
