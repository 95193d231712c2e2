"""The command line: results, exit codes, JSON, and what happens without the compiled core."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from userdp.cli import main
from userdp.report import AuditReport

MECHANISM = """
from fractions import Fraction
from userdp.algorithms import finite_algorithm

@finite_algorithm(outputs=("no", "yes"))
def respond(dataset):
    return [Fraction(1, 4), Fraction(3, 4)] if dataset[0][0] else [Fraction(3, 4), Fraction(1, 4)]

@finite_algorithm(outputs=(0, 1), pmf_error="1e-9")
def rounded(dataset):
    return [0.25, 0.75] if dataset[0][0] else [0.75, 0.25]

@finite_algorithm(outputs=(0, 1))
def broken(dataset):
    return [0.5, 0.6]

@finite_algorithm(outputs=(0, 1))
def exits(dataset):
    raise SystemExit(0)

@finite_algorithm(outputs=(0, 1))
def slow(dataset):
    raise KeyboardInterrupt
"""


@pytest.fixture
def mechanism(tmp_path: Path) -> str:
    path = tmp_path / "audited_mechanisms.py"
    path.write_text(MECHANISM)
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code, out, _ = run(capsys, *words, "--json")
    return code, json.loads(out)


def test_divergence(capsys: pytest.CaptureFixture[str]) -> None:
    code, result = run_json(capsys, "divergence", "3/4,1/4", "1/4,3/4", "--epsilon", "ln(2)", "--delta", "1/4")
    assert code == 0
    assert result["hockey_stick_p_q"] == [0.25, 0.25]
    assert result["holds"] is True
    code, result = run_json(capsys, "divergence", "3/4,1/4", "1/4,3/4", "--epsilon", "ln(2)", "--delta", "0.2499999")
    assert (code, result["holds"], result["event"]) == (1, False, [0])
    code, out, _ = run(capsys, "divergence", "0.5,0.5", "1,0", "--epsilon", "ln(3/2)", "--delta", "0")
    assert code == 1
    assert "VIOLATED" in out
    assert "inf" in out
    code, result = run_json(capsys, "divergence", "0.5,0.5", "1,0", "--epsilon", "0")
    assert (code, result["total_variation"]) == (0, 0.5)


def test_divergence_reads_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([0.3, 0.7]))
    (tmp_path / "p.json").write_text("[0.3, 0.7]")
    (tmp_path / "p.csv").write_text("0.3,0.7\n")
    (tmp_path / "p.txt").write_text("0.3\n0.7\n")
    found = {
        suffix: run_json(capsys, "divergence", str(tmp_path / f"p{suffix}"), "1/2,1/2", "--epsilon", "0")[1]
        for suffix in (".npy", ".json", ".csv", ".txt")
    }
    assert found[".json"]["hockey_stick_q_p"] == [0.19999999999999998, 0.2]  # exactly 1/5: decimals stay decimals
    assert found[".json"] == found[".csv"] == found[".txt"]
    assert found[".npy"]["hockey_stick_q_p"] == [0.2, 0.2]  # 1/2 minus the float 0.3 is the float 0.2


@pytest.mark.parametrize(
    "words",
    [
        ("divergence", "0.5,0.6", "0.5,0.5", "--epsilon", "1"),
        ("divergence", "0.5,0.5", "1", "--epsilon", "1"),
        ("divergence", "0.5,half", "0.5,0.5", "--epsilon", "1"),
        ("divergence", "missing.json", "0.5,0.5", "--epsilon", "1"),
        ("divergence", "0.5,0.5", "0.5,0.5", "--epsilon", "1", "--delta", "2"),
        ("audit", "nonsense", "--universe", "[0, 1]", "--n-users", "1", "--epsilon", "1", "--delta", "0"),
        ("audit", "no_such_module:x", "--universe", "[0, 1]", "--n-users", "1", "--epsilon", "1", "--delta", "0"),
        ("audit", "json:loads", "--universe", "[0, 1]", "--n-users", "1", "--epsilon", "1", "--delta", "0"),
        ("audit", "json:missing", "--universe", "[0, 1]", "--n-users", "1", "--epsilon", "1", "--delta", "0"),
        ("audit", "json:loads", "--epsilon", "1", "--delta", "0"),
        ("verify", "missing.json"),
    ],
)
def test_usage_errors_exit_with_2(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert err.startswith("userdp: error: ")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "the following arguments are required: command (see userdp --help)"),
        ("nothing", "command: invalid choice: 'nothing'"),
        ("divergence 1 1", "the following arguments are required: --epsilon (see userdp divergence --help)"),
        (
            "divergence 1 1 --epsilon -1",
            "--epsilon: '-1' is not a privacy parameter >= 0; accepted: 1, 0.5, 3/4, ln(3)",
        ),
        ("divergence 1 1 --epsilon abc", "--epsilon: 'abc' is not"),
        ("divergence 1 1 --epsilon ln(1/2)", "--epsilon: 'ln(1/2)' is not"),
        ("divergence 1 1 --epsilon ln(3", "--epsilon: 'ln(3' is not"),
        ("divergence 1 1 --epsilon 1 --delta 2", "--delta: '2' is not a probability from 0 to 1; accepted: 0, 1e-6,"),
        ("divergence missing.json 1 --epsilon 1", "p: missing.json: No such file or directory"),
        ("audit x:y --universe [0 --n-users 1 --epsilon 1 --delta 0", "--universe: the list is not JSON"),
        ("audit x:y --universe 0,1 --n-users 0 --epsilon 1 --delta 0", "--n-users: '0' is not a whole number >= 1"),
        ("audit x:y --universe 0,1 --n-users 2 --epsilon 1 --delta 0 --level all", "--level: invalid choice: 'all'"),
        ("lddp x:y --dataset missing.json -r 1 --epsilon 1 --delta 0", "--dataset: missing.json: No such file"),
        ("lddp x:y --dataset missing.json -r 1.5 --epsilon 1 --delta 0", "--dataset: missing.json"),
        ("lddp x:y -r 1.5 --epsilon 1 --delta 0", "--deletions/-r: '1.5' is not a whole number >= 0; accepted: 0, 1,"),
        ("completion tcsh", "shell: invalid choice: 'tcsh'"),
    ],
)
def test_argument_errors_name_the_option(capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    code, out, err = run(capsys, *words.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"userdp: error: {message}")


def test_errors_of_the_library_name_the_option(
    capsys: pytest.CaptureFixture[str], mechanism: str, tmp_path: Path
) -> None:
    (tmp_path / "users.json").write_text("[[0], [1]]")
    words = ("--dataset", str(tmp_path / "users.json"), "--epsilon", "1", "--delta", "0", "-r", "3")
    code, _, err = run(capsys, "lddp", f"{mechanism}:respond", *words)
    assert code == 2
    assert err.startswith("userdp: error: --deletions must be")


def test_help_has_examples_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*words: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main([*words, "--help"])
        assert stopped.value.code == 0
        return capsys.readouterr().out

    assert "\n  70   an error of the program\n" in shown()
    for command in ("divergence", "audit", "lddp", "delstab", "compose", "verify", "demo", "completion"):
        assert f"\nexamples:\n  userdp {command}" in shown(command)


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last of some words."""
    line = " ".join(f"'{word}'" for word in words)
    ask = f'{script}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words) - 1}\n_userdp\necho "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_completion(capsys: pytest.CaptureFixture[str]) -> None:
    code, script, _ = run(capsys, "completion", "bash")
    assert code == 0
    assert completed(script, "userdp", "d") == ["divergence", "delstab", "demo"]
    assert completed(script, "userdp", "audit", "--n-") == ["--n-users", "--n-examples"]
    assert completed(script, "userdp", "audit", "m:n", "--level", "") == ["user", "item"]
    assert completed(script, "userdp", "delstab", "m:n", "--calibration", "p") == ["paper"]
    assert completed(script, "userdp", "completion", "z") == ["zsh"]
    # Files and numbers are left to the shell.
    for words in (("audit", "m:n", "--dataset", ""), ("audit", "m:n", "--epsilon", ""), ("verify", "rep")):
        assert completed(script, "userdp", *words) == []
    assert run(capsys, "completion", "zsh")[1].endswith(script)
    fish = run(capsys, "completion", "fish")[1].splitlines()
    assert "complete -c userdp -n '__fish_seen_subcommand_from audit' -l level -x -a 'user item'" in fish
    assert "complete -c userdp -n '__fish_seen_subcommand_from lddp' -l deletions -s r -r" in fish


