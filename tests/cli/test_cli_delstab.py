"""``userdp delstab``: explanations, distributions and releases, on votes whose stable sets can be told by hand.

At epsilon = 8, delta = 0.01 "optimal" leaves 4 users out and refuses surely above 2. Of nine users, five are kept.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from userdp.cli import main

F = Fraction
ALGORITHMS = """
from userdp.algorithms import AdditiveAlgorithm, SymmetricAlgorithm, finite_algorithm

def total(dataset):
    return sum(user[0] for user in dataset)

constant = SymmetricAlgorithm(("no", "yes"), lambda dataset: ["1/4", "3/4"])
anybody = SymmetricAlgorithm(("nobody", "somebody"), lambda dataset: [0, 1] if total(dataset) else [1, 0])
parity = SymmetricAlgorithm((0, 1), lambda dataset: [total(dataset) % 2, 1 - total(dataset) % 2])
additive = AdditiveAlgorithm((0, 1), lambda user: user[0], lambda t, n: ["1/2", "1/2"], statistic_range=(0, 1))

@finite_algorithm(outputs=(None, "no"))
def labeled(dataset):
    return [1, 0]

@finite_algorithm(outputs=(0, 1))
def slow(dataset):
    raise KeyboardInterrupt
"""
LEVEL = ("--epsilon", "8", "--delta", "0.01")


@pytest.fixture
def algorithms(tmp_path: Path) -> str:
    path = tmp_path / "private_algorithms.py"
    path.write_text(ALGORITHMS)
    return str(path)


def people(folder: Path, *, ones: int, of: int = 9) -> str:
    path = folder / f"people_{ones}_{of}.json"
    path.write_text(json.dumps([[1]] * ones + [[0]] * (of - ones)))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["delstab", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    return json.loads(out)


def test_the_explanation_says_that_it_is_not_private(
    capsys: pytest.CaptureFixture[str], algorithms: str, tmp_path: Path
) -> None:
    words = (f"{algorithms}:anybody", "--dataset", people(tmp_path, ones=1), *LEVEL)
    code, out, err = run(capsys, *words)
    assert (code, err) == (0, "")
    assert "NOT private" in out.splitlines()[0]
    shown = [" ".join(line.split()) for line in out.splitlines()]
    assert {"Smallest stable set 1", "Refused surely above 2"} < set(shown)
    assert run(capsys, *words, "--explain")[1] == out
    result = run_json(capsys, *words)
    assert result["private"] is False
    assert [result[name] for name in ("n_users", "deletions", "smallest_stable_size")] == [9, 4, 1]
    assert 0 < F(result["refusal_probability"]) < 1
    assert result["worst_divergence"] == [1.0, 1.0]
    assert result["advice"]
    nothing_to_say = run_json(capsys, f"{algorithms}:constant", "--dataset", people(tmp_path, ones=1), *LEVEL)
    assert (nothing_to_say["smallest_stable_size"], nothing_to_say["advice"]) == (0, [])


def test_pmfs(capsys: pytest.CaptureFixture[str], algorithms: str, tmp_path: Path) -> None:
    words = ("--dataset", people(tmp_path, ones=1), *LEVEL)
    pmf = run_json(capsys, f"{algorithms}:constant", *words, "--distribution")
    assert (pmf["outputs"], pmf["probabilities"]) == (["no", "yes", None], ["1/4", "3/4", "0"])
    assert pmf["private"] is False
    # One user is left out of every stable set, and the eight others are nobody: no other output, only refusals.
    refusal = F(run_json(capsys, f"{algorithms}:anybody", *words)["refusal_probability"])
    pmf = run_json(capsys, f"{algorithms}:anybody", *words, "--distribution")
    assert list(map(F, pmf["probabilities"])) == [1 - refusal, 0, refusal]
    code, out, _ = run(capsys, f"{algorithms}:constant", *words, "--distribution")
    assert code == 0
    assert out.splitlines()[1:] == ["no: 0.25", "yes: 0.75", "BOTTOM: 0"]
    assert "NOT private" in out.splitlines()[0]


def test_releases_print_the_output_only(capsys: pytest.CaptureFixture[str], algorithms: str, tmp_path: Path) -> None:
    five = ("--dataset", people(tmp_path, ones=5), *LEVEL, "--release")
    assert run(capsys, f"{algorithms}:anybody", *five) == (0, "somebody\n", "")
    assert run_json(capsys, f"{algorithms}:anybody", *five) == {
        "schema_version": 1,
        "private": True,
        "refused": False,
        "output": "somebody",
    }
    # Whoever is left out, the parity of the rest depends on it until all the rest are alike.
    assert run(capsys, f"{algorithms}:parity", *five) == (0, "BOTTOM\n", "")
    refused = run_json(capsys, f"{algorithms}:parity", *five)
    assert (refused["refused"], refused["output"]) == (True, None)
    answered = run_json(capsys, f"{algorithms}:labeled", *five)
    assert (answered["refused"], answered["output"]) == (False, None)


def test_calibrations_relations_and_types(capsys: pytest.CaptureFixture[str], algorithms: str, tmp_path: Path) -> None:
    many = ("--dataset", people(tmp_path, ones=100, of=200), "--epsilon", "1", "--delta", "1e-6")
    deletions = [
        run_json(capsys, f"{algorithms}:additive", *many, "--calibration", name)["deletions"]
        for name in ("optimal", "paper")
    ]
    assert deletions == [68, 192]
    nine = ("--dataset", people(tmp_path, ones=5), *LEVEL)
    assert run_json(capsys, f"{algorithms}:additive", *nine)["compatibility"] == "distance"
    assert run_json(capsys, f"{algorithms}:additive", *nine, "--compatibility", "exact")["compatibility"] == "exact"
    # With one type allowed, all but the five alike must go: four, which is too many.
    assert run_json(capsys, f"{algorithms}:constant", *nine, "--max-distinct-users", "1")["smallest_stable_size"] == 4
    assert run(capsys, f"{algorithms}:constant", *nine, "--max-distinct-users", "1", "--release")[1] == "BOTTOM\n"


def test_exit_codes(capsys: pytest.CaptureFixture[str], algorithms: str, tmp_path: Path) -> None:
    nine = ("--dataset", people(tmp_path, ones=5))
    for words in (
        (f"{algorithms}:absent", *nine, *LEVEL),
        (f"{algorithms}:constant", *nine, "--epsilon", "0", "--delta", "0.01"),
        (f"{algorithms}:constant", *nine, "--epsilon", "1", "--delta", "0"),
        (f"{algorithms}:constant", *nine, *LEVEL, "--compatibility", "distance"),
        (f"{algorithms}:constant", *nine, *LEVEL, "--max-distinct-users", "0"),
        (f"{algorithms}:constant", "--dataset", "missing.json", *LEVEL),
        # Fewer users than are left out.
        (f"{algorithms}:constant", *nine, "--epsilon", "1", "--delta", "1e-6", "--release"),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out) == (2, "")
        assert err.startswith("userdp: error: ")
    hundred = ("--dataset", people(tmp_path, ones=5, of=100))
    code, out, err = run(capsys, f"{algorithms}:labeled", *hundred, *LEVEL, "--release")
    assert (code, out) == (3, "")
    assert "Cheaper" in err
    assert run(capsys, f"{algorithms}:slow", *nine, *LEVEL)[0] == 130
    code, out, err = run(capsys, f"{algorithms}:constant", *nine, *LEVEL, "--release", "--distribution")
    assert (code, out) == (2, "")
    assert "not allowed with argument --release" in err


def test_help_says_what_is_private(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["delstab", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert "Only --release is private" in out
