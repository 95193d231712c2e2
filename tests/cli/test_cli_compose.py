"""The command that composes: its numbers are those of the library, and its errors name the option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp.accounting import PrivacyLossDistribution as PLD
from userdp.cli import main


def run(capsys: pytest.CaptureFixture[str], words: str, *more: str) -> tuple[int, str, str]:
    code = main([*words.split(), *more])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], words: str, *more: str) -> tuple[int, Any]:
    code, out, _ = run(capsys, f"compose {words} --json", *more)
    return code, json.loads(out)


def test_epsilon_of_a_published_composition(capsys: pytest.CaptureFixture[str]) -> None:
    # A thousand randomized responses at 0.1: 19.3446714479930437.
    code, result = run_json(capsys, "--pure 0.1 --steps 1000 --delta 1e-6")
    low, high = result["epsilon"]
    assert code == 0
    assert 19.34467144799304 <= low <= high <= 19.34467144799305
    assert result["delta"] == "1e-6"
    assert result["neighbors"] is None
    code, out, _ = run(capsys, "compose --pure 0.1 --steps 1000 --delta 1e-6")
    first, *_ = out.splitlines()
    assert first.split() == ["epsilon", "at", "most", "19.35", "at", "delta", "1e-6"]
    assert "1000 x (0.1, 0)-DP" in out


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        ("--gaussian 2*3", PLD.gaussian(2).self_compose(3)),
        ("--gaussian 1 --sampling 1/2", PLD.gaussian(1, neighbors="add-remove").poisson("1/2")),
        ("--gaussian 1 --sample-size 1 2", PLD.gaussian(1, neighbors="replace").without_replacement(1, 2)),
        ("--laplace 1/20:3 --steps 4", PLD.discrete_laplace("1/20", 3).self_compose(4)),
        ("--laplace 1/20 --records 3", PLD.discrete_laplace("1/20", 3)),
        ("--discrete-gaussian 25:2", PLD.discrete_gaussian(25, 2)),
        ("--bounded-range 1/2", PLD.bounded_range("1/2")),
        ("--pure 1/2:1/1000", PLD.pure("1/2", "1/1000")),
        ("--pure 1*2 --pure 1/4 --steps 2", PLD.pure(1).self_compose(4).compose(PLD.pure("1/4").self_compose(2))),
        ("--pmf 3/4,1/4 1/4,3/4", PLD.from_pairs([(["3/4", "1/4"], ["1/4", "3/4"])])),
        (
            "--pmf 3/4,1/4 1/4,3/4 --sampling 0.1",
            PLD.from_pmfs(["3/4", "1/4"], ["1/4", "3/4"], neighbors="add-remove").poisson("0.1"),
        ),
    ],
)
def test_releases(capsys: pytest.CaptureFixture[str], words: str, whole: PLD, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    assert run(capsys, f"compose {words} --save {saved}")[0] == 0
    assert PLD.from_json(saved.read_text()) == whole
    code, result = run_json(capsys, f"--saved {saved} --delta 1/20 --width 1")
    assert (code, result["releases"], result["neighbors"]) == (0, repr(whole), whole.neighbors)


def test_files_of_distributions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([0.75, 0.25]))
    (tmp_path / "q.txt").write_text("1/4 3/4")
    _, result = run_json(capsys, f"--pmf {tmp_path / 'p.npy'} {tmp_path / 'q.txt'} --epsilon 0")
    low, high = result["delta_at_epsilon"]
    assert low <= 0.5 <= high


def test_verdicts_and_their_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    claim = tmp_path / "claim.json"
    words = f"--pure 0.1*1000 --delta 1e-6 --certificate {claim}"
    code, result = run_json(capsys, f"{words} --epsilon 19.345")
    assert (code, result["holds"]) == (0, True)
    assert main(["verify", str(claim)]) == 0
    capsys.readouterr()
    claim.unlink()
    code, result = run_json(capsys, f"{words} --epsilon 19.344")
    assert (code, result["holds"]) == (1, False)
    assert not claim.exists()
    # Three releases at ln 3 have a delta of exactly 3/8 at ln 3: no width tells a tie.
    code, out, _ = run(capsys, "compose --pure ln(3)*3 --epsilon ln(3) --delta 3/8")
    assert code == 4
    assert "(ln(3), 3/8)-DP: UNDETERMINED" in out
    code, out, _ = run(capsys, f"compose {words}")
    assert code == 0
    assert main(["verify", str(claim)]) == 0


def test_what_lower_ends_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    note = "lower ends are about a pair that dominates"
    assert note in run(capsys, "compose --bounded-range 1 --delta 1e-6")[1]
    assert note not in run(capsys, "compose --pure 1 --delta 1e-6")[1]
    # Disjoint distributions have no finite epsilon.
    code, result = run_json(capsys, "--pmf 1,0 0,1 --delta 1e-6")
    assert (code, result["epsilon"]) == (0, ["inf", "inf"])
    assert "at most inf" in run(capsys, "compose --pmf 1,0 0,1 --delta 1e-6")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--pure 1", "give --delta, --epsilon or both"),
        ("--delta 1e-6", "list a release: --gaussian, --laplace"),
        ("--gaussian 0 --delta 1e-6", "--gaussian '0': sigma must be > 0"),
        ("--gaussian x --delta 1e-6", "--gaussian 'x': sigma='x'"),
        ("--gaussian 1:2 --delta 1e-6", "--gaussian '1:2': takes one number; accepted: SIGMA"),
        ("--pure=-1 --delta 1e-6", "--pure '-1': epsilon must be >= 0"),
        ("--pure 1*0 --delta 1e-6", "--pure '1*0': count must be at least 1"),
        ("--pure 1*x --delta 1e-6", "the number behind * must be a whole number; got 'x'"),
        ("--laplace 1:a --delta 1e-6", "the sensitivity behind : must be a whole number; got 'a'"),
        ("--discrete-gaussian 0 --delta 1e-6", "--discrete-gaussian '0': sigma_squared must be > 0"),
        ("--pmf 1/2,1/2 1 --delta 1e-6", "--pmf: pairs: q has 1 masses"),
        ("--pmf missing.json 1 --delta 1e-6", "--pmf: missing.json: No such file"),
        ("--saved missing.json --delta 1e-6", "--saved: missing.json: No such file"),
        ("--gaussian 1 --sampling 2 --delta 1e-6", "--sampling '2': rate must be from 2**-30 to 1"),
        ("--discrete-gaussian 1 --sampling 0.1 --delta 1e-6", "--sampling '0.1': poisson(rate) takes"),
        ("--pure 1 --sample-size 3 2 --delta 1e-6", "--sample-size: sampled must be at most total"),
        ("--pure 1 --sample-size 1 2 --sampling 1/2 --delta 1e-6", "give one"),
        ("--gaussian 1 --sampling 1/2 --records 2 --delta 1e-6", "--records: nothing is known about groups on samples"),
        ("--pure 1 --records 0 --delta 1e-6", "--records: '0' is not a whole number >= 1"),
        ("--pure 1 --delta 2", "--delta: '2' is not a probability"),
        ("--pure 1 --delta 1e-6 --width 5", "--width must be in (0, 1]"),
        ("--pure 1 --steps 0 --delta 1", "--steps: '0' is not a whole number >= 1"),
    ],
)
def test_errors_name_the_option(capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    code, out, err = run(capsys, f"compose {words}")
    assert code == 2
    assert not out
    assert message in err
    assert err.count("\n") == 1


def test_a_file_that_was_not_saved_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    code, _, err = run(capsys, f"compose --saved {other} --delta 1e-6")
    assert code == 2
    assert "--saved: the text is not a privacy loss distribution as to_json writes it" in err


def test_too_large_a_composition_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "compose --pure 1:1e-6 --records 100000 --delta 1e-6")
    assert code == 3
    assert err.startswith("userdp: refused: ")