def test_a_universe_is_json_or_a_comma_list(capsys: pytest.CaptureFixture[str], mechanism: str) -> None:
    claim = ("audit", f"{mechanism}:respond", "--epsilon", "ln(3)", "--delta", "0", "--n-users", "2", "--universe")
    found = run_json(capsys, *claim, "[0, 1]")
    assert found == run_json(capsys, *claim, "0, 1")
    assert found[1]["datasets"] == 4


def test_audit_exit_codes(capsys: pytest.CaptureFixture[str], mechanism: str) -> None:
    space = ("--universe", "[0, 1]", "--n-users", "2", "--delta")
    assert run(capsys, "audit", f"{mechanism}:respond", "--epsilon", "ln(3)", *space, "0")[0] == 0
    code, out, _ = run(capsys, "audit", f"{mechanism}:respond", "--epsilon", "1", *space, "0")
    assert code == 1
    assert "VIOLATED" in out
    assert run(capsys, "audit", f"{mechanism}:rounded", "--epsilon", "0", *space, "1/2")[0] == 4
    code, _, err = run(capsys, "audit", f"{mechanism}:respond", "--epsilon", "1", *space, "0", "--budget", "3")
    assert code == 3
    assert "budget" in err
    code, _, err = run(capsys, "audit", f"{mechanism}:broken", "--epsilon", "1", *space, "0")
    assert code == 2
    assert "((0,), (0,))" in err
    assert run(capsys, "audit", f"{mechanism}:slow", "--epsilon", "1", *space, "0")[0] == 130
    # A mechanism that ends the program, or cannot be imported, is no verdict.
    assert run(capsys, "audit", f"{mechanism}:exits", "--epsilon", "1", *space, "0")[0] == 70
    (Path(mechanism).parent / "unreadable.py").write_text("1 / 0")
    unreadable = str(Path(mechanism).parent / "unreadable.py")
    code, _, err = run(capsys, "audit", f"{unreadable}:x", "--epsilon", "1", *space, "0")
    assert code == 2
    assert "ZeroDivisionError" in err


def test_audit_item_level_and_add_remove(capsys: pytest.CaptureFixture[str], mechanism: str) -> None:
    space = ("--universe", "[0, 1]", "--n-users", "2", "--n-examples", "2", "--epsilon", "ln(3)", "--delta", "0")
    code, result = run_json(capsys, "audit", f"{mechanism}:respond", *space, "--level", "item")
    assert (code, result["question"]["kind"], result["pairs"]) == (0, "item-level", 32)
    assert result["result"]["exp_epsilon"] == "3"
    code, result = run_json(capsys, "audit", f"{mechanism}:respond", *space, "--neighbors", "add-remove")
    assert (code, result["question"]["neighbors"]) == (0, "add-remove")
    both = ("--level", "item", "--neighbors", "add-remove")
    assert run(capsys, "audit", f"{mechanism}:respond", *space, *both)[0] == 2


def test_audit_one_dataset_and_verify(capsys: pytest.CaptureFixture[str], mechanism: str, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_text("[[0], [1], [1]]")
    (tmp_path / "records.json").write_text("[[0], [1]]")
    words = (
        *("audit", f"{mechanism}:respond", "--epsilon", "1", "--delta", "0"),
        *("--dataset", str(tmp_path / "data.json"), "--records", str(tmp_path / "records.json")),
        *("--html", str(tmp_path / "report.html"), "--certificate", str(tmp_path / "report.json")),
    )
    code, printed, _ = run(capsys, *words, "--json")
    assert printed == (tmp_path / "report.json").read_text() + "\n"
    report = AuditReport.from_json(printed)
    assert (code, report.holds, report.witness and report.witness.changed_user) == (1, False, 0)
    page = (tmp_path / "report.html").read_text()
    assert "<svg" in page
    assert not re.search(r"""(src|href)\s*=\s*["']?http|<script""", page)
    certificate = tmp_path / "report.json"
    assert AuditReport.from_json(certificate.read_text()).holds is False
    code, result = run_json(capsys, "verify", str(certificate))
    assert (code, result["finding"], result["holds"], result["refuted"]) == (5, "consistent", False, False)
    again = ("verify", str(certificate), "--mechanism", f"{mechanism}:respond")
    code, result = run_json(capsys, *again)
    assert (code, result["finding"], result["holds"], result["refuted"]) == (1, "established", False, True)
    assert run_json(capsys, *again[:-1], f"{mechanism}:rounded")[0] == 6
    certificate.write_text(certificate.read_text().replace('"holds": false', '"holds": true', 1))
    code, result = run_json(capsys, "verify", str(certificate))
    assert (code, result["finding"]) == (6, "wrong")


def test_verify_without_the_compiled_core(mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate = tmp_path / "report.json"
    space = ("--universe", "[0, 1]", "--n-users", "2", "--epsilon", "ln(3)", "--delta", "0")
    assert run(capsys, "audit", f"{mechanism}:respond", *space, "--certificate", str(certificate))[0] == 0
    script = textwrap.dedent(
        f"""
        import sys
        sys.modules["userdp._core"] = None  # importing it now fails
        from userdp.cli import main
        sys.exit(main(["verify", {str(certificate)!r}]))
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (5, "")
    assert done.stdout.startswith("consistent")
    assert run(capsys, "verify", str(certificate), "--mechanism", f"{mechanism}:respond")[0] == 0


def test_module_and_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "userdp", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert re.fullmatch(r"userdp \d+\.\d+\.\d+\n", done.stdout)


def test_lddp(capsys: pytest.CaptureFixture[str], mechanism: str, tmp_path: Path) -> None:
    dataset = tmp_path / "users.json"
    dataset.write_text("[[0], [1], [1]]")
    words = ("--dataset", str(dataset), "-r", "1", "--epsilon", "0", "--delta")
    code, result = run_json(capsys, "lddp", f"{mechanism}:respond", *words, "1/2")
    assert (code, result["holds"], result["r"], result["n_users"]) == (0, True, 1, 3)
    assert (result["lower"], result["upper"], result["engine"]) == ((0.5).hex(), (0.5).hex(), "general")
    assert [0] in result["witness"][:2]
    assert result["witness"][2] in (["no"], ["yes"])
    code, out, _ = run(capsys, "lddp", f"{mechanism}:respond", *words, "0.49")
    assert code == 1
    assert "VIOLATED" in out
    assert run(capsys, "lddp", f"{mechanism}:rounded", *words, "1/2")[0] == 4
    assert run(capsys, "lddp", f"{mechanism}:slow", *words, "1/2")[0] == 130


def test_lddp_refusals(capsys: pytest.CaptureFixture[str], mechanism: str, tmp_path: Path) -> None:
    dataset = tmp_path / "users.json"
    dataset.write_text(json.dumps([[0]] * 60))
    words = ("--dataset", str(dataset), "--epsilon", "0", "--delta", "0")
    code, out, err = run(capsys, "lddp", f"{mechanism}:respond", *words, "-r", "30")
    assert (code, out) == (3, "")
    assert "SymmetricAlgorithm" in err
    code, out, err = run(capsys, "lddp", f"{mechanism}:respond", *words, "-r", "61")
    assert (code, out) == (2, "")
    assert "--deletions must be" in err
    code, _, err = run(capsys, "lddp", f"{mechanism}:broken", *words, "-r", "1")
    assert code == 2
    assert "positions (0,)" in err
    assert run(capsys, "lddp", f"{mechanism}:absent", *words, "-r", "1")[0] == 2
    assert run(capsys, "lddp", f"{mechanism}:exits", *words, "-r", "1")[0] == 70


FAILURES: dict[str, Callable[..., Any]] = {
    "a type of the interpreter": lambda *_, **__: None + 1,  # type: ignore[operator]
    "a value of the interpreter": lambda *_, **__: int("seven"),
    "a key": lambda *_, **__: {}["missing"],
    "a runtime error": lambda *_, **__: raising(RuntimeError("boom")),
    "an assertion": lambda *_, **__: raising(AssertionError()),
    "no file": lambda *_, **__: raising(OSError("no random bits")),
    "what no program should catch": lambda *_, **__: raising(BaseException("panic")),
    "depth": lambda *_, **__: raising(RecursionError("too deep")),
}


def raising(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("failure", FAILURES)
def test_errors_of_the_program_are_not_bad_input(
    failure: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    mechanism: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "data.json").write_text("[[0], [1]]")
    broken = FAILURES[failure]
    monkeypatch.setattr("userdp.audit.audit_user_level", broken)
    monkeypatch.setattr("userdp.checker.check.read", broken)
    monkeypatch.setattr("userdp.divergence.hockey_stick_bounds", broken)
    monkeypatch.setattr("userdp.lddp.check_lddp", broken)
    claim = ("--epsilon", "1", "--delta", "0")
    for words in (
        ("audit", f"{mechanism}:respond", *claim, "--universe", "[0, 1]", "--n-users", "2"),
        ("lddp", f"{mechanism}:respond", *claim, "--dataset", str(tmp_path / "data.json"), "-r", "1"),
        ("verify", str(tmp_path / "report.json")),
        ("divergence", "1/2,1/2", "1/4,3/4", *claim),
    ):
        code, out, err = run(capsys, *words)
        assert (code, out) == (70, "")
        assert err.startswith("userdp: unexpected ")
        assert "Traceback" not in err


def test_bad_files_are_bad_input(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name, content in (
        ("a.json", b"\xff"),
        ("b.json", b"[1/2]"),
        ("c.json", b"[" * 10**5),
        ("d.json", b"{}"),
        ("e.npy", b"no array"),
        ("f.npy", b""),
        ("g.csv", b"\xff"),
        ("h.json", b'[{"a": 1}, null]'),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        code, out, err = run(capsys, "divergence", str(path), "1/2,1/2", "--epsilon", "1")
        assert (code, out, err.startswith("userdp: error: ")) == (2, "", True), (name, err)
        code, out, err = run(capsys, "verify", str(path))
        assert (code, out, err.startswith("userdp: error: ")) == (2, "", True), (name, err)


NO_MECHANISMS = """
class Unlistable:
    outputs = 5
    def pmf(self, dataset):
        return [0, 1]

class Unhashable(Unlistable):
    outputs = ([0], [1])

class Raising(Unlistable):
    @property
    def outputs(self):
        return 1 / 0

class Endless(Unlistable):
    @property
    def outputs(self):
        yield 1 / 0

class Unnamed(Unlistable):
    outputs = (0, 1)
    name = property(lambda self: {}["name"])

class Vague(Unlistable):
    outputs = (0, 1)
    pmf_error = property(lambda self: int("much"))

text, nothing, unlistable, unhashable = "respond", None, Unlistable(), Unhashable()
raising, endless, unnamed, vague = Raising(), Endless(), Unnamed(), Vague()
"""


def test_what_is_no_mechanism_is_bad_input(capsys: pytest.CaptureFixture[str], mechanism: str, tmp_path: Path) -> None:
    """Of a report that it is given with it says nothing."""
    (tmp_path / "no_mechanisms.py").write_text(NO_MECHANISMS)
    report = tmp_path / "report.json"
    audit = ("--epsilon", "ln(3)", "--delta", "0", "--universe", "[0, 1]", "--n-users", "1")
    assert run(capsys, "audit", f"{mechanism}:respond", *audit, "--certificate", str(report))[0] == 0
    for name in ("text", "nothing", "unlistable", "Unlistable"):
        target = f"{tmp_path / 'no_mechanisms.py'}:{name}"
        code, out, err = run(capsys, "verify", str(report), "--mechanism", target)
        assert (code, out, err.startswith("userdp: error: --mechanism")) == (2, "", True), (name, err)
    for name in ("text", "nothing", "unlistable", "unhashable", "raising", "endless", "unnamed", "vague"):
        code, out, err = run(capsys, "audit", f"{tmp_path / 'no_mechanisms.py'}:{name}", *audit)
        assert (code, out, err.startswith("userdp: error: mechanism")) == (2, "", True), (name, err)


def test_names_that_a_terminal_cannot_show_are_escaped(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, tmp_path: Path
) -> None:
    source = Path(mechanism).read_text()
    path = tmp_path / "named.py"
    path.write_text(source + "\nrespond.name = 'Gerät'\n", encoding="utf-8")
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii"))
    claim = ("--epsilon", "ln(3)", "--delta", "0", "--universe", "[0, 1]", "--n-users", "1")
    assert main(("audit", f"{path}:respond", *claim)) == 0
    sys.stdout.flush()
    assert shown.getvalue().startswith(b"Ger\\xe4t: HOLDS")


def test_a_sampled_report_establishes_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, mechanism: str, tmp_path: Path
) -> None:
    monkeypatch.setattr("userdp.checker.values.COMPLETE_PAIRS", 3)
    certificate = tmp_path / "report.json"
    space = ("--universe", "[0, 1]", "--n-users", "2", "--delta", "0", "--certificate", str(certificate))
    code, result = run_json(capsys, "audit", f"{mechanism}:respond", "--epsilon", "ln(3)", *space)
    assert (code, result["result"]["holds"], result["verification"]) == (5, True, "sampled")
    assert run(capsys, "verify", str(certificate))[0] == 5
    code, result = run_json(capsys, "verify", str(certificate), "--mechanism", f"{mechanism}:respond")
    assert (code, result["finding"]) == (5, "spot-checked")
    # A violation needs no more than its witness.
    code, result = run_json(capsys, "audit", f"{mechanism}:respond", "--epsilon", "1", *space)
    assert (code, result["verification"]) == (1, "sampled")
    assert run(capsys, "verify", str(certificate))[0] == 5
    code, result = run_json(capsys, "verify", str(certificate), "--mechanism", f"{mechanism}:respond")
    assert (code, result["finding"], result["refuted"]) == (1, "spot-checked", True)
